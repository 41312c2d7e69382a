"""Kernels as Triton's users write them, each against NumPy: what they take for granted is the same here."""
import numpy as np
import pytest

import metile

pytestmark = [pytest.mark.usefixtures("where"), pytest.mark.filterwarnings("ignore:.*W0631")]  # rows and places that data chooses


def normal(random, *shape):
    return random.standard_normal(shape, dtype=np.float32)


def nan(*shape):
    return np.full(shape, np.nan, np.float32)


# dropout with a seed
def mix(x):
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@metile.kernel
def seeded_dropout(X, Out, N, p, seed, BLOCK: metile.constexpr):
    offs = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    mask = offs < N
    x = metile.load(X + offs, mask=mask)
    bits = mix(metile.cast(offs, "u32") ^ mix(metile.cast(seed, "u32")))
    r = metile.cast(bits >> 8, "f32") * (1.0 / 16777216.0)
    keep = r > p
    metile.store(Out + offs, metile.where(keep, x / (1 - p), 0.0), mask=mask)


def mix_exactly(x):
    x = (x ^ (x >> 16)) * 0x7FEB352D % 2**32
    x = (x ^ (x >> 15)) * 0x846CA68B % 2**32
    return x ^ (x >> 16)


def test_dropout_is_that_of_its_seed(random):
    n, p, seed = 10007, 0.3, 1234
    x, out = normal(random, n), nan(n)
    seeded_dropout[(metile.cdiv(n, 256),)](x, out, n, p, seed, BLOCK=256)
    numbers = [mix_exactly(i ^ mix_exactly(seed)) >> 8 for i in range(n)]
    r = np.array(numbers, np.float32) / 16777216
    expected = np.where(r > np.float32(p), x / (1 - np.float32(p)), 0)
    np.testing.assert_allclose(out, expected, rtol=1e-6)


# layer norm backward
@metile.kernel
def ln_bwd(DX, DY, DW, DB, X, W, Mean, Rstd, stride, N, BLOCK_SIZE_N: metile.constexpr):
    row = metile.program_id(0)
    cols = metile.arange(0, BLOCK_SIZE_N)
    mask = cols < N
    x = metile.load(X + row * stride + cols, mask=mask, other=0)
    dy = metile.load(DY + row * stride + cols, mask=mask, other=0)
    w = metile.load(W + cols, mask=mask, other=0)
    mean = metile.load(Mean + row)
    rstd = metile.load(Rstd + row)
    xhat = (x - mean) * rstd
    wdy = w * dy
    xhat = metile.where(mask, xhat, 0.)
    wdy = metile.where(mask, wdy, 0.)
    c1 = metile.sum(xhat * wdy, axis=0) / N
    c2 = metile.sum(wdy, axis=0) / N
    dx = (wdy - (xhat * c1 + c2)) * rstd
    metile.store(DX + row * stride + cols, dx, mask=mask)
    metile.atomic_add(DW + cols, dy * xhat, mask=mask)
    metile.atomic_add(DB + cols, dy, mask=mask)


def test_gradients_of_a_layer_norm_are_summed_by_atomics(random):
    M, N = 37, 200
    x, dy, w = normal(random, M, N), normal(random, M, N), normal(random, N)
    mean = x.mean(1)
    rstd = 1 / np.sqrt(x.var(1) + 1e-5)
    dx, dw, db = nan(M, N), np.zeros(N, np.float32), np.zeros(N, np.float32)
    ln_bwd[(M,)](dx, dy, dw, db, x, w, mean, rstd, N, N, BLOCK_SIZE_N=256)
    xh = ((x - mean[:, None]) * rstd[:, None]).astype(np.float64)
    wdy = (w * dy).astype(np.float64)
    e = (wdy - xh * (xh * wdy).mean(1, keepdims=True) - wdy.mean(1, keepdims=True)) * rstd[:, None]
    np.testing.assert_allclose(dx, e, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(dw, (dy * xh).sum(0), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(db, dy.sum(0), rtol=1e-4, atol=1e-4)


# grouped gemm (MoE: tokens sorted by expert)
@metile.kernel
def grouped_gemm(A, B, C, Starts, N, K, BLOCK_M: metile.constexpr, BLOCK_N: metile.constexpr, BLOCK_K: metile.constexpr):
    pid_m, pid_n, g = metile.program_id(0), metile.program_id(1), metile.program_id(2)
    start = metile.load(Starts + g)
    m = metile.load(Starts + g + 1) - start
    acc = metile.zeros((BLOCK_M, BLOCK_N), dtype="f32")
    for k in metile.tile_range(0, K, BLOCK_K):
        a = metile.tile_load(A + start * K, pid_m * BLOCK_M, k, K, (BLOCK_M, BLOCK_K), rows=m)
        b = metile.tile_load(B + g * K * N, k, pid_n * BLOCK_N, N, (BLOCK_K, BLOCK_N))
        acc = metile.dot(a, b, acc)
    metile.tile_store(C + start * N, pid_m * BLOCK_M, pid_n * BLOCK_N, N, acc, (BLOCK_M, BLOCK_N), rows=m)


def test_products_of_groups_begin_where_data_says(random):
    sizes = np.array([5, 0, 70, 33])
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    K, N, G = 48, 70, 4
    a, b, c = normal(random, starts[-1], K), normal(random, G, K, N), nan(starts[-1], N)
    grouped_gemm[(metile.cdiv(int(sizes.max()), 32), metile.cdiv(N, 32), G)](a, b, c, starts, N, K, BLOCK_M=32, BLOCK_N=32, BLOCK_K=16)
    e = np.concatenate([a[starts[g]:starts[g + 1]] @ b[g] for g in range(G)])
    np.testing.assert_allclose(c, e, rtol=1e-4, atol=1e-4)


# top-k by bitonic sort in shared memory
@metile.kernel
def topk(X, Values, Indices, N, K: metile.constexpr, BLOCK: metile.constexpr):
    row = metile.program_id(0)
    lane = metile.arange(0, BLOCK)
    keys = metile.shared(BLOCK)
    ids = metile.shared(BLOCK, "i32")
    metile.store(keys + lane, metile.load(X + row * N + lane, mask=lane < N, other=-float("inf")))
    metile.store(ids + lane, lane)
    metile.barrier()
    size = 2
    while size <= BLOCK:
        stride = size // 2
        while stride > 0:
            partner = lane ^ stride
            mine, theirs = metile.load(keys + lane), metile.load(keys + partner)
            my_id, their_id = metile.load(ids + lane), metile.load(ids + partner)
            descending = (lane & size) == 0
            lower = lane < partner
            bigger = (mine > theirs) | ((mine == theirs) & (my_id < their_id))
            keep = bigger == (lower == descending)
            metile.barrier()
            metile.store(keys + lane, metile.where(keep, mine, theirs))
            metile.store(ids + lane, metile.where(keep, my_id, their_id))
            metile.barrier()
            stride //= 2
        size *= 2
    metile.store(Values + row * K + lane, metile.load(keys + lane), mask=lane < K)
    metile.store(Indices + row * K + lane, metile.load(ids + lane), mask=lane < K)


def test_the_largest_are_found_by_a_bitonic_sort(random):
    M, N, K = 9, 100, 7
    x, v, i = normal(random, M, N), nan(M, K), np.full((M, K), -1, np.int32)
    x[3] = 1.0
    topk[(M,)](x, v, i, N, K=K, BLOCK=128)
    order = np.argsort(-x, axis=1, kind="stable")[:, :K]
    np.testing.assert_array_equal(i, order)
    np.testing.assert_array_equal(v, np.take_along_axis(x, order, 1))


# cross entropy, forward and gradient in place (Liger)
@metile.kernel
def cross_entropy(X, stride, Y, Loss, n_cols, n_non_ignore, ignore_index, label_smoothing, BLOCK_SIZE: metile.constexpr):
    row = metile.program_id(0)
    y = metile.load(Y + row)
    X += row * stride
    lanes = metile.arange(0, BLOCK_SIZE)
    m = -float("inf")
    d = 0.0
    total = 0.0
    for i in metile.tile_range(0, n_cols, BLOCK_SIZE):
        x = metile.load(X + i + lanes, mask=i + lanes < n_cols, other=-float("inf"))
        total = total + metile.sum(metile.where(i + lanes < n_cols, x, 0.0))
        block_max = metile.max(x)
        m_new = metile.maximum(m, block_max)
        d = d * metile.exp(m - m_new) + metile.sum(metile.exp(x - m_new))
        m = m_new
    lse = m + metile.log(d)
    ignored = y == ignore_index
    eps = label_smoothing / n_cols
    xy = metile.load(X + metile.where(ignored, 0, y))
    loss = (lse - xy) * (1 - label_smoothing) + label_smoothing * lse - eps * total
    metile.store(Loss + row, metile.where(ignored, 0.0, loss / n_non_ignore))
    for i in metile.tile_range(0, n_cols, BLOCK_SIZE):
        cols = i + lanes
        x = metile.load(X + cols, mask=cols < n_cols, other=-float("inf"))
        p = metile.exp(x - lse) - eps
        p = metile.where(cols == y, p - (1 - label_smoothing), p) / n_non_ignore
        metile.store(X + cols, metile.where(ignored, 0.0, p), mask=cols < n_cols)


def test_cross_entropy_leaves_its_gradient_in_place(random):
    M, V, ls = 13, 1000, 0.1
    x = normal(random, M, V)
    y = random.integers(0, V, M).astype(np.int32)
    y[4] = -100
    n = int((y != -100).sum())
    g, loss = x.copy(), nan(M)
    cross_entropy[(M,)](g, V, y, loss, V, n, -100, ls, BLOCK_SIZE=256)
    x64 = x.astype(np.float64)
    lse = np.log(np.exp(x64 - x64.max(1, keepdims=True)).sum(1)) + x64.max(1)
    lp = x64 - lse[:, None]
    ok = y != -100
    e = np.where(ok, -(1 - ls) * lp[np.arange(M), np.where(ok, y, 0)] - ls * lp.mean(1), 0) / n
    np.testing.assert_allclose(loss, e, rtol=1e-5, atol=1e-6)
    onehot = np.zeros((M, V))
    onehot[np.arange(M)[ok], y[ok]] = 1
    np.testing.assert_allclose(g, np.where(ok[:, None], (np.exp(lp) - ls / V - (1 - ls) * onehot) / n, 0), rtol=1e-4, atol=1e-7)


# rope, in place on q of [tokens, heads, D]
@metile.kernel
def rope(Q, Cos, Sin, stride_t, stride_h, D: metile.constexpr, HALF: metile.constexpr):
    t, h = metile.program_id(0), metile.program_id(1)
    offs = metile.arange(0, HALF)
    mask = offs < D // 2
    cos = metile.load(Cos + t * (D // 2) + offs, mask=mask)
    sin = metile.load(Sin + t * (D // 2) + offs, mask=mask)
    q = Q + t * stride_t + h * stride_h
    q1 = metile.load(q + offs, mask=mask)
    q2 = metile.load(q + D // 2 + offs, mask=mask)
    metile.store(q + offs, q1 * cos - q2 * sin, mask=mask)
    metile.store(q + D // 2 + offs, q2 * cos + q1 * sin, mask=mask)


def test_rotary_embedding_in_place(random):
    T, H, D = 11, 3, 80
    q = normal(random, T, H, D)
    a = normal(random, T, D // 2)
    c, s = np.cos(a), np.sin(a)
    out = q.copy()
    rope[(T, H)](out, c, s, H * D, D, D=D, HALF=64)
    q1, q2 = q[..., :D // 2], q[..., D // 2:]
    e = np.concatenate([q1 * c[:, None] - q2 * s[:, None], q2 * c[:, None] + q1 * s[:, None]], -1)
    np.testing.assert_allclose(out, e, rtol=1e-5, atol=1e-5)


# int8 dequantised matmul: u8 with zero point 128, scale per column and group of 32 rows
@metile.kernel
def dequant_matmul(A, B, Scales, C, M, N, K, GROUP: metile.constexpr, BLOCK_M: metile.constexpr, BLOCK_N: metile.constexpr):
    pid_m, pid_n = metile.program_id(0), metile.program_id(1)
    acc = metile.zeros((BLOCK_M, BLOCK_N), dtype="f32")
    for k in metile.tile_range(0, K, GROUP):
        a = metile.tile_load(A, pid_m * BLOCK_M, k, K, (BLOCK_M, GROUP))
        b = metile.tile_load(B, k, pid_n * BLOCK_N, N, (GROUP, BLOCK_N))
        s = metile.tile_load(Scales, k // GROUP, pid_n * BLOCK_N, N, (1, BLOCK_N))
        b = (metile.cast(b, "f32") - 128.0) * s
        acc = metile.dot(a, b, acc)
    metile.tile_store(C, pid_m * BLOCK_M, pid_n * BLOCK_N, N, acc, (BLOCK_M, BLOCK_N))


def test_a_product_with_bytes_and_scales_of_groups(random):
    M, N, K, G = 45, 67, 128, 32
    a = normal(random, M, K).astype(np.float16)
    b = random.integers(0, 256, (K, N), dtype=np.uint8)
    s = random.random((K // G, N), dtype=np.float32) * 0.01
    c = nan(M, N)
    dequant_matmul[(metile.cdiv(M, 32), metile.cdiv(N, 32))](a, b, s, c, M, N, K, GROUP=G, BLOCK_M=32, BLOCK_N=32)
    e = a.astype(np.float64) @ ((b.astype(np.float64) - 128) * np.repeat(s, G, 0))
    np.testing.assert_allclose(c, e, rtol=2e-3, atol=2e-3)


# segment sum over CSR rows
@metile.kernel
def segment_sum(X, Indptr, Out, BLOCK: metile.constexpr):
    segment = metile.program_id(0)
    begin, end = metile.load(Indptr + segment), metile.load(Indptr + segment + 1)
    lanes = metile.arange(0, BLOCK)
    acc = metile.zeros((BLOCK,), "f32")
    for start in metile.tile_range(begin, end, BLOCK):
        acc += metile.load(X + start + lanes, mask=start + lanes < end, other=0.0)
    metile.store(Out + segment, metile.sum(acc))


@metile.kernel
def segment_sum_sorted(X, Ids, Out, N, BLOCK: metile.constexpr):
    offs = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    mask = offs < N
    metile.atomic_add(Out + metile.load(Ids + offs, mask=mask), metile.load(X + offs, mask=mask), mask=mask)


def test_sums_of_segments_by_rows_and_by_atomics(random):
    sizes = np.array([3, 0, 500, 17, 128])
    p = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    x, out = normal(random, p[-1]), nan(5)
    segment_sum[(5,)](x, p, out, BLOCK=128)
    e = [x[p[i]:p[i + 1]].sum(dtype=np.float64) for i in range(5)]
    np.testing.assert_allclose(out, e, rtol=1e-4, atol=1e-4)
    out = np.zeros(5, np.float32)
    segment_sum_sorted[(metile.cdiv(len(x), 64),)](x, np.repeat(np.arange(5), sizes).astype(np.int32), out, len(x), BLOCK=64)
    np.testing.assert_allclose(out, e, rtol=1e-4, atol=1e-4)


# histogram by block in shared memory
@metile.kernel
def histogram(X, Out, N, BINS: metile.constexpr, BLOCK: metile.constexpr):
    lane = metile.arange(0, BLOCK)
    counts = metile.shared(BINS, "i32")
    for b in metile.tile_range(0, BINS, BLOCK):
        metile.store(counts + b + lane, 0, mask=b + lane < BINS)
    metile.barrier()
    for start in metile.tile_range(metile.program_id(0) * BLOCK, N, metile.num_programs(0) * BLOCK):
        mask = start + lane < N
        x = metile.load(X + start + lane, mask=mask)
        metile.atomic_add(counts + metile.cast(x, "i32"), 1, mask=mask)
    metile.barrier()
    for b in metile.tile_range(0, BINS, BLOCK):
        metile.atomic_add(Out + b + lane, metile.load(counts + b + lane, mask=b + lane < BINS), mask=b + lane < BINS)


def test_a_histogram_in_shared_memory(random):
    x = random.integers(0, 200, 50001).astype(np.uint8)
    out = np.zeros(200, np.int32)
    histogram[(7,)](x, out, len(x), BINS=200, BLOCK=128)
    np.testing.assert_array_equal(out, np.bincount(x, minlength=200))


# causal depthwise conv1d (Mamba) and conv1d as a product
@metile.kernel
def causal_conv1d(X, W, B, Out, T, WIDTH: metile.constexpr, BLOCK: metile.constexpr):
    c = metile.program_id(1)
    t = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    acc = metile.load(B + c)
    for j in range(WIDTH):
        at = t + j - (WIDTH - 1)
        acc += metile.load(W + c * WIDTH + j) * metile.load(X + c * T + at, mask=(at >= 0) & (at < T), other=0.0)
    metile.store(Out + c * T + t, acc * metile.sigmoid(acc), mask=t < T)


@metile.kernel
def conv1d(X, W, Out, T, C_IN, C_OUT, WIDTH: metile.constexpr, BC: metile.constexpr, BT: metile.constexpr, BK: metile.constexpr):
    # X: [T + WIDTH - 1, C_IN] padded, W: [WIDTH, C_IN, C_OUT], Out: [T, C_OUT]
    pt, pc = metile.program_id(0), metile.program_id(1)
    acc = metile.zeros((BT, BC), "f32")
    for j in range(WIDTH):
        for k in metile.tile_range(0, C_IN, BK):
            x = metile.tile_load(X, pt * BT + j, k, C_IN, (BT, BK))
            w = metile.tile_load(W + j * C_IN * C_OUT, k, pc * BC, C_OUT, (BK, BC))
            acc = metile.dot(x, w, acc)
    metile.tile_store(Out, pt * BT, pc * BC, C_OUT, acc, (BT, BC))


def test_convolutions_by_lanes_and_by_products(random):
    C, T, W = 6, 300, 4
    x, w, b, out = normal(random, C, T), normal(random, C, W), normal(random, C), nan(C, T)
    causal_conv1d[(metile.cdiv(T, 128), C)](x, w, b, out, T, WIDTH=W, BLOCK=128)
    xp = np.pad(x.astype(np.float64), ((0, 0), (W - 1, 0)))
    y = b[:, None] + sum(w[:, j:j + 1] * xp[:, j:j + T] for j in range(W))
    np.testing.assert_allclose(out, y / (1 + np.exp(-y)), rtol=1e-5, atol=1e-5)
    Ci, Co = 20, 33
    x, w, out = normal(random, T, Ci), normal(random, W, Ci, Co), nan(T, Co)
    xp = np.pad(x, ((W - 1, 0), (0, 0)))
    conv1d[(metile.cdiv(T, 32), metile.cdiv(Co, 32))](xp, w, out, T, Ci, Co, WIDTH=W, BC=32, BT=32, BK=16)
    np.testing.assert_allclose(out, sum(xp[j:j + T].astype(np.float64) @ w[j] for j in range(W)), rtol=1e-4, atol=1e-4)
