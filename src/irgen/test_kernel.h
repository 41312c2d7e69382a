// Kernels from source text, run by the reference interpreter.
#pragma once

#include "interpreter/interpreter.h"
#include "ir/vx.h"
#include "irgen/irgen.h"
#include "lang/flow/front.h"

#include "mlir/IR/Diagnostics.h"

#include "gtest/gtest.h"

#include <bit>
#include <cstring>
#include <random>

namespace vortex::irgen {

class TestKernel {
  mlir::MLIRContext context_{mlir::MLIRContext::Threading::DISABLED};  // outlives the module

public:
  explicit TestKernel(std::string text, Options options = {}, std::string_view name = {}) {
    loadDialects(context_);
    mlir::ScopedDiagnosticHandler handler(&context_,
                                          [&](mlir::Diagnostic& diagnostic) { error += diagnostic.str() + "\n"; });
    program_ = lang::flow::analyze(sources_.addText("test.vx", std::move(text)), sources_, sink_, {},
                                   {.races = lang::flow::RacePolicy::Allow});
    for (const diag::Diagnostic& diagnostic : sink_.all())
      if (diagnostic.severity == diag::Severity::Error)
        ADD_FAILURE() << diagnostic.id << " " << diagnostic.message << " at "
                      << sources_.describe(diagnostic.position());
    if (sink_.hasErrors() || program_->kernels.empty())
      return;
    const lang::Function* kernel = program_->kernels.front();
    for (const lang::Function* candidate : program_->kernels)
      if (candidate->name == name)
        kernel = candidate;
    module = generateKernel(*kernel, *program_, sources_, context_, options);
  }

  std::string text() const {
    std::string result;
    llvm::raw_string_ostream stream(result);
    if (module)
      mlir::ModuleOp(*module).print(stream);
    return result;
  }

  template <typename T> TestKernel& tensor(std::vector<T>& data, std::vector<int64_t> extents) {
    arguments.push_back(interpreter::Argument::tensor(data.data(), std::move(extents)));
    return *this;
  }
  template <typename T> TestKernel& scalar(T value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>)
      bits = static_cast<uint64_t>(static_cast<int64_t>(value));
    arguments.push_back(interpreter::Argument::bits(bits));
    return *this;
  }

  /// Runs and expects no findings; the text of the first one otherwise.
  TestKernel& run(uint64_t seed = 0) {
    parameters_ = arguments.size();
    if (!module) {
      ADD_FAILURE() << "no module: " << error;
      return *this;
    }
    auto machine = interpreter::Interpreter::create(*module);
    if (!machine) {
      ADD_FAILURE() << machine.error().message << "\n" << text();
      return *this;
    }
    interpreter::Options options;
    options.check = check;
    options.seed = seed;
    options.grid = grid;
    options.maxSteps = 100'000'000;
    options.print = [&](std::string_view line) { printed += std::string(line) + "\n"; };
    auto findings = machine->run(arguments, options);
    if (!findings)
      ADD_FAILURE() << findings.error().message << "\n" << text();
    else
      for (const interpreter::Finding& finding : *findings)
        found.push_back(finding);
    if (!expectFindings)
      for (const interpreter::Finding& finding : found)
        ADD_FAILURE() << interpreter::toText(finding) << "\n" << text();
    return *this;
  }

  template <typename T> std::vector<T> result(size_t index = 0) const {
    if (parameters_ + index >= arguments.size())
      return {};
    const interpreter::Argument& argument = arguments[parameters_ + index];
    size_t count = 1;
    for (int64_t extent : argument.extents)
      count *= static_cast<size_t>(extent);
    std::vector<T> values(count);
    if (count && argument.data)
      std::memcpy(values.data(), argument.data, count * sizeof(T));
    return values;
  }

  size_t count(std::string_view needle) const {
    size_t found = 0;
    std::string all = text();
    for (size_t at = all.find(needle); at != std::string::npos; at = all.find(needle, at + 1))
      ++found;
    return found;
  }

  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string error, printed;
  std::vector<interpreter::Argument> arguments;
  std::vector<interpreter::Finding> found;
  bool check = true, expectFindings = false;
  std::optional<std::array<int64_t, 3>> grid;  ///< that the launch gives

private:
  source::SourceManager sources_;
  diag::DiagnosticSink sink_;
  std::unique_ptr<lang::Program> program_;
  size_t parameters_ = 0;
};

inline std::vector<float> randomFloats(size_t count, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-2, 2);
  std::vector<float> result(count);
  for (float& value : result)
    value = values(random);
  return result;
}

inline void expectNear(const std::vector<float>& actual, const std::vector<float>& expected, float tolerance = 1e-5f) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "at " << i;
}

}  // namespace vortex::irgen
