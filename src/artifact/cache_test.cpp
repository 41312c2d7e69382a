#include "artifact/cache.h"

#include "base/file.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using vortex::artifact::Cache;
namespace fs = std::filesystem;

std::vector<uint8_t> value(uint32_t seed, size_t size) {
  std::vector<uint8_t> bytes(size);
  for (size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<uint8_t>(seed * 131 + i * 7 + (i >> 8));
  return bytes;
}

class CacheTest : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "vortex_cache_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& item : fs::recursive_directory_iterator(directory_))
      if (item.is_regular_file() && item.path().filename() != "lock")
        found.push_back(item.path());
    return found;
  }

  /// Runs `body` in a child process; its return value is the exit status.
  template <typename Body> pid_t spawn(Body body) {
    const pid_t child = ::fork();
    if (child == 0)
      ::_exit(body());
    return child;
  }
  static int wait(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }

  std::string directory_;
};

TEST_F(CacheTest, ReturnsWhatWasStoredAlsoFromAnotherObject) {
  Cache first({.directory = directory_}), second({.directory = directory_});
  EXPECT_FALSE(first.get("key"));
  ASSERT_TRUE(first.put("key", value(1, 1000)));
  EXPECT_EQ(first.get("key"), value(1, 1000));
  EXPECT_EQ(second.get("key"), value(1, 1000));
  ASSERT_TRUE(second.put("key", value(2, 10)));
  EXPECT_EQ(first.get("key"), value(2, 10));
  ASSERT_TRUE(first.put("empty", {}));
  EXPECT_EQ(first.get("empty"), value(0, 0));
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(CacheTest, EveryTruncationIsAMissThatAPutReplaces) {
  Cache cache({.directory = directory_});
  ASSERT_TRUE(cache.put("key", value(1, 100)));
  const fs::path file = files().at(0);
  const auto whole = fs::file_size(file);
  for (uintmax_t size = 0; size < whole; ++size) {
    fs::resize_file(file, size);
    EXPECT_FALSE(cache.get("key")) << size;
    ASSERT_TRUE(cache.put("key", value(1, 100)));
    EXPECT_EQ(cache.get("key"), value(1, 100));
  }
  EXPECT_EQ(cache.counters().damaged, whole);
}

TEST_F(CacheTest, EveryFlippedByteAndAppendedBytesAreMisses) {
  Cache cache({.directory = directory_});
  ASSERT_TRUE(cache.put("key", value(1, 64)));
  const fs::path file = files().at(0);
  const std::string intact = *vortex::base::readFile(file.string());
  for (size_t at = 0; at < intact.size() + 1; ++at) {
    std::string damaged = intact;
    if (at < intact.size())
      damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    else
      damaged += std::string(16, '\0');
    std::ofstream(file, std::ios::binary) << damaged;
    EXPECT_FALSE(cache.get("key")) << at;
  }
}

TEST_F(CacheTest, ManyProcessesAndThreadsSeeCompleteEntriesOnly) {
  constexpr int kProcesses = 6, kKeys = 8, kRounds = 150;
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process)
    children.push_back(spawn([&] {
      Cache cache({.directory = directory_, .maxBytes = 60000});  // eviction runs meanwhile
      std::atomic<int> bad{0};
      const auto work = [&](int salt) {
        for (int round = 0; round < kRounds; ++round) {
          const int key = (round * 5 + salt) % kKeys;
          const std::string name = "key" + std::to_string(key);
          if (const auto found = cache.get(name); found && *found != value(key, 3000 + key * 1000))
            ++bad;
          if (!cache.put(name, value(key, 3000 + key * 1000)))
            ++bad;
        }
      };
      std::thread other(work, process + 1);
      work(process);
      other.join();
      return bad.load() == 0 ? 0 : 1;
    }));
  for (pid_t child : children)
    EXPECT_EQ(wait(child), 0);
  for (const fs::path& file : files())
    EXPECT_EQ(file.string().find(".tmp."), std::string::npos) << file;
}

TEST_F(CacheTest, AWriterKilledAtAnyTimeLeavesNoBrokenEntry) {
  for (int round = 0; round < 10; ++round) {
    const pid_t child = spawn([&] {
      Cache cache({.directory = directory_});
      for (;;)
        (void)cache.put("key", value(3, 200000));
      return 0;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(2 + round));
    ::kill(child, SIGKILL);
    wait(child);
    Cache cache({.directory = directory_});
    if (const auto found = cache.get("key")) {
      EXPECT_EQ(*found, value(3, 200000));
    }
    EXPECT_EQ(cache.counters().damaged, 0u);
  }
}

TEST_F(CacheTest, TheLeastRecentlyUsedEntriesAreEvicted) {
  Cache cache({.directory = directory_, .maxBytes = 10 * 10100});
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(cache.put("key" + std::to_string(i), value(i, 10000)));
    std::this_thread::sleep_for(std::chrono::milliseconds(8));  // file time stamps advance with the kernel's tick
  }
  EXPECT_TRUE(cache.get("key0"));  // used again: no longer the oldest
  std::this_thread::sleep_for(std::chrono::milliseconds(8));
  ASSERT_TRUE(cache.put("key9", value(9, 10000)));
  ASSERT_TRUE(cache.put("key10", value(10, 10000)));
  EXPECT_TRUE(cache.get("key0"));
  EXPECT_TRUE(cache.get("key10"));
  EXPECT_FALSE(cache.get("key1"));
  EXPECT_GE(cache.counters().evicted, 1u);
  EXPECT_LE(files().size(), 10u);
}

TEST_F(CacheTest, TemporaryFilesOfDeadWritersAreRemovedWhenOld) {
  fs::create_directories(directory_ + "/ab");
  const std::string old = directory_ + "/ab/cd.tmp.x", fresh = directory_ + "/ab/ef.tmp.y";
  std::ofstream(old) << "old";
  std::ofstream(fresh) << "fresh";
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));
  Cache cache({.directory = directory_});
  ASSERT_TRUE(cache.put("key", value(1, 10)));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(fresh));
}

TEST_F(CacheTest, ADirectoryWithoutWritePermissionIsReportedOnceAndStillReads) {
  ASSERT_TRUE(Cache({.directory = directory_}).put("known", value(1, 10)));
  fs::permissions(directory_, fs::perms(0555));
  for (const auto& item : fs::directory_iterator(directory_))
    if (item.is_directory())
      fs::permissions(item.path(), fs::perms(0555));
  for (const fs::path& file : files())
    fs::permissions(file, fs::perms(0444));
  const int status = wait(spawn([&] {
    if (::getuid() == 0 && ::setuid(65534) != 0)  // root may write anywhere
      return 9;
    Cache cache({.directory = directory_});
    const auto first = cache.put("key", value(1, 10));
    if (first.ok() || first.error().message.find(directory_) == std::string::npos)
      return 1;
    if (!cache.put("key", value(1, 10)).ok())
      return 2;
    if (cache.get("key"))
      return 3;
    return cache.get("known") == value(1, 10) ? 0 : 4;
  }));
  fs::permissions(directory_, fs::perms(0755));
  for (const auto& item : fs::directory_iterator(directory_))
    if (item.is_directory())
      fs::permissions(item.path(), fs::perms(0755));
  if (status == 9)
    GTEST_SKIP() << "cannot give up root";
  EXPECT_EQ(status, 0);
}

TEST_F(CacheTest, AFullDiskIsReportedOnceWithTheSizeAndLeavesNothing) {
  const int status = wait(spawn([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};  // writes beyond 4096 bytes fail, as on a full disk
    ::setrlimit(RLIMIT_FSIZE, &limit);
    Cache cache({.directory = directory_});
    const auto failed = cache.put("key", value(1, 100000));
    if (failed.ok() || failed.error().message.find("1000") == std::string::npos)
      return 1;
    return cache.put("key", value(1, 100000)).ok() && !cache.get("key") ? 0 : 2;
  }));
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(files().empty());
}

TEST_F(CacheTest, OnlyRegularFilesAreOpened) {
  const int status = wait(spawn([&] {
    ::alarm(20);  // a pipe without a writer would be waited for
    Cache cache({.directory = directory_, .maxBytes = 1000});
    if (!cache.put("key", value(1, 10)))
      return 1;
    const std::string entry = files().at(0);
    const auto replaced = [&](auto make) {
      ::unlink(entry.c_str());
      make();
      return !cache.get("key") && cache.put("key", value(2, 10)).ok() && cache.get("key").has_value();
    };
    if (!replaced([&] { ::mkfifo(entry.c_str(), 0666); }))
      return 2;
    if (!replaced([&] {
          ::mkfifo((directory_ + "/pipe").c_str(), 0666);
          fs::create_symlink(directory_ + "/pipe", entry);
        }))
      return 3;
    if (!replaced([&] { fs::create_symlink("/dev/zero", entry); }))
      return 4;
    ::unlink((directory_ + "/lock").c_str());
    ::mkfifo((directory_ + "/lock").c_str(), 0666);
    for (int i = 0; i < 10; ++i)
      if (!cache.put("large" + std::to_string(i), value(static_cast<uint32_t>(i), 900)))
        return 5;
    return 0;
  }));
  EXPECT_EQ(status, 0);
}

TEST_F(CacheTest, ImpossibleDirectoriesAreErrorsNotCrashes) {
  for (const char* directory : {"/proc/no/such/cache", "/dev/full", "/dev/null/x"}) {
    Cache cache({.directory = directory});
    EXPECT_FALSE(cache.put("key", value(1, 10)).ok()) << directory;
    EXPECT_TRUE(cache.put("key", value(1, 10)).ok());
    EXPECT_FALSE(cache.get("key"));
  }
}

TEST_F(CacheTest, TheDefaultDirectoryFollowsTheEnvironment) {
  const int status = wait(spawn([] {
    ::setenv("HOME", "/home/someone", 1);
    ::unsetenv("XDG_CACHE_HOME");
    ::unsetenv("VORTEX_CACHE_DIR");
    if (Cache::defaultDirectory() != "/home/someone/.cache/vortex")
      return 1;
    ::setenv("XDG_CACHE_HOME", "/var/x", 1);
    if (Cache::defaultDirectory() != "/var/x/vortex")
      return 2;
    ::setenv("VORTEX_CACHE_DIR", "/own", 1);
    return Cache::defaultDirectory() == "/own" ? 0 : 3;
  }));
  EXPECT_EQ(status, 0);
}

}  // namespace
