// What the host has to know of the kernels: numbers as in terms.vx and net.vx.
#pragma once

#include "hvm/eval/term.h"

namespace vortex::hvm::slices {

inline constexpr uint32_t kLeft = 60, kMoved = 61, kKept = 62, kResume = 63;
inline constexpr uint32_t kOnCell = 120, kOnTodo = 121, kOnSpilled = 122;

inline constexpr uint32_t kStride = 32;  // between two fields of a node
inline constexpr uint32_t kThreads = 128, kSlots = 48, kStack = 160, kPushes = 48, kOpWords = 12;
inline constexpr uint32_t kTags = 64;  // of terms, and of frames

/// Terms and values that a lane looks at between two looks at its room, and the words that each takes at most besides a template.
inline constexpr uint32_t kSteps = 12, kStepWords = 128;

inline constexpr uint32_t kFlags = 0, kFired = 1, kWidth = 2, kUsed = 3, kReport = 4;
inline constexpr uint64_t kCollect = 1, kDiscard = 2, kStopped = 4, kTidy = 8;

}  // namespace vortex::hvm::slices
