#include "source/source.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace vortex::source {
namespace {

TEST(Source, EmptyFileHasOneEmptyLine) {
  SourceManager sources;
  const SourceFile& file = sources.file(sources.addText("a.vx", ""));
  EXPECT_EQ(file.lineCount(), 1u);
  EXPECT_EQ(file.lineText(1), "");
  EXPECT_EQ(file.lineColumn(0), (LineColumn{1, 1}));
  EXPECT_EQ(file.lineColumn(99), (LineColumn{1, 1}));
}

TEST(Source, ColumnsCountCodePoints) {
  SourceManager sources;
  const SourceFile& file = sources.file(sources.addText("a.vx", "x\n\xC3\xA9\xF0\x9F\x98\x80=\xFF!\n"));
  EXPECT_EQ(file.lineColumn(2), (LineColumn{2, 1}));
  EXPECT_EQ(file.lineColumn(4), (LineColumn{2, 2}));
  EXPECT_EQ(file.lineColumn(8), (LineColumn{2, 3}));
  EXPECT_EQ(file.lineColumn(10), (LineColumn{2, 5}));  // the stray byte is one column
  EXPECT_EQ(file.lineCount(), 3u);
}

TEST(Source, CarriageReturnIsNotPartOfTheLine) {
  SourceManager sources;
  const SourceFile& file = sources.file(sources.addText("a.vx", "ab\r\ncd"));
  EXPECT_EQ(file.lineText(1), "ab");
  EXPECT_EQ(file.lineText(2), "cd");
}

TEST(Source, EveryOffsetMapsToTheLineThatContainsIt) {
  SourceManager sources;
  const std::string text = "a\n\n\nbcd\n\ne";
  const SourceFile& file = sources.file(sources.addText("a.vx", text));
  uint32_t line = 1, column = 1;
  for (uint32_t i = 0; i <= text.size(); ++i) {
    EXPECT_EQ(file.lineColumn(i), (LineColumn{line, column})) << i;
    if (i < text.size() && text[i] == '\n')
      ++line, column = 1;
    else
      ++column;
  }
}

TEST(Source, TheSamePathIsReadOnce) {
  const std::string path = testing::TempDir() + "vortex_source_test.vx";
  std::ofstream(path) << "fn main() {}\n";
  SourceManager sources;
  auto first = sources.addFile(path), second = sources.addFile(path);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first.value(), second.value());
  EXPECT_EQ(sources.describe({first.value(), 3, 7}), path + ":1:4");
  EXPECT_EQ(sources.text({first.value(), 3, 7}), "main");
  std::remove(path.c_str());
  auto missing = sources.addFile(path + ".gone");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find(path + ".gone"), std::string::npos);
}

TEST(Source, JoinCoversBothAndIgnoresInvalid) {
  const FileId file{0};
  EXPECT_EQ(join({file, 5, 7}, {file, 1, 6}), (SourceRange{file, 1, 7}));
  EXPECT_EQ(join({}, {file, 1, 6}), (SourceRange{file, 1, 6}));
}

}  // namespace
}  // namespace vortex::source
