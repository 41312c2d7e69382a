// Calls of methods and associated functions.
#pragma once

#include "lang/sema/check/body_state.h"
#include "lang/sema/check/calls/members.h"

namespace vortex::lang {

Expr* callMember(BodyState& body, const syn::CallExpr* call, const syn::MemberExpr* callee, Type wanted);
Expr* callMemberFound(BodyState& body, Member member, Type self, const syn::CallExpr* call,
                      const syn::MemberExpr* callee, Expr* receiver, Type expected);

}  // namespace vortex::lang
