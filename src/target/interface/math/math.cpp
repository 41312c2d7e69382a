#include "target/interface/math/math.h"

#include <llvm/IR/Module.h>

#include "base/check.h"
#include "target/interface/math/functions.h"

namespace vortex::target::math {

using llvm::Value;

Value* emitLibm(const FloatCode& code, const char* name, std::initializer_list<Value*> arguments) {
  llvm::IRBuilderBase& b = code.b;
  llvm::Type* f64 = b.getDoubleTy();
  llvm::SmallVector<llvm::Type*, 2> types(arguments.size(), f64);
  llvm::FunctionCallee callee =
      b.GetInsertBlock()->getModule()->getOrInsertFunction(name, llvm::FunctionType::get(f64, types, false));
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr(llvm::Attribute::WillReturn);
  function->setMemoryEffects(llvm::MemoryEffects::none());  // errno is nobody's
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(code.type);
  const uint32_t lanes = vector ? vector->getNumElements() : 1;
  Value* result = llvm::PoisonValue::get(code.type);
  for (uint32_t lane = 0; lane < lanes; lane++) {
    llvm::SmallVector<Value*, 2> scalars;
    for (Value* argument : arguments) {
      Value* scalar = vector ? b.CreateExtractElement(argument, lane) : argument;
      scalars.push_back(code.isDouble ? scalar : b.CreateFPExt(scalar, f64));
    }
    Value* value = b.CreateCall(callee, scalars);
    value = code.isDouble ? value : b.CreateFPTrunc(value, b.getFloatTy());
    result = vector ? b.CreateInsertElement(result, value, lane) : value;
  }
  return result;
}

namespace {

/// Null: by the C library's f64 function.
Value* emitSinglePrecision(const FloatCode& code, Unary function, Value* x) {
  switch (function) {
  case Unary::Expm1: return emitExpm1(code, x);
  case Unary::Log1p: return emitLog1p(code, x);
  case Unary::Sin: return emitTrigonometric(code, Trigonometric::Sin, x);
  case Unary::Cos: return emitTrigonometric(code, Trigonometric::Cos, x);
  case Unary::Tan: return emitTrigonometric(code, Trigonometric::Tan, x);
  case Unary::Tanh: return emitTanh(code, x);
  case Unary::Erf: return emitErf(code, x);
  case Unary::Erfc: return emitErfc(code, x);
  default: return nullptr;
  }
}

const char* nameOf(Unary function) {
  constexpr const char* kNames[] = {
#define VORTEX_FLOAT_NAME(id, name, ...) name,
      VORTEX_FLOAT_FUNCTIONS(VORTEX_FLOAT_NAME)
#undef VORTEX_FLOAT_NAME
  };
  VORTEX_CHECK(static_cast<size_t>(function) < std::size(kNames), "not a function of the C library");
  return kNames[static_cast<size_t>(function)];
}

void checkType(const Value* x) {
  llvm::Type* scalar = x->getType()->getScalarType();
  VORTEX_CHECK(scalar->isFloatTy() || scalar->isDoubleTy(), "math functions take f32 or f64");
}

}  // namespace

Value* emitUnary(llvm::IRBuilderBase& b, const VectorFeatures& features, Unary function, Value* x, const Form& form) {
  checkType(x);
  FloatCode code(b, x->getType(), features.fma);
  code.narrow = form.narrowBits != 0 && !code.isDouble;
  switch (function) {
  case Unary::Exp: return emitExp(code, x);
  case Unary::ExpLimited: return emitExpLimited(code, x);
  case Unary::ExpNotTiny: return emitExpNotTiny(code, x);
  case Unary::Exp2: return emitExp2(code, x);
  case Unary::Log: return emitLog(code, x);
  case Unary::Log2: return emitLog2(code, x);
  case Unary::Log10: return emitLog10(code, x);
  case Unary::Sigmoid: return emitSigmoid(code, x);
  case Unary::Sqrt: return b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
  case Unary::Rsqrt: return code.div(code.c(1), b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x));
  case Unary::Floor: return b.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x);
  case Unary::Ceil: return b.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, x);
  case Unary::Trunc: return b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, x);
  case Unary::Round: return b.CreateUnaryIntrinsic(llvm::Intrinsic::round, x);
  case Unary::RoundEven: return b.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x);
  case Unary::Abs: return code.abs(x);
  default: break;
  }
  Value* single = code.isDouble ? nullptr : emitSinglePrecision(code, function, x);
  return single ? single : emitLibm(code, nameOf(function), {x});
}

Value* emitBinary(llvm::IRBuilderBase& b, const VectorFeatures&, Binary function, Value* x, Value* y) {
  checkType(x);
  VORTEX_CHECK(x->getType() == y->getType(), "operands of one type");
  const FloatCode code(b, x->getType());
  switch (function) {
  case Binary::Pow: return code.isDouble ? emitLibm(code, "pow", {x, y}) : emitPow(code, x, y);
  case Binary::Min: return b.CreateBinaryIntrinsic(llvm::Intrinsic::minnum, x, y);
  case Binary::Max: return b.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, x, y);
  case Binary::MinNan: return b.CreateBinaryIntrinsic(llvm::Intrinsic::minimum, x, y);
  case Binary::MaxNan: return b.CreateBinaryIntrinsic(llvm::Intrinsic::maximum, x, y);
  case Binary::Mod: return emitLibm(code, "fmod", {x, y});  // exact in f64 for f32 operands
  case Binary::Atan2: return emitLibm(code, "atan2", {x, y});
  }
  VORTEX_UNREACHABLE("no such function");
}

}  // namespace vortex::target::math
