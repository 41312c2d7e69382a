"""Every example against NumPy in float64, on fresh random data of ragged sizes."""
import math

import numpy
import pytest

EXAMPLES = ["scale", "vector_add", "saxpy", "activations", "softmax", "rmsnorm", "layernorm", "linear_gelu", "reduce", "histogram", "transpose",
            "prefix_sum", "jacobi", "blur", "warp", "modules", "calculator", "generics",
            "attention", "fft", "radix_sort", "nbody"]
LENGTHS = [1, 31, 256, 257, 4999]
SHAPES = [(1, 1), (1, 257), (33, 1), (7, 64), (61, 131)]


def normal(rng, *shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(numpy.float32)


def f64(x):
    return x.astype(numpy.float64)


def close(actual, expected, rtol, atol):
    assert actual.shape == expected.shape
    numpy.testing.assert_allclose(f64(actual), expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", EXAMPLES)
def test_verifies_itself_on_its_own_data(vortex, device, name):
    done = vortex("run", f"examples/{name}.vx", "--device", device)
    assert done.stdout.startswith(f"{name}: ")
    assert done.stderr == ""


@pytest.mark.parametrize("name", ["scale", "softmax", "reduce", "transpose", "prefix_sum", "warp", "attention", "fft", "radix_sort", "nbody"])
def test_passes_every_check_of_the_interpreter(vortex, tmp_path, name, rng):
    x = {"softmax": normal(rng, 9, 70), "transpose": normal(rng, 45, 70), "prefix_sum": rng.integers(-9, 9, 700), "attention": normal(rng, 2, 45, 64),
         "fft": normal(rng, 2, 512), "radix_sort": rng.integers(0, 2**32, 700, dtype=numpy.uint32), "nbody": normal(rng, 70, 7)}.get(name, normal(rng, 700))
    numpy.save(tmp_path / "x.npy", x)
    inputs = [tmp_path / "x.npy"] * {"warp": 2, "fft": 2, "attention": 3}.get(name, 1)
    vortex("run", f"examples/{name}.vx", "--check", "--", *inputs)


@pytest.mark.parametrize("length", LENGTHS)
def test_scale(example, rng, length):
    x = normal(rng, length)
    (y,) = example("scale", x, outputs=1)
    assert (y == 2 * x).all()


@pytest.mark.parametrize("length", LENGTHS)
def test_vector_add(example, rng, length):
    a, b = normal(rng, length), normal(rng, length)
    (c,) = example("vector_add", a, b, outputs=1)
    assert (c == a + b).all()


@pytest.mark.parametrize("length", LENGTHS)
def test_saxpy(example, rng, length):
    x, y = normal(rng, length), normal(rng, length)
    (z,) = example("saxpy", 0.75, x, y, outputs=1)
    close(z, 0.75 * f64(x) + f64(y), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("length", LENGTHS)
def test_activations(example, rng, length):
    x = normal(rng, length, scale=5)
    x[: min(length, 6)] = [0.0, -0.0, 30.0, -30.0, 1e-20, -5.5][: min(length, 6)]
    silu, gelu, gelu_tanh = example("activations", x, outputs=3)
    v = f64(x)
    erf = numpy.vectorize(math.erf)
    close(silu, v / (1 + numpy.exp(-v)), rtol=2e-6, atol=1e-6)
    close(gelu, 0.5 * v * (1 + erf(v / math.sqrt(2))), rtol=2e-6, atol=1e-6)
    close(gelu_tanh, 0.5 * v * (1 + numpy.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_softmax(example, rng, shape):
    x = normal(rng, *shape, scale=30)
    (y,) = example("softmax", x, outputs=1)
    e = numpy.exp(f64(x) - f64(x).max(axis=-1, keepdims=True))
    close(y, e / e.sum(axis=-1, keepdims=True), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
def test_rmsnorm(example, rng, shape):
    x, w = normal(rng, *shape), normal(rng, shape[1])
    (y,) = example("rmsnorm", x, w, outputs=1)
    v = f64(x)
    close(y, v / numpy.sqrt((v * v).mean(axis=-1, keepdims=True) + 1e-5) * w, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_layernorm(example, rng, shape):
    x, w, b = normal(rng, *shape) + 3, normal(rng, shape[1]), normal(rng, shape[1])
    (y,) = example("layernorm", x, w, b, outputs=1)
    v = f64(x)
    v = v - v.mean(axis=-1, keepdims=True)
    close(y, v / numpy.sqrt((v * v).mean(axis=-1, keepdims=True) + 1e-5) * w + b, rtol=1e-4, atol=1e-5)


def rounded(x, kind):
    """f32 numbers rounded to the nearest of the type, ties to even, as f64."""
    if kind == "f16":
        return f64(x.astype(numpy.float16))
    if kind == "bf16":
        bits = x.view(numpy.uint32)
        return f64(((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(numpy.uint32).view(numpy.float32))
    return f64(x)


def check_matmul(example, rng, kind, m, n, k):
    a, b = normal(rng, m, k), normal(rng, k, n)
    (c,) = example("matmul", kind, a, b, outputs=1)
    x, y = rounded(a, kind), rounded(b, kind)
    # Relative to the sum of the terms' sizes: a sum may cancel.
    assert c.dtype == numpy.float32 and c.shape == (m, n)
    assert (abs(f64(c) - x @ y) <= 1e-6 * (abs(x) @ abs(y))).all()


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("size", [(1, 1, 1), (17, 17, 17), (1, 65, 33), (65, 1, 129), (47, 33, 1)])
def test_matmul(example, rng, kind, size):
    check_matmul(example, rng, kind, *size)


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
def test_large_ragged_matmul(example, rng, kind, small):
    if small:
        pytest.skip("a thousand million steps of the interpreter")
    check_matmul(example, rng, kind, 1000, 999, 1003)


@pytest.mark.parametrize("size", [(1, 1, 1), (17, 33, 65), (64, 48, 80)])
def test_linear_gelu(example, rng, size):
    m, n, k = size
    x, w, b = normal(rng, m, k), normal(rng, k, n, scale=0.2), normal(rng, n)
    (y,) = example("linear_gelu", x, w, b, outputs=1)
    h = f64(x) @ f64(w) + f64(b)
    close(y, 0.5 * h * (1 + numpy.vectorize(math.erf)(h / math.sqrt(2))), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("length", LENGTHS)
def test_reduce(example, rng, length):
    x = normal(rng, length)
    (total,) = example("reduce", x, outputs=1)
    assert abs(float(total[0]) - f64(x).sum()) <= 1e-6 * abs(f64(x)).sum()


@pytest.mark.parametrize("length", [1, 255, 4096, 9001])
def test_histogram(example, rng, length):
    x = (rng.integers(0, 256, length) & rng.integers(0, 256, length)).astype(numpy.uint8)
    (counts,) = example("histogram", x, outputs=1)
    assert (counts == numpy.bincount(x, minlength=256)).all()


@pytest.mark.parametrize("shape", SHAPES + [(32, 32), (33, 65)])
def test_transpose(example, rng, shape):
    x = normal(rng, *shape)
    (y,) = example("transpose", x, outputs=1)
    assert (y == x.T).all()


@pytest.mark.parametrize("length", [1, 255, 256, 257, 9001])
def test_prefix_sum(example, rng, length):
    x = rng.integers(-(2**40), 2**40, length)
    (y,) = example("prefix_sum", x, outputs=1)
    assert (y == numpy.cumsum(x)).all()


def test_prefix_sum_of_three_levels(example, rng, small):
    if small:
        pytest.skip("too long for the interpreter")
    x = rng.integers(-100, 100, 256 * 256 + 3)
    (y,) = example("prefix_sum", x, outputs=1)
    assert (y == numpy.cumsum(x)).all()


@pytest.mark.parametrize("heads, length", [(1, 1), (2, 32), (1, 33), (3, 95)])
def test_attention(example, rng, heads, length):
    q, k, v = (normal(rng, heads, length, 64) for _ in range(3))
    (y,) = example("attention", q, k, v, outputs=1)
    scores = f64(q) @ f64(k).transpose(0, 2, 1) / 8
    scores[:, numpy.triu(numpy.ones((length, length), bool), 1)] = -numpy.inf
    p = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
    close(y, p / p.sum(axis=-1, keepdims=True) @ f64(v), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 7])
def test_fft(example, rng, rows):
    re, im = normal(rng, rows, 512), normal(rng, rows, 512)
    real, imaginary = example("fft", re, im, outputs=2)
    expected = numpy.fft.fft(f64(re) + 1j * f64(im))
    close(real, expected.real, rtol=1e-4, atol=1e-3)
    close(imaginary, expected.imag, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("length", [1, 255, 256, 257, 3001])
def test_radix_sort(example, rng, length):
    keys = rng.integers(0, 2**32, length, dtype=numpy.uint32) & rng.integers(0, 2**32, length, dtype=numpy.uint32)
    (y,) = example("radix_sort", keys, outputs=1)
    assert y.dtype == numpy.uint32 and (y == numpy.sort(keys)).all()


@pytest.mark.parametrize("count", [1, 64, 65, 150])
def test_nbody(example, rng, count):
    bodies = normal(rng, count, 7)
    bodies[:, 6] = abs(bodies[:, 6])
    (y,) = example("nbody", bodies, outputs=1)
    at, velocity, mass = f64(bodies[:, :3]), f64(bodies[:, 3:6]), f64(bodies[:, 6])
    for _ in range(5):
        away = at[None] - at[:, None]
        velocity = velocity + 0.001 * (away * (mass * ((away * away).sum(axis=-1) + 0.01) ** -1.5)[..., None]).sum(axis=1)
        at = at + 0.001 * velocity
    close(y, numpy.concatenate([at, velocity, mass[:, None]], axis=1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(3, 3), (9, 14), (17, 11)])
def test_jacobi(example, rng, shape):
    u = normal(rng, *shape)
    (y,) = example("jacobi", u, outputs=1)
    v = f64(y)
    mean = 0.25 * (v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:])
    inner = numpy.zeros(shape, bool)
    inner[1:-1, 1:-1] = True
    assert (y[~inner] == u[~inner]).all()
    # It stops at a change of 1e-4; the next change is no larger.
    assert abs(mean - v[1:-1, 1:-1]).max() <= 1.01e-4


def write_pgm(path, image, comment=b""):
    path.write_bytes(b"P5\n" + comment + b"%d %d\n255\n" % (image.shape[1], image.shape[0]) + image.tobytes())


def read_pgm(path):
    data = path.read_bytes()
    header, size, levels, pixels = data.split(b"\n", 3)
    assert (header, levels) == (b"P5", b"255")
    width, height = map(int, size.split())
    return numpy.frombuffer(pixels, numpy.uint8).reshape(height, width)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (19, 41)])
def test_blur(vortex, backend, rng, tmp_path, shape):
    image = rng.integers(0, 256, shape).astype(numpy.uint8)
    write_pgm(tmp_path / "in.pgm", image, comment=b"# noise\n")
    vortex("run", "examples/blur.vx", "--device", backend, "--", tmp_path / "in.pgm", tmp_path / "out.pgm")
    padded = numpy.pad(image.astype(int), 2, mode="edge")
    weights = [1, 4, 6, 4, 1]
    total = sum(weights[dy] * weights[dx] * padded[dy : dy + shape[0], dx : dx + shape[1]] for dy in range(5) for dx in range(5))
    assert (read_pgm(tmp_path / "out.pgm") == (total + 128) // 256).all()


@pytest.mark.parametrize("length", LENGTHS)
def test_warp(example, rng, length):
    a, b = normal(rng, length), normal(rng, length)
    (found,) = example("warp", a, b, outputs=1)
    x, y = f64(a), f64(b)
    assert abs(found[0] - x @ y) <= 1e-6 * (abs(x) @ abs(y))
    assert found[1] == (a > b).sum()


def test_calculator(vortex, backend):
    assert "calculator: 14.0 " in vortex("run", "examples/calculator.vx", "--device", backend, "--", "3", "4", "+", "2", "*").stdout
