// Functions that make, reshape and reduce tensors.
#pragma once

#include "lang/sema/builtin/call.h"

namespace vortex::lang {

/// Where host code makes a tensor: constant memory if that is declared, else global.
Space madeSpace(const BodyState& body, Type expected);
Expr* checkZeros(BuiltinCall& call);
Expr* checkFull(BuiltinCall& call);
Expr* checkArange(BuiltinCall& call);
Expr* checkCopy(BuiltinCall& call);
Expr* checkTranspose(BuiltinCall& call);
Expr* checkReshape(BuiltinCall& call);
Expr* checkBroadcastTo(BuiltinCall& call);
Expr* checkReduction(BuiltinCall& call);
Expr* checkAlongDim(BuiltinCall& call);
Expr* checkMaskUpperTriangle(BuiltinCall& call);

}  // namespace vortex::lang
