#include "layout/hopper.h"

#include "base/check.h"
#include "layout/fragments.h"

namespace vortex::layout {

namespace {

constexpr uint32_t kCoreRows = 8;  ///< of a core matrix, whose rows have 16 bytes
constexpr uint32_t kPieceBytes = 16;

constexpr bool isSwizzle(uint32_t bytes) { return bytes == 0 || bytes == 32 || bytes == 64 || bytes == 128; }

// Where the descriptor's fields begin.
constexpr unsigned kLeadingShift = 16, kStrideShift = 32, kSwizzleShift = 62;
constexpr uint64_t kFieldMask = 0x3fff;
/// By the two highest bits.
constexpr uint32_t kSwizzles[] = {0, 128, 64, 32};

}  // namespace

uint32_t placeInBox(std::span<const uint32_t> box, uint32_t elementBytes, uint32_t swizzleBytes,
                    std::span<const uint32_t> at) {
  VORTEX_CHECK(isSwizzle(swizzleBytes) && box.size() == at.size() && !box.empty());
  VORTEX_CHECK(swizzleBytes == 0 || box[0] * elementBytes == swizzleBytes, "rows of %u bytes, a swizzle of %u",
               box[0] * elementBytes, swizzleBytes);
  uint32_t element = 0;
  for (size_t i = box.size(); i-- > 0;)
    element = element * box[i] + at[i];
  return swizzled(element * elementBytes, swizzleBytes);
}

uint64_t MatrixDescriptor::encode() const {
  const auto field = [](uint32_t bytes) {
    VORTEX_CHECK(bytes % kPieceBytes == 0 && bytes / kPieceBytes <= kFieldMask, "%u bytes in a matrix descriptor",
                 bytes);
    return uint64_t{bytes / kPieceBytes};
  };
  uint64_t swizzle = 0;
  while (kSwizzles[swizzle] != swizzleBytes)
    ++swizzle;
  return field(address) | field(leadingBytes) << kLeadingShift | field(strideBytes) << kStrideShift |
         swizzle << kSwizzleShift;
}

MatrixDescriptor MatrixDescriptor::decode(uint64_t bits) {
  const auto field = [&](unsigned shift) { return static_cast<uint32_t>(bits >> shift & kFieldMask) * kPieceBytes; };
  return {field(0), field(kLeadingShift), field(kStrideShift), kSwizzles[bits >> kSwizzleShift]};
}

uint32_t addressRead(const MatrixDescriptor& descriptor, Major major, uint32_t elementBytes, uint32_t across,
                     uint32_t depth) {
  const bool isPlain = descriptor.swizzleBytes == 0;
  const uint32_t width = isPlain ? kPieceBytes : descriptor.swizzleBytes;
  // The bytes along a box's row, and the row; what is beyond one box or eight rows is a stride of the descriptor away.
  const uint32_t along = (major == Major::Depth ? depth : across) * elementBytes;
  const uint32_t row = major == Major::Depth ? across : depth;
  // Across the depth the two strides change places in unswizzled layouts; along it swizzled ones never leave a box.
  const bool isStrideAlong = isPlain && major == Major::Across;
  const uint32_t boxStride = isStrideAlong ? descriptor.strideBytes : descriptor.leadingBytes;
  const uint32_t rowsStride = isStrideAlong ? descriptor.leadingBytes : descriptor.strideBytes;
  const uint32_t address = descriptor.address + along / width * boxStride + along % width +
                           row / kCoreRows * rowsStride + row % kCoreRows * width;
  return swizzled(address, descriptor.swizzleBytes);
}

uint32_t OperandTile::place(uint32_t acrossAt, uint32_t depthAt) const {
  const uint32_t along = major == Major::Depth ? depthAt : acrossAt, row = major == Major::Depth ? acrossAt : depthAt;
  const uint32_t box[] = {boxColumns(), boxRows()}, at[] = {along % boxColumns(), row};
  return along / boxColumns() * boxBytes() + placeInBox(box, elementBytes, swizzleBytes, at);
}

MatrixDescriptor OperandTile::descriptor(uint32_t address, uint32_t step, uint32_t firstAcross) const {
  VORTEX_CHECK(address % kSwizzleAlignment == 0 && step < steps() && firstAcross % kCoreRows == 0);
  VORTEX_CHECK(major == Major::Depth || (elementBytes == 2 && firstAcross % boxColumns() == 0));
  const uint32_t width = boxColumns() * elementBytes, firstDepth = step * kMatrixDepthBytes / elementBytes;
  const uint32_t along = (major == Major::Depth ? firstDepth : firstAcross) * elementBytes;
  const uint32_t row = major == Major::Depth ? firstAcross : firstDepth;
  // Rows come in multiples of 8, so the address of the first element says nothing of the swizzle: it stays that of the unswizzled picture.
  const uint32_t first = address + along / width * boxBytes() + along % width + row * width;
  MatrixDescriptor result{first, boxBytes(), kCoreRows * width, swizzleBytes};
  if (swizzleBytes == 0 && major == Major::Across)
    std::swap(result.leadingBytes, result.strideBytes);
  else if (swizzleBytes != 0 && major == Major::Depth)
    result.leadingBytes = kPieceBytes;  // not read; 1 is what the ISA wants in the field
  return result;
}

/// A warp's fragment four times, 16 rows apart.
static Layout perWarp(const Layout& fragment) { return product(fragment, Layout({2, 0}).unit(In::Warp, 0, 2)); }

Layout warpgroupAccumulators() { return perWarp(mmaC()); }
Layout warpgroupA(unsigned elementBits) { return perWarp(mmaA(elementBits)); }

}  // namespace vortex::layout
