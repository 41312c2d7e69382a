"""Random tile code against NumPy on zero-padded arrays: products of slices that are used directly, assigned, staged, or staged ahead in
rings of buffers, in accumulators of both forms, with epilogues, per-thread code between, ragged edges, batches, and column sums.

All numbers are small integers, so that every order of summation gives the same sums in every type used."""
import numpy

from cases import Case

OPERANDS = {"f32": "f32", "f16": "f32", "bf16": "f32", "f64": "f64"}  # type of operands: of the accumulator


def up(extent, tile):
    return -(-extent // tile) * tile


class Kernel:
    def __init__(self, rng, name, seed, styles=("direct", "assign", "stage", "async", "ring", "function"), plain=False):
        self.rng, self.name, self.case = rng, name, Case(name, seed)
        self.m, self.n, self.k = rng.choice([4, 8, 16, 32]), rng.choice([4, 8, 16, 32]), rng.choice([4, 8, 16])
        self.kind = "f32" if plain else rng.choice(["f32", *OPERANDS])
        self.sum = OPERANDS[self.kind]
        self.fragment = rng.random() < 0.4
        self.part = (rng.choice([1, 2, 4]), rng.choice([1, 2, 4])) if self.fragment else (self.m, self.n)
        self.threads = (self.m // self.part[0]) * (self.n // self.part[1]) if self.fragment else rng.choice([32, 64, 128])
        self.batch = 0 if plain else rng.choice([0, 0, 0, 2, 3])
        self.lines, self.steps, self.helpers = [], [], ""
        self.product(styles)
        for _ in range(rng.randrange(5)):
            rng.choice(self.epilogues())()
        if not plain and rng.random() < 0.3:
            self.lines.append("let first = acc * 1.0")
            self.steps.append(self.keep)
            self.product(("direct", "stage"), "_more")
            self.update("acc = acc - first", lambda block: block["acc"] - block["first"])
        self.finish()

    @staticmethod
    def keep(block):
        block["first"] = block["acc"]
        return block["acc"]

    def product(self, styles, suffix=""):
        m, n, k = self.m, self.n, self.k
        z = "block.id.z, " if self.batch else ""
        a, b = f"a[{z}block_m..+{m}, {{k}}..+{k}]", f"b[{z}{{k}}..+{k}, block_n..+{n}]"
        style = self.rng.choice(styles)
        at = lambda view, position: view.format(k=position)
        loop = f"for k in range(0, K, {k}) {{"
        ta, tb = f"ta{suffix}", f"tb{suffix}"
        tiles = [f"let {ta}: Tensor<{self.kind}, [{m}, {k}]> @shared", f"let {tb}: Tensor<{self.kind}, [{k}, {n}]> @shared"]
        if style == "direct":
            body = [loop, f"acc += {at(a, 'k')} @ {at(b, 'k')}", "}"]
        elif style in ("assign", "stage"):
            copy = (lambda view: f"stage({view})") if style == "stage" else (lambda view: view)
            body = [*tiles, loop, f"{ta} = {copy(at(a, 'k'))}", f"{tb} = {copy(at(b, 'k'))}", "sync_block()", f"acc += {ta} @ {tb}", "}"]
        elif style == "function" and not self.fragment:
            self.helpers = f"""fn {self.name}_multiply<const P: usize, const Q: usize, const R: usize>(
    acc: &mut Tensor<{self.sum}, [P, R], Local>,
    a: &Tensor<{self.kind}, [P, Q], Shared>,
    b: &Tensor<{self.kind}, [Q, R], Shared>
) {{
    acc += a @ b
}}
fn {self.name}_load<const P: usize, const Q: usize>(view: &Tensor<{self.kind}, [P, Q]>, tile: &mut Tensor<{self.kind}, [P, Q], Shared>) {{
    async_stage(view, tile)
}}
"""
            body = [*tiles, loop, f"{self.name}_load::<{m}, {k}>(&{at(a, 'k')}, &mut {ta})", f"{tb} = stage({at(b, 'k')})", "sync_block()",
                    f"{self.name}_multiply::<{m}, {k}, {n}>(&mut acc, &{ta}, &{tb})", "}"]
        else:
            depth = 2 if style == "async" else self.rng.choice([2, 3, 4])
            ahead = depth - 1
            body = [f"let {ta}: [Tensor<{self.kind}, [{m}, {k}]> @shared; {depth}]", f"let {tb}: [Tensor<{self.kind}, [{k}, {n}]> @shared; {depth}]"]
            start = lambda position, slot: [f"async_stage(&{at(a, position)}, &mut {ta}[{slot}])", f"async_stage(&{at(b, position)}, &mut {tb}[{slot}])"]
            for i in range(ahead):
                body += start(i * k, i)
            body += [f"for (k, s) in range(0, K, {k}).enumerate() {{", f"if k + {ahead * k} < K {{"]
            body += start(f"(k + {ahead * k})", f"(s + {ahead}) % {depth}")
            body += ["}", "sync_block()", f"acc += {ta}[s % {depth}] @ {tb}[s % {depth}]", "}"]
        if suffix:
            body = ["acc = acc * 0.0", *(["{", *body, "}"] if self.rng.random() < 0.5 else body)]
        self.lines += body
        self.steps.append(lambda block: block["a"] @ block["b"])

    def epilogues(self):
        always = [self.scale, self.bias, self.relu, self.centre, self.choose, self.through_shared, self.total]
        return always if self.fragment else always + [self.by_threads, self.turned]

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
        self.update("acc = acc - acc.max(dim = 0, keepdim = true)", lambda block: block["acc"] - block["acc"].max(axis=0, keepdims=True))

    def total(self):
        self.update("acc = acc - min(acc.sum(dim = 1, keepdim = true), 3.0)",
                    lambda block: block["acc"] - numpy.minimum(block["acc"].sum(axis=1, keepdims=True), 3))

    def choose(self):
        self.update("if block_m > block_n { acc = acc + 3.0 } else { acc = -acc }",
                    lambda block: block["acc"] + 3 if block["block_m"] > block["block_n"] else -block["acc"])

    def through_shared(self):
        """Tile to shared memory, one column changed by threads, and back; sometimes in a scope of its own."""
        name, rows = f"t{len(self.lines)}", min(self.m, self.threads)
        scoped = self.rng.random() < 0.5
        self.lines += ["{"] * scoped
        self.lines += [f"let {name}: Tensor<{self.sum}, [{self.m}, {self.n}]> @shared", f"{name} = acc", "sync_block()",
                       f"if thread.local_id < {rows} {{ {name}[thread.local_id, 1] += 5.0 }}", "sync_block()"]

        def step(block):
            result = block["acc"].copy()
            result[:rows, 1] += 5
            return result

        self.update(f"acc = {name} + 0.0", step)
        self.lines += ["}"] * scoped

    def turned(self):
        """Threads move rows of a tile through another one."""
        name, rows = f"t{len(self.lines)}", min(self.m, self.threads)
        self.lines += [f"let {name}: Tensor<{self.sum}, [{self.m}, {self.n}]> @shared", f"let {name}b: Tensor<{self.sum}, [{self.m}, {self.n}]> @shared",
                       f"{name} = acc", "sync_block()", f"{name}b = {name} * 1.0", "sync_block()",
                       f"if thread.local_id < {rows} {{\nfor c in 0..{self.n} {{\n{name}b[thread.local_id, c] = {name}[{rows - 1} - thread.local_id, c]\n}}\n}}",
                       "sync_block()"]

        def step(block):
            result = block["acc"].copy()
            result[:rows] = result[:rows][::-1]
            return result

        self.update(f"acc = {name}b + 0.0", step)

    def by_threads(self):
        """Threads read elements of the tile."""
        name = f"c{len(self.lines)}"
        rows = min(self.m, self.threads)
        self.lines += [f"let {name}: Tensor<{self.sum}, [{rows}]> @shared",
                       f"if thread.local_id < {rows} {{ {name}[thread.local_id] = acc[thread.local_id, 2] }}", "sync_block()"]
        if rows < self.m:
            self.update(f"acc = acc - {name}[0]", lambda block: block["acc"] - block["acc"][0, 2])
        else:
            self.update(f"acc = acc - {name}.reshape([{self.m}, 1])", lambda block: block["acc"] - block["acc"][:, 2:3])

    def text(self):
        p, q = self.part
        z, batch = ("block.id.z, ", "B, ") if self.batch else ("", "")
        finish, start = "return acc", ""
        if self.rng.random() < 0.3:
            start = f"    var out: Tensor<{self.sum}, [{batch}M, N]>\n"
            finish = f"out[{z}block_m..+{self.m}, block_n..+{self.n}] = acc\n    return out"
        launch = "" if self.fragment else f"@launch(block = {self.threads})\n"
        if not self.fragment and self.rng.random() < 0.25:  # element by element: by as many threads as the tile has elements
            finish = (f"let sums: Tensor<{self.sum}, [{self.m}, {self.n}]> @shared = acc.copy()\n    sync_block()\n"
                      f"    return sums[thread.local_id / {self.n}, thread.local_id % {self.n}]")
            start, launch = "", self.rng.choice(["", f"@launch(block = {self.m * self.n})\n", f"@launch(block = [{self.n}, {self.m}])\n"])
        body = "\n    ".join(self.lines)
        return (f"{self.helpers}{launch}@tile(m = {self.m}, n = {self.n}, k = {self.k})\n"
                f"kernel {self.name}_k(a: &Tensor<{self.kind}, [{batch}M, K]>, b: &Tensor<{self.kind}, [{batch}K, N]>, bias: &Tensor<{self.sum}, [N]>)"
                f" -> Tensor<{self.sum}, [{batch}M, N]> {{\n"
                f"{start}    var acc: Tensor<{self.sum}, [{p}, {q}]> @local = zeros()\n    {body}\n    {finish}\n}}\n")

    def finish(self):
        case, rng = self.case, self.rng
        case.items = self.text()
        rows, inner, columns = (rng.randrange(1, 70) for _ in range(3))
        numbers = numpy.random.default_rng(rng.randrange(2**31))
        lead = (self.batch,) if self.batch else ()
        a, b, bias = (numbers.integers(-3, 4, extents).astype(numpy.float64) for extents in [(*lead, rows, inner), (*lead, inner, columns), (columns,)])
        for name, values, kind in (("a", a, self.kind), ("b", b, self.kind), ("bias", bias, self.sum)):
            case.give(name, values, kind, str(list(values.shape)))
        case.body += f"let r = {self.name}_k(&a, &b, &bias)\n"
        case.take("r", "r", self.expected(a, b, bias) if not self.batch else numpy.stack([self.expected(x, y, bias) for x, y in zip(a, b)]), self.sum)

    def expected(self, a, b, bias):
        rows, columns = a.shape[0], b.shape[1]
        M, N = up(rows, self.m), up(columns, self.n)
        wide = [numpy.zeros((M, a.shape[1])), numpy.zeros((b.shape[0], N)), numpy.zeros(N)]
        wide[0][:rows], wide[1][:, :columns], wide[2][:columns] = a, b, bias
        result = numpy.zeros((M, N))
        for i in range(0, M, self.m):
            for j in range(0, N, self.n):
                block = {"a": wide[0][i:i + self.m], "b": wide[1][:, j:j + self.n], "bias": wide[2][j:j + self.n], "block_m": i, "block_n": j}
                for step in self.steps:
                    block["acc"] = step(block)
                result[i:i + self.m, j:j + self.n] = block["acc"]
        return result[:rows, :columns]


class Columns:
    """Sums and maxima over the rows of a matrix, in tiles of one dimension, of every element type; rows come ahead in a ring."""

    KINDS = ["i32", "u32", "i64", "u64", "f32", "f64", "f16", "bf16"]

    def __init__(self, rng, name, seed):
        self.case = case = Case(name, seed)
        m, step, depth = rng.choice([8, 16, 32, 64]), rng.choice([1, 2, 4, 8]), rng.choice([2, 3])
        kind, op = rng.choice(self.KINDS), rng.choice(["sum", "max", "min"])
        total = "f32" if kind in ("f16", "bf16") else kind
        style, ahead, threads = rng.choice(["stage", "ring", "direct"]), depth - 1, rng.choice([32, 64])
        view = lambda at: f"x[{at}..+{step}, block_m..+{m}]"
        take = lambda tile: f"total = total + {tile}.sum(dim = 0)" if op == "sum" else f"total = {op}(total, {tile}.{op}(dim = 0))"
        # Past the last row there are zeros, so maxima and minima start at 0 too.
        lines = [f"var total: Tensor<{total}, [{m}]> @local = zeros()"]
        if style == "direct":
            lines += [f"for k in range(0, K, {step}) {{", take(f"({view('k')} as {total})"), "}"]
        elif style == "stage":
            lines += [f"let t: Tensor<{kind}, [{step}, {m}]> @shared", f"for k in range(0, K, {step}) {{", f"t = stage({view('k')})", "sync_block()",
                      take(f"(t as {total})"), "}"]
        else:
            lines += [f"let t: [Tensor<{kind}, [{step}, {m}]> @shared; {depth}]"]
            lines += [f"async_stage(&{view(i * step)}, &mut t[{i}])" for i in range(ahead)]
            lines += [f"for (k, s) in range(0, K, {step}).enumerate() {{", f"if k + {ahead * step} < K {{",
                      f"async_stage(&{view(f'(k + {ahead * step})')}, &mut t[(s + {ahead}) % {depth}])", "}", "sync_block()",
                      take(f"(t[s % {depth}] as {total})"), "}"]
        body = "\n    ".join(lines)
        case.items = (f"@launch(block = {threads})\n@tile(m = {m})\nkernel {name}_k(x: &Tensor<{kind}, [K, N]>) -> Tensor<{total}, [N]> {{\n"
                      f"    {body}\n    return total\n}}\n")
        shape = (rng.randint(1, 40), rng.randint(1, 150))
        low = 0 if kind.startswith("u") else -8
        values = numpy.random.default_rng(rng.randrange(2**31)).integers(low, 9, shape).astype(numpy.float64)
        case.give("x", values, kind, str(list(shape)))
        case.body += f"let r = {name}_k(&x)\n"
        run = {"sum": lambda v: v.sum(axis=0), "max": lambda v: numpy.maximum(v.max(axis=0), 0), "min": lambda v: numpy.minimum(v.min(axis=0), 0)}[op]
        case.take("r", "r", run(values), total)
