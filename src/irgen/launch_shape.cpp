#include "irgen/launch_shape.h"

#include "lang/sema/kernel/default_block.h"

namespace vortex::irgen {

using lang::GridKind;

/// The block's default shape, with the specialised dimensions known.
static std::array<int64_t, 3> usualBlock(const TypeMap& types, const lang::KernelSpec& kernel) {
  std::vector<lang::DimExpr> fixed;
  for (const lang::DimExpr& extent : kernel.domain)
    fixed.push_back(types.fix(extent));
  return lang::defaultBlock(kernel, fixed);
}

namespace {

class Shaper {
public:
  Shaper(const Entry& entry, const Options& options, const Locations& locations)
      : entry_(entry), spec_(*entry.kernel().kernel), options_(options), locations_(locations) {}

  std::optional<LaunchShape> run() {
    LaunchShape shape;
    if (spec_.gridKind == GridKind::WholeTensor && !options_.isGridGiven)
      return shape;
    const std::array<int64_t, 3> fallback = usualBlock(entry_.types(), spec_);
    const bool isExplicit = spec_.gridKind == GridKind::Explicit;
    const bool isGiven = options_.isGridGiven || (isExplicit && spec_.grid.empty());
    for (unsigned axis = 0; axis < 3; ++axis) {
      if (options_.block)
        shape.block[axis] = entry_.constant((*options_.block)[axis]);
      else
        shape.block[axis] = written(spec_.block, axis, fallback[axis]);
      if (isGiven)
        shape.grid[axis] = entry_.launchGrid(axis);
      else if (spec_.gridKind == GridKind::Domain && spec_.grid.empty())
        shape.grid[axis] = cover(axis, shape.block[axis]);
      else
        shape.grid[axis] = written(spec_.grid, axis, 1);
    }
    return failed_ ? std::nullopt : std::optional(shape);
  }

private:
  ir::SizeAttr written(const std::vector<lang::Expr*>& sizes, unsigned axis, int64_t fallback) {
    if (sizes.empty())
      return entry_.constant(fallback);
    if (axis >= sizes.size())
      return entry_.constant(1);
    if (ir::SizeAttr size = entry_.size(*sizes[axis]))
      return size;
    failed_ = true;
    mlir::emitError(locations_(sizes[axis]->range))
        << "launch sizes may use constants, dimensions and scalar parameters only";
    return entry_.constant(1);
  }

  ir::SizeAttr cover(unsigned axis, ir::SizeAttr block) {
    if (axis >= spec_.domain.size())
      return entry_.constant(1);
    ir::SizeAttr extent = entry_.size(spec_.domain[axis]);
    VORTEX_CHECK(extent, "the domain of `%s` is not determined by its parameters", entry_.kernel().name.c_str());
    return ir::sizeBinary(size::Op::CeilDiv, extent, block);
  }

  const Entry& entry_;
  const lang::KernelSpec& spec_;
  const Options& options_;
  const Locations& locations_;
  bool failed_ = false;
};

}  // namespace

std::optional<LaunchShape> launchShape(const Entry& entry, const Options& options, const Locations& locations) {
  return Shaper(entry, options, locations).run();
}

}  // namespace vortex::irgen
