"""Random tile programs: the CPU, the interpreter and NumPy agree exactly.

All numbers are small integers in f32, so that every order of summation gives the same sums. The oracle executes the block's
program on zero-padded arrays. VORTEX_TILE_PROGRAMS sets the number of programs, VORTEX_TILE_SEED the seed."""
import os
import random
import re

import numpy
import pytest

PROGRAMS = int(os.environ.get("VORTEX_TILE_PROGRAMS", "12"))
SEED = int(os.environ.get("VORTEX_TILE_SEED", random.randrange(10**6)))


class Kernel:
    """Text of one kernel, and what a block of it computes from padded slices."""

    def __init__(self, rng, name, **product):
        self.rng, self.name = rng, name
        self.m, self.n, self.k = rng.choice([4, 8, 16]), rng.choice([4, 8, 16, 32]), rng.choice([4, 8])
        self.fragment = rng.random() < 0.4
        self.part = (rng.choice([1, 2, 4]), rng.choice([1, 2, 4])) if self.fragment else (self.m, self.n)
        self.threads = (self.m // self.part[0]) * (self.n // self.part[1]) if self.fragment else rng.choice([32, 64])
        self.lines, self.steps = [], []
        self.product(**product)
        for _ in range(rng.randrange(5)):
            rng.choice(self.epilogues())()

    def product(self, styles=("direct", "assign", "stage", "async", "ring")):
        m, n, k = self.m, self.n, self.k
        a, b = f"a[block_m..+{m}, {{k}}..+{k}]", f"b[{{k}}..+{k}, block_n..+{n}]"
        style = self.rng.choice(styles)
        at = lambda view, position: view.format(k=position)
        loop = f"for k in range(0, K, {k}) {{"
        if style == "direct":
            body = [loop, f"acc += {at(a, 'k')} @ {at(b, 'k')}", "}"]
        elif style in ("assign", "stage"):
            copy = (lambda view: f"stage({view})") if style == "stage" else (lambda view: view)
            body = [f"let ta: Tensor<f32, [{m}, {k}]> @shared", f"let tb: Tensor<f32, [{k}, {n}]> @shared", loop]
            body += [f"ta = {copy(at(a, 'k'))}", f"tb = {copy(at(b, 'k'))}", "sync_block()", "acc += ta @ tb", "}"]
        else:
            depth = 2 if style == "async" else self.rng.choice([3, 4])
            ahead = depth - 1
            body = [f"let ta: [Tensor<f32, [{m}, {k}]> @shared; {depth}]", f"let tb: [Tensor<f32, [{k}, {n}]> @shared; {depth}]"]
            start = lambda position, slot: [f"async_stage(&{at(a, position)}, &mut ta[{slot}])",
                                            f"async_stage(&{at(b, position)}, &mut tb[{slot}])"]
            for i in range(ahead):
                body += start(i * k, i)
            body += [f"for (k, s) in range(0, K, {k}).enumerate() {{", f"if k + {ahead * k} < K {{"]
            body += start(f"(k + {ahead * k})", f"(s + {ahead}) % {depth}")
            body += ["}", "sync_block()", f"acc += ta[s % {depth}] @ tb[s % {depth}]", "}"]
        self.lines += body
        self.steps.append(lambda block: block["a"] @ block["b"])

    def epilogues(self):
        always = [self.scale, self.bias, self.relu, self.centre, self.choose, self.through_shared]
        return always if self.fragment else always + [self.by_threads]

    def update(self, text, step):
        self.lines.append(text)
        self.steps.append(step)

    def scale(self):
        self.update("acc = acc * 2.0 - 1.0", lambda block: block["acc"] * 2 - 1)

    def bias(self):
        self.update(f"acc += bias[block_n..+{self.n}]", lambda block: block["acc"] + block["bias"])

    def relu(self):
        self.update("acc = max(acc, 0.0)", lambda block: numpy.maximum(block["acc"], 0))

    def centre(self):
        self.update("acc = acc - acc.max(dim = 0, keepdim = true)",
                    lambda block: block["acc"] - block["acc"].max(axis=0, keepdims=True))

    def choose(self):
        self.update("if block_m > block_n { acc = acc + 3.0 } else { acc = -acc }",
                    lambda block: block["acc"] + 3 if block["block_m"] > block["block_n"] else -block["acc"])

    def through_shared(self):
        """Tile to shared memory, one column changed by threads, and back."""
        name, rows = f"t{len(self.lines)}", min(self.m, self.threads)
        self.lines += [f"let {name}: Tensor<f32, [{self.m}, {self.n}]> @shared", f"{name} = acc", "sync_block()",
                       f"if thread.local_id < {rows} {{ {name}[thread.local_id, 1] += 5.0 }}", "sync_block()"]

        def step(block):
            result = block["acc"].copy()
            result[:rows, 1] += 5
            return result

        self.update(f"acc = {name} + 0.0", step)

    def by_threads(self):
        """Threads read elements of the tile."""
        name = f"c{len(self.lines)}"
        self.lines += [f"let {name}: Tensor<f32, [{self.m}]> @shared",
                       f"if thread.local_id < {self.m} {{ {name}[thread.local_id] = acc[thread.local_id, 2] }}", "sync_block()"]
        self.update(f"acc = acc - {name}.reshape([{self.m}, 1])", lambda block: block["acc"] - block["acc"][:, 2:3])

    def text(self):
        p, q = self.part
        finish, start = "return acc", ""
        if self.rng.random() < 0.3:
            start = "    var out: Tensor<f32, [M, N]>\n"
            finish = f"out[block_m..+{self.m}, block_n..+{self.n}] = acc\n    return out"
        launch = "" if self.fragment else f"@launch(block = {self.threads})\n"
        body = "\n    ".join(self.lines)
        return (f"{launch}@tile(m = {self.m}, n = {self.n}, k = {self.k})\n"
                f"kernel {self.name}(a: &Tensor<f32, [M, K]>, b: &Tensor<f32, [K, N]>, bias: &Tensor<f32, [N]>) -> Tensor<f32, [M, N]> {{\n"
                f"{start}    var acc: Tensor<f32, [{p}, {q}]> @local = zeros()\n    {body}\n    {finish}\n}}\n")

    def expected(self, a, b, bias):
        rows, columns = a.shape[0], b.shape[1]
        up = lambda extent, tile: -(-extent // tile) * tile
        M, N = up(rows, self.m), up(columns, self.n)
        wide = [numpy.zeros((M, a.shape[1])), numpy.zeros((b.shape[0], N)), numpy.zeros(N)]
        wide[0][:rows], wide[1][:, :columns], wide[2][:columns] = a, b, bias
        result = numpy.zeros((M, N))
        for i in range(0, M, self.m):
            for j in range(0, N, self.n):
                block = {"a": wide[0][i:i + self.m], "b": wide[1][:, j:j + self.n], "bias": wide[2][j:j + self.n],
                         "block_m": i, "block_n": j}
                for step in self.steps:
                    block["acc"] = step(block)
                result[i:i + self.m, j:j + self.n] = block["acc"]
        return result[:rows, :columns]


@pytest.mark.parametrize("number", range(PROGRAMS))
def test_random_tile_programs_agree(number, vortex, tmp_path, device):
    seed = SEED + number
    print(f"VORTEX_TILE_SEED={seed} VORTEX_TILE_PROGRAMS=1")
    rng, numbers = random.Random(seed), numpy.random.default_rng(seed)
    kernels = [Kernel(rng, f"k{i}") for i in range(4)]
    shape = [rng.randrange(1, 50) for _ in range(3)]
    a, b, bias = (numbers.integers(-3, 4, extents).astype(numpy.float32)
                  for extents in [(shape[0], shape[1]), (shape[1], shape[2]), (shape[2],)])
    for name, array in [("a", a), ("b", b), ("bias", bias)]:
        numpy.save(tmp_path / f"{name}.npy", array)
    calls = "".join(f'    save_npy(given[{3 + i}], {kernel.name}(&a, &b, &bias))\n' for i, kernel in enumerate(kernels))
    program = "".join(kernel.text() for kernel in kernels) + (
        "fn main() {\n    let given = args()\n    let a: Tensor<f32, [M, K]> = load_npy(given[0])\n"
        "    let b: Tensor<f32, [K, N]> = load_npy(given[1])\n    let bias: Tensor<f32, [N]> = load_npy(given[2])\n" + calls + "}\n")
    path = tmp_path / "tiles.vx"
    path.write_text(program)
    print(program)
    backends = dict.fromkeys([("--device", "cpu"), ("--device", "interpreter"), ("--device", device), ("--check",)])
    for backend in backends:
        outputs = [tmp_path / f"{kernel.name}.npy" for kernel in kernels]
        vortex("run", path, *backend, "--", *(tmp_path / f"{name}.npy" for name in ("a", "b", "bias")), *outputs)
        for kernel, output in zip(kernels, outputs):
            numpy.testing.assert_array_equal(numpy.load(output), kernel.expected(a, b, bias), err_msg=f"{kernel.name} {backend}")


def without(line):
    """Drops the first line that contains the text."""
    return lambda text: re.sub(rf"\n[^\n]*{re.escape(line)}[^\n]*", "", text, count=1)


def replaced(pattern, by):
    return lambda text: re.sub(pattern, by, text, count=1)


# One rule broken: the styles it applies to, the change, and what must be reported.
VIOLATIONS = {
    "a staged tile is read at once": (("stage",), without("sync_block()"), "E0474"),
    "the prologue is missing": (("async", "ring"), without("&mut ta[0]"), "E0475"),
    "only some threads multiply": (("direct", "assign", "stage", "async"), replaced(r"(acc \+= [^\n]* @ [^\n]*)", r"if thread.local_id < 1 { \1 }"), "E0467"),
    "the staged tile is not shared": (("stage",), replaced(r"(let ta: .*)@shared", r"\1@local"), "E0470"),
    "staging would convert": (("stage",), replaced(r"let ta: Tensor<f32", "let ta: Tensor<f16"), "E0471"),
    "a staged extent is unknown": (("stage",), replaced(r"(stage\(a\[block_m..\+\d+, k)..\+\d+", r"\1..K"), "E0472"),
    "a value is staged": (("stage",), replaced(r"stage\((a\[[^\n]*\])\)", r"stage(\1 * 2.0)"), "E0473"),
    "there are two grids": (("direct", "stage"), replaced(r"@tile", "@launch(grid = [1])\n@tile"), "E0462"),
    "the inner extents differ": (("stage",), replaced(r"let tb: Tensor<f32, \[\d+", "let tb: Tensor<f32, [3"), "E0304|E0305"),
    "the buffer is written in flight": (("async",), replaced(r"(async_stage\([^\n]*&mut ta\[0\]\))", r"\1\n    ta[0] = zeros()"), "E0476"),
    "the tile is not the block's": (("direct", "stage"), replaced(r"@tile\(m = \d+", "@tile(m = 7"), "E0463|E0304"),
}


@pytest.mark.parametrize("rule", VIOLATIONS)
def test_breaking_one_rule_is_reported(rule, vortex, tmp_path):
    print(f"VORTEX_TILE_SEED={SEED}")
    rng = random.Random(SEED)
    styles, change, wanted = VIOLATIONS[rule]
    for number in range(6):
        text = ""
        while "return acc" not in text:  # a result written by slice may have tiles of any extents
            text = Kernel(rng, "k", styles=styles).text()
        path = tmp_path / f"violation{number}.vx"
        path.write_text(change(text))
        assert path.read_text() != text
        output = vortex("check", path, status=1)
        assert re.search(rf"error\[({wanted})\]", output.stdout + output.stderr), path.read_text() + output.stdout + output.stderr
