#include "hvm/eval/evaluation.h"

#include "base/text.h"

namespace vortex::hvm {

Result<std::unique_ptr<Evaluation>> Evaluation::create(const Code& code, const EvaluationOptions& options) {
  std::unique_ptr<Evaluation> evaluation(new Evaluation(code));
  auto heap = Heap::create(options.memoryBytes);
  if (!heap)
    return heap.takeError();
  evaluation->heap_ = std::move(*heap);
  auto machine = Machine::create(*evaluation, *evaluation->heap_, code);
  if (!machine)
    return machine.takeError();
  evaluation->machine_ = std::move(*machine);
  return evaluation;
}

bool Evaluation::safePoint(Machine& machine, Term& current) {
  heap_->attention() = false;
  if (!heap_->wantsCollection())
    return true;
  heap_->beginMarking();
  heap_->mark(&current, code_);
  machine.markStack(*heap_);
  machine.dropRegion();
  for (Loc root : roots_)
    heap_->markCell(root, code_);
  for (Level& level : levels_)
    heap_->mark(&level.node, code_);
  for (std::deque<Term>& entries : queue_)
    for (Term& entry : entries)
      heap_->mark(&entry, code_);
  std::erase_if(stuckCells_, [&](const StuckCell& stuck) { return !heap_->isMarkedCell(stuck.cell); });
  if (heap_->endMarking(machine.stackBytes()))
    return true;
  error_ = base::concat("Error: out of memory: the limit is ", heap_->limitBytes(), " bytes (--memory)");
  return false;
}

Error Evaluation::failure() const { return Error{error_.empty() ? machine_->error() : error_}; }

Result<Term> Evaluation::normalizeMain(uint32_t definition) {
  Loc root = machine_->allocate(1);
  heap_->words()[root] = makeTerm(Ref, definition);
  if (!normalizeCell(*machine_, root))
    return failure();
  return heap_->words()[root];
}

bool Evaluation::normalize(Machine& machine, Term& value) {
  static constexpr unsigned kMaxNested = 1000;  // each takes some of the thread's own stack
  if (++nested_ > kMaxNested) {
    machine.fail(base::concat("RUNTIME_ERROR: more than ", kMaxNested, " calls of %nf inside each other"));
    return false;
  }
  Loc root = machine.allocate(1);
  heap_->words()[root] = value;
  bool ok = normalizeCell(machine, root);
  value = heap_->words()[root];
  --nested_;
  return ok;
}

/// A variable of an unscoped pair may be bound after its place was visited: passes are repeated until one changes nothing.
bool Evaluation::normalizeCell(Machine& machine, Loc root) {
  roots_.push_back(root);
  size_t floor = positions_.size();
  uint64_t before;
  do {
    before = machine.interactions();
    positions_.push_back(root);
    if (!drainPositions(machine, floor))
      return false;
    if (machine.hasUnscoped() || nested_ > 0)
      thawStuckCells();
  } while (machine.hasUnscoped() && machine.interactions() != before);
  roots_.pop_back();
  return true;
}

void Evaluation::thawStuckCells() {
  Term* heap = heap_->words();
  for (const StuckCell& stuck : stuckCells_)
    if (stuck.nested == nested_)
      heap[stuck.cell] = heap[stuck.value];
  std::erase_if(stuckCells_, [&](const StuckCell& stuck) { return stuck.nested == nested_; });
}

bool Evaluation::drainPositions(Machine& machine, size_t floor) {
  Term* heap = heap_->words();
  while (positions_.size() > floor) {
    Loc position = positions_.back();
    positions_.pop_back();
    Term term = heap[position];
    heap[position] = number(0);  // nothing, for the collector: the machine holds the term
    if (machine.reduce(term) != Machine::Outcome::Value)
      return false;
    heap[position] = term;
    visitValue(machine, term, position);
  }
  return true;
}

/// Schedules what lies below a value that stands at `position`. Reduced heads of stuck terms are entered at once.
void Evaluation::visitValue(Machine& machine, Term value, Loc position) {
  Term* heap = heap_->words();
  for (;;) {
    if (tagOf(value) == Fun)
      heap[position] = value = machine.expose(value);
    Tag tag = tagOf(value);
    Loc at = locOf(value);
    uint32_t fields = 0, reduced = ~0u;  // `reduced`: the field that was reduced already
    switch (tag) {
    case App: {
      Tag head = tagOf(heap[at]);
      fields = 2, reduced = head == Fun || head == Mat || head == Swi;
      break;
    }
    case Op2: fields = 2, reduced = tagOf(heap[at]) == Num; break;
    case And:
    case Or: fields = 2, reduced = 0; break;
    case Dsu:
    case Ddu: fields = 3, reduced = 0; break;
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
    case Dp1: {
      Term cell = heap[at];
      if (isSub(cell) || tagOf(cell) == Stk || tagOf(cell) == Busy)
        return;
      Loc kept = machine.allocate(1);
      heap[kept] = cell, heap[at] = makeTerm(Stk, 0, kept);
      stuckCells_.push_back({at, kept, nested_});
      value = cell, position = kept;
      continue;
    }
    default: fields = isConstructor(tag) ? tag - C00 : 0;
    }
    for (uint32_t i = fields; i-- > 0;)
      if (i != reduced)
        positions_.push_back(at + i);
    if (reduced >= fields)
      return;
    position = at + reduced;
    value = heap[position];
  }
}

}  // namespace vortex::hvm
