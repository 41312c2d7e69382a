// The first test that is open names a part of the subject. The numbers that any test compares this part with cut its type into intervals on each
// of which every comparison is decided, so that trying them one after the other tries everything. Tests that no longer can hold are dropped on the
// way. The cost is that of the decision tree, which a limit of steps bounds. What is not an integer, bool or enum never counts as covered.
#include "lang/sema/check/exprs/exhaustive.h"
#include "lang/sema/check/constants/constants.h"
#include "lang/sema/integers.h"

#include <algorithm>

namespace vortex::lang {
namespace {

constexpr int kMostSteps = 20'000;
constexpr size_t kMostNamed = 16;

using Path = std::vector<int64_t>;  // fields, from the subject on
struct Span {
  __int128 first, last;
};
enum class Verdict : uint8_t { Holds, Fails, Open };

/// A comparison of a part of the subject with a constant.
struct Atom {
  Path path;
  Type type;
  BinaryOp op;
  __int128 number;
};

class Cases {
public:
  Cases(BodyState& body, const Expr& subject, const std::vector<const Expr*>& tests) : body_(body), subject_(subject) {
    for (const Expr* test : tests)
      collect(*test);
    search(tests);
  }

  std::optional<std::vector<std::string>> result() {
    if (isCovered_ && !gaveUp_)
      return std::nullopt;
    return gaveUp_ ? std::vector<std::string>() : std::move(missing_);
  }

private:
  static bool joins(const Expr& test) {
    return test.kind == ExprKind::Binary && (test.binaryOp == BinaryOp::And || test.binaryOp == BinaryOp::Or);
  }

  void collect(const Expr& test) {
    if (joins(test)) {
      collect(*test.args[0]);
      collect(*test.args[1]);
      return;
    }
    if (test.kind != ExprKind::Binary || atoms_.contains(&test))
      return;
    Atom atom{{}, test.args[0]->type, test.binaryOp, 0};
    const Expr* part = test.args[0];
    for (; part->kind == ExprKind::Field; part = part->args[0])
      atom.path.insert(atom.path.begin(), part->ints[0]);
    const bool isCounted =
        atom.type->kind == TypeKind::Enum || (atom.type->kind == TypeKind::Scalar && !isFloat(atom.type->scalar));
    if (!isCounted || part->kind != ExprKind::Var || part->variable != subject_.variable)
      return;
    bool reported = false;
    const Expr* value = fold(body_, test.args[1], reported);
    if (!value || value->kind != ExprKind::Int)
      return;
    atom.number = value->intValue;
    atoms_.emplace(&test, std::move(atom));
  }

  Verdict judge(const Expr& test, const Atom** open) const {
    if (joins(test)) {
      const bool isAnd = test.binaryOp == BinaryOp::And;
      const Verdict decides = isAnd ? Verdict::Fails : Verdict::Holds;
      const Verdict lhs = judge(*test.args[0], open);
      if (lhs == decides)
        return lhs;
      const Verdict rhs = judge(*test.args[1], open);
      return rhs == decides || lhs != Verdict::Open ? rhs : lhs;
    }
    const auto found = atoms_.find(&test);
    if (found == atoms_.end())
      return Verdict::Fails;  // not known: it may
    const auto chosen = chosen_.find(found->second.path);
    if (chosen != chosen_.end())
      return *compare(found->second.op, chosen->second.first, found->second.number) ? Verdict::Holds : Verdict::Fails;
    if (!*open)
      *open = &found->second;
    return Verdict::Open;
  }

  /// The intervals of the part's type that its comparisons tell apart.
  std::vector<Span> intervals(const Atom& part) const {
    std::vector<Span> out;
    if (part.type->kind == TypeKind::Enum) {
      for (const int64_t value : part.type->decl->enumValues)
        out.push_back({value, value});
      return out;
    }
    const bool isBool = part.type->isScalar(Scalar::Bool);
    const __int128 low = isBool ? 0 : lowest(part.type->scalar), high = isBool ? 1 : highest(part.type->scalar);
    std::set<__int128> begins{low};
    for (const auto& [test, atom] : atoms_)
      if (atom.path == part.path)
        for (const __int128 begin : {atom.number, atom.number + (atom.op == BinaryOp::Eq ? 1 : 0)})
          if (begin > low && begin <= high)
            begins.insert(begin);
    for (auto each = begins.begin(); each != begins.end(); ++each)
      out.push_back({*each, std::next(each) == begins.end() ? high : *std::next(each) - 1});
    return out;
  }

  bool isDone() const { return gaveUp_ || missing_.size() >= (subject_.type->kind == TypeKind::Enum ? kMostNamed : 1); }

  void search(const std::vector<const Expr*>& tests) {
    if (isDone())
      return;
    gaveUp_ = --steps_ < 0;
    std::vector<const Expr*> left;
    const Atom* open = nullptr;
    for (const Expr* test : tests) {
      const Verdict verdict = judge(*test, &open);
      if (verdict == Verdict::Holds)
        return;
      if (verdict == Verdict::Open)
        left.push_back(test);
    }
    if (left.empty()) {
      isCovered_ = false;
      if (std::string missing = pattern(subject_.type, {}); missing != "_")
        missing_.push_back(std::move(missing));
      else
        gaveUp_ = true;
      return;
    }
    for (const Span& interval : intervals(*open)) {
      chosen_[open->path] = interval;
      search(left);
    }
    chosen_.erase(open->path);
  }

  /// The value of an interval that is nearest to 0.
  static std::string number(const Span& interval) {
    const __int128 value = interval.first > 0 ? interval.first : interval.last < 0 ? interval.last : 0;
    const bool isNegative = value < 0;
    auto rest = static_cast<uint64_t>(isNegative ? -value : value);
    return (isNegative ? "-" : "") + std::to_string(rest);
  }

  std::string pattern(Type type, const Path& at) const {
    const bool isAsked = std::any_of(chosen_.begin(), chosen_.end(), [&](const auto& each) {
      return each.first.size() >= at.size() && std::equal(at.begin(), at.end(), each.first.begin());
    });
    if (!isAsked)
      return "_";
    if (const auto chosen = chosen_.find(at); chosen != chosen_.end()) {
      if (type->isScalar(Scalar::Bool))
        return chosen->second.first != 0 ? "true" : "false";
      if (type->kind != TypeKind::Enum)
        return number(chosen->second);
      const auto& values = type->decl->enumValues;
      const auto variant = std::find(values.begin(), values.end(), chosen->second.first) - values.begin();
      return type->decl->name + "." + type->decl->fields[static_cast<size_t>(variant)];
    }
    std::string out;
    for (size_t i = 0; i < type->elems.size(); ++i) {
      Path part = at;
      part.push_back(static_cast<int64_t>(i));
      const std::string inner = pattern(type->elems[i], part);
      if (type->kind == TypeKind::Struct && inner == "_")
        continue;
      out += (out.empty() ? "" : ", ") + (type->kind == TypeKind::Struct ? type->decl->fields[i] + ": " : "") + inner;
    }
    return type->kind == TypeKind::Struct ? type->decl->name + " { " + out + " }" : "(" + out + ")";
  }

  BodyState& body_;
  const Expr& subject_;
  std::map<const Expr*, Atom> atoms_;
  std::map<Path, Span> chosen_;
  std::vector<std::string> missing_;
  int steps_ = kMostSteps;
  bool isCovered_ = true, gaveUp_ = false;
};

}  // namespace

std::optional<std::vector<std::string>> findUncovered(BodyState& body, const Expr& subject,
                                                      const std::vector<const Expr*>& tests) {
  return Cases(body, subject, tests).result();
}

}  // namespace vortex::lang
