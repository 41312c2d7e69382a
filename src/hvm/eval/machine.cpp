#include "hvm/eval/natives.h"
#include "hvm/eval/reducer.h"

#include <sys/mman.h>

namespace vortex::hvm {

VORTEX_HVM_INLINE static uint32_t compute(uint32_t op, uint32_t left, uint32_t right) {
  switch (static_cast<Operator>(op)) {
  case Operator::Add: return left + right;
  case Operator::Sub: return left - right;
  default: return evaluate(static_cast<Operator>(op), left, right);
  }
}

static constexpr uint32_t key(uint32_t frame, uint32_t tag) { return frame << 7 | tag; }

/// Frames that a superposition passes together with those below, and their words.
static constexpr bool isLiftedFrame(uint32_t frame) {
  return frame == OnArg || frame == OnMat || frame == OnOp2 || frame == OnOp2Num || frame == OnEqlLeft ||
         frame == OnAnd || frame == OnOr;
}
static constexpr ptrdiff_t liftedWords(uint32_t frame) { return frame == OnArg || frame == OnOp2Num ? 1 : 2; }

// Safe points: what is alive is on the stack or in `cur`. Every way round the loops of run() passes one, so that what is taken from the heap and
// pushed between two of them is bounded by the rule or the code that runs. Where the loops only use up what exists, a point that waits for the
// heap is enough.
#define STOP_UNLESS(goesOn)                                                                                            \
  if (!(goesOn)) {                                                                                                     \
    result = cur;                                                                                                      \
    return Machine::Outcome::Stopped;                                                                                  \
  }
#define SAFE_POINT                                                                                                     \
  if (__builtin_expect(needsAttention(), 0)) {                                                                         \
    STOP_UNLESS(safePoint(cur))                                                                                        \
  }
#define ROOM_POINT                                                                                                     \
  if (__builtin_expect(needsCollection(), 0)) {                                                                        \
    STOP_UNLESS(safePoint(cur))                                                                                        \
  }
// The same for a value that meets a frame which another thread may want, or which may have become another one meanwhile.
#define ROOM_POINT_OF_FRAME                                                                                            \
  if (__builtin_expect(needsCollection(), 0)) {                                                                        \
    const Term seenValue = cur, seenTop = sp[-1];                                                                      \
    STOP_UNLESS(safePoint(cur))                                                                                        \
    if (cur != seenValue || sp[-1] != seenTop)                                                                         \
      goto reduce;                                                                                                     \
  }

// The vocabulary of rules.def.
#define VALUE(term)                                                                                                    \
  {                                                                                                                    \
    cur = (term);                                                                                                      \
    goto value;                                                                                                        \
  }
#define REDUCE(term)                                                                                                   \
  {                                                                                                                    \
    cur = (term);                                                                                                      \
    goto reduce;                                                                                                       \
  }
#define FAIL(message)                                                                                                  \
  {                                                                                                                    \
    save();                                                                                                            \
    return machine.fail(message);                                                                                      \
  }
#define ARGUMENT(a) Term a = *--sp & ~kSub;
#define OPERAND(x)                                                                                                     \
  Term x = sp[-2];                                                                                                     \
  sp -= 2;
#define OPERANDS(x, y)                                                                                                 \
  Term x = sp[-3], y = sp[-2];                                                                                         \
  sp -= 3;
#define TOP_OPERAND sp[-2]
#define DISCARD --sp;
#define LET(x, term) Term x = term;
#define PUSH(term) push(term);
#define TERM(tag, ext, value) makeTerm(tag, ext, value)
#define EITHER(condition, first, second)                                                                               \
  if (condition)                                                                                                       \
  first else second
#define COMPARE(x)                                                                                                     \
  {                                                                                                                    \
    cur = compare(x, cur);                                                                                             \
    ROOM_POINT                                                                                                         \
    goto reduce;                                                                                                       \
  }
#define HEADER(op, part) uint32_t op = static_cast<uint32_t>(part(sp[-1]));
#define LEFT(n) Term n = number(numberOf(*--sp));
#define UNUSED(x) (void)x;
#define FRAME(header, x) push(x), push(makeTerm(header));
#define PUSH_ARGUMENT(x) push((x) | kSub);
#define FIELD(i) heap[locOf(cur) + (i)]
#define FIELD_OF(x, i) heap[locOf(x) + (i)]
#define LABEL extOf(cur)
#define SPLIT(x) SPLIT_BY(x, LABEL)
#define SPLIT_BY(x, label)                                                                                             \
  auto x##Sides = split(x, label);                                                                                     \
  Term x##0 = x##Sides.zero, x##1 = x##Sides.one;
#define AGAIN(...)                                                                                                     \
  again(cur, __VA_ARGS__);                                                                                             \
  ROOM_POINT
#define BIND(lambda, argument) bind(lambda, argument);
#define MATCH(m, isHit)                                                                                                \
  Term hit = heap[locOf(m)], miss = heap[locOf(m) + 1];                                                                \
  const bool isTaken = isHit;                                                                                          \
  release(locOf(m), tagOf(m) == Swi ? 3 : 2);                                                                          \
  if (isTaken) {                                                                                                       \
    uint32_t fields = isConstructor(tagOf(cur)) ? tagOf(cur) - C00 : 0;                                                \
    for (uint32_t i = fields; i-- > 0;)                                                                                \
      PUSH_ARGUMENT(FIELD(i))                                                                                          \
    release(locOf(cur), fields);                                                                                       \
    REDUCE(hit)                                                                                                        \
  }                                                                                                                    \
  PUSH_ARGUMENT(cur)                                                                                                   \
  REDUCE(miss)
#define RESOLVE(zero, one)                                                                                             \
  Term header = *--sp;                                                                                                 \
  bool isOne = tagOf(header) == OnDp1;                                                                                 \
  __atomic_store_n(&heap[locOf(header)], (isOne ? zero : one) | kSub, __ATOMIC_RELEASE);                               \
  cur = isOne ? one : zero;
#define COPIES(x)                                                                                                      \
  {                                                                                                                    \
    RESOLVE(x, x)                                                                                                      \
    goto value;                                                                                                        \
  }
#define SIDES_REDUCE(zero, one)                                                                                        \
  {                                                                                                                    \
    Term sideZero = zero, sideOne = one;                                                                               \
    release(locOf(cur), 2);                                                                                            \
    RESOLVE(sideZero, sideOne)                                                                                         \
    goto reduce;                                                                                                       \
  }
#define CELL_LABEL extOf(sp[-1])
#define DUP_FIELDS(count, dups)                                                                                        \
  {                                                                                                                    \
    auto sides = duplicateFields(cur, CELL_LABEL, count, dups);                                                        \
    RESOLVE(sides.zero, sides.one)                                                                                     \
    goto value;                                                                                                        \
  }
#define DOUBT_STUCK(x)                                                                                                 \
  if (isWaiting(tagOf(x)) && doubts())                                                                                 \
    return Machine::Outcome::Stopped;
// The term is final if it is stuck; as long as it is not, `kept` is what becomes of it.
#define FINAL_OR(x, ...)                                                                                               \
  if (isWaiting(tagOf(x))) {                                                                                           \
    if (machine.isOpen(x)) {                                                                                           \
      interactions -= kCounted;                                                                                        \
      __VA_ARGS__                                                                                                      \
    }                                                                                                                  \
    if (doubts())                                                                                                      \
      return Machine::Outcome::Stopped;                                                                                \
  }
#define UNLESS_OPEN(x, ...)                                                                                            \
  if (isWaiting(tagOf(x)) && machine.isOpen(x)) {                                                                      \
    __VA_ARGS__                                                                                                        \
  }
#define STUCK_PROJECTION                                                                                               \
  {                                                                                                                    \
    Term header = *--sp;                                                                                               \
    __atomic_store_n(&heap[locOf(header)], cur, __ATOMIC_RELEASE);                                                     \
    VALUE(makeTerm(tagOf(header) == OnDp0 ? Dp0 : Dp1, extOf(header), locOf(header)))                                  \
  }
// A stuck node's copy is reduced again: its head is a projection now.
#define DUP_FIELDS_REDUCE(count, dups)                                                                                 \
  {                                                                                                                    \
    auto sides = duplicateFields(cur, CELL_LABEL, count, dups);                                                        \
    RESOLVE(sides.zero, sides.one)                                                                                     \
    goto reduce;                                                                                                       \
  }
#define DUP_LAMBDA                                                                                                     \
  {                                                                                                                    \
    auto sides = duplicateLambda(cur, CELL_LABEL);                                                                     \
    RESOLVE(sides.zero, sides.one)                                                                                     \
    goto value;                                                                                                        \
  }
/// Reduces until the frame Base is on top. `goto`s between three states: reduce (a term in head position), run (code in head position) and
/// value (a value that the top frame waits for).
VORTEX_HVM_INLINE Machine::Outcome Reducer::run(Term& result) {
  const Code& code = machine.code_;
  const Op* op = nullptr;
  Term cur = result;
  push(makeTerm(Base));

reduce:
  switch (tagOf(cur)) {
#include "hvm/eval/reduce_term.inc"
  }

run:
  switch (op->kind) {
#include "hvm/eval/run_code.inc"
  }
  VORTEX_UNREACHABLE();

lift:
  lift(cur);
  ROOM_POINT
value: {
  Tag frame = isSub(sp[-1]) ? OnArg : tagOf(sp[-1]);
  switch (key(frame, tagOf(cur))) {
#define RULE(name, counted, frame, tag, ...)                                                                           \
  case key(frame, tag): {                                                                                              \
    if ((tag) == Sup && isLiftedFrame(frame) && isLiftable(sp[-1 - liftedWords(frame)]))                               \
      goto lift;                                                                                                       \
    interactions += counted;                                                                                           \
    __VA_ARGS__                                                                                                        \
  }
#define RULE_CONSTRUCTOR(name, counted, frame, ...)                                                                    \
  case key(frame, C00)... key(frame, C16): {                                                                           \
    interactions += counted;                                                                                           \
    __VA_ARGS__                                                                                                        \
  }
#define RULE_QUOTED(name, counted, frame, ...)                                                                         \
  case key(frame, Nam)... key(frame, Dry):                                                                             \
  case key(frame, Bjv)... key(frame, Bj1): {                                                                           \
    ROOM_POINT                                                                                                         \
    interactions += counted;                                                                                           \
    __VA_ARGS__                                                                                                        \
  }
#define RULE_DUP(name, counted, tag, ...)                                                                              \
  case key(OnDp0, tag):                                                                                                \
  case key(OnDp1, tag): {                                                                                              \
    [[maybe_unused]] constexpr uint64_t kCounted = counted;                                                            \
    interactions += counted;                                                                                           \
    __VA_ARGS__                                                                                                        \
  }
#define RULE_DUP_CONSTRUCTOR(name, counted, ...)                                                                       \
  case key(OnDp0, C00)... key(OnDp0, C16):                                                                             \
  case key(OnDp1, C00)... key(OnDp1, C16): {                                                                           \
    interactions += counted;                                                                                           \
    __VA_ARGS__                                                                                                        \
  }
#define RULE_DUP_QUOTED(name, counted, ...)                                                                            \
  case key(OnDp0, Nam):                                                                                                \
  case key(OnDp1, Nam):                                                                                                \
  case key(OnDp0, Bjv)... key(OnDp0, Bj1):                                                                             \
  case key(OnDp1, Bjv)... key(OnDp1, Bj1): {                                                                           \
    interactions += counted;                                                                                           \
    __VA_ARGS__                                                                                                        \
  }
#define RULE_OTHER(name, counted, frame, ...)
#include "hvm/eval/closures.inc"
#include "hvm/eval/rules.def"
#undef RULE_OTHER
  default:
    ROOM_POINT_OF_FRAME
    if (isPartOfDuplicate(tagOf(cur)))
      VALUE(plain(cur))
    switch (frame) {
#undef RULE
#undef RULE_CONSTRUCTOR
#undef RULE_QUOTED
#undef RULE_DUP
#undef RULE_DUP_CONSTRUCTOR
#undef RULE_DUP_QUOTED
#define RULE(name, counted, frame, tag, ...)
#define RULE_CONSTRUCTOR(name, counted, frame, ...)
#define RULE_QUOTED(name, counted, frame, ...)
#define RULE_DUP(name, counted, tag, ...)
#define RULE_DUP_CONSTRUCTOR(name, counted, ...)
#define RULE_DUP_QUOTED(name, counted, ...)
#define RULE_OTHER(name, counted, frame, ...)                                                                          \
  case frame: {                                                                                                        \
    [[maybe_unused]] constexpr uint64_t kCounted = counted;                                                            \
    interactions += counted;                                                                                           \
    __VA_ARGS__                                                                                                        \
  }
#include "hvm/eval/other_frames.inc"
#include "hvm/eval/rules.def"
    default: VORTEX_UNREACHABLE("no frame with tag %u", frame);
    }
  }
}
}

#undef RULE_OTHER
Machine::Outcome Machine::reduce(Term& term) {
  Reducer reducer(*this);
  return reducer.run(term);
}

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
  const Loc body = allocate(1);
  Term* const cell = heap_.words() + locOf(lambda);
  heap_.words()[body] = *cell;
  __atomic_store_n(cell, makeTerm(Var, mark, body) | kSub, __ATOMIC_RELEASE);
  return makeTerm(Lam, extOf(lambda) | (mark & kEntered), body);
}

/// Follows the head of the stuck term to what it waits for.
bool Machine::waitsForOpen(Term term) const {
  const Term* heap = heap_.words();
  Term seen = 0;
  uint64_t steps = 0;
  for (;;) {
    Tag tag = tagOf(term);
    uint32_t field = 0;
    if (tag == Var || tag == Dp0 || tag == Dp1) {
      Term cell = __atomic_load_n(heap + locOf(term), __ATOMIC_ACQUIRE);
      if (isSub(cell)) {
        term = cell & ~kSub;
        continue;
      }
      if (tag == Var)
        return !isEntered(term);
      if (!isAlone_)
        return true;  // its value may be another one in a moment: who is alone looks again
      if (isBusy(cell) || term == seen)
        return false;  // it waits for itself
      ++steps;
      if ((steps & (steps - 1)) == 0)
        seen = term;
      term = tagOf(cell) == Stk ? heap[locOf(cell)] : cell;
      continue;
    }
    if (tag == Eql || tag == Pri)
      return true;  // no other comparison or native is stuck
    if (tag == App || tag == Op2) {
      const Tag left = tagOf(heap[locOf(term)]);
      field = left == Num || left == Fun || left == Mat || left == Swi || left == Use;
    } else if (tag != And && tag != Or && tag != Dsu && tag != Ddu) {
      return false;
    }
    term = heap[locOf(term) + field];
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
