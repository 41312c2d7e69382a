"""More rules of the language, for the table of rules.py: initialisation, operators and their results, functions and templates, structures, memory, conversions,
and what library functions give for NaN, infinities and the ends of their domains."""
import math
import struct

from rules import N, X, rule, u32


def bits(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def half_bits(value):
    return struct.unpack("<H", struct.pack("<e", value))[0]


# Initialisation.
rule("braces_initialise_vectors", "float", "float3 v{x[i], 2, 3}; float2 w = {4, x[i]}; out[i] = v.x + 10 * v.z + w.x + w.y;", lambda i: 2 * X[i] + 34)
rule("empty_braces_are_zero", "int", "int4 v = {}; int a[3] = {}; Zeroed z = {}; out[i] = v.w + a[2] + z.b + z.v.y + n[i];", lambda i: N[i], "struct Zeroed { int a, b; float2 v; };")
rule("elements_that_are_not_given_are_zero", "int", "int a[4] = {n[i], 2}; Three t = {n[i]}; out[i] = a[0] + 10 * a[1] + a[2] + a[3] + t.a + t.b + t.c;", lambda i: 2 * N[i] + 20, "struct Three { int a, b, c; };")
rule("designated_members", "int", "Named p = {.b = n[i], .c = 5}; out[i] = p.a + p.b * 10 + p.c;", lambda i: N[i] * 10 + 5, "struct Named { int a, b, c; };")
rule("structures_are_assigned_from_braces", "int", "Box2 p; p = {n[i], 3}; out[i] = p.a * 10 + p.b;", lambda i: N[i] * 10 + 3, "struct Box2 { int a, b; };")
rule("nested_braces", "int", "Rows r = {{{1, 2}, {3, n[i]}}, 5}; out[i] = r.v[1][1] * 10 + r.v[0][1] + r.k;", lambda i: N[i] * 10 + 7, "struct Rows { int v[2][2]; int k; };")
rule("variables_are_declared_in_conditions_of_switches", "int", "switch (int k = n[i] & 3; k) { case 0: out[i] = 10; break; case 2: out[i] = k * 7; break; default: out[i] = -k; }", lambda i: (lambda k: 10 if k == 0 else 14 if k == 2 else -k)(N[i] & 3))

# Operators.
rule("increments_give_old_and_new_values", "int", "int k = n[i]; int a = k++; int b = ++k; int c = k--; int d = --k; out[i] = a * 1000 + (b - a) * 100 + (c - a) * 10 + (d - a);", lambda i: N[i] * 1000 + 220)
rule("increments_of_elements_and_members", "int", "int a[2] = {n[i], 0}; Counted c{5}; int k = a[0]++ + c.k++; ++a[1]; --c.k; out[i] = k * 100 + a[0] + a[1] * 10 + c.k;", lambda i: (N[i] + 5) * 100 + N[i] + 1 + 10 + 5, "struct Counted { int k; };")
rule("assignments_are_values", "int", "int a, b, c; a = b = c = n[i]; (a += 2) *= 3; out[i] = a + (b -= 1) * 100;", lambda i: (N[i] + 2) * 3 + (N[i] - 1) * 100)
rule("chosen_sides_alone_are_evaluated", "int", "int a = 0, b = 0; int k = n[i] > 2 ? ++a : --b; out[i] = k * 100 + a * 10 + b;", lambda i: 110 if N[i] > 2 else -101)
rule("choices_nest_to_the_right", "int", "out[i] = n[i] < 0 ? 1 : n[i] == 2 ? 2 : n[i] > 10 ? 3 : 4;", lambda i: 1 if N[i] < 0 else 2 if N[i] == 2 else 3 if N[i] > 10 else 4)
rule("choices_of_int_and_float_are_float", "float", "out[i] = (n[i] > 2 ? n[i] : x[i]) / 2;", lambda i: (N[i] if N[i] > 2 else X[i]) / 2)
rule("commas_in_loops", "int", "int s = 0, k; for (k = 0, s = n[i]; k < 3; ++k, s += 10) {} out[i] = s + k;", lambda i: N[i] + 33)
rule("bools_are_numbers", "int", "bool b = n[i] & 6; b ^= true; int k = b + true; k += !n[i] + !!n[i]; out[i] = k;", lambda i: int(not N[i] & 6) + 2)
rule("shorts_and_chars_are_computed_on_as_ints", "int", "short a = short(n[i] * 1000); char c = 100; ushort u = 65535; out[i] = a * c + u * 2 + (~c) + (-u);", lambda i: N[i] * 100000 + 131070 - 101 - 65535)
rule("narrow_results_of_compound_operators", "int", "short a = 32767; a += short(i); uchar b = 200; b <<= 1; b |= 1; char c = -128; c -= 1; out[i] = a + b * 100000 + c;", lambda i: (32767 + i + 32768) % 65536 - 32768 + 14500000 + 127)
rule("long_division_and_remainder", "int", "long a = long(n[i]) * 1000000007l; out[i] = int(a / -1000l) + int(a % 1000l);", lambda i: int(math.trunc(N[i] * 1000000007 / -1000)) + int(math.fmod(N[i] * 1000000007, 1000)))
rule("ulongs_compare_unsigned", "int", "ulong a = ulong(long(n[i])); out[i] = (a > 5ul) + 2 * (a / 2 > 5ul) + 4 * (long(a) > 5);", lambda i: (lambda a: (a > 5) + 2 * (a // 2 > 5) + 4 * (N[i] > 5))(N[i] % 2**64))
rule("ulongs_convert_to_float", "float", "out[i] = float(~0ul >> (i * 9)) / 1e19f;", lambda i: struct.unpack("<f", struct.pack("<f", float((2**64 - 1) >> (i * 9))))[0] / 1e19)
rule("floats_convert_to_ulong", "uint", "ulong a = ulong(x[i] * 1e10f); out[i] = uint(a >> 20);", lambda i: int(max(struct.unpack("<f", struct.pack("<f", X[i] * 1e10))[0], 0)) >> 20)
rule("comparisons_of_mixed_signs_under_conditions", "int", "int a = n[i]; uint b = 3; out[i] = (a < int(b)) + 2 * (uint(a) < b) + 4 * (char(a) < uchar(3));", lambda i: (N[i] < 3) + 2 * (u32(N[i]) < 3) + 4 * (N[i] < 3))
rule("not_below_and_not_above", "int", "float a = i & 1 ? NAN : x[i]; out[i] = !(a < 1.0f || a > 1.0f) + 2 * (a < 1.0f || a > 1.0f) + 4 * !(a >= 1.0f) + 8 * !(a <= 1.0f) + 16 * (a == 1.0f);",
     lambda i: 13 if i & 1 else (X[i] == 1) + 2 * (X[i] != 1) + 4 * (X[i] < 1) + 8 * (X[i] > 1) + 16 * (X[i] == 1))
rule("not_equal_is_not_the_opposite_of_ordered", "int", "float a = i & 1 ? NAN : x[i], b = i & 2 ? NAN : 0.5f; out[i] = isunordered(a, b) + 2 * (a != b) + 4 * !(a == b) + 8 * islessgreater_(a, b);",
     lambda i: 7 if i & 3 else 14 * (X[i] != 0.5), "bool islessgreater_(float a, float b) { return a < b || b < a; }")
rule("differences_that_wrap_as_uints", "uint", "uint a = local - 3u; int b = int(local) - 3; out[i] = uint(ulong(a) >> 8) + uint(ulong(uint(b)) >> 4) + uint(long(b) >> 40);",
     lambda i: u32((u32(i % 4 - 3) >> 8) + (u32(i % 4 - 3) >> 4) + u32((i % 4 - 3) >> 40)))
rule("bytes_that_are_put_together_in_another_order", "uint", "uint a = uint(n[i]) * 0x01234567u; out[i] = a >> 24 | (a >> 8 & 0xff00u) | (a << 8 & 0xff0000u) | a << 24;", lambda i: int.from_bytes(u32(N[i] * 0x01234567).to_bytes(4, "little"), "big"))

# Literals.
rule("literals_of_half", "float", "out[i] = float(.5h + 1.h + 1e-3h * 1000.0H + 0x1p2f) + i;", lambda i: 5.5 + (struct.unpack("<e", struct.pack("<e", struct.unpack("<e", struct.pack("<e", 1e-3))[0] * 1000))[0]) + i)
rule("literals_of_half_are_rounded_once", "float", "out[i] = float(2049.00001h) + float(2'050.999'99h) + i;", lambda i: 4100 + i)
rule("literals_of_bfloat_are_rounded_once", "float", "out[i] = float(257.000001bf) + float(258.999999BF) + i;", lambda i: 516 + i)
rule("literals_choose_the_first_type_that_has_them", "int", "out[i] = sizeof(2147483647) + 10 * sizeof(2147483648) + 100 * sizeof(4294967295u) + 1000 * sizeof('a') + int(i);", lambda i: 4 + 80 + 400 + 1000 + i)
rule("macros_of_literals_and_names", "int", "int value_3 = 5; out[i] = JOINED(value_, 3) + SUM(1, n[i], 4);", lambda i: 10 + N[i],
     "#define JOINED(a, b) a##b\n#define SUM(first, ...) (first + add_both(__VA_ARGS__))\nint add_both(int a, int b) { return a + b; }")
rule("lines_that_go_on", "int", "int k = ADDED( \\\n n[i], \\\n 3); out[i] = k;", lambda i: N[i] + 3, "#define ADDED(a, b) \\\n  ((a) + \\\n   (b))")

# Functions.
rule("static_and_inline_functions", "int", "out[i] = once(n[i]) + again(n[i]) + METAL_NAME(n[i]);", lambda i: 3 * N[i] + 6,
     "static int once(int v) { return v + 1; }\ninline int again(int v) { return v + 2; }\nMETAL_FUNC int third(int v) { return v + 3; }\n#define METAL_NAME third")
rule("functions_with_deduced_results", "float", "out[i] = halved(n[i]) + trailing(x[i]);", lambda i: N[i] / 2 + 2 * X[i], "auto halved(int v) { return v / 2.0f; }\nauto trailing(float v) -> float { return v * 2; }")
rule("overloads_by_promotion", "int", "char c = 1; short s = 2; out[i] = chosen(c) * 1000 + chosen(s) * 100 + chosen(x[i]) * 10 + chosen(i);", [1123] * 8,
     "int chosen(int) { return 1; } int chosen(float) { return 2; } int chosen(uint) { return 3; }")
rule("overloads_by_vectors", "int", "out[i] = wide_(float2(1)) * 10 + wide_(float3(1)) + 100 * wide_(half2(1));", [423] * 8, "int wide_(float2) { return 2; } int wide_(float3) { return 3; } int wide_(half2) { return 4; }")
rule("constants_that_recursion_computes", "int", "constexpr int k = fibonacci(10); out[i] = k + Factorial<5>::value + int(i);", lambda i: 55 + 120 + i,
     "constexpr int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }\ntemplate <int N> struct Factorial { enum { value = N * Factorial<N - 1>::value }; };\ntemplate <> struct Factorial<0> { enum { value = 1 }; };")
rule("loops_in_constant_functions", "int", "constexpr int k = triangle(7); out[i] = k + triangle(int(i));", lambda i: 28 + i * (i + 1) // 2, "constexpr int triangle(int n) { int s = 0; for (int k = 1; k <= n; ++k) s += k; return s; }")
rule("lambdas_with_parameters_of_any_type", "float", "auto twice = [](auto v) { return v + v; }; auto made = [&]() -> float2 { return float2(x[i], 1); }; out[i] = twice(n[i]) + twice(x[i]) + made().y;", lambda i: 2 * N[i] + 2 * X[i] + 1)
rule("lambdas_that_change_what_they_hold", "int", "int k = n[i]; auto count = [k]() mutable { return ++k; }; int a = count(); int b = count(); out[i] = a + b * 100 + k;", lambda i: N[i] + 1 + (N[i] + 2) * 100 + N[i])
rule("lambdas_are_called_where_they_stand", "int", "const int k = [&] { if (n[i] > 3) return 1; return -n[i]; }(); out[i] = k;", lambda i: 1 if N[i] > 3 else -N[i])
rule("functions_take_functions_of_templates", "int", "out[i] = folded(n, 3, [](int a, int b) { return a * 2 + b; });", lambda i: (N[0] * 2 + N[1]) * 2 + N[2], "template <class F> int folded(device const int* p, int count, F f) { int s = p[0]; for (int k = 1; k < count; ++k) s = f(s, p[k]); return s; }")
rule("arguments_are_evaluated_once", "int", "int k = n[i]; int a = max(k++, 0); int b = clamp(++k, -2, 5); out[i] = a + b * 100 + k;", lambda i: max(N[i], 0) + min(max(N[i] + 2, -2), 5) * 100 + N[i] + 2)

# Templates.
rule("partial_specialisations", "int", "out[i] = Rank<float>::value + 10 * Rank<vec<float, 3>>::value + 100 * Rank<device float*>::value;", [231] * 8,
     "template <class T> struct Rank { static constexpr constant int value = 1; };\ntemplate <class T, int K> struct Rank<vec<T, K>> { static constexpr constant int value = K; };\ntemplate <class T> struct Rank<device T*> { static constexpr constant int value = 2; };")
rule("default_arguments_of_templates", "int", "Sized<> a; Sized<short, 3> b; out[i] = sizeof(a) * 10 + sizeof(b);", [86] * 8, "template <class T = int, int K = 2> struct Sized { T v[K]; };")
rule("aliases_of_templates", "float", "Pair_<float> p = {x[i], 2}; out[i] = p.x * 10 + p.y;", lambda i: X[i] * 10 + 2, "template <class T> using Pair_ = vec<T, 2>;")
rule("counts_of_parameters", "int", "out[i] = count_of(1, 2.0f, n[i]) * 10 + last_of(1, 2, n[i]);", lambda i: 30 + N[i], "template <class... A> constexpr int count_of(A...) { return sizeof...(A); }\ntemplate <class T> T last_of(T v) { return v; }\ntemplate <class T, class... A> auto last_of(T, A... rest) { return last_of(rest...); }")
rule("values_of_any_type_are_parameters", "int", "out[i] = Held<3>().get() + Held<Way::down>().get() * 10 + Held<true>().get() * 100;", [123] * 8, "enum class Way : int { up = 1, down = 2 };\ntemplate <auto V> struct Held { int get() const { return int(V); } };")
rule("members_that_are_templates", "int", "Maker m{n[i]}; out[i] = m.scaled<3>() + m.template as<int>(2.9f);", lambda i: 3 * N[i] + 2, "struct Maker { int v; template <int K> int scaled() const { return v * K; } template <class T> T as(float f) const { return T(f); } };")
rule("bases_that_know_what_they_are_derived_as", "int", "Square s{{}, n[i]}; out[i] = s.twice();", lambda i: 2 * N[i] * N[i], "template <class D> struct Area { int twice() { return 2 * static_cast<thread D*>(this)->area(); } };\nstruct Square : Area<Square> { int side; int area() { return side * side; } };")

# Structures.
rule("operators_that_are_members", "int", "Vec2 a{n[i], 2}, b{3, 4}; a += b; Vec2 c = -a; out[i] = c[0] + 10 * c[1] + (a == b) + c(2);", lambda i: -3 * (N[i] + 3) - 60,
     "struct Vec2 { int a, b; thread Vec2& operator+=(Vec2 o) { a += o.a; b += o.b; return *this; } Vec2 operator-() const { return {-a, -b}; } int operator[](int k) const { return k ? b : a; } bool operator==(Vec2 o) const { return a == o.a && b == o.b; } int operator()(int k) const { return a * k; } };")
rule("increments_that_are_members", "int", "Step s{n[i]}; Step a = s++; Step b = ++s; out[i] = a.v * 10000 + b.v * 100 + s.v;", lambda i: N[i] * 10000 + (N[i] + 2) * 101, "struct Step { int v; thread Step& operator++() { ++v; return *this; } Step operator++(int) { Step old = *this; ++v; return old; } };")
rule("constructors_that_call_each_other", "int", "Delegated d(n[i]); out[i] = d.a * 10 + d.b;", lambda i: N[i] * 10 + 7, "struct Delegated { int a, b; Delegated(int v, int w) : a(v), b(w) {} Delegated(int v) : Delegated(v, 7) {} };")
rule("destructors_run", "int", "int k = n[i]; { Guard g(k); k += 1; } out[i] = k;", lambda i: (N[i] + 1) * 10, "struct Guard { thread int& at; Guard(thread int& v) : at(v) {} ~Guard() { at *= 10; } };")
rule("members_without_a_name", "int", "Nameless p; p.a = n[i]; p.u = 0x3F800000u; out[i] = p.a + int(p.f) * 100;", lambda i: N[i] + 100, "struct Nameless { struct { int a, b; }; union { uint u; float f; }; };")
rule("several_bases", "int", "Both p; p.a = n[i]; p.b = 3; out[i] = p.left() + p.right() * 100 + p.all();", lambda i: N[i] + 300 + N[i] + 3,
     "struct Left { int a; int left() const { return a; } }; struct Right { int b; int right() const { return b; } }; struct Both : Left, Right { int all() const { return a + b; } };")
rule("structures_of_functions", "int", "struct Local { int v; int twice() const { return 2 * v; } }; enum { four = 4 }; using Own = Local; Own p{n[i]}; out[i] = p.twice() + four;", lambda i: 2 * N[i] + 4)
rule("constants_of_classes", "int", "out[i] = Sizes::rows * 10 + Sizes::Inner::columns + Sizes::names[1];", [41] * 8, "struct Sizes { static constant constexpr int rows = 3; struct Inner { enum : int { columns = 5 }; }; static constant constexpr int names[2] = {4, 6}; };")
rule("enumerations_are_numbers_and_back", "int", "Shade s = Shade(n[i] & 1); Flags f = Flags(Flags::read | Flags::write); out[i] = (s == dark ? 10 : 20) + int(f) + light;", lambda i: 13 if N[i] & 1 else 23,
     "enum Shade { light, dark }; struct Flags { enum Kind { read = 1, write = 2 }; int v; Flags(int k) : v(k) {} operator int() const { return v; } };")
rule("switches_over_enumerations", "int", "switch (Signal(i % 3)) { case Signal::red: out[i] = 1; break; case Signal::green: { int k = n[i]; out[i] = k; break; } case Signal::blue: [[fallthrough]]; default: out[i] = 3; }",
     lambda i: [1, N[i], 3][i % 3], "enum class Signal : uchar { red, green, blue };")
rule("switches_over_negative_and_wide_values", "int", "switch (long(n[i]) << 33) { case -8589934592l * 4: out[i] = 1; break; case 2l << 33: out[i] = 2; break; default: out[i] = 3; }", lambda i: 1 if N[i] == -4 else 2 if N[i] == 2 else 3)
rule("switches_in_switches", "int", "int s = 0; switch (i & 1) { case 0: switch (i & 6) { case 0: s = 1; break; case 4: s = 2; default: s += 10; } s += 100; break; case 1: s = 5; } out[i] = s;", lambda i: 5 if i & 1 else {0: 101, 4: 112}.get(i & 6, 110))

# Memory.
rule("pointers_step_before_and_after", "int", "int a[4] = {1, 2, 3, 4}; thread int* p = a; *p++ = n[i]; *++p = 7; int k = *p--; out[i] = a[0] + a[1] * 10 + a[2] * 100 + k + *p;", lambda i: N[i] + 20 + 700 + 7 + 2)
rule("subscripts_may_be_negative", "int", "device const int* p = n + 4; out[i] = p[int(i) - 4] + (&p[1])[-1];", lambda i: N[i] + N[4])
rule("pointers_to_members", "int", "Ends e{1, n[i]}; thread int* p = &e.b; *p += 1; thread Ends* q = &e; q->a = 4; (*q).b += 1; out[i] = e.a * 100 + e.b;", lambda i: 400 + N[i] + 2, "struct Ends { int a, b; };")
rule("references_to_arrays_of_buffers", "int", "device const int (&four)[4] = *reinterpret_cast<device const int (*)[4]>(n + 2); out[i] = four[i & 3] + sizeof(four);", lambda i: N[2 + (i & 3)] + 16)
rule("arrays_of_structures_of_a_thread", "int", "Cell2 c[3] = {{1, {2, 3}}, {4, {5, n[i]}}}; c[2] = c[1]; c[2].v[0] = 9; out[i] = c[(i & 1) + 1].v[1] + c[1].v[0] * 100 + c[2].k * 1000;", lambda i: N[i] + 500 + 4000, "struct Cell2 { int k; int v[2]; };")
rule("structures_of_vectors_in_arrays", "float", "Ray2 r[2]; r[0].at = float3(x[i], 1, 2); r[0].to = r[0].at; r[1] = r[0]; r[1].at.yz = r[0].at.zy; out[i] = r[i & 1].at.x + 10 * r[1].at.y + 100 * r[i & 1].at.z;", lambda i: X[i] + 20 + 100 * (1 if i & 1 else 2), "struct Ray2 { float3 at; float3 to; };")
rule("elements_of_arrays_of_vectors", "float", "float4 a[2] = {float4(1, 2, 3, 4), float4(x[i])}; a[i & 1].zx = float2(7, 8); a[1][2] += 1; out[i] = a[0].x + 10 * a[0].z + a[1].x + 10 * a[1].z;",
     lambda i: (1 + 30 + 8 + 80) if i & 1 else 8 + 70 + X[i] + 10 * (X[i] + 1))
rule("three_halves_take_eight_bytes", "uint", "device half3* p = (device half3*)out; if (i < 4) { p[i] = half3(half(i), 1, 2); } ", lambda i: half_bits(2) if i % 2 else half_bits(i // 2) | half_bits(1) << 16)
rule("shorts_of_buffers", "int", "device short* p = (device short*)out; p[2 * i] = short(n[i]); p[2 * i + 1] = -1; p[2 * i] += 1;", lambda i: ((N[i] + 1) & 0xFFFF) - 0x10000)
rule("chars_of_three_take_four_bytes", "int", "device char4* p = (device char4*)out; p[i] = char4(char3(char(n[i]), 2, 3), 4); p[i].y = -1;", lambda i: (N[i] & 255) | 255 << 8 | 3 << 16 | 4 << 24)
rule("bit_fields_in_buffers", "int", "device Fields2* p = (device Fields2*)(out + i); p->low = n[i]; p->high = i;", lambda i: (N[i] & 4095) | i << 12, "struct Fields2 { uint low : 12; uint high : 20; };")
rule("volatile_variables_are_read_each_time", "int", "threadgroup volatile int t[4]; t[local] = n[i]; int a = t[local]; t[local] = a + 1; out[i] = t[local] * 100 + a;", lambda i: (N[i] + 1) * 100 + N[i])
rule("constants_of_two_dimensions_by_pointer", "int", "constant int* p = kTwoRows[i & 1]; out[i] = p[2] + sum_of_row(kTwoRows[1]);", lambda i: [3, 6][i & 1] + 15, "constant int kTwoRows[2][3] = {{1, 2, 3}, {4, 5, 6}}; int sum_of_row(constant int (&row)[3]) { return row[0] + row[1] + row[2]; }")
rule("arrays_of_the_library_are_constants", "int", "out[i] = kLibrary[i % 3] + int(kLibrary.size());", lambda i: [4, 5, 6][i % 3] + 3, "constant array<int, 3> kLibrary = {4, 5, 6};")
rule("constants_of_structures_of_vectors", "float", "out[i] = kLamps[i & 1].colour.y + kLamps[1].scale;", lambda i: (6 if i & 1 else 2) + 8, "struct Lamp { float3 colour; float scale; }; constant Lamp kLamps[] = {{float3(1, 2, 3), 4}, {float3(5, 6, 7), 8}};")
rule("swapped_by_a_function", "int", "int a = n[i], b = 3; exchanged(a, b); out[i] = a * 100 + b;", lambda i: 300 + N[i], "template <class T> void exchanged(thread T& a, thread T& b) { T t = a; a = b; b = t; }")

# Vectors and matrices.
rule("const_vectors_have_swizzles", "float", "const float4 v = float4(1, 2, 3, x[i]); const float2 w = v.wz; out[i] = w.x + 10 * w.y + v.rgb.b;", lambda i: X[i] + 33)
rule("swizzles_of_elements_of_buffers", "float", "device const float4* p = (device const float4*)x; out[i] = dot(p[i & 1].wzyx, float4(1, 10, 100, 1000));", lambda i: (lambda v: v[3] + 10 * v[2] + 100 * v[1] + 1000 * v[0])(X[4:] if i & 1 else X[:4]))
rule("columns_have_swizzles", "float", "float3x3 m = float3x3(1.0f); m[1].xz = float2(x[i], 4); m[2] *= 3; m[0].y += m[1].zx.y; out[i] = m[1][0] + 10 * m[1][2] + 100 * m[2][2] + m[0][1];", lambda i: 2 * X[i] + 340)
rule("matrices_from_columns_of_matrices", "float", "float2x2 a = float2x2(1, 2, 3, x[i]); float2x2 b = float2x2(a[1], a[0]); out[i] = b[0][1] + 10 * b[1][0] + (a * b)[0][0];", lambda i: X[i] + 10 + 3 + 3 * X[i])
rule("any_and_all_of_comparisons", "int", "float3 v = float3(x[i], 0, 1); out[i] = any(v > 1.0f) + 2 * all(v >= 0) + 4 * any(isnan(v / v)) + 8 * all(isfinite(v));", lambda i: (X[i] > 1) + 2 * (X[i] >= 0) + 4 + 8)
rule("select_of_halves_and_bools", "float", "half2 h = select(half2(1), half2(half(x[i])), bool2(true, i > 3)); out[i] = h.x + 10 * h.y + select(1, 2, i & 1 ? true : false);", lambda i: X[i] + 10 * (X[i] if i > 3 else 1) + (2 if i & 1 else 1))
rule("vectors_of_vectors_of_other_types", "float", "float3 v = float3(int3(n[i], 2, 3)) + float3(half3(0.5h)) + float3(uchar3(1)); out[i] = v.x + 10 * v.y;", lambda i: N[i] + 1.5 + 35)
rule("bits_of_pairs", "uint", "ulong a = as_type<ulong>(uint2(i, 7)); uint2 b = as_type<uint2>(a << 1); short2 c = as_type<short2>(n[i]); out[i] = b.x + 100 * b.y + uint(c.x) + uint(c.y);", lambda i: u32(2 * i + 1400 + N[i] + (-1 if N[i] < 0 else 0)))
rule("bits_of_four_floats", "uint", "uint4 b = as_type<uint4>(float4(x[i], 1, 2, 3)); float4 f = as_type<float4>(b.yxwz); out[i] = b.x ^ as_type<uint>(f.y) ^ as_type<uint>(f.x);", lambda i: bits(1.0))
rule("halves_in_a_word", "uint", "half2 h = as_type<half2>(0x3C004000u); out[i] = as_type<uint>(half2(h.y, h.x) * half(2)) + uint(as_type<ushort>(half(x[i])));", lambda i: (half_bits(4.0) << 16 | half_bits(2.0)) + half_bits(X[i]))

# What functions give at the ends of their domains.
rule("clamp_takes_nan_for_the_least", "float", "float a = i & 1 ? NAN : x[i]; out[i] = clamp(a, -0.25f, 1.0f) + saturate(a);", lambda i: -0.25 if i & 1 else min(max(X[i], -0.25), 1) + min(max(X[i], 0), 1))
rule("extrema_ignore_nan", "float", "float a = i & 1 ? NAN : x[i]; out[i] = max(a, 0.5f) + 10 * min(0.5f, a) + 100 * fmax(a, -9.0f);", lambda i: 0.5 + 5 - 900 if i & 1 else max(X[i], 0.5) + 10 * min(X[i], 0.5) + 100 * X[i])
rule("saturated_infinities", "float", "float a = i & 1 ? INFINITY : -INFINITY; out[i] = saturate(a) + 10 * clamp(a, -1.0f, 2.0f);", lambda i: 21 if i & 1 else -10)
rule("sign_of_zero_and_nan", "float", "out[i] = sign(i & 1 ? NAN : -0.0f) + (1 / sign(-0.0f) < 0 ? 10 : 20);", [10] * 8)
rule("powers_of_negative_numbers", "float", "out[i] = pow(-2.0f, float(n[i])) + pow(x[i], 0.0f);", lambda i: (-2.0) ** N[i] + 1)
rule("roots_and_logarithms_of_negative_numbers", "int", "float a = -1 - x[i] * x[i]; out[i] = isnan(sqrt(a)) + 2 * isnan(log(a)) + 4 * isinf(log(a * 0)) + 8 * isinf(rsqrt(0.0f * a)) + 16 * isnan(acos(a - 1));", [31] * 8)
rule("exponentials_at_the_ends", "int", "float a = 200.0f + i; out[i] = isinf(exp(a)) + 2 * (exp(-a) == 0) + 4 * isinf(exp2(a)) + 8 * (exp2(-149.0f) == 0x1p-149f) + 16 * isinf(exp10(a));", [31] * 8)
rule("tanh_at_the_ends", "float", "out[i] = tanh(100.0f + i) - tanh(-100.0f) + tanh(0.0f);", [2] * 8)
rule("halves_at_the_ends", "int", "half a = 65504.0h, b = 0x1p-14h_; out[i] = isinf(a + 32.0h) + 2 * isinf(a * 2.0h) + 4 * (b / 1024.0h > 0.0h) + 8 * (b / 4096.0h == 0.0h) + int(i & 0);".replace("0x1p-14h_", "half(0x1p-14f)"), [15] * 8)
rule("functions_of_half_vectors", "float", "half4 v = exp2(half4(half(i), 1, 2, 3)); half4 w = sqrt(v * v) + rsqrt(half4(4)) + floor(half4(1.5h)) + abs(-v) + fma(v, v, -v * v); out[i] = w.x + 10 * w.y;", lambda i: 2 * 2**i + 1.5 + 10 * 5.5)
rule("half_geometry", "float", "half3 a = half3(3, 4, half(i)), b = half3(1, 0, 0); out[i] = length(a.xy) + dot(a, b) + cross(a, b).y + distance(a.xy, half2(0)) + normalize(half2(0, 5)).y;", lambda i: 5 + 3 + i + 5 + 1)
rule("rounding_of_large_numbers", "float", "float a = 16777217.0f + i * 2; out[i] = (round(a) - a) + (rint(-a) + a) + (trunc(a + 0.25f) - a) + fract(a);", [0] * 8)
rule("rounding_keeps_the_sign_of_zero", "int", "float a = -0.25f * (i + 1) / 8; out[i] = signbit(ceil(a)) + 2 * signbit(round(a * 0.5f)) + 4 * signbit(trunc(a)) + 8 * signbit(rint(a));", [15] * 8)
rule("remainders_of_floats", "float", "float a = i & 1 ? -5.5f : 5.5f; out[i] = fmod(a, x[i] + 3) + fmod(a, INFINITY) * 10;", lambda i: math.fmod(-5.5 if i & 1 else 5.5, X[i] + 3) + (-55 if i & 1 else 55))
rule("abs_of_narrow_integers", "int", "out[i] = abs(short(n[i] * 1000)) + abs(char(-100)) + int(abs(long(n[i]) << 32) >> 32) + int(abs(i));", lambda i: abs(N[i] * 1000) + 100 + abs(N[i]) + i)
rule("extrema_of_narrow_and_wide_integers", "int", "out[i] = max(uchar(200), uchar(i)) + min(short(n[i]), short(3)) + int(max(long(n[i]) << 40, 0l) >> 40) + int(clamp(ulong(i), 2ul, 5ul));", lambda i: 200 + min(N[i], 3) + max(N[i], 0) + min(max(i, 2), 5))
rule("bits_of_ulongs", "int", "ulong a = ulong(i) << 33 | 5ul; out[i] = int(popcount(a) + clz(a) * 10 + ctz(a << 7) * 1000);", lambda i: (lambda a: bin(a).count("1") + (64 - a.bit_length()) * 10 + 7000)(i << 33 | 5))
rule("numbers_of_pointers_that_are_null", "int", "device const float* p = nullptr; for (uint k = 0; k < i; ++k) if (n[k] > 2) p = x + k; ulong v = reinterpret_cast<ulong>(p); out[i] = ((int(v >> 43) ^ n[0]) == -4) + 10 * int(p ? *p * 2 : 0);",
     lambda i: 10 * int(X[i - 1] * 2) if i > 3 else 1)
rule("numbers_of_pointers_are_compared", "int", "device const int* p = n + i; ulong v = reinterpret_cast<ulong>(p); out[i] = (v > 4096) + 2 * (v < 16) + 4 * ((v & 15) == 0) + 8 * (v >> 60 == 0) + 16 * (reinterpret_cast<ulong>(p + 1) - v == 4);",
     lambda i: 1 + 4 * (i % 4 == 0) + 8 + 16)
rule("vectors_in_memory_of_bytes", "uint", "device uchar* p = (device uchar*)out; *reinterpret_cast<device uint2*>(p + (i & 6) * 4) = uint2(0x01020304u, i); if (i & 1) p[4 * i + 1] = uchar(n[i]);".replace("*reinterpret_cast", "if (i & 1) *reinterpret_cast"),
     lambda i: (i & 0xFF) | (N[i] & 255) << 8 if i & 1 else 0x01020304)
rule("products_of_differences_that_wrap", "uint", "int b = int(local) - 3; ulong wide = ulong(uint(b)) * 5ul; out[i] = uint(wide >> 7) + uint(x[0] < 0 ? (long(b) * 5) >> 3 : 0);", lambda i: u32((u32(i % 4 - 3) * 5 >> 7) + ((i % 4 - 3) * 5 >> 3)))
rule("bytes_are_swapped", "uint", "out[i] = __builtin_bswap32(uint(n[i]) * 0x01234567u) + uint(__builtin_bswap64(ulong(n[i])) >> 32) + __builtin_bswap16(ushort(n[i]));",
     lambda i: u32(sum(int.from_bytes((v % 2**(8 * w)).to_bytes(w, "little"), "big") >> s for v, w, s in ((N[i] * 0x01234567, 4, 0), (N[i], 8, 32), (N[i], 2, 0)))))
rule("loops_that_run_once_past_their_end", "int", "uint k = i, end = uint(n[2] + 2); int s = 0; if (k != end) do { s += int(k) * 2 - n[k & 7]; ++k; } while (k < end); out[i] = s;",
     lambda i: sum(2 * k - N[k & 7] for k in (range(i, 4) if i <= 4 else [i])))
rule("counters_from_half_of_their_range_on", "uint", "uint end = 0x80000000u + uint(n[2]), s = 0; for (uint k = 0x7FFFFFFEu; k < end; ++k) s += uint(ulong(long(int(k)) * 3l) >> 33) + n[k & 7]; out[i] = s + i;",
     lambda i: u32(i + sum((((k + 2**31) % 2**32 - 2**31) * 3 % 2**64 >> 33) + N[k & 7] for k in range(0x7FFFFFFE, 0x80000002))))
rule("vectors_of_bfloat_that_are_constants", "float",
     "bfloat4 v = bfloat4(bfloat(1.5f)), w = bfloat4(1.0bf, 2.0bf, 3.0bf, 4.0bf); v.x = bfloat(x[i]); bfloat2 u = 3.0bf; out[i] = float(v.x) + 10 * float(v.w) + 100 * float(w.z) + float(u[i & 1]) + float(kBrainy[i & 1].y);",
     lambda i: X[i] + 318 + (6 if i & 1 else 4), "constant bfloat2 kBrainy[2] = {bfloat2(1.0bf, 4.0bf), bfloat2(5.0bf, 6.0bf)};")

# Places of vectors.
rule("swizzles_of_pointers_to_memory_of_a_thread", "int", "int4 v(n[i], 2, 3, 4); thread int4* p = &v; p->xy = p->wz; p->zw += int2(10, 20); out[i] = v.x * 1000 + v.y * 100 + v.z + v.w + p->yx.x;",
     [4000 + 300 + 13 + 24 + 3] * 8)
rule("parts_of_swizzles_are_read", "int", "int4 v(n[i], 2, 3, 4); out[i] = v.wzyx.xy.y * 100 + v.yx[1] + v.zw[i & 1] * 1000 + v.wzyx[3];", lambda i: 300 + 2 * N[i] + (3 + (i & 1)) * 1000)
rule("elements_of_vectors_that_are_no_places", "int", "out[i] = int3(n[i], 2, 3)[i % 3] + (int2(1, n[i]) * 2)[1];", lambda i: (N[i], 2, 3)[i % 3] + 2 * N[i])
rule("subscripts_in_code_that_constants_rule_out", "int", "out[i] = nth<2>(int2(n[i], 5)) + nth<1>(int2(n[i], 5));", lambda i: 5 - 1,
     "template <int N> int nth(int2 v) { if (N < 2) return v[N]; return -1; }")
