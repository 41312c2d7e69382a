"""LayerNorm, RMSNorm, and the sum of two inputs with its RMSNorm in one kernel with two outputs."""
import numpy as np

import metile


@metile.kernel
def layer_norm(X, Weight, Bias, Out, N, epsilon, BLOCK: metile.constexpr):
    row = metile.program_id(0) * N
    lanes = metile.arange(0, BLOCK)
    total = 0.0
    for start in metile.tile_range(0, N, BLOCK):
        total = total + metile.load(X + row + start + lanes, mask=start + lanes < N)
    mean = metile.sum(total) / N
    squares = 0.0
    for start in metile.tile_range(0, N, BLOCK):
        centred = metile.load(X + row + start + lanes, mask=start + lanes < N) - mean
        squares = squares + centred * centred
    scale = 1.0 / metile.sqrt(metile.sum(squares) / N + epsilon)
    for start in metile.tile_range(0, N, BLOCK):
        cols = start + lanes
        mask = cols < N
        centred = metile.load(X + row + cols, mask=mask) - mean
        metile.store(Out + row + cols, centred * scale * metile.load(Weight + cols, mask=mask) + metile.load(Bias + cols, mask=mask), mask=mask)


@metile.kernel
def add_rms_norm(X, Residual, Weight, Sum, Out, N, epsilon, BLOCK: metile.constexpr):
    row = metile.program_id(0) * N
    lanes = metile.arange(0, BLOCK)
    squares = 0.0
    for start in metile.tile_range(0, N, BLOCK):
        mask = start + lanes < N
        x = metile.load(X + row + start + lanes, mask=mask) + metile.load(Residual + row + start + lanes, mask=mask)
        metile.store(Sum + row + start + lanes, x, mask=mask)
        squares = squares + x * x
    scale = 1.0 / metile.sqrt(metile.sum(squares) / N + epsilon)
    for start in metile.tile_range(0, N, BLOCK):
        cols = start + lanes
        mask = cols < N
        metile.store(Out + row + cols, metile.load(Sum + row + cols, mask=mask) * scale * metile.load(Weight + cols, mask=mask), mask=mask)


def main():
    random = np.random.default_rng()
    for rows, columns in ((3, 7), (16, 1000), (5, 2048)):
        x, residual = random.standard_normal((2, rows, columns), dtype=np.float32)
        weight, bias = random.standard_normal((2, columns), dtype=np.float32)
        out, total = np.full_like(x, np.nan), np.full_like(x, np.nan)
        layer_norm[(rows,)](x, weight, bias, out, columns, 1e-5, BLOCK=256)
        wide = x.astype(np.float64)
        expected = (wide - wide.mean(axis=1, keepdims=True)) / np.sqrt(wide.var(axis=1, keepdims=True) + 1e-5) * weight + bias
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)
        add_rms_norm[(rows,)](x, residual, weight, total, out, columns, 1e-5, BLOCK=256)
        wide = x.astype(np.float64) + residual
        np.testing.assert_allclose(total, wide, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(out, wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-5) * weight, rtol=1e-4, atol=1e-4)
    print("normalisation: LayerNorm and add + RMSNorm of rows of 7, 1000 and 2048 correct")


if __name__ == "__main__":
    main()
