#include "lang/flow/check/shared_bytes.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "lang/flow/solve/solve.h"
#include "lang/sema/byte_sizes.h"
#include "lang/sema/element.h"
#include "layout/byte_ranges.h"
#include "layout/shared_tensor.h"

namespace vortex::lang::flow {
namespace {

struct Lifetime {
  LocalId tensor = kNoLocal;
  StepId begin = kNoStep, last = kNoStep;
};

/// One of them for each scalar of the elements.
struct Piece {
  int64_t offset = 0, bytes = 0;
  bool overlaps(const Piece& other) const {
    return offset < other.offset + other.bytes && other.offset < offset + bytes;
  }
};

bool hasKnownSize(Type type) {
  const Type tensor = type->kind == TypeKind::Array ? type->elem : type;
  return std::all_of(tensor->shape.begin(), tensor->shape.end(),
                     [](const DimExpr& extent) { return extent.asConstant().has_value(); });
}

/// Sizes above what any block has (E0553) only have to stay that.
int64_t limited(base::WideBytes bytes) {
  return static_cast<int64_t>(std::min<base::WideBytes>(bytes, base::kMostSharedBytes * 2));
}

/// `slots`: that there are of each.
std::vector<layout::SharedTensor> sizesOf(Type type, uint64_t slots) {
  const uint64_t count = (type->kind == TypeKind::Array ? type->count : 1) * slots;
  const Type tensor = type->kind == TypeKind::Array ? type->elem : type;
  std::vector<int64_t> shape;
  base::WideBytes elements = count;
  for (const DimExpr& extent : tensor->shape) {
    shape.push_back(extent.asConstant().value_or(1));
    elements = std::min<base::WideBytes>(elements * static_cast<uint64_t>(std::max<int64_t>(shape.back(), 0)),
                                         base::kMostSharedBytes);
  }
  std::vector<layout::SharedTensor> sizes;
  for (const ElementLeaf& leaf : elementLayout(tensor->elem).leaves) {
    const uint32_t bytes = (bitWidth(leaf.scalar) + 7) / 8;
    layout::XorSwizzle swizzle;
    if (tensor->layout == SharedLayout::BankConflictFree && elements * bytes < base::kMostSharedBytes)
      swizzle = layout::solveTileSwizzle(shape, bytes);
    sizes.push_back(layout::sharedTensor(limited(elements), bytes, swizzle));
  }
  return sizes;
}

/// In the order of their declarations.
class Planner {
public:
  explicit Planner(Graph& graph) : graph_(graph) {}

  SharedPlan run() {
    findLifetimes();
    if (lifetimes_.empty())
      return {};
    findPlaces();
    if (graph_.function->kernel->gridKind != GridKind::WholeTensor)  // there the block's code runs in order
      placeBarriers();
    return std::move(plan_);
  }

private:
  //===-- lifetimes -------------------------------------------------------------------------------------------------===//
  void findLifetimes() {
    std::map<LocalId, size_t> found;
    for (uint32_t s = 0; s < graph_.stepCount(); ++s) {
      const Step& step = graph_[StepId{s}];
      if (step.kind != StepKind::Declare)
        continue;
      const LocalId root = graph_[step.place].root;
      if (!graph_[root].variable || graph_[root].storage != Storage::Shared)
        continue;
      found[root] = lifetimes_.size();
      lifetimes_.push_back({root, StepId{s}, StepId{s}});
    }
    for (const Access& access : graph_.accesses)
      for (LocalId root : rootsOf(access))
        if (const auto it = found.find(root); it != found.end()) {
          Lifetime& lifetime = lifetimes_[it->second];
          lifetime.last = std::max(lifetime.last, lastOf(access.step, lifetime.begin));
        }
  }

  /// Of a tensor that a loop stages which runs its copies ahead.
  uint64_t slotsOf(LocalId tensor) const {
    uint64_t slots = 1;
    for (const Access& access : graph_.accesses) {
      const LoopId loop = graph_[graph_.blockOf(access.step)].loop;
      const bool isFilled = graph_[access.step].kind == StepKind::Stage && access.mode == AccessMode::Write &&
                            std::ranges::count(rootsOf(access), tensor) > 0;
      if (isFilled && loop != kNoLoop && graph_[loop].origin)
        slots = std::max<uint64_t>(slots, graph_[loop].origin->pipelineStages);
    }
    return slots;
  }

  std::span<const LocalId> rootsOf(const Access& access) const { return graph_[access.place].roots(); }

  /// The step, or the end of the outermost loop around it that the tensor is declared outside of.
  StepId lastOf(StepId step, StepId declared) const {
    StepId last = step;
    for (LoopId loop = graph_[graph_.blockOf(step)].loop; loop != kNoLoop; loop = graph_[loop].parent)
      if (!graph_.isInside(graph_.blockOf(declared), loop))
        last = StepId{indexOf(graph_[graph_[loop].last].end) - 1};
    return last;
  }

  bool isAlive(size_t tensor, StepId at) const {
    return lifetimes_[tensor].begin <= at && at <= lifetimes_[tensor].last;
  }

  //===-- places ----------------------------------------------------------------------------------------------------===//
  void findPlaces() {
    layout::ByteRanges ranges;
    pieces_.resize(lifetimes_.size());
    for (size_t i = 0; i < lifetimes_.size(); ++i) {
      const StepId now = lifetimes_[i].begin;
      for (size_t j = 0; j < i; ++j)
        if (!isFreed_.contains(j) && !isAlive(j, now)) {
          isFreed_.insert(j);
          for (const Piece& piece : pieces_[j])
            ranges.free(piece.offset);
        }
      const Type type = graph_[lifetimes_[i].tensor].type;
      hasUnknownSize_ |= !hasKnownSize(type);
      for (const auto& [bytes, alignment] : sizesOf(type, slotsOf(lifetimes_[i].tensor)))
        pieces_[i].push_back({ranges.allocate(bytes, alignment), std::max<int64_t>(bytes, 1)});
      if (ranges.peak() > plan_.bytes)
        noteLargest(now, ranges.peak());
    }
  }

  void noteLargest(StepId now, int64_t bytes) {
    plan_.bytes = bytes;
    plan_.largest.clear();
    for (size_t i = 0; i < lifetimes_.size(); ++i)
      if (isAlive(i, now))
        addLargest(lifetimes_[i].tensor);
  }

  void addLargest(LocalId tensor) {
    plan_.largest.push_back(graph_[tensor].variable);
    if (const uint64_t slots = slotsOf(tensor); slots > 1)
      plan_.slots[graph_[tensor].variable] = slots;
  }

  /// Of tensors that are not alive together, or of one with itself in another iteration.
  bool shareBytes(size_t a, size_t b) const {
    if (a != b && (isAlive(a, lifetimes_[b].begin) || isAlive(b, lifetimes_[a].begin)))
      return false;
    if (hasUnknownSize_)
      return true;
    for (const Piece& one : pieces_[a])
      for (const Piece& other : pieces_[b])
        if (one.overlaps(other))
          return true;
    return false;
  }

  //===-- barriers --------------------------------------------------------------------------------------------------===//
  /// Forward: the tensors that some thread may be at, by their number.
  struct Used {
    using State = std::set<size_t>;
    static constexpr Direction kDirection = Direction::Forward;

    State start() const { return {}; }
    void step(StepId id, const Step& step, State& state) const {
      if (isBlockBarrier(step))
        state.clear();
      if (const auto found = uses.find(id); found != uses.end())
        state.insert(found->second.begin(), found->second.end());
    }
    bool edge(BlockId, uint32_t, State&) const { return true; }
    void join(State& into, const State& other, bool) const { into.insert(other.begin(), other.end()); }

    const std::map<StepId, std::set<size_t>>& uses;
  };

  /// The first declaration that needs one, until none does: what is behind it may not need its own, then.
  void placeBarriers() {
    std::map<StepId, std::set<size_t>> uses;
    for (const Access& access : graph_.accesses)
      for (LocalId root : rootsOf(access))
        for (size_t i = 0; i < lifetimes_.size(); ++i)
          if (lifetimes_[i].tensor == root)
            uses[access.step].insert(i);
    for (bool isDone = false; !isDone;) {
      const auto solution = solve(graph_, Used{uses}, Contexts::plain(graph_));
      isDone = true;
      for (size_t i = 0; i < lifetimes_.size() && isDone; ++i) {
        const auto used = solution.before(pointOf(lifetimes_[i].begin));
        isDone = !used || !needsBarrier(i, *used);
      }
    }
  }

  bool needsBarrier(size_t tensor, const std::set<size_t>& used) {
    Step& declaration = graph_[lifetimes_[tensor].begin];
    if (isBlockBarrier(declaration) || !declaration.origin)
      return false;
    std::vector<const Variable*> before;
    for (size_t other : used)
      if (shareBytes(tensor, other))
        before.push_back(graph_[lifetimes_[other].tensor].variable);
    if (before.empty())
      return false;
    declaration.index = kAfterBarrier;
    plan_.barriers[declaration.origin] = std::move(before);
    return true;
  }

  Graph& graph_;
  SharedPlan plan_;
  std::vector<Lifetime> lifetimes_;
  std::vector<std::vector<Piece>> pieces_;
  std::set<size_t> isFreed_;
  bool hasUnknownSize_ = false;
};

}  // namespace

SharedPlan planShared(Graph& graph) { return Planner(graph).run(); }

void checkSharedBytes(const Function& kernel, const SharedPlan& plan, uint64_t limit, const std::string& target,
                      bool isAdvice, diag::DiagnosticSink& sink) {
  const auto needed = static_cast<uint64_t>(plan.bytes);
  if (needed <= limit || plan.largest.empty())
    return;
  std::vector<const Variable*> tensors = plan.largest;
  std::sort(tensors.begin(), tensors.end(), [](const Variable* a, const Variable* b) {
    return std::pair(bytesOf(b->type), a->index) < std::pair(bytesOf(a->type), b->index);
  });
  const bool runsOnCpu = isAdvice && needed <= base::kMostSharedBytes;
  std::string message = base::concat("`", kernel.name, "` needs ", needed, " bytes of shared memory, ", target, " has ",
                                     limit, " per block");
  if (isAdvice && !runsOnCpu)
    message += base::concat(" and the CPU ", base::kMostSharedBytes);
  auto builder = runsOnCpu ? sink.warning("W0552", tensors[0]->range, message + " and no GPU more")
                           : sink.error("E0552", tensors[0]->range, message);
  const auto describe = [&](const Variable* tensor) {
    const auto slots = plan.slots.find(tensor);
    return base::concat("`", tensor->name, "` takes ",
                        slots == plan.slots.end() ? "" : base::concat(slots->second, " times "),
                        base::showBytes(bytesOf(tensor->type)), " bytes");
  };
  builder.primary(describe(tensors[0]));
  for (size_t i = 1; i < tensors.size(); ++i)
    builder.label(tensors[i]->range, describe(tensors[i]));
  if (tensors.size() == 1)
    builder.label(kernel.nameRange, "in this kernel");
  builder.help("make the tiles smaller, or put tensors that are not needed together into blocks `{ … }` of their own");
}

}  // namespace vortex::lang::flow
