// Values for each of the 32 lanes of a warp: polynomials over what the whole warp agrees on, and cases where it takes a distinction to have them.
#pragma once

#include <functional>
#include <map>

#include "lang/flow/value/value.h"

namespace vortex::lang::flow {

inline constexpr unsigned kLanes = 32;
/// Threads of a block along x, y, z where they are constant.
using BlockShape = std::array<std::optional<int64_t>, 3>;

/// What a value is in each lane, as an integer. Leaves are the same in all of them.
struct Lanes {
  std::array<Polynomial, kLanes> polynomials;

  bool isSame() const;
  /// Where no leaf is left.
  std::optional<std::array<int64_t, kLanes>> asNumbers() const;
};

/// Why there is no answer.
struct Undecided {
  ValueId leaf = kNoValue;  ///< what stands in the way, for messages
  __int128 modulus =
      0;  ///< a distinction of the residues of `leaf` may help; 0: of nothing less than its values, if at all
};

class LaneValues {
public:
  /// `isUniform`: all lanes of a warp agree on this load, ticket, phi or unknown. Sizes, arguments and block ids always are.
  LaneValues(Values& values, const BlockShape& block, std::function<bool(ValueId)> isUniform);

  /// Nothing: see `undecided`. Conditions of a point are not asked: an answer holds everywhere.
  std::optional<Lanes> of(ValueId value, Undecided& undecided);
  /// Is it seen that all lanes of each warp have one value?
  bool isSameInWarp(ValueId value);

  /// Calls `visit` for cases that cover all numbers of the leaves it could not see through: where it returns a leaf, the case is split by that leaf's
  /// values, if few, or residues, and visited again. All lanes must agree on the leaf. Returns what stayed undecided, after at most `budget` visits.
  using Visit = std::function<std::optional<Undecided>(LaneValues&)>;
  std::optional<Undecided> forEachCase(const Visit& visit, unsigned budget = 2048);
  /// In this case: a number or a residue.
  struct Case {
    ValueId leaf;
    ValueId replacement;
    PointId point;  ///< what bounds the quotient of a residue
  };
  const std::vector<Case>& cases() const { return cases_; }
  /// Stands for the warp's number in answers.
  ValueId warp() const { return warp_; }

private:
  bool isSameComparison(ValueId value);
  ValueId replaced(ValueId value, unsigned lane);
  ValueId computeReplaced(ValueId value, unsigned lane);
  ValueId position(const Node& node, ValueId value, unsigned lane);
  ValueId threadAxis(uint32_t axis, ValueId linear, ValueId value);
  bool isAgreed(ValueId leaf, Undecided& undecided);
  std::optional<Undecided> visitCase(const Visit& visit, unsigned& budget);
  std::vector<Case> split(const Undecided& open);

  Values& values_;
  NodeTable& nodes_;
  BlockShape block_;
  std::function<bool(ValueId)> isUniform_;
  ValueId warp_;
  std::set<ValueId> agreed_;  ///< the warp, and quotients of cases
  PointId point_;
  std::vector<Case> cases_;
  std::map<std::pair<ValueId, unsigned>, ValueId> replaced_;
};

}  // namespace vortex::lang::flow
