// The attributes of parameters that say where a thread is (Metal Shading Language Specification, "Attributes for Kernel Function Input
// Arguments").
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace vortex::msl::front {

inline constexpr std::string_view kKernelInputs[] = {
    "thread_position_in_grid",
    "thread_position_in_threadgroup",
    "thread_index_in_threadgroup",
    "threadgroup_position_in_grid",
    "threadgroups_per_grid",
    "threads_per_grid",
    "threads_per_threadgroup",
    "thread_index_in_simdgroup",
    "simdgroup_index_in_threadgroup",
    "simdgroups_per_threadgroup",
    "threads_per_simdgroup",
    "thread_execution_width",
    "dispatch_threads_per_threadgroup",
    "dispatch_simdgroups_per_threadgroup",
    "dispatch_quadgroups_per_threadgroup",
    "thread_index_in_quadgroup",
    "quadgroup_index_in_threadgroup",
    "quadgroups_per_threadgroup",
    "grid_origin",
    "grid_size",
};

inline bool isKernelInput(std::string_view name) {
  return std::ranges::find(kKernelInputs, name) != std::end(kKernelInputs);
}

/// Of vertex and fragment functions and what they pass on: known, so that a file which has them is refused for the functions, and structures
/// that it shares with them are read.
inline constexpr std::string_view kGraphicsAttributes[] = {
    "vertex_id",
    "instance_id",
    "base_vertex",
    "base_instance",
    "amplification_id",
    "amplification_count",
    "position",
    "invariant",
    "point_size",
    "clip_distance",
    "render_target_array_index",
    "viewport_array_index",
    "attribute",
    "user",
    "color",
    "index",
    "depth",
    "stencil",
    "sample_mask",
    "sample_id",
    "front_facing",
    "point_coord",
    "primitive_id",
    "barycentric_coord",
    "flat",
    "center_perspective",
    "center_no_perspective",
    "centroid_perspective",
    "centroid_no_perspective",
    "sample_perspective",
    "sample_no_perspective",
    "early_fragment_tests",
    "raster_order_group",
    "render_target",
    "patch",
    "patch_id",
    "position_in_patch",
    "imageblock_data",
    "payload",
};

inline bool isGraphicsAttribute(std::string_view name) {
  return std::ranges::find(kGraphicsAttributes, name) != std::end(kGraphicsAttributes);
}

/// Positions and sizes of grids and threadgroups have three axes, all else is a number.
inline uint32_t axesOf(std::string_view name) {
  const bool isIndex = name.find("_index_") != std::string_view::npos;
  const bool isOfSubgroup =
      name.find("simdgroup") != std::string_view::npos || name.find("quadgroup") != std::string_view::npos;
  return isIndex || isOfSubgroup || name == "thread_execution_width" ? 1 : 3;
}

}  // namespace vortex::msl::front
