// Attributes of functions, statements and structs.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

void functionAttributes(BodyState& body, const syn::FunctionItem* item);
/// The number of stages that a `@pipeline` asks for; 0, with an error, if it does not say one.
uint8_t pipelineStages(BodyState& body, const syn::Attribute& attribute);
void statementAttributes(BodyState& body, const syn::Stmt* stmt);
void structAttributes(BodyState& body, const syn::Item* item);

}  // namespace vortex::lang
