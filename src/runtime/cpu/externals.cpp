#include "runtime/cpu/externals.h"

#include "base/narrow_float.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>

namespace vortex::cpu {

namespace {

#if defined(__x86_64__)
// Half floats travel in vector registers; these types make the compiler pass them so. Ours, because libgcc's set of these
// conversions differs by version.
float extendHalf(_Float16 value) {
  return static_cast<float>(base::decodeNarrow(base::kF16, std::bit_cast<uint16_t>(value)));
}
template <typename From> _Float16 truncateToHalf(From value) {
  return std::bit_cast<_Float16>(base::encodeNarrow(base::kF16, value));
}
template <typename From> __bf16 truncateToBFloat(From value) {
  return std::bit_cast<__bf16>(base::encodeNarrow(base::kBF16, value));
}
#endif

using Wide = __int128;
using UnsignedWide = unsigned __int128;
Wide divideWide(Wide lhs, Wide rhs) { return lhs / rhs; }
Wide remainderWide(Wide lhs, Wide rhs) { return lhs % rhs; }
UnsignedWide divideUnsignedWide(UnsignedWide lhs, UnsignedWide rhs) { return lhs / rhs; }
UnsignedWide remainderUnsignedWide(UnsignedWide lhs, UnsignedWide rhs) { return lhs % rhs; }

/// llvm.powi: repeated squaring, reciprocal at the end.
template <typename T> T power(T base, int exponent) {
  auto rest = exponent < 0 ? 0u - static_cast<unsigned>(exponent) : static_cast<unsigned>(exponent);
  T result = 1;
  for (; rest != 0; rest >>= 1, base *= base)
    if (rest & 1)
      result *= base;
  return exponent < 0 ? 1 / result : result;
}
float powerFloat(float base, int exponent) { return power(base, exponent); }
double powerDouble(double base, int exponent) { return power(base, exponent); }

struct External {
  std::string_view name;
  void* address;
};

template <typename F> void* address(F* function) { return reinterpret_cast<void*>(function); }

using F1 = float(float);
using F2 = float(float, float);
using F3 = float(float, float, float);
using D1 = double(double);
using D2 = double(double, double);
using D3 = double(double, double, double);

// Both precisions of a libm function.
#define VORTEX_MATH1(op)                                                                                               \
  {#op, address<D1>(::op)}, { #op "f", address<F1>(::op##f) }
#define VORTEX_MATH2(op)                                                                                               \
  {#op, address<D2>(::op)}, { #op "f", address<F2>(::op##f) }
#define VORTEX_MATH3(op)                                                                                               \
  {#op, address<D3>(::op)}, { #op "f", address<F3>(::op##f) }

const External kExternals[] = {
    {"memcpy", address(::memcpy)},
    {"memmove", address(::memmove)},
    {"memset", address(::memset)},
    {"memcmp", address(::memcmp)},
    VORTEX_MATH1(acos),
    VORTEX_MATH1(acosh),
    VORTEX_MATH1(asin),
    VORTEX_MATH1(asinh),
    VORTEX_MATH1(atan),
    VORTEX_MATH1(atanh),
    VORTEX_MATH1(cbrt),
    VORTEX_MATH1(ceil),
    VORTEX_MATH1(cos),
    VORTEX_MATH1(cosh),
    VORTEX_MATH1(erf),
    VORTEX_MATH1(erfc),
    VORTEX_MATH1(exp),
    VORTEX_MATH1(exp2),
    VORTEX_MATH1(expm1),
    VORTEX_MATH1(fabs),
    VORTEX_MATH1(floor),
    VORTEX_MATH1(lgamma),
    VORTEX_MATH1(log),
    VORTEX_MATH1(log10),
    VORTEX_MATH1(log1p),
    VORTEX_MATH1(log2),
    VORTEX_MATH1(nearbyint),
    VORTEX_MATH1(rint),
    VORTEX_MATH1(round),
    VORTEX_MATH1(sin),
    VORTEX_MATH1(sinh),
    VORTEX_MATH1(sqrt),
    VORTEX_MATH1(tan),
    VORTEX_MATH1(tanh),
    VORTEX_MATH1(tgamma),
    VORTEX_MATH1(trunc),
#if defined(__GLIBC__)
    VORTEX_MATH1(exp10),
    VORTEX_MATH1(roundeven),
#endif
    VORTEX_MATH2(atan2),
    VORTEX_MATH2(copysign),
    VORTEX_MATH2(fdim),
    VORTEX_MATH2(fmax),
    VORTEX_MATH2(fmin),
    VORTEX_MATH2(fmod),
    VORTEX_MATH2(hypot),
    VORTEX_MATH2(nextafter),
    VORTEX_MATH2(pow),
    VORTEX_MATH2(remainder),
    VORTEX_MATH3(fma),
    {"ldexp", address<double(double, int)>(::ldexp)},
    {"ldexpf", address<float(float, int)>(::ldexpf)},
    {"sincos", address<void(double, double*, double*)>(::sincos)},
    {"sincosf", address<void(float, float*, float*)>(::sincosf)},
    {"__powidf2", address(powerDouble)},
    {"__powisf2", address(powerFloat)},
    {"__divti3", address(divideWide)},
    {"__modti3", address(remainderWide)},
    {"__udivti3", address(divideUnsignedWide)},
    {"__umodti3", address(remainderUnsignedWide)},
#if defined(__x86_64__)
    {"__extendhfsf2", address(extendHalf)},
    {"__truncsfhf2", address(truncateToHalf<float>)},
    {"__truncdfhf2", address(truncateToHalf<double>)},
    {"__truncsfbf2", address(truncateToBFloat<float>)},
    {"__truncdfbf2", address(truncateToBFloat<double>)},
#endif
};

}  // namespace

void* findExternal(std::string_view name) {
  // Asked once per symbol of an object being loaded: a hundred comparisons are cheaper than keeping a sorted copy.
  const auto found = std::find_if(std::begin(kExternals), std::end(kExternals),
                                  [&](const External& item) { return item.name == name; });
  return found == std::end(kExternals) ? nullptr : found->address;
}

}  // namespace vortex::cpu
