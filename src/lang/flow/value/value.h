// What is known of the values of one program: forms, ranges, and whether two are equal, differ or follow one another.
//
// A form is a polynomial over leaves with value ≡ polynomial (mod 2^width of the type). It is exact when the two are equal as integers, which holds
// if the polynomial's range, computed over the integers, fits the type; steps in between may wrap. An inexact value is a leaf wherever an integer is
// needed: a leaf with its type's range that remembers what it is congruent to. Nothing here assumes that arithmetic does not wrap; it is excluded by
// ranges only: of types, positions, extents, loop counters, and of conditions that hold at a point.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

#include "lang/flow/value/node.h"
#include "lang/flow/value/polynomial.h"

namespace vortex::lang::flow {

enum class Truth : uint8_t { No, Yes, Unknown };

/// A bool value, and which of the two it is known to have.
struct Condition {
  ValueId value = kNoValue;
  bool holds = true;
  bool operator==(const Condition&) const = default;
};

/// The counter of a loop over a range or a list: begin, begin + step, … below end (above it, where the step is negative), never wrapping. Its phi is
/// asked about only inside the loop.
struct LoopCounter {
  ValueId begin = kNoValue, end = kNoValue, step = kNoValue;
  std::vector<__int128> list;  ///< instead of a range: all values
  bool isFalling = false;      ///< found out by Values
};

/// What Values asks of the program around it. Each may be empty: then nothing is known.
struct Surroundings {
  /// Conditions that hold whenever control is at the point.
  std::function<std::vector<Condition>(PointId)> conditions = {};
  std::function<std::optional<LoopCounter>(ValueId phi)> counter = {};
  /// The end of the edge on which the phi takes its operand; null if the operand does not come from a back edge.
  std::function<std::optional<PointId>(ValueId phi, size_t operand)> backEdge = {};
  /// The end of the edge on which a loop is entered; null as above.
  std::function<std::optional<PointId>(ValueId phi, size_t operand)> entry = {};
  /// Where the phi has its value: the begin of its block.
  std::function<PointId(ValueId phi)> begin = {};
};

/// A launch's sizes where they are known, and numbers that cannot be multiplied beyond a limit.
struct LaunchFacts {
  std::array<ValueId, 3> blockDim{kNoValue, kNoValue, kNoValue};
  std::array<ValueId, 3> gridDim{kNoValue, kNoValue, kNoValue};
  /// Extents (one may stand several times) whose product, and that of each part of them, is at most the limit: the shape of a tensor.
  struct Product {
    std::vector<ValueId> factors;  ///< sorted
    __int128 limit = 0;
  };
  std::vector<Product> products;
};

inline constexpr __int128 kMostElements = __int128(1) << 47;
inline constexpr __int128 kMostThreadsOfBlock = 65536;
inline constexpr __int128 kMostBlocksOfAxis = (__int128(1) << 31) - 1;

struct Form {
  Polynomial polynomial;
  bool isExact = false;
};

/// Answers hold at a point, for the instance of each value that the point sees. Nodes may be added at any time, conditions of a point may not.
class Values {
public:
  explicit Values(NodeTable& nodes, Surroundings surroundings = {}, LaunchFacts launch = {});
  ~Values();

  NodeTable& nodes() { return nodes_; }
  /// A point like `base` at which these hold too: what an access that happens says about its indices. The same one for equal ones.
  PointId assume(PointId base, std::vector<Condition> conditions);
  /// The leaf is this number everywhere, as an integer. Before anything is asked.
  void define(ValueId leaf, Polynomial polynomial) { defined_[indexOf(leaf)] = std::move(polynomial); }

  /// value ≡ polynomial modulo 2^width of its type.
  Form form(ValueId value, PointId point);
  /// What the value is as an integer: its form where that is exact, else the value itself as a leaf.
  Polynomial integer(ValueId value, PointId point);
  /// Bounds that are numbers. Bounds by other values (i < n) are seen by `less` only.
  Interval range(ValueId value, PointId point);
  /// As integers. No: they differ.
  Truth equal(ValueId a, ValueId b, PointId point);
  Truth differ(ValueId a, ValueId b, PointId point);
  bool areNeverEqual(ValueId a, ValueId b, PointId point);  ///< differ says Yes, without a proof of the contrary
  Truth less(ValueId a, ValueId b, PointId point);
  bool isNotLess(ValueId a, ValueId b, PointId point);  ///< less says No
  /// Is the polynomial of integers at least 0 whatever the leaves are? False: not proven.
  bool isAtLeastZero(const Polynomial& polynomial, PointId point);
  /// Is the polynomial of integers never 0? False: not proven.
  bool isNeverZero(const Polynomial& polynomial, PointId point);
  /// Is at least one of the integers not 0, whatever the leaves are, by what is known of remainders?
  bool areNeverAllZero(std::span<const Polynomial> zeros, PointId point);
  /// Steps of all proofs so far: what a caller with a budget watches.
  uint64_t proofSteps() const { return proofSteps_; }
  size_t assumptionCount() const { return assumptions_.size(); }
  /// All that a phi of a list or of repeated doubling or halving can be.
  const std::vector<__int128>& listOf(ValueId phi);
  bool isPowerOrZero(ValueId phi) const;  ///< a power of two that is doubled or halved in every round

private:
  struct Context;
  struct Proof;
  struct Congruence {
    Polynomial polynomial;
    __int128 modulus = 0;
  };
  struct Induction {
    Polynomial step;  ///< same in every iteration
    ValueId begin = kNoValue;
    ValueId end = kNoValue;  ///< exclusive; of a LoopCounter
    ValueId count =
        kNoValue;  ///< of iterations: begin + step · count. None where the phi itself serves, which is begin, begin + 1, …
    MachineType type;
    bool isExact = false;  ///< never wraps
    bool isSmall = false;  ///< at most kMostSupposed
  };

  //===-- form.cpp ------------------------------------------------------------------------------------------------===//
  Form computeForm(Context&, ValueId);
  Form ofOp(Context&, ValueId);
  Form ofConvert(Context&, ValueId);
  Form ofPosition(Context&, const Node&, ValueId);
  Form ofDivision(Context&, ValueId);
  Form ofReducedDivision(Context&, ValueId, const Polynomial& a, __int128 divisor);
  Form ofPlainDivision(Context&, ValueId, const Polynomial& a, const Polynomial& b);
  ValueId nodeOf(const Polynomial&, MachineType);
  Form ofComparison(Context&, ValueId);
  Form ofChoice(Context&, ValueId);
  Form leaf(Context&, ValueId);
  Form settle(Context&, ValueId, const std::optional<Polynomial>& modular, const std::optional<Polynomial>& whole);
  Form form(Context&, ValueId);
  Polynomial integer(Context&, ValueId);
  bool fits(Context&, const Polynomial&, MachineType);
  std::optional<Congruence> memoryOf(Context&, ValueId leaf);

  //===-- bits.cpp ------------------------------------------------------------------------------------------------===//
  Form ofShift(Context&, ValueId);
  Form ofShiftDown(Context&, ValueId);
  Form ofPower(Context&, ValueId);
  Form ofBits(Context&, ValueId);
  Form ofBit(Context&, ValueId, ValueId x, __int128 bit);
  std::optional<Polynomial> ofMask(Context&, ValueId x, ValueId mask);
  bool isPower(Context&, const Polynomial&);
  bool haveNoCommonBit(Context&, const Polynomial&, const Polynomial&, unsigned depth);

  //===-- range.cpp -----------------------------------------------------------------------------------------------===//
  Interval leafRange(Context&, ValueId leaf);
  Interval structuralRange(Context&, ValueId leaf);
  Interval rangeOfOp(Context&, ValueId leaf);
  Interval rangeOfPosition(Context&, const Node&);
  Interval range(Context&, ValueId);
  Interval interval(Context&, const Polynomial&);
  Interval interval(Context&, const Monomial&);
  Interval boundedByProducts(Context&, const Monomial&);
  ValueId wholeOf(Context&, ValueId leaf);
  bool isAtLeastZero(Context&, ValueId);
  /// Polynomials that are at least 0 and say something of the leaf.
  const std::vector<Polynomial>& inequalitiesOf(Context&, ValueId leaf);
  void structuralInequalities(Context&, ValueId leaf, std::vector<Polynomial>&);
  void inequalitiesOfOp(Context&, ValueId leaf, std::vector<Polynomial>&);
  void addWhole(Context&, const Polynomial& dividend, const Polynomial& divisor, const Polynomial& product,
                std::vector<Polynomial>&);
  void addReduced(Context&, const Polynomial& dividend, const Polynomial& divisor, const Polynomial& product,
                  std::vector<Polynomial>&);

  //===-- prove.cpp -----------------------------------------------------------------------------------------------===//
  bool isAtLeastZero(Context&, const Polynomial&);
  bool prove(Context&, const Polynomial&, Proof);
  bool proveBySplitting(Context&, const Polynomial&, const Proof&);
  void addBounds(Context&, const Monomial&, Proof&);
  bool leavesNoRoom(Context&, const Polynomial&, const Proof&);

  //===-- facts.cpp -----------------------------------------------------------------------------------------------===//
  std::vector<Condition> conditionsAt(PointId) const;  ///< of a point of the program
  Context& contextAt(PointId);
  void build(Context&);
  void extend(Context&, const Context& base, const std::vector<Condition>&);
  void learnAll(Context&, const std::vector<Condition>&);
  void learn(Context&, Condition);
  void learnBit(Context&, ValueId masked, ValueId compared, bool holds);
  void learnPower(Context&, ValueId masked, ValueId compared);
  void learnDividend(Context&, ValueId quotient, const Interval& range);
  void learnComparison(Context&, const Node&, ValueId, bool holds);
  void addAtLeastZero(Context&, const std::optional<Polynomial>&);
  void addNotZero(Context&, const std::optional<Polynomial>&);
  bool refine(Context&);
  bool excludeZero(Context&, const Monomial& product);

  //===-- induction.cpp -------------------------------------------------------------------------------------------===//
  Form ofPhi(Context&, ValueId);
  const std::optional<Induction>& inductionOf(ValueId phi);
  std::optional<Induction> findInduction(ValueId phi);
  std::pair<Form, bool> nextOf(ValueId phi, ValueId operand, PointId edge);

  //===-- lists.cpp -----------------------------------------------------------------------------------------------===//
  struct Trace;
  using Numbers = std::vector<std::pair<ValueId, __int128>>;  ///< of a few phis
  std::vector<__int128> findList(ValueId phi);
  std::vector<__int128> listBehindLoop(ValueId phi);
  std::vector<__int128> numbersOf(const LoopCounter&) const;
  std::optional<std::vector<Numbers>> roundsOf(const std::vector<ValueId>& wanted, bool jointly);
  Trace traceOf(const std::vector<ValueId>& wanted, bool jointly);
  bool follow(const Trace&, const Numbers& outer, std::vector<Numbers>& rounds) const;
  void phisOf(ValueId, std::vector<ValueId>& phis) const;
  bool isExcluded(const std::vector<Condition>&, const Numbers&) const;
  std::optional<LoopCounter> counterOf(ValueId phi);
  bool isSameInEveryIteration(const Polynomial&) const;
  bool isSameInEveryIteration(ValueId) const;
  Interval rangeOfPhi(Context&, ValueId);
  __int128 leastOf(ValueId phi);
  Interval rangeOfCount(Context&, const Induction&);
  void inequalitiesOfPhi(Context&, ValueId phi, std::vector<Polynomial>&);
  /// step · count is at most this; nothing: the counter may wrap.
  std::optional<Polynomial> countLimit(Context&, const Induction&);

  //===-- compare.cpp ---------------------------------------------------------------------------------------------===//
  bool isBetweenMultiples(Context&, const Polynomial&, __int128 modulus);
  bool isNeverZero(Context&, const Polynomial&, __int128 modulus);
  bool isZeroByFacts(Context&, const Polynomial&);
  bool differ(Context&, ValueId, ValueId);

  //===-- congruence.cpp ------------------------------------------------------------------------------------------===//
  void findRemainders(Context&);
  bool areNeverAllZero(Context&, std::span<const Polynomial>);
  bool areNeverAllZero(Context&, std::span<const Polynomial>, __int128 modulus);

  NodeTable& nodes_;
  Surroundings surroundings_;
  LaunchFacts launch_;
  std::unordered_map<uint32_t, std::unique_ptr<Context>> contexts_;
  struct Assumption {
    PointId base;
    std::vector<Condition> conditions;
    bool operator==(const Assumption&) const = default;
  };
  struct AssumptionHash {
    size_t operator()(const Assumption&) const;
  };
  std::vector<Assumption> assumptions_;  ///< of points from kFirstAssumed on
  std::unordered_map<Assumption, PointId, AssumptionHash> assumed_;
  std::unordered_map<uint32_t, std::optional<Induction>> inductions_;
  std::unordered_map<uint32_t, std::vector<__int128>> lists_;
  std::unordered_map<uint32_t, __int128> leasts_;
  uint64_t proofSteps_ = 0;
  std::unordered_map<uint32_t, Polynomial> defined_;
  std::unordered_map<uint32_t, ValueId> counted_;  ///< the phi of a leaf that counts its iterations
  std::set<ValueId> inProgress_;                   ///< phis whose induction is being looked for: leaves meanwhile
};

}  // namespace vortex::lang::flow
