"""Offsets of pointers add up in 64 bits, whatever types they have; literals and scalars take the type of the other side."""
import numpy as np
import pytest

import metile

pytestmark = pytest.mark.usefixtures("where")
LANES = 32


def _before(X, I, lanes):
    return X + 300 + metile.load(I + lanes)


def _behind(X, I, lanes):
    return X + metile.load(I + lanes) + 300


def _below(X, I, lanes):
    return X + 700 - metile.load(I + lanes)


def _moved(X, I, lanes):
    X += 200
    return X + metile.load(I + lanes)


def _twice(X, I, lanes):
    return X + metile.load(I + lanes) + metile.load(I + (LANES - 1 - lanes))


@pytest.mark.parametrize("address, elements", [(_before, lambda i: 300 + i), (_behind, lambda i: i + 300), (_below, lambda i: 700 - i), (_moved, lambda i: 200 + i),
                                               (_twice, lambda i: i + i[::-1])], ids=lambda value: getattr(value, "__name__", None))
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.uint32])
def test_a_pointer_and_offsets_of_any_type(address, elements, dtype, random):
    @metile.kernel
    def kernel(X, I, Out):
        lanes = metile.arange(0, LANES)
        metile.store(Out + lanes, metile.load(address(X, I, lanes)))

    x, indices = random.standard_normal(1000).astype(np.float32), random.integers(0, 256, LANES).astype(dtype)
    out = np.zeros(LANES, np.float32)
    kernel[1](x, indices, out)
    np.testing.assert_array_equal(out, x[elements(indices.astype(np.int64))])


def test_a_sum_beyond_32_bits_is_outside(monkeypatch):
    @metile.kernel
    def kernel(X, I, Out, n):
        lanes = metile.arange(0, LANES)
        metile.store(Out + lanes, metile.load(X + n + metile.load(I + lanes)))

    if metile._dispatch.is_on("METILE_INTERPRET"):
        pytest.skip("reads outside are 0 on devices")
    x, indices = np.arange(1, 101, dtype=np.float32), np.full(LANES, 2**32 - 1, np.uint32)
    indices[:4] = 0, 1, 2, 3
    out = np.full(LANES, 7, np.float32)
    kernel[1](x, indices, out, 10)
    np.testing.assert_array_equal(out, [11, 12, 13, 14, *[0] * (LANES - 4)])


def test_columns_of_bytes_and_rows_are_added_to_the_address(random):
    @metile.kernel
    def kernel(X, I, Out):
        lanes, columns = metile.arange(0, LANES), metile.arange(0, 4)
        value = metile.load(X + 500 + metile.load(I + lanes)[:, None] + columns[None, :])
        metile.store(Out + lanes[:, None] * 4 + columns[None, :], value)

    x, indices = random.standard_normal(1000).astype(np.float32), random.integers(0, 256, LANES).astype(np.uint8)
    out = np.zeros((LANES, 4), np.float32)
    kernel[1](x, indices, out)
    np.testing.assert_array_equal(out, x[500 + indices.astype(np.int64)[:, None] + np.arange(4)])


def test_pointers_of_loaded_offsets_move_in_loops(random):
    @metile.kernel
    def kernel(X, I, Out):
        lanes, total = metile.arange(0, LANES), 0.0
        at = X + metile.load(I + lanes)
        for _ in metile.tile_range(0, 3):
            total = total + metile.load(at)
            at += 250
        metile.store(Out + lanes, total)

    x, indices = random.integers(-50, 50, 1000).astype(np.float32), random.integers(0, 200, LANES).astype(np.uint8)
    out = np.zeros(LANES, np.float32)
    kernel[1](x, indices, out)
    np.testing.assert_array_equal(out, sum(x[indices.astype(np.int64) + 250 * i] for i in range(3)))


@pytest.mark.parametrize("function", [lambda a, b: a * b, lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a / b, metile.maximum, metile.minimum],
                         ids=["mul", "add", "sub", "div", "maximum", "minimum"])
def test_float_literals_take_the_type_of_the_other_side_on_either_side(function, random):
    @metile.kernel
    def kernel(X, Left, Right):
        lanes = metile.arange(0, LANES)
        x = metile.load(X + lanes)
        metile.store(Left + lanes, function(0.1, x))
        metile.store(Right + lanes, function(x, 0.1))

    x = random.uniform(0.5, 4, LANES).astype(np.float16)
    left, right = np.zeros((2, LANES), np.float32)
    kernel[1](x, left, right)
    for found in (left, right):
        np.testing.assert_array_equal(found, found.astype(np.float16), err_msg="an f16")


def test_scalars_of_ml_dtypes_are_numbers():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    constant = ml_dtypes.bfloat16(2.5)

    @metile.kernel
    def kernel(X, Out, FACTOR: metile.constexpr):
        lanes = metile.arange(0, 8)
        x = metile.load(X + lanes)
        metile.store(Out + lanes, metile.where(x > constant, constant * x, x - constant) + metile.maximum(x, FACTOR))

    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    for factor in (ml_dtypes.bfloat16(1.5), ml_dtypes.bfloat16(3)):
        kernel[1](x, out, FACTOR=factor)
        np.testing.assert_array_equal(out, np.where(x > 2.5, 2.5 * x, x - 2.5) + np.maximum(x, float(factor)))
