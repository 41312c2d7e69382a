"""Kernels that update several tensors in place, one after the other, agree with NumPy, and no block of a GPU copies a tensor whole."""
import re

import numpy as np
import pytest

SOURCE = """
kernel adam(p: &mut Tensor<f32, [N]>, m: &mut Tensor<f32, [N]>, v: &mut Tensor<f32, [N]>, g: &Tensor<f32, [N]>) {
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    p = p - 0.01 * m / (sqrt(v) + 0.00000001)
}
kernel swapped(p: &mut Tensor<f32, [N]>, m: &mut Tensor<f32, [N]>, v: &mut Tensor<f32, [N]>, g: &Tensor<f32, [N]>) {
    p = p + g
    let before = m * 1.0
    m = v * 1.0
    v = before
}
kernel shifted(p: &mut Tensor<f32, [N]>, m: &mut Tensor<f32, [N]>, v: &mut Tensor<f32, [N]>, g: &Tensor<f32, [N]>) {
    p = p * 2.0
    m[0..N - 1] = m[1..N]
    v = v + g
}
kernel summed(p: &mut Tensor<f32, [N]>, m: &mut Tensor<f32, [N]>, v: &mut Tensor<f32, [N]>, g: &Tensor<f32, [N]>) {
    p = p + g
    let total = v.sum()
    v = v * 2.0
    m = m + total
}
"""


def updated(kernel, p, m, v, g):
    if kernel == "adam":
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return p - 0.01 * m / (np.sqrt(v) + 1e-8), m, v
    if kernel == "swapped":
        return p + g, v, m
    if kernel == "shifted":
        return p * 2, np.concatenate([m[1:], m[-1:]]), v + g
    return p + g, m + v.sum(), v * 2


KERNELS = ("adam", "swapped", "shifted", "summed")


@pytest.mark.parametrize("count", [1, 7, 1023, 1024, 5003])
def test_updates(vortex, backend, tmp_path, count):
    rng = np.random.default_rng()
    given = dict(zip("pmvg", (rng.random(count).astype(np.float32) for _ in range(4))))
    for name, values in given.items():
        np.save(tmp_path / f"{name}.npy", values)
    body = ""
    for kernel in KERNELS:
        for name in "pmvg":
            body += f'    var {name}_{kernel}: Tensor<f32, [N_{name}_{kernel}]> = load_npy("{tmp_path}/{name}.npy")\n'
        body += f"    {kernel}({', '.join(f'&mut {name}_{kernel}' for name in 'pmv')}, &g_{kernel})\n"
        body += "".join(f'    save_npy("{tmp_path}/{kernel}_{name}.npy", {name}_{kernel})\n' for name in "pmv")
    (tmp_path / "p.vx").write_text(f"{SOURCE}fn main() {{\n{body}}}\n")
    vortex("run", tmp_path / "p.vx", *backend)
    wide = {name: values.astype(np.float64) for name, values in given.items()}
    for kernel in KERNELS:
        for name, exact in zip("pmv", updated(kernel, **wide)):
            np.testing.assert_allclose(np.load(tmp_path / f"{kernel}_{name}.npy"), exact, rtol=1e-5, atol=1e-6, err_msg=f"{kernel} {name}")


def test_blocks_read_and_write_pieces(vortex, tmp_path):
    (tmp_path / "p.vx").write_text(SOURCE + "fn main() {}\n")
    text = vortex("build", tmp_path / "p.vx", "--target", "sm_90", "--kernel", "adam", "--emit", "ir").stdout
    kernels = text.split("vx.kernel ")[1:]
    assert len(kernels) <= 3
    for kernel in kernels:
        accesses = re.findall(r"vx\.tile_(?:load|store) .*", kernel)
        assert accesses and not any("[%c0]" in access for access in accesses), accesses
        assert sum("tile_store" in access for access in accesses) <= 3
