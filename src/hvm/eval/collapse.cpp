// Enumeration: superpositions are pulled to the top, one step at a time, in the order of a queue with 64 priorities.
#include "hvm/eval/evaluation.h"
#include "hvm/eval/lifted.h"

#include <bit>

namespace vortex::hvm {

Result<void> Evaluation::collapseMain(uint32_t definition, uint64_t limit, const std::function<void(Term)>& print) {
  Result<void> done = collapseRoot(definition, limit, print);
  while (!done && beginAgain())  // its first lines are those that are printed already
    done = collapseRoot(definition, limit, print);
  return done;
}

/// Where there are many entries, what the next ones refer to has left the cache.
inline void Evaluation::fetchAhead(Entries& entries) const {
  static constexpr size_t kFar = 16, kNear = 8, kLastWord = 7;
  const Term* heap = heap_->words();
  if (entries.size() <= kFar)
    return;
  const Term* far = heap + locOf(entries[kFar]);
  const Term near = entries[kNear];
  __builtin_prefetch(far), __builtin_prefetch(far + kLastWord);
  if (isLifted(tagOf(near))) {
    __builtin_prefetch(heap + locOf(heap[liftedSide(near)]));
    // Operands wait for cells of the piece that their own piece was part of.
    const Term* piece = heap + locOf(near);
    __builtin_prefetch(heap + locOf(piece[kLiftedOperands]));
    __builtin_prefetch(heap + locOf(piece[kLiftedOperands - 1 + liftedCount(*piece)]));
  }
}

Result<void> Evaluation::collapseRoot(uint32_t definition, uint64_t limit, const std::function<void(Term)>& print) {
  levels_.clear(), depth_ = 0;
  queue_.fill({});
  first().takeStuckAsFinal(true);  // the order is part of the result
  queue_[0].push(makeTerm(Ref, definition));
  uint64_t waiting = 1;  // a bit for each key that has entries
  for (uint64_t printed = 0; printed < limit && waiting != 0;) {
    size_t key = static_cast<size_t>(std::countr_zero(waiting));
    fetchAhead(queue_[key]);
    Term term = queue_[key].pop();
    if (queue_[key].empty())
      waiting &= ~(uint64_t(1) << key);
    for (bool goesOn = true; goesOn;) {
      uint64_t before = 0;
      do {  // again if what was found free may have been bound since
        before = first().interactions();
        if (!collapse(term))
          return failure();
      } while (hasOpenVariables() && before != first().interactions());
      Loc at = locOf(term);
      goesOn = tagOf(term) == Inc;
      if (goesOn) {
        key = key > 0 ? key - 1 : 0;
        term = heap_->words()[at];
        first().release(at, 1);
      } else if (tagOf(term) == Sup) {
        const size_t next = std::min(key + 1, queue_.size() - 1);
        queue_[next].push(heap_->words()[at]);
        queue_[next].push(heap_->words()[at + 1]);
        first().release(at, 2);
        waiting |= uint64_t(1) << next;
      } else if (isOutOfFuel(first().interactions())) {
        return failure();
      } else if (tagOf(term) != Era) {
        if (++printed > printed_)
          printed_ = printed, print(term);
      }
    }
  }
  return {};
}

bool Evaluation::collapse(Term& term) {
  for (;;) {
    Machine::Outcome outcome = first().reduce(term);
    if (outcome == Machine::Outcome::Failed)
      stop(first().error());
    if (outcome != Machine::Outcome::Value)
      return false;
    if (levels_.empty() && (tagOf(term) == Sup || tagOf(term) == Inc || tagOf(term) == Era))
      return true;
    if (descend(term))
      continue;
    if (!ascend(term))
      return !stopped_;
  }
}

static uint32_t collapsedFields(Tag tag) {
  switch (tag) {
  case App:
  case Dry:
  case Mat:
  case Swi:
  case Op2:
  case Eql:
  case And:
  case Or: return 2;
  case Dsu:
  case Ddu: return 3;
  case Use:
  case Lam:
  case Pri: return 1;
  default: return isConstructor(tag) ? tag - C00 : 0;
  }
}

/// Levels count as memory: a collection is due whenever they have grown by a sixteenth of it.
void Evaluation::enterLevel(Level level) {
  levels_.push_back(level);
  if (levels_.size() < watchedLevels_)
    return;
  watchedLevels_ = levels_.size() + heap_->limitBytes() / 16 / sizeof(Level);
  heap_->requestCollection();
}

/// Goes to the first field of the value, if it has one that is to be collapsed.
bool Evaluation::descend(Term& term) {
  Term* heap = heap_->words();
  uint32_t depth = depth_ + 1;
  if (tagOf(term) == Fun)
    term = first().expose(term, makeTerm(Bjv, 0, depth));
  uint32_t fields = collapsedFields(tagOf(term));
  if (fields == 0)
    return false;
  Loc at = locOf(term);
  if (tagOf(term) == Lam) {
    Term body = heap[at];
    if (!(extOf(term) & kErasing))
      heap[at] = makeTerm(Bjv, 0, depth) | kSub;
    enterLevel({number(0), 0, 0, -1});
    ++depth_;
    term = body;
    return true;
  }
  enterLevel({term, 0, fields, -1});
  term = heap[at];
  heap[at] = number(0);
  return true;
}

/// `term` is collapsed: hands it to the node above. True: there is a further field to collapse, in `term`; false: `term` is the whole result, or
/// the run stops.
bool Evaluation::ascend(Term& term) {
  Term* heap = heap_->words();
  while (!levels_.empty()) {
    if (first().needsCollection() && !safePoint(first(), term))
      return false;
    Level& level = levels_.back();
    Loc at = locOf(level.node);
    Tag tag = tagOf(term);
    if (level.count == 0) {
      --depth_;
      if (tag == Sup || tag == Inc)
        for (uint32_t i = 0; i < (tag == Sup ? 2u : 1u); ++i)
          heap[locOf(term) + i] = first().node(Lam, kErasing, {heap[locOf(term) + i]});
      else if (tag != Era)
        term = first().node(Lam, kErasing, {term});
      levels_.pop_back();
      continue;
    }
    if (tag == Era) {
      levels_.pop_back();
      continue;
    }
    if (tag == Inc) {  // marks inside a node are dropped
      term = heap[locOf(term)];
      return true;
    }
    heap[at + level.index] = term;
    if (tag == Sup && level.sup < 0)
      level.sup = static_cast<int>(level.index);
    if (++level.index < level.count) {
      term = heap[at + level.index];
      heap[at + level.index] = number(0);
      return true;
    }
    term = level.sup < 0 ? level.node : lift(level);
    levels_.pop_back();
  }
  return false;
}

/// &L{a,b} in a field: the superposition of two nodes with a and b there; the other fields are duplicated under L.
Term Evaluation::lift(const Level& level) {
  Term* heap = heap_->words();
  Loc at = locOf(level.node);
  uint32_t cells = level.count + (tagOf(level.node) == Swi);
  Term sup = heap[at + level.sup];
  Loc copy = first().allocate(cells);
  for (uint32_t i = 0; i < cells; ++i) {
    std::pair<Term, Term> sides{heap[at + i], heap[at + i]};
    if (i == static_cast<uint32_t>(level.sup))
      sides = {heap[locOf(sup)], heap[locOf(sup) + 1]};
    else if (i < level.count)
      sides = first().split(heap[at + i], extOf(sup));
    heap[at + i] = sides.first, heap[copy + i] = sides.second;
  }
  heap[locOf(sup)] = level.node;
  heap[locOf(sup) + 1] = (level.node & ~kValueMask) | copy;
  return sup;
}

}  // namespace vortex::hvm
