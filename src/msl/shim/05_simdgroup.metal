// Operations of the 32 threads of a simdgroup and of the 4 of a quadgroup, and 8×8 matrices held by a simdgroup.
extern "C" {
#define __COLLECTIVE __attribute__((convergent, nothrow, const))
__PURE uint __vx_lane();
__COLLECTIVE uint __vx_shuffle_index(uint value, uint lane);
__COLLECTIVE uint __vx_shuffle_xor(uint value, uint mask);
__COLLECTIVE uint __vx_shuffle_up(uint value, uint by);
__COLLECTIVE uint __vx_shuffle_down(uint value, uint by);
__COLLECTIVE uint __vx_ballot(bool predicate);
#define __REDUCTIONS(X)                                                                                                \
  X(addf, float) X(mulf, float) X(maxf, float) X(minf, float) X(addi, uint) X(muli, uint) X(maxs, int) X(mins, int)    \
  X(maxu, uint) X(minu, uint) X(and, uint) X(or, uint) X(xor, uint)
#define __DECLARE_REDUCTION(name, T) __COLLECTIVE T __vx_reduce_##name(T);
__REDUCTIONS(__DECLARE_REDUCTION)
}

namespace metal {

/// A value of any type through a shuffle of 32-bit words.
template <class T, class F> __VX T __by_words(T x, F shuffle) {
  if constexpr (__isvec<T>) {
    T r;
    __UNROLL for (int i = 0; i < __shape<T>::count; ++i) r.v[i] = __by_words(x.v[i], shuffle);
    return r;
  } else if constexpr (sizeof(T) == 4) {
    return __builtin_bit_cast(T, shuffle(__builtin_bit_cast(uint, x)));
  } else if constexpr (sizeof(T) == 2) {
    return __builtin_bit_cast(T, (ushort)shuffle(__builtin_bit_cast(ushort, x)));
  } else if constexpr (__is_same(T, bool)) {
    return shuffle(x) != 0;
  } else if constexpr (sizeof(T) == 1) {
    return __builtin_bit_cast(T, (uchar)shuffle(__builtin_bit_cast(uchar, x)));
  } else {
    static_assert(sizeof(T) % 4 == 0, "shuffled values consist of 32-bit words");
    struct Words {
      uint word[sizeof(T) / 4];
    } words = __builtin_bit_cast(Words, x);
    __UNROLL for (uint i = 0; i < sizeof(T) / 4; ++i) words.word[i] = shuffle(words.word[i]);
    return __builtin_bit_cast(T, words);
  }
}
#define __SHUFFLE(name, ...)                                                                                           \
  template <class T> __VX T name(T x, ushort by) {                                                                     \
    return __by_words(x, [by](uint word) -> uint { return __VA_ARGS__; });                                             \
  }
__SHUFFLE(simd_shuffle, __vx_shuffle_index(word, by & 31))
__SHUFFLE(simd_broadcast, __vx_shuffle_index(word, by & 31))
__SHUFFLE(simd_shuffle_xor, __vx_shuffle_xor(word, by))
__SHUFFLE(simd_shuffle_up, __vx_shuffle_up(word, by))
__SHUFFLE(simd_shuffle_down, __vx_shuffle_down(word, by))
__SHUFFLE(simd_shuffle_rotate_up, __vx_shuffle_index(word, (__vx_lane() - by) & 31))
__SHUFFLE(simd_shuffle_rotate_down, __vx_shuffle_index(word, (__vx_lane() + by) & 31))
__SHUFFLE(quad_shuffle, __vx_shuffle_index(word, (__vx_lane() & 28) | (by & 3)))
__SHUFFLE(quad_broadcast, __vx_shuffle_index(word, (__vx_lane() & 28) | (by & 3)))
__SHUFFLE(quad_shuffle_xor, __vx_shuffle_xor(word, by & 3))
__SHUFFLE(quad_shuffle_up, __vx_shuffle_index(word, (__vx_lane() & 3) >= by ? __vx_lane() - by : __vx_lane()))
__SHUFFLE(quad_shuffle_down, __vx_shuffle_index(word, (__vx_lane() & 3) + by < 4 ? __vx_lane() + by : __vx_lane()))
__SHUFFLE(quad_shuffle_rotate_up, __vx_shuffle_index(word, (__vx_lane() & 28) | ((__vx_lane() - by) & 3)))
__SHUFFLE(quad_shuffle_rotate_down, __vx_shuffle_index(word, (__vx_lane() & 28) | ((__vx_lane() + by) & 3)))
template <class T> __VX T simd_broadcast_first(T x) { return simd_broadcast(x, 0); }
template <class T> __VX T quad_broadcast_first(T x) { return quad_broadcast(x, 0); }
template <class T> __VX T simd_shuffle_and_fill_up(T x, T fill, ushort by, ushort modulo = 32) {
  uint at = __vx_lane() & (modulo - 1);
  T own = simd_shuffle(x, at >= by ? __vx_lane() - by : __vx_lane());
  T other = simd_shuffle(fill, (__vx_lane() + modulo - by) & 31);
  return at >= by ? own : other;
}
template <class T> __VX T simd_shuffle_and_fill_down(T x, T fill, ushort by, ushort modulo = 32) {
  uint at = __vx_lane() & (modulo - 1);
  T own = simd_shuffle(x, at + by < modulo ? __vx_lane() + by : __vx_lane());
  T other = simd_shuffle(fill, (__vx_lane() + by - modulo) & 31);
  return at + by < modulo ? own : other;
}

template <class T> __VX T quad_shuffle_and_fill_up(T x, T fill, ushort by, ushort modulo = 4) {
  return simd_shuffle_and_fill_up(x, fill, by, modulo);
}
template <class T> __VX T quad_shuffle_and_fill_down(T x, T fill, ushort by, ushort modulo = 4) {
  return simd_shuffle_and_fill_down(x, fill, by, modulo);
}

/// Every step joins neighbouring halves, of which all threads have the result: the first one of a half stands for it, and says whether it exists.
template <class T, class F> __VX T __butterfly(T x, uint lanes, F combine) {
  uint existing = __vx_ballot(true), lane = __vx_lane();
  __UNROLL for (uint distance = 1; distance < lanes; distance *= 2) {
    uint first = (lane & ~(distance - 1)) ^ distance;
    bool exists = (existing >> first) & 1;
    T other = simd_shuffle(x, exists ? first : lane);
    x = exists ? combine(x, other) : x;
  }
  return x;
}
#define __REDUCE(name, FLOAT, SIGNED, UNSIGNED, ...)                                                                   \
  template <class T> __VX T simd_##name(T x) {                                                                         \
    if constexpr (__isvec<T>) {                                                                                        \
      T r;                                                                                                             \
      __UNROLL for (int i = 0; i < __shape<T>::count; ++i) r.v[i] = simd_##name(x.v[i]);                               \
      return r;                                                                                                        \
    } else if constexpr (is_floating_point_v<T>) {                                                                     \
      return (T)__vx_reduce_##FLOAT((float)x);                                                                         \
    } else if constexpr (sizeof(T) > 4) {                                                                              \
      return __butterfly(x, 32, [](T a, T b) -> T { return __VA_ARGS__; });                                            \
    } else if constexpr (is_signed_v<T>) {                                                                             \
      return (T)__vx_reduce_##SIGNED((int)x);                                                                          \
    } else {                                                                                                           \
      return (T)__vx_reduce_##UNSIGNED((uint)x);                                                                       \
    }                                                                                                                  \
  }                                                                                                                    \
  template <class T> __VX T quad_##name(T x) {                                                                         \
    return __butterfly(x, 4, [](T a, T b) -> T { return __VA_ARGS__; });                                               \
  }
__REDUCE(sum, addf, addi, addi, a + b)
__REDUCE(product, mulf, muli, muli, a * b)
__REDUCE(max, maxf, maxs, maxu, metal::max(a, b))
__REDUCE(min, minf, mins, minu, metal::min(a, b))
#define __REDUCE_BITS(name, op)                                                                                        \
  template <class T> __VX T simd_##name(T x) {                                                                         \
    if constexpr (sizeof(T) > 4 || __isvec<T>)                                                                         \
      return __butterfly(x, 32, [](T a, T b) -> T { return a op b; });                                                 \
    else                                                                                                               \
      return (T)__vx_reduce_##name((uint)x);                                                                           \
  }                                                                                                                    \
  template <class T> __VX T quad_##name(T x) {                                                                         \
    return __butterfly(x, 4, [](T a, T b) -> T { return a op b; });                                                    \
  }
__REDUCE_BITS(and, &)
__REDUCE_BITS(or, |)
__REDUCE_BITS(xor, ^)

template <class T, class F> __VX T __scan(T x, uint lanes, F combine) {
  uint at = __vx_lane() & (lanes - 1);
  __UNROLL for (uint distance = 1; distance < lanes; distance *= 2) {
    T before = simd_shuffle(x, at >= distance ? __vx_lane() - distance : __vx_lane());
    x = at >= distance ? combine(before, x) : x;
  }
  return x;
}
#define __SCAN(group, lanes, name, neutral, ...)                                                                       \
  template <class T> __VX T group##_prefix_inclusive_##name(T x) {                                                     \
    return __scan(x, lanes, [](T a, T b) -> T { return __VA_ARGS__; });                                                \
  }                                                                                                                    \
  template <class T> __VX T group##_prefix_exclusive_##name(T x) {                                                     \
    uint at = __vx_lane() & (lanes - 1);                                                                               \
    T before = simd_shuffle(group##_prefix_inclusive_##name(x), at ? __vx_lane() - 1 : __vx_lane());                   \
    return at ? before : T(neutral);                                                                                   \
  }
__SCAN(simd, 32, sum, 0, a + b)
__SCAN(simd, 32, product, 1, a * b)
__SCAN(quad, 4, sum, 0, a + b)
__SCAN(quad, 4, product, 1, a * b)

struct simd_vote {
  typedef ulong vote_t;
  ulong bits;
  simd_vote() = default;
  __VX constexpr explicit simd_vote(ulong b) : bits(b) {}
  __VX explicit operator vote_t() const { return bits; }
  __VX bool all() const { return (uint)bits == UINT_MAX; }
  __VX bool any() const { return bits != 0; }
};
__VX simd_vote simd_ballot(bool predicate) { return simd_vote(__vx_ballot(predicate)); }
__VX simd_vote simd_active_threads_mask() { return simd_vote(__vx_ballot(true)); }
__VX bool simd_any(bool predicate) { return __vx_ballot(predicate) != 0; }
__VX bool simd_all(bool predicate) { return __vx_ballot(!predicate) == 0; }
__VX bool simd_is_first() { return __vx_lane() == (uint)ctz(__vx_ballot(true)); }
struct quad_vote {
  typedef ushort vote_t;
  ushort bits;
  quad_vote() = default;
  __VX constexpr explicit quad_vote(vote_t b) : bits(b) {}
  __VX explicit operator vote_t() const { return bits; }
  __VX bool all() const { return bits == 15; }
  __VX bool any() const { return bits != 0; }
};
__VX quad_vote quad_ballot(bool predicate) {
  return quad_vote((ushort)((__vx_ballot(predicate) >> (__vx_lane() & 28)) & 15));
}
__VX quad_vote quad_active_threads_mask() { return quad_ballot(true); }
__VX bool quad_any(bool predicate) { return quad_ballot(predicate).any(); }
__VX bool quad_all(bool predicate) { return !quad_ballot(!predicate).any(); }
__VX bool quad_is_first() { return (__vx_lane() & 3) == 0; }

//===-- simdgroup_matrix ------------------------------------------------------===//

/// Each lane holds two neighbours of a row: bits 4, 2 and 1 of the lane number are the row, bits 3 and 0 choose the columns.
template <class T, int R, int C> struct simdgroup_matrix {
  static_assert(R == 8 && C == 8, "simdgroup matrices are 8 by 8");
  static_assert(is_floating_point_v<T>, "elements of simdgroup matrices are half, bfloat or float");
  typedef vec<T, 2> storage_type;
  vec<T, 2> e;
  simdgroup_matrix() = default;
  __VX explicit simdgroup_matrix(T diagonal) {
    __UNROLL for (uint k = 0; k < 2; ++k) e[k] = __row() == __column() + k ? diagonal : T(0);
  }
  __VX thread vec<T, 2>& thread_elements() { return e; }
  __VX vec<T, 2> thread_elements() const { return e; }
  static __VX uint __row() { return ((__vx_lane() >> 4) << 2) | ((__vx_lane() >> 1) & 3); }
  static __VX uint __column() { return ((__vx_lane() >> 3) & 1) * 4 + (__vx_lane() & 1) * 2; }
  static __VX uint __lane_of(uint r, uint c) {
    return ((r >> 2) << 4) | ((c >> 2) << 3) | ((r & 3) << 1) | ((c >> 1) & 1);
  }
};
using simdgroup_float8x8 = simdgroup_matrix<float, 8, 8>;
using simdgroup_half8x8 = simdgroup_matrix<half, 8, 8>;
using simdgroup_bfloat8x8 = simdgroup_matrix<bfloat, 8, 8>;
template <class T, int C, int R = C> __VX simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(T value) {
  simdgroup_matrix<T, C, R> m;
  m.e = vec<T, 2>(value);
  return m;
}
template <class T, int C, int R = C> __VX simdgroup_matrix<T, C, R> make_diagonal_simdgroup_matrix(T value) {
  return simdgroup_matrix<T, C, R>(value);
}
#define __MATRIX_ACCESS(A)                                                                                             \
  template <class T>                                                                                                   \
  __VX void simdgroup_load(thread simdgroup_matrix<T, 8, 8>& d, const A T* p, ulong pitch = 8,                         \
                           vec<ulong, 2> origin = vec<ulong, 2>(0ul), bool transposed = false) {                       \
    ulong r = simdgroup_matrix<T, 8, 8>::__row(), c = simdgroup_matrix<T, 8, 8>::__column();                           \
    p += origin[0] + origin[1] * pitch;                                                                                \
    __UNROLL for (int k = 0; k < 2; ++k) d.e[k] = transposed ? p[(c + k) * pitch + r] : p[r * pitch + c + k];          \
  }                                                                                                                    \
  template <class T>                                                                                                   \
  __VX void simdgroup_store(simdgroup_matrix<T, 8, 8> d, A T* p, ulong pitch = 8,                                      \
                            vec<ulong, 2> origin = vec<ulong, 2>(0ul), bool transposed = false) {                      \
    ulong r = simdgroup_matrix<T, 8, 8>::__row(), c = simdgroup_matrix<T, 8, 8>::__column();                           \
    p += origin[0] + origin[1] * pitch;                                                                                \
    __UNROLL for (int k = 0; k < 2; ++k) p[transposed ? (c + k) * pitch + r : r * pitch + c + k] = d.e.v[k];           \
  }
__MATRIX_ACCESS(device)
__MATRIX_ACCESS(__LOCAL)
template <class D, class A, class B, class C>
__VX void simdgroup_multiply_accumulate(thread simdgroup_matrix<D, 8, 8>& d, simdgroup_matrix<A, 8, 8> a,
                                        simdgroup_matrix<B, 8, 8> b, simdgroup_matrix<C, 8, 8> c) {
  typedef simdgroup_matrix<D, 8, 8> M;
  float sum[2] = {(float)c.e.v[0], (float)c.e.v[1]};
  __UNROLL for (uint k = 0; k < 8; ++k) {
    float left = (float)simd_shuffle(a.e.v[k & 1], (ushort)M::__lane_of(M::__row(), k));
    ushort lane = (ushort)M::__lane_of(k, M::__column());
    __UNROLL for (int j = 0; j < 2; ++j) sum[j] = __builtin_fmaf(left, (float)simd_shuffle(b.e.v[j], lane), sum[j]);
  }
  __UNROLL for (int j = 0; j < 2; ++j) d.e[j] = (D)sum[j];
}
template <class D, class A, class B>
__VX void simdgroup_multiply(thread simdgroup_matrix<D, 8, 8>& d, simdgroup_matrix<A, 8, 8> a,
                             simdgroup_matrix<B, 8, 8> b) {
  simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<D, 8, 8>(D(0)));
}
template <class T>
__VX simdgroup_matrix<T, 8, 8> operator*(simdgroup_matrix<T, 8, 8> a, simdgroup_matrix<T, 8, 8> b) {
  simdgroup_matrix<T, 8, 8> d;
  simdgroup_multiply(d, a, b);
  return d;
}

struct os_log {
  constexpr os_log(const char*, const char*) {}
  template <class... A> void log(const char*, A...) const {}
  template <class... A> void log_debug(const char*, A...) const {}
  template <class... A> void log_info(const char*, A...) const {}
  template <class... A> void log_error(const char*, A...) const {}
};

}  // namespace metal
