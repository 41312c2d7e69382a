// Tile code: `@tile` with `block_m` and `block_n`, returned tiles.
#include "lang/sema/check/tiles/tiles.h"
#include "lang/sema/check/constants/constants.h"
#include "lang/sema/check/exprs/convert.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/types/shapes.h"

#include "base/text.h"

namespace vortex::lang {

static bool isFloatScalar(Type type) { return type->kind == TypeKind::Scalar && isFloat(type->scalar); }

/// The tensor that is cut: the first result, or the only parameter that may be written.
static Type tiledOutput(BodyState& body, SourceRange range) {
  Type result = body.function->resultType;
  if (result->kind == TypeKind::Tuple && !result->elems.empty())
    result = result->elems[0];
  if (result->isTensor())
    return result;
  std::vector<const Variable*> outputs;
  for (const Variable* param : body.function->params)
    if (param->type->kind == TypeKind::Ref && param->type->isMutable && param->type->elem->isTensor())
      outputs.push_back(param);
  if (outputs.size() == 1)
    return outputs[0]->type->elem;
  auto builder = error(body, "E0461", range,
                       base::concat("`@tile` cuts the output of a kernel, but `", body.function->name, "` has ",
                                    outputs.empty() ? "none" : "several"));
  for (const Variable* output : outputs)
    builder.label(output->range, "this may be written");
  builder.help("return a tensor, or take exactly one as `&mut`");
  return nullptr;
}

void tileAttribute(BodyState& body, const syn::Attribute& attribute) {
  KernelSpec& spec = *body.function->kernel;
  spec.tile.emplace();  // without extents until it is known to be right
  spec.tile->range = attribute.range;
  TileSpec tile = *spec.tile;
  std::optional<int64_t> extents[3];
  for (const syn::Arg& arg : attribute.args) {
    const std::string_view name = arg.name.text;
    const size_t which = name == "m" ? 0 : name == "n" ? 1 : name == "k" ? 2 : 3;
    if (which == 3 || !arg.value) {
      error(body, "E0208", arg.range, "`@tile` takes `m = …`, `n = …` and `k = …`");
      return;
    }
    auto value = constantInt(body, arg.value, usize(body), "a tile extent");
    if (!value)
      return;
    if (*value <= 0 || *value > INT32_MAX) {
      error(body, "E0461", arg.value->range, "a tile has at least one row and one column").primary("this extent is 0");
      return;
    }
    extents[which] = static_cast<int64_t>(*value);
  }
  Type output = isError(body.function->resultType) ? nullptr : tiledOutput(body, attribute.range);
  if (!output || isError(output))
    return;
  const uint32_t rank = output->rank(), cut = std::min<uint32_t>(rank, 2);
  if (rank == 0 || !extents[0] || bool(extents[1]) != (cut == 2)) {
    error(body, "E0461", attribute.range,
          base::concat("the output has ", rank, rank == 1 ? " dimension" : " dimensions", ", so `@tile` ",
                       rank == 0   ? "has nothing to cut"
                       : rank == 1 ? "needs `m` only"
                                   : "needs `m` and `n`"))
        .label(body.function->resultRange, "`" + text(body, output) + "`");
    return;
  }
  for (uint32_t i = 0; i < cut; ++i)
    tile.extents.push_back(*extents[i]);
  tile.k = extents[2];
  if (!spec.grid.empty()) {
    error(body, "E0462", attribute.range, "`@tile` and `@launch(grid = …)` both give the grid")
        .label(spec.grid[0]->range, "the other grid")
        .help("keep `@launch(block = …)` for the number of threads, and let `@tile` count the blocks");
    return;
  }
  for (uint32_t i = cut; i-- > 0;) {
    Expr* extent = makeInt(body, tile.extents[i], usize(body), attribute.range);
    spec.grid.push_back(makeBuiltin(body, Builtin::CeilDiv, usize(body), attribute.range,
                                    {makeDim(body, output->shape[rank - cut + i], attribute.range), extent}));
  }
  if (rank > 2) {  // leading dimensions along z
    DimExpr count = DimExpr::constant(1);
    for (uint32_t i = 0; i < rank - 2; ++i)
      count = DimExpr::mul(count, output->shape[i]);
    spec.grid.push_back(makeDim(body, count, attribute.range));
  }
  spec.gridKind = GridKind::Explicit;
  spec.tile = std::move(tile);
}

/// `let block_m = block.id.y * m` and `let block_n = block.id.x * n`, before the body.
std::vector<Expr*> tileOffsets(BodyState& body) {
  std::vector<Expr*> lets;
  if (!body.function->kernel || !body.function->kernel->tile)
    return lets;
  TileSpec& tile = *body.function->kernel->tile;
  tile.offsets.clear();
  if (tile.extents.empty()) {  // reported
    for (const char* name : {"block_m", "block_n"})
      declareLocal(body, newVariable(body, name, body.types.error(), tile.range, false));
    return lets;
  }
  const size_t rank = tile.extents.size();
  for (size_t i = 0; i < rank; ++i) {
    Variable* variable = newVariable(body, i == 0 ? "block_m" : "block_n", usize(body), tile.range, false);
    declareLocal(body, variable);
    const auto axis = static_cast<int64_t>(rank - 1 - i);
    Expr* id = makeBuiltin(body, Builtin::BlockId, usize(body), tile.range, {}, {axis});
    Expr* value = make(body, ExprKind::Binary, usize(body), tile.range,
                       {id, makeInt(body, tile.extents[i], usize(body), tile.range)});
    value->binaryOp = BinaryOp::Mul;
    Expr* let = make(body, ExprKind::Let, body.types.unit(), tile.range, {value});
    let->variable = variable;
    lets.push_back(let);
    tile.offsets.push_back(variable);
  }
  return lets;
}

/// A tile of the block returned for the whole result. Null: not one (nothing reported).
Expr* returnedTile(BodyState& body, Expr* value, Type result, SourceRange because) {
  Expr* tile = deref(body, value);
  if (!body.function->isKernel || !result->isTensor() || !tile->type->isTensor())
    return nullptr;
  if (body.function->kernel->tile && body.function->kernel->tile->extents.empty())
    return errorExpr(body, value->range);
  bool couldBeTile = tile->type->rank() == std::min<uint32_t>(result->rank(), 2) && isConstantShape(tile->type) &&
                     !sameShape(body, tile->type, result);
  const std::optional<TileSpec>& spec = body.function->kernel->tile;
  if (!spec) {
    if (!couldBeTile || isConstantShape(result))
      return nullptr;
    auto builder =
        error(body, "E0463", value->range, "a tile is returned, but nothing says which part of the result it is");
    builder.primary("a tile of " + shapeText(body, tile->type));
    builder.label(because, "the result is `" + shapeText(body, result) + "`");
    std::string names = tile->type->rank() == 1
                            ? "m = " + text(body, tile->type->shape[0])
                            : "m = " + text(body, tile->type->shape[0]) + ", n = " + text(body, tile->type->shape[1]);
    if (tile->type->rank() <= 2)
      builder.help("write `@tile(" + names + ")` on the kernel");
    return errorExpr(body, value->range);
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
    error(body, "E0463", value->range,
          base::concat("the returned tile has the shape `", shapeText(body, tile->type), "`, the block's tile `",
                       wanted, "]`"))
        .primary("a tile of " + shapeText(body, tile->type))
        .label(spec->range, "the block's tile is given here");
    return errorExpr(body, value->range);
  }
  if (tile->type->elem == result->elem)
    return tile;
  if (isFloatScalar(tile->type->elem) && isFloatScalar(result->elem))
    return cast(body, tile, body.types.tensorValue(result->elem, tile->type->shape));
  return mismatch(body, tile, body.types.tensor(result->elem, tile->type->shape, Space::Global), because,
                  "the result's type");
}

}  // namespace vortex::lang
