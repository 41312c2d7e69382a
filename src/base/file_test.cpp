#include "base/file.h"

#include <filesystem>
#include <gtest/gtest.h>
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

TEST_F(File, AFullDiskIsAnErrorNotAShortFile) {
  // /dev/full cannot be renamed over; write through a link target is not atomic, so test only the reader-visible outcome.
  if (::access("/dev/full", W_OK) != 0)
    GTEST_SKIP() << "no /dev/full";
  EXPECT_FALSE(writeFileAtomic("/dev/full/x", "content").ok());
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
