// Words of the heap: SUB 1 bit, tag 7 bits, ext 20 bits, value 36 bits.
#pragma once

#include <array>
#include <cstdint>

namespace vortex::hvm {

using Term = uint64_t;
using Loc = uint64_t;

/// Below kFrames: terms; from there on: headers of stack frames.
enum Tag : uint32_t {
  App,
  Var,
  Lam,
  Dp0,
  Dp1,
  Sup,
  Ref = 8,
  Nam,
  Dry,
  Era,
  Mat,
  C00,
  C16 = C00 + 16,
  Num,
  Swi,
  Use,
  Op2,
  Dsu,
  Ddu,
  Eql,
  And,
  Or,
  Any = 40,
  Inc,
  Bjv,
  Bj0,
  Bj1,
  Pri,
  Thk,   // ext: entry; value: captured terms. Code that was not run yet
  Fun,   // the same for code that is a value: lambda, match, switch or use
  Stk,   // in a dup cell: value points at the final stuck value
  Busy,  // in a dup cell: somebody reduces the value
  Slot,  // only in templates: the variable in that slot
  // What duplicated lambdas consist of, without words of its own; steps.cpp makes plain terms of these wherever it has no rule for them.
  Lm0,  // ext: label; value: cell. A lambda without variable around the projection Dp0 of that cell
  Lm1,  // the same around Dp1
  Svr,  // ext: label. The superposition of the variables at value and the word after it
  // Sides of a superposition and what waits for them; lifted.h
  Lf0,
  Lf1,
  Fut,  // an operand that any thread may reduce; value: its cell, which holds the term, Busy or, with SUB set, its value
  kFrames = 64,
  OnArg = kFrames,  // only in rules: an argument is a term with SUB set, without header
  OnMat,            // match as a term
  OnMatCode,        // ext: entry; captured terms below
  OnUse,
  OnUseCode,
  OnOp2,      // value: operator; right operand below
  OnOp2Code,  // ext: entry of the right operand; value: operator; captured terms below
  OnOp2Num,   // ext: operator; value: left operand
  OnDp0,
  OnDp1,        // ext: label; value: cell
  OnOp2Forked,  // ext: operator and, from bit 5 on, number of dead words below; value: cell of the right operand
  OnEqlLeft,
  OnEqlForked,  // as OnOp2Forked
  OnEqlRight,
  OnAnd,
  OnOr,  // the other operand below
  OnDsu,
  OnDdu,  // two terms below
  OnLog,  // ext: native; see natives.cpp
  OnNf,
  OnGnf,  // the term below; nothing is awaited
  Base,   // end of this reduction
};

inline constexpr int kValueBits = 36, kExtBits = 20, kTagShift = kValueBits + kExtBits;
inline constexpr Term kSub = Term(1) << 63;
inline constexpr Term kValueMask = (Term(1) << kValueBits) - 1;
inline constexpr uint32_t kExtMask = (1u << kExtBits) - 1;

constexpr Term makeTerm(uint32_t tag, uint32_t ext = 0, uint64_t value = 0) {
  return Term(tag) << kTagShift | Term(ext) << kValueBits | value;
}
constexpr Tag tagOf(Term term) { return static_cast<Tag>(term >> kTagShift & 127); }
constexpr uint32_t extOf(Term term) { return static_cast<uint32_t>(term >> kValueBits) & kExtMask; }
constexpr Loc locOf(Term term) { return term & kValueMask; }
constexpr uint32_t numberOf(Term term) { return static_cast<uint32_t>(term); }
constexpr bool isSub(Term term) { return static_cast<int64_t>(term) < 0; }
constexpr Term number(uint32_t value) { return makeTerm(Num, 0, value); }
constexpr bool isConstructor(Tag tag) { return tag >= C00 && tag <= C16; }
/// Of a cell: somebody, thread `extOf`, reduces what it held.
constexpr bool isBusy(Term cell) { return cell >> kTagShift == Busy; }
/// Values with these tags are stuck: they wait for a variable or a duplication, and might go on later. (Of natives only %nf is, whose normal form waits.)
constexpr bool isWaiting(Tag tag) {
  return tag == App || tag == Var || tag == Dp0 || tag == Dp1 || (tag >= Op2 && tag <= Or) || tag == Pri;
}

constexpr bool isReference(Tag tag) { return tag == Var || tag == Dp0 || tag == Dp1; }
/// Values of one word, which a duplication copies as they are.
constexpr bool isCopied(Tag tag) { return tag == Num || tag == Era || tag == Any || tag == C00; }
/// Values that are no functions of code, and that nothing but a frame changes.
constexpr bool isPlainValue(Tag tag) {
  constexpr auto upTo = [](uint32_t tag) { return (uint64_t(2) << tag) - 1; };
  constexpr uint64_t kPlain = (upTo(Use) & ~upTo(Era - 1)) | uint64_t(1) << Lam | uint64_t(1) << Sup |
                              uint64_t(1) << Any | uint64_t(1) << Inc | uint64_t(1) << Lm0 | uint64_t(1) << Lm1;
  return (kPlain >> tag & 1) != 0;
}
constexpr bool isPartOfDuplicate(Tag tag) { return tag >= Lm0 && tag <= Svr; }
/// The body of a lambda Lm0 or Lm1.
constexpr Term projectionIn(Term lambda) {
  return makeTerm(tagOf(lambda) == Lm0 ? Dp0 : Dp1, extOf(lambda), locOf(lambda));
}

// Words of the node that a term with this tag points at; references to cells have none of their own. kCaptured: as many as its entry captures.
inline constexpr uint8_t kCaptured = 64;
inline constexpr std::array<uint8_t, 128> kNodeWords = [] {
  std::array<uint8_t, 128> words{};
  for (Tag tag : {App, Sup, Dry, Mat, Op2, Eql, And, Or})
    words[tag] = 2;
  for (Tag tag : {Lam, Use, Inc, Pri})
    words[tag] = 1;
  for (Tag tag : {Swi, Dsu, Ddu})
    words[tag] = 3;
  for (uint8_t fields = 0; fields <= C16 - C00; ++fields)
    words[C00 + fields] = fields;
  words[Thk] = words[Fun] = kCaptured;
  return words;
}();

// Lambdas: the low bits of ext are the level of a quoted variable, in collapse mode.
inline constexpr uint32_t kErasing = 1u << (kExtBits - 1);
// Lambdas, and their variables: the lambda is part of the result, so that nobody will apply it.
inline constexpr uint32_t kEntered = 1u << (kExtBits - 2);
// Variables: if it is not 0, the number of the call of %nf in whose normal form the lambda is. Once the call has returned the lambda may be applied.
inline constexpr uint32_t kCallMask = kEntered - 1;
// Names made by EQL-LAM have this bit; value tells them apart.
inline constexpr uint32_t kFreshName = 1u << (kExtBits - 1);

}  // namespace vortex::hvm
