"""Loops of tile code that add up products, against NumPy: every size of blocks that has a way of its own on some GPU, operands that lie along the depth or
across it, ragged edges, tensors whose rows are aligned for bulk copies and tensors whose rows are not, and windows in another order than the blocks'."""
import numpy as np
import pytest

TILES = [(64, 64), (64, 128), (128, 64), (128, 128), (128, 256), (64, 256), (128, 160), (48, 80)]
SOURCE = """
@tile(m = BM, n = BN)
kernel product(a: &Tensor<f16, [{a}]>, b: &Tensor<f16, [{b}]>, scale: &Tensor<f32, [M, 1]>, shift: &Tensor<f32, [N]>) -> Tensor<f32, [M, N]> {{
    let sa: Tensor<f16, [{sa}]> @shared
    let sb: Tensor<f16, [{sb}]> @shared
    var acc: Tensor<f32, [BM, BN]> @local = zeros()
    for k in range(0, K, STEP) {{
        sa = stage(a[{wa}])
        sb = stage(b[{wb}])
        sync_block()
        acc += {x} @ {y}
    }}
    return {result}
}}
fn main() {{
    let a: Tensor<f16, [{a}]> = load_npy("{folder}/a.npy")
    let b: Tensor<f16, [{b}]> = load_npy("{folder}/b.npy")
    let scale: Tensor<f32, [M, 1]> = load_npy("{folder}/scale.npy")
    let shift: Tensor<f32, [N]> = load_npy("{folder}/shift.npy")
    save_npy("{folder}/y.npy", product(&a, &b, &scale, &shift).to_host())
}}
"""


def program(folder, rows, columns, step, turns, finishes):
    across, along = turns
    fields = {"folder": folder,
              "a": "K, M" if across else "M, K", "sa": "STEP, BM" if across else "BM, STEP",
              "wa": "k..+STEP, block_m..+BM" if across else "block_m..+BM, k..+STEP", "x": "sa.transpose()" if across else "sa",
              "b": "N, K" if along else "K, N", "sb": "BN, STEP" if along else "STEP, BN",
              "wb": "block_n..+BN, k..+STEP" if along else "k..+STEP, block_n..+BN", "y": "sb.transpose()" if along else "sb",
              "result": "max(acc * scale[block_m..+BM, 0..1] + shift[block_n..+BN], -3.0)" if finishes else "acc"}
    return SOURCE.format(**fields).replace("STEP", str(step)).replace("BM", str(rows)).replace("BN", str(columns))


@pytest.mark.parametrize("rows, columns", TILES)
@pytest.mark.parametrize("turns", [(False, False), (False, True), (True, False), (True, True)])
def test_products_of_blocks(vortex, device, tmp_path, rows, columns, turns):
    random = np.random.default_rng()
    line = int(random.choice([1, 8]))
    m, n, k = (int(random.integers(1, most // line + 2)) * line for most in (3 * rows, 3 * columns, 200))
    finishes, step = bool(random.integers(2)), int(random.choice([16, 32, 64]))
    a, b = random.integers(-4, 5, (m, k)).astype("f2"), random.integers(-4, 5, (k, n)).astype("f2")
    scale, shift = random.integers(-2, 3, (m, 1)).astype("f4"), random.integers(-9, 9, n).astype("f4")
    for name, values in {"a": a.T if turns[0] else a, "b": b.T if turns[1] else b, "scale": scale, "shift": shift}.items():
        np.save(tmp_path / f"{name}.npy", np.ascontiguousarray(values))
    path = tmp_path / "product.vx"
    path.write_text(program(tmp_path, rows, columns, step, turns, finishes))
    vortex("run", path, "--device", device)
    expected = a.astype("f8") @ b.astype("f8")
    if finishes:
        expected = np.maximum(expected * scale + shift, -3)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy").reshape(m, n), expected, err_msg=f"{m} x {n} x {k}, {finishes=}, {step=}")
