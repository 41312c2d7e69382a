"""Shared tensors of scopes that follow each other share bytes: random nests of scopes, loops and branches without any `sync_block()` between scopes
compute what NumPy does, `check` counts the bytes that `build` gives out, and no barrier is added where the program has one."""
import json
import random
import re

import numpy
import pytest

BLOCKS, THREADS, ROWS = 2, 64, 5


class Nest:
    """`lines`: the body of a kernel whose threads carry `v`; `steps`: the same for NumPy, as functions of (v, k, x)."""

    def __init__(self, seed, scale=1):
        self.random, self.scale = random.Random(seed), scale
        self.lines, self.count, self.alive, self.most = [], 0, [], 0
        self.run = self.sequence(1, 0, None)

    def put(self, depth, text):
        self.lines.append("    " * depth + text)

    def tensor(self, depth):
        """A tensor that each thread writes and another reads; or a copy, which may still be in flight when the scope ends."""
        name, shift = f"t{self.count}", self.random.randrange(THREADS)
        self.count += 1
        extent = self.random.choice([64, 96, 256, 1024]) * self.scale
        self.put(depth, f"let {name}: Tensor<u32, [{extent}]> @shared")
        kind = self.random.choice(["threads", "threads", "own", "copy", "in flight"])
        if kind == "own":
            self.put(depth, f"{name}[t] = v * 7 + {shift}")
            self.put(depth, f"v = (v + {name}[t]) % 10007")
            return lambda v, k, x: (v + v * 7 + shift) % 10007
        if kind == "threads":
            self.put(depth, f"{name}[t] = v * 3 + {shift}")
            self.put(depth, "sync_block()")
            self.put(depth, f"v = (v + {name}[(t + {shift}) % {THREADS}]) % 10007")
            return lambda v, k, x: (v + numpy.roll(v * 3 + shift, -shift, axis=1)) % 10007
        row = self.random.randrange(ROWS)
        self.put(depth, f"async_stage(&x[block.id.x, {row}, 0..{THREADS}], &mut {name}[0..{THREADS}])")
        if kind == "in flight":
            return lambda v, k, x: v
        self.put(depth, "sync_block()")
        self.put(depth, f"v = (v * 5 + {name}[(t + {shift}) % {THREADS}]) % 10007")
        return lambda v, k, x: (v * 5 + numpy.roll(x[:, row], -shift, axis=1)) % 10007

    def sequence(self, depth, nesting, counter):
        parts = []
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.choice(["tensor", "scope", "for", "if", "while"]) if nesting < 3 else "tensor"
            if kind == "tensor":
                self.put(depth, "{")
                inner = self.tensor(depth + 1)
                self.put(depth, "}")
                parts.append(inner)
            elif kind == "scope":
                self.put(depth, "{")
                first, rest = self.tensor(depth + 1), self.sequence(depth + 1, nesting + 1, counter)
                self.put(depth, "}")
                parts.append(lambda v, k, x, first=first, rest=rest: rest(first(v, k, x), k, x))
            elif kind in ("for", "while"):
                name, trips = f"k{self.count}_{depth}", self.random.randint(0, 3)
                self.count += 1
                if kind == "while":
                    self.put(depth, f"var {name}: usize = 0")
                self.put(depth, f"for {name} in 0..{trips} {{" if kind == "for" else f"while {name} < {trips} {{")
                inner = self.sequence(depth + 1, nesting + 1, name)
                if kind == "while":
                    self.put(depth + 1, f"{name} += 1")
                self.put(depth, "}")

                def loop(v, k, x, inner=inner, trips=trips):
                    for i in range(trips):
                        v = inner(v, i, x)
                    return v
                parts.append(loop)
            else:
                self.put(depth, f"if {counter or 'n'} % 2 == 0 {{")
                then = self.sequence(depth + 1, nesting + 1, counter)
                self.put(depth, "} else {")
                other = self.sequence(depth + 1, nesting + 1, counter)
                self.put(depth, "}")
                parts.append(lambda v, k, x, then=then, other=other: (then if k % 2 == 0 else other)(v, k, x))

        def run(v, k, x):
            for part in parts:
                v = part(v, k, x)
            return v
        return run

    def text(self):
        return f"""@launch(grid = [{BLOCKS}], block = {THREADS})
kernel nest(x: &Tensor<u32, [{BLOCKS}, {ROWS}, {THREADS}]>, y: &mut Tensor<u32, [{BLOCKS * THREADS}]>, n: usize) {{
    let t = thread.local_id
    var v: u32 = x[block.id.x, 0, t]
""" + "\n".join(self.lines) + f"""
    y[thread.global_id] = v
}}

fn main() {{
    let x: Tensor<u32, [{BLOCKS}, {ROWS}, {THREADS}]> = load_npy(format("{{}}/x.npy", args()[0]))
    var y: Tensor<u32, [{BLOCKS * THREADS}]> = zeros()
    nest(&x, &mut y, {self.n})
    save_npy(format("{{}}/y.npy", args()[0]), y)
}}
"""

    n = 0


@pytest.mark.parametrize("seed", range(12))
def test_scopes_without_barriers_between_them_keep_their_values(vortex, tmp_path, backend, seed):
    nest = Nest(seed)
    nest.n = seed % 2
    path = tmp_path / "nest.vx"
    path.write_text(nest.text())
    x = numpy.random.default_rng().integers(0, 10007, (BLOCKS, ROWS, THREADS), dtype=numpy.uint32)
    numpy.save(tmp_path / "x.npy", x)
    done = vortex("run", *backend, path, "--", tmp_path)
    assert "E06" not in done.stderr and "W0631" not in done.stderr, done.stderr
    expected = nest.run(x[:, 0].astype(numpy.uint64), nest.n, x.astype(numpy.uint64))
    assert (numpy.load(tmp_path / "y.npy").reshape(BLOCKS, THREADS) == expected).all()


def built(vortex, tmp_path, text, target="sm_90"):
    path = tmp_path / "built.vx"
    path.write_text(text)
    [report] = json.loads(vortex("build", path, "--target", target, "--memory", "--json", "--no-cache", "-o", tmp_path).stdout)
    return report


@pytest.mark.parametrize("seed", range(12))
def test_check_counts_the_bytes_that_build_gives_out(vortex, tmp_path, seed):
    scale = 64  # of what fits; all sizes are multiples of all alignments
    tensors = built(vortex, tmp_path, Nest(seed, 2).text())["sharedTensors"]
    if not tensors:
        pytest.skip("a nest of loops that never run")
    given = max(tensor["offset"] + tensor["bytes"] for tensor in tensors)
    path = tmp_path / "large.vx"
    path.write_text(Nest(seed, 2 * scale).text())
    done = vortex("check", "--target", "sm_90", path, status=None)
    needed = re.search(r"`nest` needs (\d+) bytes of shared memory", done.stderr)
    assert int(needed[1]) == given * scale if needed else given * scale <= 232448, (given, done.stderr)


HEAD = """@launch(grid = [2], block = 64)
kernel k(x: &Tensor<u32, [128]>, y: &mut Tensor<u32, [128]>, n: usize) {
    let t = thread.local_id
    var v: u32 = x[thread.global_id]
"""
TAIL = "    y[thread.global_id] = v\n}\n"


def scope(name, size=64, end=""):
    return f"""    {{
        let {name}: Tensor<u32, [{size}]> @shared
        {name}[t] = v
        sync_block()
        v += {name}[63 - t]
        {end}
    }}
"""


# Body, the lines at which a barrier is added (5 is the first of the body).
BARRIERS = {
    "two": (scope("a") + scope("b"), [13]),
    "two with a barrier": (scope("a", end="sync_block()") + scope("b"), []),
    "three of different sizes": (scope("a", 128) + scope("b", 64) + scope("c", 256), [13, 20]),
    "a larger one between small ones": (scope("a", 64) + scope("b", 64, end="sync_block()") + scope("c", 1024), [13]),
    "both in a loop": ("    for i in 0..3 {\n" + scope("a") + scope("b") + "    }\n", [7, 14]),
    "one in a loop": ("    for i in 0..3 {\n" + scope("a") + "    }\n", [7]),
    "one in a loop with a barrier": ("    for i in 0..3 {\n" + scope("a", end="sync_block()") + "    }\n", []),
    "sides of a branch": ("    if n == 1 {\n" + scope("a") + "    } else {\n" + scope("b") + "    }\n", []),
    "behind a branch": ("    if n == 1 {\n" + scope("a") + "    }\n" + scope("b"), [15]),
    "an outer one stays": ("    let o: Tensor<u32, [64]> @shared\n    o[t] = v\n    sync_block()\n" + scope("a") + scope("b") + "    v += o[t]\n", [16]),
    "declared and never used": (scope("a") + "    let u: Tensor<u32, [64]> @shared\n" + scope("b"), [12]),
    "own elements in a loop": ("    for i in 0..3 {\n        let a: Tensor<u32, [64]> @shared\n        a[t] = v\n        v += a[t]\n    }\n", [6]),
    "left by break": ("    for i in 0..3 {\n" + scope("a", end="if i == n { break }") + "    }\n" + scope("b"), [7, 15]),
    "a copy in flight": ("    {\n        let a: Tensor<u32, [64]> @shared\n        async_stage(&x[0..64], &mut a)\n    }\n" + scope("b"), [10]),
}


@pytest.mark.parametrize("name", BARRIERS)
def test_a_barrier_is_added_exactly_where_threads_may_still_be_at_the_bytes(vortex, tmp_path, name):
    body, lines = BARRIERS[name]
    report = built(vortex, tmp_path, HEAD + body + TAIL)
    assert [int(re.search(r"built.vx:(\d+):", note)[1]) for note in report["notes"] if note.startswith("barrier")] == lines
    own = body.count("sync_block()")
    ptx = vortex("build", tmp_path / "built.vx", "--target", "sm_90", "--emit", "asm").stdout
    entry = ptx.split(".entry")[1]
    if not re.search("async_stage|if|for", body):
        assert len(re.findall(r"bar\.sync|barrier\.sync", entry)) == own + len(lines)
