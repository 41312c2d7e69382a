// What <simd/simd.h> names: Metal's own types. Headers that a program shares with its kernels use them.
#define __SIMD_VECTORS(T)                                                                                              \
  using vector_##T##2 = metal::vec<T, 2>;                                                                              \
  using vector_##T##3 = metal::vec<T, 3>;                                                                              \
  using vector_##T##4 = metal::vec<T, 4>;                                                                              \
  using simd_##T##2 = metal::vec<T, 2>;                                                                                \
  using simd_##T##3 = metal::vec<T, 3>;                                                                                \
  using simd_##T##4 = metal::vec<T, 4>;                                                                                \
  using simd_packed_##T##2 = metal::packed_vec<T, 2>;                                                                  \
  using simd_packed_##T##4 = metal::packed_vec<T, 4>;                                                                  \
  namespace simd {                                                                                                     \
  using metal::T##2;                                                                                                   \
  using metal::T##3;                                                                                                   \
  using metal::T##4;                                                                                                   \
  using packed_##T##2 = metal::packed_vec<T, 2>;                                                                       \
  using packed_##T##4 = metal::packed_vec<T, 4>;                                                                       \
  }
__ELEMENTS(__SIMD_VECTORS)
#define __SIMD_MATRIX(name)                                                                                            \
  using matrix_##name = metal::name;                                                                                   \
  using simd_##name = metal::name;                                                                                     \
  namespace simd {                                                                                                     \
  using metal::name;                                                                                                   \
  }
#define __SIMD_MATRICES(T)                                                                                             \
  __SIMD_MATRIX(T##2x2) __SIMD_MATRIX(T##2x3) __SIMD_MATRIX(T##2x4) __SIMD_MATRIX(T##3x2) __SIMD_MATRIX(T##3x3)        \
  __SIMD_MATRIX(T##3x4) __SIMD_MATRIX(T##4x2) __SIMD_MATRIX(T##4x3) __SIMD_MATRIX(T##4x4)
__SIMD_MATRICES(float) __SIMD_MATRICES(half)
