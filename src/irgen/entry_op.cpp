// Building vx.entry: constraints with the user's words, access modes from the kernels' bodies.
#include "irgen/launch_shape.h"

#include "lang/flow/launch_shapes.h"
#include "lang/sema/element.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "llvm/ADT/StringExtras.h"

#include <set>

namespace vortex::irgen {

using lang::LaunchCheck;

namespace {

/// "rows", "columns", "elements" or "extent … in dimension 2", for an extent shown as {number}.
std::string describeExtent(lang::Type tensor, uint32_t dim, unsigned number) {
  std::string value = "{" + std::to_string(number) + "}";
  if (tensor->rank() == 1)
    return value + " elements";
  if (tensor->rank() == 2)
    return value + (dim == 0 ? " rows" : " columns");
  return "extent " + value + " in dimension " + std::to_string(dim);
}

lang::Type tensorAt(const lang::Function& kernel, uint32_t param, llvm::ArrayRef<uint32_t> path) {
  lang::Type type = stripRef(kernel.params[param]->type);
  for (uint32_t field : path)
    type = stripRef(lang::partOf(type, field));
  return type;
}

std::string quoted(const std::string& name) { return "`" + name + "`"; }

class Constraints {
public:
  Constraints(const Entry& entry) : entry_(entry), kernel_(entry.kernel()), names_(kernel_.dimNames()) {}

  void add(const LaunchCheck& check) {
    if (check.kind == LaunchCheck::Kind::ExtentEquals)
      return addExtent(check);
    if (check.kind == LaunchCheck::Kind::Exact)
      return addExact(check);
    ir::SizeAttr value = entry_.size(check.expected);
    if (!value)
      return;
    if (check.kind == LaunchCheck::Kind::NotNegative)
      return push(ir::sizeUnary(size::Op::Not, ir::sizeBinary(size::Op::Less, value, entry_.constant(0))),
                  check.expected.text(names_) + " must not be negative, but is {0}", {value});
    bool power = check.kind == LaunchCheck::Kind::PowerOfTwo;
    ir::SizeAttr condition =
        power ? ir::sizeUnary(size::Op::IsPowerOfTwo, value)
              : ir::sizeUnary(size::Op::Not, ir::sizeBinary(size::Op::Equal, value, entry_.constant(0)));
    push(condition, check.expected.text(names_) + (power ? " must be a power of two, but is {0}" : " must not be zero"),
         {value});
  }

  /// A specialised dimension variable: the module is only valid for this value.
  void addSpecialised(lang::DimVarId dim, int64_t value) {
    const lang::DimBinding& binding = kernel_.dims[dim];
    if (!binding.param)
      return;
    ir::SizeAttr actual = entry_.variable(dim);
    push(ir::sizeBinary(size::Op::Equal, actual, entry_.constant(value)),
         "the kernel was compiled for " + binding.name + " = " + std::to_string(value) + ", but it is {0}", {actual});
  }

  /// Bounds are checked against one plane of a tensor of structs: the others have its extents.
  void addPlanes(const Planes& planes) {
    for (uint32_t plane = 1; plane < planes.count; ++plane)
      for (uint32_t dim = 0; dim < planes.rank; ++dim) {
        ir::SizeAttr actual = ir::sizeDim(entry_.types().context(), planes.first + plane, dim);
        ir::SizeAttr expected = ir::sizeDim(entry_.types().context(), planes.first, dim);
        push(ir::sizeBinary(size::Op::Equal, actual, expected),
             quoted(entry_.arguments()[planes.first + plane].name) + " has extent {0} in dimension " +
                 std::to_string(dim) + ", but " + quoted(entry_.arguments()[planes.first].name) +
                 " has {1}: they are fields of one tensor of structs",
             {actual, expected});
      }
  }

  /// A number that no value of the enum has would take any arm of a `match`.
  void addEnum(uint32_t argument, lang::Type enumeration) {
    ir::SizeAttr number = ir::sizeScalar(entry_.types().context(), argument), isValue = entry_.constant(0);
    std::set<int64_t> values(enumeration->decl->enumValues.begin(), enumeration->decl->enumValues.end());
    for (auto first = values.begin(); first != values.end();) {  // by runs: most enums are one
      int64_t end = *first + 1, begin = *first;
      for (++first; first != values.end() && *first == end; ++first)
        ++end;
      ir::SizeAttr isInRun = ir::sizeBinary(
          size::Op::And, ir::sizeUnary(size::Op::Not, ir::sizeBinary(size::Op::Less, number, entry_.constant(begin))),
          ir::sizeBinary(size::Op::Less, number, entry_.constant(end)));
      isValue = ir::sizeBinary(size::Op::Or, isValue, isInRun);
    }
    push(isValue,
         quoted(entry_.arguments()[argument].name) + " is {0}, which is no value of " + quoted(enumeration->decl->name),
         {number});
  }

  /// Of the blocks along an axis.
  void addBlocks(const lang::LaunchLimit& limit, const LaunchShape& shape) {
    ir::SizeAttr blocks = shape.grid[*limit.blocksAlong], most = entry_.constant(limit.most);
    ir::SizeAttr fits = ir::sizeUnary(size::Op::Not, ir::sizeBinary(size::Op::Less, most, blocks));
    if (limit.isExact)
      fits = ir::sizeBinary(size::Op::Or, ir::sizeBinary(size::Op::Equal, blocks, most),
                            ir::sizeBinary(size::Op::Equal, blocks, entry_.constant(0)));
    push(fits,
         quoted(kernel_.name) + " is proven free of races for " + (limit.isExact || limit.most == 1 ? "" : "at most ") +
             std::to_string(limit.most) + (limit.most == 1 ? " block along " : " blocks along ") +
             "xyz"[*limit.blocksAlong] + ", and the launch has {0}: give it a grid of so many, make each block touch " +
             "elements of its own, or allow it by `@unchecked(races)`",
         {blocks});
  }

  /// Divided factor by factor, so that no product of a refused launch is large.
  void addLimit(const lang::LaunchLimit& limit, const LaunchShape& shape) {
    if (limit.blocksAlong)
      return addBlocks(limit, shape);
    llvm::SmallVector<ir::SizeAttr> factors, shown;
    std::vector<std::string> texts;
    ir::SizeAttr isSize = entry_.constant(1);
    const auto show = [&](const std::string& name, ir::SizeAttr size, bool isUnsigned) {
      texts.push_back(name + " = {" + std::to_string(shown.size()) + "}");
      shown.push_back(size);
      if (isUnsigned)  // a number of 64 bits that is none of 63
        isSize = ir::sizeBinary(size::Op::And, isSize,
                                ir::sizeUnary(size::Op::Not, ir::sizeBinary(size::Op::Less, size, entry_.constant(0))));
    };
    for (lang::DimVarId dim : limit.dims)
      if (ir::SizeAttr size = entry_.variable(dim)) {
        show(kernel_.dims[dim].name, size, false);
        factors.push_back(size);
      }
    for (uint32_t param : limit.scalars) {
      factors.push_back(ir::sizeScalar(entry_.types().context(), entry_.firstOfParam(param)));
      show(quoted(kernel_.params[param]->name), factors.back(), lang::isUnsigned(kernel_.params[param]->type->scalar));
    }
    if (limit.ofThreads) {
      show("blocks", product(shape.grid), false);
      show("threads of a block", product(shape.block), false);
      factors.append(shape.grid.begin(), shape.grid.end());
      factors.append(shape.block.begin(), shape.block.end());
    }
    ir::SizeAttr room = entry_.constant(limit.most);
    for (ir::SizeAttr factor : factors)
      room = ir::sizeBinary(size::Op::FloorDiv, room, ir::sizeBinary(size::Op::Max, factor, entry_.constant(1)));
    ir::SizeAttr fits = ir::sizeBinary(size::Op::And, isSize, ir::sizeBinary(size::Op::Less, entry_.constant(0), room));
    std::string given = llvm::join(texts, " and ");
    const std::string most = std::to_string(limit.most), allow = ", or allow it by `@unchecked(races)`";
    if (limit.ofTickets && limit.ofThreads)
      return push(fits,
                  "more than " + most + " threads draw the same number twice from a counter of " +
                      quoted(kernel_.name) + ": count in u64" + allow,
                  {});
    if (limit.ofTickets)
      return push(fits,
                  quoted(kernel_.name) + " draws numbers from a counter up to " + given + ", of which one beyond " +
                      most + " may come twice: count in u64" + allow,
                  shown);
    if (limit.dims.empty() && limit.scalars.size() == 1 && !limit.ofThreads &&
        lang::bitWidth(kernel_.params[limit.scalars[0]]->type->scalar) == 64)
      return push(fits,
                  quoted(kernel_.name) + " is proven free of races for numbers up to " + most + ", and " + given +
                      " is more" + allow,
                  shown);
    push(fits,
         quoted(kernel_.name) + " counts in integers up to " + most + ", and " + given +
             (shown.size() > 1 ? " come to more" : " is more") +
             (limit.most > UINT32_MAX ? "" : ": compute subscripts in usize") + allow,
         shown);
  }

  /// What is proven of blocks that the kernel does not give itself, in constants, counts on their having so few threads.
  void addBlock(const LaunchShape& shape) {
    constexpr auto kMost = static_cast<int64_t>(lang::flow::kMostThreadsOfBlock);
    ir::SizeAttr threads = product(shape.block);
    push(ir::sizeUnary(size::Op::Not, ir::sizeBinary(size::Op::Less, entry_.constant(kMost), threads)),
         "a block of {0} threads: more than " + std::to_string(kMost) + " only where " + quoted(kernel_.name) +
             " itself says how many, `@launch(block = …)` with constants",
         {threads});
  }

  /// What the checks say of barriers, warps and races holds for the blocks that they were told of.
  void addCheckedBlocks(const LaunchShape& shape) {
    const auto& checked = kernel_.kernel->checkedBlocks;
    const auto isLike = [&](const std::array<std::optional<int64_t>, 3>& each) {
      for (unsigned axis = 0; axis < 3; ++axis)
        if (each[axis] && shape.blockSize(axis) != each[axis])
          return false;
      return true;
    };
    if (!checked.empty() && std::ranges::none_of(checked, isLike))
      push(entry_.constant(0),
           "a block of {0} × {1} × {2} threads, for which " + quoted(kernel_.name) + " was not checked",
           {shape.block[0], shape.block[1], shape.block[2]});
  }

  mlir::ArrayAttr get() const { return mlir::ArrayAttr::get(entry_.types().context(), constraints_); }

private:
  /// To be shown: at most 2^31.
  ir::SizeAttr product(const std::array<ir::SizeAttr, 3>& sizes) const {
    ir::SizeAttr all = entry_.constant(1), most = entry_.constant(int64_t(1) << 31);
    for (ir::SizeAttr size : sizes)
      all = ir::sizeBinary(size::Op::Min, ir::sizeBinary(size::Op::Mul, all, ir::sizeBinary(size::Op::Min, size, most)),
                           most);
    return all;
  }

  void addExtent(const LaunchCheck& check) {
    uint32_t argument = entry_.argumentOf(check.param, check.fieldPath);
    ir::SizeAttr actual = ir::sizeDim(entry_.types().context(), argument, check.dim);
    ir::SizeAttr expected = entry_.size(check.expected);
    if (!expected)
      return;
    lang::Type tensor = tensorAt(kernel_, check.param, check.fieldPath);
    std::string message = quoted(entry_.arguments()[argument].name) + " has " + describeExtent(tensor, check.dim, 0);
    std::optional<lang::DimVarId> variable = check.expected.asVariable();
    if (addFactor(check, argument, actual, expected))
      return;
    if (check.expected.asConstant()) {
      message += ", but {1} are required";
      if (tensor->rank() > 2)
        message = quoted(entry_.arguments()[argument].name) + " has extent {0} in dimension " +
                  std::to_string(check.dim) + ", but {1} is required";
    } else if (variable && kernel_.dims[*variable].param && !kernel_.dims[*variable].factor) {
      const lang::DimBinding& binding = kernel_.dims[*variable];
      uint32_t other = entry_.argumentOf(*binding.param, binding.fieldPath);
      lang::Type otherType = tensorAt(kernel_, *binding.param, binding.fieldPath);
      message += " but " + quoted(entry_.arguments()[other].name);
      message += otherType->isTensor() ? " has " + describeExtent(otherType, binding.dim, 1) : " is {1}";
      message += " (dimension " + binding.name + ")";
    } else {
      message += ", but " + check.expected.text(names_) + " is {1}";
    }
    push(ir::sizeBinary(size::Op::Equal, actual, expected), message, {actual, expected});
  }

  void addExact(const LaunchCheck& check) {
    ir::SizeAttr dividend = entry_.size(check.expected), divisor = entry_.size(check.divisor);
    ir::SizeAttr zero = entry_.constant(0);
    ir::SizeAttr isExact =
        ir::sizeBinary(size::Op::And, ir::sizeUnary(size::Op::Not, ir::sizeBinary(size::Op::Equal, divisor, zero)),
                       ir::sizeBinary(size::Op::Equal, ir::sizeBinary(size::Op::Mod, dividend, divisor), zero));
    ir::SizeAttr areEqual = ir::sizeBinary(size::Op::Equal, entry_.size(check.agrees), entry_.size(check.with));
    const bool isNumber = check.divisor.asConstant().has_value();
    push(ir::sizeBinary(size::Op::Or, areEqual, isExact),
         check.expected.text(names_) + " must be a multiple of " + check.divisor.text(names_) +
             (isNumber ? ", but is {0}" : " = {1}, but is {0}") + ": " + check.agrees.text(names_) + " and " +
             check.with.text(names_) + " have to be equal",
         isNumber ? llvm::ArrayRef(dividend) : llvm::ArrayRef({dividend, divisor}));
  }

  /// Of the extent that gives a dimension variable its value as a quotient.
  bool addFactor(const LaunchCheck& check, uint32_t argument, ir::SizeAttr actual, ir::SizeAttr expected) {
    for (const lang::DimBinding& binding : kernel_.dims)
      if (binding.factor && binding.param == check.param && binding.dim == check.dim &&
          binding.fieldPath == check.fieldPath) {
        ir::SizeAttr factor = entry_.size(*binding.factor);
        push(ir::sizeBinary(size::Op::Equal, actual, expected),
             quoted(entry_.arguments()[argument].name) + " has extent {0} in dimension " + std::to_string(check.dim) +
                 ", which is no multiple of " + binding.factor->text(names_) +
                 (binding.factor->asConstant() ? "" : " = {1}") + " (dimension " + binding.name + ")",
             {actual, factor});
        return true;
      }
    return false;
  }

  bool isUnsignedScalar(ir::SizeAttr size) const {
    const size::Expr expr = size.getExpr();
    return expr.op() == size::Op::Scalar && entry_.arguments()[expr.node().argument].elementType == "u64";
  }

  /// `{0}` in the message is the first operand.
  void push(ir::SizeAttr condition, std::string message, llvm::ArrayRef<ir::SizeAttr> operands) {
    std::optional<int64_t> constant = ir::constantSize(condition);
    if (constant && *constant)
      return;
    for (auto [i, operand] : llvm::enumerate(operands)) {
      const std::string place = "{" + std::to_string(i) + "}";
      for (size_t at = 0; isUnsignedScalar(operand) && (at = message.find(place, at)) != std::string::npos;)
        message.insert(at + place.size() - 1, "u");
    }
    constraints_.push_back(ir::ConstraintAttr::get(condition.getContext(), condition,
                                                   mlir::StringAttr::get(condition.getContext(), message), operands));
  }

  const Entry& entry_;
  const lang::Function& kernel_;
  std::vector<std::string> names_;
  llvm::SmallVector<mlir::Attribute> constraints_;
};

/// The entry argument a view is a window of; -1 for shared and local memory.
int64_t rootArgument(mlir::Value view) {
  while (mlir::Operation* definition = view.getDefiningOp()) {
    auto subview = llvm::dyn_cast<ir::SubviewOp>(definition);
    if (!subview)
      return -1;
    view = subview.getSource();
  }
  auto argument = llvm::dyn_cast<mlir::BlockArgument>(view);
  return argument && llvm::isa<ir::KernelOp>(argument.getOwner()->getParentOp()) ? argument.getArgNumber() : -1;
}

struct Access {
  bool reads = false, writes = false;
};

llvm::SmallVector<Access> accesses(mlir::ModuleOp module, size_t count) {
  llvm::SmallVector<Access> result(count);
  module.walk([&](mlir::Operation* op) {
    auto effects = llvm::dyn_cast<mlir::MemoryEffectOpInterface>(op);
    if (!effects)
      return;
    for (mlir::Value operand : op->getOperands()) {
      if (!llvm::isa<ir::ViewType>(operand.getType()) || llvm::isa<ir::SubviewOp>(op))
        continue;
      int64_t argument = rootArgument(operand);
      if (argument < 0)
        continue;
      bool load = llvm::isa<ir::LoadOp, ir::TileLoadOp, ir::AtomicLoadOp, ir::StageCopyOp>(op);
      bool store = llvm::isa<ir::StoreOp, ir::TileStoreOp, ir::AtomicStoreOp>(op);
      bool both = !load && !store && !mlir::isMemoryEffectFree(op);
      result[argument].reads |= load || both;
      result[argument].writes |= store || both;
    }
  });
  return result;
}

}  // namespace

mlir::ArrayAttr launchConstraints(const Entry& entry, const Options& options, const LaunchShape& shape) {
  Constraints constraints(entry);
  for (const LaunchCheck& check : entry.kernel().checks)
    constraints.add(check);
  for (const Planes& planes : planesOfParams(entry))
    constraints.addPlanes(planes);
  for (uint32_t i = 0; i < entry.arguments().size(); ++i)
    if (lang::Type enumeration = entry.arguments()[i].enumeration)
      constraints.addEnum(i, enumeration);
  for (size_t dim = 0; dim < options.dims.size(); ++dim)
    if (options.dims[dim])
      constraints.addSpecialised(dim, *options.dims[dim]);
  const lang::KernelSpec& spec = *entry.kernel().kernel;
  for (const lang::LaunchLimit& limit : spec.limits)
    if (shape.grid[0])
      constraints.addLimit(limit, shape);
  if (shape.grid[0])
    constraints.addCheckedBlocks(shape);
  const bool isWritten = !options.block && std::ranges::all_of(spec.block, [](const auto* size) {
    return size->kind == lang::ExprKind::Int;
  });
  if (shape.grid[0] && !isWritten)
    constraints.addBlock(shape);
  return constraints.get();
}

void createEntry(const Entry& entry, mlir::ModuleOp module, mlir::ArrayAttr constraints, const Locations& locations) {
  mlir::MLIRContext* context = module.getContext();
  mlir::OpBuilder builder(context);
  builder.setInsertionPointToStart(module.getBody());
  llvm::SmallVector<Access> access = accesses(module, entry.arguments().size());
  llvm::SmallVector<mlir::Attribute> arguments;
  for (auto [argument, touched] : llvm::zip(entry.arguments(), access)) {
    mlir::NamedAttrList fields;
    fields.set("name", builder.getStringAttr(argument.name));
    fields.set("role", ir::RoleAttr::get(context, argument.role));
    auto mode = touched.writes && touched.reads ? ir::AccessMode::ReadWrite
                : touched.writes                ? ir::AccessMode::Write
                                                : ir::AccessMode::Read;
    if (llvm::isa<ir::ViewType>(argument.type))
      fields.set("access", ir::AccessModeAttr::get(context, mode));
    if (!argument.extents.empty())
      fields.set("extents", builder.getArrayAttr(
                                llvm::SmallVector<mlir::Attribute>(argument.extents.begin(), argument.extents.end())));
    if (argument.zero)
      fields.set("zero", builder.getUnitAttr());
    if (!argument.elementType.empty())
      fields.set("type", builder.getStringAttr(argument.elementType));
    if (argument.structBytes) {
      fields.set("struct_bytes", builder.getI64IntegerAttr(argument.structBytes));
      fields.set("field_offset", builder.getI64IntegerAttr(argument.fieldOffset));
    }
    fields.set("loc", locations(argument.range));
    arguments.push_back(fields.getDictionary(context));
  }
  auto type = mlir::FunctionType::get(context, entry.argumentTypes(), {});
  auto made = builder.create<ir::EntryOp>(locations(entry.kernel().nameRange),
                                          builder.getStringAttr(entry.kernel().artifactName), mlir::TypeAttr::get(type),
                                          builder.getArrayAttr(arguments), constraints,
                                          builder.getDenseI64ArrayAttr(entry.scalarResults()));
  if (entry.kernel().kernel->fused)
    made->setAttr("vx.fused", builder.getUnitAttr());
}

}  // namespace vortex::irgen
