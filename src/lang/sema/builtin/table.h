// The built-in functions: one row each.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lang/sema/builtins.h"
#include "lang/sema/types.h"

namespace vortex::lang {

struct BuiltinCall;
struct Expr;

enum class BuiltinPlace : uint8_t { Anywhere, Host, Kernel };

/// Values a row is a method of (bits).
enum Receiver : uint8_t { kNoMethod = 0, kNumber = 1, kTensor = 2, kVec = 4, kText = 8, kArray = 16, kAny = 31 };

struct BuiltinRow {
  std::string_view name;
  Builtin id;
  BuiltinPlace place;
  uint8_t receivers;
  std::string_view params;  ///< "x, dim?, keepdim?"; a last "*" takes any number
  Expr* (*check)(BuiltinCall&);
};

const BuiltinRow* findBuiltin(std::string_view name);
const BuiltinRow* findBuiltinMethod(std::string_view name, Type receiver);
bool isBuiltinName(std::string_view name);
bool isBuiltinMethod(std::string_view name);
bool isBuiltinNamespace(std::string_view name);
/// The kind of code that alone has a built-in of this name (`Anywhere`: both); nothing if there is none.
std::optional<BuiltinPlace> placeOfBuiltin(std::string_view name);
void addBuiltinNames(std::vector<std::string>& names);
std::vector<std::string> builtinsIn(std::string_view space);
std::vector<std::string> builtinMethodsOf(Type receiver);

}  // namespace vortex::lang
