#include "passes/join_statements.h"

#include "ir/root_view.h"
#include "ir/tile_sizes.h"
#include "passes/plan/axes.h"

namespace vortex::passes {

using namespace mlir;

namespace {

/// A store and what it is computed from.
struct Statement {
  ir::TileStoreOp store;
  llvm::SetVector<Operation*> ops;
  SmallVector<ir::TileLoadOp> loads;
  bool isPlain = true;
};

bool isRowReduce(ir::ReduceOp reduce, RankedTensorType stored) {
  auto type = cast<RankedTensorType>(reduce.getValue().getType());
  return type.getRank() == stored.getRank() && type.getRank() > 1 &&
         reduce.getDims() == ArrayRef<int64_t>(type.getRank() - 1);
}

/// A dimension more or less of extent 1.
bool keepsElements(ir::ReshapeOp reshape) {
  auto dims = [](Value tile) {
    return llvm::count_if(cast<RankedTensorType>(tile.getType()).getShape(),
                          [](int64_t extent) { return extent != 1; });
  };
  return dims(reshape.getValue()) == dims(reshape.getResult());
}

Statement statementOf(ir::TileStoreOp store) {
  Statement statement;
  statement.store = store;
  auto stored = cast<RankedTensorType>(store.getValue().getType());
  SmallVector<Value> pending{store.getValue()};
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    Operation* op = value.getDefiningOp();
    if (!isa<RankedTensorType>(value.getType()) || (op && statement.ops.contains(op)))
      continue;
    auto reduce = dyn_cast_if_present<ir::ReduceOp>(op);
    auto reshape = dyn_cast_if_present<ir::ReshapeOp>(op);
    const bool isKnown =
        op && op->getBlock() == store->getBlock() && op->getNumRegions() == 0 &&
        (isa<ir::TileLoadOp, ir::BroadcastOp, ir::IotaOp, arith::ConstantOp>(op) || ir::isElementwise(op) ||
         (reduce && isRowReduce(reduce, stored)) || (reshape && keepsElements(reshape)));
    if (!isKnown) {
      statement.isPlain = false;
      return statement;
    }
    statement.ops.insert(op);
    if (auto load = dyn_cast<ir::TileLoadOp>(op))
      statement.loads.push_back(load);
    else
      llvm::append_range(pending, op->getOperands());
  }
  return statement;
}

bool sameOffsets(OperandRange a, OperandRange b) {
  return a.size() == b.size() &&
         llvm::all_of(llvm::zip(a, b), [](auto pair) { return ir::isSameSize(std::get<0>(pair), std::get<1>(pair)); });
}

bool sameSizes(Value a, Value b) {
  SmallVector<OpFoldResult> first = ir::tileSizes(a), second = ir::tileSizes(b);
  return first.size() == second.size() && llvm::all_of(llvm::zip(first, second), [](auto pair) {
           return ir::isSameSize(std::get<0>(pair), std::get<1>(pair));
         });
}

/// The load reads the elements that `access` stores or loads, and no other ones.
template <typename Access> bool sameElements(ir::TileLoadOp load, Access access, Value tile) {
  return load.getInbounds() && access.getInbounds() && load.getView() == access.getView() &&
         load.getResult().getType() == tile.getType() && sameOffsets(load.getOffsets(), access.getOffsets()) &&
         sameSizes(load.getResult(), tile);
}

/// Accesses of 16 bytes each whose registers a thread has at once.
constexpr size_t kMostStreams = 16;

class Joiner {
public:
  explicit Joiner(Block& block) : block_(block) {
    block.walk([&](ir::TileStoreOp store) { written_.insert(ir::rootView(store.getView())); });
  }

  void run() {
    for (Operation& op : llvm::make_early_inc_range(block_)) {
      if (auto store = dyn_cast<ir::TileStoreOp>(op))
        add(statementOf(store));
      else if (!isMemoryEffectFree(&op) && !isa<ir::TileLoadOp, ir::LoadOp>(op))
        break;  // it may write anything
    }
    endGroup();
  }

private:
  using Replacements = SmallVector<std::pair<ir::TileLoadOp, Value>>;

  void add(Statement statement) {
    Replacements replacements;
    if (statement.isPlain && canJoin(statement, replacements)) {
      for (auto [at, replacement] : llvm::enumerate(replacements)) {
        auto [load, by] = replacement;
        for (auto& later : llvm::drop_begin(replacements, at + 1))
          if (later.second == load.getResult())
            later.second = by;  // the group has both, and this one may be gone now
        replace(statement, load, by);
      }
      dropReplaced(statement.store);
    } else {
      endGroup();
    }
    const bool isPlain = statement.isPlain;
    group_.push_back(std::move(statement));
    if (!isPlain)
      endGroup();
  }

  void endGroup() {
    if (group_.empty())
      return;
    Operation* end = group_.back().store;
    for (Operation* op = start_ ? start_->getNextNode() : &block_.front(); op != end; op = op->getNextNode())
      op->walk([&](Operation* inner) {
        if (Value root = readBy(inner))
          readBefore_.insert(root);
      });
    Operation* first = end;
    for (Statement& each : group_) {
      writtenBefore_.insert(ir::rootView(each.store.getView()));
      if (each.store->isBeforeInBlock(first))
        first = each.store;
    }
    for (Statement& each : group_)
      if (each.store != first)
        each.store->setAttr(kJoinedAttribute, UnitAttr::get(first->getContext()));
    start_ = end;
    group_.clear();
  }

  static Value readBy(Operation* op) {
    if (auto load = dyn_cast<ir::TileLoadOp>(op))
      return ir::rootView(load.getView());
    auto load = dyn_cast<ir::LoadOp>(op);
    return load ? ir::rootView(load.getView()) : Value();
  }

  /// The statement has the group's extents and joins its phase there: no access of the statement's would part them.
  bool canJoin(Statement& statement, Replacements& replacements) {
    if (group_.empty() || !sameSizes(statement.store.getValue(), group_.front().store.getValue()) ||
        !followsDirectly(statement))
      return false;
    bool shares = false;
    for (ir::TileLoadOp load : statement.loads) {
      Value root = ir::rootView(load.getView());
      if (writtenBefore_.contains(root) || !isInPlace(load))
        return false;
      ir::TileStoreOp store = lastStore(root, load);
      if (store && !isOnlyOf(load, statement))
        return false;  // others would compute what is read here again, from what was overwritten
      Value by = store ? Value(store.getValue()) : loaded(load);
      if (by)
        replacements.push_back({load, by});
      const bool isWhole = cast<RankedTensorType>(load.getType()).getRank() ==
                               cast<RankedTensorType>(statement.store.getValue().getType()).getRank() &&
                           sameSizes(load.getResult(), statement.store.getValue());
      shares |= isWhole && (by || isShared(load));
    }
    return (shares || isAlike(statement)) && streams(statement) <= kMostStreams && canWrite(statement);
  }

  /// Statements that share nothing save a launch together, where neither has rows to keep and accesses of both are as wide.
  bool isAlike(Statement& statement) {
    auto hasRows = [](Statement& each) {
      return llvm::any_of(each.ops, [](Operation* op) { return isa<ir::ReduceOp>(op); });
    };
    auto width = [](Statement& each) { return getElementTypeOrSelf(each.store.getValue().getType()); };
    return !hasRows(statement) && llvm::none_of(group_, hasRows) && width(statement) == width(group_.front());
  }

  /// All between the group and the store that has a place of its own is the statement's, and so is nothing before but what the group has.
  bool followsDirectly(Statement& statement) {
    for (Operation* op = group_.back().store->getNextNode(); op != statement.store; op = op->getNextNode()) {
      const bool isPlaced = isa<ir::ReduceOp, ir::DotOp, ir::ScanOp, ir::ReshapeOp>(op) || op->getNumRegions() != 0 ||
                            written_.contains(readBy(op));
      if (isPlaced && !statement.ops.contains(op))
        return false;
    }
    return llvm::all_of(statement.ops, [&](Operation* op) {
      return !isa<ir::ReduceOp>(op) || group_.back().store->isBeforeInBlock(op) ||
             llvm::any_of(group_, [&](Statement& each) { return each.ops.contains(op); });
    });
  }

  /// What the group stores to the memory of a load are the elements that are loaded.
  bool isInPlace(ir::TileLoadOp load) {
    return llvm::all_of(group_, [&](Statement& each) {
      return ir::rootView(each.store.getView()) != ir::rootView(load.getView()) ||
             sameElements(load, each.store, each.store.getValue());
    });
  }

  /// Nothing but the statement's store needs the load.
  static bool isOnlyOf(ir::TileLoadOp load, Statement& statement) {
    llvm::DenseSet<Operation*> seen;
    SmallVector<Operation*> pending{load};
    while (!pending.empty())
      for (Operation* user : pending.pop_back_val()->getUsers()) {
        if (user == statement.store.getOperation())
          continue;
        if (!statement.ops.contains(user))
          return false;
        if (seen.insert(user).second)
          pending.push_back(user);
      }
    return true;
  }

  /// The group's last store to the memory, before `op`.
  ir::TileStoreOp lastStore(Value root, Operation* op) {
    ir::TileStoreOp last;
    for (Statement& each : group_)
      if (ir::rootView(each.store.getView()) == root && each.store->isBeforeInBlock(op))
        last = each.store;
    return last;
  }

  /// What the group has loaded of the same elements. They are what they were: `lastStore` of `load` is none.
  Value loaded(ir::TileLoadOp load) {
    for (Statement& each : group_)
      for (ir::TileLoadOp other : each.loads)
        if (other != load && !load.getOther() && !other.getOther() && other->isBeforeInBlock(load) &&
            sameElements(load, other, other.getResult()))
          return other.getResult();
    return {};
  }

  bool isShared(ir::TileLoadOp load) {
    return llvm::any_of(group_, [&](Statement& each) { return llvm::is_contained(each.loads, load); });
  }

  size_t streams(Statement& statement) {
    size_t count = statement.loads.size() + 1;
    for (Statement& each : group_)
      count += each.loads.size() + 1;
    return count;
  }

  /// Nothing before the group touches what the statement stores; what it and the group access of that memory are the same elements.
  bool canWrite(Statement& statement) {
    ir::TileStoreOp store = statement.store;
    Value root = ir::rootView(store.getView());
    if (readBefore_.contains(root) || writtenBefore_.contains(root))
      return false;
    auto accessesSame = [&](Statement& other) {
      return llvm::all_of(other.loads, [&](ir::TileLoadOp load) {
        return ir::rootView(load.getView()) != root || sameElements(load, store, store.getValue());
      });
    };
    return accessesSame(statement) && llvm::all_of(group_, [&](Statement& each) {
             ir::TileStoreOp before = each.store;
             return accessesSame(each) &&
                    (ir::rootView(before.getView()) != root ||
                     (before.getInbounds() && store.getInbounds() && before.getView() == store.getView() &&
                      before.getValue().getType() == store.getValue().getType() &&
                      sameOffsets(before.getOffsets(), store.getOffsets())));
           });
  }

  /// All that read it have its value by now.
  void dropReplaced(ir::TileStoreOp store) {
    ir::TileStoreOp before = lastStore(ir::rootView(store.getView()), store);
    if (!before)
      return;
    for (Statement& each : group_)
      if (each.store == before)
        each.store = store;
    before.erase();
  }

  void replace(Statement& statement, ir::TileLoadOp load, Value by) {
    auto mayUse = [&](Operation* user) { return statement.ops.contains(user) || user == statement.store; };
    SmallVector<Operation*> users = llvm::to_vector(llvm::make_filter_range(load->getUsers(), mayUse));
    load.getResult().replaceUsesWithIf(by, [&](OpOperand& use) { return mayUse(use.getOwner()); });
    drop(statement, load);
    auto instead = by.getDefiningOp<ir::TileLoadOp>();
    for (Statement& each : group_) {
      // Statements of the group that share an operation with this one load what it loads now.
      const bool shares = llvm::any_of(users, [&](Operation* user) { return each.ops.contains(user); });
      if (shares && instead && each.ops.insert(instead))
        each.loads.push_back(instead);
      if (load->use_empty())
        drop(each, load);
    }
    if (load->use_empty())
      load.erase();
  }

  static void drop(Statement& statement, ir::TileLoadOp load) {
    statement.ops.remove(load);
    llvm::erase(statement.loads, load);
  }

  Block& block_;
  llvm::DenseSet<Value> written_;                     ///< memory that the kernel stores to
  std::vector<Statement> group_;                      ///< that share a phase, in order
  Operation* start_ = nullptr;                        ///< the last operation before them
  llvm::DenseSet<Value> readBefore_, writtenBefore_;  ///< memory, up to there
};

}  // namespace

void joinStatements(ir::KernelOp kernel) { Joiner(kernel.getBody().front()).run(); }

}  // namespace vortex::passes
