// What Metal adds to C++: address spaces, scalar types, constants, and what the rest of the shim is made of.
// Functions named __vx_… are opaque to Clang; msl/lift gives them their meaning.
#pragma clang diagnostic ignored "-Wdouble-promotion"
#define device __attribute__((opencl_global))
#define constant const __attribute__((opencl_global_device))
#define threadgroup __attribute__((opencl_local)) __attribute__((msl_threadgroup))
#define thread __attribute__((noderef))  // a mark that has no effect: see msl/front/pointer_spaces.cpp
#define kernel __attribute__((annotate("msl.kernel")))
#define vertex __attribute__((annotate("msl.vertex")))
#define fragment __attribute__((annotate("msl.fragment")))
#define __LOCAL __attribute__((opencl_local))
#define __VX inline __attribute__((always_inline, nodebug))
#define __UNROLL _Pragma("clang loop unroll(full)")

#define METAL_FUNC inline __attribute__((always_inline))
#define METAL_CONST const
#define coherent(scope)
#define METAL_ASM(...)
#define METAL_VALID_ARGS(...)
#define __METAL__ 1
#define __METAL_VERSION__ 320
#define __HAVE_BFLOAT__ 1
#define __METAL_MEMORY_SCOPE_SYSTEM__ 3
#define __METAL_MAYBE_FAST_MATH__ 0
#define __METAL_FAST_MATH__ 1
#define __METAL_PRECISE_MATH__ 2

typedef _Float16 half;
typedef __bf16 bfloat;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef unsigned long uintptr_t;
typedef long intptr_t;
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;

#define NULL 0
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_inff()
#define MAXFLOAT 0x1.fffffep127f
#define FLT_MAX 0x1.fffffep127f
#define FLT_MIN 0x1p-126f
#define FLT_EPSILON 0x1p-23f
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define HALF_MAX ((half)65504.0f)
#define HALF_MIN ((half)0x1p-14f)
#define HALF_EPSILON ((half)0x1p-10f)
#define CHAR_BIT 8
#define CHAR_MAX 127
#define CHAR_MIN (-128)
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-LONG_MAX - 1)
#define ULONG_MAX 18446744073709551615ul
#define M_E_F 2.71828182845904523536f
#define M_LOG2E_F 1.44269504088896340736f
#define M_LOG10E_F 0.43429448190325182765f
#define M_LN2_F 0.69314718055994530942f
#define M_LN10_F 2.30258509299404568402f
#define M_PI_F 3.14159265358979323846f
#define M_PI_2_F 1.57079632679489661923f
#define M_PI_4_F 0.78539816339744830962f
#define M_1_PI_F 0.31830988618379067154f
#define M_2_PI_F 0.63661977236758134308f
#define M_2_SQRTPI_F 1.12837916709551257390f
#define M_SQRT2_F 1.41421356237309504880f
#define M_SQRT1_2_F 0.70710678118654752440f
#define M_E_H ((half)M_E_F)
#define M_LOG2E_H ((half)M_LOG2E_F)
#define M_LOG10E_H ((half)M_LOG10E_F)
#define M_LN2_H ((half)M_LN2_F)
#define M_LN10_H ((half)M_LN10_F)
#define M_PI_H ((half)M_PI_F)
#define M_PI_2_H ((half)M_PI_2_F)
#define M_PI_4_H ((half)M_PI_4_F)
#define M_1_PI_H ((half)M_1_PI_F)
#define M_2_PI_H ((half)M_2_PI_F)
#define M_2_SQRTPI_H ((half)M_2_SQRTPI_F)
#define M_SQRT2_H ((half)M_SQRT2_F)
#define M_SQRT1_2_H ((half)M_SQRT1_2_F)
#define M_E_BF ((bfloat)M_E_F)
#define M_LOG2E_BF ((bfloat)M_LOG2E_F)
#define M_LOG10E_BF ((bfloat)M_LOG10E_F)
#define M_LN2_BF ((bfloat)M_LN2_F)
#define M_LN10_BF ((bfloat)M_LN10_F)
#define M_PI_BF ((bfloat)M_PI_F)
#define M_PI_2_BF ((bfloat)M_PI_2_F)
#define M_PI_4_BF ((bfloat)M_PI_4_F)
#define M_1_PI_BF ((bfloat)M_1_PI_F)
#define M_2_PI_BF ((bfloat)M_2_PI_F)
#define M_2_SQRTPI_BF ((bfloat)M_2_SQRTPI_F)
#define M_SQRT2_BF ((bfloat)M_SQRT2_F)
#define M_SQRT1_2_BF ((bfloat)M_SQRT1_2_F)
#define assert(condition) ((void)0)
extern "C" __attribute__((const, nothrow)) bool __vx_constant_defined(const void*);
#define is_function_constant_defined(name) __vx_constant_defined((const void*)&(name))

/// Sources that extend `metal` define a void_t of their own there, which then hides this one.
namespace __hidden {
template <class...> using void_t = void;
}
namespace metal {
using namespace __hidden;

//===-- type traits -----------------------------------------------------------===//

template <class T, T v> struct integral_constant {
  static constexpr T value = v;
  typedef T value_type;
  typedef integral_constant type;
  constexpr operator T() const { return v; }
  constexpr T operator()() const { return v; }
};
template <bool B> using bool_constant = integral_constant<bool, B>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;
template <bool B, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <bool B, class T = void> using enable_if_t = typename enable_if<B, T>::type;
template <bool B, class T, class F> struct conditional { typedef T type; };
template <class T, class F> struct conditional<false, T, F> { typedef F type; };
template <bool B, class T, class F> using conditional_t = typename conditional<B, T, F>::type;
template <class T> struct __same { typedef T type; };
template <class T> using __same_t = typename __same<T>::type;

template <class T> struct remove_const : __same<T> {};
template <class T> struct remove_const<const T> : __same<T> {};
template <class T> struct remove_volatile : __same<T> {};
template <class T> struct remove_volatile<volatile T> : __same<T> {};
template <class T> using remove_const_t = typename remove_const<T>::type;
template <class T> using remove_volatile_t = typename remove_volatile<T>::type;
template <class T> using remove_cv_t = remove_volatile_t<remove_const_t<T>>;
template <class T> struct remove_cv : __same<remove_cv_t<T>> {};
template <class T> struct __remove_space : __same<T> {};
template <class T> struct __remove_space<device T> : __same<T> {};
template <class T> struct __remove_space<__attribute__((opencl_global_device)) T> : __same<T> {};
template <class T> struct __remove_space<__LOCAL T> : __same<T> {};
template <class T> struct remove_addrspace : __remove_space<T> {};
template <class T> struct remove_addrspace<const T> : __same<const typename __remove_space<T>::type> {};
template <class T> using remove_addrspace_t = typename remove_addrspace<T>::type;
template <class T> struct remove_reference : __same<T> {};
template <class T> struct remove_reference<T&> : __same<T> {};
template <class T> struct remove_reference<T&&> : __same<T> {};
template <class T> using remove_reference_t = typename remove_reference<T>::type;
template <class T> struct remove_pointer : __same<T> {};
template <class T> struct remove_pointer<T*> : __same<T> {};
template <class T> using remove_pointer_t = typename remove_pointer<T>::type;
template <class T> using decay_t = remove_cv_t<remove_addrspace_t<remove_reference_t<T>>>;
template <class T> struct decay : __same<decay_t<T>> {};
template <class T> struct make_unsigned : __same<__make_unsigned(T)> {};
template <class T> struct make_signed : __same<__make_signed(T)> {};
template <class T> using make_unsigned_t = __make_unsigned(T);
template <class T> using make_signed_t = __make_signed(T);
template <class T> T&& declval() noexcept;

#define __TRAIT(name, ...)                                                                                             \
  template <class T> inline constexpr bool name##_v = __VA_ARGS__;                                                     \
  template <class T> struct name : bool_constant<name##_v<T>> {};
__TRAIT(is_integral, __is_integral(T))
__TRAIT(is_floating_point, __is_same(remove_cv_t<T>, float) || __is_same(remove_cv_t<T>, half) ||
                               __is_same(remove_cv_t<T>, bfloat))
__TRAIT(is_arithmetic, is_integral_v<T> || is_floating_point_v<T>)
__TRAIT(is_signed, is_floating_point_v<T> || __is_signed(T))
__TRAIT(is_unsigned, __is_unsigned(T))
__TRAIT(is_pointer, __is_pointer(T))
__TRAIT(is_const, __is_const(T))
__TRAIT(is_enum, __is_enum(T))
__TRAIT(is_class, __is_class(T))
__TRAIT(is_void, __is_same(remove_cv_t<T>, void))
__TRAIT(is_array, __is_array(T))
__TRAIT(is_reference, __is_reference(T))
__TRAIT(is_trivially_copyable, __is_trivially_copyable(T))
__TRAIT(is_scalar, is_arithmetic_v<T> || __is_enum(T) || __is_pointer(T))
template <class T, class U> inline constexpr bool is_same_v = __is_same(T, U);
template <class T, class U> struct is_same : bool_constant<__is_same(T, U)> {};
template <class A, class B> inline constexpr bool is_convertible_v = __is_convertible(A, B);
template <class A, class B> struct is_convertible : bool_constant<__is_convertible(A, B)> {};
template <class A, class B> inline constexpr bool is_base_of_v = __is_base_of(A, B);
template <class T, class... A> inline constexpr bool is_constructible_v = __is_constructible(T, A...);
template <class... B> struct disjunction : bool_constant<(false || ... || bool(B::value))> {};
template <class... B> struct conjunction : bool_constant<(true && ... && bool(B::value))> {};
template <class B> struct negation : bool_constant<!B::value> {};
template <class... B> using _disjunction = disjunction<B...>;
template <class... B> using _conjunction = conjunction<B...>;

/// What an operand of `?:` is; packed vectors, which convert to vectors and back, are vectors.
template <class T> struct __chosen {
  typedef T type;
};
/// Operands of `?:` that lie in an address space as objects of a class; the pre-lexer puts it there.
template <class T> __VX constexpr decltype(auto) __msl_value(T&& x) {
  typedef remove_reference_t<T> U;
  typedef remove_cv_t<remove_addrspace_t<U>> D;
  typedef typename __chosen<D>::type V;
  if constexpr (__is_class(U) && (!__is_same(remove_addrspace_t<U>, U) || !__is_same(D, V)))
    return V(D(x));
  else
    return static_cast<T&&>(x);
}
/// The same for calls, `__msl_given((f(x), __msl_call()))`: what they make is a value, and may be nothing.
struct __msl_call {};
template <class T> struct __msl_result {
  T&& x;
};
template <class T> __VX constexpr __msl_result<T> operator,(T&& x, __msl_call) { return {static_cast<T&&>(x)}; }
template <class T> __VX constexpr decltype(auto) __msl_given(__msl_result<T> r) {
  if constexpr (__is_lvalue_reference(T))
    return __msl_value(static_cast<T>(r.x));
  else
    return typename __chosen<remove_cv_t<T>>::type(static_cast<T&&>(r.x));
}
__VX constexpr void __msl_given(__msl_call) {}
/// The value of a cast between half and bfloat, which Clang does not convert to each other; any other value is what it is.
template <class T> __VX constexpr decltype(auto) __msl_wide(T&& x) {
  if constexpr (__is_same(decay_t<T>, half) || __is_same(decay_t<T>, bfloat))
    return static_cast<float>(x);
  else
    return static_cast<T&&>(x);
}
/// static_cast; half and bfloat convert by way of float.
template <class To, class From> __VX constexpr To __msl_cast(From&& x) {
  typedef decay_t<From> F;
  typedef remove_cv_t<To> D;
  if constexpr ((__is_same(F, half) && __is_same(D, bfloat)) || (__is_same(F, bfloat) && __is_same(D, half)))
    return static_cast<To>((float)x);
  else
    return static_cast<To>(static_cast<From&&>(x));
}

//===-- limits ----------------------------------------------------------------===//

template <class T> struct numeric_limits;
#define __INTEGER_LIMITS(T, low, high, bits)                                                                           \
  template <> struct numeric_limits<T> {                                                                               \
    static constexpr bool is_specialized = true, is_signed = (low) != 0, is_integer = true, is_exact = true;           \
    static constexpr bool has_infinity = false;                                                                        \
    static constexpr int digits = bits;                                                                                \
    static constexpr T min() { return (T)(low); }                                                                      \
    static constexpr T lowest() { return (T)(low); }                                                                   \
    static constexpr T max() { return (T)(high); }                                                                     \
    static constexpr T infinity() { return 0; }                                                                        \
    static constexpr T quiet_NaN() { return 0; }                                                                       \
    static constexpr T epsilon() { return 0; }                                                                         \
  };
__INTEGER_LIMITS(bool, 0, 1, 1)
__INTEGER_LIMITS(char, CHAR_MIN, CHAR_MAX, 7)
__INTEGER_LIMITS(signed char, CHAR_MIN, CHAR_MAX, 7)
__INTEGER_LIMITS(uchar, 0, UCHAR_MAX, 8)
__INTEGER_LIMITS(short, SHRT_MIN, SHRT_MAX, 15)
__INTEGER_LIMITS(ushort, 0, USHRT_MAX, 16)
__INTEGER_LIMITS(int, INT_MIN, INT_MAX, 31)
__INTEGER_LIMITS(uint, 0, UINT_MAX, 32)
__INTEGER_LIMITS(long, LONG_MIN, LONG_MAX, 63)
__INTEGER_LIMITS(ulong, 0, ULONG_MAX, 64)
__INTEGER_LIMITS(long long, LONG_MIN, LONG_MAX, 63)
__INTEGER_LIMITS(unsigned long long, 0, ULONG_MAX, 64)
#define __FLOAT_LIMITS(T, high, smallest, step, bits, subnormal)                                                       \
  template <> struct numeric_limits<T> {                                                                               \
    static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false;               \
    static constexpr bool has_infinity = true;                                                                         \
    static constexpr int digits = bits;                                                                                \
    static constexpr T min() { return (T)(smallest); }                                                                 \
    static constexpr T lowest() { return (T)(-(high)); }                                                               \
    static constexpr T max() { return (T)(high); }                                                                     \
    static constexpr T infinity() { return (T)INFINITY; }                                                              \
    static constexpr T quiet_NaN() { return (T)NAN; }                                                                  \
    static constexpr T signaling_NaN() { return (T)NAN; }                                                              \
    static constexpr T denorm_min() { return (T)(subnormal); }                                                         \
    static constexpr T epsilon() { return (T)(step); }                                                                 \
  };
__FLOAT_LIMITS(float, FLT_MAX, FLT_MIN, FLT_EPSILON, 24, 0x1p-149f)
__FLOAT_LIMITS(half, 65504.0f, 0x1p-14f, 0x1p-10f, 11, 0x1p-24f)
__FLOAT_LIMITS(bfloat, 0x1.fep127f, 0x1p-126f, 0x1p-7f, 8, 0x1p-133f)

}  // namespace metal
