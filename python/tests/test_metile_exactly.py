"""What is easily almost right: digits of literals, ends of ranges, orders of roles and scattered elements, keys that must tell two things apart."""
import copy
import operator
import pickle

import numpy as np
import pytest

import metile
import vortex

OPERATORS = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.truediv, operator.pow, operator.and_, operator.or_,
             operator.xor, operator.lshift, operator.rshift]


@pytest.mark.parametrize("function", OPERATORS)
def test_wrapped_numbers_compute_as_plain_ones_on_either_side(function, random):
    for a, b in random.integers(1, 12, (20, 2)).tolist():
        wrapped = metile.constexpr
        assert function(wrapped(a), b) == function(a, wrapped(b)) == function(wrapped(a), wrapped(b)) == function(a, b)
        assert type(function(wrapped(a), wrapped(b))) is metile.constexpr


def test_literals_keep_all_of_their_digits(where, random):
    value, number = float(random.standard_normal()), int(random.integers(1 << 29, 1 << 30))

    @metile.kernel
    def k(Floats, Ints, BLOCK: metile.constexpr):
        i = metile.arange(0, BLOCK)
        metile.store(Floats + i, value + 0.0 * i)
        metile.store(Ints + i, number + i)

    floats, ints = np.full(4, np.nan, np.float32), np.zeros(4, np.int32)
    k[(1,)](floats, ints, BLOCK=4)
    np.testing.assert_array_equal(floats, np.float32(value))
    np.testing.assert_array_equal(ints, number + np.arange(4))


@pytest.mark.parametrize("number", [1 << 63, -(1 << 63) - 1])
def test_literals_of_more_than_64_bits_are_refused_at_their_line(where, number):
    @metile.kernel
    def k(Out, BLOCK: metile.constexpr):
        i = metile.arange(0, BLOCK)
        metile.store(Out + i, i + number)

    with pytest.raises(OverflowError, match=r"(?s)does not fit 64 bits.*test_metile_exactly.py:\d+:31\n.*i \+ number\)\n +\^{10}$"):
        k[(1,)](np.zeros(4, np.int32), BLOCK=4)


def test_a_pointer_is_not_moved_by_what_differs_between_lanes(where):
    @metile.kernel
    def k(X, Out, BLOCK: metile.constexpr):
        at = X + metile.arange(0, BLOCK)
        for _ in metile.tile_range(2):
            at = at + (metile.thread_id() + 1)
        metile.store(Out + metile.arange(0, BLOCK), metile.load(at))

    with pytest.raises(metile.LoweringError, match="moved by an integer that is the same for all lanes"):
        k[(1,)](np.zeros(32, np.float32), np.zeros(8, np.float32), BLOCK=8)


@pytest.mark.parametrize("text", ["a\tb", "ü\n\x01z", "100%", "\x7f "])
def test_any_text_is_printed(where, text, capsys):
    @metile.kernel
    def k(Out, BLOCK: metile.constexpr):
        metile.print(text)
        metile.store(Out + metile.arange(0, BLOCK), 1.0)

    k[(1,)](np.zeros(1, np.float32), BLOCK=1)
    assert capsys.readouterr().out == text + "\n"


def test_a_queue_draws_from_its_own_counter(where):
    @metile.kernel
    def k(Counters, Out, N, BLOCK: metile.constexpr):
        for item in metile.persistent_range(Counters + 2, N):
            metile.store(Out + item, item)

    counters, out = np.array([5, 6, 0, 7], np.uint32), np.full(10, -1, np.int32)
    k[(3,)](counters, out, 10, BLOCK=1)
    np.testing.assert_array_equal(out, np.arange(10))
    assert counters[2] >= 10 and counters[[0, 1, 3]].tolist() == [5, 6, 7]


def test_a_number_that_becomes_a_float_is_carried(where):
    @metile.kernel
    def k(Out, BLOCK: metile.constexpr):
        kind = 1
        for _ in metile.tile_range(3):
            kind = 1.0
        metile.store(Out + metile.arange(0, BLOCK), kind / 2)

    out = np.full(4, np.nan, np.float32)
    k[(1,)](out, BLOCK=4)
    np.testing.assert_array_equal(out, 0.5)


def test_a_dict_that_a_loop_fills_is_refused_at_its_line(where):
    @metile.kernel
    def k(Out, BLOCK: metile.constexpr):
        kept, i = {}, metile.arange(0, BLOCK)
        total = 0.0
        for step in metile.tile_range(3):
            assert "seen" not in kept
            kept["seen"] = "yes"
            total = total + 1.0
        metile.store(Out + i, total)

    with pytest.raises(metile.LoweringError, match=r"(?s)gains or loses keys: 'seen'.*test_metile_exactly.py:\d+:"):
        k[(1,)](np.zeros(4, np.float32), BLOCK=4)


def test_roles_see_what_other_lanes_stored_in_earlier_ones(where, random):
    @metile.kernel
    def k(X, Y, Out, BLOCK: metile.constexpr):
        i = metile.arange(0, BLOCK)
        with metile.simdgroup_role(0):
            metile.store(Y + i, metile.load(X + i) * 2.0)
        with metile.simdgroup_role(1):
            metile.store(Out + i, metile.load(Y + (BLOCK - 1 - i)))

    x = random.standard_normal(256, dtype=np.float32)
    y, out = np.full_like(x, np.nan), np.full_like(x, np.nan)
    k[(1,)](x, y, out, BLOCK=256)
    np.testing.assert_array_equal(out, 2 * x[::-1])


def test_scattered_elements_come_after_what_other_lanes_loaded(where, random):
    @metile.kernel
    def k(X, Out, Rows: metile.constexpr, BLOCK: metile.constexpr):
        i = metile.arange(0, BLOCK)
        before = metile.load(X + (BLOCK - 1 - i))
        rows = metile.arange(0, Rows)
        metile.store(X + rows[:, None] * Rows + rows[None, :], metile.zeros((Rows, Rows)) - 1.0)
        metile.store(Out + i, before)

    x = random.standard_normal(256, dtype=np.float32)
    given, out = x.copy(), np.full_like(x, np.nan)
    k[(1,)](given, out, Rows=16, BLOCK=256)
    np.testing.assert_array_equal(out, x[::-1])
    np.testing.assert_array_equal(given, -1)


def test_a_matrix_of_less_than_no_rows_is_empty(where):
    @metile.kernel
    def k(X, Out, rows):
        metile.tile_store(Out, 0, 0, 4, metile.tile_load(X, 0, 0, 4, (4, 4), rows=rows - 3), (4, 4))

    for rows, wanted in ((-5, 0), (0, 0), (3, 0), (5, 2), (9, 4)):
        x, out = np.ones((4, 4), np.float32), np.full((4, 4), np.nan, np.float32)
        k[(1,)](x, out, rows)
        np.testing.assert_array_equal(out, np.arange(4)[:, None] < wanted + np.zeros(4, int))


@pytest.mark.parametrize("shape", [(4, 16), (8, 8), (4, 1)])
def test_a_product_is_added_to_a_tile_of_its_shape(where, shape):
    @metile.kernel
    def k(X, Out):
        tile = metile.tile_load(X, 0, 0, 8, (4, 8))
        metile.tile_store(Out, 0, 0, 8, metile.dot(tile, metile.tile_load(X, 0, 0, 8, (8, 8)), metile.zeros(shape)), (4, 8))

    with pytest.raises(ValueError, match=r"dot of \(4, 8\) and \(8, 8\) into"):
        k[(1,)](np.zeros(64, np.float32), np.zeros(32, np.float32))


SCALE = 0.0


def test_signs_of_zeros_outside_are_parts_of_the_kernel(where):
    global SCALE

    @metile.kernel
    def k(Out, BLOCK: metile.constexpr):
        metile.store(Out + metile.arange(0, BLOCK), SCALE * 1.0)

    for SCALE in (0.0, -0.0, 0.0, float("nan"), -0.0):
        out = np.full(4, 7, np.float32)
        k[(1,)](out, BLOCK=4)
        np.testing.assert_array_equal(np.signbit(out), np.signbit(np.float32(SCALE)))
        assert np.isnan(out).all() == np.isnan(SCALE)


@pytest.mark.parametrize("is_tile", [False, True])
@pytest.mark.parametrize("check", ["0", "1"])
@pytest.mark.parametrize("wrapped, what", [(lambda data: metile.Buffer(data=data), "buffer"), (lambda data: data, "array"), (lambda data: data[::2], "array")])
def test_read_only_memory_is_not_written(where, is_tile, check, wrapped, what, monkeypatch):
    @metile.kernel
    def k(Out, BLOCK: metile.constexpr):
        if is_tile:
            metile.tile_store(Out, 0, 0, 4, metile.zeros((1, 4)) + 1.0, (1, 4))
        else:
            metile.store(Out + metile.arange(0, BLOCK), 1.0)

    monkeypatch.setenv("METILE_CHECK", check)
    data = np.zeros(8, np.float32)
    data.flags.writeable = False
    for _ in range(2):
        with pytest.raises(ValueError, match=f"'Out' is written by the kernel, but the {what} is read-only"):
            k[(1,)](wrapped(data), BLOCK=4)
    np.testing.assert_array_equal(data, 0)


def test_read_only_memory_is_read(where):
    @metile.kernel
    def k(X, Out, BLOCK: metile.constexpr):
        i = metile.arange(0, BLOCK)
        metile.store(Out + i, metile.load(X + i))

    data, out = np.arange(8, dtype=np.float32), np.full((4, 2), np.nan, np.float32)
    data.flags.writeable = False
    for given in (data[:4], data[::2], metile.Buffer(data=data)):
        k[(1,)](given, out[:, 1], BLOCK=4)
        np.testing.assert_array_equal(out[:, 1], np.ravel(given.numpy() if isinstance(given, metile.Buffer) else given)[:4])


def test_one_address_in_two_types_is_two_arrays(where):
    @metile.kernel
    def k(X, Bits, Out, BLOCK: metile.constexpr):
        i = metile.arange(0, BLOCK)
        metile.store(Out + i, metile.load(X + i) + metile.cast(metile.load(Bits + i) >> 23, "f32"))

    x = np.array([1.0, 2.0, 4.0, 8.0], np.float32)
    for _ in range(2):
        out = np.full(4, np.nan, np.float32)
        k[(1,)](x, x.view(np.uint32), out, BLOCK=4)
        np.testing.assert_array_equal(out, x + np.arange(127, 131))


def test_shared_memory_is_counted_by_the_bytes_of_its_elements():
    @metile.kernel
    def k(X, BLOCK: metile.constexpr):
        metile.store(metile.shared(1000, "f16") + 0, 1.0)
        metile.store(metile.shared(1000, "u8") + 0, 1)
        metile.store(metile.shared(1000) + 0, 1.0)
        metile.store(X + 0, 1.0)

    assert k.get_compiled(np.zeros(1, np.float32), BLOCK=1).shared_bytes == 7000


def test_rows_are_as_long_as_what_their_loop_goes_over(monkeypatch):
    @metile.kernel
    def k(X, Out, first, N, BLOCK: metile.constexpr):
        lanes, largest, total = metile.arange(0, BLOCK), -1e38, 0.0
        for start in metile.tile_range(first, N, BLOCK):
            largest = metile.maximum(largest, metile.load(X + start + lanes, mask=start + lanes < N))
        largest = metile.max(largest)
        for start in metile.tile_range(first, N, BLOCK):
            total = total + metile.exp(metile.load(X + start + lanes, mask=start + lanes < N) - largest)
        metile.store(Out + 0, metile.sum(total))

    x, out = np.zeros(40000, np.float32), np.zeros(1, np.float32)
    text = "collected while the maximum is found"
    short, long = k.explain(x, out, 30000, 40000, BLOCK=256), k.explain(x, out, 0, 40000, BLOCK=256)
    assert "its rows are short" in short and "its rows are short" not in long and text in long
    monkeypatch.setenv("METILE_ONLINE_SOFTMAX", "0")
    assert text not in k.explain(x, out, 0, 40000, BLOCK=256)


def test_direct_launches_follow_the_length_of_rows_and_what_matrices_begin_with(where, random):
    @metile.kernel
    def k(X, Out, first, width):
        metile.tile_store(Out, 0, 0, 4, metile.tile_load(X + first, 0, 0, width, (2, 4)), (2, 4))

    x = random.standard_normal(64, dtype=np.float32)
    for first, width in ((0, 8), (0, 8), (3, 8), (3, 7), (0, 8), (3, 7)):
        out = np.full((2, 4), np.nan, np.float32)
        k[(1,)](x, out, first, width)
        np.testing.assert_array_equal(out, x[first : first + 2 * width].reshape(2, width)[:, :4])


@pytest.mark.parametrize("make", [lambda x: metile.Buffer(data=x), lambda x: vortex.asarray(x)], ids=["buffer", "array"])
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["copy", "deepcopy", "pickle"])
def test_copies_and_pickles_of_arrays_have_memory_of_their_own(make, again, random):
    x = random.standard_normal((3, 5), dtype=np.float32)
    first = make(x.copy())
    second = again(first)
    assert type(second) is type(first)
    first.numpy()[...] = 7
    np.testing.assert_array_equal(second.numpy(), x)


def test_a_kernel_that_is_a_method_is_told_how_to_be_one():
    class Layer:
        @metile.kernel
        def forward(self, X, BLOCK: metile.constexpr):
            metile.store(X + metile.arange(0, BLOCK), 1.0)

    with pytest.raises(TypeError, match="misses 'X'; kernels in classes are a @staticmethod without `self`"):
        Layer().forward[(1,)](np.zeros(4, np.float32), BLOCK=4)


def test_winners_belong_to_a_kernel_and_not_to_its_name():
    @metile.kernel
    def one(X, N, BLOCK: metile.constexpr):
        metile.store(X + metile.arange(0, BLOCK), 1.0)

    def made(kernel):
        kernel.name = "alike"
        return metile.autotune([metile.Config(BLOCK=4)], key=["N"], verbose=False)(kernel)

    @metile.kernel
    def two(X, N, BLOCK: metile.constexpr):
        metile.store(X + metile.arange(0, BLOCK), 2.0 * N)

    keys = [made(kernel)._key((1,), (np.zeros(8, np.float32), 8), {}) for kernel in (one, two)]
    assert keys[0] != keys[1] and keys[0] == made(one)._key((1,), (np.ones(8, np.float32), 8), {})


def test_pointers_of_tiles_move_by_whole_rows(where):
    @metile.kernel
    def k(X, Out, step, width):
        tile = metile.tile_load(X + metile.program_id(0) * step, 0, 0, width, (2, 4))
        metile.tile_store(Out, metile.program_id(0) * 2, 0, 4, tile, (2, 4))

    x, out = np.arange(64, dtype=np.float32), np.full((4, 4), np.nan, np.float32)
    k[(2,)](x, out, 16, 8)
    np.testing.assert_array_equal(out, x.reshape(8, 8)[:4, :4])
    for _ in range(2):
        with pytest.raises(ValueError, match="moves in steps of 12 elements, which are no whole rows of 8"):
            k[(2,)](x, out, 12, 8)
