// Products of roles and rings, expanded to instructions and run on the machine of target/gpu/testing, against plain sums. Then the same code
// with one of its waits, arrivals or fences left out, which must not pass.
#include "artifact/tensor_map.h"
#include "interpreter/number.h"
#include "ir/launch.h"
#include "ir/size_attr.h"
#include "ir/vxnv.h"
#include "irgen/test_kernel.h"
#include "size/evaluate.h"
#include "target/gpu/hopper/configuration.h"
#include "target/gpu/hopper/expand_roles.h"
#include "target/gpu/hopper/mutants.h"
#include "target/gpu/hopper/product.h"
#include "target/gpu/hopper/schedule.h"
#include "target/gpu/testing/machine.h"
#include "target/gpu/tiles/testing/lower.h"

#include <cmath>

namespace vortex::target::gpu::hopper {
namespace {

namespace vxnv = ir::vxnv;
namespace vxt = ir::vxt;
using gpu::testing::Launch;
using gpu::testing::Timing;
using interpreter::Format;

constexpr int64_t kWorkers = 2;

/// Rows of 16-bit numbers, `pitch` elements apart.
struct Matrix {
  int64_t rows, columns, pitch;
  std::vector<uint16_t> memory;
  uint16_t* data() {
    return reinterpret_cast<uint16_t*>((reinterpret_cast<uintptr_t>(memory.data()) + 255) / 256 * 256);
  }
};

Matrix makeMatrix(std::mt19937_64& random, int64_t rows, int64_t columns, Format format, bool isFilled) {
  Matrix matrix{rows, columns, (columns + 7) / 8 * 8 + 8, {}};
  matrix.memory.assign(static_cast<size_t>(rows * matrix.pitch + 256), 0x5555);
  for (int64_t row = 0; row < rows && isFilled; ++row)
    for (int64_t column = 0; column < columns; ++column)
      matrix.data()[row * matrix.pitch + column] =
          static_cast<uint16_t>(interpreter::encode(format, static_cast<double>(random() % 17) - 8));
  return matrix;
}

struct Case {
  const char* type;        ///< bf16 or f16
  const char* expression;  ///< of x and w
  bool transposesX, transposesW;
  Configuration configuration;
  int64_t m, n, k;
};

/// A case, compiled; runs as often as one likes.
class Product {
public:
  explicit Product(const Case& test) : test_(test) {
    const std::string type = test.type, source = "kernel mm(x: &Tensor<" + type +
                                                 (test.transposesX ? ", [K, M]" : ", [M, K]") + ">, w: &Tensor<" +
                                                 type + (test.transposesW ? ", [N, K]" : ", [K, N]") + ">) -> Tensor<" +
                                                 type + ", [M, N]> {\n    return " + test.expression + "\n}\n";
    irgen::TestKernel kernel(source);
    std::string text;
    if (!kernel.module) {
      error = kernel.error;
      return;
    }
    llvm::raw_string_ostream(text) << *kernel.module;
    const auto onlyThis = [&](passes::TensorSchedule& schedule) {
      addBulkTiles(schedule, *chip::findGpu("sm_90"));
      std::erase_if(schedule.bulkTiles, [&](const auto& tile) { return tile.plan != test.configuration.str(); });
      schedule.bulkSide = 1;
    };
    lowered_ =
        tiles::testing::lower(context_, text, {.unitStrides = true, .alignedRows = true}, onlyThis, makeTileLowering);
    error = lowered_.error;
    if (!error.empty())
      return;
    expandRoles(*lowered_.vxt);
    for (auto [phase, code] : llvm::zip(lowered_.vx->getOps<ir::KernelOp>(), lowered_.vxt->getOps<vxt::KernelOp>()))
      if (isProduct(phase)) {
        phase_ = phase;
        code_ = code;
      }
    error = code_ ? "" : "no phase of bulk copies";
  }

  std::string error;
  vxt::KernelOp code() { return code_; }

  /// Empty when the results are right.
  std::string run(vxt::KernelOp code, unsigned seed, Timing timing) {
    std::mt19937_64 random(seed);
    const Format format = std::string(test_.type) == "bf16" ? Format::BF16 : Format::F16;
    Matrix x = test_.transposesX ? makeMatrix(random, test_.k, test_.m, format, true)
                                 : makeMatrix(random, test_.m, test_.k, format, true);
    Matrix w = test_.transposesW ? makeMatrix(random, test_.n, test_.k, format, true)
                                 : makeMatrix(random, test_.k, test_.n, format, true);
    Matrix y = makeMatrix(random, test_.m, test_.n, format, false);
    Launch launch;
    launch.seed = seed;
    launch.timing = timing;
    std::vector<Matrix*> arguments = {&x, &w, &y};
    for (Matrix* matrix : arguments) {
      launch.slots.insert(launch.slots.end(),
                          {reinterpret_cast<uint64_t>(matrix->data()), static_cast<uint64_t>(matrix->rows),
                           static_cast<uint64_t>(matrix->columns), static_cast<uint64_t>(matrix->pitch), 1});
      launch.memory.push_back(
          {reinterpret_cast<const char*>(matrix->data()), static_cast<size_t>(matrix->rows * matrix->pitch) * 2});
    }
    launch.argument = [&](const size::Node& node) -> int64_t {
      if (node.op == size::Op::Scalar)
        return kWorkers;
      const Matrix& matrix = *arguments[node.argument];
      switch (node.op) {
      case size::Op::Dim: return node.dim == 0 ? matrix.rows : matrix.columns;
      case size::Op::Stride: return node.dim == 0 ? matrix.pitch : 1;
      default: return reinterpret_cast<int64_t>(arguments[node.argument]->data());
      }
    };
    // Temporaries of other phases are not there, workers are one of them.
    auto entry = *lowered_.vx->getOps<ir::EntryOp>().begin();
    for (mlir::Type type : llvm::cast<mlir::FunctionType>(entry.getFunctionType()).getInputs().drop_front(3)) {
      auto view = llvm::dyn_cast<ir::ViewType>(type);
      launch.slots.insert(launch.slots.end(), view ? static_cast<size_t>(1 + 2 * view.getRank()) : 1,
                          view ? 0 : kWorkers);
    }
    launch.grid[0] = size::evaluate(llvm::cast<ir::SizeAttr>((*phase_.getGrid())[0]).getExpr(), launch.argument);
    for (auto each = ir::phaseOf(ir::findLaunch(*lowered_.vx), phase_)->getParentOfType<ir::CaseOp>(); each;
         each = each->getParentOfType<ir::CaseOp>())
      if (each.getNeeds() && size::evaluate(each.getNeeds()->getExpr(), launch.argument) == 0)
        return "the launch lacks what case '" + each.getName().str() + "' needs";
    if (std::string failed = gpu::testing::run(code, launch); !failed.empty())
      return failed;
    return compare(x, w, y, format);
  }

private:
  std::string compare(Matrix& x, Matrix& w, Matrix& y, Format format) const {
    const auto at = [&](Matrix& matrix, int64_t row, int64_t column, bool isTransposed) {
      return interpreter::decode(
          format, matrix.data()[isTransposed ? column * matrix.pitch + row : row * matrix.pitch + column]);
    };
    for (int64_t row = 0; row < test_.m; ++row)
      for (int64_t column = 0; column < y.pitch; ++column) {
        const uint16_t got = y.data()[row * y.pitch + column];
        if (column >= test_.n && got != 0x5555)
          return "written beyond the result";
        if (column >= test_.n)
          continue;
        double sum = 0;
        for (int64_t k = 0; k < test_.k; ++k)
          sum += at(x, row, k, test_.transposesX) * at(w, k, column, test_.transposesW);
        if (got != interpreter::encode(format, sum))
          return "element " + std::to_string(row) + ", " + std::to_string(column) + " is " +
                 std::to_string(interpreter::decode(format, got)) + " instead of " + std::to_string(sum);
      }
    return {};
  }

  Case test_;
  mlir::MLIRContext context_{mlir::MLIRContext::Threading::DISABLED};
  tiles::testing::Lowered lowered_;
  ir::KernelOp phase_;
  vxt::KernelOp code_;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  const char* const expressions[] = {"x @ w", "x @ w.transpose()", "x.transpose() @ w",
                                     "x.transpose() @ w.transpose()"};
  int number = 0;
  for (const Configuration& configuration : configurations(*chip::findGpu("sm_90"))) {
    const int64_t rows = configuration.rows, columns = configuration.columns;
    // Several tiles per block with ragged edges, and a ring that goes round.
    for (auto [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{rows + 9, columns + 24, 64},
                           {rows, 40, 64 * (configuration.stages + 1) + 8}}) {
      const int form = number++ % 4;
      all.push_back(
          {number % 3 == 0 ? "f16" : "bf16", expressions[form], form >= 2, form % 2 == 1, configuration, m, n, k});
    }
  }
  return all;
}

class Products : public ::testing::TestWithParam<Case> {};

TEST_P(Products, AreRightWheneverWhatIsAsynchronousHappens) {
  Product product(GetParam());
  ASSERT_EQ(product.error, "");
  for (Timing timing : {Timing::Late, Timing::Early, Timing::Random}) {
    if (kIsSanitized && timing != Timing::Random)
      continue;
    const unsigned seed = std::random_device{}();
    EXPECT_EQ(product.run(product.code(), seed, timing), "") << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Hopper, Products, ::testing::ValuesIn(cases()), [](const auto& info) {
  const Case& test = info.param;
  return std::string(test.type) + "_" + std::to_string(test.configuration.rows) + "x" +
         std::to_string(test.configuration.columns) + "_" + std::to_string(info.index);
});

/// Each one alone, in code with a ring that goes round and several tiles per block; where one thing can go wrong only, the report says what.
TEST(Mutants, CodeWithoutOneWaitArrivalOrFenceFails) {
  const Case test{
      "bf16", "x @ w.transpose()", false, true, configurations(*chip::findGpu("sm_90")).back(), 3 * 64 + 8, 128,
      64 * 10};
  Product product(test);
  ASSERT_EQ(product.error, "");
  ASSERT_EQ(product.run(product.code(), 1, Timing::Late), "");
  const size_t count = countOrdering(product.code());
  EXPECT_GT(count, 15u);
  const std::pair<std::string, std::string> reports[] = {
      {"vxnv.barrier_init_fence", "copies do not see the barrier"},
      {"vxnv.barrier_expect", "which lacks 1 of 1 arrivals and"},
      {"vxnv.barrier_arrive", "threads wait at different places"},
      {"vxnv.async_fence", "without a fence"},
      {"vxnv.wgmma_fence", "no wgmma_fence since the registers were used"},
      {"vxnv.wgmma_commit", "of shared memory is still read"},
      {"vxnv.bulk_wait 0 written", "ends before its bulk store is complete"},
      {"vxnv.bulk_commit", "ends before its bulk store is complete"}};
  for (size_t number = 0; number < count; number += kIsSanitized ? count / 4 : 1) {
    std::string left;
    const std::string failure = runWithout(product, number, left);
    EXPECT_NE(failure, "") << "passes without number " << number << ": " << left;
    for (const auto& [name, report] : reports)
      if (left.starts_with(name)) {
        EXPECT_NE(failure.find(report), std::string::npos) << left << "\n" << failure;
      }
  }
}

}  // namespace
}  // namespace vortex::target::gpu::hopper
