// The state of a machine while it reduces, in registers. All functions are inlined so that nothing takes its address.
#pragma once

#include "hvm/eval/compare.h"
#include "hvm/eval/lifted.h"

namespace vortex::hvm {

#define VORTEX_HVM_INLINE [[gnu::always_inline]] inline

struct Reducer {
  Machine& machine;
  Term* heap;
  const Op* ops;
  const Term* items;
  Term* env;
  Term* sp;
  Loc &next, &end;
  uint64_t& interactions;
  const bool& isShared;

  VORTEX_HVM_INLINE explicit Reducer(Machine& m) : Reducer(m, m.heap_.words(), m.sp_) {}
  VORTEX_HVM_INLINE Reducer(Machine& m, Term* words, Term* top)
      : machine(m), heap(words), ops(m.code_.ops.data()), items(m.code_.items.data()), env(m.env_.data()), sp(top),
        next(m.region_.next), end(m.region_.end), interactions(m.interactions_), isShared(m.isShared_) {}
  VORTEX_HVM_INLINE void save() { machine.sp_ = sp; }
  VORTEX_HVM_INLINE void load() { sp = machine.sp_; }
  VORTEX_HVM_INLINE bool needsAttention() const {
    return machine.heap_.wantsEverybody() || machine.isAsked() || interactions > machine.fuel_ || needsCollection();
  }
  /// The heap or the stack has grown so much that a collection is due.
  VORTEX_HVM_INLINE bool needsCollection() const { return sp >= machine.stackEnd_; }

  VORTEX_HVM_INLINE void push(Term term) { *sp++ = term; }
  /// Words that nothing refers to any more; nodes have one reference, so whoever consumes one may give it back.
  VORTEX_HVM_INLINE void release(Loc at, uint64_t count) {
    if (count > 0 && count <= kRecycledWords)
      machine.recycled_[count - 1].push(at);
  }
  VORTEX_HVM_INLINE Loc take(uint64_t count) {
    if (count <= kRecycledWords)
      if (Loc at = machine.recycled_[count - 1].pop())
        return at;
    return takeNext(count);
  }
  /// What is taken one after the other lies side by side.
  VORTEX_HVM_INLINE Loc takeNext(uint64_t count) {
    if (__builtin_expect(next + count > end, 0))
      refill(count);
    Loc first = next;
    next += count;
    return first;
  }
  VORTEX_HVM_INLINE void refill(uint64_t count) { refillRegion(machine, machine.region_, count); }
  [[gnu::noinline]] static void refillRegion(Machine& machine, Region& region, uint64_t count) {
    machine.heap_.refill(region, count);
    if (machine.heap_.wantsEverybody())
      machine.stackEnd_ = machine.stack_;
  }

  template <typename... Fields> VORTEX_HVM_INLINE Term node(uint32_t tag, uint32_t ext, Fields... fields) {
    Loc at = take(sizeof...(fields));
    Term values[] = {fields...};
    for (size_t i = 0; i < sizeof...(fields); ++i)
      heap[at + i] = values[i];
    return makeTerm(tag, ext, at);
  }
  template <typename... Fields> VORTEX_HVM_INLINE void again(Term owner, Fields... fields) {
    Term values[] = {fields...};
    for (size_t i = 0; i < sizeof...(fields); ++i)
      heap[locOf(owner) + i] = values[i];
  }
  VORTEX_HVM_INLINE Term app(Term function, Term argument) { return node(App, 0, function, argument); }
  VORTEX_HVM_INLINE Term use(Term function) { return node(Use, 0, function); }
  VORTEX_HVM_INLINE Term dry(Term head, Term argument) { return node(Dry, 0, head, argument); }
  VORTEX_HVM_INLINE Term op2(uint32_t op, Term left, Term right) { return node(Op2, op, left, right); }
  struct Sides {
    Term zero, one;
  };
  VORTEX_HVM_INLINE Sides sidesOf(Loc cell, uint32_t label) {
    return {makeTerm(Dp0, label, cell), makeTerm(Dp1, label, cell)};
  }
  VORTEX_HVM_INLINE Sides split(Term term, uint32_t label) {
    Loc cell = take(1);
    heap[cell] = term;
    return sidesOf(cell, label);
  }
  VORTEX_HVM_INLINE void bind(Term lambda, Term argument) {
    if (extOf(lambda) & kErasing)
      release(locOf(lambda), 1);
    else
      __atomic_store_n(&heap[locOf(lambda)], argument | kSub, __ATOMIC_RELEASE);
  }

  /// Takes what a dup cell holds, or fails because another thread was faster.
  VORTEX_HVM_INLINE bool exchange(Loc cell, Term expected, Term desired) {
    if (!isShared)
      return heap[cell] = desired, true;
    return __atomic_compare_exchange_n(&heap[cell], &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  }

  /// What the cell holds once the variables and projections in it that are substituted are followed.
  VORTEX_HVM_INLINE Term follow(Loc cell, Term term) {
    for (;;) {
      const Loc inner = locOf(term);
      const Term found = heap[inner];
      if (!isSub(found))
        return term;
      release(inner, 1);
      heap[cell] = term = found & ~kSub;
      if (!isReference(tagOf(term)))
        return term;
    }
  }

  /// Copies the operation's template to fresh cells and returns the first.
  VORTEX_HVM_INLINE Loc build(const Op& op) {
    if (op.words == 0)
      return 0;
    Loc base = take(op.words);
    buildAt(op, base);
    return base;
  }
  VORTEX_HVM_INLINE void buildAt(const Op& op, Loc base) {
    const Term* from = items + op.items;
    for (uint32_t i = 0; i < op.words; ++i)
      heap[base + i] = itemAt(from[i], base);
  }
  /// The same for a template whose first word is a cell, which is given back alone, so that it is taken alone, too.
  VORTEX_HVM_INLINE void buildInto(const Op& op, Loc cell) {
    const Term* from = items + op.items;
    const Loc base = (op.words > 1 ? take(op.words - 1) : 1) - 1;
    heap[cell] = itemAt(from[0], base);
    for (uint32_t i = 1; i < op.words; ++i)
      heap[base + i] = itemAt(from[i], base);
  }
  VORTEX_HVM_INLINE Term itemAt(Term item, Loc base) const {
    if (isSub(item))
      return (item & ~kSub) + base;
    return tagOf(item) == Slot ? env[locOf(item)] : item;
  }
  /// Loads captured terms into their slots.
  VORTEX_HVM_INLINE void enter(const Entry& entry, const Term* captured) {
    const uint32_t* slots = machine.code_.slots.data() + entry.captures;
    for (uint32_t i = 0; i < entry.count; ++i)
      env[slots[i]] = captured[i];
  }
  VORTEX_HVM_INLINE void pushCaptured(const Entry& entry) {
    const uint32_t* slots = machine.code_.slots.data() + entry.captures;
    for (uint32_t i = 0; i < entry.count; ++i)
      push(env[slots[i]]);
  }
  /// A closure of terms that lie in `captured`.
  VORTEX_HVM_INLINE Term closure(uint32_t tag, uint32_t entry, const Term* captured) {
    uint32_t count = machine.code_.entries[entry].count;
    if (count == 0)
      return makeTerm(tag, entry);
    Loc at = take(count);
    for (uint32_t i = 0; i < count; ++i)
      heap[at + i] = captured[i];
    return makeTerm(tag, entry, at);
  }
  VORTEX_HVM_INLINE Term closureOfSlots(uint32_t entry) {
    const Entry& of = machine.code_.entries[entry];
    if (of.count == 0)
      return makeTerm(Fun, entry);
    Loc at = take(of.count);
    const uint32_t* slots = machine.code_.slots.data() + of.captures;
    for (uint32_t i = 0; i < of.count; ++i)
      heap[at + i] = env[slots[i]];
    return makeTerm(Fun, entry, at);
  }

  /// The node that a Fun stands for.
  VORTEX_HVM_INLINE Term expose(Term function, Term variable) {
    const Entry& entry = machine.code_.entries[extOf(function)];
    const Op& op = ops[entry.op];
    enter(entry, heap + locOf(function));
    release(locOf(function), entry.count);
    if (op.kind == OpKind::Lam) {
      const Loc cell = take(1);
      const bool binds = op.slot != kNoSlot;
      if (binds)
        env[op.slot] = variable ? variable : makeTerm(Var, 0, cell);
      buildInto(op, cell);
      return makeTerm(Lam, binds && !variable ? 0 : kErasing, cell);
    }
    const Loc base = build(op);
    return op.kind == OpKind::Use ? makeTerm(Use, 0, base)
                                  : makeTerm(op.isSwitch ? Swi : Mat, op.isSwitch ? 0 : op.ext, base);
  }

  /// The two sides of a duplicated lambda: λp.b₀ and λq.b₁, with &L{p,q} for its variable.
  VORTEX_HVM_INLINE Sides duplicateLambda(Term lambda, uint32_t label) {
    bool isFun = tagOf(lambda) == Fun;
    const Entry* entry = isFun ? &machine.code_.entries[extOf(lambda)] : nullptr;
    bool isErasing = isFun ? ops[entry->op].slot == kNoSlot : (extOf(lambda) & kErasing) != 0;
    if (isErasing) {  // the lambda's own cell is what both share
      Loc body = locOf(lambda);
      if (isFun) {
        body = take(1);
        enter(*entry, heap + locOf(lambda));
        release(locOf(lambda), entry->count);
        buildInto(ops[entry->op], body);
      }
      return {makeTerm(Lm0, label, body), makeTerm(Lm1, label, body)};
    }
    machine.hasCopiedLambda_.store(true, std::memory_order_relaxed);
    // One piece: who asks for a side asks for the body next.
    const Loc zero = take(3), one = zero + 1, body = zero + 2;
    const Term variable = makeTerm(Svr, label, zero);
    if (isFun) {
      const Op& op = ops[entry->op];
      enter(*entry, heap + locOf(lambda));
      release(locOf(lambda), entry->count);
      env[op.slot] = variable;
      buildInto(op, body);
    } else {
      heap[body] = heap[locOf(lambda)];
      bind(lambda, variable);
    }
    Sides bodies = sidesOf(body, label);
    heap[zero] = bodies.zero, heap[one] = bodies.one;
    return {makeTerm(Lam, 0, zero), makeTerm(Lam, 0, one)};
  }

  /// The plain term for Lm0, Lm1 or Svr.
  VORTEX_HVM_INLINE Term plain(Term term) {
    if (tagOf(term) == Svr)
      return node(Sup, extOf(term), makeTerm(Var, 0, locOf(term)), makeTerm(Var, 0, locOf(term) + 1));
    return node(Lam, kErasing, projectionIn(term));
  }

  /// Turns the first `dups` fields of the node into dup cells; returns two nodes of `count` fields with their sides.
  VORTEX_HVM_INLINE Sides duplicateFields(Term owner, uint32_t label, uint32_t count, uint32_t dups) {
    Loc from = locOf(owner);
    Loc zero = take(count), one = take(count);
#pragma clang loop unroll(full)
    for (uint32_t i = 0; i < count; ++i) {
      Sides sides = i < dups ? sidesOf(from + i, label) : Sides{heap[from + i], heap[from + i]};
      heap[zero + i] = sides.zero, heap[one + i] = sides.one;
    }
    Term head = owner & ~kValueMask;
    return {head | zero, head | one};
  }

  /// Of a copy of a stuck node, whose fields are projections: pushes what waits for what the node waits for, and returns that. It is copied at once
  /// and not reduced again: else a chain of such nodes would be gone through anew for each of them. 0: the copy is to be reduced as any term.
  VORTEX_HVM_INLINE Term enterStuckCopy(Term copy) {
    const auto isTaken = [](Term held) { return isSub(held) || isBusy(held) || tagOf(held) == Stk; };
    const Term* const fields = heap + locOf(copy);
    const Loc first = locOf(fields[0]);
    const Term head = __atomic_load_n(&heap[first], __ATOMIC_ACQUIRE);
    if (isTaken(head) || needsAttention())
      return 0;
    const Tag tag = tagOf(copy);
    const bool waitsForSecond = awaitedField(tag, tagOf(head)) == 1;
    if (waitsForSecond) {
      if (!exchange(first, head, head | kSub))
        return 0;
      ++interactions;  // DUP-NOD
    }
    const Term projection = fields[waitsForSecond];
    const Term stuck = __atomic_load_n(&heap[locOf(projection)], __ATOMIC_ACQUIRE);
    if (isTaken(stuck) || !exchange(locOf(projection), stuck, makeTerm(Busy, machine.id_)))
      return 0;
    if (waitsForSecond)
      push(makeTerm(OnOp2Num, extOf(copy), numberOf(head)));
    else if (tag == Op2)
      push(fields[1]), push(makeTerm(OnOp2, 0, extOf(copy)));
    else
      push(fields[1]), push(fields[2]), push(makeTerm(tag == Dsu ? OnDsu : OnDdu));
    release(locOf(copy), tag == Op2 ? 2 : 3);
    static_assert(OnDp1 - Dp1 == OnDp0 - Dp0);
    push(projection + makeTerm(OnDp0 - Dp0));
    return stuck;
  }

  VORTEX_HVM_INLINE static bool isLiftable(Term header) {
    constexpr auto bit = [](Tag frame) { return uint64_t(1) << (frame - kFrames); };
    constexpr uint64_t kLiftable = bit(OnMat) | bit(OnMatCode) | bit(OnOp2) | bit(OnOp2Code) | bit(OnOp2Num) |
                                   bit(OnEqlLeft) | bit(OnAnd) | bit(OnOr);
    return isSub(header) || (kLiftable >> (tagOf(header) - kFrames) & 1) != 0;
  }
  /// Words of a frame that can be lifted.
  VORTEX_HVM_INLINE uint32_t liftableWords(Term header) const {
    if (isSub(header) || tagOf(header) == OnOp2Num)
      return 1;
    const bool isCode = tagOf(header) == OnMatCode || tagOf(header) == OnOp2Code;
    return 1 + (isCode ? machine.code_.entries[extOf(header)].count : 1);
  }
  /// The superposition passes all frames down to one that it cannot pass so.
  VORTEX_HVM_INLINE void lift(Term sup) {
    uint32_t frames = 0;
    Term kinds = 0, operands[kMostLifted];  // the innermost first
    for (; frames < kMostLifted && isLiftable(sp[-1]); ++frames) {
      const Term header = sp[-1];
      sp -= liftableWords(header);
      Term operand = *sp;
      uint64_t kind = 0;
      if (isSub(header)) {
        kind = kLiftedArgument, operand = header & ~kSub;
      } else {
        switch (tagOf(header)) {
        case OnMatCode: operand = closure(Fun, extOf(header), sp); [[fallthrough]];
        case OnMat: kind = kLiftedMatch; break;
        case OnOp2Code: operand = closure(Thk, extOf(header), sp); [[fallthrough]];
        case OnOp2: kind = locOf(header); break;
        case OnOp2Num: kind = kLiftedOp2Num + extOf(header), operand = number(numberOf(header)); break;
        case OnEqlLeft: kind = kLiftedEqual; break;
        case OnAnd: kind = kLiftedAnd; break;
        default: kind = kLiftedOr;
        }
      }
      operands[frames] = operand;
      kinds = kinds << kLiftedBits | kind;
    }
    const Loc at = takeNext(kLiftedOperands + frames);
    for (uint32_t i = 0; i < frames; ++i)
      heap[at + kLiftedOperands + i] = operands[frames - 1 - i];
    interactions += frames;
    heap[at] = Term(frames) << kLiftedCountShift | kinds;
    Term* sides = heap + locOf(sup);
    heap[at + kLiftedSides] = sides[0], heap[at + kLiftedSides + 1] = sides[1];
    sides[0] = makeTerm(Lf0, extOf(sup), at), sides[1] = makeTerm(Lf1, extOf(sup), at);
  }
  /// Pushes what waits for a side; returns what is to be reduced first.
  template <Tag kSide> VORTEX_HVM_INLINE Term resume(Term lifted) {
    if (tagOf(lifted) != kSide)
      __builtin_unreachable();
    const Term kinds = heap[locOf(lifted)];
    const uint32_t frames = liftedCount(kinds);
    uint32_t i = liftedStart(lifted);
    Term operand = liftedOperand(lifted, i);
    for (Term rest = kinds >> (kLiftedBits * i); i < frames; ++i, ++operand, rest >>= kLiftedBits) {
      const uint32_t kind = liftedKind(rest, 0);
      if (kind == kLiftedArgument) {
        push(operand | kSub);
      } else if (kind == kLiftedMatch) {
        const Term cell = __atomic_load_n(&heap[locOf(operand)], __ATOMIC_ACQUIRE);
        if (isSub(cell) && (tagOf(cell) == Mat || tagOf(cell) == Swi)) {  // the other side was here
          release(locOf(operand), 1);
          push(cell & ~kSub), push(makeTerm(OnMat));
          continue;
        }
        push((i + 1 == frames ? takeSide(lifted) : liftedFrom(heap, lifted, i + 1)) | kSub);
        return operand;
      } else if (kind < kLiftedOp2Num) {
        push(operand), push(makeTerm(OnOp2, 0, kind));
      } else if (kind < kLiftedArgument) {
        push(makeTerm(OnOp2Num, kind - kLiftedOp2Num, numberOf(heap[locOf(operand)])));
      } else {
        push(operand), push(makeTerm(kind == kLiftedEqual ? OnEqlLeft : kind == kLiftedAnd ? OnAnd : OnOr));
      }
    }
    return takeSide(lifted);
  }
  /// Whoever takes the second one gives the words back that neither needs any more.
  VORTEX_HVM_INLINE Term takeSide(Term lifted) {
    const Loc side = liftedSide(lifted), first = locOf(lifted) + kLiftedSides;
    const Term term = heap[side];
    if (!isShared) {
      heap[side] = 0;
      if (heap[first] == 0 && heap[first + 1] == 0)
        release(locOf(lifted), 1), release(first, 2);
    }
    return term;
  }

  VORTEX_HVM_INLINE Term compare(Term left, Term right) {
    save();
    Term result = compareValues(machine, left, right, machine.heap_.freshName());
    load();
    return result;
  }
  /// A collection may happen here: everything is on the stack or in `current`.
  VORTEX_HVM_INLINE bool safePoint(Term& current) {
    save();
    Term term = current;
    bool goesOn = machine.world_.safePoint(machine, term);
    current = term;
    load();
    return goesOn;
  }

  /// A rule takes a stuck term for final, or drops an operand. Operands that are reduced ahead of need may make that wrong. True: stop.
  VORTEX_HVM_INLINE bool doubts() {
    if (__builtin_expect(!isShared && !machine.doubts_, 1))
      return false;
    save();
    return machine.world_.doubt();
  }
  VORTEX_HVM_INLINE bool meetsCircle() { return machine.world_.meetsCircle(); }
  /// The operator's right operand was given to the others.
  VORTEX_HVM_INLINE Term takeForked(Term header) {
    sp -= extOf(header) >> 5;
    machine.forkedFrames_.pop_back();
    return makeTerm(Fut, 0, locOf(header));
  }

  VORTEX_HVM_INLINE void detach(Term operand) {
    save();
    machine.world_.detachOperand(machine, locOf(operand));
  }

  VORTEX_HVM_INLINE World::Wait awaitCell(Term& projection) {
    save();
    Term term = projection;
    World::Wait wait = machine.world_.awaitCell(machine, term);
    projection = term;
    load();
    return wait;
  }
};

}  // namespace vortex::hvm
