// Functions of numbers: scalars by hooks or builtins, vectors element by element.
extern "C" {
#define __PURE __attribute__((const, nothrow))
#define __HOOKED1(X)                                                                                                   \
  X(exp) X(exp2) X(log) X(log2) X(log10) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh)          \
  X(rsqrt)
#define __HOOKED2(X) X(atan2) X(pow) X(fmod)
#define __DECLARE1(name) __PURE float __vx_##name(float);
#define __DECLARE2(name) __PURE float __vx_##name(float, float);
__HOOKED1(__DECLARE1)
__HOOKED2(__DECLARE2)
}

namespace metal {

#define __BUILT1(X) X(sqrt) X(floor) X(ceil) X(trunc) X(round) X(rint) X(fabs)
#define __COMPOSED1(X) X(exp10) X(asinh) X(acosh) X(atanh) X(sinpi) X(cospi) X(tanpi) X(sign) X(saturate)
#define __MATH1(X) __HOOKED1(X) __BUILT1(X) __COMPOSED1(X)
#define __MATH2(X) __HOOKED2(X) X(copysign) X(nextafter) X(fdim) X(fmin) X(fmax) X(powr) X(divide)
namespace __scalar {
#define __FROM_HOOK1(name) __VX float name(float x) { return __vx_##name(x); }
#define __FROM_HOOK2(name) __VX float name(float x, float y) { return __vx_##name(x, y); }
#define __FROM_BUILTIN1(name) __VX float name(float x) { return __builtin_##name##f(x); }
__HOOKED1(__FROM_HOOK1)
__HOOKED2(__FROM_HOOK2)
__BUILT1(__FROM_BUILTIN1)
__VX float exp10(float x) { return __vx_pow(10.0f, x); }
/// log(1 + x): what is lost of x in 1 + x is put back by the quotient.
__VX float __log_beside_one(float x) {
  float sum = 1.0f + x;
  return sum == 1.0f ? x : sum == INFINITY ? sum : __vx_log(sum) * (x / (sum - 1.0f));
}
__VX float asinh(float x) {
  float a = __builtin_fabsf(x), root = __builtin_sqrtf(a * a + 1.0f);
  float y = a > 0x1p40f ? __vx_log(a) + M_LN2_F : __log_beside_one(a + a * (a / (1.0f + root)));
  return __builtin_copysignf(y, x);
}
__VX float acosh(float x) {
  float t = x - 1.0f;
  return x < 1.0f ? NAN : x > 0x1p40f ? __vx_log(x) + M_LN2_F : __log_beside_one(t + __builtin_sqrtf(2.0f * t + t * t));
}
__VX float atanh(float x) {
  float a = __builtin_fabsf(x);
  return __builtin_copysignf(0.5f * __log_beside_one(2.0f * a / (1.0f - a)), x);
}
/// x as quarters of a turn and a rest of at most 1/4 half turns: both are exact, so that the product with pi is all that is rounded.
struct __Quarters {
  int count;  // modulo 4
  float rest;
};
__VX __Quarters __quarters(float x) {
  float turn = x - 2.0f * __builtin_rintf(x * 0.5f), quarters = __builtin_rintf(2.0f * turn);
  return {(int)quarters & 3, (turn - quarters * 0.5f) * M_PI_F};
}
__VX float __sine_of(__Quarters q) {
  float y = q.count & 1 ? __vx_cos(q.rest) : __vx_sin(q.rest);
  return y == 0 ? 0.0f : q.count & 2 ? -y : y;
}
__VX float sinpi(float x) {
  float y = __sine_of(__quarters(x));
  return y == 0 ? __builtin_copysignf(0.0f, x) : y;
}
__VX float cospi(float x) {
  __Quarters q = __quarters(x);
  return __sine_of({(q.count + 1) & 3, q.rest});
}
__VX float tanpi(float x) { return sinpi(x) / cospi(x); }
__VX float sign(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : x == 0 ? x : 0.0f; }
__VX float saturate(float x) { return __builtin_fminf(__builtin_fmaxf(x, 0.0f), 1.0f); }
__VX float copysign(float x, float y) { return __builtin_copysignf(x, y); }
__VX float fmin(float x, float y) { return __builtin_fminf(x, y); }
__VX float fmax(float x, float y) { return __builtin_fmaxf(x, y); }
__VX float fdim(float x, float y) { return x != x || y != y ? NAN : x > y ? x - y : 0.0f; }
__VX float powr(float x, float y) { return x < 0 ? NAN : __vx_pow(x, y); }
__VX float divide(float x, float y) { return x / y; }
__VX float nextafter(float x, float y) {
  if (x != x || y != y)
    return NAN;
  if (x == y)
    return y;
  int bits = __builtin_bit_cast(int, x);
  if (x == 0)
    return __builtin_copysignf(0x1p-149f, y);
  return __builtin_bit_cast(float, (x < y) == (x > 0) ? bits + 1 : bits - 1);
}
__VX float __power_of_two(int e) { return __builtin_bit_cast(float, (e + 127) << 23); }
__VX float ldexp(float x, int e) {
  // Three factors reach from the largest number to the smallest subnormal one.
  e = e < -378 ? -378 : e > 381 ? 381 : e;
  int a = e / 3, b = (e - a) / 2;
  return x * __power_of_two(a) * __power_of_two(b) * __power_of_two(e - a - b);
}
}  // namespace __scalar

template <class T> inline constexpr bool __is_narrow = __is_same(T, bfloat) || __is_integral(T);
#define __DEFINE1(name)                                                                                                \
  __VX float name(float x) { return __scalar::name(x); }                                                               \
  __VX half name(half x) { return (half)__scalar::name((float)x); }                                                    \
  template <class T, enable_if_t<__is_same(T, bfloat), int> = 0> __VX T name(T x) {                                    \
    return (T)__scalar::name((float)x);                                                                                \
  }                                                                                                                    \
  template <class T, enable_if_t<__is_integral(T), int> = 0> __VX float name(T x) { return __scalar::name((float)x); } \
  template <class T, int N> __VX vec<T, N> name(vec<T, N> x) {                                                         \
    vec<T, N> r;                                                                                                       \
    __UNROLL for (int i = 0; i < N; ++i) r.v[i] = (T)__scalar::name((float)x.v[i]);                                    \
    return r;                                                                                                          \
  }
#define __DEFINE2(name)                                                                                                \
  __VX float name(float x, float y) { return __scalar::name(x, y); }                                                   \
  __VX half name(half x, half y) { return (half)__scalar::name((float)x, (float)y); }                                  \
  template <class T, enable_if_t<__is_same(T, bfloat), int> = 0> __VX T name(T x, T y) {                               \
    return (T)__scalar::name((float)x, (float)y);                                                                      \
  }                                                                                                                    \
  template <class T, enable_if_t<__is_integral(T), int> = 0> __VX float name(T x, T y) {                               \
    return __scalar::name((float)x, (float)y);                                                                         \
  }                                                                                                                    \
  template <class T, int N> __VX vec<T, N> name(vec<T, N> x, vec<T, N> y) {                                            \
    vec<T, N> r;                                                                                                       \
    __UNROLL for (int i = 0; i < N; ++i) r.v[i] = (T)__scalar::name((float)x.v[i], (float)y.v[i]);                     \
    return r;                                                                                                          \
  }
#define __MATH_FUNCTIONS                                                                                               \
  __MATH1(__DEFINE1)                                                                                                   \
  __MATH2(__DEFINE2)                                                                                                   \
  __VX float ldexp(float x, int e) { return __scalar::ldexp(x, e); }                                                   \
  __VX half ldexp(half x, int e) { return (half)__scalar::ldexp((float)x, e); }                                        \
  template <class T, int N> __VX vec<T, N> ldexp(vec<T, N> x, vec<int, N> e) {                                         \
    vec<T, N> r;                                                                                                       \
    __UNROLL for (int i = 0; i < N; ++i) r.v[i] = (T)__scalar::ldexp((float)x.v[i], e.v[i]);                           \
    return r;                                                                                                          \
  }                                                                                                                    \
  template <class T> __VX T sincos(T x, thread T& c) {                                                                 \
    c = cos(x);                                                                                                        \
    return sin(x);                                                                                                     \
  }
__MATH_FUNCTIONS
namespace precise { __MATH_FUNCTIONS }
namespace fast { __MATH_FUNCTIONS }

/// Below 1, which the difference may round to.
template <class T, enable_if_t<is_arithmetic_v<T>, int> = 0> __VX auto fract(T x) {
  typedef conditional_t<is_floating_point_v<T>, T, float> F;
  constexpr F top = (F)(1.0f - (float)numeric_limits<F>::epsilon() / 2);
  F y = (F)((float)x - __builtin_floorf((float)x));
  return y >= F(1) ? top : y;
}
template <class T, int N> __VX vec<T, N> fract(vec<T, N> x) {
  vec<T, N> r;
  __UNROLL for (int i = 0; i < N; ++i) r.v[i] = metal::fract((T)x.v[i]);
  return r;
}

__VX float frexp(float x, thread int& e) {
  if (x == 0 || x != x || __builtin_fabsf(x) == INFINITY) {
    e = 0;
    return x;
  }
  float scaled = __builtin_fabsf(x) < FLT_MIN ? x * 0x1p24f : x;
  int bits = __builtin_bit_cast(int, scaled);
  e = ((bits >> 23) & 255) - 126 - (__builtin_fabsf(x) < FLT_MIN ? 24 : 0);
  return __builtin_bit_cast(float, (bits & 0x807fffff) | 0x3f000000);
}
__VX float modf(float x, thread float& whole) {
  whole = __builtin_truncf(x);
  return __builtin_copysignf(__builtin_fabsf(x) == INFINITY ? 0.0f : x - whole, x);
}
__VX int ilogb(float x) {
  int e;
  frexp(x, e);
  return x == 0 || x != x ? INT_MIN : __builtin_fabsf(x) == INFINITY ? INT_MAX : e - 1;
}
__VX half frexp(half x, thread int& e) { return (half)frexp((float)x, e); }
__VX half modf(half x, thread half& whole) {
  float all, part = modf((float)x, all);
  whole = (half)all;
  return (half)part;
}
__VX int ilogb(half x) { return ilogb((float)x); }
template <class T, int N> __VX vec<T, N> frexp(vec<T, N> x, thread vec<int, N>& e) {
  vec<T, N> r;
  __UNROLL for (int i = 0; i < N; ++i) {
    int one;
    r.v[i] = frexp((T)x.v[i], one);
    e.v[i] = one;
  }
  return r;
}
template <class T, int N> __VX vec<T, N> modf(vec<T, N> x, thread vec<T, N>& whole) {
  vec<T, N> r;
  __UNROLL for (int i = 0; i < N; ++i) {
    T one;
    r.v[i] = modf((T)x.v[i], one);
    whole.v[i] = one;
  }
  return r;
}
template <class T, int N> __VX vec<int, N> ilogb(vec<T, N> x) {
  vec<int, N> r;
  __UNROLL for (int i = 0; i < N; ++i) r.v[i] = ilogb((T)x.v[i]);
  return r;
}
__VX float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
__VX half fma(half a, half b, half c) { return __builtin_fmaf16(a, b, c); }
template <class T, enable_if_t<__is_same(T, bfloat), int> = 0> __VX T fma(T a, T b, T c) {
  return (T)__builtin_fmaf(a, b, c);
}
template <class T, int N> __VX vec<T, N> fma(vec<T, N> a, vec<T, N> b, vec<T, N> c) {
  vec<T, N> r;
  __UNROLL for (int i = 0; i < N; ++i) r.v[i] = fma(a.v[i], b.v[i], c.v[i]);
  return r;
}

#define __CLASSIFY(name, test)                                                                                         \
  template <class T, enable_if_t<is_floating_point_v<T>, int> = 0> __VX bool name(T number) {                          \
    float x = (float)number;                                                                                           \
    return test;                                                                                                       \
  }                                                                                                                    \
  template <class T, int N> __VX vec<bool, N> name(vec<T, N> number) {                                                 \
    vec<bool, N> r;                                                                                                    \
    __UNROLL for (int i = 0; i < N; ++i) {                                                                             \
      float x = (float)number.v[i];                                                                                    \
      r.v[i] = test;                                                                                                   \
    }                                                                                                                  \
    return r;                                                                                                          \
  }
__CLASSIFY(isnan, x != x)
__CLASSIFY(isinf, __builtin_fabsf(x) == INFINITY)
__CLASSIFY(isfinite, __builtin_fabsf(x) < INFINITY)
__CLASSIFY(isnormal, __builtin_fabsf(x) < INFINITY && __builtin_fabsf(x) >= FLT_MIN)
__CLASSIFY(signbit, __builtin_bit_cast(int, x) < 0)
__VX bool isunordered(float x, float y) { return x != x || y != y; }
__VX bool isordered(float x, float y) { return x == x && y == y; }

#define __ARITHMETIC(T) enable_if_t<is_arithmetic_v<T>, int> = 0
template <class T, __ARITHMETIC(T)> __VX constexpr T abs(T x) {
  if constexpr (is_floating_point_v<T>)
    return (T)__builtin_fabsf((float)x);
  else
    return x < T(0) ? T(-x) : x;
}
template <class T, __ARITHMETIC(T)> __VX constexpr T min(T a, T b) {
  if constexpr (is_floating_point_v<T>)
    return (T)__builtin_fminf((float)a, (float)b);
  else
    return b < a ? b : a;
}
template <class T, __ARITHMETIC(T)> __VX constexpr T max(T a, T b) {
  if constexpr (is_floating_point_v<T>)
    return (T)__builtin_fmaxf((float)a, (float)b);
  else
    return a < b ? b : a;
}
/// Metal has an overload for each type: none fits arguments of several ones best, but for bool, which counts as int.
#define __AMBIGUOUS                                                                                                    \
  __attribute__((unavailable("arguments of different types are ambiguous: convert them to one of them")))
template <class A, class B> inline constexpr bool __is_int_and_bool = (__is_same(A, int) && __is_same(B, bool)) ||
                                                                      (__is_same(A, bool) && __is_same(B, int));
#define __MIXED(name)                                                                                                  \
  template <class A, class B, enable_if_t<__is_int_and_bool<A, B>, int> = 0> __VX constexpr int name(A a, B b) {       \
    return metal::name((int)a, (int)b);                                                                                \
  }                                                                                                                    \
  template <class A, class B,                                                                                          \
            enable_if_t<is_arithmetic_v<A> && is_arithmetic_v<B> && !__is_same(A, B) && !__is_int_and_bool<A, B>, int> = \
                0>                                                                                                     \
  __AMBIGUOUS auto name(A a, B b)->decltype(a + b);
__MIXED(min) __MIXED(max)
template <class T, __ARITHMETIC(T)> __VX constexpr T clamp(T x, T a, T b) { return metal::min(metal::max(x, a), b); }
template <class A, class B, class C,
          enable_if_t<is_arithmetic_v<A> && is_arithmetic_v<B> && is_arithmetic_v<C> &&
                          !(__is_same(A, B) && __is_same(A, C)),
                      int> = 0>
__AMBIGUOUS A clamp(A x, B a, C b);
#define __VECTOR2(name)                                                                                                \
  template <class T, int N> __VX vec<T, N> name(vec<T, N> a, vec<T, N> b) {                                            \
    vec<T, N> r;                                                                                                       \
    __UNROLL for (int i = 0; i < N; ++i) r.v[i] = metal::name((T)a.v[i], (T)b.v[i]);                                   \
    return r;                                                                                                          \
  }
__VECTOR2(min) __VECTOR2(max)
#define __VECTOR1(name)                                                                                                \
  template <class T, int N> __VX vec<T, N> name(vec<T, N> a) {                                                         \
    vec<T, N> r;                                                                                                       \
    __UNROLL for (int i = 0; i < N; ++i) r.v[i] = metal::name((T)a.v[i]);                                              \
    return r;                                                                                                          \
  }
__VECTOR1(abs)
template <class T, int N> __VX vec<T, N> clamp(vec<T, N> x, __same_t<vec<T, N>> a, __same_t<vec<T, N>> b) {
  return min(max(x, a), b);
}
template <class T> __VX T min3(T a, T b, T c) { return min(min(a, b), c); }
template <class T> __VX T max3(T a, T b, T c) { return max(max(a, b), c); }
template <class T> __VX T median3(T a, T b, T c) { return max(min(a, b), min(max(a, b), c)); }
template <class T> __VX T fmin3(T a, T b, T c) { return min(min(a, b), c); }
template <class T> __VX T fmax3(T a, T b, T c) { return max(max(a, b), c); }
template <class T> __VX T fmedian3(T a, T b, T c) { return median3(a, b, c); }
template <class T> __VX T mix(T a, T b, __same_t<T> t) { return a + (b - a) * t; }
template <class T, int N> __VX vec<T, N> mix(vec<T, N> a, vec<T, N> b, T t) { return a + (b - a) * t; }
template <class T, __ARITHMETIC(T)> __VX T step(T edge, T x) { return x < edge ? T(0) : T(1); }
template <class T, int N> __VX vec<T, N> step(vec<T, N> edge, vec<T, N> x) {
  vec<T, N> r;
  __UNROLL for (int i = 0; i < N; ++i) r.v[i] = x.v[i] < edge.v[i] ? T(0) : T(1);
  return r;
}
template <class T> __VX T smoothstep(T a, T b, T x) {
  T t = clamp((x - a) / (b - a), T(0), T(1));
  return t * t * (T(3) - T(2) * t);
}
template <class T> __VX constexpr T select(T a, T b, bool c) { return c ? b : a; }
template <class T, int N> __VX vec<T, N> select(vec<T, N> a, vec<T, N> b, vec<bool, N> c) {
  vec<T, N> r;
  __UNROLL for (int i = 0; i < N; ++i) r.v[i] = c.v[i] ? b.v[i] : a.v[i];
  return r;
}
__VX constexpr bool any(bool a) { return a; }
__VX constexpr bool all(bool a) { return a; }
template <int N> __VX bool any(vec<bool, N> a) {
  bool r = false;
  __UNROLL for (int i = 0; i < N; ++i) r |= a.v[i] != 0;
  return r;
}
template <int N> __VX bool all(vec<bool, N> a) {
  bool r = true;
  __UNROLL for (int i = 0; i < N; ++i) r &= a.v[i] != 0;
  return r;
}

//===-- geometry --------------------------------------------------------------===//

template <class T, int N> __VX T dot(vec<T, N> a, vec<T, N> b) {
  T sum = (T)(a.v[0] * b.v[0]);
  __UNROLL for (int i = 1; i < N; ++i) sum += (T)(a.v[i] * b.v[i]);
  return sum;
}
template <class T> __VX vec<T, 3> cross(vec<T, 3> a, vec<T, 3> b) {
  return vec<T, 3>(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
template <class T, int N> __VX T length_squared(vec<T, N> a) { return dot(a, a); }
template <class T, int N> __VX T length(vec<T, N> a) { return sqrt(dot(a, a)); }
template <class T, int N> __VX T distance_squared(vec<T, N> a, vec<T, N> b) { return length_squared(a - b); }
template <class T, int N> __VX T distance(vec<T, N> a, vec<T, N> b) { return length(a - b); }
template <class T, int N> __VX vec<T, N> normalize(vec<T, N> a) { return a * rsqrt(dot(a, a)); }
template <class T, int N> __VX vec<T, N> reflect(vec<T, N> i, vec<T, N> n) { return i - T(2) * dot(n, i) * n; }
template <class T, int N> __VX vec<T, N> refract(vec<T, N> i, vec<T, N> n, __same_t<T> ratio) {
  T along = dot(n, i), k = T(1) - ratio * ratio * (T(1) - along * along);
  return k < T(0) ? vec<T, N>(T(0)) : ratio * i - (ratio * along + sqrt(k)) * n;
}
template <class T, int N> __VX vec<T, N> faceforward(vec<T, N> n, vec<T, N> i, vec<T, N> r) {
  return dot(r, i) < T(0) ? n : -n;
}

#define __BOTH_WAYS                                                                                                    \
  using metal::fract;                                                                                                  \
  using metal::fma;                                                                                                    \
  using metal::frexp;                                                                                                  \
  using metal::modf;                                                                                                   \
  using metal::ilogb;                                                                                                  \
  using metal::abs;                                                                                                    \
  using metal::min;                                                                                                    \
  using metal::max;                                                                                                    \
  using metal::clamp;                                                                                                  \
  using metal::fmin3;                                                                                                  \
  using metal::fmax3;                                                                                                  \
  using metal::fmedian3;                                                                                               \
  using metal::min3;                                                                                                   \
  using metal::max3;                                                                                                   \
  using metal::median3;                                                                                                \
  using metal::mix;                                                                                                    \
  using metal::step;                                                                                                   \
  using metal::smoothstep;                                                                                             \
  using metal::dot;                                                                                                    \
  using metal::cross;                                                                                                  \
  using metal::length;                                                                                                 \
  using metal::length_squared;                                                                                         \
  using metal::distance;                                                                                               \
  using metal::distance_squared;                                                                                       \
  using metal::normalize;                                                                                              \
  using metal::reflect;                                                                                                \
  using metal::refract;                                                                                                \
  using metal::faceforward;
namespace fast { __BOTH_WAYS }
namespace precise { __BOTH_WAYS }

//===-- integers --------------------------------------------------------------===//

#define __INTEGRAL(T) enable_if_t<__is_integral(T), int> = 0
template <class T> inline constexpr uint __bits = sizeof(T) * 8;
template <class T, __INTEGRAL(T)> __VX constexpr T popcount(T x) {
  return (T)__builtin_popcountl((ulong)(make_unsigned_t<T>)x);
}
template <class T, __INTEGRAL(T)> __VX constexpr T clz(T x) {
  ulong wide = (ulong)(make_unsigned_t<T>)x;
  return (T)(wide ? (uint)__builtin_clzl(wide) - (64 - __bits<T>) : __bits<T>);
}
template <class T, __INTEGRAL(T)> __VX constexpr T ctz(T x) {
  ulong wide = (ulong)(make_unsigned_t<T>)x;
  return (T)(wide ? (uint)__builtin_ctzl(wide) : __bits<T>);
}
template <class T, __INTEGRAL(T)> __VX constexpr T reverse_bits(T x) {
  return (T)(__builtin_bitreverse64((ulong)(make_unsigned_t<T>)x) >> (64 - __bits<T>));
}
template <class T, __INTEGRAL(T)> __VX constexpr T rotate(T x, T n) {
  typedef make_unsigned_t<T> U;
  uint by = (uint)n & (__bits<T> - 1);
  return (T)(U)(((U)x << by) | ((U)x >> ((__bits<T> - by) & (__bits<T> - 1))));
}
template <class T, __INTEGRAL(T)> __VX constexpr T mulhi(T a, T b) {
  if constexpr (sizeof(T) == 8) {
    ulong x = (ulong)a, y = (ulong)b, low = (x & UINT_MAX) * (y & UINT_MAX);
    ulong one = (x >> 32) * (y & UINT_MAX) + (low >> 32), two = (x & UINT_MAX) * (y >> 32) + (one & UINT_MAX);
    ulong high = (x >> 32) * (y >> 32) + (one >> 32) + (two >> 32);
    if constexpr (__is_signed(T))
      high -= (a < 0 ? y : 0) + (b < 0 ? x : 0);
    return (T)high;
  } else {
    typedef conditional_t<__is_signed(T), long, ulong> W;
    return (T)(((W)a * (W)b) >> __bits<T>);
  }
}
template <class T, __INTEGRAL(T)> __VX constexpr T madhi(T a, T b, T c) { return mulhi(a, b) + c; }
__VX constexpr int mul24(int a, int b) { return a * b; }
__VX constexpr uint mul24(uint a, uint b) { return a * b; }
__VX constexpr int mad24(int a, int b, int c) { return a * b + c; }
__VX constexpr uint mad24(uint a, uint b, uint c) { return a * b + c; }
template <class T, __INTEGRAL(T)> __VX constexpr T hadd(T a, T b) { return (a & b) + ((a ^ b) >> 1); }
template <class T, __INTEGRAL(T)> __VX constexpr T rhadd(T a, T b) { return (a | b) - ((a ^ b) >> 1); }
template <class T, __INTEGRAL(T)> __VX constexpr make_unsigned_t<T> absdiff(T a, T b) {
  typedef make_unsigned_t<T> U;
  return a < b ? (U)b - (U)a : (U)a - (U)b;
}
template <class T, __INTEGRAL(T)> __VX constexpr T addsat(T a, T b) {
  typedef numeric_limits<T> L;
  T sum = (T)((make_unsigned_t<T>)a + (make_unsigned_t<T>)b);
  if constexpr (__is_signed(T))
    return ((a ^ sum) & (b ^ sum)) < 0 ? (a < 0 ? L::min() : L::max()) : sum;
  else
    return sum < a ? L::max() : sum;
}
template <class T, __INTEGRAL(T)> __VX constexpr T subsat(T a, T b) {
  typedef numeric_limits<T> L;
  T rest = (T)((make_unsigned_t<T>)a - (make_unsigned_t<T>)b);
  if constexpr (__is_signed(T))
    return ((a ^ b) & (a ^ rest)) < 0 ? (a < 0 ? L::min() : L::max()) : rest;
  else
    return a < b ? T(0) : rest;
}
/// The exact sum, in two words, saturated: a product that does not fit may do so with `c`.
template <class T, __INTEGRAL(T)> __VX constexpr T madsat(T a, T b, T c) {
  typedef numeric_limits<T> L;
  typedef make_unsigned_t<T> U;
  U product = (U)((ulong)(U)a * (U)b), low = (U)(product + (U)c);
  U high = (U)((U)mulhi(a, b) + (U)(c < T(0) ? -1 : 0) + (U)(low < product));
  if constexpr (__is_signed(T))
    return high == (U)((T)low < T(0) ? -1 : 0) ? (T)low : (T)high < T(0) ? L::min() : L::max();
  else
    return high == U(0) ? low : L::max();
}
template <class T, __INTEGRAL(T)> __VX constexpr T extract_bits(T x, uint offset, uint bits) {
  return bits == 0 ? T(0) : (T)((T)(x << (__bits<T> - offset - bits)) >> (__bits<T> - bits));
}
template <class T, __INTEGRAL(T)> __VX constexpr T insert_bits(T base, T insert, uint offset, uint bits) {
  ulong mask = (bits >= 64 ? ~0ul : ((1ul << bits) - 1)) << offset;
  return (T)(((ulong)base & ~mask) | (((ulong)insert << offset) & mask));
}
__VECTOR1(popcount) __VECTOR1(clz) __VECTOR1(ctz) __VECTOR1(reverse_bits)
__VECTOR2(rotate) __VECTOR2(mulhi) __VECTOR2(hadd) __VECTOR2(rhadd) __VECTOR2(addsat) __VECTOR2(subsat)
__VECTOR2(mul24)
#define __VECTOR3(name)                                                                                                \
  template <class T, int N> __VX vec<T, N> name(vec<T, N> a, vec<T, N> b, vec<T, N> c) {                               \
    vec<T, N> r;                                                                                                       \
    __UNROLL for (int i = 0; i < N; ++i) r.v[i] = metal::name((T)a.v[i], (T)b.v[i], (T)c.v[i]);                        \
    return r;                                                                                                          \
  }
__VECTOR3(madhi) __VECTOR3(madsat) __VECTOR3(mad24)
template <class T, int N> __VX vec<make_unsigned_t<T>, N> absdiff(vec<T, N> a, vec<T, N> b) {
  vec<make_unsigned_t<T>, N> r;
  __UNROLL for (int i = 0; i < N; ++i) r.v[i] = absdiff((T)a.v[i], (T)b.v[i]);
  return r;
}
template <class T, int N> __VX vec<T, N> extract_bits(vec<T, N> x, uint offset, uint bits) {
  __UNROLL for (int i = 0; i < N; ++i) x.v[i] = extract_bits((T)x.v[i], offset, bits);
  return x;
}
template <class T, int N> __VX vec<T, N> insert_bits(vec<T, N> base, vec<T, N> insert, uint offset, uint bits) {
  __UNROLL for (int i = 0; i < N; ++i) base.v[i] = insert_bits((T)base.v[i], (T)insert.v[i], offset, bits);
  return base;
}

}  // namespace metal
