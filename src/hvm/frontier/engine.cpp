#include "hvm/frontier/engine.h"

#include "base/text.h"
#include "hvm/frontier/kernels.h"
#include "hvm/frontier/readback.h"
#include "hvm/frontier/trace.h"
#include "hvm/frontier/words.h"
#include "hvm/workspace.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

namespace vortex::hvm::frontier {
namespace {

/// Bytes of a cell with its state, waiters, claims and stamp, and of an entry with what it sends in two passes.
constexpr uint64_t kCellBytes = 8 + 4 + 2 * 4 + 3 * 4 + 4;
constexpr uint64_t kEntryBytes = 16 + 8 + 2 * (16 * kMessages + 4);
/// Passes between two looks at the counts.
constexpr int kPassesAtOnce = 16;

struct Sizes {
  uint64_t cells;
  uint32_t capacity;  // entries of a block
};

struct Outbox {
  Tensor words, used, counts;
};

/// Everything one attempt needs on the device.
class Engine {
public:
  static Result<Engine> create(const Net& net, const EngineOptions& options, const Sizes& sizes);

  /// The bits of `Failure`, 0 at the end.
  Result<uint32_t> run();
  Result<NormalForm> result();

private:
  Engine(const Net& net, const EngineOptions& options, const Sizes& sizes, Workspace workspace)
      : net_(net), options_(options), sizes_(sizes), workspace_(std::move(workspace)), trace_(options) {}

  Result<void> allocate();
  Result<void> prepare();
  Result<void> pass();
  Result<void> tracedPass();
  Result<Frontier> frontier(const Outbox& box, std::vector<uint64_t>* sent = nullptr,
                            std::vector<uint32_t>* used = nullptr);
  std::vector<Argument> netArguments() const;

  const Net& net_;
  EngineOptions options_;
  Sizes sizes_;
  Workspace workspace_;
  Trace trace_;
  Tensor heap_, state_, waiters_, claims_, book_, definitions_, entries_, notes_, next_, fired_, status_, stamps_,
      passes_;
  std::array<Outbox, 2> boxes_;
  size_t full_ = 0;                                      // the outbox that the next pass collects from
  std::array<std::vector<PreparedLaunch>, 2> launches_;  // of a pass, by `full_`
};

Result<void> Engine::allocate() {
  const uint64_t cells = sizes_.cells, blocks = options_.sharding.blocks, slots = blocks * sizes_.capacity;
  const std::span<const Term> heap(net_.heap), book(net_.book);
  const std::span<const uint64_t> definitions(net_.definitions), next(net_.next);
  Result<void> done = inOrder([&] { return workspace_.copy(heap_, heap, cells); },
                              [&] { return workspace_.copy(book_, book, book.size()); },
                              [&] { return workspace_.copy(definitions_, definitions, definitions.size()); },
                              [&] { return workspace_.copy(next_, next, blocks); },
                              [&] { return workspace_.fill(state_, DType::U32, cells, 0); },
                              [&] { return workspace_.fill(waiters_, DType::U32, 2 * cells, 0); },
                              [&] { return workspace_.fill(claims_, DType::U32, 3 * cells, 0xff); },
                              [&] { return workspace_.fill(entries_, DType::U64, 2 * slots, 0); },
                              [&] { return workspace_.fill(notes_, DType::U64, slots, 0); },
                              [&] { return workspace_.fill(fired_, DType::U64, blocks, 0); },
                              [&] { return workspace_.fill(status_, DType::U32, 1, 0); },
                              [&] { return workspace_.fill(stamps_, DType::U32, options_.oneLaunch ? cells : 1, 0); },
                              [&] { return workspace_.fill(passes_, DType::U32, blocks, 0); });
  for (Outbox& box : boxes_)
    if (done)
      done = inOrder([&] { return workspace_.fill(box.words, DType::U64, 2 * kMessages * slots, 0); },
                     [&] { return workspace_.fill(box.used, DType::U32, slots, 0); },
                     [&] { return workspace_.fill(box.counts, DType::U32, blocks, 0); });
  if (!done)
    return done;
  // The first frontier: cell 0, sent by block 0.
  const std::array<uint64_t, 2> root = {uint64_t(Task) << kKindShift | kNormalFlag, 0};
  const uint32_t one = 1;
  Result<Tensor> words = boxes_[0].words.slice(0, 0, 2), used = boxes_[0].used.slice(0, 0, 1),
                 counts = boxes_[0].counts.slice(0, 0, 1);
  if (!words || !used || !counts)
    return Error{"the frontier has no room"};
  return inOrder([&] { return workspace_.stream.write(*words, root.data(), sizeof root); },
                 [&] { return workspace_.stream.write(*used, &one, sizeof one); },
                 [&] { return workspace_.stream.write(*counts, &one, sizeof one); });
}

std::vector<Argument> Engine::netArguments() const {
  return {heap_,
          state_,
          waiters_,
          claims_,
          book_,
          definitions_,
          entries_,
          notes_,
          next_,
          fired_,
          status_,
          sizes_.capacity,
          options_.sharding.shift,
          static_cast<uint32_t>(net_.forks),
          static_cast<uint32_t>(options_.sharding.blocks == 1),
          static_cast<uint32_t>(options_.seed % options_.sharding.blocks),
          stamps_,
          passes_,
          static_cast<uint32_t>(options_.oneLaunch)};
}

Result<void> Engine::prepare() {
  Result<Kernel> pass = loadPass(workspace_.device), atomics = loadStepAtomics(workspace_.device);
  if (!pass || !atomics)
    return pass ? atomics.takeError() : pass.takeError();
  for (size_t i = 0; i < 2; ++i) {
    auto add = [&](const Kernel& kernel, std::optional<uint32_t> parts) -> Result<void> {
      std::vector<Argument> arguments = netArguments();
      const Outbox &from = boxes_[i], &out = boxes_[1 - i];
      if (parts)
        arguments.insert(arguments.end(), {from.words, from.used, from.counts});
      arguments.insert(arguments.end(), {out.words, out.used, out.counts});
      if (parts)
        arguments.push_back(*parts);
      Result<PreparedLaunch> launch = workspace_.stream.prepare(kernel, arguments);
      if (!launch)
        return launch.takeError();
      launches_[i].push_back(*launch);
      return {};
    };
    Result<void> done = add(*pass, options_.oneLaunch ? kSettle | kStep : kSettle);
    if (done && !options_.oneLaunch)
      done = options_.atomics ? add(*atomics, std::nullopt) : add(*pass, kStep);
    if (!done)
      return done;
  }
  return {};
}

Result<Engine> Engine::create(const Net& net, const EngineOptions& options, const Sizes& sizes) {
  Result<Workspace> workspace = Workspace::open(options.device);
  if (!workspace)
    return workspace.takeError();
  Engine engine(net, options, sizes, *std::move(workspace));
  Result<void> done = inOrder([&] { return engine.allocate(); }, [&] { return engine.prepare(); });
  if (!done)
    return done.takeError();
  return engine;
}

Result<void> Engine::pass() {
  for (PreparedLaunch& launch : launches_[full_])
    if (Result<void> done = workspace_.stream.submit(launch); !done)
      return done;
  full_ = 1 - full_;
  return {};
}

Result<Frontier> Engine::frontier(const Outbox& box, std::vector<uint64_t>* sent, std::vector<uint32_t>* used) {
  auto words = workspace_.stream.read<uint64_t>(box.words);
  auto lengths = workspace_.stream.read<uint32_t>(box.used), counts = workspace_.stream.read<uint32_t>(box.counts);
  if (!words || !lengths || !counts)
    return Error{"the frontier cannot be read"};
  Frontier out = collect(*words, *lengths, *counts, options_.sharding, sizes_.capacity);
  if (sent)
    *sent = *std::move(words), *used = *std::move(lengths);
  return out;
}

Result<void> Engine::tracedPass() {
  Result<Frontier> taken = frontier(boxes_[full_]);
  if (!taken)
    return taken.takeError();
  if (Result<void> done = pass(); !done)
    return done;
  std::vector<uint64_t> sent;
  std::vector<uint32_t> used;
  Result<Frontier> next = frontier(boxes_[full_], &sent, &used);
  auto heap = workspace_.stream.read<uint64_t>(heap_), notes = workspace_.stream.read<uint64_t>(notes_);
  if (!next || !heap || !notes)
    return Error{"the heap cannot be read"};
  if (!taken->isEmpty())
    trace_.pass(*taken, *heap, *notes, sizes_.capacity, sent, used, *next);
  return {};
}

Result<uint32_t> Engine::run() {
  const bool isTraced = static_cast<bool>(options_.trace);
  if (isTraced)
    trace_.heap(net_);
  for (;;) {
    for (int i = 0; i < (isTraced ? 1 : kPassesAtOnce); ++i)
      if (Result<void> done = isTraced ? tracedPass() : pass(); !done)
        return done.takeError();
    auto status = workspace_.stream.read<uint32_t>(status_),
         counts = workspace_.stream.read<uint32_t>(boxes_[full_].counts);
    auto fired = workspace_.stream.read<uint64_t>(fired_);
    if (!status || !counts || !fired)
      return status ? (counts ? fired.takeError() : counts.takeError()) : status.takeError();
    if ((*status)[0] != 0)
      return (*status)[0];
    if (std::accumulate(fired->begin(), fired->end(), uint64_t(0)) > options_.fuel)
      return Error{base::concat("Error: more than ", options_.fuel, " interactions (--fuel)")};
    const uint64_t width = std::accumulate(counts->begin(), counts->end(), uint64_t(0));
    if (width == 0)
      return 0u;
  }
}

Result<NormalForm> Engine::result() {
  auto heap = workspace_.stream.read<uint64_t>(heap_);
  auto state = workspace_.stream.read<uint32_t>(state_);
  auto fired = workspace_.stream.read<uint64_t>(fired_), next = workspace_.stream.read<uint64_t>(next_);
  Result<Frontier> rest = frontier(boxes_[full_]);
  if (!heap || !state || !fired || !next || !rest)
    return Error{"the result cannot be read"};
  NormalForm out;
  out.interactions = std::accumulate(fired->begin(), fired->end(), uint64_t(0));
  out.words = std::accumulate(next->begin(), next->end(), uint64_t(0));
  out.isComplete = std::ranges::none_of(*state, [](uint32_t s) { return (s & (Active | Done)) == Active; });
  out.heap = *std::move(heap);
  for (const std::vector<Message>& messages : rest->byBlock)
    for (const Message& message : messages)
      if (const Kind kind = kindOf(message.head); kind == Store || kind == StoreTask)
        out.heap[targetOf(message.head)] = message.word;
  for (Term& term : out.heap)
    while (static_cast<uint32_t>(tagOf(term)) == kLink)
      term = out.heap[locOf(term)] | (term & kSub);
  out.isComplete = out.isComplete && !hasRedex(out.heap, net_.definitions);
  return out;
}

std::string message(uint32_t failure, const EngineOptions& options) {
  if (failure & FailRegion)
    return base::concat("Error: regions of ", options.sharding.regionWords(), " words are too small: a node has more");
  return base::concat("Error: out of memory: the frontier engine has no room within ", options.memoryBytes, " bytes");
}

/// Until there is room for everything. `lines` is the trace of the last attempt.
Result<NormalForm> normalizeInRoom(const Net& net, const EngineOptions& options, std::vector<std::string>& lines) {
  const uint64_t stride = options.sharding.blocks * options.sharding.regionWords();
  auto rounded = [&](uint64_t cells) { return (cells + stride - 1) / stride * stride; };
  Sizes sizes{rounded(std::max<uint64_t>(net.heap.size() + 1, options.trace ? stride : 1 << 18)),
              options.trace ? 256u : 1024u};
  // A pass that found no room left the net half reduced, so the run begins again with more.
  while (true) {
    lines.clear();
    if (sizes.cells * kCellBytes + sizes.capacity * options.sharding.blocks * kEntryBytes > options.memoryBytes)
      return Error{message(FailHeap, options)};
    Result<Engine> engine = Engine::create(net, options, sizes);
    if (!engine)
      return engine.takeError();
    Result<uint32_t> failure = engine->run();
    if (!failure)
      return failure.takeError();
    if (*failure == 0)
      return engine->result();
    // Of several errors the first in the order of reduction is the program's, which the evaluator finds.
    if (*failure & (FailOpen | FailNumber | FailConstructor)) {
      NormalForm none;
      none.isComplete = false;
      return none;
    }
    if (*failure & FailHeap)
      sizes.cells = rounded(sizes.cells * 8);
    else if (*failure & FailFrontier)
      sizes.capacity *= 4;
    else
      return Error{message(*failure, options)};
  }
}

}  // namespace

Result<NormalForm> normalize(const Net& net, const EngineOptions& given) {
  // Attempts that are given up leave no trace.
  std::vector<std::string> lines;
  EngineOptions options = given;
  if (given.trace)
    options.trace = [&](const std::string& line) { lines.push_back(line); };
  Result<NormalForm> done = normalizeInRoom(net, options, lines);
  for (const std::string& line : lines)
    given.trace(line);
  return done;
}

}  // namespace vortex::hvm::frontier
