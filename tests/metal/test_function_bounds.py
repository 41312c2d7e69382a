"""Errors and special values of functions of the standard library against float64, the same in the interpreter and on the device."""
import numpy as np
import pytest

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
SPECIAL = np.array([0.0, -0.0, 0.25, -0.25, 0.5, -0.5, 0.75, 1, -1, 1.5, -1.5, 2, -2, 2.5, 1e-40, -1e-40, 1e-10, -1e-10, 2**23 - 0.5, 2**23 + 1, 2**24 + 2, -(2**23) + 0.5, 3e38, -3e38,
                    np.inf, -np.inf, np.nan], "f4")


def arguments():
    rng = np.random.default_rng()
    return np.concatenate([SPECIAL, rng.uniform(-3, 3, 500), rng.standard_normal(500) * 10.0 ** rng.uniform(-6, 6, 500), np.float32(0.5) * np.arange(-8, 9), 1 + np.arange(-8, 9) * 2**-23]).astype("f4")


def quarters(x):
    """The argument modulo 2 in float64, exactly, and pi times the distance from the nearest quarter."""
    turn = np.fmod(x.astype("f8"), 2)
    count = np.round(2 * turn)
    return count.astype("i8", copy=False) if np.isfinite(count).all() else np.nan_to_num(count).astype("i8"), np.pi * (turn - count / 2)


def sinpi(x):
    count, rest = quarters(x)
    y = np.choose(count & 3, [np.sin(rest), np.cos(rest), -np.sin(rest), -np.cos(rest)])
    return np.where(y == 0, np.copysign(0.0, x), y)


def cospi(x):
    count, rest = quarters(x)
    return np.choose(count & 3, [np.cos(rest), -np.sin(rest), -np.cos(rest), np.sin(rest)]) + 0.0


FUNCTIONS = {  # name: what it is, ULP
    "sinpi": (sinpi, 4),
    "cospi": (cospi, 4),
    "tanpi": (lambda x: sinpi(x) / cospi(x), 6),
    "acosh": (lambda x: np.arccosh(x.astype("f8")), 4),
    "asinh": (lambda x: np.arcsinh(x.astype("f8")), 4),
    "atanh": (lambda x: np.arctanh(x.astype("f8")), 5),
    "tanh": (lambda x: np.tanh(x.astype("f8")), 5),
    "sinh": (lambda x: np.sinh(x.astype("f8")), 4),
    "fract": (lambda x: np.where(np.isinf(x), np.nan, np.minimum(x.astype("f8") - np.floor(x.astype("f8")), 1 - 2.0**-24)), 1),
}


def run(vortex, tmp_path, source, kind, x, where):
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "f.metal").write_text(HEAD + source)
    vortex("run", tmp_path / "f.metal", "--grid", x.size, "--block", 64, "--buffer", f"0={kind}[{x.size}]", "--buffer", f"1={tmp_path / 'x.npy'}", "--save", f"0={tmp_path / 'y.npy'}", *where)
    return np.load(tmp_path / "y.npy")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_and_special_values(vortex, device, tmp_path, name):
    of, bound = FUNCTIONS[name]
    x = arguments()
    with np.errstate(all="ignore"):
        expected = of(x)
        exact = expected.astype("f4")
    for where in (["--device", "interpreter"], ["--device", device]):
        got = run(vortex, tmp_path, f"kernel void f(device float* o [[buffer(0)]], device const float* x [[buffer(1)]], uint i [[thread_position_in_grid]]) {{ o[i] = {name}(x[i]); }}\n", "f32", x, where)
        with np.errstate(all="ignore"):
            step = np.spacing(np.maximum(np.abs(exact), np.float32(1.2e-38)))
            close = np.abs(got - expected) <= bound * step.astype("f8")
        good = np.where(np.isfinite(exact), close, (got == exact) | (np.isnan(got) & np.isnan(exact)))
        good &= np.where(exact == 0, np.signbit(got) == np.signbit(exact), True)
        assert good.all(), (where, x[~good][:5], got[~good][:5], expected[~good][:5])


def test_fract_of_a_half_is_below_one(vortex, device, tmp_path):
    x = np.arange(65536).astype("u2").view("f2")
    with np.errstate(all="ignore"):
        whole = x.astype("f8")
        expected = np.where(np.isinf(x), np.nan, np.minimum((whole - np.floor(whole)).astype("f2"), np.float16(1 - 2.0**-11)))
    for where in (["--device", "interpreter"], ["--device", device]):
        got = run(vortex, tmp_path, "kernel void f(device half* o [[buffer(0)]], device const half* x [[buffer(1)]], uint i [[thread_position_in_grid]]) { o[i] = fract(x[i]); }\n", "f16", x, where)
        np.testing.assert_array_equal(got, expected)
