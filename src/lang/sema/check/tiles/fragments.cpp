#include "lang/sema/check/tiles/fragments.h"
#include "lang/sema/check/constants/constants.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/types/shapes.h"

#include "base/text.h"

#include <algorithm>

namespace vortex::lang {

/// A product, perhaps converted: what decides the whole shape of a fragment.
static bool isProduct(const Expr* expr) {
  while (expr->kind == ExprKind::Cast)
    expr = expr->args[0];
  return expr->kind == ExprKind::Dot;
}

/// `acc += a @ b` where acc is written as one thread's part of the product: acc takes the product's shape. True: noted or reported.
bool adoptFragment(BodyState& body, const Expr* accumulator, const Expr* product) {
  if (accumulator->kind != ExprKind::Var || !inKernel(body) || !product->type->isTensor() || !isProduct(product))
    return false;
  const Variable* variable = accumulator->variable;
  Type part = variable->type, whole = product->type;
  if (!part->isTensor() || part->isValue || part->space != Space::Local || part->rank() != 2 || whole->rank() != 2 ||
      !isConstantShape(part) || !isConstantShape(whole) || sameShape(body, part, whole) || !variable->fragment.empty())
    return false;
  const int64_t p = *part->shape[0].asConstant(), q = *part->shape[1].asConstant();
  const int64_t P = *whole->shape[0].asConstant(), Q = *whole->shape[1].asConstant();
  const auto fail = [&](std::string message) {
    const_cast<Variable*>(variable)->type = body.types.error();  // one error for one cause
    auto builder = error(body, "E0465", accumulator->range, std::move(message));
    builder.primary("written as `" + shapeText(body, part) + "` per thread");
    builder.label(product->range, "a product of `" + shapeText(body, whole) + "`");
    return builder;
  };
  if (p <= 0 || q <= 0 || P % p != 0 || Q % q != 0) {
    fail("the accumulator does not divide the product").help("declare the accumulator with the product's shape");
    return true;
  }
  if (!body.function->isKernel) {
    fail("fragments are declared in kernels, where the number of threads is known")
        .help("declare the accumulator with the product's shape");
    return true;
  }
  const int64_t needed = (P / p) * (Q / q);
  std::vector<Expr*>& block = body.function->kernel->block;
  int64_t threads = 1;
  bool isKnown = true;
  for (Expr* size : block) {
    bool reported = false;
    const Expr* value = fold(body, clone(body, size, size->range), reported);
    isKnown = isKnown && value && value->kind == ExprKind::Int;
    threads *= isKnown ? static_cast<int64_t>(value->intValue) : 1;
  }
  if (block.empty())
    block = {makeInt(body, needed, usize(body), accumulator->range)};
  else if (!isKnown || threads != needed) {
    auto builder = fail(
        isKnown ? base::concat("the parts of ", threads, " threads do not make up the product, ", needed, " are needed")
                : std::string("the number of threads must be known to divide the product among them"));
    builder.label(block[0]->range, "the threads of a block");
    builder.help("declare the accumulator with the product's shape, whatever the number of threads");
    return true;
  }
  body.fragments[variable->range.begin] = {part->shape, whole->shape};
  return body.restart = true;
}

/// The declared type of a local tensor, or the whole of which a product showed it to be a part.
Type wholeOfFragment(const BodyState& body, Type declared, const syn::Name& name) {
  auto found = body.fragments.find(name.range.begin);
  if (found == body.fragments.end() || !declared->isTensor())
    return declared;
  return body.types.tensor(declared->elem, found->second.whole, declared->space);
}

}  // namespace vortex::lang
