// Cuts a function into the graph. Order of evaluation: operands from left to right, the right side of an assignment before its place, a
// built-in's operands before the place it changes, what a call borrows mutably reserved first and changed last.
#pragma once

#include <map>
#include <set>
#include <unordered_map>

#include "lang/flow/graph/builder.h"
#include "lang/flow/graph/lower_function.h"
#include "lang/flow/graph/owned_types.h"
#include "lang/flow/graph/views.h"
#include "lang/sema/expr_parts.h"

namespace vortex::lang::flow {

/// What the tree says about variables before it is walked.
struct VariableUses {
  std::set<const Variable*> lentMutably;                                       ///< `&mut` of it or a part of it
  std::unordered_map<const Expr*, std::vector<const Variable*>> assignedIn;    ///< by loop
  std::unordered_map<const Variable*, std::vector<const Expr*>> referencesTo;  ///< what a reference or view is bound to
};
VariableUses findVariableUses(const Expr& body);

/// Scalars and aliases that a value of the type is taken apart into; nothing if it is kept in a place.
class Leaves {
public:
  struct Leaf {
    MachineType type;
    bool isAlias = false;  ///< a reference or a view
  };
  const std::vector<Leaf>* of(Type type);
  uint32_t count(Type type) { return static_cast<uint32_t>(of(type)->size()); }
  uint32_t before(Type type, uint32_t field);

private:
  bool collect(Type type, std::vector<Leaf>& out);
  std::unordered_map<Type, std::optional<std::vector<Leaf>>> known_;
};

class Lowering {
public:
  Lowering(const Function& function, Graph& graph, const SummaryOf* summaryOf = nullptr);
  void run();

private:
  /// What a value is wanted for, in functions as written.
  enum class Want : uint8_t {
    Look,    ///< looked at
    Own,     ///< to be kept: copied or moved
    View,    ///< bound by `let`: a slice stays a view
    Lend,    ///< an argument: storage of kernels and launches is lent
    Return,  ///< left to the caller
  };
  struct Purpose {
    Want want = Want::Look;
    MoveReason reason = MoveReason::Binding;
    const Function* callee = nullptr;
    const Expr* call = nullptr;
    const Expr* writer = nullptr;  ///< View: what writes through it
  };
  static Purpose own(MoveReason reason) { return {.want = Want::Own, .reason = reason}; }
  static Purpose handOver() { return {.want = Want::Return, .reason = MoveReason::Result}; }

  /// The value of an expression: a scalar, the place that a reference names or that holds a tensor or array, or the parts of an aggregate.
  struct Operand {
    ValueId value = kNoValue;
    PlaceId place = kNoPlace;
    std::vector<Operand> parts;
    LocalId holds = kNoLocal;  ///< the local that holds the loans which the value holds, in functions as written
  };
  /// Where a variable or the result of a construct is kept.
  struct Holder {
    Type type = nullptr;
    std::optional<SlotId> slot;  ///< of its first leaf; else it is in `local`
    LocalId local = kNoLocal;
    Purpose purpose = {};
  };
  struct LoopContext {
    Label *next = nullptr, *exit = nullptr;
    const Holder* into = nullptr;
    size_t scopes = 0;
  };
  struct FrameContext {
    Label* end = nullptr;
    const Holder* into = nullptr;
    size_t scopes = 0, loops = 0;
    bool isFunction = false;  ///< the frame of the function itself
  };

  // lower.cpp: statements and control flow
  void execute(const Expr& expr, const Holder* into);
  void block(const Expr& expr, const Holder* into);
  void let(const Expr& expr);
  void assign(const Expr& expr);
  void branches(const Expr& expr, const Holder* into);
  void condition(const Expr& expr, Label& whenTrue, Label& whenFalse);
  ValueId shortCircuit(const Expr& expr);
  void inlined(const Expr& expr, const Holder* into);
  void leaveLoop(const Expr& expr);
  void leaveFrame(const Expr& expr);
  void pushScope() { scopes_.emplace_back(); }
  void popScope(const Expr& at);
  void endScopes(size_t from, const Expr& at);

  // lower_loop.cpp
  struct Trips {
    Counter counter;
    SlotId slot = 0;  ///< of the phi
    std::optional<PlaceId> array;
    std::vector<ValueId> elements;  ///< of a short list of integers
    LocalId held = kNoLocal;        ///< functions as written: holds what the list lends or holds
    bool ownsElements = true;
  };
  void loop(const Expr& expr, const Holder* into);
  void forLoop(const Expr& expr);
  ValueId chosen(std::span<const ValueId> elements, ValueId position);
  void loopBody(const Expr& expr, OpenLoop& open, Label& broke, const Holder* into, const Trips* trips);
  void bindLoopVariables(const Expr& expr, OpenLoop& open, const Trips& trips);
  void bindLoopVariable(const Holder& holder, const Operand& element, const Expr& loop);
  void leaveAt(Label& exit, Label& broke, Label& after, const Expr& expr);
  std::vector<SlotId> assignedSlots(const Expr& loop);
  void widenAliases(const Expr& loop);
  struct Referents {
    std::set<LocalId> locals;
    bool areWhole = true;  ///< whole tensors
    std::set<const Variable*> seen;
  };
  void findReferents(const Expr& reference, Referents& out);
  void findReferentsOf(const Variable& variable, Referents& out);
  PlaceId oneOf(Referents found, Type type, LocalId holder);
  Trips rangeTrips(const Expr& list);
  Trips positionTrips(uint64_t count);
  void nextTrip(const Trips& trips);
  ValueId tripNumber(const Trips& trips);
  ValueId isWithin(const Counter& counter);
  ValueId listValue(const Expr& list, ValueId position, MachineType type);
  ValueId tripCount(MachineType type, ValueId begin, ValueId end, ValueId step);

  // lower_value.cpp
  Operand value(const Expr& expr) { return value(expr, {}); }
  Operand value(const Expr& expr, const Purpose& purpose);
  Operand evaluate(const Expr& expr, const Purpose& purpose);
  ValueId scalar(const Expr& expr);
  ValueId index(const Expr& expr) { return values().convert(kUsize, scalar(expr)); }
  Operand control(const Expr& expr, const Purpose& purpose);
  std::optional<ValueId> chosen(const Expr& expr);
  ValueId unary(const Expr& expr);
  ValueId binary(const Expr& expr);
  ValueId arithmetic(const Expr& expr, BinaryOp op, Type type, ValueId lhs, ValueId rhs);
  ValueId cast(const Expr& expr);
  Operand aggregate(const Expr& expr);
  /// A value that no node expresses.
  ValueId compute(const Expr& expr, Type type, std::span<const ValueId> uses);
  Operand undefined(Type type);
  /// In functions as written a new one in every iteration.
  ValueId unknown(MachineType type);
  void flatten(const Operand& operand, std::vector<ValueId>& out) const;

  // lower_dim.cpp
  ValueId dimension(const DimExpr& expr);
  ValueId dimensionVariable(DimVarId id);
  ValueId dimensionAtom(const DimAtom& atom);
  ValueId opaqueDimension(uint32_t id);
  void bindDimensions(const Expr& let);

  // lower_place.cpp
  Operand place(const Expr& expr);
  Operand placeOfBase(const Expr& expr);
  PlaceId materialised(const Expr& expr, const Operand& operand);
  Operand element(const Expr& expr);
  Operand slice(const Expr& expr);
  Operand field(const Operand& base, uint32_t field, Type type);
  Operand load(PlaceId place, Type type, const Expr& origin);
  void store(PlaceId place, Type type, const Operand& operand, const Expr& origin, const Expr* written);
  void storeScalar(PlaceId place, ValueId value, const Expr& origin, const Expr* written);
  std::optional<SlotId> slotOf(PlaceId place);
  Operand readSlots(SlotId first, Type type);
  void writeSlots(SlotId first, Type type, const Operand& operand);
  Operand readLeaf(SlotId& next, Type type);
  void writeLeaf(SlotId& next, Type type, const Operand& operand);

  // lower_variable.cpp
  void lowerParams();
  Operand parameter(const Variable& variable, LocalId local, Type type, PlaceId place, uint32_t& leaf);
  LocalId newLocal(Type type, source::SourceRange range, const Variable* variable, Storage storage);
  const Holder& declare(const Variable& variable, bool isAlias);
  const Holder& holderOf(const Variable& variable);
  Holder temporary(Type type, const Expr& at);
  void begin(LocalId local, const Expr& at, StepKind kind);
  Operand read(const Holder& holder);
  void put(const Holder& holder, const Expr& expr);
  void letTensor(const Expr& expr);
  void letArray(const Expr& expr);
  void endAtBarrier(LocalId local);
  void fillArray(PlaceId place, Type type, const Expr& expr);

  // lower_call.cpp
  Operand builtin(const Expr& expr);
  std::optional<ValueId> position(const Expr& expr);
  std::optional<ValueId> integerFunction(const Expr& expr);
  ValueId atomic(const Expr& expr);
  void stageInto(const Expr& stage, PlaceId destination, const Expr* written);
  Operand opaque(const Expr& expr);
  void output(const Expr& expr);
  void outputOne(const Expr& value, uint32_t number, Type type);
  LocalId result(uint32_t number, Type type);

  // lower_written.cpp: variables and places of functions as written
  std::optional<Operand> written(const Expr& expr, const Purpose& purpose);
  Operand looked(const Expr& expr);
  Operand parts(const Expr& expr, const Purpose& purpose);
  void writtenParams();
  void writtenLet(const Expr& expr);
  void writtenAssign(const Expr& expr);
  Purpose tailOf(const Expr& expr, const Purpose& purpose) const;
  void handOut(const Expr& expr);
  void choose(const Expr& by, std::string_view label, BlockId loopEntry = kNoBlock);
  PlaceId variablePlace(const Variable& variable);
  PlaceId writtenBase(const Expr& expr);
  Operand usePlace(const Expr& expr, const Purpose& purpose);
  Operand used(StepKind kind, const Expr& expr, PlaceId place);
  Operand moveOut(const Expr& expr, PlaceId from, const Purpose& purpose);
  Operand lend(const Expr& expr, PlaceId from, LoanKind kind, const Purpose& purpose, bool isView = false);
  Operand valueAt(PlaceId place, Type type, Step* step);
  LocalId newTemporary(const Expr& at) { return newLocal(at.type, at.range, nullptr, storageOf(at.type)); }
  PlaceId deref(PlaceId place);
  bool isCaptured(LocalId local) const { return graph_[local].variable && graph_[local].closure < closures_; }
  void event(StepKind kind, const Expr& at, PlaceId place, uint32_t index = 0);
  void flow(LocalId to, std::span<const LocalId> from, const Expr& at);
  void flowMore(LocalId to, std::span<const LocalId> from, const Expr& at);
  void keep(std::span<const LocalId> held, const Expr& at);
  void borrow(Loan loan, const Expr& at);

  // lower_host.cpp: calls of functions as written
  struct Reserved {
    LocalId local = kNoLocal;
    uint32_t loan = 0;
    const Expr* arg = nullptr;
  };
  Operand call(const Expr& expr);
  Operand argument(const Expr& arg, Type wanted, const Purpose& purpose);
  std::optional<Reserved> reserve(const Expr& arg, Type wanted, const Expr& call);
  void activate(std::span<const Reserved> reserved, bool isLaunch);
  void spread(const Expr& call, std::span<const LocalId> held);
  Operand callClosure(const Expr& expr);
  Operand closure(const Expr& expr);
  void captureAll(const Expr& body, LocalId into);
  void capture(const Variable& variable, const Expr& at, bool isWritten, LocalId into);
  Operand writtenBuiltin(const Expr& expr);
  Operand otherBuiltin(const Expr& expr);
  Operand holding(const Expr& expr, std::span<const LocalId> held);
  void change(const Expr& target, const Expr& by) { event(StepKind::Mutate, by, place(target).place); }
  Trips listTrips(const Expr& list);

  // lower_tile.cpp
  struct TileParts {
    std::vector<std::pair<PlaceId, const Expr*>> reads;
    std::vector<ValueId> uses;
  };
  void gather(const Expr& expr, TileParts& out);
  void gatherParts(const Expr& expr, TileParts& out);
  Step& emitTile(StepKind kind, const Expr& origin, const TileParts& parts);
  void tileInto(const Expr& expr, PlaceId destination, const Expr& origin, const Expr* written);
  void assignTile(const Expr& expr);

  NodeTable& values() { return graph_.values; }
  bool isReachable() const { return b_.isReachable(); }
  void enter(const Expr& expr) {
    if (graph_.isKernel && isReachable())
      graph_.entered.try_emplace(&expr, b_.block());
  }

  const Function& function_;
  Graph& graph_;
  GraphBuilder b_;
  VariableUses uses_;
  Leaves leaves_;
  std::unordered_map<const Variable*, Holder> holders_;
  std::vector<std::optional<SlotId>> slots_;    ///< by local
  std::map<LocalId, const Expr*> temporaries_;  ///< in memory: the value of each
  std::vector<std::vector<LocalId>> scopes_;
  std::vector<LoopContext> loops_;
  std::vector<FrameContext> frames_;
  std::map<DimVarId, ValueId> boundDims_;
  std::map<uint32_t, ValueId> opaqueDims_;
  std::map<uint32_t, LocalId> results_;
  // functions as written
  const SummaryOf* summaryOf_ = nullptr;
  Views views_;
  std::map<const Variable*, PlaceId> aliases_;  ///< the checker's own names for places
  uint32_t closures_ = 0;
};

/// A value that is not memory: scalars, and structs and tuples of them.
inline bool hasValue(Type type) { return type && type->kind != TypeKind::Unit && type->kind != TypeKind::Never; }
/// A tensor with a memory space, or a view of one.
inline bool isMemory(Type type) { return type && type->isTensor() && !type->isValue; }

}  // namespace vortex::lang::flow
