#include "base/text.h"
#include "host/evaluator_state.h"
#include "host/place_named.h"
#include "lang/sema/byte_sizes.h"
#include "lang/sema/integers.h"

#include <cstring>
#include <pthread.h>
#include <utility>

namespace vortex::host {

using namespace lang;

int run(const Function& function, Backend& backend, diag::DiagnosticSink& sink, const Options& options) {
  return Evaluator(backend, sink, options).run(function);
}

/// The address where three quarters of this thread's stack are used: the rest is for the largest expression within one call.
static uintptr_t stackLimit() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0)
    return 0;
  void* lowest = nullptr;
  size_t size = 0;
  const bool known = pthread_attr_getstack(&attributes, &lowest, &size) == 0;
  pthread_attr_destroy(&attributes);
  return known ? reinterpret_cast<uintptr_t>(lowest) + size / 4 : 0;
}

int Evaluator::run(const Function& function) {
  stackLimit_ = stackLimit();
  call(function, {}, *function.body);
  if (flow_ == Flow::Stop)
    return exitStatus_;
  if (auto done = backend_.synchronize(); !done) {
    fail("E0708", *function.body, done.error().message);
    return 1;
  }
  return 0;
}

Value Evaluator::fail(std::string_view id, const Expr& at, std::string message, std::string label, std::string help) {
  if (flow_ != Flow::Stop) {
    auto diagnostic = sink_.error(id, at.range, std::move(message));
    diagnostic.primary(std::move(label));
    if (!help.empty())
      diagnostic.help(std::move(help));
  }
  flow_ = Flow::Stop;
  exitStatus_ = 1;
  return {};
}

Value Evaluator::eval(const Expr& expr) {
  if (expr.transfer == Transfer::Move)
    return moveOut(expr);
  const bool copiesParts =
      expr.transfer == Transfer::Copy &&
      (expr.type->kind == TypeKind::Array || expr.type->kind == TypeKind::Struct || expr.type->kind == TypeKind::Tuple);
  if (!copiesParts)
    return evalInPlace(expr);
  Value value = evalInPlace(expr);
  return interrupted() ? Value() : duplicate(value, expr);
}

Value Evaluator::evalInPlace(const Expr& expr) {
  switch (expr.kind) {
  case ExprKind::Int: return static_cast<int64_t>(expr.intValue);
  case ExprKind::Float: return lang::roundToFloat(expr.type->scalar, expr.floatValue);
  case ExprKind::String: return Value::text(expr.text);
  case ExprKind::Unit: return {};
  case ExprKind::Var: return copyOf(*slotOf(expr.variable));
  case ExprKind::DimValue: {
    auto value = evaluate(expr.dim);
    return value ? Value(*value)
                 : fail("E0705", expr, "this extent is not known yet", "no tensor has given it a value");
  }
  case ExprKind::Unary: return evalUnary(expr);
  case ExprKind::Binary: return evalBinary(expr);
  case ExprKind::Cast: return evalCast(expr);
  case ExprKind::Broadcast:
  case ExprKind::Dot:
    return fail("E0706", expr, "tensors are computed in kernels, not on the host", "",
                "move this expression into a `kernel`");
  case ExprKind::Builtin: return evalBuiltin(expr);
  case ExprKind::Call: {
    auto arguments = evalArgs(expr);
    return interrupted() ? Value() : call(*expr.function, std::move(arguments), expr);
  }
  case ExprKind::Launch: return evalLaunch(expr);
  case ExprKind::CallClosure: {
    auto values = evalArgs(expr);
    return interrupted() ? Value() : callClosure(values[0], std::span(values).subspan(1), expr);
  }
  case ExprKind::Closure: return ClosureValue{&expr, frame_};
  case ExprKind::Element: return evalElement(expr);
  case ExprKind::Slice: return evalSlice(expr);
  case ExprKind::Field: {
    Value base = deref(eval(*expr.args[0]), expr);
    return interrupted() ? Value() : copyOf(base.asAggregate().fields[static_cast<size_t>(expr.ints[0])]);
  }
  case ExprKind::MakeTuple:
  case ExprKind::MakeStruct: {
    auto aggregate = std::make_shared<Aggregate>();
    aggregate->fields = evalArgs(expr);
    return aggregate;
  }
  case ExprKind::MakeArray:
  case ExprKind::MakeVec:
  case ExprKind::RepeatArray:
  case ExprKind::RepeatVec: {
    if (!fits(bytesOf(expr.type), expr))  // of nested arrays in full, before the first of them is made
      return {};
    auto values = evalArgs(expr);
    if (interrupted())
      return {};
    const bool repeats = expr.kind == ExprKind::RepeatArray || expr.kind == ExprKind::RepeatVec;
    auto storage = makeList(expr.type->elem, repeats ? values[1].asInt() : 0, expr);
    if (!storage)
      return {};
    if (repeats) {
      if (storage->packed)
        storage->fill(values[0]);
      else
        for (size_t i = 0; i < storage->size(); ++i)
          storage->set(i, i == 0 ? values[0] : duplicate(values[0], expr));
    } else {
      for (const Value& value : values)
        storage->push(value);
    }
    return VecValue{storage};
  }
  case ExprKind::IntList: {
    auto storage = std::make_shared<VecStorage>();
    storage->type = Scalar::I64;
    for (__int128 value : expr.intList)
      storage->push(static_cast<int64_t>(value));
    return VecValue{storage};
  }
  case ExprKind::Ref: return place(*expr.args[0]);
  case ExprKind::Deref: return deref(eval(*expr.args[0]), expr);
  case ExprKind::Range: {
    auto values = evalArgs(expr);
    if (interrupted())
      return {};
    RangeValue range{values[0].asInt(), values[1].asInt(), values.size() > 2 ? values[2].asInt() : 1};
    return range.step == 0 ? fail("E0707", expr, "the step of a range is 0") : Value(range);
  }
  case ExprKind::Block: return evalBlock(expr);
  case ExprKind::Let: return evalLet(expr);
  case ExprKind::Assign: return evalAssign(expr);
  case ExprKind::If: return evalIf(expr);
  case ExprKind::While: return evalWhile(expr);
  case ExprKind::Loop: return evalLoop(expr);
  case ExprKind::For: return evalFor(expr);
  case ExprKind::Break:
  case ExprKind::Continue:
  case ExprKind::Return: {
    Value value = expr.args.empty() || !expr.args[0] ? Value() : eval(*expr.args[0]);
    if (interrupted())
      return {};
    flowValue_ = std::move(value);
    flow_ = expr.kind == ExprKind::Break      ? Flow::Break
            : expr.kind == ExprKind::Continue ? Flow::Continue
                                              : Flow::Return;
    return {};
  }
  case ExprKind::Inline: VORTEX_UNREACHABLE("inlined calls exist only in kernels");
  }
  VORTEX_UNREACHABLE();
}

std::vector<Value> Evaluator::evalArgs(const Expr& expr) {
  std::vector<Value> values;
  values.reserve(expr.args.size());
  for (const Expr* arg : expr.args) {
    values.push_back(arg ? eval(*arg) : Value());
    if (interrupted())
      break;
  }
  return values;
}

Value Evaluator::evalBlock(const Expr& expr) {
  Value last;
  for (const Expr* arg : expr.args) {
    last = eval(*arg);
    if (interrupted())
      break;
  }
  // What the block declared ends here; device memory goes back once the work that uses it is done.
  for (const Expr* arg : expr.args)
    if (arg->kind == ExprKind::Let)
      *slotOf(arg->variable) = Value();
  return interrupted() ? Value() : last;
}

Value Evaluator::evalLet(const Expr& expr) {
  if (expr.hasOp)  // what an earlier iteration has bound says nothing of the value
    for (int64_t dim : expr.ints)
      frame_->dims[static_cast<size_t>(dim)].reset();
  Value value = expr.args.empty() || !expr.args[0] ? Value() : eval(*expr.args[0]);
  if (interrupted())
    return {};
  if (!bindShape(expr.variable->type, value, expr))
    return {};
  *slotOf(expr.variable) = std::move(value);
  return {};
}

Value Evaluator::evalIf(const Expr& expr) {
  Value condition = eval(*expr.args[0]);
  if (interrupted())
    return {};
  if (condition.asInt())
    return eval(*expr.args[1]);
  return expr.args.size() > 2 && expr.args[2] ? eval(*expr.args[2]) : Value();
}

bool Evaluator::runBody(const Expr& body) {
  eval(body);
  if (flow_ == Flow::Continue)
    flow_ = Flow::Normal;
  if (flow_ == Flow::Break) {
    flow_ = Flow::Normal;
    return false;
  }
  return flow_ == Flow::Normal;
}

Value Evaluator::evalWhile(const Expr& expr) {
  while (true) {
    Value condition = eval(*expr.args[0]);
    if (interrupted() || !condition.asInt() || !runBody(*expr.args[1]))
      return {};
  }
}

Value Evaluator::evalLoop(const Expr& expr) {
  while (runBody(*expr.args[0])) {
  }
  return interrupted() ? Value() : std::move(flowValue_);
}

Value Evaluator::evalFor(const Expr& expr) {
  Value over = eval(*expr.args[0]);
  if (interrupted())
    return {};
  Value* slot = slotOf(expr.variable);
  Value* counter = expr.indexVariable ? slotOf(expr.indexVariable) : nullptr;
  int64_t index = 0;
  auto step = [&](Value value) {
    *slot = std::move(value);
    if (counter)
      *counter = index;
    ++index;
    return runBody(*expr.args[1]);
  };
  if (auto* range = std::get_if<RangeValue>(&over.data)) {
    const bool isUnsigned =
        expr.variable->type->kind == TypeKind::Scalar && lang::isUnsigned(expr.variable->type->scalar);
    const uint64_t count = range->count(isUnsigned);
    for (uint64_t i = 0; i < count; ++i)
      if (!step(range->at(i)))
        break;
    return {};
  }
  over = deref(over, expr);
  if (interrupted())
    return {};
  VecValue vec = over.asVec();
  for (size_t i = 0; i < vec.size(); ++i)
    if (!step(vec.storage->at(vec.begin + i)))
      break;
  *slot = Value();
  return {};
}

bool Evaluator::enterCall(const Expr& at, std::string label) {
  const bool hasStack = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) > stackLimit_;
  if (depth_ < options_.maxCallDepth && hasStack) {
    ++depth_;
    return true;
  }
  fail("E0709", at, base::concat("calls nested deeper than ", depth_), std::move(label));
  return false;
}

Value Evaluator::call(const Function& function, std::vector<Value> arguments, const Expr& at) {
  if (!enterCall(at, "in this call of `" + function.name + "`"))
    return {};
  Frame frame;
  frame.function = &function;
  frame.slots.resize(function.variables.size());
  frame.dims.resize(function.dims.size());
  for (size_t i = 0; i < function.dims.size(); ++i)
    frame.dims[i] = function.dims[i].constant;
  Frame* caller = std::exchange(frame_, &frame);
  bool bound = true;
  for (size_t i = 0; i < arguments.size() && bound; ++i) {
    bound = bindShape(function.params[i]->type, arguments[i], at);
    for (size_t d = 0; d < function.dims.size(); ++d)
      if (function.dims[d].isScalarValue && function.dims[d].param == i)
        frame.dims[d] = arguments[i].asInt();
    frame.slots[function.params[i]->index] = std::move(arguments[i]);
  }
  Value result = bound ? eval(*function.body) : Value();
  if (flow_ == Flow::Return) {
    flow_ = Flow::Normal;
    result = std::move(flowValue_);
  }
  frame_ = caller;
  --depth_;
  return result;
}

Value Evaluator::callClosure(const Value& closure, std::span<const Value> arguments, const Expr& at) {
  ClosureValue target = std::get<ClosureValue>(closure.data);
  if (!enterCall(at, {}))
    return {};
  Frame* caller = std::exchange(frame_, target.frame);
  for (size_t i = 0; i < arguments.size() && i < target.expr->variables.size(); ++i)
    *slotOf(target.expr->variables[i]) = arguments[i];
  Value result = eval(*target.expr->args[0]);
  for (const Variable* parameter : target.expr->variables)
    *slotOf(parameter) = Value();
  if (flow_ == Flow::Return) {
    flow_ = Flow::Normal;
    result = std::move(flowValue_);
  }
  frame_ = caller;
  --depth_;
  return result;
}

static uint64_t scalarBits(Scalar type, const Value& value) {
  uint8_t bytes[8] = {};
  storeScalar(type, value, bytes);
  uint64_t bits = 0;
  std::memcpy(&bits, bytes, sizeof bits);
  if (isFloat(type))
    return bits;
  return static_cast<uint64_t>(value.asInt());
}

/// Appends the launch's arguments in the order of the kernel's entry (irgen/entry.h): the parts of structs, tuples and arrays, depth
/// first, and the planes of tensors of structs.
void Evaluator::flattenArgument(Type type, const Value& argument, const Expr& at, std::vector<LaunchArgument>& to) {
  type = stripRef(type);
  Value value = deref(argument, at);
  switch (type->kind) {
  case TypeKind::Tensor:
    if (!value.asTensor().element) {
      to.emplace_back(value.asTensor());
      return;
    }
    for (const TensorValue& plane : value.asTensor().planes)
      to.emplace_back(plane);
    return;
  case TypeKind::Array:
    for (size_t i = 0; i < value.asVec().size(); ++i)
      flattenArgument(type->elem, value.asVec().storage->at(value.asVec().begin + i), at, to);
    return;
  case TypeKind::Scalar: to.emplace_back(scalarBits(type->scalar, value)); return;
  case TypeKind::Enum: to.emplace_back(static_cast<uint64_t>(value.asInt())); return;
  case TypeKind::Struct:
  case TypeKind::Tuple:
    for (size_t i = 0; i < type->elems.size(); ++i)
      flattenArgument(type->elems[i], value.asAggregate().fields[i], at, to);
    return;
  default: VORTEX_UNREACHABLE("the checker lets no other kind of parameter pass (E0403)");
  }
}

Value Evaluator::evalLaunch(const Expr& expr) {
  const Function& kernel = *expr.function;
  std::vector<LaunchArgument> arguments;
  for (size_t i = 0; i < expr.args.size(); ++i) {
    Value value = eval(*expr.args[i]);
    if (interrupted())
      return {};
    flattenArgument(kernel.params[i]->type, value, *expr.args[i], arguments);
  }
  LaunchSize size;
  auto evalSizes = [&](const std::vector<Expr*>& exprs, std::optional<std::array<int64_t, 3>>& to) {
    if (exprs.empty())
      return;
    to = std::array<int64_t, 3>{1, 1, 1};
    for (size_t i = 0; i < exprs.size() && i < 3 && !interrupted(); ++i)
      if (Value value = eval(*exprs[i]); !interrupted())
        (*to)[i] = value.asInt();
  };
  evalSizes(expr.launch.grid, size.grid);
  evalSizes(expr.launch.block, size.block);
  if (interrupted())
    return {};
  if (size.block && std::any_of(size.block->begin(), size.block->end(), [](int64_t extent) { return extent <= 0; }))
    return fail("E0712", *expr.launch.block[0],
                base::concat("a block of [", base::join(*size.block, ", "), "] has no threads"));

  LaunchOutcome outcome = backend_.launch(kernel, arguments, size);
  if (auto* failure = std::get_if<LaunchFailure>(&outcome)) {
    diag::Diagnostic diagnostic{.id = failure->id, .message = failure->message};
    diagnostic.labels.push_back({expr.range, "in this launch of `" + kernel.name + "`", true});
    diagnostic.labels.push_back({kernel.nameRange, "the kernel", false});
    diagnostic.notes = failure->notes;
    source::SourceRange raised;
    if (failure->line && options_.sources)
      raised = placeNamed(*options_.sources, failure->file, {failure->line, failure->column});
    if (raised.isValid())
      diagnostic.labels.push_back({raised, "raised here", false});
    else if (failure->line)
      diagnostic.notes.push_back(base::concat("raised at ", failure->file, ":", failure->line, ":", failure->column));
    if (failure->id == "E0605")
      diagnostic.helps.push_back(
          "where wrapping is meant, say so: `@unchecked(overflow)` on the statement or on its function or kernel");
    sink_.report(std::move(diagnostic));
    flow_ = Flow::Stop;
    exitStatus_ = 1;
    return {};
  }
  auto& results = std::get<std::vector<LaunchArgument>>(outcome);
  Type type = kernel.resultType;
  if (!type || type->kind == TypeKind::Unit)
    return {};
  std::span<const LaunchArgument> next = results;
  return resultValue(type, next);
}

}  // namespace vortex::host
