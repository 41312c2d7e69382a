#include "lang/kernel/distribute.h"

namespace vortex::lang {
namespace {

bool isLocalTensor(Type type) { return type && type->isTensor() && !type->isValue && type->space == Space::Local; }

/// The tensor type of an array of tensors, of arrays of them, or of one.
Type innermost(Type type) {
  while (type && type->kind == TypeKind::Array)
    type = type->elem;
  return type;
}

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
    return root && isLocalTensor(innermost(root->type)) ? root : nullptr;
  }

  void collect(const Expr& expr) {
    const bool isPart = expr.kind == ExprKind::Element || expr.kind == ExprKind::Slice;
    if (isPart && stripRef(expr.args[0]->type)->isTensor())
      if (const Variable* local = localOf(*expr.args[0])) {
        uses_[local].element |= expr.kind == ExprKind::Element;
        uses_[local].writtenInParts |= expr.kind == ExprKind::Slice;
      }
    if (expr.kind == ExprKind::Assign && (tensorElement(*expr.args[0]) || expr.args[0]->kind == ExprKind::Slice))
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
      Type type = innermost(variable->type);
      if (!isLocalTensor(type) || (hasThreads && !uses.tile) || roots_.rootOf(nameOf(variable)) != variable)
        continue;
      Type owner = uses.writtenInParts || !uses.tile ? types_.tensor(type->elem, type->shape, Space::Shared)
                                                     : types_.tensorValue(type->elem, type->shape);
      becomes_[variable] = replaced(variable->type, owner);
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
    owner = innermost(owner);
    if (old->kind == TypeKind::Ref)
      return types_.ref(replaced(old->elem, owner), old->isMutable);
    if (old->kind == TypeKind::Array)
      return types_.array(replaced(old->elem, owner), old->count);
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
    if (!expr.type || !isLocalTensor(innermost(stripRef(expr.type))))
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
    if (!isLocalTensor(innermost(stripRef(variable.type))))
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
    const Expr* named = arg;
    while (named->kind == ExprKind::Element && stripRef(named->args[0]->type)->kind == TypeKind::Array)
      named = named->args[0];  // one of an array of tensors
    const bool isName = named->kind == ExprKind::Var && named->variable == variable;
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
  if (expr.kind == ExprKind::Assign && tensorElement(*expr.args[0]) && expr.uniformity == Uniformity::PerThread)
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

/// What is still local memory is an array of each thread; a tile whose owner is not found (reached through references that differ) is refused.
void findTileUses(const Expr& expr, diag::DiagnosticSink& sink) {
  for (size_t i = 0; i < expr.args.size(); ++i) {
    const Expr* arg = expr.args[i];
    if (!arg)
      continue;
    if (isLocalTensor(arg->type) && !namesOnly(expr, i)) {
      sink.error("E0409", arg->range,
                 "this `@local` tensor is used as a tile, but which tensor it is differs between executions")
          .help("use the tensor by its name, or declare it `@shared`");
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
