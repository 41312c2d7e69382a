"""`for`, `while` and `if` around whole tensors, against NumPy."""
import numpy
import pytest

KERNELS = """
kernel branch(x: &Tensor<KIND, [S, D]>, z: &Tensor<KIND, [S, D]>, on: bool, off: bool) -> Tensor<KIND, [S, D]> {
    var y = x * TWO
    if on { y = max(y, ZERO) }
    if off {
        y = y - z
    } else {
        y = y * z + x
    }
    return y
}
kernel relax(x: &Tensor<KIND, [S, D]>, z: &Tensor<KIND, [S, D]>, n: usize) -> Tensor<KIND, [S, D]> {
    var y = x * ONE
    var before = z * ONE
    for i in 0..n {
        let next = y * TWO - before
        before = y
        if i % 3 == 1 { y = next } else { y = next + z }
    }
    return y + before
}
kernel halve(x: &Tensor<KIND, [S, D]>, n: usize) -> Tensor<KIND, [S, D]> {
    var y = x * ONE
    var h = n
    while h > 0 {
        y = y + x
        h = h / 2
    }
    return y
}
fn main() {
    let dir = args()[0]
    let x: Tensor<KIND, [S, D]> = load_npy(format("{}/x.npy", dir))
    let z: Tensor<KIND, [S, D]> = load_npy(format("{}/z.npy", dir))
    save_npy(format("{}/branch10.npy", dir), branch(&x, &z, true, false))
    save_npy(format("{}/branch01.npy", dir), branch(&x, &z, false, true))
    for n in 0..7 {
        save_npy(format("{}/relax{}.npy", dir, n), relax(&x, &z, n))
        save_npy(format("{}/halve{}.npy", dir, n), halve(&x, n))
    }
}
"""


def branch(x, z, on, off):
    y = x * 2
    y = numpy.maximum(y, 0) if on else y
    return y - z if off else y * z + x


def relax(x, z, n):
    y, before = x, z
    for i in range(n):
        y, before = y * 2 - before + (0 if i % 3 == 1 else z), y
    return y + before


@pytest.mark.parametrize("shape", [(3, 5), (1, 4096), (130, 257)])
@pytest.mark.parametrize("kind", ["i32", "f32"])
def test_elements_of_tensors_run_control_flow(vortex, tmp_path, backend, kind, shape):
    rng = numpy.random.default_rng()
    x, z = (rng.integers(-9, 9, shape).astype({"i32": numpy.int32, "f32": numpy.float32}[kind]) for _ in "xz")  # floats stay exact
    numpy.save(tmp_path / "x.npy", x)
    numpy.save(tmp_path / "z.npy", z)
    path = tmp_path / "control.vx"
    text = KERNELS.replace("KIND", kind)
    for name, number in (("ZERO", "0"), ("ONE", "1"), ("TWO", "2")):
        text = text.replace(name, number + ".0" if kind == "f32" else number)
    path.write_text(text)
    vortex("run", path, *backend, "--", tmp_path)
    expected = {"branch10": branch(x, z, True, False), "branch01": branch(x, z, False, True)}
    for n in range(7):
        expected[f"relax{n}"] = relax(x, z, n)
        expected[f"halve{n}"] = x * (1 + n.bit_length())
    for name, values in expected.items():
        assert (numpy.load(tmp_path / f"{name}.npy") == values).all(), name


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_control_around_elements_is_one_phase_that_stays_in_registers(vortex, tmp_path, target):
    path = tmp_path / "control.vx"
    text = KERNELS[:KERNELS.index("fn main")].replace("KIND", "f32")
    path.write_text(text.replace("ZERO", "0.0").replace("ONE", "1.0").replace("TWO", "2.0"))
    report = vortex("build", "--target", target, path, "-o", tmp_path / "out").stdout
    assert report.count("bytes in 1 phase\n") == 3, report
    spills = [line for line in report.splitlines() if "spill_bytes" in line and "_general" not in line]
    assert spills and all(int(line.split()[-1]) <= 16 for line in spills), spills  # four words outside the loops
