#include "target/nvidia/exact_integers.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>
#include <optional>

namespace vortex::target::nvidia {

namespace {

struct Instruction {
  llvm::StringRef name, type;  ///< "neg", "s16"
  llvm::SmallVector<llvm::StringRef, 3> operands;
};

std::optional<Instruction> parse(llvm::StringRef line) {
  auto [opcode, rest] = line.trim().split(' ');
  auto [name, type] = opcode.split('.');
  if (!rest.ends_with(";") || type.empty())
    return std::nullopt;
  Instruction found{name, type, {}};
  rest.drop_back().split(found.operands, ',');
  for (llvm::StringRef& operand : found.operands)
    operand = operand.trim();
  return found;
}

/// A register or a number of 16 bits as 32 in `to`.
std::string widened(llvm::StringRef operand, bool isSigned, const std::string& to) {
  long long number = 0;
  if (operand.getAsInteger(0, number))
    return std::string("cvt.") + (isSigned ? "s32.s16 " : "u32.u16 ") + to + ", " + operand.str() + "; ";
  return "mov.b32 " + to + ", " + std::to_string(isSigned ? int16_t(number) : uint16_t(number)) + "; ";
}

/// Nothing: the instruction is good as it is.
std::optional<std::string> exact(const Instruction& given) {
  auto isOne = [&](std::initializer_list<llvm::StringRef> names) { return llvm::is_contained(names, given.name); };
  const std::string result = given.operands.front().str();
  if (given.name == "abs" && (given.type == "s32" || given.type == "s64")) {
    const std::string x = given.operands[1].str(), bits = given.type.drop_front().str();
    return "{ .reg .b" + bits + " %minus; neg.s" + bits + " %minus, " + x + "; max.s" + bits + " " + result + ", " + x +
           ", %minus; }";
  }
  if (given.type != "s16" && given.type != "u16")
    return std::nullopt;
  const bool isSigned = given.type == "s16";
  std::string text = "{ .reg .b32 %x, %y; " + widened(given.operands[1], isSigned, "%x");
  if (isOne({"neg", "abs"}))
    text += given.name == "neg" ? "neg.s32 %x, %x; " : "neg.s32 %y, %x; max.s32 %x, %x, %y; ";
  else if (isOne({"min", "max", "div", "rem"}))
    text +=
        widened(given.operands[2], isSigned, "%y") + given.name.str() + (isSigned ? ".s32" : ".u32") + " %x, %x, %y; ";
  else
    return std::nullopt;
  return text + "cvt.u16.u32 " + result + ", %x; }";
}

}  // namespace

std::string withExactIntegers(const std::string& ptx) {
  std::string all;
  all.reserve(ptx.size());
  for (llvm::StringRef rest = ptx; !rest.empty();) {
    auto [line, after] = rest.split('\n');
    const bool isWhole = line.size() < rest.size();
    rest = after;
    auto given = line.starts_with("\t") ? parse(line) : std::nullopt;
    auto other = given && given->operands.size() > 1 ? exact(*given) : std::nullopt;
    all += other ? "\t" + *other : line.str();
    if (isWhole)
      all += '\n';
  }
  return all;
}

}  // namespace vortex::target::nvidia
