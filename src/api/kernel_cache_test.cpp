#include "vortex/kernel_cache.h"

#include "base/file.h"
#include "base/fresh_seed.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <random>

namespace {

using namespace vortex;

class KernelCacheTest : public testing::Test {
protected:
  KernelCacheTest() {
    std::string pattern = testing::TempDir() + "kernel_cache_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~KernelCacheTest() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, std::string_view content) {
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(base::writeFileAtomic(path, content));
    return path;
  }

  std::string folder_;
};

TEST_F(KernelCacheTest, BytesAreFoundByKeyAndByOtherObjects) {
  std::mt19937 random{base::freshSeed()};
  std::vector<uint8_t> bytes(1000);
  for (uint8_t& byte : bytes)
    byte = static_cast<uint8_t>(random());
  const KernelCache cache(folder_);
  EXPECT_FALSE(cache.get("key"));
  ASSERT_TRUE(cache.put("key", bytes));
  EXPECT_EQ(KernelCache(folder_).get("key"), bytes);
  EXPECT_FALSE(cache.get("kez"));
}

TEST_F(KernelCacheTest, AFolderThatCannotBeMadeIsToldOnce) {
  const std::string file = write("file", "no folder");
  const KernelCache cache(file + "/cache");
  const Result<void> first = cache.put("key", {});
  ASSERT_FALSE(first);
  EXPECT_NE(first.error().message.find(file), std::string::npos) << first.error().message;
  EXPECT_TRUE(cache.put("key", {}));
  EXPECT_FALSE(cache.get("key"));
}

/// What `readelf` reads, which shares no code with ours.
std::string idByReadelf(const std::string& path) {
  std::string text;
  FILE* pipe = ::popen(("readelf -n " + path + " 2>/dev/null").c_str(), "r");
  for (char buffer[256]; pipe && std::fgets(buffer, sizeof buffer, pipe);)
    text += buffer;
  if (pipe)
    ::pclose(pipe);
  const size_t begin = text.find("Build ID: ");
  return begin == std::string::npos ? "" : text.substr(begin + 10, text.find('\n', begin) - begin - 10);
}

TEST_F(KernelCacheTest, TheIdOfAProgramIsItsBuildId) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string expected = idByReadelf(self);
  if (expected.empty())
    GTEST_SKIP() << "no readelf";
  EXPECT_EQ(libraryId(self).value(), expected);
}

TEST_F(KernelCacheTest, FilesThatAreNoLibrariesHaveNoId) {
  EXPECT_FALSE(libraryId(folder_ + "/missing.so"));
  EXPECT_FALSE(libraryId(write("text", "not a library")));
  EXPECT_FALSE(libraryId(write("empty", "")));
  const std::string self = base::readFile("/proc/self/exe", 4096).value();
  std::mt19937 random{base::freshSeed()};
  for (int i = 0; i < 200; ++i) {  // cut off or damaged anywhere: an id or an error
    std::string content = self.substr(0, random() % self.size());
    if (!content.empty())
      content[random() % content.size()] = static_cast<char>(random());
    (void)libraryId(write("damaged", content));
  }
}

}  // namespace
