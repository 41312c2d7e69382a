#include "target/interface/describe.h"

#include "analysis/shared_lifetimes.h"
#include "artifact/steps.h"
#include "base/check.h"
#include "ir/launch.h"
#include "ir/location.h"
#include "ir/size_attr.h"
#include "layout/byte_ranges.h"
#include "passes/phases.h"
#include "passes/stream_reductions.h"

#include <llvm/ADT/TypeSwitch.h>

namespace vortex::target {

using artifact::ScalarType;

static ScalarType scalarType(mlir::Type type, mlir::DictionaryAttr facts) {
  if (auto spelled = facts.getAs<mlir::StringAttr>("type"))
    for (int i = 0; i <= int(ScalarType::F64); ++i)
      if (spelled.getValue() == artifact::name(ScalarType(i)))
        return ScalarType(i);
  if (type.isF16() || type.isBF16())
    return type.isF16() ? ScalarType::F16 : ScalarType::BF16;
  if (type.isFloat8E4M3FN() || type.isFloat8E5M2())
    return type.isFloat8E4M3FN() ? ScalarType::F8E4M3 : ScalarType::F8E5M2;
  if (type.isF32() || type.isF64())
    return type.isF32() ? ScalarType::F32 : ScalarType::F64;
  if (type.isIndex())
    return ScalarType::U64;
  switch (type.getIntOrFloatBitWidth()) {
  case 1: return ScalarType::Bool;
  case 8: return ScalarType::I8;
  case 16: return ScalarType::I16;
  case 32: return ScalarType::I32;
  case 64: return ScalarType::I64;
  }
  VORTEX_UNREACHABLE("argument of %u bits", type.getIntOrFloatBitWidth());
}

static artifact::Param describeArgument(ir::EntryOp entry, unsigned number, uint32_t slot, size::Table& sizes) {
  mlir::TypeRange types = entry.getFunctionType().getInputs();
  auto facts = mlir::cast<mlir::DictionaryAttr>(entry.getArgs()[number]);
  artifact::Param param;
  param.name = facts.getAs<mlir::StringAttr>("name").str();
  param.firstSlot = slot;
  auto view = mlir::dyn_cast<ir::ViewType>(types[number]);
  param.type = scalarType(view ? view.getElementType() : types[number], facts);
  param.isTensor = bool(view);
  param.rank = view ? view.getRank() : 0;
  if (auto access = facts.getAs<ir::AccessModeAttr>("access"))
    param.access = artifact::Access(unsigned(access.getValue()));
  if (auto extents = facts.getAs<mlir::ArrayAttr>("extents"))
    for (ir::SizeAttr size : extents.getAsRange<ir::SizeAttr>())
      param.extents.push_back(sizes.add(size.getExpr()));
  param.zeroFill = bool(facts.get("zero"));
  if (auto bytes = facts.getAs<mlir::IntegerAttr>("struct_bytes")) {
    param.structBytes = static_cast<uint32_t>(bytes.getInt());
    param.fieldOffset = static_cast<uint32_t>(facts.getAs<mlir::IntegerAttr>("field_offset").getInt());
  }
  if (auto original = facts.getAs<mlir::IntegerAttr>(ir::kStandsFor))
    param.original = static_cast<uint32_t>(original.getInt());  // parameters come first
  return param;
}

void describeInterface(ir::EntryOp entry, artifact::Kernel& kernel) {
  mlir::TypeRange types = entry.getFunctionType().getInputs();
  llvm::SmallVector<uint32_t> slots = ir::argumentSlots(types);
  kernel.slotCount = slots.back();
  if (auto notes = entry->getAttrOfType<mlir::ArrayAttr>(passes::kNotesAttr))
    for (auto note : notes.getAsRange<mlir::StringAttr>())
      kernel.notes.push_back(note.str());
  for (unsigned i = 0; i < types.size(); ++i) {
    artifact::Param param = describeArgument(entry, i, slots[i], kernel.sizes);
    switch (mlir::cast<mlir::DictionaryAttr>(entry.getArgs()[i]).getAs<ir::RoleAttr>("role").getValue()) {
    case ir::Role::Param: kernel.params.push_back(std::move(param)); break;
    case ir::Role::Result: kernel.results.push_back(std::move(param)); break;
    case ir::Role::Let: kernel.lets.push_back(std::move(param)); break;
    case ir::Role::Temp: kernel.temporaries.push_back(std::move(param)); break;
    }
  }
  for (int64_t number : entry.getScalarResults())
    kernel.scalarResults.push_back(number - kernel.params.size());
  for (auto constraint : entry.getConstraints().getAsRange<ir::ConstraintAttr>()) {
    artifact::Constraint described{
        kernel.sizes.add(constraint.getCondition().getExpr()), constraint.getMessage().str(), {}};
    for (ir::SizeAttr operand : constraint.getOperands())
      described.operands.push_back(kernel.sizes.add(operand.getExpr()));
    kernel.constraints.push_back(std::move(described));
  }
}

int64_t innermostStride(const artifact::Kernel& kernel, unsigned number) {
  for (const auto* list : {&kernel.params, &kernel.results}) {
    if (number < list->size()) {
      const artifact::Param& param = (*list)[number];
      return param.structBytes ? param.structBytes / artifact::byteSize(param.type) : 1;
    }
    number -= list->size();
  }
  return 1;
}

static bool isShared(ir::AllocOp alloc) { return alloc.getResult().getType().getSpace() == ir::Space::Shared; }

using Places = llvm::DenseMap<mlir::Operation*, int64_t>;

/// Gives the block's shared allocations their places; those that outlive it are free again at its end.
static void placeShared(mlir::Block& block, const analysis::SharedLifetimes& lifetimes, layout::ByteRanges& ranges,
                        Places& places) {
  llvm::SmallVector<mlir::Operation*> own;
  for (mlir::Operation& op : block) {
    if (auto alloc = mlir::dyn_cast<ir::AllocOp>(op); alloc && isShared(alloc)) {
      ir::ViewType type = alloc.getResult().getType();
      places[&op] = ranges.allocate(type.numElements() * type.elementBytes(), 16);
      own.push_back(&op);
    }
    for (mlir::Region& nested : op.getRegions())
      for (mlir::Block& inner : nested)
        placeShared(inner, lifetimes, ranges, places);
    for (mlir::Operation* ended : lifetimes.endingAfter(&op)) {
      ranges.free(places.at(ended));
      places.erase(ended);
    }
  }
  for (mlir::Operation* alloc : own)
    if (auto place = places.find(alloc); place != places.end()) {
      ranges.free(place->second);
      places.erase(place);
    }
}

artifact::SharedTensor describeSharedTensor(ir::AllocOp alloc) {
  artifact::SharedTensor tensor;
  ir::ViewType type = alloc.getResult().getType();
  tensor.name = alloc.getName().value_or("").str();
  if (auto spelled = alloc->getAttrOfType<mlir::StringAttr>("vx.type")) {
    tensor.type = spelled.str();
  } else {
    llvm::raw_string_ostream out(tensor.type);
    out << type;
  }
  if (mlir::FileLineColLoc at = ir::fileLocation(alloc.getLoc())) {
    tensor.file = at.getFilename().str();
    tensor.line = at.getLine();
  }
  return tensor;
}

/// Everything but reading counts as writing.
static bool mayWrite(mlir::Value view) {
  return llvm::any_of(view.getUsers(), [&](mlir::Operation* user) {
    if (auto subview = mlir::dyn_cast<ir::SubviewOp>(user))
      return mayWrite(subview.getResult());
    if (auto store = mlir::dyn_cast<ir::StoreOp>(user))
      return store.getView() == view;
    return !mlir::isa<ir::DimOp, ir::LoadOp, ir::TileLoadOp>(user);
  });
}

artifact::Phase describePhase(ir::KernelOp phase, artifact::Kernel& kernel) {
  artifact::Phase described;
  size::Table& sizes = kernel.sizes;
  described.name = phase.getSymName().str();
  described.symbol = "vx_" + described.name;
  for (char& c : described.symbol)  // the C header declares it
    if (!llvm::isAlnum(c))
      c = '_';
  for (unsigned axis = 0; axis < 3; ++axis) {
    described.grid[axis] = sizes.add(mlir::cast<ir::SizeAttr>((*phase.getGrid())[axis]).getExpr());
    described.block[axis] = sizes.add(mlir::cast<ir::SizeAttr>((*phase.getBlock())[axis]).getExpr());
  }
  described.isCooperative = phase->hasAttr(ir::kCooperativeAttr);
  layout::ByteRanges shared;
  Places places;
  placeShared(phase.getBody().front(), analysis::SharedLifetimes(phase), shared, places);
  described.sharedBytes = sizes.constant(shared.peak());
  size_t first = kernel.params.size() + kernel.results.size() + kernel.lets.size();
  for (uint32_t i = 0; i < kernel.temporaries.size(); ++i)
    if (mayWrite(phase.getBody().getArgument(static_cast<unsigned>(first + i))))
      described.written.push_back(i);
  return described;
}

static_assert(passes::kMostNesting == artifact::kMostNesting);

static std::vector<artifact::Step> stepsOf(mlir::Block* block, const llvm::StringMap<uint32_t>& phases,
                                           artifact::Kernel& kernel) {
  auto sizeOf = [&](ir::SizeAttr size) { return size ? kernel.sizes.add(size.getExpr()) : kernel.sizes.constant(1); };
  const auto firstLet = static_cast<uint32_t>(kernel.params.size() + kernel.results.size());
  std::vector<artifact::Step> steps;
  for (mlir::Operation& op : *block)
    llvm::TypeSwitch<mlir::Operation*>(&op)
        .Case([&](ir::PhaseOp phase) { steps.push_back({artifact::Run{phases.lookup(phase.getKernel())}}); })
        .Case([&](ir::LetOp let) {
          steps.push_back({artifact::Let{static_cast<uint32_t>(let.getArgument()) - firstLet, sizeOf(let.getValue())}});
        })
        .Case([&](ir::ReadOp read) {
          const auto firstTemporary = firstLet + static_cast<uint32_t>(kernel.lets.size());
          steps.push_back({artifact::Read{static_cast<uint32_t>(read.getArgument()) - firstLet,
                                          static_cast<uint32_t>(read.getTemporary()) - firstTemporary}});
        })
        .Case([&](ir::ChooseOp choose) {
          artifact::Choose described;
          for (auto each : choose.getBody()->getOps<ir::CaseOp>())
            described.cases.push_back({each.getName().str(), sizeOf(each.getNeeds().value_or(ir::SizeAttr())),
                                       sizeOf(ir::preferenceOf(each)), stepsOf(each.getBody(), phases, kernel)});
          steps.push_back({std::move(described)});
        })
        .Case([&](ir::LoopOp loop) {
          artifact::Loop described{.name = "the loop at " + ir::describeLocation(loop),
                                   .condition = sizeOf(loop.getCondition()),
                                   .steps = stepsOf(loop.getBody(), phases, kernel)};
          described.firstLet = kernel.lets.empty() || loop.getArguments().empty()
                                   ? 0
                                   : static_cast<uint32_t>(loop.getArguments()[0]) - firstLet;
          for (auto first : loop.getFirst().getAsRange<ir::SizeAttr>())
            described.first.push_back(sizeOf(first));
          for (auto next : loop.getNext().getAsRange<ir::SizeAttr>())
            described.next.push_back(sizeOf(next));
          steps.push_back({std::move(described)});
        })
        .Case([&](ir::ExchangeOp exchange) {
          const auto first = firstLet + static_cast<uint32_t>(kernel.lets.size());
          steps.push_back({artifact::Exchange{static_cast<uint32_t>(exchange.getA()) - first,
                                              static_cast<uint32_t>(exchange.getB()) - first}});
        })
        .Default([](mlir::Operation* other) {
          VORTEX_UNREACHABLE("%s in a launch", other->getName().getStringRef().str().c_str());
        });
  return steps;
}

void describeSteps(mlir::ModuleOp module, artifact::Kernel& kernel) {
  ir::LaunchOp launch = ir::findLaunch(module);
  if (!launch) {
    kernel.steps = artifact::inOrder(kernel.phases.size());
    return;
  }
  llvm::StringMap<uint32_t> phases;
  for (ir::KernelOp phase : module.getOps<ir::KernelOp>())
    phases.try_emplace(phase.getSymName(), static_cast<uint32_t>(phases.size()));
  kernel.steps = stepsOf(launch.getBody(), phases, kernel);
}

void describeGuards(ir::KernelOp phase, artifact::Kernel& kernel) {
  auto describe = [&](mlir::Operation* op, llvm::StringRef what, mlir::Value view) {
    while (auto subview = view.getDefiningOp<ir::SubviewOp>())
      view = subview.getSource();
    std::string name;
    if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(view)) {
      auto all = {&kernel.params, &kernel.results, &kernel.temporaries};
      unsigned number = argument.getArgNumber();
      for (const auto* list : all) {
        if (number < list->size()) {
          name = (*list)[number].name;
          break;
        }
        number -= list->size();
      }
      if (name.empty())
        name = "the result";
    } else if (auto alloc = view.getDefiningOp<ir::AllocOp>()) {
      name = alloc.getName().value_or("").str();
    }
    std::string note = (op->hasAttr("vx.unchecked") ? "unchecked " : "guard ") + ir::describeLocation(op) + ": " +
                       what.str() + " of `" + name + "`";
    if (!llvm::is_contained(kernel.notes, note))
      kernel.notes.push_back(std::move(note));
  };
  phase.walk([&](mlir::Operation* op) {
    llvm::TypeSwitch<mlir::Operation*>(op)
        .Case([&](ir::LoadOp load) {
          if (load.getGuarded() || op->hasAttr("vx.unchecked"))
            describe(op, "load", load.getView());
        })
        .Case([&](ir::StoreOp store) {
          if (store.getGuarded() || op->hasAttr("vx.unchecked"))
            describe(op, "store", store.getView());
        })
        .Case([&](ir::TileLoadOp load) {
          if (op->hasAttr("vx.guarded") || op->hasAttr("vx.unchecked"))
            describe(op, "slice", load.getView());
        })
        .Case([&](ir::StageCopyOp copy) {
          if (op->hasAttr("vx.guarded") || op->hasAttr("vx.unchecked"))
            describe(op, "slice", copy.getSource());
        })
        .Case([&](ir::TileStoreOp store) {
          if (op->hasAttr("vx.guarded") || op->hasAttr("vx.unchecked"))
            describe(op, "store of a slice", store.getView());
        })
        .Case<ir::AtomicRmwOp, ir::AtomicCasOp, ir::AtomicLoadOp, ir::AtomicStoreOp>([&](auto atomic) {
          if (atomic.getGuarded())
            describe(op, "atomic", atomic.getView());
        });
  });
}

}  // namespace vortex::target
