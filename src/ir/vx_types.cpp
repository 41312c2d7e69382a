// Types and attributes: printing, parsing, verification.
#include "ir/size_attr.h"
#include "ir/vx.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-parameter"
#define GET_ATTRDEF_CLASSES
#include "ir/vx_attrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/vx_types.cpp.inc"
#pragma clang diagnostic pop

namespace vortex::ir {

using llvm::ArrayRef;
using llvm::function_ref;
using mlir::Attribute;
using mlir::failure;
using mlir::InFlightDiagnostic;
using mlir::LogicalResult;
using mlir::success;
using mlir::Type;

void VxDialect::registerAttributesAndTypes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/vx_attrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/vx_types.cpp.inc"
      >();
}

static constexpr llvm::StringLiteral kColMajor = "col_major";

Attribute viewLayout(mlir::MLIRContext* context, bool colMajor, SwizzleAttr swizzle) {
  if (!colMajor)
    return swizzle;
  auto order = mlir::StringAttr::get(context, kColMajor);
  return swizzle ? Attribute(mlir::ArrayAttr::get(context, {order, swizzle})) : Attribute(order);
}

bool ViewType::isColMajor() const {
  Attribute layout = getLayout();
  return layout && !llvm::isa<SwizzleAttr>(layout);
}

SwizzleAttr ViewType::getSwizzle() const {
  Attribute layout = getLayout();
  if (auto both = llvm::dyn_cast_or_null<mlir::ArrayAttr>(layout))
    return llvm::cast<SwizzleAttr>(both[1]);
  return llvm::dyn_cast_or_null<SwizzleAttr>(layout);
}

int64_t ViewType::numElements() const { return mlir::ShapedType::getNumElements(getShape()); }

int64_t ViewType::elementBytes() const {
  return getElementType().isIndex() ? 8 : llvm::divideCeil(getElementType().getIntOrFloatBitWidth(), 8);
}

/// `<?x32xf32, shared, col_major, swizzle<3, 7, 3>>`
Type ViewType::parse(mlir::AsmParser& parser) {
  llvm::SmallVector<int64_t> shape;
  Type elementType;
  llvm::StringRef spaceName;
  llvm::SMLoc start = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(shape) || parser.parseType(elementType) || parser.parseComma())
    return {};
  llvm::SMLoc spaceLoc = parser.getCurrentLocation();
  if (parser.parseKeyword(&spaceName))
    return {};
  std::optional<Space> space = symbolizeSpace(spaceName);
  if (!space) {
    parser.emitError(spaceLoc, "memory space is one of global, shared, local, constant; got ") << spaceName;
    return {};
  }
  bool colMajor = false;
  SwizzleAttr swizzle;
  while (mlir::succeeded(parser.parseOptionalComma())) {
    if (!colMajor && !swizzle && mlir::succeeded(parser.parseOptionalKeyword(kColMajor))) {
      colMajor = true;
      continue;
    }
    if (swizzle || parser.parseKeyword("swizzle"))
      return {};
    swizzle = llvm::dyn_cast_or_null<SwizzleAttr>(SwizzleAttr::parse(parser, {}));
    if (!swizzle)
      return {};
  }
  if (parser.parseGreater())
    return {};
  mlir::MLIRContext* context = parser.getContext();
  return getChecked([&] { return parser.emitError(start); }, context, shape, elementType, *space,
                    viewLayout(context, colMajor, swizzle));
}

void ViewType::print(mlir::AsmPrinter& printer) const {
  printer << '<';
  printer.printDimensionList(getShape());
  if (!getShape().empty())
    printer << 'x';
  printer << getElementType() << ", " << stringifySpace(getSpace());
  if (isColMajor())
    printer << ", " << kColMajor;
  if (SwizzleAttr swizzle = getSwizzle()) {
    printer << ", swizzle";
    swizzle.print(printer);
  }
  printer << '>';
}

static bool isWellFormedLayout(Attribute layout) {
  auto isOrder = [](Attribute part) {
    auto text = llvm::dyn_cast<mlir::StringAttr>(part);
    return text && text.getValue() == kColMajor;
  };
  if (auto both = llvm::dyn_cast<mlir::ArrayAttr>(layout))
    return both.size() == 2 && isOrder(both[0]) && llvm::isa<SwizzleAttr>(both[1]);
  return isOrder(layout) || llvm::isa<SwizzleAttr>(layout);
}

LogicalResult ViewType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape, Type elementType,
                               Space space, Attribute layout) {
  for (auto [i, extent] : llvm::enumerate(shape))
    if (extent < 0 && !mlir::ShapedType::isDynamic(extent))
      return emitError() << "dimension " << i << " of a view has negative extent " << extent;
  if (!elementType.isSignlessInteger() && !llvm::isa<mlir::FloatType, mlir::IndexType>(elementType))
    return emitError() << "elements of a view are signless integers, floats or index, not " << elementType;
  if (!layout)
    return success();
  if (!isWellFormedLayout(layout))
    return emitError() << "layout of a view is col_major, a swizzle, or both";
  if (space != Space::Shared && space != Space::Local)
    return emitError() << "only shared and local views have a layout, not " << stringifySpace(space) << " ones";
  return success();
}

LogicalResult SwizzleAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t shift, int64_t mask,
                                  int64_t base) {
  if (shift < 0 || shift > 62 || base < 0 || base > 62 || mask < 0)
    return emitError() << "swizzle needs shift and base in 0..62 and a mask that is not negative; got shift " << shift
                       << ", mask " << mask << ", base " << base;
  // Otherwise the XOR term reads bits it changes and the map is no bijection.
  if (((mask << shift) & (mask << base)) != 0)
    return emitError() << "swizzle reads and writes the same offset bits (shift " << shift << ", mask " << mask
                       << ", base " << base << ")";
  return success();
}

}  // namespace vortex::ir
