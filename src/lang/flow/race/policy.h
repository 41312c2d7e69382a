#pragma once

#include <cstdint>

namespace vortex::lang::flow {

enum class RacePolicy : uint8_t {
  Report,  ///< races are errors, what is undecided a warning
  Warn,    ///< both are warnings: `--check` judges while running
  Deny,    ///< what is undecided is an error too
  Allow,   ///< nothing is asked
};

}  // namespace vortex::lang::flow
