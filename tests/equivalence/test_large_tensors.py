"""Whole-tensor kernels large enough for many blocks, on the CPU, against NumPy in f64."""
import numpy as np
import pytest

PROGRAM = """
kernel columns(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [N]> { return x.sum(dim = 0) }
kernel columns_max(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [N]> { return x.max(dim = 0) }
kernel transposed(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [N, M]> { return x.transpose() * 2.0 }
kernel gram(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [M, M]> { return x @ x.transpose() }
kernel rows(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [M, N]> { return softmax(x, dim = -1) }

fn main() {
    let paths = args()
    let x: Tensor<f32, [M, N]> = load_npy(paths[0])
    save_npy(format("{}columns.npy", paths[1]), columns(&x))
    save_npy(format("{}columns_max.npy", paths[1]), columns_max(&x))
    save_npy(format("{}transposed.npy", paths[1]), transposed(&x))
    save_npy(format("{}gram.npy", paths[1]), gram(&x))
    save_npy(format("{}rows.npy", paths[1]), rows(&x))
}
"""


@pytest.mark.parametrize("shape", [(1, 1), (1, 1000), (1000, 1), (257, 133), (2049, 515), (64, 4096), (3000, 40)])
def test_large_tensors_agree_with_numpy(vortex, tmp_path, shape):
    (tmp_path / "large.vx").write_text(PROGRAM)
    x = np.random.default_rng(shape[0] * 7919 + shape[1]).standard_normal(shape).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    vortex("run", tmp_path / "large.vx", "--", tmp_path / "x.npy", f"{tmp_path}/")
    wide = x.astype(np.float64)
    exponents = np.exp(wide - wide.max(axis=1, keepdims=True))
    expected = {"columns": wide.sum(axis=0), "columns_max": x.max(axis=0), "transposed": x.T * 2, "gram": wide @ wide.T,
                "rows": exponents / exponents.sum(axis=1, keepdims=True)}
    for name, values in expected.items():
        np.testing.assert_allclose(np.load(tmp_path / f"{name}.npy"), values, rtol=2e-5, atol=2e-4 if name != "rows" else 1e-7, err_msg=name)


def test_an_empty_sum_of_floats_is_plus_zero(vortex, tmp_path):
    path = tmp_path / "empty.vx"
    path.write_text("""
kernel total(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [M]> { return 1.0 / x.sum(dim = -1) }
fn main() {
    let sums = total(&zeros::<f32>([3, 0])).to_host()
    assert(sums[0] > 0.0 && sums[2] > 0.0, "1 / -0.0")
}
""")
    for device in ("cpu", "interpreter"):
        vortex("run", path, "--device", device)


@pytest.mark.parametrize("columns", [1, 7, 8, 33, 1000])
def test_maxima_and_minima_of_rows_hand_nan_on(vortex, tmp_path, columns):
    path = tmp_path / "extremes.vx"
    path.write_text("""
kernel high(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [M]> { return x.max(dim = -1) }
kernel low(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [M]> { return x.min(dim = -1) }
fn main() {
    let paths = args()
    let x: Tensor<f32, [M, N]> = load_npy(paths[0])
    save_npy(paths[1], high(&x))
    save_npy(paths[2], low(&x))
}
""")
    rng = np.random.default_rng(columns)
    x = rng.standard_normal((40, columns)).astype(np.float32)
    x[np.arange(0, 40, 2), rng.integers(columns, size=20)] = np.nan
    x[5], x[7] = -np.inf, np.inf
    np.save(tmp_path / "x.npy", x)
    vortex("run", path, "--", tmp_path / "x.npy", tmp_path / "high.npy", tmp_path / "low.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "high.npy"), x.max(axis=1))
    np.testing.assert_array_equal(np.load(tmp_path / "low.npy"), x.min(axis=1))
