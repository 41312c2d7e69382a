#include "base/file.h"

#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace vortex::base;

class File : public testing::Test {
protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "vortex_file_test_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  size_t filesInFolder() {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  std::string folder_;
};

TEST_F(File, WhatWasWrittenIsReadBackWithAnyBytes) {
  std::string bytes(100'000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(i * 31);
  ASSERT_TRUE(writeFileAtomic(folder_ + "/a", bytes).ok());
  EXPECT_EQ(readFile(folder_ + "/a").value(), bytes);
  ASSERT_TRUE(writeFileAtomic(folder_ + "/a", "").ok());
  EXPECT_EQ(readFile(folder_ + "/a").value(), "");
  EXPECT_EQ(filesInFolder(), 1u);
}

TEST_F(File, NoMoreIsReadThanWasAskedFor) {
  ASSERT_TRUE(writeFileAtomic(folder_ + "/a", "0123456789").ok());
  EXPECT_EQ(readFile(folder_ + "/a", 10).value(), "0123456789");
  EXPECT_EQ(readFile(folder_ + "/a", 9).value(), "0123456789");
  EXPECT_EQ(readFile(folder_ + "/a", 4).value(), "01234");
  EXPECT_EQ(readFile("/dev/zero", 1000).value(), std::string(1001, '\0'));
  EXPECT_EQ(readFile("/dev/null", 1000).value(), "");
  EXPECT_EQ(readWholeFile(folder_ + "/a", 10).value(), "0123456789");
  EXPECT_EQ(readWholeFile(folder_ + "/a").value(), "0123456789");
  EXPECT_EQ(readWholeFile("/dev/zero", 1000).error().message, "`/dev/zero` has more than 1000 bytes");
}

TEST_F(File, ErrorsNameThePathAndTheReason) {
  EXPECT_NE(readFile(folder_ + "/none").error().message.find("none: No such file"), std::string::npos);
  EXPECT_NE(readFile(folder_).error().message.find("Is a directory"), std::string::npos);
  EXPECT_FALSE(writeFileAtomic(folder_ + "/no/such", "x").ok());
}

TEST_F(File, AFailedWriteLeavesNothingBehind) {
  // A folder in the way makes the rename fail after the content was written.
  ASSERT_TRUE(createFolders(folder_ + "/taken/inner").ok());
  EXPECT_FALSE(writeFileAtomic(folder_ + "/taken", "x").ok());
  EXPECT_EQ(filesInFolder(), 1u);
}

TEST_F(File, ARegularFileKeepsItsMode) {
  for (mode_t mode : {0640, 0600, 0755, 0777, 0222}) {
    const std::string path = folder_ + "/m" + std::to_string(mode);
    ASSERT_TRUE(writeFileAtomic(path, "old").ok());
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    ASSERT_TRUE(writeFileAtomic(path, "new").ok());
    struct stat status{};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, mode);
    EXPECT_EQ(status.st_size, 3);
  }
}

TEST_F(File, AFileWithoutPermissionToWriteStays) {
  const std::string path = folder_ + "/kept";
  ASSERT_TRUE(writeFileAtomic(path, "old").ok());
  for (mode_t mode : {0444, 0400, 0555}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    auto written = writeFileAtomic(path, "new");
    ASSERT_FALSE(written.ok());
    EXPECT_NE(written.error().message.find("kept: Permission denied"), std::string::npos) << written.error().message;
    EXPECT_EQ(readFile(path).value(), "old");
  }
  EXPECT_EQ(filesInFolder(), 1u);
}

TEST_F(File, StemsAreThoseWithTheExtensionInOrder) {
  for (const char* name : {"/b.vx", "/a.vx", "/c.txt", "/d"})
    ASSERT_TRUE(writeFileAtomic(folder_ + name, "").ok());
  EXPECT_EQ(stemsIn(folder_, ".vx"), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(stemsIn(folder_ + "/missing", ".vx").empty());
}

TEST_F(File, SymbolicLinksAreWrittenThrough) {
  namespace fs = std::filesystem;
  fs::create_directory(folder_ + "/inner");
  ASSERT_TRUE(writeFileAtomic(folder_ + "/inner/file", "old").ok());
  fs::create_symlink("inner/file", folder_ + "/first");
  fs::create_symlink(folder_ + "/first", folder_ + "/second");
  fs::create_symlink("inner/fresh", folder_ + "/dangling");
  fs::create_symlink("loop", folder_ + "/loop");
  ASSERT_TRUE(writeFileAtomic(folder_ + "/second", "new").ok());
  EXPECT_TRUE(fs::is_symlink(folder_ + "/first") && fs::is_symlink(folder_ + "/second"));
  EXPECT_EQ(readFile(folder_ + "/inner/file").value(), "new");
  ASSERT_TRUE(writeFileAtomic(folder_ + "/dangling", "made").ok());
  EXPECT_TRUE(fs::is_symlink(folder_ + "/dangling"));
  EXPECT_EQ(readFile(folder_ + "/inner/fresh").value(), "made");
  EXPECT_FALSE(writeFileAtomic(folder_ + "/loop", "x").ok());
}

TEST_F(File, OtherNamesOfAFileSeeWhatIsWritten) {
  ASSERT_TRUE(writeFileAtomic(folder_ + "/a", "a longer text").ok());
  std::filesystem::create_hard_link(folder_ + "/a", folder_ + "/b");
  ASSERT_TRUE(writeFileAtomic(folder_ + "/b", "short").ok());
  EXPECT_EQ(readFile(folder_ + "/a").value(), "short");
  EXPECT_EQ(std::filesystem::hard_link_count(folder_ + "/a"), 2u);
}

TEST_F(File, PipesAndDevicesAreOpenedAndWritten) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0666), 0);
  std::string got;
  std::thread reader([&] { got = readFile(pipe).value(); });
  ASSERT_TRUE(writeFileAtomic(pipe, "through").ok());
  reader.join();
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  ASSERT_TRUE(writeFileAtomic("/dev/null", "gone").ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  if (::access("/dev/full", W_OK) == 0)
    EXPECT_FALSE(writeFileAtomic("/dev/full", "content").ok());
}

TEST_F(File, ConcurrentWritersLeaveOneWholeContent) {
  std::vector<std::thread> writers;
  for (char letter = 'a'; letter < 'e'; ++letter)
    writers.emplace_back([this, letter] {
      for (int i = 0; i < 20; ++i)
        ASSERT_TRUE(writeFileAtomic(folder_ + "/shared", std::string(50'000, letter)).ok());
    });
  for (std::thread& writer : writers)
    writer.join();
  std::string content = readFile(folder_ + "/shared").value();
  EXPECT_EQ(content, std::string(50'000, content[0]));
  EXPECT_EQ(filesInFolder(), 1u);
}

}  // namespace
