#include "diag/diagnostic.h"

#include <gtest/gtest.h>

namespace vortex::diag {
namespace {

TEST(DiagnosticSink, KeepsOneDiagnosticPerIdAndPosition) {
  DiagnosticSink sink;
  const source::FileId file{0};
  sink.error("E0110", {file, 3, 4}, "first");
  sink.error("E0110", {file, 3, 9}, "again");
  sink.error("E0111", {file, 3, 4}, "other id");
  sink.error("E0110", {file, 4, 5}, "other position");
  EXPECT_EQ(sink.all().size(), 3u);
  EXPECT_EQ(sink.errorCount(), 3u);
  EXPECT_EQ(sink.all()[0].message, "first");
}

TEST(DiagnosticSink, StopsAtTheCapWithOneNote) {
  DiagnosticSink sink(5);
  for (uint32_t i = 0; i < 20; ++i)
    sink.error("E0110", {source::FileId{0}, i, i + 1}, "x");
  ASSERT_EQ(sink.all().size(), 6u);
  EXPECT_EQ(sink.all()[5].severity, Severity::Note);
  EXPECT_EQ(sink.errorCount(), 20u);
  EXPECT_TRUE(sink.isCut());
}

TEST(DiagnosticSink, PositionlessDiagnosticsAreAllKept) {
  DiagnosticSink sink;
  sink.error("E0110", {}, "a");
  sink.error("E0110", {}, "b");
  EXPECT_EQ(sink.all().size(), 2u);
  EXPECT_FALSE(sink.all()[0].position().isValid());
}

TEST(DiagnosticSink, SortsByPositionAndKeepsReportOrder) {
  DiagnosticSink sink;
  const source::FileId file{0};
  sink.error("E0110", {}, "none");
  sink.error("E0110", {file, 9, 9}, "late");
  sink.error("E0111", {file, 2, 2}, "early 1");
  sink.error("E0110", {file, 2, 2}, "early 2");
  sink.sortByPosition();
  EXPECT_EQ(sink.all()[0].message, "early 1");
  EXPECT_EQ(sink.all()[1].message, "early 2");
  EXPECT_EQ(sink.all()[2].message, "late");
  EXPECT_EQ(sink.all()[3].message, "none");
}

}  // namespace
}  // namespace vortex::diag
