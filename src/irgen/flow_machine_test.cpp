// The graph of a kernel, walked thread by thread, computes what the generated module computes in the interpreter: a fault in lowering, SSA
// form or this generator shows as two different numbers. VORTEX_RANDOM_KERNELS sets how many random kernels are compared.
#include "base/sanitized.h"
#include "interpreter/interpreter.h"
#include "irgen/irgen.h"
#include "lang/flow/front.h"
#include "lang/flow/graph/dump.h"
#include "lang/flow/graph/lower_function.h"
#include "lang/flow/graph/verify.h"
#include "lang/flow/testing/level_judge.h"
#include "lang/flow/testing/random_kernel.h"
#include "lang/flow/testing/thread_machine.h"
#include "lang/sema/kernel/default_block.h"

#include "mlir/IR/Diagnostics.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

namespace vortex::irgen {
namespace {

using lang::Expr;
using lang::ExprKind;
using lang::Function;
using lang::Type;
using lang::TypeKind;
using lang::flow::Graph;
using lang::flow::LocalId;
using lang::flow::testing::Launch;
using lang::flow::testing::Number;
using lang::flow::testing::Outcome;
using lang::flow::testing::ThreadMachine;

constexpr int64_t kMostThreads = 4096;

bool isInteger(Type type) { return type->kind == TypeKind::Scalar && !lang::isFloat(type->scalar); }

struct Tensor {
  Type type = nullptr;
  std::vector<int64_t> extents;
  std::vector<uint8_t> bytes;
  size_t width() const { return std::max<size_t>(1, lang::bitWidth(type->elem->scalar) / 8); }
  size_t count() const {
    size_t out = 1;
    for (int64_t extent : extents)
      out *= static_cast<size_t>(extent);
    return out;
  }
};

__int128 numberAt(const uint8_t* data, Type element, size_t width) {
  uint64_t bits = 0;
  std::memcpy(&bits, data, width);
  return lang::flow::testing::wrapped(lang::flow::machineType(element), static_cast<__int128>(bits));
}

std::vector<int64_t> indexOf(size_t flat, const std::vector<int64_t>& extents) {
  std::vector<int64_t> out(extents.size());
  for (size_t dim = extents.size(); dim-- > 0; flat /= static_cast<size_t>(extents[dim]))
    out[dim] = static_cast<int64_t>(flat % static_cast<size_t>(extents[dim]));
  return out;
}

/// One kernel with arguments made up for it.
class Comparison {
public:
  /// `extents`: what dimension variables are taken from; none: the usual.
  Comparison(const Function& kernel, const lang::Program& program, const source::SourceManager& sources, uint64_t seed,
             std::vector<int64_t> extents = {})
      : kernel_(kernel), program_(program), sources_(sources), random_(seed), extents_(std::move(extents)) {}

  /// Integers of outputs that were compared; nothing where no arguments can be made up or the machine gives up.
  std::optional<size_t> run() {
    if (!chooseLaunch() || !makeArguments())
      return std::nullopt;
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    loadDialects(context);
    mlir::ScopedDiagnosticHandler handler(&context,
                                          [&](mlir::Diagnostic& diagnostic) { error_ += diagnostic.str() + "\n"; });
    Options options;
    for (const auto& [dim, size] : launch_.dims) {
      options.dims.resize(std::max<size_t>(options.dims.size(), dim + 1));
      options.dims[dim] = size;
    }
    auto module = generateKernel(kernel_, program_, sources_, context, options);
    if (!module)
      return std::nullopt;
    auto interpreter = interpreter::Interpreter::create(*module);
    if (!interpreter)
      return std::nullopt;
    Graph graph = lang::flow::lowerKernel(kernel_);
    const lang::flow::Structure structure(graph);
    const lang::flow::BlockShape shape = {launch_.block[0], launch_.block[1], launch_.block[2]};
    const lang::flow::Uniformity levels(graph, structure, {&shape, 1});
    EXPECT_EQ(lang::flow::verify(graph), "") << lang::flow::dump(graph, sources_);
    ThreadMachine machine(graph, launch_);
    for (size_t i = 0; i < tensors_.size(); ++i)
      if (tensors_[i])
        fill(machine, graph.params[i], *tensors_[i]);
    machine.watch([&](lang::flow::StepId step, const std::vector<ThreadMachine::Thread*>& together) {
      checkLevels(graph, levels, machine, step, together);
      checkBounds(graph, machine, step, together);
    });
    outcome = machine.run();
    interpreter::Options run;
    run.maxSteps = 100'000'000;
    const auto findings = interpreter->run(arguments_, run);
    if (!findings || !findings->empty() || outcome != Outcome::Done)
      return std::nullopt;
    return compare(machine, graph);
  }

  Outcome outcome = Outcome::Done;

private:
  static void checkLevels(const Graph& graph, const lang::flow::Uniformity& levels, ThreadMachine& machine,
                          lang::flow::StepId step, const std::vector<ThreadMachine::Thread*>& together) {
    if (!testing::Test::HasFailure())
      EXPECT_EQ(lang::flow::testing::excessOfLevels(graph, levels, machine, step, together), "");
  }

  /// What is proven to be inside is.
  static void checkBounds(const Graph& graph, ThreadMachine& machine, lang::flow::StepId id,
                          const std::vector<ThreadMachine::Thread*>& together) {
    for (const lang::flow::Subscript& subscript : graph.subscripts) {
      if (subscript.before != id || subscript.origin->guard == lang::Guard::Guarded)
        continue;
      for (const lang::flow::Subscript::Part& part : subscript.parts)
        for (ThreadMachine::Thread* thread : together) {
          const Number begin = machine.value(*thread, part.begin), length = machine.value(*thread, part.length),
                       extent = machine.value(*thread, part.extent);
          if (begin && length && extent && *begin + *length > *extent)
            ADD_FAILURE() << "step " << lang::flow::indexOf(id) << ": index " << static_cast<int64_t>(*begin)
                          << " is not below " << static_cast<int64_t>(*extent);
        }
    }
  }

  std::optional<int64_t> sizeOf(const Expr& expr) const {
    switch (expr.kind) {
    case ExprKind::Int: return static_cast<int64_t>(expr.intValue);
    case ExprKind::Cast: return sizeOf(*expr.args[0]);
    case ExprKind::DimValue: return sizeOf(expr.dim);
    case ExprKind::Builtin:
    case ExprKind::Binary: {
      if (expr.args.size() != 2)
        return std::nullopt;
      const auto a = sizeOf(*expr.args[0]), b = sizeOf(*expr.args[1]);
      if (!a || !b || *b <= 0)
        return std::nullopt;
      if (expr.kind == ExprKind::Builtin)
        return expr.builtin == lang::Builtin::CeilDiv ? std::optional((*a + *b - 1) / *b) : std::nullopt;
      switch (expr.binaryOp) {
      case lang::BinaryOp::Add: return *a + *b;
      case lang::BinaryOp::Sub: return *a - *b;
      case lang::BinaryOp::Mul: return *a * *b;
      case lang::BinaryOp::Div: return *a / *b;
      default: return std::nullopt;
      }
    }
    default: return std::nullopt;
    }
  }

  std::optional<int64_t> sizeOf(const lang::DimExpr& dim) const {
    std::vector<std::optional<lang::DimExpr>> values;
    for (const auto& [id, size] : launch_.dims) {
      values.resize(std::max<size_t>(values.size(), id + 1));
      values[id] = lang::DimExpr::constant(size);
    }
    return dim.substitute(values).asConstant();
  }

  bool chooseLaunch() {
    const lang::KernelSpec& spec = *kernel_.kernel;
    const int64_t usual = spec.domain.size() == 1 ? 256 : 64;
    for (uint32_t i = 0; i < kernel_.dims.size(); ++i)
      launch_.dims[i] =
          kernel_.dims[i].constant.value_or(extents_.empty() ? usual : extents_[random_() % extents_.size()]);
    if (spec.gridKind == lang::GridKind::WholeTensor)
      return true;
    if (spec.gridKind == lang::GridKind::Explicit && (spec.grid.empty() || spec.block.empty()))
      return false;
    const auto implied = lang::defaultBlock(spec, spec.domain);
    for (size_t axis = 0; axis < 3; ++axis) {
      if (axis < spec.block.size()) {
        const auto size = sizeOf(*spec.block[axis]);
        if (!size)
          return false;
        launch_.block[axis] = *size;
      } else if (spec.block.empty()) {
        launch_.block[axis] = implied[axis];
      }
      const bool isDomain = spec.gridKind == lang::GridKind::Domain;
      std::optional<int64_t> extent = 1;
      if (axis < (isDomain ? spec.domain.size() : spec.grid.size()))
        extent = isDomain ? sizeOf(spec.domain[axis]) : sizeOf(*spec.grid[axis]);
      if (!extent || (isDomain && *extent % launch_.block[axis] != 0))
        return false;
      launch_.grid[axis] = isDomain ? *extent / launch_.block[axis] : *extent;
    }
    int64_t threads = 1;
    for (size_t axis = 0; axis < 3; ++axis)
      threads *= launch_.grid[axis] * launch_.block[axis];
    return threads > 0 && threads <= kMostThreads;
  }

  bool makeArguments() {
    for (const lang::Variable* param : kernel_.params) {
      const Type type = stripRef(param->type);
      tensors_.emplace_back();
      if (type->kind == TypeKind::Scalar) {
        const bool isNumber = isInteger(type);
        const uint64_t number = type->isScalar(lang::Scalar::Bool) ? random_() % 2 : isNumber ? random_() % 20 : 0;
        launch_.scalars[param] = static_cast<__int128>(number);
        if (!isNumber)
          launch_.scalars.erase(param);
        arguments_.push_back(interpreter::Argument::bits(number));
        continue;
      }
      if (!type->isTensor() || type->elem->kind != TypeKind::Scalar)
        return false;
      Tensor& tensor = tensors_.back().emplace();
      tensor.type = type;
      for (const lang::DimExpr& dim : type->shape) {
        const auto extent = sizeOf(dim);
        if (!extent || *extent < 0 || *extent > 1 << 20)
          return false;
        tensor.extents.push_back(*extent);
      }
      if (tensor.count() > 1 << 20)
        return false;
      makeData(tensor);
    }
    size_t next = 0;
    std::vector<interpreter::Argument> all;
    for (std::optional<Tensor>& tensor : tensors_)
      all.push_back(tensor ? interpreter::Argument::tensor(tensor->bytes.data(), tensor->extents) : arguments_[next++]);
    arguments_ = std::move(all);
    return true;
  }

  /// Any integers, small ones among them so that they serve as indices; floats of no consequence.
  void makeData(Tensor& tensor) {
    tensor.bytes.assign(tensor.count() * tensor.width(), 0);
    const bool isBool = tensor.type->elem->isScalar(lang::Scalar::Bool);
    for (size_t i = 0; i < tensor.count() && isInteger(tensor.type->elem); ++i) {
      const uint64_t number = isBool ? random_() % 2 : random_() % 4 ? random_() % 64 : random_();
      std::memcpy(tensor.bytes.data() + i * tensor.width(), &number, tensor.width());
    }
  }

  static void fill(ThreadMachine& machine, LocalId local, const Tensor& tensor) {
    for (size_t i = 0; i < tensor.count() && isInteger(tensor.type->elem); ++i)
      machine.setElement(local, indexOf(i, tensor.extents),
                         numberAt(tensor.bytes.data() + i * tensor.width(), tensor.type->elem, tensor.width()));
  }

  size_t compare(const ThreadMachine& machine, const Graph& graph) {
    size_t compared = 0;
    for (size_t i = 0; i < tensors_.size(); ++i)
      if (tensors_[i])
        compared += compareTensor(machine, graph.params[i], tensors_[i]->type, arguments_[i]);
    const Type result = kernel_.resultType;
    const std::vector<Type> results = !result || result->kind == TypeKind::Unit ? std::vector<Type>()
                                      : result->kind == TypeKind::Tuple         ? result->elems
                                                                                : std::vector<Type>{result};
    for (uint32_t i = 0; i < results.size() && tensors_.size() + i < arguments_.size(); ++i)
      if (const auto local = machine.result(i);
          local && results[i]->isTensor() && results[i]->elem->kind == TypeKind::Scalar && results.size() == 1)
        compared += compareTensor(machine, *local, results[i], arguments_[tensors_.size() + i]);
    return compared;
  }

  size_t compareTensor(const ThreadMachine& machine, LocalId local, Type type, const interpreter::Argument& actual) {
    if (!isInteger(type->elem))
      return 0;
    size_t compared = 0, count = 1;
    for (int64_t extent : actual.extents)
      count *= static_cast<size_t>(extent);
    const size_t width = std::max<size_t>(1, lang::bitWidth(type->elem->scalar) / 8);
    for (size_t i = 0; i < count; ++i) {
      const Number expected = machine.element(local, indexOf(i, actual.extents));
      if (!expected)
        continue;
      ++compared;
      const __int128 found = numberAt(static_cast<const uint8_t*>(actual.data) + i * width, type->elem, width);
      EXPECT_EQ(static_cast<int64_t>(found), static_cast<int64_t>(*expected)) << "element " << i;
      if (found != *expected)
        break;
    }
    return compared;
  }

  const Function& kernel_;
  const lang::Program& program_;
  const source::SourceManager& sources_;
  std::mt19937_64 random_;
  std::vector<int64_t> extents_;
  Launch launch_;
  std::vector<std::optional<Tensor>> tensors_;  ///< by parameter
  std::vector<interpreter::Argument> arguments_;
  std::string error_;
};

uint64_t setting(const char* name, uint64_t usual) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : usual;
}

/// A quarter each, so that processes share them.
class FlowMachine : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Quarters, FlowMachine, testing::Values(0, 1, 2, 3));

TEST_P(FlowMachine, ComputesWhatTheInterpreterDoesForRandomKernels) {
  const uint64_t count = setting("VORTEX_RANDOM_KERNELS", base::sampled(1000)),
                 first = setting("VORTEX_FIRST_KERNEL", 1);
  size_t done = 0, wanted = 0;
  for (uint64_t seed = first + GetParam(); seed < first + count; seed += 4) {
    const auto made = lang::flow::testing::randomKernel(seed);
    source::SourceManager sources;
    diag::DiagnosticSink sink;
    const auto program = lang::flow::analyze(sources.addText("random.vx", made.text), sources, sink, {},
                                             {.races = lang::flow::RacePolicy::Allow});
    ASSERT_FALSE(sink.hasErrors()) << "seed " << seed << "\n" << diag::renderText(sink.all(), sources) << made.text;
    const Function* kernel = nullptr;
    for (const Function* each : program->kernels)
      if (each->name == "k")
        kernel = each;
    ASSERT_TRUE(kernel);
    Comparison comparison(*kernel, *program, sources, seed, {0, 1, 2, 5, 9});
    const auto compared = comparison.run();
    ASSERT_NE(comparison.outcome, Outcome::Stuck) << "seed " << seed << "\n" << made.text;
    ++wanted;
    done += compared.value_or(0) > 0;
    if (testing::Test::HasFailure())
      FAIL() << "seed " << seed << "\n" << made.text << lang::flow::dump(lang::flow::lowerKernel(*kernel), sources);
  }
  EXPECT_GE(done * 10, wanted * 9);
}

TEST(FlowMachineOnFiles, ComputesWhatTheInterpreterDoesForKernelsOfTheRepository) {
  size_t done = 0;
  [[maybe_unused]] size_t seen = 0;
  for (const char* folder : {"examples", "tests/language"})
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
      if (file.path().extension() != ".vx" || (base::kIsSanitized && ++seen % 8 != 0))
        continue;
      source::SourceManager sources;
      diag::DiagnosticSink sink;
      auto root = sources.addFile(file.path().string());
      ASSERT_TRUE(root) << file.path();
      lang::AnalyzeOptions options;
      options.importPaths = {"std"};
      const auto program = lang::flow::analyze(*root, sources, sink, options, {.races = lang::flow::RacePolicy::Allow});
      if (sink.hasErrors())
        continue;
      for (const Function* kernel : program->kernels) {
        if (kernel->kernel->cooperative)
          continue;  // the machine runs one block after the other
        Comparison comparison(*kernel, *program, sources, 1);
        done += comparison.run().value_or(0) > 0;
        if (testing::Test::HasFailure())
          FAIL() << file.path() << " " << kernel->uniqueName << "\n"
                 << lang::flow::dump(lang::flow::lowerKernel(*kernel), sources);
      }
    }
  EXPECT_GT(done, base::sampled(10u));
}

}  // namespace
}  // namespace vortex::irgen
