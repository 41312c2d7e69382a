// LLVM IR → optimised IR → ELF relocatable object or text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "target/cpu/codegen/target.h"

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace vortex::target::cpu::codegen {

/// Prepares a function the runtime calls by name: external linkage, C calling convention, no unwinding, no stack
/// protector. Every other function of a module must have internal linkage.
void markEntryPoint(llvm::Function& function);

/// Runs the optimisation pipeline. The emitters' IR is already vectorised and scheduled, so this is mem2reg, inlining
/// of `alwaysinline` functions, scalar clean-up and loop-invariant motion; no loop or SLP vectoriser and no unrolling.
void optimize(llvm::Module& module, const Target& target);

/// ELF relocatable object of an optimised module (`module` is consumed: its contents are unspecified afterwards).
/// Undefined symbols are at most those of allowedExternalSymbols(); checked.
std::vector<uint8_t> emitObject(llvm::Module& module, const Target& target);

/// Assembly text of a copy of `module`.
std::string emitAssembly(const llvm::Module& module, const Target& target);

/// Names the loader must be able to resolve: memcpy, memmove, memset and f64 functions of the C math library.
const std::vector<std::string>& allowedExternalSymbols();

/// Undefined symbols of an ELF64 relocatable object.
std::vector<std::string> undefinedSymbols(const std::vector<uint8_t>& object);

}  // namespace vortex::target::cpu::codegen
