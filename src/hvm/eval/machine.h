// Reduces one term to weak normal form, with an explicit stack.
#pragma once

#include "hvm/eval/heap.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

namespace vortex::hvm {

class Machine;

/// Nodes of up to so many words are used again at once; larger ones wait for the collector.
inline constexpr uint64_t kRecycledWords = 4;

/// The nodes of one size that were released last. They are still in the cache; a list through the nodes themselves would wait for memory once it is
/// long. Older ones are left to the collector.
class Recycled {
public:
  void push(Loc at) {
    top_ = (top_ + 1) % kNodes;
    nodes_[top_] = at;
  }
  /// 0: there is none.
  Loc pop() {
    const Loc at = nodes_[top_];
    if (at != 0) {
      nodes_[top_] = 0;
      top_ = (top_ - 1) % kNodes;
    }
    return at;
  }

private:
  static constexpr uint32_t kNodes = 1024;
  uint32_t top_ = 0;
  std::array<Loc, kNodes> nodes_{};
};

/// Which field a stuck application, operator or term of dynamic labels waits for, if its first field has the tag `first`.
constexpr uint32_t awaitedField(Tag tag, Tag first) {
  return (tag == Op2 && first == Num) || (tag == App && (first == Fun || first == Mat || first == Swi || first == Use));
}

/// What the threads of a run share besides the heap.
class World {
public:
  virtual ~World() = default;
  /// The machine stands at a safe point because somebody wants it there. False: stop the run.
  virtual bool safePoint(Machine& machine, Term& current) = 0;
  enum class Normal : uint8_t {
    Done,
    Open,    // the normal form waits for a variable that may be bound later
    Failed,  // the machine has an error, or the run stops
  };
  /// Turns the value into strong normal form, for %nf and %gnf, the latter on a device if there is one.
  virtual Normal normalize(Machine& machine, Term& value, bool mayOffload) = 0;
  enum class Wait : uint8_t { Retry, Stuck, Stop };
  /// Another thread reduces what the cell of this projection or operand holds. Waits until it has done so, or says of a projection that it waits
  /// for this thread in turn.
  virtual Wait awaitCell(Machine& machine, Term& awaited) = 0;
  /// Something was done that other orders of reduction might do otherwise. True: the run stops, to begin again in the plain order.
  virtual bool doubt() = 0;
  /// The machine, or one that it waits for, waits for itself: a copy in a circle, in which the first one that is asked for is stuck. True: the run
  /// stops, to begin again on one thread.
  virtual bool meetsCircle() = 0;
  /// The operand that this machine offered is no longer what an operator on its stack waits for.
  virtual void detachOperand(Machine& machine, Loc cell) = 0;

  /// A variable was found free whose lambda is not part of the normal form: it may be bound later. That happens where a variable has left its lambda.
  void noteOpenVariable() { hasOpenVariables_.store(true, std::memory_order_relaxed); }
  bool hasOpenVariables() const { return hasOpenVariables_.load(std::memory_order_relaxed); }

protected:
  std::atomic<bool> hasOpenVariables_{false};
};

class Machine {
public:
  enum class Outcome : uint8_t {
    Value,    // the term is in weak normal form, or stuck
    Failed,   // error() says why
    Stopped,  // the world said so
  };

  /// After more than `fuel` interactions every safe point calls the world.
  static Result<std::unique_ptr<Machine>> create(World& world, Heap& heap, const Code& code, uint32_t id,
                                                 uint64_t fuel);
  ~Machine();

  /// Reduces the term in place. The stack below stays as it is.
  Outcome reduce(Term& term);

  /// The lambda, match or use node that a Fun stands for; a new lambda's variable is `variable`, or unbound if that is 0.
  Term expose(Term function, Term variable = 0);
  /// The same lambda as part of the result, or of the normal form of the innermost call of %nf.
  Term enterLambda(Term lambda);
  /// A call of %nf begins; 0 if there are no numbers any more: what waits for variables of its lambdas then waits as if they could be bound.
  void beginCall(uint32_t number) { openCell_ = 0, calls_.push_back(number); }
  void endCall() { openCell_ = 0, calls_.pop_back(); }
  /// Does nobody apply the lambda of this free variable, at least not before the calls return that this machine is in?
  bool isEntered(Term variable) const {
    const uint32_t call = extOf(variable) & kCallMask;
    return (extOf(variable) & kEntered) != 0 ||
           (call != 0 && std::find(calls_.begin(), calls_.end(), call) != calls_.end());
  }
  /// Does this stuck term wait for a variable that may be bound later? Then nothing may take it for final.
  bool isOpen(Term term) { return world_.hasOpenVariables() && !takesStuckAsFinal_ && waitsForOpen(term); }
  /// From now on it counts as final even so. Returns what held before.
  bool takeStuckAsFinal(bool takes) { return std::exchange(takesStuckAsFinal_, takes); }
  /// From now on what waits for a dup cell that is being reduced counts as open, or as final. Returns what held before.
  bool takeBusyAsOpen(bool takes) { return openCell_ = 0, std::exchange(takesBusyAsOpen_, takes); }
  /// Others work on the heap meanwhile, or not.
  void setAlone(bool isAlone) { openCell_ = 0, isAlone_ = isAlone; }
  /// Two terms that stand for `term` under a duplication.
  std::pair<Term, Term> split(Term term, uint32_t label);
  Loc allocate(uint64_t count);
  /// Words that nothing refers to any more.
  void release(Loc at, uint64_t count) { recycled_[count - 1].push(at); }
  Term node(uint32_t tag, uint32_t ext, std::initializer_list<Term> fields);

  /// Turns the right operand of the oldest operator on the stack that still has one into a cell that any thread may reduce, for a term `Fut`.
  /// 0: there is none. `frame` becomes the operator's place on the stack.
  Loc forkOldest(uint64_t& frame);
  /// Has the stack grown by a sixteenth of the memory since this said so or since the last collection, or wants the heap to be collected? A stack
  /// may grow without taking anything from the heap.
  bool needsCollection() const { return sp_ >= stackEnd_; }
  /// From now on every point where a collection is possible calls the world.
  void collectAlways() { stackStep_ = 0, watchStack(); }
  uint64_t stackWords() const { return static_cast<uint64_t>(sp_ - stack_); }

  /// Marks what the stack refers to.
  void markStack(Heap& heap) const;
  Term* stackTop() const { return sp_; }
  void setStackTop(Term* top) { sp_ = top; }
  uint64_t stackBytes() const { return static_cast<uint64_t>(sp_ - stack_) * sizeof(Term); }
  /// After a collection.
  void startAfresh() {
    region_ = {};
    openCell_ = 0;
    recycled_ = {};
    watchStack();
  }

  /// Any thread may ask: at its next safe point the machine calls the world.
  void ask() {
    if (!isAsked())
      isAsked_.store(true, std::memory_order_relaxed);
  }
  bool isAsked() const { return isAsked_.load(std::memory_order_relaxed); }
  void answer() { isAsked_.store(false, std::memory_order_relaxed); }

  /// Operands that wait here may have been reduced ahead of need.
  void beginDoubting() { doubts_ = true; }
  /// From the next safe point on, other machines work on the same heap at the same time.
  void beginSharing() { isShared_ = true, isAlone_ = false; }

  /// Has this machine duplicated a lambda whose variable is used?
  bool hasCopiedLambda() const { return hasCopiedLambda_.load(std::memory_order_relaxed); }
  uint32_t id() const { return id_; }
  World& world() const { return world_; }
  Term* heapWords() const { return heap_.words(); }
  const Code& code() const { return code_; }
  uint64_t interactions() const { return interactions_; }
  void addInteractions(uint64_t count) { interactions_ += count; }
  bool hasRoomFor(uint64_t words) const { return heap_.highWater() + words <= heap_.limitBytes() / sizeof(Term); }
  const std::string& error() const { return error_; }
  Outcome fail(std::string message) {
    error_ = std::move(message);
    return Outcome::Failed;
  }

private:
  friend struct Reducer;
  friend struct Steps;
  Machine(World& world, Heap& heap, const Code& code, uint32_t id, uint64_t fuel)
      : world_(world), heap_(heap), code_(code), id_(id), fuel_(fuel), env_(code.slotCount + 2) {}
  bool forkAt(Term* header, Loc& cell);
  bool waitsForOpen(Term term);
  bool comesUnstuck(Term term) const;
  void watchStack() { stackEnd_ = stackStep_ == 0 ? stack_ : sp_ + stackStep_; }

  World& world_;
  Heap& heap_;
  const Code& code_;
  uint32_t id_;
  bool isShared_ = false;
  uint64_t fuel_;
  Region region_;
  std::array<Recycled, kRecycledWords> recycled_{};  // by size
  Term* stack_ = nullptr;
  Term* sp_ = nullptr;
  uint64_t stackLimit_ = 0;
  Term* stackEnd_ =
      nullptr;  // from here on safe points call the world; the stack's beginning once the heap wants to be collected
  uint64_t stackStep_ = 0;
  std::vector<uint64_t> forkedFrames_;  // places on the stack of operators that have given their operand, lowest first
  std::vector<Term> env_;
  std::vector<uint32_t> calls_;  // of %nf that have not returned
  uint64_t interactions_ = 0;
  Term reduced_ = 0;  // what the innermost reduce() has come to
  bool takesStuckAsFinal_ = false, takesBusyAsOpen_ = false, isAlone_ = true, doubts_ = false;
  // The dup cell that a term which waits for an open variable went through first when this was looked at last, and the interactions by then.
  Loc openCell_ = 0;
  uint64_t openAt_ = 0;
  std::atomic<bool> hasCopiedLambda_{false};
  std::string error_;
  alignas(64) std::atomic<bool> isAsked_{false};  // others write it
};

}  // namespace vortex::hvm
