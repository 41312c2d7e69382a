// Declarations of traits and impls.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

void checkTrait(BodyState& body, const syn::TraitItem* item, ItemScope* scope);
void checkImpl(BodyState& body, const ImplBlock& impl);
void checkStructTraits(BodyState& body, const syn::StructItem* item, ItemScope* scope);

}  // namespace vortex::lang
