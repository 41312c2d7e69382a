// Reduces one term to weak normal form, with an explicit stack.
#pragma once

#include "hvm/eval/heap.h"

#include <array>

namespace vortex::hvm {

class Machine;

/// Nodes of up to so many words are used again at once; larger ones wait for the collector.
inline constexpr uint64_t kRecycled = 4;

/// What the threads of a run share besides the heap.
class World {
public:
  virtual ~World() = default;
  /// The machine stands at a safe point because attention is set. False: stop the run.
  virtual bool safePoint(Machine& machine, Term& current) = 0;
  /// Turns the value into strong normal form, for %nf and %gnf. False: the machine has an error or the run stops.
  virtual bool normalize(Machine& machine, Term& value) = 0;
  enum class Wait : uint8_t { Retry, Stuck, Stop };
  /// Another thread reduces what this dup cell holds. Waits until it has done so, or says that it waits for this thread in turn.
  virtual Wait awaitCell(Machine& machine, Term& projection) = 0;
};

class Machine {
public:
  enum class Outcome : uint8_t {
    Value,    // the term is in weak normal form, or stuck
    Failed,   // error() says why
    Stopped,  // the world said so
  };

  /// `isShared`: other machines work on the same heap at the same time.
  static Result<std::unique_ptr<Machine>> create(World& world, Heap& heap, const Code& code, uint32_t id,
                                                 bool isShared);
  ~Machine();

  /// Reduces the term in place. The stack below stays as it is.
  Outcome reduce(Term& term);

  /// The lambda, match or use node that a Fun stands for; a new lambda's variable is `variable`, or unbound if that is 0.
  Term expose(Term function, Term variable = 0);
  /// Two terms that stand for `term` under a duplication.
  std::pair<Term, Term> split(Term term, uint32_t label);
  Loc allocate(uint64_t count);
  Term node(uint32_t tag, uint32_t ext, std::initializer_list<Term> fields);

  /// Marks what the stack refers to.
  void markStack(Heap& heap) const;
  Term* stackTop() const { return sp_; }
  void setStackTop(Term* top) { sp_ = top; }
  uint64_t stackBytes() const { return static_cast<uint64_t>(sp_ - stack_) * sizeof(Term); }
  void dropRegion() {
    region_ = {};
    recycled_ = {};
  }

  uint32_t id() const { return id_; }
  World& world() const { return world_; }
  Term* heapWords() const { return heap_.words(); }
  const Code& code() const { return code_; }
  /// Has an unscoped pair been made? Only then can a variable be bound after it was found free.
  bool hasUnscoped() const { return hasUnscoped_; }
  uint64_t interactions() const { return interactions_; }
  const std::string& error() const { return error_; }
  Outcome fail(std::string message) {
    error_ = std::move(message);
    return Outcome::Failed;
  }

private:
  friend struct Reducer;
  Machine(World& world, Heap& heap, const Code& code, uint32_t id, bool isShared)
      : world_(world), heap_(heap), code_(code), id_(id), isShared_(isShared), env_(code.slotCount + 2) {}

  World& world_;
  Heap& heap_;
  const Code& code_;
  uint32_t id_;
  bool isShared_;
  Region region_;
  std::array<Loc, kRecycled + 1> recycled_{};  // lists of released nodes by size, linked through their first word
  Term* stack_ = nullptr;
  Term* sp_ = nullptr;
  uint64_t stackWords_ = 0;
  std::vector<Term> env_;
  uint64_t interactions_ = 0;
  bool hasUnscoped_ = false;
  std::string error_;
};

}  // namespace vortex::hvm
