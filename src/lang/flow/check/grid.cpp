#include "lang/flow/check/grid.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "lang/flow/check/surplus_reads.h"
#include "lang/flow/check/tile_code.h"
#include "lang/flow/race/launches.h"
#include "lang/sema/children.h"
#include "lang/sema/expr_parts.h"
#include "lang/sema/kernel/roots.h"

namespace vortex::lang::flow {
namespace {

/// `t[…, thread.global_id, …]` of a global tensor.
struct OwnElement {
  const Expr* element;
  DimExpr extent;
};

class GridInference {
public:
  GridInference(Function& kernel, const Graph& graph, LaunchGrids launchGrids, diag::DiagnosticSink& sink)
      : kernel_(kernel), graph_(graph), launchGrids_(launchGrids), sink_(sink) {
    for (const Subscript& subscript : graph.subscripts)
      evaluated_.try_emplace(subscript.origin, &subscript);
  }

  void run() {
    KernelSpec& spec = *kernel_.kernel;
    if (spec.tile && spec.tile->extents.empty())
      return;  // reported
    if (spec.tile && kernel_.body && !isTileCode(spec, *kernel_.body))
      makeWholeTensor(spec);
    if (kernel_.body)
      scan(*kernel_.body);
    if (spec.gridKind != GridKind::Explicit)
      infer(spec);
    checkStored(spec);
    checkResults(spec);
    if (spec.gridKind == GridKind::Domain)
      checkSurplusReads(kernel_, graph_, ownElements(), sink_);
    if (spec.gridKind == GridKind::Domain && !spec.tile)
      checkAxes(spec);
    warnBareGlobalId(spec);
  }

  std::set<const Expr*> ownElements() const {
    std::set<const Expr*> own;
    for (const auto& axis : subscripts_)
      for (const OwnElement& each : axis)
        own.insert(each.element);
    return own;
  }

private:
  void scan(const Expr& expr) {
    const bool isStage = expr.builtin == Builtin::Stage || expr.builtin == Builtin::AsyncStage;
    const bool isPosition = expr.builtin >= Builtin::ThreadId && expr.builtin <= Builtin::BlockAll;
    if (expr.kind == ExprKind::Builtin && !position_ && (isStage || (isPosition && expr.builtin != Builtin::WarpSize)))
      position_ = &expr;
    if (expr.kind == ExprKind::Let && expr.variable->isStoredValue)
      stored_.push_back(&expr);
    if (expr.kind == ExprKind::Element)
      recordSubscripts(expr);
    if (expr.kind == ExprKind::Builtin)
      recordAxis(expr);
    if (expr.kind == ExprKind::Return && !expr.args.empty() && callDepth_ == 0)
      returns_.push_back(&expr);
    callDepth_ += expr.kind == ExprKind::Inline;
    forEachChild(expr, [&](const Expr& child) { scan(child); });
    callDepth_ -= expr.kind == ExprKind::Inline;
  }

  /// Where threads run, a computed tensor is a value; only a result that begins as zeros is written in place.
  void checkStored(const KernelSpec& spec) {
    for (const Expr* let : stored_) {
      const Expr* value = let->args.empty() ? nullptr : let->args.front();
      const bool isZeros = !value || (value->kind == ExprKind::Builtin && value->builtin == Builtin::Zeros);
      const auto isReturned = [&](const Expr* leave) {
        const Expr& part = *leave->args.front();
        const auto isIt = [&](const Expr* at) { return at->kind == ExprKind::Var && at->variable == let->variable; };
        return isIt(&part) || (part.kind == ExprKind::MakeTuple && std::ranges::any_of(part.args, isIt));
      };
      if (spec.gridKind == GridKind::WholeTensor || (isZeros && std::ranges::any_of(returns_, isReturned)))
        continue;
      sink_
          .error("E0412", let->variable->range,
                 "`" + let->variable->name + "` is a value without a memory space and cannot be written by element")
          .primary("computed by each block of a kernel with threads")
          .help(
              "give it a space (`@shared`, `@local`), or make it the result: `var out: <result type>` … `return out`");
    }
  }

  void recordAxis(const Expr& position) {
    const bool isGlobal = position.builtin == Builtin::ThreadGlobalId;
    if (isGlobal && position.ints.empty() && !bareGlobalId_)
      bareGlobalId_ = &position;
    if (!isGlobal && position.builtin != Builtin::ThreadId && position.builtin != Builtin::BlockId)
      return;
    const Expr*& first = axisUses_[axisOf(position)];
    first = first ? first : &position;
  }

  static size_t axisOf(const Expr& position) {
    return position.ints.empty() ? 0 : static_cast<size_t>(position.ints[0]);
  }

  /// By value: the position may have come by way of variables, aggregates and calls.
  void recordSubscripts(const Expr& element) {
    const Type base = stripRef(asElement(element).base.type);
    const auto found = evaluated_.find(&element);
    if (found == evaluated_.end() || base->space != Space::Global)
      return;
    for (size_t dim = 0; dim < found->second->parts.size(); ++dim)
      if (const auto axis = globalAxis(found->second->parts[dim].begin))
        subscripts_[*axis].push_back({&element, base->shape[dim]});
  }

  std::optional<uint32_t> globalAxis(ValueId value, unsigned depth = 0) const {
    const Node* node = &graph_.values[value];
    while (node->kind == NodeKind::Convert && node->type.width == 64 &&
           graph_.values.type(node->args.front()).width == 64)
      node = &graph_.values[node->args.front()];
    if (node->kind == NodeKind::Load && depth < 8)
      if (const ValueId stored = soleStored(graph_[node->step()].place); stored != kNoValue)
        return globalAxis(stored, depth + 1);
    const bool isGlobal = node->kind == NodeKind::Position && node->position() == PositionKind::ThreadGlobalId;
    return isGlobal ? std::optional(node->axis()) : std::nullopt;
  }

  bool isConstantSlot(const Place& place) const {
    return place.path.size() == 1 && place.path.front().kind == ProjectionKind::Slot &&
           graph_.values.isConstant(place.path.front().index);
  }

  /// What an array holds at a constant place, if that is written once and nothing is written at a place that is not known.
  ValueId soleStored(PlaceId at) const {
    if (at == kNoPlace || graph_[at].isUnknown() || !isConstantSlot(graph_[at]))
      return kNoValue;
    ValueId stored = kNoValue;
    for (const Access& access : graph_.accesses) {
      const Place& other = graph_[access.place];
      const bool mayBe = other.isUnknown()
                             ? std::count(other.candidates.begin(), other.candidates.end(), graph_[at].root) > 0
                             : other.root == graph_[at].root;
      if (access.mode == AccessMode::Read || !mayBe)
        continue;
      if (other.isUnknown() || !isConstantSlot(other) || (access.place == at && stored != kNoValue))
        return kNoValue;
      if (access.place == at)
        stored = graph_[access.step].kind == StepKind::Store ? graph_.uses(graph_[access.step])[0] : kNoValue;
    }
    return stored;
  }

  /// The tile sizes are advice for the compiler, which chooses the grid.
  void makeWholeTensor(KernelSpec& spec) {
    spec.gridKind = GridKind::WholeTensor;
    spec.grid.clear();
    spec.block.clear();
    std::vector<Expr*>& statements = kernel_.body->args;
    statements.erase(statements.begin(), statements.begin() + static_cast<ptrdiff_t>(spec.tile->offsets.size()));
    spec.tile->offsets.clear();
  }

  /// A tensor that is not the block's tile is the whole result, which many blocks would store.
  void checkReturned(const Expr& expr) {
    if (expr.kind == ExprKind::Inline)
      return;
    if (expr.kind == ExprKind::Return && !expr.args.empty()) {
      const Expr& value = *expr.args.front();
      const bool isTuple = value.kind == ExprKind::MakeTuple;
      for (size_t i = 0; i < (isTuple ? value.args.size() : 1); ++i)
        checkReturnedPart(isTuple ? *value.args[i] : value);
    }
    for (const Expr* arg : expr.args)
      if (arg)
        checkReturned(*arg);
  }

  void checkReturnedPart(const Expr& value) {
    Type type = stripRef(value.type);
    if (!type || !type->isTensor() || (value.kind == ExprKind::Var && value.variable->isResultStorage) ||
        (kernel_.kernel->tile && isReturnedTile(*kernel_.kernel, value)))
      return;
    auto names = kernel_.dimNames();
    auto builder = sink_.error("E0464", value.range, "every block of `" + kernel_.name + "` returns the whole result");
    builder.primary("`" + text(type, names) + "`, computed by each block");
    builder.label(kernel_.kernel->tile ? kernel_.kernel->tile->range : kernel_.nameRange,
                  "this kernel has many blocks");
    builder.help("return the block's tile (`@tile`), or write parts of `var out: <result type>` and return that");
  }

  /// Of the first tensor that is no constant: "N * M".
  std::string elementCount() const {
    for (const Variable* param : kernel_.params)
      if (const Type type = stripRef(param->type); type->isTensor() && type->rank() > 0)
        return std::accumulate(type->shape.begin() + 1, type->shape.end(), type->shape[0], DimExpr::mul)
            .text(kernel_.dimNames());
    return "1024";
  }

  std::string gridHelp(const KernelSpec& spec) const {
    std::vector<std::string> sizes;
    for (const Expr* size : spec.block)
      sizes.push_back(evaluateSize(*size, {}) ? std::to_string(*evaluateSize(*size, {})) : "…");
    const std::string own = sizes.empty() ? "256" : sizes[0];
    const bool isLine = sizes.size() < 2 && own != "…";
    const std::string grid = isLine ? base::concat("ceil_div(", elementCount(), ", ", own, ")") : "…";
    return "say it on the kernel: `@launch(grid = [" + grid +
           "], block = " + (sizes.size() < 2 ? own : "[" + base::join(sizes, ", ") + "]") + ")`, or at the call: `" +
           kernel_.name + ".launch(grid = …" + (sizes.empty() ? ", block = …" : "") + ")(…)`";
  }

  void infer(KernelSpec& spec) {
    size_t axes = 0;
    for (size_t axis = 0; axis < 3; ++axis)
      if (!subscripts_[axis].empty())
        axes = axis + 1;
    if (axes == 0) {
      if (!position_) {
        spec.gridKind = GridKind::WholeTensor;
        return;
      }
      // A per-thread scalar result fills the result tensor, which then is the domain.
      const bool isInferred = launchGrids_ != LaunchGrids::Always && resultIsDomain(spec);
      if (!isInferred && launchGrids_ == LaunchGrids::OfProgram)
        sink_.error("E0458", position_->range, "the number of blocks of `" + kernel_.name + "` cannot be inferred")
            .primary("the kernel names blocks or threads, but no index of an element is exactly `thread.global_id`")
            .label(kernel_.nameRange, "this kernel needs a grid")
            .help(gridHelp(spec));
      else if (!isInferred)
        spec.gridKind = GridKind::Explicit;
      return;
    }
    const size_t rank = returnsElements() ? kernel_.resultType->rank() : 0;
    const bool isInferred = launchGrids_ == LaunchGrids::OfProgram || haveExtents(spec, rank);
    spec.gridKind = isInferred && launchGrids_ != LaunchGrids::Always ? GridKind::Domain : GridKind::Explicit;
    if (spec.gridKind == GridKind::Explicit)
      return;
    for (size_t axis = axes; axis < rank; ++axis)
      if (axisUses_[axis])
        axes = axis + 1;
    for (size_t axis = 0; axis < axes; ++axis) {
      const bool isOfResult = subscripts_[axis].empty() && axisUses_[axis] && axis < rank;
      missing_[axis] = subscripts_[axis].empty() && !isOfResult;
      spec.domain.push_back(isOfResult       ? kernel_.resultType->shape[rank - 1 - axis]
                            : missing_[axis] ? DimExpr::constant(1)
                                             : agreedExtent(axis));
    }
  }

  /// Whether every axis that is used has an extent, and only one.
  bool haveExtents(const KernelSpec& spec, size_t rank) const {
    for (size_t axis = 0; axis < 3; ++axis) {
      const auto isOther = [&](const OwnElement& each) { return each.extent != subscripts_[axis].front().extent; };
      const Expr* use = axisUses_[axis];
      const bool isThreadOfBlock = use && use->builtin == Builtin::ThreadId && axis < spec.block.size();
      const bool hasExtent = !subscripts_[axis].empty() || axis < rank || spec.tile || isThreadOfBlock;
      if ((use && !hasExtent) || std::ranges::any_of(subscripts_[axis], isOther))
        return false;
    }
    return true;
  }

  /// A grid that is inferred has one block, of one thread, along an axis without an extent.
  void checkAxes(const KernelSpec& spec) {
    for (size_t axis = 0; axis < 3; ++axis) {
      const Expr* use = axisUses_[axis];
      const bool hasExtent = axis < spec.domain.size() && !missing_[axis];
      const bool isThreadOfBlock = use && use->builtin == Builtin::ThreadId && axis < spec.block.size();
      if (!use || hasExtent || isThreadOfBlock)
        continue;
      const std::string name = std::string("thread.global_id.") + "xyz"[axis];
      sink_
          .error("E0458", use->range,
                 "the number of blocks of `" + kernel_.name + "` along " + "xyz"[axis] + " cannot be inferred")
          .primary("this axis is used, but no tensor is subscripted by exactly `" + name + "`")
          .label(kernel_.nameRange, "this kernel needs a grid")
          .help("subscript a tensor by `" + name + "`, or say the grid: `@launch(grid = […], block = …)`");
      return;
    }
  }

  void warnBareGlobalId(const KernelSpec& spec) {
    const bool isFlat =
        spec.gridKind == GridKind::Domain ? spec.domain.size() < 2 : spec.grid.size() < 2 && spec.block.size() < 2;
    if (!bareGlobalId_ || isFlat || spec.gridKind == GridKind::WholeTensor)
      return;
    sink_.warning("W0458", bareGlobalId_->range, "`thread.global_id` is the position along x only")
        .primary("threads that differ in y or z have the same one")
        .label(kernel_.nameRange, "the grid of this kernel has more than one axis")
        .help("write `thread.global_id.x` if that is meant");
  }

  /// Each thread returns the element at its position.
  bool returnsElements() const {
    Type result = kernel_.resultType;
    return result && result->isTensor() && !returns_.empty() &&
           !stripRef(returns_.front()->args.front()->type)->isTensor() && result->rank() <= 3;
  }

  bool resultIsDomain(KernelSpec& spec) {
    if (!returnsElements())
      return false;
    const std::vector<DimExpr>& shape = kernel_.resultType->shape;
    spec.gridKind = GridKind::Domain;
    spec.domain.assign(shape.rbegin(), shape.rend());
    return true;
  }

  DimExpr agreedExtent(size_t axis) {
    const OwnElement& first = subscripts_[axis].front();
    for (const OwnElement& other : subscripts_[axis]) {
      if (other.extent == first.extent)
        continue;
      auto names = kernel_.dimNames();
      sink_.error("E0457", other.element->range, "the grid of `" + kernel_.name + "` has two different extents")
          .primary("`thread.global_id` runs over " + other.extent.text(names) + " here")
          .label(first.element->range, "and over " + first.extent.text(names) + " here")
          .help("give both tensors the same extent, or say the grid with `@launch(grid = […], block = …)`");
      break;
    }
    return first.extent;
  }

  void checkResults(const KernelSpec& spec) {
    Type result = kernel_.resultType;
    if (!result || result->kind == TypeKind::Unit || result->kind == TypeKind::Error)
      return;
    if (spec.gridKind != GridKind::WholeTensor && !isOneBlock(spec) && kernel_.body)
      checkReturned(*kernel_.body);
    for (const Expr* each : returns_)
      checkFilled(*each->args.front(), result, spec);
    bool scalar = result->kind == TypeKind::Scalar;
    if (scalar && spec.reduce == ReduceKind::None && spec.gridKind != GridKind::WholeTensor && !isOneBlock(spec))
      sink_
          .error("E0459", kernel_.resultRange,
                 "each block of `" + kernel_.name + "` returns its own value, but the result is one scalar")
          .primary("the blocks' values need to be combined")
          .help("write `-> " + text(result, kernel_.dimNames()) + " reduce(add)` (or mul, min, max, and, or)");
  }

  /// One value stands for a tensor only where each thread has one.
  void checkFilled(const Expr& value, Type result, const KernelSpec& spec) {
    if (result->kind == TypeKind::Tuple && value.kind == ExprKind::MakeTuple)
      for (size_t i = 0; i < value.args.size() && i < result->elems.size(); ++i)
        checkFilled(*value.args[i], result->elems[i], spec);
    Type returned = stripRef(value.type);
    if (!result->isTensor() || !returned || returned->isTensor() || returned->kind == TypeKind::Never)
      return;
    auto names = kernel_.dimNames();
    if (spec.gridKind == GridKind::WholeTensor)
      sink_.error("E0301", value.range, "expected `" + text(result, names) + "`, found `" + text(returned, names) + "`")
          .label(kernel_.resultRange, "the result's type")
          .help("return a tensor: `full(value)` has the result's shape; or one value of each thread");
    else if (kernel_.kernel->returnsElements = true; spec.tile && !spec.tile->offsets.empty())
      checkTileFilled(value, spec);
    else if (result->rank() > 3)
      sink_.error("E0460", value.range, "one value per thread does not fill the result")
          .primary("a grid has three axes")
          .label(kernel_.resultRange, "the result is " + text(result, names))
          .help("write the elements of `var out: " + text(result, names) + "` and return that");
    else if (spec.gridKind == GridKind::Domain)
      checkDomain(value, result, spec);
  }

  /// As many threads as the block's tile has elements return those. A block that only a launch gives is checked when that is compiled.
  void checkTileFilled(const Expr& value, const KernelSpec& spec) {
    std::optional<int64_t> threads = 1;
    for (const Expr* size : spec.block)
      if (const auto one = evaluateSize(*size, {});
          !one || !threads || __builtin_mul_overflow(*threads, *one, &*threads))
        threads.reset();
    if (spec.block.empty() || !threads || *threads == spec.tile->elements())
      return;
    const std::string elements = std::to_string(spec.tile->elements());
    sink_.error("E0460", value.range, "one value per thread does not fill the block's tile")
        .primary("returned by each of " + std::to_string(*threads) + " threads")
        .label(spec.tile->range, "the block's tile has " + elements + " elements")
        .help("write `block = " + elements + "`");
  }

  /// Threads of the domain return all elements of the result and no others.
  void checkDomain(const Expr& value, Type result, const KernelSpec& spec) {
    const std::vector<DimExpr> domain(spec.domain.rbegin(), spec.domain.rend());
    if (domain == result->shape || !unfilled_.insert(result).second)
      return;
    auto names = kernel_.dimNames();
    std::string domainText;
    for (const DimExpr& extent : domain)
      domainText += (domainText.empty() ? "" : ", ") + extent.text(names);
    sink_.error("E0460", value.range, "one value per thread does not fill the result")
        .primary("returned by each thread of a [" + domainText + "] domain")
        .label(kernel_.resultRange, "the result is " + text(result, names));
  }

  bool isOneBlock(const KernelSpec& spec) const {
    const auto isOne = [](const Expr* size) { return evaluateSize(*size, {}) == 1; };
    return !spec.grid.empty() && std::ranges::all_of(spec.grid, isOne);
  }

  Function& kernel_;
  const Graph& graph_;
  LaunchGrids launchGrids_;
  diag::DiagnosticSink& sink_;
  std::unordered_map<const Expr*, const Subscript*> evaluated_;
  std::array<std::vector<OwnElement>, 3> subscripts_;
  std::array<const Expr*, 3> axisUses_{};  ///< the first position along each axis
  std::array<bool, 3> missing_{};          ///< axes of the domain that no subscript gives
  std::vector<const Expr*> stored_;        ///< `let`s of Variable::isStoredValue
  std::vector<const Expr*> returns_;       ///< of the kernel itself
  std::set<Type> unfilled_;                ///< results that the domain does not fill
  const Expr* position_ = nullptr;
  const Expr* bareGlobalId_ = nullptr;
  uint32_t callDepth_ = 0;
};

}  // namespace

std::set<const Expr*> inferGrid(Function& kernel, const Graph& graph, LaunchGrids launchGrids,
                                diag::DiagnosticSink& sink) {
  GridInference inference(kernel, graph, launchGrids, sink);
  inference.run();
  return inference.ownElements();
}

}  // namespace vortex::lang::flow
