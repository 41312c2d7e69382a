"""Last dimensions of a few elements (channels, parts of numbers, repeated elements), reshapes whose dimensions correspond in groups, and results that
their own stores fill."""
import numpy
import pytest

PROGRAM = """
kernel planes(x: &Tensor<T, [H, W, C]>) -> Tensor<T, [C, H, W]> {
    return x.transpose([2, 0, 1])
}
kernel of_planes(x: &Tensor<T, [C, H, W]>) -> Tensor<T, [H, W, C]> {
    return x.transpose([1, 2, 0])
}
kernel three(x: &Tensor<T, [H, W, 3]>) -> Tensor<T, [3, H, W]> {
    return x.transpose([2, 0, 1])
}
kernel of_three(x: &Tensor<T, [3, H, W]>, b: &Tensor<T, [3]>) -> Tensor<T, [H, W, 3]> {
    return x.transpose([1, 2, 0]) + b
}
kernel turned(x: &Tensor<T, [H, W, C]>) -> Tensor<T, [C, W, H]> {
    return x.transpose([2, 1, 0])
}
kernel repeated(x: &Tensor<T, [C, H, W]>) -> Tensor<T, [C, 2 * H, 3 * W]> {
    return x.reshape([C, H, 1, W, 1]).broadcast([C, H, 2, W, 3]).reshape([C, 2 * H, 3 * W])
}
kernel shuffled(x: &Tensor<T, [3, 2, C, H, W]>) -> Tensor<T, [C, 3 * H, W * 2]> {
    return x.transpose([2, 3, 0, 4, 1]).reshape([C, 3 * H, W * 2])
}
kernel halves(x: &Tensor<T, [C, 2 * H, W * 4]>) -> Tensor<T, [C, 2, H, 4, W]> {
    return x.reshape([C, H, 2, W, 4]).transpose([0, 2, 1, 4, 3])
}
kernel squares(x: &Tensor<T, [H, W, 3]>) -> Tensor<T, [H, W]> {
    return (x * x).sum(dim = 2)
}
kernel shares(x: &Tensor<T, [H, W, 3]>) -> Tensor<T, [H, W, 3]> {
    return x.max(dim = 2, keepdim = true) - x
}
kernel products(x: &Tensor<T, [H, W, 2]>, y: &Tensor<T, [H, W, 2]>) -> Tensor<T, [H, W, 2]> {
    var out: Tensor<T, [H, W, 2]> = zeros()
    out[:, :, 0] = x[:, :, 0] * y[:, :, 0] + x[:, :, 1] * y[:, :, 1]
    out[:, :, 1] = x[:, :, 0] * y[:, :, 1] + x[:, :, 1] * y[:, :, 0]
    return out
}
kernel beside(x: &Tensor<T, [H, W]>, y: &Tensor<T, [H, C]>) -> Tensor<T, [H, W + C]> {
    var out: Tensor<T, [H, W + C]> = zeros()
    out[:, W..W + C] = y
    out[:, 0..W] = x
    return out
}
kernel with_gap(x: &Tensor<T, [H, W]>, y: &Tensor<T, [H, C]>) -> Tensor<T, [H, W + C + 1]> {
    var out: Tensor<T, [H, W + C + 1]> = zeros()
    out[:, 0..W] = x
    out[:, W + 1..W + C + 1] = y
    return out
}
kernel some_rows(x: &Tensor<T, [H, W]>, y: &Tensor<T, [H, C]>) -> Tensor<T, [H + 1, W + C]> {
    var out: Tensor<T, [H + 1, W + C]> = zeros()
    out[0..H, 0..W] = x
    out[0..H, W..W + C] = y
    return out
}
kernel read_first(x: &Tensor<T, [H, W]>) -> Tensor<T, [H, W]> {
    var out: Tensor<T, [H, W]> = zeros()
    out[:, 0..W] = out[:, 0..W] + x
    return out
}
fn main() {
    let dir = args()[0]
    let x: Tensor<T, [H, W, C]> = load_npy(format("{}/x.npy", dir))
    save_npy(format("{}/planes.npy", dir), planes(&x))
    save_npy(format("{}/turned.npy", dir), turned(&x))
    let p: Tensor<T, [C, H, W]> = load_npy(format("{}/p.npy", dir))
    save_npy(format("{}/of_planes.npy", dir), of_planes(&p))
    save_npy(format("{}/repeated.npy", dir), repeated(&p))
    let t: Tensor<T, [H, W, 3]> = load_npy(format("{}/t.npy", dir))
    let q: Tensor<T, [3, H, W]> = load_npy(format("{}/q.npy", dir))
    let b: Tensor<T, [3]> = load_npy(format("{}/b.npy", dir))
    save_npy(format("{}/three.npy", dir), three(&t))
    save_npy(format("{}/of_three.npy", dir), of_three(&q, &b))
    save_npy(format("{}/squares.npy", dir), squares(&t))
    save_npy(format("{}/shares.npy", dir), shares(&t))
    let s: Tensor<T, [3, 2, C, H, W]> = load_npy(format("{}/s.npy", dir))
    save_npy(format("{}/shuffled.npy", dir), shuffled(&s))
    let h: Tensor<T, [C, H2, W4]> = load_npy(format("{}/h.npy", dir))
    save_npy(format("{}/halves.npy", dir), halves(&h))
    let c: Tensor<T, [H, W, 2]> = load_npy(format("{}/c.npy", dir))
    let d: Tensor<T, [H, W, 2]> = load_npy(format("{}/d.npy", dir))
    save_npy(format("{}/products.npy", dir), products(&c, &d))
    let m: Tensor<T, [H, W]> = load_npy(format("{}/m.npy", dir))
    let n: Tensor<T, [H, C]> = load_npy(format("{}/n.npy", dir))
    save_npy(format("{}/beside.npy", dir), beside(&m, &n))
    save_npy(format("{}/with_gap.npy", dir), with_gap(&m, &n))
    save_npy(format("{}/some_rows.npy", dir), some_rows(&m, &n))
    save_npy(format("{}/read_first.npy", dir), read_first(&m))
}
"""


def arrays(shape, dtype):
    h, w, c = shape
    random = numpy.random.default_rng()
    shapes = {"x": (h, w, c), "p": (c, h, w), "t": (h, w, 3), "q": (3, h, w), "b": (3,), "s": (3, 2, c, h, w), "h": (c, 2 * h, 4 * w),
              "c": (h, w, 2), "d": (h, w, 2), "m": (h, w), "n": (h, c)}
    return {name: random.integers(0, 6, each).astype(dtype) for name, each in shapes.items()}


def expected(a, shape):
    h, w, c = shape
    real = a["c"][..., 0] * a["d"][..., 0] + a["c"][..., 1] * a["d"][..., 1]
    imaginary = a["c"][..., 0] * a["d"][..., 1] + a["c"][..., 1] * a["d"][..., 0]
    beside = numpy.concatenate([a["m"], a["n"]], 1)
    return {
        "planes": a["x"].transpose(2, 0, 1), "turned": a["x"].transpose(2, 1, 0), "of_planes": a["p"].transpose(1, 2, 0),
        "repeated": a["p"].repeat(2, 1).repeat(3, 2), "three": a["t"].transpose(2, 0, 1), "of_three": a["q"].transpose(1, 2, 0) + a["b"],
        "squares": (a["t"] * a["t"]).sum(2, dtype=a["t"].dtype), "shares": a["t"].max(2, keepdims=True) - a["t"],
        "shuffled": a["s"].transpose(2, 3, 0, 4, 1).reshape(c, 3 * h, 2 * w),
        "halves": a["h"].reshape(c, h, 2, w, 4).transpose(0, 2, 1, 4, 3), "products": numpy.stack([real, imaginary], 2), "beside": beside,
        "with_gap": numpy.insert(beside, w, 0, 1), "some_rows": numpy.pad(beside, ((0, 1), (0, 0))), "read_first": a["m"],
    }


TYPES = {"u8": numpy.uint8, "i16": numpy.int16, "f16": numpy.float16, "f32": numpy.float32, "f64": numpy.float64, "i32": numpy.int32}


@pytest.mark.parametrize("word", TYPES)
@pytest.mark.parametrize("shape", [(5, 37, 3), (3, 70, 1), (2, 130, 4), (33, 2, 9), (1, 65, 40), (7, 1, 2), (4, 0, 3), (0, 5, 2)])
def test_against_numpy(vortex, tmp_path, backend, word, shape):
    inputs = arrays(shape, TYPES[word])
    for name, value in inputs.items():
        numpy.save(tmp_path / f"{name}.npy", value)
    (tmp_path / "p.vx").write_text(PROGRAM.replace("Tensor<T,", f"Tensor<{word},"))
    vortex("run", tmp_path / "p.vx", *backend, "--", tmp_path)
    for name, result in expected(inputs, shape).items():
        numpy.testing.assert_array_equal(numpy.load(tmp_path / f"{name}.npy"), result, err_msg=name)


def build(vortex, tmp_path, kernel, target):
    (tmp_path / "p.vx").write_text(PROGRAM.replace("Tensor<T,", "Tensor<f32,"))
    return vortex("build", tmp_path / "p.vx", "--kernel", kernel, "--target", target, "--emit", "ir", "--dump-after", "plan", "--no-cache", "-o",
                  tmp_path / "out")


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
@pytest.mark.parametrize("kernel, zeros", [("products", False), ("beside", False), ("with_gap", True), ("some_rows", True), ("read_first", True)])
def test_results_that_are_filled_need_no_zeros(vortex, tmp_path, target, kernel, zeros):
    entry = next(line for line in build(vortex, tmp_path, kernel, target).stdout.splitlines() if "vx.entry" in line)
    assert (", zero}" in entry) == zeros, entry


def test_every_dimension_of_a_group_of_its_own_is_cut(vortex, tmp_path):
    plan = build(vortex, tmp_path, "repeated", "cpu").stderr
    assert "dim(0,0) by" in plan and "dim(0,1) * 2 by" in plan, plan


def test_short_dimensions_leave_their_part_of_a_square(vortex, tmp_path):
    plan = build(vortex, tmp_path, "three", "sm_90").stderr
    assert "3 by 3" in plan and "1344" in plan, plan
