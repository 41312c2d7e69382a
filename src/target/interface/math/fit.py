#!/usr/bin/env python3
"""Prints coefficients.h: minimax polynomials for the f32 and f64 math functions. Needs mpmath and numpy.

Remez exchange on a Chebyshev-like start, weighted for relative error of the whole function where that matters. Coefficients are
rounded to the working type one after another, each time refitting the rest, so that rounding costs next to nothing.
usage: fit.py > coefficients.h, then clang-format
"""
import struct
import sys

import numpy as np
from mpmath import mp, mpf, matrix, lu_solve

mp.prec = 240


def to_f32(x):
    return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def to_f64(x):
    return mpf(float(x))


def solve(f, weight, fixed, degrees, lo, hi):
    """Minimax of weight(x) * (f(x) - fixed(x) - sum c_i x^degrees_i) on [lo, hi]; returns (c, error)."""
    count = len(degrees)
    points = [(lo + hi) / 2 + (hi - lo) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * (count + 1))) for i in range(count + 1)][::-1]
    grid = [lo + (hi - lo) * (1 - mp.cos(mp.pi * i / 800)) / 2 for i in range(801)]
    target = {}
    def residual(x, c):
        if x not in target:
            target[x] = (f(x) - fixed(x), weight(x))
        value, w = target[x]
        return w * (value - sum(ci * x**d for ci, d in zip(c, degrees)))
    for _ in range(14):
        rows, rhs = [], []
        for i, x in enumerate(points):
            w = weight(x)
            rows.append([w * x**d for d in degrees] + [mpf(-1) ** i])
            rhs.append(w * (f(x) - fixed(x)))
        solution = lu_solve(matrix(rows), matrix(rhs))
        c, level = list(solution[:count]), abs(solution[count])
        errors = [residual(x, c) for x in grid]
        # Extrema of alternating sign.
        extrema = []
        for x, e in zip(grid, errors):
            if extrema and (e > 0) == (extrema[-1][1] > 0):
                if abs(e) > abs(extrema[-1][1]):
                    extrema[-1] = (x, e)
            else:
                extrema.append((x, e))
        while len(extrema) > count + 1:
            extrema.pop(0 if abs(extrema[0][1]) < abs(extrema[-1][1]) else -1)
        worst = max(abs(e) for e in errors)
        if len(extrema) < count + 1 or worst < level * mpf("1.001"):
            break
        points = [x for x, _ in extrema]
    return c, worst


def lawson(f, weight, known, degrees, lo, hi):
    """The same for f32, in f64 arithmetic: reweighted least squares, which needs no alternation (once low coefficients are fixed the
    remaining monomials vanish together at 0, and Remez may fail)."""
    xs = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * (i + mpf(1) / 2) / 400) for i in range(400)]
    ws = np.array([float(weight(x)) for x in xs])
    goal = np.array([float(f(x) - sum(v * x**d for d, v in known.items())) for x in xs])
    columns = np.array([[float(x) ** d for d in degrees] for x in xs])
    scale = np.abs(columns).max(axis=0)
    importance = np.full(len(xs), 1 / len(xs))
    best, best_error = None, float("inf")
    for _ in range(60):
        root = np.sqrt(importance) * ws
        c = np.linalg.lstsq(columns / scale * root[:, None], goal * root, rcond=None)[0] / scale
        error = np.abs((goal - columns @ c) * ws)
        if error.max() < best_error:
            best, best_error = c, error.max()
        importance = importance * (error + 1e-3 * error.max())
        importance /= importance.sum()
    return [mpf(float(v)) for v in best]


def fit(name, f, weight, degrees, lo, hi, rounding, exact=None):
    """exact: {degree: value} fixed coefficients."""
    lo, hi = mpf(lo), mpf(hi)
    known = dict(exact or {})
    remaining = [d for d in degrees if d not in known]
    while remaining:
        if rounding is to_f32:
            c = lawson(f, weight, known, remaining, lo, hi)
        else:
            c, _ = solve(f, weight, lambda x: sum(v * x**d for d, v in known.items()), remaining, lo, hi)
        known[remaining[0]] = rounding(c[0])
        remaining = remaining[1:]
    final = lambda x: sum(v * x**d for d, v in known.items())
    grid = [lo + (hi - lo) * i / 1000 for i in range(1001)]
    worst = max(abs(weight(x) * (f(x) - final(x))) for x in grid if x != 0)
    kind = "float" if rounding is to_f32 else "double"
    print(f"/// |error| ≤ {mp.nstr(worst, 3)} on [{mp.nstr(lo, 6)}, {mp.nstr(hi, 6)}]")
    digits = ", ".join(float(known[d]).hex() + ("f" if kind == "float" else "") for d in degrees)
    print(f"inline constexpr {kind} {name}[] = {{{digits}}};")
    sys.stdout.flush()


def series(f, at_zero):
    """f with its removable singularity at 0 filled in."""
    return lambda x: at_zero if abs(x) < mpf(2) ** -100 else f(x)


def split(name, value, bits, rounding, parts):
    """value = hi + mid + …: all but the last part have `bits` significant bits."""
    kind = "float" if rounding is to_f32 else "double"
    rest, out = value, []
    for i in range(parts):
        if i + 1 < parts:
            exponent = mp.floor(mp.log(abs(rest), 2))
            unit = mpf(2) ** (exponent - bits + 1)
            part = mp.floor(rest / unit) * unit
        else:
            part = rounding(rest)
        out.append(part)
        rest -= part
    print(f"inline constexpr {kind} {name}[] = {{" + ", ".join(float(p).hex() + ("f" if kind == "float" else "") for p in out) + "};")


def reduction_table():
    """2^e · 2/π mod 4 in three doubles (28 + 28 + 53 bits) for an f32 mantissa of 24 bits times 2^e, e = −4 … 104."""
    mp.prec = 600
    two_over_pi = 2 / mp.pi
    rows = []
    for e in range(-4, 105):
        value = mp.fmod(two_over_pi * mpf(2) ** e, 4)
        parts, rest = [], value
        for unit in (mpf(2) ** -26, mpf(2) ** -54):
            part = mp.floor(rest / unit) * unit
            parts.append(part)
            rest -= part
        parts.append(rest)
        rows.append(", ".join(float(p).hex() for p in parts))
    mp.prec = 240
    print("/// 2^e · 2/π mod 4 for e = −4 … 104, each as three doubles: multiples of 2^-26, of 2^-54, and the rest.")
    print("inline constexpr double kTwoOverPi[109][3] = {")
    for row in rows:
        print(f"    {{{row}}},")
    print("};")


def main():
    print("// Generated by fit.py. Polynomials: coefficients from the lowest degree up.")
    print("#pragma once\n")
    print("namespace vortex::target::math::coefficients {\n")
    one = lambda x: mpf(1)
    ln2 = mp.log(2)
    half_ln2 = ln2 / 2 * mpf("1.001")
    # exp(r) = 1 + r + r² P(r)
    exp_tail = series(lambda r: (mp.expm1(r) - r) / r**2, mpf(1) / 2)
    tail_weight = lambda r: r**2 * mp.exp(-r) + mpf("0.001")
    fit("kExpTail32", exp_tail, tail_weight, range(5), -half_ln2, half_ln2, to_f32)
    # 1 + r + … to degree 5: a minimax polynomial leaves 1.97 ULP when all roundings are counted. These coefficients were found by a random
    # search around it for the largest error of the whole function on 400,000 arguments.
    print("/// |error| ≤ 9.5e-8 on [-0.34692, 0.34692]; chosen for the largest error with all roundings, 1.87 ULP")
    print("inline constexpr float kExp32[] = {0x1p+0f, 0x1.fffff2p-1f, 0x1.fffdc4p-2f, 0x1.555bf4p-3f, 0x1.573a6p-5f, 0x1.0f2284p-7f};")
    fit("kExpTail64", exp_tail, tail_weight, range(11), -half_ln2, half_ln2, to_f64, {0: mpf(1) / 2})
    # 2^r = 1 + r P(r)
    exp2_tail = series(lambda r: mp.expm1(r * ln2) / r, ln2)
    fit("kExp2Tail32", exp2_tail, lambda r: abs(r) * mp.power(2, -r) + mpf("0.003"), range(6), -0.5005, 0.5005, to_f32)
    fit("kExp2Tail64", exp2_tail, lambda r: abs(r) * mp.power(2, -r) + mpf("0.003"), range(12), -0.5005, 0.5005, to_f64)
    # log1p(f) = f − f²/2 + f³ P(f)
    lo, hi = mp.sqrt(mpf(1) / 2) - 1 - mpf("1e-6"), mp.sqrt(2) - 1 + mpf("1e-6")
    log_tail = series(lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3, mpf(1) / 3)
    log_weight = lambda f: f**2 + mpf("0.003")
    fit("kLogTail32", log_tail, log_weight, range(9), lo, hi, to_f32)
    # atanh form for f64: log1p(f) = 2 s (1 + s² P(s²)), s = f / (2 + f)
    s_max = (hi / (2 + hi)) ** 2
    atanh_tail = series(lambda z: (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, mpf(1) / 3)
    fit("kAtanhTail64", atanh_tail, lambda z: z + mpf("1e-4"), range(7), 0, s_max, to_f64)
    # log2(1 + f) = f + f P(f): the 1 keeps the constant's rounding error small
    log2_ratio = series(lambda f: mp.log1p(f) / ln2 / f - 1, 1 / ln2 - 1)
    fit("kLog2Ratio32", log2_ratio, one, range(11), lo, hi, to_f32)
    # sin(r) = r + r³ P(r²), cos(r) = 1 − r²/2 + r⁴ P(r²) on |r| ≤ π/4
    z_max = (mp.pi / 4 * mpf("1.0001")) ** 2
    sin_tail = series(lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, mpf(-1) / 6)
    fit("kSinTail32", sin_tail, lambda z: z + mpf("0.001"), range(4), 0, z_max, to_f32)
    cos_tail = series(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, mpf(1) / 24)
    fit("kCosTail32", cos_tail, lambda z: z**2 / mp.cos(mp.sqrt(z)) + mpf("0.001"), range(4), 0, z_max, to_f32)
    # tanh(x) = x + x³ P(x²) on |x| ≤ 0.625
    t_max = mpf("0.625") ** 2 * mpf("1.0001")
    tanh_tail = series(lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, mpf(-1) / 3)
    fit("kTanhTail32", tanh_tail, lambda z: z + mpf("0.001"), range(6), 0, t_max, to_f32)
    # erf(x) = x + x P(x²) on |x| ≤ 0.9, from there 1 − 2^P(x): GELU is bound by these terms, which leave 1.4 ULP together.
    e_max = mpf("0.9") ** 2 * mpf("1.0001")
    erf_ratio = series(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, 2 / mp.sqrt(mp.pi) - 1)
    fit("kErfRatio32", erf_ratio, one, range(8), 0, e_max, to_f32)
    fit("kErfShort32", erf_ratio, lambda z: 1 / (1 + erf_ratio(z)), range(6), 0, e_max, to_f32)
    fit("kErfcLog2Short32", lambda x: mp.log(mp.erfc(x)) / ln2, lambda x: ln2 * mp.erfc(x) / mp.erf(x), range(7), 0.9 * 0.999, 4, to_f32)
    fit("kExp2Short32", exp2_tail, lambda r: abs(r) * mp.power(2, -r) + mpf("0.003"), range(5), -0.5005, 0.5005, to_f32)
    # erfc(x) = exp(−x²) · t · P(t), t = 1 / (1 + 0.4 x), from 0.5 to where the result vanishes
    scaled_erfc = lambda t: mp.exp(((1 / t - 1) / mpf("0.4")) ** 2) * mp.erfc((1 / t - 1) / mpf("0.4")) / t
    fit("kErfcTail32", scaled_erfc, lambda t: 1 / scaled_erfc(t), range(10), 1 / (1 + mpf("0.4") * mpf("10.2")), 1 / (1 + mpf("0.4") * mpf("0.499")), to_f32)
    # Narrow results and special function units.
    far = lambda t: (1 / t - 1) / mpf("0.37")
    narrow_erfc = series(lambda t: mp.exp(far(t) ** 2) * mp.erfc(far(t)) / t, mpf(1))
    fit("kErfcNarrow32", narrow_erfc, lambda t: 1 / narrow_erfc(t), range(7), 1 / (1 + mpf("0.37") * mpf("9.5")), 1, to_f32)
    fit("kErfcLog2_32", lambda x: mp.log(mp.erfc(x)) / ln2, lambda x: ln2 * mp.erfc(x) / mp.erf(x), range(8), 0.9 * 0.999, 4.05, to_f32)
    log_thirds = series(lambda f: (mp.log1p(f) - f) / f**2, mpf(-1) / 2)
    fit("kLogThirds32", log_thirds, lambda f: abs(f) + mpf("0.003"), range(8), mpf(-1) / 3, mpf(1) / 3, to_f32)
    fit("kTanhUnit32", tanh_tail, lambda z: z / tanh_tail(0) + mpf("0.001"), range(6), 0, mpf("1.0001"), to_f32)
    fit("kExpNarrow32", mp.exp, lambda r: mp.exp(-r), range(5), -half_ln2, half_ln2, to_f32)
    # expm1(r) = r + r² P(r) uses kExpTail; log1p uses kLogTail.
    print()
    print("/// All bits in the high part: for fused products.")
    print(f"inline constexpr float kLn2Fused32[] = {{{float(to_f32(ln2)).hex()}f, {float(to_f32(ln2 - to_f32(ln2))).hex()}f}};")
    split("kLn2Split32", ln2, 15, to_f32, 2)
    split("kLn2Split64", ln2, 40, to_f64, 2)
    split("kLog10Of2Split32", mp.log10(2), 12, to_f32, 2)
    split("kLog10Of2Split64", mp.log10(2), 40, to_f64, 2)
    split("kPiOver2Split64", mp.pi / 2, 33, to_f64, 2)
    reduction_table()
    print("\n}  // namespace vortex::target::math::coefficients")


if __name__ == "__main__":
    main()
