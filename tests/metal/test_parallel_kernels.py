"""Scans, sorts, reductions, atomics and the language's corners as Apple's developers write them, against NumPy: in the interpreter with --check and on the device; and as
code that ptxas takes."""
import numpy as np
import pytest
from programs import RNG, Programs, f4, poison, run_program
from test_rules import assemble

PROGRAMS = Programs()
program = PROGRAMS.add

COUNTS = RNG.integers(0, 100, 500).astype("u4")
program("exclusive_scan_of_blocks_by_simdgroups", """
template <typename T, ushort BLOCK> static T block_scan(T value, threadgroup T* sums, ushort lid, ushort lane, ushort sg) {
  T scanned = simd_prefix_exclusive_sum(value);
  if (lane == 31) sums[sg] = scanned + value;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (sg == 0) sums[lane] = simd_prefix_exclusive_sum(lane < BLOCK / 32 ? sums[lane] : T(0));
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return scanned + sums[sg];
}
kernel void scan(device const uint* in [[buffer(0)]], device uint* out [[buffer(1)]], device uint* totals [[buffer(2)]], constant uint& n [[buffer(3)]],
    uint gid [[thread_position_in_grid]], uint group [[threadgroup_position_in_grid]], ushort lid [[thread_position_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]], ushort sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup uint sums[32];
  const uint v = gid < n ? in[gid] : 0;
  const uint before = block_scan<uint, 128>(v, sums, lid, lane, sg);
  if (gid < n) out[gid] = before;
  if (lid == 127) totals[group] = before + v;
}
""", "512", "128", [COUNTS, poison(500, "u4"), poison(4, "u4"), "u32:500"],
        {1: (np.concatenate([np.cumsum(b) - b for b in np.split(COUNTS, [128, 256, 384])]), 0), 2: ([b.sum() for b in np.split(COUNTS, [128, 256, 384])], 0)})

RADIX = RNG.integers(0, 2**32, 256, dtype="u4")
program("radix_sort_of_a_threadgroup_with_ballots", """
constant constexpr ushort kBits = 4, kBins = 1 << kBits;
kernel void sort(device uint* keys [[buffer(0)]], device uint* places [[buffer(1)]], ushort lid [[thread_index_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]], ushort sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup uint tile[256], place[256];
  threadgroup ushort counts[kBins][8];
  uint key = keys[lid], at = lid;
  for (ushort shift = 0; shift < 32; shift += kBits) {
    const ushort digit = extract_bits(key, shift, kBits);
    ulong peers = ~0ul;
    for (ushort b = 0; b < kBits; ++b) {
      const ulong vote = (ulong)(simd_vote::vote_t)simd_ballot((digit >> b) & 1);
      peers &= (digit >> b) & 1 ? vote : ~vote;
    }
    peers &= 0xFFFFFFFFul;
    const ushort rank = popcount(uint(peers) & ((1u << lane) - 1u));
    for (ushort b = lane; b < kBins; b += 32) counts[b][sg] = 0;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    if (rank == 0) counts[digit][sg] = popcount(uint(peers));
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (sg == 0) {
      uint carry = 0;
      for (ushort k = 0; k < kBins * 8; k += 32) {
        threadgroup ushort& c = counts[(k + lane) / 8][(k + lane) % 8];
        const uint own = c, sum = simd_prefix_inclusive_sum(own);
        c = ushort(carry + sum - own);
        carry += simd_broadcast(sum, ushort(31));
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const ushort to = counts[digit][sg] + rank;
    tile[to] = key;
    place[to] = at;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    key = tile[lid];
    at = place[lid];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  keys[lid] = key;
  places[lid] = at;
}
""", "256", "256", [RADIX, poison(256, "u4")], {0: (np.sort(RADIX), 0), 1: (np.argsort(RADIX, kind="stable"), 0)})

SAMPLES = f4(1000)
program("reduce_by_shuffles_and_a_last_group_that_finishes", """
struct Stats { float sum, low, high; uint count; };
static Stats both(Stats a, Stats b) { return {a.sum + b.sum, min(a.low, b.low), max(a.high, b.high), a.count + b.count}; }
static Stats down(Stats s, ushort by) {
  return {simd_shuffle_down(s.sum, by), simd_shuffle_down(s.low, by), simd_shuffle_down(s.high, by), simd_shuffle_down(s.count, by)};
}
kernel void stats(device const float* x [[buffer(0)]], device Stats* out [[buffer(1)]], constant uint& n [[buffer(2)]], uint i [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]], uint total [[threads_per_grid]], ushort lane [[thread_index_in_simdgroup]], ushort sg [[simdgroup_index_in_threadgroup]],
    ushort sgs [[simdgroups_per_threadgroup]]) {
  threadgroup Stats parts[8];
  Stats mine = {0, INFINITY, -INFINITY, 0};
  for (; i < n; i += total) mine = both(mine, Stats{x[i], x[i], x[i], 1});
  for (ushort by = 16; by; by >>= 1) {
    const Stats other = down(mine, by);
    if (lane < by) mine = both(mine, other);
  }
  if (lane == 0) parts[sg] = mine;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (sg != 0 || lane != 0) return;
  for (ushort k = 1; k < sgs; ++k) mine = both(mine, parts[k]);
  out[group] = mine;
}
""", "256", "128", [SAMPLES, poison(8, "u4"), "u32:1000"],
        {1: (lambda got: np.concatenate([[got.view("f4")[0::4].sum()], [got.view("f4")[1::4].min()], [got.view("f4")[2::4].max()], [got.view("u4")[3::4].sum()]]),
             [SAMPLES.astype("f8").sum(), SAMPLES.min(), SAMPLES.max(), 1000], 1e-3)})

EDGES = RNG.integers(0, 40, (150, 2)).astype("u4")
WEIGHTS = RNG.integers(1, 1000, 150).astype("i4")


def extrema(node):
    weights = [w for edge, w in zip(EDGES.tolist(), WEIGHTS.tolist()) for end in edge if end == node]
    bits = flips = 0
    for w in weights:
        bits, flips = bits | 1 << (w & 31), flips ^ w
    return min([2**31 - 1, *weights]), max([-(2**31), *weights]), (bits ^ 2**31) - 2**31, flips


program("extrema_and_bits_by_atomics", """
struct Node { atomic_int low; atomic_int high; atomic_uint bits; atomic_uint flips; };
kernel void nodes(device const uint2* edges [[buffer(0)]], device const int* weights [[buffer(1)]], device Node* nodes [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  for (short side = 0; side < 2; ++side) {
    device Node& node = nodes[edges[i][side]];
    atomic_fetch_min_explicit(&node.low, weights[i], memory_order_relaxed);
    atomic_fetch_max_explicit(&node.high, weights[i], memory_order_relaxed);
    atomic_fetch_or_explicit(&node.bits, 1u << (weights[i] & 31), memory_order_relaxed);
    atomic_fetch_xor_explicit(&node.flips, uint(weights[i]), memory_order_relaxed);
  }
}
""", "150", "50", [EDGES, WEIGHTS, np.tile(np.array([2**31 - 1, -2**31, 0, 0], "i4"), 40)],
        {2: ([word for v in range(40) for word in extrema(v)], 0)})

GRID = f4(12, 20)
program("jacobi_with_threadgroup_pointers_that_change_places", """
kernel void jacobi(device float* x [[buffer(0)]], constant uint2& size [[buffer(1)]], constant uint& rounds [[buffer(2)]], threadgroup float* a [[threadgroup(0)]],
    threadgroup float* b [[threadgroup(1)]], uint t [[thread_index_in_threadgroup]], uint count [[threads_per_threadgroup]]) {
  const uint n = size.x * size.y;
  for (uint k = t; k < n; k += count) a[k] = b[k] = x[k];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  threadgroup float *from = a, *to = b;
  for (uint r = 0; r < rounds; ++r) {
    for (uint k = t; k < n; k += count) {
      const uint2 p(k % size.x, k / size.x);
      if (p.x == 0 || p.y == 0 || p.x + 1 == size.x || p.y + 1 == size.y) continue;
      to[k] = 0.25f * (from[k - 1] + from[k + 1] + from[k - size.x] + from[k + size.x]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup float* swapped = from;
    from = to;
    to = swapped;
  }
  for (uint k = t; k < n; k += count) x[k] = from[k];
}
""", "64", "64", [GRID, "u32:20,12", "u32:5"], {0: ((lambda g: [g.__setitem__((slice(1, -1), slice(1, -1)), 0.25 * (g[1:-1, :-2] + g[1:-1, 2:] + g[:-2, 1:-1] + g[2:, 1:-1]))
                                                                for _ in range(5)] and g)(GRID.astype("f8")), 1e-4)}, "--threadgroup", "0=960", "--threadgroup", "1=960")

WORDS = RNG.integers(0, 2**32, 64, dtype="u4")


def reversed_bits(v):
    return int(f"{int(v):032b}"[::-1], 2)


program("bits_and_reinterpretation", """
union Bits { float f; uint u; uchar4 c; };
enum class Op : ushort { clz, reverse, rotated, inserted, bytes, count };
static uint apply(Op op, uint v, uint i) {
  switch (op) {
    case Op::clz: return clz(v) * 100 + ctz(v | 0x80000000u);
    case Op::reverse: return reverse_bits(v);
    case Op::rotated: return rotate(v, i);
    case Op::inserted: return insert_bits(v, i, 8u, 12u);
    case Op::bytes: {
      const uchar4 c = as_type<uchar4>(v);
      return as_type<uint>(c.wzyx) ^ uint(as_type<ushort2>(v).y);
    }
    default: return 0xDEAD;
  }
}
kernel void bits(device const uint* x [[buffer(0)]], device uint* y [[buffer(1)]], device float* z [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  for (ushort op = 0; op <= static_cast<ushort>(Op::count); ++op) y[i * 6 + op] = apply(Op(op), x[i], i);
  const uint exponent = (x[i] >> 23) & 0xff;
  z[i] = as_type<float>((x[i] & 0x007fffffu) | 0x3f800000u) + float(exponent);
}
""", "64", "16", [WORDS, poison(384, "u4"), poison(64, "f4")],
        {1: ([r for i, v in enumerate(map(int, WORDS)) for r in (
            (32 - v.bit_length()) * 100 + ((v | 2**31) & -(v | 2**31)).bit_length() - 1, reversed_bits(v), (v << (i % 32) | v >> (-i % 32)) & 0xFFFFFFFF if i % 32 else v,
            (v & ~(0xFFF << 8)) | (i & 0xFFF) << 8, int.from_bytes(v.to_bytes(4, "little"), "big") ^ (v >> 16), 0xDEAD)], 0),
         2: ((WORDS & 0x7FFFFF | 0x3F800000).view("f4").astype("f8") + (WORDS >> 23 & 0xFF), 1e-6)})

program("integers_that_wrap_saturate_and_are_short", """
kernel void shorts(device const short2* x [[buffer(0)]], device int* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  const short a = x[i].x, b = x[i].y;
  ushort u = a;
  u *= 3;
  char c = char(a);
  c += char(b);
  device int* o = y + 8 * i;
  o[0] = addsat(a, b);
  o[1] = subsat(ushort(a), ushort(b));
  o[2] = mulhi(int(a) << 16, int(b) << 8);
  o[3] = u;
  o[4] = c;
  o[5] = absdiff(a, b);
  o[6] = hadd(a, b);
  o[7] = int((long(a) * b * 65536 * 65536) >> 32);
}
""", "32", "32", [WORDS.view("i2")[:64].copy(), poison(256, "i4")],
        {1: ([r for a, b in WORDS.view("i2")[:64].reshape(32, 2).astype(int).tolist() for r in (
            max(-32768, min(32767, a + b)), max(0, a % 65536 - b % 65536), (a << 16) * (b << 8) >> 32, a * 3 % 65536, (a + b + 128) % 256 - 128, abs(a - b), (a + b) >> 1, a * b)], 0)})

PLANE = f4(6, 9)
program("constant_tables_and_structures_by_value", """
struct Tap { packed_short2 at; float weight; };
constant Tap kTaps[] = {{{-1, 0}, 0.25f}, {{1, 0}, 0.25f}, {{0, -1}, 0.125f}, {{0, 1}, 0.375f}};
constant float3 kColours[2][2] = {{{1, 2, 3}, {4, 5, 6}}, {float3(7), float3(8, 9, 10)}};
struct View {
  const device float* data; int2 extent;
  float at(int2 p) const { p = clamp(p, int2(0), extent - 1); return data[p.y * extent.x + p.x]; }
  View moved(int by) const { View v = *this; v.data += by; v.extent.x -= by; return v; }
};
static float gathered(View view, int2 p) {
  float sum = 0;
  for (const constant Tap& tap : kTaps) sum += tap.weight * view.at(p + int2(short2(tap.at)));
  return sum;
}
kernel void taps(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int2& extent [[buffer(2)]], ushort2 p [[thread_position_in_grid]]) {
  const View view{x, extent};
  y[p.y * extent.x + p.x] = gathered(view, int2(p)) + kColours[p.x & 1][p.y & 1][(p.x + p.y) % 3];
}
""", "9,6", "4,4", [PLANE, poison(54, "f4"), "i32:9,6"],
        {1: ([sum(w * PLANE[min(max(y + dy, 0), 5), min(max(x + dx, 0), 8)] for dx, dy, w in ((-1, 0, 0.25), (1, 0, 0.25), (0, -1, 0.125), (0, 1, 0.375)))
              + [[[1, 2, 3], [4, 5, 6]], [[7, 7, 7], [8, 9, 10]]][x & 1][y & 1][(x + y) % 3] for y in range(6) for x in range(9)], 1e-5)})

MIXED = f4(40)
program("operators_as_templates_with_traits", """
template <typename T> struct Limits { static constexpr constant T max = metal::numeric_limits<T>::max(); static constexpr constant T min = metal::numeric_limits<T>::lowest(); };
struct Sum { template <typename T> T operator()(T a, T b) const { return a + b; } template <typename T> static constexpr T init() { return T(0); } };
struct Max { template <typename T> T operator()(T a, T b) const { return a > b ? a : b; } template <typename T> static constexpr T init() { return Limits<T>::min; } };
template <typename U, metal::enable_if_t<metal::is_floating_point_v<U>, bool> = true> U rounded(U v) { return rint(v * 8); }
template <typename U, metal::enable_if_t<metal::is_integral_v<U>, bool> = true> U rounded(U v) { return v; }
template <typename T, typename Op, int N_READS = 3> [[kernel]] void fold(const device T* in, device T* out, constant int& n, uint i [[thread_position_in_grid]]) {
  Op op;
  T total = Op::template init<T>();
  MTL_PRAGMA_UNROLL
  for (int r = 0; r < N_READS; ++r) {
    const int at = int(i) * N_READS + r;
    if (at >= n) break;
    total = op(total, rounded(in[at]));
  }
  out[i] = total;
}
#define instantiate(name, type, op) template [[host_name(name)]] [[kernel]] void fold<type, op>(const device type*, device type*, constant int&, uint);
#define instantiate_all(tname, type) instantiate("sum_" #tname, type, Sum) instantiate("max_" #tname, type, Max)
instantiate_all(int32, int32_t)
instantiate_all(float32, float)
instantiate_all(float16, half)
""".replace("template <typename T> struct Limits", '#define MTL_PRAGMA_UNROLL _Pragma("clang loop unroll(full)")\ntemplate <typename T> struct Limits', 1),
        "14", "14", [MIXED.astype("f2"), poison(14, "f2"), "i32:40"],
        {1: ([np.rint(MIXED.astype("f2").astype("f8") * 8)[k:k + 3].max() for k in range(0, 40, 3)], 0)}, "--kernel", "max_float16")

program("variadic_templates_and_compile_time_choice", """
template <typename... Ts> constexpr int total_size() { return (0 + ... + int(sizeof(Ts))); }
template <typename F, typename... Ts> float each(F f, Ts... values) { return (f(values) + ...); }
template <int N> struct factorial { static constexpr constant int value = N * factorial<N - 1>::value; };
template <> struct factorial<0> { static constexpr constant int value = 1; };
template <typename T> constexpr int kind() { if constexpr (is_same_v<T, half>) return 1; else if constexpr (sizeof(T) == 8) return 2; else return 3; }
constexpr int fibonacci(int n) { int a = 0, b = 1; for (int i = 0; i < n; ++i) { const int c = a + b; a = b; b = c; } return a; }
kernel void meta(device float* out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  static_assert(factorial<5>::value == 120, "");
  const float by = float(i) + 1;
  auto scaled = [=](float v) { return v * by; };
  float r[] = {float(total_size<char, half4, packed_float3>()), each(scaled, 1, 2.5f, half(3)), float(factorial<6>::value), float(kind<half>() * 100 + kind<long>() * 10 + kind<int>()),
               float(fibonacci(10))};
  array<float, 5> copy;
  for (size_t k = 0; k < copy.size(); ++k) copy[k] = r[k];
  for (uint k = 0; k < 5; ++k) out[i * 5 + k] = copy[4 - k];
}
""", "3", "3", [poison(15, "f4")], {0: ([r for i in range(3) for r in (55, 123, 720, 6.5 * (i + 1), 21)], 1e-6)})

VECTORS = f4(10, 3)
MATRIX = f4(3, 3)
program("matrices_geometry_and_packed_vectors", """
struct Vertex { packed_float3 position; uchar4 colour; packed_half4 weights; };
kernel void geometry(device Vertex* v [[buffer(0)]], constant float3x3& m [[buffer(1)]], device float* out [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  float3 p = v[i].position;
  p = transpose(m) * (m * p) + cross(p, float3(0, 0, 1));
  v[i].position = p;
  v[i].position[1] += 1;
  v[i].colour.xz = uchar2(v[i].colour.zx);
  v[i].weights = half4(float4(v[i].weights) * 2);
  const half3x2 h = half3x2(half2(1, 2), half2(3, 4), half2(5, 6));
  out[i] = dot(normalize(p), float3(0, 1, 0)) + determinant(m) + distance(p.xy, p.yx) + (h * half3(1, 1, 2)).y;
}
""", "10", "5", [np.concatenate([VECTORS.view("u1").reshape(10, 12), np.tile(np.array([1, 2, 3, 4], "u1"), (10, 1)), np.tile(np.array([.5, 1, 2, 4], "f2").view("u1"), (10, 1))], 1).copy(),
                     np.hstack([MATRIX, np.zeros((3, 1), "f4")]), poison(10, "f4")],
        {0: (lambda got: np.concatenate([got.view("u1").reshape(10, 24)[:, :12].copy().view("f4"), got.view("u1").reshape(10, 24)[:, 12:16], got.view("u1").reshape(10, 24)[:, 16:].copy().view("f2")], 1),
             (lambda p: np.concatenate([p + [0, 1, 0], np.tile([3, 2, 1, 4, 1, 2, 4, 8], (10, 1))], 1))(
                 VECTORS.astype("f8") @ MATRIX.T.T @ MATRIX.T + np.cross(VECTORS, [0, 0, 1])), 1e-4),
         2: ((lambda p: p[:, 1] / np.linalg.norm(p, axis=1) + np.linalg.det(MATRIX.astype("f8")) + np.abs(p[:, 0] - p[:, 1]) * np.sqrt(2) + 18)(
             VECTORS.astype("f8") @ MATRIX @ MATRIX.T + np.cross(VECTORS, [0, 0, 1])), 1e-3)})

program("pointers_into_different_memories_are_not_equal", """
kernel void compared(device int* a [[buffer(3)]], device int* b, constant int* c, uint i [[thread_position_in_grid]]) {
  device int* p = c[i] & 1 ? b : a;
  device int* q = c[i] & 2 ? nullptr : p;
  device int* r = c[i] & 4 ? p + 1 : b + 1;
  a[i] = (p == b) + 2 * (a == b) + 4 * (q == nullptr) + 8 * (p != a) + 16 * (q != p) + 32 * (r == b + 1) + 64 * (r - 1 == p)
       + 128 * (ulong(p) == ulong(b)) + 256 * (ulong(q) == 0) + 512 * (ulong(&b[2]) % 16 == 8 && ulong(p) % 16 == 0) + 1024 * int(ulong(r) - ulong(p + 1) == 0);
  b[i] = int(r - 1 == b) + int(&a[i] == &b[i]);
}
""", "8", "8", [None, None, None, poison(8, "i4"), poison(8, "i4"), np.arange(8, dtype="i4")],
        {3: ([(k & 1) + 4 * (k >> 1 & 1) + 8 * (k & 1) + 16 * (k >> 1 & 1) + 32 * (not k & 4 or k & 1) + 64 * (k >> 2 & 1 or k & 1)
             + 128 * (k & 1) + 256 * (k >> 1 & 1) + 512 + 1024 * (k >> 2 & 1 or k & 1) for k in range(8)], 0),
         4: ([int(not k & 4 or k & 1) for k in range(8)], 0)})


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("where", ["check", "device"])
def test_program(vortex, device, tmp_path, name, where):
    run_program(vortex, tmp_path, PROGRAMS[name], *(["--check"] if where == "check" else ["--device", device]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_is_code_for_nvidia(vortex, tmp_path, name):
    (tmp_path / "k.metal").write_text(PROGRAMS[name][0])
    assemble(vortex, tmp_path / "k.metal", list(PROGRAMS).index(name), *PROGRAMS[name][5])
