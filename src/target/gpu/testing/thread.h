// For tests: one thread of the machine.
#pragma once

#include <mlir/IR/Operation.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace vortex::target::gpu::testing {

struct Thread {
  /// Yielded: goes on at its next turn. Barrier, Warp, Group: waits for the other threads of its block, warp or warpgroup at `at`. Blocked: until
  /// `until` holds.
  enum class State { Ready, Yielded, Barrier, Warp, Group, Blocked, Done };
  unsigned number = 0;
  State state = State::Ready;
  size_t next = 0;  ///< instruction
  mlir::Operation* at = nullptr;
  std::function<bool()> until{};
  std::function<void()> then{};            ///< Blocked: what it does before it goes on
  std::function<std::string()> missing{};  ///< Blocked: what it waits for, for the report of a deadlock
  std::vector<uint64_t> registers{};
  /// Asynchronous copies that are not complete: groups in order, the last one not committed. Destinations hold garbage until the wait.
  std::vector<std::vector<std::pair<char*, std::vector<char>>>> copies{1};
};

}  // namespace vortex::target::gpu::testing
