#include "msl/library/prelude.h"

#include "msl/front/precompile.h"

asm(".section .rodata.vortex_msl_prelude,\"a\",@progbits\n"
    ".balign 16\n"
    "vortex_msl_prelude_begin:\n"
    ".incbin \"" VORTEX_PRELUDE "\"\n"
    "vortex_msl_prelude_end:\n"
    ".previous\n");
extern "C" const char vortex_msl_prelude_begin[], vortex_msl_prelude_end[];

namespace vortex::msl {

static constexpr std::string_view kVersion =
#include "msl/library/prelude.pch.inc"
    ;

std::string_view precompiledPrelude() {
  static const bool isOfThisClang = front::clangVersion() == kVersion;
  return isOfThisClang ? std::string_view(vortex_msl_prelude_begin, vortex_msl_prelude_end) : std::string_view();
}

}  // namespace vortex::msl
