#include "ir/launch.h"

#include "ir/size_attr.h"

#include "llvm/ADT/TypeSwitch.h"

namespace vortex::ir {

using mlir::LogicalResult;
using mlir::Operation;
using mlir::success;

//===-- verification ------------------------------------------------------------------------------------------===//

LogicalResult ChooseOp::verifyRegions() {
  for (Operation& op : *getBody())
    if (!llvm::isa<CaseOp>(op))
      return emitOpError() << "holds " << op.getName() << "; it holds cases";
  if (getBody()->empty())
    return emitOpError() << "has no cases";
  for (CaseOp each : getBody()->getOps<CaseOp>()) {
    if (getLeast() != each.getCost().has_value())
      return each.emitOpError() << (getLeast() ? "has no cost; the least is taken" : "has a cost; the first is taken");
    if (getLeast() && each.getWhen())
      return each.emitOpError() << "is preferred by its cost and by a condition";
    const bool isLast = each == &getBody()->back();
    const bool isAlways = !each.getNeeds() && !each.getWhen() && !getLeast();
    if (isLast && (each.getNeeds() || each.getWhen()))
      return each.emitOpError() << "is the last one and depends on the launch";
    if (!isLast && isAlways)
      return each.emitOpError() << "always runs; those after it never do";
  }
  return success();
}

namespace {

/// Walks the steps as a launch does, with what is set on the way.
class LaunchVerifier {
public:
  LaunchVerifier(LaunchOp launch, EntryOp entry)
      : launch_(launch), entry_(entry), types_(entry.getFunctionType().getInputs()) {}

  LogicalResult run() {
    if (mlir::failed(verifySteps(launch_.getBody())) || mlir::failed(verifyTemporaries()))
      return mlir::failure();
    for (unsigned i = 0; i < types_.size(); ++i)
      if (roleOf(i) == Role::Let && !everSet_.contains(i))
        return launch_.emitOpError() << "does not set argument " << i << ", a let";
    for (auto kernel : launch_->getParentOfType<mlir::ModuleOp>().getOps<KernelOp>())
      if (!run_.contains(kernel))
        return launch_.emitOpError() << "does not run @" << kernel.getSymName();
    return success();
  }

private:
  Role roleOf(unsigned argument) {
    return llvm::cast<mlir::DictionaryAttr>(entry_.getArgs()[argument]).getAs<RoleAttr>("role").getValue();
  }

  LogicalResult verifySteps(mlir::Block* block) {
    for (Operation& op : *block) {
      LogicalResult result =
          llvm::TypeSwitch<Operation*, LogicalResult>(&op)
              .Case<PhaseOp, LetOp, ReadOp, ChooseOp, LoopOp, ExchangeOp>([&](auto step) { return verifyStep(step); })
              .Default([](Operation* other) { return other->emitOpError() << "is no step of a launch"; });
      if (mlir::failed(result))
        return result;
    }
    return success();
  }

  LogicalResult verifyStep(PhaseOp phase) {
    auto kernel = mlir::SymbolTable::lookupNearestSymbolFrom<KernelOp>(phase, phase.getKernelAttr());
    if (!kernel)
      return phase.emitOpError() << "runs @" << phase.getKernel() << ", which is no kernel of the module";
    if (!run_.insert(kernel).second)
      return phase.emitOpError() << "runs @" << phase.getKernel() << ", as another step does";
    for (auto list : {kernel.getGrid(), kernel.getBlock()})
      for (mlir::Attribute size : list.value_or(mlir::ArrayAttr::get(phase.getContext(), {})))
        if (mlir::failed(verifyLets(phase, llvm::cast<SizeAttr>(size))))
          return mlir::failure();
    for (mlir::BlockArgument argument : kernel.getBody().getArguments())
      if (!argument.use_empty() && roleOf(argument.getArgNumber()) == Role::Let &&
          !set_.contains(argument.getArgNumber()))
        return phase.emitOpError() << "reads argument " << argument.getArgNumber() << ", which is not set there";
    return success();
  }

  LogicalResult verifyStep(LetOp let) {
    if (mlir::failed(verifyRole(let, let.getArgument(), Role::Let)) || mlir::failed(verifyValue(let, let.getValue())))
      return mlir::failure();
    if (llvm::any_of(argumentsOf(let.getValue()), [&](unsigned argument) { return computed_.contains(argument); }))
      computed_.insert(unsigned(let.getArgument()));
    return set(let, let.getArgument());
  }

  LogicalResult verifyStep(ReadOp read) {
    if (mlir::failed(verifyRole(read, read.getArgument(), Role::Let)) ||
        mlir::failed(verifyRole(read, read.getTemporary(), Role::Temp)))
      return mlir::failure();
    auto view = llvm::cast<ViewType>(types_[unsigned(read.getTemporary())]);
    if (view.getShape() != llvm::ArrayRef<int64_t>{1} || !view.getElementType().isInteger(64))
      return read.emitOpError() << "reads argument " << read.getTemporary() << ", which is not one i64";
    computed_.insert(unsigned(read.getArgument()));
    return set(read, read.getArgument());
  }

  LogicalResult verifyRole(Operation* op, int64_t argument, Role role) {
    if (argument < 0 || argument >= int64_t(types_.size()) || roleOf(unsigned(argument)) != role)
      return op->emitOpError() << (role == Role::Let       ? "sets"
                                   : llvm::isa<ReadOp>(op) ? "reads"
                                                           : "exchanges")
                               << " argument " << argument << ", which is no "
                               << (role == Role::Let ? "let" : "temporary");
    return success();
  }

  LogicalResult set(Operation* op, int64_t argument) {
    if (argument <= lastSet_)
      return op->emitOpError() << "sets argument " << argument << " after argument " << lastSet_
                               << "; lets are set once, in their order";
    lastSet_ = argument;
    set_.insert(unsigned(argument));
    everSet_.insert(unsigned(argument));
    return success();
  }

  LogicalResult verifyStep(LoopOp loop) {
    const size_t count = loop.getArguments().size();
    if (loop.getFirst().size() != count || loop.getNext().size() != count)
      return loop.emitOpError() << "sets " << count << " arguments to " << loop.getFirst().size()
                                << " values first and " << loop.getNext().size() << " next";
    for (auto [argument, first] : llvm::zip(loop.getArguments(), loop.getFirst().getAsRange<SizeAttr>()))
      if (mlir::failed(verifyRole(loop, argument, Role::Let)) || mlir::failed(verifyValue(loop, first)))
        return mlir::failure();
    for (int64_t argument : loop.getArguments())
      if (mlir::failed(set(loop, argument)))
        return mlir::failure();
    if (mlir::failed(verifyValue(loop, loop.getCondition())))
      return mlir::failure();
    const llvm::DenseSet<unsigned> before = set_;  // what a round sets may never be
    if (mlir::failed(verifySteps(loop.getBody())))
      return mlir::failure();
    for (SizeAttr next : loop.getNext().getAsRange<SizeAttr>())
      if (mlir::failed(verifyValue(loop, next)))
        return mlir::failure();
    set_ = before;
    return success();
  }

  LogicalResult verifyStep(ExchangeOp exchange) {
    const int64_t a = exchange.getA(), b = exchange.getB();
    for (int64_t argument : {a, b})
      if (mlir::failed(verifyRole(exchange, argument, Role::Temp)))
        return mlir::failure();
    auto extents = [&](int64_t argument) {
      return llvm::cast<mlir::DictionaryAttr>(entry_.getArgs()[unsigned(argument)]).get("extents");
    };
    if (a == b || types_[unsigned(a)] != types_[unsigned(b)] || extents(a) != extents(b))
      return exchange.emitOpError() << "exchanges arguments " << a << " and " << b
                                    << ", which are not two of one type and equal extents";
    return success();
  }

  LogicalResult verifyStep(ChooseOp choose) {
    for (CaseOp each : choose.getBody()->getOps<CaseOp>()) {
      for (std::optional<SizeAttr> condition : {each.getNeeds(), each.getWhen(), each.getCost()})
        if (condition && mlir::failed(verifyValue(each, *condition)))
          return mlir::failure();
      llvm::DenseSet<unsigned> before = set_;
      if (mlir::failed(verifySteps(each.getBody())))
        return mlir::failure();
      set_ = std::move(before);
    }
    return success();
  }

  /// An expression that decides before there are temporaries.
  LogicalResult verifyValue(Operation* op, SizeAttr size) {
    if (mlir::failed(verifySize(size, types_, [&] { return op->emitOpError(); })))
      return mlir::failure();
    for (unsigned argument : argumentsOf(size))
      if (roleOf(argument) == Role::Temp)
        return op->emitOpError() << "reads argument " << argument << ", a temporary";
    return verifyLets(op, size);
  }

  LogicalResult verifyLets(Operation* op, SizeAttr size) {
    for (unsigned argument : argumentsOf(size))
      if (roleOf(argument) == Role::Let && !set_.contains(argument))
        return op->emitOpError() << "reads argument " << argument << ", which is not set there";
    return success();
  }

  /// They are allocated when all steps are known.
  LogicalResult verifyTemporaries() {
    for (unsigned i = 0; i < types_.size(); ++i)
      if (mlir::failed(verifyOriginal(i)))
        return mlir::failure();
    for (unsigned i = 0; i < types_.size(); ++i)
      if (auto extents = llvm::cast<mlir::DictionaryAttr>(entry_.getArgs()[i]).getAs<mlir::ArrayAttr>("extents"))
        for (mlir::Attribute size : extents)
          if (mlir::failed(verifyExtent(i, llvm::cast<SizeAttr>(size))))
            return mlir::failure();
    return success();
  }

  LogicalResult verifyOriginal(unsigned temporary) {
    auto facts = llvm::cast<mlir::DictionaryAttr>(entry_.getArgs()[temporary]);
    auto number = facts.getAs<mlir::IntegerAttr>(kStandsFor);
    if (!number)
      return success();
    const int64_t original = number.getInt();
    auto isReadParam = [&] {
      auto access =
          llvm::cast<mlir::DictionaryAttr>(entry_.getArgs()[unsigned(original)]).getAs<AccessModeAttr>("access");
      return roleOf(unsigned(original)) == Role::Param && access && access.getValue() == AccessMode::Read;
    };
    auto view = llvm::dyn_cast<ViewType>(types_[temporary]);
    if (original < 0 || original >= int64_t(types_.size()) || roleOf(temporary) != Role::Temp || !view ||
        !isReadParam())
      return launch_.emitOpError() << "has argument " << temporary << " stand for argument " << original
                                   << "; temporaries stand for parameters that are only read";
    auto other = llvm::dyn_cast<ViewType>(types_[unsigned(original)]);
    // Views do not say whether integers have a sign; the spelled types do.
    auto spelled = [&](unsigned argument) {
      return llvm::cast<mlir::DictionaryAttr>(entry_.getArgs()[argument]).get("type");
    };
    if (!other || other.getRank() != view.getRank() || other.getElementType() != view.getElementType() ||
        spelled(temporary) != spelled(unsigned(original)))
      return launch_.emitOpError() << "has argument " << temporary << " stand for argument " << original
                                   << " of another type";
    return success();
  }

  LogicalResult verifyExtent(unsigned temporary, SizeAttr extent) {
    for (unsigned argument : argumentsOf(extent))
      if (computed_.contains(argument))
        return launch_.emitOpError() << "allocates argument " << temporary << " before argument " << argument
                                     << ", which is read from memory";
    return verifyLets(launch_, extent);
  }

  llvm::SmallVector<unsigned> argumentsOf(SizeAttr size) {
    llvm::SmallVector<unsigned> arguments;
    size::fold<bool>(size.getExpr(), [&](const size::Node& node, const std::array<bool, 3>&) {
      if (size::isArgument(node.op))
        arguments.push_back(node.argument);
      return true;
    });
    return arguments;
  }

  LaunchOp launch_;
  EntryOp entry_;
  mlir::TypeRange types_;
  llvm::DenseSet<Operation*> run_;
  llvm::DenseSet<unsigned> set_;       ///< lets, on the way
  llvm::DenseSet<unsigned> everSet_;   ///< lets, anywhere
  llvm::DenseSet<unsigned> computed_;  ///< lets that depend on what phases compute
  int64_t lastSet_ = -1;               ///< anywhere
};

}  // namespace

LogicalResult LaunchOp::verifySymbolUses(mlir::SymbolTableCollection&) {
  auto module = llvm::cast<mlir::ModuleOp>((*this)->getParentOp());
  if (*module.getOps<LaunchOp>().begin() != *this)
    return emitOpError() << "is not the only one of its module";
  auto entry = mlir::SymbolTable::lookupNearestSymbolFrom<EntryOp>(*this, getEntryAttr());
  if (!entry)
    return emitOpError() << "is of @" << getEntry() << ", which is no entry of the module";
  return LaunchVerifier(*this, entry).run();
}

//===-- walking -----------------------------------------------------------------------------------------------===//

LaunchOp findLaunch(mlir::ModuleOp module) {
  auto launches = module.getOps<LaunchOp>();
  return launches.empty() ? LaunchOp() : *launches.begin();
}

LaunchOp createLaunch(EntryOp entry) {
  mlir::OpBuilder builder(entry.getContext());
  builder.setInsertionPointAfter(entry);
  mlir::OperationState state(entry.getLoc(), LaunchOp::getOperationName());
  state.addAttribute("entry", mlir::FlatSymbolRefAttr::get(entry.getSymNameAttr()));
  state.addRegion()->emplaceBlock();
  return llvm::cast<LaunchOp>(builder.create(state));
}

LaunchOp launchOf(EntryOp entry) {
  auto module = entry->getParentOfType<mlir::ModuleOp>();
  if (LaunchOp known = findLaunch(module))
    return known;
  LaunchOp launch = createLaunch(entry);
  LaunchBuilder steps(launch);
  for (KernelOp kernel : module.getOps<KernelOp>())
    steps.phase(kernel);
  return launch;
}

PhaseOp phaseOf(LaunchOp launch, KernelOp kernel) {
  PhaseOp found;
  launch.walk([&](PhaseOp phase) {
    if (phase.getKernel() == kernel.getSymName())
      found = phase;
  });
  return found;
}

/// Of the cases before it none costs as little: they would have been taken. So it is enough that none behind it costs less.
SizeAttr preferenceOf(CaseOp each) {
  if (!each.getCost())
    return each.getWhen().value_or(SizeAttr());
  SizeAttr least;
  for (Operation* next = each->getNextNode(); next; next = next->getNextNode()) {
    auto other = llvm::cast<CaseOp>(next);
    SizeAttr cost = *other.getCost();
    if (other.getNeeds())
      cost = SizeAttr::get(each.getContext(), size::make(size::Op::Select, other.getNeeds()->getExpr(), cost.getExpr(),
                                                         sizeConstant(each.getContext(), INT64_MAX).getExpr()));
    least = least ? sizeBinary(size::Op::Min, least, cost) : cost;
  }
  return least ? sizeUnary(size::Op::Not, sizeBinary(size::Op::Less, least, *each.getCost())) : SizeAttr();
}

bool holds(CaseOp each, llvm::function_ref<int64_t(SizeAttr)> valueOf) {
  SizeAttr preference = preferenceOf(each);
  return (!each.getNeeds() || valueOf(*each.getNeeds()) != 0) && (!preference || valueOf(preference) != 0);
}

namespace {

class LaunchWalk {
public:
  explicit LaunchWalk(LaunchActions& actions) : actions_(actions) {}

  bool walk(mlir::Block* steps) {
    for (Operation& op : *steps) {
      const bool goesOn =
          llvm::TypeSwitch<Operation*, bool>(&op)
              .Case<PhaseOp, LetOp, ReadOp, ChooseOp, LoopOp, ExchangeOp>([&](auto step) { return take(step); })
              .Default([](Operation*) { return true; });
      if (!goesOn)
        return false;
    }
    return true;
  }

private:
  bool take(PhaseOp phase) {
    return actions_.run(mlir::SymbolTable::lookupNearestSymbolFrom<KernelOp>(phase, phase.getKernelAttr()));
  }

  bool take(LetOp let) {
    actions_.set(unsigned(let.getArgument()), actions_.valueOf(let.getValue()));
    return true;
  }

  bool take(ReadOp read) {
    actions_.set(unsigned(read.getArgument()), actions_.read(unsigned(read.getTemporary())));
    return true;
  }

  bool take(ChooseOp choose) {
    for (CaseOp each : choose.getBody()->getOps<CaseOp>()) {
      auto valueOf = [&](SizeAttr size) { return actions_.valueOf(size); };
      if (each == &choose.getBody()->back() || (choose.getDecides() ? holds(each, valueOf) : actions_.isTaken(each)))
        return walk(each.getBody());
    }
    return true;
  }

  bool take(LoopOp loop) {
    setAll(loop, loop.getFirst());
    while (actions_.valueOf(loop.getCondition()) != 0) {
      if (!actions_.round(loop) || !walk(loop.getBody()))
        return false;
      setAll(loop, loop.getNext());
    }
    return true;
  }

  void setAll(LoopOp loop, mlir::ArrayAttr values) {
    llvm::SmallVector<int64_t> known;
    for (SizeAttr value : values.getAsRange<SizeAttr>())
      known.push_back(actions_.valueOf(value));
    for (auto [argument, value] : llvm::zip(loop.getArguments(), known))
      actions_.set(unsigned(argument), value);
  }

  bool take(ExchangeOp exchange) {
    actions_.exchange(unsigned(exchange.getA()), unsigned(exchange.getB()));
    return true;
  }

  LaunchActions& actions_;
};

}  // namespace

void walkLaunch(mlir::ModuleOp module, LaunchActions& actions) {
  if (LaunchOp launch = findLaunch(module)) {
    LaunchWalk(actions).walk(launch.getBody());
    return;
  }
  for (KernelOp kernel : module.getOps<KernelOp>())
    if (!actions.run(kernel))
      return;
}

llvm::SmallVector<KernelOp> takenKernels(mlir::ModuleOp module, llvm::function_ref<bool(CaseOp)> isTaken) {
  class Taken : public LaunchActions {
  public:
    explicit Taken(llvm::function_ref<bool(CaseOp)> taken) : isTaken_(taken) {}
    bool run(KernelOp kernel) override {
      kernels.push_back(kernel);
      return true;
    }
    void set(unsigned, int64_t) override {}
    void exchange(unsigned, unsigned) override {}
    int64_t read(unsigned) override { return 0; }
    int64_t valueOf(SizeAttr) override { return 0; }
    bool isTaken(CaseOp each) override { return isTaken_(each); }

    llvm::SmallVector<KernelOp> kernels;

  private:
    llvm::function_ref<bool(CaseOp)> isTaken_;
  };
  Taken taken(isTaken);
  walkLaunch(module, taken);
  return std::move(taken.kernels);
}

SizeAttr valueOfLet(mlir::ModuleOp module, unsigned argument) {
  SizeAttr value;
  if (LaunchOp launch = findLaunch(module))
    launch.walk([&](LetOp let) {
      if (let.getArgument() == argument)
        value = let.getValue();
    });
  return value;
}

//===-- building ----------------------------------------------------------------------------------------------===//

void LaunchBuilder::phase(KernelOp kernel) {
  builder_.create<PhaseOp>(kernel.getLoc(), mlir::FlatSymbolRefAttr::get(kernel.getSymNameAttr()));
}

void LaunchBuilder::let(mlir::Location loc, unsigned argument, SizeAttr value) {
  builder_.create<LetOp>(loc, builder_.getI64IntegerAttr(argument), value);
}

void LaunchBuilder::read(mlir::Location loc, unsigned argument, unsigned temporary) {
  builder_.create<ReadOp>(loc, builder_.getI64IntegerAttr(argument), builder_.getI64IntegerAttr(temporary));
}

void LaunchBuilder::branch(mlir::Location loc, SizeAttr condition, llvm::function_ref<void()> then,
                           llvm::function_ref<void()> otherwise) {
  mlir::OpBuilder::InsertionGuard guard(builder_);
  auto inside = [&](Operation* op) { builder_.setInsertionPointToEnd(&op->getRegion(0).emplaceBlock()); };
  inside(builder_.create<ChooseOp>(loc, false, true));
  for (bool isThen : {true, false}) {
    mlir::OpBuilder::InsertionGuard here(builder_);
    inside(builder_.create<CaseOp>(loc, builder_.getStringAttr(isThen ? "then" : "else"),
                                   isThen ? condition : SizeAttr(), SizeAttr(), SizeAttr()));
    isThen ? then() : otherwise();
  }
}

void LaunchBuilder::loop(mlir::Location loc, const Round& round, llvm::function_ref<void()> steps) {
  auto list = [&](llvm::ArrayRef<SizeAttr> sizes) {
    return builder_.getArrayAttr(llvm::SmallVector<mlir::Attribute>(sizes.begin(), sizes.end()));
  };
  mlir::OpBuilder::InsertionGuard guard(builder_);
  auto loop = builder_.create<LoopOp>(loc, round.arguments, list(round.first), round.condition, list(round.next));
  builder_.setInsertionPointToEnd(&loop.getSteps().emplaceBlock());
  steps();
}

void LaunchBuilder::exchange(mlir::Location loc, unsigned a, unsigned b) {
  builder_.create<ExchangeOp>(loc, builder_.getI64IntegerAttr(a), builder_.getI64IntegerAttr(b));
}

void LaunchBuilder::choose(mlir::Location loc, llvm::ArrayRef<Way> ways) {
  auto known = [](SizeAttr condition) { return condition ? constantSize(condition) : 1; };
  auto isAlways = [&](const Way& way) { return known(way.needs).value_or(0) && known(way.when).value_or(0); };
  VORTEX_CHECK(isAlways(ways.back()), "a choice without a last way");
  llvm::SmallVector<Way> possible;
  for (const Way& way : ways) {
    if (known(way.needs) == 0 || known(way.when) == 0)
      continue;
    possible.push_back(way);
    if (isAlways(way))
      break;
  }
  possible.back().needs = possible.back().when = {};
  emitCases(loc, possible, false);
}

void LaunchBuilder::chooseLeast(mlir::Location loc, llvm::ArrayRef<Way> ways) { emitCases(loc, ways, true); }

void LaunchBuilder::emitCases(mlir::Location loc, llvm::ArrayRef<Way> ways, bool isLeast) {
  if (ways.size() == 1)
    return ways[0].emit();
  mlir::OpBuilder::InsertionGuard guard(builder_);
  auto inside = [&](Operation* op) { builder_.setInsertionPointToEnd(&op->getRegion(0).emplaceBlock()); };
  inside(builder_.create<ChooseOp>(loc, isLeast, false));
  for (const Way& way : ways) {
    mlir::OpBuilder::InsertionGuard here(builder_);
    inside(builder_.create<CaseOp>(loc, builder_.getStringAttr(way.name), way.needs, way.when, way.cost));
    way.emit();
  }
}

}  // namespace vortex::ir
