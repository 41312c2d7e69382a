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
    bool afterWrite = before.blockWrite || !before.copied.empty() || (block && before.regionWrite);
    bool afterRead = before.blockRead || (block && before.regionRead);
    if (afterWrite || (isWrite && afterRead))
      barrier();
  }
  Pending& now = pending_[root];
  bool& flag =
      kind == Kind::Region ? (isWrite ? now.regionWrite : now.regionRead) : (isWrite ? now.blockWrite : now.blockRead);
  flag = true;
}

void Hazards::copy(Root root, mlir::Value window, llvm::function_ref<bool(mlir::Value, mlir::Value)> areApart) {
  const auto found = pending_.find(root);
  if (found != pending_.end()) {
    const Pending& before = found->second;
    const bool isTouched = before.regionRead || before.regionWrite || before.blockRead || before.blockWrite;
    if (isTouched || !llvm::all_of(before.copied, [&](mlir::Value other) { return areApart(window, other); }))
      barrier();
  }
  pending_[root].copied.push_back(window);
}

void Hazards::merge(const State& other) {
  for (const auto& [root, pending] : other) {
    Pending& now = pending_[root];
    now.regionRead |= pending.regionRead;
    now.regionWrite |= pending.regionWrite;
    now.blockRead |= pending.blockRead;
    now.blockWrite |= pending.blockWrite;
    for (mlir::Value window : pending.copied)
      if (!llvm::is_contained(now.copied, window))
        now.copied.push_back(window);
  }
}

}  // namespace vortex::target::gpu
