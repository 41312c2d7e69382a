"""Random kernels with barriers under loops, conditions that differ between threads and early exits, against a vector evaluation of the same statements.

Threads read what others wrote only where all that have not left are together, between two barriers: so every order of threads gives the same."""
import random

import numpy as np
import pytest

THREADS = 8
TABLE = [3, -2, 5, 1]  # in constant memory: every thread reads the same
BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"


class Program:
    """`text` is the body in MSL; running `statements` on arrays gives what it computes."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.loops = 0
        self.statements = self.block(3, together=True)

    def value(self, depth=2):
        kind = self.random.randrange(8 if depth else 5)
        if kind < 2:
            return self.random.choice("abc")
        if kind == 2:
            return f"p[{self.random.randrange(len(TABLE))}]"
        if kind < 5:
            return self.random.choice(["u", "local", "k", str(self.random.randint(-9, 9))])
        return f"({self.value(depth - 1)} {self.random.choice('+-*^&')} {self.value(depth - 1)})"

    def uniform(self):
        return self.random.choice(["u", "p[0]", "p[2]", "(u + p[3])", "(p[1] ^ u)", "k", str(self.random.randint(0, 4))])

    def condition(self, isUniform):
        return f"({self.uniform() if isUniform else self.value(1)} & {self.random.choice([1, 2, 3, 4])}) {self.random.choice(['==', '!='])} 0"

    def block(self, depth, together):
        return [self.statement(depth, together) for _ in range(self.random.randint(2, 4))]

    def statement(self, depth, together):
        kind = self.random.randrange(10 if depth else 4)
        if kind == 0 and together:
            return ("set", "u", self.uniform())
        if kind < 2:
            return ("set", self.random.choice("abc"), self.value())
        if kind == 2:
            return ("own", self.value())
        if kind == 3:
            return ("exchange", self.random.choice("abc"), self.random.randrange(THREADS)) if together else ("barrier",)
        if kind < 6:
            isUniform = self.random.random() < 0.4
            inside = together and isUniform
            return ("if", self.condition(isUniform), self.block(depth - 1, inside), self.block(depth - 1, inside) if self.random.random() < 0.6 else [])
        if kind < 8:
            isUniform = self.random.random() < 0.6
            self.loops += 1
            return ("for", f"k{self.loops}", f"({self.uniform() if isUniform else self.value(1)}) & 3", self.block(depth - 1, together and isUniform))
        if kind == 8:
            leaves = [("barrier",)] * self.random.randrange(2) + [("return",)]
            return ("if", self.condition(False), *self.random.choice([(leaves, []), ([], leaves), (leaves, self.block(depth - 1, False))]))
        return ("barrier",)


def text(statements):
    out = ""
    for what, *parts in statements:
        if what == "set":
            out += f"{parts[0]} = {parts[1]};\n"
        elif what == "own":
            out += f"t[local] = {parts[0]};\n"
        elif what == "exchange":
            out += f"{BARRIER}\n{parts[0]} += t[(local + {parts[1]}) % {THREADS}];\n{BARRIER}\n"
        elif what == "barrier":
            out += BARRIER + "\n"
        elif what == "return":
            out += "out[i] = a; return;\n"
        elif what == "if":
            out += f"if ({parts[0]}) {{\n{text(parts[1])}}} else {{\n{text(parts[2])}}}\n"
        else:
            count, k = f"n{parts[0]}", parts[0]
            out += f"uint {count} = {parts[1]};\nfor (uint {k} = 0; {k} < {count}; ++{k}) {{\nuint k = {k};\n{text(parts[2])}}}\n"
    return out


class Evaluation:
    def __init__(self, x):
        self.v = {"a": x.copy(), "b": x * 3, "c": np.zeros_like(x), "u": np.full_like(x, 2), "k": np.zeros_like(x), "t": np.zeros_like(x),
                  "local": np.arange(THREADS, dtype=np.int32), "p": [np.int32(each) for each in TABLE]}
        self.alive = np.ones(THREADS, bool)
        self.out = np.zeros_like(x)

    def get(self, expression):
        with np.errstate(over="ignore"):
            return np.broadcast_to(np.asarray(eval(expression, {}, self.v)).astype(np.int32), THREADS).copy()

    def truth(self, condition):
        return np.broadcast_to(np.asarray(eval(condition, {}, self.v)), THREADS)

    def set(self, name, value, mask):
        self.v[name] = np.where(mask, value, self.v[name]).astype(np.int32)

    def run(self, statements, mask):
        for what, *parts in statements:
            mask = mask & self.alive
            if what == "set":
                self.set(parts[0], self.get(parts[1]), mask)
            elif what == "own":
                self.set("t", self.get(parts[0]), mask)
            elif what == "exchange":
                with np.errstate(over="ignore"):
                    self.set(parts[0], self.v[parts[0]] + np.roll(self.v["t"], -parts[1]), mask)
            elif what == "return":
                self.out = np.where(mask, self.v["a"], self.out)
                self.alive = self.alive & ~mask
            elif what == "if":
                chosen = self.truth(parts[0])
                self.run(parts[1], mask & chosen)
                self.run(parts[2], mask & ~chosen)
            elif what == "for":
                count, outer = self.get(parts[1]), self.v["k"]
                for k in range(4):
                    self.v["k"] = np.full_like(count, k)
                    self.run(parts[2], mask & self.alive & (k < count))
                self.v["k"] = outer


def kernel(program, name):
    return f"""kernel void {name}(device uint* out [[buffer(0)]], device const uint* x [[buffer(1)]], constant uint* p [[buffer(2)]],
    uint i [[thread_position_in_grid]], uint local [[thread_position_in_threadgroup]]) {{
threadgroup uint t[{THREADS}];
uint a = x[i], b = a * 3, c = 0, u = 2, k = 0;
t[local] = 0;
{text(program.statements)}out[i] = a + 5 * b + 7 * c + 11 * u + t[local];
}}
"""


def words(number, values):
    return f"{number}=u32:" + ",".join(map(str, values.astype(np.uint32)))


@pytest.mark.parametrize("round", range(3))
def test_random_kernels(vortex, device, tmp_path, round):
    seed = random.randrange(2**32)
    programs = [Program(seed + number) for number in range(6)]
    path = tmp_path / "kernels.metal"
    path.write_text("#include <metal_stdlib>\nusing namespace metal;\n" + "".join(kernel(each, f"k{number}") for number, each in enumerate(programs)))
    x = np.random.default_rng(seed).integers(-20, 20, THREADS, dtype=np.int32)
    for number, program in enumerate(programs):
        run = Evaluation(x)
        run.run(program.statements, run.alive)
        with np.errstate(over="ignore"):
            last = run.v["a"] + 5 * run.v["b"] + 7 * run.v["c"] + 11 * run.v["u"] + run.v["t"]
        wanted = np.where(run.alive, last, run.out)
        for where in (["--device", "interpreter"], ["--device", device]):
            done = vortex("run", path, "--kernel", f"k{number}", "--grid", THREADS, "--block", THREADS, "--buffer", f"0=u32[{THREADS}]", "--buffer",
                          words("1", x), "--buffer", words("2", np.array(TABLE, np.int32)), "--print", 0, *where)
            assert done.stdout.split() == [str(each) for each in wanted.astype(np.uint32)], (seed + number, where, kernel(program, f"k{number}"))


OWN = """#include <metal_stdlib>
using namespace metal;
kernel void k(device int* data [[buffer(0)]], uint i [[thread_position_in_grid]], uint group [[threadgroup_position_in_grid]]) {
  data[i] *= 3;
  int own = data[group];
  threadgroup_barrier(mem_flags::mem_device);
  data[i] = own + 1;
}
"""


@pytest.mark.parametrize("where", ["device", "interpreter"])
def test_what_a_thread_has_written_it_reads_where_all_would_read_the_same(vortex, device, tmp_path, where):
    (tmp_path / "k.metal").write_text(OWN)
    x = np.random.default_rng().integers(-99, 99, 5)
    done = vortex("run", tmp_path / "k.metal", "--grid", 5, "--block", 1, "--buffer", "0=i32:" + ",".join(map(str, x)), "--print", 0, "--device", device if where == "device" else where)
    assert done.stdout.split() == [str(3 * each + 1) for each in x]


GUARDED = """#include <metal_stdlib>
using namespace metal;
kernel void k(device float* out [[buffer(0)]], constant uint2& n [[buffer(1)]], threadgroup float* t [[threadgroup(0)]],
              uint i [[thread_index_in_threadgroup]], uint group [[threadgroup_position_in_grid]]) {
  uint rounds = n.x ? group / n.x : 3;
  float sum = 0;
  for (uint r = 0; r < rounds; ++r) {
    t[i] = i + r;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum += t[(i + 1) % n.y];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  out[group * n.y + i] = sum;
}
"""


def test_no_thread_is_asked_for_a_bound_that_a_guarded_division_makes(vortex, device, tmp_path):
    (tmp_path / "k.metal").write_text(GUARDED)
    launch = ["run", tmp_path / "k.metal", "--groups", 6, "--block", 4, "--threadgroup", "0=16", "--buffer", "0=f32[24]", "--buffer", "1=u32:2,4", "--print", 0]
    expected = [sum((i + 1) % 4 + r for r in range(group // 2)) for group in range(6) for i in range(4)]
    for where in (["--check"], ["--device", device]):
        assert list(map(float, vortex(*launch, *where).stdout.split())) == expected
    dumped = vortex(*launch, "--no-cache", "--dump-after", "irgen")
    text = dumped.stdout + dumped.stderr
    assert "vx.barrier" in text and "atomic_rmw" not in text
