"""Foreign kernels, unmodified: those of MLX, read from shared/metal-kernels where it lies beside the project, against NumPy."""
import pathlib

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = next((path for path in (ROOT.parent / "shared/metal-kernels", ROOT.parents[1] / "shared/metal-kernels") if path.is_dir()), None)
KERNELS = FOLDER / "mlx/backend/metal/kernels" if FOLDER else pathlib.Path()
pytestmark = pytest.mark.skipif(FOLDER is None, reason="shared/metal-kernels is not there")
RNG = np.random.default_rng()


def f4(*shape):
    return RNG.standard_normal(shape).astype("f4")


def launch(vortex, tmp_path, file, kernel, grid, block, buffers, out, *options):
    """The buffer `out` after the launch. Arrays are passed as files, texts as they are."""
    words = []
    for index, value in enumerate(buffers):
        if isinstance(value, np.ndarray):
            np.save(tmp_path / f"{index}.npy", value)
            value = f"{index}.npy"
        words += ["--buffer", f"{index}={value}"]
    vortex("run", KERNELS / file, "-I", FOLDER, "--kernel", kernel, "--grid", grid, "--block", block, *words, "--save", f"{out}=out.npy", *options, cwd=tmp_path)
    return np.load(tmp_path / "out.npy")


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def norm(x, eps):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)


X, Y, ROWS, W, B = f4(1003), f4(1003), f4(5, 301), f4(301), f4(301)
HALF = X.astype("f2")
INTS = RNG.integers(-1000, 1000, 1003, dtype="i4")
CASES = [  # name, file, kernel, grid, block, buffers, number of the result, expected
    ("arange", "arange.metal", "arangefloat32", "1003", "64", ["f32:2", "f32:0.5", np.zeros(1003, "f4")], 2, 2 + 0.5 * np.arange(1003)),
    ("exp", "unary.metal", "v_Expfloat32float32", "1003", "64", [X, np.zeros(1003, "f4"), "u32:1003"], 1, np.exp(X)),
    ("several_per_thread", "unary.metal", "vn_Sinfloat32float32", "502", "64", [X, np.zeros(1003, "f4"), "u32:1003"], 1, np.sin(X)),
    ("sqrt_of_half", "unary.metal", "v_Sqrtfloat16float16", "1003", "64", [abs(HALF), np.zeros(1003, "f2"), "u32:1003"], 1, np.sqrt(abs(HALF))),
    ("erf", "unary.metal", "v_Erffloat32float32", "1003", "64", [X, np.zeros(1003, "f4"), "u32:1003"], 1, np.vectorize(__import__("math").erf)(X)),
    ("add", "binary.metal", "vv_Addfloat32", "1003", "64", [X, Y, np.zeros(1003, "f4"), "u32:1003"], 2, X + Y),
    ("multiply_by_scalar", "binary.metal", "vs_Multiplyint32", "1003", "64", [INTS, "i32:7", np.zeros(1003, "i4"), "u32:1003"], 2, INTS * 7),
    ("maximum", "binary.metal", "vv_Maximumfloat32", "1003", "64", [X, Y, np.zeros(1003, "f4"), "u32:1003"], 2, np.maximum(X, Y)),
    ("select", "ternary.metal", "v_Selectfloat32", "1003", "64", [(X > 0).astype("u1"), X, Y, np.zeros(1003, "f4"), "u32:1003"], 3, np.where(X > 0, X, Y)),
    ("softmax", "softmax.metal", "block_softmax_float32", "640", "128", [ROWS, np.zeros((5, 301), "f4"), "i32:301"], 1, softmax(ROWS)),
    ("softmax_of_half", "softmax.metal", "block_softmax_precise_float16", "640", "128", [ROWS.astype("f2"), np.zeros((5, 301), "f2"), "i32:301"], 1, softmax(ROWS)),
    ("logsumexp", "logsumexp.metal", "block_logsumexp_float32", "640", "128", [ROWS, np.zeros(5, "f4"), "i32:301"], 1, np.log(np.exp(ROWS).sum(-1))),
    ("rms_norm", "rms_norm.metal", "rmsfloat32", "640", "128", [ROWS, W, np.zeros((5, 301), "f4"), "f32:1e-5", "u32:301", "u32:1"], 2,
     ROWS / np.sqrt((ROWS**2).mean(-1, keepdims=True) + 1e-5) * W),
    ("layer_norm", "layer_norm.metal", "layer_normfloat32", "640", "128", [ROWS, W, B, np.zeros((5, 301), "f4"), "f32:1e-5", "u32:301", "u32:1", "u32:1"], 3, norm(ROWS, 1e-5) * W + B),
    ("argmax", "arg_reduce.metal", "argmax_float32", "32,5", "32", [ROWS, np.zeros(5, "u4"), "i32:5", "i64:301", "i64:1", "u64:1", "i64:1", "u64:301"], 1, ROWS.argmax(-1)),
    ("all_reduce", "reduce.metal", "all_reduce_sumfloat32", "256", "256", [X, np.zeros(1, "f4"), "u64:1003", "u64:1003"], 1, np.array([X.astype("f8").sum()])),
]


@pytest.mark.parametrize("name, file, kernel, grid, block, buffers, out, expected", CASES, ids=[case[0] for case in CASES])
def test_kernel_gives_what_numpy_gives(vortex, device, tmp_path, name, file, kernel, grid, block, buffers, out, expected):
    got = launch(vortex, tmp_path, file, kernel, grid, block, buffers, out, "--device", device)
    tolerance = 2e-3 if got.dtype == np.float16 else 2e-5
    np.testing.assert_allclose(got.astype("f8"), expected, rtol=tolerance, atol=tolerance)
