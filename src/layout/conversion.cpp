#include "layout/conversion.h"

#include "base/check.h"

#include <algorithm>
#include <bit>

namespace vortex::layout {

namespace {

// Issue slots per warp and 32-bit word: a shuffle uses the shared-memory pipe once (2 cycles of issue with its index arithmetic); a round trip
// through shared memory is a store and a load per vector, each one pass per phase, and two barriers.
constexpr unsigned kShuffleCost = 2, kPassCost = 2, kBarrierCost = 20;

/// Same lanes, warps and blocks: only registers differ.
bool staysInThread(const Layout& from, const Layout& to) {
  return from.columns(In::Lane) == to.columns(In::Lane) && from.columns(In::Warp) == to.columns(In::Warp) &&
         from.columns(In::Block) == to.columns(In::Block) &&
         Span(from.columns(In::Register)).dim() == Span(to.columns(In::Register)).dim() &&
         intersection(from.columns(In::Register), to.columns(In::Register)).size() ==
             Span(from.columns(In::Register)).dim();
}

/// Elements stay in their warp, without copies in it: then registers and lanes span the same space on both sides.
bool staysInWarp(const Layout& from, const Layout& to) {
  if (from.columns(In::Warp) != to.columns(In::Warp) || from.columns(In::Block) != to.columns(In::Block))
    return false;
  auto inner = [](const Layout& layout) {
    Columns columns = layout.columns(In::Register);
    columns.insert(columns.end(), layout.columns(In::Lane).begin(), layout.columns(In::Lane).end());
    return columns;
  };
  Columns a = inner(from), b = inner(to);
  return rank(a) == a.size() && rank(b) == b.size() && a.size() == b.size() && intersection(a, b).size() == a.size() &&
         from.inBits(In::Lane) == to.inBits(In::Lane);
}

/// Works inside the warp's subspace: coordinates relative to `from`'s (register, lane) basis, so that complements are taken in it.
ShuffleRounds planShuffles(const Layout& from, const Layout& to, unsigned elementBytes) {
  Columns basis = from.columns(In::Register);
  basis.insert(basis.end(), from.columns(In::Lane).begin(), from.columns(In::Lane).end());
  Span inside(basis);
  unsigned bits = static_cast<unsigned>(basis.size());
  auto local = [&](std::span<const Bits> vectors) {
    Columns result;
    for (Bits vector : vectors)
      result.push_back(*inside.combination(vector));
    return result;
  };
  auto global = [&](std::span<const Bits> vectors) {
    Columns result;
    for (Bits vector : vectors)
      result.push_back(applyColumns(basis, vector));
    return result;
  };
  Columns registersA = local(from.columns(In::Register)), registersB = local(to.columns(In::Register));
  ShuffleRounds plan;
  Columns packed = intersection(registersA, registersB);
  while (!packed.empty() && (elementBytes << packed.size()) > 4)
    packed.pop_back();
  plan.packedElements = 1u << packed.size();
  Columns exchange = commonComplement(registersA, registersB, bits);
  Columns known = packed;
  known.insert(known.end(), exchange.begin(), exchange.end());
  plan.packed = global(packed);
  plan.exchange = global(exchange);
  plan.cosets = global(complement(known, bits));
  plan.rounds = 1u << plan.cosets.size();
  return plan;
}

unsigned sharedCost(const Layout& registers, const SharedLayout& shared, unsigned elementBytes) {
  unsigned bytes = shared.vectorElements * elementBytes;
  Columns lanes;
  const Transfer addresses = compose(shared.memory, registers);
  for (const Index& index : addresses.columns[static_cast<size_t>(In::Lane)])
    lanes.push_back(index.offset * elementBytes);
  unsigned accesses = (1u << registers.inBits(In::Register)) / shared.vectorElements;
  unsigned phases = std::max(1u, bytes / kBankBytes);
  return accesses * phases * bankDegree(lanes, bytes) * kPassCost;
}

}  // namespace

Conversion planConversion(const Layout& from, const Layout& to, unsigned elementBytes) {
  VORTEX_CHECK(from.dims() == to.dims(), "layouts of different tensors");
  VORTEX_CHECK(from.isSurjective() && to.isSurjective(), "a layout leaves elements out");
  Conversion result;
  if (from == to)
    return result;
  if (staysInThread(from, to)) {
    result.kind = Conversion::Kind::Registers;
    return result;
  }
  result.kind = Conversion::Kind::Shared;
  result.shared = solveSharedLayout(from, to, elementBytes);
  result.cost =
      sharedCost(from, result.shared, elementBytes) + sharedCost(to, result.shared, elementBytes) + kBarrierCost;
  if (!staysInWarp(from, to))
    return result;
  ShuffleRounds shuffles = planShuffles(from, to, elementBytes);
  unsigned words = std::max(1u, shuffles.packedElements * elementBytes / 4);
  // Offering a register that depends on the lane takes selects: one per register bit.
  unsigned selects = from.inBits(In::Register) + to.inBits(In::Register);
  unsigned cost = shuffles.rounds * words * (kShuffleCost + selects);
  if (cost <= result.cost) {
    result.kind = Conversion::Kind::Shuffles;
    result.shuffles = std::move(shuffles);
    result.cost = cost;
  }
  return result;
}

ShuffleStep shuffleStep(const Layout& from, const Layout& to, const ShuffleRounds& rounds, Bits round, Bits lane) {
  Bits coset = applyColumns(rounds.cosets, round);
  unsigned laneBits = from.inBits(In::Lane);
  // The one element of the round's coset that a layout keeps in the lane; registers of the packed vector are not looked at.
  auto member = [&](const Layout& layout) {
    Columns columns = rounds.exchange;
    columns.insert(columns.end(), layout.columns(In::Register).begin(), layout.columns(In::Register).end());
    Bits own = applyColumns(layout.columns(In::Lane), lane);
    auto made = Span(columns).combination(own ^ coset);
    VORTEX_CHECK(made, "the exchange does not reach lane %llu", static_cast<unsigned long long>(lane));
    Bits inExchange = *made & ((Bits(1) << laneBits) - 1);
    return std::pair(applyColumns(rounds.exchange, inExchange) ^ coset, *made >> laneBits);
  };
  auto [offeredElement, offered] = member(from);
  auto [keptElement, kept] = member(to);
  (void)offeredElement;
  Columns all = from.columns(In::Lane);
  all.insert(all.end(), from.columns(In::Register).begin(), from.columns(In::Register).end());
  auto source = Span(all).combination(keptElement);
  VORTEX_CHECK(source, "element outside the warp");
  return {offered, *source & ((Bits(1) << laneBits) - 1), kept};
}

}  // namespace vortex::layout
