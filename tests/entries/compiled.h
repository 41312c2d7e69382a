// Kernels of a text, compiled for GPUs.
#pragma once

#include "diag/diagnostic.h"
#include "lang/sema/analyze.h"
#include "pipeline/compiler.h"

#include <gtest/gtest.h>

namespace vortex::entries {

inline constexpr const char* kKernels = R"(
kernel product(a: &Tensor<f16, [M, K]>, b: &Tensor<f16, [K, N]>) -> Tensor<f16, [M, N]> { a @ b }
kernel soft(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [M, N]> { softmax(x, dim = -1) }
kernel gated(x: &Tensor<bf16, [M, K]>, w: &Tensor<bf16, [K, N]>, v: &Tensor<bf16, [K, N]>) -> Tensor<bf16, [M, N]> {
    let g = x @ w
    g * (x @ v)
}
kernel columns(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [N]> { sum(x, dim = 0) }
)";

class Compiled {
public:
  Compiled(const std::string& target, bool useCache) {
    program_ = lang::analyze(sources_.addText("kernels.vx", kKernels), sources_, sink_);
    EXPECT_FALSE(sink_.hasErrors()) << diag::renderText(sink_.all(), sources_);
    pipeline::Options options;
    options.target = target;
    options.useCache = useCache;
    options.warn = [this](std::string_view text) { warnings.emplace_back(text); };
    compiler_ = std::make_unique<pipeline::Compiler>(*program_, sources_, std::move(options));
  }

  const std::vector<lang::Function*>& kernels() const { return program_->kernels; }
  pipeline::Compiler::Plan plan(size_t kernel) {
    pipeline::Failure failure;
    auto planned = compiler_->plan(*kernels()[kernel], {}, failure);
    EXPECT_TRUE(planned.kernel) << failure.message;
    return planned;
  }
  std::shared_ptr<const artifact::Kernel> compile(size_t kernel, const pipeline::Coverage& coverage = {}) {
    pipeline::Failure failure;
    auto compiled = compiler_->compile(*kernels()[kernel], {}, failure, coverage);
    EXPECT_TRUE(compiled) << failure.message;
    return compiled;
  }

  std::vector<std::string> warnings;

private:
  source::SourceManager sources_;
  diag::DiagnosticSink sink_;
  std::unique_ptr<lang::Program> program_;
  std::unique_ptr<pipeline::Compiler> compiler_;
};

}  // namespace vortex::entries
