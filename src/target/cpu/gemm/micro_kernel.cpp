// mr × 2 vectors of accumulators; a step of k loads 2 vectors of B, broadcasts mr elements of A and does 2·mr fused
// multiply-adds. 6 × 16 f32 with AVX2: 12 accumulators + 2 + 1 of 16 registers, 8 loads per 12 FMAs, so the FMA units
// are the limit on processors with two load ports. Unrolling by 4 leaves the loop's own instructions below 5 %.
#include "target/cpu/gemm/micro_kernel.h"

#include "target/cpu/gemm/control_flow.h"

namespace vortex::target::cpu::gemm {
namespace {

using llvm::Value;

struct MicroKernel {
  llvm::IRBuilder<>& b;
  llvm::Type* type;
  const Plan& plan;
  llvm::FixedVectorType* vector = llvm::FixedVectorType::get(type, plan.lanes);

  Value* element(Value* base, uint64_t offset) { return b.CreateConstInBoundsGEP1_64(type, base, offset); }

  /// One step: `a` and `p` point at its mr and nr elements.
  void step(Value* a, Value* p, uint32_t index, Values& sums) {
    Values right;
    for (uint32_t v = 0; v < plan.nrVectors; v++)
      right.push_back(b.CreateAlignedLoad(vector, element(p, uint64_t(index) * plan.nr() + v * plan.lanes),
                                          llvm::Align(plan.lanes * plan.elementBytes)));
    for (uint32_t r = 0; r < plan.mr; r++) {
      Value* left =
          b.CreateAlignedLoad(type, element(a, uint64_t(index) * plan.mr + r), llvm::Align(plan.elementBytes));
      left = b.CreateVectorSplat(plan.lanes, left);
      for (uint32_t v = 0; v < plan.nrVectors; v++) {
        Value*& sum = sums[r * plan.nrVectors + v];
        sum = b.CreateIntrinsic(llvm::Intrinsic::fmuladd, {vector}, {left, right[v], sum});
      }
    }
  }

  /// Steps of k from `state` = {a, p, ahead, sums…} on, `unroll` per iteration.
  Values loop(Value* steps, uint32_t unroll, Value* aheadStride, const Values& state) {
    return emitLoop(b, b.getInt64(0), steps, b.getInt64(1), state, [&](Value*, const Values& carried) {
      Values sums(carried.begin() + 3, carried.end());
      if (unroll > 1)  // into the second level
        b.CreateIntrinsic(llvm::Intrinsic::prefetch, {b.getPtrTy()},
                          {carried[2], b.getInt32(0), b.getInt32(2), b.getInt32(1)});
      for (uint32_t u = 0; u < unroll; u++)
        step(carried[0], carried[1], u, sums);
      Values next = {element(carried[0], uint64_t(unroll) * plan.mr), element(carried[1], uint64_t(unroll) * plan.nr()),
                     b.CreateGEP(b.getInt8Ty(), carried[2], aheadStride)};
      next.append(sums.begin(), sums.end());
      return next;
    });
  }
};

}  // namespace

llvm::Function* microKernel(llvm::Module& module, llvm::Type* type, const Plan& plan) {
  const std::string name = "vortex.gemm.f" + std::to_string(plan.elementBytes * 8) + "." + std::to_string(plan.mr) +
                           "x" + std::to_string(plan.nrVectors) + "x" + std::to_string(plan.lanes);
  if (llvm::Function* existing = module.getFunction(name))
    return existing;
  llvm::IRBuilder<> b(module.getContext());
  llvm::Type* pointer = b.getPtrTy();
  auto* function = llvm::Function::Create(
      llvm::FunctionType::get(
          b.getVoidTy(),
          {pointer, pointer, b.getInt64Ty(), pointer, b.getInt64Ty(), b.getInt1Ty(), pointer, b.getInt64Ty()}, false),
      llvm::GlobalValue::InternalLinkage, name, module);
  for (auto attribute : {llvm::Attribute::NoInline, llvm::Attribute::NoUnwind, llvm::Attribute::WillReturn})
    function->addFnAttr(attribute);
  for (uint32_t argument : {0u, 1u, 3u})
    function->addParamAttr(argument, llvm::Attribute::NoAlias);
  b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", function));
  MicroKernel kernel{b, type, plan};
  Values state = {function->getArg(0), function->getArg(1), function->getArg(6)};
  state.resize(3 + plan.mr * plan.nrVectors, llvm::Constant::getNullValue(kernel.vector));
  Value *depth = function->getArg(2), *unroll = b.getInt64(plan.unroll);
  state = kernel.loop(b.CreateUDiv(depth, unroll), plan.unroll, function->getArg(7), state);
  state = kernel.loop(b.CreateURem(depth, unroll), 1, function->getArg(7), state);
  auto writeOut = [&](bool accumulates) {
    const llvm::Align alignment(plan.elementBytes);
    for (uint32_t r = 0; r < plan.mr; r++) {
      Value* row = b.CreateInBoundsGEP(type, function->getArg(3), b.CreateNUWMul(function->getArg(4), b.getInt64(r)));
      for (uint32_t v = 0; v < plan.nrVectors; v++) {
        Value *sum = state[3 + r * plan.nrVectors + v], *address = kernel.element(row, uint64_t(v) * plan.lanes);
        if (accumulates)
          sum = b.CreateFAdd(b.CreateAlignedLoad(kernel.vector, address, alignment), sum);
        b.CreateAlignedStore(sum, address, alignment);
      }
    }
  };
  emitIf(b, function->getArg(5), [&] { writeOut(true); }, [&] { writeOut(false); });
  b.CreateRetVoid();
  return function;
}

}  // namespace vortex::target::cpu::gemm
