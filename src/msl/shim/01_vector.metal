// Vectors: a class around Clang's ext_vector with Metal's constructors, operators and swizzles (__SWIZZLES2 … 4 are generated: msl/shim.cpp).
// A swizzle is a property: reading it makes a value. What stores is for places alone (&), or a store to part of such a value would be lost.
namespace metal {

template <class T> struct __lane : __same<T> {};
template <> struct __lane<bool> : __same<uchar> {};
template <class T, int N> struct vec;
template <class T, int N> struct packed_vec;
template <class A> struct __shape {
  static constexpr int count = 1;
  static constexpr bool isVector = false;
  typedef A elem;
};
template <class T, int N> struct __shape<vec<T, N>> {
  static constexpr int count = N;
  static constexpr bool isVector = true;
  typedef T elem;
};
template <class T, int N> struct __shape<packed_vec<T, N>> : __shape<vec<T, N>> {};
template <class A> inline constexpr bool __isvec = __shape<remove_cv_t<A>>::isVector;
template <class U, class T> using __scalar_for = enable_if_t<__is_convertible(U, T) && !__isvec<U>, int>;

/// Three numbers in braces make a vector of four with a zero.
constexpr bool __fills(int given, int wanted) { return given == wanted || (given == 3 && wanted == 4); }

#define __VECTOR_MEMBERS(N, NAMES, SWIZZLES)                                                                           \
  typedef typename __lane<T>::type S;                                                                                  \
  typedef S V __attribute__((ext_vector_type(N)));                                                                     \
  union {                                                                                                              \
    V v;                                                                                                               \
    NAMES                                                                                                              \
  };                                                                                                                   \
  vec() = default;                                                                                                     \
  static __VX constexpr vec __from(V x) {                                                                              \
    vec r{};                                                                                                           \
    r.v = x;                                                                                                           \
    return r;                                                                                                          \
  }                                                                                                                    \
  template <class U, class = enable_if_t<__is_convertible(U, T) && !__isvec<U>>>                                       \
  __VX constexpr vec(U s) : v((V)(S)(T)s) {}                                                                           \
  template <class U, class = enable_if_t<!__is_same(U, T)>> explicit __VX vec(vec<U, N> o) : v(__convert(o)) {}        \
  template <class U, class = enable_if_t<!__is_same(U, T)>>                                                            \
  explicit __VX vec(packed_vec<U, N> o) : v(__convert(vec<U, N>(o))) {}                                                \
  template <class A, class B, class... R,                                                                              \
            class = enable_if_t<__fills(sizeof...(R) + 2, N) && !__isvec<A> && !__isvec<B> && (true && ... && !__isvec<R>)>>  \
  __VX constexpr vec(A a, B b, R... r) : v{(S)(T)a, (S)(T)b, (S)(T)r...} {}                                            \
  template <class A, class B, class... R,                                                                              \
            class = enable_if_t<(__isvec<A> || __isvec<B> || (false || ... || __isvec<R>)) &&                          \
                                (__shape<A>::count + __shape<B>::count + (0 + ... + __shape<R>::count)) == N>,         \
            class = void>                                                                                              \
  __VX constexpr vec(A a, B b, R... r) : v{} {                                                                         \
    int i = 0;                                                                                                         \
    __put(i, a);                                                                                                       \
    __put(i, b);                                                                                                       \
    (__put(i, r), ...);                                                                                                \
  }                                                                                                                    \
  template <class A> __VX void __put(int& i, A a) {                                                                    \
    if constexpr (__isvec<A>) {                                                                                        \
      __UNROLL for (int k = 0; k < __shape<A>::count; ++k) v[i++] = (S)(T)a[k];                                        \
    } else {                                                                                                           \
      v[i++] = (S)(T)a;                                                                                                \
    }                                                                                                                  \
  }                                                                                                                    \
  template <class U> static __VX V __convert(vec<U, N> o) {                                                            \
    if constexpr (__is_same(T, bool)) {                                                                                \
      V r;                                                                                                             \
      __UNROLL for (int k = 0; k < N; ++k) r[k] = (bool)o.v[k];                                                        \
      return r;                                                                                                        \
    } else if constexpr (__is_same(U, half) && __is_same(T, bfloat) || __is_same(U, bfloat) && __is_same(T, half)) {   \
      V r;                                                                                                             \
      __UNROLL for (int k = 0; k < N; ++k) r[k] = (T)(float)o.v[k];                                                    \
      return r;                                                                                                        \
    } else {                                                                                                           \
      return __builtin_convertvector(o.v, V);                                                                          \
    }                                                                                                                  \
  }                                                                                                                    \
  vec(const vec&) = default;                                                                                           \
  vec& operator=(const vec&) & = default;                                                                              \
  __VX T& operator[](int i) & { return reinterpret_cast<T*>(this)[i]; }                                                \
  __VX T operator[](int i) && { return reinterpret_cast<T*>(this)[i]; }                                                \
  __VX constexpr T operator[](int i) const& { return (T)v[i]; }                                                        \
  __COMPOUND(+) __COMPOUND(-) __COMPOUND(*) __COMPOUND(/) __COMPOUND(%)                                                \
  __COMPOUND(&) __COMPOUND(|) __COMPOUND(^) __COMPOUND(<<) __COMPOUND(>>)                                              \
  __STEPS(vec)                                                                                                         \
  SWIZZLES
#define __COMPOUND(op)                                                                                                 \
  template <class U, class = enable_if_t<__is_convertible(U, vec)>> __VX vec& operator op##=(U b) & {                  \
    return *this = vec(*this) op static_cast<vec>(b);                                                                  \
  }
#define __STEPS(self)                                                                                                  \
  __VX self& operator++() & { return *this += T(1); }                                                                  \
  __VX self& operator--() & { return *this -= T(1); }                                                                  \
  __VX self operator++(int) & {                                                                                        \
    self old = *this;                                                                                                  \
    *this += T(1);                                                                                                     \
    return old;                                                                                                        \
  }                                                                                                                    \
  __VX self operator--(int) & {                                                                                        \
    self old = *this;                                                                                                  \
    *this -= T(1);                                                                                                     \
    return old;                                                                                                        \
  }
template <class T, int N> struct vec {
  __VECTOR_MEMBERS(N, , )
};
template <class T> struct vec<T, 2> {
  __VECTOR_MEMBERS(2, struct { T x; T y; }; struct { T r; T g; };, __SWIZZLES2)
};
template <class T> struct vec<T, 3> {
  __VECTOR_MEMBERS(3, struct { T x; T y; T z; }; struct { T r; T g; T b; };, __SWIZZLES3)
};
template <class T> struct vec<T, 4> {
  __VECTOR_MEMBERS(4, struct { T x; T y; T z; T w; }; struct { T r; T g; T b; T a; };, __SWIZZLES4)
};

#define __BINARY(op)                                                                                                   \
  template <class T, int N> __VX vec<T, N> operator op(vec<T, N> a, vec<T, N> b) {                                     \
    return vec<T, N>::__from(a.v op b.v);                                                                              \
  }                                                                                                                    \
  template <class T, int N, class U, __scalar_for<U, T> = 0> __VX vec<T, N> operator op(vec<T, N> a, U b) {            \
    return a op vec<T, N>(b);                                                                                          \
  }                                                                                                                    \
  template <class T, int N, class U, __scalar_for<U, T> = 0> __VX vec<T, N> operator op(U a, vec<T, N> b) {            \
    return vec<T, N>(a) op b;                                                                                          \
  }
__BINARY(+) __BINARY(-) __BINARY(*) __BINARY(/) __BINARY(%) __BINARY(&) __BINARY(|) __BINARY(^) __BINARY(<<) __BINARY(>>)
#define __COMPARISON(op)                                                                                               \
  template <class T, int N> __VX vec<bool, N> operator op(vec<T, N> a, vec<T, N> b) {                                  \
    vec<bool, N> r;                                                                                                    \
    __UNROLL for (int i = 0; i < N; ++i) r.v[i] = a.v[i] op b.v[i];                                                    \
    return r;                                                                                                          \
  }                                                                                                                    \
  template <class T, int N, class U, __scalar_for<U, T> = 0> __VX vec<bool, N> operator op(vec<T, N> a, U b) {         \
    return a op vec<T, N>(b);                                                                                          \
  }                                                                                                                    \
  template <class T, int N, class U, __scalar_for<U, T> = 0> __VX vec<bool, N> operator op(U a, vec<T, N> b) {         \
    return vec<T, N>(a) op b;                                                                                          \
  }
__COMPARISON(==) __COMPARISON(!=) __COMPARISON(<) __COMPARISON(>) __COMPARISON(<=) __COMPARISON(>=)
template <int N> __VX vec<bool, N> operator&&(vec<bool, N> a, vec<bool, N> b) { return a & b; }
template <int N> __VX vec<bool, N> operator||(vec<bool, N> a, vec<bool, N> b) { return a | b; }
template <class T, int N> __VX vec<bool, N> operator!(vec<T, N> a) { return a == vec<T, N>(T(0)); }
template <class T, int N> __VX vec<T, N> operator-(vec<T, N> a) { return vec<T, N>::__from(-a.v); }
template <class T, int N> __VX vec<T, N> operator+(vec<T, N> a) { return a; }
template <class T, int N> __VX vec<T, N> operator~(vec<T, N> a) { return vec<T, N>::__from(~a.v); }

/// N elements without padding: packed_float3 has 12 bytes. Arithmetic is that of vectors.
#define __PACKED_MEMBERS(N, SWIZZLES)                                                                                  \
  T d[N];                                                                                                              \
  packed_vec() = default;                                                                                              \
  __VX constexpr packed_vec(vec<T, N> a) : d{} {                                                                       \
    for (int i = 0; i < N; ++i) d[i] = (T)a.v[i];                                                                      \
  }                                                                                                                    \
  __VX constexpr packed_vec(T s) : packed_vec(vec<T, N>(s)) {}                                                         \
  template <class U, class = enable_if_t<!__is_same(U, T)>>                                                            \
  __VX explicit packed_vec(vec<U, N> a) : packed_vec(vec<T, N>(a)) {}                                                  \
  template <class U, class = enable_if_t<!__is_same(U, T)>>                                                            \
  __VX explicit packed_vec(packed_vec<U, N> a) : packed_vec(vec<T, N>(a)) {}                                           \
  template <class A, class B, class... R>                                                                              \
  __VX constexpr packed_vec(A a, B b, R... r) : packed_vec(vec<T, N>(a, b, r...)) {}                                   \
  __VX constexpr operator vec<T, N>() const {                                                                          \
    vec<T, N> r{};                                                                                                     \
    for (int i = 0; i < N; ++i) r.v[i] = d[i];                                                                         \
    return r;                                                                                                          \
  }                                                                                                                    \
  packed_vec(const packed_vec&) = default;                                                                             \
  packed_vec& operator=(const packed_vec&) & = default;                                                                \
  __VX T& operator[](int i) & { return d[i]; }                                                                         \
  __VX T operator[](int i) && { return d[i]; }                                                                         \
  __VX T operator[](int i) const& { return d[i]; }                                                                     \
  __PACKED_COMPOUND(+) __PACKED_COMPOUND(-) __PACKED_COMPOUND(*) __PACKED_COMPOUND(/) __PACKED_COMPOUND(%)             \
  __PACKED_COMPOUND(&) __PACKED_COMPOUND(|) __PACKED_COMPOUND(^) __PACKED_COMPOUND(<<) __PACKED_COMPOUND(>>)           \
  __STEPS(packed_vec)                                                                                                  \
  SWIZZLES
#define __PACKED_COMPOUND(op)                                                                                          \
  template <class U> __VX packed_vec& operator op##=(U b) & { return *this = static_cast<V>(*this) op b; }
template <class T> struct packed_vec<T, 2> {
  typedef vec<T, 2> V;
  __PACKED_MEMBERS(2, __PACKED_SWIZZLES2)
};
template <class T> struct packed_vec<T, 3> {
  typedef vec<T, 3> V;
  __PACKED_MEMBERS(3, __PACKED_SWIZZLES3)
};
template <class T> struct packed_vec<T, 4> {
  typedef vec<T, 4> V;
  __PACKED_MEMBERS(4, __PACKED_SWIZZLES4)
};
template <class T, int N> struct __chosen<packed_vec<T, N>> {
  typedef vec<T, N> type;
};
#define __PACKED_BINARY(op)                                                                                            \
  template <class T, int N> __VX auto operator op(packed_vec<T, N> a, packed_vec<T, N> b) {                            \
    return vec<T, N>(a) op vec<T, N>(b);                                                                               \
  }                                                                                                                    \
  template <class T, int N> __VX auto operator op(packed_vec<T, N> a, vec<T, N> b) { return vec<T, N>(a) op b; }       \
  template <class T, int N> __VX auto operator op(vec<T, N> a, packed_vec<T, N> b) { return a op vec<T, N>(b); }       \
  template <class T, int N, class U, __scalar_for<U, T> = 0> __VX auto operator op(packed_vec<T, N> a, U b) {          \
    return vec<T, N>(a) op b;                                                                                          \
  }                                                                                                                    \
  template <class T, int N, class U, __scalar_for<U, T> = 0> __VX auto operator op(U a, packed_vec<T, N> b) {          \
    return a op vec<T, N>(b);                                                                                          \
  }
__PACKED_BINARY(+) __PACKED_BINARY(-) __PACKED_BINARY(*) __PACKED_BINARY(/) __PACKED_BINARY(%)
__PACKED_BINARY(&) __PACKED_BINARY(|) __PACKED_BINARY(^) __PACKED_BINARY(<<) __PACKED_BINARY(>>)
__PACKED_BINARY(==) __PACKED_BINARY(!=) __PACKED_BINARY(<) __PACKED_BINARY(>) __PACKED_BINARY(<=) __PACKED_BINARY(>=)
#define __PACKED_UNARY(op)                                                                                             \
  template <class T, int N> __VX auto operator op(packed_vec<T, N> a) { return op vec<T, N>(a); }
__PACKED_UNARY(-) __PACKED_UNARY(+) __PACKED_UNARY(~) __PACKED_UNARY(!)

#define __VECTORS_OF(T)                                                                                                \
  using T##2 = vec<T, 2>;                                                                                              \
  using T##3 = vec<T, 3>;                                                                                              \
  using T##4 = vec<T, 4>;                                                                                              \
  using packed_##T##2 = packed_vec<T, 2>;                                                                              \
  using packed_##T##3 = packed_vec<T, 3>;                                                                              \
  using packed_##T##4 = packed_vec<T, 4>;
#define __ELEMENTS(X)                                                                                                  \
  X(bool) X(char) X(uchar) X(short) X(ushort) X(int) X(uint) X(long) X(ulong) X(half) X(bfloat) X(float)
__ELEMENTS(__VECTORS_OF)

template <class To, class From> __VX To as_type(From x) { return __builtin_bit_cast(To, x); }

template <class T> struct uniform {
  T v;
  uniform() = default;
  __VX constexpr uniform(T x) : v(x) {}
  __VX constexpr operator T() const { return v; }
};
template <class T> __VX constexpr uniform<T> make_uniform(T x) { return uniform<T>(x); }
#define __UNIFORM(op)                                                                                                  \
  template <class T> __VX constexpr uniform<T> operator op(uniform<T> a, uniform<T> b) { return uniform<T>(a.v op b.v); }
__UNIFORM(+) __UNIFORM(-) __UNIFORM(*) __UNIFORM(/) __UNIFORM(%)

template <class T, size_t N> struct array {
  T d[N];
  __VX constexpr T& operator[](size_t i) { return d[i]; }
  __VX constexpr const T& operator[](size_t i) const { return d[i]; }
  static constexpr size_t size() { return N; }
  static constexpr bool empty() { return N == 0; }
  __VX constexpr T* data() { return d; }
  __VX constexpr const T* data() const { return d; }
  __VX constexpr T* begin() { return d; }
  __VX constexpr const T* begin() const { return d; }
  __VX constexpr T* end() { return d + N; }
  __VX constexpr const T* end() const { return d + N; }
};

}  // namespace metal
