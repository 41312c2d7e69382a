// Entry, kernels, thread regions and synchronisation: what may stand where.
#include "ir/index_cast.h"
#include "ir/size_attr.h"
#include "ir/vx.h"

#include "mlir/Interfaces/FunctionImplementation.h"

namespace vortex::ir {

using llvm::StringRef;
using mlir::ArrayAttr;
using mlir::LogicalResult;
using mlir::OpAsmParser;
using mlir::OpAsmPrinter;
using mlir::Operation;
using mlir::ParseResult;
using mlir::success;
using mlir::Type;

static bool isSizeList(ArrayAttr list) {
  return llvm::all_of(list, [](mlir::Attribute attribute) { return llvm::isa<SizeAttr>(attribute); });
}

static LogicalResult verifySize(Operation* op, SizeAttr size, mlir::TypeRange argumentTypes) {
  return verifySize(size, argumentTypes, [&] { return op->emitOpError(); });
}

//===-- entry -------------------------------------------------------------------------------------------------===//

static LogicalResult verifyEntryArgument(EntryOp op, unsigned number, mlir::DictionaryAttr facts) {
  mlir::TypeRange types = op.getFunctionType().getInputs();
  auto error = [&] { return op.emitOpError() << "argument " << number << " "; };
  auto view = llvm::dyn_cast<ViewType>(types[number]);
  if (view && view.getSpace() != Space::Global && view.getSpace() != Space::Constant)
    return error() << "is a " << stringifySpace(view.getSpace()) << " view; arguments are global or constant";
  if (!view && !llvm::isa<mlir::IntegerType, mlir::FloatType, mlir::IndexType>(types[number]))
    return error() << "is neither a view nor a scalar: " << types[number];
  if (!facts.getAs<mlir::StringAttr>("name"))
    return error() << "lacks a 'name'";
  auto role = facts.getAs<RoleAttr>("role");
  if (!role)
    return error() << "lacks a 'role'";
  if (view && !facts.getAs<AccessModeAttr>("access"))
    return error() << "lacks an 'access'";
  auto structBytes = facts.getAs<mlir::IntegerAttr>("struct_bytes"),
       fieldOffset = facts.getAs<mlir::IntegerAttr>("field_offset");
  if (bool(structBytes) != bool(fieldOffset))
    return error() << "has 'struct_bytes' without 'field_offset', or the reverse";
  if (structBytes &&
      (!view || fieldOffset.getInt() < 0 || fieldOffset.getInt() + int64_t(view.elementBytes()) > structBytes.getInt()))
    return error() << "is no field at byte " << fieldOffset.getInt() << " of structs of " << structBytes.getInt()
                   << " bytes";
  if (role.getValue() == Role::Param)
    return success();
  if (role.getValue() == Role::Let)
    return llvm::isa<mlir::IndexType>(types[number]) ? success() : error() << "is a let and must be an index";
  if (!view)
    return error() << "is a " << stringifyRole(role.getValue()) << " and must be a view";
  auto extents = facts.getAs<ArrayAttr>("extents");
  if (!extents || int64_t(extents.size()) != view.getRank() || !isSizeList(extents))
    return error() << "is a " << stringifyRole(role.getValue())
                   << " and needs 'extents' with one #vx.size for each of its " << view.getRank() << " dimensions";
  for (SizeAttr size : extents.getAsRange<SizeAttr>())
    if (mlir::failed(verifySize(op, size, types)))
      return mlir::failure();
  return success();
}

static LogicalResult verifyKernelsOfEntry(EntryOp op) {
  for (Operation& other : *op->getBlock()) {
    if (llvm::isa<EntryOp>(other) && &other != op.getOperation())
      return op.emitOpError() << "is not the only vx.entry of its module";
    auto kernel = llvm::dyn_cast<KernelOp>(other);
    if (kernel && kernel.getFunctionType().getInputs() != op.getFunctionType().getInputs())
      return op.emitOpError() << "takes " << op.getFunctionType() << " but kernel @" << kernel.getSymName() << " takes "
                              << kernel.getFunctionType();
  }
  return success();
}

LogicalResult EntryOp::verify() {
  mlir::TypeRange types = getFunctionType().getInputs();
  if (getFunctionType().getNumResults() != 0)
    return emitOpError() << "has results; they are arguments with role result";
  if (getArgs().size() != types.size())
    return emitOpError() << "describes " << getArgs().size() << " arguments but takes " << types.size();
  Role last = Role::Param;
  for (auto [i, attribute] : llvm::enumerate(getArgs())) {
    auto facts = llvm::dyn_cast<mlir::DictionaryAttr>(attribute);
    if (!facts)
      return emitOpError() << "argument " << i << " is described by " << attribute << ", not by a dictionary";
    if (mlir::failed(verifyEntryArgument(*this, i, facts)))
      return mlir::failure();
    Role role = facts.getAs<RoleAttr>("role").getValue();
    if (role < last)
      return emitOpError() << "argument " << i << " is a " << stringifyRole(role) << " after a " << stringifyRole(last)
                           << "; the order is params, results, lets, temps";
    last = role;
  }
  for (mlir::Attribute attribute : getConstraints()) {
    auto constraint = llvm::dyn_cast<ConstraintAttr>(attribute);
    if (!constraint)
      return emitOpError() << "constraint " << attribute << " is no #vx.constraint";
    if (mlir::failed(verifySize(*this, constraint.getCondition(), types)))
      return mlir::failure();
    for (SizeAttr operand : constraint.getOperands())
      if (mlir::failed(verifySize(*this, operand, types)))
        return mlir::failure();
  }
  for (int64_t number : getScalarResults()) {
    bool inRange = number >= 0 && number < int64_t(types.size());
    auto facts = inRange ? llvm::cast<mlir::DictionaryAttr>(getArgs()[number]) : mlir::DictionaryAttr();
    if (!inRange || facts.getAs<RoleAttr>("role").getValue() != Role::Result)
      return emitOpError() << "scalar result " << number << " is no argument with role result";
  }
  return verifyKernelsOfEntry(*this);
}

//===-- kernel ------------------------------------------------------------------------------------------------===//

/// vx.kernel @name(%a: type, …) grid [size, …] block [size, …] whole_tensor attributes {…} { body }
ParseResult KernelOp::parse(OpAsmParser& parser, mlir::OperationState& result) {
  mlir::Builder& builder = parser.getBuilder();
  mlir::StringAttr name;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name), result.attributes))
    return mlir::failure();
  llvm::SmallVector<OpAsmParser::Argument> arguments;
  llvm::SmallVector<mlir::DictionaryAttr> resultAttrs;
  llvm::SmallVector<Type> resultTypes, argumentTypes;
  bool isVariadic = false;
  if (mlir::function_interface_impl::parseFunctionSignature(parser, false, arguments, isVariadic, resultTypes,
                                                            resultAttrs))
    return mlir::failure();
  for (const OpAsmParser::Argument& argument : arguments)
    argumentTypes.push_back(argument.type);
  auto type = builder.getFunctionType(argumentTypes, resultTypes);
  result.addAttribute(getFunctionTypeAttrName(result.name), mlir::TypeAttr::get(type));
  for (auto [keyword, attributeName] : {std::pair(StringRef("grid"), getGridAttrName(result.name)),
                                        std::pair(StringRef("block"), getBlockAttrName(result.name))}) {
    ArrayAttr list;
    if (mlir::succeeded(parser.parseOptionalKeyword(keyword)) &&
        parser.parseAttribute(list, attributeName, result.attributes))
      return mlir::failure();
  }
  if (mlir::succeeded(parser.parseOptionalKeyword("whole_tensor")))
    result.addAttribute(getWholeTensorAttrName(result.name), builder.getUnitAttr());
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return mlir::failure();
  mlir::function_interface_impl::addArgAndResultAttrs(
      builder, result, arguments, resultAttrs, getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
  mlir::Region* body = result.addRegion();
  return parser.parseRegion(*body, arguments, /*enableNameShadowing=*/false);
}

void KernelOp::print(OpAsmPrinter& printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  mlir::function_interface_impl::printFunctionSignature(printer, *this, getArgumentTypes(), false, getResultTypes());
  if (getGrid())
    printer << " grid " << *getGrid();
  if (getBlock())
    printer << " block " << *getBlock();
  if (getWholeTensor())
    printer << " whole_tensor";
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {getSymNameAttrName(), getFunctionTypeAttrName(), getGridAttrName(), getBlockAttrName(),
                            getWholeTensorAttrName(), getArgAttrsAttrName(), getResAttrsAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult KernelOp::verify() {
  if (!getResultTypes().empty())
    return emitOpError() << "has results; a kernel writes through its arguments";
  for (auto [i, type] : llvm::enumerate(getArgumentTypes())) {
    auto view = llvm::dyn_cast<ViewType>(type);
    bool isScalar = llvm::isa<mlir::IntegerType, mlir::FloatType, mlir::IndexType>(type);
    bool isGlobal = view && (view.getSpace() == Space::Global || view.getSpace() == Space::Constant);
    if (!isScalar && !isGlobal)
      return emitOpError() << "argument " << i << " is " << type
                           << "; arguments are global or constant views and scalars";
  }
  for (auto [name, list] : {std::pair(StringRef("grid"), getGrid()), std::pair(StringRef("block"), getBlock())}) {
    if (bool(list) == getWholeTensor())
      return emitOpError() << (list ? "is whole_tensor and has no " : "lacks ") << name;
    if (!list)
      continue;
    if (list->size() != 3 || !isSizeList(*list))
      return emitOpError() << name << " is not three #vx.size";
    for (SizeAttr size : list->getAsRange<SizeAttr>())
      if (mlir::failed(verifySize(*this, size, getArgumentTypes())))
        return mlir::failure();
  }
  mlir::Block& block = getBody().front();
  if (block.empty() || !llvm::isa<ReturnOp>(block.back()))
    return emitOpError() << "does not end with vx.return";
  return verifyIndexCasts(*this);
}

static LogicalResult verifyNotWholeTensor(Operation* op) {
  auto kernel = op->getParentOfType<KernelOp>();
  if (kernel && kernel.getWholeTensor())
    return op->emitOpError() << "has no meaning in a whole_tensor kernel, which has no blocks and threads";
  return success();
}

LogicalResult BlockIdOp::verify() { return verifyNotWholeTensor(*this); }
LogicalResult GridDimOp::verify() { return verifyNotWholeTensor(*this); }
LogicalResult BlockDimOp::verify() { return verifyNotWholeTensor(*this); }

//===-- thread regions ----------------------------------------------------------------------------------------===//

static LogicalResult verifyInsideThreads(Operation* op) {
  bool usesTile = llvm::any_of(op->getOperandTypes(), llvm::IsaPred<mlir::TensorType>) ||
                  llvm::any_of(op->getResultTypes(), llvm::IsaPred<mlir::TensorType>);
  if (usesTile)
    return op->emitOpError() << "works on a tile inside vx.threads, where code is per thread";
  if (auto alloc = llvm::dyn_cast<AllocOp>(op))
    if (alloc.getResult().getType().getSpace() == Space::Shared)
      return op->emitOpError() << "allocates shared memory inside vx.threads";
  return success();
}

LogicalResult ThreadsOp::verify() {
  if (mlir::failed(verifyNotWholeTensor(*this)))
    return mlir::failure();
  if (enclosingThreads(*this))
    return emitOpError() << "is nested in another vx.threads";
  mlir::Block& block = getBody().front();
  if (block.getNumArguments() != 4 + getInputs().size())
    return emitOpError() << "body takes " << block.getNumArguments() << " arguments; it needs x, y, z, linear id and "
                         << getInputs().size() << " inputs";
  for (auto [i, argument] : llvm::enumerate(block.getArguments())) {
    Type expected = i < 4 ? Type(mlir::IndexType::get(getContext()))
                          : llvm::cast<mlir::RankedTensorType>(getInputs()[i - 4].getType()).getElementType();
    if (argument.getType() != expected)
      return emitOpError() << "body argument " << i << " has type " << argument.getType() << " instead of " << expected;
  }
  auto yield = llvm::cast<YieldOp>(block.getTerminator());
  if (yield.getValues().size() != getOutputs().size())
    return emitOpError() << "yields " << yield.getValues().size() << " values for " << getOutputs().size()
                         << " results";
  for (auto [i, value, output] : llvm::enumerate(yield.getValues(), getOutputs())) {
    Type elementType = llvm::cast<mlir::RankedTensorType>(output.getType()).getElementType();
    if (value.getType() != elementType)
      return emitOpError() << "yields " << value.getType() << " for result " << i << " with elements " << elementType;
  }
  LogicalResult result = success();
  getBody().walk([&](Operation* op) {
    result = verifyInsideThreads(op);
    return mlir::failed(result) ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
  });
  return result;
}

static LogicalResult verifyPerThread(Operation* op) {
  return enclosingThreads(op) ? success() : op->emitOpError() << "stands outside vx.threads";
}

static LogicalResult verifyCutsRegions(Operation* op, llvm::StringRef what) {
  if (mlir::failed(verifyNotWholeTensor(op)))
    return mlir::failure();
  if (enclosingThreads(op))
    return op->emitOpError() << "stands inside vx.threads; " << what << " cut thread regions";
  return success();
}

LogicalResult BarrierOp::verify() {
  auto kernel = (*this)->getParentOfType<KernelOp>();
  if (getGrid() && kernel && !kernel->hasAttr(kCooperativeAttr))
    return emitOpError() << "is of the grid in a kernel that is not vx.cooperative";
  if (getGrid() && (getGrid().getType() !=
                    ViewType::get(getContext(), {1}, mlir::IntegerType::get(getContext(), 32), Space::Global, {})))
    return emitOpError() << "counts in " << getGrid().getType() << " instead of a word of global memory";
  return verifyCutsRegions(*this, "barriers");
}
LogicalResult StageCommitOp::verify() { return verifyCutsRegions(*this, "groups of copies"); }
LogicalResult StageWaitOp::verify() {
  if (getPending() < 0)
    return emitOpError() << "leaves " << getPending() << " groups in flight";
  return verifyCutsRegions(*this, "groups of copies");
}

LogicalResult WarpBarrierOp::verify() { return verifyPerThread(*this); }

LogicalResult FenceOp::verify() {
  if (getOrder() == Order::Relaxed)
    return emitOpError() << "orders nothing with relaxed";
  return verifyPerThread(*this);
}

LogicalResult WarpShuffleOp::verify() { return verifyPerThread(*this); }

LogicalResult WarpReduceOp::verify() {
  if (mlir::failed(verifyPerThread(*this)))
    return mlir::failure();
  Type type = getValue().getType();
  if (getKind() == Combine::Exchange || isFloatCombine(getKind()) != llvm::isa<mlir::FloatType>(type))
    return emitOpError() << "cannot combine " << type << " with " << stringifyCombine(getKind());
  return success();
}

LogicalResult WarpVoteOp::verify() {
  if (mlir::failed(verifyPerThread(*this)))
    return mlir::failure();
  unsigned width = getKind() == VoteKind::Ballot ? 32 : 1;
  if (!getResult().getType().isInteger(width))
    return emitOpError() << stringifyVoteKind(getKind()) << " yields i" << width << ", not " << getResult().getType();
  return success();
}

}  // namespace vortex::ir
