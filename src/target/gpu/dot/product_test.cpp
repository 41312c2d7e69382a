// Products lowered to vxt and run on the host machine of testing/machine.h, against a plain loop in f64.
#include "target/gpu/dot/product.h"

#include "base/sanitized.h"

#include "ir/launch.h"
#include "ir/size_attr.h"
#include "irgen/test_kernel.h"
#include "size/evaluate.h"
#include "target/gpu/dot/testing/matrix.h"
#include "target/gpu/testing/machine.h"
#include "target/gpu/tiles/testing/lower.h"
#include "target/interface/describe.h"

#include <cmath>

namespace vortex::target::gpu::dot {
namespace {

using testing::forEachElement;
using testing::Layouts;
using testing::makeMatrix;
using testing::Matrix;
using testing::standIns;

struct Case {
  std::string source;
  std::vector<std::vector<int64_t>> params;
  std::vector<int64_t> result;
  std::string phase = "";           ///< what the name of a phase with blocks must contain
  bool copies = false;              ///< operands that lie anyhow, and does not split the depth
  const chip::Gpu* chip = nullptr;  ///< null: sm_90
};

void pushSlots(gpu::testing::Launch& launch, Matrix& matrix) {
  launch.slots.push_back(reinterpret_cast<uint64_t>(matrix.data()));
  launch.slots.insert(launch.slots.end(), matrix.extents.begin(), matrix.extents.end());
  launch.slots.insert(launch.slots.end(), matrix.strides.begin(), matrix.strides.end());
  launch.memory.push_back({matrix.data(), matrix.span()});
}

int64_t evaluate(ir::SizeAttr size, const std::vector<Matrix*>& arguments) {
  return size::evaluate(size.getExpr(), [&](const size::Node& node) {
    Matrix& argument = *arguments[node.argument];
    if (node.op == size::Op::Address)
      return static_cast<int64_t>(reinterpret_cast<intptr_t>(argument.data()));
    EXPECT_TRUE(node.op == size::Op::Dim || node.op == size::Op::Stride);
    return (node.op == size::Op::Dim ? argument.extents : argument.strides)[node.dim];
  });
}

/// Runs the taken phases, in the general version where tensors do not lie as the other assumes.
void launchPhases(tiles::testing::Lowered& lowered, tiles::testing::Lowered& general, const Assumptions& assumptions,
                  llvm::ArrayRef<ir::KernelOp> taken, const std::vector<Matrix*>& arguments,
                  gpu::testing::Launch& launch) {
  artifact::Kernel interface;
  describeInterface(*lowered.vx->getOps<ir::EntryOp>().begin(), interface);
  for (auto [phase, fast, slow] :
       llvm::zip(lowered.vx->getOps<ir::KernelOp>(), lowered.vxt->getOps<ir::vxt::KernelOp>(),
                 general.vxt->getOps<ir::vxt::KernelOp>())) {
    if (!llvm::is_contained(taken, phase))
      continue;
    const size::Expr when = conditionFor(phase, interface, assumptions);
    const bool isFast = !when || evaluate(ir::SizeAttr::get(phase.getContext(), when), arguments) != 0;
    ir::vxt::KernelOp code = isFast ? fast : slow;
    for (int axis = 0; axis < 3; ++axis)
      launch.grid[axis] = evaluate(llvm::cast<ir::SizeAttr>((*phase.getGrid())[axis]), arguments);
    ASSERT_EQ(gpu::testing::run(code, launch), "") << phase.getSymName().str();
  }
}

/// Runs the kernel of `test` as launches of its size do and in a way drawn by lot, which must be right too, and compares with
/// reference(i-th result element, params).
template <class Reference>
void check(const Case& test, Layouts layout, unsigned seed, double tolerance, Reference reference) {
  irgen::TestKernel kernel(test.source);
  ASSERT_TRUE(kernel.module) << kernel.error;
  std::string text;
  llvm::raw_string_ostream(text) << *kernel.module;
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  const bool isAligned = layout.aligned && layout.other < 0;
  Assumptions assumptions{.unitStrides = isAligned, .alignedRows = isAligned};
  if (layout.onlyParams)
    assumptions = {.aligned = {0, 1}};
  auto adjust = [&](passes::TensorSchedule& schedule) {
    schedule.productRules = [&, usual = schedule.productRules](llvm::ArrayRef<ir::DotOp> products) {
      passes::ProductRules rules = usual(products);
      if (test.copies)
        rules.dotSplitBlocks = rules.dotCopyElements = 0;
      if (seed % 2 == 0)  // the tiles of large products, though these are small
        rules.smallDotRows = 0;
      return rules;
    };
  };
  using tiles::testing::lower;
  tiles::testing::Lowered lowered = lower(context, text, assumptions, adjust, nullptr, test.chip);
  ASSERT_EQ(lowered.error, "");
  std::optional<tiles::testing::Lowered> general;
  if (isAligned || layout.onlyParams)
    general = lower(context, text, {}, adjust, nullptr, test.chip);
  auto entry = *lowered.vx->getOps<ir::EntryOp>().begin();
  std::mt19937_64 random(seed);
  std::vector<Matrix> matrices;
  auto types = llvm::cast<mlir::FunctionType>(entry.getFunctionType()).getInputs();
  std::vector<Matrix*> arguments;
  matrices.reserve(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    bool isParam = i < test.params.size();
    std::vector<int64_t> extents = isParam ? test.params[i] : test.result;
    if (i > test.params.size()) {  // a temporary
      extents.clear();
      auto described = llvm::cast<mlir::DictionaryAttr>(entry.getArgs()[i]);
      for (auto extent : described.getAs<mlir::ArrayAttr>("extents").getAsRange<ir::SizeAttr>())
        extents.push_back(evaluate(extent, arguments));
    }
    const Layouts own{.aligned = layout.aligned != (layout.other == static_cast<int>(i))};
    matrices.push_back(makeMatrix(random, extents, llvm::cast<ir::ViewType>(types[i]).getElementType(), own, isParam));
    arguments.push_back(&matrices.back());
  }
  Matrix& result = matrices[test.params.size()];
  interpreter::Element element =
      *interpreter::elementOf(llvm::cast<ir::ViewType>(types[test.params.size()]).getElementType());
  auto runWay = [&](llvm::ArrayRef<ir::KernelOp> taken) {
    std::memset(result.memory.data(), 0x55, result.memory.size());
    gpu::testing::Launch launch;
    launch.seed = seed;
    const std::vector<Matrix*> standing = standIns(entry, taken, arguments);
    for (Matrix* matrix : standing)
      pushSlots(launch, *matrix);
    launchPhases(lowered, general ? *general : lowered, assumptions, taken, standing, launch);
    forEachElement(result, [&](int64_t i, int64_t offset) {
      uint64_t bits = 0;
      std::memcpy(&bits, result.data() + offset * element.bytes(), element.bytes());
      double got = element.isFloat() ? interpreter::decode(element.format, bits)
                                     : double(interpreter::signExtend(bits, element.width));
      double wanted = reference(i, matrices);
      if (!(std::abs(got - wanted) <= tolerance * (1 + std::abs(wanted))) && !::testing::Test::HasFailure())
        ADD_FAILURE() << "element " << i << ": " << got << " instead of " << wanted << "\n" << test.source;
    });
  };
  auto valueOf = [&](ir::SizeAttr size) { return evaluate(size, arguments); };
  auto usual = ir::takenKernels(*lowered.vx, [&](ir::CaseOp each) { return ir::holds(each, valueOf); });
  EXPECT_TRUE(llvm::any_of(usual, [&](ir::KernelOp kernel) { return kernel.getSymName().contains(test.phase); }))
      << "no phase " << test.phase << "\n"
      << test.source;
  runWay(usual);
  auto drawn = ir::takenKernels(*lowered.vx, [&](ir::CaseOp each) {
    return (!each.getNeeds() || valueOf(*each.getNeeds()) != 0) && random() % 2 == 0;
  });
  if (seed % 2 && drawn != usual)
    runWay(drawn);
}

struct Shape {
  int64_t m, n, k;
};

struct Variant {
  const char *a, *b, *body;
  bool transposedA, transposedB;
  double scale;
};
constexpr Variant kVariants[] = {
    {"[M, K]", "[K, N]", "x @ w", false, false, 1},
    {"[M, K]", "[N, K]", "x @ w.transpose()", false, true, 1},
    {"[K, M]", "[K, N]", "x.transpose() @ w", true, false, 1},
    {"[K, M]", "[N, K]", "x.transpose() @ w.transpose()", true, true, 1},
    {"[M, K]", "[K, N]", "(x + x) @ w", false, false, 2},
};

void checkProduct(const char* type, const Variant& v, Shape shape, Layouts layout, unsigned seed,
                  const char* phase = "", const char* sum = "", const chip::Gpu* chip = nullptr) {
  static unsigned calls = 0;
  if (base::kIsSanitized && calls++ % 5 != 0)
    return;
  std::string t = type, attribute, result = *sum ? sum : type;
  if (t == "tf32") {
    attribute = "@precision(tf32)\n";
    t = result = "f32";
  }
  Case test{attribute + "kernel mm(x: &Tensor<" + t + ", " + v.a + ">, w: &Tensor<" + t + ", " + v.b + ">) -> Tensor<" +
                result + ", [M, N]> {\n    return " + v.body + "\n}\n",
            {v.transposedA ? std::vector{shape.k, shape.m} : std::vector{shape.m, shape.k},
             v.transposedB ? std::vector{shape.n, shape.k} : std::vector{shape.k, shape.n}},
            {shape.m, shape.n},
            phase,
            std::string(phase) == ".align",
            chip};
  double tolerance = *sum            ? 0
                     : t == "f8e4m3" ? 7e-2
                     : t == "f8e5m2" ? 0.13
                     : t == "f16"    ? 1e-3
                     : t == "bf16"   ? 8e-3
                                     : 1e-5;
  check(test, layout, seed, tolerance, [&](int64_t i, const std::vector<Matrix>& params) {
    int64_t row = i / shape.n, column = i % shape.n;
    double sum = 0;
    auto factor = [&](double value) { return t == "u8" && value < 0 ? value + 256 : value; };
    for (int64_t k = 0; k < shape.k; ++k)
      sum += factor(params[0].values[static_cast<size_t>(v.transposedA ? k * shape.m + row : row * shape.k + k)]) *
             factor(params[1].values[static_cast<size_t>(v.transposedB ? column * shape.k + k : k * shape.n + column)]);
    // Integers wrap.
    return result == "i8" ? double(static_cast<int8_t>(static_cast<int64_t>(v.scale * sum))) : v.scale * sum;
  });
}

/// On 8 × 8 matrices of simdgroups, in 32 KiB of shared memory.
TEST(Product, OnSimdgroupMatricesAgreesWithALoop) {
  unsigned seed = 501;
  for (const char* type : {"f32", "f16", "bf16"})
    for (const Variant& variant : kVariants)
      for (Shape shape : {Shape{1, 3, 5}, {33, 17, 70}, {67, 130, 41}}) {
        const bool isAligned = seed % 2 == 0;
        checkProduct(type, variant, shape, {.aligned = isAligned, .onlyParams = isAligned}, seed, "", "",
                     chip::findGpu("apple_m1"));
        ++seed;
        if (HasFailure())
          return;
      }
}

/// Where no plan of the table fits: fewer and shorter stages, on every unit.
TEST(Product, InLittleSharedMemoryAgreesWithALoop) {
  unsigned seed = 601;
  for (const char* name : {"apple_m1", "sm_80"})
    for (auto [type, bytes] : {std::pair{"f32", 14}, {"f16", 14}, {"i64", 18}, {"i32", 11}}) {
      chip::Gpu chip = *chip::findGpu(name);
      chip.sharedBytesPerBlock = chip.sharedBytesPerCore = static_cast<uint32_t>(bytes) * 1024;
      for (Shape shape : {Shape{33, 17, 70}, {67, 130, 41}}) {
        const bool isAligned = seed % 2 == 0;
        checkProduct(type, kVariants[seed % 4], shape, {.aligned = isAligned, .onlyParams = isAligned}, seed, "", "",
                     &chip);
        ++seed;
        if (HasFailure())
          return;
      }
    }
}

TEST(Product, ThatFitsNoSharedMemoryIsRefused) {
  chip::Gpu chip = *chip::findGpu("apple_m1");
  chip.sharedBytesPerBlock = chip.sharedBytesPerCore = 4096;
  irgen::TestKernel kernel("kernel mm(x: &Tensor<f32, [M, K]>, w: &Tensor<f32, [K, N]>) -> Tensor<f32, [M, N]> {\n"
                           "    return x @ w\n}\n");
  ASSERT_TRUE(kernel.module) << kernel.error;
  std::string text;
  llvm::raw_string_ostream(text) << *kernel.module;
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  std::string error = tiles::testing::lower(context, text, {}, nullptr, nullptr, &chip).error;
  EXPECT_NE(error.find("a product of 32-bit elements in blocks with 4096 bytes of shared memory"), std::string::npos)
      << error;
}

/// Pieces of the depth are multiplied by different blocks and added in order.
TEST(Product, OfALongDepthIsSplitAndAgreesWithALoop) {
  unsigned seed = 201;
  for (const char* type : {"f16", "f32"})
    for (Shape shape : {Shape{9, 20, 1100}, {33, 17, 1537}}) {
      checkProduct(type, kVariants[seed % 4], shape, {seed % 2 == 0}, seed);
      ++seed;
      if (HasFailure())
        return;
    }
}

/// Sums along the matrix, by a choice of the launch.
TEST(Product, OfOneRowOrColumnAgreesWithALoop) {
  unsigned seed = 701;
  for (const char* type : {"f32", "bf16", "i32"})
    for (const Variant& variant : kVariants)
      for (Shape shape :
           {Shape{1, 37, 70}, {41, 1, 72}, {1, 1, 300}, {1, 300, 1}, {264, 1, 8}, {1, 72, 264}, {3, 1, 0}, {1, 5, 0}}) {
        checkProduct(type, variant, shape, {.aligned = seed % 2 == 0, .onlyParams = seed % 4 == 0}, seed,
                     shape.n > 1           ? ""
                     : variant.transposedA ? ".partial.0"
                                           : ".tensors.0");
        seed += 3;
        if (HasFailure())
          return;
      }
}

/// Thin ones in tiles of their own.
TEST(Product, OfFewRowsAndALongDepthAgreesWithALoop) {
  for (const char* type : {"bf16", "f32"}) {
    checkProduct(type, kVariants[1], {32, 40, 1200}, {true}, 3, ".partial");
    checkProduct(type, kVariants[0], {5, 131, 1100}, {false}, 5, ".partial");
    if (std::string(type) == "bf16")  // however small the operands
      checkProduct(type, kVariants[0], {3, 18, 300}, {false}, 6, ".partial");
    if (HasFailure())
      return;
  }
}

/// Operands that lie well, of a result that does not.
TEST(Product, OfAlignedOperandsWritesRowsThatAreNot) {
  unsigned seed = 251;
  for (const char* type : {"f16", "tf32", "i8"})
    for (Shape shape : {Shape{33, 51, 70}, {70, 131, 64}}) {
      checkProduct(type, kVariants[seed % 4], shape, {true, true}, seed);
      ++seed;
      if (HasFailure())
        return;
    }
}

/// Rows that are not aligned are copied into such that are.
TEST(Product, OfRowsThatAreNotAlignedAgreesWithALoop) {
  unsigned seed = 301;
  for (const char* type : {"f16", "tf32", "i8", "f8e5m2"})
    for (Shape shape : {Shape{33, 50, 71}, {2, 3, 130}, {129, 64, 65}}) {
      checkProduct(type, kVariants[seed % 4], shape, {.aligned = seed % 3 == 0, .other = int(seed % 2)}, seed,
                   ".align");
      ++seed;
      if (HasFailure())
        return;
    }
}

TEST(Product, OfIntegersInAWiderTypeAgreesWithALoop) {
  unsigned seed = 401;
  for (const char* type : {"i8", "i16", "u8"})
    for (const char* sum : {"i32", "i64"})
      for (unsigned variant : {0, 1, 2, 3}) {
        if (std::string(type) == "u8" && variant > 0)
          continue;
        checkProduct(type, kVariants[variant], {35, 50, 70}, {seed % 2 == 0}, seed, "", sum);
        ++seed;
        if (HasFailure())
          return;
      }
}

/// Operands in shared memory are read where they are, sums stay in registers over the loop.
TEST(Product, OfStagedTilesAgreesWithALoop) {
  for (const char* type : {"f16", "f32"})
    for (const char* body : {"a_tile @ b_tile", "a_tile @ t_tile.transpose()"})
      for (Shape shape : {Shape{128, 64, 96}, {129, 72, 65}}) {
        std::string t = type, product = body;
        bool turned = product.find("t_tile") != std::string::npos;
        std::string tile = turned ? "t_tile" : "b_tile", extents = turned ? "[64, 32]" : "[32, 64]";
        Case test{"@tile(m = 64, n = 64, k = 32)\nkernel mm(a: &Tensor<" + t + ", [M, K]>, b: &Tensor<" + t + ", " +
                      (turned ? "[N, K]" : "[K, N]") + ">) -> Tensor<f32, [M, N]> {\n    let a_tile: Tensor<" + t +
                      ", [64, 32]> @shared\n    let " + tile + ": Tensor<" + t + ", " + extents +
                      "> @shared\n    var acc: Tensor<f32, [64, 64]> @local = Tensor.zeros()\n" +
                      "    for k in range(0, K, 32) {\n        a_tile = stage(a[block_m..block_m + 64, k..k + 32])\n" +
                      "        " + tile + " = stage(b[" +
                      (turned ? "block_n..block_n + 64, k..k + 32" : "k..k + 32, block_n..block_n + 64") +
                      "])\n        sync_block()\n        acc += " + product + "\n    }\n    return acc\n}\n",
                  {{shape.m, shape.k}, turned ? std::vector{shape.n, shape.k} : std::vector{shape.k, shape.n}},
                  {shape.m, shape.n}};
        for (bool aligned : {true, false}) {
          check(test, {aligned}, 7, 1e-5, [&](int64_t i, const std::vector<Matrix>& params) {
            int64_t row = i / shape.n, column = i % shape.n;
            double sum = 0;
            for (int64_t k = 0; k < shape.k; ++k)
              sum += params[0].values[static_cast<size_t>(row * shape.k + k)] *
                     params[1].values[static_cast<size_t>(turned ? column * shape.k + k : k * shape.n + column)];
            return sum;
          });
          if (HasFailure())
            return;
        }
      }
}

class Products : public ::testing::TestWithParam<const char*> {};

TEST_P(Products, OfAnyOrientationAgreeWithALoop) {
  unsigned seed = 1;
  for (const Variant& variant : kVariants) {
    checkProduct(GetParam(), variant, {33, 50, 70}, {seed % 2 == 0}, seed);
    ++seed;
    if (HasFailure())
      return;
  }
}

TEST(Product, OfAnySizeAgreesWithALoop) {
  unsigned seed = 101;
  for (const char* type : {"f16", "f32"})
    for (Shape shape :
         {Shape{1, 1, 1}, {17, 1, 3}, {1, 33, 200}, {130, 5, 16}, {3, 140, 0}, {16, 16, 65}, {40, 24, 16}}) {
      checkProduct(type, kVariants[seed % 4], shape, {seed % 3 == 0}, seed);
      ++seed;
      if (HasFailure())
        return;
    }
}

INSTANTIATE_TEST_SUITE_P(Types, Products,
                         ::testing::Values("f8e4m3", "f8e5m2", "f16", "bf16", "f32", "tf32", "f64", "i8", "i32", "i64"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Product, BatchesAndEpiloguesAgreeWithALoop) {
  for (const char* type : {"f16", "f32"}) {
    std::string t = type;
    Case test{"kernel layer(x: &Tensor<" + t + ", [B, M, K]>, w: &Tensor<" + t + ", [K, N]>, bias: &Tensor<" + t +
                  ", [N]>) -> Tensor<" + t +
                  ", [B, M, N]> {\n    let h = x @ w + bias\n    return max(h, 0.0) * 0.5\n}\n",
              {{3, 18, 40}, {40, 30}, {30}},
              {3, 18, 30}};
    for (bool aligned : {true, false})
      check(test, {aligned}, 5, t == "f16" ? 2e-3 : 1e-5, [](int64_t i, const std::vector<Matrix>& params) {
        double sum = params[2].values[static_cast<size_t>(i % 30)];
        for (int64_t k = 0; k < 40; ++k)
          sum += params[0].values[static_cast<size_t>(i / 30 * 40 + k)] *
                 params[1].values[static_cast<size_t>(k * 30 + i % 30)];
        return std::max(sum, 0.0) * 0.5;
      });
  }
}

/// Both products of an element are one phase's: in blocks in which either unit finds room.
TEST(Product, OfTwoKindsOfElementsInOnePhaseAgreesWithALoop) {
  unsigned seed = 601;
  for (const auto& [narrow, wide] : {std::pair("f16", "f64"), std::pair("bf16", "f32"), std::pair("i8", "i64")})
    for (bool aligned : {true, false}) {
      const std::string a = narrow, b = wide;
      auto pair = [](const std::string& x, const std::string& w, const std::string& type) {
        return x + ": &Tensor<" + type + ", [M, K]>, " + w + ": &Tensor<" + type + ", [K, N]>";
      };
      const std::string source = "kernel k(" + pair("x", "w", a) + ", " + pair("y", "v", b) + ") -> Tensor<" + b +
                                 ", [M, N]> {\n    return (x @ w) as " + b + " + y @ v\n}\n";
      constexpr int64_t kRows = 37, kDepth = 50, kColumns = 70;
      const std::vector<int64_t> left{kRows, kDepth}, right{kDepth, kColumns};
      check({source, {left, right, left, right}, {kRows, kColumns}}, {aligned}, seed++, a == "i8" ? 0 : 2e-2,
            [&](int64_t i, const std::vector<Matrix>& params) {
              auto product = [&](size_t first) {
                double sum = 0;
                for (int64_t k = 0; k < kDepth; ++k)
                  sum += params[first].values[static_cast<size_t>(i / kColumns * kDepth + k)] *
                         params[first + 1].values[static_cast<size_t>(k * kColumns + i % kColumns)];
                return sum;
              };
              return product(0) + product(2);
            });
      if (HasFailure())
        return;
    }
}

/// An element of softmax(Q K^T / 8) V, of keys up to the row.
double attended(const std::vector<Matrix>& params, int64_t row, int64_t column) {
  const int64_t depth = params[0].extents[2];
  const auto at = [&](size_t param, int64_t i, int64_t j) {
    return params[param].values[static_cast<size_t>(i * depth + j)];
  };
  double total = 0, sum = 0;
  for (int64_t key = 0; key <= row; ++key) {
    double score = 0;
    for (int64_t d = 0; d < depth; ++d)
      score += at(0, row, d) * at(1, key, d);
    const double weight = std::exp(score * 0.125);
    total += weight;
    sum += weight * at(2, key, column);
  }
  return sum / total;
}

/// Products in a loop whose operands are results of other tiles: scores that a softmax keeps from block to block.
TEST(Product, InsideOfAnOnlineSoftmaxAgreesWithALoop) {
  const std::string tensor = ": &Tensor<f32, [H, S, 64]>";
  const std::string rows = "[head, block_m..+32, :]", keys = "[head, first..+32, :]";
  const std::string source =
      "@tile(m = 32, n = 64)\n@launch(block = 128)\nkernel attention(q" + tensor + ", k" + tensor + ", v" + tensor +
      ") -> Tensor<f32, [H, S, 64]> {\n    let head = block.id.z\n    let queries = q" + rows +
      " * 0.125\n    var largest: Tensor<f32, [32, 1]> @local = full(-1.0e30)\n" +
      "    var total: Tensor<f32, [32, 1]> @local = zeros()\n    var acc: Tensor<f32, [32, 64]> @local = zeros()\n" +
      "    for first in range(0, block_m + 32, 32) {\n        var scores = queries @ k" + keys + ".transpose()\n" +
      "        if first == block_m {\n            scores = scores.mask_upper_triangle(-inf)\n        }\n" +
      "        let larger = max(largest, scores.max(dim = -1, keepdim = true))\n" +
      "        let p = exp(scores - larger)\n        let shrink = exp(largest - larger)\n" +
      "        total = total * shrink + p.sum(dim = -1, keepdim = true)\n        acc = acc * shrink + p @ v" + keys +
      "\n        largest = larger\n    }\n    return acc / total\n}\n";
  unsigned seed = 501;
  for (Layouts layout : {Layouts{.aligned = true}, Layouts{}, Layouts{.aligned = true, .other = 1}}) {
    constexpr int64_t kLength = 40;
    const std::vector<int64_t> extents{1, kLength, 64};
    check({source, {extents, extents, extents}, extents}, layout, ++seed, 1e-5,
          [](int64_t i, const std::vector<Matrix>& params) { return attended(params, i / 64, i % 64); });
    if (HasFailure())
      return;
  }
}

/// Sums that each step multiplies by a number per row before it adds a product.
TEST(Product, AddedToSumsThatAreScaledByRowsAgreesWithALoop) {
  unsigned seed = 701;
  for (std::string type : {"f16", "bf16", "f32"})
    for (std::string sum : {"acc * factors + a_tile @ b_tile", "a_tile @ b_tile + factors * acc",
                            "acc * factors + a_tile @ b_tile + factors"}) {
      const std::string source =
          "@tile(m = 16, n = 64, k = 32)\n@launch(block = 128)\nkernel mm(a: &Tensor<" + type +
          ", [M, K]>, b: &Tensor<" + type + ", [K, N]>) -> Tensor<f32, [M, N]> {\n    let a_tile: Tensor<" + type +
          ", [16, 32]> @shared\n    let b_tile: Tensor<" + type +
          ", [32, 64]> @shared\n    var factors: Tensor<f32, [16, 1]> @shared\n" +
          "    var acc: Tensor<f32, [16, 64]> @local = Tensor.zeros()\n    for k in range(0, K, 32) {\n" +
          "        a_tile = stage(a[block_m..+16, k..+32])\n        b_tile = stage(b[k..+32, block_n..+64])\n" +
          "        factors = (a[block_m..+16, k..+1] as f32) * 0.5\n        sync_block()\n        acc = " + sum +
          "\n    }\n    return acc\n}\n";
      for (Shape shape : {Shape{32, 64, 96}, {37, 72, 65}, {16, 64, 0}}) {
        check({source, {{shape.m, shape.k}, {shape.k, shape.n}}, {shape.m, shape.n}}, {seed % 2 == 0}, seed, 1e-4,
              [&](int64_t i, const std::vector<Matrix>& params) {
                const int64_t row = i / shape.n, column = i % shape.n;
                const auto at = [&](int64_t k) { return params[0].values[static_cast<size_t>(row * shape.k + k)]; };
                double acc = 0;
                for (int64_t first = 0; first < shape.k; first += 32) {
                  acc *= at(first) * 0.5;
                  for (int64_t k = first; k < std::min(first + 32, shape.k); ++k)
                    acc += at(k) * params[1].values[static_cast<size_t>(k * shape.n + column)];
                  acc += sum.ends_with("+ factors") ? at(first) * 0.5 : 0;
                }
                return acc;
              });
        ++seed;
        if (HasFailure())
          return;
      }
    }
}

/// A maximum along columns of a tile in shared memory, of which a branch chooses what is stored: the maximum takes no byte of the tile's.
TEST(Tiles, ThatBranchesComputeFromSharedMemoryKeepTheirSource) {
  const std::string source = R"(@tile(m = 4, n = 4)
@launch(block = 128)
kernel k(a: &Tensor<f32, [M, N]>) -> Tensor<f32, [M, N]> {
    var acc: Tensor<f32, [4, 4]> @local = a[block_m..+4, block_n..+4] * 2.0
    let t: Tensor<f32, [4, 4]> @shared
    t = acc
    sync_block()
    acc = t + 0.0
    acc = acc - acc.max(dim = 0, keepdim = true)
    if block_m > block_n { acc = acc + 3.0 } else { acc = -acc }
    return acc
}
)";
  for (Layouts layout : {Layouts{.aligned = true}, Layouts{}})
    check({source, {{24, 16}}, {24, 16}}, layout, 3, 1e-5, [](int64_t i, const std::vector<Matrix>& params) {
      const int64_t row = i / 16 / 4 * 4, column = i % 16;
      double most = -HUGE_VAL;
      for (int64_t k = row; k < row + 4; ++k)
        most = std::max(most, 2.0 * params[0].values[static_cast<size_t>(k * 16 + column)]);
      const double rest = 2.0 * params[0].values[static_cast<size_t>(i)] - most;
      return row > column / 4 * 4 ? rest + 3 : -rest;
    });
}

}  // namespace
}  // namespace vortex::target::gpu::dot
