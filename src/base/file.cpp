#include "base/file.h"

#include "base/text.h"

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
  if (::fsync(file.get()) != 0 && errno != EINVAL)
    return errno;
  return file.close() == 0 ? 0 : errno;
}

}  // namespace

Result<std::string> readFile(const std::string& path) {
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
  content.resize(static_cast<size_t>(status.st_size) + 1);
  for (;;) {
    if (used == content.size())
      content.resize(content.size() * 2);
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

Result<void> writeFileAtomic(const std::string& path, std::string_view content) {
  static std::atomic<unsigned> counter{0};
  std::string temporary = concat(path, ".tmp.", ::getpid(), ".", counter++);
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0)
    return fileError("create", path, errno);
  int code = writeAll(file, content);
  if (code == 0 && ::rename(temporary.c_str(), path.c_str()) != 0)
    code = errno;
  if (code == 0)
    return {};
  ::unlink(temporary.c_str());
  return fileError("write", path, code);
}

Result<void> createFolders(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code)
    return fileError("create", path, code.value());
  return {};
}

}  // namespace vortex::base
