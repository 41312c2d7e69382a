// Generates the body of one vx.kernel from statements of a kernel function.
//
// The generator stands either at block level or inside the open thread region. Regions are opened by the first per-thread statement and
// stay open: uniform statements that follow are placed before the region, per-thread ones appended to it, until a statement must be at
// block level itself (BodyFacts::Grade). Closing a region yields every variable assigned in it; unused results are pruned at the end.
//
// Variables become SSA values by construction: control flow merges the variables assigned inside it (scf results and iteration
// arguments). At block level a per-thread variable is a rank-1 tensor of block extent, a uniform one a plain value.
#pragma once

#include "irgen/arithmetic.h"
#include "irgen/entry.h"
#include "irgen/facts.h"

#include "lang/sema/kernel/roots.h"

namespace vortex::irgen {

/// Everything the phases of one kernel share.
struct KernelContext {
  const lang::Function& function;
  const TypeMap& types;
  Entry& entry;
  const Locations& locations;
  BodyFacts& facts;
  const lang::Roots& roots;
  /// No launch has replaced the kernel's own block.
  bool hasOwnBlock = true;
  bool hasOwnLaunch = true;  ///< nor its grid
  /// Threads per axis; null where only the launch knows. Whole-tensor kernels: 1.
  std::array<std::optional<int64_t>, 3> block = {};
  bool hasThreads = false;
  /// Extents in x, y, z order when surplus threads exist; empty otherwise.
  std::vector<lang::DimExpr> domain = {};
  /// Entry argument of the per-block values of a `reduce` result.
  std::optional<uint32_t> partials = {};
  /// … of the word in which the barriers of the grid count.
  std::optional<uint32_t> gridBarrier = {};
  /// Variables that name results or temporaries, and their entry arguments.
  llvm::MapVector<const lang::Variable*, uint32_t> storage = {};
  /// Named results of whole-tensor kernels that are only used whole: tiles, stored when returned.
  VariableSet tileResults = {};
  bool forChecks = false;  ///< Options::forChecks
  /// The functions that stay functions; those of which nobody needs the code are dropped in the end.
  std::map<const lang::Function*, mlir::func::FuncOp> functions = {};
  bool padsTiles = false;  ///< slices may reach over an edge: their elements there are zeros that nobody wrote
  bool failed = false;     ///< an error was emitted

  /// What is known of an Element or Slice in this launch.
  lang::Guard guardOf(const lang::Expr& access) const {
    if (access.guard != lang::Guard::ProvenForBlock)
      return access.guard;
    return hasOwnBlock ? lang::Guard::Proven : lang::Guard::Guarded;
  }
};

mlir::arith::FastMathFlags fastMath(const lang::KernelSpec& spec);

/// What a print or assert says: a `{}` in the format for each value.
struct ShownValues {
  std::string format;
  llvm::SmallVector<mlir::Value> values;
  llvm::SmallVector<bool> isUnsigned;
};

inline constexpr const char* kChosenReference = "a reference to one of several, chosen while the kernel runs; choose "
                                                "between their elements, or make them one tensor or an array of "
                                                "tensors and choose the index";

/// The vx.threads being filled.
struct ThreadRegion {
  ir::ThreadsOp op;
  mlir::Operation* lastPrologue = nullptr;
  llvm::DenseMap<mlir::Value, mlir::Value> inputs;  ///< per-thread tensor → the region's argument
  std::array<mlir::Value, 3> globalIds;
  std::array<mlir::Value, 8> inside;                 ///< by set of axes
  llvm::SmallPtrSet<const void*, 8> written;         ///< roots of views
  llvm::DenseMap<mlir::Value, mlir::Value> spilled;  ///< tile → shared view with its elements
  bool hasOutput = false;
};

class Emitter {
public:
  /// Generates into the empty body of `kernel`, whose arguments are the entry's.
  Emitter(KernelContext& context, ir::KernelOp kernel);
  /// … of a function that stays one, which each thread runs for itself.
  Emitter(KernelContext& context, mlir::func::FuncOp function);
  /// All of these statements, then vx.return.
  void emitKernel(llvm::ArrayRef<const lang::Expr*> statements);
  /// Its code. `context.function` is the function.
  void emitFunction(mlir::func::FuncOp function);
  /// Second phase of a `reduce` result: folds the partial values in a fixed tree.
  void emitReduction(ir::Combine kind, const lang::Function* function, uint32_t partials, uint32_t result);

private:
  using Value = mlir::Value;
  using Location = mlir::Location;
  using Expr = lang::Expr;
  using Variable = lang::Variable;
  using Body = llvm::function_ref<void()>;

  // regions.cpp: levels, thread regions, forms of values
  bool atBlockLevel() const { return context_.hasThreads && !inThreads_; }
  void openRegion(Location loc);
  void closeRegion();
  /// Runs `body` inside the open region (opened if needed), under the predicates of threads that have jumped away.
  void inRegion(Location loc, const VariableSet& assigned, Body body);
  /// Runs `body` with the insertion point in `block` at block level or in threads; at its end the inner region is closed.
  void inNested(mlir::Block* block, Body body);
  Value regionArgument(Value tensor);
  Value inRegionPrologue(llvm::function_ref<Value()> make);
  Value blockExtent(unsigned axis);
  Value threadId(unsigned axis);
  Value linearId();
  Value globalId(unsigned axis);
  /// Whether the thread is inside the domain along these axes (a bit each); null where every thread is.
  Value insideDomain(unsigned axes = 7);
  /// Makes block-level placement of uniform code right: closes the region when the code depends on it.
  void prepareUniform(const Expr& expr);
  Value splat(Location loc, Value scalar);
  Value firstThread(Location loc, Value tensor);
  /// Leaf `value` in the form variables of this uniformity and type have at this level.
  Value coerceLeaf(Location loc, Value value, mlir::Type expected, bool perThread);

  // variables.cpp
  void declare(const Variable* variable);
  void assign(Location loc, const Variable* variable, Flat value);
  Flat read(Location loc, const Variable* variable);
  Value readScalar(Location loc, const Variable* variable) { return scalarOrFail(loc, read(loc, variable)); }
  void setFlag(Location loc, const Variable* flag, bool value);
  llvm::SmallVector<mlir::Type, 1> leafTypes(const Variable* variable) const;
  /// The variable names a tensor in memory rather than holding a value.
  bool namesMemory(const Variable* variable) const {
    return isMemoryTensor(variable->type) && !context_.tileResults.contains(variable);
  }
  /// The variables of `assigned` that exist here and live in SSA values.
  llvm::SmallVector<const Variable*> merged(const VariableSet& assigned) const;
  llvm::SmallVector<mlir::Type> mergedTypes(llvm::ArrayRef<const Variable*> variables) const;
  llvm::SmallVector<Value> mergedValues(Location loc, llvm::ArrayRef<const Variable*> variables);
  void setMerged(llvm::ArrayRef<const Variable*> variables, mlir::ValueRange values);
  void mergeViews(Location loc, llvm::ArrayRef<const Variable*> variables, llvm::ArrayRef<Slot> after);
  Flat load(Location loc, const Place& place);
  void store(Location loc, const Place& place, Flat value);
  Value adaptTile(Location loc, Value value, mlir::RankedTensorType type, lang::Scalar kind = lang::Scalar::F32);
  struct Scope {
    explicit Scope(Emitter& emitter) : emitter(emitter), size(emitter.variables_.size()) {}
    ~Scope() {
      while (emitter.variables_.size() > size)
        emitter.variables_.pop_back();
    }
    Emitter& emitter;
    size_t size;
  };

  // statements.cpp
  /// Executes for effect and, if `into` is given, assigns the value to it.
  void evaluate(const Expr& expr, const Variable* into);
  void execute(const Expr& expr, const Variable* into);
  void executeInRegion(const Expr& expr, const Variable* into);
  void executeBlockLevel(const Expr& expr, const Variable* into);
  void give(const Expr& expr, const Variable* into, Flat value);
  void emitSequence(llvm::ArrayRef<const Expr*> statements, const Variable* into);
  void emitGuarded(Location loc, llvm::ArrayRef<const Variable*> flags, llvm::ArrayRef<const Expr*> rest,
                   const Variable* into);
  void emitLet(const Expr& expr);
  void meetBefore(const lang::Expr& let);
  void emitLetTensor(const Expr& expr);
  void beginStorage(const Expr& let);
  void emitArrayOfTensors(const Expr& let);
  void emitAssign(const Expr& expr);
  void emitAssignTile(const Expr& expr);
  void emitAssignStructs(const Expr& expr);
  void emitInline(const Expr& expr, const Variable* into);
  void emitJump(const Expr& expr);
  Flat allocate(Location loc, lang::Type type, llvm::StringRef name);
  void fill(Location loc, Value view, Value scalar);
  VariableSet assignedIn(llvm::ArrayRef<const Expr*> statements) const;

  // control.cpp
  void emitIf(Location loc, Value condition, const VariableSet& assigned, Body thenBody, Body elseBody);
  void emitIfExpr(const Expr& expr, const Variable* into, llvm::ArrayRef<const Expr*> rest, const Variable* restInto);
  mlir::scf::ForOp emitFor(Location loc, Value lower, Value upper, Value step, const VariableSet& assigned,
                           llvm::function_ref<void(Value)> body);
  void emitWhile(Location loc, const VariableSet& assigned, llvm::function_ref<Value()> condition, Body body);
  void emitWhileExpr(const Expr& expr);
  void emitForExpr(const Expr& expr);
  void emitForRange(const Expr& expr);
  void emitForList(const Expr& expr);
  void emitForArray(const Expr& expr);
  struct Trip {  ///< iteration values: start + position × step, or start shifted by position × shift bits
    Value count;
    std::function<Value(Value position)> value;
    Value lower, upper, step;  ///< set when plain scf.for bounds express it
    bool isFar = false;        ///< the count may be 2^63 or more: no scf.for
  };
  void emitTrips(const Expr& expr, const Trip& trip);
  Trip rangeTrip(const Expr& range, lang::Reach reach, bool isOfLaunch);
  void cutForLaunch(Location at, Value& begin, Value& end);
  Value farQuotient(Location at, Value length, Value step);
  std::optional<Trip> listTrip(const Expr& list, lang::Scalar kind);
  void emitIteration(const Expr& expr, Value value, Value position, lang::Scalar kind);
  /// Not one of the flags is set.
  Value noneSet(Location loc, llvm::ArrayRef<const Variable*> flags);
  llvm::SmallVector<const Variable*> loopExits(const Expr& loop) const;

  // expressions.cpp: at the current level
  Flat eval(const Expr& expr);
  Value evalScalar(const Expr& expr) { return scalarOrFail(loc(expr), eval(expr)); }
  Flat evalNode(const Expr& expr);
  Flat evalControl(const Expr& expr);
  Flat evalUnary(const Expr& expr);
  Value userBinary(const Expr& expr, lang::BinaryOp op, lang::Scalar kind, Value lhs, Value rhs);
  Value userUnary(const Expr& expr, lang::Scalar kind, Value value);
  Flat evalBinary(const Expr& expr);
  Flat evalShortCircuit(const Expr& expr);
  Flat evalCast(const Expr& expr);
  Flat evalRange(const Expr& expr);
  Value evalIndex(const Expr& expr);
  /// A block-level expression with block-level parts: its operands are computed one by one, each where it belongs.
  Flat evalBlockLevel(const Expr& expr);
  const Variable* park(const Expr& expr);
  Value scalarOrFail(Location loc, const Flat& flat);
  bool mayShortCircuitFreely(const Expr& expr) const;
  bool reportsWrapping(const Expr& expr, lang::Scalar kind) const;

  // places.cpp
  Place place(const Expr& expr);
  Place elementPlace(const Expr& expr);
  Value evalView(const Expr& expr);  ///< of a tensor of scalars
  llvm::SmallVector<Value, 1> evalViews(const Expr& expr);
  Place tensorPlace(const Expr& tensor);
  Value insideArray(const Expr& index, uint64_t count);
  Place arrayElement(const Expr& element);
  Place tileElement(const Expr& element, const Flat& tile);
  Flat evalArrayWindow(const Expr& expr);
  Flat evalSlice(const Expr& expr);
  void restrictToDomain(const Expr& element, Place& place);
  Value loadElement(Location loc, const Place& place, Value view, Value chosen);
  /// Calls back with the number of each leaf that the run-time indices of `place` can lead to, and the condition that they do; null
  /// when there are none.
  void forEachChoice(Location loc, const Place& place, uint32_t leaf, llvm::function_ref<void(uint32_t, Value)> visit);
  Value both(Location loc, Value a, Value b);
  void noteWrite(Value view);
  void noteUnchecked(mlir::Operation* access, bool unchecked);
  static bool isReachedByOthers(Value view);
  void noteSlice(mlir::Operation* access, const Expr& slice);
  const void* rootOf(Value view) const;

  // builtins.cpp
  Flat evalBuiltin(const Expr& expr);
  std::optional<Flat> evalPosition(const Expr& expr);
  std::optional<Flat> evalWarp(const Expr& expr);
  Flat evalBlockReduction(const Expr& expr);
  Flat evalAtomic(const Expr& expr);
  Value emitAtomic(const Expr& expr, const Place& element, Value view, Value mask, llvm::ArrayRef<Value> operands);
  std::optional<ShownValues> evalShown(const Expr& expr, size_t first);
  Flat evalPrint(const Expr& expr);
  Flat evalAssert(const Expr& expr);
  void emitAssert(Location at, Value condition, llvm::StringRef id, const ShownValues& shown);

  // tensors.cpp, tensor_builtins.cpp: block level
  Value evalTile(const Expr& expr);  ///< narrow floats in f32
  Value evalRoundedTile(const Expr& expr);
  Flat evalTiles(const Expr& expr);  ///< also of tensors of structs: a tile per plane
  Flat evalStructTile(const Expr& expr);
  Value loadTile(Location loc, Value view, lang::Type type);
  Value loadSlice(const Expr& slice);
  void storeTile(Location loc, Value tile, Value view);
  void storeSlice(const Expr& slice, Value tile, lang::Scalar kind);
  struct SliceWindow {
    Value view;
    llvm::SmallVector<Value> offsets, sizes;
    llvm::SmallVector<int64_t> staticSizes, dropped;
  };
  SliceWindow window(const Expr& slice);
  Value windowOn(const Expr& slice, Value source, SliceWindow parts);
  Value cutStart(Location loc, Value& offset, Value& size);
  llvm::SmallVector<Value> indicesIn(Location loc, Value view, llvm::ArrayRef<Value> indices);
  Value extentOf(Location loc, Value view, unsigned dim);
  llvm::SmallVector<int64_t> guardedDims(const Expr& slice, const SliceWindow& parts);
  void clampDropped(const Expr& slice, Value source, SliceWindow& parts, llvm::SmallVectorImpl<int64_t>& shape,
                    llvm::SmallVectorImpl<Value>& sizes);
  Value evalDot(const Expr& expr, Value acc);
  Value broadcastScalar(Location loc, Value scalar, lang::Type type);
  Value evalTensorBuiltin(const Expr& expr);
  Value evalReduction(const Expr& expr);
  Value evalSoftmax(const Expr& expr);
  Value keepDims(Location loc, Value reduced, mlir::RankedTensorType original, int64_t dim,
                 llvm::ArrayRef<Value> sizes);
  Value evalMask(const Expr& expr);
  Value offsetRows(const Expr& expr, Value row);
  Value evalArange(const Expr& expr);
  Value evalReshape(const Expr& expr);
  Value wideTile(Location loc, Value tile, lang::Scalar kind);
  llvm::SmallVector<Value> dynamicSizes(Location loc, lang::Type type);

  // staging.cpp
  void emitInitialTile(const Expr& let, llvm::ArrayRef<Value> views);
  void emitStage(const Expr& stage, llvm::ArrayRef<Value> destinations);
  void emitBarrier(const Expr& expr);
  Value spillTile(Location loc, Value tile);

  // sizes.cpp
  Value dimValue(Location loc, const lang::DimExpr& expr);   ///< as an extent: 0 where the number is negative
  Value dimNumber(Location loc, const lang::DimExpr& expr);  ///< signed
  bool isNotNegative(const lang::DimExpr& expr) const;
  Value dimVariable(Location loc, lang::DimVarId id);
  Value extentNamed(Location loc, uint32_t opaque);
  Value dimAtom(Location loc, const lang::DimAtom& atom);
  void bindDims(const Expr& let, Value value);

  // results.cpp
  void emitKernelReturn(const Expr& expr);
  void returnValue(const Expr& value, uint32_t result);
  void returnPerBlock(const Expr& value, Value destination);
  llvm::SmallVector<Value> tileOffsets(Location loc, const lang::TileSpec& spec, lang::Type type);
  void storeBlockTile(Location loc, Value tile, Value destination, lang::Type type);
  std::optional<llvm::SmallVector<Value>> elementPlace(const Expr& value, lang::Type type);
  void returnElement(Location loc, const Flat& element, const Expr& value, uint32_t result);
  Value linearBlockId(Location loc);
  Value callFunction(Location loc, const lang::Function& function, llvm::ArrayRef<Value> args);
  // functions.cpp: that stay functions
  void emitCall(const Expr& expr, const Variable* into);

  Value argument(uint32_t index) { return kernel_.getBody().getArgument(index); }

  Location loc(const Expr& expr) const { return context_.locations(expr.range); }
  /// Reports what is not supported and lets generation go on with a zero.
  Flat unsupported(const Expr& expr, const llvm::Twine& what);

  KernelContext& context_;
  const TypeMap& types_;
  BodyFacts& facts_;
  ir::KernelOp kernel_;
  mlir::OpBuilder b_;
  Arithmetic math_;
  bool inThreads_ = false;
  std::optional<ThreadRegion> region_;
  llvm::SmallVector<const Variable*> predicates_;
  llvm::MapVector<const Variable*, Slot> variables_;
  llvm::DenseMap<const Expr*, const Variable*> parked_;
  std::map<lang::DimVarId, Value> dims_;
  std::map<lang::DimExpr, Value> extents_;  ///< extents that only the body knows, by slices
  std::array<Value, 3> blockExtents_, blockBases_;
  /// A window that was cut to what lies inside its tensor. For each dimension:
  struct Cut {
    llvm::SmallVector<Value> before;   ///< how many of its elements lie before that; null: none
    llvm::SmallVector<Value> extents;  ///< as they were asked for
  };
  llvm::DenseMap<Value, Cut> cutViews_;
  llvm::DenseMap<std::pair<Value, mlir::Block*>, Value> loadedTiles_;

  friend struct Scope;
};

}  // namespace vortex::irgen
