// Programs of softmax between two products, from source to what runs on the machine of target/gpu/testing, against float64: orders and groups of
// dimensions, values per row beside the results, and masks that bound the loop.
#include "interpreter/number.h"
#include "ir/launch.h"
#include "ir/size_attr.h"
#include "ir/vxnv.h"
#include "irgen/test_kernel.h"
#include "size/evaluate.h"
#include "target/gpu/hopper/attention.h"
#include "target/gpu/hopper/expand_roles.h"
#include "target/gpu/hopper/mutants.h"
#include "target/gpu/hopper/product.h"
#include "target/gpu/hopper/schedule.h"
#include "target/gpu/testing/machine.h"
#include "target/gpu/tiles/testing/lower.h"

#include <bit>
#include <cmath>
#include <map>

namespace vortex::target::gpu::hopper {
namespace {

namespace vxt = ir::vxt;
using gpu::testing::Launch;
using gpu::testing::Timing;
using interpreter::Format;

/// Extents by letter: batches, heads, groups of them, heads of a group, queries, keys, depth, columns of the results.
using Sizes = std::map<char, int64_t>;

/// A tensor of the program, with a letter per dimension; elements of a last dimension of 16 bits start at multiples of 16 bytes.
class FormTensor {
public:
  FormTensor(const std::string& dims, const Sizes& sizes, int64_t bytes) : dims_(dims), bytes_(bytes) {
    for (char dim : dims)
      extents.push_back(sizes.at(dim));
    strides.assign(dims.size(), 1);
    const int64_t unit = bytes == 2 ? 8 : 1;
    int64_t size = extents.empty() ? 1 : (extents.back() + unit - 1) / unit * unit;
    for (size_t dim = dims.size(); dim-- > 1;) {
      strides[dim - 1] = size;
      size *= extents[dim - 1];
    }
    size_ = size;
    memory_.assign(static_cast<size_t>(size * bytes) + 256, 0x55);
  }

  char* data() { return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(memory_.data()) + 255) / 256 * 256); }
  size_t sizeInBytes() const { return static_cast<size_t>(size_ * bytes_); }
  size_t elements() const { return static_cast<size_t>(size_); }
  /// Of the element at these numbers of letters.
  size_t offset(const Sizes& at) const {
    int64_t offset = 0;
    for (size_t dim = 0; dim < dims_.size(); ++dim)
      offset += at.at(dims_[dim]) * strides[dim];
    return static_cast<size_t>(offset);
  }
  double value(const Sizes& at, Format format) {
    uint64_t bits = 0;
    std::memcpy(&bits, data() + offset(at) * static_cast<size_t>(bytes_), static_cast<size_t>(bytes_));
    return bytes_ == 4 ? double(std::bit_cast<float>(uint32_t(bits))) : interpreter::decode(format, bits);
  }
  int32_t integer(const Sizes& at) {
    int32_t result = 0;
    std::memcpy(&result, data() + offset(at) * 4, 4);
    return result;
  }
  void set(size_t element, uint64_t bits) {
    std::memcpy(data() + element * static_cast<size_t>(bytes_), &bits, static_cast<size_t>(bytes_));
  }
  bool isUntouched(size_t element) {
    const char* at = data() + element * static_cast<size_t>(bytes_);
    return std::all_of(at, at + bytes_, [](char byte) { return byte == 0x55; });
  }

  std::vector<int64_t> extents, strides;

private:
  std::string dims_;
  int64_t bytes_, size_ = 0;
  std::vector<char> memory_;
};

struct Argument {
  std::string name, dims;  ///< "": a scalar
  enum class Kind { Narrow, F32, Count, Scalar } kind = Kind::Narrow;
};

struct Program {
  const char* name;
  std::string source;  ///< TYPE: of 16-bit floats
  std::vector<Argument> arguments;
  /// What is added to the scaled score: -inf where it is masked. Arguments by name, numbers of letters, extents.
  std::function<double(std::map<std::string, FormTensor>&, const Sizes& at, const Sizes& all, Format)> added;
  int64_t scalar = 0;
};

using Kind = Argument::Kind;
constexpr double kFormScale = 0.25;
double nothing(std::map<std::string, FormTensor>&, const Sizes&, const Sizes&, Format) { return 0; }
double keptIf(bool isKept) { return isKept ? 0 : -HUGE_VAL; }

std::vector<Program> programs() {
  const Argument q{"q", "bhsd"}, k{"k", "bhtd"}, v{"v", "bhte"}, out{"out", "bhse"}, lse{"lse", "bhs", Kind::F32};
  const Argument keys{"k", "bgtd"}, values{"v", "bgte"};
  const std::string plain = "kernel attention(q: &Tensor<TYPE, [B, H, S, D]>, k: &Tensor<TYPE, [B, H, T, D]>, "
                            "v: &Tensor<TYPE, [B, H, T, E]>",
                    scores = ") -> Tensor<TYPE, [B, H, S, E]> {\n    let scores = (q @ k.transpose()) as f32 * 0.25\n",
                    result = "    return softmax(scores) as TYPE @ v\n}\n";
  const std::string grouped = "kernel attention(q: &Tensor<TYPE, [B, G * R, S, D]>, k: &Tensor<TYPE, [B, G, T, D]>, "
                              "v: &Tensor<TYPE, [B, G, T, E]>";
  const std::string groupedScores = "    let scores = (q.reshape([B, G, R, S, D]) @ k.reshape([B, G, 1, T, D])"
                                    ".transpose()) as f32 * 0.25\n";
  const std::string groupedResult = "    return (softmax(scores) as TYPE @ v.reshape([B, G, 1, T, E]))"
                                    ".reshape([B, G * R, S, E])\n}\n";
  const std::string sums = "    let m = max(scores, dim = -1)\n    let x = exp(scores - m.reshape([B, H, S, 1]))\n"
                           "    let l = sum(x, dim = -1)\n    let p = (x / l.reshape([B, H, S, 1])) as TYPE\n";
  return {
      {"grouped_by_reshape",
       grouped + ") -> Tensor<TYPE, [B, G * R, S, E]> {\n" + groupedScores + groupedResult,
       {q, keys, values, out},
       nothing},
      {"grouped_with_slopes",
       grouped + ", slopes: &Tensor<f32, [G * R]>) -> Tensor<TYPE, [B, G * R, S, E]> {\n" + groupedScores +
           "    scores = scores + slopes.reshape([G, R, 1, 1]) * (arange(T) as f32)\n" + groupedResult,
       {q, keys, values, {"slopes", "h", Kind::F32}, out},
       [](auto& of, const Sizes& at, const Sizes&, Format format) {
         return of.at("slopes").value(at, format) * double(at.at('t'));
       }},
      {"keys_repeated",
       grouped + ") -> Tensor<TYPE, [B, G * R, S, E]> {\n"
                 "    let keys = k.reshape([B, G, 1, T, D]).broadcast([B, G, R, T, D]).reshape([B, G * R, T, D])\n"
                 "    let values = v.reshape([B, G, 1, T, E]).broadcast([B, G, R, T, E]).reshape([B, G * R, T, E])\n"
                 "    return softmax((q @ keys.transpose()) as f32 * 0.25) as TYPE @ values\n}\n",
       {q, keys, values, out},
       nothing},
      {"grouped_result_of_five_dimensions",
       grouped + ") -> Tensor<TYPE, [B, G, R, S, E]> {\n" + groupedScores +
           "    return softmax(scores) as TYPE @ v.reshape([B, G, 1, T, E])\n}\n",
       {q, keys, values, {"out", "bgrse"}},
       nothing},
      {"result_split_into_groups",
       "kernel attention(q: &Tensor<TYPE, [B, G * R, S, D]>, k: &Tensor<TYPE, [B, G * R, T, D]>, "
       "v: &Tensor<TYPE, [B, G * R, T, E]>, like: &Tensor<f32, [G]>) -> Tensor<TYPE, [B, G, R, S, E]> {\n"
       "    return (softmax((q @ k.transpose()) as f32 * 0.25) as TYPE @ v).reshape([B, G, R, S, E])\n}\n",
       {q, k, v, {"like", "g", Kind::F32}, {"out", "bgrse"}},
       nothing},
      {"by_position",
       "kernel attention(q: &Tensor<TYPE, [B, S, H, D]>, k: &Tensor<TYPE, [B, T, H, D]>, v: &Tensor<TYPE, [B, T, H, "
       "E]>)"
       " -> Tensor<TYPE, [B, S, H, E]> {\n"
       "    let scores = (q.transpose([0, 2, 1, 3]) @ k.transpose([0, 2, 3, 1])) as f32 * 0.25\n"
       "    return (softmax(scores) as TYPE @ v.transpose([0, 2, 1, 3])).transpose([0, 2, 1, 3])\n}\n",
       {{"q", "bshd"}, {"k", "bthd"}, {"v", "bthe"}, {"out", "bshe"}},
       nothing},
      {"grouped_by_position_with_residual",
       "kernel attention(q: &Tensor<TYPE, [B, S, G * R, D]>, k: &Tensor<TYPE, [B, T, G, D]>, "
       "v: &Tensor<TYPE, [B, T, G, E]>, zeros: &Tensor<TYPE, [B, S, G * R, E]>) -> Tensor<TYPE, [B, S, G * R, E]> {\n"
       "    let queries = q.transpose([0, 2, 1, 3]).reshape([B, G, R, S, D])\n"
       "    let keys = k.transpose([0, 2, 1, 3]).reshape([B, G, 1, T, D])\n"
       "    let values = v.transpose([0, 2, 1, 3]).reshape([B, G, 1, T, E])\n"
       "    let heads = softmax((queries @ keys.transpose()) as f32 * 0.25) as TYPE @ values\n"
       "    return heads.reshape([B, G * R, S, E]).transpose([0, 2, 1, 3]) + zeros\n}\n",
       {{"q", "bshd"}, {"k", "btgd"}, {"v", "btge"}, {"zeros", "bshe"}, {"out", "bshe"}},
       nothing},
      {"sums_beside",
       plain +
           ") -> (Tensor<TYPE, [B, H, S, E]>, Tensor<f32, [B, H, S]>) {\n"
           "    let scores = (q @ k.transpose()) as f32 * 0.25\n" +
           sums + "    return (p @ v, m + log(l))\n}\n",
       {q, k, v, out, lse},
       nothing},
      {"sums_before_by_position_causal",
       "kernel attention(q: &Tensor<TYPE, [B, S, H, D]>, k: &Tensor<TYPE, [B, T, H, D]>, v: &Tensor<TYPE, [B, T, H, "
       "E]>)"
       " -> (Tensor<f32, [B, S, H, 1]>, Tensor<TYPE, [B, S, H, E]>) {\n"
       "    let scores = (q.transpose([0, 2, 1, 3]) @ k.transpose([0, 2, 3, 1])) as f32 * 0.25\n"
       "    scores = scores.mask_upper_triangle(-inf)\n" +
           sums +
           "    return ((m + log(l)).transpose([0, 2, 1]).reshape([B, S, H, 1]), "
           "(p @ v.transpose([0, 2, 1, 3])).transpose([0, 2, 1, 3]))\n}\n",
       {{"q", "bshd"}, {"k", "bthd"}, {"v", "bthe"}, {"lse", "bsh", Kind::F32}, {"out", "bshe"}},
       [](auto&, const Sizes& at, const Sizes&, Format) { return keptIf(at.at('t') <= at.at('s')); }},
      {"grouped_sums_beside",
       grouped + ") -> (Tensor<TYPE, [B, G * R, S, E]>, Tensor<f32, [B, G * R, S]>) {\n" + groupedScores +
           "    let m = max(scores, dim = -1)\n    let x = exp(scores - m.reshape([B, G, R, S, 1]))\n"
           "    let l = sum(x, dim = -1)\n"
           "    let heads = (x / l.reshape([B, G, R, S, 1])) as TYPE @ v.reshape([B, G, 1, T, E])\n"
           "    return (heads.reshape([B, G * R, S, E]), (m + log(l)).reshape([B, G * R, S]))\n}\n",
       {q, keys, values, out, lse},
       nothing},
      {"causal_from_the_end",
       plain + scores + "    scores = scores.mask_upper_triangle(-inf, offset = T as i64 - S as i64)\n" + result,
       {q, k, v, out},
       [](auto&, const Sizes& at, const Sizes& all, Format) {
         return keptIf(at.at('t') <= at.at('s') + all.at('t') - all.at('s'));
       }},
      {"causal_by_a_flag",
       plain + ", causal: bool" + scores +
           "    if causal { scores = scores.mask_upper_triangle(-inf, offset = T as i64 - S as i64) }\n" + result,
       {q, k, v, {"", "", Kind::Scalar}, out},
       [](auto&, const Sizes& at, const Sizes& all, Format) {
         return keptIf(at.at('t') <= at.at('s') + all.at('t') - all.at('s'));
       },
       1},
      {"window",
       plain + scores +
           "    let row = arange(S).reshape([S, 1])\n"
           "    scores = select(arange(T) <= row && arange(T) + 70 > row, scores, -inf)\n" +
           result,
       {q, k, v, out},
       [](auto&, const Sizes& at, const Sizes&, Format) {
         return keptIf(at.at('t') <= at.at('s') && at.at('t') + 70 > at.at('s'));
       }},
      {"lengths",
       plain + ", count: &Tensor<i32, [B]>" + scores +
           "    scores = select(arange(T) < count.reshape([B, 1, 1, 1]), scores, -inf)\n" + result,
       {q, k, v, {"count", "b", Kind::Count}, out},
       [](auto& of, const Sizes& at, const Sizes&, Format) { return keptIf(at.at('t') < of.at("count").integer(at)); }},
      {"grouped_lengths_and_causal",
       grouped + ", count: &Tensor<i32, [B]>) -> Tensor<TYPE, [B, G * R, S, E]> {\n" + groupedScores +
           "    scores = select(arange(T) < count.reshape([B, 1, 1, 1, 1]), scores.mask_upper_triangle(-inf), -inf)\n" +
           groupedResult,
       {q, keys, values, {"count", "b", Kind::Count}, out},
       [](auto& of, const Sizes& at, const Sizes&, Format) {
         return keptIf(at.at('t') < of.at("count").integer(at) && at.at('t') <= at.at('s'));
       }},
  };
}

/// A program, compiled for one kind of floats.
class Form {
public:
  Form(Program program, bool isF16) : program_(std::move(program)), format_(isF16 ? Format::F16 : Format::BF16) {
    std::string source = program_.source;
    for (size_t at; (at = source.find("TYPE")) != std::string::npos;)
      source.replace(at, 4, isF16 ? "f16" : "bf16");
    irgen::TestKernel kernel(source);
    if (!kernel.module) {
      error = "irgen: " + kernel.error;
      return;
    }
    std::string text;
    llvm::raw_string_ostream(text) << *kernel.module;
    const auto onGpu = [](passes::TensorSchedule& schedule) { addBulkTiles(schedule, *chip::findGpu("sm_90")); };
    lowered_ =
        tiles::testing::lower(context_, text, {.unitStrides = true, .alignedRows = true}, onGpu, makeTileLowering);
    error = lowered_.error;
    if (error.empty())
      expandRoles(*lowered_.vxt);
  }

  std::string error;
  /// Keys that hold NaN.
  std::pair<int64_t, int64_t> poisoned{0, 0};
  /// Of all `count` tensors; random if it is 0.
  int32_t count = 0;

  /// Of the launch with these extents: it must be one phase of roles.
  std::string choose(const Sizes& sizes) {
    sizes_ = sizes;
    tensors_.clear();
    for (const Argument& argument : program_.arguments)
      if (argument.kind != Kind::Scalar)
        tensors_.emplace(argument.name, FormTensor(argument.dims, sizes, argument.kind == Kind::Narrow ? 2 : 4));
    const auto isTaken = [&](ir::CaseOp each) {
      return ir::holds(each, [&](ir::SizeAttr size) { return valueOf(size.getExpr()); });
    };
    auto kernels = ir::takenKernels(*lowered_.vx, isTaken);
    code_ = {};
    for (auto [phase, code] : llvm::zip(lowered_.vx->getOps<ir::KernelOp>(), lowered_.vxt->getOps<vxt::KernelOp>()))
      if (kernels.size() == 1 && phase == kernels[0] && isAttention(phase))
        phase_ = phase, code_ = code;
    return code_ ? "" : std::to_string(kernels.size()) + " phases, not one of roles";
  }
  vxt::KernelOp code() { return code_; }

  /// Empty when the results are right.
  std::string run(vxt::KernelOp code, unsigned seed, Timing timing) {
    fill(seed);
    Launch launch;
    launch.seed = seed;
    launch.timing = timing;
    for (const Argument& argument : program_.arguments) {
      if (argument.kind == Kind::Scalar) {
        launch.slots.push_back(static_cast<uint64_t>(program_.scalar));
        continue;
      }
      FormTensor& tensor = tensors_.at(argument.name);
      launch.slots.push_back(reinterpret_cast<uint64_t>(tensor.data()));
      for (const auto* numbers : {&tensor.extents, &tensor.strides})
        launch.slots.insert(launch.slots.end(), numbers->begin(), numbers->end());
      if (argument.name == "lse" && program_.source.find("S, H, 1]") != std::string::npos) {  // a last dimension of 1
        launch.slots.insert(launch.slots.end() - 3, 1);
        launch.slots.push_back(1);
      }
      launch.memory.push_back({tensor.data(), tensor.sizeInBytes()});
    }
    auto entry = *lowered_.vx->getOps<ir::EntryOp>().begin();
    for (mlir::Type type :
         llvm::cast<mlir::FunctionType>(entry.getFunctionType()).getInputs().drop_front(program_.arguments.size())) {
      auto view = llvm::dyn_cast<ir::ViewType>(type);
      launch.slots.insert(launch.slots.end(), view ? static_cast<size_t>(1 + 2 * view.getRank()) : 1, view ? 0 : 132);
    }
    launch.argument = [&](const size::Node& node) { return argument(node); };
    launch.grid[0] = valueOf(llvm::cast<ir::SizeAttr>((*phase_.getGrid())[0]).getExpr());
    if (std::string failed = gpu::testing::run(code, launch); !failed.empty())
      return failed;
    return compare();
  }

private:
  int64_t valueOf(size::Expr expr) {
    return size::evaluate(expr, [&](const size::Node& node) { return argument(node); });
  }

  int64_t argument(const size::Node& node) {
    if (node.op == size::Op::Scalar)
      return node.argument < program_.arguments.size() ? program_.scalar : 132;
    FormTensor& tensor = tensors_.at(program_.arguments[node.argument].name);
    const bool isBehind = node.dim >= tensor.extents.size();  // a last dimension of 1
    switch (node.op) {
    case size::Op::Dim: return isBehind ? 1 : tensor.extents[node.dim];
    case size::Op::Stride: return isBehind ? 1 : tensor.strides[node.dim];
    default: return reinterpret_cast<int64_t>(tensor.data());
    }
  }

  void fill(unsigned seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    for (const Argument& argument : program_.arguments) {
      if (argument.kind == Kind::Scalar)
        continue;
      FormTensor& tensor = tensors_.at(argument.name);
      const bool isResult = argument.name == "out" || argument.name == "lse";
      std::fill(tensor.data(), tensor.data() + tensor.sizeInBytes(), 0x55);
      for (size_t i = 0; i < tensor.elements() && !isResult; ++i)
        switch (argument.kind) {
        case Kind::F32: tensor.set(i, std::bit_cast<uint32_t>(float(normal(random) * 0.05))); break;
        case Kind::Count:
          tensor.set(i, count ? static_cast<uint64_t>(count) : 1 + random() % static_cast<uint64_t>(sizes_.at('t')));
          break;
        default: tensor.set(i, argument.name == "zeros" ? 0 : interpreter::encode(format_, normal(random)));
        }
      if (argument.dims == "bhtd" || argument.dims == "bhte")
        for (int64_t row = 0; row < sizes_.at('b') * sizes_.at('h') * sizes_.at('t'); ++row)
          if (row % sizes_.at('t') >= poisoned.first && row % sizes_.at('t') < poisoned.second)
            for (int64_t i = 0; i < tensor.extents.back(); ++i)
              tensor.set(static_cast<size_t>(row * tensor.strides[2] + i), interpreter::encode(format_, NAN));
    }
  }

  std::string compare() {
    size_t checked = 0;
    Sizes at;
    const Sizes& all = sizes_;
    for (at['b'] = 0; at['b'] < all.at('b'); ++at['b'])
      for (at['h'] = 0; at['h'] < all.at('h'); ++at['h'])
        for (at['s'] = 0; at['s'] < all.at('s'); ++at['s']) {
          at['g'] = at['h'] / all.at('r');
          at['r'] = at['h'] % all.at('r');
          if (std::string failed = compareRow(at); !failed.empty())
            return failed;
          checked += static_cast<size_t>(all.at('e'));
        }
    FormTensor& out = tensors_.at("out");
    size_t written = 0;
    for (size_t i = 0; i < out.elements(); ++i)
      written += !out.isUntouched(i);
    return written <= checked ? "" : "written beyond the result";
  }

  std::string compareRow(Sizes at) {
    std::vector<double> weights;
    double most = -HUGE_VAL, total = 0;
    auto value = [&](const char* name) { return tensors_.at(name).value(at, format_); };
    for (at['t'] = 0; at['t'] < sizes_.at('t'); ++at['t']) {
      double score = 0;
      for (at['d'] = 0; at['d'] < sizes_.at('d'); ++at['d'])
        score += value("q") * value("k");
      const double more = program_.added(tensors_, at, sizes_, format_);
      weights.push_back(std::isinf(more) ? more : score * kFormScale + more);
      most = std::max(most, weights.back());
    }
    const std::string row =
        "row " + std::to_string(at['b']) + ", " + std::to_string(at['h']) + ", " + std::to_string(at['s']);
    for (double& weight : weights)
      total += weight = std::isinf(most) ? NAN : std::exp(weight - most);
    if (tensors_.contains("lse")) {
      const double sum = most + std::log(total), got = value("lse");
      if (!(std::abs(got - sum) <= 1e-4 * (1 + std::abs(sum))))
        return row + ": the sum is " + std::to_string(got) + " instead of " + std::to_string(sum);
    }
    for (at['e'] = 0; at['e'] < sizes_.at('e'); ++at['e']) {
      double sum = 0, size = 0;
      for (at['t'] = 0; at['t'] < sizes_.at('t'); ++at['t']) {
        const double weight = weights[static_cast<size_t>(at['t'])], factor = value("v");
        if (weight == 0)
          continue;
        sum += weight * factor;
        size += weight * std::abs(factor);
      }
      // Weights and the result are rounded to 8 or 11 bits.
      const double bound = size / total * (format_ == Format::F16 ? 0x1p-9 : 0x1p-7), got = value("out");
      const bool isRight = std::isnan(total) ? std::isnan(got) : std::abs(got - sum / total) <= bound;
      if (!isRight)
        return row + ", column " + std::to_string(at['e']) + " is " + std::to_string(got) + " instead of " +
               std::to_string(sum / total);
    }
    return {};
  }

  Program program_;
  Format format_;
  Sizes sizes_;
  std::map<std::string, FormTensor> tensors_;
  mlir::MLIRContext context_{mlir::MLIRContext::Threading::DISABLED};
  tiles::testing::Lowered lowered_;
  ir::KernelOp phase_;
  vxt::KernelOp code_;
};

Sizes sizesOf(int64_t batches, int64_t groups, int64_t members, int64_t queries, int64_t keys, int64_t depth,
              int64_t columns) {
  return {{'b', batches}, {'g', groups}, {'r', members}, {'h', groups * members},
          {'s', queries}, {'t', keys},   {'d', depth},   {'e', columns}};
}

class Forms : public ::testing::TestWithParam<Program> {};

TEST_P(Forms, AreOnePhaseWithTheResultsOfTheirDefinition) {
  std::random_device device;
  Form form(GetParam(), device() % 2 == 0);
  ASSERT_EQ(form.error, "");
  // Several heads in groups; several blocks of rows and chunks of keys, both ragged.
  const std::pair<Sizes, Timing> launches[] = {{sizesOf(2, 2, 2, 30, 75, 16, 24), Timing::Random},
                                               {sizesOf(1, 1, 2, 131, 140, 40, 64), Timing::Late}};
  for (const auto& [sizes, timing] : llvm::ArrayRef(launches).drop_back(kIsSanitized ? 1 : 0)) {
    ASSERT_EQ(form.choose(sizes), "");
    const unsigned seed = device();
    EXPECT_EQ(form.run(form.code(), seed, timing), "") << "seed " << seed << ", queries " << sizes.at('s');
  }
}

INSTANTIATE_TEST_SUITE_P(Hopper, Forms, ::testing::ValuesIn(programs()),
                         [](const auto& info) { return info.param.name; });

/// Chunks of 128 keys on both sides of those that are left: what they hold does not matter.
TEST(FormBounds, ChunksThatMasksLeaveNothingOfAreNotRead) {
  const Argument q{"q", "bhsd"}, k{"k", "bhtd"}, v{"v", "bhte"}, count{"count", "b", Kind::Count}, out{"out", "bhse"};
  const Program program{"between",
                        "kernel attention(q: &Tensor<TYPE, [B, H, S, D]>, k: &Tensor<TYPE, [B, H, T, D]>, v: "
                        "&Tensor<TYPE, [B, H, T, E]>, "
                        "count: &Tensor<i32, [B]>) -> Tensor<TYPE, [B, H, S, E]> {\n"
                        "    let first = count.reshape([B, 1, 1, 1])\n"
                        "    let kept = arange(T) >= first && arange(T) < first + 100\n"
                        "    return softmax(select(kept, (q @ k.transpose()) as f32 * 0.25, -inf)) as TYPE @ v\n}\n",
                        {q, k, v, count, out},
                        [](auto& of, const Sizes& at, const Sizes&, Format) {
                          const int64_t first = of.at("count").integer(at);
                          return keptIf(at.at('t') >= first && at.at('t') < first + 100);
                        }};
  Form form(program, false);
  ASSERT_EQ(form.error, "");
  ASSERT_EQ(form.choose(sizesOf(1, 1, 1, 20, 600, 16, 16)), "");
  form.count = 140;
  for (auto keys : {std::pair<int64_t, int64_t>{0, 128}, {256, 600}}) {
    form.poisoned = keys;
    EXPECT_EQ(form.run(form.code(), 1, Timing::Random), "") << "keys from " << keys.first;
  }
  // Masked in a chunk of which something is left: read, and 0 · NaN is NaN as written.
  form.poisoned = {128, 130};
  EXPECT_NE(form.run(form.code(), 1, Timing::Random), "");
}

/// With a value per row, groups and a mask; rings go round. Waits for staged results have nothing to wait for here but the last.
TEST(FormMutants, CodeWithoutOneWaitArrivalOrFenceFails) {
  std::vector<Program> all = programs();
  Form form(*llvm::find_if(all, [](const Program& each) { return each.name == std::string("grouped_sums_beside"); }),
            false);
  ASSERT_EQ(form.error, "");
  ASSERT_EQ(form.choose(sizesOf(1, 1, 1, 128, 128 * 5, 64, 64)), "");
  ASSERT_EQ(form.run(form.code(), 1, Timing::Late), "");
  const size_t count = countOrdering(form.code());
  EXPECT_GT(count, 30u);
  for (size_t number = 0; number < count; number += kIsSanitized ? count / 4 : 1) {
    std::string left;
    const std::string failure = runWithout(form, number, left);
    const bool isStaging = left.starts_with("vxnv.bulk_wait") && left.find("written") == std::string::npos;
    EXPECT_TRUE(isStaging || !failure.empty()) << "passes without number " << number << ": " << left;
  }
}

}  // namespace
}  // namespace vortex::target::gpu::hopper
