"""Conversions of every number type to every float that may round, in all styles of code, against exact fractions: each rounds once, to nearest, ties to even."""
import random
import struct
from fractions import Fraction

import numpy as np
import pytest

INTEGERS = {"u8": (0, 8), "u16": (0, 16), "u32": (0, 32), "u64": (0, 64), "i8": (1, 8), "i16": (1, 16), "i32": (1, 32), "i64": (1, 64)}
# Bits of the significand, the exponent of the least subnormal, the largest finite number.
FLOATS = {"f8e4m3": (4, -9, 448), "f8e5m2": (3, -16, 57344), "f16": (11, -24, 65504), "bf16": (8, -133, (2**8 - 1) * 2**120),
          "f32": (24, -149, (2**24 - 1) * 2**104)}
STYLES = {
    "whole": "kernel {name}(x: &Tensor<{from_}, [N]>) -> Tensor<{to}, [N]> {{ return x as {to} }}",
    "strict": "@strict kernel {name}(x: &Tensor<{from_}, [N]>) -> Tensor<{wide}, [N]> {{ return (x as {to}) as {wide} }}",
    "computed on": "kernel {name}(x: &Tensor<{from_}, [N]>) -> Tensor<{wide}, [N]> {{ return max(x as {to}, x as {to}) as {wide} }}",
    "into": "kernel {name}(x: &Tensor<{from_}, [N]>) -> Tensor<{to}, [N]> {{ var y: Tensor<{to}, [N]> = zeros()\n y = x as {to}\n return y }}",
    "elements": "kernel {name}(x: &Tensor<{from_}, [N]>) -> Tensor<{wide}, [N]> {{ return (x[thread.global_id] as {to}) as {wide} }}",
    "stored elements": "kernel {name}(x: &Tensor<{from_}, [N]>) -> Tensor<{to}, [N]> {{ return x[thread.global_id] as {to} }}",
    "tiles": "@tile(m = 8) kernel {name}(x: &Tensor<{from_}, [N]>) -> Tensor<{wide}, [N]> {{ return (x[block_m..+8] as {to}) as {wide} }}",
    "stored tiles": "@tile(m = 8) kernel {name}(x: &Tensor<{from_}, [N]>) -> Tensor<{to}, [N]> {{ return x[block_m..+8] as {to} }}",
}


def rounded(value, to):
    """The fraction in the format; None beyond it."""
    bits, least, largest = FLOATS[to]
    if value == 0:
        return value
    exponent = max(abs(value.numerator).bit_length() - value.denominator.bit_length(), least + bits) - bits - 1
    while abs(value) >= Fraction(2)**(exponent + bits):
        exponent += 1
    exponent = max(exponent, least)
    result = round(value / Fraction(2)**exponent) * Fraction(2)**exponent  # Python rounds ties to even
    return result if abs(result) <= largest else None


def near_ties(from_, to, count):
    """Fractions of `to`, what lies between two of them, and what is as near to that as `from_` can say."""
    bits, least, largest = FLOATS[to]
    top = largest.bit_length() + 1 if from_ in FLOATS or from_ == "f64" else INTEGERS[from_][1]
    for _ in range(count):
        scale = Fraction(2)**random.randint(least - 2 if from_ not in INTEGERS else -1, top) / 2**bits
        half = random.randrange(2**(bits + 1)) * scale / 2
        yield half + random.choice([0, 0, 1, -1]) * scale * random.choice([Fraction(1, 4), Fraction(1, 2**20), Fraction(1, 2**(52 - bits)), 1 / scale])


def values(from_, to):
    if from_ == "u8" or from_ == "i8":
        return list(range(256) if from_ == "u8" else range(-128, 128))
    edge = FLOATS[to][2]
    edges = [edge, edge + 2**(edge.bit_length() - FLOATS[to][0] - 1), edge + 2**(edge.bit_length() - FLOATS[to][0] - 1) - 1, 65519, 65520, 65535, 464, 465]
    numbers = [value * random.choice([1, -1]) for value in [*near_ties(from_, to, 800), *map(Fraction, edges)]]
    if from_ in INTEGERS:
        isSigned, width = INTEGERS[from_]
        least, most = (-2**(width - 1), 2**(width - 1) - 1) if isSigned else (0, 2**width - 1)
        whole = [round(value) for value in numbers] + [random.randint(least, most) >> random.randrange(width) for _ in range(400)]
        return [least, most] + [value for value in whole if least <= value <= most]
    reals = [struct.unpack("<d", struct.pack("<Q", random.getrandbits(64)))[0] for _ in range(200)] + [float(value) for value in numbers]
    if from_ == "f32":
        with np.errstate(over="ignore"):
            reals = [float(np.float32(value)) for value in reals]
    return [value for value in reals if abs(value) < np.inf] + [-0.0, np.inf, -np.inf, np.nan]


def decoded(array, to):
    if array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    if array.dtype != np.uint8:
        return array
    exponent_bits, mantissa = (4, 3) if to == "f8e4m3" else (5, 2)
    bias, fields = 2**(exponent_bits - 1) - 1, array.astype(int)
    exponent, fraction = fields >> mantissa & (2**exponent_bits - 1), fields & (2**mantissa - 1)
    size = np.where(exponent == 0, np.ldexp(fraction, 1 - bias - mantissa), np.ldexp(fraction + 2**mantissa, exponent - bias - mantissa))
    if to == "f8e5m2":
        size = np.where(exponent == 31, np.where(fraction == 0, np.inf, np.nan), size)
    else:
        size = np.where(fields & 0x7f == 0x7f, np.nan, size)
    return np.where(fields & 0x80, -size, size)


def expected(value, to):
    if value != value:
        return np.nan
    beyond = np.nan if to == "f8e4m3" else np.inf
    result = None if abs(value) == np.inf else rounded(Fraction(value), to)
    return np.copysign(beyond if result is None else abs(float(result)), value)


@pytest.mark.parametrize("to", FLOATS)
def test_every_type_rounds_once_to(vortex, tmp_path, backend, to):
    random.seed(to)
    kernels, calls, given = "", "", {}
    wide = "f64" if to == "f32" else "f32"
    for from_ in [*INTEGERS, "f64", "f32"]:
        if from_ == to:
            continue
        given[from_] = values(from_, to)
        dtype = {"f": "f", "i": "i", "u": "u"}[from_[0]] + str(int(from_[1:]) // 8)
        np.save(tmp_path / f"{from_}.npy", np.array(given[from_], dtype))
        calls += f'    let x_{from_}: Tensor<{from_}, [N_{from_}]> = load_npy("{tmp_path}/{from_}.npy")\n'
        for i, style in enumerate(STYLES.values()):
            name = f"{from_}_{i}"
            kernels += style.format(name=name, from_=from_, to=to, wide=wide) + "\n"
            calls += f'    save_npy("{tmp_path}/{name}.npy", {name}(&x_{from_}))\n'
    (tmp_path / "program.vx").write_text(f"{kernels}fn main() {{\n{calls}}}\n")
    vortex("run", tmp_path / "program.vx", *backend)
    wrong = []
    for from_, numbers in given.items():
        exact = np.array([expected(value, to) for value in numbers])
        for i, style in enumerate(STYLES):
            found = decoded(np.load(tmp_path / f"{from_}_{i}.npy"), to).astype(np.float64)
            bad = ~((found == exact) | (np.isnan(found) & np.isnan(exact)))
            wrong += [(from_, style, numbers[at], found[at], exact[at]) for at in np.flatnonzero(bad)[:2]]
    assert not wrong, f"of {from_}: " + "\n".join(map(str, wrong))
