"""Windows that begin, end or lie where a loop's counter says: elimination, substitution, panels, rows and columns of whole tensors, against NumPy."""
import numpy
import pytest

# name: (statements over s [S, S], z [S] and n, what they do to NumPy arrays)
FORMS = {}


def form(name, statements):
    def add(evaluate):
        FORMS[name] = statements, evaluate
        return evaluate
    return add


@form("eliminated", "for k in 0..n { s[k + 1..S, k + 1..S] = s[k + 1..S, k + 1..S] - s[k + 1..S, k..k + 1] * s[k..k + 1, k + 1..S] }")
def eliminated(s, z, n):
    for k in range(n):
        s[k + 1:, k + 1:] -= s[k + 1:, k:k + 1] * s[k:k + 1, k + 1:]


@form("row_by_row", "for k in 0..n { for i in k + 1..S { s[i, k..S] = s[i, k..S] - s[k, k..S] * z[i] } }")
def row_by_row(s, z, n):
    for k in range(n):
        for i in range(k + 1, len(s)):
            s[i, k:] -= s[k, k:] * z[i]


@form("less_sums", "for k in 0..n { s[k..S, k..S] = s[k..S, k..S] - sum(s[k..S, k..S], dim = 0) }")
def less_sums(s, z, n):
    for k in range(n):
        s[k:, k:] = s[k:, k:] - s[k:, k:].sum(axis=0, dtype=s.dtype)


@form("less_total", "for k in 0..n { s[k..S, :] = s[k..S, :] - sum(s[k..S, k..S]) }")
def less_total(s, z, n):
    for k in range(n):
        s[k:] = s[k:] - s[k:, k:].sum(dtype=s.dtype)


@form("panels", "for k in 0..n { s[k + 1..S, :] = s[k + 1..S, :] - s[k + 1..S, 0..k + 1] @ s[0..k + 1, :] }")
def panels(s, z, n):
    for k in range(n):
        s[k + 1:] = s[k + 1:] - s[k + 1:, :k + 1] @ s[:k + 1]


@form("orthogonal", """for k in 1..n + 1 {
    let c = s[0..k, :] @ s[k, :].reshape([S, 1])
    s[k, :] = s[k, :] - (c.transpose() @ s[0..k, :]).reshape([S])
}""")
def orthogonal(s, z, n):
    for k in range(1, n + 1):
        s[k] = s[k] - (s[:k] @ s[k]) @ s[:k]


@form("substituted", "for i in 0..S { z[i] = z[i] - sum(s[i, 0..i] * z[0..i]) }")
def substituted(s, z, n):
    for i in range(len(z)):
        z[i] = z[i] - (s[i, :i] * z[:i]).sum(dtype=z.dtype)


@form("by_columns", "for k in 0..S - 1 { z[k + 1..S] = z[k + 1..S] - s[k + 1..S, k] * z[k] }")
def by_columns(s, z, n):
    for k in range(len(z) - 1):
        z[k + 1:] -= s[k + 1:, k] * z[k]


@form("scanned", "for k in 0..n { z[k..S] = z[k..S].cumsum(dim = 0)\ns[k..S, :] = s[k..S, :].cumsum(dim = 0) }")
def scanned(s, z, n):
    for k in range(n):
        z[k:] = numpy.cumsum(z[k:], dtype=z.dtype)
        s[k:] = numpy.cumsum(s[k:], axis=0, dtype=s.dtype)


@form("branches", """for k in 0..n {
    if sum(s[k, :]) > 0 { s[k..S, :] = s[k..S, :] * 2 - s[k..k + 1, :] } else { s[0..k + 1, :] = s[0..k + 1, :] + z }
}""")
def branches(s, z, n):
    for k in range(n):
        if s[k].sum(dtype=s.dtype) > 0:
            s[k:] = s[k:] * 2 - s[k:k + 1]
        else:
            s[:k + 1] = s[:k + 1] + z


@form("nested", """for i in 0..n { for j in i..n + 1 {
    s[i..j, 0..j] = s[i..j, 0..j] + sum(s[0..j, i..j], dim = 1, keepdim = true).reshape([1, j])
} }""")
def nested(s, z, n):
    for i in range(n):
        for j in range(i, n + 1):
            s[i:j, :j] = s[i:j, :j] + s[:j, i:j].sum(axis=1, dtype=s.dtype)[None, :]


@form("behind_the_end", "for k in 0..n { s[k * 5000..S, k * 5000..S] = s[k * 5000..S, k * 5000..S] * 3 - z[0] }")
def behind_the_end(s, z, n):
    for k in range(n):
        s[k * 5000:, k * 5000:] = s[k * 5000:, k * 5000:] * 3 - z[0]


@form("steps", "for k in range(0, S, 4) { s[k..min(k + 4, S), :] = s[k..min(k + 4, S), :] @ s[:, :] + n }")
def steps(s, z, n):
    for k in range(0, len(s), 4):
        s[k:k + 4] = s[k:k + 4] @ s + numpy.int32(n)


# Rows of a result, which nothing reads: a block has no room for a scan or product of any length.
RESULTS = {
    "rows": ("for i in 0..S { y[i, :] = s[i, :].cumsum(dim = 0) }", lambda s: numpy.cumsum(s, axis=1, dtype=s.dtype)),
    "columns": ("for i in 0..S { y[:, i] = s[:, i].cumsum(dim = 0) }", lambda s: numpy.cumsum(s, axis=0, dtype=s.dtype)),
    "products": ("for k in range(0, S, 4) { y[k..min(k + 4, S), :] = s[k..min(k + 4, S), :] @ s }", lambda s: s @ s),
}


def program(size):
    kernels = "".join(f"""@unchecked(overflow)
kernel {name}(s: &mut Tensor<i32, [S, S]>, z: &mut Tensor<i32, [S]>, n: usize) {{
    {statements.replace("+ n }", "+ (n as i32) }")}
}}
""" for name, (statements, _) in FORMS.items())
    kernels += "".join(f"""@unchecked(overflow)
kernel {name}(s: &Tensor<i32, [S, S]>) -> Tensor<i32, [S, S]> {{
    var y: Tensor<i32, [S, S]>
    {statements}
    return y
}}
""" for name, (statements, _) in RESULTS.items())
    calls = "\n".join(f"""        {{
            var s: Tensor<i32, [{size}, {size}]> = load_npy(format("{{}}/s.npy", dir))
            var z: Tensor<i32, [{size}]> = load_npy(format("{{}}/z.npy", dir))
            {name}(&mut s, &mut z, n)
            save_npy(format("{{}}/{name}{{}}_s.npy", dir, n), s)
            save_npy(format("{{}}/{name}{{}}_z.npy", dir, n), z)
        }}""" for name in FORMS)
    results = "\n".join(f'    save_npy(format("{{}}/{name}.npy", dir), {name}(&s))' for name in RESULTS)
    return f"""{kernels}fn main() {{
    let dir = args()[0]
    let s: Tensor<i32, [{size}, {size}]> = load_npy(format("{{}}/s.npy", dir))
{results}
    for n in 0..4 {{
{calls}
    }}
}}
"""


def run_and_compare(vortex, tmp_path, size, backend):
    rng = numpy.random.default_rng()
    s, z = rng.integers(-9, 10, (size, size)).astype(numpy.int32), rng.integers(-9, 10, size).astype(numpy.int32)
    numpy.save(tmp_path / "s.npy", s)
    numpy.save(tmp_path / "z.npy", z)
    text, compared = program(size), set(FORMS)
    if backend == ["--check"] or "interpreter" in backend:  # it reports windows that end before they begin
        text = text.replace("k * 5000", "k")
        compared.remove("behind_the_end")
    path = tmp_path / "windows.vx"
    path.write_text(text)
    vortex("run", path, *backend, "--", tmp_path)
    for name, (_, evaluate) in RESULTS.items():
        numpy.testing.assert_array_equal(numpy.load(tmp_path / f"{name}.npy"), evaluate(s), err_msg=name)
    with numpy.errstate(over="ignore"):
        for name in compared:
            for n in range(4):
                expected = s.copy(), z.copy()
                FORMS[name][1](*expected, n)
                for array, which in zip(expected, "sz"):
                    numpy.testing.assert_array_equal(numpy.load(tmp_path / f"{name}{n}_{which}.npy"), array, err_msg=f"{name} {n} {which}")


@pytest.mark.parametrize("size", [7, 150])
def test_windows_move_with_counters(vortex, tmp_path, backend, size):
    if size > 100 and backend == ["--check"]:
        pytest.skip("the interpreter takes long")
    run_and_compare(vortex, tmp_path, size, backend)


@pytest.mark.parametrize("size", [7, 70])
def test_windows_move_with_counters_on_printed_metal(vortex, tmp_path, size):
    run_and_compare(vortex, tmp_path, size, ["--device", "metal3.1"])


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_gpus_have_code_for_moving_windows(vortex, tmp_path, target):
    path = tmp_path / "windows.vx"
    path.write_text(program(7))
    vortex("build", path, "--target", target, "-o", tmp_path / "out")
