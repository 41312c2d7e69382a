#include "lang/sema/check/constants/limits.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/traits/traits.h"
#include "lang/sema/integers.h"

#include <limits>

namespace vortex::lang {

double largest(Scalar scalar) {
  switch (scalar) {
  case Scalar::F8E4M3: return 448;
  case Scalar::F8E5M2: return 57344;
  case Scalar::F16: return 65504;
  case Scalar::BF16: return 3.3895313892515355e38;
  case Scalar::F32: return 3.4028234663852886e38;
  default: return std::numeric_limits<double>::max();
  }
}

static double epsilon(Scalar scalar) {
  switch (scalar) {
  case Scalar::F8E4M3: return 0x1p-3;
  case Scalar::F8E5M2: return 0x1p-2;
  case Scalar::F16: return 0x1p-10;
  case Scalar::BF16: return 0x1p-7;
  case Scalar::F32: return 0x1p-23;
  default: return 0x1p-52;
  }
}

Expr* numberLimit(BodyState& body, Type type, std::string_view name, SourceRange range) {
  if (type->kind != TypeKind::Scalar || type->scalar == Scalar::Bool)
    return nullptr;
  if (name == "BITS")
    return makeInt(body, bitWidth(type->scalar), body.types.scalar(Scalar::Usize), range);
  const auto* param = static_cast<const BoundParam*>(type->param);
  const bool hasFraction = isFloat(type->scalar) && (!param || param->builtins.has(BuiltinTrait::Float));
  if (name != "MIN" && name != "MAX" && (name != "EPSILON" || !hasFraction))
    return nullptr;
  if (!isFloat(type->scalar))
    return makeInt(body, name == "MAX" ? highest(type->scalar) : lowest(type->scalar), type, range);
  Expr* out = make(body, ExprKind::Float, type, range);
  out->floatValue = name == "EPSILON" ? epsilon(type->scalar)
                    : name == "MAX"   ? largest(type->scalar)
                                      : -largest(type->scalar);
  return out;
}

}  // namespace vortex::lang
