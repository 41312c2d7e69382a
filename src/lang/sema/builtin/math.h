// Elementwise functions of numbers and tensors.
#pragma once

#include "lang/sema/builtin/call.h"

namespace vortex::lang {

Expr* checkFloatMath(BuiltinCall& call);
Expr* checkNumericMath(BuiltinCall& call);
Expr* checkIntegerMath(BuiltinCall& call);
Expr* checkFloatTest(BuiltinCall& call);
Expr* checkToBits(BuiltinCall& call);
Expr* checkFromBits(BuiltinCall& call);
Expr* checkMinMax(BuiltinCall& call);
Expr* checkSelect(BuiltinCall& call);

}  // namespace vortex::lang
