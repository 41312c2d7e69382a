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
        if value is None:
            continue
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


def rope(x, offset, scale, base):
    half = x.shape[1] // 2
    theta = scale * offset * np.exp2(-np.arange(half) / half * base)
    first, second = x[:, :half], x[:, half:]
    return np.concatenate([first * np.cos(theta) - second * np.sin(theta), first * np.sin(theta) + second * np.cos(theta)], 1)


def random_bytes(keys, count, pairs):
    """Threefry with 20 rounds, by its definition: each thread makes two words of its key, which stand half of the row apart."""
    def turn(v, by):
        return ((v << by) | (v >> (32 - by))) & 0xFFFFFFFF

    rows = []
    for a, b in keys.astype(int).reshape(-1, 2).tolist():
        words, key = [0] * (2 * pairs), (a, b, a ^ b ^ 0x1BD11BDA)
        for k in range(pairs):
            x, y = (k + key[0]) & 0xFFFFFFFF, (k + pairs + key[1]) & 0xFFFFFFFF
            for i in range(5):
                for r in ((13, 15, 26, 6), (17, 29, 16, 24))[i % 2]:
                    x = (x + y) & 0xFFFFFFFF
                    y = turn(y, r) ^ x
                x, y = (x + key[(i + 1) % 3]) & 0xFFFFFFFF, (y + key[(i + 2) % 3] + i + 1) & 0xFFFFFFFF
            words[k], words[k + pairs] = x, y
        rows.append(np.array(words, "u4").view("u1")[:count])
    return np.array(rows)


def gemm_params(m, n, k, lda, ldb):
    """GEMMParams as words: three strides of batches have 64 bits."""
    return "i32:" + ",".join(map(str, [m, n, k, lda, ldb, n, -(-n // 32), -(-m // 32), 0, 0, 0, 0, 0, 0, 0, k // 16, 0, 0]))


X, Y, ROWS, W, B = f4(1003), f4(1003), f4(5, 301), f4(301), f4(301)
HALF = X.astype("f2")
INTS = RNG.integers(-1000, 1000, 1003, dtype="i4")
SORTED = np.sort(X)
LEFT, RIGHT = f4(45, 53), f4(53, 37)
UNUSED = ["u8[32]", "i32:0", "i64:0"]  # what parameters refer to that a function constant leaves out
GEMM = [word for index in (10, 100, 110, 200, 201, 202) for word in ("--constant", f"{index}=false")]
QUANTA, SCALES, BIASES, VECTOR = RNG.integers(0, 16, (13, 288)), f4(13, 9), f4(13, 9), f4(288)
WORDS = (QUANTA.reshape(13, 36, 8) << (4 * np.arange(8))).sum(-1).astype("u4")  # eight numbers of four bits in a word
WEIGHTS = QUANTA * SCALES.repeat(32, 1) + BIASES.repeat(32, 1)
NOTHING = ["i32:0", "i32:0", "i64:0", "i32:0", "i32:0", "i64:0", "i64:0", "i64:0"]
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
    ("rope", "rope.metal", "rope_single_float32", "19,5", "8,2", [ROWS[:, :38].copy(), np.zeros((5, 38), "f4"), "i32:7", "f32:0.5", "i64:38"] + [None] * 5 + ["f32:9"], 1,
     rope(ROWS[:, :38], 7, 0.5, 9), "--constant", "1=true", "--constant", "2=false", "--constant", "3=false"),
    ("scan", "scan.metal", "contig_scan_inclusive_sum_float32_float32", "64,5", "64", [ROWS, np.zeros((5, 301), "f4"), "u64:301"], 1, ROWS.cumsum(1, dtype="f8")),
    ("exclusive_scan", "scan.metal", "contig_scan_exclusive_sum_int32_int32", "64", "64", [INTS, np.zeros(1003, "i4"), "u64:1003"], 1, INTS.cumsum() - INTS),
    ("reverse_scan", "scan.metal", "contig_scan_reverse_inclusive_max_int32_int32", "96", "96", [INTS, np.zeros(1003, "i4"), "u64:1003"], 1, np.maximum.accumulate(INTS[::-1])[::-1]),
    ("sort", "sort.metal", "c_block_sort_float32_float32_bn128_tn4", "128,5", "128", [ROWS, np.zeros((5, 301), "f4"), "i32:301", "i32:1", "i32:1", "i32:301", "i32:301"], 1, np.sort(ROWS)),
    ("argsort", "sort.metal", "carg_block_sort_float32_uint32_bn128_tn4", "128,5", "128", [ROWS, np.zeros((5, 301), "u4"), "i32:301", "i32:1", "i32:1", "i32:301", "i32:301"], 1, np.argsort(ROWS)),
    ("quantised_matrix_vector", "quantized.metal", "affine_qmv_float_gs_32_b_4_batch_0", "32,4", "32,2", [WORDS, SCALES, BIASES, VECTOR, np.zeros(13, "f4"), "i32:288", "i32:13", *NOTHING], 4,
     WEIGHTS @ VECTOR),
    ("steel_gemm", "steel/gemm/kernels/steel_gemm_fused.metal", "steel_gemm_fused_nn_float32_float32_bm32_bn32_bk16_wm2_wn2", "64,4,2", "32,2,2",
     [LEFT, RIGHT, "f32:0", np.zeros((45, 37), "f4"), gemm_params(45, 37, 53, 53, 37), *UNUSED], 3, LEFT.astype("f8") @ RIGHT, *GEMM),
    ("steel_gemm_of_half", "steel/gemm/kernels/steel_gemm_fused.metal", "steel_gemm_fused_nt_float16_float16_bm32_bn32_bk16_wm2_wn2", "64,4,2", "32,2,2",
     [LEFT.astype("f2"), RIGHT.T.astype("f2").copy(), "f16:0", np.zeros((45, 37), "f2"), gemm_params(45, 37, 53, 53, 53), *UNUSED], 3, LEFT.astype("f2").astype("f8") @ RIGHT.astype("f2"), *GEMM),
    ("searchsorted", "searchsorted.metal", "searchsorted_float32_right", "53", "32", [SORTED, Y[:53].copy(), np.full(53, 77, "u4"), "u32:1003", "i64:1"], 2,
     np.searchsorted(SORTED, Y[:53], "right")),
    ("dot", "dot.metal", "dot_product_float32_it32_tg512_sg16", "512", "512", [X, Y, np.full(1, 77, "f4"), "i32:1003"], 2, np.array([X.astype("f8") @ Y])),
    ("matrix_vector", "gemv.metal", "gemv_float32_bm4_bn1_sm1_sn32_tm4_tn4_nc0_axpby0", "96,1,4", "32,1,4",
     [LEFT, RIGHT[:, 0].copy(), np.zeros(4, "f4"), np.full(45, 77, "f4"), "i32:53", "i32:45", "i32:53", "f32:1", "f32:0", "i32:1", "i32:1", "i64:0", "i64:0", "i64:0", "i32:1"], 3,
     LEFT.astype("f8") @ RIGHT[:, 0]),
    ("strided_copy", "copy.metal", "g2_copyint32float32", "17,59", "8,8", [INTS, np.full(1003, 77, "f4"), None, "i64:1,59"], 1, INTS.reshape(17, 59).T.ravel().astype("f4")),
    ("divmod", "binary_two.metal", "vv_DivModint32", "1003", "64", [INTS, INTS[::-1] // 7 * 2 + 1, np.zeros(1003, "i4"), np.zeros(1003, "i4"), "u32:1003"], 3,
     np.mod(INTS, INTS[::-1] // 7 * 2 + 1)),
    ("fence_update", "fence.metal", "fence_update", "1", "1", ["u32:3", "u32:9"], 0, np.array([9])),
    ("fence_wait", "fence.metal", "fence_wait", "1", "1", ["u32:9", "u32:9"], 0, np.array([9])),
    ("coherent_input", "fence.metal", "input_coherent", "64", "32", [INTS[:50].astype("u4"), "u32:50"], 0, INTS[:50].astype("u4")),
    ("random_bits", "random.metal", "rbitsc", "3,4", "3,4", [INTS[:6].astype("u4"), np.zeros((3, 30), "u1"), "u8:0", "u64:30"], 1, random_bytes(INTS[:6].astype("u4"), 30, 4)),
]
SUMS = ("quantised_matrix_vector", "steel_gemm", "steel_gemm_of_half", "dot", "matrix_vector", "all_reduce", "scan")


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_kernel_gives_what_numpy_gives(vortex, device, tmp_path, case):
    _, file, kernel, grid, block, buffers, out, expected, *options = case
    got = launch(vortex, tmp_path, file, kernel, grid, block, buffers, out, *options, "--device", device)
    tolerance = 1e-2 if "steel_gemm_of_half" in case[0] else 2e-3 if got.dtype == np.float16 else 2e-5
    # The error of a sum of products follows its terms, however small the sum is.
    scale = np.sqrt(np.mean(np.square(expected, dtype="f8"))) if case[0] in SUMS else 1
    np.testing.assert_allclose(got.astype("f8"), expected, rtol=tolerance, atol=tolerance * max(1, scale))


FILES = sorted(KERNELS.glob("**/*.metal")) if FOLDER else []


def test_all_files_are_there():
    assert len(FILES) == 42 and sum("_nax" in path.stem for path in FILES) == 7


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_compile_but_those_that_need_a_library_of_apples(vortex, path):
    """All of their kernels, 35 of 42 files: after that none has the name that is asked for."""
    done = vortex("build", path, "-I", FOLDER, "--kernel", "none", status=1)
    if "_nax" in path.stem:
        assert "error[E0901]" in done.stderr and "'MetalPerformancePrimitives/MetalPerformancePrimitives.h' file not found" in done.stderr
    else:
        assert "error[E0807]" in done.stderr and "has no kernel `none`; there are `" in done.stderr, done.stderr[:2000]
