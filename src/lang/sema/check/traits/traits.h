// What traits promise: the built-in ones, the user's with their supertraits, and what a generic parameter's bounds allow.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lang/sema/check/names/scope.h"

namespace vortex::lang {

enum class BuiltinTrait : uint8_t {
  Copy,
  Numeric,
  Integer,
  Unsigned,
  Signed,
  Float,
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
  /// Types that have it are scalars.
  bool isNumber() const { return has(BuiltinTrait::Numeric); }
  bool isSpace() const { return has(BuiltinTrait::MemorySpace); }

private:
  uint32_t bits_ = 0;
};

/// A trait named in a bound: the user's (`item`) or a built-in one.
struct TraitRef {
  const syn::TraitItem* item = nullptr;
  ItemScope* scope = nullptr;
  std::optional<BuiltinTrait> builtin;
  std::vector<GenericValue> args{};  ///< `f32` of `From<f32>`, by the trait's parameters; unbound where not known yet
  std::vector<std::pair<std::string_view, Type>> fixed{};  ///< `Container<Item = f32>`

  /// The same trait with the same arguments; what it fixes does not count.
  bool operator==(const TraitRef& other) const;
  bool isOpen() const;  ///< some argument is not known
  std::string text() const;
};

/// The trait's parameters with their arguments.
GenericEnv envOf(const TraitRef& trait);

/// One type up to extents that are not constants, which the impl of a struct or tensor does not fix.
bool agree(Type a, Type b);
bool agree(const GenericValue& a, const GenericValue& b);

/// What a `where` clause says of a type made from a parameter by its associated types: `where T.Item: Numeric`.
struct PathBounds {
  std::vector<std::string_view> path;  ///< below the parameter: "Item"
  syn::List<syn::Type*> bounds;
  ItemScope* scope = nullptr;
};

/// A generic parameter that stands for itself while its definition is checked (types.h, TypeParam), and what its bounds grant.
struct BoundParam : TypeParam {
  TraitSet builtins;
  std::vector<TraitRef> traits;  ///< the user's, with their supertraits
  std::string boundsText;        ///< "Area + Copy" as written; empty without bounds
  std::vector<PathBounds> paths;
  bool isAssociated = false;  ///< `T.Item`, declared in a trait
};

/// `where Pair<T, U>: Area`, `where Self: Area`: on a type, not on a generic parameter or dimension by its name.
bool isTypeCondition(const syn::WherePredicate& predicate);

}  // namespace vortex::lang
