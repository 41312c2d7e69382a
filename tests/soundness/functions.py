"""Random helper functions of a program: generic over types, spaces and traits, with early returns, and the same in Python."""
import numpy

from scalars import BINARY

UNCHECKED = "@unchecked(overflow)\n    "


def operator(rng, shifts=True):
    return rng.choice(["+", "-", "*", "&", "|", "^", "/", "%"] + ["<<", ">>"] * shifts)


class Functions:
    """`texts` are items; `integer(kind)` gives a (call's text, function of two arrays) for arguments of that kind."""

    def __init__(self, rng, prefix):
        self.rng, self.prefix, self.texts = rng, prefix, []
        self.generic = [self.makeGeneric(i) for i in range(2)]
        self.traits = self.makeTrait()
        self.methods = self.makeStruct()
        self.readers = [self.makeReader()]

    def makeGeneric(self, index):
        """A function of any integer type that some calls leave early."""
        name, rng = f"{self.prefix}_mix{index}", self.rng
        first, second, third = (operator(rng) for _ in range(3))
        limit, times = rng.randint(0, 100), rng.randint(1, 3)
        self.texts.append(f"""fn {name}<T: Integer>(a: T, b: T) -> T {{
    if (a & 127) > {limit} {{
        {UNCHECKED}    return a {first} b
    }}
    var t = a
    for j in 0..{times} {{
        {UNCHECKED}    t = (t {second} b) ^ (j as T)
        if t == b {{
            return t | 1
        }}
    }}
    {UNCHECKED}return t {third} b
}}""")

        def run(a, b):
            early = (a & 127) > limit
            result = BINARY[first](a, b)
            done, t = early, a
            for j in range(times):
                t = BINARY[second](t, b) ^ a.dtype.type(j)
                now = ~done & (t == b)
                result, done = numpy.where(now, t | 1, result), done | now
            return numpy.where(done, result, BINARY[third](t, b)).astype(a.dtype)

        return name, run

    def makeTrait(self):
        """Static dispatch: two types, a default function, a constant."""
        name, rng = f"{self.prefix}_Step", self.rng
        between = operator(rng, False)
        self.texts.append(f"""trait {name} {{
    const C: i32
    fn apply(a: i32, b: i32) -> i32
    fn twice(a: i32, b: i32) -> i32 {{
        return Self.apply(Self.apply(a, b), b ^ Self.C)
    }}
}}""")
        calls = []
        for kind in "AB":
            op, c = operator(rng), rng.randint(-99, 99)
            own = rng.random() < 0.3
            twice = f"""
    fn twice(a: i32, b: i32) -> i32 {{
        return Self.apply(b, a)
    }}""" if own else ""
            self.texts.append(f"""struct {name}{kind} {{}}
impl {name} for {name}{kind} {{
    const C: i32 = {c}
    fn apply(a: i32, b: i32) -> i32 {{
        {UNCHECKED}    return (a {op} b) + {name}{kind}.C
    }}{twice}
}}""")

            def apply(a, b, op=op, c=c):
                return BINARY[op](a, b) + numpy.int32(c)

            def both(a, b, apply=apply, c=c, own=own):
                return apply(b, a) if own else apply(apply(a, b), b ^ numpy.int32(c))

            calls.append((f"{name}Via::<{name}{kind}>", lambda a, b, both=both, c=c: BINARY[between](both(a, b), numpy.full_like(a, c))))
        self.texts.append(f"""fn {name}Via<O: {name}>(a: i32, b: i32) -> i32 {{
    {UNCHECKED}return O.twice(a, b) {between} O.C
}}""")
        return calls

    def makeStruct(self):
        """A struct made, changed through `&mut self` and asked."""
        name, rng = f"{self.prefix}_Pair", self.rng
        op, by = operator(rng), rng.randint(1, 9)
        self.texts.append(f"""struct {name} {{
    low: i32,
    high: i32,
}}
impl {name} {{
    fn turn(&mut self, by: i32) {{
        let kept = self.low
        self.low = self.high
        {UNCHECKED}    self.high = kept {op} by
    }}
    fn folded(&self) -> i32 {{ return self.low ^ (self.high & 255) }}
}}
fn {name}Of(a: i32, b: i32) -> i32 {{
    var p = {name} {{ low: a, high: b }}
    p.turn({by})
    p.turn(a)
    let q = p
    p.turn(1)
    return p.folded() ^ q.low
}}""")

        def run(a, b):
            def turn(low, high, by):
                return high, BINARY[op](low, by)

            p = turn(a, b, numpy.full_like(a, by))
            q = turn(*p, a)
            p = turn(*q, numpy.full_like(a, 1))
            return p[0] ^ (p[1] & 255) ^ q[0]

        return [(f"{name}Of", run)]

    def makeReader(self):
        """Reads a tensor of any space in a loop, some elements of it."""
        name, first, step = f"{self.prefix}_total", self.rng.randint(0, 3), self.rng.randint(1, 5)
        op = self.rng.choice("+^|&-")
        start = self.rng.randint(0, 100)
        self.texts.append(f"""fn {name}<M: MemorySpace + Readable, T: Integer>(t: &Tensor<T, [N], M>) -> T {{
    var total: T = {start}
    for i in range({first}, N, {step}) {{
        {UNCHECKED}    total = total {op} t[i]
    }}
    return total
}}""")

        def run(values):  # along the last axis
            total = numpy.full(values.shape[:-1], start).astype(values.dtype)
            for i in range(first, values.shape[-1], step):
                total = BINARY[op](total, values[..., i])
            return total

        return name, run

    def integer(self, kind):
        calls = list(self.generic)
        if kind == "i32":
            calls += self.traits + self.methods
        return self.rng.choice(calls)


