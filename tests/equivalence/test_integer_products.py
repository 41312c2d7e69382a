"""Products of narrow integers that are summed up in a wider destination."""
import numpy
import pytest

KERNELS = """
kernel declared(a: &Tensor<i8, [M, K]>, b: &Tensor<i8, [K, N]>) -> Tensor<i32, [M, N]> {
    let c: Tensor<i32, [M, N]> = a @ b
    return c
}

kernel returned(a: &Tensor<u8, [M, K]>, b: &Tensor<u8, [K, N]>) -> Tensor<i64, [M, N]> {
    return a @ b
}

kernel converted(a: &Tensor<i8, [M, K]>, b: &Tensor<i8, [K, N]>) -> Tensor<f32, [M, N]> {
    return ((a @ b) as i32) as f32 * 0.5
}

@tile(m = 16, n = 16, k = 16)
kernel tiled(a: &Tensor<i8, [M, K]>, b: &Tensor<i8, [K, N]>) -> Tensor<i32, [M, N]> {
    var acc: Tensor<i32, [16, 16]> @local = zeros()
    for k in range(0, K, 16) {
        acc += a[block_m..+16, k..+16] @ b[k..+16, block_n..+16]
    }
    return acc
}

fn main() {
    let dir = args()[0]
    let a: Tensor<i8, [M, K]> = load_npy(format("{}/a.npy", dir))
    let b: Tensor<i8, [K, N]> = load_npy(format("{}/b.npy", dir))
    let ua: Tensor<u8, [M, K]> = load_npy(format("{}/ua.npy", dir))
    let ub: Tensor<u8, [K, N]> = load_npy(format("{}/ub.npy", dir))
    save_npy(format("{}/declared.npy", dir), declared(&a, &b))
    save_npy(format("{}/returned.npy", dir), returned(&ua, &ub))
    save_npy(format("{}/converted.npy", dir), converted(&a, &b))
    save_npy(format("{}/tiled.npy", dir), tiled(&a, &b))
}
"""


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_integers_are_summed_up_in_the_destinations_type(vortex, tmp_path, backend):
    rng = numpy.random.default_rng()
    a, b = rng.integers(-128, 128, (37, 70), dtype=numpy.int8), rng.integers(-128, 128, (70, 21), dtype=numpy.int8)
    ua, ub = a.view(numpy.uint8), b.view(numpy.uint8)
    for name, array in {"a": a, "b": b, "ua": ua, "ub": ub}.items():
        numpy.save(tmp_path / f"{name}.npy", array)
    path = tmp_path / "products.vx"
    path.write_text(KERNELS)
    vortex("run", path, "--device", backend, "--", tmp_path)
    exact = a.astype(int) @ b.astype(int)
    results = {"declared": exact, "tiled": exact, "converted": exact * 0.5, "returned": ua.astype(int) @ ub.astype(int)}
    for name, expected in results.items():
        assert (numpy.load(tmp_path / f"{name}.npy") == expected).all(), name
