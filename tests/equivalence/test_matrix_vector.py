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
