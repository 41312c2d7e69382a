#include "lang/sema/kernel/staging.h"
#include "lang/sema/kernel/staging_state.h"
#include "lang/sema/kernel/staging_values.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace vortex::lang {
namespace {

using namespace staging;

constexpr int64_t kMaxTrips = 34;
/// Of loops that use the same buffers in every iteration.
constexpr int64_t kTripsToSettle = 3;
constexpr int64_t kMaxExactTrips = 64;

bool isSharedTensor(Type type) {
  type = stripRef(type);
  return type && type->isTensor() && !type->isValue && type->space == Space::Shared;
}

class Simulation {
public:
  Simulation(Function& kernel, const Roots& roots, diag::DiagnosticSink& sink)
      : kernel_(kernel), roots_(roots), sink_(sink), values_(kernel, roots) {}

  void run() {
    findStaged(*kernel_.body, nullptr);
    staged_.erase(nullptr);
    if (staged_.empty())
      return;
    for (const Variable* variable : staged_)
      if (variable->type->kind == TypeKind::Array)
        values_.buffers = std::max(values_.buffers, static_cast<int64_t>(variable->type->count));
    trips_ = std::min<int64_t>(2 * values_.buffers + 2, kMaxTrips);
    if (trips_ == kMaxTrips)
      values_.buffers = 0;  // too many to follow one by one
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
          slot.index = values_.valueOf(at->args[1]).value_or(kAnySlot);
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

  /// A store to what a copy reads: the sync_block() before it must wait for that copy. Without one between them it is a race.
  void storeTo(const Expr& place) {
    const Variable* root = roots_.rootOf(place);
    for (size_t i = 0; i < state_.groups.size(); ++i)
      for (const Slot& slot : state_.groups[i])
        if (auto found = state_.sources.find(slot);
            found != state_.sources.end() && (!root || found->second.contains(root) || found->second.contains(nullptr)))
          for (Expr* sync : state_.lastSync)
            pending_[sync] = std::min(pending_[sync], static_cast<int64_t>(i));
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
    const Variable* source = roots_.rootOf(*at.args[0]);
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
    forEach(slot, [&](const Slot& one) {
      state_.stagedBy[one] = &at;
      state_.sources[one] = {source};
    });
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
    if (!state_.ends)
      storeTo(place);
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
    if (!state_.ends && isAtomic(expr.builtin) && expr.builtin != Builtin::AtomicLoad)
      storeTo(*expr.args[0]);
  }

  void execIf(Expr& expr) {
    exec(*expr.args[0]);
    std::optional<bool> known = values_.truth(*expr.args[0]);
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
    State exits, continues;
  };

  void execFor(Expr& expr) {
    exec(*expr.args[0]);
    enterLoop(expr);
    const State before = state_;
    std::optional<int64_t> exact = values_.tripCount(*expr.args[0]);
    const int64_t limit = values_.choosesBuffers(expr, *expr.args[1]) ? trips_ : std::min(trips_, kTripsToSettle);
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
    values_.forget(expr.variable);
    if (expr.indexVariable)
      values_.forget(expr.indexVariable);
  }

  void runTrips(Expr& expr, int64_t trips) {
    const int64_t outer = iteration_;
    values_.runs.push_back({&expr, 0, trips});
    loops_.emplace_back();
    loops_.back().exits.ends = true;
    for (int64_t i = 0; i < trips; ++i) {
      iteration_ = i;
      values_.runs.back().iteration = i;
      loops_.back().continues.ends = true;
      if (expr.kind == ExprKind::For)
        values_.setIteration(expr, i);
      exec(*expr.args[expr.kind == ExprKind::For ? 1 : 0]);
      state_.join(loops_.back().continues);
    }
    state_.join(loops_.back().exits);
    loops_.pop_back();
    values_.runs.pop_back();
    iteration_ = outer;
  }

  void execLoop(Expr& expr) {
    const bool conditional = expr.kind == ExprKind::While;
    enterLoop(expr);
    State all = state_;
    all.ends = !conditional;
    loops_.emplace_back();
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
  Values values_;
  std::vector<Loop> loops_;
  std::vector<State> returns_;
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
