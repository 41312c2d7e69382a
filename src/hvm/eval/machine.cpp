#include "hvm/eval/reducer.h"

#include <sys/mman.h>

namespace vortex::hvm {

Term Machine::expose(Term function, Term variable) {
  Reducer reducer(*this);
  Term exposed = reducer.expose(function, variable);
  reducer.save();
  return exposed;
}

Term Machine::enterLambda(Term lambda) {
  const uint32_t mark = calls_.empty() ? kEntered : calls_.back();
  if (mark == 0 || (extOf(lambda) & (kErasing | kEntered)))
    return lambda;
  openCell_ = 0;
  const Loc body = allocate(1);
  Term* const cell = heap_.words() + locOf(lambda);
  heap_.words()[body] = *cell;
  __atomic_store_n(cell, makeTerm(Var, mark, body) | kSub, __ATOMIC_RELEASE);
  return makeTerm(Lam, extOf(lambda) | (mark & kEntered), body);
}

/// Follows the head of the stuck term to what it waits for. Terms are asked for from the inside out, so the way ends where the last one began, as long
/// as nothing has happened since.
bool Machine::waitsForOpen(Term term) {
  const Term* heap = heap_.words();
  Loc firstCell = 0;
  Term seen = 0;
  uint64_t steps = 0;
  for (;;) {
    Tag tag = tagOf(term);
    if (tag == Var || tag == Dp0 || tag == Dp1) {
      Term cell = __atomic_load_n(heap + locOf(term), __ATOMIC_ACQUIRE);
      if (isSub(cell)) {
        term = cell & ~kSub;
        continue;
      }
      if (tag == Var && isEntered(term))
        return false;
      if (tag != Var && !isAlone_)
        return true;  // its value may be another one in a moment: who is alone looks again
      if (tag != Var && (isBusy(cell) || term == seen))
        return takesBusyAsOpen_;  // it waits for itself
      if (tag == Var || (locOf(term) == openCell_ && openAt_ == interactions_)) {
        openCell_ = firstCell, openAt_ = interactions_;
        return true;
      }
      if (firstCell == 0)
        firstCell = locOf(term);
      ++steps;
      if ((steps & (steps - 1)) == 0)
        seen = term;
      term = tagOf(cell) == Stk ? heap[locOf(cell)] : cell;
      continue;
    }
    // No others of these are stuck. (Another thread may have made the variable final meanwhile; then there is something to do.)
    if (tag == Eql || tag == Pri || (tag == App && tagOf(heap[locOf(term)]) == Use))
      return true;
    // It may have been bound since the term was stuck, and a collection have put the value there: who is alone looks again.
    if (tag != App && tag != Op2 && tag != And && tag != Or && tag != Dsu && tag != Ddu)
      return !isAlone_;
    term = heap[locOf(term) + awaitedField(tag, tagOf(heap[locOf(term)]))];
  }
}

/// Follows the head of the term that was stuck to what it waited for. True: there is something to do, if only to look again.
bool Machine::comesUnstuck(Term term) const {
  const Term* heap = heap_.words();
  Term seen = 0;
  for (uint64_t steps = 1;; ++steps) {
    switch (tagOf(term)) {
    case Var:
    case Dp0:
    case Dp1: {
      const Term cell = heap[locOf(term)];
      if (!isSub(cell) && (tagOf(term) == Var || isBusy(cell) || term == seen))
        return false;
      if ((steps & (steps - 1)) == 0)
        seen = term;
      term = isSub(cell) ? cell & ~kSub : tagOf(cell) == Stk ? heap[locOf(cell)] : cell;
      break;
    }
    case App:
    case Op2:
    case And:
    case Or:
    case Dsu:
    case Ddu: term = heap[locOf(term) + awaitedField(tagOf(term), tagOf(heap[locOf(term)]))]; break;
    default: return true;
    }
  }
}

std::pair<Term, Term> Machine::split(Term term, uint32_t label) {
  Loc cell = allocate(1);
  heap_.words()[cell] = term;
  return {makeTerm(Dp0, label, cell), makeTerm(Dp1, label, cell)};
}

Loc Machine::allocate(uint64_t count) {
  Reducer reducer(*this);
  Loc at = reducer.take(count);
  reducer.save();
  return at;
}

Term Machine::node(uint32_t tag, uint32_t ext, std::initializer_list<Term> fields) {
  Loc at = allocate(fields.size());
  std::copy(fields.begin(), fields.end(), heap_.words() + at);
  return makeTerm(tag, ext, at);
}

void Machine::markStack(Heap& heap) const {
  static constexpr ptrdiff_t kAhead = 16;
  for (Term* word = stack_; word < sp_; ++word) {
    if (sp_ - word > kAhead)
      heap.announce(word[kAhead]);
    if (isSub(*word)) {
      Term argument = *word & ~kSub;
      heap.mark(&argument, code_);
      *word = argument | kSub;
    } else if (tagOf(*word) == OnDp0 || tagOf(*word) == OnDp1 || tagOf(*word) == OnOp2Forked ||
               tagOf(*word) == OnEqlForked) {
      heap.markCell(locOf(*word), code_);
    } else if (tagOf(*word) < kFrames) {
      heap.mark(word, code_);
    }
  }
}

Result<std::unique_ptr<Machine>> Machine::create(World& world, Heap& heap, const Code& code, uint32_t id,
                                                 uint64_t fuel) {
  std::unique_ptr<Machine> machine(new Machine(world, heap, code, id, fuel));
  // Between two safe points the nodes of the heap may go to the stack.
  const uint64_t limitWords = heap.limitBytes() / sizeof(Term);
  machine->stackLimit_ = limitWords + limitWords / 2 + (1 << 24);
  machine->stackStep_ = std::max<uint64_t>(limitWords / 16, 1);
  void* stack = reserveMemory(machine->stackLimit_ * sizeof(Term));
  if (!stack)
    return Error{"Error: cannot reserve address space for the stack (--memory, ulimit -v)"};
  machine->stack_ = machine->sp_ = static_cast<Term*>(stack);
  machine->watchStack();
  return machine;
}

Machine::~Machine() {
  if (stack_)
    munmap(stack_, stackLimit_ * sizeof(Term));
}

}  // namespace vortex::hvm
