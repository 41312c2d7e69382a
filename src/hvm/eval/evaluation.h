// A run of a program: strong normal form or enumeration of collapsed terms.
#pragma once

#include "hvm/eval/machine.h"

#include <array>
#include <deque>
#include <functional>

namespace vortex::hvm {

struct EvaluationOptions {
  uint64_t memoryBytes = 0;
  unsigned threads = 1;
  uint64_t seed = 0;
};

class Evaluation : public World {
public:
  static Result<std::unique_ptr<Evaluation>> create(const Code& code, const EvaluationOptions& options);

  /// The strong normal form of @main; the error is the text to print.
  Result<Term> normalizeMain(uint32_t definition);
  /// Calls `print` for each collapsed term in the normative order, at most `limit` times.
  Result<void> collapseMain(uint32_t definition, uint64_t limit, const std::function<void(Term)>& print);

  uint64_t interactions() const { return machine_->interactions(); }
  std::vector<uint64_t> interactionsByThread() const { return {machine_->interactions()}; }
  const Heap& heap() const { return *heap_; }

  bool safePoint(Machine& machine, Term& current) override;
  bool normalize(Machine& machine, Term& value) override;

private:
  explicit Evaluation(const Code& code) : code_(code) {}

  // Strong normal form.
  bool normalizeCell(Machine& machine, Loc root);
  bool drainPositions(Machine& machine, size_t floor);
  void visitValue(Machine& machine, Term value, Loc position);
  void thawStuckCells();

  // Collapse: one step (§10.1) keeps its own stack of nodes whose fields are being collapsed.
  struct Level {
    Term node;
    uint32_t index, count;  // no fields: a lambda, whose body was taken out
    int sup;                // the leftmost field that is a superposition, -1 if none
  };
  bool collapse(Term& term);
  bool descend(Term& term);
  bool ascend(Term& term);
  Term lift(const Level& level);

  Error failure() const;

  const Code& code_;
  std::unique_ptr<Heap> heap_;
  std::unique_ptr<Machine> machine_;
  std::string error_;

  std::vector<Loc> roots_;      // cells
  std::vector<Loc> positions_;  // to be normalized; they lie in nodes that a root reaches
  struct StuckCell {
    Loc cell, value;
    unsigned nested;  // by which call of normalizeCell
  };
  std::vector<StuckCell> stuckCells_;
  unsigned nested_ = 0;

  std::vector<Level> levels_;
  uint32_t depth_ = 0;  // lambdas among them
  std::array<std::deque<Term>, 64> queue_;
};

}  // namespace vortex::hvm
