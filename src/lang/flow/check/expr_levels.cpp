#include "lang/flow/check/expr_levels.h"

#include <algorithm>

#include "lang/sema/expr_parts.h"

namespace vortex::lang::flow {
namespace {

using Control = ExprLevels::Control;
Control stronger(Control a, Control b) { return b.level > a.level ? b : a; }

constexpr size_t kMostAssignments = 1000;

bool isLocalTensor(Type type) { return type && type->isTensor() && !type->isValue && type->space == Space::Local; }

bool isPosition(Builtin builtin) {
  return builtin == Builtin::ThreadId || builtin == Builtin::ThreadLocalId || builtin == Builtin::ThreadGlobalId ||
         builtin == Builtin::LaneId || builtin == Builtin::WarpId;
}

/// Whatever the elements are, all threads come round as often: `for i in [t, t + 64]`.
bool countsElements(const Graph& graph, BlockId block) {
  const LoopId loop = graph[block].loop;
  if (loop == kNoLoop || graph[loop].header != block || !graph[loop].counter)
    return false;
  const Counter& counter = *graph[loop].counter;
  return counter.kind == Counter::Kind::Array && graph.values.isConstant(counter.trips);
}

bool contains(source::SourceRange outer, source::SourceRange inner) {
  return outer.file == inner.file && outer.begin <= inner.begin && inner.end <= outer.end;
}

}  // namespace

ExprLevels::ExprLevels(const Graph& graph, const Structure& structure, Uniformity& uniformity, const Roots& roots)
    : graph_(graph), structure_(structure), uniformity_(uniformity), roots_(roots) {
  do {
    changed_ = false;
    causes_.clear();
    visit(*graph.function->body);
    raiseBranches();
  } while (changed_);
}

void ExprLevels::raiseBranches() {
  for (BlockId block{0}; indexOf(block) < graph_.blocks.size(); block = BlockId{indexOf(block) + 1}) {
    const Step& branch = graph_.terminator(block);
    if (branch.kind != StepKind::Branch || !branch.origin || countsElements(graph_, block))
      continue;
    const Level level = of(*branch.origin);
    changed_ |= level > uniformity_.ofBranch(block);
    uniformity_.raise(block, level);
  }
  for (LocalId local{0}; indexOf(local) < graph_.locals.size(); local = LocalId{indexOf(local) + 1})
    if (const Local& held = graph_[local]; held.variable && held.storage == Storage::Variable)
      raise(variables_, held.variable, {uniformity_.ofLocal(local), nullptr});
  if (changed_)
    uniformity_.settle();
}

bool isTileWork(const Expr& expr) {
  switch (expr.kind) {
  case ExprKind::Unary:
  case ExprKind::Binary:
  case ExprKind::Cast:
  case ExprKind::Dot: return isTile(expr.type);
  case ExprKind::Assign: {
    const Type type = asAssign(expr).place.type;
    return type && type->isTensor();
  }
  case ExprKind::Builtin:
    return expr.builtin == Builtin::Stage || expr.builtin == Builtin::AsyncStage ||
           (expr.builtin >= Builtin::Arange && expr.builtin <= Builtin::MaskUpperTriangle);
  default: return false;
  }
}

//===-- answers ---------------------------------------------------------------------------------------------------===//

Level ExprLevels::of(const Expr& expr) const {
  const auto found = levels_.find(&expr);
  return found == levels_.end() ? Level::Block : found->second;
}

Level ExprLevels::of(const Variable* variable) const {
  const auto found = variables_.find(variable);
  return found == variables_.end() ? Level::Block : found->second.level;
}

/// The first condition on the way that differs as much as the point does.
Control ExprLevels::controlAt(const Expr& expr, BlockId block) const {
  const Level level = uniformity_.ofBlock(block);
  if (level == Level::Block)
    return {};
  auto [found, isNew] = causes_.try_emplace(indexOf(block), kNoBlock);
  if (isNew) {
    std::set<BlockId> seen{block};
    std::vector<BlockId> pending{block};
    while (!pending.empty()) {
      const BlockId at = pending.back();
      pending.pop_back();
      const auto follow = [&](BlockId decides) {
        if (seen.insert(decides).second)
          pending.push_back(decides);
      };
      if (const LoopId loop = graph_[at].loop; loop != kNoLoop)
        follow(graph_[loop].header);
      for (const ControlEdge& edge : structure_.controls(at)) {
        if (uniformity_.ofBranch(edge.branch) == level)
          found->second = std::min(found->second, edge.branch);
        follow(edge.branch);
      }
    }
  }
  if (found->second == kNoBlock)
    return {level, nullptr};
  const Expr* cause = graph_.terminator(found->second).origin;
  if (const auto whole = wholeConditions_.find(cause);
      whole != wholeConditions_.end() && !contains(whole->second->range, expr.range))
    cause = whole->second;
  return {level, cause};
}

Control ExprLevels::controlOf(const Expr& expr) const {
  const auto found = blocks_.find(&expr);
  return found == blocks_.end() ? Control() : controlAt(expr, found->second);
}

const Expr* ExprLevels::originOf(const Expr& expr, std::set<const Variable*>& seen) const {
  if (expr.kind == ExprKind::Builtin && isPosition(expr.builtin))
    return &expr;
  if (expr.kind == ExprKind::Builtin && isBlockReduction(expr.builtin))
    return nullptr;
  if (expr.kind == ExprKind::Var) {
    const auto found = variables_.find(expr.variable);
    return found != variables_.end() && found->second.level != Level::Block && found->second.cause &&
                   seen.size() < kMostAssignments && seen.insert(expr.variable).second
               ? originOf(*found->second.cause, seen)
               : nullptr;
  }
  const Expr* origin = nullptr;
  forEachChild(expr, [&](const Expr& child) { origin = origin ? origin : originOf(child, seen); });
  return origin;
}

const Variable* ExprLevels::valueRoot(const Expr& place) const {
  const Expr* at = &place;
  while (at) {
    switch (at->kind) {
    case ExprKind::Var: {
      const Type type = at->variable->type;
      if (type->kind != TypeKind::Ref)
        return type->isTensor() && !type->isValue ? nullptr : at->variable;
      at = roots_.soleValue(at->variable);
      break;
    }
    case ExprKind::Element:
      at = &asElement(*at).base;
      if (stripRef(at->type)->isTensor())
        return nullptr;
      break;
    case ExprKind::Field: at = &asField(*at).base; break;
    case ExprKind::Deref:
    case ExprKind::Ref: at = &operandOf(*at); break;
    default: return nullptr;
    }
  }
  return nullptr;
}

//===-- one round over the tree -----------------------------------------------------------------------------------===//

void ExprLevels::raise(Raised& map, const void* key, Control control) {
  Control& known = map[key];
  if (control.level > known.level) {
    known = control;
    changed_ = true;
  }
}

/// What the variable holds differs as its value does, and as the ways to the assignment do.
void ExprLevels::assign(const Variable* variable, Level level, Control control, const Expr& cause) {
  raise(variables_, variable, stronger(Control{level, &cause}, control));
}

void ExprLevels::store(const Expr& expr, Level level) {
  Level& known = levels_[&expr];
  changed_ |= level > known;
  known = most(known, level);
}

Level ExprLevels::visit(const Expr& expr) {
  const BlockId outer = at_;
  if (const auto found = graph_.entered.find(&expr); found != graph_.entered.end())
    at_ = found->second;
  blocks_[&expr] = at_;
  const Level level = withGraph(expr, visitKind(expr));
  store(expr, level);
  at_ = outer;
  return level;
}

/// What the graph knows of the value. A variable that differs somewhere is kept for each thread, so that it never is the block's again.
Level ExprLevels::withGraph(const Expr& expr, Level level) const {
  const auto [begin, end] = graph_.evaluated.equal_range(&expr);
  if (begin == end)
    return level;
  Level known = level == Level::Block ? Level::Block : Level::Warp;
  for (auto each = begin; each != end; ++each)
    known = most(known, uniformity_.ofValue(each->second));
  return known;
}

Level ExprLevels::visitChildren(const Expr& expr) {
  Level level = Level::Block;
  forEachChild(expr, [&](const Expr& child) { level = most(level, visit(child)); });
  return level;
}

Level ExprLevels::visitKind(const Expr& expr) {
  switch (expr.kind) {
  case ExprKind::Var: return of(expr.variable);
  case ExprKind::Builtin: return visitBuiltin(expr);
  case ExprKind::Element: return visitLoad(expr);
  case ExprKind::Let: {
    const Expr* value = asLet(expr).value;
    assign(expr.variable, value ? visit(*value) : Level::Block, controlAt(expr, at_), value ? *value : expr);
    return Level::Block;
  }
  case ExprKind::Assign: return visitAssign(expr);
  case ExprKind::If: return visitIf(expr);
  case ExprKind::While:
  case ExprKind::Loop:
  case ExprKind::For: return visitLoop(expr);
  case ExprKind::Break: {
    const Level level = visitChildren(expr);
    if (!loops_.empty())
      raise(handed_, loops_.back(), {most(level, uniformity_.ofBlock(at_)), &expr});
    return Level::Block;
  }
  case ExprKind::Return: {
    const Level level = visitChildren(expr);
    if (!calls_.empty())
      raise(handed_, calls_.back(), {most(level, uniformity_.ofBlock(at_)), &expr});
    return Level::Block;
  }
  case ExprKind::Block: {
    Level level = Level::Block;
    for (const Expr* each : expr.args)
      level = visit(*each);
    return level;
  }
  case ExprKind::Inline: return visitInline(expr);
  default: return visitChildren(expr);
  }
}

Level ExprLevels::visitBuiltin(const Expr& expr) {
  const Level operands = visitChildren(expr);
  if (isPosition(expr.builtin))
    return Level::Lane;
  if (isBlockReduction(expr.builtin))
    return Level::Block;
  if (isWarpOperation(expr.builtin))
    return expr.builtin == Builtin::SyncWarp ? Level::Block : Level::Lane;
  return isAtomic(expr.builtin) ? Level::Lane : operands;
}

Level ExprLevels::visitLoad(const Expr& expr) {
  const Level level = visitChildren(expr);
  const Type base = stripRef(asElement(expr).base.type);
  if (isLocalTensor(base))
    return Level::Lane;
  const bool isMemory = base && base->isTensor() && !base->isValue;
  return isMemory && roots_.isWritten(roots_.rootOf(expr)) ? most(level, uniformity_.ofBlock(at_)) : level;
}

/// Of the indices: what a place held does not matter when it is stored to.
Level ExprLevels::visitPlace(const Expr& place) {
  Level level = Level::Block;
  blocks_[&place] = at_;
  if (place.kind == ExprKind::Var) {  // a reference may lead to another element in every thread
    level = place.variable->type->kind == TypeKind::Ref ? of(place.variable) : Level::Block;
  } else {
    // What every thread has for itself every thread writes, whatever the value.
    if (place.kind == ExprKind::Element && isLocalTensor(stripRef(asElement(place).base.type)))
      level = Level::Lane;
    bool isBase = true;
    forEachChild(place, [&](const Expr& child) {
      level = most(level, isBase ? visitPlace(child) : visit(child));
      isBase = false;
    });
  }
  store(place, level);
  return level;
}

Level ExprLevels::visitAssign(const Expr& expr) {
  const auto [place, value] = asAssign(expr);
  const Level level = visit(value), indices = visitPlace(place);
  if (place.kind == ExprKind::Var)
    store(place, of(place.variable));
  if (const Variable* root = valueRoot(place)) {
    assign(root, most(level, indices), controlAt(expr, at_), value);
    return Level::Block;
  }
  return most(most(level, indices), uniformity_.ofBlock(at_));
}

/// `cond` as a whole is what decides, not the part of it that the graph branches on.
static void findParts(const Expr& part, const Expr& condition, std::map<const Expr*, const Expr*>& out) {
  const bool isJoined =
      part.kind == ExprKind::Binary && (part.binaryOp == BinaryOp::And || part.binaryOp == BinaryOp::Or);
  out[&part] = &condition;
  if (isJoined || (part.kind == ExprKind::Unary && part.unaryOp == UnaryOp::Not))
    forEachChild(part, [&](const Expr& child) { findParts(child, condition, out); });
}

Level ExprLevels::visitIf(const Expr& expr) {
  const auto [condition, then, otherwise] = asIf(expr);
  findParts(condition, condition, wholeConditions_);
  Level level = most(visit(condition), visit(then));
  if (otherwise)
    level = most(level, visit(*otherwise));
  return level;
}

Level ExprLevels::visitLoop(const Expr& expr) {
  loops_.push_back(&expr);
  if (expr.kind == ExprKind::For) {
    const auto [list, body, variable, position] = asFor(expr);
    const Level bounds = visit(list);
    const auto entered = graph_.entered.find(&body);
    const Control control = controlAt(body, entered == graph_.entered.end() ? at_ : entered->second);
    assign(variable, bounds, control, list);
    if (position)
      assign(position, Level::Block, control, list);
    visit(body);
  } else {
    const auto [condition, body] = asLoop(expr);
    if (condition) {
      findParts(*condition, *condition, wholeConditions_);
      visit(*condition);
    }
    visit(body);
  }
  loops_.pop_back();
  return handed_[&expr].level;
}

Level ExprLevels::visitInline(const Expr& expr) {
  const auto [params, body] = asInline(expr);
  for (const Expr* param : params)
    visit(*param);
  std::vector<const Expr*> loops;
  loops.swap(loops_);
  calls_.push_back(&expr);
  const Level level = visit(body);
  calls_.pop_back();
  loops.swap(loops_);
  return most(level, handed_[&expr].level);
}

}  // namespace vortex::lang::flow
