"""Random kernels of per-thread code, race-free by construction: shared memory is written by its own thread, a barrier, read by all while
only the phase lasts, a barrier. Control around barriers is uniform; loops' lengths come from memory; threads leave early afterwards."""
import numpy

from cases import Case
from expressions import Expressions, Source
from functions import Functions
from scalars import FLOATS, INTEGERS, Float, choose, samples, saturated
from tree import Node, block, braces

KINDS = list(INTEGERS) + list(FLOATS) + ["bool"]
COUNTED = ("i32", "u32", "i64", "u64")  # what atomics take
ATOMICS = {"atomic_add": numpy.add, "atomic_min": numpy.minimum, "atomic_max": numpy.maximum, "atomic_and": numpy.bitwise_and,
           "atomic_or": numpy.bitwise_or, "atomic_xor": numpy.bitwise_xor}


def zeros(kind, shape):
    if kind in FLOATS:
        return Float.exact(numpy.zeros(shape), kind)
    return numpy.zeros(shape, bool if kind == "bool" else INTEGERS[kind])


def active(env):
    mask = env["mask"] & ~env["returned"]
    for broke, continued in env["loops"]:
        mask = mask & ~broke & ~continued
    return mask


class Threads(Expressions):
    """Statements; `shape` is [blocks, threads]."""

    def __init__(self, rng, functions, shape, prefix=""):
        super().__init__(rng, functions, shape)
        self.fresh, self.tiles, self.busy, self.loops = 0, [], set(), 0
        self.uniforms = []
        self.rounds = 0  # loops around

    def name(self, stem):
        self.fresh += 1
        return f"{stem}{self.fresh}"

    # ---- statements; `uniform`: all threads of the block are here

    def statements(self, count, depth, uniform):
        return block(self.statement(depth, uniform) for _ in range(count))

    def statement(self, depth, uniform):
        always = [self.assign, self.assign, self.assign, self.local, self.compound]
        nested = [self.branch, self.ownLoop] if depth else []
        together = [self.phase, self.phase, self.pair, self.warp, self.count, self.floatCount, self.reduce, self.uniformAssign] if uniform else []
        around = [self.uniformLoop, self.uniformBranch] if uniform and depth else []
        if self.loops and not uniform:
            always.append(self.jump)
        for _ in range(20):
            node = self.rng.choice(always + nested + together + around)(depth, uniform)
            if node:
                return node
        return self.assign(depth, uniform)

    def assign(self, depth, uniform):
        name = self.rng.choice([each for each in self.variables if each.startswith("p")])
        text, value = self.of(self.variables[name])
        return Node(f"{name} = {text}", lambda env: env.__setitem__(name, choose(active(env), value(env), env[name])))

    def compound(self, depth, uniform):
        names = [each for each in self.variables if each.startswith("p") and self.variables[each] in INTEGERS]
        name, op = self.rng.choice(names), self.rng.choice("+-*&|^")
        text, value = self.of(self.variables[name])
        run = {"+": numpy.add, "-": numpy.subtract, "*": numpy.multiply, "&": numpy.bitwise_and, "|": numpy.bitwise_or, "^": numpy.bitwise_xor}[op]
        return Node(f"{name} {op}= {text}", lambda env: env.__setitem__(name, choose(active(env), run(env[name], value(env)), env[name])))

    def local(self, depth, uniform):
        sources = [each for each in self.sources if each.own]
        if not sources:
            return None
        source = self.rng.choice(sources)
        (text, value), (index, at) = self.of(source.kind), self.index(source.size)
        rows, columns = numpy.arange(self.shape[0])[:, None], numpy.arange(self.shape[1])[None]

        def run(env):
            array, where = source.values(env), (rows, columns, at(env))
            new = choose(active(env), value(env), array[where])
            if isinstance(array, Float):
                array.value[where], array.error[where] = new.value, new.error
            else:
                array[where] = new

        return Node(f"{source.text}[{index}]{source.field} = {text}", run)

    def branch(self, depth, uniform):
        text, value = self.condition(1)
        then, other = (self.statements(self.rng.randint(1, 2), depth - 1, False) for _ in range(2))
        both = self.rng.random() < 0.6

        def run(env):
            mask, truth = env["mask"], value(env)
            env["mask"] = mask & truth
            then.run(env)
            env["mask"] = mask & ~truth
            if both:
                other.run(env)
            env["mask"] = mask

        return Node(braces(f"if {text}", then.text) + (" else {" + braces("", other.text)[1:] if both else ""), run)

    def uniformBranch(self, depth, uniform):
        """A branch that whole blocks take."""
        name, limit = self.rng.choice(["blockId", "count"] + self.uniforms), self.rng.randint(0, 3)
        then, other = (self.statements(self.rng.randint(1, 2), depth - 1, uniform) for _ in range(2))

        def run(env):
            mask, truth = env["mask"], env[name] % numpy.uint64(4) > limit
            for side, body in ((truth, then), (~truth, other)):
                env["mask"] = mask & side
                body.run(env)
            env["mask"] = mask

        return Node(braces(f"if {name} % 4 > {limit}", then.text) + " else {" + braces("", other.text)[1:], run)

    def uniformAssign(self, depth, uniform):
        name, a, b = self.rng.choice(self.uniforms), self.rng.randint(1, 9), self.rng.choice(["blockId", "count"] + self.uniforms)
        return Node(f"{name} = {name} * {a} + {b}",
                    lambda env: env.__setitem__(name, choose(active(env), env[name] * numpy.uint64(a) + env[b], env[name])))

    def uniformLoop(self, depth, uniform):
        """As many rounds as memory says for the block, or constant; barriers inside; sometimes all leave early."""
        form, times = self.rng.randrange(3), self.rng.randint(1, 3)
        counter, leave = self.name("j"), self.rng.random() < 0.3
        self.variables[counter] = "usize"
        self.rounds += 1
        body = self.statements(self.rng.randint(1, 2), depth - 1, uniform)
        rest = self.statements(1, depth - 1, uniform)
        self.rounds -= 1
        del self.variables[counter]
        head = [f"for {counter} in 0..{times}usize", f"for {counter} in 0..count", f"while {counter} < count + 1"][form]
        exit_ = f"\nif {counter} + blockId > 3 {{\n    break\n}}\n" if leave else "\n"
        text = body.text + exit_ + rest.text
        if form == 2:
            # The counter moves first, so that the body cannot skip it.
            text = braces(head, f"{counter} += 1\n{text}")
            text = f"var {counter}: usize = 0\n{text}"
        else:
            text = braces(head, text)

        def run(env):
            mask, gone = env["mask"], numpy.zeros(self.shape, bool)
            most = [numpy.full(self.shape, times), env["count"].astype(int), env["count"].astype(int) + 1][form]
            for i in range(int(most.max())):
                env["mask"] = mask & (i < most) & ~gone
                env[counter] = numpy.full(self.shape, i + (form == 2), numpy.uint64)
                body.run(env)
                if leave:
                    gone |= env["mask"] & (env[counter] + env["blockId"] > 3)
                    env["mask"] = env["mask"] & ~gone
                rest.run(env)
            env["mask"] = mask

        return Node(text, run)

    def ownLoop(self, depth, uniform):
        """Each thread as often as it likes."""
        bound, times = self.index(self.rng.randint(2, 5))
        counter = self.name("j")
        self.variables[counter] = "usize"
        self.loops += 1
        body = self.statements(self.rng.randint(1, 3), depth - 1, False)
        self.loops -= 1
        del self.variables[counter]

        def run(env):
            mask, most = env["mask"], times(env)
            broke = numpy.zeros(self.shape, bool)
            for i in range(int(most.max()) if most.size else 0):
                env["mask"] = mask & (i < most)
                env["loops"].append((broke, numpy.zeros(self.shape, bool)))
                env[counter] = numpy.full(self.shape, i, numpy.uint64)
                body.run(env)
                broke = env["loops"].pop()[0]
            env["mask"] = mask

        return Node(braces(f"for {counter} in 0..{bound}", body.text), run)

    def jump(self, depth, uniform):
        text, value = self.condition(1)
        which = self.rng.randrange(2)

        def run(env):
            env["loops"][-1] = tuple(old | (active(env) & value(env)) if i == which else old for i, old in enumerate(env["loops"][-1]))

        return Node(braces(f"if {text}", ["break", "continue"][which]), run)

    def phase(self, depth, uniform):
        """Each thread writes its element of a tile, then all read any of it."""
        threads, rng = self.shape[1], self.rng
        own = rng.random() < 0.5
        kind = rng.choice(sorted(set(self.variables.values())))
        free = [tile for tile in self.tiles if tile[0] not in self.busy]
        if not own and not free:
            return None
        (tile, kind), first = (rng.choice(free), "") if not own else ((self.name("tile"), kind), None)
        if own:
            first = f"let {tile}: Tensor<{kind}, [{threads}]> @shared\n"
        form, by = rng.randrange(3), rng.randint(1, threads - 1)
        index = ["l", f"(l + {by}) % {threads}", f"{threads - 1} - l"][form]
        at = [numpy.arange(threads), (numpy.arange(threads) + by) % threads, threads - 1 - numpy.arange(threads)][form]
        text, value = self.of(kind)
        source = Source(tile, kind, threads, lambda env: env[tile], functions=False)
        self.busy.add(tile)
        self.sources.append(source)
        body = self.statements(rng.randint(1, 3), max(depth - 1, 0), uniform)
        name = rng.choice([each for each in self.variables if each.startswith("p")])
        read = self.element(self.variables[name], 1) or self.leaf(self.variables[name])
        self.sources.remove(source)
        self.busy.discard(tile)

        def run(env):
            values, mask = value(env), active(env)
            old = env.get(tile)
            new = zeros(kind, self.shape)
            for array, given in ((new.value, values.value), (new.error, values.error)) if isinstance(new, Float) else ((new, values),):
                array[:, at] = given
            env[tile] = new if old is None else choose(mask, new, old)
            body.run(env)
            env[name] = choose(active(env), read[1](env), env[name])

        lines = f"{first}{tile}[{index}] = {text}\nsync_block()\n{body.text}\n{name} = {read[0]}"
        # What follows a tile's scope may take its bytes: the compiler adds the barrier.
        if not own or self.rounds or rng.random() < 0.5:
            lines += "\nsync_block()"
        return Node(braces("", lines) if own else lines, run)

    def warp(self, depth, uniform):
        rng, lanes = self.rng, self.shape[1] // 32
        names = [each for each in self.variables if each.startswith("p") and self.variables[each] in ("i32", "u32", "i64", "u64")]
        if not names:
            return None
        name = rng.choice(names)
        kind = self.variables[name]
        text, value = self.of(kind)

        def each(run):
            return lambda env: env.__setitem__(name, choose(active(env), run(value(env).reshape(self.shape[0], lanes, 32)).reshape(self.shape), env[name]))

        pick, k = rng.randrange(6), rng.randint(1, 31)
        if pick == 0:
            return Node(f"{name} = warp.sum({text})", each(lambda v: numpy.broadcast_to(v.sum(axis=2, keepdims=True, dtype=v.dtype), v.shape)))
        if pick == 1:
            most = rng.random() < 0.5
            return Node(f"{name} = warp.{'max' if most else 'min'}({text})",
                        each(lambda v: numpy.broadcast_to((v.max if most else v.min)(axis=2, keepdims=True), v.shape)))
        if pick == 2:
            return Node(f"{name} = warp.shuffle_xor({text}, {k})", each(lambda v: v[:, :, numpy.arange(32) ^ k]))
        if pick == 3:
            return Node(f"{name} = warp.broadcast({text}, {k})", each(lambda v: numpy.broadcast_to(v[:, :, k:k + 1], v.shape)))
        if pick == 4:
            fresh, down = self.name("s"), rng.random() < 0.5
            lane = numpy.arange(self.shape[1])[None] % 32
            reach = lane + k < 32 if down else lane >= k

            def shuffled(env):
                v = value(env).reshape(self.shape[0], lanes, 32)
                moved = numpy.roll(v, -k if down else k, axis=2).reshape(self.shape)
                env[name] = choose(active(env) & reach, moved, env[name])

            test = f"warp.lane_id + {k} < 32" if down else f"warp.lane_id >= {k}"
            return Node(f"let {fresh} = warp.shuffle_{'down' if down else 'up'}({text}, {k})\n" + braces(f"if {test}", f"{name} = {fresh}"), shuffled)
        condition, truth = self.condition(1)
        fresh = self.name("s")

        def voted(env):
            votes = truth(env).reshape(self.shape[0], lanes, 32)
            bits = (votes.astype(numpy.uint64) << numpy.arange(32, dtype=numpy.uint64)).sum(axis=2, keepdims=True)
            new = bits + numpy.uint64(64) * votes.any(axis=2, keepdims=True) + numpy.uint64(128) * votes.all(axis=2, keepdims=True)
            new = numpy.broadcast_to(new, votes.shape).reshape(self.shape).astype(INTEGERS[kind])
            env[name] = choose(active(env), env[name] ^ new, env[name])

        return Node(f"let {fresh} = {condition}\n{name} = {name} ^ ((warp.ballot({fresh}) as u64) + (if warp.any({fresh}) {{ 64u64 }} else {{ 0u64 }})"
                    f" + (if warp.all({fresh}) {{ 128u64 }} else {{ 0u64 }})) as {kind}", voted)

    def own(self, kind):
        """An integer that the compiler sees to differ between threads."""
        text, value = self.of(kind)
        return f"({text} ^ (l as {kind}))", lambda env: value(env) ^ env["l"].astype(INTEGERS[kind])

    def count(self, depth, uniform):
        """Atomics of one operation on shared counters, in any order."""
        rng, size = self.rng, self.rng.choice([1, 4, 8])
        kind, (op, run_) = rng.choice(COUNTED), rng.choice(sorted(ATOMICS.items()))
        bins, start = self.name("bins"), rng.randint(0, 9)
        (text, value), (index, at) = self.own(kind), self.index(size)
        condition, truth = self.condition(1)
        names = [each for each in self.variables if each.startswith("p") and self.variables[each] in INTEGERS]
        name = rng.choice(names)
        reader, total = self.functions.readers[0]
        order = rng.choice(["", ", .relaxed", ", .acq_rel", ", .relaxed, .block"])

        def run(env):
            mask = active(env)
            array = numpy.full((self.shape[0], size), start).astype(INTEGERS[kind])
            where, values, takes = at(env), value(env), mask & truth(env)
            rows = numpy.broadcast_to(numpy.arange(self.shape[0])[:, None], self.shape)
            run_.at(array, (rows[takes], where[takes]), values[takes])
            env[name] = choose(mask, total(array)[:, None].astype(INTEGERS[self.variables[name]]), env[name])

        lines = [f"let {bins}: Tensor<{kind}, [{size}]> @shared", braces(f"if l < {size}", f"{bins}[l] = {start}"), "sync_block()",
                 braces(f"if {condition}", f"{op}(&mut {bins}[{index}], {text}{order})"), "sync_block()",
                 f"{name} = {reader}(&{bins}) as {self.variables[name]}", "sync_block()"]
        return Node(braces("", "\n".join(lines)), run)

    def floatCount(self, depth, uniform):
        """Sums of small whole numbers in floats, exact in any order."""
        kind, size, bins = self.rng.choice(["f32", "f64"]), self.rng.choice([1, 4]), self.name("bins")
        (text, value), (index, at) = self.own("i8"), self.index(size)
        (read, where), name = self.index(size), self.rng.choice([each for each in self.variables if each.startswith("p") and self.variables[each] in INTEGERS])

        def run(env):
            small = value(env) & numpy.int8(7)
            array = numpy.zeros((self.shape[0], size))
            rows = numpy.broadcast_to(numpy.arange(self.shape[0])[:, None], self.shape)
            mask = active(env)
            numpy.add.at(array, (rows[mask], at(env)[mask]), small[mask].astype(float))
            env[name] = choose(mask, saturated(array[rows, where(env)], self.variables[name]), env[name])

        lines = [f"let {bins}: Tensor<{kind}, [{size}]> @shared", braces(f"if l < {size}", f"{bins}[l] = 0.0"), "sync_block()",
                 f"atomic_add(&mut {bins}[{index}], (({text} & 7) as {kind}))", "sync_block()", f"{name} = {bins}[{read}] as {self.variables[name]}",
                 "sync_block()"]
        return Node(braces("", "\n".join(lines)), run)

    def pair(self, depth, uniform):
        """Two tiles in an array; which one is read the block decides, while running or before."""
        kind, tiles, threads = self.rng.choice(sorted(set(self.variables.values()))), self.name("pair"), self.shape[1]
        (a, fa), (b, fb) = self.of(kind), self.of(kind)
        which, number = self.rng.choice([("0", None), ("1", None), ("u0 % 2", "u0"), ("(u0 + 1) % 2", "u0")])
        (index, at), name = self.index(threads), self.rng.choice([each for each in self.variables if each.startswith("p")])
        kinds = self.variables[name]
        view = self.rng.random() < 0.5 and threads % 2 == 0

        def run(env):
            x, y = fa(env), fb(env)
            first = numpy.full(self.shape, which == "0") if number is None else (env["u0"] + numpy.uint64("1" in which)) % numpy.uint64(2) == 0
            where, rows = at(env), numpy.arange(self.shape[0])[:, None]
            if view:
                where = threads // 2 + where % (threads // 2)
            if kinds == kind:
                env[name] = choose(active(env), choose(first, x[rows, where], y[rows, where]), env[name])

        read = f"{tiles}[{which}][{threads // 2} + ({index}) % {threads // 2}]" if view else f"{tiles}[{which}][{index}]"
        lines = [f"let {tiles}: [Tensor<{kind}, [{threads}]> @shared; 2]", f"{tiles}[0][l] = {a}", f"{tiles}[1][l] = {b}", "sync_block()",
                 f"{name} = {read}" if kinds == kind else f"let unused{self.fresh} = {read}", "sync_block()"]
        return Node(braces("", "\n".join(lines)), run)

    def reduce(self, depth, uniform):
        """A tree over a tile, its result to all."""
        names = [each for each in self.variables if each.startswith("p") and self.variables[each] in INTEGERS]
        name, threads = self.rng.choice(names), self.shape[1]
        kind, tile, s = self.variables[name], self.name("tree"), self.name("s")
        op, run_ = self.rng.choice([("+", numpy.add), ("^", numpy.bitwise_xor), ("&", numpy.bitwise_and)])
        text, value = self.of(kind)
        most = threads & -threads
        if most != threads:
            return None

        def run(env):
            result = run_.reduce(value(env), axis=1, keepdims=True, dtype=INTEGERS[kind])
            env[name] = choose(active(env), numpy.broadcast_to(result, self.shape), env[name])

        lines = [f"let {tile}: Tensor<{kind}, [{threads}]> @shared", f"{tile}[l] = {text}", "sync_block()",
                 braces(f"for {s} in [{threads // 2}, {threads // 4}, ..., 1]",
                        braces(f"if l < {s}", f"{tile}[l] = {tile}[l] {op} {tile}[l + {s}]") + "\nsync_block()"),
                 f"{name} = {tile}[0]", "sync_block()"]
        return Node(braces("", "\n".join(lines)), run)


class Kernel:
    """One kernel, its launch and what it computes; `case` gets them."""

    mayInfer = True

    def __init__(self, rng, name, seed):
        self.rng, self.case = rng, Case(name, seed)
        self.functions = Functions(rng, name)
        self.blocks, self.threads = rng.randint(1, 3), rng.choice([32, 64, 64, 128])
        self.count = self.blocks * self.threads - rng.choice([0, 0, rng.randint(1, 31)])
        # Without `@launch(grid = …)` surplus threads run too: their own elements read as 0, and they do not write global memory.
        self.inferred = self.mayInfer and rng.random() < 0.3
        self.ragged = self.count < self.blocks * self.threads and not self.inferred
        self.position = "thread.global_id" if self.inferred else "i"
        self.code = self.makeCode()
        self.parameters, self.lines, self.prepare = [], [], []
        self.inputs()
        body = self.body()
        self.finish(body)

    def makeCode(self):
        return Threads(self.rng, self.functions, (self.blocks, self.threads))

    def perThread(self, values, kind):
        """[count] padded to [blocks, threads] with zeros."""
        padded = numpy.zeros(self.blocks * self.threads, values.dtype)
        padded[:self.count] = values
        shaped = padded.reshape(self.blocks, self.threads)
        return Float.exact(shaped, kind) if kind in FLOATS else shaped

    def lend(self, name, values, kind, mutable=False):
        """An argument with these values: a tensor, a slice of one, a column, or a row. Returns it, and where the values are in the tensor."""
        case, rng, count = self.case, self.rng, len(values)
        form = rng.randrange(4)
        place, view = (slice(None),), name
        if form == 0:
            whole = values.copy()
        elif form == 1:
            before, after = rng.randint(0, 9), rng.randint(0, 9)
            whole = samples(rng, kind, (before + count + after,))
            place, view = (slice(before, before + count),), f"{name}[{before}..{before + count}]"
        else:
            columns = rng.randint(2, 4)
            whole = samples(rng, kind, (count, columns) if form == 2 else (columns, count))
            which = rng.randrange(columns)
            place = (slice(None), which) if form == 2 else (which,)
            view = f"{name}[:, {which}]" if form == 2 else f"{name}[{which}, :]"
        whole[place] = values
        case.give(name, whole, kind, str(list(whole.shape)))
        return f"&mut {view}" if mutable else f"&{view}", (name, whole, place)

    def expect(self, where, values, kind):
        """The lent tensor has these values now, and is unchanged around them."""
        name, whole, place = where
        if isinstance(values, Float):
            whole = Float.exact(whole, kind)
            whole.value[place], whole.error[place] = values.value, values.error
        else:
            whole = whole.copy()
            whole[place] = values
        self.case.take(f"{name}_out", name, whole, kind)

    def inputs(self):
        rng, code = self.rng, self.code
        self.arguments = []
        kinds = [rng.choice(KINDS) for _ in range(rng.randint(2, 4))] + [rng.choice(list(INTEGERS))]
        for index, kind in enumerate(kinds):
            values = samples(rng, kind, (self.count,))
            self.parameters.append(f"x{index}: &Tensor<{kind}, [N]>")
            self.arguments.append(self.lend(f"x{index}", values, kind)[0])
            zero = "false" if kind == "bool" else f"0 as {kind}"
            read = f"if i < N {{ x{index}[i] }} else {{ {zero} }}" if self.ragged else f"x{index}[{self.position}]"
            self.lines += [f"let e{index} = {read}", f"var p{index} = e{index}"]
            lanes = self.perThread(values, kind)
            self.prepare.append(lambda env, index=index, lanes=lanes: env.update({f"p{index}": lanes, f"e{index}": lanes}))
            code.variables[f"p{index}"] = code.variables[f"e{index}"] = kind
            if kind in FLOATS:
                code.exact[f"e{index}"] = kind
        self.tables()
        self.locals()

    def tables(self):
        """Whole tensors that all threads read: constant memory, a global one, an array of two."""
        rng = self.rng
        for name, form in (("table", "&Tensor<{0}, [{1}]> @constant"), ("wide", "&Tensor<{0}, [W]>")):
            kind, size = rng.choice(list(INTEGERS) + ["f32", "f64"]), rng.randint(1, 16) if name == "table" else rng.randint(1, 50)
            values = samples(rng, kind, (size,))
            self.parameters.append(f"{name}: {form.format(kind, size)}")
            if name == "table":
                self.case.give("table_", values, kind, f"[{size}]")
                self.case.body += f"let table: Tensor<{kind}, [{size}]> @constant = Tensor.from_host(table_.to_host())\n"
                self.arguments.append("&table")
            else:
                self.arguments.append(self.lend("wide", values, kind)[0])
            rows = numpy.broadcast_to(values, (self.blocks, size))
            rows = Float.exact(rows, kind) if kind in FLOATS else rows
            self.code.sources.append(Source(name, kind, size, lambda env, rows=rows: rows))
            if name == "wide":  # a view of a part
                first = rng.randrange(size)
                self.lines.append(f"let part = wide[{first}..{size}]")
                part = rows[:, first:]
                self.code.sources.append(Source("part", kind, size - first, lambda env: part, functions=False))
        self.structParameter()
        kind, size = rng.choice(list(INTEGERS)), rng.randint(2, 9)
        arrays = [samples(rng, kind, (size,)) for _ in range(2)]
        for i, values in enumerate(arrays):
            self.case.give(f"part{i}", values, kind, f"[{size}]")
        self.case.body += "let parts = [part0, part1]\n"
        self.parameters.append(f"parts: &[Tensor<{kind}, [P]>; 2]")
        self.arguments.append("&parts")
        for i, values in enumerate(arrays):
            rows = numpy.broadcast_to(values, (self.blocks, size))
            self.code.sources.append(Source(f"parts[{i}]", kind, size, lambda env, rows=rows: rows, functions=False))
        if rng.random() < 0.5:  # chosen while running
            index, at = self.code.index(2)
            fresh = self.code.name("q")
            at_, which = self.code.index(size)
            self.lines.append(f"let {fresh} = parts[{index}][{at_}]")
            stack = numpy.stack(arrays)
            self.prepare.append(lambda env: env.__setitem__(fresh, stack[at(env), which(env)]))
            self.code.variables[fresh] = kind

    def structParameter(self):
        """A struct of two tensors and a number, asked through a method."""
        rng, case, name = self.rng, self.case, f"{self.case.name}_Two"
        kinds, sizes = [rng.choice(list(INTEGERS)) for _ in range(2)], [rng.randint(1, 9) for _ in range(2)]
        scale = rng.randint(-9, 9)
        self.functions.texts.append(f"struct {name} {{\n    first: Tensor<{kinds[0]}, [A]>,\n    scale: i32,\n    second: Tensor<{kinds[1]}, [D]>,\n}}\n"
                                    f"impl {name} {{\n    fn at(&self, i: usize) -> i32 {{\n        @unchecked(overflow)\n"
                                    f"        return self.scale * (self.first[i % A] as i32)\n    }}\n}}")
        arrays = [samples(rng, kind, (size,)) for kind, size in zip(kinds, sizes)]
        for which, values, kind, size in zip(("first", "second"), arrays, kinds, sizes):
            case.give(f"two_{which}", values, kind, f"[{size}]")
            rows = numpy.broadcast_to(values, (self.blocks, size))
            self.code.sources.append(Source(f"two.{which}", kind, size, lambda env, rows=rows: rows, functions=False))
        case.body += f"let two = {name} {{ first: two_first, scale: {scale}, second: two_second }}\n"
        self.parameters.append(f"two: &{name}")
        self.arguments.append("&two")
        index, at = self.code.index(20)
        self.lines.append(f"let m0 = two.at({index})")
        self.prepare.append(lambda env: env.__setitem__("m0", numpy.int32(scale) * arrays[0][at(env) % sizes[0]].astype(numpy.int32)))
        self.code.variables["m0"] = "i32"

    def locals(self):
        rng, code = self.rng, self.code
        for index in range(rng.randint(0, 2)):
            kind, size, name = rng.choice(KINDS), rng.randint(1, 6), f"own{index}"
            self.lines += [f"let {name}: Tensor<{kind}, [{size}]> @local", *(f"{name}[{i}] = {'false' if kind == 'bool' else f'0 as {kind}'}" for i in range(size))]
            self.prepare.append(lambda env, name=name, kind=kind, size=size: env.__setitem__(name, zeros(kind, (self.blocks, self.threads, size))))
            code.sources.append(Source(name, kind, size, lambda env, name=name: env[name], own=True))
        counts = samples(rng, "u32", (self.blocks,)) % 4
        self.parameters.append("counts: &Tensor<u32, [G]>")
        self.arguments.append(self.lend("counts", counts.astype(numpy.uint32), "u32")[0])
        ids = numpy.broadcast_to(numpy.arange(self.blocks, dtype=numpy.uint64)[:, None], (self.blocks, self.threads))
        lanes = numpy.broadcast_to(numpy.arange(self.threads, dtype=numpy.uint64)[None], (self.blocks, self.threads))
        whole = numpy.broadcast_to(counts.astype(numpy.uint64)[:, None], (self.blocks, self.threads))
        self.start = {"l": lanes, "i": ids * numpy.uint64(self.threads) + lanes, "blockId": ids, "count": whole, "u0": ids + whole}
        code.variables.update({"l": "usize", "i": "usize", "blockId": "usize", "count": "usize"})
        code.uniforms = ["u0"]

    def body(self):
        rng, code = self.rng, self.code
        for index in range(rng.randint(0, 2)):
            kind = rng.choice(sorted(set(code.variables.values())))
            code.tiles.append((f"tile_{index}", kind))
            self.lines.append(f"let tile_{index}: Tensor<{kind}, [{self.threads}]> @shared")
        return block(code.statement(2, True) for _ in range(rng.randint(3, 7)))

    def finish(self, body):
        rng, code, case = self.rng, self.code, self.case
        env = {"mask": numpy.ones(code.shape, bool), "returned": numpy.zeros(code.shape, bool), "loops": [], **self.start}
        inside = (env["i"] < self.count)
        with numpy.errstate(all="ignore"):
            for prepare in self.prepare:
                prepare(env)
            body.run(env)
        results, stores = [], []
        names = [name for name in code.variables if name.startswith("p")]
        leave, truth = code.condition(1)
        early = rng.random() < 0.4
        for index, name in enumerate(names):
            kind = code.variables[name]
            old = samples(rng, kind, (self.count,))
            argument, where = self.lend(f"y{index}", old, kind, mutable=True)
            self.parameters.append(f"y{index}: &mut Tensor<{kind}, [N]>")
            self.arguments.append(argument)
            store = f"y{index}[{self.position}] = {name}"
            stores.append(braces("if i < N", store) if self.ragged else store)
            results.append((where, name, kind, self.perThread(old, kind)))
        with numpy.errstate(all="ignore"):
            gone = truth(env) if early else numpy.zeros(code.shape, bool)
        if early:
            stores.insert(1, braces(f"if {leave}", "return"))
        bins = self.bins(env, gone, stores, inside)
        stores += self.more()
        head = ["let l = thread.local_id", f"let blockId = block.id.x", "let i = thread.global_id" if self.inferred else f"let i = blockId * {self.threads} + l", "let count = counts[blockId] as usize",
                "var u0 = blockId + count"]
        # What later lines read must stand first.
        text = "\n".join(head + self.lines) + "\n" + body.text + "\n" + "\n".join(stores)
        form = f"{self.threads}" if self.inferred or rng.random() < 0.6 else f"[{self.threads // 4}, 4]"
        grid = "" if self.inferred else f"grid = [ceil_div(N, {self.threads})], " if self.ragged else f"grid = [N / {self.threads}], "
        signature = ",\n    ".join(self.parameters)
        kernel = f"@unchecked(overflow)\n@launch({grid}block = {form})\nkernel {case.name}_k(\n    {signature}\n) {{\n"
        case.items = "\n".join(self.functions.texts) + "\n" + kernel + "\n".join("    " + line for line in text.split("\n")) + "\n}\n"
        case.body += f"{case.name}_k({', '.join(self.arguments)})\n"
        for position, (where, name, kind, old) in enumerate(results):
            self.expect(where, self.flat(env[name] if position == 0 else choose(~gone, env[name], old)), kind)
        self.expect(*bins)
        self.also(env, gone)

    def more(self):
        """Further statements at the end."""
        return []

    def also(self, env, gone):
        """Further results; `gone`: threads that left before the second store."""

    def flat(self, value):
        if isinstance(value, Float):
            return Float(value.value.reshape(-1)[:self.count], value.error.reshape(-1)[:self.count], value.kind)
        return value.reshape(-1)[:self.count]

    def bins(self, env, gone, stores, inside):
        """Global atomics of one operation."""
        rng, code = self.rng, self.code
        kind, (op, run) = rng.choice(COUNTED), rng.choice(sorted(ATOMICS.items()))
        size = rng.randint(1, 5)
        old = samples(rng, kind, (size,))
        (text, value), (index, at) = code.own(kind), code.index(size)
        argument, where = self.lend("bins", old, kind, mutable=True)
        self.parameters.append(f"bins: &mut Tensor<{kind}, [{size}]>")
        self.arguments.append(argument)
        stores.append(f"{op}(&mut bins[{index}], {text})")
        with numpy.errstate(all="ignore"):
            array, take = old.copy(), ~gone & inside
            run.at(array, at(env)[take], value(env)[take])
        if self.ragged:
            stores[-1] = braces("if i < N", stores[-1])
        return where, array, kind
