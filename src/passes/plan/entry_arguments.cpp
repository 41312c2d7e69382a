#include "passes/plan/entry_arguments.h"

#include "ir/launch.h"
#include "ir/size_attr.h"

namespace vortex::passes {

using namespace mlir;

/// On lets that vary from round to round: their bounds, for temporaries, which a launch has before it runs any round.
static constexpr llvm::StringLiteral kLeast = "least", kMost = "most";

Type accumulatorType(Type type) {
  Type element = getElementTypeOrSelf(type);
  auto real = dyn_cast<FloatType>(element);
  return real && real.getWidth() < 32 ? Type(Float32Type::get(type.getContext())) : element;
}

EntryArguments::EntryArguments(ir::EntryOp entry)
    : entry_(entry), context_(entry.getContext()), args_(llvm::to_vector(entry.getArgs().getValue())),
      types_(llvm::to_vector(entry.getFunctionType().getInputs())) {}

static bool isTemporary(Attribute described) {
  return cast<DictionaryAttr>(described).getAs<ir::RoleAttr>("role").getValue() == ir::Role::Temp;
}

unsigned EntryArguments::add(unsigned number, Type type, StringRef name, ir::Role role, ArrayRef<NamedAttribute> more) {
  OpBuilder builder(context_);
  NamedAttrList described(more);
  described.append("name", builder.getStringAttr(name));
  described.append("role", ir::RoleAttr::get(context_, role));
  args_.insert(args_.begin() + number, described.getDictionary(context_));
  types_.insert(types_.begin() + number, type);
  return number;
}

ir::SizeAttr EntryArguments::mostOf(ir::SizeAttr extent) const {
  auto bounds = size::boundsOf(extent.getExpr(), [&](uint32_t argument) -> std::optional<size::Bounds> {
    auto described = cast<DictionaryAttr>(args_[argument]);
    auto least = described.getAs<ir::SizeAttr>(kLeast), most = described.getAs<ir::SizeAttr>(kMost);
    return least ? std::optional(size::Bounds{least.getExpr(), most.getExpr()}) : std::nullopt;
  });
  return bounds ? ir::SizeAttr::get(context_, bounds->high) : extent;
}

ir::SizeAttr EntryArguments::extentInRound(unsigned temporary, unsigned dim) const {
  return extentsInRounds_.lookup({temporary, dim});
}

unsigned EntryArguments::addTemporary(ArrayRef<ir::SizeAttr> extents, Type element) {
  return addTemporary(extents, element, {});
}

unsigned EntryArguments::addAlignedTemporary(ArrayRef<ir::SizeAttr> extents, Type element, int64_t rowMultiple) {
  SmallVector<ir::SizeAttr> room(extents);
  ir::SizeAttr multiple = ir::sizeConstant(context_, rowMultiple);
  room.back() = ir::sizeBinary(size::Op::Mul, ir::sizeBinary(size::Op::CeilDiv, room.back(), multiple), multiple);
  return addTemporary(room, element, extents);
}

unsigned EntryArguments::addTemporary(ArrayRef<ir::SizeAttr> asked, Type element, ArrayRef<ir::SizeAttr> held) {
  OpBuilder builder(context_);
  SmallVector<int64_t> shape;
  SmallVector<ir::SizeAttr> extents;
  for (auto [dim, extent] : llvm::enumerate(asked)) {
    extents.push_back(mostOf(extent));
    if (extents.back() != extent)
      extentsInRounds_[{static_cast<unsigned>(types_.size()), static_cast<unsigned>(dim)}] = extent;
  }
  for (ir::SizeAttr extent : extents)
    shape.push_back(ir::constantSize(extent).value_or(ShapedType::kDynamic));
  SmallVector<Attribute> sizes(extents.begin(), extents.end());
  SmallVector<NamedAttribute> described{
      builder.getNamedAttr("access", ir::AccessModeAttr::get(context_, ir::AccessMode::ReadWrite)),
      builder.getNamedAttr("extents", builder.getArrayAttr(sizes))};
  if (!held.empty())
    described.push_back(
        builder.getNamedAttr(ir::kHeldExtents, builder.getArrayAttr(SmallVector<Attribute>(held.begin(), held.end()))));
  return add(static_cast<unsigned>(types_.size()), ir::ViewType::get(shape, element), "", ir::Role::Temp, described);
}

unsigned EntryArguments::addCopy(unsigned original, ArrayRef<ir::SizeAttr> asked) {
  OpBuilder builder(context_);
  SmallVector<ir::SizeAttr> extents;
  for (ir::SizeAttr extent : asked)
    extents.push_back(mostOf(extent));
  auto type = cast<ir::ViewType>(types_[original]);
  SmallVector<Attribute> sizes(extents.begin(), extents.end());
  SmallVector<NamedAttribute> described{
      builder.getNamedAttr("access", ir::AccessModeAttr::get(context_, ir::AccessMode::ReadWrite)),
      builder.getNamedAttr("extents", builder.getArrayAttr(sizes)),
      builder.getNamedAttr(ir::kStandsFor, builder.getI64IntegerAttr(original))};
  // The view does not say whether integers have a sign.
  if (auto spelled = cast<DictionaryAttr>(args_[original]).getAs<StringAttr>("type"))
    described.push_back(builder.getNamedAttr("type", spelled));
  // Rows of the original may be of any length.
  return add(static_cast<unsigned>(types_.size()),
             ir::ViewType::get(SmallVector<int64_t>(extents.size(), ShapedType::kDynamic), type.getElementType()), "",
             ir::Role::Temp, described);
}

bool EntryArguments::isReadParam(unsigned argument) const {
  auto described = cast<DictionaryAttr>(args_[argument]);
  auto access = described.getAs<ir::AccessModeAttr>("access");
  return described.getAs<ir::RoleAttr>("role").getValue() == ir::Role::Param && access &&
         access.getValue() == ir::AccessMode::Read && !described.contains("struct_bytes");
}

unsigned EntryArguments::addLet(StringRef name, std::optional<size::Bounds> bounds) {
  NamedAttrList described;
  if (bounds) {
    described.append(kLeast, ir::SizeAttr::get(context_, bounds->low));
    described.append(kMost, ir::SizeAttr::get(context_, bounds->high));
  }
  return add(nextLet(), IndexType::get(context_), name, ir::Role::Let, described);
}

unsigned EntryArguments::nextLet() const {
  return static_cast<unsigned>(llvm::find_if(args_, isTemporary) - args_.begin());
}

bool EntryArguments::hasTemporaries() const { return llvm::any_of(args_, isTemporary); }

void EntryArguments::assign() {
  entry_.setFunctionType(FunctionType::get(context_, types_, {}));
  entry_.setArgsAttr(ArrayAttr::get(context_, args_));
}

Placement EntryArguments::placementOf(unsigned argument) const {
  size::Arena& arena = ir::sizeArena(context_);
  auto type = cast<ir::ViewType>(types_[argument]);
  auto described = cast<DictionaryAttr>(args_[argument]);
  const bool isTemp = isTemporary(described);
  Placement placement;
  placement.elementBytes = type.elementBytes();
  placement.address = isTemp ? arena.constant(0) : arena.address(argument);
  for (unsigned dim = 0; dim < static_cast<unsigned>(type.getRank()); ++dim) {
    placement.extents.push_back(!type.isDynamic(dim) ? arena.constant(type.getShape()[dim])
                                : isTemp ? cast<ir::SizeAttr>(described.getAs<ArrayAttr>("extents")[dim]).getExpr()
                                         : arena.dim(argument, dim));
    placement.strides.push_back(arena.stride(argument, dim));
  }
  size::Expr pitch = arena.constant(1);
  for (size_t dim = placement.extents.size(); isTemp && dim-- > 0;) {
    placement.strides[dim] = pitch;
    pitch = size::make(size::Op::Mul, placement.extents[dim], pitch);
  }
  return placement;
}

}  // namespace vortex::passes
