"""One element per lane: the sum of two vectors."""
import numpy as np

import metile


@metile.kernel
def add(X, Y, Out, N, BLOCK: metile.constexpr):
    offs = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    mask = offs < N
    metile.store(Out + offs, metile.load(X + offs, mask=mask) + metile.load(Y + offs, mask=mask), mask=mask)


def main():
    n = 100_003
    x, y = np.random.default_rng().standard_normal((2, n), dtype=np.float32)
    out = np.empty(n, np.float32)
    add[(metile.cdiv(n, 256),)](x, y, out, n, BLOCK=256)
    np.testing.assert_array_equal(out, x + y)
    print(f"vector_add: {n} sums correct")


if __name__ == "__main__":
    main()
