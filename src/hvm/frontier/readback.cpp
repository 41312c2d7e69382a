#include "hvm/frontier/readback.h"

#include "hvm/frontier/net.h"

namespace vortex::hvm::frontier {
namespace {

class Search {
public:
  Search(const std::vector<Term>& heap, const std::vector<uint64_t>& definitions)
      : heap_(heap), definitions_(definitions), isVisited_(heap.size()) {}

  bool run() {
    visit(0);
    while (!open_.empty()) {
      const Term term = resolve(heap_[open_.back()]);
      open_.pop_back();
      if (isRedex(term))
        return true;
      for (uint32_t i = 0; i < fieldsOf(term); ++i)
        visit(locOf(term) + i);
      if (isProjection(term))
        visit(locOf(term));
    }
    return false;
  }

private:
  static bool isProjection(Term term) { return tagOf(term) == Dp0 || tagOf(term) == Dp1; }
  /// Without effect on the number of steps: chains of substitutions have no circles, as each was a term of its own.
  Term resolve(Term term) const {
    term &= ~kSub;
    while ((tagOf(term) == Var || isProjection(term)) && isSub(heap_[locOf(term)]))
      term = heap_[locOf(term)] & ~kSub;
    return term;
  }
  Tag field(Term term, uint32_t index) const { return tagOf(resolve(heap_[locOf(term) + index])); }
  static bool distributes(Tag tag) { return tag == Era || tag == Sup; }

  bool isRedex(Term term) const {
    switch (tagOf(term)) {
    case Ref: return definitions_[3 * extOf(term) + 1] != 0xffffffff;
    case Dp0:
    case Dp1: {
      const Tag value = tagOf(resolve(heap_[locOf(term)]));
      return value == Lam || value == Sup || (value >= Era && value <= Use);
    }
    case App: {
      const Tag head = field(term, 0), argument = field(term, 1);
      if (head == Mat || head == Swi)
        return distributes(argument) || argument == Num || isConstructor(argument);
      return head == Lam || head == Use || distributes(head);
    }
    case Op2: {
      const Tag left = field(term, 0), right = field(term, 1);
      return distributes(left) || (left == Num && (right == Num || distributes(right)));
    }
    default: return false;
    }
  }

  void visit(Loc loc) {
    if (!isVisited_[loc])
      isVisited_[loc] = true, open_.push_back(loc);
  }

  const std::vector<Term>& heap_;
  const std::vector<uint64_t>& definitions_;
  std::vector<bool> isVisited_;
  std::vector<Loc> open_;
};

}  // namespace

bool hasRedex(const std::vector<Term>& heap, const std::vector<uint64_t>& definitions) {
  return Search(heap, definitions).run();
}

}  // namespace vortex::hvm::frontier
