#include "metile/online_softmax.h"

#include "base/maximum_sum.h"
#include "metile/kinds.h"
#include "metile/loops.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace vortex::metile {

namespace {

using OperandKind = Operand::Kind;

bool isValue(const Operand& operand) { return operand.kind == OperandKind::Value; }
Operand value(int64_t id) { return {OperandKind::Value, id, 0, {}}; }
Operand real(double number) { return {OperandKind::Float, 0, number, {}}; }

/// Operations in front of others, as base::MaximumSum writes them.
class Writer {
public:
  using Value = Operand;
  Writer(Trace& trace, source::SourceRange range) : trace_(trace), range_(range) {}

  Operand sub(Operand a, Operand b) { return write("sub", {a, b}); }
  Operand mul(Operand a, Operand b) { return write("mul", {a, b}); }
  Operand add(Operand a, Operand b) { return write("add", {a, b}); }
  Operand exp(Operand a) { return write("exp", {a}); }
  Operand abs(Operand a) { return write("abs", {a}); }
  Operand neg(Operand a) { return write("neg", {a}); }
  Operand equal(Operand a, Operand b) { return write("eq", {a, b}); }
  Operand less(Operand a, Operand b) { return write("lt", {a, b}); }
  Operand select(Operand condition, Operand a, Operand b) { return write("where", {condition, a, b}); }
  Operand number(double number) { return real(number); }

  void statement(std::string name, std::vector<Operand> operands) {
    ops.push_back({std::move(name), -1, std::move(operands), range_});
  }
  std::vector<Op> ops;

private:
  Operand write(const char* name, std::vector<Operand> operands) {
    ops.push_back({name, trace_.values, std::move(operands), range_});
    return value(trace_.values++);
  }
  Trace& trace_;
  source::SourceRange range_;
};

/// A carried variable that only grows: m = maximum(m, x, …).
struct Maximum {
  Carried carried;
  std::vector<int64_t> elements;  ///< ids of the x
  bool isOfTwo = false;           ///< one x and nothing else
};

/// A carried sum of exponentials: s = s + exp(x - bound) + ….
struct Sum {
  Carried carried;
  std::vector<int64_t> elements;
  int64_t bound = 0;
  const Maximum* maximum = nullptr;
};

class Rewriter {
public:
  Rewriter(Trace& trace, const std::vector<Kind>& kinds) : trace_(trace), loops_(loopsOf(trace)), kinds_(kinds) {
    definitions_.assign(static_cast<size_t>(trace.values), nullptr);
    for (const Op& op : trace.ops)
      if (op.result >= 0)
        definitions_[static_cast<size_t>(op.result)] = &op;
  }

  /// Rewrites the first pair of loops that allows it. False: none does, and `remarks` has the reasons.
  bool rewriteOne(std::vector<Remark>& remarks) {
    for (const Loop& second : loops_) {
      for (const Loop& first : loops_) {
        if (first.end >= second.carries || first.parent != second.parent || trace_.ops[first.begin].name != "loop" ||
            !isNear(first, second))
          continue;
        std::vector<Sum> sums;
        maxima_ = maximaOf(first);
        std::string reason = whyNot(first, second, sums);
        const source::SourceRange sumRange = trace_.ops[second.begin].range,
                                  maximumRange = trace_.ops[first.begin].range;
        if (reason.empty()) {
          remarks.push_back(
              {true, "the sum of this loop is collected while the maximum is found: one pass less over the data",
               sumRange, maximumRange});
          join(first, second, sums);
          return true;
        }
        remarks.push_back({false, "this loop stays a pass of its own: " + reason, sumRange, maximumRange});
      }
    }
    return false;
  }

private:
  const Op* definition(const Operand& operand) const {
    return isValue(operand) ? definitions_[static_cast<size_t>(operand.number)] : nullptr;
  }
  bool isInside(const Op* op, const Loop& loop) const {
    const auto at = static_cast<size_t>(op - trace_.ops.data());
    return at > loop.begin && at < loop.end;
  }

  // what loops are
  std::vector<Maximum> maximaOf(const Loop& loop) const;
  bool isMaximum(const Carried& carried) const;
  std::set<int64_t> dependentOn(std::set<int64_t> ids, const Loop& since) const;
  bool isNear(const Loop& first, const Loop& second) const;
  /// The terms of nested operations of one name.
  void termsOf(const Operand& operand, std::string_view name, std::vector<Operand>& out) const;
  bool bounds(const Operand& bound, int64_t maximum) const;

  // conditions, "" or a reason in the user's words
  std::string whyNot(const Loop& first, const Loop& second, std::vector<Sum>& sums) const;
  std::string whyNoSum(const Carried& carried, const Loop& second, const ValueNumbers& numbers, Sum& sum) const;
  bool takeElements(const Maximum& maximum, const ValueNumbers& numbers, Sum& sum) const;
  std::string whyOtherTerm(const Operand& term, const Loop& second, Sum& sum) const;
  std::string whyNotRounded(const Sum& sum) const;

  // the rewrite
  void join(const Loop& first, const Loop& second, const std::vector<Sum>& sums);

  Trace& trace_;
  std::vector<Loop> loops_;
  const std::vector<Kind>& kinds_;
  std::vector<const Op*> definitions_;
  std::vector<Maximum> maxima_;
};

void Rewriter::termsOf(const Operand& operand, std::string_view name, std::vector<Operand>& out) const {
  std::vector<Operand> open = {operand};
  while (!open.empty()) {
    const Operand next = open.back();
    open.pop_back();
    const Op* op = definition(next);
    if (op && op->name == name)
      open.insert(open.end(), op->operands.rbegin(), op->operands.rend());
    else
      out.push_back(next);
  }
}

bool Rewriter::isMaximum(const Carried& carried) const {
  std::vector<Operand> terms;
  termsOf(carried.next, "maximum", terms);
  return terms.size() > 1 && std::count_if(terms.begin(), terms.end(), [&](const Operand& term) {
                               return isValue(term) && term.number == carried.id;
                             }) == 1;
}

/// Those whose elements are all computed in the loop; literals among them change nothing.
std::vector<Maximum> Rewriter::maximaOf(const Loop& loop) const {
  std::vector<Maximum> out;
  for (const Carried& carried : carriedBy(trace_, loop)) {
    if (!isMaximum(carried))
      continue;
    std::vector<Operand> terms;
    termsOf(carried.next, "maximum", terms);
    Maximum maximum{carried, {}, terms.size() == 2};
    bool isKnown = true;
    for (const Operand& term : terms) {
      if (!isValue(term) || term.number == carried.id)
        continue;
      isKnown = isKnown && definition(term);  // not another carried variable, nor the counter
      maximum.elements.push_back(term.number);
    }
    if (isKnown)
      out.push_back(std::move(maximum));
  }
  return out;
}

/// Values after the loop that the ids have a part in.
std::set<int64_t> Rewriter::dependentOn(std::set<int64_t> ids, const Loop& since) const {
  for (size_t i = since.end; i < trace_.ops.size(); ++i) {
    const Op& op = trace_.ops[i];
    const bool isCarried = op.name == "carry" || op.name == "yield";
    const int64_t defined = isCarried ? op.operands[0].number : op.result;
    if (defined >= 0 &&
        std::any_of(op.operands.begin() + (isCarried ? 1 : 0), op.operands.end(),
                    [&](const Operand& operand) { return isValue(operand) && ids.contains(operand.number); }))
      ids.insert(defined);
  }
  return ids;
}

/// The first loop finds a maximum, and the second carries something made of exponentials that depend on it.
bool Rewriter::isNear(const Loop& first, const Loop& second) const {
  std::set<int64_t> maxima;
  for (const Carried& carried : carriedBy(trace_, first))
    if (isMaximum(carried))
      maxima.insert(carried.id);
  if (maxima.empty())
    return false;
  const std::set<int64_t> dependent = dependentOn(std::move(maxima), first);
  std::set<int64_t> exponentials;
  for (size_t i = second.begin; i < second.yields; ++i) {
    const Op& op = trace_.ops[i];
    const bool isExponential =
        op.name.starts_with("exp") && isValue(op.operands[0]) && dependent.contains(op.operands[0].number);
    if (op.result >= 0 &&
        (isExponential || std::any_of(op.operands.begin(), op.operands.end(), [&](const Operand& operand) {
           return isValue(operand) && exponentials.contains(operand.number);
         })))
      exponentials.insert(op.result);
  }
  for (const Carried& carried : carriedBy(trace_, second))
    if (isValue(carried.next) && exponentials.contains(carried.next.number))
      return true;
  return false;
}

/// On every lane the value is at least the variable: the variable, its maximum over lanes, or the larger of that and something else.
bool Rewriter::bounds(const Operand& bound, int64_t maximum) const {
  if (isValue(bound) && bound.number == maximum)
    return true;
  const Op* op = definition(bound);
  if (!op)
    return false;
  if (op->name == "max" || op->name == "simd_max")
    return bounds(op->operands[0], maximum);
  return op->name == "maximum" && (bounds(op->operands[0], maximum) || bounds(op->operands[1], maximum));
}

std::string Rewriter::whyNot(const Loop& first, const Loop& second, std::vector<Sum>& sums) const {
  constexpr std::pair<std::string_view, std::string_view> kEffects[] = {{"store", "stores"},
                                                                        {"tile_store", "stores"},
                                                                        {"atomic_add", "stores"},
                                                                        {"atomic_max", "stores"},
                                                                        {"atomic_min", "stores"},
                                                                        {"print", "prints"},
                                                                        {"assert", "checks a condition"},
                                                                        {"barrier", "waits at a barrier"},
                                                                        {"loop", "has a loop in it"},
                                                                        {"draw", "has a loop in it"}};
  if (trace_.ops[second.begin].name != "loop")
    return "program instances share its iterations";
  for (size_t i = second.begin + 1; i < second.end; ++i)
    for (const auto& [name, what] : kEffects)
      if (trace_.ops[i].name == name)
        return "it " + std::string(what) + ", not only sums";
  const ValueNumbers numbers(trace_, loops_, trace_.ops[first.begin].operands[0].number,
                             trace_.ops[second.begin].operands[0].number);
  if (!numbers.haveOneRange(first, second))
    return "it counts from, to or by other numbers than the loop that finds the maximum";
  for (const Carried& carried : carriedBy(trace_, second)) {
    Sum sum{carried, {}, 0, nullptr};
    if (std::string reason = whyNoSum(carried, second, numbers, sum); !reason.empty())
      return reason;
    sums.push_back(std::move(sum));
  }
  return {};
}

std::string Rewriter::whyNoSum(const Carried& carried, const Loop& second, const ValueNumbers& numbers,
                               Sum& sum) const {
  std::vector<Operand> terms;
  termsOf(carried.next, "add", terms);
  const auto own = std::find_if(terms.begin(), terms.end(),
                                [&](const Operand& term) { return isValue(term) && term.number == carried.id; });
  if (terms.size() < 2 || own == terms.end())
    return "it carries something else than sums";
  terms.erase(own);
  for (const Operand& term : terms)
    if (std::string reason = whyOtherTerm(term, second, sum); !reason.empty())
      return reason;
  bool hasBound = false;
  for (const Maximum& maximum : maxima_)
    if (bounds(value(sum.bound), maximum.carried.id)) {
      hasBound = true;
      if (takeElements(maximum, numbers, sum))
        return whyNotRounded(sum);
    }
  return hasBound
             ? "the values in the exponents are not those whose maximum is taken, or their memory is written in between"
             : "what is subtracted is not known to be at least the maximum of every lane";
}

/// If the sum is over the elements of the maximum, it gets that maximum, and their ids in its loop.
bool Rewriter::takeElements(const Maximum& maximum, const ValueNumbers& numbers, Sum& sum) const {
  std::map<int64_t, int64_t> compared;  // ids by number
  for (const int64_t id : maximum.elements)
    compared[numbers.ofResult(id)] = id;
  std::set<int64_t> summed;
  for (const int64_t id : sum.elements)
    summed.insert(numbers.ofResult(id));
  if (summed.size() != compared.size() ||
      !std::all_of(summed.begin(), summed.end(), [&](int64_t number) { return compared.contains(number); }))
    return false;
  sum.maximum = &maximum;
  for (int64_t& id : sum.elements)
    id = compared.at(numbers.ofResult(id));
  return true;
}

std::string Rewriter::whyOtherTerm(const Operand& term, const Loop& second, Sum& sum) const {
  const Op* exponential = definition(term);
  const Op* difference = exponential && exponential->name == "exp" ? definition(exponential->operands[0]) : nullptr;
  if (!difference || difference->name != "sub" || !isValue(difference->operands[1]))
    return "a summand is something else than exp(x - maximum)";
  const Operand &element = difference->operands[0], &bound = difference->operands[1];
  if (const Op* made = definition(bound); made && isInside(made, second))
    return "what is subtracted is computed in the loop";
  if (!definition(element))
    return "an exponent is made of a variable that a loop carries";
  if (!sum.elements.empty() && sum.bound != bound.number)
    return "its summands subtract different values";
  sum.bound = bound.number;
  sum.elements.push_back(element.number);
  return {};
}

/// The sum is rounded more often than in a pass of its own, and lanes are left out of it together with the maximum.
std::string Rewriter::whyNotRounded(const Sum& sum) const {
  const auto kind = [&](int64_t id) { return kinds_[static_cast<size_t>(id)]; };
  const Kind total = kind(sum.carried.id), maximum = kind(sum.maximum->carried.id);
  if (total.isTile() || maximum.isTile())
    return "it sums 2-D tiles";
  if (total.dtype != Dtype::F32 || maximum.dtype != Dtype::F32)
    return "the maximum and the sum are not both f32";
  if (total.mayBeInvalid || maximum.mayBeInvalid || kind(sum.bound).mayBeInvalid)
    return "the maximum or the sum starts from a masked load";
  if (sum.carried.initial.kind == OperandKind::None)
    return "the sum has no value before the loop";
  return {};
}

void Rewriter::join(const Loop& first, const Loop& second, const std::vector<Sum>& sums) {
  const source::SourceRange range = trace_.ops[second.begin].range;
  Writer carries(trace_, range), body(trace_, range), yields(trace_, range), after(trace_, range);
  base::MaximumSum inBody(body), atEnd(after);
  for (const Sum& sum : sums) {
    const Operand collected = value(trace_.values++), maximum = value(sum.maximum->carried.id);
    const Operand& next = sum.maximum->carried.next;
    carries.statement("carry", {collected, real(0)});
    Operand grown;
    if (sum.elements.size() == 1 && sum.maximum->isOfTwo) {
      grown = inBody.add(maximum, collected, value(sum.elements[0]));
    } else {
      grown = body.mul(collected, inBody.scale(maximum, next));
      for (const int64_t element : sum.elements)
        grown = body.add(grown, inBody.scale(value(element), next));
    }
    yields.statement("yield", {collected, grown});
    const Operand total = atEnd.total(maximum, collected, value(sum.bound)), &initial = sum.carried.initial;
    if (isValue(initial) || initial.real != 0 || initial.number != 0)
      after.add(initial, total);
    after.ops.back().result = static_cast<int32_t>(sum.carried.id);
  }
  std::vector<Op> ops;
  const auto take = [&](size_t from, size_t to) {
    std::move(trace_.ops.begin() + static_cast<ptrdiff_t>(from), trace_.ops.begin() + static_cast<ptrdiff_t>(to),
              std::back_inserter(ops));
  };
  const auto insert = [&](Writer& written) {
    std::move(written.ops.begin(), written.ops.end(), std::back_inserter(ops));
  };
  take(0, first.begin);
  insert(carries);
  take(first.begin, first.yields);
  insert(body);
  take(first.yields, first.end);
  insert(yields);
  take(first.end, second.carries);
  insert(after);
  take(second.end + 1, trace_.ops.size());
  trace_.ops = std::move(ops);
}

}  // namespace

std::vector<Remark> collectSumsWithMaxima(Trace& trace, std::vector<Kind>& kinds) {
  std::vector<Remark> done;
  for (;;) {
    std::vector<Remark> remarks;
    const bool again = Rewriter(trace, kinds).rewriteOne(remarks);
    if (!again) {
      done.insert(done.end(), remarks.begin(), remarks.end());
      return done;
    }
    done.push_back(remarks.back());
    kinds = inferKinds(trace);
  }
}

}  // namespace vortex::metile
