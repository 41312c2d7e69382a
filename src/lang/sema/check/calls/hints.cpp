#include "lang/sema/check/calls/hints.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/generics.h"
#include "lang/sema/check/types/resolve_type.h"
#include "lang/syntax/ast_walk.h"

namespace vortex::lang {

namespace {

/// Whether a type names a parameter that nothing has bound yet.
class OpenNames : public syn::AstWalker {
public:
  explicit OpenNames(const GenericEnv& env) : env_(env) {}
  bool isFound() const { return isFound_; }

private:
  bool onType(const syn::Type* type) override {
    if (auto* named = type->tryAs<syn::NamedType>())
      consider(named->path[0].text);
    else if (auto* spaced = type->tryAs<syn::SpacedType>())
      consider(spaced->space.name.text);
    return !isFound_;
  }
  bool onExpr(const syn::Expr* expr) override {
    if (auto* name = expr->tryAs<syn::NameExpr>())
      consider(name->name.text);
    return !isFound_;
  }
  void consider(std::string_view name) {
    for (const GenericBinding& binding : env_)
      isFound_ |= !binding.value.isBound() && binding.name == name;
  }

  const GenericEnv& env_;
  bool isFound_ = false;
};

}  // namespace

Type hintFor(BodyState& body, const syn::Type* written, const GenericEnv& env, const FunctionCall& target) {
  if (!written)
    return nullptr;
  OpenNames open(env);
  open.walk(written);
  if (open.isFound()) {
    // `f: fn(T) -> U`: the parameters may be known while the result is not.
    auto* closure = written->tryAs<syn::FunctionType>();
    if (!closure)
      return nullptr;
    std::vector<Type> params;
    for (const syn::Type* param : closure->params) {
      Type type = hintFor(body, param, env, target);
      if (!type)
        return nullptr;
      params.push_back(type);
    }
    return body.types.closure(std::move(params), body.types.error());
  }
  BodyState there(body.session, nullptr, body.session.scratchFunction(), target.scope);
  there.generics = env;
  there.selfType = target.selfType;
  if (target.item)
    there.boundLists.push_back(&target.item->generics);
  if (target.impl)
    there.boundLists.push_back(&target.impl->generics);
  const Session::Quiet quiet(body.session);  // the signature reports
  const Type type = resolveType(there, written, DimPolicy::Fresh);
  return isError(type) ? nullptr : type;
}

void inferLengths(BodyState& body, const syn::Type* written, const syn::Expr* value, GenericEnv& env,
                  ItemScope* scope) {
  if (auto* ref = value->tryAs<syn::RefExpr>())
    value = ref->operand;
  if (auto* ref = written ? written->tryAs<syn::RefType>() : nullptr)
    written = ref->inner;
  auto* type = written ? written->tryAs<syn::ArrayType>() : nullptr;
  auto* list = value->tryAs<syn::ArrayExpr>();
  if (!type || !list || list->isVec || list->form != syn::ArrayForm::List || list->elems.empty())
    return;
  infer(body, type, body.types.array(body.types.error(), list->elems.size()), env, scope);
  inferLengths(body, type->elem, list->elems[0], env, scope);
}

}  // namespace vortex::lang
