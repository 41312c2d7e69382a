"""Kernels of language models as Apple's developers write them, in the style of MLX, llama.cpp and PyTorch, against NumPy: in the interpreter with --check and on
the device; and as code that ptxas takes."""
import numpy as np
import pytest
from programs import RNG, Programs, f4, poison, run_program
from test_rules import assemble

PROGRAMS = Programs()
program = PROGRAMS.add


def softmax(x):
    e = np.exp(x.astype("f8") - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


ROWS = f4(5, 100) * 3
program("softmax_of_four_with_function_constants", """
constant bool kScaled [[function_constant(0)]];
constant float kScale [[function_constant(1)]];
constant bool has_scale = is_function_constant_defined(kScaled) ? kScaled : false;
[[kernel, max_total_threads_per_threadgroup(64)]] void softmax4(
    device const float4* src [[buffer(0)]], device float4* dst [[buffer(1)]], constant int64_t& ne00 [[buffer(2)]],
    threadgroup float* buf [[threadgroup(0)]],
    uint tgpig [[threadgroup_position_in_grid]], uint tpitg [[thread_position_in_threadgroup]], uint sgitg [[simdgroup_index_in_threadgroup]],
    uint tiisg [[thread_index_in_simdgroup]], uint ntg [[threads_per_threadgroup]]) {
  device const float4* psrc = src + tgpig * (ne00 / 4);
  device float4* pdst = dst + tgpig * (ne00 / 4);
  float4 lmax4 = -INFINITY;
  for (int i00 = tpitg; i00 < ne00 / 4; i00 += ntg) lmax4 = fmax(lmax4, psrc[i00] * (has_scale ? kScale : 1.0f));
  const float lmax = MAX(MAX(lmax4[0], lmax4[1]), MAX(lmax4[2], lmax4[3]));
  float max_val = simd_max(lmax);
  if (ntg > 32) {
    if (sgitg == 0) buf[tiisg] = -INFINITY;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (tiisg == 0) buf[sgitg] = max_val;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    max_val = simd_max(buf[tiisg]);
  }
  float4 lsum4 = 0.0f;
  for (int i00 = tpitg; i00 < ne00 / 4; i00 += ntg) {
    const float4 e = fast::exp(psrc[i00] * (has_scale ? kScale : 1.0f) - max_val);
    lsum4 += e;
    pdst[i00] = e;
  }
  const float lsum = lsum4[0] + lsum4[1] + lsum4[2] + lsum4[3];
  threadgroup_barrier(mem_flags::mem_none);
  float sum = simd_sum(lsum);
  if (ntg > 32) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (sgitg == 0) buf[tiisg] = 0.0f;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (tiisg == 0) buf[sgitg] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum = simd_sum(buf[tiisg]);
  }
  const float inv_sum = 1.0f / sum;
  for (int i00 = tpitg; i00 < ne00 / 4; i00 += ntg) pdst[i00] *= inv_sum;
}
""".replace("[[kernel, max", "#define MAX(x, y) ((x) > (y) ? (x) : (y))\n[[kernel, max"), "320", "64", [ROWS, poison(500, "f4"), "i64:100"], {1: (softmax(ROWS * 0.5), 1e-5)},
        "--threadgroup", "0=128", "--constant", "0=1", "--constant", "1=0.5")

X, GAIN = f4(3, 77).astype("f2"), f4(77).astype("f2")
program("rms_norm_that_reads_four_at_a_time", """
template <typename T, int N_READS = 4>
[[kernel]] void rms_single_row(const device T* x, const device T* w, device T* out, constant float& eps, constant uint& axis_size, constant uint& w_stride,
    uint gid [[threadgroup_position_in_grid]], uint lid [[thread_position_in_threadgroup]], uint simd_lane_id [[thread_index_in_simdgroup]],
    uint simd_group_id [[simdgroup_index_in_threadgroup]]) {
  constexpr int SIMD_SIZE = 32;
  threadgroup float local_inv_mean[1];
  threadgroup float local_sums[SIMD_SIZE];
  float acc = 0;
  x += gid * size_t(axis_size) + lid * N_READS;
  w += w_stride * lid * N_READS;
  if (lid * N_READS + N_READS <= axis_size) {
    for (int i = 0; i < N_READS; i++) { float xi = x[i]; acc += xi * xi; }
  } else {
    for (int i = 0; i < N_READS; i++)
      if ((lid * N_READS + i) < axis_size) { float xi = x[i]; acc += xi * xi; }
  }
  acc = simd_sum(acc);
  if (simd_group_id == 0) local_sums[simd_lane_id] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simd_lane_id == 0) local_sums[simd_group_id] = acc;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simd_group_id == 0) {
    acc = simd_sum(local_sums[simd_lane_id]);
    if (simd_lane_id == 0) local_inv_mean[0] = metal::precise::rsqrt(acc / axis_size + eps);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out += gid * size_t(axis_size) + lid * N_READS;
  for (int i = 0; i < N_READS; i++)
    if ((lid * N_READS + i) < axis_size) out[i] = w[w_stride * i] * static_cast<T>(x[i] * local_inv_mean[0]);
}
#define instantiate_rms(name, itype) template [[host_name("rms" #name)]] [[kernel]] decltype(rms_single_row<itype>) rms_single_row<itype>;
instantiate_rms(float16, half)
instantiate_rms(float32, float)
""", "96", "32", [X, GAIN, poison(231, "f2"), "f32:0.001", "u32:77", "u32:1"],
        {2: (GAIN * (X / np.sqrt((X.astype("f8")**2).mean(-1, keepdims=True) + 0.001)), 4e-3)}, "--kernel", "rmsfloat16")

ANGLES = RNG.integers(0, 50, 4).astype("i4")
HEADS = f4(4, 3, 16)


def rotated(x, positions, base, dims):
    out, half = x.astype("f8"), dims // 2
    theta = positions[:, None, None] * base ** (-2.0 * np.arange(half) / dims)
    even, odd = out[..., 0:dims:2].copy(), out[..., 1:dims:2].copy()
    out[..., 0:dims:2], out[..., 1:dims:2] = even * np.cos(theta) - odd * np.sin(theta), even * np.sin(theta) + odd * np.cos(theta)
    return out


program("rope_with_a_structure_of_arguments", """
typedef struct { int32_t ne00, ne01, ne02; uint64_t nb01, nb02; int32_t n_dims; float freq_base, freq_scale, ext_factor, attn_factor; } ggml_metal_kargs_rope;
static float rope_yarn_ramp(const float low, const float high, const int i0) {
  const float y = (i0 / 2 - low) / max(0.001f, high - low);
  return 1.0f - min(1.0f, max(0.0f, y));
}
static void rope_yarn(float theta_extrap, float freq_scale, float corr_dims[2], int i0, float ext_factor, float mscale, thread float* cos_theta, thread float* sin_theta) {
  float theta_interp = freq_scale * theta_extrap;
  float theta = theta_interp;
  if (ext_factor != 0.0f) {
    float ramp_mix = rope_yarn_ramp(corr_dims[0], corr_dims[1], i0) * ext_factor;
    theta = theta_interp * (1 - ramp_mix) + theta_extrap * ramp_mix;
    mscale *= 1.0f + 0.1f * log(1.0f / freq_scale);
  }
  *cos_theta = cos(theta) * mscale;
  *sin_theta = sin(theta) * mscale;
}
typedef decltype(rope_yarn) rope_t;
template <typename T>
kernel void kernel_rope(constant ggml_metal_kargs_rope& args, device const char* src0, device const char* src1, device char* dst,
    ushort tiitg [[thread_index_in_threadgroup]], ushort3 tptg [[threads_per_threadgroup]], uint3 tgpig [[threadgroup_position_in_grid]]) {
  const int i2 = tgpig[1], i1 = tgpig[0];
  device const int32_t* pos = (device const int32_t*)src1;
  const float theta_base = (float)pos[i2];
  const float inv_ndims = -1.f / args.n_dims;
  float corr_dims[2] = {0, 1};
  float cos_theta, sin_theta;
  for (int i0 = 2 * tiitg; i0 < args.ne00; i0 += 2 * tptg.x) {
    device const T* const src = (device T*)(src0 + i2 * args.nb02 + i1 * args.nb01 + i0 * sizeof(T));
    device T* dst_data = (device T*)(dst + i2 * args.nb02 + i1 * args.nb01 + i0 * sizeof(T));
    if (i0 < args.n_dims) {
      const float theta = theta_base * pow(args.freq_base, inv_ndims * i0);
      rope_yarn(theta, args.freq_scale, corr_dims, i0, args.ext_factor, args.attn_factor, &cos_theta, &sin_theta);
      const float x0 = src[0], x1 = src[1];
      dst_data[0] = x0 * cos_theta - x1 * sin_theta;
      dst_data[1] = x0 * sin_theta + x1 * cos_theta;
    } else {
      dst_data[0] = src[0];
      dst_data[1] = src[1];
    }
  }
}
typedef decltype(kernel_rope<float>) kernel_rope_t;
template [[host_name("kernel_rope_f32")]] kernel kernel_rope_t kernel_rope<float>;
template [[host_name("kernel_rope_f16")]] kernel kernel_rope_t kernel_rope<half>;
""", "12,4", "4,1", [np.frombuffer(np.array([16, 3, 4, 0], "i4").tobytes() + np.array([64, 192], "u8").tobytes() + np.array([12], "i4").tobytes()
                                   + np.array([10000, 1, 0, 1, 0], "f4").tobytes(), "u1").copy(), HEADS, ANGLES, poison(192, "f4")],
        {3: (rotated(HEADS, ANGLES, 10000.0, 12), 1e-4)}, "--kernel", "kernel_rope_f32")

K = 128
SCALES, NIBBLES = (abs(f4(9, K // 32)) + 0.1).astype("f2"), RNG.integers(0, 16, (9, K // 32, 32), dtype="u1")
Q4 = np.concatenate([SCALES[..., None].view("u1").reshape(9, K // 32, 2), NIBBLES[..., :16] | NIBBLES[..., 16:] << 4], -1)
DEQUANTISED = (SCALES[..., None].astype("f8") * (NIBBLES.astype("f8") - 8)).reshape(9, K)
VECTOR = f4(K)
program("product_of_q4_0_blocks_and_a_vector", """
#define QK4_0 32
#define N_DST 4
#define N_SIMDWIDTH 32
typedef struct { half d; uint8_t qs[QK4_0 / 2]; } block_q4_0;
inline float block_q_n_dot_y(device const block_q4_0* qb_curr, float sumy, thread float* yl, int il) {
  float d = qb_curr->d;
  float2 acc = 0.f;
  device const uint16_t* qs = ((device const uint16_t*)qb_curr + 1 + il / 2);
  for (int i = 0; i < 8; i += 2) {
    acc[0] += yl[i + 0] * (qs[i / 2] & 0x000F) + yl[i + 1] * (qs[i / 2] & 0x0F00);
    acc[1] += yl[i + 8] * (qs[i / 2] & 0x00F0) + yl[i + 9] * (qs[i / 2] & 0xF000);
  }
  return d * (sumy * -8.f + acc[0] + acc[1]);
}
template <typename block_q_type, int nr>
void mul_vec_q_n_f32_impl(device const void* src0, device const float* src1, device float* dst, int64_t ne00, int64_t ne01, uint3 tgpig, uint tiisg, uint sgitg) {
  const int nb = ne00 / QK4_0;
  const int first_row = (tgpig.x * 2 + sgitg) * nr;
  device const block_q_type* x = (device const block_q_type*)src0 + first_row * nb;
  device const float* y = src1;
  float yl[16];
  float sumf[nr] = {0.f};
  const int ix = (tiisg / 2);
  const int il = (tiisg % 2) * 8;
  device const float* yb = y + ix * QK4_0 + il;
  for (int ib = ix; ib < nb; ib += N_SIMDWIDTH / 2) {
    float sumy = 0;
    for (int i = 0; i < 8; i += 2) {
      sumy += yb[i] + yb[i + 1];
      yl[i + 0] = yb[i + 0];
      yl[i + 1] = yb[i + 1] / 256.f;
      sumy += yb[i + 16] + yb[i + 17];
      yl[i + 8] = yb[i + 16] / 16.f;
      yl[i + 9] = yb[i + 17] / 4096.f;
    }
#pragma unroll
    for (int row = 0; row < nr; row++)
      if (first_row + row < ne01) sumf[row] += block_q_n_dot_y(x + ib + row * nb, sumy, yl, il);
    yb += QK4_0 * 16;
  }
  for (int row = 0; row < nr; ++row) {
    const float tot = simd_sum(sumf[row]);
    if (tiisg == 0 && first_row + row < ne01) dst[first_row + row] = tot;
  }
}
kernel void kernel_mul_mv_q4_0_f32(device const void* src0, device const float* src1, device float* dst, constant int64_t& ne00, constant int64_t& ne01,
    uint3 tgpig [[threadgroup_position_in_grid]], uint tiisg [[thread_index_in_simdgroup]], uint sgitg [[simdgroup_index_in_threadgroup]]) {
  mul_vec_q_n_f32_impl<block_q4_0, N_DST>(src0, src1, dst, ne00, ne01, tgpig, tiisg, sgitg);
}
""", "64,2", "32,2", [Q4.copy(), VECTOR, poison(9, "f4"), f"i64:{K}", "i64:9"], {2: (DEQUANTISED @ VECTOR.astype("f8"), 1e-3)})

Q8 = RNG.integers(-127, 128, (6, 3, 32)).astype("i1")
D8 = (abs(f4(6, 3)) + 0.1).astype("f2")
Y8 = f4(96)
program("product_of_q8_0_blocks_and_a_vector", """
typedef struct { half d; int8_t qs[32]; } block_q8_0;
kernel void mul_mv_q8_0(device const block_q8_0* x [[buffer(0)]], device const float* y [[buffer(1)]], device float* dst [[buffer(2)]], constant uint& nb [[buffer(3)]],
    uint row [[threadgroup_position_in_grid]], ushort lane [[thread_index_in_simdgroup]]) {
  float sum = 0;
  const int ix = lane / 4, il = lane % 4;
  for (uint ib = ix; ib < nb; ib += 8) {
    device const int8_t* qs = x[row * nb + ib].qs + 8 * il;
    device const float* yb = y + ib * 32 + 8 * il;
    float part = 0.f;
#pragma clang loop unroll(full)
    for (short i = 0; i < 8; ++i) part += qs[i] * yb[i];
    sum += part * x[row * nb + ib].d;
  }
  sum = simd_sum(sum);
  if (simd_is_first()) dst[row] = sum;
}
""", "192", "32", [np.concatenate([D8[..., None].view("u1").reshape(6, 3, 2), Q8.view("u1")], -1).copy(), Y8, poison(6, "f4"), "u32:3"],
        {2: ((Q8 * D8[..., None].astype("f8")).reshape(6, 96) @ Y8.astype("f8"), 1e-3)})

A, B = f4(19, 40).astype("f2"), f4(40, 33).astype("f2")
program("gemm_of_simdgroup_matrices_with_ragged_edges", """
template <typename T, short BM, short BN, short BK>
struct Loader {
  static void tile(threadgroup T* to, device const T* from, uint ld, uint2 at, uint2 end, short rows, short columns, uint t, uint count) {
    for (uint k = t; k < uint(rows * columns); k += count) {
      const uint2 p = at + uint2(k % columns, k / columns);
      to[k] = all(p < end) ? from[p.y * ld + p.x] : T(0);
    }
  }
};
kernel void gemm(device const half* a [[buffer(0)]], device const half* b [[buffer(1)]], device float* c [[buffer(2)]], constant packed_uint3& size [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]], uint sg [[simdgroup_index_in_threadgroup]]) {
  constexpr short BM = 16, BN = 16, BK = 8;
  threadgroup half ta[BM * BK], tb[BK * BN];
  threadgroup float tc[BM * BN];
  const uint m = size.x, n = size.y, k = size.z;
  simdgroup_float8x8 acc[2] = {simdgroup_float8x8(0), simdgroup_float8x8(0)};
  for (uint kk = 0; kk < k; kk += BK) {
    Loader<half, BM, BN, BK>::tile(ta, a, k, uint2(kk, group.y * BM), uint2(k, m), BM, BK, t, 64);
    Loader<half, BM, BN, BK>::tile(tb, b, n, uint2(group.x * BN, kk), uint2(n, k), BK, BN, t, 64);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_half8x8 ma, mb;
    simdgroup_load(ma, ta + sg * 8 * BK, BK);
#pragma unroll(2)
    for (short j = 0; j < 2; ++j) {
      simdgroup_load(mb, tb + j * 8, BN);
      simdgroup_multiply_accumulate(acc[j], ma, mb, acc[j]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (short j = 0; j < 2; ++j) simdgroup_store(acc[j], tc + sg * 8 * BN + j * 8, BN);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint q = t; q < BM * BN; q += 64) {
    const uint2 p = uint2(q % BN, q / BN) + group * uint2(BN, BM);
    if (p.x < n && p.y < m) c[p.y * n + p.x] = tc[q];
  }
}
""", "192,2", "64,1", [A, B, poison(19 * 33, "f4"), "u32:19,33,40"], {2: (A.astype("f8") @ B.astype("f8"), 2e-2)})

TABLE, TOKENS = f4(11, 24), RNG.integers(0, 11, 7).astype("i4")
program("rows_of_a_table", """
struct kargs { int64_t ne00; uint64_t nb01; uint64_t nb1; };
kernel void get_rows(constant kargs& args [[buffer(0)]], device const void* src0 [[buffer(1)]], device const void* src1 [[buffer(2)]], device float* dst [[buffer(3)]],
    uint3 tgpig [[threadgroup_position_in_grid]], uint tiitg [[thread_index_in_threadgroup]], uint3 tptg [[threads_per_threadgroup]]) {
  const int64_t i10 = tgpig.x;
  const int64_t r = ((const device int32_t*)((const device char*)src1 + i10 * 4))[0];
  for (int ind = tiitg; ind < args.ne00; ind += tptg.x)
    ((device float*)((device char*)dst + i10 * args.nb1))[ind] = ((device float*)((device char*)src0 + r * args.nb01))[ind];
}
""", "70", "10", ["i64:24,96,96", TABLE, TOKENS, poison(7 * 24, "f4")], {3: (TABLE[TOKENS], 0)})

GATED = f4(3, 2, 20)
program("swiglu_of_bfloats", """
inline float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }
kernel void swiglu(device const bfloat* x [[buffer(0)]], device bfloat* y [[buffer(1)]], constant ushort& width [[buffer(2)]], uint2 at [[thread_position_in_grid]]) {
  device const bfloat* row = x + at.y * 2 * width;
  const float gate = float(row[at.x]), up = float(row[at.x + width]);
  y[at.y * width + at.x] = bfloat(gate * sigmoid(gate) * up);
}
""", "20,3", "7,2", [(GATED.view("u4") >> 16).astype("u2"), "bf16[60]", "u16:20"],
        {1: (lambda got: got if got.dtype.kind == "f" and got.dtype.itemsize == 4 else (got.view("u2").astype("u4") << 16).view("f4"),
             (lambda g: g[:, 0] / (1 + np.exp(-g[:, 0])) * g[:, 1])((GATED.view("u4") & 0xFFFF0000).view("f4").astype("f8")), 1e-2)})

Q, KEYS, VALUES = f4(2, 6, 32), f4(2, 13, 32), f4(2, 13, 32)
SCORES = np.einsum("hqd,hkd->hqk", Q.astype("f8"), KEYS) / np.sqrt(32)
SCORES += np.where(np.arange(13)[None, :] > np.arange(6)[:, None] + 7, -np.inf, 0)
program("attention_by_a_simdgroup_per_query", """
template <typename T, int D>
[[kernel]] void sdpa_vector(const device T* queries [[buffer(0)]], const device T* keys [[buffer(1)]], const device T* values [[buffer(2)]], device T* out [[buffer(3)]],
    const constant int& N [[buffer(4)]], const constant float& scale [[buffer(5)]],
    uint3 tid [[threadgroup_position_in_grid]], uint3 tpg [[threadgroups_per_grid]], uint simd_gid [[simdgroup_index_in_threadgroup]], uint simd_lid [[thread_index_in_simdgroup]]) {
  constexpr int BN = 4;
  constexpr int BD = 32;
  constexpr int qk_per_thread = D / BD;
  typedef float U;
  thread U q[qk_per_thread];
  thread U k[qk_per_thread];
  thread U o[qk_per_thread];
  threadgroup U outputs[BN * BD];
  threadgroup U max_scores[BN];
  threadgroup U sum_exp_scores[BN];
  const int head = tid.x, q_seq = tid.y;
  queries += (head * tpg.y + q_seq) * D + simd_lid * qk_per_thread;
  keys += (head * N + simd_gid) * D + simd_lid * qk_per_thread;
  values += (head * N + simd_gid) * D + simd_lid * qk_per_thread;
  for (int i = 0; i < qk_per_thread; i++) { q[i] = static_cast<U>(scale) * queries[i]; o[i] = 0; }
  U max_score = -INFINITY;
  U sum_exp_score = 0;
  for (int i = simd_gid; i < N; i += BN) {
    const bool use_key = i <= (N - int(tpg.y) + int(q_seq));
    if (use_key) {
      U score = 0;
      for (int j = 0; j < qk_per_thread; j++) { k[j] = keys[j]; score += q[j] * k[j]; }
      score = simd_sum(score);
      U new_max = max(max_score, score);
      U factor = fast::exp(max_score - new_max);
      U exp_score = fast::exp(score - new_max);
      max_score = new_max;
      sum_exp_score = sum_exp_score * factor + exp_score;
      for (int j = 0; j < qk_per_thread; j++) o[j] = o[j] * factor + exp_score * values[j];
    }
    keys += BN * D;
    values += BN * D;
  }
  if (simd_lid == 0) { max_scores[simd_gid] = max_score; sum_exp_scores[simd_gid] = sum_exp_score; }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  max_score = simd_lid < BN ? max_scores[simd_lid] : -INFINITY;
  U new_max = simd_max(max_score);
  U factor = simd_lid < BN ? fast::exp(max_score - new_max) : 0;
  sum_exp_score = simd_sum(simd_lid < BN ? sum_exp_scores[simd_lid] * factor : 0);
  for (int i = 0; i < qk_per_thread; i++) {
    outputs[simd_gid * BD + simd_lid] = o[i] * simd_shuffle(factor, ushort(simd_gid));
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simd_gid == 0) {
      U total = 0;
      for (int g = 0; g < BN; ++g) total += outputs[g * BD + simd_lid];
      out[(head * tpg.y + q_seq) * D + simd_lid * qk_per_thread + i] = static_cast<T>(total / sum_exp_score);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}
template [[host_name("sdpa_float_32")]] [[kernel]] void sdpa_vector<float, 32>(const device float*, const device float*, const device float*, device float*, const constant int&,
  const constant float&, uint3, uint3, uint, uint);
""", "256,6", "128,1", [Q, KEYS, VALUES, poison(384, "f4"), "i32:13", f"f32:{1 / np.sqrt(32)!r}".replace("np.float64(", "").replace(")", "")],
        {3: (np.einsum("hqk,hkd->hqd", softmax(SCORES), VALUES), 1e-4)}, "--kernel", "sdpa_float_32")

LOGITS, TARGETS = f4(4, 50), RNG.integers(0, 50, 4).astype("i8")
program("cross_entropy_in_one_pass", """
struct MaxSum { float m; float s; };
static MaxSum merged(MaxSum a, MaxSum b) {
  const float m = metal::max(a.m, b.m);
  return MaxSum{m, a.s * exp(a.m - m) + b.s * exp(b.m - m)};
}
kernel void cross_entropy(device const float* logits [[buffer(0)]], device const long* targets [[buffer(1)]], device float* loss [[buffer(2)]], constant uint& classes [[buffer(3)]],
    uint row [[threadgroup_position_in_grid]], ushort lane [[thread_index_in_simdgroup]]) {
  MaxSum mine = {-1e30f, 0};
  for (uint c = lane; c < classes; c += 32) mine = merged(mine, {logits[row * classes + c], 1});
  for (ushort step = 16; step > 0; step /= 2) mine = merged(mine, {simd_shuffle_xor(mine.m, step), simd_shuffle_xor(mine.s, step)});
  if (lane == 0) loss[row] = log(mine.s) + mine.m - logits[row * classes + targets[row]];
}
""", "128", "32", [LOGITS, TARGETS, poison(4, "f4"), "u32:50"], {2: (-np.log(softmax(LOGITS))[np.arange(4), TARGETS], 1e-5)})

W, IMAGES = f4(3, 2, 3, 3), f4(2, 6, 7)
PADDED = np.pad(IMAGES.astype("f8"), ((0, 0), (1, 1), (1, 1)))
program("convolution_of_channels_with_uint3_grids", """
struct Shape { uint channels, height, width; packed_short2 pad; };
kernel void conv3x3(device const float* x [[buffer(0)]], device const float (*w)[2][3][3] [[buffer(1)]], device float* y [[buffer(2)]], constant Shape& s [[buffer(3)]],
    uint3 p [[thread_position_in_grid]], uint3 n [[threads_per_grid]]) {
  float sum = 0;
  for (uint c = 0; c < s.channels; ++c)
    for (short dy = 0; dy < 3; ++dy)
      for (short dx = 0; dx < 3; ++dx) {
        const int2 at = int2(p.xy) + int2(dx, dy) - int2(s.pad[0], s.pad[1]);
        if (at.x < 0 || at.y < 0 || uint(at.x) >= s.width || uint(at.y) >= s.height) continue;
        sum += x[(c * s.height + at.y) * s.width + at.x] * w[p.z][c][dy][dx];
      }
  y[(p.z * n.y + p.y) * n.x + p.x] = sum;
}
""", "7,6,3", "4,2,2", [IMAGES, W, poison(126, "f4"), np.array([2, 6, 7, 0x00010001], "u4")],
        {2: (np.array([[[(W[o] * PADDED[:, y:y + 3, x:x + 3]).sum() for x in range(7)] for y in range(6)] for o in range(3)]), 1e-4)})

SCORE = RNG.permutation(64).astype("f4").reshape(2, 32)
program("argsort_of_rows_in_dynamic_threadgroup_memory", """
typedef void(argsort_t)(device const float* x, device int32_t* dst, constant int64_t& ncols, threadgroup int32_t* shared_values [[threadgroup(0)]],
    uint3 tgpig [[threadgroup_position_in_grid]], uint3 tpitg [[thread_position_in_threadgroup]]);
template <bool kAscending>
kernel void kernel_argsort_f32_i32(device const float* x, device int32_t* dst, constant int64_t& ncols, threadgroup int32_t* shared_values [[threadgroup(0)]],
    uint3 tgpig [[threadgroup_position_in_grid]], uint3 tpitg [[thread_position_in_threadgroup]]) {
  const int col = tpitg[0], row = tgpig[1], ncols_pad = 32;
  device const float* x_row = x + row * ncols;
  threadgroup int32_t* dst_row = shared_values;
  dst_row[col] = col;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int k = 2; k <= ncols_pad; k *= 2)
    for (int j = k / 2; j > 0; j /= 2) {
      int ixj = col ^ j;
      if (ixj > col) {
        const bool up = (col & k) == 0;
        const float a = x_row[dst_row[col]], b = x_row[dst_row[ixj]];
        if ((up == kAscending) ? a > b : a < b) { const auto t = dst_row[col]; dst_row[col] = dst_row[ixj]; dst_row[ixj] = t; }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
  if (col < ncols) dst[row * ncols + col] = dst_row[col];
}
template [[host_name("argsort_asc")]] kernel argsort_t kernel_argsort_f32_i32<true>;
template [[host_name("argsort_desc")]] kernel argsort_t kernel_argsort_f32_i32<false>;
""", "32,2", "32,1", [SCORE, poison(64, "i4"), "i64:32"], {1: (np.argsort(-SCORE, -1), 0)}, "--kernel", "argsort_desc", "--threadgroup", "0=128")


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("where", ["check", "device"])
def test_program(vortex, device, tmp_path, name, where):
    run_program(vortex, tmp_path, PROGRAMS[name], *(["--check"] if where == "check" else ["--device", device]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_is_code_for_nvidia(vortex, tmp_path, name):
    (tmp_path / "k.metal").write_text(PROGRAMS[name][0])
    assemble(vortex, tmp_path / "k.metal", list(PROGRAMS).index(name), *PROGRAMS[name][5])
