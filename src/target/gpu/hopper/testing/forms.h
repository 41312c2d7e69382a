// For tests: programs of softmax between two products, from source to what runs on the machine of target/gpu/testing, against float64.
#pragma once

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
#include <numeric>
#include <optional>

namespace vortex::target::gpu::hopper {

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
    places_ = strides;
    memory_.assign(static_cast<size_t>(size * bytes) + 256, 0x55);
  }

  /// The last two dimensions are one for the program.
  void join() {
    const int64_t last = extents.back();
    for (auto* numbers : {&extents, &strides})
      numbers->pop_back();
    extents.back() *= last;
    strides.back() = 1;
  }

  char* data() { return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(memory_.data()) + 255) / 256 * 256); }
  size_t sizeInBytes() const { return static_cast<size_t>(size_ * bytes_); }
  size_t elements() const { return static_cast<size_t>(size_); }
  /// Of the element at these numbers of letters.
  size_t offset(const Sizes& at) const {
    int64_t offset = 0;
    for (size_t dim = 0; dim < dims_.size(); ++dim)
      offset += at.at(dims_[dim]) * places_[dim];
    return static_cast<size_t>(offset);
  }
  double value(const Sizes& at, Format format) {
    uint64_t bits = 0;
    std::memcpy(&bits, data() + offset(at) * static_cast<size_t>(bytes_), static_cast<size_t>(bytes_));
    return bytes_ == 4 ? double(std::bit_cast<float>(uint32_t(bits))) : interpreter::decode(format, bits);
  }
  /// The elements along a letter.
  std::vector<double> along(char letter, int64_t count, Sizes at, Format format) {
    at[letter] = 0;
    const int64_t stride = dims_.find(letter) != std::string::npos ? places_[dims_.find(letter)] : 0;
    const char* first = data() + offset(at) * static_cast<size_t>(bytes_);
    std::vector<double> result;
    for (int64_t i = 0; i < count; ++i) {
      uint64_t bits = 0;
      std::memcpy(&bits, first + i * stride * bytes_, static_cast<size_t>(bytes_));
      result.push_back(bytes_ == 4 ? double(std::bit_cast<float>(uint32_t(bits))) : interpreter::decode(format, bits));
    }
    return result;
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
  std::vector<int64_t> places_;  ///< strides of the letters
  int64_t bytes_, size_ = 0;
  std::vector<char> memory_;
};

struct Argument {
  std::string name, dims;  ///< "": a scalar
  enum class Kind { Narrow, F32, Count, Scalar } kind = Kind::Narrow;
  bool isJoined = false;  ///< the last two dimensions
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
inline double nothing(std::map<std::string, FormTensor>&, const Sizes&, const Sizes&, Format) { return 0; }
inline double keptIf(bool isKept) { return isKept ? 0 : -HUGE_VAL; }

/// Of f32, packed.
struct FormTemporary {
  static constexpr size_t kAlignment = 256;
  std::vector<int64_t> extents, strides;
  std::vector<char> memory;
  char* data() {
    return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(memory.data()) + kAlignment - 1) / kAlignment *
                                   kAlignment);
  }
};

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
  /// Cores of the device.
  int64_t workers = 132;

  /// Of the launch with these extents: its first phase must be one of roles. `phases`: that it takes.
  std::string choose(const Sizes& sizes, size_t phases = 1) {
    sizes_ = sizes;
    tensors_.clear();
    for (const Argument& argument : program_.arguments)
      if (argument.kind != Kind::Scalar)
        tensors_.emplace(argument.name, FormTensor(argument.dims, sizes, argument.kind == Kind::Narrow ? 2 : 4));
    for (const Argument& argument : program_.arguments)
      if (argument.isJoined)
        tensors_.at(argument.name).join();
    const auto isTaken = [&](ir::CaseOp each) {
      return ir::holds(each, [&](ir::SizeAttr size) { return valueOf(size.getExpr()); });
    };
    auto kernels = ir::takenKernels(*lowered_.vx, isTaken);
    phases_.clear();
    for (auto [phase, code] : llvm::zip(lowered_.vx->getOps<ir::KernelOp>(), lowered_.vxt->getOps<vxt::KernelOp>()))
      if (llvm::is_contained(kernels, phase))
        phases_.push_back({phase, code});
    addTemporaries();
    return phases_.size() == phases && isAttention(phases_[0].vx) ? "" : std::to_string(phases_.size()) + " phases";
  }
  vxt::KernelOp code() { return phases_[0].vxt; }
  /// What the last run gave.
  std::string results() {
    FormTensor& out = tensors_.at("out");
    return {out.data(), out.sizeInBytes()};
  }

  /// Empty when the results are right. `code` instead of that of the first phase. `seed`: of the data; of what happens when, too, unless that is given.
  std::string run(vxt::KernelOp code, unsigned seed, Timing timing, std::optional<unsigned> order = {}) {
    fill(seed);
    Launch launch;
    launch.seed = order.value_or(seed);
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
    for (unsigned number = static_cast<unsigned>(program_.arguments.size()); number < inputs().size(); ++number) {
      auto found = temporaries_.find(number);
      if (found == temporaries_.end()) {
        auto view = llvm::dyn_cast<ir::ViewType>(inputs()[number]);
        launch.slots.insert(launch.slots.end(), view ? static_cast<size_t>(1 + 2 * view.getRank()) : 1,
                            view ? 0 : static_cast<uint64_t>(let(number)));
        continue;
      }
      FormTemporary& temporary = found->second;
      std::ranges::fill(temporary.memory, char(0xff));  // NaN
      launch.slots.push_back(reinterpret_cast<uint64_t>(temporary.data()));
      for (const auto* numbers : {&temporary.extents, &temporary.strides})
        launch.slots.insert(launch.slots.end(), numbers->begin(), numbers->end());
      launch.memory.push_back({temporary.data(), temporary.memory.size() - FormTemporary::kAlignment});
    }
    launch.argument = [&](const size::Node& node) { return argument(node); };
    for (Phase phase : phases_) {
      launch.grid[0] = valueOf(llvm::cast<ir::SizeAttr>((*phase.vx.getGrid())[0]).getExpr());
      if (std::string failed = gpu::testing::run(phase.vxt == this->code() ? code : phase.vxt, launch); !failed.empty())
        return failed;
    }
    return compare();
  }

private:
  int64_t valueOf(size::Expr expr) {
    return size::evaluate(expr, [&](const size::Node& node) { return argument(node); });
  }

  llvm::ArrayRef<mlir::Type> inputs() {
    return llvm::cast<mlir::FunctionType>((*lowered_.vx->getOps<ir::EntryOp>().begin()).getFunctionType()).getInputs();
  }

  /// Those that the launch's phases have: everything else is not there.
  void addTemporaries() {
    temporaries_.clear();
    auto entry = *lowered_.vx->getOps<ir::EntryOp>().begin();
    for (unsigned number = 0; number < inputs().size(); ++number) {
      auto described = llvm::cast<mlir::DictionaryAttr>(entry.getArgs()[number]);
      const bool isUsed = llvm::any_of(phases_, [&](Phase phase) { return !phase.vx.getArgument(number).use_empty(); });
      if (!isUsed || described.getAs<ir::RoleAttr>("role").getValue() != ir::Role::Temp)
        continue;
      FormTemporary& made = temporaries_[number];
      for (mlir::Attribute extent : described.getAs<mlir::ArrayAttr>("extents"))
        made.extents.push_back(valueOf(llvm::cast<ir::SizeAttr>(extent).getExpr()));
      int64_t elements = 1;
      made.strides.assign(made.extents.size(), 1);
      for (size_t dim = made.extents.size(); dim-- > 0; elements *= made.extents[dim])
        made.strides[dim] = elements;
      made.memory.resize(static_cast<size_t>(elements) * 4 + FormTemporary::kAlignment);
    }
  }

  int64_t let(unsigned number) {
    ir::SizeAttr value = ir::valueOfLet(*lowered_.vx, number);
    return value ? valueOf(value.getExpr()) : 0;
  }

  int64_t argument(const size::Node& node) {
    if (node.op == size::Op::Device)
      return workers;
    if (node.op == size::Op::Scalar)
      return node.argument < program_.arguments.size() ? program_.scalar : let(node.argument);
    if (auto found = temporaries_.find(node.argument); found != temporaries_.end()) {
      FormTemporary& temporary = found->second;
      switch (node.op) {
      case size::Op::Dim: return temporary.extents[node.dim];
      case size::Op::Stride: return temporary.strides[node.dim];
      default: return reinterpret_cast<int64_t>(temporary.data());
      }
    }
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
    const std::vector<double> query = tensors_.at("q").along('d', sizes_.at('d'), at, format_);
    FormTensor &k = tensors_.at("k"), &v = tensors_.at("v"), &out = tensors_.at("out");
    for (at['t'] = 0; at['t'] < sizes_.at('t'); ++at['t']) {
      const std::vector<double> key = k.along('d', sizes_.at('d'), at, format_);
      const double score = std::inner_product(query.begin(), query.end(), key.begin(), 0.0);
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
    const auto columns = static_cast<size_t>(sizes_.at('e'));
    std::vector<double> sums(columns), sizes(columns);
    for (at['t'] = 0; at['t'] < sizes_.at('t'); ++at['t']) {
      const double weight = weights[static_cast<size_t>(at['t'])];
      if (weight == 0)
        continue;
      const std::vector<double> factors = v.along('e', sizes_.at('e'), at, format_);
      for (size_t i = 0; i < columns; ++i) {
        sums[i] += weight * factors[i];
        sizes[i] += weight * std::abs(factors[i]);
      }
    }
    const std::vector<double> results = out.along('e', sizes_.at('e'), at, format_);
    for (size_t i = 0; i < columns; ++i) {
      // Weights and the result are rounded to 8 or 11 bits.
      const double bound = sizes[i] / total * (format_ == Format::F16 ? 0x1p-9 : 0x1p-7), got = results[i];
      const bool isRight = std::isnan(total) ? std::isnan(got) : std::abs(got - sums[i] / total) <= bound;
      if (!isRight)
        return row + ", column " + std::to_string(i) + " is " + std::to_string(got) + " instead of " +
               std::to_string(sums[i] / total);
    }
    return {};
  }

  Program program_;
  Format format_;
  Sizes sizes_;
  std::map<std::string, FormTensor> tensors_;
  mlir::MLIRContext context_{mlir::MLIRContext::Threading::DISABLED};
  tiles::testing::Lowered lowered_;
  struct Phase {
    ir::KernelOp vx;
    vxt::KernelOp vxt;
  };
  std::vector<Phase> phases_;  ///< that the launch takes
  std::map<unsigned, FormTemporary> temporaries_;
};

inline Sizes sizesOf(int64_t batches, int64_t groups, int64_t members, int64_t queries, int64_t keys, int64_t depth,
                     int64_t columns) {
  return {{'b', batches}, {'g', groups}, {'r', members}, {'h', groups * members},
          {'s', queries}, {'t', keys},   {'d', depth},   {'e', columns}};
}

}  // namespace vortex::target::gpu::hopper
