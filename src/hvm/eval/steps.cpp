// The reducer's loop: steps that call each other.
//
// A step is a function that ends with a call of the next one in its own place (musttail), with what all of them work on in its parameters, which are
// registers. In one function with labels for all of this, a compiler keeps that in memory.
#include "hvm/eval/natives.h"
#include "hvm/eval/reducer.h"

namespace vortex::hvm {

VORTEX_HVM_INLINE static uint32_t compute(uint32_t op, uint32_t left, uint32_t right) {
  switch (static_cast<Operator>(op)) {
  case Operator::Add: return left + right;
  case Operator::Sub: return left - right;
  default: return evaluate(static_cast<Operator>(op), left, right);
  }
}

static constexpr uint32_t kTags = kFrames;      // of terms
static constexpr uint32_t kOthers = kTags - 1;  // in rules: all tags that have none for the frame
static_assert(Fut < kOthers);
static constexpr uint32_t key(uint32_t frame, uint32_t tag) { return (frame - kFrames) * kTags + tag; }

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
  if (!(goesOn))                                                                                                       \
    return Next::Stopped;
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
      return Next::Reduce;                                                                                             \
  }

// The vocabulary of rules.def.
#define VALUE(term)                                                                                                    \
  {                                                                                                                    \
    cur = (term);                                                                                                      \
    return Next::Value;                                                                                                \
  }
#define REDUCE(term)                                                                                                   \
  {                                                                                                                    \
    cur = (term);                                                                                                      \
    return Next::Reduce;                                                                                               \
  }
#define FAIL(message)                                                                                                  \
  {                                                                                                                    \
    save();                                                                                                            \
    machine.fail(message);                                                                                             \
    return Next::Failed;                                                                                               \
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
    return Next::Reduce;                                                                                               \
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
    return Next::Value;                                                                                                \
  }
#define SIDES_REDUCE(zero, one)                                                                                        \
  {                                                                                                                    \
    Term sideZero = zero, sideOne = one;                                                                               \
    release(locOf(cur), 2);                                                                                            \
    RESOLVE(sideZero, sideOne)                                                                                         \
    return Next::Reduce;                                                                                               \
  }
#define CELL_LABEL extOf(sp[-1])
#define DUP_FIELDS(count, dups)                                                                                        \
  {                                                                                                                    \
    auto sides = duplicateFields(cur, CELL_LABEL, count, dups);                                                        \
    RESOLVE(sides.zero, sides.one)                                                                                     \
    return Next::Value;                                                                                                \
  }
#define DOUBT_STUCK(x)                                                                                                 \
  if (isWaiting(tagOf(x)) && doubts())                                                                                 \
    return Next::Stopped;
// The term is final if it is stuck; as long as it is not, `kept` is what becomes of it.
#define FINAL_OR(x, ...)                                                                                               \
  if (isWaiting(tagOf(x))) {                                                                                           \
    interactions -= kCounted;                                                                                          \
    if (machine.isOpen(x)) {                                                                                           \
      __VA_ARGS__                                                                                                      \
    }                                                                                                                  \
    interactions += kCounted;                                                                                          \
    if (doubts())                                                                                                      \
      return Next::Stopped;                                                                                            \
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
// A stuck node's copy is reduced again: its head is a projection now, of a term that is known to be stuck.
#define DUP_FIELDS_REDUCE(count, dups)                                                                                 \
  {                                                                                                                    \
    auto sides = duplicateFields(cur, CELL_LABEL, count, dups);                                                        \
    RESOLVE(sides.zero, sides.one)                                                                                     \
    if (const Term stuck = enterStuckCopy(cur))                                                                        \
      VALUE(stuck)                                                                                                     \
    return Next::Reduce;                                                                                               \
  }
#define DUP_LAMBDA                                                                                                     \
  {                                                                                                                    \
    auto sides = duplicateLambda(cur, CELL_LABEL);                                                                     \
    RESOLVE(sides.zero, sides.one)                                                                                     \
    return Next::Value;                                                                                                \
  }
#define STATE Machine &machine, Term *heap, Term *sp, Term cur, const Op *op
typedef Machine::Outcome (*Step)(STATE) __attribute__((preserve_none));

struct Steps : Reducer {
  enum class Next : uint8_t {
    Reduce,  // `cur`, a term in head position
    Run,     // `op`, code in head position
    Select,  // the case of the match `op` for `cur`
    Value,   // `cur` is a value that the top frame waits for
    Lift,    // `cur`, a superposition, passes the frames
    Await,   // `cur`, a projection, waits for its cell
    Attend,  // a safe point before `cur`, a projection, takes what its cell holds
    Done,
    Failed,
    Stopped,
  };
  Term cur;
  const Op* op;
  const Code& code;

  VORTEX_HVM_INLINE Steps(Machine& machine, Term* heap, Term* top, Term current, const Op* operation)
      : Reducer(machine, heap, top), cur(current), op(operation), code(machine.code_) {}

  template <uint32_t T> VORTEX_HVM_INLINE Next reduceTerm() {
    switch (T) {
#include "hvm/eval/reduce_term.inc"
    }
  }
  template <OpKind K> VORTEX_HVM_INLINE Next runCode() {
    switch (K) {
#include "hvm/eval/run_code.inc"
    }
    VORTEX_UNREACHABLE();
  }
  VORTEX_HVM_INLINE Next selectCase() {
    bool isNumber = tagOf(cur) == Num;
    uint32_t sought = isNumber ? numberOf(cur) : extOf(cur);
    for (;;) {
      ++interactions;
      if (op->isSwitch == isNumber && op->ext == sought) {
        uint32_t fields = isNumber ? 0 : tagOf(cur) - C00;
        for (uint32_t i = fields; i-- > 0;)
          PUSH_ARGUMENT(FIELD(i))
        release(locOf(cur), fields);
        op = &ops[op->a];
        return Next::Run;
      }
      op = &ops[op->b];
      if (op->kind != OpKind::Match)
        break;
    }
    PUSH_ARGUMENT(cur)
    return Next::Run;
  }
  VORTEX_HVM_INLINE Next liftSuperposition() {
    lift(cur);
    ROOM_POINT
    return Next::Value;
  }

  /// What the cell of the projection `cur` holds is reduced for it.
  VORTEX_HVM_INLINE Next takeCell(Term cell) {
    const bool isValue = isPlainValue(tagOf(cell));
    if ((!isValue || isShared) && !exchange(locOf(cur), cell, makeTerm(Busy, machine.id_)))
      return Next::Reduce;
    static_assert(OnDp1 - Dp1 == OnDp0 - Dp0);
    push(cur + makeTerm(OnDp0 - Dp0));
    cur = cell;
    if (isValue)
      return Next::Value;
    return Next::Reduce;
  }
  VORTEX_HVM_INLINE Next attend() {
    const Term projection = cur;
    STOP_UNLESS(safePoint(cur))
    if (cur != projection)  // another thread has resolved it meanwhile, and a collection has put the value here
      return Next::Reduce;
    // A collection replaces what the cell holds, never the cell.
    const Term cell = __atomic_load_n(&heap[locOf(cur)], __ATOMIC_ACQUIRE);
    if (isSub(cell) || tagOf(cell) == Busy || tagOf(cell) == Stk)
      return Next::Reduce;
    return takeCell(cell);
  }
  VORTEX_HVM_INLINE Next awaitBusy() {
    const Term cell = __atomic_load_n(&heap[locOf(cur)], __ATOMIC_ACQUIRE);
    if (!isBusy(cell))
      return Next::Reduce;
    if (extOf(cell) == machine.id_) {  // a cyclic net, unless another thread's operand is reduced here
      if (isShared && meetsCircle())
        return Next::Stopped;
      return Next::Value;
    }
    const World::Wait wait = awaitCell(cur);
    if (wait == World::Wait::Retry)
      return Next::Reduce;
    if (wait == World::Wait::Stuck)
      return Next::Value;
    return Next::Stopped;
  }

  VORTEX_HVM_INLINE Next callNative() {
    save();
    Term term = cur;
    const NativeStep step = nativeStep(machine, term);
    cur = term;
    load();
    if (step == NativeStep::Failed)  // without an error of the machine the world has stopped the run
      return machine.error_.empty() ? Next::Stopped : Next::Failed;
    if (step == NativeStep::Reduce)
      return Next::Reduce;
    return Next::Value;
  }

  // What closures.inc says.
  VORTEX_HVM_INLINE Next enterFunction() {
    ROOM_POINT
    const Entry& entry = code.entries[extOf(cur)];
    enter(entry, heap + locOf(cur));
    release(locOf(cur), entry.count);
    op = &ops[entry.op];
    return Next::Run;
  }
  VORTEX_HVM_INLINE Next enterMatch() {
    SAFE_POINT
    const Entry& entry = code.entries[extOf(*--sp)];
    sp -= entry.count;
    enter(entry, sp);
    op = &ops[entry.op];
    return Next::Select;
  }
  VORTEX_HVM_INLINE Next enterOperand() {
    ROOM_POINT_OF_FRAME
    const Term header = *--sp;
    const Entry& entry = code.entries[extOf(header)];
    sp -= entry.count;
    enter(entry, sp);
    push(makeTerm(OnOp2Num, static_cast<uint32_t>(locOf(header)), numberOf(cur)));
    op = &ops[entry.op];
    return Next::Run;
  }
  VORTEX_HVM_INLINE Next duplicateCode() {
    if (ops[code.entries[extOf(cur)].op].kind != OpKind::Lam)
      VALUE(expose(cur, 0))
    ++interactions;
    DUP_LAMBDA
  }
  VORTEX_HVM_INLINE Next duplicateVariables() {
    if (LABEL != CELL_LABEL)
      VALUE(plain(cur))
    ++interactions;
    const Loc first = locOf(cur);
    RESOLVE(makeTerm(Var, 0, first), makeTerm(Var, 0, first + 1))
    return Next::Reduce;
  }
  VORTEX_HVM_INLINE Next duplicateProjected() {
    const Loc cell = takeNext(1);  // the other side follows this chain of cells later
    heap[cell] = projectionIn(cur);
    const uint32_t label = CELL_LABEL;
    RESOLVE(makeTerm(Lm0, label, cell), makeTerm(Lm1, label, cell))
    return Next::Value;
  }

  /// What happens to values of a kind that meet a frame of a kind; rules of several kinds have the first one's.
  template <uint32_t K> using Key = std::integral_constant<uint32_t, K>;
#define RULE(name, counted, frame, tag, ...)                                                                           \
  VORTEX_HVM_INLINE Next meet(Key<key(frame, tag)>) {                                                                  \
    if ((tag) == Sup && isLiftedFrame(frame) && isLiftable(sp[-1 - liftedWords(frame)]))                               \
      return Next::Lift;                                                                                               \
    interactions += counted;                                                                                           \
    __VA_ARGS__                                                                                                        \
  }
#define RULE_CONSTRUCTOR(name, counted, frame, ...)                                                                    \
  VORTEX_HVM_INLINE Next meet(Key<key(frame, C00)>) {                                                                  \
    interactions += counted;                                                                                           \
    __VA_ARGS__                                                                                                        \
  }
#define RULE_QUOTED(name, counted, frame, ...)                                                                         \
  VORTEX_HVM_INLINE Next meet(Key<key(frame, Nam)>) {                                                                  \
    ROOM_POINT                                                                                                         \
    interactions += counted;                                                                                           \
    __VA_ARGS__                                                                                                        \
  }
#define RULE_DUP(name, counted, tag, ...)                                                                              \
  VORTEX_HVM_INLINE Next meet(Key<key(OnDp0, tag)>) {                                                                  \
    [[maybe_unused]] constexpr uint64_t kCounted = counted;                                                            \
    interactions += counted;                                                                                           \
    __VA_ARGS__                                                                                                        \
  }
#define RULE_DUP_CONSTRUCTOR(name, counted, ...) RULE_DUP(name, counted, C00, __VA_ARGS__)
#define RULE_DUP_QUOTED(name, counted, ...) RULE_DUP(name, counted, Nam, __VA_ARGS__)
#define RULE_OTHER(name, counted, frame, ...)                                                                          \
  VORTEX_HVM_INLINE Next meet(Key<key(frame, kOthers)>) {                                                              \
    [[maybe_unused]] constexpr uint64_t kCounted = counted;                                                            \
    interactions += counted;                                                                                           \
    __VA_ARGS__                                                                                                        \
  }
#include "hvm/eval/closures.inc"
#include "hvm/eval/other_frames.inc"
#include "hvm/eval/rules.def"
#undef RULE
#undef RULE_CONSTRUCTOR
#undef RULE_QUOTED
#undef RULE_DUP
#undef RULE_DUP_CONSTRUCTOR
#undef RULE_DUP_QUOTED
#undef RULE_OTHER
  template <uint32_t F> VORTEX_HVM_INLINE Next meetOther() {
    ROOM_POINT_OF_FRAME
    if (isPartOfDuplicate(tagOf(cur)))
      VALUE(plain(cur))
    return meet(Key<key(F, kOthers)>{});
  }

  // The steps.
  VORTEX_HVM_INLINE static Step stepOfTerm(Term term);
  VORTEX_HVM_INLINE static Step stepOfCode(const Op* op);
  VORTEX_HVM_INLINE static Step stepOfValue(Term top, Term value);
#define STEP(body)                                                                                                     \
  Steps at(machine, heap, sp, cur, op);                                                                                \
  switch (at.body) {                                                                                                   \
  case Next::Reduce: [[clang::musttail]] return stepOfTerm(at.cur)(machine, heap, at.sp, at.cur, at.op);               \
  case Next::Run: [[clang::musttail]] return stepOfCode(at.op)(machine, heap, at.sp, at.cur, at.op);                   \
  case Next::Select: [[clang::musttail]] return selectStep(machine, heap, at.sp, at.cur, at.op);                       \
  case Next::Value: [[clang::musttail]] return stepOfValue(at.sp[-1], at.cur)(machine, heap, at.sp, at.cur, at.op);    \
  case Next::Lift: [[clang::musttail]] return liftStep(machine, heap, at.sp, at.cur, at.op);                           \
  case Next::Await: [[clang::musttail]] return awaitStep(machine, heap, at.sp, at.cur, at.op);                         \
  case Next::Attend: [[clang::musttail]] return attendStep(machine, heap, at.sp, at.cur, at.op);                       \
  case Next::Done: machine.reduced_ = at.cur; return Machine::Outcome::Value;                                          \
  case Next::Stopped: machine.reduced_ = at.cur; return Machine::Outcome::Stopped;                                     \
  default: return Machine::Outcome::Failed;                                                                            \
  }
  template <uint32_t T> __attribute__((preserve_none)) static Machine::Outcome reduceStep(STATE) {
    STEP(reduceTerm<T>())
  }
  template <OpKind K> __attribute__((preserve_none)) static Machine::Outcome runStep(STATE) { STEP(runCode<K>()) }
  __attribute__((preserve_none)) static Machine::Outcome selectStep(STATE) { STEP(selectCase()) }
  __attribute__((preserve_none)) static Machine::Outcome liftStep(STATE) { STEP(liftSuperposition()) }
  __attribute__((preserve_none)) static Machine::Outcome awaitStep(STATE) { STEP(awaitBusy()) }
  __attribute__((preserve_none)) static Machine::Outcome attendStep(STATE) { STEP(attend()) }
  template <uint32_t F> __attribute__((preserve_none)) static Machine::Outcome otherStep(STATE) { STEP(meetOther<F>()) }
  template <uint32_t K> __attribute__((preserve_none)) static Machine::Outcome meetStep(STATE) { STEP(meet(Key<K>{})) }
};

using TermSteps = std::array<Step, kTags>;
using CodeSteps = std::array<Step, static_cast<size_t>(OpKind::Unscoped) + 1>;
static constexpr uint32_t kArgumentRow = Base + 1;
using ValueSteps = std::array<Step, (kArgumentRow + 1 - kFrames) * kTags>;

template <uint32_t... T> static constexpr TermSteps termSteps(std::integer_sequence<uint32_t, T...>) {
  return {&Steps::reduceStep<T>...};
}
template <size_t... K> static constexpr CodeSteps codeSteps(std::index_sequence<K...>) {
  return {&Steps::runStep<static_cast<OpKind>(K)>...};
}
static constexpr TermSteps kTermSteps = termSteps(std::make_integer_sequence<uint32_t, kTags>());
static constexpr CodeSteps kCodeSteps = codeSteps(std::make_index_sequence<CodeSteps{}.size()>());
static constexpr ValueSteps kValueSteps = [] {
  ValueSteps table{};
  auto setAll = [&](Step step, uint32_t frame, uint32_t from, uint32_t to) {
    for (uint32_t tag = from; tag <= to; ++tag)
      table[key(frame, tag)] = step;
  };
#define RULE(name, counted, frame, tag, ...) table[key(frame, tag)] = &Steps::meetStep<key(frame, tag)>;
#define RULE_CONSTRUCTOR(name, counted, frame, ...) setAll(&Steps::meetStep<key(frame, C00)>, frame, C00, C16);
#define RULE_QUOTED(name, counted, frame, ...)                                                                         \
  setAll(&Steps::meetStep<key(frame, Nam)>, frame, Nam, Dry);                                                          \
  setAll(&Steps::meetStep<key(frame, Nam)>, frame, Bjv, Bj1);
#define RULE_DUP(name, counted, tag, ...)                                                                              \
  table[key(OnDp0, tag)] = table[key(OnDp1, tag)] = &Steps::meetStep<key(OnDp0, tag)>;
#define RULE_DUP_CONSTRUCTOR(name, counted, ...)                                                                       \
  setAll(&Steps::meetStep<key(OnDp0, C00)>, OnDp0, C00, C16);                                                          \
  setAll(&Steps::meetStep<key(OnDp0, C00)>, OnDp1, C00, C16);
#define RULE_DUP_QUOTED(name, counted, ...)                                                                            \
  for (uint32_t frame : {OnDp0, OnDp1}) {                                                                              \
    setAll(&Steps::meetStep<key(OnDp0, Nam)>, frame, Nam, Dry);                                                        \
    setAll(&Steps::meetStep<key(OnDp0, Nam)>, frame, Bjv, Bj1);                                                        \
  }
#define RULE_OTHER(name, counted, frame, ...)                                                                          \
  for (uint32_t tag = 0; tag < kTags; ++tag)                                                                           \
    if (!table[key(frame, tag)])                                                                                       \
      table[key(frame, tag)] = &Steps::otherStep<frame>;
#include "hvm/eval/closures.inc"
#include "hvm/eval/other_frames.inc"
#include "hvm/eval/rules.def"
  for (uint32_t tag = 0; tag < kTags; ++tag)
    table[key(kArgumentRow, tag)] = table[key(OnArg, tag)];
  return table;
}();
static_assert(std::ranges::none_of(kValueSteps, [](Step step) { return step == nullptr; }));

// Neither has SUB. All words on the stack that have it are arguments: their row is the first that no tag has.
VORTEX_HVM_INLINE Step Steps::stepOfTerm(Term term) { return kTermSteps[term >> kTagShift]; }
VORTEX_HVM_INLINE Step Steps::stepOfCode(const Op* op) { return kCodeSteps[static_cast<size_t>(op->kind)]; }
VORTEX_HVM_INLINE Step Steps::stepOfValue(Term top, Term value) {
  const uint64_t row = std::min<uint64_t>(top >> kTagShift, kArgumentRow);
  return kValueSteps[(row - kFrames) * kTags + (value >> kTagShift)];
}

Machine::Outcome Machine::reduce(Term& term) {
  *sp_ = makeTerm(Base);
  const Outcome outcome = Steps::stepOfTerm(term)(*this, heap_.words(), sp_ + 1, term, nullptr);
  if (outcome != Outcome::Failed)
    term = reduced_;
  return outcome;
}

}  // namespace vortex::hvm
