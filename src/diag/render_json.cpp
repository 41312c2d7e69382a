#include "diag/diagnostic.h"
#include "source/utf8.h"

#include <cstdio>

namespace vortex::diag {
namespace {

/// Appends `text` as a JSON string; bytes that are not UTF-8 become U+FFFD.
void appendString(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const size_t length = source::utf8SequenceLength(text);
    const char c = text.front();
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      out += escaped;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

void appendRange(std::string& out, SourceRange range, const SourceManager& sources) {
  const source::SourceFile& file = sources.file(range.file);
  const source::LineColumn begin = file.lineColumn(range.begin), end = file.lineColumn(range.end);
  out += "\"file\":";
  appendString(out, file.name());
  out += ",\"line\":" + std::to_string(begin.line) + ",\"column\":" + std::to_string(begin.column);
  out += ",\"endLine\":" + std::to_string(end.line) + ",\"endColumn\":" + std::to_string(end.column);
}

template <class T, class Append>
void appendArray(std::string& out, const char* key, const std::vector<T>& values, Append append) {
  out += std::string(",\"") + key + "\":[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i)
      out += ',';
    append(values[i]);
  }
  out += ']';
}

void appendDiagnostic(std::string& out, const Diagnostic& diagnostic, const SourceManager& sources) {
  static constexpr const char* kSeverities[] = {"error", "warning", "note"};
  out += "{\"id\":";
  appendString(out, diagnostic.id);
  out += std::string(",\"severity\":\"") + kSeverities[static_cast<int>(diagnostic.severity)] + "\",\"message\":";
  appendString(out, diagnostic.message);
  appendArray(out, "labels", diagnostic.labels, [&](const Label& label) {
    out += '{';
    appendRange(out, label.range, sources);
    out += ",\"message\":";
    appendString(out, label.message);
    out += std::string(",\"primary\":") + (label.primary ? "true" : "false") + "}";
  });
  appendArray(out, "notes", diagnostic.notes, [&](const std::string& text) { appendString(out, text); });
  appendArray(out, "helps", diagnostic.helps, [&](const std::string& text) { appendString(out, text); });
  appendArray(out, "fixes", diagnostic.fixes, [&](const Fix& fix) {
    out += '{';
    appendRange(out, fix.range, sources);
    out += ",\"replacement\":";
    appendString(out, fix.replacement);
    out += ",\"description\":";
    appendString(out, fix.description);
    out += '}';
  });
  out += '}';
}

}  // namespace

std::string renderJson(std::span<const Diagnostic> diagnostics, const SourceManager& sources) {
  std::string out = "[";
  for (size_t i = 0; i < diagnostics.size(); ++i) {
    out += i ? ",\n" : "\n";
    appendDiagnostic(out, diagnostics[i], sources);
  }
  out += diagnostics.empty() ? "]\n" : "\n]\n";
  return out;
}

}  // namespace vortex::diag
