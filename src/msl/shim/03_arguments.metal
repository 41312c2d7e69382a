// What functions of vectors take besides vectors of one type: scalars, which count for each element, and packed vectors.
namespace metal {

template <class A> struct __vector_of {
  typedef void type;
};
template <class T, int N> struct __vector_of<vec<T, N>> {
  typedef vec<T, N> type;
};
template <class T, int N> struct __vector_of<packed_vec<T, N>> : __vector_of<vec<T, N>> {};
template <class V, class A> inline constexpr bool __fits = __isvec<A> ? __is_same(typename __vector_of<A>::type, V)
                                                                      : is_arithmetic_v<A>;
template <class... A> struct __first_vector {
  typedef void type;
};
template <class A, class... R> struct __first_vector<A, R...> {
  typedef typename conditional_t<__isvec<A>, __vector_of<A>, __first_vector<R...>>::type type;
};
template <class V, class... A> using __if_mixed =
    enable_if_t<!__is_same(V, void) && (true && ... && __fits<V, A>) && !(true && ... && __is_same(A, V)), V>;
template <class... A> using __mixed_t = __if_mixed<typename __first_vector<A...>::type, A...>;

#define __PACKED1(name)                                                                                                \
  template <class T, int N> __VX auto name(packed_vec<T, N> a) { return metal::name(vec<T, N>(a)); }
#define __MIXED2(name)                                                                                                 \
  template <class A, class B, class V = __mixed_t<A, B>> __VX auto name(A a, B b) {                                    \
    return metal::name(static_cast<V>(a), static_cast<V>(b));                                                          \
  }
#define __MIXED3(name)                                                                                                 \
  template <class A, class B, class C, class V = __mixed_t<A, B, C>> __VX auto name(A a, B b, C c) {                   \
    return metal::name(static_cast<V>(a), static_cast<V>(b), static_cast<V>(c));                                       \
  }
__MATH1(__PACKED1)
__MATH2(__MIXED2)
namespace fast { __MATH1(__PACKED1) __MATH2(__MIXED2) }
namespace precise { __MATH1(__PACKED1) __MATH2(__MIXED2) }

#define __ALSO_FAST_AND_PRECISE(name)                                                                                  \
  namespace fast {                                                                                                     \
  using metal::name;                                                                                                   \
  }                                                                                                                    \
  namespace precise {                                                                                                  \
  using metal::name;                                                                                                   \
  }
#define __OF_PACKED(X) X(abs) X(length) X(length_squared) X(normalize)
#define __OF_TWO(X) X(min) X(max) X(step) X(dot) X(cross) X(distance) X(distance_squared) X(reflect)
#define __OF_THREE(X)                                                                                                  \
  X(fma) X(clamp) X(mix) X(smoothstep) X(min3) X(max3) X(median3) X(fmin3) X(fmax3) X(fmedian3) X(faceforward)
__OF_PACKED(__PACKED1)
__OF_TWO(__MIXED2)
__OF_THREE(__MIXED3)
__OF_PACKED(__ALSO_FAST_AND_PRECISE)
__OF_TWO(__ALSO_FAST_AND_PRECISE)
__OF_THREE(__ALSO_FAST_AND_PRECISE)
__PACKED1(isnan) __PACKED1(isinf) __PACKED1(isfinite) __PACKED1(isnormal) __PACKED1(signbit)
__PACKED1(popcount) __PACKED1(clz) __PACKED1(ctz) __PACKED1(reverse_bits)
__MIXED2(rotate) __MIXED2(mulhi) __MIXED2(hadd) __MIXED2(rhadd) __MIXED2(addsat) __MIXED2(subsat) __MIXED2(mul24)
__MIXED2(absdiff) __MIXED3(madhi) __MIXED3(madsat) __MIXED3(mad24)

}  // namespace metal
