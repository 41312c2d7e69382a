// Where tensors may lie.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

bool checkResultSpace(BodyState& body, Type type, SourceRange range);
bool checkHostSpace(BodyState& body, Type type, SourceRange range);
bool checkKernelParamSpace(BodyState& body, Type type, SourceRange range);
bool checkFieldSpace(BodyState& body, Type type, const syn::Field& field, const syn::Name& owner);
std::optional<Space> spaceNamed(BodyState& body, const syn::Name& name);
std::string spaceText(Type type);

}  // namespace vortex::lang
