// Structural equality of two values (EQL).
#include "hvm/eval/compare.h"

namespace vortex::hvm {

static bool isQuoted(Tag tag) { return tag == Nam || tag == Bjv || tag == Bj0 || tag == Bj1; }

static Term chain(Machine& machine, Term left, Term right, uint32_t count) {
  Term* heap = machine.heapWords();
  Term result = 0;
  for (uint32_t i = 0; i < count; ++i) {
    Term one = machine.node(Eql, 0, {heap[locOf(left) + i], heap[locOf(right) + i]});
    result = i == 0 ? one : machine.node(And, 0, {result, one});
  }
  return result;
}

static Term compareConstructors(Machine& machine, Term left, Term right) {
  if (tagOf(left) != tagOf(right) || extOf(left) != extOf(right))
    return number(0);
  uint32_t count = tagOf(left) - C00;
  if (count == 0)
    return number(1);
  Term* heap = machine.heapWords();
  if (extOf(left) == kCon && count == 2) {
    Term heads = machine.node(Eql, 0, {heap[locOf(left)], heap[locOf(right)]});
    Term tails = machine.node(Eql, 0, {heap[locOf(left) + 1], heap[locOf(right) + 1]});
    return machine.node(Inc, 0, {machine.node(And, 0, {heads, machine.node(Inc, 0, {tails})})});
  }
  Term fields = chain(machine, left, right, count);
  return extOf(left) == kSuc && count == 1 ? machine.node(Inc, 0, {fields}) : fields;
}

static Term compareLambdas(Machine& machine, Term left, Term right, Term name) {
  Term* heap = machine.heapWords();
  auto body = [&](Term lambda) {
    Term inner = heap[locOf(lambda)];
    if (!(extOf(lambda) & kErasing))
      __atomic_store_n(&heap[locOf(lambda)], name | kSub, __ATOMIC_RELEASE);
    return inner;
  };
  Term first = body(left);
  return machine.node(Eql, 0, {first, body(right)});
}

static bool sameKey(Machine& machine, Term left, Term right) {
  if (tagOf(left) != tagOf(right))
    return false;
  Term* heap = machine.heapWords();
  return tagOf(left) == Mat ? extOf(left) == extOf(right)
                            : numberOf(heap[locOf(left) + 2]) == numberOf(heap[locOf(right) + 2]);
}

Term compareValues(Machine& machine, Term left, Term right, uint64_t freshName) {
  if (tagOf(left) == Fun &&
      (tagOf(right) == Fun || tagOf(right) == Lam || tagOf(right) == Mat || tagOf(right) == Swi || tagOf(right) == Use))
    left = machine.expose(left);
  if (tagOf(right) == Fun && tagOf(left) != Fun)
    right = machine.expose(right);
  Tag tag = tagOf(left), other = tagOf(right);
  bool isMatch = tag == Mat || tag == Swi, isOtherMatch = other == Mat || other == Swi;
  if (tag == Num && other == Num)
    return number(numberOf(left) == numberOf(right));
  if (isConstructor(tag) && isConstructor(other))
    return compareConstructors(machine, left, right);
  if (tag == Lam && other == Lam)
    return compareLambdas(machine, left, right, makeTerm(Nam, kFreshName, freshName));
  if (isMatch && isOtherMatch)
    return sameKey(machine, left, right) ? chain(machine, left, right, 2) : number(0);
  if (tag == Use && other == Use)
    return chain(machine, left, right, 1);
  if (isQuoted(tag) && isQuoted(other))
    return number(left == right);
  if (tag == Dry && other == Dry)
    return chain(machine, left, right, 2);
  return number(0);
}

}  // namespace vortex::hvm
