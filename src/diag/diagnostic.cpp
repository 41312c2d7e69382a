#include "diag/diagnostic.h"

#include "base/check.h"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace vortex::diag {

SourceRange Diagnostic::position() const {
  for (const Label& label : labels)
    if (label.primary)
      return label.range;
  return labels.empty() ? SourceRange{} : labels.front().range;
}

DiagnosticBuilder::~DiagnosticBuilder() { emit(); }

void DiagnosticBuilder::emit() {
  if (sink_)
    sink_->report(std::move(diagnostic_));
  sink_ = nullptr;
}

DiagnosticBuilder& DiagnosticBuilder::primary(std::string message) {
  for (Label& label : diagnostic_.labels)
    if (label.primary) {
      label.message = std::move(message);
      break;
    }
  return *this;
}

DiagnosticBuilder& DiagnosticBuilder::label(SourceRange range, std::string message) {
  if (range.isValid())
    diagnostic_.labels.push_back({range, std::move(message), false});
  return *this;
}

DiagnosticBuilder& DiagnosticBuilder::note(std::string text) {
  diagnostic_.notes.push_back(std::move(text));
  return *this;
}

DiagnosticBuilder& DiagnosticBuilder::help(std::string text) {
  diagnostic_.helps.push_back(std::move(text));
  return *this;
}

DiagnosticBuilder& DiagnosticBuilder::fix(SourceRange range, std::string replacement, std::string description) {
  diagnostic_.fixes.push_back({range, std::move(replacement), std::move(description)});
  return *this;
}

static Diagnostic makeDiagnostic(std::string_view id, Severity severity, SourceRange range, std::string message) {
  Diagnostic diagnostic{.id = std::string(id), .severity = severity, .message = std::move(message)};
  if (range.isValid())
    diagnostic.labels.push_back({range, "", true});
  return diagnostic;
}

DiagnosticBuilder DiagnosticSink::error(std::string_view id, SourceRange range, std::string message) {
  return {*this, makeDiagnostic(id, Severity::Error, range, std::move(message))};
}

DiagnosticBuilder DiagnosticSink::warning(std::string_view id, SourceRange range, std::string message) {
  return {*this, makeDiagnostic(id, Severity::Warning, range, std::move(message))};
}

/// Words of a message that are longer than anyone reads, such as a name of a megabyte, keep their beginning and end.
static void cutWords(std::string& text) {
  constexpr size_t kLongest = 160, kKept = 60;
  const auto isWord = [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; };
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && isWord(text[end]))
      ++end;
    if (end - i > kLongest)
      out += text.substr(i, kKept) + "…" + text.substr(end - kKept, kKept);
    else
      out += text.substr(i, end - i);
    if (end < text.size())
      out += text[end++];
    i = end;
  }
  text = std::move(out);
}

static void cutWords(Diagnostic& diagnostic) {
  cutWords(diagnostic.message);
  for (Label& label : diagnostic.labels)
    cutWords(label.message);
  for (std::vector<std::string>* texts : {&diagnostic.notes, &diagnostic.helps})
    for (std::string& text : *texts)
      cutWords(text);
}

void DiagnosticSink::report(Diagnostic diagnostic) {
  VORTEX_CHECK(findId(diagnostic.id), "%s is not in src/diag/ids", diagnostic.id.c_str());
  cutWords(diagnostic);
  const SourceRange at = diagnostic.position();
  // Without a position two findings with one id (two missing files) are different findings.
  if (at.isValid() && !seen_.emplace(diagnostic.id, at.file.value, at.begin).second)
    return;
  if (!note_.empty())
    diagnostic.notes.push_back(note_);
  const bool wasFull = errorCount_ >= maxErrors_;
  if (diagnostic.severity == Severity::Error)
    ++errorCount_;
  else if (diagnostic.severity == Severity::Warning && !wasFull)
    ++warningCount_;
  if (!wasFull) {
    diagnostics_.push_back(std::move(diagnostic));
    return;
  }
  if (capNoted_)
    return;
  capNoted_ = true;
  diagnostics_.push_back({.id = std::string(kTooManyErrorsId),
                          .severity = Severity::Note,
                          .message = "more than " + std::to_string(maxErrors_) + " errors; the rest is not shown"});
}

void DiagnosticSink::sortByPosition() {
  const auto key = [&](size_t i) {
    const SourceRange at = diagnostics_[i].position();
    return std::tuple(at.file.value, at.begin, i);  // kNone is the largest file
  };
  std::vector<size_t> order(diagnostics_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t lhs, size_t rhs) { return key(lhs) < key(rhs); });
  std::vector<Diagnostic> sorted;
  for (size_t i : order)
    sorted.push_back(std::move(diagnostics_[i]));
  diagnostics_ = std::move(sorted);
}

void DiagnosticSink::clear() { *this = DiagnosticSink(maxErrors_); }

}  // namespace vortex::diag
