// Block scratch memory, laid out while the kernel is emitted: a stack, so that disjoint scopes share bytes, with gaps where something ended
// before its scope.
#pragma once

#include "artifact/size_expr.h"

#include <functional>
#include <llvm/IR/IRBuilder.h>

namespace vortex::target::cpu::emit {

class Scratch {
public:
  /// `base`: the block's scratch pointer, 64-byte aligned. `emitSize` gives the run-time value (i64) of a size in the function's entry block.
  Scratch(llvm::IRBuilder<>& ir, llvm::Value* base, std::function<llvm::Value*(const artifact::SizeExpr&)> emitSize);

  /// A 64-byte aligned piece that lives until the enclosing scope ends. The pointer dominates all code emitted later.
  llvm::Value* allocate(const artifact::SizeExpr& bytes);
  llvm::Value* allocate(uint64_t bytes) { return allocate(artifact::SizeExpr::constant(bytes)); }

  /// A piece of constant size that may end before its scope does.
  struct Piece {
    llvm::Value* pointer = nullptr;
    artifact::SizeExpr dynamic;  ///< it starts at dynamic + constant
    uint64_t constant = 0, bytes = 0;
  };
  Piece reserve(uint64_t bytes);
  /// Nothing needs the piece any more; it belongs to the current scope.
  void free(const Piece& piece);

  /// Lexical lifetimes: everything allocated between mark() and release(mark) is free again.
  struct Mark {
    uint64_t constant;
    artifact::SizeExpr dynamic;
    std::vector<Piece> gaps;
  };
  Mark mark() const { return top_; }
  void release(Mark mark) { top_ = std::move(mark); }

  /// Largest number of bytes in use at once.
  artifact::SizeExpr peak() const;

private:
  void notePeak();
  llvm::Value* pointerTo(const artifact::SizeExpr& start);

  llvm::IRBuilder<>& ir_;
  llvm::Value* base_;
  std::function<llvm::Value*(const artifact::SizeExpr&)> emitSize_;
  Mark top_{0, {}, {}};
  uint64_t constantPeak_ = 0;
  std::vector<artifact::SizeExpr> dynamicPeaks_;
};

/// Scope guard.
class ScratchScope {
public:
  explicit ScratchScope(Scratch& scratch) : scratch_(scratch), mark_(scratch.mark()) {}
  ~ScratchScope() { scratch_.release(std::move(mark_)); }
  ScratchScope(const ScratchScope&) = delete;
  ScratchScope& operator=(const ScratchScope&) = delete;

private:
  Scratch& scratch_;
  Scratch::Mark mark_;
};

}  // namespace vortex::target::cpu::emit
