#include "target/gpu/hazards.h"

namespace vortex::target::gpu {

void Hazards::barrier() {
  emitBarrier_();
  pending_.clear();
}

void Hazards::access(Root root, bool isWrite, Kind kind) {
  auto found = pending_.find(root);
  if (found != pending_.end()) {
    const Pending& before = found->second;
    bool block = kind == Kind::Block;
    bool afterWrite = before.blockWrite || (block && before.regionWrite);
    bool afterRead = before.blockRead || (block && before.regionRead);
    if (afterWrite || (isWrite && afterRead))
      barrier();
  }
  Pending& now = pending_[root];
  bool& flag =
      kind == Kind::Region ? (isWrite ? now.regionWrite : now.regionRead) : (isWrite ? now.blockWrite : now.blockRead);
  flag = true;
}

void Hazards::merge(const State& other) {
  for (const auto& [root, pending] : other) {
    Pending& now = pending_[root];
    now.regionRead |= pending.regionRead;
    now.regionWrite |= pending.regionWrite;
    now.blockRead |= pending.blockRead;
    now.blockWrite |= pending.blockWrite;
  }
}

}  // namespace vortex::target::gpu
