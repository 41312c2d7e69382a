"""Loops and branches around whole tensors whose conditions and bounds are computed from tensors, against NumPy."""
import shutil
import subprocess

import numpy
import pytest

KERNELS = """
kernel until(x: &Tensor<i32, [S, S]>, limit: i32) -> Tensor<i32, [S, S]> {
    var y = x * 1
    while sum(y * y) % 1000 > limit { y = y.transpose() * 3 - x }
    return y
}
kernel counted(x: &Tensor<i32, [S, S]>, n: usize) -> Tensor<i32, [S, S]> {
    var y = x * 1
    var k: usize = 0
    while k < n && y.max() > y.min() {
        y = y @ x
        k = k + 1
    }
    return y + (k as i32)
}
kernel either(x: &Tensor<i32, [S, S]>, limit: i32) -> Tensor<i32, [S, S]> {
    var y = x * 1
    if sum(x) % 2 == 0 { y = y @ x } else { y = y.transpose() - sum(y, dim = 0) }
    if x.max() > limit { y = y @ y }
    return y
}
kernel left(x: &Tensor<i32, [S, S]>, n: usize, limit: i32) -> Tensor<i32, [S, S]> {
    var y = x * 1
    var rounds: i32 = 0
    for i in 0..n {
        y = y @ x + (i as i32)
        if y.max() > limit { break }
        if y.min() > limit { continue }
        y = y.transpose()
        rounds = rounds + 1
    }
    return y - rounds
}
kernel bounded(x: &Tensor<i32, [S, S]>) -> Tensor<i32, [S, S]> {
    var y = x * 1
    let end = max(x) % 5 + 1
    for i in range(end % 2, end, abs(end % 3) + 1) { y = y @ x - i }
    return y
}
kernel inside(x: &Tensor<i32, [S, S]>, n: usize, limit: i32) -> Tensor<i32, [S, S]> {
    var y = x * 1
    var steps: usize = 0
    for i in 0..n {
        var left: i32 = 5
        while sum(y) % 100 > limit && left > 0 {
            y = y.transpose() - (i as i32) + sum(y, dim = 1)
            left = left - 1
            steps = steps + 1
        }
        y = y + x.transpose() * (i as i32)
    }
    return y + (steps as i32)
}
kernel outside(x: &Tensor<i32, [S, S]>, n: usize, limit: i32) -> Tensor<i32, [S, S]> {
    var y = x * 1
    var total: i32 = 0
    while sum(y) % 7 > limit && total < 40 {
        for i in 0..n {
            if sum(y, dim = 0).max() % 2 == 0 { y = y @ x } else { y = cumsum(y, dim = 1) - x }
        }
        total = total + abs(y.max() % 16) + 1
        y = y.transpose() + 1
    }
    return y * total
}
kernel settled(x: &Tensor<i32, [S, S]>, low: i32) -> Tensor<i32, [S, S]> {
    var y = x % 50
    var change: i32 = 1
    while change > 0 {
        let next = max(y.transpose() - 3, low)
        change = max(abs(next - y))
        y = next
    }
    return y + change
}
"""
MAIN = """
fn main() {
    let dir = args()[0]
    let x: Tensor<i32, [S, S]> = load_npy(format("{}/x.npy", dir))
    save_npy(format("{}/bounded.npy", dir), bounded(&x))
    for n in 0..4 {
        let limit = (n as i32) * 25 - 1
        save_npy(format("{}/until{}.npy", dir, n), until(&x, limit + 900))
        save_npy(format("{}/counted{}.npy", dir, n), counted(&x, n))
        save_npy(format("{}/either{}.npy", dir, n), either(&x, limit))
        save_npy(format("{}/left{}.npy", dir, n), left(&x, n, limit))
        save_npy(format("{}/inside{}.npy", dir, n), inside(&x, n, limit))
        save_npy(format("{}/outside{}.npy", dir, n), outside(&x, n, (n as i32) - 1))
        save_npy(format("{}/settled{}.npy", dir, n), settled(&x, limit - 60))
    }
}
"""


def total(y, axis=None):
    return y.sum(axis=axis, dtype=numpy.int32)


def rest(a, b):
    """As the language's %: of the dividend's sign."""
    return int(numpy.fmod(int(a), b))


def until(x, limit):
    y = x
    while rest(total(y * y), 1000) > limit:
        y = y.T * 3 - x
    return y


def counted(x, n):
    y, k = x, 0
    while k < n and y.max() > y.min():
        y = y @ x
        k += 1
    return y + numpy.int32(k)


def either(x, limit):
    y = x @ x if rest(total(x), 2) == 0 else x.T - total(x, 0)
    return y @ y if x.max() > limit else y


def left(x, n, limit):
    y, rounds = x, 0
    for i in range(n):
        y = y @ x + numpy.int32(i)
        if y.max() > limit:
            break
        if y.min() > limit:
            continue
        y = y.T
        rounds += 1
    return y - numpy.int32(rounds)


def bounded(x):
    y, end = x, rest(x.max(), 5) + 1
    for i in range(rest(end, 2), end, abs(rest(end, 3)) + 1):
        y = y @ x - numpy.int32(i)
    return y


def inside(x, n, limit):
    y, steps = x, 0
    for i in range(n):
        budget = 5
        while rest(total(y), 100) > limit and budget > 0:
            y = y.T - numpy.int32(i) + total(y, 1)
            budget -= 1
            steps += 1
        y = y + x.T * numpy.int32(i)
    return y + numpy.int32(steps)


def outside(x, n, limit):
    y, sums = x, 0
    while rest(total(y), 7) > limit and sums < 40:
        for _ in range(n):
            even = rest(total(y, 0).max(), 2) == 0
            y = y @ x if even else numpy.cumsum(y, axis=1, dtype=numpy.int32) - x
        sums += abs(rest(y.max(), 16)) + 1
        y = y.T + numpy.int32(1)
    return y * numpy.int32(sums)


def settled(x, low):
    y, change = numpy.fmod(x, 50), 1
    while change > 0:
        last, y = y, numpy.maximum(y.T - numpy.int32(3), numpy.int32(low))
        change = abs(y - last).max()
    return y


def expected(x):
    with numpy.errstate(over="ignore"):
        values = {"bounded": bounded(x)}
        for n in range(4):
            limit = n * 25 - 1
            values |= {f"until{n}": until(x, limit + 900), f"counted{n}": counted(x, n), f"either{n}": either(x, limit),
                       f"left{n}": left(x, n, limit), f"inside{n}": inside(x, n, limit),
                       f"outside{n}": outside(x, n, n - 1), f"settled{n}": settled(x, limit - 60)}
    return values


def random(rng, size, small=False):
    x = rng.integers(0 if small else -2**31, 2 if small else 2**31, (size, size)).astype(numpy.int32)
    x[rng.random((size, size)) < 0.6] //= 2**28
    return x


@pytest.mark.parametrize("size", [1, 4, 33, 70])
def test_conditions_see_what_phases_computed(vortex, tmp_path, backend, size):
    rng = numpy.random.default_rng()
    x = random(rng, size)
    if backend == ["--check"]:  # which reports what wraps
        x = numpy.eye(size, dtype=numpy.int32)[rng.permutation(size)] * numpy.int32(0)
    numpy.save(tmp_path / "x.npy", x)
    path = tmp_path / "loops.vx"
    path.write_text(KERNELS + MAIN)
    vortex("run", path, *backend, "--", tmp_path)
    for name, values in expected(x).items():
        assert (numpy.load(tmp_path / f"{name}.npy") == values).all(), name


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "metal3.1"])
def test_gpus_have_code_for_them(vortex, tmp_path, target):
    path = tmp_path / "loops.vx"
    path.write_text(KERNELS)
    report = vortex("build", "--target", target, path, "-o", tmp_path / "out").stdout
    assert report.count("Code:") == 8, report
    assert " in 1 phase\n" not in report, report


MAIN_C = """
#include <stdio.h>
#include "out/loops.inside.h"
#include "out/loops.left.h"
#include "out/loops.bounded.h"
static int32_t x[SIZE * SIZE], y[SIZE * SIZE];
static int put(int32_t status) { return status || fwrite(y, sizeof y, 1, stdout) != 1; }
int main(void) {
  if (fread(x, sizeof x, 1, stdin) != 1) return 1;
  if (put(bounded(x, SIZE, SIZE, y))) return 2;
  for (int32_t n = 0; n < 4; ++n)
    if (put(inside(x, SIZE, SIZE, n, n * 25 - 1, y)) || put(left(x, SIZE, SIZE, n, n * 25 - 1, y))) return 3;
  return 0;
}
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_c_headers_read_what_decides(vortex, tmp_path):
    size = 21
    path = tmp_path / "loops.vx"
    path.write_text(KERNELS)
    vortex("build", path, "-o", tmp_path / "out")
    (tmp_path / "main.c").write_text(MAIN_C.replace("SIZE", str(size)))
    subprocess.run(["cc", "-Wall", "-Werror", "-o", "main", "main.c", *sorted((tmp_path / "out").glob("*.o")), "-lm"],
                   cwd=tmp_path, check=True)
    x = random(numpy.random.default_rng(), size)
    with numpy.errstate(over="ignore"):
        values = [bounded(x)]
        for n in range(4):
            values += [inside(x, n, n * 25 - 1), left(x, n, n * 25 - 1)]
    done = subprocess.run(["./main"], cwd=tmp_path, check=True, input=x.tobytes(), capture_output=True)
    assert (numpy.frombuffer(done.stdout, numpy.int32).reshape(-1, size, size) == numpy.array(values)).all()


FAULT = """
kernel fall(x: &Tensor<i32, [S, S]>, floor: i32) -> Tensor<i32, [S, S]> {
    var y = x * 1
    while y.max() > 0 {
        y = y.transpose() - 1
        assert(y.min() > floor, "below the floor")
    }
    return y
}
fn main() {
    let x: Tensor<i32, [S, S]> = load_npy(args()[0])
    print(fall(&x, FLOOR).to_host())
}
"""


@pytest.mark.parametrize("floor, fails", [("-1000", False), ("-2", True)])
def test_a_failed_assert_ends_the_loop(vortex, tmp_path, backend, floor, fails):
    x = numpy.random.default_rng().integers(0, 9, (40, 40)).astype(numpy.int32)
    x[3, 4], x[5, 6] = 0, 9
    numpy.save(tmp_path / "x.npy", x)
    path = tmp_path / "fall.vx"
    path.write_text(FAULT.replace("FLOOR", floor))
    done = vortex("run", path, *backend, "--", tmp_path / "x.npy", status=None)
    assert (done.returncode != 0) == fails, done.stderr
    assert ("below the floor" in done.stderr and "  6 |         assert(y.min()" in done.stderr) == fails, done.stderr


ENDLESS = """
kernel forever(x: &Tensor<f32, [S]>) -> Tensor<f32, [S]> {
    var y = x * 1.0
    while sum(y) > 0.0 { y = y * 1.0 }
    return y
}
fn main() { print(forever(&full(1.0f32, [5])).to_host()) }
"""


def test_a_loop_that_never_ends_is_stopped(vortex, tmp_path):
    path = tmp_path / "forever.vx"
    path.write_text(ENDLESS)
    done = vortex("run", path, "--device", "cpu", status=1)
    assert "forever.vx:4:5 comes to more than 1048576 grids" in done.stderr, done.stderr


EXTENTS = """
kernel shrinks(x: &Tensor<f32, [S, S]>, n: usize) -> Tensor<f32, [S, S]> {
    var y = x * 1.0
    var k = n
    while sum(y) > 0.0 {
        y = y @ x - sum(y[0..k, 0..k])
        k = k / 2 + (sum(y) as usize)
    }
    return y
}
"""


def test_extents_that_only_the_device_knows_are_refused_by_name(vortex, tmp_path):
    path = tmp_path / "extents.vx"
    path.write_text(EXTENTS)
    done = vortex("build", "--target", "sm_90", path, "-o", tmp_path / "out", status=1)
    assert "E0713" in done.stderr and "extents inside follow from what it computes" in done.stderr, done.stderr
