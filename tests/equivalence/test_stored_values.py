"""Computed tensors that whole-tensor kernels write by element and return, against NumPy."""
import numpy
import pytest

# name: (statements over t [N], n and on; the result's type; what NumPy makes of a copy of t)
FORMS = {
    "elements": ("var u = t * 2\nu[0] = 7\nu[N - 1] += 5\nreturn u", "Tensor<i32, [N]>", lambda t, n, on: put(put(t * 2, 0, 1, 7), -1, None, t[-1:] * 2 + 5)),
    "slice": ("var u = t + 0\nu[1..N - 1] = t[0..N - 2] + t[2..N]\nreturn u", "Tensor<i32, [N]>", lambda t, n, on: put(t.copy(), 1, -1, t[:-2] + t[2:])),
    "in_place": ("var u = t + 0\nfor i in 0..n { u[1..N] = u[0..N - 1] + u[1..N] }\nreturn u", "Tensor<i32, [N]>",
                 lambda t, n, on: rounds(n, t, lambda u: put(u.copy(), 1, None, u[:-1] + u[1:]))),
    "copied_before": ("var u = t + 0\nlet v = u\nu[0] = 100\nu = u * 2\nu[1] = 3\nu = u + v\nreturn u", "Tensor<i32, [N]>",
                      lambda t, n, on: t + put(put(t.copy(), 0, 1, 100) * 2, 1, 2, 3)),
    "two_results": ("var a = t * 2\nvar b = t as f32\na[0] = 1\nb[1..N] = full(0.5f32, [N - 1])\nreturn (a, b)", "(Tensor<i32, [N]>, Tensor<f32, [N]>)",
                    lambda t, n, on: (put(t * 2, 0, 1, 1), put(t.astype(numpy.float32), 1, None, 0.5))),
    "parallel": ("var u = t * 0\n@parallel for i in 0..N { u[i] = t[i] * 2 }\nreturn u", "Tensor<i32, [N]>", lambda t, n, on: t * 2),
    "branch": ("var u = t + 0\nif on { u[0..N - 1] = t[1..N] }\nreturn u", "Tensor<i32, [N]>", lambda t, n, on: put(t.copy(), 0, -1, t[1:]) if on else t),
    "only_named": ("var u = t + 1\nif on {\nlet u = t * 5\nreturn u\n}\nu[0] = 3\nreturn u", "Tensor<i32, [N]>", lambda t, n, on: t * 5 if on else put(t + 1, 0, 1, 3)),
}
REFUSED = {
    "one_of_two": "var a = t * 2\nvar b = t * 3\na[0] = 1\nb[0] = 2\nif on { return a }\nreturn b",
    "one_of_two_with_types": "var a: Tensor<i32, [N]> = t * 2\nvar b: Tensor<i32, [N]> = t * 3\na[0] = 1\nb[0] = 2\nif on { return a }\nreturn b",
}


def put(array, first, end, values):
    array[first:end] = values
    return array


def rounds(n, array, body):
    for _ in range(n):
        array = body(array)
    return array


def program():
    kernels = "".join(f"kernel {name}(t: &Tensor<i32, [N]>, n: usize, on: bool) -> {result} {{\n{body}\n}}\n" for name, (body, result, _) in FORMS.items())
    calls = "".join(f"{{\nlet {'(r, s)' if result[0] == '(' else 'r'} = {name}(&t, n, n == 1)\nsave_npy(format(\"{{}}/{name}{{}}.npy\", dir, n), r)\n"
                    + (f"save_npy(format(\"{{}}/{name}_second{{}}.npy\", dir, n), s)\n" if result[0] == "(" else "") + "}\n"
                    for name, (_, result, _) in FORMS.items())
    return f"""{kernels}fn main() {{
    let dir = args()[0]
    let t: Tensor<i32, [N]> = load_npy(format("{{}}/t.npy", dir))
    for n in 0..3 {{
        {calls}
    }}
}}
"""


@pytest.mark.parametrize("size", [9, 3001])
def test_they_are_what_numpy_makes_of_them(vortex, tmp_path, backend, size):
    if size > 1000 and backend in (["--check"], ["--device", "interpreter"]):
        pytest.skip("the interpreter takes long")
    t = numpy.random.default_rng().integers(0, 100, size).astype(numpy.int32)
    numpy.save(tmp_path / "t.npy", t)
    path = tmp_path / "stored.vx"
    path.write_text(program())
    vortex("run", path, *backend, "--", tmp_path)
    for name, (_, result, evaluate) in FORMS.items():
        for n in range(3):
            expected = evaluate(t, n, n == 1)
            for each, array in zip([name, f"{name}_second"], expected if result[0] == "(" else [expected]):
                numpy.testing.assert_array_equal(numpy.load(tmp_path / f"{each}{n}.npy"), array, err_msg=f"{each} {n}")


@pytest.mark.parametrize("target", ["sm_90", "metal3.1"])
def test_gpus_have_code_for_them(vortex, tmp_path, target):
    path = tmp_path / "stored.vx"
    path.write_text("".join(f"kernel {name}(t: &Tensor<i32, [N]>, n: usize, on: bool) -> {FORMS[name][1]} {{\n{FORMS[name][0]}\n}}\n"
                            for name in ("slice", "in_place", "two_results")))
    vortex("build", path, "--target", target, "-o", tmp_path / "out")


@pytest.mark.parametrize("name", REFUSED)
def test_two_tensors_are_not_one_result(vortex, tmp_path, name):
    path = tmp_path / "stored.vx"
    path.write_text(f"kernel k(t: &Tensor<i32, [N]>, on: bool) -> Tensor<i32, [N]> {{\n{REFUSED[name]}\n}}\n")
    assert "returned as one result" in vortex("build", path, "-o", tmp_path, status=1).stderr


OTHERS = """kernel k(x: &Tensor<i32, [N]>) -> Tensor<i32, [N]> {
    var s = x * 0
    for i in 0..3 {
        var u = x + 1
        s = s + u
    }
    var u = s * 2
    u[1..N - 1] = s[0..N - 2]
    return u
}

kernel typed(x: &Tensor<i32, [N]>) -> Tensor<i32, [N]> {
    var s = x * 0
    {
        var u: Tensor<i32, [N]>
        u = x + 5
        s = u * 3
    }
    var u: Tensor<i32, [N]>
    u[1..N] = s[0..N - 1]
    return u
}

fn main() {
    let x = Tensor.from_host(vec![4, 5, 6, 7, 8])
    assert_eq(k(&x).to_host(), vec![30, 15, 18, 21, 54])
    assert_eq(typed(&x).to_host(), vec![0, 27, 30, 33, 36])
}
"""


def test_another_variable_of_the_name_is_one_of_its_own(vortex, tmp_path, backend):
    path = tmp_path / "others.vx"
    path.write_text(OTHERS)
    vortex("run", path, *backend)
    # Written by element, it is refused as it is under any other name.
    for name in "uw":
        path.write_text("kernel k(x: &Tensor<i32, [N]>) -> Tensor<i32, [N]> {\n    var u: Tensor<i32, [N]>\n    u[0..1] = x[0..1]\n    {\n"
                        f"        var {name}: Tensor<i32, [N]>\n        {name}[1..2] = x[0..1]\n    }}\n    return u\n}}\n")
        assert f"error[E0412]: `{name}` is a value" in vortex("check", path, status=1).stderr
