"""Rules of threads together: what every thread is told of its place, simdgroups, quadgroups, atomics, threadgroup memory, function constants.

Each is a kernel with parameters of its own beside `device T* out`, `device const int* n` (n[k] = (37 k + 11) mod 101 - 50, 128 of them) and
`uint3 p [[thread_position_in_grid]]`, launched over a grid that its threadgroups need not divide. Where a rule says nothing else, out has an
element for each thread of the grid, of which `at` is the number in row-major order."""
import functools
import itertools
import math

N = [(37 * k + 11) % 101 - 50 for k in range(128)]
THREAD_RULES = []  # name, type, declarations, parameters, body, grid, block, more options, expected


class Thread:
    """One thread of a launch, with the inputs as the specification defines them."""

    def __init__(self, position, grid, block):
        self.position, self.grid, self.block = position, grid, block
        self.group = tuple(p // b for p, b in zip(position, block))
        self.groups = tuple(-(-g // b) for g, b in zip(grid, block))
        self.local = tuple(p % b for p, b in zip(position, block))
        self.width = tuple(min(b, g - at * b) for b, g, at in zip(block, grid, self.group))  # those at the edge are smaller
        self.index = self.local[0] + self.width[0] * (self.local[1] + self.width[1] * self.local[2])
        self.at = position[0] + grid[0] * (position[1] + grid[1] * position[2])
        self.lane, self.simdgroup = self.index % 32, self.index // 32


def threads(grid, block):
    return [Thread((x, y, z), grid, block) for z, y, x in itertools.product(*map(range, reversed(grid)))]


def peers(thread, all_threads, size=32):
    """The threads of its simdgroup (quadgroup: size 4), by lane."""
    same = [t for t in all_threads if t.group == thread.group and t.index // size == thread.index // size]
    return sorted(same, key=lambda t: t.index)


def rule(name, kind, body, expected, parameters="", declarations="", grid=(64,), block=(32,), options=()):
    grid, block = (tuple(list(v) + [1] * (3 - len(v))) for v in (grid, block))
    every = threads(grid, block)
    wanted = [expected(t, every) for t in every] if callable(expected) else list(expected)
    THREAD_RULES.append((name, kind, declarations, parameters, body, grid, block, list(options), wanted))


def group_of(t, every):
    return sorted((o for o in every if o.group == t.group), key=lambda o: o.index)


# Every input of a compute kernel, in three dimensions, with smaller threadgroups at the edges of the grid.
EDGES = {"grid": (7, 5, 3), "block": (4, 3, 2)}


def coordinates(name, get, ctype="uint3"):
    rule("input_" + name, "uint", "out[at] = v.x + 100 * v.y + 10000 * v.z;", lambda t, e: (lambda v: v[0] + 100 * v[1] + 10000 * v[2])(get(t)), f"{ctype} v [[{name}]]", **EDGES)


def number(name, get, ctype="uint", sizes=EDGES):
    rule("input_" + name, "uint", "out[at] = v;", lambda t, e: get(t), f"{ctype} v [[{name}]]", **sizes)


coordinates("thread_position_in_grid", lambda t: t.position)
coordinates("thread_position_in_threadgroup", lambda t: t.local, "ushort3")
coordinates("threadgroup_position_in_grid", lambda t: t.group)
coordinates("threadgroups_per_grid", lambda t: t.groups)
coordinates("threads_per_grid", lambda t: t.grid)
coordinates("threads_per_threadgroup", lambda t: t.width, "ushort3")
coordinates("dispatch_threads_per_threadgroup", lambda t: t.block)
number("thread_index_in_threadgroup", lambda t: t.index)
number("thread_index_in_simdgroup", lambda t: t.index % 32, "ushort")
number("simdgroup_index_in_threadgroup", lambda t: t.index // 32)
number("simdgroups_per_threadgroup", lambda t: -(-math.prod(t.width) // 32), sizes={"grid": (70, 2), "block": (40, 2)})
number("dispatch_simdgroups_per_threadgroup", lambda t: -(-math.prod(t.block) // 32), sizes={"grid": (70, 2), "block": (40, 2)})
number("threads_per_simdgroup", lambda t: 32)
number("thread_execution_width", lambda t: 32)
number("thread_index_in_quadgroup", lambda t: t.index % 4, "ushort")
number("quadgroup_index_in_threadgroup", lambda t: t.index // 4)
number("quadgroups_per_threadgroup", lambda t: -(-math.prod(t.width) // 4))
number("dispatch_quadgroups_per_threadgroup", lambda t: -(-math.prod(t.block) // 4))
rule("inputs_may_have_one_dimension_of_three", "uint", "out[at] = i + 100 * g;", lambda t, e: t.position[0] + 100 * t.group[0],
     "uint i [[thread_position_in_grid]], ushort g [[threadgroup_position_in_grid]]", grid=(10, 2), block=(4, 2))
rule("inputs_may_have_two_dimensions", "uint", "out[at] = v.x + 100 * v.y + 10000 * g.y;", lambda t, e: t.position[0] + 100 * t.position[1] + 10000 * t.grid[1],
     "ushort2 v [[thread_position_in_grid]], uint2 g [[threads_per_grid]]", grid=(5, 6), block=(4, 4))

# Simdgroups of 32 threads; the second threadgroup of these has two.
WIDE = {"grid": (128,), "block": (64,)}
S = "ushort lane [[thread_index_in_simdgroup]]"


def lanes(name, kind, body, of, **more):
    """`of(values of the lanes, own lane)`."""
    rule(name, kind, body, lambda t, e: of([N[o.at] for o in peers(t, e)], t.lane), S, **{**WIDE, **more})


lanes("simd_sum_of_two_simdgroups", "int", "out[at] = simd_sum(n[at]);", lambda v, k: sum(v))
lanes("simd_product_of_signs", "int", "out[at] = simd_product(n[at] < 0 ? -1 : 1);", lambda v, k: math.prod(-1 if w < 0 else 1 for w in v))
lanes("simd_minimum_and_maximum", "int", "out[at] = simd_min(n[at]) * 1000 + simd_max(n[at]);", lambda v, k: min(v) * 1000 + max(v))
lanes("simd_maximum_is_unsigned_for_uint", "uint", "out[at] = simd_max(uint(n[at]));", lambda v, k: max(w & 0xFFFFFFFF for w in v))
lanes("simd_minimum_of_short_and_half", "float", "out[at] = simd_min(short(n[at])) + float(simd_max(half(n[at])));", lambda v, k: min(v) + max(v))
lanes("simd_and_or_xor", "int", "out[at] = simd_and(n[at] | 3) + simd_or(n[at] & 24) * 100 + (simd_xor(n[at]) & 127) * 10000;",
      lambda v, k: eval("&".join(f"({w} | 3)" for w in v)) + eval("|".join(f"({w} & 24)" for w in v)) * 100 + (eval("^".join(f"({w})" for w in v)) & 127) * 10000)
lanes("simd_sum_of_vectors", "float", "float2 v = simd_sum(float2(n[at], 1)); out[at] = v.x + v.y;", lambda v, k: sum(v) + 32)
lanes("simd_sum_of_long", "int", "out[at] = int(simd_sum(long(n[at]) << 33) >> 33);", lambda v, k: sum(v))
lanes("simd_prefix_inclusive_sum_of_32", "int", "out[at] = simd_prefix_inclusive_sum(n[at]);", lambda v, k: sum(v[:k + 1]))
lanes("simd_prefix_exclusive_sum_of_floats", "float", "out[at] = simd_prefix_exclusive_sum(float(n[at]));", lambda v, k: sum(v[:k]))
lanes("simd_prefix_exclusive_product_of_32", "int", "out[at] = simd_prefix_exclusive_product(n[at] < 0 ? -1 : 1);", lambda v, k: math.prod(-1 if w < 0 else 1 for w in v[:k]))
lanes("simd_shuffle_from_any_lane", "int", "out[at] = simd_shuffle(n[at], ushort((lane * 7 + 3) & 31));", lambda v, k: v[(k * 7 + 3) & 31])
lanes("simd_shuffle_up_keeps_the_lowest", "int", "out[at] = simd_shuffle_up(n[at], ushort(5));", lambda v, k: v[k - 5] if k >= 5 else v[k])
lanes("simd_shuffle_down_keeps_the_highest", "int", "out[at] = simd_shuffle_down(n[at], ushort(5));", lambda v, k: v[k + 5] if k < 27 else v[k])
lanes("simd_shuffle_rotate_up_goes_round", "int", "out[at] = simd_shuffle_rotate_up(n[at], ushort(5));", lambda v, k: v[(k - 5) % 32])
lanes("simd_shuffle_rotate_down_goes_round", "int", "out[at] = simd_shuffle_rotate_down(n[at], ushort(5));", lambda v, k: v[(k + 5) % 32])
lanes("simd_shuffle_and_fill_up_takes_the_upper_lanes", "int", "out[at] = simd_shuffle_and_fill_up(n[at], n[at] * 1000, ushort(3));", lambda v, k: v[k - 3] if k >= 3 else v[k + 29] * 1000)
lanes("simd_shuffle_and_fill_down_takes_the_lower_lanes", "int", "out[at] = simd_shuffle_and_fill_down(n[at], n[at] * 1000, ushort(3));", lambda v, k: v[k + 3] if k < 29 else v[k - 29] * 1000)
lanes("simd_shuffle_and_fill_up_in_parts", "int", "out[at] = simd_shuffle_and_fill_up(n[at], n[at] * 1000, ushort(3), ushort(8));", lambda v, k: v[k - 3] if k % 8 >= 3 else v[k + 5] * 1000)
lanes("simd_shuffle_of_long_and_of_chars", "int", "out[at] = int(simd_shuffle_xor(long(n[at]) << 35, ushort(9)) >> 35) + simd_shuffle_xor(char2(char(n[at]), 0), ushort(9)).x * 1000;", lambda v, k: v[k ^ 9] * 1001)
lanes("simd_shuffle_of_bool", "int", "out[at] = simd_shuffle(n[at] > 0, ushort(31 - lane)) ? 1 : 0;", lambda v, k: int(v[31 - k] > 0))
lanes("simd_broadcast_and_first", "int", "out[at] = simd_broadcast(n[at], ushort(17)) * 1000 + simd_broadcast_first(n[at]);", lambda v, k: v[17] * 1000 + v[0])
lanes("simd_ballot_of_32", "uint", "out[at] = uint(simd_vote::vote_t(simd_ballot(n[at] > 0)));", lambda v, k: sum((w > 0) << i for i, w in enumerate(v)))
lanes("simd_votes", "int", "simd_vote b = simd_ballot(n[at] > -100); out[at] = b.all() + 2 * b.any() + 4 * simd_all(n[at] > 0) + 8 * simd_any(n[at] > 0);", lambda v, k: 11)
lanes("simd_active_threads_mask_and_first", "uint", "out[at] = popcount(uint(ulong(simd_active_threads_mask()))) * 10 + simd_is_first();", lambda v, k: 320 + (k == 0))
rule("simd_operations_of_an_incomplete_simdgroup", "int", "out[at] = simd_sum(n[at]) * 100 + popcount(uint(ulong(simd_active_threads_mask())));",
     lambda t, e: sum(N[o.at] for o in peers(t, e)) * 100 + len(peers(t, e)), grid=(45,), block=(40,))
rule("simd_operations_under_a_condition_of_the_simdgroup", "int", "int s = -1; if (g & 1) s = simd_sum(n[at]); out[at] = s;",
     lambda t, e: sum(N[o.at] for o in peers(t, e)) if t.simdgroup & 1 else -1, "uint g [[simdgroup_index_in_threadgroup]]", **WIDE)
rule("simd_operations_in_a_loop_of_the_threadgroup", "int", "int s = n[at]; for (ushort d = 16; d > 0; d /= 2) s += simd_shuffle_down(s, d); out[at] = lane == 0 ? s : 0;",
     lambda t, e: sum(N[o.at] for o in peers(t, e)) if t.lane == 0 else 0, S, **WIDE)
rule("simdgroup_barrier_orders_threadgroup_memory", "int", "threadgroup int t[64]; t[i] = n[at]; simdgroup_barrier(mem_flags::mem_threadgroup); out[at] = t[i ^ 1];",
     lambda t, e: N[t.at ^ 1], "uint i [[thread_index_in_threadgroup]]", **WIDE)

# Quadgroups of four.
Q = "ushort q [[thread_index_in_quadgroup]]"


def quads(name, kind, body, of):
    rule(name, kind, body, lambda t, e: of([N[o.at] for o in peers(t, e, 4)], t.index % 4), Q, grid=(64,), block=(32,))


quads("quad_sum_and_product", "int", "out[at] = quad_sum(n[at]) + quad_product(n[at] < 0 ? -1 : 1) * 1000;", lambda v, k: sum(v) + math.prod(-1 if w < 0 else 1 for w in v) * 1000)
quads("quad_minimum_and_maximum", "int", "out[at] = quad_min(n[at]) * 1000 + quad_max(n[at]);", lambda v, k: min(v) * 1000 + max(v))
quads("quad_and_or_xor", "int", "out[at] = quad_and(n[at]) + quad_or(n[at]) * 100 + quad_xor(n[at]) * 10000;",
      lambda v, k: (v[0] & v[1] & v[2] & v[3]) + (v[0] | v[1] | v[2] | v[3]) * 100 + (v[0] ^ v[1] ^ v[2] ^ v[3]) * 10000)
quads("quad_prefix_sums", "int", "out[at] = quad_prefix_inclusive_sum(n[at]) * 1000 + quad_prefix_exclusive_sum(n[at]);", lambda v, k: sum(v[:k + 1]) * 1000 + sum(v[:k]))
quads("quad_shuffles", "int", "out[at] = quad_shuffle(n[at], ushort(3 - q)) * 1000 + quad_shuffle_xor(n[at], ushort(2));", lambda v, k: v[3 - k] * 1000 + v[k ^ 2])
quads("quad_shuffles_up_and_down", "int", "out[at] = quad_shuffle_up(n[at], ushort(1)) * 1000 + quad_shuffle_down(n[at], ushort(1));", lambda v, k: v[max(k - 1, 0)] * 1000 + v[min(k + 1, 3)])
quads("quad_rotations", "int", "out[at] = quad_shuffle_rotate_up(n[at], ushort(1)) * 1000 + quad_shuffle_rotate_down(n[at], ushort(1));", lambda v, k: v[(k - 1) % 4] * 1000 + v[(k + 1) % 4])
quads("quad_shuffle_and_fill", "int", "out[at] = quad_shuffle_and_fill_up(n[at], 7, ushort(1)) * 1000 + quad_shuffle_and_fill_down(n[at], 9, ushort(1));",
      lambda v, k: (v[k - 1] if k else 7) * 1000 + (v[k + 1] if k < 3 else 9))
quads("quad_broadcasts", "int", "out[at] = quad_broadcast(n[at], ushort(2)) * 1000 + quad_broadcast_first(n[at]);", lambda v, k: v[2] * 1000 + v[0])
quads("quad_votes", "int", "out[at] = quad_any(n[at] > 0) + 2 * quad_all(n[at] > 0) + 4 * int(quad_vote::vote_t(quad_ballot(n[at] > 0))) + 100 * quad_is_first();",
      lambda v, k: any(w > 0 for w in v) + 2 * all(w > 0 for w in v) + 4 * sum((w > 0) << i for i, w in enumerate(v)) + 100 * (k == 0))

# Quadgroups and simdgroups that the end of the threadgroup cuts short: 3, 2 and 1 threads of the last quad.
def joined(values, how):
    return functools.reduce(how, values)


for grid, block in ((57, 31), (93, 32)):
    for name, call, how in (("sum", "sum(n[at])", lambda a, b: a + b), ("product", "product(n[at] | 1)", None), ("xor", "xor(n[at])", lambda a, b: a ^ b),
                            ("and", "and(n[at] | 8)", None), ("or", "or(n[at])", lambda a, b: a | b), ("max", "max(n[at])", max), ("min", "min(n[at])", min)):
        def expected(t, e, size, name=name, how=how):
            values = [N[o.at] for o in peers(t, e, size)]
            if name == "product":
                return (joined([v | 1 for v in values], lambda a, b: a * b) + 2**31) % 2**32 - 2**31
            if name == "and":
                return joined([v | 8 for v in values], lambda a, b: a & b)
            return joined(values, how)
        rule(f"short_quad_{name}_of_{grid}", "int", f"out[at] = quad_{call};", lambda t, e, expected=expected: expected(t, e, 4), grid=(grid,), block=(block,))
        if name not in ("product", "max", "min"):
            call = call.replace("n[at]", "long(n[at])")
            rule(f"short_simd_{name}_of_longs_{grid}", "int", f"out[at] = int(simd_{call});".replace("| 8", "| 8l"), lambda t, e, expected=expected: expected(t, e, 32), grid=(grid,), block=(block,))
            vectors = call.replace("long(n[at])", "int2(n[at], 1)").replace("int2(n[at], 1) | 8", "(int2(n[at], 1) | 8)")
            rule(f"short_simd_{name}_of_vectors_{grid}", "int", f"out[at] = (simd_{vectors}).x;", lambda t, e, expected=expected: expected(t, e, 32), grid=(grid,), block=(block,))

# Matrices of a simdgroup: element (c, r) of a load from p with pitch e is p[c + r e].
FILL = "threadgroup float a[64], b[64]; for (uint k = i; k < 64; k += 32) { a[k] = n[k]; b[k] = n[k + 64]; } threadgroup_barrier(mem_flags::mem_threadgroup); simdgroup_float8x8 A, B, C; "
I = "uint i [[thread_index_in_threadgroup]]"
A = [N[8 * r:8 * r + 8] for r in range(8)]
B = [N[64 + 8 * r:72 + 8 * r] for r in range(8)]


def product(a, b):
    return [sum(a[r][k] * b[k][c] for k in range(8)) for r in range(8) for c in range(8)]


def columns(a):
    return [list(row) for row in zip(*a)]


ONE = {"grid": (32,), "block": (32,), "parameters": I}
rule("simdgroup_multiply", "float", FILL + "simdgroup_load(A, a, 8); simdgroup_load(B, b, 8); simdgroup_multiply(C, A, B); simdgroup_store(C, out, 8);", product(A, B), **ONE)
rule("simdgroup_multiply_accumulate", "float", FILL + "simdgroup_load(A, a, 8); simdgroup_load(B, b, 8); simdgroup_multiply_accumulate(C, A, B, A); simdgroup_store(C, out, 8);",
     [x + y for x, y in zip(product(A, B), sum(A, []))], **ONE)
rule("simdgroup_load_transposes", "float", FILL + "simdgroup_load(A, a, 8, ulong2(0, 0), true); simdgroup_load(B, b, 8); simdgroup_multiply(C, A, B); simdgroup_store(C, out, 8);", product(columns(A), B), **ONE)
rule("simdgroup_store_transposes", "float", FILL + "simdgroup_load(A, a, 8); simdgroup_store(A, out, 8, ulong2(0, 0), true);", sum(columns(A), []), **ONE)
rule("simdgroup_load_from_device_with_pitch_and_origin", "float", "simdgroup_half8x8 A; simdgroup_float8x8 B; device const int* p = n; threadgroup float t[128]; for (uint k = i; k < 128; k += 32) t[k] = p[k]; threadgroup_barrier(mem_flags::mem_threadgroup); simdgroup_load(B, t, 16, ulong2(3, 0)); simdgroup_store(B, out, 8);",
     [N[3 + c + 16 * r] for r in range(8) for c in range(8)], **ONE)
rule("positions_in_groups_of_one_column", "int", "out[at] = q.x + 10 * q.y + 100 * q.z;", lambda t, every: t.local[0] + 10 * t.local[1] + 100 * t.local[2],
     "uint3 q [[thread_position_in_threadgroup]]", grid=(2, 6, 3), block=(1, 3, 3))
rule("simdgroup_matrices_of_half", "float", "threadgroup half t[64]; for (uint k = i; k < 64; k += 32) t[k] = half(n[k]); threadgroup_barrier(mem_flags::mem_threadgroup); simdgroup_half8x8 A; simdgroup_load(A, t, 8); simdgroup_float8x8 C = make_filled_simdgroup_matrix<float, 8>(1.0f); simdgroup_multiply_accumulate(C, A, A, C); simdgroup_store(C, out, 8);",
     [v + 1 for v in product(A, A)], **ONE)
rule("simdgroup_diagonal_matrix", "float", FILL + "simdgroup_load(A, a, 8); B = simdgroup_float8x8(2.0f); C = A * B; simdgroup_store(C, out, 8);", [2 * v for v in sum(A, [])], **ONE)
rule("elements_of_a_simdgroup_matrix_belong_to_threads", "float", FILL + "simdgroup_load(A, a, 8); A.thread_elements()[0] *= 2; A.thread_elements()[1] *= 2; simdgroup_store(A, out, 8);", [2 * v for v in sum(A, [])], **ONE)

# Atomics, relaxed. One element of out has the result, the rest is zero.
MEMORY = {"grid": (40,), "block": (16,)}


def atomic(name, call, value, kind="int", ctype=None, start="0"):
    pointer = f"(device {ctype or 'atomic_' + kind}*)out"
    rule(name, kind, call.replace("OUT", pointer), [value] + [0] * 39, **MEMORY)


V = N[:40]
atomic("atomic_fetch_add", "atomic_fetch_add_explicit(OUT, n[at], memory_order_relaxed);", sum(V))
atomic("atomic_fetch_sub", "atomic_fetch_sub_explicit(OUT, n[at], memory_order_relaxed);", -sum(V))
atomic("atomic_fetch_max", "atomic_fetch_max_explicit(OUT, n[at], memory_order_relaxed);", max(V))
atomic("atomic_fetch_min", "atomic_fetch_min_explicit(OUT, n[at], memory_order_relaxed);", min(V))
atomic("atomic_fetch_max_of_uint", "atomic_fetch_max_explicit(OUT, uint(n[at]), memory_order_relaxed);", max(v & 0xFFFFFFFF for v in V), "uint")
atomic("atomic_fetch_or", "atomic_fetch_or_explicit(OUT, n[at] & 63, memory_order_relaxed);", eval("|".join(f"({v} & 63)" for v in V)))
atomic("atomic_fetch_xor", "atomic_fetch_xor_explicit(OUT, n[at], memory_order_relaxed);", eval("^".join(f"({v})" for v in V)))
atomic("atomic_fetch_add_of_float", "atomic_fetch_add_explicit(OUT, float(n[at]), memory_order_relaxed);", sum(V), "float")
atomic("atomic_compare_exchange_in_a_loop", "device atomic_int* a = OUT; int old = atomic_load_explicit(a, memory_order_relaxed); while (!atomic_compare_exchange_weak_explicit(a, &old, old + n[at], memory_order_relaxed, memory_order_relaxed)) {}", sum(V))
atomic("atomic_compare_exchange_says_what_is_there", "device atomic_uint* a = OUT; if (at == 0) { uint e = 5; bool done = atomic_compare_exchange_weak_explicit(a, &e, 9u, memory_order_relaxed, memory_order_relaxed); atomic_store_explicit(a, e * 10 + done + 7, memory_order_relaxed); }", 7, "uint")
atomic("atomic_max_of_floats_by_their_bits", "if (n[at] > 0) atomic_fetch_max_explicit(OUT, as_type<int>(float(n[at])), memory_order_relaxed);", __import__("struct").unpack("<i", __import__("struct").pack("<f", max(V)))[0])
rule("atomic_fetch_and_of_threadgroup_memory", "int", "threadgroup atomic_int t; if (i == 0) atomic_store_explicit(&t, -1, memory_order_relaxed); threadgroup_barrier(mem_flags::mem_threadgroup); atomic_fetch_and_explicit(&t, n[at] | 5, memory_order_relaxed); threadgroup_barrier(mem_flags::mem_threadgroup); out[at] = atomic_load_explicit(&t, memory_order_relaxed);",
     lambda t, e: eval("&".join(f"({N[o.at]} | 5)" for o in group_of(t, e))), I, **MEMORY)
rule("atomic_exchange_passes_values_on", "int", "threadgroup atomic_int t; if (i == 0) atomic_store_explicit(&t, 100, memory_order_relaxed); threadgroup_barrier(mem_flags::mem_threadgroup); int old = atomic_exchange_explicit(&t, int(i), memory_order_relaxed); threadgroup_barrier(mem_flags::mem_threadgroup); atomic_fetch_add_explicit((device atomic_int*)out, old - int(i), memory_order_relaxed); if (i == 0) atomic_fetch_add_explicit((device atomic_int*)out, atomic_load_explicit(&t, memory_order_relaxed), memory_order_relaxed);",
     [300] + [0] * 39, I, **MEMORY)
rule("atomic_counter_gives_each_thread_a_place", "int", "uint place = atomic_fetch_add_explicit((device atomic_uint*)out, 1u, memory_order_relaxed); out[1 + place] = 3;", [40] + [3] * 40 + [0] * 9, grid=(40,), block=(16,))
rule("atomics_in_arrays_make_histograms", "int", "threadgroup atomic_uint bins[4]; if (i < 4) atomic_store_explicit(&bins[i], 0u, memory_order_relaxed); threadgroup_barrier(mem_flags::mem_threadgroup); atomic_fetch_add_explicit(&bins[n[at] & 3], 1u, memory_order_relaxed); threadgroup_barrier(mem_flags::mem_threadgroup); out[at] = int(atomic_load_explicit(&bins[i & 3], memory_order_relaxed));",
     lambda t, e: sum((N[o.at] & 3) == (t.index & 3) for o in group_of(t, e)), I, **MEMORY)
rule("structures_may_hold_atomics", "int", "device Counter* c = (device Counter*)out; atomic_fetch_add_explicit(&c->sum, n[at], memory_order_relaxed); atomic_fetch_max_explicit(&c->most, n[at], memory_order_relaxed);",
     [sum(V), max(V)] + [0] * 38, "", "struct Counter { atomic_int sum; atomic_int most; };", **MEMORY)

# Threadgroup memory and barriers.
rule("threadgroup_memory_as_an_argument", "int", "t[i] = n[at]; threadgroup_barrier(mem_flags::mem_threadgroup); out[at] = t[(i + 1) % w];",
     lambda t, e: N[group_of(t, e)[(t.index + 1) % t.width[0]].at], "threadgroup int* t [[threadgroup(0)]], uint w [[threads_per_threadgroup]], " + I, grid=(40,), block=(16,), options=["--threadgroup", "0=64"])
rule("two_threadgroup_arguments", "int", "t[i] = n[at]; u[i] = short(i); threadgroup_barrier(mem_flags::mem_threadgroup); out[at] = t[w - 1 - i] * 100 + u[w - 1 - i];",
     lambda t, e: N[group_of(t, e)[t.width[0] - 1 - t.index].at] * 100 + t.width[0] - 1 - t.index,
     "threadgroup int* t [[threadgroup(0)]], threadgroup short* u [[threadgroup(1)]], uint w [[threads_per_threadgroup]], " + I, grid=(40,), block=(16,), options=["--threadgroup", "0=64", "--threadgroup", "1=32"])
rule("return_of_a_threadgroup_before_a_barrier", "int", "threadgroup int t[16]; if (g == 1) return; t[i] = n[at]; threadgroup_barrier(mem_flags::mem_threadgroup); out[at] = t[15 - i];",
     lambda t, e: 0 if t.group[0] == 1 else N[t.at - t.index + 15 - t.index], "uint g [[threadgroup_position_in_grid]], " + I, grid=(48,), block=(16,))
rule("barrier_in_a_loop_with_a_uniform_bound_from_memory", "int", "threadgroup int t[16]; int s = n[at]; for (int k = 0; k < n[1] + 5; ++k) { t[i] = s; threadgroup_barrier(mem_flags::mem_threadgroup); s = t[i ^ 1] + 1; threadgroup_barrier(mem_flags::mem_threadgroup); } out[at] = s;",
     lambda t, e: N[t.at ^ ((N[1] + 5) & 1)] + max(N[1] + 5, 0), I, grid=(48,), block=(16,))
rule("barrier_in_a_loop_that_breaks_for_all", "int", "threadgroup int t[16]; int s = 0; for (int k = 0;; ++k) { t[i] = n[at] + k; threadgroup_barrier(mem_flags::mem_threadgroup); s += t[(i + 1) & 15]; threadgroup_barrier(mem_flags::mem_threadgroup); if (k == 2) break; } out[at] = s;",
     lambda t, e: 3 * N[t.at - t.index + (t.index + 1) % 16] + 3, I, grid=(48,), block=(16,))
rule("barrier_in_a_function", "int", "threadgroup int t[16]; t[i] = n[at]; out[at] = total_of(t, i);", lambda t, e: sum(N[o.at] for o in group_of(t, e)), I,
     "int total_of(threadgroup int* t, uint i) { for (uint s = 8; s > 0; s >>= 1) { threadgroup_barrier(mem_flags::mem_threadgroup); if (i < s) t[i] += t[i + s]; } threadgroup_barrier(mem_flags::mem_threadgroup); return t[0]; }", grid=(48,), block=(16,))
rule("barriers_in_both_branches_of_a_uniform_condition", "int", "threadgroup int t[16]; t[i] = n[at]; int s; if (n[0] > 1000) { threadgroup_barrier(mem_flags::mem_threadgroup); s = t[0]; } else { threadgroup_barrier(mem_flags::mem_threadgroup); s = t[15]; } out[at] = s;",
     lambda t, e: N[t.at - t.index + 15], I, grid=(48,), block=(16,))
rule("device_memory_is_seen_after_a_barrier", "int", "out[at] = n[at]; threadgroup_barrier(mem_flags::mem_device); int v = out[at ^ 1]; threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup); out[at] = v;", lambda t, e: N[t.at ^ 1], grid=(48,), block=(16,))
rule("threads_that_are_not_there_take_no_part", "int", "threadgroup int t[16]; t[i] = 1; threadgroup_barrier(mem_flags::mem_threadgroup); int s = 0; for (uint k = 0; k < w; ++k) s += t[k]; out[at] = s;",
     lambda t, e: t.width[0], "uint w [[threads_per_threadgroup]], " + I, grid=(45,), block=(16,))

# Function constants.
CONSTANT = "constant int factor [[function_constant(3)]]; constant bool has_factor = is_function_constant_defined(factor); constant int by = has_factor ? factor : 7; "
rule("function_constants_that_are_given", "int", "out[at] = n[at] * by;", lambda t, e: N[t.at] * 5, "", CONSTANT, options=["--constant", "3=5"])
rule("function_constants_that_are_not_given", "int", "out[at] = n[at] * by;", lambda t, e: N[t.at] * 7, "", CONSTANT.replace("factor", "scale"))
rule("function_constants_of_other_types", "float", "if (flag) out[at] = n[at] * ratio;", lambda t, e: N[t.at] * 0.5, "",
     "constant bool flag [[function_constant(0)]]; constant float ratio [[function_constant(1)]];", options=["--constant", "0=true", "--constant", "1=0.5"])
rule("parameters_that_a_function_constant_leaves_out", "int", "out[at] = has_more ? more[at] : n[at];", lambda t, e: N[t.at], "device const int* more [[buffer(5), function_constant(has_more)]]", "constant bool has_more [[function_constant(2)]];", options=["--constant", "2=false", "--buffer", "5=i32:0"])
rule("parameters_that_a_function_constant_brings", "int", "out[at] = has_some ? some[at & 1] : n[at];", lambda t, e: 8 + t.at % 2, "device const int* some [[buffer(5), function_constant(has_some)]]",
     "constant bool has_some [[function_constant(2)]];", options=["--constant", "2=true", "--buffer", "5=i32:8,9"])

# Arguments in constant memory.
rule("structures_as_arguments", "int", "out[at] = n[at] * s.scale + s.offsets[1];", lambda t, e: N[t.at] * 3 + 9, "constant Settings& s [[buffer(2)]]", "struct Settings { int scale; int offsets[2]; };", options=["--buffer", "2=i32:3,8,9"])
rule("vectors_as_arguments", "float", "float2 l = v * 2; l = at & 1 ? (l) : v; out[at] = l.y + w;", lambda t, e: 8.5 if t.at & 1 else 4.5, "constant float2& v [[buffer(2)]], constant float& w [[buffer(3)]]", options=["--buffer", "2=f32:1,4", "--buffer", "3=f32:0.5"])
rule("buffers_without_an_index_follow_each_other", "int", "out[at] = n[at] + a[0] * 10 + b[0];", lambda t, e: N[t.at] + 34, "device const int* a, device const int* b", options=["--buffer", "2=i32:3", "--buffer", "3=i32:4"])

# Conditions around barriers.
rule("a_condition_that_was_known_before_the_outer_one", "int",
     "threadgroup int s[32]; const bool known = n[at] > 0; out[at] = known ? 1 : 3; s[at % 32] = 4; threadgroup_barrier(mem_flags::mem_threadgroup);\n"
     "  if (at % 3 == 0) { out[at] = 2; threadgroup_barrier(mem_flags::mem_threadgroup); if (known) { threadgroup_barrier(mem_flags::mem_threadgroup); out[at] = s[at % 32]; } }",
     lambda t, e: (4 if N[t.at] > 0 else 2) if t.at % 3 == 0 else 1 if N[t.at] > 0 else 3)
