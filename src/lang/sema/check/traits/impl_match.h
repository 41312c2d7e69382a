// Which impl is meant.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

struct FoundImpl {
  const ImplBlock* impl = nullptr;
  GenericEnv env;
  TraitRef trait;
};

std::optional<FoundImpl> findImpl(BodyState& body, Type type, const TraitRef& trait);
std::vector<FoundImpl> findImpls(BodyState& body, Type type, const TraitRef& trait);
void inferTraitArgs(BodyState& body, const ImplBlock& impl, const TraitRef& trait, GenericEnv& env);
bool matchesImpl(BodyState& body, const ImplBlock& impl, Type type, const TraitRef* wanted, GenericEnv& env,
                 bool mayBeOpen = false);

}  // namespace vortex::lang
