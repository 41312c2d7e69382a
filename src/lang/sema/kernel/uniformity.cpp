#include "lang/sema/kernel/uniformity.h"

#include <algorithm>
#include <map>
#include <set>

namespace vortex::lang {
namespace {

enum class Level : uint8_t { Block, Warp, Lane };

constexpr int64_t kWarpThreads = 32;

/// Who executes here: level of the condition, and the expression that decides it.
struct Control {
  Level level = Level::Block;
  const Expr* cause = nullptr;
};

Level join(Level a, Level b) { return std::max(a, b); }
Control join(Control a, Control b) { return b.level > a.level ? b : a; }

bool isTile(Type type) { return type && type->isTensor() && type->isValue; }

std::optional<__int128> constantOf(const Expr* expr, const Roots& roots) {
  expr = stripIntegerCasts(expr, roots);
  if (expr && expr->kind == ExprKind::Int)
    return expr->intValue;
  if (expr && expr->kind == ExprKind::DimValue)
    if (auto value = expr->dim.asConstant())
      return *value;
  return std::nullopt;
}

class Analysis {
public:
  Analysis(Function& kernel, const Roots& roots, std::span<const ThreadsPerAxis> blocks, diag::DiagnosticSink& sink)
      : kernel_(kernel), roots_(roots), blocks_(blocks), sink_(sink) {}

  void run() {
    if (!kernel_.body)
      return;
    do {
      changed_ = false;
      visitBody();
    } while (changed_);
    report_ = true;
    visitBody();
    for (auto& variable : kernel_.variables)
      variable->uniformity =
          levels_[variable.get()].level == Level::Block ? Uniformity::Uniform : Uniformity::PerThread;
  }

private:
  /// The function body or an Inline: what Return leaves.
  struct Frame {
    Control left;   ///< some threads returned already
    Control value;  ///< level of the returned values
    size_t loopDepth = 0;
  };

  void visitBody() {
    frames_.assign(1, {});
    loops_.clear();
    visit(kernel_.body, {});
  }

  void raise(std::map<const void*, Control>& map, const void* key, Control control) {
    Control& slot = map[key];
    if (control.level > slot.level) {
      slot = control;
      changed_ = true;
    }
  }
  Control here(Control control) const { return join(control, frames_.back().left); }

  /// Returns the level of the expression's value.
  Level visit(Expr* expr, Control control) {
    if (!expr)
      return Level::Block;
    control = here(control);
    Level level = visitKind(expr, control);
    if (report_)
      annotate(expr, level, control);
    return level;
  }

  Level visitArgs(Expr* expr, Control control) {
    Level level = Level::Block;
    for (Expr* arg : expr->args)
      level = join(level, visit(arg, control));
    for (SliceDim& slice : expr->slices) {
      level = join(level, visit(slice.begin, control));
      level = join(level, visit(slice.end, control));
    }
    return level;
  }

  Level visitKind(Expr* expr, Control control) {
    switch (expr->kind) {
    case ExprKind::Var: return levels_[expr->variable].level;
    case ExprKind::Binary: return visitBinary(expr, control);
    case ExprKind::Builtin: return visitBuiltin(expr, control);
    case ExprKind::Element: return visitLoad(expr, control);
    case ExprKind::Let:
      if (!expr->args.empty())
        assign(expr->variable, visit(expr->args[0], control), control, expr->args[0]);
      else
        assign(expr->variable, Level::Block, control, expr);
      return Level::Block;
    case ExprKind::Assign: return visitAssign(expr, control);
    case ExprKind::If: return visitIf(expr, control);
    case ExprKind::While:
    case ExprKind::Loop:
    case ExprKind::For: return visitLoop(expr, control);
    case ExprKind::Break: {
      Level level = expr->args.empty() ? Level::Block : visit(expr->args[0], control);
      if (!loops_.empty()) {
        raise(loopControl_, loops_.back(), here(control));
        raise(loopValue_, loops_.back(), {join(level, control.level), expr});
      }
      return Level::Block;
    }
    case ExprKind::Continue:
      if (!loops_.empty())
        raise(loopControl_, loops_.back(), here(control));
      return Level::Block;
    case ExprKind::Return: return visitReturn(expr, control);
    case ExprKind::Inline: return visitInline(expr, control);
    case ExprKind::Block:
      for (size_t i = 0; i < expr->args.size(); ++i)
        if (i + 1 < expr->args.size() || expr->type->kind == TypeKind::Unit)
          unused_.insert(expr->args[i]);
      return visitArgs(expr, control);
    default: return visitArgs(expr, control);
    }
  }

  void assign(const Variable* variable, Level level, Control control, const Expr* cause) {
    raise(levels_, variable, join(Control{level, cause}, control));
  }

  Level visitBinary(Expr* expr, Control control) {
    if (expr->binaryOp == BinaryOp::And || expr->binaryOp == BinaryOp::Or) {
      Level lhs = visit(expr->args[0], control);
      return join(lhs, visit(expr->args[1], join(control, {lhs, expr->args[0]})));
    }
    Level level = visitArgs(expr, control);
    return level == Level::Lane && isWarpUniformPattern(*expr) ? Level::Warp : level;
  }

  /// `local_id / 32`, `local_id >> 5`, and comparisons of local_id with multiples of the warp size do not vary inside a warp.
  bool isWarpUniformPattern(const Expr& expr) const {
    const Expr* lhs = stripIntegerCasts(expr.args[0], roots_);
    if (!lhs || lhs->kind != ExprKind::Builtin || lhs->builtin != Builtin::ThreadLocalId)
      return false;
    auto rhs = constantOf(expr.args[1], roots_);
    if (!rhs)
      return false;
    switch (expr.binaryOp) {
    case BinaryOp::Div: return *rhs > 0 && *rhs % kWarpThreads == 0;
    case BinaryOp::Shr: return *rhs >= 5;
    case BinaryOp::Lt:
    case BinaryOp::Ge: return *rhs % kWarpThreads == 0;
    case BinaryOp::Gt:
    case BinaryOp::Le: return (*rhs + 1) % kWarpThreads == 0;
    default: return false;
    }
  }

  /// `thread.id.y` of blocks [32, n]: a warp lies within one row.
  bool isRowOfWarps(const Expr& position) const {
    const auto axis = position.ints.empty() ? 0 : static_cast<size_t>(position.ints[0]);
    return axis > 0 && !blocks_.empty() &&
           std::all_of(blocks_.begin(), blocks_.end(), [&](const ThreadsPerAxis& block) {
             int64_t row = 1;
             for (size_t i = 0; i < axis; ++i)
               row = row * (block[i].value_or(1) % kWarpThreads) % kWarpThreads;
             return row == 0;
           });
  }

  Level visitBuiltin(Expr* expr, Control control) {
    Level args = visitArgs(expr, control);
    switch (expr->builtin) {
    case Builtin::ThreadId:
    case Builtin::ThreadGlobalId: return isRowOfWarps(*expr) ? Level::Warp : Level::Lane;
    case Builtin::ThreadLocalId:
    case Builtin::LaneId: return Level::Lane;
    case Builtin::WarpId: return Level::Warp;
    case Builtin::ShuffleXor:
    case Builtin::ShuffleUp:
    case Builtin::ShuffleDown: return checkWarp(expr, control, Level::Lane);
    case Builtin::ShuffleIndex:
      // The value of one lane; a lane number that varies makes it vary.
      return checkWarp(expr, control,
                       expr->args.size() > 1 && visit(expr->args[1], control) == Level::Lane ? Level::Lane
                                                                                             : Level::Warp);
    case Builtin::WarpSum:
    case Builtin::WarpMax:
    case Builtin::WarpMin:
    case Builtin::WarpBallot:
    case Builtin::WarpAny:
    case Builtin::WarpAll: return checkWarp(expr, control, Level::Warp);
    case Builtin::SyncWarp: return checkWarp(expr, control, Level::Block);
    case Builtin::SyncBlock:
      if (report_ && control.level != Level::Block)
        reportDivergence("E0450", *expr, control, "`sync_block()` is not reached by every thread of the block",
                         "some threads of the block do not get here");
      return Level::Block;
    default: break;
    }
    if (isAtomic(expr->builtin)) {
      // Where the result is used, each thread draws a number of its own.
      const bool isUnused = expr->type->kind == TypeKind::Unit || unused_.contains(expr);
      if (report_ && isUnused && join(args, control.level) == Level::Block)
        sink_
            .error("E0453", expr->range, "every thread of the block would do this atomic operation on the same element")
            .primary("neither the operands nor the control around it depend on the thread, and its result is not used")
            .help("write `if thread.local_id == 0 { … }` to do it once per block");
      return Level::Lane;
    }
    return args;
  }

  Level checkWarp(Expr* expr, Control control, Level result) {
    if (report_ && control.level == Level::Lane)
      reportDivergence("E0451", *expr, control,
                       "`" + std::string(spelling(expr->builtin)) + "` is not reached by every lane of the warp",
                       "some lanes of the warp do not get here");
    return result;
  }

  Level visitLoad(Expr* expr, Control control) {
    Level level = visitArgs(expr, control);
    Type base = stripRef(expr->args[0]->type);
    if (base && base->isTensor() && !base->isValue) {
      if (base->space == Space::Local)
        return Level::Lane;
      if (control.level != Level::Block && roots_.isWritten(roots_.rootOf(*expr)))
        return join(level, control.level);
    }
    return level;
  }

  /// Level of the indices of a place (its own value does not matter when it is stored to).
  Level visitPlace(Expr* place, Control control) {
    if (place->kind == ExprKind::Var)  // a reference may lead to another element in every thread
      return place->variable->type->kind == TypeKind::Ref ? levels_[place->variable].level : Level::Block;
    Level level = Level::Block;
    // What every thread has for itself every thread writes, whatever the value.
    const Type base = place->kind == ExprKind::Element ? stripRef(place->args[0]->type) : nullptr;
    if (base && base->isTensor() && !base->isValue && base->space == Space::Local)
      level = Level::Lane;
    for (size_t i = 0; i < place->args.size(); ++i)
      level = join(level, i == 0 ? visitPlace(place->args[0], control) : visit(place->args[i], control));
    for (SliceDim& slice : place->slices) {
      level = join(level, visit(slice.begin, control));
      level = join(level, visit(slice.end, control));
    }
    if (report_)
      annotate(place, level, control);
    return level;
  }

  /// The variable whose value a place is part of, through fields, array elements and references; null for tensors in memory.
  const Variable* valueRoot(const Expr& place) const {
    const Expr* at = &place;
    while (at) {
      switch (at->kind) {
      case ExprKind::Var: {
        Type type = at->variable->type;
        if (type->kind != TypeKind::Ref)
          return type->isTensor() && !type->isValue ? nullptr : at->variable;
        at = roots_.soleValue(at->variable);
        break;
      }
      case ExprKind::Element: {
        if (stripRef(at->args[0]->type)->isTensor())
          return nullptr;
        at = at->args[0];
        break;
      }
      case ExprKind::Field:
      case ExprKind::Deref:
      case ExprKind::Ref: at = at->args[0]; break;
      default: return nullptr;
      }
    }
    return nullptr;
  }

  Level visitAssign(Expr* expr, Control control) {
    Expr* place = expr->args[0];
    Level value = visit(expr->args[1], control);
    Level indices = visitPlace(place, control);
    if (report_ && place->kind == ExprKind::Var)
      annotate(place, levels_[place->variable].level, control);
    if (const Variable* root = valueRoot(*place)) {
      assign(root, join(value, indices), control, expr->args[1]);
      return Level::Block;
    }
    return join(join(value, indices), control.level);
  }

  Level visitIf(Expr* expr, Control control) {
    Level condition = visit(expr->args[0], control);
    Control inner = join(control, {condition, expr->args[0]});
    Control before = frames_.back().left;
    Level value = visit(expr->args[1], inner);
    Control afterThen = frames_.back().left;
    frames_.back().left = before;
    if (expr->args.size() > 2)
      value = join(value, visit(expr->args[2], inner));
    frames_.back().left = join(frames_.back().left, afterThen);
    return join(value, condition);
  }

  Level visitLoop(Expr* expr, Control control) {
    loops_.push_back(expr);
    Control inner = join(control, loopControl_[expr]);
    if (expr->kind == ExprKind::While) {
      Level condition = visit(expr->args[0], inner);
      visit(expr->args[1], join(inner, {condition, expr->args[0]}));
    } else if (expr->kind == ExprKind::For) {
      Level bounds = visit(expr->args[0], control);
      Control body = join(inner, {bounds, expr->args[0]});
      assign(expr->variable, bounds, inner, expr->args[0]);
      if (expr->indexVariable)
        assign(expr->indexVariable, Level::Block, body, expr->args[0]);
      visit(expr->args[1], body);
    } else {
      visit(expr->args[0], inner);
    }
    loops_.pop_back();
    return loopValue_[expr].level;
  }

  Level visitReturn(Expr* expr, Control control) {
    Level level = expr->args.empty() ? Level::Block : visit(expr->args[0], control);
    control = here(control);
    if (report_ && frames_.size() == 1 && !expr->args.empty())
      checkBlockValue(*expr->args[0], kernel_.resultType);
    Frame& frame = frames_.back();
    frame.value = join(frame.value, {join(level, control.level), expr});
    if (control.level != Level::Block) {
      // The label shows the return; what decides it is the condition around it.
      frame.left = join(frame.left, {control.level, control.cause});
      for (size_t i = frame.loopDepth; i < loops_.size(); ++i)
        raise(loopControl_, loops_[i], control);
    }
    return Level::Block;
  }

  bool hasSeveralWarps() const {
    return std::any_of(blocks_.begin(), blocks_.end(), [](const ThreadsPerAxis& block) {
      int64_t threads = 1;
      for (const auto& axis : block)
        threads = std::min(threads * axis.value_or(1), kWarpThreads + 1);
      return threads > kWarpThreads;
    });
  }

  /// A scalar result is one value of each block.
  void checkBlockValue(const Expr& value, Type result) {
    if (value.kind == ExprKind::MakeTuple && result->kind == TypeKind::Tuple)
      for (size_t i = 0; i < value.args.size() && i < result->elems.size(); ++i)
        checkBlockValue(*value.args[i], result->elems[i]);
    const Expr* origin = originOf(&value, 0);
    const bool differsByRow =
        origin && origin->builtin != Builtin::WarpId && isRowOfWarps(*origin) && hasSeveralWarps();
    const bool differs = value.uniformity == Uniformity::PerThread && (!ofWarps_.contains(&value) || differsByRow);
    if (result->kind != TypeKind::Scalar || !differs)
      return;  // the warps of a block of 32 threads agree
    auto diagnostic = sink_.error("E0469", value.range,
                                  "the value returned for a scalar result differs between the threads of a block");
    diagnostic.primary("each block gives one value");
    diagnostic.label(kernel_.resultRange, "the result is one scalar");
    if (origin && origin->range != value.range)
      diagnostic.label(origin->range, "because of this per-thread value");
    diagnostic.help("combine the values of the threads first, in shared memory or with `warp.sum`; or return a tensor");
  }

  Level visitInline(Expr* expr, Control control) {
    for (size_t i = 0; i + 1 < expr->args.size(); ++i)
      visit(expr->args[i], control);
    Frame frame;
    frame.left = {};
    frame.loopDepth = loops_.size();
    Control outer = here(control);
    frames_.push_back(frame);
    Level value = visit(expr->args.back(), outer);
    value = join(value, frames_.back().value.level);
    frames_.pop_back();
    return value;
  }

  void annotate(Expr* expr, Level level, Control control) {
    if (level == Level::Warp)
      ofWarps_.insert(expr);
    expr->uniformity = level == Level::Block ? Uniformity::Uniform : Uniformity::PerThread;
    if (!reportedTile_ && isTileOperation(*expr))
      checkTileOperation(*expr, level, control);
    bool needsBlock = ownNeedsBlock(*expr, level, control);
    bool perThread = ownPerThread(*expr, level, control);
    if (needsBlock && control.level != Level::Block && expr->kind == ExprKind::Let && !reportedBlock_)
      reportBlockOperation(*expr, control);
    for (const Expr* arg : expr->args) {
      needsBlock |= arg && arg->needsBlock;
      perThread |= arg && arg->hasPerThread;
    }
    for (const SliceDim& slice : expr->slices)
      for (const Expr* part : {slice.begin, slice.end}) {
        needsBlock |= part && part->needsBlock;
        perThread |= part && part->hasPerThread;
      }
    expr->needsBlock = needsBlock;
    expr->hasPerThread = perThread;
  }

  /// Work of the whole block on tensors, rather than naming or subscripting them.
  static bool isTileOperation(const Expr& expr) {
    switch (expr.kind) {
    case ExprKind::Unary:
    case ExprKind::Binary:
    case ExprKind::Cast:
    case ExprKind::Dot: return isTile(expr.type);
    case ExprKind::Assign: return expr.args[0]->type && expr.args[0]->type->isTensor();
    case ExprKind::Builtin:
      if (expr.builtin == Builtin::Stage || expr.builtin == Builtin::AsyncStage)
        return true;
      return expr.builtin >= Builtin::Arange && expr.builtin <= Builtin::MaskUpperTriangle;
    default: return false;
    }
  }

  void checkTileOperation(const Expr& expr, Level level, Control control) {
    if (control.level != Level::Block) {
      reportedTile_ = true;
      return reportDivergence("E0467", expr, control, "the whole block works on a tile, but only some threads get here",
                              "a tile operation under control that differs between threads");
    }
    const Expr* origin = level == Level::Block ? nullptr : originOf(&expr, 0);
    if (!origin)
      return;
    reportedTile_ = true;
    sink_.error("E0467", expr.range, "the whole block works on a tile, but this one differs between threads")
        .primary("a tile operation")
        .label(origin->range, "because of this per-thread value")
        .help("read the elements one by one: `t[thread.local_id]`");
  }

  bool ownNeedsBlock(const Expr& expr, Level level, Control control) const {
    if (isTile(expr.type) && expr.kind != ExprKind::Var && expr.kind != ExprKind::Block)
      return true;
    if (isTileOperation(expr) || (isTile(expr.type) && expr.kind == ExprKind::Broadcast))
      return true;
    switch (expr.kind) {
    case ExprKind::Let:
      return expr.variable->type->isTensor() && expr.variable->type->space == Space::Shared && expr.args.empty();
    case ExprKind::Assign: return !valueRoot(*expr.args[0]) && level == Level::Block;
    case ExprKind::Element: {
      const Variable* root = roots_.rootOf(expr);
      return level == Level::Block && control.level == Level::Block && roots_.isWritten(root);
    }
    case ExprKind::Builtin:
      if (expr.builtin == Builtin::SyncBlock)
        return true;
      if (expr.builtin == Builtin::Print || expr.builtin == Builtin::Assert)
        return level == Level::Block && control.level == Level::Block;
      return !expr.args.empty() && isTile(expr.args[0]->type);
    default: return false;
    }
  }

  bool ownPerThread(const Expr& expr, Level level, Control control) const {
    if (level != Level::Block)
      return true;
    switch (expr.kind) {
    case ExprKind::Let: return levelOf(expr.variable) != Level::Block;
    case ExprKind::Assign: {
      const Variable* root = valueRoot(*expr.args[0]);
      return root && levelOf(root) != Level::Block;
    }
    case ExprKind::Break:
    case ExprKind::Continue:
    case ExprKind::Return: return control.level != Level::Block;
    case ExprKind::Builtin: return isWarpOperation(expr.builtin) && expr.builtin != Builtin::WarpSize;
    default: return false;
    }
  }

  Level levelOf(const Variable* variable) const {
    auto found = levels_.find(variable);
    return found == levels_.end() ? Level::Block : found->second.level;
  }

  void reportBlockOperation(const Expr& expr, Control control) {
    reportedBlock_ = true;
    reportDivergence("E0452", expr, control, "shared memory belongs to the whole block, but only some threads get here",
                     "declared under control that differs between threads");
  }

  void reportDivergence(std::string_view id, const Expr& at, Control control, std::string message, std::string label) {
    auto diagnostic = sink_.error(id, at.range, std::move(message));
    diagnostic.primary(std::move(label));
    if (control.cause) {
      diagnostic.label(control.cause->range, "this differs between threads");
      if (const Expr* origin = originOf(control.cause, 0); origin && origin->range != control.cause->range)
        diagnostic.label(origin->range, "because of this per-thread value");
    }
    if (id == "E0450")
      diagnostic.help("move `sync_block()` out of the conditional code so that all threads reach it, and keep only the "
                      "work inside");
  }

  /// The thread-dependent leaf that makes an expression vary, through the assignments of variables.
  const Expr* originOf(const Expr* expr, int depth) const {
    if (!expr || depth > 64)
      return nullptr;
    if (expr->kind == ExprKind::Builtin &&
        (expr->builtin == Builtin::ThreadId || expr->builtin == Builtin::ThreadLocalId ||
         expr->builtin == Builtin::ThreadGlobalId || expr->builtin == Builtin::LaneId ||
         expr->builtin == Builtin::WarpId))
      return expr;
    if (expr->kind == ExprKind::Var) {
      auto found = levels_.find(expr->variable);
      return found != levels_.end() && found->second.level != Level::Block ? originOf(found->second.cause, depth + 1)
                                                                           : nullptr;
    }
    for (const Expr* arg : expr->args)
      if (const Expr* origin = originOf(arg, depth + 1))
        return origin;
    for (const SliceDim& slice : expr->slices)
      for (const Expr* part : {slice.begin, slice.end})
        if (const Expr* origin = originOf(part, depth + 1))
          return origin;
    return nullptr;
  }

  Function& kernel_;
  const Roots& roots_;
  std::span<const ThreadsPerAxis> blocks_;
  diag::DiagnosticSink& sink_;
  std::map<const void*, Control> levels_;       // by Variable
  std::map<const void*, Control> loopControl_;  // by loop: some threads left an iteration early
  std::map<const void*, Control> loopValue_;
  std::vector<Frame> frames_;
  std::vector<const Expr*> loops_;
  std::set<const Expr*> ofWarps_;  ///< their values vary between warps only
  std::set<const Expr*> unused_;   ///< statements: nothing takes their values
  bool changed_ = false;
  bool report_ = false;
  bool reportedBlock_ = false;
  bool reportedTile_ = false;
};

}  // namespace

void inferUniformity(Function& kernel, const Roots& roots, std::span<const ThreadsPerAxis> blocks,
                     diag::DiagnosticSink& sink) {
  Analysis(kernel, roots, blocks, sink).run();
}

}  // namespace vortex::lang
