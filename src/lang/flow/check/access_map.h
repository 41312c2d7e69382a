// Every access of single elements of tensors in shared, global or constant memory, with its place as a value.
#pragma once

#include "lang/flow/check/path_conditions.h"
#include "lang/flow/launch_shapes.h"

namespace vortex::lang::flow {

struct ElementAccess {
  const Expr* element = nullptr;  ///< as written
  LocalId root = kNoLocal;        ///< who owns the storage; kNoLocal: one of several
  Type tensor = nullptr;          ///< of the storage: space, layout, element
  ValueId offset = kNoValue;  ///< in elements from the start of the storage, before any swizzle; kNoValue: not known
  uint32_t firstLeaf = 0;     ///< of a struct's scalars (elementLayout), the ones that are accessed: from here on
  uint32_t leafCount = 1;
  std::vector<ValueId> conditions;                   ///< PathConditions::at
  std::vector<std::pair<ValueId, int64_t>> indices;  ///< below these extents, or the lane does not take part
  LoopId loop = kNoLoop;                             ///< the innermost
  source::SourceRange verify;  ///< of the `@verify_no_bank_conflicts` that covers it; invalid: none
  bool isQuiet = false;        ///< `@unchecked(coalescing)`
};

/// The accesses of a kernel for blocks of one shape.
class AccessMap {
  const Uniformity& uniformity_;
  PathConditions paths_;
  Values values_;

public:
  AccessMap(Graph& graph, const Structure& structure, const Uniformity& uniformity, const LaunchShapes& shapes,
            const BlockShape& shape);

  Graph& graph;
  LaneValues lanes;
  std::vector<ElementAccess> accesses;
  /// Whole tensors in shared memory that a verified statement reads or writes: by which threads, the compiler decides.
  std::vector<std::pair<source::SourceRange, const Expr*>> verifiedTiles;
  /// Every `@verify_no_bank_conflicts` of the kernel.
  std::vector<source::SourceRange> verifications;

  /// In the user's words; empty: it has no name.
  std::string nameOf(ValueId leaf) const;
  /// "`stride` = 16" for every number of the source that this case fixes.
  std::string describeCase() const;
  /// Counts the iterations of a loop around the access.
  bool isCounterOf(ValueId leaf, const ElementAccess& access) const;
  /// What lanes differ by in a way that is not known; null where no expression says it.
  const Expr* causeOf(ValueId leaf) const;
  std::string nameOf(const ElementAccess& access) const;

private:
  struct Marks {
    source::SourceRange verify;
    bool isQuiet = false;
  };
  void mark(const Expr& expr, Marks marks);
  void note(source::SourceRange verification);
  const Expr* elementOf(const Expr* expr) const;
  void add(const Step& step, BlockId block, const Access& access);
  void addTile(const Step& step, const Access& access);
  ElementAccess located(const Place& place, const Expr* element);
  ValueId sizeOf(Type tensor) const;
  ValueId extentOf(const DimExpr& extent) const;
  void addOffset(const Place& place, ElementAccess& made);
  ValueId written(const Place& place, size_t dim, const Expr* element) const;
  bool isOfBlock(const Place& place) const;
  const std::vector<__int128>* listOf(ValueId load) const;

  std::unordered_map<const Expr*, Marks> marks_;
  std::unordered_map<const Variable*, const Expr*> references_;
  std::map<std::pair<const Expr*, ValueId>, size_t> known_;
};

}  // namespace vortex::lang::flow
