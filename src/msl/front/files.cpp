#include "msl/front/files.h"

#include "msl/front/shim.h"

#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Path.h>

#include <algorithm>

namespace vortex::msl::front {

using llvm::Twine;

static std::string absolute(const Twine& path) {
  llvm::SmallString<256> text;
  path.toVector(text);
  llvm::sys::fs::make_absolute(text);
  llvm::sys::path::remove_dots(text, true);
  return std::string(text);
}

namespace {

class MemoryFile : public llvm::vfs::File {
public:
  MemoryFile(llvm::StringRef text, llvm::vfs::Status status) : text_(text), status_(std::move(status)) {}
  llvm::ErrorOr<llvm::vfs::Status> status() override { return status_; }
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> getBuffer(const Twine& name, int64_t, bool needsEnd,
                                                               bool) override {
    llvm::SmallString<256> path;
    return llvm::MemoryBuffer::getMemBuffer(text_, name.toStringRef(path), needsEnd);
  }
  std::error_code close() override { return {}; }

private:
  llvm::StringRef text_;  // of the file system, which Clang's buffers do not outlive
  llvm::vfs::Status status_;
};

llvm::vfs::Status describe(const Twine& path, llvm::StringRef text) {
  llvm::vfs::Status status(path, {1, llvm::hash_value(absolute(path))}, {}, 0, 0, text.size(),
                           llvm::sys::fs::file_type::regular_file, llvm::sys::fs::all_read);
  return status;
}

}  // namespace

SourceFiles::SourceFiles() : ProxyFileSystem(llvm::vfs::getRealFileSystem()) {
  for (const auto& [path, text] : shimFiles())
    shim_[path] = text;
}

SourceFiles::SourceFiles(const std::string& name, const std::string& text, const std::vector<std::string>& definitions,
                         llvm::StringRef precompiled, const Widened& widened)
    : SourceFiles() {
  widened_ = widened;
  if (!precompiled.empty())
    shim_[kPrecompiled] = precompiled;
  const std::string own = absolute(name);
  sources_[own] = prelex(text, widenedIn(own));
  std::string lines;
  for (const std::string& each : definitions) {
    const size_t equals = each.find('='), line = lines.size();
    lines += "#define " + each.substr(0, equals) + " " + (equals == std::string::npos ? "1" : each.substr(equals + 1));
    std::replace(lines.begin() + static_cast<ptrdiff_t>(line), lines.end(), '\n', ' ');
    lines += "\n";
  }
  definitions_ = prelex(lines).text();
  shim_[kDefinitions] = definitions_;
}

std::string SourceFiles::key(llvm::StringRef path) { return absolute(path); }

const std::vector<Range>& SourceFiles::widenedIn(const std::string& key) const {
  static const std::vector<Range> none;
  const auto found = widened_.find(key);
  return found == widened_.end() ? none : found->second;
}

std::optional<llvm::StringRef> SourceFiles::text(const Twine& path) {
  std::string key = absolute(path);
  if (auto found = shim_.find(key); found != shim_.end())
    return found->second;
  auto known = sources_.find(key);
  if (known == sources_.end()) {
    auto status = getUnderlyingFS().status(path);
    if (!status || !status->isRegularFile())
      return std::nullopt;
    auto read = getUnderlyingFS().getBufferForFile(path);
    if (!read)
      return std::nullopt;
    known = sources_.emplace(key, prelex((*read)->getBuffer(), widenedIn(key))).first;
  }
  return known->second.text();
}

llvm::ErrorOr<llvm::vfs::Status> SourceFiles::status(const Twine& path) {
  if (const auto known = text(path))
    return describe(path, *known);
  const std::string folder = absolute(path) + "/";
  if (auto inside = shim_.lower_bound(folder); inside != shim_.end() && inside->first.starts_with(folder))
    return llvm::vfs::Status(path, {1, llvm::hash_value(folder)}, {}, 0, 0, 0, llvm::sys::fs::file_type::directory_file,
                             llvm::sys::fs::all_read);
  return ProxyFileSystem::status(path);
}

llvm::ErrorOr<std::unique_ptr<llvm::vfs::File>> SourceFiles::openFileForRead(const Twine& path) {
  if (const auto known = text(path))
    return std::unique_ptr<llvm::vfs::File>(std::make_unique<MemoryFile>(*known, describe(path, *known)));
  return std::make_error_code(std::errc::no_such_file_or_directory);
}

bool SourceFiles::forbidsContraction() const {
  return std::any_of(sources_.begin(), sources_.end(),
                     [](const auto& each) { return each.second.forbidsContraction(); });
}

const Rewritten* SourceFiles::find(llvm::StringRef path) const {
  auto known = sources_.find(absolute(path));
  return known == sources_.end() ? nullptr : &known->second;
}

/// As `find` takes it: Clang cuts off what a path has in common with the current folder.
static std::string pathOf(const llvm::DILocation& at) {
  llvm::SmallString<256> here, path(at.getDirectory());
  const llvm::StringRef name = at.getFilename();
  if (llvm::sys::path::is_absolute(name) || path.empty() || llvm::sys::fs::current_path(here) || path == here)
    return name.str();
  llvm::sys::path::append(path, name);
  return std::string(path);
}

std::optional<SourceFiles::Place> SourceFiles::placeOf(const llvm::DILocation* at) const {
  for (; at; at = at->getInlinedAt()) {
    std::string path = pathOf(*at);
    if (const Rewritten* source = find(path))
      return Place{std::move(path), source, at->getLine(), at->getColumn()};
  }
  return std::nullopt;
}

std::vector<std::string> SourceFiles::names() const {
  std::vector<std::string> names;
  for (const auto& [name, text] : sources_)
    names.push_back(name);
  return names;
}

}  // namespace vortex::msl::front
