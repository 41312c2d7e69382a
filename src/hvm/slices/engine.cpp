#include "hvm/slices/engine.h"

#include "hvm/frontier/net.h"
#include "hvm/slices/words.h"

#include <algorithm>
#include <utility>

namespace vortex::hvm::slices {
namespace {

/// Tasks and waiting stacks of a block.
constexpr uint64_t kTasks = 4096, kLogged = 16384;
constexpr uint64_t kCpuWords = uint64_t(1) << 21, kGpuWords = uint64_t(1) << 30;
constexpr uint64_t kPageWords = 4096;
/// A run may be narrow for so many slices before it is given back.
constexpr unsigned kNarrowSlices = 16;
/// Of a slice: a short one, while tasks become more, and a long one. A lane looks at its room `fuel` times in a phase; a
/// slice has a quarter of `phases`, or more if they end early.
struct Length {
  uint32_t phases, fuel;
};
constexpr Length kLengths[] = {{8, 16}, {32, 64}};

}  // namespace

Loc Image::allocate(uint64_t count) {
  const uint32_t column = column_;
  column_ = (column_ + 1) % kStride;
  const Loc loc = next_[column];
  next_[column] += count * kStride;
  if (words_.size() < next_[column])
    words_.resize(next_[column]);
  return loc;
}

Result<std::unique_ptr<Engine>> Engine::create(const Tables& tables, const Image& image, const std::vector<Loc>& cells,
                                               const SliceOptions& options) {
  Report unused, &report = options.report ? *options.report : unused;
  Clock clock;
  std::optional<Session>& session = *options.session;
  if (!session) {
    Result<Workspace> workspace = Workspace::open(options.device);
    if (!workspace)
      return workspace.takeError();
    report.open += clock.lap();
    Result<Kernels> kernels = loadKernels(workspace->device);
    if (!kernels)
      return kernels.takeError();
    report.load += clock.lap();
    session.emplace(Session{*std::move(workspace), *std::move(kernels)});
  }
  std::unique_ptr<Engine> engine(new Engine(tables, options, *session));
  Result<void> done = engine->prepare(image, cells);
  if (done)
    done = engine->workspace_.stream.synchronize();
  if (!done)
    return done.takeError();
  report.fill += clock.lap();
  return engine;
}

/// Nine numbers, the sizes of the parts, and the parts.
Result<void> Engine::writeStart(const Image& image, const std::vector<Loc>& cells,
                                const std::array<std::vector<uint64_t>, 2>& begins,
                                const std::array<std::vector<uint64_t>, 2>& ends) const {
  std::vector<uint64_t> words = {options_.blocks,
                                 options_.blocks * uint64_t(kThreads),
                                 cells_,
                                 options_.blocks * kTasks,
                                 options_.blocks * kLogged,
                                 tables_.margin * kStride,
                                 tables_.forks && options_.forks,
                                 tables_.discards,
                                 tables_.native};
  std::vector<std::vector<uint64_t>> parts = {image.words()};
  auto add = [&](const auto& values) { parts.emplace_back(values.begin(), values.end()); };
  add(tables_.ops), add(tables_.opWords), add(tables_.items), add(tables_.entries), add(tables_.slots);
  add(tables_.roots), add(tables_.rows);
  add(begins[0]), add(ends[0]), add(begins[1]), add(ends[1]), add(std::vector<uint64_t>{cells[0]});
  for (const auto& part : parts)
    words.push_back(part.size());
  for (const auto& part : parts)
    words.insert(words.end(), part.begin(), part.end());
  return frontier::writeNumbers(words, options_.file);
}

Result<void> Engine::prepare(const Image& image, const std::vector<Loc>& cells) {
  // A lane has room for several steps at least, the heap for two halves, and half of the device is left for others.
  const uint64_t leastWords = 4 * tables_.margin, deviceWords = workspace_.device.memoryBytes() / sizeof(Term) / 4;
  const uint64_t mostBlocks = std::max<uint64_t>(deviceWords / (leastWords * kThreads), 1);
  options_.blocks = static_cast<uint32_t>(std::min<uint64_t>(options_.blocks, mostBlocks));
  const uint64_t blocks = options_.blocks, lanes = blocks * kThreads, warp = kStride;
  const uint64_t imported = (image.words().size() + warp - 1) / warp * warp;
  const uint64_t wanted = options_.device == "cpu" ? kCpuWords : kGpuWords;
  const uint64_t allowed = std::min(options_.memoryBytes / 4 / sizeof(Term), deviceWords);
  uint64_t laneWords = std::max(std::min(wanted, allowed) / lanes, leastWords);
  const auto heapOf = [&](uint64_t words) { return makeHeap(imported + 2 * lanes * words); };
  Result<void> done = heapOf(laneWords);
  for (; !done && laneWords > leastWords; done = heapOf(laneWords))  // others use the device, too
    laneWords = std::max(laneWords / 2, leastWords);
  if (!done)
    return done;
  fresh_ = cells_;
  Result<Tensor> part = heap_.slice(0, 0, static_cast<int64_t>(image.words().size()));
  if (!part)
    return part.takeError();
  done = workspace_.stream.write(*part, image.words().data(), image.words().size() * sizeof(Term));
  std::array<std::vector<uint64_t>, 2> begins, ends;
  for (size_t half = 0; half < 2; ++half)
    for (uint64_t lane = 0; lane < lanes; ++lane) {
      const uint64_t first = imported + (half * lanes + lane / warp * warp) * laneWords;
      begins[half].push_back(first + lane % warp), ends[half].push_back(first + warp * laneWords);
    }
  if (!options_.file.empty())
    if (Result<void> done = writeStart(image, cells, begins, ends); !done)
      return done;
  const auto copy = [&](Tensor& tensor, const auto& values, uint64_t elements = 0) {
    if (done)
      done = workspace_.copy(tensor, values, elements);
  };
  const auto clear = [&](Tensor& tensor, DType type, uint64_t elements) {
    if (done)
      done = workspace_.fill(tensor, type, elements);
  };
  copy(ops_, tables_.ops), copy(opWords_, tables_.opWords), copy(items_, tables_.items);
  copy(entries_, tables_.entries), copy(slots_, tables_.slots), copy(roots_, tables_.roots), copy(rows_, tables_.rows);
  copy(next_, begins[0]), copy(end_, ends[0]), copy(exports_, cells);
  for (size_t half = 0; half < 2; ++half)
    copy(begins_[half], begins[half]), copy(ends_[half], ends[half]);
  clear(logged_, DType::U32, blocks), clear(report_, DType::U64, kReport);
  if (done)
    done = workspace_.make(log_, DType::U64, blocks * kLogged);
  for (size_t i = 0; i < queues_.size(); ++i) {
    Queue& queue = queues_[i];
    copy(queue.tasks, std::vector<uint64_t>{makeTerm(Fut, 1, cells[0])}, blocks * kTasks);
    copy(queue.counts, std::vector<uint32_t>{i == 0}, blocks), clear(queue.heads, DType::U32, blocks);
  }
  return done ? prepareSlices() : done;
}

/// That of the run before, if it has the same size.
Result<void> Engine::makeHeap(uint64_t cells) {
  cells_ = cells;
  if (session_.cells != cells) {
    session_.heap = {}, session_.cells = 0;
    if (Result<void> done = workspace_.make(session_.heap, DType::U64, cells); !done)
      return done;
    session_.cells = cells;
  }
  heap_ = session_.heap;
  return {};
}

std::vector<Argument> Engine::netArguments() const {
  return {heap_,
          ops_,
          opWords_,
          items_,
          entries_,
          slots_,
          roots_,
          rows_,
          log_,
          logged_,
          next_,
          end_,
          report_,
          static_cast<uint32_t>(tables_.margin * kStride),
          static_cast<uint32_t>(tables_.forks && options_.forks),
          static_cast<uint32_t>(tables_.discards),
          tables_.native};
}

/// A kernel that works on the net.
Result<PreparedLaunch> Engine::onNet(const Kernel& kernel, const std::vector<Argument>& more) const {
  std::vector<Argument> arguments = netArguments();
  arguments.insert(arguments.end(), more.begin(), more.end());
  return workspace_.stream.prepare(kernel, arguments);
}

/// The launches of every slice.
Result<void> Engine::prepareSlices() {
  const auto turn = static_cast<uint32_t>(options_.seed % options_.blocks);
  for (size_t full = 0; full < 2; ++full) {
    const Queue &queue = queues_[full], &to = queues_[1 - full];
    for (const Length& length : kLengths) {
      auto reduce =
          onNet(session_.kernels.reduce, {queue.tasks, queue.heads, queue.counts, length.phases, length.fuel, turn});
      if (!reduce)
        return reduce.takeError();
      reduce_[full].push_back(*std::move(reduce));
    }
    auto spread =
        onNet(session_.kernels.spread, {queue.tasks, queue.heads, queue.counts, to.tasks, to.heads, to.counts});
    if (!spread)
      return spread.takeError();
    spread_.push_back(*std::move(spread));
  }
  return {};
}

Result<void> Engine::reduce(bool isShort) {
  ++slices_;
  return workspace_.stream.submit(reduce_[full_][isShort ? 0 : 1]);
}

Result<void> Engine::spread() {
  const PreparedLaunch& launch = spread_[full_];
  full_ = 1 - full_;
  return workspace_.stream.submit(launch);
}

Result<void> Engine::tidy() {
  auto launch = onNet(session_.kernels.tidy, {begins_[half_]});
  return launch ? workspace_.stream.submit(*launch) : Result<void>(launch.takeError());
}

/// To the other half of the heap.
Result<void> Engine::collect() {
  half_ = 1 - half_;
  ++collections_;
  const Queue& queue = queues_[full_];
  auto launch =
      onNet(session_.kernels.collect, {queue.tasks, queue.heads, queue.counts, exports_, begins_[half_], ends_[half_]});
  return launch ? workspace_.stream.submit(*launch) : Result<void>(launch.takeError());
}

Result<std::vector<uint64_t>> Engine::takeReport() {
  auto report = workspace_.stream.read<uint64_t>(report_);
  if (report)
    if (Result<void> done = workspace_.stream.fill(report_.buffer, 0, kReport * sizeof(uint64_t), 0); !done)
      return done.takeError();
  return report;
}

template <typename T> std::vector<T> Engine::read(const Tensor& tensor, uint64_t first, uint64_t count) {
  Result<std::vector<T>> values = workspace_.read<T>(tensor, first, count);
  if (values)
    return *std::move(values);
  state_ = values.takeError();
  return {};
}

Result<bool> Engine::run() {
  Clock clock;
  Result<bool> done = runSlices();
  if (options_.report) {
    options_.report->slices += slices_, options_.report->collections += collections_;
    options_.report->reduce += clock.lap();
  }
  return done;
}

Result<bool> Engine::runSlices() {
  unsigned narrow = 0;
  uint64_t before = 0, widest = 0;
  bool isShort = true;
  uint64_t collectedAt = ~uint64_t(0);
  for (;;) {
    if (Result<void> done = reduce(isShort); !done)
      return done.takeError();
    Result<std::vector<uint64_t>> report = takeReport();
    if (!report)
      return report.takeError();
    const uint64_t flags = (*report)[kFlags], width = (*report)[kWidth];
    interactions_ += (*report)[kFired];
    if (interactions_ > options_.fuel || (flags & kDiscard))
      return false;
    narrow = width < options_.leastWidth ? narrow + 1 : 0;
    isWide_ = width >= options_.enoughWidth;
    if (width == 0 || narrow > kNarrowSlices || isWide_)
      break;
    if (flags & (kCollect | kTidy))
      if (Result<void> done = tidy(); !done)
        return done.takeError();
    if (flags & kCollect) {
      // Nothing was reduced since the last one: what lives fills the heap.
      if (collectedAt == interactions_)
        break;
      collectedAt = interactions_;
      if (Result<void> done = collect(); !done)
        return done.takeError();
      report = takeReport();
      if (!report)
        return report.takeError();
      if ((*report)[kFlags] & kStopped)
        break;
    }
    // Tasks that become more are for blocks that have none yet. A run that was never wide is about to end.
    isShort = width > before + before / 2 || (narrow > 0 && widest < options_.leastWidth);
    before = width, widest = std::max(widest, width);
    if (options_.blocks > 1)
      if (Result<void> done = spread(); !done)
        return done.takeError();
  }
  if (Result<void> done = tidy(); !done)
    return done.takeError();
  Result<std::vector<uint64_t>> report = takeReport();
  if (!report)
    return report.takeError();
  usedWords_ = (*report)[kUsed];
  return true;
}

Term Engine::raw(Loc loc) {
  if (!written_.empty())
    if (const auto found = written_.find(loc); found != written_.end())
      return found->second;
  const uint64_t number = loc / kPageWords, first = number * kPageWords;
  if (!page_ || number != pageNumber_)
    page_ = &pages_[number], pageNumber_ = number;
  if (page_->empty()) {
    const uint64_t count = std::min(kPageWords, cells_ - first);
    *page_ = read<Term>(heap_, first, count);
    page_->resize(count);
  }
  return (*page_)[loc - first];
}

Loc Engine::placeOf(Loc loc) {
  const Term first = raw(loc);
  return static_cast<uint32_t>(tagOf(first)) == kMoved ? locOf(first) : loc;
}

Term Engine::word(Loc loc, uint64_t i) { return raw(placeOf(loc) + i * kStride); }

Loc Engine::allocate(uint64_t count) {
  const Loc loc = fresh_;
  fresh_ += count * kStride;
  return loc;
}

std::vector<Loc> Engine::stacks() {
  std::vector<Loc> out;
  const Queue& queue = queues_[full_];
  const std::vector<uint32_t> logged = read<uint32_t>(logged_), heads = read<uint32_t>(queue.heads),
                              counts = read<uint32_t>(queue.counts);
  for (uint64_t block = 0; block < options_.blocks && state_; ++block) {
    if (logged[block])
      for (const Term stack : read<Term>(log_, block * kLogged, logged[block]))
        out.push_back(locOf(stack));
    const std::vector<Term> tasks =
        counts[block] ? read<Term>(queue.tasks, block * kTasks, kTasks) : std::vector<Term>();
    for (uint64_t i = 0; i < counts[block] && state_; ++i)
      if (const Term task = tasks[(heads[block] + i) % kTasks]; static_cast<uint32_t>(tagOf(task)) == kResume)
        out.push_back(locOf(task));
  }
  return out;
}

}  // namespace vortex::hvm::slices
