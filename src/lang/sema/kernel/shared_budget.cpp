#include "lang/sema/kernel/shared_budget.h"

#include "base/text.h"

#include <algorithm>

namespace vortex::lang {
namespace {

uint64_t bytesOf(Type type) {
  if (type->kind == TypeKind::Array)
    return type->count * bytesOf(type->elem);
  if (type->kind == TypeKind::Struct || type->kind == TypeKind::Tuple) {
    uint64_t sum = 0;
    for (Type elem : type->elems)
      sum += bytesOf(elem);
    return sum;
  }
  if (type->kind == TypeKind::Scalar)
    return (bitWidth(type->scalar) + 7) / 8;
  if (!type->isTensor() || type->isValue || type->space != Space::Shared)
    return 0;
  uint64_t bytes = type->elem->kind == TypeKind::Struct ? bytesOf(type->elem) : (bitWidth(type->elem->scalar) + 7) / 8;
  for (const DimExpr& extent : type->shape)
    if (auto constant = extent.asConstant();
        constant && __builtin_mul_overflow(bytes, static_cast<uint64_t>(*constant), &bytes))
      return UINT64_MAX / 2;
  return bytes;
}

bool isShared(Type type) {
  while (type->kind == TypeKind::Array)
    type = type->elem;
  return type->isTensor() && !type->isValue && type->space == Space::Shared;
}

/// Walks the block structure; the tensors alive at the largest point are kept.
class Budget {
public:
  void visit(const Expr& expr) {
    const bool isScope = expr.kind == ExprKind::Block || expr.kind == ExprKind::Inline;
    const size_t before = alive_.size();
    const uint64_t bytesBefore = bytes_;
    for (const Expr* arg : expr.args)
      if (arg)
        visit(*arg);
    if (expr.kind == ExprKind::Let && expr.args.empty() && isShared(expr.variable->type)) {
      alive_.push_back(expr.variable);
      bytes_ += std::min(bytesOf(expr.variable->type), UINT64_MAX / 2 - bytes_);
      if (bytes_ > most_) {
        most_ = bytes_;
        largest_ = alive_;
      }
    }
    if (isScope) {
      alive_.resize(before);
      bytes_ = bytesBefore;
    }
  }
  uint64_t most() const { return most_; }
  const std::vector<const Variable*>& largest() const { return largest_; }

private:
  std::vector<const Variable*> alive_, largest_;
  uint64_t bytes_ = 0, most_ = 0;
};

}  // namespace

void checkSharedBudget(const Function& kernel, uint64_t limit, const std::string& target, bool isAdvice,
                       diag::DiagnosticSink& sink) {
  Budget budget;
  if (kernel.body)
    budget.visit(*kernel.body);
  if (budget.most() <= limit || budget.largest().empty())
    return;
  std::vector<const Variable*> tensors = budget.largest();
  std::sort(tensors.begin(), tensors.end(), [](const Variable* a, const Variable* b) {
    return std::pair(bytesOf(b->type), a->index) < std::pair(bytesOf(a->type), b->index);
  });
  std::string message = base::concat("`", kernel.name, "` needs ", budget.most(), " bytes of shared memory, ", target,
                                     " has ", limit, " per block");
  auto builder = isAdvice ? sink.warning("W0552", tensors[0]->range, message + " and no GPU more")
                          : sink.error("E0552", tensors[0]->range, message);
  builder.primary(base::concat("`", tensors[0]->name, "` takes ", bytesOf(tensors[0]->type), " bytes"));
  for (size_t i = 1; i < tensors.size(); ++i)
    builder.label(tensors[i]->range,
                  base::concat("`", tensors[i]->name, "` takes ", bytesOf(tensors[i]->type), " bytes"));
  if (tensors.size() == 1)
    builder.label(kernel.nameRange, "in this kernel");
  builder.help("make the tiles smaller, or put tensors that are not needed together into blocks `{ … }` of their own");
}

}  // namespace vortex::lang
