"""Bytes beside ids, arguments and carried numbers are i32; literals that do not fit the other side are errors; masks and integers everywhere."""
import os

import numpy as np
import pytest

import metile

pytestmark = pytest.mark.usefixtures("where")

LANES = 64


def of_lanes(function):
    """out = function(x, lane, N, Y) for every lane."""

    @metile.kernel
    def kernel(X, Y, Out, N, BLOCK: metile.constexpr):
        lane = metile.arange(0, BLOCK)
        metile.store(Out + lane, function(metile.load(X + lane), lane, N, Y))

    return kernel


def run(function, x, n=300, dtype=np.int32, table=None):
    out = np.full(LANES, 77, dtype)
    of_lanes(function)[(1,)](x, np.zeros(4, np.float32) if table is None else table, out, n, BLOCK=LANES)
    return out


def carried(start):
    def total(x, lane, n, table):
        s = start
        for _ in metile.tile_range(0, 9):
            s = s + x
        return s

    return total


def largest_from_minus_one(x, lane, n, table):
    best = -1
    for _ in metile.tile_range(0, 2):
        best = metile.maximum(best, x)
    return best


BYTES = {
    "times an argument": (lambda x, lane, n, t: x * n, lambda x, lane, n: x * n),
    "plus an id": (lambda x, lane, n, t: x + (lane + 250), lambda x, lane, n: x + lane + 250),
    "compared with an argument": (lambda x, lane, n, t: metile.where(x < n, 1, 2), lambda x, lane, n: np.where(x < n, 1, 2)),
    "equal to an id": (lambda x, lane, n, t: metile.where(x == lane + 256, 1, 2), lambda x, lane, n: np.where(x == lane + 256, 1, 2)),
    "the larger of it and an id": (lambda x, lane, n, t: metile.maximum(x, lane * 10), lambda x, lane, n: np.maximum(x, lane * 10)),
    "minus an id": (lambda x, lane, n, t: x - lane, lambda x, lane, n: x - lane),
    "chosen beside an id": (lambda x, lane, n, t: metile.where(lane < 3, x, lane + 1000), lambda x, lane, n: np.where(lane < 3, x, lane + 1000)),
    "carried from 0": (carried(0), lambda x, lane, n: 9 * x),
    "carried from 1000": (carried(1000), lambda x, lane, n: 9 * x + 1000),
    "the largest from -1": (largest_from_minus_one, lambda x, lane, n: x),
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes_meet_ids_and_arguments_as_i32(name, random):
    function, expected = BYTES[name]
    x = random.integers(0, 256, LANES).astype(np.uint8)
    np.testing.assert_array_equal(run(function, x), expected(x.astype(np.int64), np.arange(LANES), 300))


def test_bytes_are_numbers_of_rows(random):
    codes, table = random.integers(0, 256, LANES).astype(np.uint8), random.standard_normal((256, 300)).astype(np.float32)
    got = run(lambda x, lane, n, t: metile.load(t + x * n + lane), codes, dtype=np.float32, table=table)
    np.testing.assert_array_equal(got, table[codes, np.arange(LANES)])


def test_a_program_per_value_counts_bytes(random):
    @metile.kernel
    def histogram(X, Out, BLOCK: metile.constexpr):
        value = metile.program_id(0)
        metile.store(Out + value, metile.sum(metile.where(metile.load(X + metile.arange(0, BLOCK)) == value, 1, 0)))

    x, out = random.integers(0, 256, LANES).astype(np.uint8), np.full(300, -1, np.int32)
    histogram[(300,)](x, out, BLOCK=LANES)
    np.testing.assert_array_equal(out, np.bincount(x, minlength=300))


def test_bytes_beside_literals_stay_bytes(random):
    x = random.integers(0, 256, LANES).astype(np.uint8)
    np.testing.assert_array_equal(run(lambda x, lane, n, t: x - 128, x), x - np.uint8(128))
    np.testing.assert_array_equal(run(lambda x, lane, n, t: (x & 255) + 1, x), x + np.uint8(1))


REFUSED = {
    "u8 + 300": (np.uint8, lambda x: x + 300, "300 does not fit `u8`"),
    "u8 < 300": (np.uint8, lambda x: x < 300, "300 does not fit `u8`"),
    "-1 < u8": (np.uint8, lambda x: -1 < x, "-1 does not fit `u8`"),
    "maximum of u8 and -1": (np.uint8, lambda x: metile.maximum(x, -1), "-1 does not fit `u8`"),
    "where of u8 and 256": (np.uint8, lambda x: metile.where(x > 3, x, 256), "256 does not fit `u8`"),
    "where of u8 and -1": (np.uint8, lambda x: metile.where(x > 3, x, -1), "-1 does not fit `u8`"),
    "u8 % 256": (np.uint8, lambda x: x % 256, "256 does not fit `u8`"),
    "i32 + 2**40": (np.int32, lambda x: x + (1 << 40), "1099511627776 does not fit `i32`"),
    "i32 < 2**31": (np.int32, lambda x: x < (1 << 31), "2147483648 does not fit `i32`"),
    "i32 * -2**31 - 1": (np.int32, lambda x: x * (-(1 << 31) - 1), "-2147483649 does not fit `i32`"),
    "u32 > -1": (np.uint32, lambda x: x > -1, "-1 does not fit `u32`"),
    "u32 // -1": (np.uint32, lambda x: x // -1, "-1 does not fit `u32`"),
    "u32 ^ 2**32": (np.uint32, lambda x: x ^ (1 << 32), "4294967296 does not fit `u32`"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_literal_that_the_other_side_cannot_hold_is_an_error_at_its_line(name):
    dtype, function, message = REFUSED[name]
    with pytest.raises(metile.LoweringError, match=message) as raised:
        run(lambda x, lane, n, t: function(x), np.zeros(LANES, dtype))
    assert raised.value.diagnostics[0].id == "E0302"
    assert os.path.basename(raised.value.diagnostics[0].position[0]) == os.path.basename(__file__) and "^" in str(raised.value)


def test_literals_that_are_bits_or_floats_are_right(random):
    x = random.integers(0, 1 << 32, LANES, dtype=np.uint32)
    np.testing.assert_array_equal(run(lambda x, lane, n, t: (x & -8) * 0x846CA68B + -1, x, dtype=np.uint32),
                                  (x & np.uint32(0xFFFFFFF8)) * np.uint32(0x846CA68B) - np.uint32(1))
    signed = x.astype(np.int32)
    np.testing.assert_array_equal(run(lambda x, lane, n, t: x ^ 0x80000000, signed), signed ^ np.int32(-(1 << 31)))
    np.testing.assert_array_equal(run(lambda x, lane, n, t: metile.where(metile.cast(x, "f32") < 1e12, 1, 0), signed), 1)
    np.testing.assert_array_equal(run(lambda x, lane, n, t: metile.cast(lane + (1 << 40) - (1 << 40), "i32"), signed), np.arange(LANES))


@pytest.mark.parametrize("lanes", [1, 31, 64, 100])
def test_the_largest_and_smallest_of_masks(lanes, random):
    @metile.kernel
    def stores(X, Out, LIMIT, BLOCK: metile.constexpr):
        mask = metile.load(X + metile.arange(0, BLOCK)) > LIMIT
        metile.store(Out + 0, metile.max(mask))
        metile.store(Out + 1, metile.min(mask))
        metile.store(Out + 2, metile.sum(mask))

    x = random.integers(0, 10, lanes).astype(np.int32)
    for limit in (-1, 4, 9):
        out = np.full(3, -7, np.int32)
        stores[(1,)](x, out, limit, BLOCK=lanes)
        assert out.tolist() == [(x > limit).any(), (x > limit).all(), (x > limit).sum()]


@pytest.mark.parametrize("lanes", [1, 2, 32, 50])
def test_masks_of_no_valid_lane_have_the_least_and_the_greatest_value(lanes):
    @metile.kernel
    def stores(X, Out, FROM, BLOCK: metile.constexpr):
        i = metile.arange(0, BLOCK)
        mask = metile.load(X + i, mask=i >= FROM) > 4
        metile.store(Out + 0, metile.max(mask))
        metile.store(Out + 1, metile.min(mask))
        metile.store(Out + 2, metile.sum(mask))

    out = np.full(3, -7, np.int32)
    stores[(1,)](np.full(lanes, 9, np.int32), out, lanes, BLOCK=lanes)
    assert out.tolist() == [0, 1, 0]


INTEGER_PRODUCTS = [("u8", "u8"), ("i32", "i32"), ("u32", "u8"), ("u8", "f32"), ("f16", "i32")]


@pytest.mark.parametrize("left, right", INTEGER_PRODUCTS)
def test_products_of_integers_are_products_in_f32(left, right, random):
    numpy = {"u8": np.uint8, "i32": np.int32, "u32": np.uint32, "f32": np.float32, "f16": np.float16}

    @metile.kernel
    def product(A, B, C, K):
        acc = metile.dot(metile.tile_load(A, 0, 0, K, (8, 16)), metile.tile_load(B, 0, 0, 8, (16, 8)), metile.zeros((8, 8)))
        metile.tile_store(C, 0, 0, 8, acc, (8, 8))

    a, b = random.integers(0, 200, (8, 16)).astype(numpy[left]), random.integers(0, 200, (16, 8)).astype(numpy[right])
    c = np.full((8, 8), np.nan, np.float32)
    product[(1,)](a, b, c, 16)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.uint32])
def test_bits_of_2d_tiles_are_reversed(dtype, random):
    @metile.kernel
    def reverse(X, Out):
        metile.tile_store(Out, 0, 0, 8, metile.reverse_bits(metile.tile_load(X, 0, 0, 8, (4, 8))), (4, 8))

    x, out = random.integers(0, 200, (4, 8)).astype(dtype), np.full((4, 8), 7, np.uint32)
    reverse[(1,)](x, out)
    np.testing.assert_array_equal(out, [[int(f"{value:032b}"[::-1], 2) for value in row] for row in x])
