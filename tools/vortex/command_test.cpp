#include "base/text.h"
#include "source/json.h"
#include "tools/vortex/progress.h"
#include "tools/vortex/session.h"
#include "tools/vortex/settings.h"

namespace vortex::tools {

int commandTest(const Settings& settings) {
  size_t passed = 0, failed = 0;
  std::vector<std::string> reports;
  for (const std::string& file : settings.files) {
    Session session(settings);
    if (!session.load(file)) {
      ++failed;
      continue;
    }
    for (const auto& function : session.program().functions) {
      if (!function->isTest || function->isKernel || function->name.find(settings.filter) == std::string::npos)
        continue;
      Progress progress(base::concat("test ", function->name));
      int status = session.run(*function);
      progress.finish();
      (status == 0 ? passed : failed) += 1;
      if (settings.json)
        reports.push_back(base::concat("{\"test\": ", source::jsonString(function->name),
                                       ", \"passed\": ", status == 0 ? "true}" : "false}"));
      else
        writeOutput(base::concat("test ", function->name, status == 0 ? " ... ok\n" : " ... FAILED\n"));
    }
    if (settings.time)
      session.printTimes();
  }
  if (passed + failed == 0)
    return failWith(settings, "E0808", nothingMarked(settings, "@test"));
  writeOutput(settings.json ? base::concat("[", base::join(reports, ",\n "), "]\n")
                            : base::concat(passed, " passed, ", failed, " failed\n"));
  return failed == 0 ? 0 : 1;
}

}  // namespace vortex::tools
