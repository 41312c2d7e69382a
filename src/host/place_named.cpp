#include "host/place_named.h"

#include "source/utf8.h"

#include <algorithm>
#include <cctype>

namespace vortex::host {

source::SourceRange placeNamed(const source::SourceManager& sources, std::string_view name, source::LineColumn at) {
  for (uint32_t i = 0; i < sources.fileCount(); ++i) {
    const source::SourceFile& file = sources.file(source::FileId{i});
    if (file.name() != name || at.line < 1 || at.line > file.lineCount())
      continue;
    std::string_view rest = file.lineText(at.line);
    for (uint32_t column = 1; column < at.column && !rest.empty(); ++column)
      rest.remove_prefix(std::min(rest.size(), std::max<size_t>(1, source::utf8SequenceLength(rest))));
    if (rest.empty())
      continue;
    const auto isWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    const auto word = static_cast<size_t>(std::find_if_not(rest.begin(), rest.end(), isWord) - rest.begin());
    const size_t length = word ? word : std::max<size_t>(1, source::utf8SequenceLength(rest));
    const auto begin = static_cast<uint32_t>(rest.data() - file.text().data());
    return {source::FileId{i}, begin, begin + static_cast<uint32_t>(std::min(length, rest.size()))};
  }
  return {};
}

}  // namespace vortex::host
