#pragma once

#include "hvm/eval/heap.h"

namespace vortex::hvm {

enum class Naming : uint8_t {
  ByAppearance,  // strong normal forms: binders are named as they appear, duplications follow the term
  ByDepth,       // collapsed terms: the outermost lambda is `a`
};

/// The term as text, without recursion. Cells that hold a substitution count as what they hold.
std::string printTerm(const Term* heap, const Code& code, Term term, Naming naming);

}  // namespace vortex::hvm
