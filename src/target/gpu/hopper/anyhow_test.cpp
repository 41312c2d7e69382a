// Products in bulk whose operands are computed, or whose operands, results or what is read beside them lie anyhow: the phases that a launch takes, run on the machine of
// target/gpu/testing, against a plain loop.
#include "base/fresh_seed.h"
#include "base/sanitized.h"
#include "ir/launch.h"
#include "ir/size_attr.h"
#include "irgen/test_kernel.h"
#include "passes/phase_marks.h"
#include "size/evaluate.h"
#include "target/gpu/dot/testing/matrix.h"
#include "target/gpu/hopper/configuration.h"
#include "target/gpu/hopper/expand_roles.h"
#include "target/gpu/hopper/mutants.h"
#include "target/gpu/hopper/product.h"
#include "target/gpu/hopper/schedule.h"
#include "target/gpu/testing/machine.h"
#include "target/gpu/tiles/testing/lower.h"

#include <cmath>

namespace vortex::target::gpu::hopper::anyhow {
namespace {

namespace vxt = ir::vxt;
using dot::testing::forEachElement;
using dot::testing::makeMatrix;
using dot::testing::Matrix;
using dot::testing::standIns;
using gpu::testing::Launch;
using gpu::testing::Timing;

constexpr int64_t kWorkers = 2;

struct Case {
  const char* name;
  std::string source;
  std::vector<std::vector<int64_t>> arguments;  ///< parameters, then results
  size_t results;
  std::string anyhow;  ///< a letter per argument: 'a' lies anyhow, '-' in rows of whole 16 bytes
  /// Element i of result `result`, from the parameters' values.
  std::function<double(size_t result, int64_t i, const std::vector<Matrix>&)> expected;
  double tolerance = 1e-5;
};

/// A case, compiled for one size of tiles; runs as often as one likes.
class Program {
public:
  Program(const Case& test, const Configuration& configuration) : test_(test) {
    irgen::TestKernel kernel(test.source);
    if (!kernel.module) {
      error = kernel.error;
      return;
    }
    std::string text;
    llvm::raw_string_ostream(text) << *kernel.module;
    const auto adjust = [&](passes::TensorSchedule& schedule) {
      addBulkTiles(schedule, *chip::findGpu("sm_90"));
      std::erase_if(schedule.bulkTiles, [&](const auto& tile) { return tile.plan != configuration.str(); });
      schedule.bulkRows = schedule.bulkColumns = schedule.bulkSide = 1;
      schedule.operandCosts.launchCycles = 0;
      schedule.operandCosts.bytesPerCycle = int64_t(1) << 40;  // computed operands are written
      schedule.productRules = [usual = schedule.productRules](llvm::ArrayRef<ir::DotOp> products) {
        passes::ProductRules rules = usual(products);
        rules.dotSplitBlocks = rules.dotCopyElements = 0;
        return rules;
      };
    };
    using tiles::testing::lower;
    general_ = lower(context_, text, {}, adjust, makeTileLowering);
    fast_ = lower(context_, text, {.unitStrides = true, .alignedRows = true}, adjust, makeTileLowering);
    error = general_.error + fast_.error;
    for (tiles::testing::Lowered* lowered : {&general_, &fast_})
      if (error.empty())
        expandRoles(*lowered->vxt);
  }

  std::string error;
  vxt::KernelOp product;  ///< that the last launch ran

  /// Empty when the results are right. `instead`: of the code of the product.
  std::string run(unsigned seed, Timing timing, vxt::KernelOp instead = {}) {
    prepare(seed);
    const auto valueOf = [&](ir::SizeAttr size) {
      return size::evaluate(size.getExpr(), [&](const size::Node& node) { return argument(node); });
    };
    auto taken = ir::takenKernels(*general_.vx, [&](ir::CaseOp each) { return ir::holds(each, valueOf); });
    arguments_ = standIns(*general_.vx->getOps<ir::EntryOp>().begin(), taken, arguments_);
    Launch launch;
    launch.seed = seed;
    launch.timing = timing;
    launch.argument = [&](const size::Node& node) { return argument(node); };
    for (Matrix* matrix : arguments_)
      addSlots(launch, matrix);
    product = {};
    for (auto [phase, general, fast] :
         llvm::zip(general_.vx->getOps<ir::KernelOp>(), general_.vxt->getOps<vxt::KernelOp>(),
                   fast_.vxt->getOps<vxt::KernelOp>())) {
      if (!llvm::is_contained(taken, phase))
        continue;
      vxt::KernelOp code = general;
      if (isProduct(phase))
        product = code = phase->hasAttr(passes::kAnyPlacement) ? general : fast;
      for (int axis = 0; axis < 3; ++axis)
        launch.grid[axis] = valueOf(llvm::cast<ir::SizeAttr>((*phase.getGrid())[axis]));
      if (std::string failed = gpu::testing::run(code == product && instead ? instead : code, launch); !failed.empty())
        return phase.getSymName().str() + ": " + failed;
    }
    return product ? compare() : "no phase of bulk copies";
  }

private:
  llvm::ArrayRef<mlir::Type> types() {
    return llvm::cast<mlir::FunctionType>((*general_.vx->getOps<ir::EntryOp>().begin()).getFunctionType()).getInputs();
  }

  /// Arguments of the launch; those that are numbers have none.
  void prepare(unsigned seed) {
    std::mt19937_64 random(seed);
    auto entry = *general_.vx->getOps<ir::EntryOp>().begin();
    matrices_.clear();
    matrices_.reserve(types().size());
    arguments_.clear();
    for (auto [number, type] : llvm::enumerate(types())) {
      auto view = llvm::dyn_cast<ir::ViewType>(type);
      if (!view) {
        arguments_.push_back(nullptr);
        continue;
      }
      const bool isGiven = number < test_.arguments.size();
      std::vector<int64_t> extents;
      if (isGiven)
        extents = test_.arguments[number];
      else
        for (auto extent : llvm::cast<mlir::DictionaryAttr>(entry.getArgs()[number])
                               .getAs<mlir::ArrayAttr>("extents")
                               .getAsRange<ir::SizeAttr>())
          extents.push_back(
              size::evaluate(extent.getExpr(), [&](const size::Node& node) { return this->argument(node); }));
      const bool isAligned = !isGiven || test_.anyhow[number] == '-';
      matrices_.push_back(makeMatrix(random, extents, view.getElementType(), {.aligned = isAligned}, isGiven));
      if (number >= firstResult())
        std::ranges::fill(matrices_.back().memory, isGiven ? char(0x55) : char(0xff));  // temporaries: NaN
      arguments_.push_back(&matrices_.back());
    }
  }
  size_t firstResult() const { return test_.arguments.size() - test_.results; }

  int64_t argument(const size::Node& node) {
    if (node.op == size::Op::Device || node.op == size::Op::Scalar)
      return kWorkers;
    Matrix& matrix = *arguments_[node.argument];
    switch (node.op) {
    case size::Op::Dim: return matrix.extents[node.dim];
    case size::Op::Stride: return matrix.strides[node.dim];
    default: return reinterpret_cast<int64_t>(matrix.data());
    }
  }

  static void addSlots(Launch& launch, Matrix* matrix) {
    if (!matrix) {
      launch.slots.push_back(kWorkers);
      return;
    }
    launch.slots.push_back(reinterpret_cast<uint64_t>(matrix->data()));
    for (const auto* numbers : {&matrix->extents, &matrix->strides})
      launch.slots.insert(launch.slots.end(), numbers->begin(), numbers->end());
    launch.memory.push_back({matrix->data(), matrix->span()});
  }

  std::string compare() {
    for (size_t result = 0; result < test_.results; ++result) {
      Matrix& matrix = matrices_[firstResult() + result];
      interpreter::Element element =
          *interpreter::elementOf(llvm::cast<ir::ViewType>(types()[firstResult() + result]).getElementType());
      std::vector<char> left = matrix.memory;
      const int64_t start = matrix.data() - matrix.memory.data();
      std::string failed;
      forEachElement(matrix, [&](int64_t i, int64_t offset) {
        uint64_t bits = 0;
        std::memcpy(&bits, matrix.data() + offset * element.bytes(), element.bytes());
        std::memset(left.data() + start + offset * element.bytes(), 0x55, element.bytes());
        const double got = element.isFloat() ? interpreter::decode(element.format, bits)
                                             : double(interpreter::signExtend(bits, element.width));
        const double wanted = test_.expected(result, i, matrices_);
        if (!(std::abs(got - wanted) <= test_.tolerance * (1 + std::abs(wanted))) && failed.empty())
          failed = "element " + std::to_string(i) + " of result " + std::to_string(result) + " is " +
                   std::to_string(got) + " instead of " + std::to_string(wanted);
      });
      if (!failed.empty())
        return failed;
      if (llvm::any_of(left, [](char byte) { return byte != 0x55; }))
        return "written beyond result " + std::to_string(result);
    }
    return {};
  }

  Case test_;
  mlir::MLIRContext context_{mlir::MLIRContext::Threading::DISABLED};
  tiles::testing::Lowered general_, fast_;
  std::vector<Matrix> matrices_;
  std::vector<Matrix*> arguments_;
};

//===-- cases -------------------------------------------------------------------------------------------------===//

double product(const Matrix& x, const Matrix& w, int64_t row, int64_t column, bool turnsX = false,
               bool turnsW = false) {
  const int64_t depth = x.extents[turnsX ? 0 : 1];
  double sum = 0;
  for (int64_t k = 0; k < depth; ++k)
    sum += x.values[static_cast<size_t>(turnsX ? k * x.extents[1] + row : row * depth + k)] *
           w.values[static_cast<size_t>(turnsW ? column * depth + k : k * w.extents[1] + column)];
  return sum;
}

Case plain(const char* name, const char* type, const char* result, int64_t m, int64_t n, int64_t k, const char* anyhow,
           double tolerance, bool turnsX = false, bool turnsW = false) {
  std::string t = type, attribute;
  if (t == "tf32") {
    attribute = "@precision(tf32)\n";
    t = "f32";
  }
  return {
      .name = name,
      .source = attribute + "kernel mm(x: &Tensor<" + t + (turnsX ? ", [K, M]>" : ", [M, K]>") + ", w: &Tensor<" + t +
                (turnsW ? ", [N, K]>" : ", [K, N]>") + ") -> Tensor<" + result + ", [M, N]> { return " +
                (turnsX ? "x.transpose()" : "x") + " @ " + (turnsW ? "w.transpose()" : "w") + " }\n",
      .arguments = {turnsX ? std::vector{k, m} : std::vector{m, k},
                    turnsW ? std::vector{n, k} : std::vector{k, n},
                    {m, n}},
      .results = 1,
      .anyhow = anyhow,
      .expected = [=](size_t, int64_t i,
                      const std::vector<Matrix>& all) { return product(all[0], all[1], i / n, i % n, turnsX, turnsW); },
      .tolerance = tolerance};
}

/// A bias, a residual, and the product beside what follows it.
Case finished(const char* anyhow) {
  constexpr int64_t kM = 77, kN = 139, kK = 83;
  return {
      .name = "finished",
      .source =
          "kernel mm(x: &Tensor<f16, [M, K]>, w: &Tensor<f16, [K, N]>, b: &Tensor<f16, [N]>, r: &Tensor<f16, [M, N]>) "
          "-> (Tensor<f16, [M, N]>, Tensor<f32, [M, N]>) {\n"
          "    let c: Tensor<f32, [M, N]> = x @ w\n"
          "    let d = max(c + b as f32, 0.0) + r as f32\n    return (d as f16, c)\n}\n",
      .arguments = {{kM, kK}, {kK, kN}, {kN}, {kM, kN}, {kM, kN}, {kM, kN}},
      .results = 2,
      .anyhow = anyhow,
      .expected =
          [=](size_t result, int64_t i, const std::vector<Matrix>& all) {
            const double sum = product(all[0], all[1], i / kN, i % kN);
            return result == 1 ? sum
                               : std::max(sum + all[2].values[static_cast<size_t>(i % kN)], 0.0) +
                                     all[3].values[static_cast<size_t>(i)];
          },
      .tolerance = 1e-3};
}

/// `isShared`: one second operand for all of the batch.
Case batched(bool isShared) {
  constexpr int64_t kM = 70, kN = 133, kK = 67;
  return {.name = isShared ? "shared" : "batched",
          .source = std::string("kernel mm(x: &Tensor<bf16, [B, M, K]>, w: &Tensor<bf16, ") +
                    (isShared ? "[K, N]" : "[B, K, N]") + ">) -> Tensor<bf16, [B, M, N]> { return x @ w }\n",
          .arguments = {{3, kM, kK},
                        isShared ? std::vector<int64_t>{kK, kN} : std::vector<int64_t>{3, kK, kN},
                        {3, kM, kN}},
          .results = 1,
          .anyhow = "aaa",
          .expected =
              [=](size_t, int64_t i, const std::vector<Matrix>& all) {
                const int64_t batch = i / (kM * kN), row = i / kN % kM, column = i % kN;
                double sum = 0;
                for (int64_t k = 0; k < kK; ++k)
                  sum += all[0].values[static_cast<size_t>((batch * kM + row) * kK + k)] *
                         all[1].values[static_cast<size_t>(((isShared ? 0 : batch) * kK + k) * kN + column)];
                return sum;
              },
          .tolerance = 8e-3};
}

/// An element of an operand, from the parameters' values.
using Element = std::function<double(const std::vector<Matrix>& all, int64_t row, int64_t column)>;

Case computed(const char* name, const char* parameters, const char* result, const char* body,
              std::vector<std::vector<int64_t>> arguments, const char* anyhow, double tolerance, Element a, Element b) {
  const int64_t depth = arguments[0].back(), columns = arguments.back().back();
  return {.name = name,
          .source = std::string("kernel mm(") + parameters + ") -> Tensor<" + result + ", [M, N]> {\n" + body + "\n}\n",
          .arguments = std::move(arguments),
          .results = 1,
          .anyhow = anyhow,
          .expected =
              [=](size_t, int64_t i, const std::vector<Matrix>& all) {
                double sum = 0;
                for (int64_t k = 0; k < depth; ++k)
                  sum += a(all, i / columns, k) * b(all, k, i % columns);
                return sum;
              },
          .tolerance = tolerance};
}

Element elementOf(size_t argument, bool isTurned = false) {
  return [=](const std::vector<Matrix>& all, int64_t row, int64_t column) {
    const Matrix& matrix = all[argument];
    return matrix
        .values[static_cast<size_t>(isTurned ? column * matrix.extents[1] + row : row * matrix.extents[1] + column)];
  };
}

/// As a number without sign.
Element withoutSign(Element element) {
  return [=](const std::vector<Matrix>& all, int64_t row, int64_t column) {
    const double value = element(all, row, column);
    return value < 0 ? value + 256 : value;
  };
}

std::vector<Case> computedCases() {
  constexpr int64_t kM = 70, kN = 137, kK = 83;
  const std::vector<std::vector<int64_t>> plainArguments = {{kM, kK}, {kK, kN}, {kM, kN}},
                                          turnedArguments = {{kM, kK}, {kN, kK}, {kM, kN}};
  return {
      computed("cast", "x: &Tensor<f32, [M, K]>, w: &Tensor<bf16, [K, N]>", "f32",
               "    let c: Tensor<f32, [M, N]> = (x as bf16) @ w\n    return c", plainArguments, "aaa", 1e-5,
               elementOf(0), elementOf(1)),
      computed("casts", "x: &Tensor<f32, [M, K]>, w: &Tensor<f32, [N, K]>", "f16",
               "    return (x as f16) @ (w as f16).transpose()", turnedArguments, "---", 1e-3, elementOf(0),
               elementOf(1, true)),
      computed("scaled", "x: &Tensor<bf16, [M, K]>, w: &Tensor<i8, [K, N]>, s: &Tensor<bf16, [N]>", "f32",
               "    let c: Tensor<f32, [M, N]> = x @ ((w as bf16) * s)\n    return c",
               {{kM, kK}, {kK, kN}, {kN}, {kM, kN}}, "aa-a", 1e-5, elementOf(0),
               [](const std::vector<Matrix>& all, int64_t row, int64_t column) {
                 return elementOf(1)(all, row, column) * all[2].values[static_cast<size_t>(column)];
               }),
      computed(
          "activated", "x: &Tensor<f16, [M, K]>, w: &Tensor<f16, [N, K]>", "f32",
          "    let c: Tensor<f32, [M, N]> = max(x, 0.0) @ w.transpose()\n    return c", turnedArguments, "a-a", 1e-5,
          [](const std::vector<Matrix>& all, int64_t row, int64_t column) {
            return std::max(elementOf(0)(all, row, column), 0.0);
          },
          elementOf(1, true)),
      computed(
          "masked", "x: &Tensor<bf16, [M, K]>, w: &Tensor<bf16, [K, N]>", "f32",
          "    let c: Tensor<f32, [M, N]> = x.mask_upper_triangle(0.0) @ w\n    return c", plainArguments, "-a-", 1e-5,
          [](const std::vector<Matrix>& all, int64_t row, int64_t column) {
            return column > row ? 0.0 : elementOf(0)(all, row, column);
          },
          elementOf(1)),
      computed("f8_turned", "x: &Tensor<f32, [M, K]>, w: &Tensor<f32, [K, N]>", "f32",
               "    let c: Tensor<f32, [M, N]> = (x as f8e4m3) @ (w as f8e4m3)\n    return c", plainArguments, "aaa",
               1e-5, elementOf(0), elementOf(1)),
      computed(
          "i8_turned", "x: &Tensor<i8, [M, K]>, w: &Tensor<i8, [K, N]>", "i32",
          "    let c: Tensor<i32, [M, N]> = (x + x) @ w\n    return c", {{2 * kM, kK}, {kK, kN}, {2 * kM, kN}}, "aa-",
          0,
          [](const std::vector<Matrix>& all, int64_t row, int64_t column) {
            return 2 * elementOf(0)(all, row, column);
          },
          elementOf(1)),
      computed("widened", "x: &Tensor<i8, [M, K]>, w: &Tensor<i8, [N, K]>", "i32",
               "    return (x as i32) @ (w as i32).transpose()", turnedArguments, "aaa", 0, elementOf(0),
               elementOf(1, true)),
      computed("widened_without_sign", "x: &Tensor<u8, [M, K]>, w: &Tensor<u8, [N, K]>", "i32",
               "    return (x as i32) @ (w as i32).transpose()", turnedArguments, "---", 0, withoutSign(elementOf(0)),
               withoutSign(elementOf(1, true))),
  };
}

std::vector<Case> cases() {
  std::vector<Case> all = computedCases();
  const std::vector<Case> others = {plain("all", "bf16", "bf16", 137, 281, 71, "aaa", 8e-3),
                                    plain("results", "f16", "f16", 131, 263, 72, "--a", 1e-3),
                                    plain("operands", "bf16", "bf16", 129, 264, 75, "aa-", 8e-3),
                                    plain("first", "f16", "f32", 65, 136, 333, "a--", 1e-5, false, true),
                                    plain("second", "bf16", "f32", 70, 141, 130, "-aa", 1e-5, true, false),
                                    plain("turned", "bf16", "bf16", 67, 131, 69, "aaa", 8e-3, true, true),
                                    plain("few_columns", "bf16", "bf16", 150, 3, 200, "aaa", 8e-3),
                                    plain("one_row", "bf16", "bf16", 1, 150, 65, "aaa", 8e-3),
                                    plain("tf32", "tf32", "f32", 67, 131, 69, "aaa", 1e-5, false, true),
                                    plain("integers", "i8", "i32", 67, 131, 69, "aaa", 0, false, true),
                                    plain("f8", "f8e4m3", "f8e4m3", 67, 131, 69, "aaa", 7e-2, false, true),
                                    plain("f8_f32", "f8e5m2", "f32", 67, 131, 169, "aaa", 1e-5, false, true),
                                    finished("aaaaaa"),
                                    finished("----aa"),
                                    finished("--a-a-"),
                                    batched(false),
                                    batched(true)};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

class Anyhow : public ::testing::TestWithParam<std::tuple<size_t, size_t>> {};

std::vector<Configuration> configurationsForAnyhow() {
  std::vector<Configuration> all;
  llvm::copy_if(configurations(*chip::findGpu("sm_90")), std::back_inserter(all),
                [](const Configuration& each) { return each.anyhowCycles > 0; });
  return all;
}

TEST_P(Anyhow, ProductsAgreeWithALoop) {
  const Case test = cases()[std::get<0>(GetParam())];
  const Configuration configuration = configurationsForAnyhow()[std::get<1>(GetParam())];
  const bool needsParts = test.source.find("f8e") != std::string::npos;
  if (needsParts && configuration.partCycles == 0)
    GTEST_SKIP() << "too few registers for parts of sums";
  Program program(test, configuration);
  ASSERT_EQ(program.error, "");
  for (Timing timing : {Timing::Late, Timing::Random}) {
    if (base::kIsSanitized && timing != Timing::Random)
      continue;
    const unsigned seed = base::freshSeed();
    EXPECT_EQ(program.run(seed, timing), "") << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Hopper, Anyhow,
                         ::testing::Combine(::testing::Range(size_t{0}, cases().size()),
                                            ::testing::Range(size_t{0}, configurationsForAnyhow().size())),
                         [](const auto& info) {
                           return std::string(cases()[std::get<0>(info.param)].name) + "_" +
                                  std::to_string(std::get<0>(info.param)) + "_" +
                                  std::to_string(configurationsForAnyhow()[std::get<1>(info.param)].columns);
                         });

}  // namespace
}  // namespace vortex::target::gpu::hopper::anyhow
