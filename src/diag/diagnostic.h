#pragma once

#include "source/source.h"

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace vortex::diag {

using source::SourceManager;
using source::SourceRange;

enum class Severity : uint8_t { Error, Warning, Note };

/// One underlined piece of source. A primary label (^^^) is the culprit; the others (---) say where the other half comes from.
struct Label {
  SourceRange range;
  std::string message;
  bool primary = false;
};

/// A replacement that compiles when applied. An empty range (begin == end) inserts.
struct Fix {
  SourceRange range;
  std::string replacement;
  std::string description;
};

/// One finding. `id` is an entry of the tables in diag/ids/; `labels` holds at most one primary label, which gives the position.
struct Diagnostic {
  std::string id;
  Severity severity = Severity::Error;
  std::string message;
  std::vector<Label> labels = {};
  std::vector<std::string> notes = {};
  std::vector<std::string> helps = {};
  std::vector<Fix> fixes = {};

  /// The primary label's range, else the first label's, else an invalid range.
  SourceRange position() const;
};

/// Id of the note that ends a list cut off by DiagnosticSink's cap.
inline constexpr std::string_view kTooManyErrorsId = "E0199";

class DiagnosticSink;

/// Completes a diagnostic and reports it when destroyed (at the end of the full expression):
///   sink.error("E0512", use, "`x` was moved").primary("used after the move").label(move, "moved here").help("…");
class DiagnosticBuilder {
public:
  DiagnosticBuilder(DiagnosticSink& sink, Diagnostic diagnostic) : sink_(&sink), diagnostic_(std::move(diagnostic)) {}
  DiagnosticBuilder(DiagnosticBuilder&& other) noexcept
      : sink_(other.sink_), diagnostic_(std::move(other.diagnostic_)) {
    other.sink_ = nullptr;
  }
  DiagnosticBuilder(const DiagnosticBuilder&) = delete;
  DiagnosticBuilder& operator=(DiagnosticBuilder&&) = delete;
  ~DiagnosticBuilder();

  /// Text beside the carets of the primary label.
  DiagnosticBuilder& primary(std::string message);
  DiagnosticBuilder& label(SourceRange range, std::string message);
  DiagnosticBuilder& note(std::string text);
  DiagnosticBuilder& help(std::string text);
  DiagnosticBuilder& fix(SourceRange range, std::string replacement, std::string description);
  /// Reports now instead of at destruction.
  void emit();

private:
  DiagnosticSink* sink_;
  Diagnostic diagnostic_;
};

/// Collects diagnostics in the order reported. Drops a second one with the same id at the same position, and everything
/// after `maxErrors` errors (one final note then says so; errorCount keeps counting). Not thread-safe.
class DiagnosticSink {
public:
  explicit DiagnosticSink(uint32_t maxErrors = 100) : maxErrors_(maxErrors) {}

  DiagnosticBuilder error(std::string_view id, SourceRange range, std::string message);
  DiagnosticBuilder warning(std::string_view id, SourceRange range, std::string message);
  /// `id` must exist in the tables (checked).
  void report(Diagnostic diagnostic);

  bool hasErrors() const { return errorCount_ != 0; }
  uint32_t errorCount() const { return errorCount_; }
  uint32_t warningCount() const { return warningCount_; }
  /// There are more errors than are shown: analyses stop, as nothing that they find is seen.
  bool isCut() const { return capNoted_; }
  std::span<const Diagnostic> all() const { return diagnostics_; }
  /// A note of all that is reported from now on; empty: none.
  void setNote(std::string note) { note_ = std::move(note); }
  /// Orders by file and position, keeping the order of reports at one position; positionless ones go last.
  void sortByPosition();
  void clear();

private:
  std::vector<Diagnostic> diagnostics_;
  std::set<std::tuple<std::string, uint32_t, uint32_t>> seen_;
  std::string note_;
  uint32_t maxErrors_;
  uint32_t errorCount_ = 0;
  uint32_t warningCount_ = 0;
  bool capNoted_ = false;
};

struct TextOptions {
  bool color = false;
  /// Source lines wider than this are shown as a window around the label.
  uint32_t maxColumns = 160;
};

/// The form of docs/language.md §12, each diagnostic ending in a newline.
std::string renderText(const Diagnostic& diagnostic, const SourceManager& sources, TextOptions options = {});
std::string renderText(std::span<const Diagnostic> diagnostics, const SourceManager& sources, TextOptions options = {});

/// A JSON array; positions are 1-based lines and columns (code points) with the end exclusive:
/// [{"id","severity","message","labels":[{"file","line","column","endLine","endColumn","message","primary"}],
///   "notes":[],"helps":[],"fixes":[{"file",…,"replacement","description"}]}]
std::string renderJson(std::span<const Diagnostic> diagnostics, const SourceManager& sources);

/// True when `fd` is a terminal that takes colours (isatty, TERM is not "dumb", NO_COLOR is unset).
bool terminalTakesColor(int fd);

/// One entry of the id tables. Ids starting with W are warnings.
struct IdEntry {
  std::string_view id;
  std::string_view title;
  std::string_view explanation;
};

/// Every id, ordered.
std::span<const IdEntry> allIds();
/// nullptr if there is no such id.
const IdEntry* findId(std::string_view id);
/// The text of `vortex explain <id>`; empty if there is no such id.
std::string explain(std::string_view id);

}  // namespace vortex::diag
