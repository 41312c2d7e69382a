#pragma once

#include "base/result.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace vortex::source {

/// Names one file of a SourceManager. Default-constructed: no file (a diagnostic without position).
struct FileId {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t value = kNone;

  bool isValid() const { return value != kNone; }
  friend bool operator==(FileId, FileId) = default;
  friend auto operator<=>(FileId, FileId) = default;
};

/// Half-open byte range [begin, end) of one file. begin == end is a position between two bytes.
struct SourceRange {
  FileId file;
  uint32_t begin = 0;
  uint32_t end = 0;

  bool isValid() const { return file.isValid(); }
  uint32_t size() const { return end - begin; }
  friend bool operator==(const SourceRange&, const SourceRange&) = default;
};

/// Smallest range that covers both; an invalid operand yields the other one. Both must be of the same file.
SourceRange join(SourceRange first, SourceRange second);

/// 1-based. The column counts UTF-8 code points (a tab is one; every byte that is not valid UTF-8 is one).
struct LineColumn {
  uint32_t line = 1;
  uint32_t column = 1;
  friend bool operator==(const LineColumn&, const LineColumn&) = default;
};

/// The text of one file, immutable: string_views into text() live as long as the SourceManager.
class SourceFile {
public:
  SourceFile(std::string name, std::string text);

  const std::string& name() const { return name_; }
  std::string_view text() const { return text_; }
  /// At least 1: an empty file has one empty line.
  uint32_t lineCount() const { return static_cast<uint32_t>(lineStarts_.size()); }
  /// Text of the 1-based line without its line terminator (LF, CRLF).
  std::string_view lineText(uint32_t line) const;
  /// Byte offset of the first byte of the 1-based line.
  uint32_t lineStart(uint32_t line) const;
  /// Offsets past the end give the position after the last byte.
  LineColumn lineColumn(uint32_t offset) const;
  uint32_t lineOf(uint32_t offset) const;

private:
  std::string name_;
  std::string text_;
  std::vector<uint32_t> lineStarts_;
};

/// Owns all source text of one compilation. Not thread-safe.
class SourceManager {
public:
  /// Largest accepted file: bounds the memory of tokens and trees, and offsets fit 32 bits.
  static constexpr uint64_t kMaxFileBytes = uint64_t{64} << 20;

  SourceManager();
  ~SourceManager();
  SourceManager(const SourceManager&) = delete;
  SourceManager& operator=(const SourceManager&) = delete;

  /// Reads a file from disk; the name shown in diagnostics is `path`. The same path is read once and keeps its id.
  base::Result<FileId> addFile(const std::string& path);
  /// Adds text that is not on disk; always a new file.
  FileId addText(std::string name, std::string text);

  const SourceFile& file(FileId id) const;
  size_t fileCount() const { return files_.size(); }

  /// Text the range covers, clamped to the file.
  std::string_view text(SourceRange range) const;
  LineColumn lineColumn(SourceRange range) const { return file(range.file).lineColumn(range.begin); }
  /// "scale.vx:9:12", or "" for an invalid range.
  std::string describe(SourceRange range) const;

private:
  std::vector<std::unique_ptr<SourceFile>> files_;
  std::unordered_map<std::string, FileId> byPath_;
};

}  // namespace vortex::source
