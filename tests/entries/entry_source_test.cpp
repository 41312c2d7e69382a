// Entry points that are made one by one are those that are made together, whatever happens to the cache meanwhile.
#include "pipeline/entry_source.h"
#include "tests/entries/compiled.h"

#include <filesystem>
#include <fstream>
#include <thread>
#include <unistd.h>

namespace vortex::entries {
namespace {

namespace fs = std::filesystem;

std::string textOf(const std::vector<uint8_t>& code) { return {code.begin(), code.end()}; }

/// The statements behind the header.
std::string bodyOf(const std::string& ptx) {
  const size_t entry = ptx.find(".visible .entry");
  return entry == std::string::npos ? "no entry point" : ptx.substr(entry);
}

class Entries : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "vortex_entries_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    ::setenv("VORTEX_CACHE_DIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("VORTEX_CACHE_DIR");
    fs::remove_all(folder_);
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& item : fs::recursive_directory_iterator(folder_))
      if (item.is_regular_file() && item.path().filename() != "lock")
        found.push_back(item.path());
    return found;
  }
  std::string folder_;
};

TEST_F(Entries, AreMadeAloneAsTheyAreMadeTogether) {
  for (const char* target : {"sm_80", "sm_90"}) {
    Compiled compiled(target, false);
    for (size_t kernel = 0; kernel < compiled.kernels().size(); ++kernel) {
      const std::string all = textOf(compiled.compile(kernel)->code);
      auto planned = compiled.plan(kernel);
      EXPECT_EQ(planned.entries == nullptr, planned.kernel->absent.empty());
      for (const std::string& symbol : planned.kernel->absent) {
        const auto made = planned.entries->make(symbol);
        ASSERT_TRUE(made) << made.error().message;
        EXPECT_NE(all.find(bodyOf(textOf(*made))), std::string::npos) << symbol;
      }
      if (planned.entries)
        EXPECT_FALSE(planned.entries->make("nothing"));
    }
  }
}

TEST_F(Entries, OfSeveralThreadsAreMadeOnceAndKept) {
  Compiled compiled("sm_90", true);
  auto planned = compiled.plan(1);
  const std::vector<std::string>& symbols = planned.kernel->absent;
  ASSERT_GE(symbols.size(), 2u);
  const size_t before = files().size();
  std::vector<std::thread> threads;
  std::vector<std::string> texts(4);
  for (size_t i = 0; i < texts.size(); ++i)
    threads.emplace_back([&, i] { texts[i] = textOf(planned.entries->make(symbols[i % 2]).value()); });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(texts[0], texts[2]);
  EXPECT_EQ(texts[1], texts[3]);
  EXPECT_NE(texts[0], texts[1]);
  EXPECT_EQ(files().size(), before + 2);
  // A later process finds plan and code.
  Compiled later("sm_90", true);
  auto again = later.plan(1);
  EXPECT_EQ(artifact::serialize(*again.kernel), artifact::serialize(*planned.kernel));
  EXPECT_EQ(textOf(again.entries->make(symbols[1]).value()), texts[1]);
  EXPECT_EQ(files().size(), before + 2);
}

TEST_F(Entries, AreRightWhateverTheCacheHolds) {
  Compiled compiled("sm_80", true);
  auto planned = compiled.plan(1);
  const std::string symbol = planned.kernel->absent[0], wanted = textOf(planned.entries->make(symbol).value());
  for (const fs::path& file : files()) {  // a bit of each flips
    std::fstream bits(file, std::ios::in | std::ios::out | std::ios::binary);
    bits.seekg(static_cast<std::streamoff>(fs::file_size(file) / 2));
    const char byte = static_cast<char>(bits.peek() ^ 4);
    bits.seekp(static_cast<std::streamoff>(fs::file_size(file) / 2));
    bits.put(byte);
  }
  Compiled damaged("sm_80", true);
  auto again = damaged.plan(1);
  EXPECT_EQ(textOf(again.entries->make(symbol).value()), wanted);
  // The plan was read; then the whole cache goes.
  Compiled emptied("sm_80", true);
  auto kept = emptied.plan(1);
  fs::remove_all(folder_);
  EXPECT_EQ(textOf(kept.entries->make(symbol).value()), wanted);
  EXPECT_TRUE(emptied.warnings.empty());
}

TEST_F(Entries, OfACacheThatCannotBeWrittenAreWarnedAboutOnce) {
  fs::remove_all(folder_);
  std::ofstream(folder_) << "no folder";
  Compiled compiled("sm_80", true);
  auto planned = compiled.plan(1);
  EXPECT_TRUE(planned.entries->make(planned.kernel->absent[0]));
  EXPECT_TRUE(planned.entries->make(planned.kernel->absent[1]));
  EXPECT_EQ(compiled.warnings.size(), 1u);
}

}  // namespace
}  // namespace vortex::entries
