// Superpositions that pass what waits for them.
//
// By the rules a superposition that arrives at frames becomes one of two copies of the first frame's node, then of the second's, and so on: a node for
// each frame on either side, and a cell for each operand. All of that exists in one piece here, which both sides refer to (terms Lf0 and Lf1):
//
//   the frames' kinds | what is left of either side | the cell of each frame's operand, the outermost first
//
// A side that is asked for pushes its frames again, with projections of the cells. So it is reduced as the nodes would be.
#pragma once

#include "hvm/eval/term.h"
#include "hvm/syntax/program.h"

namespace vortex::hvm {

inline constexpr uint32_t kMostLifted = 8;  // frames of a piece
inline constexpr Loc kLiftedSides = 1, kLiftedOperands = 3;
inline constexpr uint32_t kOperators = 17;

/// Kinds of frames have six bits; the highest bits of the word are the number of frames. Operators are below these, then those whose left operand is a
/// number, which is in the place of the cell.
inline constexpr uint32_t kLiftedOp2Num = kOperators, kLiftedArgument = 2 * kOperators,
                          kLiftedMatch = kLiftedArgument + 1, kLiftedEqual = kLiftedMatch + 1,
                          kLiftedAnd = kLiftedEqual + 1, kLiftedOr = kLiftedAnd + 1;
inline constexpr int kLiftedBits = 6, kLiftedCountShift = 60;
static_assert(kLiftedOr < 1u << kLiftedBits && kLiftedBits * kMostLifted <= kLiftedCountShift);

/// Terms: the low bits of ext are the label, those from kLiftedStart on the first frame that is still to be pushed.
inline constexpr int kLiftedStart = 17;
static_assert(kReservedLabel < 1u << kLiftedStart && kMostLifted <= 1u << (kExtBits - kLiftedStart));

constexpr bool isLifted(Tag tag) { return tag == Lf0 || tag == Lf1; }
constexpr uint32_t liftedLabel(Term lifted) { return extOf(lifted) & ((1u << kLiftedStart) - 1); }
constexpr uint32_t liftedStart(Term lifted) { return extOf(lifted) >> kLiftedStart; }
constexpr Loc liftedSide(Term lifted) { return locOf(lifted) + kLiftedSides + (tagOf(lifted) == Lf1); }
constexpr uint32_t liftedCount(Term kinds) { return static_cast<uint32_t>(kinds >> kLiftedCountShift); }
constexpr uint32_t liftedKind(Term kinds, uint32_t frame) {
  return kinds >> (kLiftedBits * frame) & ((1u << kLiftedBits) - 1);
}
constexpr Term liftedOperand(Term lifted, uint32_t frame) {
  return makeTerm(tagOf(lifted) == Lf0 ? Dp0 : Dp1, liftedLabel(lifted), locOf(lifted) + kLiftedOperands + frame);
}
/// The frames from `frame` on, or what they wait for.
constexpr Term liftedFrom(const Term* heap, Term lifted, uint32_t frame) {
  if (frame == liftedCount(heap[locOf(lifted)]))
    return heap[liftedSide(lifted)];
  return makeTerm(tagOf(lifted), liftedLabel(lifted) | frame << kLiftedStart, locOf(lifted));
}

/// The node of the first frame, as the rules make it. `head` has no location yet.
struct LiftedNode {
  Term head;
  Term fields[2];
};
inline LiftedNode nodeOfLifted(const Term* heap, Term lifted) {
  const uint32_t frame = liftedStart(lifted), kind = liftedKind(heap[locOf(lifted)], frame);
  const Term rest = liftedFrom(heap, lifted, frame + 1), operand = liftedOperand(lifted, frame);
  if (kind < kLiftedOp2Num)
    return {makeTerm(Op2, kind), {rest, operand}};
  if (kind < kLiftedArgument)
    return {makeTerm(Op2, kind - kLiftedOp2Num), {heap[locOf(operand)], rest}};
  switch (kind) {
  case kLiftedMatch: return {makeTerm(App), {operand, rest}};
  case kLiftedEqual: return {makeTerm(Eql), {rest, operand}};
  case kLiftedAnd: return {makeTerm(And), {rest, operand}};
  case kLiftedOr: return {makeTerm(Or), {rest, operand}};
  default: return {makeTerm(App), {rest, operand}};
  }
}

}  // namespace vortex::hvm
