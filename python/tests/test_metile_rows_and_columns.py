"""Lanes as rows and columns of tiles, as programs for Triton write them."""
import numpy as np
import pytest

import metile
import metile as tl

pytestmark = pytest.mark.usefixtures("where")


@metile.kernel
def product(A, B, Out, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_om, stride_on, BM: metile.constexpr, BN: metile.constexpr,
            BK: metile.constexpr):
    """The tutorial's: blocks of pointers that the loop moves, rows and columns that wrap, masks along the depth."""
    rows, columns, depth = (tl.program_id(0) * BM + tl.arange(0, BM)) % M, (tl.program_id(1) * BN + tl.arange(0, BN)) % N, tl.arange(0, BK)
    a_ptrs = A + (rows[:, None] * stride_am + depth[None, :] * stride_ak)
    b_ptrs = B + (depth[:, None] * stride_bk + columns[None, :] * stride_bn)
    acc = tl.zeros((BM, BN))
    for k in tl.tile_range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=depth[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=depth[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    out = Out + stride_om * rows[:, None] + stride_on * columns[None, :]
    tl.store(out, acc, mask=(rows[:, None] < M) & (columns[None, :] < N))


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("m, n, k", [(21, 9, 19), (16, 16, 8), (1, 1, 1)])
def test_products_by_blocks_of_pointers(random, m, n, k, is_turned):
    a, b = random.standard_normal((m, k)).astype(np.float32), random.standard_normal((n, k)).astype(np.float32)
    out = np.full((n, m) if is_turned else (m, n), np.nan, np.float32)
    strides = (1, m) if is_turned else (n, 1)
    product[(-(-m // 16), -(-n // 8))](a, b, out, m, n, k, k, 1, 1, k, *strides, BM=16, BN=8, BK=8)
    np.testing.assert_allclose(out.T if is_turned else out, a @ b.T, rtol=1e-4, atol=1e-4)


@metile.kernel
def looked_up(Table, Index, Out, COUNT, D, BM: metile.constexpr, BD: metile.constexpr):
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BD)
    index = tl.load(Index + rows, mask=rows < COUNT)
    mask = (rows[:, None] < COUNT) & (columns[None, :] < D)
    x = tl.load(Table + index[:, None] * D + columns[None, :], mask=mask, other=7.0)
    tl.store(Out + rows[:, None] * BD + columns[None, :], x, mask=rows[:, None] < COUNT)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8])
def test_rows_that_memory_names(random, dtype):
    table, index = random.integers(0, 99, (30, 5)).astype(dtype), random.integers(0, 30, 21).astype(np.int32)
    out = np.zeros((21, 8), dtype)
    looked_up[(3,)](table, index, out, 21, 5, BM=8, BD=8)
    np.testing.assert_array_equal(out, np.pad(table[index], ((0, 0), (0, 3)), constant_values=7))


@metile.kernel
def causal(X, Bias, Out, Sums, M, BM: metile.constexpr, BN: metile.constexpr):
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    mask = (rows[:, None] < M) & (columns[None, :] < M)
    x = tl.load(X + rows[:, None] * M + columns[None, :], mask=mask) + tl.load(Bias + columns, mask=columns < M)[None, :]
    x = tl.where((rows[:, None] >= columns[None, :]) & mask, x, -1e30)
    largest = tl.max(x, axis=1)
    weights = tl.exp(x - largest[:, None])
    total = tl.sum(weights, axis=1)
    tl.store(Out + rows[:, None] * M + columns[None, :], weights / total[:, None], mask=mask)
    tl.store(Sums + rows, largest + tl.log(total), mask=rows < M)


@pytest.mark.parametrize("m", [1, 13, 16])
def test_masks_and_vectors_beside_tiles(random, m):
    x, bias = random.standard_normal((m, m)).astype(np.float32), random.standard_normal(m).astype(np.float32)
    out, sums = np.full_like(x, np.nan), np.full(m, np.nan, np.float32)
    causal[(-(-m // 8),)](x, bias, out, sums, m, BM=8, BN=16)
    scores = np.where(np.tril(np.ones((m, m), bool)), x.astype(np.float64) + bias, -np.inf)
    weights = np.exp(scores)
    np.testing.assert_allclose(out, weights / weights.sum(1, keepdims=True), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(sums, np.log(weights.sum(1)), rtol=1e-4, atol=1e-5)


@metile.kernel
def walks(X, Out, N, BLOCK: metile.constexpr):
    """Pointers and offsets of lanes, which a loop moves; there and back."""
    lanes = tl.arange(0, BLOCK)
    pointer, offsets, total = X + lanes, lanes, 0.0
    for _ in tl.tile_range(0, N, BLOCK):
        total = total + tl.load(pointer, mask=offsets < N)
        pointer, offsets = pointer + BLOCK, BLOCK + offsets
    tl.store(Out + 0, tl.sum(total))
    tl.store(Out + 1, tl.sum(tl.load(pointer - BLOCK, mask=offsets - BLOCK < N)))
    bare, last = X, 0.0
    for _ in tl.tile_range(0, N):
        last = tl.load(bare + 0)
        bare += 1
    tl.store(Out + 2, last)


@pytest.mark.parametrize("n", [1, 32, 75])
def test_pointers_that_a_loop_moves(random, n):
    x, out = random.integers(-9, 9, n).astype(np.float32), np.full(3, np.nan, np.float32)
    walks[(1,)](x, out, n, BLOCK=32)
    np.testing.assert_array_equal(out, [x.sum(), x[(n - 1) // 32 * 32 :].sum(), x[-1]])


@metile.kernel
def back(X, Out, N, BLOCK: metile.constexpr):
    """Offsets of lanes, and of a tile of addresses, which a loop moves down."""
    lanes = N - BLOCK + tl.arange(0, BLOCK)
    offsets = lanes[:, None] + tl.arange(0, 4)[None, :] * 2
    total, tile = 0.0, tl.zeros((BLOCK, 4))
    for step in tl.tile_range(0, N, BLOCK):
        total = total + tl.load(X + lanes) * (step + 1)
        tile = tile + tl.load(X + offsets) * (step + 1)
        lanes = lanes - BLOCK
        offsets = offsets - 1 - (BLOCK - 1)
    tl.store(Out + tl.arange(0, BLOCK), total)
    tl.store(Out + BLOCK + tl.arange(0, BLOCK)[:, None] * 4 + tl.arange(0, 4)[None, :], tile)


def test_offsets_that_a_loop_moves_down(random):
    n, block = 24, 8
    x, out = random.integers(-9, 9, n + 6).astype(np.float32), np.full(5 * block, np.nan, np.float32)
    back[(1,)](x, out, n, BLOCK=block)
    at, weights = n - block + np.arange(block)[None, :] - block * np.arange(3)[:, None], 1 + block * np.arange(3)
    np.testing.assert_array_equal(out[:block], weights @ x[at])
    tiles = x[at[:, :, None] + 2 * np.arange(4)]
    np.testing.assert_array_equal(out[block:].reshape(block, 4), np.tensordot(weights, tiles, 1))


@metile.kernel
def drifting(X, Steps, Out, N, BLOCK: metile.constexpr):
    """Lanes that a loop changes by what is no index."""
    half, loaded = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    for i in tl.tile_range(0, N):
        half = half + 0.5
        loaded = loaded + tl.load(Steps + i)
    tl.store(Out + tl.arange(0, BLOCK), half)
    tl.store(Out + BLOCK + tl.arange(0, BLOCK), tl.load(X + loaded))


def test_lanes_that_a_loop_changes_by_fractions_and_by_what_it_loads(random):
    x, steps, out = random.integers(-9, 9, 40).astype(np.float32), random.integers(0, 5, 5).astype(np.int32), np.full(16, np.nan, np.float32)
    drifting[(1,)](x, steps, out, 5, BLOCK=8)
    np.testing.assert_array_equal(out, np.concatenate([np.arange(8) + 2.5, x[steps.sum() + np.arange(8)]]))


@metile.kernel
def counted(X, Out, M, N, BM: metile.constexpr, BN: metile.constexpr):
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    x = tl.load(X + rows[:, None] * N + columns[None, :], mask=mask)
    tl.atomic_add(Out + rows[:, None] % 3 * 2 + columns[None, :] % 2, x, mask=mask)


def test_tiles_are_added_in_memory(random):
    x, out = random.integers(0, 9, (5, 7)).astype(np.int32), np.zeros((3, 2), np.int32)
    counted[(1,)](x, out, 5, 7, BM=8, BN=8)
    expected = np.zeros((3, 2), np.int32)
    np.add.at(expected, (np.arange(5)[:, None] % 3, np.arange(7)[None, :] % 2), x)
    np.testing.assert_array_equal(out, expected)


@metile.kernel
def turned(X, V, Out, M: metile.constexpr, N: metile.constexpr):
    """A loaded column and a loaded row beside a tile of addresses, stored as they are and turned."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    tile, column, row = tl.load(X + i[:, None] * N + j[None, :]), tl.load(V + i[:, None] * 3), tl.load(V + j[None, :] * 2)
    tl.store(Out + i[:, None] * N + j[None, :], tile * column + row)
    tl.store(Out + M * N + j[:, None] * M + i[None, :], tile.T * column.T + row.T)


def test_loaded_rows_and_columns_are_repeated_and_turned(random):
    m, n = 4, 8
    x, v, out = random.integers(-9, 9, (m, n)).astype(np.float32), random.integers(-9, 9, 40).astype(np.float32), np.full(2 * m * n, np.nan, np.float32)
    turned[(1,)](x, v, out, M=m, N=n)
    expected = x * v[: m * 3 : 3, None] + v[: n * 2 : 2]
    np.testing.assert_array_equal(out, np.concatenate([expected.ravel(), expected.T.ravel()]))


@metile.kernel
def transposed(X, M, N, B: metile.constexpr):
    """In place: what is loaded is what was there before."""
    rows, columns = tl.arange(0, B), tl.arange(0, B)
    x = tl.load(X + rows[:, None] * B + columns[None, :])
    tl.store(X + rows[:, None] * B + columns[None, :], tl.zeros((B, B)))
    tl.store(X + (rows[:, None] * B + columns[None, :]).T, x)


def test_what_was_loaded_stays(random):
    x = random.standard_normal((8, 8)).astype(np.float32)
    expected = x.T.copy()
    transposed[(1,)](x, 8, 8, B=8)
    np.testing.assert_array_equal(x, expected)


BAD = {
    "lanes of several extents": (lambda X: tl.store(X + tl.arange(0, 8), tl.sum(tl.arange(0, 16))), metile.LoweringError, "tiles of 8 and of 16 lanes"),
    "lanes that are added": (lambda X: tl.arange(0, 8) + tl.arange(0, 4), metile.LoweringError, "tiles of 4 and of 8 lanes"),
    "numbers of lanes": (lambda X: (tl.arange(0, 8) + tl.thread_id())[:, None], TypeError, "rows and columns of tiles are made of arange"),
    "a number": (lambda X: tl.program_id(0)[:, None], TypeError, "rows and columns of tiles are made of arange"),
    "another subscript": (lambda X: tl.arange(0, 8)[:, 1], TypeError, "an element of a traced value"),
    "a tile as an offset": (lambda X: tl.load(X + tl.zeros((4, 4), "i32")), metile.LoweringError, "not computed from arange"),
    "read again": (lambda X: (tl.load(X + tl.arange(0, 8))[:, None], tl.store(X + tl.arange(0, 8), 0.0)), metile.LoweringError, "become rows or columns"),
    "shared memory": (lambda X: tl.load(tl.shared(64) + tl.arange(0, 8)[:, None]), TypeError, "a parameter of the kernel with a 2-D tile"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused_is_named(name):
    body, kind, message = BAD[name]

    @metile.kernel
    def wrong(X):
        body(X)

    with pytest.raises(kind, match=message) as caught:
        wrong[(1,)](np.zeros(64, np.float32))
    assert "test_metile_rows_and_columns.py" in str(caught.value)
