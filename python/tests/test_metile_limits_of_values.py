"""Values at the ends of what rules allow: the last number that fits, empty arrays, quotients of negative numbers."""
import metile
import numpy as np
import pytest


@metile.kernel
def moved_by_quotients(X, Out, A, B, C):
    tile = metile.tile_load(X + (A // B + C), 0, 0, 4, (2, 4))
    metile.tile_store(Out, 0, 0, 4, tile, (2, 4))


@metile.kernel
def moved_by_remainders(X, Out, A, B, C):
    tile = metile.tile_load(X + (A % B + C), 0, 0, 4, (2, 4))
    metile.tile_store(Out, 0, 0, 4, tile, (2, 4))


@metile.kernel
def divided(Out, A, B):
    metile.store(Out + 0, A // B)
    metile.store(Out + 1, A % B)


@pytest.mark.parametrize("a, b", [(7, 4), (-7, 4), (7, -4), (-7, -4), (-8, 4), (8, -4), (-1, 5), (0, -3), (3, 7), (-9, 2)])
def test_quotients_of_negative_numbers_are_the_same_in_kernels_and_launches(where, a, b):
    quotient, remainder = int(np.fix(a / b)), int(np.fmod(a, b))
    out = np.full(2, 99, np.int32)
    divided[(1,)](out, a, b)
    np.testing.assert_array_equal(out, [quotient, remainder])
    x = np.arange(64, dtype=np.float32)
    for kernel, moved in ((moved_by_quotients, quotient), (moved_by_remainders, remainder)):
        tile = np.full((2, 4), np.nan, np.float32)
        kernel[(1,)](x, tile, a, b, 10)
        np.testing.assert_array_equal(tile, x[10 + moved : 18 + moved].reshape(2, 4))


@pytest.mark.parametrize("dtype, kind", [("u8", np.uint8), ("i32", np.int32), ("u32", np.uint32)])
def test_scalar_takes_the_numbers_that_its_type_holds_and_no_others(where, dtype, kind):
    @metile.kernel
    def stored(Out, VALUE: metile.constexpr):
        metile.store(Out + 0, metile.scalar(VALUE, dtype))

    least, most = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    for number in (least, least + 1, most - 1, most):
        out = np.full(1, 77, kind)
        stored[(1,)](out, VALUE=number)
        assert out[0] == number
    for number in (least - 1, most + 1):
        with pytest.raises(OverflowError, match=f"{number} does not fit `{dtype}`"):
            stored[(1,)](np.zeros(1, kind), VALUE=number)


@pytest.mark.parametrize("number", [-(1 << 31), (1 << 31) - 1])
def test_integers_of_a_launch_are_those_of_i32(where, number):
    @metile.kernel
    def stored(Out, N):
        metile.store(Out + 0, N)

    out = np.zeros(1, np.int32)
    stored[(1,)](out, number)
    assert out[0] == number
    beyond = number - 1 if number < 0 else number + 1
    with pytest.raises(OverflowError, match=f"'N' of kernel 'stored' is {beyond}: integers are i32"):
        stored[(1,)](out, beyond)


def test_a_mask_of_lanes_makes_one_element_a_vector(where):
    @metile.kernel
    def column(X, Out, N, ROWS: metile.constexpr, COLUMNS: metile.constexpr):
        rows, columns = metile.arange(0, ROWS), metile.arange(0, COLUMNS)
        first = metile.load(X + 0, mask=rows < N, other=-1.0)
        metile.store(Out + rows[:, None] * COLUMNS + columns[None, :], first[:, None] + metile.zeros((1, COLUMNS)))

    out = np.full((8, 4), np.nan, np.float32)
    column[(1,)](np.array([3.0], np.float32), out, 5, ROWS=8, COLUMNS=4)
    np.testing.assert_array_equal(out, np.where(np.arange(8)[:, None] < 5, np.float32(3), np.float32(-1)) + np.zeros((8, 4)))


@pytest.mark.parametrize("text, values", [("{}", 0), ("{}", 2), ("{} {}", 1), ("{} {}", 3)])
def test_places_of_a_printed_text_are_as_many_as_values(text, values):
    @metile.kernel
    def printed(N):
        metile.print(text, *[N] * values)

    with pytest.raises(ValueError, match=f"the text of print has {text.count('{}')} `{{}}`, but {values} value"):
        printed[(1,)](1)


@pytest.mark.parametrize("shape", [(8, 4), (4, 4), (2, 8), (16, 2)])
def test_a_tile_is_stored_in_its_own_shape(shape):
    @metile.kernel
    def stored(Out, SHAPE: metile.constexpr):
        metile.tile_store(Out, 0, 0, 16, metile.zeros((4, 8)), SHAPE)

    with pytest.raises(ValueError, match="a tile of .4, 8. is stored as"):
        stored[(1,)](np.zeros((16, 16), np.float32), SHAPE=shape)


def test_empty_arrays_are_parameters_of_their_own(where):
    """All of them may have one address."""
    @metile.kernel
    def copied(X, Out, N, BLOCK: metile.constexpr):
        lanes = metile.arange(0, BLOCK)
        metile.store(Out + lanes, metile.load(X + lanes, mask=lanes < N), mask=lanes < N)

    memory = np.empty(0, np.float32)
    x = memory.view()
    x.flags.writeable = False
    assert x.ctypes.data == memory.ctypes.data
    copied[(1,)](x, memory, 0, BLOCK=32)
    copied[(1,)](metile.Buffer(data=x), metile.Buffer(data=memory), 0, BLOCK=32)


def test_a_strided_result_is_copied_back_though_another_window_of_it_is_read(where):
    @metile.kernel
    def doubled(Out, END, STRIDE):
        tile = metile.tile_load(Out, 0, 0, STRIDE, (4, 4))
        metile.tile_store(Out, 0, 0, STRIDE, tile + metile.tile_load(Out + END, 0, 0, STRIDE, (4, 4)) + tile, (4, 4))

    whole = np.arange(32, dtype=np.float32).reshape(4, 8)
    expected = whole.copy()
    expected[:, ::2] *= 2
    doubled[(1,)](whole[:, ::2], 16, 4)  # nothing lies behind the end
    np.testing.assert_array_equal(whole, expected)


@pytest.mark.parametrize("rows, columns, lanes", [(12, 13, 256), (12, 13, 32), (1, 200, 64), (200, 1, 256), (31, 33, 1024), (32, 32, 1024), (1, 1, 64)])
@pytest.mark.parametrize("check", [False, True])
def test_tiles_of_addresses_with_any_number_of_elements(where, random, rows, columns, lanes, check, monkeypatch):
    @metile.kernel
    def doubled(X, Out, ROWS: metile.constexpr, COLUMNS: metile.constexpr, BLOCK: metile.constexpr):
        metile.thread_id()
        at = metile.arange(0, ROWS)[:, None] * COLUMNS + metile.arange(0, COLUMNS)[None, :]
        metile.store(Out + at, metile.load(X + at) * 2.0)

    monkeypatch.setenv("METILE_CHECK", "1" if check else "0")
    x = random.standard_normal((rows, columns), dtype=np.float32)
    out = np.full((rows + 2, columns), np.nan, np.float32)
    doubled[(1,)](x, out[:rows], ROWS=rows, COLUMNS=columns, BLOCK=lanes)
    np.testing.assert_array_equal(out[:rows], x * 2)
    assert np.isnan(out[rows:]).all()


@pytest.mark.parametrize("height", [3, 4, 5])
def test_windows_that_overlap_are_refused_without_rows(height):
    """A pointer that moves by 3 rows, and tiles of more: they would reach into the next matrix."""
    @metile.kernel
    def windows(X, Out, HEIGHT: metile.constexpr):
        pid = metile.program_id(0)
        tile = metile.tile_load(X + pid * 3 * 8, 0, 0, 8, (HEIGHT, 8))
        metile.tile_store(Out + pid * HEIGHT * 8, 0, 0, 8, tile, (HEIGHT, 8))

    x = np.arange(12 * 8, dtype=np.float32).reshape(12, 8)
    out = np.full((4 * height, 8), np.nan, np.float32)
    if height == 3:
        windows[(4,)](x, out, HEIGHT=height)
        np.testing.assert_array_equal(out, x)
    else:
        with pytest.raises(metile.LoweringError, match="how many rows its matrix has is not known"):
            windows[(4,)](x, out, HEIGHT=height)


def test_a_row_or_column_of_one_element_stays_that(where):
    @metile.kernel
    def moved(X, Out, ROWS: metile.constexpr, COLUMNS: metile.constexpr):
        at = metile.arange(0, ROWS)[:, None] * COLUMNS + metile.arange(0, COLUMNS)[None, :]
        metile.store(Out + at, metile.load(X + at + metile.arange(5, 6)[None, :] * 10 + metile.arange(3, 4)[:, None]))

    x = np.arange(200, dtype=np.float32)
    out = np.full((4, 8), np.nan, np.float32)
    moved[(1,)](x, out, ROWS=4, COLUMNS=8)
    np.testing.assert_array_equal(out, x[53:85].reshape(4, 8))


@pytest.mark.parametrize("shape", [(3, 2), (6,), 6, (1, 6), (2, 3, 1)])
def test_a_buffer_over_data_has_the_shape_of_the_data(shape):
    data = np.zeros((2, 3), np.float32)
    with pytest.raises(ValueError, match=r"the data has the shape \(2, 3\)"):
        metile.Buffer(shape=shape, data=data)
    assert metile.Buffer(shape=(2, 3), data=data).shape == metile.Buffer(shape=[2, 3], data=data).shape == (2, 3)


def test_a_launch_warns_of_memory_that_may_be_read_before_it_is_written():
    @metile.kernel
    def forgets(X, Out, N, BLOCK: metile.constexpr):
        lanes = metile.arange(0, BLOCK)
        memory = metile.shared(BLOCK)
        for i in metile.tile_range(0, N):
            metile.store(memory + lanes, metile.load(X + lanes) + i)
        metile.barrier()
        metile.store(Out + lanes, metile.load(memory + (BLOCK - 1 - lanes)))

    with pytest.warns(UserWarning, match="W0525.*may be read here before it is written"):
        forgets[(1,)](np.ones(32, np.float32), np.zeros(32, np.float32), 7, BLOCK=32)


def test_a_prepared_launch_sees_what_strided_arrays_hold_now(where, random):
    @metile.kernel
    def doubled(X, Out, N, BLOCK: metile.constexpr):
        lanes = metile.arange(0, BLOCK)
        metile.store(Out + lanes, metile.load(X + lanes, mask=lanes < N) * 2.0, mask=lanes < N)

    whole, out = random.standard_normal((20, 3), dtype=np.float32), np.zeros((20, 2), np.float32)
    again = doubled[(1,)].prepare(whole[:, 1], out[:, 0], 20, BLOCK=32)
    np.testing.assert_array_equal(out, np.stack([whole[:, 1] * 2, np.zeros(20)], axis=1))
    whole[:] = random.standard_normal((20, 3), dtype=np.float32)
    again()
    np.testing.assert_array_equal(out, np.stack([whole[:, 1] * 2, np.zeros(20)], axis=1))


WRAPS = {"sum": metile.sum, "simd_sum": metile.simd_sum, "minus": lambda x: -x, "from nothing": lambda x: 0 - x, "one more": lambda x: x + 1, "square": lambda x: x * x}


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.uint32])
@pytest.mark.parametrize("name", WRAPS)
def test_integers_wrap_under_the_check_too(name, dtype, random, monkeypatch):
    monkeypatch.setenv("METILE_CHECK", "1")
    if name == "simd_sum" and dtype == np.uint8:
        return  # of 32-bit numbers alone

    @metile.kernel
    def wraps(X, Out, BLOCK: metile.constexpr):
        lanes = metile.arange(0, BLOCK)
        metile.store(Out + lanes, WRAPS[name](metile.load(X + lanes)))

    limits = np.iinfo(dtype)
    x, out = random.integers(limits.min, limits.max, 64, dtype, endpoint=True), np.zeros(64, dtype)
    x[0] = limits.min
    wraps[1](x, out, BLOCK=64)
    with np.errstate(over="ignore"):
        sums = {"sum": np.repeat(x.sum(dtype=dtype), 64), "simd_sum": np.repeat(x.reshape(2, 32).sum(axis=1, dtype=dtype), 32)}
        np.testing.assert_array_equal(out, sums[name] if name in sums else WRAPS[name](x))
