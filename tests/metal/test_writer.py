"""Kernels printed as Metal source, read back and run on the CPU (`--device metal3.1`), against NumPy, the interpreter and what they say of
themselves."""
import json
import math

import numpy as np
import pytest

MODEL = "metal3.1"
EXAMPLES = ["fft", "histogram", "prefix_sum", "radix_sort", "saxpy", "transpose", "warp", "memory_model/layouts"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(vortex, root, name):
    done = vortex("run", root / "examples" / f"{name}.vx", "--device", MODEL)
    assert done.stdout.startswith(name.split("/")[-1]), done.stdout


def run(vortex, tmp_path, kernel, call, inputs, outputs, device=MODEL, status=0):
    """Runs `call` on tensors loaded from `inputs` {name: (type, array)}; gives the tensors named in `outputs`."""
    lines = []
    for name, (kind, array) in inputs.items():
        np.save(tmp_path / f"{name}.npy", array)
        lines.append(f'var {name}: Tensor<{kind}, [{", ".join(f"{name.upper()}{d}" for d in range(array.ndim))}]> = load_npy("{tmp_path}/{name}.npy")')
    lines.append(call)
    lines += [f'save_npy("{tmp_path}/{name}.{device}.npy", {name})' for name in outputs]
    path = tmp_path / "program.vx"
    path.write_text(kernel + "\nfn main() {\n    " + "\n    ".join(lines) + "\n}\n")
    done = vortex("run", path, "--device", device, status=status)
    return done if status else [np.load(tmp_path / f"{name}.{device}.npy") for name in outputs]


def both(vortex, tmp_path, kernel, call, inputs, outputs):
    """The same by the printed source and by the interpreter."""
    got = run(vortex, tmp_path, kernel, call, inputs, outputs)
    wanted = run(vortex, tmp_path, kernel, call, inputs, outputs, device="interpreter")
    return list(zip(got, wanted))


def adversarial(rng, count):
    """Numbers of all sizes, limits, zeros with signs, infinities and NaN."""
    bits = rng.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, 2**31, -(2**31), 2**32, 2**63, 65504, 65520, 3e38], np.float32)
    return np.concatenate([bits, special, rng.normal(0, 3, count).astype(np.float32)])


FUNCTIONS = {"exp": 2, "exp2": 2, "expm1": 4, "log": 2, "log2": 2, "log10": 2, "log1p": 4, "sin": 4, "cos": 4, "tan": 6, "asin": 4, "acos": 4,
             "atan": 5, "sinh": 4, "cosh": 4, "tanh": 5, "sigmoid": 4, "erf": 4, "sqrt": 0.5, "cbrt": 4, "rsqrt": 2, "floor": 0, "ceil": 0, "round": 0, "trunc": 0}


def test_functions_of_f32(vortex, tmp_path):
    """ULP as Metal's or as docs/library.md promises, whichever the writer uses."""
    rng = np.random.default_rng()
    x = np.concatenate([rng.uniform(-1, 1, 300), rng.normal(0, 10, 300), rng.uniform(0, 50, 300)]).astype(np.float32)
    kernel = "\n".join(f"kernel k_{name}(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> {{ return {name}(x) }}" for name in FUNCTIONS)
    call = "\n    ".join(f"let y_{name} = k_{name}(&x)" for name in FUNCTIONS)
    found = run(vortex, tmp_path, kernel, call, {"x": ("f32", x)}, [f"y_{name}" for name in FUNCTIONS])
    wide = x.astype(np.float64)
    exact = {"rsqrt": lambda v: 1 / np.sqrt(v), "sigmoid": lambda v: 1 / (1 + np.exp(-v)), "erf": np.vectorize(math.erf), "asin": np.arcsin, "acos": np.arccos,
             "atan": np.arctan, "round": lambda v: np.copysign(np.floor(np.abs(v) + 0.5), v)}
    with np.errstate(all="ignore"):
        for (name, ulp), y in zip(FUNCTIONS.items(), found):
            wanted = exact.get(name, getattr(np, name, None))(wide)
            rounded = wanted.astype(np.float32)
            assert (np.isnan(y) == np.isnan(rounded)).all(), name
            finite = np.isfinite(rounded) & (np.abs(rounded) > 1e-37)
            error = np.abs(y[finite].astype(np.float64) - wanted[finite]) / np.spacing(np.abs(rounded[finite])).astype(np.float64)
            assert error.size == 0 or error.max() <= ulp + 0.5, (name, error.max())


@pytest.mark.parametrize("kind", ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"])
def test_integers_are_total(vortex, tmp_path, kind):
    """Every operation on limits, zeros and random bits equals the interpreter's, division by zero and shifts by too much included."""
    rng = np.random.default_rng()
    dtype = np.dtype({"i": "int", "u": "uint"}[kind[0]] + kind[1:])
    info = np.iinfo(dtype)
    edge = np.array([info.min, info.min + 1, 0, 1, 2, 7, info.max - 1, info.max], dtype)
    a = np.concatenate([np.repeat(edge, len(edge)), rng.integers(info.min, info.max, 500, dtype=dtype, endpoint=True)])
    b = np.concatenate([np.tile(edge, len(edge)), rng.integers(info.min, info.max, 500, dtype=dtype, endpoint=True)])
    operators = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>"}
    kernel = "\n".join(f"kernel k_{name}(a: &Tensor<{kind}, [N]>, b: &Tensor<{kind}, [N]>, out: &mut Tensor<{kind}, [N]>) {{\n"
                       f"    let i = thread.global_id\n    if i < N {{ out[i] = a[i] {sign} b[i] }}\n}}" for name, sign in operators.items())
    kernel += (f"\nkernel k_less(a: &Tensor<{kind}, [N]>, b: &Tensor<{kind}, [N]>, out: &mut Tensor<{kind}, [N]>) {{\n"
               f"    let i = thread.global_id\n    if i < N {{ out[i] = if a[i] < b[i] {{ max(a[i], b[i]) }} else {{ min(a[i], b[i]) }} }}\n}}")
    names = [*operators, "less"]
    call = "\n    ".join(f"k_{name}(&a, &b, &mut o_{name})" for name in names)
    inputs = {"a": (kind, a), "b": (kind, b), **{f"o_{name}": (kind, np.full_like(a, 77)) for name in names}}
    for name, (got, wanted) in zip(names, both(vortex, tmp_path, kernel, call, inputs, [f"o_{name}" for name in names])):
        assert (got == wanted).all(), (name, a[got != wanted][:5], b[got != wanted][:5])


def test_conversions(vortex, tmp_path):
    """Floats to integers saturate, NaN is 0; integers and floats to narrow floats round once. Bit for bit the interpreter's."""
    rng = np.random.default_rng()
    x = adversarial(rng, 3000)
    n = np.concatenate([rng.integers(-(2**31), 2**31, 2000), 2**24 + rng.integers(-300, 300, 500), (1 << rng.integers(0, 31, 500)) + 1]).astype(np.int32)
    wide = np.concatenate([rng.integers(-(2**63), 2**63 - 1, 2000), (1 << rng.integers(0, 62, 500)) + (1 << rng.integers(0, 40, 500))]).astype(np.int64)
    # Halfway between two of bf16 but for the last bit, which f32 has not.
    n = np.concatenate([n, [sign * ((1 << at) + (1 << (at - 8)) + 1) for at in range(25, 31) for sign in (1, -1)]]).astype(np.int32)
    wide = np.concatenate([wide, [sign * ((1 << at) + (1 << (at - 8)) + 1) for at in range(25, 62) for sign in (1, -1)]]).astype(np.int64)
    kernel, call, inputs = "", [], {"x": ("f32", x), "n": ("i32", n), "w": ("i64", wide)}
    for to, store in {"i8": np.int8, "u8": np.uint8, "i16": np.int16, "u32": np.uint32, "i32": np.int32, "i64": np.int64, "u64": np.uint64, "f16": np.float16}.items():
        kernel += f"kernel x_{to}(x: &Tensor<f32, [N]>) -> Tensor<{to}, [N]> {{ return x as {to} }}\n"
        call.append(f"let rx_{to} = x_{to}(&x)")
    for source in ("n", "w"):
        kind = inputs[source][0]
        for to in ("f16", "bf16", "f32"):
            kernel += f"kernel {source}_{to}(x: &Tensor<{kind}, [N]>) -> Tensor<f32, [N]> {{ return (x as {to}) as f32 }}\n"
            call.append(f"let r{source}_{to} = {source}_{to}(&{source})")
    outputs = [line.split()[1] for line in call]
    for name, (got, wanted) in zip(outputs, both(vortex, tmp_path, kernel, "\n    ".join(call), inputs, outputs)):
        assert got.dtype == wanted.dtype and np.array_equal(got, wanted, equal_nan=got.dtype.kind == "f"), name


ATOMICS = """
kernel counts(x: &Tensor<u32, [N]>, total: &mut Tensor<u32, [8]>) {
    let i = thread.global_id
    if i < N {
        atomic_add(&mut total[0], x[i])
        atomic_max(&mut total[1], x[i])
        atomic_min(&mut total[2], x[i])
        atomic_or(&mut total[3], x[i])
        atomic_and(&mut total[4], x[i])
        atomic_xor(&mut total[5], x[i])
    }
}
kernel extremes(x: &Tensor<f32, [N]>, total: &mut Tensor<f32, [3]>) {
    let i = thread.global_id
    if i < N {
        atomic_max(&mut total[0], x[i])
        atomic_min(&mut total[1], x[i])
        atomic_add(&mut total[2], 1.0)
    }
}
"""


TURNS = """
kernel turns(x: &Tensor<i32, [N]>, y: &Tensor<i32, [N]>, n: &Tensor<u32, [N]>, a: &mut Tensor<i32, [N]>, b: &mut Tensor<i32, [N]>) {
    let i = thread.global_id
    if i < N {
        var p = x[i]
        var q = y[i]
        var r = 1
        for k in 0..(n[i] as usize) {
            let kept = p
            p = q
            q = r
            r = kept
        }
        a[i] = p
        b[i] = q * 3 - r
    }
}
"""


def test_variables_that_change_places_in_a_loop(vortex, tmp_path):
    rng = np.random.default_rng()
    x, y, n = rng.integers(-99, 99, 100, dtype=np.int32), rng.integers(-99, 99, 100, dtype=np.int32), rng.integers(0, 8, 100, dtype=np.uint32)
    inputs = {"x": ("i32", x), "y": ("i32", y), "n": ("u32", n), "a": ("i32", np.full(100, 777, np.int32)), "b": ("i32", np.full(100, 777, np.int32))}
    a, b = run(vortex, tmp_path, TURNS, "turns(&x, &y, &n, &mut a, &mut b)", inputs, ["a", "b"])
    three = np.stack([x, y, np.ones_like(x)])
    p, q, r = (three[(n + k) % 3, np.arange(100)] for k in range(3))
    assert (a == p).all() and (b == q * 3 - r).all()


EDGES = """
kernel neighbours(x: &Tensor<KIND, [M, N]>, next: &mut Tensor<KIND, [M, N]>) {
    let i = thread.global_id.y
    let j = thread.global_id.x
    if i < M && j < N { next[i, j] = x[i, j + 3] }
}

@tile(m = 16)
kernel sums(x: &Tensor<KIND, [M, N]>) -> Tensor<KIND, [M]> {
    var total: Tensor<KIND, [16]> @local = zeros()
    for k in range(0, N, 32) {
        total += x[block_m..+16, k..+32].sum(dim = 1)
    }
    return total
}
"""


@pytest.mark.parametrize("kind", ["f32", "i32", "i64"])
def test_elements_past_a_row_are_zero_and_not_those_of_the_next(vortex, tmp_path, kind):
    rng = np.random.default_rng()
    x = rng.integers(1, 99, (21, 45)).astype(kind.replace("i", "int").replace("f3", "float3"))
    after, totals = run(vortex, tmp_path, EDGES.replace("KIND", kind), "neighbours(&x, &mut next)\n    let totals = sums(&x)", {"x": (kind, x), "next": (kind, x)}, ["next", "totals"])
    assert np.array_equal(after, np.pad(x, ((0, 0), (0, 3)))[:, 3:]) and np.array_equal(totals, x.sum(1))


SIGNED_ATOMICS = """
kernel signed(x: &Tensor<i32, [N]>, total: &mut Tensor<i32, [3]>, won: &mut Tensor<i32, [N]>) {
    let i = thread.global_id
    if i < N {
        atomic_max(&mut total[0], x[i])
        atomic_min(&mut total[1], x[i])
        won[i] = atomic_compare_exchange(&mut total[2], -7, x[i])
    }
}
"""


def test_atomics_of_signed_numbers(vortex, tmp_path):
    x = np.random.default_rng().integers(-(2**31), 2**31, 333).astype(np.int32)
    x[:2] = [-5, 5]
    start = np.array([-9, 9, -7], np.int32)
    total, won = run(vortex, tmp_path, SIGNED_ATOMICS, "signed(&x, &mut t, &mut w)", {"x": ("i32", x), "t": ("i32", start), "w": ("i32", np.zeros(333, np.int32))}, ["t", "w"])
    assert list(total[:2]) == [x.max(), x.min()]
    [first] = np.flatnonzero(won == -7)
    assert total[2] == x[first] and (np.delete(won, first) == x[first]).all()


def test_comparisons_of_floats(vortex, tmp_path):
    """Infinities, zeros of both signs and NaN, each operator and its opposite; the larger and the smaller of two bit for bit but for NaN."""
    rng = np.random.default_rng()
    edge = np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan], np.float32)
    a, b = np.concatenate([np.repeat(edge, 7), adversarial(rng, 300)]), np.concatenate([np.tile(edge, 7), rng.permutation(adversarial(rng, 300))])
    signs = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal}
    lines = "".join(f"        if a[i] {sign} b[i] {{ r = r | {1 << k} }}\n        if !(a[i] {sign} b[i]) {{ r = r | {64 << k} }}\n" for k, sign in enumerate(signs))
    kernel = ("kernel compared(a: &Tensor<f32, [N]>, b: &Tensor<f32, [N]>, c: &mut Tensor<u32, [N]>, least: &mut Tensor<f32, [N]>, most: &mut Tensor<f32, [N]>) {\n"
              f"    let i = thread.global_id\n    if i < N {{\n        var r = 0u32\n{lines}        c[i] = r\n        least[i] = min(a[i], b[i])\n        most[i] = max(a[i], b[i])\n    }}\n}}\n")
    inputs = {"a": ("f32", a), "b": ("f32", b), "c": ("u32", np.full(a.size, 77, np.uint32)), "least": ("f32", np.full_like(a, 77)), "most": ("f32", np.full_like(a, 77))}
    found = both(vortex, tmp_path, kernel, "compared(&a, &b, &mut c, &mut least, &mut most)", inputs, ["c", "least", "most"])
    wanted = sum((test(a, b).astype(np.uint32) << k) + ((~test(a, b)).astype(np.uint32) << (k + 6)) for k, test in enumerate(signs.values()))
    assert (found[0][0] == wanted).all()
    for got, other in found[1:]:
        assert ((got.view("u4") == other.view("u4")) | (np.isnan(got) & np.isnan(other))).all()


@pytest.mark.parametrize("kind", ["u8", "i16", "u32", "i64"])
def test_bits_are_counted_from_both_ends(vortex, tmp_path, kind):
    dtype = np.dtype({"i": "int", "u": "uint"}[kind[0]] + kind[1:])
    width = 8 * dtype.itemsize
    x = np.concatenate([np.random.default_rng().integers(0, np.iinfo(dtype).max, 60, dtype=dtype) << np.arange(60).astype(dtype) % dtype.type(width - 1), np.array([0, 1, np.iinfo(dtype).max], dtype)])
    kernel = f"""kernel counted(x: &Tensor<{kind}, [N]>, a: &mut Tensor<{kind}, [N]>, b: &mut Tensor<{kind}, [N]>, c: &mut Tensor<{kind}, [N]>) {{
    let i = thread.global_id
    if i < N {{
        if x[i] == 1 {{ a[i] = 99 }} else {{ a[i] = ctz(x[i]) as {kind} }}
        b[i] = clz(x[i]) as {kind}
        c[i] = popcount(x[i]) as {kind}
    }}
}}"""
    inputs = {name: (kind, np.full_like(x, 77)) for name in "abc"}
    a, b, c = run(vortex, tmp_path, kernel, "counted(&x, &mut a, &mut b, &mut c)", {"x": (kind, x), **inputs}, ["a", "b", "c"])
    words = [f"{int(v) % 2**width:0{width}b}" for v in x]
    assert list(a) == [99 if v == 1 else len(w) - len(w.rstrip("0")) for v, w in zip(x, words)]
    assert list(b) == [len(w) - len(w.lstrip("0")) for w in words] and list(c) == [w.count("1") for w in words]


def test_atomics(vortex, tmp_path):
    rng = np.random.default_rng()
    x, y = rng.integers(0, 2**32, 1003, dtype=np.uint32), rng.normal(0, 5, 777).astype(np.float32)
    start = np.array([5, 0, 2**32 - 1, 0, 2**32 - 1, 0, 0, 0], np.uint32)
    total, extreme = run(vortex, tmp_path, ATOMICS, "counts(&x, &mut t)\n    extremes(&y, &mut e)",
                         {"x": ("u32", x), "y": ("f32", y), "t": ("u32", start), "e": ("f32", np.zeros(3, np.float32))}, ["t", "e"])
    reduce = np.bitwise_or.reduce, np.bitwise_and.reduce, np.bitwise_xor.reduce
    assert list(total[:6]) == [(5 + int(x.astype(np.uint64).sum())) % 2**32, x.max(), x.min(), *(f(x) for f in reduce)]
    assert list(extreme) == [max(0, y.max()), min(0, y.min()), 777]


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
def test_powers(vortex, tmp_path, kind):
    rng = np.random.default_rng()
    x = np.concatenate([rng.uniform(-4, 4, 500), [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, -2, -8]]).astype(np.float32)
    y = np.concatenate([rng.uniform(-6, 6, 300), rng.integers(-5, 6, 200), [0, 3, 0.5, -3, 0, np.nan, np.inf, -3, 0.5]]).astype(np.float32)
    kernel = f"kernel powers(x: &Tensor<f32, [N]>, y: &Tensor<f32, [N]>) -> Tensor<f32, [N]> {{ return pow(x as {kind}, y as {kind}) as f32 }}"
    [(got, wanted)] = both(vortex, tmp_path, kernel, "let r = powers(&x, &y)", {"x": ("f32", x), "y": ("f32", y)}, ["r"])
    np.testing.assert_allclose(got, wanted, rtol={"f32": 1e-6, "f16": 2**-10, "bf16": 2**-7}[kind], atol=1e-7)


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
def test_products(vortex, tmp_path, kind):
    rng = np.random.default_rng()
    m, n, k = (int(extent) for extent in rng.integers(1, 90, 3))
    a, b = rng.integers(-4, 5, (m, k)).astype(np.float32), rng.integers(-4, 5, (k, n)).astype(np.float32)
    kernel = f"kernel product(a: &Tensor<f32, [M, K]>, b: &Tensor<f32, [K, N]>) -> Tensor<f32, [M, N]> {{ return ((a as {kind}) @ (b as {kind})) as f32 }}"
    (c,) = run(vortex, tmp_path, kernel, "let c = product(&a, &b)", {"a": ("f32", a), "b": ("f32", b)}, ["c"])
    wanted = a @ b
    tolerance = {"f32": 0, "f16": 2**-11, "bf16": 2**-8}[kind]
    assert (np.abs(c - wanted) <= tolerance * np.abs(wanted)).all()


LARGE_BLOCKS = """
@tile(m = 128, n = 128)
kernel product(a: &Tensor<f32, [K, M]>, b: &Tensor<f32, [K, N]>, rows: &Tensor<f32, [M]>, columns: &Tensor<f32, [N]>) -> Tensor<f32, [M, N]> {
    var acc: Tensor<f32, [128, 128]> = Tensor.zeros()
    for k in range(0, K, 32) {
        acc += a[k..k + 32, block_m..block_m + 128].transpose() @ (b[k..k + 32, block_n..block_n + 128] * 2.0)
    }
    let sum = acc + columns[block_n..block_n + 128]
    return sum * sum - rows[block_m..block_m + 128].reshape([128, 1]) * 0.5
}
"""


def test_products_whose_sums_exceed_the_memory_of_a_threadgroup_are_made_in_parts(vortex, tmp_path):
    rng = np.random.default_rng()
    m, n, k = (int(extent) for extent in rng.integers(100, 300, 3))
    a, b, rows, columns = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((k, m), (k, n), m, n))
    inputs = {"a": ("f32", a), "b": ("f32", b), "rows": ("f32", rows), "columns": ("f32", columns)}
    (c,) = run(vortex, tmp_path, LARGE_BLOCKS, "let c = product(&a, &b, &rows, &columns)", inputs, ["c"])
    total = a.T.astype(np.float64) @ b * 2 + columns
    np.testing.assert_allclose(c, total * total - rows[:, None] * 0.5, rtol=1e-6)


@pytest.mark.parametrize("kind", ["i8", "i16", "i32", "i64"])
def test_products_of_integers(vortex, tmp_path, kind):
    """Elements of 64 bits: no plan for large chips fits 32 KiB."""
    rng = np.random.default_rng()
    m, n, k = (int(extent) for extent in rng.integers(1, 90, 3))
    dtype = np.dtype("int" + kind[1:])
    info = np.iinfo(dtype)
    a, b = rng.integers(info.min, info.max, (m, k), dtype, endpoint=True), rng.integers(info.min, info.max, (k, n), dtype, endpoint=True)
    kernel = f"kernel product(a: &Tensor<{kind}, [M, K]>, b: &Tensor<{kind}, [K, N]>) -> Tensor<{kind}, [M, N]> {{ return a @ b }}"
    (c,) = run(vortex, tmp_path, kernel, "let c = product(&a, &b)", {"a": (kind, a), "b": (kind, b)}, ["c"])
    with np.errstate(over="ignore"):
        assert (c == a @ b).all()


def test_products_of_turned_operands(vortex, tmp_path):
    rng = np.random.default_rng()
    m, n, k = (int(extent) for extent in rng.integers(1, 90, 3))
    a, b = rng.standard_normal((k, m), np.float32), rng.standard_normal((n, k), np.float32)
    kernel = "kernel product(a: &Tensor<f32, [K, M]>, b: &Tensor<f32, [N, K]>) -> Tensor<f32, [M, N]> { return a.transpose() @ b.transpose() }"
    (c,) = run(vortex, tmp_path, kernel, "let c = product(&a, &b)", {"a": ("f32", a), "b": ("f32", b)}, ["c"])
    np.testing.assert_allclose(c, a.T.astype(np.float64) @ b.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind, matrix", [("f32", "float"), ("f16", "half"), ("bf16", "bfloat"), ("i32", None)])
def test_products_use_simdgroup_matrices_where_there_are_any(vortex, tmp_path, kind, matrix):
    path = tmp_path / "product.vx"
    path.write_text(f"kernel product(a: &Tensor<{kind}, [M, K]>, b: &Tensor<{kind}, [K, N]>) -> Tensor<{kind}, [M, N]> {{ return a @ b }}\n")
    vortex("build", path, "--target", MODEL, "-o", tmp_path)
    text = (tmp_path / "product.product.metal").read_text()
    assert ("simdgroup_multiply_accumulate" in text) == (matrix is not None)
    assert matrix is None or f"simdgroup_{matrix}8x8" in text
    assert matrix is not None or "simdgroup_" not in text.replace("simdgroup_barrier", "")


LOOPS = """
kernel power(x: &Tensor<f32, [N, N]>, steps: i32) -> Tensor<f32, [N, N]> {
    var y = x + 0.0
    for i in 0..steps { y = y @ x }
    return y
}
kernel chosen(x: &Tensor<f32, [N, N]>, square: bool) -> Tensor<f32, [N, N]> {
    var y = x * 2.0
    if square { y = y @ x }
    return y
}
"""


@pytest.mark.parametrize("extent", [5, 70])
def test_loops_and_branches_of_launches(vortex, tmp_path, extent):
    """Each round has memory and numbers of its own."""
    x = np.random.default_rng().integers(-2, 3, (extent, extent)).astype(np.float32)
    names = [f"p{steps}" for steps in (0, 1, 3)] + ["yes", "no"]
    call = "\n    ".join([f"let {name} = power(&x, {name[1:]})" for name in names[:3]]
                         + [f"let {name} = chosen(&x, {str(name == 'yes').lower()})" for name in names[3:]])
    found = run(vortex, tmp_path, LOOPS, call, {"x": ("f32", x)}, names)
    for got, wanted in zip(found, [x, x @ x, x @ x @ x @ x, 2 * x @ x, 2 * x]):
        assert (got == wanted).all()


FAULT = """
@launch(block = 64)
kernel late(x: &Tensor<f32, [N]>, out: &mut Tensor<f32, [N]>) {
    var s: Tensor<f32, [64]> @shared
    let i = thread.global_id
    let value = if i < N { x[i] } else { 0.0 }
    assert(value < 100.0, "value {} of {}", value, i)
    s[thread.local_id] = value
    sync_block()
    if i < N { out[i] = s[63 - thread.local_id] }
}
"""


def test_a_failed_assert_before_a_barrier_is_reported(vortex, tmp_path):
    x = np.arange(128, dtype=np.float32)
    done = run(vortex, tmp_path, FAULT, "late(&x, &mut out)", {"x": ("f32", x), "out": ("f32", x)}, [], status=1)
    assert "E0704" in done.stderr and " 7 |     assert(" in done.stderr and "value 1" in done.stderr, done.stderr
    (out,) = run(vortex, tmp_path, FAULT, "late(&x, &mut out)", {"x": ("f32", x[:64]), "out": ("f32", x[:64] * 0 - 1)}, ["out"])
    assert (out == x[:64][::-1]).all()


def test_prints_arrive(vortex, tmp_path):
    kernel = """
kernel tell(x: &Tensor<f32, [N]>) {
    let i = thread.global_id
    if i < N { print("{} has {}", i, x[i]) }
}
"""
    path = tmp_path / "program.vx"
    np.save(tmp_path / "x.npy", np.array([1.5, -2.25, 4], np.float32))
    path.write_text(kernel + f'fn main() {{\n    let x: Tensor<f32, [L]> = load_npy("{tmp_path}/x.npy")\n    tell(&x)\n}}\n')
    lines = vortex("run", path, "--device", MODEL).stdout.split("\n")
    assert sorted(lines[:3]) == ["0 has 1.5", "1 has -2.25", "2 has 4.0"] or sorted(lines[:3]) == ["0 has 1.5", "1 has -2.25", "2 has 4"], lines


def test_temporaries_of_other_phases_take_no_buffers(vortex, tmp_path):
    """A chain of sums: with the places of what the compiler adds, 8 tensors of the kernel and 24 of its own."""
    rng = np.random.default_rng()
    given = {name: rng.uniform(0.5, 1.5, (3, 50)).astype(np.float32) for name in "abcdef"}
    steps = "".join(f"    let s{k} = ({'abcdef'[k % 6]} * s{k - 1} * 0.01).sum()\n" for k in range(1, 12))
    kernel = ("kernel chained(" + ", ".join(f"{name}: &Tensor<f32, [M, N]>" for name in given) + ", y: &mut Tensor<f32, [M, N]>, z: &mut Tensor<f32, [M]>) {\n"
              f"    let s0 = a.sum()\n{steps}    y = a * s11 + b * s10 + c * s9 + d * s8 + e * s7 + f * s6\n"
              "    z = (a * s5 + b * s4 + c * s3 + d * s2 + e * s1 + f * s0).sum(dim = 1)\n}\n")
    inputs = {**{name: ("f32", array) for name, array in given.items()}, "y": ("f32", np.zeros((3, 50), np.float32)), "z": ("f32", np.zeros(3, np.float32))}
    y, z = run(vortex, tmp_path, kernel, "chained(&a, &b, &c, &d, &e, &f, &mut y, &mut z)", inputs, ["y", "z"])
    s, arrays = [given["a"].sum(dtype="f8")], list(given.values())
    for k in range(1, 12):
        s.append(arrays[k % 6].sum(dtype="f8") * s[-1] * 0.01)
    np.testing.assert_allclose(y, sum(array * s[11 - k] for k, array in enumerate(arrays)), rtol=2e-5)
    np.testing.assert_allclose(z, sum(array * s[5 - k] for k, array in enumerate(arrays)).sum(axis=1), rtol=2e-5)


REFUSED = [
    ("f64", "kernel k(x: &Tensor<f64, [N]>) -> Tensor<f64, [N]> { return §x * 2.0 }", "f64"),
    ("wide atomics", "@launch(grid = 1, block = 32)\nkernel k(t: &mut Tensor<u64, [1]>) { if thread.local_id == 0 { §atomic_add(&mut t[0], 1) } }", "atomics on 64-bit elements"),
    ("ordered atomics", "@launch(grid = 1, block = 32)\nkernel k(t: &mut Tensor<u32, [1]>) { if thread.local_id == 0 { §atomic_add(&mut t[0], 1, order = .release) } }", "before version 3.2"),
    ("large tiles", "@tile(m = 128, n = 128)\nkernel k(a: &Tensor<f32, [M, K]>, b: &Tensor<f32, [K, N]>) -> Tensor<f32, [M, N]> {\n    var acc: Tensor<f32, [128, 128]> = §Tensor.zeros()\n"
     "    for k in range(0, K, 32) {\n        acc = acc * 0.5 + a[block_m..block_m + 128, k..k + 32] @ b[k..k + 32, block_n..block_n + 128]\n    }\n    return acc\n}", "blocks have 32768 bytes of shared memory"),
    ("many tensors", "kernel §k(" + ", ".join(f"x{i}: &Tensor<f32, [N]>" for i in range(30)) + ", out: &mut Tensor<f32, [N]>) {\n    let i = thread.global_id\n"
     "    if i < N { out[i] = " + " + ".join(f"x{i}[i]" for i in range(30)) + " }\n}", "`k` takes more than 29 tensors in one launch, 31;"),
    ("many slots", "kernel §k(" + ", ".join(f"x{i}: i32" for i in range(520)) + ", out: &mut Tensor<i32, [N]>) {\n    let i = thread.global_id\n"
     "    if i < N { out[i] = x0 + x519 }\n}", "4096 bytes of constants"),
]


@pytest.mark.parametrize("name, source, message", REFUSED, ids=[each[0] for each in REFUSED])
def test_what_metal_has_not_is_refused_at_its_line(vortex, tmp_path, name, source, message):
    at = source.index("§")
    line, kernel = source[:at].count("\n") + 1, source[:source.index("kernel ")].count("\n") + 1
    path = tmp_path / "k.vx"
    path.write_text(source.replace("§", ""))
    (found,) = json.loads(vortex("build", path, "--target", MODEL, "-o", tmp_path / "out", "--json", status=1).stderr)
    assert found["id"] == "E0713" and message in found["message"], found
    assert name.startswith("many") or f"k.vx:{line}:" in found["message"], found
    assert all(label["line"] == kernel for label in found["labels"]), found
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_arithmetic_is_printed_once(vortex, root, tmp_path):
    """exp is a function of the file, and indices that several accesses share are computed once: softmax took 607 kB before."""
    vortex("build", root / "examples/softmax.vx", "--target", MODEL, "-o", tmp_path)
    text = (tmp_path / "softmax.softmax_rows.metal").read_text()
    assert text.count(" fn_exp(float") == 1 and text.count("= fn_exp(") > 20 and len(text) < 400_000, len(text)


def test_build_writes_source_and_artifact(vortex, root, tmp_path):
    vortex("build", root / "examples/saxpy.vx", "--target", MODEL, "-o", tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir() if each.is_file()) == ["saxpy.saxpy.metal", "saxpy.saxpy.metal.hpp", "saxpy.saxpy.vxk"]
    text = (tmp_path / "saxpy.saxpy.metal").read_text()
    assert "#include <metal_stdlib>" in text and "kernel void vx_saxpy_main(" in text
    assert vortex("check", tmp_path / "saxpy.saxpy.metal").returncode == 0


@pytest.mark.parametrize("kind", ["i64", "f16"])
def test_transposes_of_all_widths(vortex, tmp_path, kind):
    """Their squares fit the memory of a threadgroup."""
    rng = np.random.default_rng()
    x = rng.integers(-50, 50, (67, 130)).astype(kind.replace("i", "int").replace("f", "float"))
    kernel = f"kernel turned(x: &Tensor<{kind}, [M, N]>) -> Tensor<{kind}, [N, M]> {{ return x.transpose() }}"
    [y] = run(vortex, tmp_path, kernel, "let y = turned(&x)", {"x": (kind, x)}, ["y"])
    assert np.array_equal(y, x.T)
