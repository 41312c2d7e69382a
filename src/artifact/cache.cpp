// One file per entry: <directory>/<2 hex digits>/<30 hex digits>. File: magic, u64 key length, u64 value length, key, value, checksum.
// Writers fill a temporary file of their own and rename it: no locks on the way of a hit. Nothing is synced: after a power
// failure the checksum turns a hole into a miss. Use is recorded in the modification time, because access times are
// usually off. Eviction takes a lock without waiting: whoever holds it does the work for everyone.
#include "artifact/cache.h"

#include "artifact/checksum.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <mutex>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace vortex::artifact {

namespace {

using base::concat;

constexpr char kEntryMagic[8] = {'v', 'o', 'r', 't', 'e', 'x', 'C', '1'};
constexpr size_t kEntryHeaderBytes = sizeof kEntryMagic + 2 * sizeof(uint64_t);
constexpr char kTemporaryMark[] = ".tmp.";
constexpr time_t kStaleSeconds = 3600;  ///< a temporary file this old has lost its writer

class File {
public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0)
      ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  explicit operator bool() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }
  /// Network file systems and quotas report a full disk only here.
  bool close() {
    const int descriptor = std::exchange(descriptor_, -1);
    return ::close(descriptor) == 0;
  }

private:
  int descriptor_;
};

bool isRegular(int file) {
  struct stat status;
  return ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
}

bool readAll(int file, std::vector<uint8_t>& bytes) {
  struct stat status;
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
    return false;
  bytes.resize(static_cast<size_t>(status.st_size));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::read(file, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

bool writeAll(int file, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return true;
}

std::vector<uint8_t> encode(std::string_view key, std::span<const uint8_t> value) {
  const uint64_t lengths[2] = {key.size(), value.size()};
  std::vector<uint8_t> bytes(kEntryHeaderBytes + key.size() + value.size());
  uint8_t* at = bytes.data();
  const auto add = [&](const void* from, size_t count) {
    if (count != 0)
      std::memcpy(at, from, count);
    at += count;
  };
  add(kEntryMagic, sizeof kEntryMagic);
  add(lengths, sizeof lengths);
  add(key.data(), key.size());
  add(value.data(), value.size());
  const Checksum sum = checksum(bytes);
  bytes.insert(bytes.end(), sum.begin(), sum.end());
  return bytes;
}

/// The value if the file is intact and belongs to the key.
std::optional<std::vector<uint8_t>> decode(std::string_view key, const std::vector<uint8_t>& bytes) {
  if (bytes.size() < kEntryHeaderBytes + sizeof(Checksum) ||
      std::memcmp(bytes.data(), kEntryMagic, sizeof kEntryMagic) != 0)
    return std::nullopt;
  uint64_t lengths[2];
  std::memcpy(lengths, bytes.data() + sizeof kEntryMagic, sizeof lengths);
  const uint64_t content = bytes.size() - kEntryHeaderBytes - sizeof(Checksum);
  if (lengths[0] != key.size() || lengths[0] > content || lengths[1] != content - lengths[0])
    return std::nullopt;
  const Checksum sum = checksum({bytes.data(), bytes.size() - sizeof(Checksum)});
  if (!std::equal(sum.begin(), sum.end(), bytes.end() - sizeof(Checksum)))
    return std::nullopt;
  const uint8_t* stored = bytes.data() + kEntryHeaderBytes;
  if (std::memcmp(stored, key.data(), key.size()) != 0)
    return std::nullopt;
  return std::vector<uint8_t>(stored + key.size(), stored + content);
}

struct Entry {
  std::string path;
  uint64_t bytes;
  timespec used;
};

void listFolder(const std::string& folder, std::vector<Entry>& entries, std::vector<std::string>* subfolders) {
  DIR* directory = ::opendir(folder.c_str());
  if (!directory)
    return;
  while (const dirent* item = ::readdir(directory)) {
    if (item->d_name[0] == '.' && (item->d_name[1] == 0 || (item->d_name[1] == '.' && item->d_name[2] == 0)))
      continue;
    const std::string path = folder + "/" + item->d_name;
    struct stat status;
    if (::lstat(path.c_str(), &status) != 0)
      continue;
    if (S_ISDIR(status.st_mode) && subfolders)
      subfolders->push_back(path);
    else if (S_ISREG(status.st_mode) &&
             !subfolders)  // files beside the subfolders (the lock, a user's own) are not ours to remove
      entries.push_back({path, static_cast<uint64_t>(status.st_size), status.st_mtim});
  }
  ::closedir(directory);
}

std::vector<Entry> listEntries(const std::string& directory) {
  std::vector<Entry> entries, ignored;
  std::vector<std::string> subfolders;
  listFolder(directory, ignored, &subfolders);
  for (const std::string& folder : subfolders)
    listFolder(folder, entries, nullptr);
  return entries;
}

}  // namespace

struct Cache::State {
  std::atomic<uint64_t> hits{0}, misses{0}, damaged{0}, stored{0}, evicted{0};
  std::atomic<bool> writingOff{false};
  std::mutex sizeMutex;
  bool sizeKnown = false;
  uint64_t estimatedBytes = 0;  ///< what this process believes is stored; re-read before anything is removed
};

Cache::Cache(Options options)
    : directory_(options.directory.empty() ? defaultDirectory() : std::move(options.directory)),
      maxBytes_(options.maxBytes), state_(std::make_unique<State>()) {}

Cache::~Cache() = default;

std::string Cache::defaultDirectory() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::string own = variable("VORTEX_CACHE_DIR"); !own.empty())
    return own;
  // The XDG specification: relative values are invalid and ignored.
  if (const std::string shared = variable("XDG_CACHE_HOME"); shared.starts_with('/'))
    return shared + "/vortex";
  std::string home = variable("HOME");
  if (home.empty())
    if (const passwd* user = ::getpwuid(::getuid()); user && user->pw_dir)
      home = user->pw_dir;
  return home.empty() ? "" : home + "/.cache/vortex";
}

std::string Cache::path(std::string_view key) const {
  const std::string name = base::contentHash(key);
  return concat(directory_, "/", name.substr(0, 2), "/", name.substr(2));
}

std::optional<std::vector<uint8_t>> Cache::get(std::string_view key) {
  const std::string file = path(key);
  // Without waiting: what lies here may be a pipe. `readAll` takes regular files only.
  const File entry(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  std::optional<std::vector<uint8_t>> value;
  if (entry) {
    std::vector<uint8_t> bytes;
    if (readAll(entry.get(), bytes))
      value = decode(key, bytes);
    if (value) {
      ::futimens(entry.get(), nullptr);  // best effort: a read-only cache is still a cache
    } else {
      ++state_->damaged;
      ::unlink(file.c_str());  // if another process has just replaced it, that costs one more compilation
    }
  }
  ++(value ? state_->hits : state_->misses);
  return value;
}

Result<void> Cache::put(std::string_view key, std::span<const uint8_t> bytes) {
  if (state_->writingOff.load(std::memory_order_relaxed))
    return {};
  Result<void> stored = store(key, bytes);
  if (stored) {
    ++state_->stored;
    evict();
    return stored;
  }
  if (state_->writingOff.exchange(true))
    return {};
  return stored.error().after("kernels are not cached: ");
}

Result<void> Cache::store(std::string_view key, std::span<const uint8_t> bytes) {
  if (directory_.empty())
    return Error{"no cache directory: VORTEX_CACHE_DIR, XDG_CACHE_HOME and HOME are not set"};
  const std::string target = path(key);
  if (Result<void> made = base::createFolders(target.substr(0, target.rfind('/'))); !made)
    return made;
  std::string temporary = concat(target, kTemporaryMark, "XXXXXX");
  const std::vector<uint8_t> content = encode(key, bytes);
  File file(::mkostemp(temporary.data(), O_CLOEXEC));  // unique across threads, processes and containers
  if (!file)
    return Error{concat("cannot create ", temporary, ": ", std::strerror(errno))};
  const bool complete =
      writeAll(file.get(), content) && file.close() && ::rename(temporary.c_str(), target.c_str()) == 0;
  if (!complete) {
    const int reason = errno;
    ::unlink(temporary.c_str());
    return Error{concat("cannot write ", content.size(), " bytes to ", target, ": ", std::strerror(reason))};
  }
  const std::lock_guard lock(state_->sizeMutex);
  state_->estimatedBytes += content.size();
  return {};
}

void Cache::evict() {
  const std::lock_guard lock(state_->sizeMutex);
  if (state_->sizeKnown && state_->estimatedBytes <= maxBytes_)
    return;
  const File guard(
      ::open(concat(directory_, "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644));
  if (!guard || !isRegular(guard.get()) || ::flock(guard.get(), LOCK_EX | LOCK_NB) != 0)
    return;
  std::vector<Entry> entries = listEntries(directory_);
  uint64_t total = 0;
  for (const Entry& entry : entries)
    total += entry.bytes;
  // Down to nine tenths, so that a full cache is not listed again at every put.
  const uint64_t goal = total > maxBytes_ ? maxBytes_ - maxBytes_ / 10 : maxBytes_;
  std::sort(entries.begin(), entries.end(), [](const Entry& lhs, const Entry& rhs) {
    return std::pair(lhs.used.tv_sec, lhs.used.tv_nsec) < std::pair(rhs.used.tv_sec, rhs.used.tv_nsec);
  });
  const time_t now = ::time(nullptr);
  for (const Entry& entry : entries) {
    const bool temporary = entry.path.find(kTemporaryMark, entry.path.rfind('/')) != std::string::npos;
    if (temporary ? now - entry.used.tv_sec < kStaleSeconds : total <= goal)
      continue;
    if (::unlink(entry.path.c_str()) == 0) {
      total -= entry.bytes;
      state_->evicted += temporary ? 0 : 1;
    }
  }
  state_->sizeKnown = true;
  state_->estimatedBytes = total;
}

Cache::Counters Cache::counters() const {
  return {state_->hits, state_->misses, state_->damaged, state_->stored, state_->evicted};
}

}  // namespace vortex::artifact
