#include "lang/flow/race/walk.h"

#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "lang/flow/race/evaluator.h"

namespace vortex::lang::flow {
namespace {

/// One access of an element that happened.
struct Touch {
  StepId step = kNoStep;
  Axes thread{}, block{};
  int64_t linear = 0, linearBlock = 0;
  uint32_t epoch = 0, warpEpoch = 0;
  bool writes = false, isAtomic = false, isBlockCode = false, isShared = false;
  bool isCopy = false;  ///< under way until the next barrier
  std::vector<uint32_t> fields;
};

struct ElementHash {
  size_t operator()(const std::vector<int64_t>& key) const {
    uint64_t hash = 0;
    for (int64_t part : key)
      hash = (hash ^ static_cast<uint64_t>(part)) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 32);
  }
};
/// By element and epoch; of threads of different blocks by barriers of the grid, as negative numbers.
using TouchMap = std::unordered_map<std::vector<int64_t>, std::vector<Touch>, ElementHash>;

bool startsWith(const std::vector<uint32_t>& longer, const std::vector<uint32_t>& shorter) {
  return shorter.size() <= longer.size() && std::equal(shorter.begin(), shorter.end(), longer.begin());
}

constexpr size_t kComparisonsOfStep = 4;  ///< that cost as much as a step

class Walk {
public:
  /// `loop`: its iterations are the threads of one that walks.
  Walk(const Graph& graph, const SampleLaunch& launch, LoopId loop, const std::vector<bool>& wanted, uint64_t& budget,
       Meetings& meetings)
      : graph_(graph), launch_(launch), loop_(loop), wanted_(wanted), evaluate_(graph, launch), budget_(budget),
        meetings_(meetings) {
    for (uint32_t s = 0; s < graph.stepCount(); ++s) {
      const ValueId value = graph[StepId{s}].value;
      const bool isMade = value != kNoValue && graph.definition(value) != kNoStep;
      made_.push_back(isMade ? graph.values.resolved(value) : kNoValue);
    }
  }

  void run() {
    for (int64_t b = 0; b < launch_.blocks(); ++b) {
      touchedInBlock_.clear();
      for (int64_t t = 0; t < launch_.threads() && budget_ > 0; ++t)
        walkThread(b, t);
    }
  }

private:
  static Axes axes(int64_t linear, const Axes& sizes) {
    return {linear % sizes[0], linear / sizes[0] % sizes[1], linear / sizes[0] / sizes[1]};
  }

  void walkThread(int64_t linearBlock, int64_t linear) {
    evaluate_.start(axes(linearBlock, launch_.grid), axes(linear, launch_.block));
    linear_ = linear;
    linearBlock_ = linearBlock;
    epoch_ = warpEpoch_ = gridEpoch_ = 0;
    BlockId at{0};
    while (budget_ > 0) {
      const std::optional<size_t> next = walkBlock(at);
      if (!next)
        return;
      const BlockId to = graph_[at].successors[*next];
      enter(at, to);
      at = to;
    }
  }

  void enter(BlockId from, BlockId to) {
    const Block& block = graph_[to];
    if (loop_ != kNoLoop && graph_[loop_].header == to)
      enterIteration(graph_.isInside(from, loop_));
    const auto edge = static_cast<size_t>(std::find(block.predecessors.begin(), block.predecessors.end(), from) -
                                          block.predecessors.begin());
    std::vector<Number> numbers;
    for (ValueId phi : block.phis)
      numbers.push_back(evaluate_(graph_.values.phiOperands(phi)[edge]));
    for (size_t i = 0; i < numbers.size(); ++i)
      evaluate_.set(block.phis[i], numbers[i]);
  }

  void enterIteration(bool isNext) {
    linear_ = isNext ? linear_ + 1 : 0;
    if (!isNext)
      touchedInBlock_.clear();
  }

  /// The successor to go on with; nothing where the thread ends.
  std::optional<size_t> walkBlock(BlockId id) {
    for (uint32_t s = indexOf(graph_[id].begin); s < indexOf(graph_[id].end); ++s) {
      const StepId stepId{s};
      const Step& step = graph_[stepId];
      if (--budget_ == 0)
        return std::nullopt;
      if (wanted_[s])
        for (const Access& access : graph_.accessesOf(step))
          touch(step, access);
      if (endsAtBarrier(step))
        ++epoch_;
      gridEpoch_ += isGridBarrier(step);
      switch (step.kind) {
      case StepKind::WarpBarrier: ++warpEpoch_; break;
      case StepKind::Item: item(step, id); break;
      case StepKind::Assert:
        if (const Number holds = evaluate_(graph_.uses(step).front()); !holds || *holds == 0)
          return std::nullopt;
        break;
      case StepKind::Jump: return 0;
      case StepKind::Branch:
        if (const Number condition = evaluate_(step.value))
          return *condition != 0 ? 0 : 1;
        return std::nullopt;
      case StepKind::Return: return std::nullopt;
      default:
        // What a step makes is another number each time it runs, and never known.
        if (made_[s] != kNoValue)
          evaluate_.set(made_[s], std::nullopt);
        break;
      }
    }
    return std::nullopt;
  }

  void item(const Step& step, BlockId block) {
    const Number at = evaluate_(graph_.uses(step).front());
    const Expr* list = nullptr;
    for (LoopId loop = graph_[block].loop; loop != kNoLoop && !list; loop = graph_[loop].parent)
      if (const auto& counter = graph_[loop].counter; counter && counter->value == step.value)
        list = counter->list;
    const bool isInside = list && at && *at >= 0 && *at < static_cast<__int128>(list->intList.size());
    evaluate_.set(graph_.values.resolved(step.value),
                  isInside ? Number(list->intList[static_cast<size_t>(*at)]) : std::nullopt);
  }

  //===-- accesses ------------------------------------------------------------------------------------------------===//
  void touch(const Step& step, const Access& access) {
    const Place& place = graph_[access.place];
    const Storage storage = place.storage;
    if (place.isUnknown() || !isSharedStorage(storage) || (storage == Storage::Constant))
      return;
    const LoopId declaredIn = graph_[place.root].loop;
    if (loop_ != kNoLoop && declaredIn != kNoLoop && graph_.isInside(declaredIn, loop_))
      return;  // each iteration has its own
    // A copy waits for earlier accesses of its destination by itself; who reads it too early is told by the check of copies.
    if (step.kind == StepKind::Stage && access.mode == AccessMode::Write)
      return;
    Touch touch;
    touch.step = access.step;
    touch.thread = evaluate_.thread();
    touch.block = evaluate_.block();
    touch.linear = linear_;
    touch.linearBlock = linearBlock_;
    touch.epoch = epoch_;
    touch.warpEpoch = warpEpoch_;
    touch.writes = access.mode != AccessMode::Read && !isAtomicLoad(step);
    touch.isAtomic = access.mode == AccessMode::Update;
    touch.isBlockCode =
        loop_ == kNoLoop && (step.level == Level::Block || step.kind == StepKind::Stage || step.kind == StepKind::Tile);
    if (loop_ != kNoLoop) {
      const Number counter = evaluate_(graph_[loop_].counter->value);
      if (!counter || *counter < INT64_MIN || *counter > INT64_MAX)
        return;
      touch.thread = {static_cast<int64_t>(*counter), 0, 0};
    }
    touch.isCopy = step.kind == StepKind::Stage;
    touch.isShared = storage == Storage::Shared;
    visit(place, touch);
  }

  /// Records the touch for every element of the place.
  void visit(const Place& place, Touch& touch) {
    std::vector<int64_t>& key = key_;
    key.assign(1, static_cast<int64_t>(indexOf(place.root)));
    Type type = stripRef(graph_[place.root].type);
    size_t at = 0;
    for (; at < place.path.size() && !type->isTensor(); ++at) {
      const Projection& projection = place.path[at];
      if (projection.kind == ProjectionKind::Field) {
        key.push_back(projection.field);
        type = stripRef(type->elems[projection.field]);
      } else if (projection.kind == ProjectionKind::Slot && type->kind == TypeKind::Array) {
        const Number slot = evaluate_(projection.index);
        if (!slot || *slot < 0 || *slot >= static_cast<__int128>(type->count))
          return;
        key.push_back(static_cast<int64_t>(*slot));
        type = stripRef(type->elem);
      } else {
        return;
      }
    }
    if (!type->isTensor())
      return;
    const size_t epoch = key.size();
    key.push_back(0);
    std::vector<Window>& windows = windows_;
    windows.clear();
    for (const DimExpr& extent : type->shape) {
      const std::optional<int64_t>& number = extentOf(extent);
      if (!number)
        return;
      windows.push_back({0, *number, false});
    }
    if (!narrow(place, at, windows, touch))
      return;
    expand(windows, key, epoch, touch);
  }

  /// Of a shape of some type.
  const std::optional<int64_t>& extentOf(const DimExpr& extent) {
    const auto [known, isNew] = extents_.try_emplace(&extent);
    if (isNew)
      known->second = evaluateDim(extent, launch_.dims);
    return known->second;
  }

  struct Window {
    int64_t begin = 0, end = 0;
    bool isIndex = false;
  };

  /// False: nothing is touched, or it is not known what.
  bool narrow(const Place& place, size_t at, std::vector<Window>& windows, Touch& touch) {
    for (; at < place.path.size(); ++at) {
      const Projection& projection = place.path[at];
      if (projection.kind == ProjectionKind::Field) {
        touch.fields.push_back(projection.field);
        continue;
      }
      if (projection.kind == ProjectionKind::Slot) {
        const Number slot = evaluate_(projection.index);
        if (!slot)
          return false;
        touch.fields.push_back(static_cast<uint32_t>(*slot));
        continue;
      }
      size_t dim = 0;
      for (const DimRange& range : projection.dims) {
        while (dim < windows.size() && windows[dim].isIndex)
          ++dim;
        if (dim == windows.size())
          return false;
        Window& window = windows[dim++];
        const Number begin = evaluate_(range.begin);
        const __int128 size = window.end - window.begin;
        if (!begin || *begin < 0 || *begin > size)
          return false;
        if (range.isIndex()) {
          if (*begin >= size)
            return false;
          window = {window.begin + static_cast<int64_t>(*begin), window.begin + static_cast<int64_t>(*begin) + 1, true};
          continue;
        }
        const Number end = evaluate_(range.end);
        if (!end)
          return false;
        const auto last = static_cast<int64_t>(std::min(*end, size));
        window = {window.begin + static_cast<int64_t>(*begin), std::max(window.begin + last, window.begin), false};
      }
    }
    return true;
  }

  /// `epoch`: the part of the key for it. Threads meet between two barriers only, so that they are looked up by it.
  void expand(const std::vector<Window>& windows, std::vector<int64_t>& key, size_t epoch, const Touch& touch) {
    const size_t first = key.size();
    int64_t count = 1;
    for (const Window& window : windows) {
      count *= std::max<int64_t>(window.end - window.begin, 0);
      if (count > 4096)
        return;
      key.push_back(window.begin);
    }
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i;
      for (size_t d = windows.size(); d-- > 0;) {
        const int64_t size = windows[d].end - windows[d].begin;
        key[first + d] = windows[d].begin + rest % size;
        rest /= size;
      }
      key[epoch] = touch.epoch;
      record(touchedInBlock_[key], key, first, touch);
      key[epoch] = -1 - int64_t(gridEpoch_);
      if (!touch.isShared && loop_ == kNoLoop)
        record(touched_[key], key, first, touch);
    }
  }

  void record(std::vector<Touch>& touches, const std::vector<int64_t>& key, size_t firstIndex, const Touch& touch) {
    size_t same = 0;
    for (const Touch& earlier : touches) {
      if (conflict(earlier, touch))
        report(earlier, touch, key, firstIndex);
      same += earlier.step == touch.step && earlier.linearBlock == touch.linearBlock && earlier.writes == touch.writes;
    }
    if (same < 3)
      touches.push_back(touch);
    // Hundreds of statements that touch one element are compared with each other.
    budget_ -= std::min<uint64_t>(touches.size() / kComparisonsOfStep, budget_ - 1);
  }

  static bool conflict(const Touch& a, const Touch& b) {
    if ((!a.writes && !b.writes) || !(startsWith(a.fields, b.fields) || startsWith(b.fields, a.fields)))
      return false;
    return a.linearBlock != b.linearBlock || isWithinCopy(a, b) || areUnordered(a, b);
  }

  /// `b` came later.
  static bool isWithinCopy(const Touch& a, const Touch& b) {
    return a.linearBlock == b.linearBlock && a.linear == b.linear && a.epoch == b.epoch && a.isCopy && b.isBlockCode &&
           b.writes;
  }

  /// Of one block.
  static bool areUnordered(const Touch& a, const Touch& b) {
    if (a.linear == b.linear || a.epoch != b.epoch || (a.isBlockCode && b.isBlockCode))
      return false;
    return a.linear / 32 != b.linear / 32 || a.warpEpoch == b.warpEpoch;
  }

  void report(const Touch& a, const Touch& b, const std::vector<int64_t>& key, size_t firstIndex) {
    const bool acrossBlocks = a.linearBlock != b.linearBlock;
    if (a.isAtomic && b.isAtomic &&
        !(acrossBlocks && (isOfBlockScope(graph_[a.step]) || isOfBlockScope(graph_[b.step]))))
      return;
    const bool swap = indexOf(a.step) > indexOf(b.step);
    const Touch &first = swap ? b : a, &second = swap ? a : b;
    auto [found, isNew] = meetings_.try_emplace({first.step, second.step});
    if (!isNew)
      return;
    Meeting& meeting = found->second;
    meeting = {first.step,
               second.step,
               first.writes,
               second.writes,
               first.thread,
               second.thread,
               first.block,
               second.block,
               acrossBlocks,
               isWithinCopy(a, b),
               element(first, key, firstIndex),
               launch_.describe(*graph_.function),
               launch_};
  }

  /// "`parts[1].mass[4]`": what leads to the tensor stands in the key before the epoch, what is taken of its element in the touch.
  std::string element(const Touch& touch, const std::vector<int64_t>& key, size_t firstIndex) const {
    const Local& root = graph_.locals[static_cast<size_t>(key[0])];
    std::string name = root.variable ? root.variable->name : "the result";
    Type type = stripRef(root.type);
    for (size_t i = 1; i + 1 < firstIndex; ++i)
      name += part(type, key[i]);
    std::vector<std::string> indices;
    for (size_t i = firstIndex; i < key.size(); ++i)
      indices.push_back(std::to_string(key[i]));
    name += "[" + base::join(indices, ", ") + "]";
    type = type && type->isTensor() ? stripRef(type->elem) : nullptr;
    for (uint32_t field : touch.fields)
      name += part(type, field);
    return "`" + name + "`";
  }

  /// A field or an element; `type` becomes its type.
  static std::string part(Type& type, int64_t number) {
    const Type of = type;
    const auto index = static_cast<size_t>(number);
    const bool isArray = !of || of->kind == TypeKind::Array;
    type = !of                        ? nullptr
           : isArray                  ? stripRef(of->elem)
           : index < of->elems.size() ? stripRef(of->elems[index])
                                      : nullptr;
    if (isArray)
      return base::concat("[", number, "]");
    const bool isNamed = of->kind == TypeKind::Struct && index < of->decl->fields.size();
    return base::concat(".", isNamed ? of->decl->fields[index] : std::to_string(number));
  }

  const Graph& graph_;
  const SampleLaunch& launch_;
  const LoopId loop_;
  const std::vector<bool>& wanted_;
  Evaluator evaluate_;
  std::vector<ValueId> made_;  ///< by each step
  uint64_t& budget_;
  Meetings& meetings_;
  TouchMap touched_, touchedInBlock_;
  std::unordered_map<const DimExpr*, std::optional<int64_t>> extents_;
  std::vector<int64_t> key_;  // of the access at hand, as are its windows: kept for their memory
  std::vector<Window> windows_;
  int64_t linear_ = 0, linearBlock_ = 0;
  uint32_t epoch_ = 0, warpEpoch_ = 0, gridEpoch_ = 0;
};

}  // namespace

bool isAtomicLoad(const Step& step) {
  return step.kind == StepKind::Atomic && step.origin && step.origin->builtin == Builtin::AtomicLoad;
}

bool isOfBlockScope(const Step& step) {
  return step.kind == StepKind::Atomic && step.origin && step.origin->ints.size() > 1 && step.origin->ints[1] == 0;
}

void walkLaunch(const Graph& graph, const SampleLaunch& launch, const std::vector<bool>& wanted, uint64_t& budget,
                Meetings& meetings) {
  Walk(graph, launch, kNoLoop, wanted, budget, meetings).run();
}

void walkIterations(const Graph& graph, const SampleLaunch& launch, LoopId loop, uint64_t& budget, Meetings& meetings) {
  std::vector<bool> wanted(graph.stepCount());
  for (uint32_t s = 0; s < graph.stepCount(); ++s)
    wanted[s] = graph.isInside(graph.blockOf(StepId{s}), loop);
  Walk(graph, launch, loop, wanted, budget, meetings).run();
}

}  // namespace vortex::lang::flow
