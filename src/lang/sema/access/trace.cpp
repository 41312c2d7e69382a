#include "lang/sema/access/trace.h"
#include "lang/sema/access/values.h"
#include "lang/sema/children.h"
#include "lang/sema/element.h"

#include <algorithm>
#include <numeric>

namespace vortex::lang::access {

namespace {

bool isIntegerType(Type type) {
  return type && type->kind == TypeKind::Scalar && (isInteger(type->scalar) || type->scalar == Scalar::Bool);
}

bool isMemory(Type type, Space space) { return type && type->isTensor() && !type->isValue && type->space == space; }

bool comparesByOrder(const Expr& expr) {
  if (expr.kind == ExprKind::Unary)
    return comparesByOrder(*expr.args[0]);
  if (expr.kind == ExprKind::Var || expr.kind == ExprKind::Cast)
    return false;
  if (expr.kind != ExprKind::Binary)
    return false;
  switch (expr.binaryOp) {
  case BinaryOp::Lt:
  case BinaryOp::Le:
  case BinaryOp::Gt:
  case BinaryOp::Ge: return true;
  case BinaryOp::And:
  case BinaryOp::Or: return comparesByOrder(*expr.args[0]) && comparesByOrder(*expr.args[1]);
  default: return false;
  }
}

/// Some threads may leave the loop or the iteration before others.
bool leavesEarly(const Expr& expr, bool isDivergent) {
  if (expr.kind == ExprKind::Break || expr.kind == ExprKind::Continue || expr.kind == ExprKind::Return)
    return isDivergent;
  const bool decides = expr.kind == ExprKind::If && expr.args[0]->uniformity == Uniformity::PerThread;
  return std::any_of(expr.args.begin(), expr.args.end(), [&](const Expr* arg) {
    return arg && leavesEarly(*arg, isDivergent || (decides && arg != expr.args[0]));
  });
}

bool leaves(const Expr& expr) {
  if (expr.kind == ExprKind::Return || expr.kind == ExprKind::Break || expr.kind == ExprKind::Continue)
    return true;
  if (expr.kind == ExprKind::Block)
    return std::any_of(expr.args.begin(), expr.args.end(), [](const Expr* arg) { return arg && leaves(*arg); });
  return expr.kind == ExprKind::If && expr.args.size() > 2 && leaves(*expr.args[1]) && leaves(*expr.args[2]);
}

void collectAssigned(const Expr& expr, std::set<const Variable*>& into) {
  if (expr.kind == ExprKind::Assign && expr.args[0]->kind == ExprKind::Var)
    into.insert(expr.args[0]->variable);
  for (const Expr* arg : expr.args)
    if (arg)
      collectAssigned(*arg, into);
}

/// Scalars of a struct element.
struct Leaves {
  uint64_t first = 0, count = 0;
};

/// `p[i].velocity.x`: the element of a tensor and what is looked at of it. Null element: something else.
struct ElementPart {
  const Expr* element = nullptr;
  Leaves leaves;
};

ElementPart partOfElement(const Expr& expr) {
  if (expr.kind != ExprKind::Field && expr.kind != ExprKind::Element)
    return {};
  Type base = stripRef(expr.args[0]->type);
  if (!base)
    return {};
  if (expr.kind == ExprKind::Element && base->isTensor())
    return base->isValue || !isStorable(base->elem) ? ElementPart{} : ElementPart{&expr, {0, scalarCount(base->elem)}};
  ElementPart part = partOfElement(*expr.args[0]);
  if (!part.element ||
      (base->kind != TypeKind::Struct && base->kind != TypeKind::Tuple && base->kind != TypeKind::Array))
    return {};
  const Expr* index = expr.kind == ExprKind::Element ? expr.args[1] : nullptr;
  if (index && index->kind != ExprKind::Int)
    return part;  // any of the array
  const auto number = static_cast<uint64_t>(index ? index->intValue : expr.ints[0]);
  const uint64_t parts = base->kind == TypeKind::Array ? base->count : base->elems.size();
  if (number >= parts)
    return part;
  part.leaves.first += scalarsBefore(base, static_cast<uint32_t>(number));
  part.leaves.count = scalarCount(partOf(base, static_cast<uint32_t>(number)));
  return part;
}

class Walker {
public:
  Walker(const Function& kernel, const Roots& roots, const BlockShape& block, Trace& trace)
      : kernel_(kernel), trace_(trace), values_(kernel, roots, block, trace) {
    verify_ = kernel.kernel->verifyBanks;
    quiet_ = kernel.kernel->uncheckedCoalescing;
    noteVerification(verify_);
  }

  void run() { visit(*kernel_.body); }

private:
  void noteVerification(source::SourceRange range) {
    if (range.isValid() && trace_.verified.insert({range.file.value, range.begin, range.end}).second)
      trace_.verifications.push_back(range);
  }

  void visit(const Expr& expr) {
    const source::SourceRange verifyBefore = verify_;
    const bool quietBefore = quiet_;
    if (expr.verifyBanks.isValid()) {
      verify_ = expr.verifyBanks;
      noteVerification(verify_);
    }
    quiet_ = quiet_ || expr.uncheckedCoalescing;
    visitKind(expr);
    verify_ = verifyBefore;
    quiet_ = quietBefore;
  }

  void visitArgs(const Expr& expr) {
    forEachChild(expr, [&](const Expr& child) { visit(child); });
  }

  void visitKind(const Expr& expr) {
    switch (expr.kind) {
    case ExprKind::Block: return visitBlock(expr);
    case ExprKind::Let:
      visitArgs(expr);
      if (expr.variable && !expr.args.empty())
        values_.bind(*expr.variable, *expr.args[0]);
      return;
    case ExprKind::Assign: return visitAssign(expr);
    case ExprKind::If: return visitIf(expr);
    case ExprKind::For: return visitFor(expr);
    case ExprKind::While:
    case ExprKind::Loop: return visitLoop(expr, nullptr);
    case ExprKind::Inline: return visitInline(expr);
    case ExprKind::Binary:
      if (expr.binaryOp == BinaryOp::And || expr.binaryOp == BinaryOp::Or) {
        visit(*expr.args[0]);
        const size_t before = conditions_.size();
        assume(*expr.args[0], expr.binaryOp == BinaryOp::And);
        visit(*expr.args[1]);
        conditions_.resize(before);
        return;
      }
      break;
    case ExprKind::Field:
    case ExprKind::Element:
      if (ElementPart part = partOfElement(expr); part.element)
        parts_.try_emplace(part.element, part.leaves);  // of p[i], p[i].a and p[i].a.b the last is visited first
      visitArgs(expr);
      if (expr.kind == ExprKind::Element)
        record(expr);
      else
        noteTiles(expr);
      return;
    default: break;
    }
    visitArgs(expr);
    noteTiles(expr);
  }

  /// A whole tensor in shared memory as an operand.
  void noteTiles(const Expr& expr) {
    if (!isRecording_ || !verify_.isValid() || expr.kind == ExprKind::Slice || expr.kind == ExprKind::Ref ||
        expr.kind == ExprKind::Deref || expr.kind == ExprKind::Field || expr.kind == ExprKind::Element)
      return;
    for (const Expr* arg : expr.args)
      if (arg && isMemory(stripRef(arg->type), Space::Shared))
        trace_.verifiedTiles.push_back({verify_, arg});
  }

  void visitBlock(const Expr& block) {
    const size_t before = conditions_.size();
    for (const Expr* statement : block.args) {
      visit(*statement);
      // What follows `if c { return }` runs where c does not hold.
      if (statement->kind == ExprKind::If && statement->args.size() >= 2) {
        const bool thenLeaves = leaves(*statement->args[1]);
        const bool elseLeaves = statement->args.size() > 2 && statement->args[2] && leaves(*statement->args[2]);
        if (thenLeaves != elseLeaves)
          assume(*statement->args[0], elseLeaves);
      }
    }
    conditions_.resize(before);
  }

  void assume(const Expr& condition, bool sense) {
    const NodeId node = values_.of(condition);
    if (condition.uniformity == Uniformity::Uniform && !isKnown(node))
      return;  // the same for all lanes
    const bool isBound = comparesByOrder(resolved(condition)) && !trace_.graph.hasUnknown(node);
    conditions_.push_back({node, sense, isBound, &condition});
  }

  bool isKnown(NodeId condition) {
    const auto truth = Evaluation(trace_.graph).truth(condition);
    return std::none_of(truth.begin(), truth.end(), [](Truth lane) { return lane == Truth::Unknown; });
  }

  const Expr& resolved(const Expr& condition) const {
    const Expr* value = condition.kind == ExprKind::Var ? values_.roots().soleValue(condition.variable) : nullptr;
    return value ? *value : condition;
  }

  void visitAssign(const Expr& assign) {
    const Expr& place = *assign.args[0];
    visit(*assign.args[1]);
    visit(place);
    if (place.kind != ExprKind::Var) {
      noteTiles(assign);
      return;
    }
    if (isMemory(stripRef(place.type), Space::Shared))
      noteTiles(assign);
    if (isIntegerType(place.type))
      values_.set(*place.variable, assign.hasOp ? values_.binary(assign.binaryOp, place, *assign.args[1], assign)
                                                : values_.of(*assign.args[1]));
  }

  void visitIf(const Expr& expr) {
    visit(*expr.args[0]);
    const NodeId condition = values_.of(*expr.args[0]);
    const Values::State before = values_.state();
    const size_t depth = conditions_.size();
    assume(*expr.args[0], true);
    visit(*expr.args[1]);
    conditions_.resize(depth);
    Values::State then = values_.state();
    values_.restore(before);
    if (expr.args.size() > 2 && expr.args[2]) {
      assume(*expr.args[0], false);
      visit(*expr.args[2]);
      conditions_.resize(depth);
    }
    if (leaves(*expr.args[1]))
      return;  // only the other side goes on
    if (expr.args.size() > 2 && expr.args[2] && leaves(*expr.args[2])) {
      values_.restore(std::move(then));
      return;
    }
    values_.join(condition, then);
  }

  void visitInline(const Expr& expr) {
    // A return inside ends the call only, so what it assumes does too.
    const size_t before = conditions_.size();
    visitArgs(expr);
    conditions_.resize(before);
  }

  void visitFor(const Expr& loop) {
    visit(*loop.args[0]);
    visitLoop(loop, loop.args[0]);
  }

  /// Finds for every variable the loop assigns by how much it grows per iteration, then walks the body once for the record.
  void visitLoop(const Expr& loop, const Expr* range) {
    std::set<const Variable*> assigned;
    for (const Expr* part : loop.args)
      if (part)
        collectAssigned(*part, assigned);
    std::erase_if(assigned, [&](const Variable* variable) {
      return !isIntegerType(variable->type) || !values_.knows(*variable);
    });
    const Values::State before = values_.state();
    const bool isRagged = leavesEarly(loop, false);
    std::map<const Variable*, Values::Growth> growths;
    for (const Variable* variable : assigned)
      growths[variable] = {.isKnown = !isRagged, .step = 0};
    const bool wasRecording = isRecording_;
    isRecording_ = false;
    for (int pass = 0; pass < 4 && !assigned.empty() && !isRagged; ++pass) {
      values_.restore(before);
      const auto starts = values_.start(before, growths);
      walkBody(loop, range);
      bool changed = false;
      for (const Variable* variable : assigned)
        changed |= values_.refine(*variable, starts.at(variable), growths[variable]);
      if (!changed)
        break;
      if (pass == 3)
        for (auto& [variable, growth] : growths)
          growth.isKnown = false;
    }
    isRecording_ = wasRecording;
    values_.restore(before);
    values_.start(before, growths);
    walkBody(loop, range);
    values_.restore(before);
    const Expr* control = range ? range : loop.kind == ExprKind::While ? loop.args[0] : nullptr;
    if (isRagged || (control && control->uniformity == Uniformity::PerThread))
      for (auto& [variable, growth] : growths)
        growth.isKnown = false;  // lanes end after different numbers of iterations
    values_.start(before, growths);
  }

  void walkBody(const Expr& loop, const Expr* range) {
    const size_t depth = conditions_.size(), counters = counters_.size();
    loops_.push_back(&loop);
    if (range) {
      if (auto counter = values_.enterLoop(loop, *range))
        counters_.push_back(*counter);
      if (range->uniformity == Uniformity::PerThread && range->kind == ExprKind::Range) {
        // Lanes take part while their counter is below the end.
        NodeId below = trace_.graph.make(Op::Lt, values_.ofVariable(*loop.variable), values_.of(*range->args[1]));
        conditions_.push_back({below, true, true, range});
      }
    } else if (loop.kind == ExprKind::While) {
      visit(*loop.args[0]);
      assume(*loop.args[0], true);
    }
    visit(*loop.args.back());
    loops_.pop_back();
    conditions_.resize(depth);
    counters_.resize(counters);
  }

  void record(const Expr& element) {
    if (!isRecording_)
      return;
    auto view = values_.viewOf(*element.args[0]);
    Type base = stripRef(element.args[0]->type);
    if (!base || !base->isTensor() || base->isValue || base->space == Space::Local)
      return;
    const bool isShared = base->space == Space::Shared;
    if (!isShared &&
        std::all_of(element.args.begin() + 1, element.args.end(),
                    [](const Expr* index) { return index->uniformity == Uniformity::Uniform; }) &&
        element.args[0]->uniformity == Uniformity::Uniform)
      return;
    Access access{.element = &element,
                  .root = view ? view->root : nullptr,
                  .tensor = view ? view->storage : base,
                  .offset = 0,
                  .firstLeaf = view ? view->firstLeaf : 0,
                  .conditions = conditions_,
                  .bounds = {},
                  .loops = loops_,
                  .counters = counters_,
                  .verify = verify_,
                  .isQuiet = quiet_};
    if (auto part = parts_.find(&element); part != parts_.end()) {
      access.firstLeaf += static_cast<uint32_t>(part->second.first);
      access.leafCount = static_cast<uint32_t>(part->second.count);
    }
    if (view && view->strides.size() + 1 == element.args.size()) {
      Graph& graph = trace_.graph;
      access.offset = view->base;
      for (size_t dim = 0; dim < view->strides.size(); ++dim) {
        NodeId index = values_.index(*element.args[dim + 1]);
        auto extent = view->extents[dim].asConstant();
        if (extent)
          access.bounds.push_back({index, *extent});
        if (isShared && extent && base->layout == SharedLayout::BankConflictFree)
          index = graph.make(Op::Within, index, 0, 0, *extent);
        access.offset = graph.make(Op::Add, access.offset, graph.make(Op::Mul, index, view->strides[dim]));
      }
    } else {
      access.offset = trace_.graph.unknown(&element);
    }
    trace_.accesses.push_back(std::move(access));
  }

  const Function& kernel_;
  Trace& trace_;
  Values values_;
  std::vector<Condition> conditions_;
  std::vector<const Expr*> loops_;
  std::vector<SymbolId> counters_;
  std::map<const Expr*, Leaves> parts_;  ///< what is accessed of elements
  source::SourceRange verify_;
  bool quiet_ = false, isRecording_ = true;
};

}  // namespace

Trace traceKernel(const Function& kernel, const Roots& roots, const BlockShape& block) {
  Trace trace;
  Walker(kernel, roots, block, trace).run();
  return trace;
}

}  // namespace vortex::lang::access
