// Tile code: `@tile` with `block_m` and `block_n`, accumulators written as fragments, returned tiles, operands of `stage`.
#include "lang/sema/check/checker.h"

#include "base/text.h"

namespace vortex::lang {
namespace {

bool isConstantShape(Type type) {
  return std::all_of(type->shape.begin(), type->shape.end(), [](const DimExpr& dim) { return dim.asConstant(); });
}

bool isFloatScalar(Type type) { return type->kind == TypeKind::Scalar && isFloat(type->scalar); }

/// A product, perhaps converted: what decides the whole shape of a fragment.
bool isProduct(const Expr* expr) {
  while (expr->kind == ExprKind::Cast)
    expr = expr->args[0];
  return expr->kind == ExprKind::Dot;
}

}  // namespace

//===-- @tile -----------------------------------------------------------------------------------------------------===//

/// The tensor that is cut: the first result, or the only parameter that may be written.
Type Checker::tiledOutput(SourceRange range) {
  Type result = function->resultType;
  if (result->kind == TypeKind::Tuple && !result->elems.empty())
    result = result->elems[0];
  if (result->isTensor())
    return result;
  std::vector<const Variable*> outputs;
  for (const Variable* param : function->params)
    if (param->type->kind == TypeKind::Ref && param->type->isMutable && param->type->elem->isTensor())
      outputs.push_back(param);
  if (outputs.size() == 1)
    return outputs[0]->type->elem;
  auto builder = error("E0461", range,
                       base::concat("`@tile` cuts the output of a kernel, but `", function->name, "` has ",
                                    outputs.empty() ? "none" : "several"));
  for (const Variable* output : outputs)
    builder.label(output->range, "this may be written");
  builder.help("return a tensor, or take exactly one as `&mut`");
  return nullptr;
}

void Checker::tileAttribute(const syn::Attribute& attribute) {
  KernelSpec& spec = *function->kernel;
  spec.tile.emplace();  // without extents until it is known to be right
  spec.tile->range = attribute.range;
  TileSpec tile = *spec.tile;
  std::optional<int64_t> extents[3];
  for (const syn::Arg& arg : attribute.args) {
    const std::string_view name = arg.name.text;
    const size_t which = name == "m" ? 0 : name == "n" ? 1 : name == "k" ? 2 : 3;
    if (which == 3 || !arg.value) {
      error("E0208", arg.range, "`@tile` takes `m = …`, `n = …` and `k = …`");
      return;
    }
    auto value = constantInt(arg.value, usize(), "a tile extent");
    if (!value)
      return;
    if (*value <= 0 || *value > INT32_MAX) {
      error("E0461", arg.value->range, "a tile has at least one row and one column").primary("this extent is 0");
      return;
    }
    extents[which] = static_cast<int64_t>(*value);
  }
  Type output = isError(function->resultType) ? nullptr : tiledOutput(attribute.range);
  if (!output || isError(output))
    return;
  const uint32_t rank = output->rank(), cut = std::min<uint32_t>(rank, 2);
  if (rank == 0 || !extents[0] || bool(extents[1]) != (cut == 2)) {
    error("E0461", attribute.range,
          base::concat("the output has ", rank, rank == 1 ? " dimension" : " dimensions", ", so `@tile` ",
                       rank == 0   ? "has nothing to cut"
                       : rank == 1 ? "needs `m` only"
                                   : "needs `m` and `n`"))
        .label(function->resultRange, "`" + text(output) + "`");
    return;
  }
  for (uint32_t i = 0; i < cut; ++i)
    tile.extents.push_back(*extents[i]);
  tile.k = extents[2];
  if (!spec.grid.empty()) {
    error("E0462", attribute.range, "`@tile` and `@launch(grid = …)` both give the grid")
        .label(spec.grid[0]->range, "the other grid")
        .help("keep `@launch(block = …)` for the number of threads, and let `@tile` count the blocks");
    return;
  }
  for (uint32_t i = cut; i-- > 0;) {
    Expr* extent = makeInt(tile.extents[i], usize(), attribute.range);
    spec.grid.push_back(makeBuiltin(Builtin::CeilDiv, usize(), attribute.range,
                                    {makeDim(output->shape[rank - cut + i], attribute.range), extent}));
  }
  if (rank > 2) {  // leading dimensions along z
    DimExpr count = DimExpr::constant(1);
    for (uint32_t i = 0; i < rank - 2; ++i)
      count = DimExpr::mul(count, output->shape[i]);
    spec.grid.push_back(makeDim(count, attribute.range));
  }
  spec.gridKind = GridKind::Explicit;
  spec.tile = std::move(tile);
}

/// `let block_m = block.id.y * m` and `let block_n = block.id.x * n`, before the body.
std::vector<Expr*> Checker::tileOffsets() {
  std::vector<Expr*> lets;
  if (!function->kernel || !function->kernel->tile)
    return lets;
  TileSpec& tile = *function->kernel->tile;
  tile.offsets.clear();
  if (tile.extents.empty()) {  // reported
    for (const char* name : {"block_m", "block_n"})
      declareLocal(newVariable(name, types.error(), tile.range, false));
    return lets;
  }
  const size_t rank = tile.extents.size();
  for (size_t i = 0; i < rank; ++i) {
    Variable* variable = newVariable(i == 0 ? "block_m" : "block_n", usize(), tile.range, false);
    declareLocal(variable);
    const auto axis = static_cast<int64_t>(rank - 1 - i);
    Expr* id = makeBuiltin(Builtin::BlockId, usize(), tile.range, {}, {axis});
    Expr* value = make(ExprKind::Binary, usize(), tile.range, {id, makeInt(tile.extents[i], usize(), tile.range)});
    value->binaryOp = BinaryOp::Mul;
    Expr* let = make(ExprKind::Let, types.unit(), tile.range, {value});
    let->variable = variable;
    lets.push_back(let);
    tile.offsets.push_back(variable);
  }
  return lets;
}

/// A tile of the block returned for the whole result. Null: not one (nothing reported).
Expr* Checker::returnedTile(Expr* value, Type result, SourceRange because) {
  Expr* tile = deref(value);
  if (!function->isKernel || !result->isTensor() || !tile->type->isTensor())
    return nullptr;
  if (function->kernel->tile && function->kernel->tile->extents.empty())
    return errorExpr(value->range);
  bool couldBeTile = tile->type->rank() == std::min<uint32_t>(result->rank(), 2) && isConstantShape(tile->type) &&
                     !sameShape(tile->type, result);
  const std::optional<TileSpec>& spec = function->kernel->tile;
  if (!spec) {
    if (!couldBeTile || isConstantShape(result))
      return nullptr;
    auto builder = error("E0463", value->range, "a tile is returned, but nothing says which part of the result it is");
    builder.primary("a tile of " + shapeText(tile->type));
    builder.label(because, "the result is `" + shapeText(result) + "`");
    std::string names = tile->type->rank() == 1
                            ? "m = " + text(tile->type->shape[0])
                            : "m = " + text(tile->type->shape[0]) + ", n = " + text(tile->type->shape[1]);
    if (tile->type->rank() <= 2)
      builder.help("write `@tile(" + names + ")` on the kernel");
    return errorExpr(value->range);
  }
  bool matches = tile->type->rank() == spec->extents.size() && isConstantShape(tile->type);
  for (size_t i = 0; matches && i < spec->extents.size(); ++i)
    matches = *tile->type->shape[i].asConstant() == spec->extents[i];
  if (!matches) {
    if (!couldBeTile)
      return nullptr;
    std::string wanted;
    for (int64_t extent : spec->extents)
      wanted += (wanted.empty() ? "[" : ", ") + std::to_string(extent);
    error(
        "E0463", value->range,
        base::concat("the returned tile has the shape `", shapeText(tile->type), "`, the block's tile `", wanted, "]`"))
        .primary("a tile of " + shapeText(tile->type))
        .label(spec->range, "the block's tile is given here");
    return errorExpr(value->range);
  }
  if (tile->type->elem == result->elem)
    return tile;
  if (isFloatScalar(tile->type->elem) && isFloatScalar(result->elem))
    return cast(tile, types.tensorValue(result->elem, tile->type->shape));
  return mismatch(tile, types.tensor(result->elem, tile->type->shape, Space::Global), because, "the result's type");
}

//===-- fragments -------------------------------------------------------------------------------------------------===//

/// `acc += a @ b` where acc is written as one thread's part of the product: acc takes the product's shape. True: noted or reported.
bool Checker::adoptFragment(const Expr* accumulator, const Expr* product) {
  if (accumulator->kind != ExprKind::Var || !inKernel() || !product->type->isTensor() || !isProduct(product))
    return false;
  const Variable* variable = accumulator->variable;
  Type part = variable->type, whole = product->type;
  if (!part->isTensor() || part->isValue || part->space != Space::Local || part->rank() != 2 || whole->rank() != 2 ||
      !isConstantShape(part) || !isConstantShape(whole) || sameShape(part, whole) || !variable->fragment.empty())
    return false;
  const int64_t p = *part->shape[0].asConstant(), q = *part->shape[1].asConstant();
  const int64_t P = *whole->shape[0].asConstant(), Q = *whole->shape[1].asConstant();
  const auto fail = [&](std::string message) {
    const_cast<Variable*>(variable)->type = types.error();  // one error for one cause
    auto builder = error("E0465", accumulator->range, std::move(message));
    builder.primary("written as `" + shapeText(part) + "` per thread");
    builder.label(product->range, "a product of `" + shapeText(whole) + "`");
    return builder;
  };
  if (p <= 0 || q <= 0 || P % p != 0 || Q % q != 0) {
    fail("the accumulator does not divide the product").help("declare the accumulator with the product's shape");
    return true;
  }
  if (!function->isKernel) {
    fail("fragments are declared in kernels, where the number of threads is known")
        .help("declare the accumulator with the product's shape");
    return true;
  }
  const int64_t needed = (P / p) * (Q / q);
  std::vector<Expr*>& block = function->kernel->block;
  int64_t threads = 1;
  bool isKnown = true;
  for (Expr* size : block) {
    bool reported = false;
    const Expr* value = fold(clone(size, size->range), reported);
    isKnown = isKnown && value && value->kind == ExprKind::Int;
    threads *= isKnown ? static_cast<int64_t>(value->intValue) : 1;
  }
  if (block.empty())
    block = {makeInt(needed, usize(), accumulator->range)};
  else if (!isKnown || threads != needed) {
    auto builder = fail(
        isKnown ? base::concat("the parts of ", threads, " threads do not make up the product, ", needed, " are needed")
                : std::string("the number of threads must be known to divide the product among them"));
    builder.label(block[0]->range, "the threads of a block");
    builder.help("declare the accumulator with the product's shape, whatever the number of threads");
    return true;
  }
  fragments[variable->range.begin] = {part->shape, whole->shape};
  return restart = true;
}

/// The declared type of a local tensor, or the whole of which a product showed it to be a part.
Type Checker::wholeOfFragment(Type declared, const syn::Name& name) const {
  auto found = fragments.find(name.range.begin);
  if (found == fragments.end() || !declared->isTensor())
    return declared;
  return types.tensor(declared->elem, found->second.whole, declared->space);
}

//===-- staging ---------------------------------------------------------------------------------------------------===//

bool Checker::isStageable(const Expr* view, std::string_view what) {
  Type type = view->type;
  if (!type->isTensor()) {
    error("E0473", view->range, base::concat("`", what, "` copies a slice of a tensor, not a `", text(type), "`"));
    return false;
  }
  bool inMemory = !type->isValue && (type->space == Space::Global || type->space == Space::Constant);
  if (!inMemory) {
    error("E0473", view->range, base::concat("`", what, "` copies from global or constant memory"))
        .primary(type->isValue ? "a value that the compiler places" : "this is in " + spaceText(type))
        .help("assign it: `tile = …`");
    return false;
  }
  if (!isConstantShape(type)) {
    error("E0472", view->range, "the extents of a staged slice must be constants")
        .primary("an extent of this is known only at run time")
        .help("write its length: `a[i..+32]`; elements outside the tensor are copied as 0");
    return false;
  }
  return true;
}

/// `x = stage(view)`: x must be shared, of the view's shape and type.
bool Checker::mayStageInto(const Expr* target, const Expr* view, SourceRange range) {
  Type to = target->type, from = view->type;
  if (to->kind == TypeKind::Ref)
    to = to->elem;
  if (!to->isTensor() || to->isValue || to->space != Space::Shared) {
    error("E0470", range,
          base::concat("staging copies into shared memory, not into ", !to->isTensor() ? "a `" + text(to) + "`"
                                                                       : to->isValue   ? std::string("a value")
                                                                                       : spaceText(to)))
        .label(view->range, "copied from here")
        .help("declare the destination `@shared`");
    return false;
  }
  if (to->elem != from->elem) {
    error("E0471", view->range,
          base::concat("staging does not convert: `", text(from->elem), "` is copied into `", text(to->elem), "`"))
        .primary("elements of `" + text(from->elem) + "`")
        .label(range, "elements of `" + text(to->elem) + "`")
        .help(base::concat("declare the shared tensor with `", text(from->elem),
                           "`, or assign the slice without staging it"));
    return false;
  }
  if (!sameShape(to, from)) {
    error("E0304", view->range, base::concat("expected the shape `", shapeText(to), "`, found `", shapeText(from), "`"))
        .label(range, "`" + shapeText(to) + "`");
    return false;
  }
  return true;
}

}  // namespace vortex::lang
