"""Rules of programs: memory, address spaces, structures, templates, constants and control flow; for the table of rules.py."""
from rules import N, X, rule

S4 = {i: i // 4 * 4 for i in range(8)}

# Layout of structures and arrays in memory is that of C++.
rule("structures_are_padded", "int", "out[i] = sizeof(Mixed) + 100 * alignof(Mixed) + 10000 * __builtin_offsetof(Mixed, c);", [80412] * 8, "struct Mixed { char a; float b; half c; };")
rule("vectors_align_structures", "int", "out[i] = sizeof(WithVector) + 100 * alignof(WithVector);", [1632] * 8, "struct WithVector { float a; float3 v; };")
rule("packed_vectors_do_not_align_structures", "int", "out[i] = sizeof(WithPacked) + 100 * alignof(WithPacked);", [416] * 8, "struct WithPacked { float a; packed_float3 v; };")
rule("structures_in_buffers", "int", "device const Pairs* p = (device const Pairs*)n; out[i] = p[i / 2].b * 100 + p[i / 2].a;", lambda i: N[i // 2 * 2 + 1] * 100 + N[i // 2 * 2], "struct Pairs { int a, b; };")
rule("structures_are_loaded_whole", "int", "Whole p = ((device const Whole*)n)[i / 4]; out[i] = p.v[i & 3] + p.v[0];", lambda i: N[i] + N[S4[i]], "struct Whole { int v[4]; };")
rule("structures_are_stored_whole", "int", "if (i < 4) { Stored s; s.a = n[i]; s.b = int(i); ((device Stored*)out)[i] = s; }", [N[0], 0, N[1], 1, N[2], 2, N[3], 3], "struct Stored { int a, b; };")
rule("mixed_widths_in_a_structure", "float", "Wide w = *(device const Wide*)(x + 2); out[i] = w.f + w.v.y + i;", lambda i: X[2] + X[7] + i, "struct Wide { float f; float pad[3]; float2 v; };")
rule("nested_structures_and_arrays", "int", "Outer o; o.in[1].v[2] = n[i]; o.in[0] = o.in[1]; out[i] = o.in[0].v[2];", lambda i: N[i], "struct Inner { int v[3]; }; struct Outer { Inner in[2]; };")
rule("swizzles_of_members", "float", "Holder h; h.v = float4(1, 2, 3, 4); h.v.xz = float2(x[i], 7); out[i] = h.v.x + h.v.z;", lambda i: X[i] + 7, "struct Holder { float4 v; };")
rule("unions_share_memory", "uint", "Either e; e.f = x[i]; out[i] = e.u;", lambda i: __import__("library_rules").bits(X[i]), "union Either { float f; uint u; };")
rule("bit_fields", "int", "Fields f; f.a = n[i]; f.b = i; out[i] = f.a * 10 + f.b;", lambda i: ((N[i] & 15) ^ 8) * 10 - 80 + (i & 7), "struct Fields { int a : 4; uint b : 3; };")
rule("members_have_initialisers", "int", "Defaults d; d.b += n[i]; out[i] = d.a * 100 + d.b;", lambda i: 702 + N[i], "struct Defaults { int a = 7; int b = 2; };")
rule("constructors_run", "int", "Made m(n[i]); out[i] = m.v + m.w;", lambda i: 2 * N[i] + 3, "struct Made { int v, w; Made(int a) : v(a), w(a + 3) {} };")
rule("static_members", "int", "out[i] = Statics::k + Statics::twice(n[i]);", lambda i: 5 + 2 * N[i], "struct Statics { static constant constexpr int k = 5; static int twice(int v) { return 2 * v; } };")
rule("references_to_members", "int", "Refs r{n[i], 0}; thread int& b = r.b; b = 4; out[i] = r.a * 10 + r.b;", lambda i: N[i] * 10 + 4, "struct Refs { int a, b; };")
rule("members_of_one_name_in_two_classes", "int", "device const Twos* p = (device const Twos*)n; Twos t = p[i]; out[i] = p[i].get() + 100 * t.get();", lambda i: 202 * N[i],
     "struct Ones { int v; int get() const device { return v; } int get() const thread { return v; } };\nstruct Twos : Ones { int get() const device { return 2 * v; } int get() const thread { return 2 * v; } };")
rule("swizzles_in_templates", "float", "out[i] = crossed<float>(float4(x[i], 1, 2, 3), float2(5, x[i]));", lambda i: X[i] ** 2 + 2 + 5 + 3,
     "template <typename T> T crossed(vec<T, 4> a, vec<T, 2> b) { vec<T, 2> r = a.xy * b.yx + a.zw; return r.x + r.y; }")
rule("constructors_of_threadgroup_memory_may_do_nothing", "int", "threadgroup Bare t; if (local == 0) t.a = n[i]; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = t.a;", lambda i: N[S4[i]],
     "struct Bare { int a; Bare() {} };")
rule("references_to_elements_of_buffers", "int", "device int& r = out[i]; r = n[i]; r += 2; r++;", lambda i: N[i] + 3)
rule("half_buffers", "float", "device const half* h = (device const half*)x; out[i] = as_type<ushort>(h[2 * i + 1]);", lambda i: __import__("library_rules").bits(X[i]) >> 16)
rule("uchar_stores_keep_their_neighbours", "int", "((device uchar*)out)[4 * i + 1] = uchar(i + 1);", lambda i: (i + 1) << 8)
rule("packed_vectors_in_buffers", "float", "device const packed_float3* p = (device const packed_float3*)x; float3 v = p[i & 1]; out[i] = v.x + v.y + v.z;", lambda i: sum(X[3:6]) if i & 1 else sum(X[:3]))
rule("packed_vectors_are_stored", "float", "if (i < 2) ((device packed_float3*)out)[i] = packed_float3(x[i], 1, 2);", [X[0], 1, 2, X[1], 1, 2, 0, 0])
rule("components_of_vectors_in_buffers", "float", "if (i < 2) { ((device float4*)out)[i].yw = float2(x[i], 5); ((device float4*)out)[i].x = 1; }", [1, X[0], 0, 5, 1, X[1], 0, 5])
rule("assigned_components_leave_the_others", "float", "if (i < 4) { if (i & 1) ((device float4*)out)[i / 2].xy = float2(x[i], 1); else ((device float4*)out)[i / 2].wz = float2(x[i], 2); }",
     [X[1], 1, 2, X[0], X[3], 1, 2, X[2]])
rule("matrices_of_numbers_in_arrays", "float", "float2x2 m[2] = {float2x2(1, 2, 3, x[i]), float2x2(5, 6, x[i], 8)}; out[i] = m[n[i] & 1][1][0] + m[i & 1][0][1];",
     lambda i: (X[i] if N[i] & 1 else 3) + (6 if i & 1 else 2))
rule("arrays_in_loops_over_ranges", "int", "array<int, 3> a = {1, 2, n[i]}; for (thread int& v : a) v += 1; int s = 0; for (int v : a) s = s * 10 + v; out[i] = s + int(a.size()) + *(a.begin() + 2);",
     lambda i: 230 + (N[i] + 1) + 3 + (N[i] + 1))
rule("long_elements_of_buffers", "int", "device const long* p = (device const long*)n; out[i] = int(p[i / 2] >> 32);", lambda i: N[i // 2 * 2 + 1])
rule("bool_elements_of_memory", "int", "threadgroup bool t[4]; t[local] = n[i] > 0; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = t[0] + t[1] + t[2] + t[3];", lambda i: sum(v > 0 for v in N[S4[i]:S4[i] + 4]))

# Address spaces: overloads tell them apart, templates take any.
rule("overloads_by_address_space", "int", "threadgroup float t; float a; out[i] = where(x) + 10 * where(&t) + 100 * where(&a) + 1000 * where(&kSpot);", [4321] * 8,
     "constant float kSpot = 1; int where(device const float*) { return 1; } int where(threadgroup float*) { return 2; } int where(thread float*) { return 3; } int where(constant float*) { return 4; }")
rule("templates_over_address_spaces", "float", "float a[2] = {x[i], 1}; out[i] = first_two(x) + first_two((thread const float*)a);", lambda i: X[0] + X[1] + X[i] + 1,
     "template <typename P> float first_two(P p) { return p[0] + p[1]; }")
rule("references_to_threadgroup_memory", "int", "threadgroup int t[4]; put(t[local], n[i]); threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = t[(local + 1) % 4];",
     lambda i: N[S4[i] + (i + 1) % 4], "void put(threadgroup int& where, int v) { where = v; }")
rule("threadgroup_pointers_are_arguments", "int", "threadgroup int t[4]; t[local] = n[i]; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = total_of(t, 4);", lambda i: sum(N[S4[i]:S4[i] + 4]),
     "int total_of(threadgroup const int* p, int count) { int s = 0; for (int k = 0; k < count; ++k) s += p[k]; return s; }")
rule("structures_in_threadgroup_memory", "int", "threadgroup Cell t[4]; t[local].a = n[i]; t[local].b = int(i); threadgroup_barrier(mem_flags::mem_threadgroup); Cell c = t[3 - local]; out[i] = c.a * 100 + c.b;",
     lambda i: N[S4[i] + 3 - i % 4] * 100 + S4[i] + 3 - i % 4, "struct Cell { int a; int b; };")
rule("vectors_in_threadgroup_memory", "float", "threadgroup float4 t[4]; t[local] = float4(x[i], 1, 2, 3); t[local].yz = float2(5, x[i]); threadgroup_barrier(mem_flags::mem_threadgroup); float4 v = t[3 - local]; out[i] = v.x + 10 * v.y + v.z;",
     lambda i: 2 * X[S4[i] + 3 - i % 4] + 50)
rule("threadgroup_arrays_of_two_dimensions", "int", "threadgroup int t[2][3]; if (local < 2) for (int k = 0; k < 3; ++k) t[local][k] = int(local) * 10 + k; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = t[local & 1][local % 3];",
     lambda i: (i & 1) * 10 + i % 4 % 3)
rule("threadgroup_memory_read_as_another_type", "uint", "threadgroup float t[4]; t[local] = x[i]; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = ((threadgroup uint*)t)[3 - local];",
     lambda i: __import__("library_rules").bits(X[S4[i] + 3 - i % 4]))
rule("arrays_are_passed_by_reference", "int", "int a[3] = {1, 2, n[i]}; double_all(a); out[i] = a[0] + a[1] + a[2];", lambda i: 6 + 2 * N[i], "void double_all(thread int (&a)[3]) { for (int k = 0; k < 3; ++k) a[k] *= 2; }")
rule("pointers_to_locals", "int", "int k = n[i]; thread int* p = &k; *p += 5; out[i] = k;", lambda i: N[i] + 5)
rule("pointers_into_local_arrays", "int", "int a[4] = {1, 2, 3, 4}; thread int* p = a + 1; p[1] = n[i]; ++p; out[i] = *p + a[3];", lambda i: N[i] + 4)
rule("pointer_comparison", "int", "device const float *p = x + i, *end = x + 4; int k = 0; while (p < end) { ++p; ++k; } out[i] = k;", lambda i: max(4 - i, 0))
rule("null_pointers", "int", "device const float* p = i & 1 ? x : nullptr; out[i] = p ? 1 : 0;", lambda i: i & 1)
rule("pointers_advance_through_a_loop", "float", "device const float* p = x; float s = 0; for (uint k = 0; k < i; ++k) s += *p++; out[i] = s;", lambda i: sum(X[:i]))

# Constants of the program.
rule("tables_of_vectors", "float", "out[i] = kDirections[i & 1].y + x[i];", lambda i: (4 if i & 1 else 2) + X[i], "constant float2 kDirections[2] = {float2(1, 2), float2(3, 4)};")
rule("tables_of_two_dimensions", "int", "out[i] = kGrid[i & 1][i % 3];", lambda i: [[1, 2, 3], [4, 5, 6]][i & 1][i % 3], "constant int kGrid[2][3] = {{1, 2, 3}, {4, 5, 6}};")
rule("tables_of_structures", "int", "out[i] = kRows[i & 1].b + kRows[1].a;", lambda i: (4 if i & 1 else 2) + 3, "struct Row { int a, b; }; constant Row kRows[2] = {{1, 2}, {3, 4}};")
rule("vectors_made_of_parts_are_constants", "float", "out[i] = kJoined.z + kJoined.x + x[i];", lambda i: 4 + X[i], "constant float4 kJoined = float4(float2(1, 2), 3, 4);")
rule("matrices_are_constants", "float", "out[i] = kTurn[1][0] + kDiagonal[2][2] + x[i];", lambda i: 3 + 5 + X[i], "constant float2x2 kTurn = float2x2(1, 2, 3, 4); constant float3x3 kDiagonal = float3x3(5.0f);")
rule("matrices_of_columns_are_constants", "float", "out[i] = (kColumns * float2(x[i], 1)).y;", lambda i: 2 * X[i] + 4, "constant float2x2 kColumns = float2x2(float2(1, 2), float2(3, 4));")
rule("constexpr_constants", "int", "int a[kCount]; for (int k = 0; k < kCount; ++k) a[k] = k; out[i] = a[kCount - 1] + n[i];", lambda i: 4 + N[i], "constexpr constant int kCount = 5;")
rule("constants_of_constants", "float", "out[i] = kHalfTurn + x[i];", lambda i: 1.5 + X[i], "constant float kTurnBy = 3; constant float kHalfTurn = kTurnBy / 2;")
rule("constant_half_and_bfloat_tables", "float", "out[i] = float(kHalves[i & 1]) + float(kBrains[i & 1]);", lambda i: 5.0 if i & 1 else 1.5, "constant half kHalves[2] = {0.5h, 1.0h}; constant bfloat kBrains[2] = {1.0bf, 4.0bf};")
rule("constant_packed_vectors", "float", "out[i] = kPacked[1].z + x[i];", lambda i: 6 + X[i], "constant packed_float3 kPacked[2] = {packed_float3(1, 2, 3), packed_float3(4, 5, 6)};")
rule("constants_of_functions", "int", "const int k = n[i] * 2; const int a[3] = {k, k + 1, k + 2}; out[i] = a[i % 3];", lambda i: 2 * N[i] + i % 3)
rule("local_tables_of_constants", "int", "constexpr int t[4] = {9, 8, 7, 6}; out[i] = t[i & 3];", lambda i: 9 - (i & 3))
rule("array_class", "int", "array<int, 4> a = {1, 2, 3, 4}; a[1] = n[i]; int s = 0; for (size_t k = 0; k < a.size(); ++k) s += a[k]; out[i] = s;", lambda i: 8 + N[i])
rule("literals_of_other_bases", "int", "out[i] = 0b101 + 0x1F + 017 + 1'000 + 'A' + int(0x1.8p3) + int(i);", lambda i: 5 + 31 + 15 + 1000 + 65 + 12 + i)
rule("version_macros", "int", "#if __METAL_VERSION__ >= 300 && defined(__METAL__)\nout[i] = 1;\n#endif", [1] * 8)

# Functions and templates.
rule("default_arguments", "int", "out[i] = scaled(n[i]) + scaled(n[i], 2);", lambda i: 5 * N[i], "int scaled(int v, int by = 3) { return v * by; }")
rule("functions_return_structures", "int", "Two t = split(n[i]); out[i] = t.low * 100 + t.high;", lambda i: (N[i] & 3) * 100 + (N[i] >> 2), "struct Two { int low, high; }; Two split(int v) { return {v & 3, v >> 2}; }")
rule("functions_return_references", "int", "int a[2] = {0, 0}; pick(a, i) = n[i]; out[i] = a[0] * 1000 + a[1];", lambda i: N[i] if i & 1 else N[i] * 1000, "thread int& pick(thread int* a, uint i) { return a[i & 1]; }")
rule("template_specialisations", "int", "out[i] = Name<float>::value * 100 + Name<half>::value * 10 + Name<int>::value;", [321] * 8, "template <typename T> struct Name { enum { value = 1 }; }; template <> struct Name<half> { enum { value = 2 }; }; template <> struct Name<float> { enum { value = 3 }; };")
rule("variadic_templates", "int", "out[i] = add_all(n[i], 1, 2, 3);", lambda i: N[i] + 6, "template <typename... A> int add_all(A... a) { return (a + ...); }")
rule("if_constexpr", "int", "out[i] = halve(n[i]) + int(halve(5.0f) * 10);", lambda i: (N[i] >> 1) + 25, "template <typename T> T halve(T v) { if constexpr (is_integral_v<T>) return v >> 1; else return v * T(0.5f); }")
rule("enable_if_chooses_overloads", "int", "out[i] = which(1) * 10 + which(1.0h);", [12] * 8,
     "template <typename T, enable_if_t<is_integral_v<T>, int> = 0> int which(T) { return 1; } template <typename T, enable_if_t<is_floating_point_v<T>, int> = 0> int which(T) { return 2; }")
rule("templates_of_templates", "int", "Twice<Plus> f; out[i] = f(n[i]);", lambda i: N[i] + 2, "struct Plus { int operator()(int v) { return v + 1; } }; template <typename F> struct Twice { F f; int operator()(int v) { return f(f(v)); } };")
rule("numbers_of_types_are_parameters", "int", "out[i] = int(tile<half, 3>().size) + n[i];", lambda i: 6 + N[i], "template <typename T, int K> struct tile { static constant constexpr int size = sizeof(T) * K; };")
rule("namespaces", "int", "out[i] = deep::er::k + deep::f(n[i]);", lambda i: 5 + N[i] * 2, "namespace deep { namespace er { constant int k = 5; } int f(int v) { return v * 2; } }")
rule("type_aliases", "int", "Whole2 v = Whole2(n[i], 1); Number k = v.x; out[i] = k + v.y;", lambda i: N[i] + 1, "typedef int Number; using Whole2 = vec<Number, 2>;")
rule("bases_without_virtual_functions", "int", "Derived d; d.a = n[i]; d.b = 2; out[i] = d.sum();", lambda i: N[i] + 2, "struct Base { int a; int get() { return a; } }; struct Derived : Base { int b; int sum() { return get() + b; } };")
rule("captures_by_value", "int", "int k = n[i]; auto f = [k](int v) { return v * k; }; k = 0; out[i] = f(3);", lambda i: 3 * N[i])
rule("structured_bindings", "int", "Duo d{n[i], 4}; auto [a, b] = d; out[i] = a * 10 + b;", lambda i: N[i] * 10 + 4, "struct Duo { int a, b; };")
rule("conversion_operators", "int", "Meter m{n[i]}; int v = int(m) + 1; out[i] = v;", lambda i: N[i] + 1, "struct Meter { int v; explicit operator int() const { return v; } };")
rule("comparison_operators_of_structures", "int", "Key a{n[i]}, b{5}; out[i] = (a < b) + 2 * (a == b);", lambda i: (N[i] < 5) + 2 * (N[i] == 5), "struct Key { int v; bool operator<(Key o) const { return v < o.v; } bool operator==(Key o) const { return v == o.v; } };")

# Control flow.
rule("switch_without_default", "int", "int s = 7; switch (n[i]) { case -4: s = 1; break; case 2: { int t = 3; s = t; } break; } out[i] = s;", lambda i: {-4: 1, 2: 3}.get(N[i], 7))
rule("switch_over_ranges_of_cases", "int", "switch (i) { case 0: case 1: case 2: out[i] = 1; break; case 6: return; default: out[i] = 2; }", [1, 1, 1, 2, 2, 2, 0, 2])
rule("default_in_the_middle_falls_through", "int", "int s = 0; switch (i & 3) { case 0: s += 1; break; default: s += 10; case 2: s += 100; } out[i] = s;", lambda i: [1, 110, 100, 110][i & 3])
rule("continue_in_a_switch_in_a_loop", "int", "int s = 0; for (uint k = 0; k <= i; ++k) { switch (k % 3) { case 0: continue; case 1: s += 1; break; default: s += 10; } s += 100; } out[i] = s;",
     lambda i: sum([0, 101, 110][k % 3] for k in range(i + 1)))
rule("return_from_a_switch_in_a_loop", "int", "out[i] = first_at_least(n, n[i]);", lambda i: next(k for k, v in enumerate(N) if v >= N[i]),
     "int first_at_least(device const int* p, int v) { for (int k = 0;; ++k) switch (p[k] < v) { case 0: return k; } }")
rule("break_of_the_inner_loop_only", "int", "int s = 0; for (int a = 0; a < 3; ++a) for (int b = 0; b < 5; ++b) { if (b > int(i)) break; s += 1; } out[i] = s;", lambda i: 3 * min(i + 1, 5))
rule("continue_in_do_while_tests_the_condition", "int", "int s = 0, k = 0; do { if (k & 1) continue; s += k; } while (++k < int(i)); out[i] = s;", lambda i: sum(k for k in range(max(i, 1)) if k % 2 == 0))
rule("loops_count_down_in_unsigned", "int", "int s = 0; for (uint k = i; k-- > 0;) s += int(k); out[i] = s;", lambda i: sum(range(i)))
rule("loops_over_floats", "int", "int s = 0; for (float f = x[i]; f < 2.0f; f += 0.25f) ++s; out[i] = s;", lambda i: max(0, int((2 - X[i]) * 4)))
rule("two_variables_in_a_loop", "int", "int s = 0; for (int a = 0, b = int(i); a < b; ++a, --b) s += b - a; out[i] = s;", lambda i: sum(b - a for a, b in zip(range(9), range(i, -9, -1)) if a < b))
rule("narrow_counters_wrap", "int", "int s = 0; for (uchar k = 250; k != uchar(i); ++k) ++s; out[i] = s;", lambda i: 6 + i)
rule("ranges_over_arrays", "int", "int a[4] = {1, 2, 3, n[i]}; int s = 0; for (int v : a) s += v; out[i] = s;", lambda i: 6 + N[i])
rule("initialisers_in_conditions", "int", "if (int k = n[i] * 2; k > 4) out[i] = k; else out[i] = -k;", lambda i: 2 * N[i] if 2 * N[i] > 4 else -2 * N[i])
rule("logical_or_does_not_evaluate_its_right_side", "int", "int k = 0; if (i > 3 || ++k > 5) k += 10; out[i] = k;", lambda i: 10 if i > 3 else 1)
rule("chosen_lvalues", "int", "int a = 1, b = 2; (i & 1 ? a : b) = n[i]; out[i] = a * 1000 + b;", lambda i: N[i] * 1000 + 2 if i & 1 else 1000 + N[i])
rule("returns_from_nested_loops", "int", "out[i] = search(int(i));", lambda i: next((a * 10 + b for a in range(4) for b in range(4) if a * b == i), -1),
     "int search(int v) { for (int a = 0; a < 4; ++a) for (int b = 0; b < 4; ++b) if (a * b == v) return a * 10 + b; return -1; }")
rule("collatz", "int", "uint v = i + 1; int k = 0; while (v != 1) { v = v & 1 ? 3 * v + 1 : v / 2; ++k; } out[i] = k;", [0, 1, 7, 2, 5, 8, 16, 3])
rule("statics_of_blocks_shadow", "int", "int k = 1; { int k = n[i]; k += 1; out[i] = k; } out[i] += k;", lambda i: N[i] + 2)
rule("unrolled_loops", "int", "int s = 0; _Pragma(\"clang loop unroll(full)\") for (int k = 0; k < 4; ++k) s += k * n[i]; out[i] = s;", lambda i: 6 * N[i])

# Headers that a program shares with its kernels.
rule("types_of_simd_h", "float", "Shared s = {{x[i], 2}, {1, 2, 3}, {4, 5, 6, 7}, matrix_float2x2(2), {1, 2}}; simd::float2 v = s.turn * s.at; out[i] = v.x + s.place.z * s.size.w + s.packed.y + sizeof(s.place);",
     lambda i: 2 * X[i] + 21 + 2 + 16,
     "\n#include <metal_raytracing>\n#include <simd/simd.h>\nstruct Shared { vector_float2 at; simd_float3 place; vector_uint4 size; simd_float2x2 turn; simd_packed_float2 packed; };")

rule("choices_of_packed_and_other_vectors", "float",
     "packed_float3 p = {x[i], 1, 2}; float3 v = i & 1 ? p : float3(7, 8, 9); packed_float3 q = i & 2 ? packed_float3(4, 5, 6) : p; thread packed_float3* r = &q; v += i & 4 ? *r : v; out[i] = v.x * 100 + v.y * 10 + v.z;",
     lambda i: (lambda v, q: sum(f * (a + (b if i & 4 else a)) for f, a, b in zip((100, 10, 1), v, q)))((X[i], 1, 2) if i & 1 else (7, 8, 9), (4, 5, 6) if i & 2 else (X[i], 1, 2)))

rule("choices_of_packed_places_and_calls", "float",
     "Held s = {packed_float3(x[i], 1, 2)}; float3 v = i & 1 ? s.p : doubled(s.p); packed_float3 q = i & 2 ? doubled(v) : s.p; packed_float3 r = i & 4 ? s.p : packed_float3{7, 8, 9};"
     " float3 w[2] = {q, i & 1 ? s.here() : kept<2>(v)}; out[i] = w[1].x * 1000 + w[0].x * 100 + r.y * 10 + v.x;",
     lambda i: (lambda v: (X[i] if i & 1 else v) * 1000 + (2 * v if i & 2 else X[i]) * 100 + (1 if i & 4 else 8) * 10 + v)(X[i] if i & 1 else 2 * X[i]),
     "struct Held { packed_float3 p; packed_float3 here() { return p; } };\npacked_float3 doubled(packed_float3 p) { return p * 2; }\ntemplate <int N> packed_float3 kept(float3 v) { return v; }")
rule("choices_of_packed_vectors_in_parentheses", "float",
     "packed_float3 p = {x[i], 1, 2}; thread packed_float3* r = &p; float3 v = i & 1 ? (p) : float3(7, 8, 9), w = i & 2 ? float3(4, 5, 6) : ((p)), u = i & 4 ? (*r) : (v), t = {i & 8 ? (twofold(p)) : (v)};"
     " float a = 1, b = 2; (i & 1 ? (a) : ((b))) += 4; out[i] = (i & 1 ? (float)(v.x) : (v.x)) * 1000 + (w).y * 100 + u.z * 10 + t.y + a + b;",
     lambda i: (lambda v, w, u: v[0] * 1000 + w[1] * 100 + u[2] * 10 + (2 if i & 8 else v[1]) + 7)(
         *(lambda p, v: (v, p if not i & 2 else (4, 5, 6), p if i & 4 else v))((X[i], 1, 2), (X[i], 1, 2) if i & 1 else (7, 8, 9))),
     "packed_float3 twofold(packed_float3 p) { return p * 2; }")
rule("choices_of_calls_keep_their_kind", "int",
     "int a = n[i], b = 7, calls = 0; (i & 1 ? lesser(a, b) : greater(a, b)) += 100; i & 2 ? count(calls) : (void)0; i & 4 ? count(calls) : count(calls);"
     " thread int* p = i & 4 ? place(a) : 0; const thread Pair& kept = i & 1 ? pair(1) : pair(2); out[i] = a + b + calls * 1000 + (p ? *p : 5) + kept.v;",
     lambda i: (lambda a, b: sum((a + 100, b) if (a < b) == bool(i & 1) else (a, b + 100)) + (2 if i & 2 else 1) * 1000 + ((a + 100 if (a < b) == bool(i & 1) else a) if i & 4 else 5) + (1 if i & 1 else 2))(N[i], 7),
     "struct Pair { int v; int w; }; Pair pair(int v) { return {v, 0}; }\nthread int& lesser(thread int& a, thread int& b) { return a < b ? a : b; }\nthread int& greater(thread int& a, thread int& b) { return a < b ? b : a; }"
     "\nvoid count(thread int& c) { ++c; }\nthread int* place(thread int& a) { return &a; }")
rule("sums_clamped_in_wider_words", "int", "char a = char(n[i] * 8), b = char(-n[7 - i] * 21); out[i] = char(clamp(int(a) + int(b), -128, 127)) + 1000 * char(clamp(int(a) - int(b), -128, 127));",
     lambda i: (lambda a, b: min(max(a + b, -128), 127) + 1000 * min(max(a - b, -128), 127))((N[i] * 8 + 128) % 256 - 128, (-N[7 - i] * 21 + 128) % 256 - 128))
rule("sums_of_int_clamped_in_long", "int", "int a = n[i] << 28, b = n[7 - i] << 27; out[i] = int(clamp(long(a) + long(b), long(INT_MIN), long(INT_MAX))) >> (i & 3);",
     lambda i: min(max(((N[i] << 28) + 2**31) % 2**32 + ((N[7 - i] << 27) + 2**31) % 2**32 - 2**32, -(2**31)), 2**31 - 1) >> (i & 3))
rule("structures_that_stages_pass_on", "float", "Passed v; v.position = float4(x[i]); v.at = float2(2, n[i]); v.id = i; out[i] = v.position.w + v.at.x + v.at.y + v.id;", lambda i: X[i] + 2 + N[i] + i,
     "struct Passed { float4 position [[position, invariant]]; float2 at [[user(locn0), center_no_perspective]]; uint id [[flat]]; float4 shade [[color(0), raster_order_group(1)]]; };")
