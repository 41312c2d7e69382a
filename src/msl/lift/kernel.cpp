#include "msl/lift/kernel.h"

#include "ir/simplify.h"
#include "ir/size_attr.h"
#include "ir/units_of_element.h"
#include "msl/flatten/clean.h"
#include "msl/lift/count_loops.h"
#include "msl/lift/distribute.h"
#include "msl/lift/import.h"
#include "msl/lift/structure.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

namespace vortex::msl::lift {

namespace arith = mlir::arith;
using mlir::Value;

namespace {

/// The entry, the kernel around the thread's code, and what its arguments stand for.
class KernelBuilder {
public:
  KernelBuilder(mlir::ModuleOp module, mlir::func::FuncOp thread, const std::vector<Memory>& memories,
                const Request& request)
      : b_(module.getContext()), loc_(thread.getLoc()), thread_(thread), memories_(memories), request_(request) {
    b_.setInsertionPointToStart(module.getBody());
  }

  bool build(Response& response) {
    llvm::SmallVector<mlir::Type> types;
    llvm::SmallVector<mlir::Attribute> arguments;
    for (auto [i, memory] : llvm::enumerate(memories_))
      if (isPassed(static_cast<unsigned>(i))) {
        types.push_back(thread_.getArgument(static_cast<unsigned>(i)).getType());
        arguments.push_back(describe(memory.name, memory.isWritten ? ir::AccessMode::ReadWrite : ir::AccessMode::Read,
                                     unitsOf(memory)));
        addUse(memory, types.back(), response);
      }
    auto firstScalar = static_cast<unsigned>(types.size());
    for (const char* name : {"grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"}) {
      types.push_back(b_.getIndexType());
      arguments.push_back(describe(name, std::nullopt));
    }
    auto signature = b_.getFunctionType(types, {});
    b_.create<ir::EntryOp>(loc_, request_.kernel, signature, b_.getArrayAttr(arguments),
                           b_.getArrayAttr(constraints(firstScalar)), b_.getDenseI64ArrayAttr({}));
    llvm::SmallVector<mlir::Attribute> grid, block;
    for (unsigned axis = 0; axis < 3; ++axis) {
      auto threads = ir::sizeScalar(b_.getContext(), firstScalar + axis);
      auto size = request_.block ? ir::sizeConstant(b_.getContext(), (*request_.block)[axis])
                                 : ir::sizeScalar(b_.getContext(), firstScalar + 3 + axis);
      block.push_back(size);
      grid.push_back(ir::sizeBinary(size::Op::CeilDiv, threads, size));
    }
    auto kernel = b_.create<ir::KernelOp>(loc_, request_.kernel + ".main", signature, mlir::ArrayAttr(),
                                          mlir::ArrayAttr(), b_.getArrayAttr(grid), b_.getArrayAttr(block), false);
    mlir::Block* body = b_.createBlock(&kernel.getBody());
    for (mlir::Type type : types)
      body->addArgument(type, loc_);
    fill(*body, firstScalar);
    thread_.erase();
    return mlir::succeeded(mlir::verify(kernel->getParentOp()));
  }

private:
  /// Launches give the buffers that the code touches: others may not exist, as those of a function constant that is off.
  bool isPassed(unsigned i) { return memories_[i].kind == Memory::Kind::Buffer && !thread_.getArgument(i).use_empty(); }

  mlir::IntegerAttr unitsOf(const Memory& memory) {
    const bool isKnown = memory.elementBytes > memory.unitBytes && memory.elementBytes % memory.unitBytes == 0;
    return isKnown ? b_.getI64IntegerAttr(static_cast<int64_t>(memory.elementBytes / memory.unitBytes)) : nullptr;
  }

  mlir::Attribute describe(llvm::StringRef name, std::optional<ir::AccessMode> access, mlir::IntegerAttr units = {}) {
    mlir::NamedAttrList list;
    list.append("name", b_.getStringAttr(name));
    list.append("role", ir::RoleAttr::get(b_.getContext(), ir::Role::Param));
    if (access)
      list.append("access", ir::AccessModeAttr::get(b_.getContext(), *access));
    if (units)
      list.append(ir::kUnitsOfElement, units);
    return list.getDictionary(b_.getContext());
  }

  /// Positions are 32-bit numbers; threadgroups are no larger than devices take, and those that are taken to be whole are.
  llvm::SmallVector<mlir::Attribute> constraints(unsigned firstScalar) {
    llvm::SmallVector<mlir::Attribute> all;
    mlir::MLIRContext* context = b_.getContext();
    auto require = [&](ir::SizeAttr condition, const std::string& message, ir::SizeAttr number) {
      all.push_back(ir::ConstraintAttr::get(context, condition, b_.getStringAttr(message), {number}));
    };
    const ir::SizeAttr above = ir::sizeConstant(context, flatten::kMostThreadsOfGroup + 1);
    ir::SizeAttr together = ir::sizeConstant(context, 1);
    for (unsigned axis = 0; axis < 3 && !request_.block; ++axis) {
      ir::SizeAttr size = ir::sizeScalar(context, firstScalar + 3 + axis);
      for (ir::SizeAttr isRight : {ir::sizeBinary(size::Op::Less, ir::sizeConstant(context, 0), size),
                                   ir::sizeBinary(size::Op::Less, size, above)})
        require(isRight,
                "a threadgroup has 1 to " + std::to_string(flatten::kMostThreadsOfGroup) + " threads along " +
                    "xyz"[axis] + ", not {0}",
                size);
      together = ir::sizeBinary(size::Op::Mul, together, size);
    }
    if (!request_.block)
      require(ir::sizeBinary(size::Op::Less, together, above),
              "a threadgroup has at most " + std::to_string(flatten::kMostThreadsOfGroup) + " threads, not {0}",
              together);
    for (unsigned axis = 0; axis < 3; ++axis) {
      ir::SizeAttr threads = ir::sizeScalar(context, firstScalar + axis);
      const std::string name{"xyz"[axis]};
      require(ir::sizeBinary(size::Op::Less, ir::sizeConstant(context, -1), threads),
              "a grid has no negative number of threads along " + name + ", as {0}", threads);
      constexpr int64_t kMostThreads = (int64_t{1} << 32) - 1;
      require(ir::sizeBinary(size::Op::Less, threads, ir::sizeConstant(context, kMostThreads + 1)),
              "a grid has at most " + std::to_string(kMostThreads) + " threads along " + name + ", not {0}", threads);
      if (!request_.isWhole || (*request_.block)[axis] == 1)
        continue;
      ir::SizeAttr size = ir::sizeConstant(context, (*request_.block)[axis]);
      require(
          ir::sizeBinary(size::Op::Equal, ir::sizeBinary(size::Op::Mod, threads, size), ir::sizeConstant(context, 0)),
          "the kernel was built for whole threadgroups of " + std::to_string((*request_.block)[axis]) +
              " threads along " + name + ", and the grid has {0}",
          threads);
    }
    return all;
  }

  static void addUse(const Memory& memory, mlir::Type type, Response& response) {
    mlir::Type elem = llvm::cast<ir::ViewType>(type).getElementType();
    std::string name;
    llvm::raw_string_ostream out(name);
    elem.print(out);
    response.buffers.push_back({memory.index, name, memory.unitBytes, memory.isWritten});
  }

  /// Block-level values of the thread function's arguments, then its code.
  void fill(mlir::Block& body, unsigned firstScalar) {
    std::array<Value, static_cast<size_t>(ThreadValue::Count)> values;
    auto set = [&](ThreadValue first, unsigned axis, Value value) {
      values[static_cast<unsigned>(first) + axis] = value;
    };
    std::array<Value, 3> widths;
    for (unsigned axis = 0; axis < 3; ++axis) {
      auto which = static_cast<ir::Axis>(axis);
      Value group = b_.create<ir::BlockIdOp>(loc_, b_.getIndexType(), which);
      Value grid = body.getArgument(firstScalar + axis);
      Value size = request_.block ? b_.create<arith::ConstantIndexOp>(loc_, (*request_.block)[axis]).getResult()
                                  : body.getArgument(firstScalar + 3 + axis);
      Value width = size;
      if (!request_.block || (!request_.isWhole && (*request_.block)[axis] != 1)) {
        Value rest = b_.create<arith::SubIOp>(loc_, grid, b_.create<arith::MulIOp>(loc_, group, size));
        width = b_.create<arith::MinUIOp>(loc_, size, rest);
      }
      set(ThreadValue::GroupX, axis, group);
      set(ThreadValue::GroupsX, axis, b_.create<ir::GridDimOp>(loc_, b_.getIndexType(), which));
      set(ThreadValue::GridX, axis, grid);
      set(ThreadValue::WidthX, axis, width);
      set(ThreadValue::BlockX, axis, size);
      widths[axis] = width;
    }
    llvm::SmallVector<Value> ids, readOnly;
    auto first = static_cast<unsigned>(memories_.size());
    for (unsigned i = 0; i < 4; ++i)
      ids.push_back(thread_.getArgument(first + i));
    for (auto [i, memory] : llvm::enumerate(memories_))
      if (memory.kind == Memory::Kind::Buffer && !memory.isWritten)
        readOnly.push_back(thread_.getArgument(static_cast<unsigned>(i)));
    Uniformity uniformity(thread_, ids, readOnly);
    Distributor distributor(thread_, uniformity, ids, widths, b_, request_.checksBarriers);
    unsigned nextBuffer = 0;
    for (auto [i, memory] : llvm::enumerate(memories_)) {
      Value argument = thread_.getArgument(static_cast<unsigned>(i));
      if (isPassed(static_cast<unsigned>(i)))
        distributor.bind(argument, body.getArgument(nextBuffer++));
      else if (!argument.use_empty()) {
        auto made = b_.create<ir::AllocOp>(loc_, argument.getType(), b_.getStringAttr(memory.name));
        if (mlir::IntegerAttr units = unitsOf(memory))
          made->setAttr(ir::kUnitsOfElement, units);
        distributor.bind(argument, made);
      }
    }
    for (unsigned i = 4; i < values.size(); ++i)
      distributor.bind(thread_.getArgument(first + i), values[i]);
    distributor.run();
    b_.create<ir::ReturnOp>(loc_);
  }

  mlir::OpBuilder b_;
  mlir::Location loc_;
  mlir::func::FuncOp thread_;
  const std::vector<Memory>& memories_;
  const Request& request_;
};

/// Threadgroup memory that a parameter points to gets its length from the request.
bool sizeThreadgroupMemory(front::Unit& unit, const Kernel& kernel, std::vector<Memory>& memories,
                           const Request& request) {
  for (Memory& memory : memories) {
    if (memory.kind != Memory::Kind::Threadgroup)
      continue;
    auto given = request.threadgroupBytes.find(memory.index);
    if (given == request.threadgroupBytes.end()) {
      const auto parameter =
          std::find_if(kernel.parameters.begin(), kernel.parameters.end(), [&](const Parameter& each) {
            return each.kind == ParameterKind::Threadgroup && each.index == memory.index;
          });
      const Place at = parameter == kernel.parameters.end() ? kernel.place : parameter->place;
      unit.problems.push_back({"E0904",
                               "`" + memory.name + "` needs the length of [[threadgroup(" +
                                   std::to_string(memory.index) + ")]], which is given at dispatch: --threadgroup " +
                                   std::to_string(memory.index) + "=BYTES",
                               at.file,
                               at.offset,
                               at.offset,
                               {}});
      return false;
    }
    memory.bytes = given->second;
  }
  return true;
}

std::string print(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, mlir::OpPrintingFlags().enableDebugInfo());
  return text;
}

}  // namespace

bool lowerEntry(front::Unit& unit, const Request& request, Response& response) {
  auto kernel = std::find_if(unit.kernels.begin(), unit.kernels.end(),
                             [&](const Kernel& each) { return each.name == request.kernel; });
  flatten::cleanModule(unit, request);
  if (!unit.problems.empty())
    return false;
  std::vector<Memory> memories = flatten::lowerPointers(unit, *kernel);
  if (!unit.problems.empty() || !sizeThreadgroupMemory(unit, *kernel, memories, request))
    return false;
  flatten::tidyModule(*unit.module);
  mlir::DialectRegistry registry;
  ir::registerVxDialects(registry);
  registry.insert<mlir::cf::ControlFlowDialect, mlir::func::FuncDialect, mlir::ub::UBDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  std::string trouble;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic& diagnostic) {
    if (trouble.empty())
      trouble = diagnostic.str();
    return mlir::success();
  });
  mlir::func::FuncOp thread = importThread(unit, memories, *module);
  if (!thread)
    return false;
  if (!structureControl(thread) || !KernelBuilder(*module, thread, memories, request).build(response)) {
    unit.problems.push_back({"E0902", "`" + request.kernel + "` cannot be lowered: " + trouble, {}, 0, 0, {}});
    return false;
  }
  // Not converging within the iteration limit leaves correct code.
  mlir::GreedyRewriteConfig config;
  config.enableRegionSimplification = mlir::GreedySimplifyRegionLevel::Normal;
  (void)mlir::applyPatternsAndFoldGreedily(*module, ir::canonicalPatterns(&context), config);
  mlir::PassManager passes(&context);
  passes.addPass(mlir::createCSEPass());
  bool isTidy = mlir::succeeded(passes.run(*module));
  countLoops(*module, request.block);
  passes.addPass(mlir::createLoopInvariantCodeMotionPass());
  isTidy = isTidy && mlir::succeeded(passes.run(*module));
  if (!isTidy) {
    unit.problems.push_back({"E0902", "`" + request.kernel + "` cannot be lowered: " + trouble, {}, 0, 0, {}});
    return false;
  }
  for (const Memory& memory : memories)
    if (memory.kind == Memory::Kind::Shared)
      response.staticThreadgroupBytes += memory.bytes;
  response.module = print(*module);
  return true;
}

}  // namespace vortex::msl::lift
