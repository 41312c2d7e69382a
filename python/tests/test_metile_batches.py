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
        z, m, n, k = 4, *(int(extent) for extent in random.integers(1, 40, 3))
        a, b = random.standard_normal((z, m, k)).astype(np.float32), random.standard_normal((z, k, n)).astype(np.float32)
        c = np.full((z, m, n), np.nan, np.float32)
        for _ in range(2):  # the second launch goes straight to the runtime
            kernel[(-(-m // 16), -(-n // 16), z)](a, b, c, m, n, k, BM=16, BN=16, BK=8)
        np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


def test_ragged_batches_are_proven_free_of_races(random, recwarn):
    kernel = product(MOVES["z * rows * columns"])
    a, b, c = (random.standard_normal((3, *shape)).astype(np.float32) for shape in ((13, 9), (9, 21), (13, 21)))
    kernel[(1, 2, 3)](a, b, c, 13, 21, 9, BM=16, BN=16, BK=8)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)
    assert not recwarn.list


@metile.kernel
def halos(X, Out, M, D: metile.constexpr, BT: metile.constexpr):
    """Each row and its two neighbours, which the first and the last of a matrix lack."""
    base, row = metile.program_id(1) * M * D, metile.program_id(0) * BT
    total = metile.zeros((BT, D))
    for shift in (-1, 0, 1):
        total = total + metile.tile_load(X + base, row + shift, 0, D, (BT, D))
    metile.tile_store(Out + base, row, 0, D, total, (BT, D))


@pytest.mark.parametrize("m", [1, 3, 8, 13])
def test_rows_before_and_behind_a_matrix_are_outside(random, m):
    x = random.standard_normal((5, m, 6)).astype(np.float32)
    x[2] = np.inf  # which a neighbour would see
    out = np.full_like(x, np.nan)
    halos[(-(-m // 8), 5)](x, out, m, D=6, BT=8)
    padded = np.pad(x, ((0, 0), (1, 1), (0, 0)))
    np.testing.assert_allclose(out, padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:], rtol=1e-6)


@metile.kernel
def in_pieces(X, Out, M, PIECE, heads, D: metile.constexpr, BT: metile.constexpr, SAID: metile.constexpr):
    """The pointer moves to a head and to a piece of the head's rows."""
    place = metile.program_id(1) * M * D + metile.program_id(0) * PIECE * D
    rows = metile.minimum(PIECE, M - metile.program_id(0) * PIECE) if SAID else None
    for row in range(0, 8, BT):
        metile.tile_store(Out + place, row, 0, D, metile.tile_load(X + place, row, 0, D, (BT, D), rows=rows) + 1, (BT, D), rows=rows)


@pytest.mark.filterwarnings("ignore:.*W0631")
@pytest.mark.parametrize("m, piece", [(13, 8), (7, 8), (16, 4), (4, 8)])
def test_pieces_of_matrices_end_with_them(random, m, piece):
    x = random.standard_normal((3, m, 4)).astype(np.float32)
    for said in (True, False):
        out = np.full_like(x, np.nan)
        launch = lambda: in_pieces[(-(-m // piece), 3)](x, out, m, piece, 3, D=4, BT=4, SAID=said)
        if not said and m % piece and piece % m:
            with pytest.raises(ValueError, match=f"moves by {min(m, piece)} and {max(m, piece)} rows: which rows its matrix has is not known"):
                launch()
            continue
        launch()
        np.testing.assert_array_equal(out, x + 1)


@metile.kernel
def walks(X, Out, M, D: metile.constexpr, BT: metile.constexpr):
    """By as many rows as the tile has, and by single ones."""
    head = metile.program_id(0) * M * D
    for row in metile.tile_range(0, M, BT):
        metile.tile_store(Out + head + row * D, 0, 0, D, metile.tile_load(X + head + row * D, 0, 0, D, (BT, D)) + 1, (BT, D))
    head = head + metile.program_id(0) * 0 * BT * D + metile.num_programs(1) * BT * D
    metile.tile_store(Out + head, 0, 0, D, metile.tile_load(X + head, 0, 0, D, (BT, D)) + 2, (BT, D))


@pytest.mark.parametrize("m", [3, 11, 16])
def test_walks_end_with_their_matrices(random, m):
    x = random.standard_normal((3, m, 4)).astype(np.float32)
    out, expected = np.full_like(x, np.nan), x + 1
    walks[(3,)](x, out, m, D=4, BT=8)
    expected[:, 8:16] += 1
    np.testing.assert_allclose(out, expected, rtol=1e-6)


@metile.kernel
def by_constants(X, Out, T: metile.constexpr, D: metile.constexpr, BT: metile.constexpr):
    place = metile.program_id(1) * T * D
    metile.tile_store(Out + place, metile.program_id(0) * BT, 0, D, 2 * metile.tile_load(X + place, metile.program_id(0) * BT, 0, D, (BT, D)), (BT, D))


@pytest.mark.parametrize("t", [8, 9, 20, 24])
def test_matrices_of_constant_extents(random, t):
    x = random.standard_normal((3, t, 5)).astype(np.float32)
    out = np.full_like(x, np.nan)
    by_constants[(-(-t // 8), 3)](x, out, T=t, D=5, BT=8)
    np.testing.assert_array_equal(out, 2 * x)


@metile.kernel
def one_tile(X, Out, T: metile.constexpr, D: metile.constexpr, BT: metile.constexpr):
    place = metile.program_id(0) * T * D
    x = metile.tile_load(X + place, 0, 0, D, (BT, D))
    metile.tile_store(Out + place, 0, 0, D, x * metile.sum(x, axis=0, keep_dims=True), (BT, D))


@pytest.mark.parametrize("t", [2, 7])
def test_matrices_of_fewer_rows_than_a_tile(random, t):
    """Where the row of the tile moves, and where the tile is stored."""
    x = random.standard_normal((4, t, 5)).astype(np.float32)
    out, expected = np.full_like(x, np.nan), 2 * x[:3]
    by_constants[(2, 3)](x, out, T=t, D=5, BT=8)
    np.testing.assert_array_equal(out[:3], expected)
    assert np.isnan(out[3]).all()
    one_tile[(3,)](x, out, T=t, D=5, BT=8)
    np.testing.assert_allclose(out[:3], x[:3] * x[:3].sum(1, keepdims=True), rtol=1e-5, atol=1e-5)
    assert np.isnan(out[3]).all()


def test_tiles_that_may_be_windows_are_refused():
    """Rows of a tile of 8 that a pointer moves by 6: the kernel stores tiles of 6."""
    @metile.kernel
    def halo(X, Out, D: metile.constexpr):
        place = metile.program_id(0) * 6 * D
        x = metile.tile_load(X + place, 0, 0, D, (8, D))
        metile.tile_store(Out + place, 0, 0, D, metile.sum(x, axis=0) + metile.zeros((6, D)), (6, D))

    with pytest.raises(metile.LoweringError, match="of 8 rows by a pointer that moves by 6: how many rows its matrix has is not known.*`rows=…`") as caught:
        halo[(2,)](np.zeros((3, 6, 5), np.float32), np.zeros((3, 6, 5), np.float32), D=5)
    assert "tile_load(X + place" in str(caught.value)


@metile.kernel
def sequences(X, Starts, Out, D: metile.constexpr, BT: metile.constexpr):
    """Of any lengths, one behind another."""
    first = metile.load(Starts + metile.program_id(1))
    rows, row = metile.load(Starts + metile.program_id(1) + 1) - first, metile.program_id(0) * BT
    x = metile.tile_load(X + first * D, row - 1, 0, D, (BT, D), rows=rows)
    metile.tile_store(Out + first * D, row, 0, D, x + 1, (BT, D), rows=rows)


@pytest.mark.filterwarnings("ignore:.*W0631")
def test_rows_may_be_said(random):
    starts = np.concatenate([[0], np.cumsum(random.integers(0, 20, 7))]).astype(np.int32)
    x = random.standard_normal((int(starts[-1]) + 4, 3)).astype(np.float32)
    out = np.full_like(x, np.nan)
    sequences[(3, 7)](x, starts, out, D=3, BT=8)
    for first, end in zip(starts, starts[1:]):
        np.testing.assert_array_equal(out[first:end], np.pad(x[first:end], ((1, 0), (0, 0)))[:-1] + 1)
    assert np.isnan(out[starts[-1] :]).all()


@pytest.mark.parametrize("rows, kind", [(-1, TypeError), (2.0, TypeError), ("x", TypeError)])
def test_rows_are_a_number_of_rows(rows, kind):
    @metile.kernel
    def wrong(X, Out):
        metile.tile_store(Out, 0, 0, 8, metile.tile_load(X, 0, 0, 8, (4, 8), rows=rows), (4, 8))

    with pytest.raises(kind, match="the rows of tile_load are an integer"):
        wrong[(1,)](np.zeros((4, 8), np.float32), np.zeros((4, 8), np.float32))


def test_rows_that_overlap_are_not_stored_by_moving_the_pointer():
    @metile.kernel
    def wrong(Out, Starts):
        metile.tile_store(Out + metile.load(Starts + metile.program_id(0)) * 8, 0, 0, 8, metile.zeros((4, 8)), (4, 8))

    with pytest.raises(metile.LoweringError, match="tile_store of 4 rows by a pointer that moves by 1: how many rows"):
        wrong[(2,)](np.zeros((9, 8), np.float32), np.zeros(2, np.int32))


def test_matrices_that_begin_with_another_row_are_refused(random):
    @metile.kernel
    def behind_a_head(X, Out, M, HEAD):
        metile.tile_store(Out + metile.program_id(0) * M * 8, 0, 0, 8, metile.tile_load(X + HEAD * 8 + metile.program_id(0) * M * 8, 0, 0, 8, (4, 8)), (4, 8))

    x, out = random.standard_normal((9, 8)).astype(np.float32), np.full((6, 8), np.nan, np.float32)
    behind_a_head[(2,)](x, out, 3, 3)
    np.testing.assert_array_equal(out, x[3:])
    with pytest.raises(ValueError, match="begins with row 2 and moves by 3 rows: which rows its matrix has is not known"):
        behind_a_head[(2,)](x, out, 3, 2)


@metile.kernel
def vectors(X, Out, N, BLOCK: metile.constexpr):
    """A batch of vectors, as columns and backwards."""
    last = metile.num_programs(1) - 1
    x = metile.tile_load(X + last * N - metile.program_id(1) * N, metile.program_id(0) * BLOCK, 0, 1, (BLOCK, 1))
    metile.tile_store(Out + metile.program_id(1) * N, metile.program_id(0) * BLOCK, 0, 1, x, (BLOCK, 1))


@pytest.mark.parametrize("n", [1, 16, 37])
def test_vectors_end_too(random, n):
    x = random.standard_normal((3, n)).astype(np.float32)
    out = np.full_like(x, np.nan)
    vectors[(-(-n // 16), 3)](x, out, n, BLOCK=16)
    np.testing.assert_array_equal(out, x[::-1])


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
def shared_heads(X, Out, T, H: metile.constexpr, D: metile.constexpr, BT: metile.constexpr):
    matrix = X + (metile.program_id(0) // H * 2 + metile.program_id(0) % H // (H // 2)) * T * D
    acc = metile.zeros((BT, D))
    for t in metile.tile_range(0, T, BT):
        acc += metile.tile_load(matrix, t, 0, D, (BT, D))
    for t in metile.tile_range(0, T, BT):
        acc += 10.0 * metile.tile_load(matrix, t, 0, D, (BT, D))
    metile.tile_store(Out + metile.program_id(0) * BT * D, 0, 0, D, acc + metile.tile_load(matrix, 0, 0, D, (BT, D)), (BT, D))


def test_numbers_of_matrices_that_are_first_taken_apart_in_a_loop(random):
    b, h, t, d = 2, 4, 21, 8
    x = random.standard_normal((b, 2, t, d)).astype(np.float32)
    out = np.full((b, h, 8, d), np.nan, np.float32)
    shared_heads[(b * h,)](x, out, t, H=h, D=d, BT=8)
    padded = np.concatenate([x, np.zeros((b, 2, 3, d), np.float32)], axis=2).reshape(b, 2, 3, 8, d)
    np.testing.assert_allclose(out, np.repeat(11 * padded.sum(2) + padded[:, :, 0], 2, axis=1), rtol=1e-5, atol=1e-5)


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
    for step in (8, 32, -8):
        out = np.full((3, 4, 8), np.nan, np.float32)
        moving[(1,)](x, out, 5, STEP=step)
        np.testing.assert_array_equal(out, np.stack([x[5 + i * step // 8 :][:4] for i in range(3)]))


def test_windows_that_overlap_by_moving_the_pointer_are_refused():
    with pytest.raises(metile.LoweringError, match="tile_load of 4 rows by a pointer that moves by 2: how many rows"):
        moving[(1,)](np.zeros((20, 8), np.float32), np.zeros((3, 4, 8), np.float32), 5, STEP=16)


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


@metile.kernel
def transposed_rows(A, Out, ROWS, S, R: metile.constexpr, C: metile.constexpr):
    metile.tile_store(Out, 0, 0, C, metile.tile_load(A, ROWS, 2, S * 2, (R, C)), (R, C))


def test_tiles_have_any_stride_and_offset(random):
    a = random.standard_normal((20, 14), dtype=np.float32)
    out = np.full((8, 6), np.nan, np.float32)
    transposed_rows[1](a, out, 3, 7, R=8, C=6)
    np.testing.assert_array_equal(out, a[3:11, 2:8])
    transposed_rows[1](a, out, -2, 7, R=8, C=6)
    np.testing.assert_array_equal(out[:2], 0)
    transposed_rows[1](a, out, 16, 7, R=8, C=6)
    np.testing.assert_array_equal(out, np.concatenate([a[16:, 2:8], np.zeros((4, 6))]))
