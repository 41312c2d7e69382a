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
                                           "metal_command_buffer",
                                           "metal_imageblocks",
                                           "metal_initializer_list",
                                           "metal_interpolate",
                                           "metal_mesh",
                                           "metal_raytracing",
                                           "metal_visible_function_table",
                                           "simd/simd.h",
                                           "simd/types.h",
                                           "simd/base.h",
                                           "simd/vector.h",
                                           "simd/vector_types.h",
                                           "simd/matrix.h",
                                           "simd/matrix_types.h",
                                           "simd/packed.h"};

/// The functions behind the property `name`.
static std::string accessors(const std::string& name, const std::string& type, bool isPacked, bool isAssignable) {
  std::string got = type + "::__from(v." + name + ")", put;
  for (size_t i = 0; i < name.size(); ++i)  // the others stay: another thread may write them
    put += std::string(1, name[i]) + " = (T)t.v[" + std::to_string(i) + "]; ";
  if (isPacked) {
    got = type + "(";
    put = "";
    for (size_t i = 0; i < name.size(); ++i) {
      const std::string elem = "d[" + std::to_string(std::string_view("xyzw").find(name[i])) + "]";
      got += (i ? ", " : "") + elem;
      put += elem + (name.size() == 1 ? " = t; " : " = (T)t.v[" + std::to_string(i) + "]; ");
    }
    got += ")";
  }
  std::string text = " __VX " + type + " __get_" + name + "() const { return " + got + "; }";
  if (isAssignable)
    text += " __VX void __put_" + name + "(" + type + " t) & { " + put + "}";
  return text;
}

/// Properties for every swizzle of a vector of `width` elements, in both sets of names; those without repetition can be assigned. A packed
/// vector has its elements as properties too.
static std::string swizzles(int width, bool isPacked) {
  static constexpr std::string_view kNames = "xyzw", kColours = "rgba";
  std::string text = (isPacked ? "#define __PACKED_SWIZZLES" : "#define __SWIZZLES") + std::to_string(width);
  for (int count = isPacked ? 1 : 2; count <= 4; ++count) {
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
      std::string type = count == 1 ? "T" : "vec<T, " + std::to_string(count) + ">";
      text += accessors(name, type, isPacked, isAssignable);
      for (const std::string& property : {name, colour})
        text += " __declspec(property(get = __get_" + name + (isAssignable ? ", put = __put_" + name : "") + ")) " +
                type + " " + property + ";";
    }
  }
  return text + "\n";
}

static std::map<std::string, std::string> makeFiles() {
  std::map<std::string, std::string> files;
  std::string& prelude = files[kPrelude];
  for (int width = 2; width <= 4; ++width)
    prelude += swizzles(width, false) + swizzles(width, true);
  for (const char* part : kParts)
    prelude += part;
  for (const char* name : kHeaders)
    files[std::string(kShimFolder) + "/" + name];
  return files;
}

const std::map<std::string, std::string>& shimFiles() {
  static const std::map<std::string, std::string> kFiles = makeFiles();
  return kFiles;
}

}  // namespace vortex::msl::front
