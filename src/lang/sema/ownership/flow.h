// The control-flow graph that ownership is checked on: basic blocks of statements about places, moves, borrows and the values that
// hold borrows. Expressions are cut into temporaries where their values may hold a borrow; everything else is an access.
#pragma once

#include <functional>

#include "lang/sema/ownership/place.h"

namespace vortex::lang::ownership {

using source::SourceRange;

/// A variable, or a temporary that may hold borrows or that a place is a part of.
struct Local {
  const Variable* variable = nullptr;  ///< null: a temporary
  Type type = nullptr;
  SourceRange range;
  bool carries = false;    ///< its values may hold borrows
  bool isView = false;     ///< names storage of another local; its parts are reached through a Deref
  bool isElement = false;  ///< a view: an element that a `for` walks over
  uint32_t loop = 0;       ///< innermost loop it is declared in
  uint32_t closure = 0;    ///< depth of closures it is declared in
};

enum class MoveReason : uint8_t { Binding, Argument, Launch, ToDevice, Part, Result };

struct Move {
  Place place;
  SourceRange range;
  MoveReason reason = MoveReason::Binding;
  const Function* callee = nullptr;  ///< Argument, Launch
};

enum class LoanKind : uint8_t { Shared, Mutable };

struct Loan {
  Place place;
  SourceRange range;
  LoanKind kind = LoanKind::Shared;
  Type lent = nullptr;            ///< what `&` refers to
  bool isReserved = false;        ///< of a `&mut` argument, until the call
  bool wasReserved = false;       ///< by the launch: that it was there then is known
  const Expr* launch = nullptr;   ///< an argument of this launch
  const Expr* call = nullptr;     ///< an argument of this call or launch
  bool isView = false;            ///< a slice or loop element rather than `&`
  bool isLoop = false;            ///< held by a `for` while it walks
  bool isCapture = false;         ///< by a closure
  const Expr* writer = nullptr;   ///< of a view: what writes through it
  std::optional<uint32_t> param;  ///< stands for what the caller lent as this parameter; conflicts with nothing
};

enum class Op : uint8_t {
  Declare,  ///< place.root comes to life with a value (or as storage to be written)
  Empty,    ///< place.root was declared without a value
  Read,
  Move,    ///< `move`
  Assign,  ///< place gets a new value
  Mutate,  ///< part of place is changed, or it is changed by a method
  Borrow,  ///< local = `loan` of place (and what place was reached through holds)
  Flow,    ///< local holds what `sources` hold (and, if weak, what it held)
  Keep,    ///< `sources` are used here
  Dead,    ///< place.root goes out of scope
  Return,  ///< `sources` (at most one) is what the function returns
};

struct Statement {
  Op op = Op::Read;
  Place place;
  LocalId local = kNoLocal;
  std::vector<LocalId> sources;
  uint32_t index = 0;  ///< of the move or loan
  bool isWeak = false;
  SourceRange range;
  const Expr* launch = nullptr;  ///< Move: an argument of this launch
};

struct BasicBlock {
  std::vector<Statement> statements;
  std::vector<uint32_t> successors;
  SourceRange choice;                 ///< what it takes to get here: a condition, a branch, a loop's list
  std::string_view choiceLabel;       ///< what that means for a variable that is not assigned on the way
  std::optional<uint32_t> loopEntry;  ///< the choice is to go on after a loop that was entered from this block
};

struct Graph {
  const Function* function = nullptr;
  bool inKernel = false;
  std::vector<Local> locals;
  std::vector<Move> moves;
  std::vector<Loan> loans;
  std::vector<BasicBlock> blocks;     ///< 0 is the entry
  std::vector<uint32_t> loopParents;  ///< by loop; 0 is the function

  bool isInside(uint32_t loop, uint32_t outer) const {
    for (; loop != outer; loop = loopParents[loop])
      if (loop == 0)
        return false;
    return true;
  }
  /// "`p.pixels`", or "this value".
  std::string describe(const Place& place) const;
};

/// Values of the type are duplicated by using them.
bool isCopy(Type type);
/// "T: Area + Copy", what would let values of a generic parameter be copied; empty for other types.
std::string copyBound(Type type);
/// Values of the type may hold borrows.
bool mayHoldBorrows(Type type);

}  // namespace vortex::lang::ownership
