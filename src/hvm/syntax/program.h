// A parsed HVM4 program: nodes after desugaring, with variables resolved to binders.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace vortex::hvm {

using NodeId = uint32_t;    // 0: none
using BinderId = uint32_t;  // 0: none

enum class NodeKind : uint8_t {
  Variable,   // binder, side
  Number,     // value
  Reference,  // value: definition
  Erasure,
  Wildcard,
  Name,         // value: 16-bit name
  Lambda,       // binder; body
  Dup,          // binder, value: label; value, body
  DynamicDup,   // label, value, λx₀.λx₁.body
  Apply,        // function, argument
  Dry,          // ^(f x)
  Sup,          // value: label; left, right
  DynamicSup,   // label, left, right
  Constructor,  // value: constructor; fields
  Match,        // value: constructor; hit, miss
  Switch,       // value: literal; hit, miss
  Use,          // function
  Operator,     // value: Operator; left, right
  Equal,
  And,
  Or,
  Unscoped,  // λf.λx.body
  Priority,  // inner
  Native,    // value: native; arguments
};

enum class Operator : uint8_t { Add, Sub, Mul, Div, Mod, And, Or, Xor, Shl, Shr, Not, Eq, Ne, Lt, Le, Gt, Ge };

/// Values: u32 arithmetic wraps, division by zero is 0, shifts are modulo 32, Not is the complement of the right operand.
uint32_t evaluate(Operator op, uint32_t left, uint32_t right);
const char* spelling(Operator op);

enum class Side : uint8_t { None, Zero, One };

/// A parent's id is larger than its children's.
struct Node {
  NodeKind kind;
  Side side = Side::None;
  BinderId binder = 0;
  uint32_t value = 0;
  std::vector<NodeId> children = {};
};

struct Binder {
  bool isDup = false;
  uint32_t uses[3] = {0, 0, 0};  // by Side
};

struct Definition {
  std::string name;
  NodeId root = 0;  // 0: referred to, never defined
};

/// Constructors that the syntax knows have fixed numbers.
enum KnownConstructor : uint32_t { kZer, kSuc, kNil, kCon, kChr };

enum class NativeKind : uint8_t { Log, Nf, Gnf };
struct NativeFunction {
  std::string_view name;
  NativeKind kind;
  uint32_t arity;
};
inline constexpr NativeFunction kNatives[] = {
    {"log", NativeKind::Log, 1}, {"nf", NativeKind::Nf, 1}, {"gnf", NativeKind::Gnf, 1}};
inline constexpr uint32_t kNfNative = 1;

/// Labels of automatic copies are none that a program writes or computes, which have 16 bits; they are printed without the 17th.
inline constexpr uint32_t kFirstAutomaticLabel = 0x18000, kReservedLabel = 0x1ffff;
inline constexpr uint32_t kMaxFields = 16;

struct Program {
  std::vector<Node> nodes{Node{NodeKind::Erasure}};
  std::vector<Binder> binders{Binder{}};
  std::vector<Definition> definitions;
  std::vector<std::string> constructors{"ZER", "SUC", "NIL", "CON", "CHR"};
  std::unordered_map<std::string, uint32_t> definitionIndex,
      constructorIndex{{"ZER", 0}, {"SUC", 1}, {"NIL", 2}, {"CON", 3}, {"CHR", 4}};
  uint32_t nextLabel = kFirstAutomaticLabel;

  NodeId add(Node node);
  uint32_t definition(std::string_view name);
};

/// Reads `path` and what it includes. The error is the whole text to print: PARSE_ERROR (file:line:col) and its lines.
Result<Program> parseFile(const std::string& path);
/// The same for text in memory; `path` names it in errors and anchors its includes.
Result<Program> parseText(std::string text, const std::string& path);

/// The label or short name as a base-64 number; -1 if it does not fit 16 bits.
int32_t encodeName(std::string_view name);
/// The name whose number the low 16 bits of `code` are.
std::string decodeName(uint32_t code);

}  // namespace vortex::hvm
