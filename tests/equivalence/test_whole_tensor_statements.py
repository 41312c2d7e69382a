"""Whole-tensor statements that share operands, axes and memory in uncommon ways: results against NumPy, and code for GPUs."""
import re

import numpy
import pytest

i32 = numpy.int32
SQUARE = "a: &Tensor<i32, [N, N]>, b: &Tensor<i32, [N, N]>, n: usize"
ROWS = "x: &Tensor<i32, [M, N]>, b: &Tensor<i32, [N, N]>, n: usize"


def column_sums(t):
    return t.sum(axis=0, keepdims=True, dtype=i32)


def rounds(n, value, step):
    for _ in range(n):
        value = step(value)
    return value


def marked(value):
    value = value.copy()
    value[0, 0] = 7
    return value


# name: (parameters, extents of the result, body, NumPy)
FORMS = {
    # The centre of a tensor is combined from parts and read with axes of its own.
    "centred": (ROWS, "[N, N]", "let d = x - x.sum(dim = 0)\nlet c = d.transpose() @ d\nvar v = b * 1\nfor i in 0..n { v = c @ v }\nreturn v",
                lambda x, b, n: rounds(n, b, lambda v: ((x - column_sums(x)).T @ (x - column_sums(x))) @ v)),
    "turned_and_not": ("a: &Tensor<i32, [N, N]>, z: &Tensor<i32, [T, N, N]>, x: &Tensor<i32, [M, N]>", "[N, N]",
                       "return a.transpose() + (a + z.sum(dim = 0)) + x.sum(dim = 0)",
                       lambda a, z, x: a.T + (a + z.sum(axis=0, dtype=i32)) + x.sum(axis=0, dtype=i32)),
    # Two products add to the same zeros.
    "fourth_power": (SQUARE, "[N, N]", "let y = a @ a\nreturn y @ y", lambda a, b, n: (a @ a) @ (a @ a)),
    "commutator": (SQUARE, "[N, N]", "return a @ b - b @ a", lambda a, b, n: a @ b - b @ a),
    "four": (SQUARE, "[N, N]", "return a @ b @ (b @ a)", lambda a, b, n: (a @ b) @ (b @ a)),
    "series": (SQUARE, "[N, N]", "let y = a @ a\nlet z = y @ a\nreturn a + y * 3 + z * 5 + z @ z", lambda a, b, n: a + (a @ a) * 3 + (a @ a @ a) * 5 + (a @ a @ a) @ (a @ a @ a)),
    "newton": (SQUARE, "[N, N]", "var y = a * 1\nfor i in 0..n {\nlet p = y @ y.transpose()\nlet q = p * 3 - p @ p\ny = y * 5 + q @ y\n}\nreturn y",
               lambda a, b, n: rounds(n, a, lambda y: y * 5 + ((y @ y.T) * 3 - (y @ y.T) @ (y @ y.T)) @ y)),
    # Loops and branches read columns of what they write.
    "columns_in_loop": (ROWS, "[M, N]", "var t = x * 1\nt[0, 0] = 7\nfor i in 0..n { t = t - t.sum(dim = 0, keepdim = true) }\nreturn t",
                        lambda x, b, n: rounds(n, marked(x), lambda t: t - column_sums(t))),
    "columns_in_branch": (ROWS, "[M, N]", "var t = x * 1\nif n > 1 { t = t - t.sum(dim = 0, keepdim = true) }\nt[0, 0] = 7\nreturn t",
                          lambda x, b, n: marked(x - column_sums(x) if n > 1 else x)),
    # A number of rows that the launch computes, before a loop with numbers of its own.
    "rows_before_loop": (ROWS, "[M, N]", "var t = x - x.max(dim = 1, keepdim = true)\nfor i in 0..n { t = t.cumsum(dim = 0) }\nt[0, 0] = 7\nreturn t",
                         lambda x, b, n: marked(rounds(n, x - x.max(axis=1, keepdims=True), lambda t: numpy.cumsum(t, axis=0, dtype=i32)))),
}


def kernel(name):
    parameters, extents, body, _ = FORMS[name]
    return f"kernel {name}({parameters}) -> Tensor<i32, {extents}> {{\n{body}\n}}\n"


@pytest.mark.parametrize("extents", [(2, 3, 1), (33, 17, 5), (1, 1, 1), (70, 130, 2)])
def test_results(vortex, tmp_path, backend, extents):
    if backend == ["--check"] and extents != (1, 1, 1):
        pytest.skip("reports what wraps")
    sizes = dict(zip("MNT", extents))
    rng = numpy.random.default_rng()
    shapes = {"a": "NN", "b": "NN", "x": "MN", "z": "TNN"}
    arrays = {name: rng.integers(-2, 3, [sizes[dim] for dim in shape]).astype(i32) for name, shape in shapes.items()}
    text, main, expected = "", "fn main() {\n    let dir = args()[0]\n", {}
    for name, shape in shapes.items():
        numpy.save(tmp_path / f"{name}.npy", arrays[name])
        main += f'    let {name}: Tensor<i32, [{", ".join(shape)}]> = load_npy(format("{{}}/{name}.npy", dir))\n'
    for name, (parameters, _, _, function) in FORMS.items():
        text += kernel(name)
        words = [word.split(":")[0] for word in parameters.split(", ") if ":" in word]
        for n in (0, 1, 3) if "n" in words else (0,):
            call = ", ".join(str(n) if word == "n" else f"&{word}" for word in words)
            main += f'    save_npy(format("{{}}/{name}{n}.npy", dir), {name}({call}))\n'
            with numpy.errstate(over="ignore"):
                expected[f"{name}{n}"] = function(*(n if word == "n" else arrays[word] for word in words))
    path = tmp_path / "statements.vx"
    path.write_text(text + main + "}\n")
    vortex("run", path, *backend, "--", tmp_path)
    for name, values in expected.items():
        assert (numpy.load(tmp_path / f"{name}.npy") == values).all(), name


@pytest.mark.parametrize("kind", ["i32", "f32", "f16"])
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_gpus_have_code_for_them(vortex, tmp_path, target, kind):
    path = tmp_path / "statements.vx"
    text = "".join(map(kernel, FORMS)).replace("i32", kind)
    path.write_text(text if kind == "i32" else text.replace(" 1\n", " 1.0\n").replace("* 3", "* 3.0").replace("* 5", "* 5.0").replace("= 7", "= 7.0"))
    vortex("build", path, "--target", target, "--emit", "vxt", "-o", tmp_path / "out")


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
@pytest.mark.parametrize("name", ["fourth_power", "commutator", "four", "newton"])
def test_products_are_spread_over_blocks(vortex, tmp_path, name, target):
    path = tmp_path / "statements.vx"
    path.write_text(kernel(name).replace("i32", "f32").replace(" 1\n", " 1.0\n").replace("* 3", "* 3.0").replace("* 5", "* 5.0"))
    plan = vortex("build", path, "--target", target, "--dump-after", "plan", "--emit", "ir", "--no-cache").stderr
    assert "compute dot" in plan and not re.search("serial: [^;]*dot", plan)


def nested(depth):
    body = "a = a - 1\n"
    for i in range(depth):
        body = f"while sum(a) > {i} {{\n{body}}}\n"
    return f"kernel k(x: &Tensor<i32, [M, N]>) -> Tensor<i32, [M, N]> {{\nvar a = x * 1\n{body}return a\n}}\n"


@pytest.mark.parametrize("target", ["cpu", "sm_90", "metal3.1"])
def test_loops_nest_up_to_a_limit(vortex, tmp_path, target):
    path = tmp_path / "nested.vx"
    path.write_text(nested(15))
    vortex("build", path, "--target", target, "--emit", "ir", "-o", tmp_path / "out")
    path.write_text(nested(16))
    refused = vortex("build", path, "--target", target, "-o", tmp_path / "out", status=1).stderr
    assert "E0713" in refused and "31 levels" in refused, refused
