// Printing, files, time, text and random numbers.
#pragma once

#include "lang/sema/builtin/call.h"

namespace vortex::lang {

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

}  // namespace vortex::lang
