// Entries of one priority in the queue of collapse, first in first out.
#pragma once

#include "hvm/eval/term.h"

#include <cstddef>
#include <vector>

namespace vortex::hvm {

class Entries {
public:
  size_t size() const { return terms_.size() - first_; }
  bool empty() const { return first_ == terms_.size(); }
  Term& operator[](size_t i) { return terms_[first_ + i]; }
  void push(Term term) { terms_.push_back(term); }
  Term pop() {
    static constexpr size_t kFewest = 4096;
    const Term term = terms_[first_++];
    if (empty())
      *this = {};
    else if (first_ >= kFewest && first_ > size())
      terms_.erase(terms_.begin(), terms_.begin() + static_cast<ptrdiff_t>(first_)), first_ = 0;
    return term;
  }

private:
  std::vector<Term> terms_;
  size_t first_ = 0;  // those before it are gone
};

}  // namespace vortex::hvm
