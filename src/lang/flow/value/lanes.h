// Values in each of the 32 lanes of a warp. Sums and products are exact for any numbers that the lanes agree on; division, remainder, bits and
// comparisons are exact where these numbers do not reach the result, and otherwise ask for a case distinction on one of them: over all its
// values when they are few, else over its residues.
//
// A value of w bits is known modulo 2^w: `0 - 1` of a u32 is -1 in every lane. Sums, products, bits and narrower types need no more. What depends on
// the integer itself (order, quotients, wider types) asks for it, and gets it or learns which number may or may not wrap.
#pragma once

#include <functional>
#include <map>

#include "lang/flow/value/lane_numbers.h"
#include "lang/flow/value/value.h"

namespace vortex::lang::flow {

/// Threads of a block along x, y, z where they are constant.
using BlockShape = std::array<std::optional<int64_t>, 3>;

/// Why there is no answer.
struct Undecided {
  ValueId leaf = kNoValue;  ///< what stands in the way
  __int128 modulus = 0;     ///< a distinction of the residues of `leaf` may help; 0: of nothing less than its values
  bool isOfLanes = false;   ///< lanes differ on the leaf in a way that is not known: no distinction helps
};

/// What is asked of the program around a value. Each but the first may be empty: then nothing is known.
struct LaneSurroundings {
  /// All lanes of a warp agree on this load, ticket, phi or unknown. Sizes, arguments and block ids they always agree on.
  std::function<bool(ValueId)> isUniform;
  /// A phi where the sides of branches meet, as a selection among its operands by conditions; kNoValue: not known.
  std::function<ValueId(ValueId phi)> selection = {};
  /// Lanes differ on the phi as they do on this value, which is computed before or in the iteration they are in together; kNoValue: not known.
  struct Likeness {
    ValueId value = kNoValue;
    bool isCounter = false;  ///< the phi is each number in its range at some time
  };
  std::function<Likeness(ValueId phi)> likeness = {};
  /// All numbers of the list that a load takes its number from; else null.
  std::function<const std::vector<__int128>*(ValueId load)> list = {};
};

class LaneValues {
public:
  LaneValues(Values& values, const BlockShape& block, LaneSurroundings surroundings);

  /// Modulo 2^width. Nothing: see `undecided`. Conditions of a point are not asked: an answer holds everywhere.
  std::optional<Lanes> modular(ValueId value);
  /// As integers.
  std::optional<Lanes> integer(ValueId value);
  /// Of a bool.
  std::array<Truth, kLanes> truth(ValueId value);
  Undecided undecided;
  /// A number that lanes agree on stands for more than it really can be.
  bool isApproximate = false;

  /// `isUniform` may answer otherwise from now on.
  void forget() { answers_ = {}; }

  /// Is it seen that all lanes of each warp have one value?
  bool isSameInWarp(ValueId value);
  /// Are all lanes on one side of the condition, whichever that is?
  bool isSameCondition(ValueId condition);
  /// All numbers of a leaf; empty: more than `limit`, or not known.
  std::vector<__int128> fewValues(ValueId leaf, __int128 limit);
  Interval rangeOfLane(const Lanes& value, unsigned lane);

  /// Stands for an index of an access that happens: right modulo 2^width is enough, and where an extent is given, what all lanes agree on is some
  /// number below it. A value of type usize, for this object only.
  ValueId index(ValueId value, std::optional<int64_t> extent);
  /// Of a value that `index` made: is each lane's index below the extent?
  std::array<Truth, kLanes> isBelow(ValueId index, int64_t extent);

  /// Calls `visit` for cases that cover all numbers of the leaves it could not see through: where it returns a leaf, the case is split by that
  /// leaf's values, if few, or residues, and visited again. Returns what stayed undecided, after at most `budget` visits.
  using Visit = std::function<std::optional<Undecided>(LaneValues&)>;
  std::optional<Undecided> forEachCase(const Visit& visit, unsigned budget = 2048);
  /// In this case the leaf is factor · quotient + rest.
  struct Case {
    ValueId leaf;
    __int128 factor, rest;
    ValueId quotient;  ///< kNoValue: the factor is 0
  };
  const std::vector<Case>& cases() const { return cases_; }
  const NodeTable& nodes() const { return nodes_; }
  /// Of a warp that is as full as those of the block get.
  unsigned laneCount() const { return laneCount_; }
  /// Stands for the warp's number in answers.
  ValueId warp() const { return warp_; }

private:
  struct Known {
    std::optional<Lanes> lanes;
    Undecided undecided;
    bool isApproximate = false;
  };
  struct KnownTruth {
    std::array<Truth, kLanes> truth;
    Undecided undecided;
    bool isApproximate = false;
  };
  using Memo = std::unordered_map<uint32_t, Known>;
  /// By value, of this case.
  struct Answers {
    Memo modular, integers;
    std::unordered_map<uint32_t, KnownTruth> truths;
    std::unordered_map<uint32_t, bool> sameConditions;
  };
  struct Index {
    ValueId value;
    std::optional<int64_t> extent;
  };
  using Compute = std::optional<Lanes> (LaneValues::*)(ValueId);
  std::optional<Lanes> remembered(Memo Answers::* memo, ValueId value, Compute compute);
  std::optional<Lanes> compute(ValueId value);
  std::optional<Lanes> computeInteger(ValueId value);
  std::optional<Lanes> ofPosition(const Node& node, ValueId value);
  std::optional<Lanes> ofThreadAxis(uint32_t axis, ValueId value);
  std::optional<Lanes> ofPhi(ValueId phi);
  std::optional<Lanes> likeOther(ValueId phi, ValueId other);
  std::optional<Lanes> ofIndex(ValueId value, const Index& index);
  std::optional<Lanes> ofPolynomial(const Polynomial& polynomial);
  Lanes leaf(ValueId leaf) const;
  Lanes opaque(ValueId value);
  std::optional<Lanes> give(const Lanes& culprit, __int128 modulus);

  // lane_operations.cpp
  std::optional<Lanes> ofOperation(const Node& node, ValueId value);
  std::optional<Lanes> ofDivision(const Node& node, ValueId value);
  std::optional<Lanes> divided(ValueId value, bool isQuotient, const Lanes& dividend, __int128 divisor);
  std::optional<Lanes> reduced(ValueId value, bool isQuotient, const Lanes& dividend, __int128 divisor);
  std::optional<Lanes> ofShift(const Node& node, ValueId value);
  std::optional<Lanes> ofBits(const Node& node, ValueId value);
  std::optional<Lanes> ofMask(Op op, ValueId value, const Lanes& a, const Lanes& mask);
  std::optional<Lanes> ofExtremum(const Node& node, ValueId value);
  std::optional<Lanes> ofSelection(ValueId value);
  std::optional<Lanes> ofCondition(ValueId value);
  std::array<Truth, kLanes> computeTruth(ValueId value);
  bool computeSameCondition(ValueId value);
  std::array<Truth, kLanes> ofComparison(const Node& node, ValueId value);
  bool isSameComparison(const Node& node, ValueId value);

  const std::vector<__int128>* listOf(ValueId leaf);
  Interval rangeOfLeaf(ValueId leaf);
  Interval range(const Lanes& value);
  std::optional<Undecided> visitCase(const Visit& visit, unsigned& budget);
  std::vector<Case> split(const Undecided& open);
  ValueId splittable(ValueId leaf);
  ValueId quotientOf(ValueId leaf, __int128 factor);

  Values& values_;
  NodeTable& nodes_;
  BlockShape block_;
  LaneSurroundings surroundings_;
  unsigned laneCount_ = kLanes;
  ValueId warp_;
  PointId point_;  ///< at which the warp's number is known to be one of the block
  std::vector<Case> cases_;
  Answers answers_;
  std::unordered_map<uint32_t, Interval> ranges_;  ///< of leaves
  std::unordered_map<uint32_t, Index> indices_;
  std::map<std::pair<ValueId, int64_t>, ValueId> knownIndices_;  ///< by value and extent, -1: none
  std::map<std::pair<ValueId, __int128>, ValueId> quotients_;
};

}  // namespace vortex::lang::flow
