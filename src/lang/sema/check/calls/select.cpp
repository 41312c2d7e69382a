// Which of several members of one name a call means: those of one trait with different arguments, `Q.from(1.5)` of `From<f32>` and
// `From<i32>`. What an argument's own type cannot be rules a candidate out; of the rest the one that fits without conversions is
// taken, then the one whose result is what the call's place expects.
#include "lang/sema/check/calls/select.h"
#include "lang/sema/check/calls/hints.h"
#include "lang/sema/check/calls/members.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/exprs/literals.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/traits/generics.h"
#include "lang/sema/check/types/canonical.h"
#include "lang/sema/check/types/generic_args.h"

#include "base/text.h"

namespace vortex::lang {
namespace {

bool isWildcard(const syn::Expr* expr) { return expr->is<syn::ClosureExpr>() || expr->is<syn::DotNameExpr>(); }

}  // namespace

/// How well a candidate takes the arguments: none if it cannot.
static std::optional<int> fitOf(BodyState& body, const Member& candidate, Type self, const syn::CallExpr* call,
                                const std::vector<Expr*>& args, bool hasReceiver, Type expected) {
  auto* function = candidate.item->as<syn::FunctionItem>();
  const size_t first = hasReceiver ? 1 : 0;
  if (function->params.size() != args.size() + first)
    return std::nullopt;
  FunctionCall target;
  target.item = function;
  target.impl = candidate.impl;
  target.scope = candidate.scope;
  target.selfType = self;
  GenericEnv env = genericEnv(function->generics, candidate.env);
  std::vector<const syn::Param*> params;
  for (size_t i = 0; i < args.size(); ++i) {
    const syn::Param* param = &function->params[i + first];
    for (const syn::Param& each : function->params)
      if (call->args[i].name.isPresent() && each.name.text == call->args[i].name.text)
        param = &each;
    params.push_back(param);
    if (args[i] && param->type)
      infer(body, param->type, args[i]->type, env, candidate.scope);
  }
  int fit = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    Type want = args[i] && params[i]->type ? hintFor(body, params[i]->type, env, target) : nullptr;
    if (!want || isError(want))
      continue;
    Type have = canonicalSelf(body, stripRef(args[i]->type));
    want = canonicalSelf(body, stripRef(want));
    const bool isPlain = isUntyped(body, call->args[i].value);
    if (agree(have, want))
      fit += 4;
    else if (isPlain && want->kind == TypeKind::Scalar && want->scalar != Scalar::Bool &&
             (isFloat(want->scalar) || !isFloat(have->scalar)))
      fit += 1;
    else if (have->kind != TypeKind::Scalar || want->kind != TypeKind::Scalar || !isUnsigned(have->scalar) ||
             !isUnsigned(want->scalar) || bitWidth(have->scalar) > bitWidth(want->scalar))
      return std::nullopt;  // only unsigned integers widen by themselves
  }
  // Of a parameter's type the bounds have decided when the definition was checked, before it was known that the type has more.
  constexpr int kWritten = 1 << 20;
  const int base = candidate.isWritten ? kWritten : 0;
  if (expected && function->resultType && expected->kind != TypeKind::Unit && !isError(expected)) {
    infer(body, function->resultType, expected, env, candidate.scope);
    if (Type result = hintFor(body, function->resultType, env, target); result && !isError(result))
      return agree(canonicalSelf(body, stripRef(result)), canonicalSelf(body, stripRef(expected))) ? base + fit + 2
                                                                                                   : fit - 1;
  }
  return base + fit;
}

std::optional<Member> selectMember(BodyState& body, std::vector<Member> found, Type self, const syn::CallExpr* call,
                                   bool hasReceiver, const syn::Name& name, Type expected) {
  if (found.size() == 1)
    return std::move(found.front());
  bool isOneTrait = true;
  for (const Member& each : found)
    isOneTrait = isOneTrait && each.trait && each.trait->item == found.front().trait->item;
  std::vector<Expr*> args;
  for (const syn::Arg& arg : call->args) {
    args.push_back(isOneTrait && arg.value && !isWildcard(arg.value) ? check(body, arg.value) : nullptr);
    if (args.back() && isError(args.back()))
      return std::nullopt;
  }
  std::vector<size_t> best;
  int most = 0;
  for (size_t i = 0; i < found.size() && isOneTrait; ++i) {
    const auto fit = fitOf(body, found[i], self, call, args, hasReceiver, expected);
    if (!fit || (!best.empty() && *fit < most))
      continue;
    if (*fit > most || best.empty())
      best.clear();
    most = *fit;
    best.push_back(i);
  }
  if (best.size() == 1)
    return std::move(found[best.front()]);
  if (isOneTrait && best.empty()) {
    auto builder = error(
        body, "E0307", name.range,
        base::concat("no `", found[0].trait->item->name.text, "` of `", text(body, self), "` takes these arguments"));
    for (size_t i = 0; i < found.size() && i < 3; ++i)
      builder.label(found[i].item->name.range, base::concat("`", found[i].trait->text(), "`"));
    return std::nullopt;
  }
  reportAmbiguous(body, self, found, name.text, syn::ItemKind::Function, name.range);
  return std::nullopt;
}

}  // namespace vortex::lang
