#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace vortex::base {

/// Bytes of memory that this machine has, or the control group of this process (a container's limit, say) if those are fewer. Read once.
uint64_t physicalMemory();

/// Bytes that the process may still map under its own limit (ulimit -v); UINT64_MAX without one.
uint64_t addressSpace();

/// Bytes that this process can still get without making the system swap or kill: what is available, within the process's own limit (ulimit -v).
/// Reads files of /proc: 20 µs.
uint64_t availableMemory();

/// "out of memory: 8 bytes requested, 4 available" where so many do not fit; nothing where they do. Linux grants more than there is, and kills
/// the process when it touches it, so the answer comes from `availableMemory`. Few bytes are not looked at.
std::optional<std::string> outOfMemory(unsigned __int128 bytes);

}  // namespace vortex::base
