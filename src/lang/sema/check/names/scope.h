// Modules, the names items declare, and generic arguments.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lang/sema/types.h"
#include "lang/syntax/ast.h"
#include "source/source.h"

namespace vortex::lang {

namespace syn = vortex::lang::syntax;
using source::SourceRange;

struct ItemScope;
struct BoundParam;

/// Missing: an import that failed; its uses stay silent.
enum class SymbolKind : uint8_t { Function, Struct, Enum, Trait, Alias, Const, Module, Missing };

/// One name of an item scope. Imports copy the symbol they name.
struct Symbol {
  SymbolKind kind = SymbolKind::Function;
  const syn::Item* item = nullptr;  ///< null for Module
  ItemScope* scope = nullptr;       ///< where the item was written; Module: the module itself
  SourceRange nameRange;
  bool isPublic = false;
};

/// An `impl` block and where it stands.
struct ImplBlock {
  const syn::ImplItem* item = nullptr;
  ItemScope* scope = nullptr;
};

/// The items of a file, or of a block inside a function (then `parent` is what surrounds it).
struct ItemScope {
  ItemScope* parent = nullptr;
  std::string moduleName;  ///< "" for the root file
  source::FileId file;
  std::map<std::string_view, Symbol> symbols;

  const Symbol* find(std::string_view name) const {
    for (const ItemScope* scope = this; scope; scope = scope->parent)
      if (auto found = scope->symbols.find(name); found != scope->symbols.end())
        return &found->second;
    return nullptr;
  }
};

/// What a generic parameter stands for in one instance.
struct GenericValue {
  enum class Kind : uint8_t { None, Type, Const, Space, Shape };
  Kind kind = Kind::None;
  Type type = nullptr;  ///< Type; Const: the constant's type
  __int128 value = 0;
  Space space = Space::Global;
  const BoundParam* param = nullptr;  ///< Space: stands for itself (traits.h)
  std::vector<DimExpr> shape;

  bool isBound() const { return kind != Kind::None; }
};

struct GenericBinding {
  std::string_view name;
  const syn::GenericParam* param = nullptr;
  GenericValue value;
  bool isExample = false;  ///< the value is the check's choice
};

/// The generic parameters in scope: those of the impl, then those of the function.
using GenericEnv = std::vector<GenericBinding>;

GenericValue* findGeneric(GenericEnv& env, std::string_view name);
const GenericValue* findGeneric(const GenericEnv& env, std::string_view name);
std::string text(const GenericValue& value);
/// "T = f32, N = 256".
std::string text(const GenericEnv& env);

}  // namespace vortex::lang
