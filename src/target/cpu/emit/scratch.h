// Block scratch memory, laid out while the kernel is emitted: a stack, so that disjoint scopes share bytes, with gaps where something ended
// before its scope.
#pragma once

#include "size/expr.h"

#include <functional>
#include <llvm/IR/IRBuilder.h>

namespace vortex::target::cpu::emit {

class Scratch {
public:
  /// `base`: the block's scratch pointer, 64-byte aligned. `emitSize` gives the run-time value (i64) of a size in the function's entry block.
  Scratch(llvm::IRBuilder<>& ir, size::Arena& arena, llvm::Value* base,
          std::function<llvm::Value*(size::Expr)> emitSize);

  /// A 64-byte aligned piece that lives until the enclosing scope ends. The pointer dominates all code emitted later.
  llvm::Value* allocate(size::Expr bytes);
  llvm::Value* allocate(uint64_t bytes) { return reserve(bytes).pointer; }

  /// A piece of constant size that may end before its scope does.
  struct Piece {
    llvm::Value* pointer = nullptr;
    size::Expr dynamic;  ///< it starts at dynamic + constant; null: 0
    uint64_t constant = 0, bytes = 0;
  };
  Piece reserve(uint64_t bytes);
  /// Nothing needs the piece any more; it belongs to the current scope.
  void free(const Piece& piece);

  /// Lexical lifetimes: everything allocated between mark() and release(mark) is free again.
  struct Mark {
    uint64_t constant;
    size::Expr dynamic;
    std::vector<Piece> gaps;
  };
  Mark mark() const { return top_; }
  void release(Mark mark) { top_ = std::move(mark); }

  /// Largest number of bytes in use at once.
  size::Expr peak() const;

private:
  void notePeak();
  llvm::Value* pointerTo(size::Expr dynamic, uint64_t constant);

  llvm::IRBuilder<>& ir_;
  size::Arena& arena_;
  llvm::Value* base_;
  std::function<llvm::Value*(size::Expr)> emitSize_;
  Mark top_{0, {}, {}};
  uint64_t constantPeak_ = 0;
  std::vector<size::Expr> dynamicPeaks_;
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
