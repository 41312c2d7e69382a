// Typed numbers of the parts of a flow graph. They stand below `value`, which names points and steps but knows nothing of graphs.
#pragma once

#include <cstdint>

namespace vortex::lang::flow {

enum class ValueId : uint32_t {};  ///< index into NodeTable
enum class StepId : uint32_t {};
enum class BlockId : uint32_t {};
enum class LoopId : uint32_t {};
enum class PlaceId : uint32_t {};
enum class FrameId : uint32_t {};
/// A place in the program at which a question is asked; facts that hold there are looked up by it.
enum class PointId : uint32_t {};

inline constexpr ValueId kNoValue{UINT32_MAX};
inline constexpr StepId kNoStep{UINT32_MAX};
inline constexpr BlockId kNoBlock{UINT32_MAX};
inline constexpr LoopId kNoLoop{UINT32_MAX};
inline constexpr PlaceId kNoPlace{UINT32_MAX};
inline constexpr FrameId kNoFrame{UINT32_MAX};
inline constexpr PointId kNoPoint{UINT32_MAX};  ///< nothing is known but what always holds

template <typename Id> constexpr uint32_t indexOf(Id id) { return static_cast<uint32_t>(id); }

}  // namespace vortex::lang::flow
