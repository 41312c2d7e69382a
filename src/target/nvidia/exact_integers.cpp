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

/// A register, of which the low bits of `type` count, or a number of 16 bits as 32 in `to`.
std::string widened(llvm::StringRef operand, llvm::StringRef type, const std::string& to) {
  long long number = 0;
  const bool isSigned = type.starts_with("s");
  if (operand.getAsInteger(0, number))
    return std::string("cvt.") + (isSigned ? "s32." : "u32.") + type.str() + " " + to + ", " + operand.str() + "; ";
  return "mov.b32 " + to + ", " + std::to_string(isSigned ? int16_t(number) : uint16_t(number)) + "; ";
}

std::string absolute(const std::string& result, const std::string& x, int bits) {
  const std::string n = std::to_string(bits), type = ".s" + n;
  return ".reg .b" + n + " %sign, %other; shr" + type + " %sign, " + x + ", " + std::to_string(bits - 1) + "; xor.b" +
         n + " %other, " + x + ", %sign; sub" + type + " " + result + ", %other, %sign; ";
}

/// Nothing: the instruction is good as it is.
std::optional<std::string> exact(const Instruction& given) {
  const llvm::StringRef name = given.name, type = given.type;
  const std::string result = given.operands[0].str(), x = given.operands[1].str();
  if (name == "abs" && (type == "s32" || type == "s64"))
    return "{ " + absolute(result, x, type == "s32" ? 32 : 64) + "}";
  if (name == "cvt") {
    auto [to, from] = type.rsplit('.');
    if ((from != "s16" && from != "u16" && from != "s8" && from != "u8") || !to.contains('f'))
      return std::nullopt;
    return "{ .reg .b32 %x; " + widened(x, from, "%x") + "cvt." + to.str() + "." + from.front() + "32 " + result +
           ", %x; }";
  }
  if (type != "s16" && type != "u16")
    return std::nullopt;
  std::string text = "{ .reg .b32 %x, %y; " + widened(x, type, "%x");
  if (name == "neg")
    text += "neg.s32 %x, %x; ";
  else if (name == "abs")
    text += absolute("%x", "%x", 32);
  else if (name == "min" || name == "max" || name == "div" || name == "rem")
    text += widened(given.operands[2], type, "%y") + name.str() + "." + type.front() + "32 %x, %x, %y; ";
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
