"""Loops over elements that run as grids of threads, also inside loops and branches that the launch runs, against NumPy."""
import re

import numpy
import pytest

# name: (parameters besides n and on, statements, what they do to NumPy arrays). Of shapes a, d [N, N], x, y [N], data, roots [N].
KERNELS = {
    "solve_lower": ("a: &Tensor<f64, [N, N]>, x: &mut Tensor<f64, [N]>", """
    for j in 0..N {
        x[j] = x[j] / a[j, j]
        @parallel for i in j + 1..N { x[i] = x[i] - a[i, j] * x[j] }
    }"""),
    "decompose": ("a: &mut Tensor<f64, [N, N]>", """
    for k in 0..N {
        @parallel for i in k + 1..N { a[i, k] = a[i, k] / a[k, k] }
        @parallel for i in k + 1..N { @parallel for j in k + 1..N { a[i, j] = a[i, j] - a[i, k] * a[k, j] } }
    }"""),
    "floyd_warshall": ("d: &mut Tensor<i32, [N, N]>", """
    for k in 0..N {
        @parallel for i in 0..N { for j in 0..N { if i != k && j != k { d[i, j] = min(d[i, j], d[i, k] + d[k, j]) } } }
    }"""),
    "jacobi": ("a: &Tensor<f64, [N, N]>, b: &Tensor<f64, [N]>, x: &mut Tensor<f64, [N]>, y: &mut Tensor<f64, [N]>", """
    for t in 0..n {
        @parallel for i in 0..N {
            var sum = b[i]
            for j in 0..N { if i != j { sum -= a[i, j] * x[j] } }
            y[i] = sum / a[i, i]
        }
        @parallel for i in 0..N { x[i] = y[i] }
    }"""),
    "butterflies": ("x: &mut Tensor<i32, [N]>", """
    var h = N / 2
    while h > 0 {
        @parallel for i in 0..N / 2 {
            let j = (i / h) * 2 * h + i % h
            if j + h < N {
                let u = x[j]
                x[j] = u + x[j + h]
                x[j + h] = (u - x[j + h]) * 3
            }
        }
        h = h / 2
    }"""),
    "under_branch": ("x: &mut Tensor<i32, [N]>, y: &mut Tensor<i32, [N]>", """
    if on { for i in 0..N { x[i] = x[i] + y[i] } } else { for i in 0..N { y[i] = x[i] * 2 } }
    for t in 0..n { if t % 2 == 0 { @parallel for i in 0..N { x[i] = x[i] - y[N - 1 - i] } } else { y[0] = y[0] + 1 } }"""),
    "beside_tensors": ("x: &mut Tensor<i32, [N]>, y: &mut Tensor<i32, [N]>", """
    let z = x * 2
    for i in 0..N { y[i] = z[N - 1 - i] + y[i] }
    for t in 0..n {
        x[0..N] = x[0..N] + y[0..N]
        @parallel for i in 0..N { y[i] = x[i] - z[i] }
    }
    y[0..N] = y[0..N] + z"""),
    "steps_of_two": ("x: &mut Tensor<i32, [N]>", """
    for t in 0..n { @parallel for i in range(t, N, 2) { x[i] = x[i] + i as i32 } }
    @parallel for i in range(0, N, 3) { if x[i] > 0 { continue } x[i] = 7 }"""),
    "bounds_from_data": ("x: &mut Tensor<i32, [N]>, y: &mut Tensor<i32, [N]>", """
    for t in 0..n {
        y[t] = t as i32 + y[t] / 2
        @parallel for i in 0..min(abs(y[t]) as usize, N) { x[i] = x[i] * 2 + 1 }
    }"""),
    "carried": ("x: &mut Tensor<i32, [N]>, y: &mut Tensor<i32, [N]>", """
    var s: i32 = 1
    var k: usize = 0
    for t in 0..n {
        @parallel for i in 0..N { x[i] = x[i] - s * (k as i32 + 1) }
        s = (s + x[0]) % 100
        k = k + 2
    }
    y[0] = s
    y[1] = k as i32"""),
    "until": ("x: &mut Tensor<i32, [N]>, y: &mut Tensor<i32, [N]>", """
    y[0] = n as i32
    while y[0] > 0 {
        @parallel for i in 1..N { x[i] = x[i] + y[0] }
        y[0] = y[0] - 1
    }"""),
    "three_deep": ("a: &mut Tensor<f64, [N, N]>, b: &Tensor<f64, [N]>", """
    for t in 0..n { @parallel for i in 0..N { @parallel for j in i..N { a[i, j] = a[i, j] + b[j] } } }"""),
    "narrow_counter": ("x: &mut Tensor<i32, [N]>", """
    var h = N as u32
    while h > 0 {
        @parallel for i in 0..h { x[i as usize] = x[i as usize] + 1 }
        h = h / 2
    }"""),
    "leaves": ("x: &mut Tensor<i32, [N]>, y: &mut Tensor<i32, [N]>", """
    for t in 0..n {
        if x[0] > y[0] { break }
        @parallel for i in 0..N { x[i] = x[i] + t as i32 }
        if t == 3 { return }
        @parallel for i in range(N as i64 - 1, 0, -1) { y[i as usize] = x[i as usize] + 1 }
    }"""),
    "scatter": ("x: &Tensor<i32, [N]>, y: &mut Tensor<i32, [N]>", "@parallel for i in 0..N { y[(i + n) % N] = x[i] }"),
}


def evaluate(name, v, n, on, size):
    """Of arrays by name, in place."""
    a, d, b, x, y = (v.get(key) for key in "adbxy")
    if name == "solve_lower":
        x[:] = numpy.linalg.solve(numpy.tril(a), x)
    elif name == "decompose":
        for k in range(size):
            a[k + 1:, k] /= a[k, k]
            a[k + 1:, k + 1:] -= numpy.outer(a[k + 1:, k], a[k, k + 1:])
    elif name == "floyd_warshall":
        for k in range(size):
            d[:] = numpy.minimum(d, d[:, k, None] + d[k])
    elif name == "jacobi":
        for _ in range(n):
            y[:] = (b - (a - numpy.diag(numpy.diag(a))) @ x) / numpy.diag(a)
            x[:] = y
    elif name == "butterflies":
        h = size // 2
        while h > 0:
            i = numpy.arange(size // 2)
            j = (i // h) * 2 * h + i % h
            j = j[j + h < size]
            u, w = x[j], x[j + h]
            x[j], x[j + h] = u + w, (u - w) * 3
            h //= 2
    elif name == "under_branch":
        if on:
            x += y
        else:
            y[:] = x * 2
        for t in range(n):
            if t % 2 == 0:
                x -= y[::-1]
            else:
                y[0] += 1
    elif name == "beside_tensors":
        z = x * 2
        y += z[::-1]
        for _ in range(n):
            x += y
            y[:] = x - z
        y += z
    elif name == "steps_of_two":
        for t in range(n):
            x[t::2] += numpy.arange(size, dtype=x.dtype)[t::2]
        part = x[::3]
        part[part <= 0] = 7
    elif name == "bounds_from_data":
        for t in range(n):
            y[t] = t + int(y[t] / 2)
            end = min(abs(int(y[t])), size)
            x[:end] = x[:end] * 2 + 1
    elif name == "carried":
        s, k = x.dtype.type(1), 0
        for _ in range(n):
            x[:] = x - s * x.dtype.type(k + 1)
            s, k = numpy.fmod(s + x[0], x.dtype.type(100)), k + 2
        y[0], y[1] = s, k
    elif name == "until":
        y[0] = n
        while y[0] > 0:
            x[1:] += y[0]
            y[0] -= 1
    elif name == "three_deep":
        for _ in range(n):
            a += numpy.triu(numpy.broadcast_to(b, a.shape))
    elif name == "narrow_counter":
        h = size
        while h > 0:
            x[:h] += 1
            h //= 2
    elif name == "leaves":
        for t in range(n):
            if x[0] > y[0]:
                break
            x += t
            if t == 3:
                return
            y[1:] = x[1:] + 1
    elif name == "scatter":
        y[:] = numpy.roll(x, n)


def program(names):
    kernels, calls = "", ""
    for name in names:
        parameters, statements = KERNELS[name]
        kernels += f"kernel {name}({parameters}, n: usize, on: bool) {{\n{statements}\n}}\n"
        tensors = re.findall(r"(\w): (&mut |&)Tensor(<.*?>)", parameters)
        calls += "        {\n"
        for tensor, _, kind in tensors:
            calls += f'            var {tensor}: Tensor{kind} = load_npy(format("{{}}/{name}_{tensor}.npy", dir))\n'
        calls += f"            {name}({', '.join(ref + tensor for tensor, ref, _ in tensors)}, n, n % 2 == 1)\n"
        for tensor, ref, _ in tensors:
            if ref == "&mut ":
                calls += f'            save_npy(format("{{}}/{name}{{}}_{tensor}.npy", dir, n), {tensor})\n'
        calls += "        }\n"
    return f"{kernels}fn main() {{\n    let dir = args()[0]\n    for n in [0, 1, 2, 5] {{\n{calls}    }}\n}}\n"


def data(name, size, rng):
    parameters = KERNELS[name][0]
    values = {}
    for key in "adbxy":
        if f"{key}: &" not in parameters:
            continue
        shape = (size, size) if key in "ad" else (size,)
        if "f64" in parameters:
            values[key] = rng.standard_normal(shape)
            if key == "a":
                values[key] += numpy.eye(size) * 4 * size
        elif key == "d":
            values[key] = rng.integers(1, 1000, shape).astype(numpy.int32)
            numpy.fill_diagonal(values[key], 0)
        else:
            values[key] = rng.integers(-9, 10, shape).astype(numpy.int32)
    return values


def check(vortex, tmp_path, words, size, names):
    rng = numpy.random.default_rng()
    inputs = {name: data(name, size, rng) for name in names}
    for name, values in inputs.items():
        for key, value in values.items():
            numpy.save(tmp_path / f"{name}_{key}.npy", value)
    path = tmp_path / "loops.vx"
    path.write_text(program(names))
    vortex("run", path, *words, "--", tmp_path)
    for name, values in inputs.items():
        for n in (0, 1, 2, 5):
            expected = {key: value.copy() for key, value in values.items()}
            with numpy.errstate(over="ignore"):
                evaluate(name, expected, n, n % 2 == 1, size)
            for key, value in expected.items():
                saved = tmp_path / f"{name}{n}_{key}.npy"
                if not saved.exists():
                    continue
                if value.dtype == numpy.int32:
                    numpy.testing.assert_array_equal(numpy.load(saved), value, err_msg=f"{name} {n} {key}")
                else:
                    numpy.testing.assert_allclose(numpy.load(saved), value, rtol=1e-9, atol=1e-9, err_msg=f"{name} {n} {key}")


@pytest.mark.parametrize("size", [6, 37, 300])
def test_loops_as_grids(vortex, tmp_path, backend, size):
    if size > 100 and backend in (["--check"], ["--device", "interpreter"]):
        pytest.skip("takes long")
    check(vortex, tmp_path, backend, size, list(KERNELS))


def test_printed_metal_runs_them(vortex, tmp_path):
    check(vortex, tmp_path, ["--device", "metal3.1"], 37, [name for name in KERNELS if "f64" not in KERNELS[name][0]])


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "metal3.1"])
def test_gpus_run_each_loop_as_a_grid(vortex, tmp_path, target):
    path = tmp_path / "loops.vx"
    path.write_text(program([name for name in KERNELS if target != "metal3.1" or "f64" not in KERNELS[name][0]]))
    vortex("build", path, "--target", target, "-o", tmp_path / "out")
    text = vortex("build", path, "--target", target, "--emit", "ir").stdout
    counts = {name: text.count(f"vx.phase @{name}.iterate.") for name in KERNELS}
    expected = dict.fromkeys(KERNELS, 1) | {"decompose": 2, "jacobi": 2, "under_branch": 3, "beside_tensors": 2, "steps_of_two": 2, "leaves": 2}
    assert counts == {name: expected[name] if f"@{name} " in text else 0 for name in KERNELS}
