"""Loops and branches that store parts of tensors in place: what a round reads is what rounds before it wrote, wherever that was, against NumPy."""
import numpy
import pytest

# name: (statements over t [N], u [N], n and on, what they do to NumPy arrays)
FORMS = {
    "own": ("for i in 0..n { t[0..N] = t[0..N] * 2 }", lambda t, u, n, on: t.__imul__(2**n)),
    "shifted": ("for i in 0..n { t[1..N - 1] = t[0..N - 2] + t[2..N] }", lambda t, u, n, on: rounds(n, lambda i: put(t, 1, -1, t[:-2] + t[2:]))),
    "in_turn": ("for i in 0..n {\nu[1..N - 1] = t[0..N - 2] + t[2..N]\nt[1..N - 1] = u[1..N - 1] - t[1..N - 1]\n}",
                lambda t, u, n, on: rounds(n, lambda i: (put(u, 1, -1, t[:-2] + t[2:]), put(t, 1, -1, u[1:-1] - t[1:-1])))),
    "moves": ("for i in 0..n { t[0..N - 1] = t[1..N] }", lambda t, u, n, on: rounds(n, lambda i: put(t, 0, -1, t[1:].copy()))),
    "window_of_round": ("for i in 0..n { t[i..i + 4] = t[i + 1..i + 5] + u[i..i + 4] }",
                        lambda t, u, n, on: rounds(n, lambda i: put(t, i, i + 4, t[i + 1:i + 5] + u[i:i + 4]))),
    "under_branch": ("if on { t[1..N] = t[0..N - 1] + u[1..N] } else { t[0..N - 1] = t[1..N] - u[1..N] }",
                     lambda t, u, n, on: put(t, 1, None, t[:-1] + u[1:]) if on else put(t, 0, -1, t[1:] - u[1:])),
    "branch_in_loop": ("for i in 0..n { if i % 2 == 0 { t[1..N] = t[0..N - 1] * 3 } else { t[0..N - 1] = t[1..N] - 1 } }",
                       lambda t, u, n, on: rounds(n, lambda i: put(t, 1, None, t[:-1] * 3) if i % 2 == 0 else put(t, 0, -1, t[1:] - 1))),
    "loop_in_loop": ("for i in 0..n { for j in 0..i { t[1..N] = t[0..N - 1] + u[1..N] }\nu[0..N - 1] = t[1..N] }",
                     lambda t, u, n, on: rounds(n, lambda i: (rounds(i, lambda j: put(t, 1, None, t[:-1] + u[1:])), put(u, 0, -1, t[1:])))),
    "sums": ("for i in 0..n { t[0..N] = t[0..N] - sum(t[0..N], dim = 0, keepdim = true) }",
             lambda t, u, n, on: rounds(n, lambda i: put(t, 0, None, t - t.sum(dtype=t.dtype)))),
    # Slices with a name: a read sees what stood there when it was written down.
    "named": ("let m = t[0..N - 1]\nt[1..N] = m", lambda t, u, n, on: put(t, 1, None, t[:-1])),
    "named_kept": ("let r = t[0..N]\nlet s = r * 2\nt = t * 0\nu = s", lambda t, u, n, on: (put(u, 0, None, t * 2), put(t, 0, None, t * 0))),
    "named_halves": ("let p = t[0..N / 2]\nlet q = t[N - N / 2..N]\nlet x = p - q\nlet y = p + q\nt[0..N / 2] = x\nt[N - N / 2..N] = y",
                     lambda t, u, n, on: halves(t, len(t) // 2)),
    "named_first": ("let f = t[0..1]\nt = t - f", lambda t, u, n, on: put(t, 0, None, t - t[0])),
    "window_of_window": ("let w = t[0..N]\nlet p = w[1..N]\nlet s = p * 3\nu[1..N] = p\nt[0..N - 1] = s", lambda t, u, n, on: windows(t, u)),
    "named_in_loop": ("for i in 0..n { let m = t[0..N - 1]\nt[1..N] = t[1..N] + m }", lambda t, u, n, on: rounds(n, lambda i: put(t, 1, None, t[1:] + t[:-1]))),
    "named_under_branch": ("if on { let m = t[1..N]\nt[0..N - 1] = m } else { let m = t[0..N - 1]\nlet s = m * 5\nt = t * 0\nu[1..N] = s }",
                           lambda t, u, n, on: put(t, 0, -1, t[1:]) if on else (put(u, 1, None, t[:-1] * 5), put(t, 0, None, t * 0))),
}


def put(array, first, end, values):
    array[first:end] = values.copy()


def halves(t, half):
    p, q = t[:half].copy(), t[len(t) - half:].copy()
    put(t, 0, half, p - q)
    put(t, len(t) - half, None, p + q)


def windows(t, u):
    p = t[1:].copy()
    put(u, 1, None, p)
    put(t, 0, -1, p * 3)


def rounds(n, body):
    for i in range(n):
        body(i)


def program(kind="i32"):
    kernels = "".join(f"""kernel {name}(t: &mut Tensor<{kind}, [N]>, u: &mut Tensor<{kind}, [N]>, n: usize, on: bool) {{
    {statements}
}}
""" for name, (statements, _) in FORMS.items())
    calls = "\n".join(f"""        {{
            var t: Tensor<{kind}, [N]> = load_npy(format("{{}}/t.npy", dir))
            var u: Tensor<{kind}, [N]> = load_npy(format("{{}}/u.npy", dir))
            {name}(&mut t, &mut u, n, n % 2 == 1)
            save_npy(format("{{}}/{name}{{}}_t.npy", dir, n), t)
            save_npy(format("{{}}/{name}{{}}_u.npy", dir, n), u)
        }}""" for name in FORMS)
    return f"{kernels}fn main() {{\n    let dir = args()[0]\n    for n in 0..4 {{\n{calls}\n    }}\n}}\n"


@pytest.mark.parametrize("size", [9, 300, 70001])
def test_rounds_see_what_was_stored(vortex, tmp_path, backend, size):
    if size > 1000 and backend in (["--check"], ["--device", "interpreter"]):
        pytest.skip("the interpreter takes long")
    rng = numpy.random.default_rng()
    t, u = (rng.integers(-9, 10, size).astype(numpy.int32) for _ in range(2))
    numpy.save(tmp_path / "t.npy", t)
    numpy.save(tmp_path / "u.npy", u)
    path = tmp_path / "stores.vx"
    path.write_text(program())
    vortex("run", path, *backend, "--", tmp_path)
    for name, (_, evaluate) in FORMS.items():
        for n in range(4):
            expected = t.copy(), u.copy()
            evaluate(*expected, n, n % 2 == 1)
            for array, which in zip(expected, "tu"):
                numpy.testing.assert_array_equal(numpy.load(tmp_path / f"{name}{n}_{which}.npy"), array, err_msg=f"{name} {n} {which}")


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "metal3.1"])
def test_gpus_have_code_for_them(vortex, tmp_path, target):
    path = tmp_path / "stores.vx"
    path.write_text(program())
    vortex("build", path, "--target", target, "-o", tmp_path / "out")


def test_pieces_of_a_negative_length_are_empty(vortex, tmp_path):
    path = tmp_path / "heat.vx"
    path.write_text("""kernel heat(t: &mut Tensor<f32, [N]>, n: usize) {
    for i in 0..n {
        let inner = t[1..N - 1] + (t[0..N - 2] - t[2..N])
        t[1..N - 1] = inner
    }
}
fn main() {
    var t = random.normal::<f32>([1], seed = 1)
    let before = t.to_host()
    heat(&mut t, 2)
    assert_eq(t.to_host(), before)
}
""")
    vortex("run", path)
