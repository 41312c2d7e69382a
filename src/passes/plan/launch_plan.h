// What a launch of a whole-tensor kernel, or of a piece of one, does: decided here, built by passes/build, which decides nothing.
#pragma once

#include "passes/plan/bulk_streams.h"
#include "passes/plan/clusters.h"
#include "passes/plan/products.h"

#include <variant>

namespace vortex::passes {

/// One grid. Arguments are numbers of the entry's, which every phase has.
struct PhasePlan {
  enum class Work {
    Compute,         ///< `roots`
    Copy,            ///< the tile that `subject` makes goes to `copy`
    PartialReduce,   ///< each block's piece of the reduction `subject` goes to its number in `target`
    PartialProduct,  ///< the same of a product's depth
    Combine,         ///< what those left in `source`, in the order of the pieces; then `roots`, which may read it
    ScanTotals,      ///< what each piece of the scan `subject` combines to goes to `target`
    ScanCarries,     ///< what comes before each piece goes to `target`
    ScanPieces,      ///< the scan from there (`source`), then `roots`
    Clear,           ///< `extent` words of `target` become zero
    LookBack,        ///< the scan `subject` in one phase whose blocks tell each other by way of `target`; then `roots`
    Stream,          ///< online softmax between two products, whole
    StreamPieces,    ///< the same of pieces of the streamed axis
    CombineStream,   ///< what those left, then what follows the loop
  };
  Work work = Work::Compute;
  llvm::StringRef name{};                    ///< of the kind of phase: kernels get a number behind it
  ir::SizeAttr blocks{};                     ///< of the grid
  llvm::SmallVector<Axis> axes{};            ///< that blocks have pieces of, outermost first
  llvm::SmallVector<ir::SizeAttr> pieces{};  ///< elements of each per block
  int64_t group = 1;  ///< pieces of the last axis but one that neighbours take before the next of the last
  mlir::Operation* subject = nullptr;
  std::vector<mlir::Operation*> roots{};
  unsigned source = 0, target = 0;
  CopiedLoad copy{};
  std::optional<Axis> numbered{};  ///< the number of a piece is that of this axis' piece; none: the block's
  ir::SizeAttr extent{};
  std::string unit{};  ///< the target's word on the products
  llvm::SmallVector<AlignedCopy, 2> copies{};
  const BulkStreams::Way* way = nullptr;  ///< of streams
  const StreamParts* parts = nullptr;
  // Marks (phase_marks.h).
  bool isAnyhow = false;
  std::optional<int64_t> elements{};
  ir::SizeAttr tiles{};
};

/// What a launch does next.
struct StepPlan {
  struct Let {
    unsigned argument;
    ir::SizeAttr value;
  };
  struct Way {
    std::string name;
    ir::SizeAttr needs{}, when{}, cost{};  ///< as in ir::LaunchBuilder
    std::vector<StepPlan> steps{};
  };
  struct Choice {
    bool isLeast;  ///< the way of least cost, not the first that holds
    std::vector<Way> ways;
  };
  std::variant<PhasePlan, Let, Choice> step;
};

/// Steps that take one of the ways; without a choice where one takes all launches.
std::vector<StepPlan> choose(std::vector<StepPlan::Way> ways, bool isLeast = false);

struct KernelPlan {
  KernelPlan(ir::EntryOp entry, ir::KernelOp kernel, const TensorSchedule& rules)
      : kernel(kernel), arguments(entry), axes(kernel, rules.fusedOnly),
        clusters(kernel, axes, {rules.fusedOnly, rules.reductionBlocks > 0}) {}
  KernelPlan(const KernelPlan&) = delete;
  KernelPlan& operator=(const KernelPlan&) = delete;

  ir::KernelOp kernel;
  EntryArguments arguments;  ///< of every phase
  const Axes axes;
  const Clusters clusters;
  std::unique_ptr<BulkStreams> streams;  ///< null: no phase is one of streams
  std::vector<StepPlan> steps;
  Temporaries temporaries;  ///< values that cross phases
  Temporaries partials;     ///< values that are combined wherever they are needed: the pieces' results
};

/// Text for readers: steps, with conditions, work, pieces and blocks.
void print(llvm::raw_ostream& out, const KernelPlan& plan);

}  // namespace vortex::passes
