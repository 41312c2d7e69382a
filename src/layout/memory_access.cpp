#include "layout/memory_access.h"

#include "base/check.h"

#include <algorithm>
#include <bit>

namespace vortex::layout {

unsigned countSectors(std::span<const uint64_t> byteAddresses, unsigned bytes) {
  std::vector<uint64_t> sectors;
  for (uint64_t address : byteAddresses)
    for (uint64_t sector = address / kSectorBytes; sector <= (address + bytes - 1) / kSectorBytes; ++sector)
      sectors.push_back(sector);
  std::sort(sectors.begin(), sectors.end());
  return static_cast<unsigned>(std::unique(sectors.begin(), sectors.end()) - sectors.begin());
}

namespace {
unsigned lanesPerPhase(unsigned bytes) { return bytes <= kBankBytes ? kWarpLanes : kWarpLanes * kBankBytes / bytes; }
}  // namespace

BankUse countBanks(std::span<const uint64_t> byteOffsets, unsigned bytes) {
  VORTEX_CHECK(std::has_single_bit(bytes) && bytes <= 16 && byteOffsets.size() <= kWarpLanes);
  BankUse use;
  for (size_t first = 0; first < byteOffsets.size(); first += lanesPerPhase(bytes)) {
    std::vector<uint64_t> words[kBanks];
    size_t end = std::min(first + lanesPerPhase(bytes), byteOffsets.size());
    for (size_t lane = first; lane < end; ++lane)
      for (unsigned at = 0; at < bytes; at += std::min(bytes, kBankBytes)) {
        uint64_t word = (byteOffsets[lane] + at) / kBankBytes;
        auto& bank = words[word % kBanks];
        if (std::find(bank.begin(), bank.end(), word) == bank.end())
          bank.push_back(word);
      }
    size_t most = 0;
    for (const auto& bank : words)
      most = std::max(most, bank.size());
    use.wavefronts += static_cast<unsigned>(most);
    use.degree = std::max(use.degree, static_cast<unsigned>(most));
    ++use.least;
  }
  return use;
}

Layout rowMajor(std::vector<unsigned> dims) {
  Layout result(std::move(dims));
  for (unsigned dim = result.rank(); dim-- > 0;)
    result.unit(In::Offset, dim, result.dimBits(dim));
  return result;
}

VectorAccess widestVector(const Layout& registers, const Layout& memory, unsigned elementBytes, unsigned maxBytes) {
  VORTEX_CHECK(registers.dims() == memory.dims(), "layouts of different tensors");
  Span held(registers.columns(In::Register));
  VectorAccess result;
  for (Bits next : memory.columns(In::Offset)) {
    auto made = held.combination(next);
    if (!made || result.elements * 2 * elementBytes > maxBytes)
      break;
    result.registers.push_back(*made);
    result.elements *= 2;
  }
  return result;
}

std::vector<uint64_t> laneOffsets(const Layout& registers, const Layout& memory, unsigned elementBytes, Bits reg,
                                  Bits warp) {
  Transfer places = compose(memory, registers);
  std::vector<uint64_t> result;
  for (Bits lane = 0; lane < Bits(1) << registers.inBits(In::Lane); ++lane)
    result.push_back(places.apply({.reg = reg, .lane = lane, .warp = warp}).offset * elementBytes);
  return result;
}

unsigned bankDegree(std::span<const Bits> laneByteOffsets, unsigned bytes) {
  unsigned phaseBits = static_cast<unsigned>(std::countr_zero(lanesPerPhase(bytes)));
  Columns words, banks;
  for (size_t bit = 0; bit < std::min<size_t>(phaseBits, laneByteOffsets.size()); ++bit) {
    words.push_back(laneByteOffsets[bit] / kBankBytes);
    banks.push_back(words.back() % kBanks);
  }
  return 1u << (rank(words) - rank(banks));
}

}  // namespace vortex::layout
