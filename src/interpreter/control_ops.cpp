// Structured control flow: uniform at block level, under masks inside thread regions; calls.
#include "interpreter/machine.h"
#include "ir/vx_checked.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace vortex::interpreter {

namespace scf = mlir::scf;

namespace {

/// Runs a body for some of the active lanes and copies its yields to the results.
bool runBranch(Machine& machine, const Node& node, const Body& body, uint32_t lanes) {
  if (lanes == 0)
    return true;
  uint32_t saved = machine.active();
  if (machine.warp)
    machine.warp->active = lanes;
  bool completed = machine.execute(body);
  if (completed && !node.results.empty())
    machine.assign(node.results, body.yields);
  if (machine.warp)
    machine.warp->active = saved;
  return completed;
}

uint32_t lanesWhere(Machine& machine, int conditionRegister) {
  uint32_t lanes = 0;
  machine.forActive([&](size_t lane) {
    lanes |= uint32_t(machine.cell(conditionRegister, lane) & 1) << lane;
    return true;
  });
  return lanes;
}

bool runIf(Machine& machine, const Node& node) {
  uint32_t taken = lanesWhere(machine, node.operands[0]);
  uint32_t others = machine.active() & ~taken;
  return runBranch(machine, node, node.regions[0], taken) && runBranch(machine, node, node.regions[1], others);
}

bool runIndexSwitch(Machine& machine, const Node& node) {
  auto op = llvm::cast<scf::IndexSwitchOp>(node.op);
  uint32_t rest = machine.active();
  for (auto [number, value] : llvm::enumerate(op.getCases())) {
    uint32_t lanes = 0;
    machine.forActive([&](size_t lane) {
      lanes |= uint32_t(machine.integer(node.operands[0], lane) == value) << lane;
      return true;
    });
    lanes &= rest;
    rest &= ~lanes;
    if (!runBranch(machine, node, node.regions[1 + number], lanes))  // region 0 is the default
      return false;
  }
  return runBranch(machine, node, node.regions[0], rest);
}

bool runRegion(Machine& machine, const Node& node) {
  return runBranch(machine, node, node.regions[0], machine.active());
}

/// Restores the active lanes when a loop ends.
struct SavedLanes {
  explicit SavedLanes(Machine& machine) : machine(machine), lanes(machine.active()) {}
  ~SavedLanes() { set(lanes); }
  void set(uint32_t active) {
    if (machine.warp)
      machine.warp->active = active;
  }
  Machine& machine;
  uint32_t lanes;
};

/// A loop marked `@parallel`: in check mode its iterations must not meet. Not where threads run it, each for itself.
struct ClaimedLoop {
  ClaimedLoop(Machine& machine, const Node& node)
      : machine(machine), isTracked(machine.options.check && !machine.checkRaces && isClaimed(node)) {
    if (isTracked)
      machine.claimed.push_back(&races);
  }
  ~ClaimedLoop() {
    if (isTracked)
      machine.claimed.pop_back();
  }
  static bool isClaimed(const Node& node) {
    auto mark = node.op->getAttrOfType<mlir::StringAttr>(ir::kIndependentAttr);
    return mark && mark.getValue() == ir::kClaimed;
  }
  Machine& machine;
  bool isTracked;
  IterationRaces races;
};

bool runRound(Machine&, const Node&) { return true; }

bool runFor(Machine& machine, const Node& node) {
  const Body& body = node.regions[0];
  auto carried = llvm::ArrayRef(body.arguments).drop_front();
  unsigned width = elementOf(llvm::cast<scf::ForOp>(node.op).getInductionVar().getType())->width;
  uint64_t mask = Element{Format::Int, uint8_t(width)}.mask();
  int counter = body.arguments[0];
  machine.assign(counter, machine.reg(node.operands[0]));
  machine.assign(carried, llvm::ArrayRef(node.operands).drop_front(3));
  ClaimedLoop claimed(machine, node);
  SavedLanes saved(machine);
  uint32_t running = saved.lanes;
  while (true) {
    claimed.races.next();
    uint32_t next = 0;
    bool badStep = false;
    machine.forActive([&](size_t lane) {
      int64_t value = signExtend(machine.cell(counter, lane), width);
      bool inside = value < signExtend(machine.cell(node.operands[1], lane), width);
      badStep |= inside && signExtend(machine.cell(node.operands[2], lane), width) <= 0;
      next |= uint32_t(inside) << lane;
      return true;
    });
    if (badStep)
      return machine.fail(node, "the step of a loop is not positive");
    running &= next;
    if (!running)
      break;
    saved.set(running);
    if (!machine.execute(body))
      return false;
    machine.assign(carried, body.yields);
    Value& value = machine.reg(counter);
    machine.forActive([&](size_t lane) {
      int64_t sum = 0;
      int64_t current = signExtend(value.cells[lane], width),
              step = signExtend(machine.cell(node.operands[2], lane), width);
      bool wraps = __builtin_add_overflow(current, step, &sum) || signExtend(uint64_t(sum) & mask, width) != sum;
      if (wraps)
        running &= ~(1u << lane);  // beyond every upper bound
      value.cells[lane] = uint64_t(sum) & mask;
      return true;
    });
    if (!running)
      break;
    saved.set(running);
  }
  saved.set(saved.lanes);
  machine.assign(node.results, carried);
  return true;
}

bool runWhile(Machine& machine, const Node& node) {
  const Body &before = node.regions[0], &after = node.regions[1];
  auto passed = llvm::ArrayRef(before.yields).drop_front();
  machine.assign(before.arguments, node.operands);
  SavedLanes saved(machine);
  uint32_t running = saved.lanes;
  while (running) {
    saved.set(running);
    if (!machine.execute(before))
      return false;
    uint32_t again = lanesWhere(machine, before.yields[0]);
    if (uint32_t leaving = running & ~again) {
      saved.set(leaving);
      machine.assign(node.results, passed);
    }
    running &= again;
    if (!running)
      break;
    saved.set(running);
    machine.assign(after.arguments, passed);
    if (!machine.execute(after))
      return false;
    machine.assign(before.arguments, after.yields);
  }
  return true;
}

bool runCall(Machine& machine, const Node& node) {
  const Body& body = node.callee->body;
  std::vector<Value> arguments, results;
  for (int operand : node.operands)
    arguments.push_back(machine.reg(operand));
  bool completed = machine.call(
      *node.callee,
      [&](std::vector<Value>& registers) {
        for (auto [number, argument] : llvm::zip_equal(body.arguments, arguments))
          registers[size_t(number)] = argument;
      },
      [&](std::vector<Value>& registers) {
        for (int yield : body.yields)
          results.push_back(registers[size_t(yield)]);
      },
      [&] { return machine.execute(body); });
  if (!completed)
    return false;
  for (auto [number, result] : llvm::zip_equal(node.results, results))
    machine.assign(number, result);
  return true;
}

}  // namespace

NodeFunction findControlFunction(mlir::Operation* op) {
  return llvm::TypeSwitch<mlir::Operation*, NodeFunction>(op)
      .Case<scf::IfOp>([](auto) { return runIf; })
      .Case<scf::ForOp>([](auto) { return runFor; })
      .Case<scf::WhileOp>([](auto) { return runWhile; })
      .Case<ir::RoundOp>([](auto) { return runRound; })
      .Case<scf::IndexSwitchOp>([](auto) { return runIndexSwitch; })
      .Case<scf::ExecuteRegionOp>([](auto) { return runRegion; })
      .Case<mlir::func::CallOp>([](auto) { return runCall; })
      .Default([](auto) { return nullptr; });
}

}  // namespace vortex::interpreter
