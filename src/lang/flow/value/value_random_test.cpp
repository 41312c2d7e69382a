// Every answer about random expressions of narrow types, compared with all that their leaves can be. VORTEX_VALUE_TRIALS lengthens a run.
//
// Each condition of the rules, left out once by hand, was caught: exactness without a range that fits, widening and division and minimum of inexact
// operands, comparisons and facts of inexact operands, masks of negative numbers, a difference not below the modulus, a divisor that does not divide
// the modulus, a remembered modulus twice as large or that of one term forgotten, a condition taken for its opposite (within 250 trials each); a
// remainder below a divisor that may be 0 (1,600), a factor that may be negative (3,600), ceil_div by 0 (3,200). Digits of negative dividends,
// a = b q + r with b = 0 and equality modulo unlike types come up too rarely: value_test.cpp has them.
#include "base/fresh_seed.h"
#include "base/sanitized.h"
#include "lang/flow/value/testing/every_value.h"
#include "lang/flow/value/value.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace vortex::lang::flow {
namespace {

using testing::EveryValue;
using testing::RandomNodes;

std::string text(__int128 value) {
  return (value < 0 ? "-" : "") + std::to_string(static_cast<uint64_t>(value < 0 ? -value : value));
}

std::string dump(const NodeTable& nodes, ValueId value) {
  constexpr const char* kOps[] = {"+", "-", "*",   "/",   "%",  "ceil_div", "<<", ">>",    "&",
                                  "|", "^", "min", "max", "==", "<",        "<=", "select"};
  const Node& node = nodes[value];
  const std::string type = (node.type.isSigned ? ":i" : ":u") + std::to_string(node.type.width);
  if (node.kind == NodeKind::Constant)
    return text(node.constant()) + type;
  if (node.kind == NodeKind::Convert)
    return "(" + dump(nodes, nodes.operand(value, 0)) + " as" + type + ")";
  if (node.kind != NodeKind::Op)
    return "v" + std::to_string(indexOf(value)) + type;
  std::string result = std::string("(") + kOps[static_cast<int>(node.op)] + type;
  for (size_t i = 0; i < operandCount(node.op); ++i)
    result += " " + dump(nodes, nodes.operand(value, i));
  return result + ")";
}

std::string dump(const Polynomial& polynomial) {
  std::string result;
  for (const auto& [monomial, coefficient] : polynomial.terms()) {
    result += " + " + text(coefficient);
    for (ValueId leaf : monomial)
      result += "·v" + std::to_string(indexOf(leaf));
  }
  return result;
}

/// One point with a few conditions; the rows of the oracle at which they hold.
class Trial {
public:
  explicit Trial(uint32_t seed)
      : random(nodes, leaves(seed), seed), values(nodes, {.conditions = [this](PointId) { return conditions; }}) {
    for (size_t count = random.below(3); count > 0; --count)
      conditions.push_back({random.condition(1), random.below(3) != 0});
    for (size_t row = 0; row < oracle.rows(); ++row) {
      bool isPossible = true;
      for (const Condition& condition : conditions)
        isPossible = isPossible && (oracle.of(condition.value)[row] != 0) == condition.holds;
      if (isPossible)
        rows.push_back(row);
    }
  }

  std::string describe(ValueId a, ValueId b) const {
    std::string result = dump(nodes, a) + "  and  " + dump(nodes, b);
    for (const Condition& condition : conditions)
      result += "\n  where " + std::string(condition.holds ? "" : "not ") + dump(nodes, condition.value);
    return result;
  }

  NodeTable nodes;
  EveryValue oracle{nodes};
  RandomNodes random;
  std::vector<Condition> conditions;
  std::vector<size_t> rows;
  Values values;
  static constexpr PointId kPoint{0};

private:
  std::vector<ValueId> leaves(uint32_t seed) {
    std::vector<ValueId> result{nodes.argument(0, {8, seed % 3 == 0}), nodes.argument(1, {4, seed % 5 == 0})};
    for (ValueId leaf : result)
      oracle.add(leaf);
    return result;
  }
};

/// Which of the true answers were found, by kind; so that a change that only gives up is seen.
struct Found {
  size_t exact = 0, isExact = 0, differ = 0, isDiffer = 0, equal = 0, isEqual = 0, less = 0, isLess = 0;
};

void checkForm(Trial& trial, ValueId value) {
  const Form form = trial.values.form(value, Trial::kPoint);
  const MachineType type = trial.nodes.type(value);
  const Interval range = trial.values.range(value, Trial::kPoint);
  const std::vector<int64_t>& column = trial.oracle.of(value);
  for (size_t row : trial.rows) {
    const __int128 number = trial.oracle.of(form.polynomial, row);
    ASSERT_TRUE(type.wrap(number) == column[row])
        << trial.describe(value, value) << "\nis not" << dump(form.polynomial) << " at row " << row;
    ASSERT_TRUE(!form.isExact || number == column[row])
        << trial.describe(value, value) << "\nis not exactly" << dump(form.polynomial) << " at row " << row;
    ASSERT_TRUE(range.low <= column[row] && column[row] <= range.high)
        << trial.describe(value, value) << "\n"
        << column[row] << " is not in " << text(range.low) << " … " << text(range.high);
  }
}

void checkPair(Trial& trial, ValueId a, ValueId b, Found& found) {
  const std::vector<int64_t>&x = trial.oracle.of(a), &y = trial.oracle.of(b);
  bool allEqual = true, allDiffer = true, allLess = true, noneLess = true;
  for (size_t row : trial.rows) {
    allEqual = allEqual && x[row] == y[row];
    allDiffer = allDiffer && x[row] != y[row];
    allLess = allLess && x[row] < y[row];
    noneLess = noneLess && x[row] >= y[row];
  }
  const auto agrees = [&](const char* what, Truth said, bool isAlways, bool isNever) {
    ASSERT_TRUE(said != Truth::Yes || isAlways) << what << ": " << trial.describe(a, b);
    ASSERT_TRUE(said != Truth::No || isNever) << "not " << what << ": " << trial.describe(a, b);
  };
  const Truth equal = trial.values.equal(a, b, Trial::kPoint), less = trial.values.less(a, b, Trial::kPoint);
  agrees("equal", equal, allEqual, allDiffer);
  agrees("differ", trial.values.differ(a, b, Trial::kPoint), allDiffer, allEqual);
  agrees("less", less, allLess, noneLess);
  found.isEqual += allEqual;
  found.equal += allEqual && equal == Truth::Yes;
  found.isDiffer += allDiffer;
  found.differ += allDiffer && equal == Truth::No;
  found.isLess += allLess || noneLess;
  found.less += less != Truth::Unknown;
}

/// Expressions that are likely to be related: the second is the first with something done to it, or of the same parts.
ValueId relative(Trial& trial, ValueId a) {
  NodeTable& nodes = trial.nodes;
  const MachineType type = nodes.type(a);
  switch (trial.random.below(7)) {
  case 6: return nodes.convert(trial.random.anyType(), a);
  case 0: return nodes.op(Op::Add, type, a, trial.random.number(type));
  case 1: return nodes.convert(type, nodes.convert(trial.random.anyType(), a));
  case 2:
    if (nodes[a].kind == NodeKind::Op && operandCount(nodes[a].op) == 2) {
      const ValueId left = nodes.operand(a, 0);
      const ValueId moved = nodes.op(Op::Add, nodes.type(left), left, trial.random.number(nodes.type(left)));
      return nodes.op(nodes[a].op, type, moved, nodes.operand(a, 1));
    }
    [[fallthrough]];
  case 3:
    if (nodes[a].kind == NodeKind::Convert) {
      const ValueId inner = nodes.operand(a, 0);
      return nodes.convert(type, nodes.op(Op::Add, nodes.type(inner), inner, trial.random.number(nodes.type(inner))));
    }
    [[fallthrough]];
  default: return trial.random.make(type, 2);
  }
}

size_t trialCount() {
  const char* wanted = std::getenv("VORTEX_VALUE_TRIALS");
  return wanted ? std::strtoul(wanted, nullptr, 10) : base::sampled(1500);
}

TEST(RandomValues, AnswersHoldForEveryLeaf) {
  const uint32_t first = base::freshSeed();
  Found found;
  for (uint32_t i = 0; i < trialCount(); ++i) {
    SCOPED_TRACE("VORTEX_SEED=" + std::to_string(first + i));
    Trial trial(first + i);
    for (int pair = 0; pair < 4; ++pair) {
      const ValueId a = trial.random.make(trial.random.anyType(), 1 + trial.random.below(3));
      const ValueId b = relative(trial, a);
      checkForm(trial, a);
      checkForm(trial, b);
      if (trial.nodes.type(a).width <= 16 && !HasFatalFailure())
        checkPair(trial, a, b, found);
      if (HasFatalFailure())
        return;
    }
  }
  std::printf("found: equal %zu of %zu, different %zu of %zu, ordered %zu of %zu\n", found.equal, found.isEqual,
              found.differ, found.isDiffer, found.less, found.isLess);
  EXPECT_GT(found.differ * 2, found.isDiffer);
  EXPECT_GT(found.equal * 4, found.isEqual);
}

}  // namespace
}  // namespace vortex::lang::flow
