#include "hvm/syntax/program.h"

#include <algorithm>

namespace vortex::hvm {

uint32_t evaluate(Operator op, uint32_t left, uint32_t right) {
  switch (op) {
  case Operator::Add: return left + right;
  case Operator::Sub: return left - right;
  case Operator::Mul: return left * right;
  case Operator::Div: return right ? left / right : 0;
  case Operator::Mod: return right ? left % right : 0;
  case Operator::And: return left & right;
  case Operator::Or: return left | right;
  case Operator::Xor: return left ^ right;
  case Operator::Shl: return left << (right & 31);
  case Operator::Shr: return left >> (right & 31);
  case Operator::Not: return ~right;
  case Operator::Eq: return left == right;
  case Operator::Ne: return left != right;
  case Operator::Lt: return left < right;
  case Operator::Le: return left <= right;
  case Operator::Gt: return left > right;
  case Operator::Ge: return left >= right;
  }
  VORTEX_UNREACHABLE();
}

const char* spelling(Operator op) {
  static constexpr const char* kSpellings[] = {"+",  "-", "*",  "/",  "%", "&&", "||", "^", "<<",
                                               ">>", "~", "==", "!=", "<", "<=", ">",  ">="};
  return kSpellings[static_cast<size_t>(op)];
}

NodeId Program::add(Node node) {
  nodes.push_back(std::move(node));
  return static_cast<NodeId>(nodes.size() - 1);
}

uint32_t Program::definition(std::string_view name) {
  auto [place, isNew] = definitionIndex.try_emplace(std::string(name), static_cast<uint32_t>(definitions.size()));
  if (isNew)
    definitions.push_back({std::string(name)});
  return place->second;
}

// Digits of labels by value: _ a…z A…Z 0…9 $.
static constexpr std::string_view kDigits = "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789$";

int32_t encodeName(std::string_view name) {
  uint32_t code = 0;
  for (char digit : name) {
    code = code * 64 + static_cast<uint32_t>(kDigits.find(digit));
    if (code > 0xffff)
      return -1;
  }
  return static_cast<int32_t>(code);
}

std::string decodeName(uint32_t code) {
  std::string name;
  for (code &= 0xffff; code != 0; code /= 64)
    name += kDigits[code % 64];
  std::reverse(name.begin(), name.end());
  return name.empty() ? "_" : name;
}

}  // namespace vortex::hvm
