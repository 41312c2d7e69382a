#include "lang/sema/builtin/call.h"
#include "lang/sema/builtin/math.h"
#include "lang/sema/builtin/table.h"
#include "lang/sema/check/calls/calls.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/exprs/literals.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/traits/bounds.h"
#include "lang/sema/check/traits/traits.h"

#include "base/text.h"

namespace vortex::lang {
namespace {

struct ParamList {
  std::vector<std::string_view> names;
  size_t required = 0;
  bool isVariadic = false;
};

ParamList parseParams(std::string_view text) {
  ParamList out;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    std::string_view name = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 2);
    if (name == "*") {
      out.isVariadic = true;
      break;
    }
    if (name.back() == '?')
      name.remove_suffix(1);
    else
      ++out.required;
    out.names.push_back(name);
  }
  return out;
}

}  // namespace

Expr* BuiltinCall::arg(size_t i, Type hint) {
  return i == 0 && receiver ? deref(body, receiver) : value(body, placed[i], hint);
}

Expr* BuiltinCall::rawArg(size_t i, Type hint) { return i == 0 && receiver ? receiver : check(body, placed[i], hint); }

bool BuiltinCall::isUntyped(size_t i) const { return !(i == 0 && receiver) && lang::isUntyped(body, placed[i]); }

Expr* BuiltinCall::failed() { return errorExpr(body, call->range); }

Expr* BuiltinCall::wrongArg(const Expr* arg, std::string_view needs) {
  const bool isFloat = row.check == checkFloatMath || row.check == checkFloatTest;
  const BuiltinTrait trait = isFloat                         ? BuiltinTrait::Float
                             : row.check == checkIntegerMath ? BuiltinTrait::Integer
                                                             : BuiltinTrait::Numeric;
  if (!grants(body, arg->type, {trait}, arg->range, base::concat("`", row.name, "`")))
    return failed();
  if (isError(arg))
    return failed();
  auto builder = error(body, "E0303", arg->range,
                       base::concat("`", row.name, "` needs ", needs, ", not `", text(body, arg->type), "`"));
  if (const Type type = stripRef(arg->type); type->isTensor() && type->elem->isScalar(Scalar::Bool))
    builder.help("count with numbers: `select(condition, 1, 0)`, or `(condition) as i32`");
  return failed();
}

Expr* callBuiltin(BodyState& body, const BuiltinRow& row, const syn::CallExpr* call, const syn::Name& name,
                  Expr* receiver, syn::List<syn::GenericArg> genericArgs, Type expected) {
  if (row.place == BuiltinPlace::Kernel && body.instance && !inKernel(body)) {
    auto builder = error(body, "E0406", name.range, base::concat("`", row.name, "` exists only in kernels"));
    if ((row.receivers & kTensor) != 0)
      builder.help("move the expression into a `kernel`, or read the data back with `.to_host()`");
    builder.emit();
    return failedCall(body, call);
  }
  if (row.place == BuiltinPlace::Host && inKernel(body)) {
    error(body, "E0407", name.range, base::concat("`", row.name, "` exists only in host code, not in kernels"));
    return failedCall(body, call);
  }
  const ParamList params = parseParams(row.params);
  BuiltinCall made{body, row, call, name.range, receiver, genericArgs, expected, {}};
  if (!placeArgs(body, call, params.names, receiver ? 1 : 0, params.required, made.placed, row.name, params.isVariadic))
    return failedCall(body, call);
  return row.check(made);
}

}  // namespace vortex::lang
