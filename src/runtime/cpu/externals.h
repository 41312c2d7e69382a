#pragma once

#include <string_view>

namespace vortex::cpu {

/// Address of a function that kernel objects may call: memory functions, libm in f32 and f64, the compiler's support
/// routines. Null for everything else: kernel code reaches nothing of the process but this table.
void* findExternal(std::string_view name);

}  // namespace vortex::cpu
