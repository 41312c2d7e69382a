"""`min`, `max` and `clamp` of every float type over all pairs of special numbers: NaN if one of them is, and -0 is less than 0, but either where a reduction meets both."""
import math

import numpy as np
import pytest

SPECIAL = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, -1.0, 2.0, -0.25, 2.0**-14]
KERNELS = {
    "least_{t}": "kernel {name}(a: &Tensor<{t}, [N]>, b: &Tensor<{t}, [N]>) -> Tensor<{t}, [N]> {{ return min(a, b) }}",
    "most_{t}": "kernel {name}(a: &Tensor<{t}, [N]>, b: &Tensor<{t}, [N]>) -> Tensor<{t}, [N]> {{ return max(a, b) }}",
    "least_thread_{t}": "kernel {name}(a: &Tensor<{t}, [N]>, b: &Tensor<{t}, [N]>, c: &mut Tensor<{w}, [N]>) {{\n    let i = thread.global_id\n    c[i] = min(a[i], b[i]) as {w}\n}}",
    "most_thread_{t}": "kernel {name}(a: &Tensor<{t}, [N]>, b: &Tensor<{t}, [N]>, c: &mut Tensor<{w}, [N]>) {{\n    let i = thread.global_id\n    c[i] = max(a[i], b[i]) as {w}\n}}",
    "relu_{t}": "kernel {name}(a: &Tensor<{t}, [N]>, b: &Tensor<{t}, [N]>) -> Tensor<{t}, [N]> {{ return max(a, 0.0) }}",
    "capped_{t}": "kernel {name}(a: &Tensor<{t}, [N]>, b: &Tensor<{t}, [N]>) -> Tensor<{t}, [N]> {{ return min(a, -0.0) }}",
    "clamped_{t}": "kernel {name}(a: &Tensor<{t}, [N]>, b: &Tensor<{t}, [N]>) -> Tensor<{t}, [N]> {{ return clamp(a, b, max(b, 1.0)) }}",
    "least_of_row_{t}": "kernel {name}(x: &Tensor<{t}, [N, 2]>) -> Tensor<{t}, [N]> {{ return x.min(dim = 1) }}",
    "most_of_row_{t}": "kernel {name}(x: &Tensor<{t}, [N, 2]>) -> Tensor<{t}, [N]> {{ return x.max(dim = 1) }}",
    "least_of_column_{t}": "kernel {name}(x: &Tensor<{t}, [2, N]>) -> Tensor<{t}, [N]> {{ return x.min(dim = 0) }}",
    "most_of_column_{t}": "kernel {name}(x: &Tensor<{t}, [2, N]>) -> Tensor<{t}, [N]> {{ return x.max(dim = 0) }}",
}


def least(a, b):
    if math.isnan(a) or math.isnan(b):
        return math.nan
    return min(a, b) if a != b else a if math.copysign(1, a) < 0 else b


def most(a, b):
    return -least(-a, -b)


def expected(name, a, b):
    if name.startswith("relu"):
        return most(a, 0.0)
    if name.startswith("capped"):
        return least(a, -0.0)
    if name.startswith("clamped"):
        return least(most(a, b), most(b, 1.0))
    return (least if name.startswith("least") else most)(a, b)


def same(found, exact, reduces):
    return np.where(np.isnan(exact), np.isnan(found), (found == exact) & (reduces | (np.signbit(found) == np.signbit(exact))))


@pytest.mark.parametrize("element", ["f8e4m3", "f8e5m2", "bf16", "f16", "f32", "f64"])
def test_nan_if_one_of_them_is(vortex, tmp_path, backend, element):
    # E4M3 has no infinities: there they are NaN.
    numbers = [math.nan if math.isinf(x) and element == "f8e4m3" else x for x in SPECIAL if element != "f8e4m3" or abs(x) != 2.0**-14]
    pairs = np.array([(a, b) for a in numbers for b in numbers])
    wide = "f64" if element == "f64" else "f32"
    np.save(tmp_path / "pairs.npy", pairs.astype(np.float64 if element == "f64" else np.float32))
    program = f"""kernel narrow(x: &Tensor<{wide}, [A, B]>) -> Tensor<{element}, [A, B]> {{ return x as {element} }}
kernel column(x: &Tensor<{wide}, [N, 2]>, j: usize) -> Tensor<{element}, [N]> {{ return x[thread.global_id, j] as {element} }}
kernel turned(x: &Tensor<{wide}, [N, 2]>) -> Tensor<{element}, [2, N]> {{ return x.transpose() as {element} }}
kernel widened(x: &Tensor<{element}, [N]>) -> Tensor<{wide}, [N]> {{ return x as {wide} }}
"""
    main = f"""    let x: Tensor<{wide}, [N, 2]> = load_npy("{tmp_path}/pairs.npy")
    let pairs = narrow(&x)
    let columns = turned(&x)
    let a = column(&x, 0)
    let b = column(&x, 1)
"""
    names = []
    for pattern, kernel in KERNELS.items():
        name = pattern.format(t=element)
        names.append(name)
        program += kernel.format(name=name, t=element, w=wide) + "\n"
        if "thread" in name:
            main += f"    var r_{name}: Tensor<{wide}, [{len(pairs)}]> = zeros()\n    {name}(&a, &b, &mut r_{name})\n"
            main += f'    save_npy("{tmp_path}/{name}.npy", r_{name})\n'
        else:
            given = "&pairs" if "row" in name else "&columns" if "column" in name else "&a, &b"
            main += f'    save_npy("{tmp_path}/{name}.npy", widened(&{name}({given})))\n'
    (tmp_path / "program.vx").write_text(f"{program}fn main() {{\n{main}}}\n")
    vortex("run", tmp_path / "program.vx", *backend)
    wrong = []
    for name in names:
        found = np.load(tmp_path / f"{name}.npy").astype(np.float64)
        exact = np.array([expected(name, a, b) for a, b in pairs])
        wrong += [(name, *pairs[at], found[at], exact[at]) for at in np.flatnonzero(~same(found, exact, "_of_" in name))[:4]]
    assert not wrong, "\n".join(map(str, wrong))
