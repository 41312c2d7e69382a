"""Vectors as Triton has them: of one extent, beside reductions of 2-D tiles, which are rows and columns here."""
import numpy as np
import pytest

import metile

pytestmark = pytest.mark.usefixtures("where")


@pytest.fixture(autouse=True, params=["as it runs", "checked"])
def checks(request, monkeypatch):
    if request.param == "checked":
        monkeypatch.setenv("METILE_CHECK", "1")


def poisoned(*shape, dtype=np.float32):
    return np.full(shape, np.nan if np.dtype(dtype).kind == "f" else 77, dtype)


def close(got, expected):
    np.testing.assert_allclose(got, expected, rtol=2e-4, atol=2e-4)


@metile.kernel
def layer_norm(X, Out, N, BLOCK: metile.constexpr):
    row, total, squares = metile.program_id(0), metile.zeros([BLOCK]), metile.zeros((BLOCK,), dtype="f32")
    for k in metile.tile_range(0, N, BLOCK):
        total += metile.load(X + row * N + k + metile.arange(0, BLOCK), mask=k + metile.arange(0, BLOCK) < N, other=0.0)
    mean = metile.sum(total, axis=0) / N
    for k in metile.tile_range(0, N, BLOCK):
        lanes = k + metile.arange(0, BLOCK)
        x = metile.where(lanes < N, metile.load(X + row * N + lanes, mask=lanes < N, other=0.0) - mean, 0.0)
        squares += x * x
    scale = metile.rsqrt(metile.sum(squares, axis=0) / N + 1e-5)
    for k in metile.tile_range(0, N, BLOCK):
        lanes = k + metile.arange(0, BLOCK)
        metile.store(Out + row * N + lanes, (metile.load(X + row * N + lanes, mask=lanes < N) - mean) * scale, mask=lanes < N)


def test_sums_of_lanes_begin_with_zeros_of_one_extent(random):
    x, out = random.standard_normal((3, 150), dtype=np.float32), poisoned(3, 150)
    layer_norm[(3,)](x, out, 150, BLOCK=64)
    centred = x - x.mean(1, keepdims=True)
    close(out, centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5))


@metile.kernel
def attention(Q, K, V, Out, T, scale, D: metile.constexpr, BM: metile.constexpr, BN: metile.constexpr):
    rows, keys, d = metile.program_id(0) * BM + metile.arange(0, BM), metile.arange(0, BN), metile.arange(0, D)
    q = metile.load(Q + rows[:, None] * D + d[None, :], mask=rows[:, None] < T, other=0.0)
    most, total, acc = metile.zeros((BM,)) - float("inf"), metile.zeros(BM), metile.zeros((BM, D))
    for n in metile.tile_range(0, T, BN):
        k = metile.load(K + (n + keys[:, None]) * D + d[None, :], mask=n + keys[:, None] < T, other=0.0)
        s = metile.where(n + keys[None, :] < T, metile.dot(q, k.T, metile.zeros((BM, BN))) * scale, -1e30)
        now = metile.maximum(most, metile.max(s, axis=1))
        p, shrunk = metile.exp(s - now[:, None]), metile.exp(most - now)
        total = total * shrunk + metile.sum(p, axis=1)
        v = metile.load(V + (n + keys[:, None]) * D + d[None, :], mask=n + keys[:, None] < T, other=0.0)
        acc, most = metile.dot(p, v, acc * shrunk[:, None]), now
    metile.store(Out + rows[:, None] * D + d[None, :], acc / total[:, None], mask=rows[:, None] < T)


def test_a_loop_carries_vectors_that_begin_as_zeros_and_become_rows_of_tiles(random):
    t = int(random.integers(20, 40))
    q, k, v = random.standard_normal((3, t, 16), dtype=np.float32)
    out = poisoned(t, 16)
    attention[(metile.cdiv(t, 16),)](q, k, v, out, t, 0.25, D=16, BM=16, BN=8)
    p = np.exp(q @ k.T * 0.25)
    close(out, p / p.sum(1, keepdims=True) @ v)


@metile.kernel
def rows_and_columns(X, Bias, Rows, Columns, M, N, BM: metile.constexpr, BN: metile.constexpr):
    i, j = metile.arange(0, BM), metile.arange(0, BN)
    x = metile.load(X + i[:, None] * N + j[None, :], mask=(i[:, None] < M) & (j[None, :] < N), other=0.0)
    metile.store(Rows + i, metile.sum(x, axis=1) + metile.load(Bias + i, mask=i < M, other=0.0), mask=i < M)
    metile.store(Columns + j, metile.where(j < 3, metile.max(x, axis=0), metile.cast(j, "f32")), mask=j < N)


def test_lanes_beside_reductions_of_tiles_are_rows_and_columns(random):
    m, n = int(random.integers(1, 17)), int(random.integers(4, 9))
    x, bias, rows, columns = random.random((m, n), dtype=np.float32), random.random(m, dtype=np.float32), poisoned(m + 2), poisoned(n + 2)
    rows_and_columns[(1,)](x, bias, rows, columns, m, n, BM=16, BN=8)
    close(rows[:m], x.sum(1) + bias)
    close(columns[:n], np.where(np.arange(n) < 3, x.max(0), np.arange(n)))
    assert np.isnan(rows[m:]).all() and np.isnan(columns[n:]).all()


@metile.kernel
def numbers(X, Out, M, N, BM: metile.constexpr, BN: metile.constexpr):
    i, j = metile.arange(0, BM), metile.arange(0, BN)
    x = metile.load(X + i[:, None] * N + j[None, :], mask=(i[:, None] < M) & (j[None, :] < N), other=0)
    total = metile.sum(metile.sum(x, axis=1), axis=0)
    for _ in metile.tile_range(0, 3):
        total += metile.max(metile.max(x, 0))
    metile.store(Out + 0, total)
    metile.store(Out + 1, metile.min(metile.sum(x * metile.sum(metile.sum(x, 1)), axis=1) // (total + 1), axis=0))


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_reductions_of_reductions_are_numbers(dtype, random):
    m, n = int(random.integers(1, 17)), int(random.integers(1, 9))
    x = (random.random((m, n)) * 100).astype(dtype)
    out = poisoned(2, dtype=dtype)
    numbers[(1,)](x, out, m, n, BM=16, BN=8)
    total = x.sum() + 3 * x.max()
    whole = np.zeros((16, 8), dtype)
    whole[:m, :n] = x
    close(out, [total, ((whole * x.sum()).sum(1) // (total + 1) if dtype == np.int32 else (whole * x.sum()).sum(1) / (total + 1)).min()])


@metile.kernel
def softmax(X, Out, M, N, KEEP: metile.constexpr, BM: metile.constexpr, BN: metile.constexpr):
    i, j = metile.program_id(0) * BM + metile.arange(0, BM), metile.arange(0, BN)
    mask = (i < M)[:, None] & (j < N)[None, :]
    x = metile.load(X + i[:, None] * N + j[None, :], mask, other=-float("inf"))
    if KEEP:
        e = metile.exp(x - metile.max(x, axis=1, keep_dims=True))
        y = e / metile.sum(e, 1, keep_dims=True)
    else:
        e = metile.exp(x - metile.max(x, axis=1)[:, None])
        y = e / metile.sum(e, 1)[:, None]
    metile.store(Out + i[:, None] * N + j[None, :], y, mask)


@pytest.mark.parametrize("keep", [True, False])
def test_reductions_keep_their_axis_when_asked(keep, random):
    x, out = random.standard_normal((10, 21), dtype=np.float32), poisoned(10, 21)
    softmax[(3,)](x, out, 10, 21, KEEP=keep, BM=4, BN=32)
    e = np.exp(x - x.max(1, keepdims=True))
    close(out, e / e.sum(1, keepdims=True))


@metile.kernel
def distances(X, Y, Out, M, N, D, BM: metile.constexpr, BN: metile.constexpr):
    i, j, total = metile.arange(0, BM), metile.arange(0, BN), metile.zeros((BM, BN))
    for d in metile.tile_range(0, D):
        x, y = metile.load(X + i * D + d, mask=i < M, other=0.0), metile.load(Y + j * D + d, mask=j < N, other=0.0)
        step = x[:, None] - y[None, :]
        total += step * step
    metile.store(Out + i[:, None] * N + j[None, :], total, mask=(i[:, None] < M) & (j[None, :] < N))


def test_a_loop_names_vectors_of_several_extents(random):
    m, n, d = int(random.integers(1, 9)), int(random.integers(1, 17)), 5
    x, y, out = random.random((m, d), dtype=np.float32), random.random((n, d), dtype=np.float32), poisoned(m, n)
    distances[(1,)](x, y, out, m, n, d, BM=8, BN=16)
    close(out, ((x[:, None] - y[None]) ** 2).sum(-1))


@metile.kernel
def keys_and_values(Q, K, V, G, DK, DV, T, scale, D: metile.constexpr, BM: metile.constexpr, BN: metile.constexpr):
    n, d = metile.program_id(0) * BN + metile.arange(0, BN), metile.arange(0, D)
    place, inside = n[:, None] * D + d[None, :], n[:, None] < T
    k, v = metile.load(K + place, mask=inside, other=0.0), metile.load(V + place, mask=inside, other=0.0)
    dk, dv, zeros = metile.zeros((BN, D)), metile.zeros((BN, D)), metile.zeros((BM, BN))
    for m in metile.tile_range(0, T, BM):
        q, g = metile.tile_load(Q, m, 0, D, (BM, D)), metile.tile_load(G, m, 0, D, (BM, D))
        p = metile.where((m + metile.arange(0, BM))[:, None] < T, metile.exp(metile.dot(q, k.T, zeros) * scale), 0.0)
        dv = metile.dot(p.T, g, dv)
        dk = metile.dot((p * metile.dot(g, v.T, zeros)).T, q, dk)
    metile.store(DK + place, dk, mask=inside)
    metile.store(DV + place, dv, mask=inside)


def test_two_sums_of_products_share_an_operand(random):
    t = int(random.integers(20, 40))
    q, k, v, g = random.standard_normal((4, t, 16), dtype=np.float32)
    dk, dv = poisoned(t, 16), poisoned(t, 16)
    keys_and_values[(metile.cdiv(t, 16),)](q, k, v, g, dk, dv, t, 0.25, D=16, BM=8, BN=16)
    p = np.exp(q @ k.T * 0.25)
    np.testing.assert_allclose(dv, p.T @ g, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(dk, (p * (g @ v.T)).T @ q, rtol=1e-3, atol=1e-3)


WRONG = {
    "lanes beside a tile": (lambda i: metile.zeros((16, 16)) + i, TypeError, "make it a row or a column"),
    "other extents": (lambda i: metile.sum(metile.zeros((8, 16)), axis=1) + i, ValueError, "16 lanes beside a tile of .8, 1."),
    "lanes beside a kept axis": (lambda i: metile.sum(metile.zeros((16, 16)), axis=1, keep_dims=True) + i, TypeError, "make it a row or a column"),
    "lanes beside a column": (lambda i: metile.sum(metile.zeros((16, 16)), axis=1)[:, None] + i, TypeError, "make it a row or a column"),
    "no elements": (lambda i: metile.zeros((0,)), ValueError, "a tile of 0 elements"),
    "three extents": (lambda i: metile.zeros((1, 2, 3)), TypeError, "a tile has two extents"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_vector_is_refused_at_its_line(name):
    made, error, message = WRONG[name]

    @metile.kernel
    def kernel(X, BLOCK: metile.constexpr):
        i = metile.arange(0, BLOCK)
        metile.store(X + i, made(i))

    with pytest.raises(error, match=f"{message}[^\n]*\n  --> {__file__}:"):
        kernel[(1,)](np.zeros(16, np.float32), BLOCK=16)
