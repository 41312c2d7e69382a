#include <algorithm>

#include <gtest/gtest.h>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "target/cpu/codegen/emit_object.h"
#include "target/cpu/codegen/testing/load.h"

namespace vortex::target::cpu::codegen {
namespace {

/// void axpy(float *y, const float *x, float a): 8 lanes, multiply and add allowed to contract.
void buildAxpy(llvm::Module& module) {
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> b(context);
  auto* pointer = b.getPtrTy();
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer, b.getFloatTy()}, false);
  auto* function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "axpy", module);
  markEntryPoint(*function);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  auto* vector = llvm::FixedVectorType::get(b.getFloatTy(), 8);
  llvm::Value* y = b.CreateAlignedLoad(vector, function->getArg(0), llvm::Align(4));
  llvm::Value* x = b.CreateAlignedLoad(vector, function->getArg(1), llvm::Align(4));
  llvm::FastMathFlags flags;
  flags.setAllowContract();
  b.setFastMathFlags(flags);
  llvm::Value* sum = b.CreateFAdd(b.CreateFMul(b.CreateVectorSplat(8, function->getArg(2)), x), y);
  b.CreateAlignedStore(sum, function->getArg(0), llvm::Align(4));
  b.CreateRetVoid();
}

TEST(Codegen, HostCodeRuns) {
  Result<Target> target = createTarget();
  ASSERT_TRUE(target.ok()) << target.error().message;
  EXPECT_TRUE(target->runsOnHost);
  llvm::LLVMContext context;
  auto module = createModule(context, "test", *target);
  buildAxpy(*module);
  LoadedCode code(*module, *target);
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8] = {8, 7, 6, 5, 4, 3, 2, 1};
  code.entry<void(float*, const float*, float)>("axpy")(y, x, 2);
  for (int i = 0; i < 8; i++)
    EXPECT_EQ(y[i], 2 * (i + 1) + 8 - i);
}

/// void of_halves(half *out, const half *a, const half *b): through f32, as emitters write it.
void buildOfHalves(llvm::Module& module, unsigned lanes, llvm::Intrinsic::ID id) {
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> b(context);
  auto* pointer = b.getPtrTy();
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer, pointer}, false);
  auto* function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "of_halves", module);
  markEntryPoint(*function);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  llvm::Type* half = b.getHalfTy();
  llvm::Type* single = b.getFloatTy();
  if (lanes > 1) {
    half = llvm::FixedVectorType::get(half, lanes);
    single = llvm::FixedVectorType::get(single, lanes);
  }
  llvm::Value* x = b.CreateFPExt(b.CreateAlignedLoad(half, function->getArg(1), llvm::Align(2)), single);
  llvm::Value* y = b.CreateFPExt(b.CreateAlignedLoad(half, function->getArg(2), llvm::Align(2)), single);
  b.CreateAlignedStore(b.CreateFPTrunc(b.CreateBinaryIntrinsic(id, x, y), half), function->getArg(0), llvm::Align(2));
  b.CreateRetVoid();
}

TEST(Codegen, SmallerAndLargerHalvesKeepNan) {
  constexpr uint16_t kZero = 0, kMinusZero = 0x8000, kNan = 0x7e00;
  for (const char* cpu : {"", "haswell"})
    for (unsigned lanes : {1u, 8u, 16u, 32u})
      for (auto id : {llvm::Intrinsic::minimum, llvm::Intrinsic::maximum}) {
        Result<Target> target = *cpu ? createTarget({.cpu = cpu, .features = ""}) : createTarget();
        ASSERT_TRUE(target.ok()) << target.error().message;
        llvm::LLVMContext context;
        auto module = createModule(context, "test", *target);
        buildOfHalves(*module, lanes, id);
        LoadedCode code(*module, *target);
        auto* entry = code.entry<void(uint16_t*, const uint16_t*, const uint16_t*)>("of_halves");
        for (uint16_t other : {kZero, kMinusZero}) {
          uint16_t numbers[32], nans[32], out[32];
          std::fill_n(numbers, 32, other);
          std::fill_n(nans, 32, kNan);
          for (bool nanFirst : {false, true}) {
            entry(out, nanFirst ? nans : numbers, nanFirst ? numbers : nans);
            for (unsigned i = 0; i < lanes; ++i)
              EXPECT_GT(out[i] & 0x7fff, 0x7c00) << cpu << " " << lanes << " lanes";
          }
        }
        uint16_t zeros[32], minusZeros[32], out[32];
        std::fill_n(zeros, 32, kZero);
        std::fill_n(minusZeros, 32, kMinusZero);
        entry(out, zeros, minusZeros);
        EXPECT_EQ(out[0], id == llvm::Intrinsic::minimum ? kMinusZero : kZero) << cpu << " " << lanes << " lanes";
      }
}

TEST(Codegen, ForcedProcessorsDecideInstructions) {
  struct Case {
    const char* cpu;
    uint32_t vectorBytes;
    const char* expected;
  };
  for (const Case& c : {Case{"x86-64-v2", 16, "mulps"}, Case{"haswell", 32, "vfmadd"}, Case{"znver4", 64, "vfmadd"},
                        Case{"skylake-avx512", 64, "vfmadd"}}) {
    Result<Target> target = createTarget({.cpu = c.cpu, .features = ""});
    ASSERT_TRUE(target.ok()) << target.error().message;
    EXPECT_EQ(target->vector.vectorBytes, c.vectorBytes) << c.cpu;
    llvm::LLVMContext context;
    auto module = createModule(context, "test", *target);
    buildAxpy(*module);
    optimize(*module, *target);
    EXPECT_NE(emitAssembly(*module, *target).find(c.expected), std::string::npos) << c.cpu;
    EXPECT_TRUE(undefinedSymbols(emitObject(*module, *target)).empty());
  }
}

TEST(Codegen, UnknownProcessorIsAnErrorWithCloseNames) {
  Result<Target> target = createTarget({.cpu = "znver44", .features = ""});
  ASSERT_FALSE(target.ok());
  EXPECT_NE(target.error().message.find("znver4"), std::string::npos) << target.error().message;
}

TEST(Codegen, ProcessorWithoutSse41IsAnError) {
  Result<Target> target = createTarget({.cpu = "x86-64", .features = ""});
  ASSERT_FALSE(target.ok());
  EXPECT_NE(target.error().message.find("x86-64-v2"), std::string::npos) << target.error().message;
}

TEST(Codegen, ObjectNamesItsUndefinedSymbols) {
  Result<Target> target = createTarget();
  llvm::LLVMContext context;
  auto module = createModule(context, "test", *target);
  llvm::IRBuilder<> b(context);
  auto* type = llvm::FunctionType::get(b.getDoubleTy(), {b.getDoubleTy()}, false);
  auto* function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "f", *module);
  markEntryPoint(*function);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  b.CreateRet(b.CreateCall(module->getOrInsertFunction("erf", type), {function->getArg(0)}));
  const std::vector<std::string> names = undefinedSymbols(emitObject(*module, *target));
  ASSERT_FALSE(names.empty());
  EXPECT_NE(std::find(names.begin(), names.end(), "erf"), names.end());
}

}  // namespace
}  // namespace vortex::target::cpu::codegen
