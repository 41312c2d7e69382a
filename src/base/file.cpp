#include "base/file.h"

#include "base/memory.h"
#include "base/text.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace vortex::base {
namespace {

Error fileError(const char* action, const std::string& path, int code) {
  return {concat("cannot ", action, " ", path, ": ", std::strerror(code))};
}

class Descriptor {
public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0)
      ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  /// Network and quota file systems report a full disk only here.
  int close() { return ::close(std::exchange(value_, -1)); }

private:
  int value_;
};

/// 0, or the errno of the first failing step.
int writeAll(Descriptor& file, std::string_view content) {
  while (!content.empty()) {
    ssize_t written = ::write(file.get(), content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR)
        continue;
      return errno;
    }
    content.remove_prefix(static_cast<size_t>(written));
  }
  if (::fsync(file.get()) != 0 && errno != EINVAL && errno != EROFS &&
      errno != ENOTSUP)  // pipes and devices have nothing to sync
    return errno;
  return file.close() == 0 ? 0 : errno;
}

}  // namespace

Result<std::string> readFile(const std::string& path, size_t most) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0)
    return fileError("open", path, errno);
  struct stat status{};
  if (::fstat(file.get(), &status) != 0)
    return fileError("read", path, errno);
  if (S_ISDIR(status.st_mode))
    return fileError("read", path, EISDIR);
  std::string content;
  // The size is a hint only: pipes and /proc report 0.
  size_t used = 0;
  content.resize(std::min(static_cast<size_t>(status.st_size), most) + 1);
  for (;;) {
    if (used == most + 1)
      break;
    if (used == content.size())
      content.resize(std::min(content.size() * 2, most + 1));
    ssize_t got = ::read(file.get(), content.data() + used, content.size() - used);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return fileError("read", path, errno);
    if (got == 0)
      break;
    used += static_cast<size_t>(got);
  }
  content.resize(used);
  return content;
}

Result<std::string> readWholeFile(const std::string& path, std::optional<size_t> most) {
  const size_t limit = most.value_or(physicalMemory() / 2);
  Result<std::string> file = readFile(path, limit);
  if (file && file->size() > limit)
    return Error{concat("`", path, "` has more than ", limit, " bytes", most ? "" : ", half of this machine's memory")};
  return file;
}

namespace {

/// Where a chain of symbolic links ends, which may be a file that is not there yet.
Result<std::string> followLinks(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the kernel
  std::filesystem::path at = path;
  std::error_code code;
  for (int links = 0; std::filesystem::is_symlink(at, code); ++links) {
    if (links == kMostLinks)
      return fileError("write", path, ELOOP);
    std::filesystem::path target = std::filesystem::read_symlink(at, code);
    if (code)
      return fileError("write", path, code.value());
    at = target.is_absolute() ? target : at.parent_path() / target;
  }
  return at.string();
}

/// A temporary file in the same folder, synced, then renamed; 0 or the errno. `old`: whose mode and owner it takes; null where there is none.
/// `canTryInPlace`: nothing was written because the folder takes no file, or the old one's owner cannot be given.
int replaceFile(const std::string& path, std::string_view content, const struct stat* old, bool& canTryInPlace) {
  static std::atomic<unsigned> counter{0};
  std::string temporary = concat(path, ".tmp.", ::getpid(), ".", counter++);
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, old ? 0600 : 0666));
  canTryInPlace = old && (file.get() >= 0 || errno == EACCES || errno == EPERM || errno == EROFS);
  if (file.get() < 0)
    return errno;
  const bool isForeign = old && (old->st_uid != ::geteuid() || old->st_gid != ::getegid());
  int code = 0;
  if ((isForeign && ::fchown(file.get(), old->st_uid, old->st_gid) != 0) ||
      (old && ::fchmod(file.get(), old->st_mode & 07777) != 0)) {
    code = errno;
  } else {
    canTryInPlace = false;
    code = writeAll(file, content);
    if (code == 0 && ::rename(temporary.c_str(), path.c_str()) != 0)
      code = errno;
  }
  if (code != 0)
    ::unlink(temporary.c_str());
  return code;
}

int writeInPlace(const std::string& path, std::string_view content, int flags) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | flags));
  return file.get() < 0 ? errno : writeAll(file, content);
}

/// A file with other names keeps them only if it is written where it is; what was in it is written back if that fails.
Result<void> overwriteFile(const std::string& path, std::string_view content) {
  Result<std::string> before = readFile(path);
  if (!before)
    return before.takeError();
  const int code = writeInPlace(path, content, O_TRUNC);
  if (code == 0)
    return {};
  writeInPlace(path, *before, O_TRUNC);
  return fileError("write", path, code);
}

}  // namespace

Result<void> writeFileAtomic(const std::string& path, std::string_view content) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno != ENOENT)
      return fileError("create", path, errno);
    Result<std::string> target = followLinks(path);
    if (!target)
      return target.takeError();
    bool canTryInPlace = false;
    const int code = replaceFile(*target, content, nullptr, canTryInPlace);
    return code == 0 ? Result<void>() : fileError("create", path, code);
  }
  if (!S_ISREG(status.st_mode)) {
    const int code = writeInPlace(path, content, 0);
    return code == 0 ? Result<void>() : fileError("write", path, code);
  }
  // Root may write everything, but a file without any permission to write is meant to stay.
  if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0 || (status.st_mode & 0222) == 0)
    return fileError("write", path, EACCES);
  if (status.st_nlink > 1)
    return overwriteFile(path, content);
  Result<std::string> target = followLinks(path);
  if (!target)
    return target.takeError();
  bool canTryInPlace = false;
  const int code = replaceFile(*target, content, &status, canTryInPlace);
  if (code == 0)
    return {};
  return canTryInPlace ? overwriteFile(path, content) : fileError("write", path, code);
}

std::vector<std::string> stemsIn(const std::string& folder, std::string_view extension) {
  std::vector<std::string> stems;
  std::error_code isUnreadable;
  for (const auto& entry : std::filesystem::directory_iterator(folder.empty() ? "." : folder, isUnreadable))
    if (entry.path().extension() == extension)
      stems.push_back(entry.path().stem().string());
  std::ranges::sort(stems);
  return stems;
}

Result<void> createFolders(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code)
    return fileError("create", path, code.value());
  return {};
}

}  // namespace vortex::base
