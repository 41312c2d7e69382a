// Online softmax between two products, from loops in the form of passes/stream_reductions.h, expanded and run on the machine of target/gpu/testing
// against softmax as it is defined; then with one wait, arrival, fence or turn left out, which must not pass.
#include "base/fresh_seed.h"
#include "base/sanitized.h"
#include "interpreter/number.h"
#include "ir/size_attr.h"
#include "ir/vxnv.h"
#include "size/evaluate.h"
#include "target/gpu/hopper/configuration.h"
#include "target/gpu/hopper/expand_roles.h"
#include "target/gpu/hopper/mutants.h"
#include "target/gpu/hopper/product.h"
#include "target/gpu/testing/machine.h"
#include "target/gpu/tiles/testing/lower.h"

#include <cmath>
#include <gtest/gtest.h>
#include <mlir/IR/Verifier.h>

namespace vortex::target::gpu::hopper {
namespace {

namespace vxnv = ir::vxnv;
namespace vxt = ir::vxt;
using gpu::testing::Launch;
using gpu::testing::Timing;
using interpreter::Format;

/// Bounded: the loop ends where the mask leaves nothing, and chunks that it leaves whole are apart (passes/stream_bounds.h). Window: so it begins, too.
enum class Mask { None, Causal, Bounded, Window };

struct AttentionCase {
  const char* name;
  size_t configuration;
  Mask mask;
  bool hasBias, isF16;
  int64_t heads, queries, keys, depth, width;  ///< depth of the first product, columns of the second
};

/// Rank-3 tensors: heads, rows, 16-bit elements that lie one after another.
struct Tensor {
  int64_t heads, rows, columns;
  std::vector<uint16_t> memory;

  Tensor(int64_t heads, int64_t rows, int64_t columns) : heads(heads), rows(rows), columns(columns) {
    memory.assign(static_cast<size_t>(heads * rows * pitch() + 256), 0x5555);
  }
  int64_t pitch() const { return (columns + 7) / 8 * 8; }
  uint16_t* data() {
    return reinterpret_cast<uint16_t*>((reinterpret_cast<uintptr_t>(memory.data()) + 255) / 256 * 256);
  }
  uint16_t& at(int64_t head, int64_t row, int64_t column) { return data()[(head * rows + row) * pitch() + column]; }
  std::vector<double> decoded(Format format) {
    std::vector<double> values(static_cast<size_t>(heads * rows * pitch()));
    std::transform(data(), data() + values.size(), values.begin(),
                   [&](uint16_t bits) { return interpreter::decode(format, bits); });
    return values;
  }
  void fill(std::mt19937_64& random, Format format) {
    std::normal_distribution<double> normal;
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column)
          at(head, row, column) = static_cast<uint16_t>(interpreter::encode(format, normal(random)));
  }
};

constexpr double kScale = 0.25;
constexpr int64_t kWindow = 150;

bool isKept(Mask mask, int64_t row, int64_t key) {
  return mask == Mask::None || (key <= row && (mask != Mask::Window || key > row - kWindow));
}

/// The loop over [begin, end).
std::string loopText(const AttentionCase& test, const std::string& begin, const std::string& end) {
  const std::string type = test.isF16 ? "f16" : "bf16", t = "tensor<?x?x?x" + type + ">", f = "tensor<?x?x?xf32>",
                    row = "tensor<?x?xf32>";
  std::string text = "  %r:3 = scf.for %t0 = " + begin + " to " + end +
                     " step %step iter_args(%m = %m0, %l = %l0, %acc = %acc0) -> (" + row + ", " + row + ", " + f +
                     ") {\n";
  text += R"mlir(
    %rest = arith.subi %t, %t0 : index
    %n = arith.minui %rest, %step : index
    %kt = vx.tile_load %k[%head, %t0, %c0] sizes(%c1, %n, %d) inbounds : !vx.view<?x?x?xTYPE, global> -> tensor<?x?x?xTYPE>
    %kx = vx.transpose %kt [0, 2, 1] : tensor<?x?x?xTYPE> -> tensor<?x?x?xTYPE>
    %none = vx.broadcast %zero dims [] sizes(%c1, %rows, %n) : f32 -> tensor<?x?x?xf32>
    %raw = vx.dot %qt, %kx, %none {vx.plan = "PLAN"} : tensor<?x?x?xTYPE>, tensor<?x?x?xTYPE> -> tensor<?x?x?xf32>
    %factor = vx.broadcast %scale dims [] sizes(%c1, %rows, %n) : f32 -> tensor<?x?x?xf32>
    %scaled = arith.mulf %raw, %factor : tensor<?x?x?xf32>
)mlir";
  std::string scores = "%scaled";
  if (test.hasBias) {
    text += R"mlir(
    %bt = vx.tile_load %bias[%head, %row0, %t0] sizes(%c1, %rows, %n) inbounds : !vx.view<?x?x?xTYPE, global> -> tensor<?x?x?xTYPE>
    %wide = arith.extf %bt : tensor<?x?x?xTYPE> to tensor<?x?x?xf32>
    %biased = arith.addf %scaled, %wide : tensor<?x?x?xf32>
)mlir";
    scores = "%biased";
  }
  if (test.mask != Mask::None) {
    text += R"mlir(
    %inner = vx.iota 2 sizes(%c1, %rows, %n) -> tensor<?x?x?xindex>
    %start = vx.broadcast %t0 dims [] sizes(%c1, %rows, %n) : index -> tensor<?x?x?xindex>
    %columns = arith.addi %inner, %start : tensor<?x?x?xindex>
    %outer = vx.iota 1 sizes(%c1, %rows, %n) -> tensor<?x?x?xindex>
    %top = vx.broadcast %row0 dims [] sizes(%c1, %rows, %n) : index -> tensor<?x?x?xindex>
    %lines = arith.addi %outer, %top : tensor<?x?x?xindex>
    %later = arith.cmpi ugt, %columns, %lines : tensor<?x?x?xindex>
    %span = vx.broadcast %window dims [] sizes(%c1, %rows, %n) : index -> tensor<?x?x?xindex>
    %seen = arith.addi %columns, %span : tensor<?x?x?xindex>
    %past = arith.cmpi ule, %seen, %lines : tensor<?x?x?xindex>
    %gone = arith.ori %later, %past : tensor<?x?x?xi1>
    %never = vx.broadcast %inf dims [] sizes(%c1, %rows, %n) : f32 -> tensor<?x?x?xf32>
    %masked = arith.select MASK, %never, SCORES : tensor<?x?x?xi1>, tensor<?x?x?xf32>
)mlir";
    text.replace(text.find("SCORES"), 6, scores);
    text.replace(text.find("MASK"), 4, test.mask == Mask::Window ? "%gone" : "%later");
    if (test.mask != Mask::Causal) {
      text += "    %last = arith.addi %t0, %step : index\n    %left = arith.cmpi sge, %t0, %wholeBegin : index\n"
              "    %right = arith.cmpi sle, %last, %wholeEnd : index\n    %whole = arith.andi %left, %right : i1\n"
              "    %either = arith.select %whole, " +
              scores + ", %masked : " + f + "\n";
    }
    scores = test.mask == Mask::Causal ? "%masked" : "%either";
  }
  std::string rest = R"mlir(
    %most = vx.reduce maxf SCORES dims [2] : tensor<?x?x?xf32> -> tensor<?x?xf32>
    %h = arith.maximumf %m, %most : tensor<?x?xf32>
    %least = vx.broadcast %inf dims [] sizes(%c1, %rows) : f32 -> tensor<?x?xf32>
    %zeros = vx.broadcast %zero dims [] sizes(%c1, %rows) : f32 -> tensor<?x?xf32>
    %is = arith.cmpf oeq, %h, %least : tensor<?x?xf32>
    %z = arith.select %is, %zeros, %h : tensor<?x?xi1>, tensor<?x?xf32>
    %shrunk = arith.subf %m, %z : tensor<?x?xf32>
    %r = math.exp %shrunk : tensor<?x?xf32>
    %zs = vx.broadcast %z dims [0, 1] sizes(%c1, %rows, %n) : tensor<?x?xf32> -> tensor<?x?x?xf32>
    %less = arith.subf SCORES, %zs : tensor<?x?x?xf32>
    %x = math.exp %less : tensor<?x?x?xf32>
    %total = vx.reduce addf %x dims [2] : tensor<?x?x?xf32> -> tensor<?x?xf32>
    %old = arith.mulf %l, %r : tensor<?x?xf32>
    %sum = arith.addf %old, %total : tensor<?x?xf32>
    %weights = arith.truncf %x : tensor<?x?x?xf32> to tensor<?x?x?xTYPE>
    %vt = vx.tile_load %v[%head, %t0, %c0] sizes(%c1, %n, %e) inbounds : !vx.view<?x?x?xTYPE, global> -> tensor<?x?x?xTYPE>
    %rs = vx.broadcast %r dims [0, 1] sizes(%c1, %rows, %e) : tensor<?x?xf32> -> tensor<?x?x?xf32>
    %kept = arith.mulf %acc, %rs : tensor<?x?x?xf32>
    %next = vx.dot %weights, %vt, %kept {vx.plan = "PLAN"} : tensor<?x?x?xTYPE>, tensor<?x?x?xTYPE> -> tensor<?x?x?xf32>
    scf.yield %h, %sum, %next : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?x?xf32>
  }
)mlir";
  for (size_t at; (at = rest.find("SCORES")) != std::string::npos;)
    rest.replace(at, 6, scores);
  return text + rest;
}

std::string moduleText(const AttentionCase& test) {
  const StreamConfiguration plan = streamConfigurations(*chip::findGpu("sm_90"))[test.configuration];
  std::string rows = std::to_string(plan.rows());
  std::string text = R"mlir(
vx.entry @attention : (VIEW, VIEW, VIEW, VIEW, VIEW) -> ()
    args [{name = "q", role = #vx.role<param>, access = #vx.access<read>}, {name = "k", role = #vx.role<param>, access = #vx.access<read>},
          {name = "v", role = #vx.role<param>, access = #vx.access<read>}, {name = "bias", role = #vx.role<param>, access = #vx.access<read>},
          {name = "", role = #vx.role<result>, access = #vx.access<write>, extents = [#vx.size<"dim(0,0)">, #vx.size<"dim(0,1)">, #vx.size<"dim(2,2)">]}]
vx.kernel @attention.tensors.0(%q: VIEW, %k: VIEW, %v: VIEW, %bias: VIEW, %out: VIEW)
    grid [#vx.size<"dim(0,0) * ceildiv(dim(0,1), ROWS)">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %step = arith.constant STEP : index
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.25 : f32
  %inf = arith.constant 0xFF800000 : f32
  %height = arith.constant ROWS : index
  %window = arith.constant WINDOW : index
  %s = vx.dim %q, 1 : VIEW
  %d = vx.dim %q, 2 : VIEW
  %t = vx.dim %k, 1 : VIEW
  %e = vx.dim %v, 2 : VIEW
  %id = vx.block_id x
  %tiles = vx.int ceildivu %s, %height : index
  %number = vx.int remu %id, %tiles : index
  %head = vx.int divu %id, %tiles : index
  %row0 = arith.muli %number, %height : index
  %below = arith.subi %s, %row0 : index
  %rows = arith.minui %below, %height : index
  %qt = vx.tile_load %q[%head, %row0, %c0] sizes(%c1, %rows, %d) inbounds : VIEW -> tensor<?x?x?xTYPE>
  %m0 = vx.broadcast %inf dims [] sizes(%c1, %rows) : f32 -> tensor<?x?xf32>
  %l0 = vx.broadcast %zero dims [] sizes(%c1, %rows) : f32 -> tensor<?x?xf32>
  %acc0 = vx.broadcast %zero dims [] sizes(%c1, %rows, %e) : f32 -> tensor<?x?x?xf32>
)mlir";
  text += "  %deep = arith.addi %row0, %rows : index\n  %end = arith.minui %deep, %t : index\n"
          "  %wholeEnd = arith.addi %row0, %c1 : index\n  %away = arith.subi %deep, %window : index\n"
          "  %wholeBegin = arith.maxsi %away, %c0 : index\n  %far = arith.subi %wholeEnd, %window : index\n"
          "  %near = arith.maxsi %far, %c0 : index\n  %odd = vx.int remu %near, %step : index\n"
          "  %begin = arith.subi %near, %odd : index\n";
  const bool isBounded = test.mask == Mask::Bounded || test.mask == Mask::Window;
  text += loopText(test, test.mask == Mask::Window ? "%begin" : "%c0", isBounded ? "%end" : "%t");
  text += R"mlir(
  %gone = arith.subf %r#0, %r#0 : tensor<?x?xf32>
  %whole = arith.addf %r#1, %gone : tensor<?x?xf32>
  %divisor = vx.broadcast %whole dims [0, 1] sizes(%c1, %rows, %e) : tensor<?x?xf32> -> tensor<?x?x?xf32>
  %quotient = arith.divf %r#2, %divisor : tensor<?x?x?xf32>
  %result = arith.truncf %quotient : tensor<?x?x?xf32> to tensor<?x?x?xTYPE>
  vx.tile_store %result, %out[%head, %row0, %c0] inbounds : tensor<?x?x?xTYPE>, VIEW
  vx.return
}
)mlir";
  const std::pair<std::string, std::string> words[] = {
      {"VIEW", "!vx.view<?x?x?xTYPE, global>"},
      {"TYPE", test.isF16 ? "f16" : "bf16"},
      {"ROWS", rows},
      {"STEP", std::to_string(plan.keys)},
      {"WINDOW", std::to_string(test.mask == Mask::Window ? kWindow : 1 << 20)},
      {"PLAN", plan.str()}};
  for (const auto& [word, meaning] : words)
    for (size_t at; (at = text.find(word)) != std::string::npos;)
      text.replace(at, word.size(), meaning);
  return text;
}

/// A case, compiled; runs as often as one likes.
class Attention {
public:
  explicit Attention(const AttentionCase& test) : test_(test) {
    lowered_ = tiles::testing::lower(context_, moduleText(test), {.unitStrides = true, .alignedRows = true}, nullptr,
                                     makeTileLowering);
    error = lowered_.error;
    if (!error.empty())
      return;
    if (std::getenv("VORTEX_DUMP"))
      lowered_.vxt->dump();
    expandRoles(*lowered_.vxt);
    if (mlir::failed(mlir::verify(*lowered_.vxt)))
      error = "instructions do not verify";
  }

  std::string error;
  vxt::KernelOp code() { return *lowered_.vxt->getOps<vxt::KernelOp>().begin(); }

  /// Empty when the results are right.
  std::string run(vxt::KernelOp code, unsigned seed, Timing timing) {
    std::mt19937_64 random(seed);
    const Format format = test_.isF16 ? Format::F16 : Format::BF16;
    Tensor q(test_.heads, test_.queries, test_.depth), k(test_.heads, test_.keys, test_.depth),
        v(test_.heads, test_.keys, test_.width), bias(test_.heads, test_.queries, test_.keys),
        out(test_.heads, test_.queries, test_.width);
    Tensor* arguments[] = {&q, &k, &v, &bias, &out};
    Launch launch;
    launch.seed = seed;
    launch.timing = timing;
    for (Tensor* tensor : arguments) {
      if (tensor != &out)
        tensor->fill(random, format);
      const auto extent = [](int64_t value) { return static_cast<uint64_t>(value); };
      launch.slots.insert(launch.slots.end(), {reinterpret_cast<uint64_t>(tensor->data()), extent(tensor->heads),
                                               extent(tensor->rows), extent(tensor->columns),
                                               extent(tensor->rows * tensor->pitch()), extent(tensor->pitch()), 1});
      launch.memory.push_back({reinterpret_cast<const char*>(tensor->data()),
                               static_cast<size_t>(tensor->heads * tensor->rows * tensor->pitch()) * 2});
    }
    launch.argument = [&](const size::Node& node) -> int64_t {
      Tensor& tensor = *arguments[node.argument];
      const int64_t extents[] = {tensor.heads, tensor.rows, tensor.columns},
                    strides[] = {tensor.rows * tensor.pitch(), tensor.pitch(), 1};
      switch (node.op) {
      case size::Op::Dim: return extents[node.dim];
      case size::Op::Stride: return strides[node.dim];
      default: return reinterpret_cast<int64_t>(tensor.data());
      }
    };
    auto phase = *lowered_.vx->getOps<ir::KernelOp>().begin();
    launch.grid[0] = size::evaluate(llvm::cast<ir::SizeAttr>((*phase.getGrid())[0]).getExpr(), launch.argument);
    if (std::string failed = gpu::testing::run(code, launch); !failed.empty())
      return failed;
    const Operand operands[] = {{q, format}, {k, format}, {v, format}, {bias, format}};
    for (int64_t head = 0; head < test_.heads; ++head)
      for (int64_t row = 0; row < test_.queries; ++row)
        if (std::string failed = compareRow(operands, out, head, row, format); !failed.empty())
          return failed;
    return {};
  }

private:
  /// A tensor's elements as numbers.
  struct Operand {
    Operand(Tensor& tensor, Format format) : rows(tensor.rows), pitch(tensor.pitch()), values(tensor.decoded(format)) {}
    int64_t rows, pitch;
    std::vector<double> values;
    double at(int64_t head, int64_t row, int64_t column) const {
      return values[static_cast<size_t>((head * rows + row) * pitch + column)];
    }
  };

  std::string compareRow(llvm::ArrayRef<Operand> operands, Tensor& out, int64_t head, int64_t row,
                         Format format) const {
    const Operand &q = operands[0], &k = operands[1], &v = operands[2], &bias = operands[3];
    const auto value = [&](const Operand& operand, int64_t i, int64_t j) { return operand.at(head, i, j); };
    std::vector<double> weights;
    double most = -HUGE_VAL, total = 0;
    for (int64_t key = 0; key < test_.keys; ++key) {
      double score = 0;
      for (int64_t i = 0; i < test_.depth; ++i)
        score += value(q, row, i) * value(k, key, i);
      score = score * kScale + (test_.hasBias ? value(bias, row, key) : 0);
      weights.push_back(isKept(test_.mask, row, key) ? score : -HUGE_VAL);
      most = std::max(most, weights.back());
    }
    for (double& weight : weights)
      total += weight = std::exp(weight - most);
    for (int64_t column = 0; column < out.pitch(); ++column) {
      const uint16_t got = out.at(head, row, column);
      if (column >= test_.width) {
        if (got != 0x5555)
          return "written beyond the result";
        continue;
      }
      double sum = 0, size = 0;
      for (int64_t key = 0; key < test_.keys; ++key) {
        sum += weights[static_cast<size_t>(key)] * value(v, key, column);
        size += weights[static_cast<size_t>(key)] * std::abs(value(v, key, column));
      }
      // Weights and the result are rounded to 8 or 11 bits.
      const double result = interpreter::decode(format, got), bound = size / total * (test_.isF16 ? 0x1p-9 : 0x1p-7);
      if (!(std::abs(result - sum / total) <= bound))
        return "element " + std::to_string(row) + ", " + std::to_string(column) + " is " + std::to_string(result) +
               " instead of " + std::to_string(sum / total);
    }
    return {};
  }

  AttentionCase test_;
  mlir::MLIRContext context_{mlir::MLIRContext::Threading::DISABLED};
  tiles::testing::Lowered lowered_;
};

constexpr AttentionCase kCases[] = {
    {"plain", 2, Mask::None, false, false, 1, 128, 512, 128, 128},
    {"ragged", 2, Mask::None, false, true, 2, 150, 330, 72, 104},
    {"narrow", 1, Mask::None, false, false, 1, 200, 290, 64, 64},
    {"wide", 3, Mask::None, false, false, 1, 90, 200, 256, 200},
    {"causal", 2, Mask::Causal, false, false, 1, 140, 140, 64, 128},
    {"one_chunk", 2, Mask::None, false, false, 1, 3, 5, 16, 16},
    {"bias", 2, Mask::None, true, false, 1, 130, 264, 128, 64},
    {"bounded", 2, Mask::Bounded, false, false, 1, 400, 300, 128, 128},
    {"bounded_narrow_with_bias", 1, Mask::Bounded, true, true, 1, 300, 300, 40, 48},
    {"window", 2, Mask::Window, false, false, 1, 500, 420, 128, 64},
    {"window_wide", 3, Mask::Window, false, true, 1, 300, 300, 200, 256},
    {"narrow_of_three", 0, Mask::None, false, false, 1, 200, 290, 64, 64},
    {"causal_of_three", 0, Mask::Causal, false, true, 1, 400, 400, 64, 40},
    {"bounded_of_three", 0, Mask::Bounded, true, false, 2, 390, 300, 48, 64},
};

class Attentions : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(Attentions, AreRightWheneverWhatIsAsynchronousHappens) {
  Attention attention(GetParam());
  ASSERT_EQ(attention.error, "");
  for (Timing timing : {Timing::Late, Timing::Early, Timing::Random}) {
    if (base::kIsSanitized && timing != Timing::Random)
      continue;
    const unsigned seed = base::freshSeed();
    EXPECT_EQ(attention.run(attention.code(), seed, timing), "") << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Hopper, Attentions, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

/// Chunks enough for rings to go round, consumers in turn. Of the waits for staged results each has nothing to wait for here but the last.
TEST(AttentionMutants, CodeWithoutOneWaitArrivalOrFenceFails) {
  Attention attention({"mutants", 1, Mask::None, false, false, 1, 128, 128 * 5, 64, 64});
  ASSERT_EQ(attention.error, "");
  ASSERT_EQ(attention.run(attention.code(), 1, Timing::Late), "");
  const size_t count = countOrdering(attention.code());
  EXPECT_GT(count, 30u);
  for (size_t number = 0; number < count; number += base::kIsSanitized ? count / 4 : 1) {
    std::string left;
    const std::string failure = runWithout(attention, number, left);
    const bool isStaging = left.starts_with("vxnv.bulk_wait") && left.find("written") == std::string::npos;
    EXPECT_TRUE(isStaging || !failure.empty()) << "passes without number " << number << ": " << left;
  }
}

}  // namespace
}  // namespace vortex::target::gpu::hopper
