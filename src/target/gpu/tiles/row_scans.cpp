// Prefix combinations along the rows of a nest: a team goes over its row in order, as many items at a time as it has threads.
#include "target/gpu/tiles/nest.h"

namespace vortex::target::gpu::tiles {

Values Nest::scanStart(const Pass& pass) {
  Values carries;
  for (ir::ScanOp scan : pass.scans)
    carries.push_back(Reduction(l, scan.getKind(), elementType(scan.getValue())).neutral(1));
  return carries;
}

/// The next `width` items of every scan the pass needs; the results are found by whoever evaluates them at this position.
void Nest::scanStep(const Pass& pass, const Position& position, llvm::MutableArrayRef<Value> carries) {
  for (auto [number, carry] : llvm::enumerate(carries)) {
    ir::ScanOp scan = pass.scans[number];
    At here = at(position);
    if (v_.isKnown(scan.getResult(), here))
      continue;
    Reduction reduction(l, scan.getKind(), elementType(scan.getValue()));
    Value own = masked(reduction, position, reduction.widen(v_.eval(scan.getValue(), here)));
    Values prefix;
    for (unsigned lane = 0; lane < position.lanes; ++lane) {
      Value element = extract(l, own, lane);
      prefix.push_back(lane ? reduction.combine(prefix.back(), element) : element);
    }
    TeamPrefix team = teamScan(l, team_, reduction, prefix.back());
    Value before = reduction.combine(carry, team.before);
    Values results;
    for (unsigned lane = 0; lane < position.lanes; ++lane) {
      if (scan.getExclusive())
        results.push_back(lane ? reduction.combine(before, prefix[lane - 1]) : before);
      else
        results.push_back(reduction.combine(before, prefix[lane]));
    }
    carry = reduction.combine(carry, team.total);
    v_.remember(scan.getResult(), here, reduction.narrow(gather(l, results)));
  }
}

/// Elements from `first` up to `end`, fewer than a team has threads.
Nest::Position Nest::singlesFrom(Value first, Value end) {
  Value element = l.add(first, team_.lane);
  return {{Index{element, 0, true}}, isLess(l, element, end), true, 1};
}

/// In order: the elements before the first aligned piece, the pieces, and those after them.
void Nest::emitPeeledScan(const Pass& pass, Version version, Values carries) {
  primeInvariants(pass);
  Value length = pass.inner[0], head = l.min(head_, length);
  Value inPieces = l.mul(peeledItems(pass, version), l.constant(version.lanes));
  auto step = [&](const Position& position, llvm::MutableArrayRef<Value> carried) {
    scanStep(pass, position, carried);
    storeRoots(pass, position);
  };
  {
    Frame frame(v_);
    step(singlesFrom(l.constant(0), head), carries);
  }
  carries = sweep(pass, version, 1, carries, [&](llvm::ArrayRef<Position> positions, Values& next) {
    for (const Position& position : positions)
      step(position, next);
  });
  Frame frame(v_);
  step(singlesFrom(l.add(head, inPieces), length), carries);
}

}  // namespace vortex::target::gpu::tiles
