#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "diag/diagnostic.h"
#include "lang/sema/program.h"
#include "source/source.h"

namespace vortex::lang {

/// Who may give kernels a grid by `.launch(grid = …)`.
enum class LaunchGrids : uint8_t {
  OfProgram,  ///< its host code, which is known
  Possible,   ///< callers outside the program too: a grid that cannot be inferred is no error
  Always,     ///< every launch gives one: none is inferred
};

/// An instance of a generic kernel that callers outside the program want: scalar types by name, constants as numbers.
struct WantedInstance {
  std::string kernel;
  std::vector<std::string> arguments;
};

/// How callers outside the program launch a kernel.
struct OutsideLaunch {
  std::string kernel;                             ///< its unique name
  std::optional<std::array<int64_t, 3>> block{};  ///< threads along x, y and z, if they give them
};

struct AnalyzeOptions {
  /// Directories searched for imports after the importing file's own (the standard library's place).
  std::vector<std::string> importPaths;
  /// Instantiate every generic function that nothing instantiates with representative arguments, so that its body is checked
  /// (`vortex check`). Diagnostics then name the chosen arguments.
  bool checkUninstantiated = true;
  /// `--dim D=128`: dimension variables fixed for kernels.
  std::vector<std::pair<std::string, int64_t>> fixedDims;
  /// Shared memory that a block has on the target (`vortex build --target sm_90`), and the target's name; 0: not limited.
  uint64_t sharedBytes = 0;
  bool isSharedAdvice = false;  ///< more is a warning: the target is another one, without a limit
  std::string target;
  /// Kernels to instantiate without a caller (`vortex build`): every non-generic kernel always is.
  uint32_t maxInstanceDepth = 64;
  LaunchGrids launchGrids = LaunchGrids::OfProgram;
  /// Only this kernel is checked: for this block alone, if one is given.
  std::optional<OutsideLaunch> launch{};
  /// Beside those that the program uses. What cannot be made is an error at the kernel's name.
  std::vector<WantedInstance> instances;
  /// What lang/flow asks of generic functions as they are written, while they are there: what it reports is wrong with all of their instances.
  std::function<void(Function& definition, diag::DiagnosticSink&)> checkDefinition = {};
};

/// Parses the root file and its imports, resolves, type-checks and instantiates; lang/flow checks what comes of it. Never null; use it further only
/// when the sink has no errors. `sources` must outlive the program.
std::unique_ptr<Program> analyze(source::FileId root, source::SourceManager& sources, diag::DiagnosticSink& sink,
                                 const AnalyzeOptions& options = {});

}  // namespace vortex::lang
