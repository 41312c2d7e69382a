// The form of docs/language.md §12. Each annotated line is shown once, its labels below it, one row per label with a message.

#include "diag/diagnostic.h"
#include "source/utf8.h"

#include <algorithm>
#include <cstdlib>
#include <unistd.h>

namespace vortex::diag {
namespace {

using source::SourceFile;

constexpr std::string_view kReset = "\x1b[0m", kBold = "\x1b[1m", kRed = "\x1b[1;31m", kYellow = "\x1b[1;33m",
                           kCyan = "\x1b[1;36m", kBlue = "\x1b[1;34m";
constexpr uint32_t kTabWidth = 4;

/// A part of one source line as it appears on the screen: tabs expanded, control bytes replaced, long lines cut on both sides.
class ShownLine {
public:
  ShownLine(std::string_view line, uint32_t focusBegin, uint32_t maxColumns) {
    uint32_t first = 0;
    if (line.size() > maxColumns && focusBegin > maxColumns / 2) {
      first = focusBegin - maxColumns / 2;
      while (first > 0 && (static_cast<unsigned char>(line[first]) & 0xC0) == 0x80)
        --first;
    }
    if (first > 0)
      text_ = "…", width_ = 1;
    uint32_t offset = first;
    begin_ = first;
    while (offset < line.size() && width_ < maxColumns) {
      columns_.push_back({offset, width_});
      offset += append(line.substr(offset));
    }
    columns_.push_back({offset, width_});
    if (offset < line.size())
      text_ += "…";
  }

  const std::string& text() const { return text_; }
  /// Screen column (0-based) of a byte offset of the line; outside of what is shown: the nearest edge.
  uint32_t columnOf(uint32_t offset) const {
    if (offset <= begin_)
      return columns_.front().second;
    const auto after = std::upper_bound(columns_.begin(), columns_.end(), std::pair(offset, UINT32_MAX));
    return std::prev(after)->second;
  }

private:
  size_t append(std::string_view rest) {
    const size_t length = source::utf8SequenceLength(rest);
    const unsigned char c = static_cast<unsigned char>(rest.front());
    if (c == '\t') {
      const uint32_t spaces = kTabWidth - width_ % kTabWidth;
      text_.append(spaces, ' ');
      width_ += spaces;
      return 1;
    }
    if (length == 0 || c < 0x20 || c == 0x7F)
      text_ += "\xEF\xBF\xBD";  // never send control bytes to a terminal
    else
      text_ += rest.substr(0, length);
    ++width_;
    return std::max<size_t>(1, length);
  }

  std::string text_;
  std::vector<std::pair<uint32_t, uint32_t>> columns_;
  uint32_t width_ = 0;
  uint32_t begin_ = 0;
};

class Renderer {
public:
  Renderer(const Diagnostic& diagnostic, const SourceManager& sources, TextOptions options)
      : diagnostic_(diagnostic), sources_(sources), options_(options) {}

  std::string render() {
    header();
    gutter_ = 1;
    for (const Label& label : diagnostic_.labels)
      gutter_ = std::max(gutter_, std::to_string(lineOf(label)).size());
    files();
    for (const std::string& note : diagnostic_.notes)
      trailer("note", note);
    for (const std::string& help : diagnostic_.helps)
      trailer("help", help);
    for (const Fix& fix : diagnostic_.fixes)
      fixLine(fix);
    return std::move(out_);
  }

private:
  std::string_view color(std::string_view code) const { return options_.color ? code : std::string_view(); }
  std::string paint(std::string_view code, std::string_view text) const {
    return std::string(color(code)) + std::string(text) + std::string(color(kReset));
  }
  std::string_view severityColor() const {
    return diagnostic_.severity == Severity::Error ? kRed : diagnostic_.severity == Severity::Warning ? kYellow : kCyan;
  }
  uint32_t lineOf(const Label& label) const { return sources_.file(label.range.file).lineOf(label.range.begin); }

  void header() {
    static constexpr std::string_view kNames[] = {"error", "warning", "note"};
    const std::string title = std::string(kNames[static_cast<int>(diagnostic_.severity)]) +
                              (diagnostic_.id.empty() ? "" : "[" + diagnostic_.id + "]");
    out_ += paint(severityColor(), title) + paint(kBold, ": " + diagnostic_.message) + "\n";
  }

  /// The file of the position first, then the others in order of their ids.
  void files() {
    const SourceRange position = diagnostic_.position();
    if (!position.isValid())
      return;
    std::vector<source::FileId> order = {position.file};
    for (const Label& label : diagnostic_.labels)
      if (std::find(order.begin(), order.end(), label.range.file) == order.end())
        order.push_back(label.range.file);
    for (source::FileId file : order) {
      std::vector<const Label*> labels;
      for (const Label& label : diagnostic_.labels)
        if (label.range.file == file)
          labels.push_back(&label);
      const SourceRange at = file == position.file ? position : labels.front()->range;
      out_ += std::string(gutter_ + 1, ' ') + paint(kBlue, file == position.file ? "--> " : "::: ") +
              sources_.describe(at) + "\n";
      lines(sources_.file(file), labels);
    }
  }

  void lines(const SourceFile& file, std::vector<const Label*> labels) {
    std::sort(labels.begin(), labels.end(), [](const Label* a, const Label* b) {
      return std::tuple(a->range.begin, a) <
             std::tuple(b->range.begin, b);  // one array: addresses keep the order of equals
    });
    for (size_t i = 0; i < labels.size();) {
      const uint32_t line = lineOf(*labels[i]);
      size_t end = i;
      const Label* focus = labels[i];
      for (; end < labels.size() && lineOf(*labels[end]) == line; ++end)
        if (labels[end]->primary)
          focus = labels[end];
      const uint32_t start = file.lineStart(line);
      const ShownLine shown(file.lineText(line), focus->range.begin - start, options_.maxColumns);
      const std::string number = std::to_string(line);
      out_ += " " + paint(kBlue, std::string(gutter_ - number.size(), ' ') + number + " |") +
              (shown.text().empty() ? "" : " ") + shown.text() + "\n";
      for (; i < end; ++i)
        underline(*labels[i], shown, start);
    }
  }

  void underline(const Label& label, const ShownLine& shown, uint32_t lineStart) {
    const uint32_t begin = shown.columnOf(label.range.begin - lineStart);
    const uint32_t end = std::max(begin + 1, shown.columnOf(label.range.end - lineStart));
    const std::string marks(end - begin, label.primary ? '^' : '-');
    out_ += " " + std::string(gutter_, ' ') + paint(kBlue, " |") + " " + std::string(begin, ' ');
    out_ += paint(label.primary ? severityColor() : kBlue, marks + (label.message.empty() ? "" : " " + label.message)) +
            "\n";
  }

  void trailer(std::string_view kind, const std::string& text) {
    const std::string indent = std::string(gutter_ + 2, ' ');
    out_ += indent + paint(kBlue, "=") + " " + paint(kBold, kind) + ": ";
    for (char c : text) {
      out_ += c;
      if (c == '\n')
        out_ += indent + "        ";
    }
    out_ += "\n";
  }

  void fixLine(const Fix& fix) {
    const std::string old(sources_.text(fix.range));
    const bool isOneLine =
        (old + fix.replacement).find('\n') == std::string::npos && old.size() + fix.replacement.size() < 120;
    std::string text = fix.description;
    if (isOneLine && fix.replacement.empty())
      text += ": remove `" + old + "`";
    else if (isOneLine)
      text += ": `" + fix.replacement + "`";
    trailer("help", text);
  }

  const Diagnostic& diagnostic_;
  const SourceManager& sources_;
  TextOptions options_;
  size_t gutter_ = 1;
  std::string out_;
};

}  // namespace

std::string renderText(const Diagnostic& diagnostic, const SourceManager& sources, TextOptions options) {
  return Renderer(diagnostic, sources, options).render();
}

std::string renderText(std::span<const Diagnostic> diagnostics, const SourceManager& sources, TextOptions options) {
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (!out.empty())
      out += '\n';
    out += renderText(diagnostic, sources, options);
  }
  return out;
}

bool terminalTakesColor(int fd) {
  const char* term = std::getenv("TERM");
  const char* noColor = std::getenv("NO_COLOR");
  return isatty(fd) && term && std::string_view(term) != "dumb" && !(noColor && *noColor);
}

}  // namespace vortex::diag
