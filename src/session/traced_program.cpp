// A kernel that metile traced, as a program.
//
// The trace is lowered as it was written, and checked. It is lowered again
//
// * for checks, where races are found at stores whose lanes store one value, which are none of metile: with these stores as atomics;
// * for running, where shared memory may be read before it is written: with zeros there.
#include "base/check.h"
#include "lang/build/verify.h"
#include "lang/flow/front.h"
#include "metile/lower.h"
#include "metile/online_softmax.h"
#include "metile/unwritten.h"
#include "session/program_state.h"
#include "session/public_diagnostic.h"

namespace vortex {

namespace {

Diagnostic toPublic(const metile::Remark& remark, const source::SourceManager& sources) {
  diag::Diagnostic note;
  note.severity = diag::Severity::Note;
  note.message = remark.message;
  note.labels = {{remark.sum, "", true}, {remark.maximum, "the maximum is found here", false}};
  return session::toPublic(note, sources);
}

struct Checked {
  std::unique_ptr<lang::Program> program = std::make_unique<lang::Program>();
  diag::DiagnosticSink sink;
};

class TracedKernel {
public:
  TracedKernel(const metile::Trace& trace, const std::vector<metile::Kind>& kinds, const source::SourceManager& sources)
      : trace_(trace), kinds_(kinds), sources_(sources) {}

  Checked run(const TraceOptions& options) {
    const auto races = options.warnsOfRaces ? lang::flow::RacePolicy::Warn : lang::flow::RacePolicy::Report;
    Checked made = checked({}, races);
    metile::Additions additions;
    additions.ofOneValue = metile::storesOfOneValue(trace_, racesIn(made.sink));
    if (!additions.ofOneValue.empty()) {
      const bool wasRefused = made.sink.hasErrors();
      Checked other = checked(additions, races);
      made.sink = std::move(other.sink);
      if (options.isChecked || wasRefused)
        made.program = std::move(other.program);
    }
    if (options.isChecked || made.sink.hasErrors())
      return made;
    additions = {metile::readUnwritten(trace_, kinds_), {}};
    if (!additions.zeroed.empty()) {
      Checked zeroed = checked(additions, lang::flow::RacePolicy::Allow);
      VORTEX_CHECK(!zeroed.sink.hasErrors(), "%s", diag::renderText(zeroed.sink.all(), sources_).c_str());
      made.program = std::move(zeroed.program);
    }
    return made;
  }

private:
  Checked checked(const metile::Additions& additions, lang::flow::RacePolicy races) const {
    Checked made;
    metile::lower(trace_, kinds_, *made.program, made.sink, additions);
    if (made.sink.hasErrors())
      return made;
    for (const lang::Violation& violation : lang::verify(*made.program->kernels[0]))
      VORTEX_CHECK(false, "%s: %s", sources_.describe(violation.range).c_str(), violation.message.c_str());
    lang::flow::checkKernels(*made.program, made.sink, lang::LaunchGrids::OfProgram, {.races = races});
    return made;
  }

  /// The places of what races, and of what is not proven to be none.
  static std::vector<source::SourceRange> racesIn(const diag::DiagnosticSink& sink) {
    std::vector<source::SourceRange> places;
    for (const diag::Diagnostic& each : sink.all())
      if (each.id == "E0630" || each.id == "W0631")
        for (const diag::Label& label : each.labels)
          places.push_back(label.range);
    return places;
  }

  const metile::Trace& trace_;
  const std::vector<metile::Kind>& kinds_;
  const source::SourceManager& sources_;
};

}  // namespace

Program Program::fromTrace(std::string_view trace, const std::vector<std::pair<std::string, std::string>>& files,
                           const TraceOptions& options) {
  auto state = std::make_shared<State>();
  std::vector<source::FileId> ids;
  for (const auto& [name, text] : files)
    ids.push_back(state->sources.addText(name, text));
  state->program = std::make_unique<lang::Program>();
  Result<metile::Trace> parsed = metile::parseTrace(trace, ids, state->sources);
  VORTEX_CHECK(parsed, "%s", parsed ? "" : parsed.error().message.c_str());
  std::vector<metile::Kind> kinds = metile::inferKinds(*parsed);
  const bool isRight = metile::check(*parsed, kinds, state->sink);
  metile::prune(*parsed);
  if (options.onlineSoftmax)
    for (const metile::Remark& remark : metile::collectSumsWithMaxima(*parsed, kinds))
      state->remarks.push_back(toPublic(remark, state->sources));
  if (isRight) {
    Checked made = TracedKernel(*parsed, kinds, state->sources).run(options);
    state->program = std::move(made.program);
    state->sink = std::move(made.sink);
  }
  state->publish();
  return Program(std::move(state));
}

}  // namespace vortex
