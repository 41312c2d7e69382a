#include "ir/root_view.h"
#include "passes/plan/launch_plan.h"

#include "size/text.h"

namespace vortex::passes {
namespace {

using namespace mlir;

StringRef wordOf(PhasePlan::Work work) {
  using Work = PhasePlan::Work;
  switch (work) {
  case Work::Compute: return "compute";
  case Work::Copy: return "copy";
  case Work::PartialReduce: return "partial reduction";
  case Work::PartialProduct: return "partial product";
  case Work::Combine: return "combine";
  case Work::ScanTotals: return "totals of a scan";
  case Work::ScanCarries: return "carries of a scan";
  case Work::ScanPieces: return "pieces of a scan";
  case Work::Clear: return "clear";
  case Work::LookBack: return "scan with look-back";
  case Work::Stream: return "stream";
  case Work::StreamPieces: return "pieces of a stream";
  case Work::CombineStream: return "combine a stream";
  }
  VORTEX_UNREACHABLE("work of a phase");
}

class Printer {
public:
  Printer(llvm::raw_ostream& out, const KernelPlan& plan) : out_(out), plan_(plan) {}

  void print(ArrayRef<StepPlan> steps, unsigned depth) {
    for (const StepPlan& each : steps)
      std::visit([&](const auto& step) { print(step, depth); }, each.step);
  }

private:
  llvm::raw_ostream& line(unsigned depth) { return out_.indent(2 * depth); }

  void print(const StepPlan::Let& let, unsigned depth) {
    line(depth) << "let arg" << let.argument << " = " << text(let.value) << "\n";
  }

  void print(const StepPlan::Choice& choice, unsigned depth) {
    line(depth) << (choice.isLeast ? "choose least\n" : "choose first\n");
    for (const StepPlan::Way& way : choice.ways) {
      line(depth + 1) << "case \"" << way.name << "\"";
      for (auto [word, condition] : {std::pair{" needs ", way.needs}, {" when ", way.when}, {" cost ", way.cost}})
        if (condition)
          out_ << word << text(condition);
      out_ << "\n";
      print(way.steps, depth + 2);
    }
  }

  void print(const PhasePlan& phase, unsigned depth) {
    const bool isStream = phase.way || phase.work == PhasePlan::Work::CombineStream;
    const Axes& axes = isStream ? plan_.streams->axes() : plan_.axes;
    line(depth) << "phase " << phase.name << ": " << wordOf(phase.work);
    if (phase.subject)
      out_ << " " << nameOf(phase.subject);
    if (!phase.roots.empty()) {
      out_ << (phase.subject ? ", then" : "");
      llvm::interleave(phase.roots, out_, [&](Operation* root) { out_ << " " << nameOf(root); }, ",");
    }
    if (!phase.axes.empty()) {
      out_ << "; pieces [";
      llvm::interleaveComma(llvm::zip(phase.axes, phase.pieces), out_, [&](auto piece) {
        auto [axis, elements] = piece;
        ir::SizeAttr extent = axes.extent(axis);
        out_ << (extent ? text(extent) : std::string("?")) << " by " << text(elements);
      });
      out_ << "]";
    }
    out_ << "; blocks " << text(phase.blocks);
    if (phase.group > 1)
      out_ << "; in groups of " << phase.group;
    if (!phase.unit.empty())
      out_ << "; unit \"" << phase.unit << "\"";
    if (phase.isAnyhow)
      out_ << "; of tensors that lie anyhow";
    out_ << "\n";
  }

  static std::string text(ir::SizeAttr size) { return size::print(size.getExpr()); }

  static std::string nameOf(Operation* op) {
    std::string name = op->getName().stripDialect().str();
    if (auto store = dyn_cast<ir::TileStoreOp>(op))
      if (auto view = dyn_cast<BlockArgument>(ir::rootView(store.getView())))
        name += " arg" + std::to_string(view.getArgNumber());
    return name;
  }

  llvm::raw_ostream& out_;
  const KernelPlan& plan_;
};

}  // namespace

void print(llvm::raw_ostream& out, const KernelPlan& plan) { Printer(out, plan).print(plan.steps, 0); }

}  // namespace vortex::passes
