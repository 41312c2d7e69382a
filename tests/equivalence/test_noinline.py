"""Functions that stay functions, in two kernels, against NumPy on random data."""
import pathlib

import numpy as np

FILE = pathlib.Path(__file__).parent / "noinline.vx"


def steps(n, limit):
    for i in range(limit):
        if n <= 1:
            return i
        n = n // 2 if n % 2 == 0 else 3 * n + 1
    return limit


def test_functions_that_stay_compute_what_numpy_does(backend, vortex, tmp_path):
    random = np.random.default_rng()
    count = 300  # more than a block, and a part of one
    n = random.integers(0, 5000, count).astype(np.uint64)
    x = random.standard_normal((4, count)).astype(np.float32)
    np.save(tmp_path / "n.npy", n)
    np.save(tmp_path / "x.npy", x)
    vortex("run", FILE, *backend, "--", tmp_path)

    def load(name):
        return np.load(tmp_path / f"{name}.npy")

    np.testing.assert_array_equal(load("steps"), [steps(int(v), 150) if v % 3 else 7777 for v in n])
    np.testing.assert_array_equal(load("long"), [steps(int(v) + 1, 40) + steps(int(v) // 2, 9) for v in n])

    v = x.astype(np.float64)
    a, b = v[:2], v[2:]
    dot, cross = (a * b).sum(axis=0), a[0] * b[1] - a[1] * b[0]
    length = np.sqrt((a * a).sum(axis=0))
    turned = np.where(cross > 0, cross, dot)
    moved = np.where(n % 2 == 0, a[0] + length, a[0])
    np.testing.assert_allclose(load("turned"), turned, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(load("moved"), moved, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(load("flags"), (n % 2 == 0) & (n % 5 != 0))

    i = n.astype(np.int64)
    lists = np.stack([i % 7, i % 11, i % 13, i % 17])
    np.testing.assert_array_equal(load("sums"), lists.sum(axis=0) + lists[i % 4, np.arange(count)] + lists.max(axis=0))
    np.testing.assert_allclose(load("powers"), (i % 5).astype(float) ** 3 + (i % 9) ** 2 + v[0] ** 3, rtol=1e-4, atol=1e-5)
