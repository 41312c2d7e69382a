// Bounds: which trait a name means, whether a value satisfies it, which impl makes it so.
#include "lang/sema/check/traits/traits.h"
#include "lang/sema/check/names/scope.h"

#include "base/text.h"

#include <algorithm>
#include <array>

namespace vortex::lang {

namespace {

struct TraitRow {
  std::string_view name;
  std::array<BuiltinTrait, 3> implies;  ///< itself where there are fewer
};
using enum BuiltinTrait;
constexpr TraitRow kTraits[] = {
    {"Copy", {Copy, Copy, Copy}},
    {"Numeric", {Copy, Copy, Copy}},
    {"Integer", {Numeric, Copy, Copy}},
    {"Unsigned", {Integer, Numeric, Copy}},
    {"Signed", {Numeric, Copy, Copy}},
    {"Float", {Signed, Numeric, Copy}},
    {"MemorySpace", {MemorySpace, MemorySpace, MemorySpace}},
    {"Readable", {MemorySpace, MemorySpace, MemorySpace}},
    {"Writable", {MemorySpace, MemorySpace, MemorySpace}},
    {"Shape", {Shape, Shape, Shape}},
    {"PowerOfTwo", {NonZero, NonZero, NonZero}},
    {"NonZero", {NonZero, NonZero, NonZero}},
};
static_assert(std::size(kTraits) == kBuiltinTraitCount);

}  // namespace

std::optional<BuiltinTrait> builtinTraitNamed(std::string_view name) {
  for (uint32_t i = 0; i < kBuiltinTraitCount; ++i)
    if (kTraits[i].name == name)
      return static_cast<BuiltinTrait>(i);
  return std::nullopt;
}
std::string_view name(BuiltinTrait trait) { return kTraits[static_cast<size_t>(trait)].name; }
std::vector<std::string> builtinTraitNames() {
  std::vector<std::string> names;
  for (const TraitRow& row : kTraits)
    names.emplace_back(row.name);
  names.emplace_back("PrimeField");
  return names;
}

void TraitSet::add(BuiltinTrait trait) {
  bits_ |= 1U << static_cast<uint32_t>(trait);
  for (BuiltinTrait implied : kTraits[static_cast<size_t>(trait)].implies)
    bits_ |= 1U << static_cast<uint32_t>(implied);
}

bool TraitRef::operator==(const TraitRef& other) const {
  if (item != other.item || builtin != other.builtin || args.size() != other.args.size())
    return false;
  for (size_t i = 0; i < args.size(); ++i)
    if (!agree(args[i], other.args[i]))
      return false;
  return true;
}
bool TraitRef::isOpen() const {
  return std::any_of(args.begin(), args.end(), [](const GenericValue& arg) { return !arg.isBound(); });
}
std::string TraitRef::text() const {
  std::string out(item ? item->name.text : name(*builtin));
  for (size_t i = 0; i < args.size(); ++i)
    out += (i ? ", " : "<") + (args[i].isBound() ? lang::text(args[i]) : "_");
  return args.empty() ? out : out + ">";
}
GenericEnv envOf(const TraitRef& trait) {
  GenericEnv env;
  for (size_t i = 0; trait.item && i < trait.item->generics.params.size(); ++i) {
    const syn::GenericParam& param = trait.item->generics.params[i];
    env.push_back({param.name.text, &param, i < trait.args.size() ? trait.args[i] : GenericValue{}});
  }
  return env;
}

}  // namespace vortex::lang
