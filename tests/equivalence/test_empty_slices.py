"""Slices that end before they begin have no elements, wherever the numbers come from."""
import numpy
import pytest

PROGRAM = """
kernel inner(u: &Tensor<f32, [H, W]>, y: &mut Tensor<f32, [H, W]>) {
    y[1..H - 1, 1..W - 1] = u[1..H - 1, 1..W - 1] * 2.0
}
kernel sums(u: &Tensor<f32, [H, W]>) -> Tensor<f32, [2]> {
    var out: Tensor<f32, [2]>
    out[0] = u[1..H - 1, 1..W - 1].sum()
    out[1] = u[1..H - 1, 1..W - 1].mean()
    return out
}
kernel shifted(u: &Tensor<f32, [H, W]>, by: usize) -> Tensor<f32, [H, W]> {
    var out = u * 0.5
    out[by..H] = u[0..H - by]
    return out
}
kernel windows(u: &Tensor<f32, [H, W]>, n: usize) -> Tensor<f32, [H, W]> {
    var out = u * 1.0
    for k in 1..n {
        out[k..H, k..W] += u[0..H - k, 0..W - k]
        let v = out + 1.0
        out[0..H - 2 * k] += v[2 * k..H]
    }
    return out
}
fn main() {
    let dir = args()[0]
    let u: Tensor<f32, [H, W]> = load_npy(format("{}/u.npy", dir))
    var y = u.copy()
    inner(&u, &mut y)
    save_npy(format("{}/inner.npy", dir), y)
    save_npy(format("{}/sums.npy", dir), sums(&u))
    for by in [0, 1, 3, 700] { save_npy(format("{}/shifted{}.npy", dir, by), shifted(&u, by)) }
    save_npy(format("{}/windows.npy", dir), windows(&u, 6))
}
"""


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (1, 1), (1, 9), (2, 2), (3, 1), (9, 1), (5, 4), (300, 2), (2, 700)])
def test_they_are_empty(vortex, tmp_path, backend, shape):
    if backend == ["--check"]:
        pytest.skip("it reports that `H - 2` wraps")
    u = numpy.random.default_rng().standard_normal(shape).astype(numpy.float32)
    numpy.save(tmp_path / "u.npy", u)
    (tmp_path / "p.vx").write_text(PROGRAM)
    vortex("run", tmp_path / "p.vx", *backend, "--", tmp_path)
    height = shape[0]
    inner, windows = u.copy(), u.copy()
    inner[1:-1, 1:-1] *= 2
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "inner.npy"), inner)
    part = u[1:-1, 1:-1].astype(float)
    total, mean = numpy.load(tmp_path / "sums.npy")
    numpy.testing.assert_allclose(total, part.sum(), rtol=1e-4, atol=1e-4)
    assert numpy.isnan(mean) if part.size == 0 else abs(mean - part.mean()) < 1e-4
    for by in (0, 1, 3, 700):
        out = u * numpy.float32(0.5)
        out[by:] = u[:max(height - by, 0)]
        numpy.testing.assert_array_equal(numpy.load(tmp_path / f"shifted{by}.npy"), out)
    for k in range(1, 6):
        windows[k:, k:] += u[:max(height - k, 0), :max(shape[1] - k, 0)]
        windows[:max(height - 2 * k, 0)] += (windows + 1)[2 * k:]
    numpy.testing.assert_allclose(numpy.load(tmp_path / "windows.npy"), windows, rtol=1e-5, atol=1e-5)


def test_products_of_negative_differences_are_refused(vortex, tmp_path, backend):
    (tmp_path / "p.vx").write_text("""kernel k(u: &Tensor<f32, [H, W]>) -> f32 {
    return u[1..H - 1, 1..W - 1].reshape([(H - 2) * (W - 2)]).sum()
}
fn main() {
    print(k(&full(1.0, [4, 3])))
    print(k(&full(1.0, [1, 1])))
}
""")
    done = vortex("run", tmp_path / "p.vx", *backend, status=1)
    assert done.stdout == "2.0\n" and "E0712" in done.stderr and "H - 2 must not be negative, but is -1" in done.stderr
