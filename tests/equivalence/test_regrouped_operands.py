"""Random programs that read one tensor under several extents, and as its transpose: blocks that cannot share its dimensions read it again."""
import random

import numpy
import pytest

SHAPES = [("A", "B"), ("B", "A"), ("A * B",), ("A", "B")]


class Program:
    """Small integers in f32: results are exact in every order of summation."""

    def __init__(self, rng, sizes):
        self.rng, self.sizes, self.lines, self.values = rng, sizes, [], []

    def add(self, text, shape, array):
        name = f"v{len(self.lines)}"
        self.lines.append(f"let {name} = min(max({text}, -9.0), 9.0)")
        self.values.append((name, shape, numpy.clip(array, -9, 9).astype(numpy.float32)))

    def count(self, shape):
        return [eval(extent, {}, self.sizes) for extent in shape]

    def step(self):
        name, shape, array = self.rng.choice(self.values)
        kind = self.rng.choice(["regroup", "regroup", "turn", "join", "join", "compute", "product", "centre"])
        if kind == "regroup" and array.size == self.sizes["A"] * self.sizes["B"] and set(shape) & {"A * B", "B"}:
            to = self.rng.choice([other for other in SHAPES if other != shape])
            self.add(f"{name}.reshape([{', '.join(to)}])", to, array.reshape(self.count(to)))
        elif kind == "turn" and len(shape) == 2:
            self.add(f"{name}.transpose()", shape[::-1], array.T)
        elif kind == "join":
            other, _, second = self.rng.choice([value for value in self.values if value[1] == shape])
            operator, result = self.rng.choice([("+", array + second), ("-", array - second), ("*", array * second)])
            self.add(f"{name} {operator} {other}", shape, result)
        elif kind == "compute":
            self.add(f"{name} * 2.0 - 1.0", shape, array * 2 - 1)
        elif kind == "centre":
            self.add(f"{name} - max({name})", shape, array - array.max())
        elif kind == "product" and len(shape) == 2:
            fitting = [value for value in self.values if len(value[1]) == 2 and value[1][0] == shape[1]]
            if fitting:
                other, to, second = self.rng.choice(fitting)
                self.add(f"{name} @ {other}", (shape[0], to[1]), array @ second)

    def result(self):
        name, shape, array = self.rng.choice(self.values[-3:])
        if self.rng.random() < 0.3 and len(shape) == 2:
            dim = self.rng.randrange(2)
            return f"sum({name}, dim = {dim})", (shape[1 - dim],), array.sum(axis=dim)
        return f"{name} + 0.0", shape, array


def make(seed):
    rng = random.Random(seed)
    sizes = {name: rng.choice([1, 2, 3, 8, 17, 33, 64]) for name in "AB"}
    program = Program(rng, sizes)
    numbers = numpy.random.default_rng(seed)
    parameters = {"x": ("A", "B"), "y": ("A * B",), "z": ("B", "A")}
    arrays = {name: numbers.integers(-4, 5, program.count(shape)).astype(numpy.float32) for name, shape in parameters.items()}
    program.values = [(name, shape, arrays[name]) for name, shape in parameters.items()]
    for _ in range(rng.randrange(3, 10)):
        program.step()
    results = [program.result() for _ in range(rng.randrange(1, 4))]
    types = [f"Tensor<f32, [{', '.join(shape)}]>" for _, shape, _ in results]
    declared = ", ".join(f"{name}: &Tensor<f32, [{', '.join(shape)}]>" for name, shape in parameters.items())
    bracket = (lambda words: f"({', '.join(words)})") if len(results) > 1 else (lambda words: words[0])
    text = f"kernel k({declared}) -> {bracket(types)} {{\n" + "".join(f"    {line}\n" for line in program.lines)
    text += f"    return {bracket([value for value, _, _ in results])}\n}}\nfn main() {{\n    let dir = args()[0]\n"
    for letter, name in zip("MNK", "xyz"):
        extents = [f"{letter}{dim}" for dim in range(len(parameters[name]))]
        text += f"    let {name}: Tensor<f32, [{', '.join(extents)}]> = load_npy(format(\"{{}}/{name}.npy\", dir))\n"
    names = [f"r{index}" for index in range(len(results))]
    text += f"    let {bracket(names)} = k(&x, &y, &z)\n"
    text += "".join(f"    save_npy(format(\"{{}}/{name}.npy\", dir), {name})\n" for name in names) + "}\n"
    return text, arrays, [array for _, _, array in results]


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(vortex, tmp_path, backend, seed):
    text, arrays, results = make(seed)
    for name, array in arrays.items():
        numpy.save(tmp_path / f"{name}.npy", array)
    (tmp_path / "p.vx").write_text(text)
    vortex("run", tmp_path / "p.vx", *backend, "--", tmp_path)
    for index, result in enumerate(results):
        numpy.testing.assert_array_equal(numpy.load(tmp_path / f"r{index}.npy"), result, err_msg=text)


SHARED = """
kernel turned(x: &Tensor<f32, [A, B]>, w: &Tensor<f32, [B, C]>) -> Tensor<f32, [A, C]> { return (x + x.reshape([B, A]).transpose()) @ w }
kernel flat(x: &Tensor<f32, [A, B]>, w: &Tensor<f32, [B, C]>) -> Tensor<f32, [A, C]> {
    let y = x.reshape([A * B])
    return (x / sum(y) + y.reshape([A, B])) @ w
}
kernel back(x: &Tensor<f32, [A, B]>, w: &Tensor<f32, [B, C]>) -> Tensor<f32, [A, C]> { return (x + x.reshape([A * B]).reshape([A, B])) @ w }
kernel sums(x: &Tensor<f32, [A, B]>) -> Tensor<f32, [A]> { return sum(x * (x.reshape([A * B]) * 2.0).reshape([A, B]), dim = 1) }
"""


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_rows_have_blocks_of_their_own(vortex, tmp_path, target):
    """No phase leaves them all to one block, which a GPU could not do for a product at all."""
    (tmp_path / "p.vx").write_text(SHARED)
    plans = vortex("build", tmp_path / "p.vx", "--target", target, "--dump-after", "plan", "-o", tmp_path / "out").stderr.split("// ---- ")[1:]
    assert len(plans) == 4
    for plan in plans:
        assert [line for line in plan.splitlines() if "tile_store" in line]
        assert not [line for line in plan.splitlines() if "phase serial" in line], plan
        assert plan.startswith("flat") or "blocks 1\n" not in plan, plan
    assert "reshape" not in next(plan for plan in plans if plan.startswith("back")).split("phase", 1)[1]
