"""Rows in three passes: the largest element, the sum of the exponentials, the quotients. Ragged rows need no padding."""
import numpy as np

import metile


@metile.kernel
def softmax(X, Out, N, BLOCK: metile.constexpr):
    row = metile.program_id(0) * N
    lanes = metile.arange(0, BLOCK)

    largest = -1e38
    for start in metile.tile_range(0, N, BLOCK):
        largest = metile.maximum(largest, metile.load(X + row + start + lanes, mask=start + lanes < N))
    largest = metile.max(largest)

    total = 0.0
    for start in metile.tile_range(0, N, BLOCK):
        x = metile.load(X + row + start + lanes, mask=start + lanes < N)
        total = total + metile.exp(x - largest)  # lanes past the end do not count
    total = metile.sum(total)

    for start in metile.tile_range(0, N, BLOCK):
        mask = start + lanes < N
        x = metile.load(X + row + start + lanes, mask=mask)
        metile.store(Out + row + start + lanes, metile.exp(x - largest) / total, mask=mask)


def main():
    random = np.random.default_rng()
    for rows, columns in ((1, 1), (37, 1003), (8, 4096)):
        x = (10 * random.standard_normal((rows, columns)) - 500).astype(np.float32)
        out = np.empty_like(x)
        softmax[(rows,)](x, out, columns, BLOCK=256)
        e = np.exp(x - x.max(axis=1, keepdims=True).astype(np.float64))
        np.testing.assert_allclose(out, e / e.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-7)
    print("softmax: rows of 1, 1003 and 4096 correct")


if __name__ == "__main__":
    main()
