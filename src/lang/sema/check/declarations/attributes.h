// Attributes of functions, statements and structs.
#pragma once

#include "lang/sema/check/body_state.h"

#include <optional>

namespace vortex::lang {

void functionAttributes(BodyState& body, const syn::FunctionItem* item);
/// The number of stages that a `@pipeline` asks for; nothing, with an error, if it does not say one.
std::optional<int64_t> pipelineStages(BodyState& body, const syn::Attribute& attribute);
void statementAttributes(BodyState& body, const syn::Stmt* stmt);
void structAttributes(BodyState& body, const syn::Item* item);

}  // namespace vortex::lang
