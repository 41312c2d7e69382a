// Runs the front end over every file of tests/errors and compares its diagnostics with the `//~` comments. See README.md.

#include "base/file.h"
#include "chip/chip.h"
#include "diag/diagnostic.h"
#include "lang/flow/testing/error_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include <unistd.h>

namespace vortex {
namespace {

constexpr const char* kFolder = lang::flow::testing::kErrorFiles;

std::vector<std::filesystem::path> files() { return lang::flow::testing::errorFiles(); }

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

TEST(ErrorFiles, ReportWhatTheyState) {
  for (const std::filesystem::path& path : files())
    if (const auto arguments = argumentsOf(base::readFile(path.string()).value()))
      EXPECT_EQ(lang::flow::testing::complaintsAbout(path, arguments->analyze, arguments->checks), "");
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
