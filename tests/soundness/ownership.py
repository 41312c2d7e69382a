"""Random well-typed, race-free programs with their own evaluation in Python.

A program is a tree of nodes: each has its text and a function that does to an environment what the text does. Host code moves, moves
parts, fills again, lends and slices lists, tensors and structs of them; kernels mix whole-tensor code, per-thread regions, shared tensors
with barriers, local tensors and slices. Arithmetic is that of i32."""
import random

from tree import Node, block, indent

BLOCK = 64


def wrap(value):
    return (int(value) + 2**31) % 2**32 - 2**31


def digest(values):
    total = 7
    for value in values:
        total = wrap(total * 31 + value)
    return total


PRELUDE = """struct Pair {
    first: Vec<i32>,
    second: Vec<i32>,
}

struct Fields {
    u: Tensor<i32, [128]>,
    v: Tensor<i32, [128]>,
}

impl Pair {
    fn size(&self) -> usize { return self.first.len() + self.second.len() }
    fn grow(&mut self, by: usize) { self.first.push(by as i32) }
    fn swap(self) -> Pair { return Pair { first: self.second, second: self.first } }
    fn front(&mut self) -> &mut Vec<i32> { return &mut self.first }
}

fn digest(v: &Vec<i32>) -> i32 {
    var total: i32 = 7
    for x in v { @unchecked(overflow) total = total * 31 + x }
    return total
}
fn passed(v: Vec<i32>) -> Vec<i32> { return v }
fn joined(v: Vec<i32>, w: &Vec<i32>) -> Vec<i32> {
    var out = v
    for x in w { out.push(x) }
    return out
}
fn longer(a: &Vec<i32>, b: &Vec<i32>) -> &Vec<i32> {
    if a.len() >= b.len() { return a }
    return b
}
fn raise(v: &mut Vec<i32>, by: i32) {
    for i in 0..v.len() { v[i] += by }
}
fn mix(v: &mut Vec<i32>, w: &Vec<i32>) { v[0] += w[0] }
fn pick<M: MemorySpace + Readable>(t: &Tensor<i32, [N], M>, i: usize) -> i32 { return t[i] }
fn put(t: &mut Tensor<i32, [N]> @shared, i: usize, value: i32) { t[i] = value }
"""


class Kernels:
    """A library of kernels over tensors of whole blocks; `functions[name](values)` is what each does."""

    def __init__(self, rng):
        self.rng, self.texts, self.map, self.change = rng, [], {}, {}
        for i in range(2):
            self.whole(f"whole{i}")
            self.threads(f"threads{i}")
            self.changing(f"changing{i}")

    def whole(self, name):
        a, b = self.rng.randint(-9, 9), self.rng.randint(-99, 99)
        self.texts.append(f"kernel {name}(x: Tensor<i32, [N]>) -> Tensor<i32, [N]> {{\n    let y = x * {a}\n    return y + ({b})\n}}")
        self.map[name] = lambda v: [wrap(x * a + b) for x in v]

    def changing(self, name):
        a = self.rng.randint(1, 50)
        self.texts.append(f"kernel {name}(x: &mut Tensor<i32, [N]>, y: &Tensor<i32, [N]>) {{\n    let t = thread.global_id\n"
                          f"    if x[t] % {a} != 0 {{\n        x[t] += y[t]\n    }} else {{\n        x[t] = x[t] ^ y[t]\n    }}\n}}")
        self.change[name] = lambda v, w: [wrap(x + y) if abs(x) % a else wrap(x ^ y) for x, y in zip(v, w)]

    def threads(self, name):
        body = block(self.statement(2) for _ in range(self.rng.randint(3, 6)))
        text = ("let t = thread.local_id\nlet tile: Tensor<i32, [64]> @shared\nlet own: Tensor<i32, [4]> @local\nvar p = x[thread.global_id]\n"
                "var q: i32 = 3\nown[0] = p\nown[1] = 1\nown[2] = q\nown[3] = p ^ 5\n" + body.text + "\ny[thread.global_id] = p * 17 + q + own[p & 3]")
        self.texts.append(f"@launch(grid = [N / 64], block = 64)\nkernel {name}(x: &Tensor<i32, [N]>, y: &mut Tensor<i32, [N]>) {{\n{indent(text)}\n}}")

        def run(values):
            out = []
            for at in range(0, len(values), BLOCK):
                env = {"p": values[at:at + BLOCK], "q": [3] * BLOCK, "mask": [True] * BLOCK, "i": 0}
                env["own"] = [[p, 1, 3, wrap(p ^ 5)] for p in env["p"]]
                body.run(env)
                out += [wrap(wrap(wrap(p * 17) + q) + own[p & 3]) for p, q, own in zip(env["p"], env["q"], env["own"])]
            return out

        self.map[name] = run

    def expression(self):
        a, b = self.rng.choice("pq"), self.rng.choice("pq")
        c = self.rng.randint(-20, 20)
        pick = self.rng.randrange(7)
        if pick == 6:  # through a function for any space
            return f"pick(&own, ({a} & 3) as usize) - {b}", lambda e, t: wrap(e["own"][t][e[a][t] & 3] - e[b][t])
        if pick == 0:
            return f"{a} * {abs(c)} + {b}", lambda e, t: wrap(wrap(e[a][t] * abs(c)) + e[b][t])
        if pick == 1:
            return f"({a} ^ {b}) - ({c})", lambda e, t: wrap((e[a][t] ^ e[b][t]) - c)
        if pick == 2:
            return f"own[{a} & 3] + (t as i32)", lambda e, t: wrap(e["own"][t][e[a][t] & 3] + t)
        if pick == 3:
            return f"max({a}, {c})", lambda e, t: max(e[a][t], c)
        if pick == 4:
            return f"(if {a} > {b} {{ {a} }} else {{ {b} - 1 }})", lambda e, t: e[a][t] if e[a][t] > e[b][t] else wrap(e[b][t] - 1)
        return f"{a} & {abs(c) + 1}", lambda e, t: e[a][t] & (abs(c) + 1)

    def statement(self, depth, uniform=True):
        pick = self.rng.randrange(7 if depth else 3)
        if pick == 3 and uniform:  # exchange through shared memory
            a, b, shift = self.rng.choice("pq"), self.rng.choice("pq"), self.rng.randint(1, 63)
            inner = self.rng.random() < 0.5
            tile = "inner" if inner else "tile"
            form = self.rng.randrange(3)
            write = f"put(&mut {tile}, t, {a})" if form == 1 else f"{tile}[t] = {a}"
            half = self.rng.choice([0, 32])
            read = {0: f"{tile}[(t + {shift}) % 64]", 1: f"pick(&{tile}, (t + {shift}) % 64)", 2: f"part[(t + {shift}) % 32]"}[form]
            text = f"{write}\nsync_block()\n{b} = {read}\nsync_block()"
            if form == 2:  # through a view of half of it, which ends before the tile is written again
                text = "{\n" + indent(text.replace(f"{b} = part", f"let part = {tile}[{half}..+32]\n{b} = part")) + "\n}"
            if inner:
                text = "{\n" + indent("let inner: Tensor<i32, [64]> @shared\n" + text) + "\n}"

            def exchange(e):
                e[b] = [e[a][half + (t + shift) % 32] if form == 2 else e[a][(t + shift) % BLOCK] for t in range(BLOCK)]

            return Node(text, exchange)
        if pick == 4:  # some threads
            a, m, r = self.rng.choice("pq"), self.rng.randint(2, 5), self.rng.randint(0, 3)
            then, other = (block([self.statement(depth - 1, False) for _ in range(2)]) for _ in range(2))
            text = f"if ({a} & 15) % {m} == {r} {{\n{indent(then.text)}\n}} else {{\n{indent(other.text)}\n}}"

            def branch(e):
                mask = e["mask"]
                yes = [(x & 15) % m == r for x in e[a]]
                for body, side in ((then, True), (other, False)):
                    e["mask"] = [on and (y == side) for on, y in zip(mask, yes)]
                    body.run(e)
                e["mask"] = mask

            return Node(text, branch)
        if pick == 5:  # all threads, several times
            times = self.rng.randint(1, 3)
            body = block([self.statement(depth - 1, uniform) for _ in range(2)])
            return Node(f"for i{depth} in 0..{times} {{\n{indent(body.text)}\n}}", lambda e: [body.run(e) for _ in range(times)])
        target = self.rng.choice(["p", "q", "own"])
        text, value = self.expression()
        index = self.rng.randrange(4)

        def assign(e):
            new = [value(e, t) for t in range(BLOCK)]
            for t in range(BLOCK):
                if e["mask"][t] and target == "own":
                    e["own"][t][index] = new[t]
            if target != "own":
                e[target] = [n if on else o for n, o, on in zip(new, e[target], e["mask"])]

        return Node(f"{'own[%d]' % index if target == 'own' else target} = {text}", assign)


class Program:
    """`text()` and, from `expected()`, what it prints. `holes` are places (marked in the text) where a statement may be inserted, with
    the variables that are whole there; `kernelHole` marks the end of a kernel's body."""

    def __init__(self, seed, size=14):
        self.rng = random.Random(seed)
        self.kernels = Kernels(self.rng)
        self.fresh, self.looped = 0, False
        self.holes = []
        self.live = {}  # name -> kind, of what is whole
        self.parts = {}  # structs that lack a field -> the field
        self.body = block([self.declare(kind) for kind in ("list", "pair", "tensor", "fields")] + self.statements(size, 2) + [self.show()])

    def name(self):
        self.fresh += 1
        return f"v{self.fresh}"

    def text(self, hole=None, insert=""):
        body = self.body.text
        for index in range(len(self.holes)):
            mark = f"//HOLE{index};"
            at = body.index(mark)
            start = body.rindex("\n", 0, at) + 1
            padding = body[start:at]
            text = "\n".join(padding + line for line in insert.split("\n")) if index == hole else ""
            body = body[:start] + text + body[body.index("\n", at) + (0 if text else 1):]
        return PRELUDE + "\n" + "\n\n".join(self.kernels.texts) + "\n\nfn main() {\n" + indent(body) + "\n}\n"

    def expected(self):
        env = {"out": []}
        self.body.run(env)
        return env["out"]

    def hole(self):
        self.holes.append(dict(self.live))
        return Node(f"//HOLE{len(self.holes) - 1};", lambda env: None)

    def some(self, kind):
        names = [name for name, each in self.live.items() if each == kind]
        return self.rng.choice(names) if names else None

    def literal(self):
        return [self.rng.randint(-99, 99) for _ in range(self.rng.randint(1, 5))]

    @staticmethod
    def listText(values):
        return "vec![" + ", ".join(map(str, values)) + "]"

    def value(self, kind):
        """(text, function that makes it)."""
        if kind == "list":
            values = self.literal()
            return self.listText(values), lambda: list(values)
        if kind == "pair":
            (a, fa), (b, fb) = self.value("list"), self.value("list")
            return f"Pair {{ first: {a}, second: {b} }}", lambda: {"first": fa(), "second": fb()}
        if kind == "fields":
            (a, fa), (b, fb) = self.value("tensor"), self.value("tensor")
            return f"Fields {{ u: {a}, v: {b} }}", lambda: {"u": fa(), "v": fb()}
        c = self.rng.randint(-50, 50)
        return f"full({c}, [128])", lambda: [c] * 128

    def declare(self, kind, name=None):
        name = name or self.name()
        text, make = self.value(kind)
        self.live[name] = kind
        return Node(f"var {name} = {text}", lambda env: env.__setitem__(name, make()))

    def statements(self, count, depth):
        nodes = []
        for _ in range(count):
            nodes += [self.hole(), self.statement(depth)]
        return nodes

    def statement(self, depth):
        for _ in range(50):
            choices = [self.push, self.lend, self.reborrow, self.launch, self.changeTensor, self.slices, self.fieldPair, self.closure,
                       self.roundTrip, self.method, self.walk, self.show]
            if not self.looped:  # what a loop moves it would move twice
                choices += [self.move, self.move, self.takePart, self.fillPart, self.moveTensor, self.swap]
            if depth:
                choices += [self.branch, self.loop]
            made = self.rng.choice(choices)
            node = made(depth) if made in (self.branch, self.loop) else made()
            if node:
                return node
        return self.show()

    # ---- each returns a Node, or None where nothing suitable is alive

    def push(self):
        v, n = self.some("list"), self.rng.randint(-9, 9)
        forms = [(f"{v}.push({n} + {v}[0])", lambda env: env[v].append(wrap(n + env[v][0]))),
                 (f"{v}[{v}.len() - 1] = {n}", lambda env: env[v].__setitem__(-1, n)),
                 (f"{v}.push({n})\n{v}.push({v}.pop())", lambda env: env[v].append(n))]
        return v and Node(*self.rng.choice(forms))

    def lend(self):
        v, w, r = self.some("list"), self.some("list"), self.name()
        return v and Node(f"let {r} = longer(&{v}, &{w})\nprint(digest({r}))\n{v}.push({r}x)".replace(f"{r}x", "4"),
                          lambda env: (env["out"].append(digest(env[v] if len(env[v]) >= len(env[w]) else env[w])), env[v].append(4)))

    def reborrow(self):
        v, r, s, n = self.some("list"), self.name(), self.name(), self.rng.randint(-9, 9)
        return v and Node(f"let {r} = &mut {v}\nraise({r}, {n})\nlet {s} = &{r}[0]\nprint({s} + 0)\n{r}.push({n})\nprint(digest(&{v}))",
                          lambda env: (env.__setitem__(v, [wrap(x + n) for x in env[v]]), env["out"].append(env[v][0]), env[v].append(n),
                                       env["out"].append(digest(env[v]))))

    def launch(self):
        t, r, k = self.some("tensor"), self.name(), self.rng.choice(sorted(self.kernels.map))
        if not t:
            return None
        self.live[r] = "tensor"
        run = self.kernels.map[k]
        if k.startswith("whole"):
            return Node(f"var {r} = {k}(&{t})", lambda env: env.__setitem__(r, run(env[t])))
        return Node(f"var {r}: Tensor<i32, [128]> = zeros()\n{k}(&{t}, &mut {r})", lambda env: env.__setitem__(r, run(env[t])))

    def changeTensor(self):
        t, u, k = self.some("tensor"), self.some("tensor"), self.rng.choice(sorted(self.kernels.change))
        run = self.kernels.change[k]
        return t and t != u and Node(f"{k}(&mut {t}, &{u})", lambda env: env.__setitem__(t, run(env[t], env[u]))) or None

    def slices(self):
        t, k, h = self.some("tensor"), self.rng.choice(sorted(self.kernels.change)), self.rng.randint(1, 63)
        run, n = self.kernels.change[k], self.name()
        return t and Node(f"let {n}: usize = {h}\n{k}(&mut {t}[0..{n}], &{t}[{n}..+{n}])",
                          lambda env: env[t].__setitem__(slice(0, h), run(env[t][:h], env[t][h:2 * h])))

    def fieldPair(self):
        p = self.some("pair")
        return p and Node(f"mix(&mut {p}.first, &{p}.second)",
                          lambda env: env[p]["first"].__setitem__(0, wrap(env[p]["first"][0] + env[p]["second"][0])))

    def closure(self):
        v, f, n = self.some("list"), self.name(), self.rng.randint(1, 9)
        return v and Node(f"let {f} = |x: i32| {{ {v}.push(x * {n}) }}\n{f}(3)\n{f}(5)\nprint({v}.len())",
                          lambda env: (env[v].extend([3 * n, 5 * n]), env["out"].append(len(env[v]))))

    def roundTrip(self):
        t, r = self.some("tensor"), self.name()
        if not t:
            return None
        self.live[r] = "list"
        return Node(f"var {r} = {t}.to_host()", lambda env: env.__setitem__(r, list(env[t])))

    def method(self):
        p, f = self.some("pair"), self.name()
        return p and Node(f"{p}.grow({p}.size())\nlet {f} = {p}.front()\n{f}.push(2)\nprint({p}.size())",
                          lambda env: (env[p]["first"].extend([len(env[p]["first"]) + len(env[p]["second"]), 2]),
                                       env["out"].append(len(env[p]["first"]) + len(env[p]["second"]))))

    def walk(self):
        v, w = self.some("list"), self.some("list")
        return v and v != w and Node(f"for x in {v} {{\n    if x > 0 && {w}.len() < 300 {{\n        {w}.push(x)\n    }}\n}}",
                                     lambda env: [env[w].append(x) for x in env[v] if x > 0 and len(env[w]) < 300]) or None

    def show(self):
        lines, names = [], list(self.live.items())
        for name, kind in names:
            parts = {"list": [f"&{name}"], "pair": [f"&{name}.first", f"&{name}.second"], "tensor": [f"&{name}.to_host()"],
                     "fields": [f"&{name}.u.to_host()", f"&{name}.v.to_host()"]}[kind]
            lines += [f"print(digest({part}))" for part in parts]

        def run(env):
            for name, kind in names:
                values = [env[name]] if kind in ("list", "tensor") else list(env[name].values())
                env["out"] += [digest(value) for value in values]

        return Node("\n".join(lines) or "print(0)", run if names else lambda env: env["out"].append(0))

    def move(self):
        v, r = self.some("list"), self.name()
        if not v:
            return None
        w = self.some("list")
        again, make = self.value("list")
        forms = [(f"var {r} = {v}", lambda env: env.__setitem__(r, env.pop(v))),
                 (f"var {r} = passed({v})", lambda env: env.__setitem__(r, env.pop(v)))]
        if w != v:
            forms.append((f"var {r} = joined({v}, &{w})", lambda env: env.__setitem__(r, env.pop(v) + env[w])))
        refill = self.rng.random() < 0.4
        self.live[r] = "list"
        text, run = self.rng.choice(forms)
        if refill:
            return Node(f"{text}\n{v} = {again}", lambda env: (run(env), env.__setitem__(v, make())))
        del self.live[v]
        return Node(text, run)

    def takePart(self):
        p, r, field = self.some("pair"), self.name(), self.rng.choice(["first", "second"])
        if not p:
            return None
        other = "second" if field == "first" else "first"
        del self.live[p]
        self.parts[p] = field
        self.live[r] = "list"
        return Node(f"var {r} = {p}.{field}\nprint(digest(&{p}.{other}))",
                    lambda env: (env.__setitem__(r, env[p].pop(field)), env["out"].append(digest(env[p][other]))))

    def fillPart(self):
        if not self.parts:
            return None
        p = self.rng.choice(sorted(self.parts))
        field = self.parts.pop(p)
        text, make = self.value("list")
        self.live[p] = "pair"

        def fill(env):
            values = {**env[p], field: make()}
            env[p] = {"first": values["first"], "second": values["second"]}

        return Node(f"{p}.{field} = {text}", fill)

    def moveTensor(self):
        t, f, r = self.some("tensor"), self.some("fields"), self.name()
        whole = [k for k in sorted(self.kernels.map) if k.startswith("whole")]
        k = self.rng.choice(whole)
        if t and self.rng.random() < 0.5:
            del self.live[t]
            self.live[r] = "tensor"
            return Node(f"var {r} = {k}({t})", lambda env: env.__setitem__(r, self.kernels.map[k](env.pop(t))))
        if not f:
            return None
        return Node(f"let {r} = {f}.u\n{f}.u = {k}(&{f}.v)\n{f}.v = {r}",
                    lambda env: env.__setitem__(f, {"u": self.kernels.map[k](env[f]["v"]), "v": env[f]["u"]}))

    def swap(self):
        p, r = self.some("pair"), self.name()
        if not p:
            return None
        del self.live[p]
        self.live[r] = "pair"
        return Node(f"var {r} = {p}.swap()", lambda env: env.__setitem__(r, {"first": env[p]["second"], "second": env.pop(p)["first"]}))

    def branch(self, depth):
        before, parts = dict(self.live), dict(self.parts)
        taken = self.rng.random() < 0.5
        sides, ends = [], []
        for _ in range(2):
            self.live, self.parts = dict(before), dict(parts)
            sides.append(block(self.statements(self.rng.randint(1, 3), depth - 1)))
            ends.append((self.live, self.parts))
        (yes, yesParts), (no, noParts) = ends
        self.live = {name: kind for name, kind in before.items() if name in yes and name in no}
        self.parts = {name: field for name, field in parts.items() if yesParts.get(name) == field and noParts.get(name) == field}
        test = "args().len() == 0" if taken else "args().len() > 0"
        return Node(f"if {test} {{\n{indent(sides[0].text)}\n}} else {{\n{indent(sides[1].text)}\n}}", lambda env: sides[0 if taken else 1].run(env))

    def loop(self, depth):
        before, parts = dict(self.live), dict(self.parts)
        times = self.rng.randint(1, 3)
        outer, self.looped = self.looped, True
        body = block(self.statements(self.rng.randint(1, 3), depth - 1))
        self.live, self.parts, self.looped = before, parts, outer
        name = self.name()
        return Node(f"for {name} in 0..{times} {{\n{indent(body.text)}\n}}", lambda env: [body.run(env) for _ in range(times)])
