#include "lang/sema/kernel/staging.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace vortex::lang {
namespace {

/// Groups of copies that may stay in flight after a `sync_block()`.
constexpr size_t kMaxInFlight = 4;
constexpr int64_t kAnySlot = -1;
constexpr int64_t kMaxTrips = 34;
constexpr int64_t kMaxExactTrips = 64;

bool isSharedTensor(Type type) {
  type = stripRef(type);
  return type && type->isTensor() && !type->isValue && type->space == Space::Shared;
}

/// A tensor, or one of an array of tensors.
struct Slot {
  const Variable* variable = nullptr;
  int64_t index = 0;
  bool operator<(const Slot& other) const {
    return variable != other.variable ? variable < other.variable : index < other.index;
  }
};

bool mayBeSame(const Slot& a, const Slot& b) {
  return a.variable == b.variable && (a.index == b.index || a.index == kAnySlot || b.index == kAnySlot);
}

bool contains(const std::set<Slot>& slots, const Slot& slot) {
  return std::any_of(slots.begin(), slots.end(), [&](const Slot& other) { return mayBeSame(slot, other); });
}

/// What a slot may hold: one bit per possibility.
enum Content : uint8_t { kNothing = 1, kPending = 2, kReady = 4 };

struct State {
  std::map<Slot, uint8_t> contents;
  std::map<Slot, const Expr*> stagedBy;
  std::set<Slot> touched;              ///< since the last barrier
  std::set<Slot> current;              ///< copies started since the last sync_block()
  std::vector<std::set<Slot>> groups;  ///< closed ones, the most recent first
  std::set<Expr*> lastSync;
  bool ends = false;  ///< control does not get here

  void join(const State& other) {
    if (other.ends)
      return;
    if (ends) {
      *this = other;
      return;
    }
    for (const auto& [slot, content] : other.contents)
      contents[slot] |= content;
    stagedBy.insert(other.stagedBy.begin(), other.stagedBy.end());
    touched.insert(other.touched.begin(), other.touched.end());
    current.insert(other.current.begin(), other.current.end());
    groups.resize(std::max(groups.size(), other.groups.size()));
    for (size_t i = 0; i < other.groups.size(); ++i)
      groups[i].insert(other.groups[i].begin(), other.groups[i].end());
    lastSync.insert(other.lastSync.begin(), other.lastSync.end());
  }
};

class Simulation {
public:
  Simulation(Function& kernel, const Roots& roots, diag::DiagnosticSink& sink)
      : kernel_(kernel), roots_(roots), sink_(sink) {}

  void run() {
    findStaged(*kernel_.body, nullptr);
    staged_.erase(nullptr);
    if (staged_.empty())
      return;
    for (const Variable* variable : staged_)
      if (variable->type->kind == TypeKind::Array)
        buffers_ = std::max(buffers_, static_cast<int64_t>(variable->type->count));
    trips_ = std::min<int64_t>(2 * buffers_ + 2, kMaxTrips);
    if (trips_ == kMaxTrips)
      buffers_ = 0;  // too many to follow one by one
    exec(*kernel_.body);
    for (auto [sync, pending] : pending_)
      sync->ints = {1, pending};
  }

private:
  //===-- places --------------------------------------------------------------------------------------------------===//

  void findStaged(const Expr& expr, const Expr* user) {
    if (expr.kind == ExprKind::Builtin && expr.builtin == Builtin::Stage) {
      const bool assigned = user && user->kind == ExprKind::Assign && !user->hasOp && user->args[1] == &expr;
      const bool bound = user && user->kind == ExprKind::Let && isSharedTensor(user->variable->type);
      if (assigned || bound)
        staged_.insert(bound ? user->variable : roots_.rootOf(*user->args[0]));
      else
        sink_.error("E0470", expr.range, "`stage` fills a shared tensor")
            .primary("its value goes nowhere in shared memory")
            .help("assign it to one: `let tile: Tensor<…> @shared` … `tile = stage(…)`");
    }
    if (expr.kind == ExprKind::Builtin && expr.builtin == Builtin::AsyncStage)
      staged_.insert(roots_.rootOf(*expr.args[1]));
    for (const Expr* arg : expr.args)
      if (arg)
        findStaged(*arg, &expr);
  }

  std::optional<int64_t> valueOf(const Expr* expr, int depth = 0) const {
    if (!expr || depth > 16)
      return std::nullopt;
    switch (expr->kind) {
    case ExprKind::Int: return static_cast<int64_t>(expr->intValue);
    case ExprKind::Cast:
    case ExprKind::Deref:
    case ExprKind::Ref: return valueOf(expr->args[0], depth + 1);
    case ExprKind::DimValue: return expr->dim.asConstant();
    case ExprKind::Var: {
      if (auto found = known_.find(expr->variable); found != known_.end())
        return found->second;
      return valueOf(roots_.soleValue(expr->variable), depth + 1);
    }
    case ExprKind::Binary: {
      auto a = valueOf(expr->args[0], depth + 1), b = valueOf(expr->args[1], depth + 1);
      if (!a || !b)
        return std::nullopt;
      switch (expr->binaryOp) {
      case BinaryOp::Add: return *a + *b;
      case BinaryOp::Sub: return *a - *b;
      case BinaryOp::Mul: return *a * *b;
      // A longer period, of a larger divisor or of a quotient, may exceed the simulated iterations.
      case BinaryOp::Rem: return *b > 0 && *b <= buffers_ && *a >= 0 ? std::optional(*a % *b) : std::nullopt;
      default: return std::nullopt;
      }
    }
    default: return std::nullopt;
    }
  }

  /// The staged tensor a place is (part of); null variable for others.
  Slot slotOf(const Expr& place) const {
    Slot slot;
    const Expr* at = &place;
    while (at) {
      switch (at->kind) {
      case ExprKind::Var: {
        if (staged_.contains(at->variable)) {
          slot.variable = at->variable;
          return slot;
        }
        Type type = at->variable->type;
        bool isAlias = type->kind == TypeKind::Ref || type->isTensor();
        at = isAlias ? roots_.soleValue(at->variable) : nullptr;
        break;
      }
      case ExprKind::Element:
        if (Type base = stripRef(at->args[0]->type); base->kind == TypeKind::Array) {
          slot.index = valueOf(at->args[1]).value_or(kAnySlot);
          if (slot.index < 0 || slot.index >= static_cast<int64_t>(base->count))
            slot.index = kAnySlot;
        }
        at = at->args[0];
        break;
      case ExprKind::Slice:
      case ExprKind::Ref:
      case ExprKind::Deref:
      case ExprKind::Field: at = at->args[0]; break;
      default: at = nullptr;
      }
    }
    return slot;
  }

  static int64_t slotCount(const Variable* variable) {
    return variable->type->kind == TypeKind::Array ? static_cast<int64_t>(variable->type->count) : 1;
  }

  template <typename F> static void forEach(const Slot& slot, F f) {
    if (slot.index != kAnySlot)
      return f(slot);
    for (int64_t i = 0; i < slotCount(slot.variable); ++i)
      f(Slot{slot.variable, i});
  }

  uint8_t contentOf(const Slot& slot) const {
    uint8_t all = 0;
    forEach(slot, [&](const Slot& one) {
      auto found = state_.contents.find(one);
      all |= found == state_.contents.end() ? uint8_t(kNothing) : found->second;
    });
    return all;
  }

  void setContent(const Slot& slot, uint8_t content) {
    forEach(slot, [&](const Slot& one) {
      auto found = state_.contents.find(one);
      uint8_t before = found == state_.contents.end() ? uint8_t(kNothing) : found->second;
      state_.contents[one] = slot.index == kAnySlot && slotCount(slot.variable) > 1 ? before | content : content;
    });
  }

  //===-- effects -------------------------------------------------------------------------------------------------===//

  static std::string nameOf(const Slot& slot) {
    std::string name = slot.variable->name;
    if (slot.variable->type->kind == TypeKind::Array && slot.index != kAnySlot)
      name += "[" + std::to_string(slot.index) + "]";
    return "`" + name + "`";
  }

  const Expr* stagerOf(const Slot& slot) const {
    for (const auto& [other, stage] : state_.stagedBy)
      if (mayBeSame(slot, other))
        return stage;
    return nullptr;
  }

  /// The copies this access needs must be complete at the sync_block() before it.
  void need(const Slot& slot) {
    for (size_t i = 0; i < state_.groups.size(); ++i)
      if (contains(state_.groups[i], slot))
        for (Expr* sync : state_.lastSync)
          pending_[sync] = std::min(pending_[sync], static_cast<int64_t>(i));
    state_.touched.insert(slot);
  }

  void read(const Expr& at, const Slot& slot) {
    if (!slot.variable || state_.ends)
      return;
    need(slot);
    const uint8_t content = contentOf(slot);
    if (content & kPending) {
      if (!reported_.insert(&at).second)
        return;
      auto builder = sink_.error("E0474", at.range, nameOf(slot) + " is read while it is still being filled");
      builder.primary("read before `sync_block()`");
      if (const Expr* stage = stagerOf(slot))
        builder.label(stage->range, "the copy starts here");
      builder.help("write `sync_block()` between the two");
      return;
    }
    if (kernel_.kernel->uncheckedInit || !(content & kNothing))
      return;
    if (content == kNothing)
      reportNothing(at, slot);
    else if (warned_.insert(slot.variable).second)
      sink_.warning("W0451", at.range, nameOf(slot) + " may be read before anything is in it")
          .primary("on some path nothing was staged or written")
          .label(slot.variable->range, "declared here, without a value");
  }

  void reportNothing(const Expr& at, const Slot& slot) {
    if (!reported_.insert(&at).second)
      return;
    auto builder =
        sink_.error("E0475", at.range, nameOf(slot) + " is read, but nothing has been staged or written to it");
    builder.primary(iteration_ == 0 ? "read in the first iteration" : "read here");
    builder.label(slot.variable->range, "declared here, without a value");
    if (slot.variable->type->kind == TypeKind::Array)
      builder.help("fill the first buffer before the loop: `async_stage(…, &mut " + slot.variable->name + "[0])`");
    else
      builder.help("stage it first: `" + slot.variable->name + " = stage(…)` and `sync_block()`");
  }

  bool isFree(const Expr& at, const Slot& slot) {
    if (!(contentOf(slot) & kPending))
      return true;
    if (!reported_.insert(&at).second)
      return false;
    auto builder = sink_.error("E0476", at.range, nameOf(slot) + " is written while a copy into it is in flight");
    builder.primary("the copy may overwrite this, or this the copy");
    if (const Expr* stage = stagerOf(slot))
      builder.label(stage->range, "the copy starts here and borrows the buffer until `sync_block()`");
    return false;
  }

  void write(const Expr& at, const Slot& slot) {
    if (!slot.variable || state_.ends)
      return;
    isFree(at, slot);
    need(slot);
    setContent(slot, kReady);
  }

  void stage(Expr& at, const Slot& slot) {
    if (!slot.variable || state_.ends)
      return;
    isFree(at, slot);
    if (contains(state_.touched, slot))
      at.ints = {1};  // threads may still be using the old contents
    if (!at.ints.empty())
      state_.touched.clear();
    need(slot);
    state_.touched.erase(slot);
    setContent(slot, kPending);
    forEach(slot, [&](const Slot& one) { state_.stagedBy[one] = &at; });
    state_.current.insert(slot);
  }

  void closeGroup() {
    state_.groups.insert(state_.groups.begin(), std::move(state_.current));
    if (state_.groups.size() > kMaxInFlight)
      state_.groups.resize(kMaxInFlight);
    state_.current.clear();
  }

  static bool hasSync(const Expr& expr) {
    return (expr.kind == ExprKind::Builtin && expr.builtin == Builtin::SyncBlock) ||
           std::any_of(expr.args.begin(), expr.args.end(), [](const Expr* arg) { return arg && hasSync(*arg); });
  }

  /// Copies of a prologue form a group of their own, so that the first iteration can leave its copies in flight.
  void enterLoop(Expr& loop) {
    if (!state_.ends && !state_.current.empty() && hasSync(*loop.args.back()))
      loop.ints = {1};
    if (!state_.ends && !loop.ints.empty())
      closeGroup();
  }

  void sync(Expr& at) {
    if (state_.ends)
      return;
    for (auto& [slot, content] : state_.contents)
      if (content & kPending)
        content = uint8_t((content & ~kPending) | kReady);
    closeGroup();
    state_.touched.clear();
    state_.stagedBy.clear();
    state_.lastSync = {&at};
    pending_.try_emplace(&at, static_cast<int64_t>(kMaxInFlight));
  }

  //===-- execution -----------------------------------------------------------------------------------------------===//

  void execSlices(Expr& expr) {
    for (SliceDim& slice : expr.slices)
      for (Expr* part : {slice.begin, slice.end})
        if (part)
          exec(*part);
  }

  /// The subscripts of a place, without the place itself.
  void execIndices(Expr& place) {
    execSlices(place);
    for (size_t i = 0; i < place.args.size(); ++i)
      if (place.args[i]) {
        if (i == 0)
          execIndices(*place.args[0]);
        else
          exec(*place.args[i]);
      }
  }

  void execArgs(Expr& expr) {
    for (Expr* arg : expr.args)
      if (arg)
        exec(*arg);
    execSlices(expr);
  }

  void exec(Expr& expr) {
    switch (expr.kind) {
    case ExprKind::Let: return execLet(expr);
    case ExprKind::Assign: return execAssign(expr);
    case ExprKind::Ref: return execIndices(*expr.args[0]);
    case ExprKind::Var:
    case ExprKind::Deref:
    case ExprKind::Slice:
    case ExprKind::Element:
    case ExprKind::Field: return execPlace(expr);
    case ExprKind::Builtin: return execBuiltin(expr);
    case ExprKind::If: return execIf(expr);
    case ExprKind::For: return execFor(expr);
    case ExprKind::While:
    case ExprKind::Loop: return execLoop(expr);
    case ExprKind::Inline: return execInline(expr);
    case ExprKind::Break:
    case ExprKind::Continue:
    case ExprKind::Return: return execJump(expr);
    default: return execArgs(expr);
    }
  }

  void execPlace(Expr& expr) {
    execIndices(expr);
    const bool isElement = expr.kind == ExprKind::Element && stripRef(expr.args[0]->type)->isTensor();
    if (isElement ? isSharedTensor(expr.args[0]->type) : isSharedTensor(expr.type))
      read(expr, slotOf(expr));
  }

  void execLet(Expr& expr) {
    if (expr.args.empty()) {
      if (staged_.contains(expr.variable))
        setContent({expr.variable, expr.variable->type->kind == TypeKind::Array ? kAnySlot : 0}, kNothing);
      return;
    }
    Expr& value = *expr.args[0];
    if (value.kind == ExprKind::Builtin && value.builtin == Builtin::Stage && staged_.contains(expr.variable)) {
      execIndices(*value.args[0]);
      state_.contents[{expr.variable, 0}] = kNothing;
      return stage(value, {expr.variable, 0});
    }
    const bool isAlias = isSharedTensor(expr.variable->type) && !staged_.contains(expr.variable);
    if (isAlias)
      execIndices(value);
    else
      exec(value);
    if (staged_.contains(expr.variable))
      write(expr, {expr.variable, 0});
  }

  void execAssign(Expr& expr) {
    Expr &place = *expr.args[0], &value = *expr.args[1];
    if (value.kind == ExprKind::Builtin && value.builtin == Builtin::Stage) {
      execIndices(*value.args[0]);
      execIndices(place);
      return stage(value, slotOf(place));
    }
    exec(value);
    execIndices(place);
    const Slot slot = slotOf(place);
    if (expr.hasOp)
      read(place, slot);
    write(place, slot);
  }

  void execBuiltin(Expr& expr) {
    if (expr.builtin == Builtin::SyncBlock)
      return sync(expr);
    if (expr.builtin == Builtin::Extent || expr.builtin == Builtin::Len)
      return;
    if (expr.builtin == Builtin::AsyncStage) {
      execIndices(*expr.args[0]);
      execIndices(*expr.args[1]);
      return stage(expr, slotOf(*expr.args[1]));
    }
    execArgs(expr);
    if (isAtomic(expr.builtin) && expr.builtin != Builtin::AtomicLoad)
      write(*expr.args[0], slotOf(*expr.args[0]));
  }

  void execIf(Expr& expr) {
    exec(*expr.args[0]);
    std::optional<bool> known = truth(*expr.args[0]);
    State before = state_;
    if (known.value_or(true))
      exec(*expr.args[1]);
    State then = std::move(state_);
    state_ = std::move(before);
    if (!known.value_or(false) && expr.args.size() > 2 && expr.args[2])
      exec(*expr.args[2]);
    if (!known)
      state_.join(then);
    else if (*known)
      state_ = std::move(then);
  }

  //===-- loops ---------------------------------------------------------------------------------------------------===//

  struct Loop {
    const Expr* expr = nullptr;
    int64_t iteration = 0, trips = 0;
    State exits, continues;
  };

  /// Is there an iteration `k + c * step < end` ahead? Known in a simulated run of a loop over a range.
  std::optional<bool> truth(const Expr& condition) const {
    if (condition.kind != ExprKind::Binary ||
        (condition.binaryOp != BinaryOp::Lt && condition.binaryOp != BinaryOp::Gt))
      return std::nullopt;
    const bool isLess = condition.binaryOp == BinaryOp::Lt;
    const Expr &position = *condition.args[isLess ? 0 : 1], &limit = *condition.args[isLess ? 1 : 0];
    for (auto loop = loops_.rbegin(); loop != loops_.rend(); ++loop) {
      if (loop->expr->kind != ExprKind::For || loop->expr->args[0]->kind != ExprKind::Range)
        continue;
      const Expr& range = *loop->expr->args[0];
      const int64_t step = range.args.size() > 2 && range.args[2] ? valueOf(range.args[2]).value_or(0) : 1;
      std::optional<int64_t> distance = distanceFrom(position, loop->expr->variable);
      if (distance && step > 0 && *distance >= 0 && *distance % step == 0 && isSameLimit(limit, *range.args[1]))
        return loop->iteration + *distance / step < loop->trips;
    }
    return std::nullopt;
  }

  /// c in `variable + c`.
  std::optional<int64_t> distanceFrom(const Expr& expr, const Variable* variable) const {
    const Expr* at = stripIntegerCasts(&expr, roots_);
    if (at->kind == ExprKind::Var)
      return at->variable == variable ? std::optional<int64_t>(0) : std::nullopt;
    if (at->kind != ExprKind::Binary || at->binaryOp != BinaryOp::Add)
      return std::nullopt;
    for (size_t side : {0, 1}) {
      auto inner = distanceFrom(*at->args[side], variable);
      auto other = valueOf(at->args[1 - side]);
      if (inner && other)
        return *inner + *other;
    }
    return std::nullopt;
  }

  bool isSameLimit(const Expr& a, const Expr& b) const {
    const Expr *x = stripIntegerCasts(&a, roots_), *y = stripIntegerCasts(&b, roots_);
    if (x->kind != y->kind)
      return false;
    if (x->kind == ExprKind::Var)
      return x->variable == y->variable && !roots_.isAssigned(x->variable);
    if (x->kind == ExprKind::DimValue)
      return x->dim == y->dim;
    return x->kind == ExprKind::Int && x->intValue == y->intValue;
  }

  /// The exact number of iterations, where it is constant.
  std::optional<int64_t> tripCount(const Expr& over) const {
    if (over.kind == ExprKind::IntList)
      return static_cast<int64_t>(over.intList.size());
    if (over.kind != ExprKind::Range)
      return std::nullopt;
    auto begin = valueOf(over.args[0]), end = valueOf(over.args[1]);
    int64_t step = over.args.size() > 2 && over.args[2] ? valueOf(over.args[2]).value_or(0) : 1;
    if (!begin || !end || step <= 0)
      return std::nullopt;
    return *end > *begin ? (*end - *begin + step - 1) / step : 0;
  }

  void setIteration(const Expr& loop, int64_t i) {
    const Expr& over = *loop.args[0];
    known_.erase(loop.variable);
    if (over.kind == ExprKind::IntList && i < static_cast<int64_t>(over.intList.size()))
      known_[loop.variable] = static_cast<int64_t>(over.intList[static_cast<size_t>(i)]);
    if (over.kind == ExprKind::Range) {
      auto begin = valueOf(over.args[0]);
      auto step = over.args.size() > 2 && over.args[2] ? valueOf(over.args[2]) : std::optional<int64_t>(1);
      if (begin && step)
        known_[loop.variable] = *begin + i * *step;
    }
    if (loop.indexVariable)
      known_[loop.indexVariable] = i;
  }

  void execFor(Expr& expr) {
    exec(*expr.args[0]);
    enterLoop(expr);
    const State before = state_;
    std::optional<int64_t> exact = tripCount(*expr.args[0]);
    const int64_t limit = loops_.size() > 1 ? std::min<int64_t>(trips_, 4) : trips_;
    if (exact && *exact <= (loops_.empty() ? kMaxExactTrips : limit)) {
      runTrips(expr, *exact);
    } else {
      State all = before;
      all.ends = exact && *exact > 0;
      for (int64_t trips = 1; trips <= limit; ++trips) {
        state_ = before;
        runTrips(expr, trips);
        all.join(state_);
      }
      state_ = std::move(all);
    }
    known_.erase(expr.variable);
    if (expr.indexVariable)
      known_.erase(expr.indexVariable);
  }

  void runTrips(Expr& expr, int64_t trips) {
    const int64_t outer = iteration_;
    loops_.push_back({&expr, 0, trips, {}, {}});
    loops_.back().exits.ends = true;
    for (int64_t i = 0; i < trips; ++i) {
      iteration_ = i;
      loops_.back().iteration = i;
      loops_.back().continues.ends = true;
      if (expr.kind == ExprKind::For)
        setIteration(expr, i);
      exec(*expr.args[expr.kind == ExprKind::For ? 1 : 0]);
      state_.join(loops_.back().continues);
    }
    state_.join(loops_.back().exits);
    loops_.pop_back();
    iteration_ = outer;
  }

  void execLoop(Expr& expr) {
    const bool conditional = expr.kind == ExprKind::While;
    enterLoop(expr);
    State all = state_;
    all.ends = !conditional;
    loops_.push_back({&expr, 0, 0, {}, {}});
    loops_.back().exits.ends = true;
    for (int64_t i = 0; i < trips_; ++i) {
      loops_.back().continues.ends = true;
      if (conditional)
        exec(*expr.args[0]);
      exec(*expr.args.back());
      state_.join(loops_.back().continues);
      if (conditional)
        all.join(state_);
    }
    all.join(loops_.back().exits);
    loops_.pop_back();
    state_ = std::move(all);
  }

  void execInline(Expr& expr) {
    State outer;
    outer.ends = true;
    returns_.push_back(outer);
    for (Expr* arg : expr.args)
      exec(*arg);
    state_.join(returns_.back());
    returns_.pop_back();
  }

  void execJump(Expr& expr) {
    execArgs(expr);
    if (expr.kind == ExprKind::Return && !returns_.empty())
      returns_.back().join(state_);
    else if (expr.kind == ExprKind::Break && !loops_.empty())
      loops_.back().exits.join(state_);
    else if (expr.kind == ExprKind::Continue && !loops_.empty())
      loops_.back().continues.join(state_);
    state_.ends = true;
  }

  Function& kernel_;
  const Roots& roots_;
  diag::DiagnosticSink& sink_;
  std::set<const Variable*> staged_;
  State state_;
  std::map<const Variable*, int64_t> known_;
  std::vector<Loop> loops_;
  std::vector<State> returns_;
  int64_t buffers_ = 1;  ///< of the largest array
  int64_t trips_ = 0;
  int64_t iteration_ = -1;
  std::map<Expr*, int64_t> pending_;
  std::set<const Expr*> reported_;
  std::set<const Variable*> warned_;
};

}  // namespace

void checkStaging(Function& kernel, const Roots& roots, diag::DiagnosticSink& sink) {
  Simulation(kernel, roots, sink).run();
}

}  // namespace vortex::lang
