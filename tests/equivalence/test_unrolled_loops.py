"""`@unroll`, with everything that leaves or skips iterations, against NumPy."""
import os
import re

import numpy
import pytest

PROGRAM = """
@launch(grid = [ceil_div(N, 64)], block = 64)
kernel threads(y: &Tensor<i32, [N]>) -> Tensor<i32, [N]> {
    var out: Tensor<i32, [N]> = zeros()
    let i = thread.global_id
    var v = [1; 8]
    UNROLL for k in 0..8 {
        if y[i] < k { break }
        if k == 2 { continue }
        v[k] = 2 * v[k] + v[(k + 7) % 8]
    }
    var sum = 0
    UNROLL for k in range(7, -1, -1) {
        for j in 0..k { sum += v[j] * k }
    }
    out[i] = sum
    return out
}
@launch(grid = [ceil_div(N, 64)], block = 64)
kernel blocks(y: &Tensor<i32, [N]>, limit: i32) -> Tensor<i32, [N]> {
    var out: Tensor<i32, [N]> = zeros()
    let lane = thread.local_id
    var t: Tensor<i32, [64]> @shared = zeros()
    UNROLL for k in 0..4 {
        sync_block()
        if k == limit { break }
        t[lane] += (lane as i32 + 1) * (k + 1)
        sync_block()
        if k == 1 { continue }
        let other = t[63 - lane]
        sync_block()
        t[lane] += other
    }
    sync_block()
    out[thread.global_id] = t[lane]
    return out
}
fn main() {
    let dir = args()[0]
    let y: Tensor<i32, [N]> = load_npy(format("{}/y.npy", dir))
    save_npy(format("{}/threads.npy", dir), threads(&y))
    for limit in 0..6 {
        save_npy(format("{}/blocks{}.npy", dir, limit), blocks(&y, limit as i32))
    }
}
"""


def of_thread(y):
    v = [1] * 8
    for k in range(8):
        if y < k:
            break
        if k != 2:
            v[k] = 2 * v[k] + v[(k + 7) % 8]
    return sum(k * sum(v[:k]) for k in range(8))


def of_block(limit):
    lane = numpy.arange(64)
    t = 0 * lane
    for k in range(min(limit, 4)):
        t = t + (lane + 1) * (k + 1)
        if k != 1:
            t = t + t[::-1]
    return t


@pytest.mark.parametrize("hint", ["@unroll", ""])
def test_unrolled_loops_are_loops(vortex, tmp_path, backend, hint):
    rng = numpy.random.default_rng()
    y = rng.integers(-1, 10, 192).astype(numpy.int32)
    numpy.save(tmp_path / "y.npy", y)
    path = tmp_path / "unrolled.vx"
    path.write_text(PROGRAM.replace("UNROLL", hint))
    vortex("run", path, *backend, "--", tmp_path)
    expected = {"threads": [of_thread(value) for value in y]}
    for limit in range(6):
        expected[f"blocks{limit}"] = numpy.resize(of_block(limit), 192)
    for name, values in expected.items():
        assert (numpy.load(tmp_path / f"{name}.npy") == values).all(), name


TENSORS = """
kernel tensors(x: &Tensor<i32, [M, M]>, stop: bool) -> Tensor<i32, [M, M]> {
    var y = x + 0
    UNROLL for k in 0..3 {
        y = y @ x + k
        if stop { break }
    }
    return y
}
fn main() {
    let dir = args()[0]
    let x: Tensor<i32, [M, M]> = load_npy(format("{}/x.npy", dir))
    save_npy(format("{}/tensors0.npy", dir), tensors(&x, false))
    save_npy(format("{}/tensors1.npy", dir), tensors(&x, true))
}
"""


@pytest.mark.skipif(os.environ.get("VORTEX_TEST_DEVICE", "cpu") != "cpu", reason="GPUs refuse loops around products that the program leaves")
@pytest.mark.parametrize("hint", ["@unroll", ""])
def test_unrolled_loops_around_tensors(vortex, tmp_path, backend, hint):
    x = numpy.random.default_rng().integers(-3, 4, (5, 5)).astype(numpy.int32)
    numpy.save(tmp_path / "x.npy", x)
    path = tmp_path / "tensors.vx"
    path.write_text(TENSORS.replace("UNROLL", hint))
    vortex("run", path, *backend, "--", tmp_path)
    assert (numpy.load(tmp_path / "tensors0.npy") == ((x @ x) @ x + 1) @ x + 2).all()
    assert (numpy.load(tmp_path / "tensors1.npy") == x @ x).all()


REGISTERS = """
@launch(grid = [ceil_div(N, 64)], block = 64)
kernel tiles(x: &Tensor<f32, [16, N]>, out: &mut Tensor<f32, [N]>) {
    var v: Tensor<f32, [4, 4]> @local = zeros()
    for i in 0..4 {
        for j in 0..4 { v[i, j] = x[4 * i + j, thread.global_id] }
    }
    var sum: f32 = 0.0
    UNROLL for t in 0..64 {
        v[t % 4, t / 16] = v[(t + 1) % 4, (t + 5) % 4] + sum
        sum += v[t % 4, t % 3]
    }
    out[thread.global_id] = sum
}
"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_arrays_of_unrolled_loops_are_registers(vortex, tmp_path, target):
    path = tmp_path / "registers.vx"
    path.write_text(REGISTERS.replace("UNROLL", "@unroll"))
    text = vortex("build", "--target", target, "--emit=asm", path).stdout
    assert "ld.global" in text and not re.search(r"\b(ld|st)\.local|selp", text)
