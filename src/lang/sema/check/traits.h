// What traits promise: the built-in ones, the user's with their supertraits, and what a generic parameter's bounds allow.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lang/sema/check/scope.h"

namespace vortex::lang {

enum class BuiltinTrait : uint8_t {
  Copy,
  Numeric,
  Integer,
  Unsigned,
  Signed,
  Float,
  PrimeField,
  MemorySpace,
  Readable,
  Writable,
  Shape,
  PowerOfTwo,
  NonZero,
};
inline constexpr uint32_t kBuiltinTraitCount = static_cast<uint32_t>(BuiltinTrait::NonZero) + 1;

std::optional<BuiltinTrait> builtinTraitNamed(std::string_view name);
std::string_view name(BuiltinTrait trait);
std::vector<std::string> builtinTraitNames();

/// A set of built-in traits, closed under what each implies (Float: Numeric, Signed, Copy).
class TraitSet {
public:
  void add(BuiltinTrait trait);
  bool has(BuiltinTrait trait) const { return (bits_ & (1U << static_cast<uint32_t>(trait))) != 0; }
  /// Numeric or Float, say: types that have it are scalars.
  bool isNumber() const;
  bool isSpace() const {
    return has(BuiltinTrait::MemorySpace) || has(BuiltinTrait::Readable) || has(BuiltinTrait::Writable);
  }

private:
  uint32_t bits_ = 0;
};

/// A trait named in a bound: the user's (`item`) or a built-in one.
struct TraitRef {
  const syn::TraitItem* item = nullptr;
  ItemScope* scope = nullptr;
  std::optional<BuiltinTrait> builtin;

  bool operator==(const TraitRef& other) const { return item == other.item && builtin == other.builtin; }
};

/// A generic parameter that stands for itself while its definition is checked (types.h, TypeParam), and what its bounds grant.
struct BoundParam : TypeParam {
  TraitSet builtins;
  std::vector<TraitRef> traits;  ///< the user's, with their supertraits
  std::string boundsText;        ///< "Area + Copy" as written; empty without bounds
};

/// `where Pair<T, U>: Area`, `where Self: Area`: on a type, not on a generic parameter or dimension by its name.
bool isTypeCondition(const syn::WherePredicate& predicate);

}  // namespace vortex::lang
