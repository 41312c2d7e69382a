#include "passes/plan/product_steps.h"

namespace vortex::passes {

using namespace mlir;
using SizeOp = size::Op;
using Way = StepPlan::Way;

std::vector<StepPlan> choose(std::vector<Way> ways, bool isLeast) {
  if (ways.size() == 1 && !ways[0].needs && !ways[0].when)
    return std::move(ways[0].steps);
  return {{StepPlan::Choice{isLeast, std::move(ways)}}};
}

std::vector<StepPlan> ProductSteps::plan(const Cluster& cluster, const ProductWays& ways,
                                         ArrayRef<ir::SizeAttr> chunks) {
  ir::DotOp dot = findDot(cluster);
  std::vector<Way> aligned;
  if (ways.bulk)
    aligned.push_back({.name = "bulk",
                       .needs = ways.bulk->needs,
                       .when = ways.bulkWhen,
                       .steps = bulk(cluster, *ways.bulk, ways.copies)});
  if (ways.split)
    aligned.push_back(
        {.name = "split", .when = ways.split->when, .steps = split(cluster, dot, *ways.split, ways.copies, false)});
  aligned.push_back({.name = "whole", .steps = whole(cluster, chunks, ways)});
  Steps steps;
  for (const AlignedCopy& each : ways.copies)
    llvm::append_range(
        steps, choose({{.name = "in place", .needs = each.isAligned}, {.name = "copied", .steps = align(each)}}));
  llvm::append_range(steps, choose(std::move(aligned)));

  std::vector<Way> all;
  if (ways.thin)
    all.push_back({.name = "thin", .when = ways.thin->when, .steps = split(cluster, dot, *ways.thin, {}, true)});
  if (ways.isTiny) {
    PhasePlan tiny = small(cluster);
    tiny.isAnyhow = true;
    all.push_back({.name = "tiny", .when = ways.isTiny, .steps = {{tiny}}});
  }
  all.push_back({.name = "aligned", .steps = std::move(steps)});
  return choose(std::move(all));
}

/// In pieces of as many elements as other elementwise work has.
PhasePlan ProductSteps::copy(StringRef name, Value tile, const CopiedLoad& copy) {
  Cluster elements;
  elements.parallel = plan_.axes.of(tile);
  PhasePlan phase{.work = PhasePlan::Work::Copy, .name = name, .axes = elements.parallel};
  phase.pieces = sizes_.choose(elements);
  phase.blocks = sizes_.blockCount(elements, phase.pieces);
  phase.elements = sizes_.mostElements(elements);
  phase.subject = tile.getDefiningOp();
  phase.copy = copy;
  return phase;
}

std::vector<StepPlan> ProductSteps::align(const AlignedCopy& copy) {
  PhasePlan phase = this->copy("align", copy.tile, copy.copy);
  phase.isAnyhow = true;
  return {{phase}};
}

PhasePlan ProductSteps::product(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks, ir::SizeAttr blocks) {
  PhasePlan phase{.name = "tensors", .blocks = blocks, .axes = cluster.parallel, .group = groupOf(cluster)};
  phase.pieces.assign(chunks.begin(), chunks.end());
  phase.roots = cluster.roots;
  return phase;
}

/// What is turned in squares, of which both sides are read and written in whole pieces.
PhasePlan ProductSteps::write(const WrittenOperand& operand) {
  if (!operand.isTurned())
    return copy("operand", operand.tile, operand.copy);
  const int64_t bits = cast<RankedTensorType>(operand.tile.getType()).getElementTypeBitWidth();
  Cluster elements;
  elements.parallel = plan_.axes.of(operand.tile);
  PhasePlan phase{.work = PhasePlan::Work::Copy, .name = "turn", .axes = elements.parallel};
  phase.pieces.assign(elements.parallel.size(), ir::sizeConstant(products_.context(), 1));
  phase.pieces[operand.depth] = phase.pieces.back() =
      ir::sizeConstant(products_.context(), bits < 32 ? 2 * rules_.squareSide : rules_.squareSide);
  phase.blocks = sizes_.blockCount(elements, phase.pieces);
  phase.subject = operand.tile.getDefiningOp();
  phase.copy = operand.copy;
  return phase;
}

/// Operands written, then one persistent phase of bulk copies, in tiles of the size that costs least. It reads copies of operands where there are some.
std::vector<StepPlan> ProductSteps::bulk(const Cluster& cluster, const BulkPlan& bulk, ArrayRef<AlignedCopy> aligned) {
  Steps steps;
  SmallVector<AlignedCopy, 2> copies;
  for (const WrittenOperand& operand : bulk.written) {
    steps.push_back({write(operand)});
    copies.push_back({operand.tile, operand.copy, {}});
  }
  llvm::copy_if(aligned, std::back_inserter(copies), [&](const AlignedCopy& copy) {
    return llvm::none_of(bulk.written, [&](const WrittenOperand& operand) { return operand.tile == copy.tile; });
  });
  const auto inTiles = [&](ArrayRef<BulkPlan::Tile> tiles, bool isAnyhow) {
    std::vector<Way> ways;
    for (const BulkPlan::Tile& tile : tiles) {
      PhasePlan phase = product(cluster, tile.pieces, tile.blocks);
      phase.unit = tile.plan;
      phase.tiles = tile.count;
      phase.copies = copies;
      phase.isAnyhow = isAnyhow;
      ways.push_back({.name = tile.plan.str(), .cost = tile.cost, .steps = {{phase}}});
    }
    return choose(std::move(ways), true);
  };
  std::vector<Way> ways;
  if (ir::constantSize(bulk.stores) != 0)
    ways.push_back({.name = "copies", .steps = inTiles(bulk.tiles, false)});
  if (!bulk.anyhowTiles.empty()) {
    if (!ways.empty())
      ways.back().needs = bulk.stores;
    ways.push_back({.name = "threads", .steps = inTiles(bulk.anyhowTiles, true)});
  }
  llvm::append_range(steps, choose(std::move(ways)));
  return steps;
}

/// In blocks of both sizes.
std::vector<StepPlan> ProductSteps::whole(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks,
                                          const ProductWays& ways) {
  PhasePlan usual = product(cluster, chunks, sizes_.blockCount(cluster, chunks));
  usual.unit = rules_.dotPlan;
  llvm::append_range(usual.copies, ways.copies);
  ir::DotOp dot = findDot(cluster);
  ir::SizeAttr few = dot ? products_.isSmall(dot, usual.blocks) : ir::SizeAttr();
  if (!few)
    return {{usual}};
  PhasePlan smaller = small(cluster);
  smaller.copies = usual.copies;
  if (ways.bulk && !ways.bulk->anyhowTiles.empty())  // large ones run in bulk
    return {{smaller}};
  // Large products whose results lie well as their operands do run in bulk.
  usual.isAnyhow = ways.bulk && ways.bulk->written.empty() && !ways.copies.empty();
  return choose({{.name = "small", .when = few, .steps = {{smaller}}}, {.name = "usual", .steps = {{usual}}}});
}

PhasePlan ProductSteps::small(const Cluster& cluster) {
  TensorSchedule rules = products_.small();
  Chunks sizes(products_.context(), rules, plan_.axes, plan_.clusters);
  SmallVector<ir::SizeAttr> pieces = sizes.choose(cluster);
  PhasePlan phase = product(cluster, pieces, sizes.blockCount(cluster, pieces));
  phase.unit = rules.dotPlan;
  return phase;
}

std::vector<StepPlan> ProductSteps::split(const Cluster& cluster, ir::DotOp dot, const DepthSplit& split,
                                          ArrayRef<AlignedCopy> copies, bool isAnyhow) {
  std::vector<Way> ways;
  for (const DepthSplit::Blocks& blocks : split.blocks) {
    PhasePlan phase = partial(cluster, dot, split, blocks);
    llvm::append_range(phase.copies, copies);
    phase.isAnyhow = isAnyhow;
    ways.push_back({.name = blocks.name, .when = blocks.when, .steps = {{phase}}});
  }
  Cluster rest;
  rest.parallel = cluster.parallel;
  llvm::copy_if(cluster.roots, std::back_inserter(rest.roots), [&](Operation* root) { return root != dot; });
  PhasePlan sum{.work = PhasePlan::Work::Combine, .name = "combine", .axes = rest.parallel};
  sum.pieces = sizes_.choose(rest);
  sum.blocks = sizes_.blockCount(rest, sum.pieces);
  sum.subject = dot;
  sum.roots = rest.roots;
  sum.source = split.partials;
  sum.isAnyhow = isAnyhow;
  Steps steps = choose(std::move(ways));
  steps.push_back({sum});
  return steps;
}

PhasePlan ProductSteps::partial(const Cluster& cluster, ir::DotOp dot, const DepthSplit& split,
                                const DepthSplit::Blocks& blocks) {
  Chunks sizes(products_.context(), blocks.schedule, plan_.axes, plan_.clusters);
  PhasePlan phase{.work = PhasePlan::Work::PartialProduct, .name = "partial", .group = groupOf(cluster)};
  phase.blocks = ir::sizeBinary(SizeOp::Mul, sizes.blockCount(cluster, blocks.pieces), split.count);
  phase.axes = {split.depth};
  phase.pieces = {split.step};
  llvm::append_range(phase.axes, cluster.parallel);
  llvm::append_range(phase.pieces, blocks.pieces);
  phase.subject = dot;
  phase.target = split.partials;
  phase.numbered = split.depth;
  phase.unit = blocks.schedule.dotPlan;
  return phase;
}

/// Grouped order is for products whose rows and columns are both split.
int64_t ProductSteps::groupOf(const Cluster& cluster) const {
  ir::DotOp dot = findDot(cluster);
  if (cluster.parallel.size() < 2)
    return 1;
  SmallVector<Axis> axes = plan_.axes.of(dot.getResult());
  return ArrayRef(cluster.parallel).take_back(2) == ArrayRef(axes).take_back(2) ? rules_.dotGroup : 1;
}

}  // namespace vortex::passes
