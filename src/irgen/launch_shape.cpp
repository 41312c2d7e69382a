#include "irgen/launch_shape.h"

#include "lang/sema/kernel/grid.h"

namespace vortex::irgen {

using lang::GridKind;

/// The block's default shape, with the specialised dimensions known.
static std::array<int64_t, 3> usualBlock(const TypeMap& types, const std::vector<lang::DimExpr>& domain) {
  std::vector<lang::DimExpr> fixed;
  for (const lang::DimExpr& extent : domain)
    fixed.push_back(types.fix(extent));
  return lang::defaultBlock(fixed);
}

namespace {

class Shaper {
public:
  Shaper(const Entry& entry, const Options& options, const Locations& locations)
      : entry_(entry), spec_(*entry.kernel().kernel), options_(options), locations_(locations) {}

  std::optional<LaunchShape> run() {
    LaunchShape shape;
    if (spec_.gridKind == GridKind::WholeTensor && !options_.grid)
      return shape;
    std::array<int64_t, 3> fallback = usualBlock(entry_.types(), spec_.domain);
    for (unsigned axis = 0; axis < 3; ++axis)
      shape.block[axis] = given(options_.block, spec_.block, axis, fallback[axis]);
    for (unsigned axis = 0; axis < 3; ++axis) {
      bool isDomain = spec_.gridKind == GridKind::Domain && !options_.grid && spec_.grid.empty();
      if (isDomain)
        shape.grid[axis] = cover(axis, shape.block[axis]);
      else
        shape.grid[axis] = given(options_.grid, spec_.grid, axis, 1);
    }
    if (spec_.gridKind == GridKind::Explicit && !options_.grid && spec_.grid.empty()) {
      failed_ = true;
      mlir::emitError(locations_(entry_.kernel().nameRange))
          << "`" << entry_.kernel().name
          << "` has no grid of its own: it needs `@launch(grid = …)`; `.launch(grid = …)` counts for that call only";
    }
    return failed_ ? std::nullopt : std::optional(shape);
  }

private:
  ir::SizeAttr given(const std::optional<std::array<int64_t, 3>>& launch, const std::vector<lang::Expr*>& written,
                     unsigned axis, int64_t fallback) {
    if (launch)
      return entry_.constant((*launch)[axis]);
    if (written.empty())
      return entry_.constant(fallback);
    if (axis >= written.size())
      return entry_.constant(1);
    if (ir::SizeAttr size = entry_.size(*written[axis]))
      return size;
    failed_ = true;
    mlir::emitError(locations_(written[axis]->range))
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
