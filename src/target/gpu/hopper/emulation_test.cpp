// Products of roles and rings, expanded to instructions and run on the machine of target/gpu/testing, against plain sums. Then the same code
// with one of its waits, arrivals or fences left out, which must not pass.
#include "artifact/tensor_map.h"
#include "base/fresh_seed.h"
#include "base/sanitized.h"
#include "interpreter/number.h"
#include "ir/launch.h"
#include "ir/size_attr.h"
#include "ir/vxnv.h"
#include "irgen/test_kernel.h"
#include "passes/phase_marks.h"
#include "size/evaluate.h"
#include "target/gpu/hopper/configuration.h"
#include "target/gpu/hopper/expand_roles.h"
#include "target/gpu/hopper/mutants.h"
#include "target/gpu/hopper/product.h"
#include "target/gpu/hopper/schedule.h"
#include "target/gpu/testing/machine.h"
#include "target/gpu/tiles/testing/lower.h"

#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

namespace vortex::target::gpu::hopper {
namespace {

namespace vxnv = ir::vxnv;
namespace vxt = ir::vxt;
using gpu::testing::Launch;
using gpu::testing::Timing;
using interpreter::Format;

constexpr int64_t kWorkers = 2;

/// Of operands or results.
struct Numbers {
  Format format;
  unsigned bytes;
  bool isUnsigned = false;

  uint64_t encode(double value) const {
    const uint64_t mask = ~uint64_t{0} >> (64 - 8 * bytes);
    return mask & (format == Format::Int ? static_cast<uint64_t>(static_cast<int64_t>(value))
                                         : interpreter::encode(format, value));
  }
  double decode(uint64_t bits) const {
    if (format != Format::Int)
      return interpreter::decode(format, bits);
    return isUnsigned ? static_cast<double>(bits) : static_cast<double>(interpreter::signExtend(bits, 8 * bytes));
  }
};

Numbers numbersOf(const std::string& type) {
  const std::pair<const char*, Numbers> all[] = {
      {"bf16", {Format::BF16, 2}},    {"f16", {Format::F16, 2}}, {"f8e4m3", {Format::E4M3, 1}},
      {"f8e5m2", {Format::E5M2, 1}},  {"f32", {Format::F32, 4}}, {"i8", {Format::Int, 1}},
      {"u8", {Format::Int, 1, true}}, {"i32", {Format::Int, 4}}, {"u32", {Format::Int, 4, true}},
  };
  return llvm::find_if(all, [&](const auto& each) { return each.first == type; })->second;
}

/// Rows of numbers, `pitch` elements apart.
struct Matrix {
  int64_t rows, columns, pitch;
  Numbers numbers;
  std::vector<char> memory;
  char* data() { return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(memory.data()) + 255) / 256 * 256); }
  uint64_t get(int64_t row, int64_t column) {
    uint64_t bits = 0;
    std::memcpy(&bits, data() + (row * pitch + column) * numbers.bytes, numbers.bytes);
    return bits;
  }
  void set(int64_t row, int64_t column, uint64_t bits) {
    std::memcpy(data() + (row * pitch + column) * numbers.bytes, &bits, numbers.bytes);
  }
  size_t size() const { return static_cast<size_t>(rows * pitch) * numbers.bytes; }
};

/// Poison; rows begin at multiples of 16 bytes, and there is more behind them.
Matrix makeMatrix(int64_t rows, int64_t columns, Numbers numbers, bool isPadded = true) {
  const int64_t line = 16 / numbers.bytes, pitch = isPadded ? (columns + line - 1) / line * line + line : columns;
  Matrix matrix{rows, columns, pitch, numbers, {}};
  matrix.memory.assign(matrix.size() + 512, 0x55);
  return matrix;
}

/// Integers whose products have exact sums, in parts of the depth too.
double number(std::mt19937_64& random, Numbers numbers) {
  if (numbers.format == Format::Int)
    return static_cast<double>(random() % 256) - (numbers.isUnsigned ? 0 : 128);
  return static_cast<double>(random() % 17) - 8;
}

struct Case {
  const char* type;  ///< of the operands; tf32: f32 that may be rounded
  const char* result;
  bool transposesX, transposesW;
  Configuration configuration;
  int64_t m, n, k;
  bool isScaled = false;    ///< by row and by column
  bool isTileCode = false;  ///< of blocks that take the configuration's tile in steps of the depth

  std::string memoryType() const { return std::string(type) == "tf32" ? "f32" : type; }
  /// A stage of each operand per step of 32.
  std::string tileSource() const {
    const std::string rows = std::to_string(configuration.rows), columns = std::to_string(configuration.columns);
    const auto stage = [&](const char* name, bool isTransposed, const std::string& across, const std::string& block) {
      const std::string shape = isTransposed ? across + ", 32]" : "32, " + across + "]";
      const std::string window = block + "..+" + across, depth = "k..+32";
      return std::pair("    let " + std::string(name) + "s: Tensor<" + memoryType() + ", [" + shape + "> @shared\n",
                       "        " + std::string(name) + "s = stage(" + name + "[" +
                           (isTransposed ? window + ", " + depth : depth + ", " + window) + "])\n");
    };
    const auto [x, copyX] = stage("x", !transposesX, rows, "block_m");
    const auto [w, copyW] = stage("w", transposesW, columns, "block_n");
    const std::string sums = numbersOf(memoryType()).format == Format::Int ? result : "f32";
    return x + w + "    var acc: Tensor<" + sums + ", [" + rows + ", " + columns + "]> @local = Tensor.zeros()\n" +
           "    for k in range(0, K, 32) {\n" + copyX + copyW +
           "        sync_block()\n        acc += " + (transposesX ? "xs.transpose()" : "xs") + " @ " +
           (transposesW ? "ws.transpose()" : "ws") + "\n    }\n" + "    return acc" +
           (isScaled ? " * a[block_m..+" + rows + ", 0..1] * b[block_n..+" + columns + "]" : std::string()) + "\n}\n";
  }
  std::string source() const {
    const std::string of = memoryType(), to = result, shape = to + ", [M, N]>";
    std::string text = std::string(type) == "tf32" ? "@precision(tf32)\n" : "";
    if (isTileCode)
      text += "@tile(m = " + std::to_string(configuration.rows) + ", n = " + std::to_string(configuration.columns) +
              ", k = 32)\n";
    text += "kernel mm(x: &Tensor<" + of + (transposesX ? ", [K, M]" : ", [M, K]") + ">, w: &Tensor<" + of +
            (transposesW ? ", [N, K]" : ", [K, N]") + ">";
    text += isScaled ? ", a: &Tensor<f32, [M, 1]>, b: &Tensor<f32, [N]>) -> Tensor<" : ") -> Tensor<";
    const std::string product =
        std::string(transposesX ? "x.transpose()" : "x") + " @ " + (transposesW ? "w.transpose()" : "w");
    if (isTileCode)
      return text + shape + " {\n" + tileSource();
    return text + shape + " {\n    " +
           (isScaled ? "let c: Tensor<f32, [M, N]> = " + product + "\n    return (c * a * b) as " + to
                     : "return " + product) +
           "\n}\n";
  }
};

/// A case, compiled; runs as often as one likes.
class Product {
public:
  explicit Product(const Case& test) : test_(test) {
    irgen::TestKernel kernel(test.source());
    std::string text;
    if (!kernel.module) {
      error = kernel.error;
      return;
    }
    llvm::raw_string_ostream(text) << *kernel.module;
    const auto onlyThis = [&](passes::TensorSchedule& schedule) {
      addBulkTiles(schedule, *chip::findGpu("sm_90"));
      std::erase_if(schedule.bulkTiles, [&](const auto& tile) { return tile.plan != test.configuration.str(); });
      schedule.bulkRows = schedule.bulkColumns = schedule.bulkSide = 1;
    };
    lowered_ =
        tiles::testing::lower(context_, text, {.unitStrides = true, .alignedRows = true}, onlyThis, makeTileLowering);
    error = lowered_.error;
    if (!error.empty())
      return;
    expandRoles(*lowered_.vxt);
    for (auto [phase, code] : llvm::zip(lowered_.vx->getOps<ir::KernelOp>(), lowered_.vxt->getOps<vxt::KernelOp>()))
      if (isProduct(phase) && !phase->hasAttr(passes::kAnyPlacement)) {
        phase_ = phase;
        code_ = code;
      } else if (phase.getSymName().contains(".turn.")) {
        turns_.emplace_back(phase, code);
      }
    error = code_ ? "" : "no phase of bulk copies";
  }

  std::string error;
  vxt::KernelOp code() { return code_; }

  /// Empty when the results are right.
  std::string run(vxt::KernelOp code, unsigned seed, Timing timing) {
    std::mt19937_64 random(seed);
    const Numbers of = numbersOf(test_.memoryType()), f32 = numbersOf("f32");
    Matrix x = test_.transposesX ? makeMatrix(test_.k, test_.m, of) : makeMatrix(test_.m, test_.k, of);
    Matrix w = test_.transposesW ? makeMatrix(test_.n, test_.k, of) : makeMatrix(test_.k, test_.n, of);
    Matrix a = makeMatrix(test_.m, 1, f32, false), b = makeMatrix(1, test_.n, f32, false);
    Matrix y = makeMatrix(test_.m, test_.n, numbersOf(test_.result));
    // What tf32 rounds to the number; without its last bits it would be another.
    const double before = std::string(test_.type) == "tf32" ? 1 - 0x1p-13 : 1;
    for (Matrix* matrix : {&x, &w})
      for (int64_t row = 0; row < matrix->rows; ++row)
        for (int64_t column = 0; column < matrix->columns; ++column)
          matrix->set(row, column, of.encode(number(random, of) * before));
    for (Matrix* matrix : {&a, &b})
      for (int64_t i = 0; i < matrix->rows * matrix->columns; ++i)
        matrix->set(0, i, f32.encode(std::ldexp(1, static_cast<int>(random() % 5) - 2)));
    Launch launch;
    launch.seed = seed;
    launch.timing = timing;
    std::vector<Matrix*> arguments = {&x, &w};
    if (test_.isScaled)
      arguments.insert(arguments.end(), {&a, &b});
    arguments.push_back(&y);
    const auto isVector = [&](const Matrix& matrix) { return &matrix == &b; };
    for (Matrix* matrix : arguments) {
      std::vector<int64_t> numbers = {matrix->rows, matrix->columns, matrix->pitch, 1};
      if (isVector(*matrix))
        numbers = {matrix->columns, 1};
      launch.slots.push_back(reinterpret_cast<uint64_t>(matrix->data()));
      launch.slots.insert(launch.slots.end(), numbers.begin(), numbers.end());
      launch.memory.push_back({matrix->data(), matrix->size()});
    }
    std::map<unsigned, Matrix> temporaries;
    std::map<unsigned, unsigned> originals;  ///< of temporaries that stand for arguments: these lie well
    launch.argument = [&](const size::Node& node) -> int64_t {
      if (node.op == size::Op::Scalar)
        return kWorkers;
      auto temporary = temporaries.find(node.argument);
      const auto original = originals.find(node.argument);
      Matrix& matrix = temporary == temporaries.end()
                           ? *arguments[original == originals.end() ? node.argument : original->second]
                           : temporary->second;
      const unsigned dim = node.dim + isVector(matrix);
      switch (node.op) {
      case size::Op::Dim: return dim == 0 ? matrix.rows : matrix.columns;
      case size::Op::Stride: return dim == 0 ? matrix.pitch : 1;
      default: return reinterpret_cast<int64_t>(matrix.data());
      }
    };
    // Temporaries of other phases are not there, workers are one of them.
    auto entry = *lowered_.vx->getOps<ir::EntryOp>().begin();
    llvm::ArrayRef<mlir::Type> inputs = llvm::cast<mlir::FunctionType>(entry.getFunctionType()).getInputs();
    for (auto number = static_cast<unsigned>(arguments.size()); number < inputs.size(); ++number) {
      auto view = llvm::dyn_cast<ir::ViewType>(inputs[number]);
      if (!view || phase_.getArgument(number).use_empty()) {
        launch.slots.insert(launch.slots.end(), view ? static_cast<size_t>(1 + 2 * view.getRank()) : 1,
                            view ? 0 : kWorkers);
        continue;
      }
      auto facts = llvm::cast<mlir::DictionaryAttr>(entry.getArgs()[number]);
      if (auto original = facts.getAs<mlir::IntegerAttr>(ir::kStandsFor)) {
        originals[number] = static_cast<unsigned>(original.getInt());
        Matrix& matrix = *arguments[originals[number]];
        launch.slots.push_back(reinterpret_cast<uint64_t>(matrix.data()));
        for (int64_t value : {matrix.rows, matrix.columns, matrix.pitch, int64_t{1}})
          launch.slots.push_back(static_cast<uint64_t>(value));
        continue;
      }
      auto extents = facts.getAs<mlir::ArrayAttr>("extents");
      auto extent = [&](unsigned dim) {
        return size::evaluate(llvm::cast<ir::SizeAttr>(extents[dim]).getExpr(), launch.argument);
      };
      Matrix& made = temporaries.emplace(number, makeMatrix(extent(0), extent(1), of, false)).first->second;
      std::ranges::fill(made.memory, char(0xff));  // NaN
      launch.slots.push_back(reinterpret_cast<uint64_t>(made.data()));
      for (int64_t value : {made.rows, made.columns, made.pitch, int64_t{1}})
        launch.slots.push_back(static_cast<uint64_t>(value));
      launch.memory.push_back({made.data(), made.size()});
    }
    const auto start = [&](ir::KernelOp phase, vxt::KernelOp code) {
      launch.grid[0] = size::evaluate(llvm::cast<ir::SizeAttr>((*phase.getGrid())[0]).getExpr(), launch.argument);
      return gpu::testing::run(code, launch);
    };
    for (auto each = ir::phaseOf(ir::findLaunch(*lowered_.vx), phase_)->getParentOfType<ir::CaseOp>(); each;
         each = each->getParentOfType<ir::CaseOp>())
      if (each.getNeeds() && size::evaluate(each.getNeeds()->getExpr(), launch.argument) == 0)
        return "the launch lacks what case '" + each.getName().str() + "' needs";
    for (auto [phase, turns] : turns_)
      if (std::string failed = start(phase, turns); !failed.empty())
        return failed;
    if (std::string failed = start(phase_, code); !failed.empty())
      return failed;
    return compare(x, w, a, b, y, before);
  }

private:
  /// `before`: what operands have been multiplied by.
  std::string compare(Matrix& x, Matrix& w, Matrix& a, Matrix& b, Matrix& y, double before) const {
    // Lines along the depth, one after another.
    const auto decoded = [&](Matrix& matrix, int64_t lines, bool isTransposed) {
      std::vector<double> values;
      for (int64_t line = 0; line < lines; ++line)
        for (int64_t k = 0; k < test_.k; ++k) {
          const double value = matrix.numbers.decode(isTransposed ? matrix.get(k, line) : matrix.get(line, k)) / before;
          values.push_back(matrix.numbers.format == Format::F32 ? std::round(value) : value);
        }
      return values;
    };
    const std::vector<double> rows = decoded(x, test_.m, test_.transposesX),
                              columns = decoded(w, test_.n, !test_.transposesW);
    const uint64_t poison = 0x5555555555555555 >> (64 - 8 * y.numbers.bytes);
    for (int64_t row = 0; row < test_.m; ++row)
      for (int64_t column = 0; column < y.pitch; ++column) {
        const uint64_t got = y.get(row, column);
        if (column >= test_.n && got != poison)
          return "written beyond the result";
        if (column >= test_.n)
          continue;
        const double* line = rows.data() + row * test_.k;
        double sum = std::inner_product(line, line + test_.k, columns.data() + column * test_.k, 0.0);
        if (test_.isScaled)
          sum *= a.numbers.decode(a.get(0, row)) * b.numbers.decode(b.get(0, column));
        if (got != y.numbers.encode(sum))
          return "element " + std::to_string(row) + ", " + std::to_string(column) + " is " +
                 std::to_string(y.numbers.decode(got)) + " instead of " + std::to_string(sum);
      }
    return {};
  }

  Case test_;
  mlir::MLIRContext context_{mlir::MLIRContext::Threading::DISABLED};
  tiles::testing::Lowered lowered_;
  ir::KernelOp phase_;
  vxt::KernelOp code_;
  std::vector<std::pair<ir::KernelOp, vxt::KernelOp>> turns_;  ///< phases before it
};

std::vector<Case> cases() {
  std::vector<Case> all;
  int number = 0;
  for (const Configuration& configuration : configurations(*chip::findGpu("sm_90"))) {
    if (configuration.stepCycles == 0)
      continue;
    const int64_t rows = configuration.rows, columns = configuration.columns;
    // Several tiles per block with ragged edges, and a ring that goes round.
    for (auto [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{rows + 9, columns + 24, 64},
                           {rows, 40, 64 * (configuration.stages + 1) + 8}}) {
      const int form = number++ % 4;
      const char* type = number % 3 == 1 ? "f16" : "bf16";
      all.push_back({type, type, form >= 2, form % 2 == 1, configuration, m, n, k});
    }
  }
  return all;
}

/// Tile code: every size that blocks may have, all ways in which operands lie, edges and depths that are no multiples of a step.
std::vector<Case> casesOfTileCode() {
  std::vector<Case> all;
  int number = 0;
  for (const Configuration& configuration : configurations(*chip::findGpu("sm_90"))) {
    if (!configuration.isForTileCode())
      continue;
    const int64_t rows = configuration.rows, columns = configuration.columns;
    for (auto [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{rows + 9, columns + 24, 72},
                           {rows - 8, 40, 64 * (configuration.stages + 1) + 8},
                           {2 * rows + 1, 2 * columns + 8, 24}}) {
      const int form = number++ % 4;
      const char* type = number % 3 == 1 ? "f16" : "bf16";
      all.push_back({.type = type,
                     .result = number % 2 ? "f32" : type,
                     .transposesX = form >= 2,
                     .transposesW = form % 2 == 1,
                     .configuration = configuration,
                     .m = m,
                     .n = n,
                     .k = k,
                     .isScaled = number % 5 < 2,
                     .isTileCode = true});
    }
    for (const auto& [type, result] : std::initializer_list<std::pair<const char*, const char*>>{
             {"i8", "i32"}, {"u8", "u32"}, {"f8e4m3", "f32"}, {"f8e5m2", "f32"}, {"tf32", "f32"}}) {
      if (type[0] == 'f' && configuration.partCycles == 0)
        continue;
      const int64_t line = std::string(type) == "tf32" ? 4 : 16;
      all.push_back({.type = type,
                     .result = result,
                     .transposesX = false,
                     .transposesW = true,
                     .configuration = configuration,
                     .m = rows + 9,
                     .n = columns + line,
                     .k = 9 * line,
                     .isTileCode = true});
    }
  }
  return all;
}

/// Types whose operands lie along the depth.
std::vector<Case> casesAlongTheDepth() {
  struct Types {
    const char *type, *result;
    bool isScaled = false;
  };
  const Types types[] = {{"i8", "i32"},           {"u8", "u32"},   {"i8", "i8"},         {"f8e4m3", "f32"},
                         {"f8e5m2", "bf16"},      {"tf32", "f32"}, {"f8e4m3", "f8e4m3"}, {"f8e4m3", "bf16", true},
                         {"f8e5m2", "f32", true}, {"u8", "i32"}};
  std::vector<Case> all;
  size_t number = 0;
  for (const Configuration& configuration : configurations(*chip::findGpu("sm_90")))
    for (const Types& each : types) {
      const bool isTf32 = std::string(each.type) == "tf32", isFloat = each.type[0] == 'f';
      if (isFloat && configuration.partCycles == 0)
        continue;
      if ((!isFloat || isTf32) && configuration.stepCycles == 0)
        continue;
      const int64_t step = isTf32 ? 32 : 128, line = isTf32 ? 4 : 16, rows = configuration.rows;
      if (number++ % 2)
        all.push_back({each.type, each.result, false, true, configuration, rows + 9, configuration.columns + line, step,
                       each.isScaled});
      else
        all.push_back({each.type, each.result, false, true, configuration, rows, 48,
                       step * (configuration.stages + 1) + line, each.isScaled});
    }
  // Others are turned before.
  const Configuration square = *parseConfiguration("wgmma 128x128 stages 6");
  for (const char* type : {"i8", "u8", "f8e4m3", "tf32"})
    for (int form = 0; form < 3; ++form) {
      const int64_t line = std::string(type) == "tf32" ? 4 : 16;
      const char* result = type[0] == 'i' ? "i32" : type[0] == 'u' ? "u32" : "f32";
      all.push_back({type, result, form > 0, form == 2, square, 137, 128 + line, 9 * line});
    }
  return all;
}

class Products : public ::testing::TestWithParam<Case> {};

TEST_P(Products, AreRightWheneverWhatIsAsynchronousHappens) {
  Product product(GetParam());
  ASSERT_EQ(product.error, "");
  for (Timing timing : {Timing::Late, Timing::Early, Timing::Random}) {
    if (base::kIsSanitized && timing != Timing::Random)
      continue;
    const unsigned seed = base::freshSeed();
    EXPECT_EQ(product.run(product.code(), seed, timing), "") << "seed " << seed;
  }
}

std::string nameOf(const ::testing::TestParamInfo<Case>& info) {
  const Case& test = info.param;
  return std::string(test.type) + "_" + test.result + "_" + std::to_string(test.configuration.rows) + "x" +
         std::to_string(test.configuration.columns) + "_" + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(Hopper, Products, ::testing::ValuesIn(cases()), nameOf);
INSTANTIATE_TEST_SUITE_P(OfTileCode, Products, ::testing::ValuesIn(casesOfTileCode()), nameOf);
INSTANTIATE_TEST_SUITE_P(AlongTheDepth, Products, ::testing::ValuesIn(casesAlongTheDepth()), nameOf);

/// Each one alone, in code with a ring that goes round and several tiles per block; where one thing can go wrong only, the report says what.
class Mutants : public ::testing::TestWithParam<const char*> {};

TEST_P(Mutants, CodeWithoutOneWaitArrivalOrFenceFails) {
  const int64_t step = 128 / numbersOf(GetParam()).bytes;
  const Case test{GetParam(), GetParam(), false,    true, *parseConfiguration("wgmma 64x128 stages 8"),
                  3 * 64 + 8, 128,        step * 10};
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
  for (size_t number = 0; number < count; number += base::kIsSanitized ? count / 4 : 1) {
    std::string left;
    const std::string failure = runWithout(product, number, left);
    EXPECT_NE(failure, "") << "passes without number " << number << ": " << left;
    for (const auto& [name, report] : reports)
      if (left.starts_with(name)) {
        // Sums of a step may be read before its slot is filled again.
        const bool isRead =
            step == 128 && left == "vxnv.wgmma_commit" && failure.find("that nobody waited for") != std::string::npos;
        EXPECT_TRUE(isRead || failure.find(report) != std::string::npos) << left << "\n" << failure;
      }
  }
}

/// 8-bit floats wait for each step.
INSTANTIATE_TEST_SUITE_P(Hopper, Mutants, ::testing::Values("bf16", "f8e4m3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace vortex::target::gpu::hopper
