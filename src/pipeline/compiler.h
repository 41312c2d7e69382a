// From a typed kernel to an artifact, per target: the ordered stages, their dumps and times, and the on-disk cache.
#pragma once

#include "artifact/artifact.h"
#include "artifact/cache.h"
#include "irgen/irgen.h"
#include "lang/sema/program.h"
#include "pipeline/coverage.h"

#include "mlir/IR/MLIRContext.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vortex::pipeline {

/// A step whose output can be dumped, in order.
struct Stage {
  std::string_view name;
  std::string_view what;
};
std::span<const Stage> stages();

class BackEnd;
class EntrySource;

struct StageTime {
  std::string kernel;
  std::string stage;
  double milliseconds;
};

/// Targets that code can be built for: "cpu", "sm_80", …
std::vector<std::string> targetNames();
/// Machine code of a GPU artifact by the vendor's assembler, or from the on-disk cache, and its counts as facts of the artifact. Empty where no
/// assembler is installed. Error: what the assembler refuses.
Result<std::vector<uint8_t>> assemble(artifact::Kernel& kernel, bool useCache);

struct Options {
  std::string target = "cpu";  ///< what to compile for: "cpu", or a GPU ("sm_90")
  std::string cpu = "native";  ///< processor to compile for, when the target is "cpu"
  bool useCache = true;
  /// Called with the text after each stage named in `dumpAfter` ("all": every stage).
  std::vector<std::string> dumpAfter;
  std::function<void(std::string_view kernel, std::string_view stage, std::string_view text)> dump;
  /// Called for a warning that is not about the program (a cache that cannot be written).
  std::function<void(std::string_view)> warn;
  /// If set, every module is written here before it is compiled, with the command that compiles it again.
  std::string reproducer;
};

/// What could not be compiled and where in the source (line 0: unknown).
struct Failure {
  std::string message;
  std::string file;
  uint32_t line = 0, column = 0;
};

/// Compiles kernels of one program for one target. Not thread-safe.
class Compiler {
public:
  Compiler(const lang::Program& program, const source::SourceManager& sources, Options options);
  ~Compiler();

  /// Artifact of one kernel under one launch request; from memory, from the disk cache, or compiled. Null and `failure` set when the
  /// kernel uses what a stage does not support.
  /// Entry points that no launch of the coverage comes to are absent.
  std::shared_ptr<const artifact::Kernel> compile(const lang::Function& kernel, const irgen::Options& request,
                                                  Failure& failure, const Coverage& coverage = {});
  /// The same for launches in this process: entry points that take long to make are absent, and `entries` makes them. They may be asked for when
  /// this compiler is gone.
  struct Plan {
    std::shared_ptr<const artifact::Kernel> kernel;
    std::shared_ptr<EntrySource> entries;  ///< null: `kernel` is complete
  };
  /// The kernel is null and `failure` set as above.
  Plan plan(const lang::Function& kernel, const irgen::Options& request, Failure& failure);
  /// The module after irgen (`scheduled` false) or as the back end gets it. Null and `failure` set on errors.
  mlir::OwningOpRef<mlir::ModuleOp> module(const lang::Function& kernel, const irgen::Options& request, bool scheduled,
                                           Failure& failure);
  /// Texts of the late stages for `build --emit`: "vxt", "llvm", "optimized-llvm", "assembly". Empty and `failure` set on errors.
  /// Code is that of the entry points that `coverage` needs.
  std::string text(const lang::Function& kernel, const irgen::Options& request, std::string_view stage,
                   Failure& failure, const Coverage& coverage = {});

  const std::vector<StageTime>& times() const { return times_; }
  /// For a stage behind this one: placing the code on a device.
  void addTime(StageTime time) { times_.push_back(std::move(time)); }
  /// Made on first use: a cached kernel needs none.
  mlir::MLIRContext& context();

private:
  bool wants(std::string_view stage) const;
  void dump(const lang::Function& kernel, std::string_view stage, mlir::ModuleOp module);
  bool schedule(const lang::Function& kernel, mlir::ModuleOp module, Failure& failure);
  std::string cacheKey(const lang::Function& kernel, const irgen::Options& request) const;
  mlir::OwningOpRef<mlir::ModuleOp> scheduledModule(const lang::Function& kernel, const irgen::Options& request,
                                                    Failure& failure);
  template <class Compile> auto runBackEnd(const lang::Function& kernel, Failure& failure, const Compile& compile);
  bool dumps() const;
  void keep(const std::string& key, std::span<const uint8_t> bytes);
  bool prepareTarget(Failure& failure);
  template <class Work> auto timed(const lang::Function& kernel, std::string_view stage, Work work);

  const lang::Program& program_;
  const source::SourceManager& sources_;
  Options options_;
  std::unique_ptr<mlir::MLIRContext> context_;
  std::unique_ptr<BackEnd> target_;
  std::shared_ptr<artifact::Cache> cache_;
  std::vector<StageTime> times_;
  bool warnedCache_ = false;
};

}  // namespace vortex::pipeline
