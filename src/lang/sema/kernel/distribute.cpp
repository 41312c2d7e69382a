#include "lang/sema/kernel/distribute.h"

namespace vortex::lang {
namespace {

bool isLocalTensor(Type type) { return type && type->isTensor() && !type->isValue && type->space == Space::Local; }

/// The operand is named or subscripted, not worked on.
bool namesOnly(const Expr& user, size_t operand) {
  switch (user.kind) {
  case ExprKind::Ref:
  case ExprKind::Deref: return true;
  case ExprKind::Let:
    return user.variable && (user.variable->type->kind == TypeKind::Ref || !user.variable->type->isValue);
  case ExprKind::Slice:
  case ExprKind::Element: return operand == 0;
  case ExprKind::Builtin: return user.builtin == Builtin::Extent || user.builtin == Builtin::Len;
  default: return false;
  }
}

struct Uses {
  bool tile = false, element = false, writtenInParts = false;
};

class Distribution {
public:
  Distribution(Program& program, Function& kernel, const Roots& roots)
      : types_(program.types), kernel_(kernel), roots_(roots) {}

  std::set<const Variable*> run() {
    collect(*kernel_.body);
    decide();
    if (!becomes_.empty())
      retype(*kernel_.body);
    std::set<const Variable*> result;
    for (const auto& [variable, type] : becomes_)
      result.insert(variable);
    return result;
  }

private:
  /// The local tensor declared in this kernel that the place is (part of).
  const Variable* localOf(const Expr& place) const {
    const Variable* root = roots_.rootOf(place);
    return root && isLocalTensor(root->type) ? root : nullptr;
  }

  void collect(const Expr& expr) {
    if (expr.kind == ExprKind::Element || expr.kind == ExprKind::Slice)
      if (const Variable* local = localOf(*expr.args[0])) {
        uses_[local].element |= expr.kind == ExprKind::Element;
        uses_[local].writtenInParts |= expr.kind == ExprKind::Slice;
      }
    if (expr.kind == ExprKind::Assign &&
        (expr.args[0]->kind == ExprKind::Element || expr.args[0]->kind == ExprKind::Slice))
      if (const Variable* local = localOf(*expr.args[0]))
        uses_[local].writtenInParts = true;
    for (size_t i = 0; i < expr.args.size(); ++i) {
      const Expr* arg = expr.args[i];
      if (!arg)
        continue;
      if (isLocalTensor(arg->type) && !namesOnly(expr, i))
        if (const Variable* local = localOf(*arg))
          uses_[local].tile = true;
      collect(*arg);
    }
    for (const SliceDim& slice : expr.slices)
      for (const Expr* part : {slice.begin, slice.end})
        if (part)
          collect(*part);
  }

  void decide() {
    const bool hasThreads = kernel_.kernel->gridKind != GridKind::WholeTensor;
    for (const auto& owned : kernel_.variables) {
      const Variable* variable = owned.get();
      auto found = uses_.find(variable);
      const Uses uses = found == uses_.end() ? Uses() : found->second;
      if (!isLocalTensor(variable->type) || (hasThreads && !uses.tile) || roots_.rootOf(nameOf(variable)) != variable)
        continue;
      Type type = variable->type;
      becomes_[variable] = uses.writtenInParts || !uses.tile ? types_.tensor(type->elem, type->shape, Space::Shared)
                                                             : types_.tensorValue(type->elem, type->shape);
    }
  }

  static Expr nameOf(const Variable* variable) {
    Expr name;
    name.kind = ExprKind::Var;
    name.variable = const_cast<Variable*>(variable);
    return name;
  }

  /// The type under references, as the place's new owner has it.
  Type replaced(Type old, Type owner) {
    if (old->kind == TypeKind::Ref)
      return types_.ref(replaced(old->elem, owner), old->isMutable);
    return owner->isValue ? types_.tensorValue(old->elem, old->shape)
                          : types_.tensor(old->elem, old->shape, owner->space);
  }

  /// Operands first; a `let` of another name for the tensor before the uses of that name.
  void retype(Expr& expr) {
    for (Expr* arg : expr.args)
      if (arg)
        retype(*arg);
    for (SliceDim& slice : expr.slices)
      for (Expr* part : {slice.begin, slice.end})
        if (part)
          retype(*part);
    if (expr.kind == ExprKind::Let && expr.variable) {
      retypeVariable(expr);
      return;
    }
    if (!expr.type || !isLocalTensor(stripRef(expr.type)))
      return;
    if (const Variable* root = roots_.rootOf(expr))
      if (auto found = becomes_.find(root); found != becomes_.end())
        expr.type = replaced(expr.type, found->second);
  }

  void retypeVariable(Expr& let) {
    Variable& variable = *let.variable;
    if (auto found = becomes_.find(&variable); found != becomes_.end()) {
      variable.type = found->second;
      return;
    }
    if (!isLocalTensor(stripRef(variable.type)))
      return;
    if (const Variable* root = roots_.rootOf(nameOf(&variable)))
      if (auto found = becomes_.find(root); found != becomes_.end())
        variable.type = replaced(variable.type, found->second);
  }

  TypeContext& types_;
  Function& kernel_;
  const Roots& roots_;
  std::map<const Variable*, Uses> uses_;
  std::map<const Variable*, Type> becomes_;
};

const Expr* firstTileUse(const Expr& expr, const Variable* variable) {
  for (const Expr* arg : expr.args) {
    if (!arg)
      continue;
    const bool isName = arg->kind == ExprKind::Var && arg->variable == variable;
    if (isName && expr.kind != ExprKind::Element && expr.kind != ExprKind::Slice && expr.kind != ExprKind::Let &&
        expr.kind != ExprKind::Ref)
      return &expr;
    if (const Expr* inner = firstTileUse(*arg, variable))
      return inner;
  }
  return nullptr;
}

void findThreadWrites(const Expr& expr, const Function& kernel, const Roots& roots,
                      const std::set<const Variable*>& blockTiles, diag::DiagnosticSink& sink) {
  if (expr.kind == ExprKind::Assign && expr.args[0]->kind == ExprKind::Element &&
      expr.uniformity == Uniformity::PerThread)
    if (const Variable* root = roots.rootOf(*expr.args[0]); blockTiles.contains(root)) {
      auto builder =
          sink.error("E0468", expr.args[0]->range,
                     "one thread writes an element of `" + root->name + "`, which is a tile of the whole block");
      builder.primary("written by one thread");
      if (const Expr* use = firstTileUse(*kernel.body, root))
        builder.label(use->range, "used as a tile here");
      builder.label(root->range, "declared here");
      builder.help("use two tensors: an array of each thread, and a tile; or declare it `@shared`");
      return;
    }
  for (const Expr* arg : expr.args)
    if (arg)
      findThreadWrites(*arg, kernel, roots, blockTiles, sink);
}

/// What is still local memory is an array of each thread, or one of an array of tensors.
void findTileUses(const Expr& expr, diag::DiagnosticSink& sink) {
  for (size_t i = 0; i < expr.args.size(); ++i) {
    const Expr* arg = expr.args[i];
    if (!arg)
      continue;
    if (isLocalTensor(arg->type) && !namesOnly(expr, i)) {
      sink.error("E0409", arg->range, "tiles in arrays of `@local` tensors are not supported yet")
          .help("declare the tiles one by one, or an array of `@shared` tensors");
      return;
    }
    findTileUses(*arg, sink);
  }
}

}  // namespace

std::set<const Variable*> distributeLocals(Program& program, Function& kernel, const Roots& roots) {
  return Distribution(program, kernel, roots).run();
}

void checkBlockTiles(const Function& kernel, const Roots& roots, const std::set<const Variable*>& blockTiles,
                     diag::DiagnosticSink& sink) {
  if (!blockTiles.empty())
    findThreadWrites(*kernel.body, kernel, roots, blockTiles, sink);
  findTileUses(*kernel.body, sink);
}

}  // namespace vortex::lang
