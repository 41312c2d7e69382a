// Runs the front end over every file of tests/errors and compares its diagnostics with the `//~` comments. See README.md.

#include "base/file.h"
#include "diag/diagnostic.h"
#include "lang/syntax/parser.h"
#ifdef VORTEX_WITH_SEMA
#include "lang/flow/front.h"
#endif

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>

namespace vortex {
namespace {

constexpr const char* kFolder = "tests/errors";

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

std::vector<std::filesystem::path> files() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    if (entry.path().extension() == ".vx")
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

void compare(const std::filesystem::path& path) {
  source::SourceManager sources;
  diag::DiagnosticSink sink;
  const auto file = sources.addFile(path.string());
  ASSERT_TRUE(file.ok()) << path;
  const source::SourceFile& source = sources.file(file.value());
  const std::string id = path.stem().string().substr(0, 5);
  if (source.text().starts_with("//!"))
    return;  // runs in the driver
#ifdef VORTEX_WITH_SEMA
  lang::flow::analyze(file.value(), sources, sink);
#else
  if (!id.starts_with("E01"))
    return;
  lang::syntax::parse(file.value(), sources, sink);
#endif
  const std::string output = diag::renderText(sink.all(), sources);
  const std::vector<Expectation> expectations = readExpectations(source);
  EXPECT_TRUE(std::any_of(sink.all().begin(), sink.all().end(), [&](const auto& found) { return found.id == id; }))
      << path << " is not reported as " << id << "\n"
      << output;
  EXPECT_FALSE(expectations.empty()) << path << " states no expectation";
  for (const Expectation& expectation : expectations)
    EXPECT_TRUE(std::any_of(sink.all().begin(), sink.all().end(),
                            [&](const auto& found) { return isMet(expectation, found, sources); }))
        << path << " lacks " << expectation.describe() << "\n"
        << output;
  for (const diag::Diagnostic& found : sink.all())
    if (found.severity == diag::Severity::Error)
      EXPECT_TRUE(std::any_of(expectations.begin(), expectations.end(),
                              [&](const Expectation& each) { return each.id != "-" && isMet(each, found, sources); }))
          << path << " does not expect\n"
          << diag::renderText(found, sources);
}

TEST(ErrorFiles, ReportWhatTheyState) {
  for (const std::filesystem::path& path : files())
    compare(path);
}

/// ids listed in untested.txt, which says which other test covers each.
std::set<std::string> untestedIds() {
  std::set<std::string> ids;
  const auto text = base::readFile(std::string(kFolder) + "/untested.txt");
  std::istringstream lines(text ? text.value() : "");
  for (std::string line; std::getline(lines, line);)
    if (line.size() > 6)
      ids.insert(line.substr(0, 5));
  return ids;
}

TEST(ErrorFiles, ExistForEveryId) {
  std::set<std::string> covered = untestedIds();
  for (const std::filesystem::path& path : files()) {
    const std::string id = path.stem().string().substr(0, 5);
    EXPECT_TRUE(diag::findId(id)) << path << " names no id of src/diag/ids";
    covered.insert(id);
  }
  std::string missing;
  for (const diag::IdEntry& entry : diag::allIds())
    if (!covered.contains(std::string(entry.id)))
      missing += " " + std::string(entry.id);
  EXPECT_EQ(missing, "") << "ids without a file in tests/errors";
}

}  // namespace
}  // namespace vortex
