// A launch: arguments, constraints, allocation of results and temporaries, phases, blocks.
#include "interpreter/location.h"
#include "interpreter/machine.h"

#include "base/memory.h"
#include "base/tensor_bytes.h"
#include "base/text.h"
#include "ir/launch.h"
#include "ir/location.h"
#include "ir/size_attr.h"
#include "ir/units_of_element.h"
#include "size/evaluate.h"
#include "size/message.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace vortex::interpreter {

namespace {

struct ArgumentFacts {
  ir::ViewType view;      ///< null for a scalar
  ir::SizeAttr letValue;  ///< of role let
  Element element;
  ir::Role role = ir::Role::Param;
  std::string name;
  std::vector<size::Expr> extents;  ///< results and temporaries
  bool zero = false;
  int64_t structBytes = 0, fieldOffset = 0;  ///< a field of an array of structs (artifact.h)
  int64_t unitsOfElement = 1;                ///< ir::kUnitsOfElement
  std::optional<unsigned> original;          ///< ir::kStandsFor
};

ArgumentFacts factsOf(ir::EntryOp entry, unsigned number) {
  mlir::Type type = entry.getFunctionType().getInputs()[number];
  auto dictionary = llvm::cast<mlir::DictionaryAttr>(entry.getArgs()[number]);
  ArgumentFacts facts;
  facts.view = llvm::dyn_cast<ir::ViewType>(type);
  facts.element = *elementOf(facts.view ? facts.view.getElementType() : type);
  facts.role = dictionary.getAs<ir::RoleAttr>("role").getValue();
  facts.name = dictionary.getAs<mlir::StringAttr>("name").getValue().str();
  facts.zero = dictionary.contains("zero");
  if (auto bytes = dictionary.getAs<mlir::IntegerAttr>("struct_bytes")) {
    facts.structBytes = bytes.getInt();
    facts.fieldOffset = dictionary.getAs<mlir::IntegerAttr>("field_offset").getInt();
  }
  if (auto units = dictionary.getAs<mlir::IntegerAttr>(ir::kUnitsOfElement))
    facts.unitsOfElement = units.getInt();
  if (auto original = dictionary.getAs<mlir::IntegerAttr>(ir::kStandsFor))
    facts.original = static_cast<unsigned>(original.getInt());
  if (facts.name.empty())
    facts.name = facts.role == ir::Role::Result ? "result" : "temporary";
  if (facts.role == ir::Role::Let)
    facts.letValue = ir::valueOfLet(entry->getParentOfType<mlir::ModuleOp>(), number);
  if (facts.role != ir::Role::Param && facts.view)
    for (auto size : dictionary.getAs<mlir::ArrayAttr>("extents").getAsRange<ir::SizeAttr>())
      facts.extents.push_back(size.getExpr());
  return facts;
}

}  // namespace

struct Interpreter::State {
  Program program;
  std::vector<ArgumentFacts> facts;
};

namespace {

class Launch {
public:
  Launch(Program& program, const std::vector<ArgumentFacts>& facts, const Options& options)
      : program_(program), facts_(facts), options_(options), machine_(options, findings_) {}

  base::Result<std::vector<Finding>> run(std::vector<Argument>& arguments) {
    if (takesGrid() && !options_.grid)
      return base::Error{"the launch must give the numbers of blocks: `.launch(grid = …)`"};
    if (base::Result<void> added = addMissing(arguments); !added)
      return added.takeError();
    for (size_t i = 0; i < arguments.size(); ++i)
      if (!checkShape(i, arguments[i]))
        return findings_;
    if (!checkConstraints())
      return findings_;
    if (!checkMemory(arguments))
      return findings_;
    for (size_t i = 0; i < arguments.size(); ++i)
      bind(i, arguments[i]);
    for (auto [number, facts] : llvm::enumerate(facts_))
      if (facts.original) {
        own_.emplace_back(number, values_[number]);
        values_[number] = values_[*facts.original];
      }
    Steps steps(*this);
    ir::walkLaunch(program_.entry->getParentOfType<mlir::ModuleOp>(), steps);
    if (!machine_.error.empty())
      return base::Error{machine_.error};
    return findings_;
  }

private:
  bool takesGrid() const {
    return llvm::any_of(program_.phases, [](const Function* phase) {
      auto grid = llvm::cast<ir::KernelOp>(phase->op).getGrid();
      return grid && llvm::any_of(grid->getAsRange<ir::SizeAttr>(),
                                  [](ir::SizeAttr size) { return size.getExpr().op() == size::Op::LaunchGrid; });
    });
  }

  /// Appends results and temporaries that the caller left out, without storage yet, and fills the launch slots.
  base::Result<void> addMissing(std::vector<Argument>& arguments) {
    size_t params = size_t(llvm::count_if(facts_, [](const auto& facts) { return facts.role == ir::Role::Param; }));
    if (arguments.size() < params || arguments.size() > facts_.size())
      return base::Error{"the kernel takes " + std::to_string(params) + " arguments, or " +
                         std::to_string(facts_.size()) + " with results and temporaries, but got " +
                         std::to_string(arguments.size())};
    for (size_t i = 0; i < facts_.size(); ++i) {
      if (i == arguments.size()) {
        Argument& added = arguments.emplace_back();
        for (size::Expr extent : facts_[i].extents) {
          const std::optional<int64_t> exact = evaluateExactly(extent);
          if (!exact)
            return base::Error{"an extent of `" + facts_[i].name + "` does not fit 63 bits"};
          added.extents.push_back(*exact);
        }
        if (facts_[i].letValue)
          added.scalar = static_cast<uint64_t>(evaluate(facts_[i].letValue));
        if (facts_[i].structBytes) {
          auto strides = rowMajorStrides(added.extents);
          for (int64_t stride : strides)
            added.strides.push_back(stride * (facts_[i].structBytes / int64_t(facts_[i].element.bytes())));
        }
      }
      addSlots(facts_[i], arguments[i]);
    }
    return {};
  }

  void addSlots(const ArgumentFacts& facts, Argument& argument) {
    if (!facts.view) {
      slots_.push_back(argument.scalar);
      return;
    }
    if (argument.strides.empty()) {
      auto strides = rowMajorStrides(argument.extents);
      argument.strides.assign(strides.begin(), strides.end());
    }
    slots_.push_back(uint64_t(reinterpret_cast<uintptr_t>(argument.data)));
    slots_.insert(slots_.end(), argument.extents.begin(), argument.extents.end());
    slots_.insert(slots_.end(), argument.strides.begin(), argument.strides.end());
  }

  bool report(Finding::Kind kind, std::string message) {
    findings_.push_back({kind, {}, std::move(message), locationOf(program_.entry.getLoc())});
    return false;
  }

  bool checkShape(size_t number, const Argument& argument) {
    const ArgumentFacts& facts = facts_[number];
    if (!facts.view)
      return true;
    llvm::ArrayRef<int64_t> shape = facts.view.getShape();
    std::string what = "argument " + std::to_string(number) + " (`" + facts.name + "`)";
    if (argument.extents.size() != shape.size() || argument.strides.size() != shape.size())
      return report(Finding::Kind::Shape, what + " has rank " + std::to_string(argument.extents.size()) +
                                              " instead of " + std::to_string(shape.size()));
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      int64_t extent = argument.extents[dim];
      bool differs = !mlir::ShapedType::isDynamic(shape[dim]) && shape[dim] != extent;
      if (differs || extent < 0)
        return report(Finding::Kind::Shape,
                      what + ": dimension " + std::to_string(dim) + " has extent " + std::to_string(extent) +
                          (differs ? " instead of " + std::to_string(shape[dim]) : std::string()));
    }
    uint64_t elementBytes = std::max<uint64_t>(facts.element.bytes(), uint64_t(facts.structBytes));
    if (auto bytes = base::tensorBytes(what, argument.extents, elementBytes); !bytes)
      return report(Finding::Kind::Shape, bytes.error().message);
    return true;
  }

  /// What `bind` allocates: results and temporaries without storage, and in check mode a byte per element.
  bool checkMemory(llvm::ArrayRef<Argument> arguments) {
    unsigned __int128 bytes = 0;
    for (auto [facts, argument] : llvm::zip_equal(facts_, arguments)) {
      if (!facts.view || facts.role == ir::Role::Param || argument.data)
        continue;
      uint64_t each = facts.structBytes ? (facts.fieldOffset ? 0 : uint64_t(facts.structBytes)) : facts.element.bytes();
      bytes += static_cast<unsigned __int128>(elementCount(argument.extents)) * (each + (options_.check ? 1 : 0));
    }
    std::optional<std::string> problem = base::outOfMemory(bytes);
    return !problem || report(Finding::Kind::Memory, *problem);
  }

  bool checkConstraints() {
    for (auto constraint : program_.entry.getConstraints().getAsRange<ir::ConstraintAttr>()) {
      if (evaluate(constraint.getCondition()))
        continue;
      std::vector<int64_t> values;
      for (auto operand : constraint.getOperands())
        values.push_back(evaluate(operand));
      return report(Finding::Kind::Constraint, size::fillMessage(constraint.getMessage().getValue().str(), values));
    }
    return true;
  }

  /// The first field owns the structs; elements that are not written are zero whether or not the kernel asks for it.
  void bindField(size_t number, Argument& argument, size_t elements) {
    const ArgumentFacts& facts = facts_[number];
    if (facts.fieldOffset == 0) {
      argument.storage.resize(std::max<size_t>(elements * size_t(facts.structBytes), 1));
      structs_ = argument.storage.data();
    }
    argument.data = structs_ + facts.fieldOffset;
  }

  /// Storage, initial contents and the register value of an argument.
  void bind(size_t number, Argument& argument) {
    const ArgumentFacts& facts = facts_[number];
    Value& value = values_.emplace_back();
    if (!facts.view) {
      value.cells.push_back(argument.scalar & facts.element.mask());
      return;
    }
    size_t elements = elementCount(argument.extents);
    bool fresh = facts.role != ir::Role::Param;
    if (fresh && !argument.data && facts.structBytes) {
      bindField(number, argument, elements);
    } else if (fresh && !argument.data) {
      argument.storage.resize(std::max<size_t>(elements * facts.element.bytes(), 1));
      argument.data = argument.storage.data();
    }
    Buffer& buffer = buffers_.emplace_back();
    buffer.base = static_cast<uint8_t*>(argument.data);
    buffer.elementBytes = facts.element.bytes();
    buffer.space = facts.view.getSpace();
    buffer.name = facts.name;
    buffer.unitsOfElement = facts.unitsOfElement;
    bool contiguous =
        llvm::ArrayRef<int64_t>(argument.strides) == llvm::ArrayRef<int64_t>(rowMajorStrides(argument.extents));
    if (fresh && contiguous)
      std::memset(argument.data, facts.zero ? 0 : Buffer::kPoison, elements * buffer.elementBytes);
    if (fresh && contiguous && !facts.zero && options_.check)
      buffer.written.assign(elements, 0);
    View& view = value.views.emplace_back();
    view.buffer = &buffer;
    view.extents.assign(argument.extents.begin(), argument.extents.end());
    view.strides.assign(argument.strides.begin(), argument.strides.end());
  }

  class Steps : public ir::LaunchActions {
  public:
    explicit Steps(Launch& launch) : launch_(launch), lot_(launch.options_.drawnCases) {}

    bool run(ir::KernelOp kernel) override {
      return launch_.runPhase(
          **llvm::find_if(launch_.program_.phases, [&](Function* phase) { return phase->op == kernel; }));
    }
    bool round(ir::LoopOp loop) override {
      constexpr uint64_t kMostRounds = 1u << 20;
      return ++rounds_ <= kMostRounds ||
             launch_.report(Finding::Kind::Shape,
                            "the loop at " + ir::describeLocation(loop) + " runs more than 2^20 times");
    }
    void set(unsigned argument, int64_t value) override { launch_.setLet(argument, value); }
    void exchange(unsigned a, unsigned b) override { std::swap(launch_.values_[a], launch_.values_[b]); }
    int64_t read(unsigned temporary) override {
      int64_t value;
      std::memcpy(&value, launch_.values_[temporary].views[0].buffer->base, sizeof value);
      return value;
    }
    int64_t valueOf(ir::SizeAttr size) override { return launch_.evaluate(size); }
    bool isTaken(ir::CaseOp each) override {
      if (launch_.options_.drawnCases == 0)
        return LaunchActions::isTaken(each);
      return (!each.getNeeds() || valueOf(*each.getNeeds()) != 0) && lot_() % 2 == 0;
    }

  private:
    Launch& launch_;
    std::mt19937_64 lot_;
    uint64_t rounds_ = 0;
  };

  void setLet(unsigned argument, int64_t value) {
    const size::Node slot{.op = size::Op::Scalar, .argument = argument};
    slots_[ir::slotOf(slot, program_.entry.getFunctionType().getInputs())] = static_cast<uint64_t>(value);
    values_[argument].cells[0] = static_cast<uint64_t>(value) & facts_[argument].element.mask();
  }

  int64_t argumentOf(const size::Node& node) const {
    if (node.op == size::Op::Device)
      return node.argument == 1;  // blocks run one after another
    if (node.op == size::Op::LaunchGrid)
      return options_.grid.value_or(std::array<int64_t, 3>{})[node.argument];
    return static_cast<int64_t>(slots_[ir::slotOf(node, program_.entry.getFunctionType().getInputs())]);
  }

  int64_t evaluate(mlir::Attribute size) const {
    return size::evaluate(llvm::cast<ir::SizeAttr>(size).getExpr(),
                          [&](const size::Node& node) { return argumentOf(node); });
  }

  /// Nothing if a step wraps.
  std::optional<int64_t> evaluateExactly(size::Expr expr) const {
    using Exact = std::optional<int64_t>;
    return size::fold<Exact>(expr, [&](const size::Node& node, const std::array<Exact, 3>& operands) -> Exact {
      if (node.op == size::Op::Constant)
        return node.value;
      if (size::arity(node.op) == 0)
        return argumentOf(node);
      int64_t values[3] = {};
      if (node.op == size::Op::Select)
        return operands[0] ? operands[*operands[0] ? 1 : 2] : Exact();
      for (uint32_t i = 0; i < size::arity(node.op); ++i) {
        if (!operands[i])
          return std::nullopt;
        values[i] = *operands[i];
      }
      return size::wraps(node.op, values[0], values[1]) ? Exact()
                                                        : size::apply(node.op, values[0], values[1], values[2]);
    });
  }

  void evaluate(std::optional<mlir::ArrayAttr> sizes, int64_t (&values)[3]) {
    for (size_t axis = 0; axis < 3; ++axis)
      values[axis] = sizes ? evaluate((*sizes)[axis]) : 1;
  }

  bool runPhase(Function& phase) {
    auto kernel = llvm::cast<ir::KernelOp>(phase.op);
    evaluate(kernel.getGrid(), machine_.grid);
    evaluate(kernel.getBlock(), machine_.blockDim);
    for (mlir::Attribute size : kernel.getGrid().value_or(mlir::ArrayAttr::get(kernel.getContext(), {})))
      if (!evaluateExactly(llvm::cast<ir::SizeAttr>(size).getExpr()))
        return report(Finding::Kind::Shape, "its grid does not fit 63 bits");
    int64_t blocks = 1;
    for (int64_t extent : machine_.grid)
      if (extent < 0 || __builtin_mul_overflow(blocks, extent, &blocks) || blocks > INT32_MAX)
        return report(Finding::Kind::Shape, "it has an impossible grid of " + base::join(machine_.grid, " x "));
    for (int64_t extent : machine_.blockDim)
      if (extent <= 0 || extent > INT32_MAX)
        return report(Finding::Kind::Shape, "it has an impossible block of " + base::join(machine_.blockDim, " x "));
    machine_.checkRaces = options_.check && !kernel.getWholeTensor();
    std::fill_n(machine_.domain, 3, INT64_MAX);
    if (auto domain = kernel->getAttrOfType<mlir::ArrayAttr>("vx.domain"))
      for (size_t axis = 0; axis < std::min<size_t>(domain.size(), 3); ++axis)
        machine_.domain[axis] = evaluate(domain[axis]);
    std::vector<uint32_t> order(static_cast<size_t>(blocks));
    std::iota(order.begin(), order.end(), 0);
    if (options_.seed)
      std::shuffle(order.begin(), order.end(), machine_.random);
    for (const auto& [number, value] : own_)
      if (llvm::any_of(kernel.getBody().getArgument(number).getUsers(),
                       [](mlir::Operation* user) { return llvm::isa<ir::TileStoreOp>(user); }))
        values_[number] = value;
    machine_.races.startPhase();
    machine_.hasUnwritten = false;
    if (options_.check)
      phase.op->walk([&](mlir::Operation* op) { machine_.hasUnwritten |= op->hasAttr("vx.unwritten"); });
    if (kernel->hasAttr(ir::kCooperativeAttr))
      return runTogether(phase, order);
    return call(phase, [&] { return llvm::all_of(order, [&](uint32_t block) { return runBlock(phase, block); }); });
  }

  bool call(Function& phase, llvm::function_ref<bool()> run) {
    bool completed = true;
    machine_.call(
        phase,
        [&](std::vector<Value>& registers) {
          for (auto [number, value] : llvm::zip_equal(phase.body.arguments, values_))
            registers[size_t(number)] = value;
        },
        [](std::vector<Value>&) {}, [&] { return completed = run(); });
    return completed;
  }

  bool runTogether(Function& phase, llvm::ArrayRef<uint32_t> order) {
    if (order.size() > Together::kMostBlocks)
      return report(Finding::Kind::Shape,
                    "the " + std::to_string(order.size()) +
                        " blocks of the launch must run at the same time; the interpreter runs at most " +
                        std::to_string(Together::kMostBlocks));
    Together together(
        [&](size_t block) {
          PausedBlock fresh;
          machine_.exchange(fresh);
          const bool completed = call(phase, [&] { return runBlock(phase, static_cast<uint32_t>(block)); });
          machine_.exchange(fresh);
          return completed;
        },
        [&](size_t blocks) {
          machine_.races.gridBarrier();
          return blocks == order.size() ||
                 report(Finding::Kind::Divergence, "`sync_grid()` is reached by " + std::to_string(blocks) +
                                                       " of the grid's " + std::to_string(order.size()) + " blocks");
        });
    machine_.together = &together;
    const bool completed = together.run(order.vec());
    machine_.together = nullptr;
    if (together.lacksThreads())
      return report(Finding::Kind::Memory,
                    "the system gives no threads for the " + std::to_string(order.size()) + " blocks of the launch");
    return completed;
  }

  bool runBlock(Function& phase, uint32_t block) {
    machine_.linearBlock = block;
    machine_.blockId[0] = block % machine_.grid[0];
    machine_.blockId[1] = block / machine_.grid[0] % machine_.grid[1];
    machine_.blockId[2] = block / machine_.grid[0] / machine_.grid[1];
    if (machine_.checkRaces)
      machine_.races.startBlock(block, machine_.blockDim[0] * machine_.blockDim[1] * machine_.blockDim[2]);
    machine_.copies.startBlock();
    machine_.steps = 0;
    bool completed = machine_.execute(phase.body) && machine_.tellUnwritten();
    machine_.blockBuffers.clear();
    return completed;
  }

  Program& program_;
  const std::vector<ArgumentFacts>& facts_;
  const Options& options_;
  std::vector<Finding> findings_;
  Machine machine_;
  std::vector<uint64_t> slots_;
  std::deque<Buffer> buffers_;
  std::vector<Value> values_;
  std::vector<std::pair<unsigned, Value>> own_;  ///< of temporaries that stand for parameters until they are written
  uint8_t* structs_ = nullptr;                   ///< of the fields being bound
};

}  // namespace

Interpreter::Interpreter(std::unique_ptr<State> state) : state_(std::move(state)) {}
Interpreter::Interpreter(Interpreter&&) noexcept = default;
Interpreter& Interpreter::operator=(Interpreter&&) noexcept = default;
Interpreter::~Interpreter() = default;

base::Result<Interpreter> Interpreter::create(mlir::ModuleOp module) {
  base::Result<Program> program = decode(module);
  if (!program)
    return program.takeError();
  auto state = std::make_unique<State>();
  state->program = std::move(*program);
  ir::EntryOp entry = state->program.entry;
  for (unsigned i = 0; i < entry.getArgs().size(); ++i)
    state->facts.push_back(factsOf(entry, i));
  return Interpreter(std::move(state));
}

base::Result<std::vector<Finding>> Interpreter::run(std::vector<Argument>& arguments, const Options& options) {
  return Launch(state_->program, state_->facts, options).run(arguments);
}

base::Result<std::vector<Finding>> Interpreter::runSlots(std::span<const uint64_t> slots, const Options& options) {
  std::vector<Argument> arguments;
  size_t next = 0;
  for (const ArgumentFacts& facts : state_->facts) {
    size_t rank = facts.view ? size_t(facts.view.getRank()) : 0, count = facts.view ? 1 + 2 * rank : 1;
    if (next == slots.size() && facts.role != ir::Role::Param)
      break;
    if (next + count > slots.size())
      return base::Error{"the kernel's launch slots end within argument " + std::to_string(arguments.size())};
    Argument& argument = arguments.emplace_back();
    if (facts.view) {
      argument.data = reinterpret_cast<void*>(uintptr_t(slots[next]));
      argument.extents.assign(slots.begin() + long(next + 1), slots.begin() + long(next + 1 + rank));
      argument.strides.assign(slots.begin() + long(next + 1 + rank), slots.begin() + long(next + count));
    } else {
      argument.scalar = slots[next];
    }
    next += count;
  }
  if (next != slots.size())
    return base::Error{"the kernel takes " + std::to_string(next) + " launch slots, got " +
                       std::to_string(slots.size())};
  return run(arguments, options);
}

}  // namespace vortex::interpreter
