"""Matrices whose last row their memory ends within: every element that lies in the memory counts, and no other."""
import numpy as np
import pytest

import metile

pytestmark = [pytest.mark.usefixtures("where"), pytest.mark.filterwarnings("ignore:.*W0631")]


def elements(size, offset, stride, row, column, shape, rows=None, first=0):
    """(where in the memory, is it of the matrix) of the elements of a tile."""
    i, j = np.arange(shape[0])[:, None] + row, np.arange(shape[1])[None, :] + column
    at = offset + (first + i) * stride + j
    inside = (i >= 0) & (j >= 0) & (j < stride) & (first + i >= 0) & (at < size)
    return at, inside if rows is None else inside & (i < rows)


@metile.kernel
def moved(X, Out, row, column, stride, to_row, to_column, to_stride, from_offset, to_offset, R: metile.constexpr, C: metile.constexpr):
    tile = metile.tile_load(X + from_offset, row, column, stride, (R, C))
    metile.tile_store(Out + to_offset, to_row, to_column, to_stride, tile, (R, C))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8])
def test_tiles_of_matrices_that_begin_and_end_anywhere(dtype, random):
    for _ in range(25):
        shape = (4, 8)
        stride, to_stride = random.integers(1, 12, 2).tolist()
        size, to_size = (random.integers(1, 5 * width) + 1 for width in (stride, to_stride))
        offset, to_offset = (int(random.integers(0, min(extent, 6))) for extent in (size, to_size))
        row, to_row = random.integers(-2, 6, 2).tolist()
        column, to_column = random.integers(0, 5, 2).tolist()
        x, out = random.integers(1, 99, size).astype(dtype), random.integers(1, 99, to_size).astype(dtype)
        if dtype in (np.float32, np.float16):
            x[random.integers(size)] = -0.0
        at, inside = elements(size, offset, stride, row, column, shape)
        tile = np.where(inside, x[np.clip(at, 0, size - 1)], 0).astype(dtype)
        wanted = out.copy()
        at, inside = elements(to_size, to_offset, to_stride, to_row, to_column, shape)
        wanted[at[inside]] = tile[inside]
        moved[1](x, out, row, column, stride, to_row, to_column, to_stride, offset, to_offset, R=shape[0], C=shape[1])
        assert out.tobytes() == wanted.tobytes(), (size, stride, offset, row, column, to_size, to_stride, to_offset, to_row, to_column)


@metile.kernel
def counted(X, Out, first, count, row, stride, R: metile.constexpr, C: metile.constexpr):
    tile = metile.tile_load(X + metile.program_id(0) * stride * first, row, 0, stride, (R, C), rows=count)
    metile.tile_store(Out + metile.program_id(0) * R * C, 0, 0, C, tile, (R, C))


@metile.kernel
def stored(Out, first, count, row, stride, R: metile.constexpr, C: metile.constexpr):
    metile.tile_store(Out + metile.program_id(0) * stride * first, row, 0, stride, metile.zeros((R, C), "i32") + 1 + metile.program_id(0), (R, C), rows=count)


def test_the_last_row_of_a_part(random):
    for _ in range(25):
        stride, first, shape = int(random.integers(1, 8)), int(random.integers(1, 5)), (4, 8)
        count, row = int(random.integers(0, first + 1)), int(random.integers(-2, 3))
        size = int(random.integers(1, 3 * first * stride + 1))
        x, out = random.integers(1, 99, size).astype(np.int32), np.zeros((3, *shape), np.int32)
        counted[3](x, out, first, count, row, stride, R=4, C=8)
        memory = x.copy()
        for program in range(3):
            at, inside = elements(size, 0, stride, row, 0, shape, count, program * first)
            np.testing.assert_array_equal(out[program], np.where(inside, x[np.clip(at, 0, size - 1)], 0), str((size, stride, first, count, row, program)))
            memory[at[inside]] = 1 + program
        stored[3](x, first, count, row, stride, R=4, C=8)
        np.testing.assert_array_equal(x, memory)


@metile.kernel
def multiplied(A, B, Out, M, N, K, a_stride, b_stride, out_stride, BM: metile.constexpr, BK: metile.constexpr):
    row, column = metile.program_id(0) * BM, metile.program_id(1) * BM
    acc = metile.zeros((BM, BM))
    for k in metile.tile_range(0, K, BK):
        a = metile.where(metile.arange(0, BK)[None, :] + k < K, metile.tile_load(A, row, k, a_stride, (BM, BK)), 0.0)
        acc = metile.dot(a, metile.tile_load(B, k, column, b_stride, (BK, BM)), acc)
    metile.tile_store(Out, row, column, out_stride, acc, (BM, BM))


def test_products_of_columns_of_larger_matrices(random):
    m, n, k = 21, 16, 19
    a, b, out = (random.standard_normal(shape, dtype=np.float32) for shape in ((m, 2 * k), (k, 3 * n), (m, 2 * n)))
    wanted = out.copy()
    wanted[:, n:] = a[:, k:] @ b[:, 2 * n :]
    given = a.ravel()[k:], b.ravel()[2 * n :], out.ravel()[n:]
    for _ in range(2):
        out[:, n:] = np.nan
        multiplied[2, 1](*given, m, n, k, 2 * k, 3 * n, 2 * n, BM=16, BK=8)
        np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)
    out[:, n:] = np.nan
    launch = multiplied[2, 1].prepare(*given, m, n, k, 2 * k, 3 * n, 2 * n, BM=16, BK=8)
    out[:, n:] = np.nan
    launch()
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)


def test_launches_on_other_sizes_see_their_own_last_row(random):
    """The same kernel and the same integers: one launch has whole rows, another has not."""
    for size in (32, 32, 28, 25, 32, 31, 32):
        x, out = random.integers(1, 99, size).astype(np.int32), np.full(32, -1, np.int32)
        moved[1](x, out, 0, 0, 8, 0, 0, 8, 0, 0, R=4, C=8)
        np.testing.assert_array_equal(out, np.pad(x, (0, 32 - size)))
        x[:] = -1
        out[:] = range(32)
        moved[1](out, x, 0, 0, 8, 0, 0, 8, 0, 0, R=4, C=8)
        np.testing.assert_array_equal(x, out[:size])


def test_launches_with_and_without_such_a_row_take_turns(monkeypatch, random, device):
    """Each kind goes straight to the runtime from the second launch on."""
    if device.startswith("cuda"):
        pytest.skip("NumPy arrays are copied to a GPU, which no straight launch does")
    if metile._dispatch.interprets():
        pytest.skip("the interpreter has no straight launches")
    kernel = metile.kernel(moved.fn)

    def launch(size, to_size):
        x, out = random.integers(1, 99, size).astype(np.float32), random.integers(1, 99, to_size).astype(np.float32)
        at, inside = elements(size, 1, 5, 0, 0, (4, 8))
        tile, wanted = np.where(inside, x[np.clip(at, 0, size - 1)], 0).astype(np.float32), out.copy()
        at, inside = elements(to_size, 0, 6, 0, 0, (4, 8))
        wanted[at[inside]] = tile[inside]
        kernel[1](x, out, 0, 0, 5, 0, 0, 6, 1, 0, R=4, C=8)
        np.testing.assert_array_equal(out, wanted, str((size, to_size)))

    launch(21, 24)
    launch(19, 24)
    monkeypatch.setattr(metile.frontend.kernel.Launcher, "_run", None)
    for _ in range(3):
        launch(21, 24)
        launch(19, 24)
        launch(13, 24)
    with pytest.raises(TypeError):  # both matrices end within a row: not seen before
        launch(19, 23)
