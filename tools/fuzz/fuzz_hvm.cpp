// Any bytes as an HVM4 program: a parse error at a place of the file, or a program that is compiled, reduced for a while and printed.
#include "base/check.h"
#include "hvm/eval/evaluation.h"
#include "hvm/eval/print.h"
#include "hvm/syntax/parser.h"

#include <cstddef>
#include <cstdint>

namespace {
using namespace vortex::hvm;

void reduce(const Program& program, uint32_t main, bool isCollapsed) {
  auto code = compile(program);
  if (!code)
    return;
  EvaluationOptions options{.memoryBytes = 1 << 21, .fuel = 20000, .reserveWords = 1 << 16};
  auto evaluation = Evaluation::create(*code, options);
  VORTEX_CHECK(evaluation, "%s", evaluation.error().message.c_str());
  const auto print = [&](Term term, Naming naming) {
    VORTEX_CHECK(!printTerm((*evaluation)->heap().words(), *code, term, naming).empty());
  };
  if (isCollapsed)
    (void)(*evaluation)->collapseMain(main, 100, [&](Term term) { print(term, Naming::ByDepth); });
  else if (auto normal = (*evaluation)->normalizeMain(main))
    print(*normal, Naming::ByAppearance);
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  // Other files have no part in this, and %log writes.
  if (text.find("#include") != std::string::npos || text.find("%log") != std::string::npos)
    return 0;
  auto program = parseText(text, "fuzz.hvm4");
  if (!program) {
    const std::string& error = program.error().message;
    VORTEX_CHECK(error.starts_with("PARSE_ERROR (fuzz.hvm4:") && error.find("- expected: ") != std::string::npos &&
                     error.find("- detected: ") != std::string::npos,
                 "%s", error.c_str());
    return 0;
  }
  auto main = program->definitionIndex.find("main");
  if (main == program->definitionIndex.end() || program->definitions[main->second].root == 0)
    return 0;
  reduce(*program, main->second, size % 2 == 1);
  return 0;
}
