#include "diag/diagnostic.h"

#include <gtest/gtest.h>

namespace vortex::diag {
namespace {

using source::FileId;

struct Fixture {
  SourceManager sources;
  FileId file;
  explicit Fixture(std::string text) : file(sources.addText("scale.vx", std::move(text))) {}
  SourceRange find(std::string_view what, size_t from = 0) const {
    const size_t at = sources.file(file).text().find(what, from);
    return {file, static_cast<uint32_t>(at), static_cast<uint32_t>(at + what.size())};
  }
};

TEST(RenderText, HasTheFormOfTheLanguageReference) {
  Fixture f("//\n//\n//\n//\n//\n    let gpu_data = Tensor.from_host(host_data)\n\n\n    print(host_data)\n");
  DiagnosticSink sink;
  const SourceRange moved = f.find("host_data");
  sink.error("E0110", f.find("host_data", moved.end),
             "`host_data` was moved to the GPU here and is no longer available")
      .primary("used after the move")
      .label(moved, "moved here")
      .help("read it back with `gpu_data.to_host()`");
  EXPECT_EQ(renderText(sink.all(), f.sources),
            "error[E0110]: `host_data` was moved to the GPU here and is no longer available\n"
            "  --> scale.vx:9:11\n"
            " 6 |     let gpu_data = Tensor.from_host(host_data)\n"
            "   |                                     --------- moved here\n"
            " 9 |     print(host_data)\n"
            "   |           ^^^^^^^^^ used after the move\n"
            "   = help: read it back with `gpu_data.to_host()`\n");
}

TEST(RenderText, AlignsLineNumbersOfDifferentWidth) {
  Fixture f("a\n\n\n\n\n\n\n\n\nb\n");
  DiagnosticSink sink;
  sink.error("E0110", f.find("b"), "m").label(f.find("a"), "l");
  EXPECT_EQ(renderText(sink.all(), f.sources), "error[E0110]: m\n"
                                               "   --> scale.vx:10:1\n"
                                               "  1 | a\n"
                                               "    | - l\n"
                                               " 10 | b\n"
                                               "    | ^\n");
}

TEST(RenderText, ShowsAWindowOfALongLine) {
  Fixture f(std::string(5'000'000, 'x') + " here " + std::string(5'000'000, 'y'));
  DiagnosticSink sink;
  sink.error("E0110", f.find("here"), "m");
  const std::string text = renderText(sink.all(), f.sources);
  EXPECT_LT(text.size(), 600u);
  EXPECT_NE(text.find("scale.vx:1:5000002"), std::string::npos);
  const size_t source = text.find(" 1 | "), carets = text.find("   | ");
  const size_t here = text.find("here"), caret = text.find("^^^^");
  // "…" is three bytes and one column.
  EXPECT_EQ(here - source - 2, caret - carets);
}

TEST(RenderText, ExpandsTabsAndHidesControlBytes) {
  Fixture f("\tx\x1b[31m = y\n");
  DiagnosticSink sink;
  sink.error("E0110", f.find("y"), "m");
  const std::string text = renderText(sink.all(), f.sources);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find(" 1 |     x"), std::string::npos);
}

TEST(RenderText, WorksAtTheEndOfAnEmptyFile) {
  Fixture f("");
  DiagnosticSink sink;
  sink.error("E0110", {f.file, 0, 0}, "m");
  EXPECT_EQ(renderText(sink.all(), f.sources), "error[E0110]: m\n  --> scale.vx:1:1\n 1 |\n   | ^\n");
}

TEST(RenderText, ColoursOnlyWhenAsked) {
  Fixture f("x");
  DiagnosticSink sink;
  sink.error("E0110", f.find("x"), "m");
  EXPECT_EQ(renderText(sink.all(), f.sources).find('\x1b'), std::string::npos);
  EXPECT_NE(renderText(sink.all(), f.sources, {.color = true}).find('\x1b'), std::string::npos);
}

TEST(RenderJson, EscapesAndGivesPositions) {
  Fixture f("a\n\"\xFF b\"\n");
  DiagnosticSink sink;
  sink.error("E0110", f.find("b"), "say \"x\"\n\xFF").note("n").fix(f.find("b"), "c", "replace it");
  EXPECT_EQ(
      renderJson(sink.all(), f.sources),
      "[\n{\"id\":\"E0110\",\"severity\":\"error\",\"message\":\"say \\\"x\\\"\\u000a\xEF\xBF\xBD\","
      "\"labels\":[{\"file\":\"scale.vx\",\"line\":2,\"column\":4,\"endLine\":2,\"endColumn\":5,\"message\":\"\","
      "\"primary\":true}],\"notes\":[\"n\"],\"helps\":[],"
      "\"fixes\":[{\"file\":\"scale.vx\",\"line\":2,\"column\":4,\"endLine\":2,\"endColumn\":5,\"replacement\":\"c\","
      "\"description\":\"replace it\"}]}\n]\n");
  EXPECT_EQ(renderJson({}, f.sources), "[]\n");
}

}  // namespace
}  // namespace vortex::diag
