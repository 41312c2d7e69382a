"""Whole-tensor kernels that regroup dimensions or meet their own transpose: they agree with NumPy, and no phase of them is one block."""
import re

import numpy as np
import pytest

# name: (parameters, result, body, the same in NumPy)
KERNELS = {
    "flatten": ("x: &Tensor<f32, [M, N]>", "[M * N]", "(x * 2.0).reshape([M * N])", lambda x: (x * 2).ravel()),
    "flatten_compute": ("x: &Tensor<f32, [M, N]>, v: &Tensor<f32, [N]>", "[M * N]", "(x + v).reshape([M * N]) * 3.0", lambda x, v: (x + v).ravel() * 3),
    "flatten_scan": ("x: &Tensor<f32, [M, N]>", "[M * N]", "x.reshape([M * N]).cumsum()", lambda x: x.ravel().cumsum()),
    "there_and_back": ("x: &Tensor<f32, [M, N]>", "[M, N]", "softmax(x, dim = 1).reshape([M * N]).reshape([M, N])",
                       lambda x: np.exp(x - x.max(1, keepdims=True)) / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)),
    "regroup": ("x: &Tensor<f32, [M, N]>", "[N, M]", "x.reshape([N, M]) + 1.0", lambda x: x.reshape(x.shape[1], x.shape[0]) + 1),
    "flatten_three": ("t: &Tensor<f32, [3, M, N]>", "[3 * M * N]", "-(t.reshape([3 * M * N]))", lambda t: -t.ravel()),
    "batched_rows": ("t: &Tensor<f32, [3, M, N]>, w: &Tensor<f32, [N, P]>", "[3, M, P]", "(t.reshape([3 * M, N]) @ w).reshape([3, M, P])",
                     lambda t, w: t @ w),
    "merged_rows": ("t: &Tensor<f32, [3, M, N]>", "[3 * M]", "t.reshape([3 * M, N]).sum(dim = 1)", lambda t: t.sum(2).ravel()),
    "symmetric": ("q: &Tensor<f32, [M, M]>", "[M, M]", "(q + q.transpose()) * 0.5", lambda q: (q + q.T) / 2),
    "differences": ("u: &Tensor<f32, [M]>", "[M, M]", "u.reshape([M, 1]) - u.reshape([1, M])", lambda u: u[:, None] - u[None, :]),
    "gram": ("x: &Tensor<f32, [M, N]>", "[M, M]", "x @ x.transpose()", lambda x: x @ x.T),
    "covariance": ("x: &Tensor<f32, [M, N]>", "[M, M]", "(x - x.mean(dim = 1, keepdim = true)) @ (x - x.mean(dim = 1, keepdim = true)).transpose()",
                   lambda x: (x - x.mean(1, keepdims=True)) @ (x - x.mean(1, keepdims=True)).T),
    "distances": ("x: &Tensor<f32, [M, N]>", "[M, M]",
                  "(x * x).sum(dim = 1).reshape([M, 1]) + (x * x).sum(dim = 1).reshape([1, M]) - 2.0 * (x @ x.transpose())",
                  lambda x: (x * x).sum(1)[:, None] + (x * x).sum(1)[None, :] - 2 * (x @ x.T)),
    "squared": ("q: &Tensor<f32, [M, M]>", "[M, M]", "q @ q", lambda q: q @ q),
}
INPUTS = {"x": ("M", "N"), "v": ("N",), "t": (3, "M", "N"), "w": ("N", "P"), "q": ("M", "M"), "u": ("M",)}


def names(parameters):
    return re.findall(r"(\w+): &", parameters)


def program():
    kernels = "".join(f"kernel {name}({parameters}) -> Tensor<f32, {result}> {{ return {body} }}\n" for name, (parameters, result, body, _) in KERNELS.items())
    body = "    let p = args()\n"
    for name, shape in INPUTS.items():
        extents = ", ".join(f"{d}_{name}" if isinstance(d, str) else str(d) for d in shape)
        body += f'    let {name}: Tensor<f32, [{extents}]> = load_npy(format("{{}}/{name}.npy", p[0]))\n'
    for name, (parameters, *_) in KERNELS.items():
        arguments = ", ".join("&" + argument for argument in names(parameters))
        body += f'    save_npy(format("{{}}/{name}.npy", p[1]), {name}({arguments}))\n'
    return f"{kernels}fn main() {{\n{body}}}\n"


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 3, 2), (1, 700, 9), (700, 1, 33), (130, 257, 40), (600, 90, 300)])
def test_they_agree_with_numpy(vortex, tmp_path, shape):
    (tmp_path / "kernels.vx").write_text(program())
    extents = dict(zip("MNP", shape))
    rng = np.random.default_rng(sum(shape))
    inputs = {name: rng.standard_normal([extents.get(d, d) for d in dims]).astype(np.float32) for name, dims in INPUTS.items()}
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    for name, values in inputs.items():
        np.save(tmp_path / f"in/{name}.npy", values)
    for threads in ("1", "5"):
        vortex("run", tmp_path / "kernels.vx", "--", tmp_path / "in", tmp_path / "out", env={"VORTEX_NUM_THREADS": threads})
        for name, (parameters, _, _, reference) in KERNELS.items():
            expected = reference(*(inputs[n].astype(np.float64) for n in names(parameters)))
            np.testing.assert_allclose(np.load(tmp_path / f"out/{name}.npy"), expected, rtol=2e-4, atol=3e-3, err_msg=name)


def test_no_phase_is_one_block(vortex, tmp_path):
    (tmp_path / "kernels.vx").write_text(program())
    for name in KERNELS:
        text = vortex("build", "--emit=ir", "--kernel", name, tmp_path / "kernels.vx").stdout
        assert "vx.kernel" in text and ".serial" not in text, f"{name}:\n{text}"
