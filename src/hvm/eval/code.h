// Definitions compiled for the evaluator.
//
// A definition could be instantiated one constructor at a time, as the specification describes it. Measured on a CPU, templates are 1.6 to 3
// times faster: the head of a body is a list of operations that works on slots (lambdas take arguments from the stack without a heap cell,
// matches in head position keep what their branches need on the stack), and everything else is a template, words that are copied at once.
// Arguments that are no constructors become closures: an entry and the captured terms, run when somebody needs them.
#pragma once

#include "hvm/eval/term.h"
#include "hvm/syntax/program.h"

namespace vortex::hvm {

enum class OpKind : uint8_t {
  Slot,     // go on with the term in `slot`
  Word,     // the value `word`
  Make,     // build the template; its first root is the value
  Call,     // definition `ext`
  Endless,  // definition `ext`, whose name stands for itself
  Lam,  // take an argument into `slot`, go on at `a`; the template is the body, for readers that need the lambda itself
  Match,    // constructor or literal `ext`: hit `a`, miss `b`; the template is the match node
  Use,      // function `a`; the template is the use node
  Dup,      // template: a dup cell; its sides go to `slot` and `slot` + 1
  Let,      // one root into `slot`, counted as APP-LAM
  Push,     // push `applied` roots as arguments and `plain` roots, then `word` unless 0; go on at `a`
  Offload,  // %gnf of the root
  Unscoped,
};

/// Templates are `words` items that are copied to fresh cells, then the roots. An item with SUB set is relative to the first cell; one with the
/// tag Slot stands for the term in that slot; others are copied as they are.
struct Op {
  OpKind kind = OpKind::Word;
  uint8_t counted = 0;    // interactions that Push stands for
  bool isSwitch = false;  // Match: a literal
  uint32_t applied = 0;
  uint32_t plain = 0;
  uint32_t words = 0;
  uint32_t items = 0;
  uint32_t slot = 0;
  uint32_t a = 0, b = 0;
  uint32_t ext = 0;
  uint32_t entry = 0;  // Lam, Match, Use: of this operation
  Term word = 0;
};

inline constexpr uint32_t kNoSlot = ~0u;

/// Code that can be entered with captured terms, which go to `slots[capture …]`.
struct Entry {
  uint32_t op;
  uint32_t captures;  // first in Code::slots
  uint32_t count;
  NodeId node;
};

struct Code {
  std::vector<Op> ops{Op{}};
  std::vector<Term> items;
  std::vector<Entry> entries;
  std::vector<uint32_t> slots;
  std::vector<uint32_t> keys;   // by the same index: twice the binder, plus 1 for side one of a duplication
  std::vector<uint32_t> roots;  // by definition: the op, 0 if it has none
  uint32_t slotCount = 0;       // the largest number in use at once
  std::vector<std::string> definitions, constructors;
  bool hasEffects = false;     // %log occurs
  bool usesDevice = false;     // %gnf occurs
  bool hasUnscoped = false;    // unscoped pairs occur
  bool dropsOperands = false;  // erasures or wildcards occur: operators may drop operands
};

/// Words of the node that the term points at.
inline uint32_t wordsOf(Term term, const Code& code) {
  const uint32_t words = kNodeWords[tagOf(term)];
  return words == kCaptured ? code.entries[extOf(term)].count : words;
}

/// Errors: more entries than ext can number.
Result<Code> compile(const Program& program);

}  // namespace vortex::hvm
