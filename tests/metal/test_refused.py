"""Programs that the reader refuses. `@` stands before the place that the message points at and is taken out of the
source. What is wrong in an argument of an attribute is shown at the attribute."""
import json

import pytest

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
KERNEL = "kernel void k(device float* out [[buffer(0)]], uint i [[thread_position_in_grid]]) {\n  %s\n}\n"
REFUSED = [
    # name, id, part of the message, source
    ("undeclared_name", "E0901", "undeclared identifier", KERNEL % "out[i] = @missing;"),
    ("wrong_argument_type", "E0901", "no matching function", "void f(device int* p) {}\n" + KERNEL % "@f(out);"),
    ("a_bfloat_is_no_half_by_itself", "E0901", "", KERNEL % "bfloat b = 1; half @h = b; out[i] = h;"),
    ("what_is_wrong_beside_casts_between_half_and_bfloat", "E0901", "undeclared", KERNEL % "half h = 1; out[i] = float((bfloat)h) + half(bfloat(h)) + @gone;"),
    ("missing_semicolon", "E0901", "expected ';'", KERNEL % "out[i] = 1@"),
    ("assignment_to_constant", "E0901", "not assignable", "kernel void k(constant float* c [[buffer(0)]]) { c[0] @= 1; }\n"),
    ("unknown_attribute_argument", "E0901", "undeclared", "kernel void k(device float* out @[[buffer(nowhere)]]) {}\n"),
    ("column_after_rewritten_attributes", "E0901", "undeclared", "kernel void k(device float* out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = @gone; }\n"),
    ("column_after_rewritten_literal", "E0901", "undeclared", KERNEL % "out[i] = 1.0h + @gone;"),
    ("error_in_a_template_instance", "E0901", "not a structure", "template <typename T> float f(T v) { return v@.size(); }\n" + KERNEL % "out[i] = f(1.0f);"),
    ("static_assert_fails", "E0901", "static assertion failed", KERNEL % "static_assert(@sizeof(float) == 8, \"\");"),
    ("include_that_is_missing", "E0901", "file not found", "#include @\"nowhere.h\"\n"),
    ("error_directive", "E0901", "stop here", "#@error stop here\n"),
    ("wrong_number_of_elements", "E0901", "no matching", KERNEL % "float3 v = @float3(1, 2);"),
    ("swizzle_that_is_not_there", "E0901", "no member", KERNEL % "float2 v = 1; out[i] = v.@z;"),
    ("device_pointer_to_threadgroup", "E0901", "", KERNEL % "threadgroup float t[4]; device float* @p = t;"),
    ("goto_into_nowhere", "E0901", "undeclared label", KERNEL % "goto @end;"),
    ("virtual_functions_without_a_body", "E0901", "", "struct S { virtual int @f() = 1; };\n"),
    ("texture_parameters", "E0901", "textures are not supported", "kernel void k(@texture2d<float> t [[texture(0)]]) {}\n"),
    ("sampler_parameters", "E0901", "samplers are not supported", "kernel void k(@sampler s [[sampler(0)]]) {}\n"),
    ("function_tables", "E0901", "function tables are not supported", "kernel void k(@visible_function_table<int(int)> t [[buffer(0)]]) {}\n"),
    ("ray_tracing", "E0901", "ray tracing is not supported", "kernel void k(@instance_acceleration_structure s [[buffer(0)]]) {}\n"),
    ("double_is_no_type", "E0902", "double", KERNEL % "out[i] = float(@double(out[i]) * double(i));"),
    ("constants_that_are_computed_at_run_time", "E0902", "known when it is compiled", "constant float kRoot = @exp2(3.0f);\n" + KERNEL % "out[i] = kRoot;"),
    ("quotients_by_what_is_found_to_be_zero", "E0902", "this divides by zero", KERNEL % "int z = 0; out[i] = (5 + int(i)) @/ z;"),
    ("remainders_by_what_is_found_to_be_zero", "E0902", "this divides by zero", KERNEL % "uint z = 4; z -= 4; out[i] = float(i @% z);"),
    ("recursion", "E0902", "recursion", "float f(float v, uint n) { return n == 0 ? v : v * f(v + 1, n - 1); }\n" + KERNEL % "out[i] = @f(1, i);"),
    ("calls_through_pointers", "E0902", "pointer to a function", "float a(float v) { return v; }\nfloat b(float v) { return -v; }\n" + KERNEL % "float (*f)(float) = i & 1 ? a : b; out[i] = @f(1);"),
    ("atomics_of_bool_that_are_stored", "E0902", "an atomic operation on `bool` is not supported", "kernel void k(device atomic_bool* o [[buffer(0)]]) { @atomic_store_explicit(o, true, memory_order_relaxed); }\n"),
    ("atomics_of_bool_that_are_loaded", "E0902", "an atomic operation on `bool`", "kernel void k(device atomic_bool* o [[buffer(0)]], device int* n [[buffer(1)]]) { n[0] = @atomic_load_explicit(o, memory_order_relaxed); }\n"),
    ("atomics_of_bool_that_are_exchanged", "E0902", "an atomic operation on `bool`",
     "kernel void k(device int* n [[buffer(0)]]) { threadgroup atomic_bool t[4]; n[0] = @atomic_exchange_explicit(t + n[1], true, memory_order_relaxed); }\n"),
    ("functions_without_a_body", "E0902", "`f` is declared but not defined", "float f(float v);\n" + KERNEL % "out[i] = @f(1);"),
    ("argument_buffers", "E0902", "`a` is an argument buffer: it holds pointers", "struct A { device float* p; };\nkernel void k(constant A& a [[buffer(0)]]) { a.@p[0] = 1; }\n"),
    ("arrays_of_pointers_in_buffers", "E0902", "`a` is an argument buffer: it holds pointers", "kernel void k(device float* constant* a [[buffer(0)]], uint i [[thread_position_in_grid]]) { @a[i][0] = 1; }\n"),
    ("pointers_that_are_stored_in_buffers", "E0902", "`a` is an argument buffer", "struct A { device float* p; };\nkernel void k(device A& a [[buffer(0)]], device float* q [[buffer(1)]]) { a.p @= q; }\n"),
    ("arrays_of_pointers_that_are_chosen_from_at_run_time", "E0902", "`t` holds pointers of which one is chosen when the kernel runs",
     "kernel void k(device float* a [[buffer(0)]], device float* b [[buffer(1)]], uint i [[thread_position_in_grid]]) { device float* t[2] = @{a, b}; t[i & 1][0] = 1; }\n"),
    ("pointers_made_from_integers", "E0902", "made from an integer", KERNEL % "device float* p = @reinterpret_cast<device float*>(ulong(i)); p[0] = 1;"),
    ("kernels_that_return_a_value", "E0902", "returns nothing", "kernel int @k(device int* out [[buffer(0)]]) { return 1; }\n"),
    ("parameters_without_an_address_space", "E0902", "address space", "kernel void k(float@* p [[buffer(0)]]) { p[0] = 1; }\n"),
    ("parameters_in_the_memory_of_a_thread", "E0902", "`p` needs an address space: device, constant or threadgroup", "kernel void k(thread float* @p [[buffer(0)]]) { p[0] = 1; }\n"),
    ("pointers_of_functions_without_an_address_space", "E0902", "names its address space", "float f(const float@* p) { return *p; }\n" + KERNEL % "float x = 1; out[i] = f(&x);"),
    ("local_pointers_without_an_address_space", "E0902", "names its address space", KERNEL % "float x = 1; auto q = &x; float @*p = q; out[i] = *p;"),
    ("pointers_to_pointers_without_an_address_space", "E0902", "names its address space", KERNEL % "device float* p = out; device float* @*q = &p; out[i] = **q;"),
    ("pointers_that_are_in_memory_of_a_thread_and_lead_nowhere", "E0902", "names its address space", KERNEL % "float x = 1; float@* thread p = &x; out[i] = *p;"),
    ("pointers_in_casts_without_an_address_space", "E0902", "names its address space", KERNEL % "float x = 1; out[i] = *(int@*)&x;"),
    ("pointers_to_nothing_without_an_address_space", "E0902", "names its address space", KERNEL % "float x = 1; auto v = static_cast<void@*>(&x); out[i] = v != nullptr;"),
    ("pointers_of_members_without_an_address_space", "E0902", "names its address space", "struct S { float@* p; };\n" + KERNEL % "float x = 1; S s; s.p = &x; out[i] = *s.p;"),
    ("pointers_to_arrays_without_an_address_space", "E0902", "names its address space", KERNEL % "float x[2] = {1, 2}; float (@*p)[2] = &x; out[i] = (*p)[1];"),
    ("returned_pointers_without_an_address_space", "E0902", "names its address space", "float@* f(thread float& x) { return &x; }\n" + KERNEL % "float x = 1; out[i] = *f(x);"),
    ("pointers_of_macros_without_an_address_space", "E0902", "names its address space", "#define POINTER float*\n" + KERNEL % "float x = 1; @POINTER p = &x; out[i] = *p;"),
    ("pointers_of_templates_without_an_address_space", "E0902", "names its address space", "template <class T> T f(float@* p) { return T(*p); }\n" + KERNEL % "float x = 1; out[i] = f<float>(&x);"),
    ("pointers_to_classes_of_templates_without_an_address_space", "E0902", "names its address space", "template <class T> T f(vec<T, 2>@* p) { return (*p)[1]; }\n" + KERNEL % "float2 x = 1; out[i] = f(&x);"),
    ("device_pointers_as_pointers_to_memory_of_a_thread", "E0902", "to device memory is none to memory of a thread", KERNEL % "thread float* p = @out; out[i] = *p;"),
    ("threadgroup_memory_as_an_argument_in_memory_of_a_thread", "E0902", "to threadgroup memory is none", "float f(thread float* p) { return *p; }\n" + KERNEL % "threadgroup float t[2]; t[i] = 1; out[i] = f(@t);"),
    ("constant_memory_of_a_template_as_memory_of_a_thread", "E0902", "to constant memory is none",
     "template <class T> float f(T p) { const thread float* q = @p; return *q; }\nkernel void k(device float* out, constant float* c) { out[0] = f(c); }\n"),
    ("pointers_of_a_kernel_template_without_an_address_space", "E0902", "`p` needs an address space",
     "template <class T> kernel void g(T* @p) { p[0] = 1; }\ntemplate [[host_name(\"a\")]] kernel void g<float>(float*);\n"),
    ("parameters_that_say_nothing", "E0902", "neither memory nor", "kernel void k(uint @n) {}\n"),
    ("inputs_of_a_wrong_type", "E0902", "uint or ushort", "kernel void k(float @i [[thread_position_in_grid]]) {}\n"),
    ("inputs_that_are_signed", "E0902", "is a uint or ushort", "kernel void k(int @i [[thread_position_in_grid]]) {}\n"),
    ("inputs_of_signed_vectors", "E0902", "is a uint or ushort", "kernel void k(short2 @i [[thread_position_in_grid]]) {}\n"),
    ("inputs_with_more_axes_than_they_have", "E0902", "has 1 element", "kernel void k(uint2 @i [[thread_index_in_simdgroup]]) {}\n"),
    ("inputs_of_four_axes", "E0902", "has 3 elements", "kernel void k(uint4 @i [[thread_position_in_grid]]) {}\n"),
    ("inputs_of_other_stages", "E0902", "no input of a compute kernel", "kernel void k(uint @i [[stage_in]]) {}\n"),
    ("two_buffers_with_one_index", "E0902", "has the index 0 of", "kernel void k(device float* a [[buffer(0)]], device float* @b [[buffer(0)]]) { a[0] = b[0]; }\n"),
    ("indices_of_buffers_that_metal_has_not", "E0902", "the last one is 30", "kernel void k(device float* @a [[buffer(31)]]) { a[0] = 1; }\n"),
    ("doubles_in_buffers", "E0902", "double", "kernel void k(device @double* x [[buffer(0)]]) { x[0] = 1; }\n"),
    ("doubles_that_are_folded", "E0902", "Metal has no `double`", KERNEL % "@double d = 1.0; out[i] = d * 2;"),
    ("jumps", "E0902", "Metal has no `goto`", KERNEL % "@goto end; out[i] = 1; end: out[i] = 2;"),
    ("variables_of_the_program", "E0902", "outlives a call", "int @counter = 0;\n" + KERNEL % "counter++; out[i] = counter;"),
    ("static_variables", "E0902", "outlives a call", KERNEL % "static int @calls; out[i] = calls++;"),
    ("pointers_of_the_program", "E0902", "outlives a call", "constant int* @p;\n"),
    ("threadgroup_memory_outside_functions", "E0902", "outlives a call", "threadgroup int @t[4];\n"),
    ("device_memory_outside_functions", "E0902", "outlives a call", "device int @t[4];\n"),
    ("vertex_functions_beside_kernels", "E0902", "`quad` is a vertex function; only kernels are supported",
     "struct V { float4 position [[position]]; float2 at [[user(locn0)]]; float size [[point_size]]; };\n" + KERNEL % "out[i] = 1;"
     + "vertex V @quad(uint id [[vertex_id]], ushort n [[instance_id]], constant float4* p [[buffer(0)]]) { V v; v.position = p[id]; v.at = float2(n); v.size = 1; return v; }\n"),
    ("fragment_functions_beside_kernels", "E0902", "`shade` is a fragment function; only kernels are supported",
     "struct V { float4 position [[position]]; float2 at [[user(locn0)]]; };\n" + KERNEL % "out[i] = 1;"
     + "fragment float4 @shade(V v [[stage_in]], bool front [[front_facing]]) { return float4(v.at, front, 1); }\n"),
    ("inputs_of_vertex_functions", "E0902", "[[vertex_id]] is no input of a compute kernel", "kernel void k(device float* out [[buffer(0)]], uint @i [[vertex_id]]) { out[i] = 1; }\n"),
    ("functions_of_other_stages", "E0902", "only kernels", "vertex float4 @f(uint i [[thread_position_in_grid]]) { return float4(i); }\n"),
    ("atomics_in_another_order", "E0902", "memory_order_relaxed", "kernel void k(device atomic_int* a [[buffer(0)]]) { atomic_fetch_add_explicit(a, 1, @memory_order_seq_cst); }\n"),
    ("exchanges_in_another_order", "E0902", "memory_order_relaxed",
     "kernel void k(threadgroup atomic_int* a) { int v = 0; atomic_compare_exchange_weak_explicit(a, &v, 1, memory_order_relaxed, @memory_order_acquire); }\n"),
    ("exchanges_whose_first_order_is_another_one", "E0902", "memory_order_relaxed",
     "kernel void k(threadgroup atomic_int* a) { int v = 0; atomic_compare_exchange_weak_explicit(a, &v, 1, @memory_order_acq_rel, memory_order_relaxed); }\n"),
    ("orders_that_are_parameters_of_functions", "E0902", "known when the kernel is compiled",
     "void put(device atomic_int* a, memory_order order) { atomic_store_explicit(a, 1, @order); }\nkernel void k(device atomic_int* a) { put(a, memory_order_relaxed); }\n"),
    ("orders_that_are_parameters_of_templates", "E0902", "memory_order_relaxed",
     "template <memory_order order> int get(device atomic_int* a) { return atomic_load_explicit(a, @order); }\nkernel void k(device atomic_int* a) { a += get<memory_order_relaxed>(a) + get<memory_order_acquire>(a); }\n"),
    ("memory_on_the_heap", "E0902", "Metal has no `new`", KERNEL % "thread int* p = @new int(3); out[i] = *p;"),
    ("address_spaces_have_metals_names", "E0901", "'device float *' with an lvalue of type 'threadgroup float *'", "kernel void k(threadgroup float* t) { device float* @p = t; }\n"),
    ("unknown_attributes_of_parameters", "E0901", "unknown attribute", "kernel void k(device float* out [[@bufer(0)]]) { out[0] = 1; }\n"),
    ("unknown_attributes_of_kernels", "E0901", "unknown attribute", "[[@compute]] kernel void k(device float* out [[buffer(0)]]) { out[0] = 1; }\n"),
    ("unknown_kernel_inputs", "E0901", "unknown attribute", "kernel void k(device float* out [[buffer(0)]], uint i [[@thread_position_in_gird]]) { out[i] = 1; }\n"),
    ("vectors_do_not_convert_by_themselves", "E0901", "no viable conversion", KERNEL % "int2 a = int2(1); float2 @v = a; out[i] = v.x;"),
    ("bits_of_another_size", "E0901", "size", KERNEL % "out[i] = @as_type<half>(out[i]);"),
    ("stores_to_an_element_of_a_swizzle", "E0901", "not assignable", KERNEL % "float4 v = 1; v.xy[1] @= 7; out[i] = v.y;"),
    ("compound_stores_to_an_element_of_a_swizzle", "E0901", "not assignable", KERNEL % "int4 v = 1; v.wz[0] @+= 6; out[i] = v.w;"),
    ("stores_to_a_computed_element_of_a_swizzle", "E0901", "not assignable", KERNEL % "int4 v = 1; v.xy[i & 1] @= 6; out[i] = v.x;"),
    ("increments_of_an_element_of_a_swizzle", "E0901", "not assignable", KERNEL % "int4 v = 1; v.xy[1]@++; out[i] = v.y;"),
    ("stores_to_an_element_of_a_swizzle_in_device_memory", "E0901", "not assignable", "kernel void k(device int4* v [[buffer(0)]]) { v[0].xy[1] @= 50; }\n"),
    ("stores_to_an_element_of_a_swizzle_of_a_column", "E0901", "not assignable", KERNEL % "float3x3 m(1); m[0].xy[1] @= 5; out[i] = m[0].y;"),
    ("stores_to_an_element_of_a_swizzle_of_a_packed_vector", "E0901", "not assignable", "kernel void k(device packed_float3* p [[buffer(0)]]) { p[0].xy[1] @= 9; }\n"),
    ("stores_to_a_swizzle_of_a_swizzle", "E0901", "part of a swizzle", KERNEL % "int4 v = 1; @v.wzyx.xy = int2(7, 8); out[i] = v.w;"),
    ("compound_stores_to_a_swizzle_of_a_swizzle", "E0901", "part of a swizzle", KERNEL % "int4 v = 1; @v.xy.yx += int2(10, 20); out[i] = v.x;"),
    ("stores_to_a_component_of_a_swizzle", "E0901", "not assignable", KERNEL % "int4 v = 1; v.xy.y @= 9; out[i] = v.y;"),
    ("stores_to_a_chosen_swizzle", "E0901", "no viable overloaded '='", KERNEL % "int4 v = 1; (i & 1 ? v.xy : v.zw) @= int2(9); out[i] = v.x;"),
    ("increments_of_a_swizzle_of_a_swizzle", "E0901", "part of a swizzle", KERNEL % "int4 v = 1; @v.wzyx.xy++; out[i] = v.w;"),
    ("constant_subscripts_outside_a_vector", "E0902", "subscript 2 is outside this vector of 2 elements", KERNEL % "int2 v(1); out[i] = v[@2];"),
    ("constant_subscripts_outside_a_vector_that_is_stored_to", "E0902", "subscript 4 is outside this vector of 4", KERNEL % "float4 v = 1; v[@(2 + 2)] = 3; out[i] = v.x;"),
    ("negative_subscripts_of_a_vector", "E0902", "subscript -1 is outside", KERNEL % "half3 v = 1; out[i] = v[@-1];"),
    ("constant_subscripts_outside_a_packed_vector", "E0902", "subscript 3 is outside this vector of 3", "kernel void k(device packed_float3* p [[buffer(0)]]) { p[0][@3] = 9; }\n"),
    ("constant_subscripts_outside_a_swizzle", "E0902", "subscript 2 is outside this vector of 2", KERNEL % "float4 v = 1; out[i] = v.zw[@2];"),
    ("constant_subscripts_outside_a_row_of_a_matrix", "E0902", "subscript 2 is outside this vector of 2", KERNEL % "float3x2 m(1); out[i] = m[2][@2];"),
    ("subscripts_of_templates_outside_a_vector", "E0902", "subscript 3 is outside this vector of 3",
     "template <int N> float f(float3 v) { if (N < 3) return v[N + 1]; return v[@N]; }\n" + KERNEL % "out[i] = f<3>(float3(1));"),
    ("swizzles_that_repeat_are_not_assigned", "E0901", "", KERNEL % "float2 v = 1; v.@xx = float2(1); out[i] = v.x;"),
    ("device_references_do_not_bind_to_locals", "E0901", "", "void f(device float& v) { v = 1; }\n" + KERNEL % "float v = 1; @f(v); out[i] = v;"),
    ("constant_memory_through_a_device_pointer", "E0901", "", "kernel void k(constant float* c [[buffer(0)]]) { device float* @p = c; p[0] = 1; }\n"),
    ("atomics_need_their_functions", "E0901", "", "kernel void k(device atomic_int* a [[buffer(0)]]) { a[0] @+= 1; }\n"),
    ("atomics_of_a_wrong_type", "E0901", "no matching function", "kernel void k(device int* a [[buffer(0)]]) { @atomic_fetch_add_explicit(a, 1, memory_order_relaxed); }\n"),
    ("exceptions", "E0902", "Metal has no exceptions", KERNEL % "@throw 1;"),
    ("handlers_of_exceptions", "E0902", "Metal has no exceptions", KERNEL % "@try { out[i] = 1; } catch (...) {}"),
    ("memory_given_back", "E0902", "Metal has no `delete`", KERNEL % "float x = 1; thread float* p = &x; @delete p; out[i] = x;"),
    ("casts_that_ask_for_the_class", "E0902", "Metal has no `dynamic_cast`",
     "struct A {};\nstruct B : A {};\n" + KERNEL % "B b; out[i] = @dynamic_cast<thread A*>(&b) != nullptr;"),
    ("virtual_functions", "E0902", "Metal has no virtual functions", "struct A { virtual float @f() { return 1; } };\n" + KERNEL % "A a; out[i] = a.f();"),
    ("constants_of_the_program_that_lie_nowhere", "E0902", "it must be `constant`", "namespace n { constexpr float @half_turn = 3.14f; }\n" + KERNEL % "out[i] = n::half_turn;"),
    ("assembly", "E0902", "Metal has no `asm`", KERNEL % "@asm(\"nop\"); out[i] = 1;"),
    ("kernels_that_are_called", "E0902", "only launches run it", "kernel void one(device float* out) { out[0] = 1; }\n" + KERNEL % "@one(out);"),
    ("kernels_of_one_name", "E0902", "another kernel has the name `k`", KERNEL % "out[i] = 1;" + "kernel void @k(device int* out) { out[0] = 1; }\n"),
    ("threadgroup_memory_with_values", "E0902", "has no initial value", KERNEL % "threadgroup float @t[2] = {1, 2}; out[i] = t[i & 1];"),
    ("threadgroup_memory_whose_members_have_values", "E0902", "has no initial value", "struct D { int a = 7; };\n" + KERNEL % "threadgroup D @d; out[i] = d.a;"),
    ("threadgroup_memory_with_a_constructor", "E0902", "has no initial value", "struct D { int a; D() { a = 3; } };\n" + KERNEL % "threadgroup D @d; out[i] = d.a;"),
    ("threadgroup_memory_of_functions", "E0902", "kernels declare", "float f(float v) { threadgroup float @t; t = v; return t; }\n" + KERNEL % "out[i] = f(1);"),
    ("threadgroup_memory_of_templates", "E0902", "kernels declare", "template <typename T> T f(T v) { threadgroup T @t; t = v; return t; }\n" + KERNEL % "out[i] = f(1.0f);"),
    ("threadgroup_memory_of_members", "E0902", "kernels declare", "struct S { float f(float v) { threadgroup float @t; t = v; return t; } };\n" + KERNEL % "S s; out[i] = s.f(1);"),
    ("threadgroup_memory_of_lambdas", "E0902", "kernels declare", KERNEL % "auto f = [&](float v) { threadgroup float @t; t = v; return t; }; out[i] = f(1);"),
    ("members_of_address_spaces_with_two_meanings", "E0901", "one meaning",
     "struct S { float v; float f() const device { return v; } @float f() const thread { return 2 * v; } };\n" + KERNEL % "S s; out[i] = s.f();"),
    ("bounds_of_two_types", "E0901", "of different types are ambiguous", KERNEL % "out[i] = @max(i, 3);"),
    ("bounds_of_another_type", "E0901", "of different types are ambiguous", KERNEL % "out[i] = @clamp(out[i], 0, 1);"),
    ("equal_indices_of_function_constants", "E0902", "has the index 1 of `a`",
     "constant int a [[function_constant(1)]];\nconstant float @b [[function_constant(1)]];\n" + KERNEL % "out[i] = a;"),
    ("negative_indices_of_function_constants", "E0902", "has the index -1: the last one is 65535", "constant int @a [[function_constant(-1)]];\n" + KERNEL % "out[i] = a;"),
    ("indices_of_function_constants_that_metal_has_not", "E0902", "the last one is 65535", "constant int @a [[function_constant(65536)]];\n" + KERNEL % "out[i] = a;"),
    ("casts_to_another_address_space", "E0902", "cast to another one", "kernel void k(constant float* c [[buffer(0)]]) { (@(device float*)c)[0] = 1; }\n"),
    ("arrays_of_a_computed_length", "E0901", "variable length", KERNEL % "float t[@i]; t[0] = 1; out[i] = t[0];"),
    ("function_constants_that_are_structures", "E0902", "is no number", "struct S { int a; };\nconstant S @s [[function_constant(0)]];\n" + KERNEL % "out[i] = s.a;"),
    ("threadgroups_of_no_threads", "E0902", "at least 1", "[[max_total_threads_per_threadgroup(0)]] kernel void @k(device float* out) { out[0] = 1; }\n"),
    ("negative_indices", "E0902", "has the index -1", "kernel void k(device float* @a [[buffer(-1)]]) { a[0] = 1; }\n"),
    ("duplicate_kernels", "E0901", "redefinition", KERNEL % "out[i] = 1;" + "kernel void @k(device float* out [[buffer(0)]], uint i [[thread_position_in_grid]]) {}\n"),
    ("matrices_of_other_sizes_are_not_multiplied", "E0901", "", KERNEL % "float2x2 a; float3x3 b; out[i] = (a @* b)[0][0];"),
    ("constants_that_are_computed_from_memory", "E0901", "", "int f();\nconstexpr constant int @k = f();\n"),
    ("samplers_with_arguments", "E0901", "samplers are not supported", KERNEL % "constexpr @sampler s(coord::normalized, address::repeat, mag_filter::linear); out[i] = 1;"),
    ("samplers_in_the_program", "E0901", "samplers are not supported", "constexpr @sampler s;\n"),
    ("function_constants_outside_constant_memory", "E0902", "is declared `constant`", "int @n [[function_constant(0)]];\n" + KERNEL % "out[i] = n;"),
    ("function_constants_with_a_value", "E0902", "no initial value", "constant int @n [[function_constant(0)]] = 3;\n" + KERNEL % "out[i] = n;"),
    ("function_constants_in_functions", "E0901", "qualified with an address space", KERNEL % "constant int @n [[function_constant(0)]]; out[i] = n;"),
    ("indices_that_are_no_numbers", "E0902", "[[buffer]] takes a whole number", "kernel void k(device float* out @[[buffer(\"0\")]]) { out[0] = 1; }\n"),
    ("indices_that_are_missing", "E0902", "[[buffer]] takes a whole number", "kernel void k(device float* out @[[buffer]]) { out[0] = 1; }\n"),
    ("device_memory_numbered_as_threadgroup_memory", "E0902", "`out` is no threadgroup memory", "kernel void k(device float* @out [[threadgroup(0)]]) { out[0] = 1; }\n"),
    ("threadgroup_memory_numbered_as_a_buffer", "E0902", "`t` is threadgroup memory", "kernel void k(threadgroup float* @t [[buffer(0)]]) { t[0] = 1; }\n"),
    ("literals_of_more_bits_than_doubles", "E0902", "more than 64 bits", KERNEL % "out[i] = @1.0q;"),
    ("variables_of_more_bits_than_doubles", "E0902", "more than 64 bits", KERNEL % "long double @v = 1; out[i] = v;"),
    ("bounds_of_atomic_floats", "E0901", "no matching function", "kernel void k(device atomic_float* a) { @atomic_fetch_max_explicit(a, 1.0f, memory_order_relaxed); }\n"),
    ("functions_that_end_without_a_value", "E0901", "does not return a value", "float f(float v) { if (v > 0) return 1; @}\n" + KERNEL % "out[i] = f(out[i]);"),
    ("elements_past_the_end_of_an_array", "E0901", "past the end of the array", KERNEL % "float a[4] = {1, 2, 3, 4}; out[i] = @a[7];"),
    ("divisions_by_zero", "E0901", "division by zero", KERNEL % "out[i] = int(i) @/ 0;"),
    ("shifts_by_more_than_a_word", "E0901", "shift count", KERNEL % "out[i] = i @<< 40;"),
    ("variables_without_a_value", "E0901", "is uninitialized", KERNEL % "float v; out[i] = @v;"),
    ("instances_of_one_name", "E0902", "another kernel has the name `a`",
     "template <class T> kernel void g(device T* o) { o[0] = 1; }\ntemplate [[host_name(\"a\")]] kernel void g<float>(device float*);\ntemplate [[host_name(\"a\")]] kernel void @g<int>(device int*);\n"),
    ("pointers_to_memory_that_ended", "E0901", "address of stack memory", "thread float* f() { float v = 1; return &@v; }\n" + KERNEL % "out[i] = *f();"),
    ("integers_of_128_bits", "E0902", "Metal has no `__int128`", KERNEL % "@__int128 d = i; out[i] = float(d);"),
    ("static_constants_that_only_the_launch_knows", "E0902", "known when the kernel is compiled", KERNEL % "static const float @v = out[i]; out[i] = v;"),
    ("constants_that_are_nowhere_defined", "E0902", "`w` is declared but not defined", "extern constant float @w;\n" + KERNEL % "out[i] = w;"),
    ("kernels_that_are_members", "E0902", "is a member of a class", "struct S { kernel void @k(device float* o) { o[0] = 1; } };\n"),
    ("kernels_that_are_static_members", "E0902", "is a member of a class", "struct S { static kernel void @k(device float* o) { o[0] = 1; } };\n"),
    ("static_kernels", "E0902", "no launch sees it", "static kernel void @k(device float* o) { o[0] = 1; }\n"),
    ("kernels_in_a_namespace_without_a_name", "E0902", "no launch sees it", "namespace { kernel void @k(device float* o) { o[0] = 1; } }\n"),
    ("kernels_of_any_number_of_arguments", "E0902", "takes `...`", "kernel void @k(device float* o, ...) { o[0] = 1; }\n"),
    ("two_numbers_of_a_buffer", "E0902", "[[buffer]] takes a whole number", "kernel void k(device float* o @[[buffer(0, 1)]]) { o[0] = 1; }\n"),
    ("two_attributes_of_a_buffer", "E0902", "several attributes that say what it is", "kernel void k(device float* @o [[buffer(0)]] [[buffer(1)]]) { o[0] = 1; }\n"),
    ("two_inputs_in_one", "E0902", "several attributes", "kernel void k(device float* o, uint @j [[thread_position_in_grid, thread_index_in_threadgroup]]) { o[j] = 1; }\n"),
    ("parameters_with_a_constant_that_is_none", "E0902", "exists with `nope`, which is no constant of the program",
     "kernel void k(device float* @o [[buffer(0), function_constant(nope)]]) { o[0] = 1; }\n"),
    ("parameters_with_a_constant_that_is_a_number", "E0902", "which is no bool",
     "constant float f [[function_constant(2)]];\nkernel void k(device float* @o [[buffer(0), function_constant(f)]]) { o[0] = 1; }\n"),
    ("names_of_the_reader", "E0902", "the reader's own", "extern \"C\" float @__vx_mine();\n" + KERNEL % "out[i] = __vx_mine();"),
    ("textures_that_are_read", "E0901", "textures are not supported", "kernel void k(@texture2d<float, access::read> t [[texture(0)]], device float* o [[buffer(0)]]) { auto s = t; o[0] = t.read(uint2(0)).x + s.get_width(); }\n"),
    ("function_tables_that_are_called", "E0901", "function tables are not supported", "kernel void k(@visible_function_table<int(int)> t [[buffer(0)]], device int* o [[buffer(1)]]) { o[0] = t[0](1); }\n"),
    ("instructions_without_operands", "E0902", "`llvm.trap` cannot be lowered", KERNEL % "@__builtin_trap();"),
    ("fences_of_an_order_that_is_computed", "E0902", "must be known", KERNEL % "@atomic_thread_fence(mem_flags::mem_device, memory_order(i)); out[i] = 2;"),
]


@pytest.mark.parametrize("name, id, message, source", REFUSED, ids=[each[0] for each in REFUSED])
def test_program_is_refused_where_it_is_wrong(vortex, tmp_path, name, id, message, source):
    before, _, after = (HEAD + source).partition("@")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    path = tmp_path / "k.metal"
    path.write_text(before + after)
    done = vortex("--json", "check", path, status=1)
    found = json.loads(done.stderr)
    first = found[0]
    assert first["id"] == id and message in first["message"], found
    assert len(found) == 1 or "supported" not in message, found  # what comes of a type that is refused is no error of its own
    labels = [label for label in first["labels"] if label["primary"]]
    assert [(label["line"], label["column"]) for label in labels] == [(line, column)], found


def test_threadgroup_memory_that_no_threadgroup_has_is_refused(vortex, tmp_path):
    path = tmp_path / "k.metal"
    for count, status in ((8188, 0), (8189, 1)):
        path.write_text(HEAD + KERNEL % f"threadgroup float t[{count}]; threadgroup int u[4]; t[i] = out[i]; u[i & 3] = 1; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = t[i ^ 1] + u[i & 1];")
        done = vortex("check", path, status=status)
        assert status == 0 or "E0904" in done.stderr and "`k` has 32772 bytes of threadgroup memory; Apple's GPUs have 32768" in done.stderr
        assert status == 0 or "k.metal:3:13" in done.stderr, done.stderr


@pytest.mark.parametrize("kind, message", [("atomic<half>", "atomics are int, uint"), ("simdgroup_matrix<int, 8, 8>", "elements of simdgroup matrices are")])
def test_types_that_metal_has_not_are_refused_where_they_are_used(vortex, tmp_path, kind, message):
    path = tmp_path / "k.metal"
    path.write_text(HEAD + f"kernel void k(device float* out [[buffer(0)]]) {{\n  {kind} v;\n  out[0] = 1;\n}}\n")
    (found,) = json.loads(vortex("--json", "check", path, status=1).stderr)
    assert found["id"] == "E0901" and message in found["message"] and found["labels"][0]["line"] == 4, found


def test_variables_that_a_loop_surely_sets_are_read(vortex, tmp_path):
    path = tmp_path / "k.metal"
    path.write_text(HEAD + KERNEL % "float most; for (uint k = 0; k < 4; ++k) most = k == 0 ? 3.0f : max(most, float(k)); float also; if (i < 9) also = 1; out[i] = most + also;")
    assert vortex("run", path, "--grid", 2, "--buffer", "0=f32[2]", "--print", 0, "--check").stdout == "4 4\n"


POINTERS = """
struct Row { float a[3]; thread float& operator[](uint i) thread { return a[i]; } const thread float* data() const { return a; } };
template <class T> void step(const device T*& p, int n) { p += n; }
template <class T> T first(T* p) { return p[0]; }
template <class T> using to = T*;
template <class T> struct leads { static constexpr bool value = false; };
template <class T> struct leads<T*> { static constexpr bool value = true; };
#define POINTER(x) thread x*
float sum(const thread float (&a)[3]) { float s = 0; for (const thread auto& v : a) s += v; return s; }
float last(thread float (*a)[3]) { return a[1][2]; }
void move(thread float* thread* q) { *q += 1; }
"""


@pytest.mark.parametrize("body, expected", [
    ("float x = 3; float thread* const p = &x; thread float* const thread* pp = &p; r = *p + **pp;", "6"),
    ("const device float* o = out; step(o, 1); r = first(o);", "7"),
    ("float x = 3; r = first(&x) + first(out);", "8"),
    ("float x = 3; auto p = &x; auto q = out; thread auto* s = &x; auto* t = out; r = *p + *q + *s + *t;", "16"),
    ("float a[2][3] = {{1, 2, 3}, {4, 5, 6}}; r = sum(a[1]) + last(a);", "21"),
    ("float a[2] = {4, 5}; thread float* p = a; move(&p); r = *p;", "5"),
    ("Row q; q[2] = 3; r = q.data()[2];", "3"),
    ("float x = 3; POINTER(float) p = (POINTER(float))&x; to<device float> q = out; r = *p + *q;", "8"),
    ("float x = 3; auto f = [](thread const float* p) { return *p; }; r = f(&x) + *reinterpret_cast<thread float*>(&x);", "6"),
    ("r = leads<device int*>::value + 2 * leads<int>::value;", "1"),
])
def test_pointers_with_an_address_space_of_their_own_or_their_templates_are_taken(vortex, tmp_path, body, expected):
    path = tmp_path / "k.metal"
    path.write_text(HEAD + POINTERS + "kernel void k(device float* out [[buffer(0)]], device float* to [[buffer(1)]]) { float r; %s to[0] = r; }\n" % body.replace("to<", "::to<"))
    assert vortex("run", path, "--grid", 1, "--buffer", "0=f32:5,7", "--buffer", "1=f32:77", "--print", 1).stdout == expected + "\n"


def test_accesses_through_null_lie_in_no_memory(vortex, tmp_path):
    path = tmp_path / "k.metal"
    path.write_text(HEAD + "kernel void k(device int* out, uint i [[thread_position_in_grid]]) {\n  device int* p = nullptr;\n  out[i] = p[i] + 2;\n  p[i] = 1;\n}\n")
    launch = ["run", path, "--grid", 2, "--block", 2, "--buffer", "0=i32:7,7", "--print", 0]
    assert vortex(*launch).stdout == "2 2\n"
    (found,) = json.loads(vortex("--json", *launch, "--check", status=1).stderr)
    assert found["id"] == "E0601" and "`nullptr`" in found["message"] and found["labels"][0]["line"] == 5, found


@pytest.mark.parametrize("way", ["absolute", "relative"])
def test_places_are_found_from_a_folder_beside_the_file(vortex, tmp_path, way):
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "k.metal"
    path.write_text(HEAD + "float f(float x) { return x > 1 ? f(x / 2) : x; }\nkernel void k(device float* x, uint i [[thread_position_in_grid]]) {\n  x[i] = f(x[i]);\n}\n")
    done = vortex("check", path if way == "absolute" else "../k.metal", cwd=tmp_path / "elsewhere", status=1)
    assert f"k.metal:{HEAD.count(chr(10)) + 3}:10" in done.stderr, done.stderr


@pytest.mark.parametrize("kind, value, message", [("uchar", "300", "from 0 to 255, not 300"), ("bool", "2", "from 0 to 1, not 2"), ("int", "3.5", "not 3.5"),
                                                  ("int", "2147483648", "from -2147483648 to 2147483647"), ("uint", "-1", "from 0 to 4294967295, not -1"),
                                                  ("ulong", "1e300", "from 0 to 9007199254740992"), ("float2", "1", "values of its type cannot be given")])
def test_function_constants_take_values_of_their_types(vortex, tmp_path, kind, value, message):
    path = tmp_path / "k.metal"
    path.write_text(HEAD + f"constant {kind} c [[function_constant(3)]];\n" + "kernel void k(device float* out [[buffer(0)]]) { out[0] = is_function_constant_defined(c) ? 2 : 1; }\n")
    done = vortex("--json", "run", path, "--grid", 1, "--buffer", "0=f32:0", "--constant", f"3={value}", "--print", 0, status=1)
    (found,) = json.loads(done.stderr)
    assert found["id"] == "E0902" and "`c`" in found["message"] and message in found["message"], found
    assert [label["line"] for label in found["labels"] if label["primary"]] == [3], found
    assert vortex("run", path, "--grid", 1, "--buffer", "0=f32:0", "--print", 0).stdout == "1\n"


CONSTANTS = HEAD + """constant int factor [[function_constant(3)]];
constant int twice = factor * 2;
constant int maybe = is_function_constant_defined(factor) ? twice : 9;
kernel void itself(device int* out [[buffer(0)]]) { out[0] = factor; }
kernel void made(device int* out [[buffer(0)]]) { out[0] = twice; }
kernel void asked(device int* out [[buffer(0)]]) { out[0] = is_function_constant_defined(factor) && factor > 3 ? twice : maybe; }
kernel void others(device int* out [[buffer(0)]]) { out[0] = 3; }
"""


@pytest.mark.parametrize("kernel, with_five", [("itself", "5"), ("made", "10"), ("asked", "10"), ("others", "3")])
def test_function_constants_that_a_kernel_uses_are_given(vortex, tmp_path, kernel, with_five):
    path = tmp_path / "k.metal"
    path.write_text(CONSTANTS)
    launch = ["run", path, "--kernel", kernel, "--grid", 1, "--buffer", "0=i32:0", "--print", 0]
    assert vortex(*launch, "--constant", "3=5").stdout == with_five + "\n"
    if kernel in ("asked", "others"):
        assert vortex(*launch).stdout == {"asked": "9\n", "others": "3\n"}[kernel]
        return
    (found,) = json.loads(vortex("--json", *launch, status=1).stderr)
    assert found["id"] == "E0902" and "`factor`" in found["message"] and "function_constant(3)" in found["message"]
    assert found["labels"][0]["line"] == 3, found
    vortex("check", path)


def test_parameters_exist_with_constants_of_namespaces_and_computed_ones(vortex, tmp_path):
    path = tmp_path / "k.metal"
    path.write_text(HEAD + """namespace options { constant bool wide [[function_constant(0)]]; }
constant bool narrow = !options::wide;
kernel void k(device float* a [[buffer(0), function_constant(options::wide)]], device float* b [[buffer(1), function_constant(narrow)]]) {
  if (options::wide) a[0] = 1; else b[0] = 2;
}
""")
    for on, number in ((1, 0), (0, 1)):
        done = vortex("run", path, "--grid", 1, "--buffer", f"{number}=f32[1]", "--constant", f"0={on}", "--print", number)
        assert done.stdout == f"{number + 1}\n"


@pytest.mark.parametrize("argument, note", [
    ("t", "from 'threadgroup float[4]' to 'device float *'"), ("c", "address space 'constant' as a pointer to address space 'device'"),
    ("&x", "address space 'thread' as a pointer to address space 'device'")])
def test_notes_have_metals_words_for_address_spaces(vortex, tmp_path, argument, note):
    path = tmp_path / "k.metal"
    path.write_text(HEAD + "void f(device float* p) {}\n" + f"kernel void k(constant float* c [[buffer(0)]]) {{\n  threadgroup float t[4]; float x = 1;\n  f({argument});\n}}\n")
    (found,) = json.loads(vortex("--json", "check", path, status=1).stderr)
    assert any(note in label["message"] and label["line"] == 3 for label in found["labels"]), found


def test_one_index_is_of_the_parameter_that_exists(vortex, tmp_path):
    path = tmp_path / "k.metal"
    path.write_text(HEAD + """constant bool wide [[function_constant(0)]];
constant bool narrow = !wide;
kernel void k(device float* a [[buffer(0), function_constant(wide)]], device int* b [[buffer(0), function_constant(narrow)]]) {
  if (wide) a[0] = 1.5f; else b[0] = 2;
}
""")
    for on, kind, text in ((1, "f32", "1.5\n"), (0, "i32", "2\n")):
        assert vortex("run", path, "--grid", 1, "--buffer", f"0={kind}[1]", "--constant", f"0={on}", "--print", 0).stdout == text


def test_thirty_programs_are_refused():
    assert len(REFUSED) >= 30
