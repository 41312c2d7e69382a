// The kernels of tests/races: their folder is the compiler's verdict or, in `free`, the truth; the second line names everything that decides their pairs.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "lang/flow/front.h"
#include "lang/flow/graph/views.h"
#include "lang/flow/race/intervals.h"
#include "lang/flow/testing/graph_of.h"
#include "lang/sema/expr_parts.h"

namespace vortex::lang::flow {
namespace {

struct Judged {
  std::string found;              ///< the verdict
  std::set<std::string> written;  ///< deciders of the second line
  std::set<std::string> deciders;
};

std::set<std::string> words(std::string text) {
  std::replace(text.begin(), text.end(), ',', ' ');
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// "form 3, digits 1".
void addDeciders(std::string_view counts, std::set<std::string>& out) {
  for (const std::string& word : words(std::string(counts)))
    if (!isdigit(static_cast<unsigned char>(word[0])))
      out.insert(word);
}

Judged judgeFile(const std::filesystem::path& path) {
  Judged out;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::getline(file, line);
  out.written = words(line.substr(line.find(": ") + 1));
  source::SourceManager sources;
  diag::DiagnosticSink sink;
  const auto id = sources.addFile(path.string());
  if (!id)
    return out;
  std::vector<CheckTime> times;
  AnalyzeOptions options;
  options.importPaths = {"std"};
  const auto program = flow::analyze(*id, sources, sink, options, {.times = &times});
  for (const CheckTime& time : times)
    addDeciders(time.counts, out.deciders);
  const auto has = [&](std::string_view wanted) {
    return std::any_of(sink.all().begin(), sink.all().end(), [&](const auto& each) { return each.id == wanted; });
  };
  out.found = has("E0630") ? "racy" : has("W0631") ? "unknown" : sink.hasErrors() ? "refused" : "free";
  return out;
}

/// Arithmetic proofs, from the cheapest on: a better one may take the place of one that is written.
constexpr const char* kArithmetic[] = {"form", "digits", "enumeration"};

std::set<std::string> withoutArithmetic(std::set<std::string> deciders) {
  for (const char* each : kArithmetic)
    deciders.erase(each);
  return deciders;
}

size_t effort(const std::set<std::string>& deciders) {
  size_t most = 0;
  for (size_t i = 0; i < std::size(kArithmetic); ++i)
    most = deciders.contains(kArithmetic[i]) ? i + 1 : most;
  return most;
}

TEST(Races, VerdictsAndDecidersAreThoseThatTheKernelsName) {
  size_t count = 0;
  for (const char* folder : {"free", "racy", "unknown"})
    for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path("tests/races") / folder)) {
      if (file.path().extension() != ".vx")
        continue;
      ++count;
      const Judged judged = judgeFile(file.path());
      const bool isOpen = judged.written.contains("unknown") && judged.found == "unknown";
      EXPECT_TRUE(judged.found == folder || (isOpen && std::string_view(folder) != "racy")) << file.path();
      EXPECT_EQ(withoutArithmetic(judged.deciders), withoutArithmetic(judged.written)) << file.path();
      EXPECT_LE(effort(judged.deciders), effort(judged.written)) << file.path();
    }
  EXPECT_GT(count, 200u);
}

std::string messagesOf(const std::string& text) {
  source::SourceManager sources;
  diag::DiagnosticSink sink;
  flow::analyze(sources.addText("test.vx", text), sources, sink);
  return diag::renderText(sink.all(), sources);
}

TEST(Races, MessagesNameTheTensorThatBothTouch) {
  const std::string text = messagesOf(
      "@launch(grid = [1], block = 64)\nkernel k(x: &mut Tensor<f32, [64]>, y: &mut Tensor<f32, [64]>) {\n"
      "let s: Tensor<f32, [64]> @shared\nasync_stage(&x[0..64], &mut s)\nx[thread.local_id] = 1.0\nsync_block()\n"
      "y[thread.local_id] = s[thread.local_id]\n}\n");
  EXPECT_NE(text.find("race on `x`"), std::string::npos) << text;
  EXPECT_EQ(text.find("race on `s`"), std::string::npos) << text;
}

TEST(Races, AtomicOperationsOfTooSmallAScopeAreToldToWidenIt) {
  const auto withScopes = [](const std::string& first, const std::string& second) {
    return messagesOf("@launch(grid = [2], block = 64)\nkernel k(x: &mut Tensor<i32, [64]>) {\nif thread.local_id > 3 "
                      "{ atomic_add(&mut x[0], 1, .relaxed, " +
                      first + ") } else { atomic_add(&mut x[0], 2, .relaxed, " + second + ") }\n}\n");
  };
  EXPECT_EQ(withScopes(".device", ".device"), "");
  for (const std::string& text : {withScopes(".block", ".block"), withScopes(".block", ".device")}) {
    EXPECT_NE(text.find("write `.device`"), std::string::npos) << text;
    EXPECT_EQ(text.find("use an atomic"), std::string::npos) << text;
  }
}

/// Whom a barrier of the block orders.
TEST(Races, BarriersAreOfferedWhereTheyHelp) {
  const auto between = [](const std::string& body) {
    return messagesOf("@launch(grid = [ceil_div(N, 64)], block = 64)\nkernel k(x: &mut Tensor<f32, [N]>) {\n"
                      "let i = thread.global_id\nlet t = thread.local_id\n" +
                      body + "\n}\n");
  };
  const std::string ofBlock = between("let s: Tensor<f32, [64]> @shared\ns[t] = 1.0\nif i < N { x[i] = s[63 - t] }"),
                    ofGrid = between("if i > 0 && i < N { x[i] = x[i - 1] }");
  EXPECT_NE(ofBlock.find("separate the accesses by `sync_block()`"), std::string::npos) << ofBlock;
  EXPECT_NE(ofGrid.find("threads of other blocks may meet here too"), std::string::npos) << ofGrid;
  EXPECT_EQ(ofGrid.find("separate the accesses"), std::string::npos) << ofGrid;
}

TEST(Races, AnIntervalTellsTheNextRoundFromThoseAfterIt) {
  const testing::GraphOf made("@launch(grid = [1], block = 64)\nkernel k(x: &mut Tensor<u32, [64]>) {\n"
                              "for r in 0..9u32 {\nif r % 3 == 0 { sync_block() }\nx[thread.local_id] = r\n}\n}\n");
  const StepId store = made.first(StepKind::Store);
  std::set<std::pair<bool, bool>> rounds;  // a later one; not the next
  for (const AccessInterval& interval :
       findIntervals(made.graph, Structure(made.graph), BarrierKind::OfBlocks, [](LoopId) { return false; }))
    for (const auto& [step, reach] : interval.steps)
      if (interval.start != kNoStep && step == store)
        rounds.insert({reach.passed != kNoLoop, reach.isRepeated});
  const std::set<std::pair<bool, bool>> all{{false, false}, {true, false}, {true, true}};
  EXPECT_EQ(rounds, all);
}

/// "threads <= 7; N * columns <= 9" of the first kernel.
std::string limitsOf(const std::string& text) {
  source::SourceManager sources;
  diag::DiagnosticSink sink;
  const auto program = flow::analyze(sources.addText("test.vx", text), sources, sink);
  EXPECT_TRUE(sink.all().empty()) << diag::renderText(sink.all(), sources);
  std::string out;
  const Function& kernel = *program->kernels.front();
  for (const LaunchLimit& limit : kernel.kernel->limits) {
    std::string factors = limit.ofThreads ? "threads" : "";
    for (DimVarId dim : limit.dims)
      factors += (factors.empty() ? "" : " * ") + kernel.dims[dim].name;
    for (uint32_t param : limit.scalars)
      factors += (factors.empty() ? "" : " * ") + kernel.params[param]->name;
    out += (out.empty() ? "" : "; ") + factors + " <= " + std::to_string(limit.most);
  }
  return out;
}

TEST(Races, LaunchesAreAskedForWhatProofsCountOnAndForNothingElse) {
  const auto limits = [](const std::string& statement, const std::string& guard = "r < N") {
    return limitsOf(
        "@launch(grid = [ceil_div(N, 64)], block = 64)\nkernel k(x: &mut Tensor<f32, [M]>, y: &Tensor<f32, [N]>, "
        "n: i32, m: usize) {\nlet r = thread.global_id\nif " +
        guard + " {\n" + statement + "\n}\n}\n");
  };
  EXPECT_EQ(limits("x[r] = y[r]"), "");
  EXPECT_EQ(limits("x[r as i32] = y[r]"), "threads <= 2147483647");
  EXPECT_EQ(limits("x[r as u32] = y[r]"), "threads <= 4294967295");
  EXPECT_EQ(limits("x[r as u32] = y[0]", "m > 3"), "threads <= 4294967295");
  EXPECT_EQ(limits("for c in 0..n { x[r as i32 * n + c] = y[r] }", "r < N && n > 0"), "N * n <= 2147483647");
  EXPECT_EQ(limits("for c in 0..m { x[r * m + c] = y[r] }"), "N * m <= 4611686018427387904");
  EXPECT_EQ(limits("@unchecked(races)\nx[r as i32] = y[r]"), "");
}

/// The elements that are stored to and proven free, in order: "x", "-" for one that is not.
std::string raceFreeStores(const std::string& text) {
  source::SourceManager sources;
  diag::DiagnosticSink sink;
  const auto program = flow::analyze(sources.addText("test.vx", text), sources, sink);
  std::string out;
  eachExpr(*program->kernels.front()->body, [&](const Expr& expr) {
    if (expr.kind == ExprKind::Assign && asAssign(expr).place.kind == ExprKind::Element)
      out += asAssign(expr).place.isRaceFree ? "x" : "-";
  });
  return out;
}

TEST(Races, OnlyWhatIsFreeInEveryLaunchIsMarkedSo) {
  const auto marks = [](const std::string& body) {
    return raceFreeStores(
        "@launch(grid = [ceil_div(N, 64)], block = 64)\nkernel k(x: &mut Tensor<f32, [N]>, z: &mut Tensor<f32, [N]>, "
        "p: &Tensor<u32, [N]>, c: &mut Tensor<u32, [1]>) {\nlet r = thread.global_id\nif r < N {\n" +
        body + "\n}\n}\n");
  };
  EXPECT_EQ(marks("x[r] = 1.0"), "x");
  EXPECT_EQ(marks("x[r as i32] = 1.0"), "-") << "in launches of fewer than 2^31 threads";
  EXPECT_EQ(marks("x[atomic_add(&mut c[0], 1)] = 1.0"), "-") << "in launches of fewer than 2^32 threads";
  EXPECT_EQ(marks("x[p[r]] = 1.0"), "-");
  EXPECT_EQ(marks("x[r] = 1.0\nz[p[r]] = 1.0"), "x-");
  EXPECT_EQ(marks("x[r] = 1.0\nz[r] = x[p[r]]"), "-x");
}

/// All numbers that the threads of a launch draw are different: a counter of 32 bits has 2^32, and half of them where a loop draws until a bound.
TEST(Races, LaunchesHaveAsManyThreadsAsTheirCountersHaveNumbers) {
  constexpr int64_t kNumbers = int64_t(1) << 32;
  const std::pair<const char*, int64_t> kLines[] = {
      {"x[atomic_add(&mut c[0], 1)] = 1.0", kNumbers},
      {"x[atomic_add(&mut c[0], 4)] = 1.0", kNumbers / 4},
      {"x[atomic_add(&mut c[0], 1)] = 1.0\nx[atomic_add(&mut c[0], 1)] = 1.0", kNumbers / 2},
      {"x[atomic_add(&mut c[0], 3)] = 1.0\nx[atomic_add(&mut c[0], 1)] = 1.0", kNumbers / 4},
      {"for r in 0..4 { x[atomic_add(&mut c[0], 1)] = 1.0 }", kNumbers / 4},
      {"for r in 0..4 { for q in 0..8 { x[atomic_add(&mut c[0], 1)] = 1.0 } }", kNumbers / 32},
      {"loop {\nlet i = atomic_add(&mut c[0], 1)\nif i >= n { break }\nx[i] = 1.0\n}", kNumbers / 2 / 2},
      {"loop {\nlet i = atomic_add(&mut c[0], 4)\nif i >= n { break }\nx[i] = 1.0\n}", kNumbers / 2 / 8}};
  for (const auto& [body, most] : kLines) {
    const std::string limits =
        limitsOf("@launch(grid = [ceil_div(N, 64)], block = 64)\nkernel k(x: &mut Tensor<f32, [M]>, "
                 "y: &Tensor<f32, [N]>, c: &mut Tensor<u32, [1]>, n: u32) {\n" +
                 std::string(body) + "\n}\n");
    const std::string wanted = "threads <= ";
    const size_t at = limits.find(wanted);
    ASSERT_NE(at, std::string::npos) << body << ": " << limits;
    const int64_t found = std::stoll(limits.substr(at + wanted.size()));
    EXPECT_TRUE(found <= most && found >= most - 8)
        << body << ": " << found << " of " << most;  // shares are rounded down
  }
}

TEST(Races, LoopsThatDrawTicketsAreBoundedByWhatTheyGoOnBelow) {
  const auto limits = [](const std::string& body) {
    return limitsOf("@launch(grid = [4], block = 32)\nkernel k(x: &mut Tensor<f32, [M]>, y: &Tensor<f32, [N]>, c: &mut "
                    "Tensor<u32, [1]>, n: u32) {\n" +
                    body + "\n}\n");
  };
  EXPECT_EQ(limits("loop {\nlet i = atomic_add(&mut c[0], 1)\nif i >= n { break }\nx[i] = y[i]\n}"), "n <= 536870912");
  EXPECT_EQ(limits("loop {\nlet i = atomic_add(&mut c[0], 4)\nif i as usize >= N { break }\nx[i] = y[i]\n}"),
            "N <= 134217728");
  EXPECT_EQ(limits("var i = atomic_add(&mut c[0], 1)\nwhile i < 100 {\nx[i] = 1.0\ni = atomic_add(&mut c[0], 1)\n}"),
            "");
  for (const char* strided : {"for i in range(thread.global_id, N, 128) {\n",
                              "for i in range(thread.global_id, N, grid.dim.x * block.dim.x) {\n",
                              "var i = thread.local_id\nwhile i < N {\ni += 128\n"})
    EXPECT_EQ(limits(strided + std::string("x[atomic_add(&mut c[0], 1)] = 1.0\n}")), "N <= 536870912") << strided;
  EXPECT_EQ(
      limits("for r in 0..4 {\nfor i in range(thread.global_id, N, 128) {\nx[atomic_add(&mut c[0], 2)] = y[i]\n}\n}"),
      "N <= 67108864");
  EXPECT_EQ(limits("for i in range(0u32, n, 128) {\nx[atomic_add(&mut c[0], 1)] = 1.0\n}"), "n <= 536870912");
  for (const char* body :
       {"for i in range(thread.global_id, N, 127) {\nx[atomic_add(&mut c[0], 1)] = y[i]\n}",
        "var i = thread.global_id\nwhile i < N {\nx[atomic_add(&mut c[0], 1)] = y[i]\ni += 64\n}",
        "var i = thread.global_id as u32\nwhile i < n {\nx[atomic_add(&mut c[0], 1)] = 1.0\ni += 128\n}",
        "var e = n\nwhile e > 0 {\nfor i in range(thread.global_id, N, 128) {\nx[atomic_add(&mut c[0], 1)] = "
        "y[i]\n}\ne -= 1\n}",
        "var i = 0usize\nwhile i < N {\nx[atomic_add(&mut c[0], 1)] = y[i]\ni += 1\n}",
        "let f = atomic_add(&mut c[0], 1)\nvar g = n\nwhile f < n {\nx[atomic_add(&mut c[0], 1)] = 1.0\ng = g / 2 + "
        "1\nif g == 2 { break }\n}",
        "loop {\nlet i = atomic_add(&mut c[0], 1)\nif i as u8 >= 9 { break }\nx[i] = 1.0\n}",
        "loop {\nlet i = atomic_add(&mut below[0], 1)\nif i >= 9 { break }\nx[i] = 1.0\n}",
        "loop {\nlet i = atomic_add(&mut c[0], 1)\nif i < n { break }\nx[i] = 1.0\n}",
        "loop {\nlet i = atomic_add(&mut c[0], 1)\nif i % 2 == 0 { continue }\nif i >= n { break }\n"
        "x[i] = 1.0\n}"})
    EXPECT_NE(messagesOf("@launch(grid = [4], block = 32)\nkernel k(x: &mut Tensor<f32, [M]>, y: &Tensor<f32, [N]>, c: "
                         "&mut Tensor<u32, [1]>, n: u32, below: &mut Tensor<i32, [1]>) {\n" +
                         std::string(body) + "\n}\n")
                  .find("W0631"),
              std::string::npos)
        << body;
}

}  // namespace
}  // namespace vortex::lang::flow
