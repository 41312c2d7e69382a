#include "hvm/slices/engine.h"

#include "hvm/frontier/net.h"
#include "hvm/slices/words.h"

#include <algorithm>
#include <numeric>

namespace vortex::hvm::slices {
namespace {

/// Tasks and waiting stacks of a block.
constexpr uint64_t kTasks = 4096, kLogged = 16384;
constexpr uint64_t kCpuWords = uint64_t(1) << 21, kGpuWords = uint64_t(1) << 30;
constexpr uint64_t kPageWords = 4096;
/// A run may be narrow for so many slices before it is given back.
constexpr unsigned kNarrowSlices = 16;

}  // namespace

Loc Image::allocate(uint64_t count) {
  const uint32_t column = column_;
  column_ = (column_ + 1) % stride_;
  const Loc loc = next_[column];
  next_[column] += count * stride_;
  if (words_.size() < next_[column])
    words_.resize(next_[column]);
  return loc;
}

Result<Tensor> Engine::make(DType type, uint64_t elements, bool clears) {
  Result<Tensor> made = device_.empty(type, {static_cast<int64_t>(elements)});
  if (made && clears)
    if (Result<void> done = stream_.fill(made->buffer, 0, elements * byteSize(type), 0); !done)
      return done.takeError();
  return made;
}

template <typename T> Result<void> Engine::copy(Tensor& tensor, const std::vector<T>& values, uint64_t elements) {
  Result<Tensor> made = make(dtypeOf<T>(), std::max<uint64_t>(elements, values.size()), elements > values.size());
  if (!made)
    return made.takeError();
  tensor = *made;
  Result<Tensor> part = tensor.slice(0, 0, static_cast<int64_t>(values.size()));
  return part ? stream_.write(*part, values.data(), values.size() * sizeof(T)) : Result<void>(part.takeError());
}

Result<std::unique_ptr<Engine>> Engine::create(const Tables& tables, const Image& image, const std::vector<Loc>& cells,
                                               const SliceOptions& options) {
  Runtime runtime;
  Result<Device> device = runtime.open(options.device);
  if (!device)
    return device.takeError();
  Result<Stream> stream = device->createStream();
  if (!stream)
    return stream.takeError();
  std::unique_ptr<Engine> engine(new Engine(tables, image.stride(), options, *device, *stream));
  if (Result<void> done = engine->prepare(image, cells); !done)
    return done.takeError();
  return engine;
}

/// Ten numbers, the sizes of the parts, and the parts.
Result<void> Engine::writeStart(const Image& image, const std::vector<Loc>& cells,
                                const std::array<std::vector<uint64_t>, 2>& begins,
                                const std::array<std::vector<uint64_t>, 2>& ends) const {
  std::vector<uint64_t> words = {options_.blocks,
                                 options_.blocks * uint64_t(kThreads),
                                 cells_,
                                 options_.blocks * kTasks,
                                 options_.blocks * kLogged,
                                 stride_,
                                 tables_.margin * stride_,
                                 tables_.forks,
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
  Result<Kernels> kernels = loadKernels(device_);
  if (!kernels)
    return kernels.takeError();
  kernels_ = *kernels;
  // A lane has room for several steps at least, the heap for two halves, and half of the device is left for others.
  const uint64_t leastWords = 4 * tables_.margin, deviceWords = device_.memoryBytes() / sizeof(Term) / 4;
  const uint64_t mostBlocks = std::max<uint64_t>(deviceWords / (leastWords * kThreads), 1);
  options_.blocks = static_cast<uint32_t>(std::min<uint64_t>(options_.blocks, mostBlocks));
  const uint64_t blocks = options_.blocks, lanes = blocks * kThreads, warp = stride_;
  const uint64_t imported = (image.words().size() + warp - 1) / warp * warp;
  const uint64_t wanted = options_.device == "cpu" ? kCpuWords : kGpuWords;
  const uint64_t allowed = std::min(options_.memoryBytes / 4 / sizeof(Term), deviceWords);
  uint64_t laneWords = std::max(std::min(wanted, allowed) / lanes, leastWords);
  const auto makeHeap = [&] {
    cells_ = imported + 2 * lanes * laneWords;
    return make(DType::U64, cells_, false);
  };
  Result<Tensor> heap = makeHeap();
  for (; !heap && laneWords > leastWords; heap = makeHeap())  // others use the device, too
    laneWords = std::max(laneWords / 2, leastWords);
  fresh_ = cells_;
  if (!heap)
    return heap.takeError();
  heap_ = *heap;
  Result<Tensor> part = heap_.slice(0, 0, static_cast<int64_t>(image.words().size()));
  if (!part)
    return part.takeError();
  Result<void> done = stream_.write(*part, image.words().data(), image.words().size() * sizeof(Term));
  std::array<std::vector<uint64_t>, 2> begins, ends;
  for (size_t half = 0; half < 2; ++half)
    for (uint64_t lane = 0; lane < lanes; ++lane) {
      const uint64_t first = imported + (half * lanes + lane / warp * warp) * laneWords;
      begins[half].push_back(first + lane % warp), ends[half].push_back(first + warp * laneWords);
    }
  if (!options_.file.empty())
    if (Result<void> done = writeStart(image, cells, begins, ends); !done)
      return done;
  const auto also = [&](auto&& step) {
    if (done)
      done = step();
  };
  also([&] { return copy(ops_, tables_.ops); });
  also([&] { return copy(opWords_, tables_.opWords); });
  also([&] { return copy(items_, tables_.items); });
  also([&] { return copy(entries_, tables_.entries); });
  also([&] { return copy(slots_, tables_.slots); });
  also([&] { return copy(roots_, tables_.roots); });
  also([&] { return copy(rows_, tables_.rows); });
  also([&] { return copy(next_, begins[0]); });
  also([&] { return copy(end_, ends[0]); });
  for (size_t half = 0; half < 2; ++half) {
    also([&] { return copy(begins_[half], begins[half]); });
    also([&] { return copy(ends_[half], ends[half]); });
  }
  also([&] { return copy(exports_, cells); });
  also([&] { return copy(fired_, std::vector<uint64_t>(lanes)); });
  also([&] { return copy(log_, std::vector<uint64_t>(1), blocks * kLogged); });
  also([&] { return copy(logged_, std::vector<uint32_t>(blocks)); });
  also([&] { return copy(status_, std::vector<uint32_t>(1)); });
  for (size_t i = 0; i < queues_.size(); ++i) {
    std::vector<uint32_t> counts(blocks);
    counts[0] = i == 0;
    also([&] { return copy(queues_[i].tasks, std::vector<uint64_t>{makeTerm(Fut, 1, cells[0])}, blocks * kTasks); });
    also([&] { return copy(queues_[i].heads, std::vector<uint32_t>(blocks)); });
    also([&] { return copy(queues_[i].counts, counts); });
  }
  return done;
}

std::vector<Argument> Engine::netArguments() const {
  const Queue& queue = queues_[full_];
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
          fired_,
          status_,
          stride_,
          static_cast<uint32_t>(tables_.margin * stride_),
          static_cast<uint32_t>(tables_.forks),
          static_cast<uint32_t>(tables_.discards),
          tables_.native,
          queue.tasks,
          queue.heads,
          queue.counts};
}

Result<void> Engine::launch(const Kernel& kernel, const std::vector<Argument>& arguments) {
  auto launched = stream_.launch(kernel, arguments);
  return launched ? Result<void>() : Result<void>(launched.takeError());
}

Result<void> Engine::reduce(uint32_t phases, uint32_t fuel) {
  std::vector<Argument> arguments = netArguments();
  const auto turn = static_cast<uint32_t>(options_.seed % options_.blocks);
  arguments.insert(arguments.end(), {phases, fuel, turn});
  return launch(kernels_->reduce, arguments);
}

Result<void> Engine::spread() {
  const Queue &from = queues_[full_], &to = queues_[1 - full_];
  full_ = 1 - full_;
  return launch(kernels_->spread, {from.tasks, from.heads, from.counts, to.tasks, to.heads, to.counts});
}

/// To the other half of the heap.
Result<void> Engine::collect() {
  half_ = 1 - half_;
  ++collections_;
  if (Result<void> done = stream_.fill(status_.buffer, 0, sizeof(uint32_t), 0); !done)
    return done;
  std::vector<Argument> arguments = netArguments();
  arguments.insert(arguments.end(), {exports_, begins_[half_], ends_[half_]});
  return launch(kernels_->collect, arguments);
}

template <typename T> std::vector<T> Engine::read(const Tensor& tensor) {
  Result<std::vector<T>> values = stream_.read<T>(tensor);
  if (values)
    return *std::move(values);
  state_ = values.takeError();
  return {};
}

Result<bool> Engine::run() {
  const uint64_t lanes = options_.blocks * uint64_t(kThreads);
  unsigned narrow = 0;
  bool isWide = false;
  uint64_t collectedAt = ~uint64_t(0);
  for (;;) {
    // Short slices until every block has work.
    if (Result<void> done = reduce(isWide ? 32 : 2, isWide ? 256 : 64); !done)
      return done.takeError();
    const std::vector<uint32_t> counts = read<uint32_t>(queues_[full_].counts);
    std::vector<uint32_t> status = read<uint32_t>(status_);
    const std::vector<uint64_t> fired = read<uint64_t>(fired_);
    if (!state_)
      return state_.takeError();
    interactions_ = std::accumulate(fired.begin(), fired.end(), uint64_t(0));
    if (interactions_ > options_.fuel || (status[0] & kDiscard))
      return false;
    const uint64_t width = std::accumulate(counts.begin(), counts.end(), uint64_t(0));
    narrow = width < options_.leastWidth ? narrow + 1 : 0;
    if (width == 0 || narrow > kNarrowSlices)
      break;
    if (status[0] & kCollect) {
      // Nothing was reduced since the last one: what lives fills the heap.
      if (collectedAt == interactions_)
        break;
      collectedAt = interactions_;
      if (Result<void> done = collect(); !done)
        return done.takeError();
      status = read<uint32_t>(status_);
      if (!state_)
        return state_.takeError();
      if (status[0] & kStopped)
        break;
    }
    isWide = width >= lanes / 2;
    if (options_.blocks > 1)
      if (Result<void> done = spread(); !done)
        return done.takeError();
  }
  const std::vector<uint64_t> next = read<uint64_t>(next_), begin = read<uint64_t>(begins_[half_]);
  if (!state_)
    return state_.takeError();
  for (uint64_t lane = 0; lane < lanes; ++lane)
    usedWords_ += (next[lane] - begin[lane]) / stride_;
  return true;
}

Term Engine::raw(Loc loc) {
  if (const auto found = written_.find(loc); found != written_.end())
    return found->second;
  std::vector<Term>& page = pages_[loc / kPageWords];
  if (page.empty()) {
    const uint64_t first = loc / kPageWords * kPageWords;
    page.resize(std::min(kPageWords, cells_ - first));
    Result<Tensor> part = heap_.slice(0, static_cast<int64_t>(first), static_cast<int64_t>(first + page.size()));
    Result<void> done =
        part ? stream_.read(*part, page.data(), page.size() * sizeof(Term)) : Result<void>(part.takeError());
    if (!done)
      state_ = std::move(done);
  }
  return page[loc % kPageWords];
}

/// A collection that stopped has moved some cells.
Loc Engine::placeOf(Loc loc) {
  const Term first = raw(loc);
  return static_cast<uint32_t>(tagOf(first)) == kMoved ? locOf(first) : loc;
}

Term Engine::word(Loc loc, uint64_t i) { return raw(placeOf(loc) + i * stride_); }

Loc Engine::allocate(uint64_t count) {
  const Loc loc = fresh_;
  fresh_ += count * stride_;
  return loc;
}

std::vector<Loc> Engine::stacks() {
  std::vector<Loc> out;
  const std::vector<uint64_t> log = read<uint64_t>(log_), tasks = read<uint64_t>(queues_[full_].tasks);
  const std::vector<uint32_t> logged = read<uint32_t>(logged_), heads = read<uint32_t>(queues_[full_].heads),
                              counts = read<uint32_t>(queues_[full_].counts);
  if (!state_)
    return out;
  for (uint64_t block = 0; block < options_.blocks; ++block) {
    for (uint64_t i = 0; i < logged[block]; ++i)
      if (const Loc stack = locOf(log[block * kLogged + i]); !isSub(word(stack)))
        out.push_back(stack);
    for (uint64_t i = 0; i < counts[block]; ++i)
      if (const Term task = tasks[block * kTasks + (heads[block] + i) % kTasks];
          static_cast<uint32_t>(tagOf(task)) == kResume)
        out.push_back(locOf(task));
  }
  return out;
}

}  // namespace vortex::hvm::slices
