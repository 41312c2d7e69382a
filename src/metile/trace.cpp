#include "metile/trace.h"

#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace vortex::metile {

namespace {

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> out;
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    if (end > 0)
      out.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return out;
}

int64_t integer(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// "%20" for a blank, as in addresses.
std::string unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%' || i + 2 >= text.size()) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(std::strtol(std::string(text.substr(i + 1, 2)).c_str(), nullptr, 16));
    i += 2;
  }
  return out;
}

Operand operandOf(std::string_view word) {
  using Kind = Operand::Kind;
  const std::string_view rest = word.substr(1);
  switch (word[0]) {
  case '%': return {Kind::Value, integer(rest), 0, {}};
  case 'i': return {Kind::Int, integer(rest), 0, {}};
  case 'f': return {Kind::Float, 0, std::strtod(std::string(rest).c_str(), nullptr), {}};
  case 'p': return {Kind::Param, integer(rest), 0, {}};
  case 't': return {Kind::Shared, integer(rest), 0, {}};
  case 's': return {Kind::Word, 0, 0, unescape(rest)};
  default: return {};
  }
}

uint32_t offsetOf(const source::SourceFile& file, int64_t line, int64_t column) {
  const auto clamped = static_cast<uint32_t>(std::clamp<int64_t>(line, 1, file.lineCount()));
  const uint32_t begin = file.lineStart(clamped);
  return begin +
         static_cast<uint32_t>(std::clamp<int64_t>(column, 0, static_cast<int64_t>(file.lineText(clamped).size())));
}

class Parser {
public:
  Parser(const std::vector<source::FileId>& files, const source::SourceManager& sources)
      : files_(files), sources_(sources) {}

  Result<Trace> parse(std::string_view text) {
    for (size_t number = 1; !text.empty(); ++number) {
      const size_t end = std::min(text.find('\n'), text.size());
      if (!line(text.substr(0, end)))
        return Error{base::concat("line ", number, " of the trace is not understood: ", text.substr(0, end))};
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return std::move(trace_);
  }

private:
  bool line(std::string_view text) {
    std::vector<std::string_view> parts = words(text);
    if (parts.empty())
      return true;
    const source::SourceRange range = takeRange(parts);
    const std::string_view head = parts[0];
    if (head == "kernel" && parts.size() == 2) {
      trace_.kernel = parts[1];
      trace_.range = range;
    } else if (head == "threads" && parts.size() == 2) {
      trace_.threads = integer(parts[1]);
    } else if (head == "axes") {
      trace_.axes = {};
      for (size_t i = 1; i < parts.size(); ++i)
        trace_.axes[static_cast<size_t>(operandOf(parts[i]).number) % 3] = true;
    } else if (head == "ptr" && parts.size() == 5) {
      trace_.params.push_back({Param::Kind::Pointer,
                               std::string(parts[1]),
                               std::string(parts[2]),
                               static_cast<uint32_t>(integer(parts[3])),
                               parts[4] == "w",
                               {}});
    } else if (head == "grid" && parts.size() == 4) {
      trace_.grid = {operandOf(parts[1]).number, operandOf(parts[2]).number, operandOf(parts[3]).number};
    } else if ((head == "int" || head == "float") && (parts.size() == 2 || parts.size() == 3)) {
      Param param{head == "int" ? Param::Kind::Int : Param::Kind::Float, std::string(parts[1]), {}, 0, false, {}};
      if (parts.size() == 3)
        param.known = integer(parts[2]);
      trace_.params.push_back(std::move(param));
    } else {
      return op(parts, range);
    }
    return true;
  }

  bool op(const std::vector<std::string_view>& parts, source::SourceRange range) {
    Op op;
    op.range = range;
    size_t next = 0;
    if (parts[0][0] == '%') {
      op.result = static_cast<int32_t>(integer(parts[next++].substr(1)));
      trace_.values = std::max(trace_.values, op.result + 1);
    }
    if (next >= parts.size())
      return false;
    op.name = parts[next++];
    for (; next < parts.size(); ++next) {
      op.operands.push_back(operandOf(parts[next]));
      if (op.operands.back().kind == Operand::Kind::Value)
        trace_.values = std::max(trace_.values, static_cast<int32_t>(op.operands.back().number) + 1);
    }
    trace_.ops.push_back(std::move(op));
    return true;
  }

  /// Removes "@ file line column line column" from the end.
  source::SourceRange takeRange(std::vector<std::string_view>& parts) const {
    if (parts.size() < 7 || parts[parts.size() - 6] != "@")
      return trace_.range;
    const size_t at = parts.size() - 5;
    const int64_t id = integer(parts[at]);
    source::SourceRange range = trace_.range;
    if (id >= 0 && static_cast<size_t>(id) < files_.size()) {
      const source::SourceFile& file = sources_.file(files_[static_cast<size_t>(id)]);
      range = {files_[static_cast<size_t>(id)], offsetOf(file, integer(parts[at + 1]), integer(parts[at + 2])),
               offsetOf(file, integer(parts[at + 3]), integer(parts[at + 4]))};
      range.end = std::max(range.begin, range.end);
    }
    parts.resize(at - 1);
    return range;
  }

  const std::vector<source::FileId>& files_;
  const source::SourceManager& sources_;
  Trace trace_;
};

}  // namespace

Result<Trace> parseTrace(std::string_view text, const std::vector<source::FileId>& files,
                         const source::SourceManager& sources) {
  return Parser(files, sources).parse(text);
}

}  // namespace vortex::metile
