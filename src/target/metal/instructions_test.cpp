#include "target/metal/instructions.h"

#include <gtest/gtest.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

namespace vortex::target::metal {

namespace {

using llvm::Value;

class InstructionsOf : public testing::Test {
protected:
  /// What a function of `a` and `b` of a type returns, in one expression.
  template <class Make> std::string print(llvm::Type* type, Make make) {
    llvm::IRBuilder<> ir(context_);
    auto* function = llvm::Function::Create(llvm::FunctionType::get(type, {type, type}, false),
                                            llvm::GlobalValue::InternalLinkage, "f", module_);
    ir.SetInsertPoint(llvm::BasicBlock::Create(context_, "", function));
    Value* result = make(ir, function->getArg(0), function->getArg(1));
    ir.CreateRet(result);
    Instructions instructions;
    return instructions.print(*function, {"a", "b"}, [](const std::string&, const std::string& text) { return text; });
  }

  llvm::LLVMContext context_;
  llvm::Module module_{"test", context_};
};

TEST_F(InstructionsOf, ComparisonsOfFloats) {
  using P = llvm::CmpInst::Predicate;
  // Those that NaN passes are the opposite of those that it fails.
  const std::pair<P, const char*> all[] = {
      {P::FCMP_OEQ, "(a == b)"},           {P::FCMP_OGT, "(a > b)"},
      {P::FCMP_OGE, "(a >= b)"},           {P::FCMP_OLT, "(a < b)"},
      {P::FCMP_OLE, "(a <= b)"},           {P::FCMP_ONE, "(a < b || a > b)"},
      {P::FCMP_ORD, "(a == a && b == b)"}, {P::FCMP_UEQ, "!(a < b || a > b)"},
      {P::FCMP_UGT, "!(a <= b)"},          {P::FCMP_UGE, "!(a < b)"},
      {P::FCMP_ULT, "!(a >= b)"},          {P::FCMP_ULE, "!(a > b)"},
      {P::FCMP_UNE, "(a != b)"},           {P::FCMP_UNO, "!(a == a && b == b)"},
  };
  for (auto [predicate, text] : all)
    EXPECT_EQ(
        print(llvm::Type::getFloatTy(context_),
              [&](auto& ir, Value* a, Value* b) { return ir.CreateSelect(ir.CreateFCmp(predicate, a, b), a, b); }),
        std::string("(") + text + " ? a : b)");
}

TEST_F(InstructionsOf, TrueIsBelowFalseWhereItHasASign) {
  using P = llvm::CmpInst::Predicate;
  for (auto [predicate, text] : {std::pair(P::ICMP_SLT, "(b < a)"), std::pair(P::ICMP_SGE, "(b >= a)"),
                                 std::pair(P::ICMP_ULT, "(a < b)"), std::pair(P::ICMP_UGE, "(a >= b)")})
    EXPECT_EQ(print(llvm::Type::getInt1Ty(context_),
                    [&](auto& ir, Value* a, Value* b) { return ir.CreateICmp(predicate, a, b); }),
              text);
}

TEST_F(InstructionsOf, FloatsHaveAllTheirDigits) {
  auto constant = [&](float value) {
    return constantText(llvm::ConstantFP::get(llvm::Type::getFloatTy(context_), double(value)));
  };
  EXPECT_EQ(constant(16777215.0f), "16777215.0f");
  EXPECT_EQ(constant(-0x1.234566p-3f), "(-0.142222211f)");
  EXPECT_EQ(constant(0x1.fffffep127f), "3.40282347e+38f");
  EXPECT_EQ(constant(0x1p-140f), "as_type<float>(uint(0x200u))");
}

TEST_F(InstructionsOf, NarrowIntegersDoNotOverflowInt) {
  auto product = [](auto& ir, Value* a, Value* b) { return ir.CreateMul(a, b); };
  EXPECT_EQ(print(llvm::Type::getInt8Ty(context_), product), "uchar(uint(a) * uint(b))");
  EXPECT_EQ(print(llvm::Type::getInt16Ty(context_), product), "ushort(uint(a) * uint(b))");
  EXPECT_EQ(print(llvm::Type::getInt32Ty(context_), product), "(a * b)");
  EXPECT_EQ(print(llvm::Type::getInt64Ty(context_), product), "(a * b)");
}

TEST_F(InstructionsOf, IntegersFromFloatsSaturateAndNaNIsZero) {
  llvm::Type* word = llvm::Type::getInt32Ty(context_);
  const std::string text = print(llvm::Type::getFloatTy(context_), [&](auto& ir, Value* a, Value*) {
    Value* number = ir.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {word, a->getType()}, {a});
    return ir.CreateBitCast(number, a->getType());
  });
  EXPECT_NE(text.find("a >= 2.14748365e+09f ? 2147483647u : a <= (-2.14748365e+09f) ? 2147483648u : "
                      "a == a ? uint(int(a)) : uint(0)"),
            std::string::npos)
      << text;
}

TEST_F(InstructionsOf, TheLesserZeroIsNegative) {
  llvm::Type* type = llvm::Type::getFloatTy(context_);
  auto extreme = [&](llvm::Intrinsic::ID id) {
    return print(type, [&](auto& ir, Value* a, Value* b) { return ir.CreateBinaryIntrinsic(id, a, b); });
  };
  const std::string bits = "as_type<float>(as_type<uint>(a) ", rest = " as_type<uint>(b))";
  EXPECT_NE(extreme(llvm::Intrinsic::minimum).find("a == b ? " + bits + "|" + rest + " : a < b"), std::string::npos);
  EXPECT_NE(extreme(llvm::Intrinsic::maximum).find("a == b ? " + bits + "&" + rest + " : a > b"), std::string::npos);
}

}  // namespace

}  // namespace vortex::target::metal
