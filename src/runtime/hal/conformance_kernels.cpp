#include "runtime/hal/conformance_kernels.h"

#include "base/check.h"

namespace vortex::hal::conformance {

using namespace artifact;
using Op = SizeExpr::Op;

namespace {

SizeExpr slot(int64_t index) { return SizeExpr::slot(index); }
SizeExpr number(int64_t value) { return SizeExpr::constant(value); }
SizeExpr ceilDiv(const SizeExpr& value, int64_t divisor) {
  return SizeExpr::binary(Op::CeilDiv, value, number(divisor));
}

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
  Builder& result(std::string name, ScalarType type, std::vector<SizeExpr> extents, bool zeroFill = false) {
    kernel_.results.push_back(storage(std::move(name), type, std::move(extents), zeroFill, Access::Write));
    return *this;
  }
  Builder& temporary(std::string name, ScalarType type, std::vector<SizeExpr> extents) {
    kernel_.temporaries.push_back(storage(std::move(name), type, std::move(extents), false, Access::ReadWrite));
    return *this;
  }
  Builder& phase(const std::string& symbol, const SizeExpr& x, const SizeExpr& y = number(1),
                 const SizeExpr& z = number(1), const SizeExpr& scratch = {}) {
    kernel_.phases.push_back({.symbol = symbol,
                              .grid = {x, y, z},
                              .block = {number(1), number(1), number(1)},
                              .scratchBytes = scratch,
                              .name = symbol});
    return *this;
  }
  Kernel take() {
    kernel_.slotCount = slots_;
    return std::move(kernel_);
  }
  Kernel kernel_;

private:
  uint32_t take(uint32_t count) { return std::exchange(slots_, slots_ + count); }
  Param storage(std::string name, ScalarType type, std::vector<SizeExpr> extents, bool zeroFill, Access access) {
    const auto rank = static_cast<uint32_t>(extents.size());
    return {.name = std::move(name),
            .type = type,
            .isTensor = true,
            .rank = rank,
            .access = access,
            .firstSlot = take(1 + 2 * rank),
            .extents = std::move(extents),
            .zeroFill = zeroFill};
  }
  uint32_t slots_ = 0;
};

Kernel scale() {
  Builder builder("scale");
  builder.tensor("x", ScalarType::F32, 1).scalar("factor", ScalarType::F32).result("y", ScalarType::F32, {slot(1)});
  builder.kernel_.constraints = {{SizeExpr::unary(Op::Not, SizeExpr::binary(Op::Less, slot(1), number(1))),
                                  "x needs at least one element, it has {0}",
                                  {slot(1)}}};
  return builder.phase("scale", ceilDiv(slot(1), 256)).take();
}

Kernel update() {
  Builder builder("update");
  builder.tensor("a", ScalarType::I64, 1, Access::ReadWrite)
      .scalar("factor", ScalarType::I64)
      .scalar("addend", ScalarType::I64);
  return builder.phase("update", ceilDiv(slot(1), 64)).take();
}

Kernel total() {
  Builder builder("total");
  builder.tensor("x", ScalarType::I32, 1).result("sum", ScalarType::I64, {}, true);
  builder.temporary("partial", ScalarType::I64, {ceilDiv(slot(1), 128)});
  builder.kernel_.scalarResults = {0};
  builder.kernel_.faults = {{"E0999", "scratch is not aligned to 64 bytes", "", 0, 0}};
  return builder.phase("total_partial", ceilDiv(slot(1), 128), number(1), number(1), number(128 * 8))
      .phase("total_final", number(1))
      .take();
}

Kernel check() {
  Builder builder("check");
  builder.tensor("x", ScalarType::I32, 1).result("seen", ScalarType::I32, {slot(1)}, true);
  builder.kernel_.faults = {{"E0701", "value below zero", "check.vx", 12, 5},
                            {"E0702", "value above 100", "check.vx", 13, 9}};
  return builder.phase("check", slot(1)).take();
}

Kernel coordinates() {
  Builder builder("coordinates");
  builder.scalar("z", ScalarType::I32).scalar("y", ScalarType::I32).scalar("x", ScalarType::I32);
  builder.result("out", ScalarType::U32, {slot(0), slot(1), slot(2)}, true);
  return builder.phase("coordinates", slot(2), slot(1), slot(0)).take();
}

Kernel transpose() {
  Builder builder("transpose");
  builder.tensor("x", ScalarType::F32, 2).result("y", ScalarType::F32, {slot(2), slot(1)});
  return builder.phase("transpose", slot(2)).take();
}

Kernel talk() {
  Builder builder("talk");
  builder.scalar("n", ScalarType::I32);
  builder.kernel_.faults = {{"E0700", "never", "", 0, 0}, {"print", "block {} and {}", "talk.vx", 4, 1}};
  return builder.phase("talk", slot(0)).take();
}

Kernel sparse() {
  return Builder("sparse").result("y", ScalarType::F32, {number(1000)}, true).phase("sparse", number(1)).take();
}

}  // namespace

Kernel kernelNamed(const std::string& name) {
  for (auto make : {scale, update, total, check, coordinates, transpose, talk, sparse})
    if (Kernel kernel = make(); kernel.name == name)
      return kernel;
  VORTEX_UNREACHABLE("no kernel %s", name.c_str());
}

}  // namespace vortex::hal::conformance
