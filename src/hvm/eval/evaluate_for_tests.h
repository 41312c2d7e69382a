// What the tests of the evaluator run programs with.
#pragma once

#include "hvm/eval/evaluation.h"
#include "hvm/eval/print.h"

namespace vortex::hvm {

struct Outcome {
  std::vector<std::string> lines;
  uint64_t interactions = 0;
  std::string error = {};
  uint64_t highWater = 0, collections = 0;
};

inline Outcome evaluate(const vortex::Result<Program>& program, bool isCollapsed, const EvaluationOptions& options,
                        uint64_t limit) {
  if (!program)
    return {{}, 0, program.error().message};
  auto code = compile(*program);
  auto evaluation = Evaluation::create(*code, options);
  uint32_t main = program->definitionIndex.at("main");
  Outcome outcome;
  auto print = [&](Term term, Naming naming) {
    outcome.lines.push_back(printTerm((*evaluation)->heap().words(), *code, term, naming));
  };
  if (isCollapsed) {
    auto done = (*evaluation)->collapseMain(main, limit, [&](Term term) { print(term, Naming::ByDepth); });
    outcome.error = done ? "" : done.error().message;
  } else if (auto normal = (*evaluation)->normalizeMain(main)) {
    print(*normal, Naming::ByAppearance);
  } else {
    outcome.error = normal.error().message;
  }
  outcome.interactions = (*evaluation)->interactions();
  outcome.highWater = (*evaluation)->heap().highWater();
  outcome.collections = (*evaluation)->heap().collections();
  return outcome;
}

inline Outcome evaluate(const std::string& text, bool isCollapsed = false, uint64_t memory = 1 << 28,
                        uint64_t limit = ~0ull) {
  return evaluate(parseText(text, "test"), isCollapsed, {.memoryBytes = memory}, limit);
}

inline std::string normalForm(const std::string& text) {
  Outcome outcome = evaluate(text);
  return outcome.lines.empty() ? outcome.error : outcome.lines[0];
}

}  // namespace vortex::hvm
