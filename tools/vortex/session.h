// One source file from disk to a device: what the commands share.
#pragma once

#include "diag/diagnostic.h"
#include "host/backend.h"
#include "lang/flow/front.h"
#include "pipeline/compiler.h"
#include "runtime/hal/driver.h"
#include "tools/vortex/settings.h"

#include <memory>
#include <string_view>

namespace vortex::tools {

class Session {
public:
  explicit Session(const Settings& settings) : settings_(settings) {}

  /// Reads and analyses a file. False after printing diagnostics with errors; warnings are printed and do not stop.
  bool load(const std::string& path, lang::LaunchGrids launchGrids = lang::LaunchGrids::OfProgram);
  /// The compiler, with dumps and warnings wired to stderr.
  pipeline::Compiler& compiler();
  /// The device or interpreter of the settings. Null after an error message.
  host::Backend* backend();
  /// Runs a host function; diagnostics are printed. Returns the exit status.
  int run(const lang::Function& function);
  /// Prints what the sink holds (text on stderr, or JSON) and empties it. True if there were no errors.
  bool flush();
  void printTimes() const;

  const Settings& settings() const { return settings_; }
  lang::Program& program() { return *program_; }
  source::SourceManager& sources() { return sources_; }
  diag::DiagnosticSink& sink() { return sink_; }

private:
  bool checkDims();

  const Settings& settings_;
  source::SourceManager sources_;
  diag::DiagnosticSink sink_;
  std::unique_ptr<lang::Program> program_;
  std::string target_;  ///< of the chosen device; empty: what the settings say
  std::unique_ptr<pipeline::Compiler> compiler_;
  std::unique_ptr<host::Backend> backend_;
  double frontMs_ = 0;
  std::vector<lang::flow::CheckTime> checkTimes_;
};

/// "error: …" on stderr, or a JSON array with one diagnostic; returns 1.
int failWith(const Settings& settings, std::string_view id, const std::string& message);
/// "; did you mean `build`?" if the word is a slip of a candidate, else "".
std::string didYouMean(std::string_view word, const std::vector<std::string>& candidates);
/// What is no error, on the standard error.
void tell(const Settings& settings, std::string_view id, const std::string& message);
/// What `vortex test` and `vortex bench` say where nothing is marked with their attribute.
std::string nothingMarked(const Settings& settings, std::string_view attribute);
/// Every kind of device that this program knows.
void addDrivers(hal::DriverList& drivers);
/// Standard library folders next to the program, nearest first.
std::vector<std::string> standardPaths();
/// Writes to stdout; a closed pipe ends the program quietly.
void writeOutput(std::string_view text);
void writeError(std::string_view text);
/// On the standard error: what --dump-after and --time ask for.
void writeStage(std::string_view kernel, std::string_view stage, std::string_view text);
void writeTime(const std::string& kernel, const std::string& stage, double milliseconds);

}  // namespace vortex::tools
