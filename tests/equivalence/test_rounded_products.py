"""Products that are written to be rounded, `(a @ b) as bf16 as f32`: in every style of code and under every assignment, rounded once where it is written, against NumPy.
All sums of the operands are exact, and so is what is added afterwards: only the rounding that is asked for shows."""
import numpy as np
import pytest
from test_conversions import expected

WHOLE = "kernel {name}(a: &Tensor<{from_}, [M, K]>, b: &Tensor<{from_}, [K, N]>, c: &Tensor<{wide}, [M, N]>) -> Tensor<{wide}, [M, N]> "
INTO = "kernel {name}(a: &Tensor<{from_}, [M, K]>, b: &Tensor<{from_}, [K, N]>, o: &mut Tensor<{wide}, [M, N]>) "
A, B = "a[block_m..+16, 0..+16]", "b[0..+16, block_n..+16]"
ROUNDED, TILE = "((a @ b) as {to}) as {wide}", f"(({A} @ {B}) as {{to}}) as {{wide}}"
START = "{{ var y: Tensor<{wide}, [M, N]> = zeros()\n y = c * 1.0\n "
TILES = "@tile(m = 16, n = 16) " + WHOLE + "{{ var y: Tensor<{wide}, [16, 16]> = zeros()\n y = c[block_m..+16, block_n..+16] * 1.0\n "
PART = "o[block_m..+16, block_n..+16]"
STYLES = {
    "returned": (WHOLE + "{{ return " + ROUNDED + " + c }}", np.add),
    "multiplied": (WHOLE + "{{ return " + ROUNDED + " * c }}", np.multiply),
    "subtracted": (WHOLE + "{{ return c - " + ROUNDED + " }}", np.subtract),
    "bound": (WHOLE + "{{ let p = (a @ b) as {to}\n return c + p as {wide} }}", np.add),
    "typed": (WHOLE + "{{ let p: Tensor<{to}, [M, N]> = (a @ b) as {to}\n return c + p as {wide} }}", np.add),
    "computed on": (WHOLE + "{{ return max((a @ b) as {to}, (a @ b) as {to}) as {wide} + c }}", np.add),
    "transposed": (WHOLE + "{{ return ((b.transpose() @ a.transpose()) as {to} as {wide}).transpose() + c }}", np.add),
    "added to": (WHOLE + START + "y += " + ROUNDED + "\n return y }}", np.add),
    "taken from": (WHOLE + START + "y -= " + ROUNDED + "\n return y }}", np.subtract),
    "scaling": (WHOLE + START + "y *= " + ROUNDED + "\n return y }}", np.multiply),
    "added to a part": (WHOLE + START + "y[0..M, 0..N] += " + ROUNDED + "\n return y }}", np.add),
    "added to an argument": (INTO + "{{ o += " + ROUNDED + " }}", np.add),
    "taken from an argument": (INTO + "{{ o -= " + ROUNDED + " }}", np.subtract),
    "assigned to an argument": (INTO + "{{ o = o + " + ROUNDED + " }}", np.add),
    "under a condition": (INTO + "{{ if M > 1 {{ o += " + ROUNDED + " }} }}", np.add),
    "in a loop": (INTO + "{{ for i in 0..1 {{ o += " + ROUNDED + " }} }}", np.add),
    "tiles": (TILES + "return y + " + TILE + " }}", np.add),
    "added to tiles": (TILES + "y += " + TILE + "\n return y }}", np.add),
    "taken from tiles": (TILES + "y -= " + TILE + "\n return y }}", np.subtract),
    "scaling tiles": (TILES + "y *= " + TILE + "\n return y }}", np.multiply),
    "added in a loop of tiles": (TILES + "for k in range(0, K, 16) {{ y += ((a[block_m..+16, k..+16] @ b[k..+16, block_n..+16]) as {to}) as {wide} }}\n return y }}", np.add),
    "added to a window": ("@tile(m = 16, n = 16) " + INTO + "{{ " + PART + " += " + TILE + " }}", np.add),
    "taken from a window": ("@tile(m = 16, n = 16) " + INTO + "{{ " + PART + " -= " + TILE + " }}", np.subtract),
}
# Of the operands, what is rounded to, what is added up in.
TYPES = [("f32", "bf16", "f32"), ("f64", "f32", "f64"), ("f16", "f8e5m2", "f32"), ("f16", "f16", "f32"), ("bf16", "bf16", "f32"), ("f32", "f32", "f64")]


@pytest.mark.parametrize("from_, to, wide", TYPES)
def test_products_round_where_it_is_written(vortex, tmp_path, backend, from_, to, wide):
    random = np.random.default_rng()
    m, n, k = 19, 21, 16
    large = to == "f32"
    a = random.integers(-2**13 if large else -11, 2**13 if large else 12, (m, k))
    b = random.integers(-2**13 if large else -3, 2**13 if large else 4, (k, n))
    if large:  # one product in each sum, so that sums in f32 are rounded once as well
        b *= np.arange(k)[:, None] == random.integers(0, k, n)
    c = random.integers(-3, 4, (m, n))
    text, calls = "", f'    let c: Tensor<{wide}, [M, N]> = load_npy("{tmp_path}/c.npy")\n'
    dtype = {"f64": "f8", "f32": "f4", "f16": "f2", "bf16": "f4"}
    np.save(tmp_path / "c.npy", c.astype(dtype[wide]))
    for name, values, dims in (("a", a, "M, K"), ("b", b, "K, N")):
        np.save(tmp_path / f"{name}.npy", values.astype(dtype[from_]))
        stored = "f32" if from_ == "bf16" else from_
        calls += f'    let {name}0: Tensor<{stored}, [{dims}]> = load_npy("{tmp_path}/{name}.npy")\n    let {name} = narrow_{name}(&{name}0)\n'
        text += f"kernel narrow_{name}(x: &Tensor<{stored}, [{dims}]>) -> Tensor<{from_}, [{dims}]> {{ return x as {from_} }}\n"
    for i, (source, _) in enumerate(STYLES.values()):
        text += source.format(name=f"k{i}", from_=from_, to=to, wide=wide) + "\n"
        if "o: &mut" in source:
            calls += f'    var o{i}: Tensor<{wide}, [M, N]> = load_npy("{tmp_path}/c.npy")\n    k{i}(&a, &b, &mut o{i})\n    save_npy("{tmp_path}/{i}.npy", o{i}.to_host())\n'
        else:
            calls += f'    save_npy("{tmp_path}/{i}.npy", k{i}(&a, &b, &c).to_host())\n'
    (tmp_path / "program.vx").write_text(f"{text}fn main() {{\n{calls}}}\n")
    vortex("run", tmp_path / "program.vx", *backend)
    product = np.array([[expected(float(value), to) for value in row] for row in (a @ b).tolist()])
    wrong = []
    for i, (style, (_, combine)) in enumerate(STYLES.items()):
        found, right = np.load(tmp_path / f"{i}.npy").reshape(m, n), combine(c.astype(dtype[wide]), product.astype(dtype[wide]))
        if not np.array_equal(found, right, equal_nan=True):
            at = np.flatnonzero(~((found == right) | (np.isnan(found) & np.isnan(right))).reshape(-1))[0]
            wrong.append((style, found.flat[at], right.flat[at], (a @ b).flat[at]))
    assert not wrong, "\n".join(map(str, wrong))
