"""Whole programs as users of Metal write them, of many features at once, against NumPy: in the interpreter with --check and on the device; and as code that ptxas
takes.

Results start as a pattern that no program writes, so what is not written is seen."""
import math

import numpy as np
import pytest
from programs import RNG, Programs, f4, poison, run_program
from test_rules import assemble

PROGRAMS = Programs()
program = PROGRAMS.add


def truncated(a, b):
    return int(math.copysign(abs(a) // b, a))


def orbit(x, y, rounds):
    n = 0
    while n < rounds and abs(x) + abs(y) < 4096:
        x, y, n = truncated(x * x - y * y, 8) + 3, truncated(x * y, 4) - 2, n + 1
    return n


program("orbits_of_integers", """
struct Uniforms { uint2 size; ushort rounds; };
kernel void orbits(device ushort* counts [[buffer(0)]], constant Uniforms& u [[buffer(1)]], uint2 gid [[thread_position_in_grid]]) {
  if (any(gid >= u.size)) return;
  int2 z = int2(gid) - int2(u.size / 2);
  ushort n = 0;
  for (; n < u.rounds && abs(z.x) + abs(z.y) < 4096; ++n)
    z = int2((z.x * z.x - z.y * z.y) / 8 + 3, z.x * z.y / 4 - 2);
  counts[gid.y * u.size.x + gid.x] = n;
}
""", "24,16", "8,8", [poison(273, "u2"), "u32:21,13,40,0"], {0: ([orbit(x - 10, y - 6, 40) for y in range(13) for x in range(21)], 0)})

IMAGE = f4(19, 37)
PADDED = np.pad(IMAGE.astype("f8"), 1, "edge")
WEIGHTS = np.outer([1, 2, 1], [1, 2, 1]) / 16
program("blur_with_a_halo_of_a_tile", """
constant float kWeights[3][3] = {{0.0625, 0.125, 0.0625}, {0.125, 0.25, 0.125}, {0.0625, 0.125, 0.0625}};
constexpr constant int TILE = 8;
kernel void blur(const device float* in [[buffer(0)]], device float* out [[buffer(1)]], constant int2& extent [[buffer(2)]],
                 ushort2 lid [[thread_position_in_threadgroup]], uint2 group [[threadgroup_position_in_grid]]) {
  threadgroup float tile[TILE + 2][TILE + 2];
  const int2 origin = int2(group) * TILE - 1;
  for (int k = lid.y * TILE + lid.x; k < (TILE + 2) * (TILE + 2); k += TILE * TILE) {
    const int2 at = clamp(origin + int2(k % (TILE + 2), k / (TILE + 2)), int2(0), extent - 1);
    tile[k / (TILE + 2)][k % (TILE + 2)] = in[at.y * extent.x + at.x];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const int2 at = origin + 1 + int2(lid);
  if (at.x >= extent.x || at.y >= extent.y) return;
  float sum = 0;
#pragma unroll
  for (int dy = 0; dy < 3; dy++)
    for (int dx = 0; dx < 3; dx++) sum = fma(kWeights[dy][dx], tile[lid.y + dy][lid.x + dx], sum);
  out[at.y * extent.x + at.x] = sum;
}
""", "40,24", "8,8", [IMAGE, poison(19 * 37, "f4"), "i32:37,19"],
        {1: (sum(WEIGHTS[y, x] * PADDED[y:y + 19, x:x + 37] for y in range(3) for x in range(3)), 1e-5)})

KEYS = RNG.integers(-(2**31), 2**31, (3, 64), dtype="i4")
program("bitonic_sort_in_threadgroup_memory", """
template <typename T> inline void order(threadgroup T& a, threadgroup T& b, bool ascending) {
  if ((a > b) == ascending) { T t = a; a = b; b = t; }
}
kernel void sort(device int* keys [[buffer(0)]], uint i [[thread_position_in_grid]], uint local [[thread_index_in_threadgroup]],
                 threadgroup int* shared [[threadgroup(0)]], uint count [[threads_per_threadgroup]]) {
  shared[local] = keys[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint size = 2; size <= count; size <<= 1)
    for (uint stride = size >> 1; stride > 0; stride >>= 1) {
      uint other = local ^ stride;
      if (other > local) order(shared[local], shared[other], (local & size) == 0);
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
  keys[i] = shared[local];
}
""", "192", "64", [KEYS], {0: (np.sort(KEYS), 0)}, "--threadgroup", "0=256")

BYTES = RNG.integers(0, 256, 5000, dtype="u1")
program("histogram_of_two_levels", """
kernel void histogram(device const uchar* data [[buffer(0)]], device atomic_uint* bins [[buffer(1)]], constant uint& count [[buffer(2)]],
                      uint tid [[thread_position_in_grid]], uint lane [[thread_index_in_threadgroup]], uint width [[threads_per_threadgroup]],
                      uint total [[threads_per_grid]]) {
  threadgroup atomic_uint local[256];
  for (uint b = lane; b < 256; b += width) atomic_store_explicit(&local[b], 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = tid; i < count; i += total) atomic_fetch_add_explicit(&local[data[i]], 1, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint b = lane; b < 256; b += width) {
    uint seen = atomic_load_explicit(&local[b], memory_order_relaxed);
    if (seen != 0) atomic_fetch_add_explicit(&bins[b], seen, memory_order_relaxed);
  }
}
""", "192", "96", [BYTES, np.zeros(256, "u4"), "u32:5000"], {1: (np.bincount(BYTES, minlength=256), 0)})

BODIES = np.hstack([f4(45, 3), abs(f4(45, 1)) + 0.5]).astype("f4")
AWAY = BODIES[None, :, :3].astype("f8") - BODIES[:, None, :3]
FORCE = (AWAY * (BODIES[None, :, 3] / ((AWAY**2).sum(-1) + 0.25) ** 1.5)[..., None]).sum(1)
program("bodies_in_tiles", """
struct Body { packed_float3 position; float mass; };
static float3 pull(float3 p, const threadgroup Body& other, float softening) {
  float3 d = float3(other.position) - p;
  float inverse = rsqrt(dot(d, d) + softening);
  return d * (other.mass * inverse * inverse * inverse);
}
kernel void bodies(device const Body* body [[buffer(0)]], device packed_float3* force [[buffer(1)]], constant uint& count [[buffer(2)]],
                   constant float& softening [[buffer(3)]], uint i [[thread_position_in_grid]], uint lane [[thread_position_in_threadgroup]],
                   uint width [[threads_per_threadgroup]]) {
  threadgroup Body tile[32];
  const float3 mine = i < count ? float3(body[i].position) : float3(0);
  float3 sum = 0.0f;
  for (uint first = 0; first < count; first += width) {
    if (first + lane < count) tile[lane] = body[first + lane];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = 0; k < min(width, count - first); ++k) sum += pull(mine, tile[k], softening);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (i < count) force[i] = sum;
}
""", "64", "32", [BODIES, poison(135, "f4"), "u32:45", "f32:0.25"], {1: (FORCE, 1e-4)})

WIDE = f4(7, 101)
SHIFTED = np.exp(WIDE.astype("f8") - WIDE.max(-1, keepdims=True))
program("softmax_by_simdgroups", """
constexpr constant uint kSimd = 32;
template <typename T, typename Op> T across(T value, T neutral, threadgroup T* scratch, uint lane, uint simd, uint simds, Op op) {
  value = op(value);
  if (lane == 0) scratch[simd] = value;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  value = op(lane < simds ? scratch[lane] : neutral);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return value;
}
struct Max { float operator()(float v) const { return simd_max(v); } };
struct Sum { float operator()(float v) const { return simd_sum(v); } };
kernel void softmax(device const float* in [[buffer(0)]], device float* out [[buffer(1)]], constant uint& columns [[buffer(2)]],
                    uint row [[threadgroup_position_in_grid]], uint tid [[thread_index_in_threadgroup]], uint width [[threads_per_threadgroup]],
                    uint lane [[thread_index_in_simdgroup]], uint simd [[simdgroup_index_in_threadgroup]],
                    uint simds [[simdgroups_per_threadgroup]]) {
  threadgroup float scratch[kSimd];
  in += row * columns;
  out += row * columns;
  float most = -INFINITY, sum = 0;
  for (uint c = tid; c < columns; c += width) most = max(most, in[c]);
  most = across(most, -INFINITY, scratch, lane, simd, simds, Max());
  for (uint c = tid; c < columns; c += width) sum += exp(in[c] - most);
  sum = across(sum, 0.0f, scratch, lane, simd, simds, Sum());
  for (uint c = tid; c < columns; c += width) out[c] = exp(in[c] - most) / sum;
}
""", "448", "64", [WIDE, poison(707, "f4"), "u32:101"], {1: (SHIFTED / SHIFTED.sum(-1, keepdims=True), 1e-5)})

A, B = RNG.integers(-4, 5, (24, 40)).astype("f2"), RNG.integers(-4, 5, (40, 16)).astype("f2")
program("gemm_of_simdgroup_matrices", """
kernel void gemm(device const half* A [[buffer(0)]], device const half* B [[buffer(1)]], device float* C [[buffer(2)]], constant uint3& mnk [[buffer(3)]],
                 uint2 group [[threadgroup_position_in_grid]]) {
  simdgroup_float8x8 acc = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  for (uint k = 0; k < mnk.z; k += 8) {
    simdgroup_half8x8 a, b;
    simdgroup_load(a, A + group.y * 8 * mnk.z + k, mnk.z);
    simdgroup_load(b, B, mnk.y, ulong2(group.x * 8, k));
    simdgroup_multiply_accumulate(acc, a, b, acc);
  }
  simdgroup_store(acc, C, mnk.y, ulong2(group.x * 8, group.y * 8));
}
""", "64,3", "32", [A, B, poison(384, "f4"), "u32:24,16,40,0"], {2: (A.astype("f4") @ B.astype("f4"), 0)})

FIELD = f4(6, 7, 9)
OUT3 = FIELD.astype("f8").copy()
INNER = (slice(1, -1),) * 3
OUT3[INNER] = -6 * FIELD[INNER] + sum(np.roll(FIELD.astype("f8"), s, d)[INNER] for d in range(3) for s in (-1, 1))
program("stencil_with_function_constants", """
constant bool periodic [[function_constant(0)]];
constant float center [[function_constant(1)]];
constant float factor = is_function_constant_defined(center) ? center : -6.0f;
struct Grid {
  uint3 n;
  size_t at(uint3 p) constant const { return (size_t(p.z) * n.y + p.y) * n.x + p.x; }
  bool edge(uint3 p) constant const { return any(p == 0u) || any(p == n - 1); }
};
kernel void stencil(device const float* in [[buffer(0)]], device float* out [[buffer(1)]], constant Grid& grid [[buffer(2)]],
                    uint3 p [[thread_position_in_grid]]) {
  if (!all(p < grid.n)) return;
  if (!periodic && grid.edge(p)) { out[grid.at(p)] = in[grid.at(p)]; return; }
  const int3 steps[] = {int3(1, 0, 0), int3(0, 1, 0), int3(0, 0, 1)};
  float sum = factor * in[grid.at(p)];
  for (const thread auto& step : steps)
    for (int sign = -1; sign <= 1; sign += 2) sum += in[grid.at(uint3((int3(p) + sign * step + int3(grid.n)) % int3(grid.n)))];
  out[grid.at(p)] = sum;
}
""", "12,8,6", "4,4,2", [FIELD, poison(378, "f4"), "u32:9,7,6,0"], {1: (OUT3, 1e-5)}, "--constant", "0=false")

POINTS, TURN = f4(50, 4), f4(4, 4)  # TURN[column][row] in Metal
MOVED = POINTS.astype("f8") @ TURN
program("transform_of_vertices", """
struct Vertex { float4 position; half4 color; };
struct Scene { float4x4 transform; float2 fade; uint count; };
kernel void vertices(device const float4* in [[buffer(0)]], device Vertex* out [[buffer(1)]], constant Scene& scene [[buffer(2)]], uint id [[thread_position_in_grid]]) {
  if (id >= scene.count) return;
  Vertex v;
  v.position = scene.transform * in[id];
  const float near = saturate(mix(scene.fade.x, scene.fade.y, smoothstep(-2.0f, 2.0f, v.position.z)));
  v.color = half4(half3(v.position.xyz * near), 1.0h);
  v.color.rb = v.color.br;
  out[id] = v;
}
""", "64", "32", [POINTS, poison(50 * 8, "f4"), np.concatenate([TURN.ravel(), np.array([0.25, 0.75, 0, 0], "f4")]).view("u4")
                 | np.array([0] * 18 + [50, 0], "u4")], {1: None})


def colored():
    t = np.clip((MOVED[:, 2] + 2) / 4, 0, 1)
    near = np.clip(0.25 + 0.5 * t * t * (3 - 2 * t), 0, 1)
    color = np.ones((50, 4))
    color[:, :3] = (MOVED[:, :3] * near[:, None])[:, ::-1]
    return color


PROGRAMS["transform_of_vertices"][4][1] = (lambda got: np.hstack([got.reshape(50, 8)[:, :4], got.reshape(50, 8)[:, 4:6].copy().view("f2")]),
                                           np.hstack([MOVED, colored()]), 4e-3)


def pcg(state):
    word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737 & 0xFFFFFFFF
    return (word >> 22) ^ word


def inside(thread):
    state, hits = thread * 747796405 + 2891336453 & 0xFFFFFFFF, 0
    for _ in range(20):
        axes = []
        for _ in range(2):
            state = state * 747796405 + 2891336453 & 0xFFFFFFFF
            axes.append((pcg(state) >> 16) - 32768)
        hits += axes[0] ** 2 + axes[1] ** 2 < 1 << 30
    return hits


program("monte_carlo_with_atomics", """
class Random {
  uint state;
public:
  Random(uint seed) : state(seed * 747796405u + 2891336453u) {}
  uint next() {
    state = state * 747796405u + 2891336453u;
    uint word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return (word >> 22u) ^ word;
  }
  int2 pair() { int x = int(next() >> 16) - 32768; int y = int(next() >> 16) - 32768; return int2(x, y); }
};
kernel void throws_(device atomic_int* hits [[buffer(0)]], uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  Random random(i);
  int own = 0;
  for (ushort k = 0; k < 20; ++k) {
    const auto p = random.pair();
    own += long(p.x) * p.x + long(p.y) * p.y < (1l << 30);
  }
  own = simd_sum(own);
  if (simd_is_first()) atomic_fetch_add_explicit(hits, own, memory_order_relaxed);
}
""", "256", "64", [np.zeros(1, "i4")], {0: ([sum(inside(i) for i in range(256))], 0)})

Q8, K8 = RNG.integers(-128, 128, (9, 48), dtype="i1"), RNG.integers(-128, 128, (11, 48), dtype="i1")
SCALE = abs(f4(9)) + 0.01
program("dot_products_of_bytes", """
inline int dot4(char4 a, char4 b) { int4 p = int4(a) * int4(b); return p.x + p.y + p.z + p.w; }
kernel void scores(device const char4* q [[buffer(0)]], device const uint* packed [[buffer(1)]], device const float* scale [[buffer(2)]],
                   device bfloat* out [[buffer(3)]], constant ushort4& extent [[buffer(4)]], ushort2 at [[thread_position_in_grid]]) {
  if (at.x >= extent.x || at.y >= extent.y) return;
  const ushort words = extent.z / 4;
  q += at.y * words;
  packed += at.x * words;
  int sum = 0;
  for (ushort w = 0; w < words; w++) sum += dot4(q[w], as_type<char4>(packed[w]));
  out[at.y * extent.x + at.x] = bfloat(float(sum) * scale[at.y]);
}
""", "12,9", "4,3", [Q8, K8.view("u4"), SCALE, poison(99, "u2"), "u16:11,9,48,0"],
        {3: (lambda got: (got.astype("u4") << 16).view("f4").reshape(9, 11), (Q8.astype("i4") @ K8.T.astype("i4")) * SCALE[:, None].astype("f8"), 2**-8)})

PARENT = RNG.integers(0, 40, (60, 2))
program("components_by_compare_exchange", """
static uint root(device atomic_uint* parent, uint v) {
  uint next;
  while ((next = atomic_load_explicit(parent + v, memory_order_relaxed)) != v) v = next;
  return v;
}
kernel void unite(device atomic_uint* parent [[buffer(0)]], device const uint2* edges [[buffer(1)]], constant uint& count [[buffer(2)]], uint e [[thread_position_in_grid]]) {
  if (e >= count) return;
  uint a = edges[e].x, b = edges[e].y;
  do {
    a = root(parent, a);
    b = root(parent, b);
    if (a == b) break;
    if (a < b) { uint t = a; a = b; b = t; }
    uint expected = a;
    if (atomic_compare_exchange_weak_explicit(parent + a, &expected, b, memory_order_relaxed, memory_order_relaxed)) break;
  } while (true);
}
""", "64", "32", [np.arange(40, dtype="u4"), PARENT.astype("u4"), "u32:60"], {0: None})


def roots(parent):
    parent = [int(p) for p in parent]

    def root(v):
        return v if parent[v] == v else root(parent[v])
    return [root(v) for v in range(len(parent))]


def least_of_component():
    label = np.arange(40)
    for _ in range(40):
        for a, b in PARENT:
            label[a] = label[b] = min(label[a], label[b])
    return label


PROGRAMS["components_by_compare_exchange"][4][0] = (roots, least_of_component(), 0)

TEXT = RNG.integers(32, 127, 203, dtype="u1")
program("bytes_four_at_a_time", """
#define IS_LOWER(c) ((c) >= 'a' && (c) <= 'z')
enum class Case : uchar { upper, lower };
template <Case to> uchar convert(uchar c) {
  if constexpr (to == Case::upper) return IS_LOWER(c) ? c - ('a' - 'A') : c;
  else return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}
kernel void upper(device const uchar* in [[buffer(0)]], device uchar* out [[buffer(1)]], constant uint& count [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  const uint first = 4 * i;
  if (first + 4 <= count) {
    uchar4 v = *reinterpret_cast<device const uchar4*>(in + first);
    for (uint k = 0; k < 4; ++k) v[k] = convert<Case::upper>(v[k]);
    *reinterpret_cast<device uchar4*>(out + first) = v;
  } else {
    for (uint k = first; k < count; ++k) out[k] = convert<Case::upper>(in[k]);
  }
}
""", "64", "16", [TEXT, poison(203, "u1"), "u32:203"], {1: (np.frombuffer(TEXT.tobytes().upper(), "u1"), 0)})

SIGNAL = f4(3, 32, 2)
program("fft_in_threadgroup_memory", """
static float2 times(float2 a, float2 b) { return float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
template <uint N> void butterflies(threadgroup float2* data, uint t) {
  for (uint half_size = 1; half_size < N; half_size *= 2) {
    const uint k = t % half_size, at = (t - k) * 2 + k;
    const float angle = -M_PI_F * float(k) / float(half_size);
    const float2 a = data[at], b = times(data[at + half_size], float2(precise::cos(angle), precise::sin(angle)));
    threadgroup_barrier(mem_flags::mem_threadgroup);
    data[at] = a + b;
    data[at + half_size] = a - b;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}
kernel void fft(device float2* signal [[buffer(0)]], uint t [[thread_position_in_threadgroup]], uint group [[threadgroup_position_in_grid]]) {
  threadgroup float2 data[32];
  for (uint k = t; k < 32; k += 16) data[reverse_bits(k) >> 27] = signal[group * 32 + k];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  butterflies<32>(data, t);
  for (uint k = t; k < 32; k += 16) signal[group * 32 + k] = data[k];
}
""", "48", "16", [SIGNAL], {0: (np.fft.fft(SIGNAL[..., 0] + 1j * SIGNAL[..., 1].astype("f8")).view("f8"), 1e-4)})

RAYS = f4(40, 3)
RAYS /= np.linalg.norm(RAYS, axis=1, keepdims=True)
SPHERES = np.array([[0, 0, 4, 1.5], [1, -1, -3, 1], [-2, 2, 1, 1.2]], "f4")


def traced():
    out = np.zeros((40, 4))
    for i, d in enumerate(RAYS.astype("f8")):
        hits = []
        for k, (x, y, z, r) in enumerate(SPHERES.astype("f8")):
            b = d @ [x, y, z]
            under = b * b - (x * x + y * y + z * z - r * r)
            if under > 0 and b - under**0.5 > 0:
                hits.append((b - under**0.5, k))
        if hits:
            t, k = min(hits)
            n = (d * t - SPHERES[k, :3]) / SPHERES[k, 3]
            out[i] = [*(d - 2 * (d @ n) * n), k + 1]
    return out


program("rays_and_spheres", """
struct Ray { float3 origin, direction; float3 at(float t) const { return origin + t * direction; } };
struct Hit { float t = INFINITY; float3 normal; int object = -1; explicit operator bool() const { return object >= 0; } };
static bool meet(thread const Ray& ray, float4 sphere, thread float& t) {
  const float3 to = sphere.xyz - ray.origin;
  const float b = dot(to, ray.direction), under = b * b - (length_squared(to) - sphere.w * sphere.w);
  if (under <= 0) return false;
  t = b - sqrt(under);
  return t > 0;
}
template <typename Objects> static Hit trace(Ray ray, Objects objects, int count) {
  Hit hit;
  for (int k = 0; k < count; ++k) {
    float t;
    if (!meet(ray, objects[k], t) || t >= hit.t) continue;
    hit.t = t;
    hit.normal = (ray.at(t) - objects[k].xyz) / objects[k].w;
    hit.object = k;
  }
  return hit;
}
[[kernel]] void rays(device const packed_float3* directions [[buffer(0)]], device float4* out [[buffer(1)]], constant float4* spheres [[buffer(2)]],
                     uint i [[thread_position_in_grid]]) {
  const Ray ray = {float3(0), directions[i]};
  if (const Hit hit = trace(ray, spheres, 3)) out[i] = float4(reflect(ray.direction, hit.normal), hit.object + 1);
  else out[i] = 0;
}
""", "40", "8", [RAYS, poison(160, "f4"), SPHERES], {1: (traced(), 2e-3)})

WEIGHTED = RNG.integers(0, 5, 200, dtype="i4")
LOADS = f4(200)
program("sums_and_counts_in_one_structure", """
struct Bin { atomic_float sum; atomic_uint count; atomic_float last; };
kernel void bins(device const int* bin [[buffer(0)]], device const float* load [[buffer(1)]], device Bin* out [[buffer(2)]],
                 device atomic_float* total [[buffer(3)]], uint i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]]) {
  threadgroup atomic_float sums[5];
  if (l < 5) atomic_store_explicit(&sums[l], 0.0f, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&sums[bin[i]], load[i], memory_order_relaxed);
  atomic_fetch_sub_explicit(total, -load[i], memory_order_relaxed);
  atomic_fetch_add_explicit(&out[bin[i]].count, 1, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (l >= 5) return;
  const float mine = atomic_exchange_explicit(&sums[l], 0.0f, memory_order_relaxed);
  atomic_fetch_add_explicit(&out[l].sum, mine, memory_order_relaxed);
  atomic_store_explicit(&out[l].last, 3.5f, memory_order_relaxed);
  atomic_fetch_sub_explicit(&out[l].last, 1.0f, memory_order_relaxed);
}
""", "200", "40", [WEIGHTED, LOADS, "u32[15]", "f32[1]"],
        {2: (lambda got: np.concatenate([got.view("f4")[0::3], got[1::3], got.view("f4")[2::3]]),
             np.concatenate([np.bincount(WEIGHTED, LOADS, 5), np.bincount(WEIGHTED, minlength=5), np.full(5, 2.5)]), 1e-3), 3: ([LOADS.sum()], 1e-3)})

ROWS = f4(8, 16).astype("f2")
program("matrices_in_arrays_are_loaded_and_added", """
kernel void square(device const half* a [[buffer(0)]], device float* out [[buffer(1)]], constant uint& rounds [[buffer(2)]]) {
  simdgroup_float8x8 sum(0.0f);
  for (uint round = 0; round < rounds; ++round) {
    simdgroup_half8x8 left[2], right[2];
    for (int i = 0; i < 2; i++) simdgroup_load(left[i], a + i * 8, 16);
    for (int i = 0; i < 2; i++) simdgroup_load(right[i], a + i * 8, 16, ulong2(0), true);
    for (int i = 0; i < 2; i++) simdgroup_multiply_accumulate(sum, left[i], right[i], sum);
  }
  simdgroup_store(sum, out, 8);
}
""", "32", "32", [ROWS, poison(64, "f4"), "u32:2"], {1: (2 * (ROWS.astype("f8") @ ROWS.astype("f8").T), 1e-2)})


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("where", ["check", "device"])
def test_program(vortex, device, tmp_path, name, where):
    run_program(vortex, tmp_path, PROGRAMS[name], *(["--check"] if where == "check" else ["--device", device]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_is_code_for_nvidia(vortex, tmp_path, name):
    (tmp_path / "k.metal").write_text(PROGRAMS[name][0])
    for number in range(2):
        assemble(vortex, tmp_path / "k.metal", number, *PROGRAMS[name][5])
