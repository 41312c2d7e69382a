#pragma once

#include <memory>
#include <string>

#include "lang/sema/analyze.h"
#include "lang/sema/dump.h"

namespace vortex::lang::testing {

/// A source text with what analysis made of it.
struct Analyzed {
  source::SourceManager sources;
  diag::DiagnosticSink sink;
  std::unique_ptr<Program> program;

  Analyzed() = default;
  explicit Analyzed(std::string source, const AnalyzeOptions& options = {}) {
    program = analyze(sources.addText("test.vx", std::move(source)), sources, sink, options);
  }
  /// "E0301 E0303", in the order reported.
  std::string ids() const {
    std::string out;
    for (const diag::Diagnostic& diagnostic : sink.all())
      out += (out.empty() ? "" : " ") + diagnostic.id;
    return out;
  }
  std::string messages() const { return diag::renderText(sink.all(), sources); }
  std::string text() const { return dump(*program); }
  bool has(std::string_view part) const { return text().find(part) != std::string::npos; }
};

}  // namespace vortex::lang::testing

#define EXPECT_DUMP(analyzed, part) EXPECT_TRUE((analyzed).has(part)) << (analyzed).text() << (analyzed).messages()
#define EXPECT_IDS(source, wanted)                                                                                     \
  do {                                                                                                                 \
    vortex::lang::testing::Analyzed found(source);                                                                     \
    EXPECT_EQ(found.ids(), wanted) << found.messages();                                                                \
  } while (false)
