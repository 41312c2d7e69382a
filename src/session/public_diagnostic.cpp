#include "session/public_diagnostic.h"

#include "base/text.h"

namespace vortex::session {

static SourceLabel toPublic(const diag::Label& label, const source::SourceManager& sources) {
  const source::SourceFile& file = sources.file(label.range.file);
  const source::LineColumn begin = file.lineColumn(label.range.begin), end = file.lineColumn(label.range.end);
  return {file.name(), begin.line, begin.column, end.line, end.column, label.message, label.primary};
}

Diagnostic toPublic(const diag::Diagnostic& from, const source::SourceManager& sources) {
  static constexpr const char* kSeverities[] = {"error", "warning", "note"};
  Diagnostic out;
  out.id = from.id;
  out.severity = kSeverities[static_cast<int>(from.severity)];
  out.message = from.message;
  for (const diag::Label& label : from.labels)
    if (label.range.isValid())
      out.labels.push_back(toPublic(label, sources));
  out.notes = from.notes;
  out.helps = from.helps;
  out.rendered = diag::renderText(from, sources);
  return out;
}

Error toPublic(const pipeline::Failure& failure) {
  if (failure.line == 0)
    return Error{failure.message};
  return Error{base::concat(failure.file, ":", failure.line, ":", failure.column, ": ", failure.message)};
}

}  // namespace vortex::session
