"""Rules of the standard library and of scalar, vector and matrix types, for the table of rules.py. Expected values are arithmetic on
Python's integers, or on floats where they are exact; the comment before a group is the specification's rule in our words."""
import math
import struct

from rules import N, X, rule, u32

INT_MAX, INT_MIN = 2**31 - 1, -(2**31)


def bits(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def signed(value, width):
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def clamped(value, width=32):
    return min(max(value, -(1 << (width - 1))), (1 << (width - 1)) - 1)


# Operands narrower than int are promoted to it; of int and uint the unsigned one wins; vectors keep the width of their elements.
rule("uchars_are_added_as_ints", "int", "uchar a = 200, b = 100; out[i] = a + b + int(i);", lambda i: 300 + i)
rule("ushort_is_promoted_to_signed", "int", "ushort a = ushort(i); out[i] = a - 1 < 0;", lambda i: int(i == 0))
rule("int_meets_uint_as_unsigned", "int", "out[i] = n[i] < 3u;", lambda i: int(u32(N[i]) < 3))
rule("uint_meets_long_as_signed", "int", "long a = n[i]; out[i] = a < 3u;", lambda i: int(N[i] < 3))
rule("compound_assignment_narrows_once", "int", "uchar a = 250; a += i; a *= 2; out[i] = a;", lambda i: ((250 + i) & 255) * 2 & 255)
rule("increment_of_char_wraps", "int", "char a = 127; ++a; out[i] = a + int(i);", lambda i: -128 + i)
rule("negated_uint", "uint", "out[i] = -i;", lambda i: u32(-i))
rule("uchar_vectors_wrap", "int", "uchar2 v = uchar2(200) + uchar2(100); out[i] = v.y + int(i);", lambda i: 44 + i)
rule("char_vectors_multiply_in_eight_bits", "int", "char2 v = char2(100) * char2(i); out[i] = v.x;", lambda i: signed(100 * i, 8))
rule("short_vectors_are_shifted_as_shorts", "int", "short2 v = short2(0x4001) << short2(1); out[i] = v.x + int(i);", lambda i: signed(0x8002, 16) + i)
rule("ushort_vectors_are_complemented", "int", "ushort2 v = ~ushort2(i); out[i] = v.x;", lambda i: 65535 - i)
rule("size_of_arithmetic_types", "int",
     "out[i] = sizeof(bool) + 10 * sizeof(half) + 100 * sizeof(bfloat) + 1000 * sizeof(long) + 10000 * sizeof(size_t);", [88221] * 8)
# The amount of a shift is taken modulo the width of what is shifted.
rule("shift_amounts_wrap", "uint", "out[i] = 1u << (32 + i);", lambda i: 1 << i)
rule("shift_amounts_wrap_to_the_right", "int", "out[i] = n[i] >> (33 + 32 * i);", lambda i: N[i] >> 1)
rule("shift_amounts_of_vectors_wrap_at_their_width", "int", "uchar2 v = uchar2(1) << uchar2(i + 8); out[i] = v.x;", lambda i: 1 << i)
rule("shift_amounts_of_longs_wrap_at_64", "uint", "ulong v = 1ul << (64 + i); out[i] = uint(v);", lambda i: 1 << i)
rule("vectors_are_shifted_by_scalars", "int", "int3 v = int3(1, 2, 3) << int(i); out[i] = v.x + v.y + v.z;", lambda i: 6 << i)

# Bits.
rule("popcount_of_negative_chars", "int", "out[i] = popcount(char(-1)) + popcount(short(n[i] < 0 ? -1 : 1));", lambda i: 8 + (16 if N[i] < 0 else 1))
rule("clz_of_ushort", "int", "out[i] = clz(ushort(i));", lambda i: 16 - i.bit_length())
rule("ctz_of_long", "int", "out[i] = int(ctz(1l << (i * 9)));", lambda i: i * 9)
rule("clz_of_ulong_zero", "int", "out[i] = int(clz(ulong(i)));", lambda i: 64 - i.bit_length())
rule("reverse_bits_of_uchar", "int", "out[i] = reverse_bits(uchar(i));", lambda i: int(f"{i:08b}"[::-1], 2))
rule("rotate_of_ushort", "int", "out[i] = rotate(ushort(0x8001), ushort(i));", lambda i: (0x8001 << i | 0x8001 >> (16 - i)) & 0xFFFF)
rule("rotate_of_int_by_more_than_its_width", "int", "out[i] = rotate(n[i], 36);", lambda i: signed(u32(N[i]) << 4 | u32(N[i]) >> 28, 32))
rule("rotate_of_vectors", "uint", "uint2 v = rotate(uint2(1, 0x80000000u), uint2(i, 1)); out[i] = v.x + v.y;", lambda i: (1 << i) + 1)
rule("mulhi_of_ints", "int", "out[i] = mulhi(n[i] * 100000000, 1000000007) + mulhi(short(n[i] * 1000), short(30000));",
     lambda i: (signed(N[i] * 100000000, 32) * 1000000007 >> 32) + (N[i] * 1000 * 30000 >> 16))
rule("mulhi_of_uints", "uint", "out[i] = mulhi(uint(n[i]), 0xCCCCCCCDu) >> 3;", lambda i: u32(N[i]) // 10)
# LLVM makes one instruction of an operation and the test of its overflow.
BIG = [2**32 - 1, 2**31, 65536, 65535, 3, 0, 1, 12345]
# Each by the one at 3 i + 1: a carry alone overflows, -2^63 as a product of numbers with and without a sign, and what is one less.
EDGE = [2**32 - 1, 2**33 - 1, 2**32, 2**31, 1, -(2**63), -(2**31), -(2**32)]
LONG = [2**63 - 1, -(2**63), -1, 2**32, 3037000500, 0, -3037000500, 6]
rule("products_of_uint_that_stop_at_the_largest", "uint", f"const uint a[8] = {{{', '.join(f'{v}u' for v in BIG)}}}; ulong p = ulong(a[i]) * a[(i * 3 + 2) & 7]; "
     "out[i] = p > 0xffffffffu ? 0xffffffffu : uint(p);", lambda i: min(BIG[i] * BIG[(i * 3 + 2) & 7], 2**32 - 1))
rule("products_of_uint_of_which_the_upper_half_is_tested", "uint", f"const uint a[8] = {{{', '.join(f'{v}u' for v in BIG)}}}; ulong p = ulong(a[i]) * a[i ^ 1]; "
     "if (p >> 32) p = 7; out[i] = uint(p);", lambda i: 7 if BIG[i] * BIG[i ^ 1] >> 32 else BIG[i] * BIG[i ^ 1])
rule("madsat_of_small_integers", "uint", "out[i] = madsat(ushort(i * 9362), ushort(i), ushort(0)) + 65536u * uint(madsat(uchar(i * 20), uchar(i), uchar(3)));",
     lambda i: min(i * i * 9362, 65535) + 65536 * min(i * i * 20 + 3, 255))


def overflows(name, operator, kind, values, width, is_signed, of=""):
    a, b = values, [values[(3 * i + 1) & 7] for i in range(8)]
    results = [eval(f"{x} {operator} {y}") for x, y in zip(a, b)]
    wrapped = [signed(v, width) if is_signed else v & ((1 << width) - 1) for v in results]
    text = ", ".join(f"{kind}({v & ((1 << 64) - 1)}ul)" for v in values)
    rule(f"overflow_of_{name}_{kind}{of}", "int", f"const {kind} a[8] = {{{text}}}; {kind} r; bool o = __builtin_{name}_overflow(a[i], a[(3 * i + 1) & 7], &r); "
         "out[i] = 2 * int(uint(r) ^ uint(ulong(r) >> 32)) + o;",
         [signed(2 * (u32(w) ^ u32(w >> 32)) + (w != v), 32) for w, v in zip(wrapped, results)])


for name, operator in (("add", "+"), ("sub", "-"), ("mul", "*")):
    overflows(name, operator, "uint", BIG, 32, False)
    overflows(name, operator, "int", [signed(v, 32) for v in BIG], 32, True)
    overflows(name, operator, "ulong", [v & (2**64 - 1) for v in LONG], 64, False)
    overflows(name, operator, "long", LONG, 64, True)
    overflows(name, operator, "long", EDGE, 64, True, "_at_the_edge")
    overflows(name, operator, "ulong", [v & (2**64 - 1) for v in EDGE], 64, False, "_at_the_edge")
    overflows(name, operator, "short", [signed(v, 16) for v in BIG], 16, True)
rule("bit_functions_of_vectors", "int",
     "int2 v = popcount(int2(n[i], 7)) + clz(int2(1)) + ctz(int2(8)); out[i] = v.x * 100 + v.y;", lambda i: 100 * (bin(u32(N[i])).count("1") + 34) + 37)
rule("extract_bits_extends_the_sign", "int", "out[i] = extract_bits(n[i], 0u, 3u);", lambda i: signed(N[i], 3))
rule("extract_no_bits", "int", "out[i] = extract_bits(n[i], i, 0u) + extract_bits(n[i], 0u, 32u);", lambda i: N[i])
rule("extract_bits_of_vectors", "int", "int2 v = extract_bits(int2(n[i], 0xF0), 4u, 4u); out[i] = v.x * 100 + v.y;", lambda i: signed(N[i] >> 4, 4) * 100 - 1)
rule("insert_bits_keeps_the_rest", "uint", "out[i] = insert_bits(0xFFFFFFFFu, i, 8u, 8u);", lambda i: 0xFFFF00FF | i << 8)
rule("insert_bits_of_vectors", "uint", "uint2 v = insert_bits(uint2(0, 15), uint2(i), 1u, 3u); out[i] = v.x + v.y;", lambda i: (i << 1 & 14) + (1 | (i << 1 & 14)))

# Integer functions that keep what the plain operators lose. Exact in Python, then brought into range.
rule("mulhi_of_short", "int", "out[i] = mulhi(short(n[i] * 1000), short(30000));", lambda i: N[i] * 1000 * 30000 >> 16)
rule("mulhi_of_long", "int", "out[i] = int(mulhi(long(n[i]), long(0x4000000000000000)));", lambda i: N[i] * 0x4000000000000000 >> 64)
rule("mulhi_of_ulong", "uint", "out[i] = uint(mulhi(0xFFFFFFFFFFFFFFFFul, ulong(i)));", lambda i: 0xFFFFFFFFFFFFFFFF * i >> 64)
rule("mulhi_of_vectors", "int", "int2 v = mulhi(int2(0x40000000), int2(n[i], 8)); out[i] = v.x * 10 + v.y;", lambda i: (N[i] * 0x40000000 >> 32) * 10 + 2)
rule("madhi", "int", "out[i] = madhi(0x40000000, n[i], 5);", lambda i: (0x40000000 * N[i] >> 32) + 5)
rule("madsat", "int", "out[i] = madsat(n[i], 0x20000000, 3);", lambda i: clamped(N[i] * 0x20000000 + 3))
rule("madsat_saturates_the_sum_not_the_product", "int", "out[i] = madsat(0x40000000, 2, n[i]);", lambda i: clamped(0x80000000 + N[i]))
rule("madsat_of_uint", "uint", "out[i] = madsat(0x40000000u, i, 9u);", lambda i: min(0x40000000 * i + 9, 0xFFFFFFFF))
rule("madsat_of_char", "int", "out[i] = madsat(char(n[i]), char(10), char(-9));", lambda i: clamped(N[i] * 10 - 9, 8))
rule("madsat_of_long", "uint", "long v = madsat(0x4000000000000000l, 2l, long(n[i])); out[i] = uint(v >> 32);",
     lambda i: clamped(2**63 + N[i], 64) >> 32 & 0xFFFFFFFF)
rule("madsat_of_vectors", "int", "int2 v = madsat(int2(n[i], 3), int2(0x20000000, 4), int2(1)); out[i] = v.x / 2 + v.y;",
     lambda i: int(clamped(N[i] * 0x20000000 + 1) / 2) + 13)
rule("addsat_of_int", "int", "out[i] = addsat(i & 1 ? INT_MIN : INT_MAX, n[i]);", lambda i: clamped((INT_MIN if i & 1 else INT_MAX) + N[i]))
rule("addsat_of_uchar", "int", "out[i] = addsat(uchar(250), uchar(i));", lambda i: min(250 + i, 255))
rule("subsat_of_char", "int", "out[i] = subsat(char(-120), char(n[i]));", lambda i: clamped(-120 - N[i], 8))
rule("addsat_of_vectors", "int", "int2 v = addsat(int2(INT_MAX, 1), int2(n[i])); out[i] = v.x / 4 + v.y;", lambda i: int(clamped(INT_MAX + N[i]) / 4) + 1 + N[i])
rule("hadd_rounds_down", "int", "out[i] = hadd(n[i], -3);", lambda i: (N[i] - 3) >> 1)
rule("rhadd_rounds_up", "int", "out[i] = rhadd(n[i], -3);", lambda i: (N[i] - 2) >> 1)
rule("absdiff_of_ints_is_unsigned", "uint", "out[i] = absdiff(INT_MIN + int(i), INT_MAX);", lambda i: INT_MAX - INT_MIN - i)
rule("absdiff_of_vectors", "uint", "uint2 v = absdiff(int2(n[i], 3), int2(2, 5)); out[i] = v.x * 10 + v.y;", lambda i: abs(N[i] - 2) * 10 + 2)
rule("min3_max3_median3", "int", "out[i] = min3(n[i], 3, 7) + 100 * max3(n[i], 3, 7) + 10000 * median3(n[i], 3, 7);",
     lambda i: min(N[i], 3) + 100 * max(N[i], 7) + 10000 * sorted([N[i], 3, 7])[1])
rule("mul24_and_mad24", "int", "out[i] = mul24(n[i], 1000) + mad24(n[i], 2, 1);", lambda i: N[i] * 1002 + 1)
rule("clamp_of_vectors_by_scalars", "int", "int2 v = clamp(int2(n[i], -9), -2, 5); out[i] = v.x * 10 + v.y;", lambda i: min(max(N[i], -2), 5) * 10 - 2)

# Conversions. To an integer: towards zero, NaN to 0. To a float type: to nearest, ties to even.
rule("nan_converts_to_zero", "int", "float a = i & 1 ? NAN : x[i]; out[i] = int(a);", lambda i: 0 if i & 1 else int(X[i]))
rule("uint_to_float_rounds_to_even", "float", "out[i] = float(16777216u + i);", [16777216, 16777216, 16777218, 16777220, 16777220, 16777220, 16777222, 16777224])
rule("int_to_half_rounds_to_even", "float", "out[i] = half(4096 + 2 * int(i));", [4096, 4096, 4100, 4104, 4104, 4104, 4108, 4112])
rule("large_floats_are_infinite_halves", "int", "half h = half(65504.0f + 8 * i); out[i] = isinf(h);", lambda i: int(8 * i >= 16))
rule("subnormal_halves_are_kept", "float", "half h = half(0x1p-24f * i); out[i] = float(h) * 0x1p24f;", lambda i: i)
rule("halves_round_after_each_operation", "float", "half a = 2048.0h + half(i & 1); a = a + 1.0h; out[i] = a + half(i & 1);", [2048] * 8)
rule("bfloats_round_after_each_operation", "float", "bfloat a = bfloat(256.0f); a = a + bfloat(1.0f); a = a + bfloat(1.0f); out[i] = float(a) + i;", lambda i: 256 + i)
rule("bfloat_ties_go_to_even", "float", "out[i] = float(bfloat(256.0f + i));", [256, 256, 258, 260, 260, 260, 262, 264])
rule("half_with_float_is_float", "int", "out[i] = sizeof(1.0h * 1.0f) * 10 + sizeof(1.0h * 1) + int(i);", lambda i: 42 + i)
rule("half_of_float_keeps_infinities_and_nan", "int", "half a = half(i & 1 ? INFINITY : NAN); out[i] = isinf(a) + 2 * isnan(a);", lambda i: 1 if i & 1 else 2)
rule("float_converts_to_bool", "int", "out[i] = bool(x[i]) + 2 * bool(n[i] + 1);", lambda i: int(X[i] != 0) + 2 * (N[i] != -1))
rule("vectors_convert_to_bool_by_element", "int", "bool2 b = bool2(float2(x[i], 2)); out[i] = b.x + 2 * b.y;", lambda i: int(X[i] != 0) + 2)
rule("vectors_convert_to_narrow_integers", "int", "uchar2 v = uchar2(int2(n[i], 300)); out[i] = v.x * 1000 + v.y;", lambda i: (N[i] & 255) * 1000 + 44)
rule("uchar_vectors_convert_to_float", "float", "float2 v = float2(uchar2(200, i)); out[i] = v.x + v.y / 2;", lambda i: 200 + i / 2)
rule("half_vectors_convert", "float", "half2 h = half2(float2(2049, x[i])); float2 v = float2(h); out[i] = v.x + v.y;", lambda i: 2048 + X[i])

# as_type keeps bits, also between vectors of other widths; the first element has the low ones.
rule("as_type_of_a_vector_to_a_scalar", "uint", "out[i] = as_type<uint>(ushort2(i, 3));", lambda i: i | 3 << 16)
rule("as_type_of_a_scalar_to_a_vector", "int", "uchar4 v = as_type<uchar4>(0x04030201u + i); out[i] = v.x + 10 * v.w;", lambda i: 41 + i)
rule("as_type_of_halves", "uint", "out[i] = as_type<uint>(half2(1.0h, -2.0h)) + i;", lambda i: 0xC0003C00 + i)
rule("as_type_of_float_vectors", "uint", "uint2 v = as_type<uint2>(float2(x[i], 1)); out[i] = v.x ^ v.y;", lambda i: bits(X[i]) ^ bits(1))
rule("as_type_of_bfloat_is_the_upper_half", "uint", "out[i] = as_type<ushort>(bfloat(x[i]));", lambda i: bits(X[i]) >> 16)

# Floats.
rule("negative_zero_compares_equal", "int", "float a = -0.0f * (i + 1); out[i] = (a == 0) + 2 * signbit(a);", [3] * 8)
rule("division_by_zero_is_infinite", "int", "float a = (i & 1 ? -1.0f : 1.0f) / (n[i] * 0.0f); out[i] = isinf(a) && !isnan(a);", [1] * 8)
rule("fast_functions_have_the_names_of_precise_ones", "float", "out[i] = fast::floor(x[i]) + precise::fabs(x[i]) + fast::fmax(x[i], 1.0f) + precise::fma(x[i], 2, 1);",
     lambda i: math.floor(X[i]) + abs(X[i]) + max(X[i], 1) + 2 * X[i] + 1)
rule("common_functions_are_fast_and_precise_too", "float", "out[i] = fast::clamp(x[i], 0.0f, 1.0f) + precise::mix(1.0f, 3.0f, x[i]) + fast::saturate(x[i]) + precise::sign(x[i]);",
     lambda i: 2 * min(max(X[i], 0), 1) + 1 + 2 * X[i] + (X[i] > 0) - (X[i] < 0))
rule("exp10_and_log10", "float", "out[i] = log10(exp10(x[i]));", lambda i: X[i])
rule("log2_of_exp2", "float", "out[i] = log2(exp2(x[i]) * 4);", lambda i: X[i] + 2)
rule("sinpi_cospi", "float", "out[i] = sinpi(x[i]) + 2 * cospi(x[i]);", lambda i: round(math.sin(math.pi * X[i])) + 2 * round(math.cos(math.pi * X[i])))
rule("inverse_functions", "float", "float a = x[i] * 0.25f; out[i] = sin(asin(a)) + cos(acos(a)) + tan(atan(a));", lambda i: 0.75 * X[i])
rule("hyperbolic_functions", "float", "out[i] = asinh(sinh(x[i])) + atanh(tanh(x[i] * 0.5f)) + acosh(cosh(x[i]));", lambda i: 1.5 * X[i] + abs(X[i]))
rule("fdim", "float", "out[i] = fdim(x[i], 0.5f);", lambda i: max(X[i] - 0.5, 0))
rule("nextafter", "uint", "out[i] = as_type<uint>(nextafter(float(i + 1), 9.0f));", lambda i: bits(i + 1) + 1)
rule("modf_splits", "float", "float whole; float part = modf(x[i], whole); out[i] = part + 10 * whole;", lambda i: math.modf(X[i])[0] + 10 * math.modf(X[i])[1])
rule("modf_of_vectors", "float", "float2 whole; float2 part = modf(float2(x[i], 2.25f), whole); out[i] = part.x + 10 * whole.x + part.y + whole.y;",
     lambda i: math.modf(X[i])[0] + 10 * math.modf(X[i])[1] + 2.25)
rule("frexp_of_vectors", "float", "int2 e; float2 m = frexp(float2(x[i] * 5, 8), e); out[i] = m.x + 10 * e.x + m.y + e.y;",
     lambda i: (lambda m, e: m + 10 * e + 4.5)(*math.frexp(X[i] * 5)))
rule("ldexp_of_vectors", "float", "float2 v = ldexp(float2(1.5f, x[i]), int2(n[i], 1)); out[i] = v.x + v.y;", lambda i: math.ldexp(1.5, N[i]) + 2 * X[i])
rule("ilogb", "int", "out[i] = ilogb(float(i + 1));", lambda i: (i + 1).bit_length() - 1)
rule("ilogb_of_vectors", "int", "int2 v = ilogb(float2(i + 1, 0.25f)); out[i] = v.x * 10 + v.y;", lambda i: ((i + 1).bit_length() - 1) * 10 - 2)
rule("sincos_gives_both", "float", "float c; float s = sincos(x[i], c); out[i] = s * s + c * c;", [1] * 8)
rule("fmin3_fmax3_fmedian3", "float", "out[i] = fmin3(x[i], 1.0f, 2.0f) + 10 * fmax3(x[i], 1.0f, 2.0f) + 100 * fmedian3(x[i], 1.0f, 2.0f);",
     lambda i: min(X[i], 1) + 10 * max(X[i], 2) + 100 * sorted([X[i], 1, 2])[1])
rule("isnormal_and_isordered", "int", "float a = i & 1 ? 0x1p-130f : x[i]; out[i] = isnormal(a) + 2 * isordered(a, 1.0f) + 4 * isunordered(a, NAN);",
     lambda i: int(i % 2 == 0 and X[i] != 0) + 6)
rule("signbit_and_isnan_of_half", "int", "half h = half(x[i]); out[i] = signbit(h) + 2 * isnan(h) + 4 * isfinite(h);", lambda i: int(X[i] < 0) + 4)
rule("math_of_half_is_half", "int", "out[i] = sizeof(sqrt(half(i))) + sizeof(exp(half2(1.0h)));", [6] * 8)
rule("mix_of_vectors_by_a_vector", "float", "float2 v = mix(float2(1, 2), float2(3, 6), float2(x[i], 0.5f)); out[i] = v.x + v.y;", lambda i: 1 + 2 * X[i] + 4)
rule("step_and_smoothstep_of_vectors", "float", "float2 v = step(float2(0.5f), float2(x[i], 0)) + smoothstep(float2(0), float2(1), float2(0.5f)); out[i] = v.x + 10 * v.y;",
     lambda i: (X[i] >= 0.5) + 0.5 + 5)
rule("fma_of_half", "float", "out[i] = fma(half(x[i]), 2.0h, 1.0h);", lambda i: 2 * X[i] + 1)

# Vectors: construction, components, operators.
rule("vector_from_a_scalar_and_a_vector", "float", "float4 v = float4(x[i], float3(1, 2, 3)); out[i] = v.x + 10 * v.y + 100 * v.w;", lambda i: X[i] + 310)
rule("vector_from_vector_between_scalars", "float", "float4 v = float4(1, float2(x[i], 3), 4); out[i] = v.y + 10 * v.z + 100 * v.w;", lambda i: X[i] + 430)
rule("vectors_are_copied", "int", "int3 a = int3(n[i], 1, 2), b = a; b.x = 7; out[i] = a.x * 10 + b.x;", lambda i: N[i] * 10 + 7)
rule("components_are_compound_assigned", "float", "float4 v = float4(1, 2, 3, 4); v.y += x[i]; v.w *= 2; v.x -= v.z; out[i] = v.x + v.y + v.w;", lambda i: -2 + 2 + X[i] + 8)
rule("components_are_incremented", "int", "int2 v = int2(n[i], 0); v.x++; --v.y; out[i] = v.x * 10 + v.y;", lambda i: (N[i] + 1) * 10 - 1)
rule("swizzles_are_compound_assigned", "float", "float4 v = float4(1, 2, 3, 4); v.xz += float2(x[i], 10); v.yw *= 2; out[i] = v.x + v.y + v.z + v.w;", lambda i: 1 + X[i] + 13 + 4 + 8)
rule("swizzles_can_swap", "int", "int2 v = int2(n[i], 3); v.xy = v.yx; out[i] = v.x * 100 + v.y;", lambda i: 300 + N[i])
rule("swizzles_of_swizzles", "float", "float4 v = float4(1, 2, 3, x[i]); out[i] = v.wzyx.xy.x + 10 * v.yzw.y;", lambda i: X[i] + 30)
rule("swizzles_of_results", "float", "out[i] = (float3(x[i], 1, 2) * 2).zyx.z;", lambda i: 2 * X[i])
rule("colours_can_be_assigned", "float", "float4 v = 0; v.rgb = float3(x[i], 2, 3); v.a = 4; out[i] = v.x + 10 * v.w + 100 * v.y;", lambda i: X[i] + 240)
rule("a_scalar_fills_a_swizzle", "float", "float3 v = float3(1); v.xz = x[i]; out[i] = v.x + v.y + v.z;", lambda i: 2 * X[i] + 1)
rule("postfix_increment_of_vectors", "int", "int2 v = int2(n[i]); int2 w = v++; out[i] = w.x * 100 + v.y;", lambda i: N[i] * 100 + N[i] + 1)
rule("unary_operators_of_vectors", "int", "int2 v = -int2(n[i], 1); bool2 b = !(v > 0); out[i] = v.x * 10 + b.x + b.y;", lambda i: -N[i] * 10 + (-N[i] <= 0) + 1)
rule("logical_operators_of_vectors", "int", "bool2 a = bool2(i > 2, true), b = bool2(i > 4, false); bool2 c = a && b, d = a || b; out[i] = c.x + 2 * c.y + 4 * d.x + 8 * d.y;",
     lambda i: (i > 4) + 4 * (i > 2) + 8)
rule("bitwise_operators_of_bool_vectors", "int", "bool2 a = bool2(i > 2, true), b = bool2(i > 4, true); bool2 c = a ^ b; out[i] = c.x + 2 * c.y;", lambda i: int((i > 2) != (i > 4)))
rule("equality_of_vectors_is_per_element", "int", "int2 a = int2(n[i], 2), b = int2(2, 2); out[i] = all(a == b) + 2 * any(a != b);", lambda i: 1 if N[i] == 2 else 2)
rule("comparison_of_vectors_with_nan", "int", "float2 v = float2(NAN, x[i]); bool2 b = v == v; out[i] = b.x + 2 * b.y;", [2] * 8)
rule("scalars_come_before_vectors_too", "float", "float2 v = 10 - float2(x[i], 1); v = 2 / v.yy; out[i] = v.x + (10 - x[i]);", lambda i: 2 / 9 + 10 - X[i])
rule("vector_of_longs", "int", "long2 v = long2(n[i], 1) << 33; v += 1; out[i] = int(v.x >> 33) + int(v.y);", lambda i: N[i] + 1)
rule("remainder_of_vectors", "int", "int2 v = int2(n[i], -7) % int2(3, 4); out[i] = v.x * 10 + v.y;", lambda i: int(math.fmod(N[i], 3)) * 10 - 3)
rule("a_chosen_scalar_is_widened", "float", "float2 v = i & 1 ? float2(x[i], 2) : 5.0f; out[i] = v.x + v.y;", lambda i: X[i] + 2 if i & 1 else 10)
rule("vectors_are_chosen_by_a_scalar", "int", "int4 a = int4(n[i]), b = int4(1, 2, 3, 4); int4 v = n[i] > 3 ? a : b; out[i] = v.w;", lambda i: N[i] if N[i] > 3 else 4)
rule("select_of_scalars", "float", "out[i] = select(x[i], 9.0f, i > 3);", lambda i: 9 if i > 3 else X[i])
rule("select_of_float_vectors", "float", "float3 v = select(float3(1), float3(x[i]), bool3(true, false, i > 3)); out[i] = v.x + v.y + 10 * v.z;", lambda i: X[i] + 1 + 10 * (X[i] if i > 3 else 1))
rule("vector_products_of_elements", "float", "float3 v = float3(x[i], 2, 3); v /= float3(2, 4, 8); v -= 1; out[i] = v.x + v.y + v.z;", lambda i: X[i] / 2 + 0.5 + 0.375 - 3)
rule("distance_and_squares", "float", "out[i] = distance(float2(x[i], 1), float2(x[i] + 3, 5)) + length_squared(float2(x[i], 2)) + distance_squared(float2(1), float2(2));", lambda i: 5 + X[i] ** 2 + 4 + 2)
rule("reflect", "float", "float2 v = reflect(float2(x[i], -1), float2(0, 1)); out[i] = v.x + 10 * v.y;", lambda i: X[i] + 10)
rule("refract_straight_on", "float", "float2 v = refract(float2(0, -1), float2(0, 1), 0.5f + i); out[i] = v.x + v.y;", [-1] * 8)
rule("refract_beyond_the_critical_angle_is_zero", "float", "float2 v = refract(normalize(float2(1, -0.1f)), float2(0, 1), 2.0f); out[i] = abs(v.x) + abs(v.y);", [0] * 8)
rule("faceforward", "float", "float2 v = faceforward(float2(0, 1), float2(x[i], 1), float2(0, 1)); out[i] = v.y;", [-1] * 8)
rule("dot_of_half", "float", "out[i] = dot(half2(half(x[i]), 1), half2(2, 3));", lambda i: 2 * X[i] + 3)

# Packed vectors have no padding and convert both ways.
rule("packed_vectors_take_operators", "float", "packed_float3 p = packed_float3(x[i], 1, 2), q = packed_float3(1, 2, 3); float3 v = p + q * 2 - 1; out[i] = v.x + v.y + v.z;", lambda i: X[i] + 1 + 4 + 7)
rule("packed_vectors_are_compound_assigned", "float", "packed_float2 p = packed_float2(x[i], 1); p += float2(1, 2); p *= 2; out[i] = p.x + 10 * p.y;", lambda i: 2 * (X[i] + 1) + 60)
rule("packed_vectors_are_added_to_vectors", "float", "packed_float3 p = float3(x[i], 1, 2); float3 v = 1; v += p; v = v * p; out[i] = v.x + v.y + v.z;", lambda i: (X[i] + 1) * X[i] + 2 + 6)
rule("packed_vectors_have_swizzles", "float", "packed_float3 p = packed_float3(x[i], 1, 2); p.xy = p.yx; out[i] = p.x * 10 + p.y + p.zz.x;", lambda i: 12 + X[i])
rule("packed_vectors_join_parts", "float", "packed_float4 p = packed_float4(float2(x[i], 1), 2, 3); out[i] = p.x + p.w + p.r;", lambda i: 2 * X[i] + 3)
rule("packed_vectors_have_lengths", "float", "packed_float2 p = packed_float2(3, 4); out[i] = length(float2(p)) + dot(float2(p), float2(x[i], 0));", lambda i: 5 + 3 * X[i])
rule("sizes_of_packed_vectors", "int", "out[i] = sizeof(packed_half3) + 10 * sizeof(packed_uchar3) + 100 * sizeof(packed_short2) + 1000 * sizeof(packed_int4);", [16436] * 8)
# A function of vectors takes packed ones, and scalars that count for each element; a vector is made of packed parts.
rule("packed_vectors_are_arguments", "float",
     "packed_float3 p = packed_float3(x[i], 3, 4), q = packed_float3(2, 1, 1); out[i] = dot(p, q) + length(packed_float2(3, 4)) + max(p, 3.5f).y + cross(p, float3(0, 0, 1)).x + "
     "abs(p).x + fma(p, q, 1.0f).z + fast::max(p, q).y;", lambda i: 2 * X[i] + 7 + 5 + 3.5 + 3 + abs(X[i]) + 5 + 3)
rule("packed_vectors_are_parts_of_vectors", "float",
     "packed_float3 p = packed_float3(x[i], 1, 2); float4 a = float4(p, 3), b(1, p); float4 c = float4(packed_float2(4, 5), p.yz); out[i] = a.x + 10 * a.w + 100 * b.y + 1000 * c.y;",
     lambda i: X[i] + 30 + 100 * X[i] + 5000)
rule("packed_vectors_convert_to_other_elements", "float",
     "packed_float3 p = packed_float3(x[i], 1, 2); half3 h = half3(p); int3 k = int3(p); packed_half3 q = packed_half3(p); out[i] = h.x + k.z + q.y;", lambda i: X[i] + 3)
rule("packed_integers_convert", "int", "packed_uchar4 p = packed_uchar4(i, 2, 3, 250); uint4 w = uint4(p); packed_short2 s = 7; out[i] = w.x + w.w + s.y + popcount(p).z;", lambda i: i + 250 + 7 + 2)
rule("scalars_are_arguments_beside_vectors", "float",
     "float3 v = float3(x[i], 1, 2); out[i] = max(0.0f, v).x + step(0.5f, v).y + smoothstep(0.0f, 2.0f, v).y + pow(2.0f, v).z + fma(v, 2.0f, v).y + mix(v, 0.0f, 0.5f).z + min(v, 1.5f).z;",
     lambda i: max(0, X[i]) + 1 + 0.5 + 4 + 3 + 1 + 1.5)
rule("scalars_are_arguments_beside_integers", "int", "int2 v = int2(n[i], 5); out[i] = max(2, v).y + min(v, 3).y + mad24(v, 2, 1).x + absdiff(7, v).y;", lambda i: 5 + 3 + 2 * N[i] + 1 + 2)
rule("constants_of_half_and_bfloat", "int", "out[i] = as_type<ushort>(M_PI_H) + (as_type<ushort>(M_E_BF) << 16);", [0x4248 + (0x402E << 16)] * 8)
rule("sizes_of_vectors", "int", "out[i] = sizeof(half3) + 10 * sizeof(uchar3) + 100 * sizeof(bool2) + 1000 * sizeof(int4) + 100000 * alignof(float3);", [1616248] * 8)

# Matrices are stored by columns.
rule("matrix_from_columns", "float", "float2x3 m = float2x3(float3(1, 2, 3), float3(4, 5, x[i])); out[i] = m[1].z + 10 * m[0].y;", lambda i: X[i] + 20)
rule("columns_are_assigned", "float", "float2x2 m = float2x2(1.0f); m[1] = float2(x[i], 3); m[0][1] = 4; m[0].x += 1; out[i] = m[0][0] + 10 * m[0][1] + 100 * m[1][0] + m[1][1];", lambda i: 2 + 40 + 100 * X[i] + 3)
rule("matrix_sums_and_differences", "float", "float2x2 a = float2x2(1, 2, 3, 4), b = float2x2(x[i]); float2x2 c = a + b - float2x2(1.0f); out[i] = c[0][0] + 10 * c[0][1] + c[1][1];", lambda i: X[i] + 20 + 3 + X[i])
rule("matrix_times_scalar", "float", "float2x2 m = 2 * float2x2(1, 2, 3, 4) * x[i]; out[i] = m[1][0] + m[0][1];", lambda i: 10 * X[i])
rule("matrices_are_compound_assigned", "float", "float2x2 m = float2x2(1, 2, 3, 4); m += float2x2(1.0f); m -= float2x2(2.0f); m *= 3.0f; m *= float2x2(x[i]); out[i] = m[0][0] + 10 * m[0][1];", lambda i: 60 * X[i])
rule("negated_matrices", "float", "float2x2 m = -float2x2(1, 2, 3, x[i]); out[i] = m[1][1] + m[1][0];", lambda i: -X[i] - 3)
rule("product_of_oblong_matrices", "float", "float3x2 a = float3x2(1, 2, 3, 4, 5, 6); float2x3 b = float2x3(1, 0, 1, 0, 1, x[i]); float2x2 c = a * b; out[i] = c[0][0] + 10 * c[1][1];", lambda i: 6 + 10 * (4 + 6 * X[i]))
rule("oblong_matrix_times_vector", "float", "float3 v = float2x3(1, 2, 3, 4, 5, 6) * float2(x[i], 1); out[i] = v.x + v.y + v.z;", lambda i: 6 * X[i] + 15)
rule("determinant_of_three", "float", "out[i] = determinant(float3x3(2, 0, 0, 1, x[i], 0, 4, 5, 3));", lambda i: 6 * X[i])
rule("determinant_of_four", "float", "out[i] = determinant(float4x4(0, 1, 0, 0, 2, 0, 0, 0, 7, 8, x[i], 1, 1, 2, 3, 4));", lambda i: -2 * (4 * X[i] - 3))
rule("half_matrices", "float", "half2x2 m = half2x2(1, 2, 3, half(x[i])); half2 v = m * half2(1, 2); out[i] = v.x + 10 * v.y;", lambda i: 7 + 10 * (2 + 2 * X[i]))
rule("matrices_convert", "float", "float2x2 m = float2x2(half2x2(1, 2, 3, half(x[i]))); out[i] = m[1][1];", lambda i: X[i])
rule("matrix_elements_by_index", "float", "float4x4 m = float4x4(0.0f); for (uint c = 0; c < 4; ++c) for (uint r = 0; r < 4; ++r) m[c][r] = c * 10 + r; out[i] = m[i & 3][(i + 1) & 3];", lambda i: (i & 3) * 10 + ((i + 1) & 3))
rule("sizes_of_matrices", "int", "out[i] = sizeof(float3x3) + 100 * sizeof(float2x3) + 10000 * sizeof(half4x4);", [323248] * 8)

# Normalised integers in a word: the first component has the low bits; rounded to nearest.
rule("unpack_unorm4x8", "float", "float4 v = unpack_unorm4x8_to_float(0x00FF3300u); out[i] = v.x + v.y * 5 + v.z * 10 + v.w;", [11] * 8)
rule("unpack_snorm2x16", "float", "float2 v = unpack_snorm2x16_to_float(0x80017FFFu); out[i] = v.x + 10 * v.y;", [-9] * 8)
rule("pack_float_to_unorm4x8", "uint", "out[i] = pack_float_to_unorm4x8(float4(1, 0, 0.2f, 7));", [0xFF3300FF] * 8)
rule("pack_float_to_snorm2x16", "uint", "out[i] = pack_float_to_snorm2x16(float2(-1, 1));", [0x7FFF8001] * 8)
for kind, of in (("float", "float"), ("half", "half")):
    rule(f"pack_{kind}_to_unorm10a2", "uint", f"out[i] = pack_{kind}_to_unorm10a2({of}4(1, 0, 0.5f, 7));", [0x3FF | 512 << 20 | 3 << 30] * 8)
    rule(f"pack_{kind}_to_unorm565", "uint", f"out[i] = pack_{kind}_to_unorm565({of}3(1, 0, 0.2f));", [31 | 6 << 11] * 8)
    rule(f"pack_{kind}_to_srgb_unorm4x8", "uint", f"out[i] = pack_{kind}_to_srgb_unorm4x8({of}4(1, -2, 0.5f, 0.2f));", [0xFF | 188 << 16 | 51 << 24] * 8)
    rule(f"unpack_unorm10a2_to_{kind}", "float", f"{of}4 v = unpack_unorm10a2_to_{kind}(0x3FFu | 3u << 30); out[i] = v.x + 10 * v.y + 100 * v.z + 1000 * v.w;", [1001] * 8)
    rule(f"unpack_unorm565_to_{kind}", "float", f"{of}3 v = unpack_unorm565_to_{kind}(ushort(31 | 63 << 5)); out[i] = v.x + 10 * v.y + 100 * v.z;", [11] * 8)
    rule(f"unpack_unorm4x8_srgb_to_{kind}", "float", f"{of}4 v = unpack_unorm4x8_srgb_to_{kind}(0x330000FFu); out[i] = v.x + 10 * v.y + 100 * float({of}(0.2f) == v.w);", [101] * 8)
rule("srgb_is_linear_at_the_dark_end", "float", "float4 v = unpack_unorm4x8_srgb_to_float(0x00BC0A05u); out[i] = v.x * 1000 + v.y * 100 + v.z;", [5 / 255 / 12.92 * 1000 + 10 / 255 / 12.92 * 100 + ((188 / 255 + 0.055) / 1.055) ** 2.4] * 8)
rule("sources_may_name_vectors", "float", "vec4 v = vec4(x[i]); vec2 w = v.xy; vec3 z = v.xyz; out[i] = v.x + w.y + z.z;", lambda i: 3 * X[i], "typedef float2 vec2; typedef float3 vec3; typedef float4 vec4;")
rule("what_is_expected_of_a_condition", "int", "out[i] = __builtin_expect(n[i] > 0, 1) ? n[i] : -1;", lambda i: N[i] if N[i] > 0 else -1)
