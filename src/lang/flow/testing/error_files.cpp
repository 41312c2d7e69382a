#include "lang/flow/testing/error_files.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace vortex::lang::flow::testing {
namespace {

struct Expectation {
  std::string id;  // "-": a secondary label
  uint32_t line = 0;
  uint32_t column = 0;  // 0: any
  std::optional<std::string> text;

  std::string describe() const {
    std::string out = std::to_string(line) + ":" + (column ? std::to_string(column) : "*") + " " + id;
    return text ? out + " \"" + *text + "\"" : out;
  }
};

/// `E0110:14 "text" E0115 -:3 "x"` after a `//~`.
void parseExpectations(std::string_view rest, uint32_t line, std::vector<Expectation>& out) {
  size_t at = 0;
  const auto skipBlanks = [&] { at = std::min(rest.find_first_not_of(" \t", at), rest.size()); };
  for (skipBlanks(); at < rest.size(); skipBlanks()) {
    Expectation expectation{.id = {}, .line = line, .column = 0, .text = {}};
    while (at < rest.size() && rest[at] != ' ' && rest[at] != ':' && rest[at] != '"')
      expectation.id += rest[at++];
    if (at < rest.size() && rest[at] == ':')
      for (++at; at < rest.size() && rest[at] >= '0' && rest[at] <= '9'; ++at)
        expectation.column = expectation.column * 10 + static_cast<uint32_t>(rest[at] - '0');
    skipBlanks();
    if (at < rest.size() && rest[at] == '"') {
      const size_t end = std::min(rest.find('"', at + 1), rest.size());
      expectation.text = std::string(rest.substr(at + 1, end - at - 1));
      at = std::min(end + 1, rest.size());
    }
    out.push_back(expectation);
  }
}

std::vector<Expectation> readExpectations(const source::SourceFile& file) {
  std::vector<Expectation> expectations;
  for (uint32_t line = 1; line <= file.lineCount(); ++line) {
    const std::string_view text = file.lineText(line);
    size_t at = text.find("//~");
    if (at == std::string_view::npos)
      continue;
    uint32_t target = line;
    for (at += 3; at < text.size() && (text[at] == '^' || text[at] == 'v'); ++at)
      target += text[at] == '^' ? -1 : 1;
    parseExpectations(text.substr(at), target, expectations);
  }
  return expectations;
}

bool matches(const Expectation& expectation, const diag::Label& label, const std::string& message,
             const source::SourceManager& sources) {
  const source::LineColumn at = sources.lineColumn(label.range);
  return at.line == expectation.line && (expectation.column == 0 || at.column == expectation.column) &&
         (!expectation.text || *expectation.text == (label.message.empty() ? message : label.message));
}

bool isMet(const Expectation& expectation, const diag::Diagnostic& diagnostic, const source::SourceManager& sources) {
  const bool wantsPrimary = expectation.id != "-";
  if (wantsPrimary && diagnostic.id != expectation.id)
    return false;
  return std::any_of(diagnostic.labels.begin(), diagnostic.labels.end(), [&](const diag::Label& label) {
    return label.primary == wantsPrimary && matches(expectation, label, diagnostic.message, sources);
  });
}

bool isStated(const diag::Diagnostic& found, const diag::Label& label, const std::vector<Expectation>& expectations,
              const source::SourceManager& sources) {
  return std::any_of(expectations.begin(), expectations.end(), [&](const Expectation& each) {
    return each.column != 0 && (each.id == "-" ? !label.primary : each.id == found.id) &&
           matches(each, label, found.message, sources);
  });
}

}  // namespace

std::vector<std::filesystem::path> errorFiles() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(kErrorFiles))
    if (entry.path().extension() == ".vx")
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string complaintsAbout(const std::filesystem::path& path, const AnalyzeOptions& analyze,
                            const CheckOptions& checks) {
  source::SourceManager sources;
  diag::DiagnosticSink sink;
  const auto file = sources.addFile(path.string());
  if (!file)
    return path.string() + " cannot be read\n";
  flow::analyze(file.value(), sources, sink, analyze, checks);
  const std::string id = path.stem().string().substr(0, 5);
  const auto all = sink.all();
  const std::vector<Expectation> expectations = readExpectations(sources.file(file.value()));
  std::string out;
  if (std::none_of(all.begin(), all.end(), [&](const auto& found) { return found.id == id; }))
    out += "is not reported as " + id + "\n";
  if (expectations.empty())
    out += "states no expectation\n";
  for (const Expectation& each : expectations)
    if (std::none_of(all.begin(), all.end(), [&](const auto& found) { return isMet(each, found, sources); }))
      out += "lacks " + each.describe() + "\n";
  for (const diag::Diagnostic& found : all)
    for (const diag::Label& label : found.labels)
      if ((found.severity == diag::Severity::Error || found.id == id) && label.range.file == file.value() &&
          !isStated(found, label, expectations, sources))
        out += base::concat("not stated, or without its column: ", label.primary ? found.id : "-", ":",
                            sources.lineColumn(label.range).column, " \"", label.message, "\"\n");
  return out.empty() ? "" : path.string() + " " + out + diag::renderText(all, sources);
}

}  // namespace vortex::lang::flow::testing
