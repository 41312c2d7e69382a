"""Random expressions of per-thread code: pairs of a text and a function from the environment to the value of each thread, an array
[blocks, threads] or a Float of them. Environments map names of variables to such values."""
import numpy

from scalars import BINARY, COMPARE, FLOATS, INTEGERS, SIGNED, Float, choose, divide, saturated, width

LIMIT = 8.0  # floats of variables lie between -8 and 8, so that no product of few of them is large


def literal(kind, value):
    if kind in FLOATS:
        return f"{value!r}{kind}" if value >= 0 else f"(-{-value!r}{kind})"
    return f"{value}{kind}" if value >= 0 else f"(-{-value}{kind})"


class Source:
    """A tensor that threads may read now: `kind`, elements per block, and a function from the environment to [blocks, elements], or to
    [blocks, threads, elements] if each thread has its own. `functions`: may be lent to functions generic over spaces. `field` follows the
    index."""

    def __init__(self, text, kind, size, values, functions=True, own=False, field=""):
        self.text, self.kind, self.size, self.values, self.functions, self.own, self.field = text, kind, size, values, functions, own, field


class Expressions:
    def __init__(self, rng, functions, shape):
        self.rng, self.functions, self.shape = rng, functions, shape
        self.variables = {}  # name -> kind
        self.sources = []
        self.exact = {}  # names of floats that hold inputs unchanged

    def of(self, kind, depth=2):
        if kind == "bool":
            return self.condition(depth)
        return self.float(kind, depth) if kind in FLOATS else self.integer(kind, depth)

    def names(self, kind):
        return [name for name, each in self.variables.items() if each == kind]

    def constant(self, kind):
        if kind in FLOATS:
            value = self.rng.choice([0.5, 1.0, -1.5, 0.25, 3.0, -2.0])
            return literal(kind, value), lambda env: Float.exact(numpy.full(self.shape, value), kind)
        if kind == "bool":
            value = self.rng.random() < 0.5
            return str(value).lower(), lambda env: numpy.full(self.shape, value)
        value = self.number(kind)
        return literal(kind, value), lambda env: numpy.full(self.shape, value, INTEGERS[kind])

    def number(self, kind):
        limits = numpy.iinfo(INTEGERS[kind])
        value = self.rng.choice([self.rng.randint(0, 20), self.rng.randint(0, 127), limits.max, self.rng.randint(0, limits.max)])
        return -int(value) if kind in SIGNED and self.rng.random() < 0.3 else int(value)

    def leaf(self, kind):
        names = self.names(kind)
        if names and self.rng.random() < 0.8:
            name = self.rng.choice(names)
            return name, lambda env: env[name]
        return self.constant(kind)

    def index(self, size, depth=1):
        """(text, values) of a usize below `size`."""
        kind = self.rng.choice([name for name in self.variables.values() if name in INTEGERS])
        text, value = self.integer(kind, depth)
        return f"({text} as usize) % {size}", lambda env: (value(env).astype(numpy.uint64) % numpy.uint64(size)).astype(numpy.int64)

    def element(self, kind, depth):
        sources = [source for source in self.sources if source.kind == kind]
        if not sources:
            return None
        source = self.rng.choice(sources)
        rows = numpy.arange(self.shape[0])[:, None]
        if kind in INTEGERS and source.functions and source.size <= 16 and self.rng.random() < 0.3:
            name, run = self.functions.readers[0]
            return f"{name}(&{source.text})", lambda env: numpy.broadcast_to(self.perThread(run(source.values(env))), self.shape)
        text, at = self.index(source.size, depth - 1)
        if source.own:
            return f"{source.text}[{text}]{source.field}", lambda env: source.values(env)[rows, numpy.arange(self.shape[1])[None], at(env)]
        return f"{source.text}[{text}]{source.field}", lambda env: source.values(env)[rows, at(env)]

    @staticmethod
    def perThread(values):
        return values[:, None] if values.ndim == 1 else values

    def integer(self, kind, depth):
        if depth <= 0:
            return self.leaf(kind)
        pick, rng = self.rng.randrange(12), self.rng
        if pick <= 3:
            op = rng.choice(sorted(BINARY))
            (a, fa), (b, fb) = self.integer(kind, depth - 1), self.integer(kind, depth - 1)
            return f"({a} {op} {b})", lambda env: BINARY[op](fa(env), fb(env))
        if pick == 4:
            (a, fa), (b, fb) = self.integer(kind, depth - 1), self.integer(kind, depth - 1)
            name, run = rng.choice([("min", numpy.minimum), ("max", numpy.maximum)])
            return f"{name}({a}, {b})", lambda env: run(fa(env), fb(env))
        if pick == 5:
            (c, fc), (a, fa), (b, fb) = self.condition(depth - 1), self.integer(kind, depth - 1), self.integer(kind, depth - 1)
            text = f"(if {c} {{ {a} }} else {{ {b} }})" if rng.random() < 0.5 else f"select({c}, {a}, {b})"
            return text, lambda env: numpy.where(fc(env), fa(env), fb(env))
        if pick in (6, 7):
            return self.converted(kind, depth)
        if pick == 8:
            name, run = self.functions.integer(kind)
            (a, fa), (b, fb) = self.integer(kind, depth - 1), self.integer(kind, depth - 1)
            return f"{name}({a}, {b})", lambda env: run(fa(env), fb(env))
        if pick == 9:
            return self.unary(kind, depth)
        return self.element(kind, depth) or self.leaf(kind)

    def unary(self, kind, depth):
        a, fa = self.integer(kind, depth - 1)
        if kind in SIGNED and self.rng.random() < 0.5:
            return f"(-({a}))", lambda env: -fa(env)
        if kind in ("i32", "u32", "i64", "u64"):
            bits = width(kind)

            def count(env):
                values = fa(env).astype(numpy.uint64) & numpy.uint64(2**bits - 1)
                return sum(((values >> numpy.uint64(i)) & numpy.uint64(1)).astype(INTEGERS[kind]) for i in range(bits))

            return f"(popcount({a}) as {kind})", count
        text, at = self.leaf(kind)
        values = [self.number(kind) for _ in range(3)]
        arms, values = [literal(kind, value) for value in values], [INTEGERS[kind](value) for value in values]
        cut = self.rng.randint(1, 20)
        return (f"(match {text} {{ 0 | 1 => {arms[0]}, 2..{cut + 2} => {arms[1]}, _ => {arms[2]} }})",
                lambda env: numpy.where((at(env) == 0) | (at(env) == 1), values[0],
                                        numpy.where((at(env) >= 2) & (at(env) < cut + 2), values[1], values[2])).astype(INTEGERS[kind]))

    def converted(self, kind, depth):
        exact = [name for name in self.exact if self.exact[name] in FLOATS]
        if exact and self.rng.random() < 0.3:
            name = self.rng.choice(exact)
            factor = self.rng.choice([1.0, 16.0, 1024.0, -4.0])  # powers of two: exact in every kind
            return f"(({name} * {literal(self.exact[name], factor)}) as {kind})", lambda env: saturated(env[name].value * factor, kind)
        other = self.rng.choice([name for name in INTEGERS if name != kind])
        a, fa = self.integer(other, depth - 1)
        return f"({a} as {kind})", lambda env: fa(env).astype(INTEGERS[kind])

    def condition(self, depth):
        rng, pick = self.rng, self.rng.randrange(6)
        if pick == 0 and depth > 0:
            (a, fa), (b, fb) = self.condition(depth - 1), self.condition(depth - 1)
            op = rng.choice(["&&", "||"])
            return f"({a} {op} {b})", lambda env: fa(env) & fb(env) if op == "&&" else fa(env) | fb(env)
        if pick == 1 and depth > 0:
            a, fa = self.condition(depth - 1)
            return f"!({a})", lambda env: ~fa(env)
        if pick == 2 and self.names("bool"):
            name = rng.choice(self.names("bool"))
            return name, lambda env: env[name]
        exact = [name for name in self.exact if self.exact[name] in FLOATS]
        op = rng.choice(sorted(COMPARE))
        if pick == 3 and exact:
            name, value = rng.choice(exact), rng.choice([0.0, 1.0, -2.5, 4.0])
            return f"({name} {op} {literal(self.exact[name], value)})", lambda env: COMPARE[op](env[name].value, value)
        kind = rng.choice([each for each in self.variables.values() if each in INTEGERS])
        (a, fa), (b, fb) = self.integer(kind, depth - 1), self.integer(kind, depth - 1)
        return f"({a} {op} {b})", lambda env: COMPARE[op](fa(env), fb(env))

    def float(self, kind, depth):
        if depth <= 0:
            return self.leaf(kind)
        rng, pick = self.rng, self.rng.randrange(9)
        (a, fa), (b, fb) = self.float(kind, depth - 1), self.float(kind, depth - 1)
        if pick <= 2:
            op = rng.choice("+-*")
            text = f"clamp({a} {op} {b}, {literal(kind, -LIMIT)}, {literal(kind, LIMIT)})"
            run = {"+": Float.__add__, "-": Float.__sub__, "*": Float.__mul__}[op]
            return text, lambda env: run(fa(env), fb(env)).clamp(-LIMIT, LIMIT)
        if pick == 3:  # the divisor is between 1 and 9

            def quotient(env):
                x, y = fa(env), fb(env)
                size = (Float(numpy.abs(y.value), y.error, kind) + Float.exact(1.0, kind))
                error = (x.error + numpy.abs(x.value) * size.error) / numpy.maximum(size.value - size.error, 0.5)
                return Float(x.value / size.value, error, kind).rounded(times=4)

            return f"({a} / (abs({b}) + {literal(kind, 1.0)}))", quotient
        if pick == 4:
            name, run = rng.choice([("min", numpy.minimum), ("max", numpy.maximum)])
            return (f"{name}({a}, {b})",
                    lambda env: Float(run(fa(env).value, fb(env).value), numpy.maximum(fa(env).error, fb(env).error), kind))
        if pick == 5:
            c, fc = self.condition(depth - 1)
            return f"(if {c} {{ {a} }} else {{ {b} }})", lambda env: choose(fc(env), fa(env), fb(env))
        if pick == 6:
            other = rng.choice([name for name in FLOATS if name != kind])
            c, fc = self.float(other, depth - 1)

            def narrowed(env):
                x = fc(env).rounded(other).rounded(kind)
                return Float(x.value, x.error, kind)

            return f"({c} as {kind})", narrowed
        if pick == 7:
            c, fc = self.integer("i8", depth - 1)
            return (f"((({c}) % 8) as {kind})",
                    lambda env: Float.exact((fc(env) - divide(fc(env), numpy.full_like(fc(env), 8)) * numpy.int8(8)).astype(float), kind))
        return self.element(kind, depth) or (a, fa)
