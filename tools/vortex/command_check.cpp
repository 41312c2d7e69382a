#include "base/check.h"
#include "base/file.h"
#include "base/text.h"
#include "lang/flow/graph/dump.h"
#include "lang/flow/graph/lower_function.h"
#include "lang/flow/graph/verify.h"
#include "lang/syntax/format.h"
#include "tools/vortex/command_build.h"
#include "tools/vortex/command_metal.h"
#include "tools/vortex/session.h"
#include "tools/vortex/settings.h"

#include <cctype>
#include <cstdio>

namespace vortex::tools {

/// `--emit=flow`: the graphs that checks read.
static void writeGraphs(Session& session) {
  for (const lang::Function* kernel : session.program().kernels) {
    const lang::flow::Graph graph = lang::flow::lowerKernel(*kernel);
    writeOutput(lang::flow::dump(graph, session.sources()));
    const std::string faults = lang::flow::verify(graph);
    VORTEX_CHECK(faults.empty(), "the graph of `%s` is wrong:\n%s", kernel->uniqueName.c_str(), faults.c_str());
  }
}

int commandCheck(const Settings& settings) {
  if (!checkTarget(settings, settings.target))
    return 1;
  int status = 0;
  for (const std::string& file : settings.files) {
    if (isMetalFile(file)) {
      status |= checkMetal(settings, file);
      continue;
    }
    Session session(settings);
    if (!session.load(file))
      status = 1;
    else if (settings.emit == "flow")
      writeGraphs(session);
    else if (settings.json && settings.files.size() == 1)
      writeOutput("[]\n");
    if (settings.time)
      session.printTimes();
  }
  return status;
}

int commandFmt(const Settings& settings) {
  int status = 0;
  for (const std::string& path : settings.files) {
    source::SourceManager sources;
    diag::DiagnosticSink sink;
    auto file = sources.addFile(path);
    if (!file) {
      status = failWith(settings, "E0801", file.error().message);
      continue;
    }
    auto text = lang::syntax::format(*file, sources, sink);
    if (!text) {
      std::fputs(diag::renderText(sink.all(), sources).c_str(), stderr);
      status = 1;
      continue;
    }
    if (*text == sources.file(*file).text())
      continue;
    if (settings.fmtCheck) {
      writeOutput(path + "\n");
      status = 1;
    } else if (auto written = base::writeFileAtomic(path, *text); !written) {
      status = failWith(settings, "E0801", written.error().message);
    }
  }
  return status;
}

int commandExplain(std::string id) {
  if (!id.empty())
    id[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(id[0])));
  std::string text = diag::explain(id);
  if (text.empty()) {
    Settings settings;
    return failWith(settings, "E0804", "there is no diagnostic `" + id + "`");
  }
  writeOutput(text);
  return 0;
}

}  // namespace vortex::tools
