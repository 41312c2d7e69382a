#include "msl/front/shim.h"

#include "msl/front/files.h"

#include <string_view>
#include <vector>

namespace vortex::msl::front {

static constexpr const char* kParts[] = {
#include "msl/front/shim_text.inc"
};

static constexpr const char* kHeaders[] = {"metal_stdlib",
                                           "metal_array",
                                           "metal_atomic",
                                           "metal_common",
                                           "metal_compute",
                                           "metal_geometric",
                                           "metal_integer",
                                           "metal_limits",
                                           "metal_logging",
                                           "metal_math",
                                           "metal_matrix",
                                           "metal_numeric",
                                           "metal_pack",
                                           "metal_quadgroup",
                                           "metal_relational",
                                           "metal_simdgroup",
                                           "metal_simdgroup_matrix",
                                           "metal_tuple",
                                           "metal_type_traits",
                                           "metal_types",
                                           "metal_uniform",
                                           "metal_utility",
                                           "metal_texture",
                                           "metal_graphics",
                                           "metal_config",
                                           "metal_assert",
                                           "metal_extended_vector",
                                           "metal_packed_vector",
                                           "simd/simd.h"};

/// Properties for every swizzle of a vector of `width` elements, in both sets of names; those without repetition can be assigned.
static std::string swizzles(int width) {
  static constexpr std::string_view kNames = "xyzw", kColours = "rgba";
  std::string text = "#define __SWIZZLES" + std::to_string(width);
  for (int count = 2; count <= 4; ++count) {
    int total = 1;
    for (int i = 0; i < count; ++i)
      total *= width;
    for (int code = 0; code < total; ++code) {
      std::string name, colour;
      for (int i = 0, rest = code; i < count; ++i, rest /= width) {
        name += kNames[static_cast<size_t>(rest % width)];
        colour += kColours[static_cast<size_t>(rest % width)];
      }
      bool isAssignable = true;
      for (size_t i = 0; i < name.size(); ++i)
        isAssignable &= name.find(name[i], i + 1) == std::string::npos;
      std::string type = "vec<T, " + std::to_string(count) + ">";
      text += " __VX " + type + " __get_" + name + "() const { return " + type + "::__from(v." + name + "); }";
      if (isAssignable)
        text += " __VX void __put_" + name + "(" + type + " t) { v." + name + " = t.v; }";
      for (const std::string& property : {name, colour})
        text += " __declspec(property(get = __get_" + name + (isAssignable ? ", put = __put_" + name : "") + ")) " +
                type + " " + property + ";";
    }
  }
  return text + "\n";
}

std::map<std::string, std::string> shimFiles() {
  std::map<std::string, std::string> files;
  std::string& prelude = files[kPrelude];
  for (int width = 2; width <= 4; ++width)
    prelude += swizzles(width);
  for (const char* part : kParts)
    prelude += part;
  for (const char* name : kHeaders)
    files[std::string(kShimFolder) + "/" + name];
  return files;
}

}  // namespace vortex::msl::front
