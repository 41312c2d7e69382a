// The built-in functions: one row each.
#pragma once

#include "lang/sema/check/checker.h"

namespace vortex::lang {

enum class BuiltinPlace : uint8_t { Anywhere, Host, Kernel };

/// Values a row is a method of (bits).
enum Receiver : uint8_t { kNoMethod = 0, kNumber = 1, kTensor = 2, kVec = 4, kText = 8, kArray = 16, kAny = 31 };

/// One call being checked. Arguments are placed by the row's parameter list; a receiver stands at position 0.
struct BuiltinCall {
  Checker& c;
  const BuiltinRow& row;
  const syn::CallExpr* call = nullptr;
  SourceRange nameRange;
  Expr* receiver = nullptr;
  syn::List<syn::GenericArg> generics;
  Type expected = nullptr;
  std::vector<const syn::Expr*> placed;

  bool has(size_t i) const { return (i == 0 && receiver) || (i < placed.size() && placed[i]); }
  SourceRange range() const { return call->range; }
  /// The argument, checked and dereferenced.
  Expr* arg(size_t i, Type hint = nullptr) { return i == 0 && receiver ? c.deref(receiver) : c.value(placed[i], hint); }
  /// The argument as written: references stay.
  Expr* rawArg(size_t i, Type hint = nullptr) { return i == 0 && receiver ? receiver : c.check(placed[i], hint); }
  bool isUntyped(size_t i) const { return !(i == 0 && receiver) && c.isUntyped(placed[i]); }
  Expr* failed() { return c.errorExpr(call->range); }
  /// "`exp` needs …": E0303 on the argument.
  Expr* wrongArg(const Expr* arg, std::string_view needs);
};

struct BuiltinRow {
  std::string_view name;
  Builtin id;
  BuiltinPlace place;
  uint8_t receivers;
  std::string_view params;  ///< "x, dim?, keepdim?"; a last "*" takes any number
  Expr* (*check)(BuiltinCall&);
};

const BuiltinRow* findBuiltin(std::string_view name);
const BuiltinRow* findBuiltinMethod(std::string_view name, Type receiver);
bool isBuiltinNamespace(std::string_view name);
/// The kind of code that alone has a built-in of this name (`Anywhere`: both); nothing if there is none.
std::optional<BuiltinPlace> placeOfBuiltin(std::string_view name);
std::vector<std::string> builtinsIn(std::string_view space);
std::vector<std::string> builtinMethodsOf(Type receiver);

/// Where host code makes a tensor: constant memory if that is declared, else global.
Space madeSpace(const Checker& c, Type expected);

// math.cpp
Expr* checkFloatMath(BuiltinCall& call);
Expr* checkNumericMath(BuiltinCall& call);
Expr* checkIntegerMath(BuiltinCall& call);
Expr* checkFloatTest(BuiltinCall& call);
Expr* checkToBits(BuiltinCall& call);
Expr* checkFromBits(BuiltinCall& call);
Expr* checkMinMax(BuiltinCall& call);
Expr* checkSelect(BuiltinCall& call);
// tensor.cpp
Expr* checkZeros(BuiltinCall& call);
Expr* checkFull(BuiltinCall& call);
Expr* checkArange(BuiltinCall& call);
Expr* checkTranspose(BuiltinCall& call);
Expr* checkReshape(BuiltinCall& call);
Expr* checkBroadcastTo(BuiltinCall& call);
Expr* checkReduction(BuiltinCall& call);
Expr* checkAlongDim(BuiltinCall& call);
Expr* checkMaskUpperTriangle(BuiltinCall& call);
// device.cpp
Expr* checkBarrier(BuiltinCall& call);
Expr* checkShuffle(BuiltinCall& call);
Expr* checkWarpReduce(BuiltinCall& call);
Expr* checkWarpVote(BuiltinCall& call);
Expr* checkAtomic(BuiltinCall& call);
Expr* checkStage(BuiltinCall& call);
Expr* checkAsyncStage(BuiltinCall& call);
// host.cpp
Expr* checkPrint(BuiltinCall& call);
Expr* checkAssert(BuiltinCall& call);
Expr* checkAssertPair(BuiltinCall& call);
Expr* checkArgs(BuiltinCall& call);
Expr* checkFile(BuiltinCall& call);
Expr* checkLoadNpy(BuiltinCall& call);
Expr* checkSaveNpy(BuiltinCall& call);
Expr* checkRandom(BuiltinCall& call);
Expr* checkTime(BuiltinCall& call);
Expr* checkExit(BuiltinCall& call);
Expr* checkParse(BuiltinCall& call);
Expr* checkToText(BuiltinCall& call);
// collections.cpp
Expr* checkFromHost(BuiltinCall& call);
Expr* checkToHost(BuiltinCall& call);
Expr* checkCopy(BuiltinCall& call);
Expr* checkLen(BuiltinCall& call);
Expr* checkPush(BuiltinCall& call);
Expr* checkPop(BuiltinCall& call);
Expr* checkVecFill(BuiltinCall& call);
Expr* checkVecRange(BuiltinCall& call);
Expr* checkMap(BuiltinCall& call);
Expr* checkFold(BuiltinCall& call);
Expr* checkSort(BuiltinCall& call);
Expr* checkRangeCall(BuiltinCall& call);

}  // namespace vortex::lang
