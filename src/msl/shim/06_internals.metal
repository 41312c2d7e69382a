// Names that sources under `#pragma METAL internals` use, and those visible without `using namespace metal`.
#define __INTERNAL1(name) template <class T> __VX T __metal_##name(T x, int) { return metal::name(x); }
#define __INTERNAL2(name) template <class T> __VX T __metal_##name(T x, T y, int = 0) { return metal::name(x, y); }
#define __INTERNAL3(name) template <class T> __VX T __metal_##name(T a, T b, T c, int = 0) { return metal::name(a, b, c); }
__MATH1(__INTERNAL1)
__INTERNAL1(fract)
__MATH2(__INTERNAL2)
__INTERNAL3(fmin3) __INTERNAL3(fmax3) __INTERNAL3(fmedian3) __INTERNAL3(fma)
template <class T> __VX T __metal_ldexp(T x, int e, int = 0) { return metal::ldexp(x, e); }
template <class T> __VX T __metal_frexp(T x, thread int* e) { return metal::frexp(x, *e); }
#define __INTERNAL_SIMD(name) template <class T> __VX T __metal_simd_##name(T x) { return metal::simd_##name(x); }
__INTERNAL_SIMD(sum) __INTERNAL_SIMD(product) __INTERNAL_SIMD(max) __INTERNAL_SIMD(min)
__INTERNAL_SIMD(xor) __INTERNAL_SIMD(and) __INTERNAL_SIMD(or)
__INTERNAL_SIMD(prefix_exclusive_sum) __INTERNAL_SIMD(prefix_inclusive_sum)
__INTERNAL_SIMD(prefix_exclusive_product) __INTERNAL_SIMD(prefix_inclusive_product)
#define __INTERNAL_SHUFFLE(name)                                                                                       \
  template <class T> __VX T __metal_simd_##name(T x, ushort by) { return metal::simd_##name(x, by); }
__INTERNAL_SHUFFLE(shuffle) __INTERNAL_SHUFFLE(shuffle_xor) __INTERNAL_SHUFFLE(shuffle_up)
__INTERNAL_SHUFFLE(shuffle_down) __INTERNAL_SHUFFLE(shuffle_rotate_up) __INTERNAL_SHUFFLE(shuffle_rotate_down)
__INTERNAL_SHUFFLE(broadcast)
template <class T> __VX T __metal_simd_shuffle_and_fill_up(T x, T f, ushort by, ushort m) {
  return metal::simd_shuffle_and_fill_up(x, f, by, m);
}
template <class T> __VX T __metal_simd_shuffle_and_fill_down(T x, T f, ushort by, ushort m) {
  return metal::simd_shuffle_and_fill_down(x, f, by, m);
}
__VX ushort __metal_get_simdgroup_size(ushort) { return 32; }
__VX ushort __metal_get_thread_index_in_simdgroup(ushort) { return __vx_lane(); }

using metal::__msl_cast;
using metal::__msl_value;
using metal::__msl_wide;
using metal::as_type;
#define __VISIBLE_VECTORS(T)                                                                                           \
  using metal::T##2;                                                                                                   \
  using metal::T##3;                                                                                                   \
  using metal::T##4;                                                                                                   \
  using metal::packed_##T##2;                                                                                          \
  using metal::packed_##T##3;                                                                                          \
  using metal::packed_##T##4;
__ELEMENTS(__VISIBLE_VECTORS)
#define __VISIBLE_MATRICES(T)                                                                                          \
  using metal::T##2x2;                                                                                                 \
  using metal::T##2x3;                                                                                                 \
  using metal::T##2x4;                                                                                                 \
  using metal::T##3x2;                                                                                                 \
  using metal::T##3x3;                                                                                                 \
  using metal::T##3x4;                                                                                                 \
  using metal::T##4x2;                                                                                                 \
  using metal::T##4x3;                                                                                                 \
  using metal::T##4x4;
__VISIBLE_MATRICES(float) __VISIBLE_MATRICES(half)
using metal::atomic_bool;
using metal::atomic_float;
using metal::atomic_int;
using metal::atomic_uint;
using metal::atomic_ulong;

//===-- what is refused by name -----------------------------------------------===//

#define __REFUSED(what) __attribute__((unavailable(what " are not supported")))
namespace metal {
enum class access { sample, read, write, read_write };
#define __TEXTURE(name) template <class T, access a = access::sample> struct __REFUSED("textures") name {};
__TEXTURE(texture1d) __TEXTURE(texture1d_array) __TEXTURE(texture2d) __TEXTURE(texture2d_array) __TEXTURE(texture3d)
__TEXTURE(texturecube) __TEXTURE(texturecube_array) __TEXTURE(texture2d_ms) __TEXTURE(texture_buffer)
__TEXTURE(depth2d) __TEXTURE(depth2d_array) __TEXTURE(depthcube)
// What samplers are made of, so that the sampler is what is refused.
enum class coord { normalized, pixel };
enum class address { clamp_to_zero, clamp_to_edge, clamp_to_border, repeat, mirrored_repeat };
enum class filter { nearest, linear, bicubic };
enum class mip_filter { none, nearest, linear };
enum class compare_func { never, less, less_equal, greater, greater_equal, equal, not_equal, always };
typedef address s_address, t_address, r_address;
typedef filter min_filter, mag_filter;
struct __REFUSED("samplers") sampler {
  sampler() = default;
  template <class... A> constexpr sampler(A...) {}
};
template <class T> struct __REFUSED("function tables") visible_function_table {};
template <class... T> struct __REFUSED("function tables") intersection_function_table {};
namespace raytracing {
struct __attribute__((unavailable("ray tracing is not supported"))) primitive_acceleration_structure {};
struct __attribute__((unavailable("ray tracing is not supported"))) instance_acceleration_structure {};
}
using raytracing::instance_acceleration_structure;
}  // namespace metal
