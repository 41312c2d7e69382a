// Runs the front end over every file of tests/errors and compares its diagnostics with the `//~` comments. See README.md.

#include "base/file.h"
#include "chip/chip.h"
#include "diag/diagnostic.h"
#include "lang/flow/front.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include <unistd.h>

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

/// What the driver makes of the `//! check …` of a first line; nothing for another command, which needs the driver.
struct Arguments {
  lang::AnalyzeOptions analyze = {};
  lang::flow::CheckOptions checks = {};
};

std::optional<Arguments> argumentsOf(std::string_view text) {
  Arguments out;
  if (!text.starts_with("//!"))
    return out;
  std::istringstream words(std::string(text.substr(3, text.find('\n') - 3)));
  std::string word, value;
  if (words >> word; word != "check")
    return std::nullopt;
  std::string target = "sm_90";  // has more shared memory than others: the driver's advice without a target
  out.analyze.isSharedAdvice = true;
  while (words >> word >> value) {
    if (word == "--target")
      target = value, out.analyze.isSharedAdvice = false;
    else if (word == "--deny" || word == "--allow")
      out.checks.races = word == "--deny" ? lang::flow::RacePolicy::Deny : lang::flow::RacePolicy::Allow;
    else
      return std::nullopt;
  }
  out.analyze.target = target;
  out.analyze.sharedBytes = chip::findGpu(target)->sharedBytesPerBlock;
  return out;
}

/// A file or a text with what the front end says about it.
struct Checked {
  source::SourceManager sources;
  diag::DiagnosticSink sink;
  source::FileId file = {};

  void run(const Arguments& arguments = {}) {
    lang::flow::analyze(file, sources, sink, arguments.analyze, arguments.checks);
  }
  std::string output() const { return diag::renderText(sink.all(), sources); }
  /// "E0301 3:9, 4:1": ids with the positions of all labels.
  std::string positions() const {
    std::string out;
    for (const diag::Diagnostic& found : sink.all()) {
      out += (out.empty() ? "" : "; ") + found.id;
      for (size_t i = 0; i < found.labels.size(); ++i) {
        const source::LineColumn at = sources.lineColumn(found.labels[i].range);
        out += (i ? ", " : " ") + std::to_string(at.line) + ":" + std::to_string(at.column);
      }
    }
    return out;
  }
};

void expectStated(const Checked& checked, const diag::Diagnostic& found, const std::vector<Expectation>& expectations) {
  for (const diag::Label& label : found.labels) {
    if (!(label.range.file == checked.file))
      continue;
    EXPECT_TRUE(std::any_of(expectations.begin(), expectations.end(),
                            [&](const Expectation& each) {
                              return each.column != 0 && (each.id == "-" ? !label.primary : each.id == found.id) &&
                                     matches(each, label, found.message, checked.sources);
                            }))
        << "not stated, or without its column: " << (label.primary ? found.id : "-") << ":"
        << checked.sources.lineColumn(label.range).column << " \"" << label.message << "\"\n"
        << diag::renderText(found, checked.sources);
  }
}

void compare(const std::filesystem::path& path) {
  SCOPED_TRACE(path.string());
  Checked checked;
  const auto file = checked.sources.addFile(path.string());
  ASSERT_TRUE(file.ok());
  checked.file = file.value();
  const source::SourceFile& source = checked.sources.file(checked.file);
  const std::string id = path.stem().string().substr(0, 5);
  const std::optional<Arguments> arguments = argumentsOf(source.text());
  if (!arguments)
    return;
  checked.run(*arguments);
  const std::span<const diag::Diagnostic> all = checked.sink.all();
  const std::vector<Expectation> expectations = readExpectations(source);
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const auto& found) { return found.id == id; }))
      << "is not reported as " << id << "\n"
      << checked.output();
  EXPECT_FALSE(expectations.empty()) << "states no expectation";
  for (const Expectation& expectation : expectations)
    EXPECT_TRUE(std::any_of(all.begin(), all.end(),
                            [&](const auto& found) { return isMet(expectation, found, checked.sources); }))
        << "lacks " << expectation.describe() << "\n"
        << checked.output();
  for (const diag::Diagnostic& found : all)
    if (found.severity == diag::Severity::Error || found.id == id)
      expectStated(checked, found, expectations);
}

TEST(ErrorFiles, ReportWhatTheyState) {
  for (const std::filesystem::path& path : files())
    compare(path);
}

/// Ids and lines: fixes move columns, but no file of this folder has one that moves lines.
using ErrorLines = std::multiset<std::pair<std::string, uint32_t>>;

ErrorLines errorLines(const Checked& checked, bool withFixed) {
  ErrorLines out;
  for (const diag::Diagnostic& found : checked.sink.all())
    if (found.severity == diag::Severity::Error && (withFixed || found.fixes.empty()))
      out.emplace(found.id, checked.sources.lineColumn(found.position()).line);
  return out;
}

std::string withoutExpectations(std::string_view text) {
  std::string out;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);)
    out += line.substr(0, line.find("//~")) + "\n";
  return out;
}

/// All fixes of a file together take their errors away and bring no others.
void compareFixed(const std::filesystem::path& path, size_t& applied) {
  SCOPED_TRACE(path.string());
  Checked before, after;
  std::string text = withoutExpectations(base::readFile(path.string()).value());
  const std::optional<Arguments> arguments = argumentsOf(text);
  if (!arguments)
    return;
  before.file = before.sources.addText(path.string(), text);
  before.run(*arguments);
  std::vector<diag::Fix> fixes;
  for (const diag::Diagnostic& found : before.sink.all())
    fixes.insert(fixes.end(), found.fixes.begin(), found.fixes.end());
  if (fixes.empty())
    return;
  std::sort(fixes.begin(), fixes.end(), [](const auto& a, const auto& b) { return a.range.begin > b.range.begin; });
  for (const diag::Fix& fix : fixes)  // from behind, so that positions hold
    text.replace(fix.range.begin, fix.range.end - fix.range.begin, fix.replacement);
  applied += fixes.size();
  after.file = after.sources.addText(path.string(), text);
  after.run(*arguments);
  const ErrorLines wanted = errorLines(before, false), left = errorLines(after, true);
  EXPECT_TRUE(std::includes(wanted.begin(), wanted.end(), left.begin(), left.end())) << text << after.output();
}

TEST(ErrorFiles, AreMendedByTheFixesThatTheyGet) {
  size_t applied = 0;
  for (const std::filesystem::path& path : files())
    compareFixed(path, applied);
  EXPECT_GE(applied, 20u);
}

std::string reports(std::string text, const Arguments& arguments = {}) {
  Checked checked;
  checked.file = checked.sources.addText("test.vx", std::move(text));
  checked.run(arguments);
  return checked.positions();
}

/// `first`, then `line` with # as 1 … count and ~ as the number before it.
std::string repeated(std::string first, std::string_view line, int count) {
  for (int i = 1; i <= count; ++i)
    for (const char c : line)
      first += c == '#' ? std::to_string(i) : c == '~' ? std::to_string(i - 1) : std::string(1, c);
  return first;
}

TEST(ErrorFiles, ProgramsBeyondALimitAreRefused) {
  const auto chain = [](int count) { return "const C" + std::to_string(count) + ": i32 = 1\nfn main() {}\n"; };
  EXPECT_EQ(reports(repeated("", "const C~: i32 = C# + 1\n", 199) + chain(199)), "");
  EXPECT_EQ(reports(repeated("", "const C~: i32 = C# + 1\n", 200) + chain(200)), "E0335 201:7");
  const auto nested = [](int depth) {
    return repeated("", "struct S~ { s: S# }\n", depth) + "struct S" + std::to_string(depth) + " { x: i32 }\n";
  };
  EXPECT_EQ(reports(nested(99) + "fn main() {}\n"), "");
  EXPECT_EQ(reports(nested(100) + "fn main() {}\n"), "E0335 101:8");
  const std::string pairs = repeated("type T0 = i32\n", "type T# = (T~, T~)\n", 40);
  EXPECT_EQ(reports(pairs + "fn f(x: T40) {}\nfn main() {}\n").substr(0, 5), "E0335");
}

TEST(ErrorFiles, CallsThatExpandWithoutEndAreRefused) {
  const std::string fill = "kernel k(x: &mut Tensor<f32, [N]>) {\n    x[thread.global_id] = ";
  const std::string calls =
      repeated("fn f0(x: f32) -> f32 { return x }\n", "fn f#(x: f32) -> f32 { return f~(x) + f~(x) }\n", 23);
  EXPECT_EQ(reports(calls + fill + "f23(1.0)\n}\n").substr(0, 5), "E0454");
  const std::string closures = repeated("fn g0(f: fn(f32) -> f32) -> f32 { return f(1.0) }\n",
                                        "fn g#(f: fn(f32) -> f32) -> f32 { return g~(|x| f(x) + f(x)) }\n", 23);
  EXPECT_EQ(reports(closures + fill + "g23(|x| x)\n}\n").substr(0, 5), "E0454");
}

TEST(ErrorFiles, WantedInstancesThatCannotBeMadeAreReportedAtTheKernel) {
  const std::string kernel = "kernel scale<T: Numeric, const C: i32>(x: &mut Tensor<T, [N]>) {\n    x[0] = C as T\n}\n";
  const auto wanted = [&](std::vector<std::string> arguments) {
    Arguments given;
    given.analyze.instances = {{"scale", std::move(arguments)}};
    return reports("// a generic kernel\n" + kernel, given);
  };
  EXPECT_EQ(wanted({"f32", "3"}), "");
  EXPECT_EQ(wanted({"f32"}), "E0329 2:8");
  EXPECT_EQ(wanted({"f32", "three"}), "E0329 2:8");
  EXPECT_EQ(wanted({"Matrix", "3"}), "E0329 2:8");
  EXPECT_EQ(wanted({"bool", "3"}), "E0307 2:8, 2:17");
}

TEST(ErrorFiles, ModulesThatCannotBeReadAreReportedWhereTheyAreImported) {
  const auto folder = std::filesystem::temp_directory_path() / ("vortex_errors_" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "main.vx") << "\nimport large { f }\nfn main() {}\n";
  std::ofstream(folder / "large.vx") << "pub fn f() {}\n";
  std::filesystem::resize_file(folder / "large.vx", source::SourceManager::kMaxFileBytes + 1);
  Checked checked;
  checked.file = checked.sources.addFile((folder / "main.vx").string()).value();
  checked.run();
  EXPECT_EQ(checked.positions(), "E0206 2:1") << checked.output();
  std::filesystem::remove_all(folder);
}

/// The same finding at the same places, as an error or a warning.
TEST(ErrorFiles, RacesAreFoundAlikeHoweverTheyAreJudged) {
  using Policy = lang::flow::RacePolicy;
  for (const char* name : {"E0627", "E0630", "W0631"}) {
    std::string first;
    for (const Policy policy : {Policy::Report, Policy::Warn, Policy::Deny, Policy::Allow}) {
      Checked checked;
      checked.file = checked.sources.addFile(std::string(kFolder) + "/" + name + ".vx").value();
      checked.run({.checks = {.races = policy}});
      first = policy == Policy::Report ? checked.positions() : first;
      EXPECT_EQ(checked.positions(), policy == Policy::Allow ? "" : first);
      const bool isError = policy == Policy::Deny || (policy == Policy::Report && name[0] == 'E');
      EXPECT_EQ(checked.sink.hasErrors(), isError) << name;
    }
    EXPECT_TRUE(first.starts_with(name)) << first;
  }
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
