#include "target/cpu/gemm/testing/strided.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "target/cpu/codegen/emit_object.h"
#include "target/cpu/gemm/control_flow.h"
#include "target/interface/math/convert.h"
#include "target/interface/math/math.h"

namespace vortex::target::cpu::gemm {
namespace {

using llvm::Value;

struct Builder {
  llvm::IRBuilder<>& b;
  const codegen::Target& target;
  const Configuration& configuration;
  Value* arguments;

  llvm::Type* compute() const { return configuration.element == Element::F64 ? b.getDoubleTy() : b.getFloatTy(); }
  llvm::Type* memory() const {
    switch (configuration.element) {
    case Element::F32: return b.getFloatTy();
    case Element::F64: return b.getDoubleTy();
    default: return b.getInt16Ty();
    }
  }
  Value* field(uint32_t index, llvm::Type* type) const {
    return b.CreateLoad(type, b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), arguments, index));
  }
  Value* extent(uint32_t index, const std::optional<uint64_t>& known) const {
    return known ? b.getInt64(*known) : field(index, b.getInt64Ty());
  }
  Value* widen(Value* x) const {
    if (configuration.element == Element::F16)
      return math::emitWiden(b, target.vector, math::Narrow::F16, x);
    if (configuration.element == Element::BF16)
      return math::emitWiden(b, target.vector, math::Narrow::BF16, x);
    return x;
  }
  llvm::Type* lanesOf(llvm::Type* type, uint32_t lanes) const {
    return lanes == 1 ? type : llvm::FixedVectorType::get(type, lanes);
  }
  Value* mask(uint32_t lanes, Value* valid) const {
    Value* numbers = b.CreateStepVector(llvm::FixedVectorType::get(b.getInt64Ty(), lanes));
    return b.CreateICmpULT(numbers, b.CreateVectorSplat(lanes, valid));
  }
  Value* loadAt(Value* address, uint32_t lanes, Value* valid) const {
    llvm::Type* type = lanesOf(memory(), lanes);
    const llvm::Align align(memory()->getScalarSizeInBits() / 8);
    if (!valid || lanes == 1)
      return widen(b.CreateAlignedLoad(type, address, align));
    return widen(b.CreateMaskedLoad(type, address, align, mask(lanes, valid), llvm::Constant::getNullValue(type)));
  }
  Operand operand(uint32_t pointer, uint32_t rowStride, Contiguous contiguous, bool silu) const {
    Value* base = field(pointer, b.getPtrTy());
    Value* one = b.getInt64(1);
    Value* row = contiguous == Contiguous::Row ? one : field(rowStride, b.getInt64Ty());
    Value* column = contiguous == Contiguous::Column ? one : field(rowStride + 1, b.getInt64Ty());
    const Builder self = *this;
    return {[=](llvm::IRBuilderBase&, Value* i, Value* j, uint32_t lanes, Value* valid) {
              Value* offset = self.b.CreateAdd(self.b.CreateMul(i, row), self.b.CreateMul(j, column));
              Value* x = self.loadAt(self.b.CreateInBoundsGEP(self.memory(), base, offset), lanes, valid);
              return silu ? self.b.CreateFMul(x, math::emitUnary(self.b, self.target.vector, math::Unary::Sigmoid, x))
                          : x;
            },
            contiguous};
  }
  Problem problem() const {
    Problem p;
    p.type = compute();
    p.m = extent(4, configuration.known.m);
    p.n = extent(5, configuration.known.n);
    p.k = extent(6, configuration.known.k);
    p.a = operand(0, 7, configuration.a, configuration.silu);
    p.b = operand(1, 9, configuration.b, false);
    Value *c = field(2, b.getPtrTy()), *cRow = field(11, b.getInt64Ty());
    const Builder self = *this;
    auto address = [=](Value* i, Value* j) {
      return self.b.CreateInBoundsGEP(self.compute(), c, self.b.CreateAdd(self.b.CreateMul(i, cRow), j));
    };
    const llvm::Align align(compute()->getScalarSizeInBits() / 8);
    p.store = [=](llvm::IRBuilderBase& b, Value* i, Value* j, uint32_t lanes, Value* sums, Value* valid) {
      if (self.configuration.scale) {
        Value* numbers = b.CreateUIToFP(j, self.compute());
        if (lanes > 1) {
          numbers = b.CreateVectorSplat(lanes, j);
          numbers = b.CreateUIToFP(
              b.CreateAdd(numbers, b.CreateStepVector(llvm::FixedVectorType::get(b.getInt64Ty(), lanes))),
              sums->getType());
        }
        sums = b.CreateFAdd(b.CreateFMul(sums, llvm::ConstantFP::get(sums->getType(), 2)), numbers);
      }
      if (valid && lanes > 1)
        b.CreateMaskedStore(sums, address(i, j), align, self.mask(lanes, valid));
      else
        b.CreateAlignedStore(sums, address(i, j), align);
    };
    if (configuration.initial)
      p.initial = [=](llvm::IRBuilderBase& b, Value* i, Value* j, uint32_t lanes, Value* valid) -> Value* {
        llvm::Type* type = self.lanesOf(self.compute(), lanes);
        if (valid && lanes > 1)
          return b.CreateMaskedLoad(type, address(i, j), align, self.mask(lanes, valid),
                                    llvm::Constant::getNullValue(type));
        return b.CreateAlignedLoad(type, address(i, j), align);
      };
    else if (!configuration.partialInScratch)
      p.partialAddress = [=](llvm::IRBuilderBase&, Value* i, Value* j) { return address(i, j); };
    return p;
  }
};

llvm::Function* beginEntry(llvm::IRBuilder<>& b, llvm::Module& module, const char* name, uint32_t pointers,
                           uint32_t integers) {
  std::vector<llvm::Type*> types(pointers, b.getPtrTy());
  types.insert(types.end(), integers, b.getInt64Ty());
  auto* function = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), types, false),
                                          llvm::GlobalValue::ExternalLinkage, name, module);
  codegen::markEntryPoint(*function);
  b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "entry", function));
  return function;
}

void emitBlockEntry(llvm::IRBuilder<>& b, llvm::Module& module, const codegen::Target& target, const Plan& plan,
                    const Configuration& configuration, bool direct) {
  llvm::Function* f = beginEntry(b, module, direct ? "direct_block" : "packed_block", 2, 4);
  f->addParamAttr(1, llvm::Attribute::NoAlias);
  const Builder builder{b, target, configuration, f->getArg(0)};
  const Problem problem = builder.problem();
  Value* packed = builder.field(3, b.getPtrTy());
  const BlockRange range = emitBlockRange(b, plan, problem, f->getArg(2), f->getArg(3), f->getArg(4), f->getArg(5));
  if (direct)
    emitDirectBlock(b, target.vector, plan, problem, f->getArg(1), range);
  else
    emitPackedBlock(b, target.vector, plan, problem, packed, f->getArg(1), range);
  b.CreateRetVoid();
}

}  // namespace

Kernels compile(const codegen::Target& target, const Plan& plan, const Configuration& configuration,
                std::string* assembly) {
  llvm::LLVMContext context;
  auto module = codegen::createModule(context, "gemm", target);
  llvm::IRBuilder<> b(context);
  llvm::Function* pack = beginEntry(b, *module, "pack_b", 1, 2);
  {
    const Builder builder{b, target, configuration, pack->getArg(0)};
    const Problem problem = builder.problem();
    emitPackB(b, target.vector, plan, problem, builder.field(3, b.getPtrTy()), pack->getArg(1), pack->getArg(2),
              b.getInt64(0), problem.k);
    b.CreateRetVoid();
  }
  emitBlockEntry(b, *module, target, plan, configuration, false);
  emitBlockEntry(b, *module, target, plan, configuration, true);
  Kernels kernels;
  kernels.plan = plan;
  kernels.code = std::make_unique<codegen::LoadedCode>(*module, target);
  if (assembly)
    *assembly = codegen::emitAssembly(*module, target);
  kernels.packB = kernels.code->entry<void(const Arguments*, uint64_t, uint64_t)>("pack_b");
  kernels.packedBlock =
      kernels.code->entry<void(const Arguments*, void*, uint64_t, uint64_t, uint64_t, uint64_t)>("packed_block");
  kernels.directBlock =
      kernels.code->entry<void(const Arguments*, void*, uint64_t, uint64_t, uint64_t, uint64_t)>("direct_block");
  return kernels;
}

void Kernels::run(Arguments arguments) const {
  AlignedBytes scratch(plan.scratchBytes(true));
  const bool direct = plan.usesDirect(arguments.m, arguments.n, arguments.k);
  AlignedBytes packed(direct ? 0 : plan.packedElements(arguments.n, arguments.k) * plan.elementBytes);
  arguments.packed = packed.data();
  const uint64_t tileRows = direct ? plan.directMc : plan.mc, tileColumns = direct ? plan.directNc : plan.nc;
  const uint64_t rows = (arguments.m + tileRows - 1) / tileRows,
                 columns = (arguments.n + tileColumns - 1) / tileColumns;
  if (!direct)
    packB(&arguments, 0, (arguments.n + plan.nr() - 1) / plan.nr());
  for (uint64_t row = 0; row < rows; row++)
    for (uint64_t column = 0; column < columns; column++)
      (direct ? directBlock : packedBlock)(&arguments, scratch.data(), row, rows, column, columns);
}

}  // namespace vortex::target::cpu::gemm
