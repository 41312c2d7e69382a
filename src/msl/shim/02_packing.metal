// Normalised integers in a word.
namespace metal {

template <int B, int N, bool isSigned> __VX vec<float, N> __unpack_norm(uint word) {
  vec<float, N> r;
  __UNROLL for (int i = 0; i < N; ++i) {
    if constexpr (isSigned)
      r.v[i] = metal::max((float)((int)(word << (32 - B - i * B)) >> (32 - B)) / (float)((1 << (B - 1)) - 1), -1.0f);
    else
      r.v[i] = (float)((word >> (i * B)) & ((1u << B) - 1)) / (float)((1u << B) - 1);
  }
  return r;
}
template <int B, int N, bool isSigned> __VX uint __pack_norm(vec<float, N> x) {
  uint word = 0;
  __UNROLL for (int i = 0; i < N; ++i) {
    float top = (float)((1u << (B - isSigned)) - 1);
    int number = (int)__builtin_rintf(metal::clamp((float)x.v[i], isSigned ? -1.0f : 0.0f, 1.0f) * top);
    word |= ((uint)number & ((1u << B) - 1)) << (i * B);
  }
  return word;
}
#define __NORM(kind, B, N, isSigned)                                                                                   \
  __VX vec<float, N> unpack_##kind##_to_float(uint x) { return __unpack_norm<B, N, isSigned>(x); }                     \
  __VX vec<half, N> unpack_##kind##_to_half(uint x) { return vec<half, N>(__unpack_norm<B, N, isSigned>(x)); }         \
  __VX uint pack_float_to_##kind(vec<float, N> x) { return __pack_norm<B, N, isSigned>(x); }                           \
  __VX uint pack_half_to_##kind(vec<half, N> x) { return __pack_norm<B, N, isSigned>(vec<float, N>(x)); }
__NORM(unorm4x8, 8, 4, false) __NORM(snorm4x8, 8, 4, true) __NORM(unorm2x16, 16, 2, false) __NORM(snorm2x16, 16, 2, true)

/// Fields of several widths, the first one in the lowest bits.
template <int N, class Widths> __VX vec<float, N> __unpack_fields(uint word, Widths width) {
  vec<float, N> r;
  __UNROLL for (int i = 0, at = 0; i < N; at += width(i), ++i) {
    uint top = (1u << width(i)) - 1;
    r.v[i] = (float)((word >> at) & top) / (float)top;
  }
  return r;
}
template <int N, class Widths> __VX uint __pack_fields(vec<float, N> x, Widths width) {
  uint word = 0;
  __UNROLL for (int i = 0, at = 0; i < N; at += width(i), ++i)
    word |= (uint)__builtin_rintf(metal::clamp((float)x.v[i], 0.0f, 1.0f) * (float)((1u << width(i)) - 1)) << at;
  return word;
}
#define __FIELDS(kind, W, N, width)                                                                                    \
  __VX vec<float, N> unpack_##kind##_to_float(W x) { return __unpack_fields<N>(x, [](int i) { return width; }); }      \
  __VX vec<half, N> unpack_##kind##_to_half(W x) { return vec<half, N>(unpack_##kind##_to_float(x)); }                 \
  __VX W pack_float_to_##kind(vec<float, N> x) { return (W)__pack_fields<N>(x, [](int i) { return width; }); }         \
  __VX W pack_half_to_##kind(vec<half, N> x) { return pack_float_to_##kind(vec<float, N>(x)); }
__FIELDS(unorm10a2, uint, 4, i < 3 ? 10 : 2) __FIELDS(unorm565, ushort, 3, i == 1 ? 6 : 5)

/// Colours as sRGB has them; the fourth element is none.
__VX float __srgb_of(float c) { return c < 0.0031308f ? 12.92f * c : 1.055f * __vx_pow(c, 1.0f / 2.4f) - 0.055f; }
__VX float __linear_of(float c) { return c <= 0.04045f ? c / 12.92f : __vx_pow((c + 0.055f) / 1.055f, 2.4f); }
__VX vec<float, 4> unpack_unorm4x8_srgb_to_float(uint x) {
  vec<float, 4> r = unpack_unorm4x8_to_float(x);
  __UNROLL for (int i = 0; i < 3; ++i) r.v[i] = __linear_of(r.v[i]);
  return r;
}
__VX uint pack_float_to_srgb_unorm4x8(vec<float, 4> x) {
  __UNROLL for (int i = 0; i < 3; ++i) x.v[i] = __srgb_of(metal::clamp((float)x.v[i], 0.0f, 1.0f));
  return pack_float_to_unorm4x8(x);
}
__VX vec<half, 4> unpack_unorm4x8_srgb_to_half(uint x) { return vec<half, 4>(unpack_unorm4x8_srgb_to_float(x)); }
__VX uint pack_half_to_srgb_unorm4x8(vec<half, 4> x) { return pack_float_to_srgb_unorm4x8(vec<float, 4>(x)); }

}  // namespace metal
