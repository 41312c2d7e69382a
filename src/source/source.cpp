#include "source/source.h"

#include "base/check.h"
#include "base/file.h"
#include "source/utf8.h"

#include <algorithm>

namespace vortex::source {

SourceRange join(SourceRange first, SourceRange second) {
  if (!first.isValid())
    return second;
  if (!second.isValid())
    return first;
  VORTEX_CHECK(first.file == second.file);
  return {first.file, std::min(first.begin, second.begin), std::max(first.end, second.end)};
}

SourceFile::SourceFile(std::string name, std::string text) : name_(std::move(name)), text_(std::move(text)) {
  lineStarts_.push_back(0);
  for (size_t i = 0; i < text_.size(); ++i)
    if (text_[i] == '\n' || (text_[i] == '\r' && (i + 1 == text_.size() || text_[i + 1] != '\n')))
      lineStarts_.push_back(static_cast<uint32_t>(i + 1));
}

uint32_t SourceFile::lineStart(uint32_t line) const {
  VORTEX_CHECK(line >= 1 && line <= lineCount(), "line %u of %u", line, lineCount());
  return lineStarts_[line - 1];
}

std::string_view SourceFile::lineText(uint32_t line) const {
  const uint32_t begin = lineStart(line);
  const size_t end = line < lineCount() ? lineStarts_[line] - 1 : text_.size();
  std::string_view text = std::string_view(text_).substr(begin, end - begin);
  if (text.ends_with('\r'))
    text.remove_suffix(1);
  return text;
}

uint32_t SourceFile::lineOf(uint32_t offset) const {
  const auto after = std::upper_bound(lineStarts_.begin(), lineStarts_.end(), offset);
  return static_cast<uint32_t>(after - lineStarts_.begin());
}

LineColumn SourceFile::lineColumn(uint32_t offset) const {
  const size_t end = std::min<size_t>(offset, text_.size());
  const uint32_t line = lineOf(static_cast<uint32_t>(end));
  std::string_view before = std::string_view(text_).substr(lineStart(line), end - lineStart(line));
  uint32_t column = 1;
  while (!before.empty()) {
    before.remove_prefix(std::max<size_t>(1, utf8SequenceLength(before)));
    ++column;
  }
  return {line, column};
}

SourceManager::SourceManager() = default;
SourceManager::~SourceManager() = default;

base::Result<FileId> SourceManager::addFile(const std::string& path) {
  if (auto known = byPath_.find(path); known != byPath_.end())
    return known->second;
  base::Result<std::string> content = base::readFile(path, kMaxFileBytes);
  if (!content)
    return content.takeError();
  if (content.value().size() > kMaxFileBytes)
    return base::Error{"cannot compile " + path + ": it has more than " + std::to_string(kMaxFileBytes) + " bytes"};
  const FileId id = addText(path, std::move(content).value());
  byPath_.emplace(path, id);
  return id;
}

FileId SourceManager::addText(std::string name, std::string text) {
  VORTEX_CHECK(text.size() <= kMaxFileBytes, "%zu bytes", text.size());
  files_.push_back(std::make_unique<SourceFile>(std::move(name), std::move(text)));
  return FileId{static_cast<uint32_t>(files_.size() - 1)};
}

const SourceFile& SourceManager::file(FileId id) const {
  VORTEX_CHECK(id.value < files_.size());
  return *files_[id.value];
}

std::string_view SourceManager::text(SourceRange range) const {
  const std::string_view all = file(range.file).text();
  const size_t begin = std::min<size_t>(range.begin, all.size());
  const size_t end = std::min<size_t>(std::max(range.begin, range.end), all.size());
  return all.substr(begin, end - begin);
}

std::string SourceManager::describe(SourceRange range) const {
  if (!range.isValid())
    return {};
  const LineColumn at = lineColumn(range);
  return file(range.file).name() + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
}

}  // namespace vortex::source
