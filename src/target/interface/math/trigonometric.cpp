// sin, cos, tan of f32: r = x − n·π/2 in f64, then f32 polynomials on |r| ≤ π/4. Below 2^20 two f64 parts of π/2 leave
// an error of 2^-66. Beyond, x = M·2^e and M·(2^e·2/π mod 4) is formed from a table of three doubles per exponent,
// whose products with the 24-bit M are exact; that path sits behind a branch, in an internal function that goes lane by
// lane. Integer Payne–Hanek needs 128-bit products.
#include <llvm/IR/Module.h>

#include "target/interface/math/coefficients.h"
#include "target/interface/math/functions.h"

namespace vortex::target::math {
namespace {

using llvm::Value;
namespace k = coefficients;

constexpr float kFastLimit = 0x1p20f;

/// x in quarter turns: the nearest whole number modulo 4 (i32) and the rest as an angle in f32.
struct Quarter {
  Value* n;
  Value* r;
};

Quarter reduceFast(const FloatCode& code, Value* x) {
  FloatCode wide(code.b, withScalar(code.type, code.b.getDoubleTy()));
  Value* exact = wide.b.CreateFPExt(x, wide.type);
  const FloatCode::Whole whole = wide.roundQuotient(exact, 0x1.45f306dc9c883p-1);
  Value* r = wide.fma(whole.whole, wide.c(-k::kPiOver2Split64[0]), exact);
  r = wide.fma(whole.whole, wide.c(-k::kPiOver2Split64[1]), r);
  return {wide.b.CreateTrunc(whole.wholeBits, code.intType), wide.b.CreateFPTrunc(r, code.type)};
}

Value* tableColumn(llvm::IRBuilderBase& b, Value* row, uint32_t column) {
  llvm::Module& module = *b.GetInsertBlock()->getModule();
  const char* name = "vortex.math.two_over_pi";
  llvm::GlobalVariable* table = module.getGlobalVariable(name, /*AllowInternal=*/true);
  if (!table) {
    auto* data = llvm::ConstantDataArray::get(
        b.getContext(), llvm::ArrayRef<double>(&k::kTwoOverPi[0][0], sizeof k::kTwoOverPi / sizeof(double)));
    table = new llvm::GlobalVariable(module, data->getType(), true, llvm::GlobalValue::InternalLinkage, data, name);
  }
  Value* flat = b.CreateAdd(b.CreateMul(row, b.getInt32(3)), b.getInt32(column));
  return b.CreateLoad(b.getDoubleTy(), b.CreateGEP(b.getDoubleTy(), table, b.CreateZExt(flat, b.getInt64Ty())));
}

/// Scalars only.
Quarter reduceHuge(const FloatCode& code, Value* x) {
  llvm::IRBuilderBase& b = code.b;
  FloatCode wide(b, withScalar(code.type, b.getDoubleTy()));
  Value* bits = code.bits(x);
  Value* exponent = b.CreateAnd(b.CreateLShr(bits, code.ci(23)), code.ci(255));
  // Row 0 is e = −4, exponent field 146. Values outside the table are not huge (unused) or not finite (NaN in the end).
  Value* row = b.CreateSub(exponent, code.ci(146));
  row = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, row, code.ci(0));
  row = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, row, code.ci(108));
  Value* mantissa = b.CreateOr(b.CreateAnd(bits, code.ci(0x7fffff)), code.ci(0x800000));
  Value* exact = wide.copysign(b.CreateSIToFP(mantissa, wide.type), b.CreateFPExt(x, wide.type));
  Value* p0 = wide.mul(exact, tableColumn(b, row, 0));
  const FloatCode::Whole whole = wide.roundQuotient(p0, 1);
  Value* rest = wide.add(wide.sub(p0, whole.whole), wide.mul(exact, tableColumn(b, row, 1)));
  rest = wide.fma(exact, tableColumn(b, row, 2), rest);
  // The later parts may leave (−½, ½): once more.
  const FloatCode::Whole second = wide.roundQuotient(rest, 1);
  rest = wide.mul(wide.sub(rest, second.whole), wide.c(0x1.921fb54442d18p+0));
  Value* n = b.CreateAdd(whole.wholeBits, second.wholeBits);
  return {b.CreateTrunc(n, code.intType), b.CreateFPTrunc(rest, code.type)};
}

Value* fromQuarter(const FloatCode& code, Trigonometric function, Value* x, Quarter quarter) {
  llvm::IRBuilderBase& b = code.b;
  Value* z = code.mul(quarter.r, quarter.r);
  Value* sin = code.fma(code.mul(z, quarter.r), code.polynomial(z, k::kSinTail32), quarter.r);
  Value* cosTail = code.fma(z, code.polynomial(z, k::kCosTail32), code.c(-0.5));
  Value* cos = code.fma(z, cosTail, code.c(1));
  Value* n = function == Trigonometric::Cos ? b.CreateAdd(quarter.n, code.ci(1)) : quarter.n;
  Value* odd = b.CreateICmpNE(b.CreateAnd(n, code.ci(1)), code.ci(0));
  Value* result;
  if (function == Trigonometric::Tan) {
    result = code.div(b.CreateSelect(odd, code.neg(cos), sin), b.CreateSelect(odd, sin, cos));
  } else {
    Value* sign = b.CreateShl(b.CreateAnd(n, code.ci(2)), code.ci(30));
    result = code.fromBits(b.CreateXor(code.bits(b.CreateSelect(odd, cos, sin)), sign));
  }
  if (function != Trigonometric::Cos)  // keeps −0
    result = b.CreateSelect(b.CreateFCmpOEQ(x, code.c(0)), x, result);
  return b.CreateSelect(b.CreateFCmpOLT(code.abs(x), code.infinity()), result, code.nan());
}

const char* name(Trigonometric function) {
  return function == Trigonometric::Sin ? "sin" : function == Trigonometric::Cos ? "cos" : "tan";
}

llvm::Function* internalFunction(llvm::IRBuilderBase& b, const std::string& name, llvm::Type* type) {
  auto* function = llvm::Function::Create(llvm::FunctionType::get(type, {type}, false),
                                          llvm::GlobalValue::InternalLinkage, name, *b.GetInsertBlock()->getModule());
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr(llvm::Attribute::WillReturn);
  b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "entry", function));
  return function;
}

/// Any arguments, lane by lane: it is called when one of them is huge.
llvm::Function* hugeFunction(llvm::IRBuilderBase& b, Trigonometric function, llvm::Type* type,
                             const std::string& symbol) {
  llvm::IRBuilderBase::InsertPointGuard guard(b);
  llvm::Function* huge = internalFunction(b, symbol, type);
  huge->addFnAttr(llvm::Attribute::Cold);
  huge->addFnAttr(llvm::Attribute::NoInline);
  huge->setMemoryEffects(llvm::MemoryEffects::none());  // the table is constant
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  llvm::Type* f32 = b.getFloatTy();
  auto *entry = b.GetInsertBlock(), *lane = llvm::BasicBlock::Create(b.getContext(), "lane", huge),
       *exit = llvm::BasicBlock::Create(b.getContext(), "exit", huge);
  Value* lanes = b.CreateAlloca(type);
  b.CreateStore(huge->getArg(0), lanes);
  b.CreateBr(lane);
  b.SetInsertPoint(lane);
  llvm::PHINode* index = b.CreatePHI(b.getInt64Ty(), 2);
  index->addIncoming(b.getInt64(0), entry);
  Value* address = b.CreateGEP(f32, lanes, index);
  Value* x = b.CreateLoad(f32, address);
  const FloatCode code(b, f32);
  const Quarter huger = reduceHuge(code, x), fast = reduceFast(code, x);
  Value* isHuge = b.CreateFCmpOGE(code.abs(x), code.c(kFastLimit));
  Value *n = b.CreateSelect(isHuge, huger.n, fast.n), *r = b.CreateSelect(isHuge, huger.r, fast.r);
  b.CreateStore(fromQuarter(code, function, x, {n, r}), address);
  Value* next = b.CreateAdd(index, b.getInt64(1));
  index->addIncoming(next, lane);
  b.CreateCondBr(b.CreateICmpULT(next, b.getInt64(vector ? vector->getNumElements() : 1)), lane, exit);
  b.SetInsertPoint(exit);
  b.CreateRet(b.CreateLoad(type, lanes));
  return huge;
}

}  // namespace

Value* emitTrigonometric(const FloatCode& outer, Trigonometric function, Value* x) {
  llvm::IRBuilderBase& b = outer.b;
  llvm::Module& module = *b.GetInsertBlock()->getModule();
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(outer.type);
  const uint32_t lanes = vector ? vector->getNumElements() : 0;
  const std::string symbol = "vortex.math." + std::string(name(function)) + ".f32x" + std::to_string(lanes);
  llvm::Function* callee = module.getFunction(symbol);
  if (!callee) {
    llvm::IRBuilderBase::InsertPointGuard guard(b);
    callee = internalFunction(b, symbol, outer.type);
    callee->addFnAttr(llvm::Attribute::AlwaysInline);
    callee->setMemoryEffects(llvm::MemoryEffects::none());
    FloatCode code(b, outer.type);
    llvm::Function* huge = hugeFunction(b, function, outer.type, symbol + ".huge");
    auto* fastBlock = llvm::BasicBlock::Create(b.getContext(), "fast", callee);
    auto* hugeBlock = llvm::BasicBlock::Create(b.getContext(), "huge", callee);
    Value* isHuge = b.CreateFCmpOGE(code.abs(callee->getArg(0)), code.c(kFastLimit));
    b.CreateCondBr(lanes ? b.CreateOrReduce(isHuge) : isHuge, hugeBlock, fastBlock);
    b.SetInsertPoint(hugeBlock);
    b.CreateRet(b.CreateCall(huge, {callee->getArg(0)}));
    b.SetInsertPoint(fastBlock);
    b.CreateRet(fromQuarter(code, function, callee->getArg(0), reduceFast(code, callee->getArg(0))));
  }
  return b.CreateCall(callee, {x});
}

}  // namespace vortex::target::math
