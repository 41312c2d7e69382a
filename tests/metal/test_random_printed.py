"""Random kernels of scalar code over all types that Metal has, with branches and loops, printed as Metal source and read back: bit for bit what the interpreter computes.
Floats are added, compared and converted, not multiplied: products and sums may be fused. VORTEX_METAL_KERNELS=100 VORTEX_METAL_SEED=7 ./test random_printed
tries that many from that seed."""
import os
import random

import numpy as np
import pytest
from test_writer import adversarial, both

INTEGERS = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]
KINDS = [*INTEGERS, "f32", "f16", "bool"]
NUMPY = {"f32": np.float32, "f16": np.float16, **{kind: np.dtype({"i": "int", "u": "uint"}[kind[0]] + kind[1:]) for kind in INTEGERS}}
LANES = 193


class Kernel:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.variables = {kind: [f"{kind}_{k}" for k in range(2)] for kind in KINDS}

    def pick(self, kind):
        return self.random.choice(self.variables[kind])

    def condition(self):
        kind = self.random.choice(KINDS)
        if kind == "bool":
            return self.pick("bool")
        return f"{self.pick(kind)} {self.random.choice(['<', '<=', '>', '>=', '==', '!='])} {self.pick(kind)}"

    def value(self, kind):
        way = self.random.randrange(6)
        if way == 0:
            return f"if {self.condition()} {{ {self.pick(kind)} }} else {{ {self.pick(kind)} }}"
        if kind == "bool":
            return self.random.choice([self.condition(), f"!{self.pick('bool')}", f"{self.pick('bool')} && {self.pick('bool')}", f"{self.pick('bool')} || ({self.condition()})"])
        if way == 1:
            other = self.random.choice([each for each in KINDS if each not in ("bool", kind)])
            return f"{self.pick(other)} as {kind}"
        if way == 2:
            return f"{self.random.choice(['min', 'max'])}({self.pick(kind)}, {self.pick(kind)})"
        if kind in ("f32", "f16"):
            return self.random.choice([f"{self.pick(kind)} {self.random.choice('+-')} {self.pick(kind)}", f"-{self.pick(kind)}", f"abs({self.pick(kind)})",
                                       f"{self.random.choice(['floor', 'ceil', 'round', 'trunc'])}({self.pick(kind)})"])
        if way == 3:
            return f"{self.pick(kind)} {self.random.choice(['<<', '>>'])} {self.pick(kind)}"
        return f"{self.pick(kind)} {self.random.choice(['+', '-', '*', '/', '%', '&', '|', '^'])} {self.pick(kind)}"

    def statements(self, count, depth, indent):
        for _ in range(count):
            way = self.random.randrange(10)
            if way == 0 and depth < 2:
                self.lines.append(f"{indent}if {self.condition()} {{")
                self.statements(3, depth + 1, indent + "    ")
                self.lines.append(f"{indent}}} else {{")
                self.statements(2, depth + 1, indent + "    ")
                self.lines.append(f"{indent}}}")
            elif way == 1 and depth < 2:
                self.lines.append(f"{indent}for k{depth} in 0..{self.random.randrange(1, 4)} {{")
                self.statements(3, depth + 1, indent + "    ")
                self.lines.append(f"{indent}}}")
            else:
                kind = self.random.choice(KINDS)
                self.lines.append(f"{indent}{self.pick(kind)} = {self.value(kind)}")

    def text(self):
        kinds = [kind for kind in KINDS if kind != "bool"]
        self.statements(40, 0, "        ")
        parameters = ", ".join([f"in_{kind}: &Tensor<{kind}, [N, 2]>, out_{kind}: &mut Tensor<{kind}, [N, 2]>" for kind in kinds] + ["out_b: &mut Tensor<u32, [N, 2]>"])
        head = [f"        var {kind}_{k} = in_{kind}[i, {k}]" for kind in kinds for k in range(2)] + [f"        var bool_{k} = in_i8[i, {k}] < in_i8[i, {1 - k}]" for k in range(2)]
        tail = [f"        out_{kind}[i, {k}] = {kind}_{k}" for kind in kinds for k in range(2)] + [f"        out_b[i, {k}] = if bool_{k} {{ 1 }} else {{ 0 }}" for k in range(2)]
        return "\n".join([f"kernel mixed({parameters}) {{", "    let i = thread.global_id", "    if i < N {", *head, *self.lines, *tail, "    }", "}", ""])


def numbers(rng, kind):
    if kind in ("f32", "f16"):
        with np.errstate(over="ignore"):
            return rng.permutation(adversarial(rng, 2 * LANES))[:2 * LANES].astype(NUMPY[kind]).reshape(LANES, 2)
    info = np.iinfo(NUMPY[kind])
    small = rng.integers(0 if info.min == 0 else -9, 40, (LANES, 2))
    edges = rng.choice(np.array([info.min, info.min + 1, info.max, info.max - 1, 0, 1], NUMPY[kind]), (LANES, 2))
    return np.where(rng.random((LANES, 2)) < 0.5, small.astype(NUMPY[kind]), np.where(rng.random((LANES, 2)) < 0.3, edges, rng.integers(info.min, info.max, (LANES, 2), NUMPY[kind], True)))


@pytest.mark.parametrize("number", range(int(os.environ.get("VORTEX_METAL_KERNELS", "2"))))
def test_printed_code_computes_what_the_interpreter_does(vortex, tmp_path, number):
    seed = int(os.environ.get("VORTEX_METAL_SEED", random.randrange(10**9))) + number
    rng, text = np.random.default_rng(seed), Kernel(seed).text()
    inputs = {}
    for kind in [kind for kind in KINDS if kind != "bool"]:
        inputs[f"in_{kind}"] = (kind, numbers(rng, kind))
        inputs[f"out_{kind}"] = (kind, np.full((LANES, 2), 77, NUMPY[kind]))
    inputs["out_b"] = ("u32", np.full((LANES, 2), 77, np.uint32))
    outputs = [name for name in inputs if name.startswith("out")]
    call = f"mixed({', '.join(('&' if name.startswith('in') else '&mut ') + name for name in inputs)})"
    for name, (got, wanted) in zip(outputs, both(vortex, tmp_path, text, call, inputs, outputs)):
        same = (got == wanted) & (np.signbit(got) == np.signbit(wanted)) | (got != got) & (wanted != wanted) if got.dtype.kind == "f" else got == wanted
        assert same.all(), (seed, name, np.argwhere(~same)[:3], got[~same][:3], wanted[~same][:3], text)
