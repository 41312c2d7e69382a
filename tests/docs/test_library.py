"""The functions of docs/library.md against NumPy: host scalars in f64, kernels in f32, by element and as whole tensors."""
import math
import re

import numpy
import pytest

R, P, U = (-4.0, 4.0), (0.05, 9.0), (-0.98, 0.98)
UNARY = {
    "exp": (numpy.exp, R), "exp2": (numpy.exp2, R), "log": (numpy.log, P), "log2": (numpy.log2, P), "log10": (numpy.log10, P), "expm1": (numpy.expm1, R), "log1p": (numpy.log1p, U), "sin": (numpy.sin, R),
    "cos": (numpy.cos, R), "tan": (numpy.tan, U), "asin": (numpy.arcsin, U), "acos": (numpy.arccos, U), "atan": (numpy.arctan, R), "sinh": (numpy.sinh, R),
    "cosh": (numpy.cosh, R), "tanh": (numpy.tanh, R), "erf": (numpy.vectorize(math.erf), R), "erfc": (numpy.vectorize(math.erfc), R), "sqrt": (numpy.sqrt, P), "rsqrt": (lambda x: x**-0.5, P),
    "cbrt": (numpy.cbrt, R), "sigmoid": (lambda x: 1 / (1 + numpy.exp(-x)), R), "floor": (numpy.floor, R), "ceil": (numpy.ceil, R),
    "round": (numpy.round, R), "trunc": (numpy.trunc, R), "abs": (numpy.abs, R), "sign": (numpy.sign, R),
}
BINARY = {"atan2(x, y)": numpy.arctan2, "pow(abs(x), y)": lambda x, y: numpy.abs(x) ** y, "min(x, y)": numpy.minimum, "max(x, y)": numpy.maximum,
          "fma(x, y, x)": lambda x, y: x * y + x, "clamp(x, -1.0, 1.5)": lambda x, y: numpy.clip(x, -1, 1.5), "x / y": numpy.divide, "x - y": numpy.subtract,
          "abs(x) ** 1.5": lambda x, y: numpy.abs(x) ** 1.5, "select(x > y, x, -y)": lambda x, y: numpy.where(x > y, x, -y)}
INTEGER = {"popcount(x)": lambda x, y: bits(x).sum(axis=-1), "clz(x)": lambda x, y: 32 - bit_length(x), "x % (y | 1)": lambda x, y: x % (y | 1),
           "ctz(x | 256)": lambda x, y: bit_length((x | 256) & -(x | 256)) - 1, "mul_hi(x, y)": lambda x, y: (x * y) >> 32,
           "ceil_div(x, y | 1)": lambda x, y: -(-x // (y | 1)), "x << (y & 31)": lambda x, y: x << (y & 31), "x >> (y & 31)": lambda x, y: x >> (y & 31),
           "x * y + 3": lambda x, y: x * y + 3, "x / (y & 0)": lambda x, y: x * 0, "min(x, y) ^ max(x, y)": lambda x, y: x ^ y}
TENSOR = {
    "x.transpose() -> [B, N, M]": lambda x: x.swapaxes(1, 2), "x.transpose([2, 0, 1]) -> [N, B, M]": lambda x: x.transpose(2, 0, 1),
    "x.reshape([B * M, N]) -> [B * M, N]": lambda x: x.reshape(-1, x.shape[2]), "x.sum(dim = -1) -> [B, M]": lambda x: x.sum(-1),
    "x.sum(dim = 0) -> [M, N]": lambda x: x.sum(0), "x.sum(dim = [0, 2]) -> [M]": lambda x: x.sum((0, 2)),
    "x.mean(dim = 1, keepdim = true) -> [B, 1, N]": lambda x: x.mean(1, keepdims=True), "x.max(dim = 1) -> [B, N]": lambda x: x.max(1),
    "x.min(dim = [0, 1]) -> [N]": lambda x: x.min((0, 1)), "x.prod(dim = 0) -> [M, N]": lambda x: x.prod(0),
    "x.cumsum(dim = 1) -> [B, M, N]": lambda x: x.cumsum(1), "cumsum(x) -> [B, M, N]": lambda x: x.cumsum(2),
    "softmax(x, dim = 0) -> [B, M, N]": lambda x: numpy.exp(x) / numpy.exp(x).sum(0),
    "x.mask_upper_triangle(-7.0) -> [B, M, N]": lambda x: numpy.where(numpy.triu(numpy.ones(x.shape[1:]), 1) > 0, -7, x),
    **{f"x.mask_upper_triangle(-7.0, offset = {text}) -> [B, M, N]": (lambda offset: lambda x: numpy.where(numpy.triu(numpy.ones(x.shape[1:]), 1 + offset(*x.shape[1:])) > 0, -7, x))(offset)
       for text, offset in {"2": lambda m, n: 2, "-1": lambda m, n: -1, "N as i64 - M as i64": lambda m, n: n - m, "M - N": lambda m, n: m - n, "M as u8 - N as u8 - 200u8": lambda m, n: (m - n - 200) % 256,
                            "-9223372036854775807 - 1": lambda m, n: -m, "9223372036854775807": lambda m, n: n}.items()},
    "x @ x.transpose() -> [B, M, M]": lambda x: x @ x.swapaxes(1, 2), "x * x[0, 0, :] -> [B, M, N]": lambda x: x * x[0, 0],
    "x[1, 1..M, :] + 1.0 -> [M - 1, N]": lambda x: x[1, 1:] + 1,
    "x.sum(dim = 0).broadcast([B, M, N]) -> [B, M, N]": lambda x: numpy.broadcast_to(x.sum(0), x.shape),
}


def bits(x):
    return (x[..., None] >> numpy.arange(32)) & 1


def bit_length(x):
    return numpy.vectorize(lambda v: int(v).bit_length())(x)


@pytest.fixture
def backends(device):
    return dict.fromkeys([device, "interpreter"])


@pytest.fixture
def rng():
    seed = numpy.random.SeedSequence().entropy % 2**32
    print(f"numpy.random.default_rng({seed})")
    return numpy.random.default_rng(seed)


def results(vortex, tmp_path, device, kernels, inputs, parameters, result):
    """Runs kernels given as (body, result type, generics) on the inputs and returns their results."""
    text, calls = "", ""
    for i, (body, type_) in enumerate(kernels):
        text += f"kernel k{i}({parameters}) -> {type_ or result} {{\n    return {body}\n}}\n"
        calls += f'    save_npy("{tmp_path}/{i}.npy", k{i}({", ".join("&" + name for name in inputs)}))\n'
    loads = ""
    for name, (array, type_) in inputs.items():
        numpy.save(tmp_path / f"{name}.npy", array)
        loads += f'    let {name}: {type_} = load_npy("{tmp_path}/{name}.npy")\n'
    path = tmp_path / "program.vx"
    path.write_text(text + "fn main() {\n" + loads + calls + "}\n")
    vortex("run", path, "--device", device)
    return [numpy.load(tmp_path / f"{i}.npy") for i in range(len(kernels))]


def check(expression, actual, expected, rtol=3e-6):
    assert actual.shape == expected.shape, expression
    numpy.testing.assert_allclose(actual.astype(numpy.float64), expected, rtol=rtol, atol=rtol, err_msg=expression)


def test_unary_functions(vortex, tmp_path, backends, rng):
    for low, high in {interval for _, interval in UNARY.values()}:
        names = [name for name in UNARY if UNARY[name][1] == (low, high)]
        x = rng.uniform(low, high, 1031).astype(numpy.float32)
        bodies = [(f"{name}(x)", None) for name in names] + [(f"{name}(x[thread.global_id])", None) for name in names]
        for device in backends:
            found = results(vortex, tmp_path, device, bodies, {"x": (x, "Tensor<f32, [N]>")}, "x: &Tensor<f32, [N]>", "Tensor<f32, [N]>")
            for (body, _), name, actual in zip(bodies, names * 2, found):
                check(f"{body} on {device}", actual, UNARY[name][0](x.astype(numpy.float64)))


def test_binary_functions(vortex, tmp_path, backends, rng):
    x, y = rng.uniform(-3, 3, (2, 1031)).astype(numpy.float32)
    inputs = {"x": (x, "Tensor<f32, [N]>"), "y": (y, "Tensor<f32, [L]>")}
    bodies = [(e, None) for e in BINARY]
    for device in backends:
        found = results(vortex, tmp_path, device, bodies, inputs, "x: &Tensor<f32, [N]>, y: &Tensor<f32, [N]>", "Tensor<f32, [N]>")
        for e, actual in zip(BINARY, found):
            check(f"{e} on {device}", actual, BINARY[e](x.astype(numpy.float64), y.astype(numpy.float64)), rtol=1e-5)


def test_integer_functions(vortex, tmp_path, backends, rng):
    x, y = rng.integers(0, 2**32, (2, 517)).astype(numpy.uint32)
    x[:3] = [0, 1, 2**32 - 1]
    inputs = {"x": (x, "Tensor<u32, [N]>"), "y": (y, "Tensor<u32, [L]>")}
    for device in backends:
        found = results(vortex, tmp_path, device, [(e, None) for e in INTEGER], inputs, "x: &Tensor<u32, [N]>, y: &Tensor<u32, [N]>", "Tensor<u32, [N]>")
        for e, actual in zip(INTEGER, found):
            expected = INTEGER[e](x.astype(object), y.astype(object)) if "mul" in e or "*" in e or "<<" in e else INTEGER[e](x.astype(numpy.int64), y.astype(numpy.int64))
            assert (actual == (expected % 2**32).astype(numpy.uint64)).all(), f"{e} on {device}"


@pytest.mark.parametrize("type_", ["u8", "i16", "i32", "u64", "i64"])
def test_upper_half_of_products(vortex, tmp_path, backends, rng, type_):
    dtype = numpy.dtype({"u": "uint", "i": "int"}[type_[0]] + type_[1:])
    limits = numpy.iinfo(dtype)
    x, y = rng.integers(limits.min, limits.max, (2, 300), dtype=dtype, endpoint=True)
    x[:4], y[:4] = [limits.min, limits.max, limits.min, 0], [limits.min, limits.max, limits.max, 1]
    expected = [int(a) * int(b) >> 8 * dtype.itemsize for a, b in zip(x, y)]
    inputs = {"x": (x, f"Tensor<{type_}, [N]>"), "y": (y, f"Tensor<{type_}, [L]>")}
    bodies = [("mul_hi(x, y)", None), ("mul_hi(x[thread.global_id], y[thread.global_id])", None)]
    for device in backends:
        found = results(vortex, tmp_path, device, bodies, inputs, f"x: &Tensor<{type_}, [N]>, y: &Tensor<{type_}, [N]>", f"Tensor<{type_}, [N]>")
        assert all([int(v) for v in actual] == expected for actual in found)


@pytest.mark.parametrize("shape", [(2, 3, 5), (3, 17, 33)])
def test_tensor_functions(vortex, tmp_path, backends, rng, shape):
    x = rng.uniform(-2, 2, shape).astype(numpy.float32)
    bodies = [(e.split(" -> ")[0], f"Tensor<f32, {e.split(' -> ')[1]}>") for e in TENSOR]
    for device in backends:
        found = results(vortex, tmp_path, device, bodies, {"x": (x, "Tensor<f32, [B, M, N]>")}, "x: &Tensor<f32, [B, M, N]>", "")
        for e, actual in zip(TENSOR, found):
            check(f"{e} on {device}", actual, TENSOR[e](x.astype(numpy.float64)), rtol=2e-5)


def test_warp_functions(vortex, tmp_path, backends, rng):
    x = rng.integers(-1000, 1000, 256).astype(numpy.int32)
    rows = x.reshape(8, 32).astype(numpy.int64)
    lane = numpy.arange(32)
    expected = {
        "warp.sum(v)": numpy.repeat(rows.sum(1), 32), "warp.max(v)": numpy.repeat(rows.max(1), 32), "warp.min(v)": numpy.repeat(rows.min(1), 32),
        "warp.shuffle_xor(v, 5)": rows[:, lane ^ 5].ravel(), "warp.broadcast(v, 7)": numpy.repeat(rows[:, 7], 32),
        "popcount(warp.ballot(v > 0)) as i32": numpy.repeat((rows > 0).sum(1), 32),
        "warp.any(v > 900) as i32": numpy.repeat((rows > 900).any(1), 32), "warp.all(v > -900) as i32": numpy.repeat((rows > -900).all(1), 32),
    }
    bodies = [(e.replace("v", "x[thread.global_id]", 1) if "(v" in e else e, None) for e in expected]
    for device in backends:
        found = results(vortex, tmp_path, device, bodies, {"x": (x, "Tensor<i32, [N]>")}, "x: &Tensor<i32, [N]>", "Tensor<i32, [N]>")
        for e, actual in zip(expected, found):
            assert (actual == expected[e]).all(), f"{e} on {device}"


def test_random_numbers_are_the_same_everywhere_and_have_their_moments(vortex, tmp_path, backends):
    program = tmp_path / "random.vx"
    program.write_text(
        "fn main() {\n    let to = args()\n"
        "    save_npy(to[0], random.normal([100_001], seed = 7, mean = 3.0, std = 2.0))\n"
        "    save_npy(to[1], random.uniform([100_001], seed = 7, low = -1.0, high = 3.0))\n"
        "    save_npy(to[2], random.integer([100_001], seed = 7, low = -5, high = 5))\n"
        "    save_npy(to[3], random.normal([1000], seed = 7, mean = 3.0, std = 2.0))\n}\n"
    )
    runs = []
    for device in backends:
        paths = [tmp_path / f"{device}{i}.npy" for i in range(4)]
        vortex("run", program, "--device", device, "--", *paths)
        runs.append([numpy.load(path) for path in paths])
    for first, other in zip(runs[0], runs[-1]):
        assert (first == other).all()
    normal, uniform, integer, prefix = runs[0]
    assert abs(normal.mean() - 3) < 0.05 and abs(normal.std() - 2) < 0.05
    assert uniform.min() >= -1 and uniform.max() < 3 and abs(uniform.mean() - 1) < 0.02
    assert set(integer) == set(range(-5, 5))
    assert (prefix == normal[:1000]).all()


def test_host_functions(vortex, tmp_path, device):
    lines = "".join(f"    assert_close({name}({value}f64), {float(fn(numpy.float64(value)))!r}f64, rtol = 1e-13, atol = 1e-15)\n"
                    for name, (fn, _) in UNARY.items() for value in [0.3, 0.9])
    program = tmp_path / "host.vx"
    program.write_text("fn main() {\n" + lines + """
    assert_eq(parse_int("-42"), -42)
    assert_close(parse_float("2.5e3"), 2500.0)
    assert_eq(format("{}-{}", 1, true), "1-true")
    assert_eq((7).to_text(), "7")
    var v = vec![3, 1, 2]
    v.push(0)
    v.sort()
    assert_eq(v, vec![0, 1, 2, 3])
    assert_eq(v.pop(), 3)
    assert_eq(v.len(), 3)
    assert_eq(v[1..3].copy(), vec![1, 2])
    assert_eq(Vec.filled(3, 9), vec![9, 9, 9])
    assert_eq(Vec.range(2, 5), vec![2, 3, 4])
    assert_eq(full(2.5, [3]).to_host(), vec![2.5, 2.5, 2.5])
    assert(time(|| print("timed")) >= 0.0)
    let path = args()[0]
    write_file(path, "text")
    assert_eq(read_text(path), "text")
    assert_eq(read_file(path).len(), 4)
    exit(0)
}
""")
    assert "timed" in vortex("run", program, "--device", device, "--", tmp_path / "text.txt").stdout


def test_shared_memory_in_a_whole_tensor_kernel(vortex, tmp_path, backends):
    program = tmp_path / "shared.vx"
    program.write_text("kernel f(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> {\n    let t: Tensor<f32, [32]> @shared\n    t[0] = 1.0\n    return x + t[0]\n}\n"
                       "fn main() {\n    assert_eq(f(&full(3.0, [70])).to_host(), vec![4.0; 70])\n}\n")
    for device in backends:
        vortex("run", program, "--device", device)


def test_accuracy_is_stated_as_tests_enforce_it(root):
    """src/base/float_functions.h holds the bounds that the tests of the back ends use."""
    rows = re.findall(r'X\(\w+, "(\w+)", .*?, ([\d.]+)\) *\\?\n', (root / "src/base/float_functions.h").read_text() + "\n")
    enforced = {name: float(bound) for name, bound in rows}
    stated = {}
    table = (root / "docs/library.md").read_text().split("### Accuracy in kernels")[1].split("f64:")[0]
    for functions, bound in re.findall(r"^\| (`.*`) \| ([\d.]+)", table, re.M):
        stated.update({name: float(bound) for name in re.findall(r"`(\w+)`", functions)})
    assert len(enforced) > 20 and {name: stated.get(name) for name in enforced} == enforced
