"""Loops and branches around whole tensors whose elements depend on each other, against NumPy."""
import itertools
import random
import shutil
import subprocess

import numpy
import pytest

KERNELS = """
kernel square(x: &Tensor<KIND, [S, S]>, n: usize) -> Tensor<KIND, [S, S]> {
    var y = x * ONE
    for i in 0..n { y = y @ y + x }
    return y
}
kernel chain(x: &Tensor<KIND, [S, S]>, n: usize) -> Tensor<KIND, [S, S]> {
    var y = x * ONE
    for i in 0..n { y = y @ x }
    return y
}
kernel exchange(x: &Tensor<KIND, [S, S]>, h: usize) -> Tensor<KIND, [S, S]> {
    var a = x * ONE
    var b = x * TWO
    var k = h
    while k > 0 {
        let c = a.transpose() - b
        a = b
        b = c
        if k % 2 == 1 { b = b + a.transpose() }
        k = k / 2
    }
    return a - b
}
kernel nested(x: &Tensor<KIND, [S, S]>, n: usize) -> Tensor<KIND, [S, S]> {
    var y = x * ONE
    var count: usize = 0
    for i in 0..n {
        for j in 0..i {
            y = y.transpose() + sum(y, dim = 0)
            count = count + j
        }
        y = y - (count as KIND)
    }
    return y
}
kernel floyd(x: &Tensor<KIND, [S, S]>) -> Tensor<KIND, [S, S]> {
    var d = x * ONE
    for k in 0..S { d = min(d, d[0..S, k..k+1] + d[k..k+1, 0..S]) }
    return d
}
kernel scans(x: &Tensor<KIND, [S, S]>, n: usize, on: bool) -> Tensor<KIND, [S, S]> {
    var y = x * ONE
    for i in 0..n { y = cumsum(y, dim = 1) - x }
    if on { y = y @ x }
    return y
}
"""
MAIN = """
fn main() {
    let dir = args()[0]
    let x: Tensor<KIND, [S, S]> = load_npy(format("{}/x.npy", dir))
    save_npy(format("{}/floyd.npy", dir), floyd(&x))
    for n in 0..5 {
        save_npy(format("{}/square{}.npy", dir, n), square(&x, n))
        save_npy(format("{}/chain{}.npy", dir, n), chain(&x, n))
        save_npy(format("{}/exchange{}.npy", dir, n), exchange(&x, n))
        save_npy(format("{}/nested{}.npy", dir, n), nested(&x, n))
        save_npy(format("{}/scans{}.npy", dir, n), scans(&x, n, n % 2 == 0))
    }
}
"""


def square(x, n):
    y = x
    for _ in range(n):
        y = y @ y + x
    return y


def chain(x, n):
    y = x
    for _ in range(n):
        y = y @ x
    return y


def exchange(x, k):
    a, b = x, x * 2
    while k > 0:
        a, b = b, a.T - b
        if k % 2 == 1:
            b = b + a.T
        k //= 2
    return a - b


def nested(x, n):
    y, count = x, 0
    for i in range(n):
        for j in range(i):
            y = y.T + y.sum(axis=0, dtype=x.dtype)
            count += j
        y = y - x.dtype.type(count)
    return y


def floyd(x):
    d = x
    for k in range(len(x)):
        d = numpy.minimum(d, d[:, k:k + 1] + d[k:k + 1, :])
    return d


def scans(x, n):
    y = x
    for _ in range(n):
        y = numpy.cumsum(y, axis=1, dtype=x.dtype) - x
    return y @ x if n % 2 == 0 else y


def program(kind, main=True):
    text = (KERNELS + (MAIN if main else "")).replace("KIND", kind)
    return text.replace("ONE", "1.0" if kind == "f32" else "1").replace("TWO", "2.0" if kind == "f32" else "2")


@pytest.mark.parametrize("size", [1, 5, 33, 64])
def test_rounds_see_what_the_round_before_left(vortex, tmp_path, backend, size):
    rng = numpy.random.default_rng()
    x = rng.integers(-2**31, 2**31, (size, size)).astype(numpy.int32)  # sums wrap, the same way everywhere
    x[rng.random((size, size)) < 0.5] //= 2**24
    if backend == ["--check"]:  # which reports what wraps
        x = numpy.eye(size, dtype=numpy.int32)[rng.permutation(size)]
    numpy.save(tmp_path / "x.npy", x)
    path = tmp_path / "loops.vx"
    path.write_text(program("i32"))
    vortex("run", path, *backend, "--", tmp_path)
    with numpy.errstate(over="ignore"):
        expected = {"floyd": floyd(x)}
        for n in range(5):
            expected |= {f"square{n}": square(x, n), f"chain{n}": chain(x, n), f"exchange{n}": exchange(x, n),
                         f"nested{n}": nested(x, n), f"scans{n}": scans(x, n)}
    for name, values in expected.items():
        assert (numpy.load(tmp_path / f"{name}.npy") == values).all(), name


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("kind", ["i32", "f32"])
def test_gpus_have_code_for_them(vortex, tmp_path, kind, target):
    path = tmp_path / "loops.vx"
    path.write_text(program(kind, main=False))
    versions = "all" if target == "sm_90" else "usual"  # what lies anyhow is the same code on both
    report = vortex("build", "--target", target, path, "--versions", versions, "-o", tmp_path / "out").stdout
    assert report.count("Code:") == 6, report
    assert " in 1 phase\n" not in report, report


PAGES = """
kernel newest(pages: &Tensor<f32, [P, H, D]>, table: &Tensor<u32, [B, N]>, lengths: &Tensor<u32, [B]>) -> Tensor<f32, [B, H, D]> {
    var out: Tensor<f32, [B, H, D]>
    for seq in 0..B {
        var acc: Tensor<f32, [H, D]> = zeros()
        for i in 0..lengths[seq] as usize {
            let page = pages[table[seq, i] as usize, :, :]
            acc = acc * 0.5 + page * page.max(dim = -1, keepdim = true)
        }
        out[seq, :, :] = acc
    }
    return out
}
"""
PAGES_MAIN = """
fn main() {
    let dir = args()[0]
    let pages: Tensor<f32, [P, H, D]> = load_npy(format("{}/pages.npy", dir))
    let table: Tensor<u32, [B, N]> = load_npy(format("{}/table.npy", dir))
    let lengths: Tensor<u32, [B]> = load_npy(format("{}/lengths.npy", dir))
    save_npy(format("{}/out.npy", dir), newest(&pages, &table, &lengths))
}
"""


def test_loops_as_long_as_a_tensor_says_stand_in_loops_over_its_elements(vortex, tmp_path, backend):
    rng = numpy.random.default_rng()
    pages = rng.integers(-4, 5, (7, 3, 40)).astype(numpy.float32)
    table, lengths = rng.integers(0, 7, (4, 5)).astype(numpy.uint32), rng.permutation([0, 1, 3, 5]).astype(numpy.uint32)
    for name, array in (("pages", pages), ("table", table), ("lengths", lengths)):
        numpy.save(tmp_path / f"{name}.npy", array)
    path = tmp_path / "newest.vx"
    path.write_text(PAGES + PAGES_MAIN)
    vortex("run", path, *backend, "--", tmp_path)
    expected = numpy.zeros((4, 3, 40), numpy.float32)
    for seq, length in enumerate(lengths):
        for page in pages[table[seq, :length]]:
            expected[seq] = expected[seq] * 0.5 + page * page.max(-1, keepdims=True)
    assert (numpy.load(tmp_path / "out.npy") == expected).all()


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_gpus_have_code_for_loops_inside_that_no_block_has_room_for(vortex, tmp_path, target):
    path = tmp_path / "newest.vx"
    path.write_text(PAGES)
    report = vortex("build", "--target", target, path, "-o", tmp_path / "out").stdout
    assert "Code:" in report and " in 1 phase\n" not in report, report


LIMIT = """
kernel square(x: &Tensor<i32, [S, S]>, n: usize) -> Tensor<i32, [S, S]> {
    var y = x * 1
    for i in 0..n { y = y @ y }
    return y
}
fn main() {
    let x: Tensor<i32, [S, S]> = load_npy(args()[0])
    print(square(&x, NUMBER).to_host())
}
"""


@pytest.mark.parametrize("number, error", [("0", None), ("3", None), ("1048576", True), ("9223372036854775807", True)])
def test_loops_of_too_many_launches_are_refused_by_name(vortex, tmp_path, number, error):
    numpy.save(tmp_path / "x.npy", numpy.eye(3, dtype=numpy.int32))
    path = tmp_path / "limit.vx"
    path.write_text(LIMIT.replace("NUMBER", number))
    done = vortex("run", path, "--device", "cpu", "--", tmp_path / "x.npy", status=1 if error else 0)
    if error:
        assert "limit.vx:4:5 comes to more than 1048576 grids" in done.stderr, done.stderr


KINDS = {"i64": (-2**63, 2**63 - 1), "u64": (0, 2**64 - 1), "u8": (0, 255)}


def far_ranges(kind, rng):
    """Few rounds between bounds of any size."""
    low, high = KINDS[kind]
    while True:
        begin, end = (rng.choice([low + rng.randrange(4), high - rng.randrange(4), rng.randrange(9), (low + high) // 2 + rng.randrange(3)]) for _ in range(2))
        rounds = rng.randrange(1, 6)
        step = (end - begin) // rounds + rng.randrange(-1, 3)
        if low <= step <= high and step and abs(end - begin) // abs(step) < 20:
            yield begin, end, step


def test_steps_of_any_size_count_as_their_types_do(vortex, tmp_path, backend):
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    kernels, calls, expected = "", "", []
    number = lambda value, kind: f"({value + 1}{kind} - 1{kind})" if value == -2**63 else f"{value}{kind}"
    for kind in KINDS:
        kernels += f"""@unchecked(overflow)
kernel of_{kind}(x: &Tensor<i64, [1]>, a: {kind}, b: {kind}, s: {kind}) -> Tensor<i64, [1]> {{
    var y = x * 1
    for i in range(a, b, s) {{ y = y * 3 + (i as i64) }}
    return y
}}
"""
        for begin, end, step in itertools.islice(far_ranges(kind, rng), 12):
            calls += f"    print(of_{kind}(&x, {', '.join(number(each, kind) for each in (begin, end, step))}).to_host()[0])\n"
            total = 1
            for i in range(begin, end, step):
                total = total * 3 + i
            expected.append(((total + 2**63) % 2**64 - 2**63, kind, begin, end, step))
    path = tmp_path / "steps.vx"
    path.write_text(f"{kernels}fn main() {{\n    let x = Tensor.from_host(vec![1i64])\n{calls}}}\n")
    found = vortex("run", path, *backend).stdout.split()
    assert len(found) == len(expected)
    for value, each in zip(found, expected):
        assert int(value) == each[0], (seed, each)


MAIN_C = """
#include <stdio.h>
#include "out/loops.exchange.h"
#include "out/loops.nested.h"
#include "out/loops.floyd.h"
#include "out/loops.scans.h"
static int32_t x[SIZE * SIZE], y[SIZE * SIZE];
static int put(int32_t status) { return status || fwrite(y, sizeof y, 1, stdout) != 1; }
int main(void) {
  if (fread(x, sizeof x, 1, stdin) != 1) return 1;
  if (put(floyd(x, SIZE, SIZE, y))) return 2;
  for (uint64_t n = 0; n < 4; ++n)
    if (put(exchange(x, SIZE, SIZE, n, y)) || put(nested(x, SIZE, SIZE, n, y)) || put(scans(x, SIZE, SIZE, n, n % 2 == 0, y))) return 3;
  return 0;
}
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_c_headers_print_them_as_loops(vortex, tmp_path):
    size = 23
    path = tmp_path / "loops.vx"
    path.write_text(program("i32", main=False))
    vortex("build", path, "-o", tmp_path / "out")
    (tmp_path / "main.c").write_text(MAIN_C.replace("SIZE", str(size)))
    subprocess.run(["cc", "-Wall", "-Werror", "-o", "main", "main.c", *sorted((tmp_path / "out").glob("*.o")), "-lm"], cwd=tmp_path, check=True)
    x = numpy.random.default_rng().integers(-2**31, 2**31, (size, size)).astype(numpy.int32)
    with numpy.errstate(over="ignore"):
        expected = [floyd(x)]
        for n in range(4):
            expected += [exchange(x, n), nested(x, n), scans(x, n)]
    done = subprocess.run(["./main"], cwd=tmp_path, check=True, input=x.tobytes(), capture_output=True)
    assert (numpy.frombuffer(done.stdout, numpy.int32).reshape(-1, size, size) == numpy.array(expected)).all()
