#include "lang/sema/kernel/inline_calls.h"

#include "lang/sema/element.h"

#include <algorithm>

namespace vortex::lang {

using Dims = std::vector<std::optional<DimExpr>>;

static std::vector<Type> substituteAll(const std::vector<Type>& types, TypeContext& context, const Dims& dims) {
  std::vector<Type> result;
  result.reserve(types.size());
  for (Type type : types)
    result.push_back(substituteDims(type, context, dims));
  return result;
}

Type substituteDims(Type type, TypeContext& types, const Dims& dims) {
  if (!type || dims.empty())
    return type;
  switch (type->kind) {
  case TypeKind::Tensor: {
    std::vector<DimExpr> shape;
    for (const DimExpr& dim : type->shape)
      shape.push_back(dim.substitute(dims));
    Type elem = substituteDims(type->elem, types, dims);
    return type->isValue ? types.tensorValue(elem, std::move(shape))
                         : types.tensor(elem, std::move(shape), type->space, type->layout);
  }
  case TypeKind::Vec: return types.vec(substituteDims(type->elem, types, dims));
  case TypeKind::Array: return types.array(substituteDims(type->elem, types, dims), type->count);
  case TypeKind::Tuple: return types.tuple(substituteAll(type->elems, types, dims));
  case TypeKind::Struct: return types.structure(type->decl, substituteAll(type->elems, types, dims));
  case TypeKind::Ref: return types.ref(substituteDims(type->elem, types, dims), type->isMutable);
  case TypeKind::Range: return types.range(substituteDims(type->elem, types, dims));
  case TypeKind::Closure:
    return types.closure(substituteAll(type->elems, types, dims), substituteDims(type->elem, types, dims));
  default: return type;
  }
}

Variable* cloneVariable(const Variable& variable, CloneMap& map) {
  auto copy = std::make_unique<Variable>(variable);
  copy->type = substituteDims(variable.type, map.program.types, map.dims);
  copy->isParam = false;
  copy->isResultStorage = false;
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

bool isHostOnly(Builtin builtin) { return builtin >= Builtin::AssertClose && builtin != Builtin::Len; }

class Inliner {
public:
  Inliner(Program& program, Function& kernel, diag::DiagnosticSink& sink)
      : program_(program), kernel_(kernel), sink_(sink) {}

  bool run() {
    active_.push_back(&kernel_);
    if (kernel_.body)
      visit(kernel_.body);
    return ok_;
  }

private:
  static constexpr size_t kMaxExprs = 2'000'000;

  void visit(Expr* expr) {
    if (!expr || !ok_)
      return;
    if (expr->kind == ExprKind::Launch)
      return fail("E0408", *expr, "a kernel cannot launch a kernel", "launched inside `" + kernel_.name + "`");
    if (expr->kind == ExprKind::Closure || expr->kind == ExprKind::CallClosure)
      return fail("E0407", *expr, "closures exist only in host code", "inside kernel `" + kernel_.name + "`");
    if (expr->kind == ExprKind::Builtin && isHostOnly(expr->builtin))
      return fail("E0407", *expr, "`" + std::string(spelling(expr->builtin)) + "` can only be called on the host",
                  "inside kernel `" + kernel_.name + "`");
    for (Expr* arg : expr->args)
      visit(arg);
    for (SliceDim& slice : expr->slices) {
      visit(slice.begin);
      visit(slice.end);
    }
    if (expr->kind == ExprKind::Call)
      expand(expr);
  }

  void fail(std::string_view id, const Expr& at, std::string message, std::string label) {
    ok_ = false;
    sink_.error(id, at.range, std::move(message)).primary(std::move(label));
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
    if (program_.exprs.size() > kMaxExprs)
      return fail("E0454", *call, "the calls in this kernel expand to too much code", "while expanding this call");

    CloneMap map{program_, kernel_, {}, bindDims(*callee, *call)};
    std::vector<Expr*> parts;
    for (size_t i = 0; i < callee->params.size(); ++i) {
      Variable* param = cloneVariable(*callee->params[i], map);
      Expr* let = program_.newExpr(ExprKind::Let, program_.types.unit(), call->args[i]->range);
      let->variable = param;
      let->args = {call->args[i]};
      parts.push_back(let);
    }
    Expr* body = cloneExpr(*callee->body, map);
    parts.push_back(body);
    call->kind = ExprKind::Inline;
    call->type = substituteDims(call->type, program_.types, {});
    call->args = std::move(parts);
    call->text = callee->name;
    active_.push_back(callee);
    visit(body);
    active_.pop_back();
  }

  Dims bindDims(const Function& callee, const Expr& call) {
    Dims dims;
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
  diag::DiagnosticSink& sink_;
  std::vector<const Function*> active_;
  bool ok_ = true;
};

}  // namespace

bool inlineCalls(Program& program, Function& kernel, diag::DiagnosticSink& sink) {
  return Inliner(program, kernel, sink).run();
}

}  // namespace vortex::lang
