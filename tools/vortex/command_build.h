// What the forms of `vortex build` share.
#pragma once

#include "tools/vortex/build_outputs.h"
#include "tools/vortex/session.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace vortex::tools {

/// The kernels of the loaded file that the settings choose. Empty after an error message: there is none.
std::vector<const lang::Function*> chosenKernels(Session& session);
/// The sizes that --dim fixes. Nothing after an error message: one that the kernel needs at compile time is missing.
std::optional<irgen::Options> buildRequest(Session& session, const lang::Function& kernel);
/// Null after diagnostics.
std::shared_ptr<const artifact::Kernel> buildArtifact(Session& session, const lang::Function& kernel,
                                                      const irgen::Options& request);
/// False after an error message: the target does not exist.
bool checkTarget(const Settings& settings, const std::string& target);

/// The pipeline's stage that `--emit` names.
std::string stageOf(const std::string& emit);
/// Adds code (for the CPU with its header; for GPUs PTX, and machine code where the assembler is installed, whose facts `kernel` gets) and
/// artifact. The files' names; nothing after an error message.
std::optional<std::vector<std::string>> collectFiles(const Settings& settings, artifact::Kernel& kernel,
                                                     const std::string& stem, BuildOutputs& outputs);
/// What was made of a kernel, as text or, where the settings say so, JSON. `lastLine`: the kernel's; 0: without the memory report.
std::string buildReport(const Settings& settings, const artifact::Kernel& kernel, const std::vector<std::string>& files,
                        uint32_t lastLine);
/// All of them on the standard output.
void writeReports(const Settings& settings, const std::vector<std::string>& reports);

/// The parts of a list with commas.
std::vector<std::string> splitList(const std::string& list);

/// `vortex build --header`: one C++ launcher per kernel with its artifacts for every target of the settings, "cpu,sm_90".
int buildHeaders(const Settings& settings);

}  // namespace vortex::tools
