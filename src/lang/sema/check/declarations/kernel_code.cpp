#include "lang/sema/check/declarations/kernel_code.h"
#include "lang/sema/builtin/table.h"
#include "lang/sema/check/names/names.h"
#include "lang/sema/check/names/scope.h"

#include "base/text.h"
#include "lang/syntax/ast_walk.h"

#include <set>

namespace vortex::lang {
namespace {

/// Names that the function declares itself: what they hide is not the language's.
class OwnNames : public syn::AstWalker {
public:
  std::set<std::string_view> names;

protected:
  bool onPattern(const syn::Pattern* pattern) override {
    if (auto* name = pattern->tryAs<syn::NamePattern>())
      names.insert(name->name.text);
    return true;
  }
};

class Evidence : public syn::AstWalker {
public:
  Evidence(const syn::FunctionItem& function, const ItemScope& scope) : scope_(scope) {
    own_.walk(&function);
    for (const syn::Param& param : function.params)
      own_.names.insert(param.name.text);
    if (function.body)
      walk(static_cast<const syn::Expr*>(function.body));
  }
  bool ofKernel = false, ofHost = false;

protected:
  bool onExpr(const syn::Expr* expr) override {
    if (auto* name = expr->tryAs<syn::NameExpr>()) {
      note(isFree(name->name.text) ? placeOfBuiltin(name->name.text) : std::nullopt);
    } else if (auto* member = expr->tryAs<syn::MemberExpr>()) {
      auto* base = member->base->tryAs<syn::NameExpr>();
      const bool isOfLanguage = base && isFree(base->name.text);
      ofKernel |= isOfLanguage && isPositionBase(base->name.text);
      if (isOfLanguage && isBuiltinNamespace(base->name.text))
        note(placeOfBuiltin(base::concat(base->name.text, ".", member->name.text)));
      // A method's receiver has no type yet; that there is one on the host only says enough.
      ofHost |= placeOfBuiltin(member->name.text) == BuiltinPlace::Host;
    } else if (auto* list = expr->tryAs<syn::ArrayExpr>()) {
      ofHost |= list->isVec;
    }
    return true;
  }

private:
  bool isFree(std::string_view name) const { return !own_.names.contains(name) && !scope_.find(name); }
  void note(std::optional<BuiltinPlace> place) {
    ofKernel |= place == BuiltinPlace::Kernel;
    ofHost |= place == BuiltinPlace::Host;
  }

  const ItemScope& scope_;
  OwnNames own_;
};

class TensorTypes : public syn::AstWalker {
public:
  bool found = false;

protected:
  bool onType(const syn::Type* type) override {
    auto* named = type->tryAs<syn::NamedType>();
    found |= named && named->path.size() == 1 && named->path[0].text == "Tensor";
    return true;
  }
};

}  // namespace

bool looksLikeKernelCode(const syn::FunctionItem& function, const ItemScope& scope) {
  const Evidence evidence(function, scope);
  if (evidence.ofKernel || evidence.ofHost)
    return evidence.ofKernel;
  TensorTypes tensors;
  for (const syn::Param& param : function.params)
    if (param.type)
      tensors.walk(param.type);
  return tensors.found;
}

}  // namespace vortex::lang
