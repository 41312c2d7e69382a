// precompile_prelude PCH VERSION: writes the precompiled prelude, and the version of Clang that reads it as a string literal.
#include "msl/front/precompile.h"

#include <cstdio>
#include <fstream>

int main(int argc, char** argv) {
  const std::string problem = argc == 3 ? vortex::msl::front::precompilePrelude(argv[1]) : "two files are needed";
  if (problem.empty() && std::ofstream(argv[2])
                             << "R\"__CLANG__(" << vortex::msl::front::clangVersion() << ")__CLANG__\"\n")
    return 0;
  std::fprintf(stderr, "precompile_prelude: %s\n", problem.empty() ? "the version cannot be written" : problem.c_str());
  return 1;
}
