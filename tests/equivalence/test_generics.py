"""Associated types, traits with parameters, impls for built-in types, fields, closures and lists in kernels against NumPy on random data."""
import pathlib

import numpy as np

FILE = pathlib.Path(__file__).parent / "generics.vx"


def test_generic_kernels_compute_what_numpy_does(backend, vortex, tmp_path):
    random = np.random.default_rng()
    count = 101
    x = random.standard_normal(count).astype(np.float32)
    data, roots = (random.integers(0, 97, 128).astype(np.uint32) for _ in range(2))
    grid = random.standard_normal((5, 7)).astype(np.float32)
    for name, values in [("x", x), ("data", data), ("roots", roots), ("grid", grid)]:
        np.save(tmp_path / f"{name}.npy", values)
    vortex("run", FILE, *backend, "--", tmp_path)

    def close(name, expected):
        np.testing.assert_allclose(np.load(tmp_path / f"{name}.npy"), expected, rtol=1e-5, atol=1e-5, err_msg=name)

    v, i = x.astype(np.float64), np.arange(count)
    close("sums", v + 3 * v + 1 + 0.5 * v + 4 + 2 * v + 4.5 + (v + 1) * (v + 2) + v * v * count)
    reduced = np.full(count, 0.5)
    for y in [v, 2.0, 0.5]:
        reduced = np.maximum(reduced, y) + 0.25
    close("closures", (v * 0.5 + v) * 0.5 + v + reduced + 2)
    a = np.stack([v, v * 0 + 1, v * 0 + 2, v * 0 + 3, v * 0 + 5])
    k = i % 3
    close("lists", v + v * v * np.where(k % 2 == 0, 2, v * v) + 2 * v + 3 * v + 1 + 6 + a[k, i] * a[k + 1, i])
    close("weighted", np.where(i % 2 == 0, v * np.array([0.25, 0.5, 2.0])[i % 3], 0))
    g = grid.astype(np.float64)
    close("norms", g[0, 1] + 705 + 3 * g[0, 1] + 705 + 2 + 0.5 * g + 202 + 2)
    close("twice", 2 * v)
    close("same", v)

    d, r = data.astype(int), roots.astype(int)
    y = ((r * d + r * r) * d - 1) * np.array([pow(int(n), 95, 97) for n in d + 3])
    d = (d + y + r * r + 2 * r**5) % 97
    np.testing.assert_array_equal(np.load(tmp_path / "butterflies.npy"), np.where(d == r, 0, d))


def test_traits_mean_what_they_say_in_host_code(vortex):
    vortex("run", FILE.parent / "traits.vx")
