"""The language of kernels: ids, operators, masks, loops, reductions, threads, tiles; each against NumPy on fresh data."""
import math

import numpy as np
import pytest

import metile


def run(kernel, grid, *args, **constants):
    kernel[grid](*args, **constants)


@metile.kernel
def ids(Out, BLOCK: metile.constexpr):
    x, y, z = metile.program_id(0), metile.program_id(1), metile.program_id(2)
    block = (z * 3 + y) * 2 + x
    metile.store(Out + block * BLOCK + metile.arange(0, BLOCK), x + 10 * y + 100 * z + 1000 * metile.thread_id())


def test_ids_on_three_axes():
    out = np.full(4 * 3 * 2 * 32, -1, np.int32)
    run(ids, (2, 3, 4), out, BLOCK=32)
    z, y, x, t = np.indices((4, 3, 2, 32))
    np.testing.assert_array_equal(out.reshape(4, 3, 2, 32), x + 10 * y + 100 * z + 1000 * t)


@metile.kernel
def shifted(Out, BLOCK: metile.constexpr):
    metile.store(Out + metile.arange(5, 5 + BLOCK) - 5, metile.arange(5, 5 + BLOCK))


def test_arange_starts_where_it_says():
    out = np.full(40, -1, np.int32)
    run(shifted, 1, out, BLOCK=40)
    np.testing.assert_array_equal(out, np.arange(5, 45))


def elementwise(body, *, n=100, inputs=1):
    """A kernel that stores body(a, b)."""

    @metile.kernel
    def kernel(A, B, Out, N, BLOCK: metile.constexpr):
        offs = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
        mask = offs < N
        metile.store(Out + offs, body(metile.load(A + offs, mask=mask), metile.load(B + offs, mask=mask)), mask=mask)

    def call(a, b, dtype):
        out = np.full(len(a), 77, dtype)
        kernel[(metile.cdiv(len(a), 64),)](a, b, out, len(a), BLOCK=64)
        return out

    return call


DOUBLE_FUNCTIONS = {
    **{name: getattr(np, name) for name in "exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh sqrt cbrt floor ceil trunc round".split()},
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "erf": np.vectorize(math.erf), "erfc": np.vectorize(math.erfc),
    "rsqrt": lambda x: x**-0.5, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}
FLOAT_CASES = {
    "add": (lambda a, b: a + b, lambda a, b: a + b), "sub": (lambda a, b: a - b, lambda a, b: a - b), "mul": (lambda a, b: a * b, lambda a, b: a * b),
    "div": (lambda a, b: a / b, lambda a, b: a / b), "floordiv is exact": (lambda a, b: a // b, lambda a, b: a / b),
    "masks compared": (lambda a, b: metile.where((a > 1) < (b > 1), a, b), lambda a, b: np.where((a > 1) < (b > 1), a, b)),
    "literal left": (lambda a, b: 1 + a, lambda a, b: 1 + a), "literal right": (lambda a, b: a * 2, lambda a, b: a * 2),
    "reflected sub": (lambda a, b: 0.5 - a, lambda a, b: 0.5 - a), "reflected div": (lambda a, b: 1 / b, lambda a, b: 1 / b),
    "neg": (lambda a, b: -a, lambda a, b: -a), "abs": (lambda a, b: abs(a) + metile.abs(b), lambda a, b: np.abs(a) + np.abs(b)),
    "maximum": (lambda a, b: metile.maximum(0, metile.maximum(a, b)), lambda a, b: np.maximum(0, np.maximum(a, b))),
    "minimum": (lambda a, b: metile.minimum(a, 0.25), lambda a, b: np.minimum(a, 0.25)),
    "where": (lambda a, b: metile.where(a > b, a, 0), lambda a, b: np.where(a > b, a, 0)),
    "leaky": (lambda a, b: metile.where(a < 0, 0.1 * a, a), lambda a, b: np.where(a < 0, 0.1 * a, a)),
    "exp": (lambda a, b: metile.exp(a), lambda a, b: np.exp(a)), "fast_exp": (lambda a, b: metile.fast_exp(a), lambda a, b: np.exp(a)),
    "log": (lambda a, b: metile.log(abs(a) + 1), lambda a, b: np.log(np.abs(a) + 1)), "sqrt": (lambda a, b: metile.sqrt(abs(b)), lambda a, b: np.sqrt(np.abs(b))),
    "tanh": (lambda a, b: metile.tanh(a), lambda a, b: np.tanh(a)), "pow": (lambda a, b: abs(a) ** 2.5, lambda a, b: np.abs(a) ** 2.5),
    "and": (lambda a, b: metile.where((a > 0) & (b > 0), 1.0, 2.0), lambda a, b: np.where((a > 0) & (b > 0), 1, 2)),
    "or": (lambda a, b: metile.where((a > 0) | (b > 0), 1.0, 2.0), lambda a, b: np.where((a > 0) | (b > 0), 1, 2)),
    "xor": (lambda a, b: metile.where((a > 0) ^ (b > 0), 1.0, 2.0), lambda a, b: np.where((a > 0) ^ (b > 0), 1, 2)),
    "not": (lambda a, b: metile.where(~(a > 0), 1.0, 2.0), lambda a, b: np.where(a > 0, 2, 1)),
    "eq": (lambda a, b: metile.where(a == a, a, b), lambda a, b: a), "ne": (lambda a, b: metile.where(a != a, a, b), lambda a, b: b),
    "cast": (lambda a, b: metile.cast(metile.cast(a * 10, "i32"), "f32"), lambda a, b: np.trunc(a * 10)),
    "half": (lambda a, b: metile.cast(metile.cast(a, "f16"), "f32"), lambda a, b: a.astype(np.float16)),
    **{name: (lambda a, b, name=name: getattr(metile, name)(abs(a) * 0.2), lambda a, b, name=name: DOUBLE_FUNCTIONS[name](np.abs(a) * 0.2))
       for name in metile._ops.FLOAT_FUNCTIONS},
    "scalar": (lambda a, b: a + metile.scalar(3), lambda a, b: a + 3), "mask counts": (lambda a, b: a + (b > 0), lambda a, b: a + (b > 0)),
}


@pytest.mark.parametrize("case", FLOAT_CASES)
def test_operators_of_floats(case, random):
    body, oracle = FLOAT_CASES[case]
    a, b = random.standard_normal((2, 150), dtype=np.float32)
    np.testing.assert_allclose(elementwise(body)(a, b, np.float32), oracle(a.astype(np.float64), b.astype(np.float64)), rtol=2e-5, atol=1e-6)


INT_CASES = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b, "shl": lambda a, b: a << 3, "shr": lambda a, b: a >> 2, "mod": lambda a, b: a % 7, "div": lambda a, b: a // 5,
    "reflected mod": lambda a, b: 100 % b, "reflected shl": lambda a, b: 1 << (b & 7),
}


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
@pytest.mark.parametrize("case", INT_CASES)
def test_operators_of_integers(case, dtype, random):
    a, b = random.integers(1, 1000, (2, 150)).astype(dtype)
    np.testing.assert_array_equal(elementwise(INT_CASES[case])(a, b, dtype), INT_CASES[case](a, b))


def test_reverse_bits(random):
    a = random.integers(0, 1 << 32, 150, dtype=np.uint32)
    expected = np.array([int(f"{value:032b}"[::-1], 2) for value in a], np.uint32)
    np.testing.assert_array_equal(elementwise(lambda a, b: metile.reverse_bits(a))(a, a.copy(), np.uint32), expected)


@pytest.mark.parametrize("left, right, expected", [(np.float16, np.float16, np.float16), (np.float16, np.float32, np.float32), (np.int32, np.float32, np.float32),
                                                   (np.uint8, np.int32, np.int32)])
def test_promotion_takes_the_wider_side(left, right, expected, random):
    a, b = random.integers(1, 50, 64).astype(left), random.integers(1, 50, 64).astype(right)
    np.testing.assert_allclose(elementwise(lambda a, b: a * b)(a, b, expected), a.astype(expected) * b.astype(expected))


def test_a_float_literal_makes_integers_floats(random):
    a = random.integers(1, 50, 64).astype(np.int32)
    np.testing.assert_allclose(elementwise(lambda a, b: a * 0.5)(a, a.copy(), np.float32), a * 0.5)


@metile.kernel
def masked_store(X, Out, BLOCK: metile.constexpr):
    lanes = metile.arange(0, BLOCK)
    x = metile.load(X + lanes, mask=lanes < 10)
    metile.store(Out + lanes, x + 1)


def test_masked_lanes_read_zero_in_stores(random):
    x = random.standard_normal(32, dtype=np.float32)
    out = np.full(32, np.nan, np.float32)
    run(masked_store, 1, x, out, BLOCK=32)
    np.testing.assert_array_equal(out, np.where(np.arange(32) < 10, x, 0) + np.float32(1))


@metile.kernel
def unmasked(X, Out, BLOCK: metile.constexpr):
    lanes = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK) - 5
    metile.store(Out + lanes, metile.load(X + lanes) + 1)


def test_lanes_outside_the_buffer_touch_nothing(random):
    memory = np.full(300, 5, np.float32)
    out = memory[100:200]
    x = random.standard_normal(100, dtype=np.float32)
    run(unmasked, 3, x, out, BLOCK=64)
    np.testing.assert_array_equal(out, x + np.float32(1))
    np.testing.assert_array_equal(memory[:100], 5)
    np.testing.assert_array_equal(memory[200:], 5)


REDUCTIONS = {"sum": (metile.sum, np.sum), "max": (metile.max, np.max), "min": (metile.min, np.min)}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("lanes", [1, 7, 32, 48, 64, 100, 256, 1024])
@pytest.mark.parametrize("offset", [0, -500, 500])
def test_reductions_are_exact_for_any_number_of_lanes(name, lanes, offset, random):
    function, oracle = REDUCTIONS[name]

    @metile.kernel
    def reduce(X, Out, N, BLOCK: metile.constexpr):
        row = metile.program_id(0)
        cols = metile.arange(0, BLOCK)
        metile.store(Out + row, function(metile.load(X + row * N + cols, mask=cols < N)))

    n = max(1, lanes - 3)
    x = (random.standard_normal((5, n)) + offset).astype(np.float32)
    out = np.full(5, np.nan, np.float32)
    run(reduce, 5, x, out, n, BLOCK=lanes)
    np.testing.assert_allclose(out, oracle(x.astype(np.float64), axis=1), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype, low, high", [(np.int32, -500, -100), (np.int32, 100, 500), (np.uint32, 1 << 31, 1 << 32), (np.uint8, 100, 200)])
def test_reductions_of_integers_and_masks_begin_with_nothing(dtype, low, high, random):
    @metile.kernel
    def reduce(X, Out, Count, N, BLOCK: metile.constexpr):
        lanes = metile.arange(0, BLOCK)
        x = metile.load(X + lanes, mask=lanes < N)
        metile.store(Out + 0, metile.max(x))
        metile.store(Out + 1, metile.min(x))
        metile.store(Count + 0, metile.sum((x % 2 == 0) | (lanes < 0)))

    x, out, count = random.integers(low, high, 45).astype(dtype), np.zeros(2, dtype), np.zeros(1, np.int32)
    run(reduce, 1, x, out, count, 45, BLOCK=64)
    assert out.tolist() == [x.max(), x.min()] and count[0] == (x % 2 == 0).sum()


def test_sums_of_halves_are_rounded_once(random):
    @metile.kernel
    def total(X, Out, BLOCK: metile.constexpr):
        metile.store(Out + metile.program_id(0), metile.sum(metile.load(X + metile.arange(0, BLOCK))))

    x = random.uniform(0, 1, 512).astype(np.float16)
    out = np.zeros(1, np.float16)
    run(total, 1, x, out, BLOCK=512)
    assert abs(float(out[0]) - x.astype(np.float64).sum()) <= 0.5 * np.spacing(out[0])


@metile.kernel
def softmax(X, Out, N, BLOCK: metile.constexpr):
    row = metile.program_id(0)
    m = -1e38
    for i in metile.tile_range(0, N, BLOCK):
        cols = i + metile.arange(0, BLOCK)
        mask = cols < N
        x = metile.load(X + row * N + cols, mask=mask)
        m = metile.maximum(m, x)
    m = metile.max(m)
    s = 0.0
    for i in metile.tile_range(0, N, BLOCK):
        cols = i + metile.arange(0, BLOCK)
        mask = cols < N
        x = metile.load(X + row * N + cols, mask=mask)
        s = s + metile.exp(x - m)
    s = metile.sum(s)
    for i in metile.tile_range(0, N, BLOCK):
        cols = i + metile.arange(0, BLOCK)
        mask = cols < N
        x = metile.load(X + row * N + cols, mask=mask)
        metile.store(Out + row * N + cols, metile.exp(x - m) / s, mask=mask)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 500])
@pytest.mark.parametrize("offset", [0, -500])
def test_ragged_rows_do_not_count_masked_lanes(n, offset, random):
    x = (random.standard_normal((3, n)) + offset).astype(np.float32)
    out = np.full_like(x, np.nan)
    run(softmax, 3, x, out, n, BLOCK=64)
    e = np.exp(x - x.max(axis=1, keepdims=True).astype(np.float64))
    np.testing.assert_allclose(out, e / e.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-7)


@metile.kernel
def fibonacci(Out, N):
    a, b = 0, 1
    first, second = 5, 7
    for _ in metile.tile_range(0, N):
        a, b = b, a + b
        first, second = second, first
    for at, value in enumerate((a, b, first, second)):
        metile.store(Out + at, value)


@pytest.mark.parametrize("n", [0, 1, 2, 30])
def test_carried_pairs_change_together(n):
    out = np.full(4, -1, np.int32)
    run(fibonacci, 1, out, n)
    a, b, first, second = 0, 1, 5, 7
    for _ in range(n):
        a, b, first, second = b, a + b, second, first
    np.testing.assert_array_equal(out, [a, b, first, second])


@metile.kernel
def delayed(Out, N):
    first, second, third = 1, 2, 3
    for _ in metile.tile_range(0, N):
        first = second
        second = third
        third = third + 10
    metile.store(Out + 0, first)


@metile.kernel
def latest(X, Out, N, BLOCK: metile.constexpr):
    lanes = metile.arange(0, BLOCK)
    x = metile.load(X + lanes, mask=lanes < 3)
    for i in metile.tile_range(1, N):
        x = metile.load(X + i * BLOCK + lanes, mask=(lanes + i) % 4 == 0)
    metile.store(Out + 0, metile.min(x))
    metile.store(Out + 1, metile.max(x))


def test_what_later_iterations_read_is_carried_and_lanes_that_were_valid_stay_so(random):
    out = np.zeros(1, np.int32)
    for n, expected in enumerate((1, 2, 3, 13, 23)):
        run(delayed, 1, out, n)
        assert out[0] == expected
    x, out = random.uniform(1, 2, (4, 32)).astype(np.float32), np.zeros(2, np.float32)
    run(latest, 1, x, out, 3, BLOCK=32)
    lanes = np.arange(32)
    last = np.where((lanes + 2) % 4 == 0, x[2], np.where((lanes + 1) % 4 == 0, x[1], np.where(lanes < 3, x[0], np.nan)))
    assert out.tolist() == [np.nanmin(last), np.nanmax(last)]


@metile.kernel
def last_and_where(X, Out, N, BLOCK: metile.constexpr):
    lanes = metile.arange(0, BLOCK)
    best = metile.load(X + lanes)
    position = 0
    for i in metile.tile_range(1, N):
        value = metile.load(X + i * BLOCK + lanes) * 2.0
        position = metile.where(value > best, i, position)
        best = metile.where(value > best, value, best)
    metile.store(Out + lanes, best)
    metile.store(Out + BLOCK + lanes, position)
    metile.store(Out + 2 * BLOCK + lanes, value)


def test_carried_choices_and_values_after_the_loop(random):
    x = random.standard_normal((6, 32), dtype=np.float32)
    out = np.full((3, 32), np.nan, np.float32)
    run(last_and_where, 1, x, out, 6, BLOCK=32)
    scaled = np.concatenate([x[:1], x[1:] * 2])
    np.testing.assert_array_equal(out[0], scaled.max(axis=0))
    np.testing.assert_array_equal(out[1], scaled.argmax(axis=0))
    np.testing.assert_array_equal(out[2], scaled[-1])


@metile.kernel
def lists(X, Out, N, BLOCK: metile.constexpr):
    lanes = metile.arange(0, BLOCK)
    sums = [0.0 for _ in range(3)]
    for i in metile.tile_range(0, N):
        x = metile.load(X + i * BLOCK + lanes)
        for power in range(3):
            sums[power] = sums[power] + x ** (power + 1)
    for power in range(3):
        metile.store(Out + power * BLOCK + lanes, sums[power])


def test_list_elements_are_carried(random):
    x = random.uniform(0.5, 1.5, (5, 32)).astype(np.float32)
    out = np.full((3, 32), np.nan, np.float32)
    run(lists, 1, x, out, 5, BLOCK=32)
    np.testing.assert_allclose(out, [(x.astype(np.float64) ** power).sum(axis=0) for power in (1, 2, 3)], rtol=1e-4)


@metile.kernel
def per_lane(X, Out, N, BLOCK: metile.constexpr):
    lane = metile.thread_id()
    total = 0.0
    for i in metile.tile_range(lane, N, BLOCK):
        total = total + metile.load(X + i)
    metile.store(Out + lane, total)


def test_bounds_of_a_loop_may_differ_per_lane(random):
    x = random.standard_normal(1003, dtype=np.float32)
    out = np.full(64, np.nan, np.float32)
    run(per_lane, 1, x, out, 1003, BLOCK=64)
    np.testing.assert_allclose(out, [x[lane::64].astype(np.float64).sum() for lane in range(64)], rtol=1e-4, atol=1e-5)


@metile.kernel
def nested(Out, N, M):
    total = 0
    for i in metile.tile_range(0, N):
        row = 0
        for j in metile.tile_range(i, M, 2):
            row += j
        total += row * i
    metile.store(Out + 0, total)


def test_loops_nest():
    out = np.full(1, -1, np.int32)
    run(nested, 1, out, 7, 20)
    assert out[0] == sum(i * sum(range(i, 20, 2)) for i in range(7))


@metile.kernel
def simdgroups(X, Out, N, BLOCK: metile.constexpr):
    thread, lane = metile.thread_id(), metile.simd_lane_id()
    group = thread // 32
    total = 0.0
    for row in metile.tile_range(group, N, BLOCK // 32):
        total = total + metile.simd_sum(metile.load(X + row * 32 + lane))
    metile.store(Out + thread, total)
    metile.store(Out + BLOCK + thread, metile.simd_max(metile.load(X + thread)))
    metile.store(Out + 2 * BLOCK + thread, metile.simd_shuffle_xor(metile.load(X + thread), 5))
    metile.store(Out + 3 * BLOCK + thread, metile.simd_broadcast(metile.load(X + thread), 3))
    some = metile.load(X + thread, mask=lane > 20) - 9.0  # lanes that are left out hold -9 and do not count
    metile.store(Out + 4 * BLOCK + thread, metile.simd_sum(some))
    metile.store(Out + 5 * BLOCK + thread, metile.simd_max(some - 9.0))


def test_operations_of_simdgroups(random):
    x = random.standard_normal((13, 32), dtype=np.float32)
    out = np.full((6, 128), np.nan, np.float32)
    run(simdgroups, 1, x, out, 13, BLOCK=128)
    for group in range(4):
        np.testing.assert_allclose(out[0, group * 32], x[group::4].astype(np.float64).sum(), rtol=1e-4, atol=1e-4)
    four = x.reshape(-1)[:128].reshape(4, 32)
    np.testing.assert_array_equal(out[1].reshape(4, 32), np.repeat(four.max(axis=1), 32).reshape(4, 32))
    np.testing.assert_array_equal(out[2].reshape(4, 32), four[:, np.arange(32) ^ 5])
    np.testing.assert_array_equal(out[3].reshape(4, 32), np.repeat(four[:, 3], 32).reshape(4, 32))
    some = four[:, 21:].astype(np.float64) - 9
    np.testing.assert_allclose(out[4].reshape(4, 32), np.repeat(some.sum(axis=1), 32).reshape(4, 32), rtol=1e-5)
    np.testing.assert_allclose(out[5].reshape(4, 32), np.repeat(some.max(axis=1) - 9, 32).reshape(4, 32), rtol=1e-5)


@metile.kernel
def reverse(X, Out, BLOCK: metile.constexpr):
    thread = metile.thread_id()
    memory = metile.shared(BLOCK, dtype="f32")
    metile.store(memory + thread, metile.load(X + thread))
    metile.barrier()
    metile.store(Out + thread, metile.load(memory + (BLOCK - 1 - thread)))


@pytest.mark.parametrize("lanes", [1, 48, 256, 8192])
def test_shared_memory_after_a_barrier(lanes, random):
    x = random.standard_normal(lanes, dtype=np.float32)
    out = np.full(lanes, np.nan, np.float32)
    run(reverse, 1, x, out, BLOCK=lanes)
    np.testing.assert_array_equal(out, x[::-1])


@metile.kernel
def queue(Counter, X, Out, Visits, TOTAL, BLOCK: metile.constexpr):
    lanes = metile.arange(0, BLOCK)
    mine = 0.0
    for item in metile.persistent_range(Counter, TOTAL):
        x = metile.load(X + item * BLOCK + lanes)
        metile.store(Out + item * BLOCK + lanes, x * x)
        mine = mine + 1.0
    metile.store(Visits + metile.program_id(0) * BLOCK + lanes, mine)


@pytest.mark.parametrize("blocks", [1, 3, 40])
def test_a_queue_gives_out_every_number_once(blocks, random):
    x = random.standard_normal((29, 64), dtype=np.float32)
    out, visits, counter = np.full_like(x, np.nan), np.full((blocks, 64), np.nan, np.float32), np.zeros(1, np.uint32)
    run(queue, blocks, counter, x, out, visits, 29, BLOCK=64)
    np.testing.assert_array_equal(out, x * x)
    assert visits[:, 0].sum() == 29 and (visits == visits[:, :1]).all() and counter[0] == 29 + blocks


def test_one_array_for_two_parameters(random):
    @metile.kernel
    def relu(X, Out, N, BLOCK: metile.constexpr):
        offs = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
        metile.store(Out + offs, metile.maximum(metile.load(X + offs, mask=offs < N), 0), mask=offs < N)

    x = random.standard_normal(100, dtype=np.float32)
    expected = np.maximum(x, 0)
    run(relu, 2, x, x, 100, BLOCK=64)
    np.testing.assert_array_equal(x, expected)
    buffer = metile.Buffer(data=random.standard_normal(100).astype(np.float32))
    expected = np.maximum(buffer.numpy(), 0)
    run(relu, 2, buffer, buffer, 100, BLOCK=64)
    np.testing.assert_array_equal(buffer.numpy(), expected)


def matmul_with(epilogue, a_dtype=np.float32):
    @metile.kernel
    def matmul(A, B, C, Bias, M, N, K, scale, BM: metile.constexpr, BN: metile.constexpr, BK: metile.constexpr):
        pm, pn = metile.tile_swizzle(metile.program_id(0), metile.program_id(1))
        acc = metile.zeros((BM, BN), dtype="f32")
        for k in metile.tile_range(0, K, BK):
            acc = metile.dot(metile.tile_load(A, pm * BM, k, K, (BM, BK)), metile.tile_load(B, k, pn * BN, N, (BK, BN)), acc)
        bias = metile.tile_load(Bias, pm * BM, pn * BN, N, (BM, BN))
        metile.tile_store(C, pm * BM, pn * BN, N, epilogue(acc, bias, scale), (BM, BN))

    return matmul


EPILOGUES = {
    "relu": (lambda c, r, s: metile.where(c > 0, c, 0), lambda c, r, s: np.maximum(c, 0)),
    "leaky": (lambda c, r, s: metile.where(c > 0, c, 0.1 * c), lambda c, r, s: np.where(c > 0, c, 0.1 * c)),
    "residual": (lambda c, r, s: c + r, lambda c, r, s: c + r), "scale": (lambda c, r, s: c * s, lambda c, r, s: c * s),
    "twice": (lambda c, r, s: c + c, lambda c, r, s: c + c), "cast": (lambda c, r, s: metile.cast(c, "f16"), lambda c, r, s: c.astype(np.float16)),
    "silu": (lambda c, r, s: c / (1.0 + metile.exp(-c)), lambda c, r, s: c / (1 + np.exp(-c))), "max": (lambda c, r, s: metile.maximum(c, r), lambda c, r, s: np.maximum(c, r)),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", EPILOGUES)
def test_any_expression_is_an_epilogue(name, dtype, random):
    body, oracle = EPILOGUES[name]
    m, n, k = 45, 70, 33
    a, b = random.standard_normal((m, k)).astype(dtype), random.standard_normal((k, n)).astype(dtype)
    r, c = random.standard_normal((m, n)).astype(np.float32), np.full((m, n), np.nan, np.float32)
    run(matmul_with(body), (2, 3), a, b, c, r, m, n, k, 0.5, BM=32, BN=32, BK=16)
    np.testing.assert_allclose(c, oracle(a.astype(np.float64) @ b.astype(np.float64), r, 0.5), rtol=2e-3 if name == "cast" else 1e-4, atol=1e-3)


def test_helpers_and_closures_are_plain_python(random):
    weights = [0.5, 0.25, 0.125]

    def polynomial(x, coefficients):
        total = 0
        for coefficient in coefficients:
            total = total * x + coefficient
        return total

    y = elementwise(lambda a, b: polynomial(a, weights))
    a = random.standard_normal(64, dtype=np.float32)
    np.testing.assert_allclose(y(a, a.copy(), np.float32), (0.5 * a + 0.25) * a + 0.125, rtol=1e-5, atol=1e-6)
