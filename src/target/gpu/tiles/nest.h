// One fused loop nest over the threads of a block: stores, reductions and prefix combinations that run over the same rows.
//
//   for each row (the leading `rowRank` dimensions), one team of threads per row
//     one pass over the row per level of reductions; all reductions of a level share it
//     the stores
//
// A row that fits the team's registers is read once: all passes run over the same unrolled positions, and what one pass computed at a
// position the next ones find there. Longer rows are read again by each pass. Without reductions there are no rows: all threads share
// all elements. Every nest exists in a wide version, 16 bytes per access, for memory that turns out to be aligned and contiguous when
// the block runs, and in one that works element by element and assumes nothing. Between them, for rows that start anywhere, stands a
// peeled one: the aligned pieces inside each row are accessed whole, the elements before and after them one by one, one per thread.
#pragma once

#include "target/gpu/tiles/evaluator.h"
#include "target/gpu/tiles/reduction.h"

#include <llvm/ADT/MapVector.h>

namespace vortex::target::gpu::tiles {

/// A tile and where it goes.
struct Root {
  mlir::Value value;
  Place sink;
  mlir::Operation* store = nullptr;  ///< null: the sink is shared memory
};

class Nest {
public:
  /// Brings a tile into memory, before the nest; false: it cannot. `along`: the dimension it is going to be read along, where that is not
  /// its last.
  using Materialize = std::function<bool(mlir::Value tile, std::optional<unsigned> along)>;
  Nest(Evaluator& evaluator, Materialize materialize)
      : v_(evaluator), l(evaluator.l), materialize_(std::move(materialize)) {}

  void emitStores(llvm::ArrayRef<Root> roots);
  /// A load into memory whose neighbours are those along dimension `along` (turned.cpp).
  void emitTurned(const Root& root, unsigned along);
  /// A reduction of all dimensions; the same in every thread.
  Value emitScalar(ir::ReduceOp op);
  /// Brings everything into memory that must be there to evaluate `tile` at any index.
  void prepareExpression(mlir::Value tile);

  /// Row dimensions that a fused nest of this root has; nothing: no reductions to fuse.
  std::optional<unsigned> rowRank(mlir::Value tile);
  /// Evaluating `root` into its sink reads memory of the sink at other positions than the one being written.
  bool readsOwnSink(const Root& root);

private:
  using Uses = llvm::SmallVector<std::pair<mlir::Value, DimMap>>;
  /// What is computed in one sweep over the dimensions after the rows.
  struct Pass {
    llvm::SmallVector<ir::ReduceOp, 2> reduces;
    llvm::SmallVector<unsigned, 2> roots;
    Values inner;                         ///< extents of the inner loops; empty: one element per row
    llvm::SmallVector<ir::ScanOp> scans;  ///< needed by it, operands before users
    unsigned loops = 0;                   ///< rows included
    // online.cpp
    ir::ReduceOp maximum = {};  ///< of `reduces`; not null: `sums` are of exp(x - maximum) of its elements x
    bool isBase2 = false;       ///< or exp2
    llvm::SmallVector<ir::ReduceOp, 2> sums = {};
  };
  /// Elements per access, and positions each thread keeps of a row (0: the row is swept by loops).
  struct Version {
    unsigned lanes = 1;
    unsigned positions = 0;
    bool full = false;  ///< all positions exist; else those past the end access nothing, at the address they would have
    bool early = false;   ///< everything is loaded before the first pass
    bool peeled = false;  ///< rows start anywhere
  };
  /// One position of a sweep.
  struct Position {
    llvm::SmallVector<Index> inner;
    Value exists;             ///< null: always
    bool predicated = false;  ///< accesses need `exists`
    unsigned lanes = 1;
  };
  /// A kept tile whose row comes into shared memory with the first pass.
  struct Resident {
    mlir::Value tile;
    std::optional<Place> source;  ///< nothing: computed
    Place shared;
    bool isFetched = false;
  };
  /// Tensors of short rows that come into shared memory group by group, and leave it (packed.cpp).
  struct Packed {
    struct Tensor {
      mlir::Value tile;
      Place source;
      std::optional<unsigned> root;  ///< number of the root that it is; nothing: it is read
      Place shared;
      int64_t offset = 0;  ///< bytes in front of it in shared memory
    };
    std::vector<Tensor> tensors;
    std::vector<Root> roots;  ///< of the nest, in shared memory where they are tensors
    int64_t longest = 0;      ///< row, in elements
    int64_t perThread = 0;    ///< elements of each tensor in a group, at most
    int64_t bytes = 0;        ///< of shared memory
    ir::SizeAttr tail;        ///< the same where rows are short enough
  };
  struct Kept {
    Values inner;
    llvm::SmallVector<Position> positions;
  };

  // plan
  void plan(llvm::ArrayRef<Root> roots, ir::ReduceOp scalar);
  mlir::Value findMustMaterialize();
  mlir::Value findMust(mlir::Value tile, const DimMap& map, unsigned loops);
  bool isFused(ir::ReduceOp op, llvm::ArrayRef<DimUse> map) const;
  bool isFused(ir::ScanOp op, llvm::ArrayRef<DimUse> map) const;
  bool isInline(ir::ReduceOp op, llvm::ArrayRef<DimUse> map, unsigned loops) const;
  bool isPicked(ir::ReduceOp op, const DimMap& map) const;  // picked.cpp
  bool sweepsRows() const;
  void placePicked();
  DimMap operandMap(ir::ReduceOp op) const;
  Values reducedExtents(ir::ReduceOp op);
  unsigned levelOf(ir::ReduceOp op);
  unsigned levelBelow(mlir::Value tile, const DimMap& map);
  void makePasses();
  void findScans(Pass& pass);
  Uses usesOf(const Pass& pass) const;
  bool conflicts(const Place& place, llvm::ArrayRef<DimUse> map) const;
  std::optional<unsigned> crosswiseDim(ir::TileLoadOp load, llvm::ArrayRef<DimUse> map, unsigned loops) const;
  unsigned chooseLanes();
  llvm::SmallVector<mlir::Value> keptTiles();
  Hazards::State announce();
  void forEachAccess(llvm::function_ref<void(mlir::Value, const DimMap&, const Place&)> visit);

  // emission
  Values emitVersions();
  Values emitChosen();
  Values emitVersion(Version swept, unsigned kept);
  Team shortTeam(unsigned positions);
  Values emitShort(unsigned positions);
  // packed.cpp
  std::optional<Packed> packedRows(unsigned positions, bool isSummed);
  Value arePacked(const Packed& packed);
  void movePacked(const Packed& packed, const Packed::Tensor& tensor, Value start, Value shift, Value elements);
  Values emitPacked(Packed& packed, unsigned positions);
  Values emitAnywhere(unsigned lanes, unsigned kept);
  Values emitPeeled(unsigned lanes, unsigned kept, bool elementwise);
  bool findShifted(Requirements& wide, unsigned lanes);
  // shifted.cpp
  std::optional<Place> shiftedSource();
  Values emitShifted(const Place& source, llvm::function_ref<Values()> otherwise);
  void emitShiftedPieces(const Place& source);
  bool isWholePhase();
  Value longestRow();
  void setRows(int rank);
  std::optional<Place> peelReference(unsigned lanes);
  void requireInside(Requirements& wide);
  void markBlocks(int64_t blocks, bool branches = false);
  void markElsewhere();
  Value fits(Version version, Value pieces);
  Value fillsBlock(Version version);
  Value fillsTeams(Version version, int64_t widest);
  Values fill(Version version, int64_t blocks);
  Values branch(Value condition, llvm::function_ref<Values()> then, llvm::function_ref<Values()> otherwise);
  Values branchOnFacts(Requirements& wide, llvm::function_ref<Values()> then, llvm::function_ref<Values()> otherwise);
  void emitTurnedBlocks(const Root& root, unsigned along, unsigned side);
  Values emitRows(Version version);
  // resident.cpp
  Values emitLong(Version swept, int64_t inRegisters);
  Values emitFetched(Version swept, int64_t inRegisters);
  llvm::SmallVector<mlir::Value> residentTiles();
  bool stands(mlir::Value tile, llvm::SmallVectorImpl<mlir::Value>& kept);
  void placeResident(Version version);
  void startFetching(const Pass& pass);
  void keepResident(llvm::ArrayRef<Position> positions);
  void endFetching();
  // online.cpp
  bool join(Pass& pass, const Pass& next);
  Values joined(llvm::function_ref<Values()> body);
  Values onlineStep(const Pass& pass, llvm::ArrayRef<Position> positions, const Values& carried,
                    llvm::MutableArrayRef<Reduction> reductions);
  void emitOnlinePass(const Pass& pass, Version version, bool isFirst);
  unsigned onlineUnroll(const Pass& pass);
  void emitRow(Version version);
  void emitReducePass(const Pass& pass, Version version, bool isFirst);
  void emitStorePass(const Pass& pass, Version version);
  void emitSingles(const Pass& pass);
  void emitSwept(const Pass& pass, Version version, const Values& carries);
  // row_scans.cpp
  static constexpr int64_t kScanBlocks = 4;  ///< per core that registers are shared out for: 64 per thread
  void emitPeeledScan(const Pass& pass, Version version, unsigned unroll, Values carries);
  void emitHeldScan(const Pass& pass, Version version);
  static bool continuesBlocks(const Pass& pass);
  Place placeOfPiece(mlir::Value tile, int64_t bound, Version version);
  void storeScanned(const Pass& pass, llvm::ArrayRef<Position> positions, llvm::MutableArrayRef<Value> carries);
  llvm::SmallVector<Position> positionsFrom(const Pass& pass, Version version, Value base, Value items,
                                            unsigned unroll);
  Position singlesFrom(Value first, Value end);
  // columns.cpp
  bool reducesInside(const Pass& pass);
  void emitColumns(const Pass& pass, Version version);
  llvm::ArrayRef<Position> keptPositions(const Pass& pass, Version version);
  void addPredicated(Kept& kept, const Pass& pass, Version version);
  Value unknownZero();
  using SweepBody = llvm::function_ref<void(llvm::ArrayRef<Position>, Values& carried)>;
  Values sweep(const Pass& pass, Version version, unsigned unroll, Values carried, SweepBody body);
  Value itemCount(const Values& inner, unsigned lanes);
  Position positionOf(const Pass& pass, Version version, Value item, Value exists);
  Position singlePosition(const Pass& pass, Version version);
  Value peeledItems(const Pass& pass, Version version);
  void findHead(Version version);
  using PositionBody = llvm::function_ref<Values(const Position&)>;
  Values whereExists(const Pass& pass, const Position& position, PositionBody body, Values otherwise,
                     bool keeps = true);
  llvm::DenseSet<mlir::Value> neededAfter(const Pass& pass, const llvm::DenseSet<mlir::Value>& computed);
  At at(const Position& position) const;
  At reduceAt(ir::ReduceOp op, const Position& position) const;
  void storeRoots(const Pass& pass, const Position& position);
  void touchAll(const Pass& pass, llvm::ArrayRef<Position> positions);
  Value masked(Reduction& reduction, const Position& position, Value value);
  void scanSteps(const Pass& pass, llvm::ArrayRef<Position> positions, llvm::MutableArrayRef<Value> carries);
  Values scanStart(const Pass& pass);
  void primeInvariants(const Pass& pass);
  llvm::SmallVector<Index> digits(Value linear, llvm::ArrayRef<Value> extents);
  std::pair<Value, Value> divide(Value value, Value by);
  void fixShortSides(Requirements& wide);
  unsigned unrollOf(const Pass& pass, unsigned lanes, bool stores);
  unsigned loadsOf(const Pass& pass);
  bool assumesAlignment();
  int64_t residentBlocks();
  bool isSmall();
  int64_t narrowThreads();
  bool anyComputed(llvm::function_ref<bool(const Pass&, mlir::Operation*)> holds);
  bool hasQuotients();
  bool hasFunctions();
  Value needsMore(Version version, unsigned positions, unsigned more);
  static unsigned moreThan(unsigned positions);
  bool readsNarrow();
  bool readsEarly(unsigned positions);
  unsigned positionsPerThread(unsigned words, unsigned lanes);
  unsigned keptWords();

  Evaluator& v_;
  Lowering& l;
  Materialize materialize_;
  std::optional<unsigned> along_;  ///< how the tile that findMust found is read
  llvm::ArrayRef<Root> roots_;
  ir::ReduceOp scalar_;
  int64_t most_ = INT64_MAX;                       ///< elements of a root
  int rowRank_ = -1;                               ///< -1: nothing fused
  Values rows_;                                    ///< extents
  llvm::MapVector<ir::ReduceOp, unsigned> fused_;  ///< with level
  llvm::DenseSet<mlir::Operation*> fusedScans_;
  llvm::DenseSet<mlir::Value>
      stubborn_;  ///< tiles that could not be brought into memory: computed again wherever they are needed
  std::vector<Pass> passes_;
  Team team_;
  Value elements_;                  ///< of the longest row
  llvm::SmallVector<Index> row_;    ///< indices of the row
  Value rowExists_;                 ///< null: always
  std::optional<Place> reference_;  ///< peeled versions: whose rows' alignment counts
  Value head_;                      ///< elements of the row before its first aligned piece
  Value rowsFrom_, rowsTo_;         ///< the rows that are worked on; null: all
  Value firstRow_;                  ///< of the rows the block's teams work on; null: no loop over rows
  llvm::SmallVector<Kept, 2> kept_;
  llvm::SmallVector<Resident, 1> resident_;   ///< of the version being emitted
  llvm::SmallVector<Resident*, 1> fetching_;  ///< by the pass being emitted
  Value scalarResult_;
};

}  // namespace vortex::target::gpu::tiles
