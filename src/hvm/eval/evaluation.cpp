#include "hvm/eval/evaluation.h"

#include "base/text.h"

#include <algorithm>
#include <utility>

namespace vortex::hvm {

Result<std::unique_ptr<Evaluation>> Evaluation::create(const Code& code, const EvaluationOptions& options) {
  std::unique_ptr<Evaluation> evaluation(new Evaluation(code, options));
  if (Result<void> begun = evaluation->begin(); !begun)
    return begun.takeError();
  return evaluation;
}

Result<void> Evaluation::begin() {
  workers_.clear();
  heap_.reset();
  // What %log prints must not depend on the schedule.
  // A device has the heap to itself.
  const bool isAlone = code_.hasEffects || (options_.offload && code_.usesDevice);
  unsigned threads = isAlone ? 1 : std::max(1u, options_.threads);
  auto heap = Heap::create(options_.memoryBytes, options_.reserveWords);
  if (!heap)
    return heap.takeError();
  heap_ = std::move(*heap);
  for (uint32_t id = 0; id < threads; ++id) {
    auto machine = Machine::create(*this, *heap_, code_, id, options_.fuel);
    if (!machine)
      return machine.takeError();
    workers_.push_back(std::make_unique<Worker>());
    workers_.back()->machine = std::move(*machine);
    if (options_.collectsAtEverySafePoint)
      workers_.back()->machine->collectAlways();
    if (options_.forksAtEverySafePoint)
      workers_.back()->machine->ask();
  }
  heap_->setWantsEverybody(options_.collectsAtEverySafePoint);
  running_ = 1, parked_ = waiting_ = leaving_ = 0;
  stopped_ = hasForked_ = hasCircle_ = isShared_ = hasOpenVariables_ = false;
  offloaded_ = 0, watchedLevels_ = kWatchedLevels;
  error_.clear();
  return {};
}

/// After a failure, doubt or a circle. True: everything is as at the start, except that operands are not forked, or that there is one thread. Of what
/// fails, one thread finds the first in the order of reduction; of memory, several threads may need more than one.
bool Evaluation::beginAgain() {
  const bool isFailure = isShared_ && options_.threads > 1 && !error_.empty();
  if (!hasForked_ && !hasCircle_ && !isFailure)
    return false;
  options_.forksOperands = false;
  if (hasCircle_ || isFailure)
    options_.threads = 1;
  if (Result<void> begun = begin(); !begun) {
    error_ = begun.error().message;
    return false;
  }
  return true;
}

uint64_t Evaluation::interactions() const {
  uint64_t sum = 0;
  for (const auto& worker : workers_)
    sum += worker->machine->interactions();
  return sum;
}

std::vector<uint64_t> Evaluation::interactionsByThread() const {
  std::vector<uint64_t> each;
  for (const auto& worker : workers_)
    each.push_back(worker->machine->interactions());
  return each;
}

Result<Term> Evaluation::normalizeMain(uint32_t definition) {
  Result<Term> normal = normalizeRoot(definition);
  while (!normal && beginAgain())
    normal = normalizeRoot(definition);
  return normal;
}

Result<Term> Evaluation::normalizeRoot(uint32_t definition) {
  Worker& worker = *workers_[0];
  Loc root = first().allocate(1);
  heap_->words()[root] = makeTerm(Ref, definition);
  if (normalizeCell(worker, root) == Normal::Failed)
    return failure();
  if (isOutOfFuel(interactions()))
    return failure();
  return heap_->words()[root];
}

/// Each thread looks at its own count; their sum counts at the end, so that the outcome is the same for every number of threads.
bool Evaluation::isOutOfFuel(uint64_t count) {
  if (count > options_.fuel)
    stop(base::concat("Error: more than ", options_.fuel, " interactions (--fuel)"));
  return count > options_.fuel;
}

World::Normal Evaluation::normalize(Machine& machine, Term& value, bool mayOffload) {
  if (mayOffload && options_.offload) {
    // What %log prints is not printed again.
    const bool forks = options_.forksOperands && !code_.dropsOperands && !code_.hasEffects;
    Result<uint64_t> count = options_.offload(machine, value, forks);
    if (!count) {
      machine.fail("Error: " + count.error().message);
      return Normal::Failed;
    }
    machine.addInteractions(*count);
    offloaded_ += *count;
    if (forks && *count > 0)
      hasForked_ = true, machine.beginDoubting();
  }
  static constexpr unsigned kMaxNested = 1000;  // each takes some of the thread's own stack
  Worker& worker = *workers_[machine.id()];
  if (++worker.nested > kMaxNested) {
    machine.fail(base::concat("RUNTIME_ERROR: more than ", kMaxNested, " calls of %nf or %gnf inside each other"));
    return Normal::Failed;
  }
  Loc root = machine.allocate(1);
  heap_->words()[root] = value;
  const uint64_t call = ++calls_;
  machine.beginCall(call <= kCallMask ? static_cast<uint32_t>(call) : 0);
  const Normal normal = normalizeCell(worker, root);
  machine.endCall();
  value = heap_->words()[root];
  --worker.nested;
  return normal;
}

/// The result and its count must not depend on the order of positions. So what waits for an open variable is left as it is until everything else is
/// normal; only then is it final.
World::Normal Evaluation::normalizeCell(Worker& worker, Loc root) {
  worker.roots.push_back(root);
  const size_t floor = worker.positions.size(), postponedFloor = worker.postponed.size();
  bool ok = true;
  if (worker.nested == 0 && workers_.size() > 1) {
    ok = drainTogether(root);
  } else {
    worker.positions.push_back(root);
    ok = drainAlone(worker, floor);
  }
  const Normal normal = ok ? normalizePostponed(worker, root, postponedFloor) : Normal::Failed;
  if (normal == Normal::Failed)
    return normal;
  if (worker.nested)
    thawStuckCells(worker);
  worker.roots.pop_back();
  return normal;
}

/// On one thread. Afterwards nothing waits from `floor` on. What %nf is called for is not all there is, so it takes nothing for final that the whole
/// does not.
World::Normal Evaluation::normalizePostponed(Worker& worker, Loc root, size_t floor) {
  Machine& machine = *worker.machine;
  const size_t positions = worker.positions.size();
  for (uint64_t before = ~uint64_t(0); worker.postponed.size() > floor && before != machine.interactions();) {
    before = machine.interactions();
    worker.positions.insert(worker.positions.end(), worker.postponed.rbegin(),
                            worker.postponed.rend() - static_cast<ptrdiff_t>(floor));
    worker.postponed.resize(floor);
    if (!drainAlone(worker, positions))
      return Normal::Failed;
    if (before == machine.interactions() && !reducePostponedOperands(worker, floor))
      return Normal::Failed;
  }
  if (worker.postponed.size() == floor)
    return Normal::Done;
  worker.postponed.resize(floor);
  if (worker.nested)
    return Normal::Open;
  const bool took = machine.takeStuckAsFinal(true);
  for (uint64_t before = ~uint64_t(0); before != machine.interactions();) {
    before = machine.interactions();
    thawStuckCells(worker);
    worker.positions.push_back(root);
    if (!drainAlone(worker, positions))
      return Normal::Failed;
  }
  machine.takeStuckAsFinal(took);
  return Normal::Done;
}

void Evaluation::thawStuckCells(Worker& worker) {
  Term* heap = heap_->words();
  auto isOfThisCall = [&](const StuckCell& stuck) { return stuck.nested == worker.nested; };
  for (const StuckCell& stuck : worker.stuckCells)
    if (isOfThisCall(stuck) && heap[stuck.cell] == makeTerm(Stk, 0, stuck.value))
      heap[stuck.cell] = heap[stuck.value];
  std::erase_if(worker.stuckCells, isOfThisCall);
}

bool Evaluation::drainAlone(Worker& worker, size_t floor) {
  while (worker.positions.size() > floor) {
    if (!comesToSafePoint(worker))
      return false;
    Loc position = worker.positions.back();
    worker.positions.pop_back();
    if (!normalizePosition(worker, position))
      return false;
  }
  return true;
}

/// Between two positions, whose values may be there already and yet become larger when they are visited.
bool Evaluation::comesToSafePoint(Worker& worker) {
  Term nothing = number(0);
  return !worker.machine->needsCollection() || safePoint(*worker.machine, nothing);
}

/// To weak normal form.
bool Evaluation::reducePosition(Worker& worker, Loc position) {
  Term* heap = heap_->words();
  Term term = heap[position];
  heap[position] = number(0);  // nothing, for the collector: the machine holds the term
  Machine::Outcome outcome = worker.machine->reduce(term);
  if (outcome != Machine::Outcome::Value) {
    if (outcome == Machine::Outcome::Failed)
      stop(worker.machine->error());
    return false;
  }
  heap[position] = term;
  return true;
}

bool Evaluation::normalizePosition(Worker& worker, Loc position) {
  if (!reducePosition(worker, position))
    return false;
  const Term term = heap_->words()[position];
  // A copied function's variable stands for both copies' arguments, which are there or not: it depends on the order whether a call of %nf waits.
  if (tagOf(term) == Sup && worker.nested > 0 && hasCopiedLambda() && doubt())
    return false;
  visitValue(worker, term, position);
  return true;
}

bool Evaluation::hasCopiedLambda() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const auto& worker) { return worker->machine->hasCopiedLambda(); });
}

/// The value of a stuck projection becomes final: it is normalized in a cell of its own. False: nothing to visit there.
bool Evaluation::freezeStuckCell(Worker& worker, Term& value, Loc& position) {
  Term* heap = heap_->words();
  Loc at = locOf(value);
  for (;;) {
    Term cell = __atomic_load_n(&heap[at], __ATOMIC_ACQUIRE);
    if (isSub(cell)) {  // resolved meanwhile
      worker.positions.push_back(position);
      return false;
    }
    if (tagOf(cell) == Stk || (tagOf(cell) == Busy && (worker.nested || extOf(cell) == worker.machine->id())))
      return false;
    if (tagOf(cell) == Busy) {
      std::this_thread::yield();
      if (heap_->wantsEverybody())  // its thread may stand at a safe point: look again later
        return worker.positions.insert(worker.positions.begin(), position), false;
      continue;
    }
    Loc kept = worker.machine->allocate(1);
    heap[kept] = cell;
    if (!__atomic_compare_exchange_n(&heap[at], &cell, makeTerm(Stk, 0, kept), false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
      continue;
    worker.stuckCells.push_back({at, kept, worker.nested});
    value = cell, position = kept;
    return true;
  }
}

/// Schedules what lies below a value that stands at `position`. Reduced heads of stuck terms are entered at once.
void Evaluation::visitValue(Worker& worker, Term value, Loc position) {
  Term* heap = heap_->words();
  for (;;) {
    if (tagOf(value) == Fun)
      heap[position] = value = worker.machine->expose(value);
    Tag tag = tagOf(value);
    if (isWaiting(tag) && worker.machine->isOpen(value)) {
      worker.postponed.push_back(position);
      return;
    }
    if (tag == Lam)
      heap[position] = value = worker.machine->enterLambda(value);
    Loc at = locOf(value);
    uint32_t fields = 0, reduced = ~0u;  // `reduced`: the field that was reduced already
    switch (tag) {
    case App:
    case Op2:
    case And:
    case Or:
    case Dsu:
    case Ddu: fields = tag == Dsu || tag == Ddu ? 3 : 2, reduced = awaitedField(tag, tagOf(heap[at])); break;
    case Sup:
    case Dry:
    case Mat:
    case Swi:
    case Eql: fields = 2; break;
    case Lam:
    case Use:
    case Inc:
    case Pri: fields = 1; break;
    case Dp0:
    case Dp1:
      if (!freezeStuckCell(worker, value, position))
        return;
      continue;
    default: fields = isConstructor(tag) ? tag - C00 : 0;
    }
    for (uint32_t i = fields; i-- > 0;)
      if (i != reduced)
        worker.positions.push_back(at + i);
    if (reduced >= fields)
      return;
    position = at + reduced;
    value = heap[position];
  }
}

}  // namespace vortex::hvm
