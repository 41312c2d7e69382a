#include "target/metal/instructions.h"

#include "base/text.h"
#include "target/metal/scalars.h"

#include <cinttypes>
#include <cstdio>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

namespace vortex::target::metal {

using base::concat;
using llvm::Instruction;

std::string typeName(llvm::Type* type) {
  if (type->isHalfTy())
    return "half";
  if (type->isBFloatTy())
    return "bfloat";
  if (type->isFloatTy())
    return "float";
  if (!type->isIntegerTy())
    return "";
  switch (type->getIntegerBitWidth()) {
  case 1: return "bool";
  case 8: return "uchar";
  case 16: return "ushort";
  case 32: return "uint";
  case 64: return "ulong";
  default: return "";
  }
}

std::string signedName(llvm::Type* type) {
  std::string name = typeName(type);
  return !name.empty() && name[0] == 'u' ? name.substr(1) : name;
}

std::string constantText(llvm::Constant* constant) {
  llvm::Type* type = constant->getType();
  std::string name = typeName(type);
  if (llvm::isa<llvm::UndefValue>(constant) || constant->isNullValue())
    return type->isIntegerTy(1) ? "false" : type->isIntegerTy(32) ? "0u" : concat(name, "(0)");
  char text[40];
  if (auto* integer = llvm::dyn_cast<llvm::ConstantInt>(constant)) {
    if (type->isIntegerTy(1))
      return "true";
    if (type->isIntegerTy(32)) {
      std::snprintf(text, sizeof text, "%" PRIu64 "u", integer->getZExtValue());
      return text;
    }
    std::snprintf(text, sizeof text, "(0x%" PRIx64 "%s)", integer->getZExtValue(), type->isIntegerTy(64) ? "ul" : "");
    return name + text;
  }
  auto* real = llvm::dyn_cast<llvm::ConstantFP>(constant);
  if (!real)
    return "";
  uint64_t bits = real->getValueAPF().bitcastToAPInt().getZExtValue();
  if (type->isFloatTy() && real->getValueAPF().isFiniteNonZero() && !real->getValueAPF().isDenormal()) {
    float value = real->getValueAPF().convertToFloat();
    std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
    std::string digits = text;
    if (digits.find_first_of(".e") == std::string::npos)
      digits += ".0";
    return value < 0 ? concat("(", digits, "f)") : digits + "f";
  }
  std::snprintf(text, sizeof text, "(0x%" PRIx64 "u))", bits);
  return concat("as_type<", name, ">(", type->isFloatTy() ? "uint" : "ushort", text);
}

namespace {

std::string cast(const std::string& type, const std::string& text) { return concat(type, "(", text, ")"); }

/// Expressions of values already seen; what is used once and small is written where it is used.
class Printer {
public:
  Printer(Instructions::Declare declare) : declare_(declare) {}

  bool add(Instruction& instruction);
  std::string text(llvm::Value* value) {
    auto found = texts_.find(value);
    if (found != texts_.end())
      return found->second;
    auto* constant = llvm::dyn_cast<llvm::Constant>(value);
    return constant ? constantText(constant) : "";
  }
  void set(llvm::Value* value, std::string text) { texts_[value] = std::move(text); }

private:
  std::string operand(Instruction& i, unsigned number) { return text(i.getOperand(number)); }
  /// For text that is used several times.
  std::string named(const std::string& type, const std::string& text) {
    const bool isName = llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_'; });
    return isName ? text : declare_(type, text);
  }
  std::string asSigned(llvm::Value* value) { return cast(signedName(value->getType()), text(value)); }
  std::string expression(Instruction& i);
  std::string binary(llvm::BinaryOperator& op);
  std::string compare(llvm::ICmpInst& op);
  std::string compare(llvm::FCmpInst& op);
  std::string convert(llvm::CastInst& op);
  std::string call(llvm::CallInst& op);
  std::string saturate(llvm::CallInst& op, bool isSigned);

  Instructions::Declare declare_;
  llvm::DenseMap<llvm::Value*, std::string> texts_;
};

std::string Printer::binary(llvm::BinaryOperator& op) {
  llvm::Type* type = op.getType();
  std::string x = operand(op, 0), y = operand(op, 1);
  auto infix = [&](const char* sign) { return concat("(", x, " ", sign, " ", y, ")"); };
  // Narrow integers are computed as int by C's rules: 65535 · 65535 would overflow it.
  auto integer = [&](const char* sign) {
    if (type->getIntegerBitWidth() >= 32)
      return infix(sign);
    return concat(typeName(type), "(uint(", x, ") ", sign, " uint(", y, "))");
  };
  auto signedInfix = [&](const char* sign) {
    return cast(typeName(type), concat(asSigned(op.getOperand(0)), " ", sign, " ", asSigned(op.getOperand(1))));
  };
  bool isBool = type->isIntegerTy(1);
  switch (op.getOpcode()) {
  case Instruction::Add: return isBool ? infix("!=") : integer("+");
  case Instruction::Sub: return isBool ? infix("!=") : integer("-");
  case Instruction::Mul: return isBool ? infix("&&") : integer("*");
  case Instruction::UDiv: return integer("/");
  case Instruction::URem: return integer("%");
  case Instruction::SDiv: return signedInfix("/");
  case Instruction::SRem: return signedInfix("%");
  case Instruction::Shl: return integer("<<");
  case Instruction::LShr: return integer(">>");
  case Instruction::AShr: return cast(typeName(type), concat(asSigned(op.getOperand(0)), " >> ", y));
  case Instruction::And: return isBool ? infix("&&") : integer("&");
  case Instruction::Or: return isBool ? infix("||") : integer("|");
  case Instruction::Xor: return isBool ? infix("!=") : integer("^");
  case Instruction::FAdd: return infix("+");
  case Instruction::FSub: return infix("-");
  case Instruction::FMul: return infix("*");
  case Instruction::FDiv: return infix("/");
  default: return "";
  }
}

std::string Printer::compare(llvm::ICmpInst& op) {
  using P = llvm::CmpInst;
  auto sign = [&]() -> const char* {
    switch (op.getPredicate()) {
    case P::ICMP_EQ: return "==";
    case P::ICMP_NE: return "!=";
    case P::ICMP_SLT:
    case P::ICMP_ULT: return "<";
    case P::ICMP_SLE:
    case P::ICMP_ULE: return "<=";
    case P::ICMP_SGT:
    case P::ICMP_UGT: return ">";
    default: return ">=";
    }
  };
  bool isBool = op.getOperand(0)->getType()->isIntegerTy(1);
  if (!op.isSigned() || isBool) {
    bool isTurned = op.isSigned();  // true is −1
    return concat("(", operand(op, isTurned), " ", sign(), " ", operand(op, !isTurned), ")");
  }
  return concat("(", asSigned(op.getOperand(0)), " ", sign(), " ", asSigned(op.getOperand(1)), ")");
}

std::string Printer::compare(llvm::FCmpInst& op) {
  std::string x = operand(op, 0), y = operand(op, 1);
  auto infix = [&](const char* sign) { return concat("(", x, " ", sign, " ", y, ")"); };
  auto differ = [&] { return concat("(", x, " < ", y, " || ", x, " > ", y, ")"); };
  auto ordered = [&] { return concat("(", x, " == ", x, " && ", y, " == ", y, ")"); };
  using P = llvm::CmpInst;
  switch (op.getPredicate()) {
  case P::FCMP_FALSE: return "false";
  case P::FCMP_TRUE: return "true";
  case P::FCMP_OEQ: return infix("==");
  case P::FCMP_OGT: return infix(">");
  case P::FCMP_OGE: return infix(">=");
  case P::FCMP_OLT: return infix("<");
  case P::FCMP_OLE: return infix("<=");
  case P::FCMP_ONE: return differ();
  case P::FCMP_ORD: return ordered();
  case P::FCMP_UNO: return "!" + ordered();
  case P::FCMP_UEQ: return "!" + differ();
  case P::FCMP_UNE: return infix("!=");
  case P::FCMP_UGT: return "!" + infix("<=");
  case P::FCMP_UGE: return "!" + infix("<");
  case P::FCMP_ULT: return "!" + infix(">=");
  case P::FCMP_ULE: return "!" + infix(">");
  default: return "";
  }
}

std::string Printer::convert(llvm::CastInst& op) {
  llvm::Type *from = op.getSrcTy(), *to = op.getDestTy();
  std::string x = operand(op, 0), name = typeName(to);
  if (name.empty() || typeName(from).empty())
    return "";
  switch (op.getOpcode()) {
  case Instruction::Trunc: return to->isIntegerTy(1) ? concat("((", x, " & 1) != 0)") : cast(name, x);
  case Instruction::SExt:
    return from->isIntegerTy(1) ? concat("(", x, " ? ", name, "(-1) : ", name, "(0))")
                                : cast(name, cast(signedName(to), asSigned(op.getOperand(0))));
  case Instruction::FPToSI: return cast(name, cast(signedName(to), x));
  case Instruction::SIToFP: return cast(name, asSigned(op.getOperand(0)));
  case Instruction::ZExt:
  case Instruction::FPTrunc:
  case Instruction::FPExt:
  case Instruction::FPToUI:
  case Instruction::UIToFP: return cast(name, x);
  case Instruction::BitCast: return from == to ? x : concat("as_type<", name, ">(", x, ")");
  default: return "";
  }
}

/// Toward zero, the nearest number of the type for what lies beyond it, 0 for NaN.
std::string Printer::saturate(llvm::CallInst& op, bool isSigned) {
  llvm::Type* type = op.getType();
  unsigned bits = type->getIntegerBitWidth() - (isSigned ? 1 : 0);
  if (type->isIntegerTy(1) || !op.getOperand(0)->getType()->isFloatTy())
    return "";
  std::string x = named("float", operand(op, 0)), name = typeName(type);
  llvm::LLVMContext& context = type->getContext();
  auto limit = [&](double value) {
    return constantText(llvm::ConstantFP::get(llvm::Type::getFloatTy(context), value));
  };
  llvm::APInt most = isSigned ? llvm::APInt::getSignedMaxValue(bits + 1) : llvm::APInt::getMaxValue(bits);
  llvm::APInt least = isSigned ? llvm::APInt::getSignedMinValue(bits + 1) : llvm::APInt::getZero(bits);
  double high = __builtin_ldexp(1.0, static_cast<int>(bits));
  std::string lowest = isSigned ? limit(-high) : limit(-1);
  return concat("(", x, " >= ", limit(high), " ? ", constantText(llvm::ConstantInt::get(context, most)), " : ", x,
                " <= ", lowest, " ? ", constantText(llvm::ConstantInt::get(context, least)), " : ", x, " == ", x, " ? ",
                cast(name, cast(isSigned ? signedName(type) : name, x)), " : ", name, "(0))");
}

std::string Printer::call(llvm::CallInst& op) {
  auto arguments = [&] {
    std::string all;
    for (llvm::Value* each : op.args())
      all += (all.empty() ? "" : ", ") + text(each);
    return all;
  };
  llvm::StringRef name = op.getCalledFunction() ? op.getCalledFunction()->getName() : "";
  if (name.consume_front(kMetalFunction))
    return concat(name.str(), "(", arguments(), ")");
  std::string type = typeName(op.getType());
  auto function = [&](const char* metal) { return concat(metal, "(", arguments(), ")"); };
  auto first = [&](const char* metal) { return concat(metal, "(", operand(op, 0), ")"); };
  auto onSigned = [&](const char* metal) {
    return cast(type, concat(metal, "(", asSigned(op.getOperand(0)), ", ", asSigned(op.getOperand(1)), ")"));
  };
  // Both NaN and the sign of zero count.
  auto extreme = [&](const char* sign, const char* merge) {
    std::string x = named("float", operand(op, 0)), y = named("float", operand(op, 1));
    return concat("(", x, " != ", x, " || ", y, " != ", y, " ? ", x, " + ", y, " : ", x, " == ", y,
                  " ? as_type<float>(as_type<uint>(", x, ") ", merge, " as_type<uint>(", y, ")) : ", x, " ", sign, " ",
                  y, " ? ", x, " : ", y, ")");
  };
  namespace in = llvm::Intrinsic;
  switch (op.getIntrinsicID()) {
  case in::fma:
  case in::fmuladd: return function("fma");
  case in::fabs: return function("fabs");
  case in::copysign: return function("copysign");
  case in::floor: return function("floor");
  case in::ceil: return function("ceil");
  case in::trunc: return function("trunc");
  case in::round: return function("round");
  case in::rint:
  case in::nearbyint:
  case in::roundeven: return function("rint");
  case in::sqrt: return function("precise::sqrt");
  case in::minnum: return function("fmin");
  case in::maxnum: return function("fmax");
  case in::minimum: return op.getType()->isFloatTy() ? extreme("<", "|") : "";
  case in::maximum: return op.getType()->isFloatTy() ? extreme(">", "&") : "";
  case in::smax: return onSigned("max");
  case in::smin: return onSigned("min");
  case in::umax: return function("max");
  case in::umin: return function("min");
  case in::abs: return cast(type, concat("abs(", asSigned(op.getOperand(0)), ")"));
  case in::ctpop: return first("popcount");
  case in::ctlz: return first("clz");
  case in::cttz: return first("ctz");
  case in::fptosi_sat: return saturate(op, true);
  case in::fptoui_sat: return saturate(op, false);
  default: return "";
  }
}

std::string Printer::expression(Instruction& i) {
  if (auto* op = llvm::dyn_cast<llvm::BinaryOperator>(&i))
    return binary(*op);
  if (auto* op = llvm::dyn_cast<llvm::ICmpInst>(&i))
    return compare(*op);
  if (auto* op = llvm::dyn_cast<llvm::FCmpInst>(&i))
    return compare(*op);
  if (auto* op = llvm::dyn_cast<llvm::CastInst>(&i))
    return convert(*op);
  if (auto* op = llvm::dyn_cast<llvm::CallInst>(&i))
    return call(*op);
  if (llvm::isa<llvm::SelectInst>(i))
    return concat("(", operand(i, 0), " ? ", operand(i, 1), " : ", operand(i, 2), ")");
  if (i.getOpcode() == Instruction::FNeg)
    return concat("(-", operand(i, 0), ")");
  if (llvm::isa<llvm::FreezeInst>(i))
    return operand(i, 0);
  return "";
}

bool Printer::add(Instruction& instruction) {
  constexpr size_t kInline = 60;  // characters
  std::string type = typeName(instruction.getType());
  std::string written = type.empty() ? "" : expression(instruction);
  if (written.empty())
    return false;
  bool staysInline = instruction.hasOneUse() && written.size() <= kInline;
  texts_[&instruction] = staysInline ? written : declare_(type, written);
  return true;
}

}  // namespace

std::string Instructions::print(llvm::Function& function, llvm::ArrayRef<std::string> arguments, Declare declare) {
  Printer printer(declare);
  for (auto [argument, text] : llvm::zip(function.args(), arguments))
    printer.set(&argument, text);
  llvm::BasicBlock& block = function.getEntryBlock();
  for (Instruction& each : block) {
    if (auto* result = llvm::dyn_cast<llvm::ReturnInst>(&each)) {
      std::string text = printer.text(result->getReturnValue());
      if (text.empty())
        unsupported = "a constant of this type";
      return text;
    }
    if (printer.add(each))
      continue;
    auto* call = llvm::dyn_cast<llvm::CallInst>(&each);
    unsupported = call && call->getCalledFunction() ? call->getCalledFunction()->getName().str() : each.getOpcodeName();
    return "";
  }
  return "";
}

}  // namespace vortex::target::metal
