#include "runtime/hal/conformance_kernels.h"

#include "artifact/steps.h"
#include "base/check.h"

namespace vortex::hal::conformance {

using namespace artifact;
using size::Expr;
using size::Op;

namespace {

Expr ceilDiv(Expr value, int64_t divisor) { return size::make(Op::CeilDiv, value, divisor); }

/// Assigns slots in order.
class Builder {
public:
  explicit Builder(std::string name) { kernel_.name = std::move(name); }
  Builder& tensor(std::string name, ScalarType type, uint32_t rank, Access access = Access::Read) {
    kernel_.params.push_back({.name = std::move(name),
                              .type = type,
                              .isTensor = true,
                              .rank = rank,
                              .access = access,
                              .firstSlot = take(1 + 2 * rank)});
    return *this;
  }
  Builder& scalar(std::string name, ScalarType type) {
    kernel_.params.push_back({.name = std::move(name), .type = type, .firstSlot = take(1)});
    return *this;
  }
  Builder& result(std::string name, ScalarType type, const std::vector<Expr>& extents, bool zeroFill = false) {
    kernel_.results.push_back(storage(std::move(name), type, extents, zeroFill, Access::Write));
    return *this;
  }
  Builder& let(std::string name) {
    kernel_.lets.push_back({.name = std::move(name), .type = ScalarType::U64, .firstSlot = take(1)});
    return *this;
  }
  Builder& temporary(std::string name, ScalarType type, const std::vector<Expr>& extents) {
    kernel_.temporaries.push_back(storage(std::move(name), type, extents, false, Access::ReadWrite));
    return *this;
  }
  Builder& phase(const std::string& symbol, std::vector<Expr> grid, int64_t scratchBytes = 0) {
    grid.resize(3, number(1));
    const size::Id one = sizes().constant(1);
    kernel_.phases.push_back({.symbol = symbol,
                              .grid = {sizes().add(grid[0]), sizes().add(grid[1]), sizes().add(grid[2])},
                              .block = {one, one, one},
                              .scratchBytes = sizes().constant(scratchBytes),
                              .written = {},
                              .name = symbol});
    for (uint32_t i = 0; i < kernel_.temporaries.size(); ++i)
      kernel_.phases.back().written.push_back(i);
    return *this;
  }
  size::Table& sizes() { return kernel_.sizes; }
  Expr number(int64_t value) { return arena_.constant(value); }
  Expr extent(uint32_t dim = 0) { return arena_.dim(0, dim); }  ///< of the first argument
  Expr scalar(uint32_t argument) { return arena_.scalar(argument); }
  Kernel take() {
    kernel_.slotCount = slots_;
    if (kernel_.steps.empty())
      kernel_.steps = artifact::inOrder(kernel_.phases.size());
    return std::move(kernel_);
  }
  Kernel kernel_;

private:
  uint32_t take(uint32_t count) { return std::exchange(slots_, slots_ + count); }
  Param storage(std::string name, ScalarType type, const std::vector<Expr>& extents, bool zeroFill, Access access) {
    const auto rank = static_cast<uint32_t>(extents.size());
    std::vector<size::Id> ids;
    for (Expr extent : extents)
      ids.push_back(sizes().add(extent));
    return {.name = std::move(name),
            .type = type,
            .isTensor = true,
            .rank = rank,
            .access = access,
            .firstSlot = take(1 + 2 * rank),
            .extents = std::move(ids),
            .zeroFill = zeroFill};
  }
  uint32_t slots_ = 0;
  size::Arena arena_;
};

Kernel scale() {
  Builder builder("scale");
  builder.tensor("x", ScalarType::F32, 1).scalar("factor", ScalarType::F32);
  const Expr n = builder.extent();
  builder.result("y", ScalarType::F32, {n});
  builder.kernel_.constraints = {{builder.sizes().add(size::make(Op::Less, builder.number(0), n)),
                                  "x needs at least one element, it has {0}",
                                  {builder.sizes().add(n)}}};
  return builder.phase("scale", {ceilDiv(n, 256)}).take();
}

Kernel update() {
  Builder builder("update");
  builder.tensor("a", ScalarType::I64, 1, Access::ReadWrite)
      .scalar("factor", ScalarType::I64)
      .scalar("addend", ScalarType::I64);
  return builder.phase("update", {ceilDiv(builder.extent(), 64)}).take();
}

Kernel again() {
  Builder builder("again");
  builder.tensor("a", ScalarType::I64, 1, Access::ReadWrite)
      .scalar("factor", ScalarType::I64)
      .scalar("addend", ScalarType::I64);
  for (int i = 0; i < 4; ++i)
    builder.phase("update", {ceilDiv(builder.extent(), 64)});
  const size::Id one = builder.sizes().constant(1),
                 isShort = builder.sizes().add(size::make(Op::Less, builder.extent(), builder.number(100)));
  builder.kernel_.steps = {
      {artifact::Choose{{{"once", one, isShort, {{artifact::Run{3}}}},
                         {"thrice", one, one, {{artifact::Run{0}}, {artifact::Run{1}}, {artifact::Run{2}}}}}}}};
  return builder.take();
}

Kernel rounds() {
  Builder builder("rounds");
  builder.tensor("a", ScalarType::I64, 1, Access::ReadWrite).scalar("factor", ScalarType::I64).let("round");
  builder.phase("update", {ceilDiv(builder.extent(), 64)});
  const Expr factor = builder.scalar(1), round = builder.scalar(2);
  builder.kernel_.steps = {{artifact::Loop{.name = "the loop at rounds.vx:1:1",
                                           .first = {builder.sizes().constant(0)},
                                           .next = {builder.sizes().add(size::make(Op::Add, round, 1))},
                                           .condition = builder.sizes().add(size::make(Op::Less, round, factor)),
                                           .steps = {{artifact::Run{0}}}}}};
  return builder.take();
}

Kernel total() {
  Builder builder("total");
  builder.tensor("x", ScalarType::I32, 1).result("sum", ScalarType::I64, {}, true);
  builder.temporary("partial", ScalarType::I64, {ceilDiv(builder.extent(), 128)});
  builder.kernel_.scalarResults = {0};
  builder.kernel_.faults = {{"E0999", "scratch is not aligned to 64 bytes", "", 0, 0}};
  return builder.phase("total_partial", {ceilDiv(builder.extent(), 128)}, 128 * 8).phase("total_final", {}).take();
}

Kernel check() {
  Builder builder("check");
  builder.tensor("x", ScalarType::I32, 1);
  builder.result("seen", ScalarType::I32, {builder.extent()}, true);
  builder.kernel_.faults = {{"E0701", "value below zero", "check.vx", 12, 5},
                            {"E0702", "value above 100", "check.vx", 13, 9}};
  return builder.phase("check", {builder.extent()}).take();
}

Kernel until() {
  Builder builder("until");
  builder.tensor("a", ScalarType::I64, 1, Access::ReadWrite).scalar("limit", ScalarType::I64).let("go").let("goes_on");
  const Expr go = builder.scalar(2), goesOn = builder.scalar(3);
  builder.temporary("answer", ScalarType::I64, {builder.number(1)});
  builder.phase("until_asks", {}).phase("until_doubles", {ceilDiv(builder.extent(), 64)});
  builder.kernel_.phases[1].written.clear();
  builder.kernel_.faults = {{"E0701", "value below zero", "until.vx", 2, 3}};
  const size::Id one = builder.sizes().constant(1), isTrue = builder.sizes().add(goesOn);
  builder.kernel_.steps = {{artifact::Loop{
      .name = "the loop at until.vx:1:1",
      .first = {one},
      .next = {isTrue},
      .condition = builder.sizes().add(go),
      .steps = {{artifact::Run{0}},
                {artifact::Read{1, 0}},
                {artifact::Choose{{{"then", isTrue, one, {{artifact::Run{1}}}}, {"else", one, one, {}}}}}}}}};
  return builder.take();
}

Kernel coordinates() {
  Builder builder("coordinates");
  builder.scalar("z", ScalarType::I32).scalar("y", ScalarType::I32).scalar("x", ScalarType::I32);
  builder.result("out", ScalarType::U32, {builder.scalar(0), builder.scalar(1), builder.scalar(2)}, true);
  return builder.phase("coordinates", {builder.scalar(2), builder.scalar(1), builder.scalar(0)}).take();
}

Kernel transpose() {
  Builder builder("transpose");
  builder.tensor("x", ScalarType::F32, 2);
  builder.result("y", ScalarType::F32, {builder.extent(1), builder.extent(0)});
  return builder.phase("transpose", {builder.extent(1)}).take();
}

Kernel talk() {
  Builder builder("talk");
  builder.scalar("n", ScalarType::I32);
  builder.kernel_.faults = {{"E0700", "never", "", 0, 0}, {"print", "block {} and {}", "talk.vx", 4, 1}};
  return builder.phase("talk", {builder.scalar(0)}).take();
}

Kernel sparse() {
  Builder builder("sparse");
  return builder.result("y", ScalarType::F32, {builder.number(1000)}, true).phase("sparse", {}).take();
}

}  // namespace

Kernel kernelNamed(const std::string& name) {
  for (auto make : {scale, update, again, rounds, total, check, until, coordinates, transpose, talk, sparse})
    if (Kernel kernel = make(); kernel.name == name)
      return kernel;
  VORTEX_UNREACHABLE("no kernel %s", name.c_str());
}

}  // namespace vortex::hal::conformance
