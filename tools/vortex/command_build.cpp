#include "tools/vortex/command_build.h"
#include "artifact/steps.h"
#include "base/text.h"
#include "host/place_named.h"
#include "lang/sema/byte_sizes.h"
#include "lang/sema/kernel/specialised_dims.h"
#include "session/request.h"
#include "source/json.h"
#include "tools/vortex/c_header.h"
#include "tools/vortex/memory_report.h"
#include "tools/vortex/metal_header.h"
#include "tools/vortex/progress.h"
#include "tools/vortex/session.h"
#include "tools/vortex/settings.h"

#include <algorithm>
#include <filesystem>

namespace vortex::tools {
namespace {

void reportFailure(Session& session, const lang::Function& kernel, const pipeline::Failure& failure) {
  diag::Diagnostic diagnostic;
  diagnostic.id = "E0713";
  diagnostic.message = failure.message;
  source::SourceRange place;
  if (failure.line)
    place = host::placeNamed(session.sources(), failure.file, {failure.line, failure.column});
  if (place.isValid() && !(place == kernel.nameRange))
    diagnostic.labels.push_back({place, "", true});
  diagnostic.labels.push_back(
      {kernel.nameRange, "while compiling this kernel", !place.isValid() || place == kernel.nameRange});
  session.sink().report(std::move(diagnostic));
  session.flush();
}

std::string jsonReport(const artifact::Kernel& kernel, const std::vector<std::string>& files, uint32_t lastLine) {
  std::vector<std::string> names, facts, notes;
  for (const std::string& file : files)
    names.push_back(source::jsonString(file));
  for (const artifact::Fact& fact : kernel.facts)
    facts.push_back(base::concat("{\"key\": ", source::jsonString(fact.key), ", \"value\": ", fact.value,
                                 ", \"estimated\": ", fact.estimated ? "true" : "false", "}"));
  for (const std::string& note : kernel.notes)
    notes.push_back(source::jsonString(note));
  std::vector<std::string> leftOut;
  for (const std::string& symbol : kernel.absent)
    leftOut.push_back(source::jsonString(symbol));
  return base::concat("{\"kernel\": ", source::jsonString(kernel.name),
                      ", \"target\": ", source::jsonString(kernel.target), ", \"files\": [", base::join(names, ", "),
                      "], \"leftOut\": [", base::join(leftOut, ", "), "], \"codeBytes\": ", kernel.code.size(),
                      ", \"phases\": ", kernel.phases.size(), ", \"facts\": [", base::join(facts, ", "),
                      "], \"notes\": [", base::join(notes, ", "), "]",
                      lastLine ? ", " + memoryReportJson(kernel, lastLine) : "", "}");
}

std::string textReport(const artifact::Kernel& kernel, const std::vector<std::string>& files, uint32_t lastLine) {
  std::string text =
      base::concat(kernel.name, ":\n  Target:    ", kernel.target, "\n  Files:     ", base::join(files, " "),
                   "\n  Code:      ", kernel.code.size(), " bytes in ", kernel.phases.size(),
                   kernel.phases.size() == 1 ? " phase\n" : " phases\n");
  if (!kernel.absent.empty())
    text +=
        base::concat("  Left out:  ", kernel.absent.size(), " entry points: ", base::join(kernel.absent, ", "), "\n");
  text += lastLine ? memoryReport(kernel, lastLine) : memorySummary(kernel);
  for (const artifact::Fact& fact : kernel.facts)
    text += base::concat("  ", fact.key, ": ", fact.estimated ? "~" : "", fact.value, "\n");
  for (const std::string& note : kernel.notes)
    text += "  - " + note + "\n";
  return text;
}

}  // namespace

std::string stageOf(const std::string& emit) {
  return emit == "vx"     ? "irgen"
         : emit == "ir"   ? "schedule"
         : emit == "vxt"  ? "vxt"
         : emit == "llvm" ? "optimized-llvm"
                          : "assembly";
}

std::string buildReport(const Settings& settings, const artifact::Kernel& kernel, const std::vector<std::string>& files,
                        uint32_t lastLine) {
  return settings.json ? jsonReport(kernel, files, lastLine) : textReport(kernel, files, lastLine);
}

void writeReports(const Settings& settings, const std::vector<std::string>& reports) {
  writeOutput(settings.json ? "[" + base::join(reports, ",\n ") + "]\n" : base::join(reports, "\n"));
}

static const char* extensionOf(const std::string& target) {
  return target == "cpu" ? ".o" : target.starts_with("metal") ? ".metal" : ".ptx";
}

std::optional<std::vector<std::string>> collectFiles(const Settings& settings, artifact::Kernel& kernel,
                                                     const std::string& stem, BuildOutputs& outputs) {
  std::vector<uint8_t> machineCode;
  if (settings.target != "cpu") {
    auto assembled = pipeline::assemble(kernel, !settings.noCache);
    if (!assembled) {
      failWith(settings, "E0809", assembled.error().message);
      return std::nullopt;
    }
    machineCode = *std::move(assembled);
  }
  const std::string base = (std::filesystem::path(settings.output) / (stem + "." + kernel.name)).string();
  std::vector<std::string> files;
  auto add = [&](const std::string& extension, std::string content) {
    outputs.add(base + extension, std::move(content));
    files.push_back(base + extension);
  };
  auto text = [](const std::vector<uint8_t>& bytes) { return std::string(bytes.begin(), bytes.end()); };
  add(extensionOf(settings.target), text(kernel.code));
  if (settings.target == "cpu")
    add(".h", cHeader(kernel));
  if (settings.target.starts_with("metal") && !artifact::readsBack(kernel))  // command buffers do not wait for values
    add(".metal.hpp", metalHeader(kernel, stem));
  if (!machineCode.empty())
    add(".cubin", text(machineCode));
  add(".vxk", text(artifact::serialize(kernel)));
  return files;
}

/// A generic kernel that nothing calls: the check's choice of arguments is not what its files are for.
static std::string whyNotBuilt(const lang::Function& kernel) {
  std::vector<std::string> names, options;
  bool isConstant = true;
  for (const lang::ExampleArgument& each : kernel.examples) {
    names.push_back(base::concat("`", each.name, "`"));
    options.push_back(base::concat("--dim ", each.name, "=…"));
    isConstant &= each.isConstant;
  }
  return base::concat("nothing calls the generic kernel `", kernel.name, "`, so it has no ", base::join(names, ", "),
                      ": ", isConstant ? "add " + base::join(options, " ") : "call it in the program");
}

std::vector<const lang::Function*> chosenKernels(Session& session) {
  const Settings& settings = session.settings();
  std::vector<const lang::Function*> chosen, open;
  for (const lang::Function* kernel : session.program().kernels)
    if (settings.kernel.empty() || kernel->name == settings.kernel || kernel->artifactName == settings.kernel)
      (kernel->examples.empty() ? chosen : open).push_back(kernel);
  std::vector<std::string> reasons;
  for (const lang::Function* kernel : open)
    reasons.push_back(whyNotBuilt(*kernel));
  if (!open.empty() && chosen.empty())
    failWith(settings, "E0805", base::join(reasons, "; "));
  else if (!open.empty())
    tell(settings, "E0805", "left out: " + base::join(reasons, "; "));
  else if (chosen.empty()) {
    std::vector<std::string> names;
    for (const lang::Function* kernel : session.program().kernels)
      names.push_back(kernel->name);
    failWith(settings, "E0807",
             settings.kernel.empty() ? "`" + settings.files[0] + "` has no kernel"
                                     : "`" + settings.files[0] + "` has no kernel `" + settings.kernel + "`" +
                                           didYouMean(settings.kernel, names));
  }
  return chosen;
}

std::optional<irgen::Options> buildRequest(Session& session, const lang::Function& kernel) {
  const Settings& settings = session.settings();
  irgen::Options request;
  request.dims.resize(kernel.dims.size());
  for (size_t i = 0; i < kernel.dims.size(); ++i)
    for (const auto& [name, value] : settings.dims)
      if (kernel.dims[i].name == name)
        request.dims[i] = value;
  for (lang::DimVarId id : lang::specialisedDims(kernel))
    if (!request.dims[id]) {
      failWith(settings, "E0805",
               base::concat("`", kernel.name, "` needs `", kernel.dims[id].name, "` at compile time: add --dim ",
                            kernel.dims[id].name, "=…"));
      return std::nullopt;
    }
  if (!session::uncheckedBlock(kernel, {}))
    return request;
  // The launches of the program give the block: code is made for it.
  const std::vector<std::array<std::optional<int64_t>, 3>>& blocks = kernel.kernel->checkedBlocks;
  const auto& [x, y, z] = blocks.front();
  if (blocks.size() == 1 && x && y && z) {
    request.block = {*x, *y, *z};
    return request;
  }
  failWith(settings, "E0805",
           base::concat("the launches of `", kernel.name,
                        "` give more than one block: write the one to build it for, `@launch(block = …)`"));
  return std::nullopt;
}

static std::optional<pipeline::Coverage::Extent> extentOf(const lang::Function& kernel, const std::string& name,
                                                          int64_t value) {
  for (const lang::DimBinding& dim : kernel.dims)
    if (dim.name == name && dim.param && !dim.isScalarValue && !dim.factor)
      return pipeline::Coverage::Extent{irgen::launchArgument(kernel, *dim.param, dim.fieldPath), dim.dim, value};
  return std::nullopt;
}

static std::string namesOfExtents(const lang::Function& kernel) {
  std::vector<std::string> known;
  for (const lang::DimBinding& dim : kernel.dims)
    if (extentOf(kernel, dim.name, 0))
      known.push_back(dim.name);
  return known.empty() ? "none" : base::join(known, ", ");
}

/// The extent that a word gives; an error message in its place.
static Result<pipeline::Coverage::Extent> extentIn(const std::string& word, const lang::Function& kernel) {
  const size_t equals = word.find('=');
  const std::string digits = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (digits.empty() || digits.size() > 15 || digits.find_first_not_of("0123456789") != std::string::npos)
    return Error{
        base::concat("`", word, "` is neither `usual` nor an extent, `M=4096`; `complete` and `all` stand alone")};
  const std::string name = word.substr(0, equals);
  if (const auto extent = extentOf(kernel, name, std::stoll(digits)))
    return *extent;
  return Error{base::concat("`", kernel.name, "` has no extent `", name, "` that is a parameter's own; there are ",
                            namesOfExtents(kernel))};
}

/// Why no launch has these extents; empty: some may.
static std::string whyNone(lang::Program& program, const lang::Function& kernel,
                           const std::vector<pipeline::Coverage::Extent>& extents) {
  std::vector<std::optional<lang::DimExpr>> values(kernel.dims.size());
  for (size_t id = 0; id < kernel.dims.size(); ++id) {
    const auto own = extentOf(kernel, kernel.dims[id].name, 0);
    for (const pipeline::Coverage::Extent& extent : extents) {
      if (!own || own->argument != extent.argument || own->dim != extent.dim)
        continue;
      const auto value = lang::DimExpr::constant(extent.value);
      if (values[id] && !(*values[id] == value))
        return base::concat("no launch has both `", kernel.dims[id].name, "=", *values[id]->asConstant(), "` and `",
                            kernel.dims[id].name, "=", extent.value, "`");
      values[id] = value;
    }
  }
  const auto tooLarge = [&](const std::string& what, lang::Type type) {
    const auto bytes = lang::bytesOf(lang::substituteDims(lang::stripRef(type), program.types, values));
    return bytes <= base::kMostTensorBytes
               ? std::string()
               : base::concat("no launch has these extents: ", what, " would take ", base::showBytes(bytes),
                              " bytes, a tensor has at most ", base::kMostTensorBytes);
  };
  for (const lang::Variable* param : kernel.params)
    if (std::string why = tooLarge("`" + param->name + "`", param->type); !why.empty())
      return why;
  return kernel.resultType ? tooLarge("the result", kernel.resultType) : "";
}

/// The launches of --versions. Nothing after an error message: a word that says nothing, or extents that no launch has.
static std::optional<pipeline::Coverage> coverageOf(Session& session, const lang::Function& kernel) {
  const Settings& settings = session.settings();
  pipeline::Coverage coverage;
  if (settings.versions == "complete" || settings.versions == "all")
    return coverage;
  const auto refuse = [&](const std::string& why) {
    failWith(settings, "E0805", base::concat("--versions ", settings.versions, ": ", why));
    return std::nullopt;
  };
  for (const std::string& word : splitList(settings.versions)) {
    if (word == "usual") {
      coverage.isUsual = true;
      continue;
    }
    const auto extent = extentIn(word, kernel);
    if (!extent)
      return refuse(extent.error().message);
    coverage.extents.push_back(*extent);
  }
  if (const std::string why = whyNone(session.program(), kernel, coverage.extents); !why.empty())
    return refuse(why);
  return coverage;
}

std::shared_ptr<const artifact::Kernel> buildArtifact(Session& session, const lang::Function& kernel,
                                                      const irgen::Options& request) {
  const std::optional<pipeline::Coverage> coverage = coverageOf(session, kernel);
  if (!coverage)
    return nullptr;
  pipeline::Failure failure;
  Progress progress("compiling " + kernel.name);
  auto compiled = session.compiler().compile(kernel, request, failure, *coverage);
  progress.finish();
  if (!compiled)
    reportFailure(session, kernel, failure);
  return compiled;
}

bool checkTarget(const Settings& settings, const std::string& target) {
  const auto names = pipeline::targetNames();
  if (std::find(names.begin(), names.end(), target) != names.end())
    return true;
  failWith(settings, "E0806",
           "there is no target `" + target + "`" + didYouMean(target, {names.begin(), names.end()}) +
               "; `vortex targets` lists them");
  return false;
}

static int printStage(Session& session, const lang::Function& kernel, const irgen::Options& request) {
  const std::optional<pipeline::Coverage> coverage = coverageOf(session, kernel);
  if (!coverage)
    return 1;
  pipeline::Failure failure;
  std::string text = session.compiler().text(kernel, request, stageOf(session.settings().emit), failure, *coverage);
  if (text.empty()) {
    reportFailure(session, kernel, failure);
    return 1;
  }
  writeOutput(text);
  return 0;
}

static std::string placeOf(Session& session, source::SourceRange range) {
  const source::LineColumn at = session.sources().lineColumn(range);
  return base::concat(session.sources().file(range.file).name(), ":", at.line, ":", at.column);
}

static int buildKernel(Session& session, const lang::Function& kernel, const std::string& stem, BuildOutputs& outputs,
                       std::vector<std::string>& reports) {
  const Settings& settings = session.settings();
  const std::optional<irgen::Options> request = buildRequest(session, kernel);
  if (!request)
    return 1;
  if (!settings.emit.empty())
    return printStage(session, kernel, *request);
  const auto compiled = buildArtifact(session, kernel, *request);
  if (!compiled)
    return 1;
  artifact::Kernel built = *compiled;
  for (const lang::BuildNote& note : kernel.notes)
    built.notes.push_back(base::concat(note.what, " ", placeOf(session, note.range), ": ", note.text));
  const auto files = collectFiles(settings, built, stem, outputs);
  if (!files)
    return 1;
  source::SourceRange end = kernel.range;
  end.begin = end.end;
  const uint32_t lastLine = settings.memory ? session.sources().lineColumn(end).line : 0;
  reports.push_back(buildReport(settings, built, *files, lastLine));
  return 0;
}

int commandBuild(const Settings& settings) {
  if (settings.header)
    return buildHeaders(settings);
  if (!checkTarget(settings, settings.target))
    return 1;
  Session session(settings);
  if (!session.load(settings.files[0], lang::LaunchGrids::Possible))
    return 1;
  std::string stem = std::filesystem::path(settings.files[0]).stem().string();
  std::vector<std::string> reports;
  int status = 0;
  const std::vector<const lang::Function*> kernels = chosenKernels(session);
  if (kernels.empty())
    return 1;
  BuildOutputs outputs;
  for (const lang::Function* kernel : kernels)
    status |= buildKernel(session, *kernel, stem, outputs, reports);
  if (settings.emit.empty() && status == 0)
    if (auto written = outputs.write(settings.output); !written)
      status = failWith(settings, "E0801", written.error().message);
  if (status != 0)  // nothing is written
    reports.clear();
  if (settings.emit.empty())
    writeReports(settings, reports);
  if (settings.time)
    session.printTimes();
  return status;
}

}  // namespace vortex::tools
