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
    assert len(kernels) == 1
    for kernel in kernels:
        accesses = re.findall(r"vx\.tile_(?:load|store) .*", kernel)
        assert accesses and not any("[%c0]" in access for access in accesses), accesses
        assert sum("tile_store" in access for access in accesses) <= 3


STATEMENTS = """
kernel narrowed(x: &Tensor<f32, [M, N]>) -> Tensor<{T}, [M, N]> {
    return x as {T}
}
kernel narrowed_row(x: &Tensor<f32, [N]>) -> Tensor<{T}, [N]> {
    return x as {T}
}
kernel widened(x: &Tensor<{T}, [M, N]>) -> Tensor<f32, [M, N]> {
    return x as f32
}
kernel steps(p: &mut Tensor<{T}, [M, N]>, m: &mut Tensor<f32, [M, N]>, v: &mut Tensor<f32, [M, N]>, g: &Tensor<{T}, [M, N]>, w: &Tensor<{T}, [N]>) -> Tensor<{T}, [M, N]> {
    m *= 0.5
    m += g as f32
    v *= 0.25
    v += (g as f32) * (g as f32)
    p = (p as f32 + m) as {T}
    let wide = p as f32
    return (wide * rsqrt((wide * wide).mean(dim = -1, keepdim = true) + 1.0) * (w as f32) + v) as {T}
}
"""


@pytest.mark.parametrize("kind", ["f32", "bf16"])
@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (3, 1000), (2, 8193)])
def test_statements_over_the_same_elements(vortex, backend, tmp_path, kind, shape):
    """Values that are whole numbers of eighths: sums are exact, and what a statement stores in bf16 is what the next ones read."""
    rng = np.random.default_rng()
    given = {name: (rng.integers(-16, 17, shape if name != "w" else shape[-1:]) / 8).astype(np.float32) for name in "pmvgw"}
    for name, values in given.items():
        np.save(tmp_path / f"{name}.npy", values)
    dims = {"w": "[B]"}
    body = "".join(f'    var {name}_f: Tensor<f32, {dims.get(name, "[A, B]")}> = load_npy("{tmp_path}/{name}.npy")\n' for name in "pmvgw")
    body += "".join(f"    var {name} = narrowed{'_row' if name == 'w' else ''}(&{name}_f)\n" for name in "pgw")
    body += "    let r = steps(&mut p, &mut m_f, &mut v_f, &g, &w)\n"
    for name, value in {"p": "widened(&p)", "m": "m_f", "v": "v_f", "r": "widened(&r)"}.items():
        body += f'    save_npy("{tmp_path}/out_{name}.npy", {value})\n'
    source = STATEMENTS.replace("{T}", kind)
    (tmp_path / "s.vx").write_text(f"{source}fn main() {{\n{body}}}\n")
    vortex("run", tmp_path / "s.vx", *backend)
    p, m, v, g, w = (given[name].astype(np.float64) for name in "pmvgw")
    m = m * 0.5 + g
    v = v * 0.25 + g * g
    p = rounded(p + m, kind)
    r = p / np.sqrt((p * p).mean(-1, keepdims=True) + 1) * w + v
    for name, exact in {"m": m, "v": v, "p": p}.items():
        np.testing.assert_array_equal(np.load(tmp_path / f"out_{name}.npy"), exact, err_msg=name)
    np.testing.assert_allclose(np.load(tmp_path / "out_r.npy"), r, rtol=2**-8 if kind == "bf16" else 1e-5, atol=1e-5)


def rounded(values, kind):
    """To bf16, ties to even."""
    if kind == "f32":
        return values
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(np.float64)
