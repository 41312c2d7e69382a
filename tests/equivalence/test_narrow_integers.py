"""Integers of 8 and 16 bits wrap in every operation and are extended by their sign, however operations follow one another: random expressions over
the ends of each type against Python's integers, per thread and as whole tensors."""
import random

import numpy as np
import pytest

BITS = {"i8": 8, "u8": 8, "i16": 16, "u16": 16}
DEEP, COUNT = 3, 10


def wrapped(value, kind):
    value &= (1 << BITS[kind]) - 1
    return value - (1 << BITS[kind]) if kind[0] == "i" and value >> (BITS[kind] - 1) else value


def expression(pick, kind, depth):
    """Text over x and y, and what it is of two Python integers."""
    if depth == 0 or pick.random() < 0.15:
        name = pick.choice("xy")
        return name, (lambda x, y: x) if name == "x" else (lambda x, y: y)
    (a, f), (b, g) = (expression(pick, kind, depth - 1) for _ in range(2))
    constant = pick.choice([0, 1, 2, 3, 7, (1 << (BITS[kind] - 1)) - 1])
    rows = {f"max({a}, {constant})": lambda x, y: max(f(x, y), constant), f"min({a}, {b})": lambda x, y: min(f(x, y), g(x, y)),
            f"max({a}, {b})": lambda x, y: max(f(x, y), g(x, y)), f"({a} + {b})": lambda x, y: wrapped(f(x, y) + g(x, y), kind),
            f"({a} - {b})": lambda x, y: wrapped(f(x, y) - g(x, y), kind), f"({a} * {b})": lambda x, y: wrapped(f(x, y) * g(x, y), kind),
            f"select({a} > {b}, {a} - {b}, {a} * 0)": lambda x, y: wrapped(f(x, y) - g(x, y), kind) if f(x, y) > g(x, y) else 0,
            f"select(max({a}, 1) == 1, {a}, {b})": lambda x, y: f(x, y) if max(f(x, y), 1) == 1 else g(x, y)}
    if kind[0] == "i":
        rows |= {f"abs({a})": lambda x, y: wrapped(abs(f(x, y)), kind), f"(-{a})": lambda x, y: wrapped(-f(x, y), kind),
                 f"mul_hi({a}, -{b})": lambda x, y: (f(x, y) * wrapped(-g(x, y), kind)) >> BITS[kind]}
    return pick.choice(list(rows.items()))


@pytest.mark.parametrize("kind", BITS)
def test_expressions_wrap_and_extend(vortex, backend, fresh_seed, tmp_path, kind):
    pick = random.Random(fresh_seed())
    least, most = wrapped(1 << (BITS[kind] - 1), kind) if kind[0] == "i" else 0, (1 << (BITS[kind] - (kind[0] == "i"))) - 1
    ends = [least, least + 1, most, most - 1, 0, 1, 2, 3, wrapped(-1, kind), pick.randint(least, most)]
    pairs = [(x, y) for x in ends for y in ends]
    wide = pick.choice(["i32", "i64", "u32"] if kind[0] == "i" else ["u32", "i32", "u64"])
    made = [expression(pick, kind, DEEP) for _ in range(COUNT)]
    for name in ("x", "y"):
        np.save(tmp_path / f"{name}.npy", np.array([pair["xy".index(name)] for pair in pairs], np.dtype(kind[0] + str(BITS[kind] // 8))))
    T = f"Tensor<{kind}, [{len(pairs)}]>"
    whole = "".join(f"@unchecked(overflow)\nkernel w{i}(x: &{T}, y: &{T}) -> Tensor<{wide}, [{len(pairs)}]> {{ return ({text}) as {wide} }}\n" for i, (text, _) in enumerate(made))
    thread = "".join(f"@launch(grid = [4], block = 32)\n@unchecked(overflow)\nkernel t{i}(xs: &{T}, ys: &{T}, out: &mut Tensor<{wide}, [{len(pairs)}]>) {{\n    let i = thread.global_id\n"
                     f"    if i < {len(pairs)} {{\n        let x = xs[i]\n        let y = ys[i]\n        out[i] = ({text}) as {wide}\n    }}\n}}\n" for i, (text, _) in enumerate(made))
    calls = "".join(f'    save_npy("w{i}.npy", w{i}(&x, &y))\n    var o{i}: Tensor<{wide}, [{len(pairs)}]> = full(77)\n    t{i}(&x, &y, &mut o{i})\n    save_npy("t{i}.npy", o{i})\n' for i in range(COUNT))
    path = tmp_path / "narrow.vx"
    path.write_text(f'{whole}{thread}fn main() {{\n    let x: {T} = load_npy("x.npy")\n    let y: {T} = load_npy("y.npy")\n{calls}}}\n')
    vortex("run", path, *backend, cwd=tmp_path)
    for i, (text, value) in enumerate(made):
        exact = np.array([value(x, y) for x, y in pairs], object) & ((1 << int(wide[1:])) - 1)
        for form in "wt":
            got = np.load(tmp_path / f"{form}{i}.npy").view(f"u{int(wide[1:]) // 8}").astype(object)
            assert (got == exact).all(), (form, text, [(pair, a, b) for pair, a, b in zip(pairs, got, exact) if a != b][:3])
