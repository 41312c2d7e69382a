"""Cumulative sums of vectors of many lengths and of tensors along every axis agree with NumPy, and two runs bit for bit."""
import numpy as np
import pytest

TYPES = {"f32": (np.float32, np.float64), "f64": (np.float64, np.float64), "f16": (np.float16, np.float64), "i32": (np.int32, np.int32), "i64": (np.int64, np.int64)}


def program(runs):
    kernels = "".join(f"kernel vector_{t}(x: &Tensor<{t}, [N]>) -> Tensor<{t}, [N]> {{ return x.cumsum() }}\n"
                      f"kernel twice_{t}(x: &Tensor<{t}, [N]>) -> Tensor<{t}, [N]> {{ return (x + x).cumsum() - x }}\n" for t in TYPES)
    kernels += "".join(f"kernel axis{d}(x: &Tensor<f32, [B, M, N]>) -> Tensor<f32, [B, M, N]> {{ return x.cumsum(dim = {d}) }}\n" for d in range(3))
    body = "    let p = args()\n"
    for name, kernel, kind, rank in runs:
        extents = ", ".join(f"D{i}_{name}" for i in range(rank))
        body += f'    let {name}: Tensor<{kind}, [{extents}]> = load_npy(format("{{}}/{name}.npy", p[0]))\n'
        for turn in "ab":
            body += f'    save_npy(format("{{}}/{name}{turn}.npy", p[1]), {kernel}(&{name}))\n'
    return f"{kernels}fn main() {{\n{body}}}\n"


@pytest.mark.parametrize("kind", TYPES)
def test_vectors(vortex, tmp_path, kind):
    own, wide = TYPES[kind]
    rng = np.random.default_rng()
    # Whole numbers: every order of additions gives the same, up to the rounding to f16 at the end.
    inputs = {f"x{n}": rng.integers(-3, 4, n).astype(own) for n in (0, 1, 2, 63, 4099, 24576, 24577, 100003, 1 << 20)}
    (tmp_path / "p.vx").write_text(program([(name, f"{kernel}_{kind}", kind, 1) for name in inputs for kernel in ("vector",)]
                                           + [(f"t{name}", f"twice_{kind}", kind, 1) for name in inputs]))
    for name, values in inputs.items():
        np.save(tmp_path / f"{name}.npy", values)
        np.save(tmp_path / f"t{name}.npy", values)
    (tmp_path / "out").mkdir()
    vortex("run", tmp_path / "p.vx", "--", tmp_path, tmp_path / "out")
    for name, values in inputs.items():
        for prefix, exact in (("", values.astype(wide).cumsum()), ("t", (2 * values.astype(wide)).cumsum() - values.astype(wide))):
            first, second = (np.load(tmp_path / f"out/{prefix}{name}{turn}.npy") for turn in "ab")
            assert first.tobytes() == second.tobytes(), (prefix, name)
            if kind == "f16" and prefix:
                np.testing.assert_allclose(first.astype(wide), exact, rtol=2e-3, atol=4)
            else:
                np.testing.assert_array_equal(first, exact.astype(own), err_msg=name)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (2, 33, 61), (70, 9, 5), (1, 4099, 3), (5, 1, 1023), (2, 3, 9001), (0, 3, 4), (3, 0, 4), (3, 4, 0)])
def test_along_every_axis(vortex, tmp_path, shape):
    values = np.random.default_rng().integers(-9, 10, shape).astype(np.float32)
    (tmp_path / "p.vx").write_text(program([(f"x{d}", f"axis{d}", "f32", 3) for d in range(3)]))
    for d in range(3):
        np.save(tmp_path / f"x{d}.npy", values)
    (tmp_path / "out").mkdir()
    vortex("run", tmp_path / "p.vx", "--", tmp_path, tmp_path / "out")
    for d in range(3):
        first, second = (np.load(tmp_path / f"out/x{d}{turn}.npy") for turn in "ab")
        assert first.tobytes() == second.tobytes()
        np.testing.assert_array_equal(first, values.cumsum(d, dtype=np.float32))
