// What the host reads of the kernels' words; numbers as in words.vx.
#pragma once

#include "hvm/eval/term.h"

namespace vortex::hvm::frontier {

inline constexpr uint32_t kMessages = 20, kLanes = 32;
inline constexpr uint32_t kSettle = 1, kStep = 2;  // parts of a pass
inline constexpr int kOwnerShift = 40, kKindShift = 32;

enum Kind : uint32_t { None, Task, Store, StoreTask, StuckTask, Wake, Defer, Visit, Move };
inline constexpr uint64_t kNormalFlag = uint64_t(1) << 36;

constexpr Kind kindOf(uint64_t message) { return static_cast<Kind>(message >> kKindShift & 15); }
constexpr Loc targetOf(uint64_t message) { return message & 0xffffffff; }

enum State : uint32_t { Active = 1, Done = 2 };

enum Note : uint32_t { NoNote, NoteValue, NoteBody, NoteDefer, NoteTake, NoteRead, NoteWait, NoteRule, NoteStuck };

enum Failure : uint32_t {
  FailNumber = 1,
  FailConstructor = 2,
  FailHeap = 4,
  FailFrontier = 8,
  FailRegion = 16,
  FailOpen = 32
};

}  // namespace vortex::hvm::frontier
