// Both operands of an operator at once.
//
// A thread without work asks another one. At its next safe point that one looks for the oldest operator (or equality) on its stack whose right
// operand waits for the left one, and offers that operand: the frame then refers to a cell which any thread may reduce. Nothing is prepared for
// this before somebody asks, so a thread that nobody asks pays nothing; the oldest operand is usually the largest.
//
// A thread that comes to something which another one reduces takes meanwhile what that one offers on its behalf, or those do that it waits for in
// turn, so that what lies on a stack is needed by what lies below. (Not always: the other one may drop or postpone that part before it is done. Then
// a thread may come to wait for itself, which is noticed.)
//
// An operand is reduced before it is known to be needed. Nearly always it is: the operator drops it only if its left side is erased. When that
// happens, when a rule takes a stuck term for final that might have gone on in another order, or when a stack waits for itself, the run
// begins again without forks; when it fails, on one thread: results, counts and errors are those of one thread.
#include "hvm/eval/evaluation.h"
#include "hvm/eval/lifted.h"

#include <algorithm>

namespace vortex::hvm {

static bool isWorthForking(Tag tag) {
  return tag == Thk || isLifted(tag) || tag == App || tag == Ref || tag == Var || tag == Dp0 || tag == Dp1 ||
         (tag >= Op2 && tag <= Or);
}

/// Gives the operand of the frame with this header to a cell, if it has one that needs work.
bool Machine::forkAt(Term* header, Loc& cell) {
  Term* heap = heap_.words();
  Tag tag = tagOf(*header);
  uint32_t words = 1;
  Term operand = header[-1];
  if (tag == OnOp2Code) {
    uint32_t entry = extOf(*header);
    words = code_.entries[entry].count;
    Loc captured = words ? allocate(words) : 0;
    std::copy(header - words, header, heap + captured);
    operand = makeTerm(Thk, entry, captured);
  } else if (isSub(operand) || !isWorthForking(tagOf(operand))) {
    return false;
  }
  cell = allocate(1);
  heap[cell] = operand;
  std::fill(header - words, header, number(0));
  uint32_t op = tag == OnEqlLeft ? 0 : static_cast<uint32_t>(locOf(*header));
  *header = makeTerm(tag == OnEqlLeft ? OnEqlForked : OnOp2Forked, words << 5 | op, cell);
  forkedFrames_.push_back(static_cast<uint64_t>(header - stack_));
  return true;
}

Loc Machine::forkOldest(uint64_t& frame) {
  static constexpr ptrdiff_t kSearched = 2048;  // words at either end: a deep stack must not be read for every question
  // What lies below the highest operator that has given its operand was looked at then and stays as it is.
  Term* from = stack_ + (forkedFrames_.empty() ? 0 : forkedFrames_.back() + 1);
  Loc cell = 0;
  for (Term* word = from; word < sp_; ++word) {
    if (word - from == kSearched && sp_ - word > kSearched)
      word = sp_ - kSearched;
    Tag tag = tagOf(*word);
    if (isSub(*word) || (tag != OnOp2 && tag != OnOp2Code && tag != OnEqlLeft) || !forkAt(word, cell))
      continue;
    frame = static_cast<uint64_t>(word - stack_);
    return cell;
  }
  return 0;
}

void Evaluation::offerOperands(Worker& worker) {
  if (!options_.forksOperands || code_.hasUnscoped || workers_.size() == 1)
    return;
  for (unsigned offered = 0; offered < 2 + idle_; ++offered) {
    uint64_t frame = 0;
    Loc cell = worker.machine->forkOldest(frame);
    if (cell == 0)
      return;
    beginSharing();
    hasForked_ = true;
    std::lock_guard lock(worker.mutex);
    worker.operands.push_back({cell, frame});
    worker.operandCount = worker.operands.size();
  }
}

void Evaluation::askEverybody() {
  const size_t count = running_;
  for (size_t i = 0; i < count; ++i)
    workers_[i]->machine->ask();
}

void Evaluation::detachOperand(Machine& machine, Loc cell) {
  Worker& worker = *workers_[machine.id()];
  std::lock_guard lock(worker.mutex);
  for (Operand& one : worker.operands)
    if (one.cell == cell)
      one.frame = 0;
}

/// The oldest operand that the victim offers, on behalf of the operand `purpose` that it reduces unless that is 0; 0: none.
Loc Evaluation::takeOperand(Worker& victim, Loc purpose) {
  if (victim.operandCount.load(std::memory_order_relaxed) == 0)
    return 0;
  std::lock_guard lock(victim.mutex);
  auto isFor = [&](const Operand& one) { return one.cell == purpose; };
  auto base = std::find_if(victim.reduced.begin(), victim.reduced.end(), isFor);
  if (purpose != 0 && base == victim.reduced.end())
    return 0;
  auto isAbove = [&](const Operand& one) { return purpose == 0 || one.frame > base->frame; };
  std::erase_if(victim.operands, [&](const Operand& one) { return !isOpen(one.cell); });
  auto found = std::find_if(victim.operands.begin(), victim.operands.end(), isAbove);
  Loc cell = 0;
  if (found != victim.operands.end()) {
    cell = found->cell;
    victim.operands.erase(found);
  }
  victim.operandCount = victim.operands.size();
  return cell;
}

/// Has nobody come to the operand in this cell? The thread that offered it does so without taking it from the list.
bool Evaluation::isOpen(Loc cell) const {
  Term term = __atomic_load_n(heap_->words() + cell, __ATOMIC_ACQUIRE);
  return !isSub(term) && !isBusy(term);
}

/// False: the run stops. The thread that offered the operand may have come to it first.
bool Evaluation::reduceOperand(Worker& worker, Loc cell) {
  Machine& machine = *worker.machine;
  Term* word = heap_->words() + cell;
  Term term = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  if (isSub(term) || tagOf(term) == Busy)
    return true;
  {
    std::lock_guard lock(worker.mutex);
    worker.reduced.push_back({cell, machine.stackWords()});
  }
  bool isMine =
      __atomic_compare_exchange_n(word, &term, makeTerm(Busy, machine.id()), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  Machine::Outcome outcome = isMine ? machine.reduce(term) : Machine::Outcome::Value;
  if (outcome == Machine::Outcome::Failed)
    stop(machine.error());
  if (isMine && outcome == Machine::Outcome::Value)
    __atomic_store_n(word, term | kSub, __ATOMIC_RELEASE);
  std::lock_guard lock(worker.mutex);
  worker.reduced.pop_back();
  return outcome == Machine::Outcome::Value;
}

/// The operands that the value of `cell`, which `holder` reduces, waits for: all above it on the holder's stack, and what the holder waits for at this
/// moment. (Cells of duplications are used again as soon as their thread goes on, so others must not look into them.)
std::vector<Loc> Evaluation::awaitedFor(Loc cell, Worker& holder) {
  std::vector<Loc> cells;
  if (holder.helpedCount != 0) {
    std::lock_guard lock(holder.mutex);
    auto isFor = [&](const Operand& one) { return one.cell == cell; };
    auto base = std::find_if(holder.reduced.begin(), holder.reduced.end(), isFor);
    if (base != holder.reduced.end())
      for (const Operand& one : holder.helped)
        if (one.cell != 0 && one.frame > base->frame)
          cells.push_back(one.cell);
  }
  if (Loc cell = holder.awaitedOperand)
    cells.push_back(cell);
  return cells;
}

/// An operand that the value of `awaited` needs and that nobody reduces; 0: none. Then those that reduce may be asked for one.
Loc Evaluation::takePart(Loc awaited, bool asks) {
  std::vector<Loc> cells{awaited};
  for (size_t i = 0; i < cells.size() && cells.size() <= 2 * workers_.size(); ++i) {
    Term term = __atomic_load_n(heap_->words() + cells[i], __ATOMIC_ACQUIRE);
    if (!isBusy(term))
      continue;
    Worker& holder = *workers_[extOf(term)];
    if (Loc part = takeOperand(holder, cells[i]))
      return part;
    if (asks && holder.awaitedOperand == 0)
      holder.machine->ask();
    for (Loc cell : awaitedFor(cells[i], holder))
      if (std::find(cells.begin(), cells.end(), cell) == cells.end())
        cells.push_back(cell);
  }
  return 0;
}

/// Other threads reduce what `awaited` refers to: does part of their work. False: there is none to be had.
bool Evaluation::helpReduce(Worker& worker, Term& awaited, bool asks, bool& goesOn) {
  Machine& machine = *worker.machine;
  const Loc part = takePart(locOf(awaited), asks);
  if (part == 0)
    return false;
  await(worker, 0);
  {
    std::lock_guard lock(worker.mutex);
    worker.helped.push_back({tagOf(awaited) == Fut ? locOf(awaited) : 0, machine.stackWords()});
    worker.helpedCount = worker.helped.size();
  }
  // The stack keeps what this thread waits for: there may be a collection.
  *machine.stackTop() = awaited;
  machine.setStackTop(machine.stackTop() + 1);
  goesOn = reduceOperand(worker, part);
  machine.setStackTop(machine.stackTop() - 1);
  awaited = *machine.stackTop();
  std::lock_guard lock(worker.mutex);
  worker.helped.pop_back();
  worker.helpedCount = worker.helped.size();
  return true;
}

bool Evaluation::doubt() {
  if (!hasForked_)
    return false;
  stop("");
  return true;
}

/// Operands that were offered: those that nobody has come to stay alive.
void Evaluation::markOperands(Worker& worker) {
  for (const Operand& one : worker.reduced)
    heap_->markCell(one.cell, code_);
  std::erase_if(worker.operands, [&](const Operand& one) { return !isOpen(one.cell); });
  for (Operand& one : worker.helped)
    if (one.cell != 0 && !isBusy(heap_->words()[one.cell]))
      one.cell = 0;  // it has its value, so the cell may be used for something else
  for (const Operand& one : worker.operands)
    heap_->markCell(one.cell, code_);
  worker.operandCount = worker.operands.size();
}

}  // namespace vortex::hvm
