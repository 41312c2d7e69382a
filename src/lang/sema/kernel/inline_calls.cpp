#include "lang/sema/kernel/inline_calls.h"
#include "lang/sema/kernel/order_jumps.h"

#include "lang/sema/children.h"
#include "lang/sema/element.h"

#include "base/check.h"
#include "base/text.h"

#include <algorithm>
#include <set>

namespace vortex::lang {

Variable* cloneVariable(const Variable& variable, CloneMap& map) {
  auto copy = std::make_unique<Variable>(variable);
  copy->type = substituteDims(variable.type, map.program.types, map.dims);
  copy->isParam = false;
  copy->index = static_cast<uint32_t>(map.into.variables.size());
  Variable* result = copy.get();
  map.into.variables.push_back(std::move(copy));
  map.variables[&variable] = result;
  return result;
}

static Variable* mapped(Variable* variable, CloneMap& map) {
  if (!variable)
    return nullptr;
  auto found = map.variables.find(variable);
  return found != map.variables.end() ? found->second : cloneVariable(*variable, map);
}

Expr* cloneExpr(const Expr& expr, CloneMap& map) {
  Expr* copy = map.program.newExpr(expr.kind, substituteDims(expr.type, map.program.types, map.dims), expr.range);
  Type type = copy->type;
  *copy = expr;
  copy->type = type;
  copy->variable = mapped(expr.variable, map);
  copy->indexVariable = mapped(expr.indexVariable, map);
  for (Variable*& variable : copy->variables)
    variable = mapped(variable, map);
  for (Expr*& arg : copy->args)
    arg = arg ? cloneExpr(*arg, map) : nullptr;
  for (SliceDim& slice : copy->slices) {
    slice.begin = slice.begin ? cloneExpr(*slice.begin, map) : nullptr;
    slice.end = slice.end ? cloneExpr(*slice.end, map) : nullptr;
  }
  for (Expr*& size : copy->launch.grid)
    size = cloneExpr(*size, map);
  for (Expr*& size : copy->launch.block)
    size = cloneExpr(*size, map);
  copy->dim = expr.dim.substitute(map.dims);
  return copy;
}

namespace {

/// Tensor type reached from a parameter's type through references and fields; null if there is none.
Type tensorAt(Type type, const std::vector<uint32_t>& fieldPath) {
  type = stripRef(type);
  for (uint32_t field : fieldPath) {
    if (!type || field >= (type->kind == TypeKind::Array ? type->count : type->elems.size()))
      return nullptr;
    type = stripRef(partOf(type, field));
  }
  return type && type->isTensor() ? type : nullptr;
}

bool isHostOnly(Builtin builtin) { return builtin >= Builtin::AssertClose; }

class Inliner {
public:
  /// `root`: the kernel that keeps the functions that stay functions.
  Inliner(Program& program, Function& kernel, Function& root, diag::DiagnosticSink& sink)
      : program_(program), kernel_(kernel), root_(root), sink_(sink), most_(program.exprs.size() + kMaxExprs) {}

  bool run() {
    active_.push_back(&kernel_);
    if (kernel_.body)
      visit(kernel_.body);
    if (kernel_.body && ok_)
      orderJumps(program_, kernel_);
    return ok_;
  }

private:
  static constexpr size_t kMaxExprs = 150'000;  ///< of one kernel: about what LLVM still compiles in a minute

  void visit(Expr* expr) {
    if (!expr || !ok_)
      return;
    // The checker has refused both where they are written.
    VORTEX_CHECK(expr->kind != ExprKind::Launch);
    VORTEX_CHECK(expr->kind != ExprKind::Builtin || !isHostOnly(expr->builtin));
    if (expr->kind == ExprKind::Closure)
      return failClosure(*expr);
    if (expr->kind == ExprKind::Let && isClosure(expr->variable->type))
      return nameClosure(*expr);
    const bool mayTakeClosures = expr->kind == ExprKind::Call || expr->kind == ExprKind::CallClosure;
    for (Expr* arg : expr->args)
      if (arg && !(mayTakeClosures && isClosure(arg->type)))
        visit(arg);
    for (SliceDim& slice : expr->slices) {
      visit(slice.begin);
      visit(slice.end);
    }
    if (expr->kind == ExprKind::Call)
      expand(expr);
    else if (expr->kind == ExprKind::CallClosure && ok_)
      expandClosure(expr);
  }

  static bool isClosure(Type type) { return stripRef(type)->kind == TypeKind::Closure; }

  void failClosure(const Expr& at) {
    if (!ok_)
      return;
    ok_ = false;
    sink_.error("E0407", at.range, "which closure is called in a kernel must be known when it is compiled")
        .primary("inside kernel `" + kernel_.name + "`")
        .help("name it by a `let`, or pass it on as an argument; what depends on data is `if` and `match`");
  }

  /// A closure, and the functions in whose bodies it is written.
  struct KnownClosure {
    const Expr* expr = nullptr;
    std::vector<const Function*> active;
  };

  /// The closure that an expression of closure type is; none where only the running kernel would know.
  std::optional<KnownClosure> closureOf(const Expr& expr) {
    switch (expr.kind) {
    case ExprKind::Closure: return KnownClosure{&expr, active_};
    case ExprKind::Ref:
    case ExprKind::Deref: return closureOf(*expr.args[0]);
    case ExprKind::Var: {
      auto found = closures_.find(expr.variable);
      return found == closures_.end() ? std::nullopt : std::optional(found->second);
    }
    default: return std::nullopt;
    }
  }

  /// A `let` of a closure is a name for it: nothing of it is left.
  void nameClosure(Expr& let) {
    auto closure = let.args.empty() || let.variable->isVar ? std::nullopt : closureOf(*let.args[0]);
    if (!closure)
      return failClosure(let.args.empty() ? let : *let.args[0]);
    closures_[let.variable] = std::move(*closure);
    let.kind = ExprKind::Unit;
    let.args.clear();
    let.variable = nullptr;
  }

  /// What a closure mentions of the code around it is that code's own: it captures by reference.
  void keepCaptured(const Expr& expr, CloneMap& map, const std::set<const Variable*>& own) {
    const auto keep = [&](Variable* variable) {
      if (variable && !own.contains(variable))
        map.variables[variable] = variable;
    };
    keep(expr.variable);
    for (const Expr* arg : expr.args)
      if (arg)
        keepCaptured(*arg, map, own);
    for (const SliceDim& slice : expr.slices)
      for (const Expr* bound : {slice.begin, slice.end})
        if (bound)
          keepCaptured(*bound, map, own);
  }

  static void collectOwn(const Expr& expr, std::set<const Variable*>& own) {
    if (expr.kind == ExprKind::Let || expr.kind == ExprKind::For)
      own.insert(expr.variable);
    own.insert(expr.indexVariable);
    own.insert(expr.variables.begin(), expr.variables.end());
    for (const Expr* arg : expr.args)
      if (arg)
        collectOwn(*arg, own);
  }

  void expandClosure(Expr* call) {
    auto known = closureOf(*call->args[0]);
    if (!known)
      return failClosure(*call->args[0]);
    const Expr* closure = known->expr;
    constexpr size_t kMaxDepth = 100;
    if (closureDepth_ >= kMaxDepth || program_.exprs.size() > most_)
      return failTooLong(*call);
    std::set<const Variable*> own;
    collectOwn(*closure, own);
    CloneMap map{program_, kernel_, {}, {}};
    keepCaptured(*closure->args[0], map, own);
    std::vector<Expr*> parts;
    for (size_t i = 0; i < closure->variables.size(); ++i)
      passArgument(*closure->variables[i], call->args[i + 1], map, parts);
    if (!ok_)
      return;
    Expr* body = cloneExpr(*closure->args[0], map);
    parts.push_back(body);
    call->kind = ExprKind::Inline;
    call->args = std::move(parts);
    call->text = "closure";
    ++closureDepth_;
    std::swap(active_, known->active);
    visit(body);
    std::swap(active_, known->active);
    --closureDepth_;
  }

  /// The parameter as a variable of the kernel, with its value; a closure gets a name only.
  void passArgument(const Variable& param, Expr* arg, CloneMap& map, std::vector<Expr*>& parts) {
    Variable* variable = cloneVariable(param, map);
    if (isClosure(param.type)) {
      auto closure = closureOf(*arg);
      if (!closure)
        return failClosure(*arg);
      closures_[variable] = std::move(*closure);
      return;
    }
    Expr* let = program_.newExpr(ExprKind::Let, program_.types.unit(), arg->range);
    let->variable = variable;
    let->args = {arg};
    parts.push_back(let);
  }

  void failTooLong(const Expr& call) {
    ok_ = false;
    sink_.error("E0454", call.range, "the calls in this kernel expand to too much code")
        .primary("while expanding this call");
  }

  void expand(Expr* call) {
    Function* callee = call->function;
    if (!callee || !callee->body) {
      ok_ = false;  // reported by the type checker
      return;
    }
    if (std::find(active_.begin(), active_.end(), callee) != active_.end()) {
      ok_ = false;
      sink_.error("E0454", call->range, "`" + callee->name + "` calls itself, which kernels cannot do")
          .primary("recursive call")
          .label(callee->nameRange, "`" + callee->name + "` is declared here")
          .help("write the recursion as a loop with an explicit stack in a local tensor");
      return;
    }
    if (program_.exprs.size() > most_)
      return failTooLong(*call);

    CloneMap map{program_, kernel_, {}, bindDims(*callee, *call)};
    std::vector<Expr*> parts;
    for (size_t i = 0; i < callee->params.size(); ++i)
      passArgument(*callee->params[i], call->args[i], map, parts);
    if (!ok_)
      return;
    for (const LaunchCheck& check : callee->checks)
      if (check.kind == LaunchCheck::Kind::Exact)
        requireExact(*call, check, map.dims);
      else if (check.kind == LaunchCheck::Kind::NotNegative)
        addCheck(kernel_, {.kind = check.kind, .expected = check.expected.substitute(map.dims), .range = check.range});
    Expr* body = cloneExpr(*callee->body, map);
    parts.push_back(body);
    call->kind = ExprKind::Inline;
    call->args = std::move(parts);
    call->text = callee->name;
    if (callee->staysFunction)  // what the call passes, also where the Lets of parameters come to stand before it
      for (const Variable* param : callee->params)
        call->variables.push_back(map.variables.at(param));
    active_.push_back(callee);
    visit(body);
    active_.pop_back();
    if (ok_ && callee->staysFunction)
      call->function = keep(*callee);
  }

  /// The function once for the whole kernel, with extents of its own.
  Function* keep(Function& callee) {
    const auto known = std::find_if(root_.kept.begin(), root_.kept.end(),
                                    [&](const auto& function) { return function->source == &callee; });
    if (known != root_.kept.end())
      return known->get();
    Function& kept = *root_.kept.emplace_back(std::make_unique<Function>());
    kept.name = callee.name;
    kept.nameRange = callee.nameRange;
    kept.resultType = callee.resultType;
    kept.dims = callee.dims;
    kept.kernel = root_.kernel;
    kept.staysFunction = true;
    kept.source = &callee;
    CloneMap map{program_, kept, {}, {}};
    for (DimVarId dim = 0; dim < callee.dims.size(); ++dim) {
      const auto& constant = callee.dims[dim].constant;
      map.dims.push_back(constant ? DimExpr::constant(*constant) : DimExpr::variable(dim));
    }
    for (const Variable* param : callee.params)
      kept.params.push_back(cloneVariable(*param, map));
    kept.body = program_.newExpr(ExprKind::Inline, callee.resultType, callee.body->range);
    kept.body->text = callee.name;
    kept.body->args = {cloneExpr(*callee.body, map)};
    ok_ = hasPlainSignature(kept) && Inliner(program_, kept, root_, sink_).run() && hasPlainCode(kept, *kept.body);
    callee.staysFunction = ok_;  // said once, not for every kernel
    return &kept;
  }

  bool refuse(const Function& kept, source::SourceRange at, std::string what) {
    sink_.error("E0479", at, "`" + kept.name + "` cannot stay a function")
        .primary(std::move(what))
        .label(kept.nameRange, "`" + kept.name + "` is `@noinline`");
    return false;
  }

  bool hasPlainSignature(const Function& kept) {
    const auto names = kept.dimNames();
    for (const Variable* param : kept.params)
      if (!isPlainValue(param->type->kind == TypeKind::Ref ? param->type->elem : param->type))
        return refuse(kept, param->range, "takes `" + text(param->type, names) + "`, not a value of numbers");
    if (!isPlainValue(kept.resultType))
      return refuse(kept, kept.nameRange, "returns `" + text(kept.resultType, names) + "`, not a value of numbers");
    return true;
  }

  bool hasPlainCode(const Function& kept, const Expr& expr) {
    if (expr.kind == ExprKind::Builtin && !isElementwise(expr.builtin))
      return refuse(kept, expr.range, base::concat("`", spelling(expr.builtin), "` in it"));
    for (Type type : {expr.type, expr.variable ? expr.variable->type : nullptr})
      if (type && stripRef(type)->isTensor())
        return refuse(kept, expr.range, "a tensor in it");
    if (expr.kind == ExprKind::DimValue && !expr.dim.asConstant())
      return refuse(kept, expr.range, "an extent in it");
    bool isPlain = true;
    forEachChild(expr, [&](const Expr& child) { isPlain = isPlain && hasPlainCode(kept, child); });
    return isPlain;
  }

  /// What the callee's shapes need, of the extents that this call gives.
  void requireExact(const Expr& call, LaunchCheck check, const std::vector<std::optional<DimExpr>>& dims) {
    for (DimExpr* extent : {&check.expected, &check.divisor, &check.agrees, &check.with})
      *extent = extent->substitute(dims);
    if (check.agrees == check.with)
      return;
    const auto names = kernel_.dimNames();
    if (check.agrees.hasOpaque() || check.with.hasOpaque() || DimExpr::sub(check.agrees, check.with).asConstant()) {
      ok_ = false;
      sink_.error("E0304", call.range, "the shapes in `" + call.function->name + "` do not agree with these arguments")
          .label(check.range,
                 "`" + check.agrees.text(names) + "` and `" + check.with.text(names) + "` have to be equal");
      return;
    }
    addCheck(kernel_, std::move(check));
  }

  std::vector<std::optional<DimExpr>> bindDims(const Function& callee, const Expr& call) {
    std::vector<std::optional<DimExpr>> dims;
    for (const DimBinding& binding : callee.dims) {
      if (binding.constant) {
        dims.push_back(DimExpr::constant(*binding.constant));
        continue;
      }
      if (binding.isScalarValue && binding.param && *binding.param < call.args.size()) {
        const Expr* value = call.args[*binding.param];
        if (value->kind == ExprKind::Int) {
          dims.push_back(DimExpr::constant(static_cast<int64_t>(value->intValue)));
          continue;
        }
        if (value->kind == ExprKind::DimValue) {
          dims.push_back(value->dim);
          continue;
        }
      }
      Type tensor = binding.param && *binding.param < call.args.size()
                        ? tensorAt(call.args[*binding.param]->type, binding.fieldPath)
                        : nullptr;
      if (tensor && binding.dim < tensor->shape.size()) {
        dims.push_back(tensor->shape[binding.dim]);
        continue;
      }
      DimBinding fresh = binding;
      fresh.param.reset();
      dims.push_back(DimExpr::variable(static_cast<DimVarId>(kernel_.dims.size())));
      kernel_.dims.push_back(fresh);
    }
    return dims;
  }

  Program& program_;
  Function& kernel_;
  Function& root_;
  diag::DiagnosticSink& sink_;
  size_t most_;  ///< expressions of the program
  std::vector<const Function*> active_;
  std::map<const Variable*, KnownClosure> closures_;
  size_t closureDepth_ = 0;
  bool ok_ = true;
};

}  // namespace

bool isPlainValue(Type type) {
  switch (type->kind) {
  case TypeKind::Unit:
  case TypeKind::Never:
  case TypeKind::Scalar:
  case TypeKind::Enum: return true;
  case TypeKind::Array: return isPlainValue(type->elem);
  case TypeKind::Tuple:
  case TypeKind::Struct: return std::all_of(type->elems.begin(), type->elems.end(), isPlainValue);
  default: return false;
  }
}

bool inlineCalls(Program& program, Function& kernel, diag::DiagnosticSink& sink) {
  return Inliner(program, kernel, kernel, sink).run();
}

}  // namespace vortex::lang
