"""Tiles of matrices that lie one behind another: pointers that the program instance moves by whole rows."""
import os

import numpy as np
import pytest

import metile
import vortex

pytestmark = pytest.mark.usefixtures("where")


def product(move):
    """A batch of products; `move(pointer, z, rows, columns)` is the pointer of matrix z."""

    @metile.kernel
    def batched(A, B, C, M, N, K, BM: metile.constexpr, BN: metile.constexpr, BK: metile.constexpr):
        z, row, column = metile.program_id(2), metile.program_id(0) * BM, metile.program_id(1) * BN
        acc = metile.zeros((BM, BN))
        for k in metile.tile_range(0, K, BK):
            a = metile.tile_load(move(A, z, M, K), row, k, K, (BM, BK))
            acc = metile.dot(a, metile.tile_load(move(B, z, K, N), k, column, N, (BK, BN)), acc)
        metile.tile_store(move(C, z, M, N), row, column, N, acc, (BM, BN))

    return batched


MOVES = {
    "z * rows * columns": lambda p, z, m, n: p + z * m * n,
    "z * (rows * columns)": lambda p, z, m, n: p + z * (m * n),
    "rows * columns * z": lambda p, z, m, n: p + m * n * z,
    "columns * (z * rows)": lambda p, z, m, n: p + n * (z * m),
    "in two steps": lambda p, z, m, n: p + z * m * n - 1 * n + n,
    "and on": lambda p, z, m, n: (p + z * n) + z * (m - 1) * n,
    "backwards": lambda p, z, m, n: p + 3 * m * n - (3 - z) * m * n,
}


@pytest.mark.parametrize("move", MOVES)
def test_batches_of_products(move, random):
    kernel = product(MOVES[move])
    for _ in range(2):
        z, m, n, k = 4, 16 * int(random.integers(1, 4)), int(random.integers(1, 40)), 8 * int(random.integers(1, 5))
        a, b = random.standard_normal((z, m, k)).astype(np.float32), random.standard_normal((z, k, n)).astype(np.float32)
        c = np.full((z, m, n), np.nan, np.float32)
        for _ in range(2):  # the second launch goes straight to the runtime
            kernel[(m // 16, -(-n // 16), z)](a, b, c, m, n, k, BM=16, BN=16, BK=8)
        np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


@metile.kernel
def heads(X, Out, T, H, head_stride, batch_stride, D: metile.constexpr, BT: metile.constexpr):
    b, h = metile.program_id(1) // H, metile.program_id(1) % H
    x = metile.tile_load(X + b * batch_stride + h * head_stride, metile.program_id(0) * BT, 0, D, (BT, D))
    metile.tile_store(Out + (b * H + h) * T * D, metile.program_id(0) * BT, 0, D, x * 2.0 + metile.cast(h, "f32"), (BT, D))


def test_strides_that_are_arguments(random):
    b, h, t, d = 2, 3, 24, 16
    x = random.standard_normal((b, h, t, d)).astype(np.float32)
    out = np.full_like(x, np.nan)
    heads[(t // 8, b * h)](x, out, t, h, t * d, h * t * d, D=d, BT=8)
    np.testing.assert_array_equal(out, x * 2 + np.arange(h, dtype=np.float32)[:, None, None])
    for _ in range(2):
        with pytest.raises(ValueError, match=r"'heads'.*steps of 383 elements, which are no whole rows of 16"):
            heads[(t // 8, b * h)](x, out, t, h, t * d - 1, h * t * d, D=d, BT=8)
    heads[(t // 8, b * h)](x, out, t, h, 0, 0, D=d, BT=8)
    np.testing.assert_array_equal(out, x[:1, :1] * 2 + np.arange(h, dtype=np.float32)[:, None, None] + np.zeros_like(x))


@metile.kernel
def ragged(X, Start, Out, D: metile.constexpr, BT: metile.constexpr):
    first = metile.load(Start + metile.program_id(0))
    metile.tile_store(Out + metile.program_id(0) * BT * D, 0, 0, D, metile.tile_load(X + first * D, 0, 0, D, (BT, D)), (BT, D))


def test_rows_that_memory_names(random):
    x, start = random.standard_normal((50, 8)).astype(np.float32), random.integers(0, 40, 6).astype(np.int32)
    out = np.full((6, 10, 8), np.nan, np.float32)
    ragged[(6,)](x, start, out, D=8, BT=10)
    np.testing.assert_array_equal(out, np.stack([x[first : first + 10] for first in start]))
    start[0] = 45  # the matrix ends with its buffer
    ragged[(6,)](x, start, out, D=8, BT=10)
    np.testing.assert_array_equal(out[0], np.concatenate([x[45:], np.zeros((5, 8), np.float32)]))


@metile.kernel
def moving(X, Out, N, STEP: metile.constexpr):
    for i in metile.tile_range(0, 3):
        metile.tile_store(Out + i * 4 * 8, 0, 0, 8, metile.tile_load(X + i * STEP + N * 8, 0, 0, 8, (4, 8)), (4, 8))


def test_pointers_that_a_loop_moves(random):
    x = random.standard_normal((20, 8)).astype(np.float32)
    for step in (8, 16, 32, -8):
        out = np.full((3, 4, 8), np.nan, np.float32)
        moving[(1,)](x, out, 5, STEP=step)
        np.testing.assert_array_equal(out, np.stack([x[5 + i * step // 8 :][:4] for i in range(3)]))


@pytest.mark.parametrize("step", [4, 12, 1, 9])
def test_a_step_that_is_no_whole_rows_is_an_error_at_its_line(step):
    x, out = np.zeros((20, 8), np.float32), np.zeros((3, 4, 8), np.float32)
    with pytest.raises(metile.LoweringError, match=f"moves in steps of {step} elements, and rows have 8") as caught:
        moving[(1,)](x, out, 5, STEP=step)
    assert os.path.basename(__file__) in str(caught.value) and "tile_load" in str(caught.value)


def test_steps_of_no_rows_and_of_fractions_are_errors():
    @metile.kernel
    def wrong(X, Out, STRIDE: metile.constexpr, STEP: metile.constexpr):
        metile.tile_store(Out, 0, 0, 8, metile.tile_load(X + metile.program_id(0) * STEP, 0, 0, STRIDE, (4, 8)), (4, 8))

    x, out = np.zeros((20, 8), np.float32), np.zeros((4, 8), np.float32)
    for stride, step in ((0, 8), (8, 8.0), (8, 2.5)):
        with pytest.raises((metile.LoweringError, TypeError, ValueError, vortex.Error)):
            wrong[(2,)](x, out, STRIDE=stride, STEP=step)


def test_prepared_launches_see_what_changes_in_strided_arrays(random):
    @metile.kernel
    def square(X, Out, N, BLOCK: metile.constexpr):
        i = metile.arange(0, BLOCK)
        metile.store(Out + i, metile.load(X + i, mask=i < N) ** 2, mask=i < N)

    big, strided_out = np.zeros((50, 2), np.float32), np.full((50, 3), np.nan, np.float32)
    run = square[(1,)].prepare(big[:, 1], strided_out[:, 2], 50, BLOCK=64)
    for _ in range(3):
        big[:, 1] = random.standard_normal(50)
        run()
        np.testing.assert_allclose(strided_out[:, 2], big[:, 1] ** 2, rtol=1e-6)
    assert np.isnan(strided_out[:, :2]).all()
