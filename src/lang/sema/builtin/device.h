// Barriers, warps, atomics and staging.
#pragma once

#include "lang/sema/builtin/call.h"

namespace vortex::lang {

Expr* checkBarrier(BuiltinCall& call);
Expr* checkShuffle(BuiltinCall& call);
Expr* checkThreadReduce(BuiltinCall& call);
Expr* checkThreadVote(BuiltinCall& call);
Expr* checkAtomic(BuiltinCall& call);
Expr* checkStage(BuiltinCall& call);
Expr* checkAsyncStage(BuiltinCall& call);

}  // namespace vortex::lang
