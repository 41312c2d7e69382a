"""Computed tensors that whole-tensor kernels write by element, against NumPy."""
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
    "one_of_two": ("var a = t * 2\nvar b = t * 3\na[0] = 1\nb[0] = 2\nif on { return a }\nreturn b", "Tensor<i32, [N]>",
                   lambda t, n, on: put(t * 2, 0, 1, 1) if on else put(t * 3, 0, 1, 2)),
    "one_of_two_with_types": ("var a: Tensor<i32, [N]> = t * 2\nvar b: Tensor<i32, [N]>\na[0] = 1\nb[0] = 2\nif on { return a }\nreturn b", "Tensor<i32, [N]>",
                              lambda t, n, on: put(t * 2, 0, 1, 1) if on else put(t * 0, 0, 1, 2)),
    "twice": ("var a = t * 2\na[0] = 1\nreturn (a, a)", "(Tensor<i32, [N]>, Tensor<i32, [N]>)", lambda t, n, on: (put(t * 2, 0, 1, 1),) * 2),
    "temporary": ("var a = t * 2\na[1..N] = t[0..N - 1]\nreturn a + a[N - 1]", "Tensor<i32, [N]>", lambda t, n, on: (a := put(t * 2, 1, None, t[:-1])) + a[-1]),
    "of_another_type": ("var a: Tensor<f32, [2, N]> = zeros()\na[1] = t as f32\na[0] = a[1] * 2.0\nreturn (a[0] + a[1]) as i32", "Tensor<i32, [N]>", lambda t, n, on: t * 3),
    "without_a_value": ("var s = t * 0\nfor i in 0..3 {\nvar a: Tensor<i32, [N]>\na[i..N] = t[i..N]\ns = s + a\n}\nreturn s", "Tensor<i32, [N]>",
                        lambda t, n, on: sum(put(t * 0, i, None, t[i:]) for i in range(3))),
    "result_in_loop": ("for i in 0..3 {\nvar a: Tensor<i32, [N]> = zeros()\na[i] = t[i]\nif i == n { return a }\n}\nreturn t", "Tensor<i32, [N]>",
                       lambda t, n, on: put(t * 0, n, n + 1, t[n])),
    "in_function": ("var u = t + 0\nfor i in 0..n { u = u + shifted(u) - shifted(t) }\nreturn u", "Tensor<i32, [N]>",
                    lambda t, n, on: rounds(n, t, lambda u: u + put(u * 0, 1, None, u[:-1]) - put(t * 0, 1, None, t[:-1]))),
    "until_the_device_says": ("var u = t + 1\nvar rounds = 0\nwhile sum(u) < 500000 {\nvar v = u * 2\nv[0] = u[N - 1]\nu = v\nrounds += 1\n}\nreturn u + rounds", "Tensor<i32, [N]>",
                              lambda t, n, on: until(t + 1)),
    "rows_of_a_product": ("var a: Tensor<f32, [2, 2 * N]> = zeros()\na[:, 0..N] = full(1.0, [2, 1]) @ (t as f32).reshape([1, N])\na[0, N..2 * N] = t as f32\n"
                          "let b = full(1.0, [1, 2]) @ a\nreturn (b[0, 0..N] + b[0, N..2 * N]) as i32", "Tensor<i32, [N]>", lambda t, n, on: t * 3),
}
FUNCTIONS = """fn shifted(x: Tensor<i32, [N]>) -> Tensor<i32, [N]> {
    var y = x * 0
    y[1..N] = x[0..N - 1]
    return y
}
"""


def put(array, first, end, values):
    array[first:end] = values
    return array


def until(u):
    count = 0
    while u.sum() < 500000:
        u, count = put(u * 2, 0, 1, u[-1]), count + 1
    return u + count


def rounds(n, array, body):
    for _ in range(n):
        array = body(array)
    return array


def program():
    kernels = "".join(f"kernel {name}(t: &Tensor<i32, [N]>, n: usize, on: bool) -> {result} {{\n{body}\n}}\n" for name, (body, result, _) in FORMS.items())
    calls = "".join(f"{{\nlet {'(r, s)' if result[0] == '(' else 'r'} = {name}(&t, n, n == 1)\nsave_npy(format(\"{{}}/{name}{{}}.npy\", dir, n), r)\n"
                    + (f"save_npy(format(\"{{}}/{name}_second{{}}.npy\", dir, n), s)\n" if result[0] == "(" else "") + "}\n"
                    for name, (_, result, _) in FORMS.items())
    return f"""{FUNCTIONS}{kernels}fn main() {{
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
                            for name in ("slice", "in_place", "two_results", "temporary", "one_of_two", "without_a_value")))
    vortex("build", path, "--target", target, "-o", tmp_path / "out")


def test_where_threads_run_two_tensors_are_not_one_result(vortex, tmp_path):
    path = tmp_path / "stored.vx"
    body = "".join(f"var {name}: Tensor<i32, [N]>\n{name}[thread.global_id] = {i}\n" for i, name in enumerate("ab")) + "if on { return a }\nreturn b"
    path.write_text(f"kernel k(t: &Tensor<i32, [N]>, on: bool) -> Tensor<i32, [N]> {{\n{body}\n}}\n")
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
