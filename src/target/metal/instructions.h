// Straight-line LLVM code as Metal text.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/Function.h>

#include <string>

namespace vortex::target::metal {

/// Metal's name of an integer or float type; integers are unsigned, i1 is bool. Empty: Metal has none.
std::string typeName(llvm::Type* type);
/// The signed integer of that width: "int".
std::string signedName(llvm::Type* type);
/// A number whose bits are those of the constant.
std::string constantText(llvm::Constant* constant);

/// Prints functions of one block without memory accesses.
class Instructions {
public:
  /// `declare` writes `T name = text;` and gives the name.
  using Declare = llvm::function_ref<std::string(const std::string& type, const std::string& text)>;

  /// The returned value as an expression, after declarations of what it needs. `arguments`: expressions without side effects. Empty: an instruction
  /// or type has no form in Metal; `unsupported` names it then.
  std::string print(llvm::Function& function, llvm::ArrayRef<std::string> arguments, Declare declare);
  std::string unsupported;
};

}  // namespace vortex::target::metal
