// Barriers and operations of a simdgroup, which is 32 consecutive threads as vxt's warps are.
#include "target/metal/kernel_writer.h"

#include "base/text.h"

#include <llvm/ADT/TypeSwitch.h>
#include <mlir/IR/TypeUtilities.h>

namespace vortex::target::metal {

using base::concat;

/// By words of 32 bits, from the lane that vxt says: Metal leaves open what lanes beyond the edge give.
void KernelWriter::writeShuffle(vxt::ShuffleOp op) {
  std::string by = text(op.getLane()), lane = "(vx_thread & 31u)", from;
  switch (op.getKind()) {
  case ir::ShuffleKind::Xor: from = concat("(", lane, " ^ ", by, ")"); break;
  case ir::ShuffleKind::Up: from = concat("(", by, " <= ", lane, " ? ", lane, " - ", by, " : ", lane, ")"); break;
  case ir::ShuffleKind::Down:
    from = concat("(", by, " < 32u - ", lane, " ? ", lane, " + ", by, " : ", lane, ")");
    break;
  case ir::ShuffleKind::Index: from = by; break;
  }
  std::string source = declare("uint", from);
  source = declare("ushort", concat("ushort(", source, " < 32u ? ", source, " : ", lane, ")"));
  mlir::Type element = mlir::getElementTypeOrSelf(op.getValue().getType());
  llvm::Type* type = llvmType(element);
  unsigned bits = unsigned(type->getPrimitiveSizeInBits());
  std::string name = typeName(type);
  Texts results;
  for (const std::string& each : lanes(op.getValue())) {
    auto moved = [&](const std::string& word) {
      return declare("uint", concat("simd_shuffle(", word, ", ", source, ")"));
    };
    if (bits == 64) {
      std::string low = moved(concat("uint(", each, ")")), high = moved(concat("uint(", each, " >> 32)"));
      results.push_back(declare(name, concat("ulong(", high, ") << 32 | ulong(", low, ")")));
    } else if (bits == 32) {
      std::string word = moved(type->isIntegerTy() ? each : concat("as_type<uint>(", each, ")"));
      results.push_back(type->isIntegerTy() ? word : declare(name, concat("as_type<float>(", word, ")")));
    } else if (type->isIntegerTy()) {
      std::string word = moved(concat("uint(", each, ")"));
      results.push_back(declare(name, bits == 1 ? word + " != 0" : concat(name, "(", word, ")")));
    } else {
      std::string word = moved(concat("uint(as_type<ushort>(", each, "))"));
      results.push_back(declare(name, concat("as_type<", name, ">(ushort(", word, "))")));
    }
  }
  set(op, results);
}

bool KernelWriter::writeWarp(mlir::Operation* op) {
  return llvm::TypeSwitch<mlir::Operation*, bool>(op)
      .Case([&](vxt::BarrierOp) {
        line("threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);");
        return true;
      })
      .Case([&](vxt::WarpBarrierOp) {
        line("simdgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);");
        return true;
      })
      .Case([&](vxt::ShuffleOp shuffle) {
        writeShuffle(shuffle);
        return true;
      })
      .Case([&](vxt::VoteOp vote) {
        std::string predicate = text(vote.getPredicate());
        switch (vote.getKind()) {
        case ir::VoteKind::Any: set(vote, declare("bool", concat("simd_any(", predicate, ")"))); break;
        case ir::VoteKind::All: set(vote, declare("bool", concat("simd_all(", predicate, ")"))); break;
        case ir::VoteKind::Ballot:
          set(vote, declare("uint", concat("uint(static_cast<simd_vote::vote_t>(simd_ballot(", predicate, ")))")));
          break;
        }
        return true;
      })
      .Default([](mlir::Operation*) { return false; });
}

}  // namespace vortex::target::metal
