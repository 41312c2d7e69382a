"""Weights of MXFP4 and MXFP8: codes by their definition, products against NumPy on what the codes stand for."""
import numpy as np
import pytest

import metile

E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
E4M3 = [mantissa * 2.0**-9 for mantissa in range(8)] + [(1 + mantissa / 8) * 2.0 ** (exponent - 7) for exponent in range(1, 16) for mantissa in range(8)][:-1]
SIZES = {"mxfp4": np.array(E2M1), "mxfp8": np.array(E4M3)}


def nearest(weight: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """By trying all values: groups of 32 along K under the power of two of their largest element."""
    groups = weight.astype(np.float64).reshape(-1, 32, weight.shape[1])
    largest = np.abs(groups).max(axis=1, keepdims=True)
    scale = 2.0 ** (np.floor(np.log2(np.where(largest > 0, largest, 1))) - np.floor(np.log2(sizes[-1])))
    distance = np.abs(np.minimum(np.abs(groups) / scale, sizes[-1])[..., None] - sizes)
    return (np.sign(groups) * sizes[distance.argmin(axis=-1)] * scale).reshape(weight.shape)


@pytest.mark.parametrize("name", SIZES)
def test_weights_become_the_nearest_values(random, name):
    weight = (random.standard_normal((96, 17)) * 2.0 ** random.integers(-20, 20, (1, 17))).astype(np.float32)
    weight[:32, 3] = 0
    made = metile.BlockScaledWeight.quantize(weight, format=name)
    assert made.shape == (96, 17) and made.format == name
    np.testing.assert_array_equal(made.dequantize(), nearest(weight, SIZES[name]).astype(np.float32))


@pytest.mark.parametrize("name", SIZES)
def test_values_of_the_format_stay(random, name):
    exact = random.choice([-1, 1], (64, 9)) * random.choice(SIZES[name], (64, 9))
    exact[::32] = SIZES[name][-1]
    exact = (exact * 2.0 ** random.integers(-9, 9, 9)).astype(np.float32)
    np.testing.assert_array_equal(metile.BlockScaledWeight.quantize(exact, name).dequantize(), exact)


@pytest.mark.usefixtures("where")
@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("rows, k, columns", [(1, 32, 5), (16, 64, 64), (37, 96, 71)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_products_equal_those_with_the_dequantised_weight(random, name, rows, k, columns, dtype):
    weight = metile.BlockScaledWeight.quantize(random.standard_normal((k, columns), dtype=np.float32), name)
    x = random.standard_normal((rows, k)).astype(dtype)
    wanted = x.astype(np.float64) @ weight.dequantize().astype(np.float64)
    close = {"rtol": 1e-4, "atol": 1e-4} if dtype == np.float32 else {"rtol": 2e-3, "atol": 2e-3}
    made = metile.block_scaled_matmul(x, weight)
    assert made.dtype == dtype
    np.testing.assert_allclose(made, wanted, **close)
    out = metile.Buffer.zeros((rows, columns))
    assert metile.block_scaled_matmul(metile.Buffer(data=x), weight, out) is out
    np.testing.assert_allclose(out.numpy(), wanted, **close)
    out.numpy()[...] = 0
    run = metile.prepare_block_scaled_matmul(x, weight, out)
    x *= 2
    run()
    np.testing.assert_allclose(out.numpy(), 2 * wanted, rtol=4e-3, atol=4e-3)


@pytest.mark.parametrize("call, error, text", [
    (lambda w, x: metile.BlockScaledWeight.quantize(np.zeros((33, 4), np.float32)), ValueError, "K is 33"),
    (lambda w, x: metile.BlockScaledWeight.quantize(np.zeros((32, 4), np.float32), "mxfp6"), ValueError, "'mxfp6' is not one of mxfp4, mxfp8"),
    (lambda w, x: metile.BlockScaledWeight.quantize(np.zeros(32, np.float32)), ValueError, "K x N matrix"),
    (lambda w, x: metile.BlockScaledWeight.quantize(np.full((32, 1), np.nan, np.float32)), ValueError, "finite"),
    (lambda w, x: metile.block_scaled_matmul(x[:, :31], w), ValueError, "their K differ"),
    (lambda w, x: metile.block_scaled_matmul(x, x), TypeError, "BlockScaledWeight, not a ndarray"),
    (lambda w, x: metile.block_scaled_matmul(x, w, np.zeros((3, 3), np.float32)), ValueError, "the product"),
], ids=["K", "format", "rank", "nan", "activations", "weight", "output"])
def test_what_does_not_fit_is_refused(call, error, text):
    weight = metile.BlockScaledWeight.quantize(np.ones((32, 4), np.float32))
    with pytest.raises(error, match=text):
        call(weight, np.ones((2, 32), np.float32))
