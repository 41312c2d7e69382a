#include "lang/sema/kernel/shared_budget.h"

#include "base/text.h"
#include "lang/sema/byte_sizes.h"

#include <algorithm>

namespace vortex::lang {
namespace {

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
    const base::WideBytes bytesBefore = bytes_;
    for (const Expr* arg : expr.args)
      if (arg)
        visit(*arg);
    if (expr.kind == ExprKind::Let && expr.args.empty() && isShared(expr.variable->type)) {
      alive_.push_back(expr.variable);
      bytes_ = base::addBytes(bytes_, bytesOf(expr.variable->type));
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
  base::WideBytes most() const { return most_; }
  const std::vector<const Variable*>& largest() const { return largest_; }

private:
  std::vector<const Variable*> alive_, largest_;
  base::WideBytes bytes_ = 0, most_ = 0;
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
  const bool runsOnCpu = isAdvice && budget.most() <= base::kMostSharedBytes;
  std::string message = base::concat("`", kernel.name, "` needs ", base::showBytes(budget.most()),
                                     " bytes of shared memory, ", target, " has ", limit, " per block");
  if (isAdvice && !runsOnCpu)
    message += base::concat(" and the CPU ", base::kMostSharedBytes);
  auto builder = runsOnCpu ? sink.warning("W0552", tensors[0]->range, message + " and no GPU more")
                           : sink.error("E0552", tensors[0]->range, message);
  builder.primary(
      base::concat("`", tensors[0]->name, "` takes ", base::showBytes(bytesOf(tensors[0]->type)), " bytes"));
  for (size_t i = 1; i < tensors.size(); ++i)
    builder.label(tensors[i]->range, base::concat("`", tensors[i]->name, "` takes ",
                                                  base::showBytes(bytesOf(tensors[i]->type)), " bytes"));
  if (tensors.size() == 1)
    builder.label(kernel.nameRange, "in this kernel");
  builder.help("make the tiles smaller, or put tensors that are not needed together into blocks `{ … }` of their own");
}

}  // namespace vortex::lang
