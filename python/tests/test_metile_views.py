"""Views of one array as several arguments: transposes and strides are not the array itself, and what overlaps is refused before anything runs."""
import numpy as np
import pytest

import metile

pytestmark = pytest.mark.usefixtures("where")


@metile.kernel
def subtract(X, Y, Out, N, BLOCK: metile.constexpr):
    i = metile.arange(0, BLOCK)
    metile.store(Out + i, metile.load(X + i, mask=i < N) - metile.load(Y + i, mask=i < N), mask=i < N)


def elements(random, *shape):
    return random.standard_normal(shape).astype(np.float32)


PAIRS = {
    "a matrix and its transpose": lambda m: (m, m.T),
    "a transpose and its matrix": lambda m: (m.T, m),
    "columns in other orders": lambda m: (np.asfortranarray(m), np.asfortranarray(m).T),
    "every second and every third": lambda m: (m.reshape(-1)[:30:2], m.reshape(-1)[:45:3]),
    "other extents at one address": lambda m: (m[:4, :2], m[:2, :4]),
    "a view twice": lambda m: (m[:, ::2], m[:, ::2]),
    "repeated elements": lambda m: (np.broadcast_to(m[0], (3, 12)), m[:3]),
    "backwards": lambda m: (m[::-1], m),
    "as it is": lambda m: (m, m),
}


@pytest.mark.parametrize("name", PAIRS)
def test_each_argument_is_the_view_that_was_given(name, random):
    x, y = PAIRS[name](elements(random, 12, 12))
    for _ in range(3):  # as the first launch, and as what it left for the next ones
        out = np.full(x.size, np.nan, np.float32)
        subtract[(1,)](x, y, out, x.size, BLOCK=256)
        np.testing.assert_array_equal(out, np.ravel(x) - np.ravel(y))
        subtract[(1,)](np.ones(x.size, np.float32), np.ones(x.size, np.float32), out, x.size, BLOCK=256)


OVERLAPS = {
    "every second, one further": lambda m: (m[0:40:2], m[50:70], m[2:42:2]),
    "strides that meet": lambda m: (m[0:40:2], m[50:70], m[0:60:3]),
    "strided and whole": lambda m: (m[60:80], m[0:40:2], m[10:30]),
    "whole and strided": lambda m: (m[10:30], m[60:80], m[0:40:2]),
    "the array backwards": lambda m: (m[0:20], m[60:80], m[19::-1]),
    "whole arrays": lambda m: (m[0:20], m[60:80], m[10:30]),
}


@pytest.mark.parametrize("name", OVERLAPS)
def test_a_result_that_shares_elements_with_an_argument_is_refused(name):
    memory = np.arange(100, dtype=np.float32)
    x, y, out = OVERLAPS[name](memory)
    for buffers in (False, True):
        given = [metile.Buffer(data=array) if buffers and array.flags.c_contiguous else array for array in (x, y, out)]
        with pytest.raises(ValueError, match="'Out'.*share memory, and the kernel writes argument 'Out'"):
            subtract[(1,)](*given, 20, BLOCK=32)
    np.testing.assert_array_equal(memory, np.arange(100))


SELF = {
    "one element for all": lambda m: np.lib.stride_tricks.as_strided(m, (20,), (0,)),
    "windows": lambda m: np.lib.stride_tricks.sliding_window_view(m, 5, writeable=True)[:4],
    "rows that meet": lambda m: np.lib.stride_tricks.as_strided(m, (4, 5), (16, 4)),
}


@pytest.mark.parametrize("name", SELF)
def test_a_result_whose_elements_share_memory_is_refused(name):
    memory = np.arange(100, dtype=np.float32)
    with pytest.raises(ValueError, match="'Out' is written, and elements of the array share memory"):
        subtract[(1,)](np.ones(20, np.float32), np.ones(20, np.float32), SELF[name](memory), 20, BLOCK=32)
    np.testing.assert_array_equal(memory, np.arange(100))


APART = {
    "interleaved": lambda m: (m[0::2], m[1::2]),
    "columns": lambda m: (m.reshape(10, 10)[:, :5], m.reshape(10, 10)[:, 5:]),
    "one behind the other": lambda m: (m[:50], m[50:]),
    "backwards": lambda m: (m[49::-1], m[50:][::-1]),
}


@pytest.mark.parametrize("name", APART)
def test_views_that_share_no_element_are_used(name, random):
    memory = elements(random, 100)
    x, out = APART[name](memory)
    expected = np.ravel(x) - 1
    subtract[(1,)](x, np.ones(50, np.float32), out, 50, BLOCK=64)
    np.testing.assert_array_equal(np.ravel(out), expected)


@pytest.mark.parametrize("step", [2, 3, -1])
def test_one_view_for_argument_and_result_is_in_place(step, random):
    memory = elements(random, 60)
    view = memory[::step]
    expected, rest = view - 1, np.delete(memory, np.arange(60)[::step])
    subtract[(1,)](view, np.ones(view.size, np.float32), view, view.size, BLOCK=64)
    np.testing.assert_array_equal(view, expected)
    np.testing.assert_array_equal(np.delete(memory, np.arange(60)[::step]), rest)


def test_offsets_of_tiles_are_divided_exactly():
    @metile.kernel
    def rows(X, Out, A, B):
        metile.tile_store(Out, 0, 0, 8, metile.tile_load(X + (A * B * B // (B * B) - A + 1) * 8, 0, 0, 8, (1, 8)), (1, 8))

    x, out = np.arange(24, dtype=np.float32), np.full(8, np.nan, np.float32)
    rows[(1,)](x, out, 2147483647, 32749)  # A * B * B has 61 bits
    np.testing.assert_array_equal(out, x[8:16])


@metile.kernel
def in_two_ways(X, Out, N, FLAT: metile.constexpr, STRIDE: metile.constexpr, BLOCK: metile.constexpr):
    lanes = metile.arange(0, BLOCK)
    if FLAT:
        metile.store(Out + lanes, metile.load(X + lanes, mask=lanes < N), mask=lanes < N)
    else:
        metile.tile_store(Out, 0, 0, 4, metile.tile_load(X, 0, 0, 4, (4, 4)), (4, 4))
    metile.tile_store(Out, 0, 0, STRIDE, metile.tile_load(X, 0, 0, STRIDE, (4, 4)) + 1, (4, 4))


@pytest.mark.parametrize("flat, stride, ways", [(True, 8, "single elements and as a matrix with rows of 8 elements"),
                                                (False, 8, "a matrix with rows of 4 elements and as a matrix with rows of 8 elements")])
@pytest.mark.parametrize("buffers", [False, True])
def test_an_array_that_is_written_has_one_layout(flat, stride, ways, buffers, monkeypatch):
    monkeypatch.delenv("METILE_INTERPRET", raising=False)
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    given = [metile.Buffer(data=array) for array in (x, out)] if buffers else [x, out]
    with pytest.raises(ValueError, match=f"kernel 'in_two_ways' writes 'Out' and uses it as {ways}: an array that is written has one layout"):
        in_two_ways[(1,)](*given, 64, FLAT=flat, STRIDE=stride, BLOCK=64)
    assert not out.any()
    in_two_ways[(1,)](*given, 64, FLAT=False, STRIDE=4, BLOCK=64)
    np.testing.assert_array_equal(given[1].numpy()[:16] if buffers else out[:16], np.arange(16) + 1)


def test_a_number_and_an_argument_are_two_offsets_and_strides(where):
    """Whatever the trace calls the argument: %0 is not 0."""
    @metile.kernel
    def moved(X, Out, END, STRIDE: metile.constexpr, SECOND: metile.constexpr):
        tile = metile.tile_load(X, 0, 0, STRIDE, (2, 4))
        metile.tile_store(Out, 0, 0, 4, tile, (2, 4))
        metile.tile_store(Out, 2, 0, 4, metile.tile_load(X + END, 0, 0, STRIDE, (2, 4)), (2, 4))
        metile.tile_store(Out, 4, 0, 4, metile.tile_load(X, 0, 0, SECOND * END, (2, 4)), (2, 4))

    x = np.arange(1, 65, dtype=np.float32)
    for end in (4, 8):
        for stride in range(4, 20):
            out = np.zeros((6, 4), np.float32)
            moved[(1,)](x, out, end, STRIDE=stride, SECOND=2)
            rows = [first + np.arange(4) + 1 for first in (0, stride, end, end + stride, 0, 2 * end)]
            np.testing.assert_array_equal(out, rows)


@metile.kernel
def read_in_another_way(X, Out, WRITES_TILES: metile.constexpr, BLOCK: metile.constexpr):
    lanes = metile.arange(0, BLOCK)
    if WRITES_TILES:
        metile.tile_store(Out, 0, 0, 4, metile.tile_load(X, 0, 0, 4, (4, 4)), (4, 4))
        metile.store(X + lanes, metile.load(Out + lanes))
    else:
        metile.store(Out + lanes, metile.load(X + lanes))
        metile.tile_store(X, 0, 0, 4, metile.tile_load(Out, 0, 0, 4, (4, 4)), (4, 4))


@pytest.mark.parametrize("tiles", [True, False])
def test_reading_an_array_that_is_written_needs_the_same_layout(tiles, monkeypatch):
    monkeypatch.delenv("METILE_INTERPRET", raising=False)
    x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    with pytest.raises(ValueError, match="kernel 'read_in_another_way' writes '.*' and uses it as .*: an array that is written has one layout"):
        read_in_another_way[(1,)](x, out, WRITES_TILES=tiles, BLOCK=16)
    np.testing.assert_array_equal([x, out], [np.arange(16), np.zeros(16)])


@pytest.mark.parametrize("first, stride", [(-1, 4), (-7, 4), (0, 0), (0, -4)])
def test_tiles_begin_in_their_array_and_their_rows_have_elements(where, first, stride):
    @metile.kernel
    def moved(X, Out, FIRST, STRIDE):
        metile.tile_store(Out, 0, 0, 4, metile.tile_load(X + FIRST, 0, 0, STRIDE, (2, 4)), (2, 4))

    out = np.full(8, 5, np.float32)
    with pytest.raises(ValueError, match=f"kernel 'moved': a tile has rows of {stride} elements from element -?[0-9]+ on"):
        moved[(1,)](np.ones(64, np.float32)[32:], out, first, stride)
    assert (out == 5).all()


def test_an_overlap_names_all_parameters_of_an_array(where):
    @metile.kernel
    def kernel(X, Y, Out):
        lanes = metile.arange(0, 8)
        metile.store(Out + lanes, metile.load(X + lanes) + metile.load(Y + lanes))

    z = np.zeros(8, np.float32)
    with pytest.raises(ValueError, match=r"argument 'X' and argument 'Y' \(and 'Out'\) share memory, and the kernel writes argument 'Y' \(and 'Out'\)"):
        kernel[1](z[::-1], z, z)
