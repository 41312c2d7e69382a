"""Products of matrices and vectors against NumPy: each side, batches, element types, windows, transposes, epilogues, inside loops of launches."""
import numpy
import pytest

KERNELS = {  # name: (result and expression over a [M, K], b [B, M, K], x [K], y [M], NumPy)
    "column": ("[M]", "a @ x", lambda a, b, x, y: a @ x),
    "row": ("[K]", "y @ a", lambda a, b, x, y: y @ a),
    "turned": ("[K]", "a.transpose() @ y", lambda a, b, x, y: a.T @ y),
    "turned_row": ("[M]", "x @ a.transpose()", lambda a, b, x, y: x @ a.T),
    "batched_column": ("[B, M]", "b @ x", lambda a, b, x, y: b @ x),
    "batched_row": ("[B, K]", "y @ b", lambda a, b, x, y: y @ b),
    "turned_batch": ("[M, B]", "b.transpose([1, 0, 2]) @ x", lambda a, b, x, y: (b @ x).T),
    "depth_in_the_middle": ("[B, K]", "b.transpose([0, 2, 1]) @ y", lambda a, b, x, y: y @ b),
    "batch_behind": ("[K, B]", "b.transpose([2, 0, 1]) @ y", lambda a, b, x, y: (y @ b).T),
    "row_of_a_turned_batch": ("[M, 1, B]", "x.reshape([1, K]) @ b.transpose([1, 2, 0])", lambda a, b, x, y: (b @ x).T[:, None]),
    "window": ("[M]", "a[:, 1..K] @ x[0..K - 1] + y * y", lambda a, b, x, y: a[:, 1:] @ x[:-1] + y * y),
    "chain": ("[K]", "a.transpose() @ (a @ x)", lambda a, b, x, y: a.T @ (a @ x)),
    "matrix_of_one_column": ("[M, 1]", "a @ x.reshape([K, 1])", lambda a, b, x, y: a @ x[:, None]),
    "several": ("[M]", "(a + 1) @ x - a @ (x + x)", lambda a, b, x, y: (a + 1) @ x - a @ (x + x)),
}
PARAMETERS = "a: &Tensor<T, [M, K]>, b: &Tensor<T, [B, M, K]>, x: &Tensor<T, [K]>, y: &Tensor<T, [M]>"


def program(element, sizes):
    b, m, k = sizes
    kernels = "".join(f"@unchecked(overflow)\nkernel {name}({PARAMETERS}) -> Tensor<T, {shape}> {{\n    return {text}\n}}\n" for name, (shape, text, _) in KERNELS.items())
    loads = "".join(f'    let {name}: Tensor<{element}, {shape}> = load_npy(format("{{}}/{name}.npy", dir))\n'
                    for name, shape in (("a", [m, k]), ("b", [b, m, k]), ("x", [k]), ("y", [m])))
    calls = "".join(f'    save_npy(format("{{}}/{name}.npy", dir), {name}(&a, &b, &x, &y))\n' for name in KERNELS)
    return kernels.replace("T,", f"{element},").replace("<T>", f"<{element}>") + f"fn main() {{\n    let dir = args()[0]\n{loads}{calls}}}\n"


@pytest.mark.parametrize("element", ["f32", "f64", "f16", "i32", "u8"])
@pytest.mark.parametrize("sizes", [(3, 37, 129), (1, 1, 1), (2, 64, 256), (2, 5, 0), (2, 0, 7)])
def test_vectors_are_rows_and_columns(vortex, tmp_path, backend, element, sizes):
    rng = numpy.random.default_rng()
    kind = numpy.dtype({"f": "float", "i": "int", "u": "uint"}[element[0]] + element[1:])
    b, m, k = sizes
    arrays = [rng.integers(0, 2 if element == "f16" else 4, shape).astype(kind) for shape in ((m, k), (b, m, k), (k,), (m,))]
    for name, array in zip("abxy", arrays):
        numpy.save(tmp_path / f"{name}.npy", array)
    path = tmp_path / "products.vx"
    text = program(element, sizes)
    path.write_text(text if k else text.replace("a[:, 1..K] @ x[0..K - 1]", "a @ x"))
    vortex("run", path, *backend, "--", tmp_path)
    exact = [array.astype(numpy.float64 if kind.kind == "f" else numpy.int64) for array in arrays]
    for name, (_, _, evaluate) in KERNELS.items():
        result = numpy.load(tmp_path / f"{name}.npy")
        if name == "window" and not k:
            continue
        expected = evaluate(*exact)
        if kind.kind == "f":
            numpy.testing.assert_allclose(result.astype(float), expected, rtol=2e-3 if element == "f16" else 1e-6, err_msg=name)
        else:
            numpy.testing.assert_array_equal(result, expected.astype(kind), err_msg=name)


def softmax(s):
    return numpy.exp(s - s.max(-1, keepdims=True)) / numpy.exp(s - s.max(-1, keepdims=True)).sum(-1, keepdims=True)


LATE = {  # name: (result and expression over x [M, K], w [K, N], b [N], c [M, 1], r [M, N], NumPy)
    "plain": ("[M, N]", "x @ w", lambda x, w, b, c, r: x @ w),
    "bias": ("[M, N]", "max(x @ w + b, 0.0) + r", lambda x, w, b, c, r: numpy.maximum(x @ w + b, 0) + r),
    "scaled": ("[M, N]", "(x @ w) * c", lambda x, w, b, c, r: (x @ w) * c),
    "gated": ("[M, N]", "(x @ w) * tanh(x @ (w + w))", lambda x, w, b, c, r: (x @ w) * numpy.tanh(x @ (w + w))),
    "turned": ("[N, M]", "(x @ w).transpose()", lambda x, w, b, c, r: (x @ w).T),
    "both": ("[N, M]", "w.transpose() @ x.transpose()", lambda x, w, b, c, r: (x @ w).T),
    "row_sums": ("[M]", "(x @ w).sum(dim = -1)", lambda x, w, b, c, r: (x @ w).sum(-1)),
    "weights": ("[M, N]", "softmax(x @ w)", lambda x, w, b, c, r: softmax(x @ w)),
    "chain": ("[M, K]", "(x @ w) @ w.transpose()", lambda x, w, b, c, r: x @ w @ w.T),
    "gram": ("[M, M]", "x @ x.transpose()", lambda x, w, b, c, r: x @ x.T),
    "flat": ("[M * N]", "(x @ w + r).reshape([M * N])", lambda x, w, b, c, r: (x @ w + r).reshape(-1)),
}
MORE = """
kernel added(x: &Tensor<f32, [M, K]>, w: &Tensor<f32, [K, N]>, b: &Tensor<f32, [N]>, c: &Tensor<f32, [M, 1]>, r: &Tensor<f32, [M, N]>) -> Tensor<f32, [M, N]> {
    var y = r * 2.0
    y += x @ w
    return y * 3.0
}
kernel rounds(x: &Tensor<f32, [M, K]>, w: &Tensor<f32, [K, N]>, b: &Tensor<f32, [N]>, c: &Tensor<f32, [M, 1]>, r: &Tensor<f32, [M, N]>) -> Tensor<f32, [M, N]> {
    var y = r * 1.0
    for i in 0..3 {
        y = y * 0.5 + x @ w
    }
    return y
}
"""


def test_extents_that_only_the_launch_knows(vortex, tmp_path, backend):
    """One program, launched with one row, one column, both, none of the depth, and others."""
    rng = numpy.random.default_rng()
    parameters = "x: &Tensor<f32, [M, K]>, w: &Tensor<f32, [K, N]>, b: &Tensor<f32, [N]>, c: &Tensor<f32, [M, 1]>, r: &Tensor<f32, [M, N]>"
    text = MORE + "".join(f"kernel {name}({parameters}) -> Tensor<f32, {shape}> {{\n    return {body}\n}}\n" for name, (shape, body, _) in LATE.items())
    evaluate = {name: each for name, (_, _, each) in LATE.items()}
    evaluate |= {"added": lambda x, w, b, c, r: 3 * (2 * r + x @ w), "rounds": lambda x, w, b, c, r: r / 8 + 1.75 * (x @ w)}
    body, expected = "", {}
    for number, (m, n, k) in enumerate([(1, 1, 1), (1, 37, 70), (41, 1, 72), (1, 64, 264), (264, 1, 8), (1, 1, 300), (3, 1, 0), (1, 5, 0), (0, 1, 4), (1, 0, 4), (5, 7, 9)]):
        shapes = {"x": (m, k), "w": (k, n), "b": (n,), "c": (m, 1), "r": (m, n)}
        arrays = {name: rng.integers(-3, 4, shape).astype("f4") / 4 for name, shape in shapes.items()}
        for name, array in arrays.items():
            numpy.save(tmp_path / f"{name}{number}.npy", array)
            body += f'    let {name}{number}: Tensor<f32, {list(shapes[name])}> = load_npy(format("{{}}/{name}{number}.npy", dir))\n'
        for name, each in evaluate.items():
            if name == "weights" and n == 0:
                continue
            expected[f"{name}_{number}"] = each(*(array.astype(float) for array in arrays.values()))
            body += f'    save_npy(format("{{}}/{name}_{number}.npy", dir), {name}({", ".join(f"&{one}{number}" for one in arrays)}))\n'
    path = tmp_path / "late.vx"
    path.write_text(f"{text}fn main() {{\n    let dir = args()[0]\n{body}}}\n")
    vortex("run", path, *backend, "--", tmp_path)
    for name, each in expected.items():
        numpy.testing.assert_allclose(numpy.load(tmp_path / f"{name}.npy"), each, rtol=2e-5, atol=2e-5, err_msg=name)


def test_sums_of_products_with_vectors_are_wide(vortex, tmp_path, backend):
    """Accumulated in f32 where that is asked for: 4096 ones in f16 are exact, 4097 are not."""
    path = tmp_path / "wide.vx"
    path.write_text("""
kernel declared(a: &Tensor<f16, [M, K]>, x: &Tensor<f16, [K]>) -> Tensor<f32, [M]> {
    return a @ x
}
kernel cast(a: &Tensor<f16, [M, K]>, x: &Tensor<f16, [K]>) -> Tensor<f32, [M]> {
    return (a @ x) as f32 + 0.0
}
kernel added(a: &Tensor<f16, [M, K]>, x: &Tensor<f16, [K]>) -> Tensor<f32, [M]> {
    var sums = zeros::<f32>([M])
    sums += a @ x
    return sums
}
fn main() {
    let a: Tensor<f16, [M, K]> = Tensor.full(1.0, [5, 4097])
    let x: Tensor<f16, [K]> = Tensor.full(1.0, [4097])
    for y in [declared(&a, &x).to_host(), cast(&a, &x).to_host(), added(&a, &x).to_host()] {
        assert_eq(y, vec![4097.0f32; 5])
    }
}
""")
    vortex("run", path, *backend)


def test_power_iteration_and_conjugate_gradients(vortex, tmp_path, backend):
    n = 29
    rng = numpy.random.default_rng()
    a = rng.normal(size=(n, n))
    a = a @ a.T + n * numpy.eye(n)
    b = rng.normal(size=n)
    numpy.save(tmp_path / "a.npy", a)
    numpy.save(tmp_path / "b.npy", b)
    path = tmp_path / "solve.vx"
    path.write_text("""
kernel solved(a: &Tensor<f64, [N, N]>, b: &Tensor<f64, [N]>) -> Tensor<f64, [N]> {
    var x = b * 0.0
    var r = b - a @ x
    var p = r
    var rr = sum(r * r)
    while rr > 1e-20 {
        let q = a @ p
        let alpha = rr / sum(p * q)
        x += alpha * p
        r -= alpha * q
        let next = sum(r * r)
        p = r + (next / rr) * p
        rr = next
    }
    return x
}
kernel largest(a: &Tensor<f64, [N, N]>, b: &Tensor<f64, [N]>, steps: usize) -> Tensor<f64, [N]> {
    var y = b / sqrt(sum(b * b))
    for i in 0..steps {
        y = a @ y
        y = y / sqrt(sum(y * y))
    }
    return y
}
fn main() {
    let dir = args()[0]
    let a: Tensor<f64, [N, N]> = load_npy(format("{}/a.npy", dir))
    let b: Tensor<f64, [N]> = load_npy(format("{}/b.npy", dir))
    save_npy(format("{}/solved.npy", dir), solved(&a, &b))
    save_npy(format("{}/largest.npy", dir), largest(&a, &b, 9))
}
""")
    vortex("run", path, *backend, "--", tmp_path)
    numpy.testing.assert_allclose(numpy.load(tmp_path / "solved.npy"), numpy.linalg.solve(a, b), rtol=1e-7, atol=1e-9)
    y = b
    for _ in range(9):
        y = a @ y
    numpy.testing.assert_allclose(numpy.load(tmp_path / "largest.npy"), y / numpy.linalg.norm(y), rtol=1e-7)
