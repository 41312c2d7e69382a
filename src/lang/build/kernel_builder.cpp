#include "lang/build/kernel_builder.h"

#include "base/check.h"

namespace vortex::lang {

Scalar scalarOf(Type type) {
  const Type element = type->isTensor() ? type->elem : type;
  VORTEX_CHECK(element->kind == TypeKind::Scalar, "not a number or a tile");
  return element->scalar;
}

KernelBuilder::KernelBuilder(Program& program, std::string name, source::SourceRange range)
    : program_(program), range_(range) {
  program.functions.push_back(std::make_unique<Function>());
  function_ = program.functions.back().get();
  program.kernels.push_back(function_);
  function_->uniqueName = function_->artifactName = name;
  function_->name = std::move(name);
  function_->isKernel = function_->inKernel = true;
  function_->range = function_->nameRange = function_->resultRange = range;
  function_->resultType = types().unit();
  function_->kernel.emplace();
  function_->body = make(ExprKind::Block, types().unit(), {});
  open_.push_back(function_->body);
}

Expr* KernelBuilder::make(ExprKind kind, Type type, std::vector<Expr*> args) {
  Expr* expr = program_.newExpr(kind, type, range_);
  expr->args = std::move(args);
  return expr;
}

Variable* KernelBuilder::variable(std::string name, Type type) {
  auto made = std::make_unique<Variable>();
  made->name = std::move(name);
  made->type = type;
  made->range = range_;
  made->index = static_cast<uint32_t>(function_->variables.size());
  function_->variables.push_back(std::move(made));
  return function_->variables.back().get();
}

Variable* KernelBuilder::scalarParam(std::string name, Scalar type) {
  Variable* param = variable(std::move(name), types().scalar(type));
  param->isParam = true;
  function_->params.push_back(param);
  return param;
}

Variable* KernelBuilder::tensorParam(std::string name, Scalar element, uint32_t rank, bool isWritten) {
  std::vector<DimExpr> shape;
  for (uint32_t dim = 0; dim < rank; ++dim) {
    shape.push_back(DimExpr::variable(static_cast<DimVarId>(function_->dims.size())));
    DimBinding binding;
    binding.name = name + (rank == 1 ? ".size" : dim == 0 ? ".rows" : ".columns");
    binding.range = range_;
    binding.param = static_cast<uint32_t>(function_->params.size());
    binding.dim = dim;
    function_->dims.push_back(std::move(binding));
  }
  const Type tensor = types().tensor(types().scalar(element), std::move(shape), Space::Global);
  Variable* param = variable(std::move(name), types().ref(tensor, isWritten));
  param->isParam = true;
  function_->params.push_back(param);
  return param;
}

void KernelBuilder::setLaunch(std::vector<Expr*> grid, int64_t threads) {
  function_->kernel->gridKind = GridKind::Explicit;
  function_->kernel->grid = std::move(grid);
  function_->kernel->block = {integer(Scalar::Usize, threads)};
}

Expr* KernelBuilder::integer(Scalar type, __int128 value) {
  VORTEX_CHECK(isInteger(type), "an integer of a float type");
  Expr* expr = make(ExprKind::Int, types().scalar(type), {});
  expr->intValue = value;
  return expr;
}

Expr* KernelBuilder::real(Scalar type, double value) {
  VORTEX_CHECK(isFloat(type), "a real number of an integer type");
  Expr* expr = make(ExprKind::Float, types().scalar(type), {});
  expr->floatValue = type == Scalar::F64 ? value : static_cast<double>(static_cast<float>(value));
  return expr;
}

Expr* KernelBuilder::boolean(bool value) {
  Expr* expr = make(ExprKind::Int, types().boolean(), {});
  expr->intValue = value;
  return expr;
}

Expr* KernelBuilder::text(std::string value) {
  Expr* expr = make(ExprKind::String, types().string(), {});
  expr->text = std::move(value);
  return expr;
}

Expr* KernelBuilder::read(Variable* variable) {
  Expr* expr = make(ExprKind::Var, variable->type, {});
  expr->variable = variable;
  return expr;
}

Type KernelBuilder::withElement(Type type, Scalar element) {
  const Type scalar = types().scalar(element);
  return type->isTensor() ? types().tensorValue(scalar, type->shape) : scalar;
}

Expr* KernelBuilder::unary(UnaryOp op, Expr* value) {
  Expr* expr = make(ExprKind::Unary, value->type, {value});
  expr->unaryOp = op;
  return expr;
}

Expr* KernelBuilder::binary(BinaryOp op, Expr* lhs, Expr* rhs) {
  VORTEX_CHECK(lhs->type == rhs->type, "operands of two types");
  const bool isComparison = op >= BinaryOp::Eq && op <= BinaryOp::Ge;
  Expr* expr = make(ExprKind::Binary, isComparison ? withElement(lhs->type, Scalar::Bool) : lhs->type, {lhs, rhs});
  expr->binaryOp = op;
  return expr;
}

Expr* KernelBuilder::cast(Expr* value, Scalar to) {
  if (scalarOf(value->type) == to)
    return value;
  return make(ExprKind::Cast, withElement(value->type, to), {value});
}

Expr* KernelBuilder::broadcast(Expr* value, int64_t rows, int64_t columns) {
  const std::vector<DimExpr> extents = {DimExpr::constant(rows), DimExpr::constant(columns)};
  if (!value->type->isTensor())
    return make(ExprKind::Broadcast, types().tensorValue(value->type, extents), {value});
  for (size_t dim = 0; dim < extents.size(); ++dim)
    VORTEX_CHECK(value->type->shape[dim] == extents[dim] || value->type->shape[dim].asConstant() == 1,
                 "a tile is repeated along a dimension that has extent");
  Expr* repeated = make(ExprKind::Broadcast, types().tensorValue(value->type->elem, extents), {value});
  repeated->ints = {0, 1};
  return repeated;
}

Expr* KernelBuilder::select(Expr* condition, Expr* then, Expr* otherwise) {
  VORTEX_CHECK(then->type == otherwise->type && scalarOf(condition->type) == Scalar::Bool &&
                   condition->type->isTensor() == then->type->isTensor(),
               "a choice between two types");
  return builtin(Builtin::Select, then->type, {condition, then, otherwise});
}

Expr* KernelBuilder::dot(Expr* lhs, Expr* rhs, Scalar element) {
  VORTEX_CHECK(lhs->type->isTensor() && rhs->type->isTensor() && lhs->type->shape[1] == rhs->type->shape[0],
               "the inner extents of a product differ");
  const Type tile = types().tensorValue(types().scalar(element), {lhs->type->shape[0], rhs->type->shape[1]});
  return make(ExprKind::Dot, tile, {lhs, rhs});
}

Expr* KernelBuilder::zeros(Scalar element, int64_t rows, int64_t columns) {
  return broadcast(isFloat(element) ? real(element, 0) : integer(element, 0), rows, columns);
}

Expr* KernelBuilder::elementwise(Builtin id, std::vector<Expr*> args) {
  for (const Expr* arg : args)
    VORTEX_CHECK(arg->type == args[0]->type, "operands of two types");
  const Type type = args[0]->type;
  return builtin(id, type, std::move(args));
}

Expr* KernelBuilder::builtin(Builtin id, Type type, std::vector<Expr*> args, std::vector<int64_t> ints) {
  Expr* expr = make(ExprKind::Builtin, type, std::move(args));
  expr->builtin = id;
  expr->ints = std::move(ints);
  return expr;
}

Expr* KernelBuilder::atomic(Builtin id, Expr* element, Expr* value) {
  VORTEX_CHECK(element->kind == ExprKind::Element && element->type == value->type, "an atomic with another type");
  const Type type = value->type;
  return builtin(id, type, {element, value}, {0, 1});
}

Expr* KernelBuilder::atomicStore(Expr* element, Expr* value, bool isOfDevice) {
  VORTEX_CHECK(element->kind == ExprKind::Element && element->type == value->type, "an atomic with another type");
  return builtin(Builtin::AtomicStore, types().unit(), {element, value}, {0, isOfDevice ? 1 : 0});
}

Expr* KernelBuilder::reduce(Builtin id, Expr* tile, int64_t dim) {
  VORTEX_CHECK(tile->type->isTensor(), "a reduction of what is no tile");
  std::vector<DimExpr> shape(tile->type->shape.begin(), tile->type->shape.end());
  shape[static_cast<size_t>(dim)] = DimExpr::constant(1);
  return builtin(id, types().tensorValue(tile->type->elem, std::move(shape)), {tile}, {dim});
}

Expr* KernelBuilder::transpose(Expr* tile) {
  VORTEX_CHECK(tile->type->isTensor(), "a transpose of what is no tile");
  const Type type = types().tensorValue(tile->type->elem, {tile->type->shape[1], tile->type->shape[0]});
  return builtin(Builtin::Transpose, type, {tile}, {1, 0});
}

Expr* KernelBuilder::whole(Variable* tensor) {
  Expr* place = read(tensor);
  return place->type->kind == TypeKind::Ref ? make(ExprKind::Deref, place->type->elem, {place}) : place;
}

Expr* KernelBuilder::element(Variable* tensor, std::vector<Expr*> indices) {
  Expr* place = whole(tensor);
  VORTEX_CHECK(place->type->rank() == indices.size(), "an element by another number of indices");
  std::vector<Expr*> args = {place};
  for (Expr* index : indices)
    args.push_back(cast(index, Scalar::Usize));
  return make(ExprKind::Element, place->type->elem, std::move(args));
}

Expr* KernelBuilder::rowsOf(Expr* matrix, Expr* first, Expr* count) {
  VORTEX_CHECK(matrix->type->rank() == 2, "rows of what is no matrix");
  const Type rows = types().tensor(matrix->type->elem, {DimExpr::opaque(unknownExtents_++), matrix->type->shape[1]},
                                   matrix->type->space);
  Expr* expr = make(ExprKind::Slice, rows, {matrix});
  expr->slices = {SliceDim{SliceDim::Kind::Range, cast(first, Scalar::Usize), cast(count, Scalar::Usize), true},
                  SliceDim{}};
  return expr;
}

Expr* KernelBuilder::window(Expr* matrix, Expr* row, int64_t rows, Expr* column, int64_t columns) {
  VORTEX_CHECK(matrix->type->rank() == 2, "a window of what is no matrix");
  const Type tile =
      types().tensor(matrix->type->elem, {DimExpr::constant(rows), DimExpr::constant(columns)}, matrix->type->space);
  Expr* expr = make(ExprKind::Slice, tile, {matrix});
  const auto range = [&](Expr* begin, int64_t size) {
    return SliceDim{SliceDim::Kind::Range, cast(begin, Scalar::Usize), integer(Scalar::Usize, size), true};
  };
  expr->slices = {range(row, rows), range(column, columns)};
  return expr;
}

void KernelBuilder::run(Expr* statement) { open_.back()->args.push_back(statement); }

Variable* KernelBuilder::let(std::string name, Expr* value, bool isVar) {
  const Type type = value->type->isTensor() ? types().tensorValue(value->type->elem, value->type->shape) : value->type;
  Variable* made = variable(std::move(name), type);
  made->isVar = isVar;
  Expr* statement = make(ExprKind::Let, types().unit(), {value});
  statement->variable = made;
  run(statement);
  return made;
}

Variable* KernelBuilder::shared(std::string name, Scalar element, const std::vector<int64_t>& extents) {
  std::vector<DimExpr> shape;
  for (const int64_t extent : extents)
    shape.push_back(DimExpr::constant(extent));
  Variable* made = variable(std::move(name), types().tensor(types().scalar(element), std::move(shape), Space::Shared));
  made->isVar = true;
  Expr* statement = make(ExprKind::Let, types().unit(), {});
  statement->variable = made;
  run(statement);
  return made;
}

void KernelBuilder::assign(Expr* place, Expr* value) {
  VORTEX_CHECK(scalarOf(place->type) == scalarOf(value->type), "a value of another type is assigned");
  run(make(ExprKind::Assign, types().unit(), {place, value}));
}

void KernelBuilder::addAssign(Expr* place, Expr* value) {
  Expr* statement = make(ExprKind::Assign, types().unit(), {place, value});
  statement->hasOp = true;
  statement->binaryOp = BinaryOp::Add;
  run(statement);
}

void KernelBuilder::openIf(Expr* condition) {
  VORTEX_CHECK(condition->type == types().boolean(), "a condition that is no bool");
  Expr* block = make(ExprKind::Block, types().unit(), {});
  run(make(ExprKind::If, types().unit(), {condition, block}));
  open_.push_back(block);
}

Variable* KernelBuilder::openFor(std::string name, Expr* begin, Expr* end, Expr* step) {
  const Type type = types().scalar(Scalar::I64);
  VORTEX_CHECK(begin->type == type && end->type == type && step->type == type, "bounds of a loop that are not i64");
  Variable* counter = variable(std::move(name), type);
  Expr* block = make(ExprKind::Block, types().unit(), {});
  Expr* range = make(ExprKind::Range, types().range(type), {begin, end, step});
  Expr* loop = make(ExprKind::For, types().unit(), {range, block});
  loop->variable = counter;
  run(loop);
  open_.push_back(block);
  return counter;
}

void KernelBuilder::openWhile(Expr* condition) {
  VORTEX_CHECK(condition->type == types().boolean(), "a condition that is no bool");
  Expr* block = make(ExprKind::Block, types().unit(), {});
  run(make(ExprKind::While, types().unit(), {condition, block}));
  open_.push_back(block);
}

void KernelBuilder::close() {
  VORTEX_CHECK(open_.size() > 1, "no block is open");
  open_.pop_back();
}

}  // namespace vortex::lang
