"""Statements that read the one before twice, at different places: results against NumPy, and work that grows as the program does."""
import re

import numpy
import pytest

N = 24


def turned(count):
    statements = "".join(f"    let a{i + 1} = a{i} + a{i}.transpose() * {i + 2}\n" for i in range(count))
    return f"    let a0 = x * 3\n{statements}    return a{count}\n", "[N, N]"


def shifted(count):
    ends = "".join(f"    let a{i + 1} = a{i}[0..{N - 1 - i}, 0..N] * 3 + a{i}[1..{N - i}, 0..N]\n" for i in range(count))
    return f"    let a0 = x[0..{N}, 0..N] + 1\n{ends}    return a{count} + 0\n", f"[{N - count}, N]"


def summed(count):
    statements = "".join(f"    let a{i + 1} = a{i} * a{i}.sum() + a{i}\n" for i in range(count))
    return f"    let a0 = x * 3\n{statements}    return a{count}\n", "[N, N]"


def centred(count):
    statements = "".join(f"    let a{i + 1} = a{i}.transpose() - a{i}.sum(dim = {i % 2}, keepdim = true) * 3\n" for i in range(count))
    return f"    let a0 = x * 3\n{statements}    return a{count}\n", "[N, N]"


def in_rounds(count):
    statements = "".join(f"        let a{i + 1} = a{i} + a{i}.transpose() * {i + 2}\n" for i in range(count))
    return f"    var y = x * 3\n    for i in 0..n {{\n        let a0 = y + i as i32\n{statements}        y = a{count} - x\n    }}\n    return y\n", "[N, N]"


FORMS = {"turned": turned, "shifted": shifted, "summed": summed, "centred": centred, "in_rounds": in_rounds}


def expected(name, x, count, n):
    if name == "in_rounds":
        y = x * 3
        for i in range(n):
            a = y + i
            for k in range(count):
                a = a + a.T * (k + 2)
            y = a - x
        return y
    a = x[:N] + 1 if name == "shifted" else x * 3
    for i in range(count):
        if name == "turned":
            a = a + a.T * (i + 2)
        elif name == "shifted":
            a = a[:-1] * 3 + a[1:]
        elif name == "summed":
            a = a * a.sum(dtype=numpy.int32) + a
        else:
            a = a.T - a.sum(axis=i % 2, keepdims=True, dtype=numpy.int32) * 3
    return a


def kernel(name, count):
    body, shape = FORMS[name](count)
    return f"kernel k(x: &Tensor<i32, [N, N]>, n: usize) -> Tensor<i32, {shape}> {{\n{body}}}\n", shape


@pytest.mark.parametrize("count", [3, 12, 20])
@pytest.mark.parametrize("name", FORMS)
def test_results(vortex, tmp_path, backend, name, count):
    if backend == ["--check"] and (count > 3 or name == "summed"):
        pytest.skip("reports what wraps")
    x = numpy.random.default_rng(count).integers(-3, 4, (40, 40) if name != "shifted" else (N, N)).astype(numpy.int32)
    numpy.save(tmp_path / "x.npy", x)
    text, shape = kernel(name, count)
    text += f"""fn main() {{
    let dir = args()[0]
    let x: Tensor<i32, [N, N]> = load_npy(format("{{}}/x.npy", dir))
    save_npy(format("{{}}/y.npy", dir), k(&x, 2))
}}
"""
    path = tmp_path / "chain.vx"
    path.write_text(text)
    vortex("run", path, *backend, "--", tmp_path)
    with numpy.errstate(over="ignore"):
        assert (numpy.load(tmp_path / "y.npy") == expected(name, x, count, 2)).all()


def operations(vortex, tmp_path, name, count, target):
    path = tmp_path / f"{name}{count}.vx"
    path.write_text(kernel(name, count)[0])
    dumped = vortex("build", path, "--target", target, "--dump-after", "schedule", "--no-cache", "--emit", "ir").stderr
    return len(re.findall(r"^ *(?:%|vx\.)", dumped, re.M))


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
@pytest.mark.parametrize("name", FORMS)
def test_twice_the_statements_are_about_twice_the_work(vortex, tmp_path, name, target):
    few, many = (operations(vortex, tmp_path, name, count, target) for count in (10, 20))
    assert many < 3 * few, (few, many)
