#include "lang/sema/check/body_state.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"

namespace vortex::lang {

BodyState::BodyState(Session& session, Instance* instance, Function* function, ItemScope* scope)
    : session(session), types(session.types), instance(instance), function(function), items(scope) {
  if (instance) {
    generics = instance->generics;
    selfType = instance->selfType;
    boundLists.push_back(&instance->item->generics);
    if (instance->impl)
      boundLists.push_back(&instance->impl->generics);
  }
}

}  // namespace vortex::lang
