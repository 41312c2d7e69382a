// What is said of whole programs: the files of tests/errors with ids of kernels, ownership and launches, and the examples, in which nothing is wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "lang/flow/testing/error_files.h"

namespace vortex::lang::flow {
namespace {

TEST(Diagnostics, OfKernelsAreWhatTheirFilesState) {
  size_t count = 0;
  for (const std::filesystem::path& path : testing::errorFiles()) {
    const std::string id = path.stem().string().substr(0, 5);
    std::string first;
    std::ifstream file(path);
    std::getline(file, first);
    if ((id[0] == 'E' && id < "E0450") || first.starts_with("//!"))  // which takes options of the driver
      continue;
    ++count;
    EXPECT_EQ(testing::complaintsAbout(path, {}, {}), "");
  }
  EXPECT_GT(count, 250u);
}

TEST(Diagnostics, ExamplesHaveNone) {
  size_t count = 0;
  for (const char* folder : {"examples", "examples/memory_model"})
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".vx")
        continue;
      ++count;
      source::SourceManager sources;
      diag::DiagnosticSink sink;
      AnalyzeOptions options;
      options.importPaths = {"std"};
      flow::analyze(sources.addFile(entry.path().string()).value(), sources, sink, options);
      EXPECT_EQ(diag::renderText(sink.all(), sources), "") << entry.path();
    }
  EXPECT_GT(count, 30u);
}

}  // namespace
}  // namespace vortex::lang::flow
