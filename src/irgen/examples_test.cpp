// Every kernel of every example gives a valid module. Run from the repository root.
#include "irgen/test_kernel.h"
#include "lang/sema/kernel/specialised_dims.h"

#include <filesystem>

namespace vortex::irgen {
namespace {

TEST(Examples, EveryKernelGivesAValidModule) {
  size_t kernels = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator("examples")) {
    if (file.path().extension() != ".vx")
      continue;
    source::SourceManager sources;
    diag::DiagnosticSink sink;
    auto root = sources.addFile(file.path().string());
    ASSERT_TRUE(root) << file.path();
    lang::AnalyzeOptions analyzeOptions;
    analyzeOptions.importPaths = {"std"};
    auto program = lang::flow::analyze(*root, sources, sink, analyzeOptions);
    ASSERT_FALSE(sink.hasErrors()) << file.path() << ": " << sink.all().front().message;
    for (const lang::Function* kernel : program->kernels) {
      mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
      loadDialects(context);
      std::string error;
      mlir::ScopedDiagnosticHandler handler(&context,
                                            [&](mlir::Diagnostic& diagnostic) { error += diagnostic.str() + "\n"; });
      Options options;
      for (lang::DimVarId dim : lang::specialisedDims(*kernel)) {
        options.dims.resize(std::max<size_t>(options.dims.size(), dim + 1));
        options.dims[dim] = 64;
      }
      auto module = generateKernel(*kernel, *program, sources, context, options);
      EXPECT_TRUE(module) << file.path() << " " << kernel->name << ": " << error;
      ++kernels;
    }
  }
  EXPECT_GT(kernels, 10u);
}

}  // namespace
}  // namespace vortex::irgen
