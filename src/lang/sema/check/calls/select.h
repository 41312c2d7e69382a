// Which of several members a call means.
#pragma once

#include "lang/sema/check/body_state.h"
#include "lang/sema/check/calls/members.h"

namespace vortex::lang {

std::optional<Member> selectMember(BodyState& body, std::vector<Member> found, Type self, const syn::CallExpr* call,
                                   bool hasReceiver, const syn::Name& name, Type expected);

}  // namespace vortex::lang
