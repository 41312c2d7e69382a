#include "diag/diagnostic.h"
#include "source/json.h"

namespace vortex::diag {
namespace {

void appendRange(std::string& out, SourceRange range, const SourceManager& sources) {
  const source::SourceFile& file = sources.file(range.file);
  const source::LineColumn begin = file.lineColumn(range.begin), end = file.lineColumn(range.end);
  out += "\"file\":";
  out += source::jsonString(file.name());
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
  out += source::jsonString(diagnostic.id);
  out += std::string(",\"severity\":\"") + kSeverities[static_cast<int>(diagnostic.severity)] + "\",\"message\":";
  out += source::jsonString(diagnostic.message);
  appendArray(out, "labels", diagnostic.labels, [&](const Label& label) {
    out += '{';
    appendRange(out, label.range, sources);
    out += ",\"message\":";
    out += source::jsonString(label.message);
    out += std::string(",\"primary\":") + (label.primary ? "true" : "false") + "}";
  });
  appendArray(out, "notes", diagnostic.notes, [&](const std::string& text) { out += source::jsonString(text); });
  appendArray(out, "helps", diagnostic.helps, [&](const std::string& text) { out += source::jsonString(text); });
  appendArray(out, "fixes", diagnostic.fixes, [&](const Fix& fix) {
    out += '{';
    appendRange(out, fix.range, sources);
    out += ",\"replacement\":";
    out += source::jsonString(fix.replacement);
    out += ",\"description\":";
    out += source::jsonString(fix.description);
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
