// What is behind vortex::Program: a typed program with its sources and diagnostics, whatever front end made it.
#pragma once

#include "diag/diagnostic.h"
#include "lang/sema/analyze.h"
#include "lang/sema/program.h"
#include "pipeline/compiler.h"
#include "vortex/compiler.h"

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace vortex {

struct Program::State {
  std::mutex mutex;  ///< MLIR contexts and compilers are for one thread at a time
  source::SourceManager sources;
  diag::DiagnosticSink sink;
  std::unique_ptr<lang::Program> program;
  std::vector<Diagnostic> diagnostics, remarks;
  std::string report;
  std::map<std::pair<std::string, bool>, std::unique_ptr<pipeline::Compiler>>
      compilers;  ///< by target and use of the cache
  bool isGridGiven = false;
  /// The same program, checked for nothing but this launch; empty: it has no source.
  std::function<std::shared_ptr<State>(const lang::OutsideLaunch& launch)> checkedFor;
  std::map<std::pair<std::string, std::optional<std::array<int64_t, 3>>>, std::shared_ptr<State>>
      others;  ///< by kernel and block

  /// Of source text.
  static std::shared_ptr<State> of(const std::string& name, const std::string& text, const CompileOptions& options,
                                   const std::optional<lang::OutsideLaunch>& launch);
  /// Fills `diagnostics` and `report` from the sink.
  void publish();
  pipeline::Compiler& compiler(const std::string& target, bool useCache);
  const lang::Function* find(std::string_view kernel) const;
  Result<const lang::Function*> require(std::string_view kernel) const;

  /// What a request asks for. Errors as Program::build, but for those of the compiler.
  struct Asked {
    const lang::Function& kernel;
    irgen::Options options;
    pipeline::Compiler& compiler;
  };
  Result<Asked> ask(std::string_view kernel, const BuildRequest& request);
};

struct ProgramAccess {
  using State = Program::State;
  static Program wrap(std::shared_ptr<State> state) { return Program(std::move(state)); }
};

}  // namespace vortex
