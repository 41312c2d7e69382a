#include "tools/vortex/session.h"
#include "tools/vortex/settings.h"

namespace vortex::tools {

int commandRun(const Settings& settings) {
  Session session(settings);
  if (!session.load(settings.files[0]))
    return 1;
  if (!session.program().main)
    return failWith(settings, "E0803", "`" + settings.files[0] + "` has no `fn main()`, so there is nothing to run");
  int status = session.run(*session.program().main);
  if (settings.time)
    session.printTimes();
  return status;
}

}  // namespace vortex::tools
