// Copies between host and device; `Vec`, arrays, lists.
#pragma once

#include "lang/sema/builtin/call.h"

namespace vortex::lang {

Expr* checkFromHost(BuiltinCall& call);
Expr* checkToHost(BuiltinCall& call);
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
