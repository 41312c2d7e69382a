"""Reductions along dimensions of a few elements that do not lie together, as pooling has them, alone and around each other."""
import numpy
import pytest

PROGRAM = """
kernel pool(x: &Tensor<T, [A, H, W]>) -> Tensor<T, [A, H / 2, W / 3]> {
    return max(x.reshape([A, H / 2, 2, W / 3, 3]), dim = [2, 4])
}
kernel nested(x: &Tensor<T, [A, H, W]>) -> Tensor<T, [A, H / 2, W / 3]> {
    return min(min(x.reshape([A, H / 2, 2, W / 3, 3]) + 1, dim = 4), dim = 2)
}
kernel sums(x: &Tensor<T, [A, H, W]>) -> Tensor<T, [A / 4, H, W / 3]> {
    return sum(x.reshape([A / 4, 4, H, W / 3, 3]), dim = [1, 4])
}
kernel used_again(x: &Tensor<T, [A, H, W]>) -> Tensor<T, [A, H / 2, 2, W]> {
    let y = x.reshape([A, H / 2, 2, W]) * 2
    return y - max(y, dim = 2, keepdim = true) + sum(sum(y, dim = 2), dim = 1).reshape([A, 1, 1, W])
}
kernel of_all(x: &Tensor<T, [A, H, W]>) -> Tensor<T, [W]> {
    return max(max(x, dim = 0), dim = 0) - sum(sum(x.reshape([A * H / 2, 2, W]), dim = 1), dim = 0)
}
fn main() {
    let dir = args()[0]
    let x: Tensor<T, [A, H, W]> = load_npy(format("{}/x.npy", dir))
    save_npy(format("{}/pool.npy", dir), pool(&x))
    save_npy(format("{}/nested.npy", dir), nested(&x))
    save_npy(format("{}/sums.npy", dir), sums(&x))
    save_npy(format("{}/used_again.npy", dir), used_again(&x))
    save_npy(format("{}/of_all.npy", dir), of_all(&x))
}
"""


def expected(x):
    a, h, w = x.shape
    pooled = x.reshape(a, h // 2, 2, w // 3, 3)
    y = x.reshape(a, h // 2, 2, w) * 2
    return {"pool": pooled.max(axis=(2, 4)), "nested": pooled.min(axis=(2, 4)) + 1, "sums": x.reshape(a // 4, 4, h, w // 3, 3).sum(axis=(1, 4)),
            "used_again": y - y.max(axis=2, keepdims=True) + y.sum(axis=(1, 2))[:, None, None, :], "of_all": x.max(axis=(0, 1)) - x.sum(axis=(0, 1))}


@pytest.mark.parametrize("word, dtype", [("f32", numpy.float32), ("f16", numpy.float16), ("i32", numpy.int32), ("i64", numpy.int64)])
@pytest.mark.parametrize("shape", [(4, 2, 3), (8, 6, 33), (12, 14, 96), (4, 64, 129)])
def test_pooling(vortex, tmp_path, backend, word, dtype, shape):
    top = 2 if dtype == numpy.float16 else 5  # sums are exact in every order
    x = numpy.random.default_rng().integers(-top, top, shape).astype(dtype)
    numpy.save(tmp_path / "x.npy", x)
    one, two = ("1.0", "2.0") if word.startswith("f") else ("1", "2")
    text = PROGRAM.replace("Tensor<T,", f"Tensor<{word},").replace("+ 1,", f"+ {one},").replace("]) * 2\n", f"]) * {two}\n")
    (tmp_path / "p.vx").write_text(text)
    vortex("run", tmp_path / "p.vx", *backend, "--", tmp_path)
    for name, result in expected(x).items():
        numpy.testing.assert_array_equal(numpy.load(tmp_path / f"{name}.npy"), result, err_msg=name)


def test_special_values(vortex, tmp_path, backend):
    x = numpy.random.default_rng().choice([numpy.nan, -0.0, 0.0, numpy.inf, -numpy.inf], (4, 8, 6)).astype(numpy.float32)
    x[:, 0] = -0.0
    numpy.save(tmp_path / "x.npy", x)
    (tmp_path / "p.vx").write_text(PROGRAM.replace("Tensor<T,", "Tensor<f32,").replace("+ 1,", "+ 1.0,").replace("]) * 2\n", "]) * 2.0\n"))
    vortex("run", tmp_path / "p.vx", *backend, "--", tmp_path)
    with numpy.errstate(invalid="ignore"):
        for name in ("pool", "nested", "sums"):
            numpy.testing.assert_array_equal(numpy.load(tmp_path / f"{name}.npy"), expected(x)[name], err_msg=name)
    sums = numpy.load(tmp_path / "sums.npy")
    assert numpy.signbit(sums[:, 0]).all()  # sums of negative zeros alone


def test_pooling_is_one_phase(vortex, tmp_path):
    (tmp_path / "p.vx").write_text(PROGRAM.replace("Tensor<T,", "Tensor<f32,").replace("+ 1,", "+ 1.0,").replace("]) * 2\n", "]) * 2.0\n"))
    for name in ("pool", "nested", "sums"):
        plan = vortex("build", tmp_path / "p.vx", "--kernel", name, "--target", "sm_90", "--dump-after", "plan", "-o", tmp_path / "out").stderr
        assert plan.count("\nphase") == 1, plan
