// Warnings about accesses of global memory that use little of what they move, `@verify_no_bank_conflicts`, and notes on bank conflicts for the
// build report (language.md §11).
#pragma once

#include "diag/diagnostic.h"
#include "lang/sema/access/trace.h"

namespace vortex::lang::access {

/// The worst bank conflict of an access over all warps, iterations and launches.
struct BankUse {
  unsigned degree = 1;  ///< words that one bank must deliver to one phase of a warp
  unsigned lanes[2] = {0, 0};
  int64_t bytes[2] = {0, 0};  ///< where these lanes access; from a common place if that is not known
  bool isExact = true;        ///< it really happens, not only for values or lanes that may not exist
  std::string when;           ///< values for which it happens: "`stride` = 16"
};
struct BankAnswer {
  BankUse worst;
  std::optional<Undecided> open;  ///< set: not known
};
BankAnswer bankUse(Trace& trace, const Access& access);

/// What accesses that run one after another use of the 32-byte sectors they move, at best over all cases and alignments.
struct SectorUse {
  unsigned usedBytes = 0, sectors = 0;
  std::string stride;        ///< between neighbouring lanes, in elements: "32", "`N`"; empty: irregular
  uint32_t structBytes = 0;  ///< of the elements, if they are structs that are stored whole
  bool isPoor() const { return sectors > 2 * ((usedBytes + 31) / 32); }
};
/// Of the first access together with those of the others that are a constant distance of less than a sector away. Nothing when it is not known.
/// The accesses are of one storage, under the same conditions and loops.
std::optional<SectorUse> sectorUse(Trace& trace, const std::vector<const Access*>& accesses);

/// `shapes`: blocks with which the kernel may be launched, at least one.
void checkAccesses(Function& kernel, const Roots& roots, const std::vector<BlockShape>& shapes,
                   diag::DiagnosticSink& sink);

}  // namespace vortex::lang::access
