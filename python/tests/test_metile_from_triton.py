"""What programs written for Triton ask for beyond the original package: `other`, num_programs, atomics, steps of any sign, reductions and
transposes of tiles."""
import numpy as np
import pytest

import metile

pytestmark = pytest.mark.usefixtures("where")


@metile.kernel
def row_maxima(X, Out, N, BLOCK: metile.constexpr):
    cols = metile.arange(0, BLOCK)
    x = metile.load(X + metile.program_id(0) * N + cols, mask=cols < N, other=7.0)
    metile.store(Out + metile.program_id(0) * BLOCK + cols, x)
    metile.store(Out + metile.num_programs(0) * BLOCK + metile.program_id(0), metile.max(x, axis=0))


@pytest.mark.parametrize("n", [1, 37, 64])
def test_other_stands_where_the_mask_is_off_and_counts(random, n):
    x, out = random.standard_normal((3, n), dtype=np.float32), np.full(3 * 64 + 3, np.nan, np.float32)
    row_maxima[(3,)](x, out, n, BLOCK=64)
    whole = np.pad(x, ((0, 0), (0, 64 - n)), constant_values=7.0)
    np.testing.assert_array_equal(out[:192].reshape(3, 64), whole)
    np.testing.assert_array_equal(out[192:], whole.max(axis=1))


@metile.kernel
def strided_sums(X, Out, N, BLOCK: metile.constexpr):
    lane, total = metile.arange(0, BLOCK), 0.0
    for start in metile.tile_range(metile.program_id(0) * BLOCK, N, metile.num_programs(0) * BLOCK):
        total += metile.load(X + start + lane, mask=start + lane < N)
    metile.store(Out + metile.program_id(0), metile.sum(total))


@pytest.mark.parametrize("programs", [1, 3, 8])
def test_programs_share_a_loop_by_their_number(random, programs):
    x, out = random.integers(-9, 9, 1000).astype(np.float32), np.full(programs, np.nan, np.float32)
    strided_sums[(programs,)](x, out, 1000, BLOCK=32)
    chunks = np.pad(x, (0, 24)).reshape(-1, 32)
    np.testing.assert_array_equal(out, [chunks[first::programs].sum() for first in range(programs)])


@metile.kernel
def grid_sizes(Out, BLOCK: metile.constexpr):
    place = (metile.program_id(2) * metile.num_programs(1) + metile.program_id(1)) * metile.num_programs(0) + metile.program_id(0)
    metile.store(Out + place, metile.num_programs(0) + 10 * metile.num_programs(1) + 100 * metile.num_programs(2))


@pytest.mark.parametrize("grid", [(3, 4, 2), (5,), (1, 6), (1, 1, 7)])
def test_the_number_of_programs_is_that_of_the_launch(grid):
    out = np.full(int(np.prod(grid)) + 1, -1, np.int32)
    grid_sizes[grid](out, BLOCK=1)
    x, y, z = (*grid, 1, 1)[:3]
    np.testing.assert_array_equal(out, [x + 10 * y + 100 * z] * (len(out) - 1) + [-1])


@metile.kernel
def visits(Out, start, end, step, BY_ARGUMENT: metile.constexpr, STEP: metile.constexpr):
    count = 0
    for i in metile.tile_range(start, end, step if BY_ARGUMENT else STEP):
        metile.store(Out + 1 + count, i)
        count = count + 1
    metile.store(Out + 0, count)


@pytest.mark.parametrize("by_argument", [False, True])
def test_steps_of_any_sign_are_those_of_range(random, by_argument):
    for _ in range(12 if by_argument else 4):
        start, end = (int(number) for number in random.integers(-20, 20, 2))
        step = int(random.choice([-7, -3, -1, 1, 2, 5]))
        out = np.full(64, -99, np.int32)
        visits[(1,)](out, start, end, step, BY_ARGUMENT=by_argument, STEP=step)
        wanted = list(range(start, end, step))
        assert out[0] == len(wanted) and out[1 : 1 + len(wanted)].tolist() == wanted and (out[1 + len(wanted) :] == -99).all(), (start, end, step)


@metile.kernel
def histogram(X, Out, N, BLOCK: metile.constexpr):
    offs = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    metile.atomic_add(Out + metile.load(X + offs, mask=offs < N), 1, mask=offs < N)


@pytest.mark.parametrize("n, block", [(1, 32), (1000, 64), (777, 48)])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.float32])
def test_lanes_add_one_after_the_other(random, n, block, dtype):
    x, out = random.integers(0, 9, n).astype(np.int32), np.zeros(9, dtype)
    histogram[(metile.cdiv(n, block),)](x, out, n, BLOCK=block)
    np.testing.assert_array_equal(out, np.bincount(x, minlength=9))


@metile.kernel
def histogram_in_shared(X, Out, N, BINS: metile.constexpr, BLOCK: metile.constexpr):
    lane, own = metile.arange(0, BLOCK), metile.shared(BINS, "i32")
    metile.store(own + lane, 0, mask=lane < BINS)
    metile.barrier()
    for start in metile.tile_range(metile.program_id(0) * BLOCK, N, metile.num_programs(0) * BLOCK):
        metile.atomic_add(own + metile.load(X + start + lane, mask=start + lane < N), 1, mask=start + lane < N)
    metile.barrier()
    metile.atomic_add(Out + lane, metile.load(own + lane, mask=lane < BINS), mask=lane < BINS)


def test_shared_memory_is_added_to(random):
    x, out = random.integers(0, 20, 1003).astype(np.int32), np.zeros(20, np.int32)
    histogram_in_shared[(3,)](x, out, 1003, BINS=20, BLOCK=64)
    np.testing.assert_array_equal(out, np.bincount(x, minlength=20))


@metile.kernel
def tickets(Counter, Out, BLOCK: metile.constexpr):
    number = metile.atomic_add(Counter + 0, 2)
    metile.store(Out + number * BLOCK // 2 + metile.thread_id(), number)
    for _ in metile.tile_range(0, metile.thread_id() % 3):
        metile.atomic_add(Counter + 1, 1)  # each lane as often as its own loop runs


@pytest.mark.filterwarnings("ignore:.*W0631")
@pytest.mark.parametrize("block", [1, 32, 48])
def test_what_is_the_same_for_all_lanes_is_added_once(block):
    counter, out = np.zeros(2, np.uint32), np.full(5 * block, -1, np.int32)
    tickets[(5,)](counter, out, BLOCK=block)
    assert counter.tolist() == [10, 5 * sum(lane % 3 for lane in range(block))]
    np.testing.assert_array_equal(out, np.repeat([0, 2, 4, 6, 8], block))


@metile.kernel
def extremes(X, Out, N, BLOCK: metile.constexpr):
    offs = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    x = metile.load(X + offs, mask=offs < N)
    metile.atomic_max(Out + 0, x, mask=offs < N)
    metile.atomic_min(Out + 1, x, mask=offs < N)
    metile.atomic_max(Out + 2, metile.max(x), mask=metile.program_id(0) > 0)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.float32])
def test_the_largest_and_the_smallest_stay(random, dtype):
    x = (random.integers(1, 1000, 300) - (0 if dtype == np.uint32 else 500)).astype(dtype)
    lowest, highest = (-np.inf, np.inf) if dtype == np.float32 else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    out = np.array([lowest, highest, lowest], dtype)
    extremes[(5,)](x, out, 300, BLOCK=64)
    np.testing.assert_array_equal(out, [x.max(), x.min(), x[64:].max()])


@metile.kernel
def reductions(X, Rows, Columns, M, N, R: metile.constexpr, C: metile.constexpr):
    x = metile.tile_load(X, 0, 0, N, (R, C))
    metile.tile_store(Rows, 0, 0, 3, metile.sum(x, axis=1), (R, 1))
    metile.tile_store(Rows, 0, 1, 3, metile.max(x, axis=-1), (R, 1))
    metile.tile_store(Rows, 0, 2, 3, metile.min(x, axis=1), (R, 1))
    metile.tile_store(Columns, 0, 0, N, metile.sum(x, axis=0), (1, C))
    metile.tile_store(Columns, 1, 0, N, metile.max(x, axis=0), (1, C))
    metile.tile_store(Columns, 2, 0, N, metile.min(x, axis=-2), (1, C))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8])
@pytest.mark.parametrize("rows, columns", [(16, 32), (5, 7), (64, 1)])
def test_tiles_are_reduced_along_an_axis(random, dtype, rows, columns):
    x = random.integers(0 if dtype == np.uint8 else -3, 3, (rows, columns)).astype(dtype)
    by_row, by_column = np.full((rows, 3), 99, dtype), np.full((3, columns), 99, dtype)
    reductions[(1,)](x, by_row, by_column, rows, columns, R=rows, C=columns)
    np.testing.assert_array_equal(by_row, np.stack([x.sum(1, dtype=dtype), x.max(1), x.min(1)], axis=1))
    np.testing.assert_array_equal(by_column, np.stack([x.sum(0, dtype=dtype), x.max(0), x.min(0)]))


@metile.kernel
def long_row(X, Out, C: metile.constexpr):
    metile.tile_store(Out, 0, 0, 1, metile.sum(metile.tile_load(X, 0, 0, C, (2, C)), axis=1), (2, 1))


def test_tiles_of_f16_are_summed_in_f32():
    x, out = np.ones((2, 4096), np.float16), np.zeros(2, np.float16)
    long_row[(1,)](x, out, C=4096)
    np.testing.assert_array_equal(out, [4096, 4096])


@metile.kernel
def transposed(X, Out, M, N, R: metile.constexpr, C: metile.constexpr):
    row, column = metile.program_id(0) * R, metile.program_id(1) * C
    x = metile.tile_load(X, row, column, N, (R, C))
    metile.tile_store(Out, column, row, M, x.T + metile.transpose(2 * x), (C, R))


@pytest.mark.parametrize("shape", [(16, 8), (33, 70), (1, 5)])
def test_tiles_are_transposed(random, shape):
    x, out = random.standard_normal(shape, dtype=np.float32), np.full(shape[::-1], np.nan, np.float32)
    transposed[(metile.cdiv(shape[0], 16), metile.cdiv(shape[1], 8))](x, out, *shape, R=16, C=8)
    np.testing.assert_array_equal(out, x.T + 2 * x.T)


@metile.kernel
def attention_of_tiles(Q, K, V, Out, S, scale, BLOCK_M: metile.constexpr, BLOCK_N: metile.constexpr, D: metile.constexpr):
    first = metile.program_id(0) * BLOCK_M
    q = metile.tile_load(Q, first, 0, D, (BLOCK_M, D)) * scale
    largest, total = metile.zeros((BLOCK_M, 1)) - 1e30, metile.zeros((BLOCK_M, 1))
    acc = metile.zeros((BLOCK_M, D))
    for key in metile.tile_range(0, S, BLOCK_N):
        scores = metile.dot(q, metile.tile_load(K, key, 0, D, (BLOCK_N, D)).T, metile.zeros((BLOCK_M, BLOCK_N)))
        higher = metile.maximum(largest, metile.max(scores, axis=1))
        weights, shrink = metile.exp(scores - higher), metile.exp(largest - higher)
        total = total * shrink + metile.sum(weights, axis=1)
        acc = metile.dot(weights, metile.tile_load(V, key, 0, D, (BLOCK_N, D)), acc * shrink)
        largest = higher
    metile.tile_store(Out, first, 0, D, acc / total, (BLOCK_M, D))


def test_flash_attention_of_tiles(random):
    q, k, v = (random.standard_normal((96, 16), dtype=np.float32) for _ in range(3))
    out = np.full_like(q, np.nan)
    attention_of_tiles[(3,)](q, k, v, out, 96, 0.25, BLOCK_M=32, BLOCK_N=48, D=16)
    scores = 0.25 * q.astype(np.float64) @ k.T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out, weights @ v / weights.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-5)


GAIN = 3.0


@metile.kernel
def scaled(x, more: metile.constexpr = 2):
    return x * GAIN + more


@metile.kernel
def total_of(X, n):
    total = 0.0
    for i in metile.tile_range(0, n):
        total += metile.load(X + i)
    return total


@metile.kernel
def calls_kernels(X, Out, N, BLOCK: metile.constexpr):
    lane = metile.arange(0, BLOCK)
    metile.store(Out + lane, scaled(metile.load(X + lane, mask=lane < N), more=5) + total_of(X, N), mask=lane < N)


def test_kernels_are_helpers_of_kernels(random, monkeypatch):
    x = random.integers(-9, 9, 10).astype(np.float32)
    for gain in (3.0, 4.0):
        monkeypatch.setitem(globals(), "GAIN", gain)  # which is seen through the kernel that reads it
        out = np.full_like(x, np.nan)
        calls_kernels[(1,)](x, out, 10, BLOCK=16)
        np.testing.assert_array_equal(out, x * gain + 5 + x.sum())
    with pytest.raises(TypeError, match=r"scaled\[grid\]"):
        scaled(1.0)


def test_a_launch_in_a_kernel_is_refused_at_its_line():
    @metile.kernel
    def launches(X, BLOCK: metile.constexpr):
        total_of[(1,)](X, BLOCK)

    with pytest.raises(TypeError, match=r"'X' of kernel 'total_of' is a Pointer.*calls it as a helper\n  --> .*test_metile_from_triton.py"):
        launches[(1,)](np.zeros(4, np.float32), BLOCK=4)


def test_masked_arrays_are_refused():
    x = np.ma.masked_array(np.ones(4, np.float32), [0, 1, 0, 0])
    with pytest.raises(TypeError, match="'X' of kernel 'total_of' is a masked array"):
        total_of[(1,)](x, 4)


@metile.kernel
def products_that_are_added(A, B, C, M, N, K, BM: metile.constexpr, BK: metile.constexpr):
    row, column, acc = metile.program_id(0) * BM, metile.program_id(1) * BM, metile.zeros((BM, BM))
    for k in metile.tile_range(0, K, BK):
        acc += metile.dot(metile.tile_load(A, row, k, K, (BM, BK)), metile.tile_load(B, k, column, N, (BK, BM)))
    metile.tile_store(C, row, column, N, metile.dot(metile.tile_load(A, row, 0, K, (BM, BK)), metile.tile_load(B, 0, column, N, (BK, BM)), acc), (BM, BM))


def test_products_need_no_accumulator(random):
    m, n, k = 21, 18, 37
    a, b, c = random.integers(-4, 5, (m, k)).astype(np.float32), random.integers(-4, 5, (k, n)).astype(np.float32), np.full((m, n), np.nan, np.float32)
    products_that_are_added[(2, 2)](a, b, c, m, n, k, BM=16, BK=8)
    np.testing.assert_array_equal(c, a @ b + a[:, :8] @ b[:8])


@pytest.mark.parametrize("name, instead", [("rand", "hash"), ("argmax", "metile.where"), ("float32", '"f32"'), ("make_block_ptr", "metile.tile_load"), ("sort", "metile.shared")])
def test_names_of_triton_say_what_there_is_instead(name, instead):
    with pytest.raises(AttributeError, match=f"no attribute '{name}': there is .*{instead}"):
        getattr(metile, name)
