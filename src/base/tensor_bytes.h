// How many bytes tensors may have, and how they are counted.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <span>
#include <string>

namespace vortex::base {

/// Of any tensor: what a program can address on x86-64 Linux. Arithmetic on indices relies on it.
inline constexpr uint64_t kMostTensorBytes = uint64_t{1} << 47;
/// Of the local arrays of one thread. GPUs have 512 KiB.
inline constexpr uint64_t kMostLocalBytes = uint64_t{1} << 20;
/// Of the shared memory of a block. GPUs have up to 227 KiB; the CPU's is ordinary memory.
inline constexpr uint64_t kMostSharedBytes = uint64_t{1} << 20;

using WideBytes = unsigned __int128;

/// The product, 2^127 where it is more. An extent below 1 counts as 1: extents are refused by what they would take together with a neighbour
/// of 1, so that no product of some of them wraps.
WideBytes fullBytes(std::span<const int64_t> extents, uint64_t elementBytes);
WideBytes addBytes(WideBytes a, WideBytes b);
/// In decimal; "more than 2^127".
std::string showBytes(WideBytes bytes);

/// Bytes of a contiguous tensor. Errors, which begin with `what`: a negative extent; `fullBytes` above `kMostTensorBytes`.
Result<uint64_t> tensorBytes(const std::string& what, std::span<const int64_t> extents, uint64_t elementBytes);

}  // namespace vortex::base
