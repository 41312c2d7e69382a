// `PrimeField`: a trait that every program knows, written in Vortex itself, whose functions the operators mean for types that have it.
#include "lang/sema/check/exprs/fields.h"
#include "lang/sema/check/calls/calls.h"
#include "lang/sema/check/calls/members.h"
#include "lang/sema/check/exprs/assign.h"
#include "lang/sema/check/exprs/convert.h"
#include "lang/sema/check/exprs/operators.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/implements.h"
#include "lang/sema/check/types/canonical.h"
#include "lang/sema/check/types/generic_args.h"

#include "base/text.h"

namespace vortex::lang {

static Expr* callValues(BodyState& body, Member member, Type self, std::vector<Expr*> args, SourceRange range);

namespace {

constexpr const char* kPrimeField = R"(
pub trait PrimeField: Copy {
    const LIMBS: usize = 1
    const MODULUS: [u64; Self.LIMBS]
    fn zero() -> Self
    fn one() -> Self
    fn add(self, other: Self) -> Self
    fn sub(self, other: Self) -> Self
    fn mul(self, other: Self) -> Self
    fn eq(self, other: Self) -> bool

    fn neg(self) -> Self {
        return Self.zero().sub(self)
    }

    fn div(self, other: Self) -> Self {
        return self.mul(other.inverse())
    }

    fn pow(self, n: u64) -> Self {
        var result = Self.one()
        var power = self
        var rest = n
        while rest != 0 {
            if rest % 2 == 1 {
                result = result.mul(power)
            }
            power = power.mul(power)
            rest = rest / 2
        }
        return result
    }

    fn from_int(n: u64) -> Self {
        var result = Self.zero()
        var power = Self.one()
        var rest = n
        while rest != 0 {
            if rest % 2 == 1 {
                result = result.add(power)
            }
            power = power.add(power)
            rest = rest / 2
        }
        return result
    }

    // To the power of MODULUS - 2, whose limbs are computed from the lowest up.
    fn inverse(self) -> Self {
        var result = Self.one()
        var power = self
        var borrow: u64 = 2
        for i in 0..Self.LIMBS {
            let limb = Self.MODULUS[i]
            @unchecked(overflow)
            var rest = limb - borrow
            borrow = if limb < borrow { 1 } else { 0 }
            var bits: u64 = 0
            while rest != 0 || (bits < 64 && i + 1 < Self.LIMBS) {
                if rest % 2 == 1 {
                    result = result.mul(power)
                }
                power = power.mul(power)
                rest = rest / 2
                bits += 1
            }
        }
        return result
    }

    // To the power of (MODULUS - 1) / n of the first number for which that has all n powers: half of all numbers do.
    fn root_of_unity(n: u64) -> Self {
        assert(n != 0 && (n & (n - 1)) == 0, "root_of_unity: the order is not a power of two")
        assert((Self.MODULUS[0] - 1) % n == 0, "root_of_unity: the order does not divide MODULUS - 1")
        var base = Self.one()
        var found = Self.one()
        var isFound = n == 1
        while !isFound {
            base = base.add(Self.one())
            found = Self.one()
            var power = base
            var skipped = n
            for i in 0..Self.LIMBS {
                var rest = Self.MODULUS[i]
                for bit in 0..64 {
                    if skipped > 1 {
                        skipped = skipped / 2
                    } else {
                        if rest % 2 == 1 {
                            found = found.mul(power)
                        }
                        power = power.mul(power)
                    }
                    rest = rest / 2
                }
            }
            isFound = !found.pow(n / 2).eq(Self.one())
        }
        return found
    }
}
)";

std::string_view fieldFunction(BinaryOp op) {
  switch (op) {
  case BinaryOp::Add: return "add";
  case BinaryOp::Sub: return "sub";
  case BinaryOp::Mul: return "mul";
  case BinaryOp::Div: return "div";
  case BinaryOp::Pow: return "pow";
  case BinaryOp::Eq:
  case BinaryOp::Ne: return "eq";
  default: return "";
  }
}

}  // namespace

const Symbol* Modules::primeField(bool load) {
  if (!prelude_ && load) {
    prelude_ = loadModule(session_.sources.addText("<PrimeField>", kPrimeField), "");
    VORTEX_CHECK(prelude_->find("PrimeField"));
  }
  return prelude_ ? prelude_->find("PrimeField") : nullptr;
}

/// Have values of the type the operators of a field? Only structs can, and parameters that stand for them.
bool isField(BodyState& body, Type type) {
  const Symbol* symbol = type->kind == TypeKind::Struct ? body.session.modules.primeField(false) : nullptr;
  if (!symbol)
    return false;
  GenericValue value;
  value.kind = GenericValue::Kind::Type;
  value.type = canonicalSelf(body, type);
  return hasTrait(body, value, {symbol->item->as<syn::TraitItem>(), symbol->scope, std::nullopt});
}

Expr* fieldCall(BodyState& body, Type field, std::string_view function, std::vector<Expr*> args, SourceRange range) {
  const Symbol* symbol = body.session.modules.primeField(true);
  const Type self = canonicalSelf(body, field);
  std::vector<Member> found = traitMembers(
      body, self, {symbol->item->as<syn::TraitItem>(), symbol->scope, std::nullopt}, function, syn::ItemKind::Function);
  return found.empty() ? errorExpr(body, range)
                       : callValues(body, std::move(found.front()), self, std::move(args), range);
}

/// The call that an operator between elements of fields means; null if neither side is one.
Expr* fieldBinary(BodyState& body, BinaryOp op, Expr* lhs, Expr* rhs, SourceRange range, SourceRange opRange) {
  const bool isLeft = isField(body, lhs->type), isRight = isField(body, rhs->type);
  const std::string_view function = fieldFunction(op);
  if ((!isLeft && !isRight) || function.empty())
    return nullptr;
  const auto isInt = [](const Expr* expr) {
    return expr->type->kind == TypeKind::Scalar && isInteger(expr->type->scalar);
  };
  if (op == BinaryOp::Pow) {
    if (!isLeft || !isInt(rhs) || (rhs->kind == ExprKind::Int && rhs->intValue < 0)) {
      error(body, "E0303", opRange,
            base::concat("`**` of `", text(body, lhs->type), "` takes a whole number that is not negative"))
          .label(rhs->range, "`" + text(body, rhs->type) + "`")
          .help("negative powers are those of the inverse: `x.inverse() ** n`");
      return errorExpr(body, range);
    }
    return fieldCall(body, lhs->type, function, {lhs, cast(body, rhs, body.types.scalar(Scalar::U64))}, range);
  }
  // A whole number that is written out means itself in the field.
  for (Expr** side : {&lhs, &rhs}) {
    const Type field = side == &lhs ? rhs->type : lhs->type;
    if ((*side)->kind == ExprKind::Int && isInt(*side) && (*side)->intValue >= 0 && isField(body, field))
      *side =
          fieldCall(body, field, "from_int",
                    {makeInt(body, (*side)->intValue, body.types.scalar(Scalar::U64), (*side)->range)}, (*side)->range);
    if (isError(*side))
      return errorExpr(body, range);
  }
  if (lhs->type != rhs->type) {
    auto builder = error(body, "E0303", opRange,
                         base::concat("`", operatorText(op), "` needs operands of one field, not `",
                                      text(body, lhs->type), "` and `", text(body, rhs->type), "`"));
    builder.label(lhs->range, "`" + text(body, lhs->type) + "`").label(rhs->range, "`" + text(body, rhs->type) + "`");
    const Type field = isLeft ? lhs->type : rhs->type;
    if (const Expr* other = isLeft ? rhs : lhs; isInt(other))
      builder.help(base::concat("make it an element: `", text(body, field), ".from_int(",
                                castText(body, other, body.types.scalar(Scalar::U64), ""), ")`"));
    return errorExpr(body, range);
  }
  Expr* out = fieldCall(body, lhs->type, function, {lhs, rhs}, range);
  if (op != BinaryOp::Ne || isError(out))
    return out;
  Expr* differs = make(body, ExprKind::Unary, body.types.boolean(), range, {out});
  differs->unaryOp = UnaryOp::Not;
  return differs;
}

/// A call of a function whose arguments are checked already.
static Expr* callValues(BodyState& body, Member member, Type self, std::vector<Expr*> args, SourceRange range) {
  FunctionCall target;
  target.item = member.item->as<syn::FunctionItem>();
  target.scope = member.scope;
  target.selfType = self;
  target.impl = member.impl;
  if (!mayCall(body, target.item, range, false))
    return errorExpr(body, range);
  InstanceRequest request = body.instance->request(target.item, target.scope, range);
  request.selfType = self;
  request.impl = member.impl;
  request.generics = genericEnv(target.item->generics, std::move(member.env));
  if (inKernel(body))
    placeTensors(request, args);
  Instance* callee = body.session.instances.instantiate(std::move(request));
  return callee ? finishCall(body, *callee->function, target, args, range) : errorExpr(body, range);
}

namespace {

bool isRepeatable(const Expr& expr) {
  return expr.kind == ExprKind::Int || expr.kind == ExprKind::Var || expr.kind == ExprKind::DimValue;
}

}  // namespace

/// The place once more, to be read; what its indices compute is computed once, before.
Expr* repeatedPlace(BodyState& body, Expr* place, std::vector<Expr*>& before) {
  Expr* copy = make(body, place->kind, place->type, place->range);
  *copy = *place;
  for (size_t i = 0; i < copy->args.size(); ++i) {
    if (i > 0 && !isRepeatable(*place->args[i]))
      place->args[i] = temporary(body, place->args[i], before);
    copy->args[i] = repeatedPlace(body, place->args[i], before);
  }
  return copy;
}

/// `x += y` of fields is `x = x + y` with the place of x evaluated once.
Expr* fieldAssign(BodyState& body, const syn::AssignExpr* expr, BinaryOp op, Expr* target, Expr* value) {
  if (!checkWritable(body, target, expr->target->range, "assigned"))
    return errorExpr(body, expr->range);
  std::vector<Expr*> all;
  Expr* old = repeatedPlace(body, target, all);
  Expr* result = fieldBinary(body, op, old, value, expr->range, expr->opRange);
  if (!result)
    badOperands(body, op, old, value, expr->opRange);
  if (!result || isError(result))
    return errorExpr(body, expr->range);
  Expr* assign = make(body, ExprKind::Assign, body.types.unit(), expr->range, {target, result});
  if (all.empty())
    return assign;
  all.push_back(assign);
  return make(body, ExprKind::Block, body.types.unit(), expr->range, std::move(all));
}

}  // namespace vortex::lang
