"""Random whole-tensor kernels whose control flow nests: branches and loops around whole tensors, over extents and numbers that the launch gives, over
scalars that the device computes; `break`, `continue`, slices as targets, variables of inner scopes. Built as text and as what it does to the variables."""
import numpy

from expressions import literal
from rank_expressions import SUMMED, Expr, each
from ranks import Ranks
from scalars import BINARY, COMPARE, INTEGERS, Float


class Leave(Exception):
    """A loop is left, or its next iteration begins."""

    def __init__(self, kind):
        super().__init__(kind)
        self.kind = kind


class Nests(Ranks):
    SMALL = [1, 2, 3, 5, 8]

    def build(self):
        self.dims = [(name, min(number, self.rng.choice(self.SMALL)) if name != "A" else number) for name, number in self.dims]
        self.numbers, self.variables, self.loops = [], [], 0
        super().build()

    def statement(self):
        if not self.numbers:
            self.arguments_of_the_launch()
            for _ in range(self.rng.randint(1, 3)):
                self.new_variable()
            self.new_number()
        if self.rng.random() < 0.25:
            super().statement()
        else:
            self.walk(self.block(3, 1))

    def walk(self, effects):
        for effect in effects:
            effect()

    # ---- what is read and written

    def arguments_of_the_launch(self):
        for kind in ("i32", "u32"):
            name, value = f"n{kind}", self.rng.choice([0, 1, 2, 3, 5, 7] + [-1] * (kind == "i32"))
            self.parameters.append(f"{name}: {kind}")
            self.arguments.append(str(value))
            self.env[name] = numpy.array(value, INTEGERS[kind])
            self.numbers.append(Expr(name, kind, (), lambda env, name=name: env[name]))

    def new_variable(self):
        kind, shape = self.rng.choice(self.kinds), self.shape()
        name = self.variable(self.expression(kind, shape, 1))
        own = Expr(name, kind, shape, lambda env: env[name])
        self.variables.append(own)
        self.values.append(own)

    def new_number(self):
        kind = self.rng.choice(["i32", "u32", "i64"])
        name, value = self.name(), self.rng.randint(0, 9)
        self.add(f"var {name}: {kind} = {value}")
        self.env[name] = numpy.array(value, INTEGERS[kind])
        own = Expr(name, kind, (), lambda env: env[name])
        own.is_variable = True
        self.numbers.append(own)

    def number(self, kind, depth=1):
        """A scalar that all agree on."""
        rng = self.rng
        found = [one for one in self.numbers if one.kind == kind]
        pick = rng.randrange(5)
        if depth > 0 and pick == 0:
            a, b, op = self.number(kind, depth - 1), self.number(kind, depth - 1), rng.choice(sorted(BINARY))
            return Expr(f"({a.text} {op} {b.text})", kind, (), lambda env: BINARY[op](numpy.asarray(a.run(env)), numpy.asarray(b.run(env))))
        if pick == 1 and self.kinds[0] == kind:
            whole = self.leaf(kind, self.shape())
            name, run = rng.choice([("sum", lambda v: v.sum(dtype=v.dtype)), ("max", numpy.max), ("min", numpy.min)])
            return Expr(f"{name}({whole.text})", kind, (), lambda env: run(whole.run(env)))
        if pick == 2:
            text, number = rng.choice(self.dims)
            return Expr(f"({text} as {kind})", kind, (), lambda env: numpy.array(number, INTEGERS[kind]))
        if found and pick < 4:
            return rng.choice(found)
        other = [one for one in self.numbers if one.kind != kind]
        if other and rng.random() < 0.5:
            one = rng.choice(other)
            return Expr(f"({one.text} as {kind})", kind, (), lambda env: numpy.asarray(one.run(env)).astype(INTEGERS[kind]))
        value = rng.randint(0, 6)
        return Expr(literal(kind, value), kind, (), lambda env: numpy.array(value, INTEGERS[kind]))

    def condition(self, depth=1):
        rng = self.rng
        if depth > 0 and rng.random() < 0.2:
            (a, run_a), (b, run_b) = self.condition(depth - 1), self.condition(depth - 1)
            return rng.choice([(f"({a}) && ({b})", lambda env: run_a(env) and run_b(env)), (f"({a}) || ({b})", lambda env: run_a(env) or run_b(env))])
        kind, op = rng.choice(["i32", "u32"]), rng.choice(sorted(COMPARE))
        if rng.random() < 0.4:
            (a, m), (b, n) = rng.choice(self.dims), rng.choice(self.dims)
            return f"{a} {op} {b}", lambda env: bool(COMPARE[op](m, n))
        if rng.random() < 0.5:
            one, by, rest = self.number(kind), rng.choice([2, 3]), rng.randrange(2)
            dtype = INTEGERS[kind]
            return (f"{one.text} % {literal(kind, by)} == {literal(kind, rest)}",
                    lambda env: bool(BINARY["%"](numpy.asarray(one.run(env)), numpy.array(by, dtype)) == rest))
        a, b = self.number(kind), self.number(kind, 0)
        return f"{a.text} {op} {b.text}", lambda env: bool(COMPARE[op](numpy.asarray(a.run(env)), numpy.asarray(b.run(env))))

    def binary_of(self, a, b):
        """Sometimes of one operand twice, which is a constant that has extents."""
        return super().binary_of(a, a if self.rng.random() < 0.1 and a.kind in INTEGERS else b)

    def scaled(self, made):
        """Times, or plus, a number."""
        if made.kind not in ("i32", "u32", "i64") or self.rng.random() < 0.6:
            return made
        by, op = self.number(made.kind), self.rng.choice(["+", "*", "^", "-"])
        return Expr(f"({made.text} {op} {by.text})", made.kind, made.shape,
                    lambda env: BINARY[op](made.run(env), numpy.asarray(by.run(env))))

    # ---- statements: each adds its text and gives what it does

    def block(self, depth, least):
        outer = list(self.values), list(self.numbers), list(self.variables)
        effects = [self.nested(depth) for _ in range(self.rng.randint(least, 3))]
        self.values, self.numbers, self.variables = outer
        return [effect for effect in effects if effect]

    def nested(self, depth):
        makers = [self.assigned, self.assigned, self.sliced_target, self.counted, self.named]
        if depth > 0:
            makers += [self.branch, self.branch, self.ranged, self.ranged, self.conditional]
        if self.loops and depth > 0:
            makers.append(self.left)
        return self.rng.choice(makers)(depth)

    def assigned(self, _):
        own = self.rng.choice(self.variables)
        made = self.scaled(self.expression(own.kind, own.shape, self.rng.choice([1, 1, 2])))
        if self.rng.random() < 0.6:
            made = self.binary_of(own, made)
        self.add(f"{own.text} = {made.text}")

        def effect():
            self.env[own.text] = self.store(made.run(self.env), own.kind)

        return effect

    def sliced_target(self, _):
        own = self.rng.choice(self.variables)
        axis = self.rng.randrange(len(own.shape))
        text, number = own.shape[axis]
        before, after = [":"] * axis, [":"] * (len(own.shape) - axis - 1)
        counters = [one for one in self.numbers if getattr(one, "below", None) == (text, number)]
        if counters:
            counter = self.rng.choice(counters)
            rest = own.shape[:axis] + own.shape[axis + 1:]
            source = Expr(f"{own.text}[{', '.join(before + [counter.text] + after)}]", own.kind, rest,
                          lambda env: each(env[own.text], lambda v: numpy.take(v, int(counter.run(env)), axis=axis)))
            made = self.binary_of(source, self.expression(own.kind, rest, 1))
            self.add(f"{source.text} = {made.text}")
            return lambda: self.write(own.text, (slice(None),) * axis + (int(counter.run(self.env)),), made.run(self.env), own.kind)
        cut = self.rng.randint(1, number)
        inner = own.shape[:axis] + ((str(cut), cut),) + own.shape[axis + 1:]
        made = self.expression(own.kind, inner, 1)
        self.add(f"{own.text}[{', '.join(before + [f'0..{cut}'] + after)}] = {made.text}")
        return lambda: self.write(own.text, (slice(None),) * axis + (slice(0, cut),), made.run(self.env), own.kind)

    def counted(self, _):
        found = [one for one in self.numbers if getattr(one, "is_variable", False)]
        own = self.rng.choice(found)
        made, op = self.number(own.kind), self.rng.choice(["", "+", "-", "*", "^"])
        self.add(f"{own.text} {op}= {made.text}")

        def effect():
            value = numpy.asarray(made.run(self.env))
            self.env[own.text] = numpy.asarray(BINARY[op](self.env[own.text], value) if op else value).astype(INTEGERS[own.kind])

        return effect

    def named(self, _):
        """A variable of this scope."""
        kind, shape, name = self.rng.choice(self.kinds), self.shape(), self.name()
        made = self.scaled(self.expression(kind, shape, 1))
        self.add(f"let {name} = {made.text}")
        self.values.append(Expr(name, kind, shape, lambda env: env[name]))

        def effect():
            self.env[name] = made.run(self.env)

        return effect

    def inside(self, depth, least=1):
        self.depth += 1
        body = self.block(depth - 1, least)
        self.depth -= 1
        return body

    def branch(self, depth):
        (text, holds), ways = self.condition(), []
        self.add(f"if {text} {{")
        ways.append((holds, self.inside(depth)))
        if self.rng.random() < 0.3:
            text, holds = self.condition()
            self.add(f"}} else if {text} {{")
            ways.append((holds, self.inside(depth)))
        if self.rng.random() < 0.5:
            self.add("} else {")
            ways.append((lambda env: True, self.inside(depth)))
        self.add("}")

        def effect():
            for holds, body in ways:
                if holds(self.env):
                    return self.walk(body)

        return effect

    def ranged(self, depth):
        counter = f"k{self.name()}"
        small = [one for one in self.dims if one[1] <= 8]
        pick = self.rng.randrange(3)
        begin = 0
        if pick == 0 and small:
            text, number = self.rng.choice(small)
            end, below = (lambda env: number), (text, number)
            begin = self.rng.randint(0, 1)
        elif pick == 1:
            text, below = "(nu32 as usize)", None
            end = lambda env: int(env["nu32"])
        else:
            count = self.rng.randint(0, 3)
            text, end, below = str(count), (lambda env: count), None
        self.add(f"for {counter} in {begin}..{text} {{")
        own = Expr(counter, "usize", (), lambda env: env[counter])
        own.below = below
        outer = list(self.numbers)
        self.numbers.append(own)
        self.loops += 1
        body = self.inside(depth)
        self.loops -= 1
        self.numbers = outer
        self.add("}")

        def effect():
            for value in range(begin, end(self.env)):
                self.env[counter] = numpy.array(value, numpy.uint64)
                if not self.iteration(body):
                    break

        return effect

    def iteration(self, body):
        try:
            self.walk(body)
        except Leave as leave:
            return leave.kind == "continue"
        return True

    def conditional(self, depth):
        name, most = f"w{self.name()}", self.rng.randint(1, 3)
        text, holds = self.condition()
        self.add(f"var {name}: u32 = 0")
        self.add(f"while ({text}) && {name} < {most} {{")
        self.depth += 1
        self.add(f"{name} += 1")
        self.depth -= 1
        self.loops += 1
        body = self.inside(depth)
        self.loops -= 1
        self.add("}")

        def effect():
            for _ in range(most):
                if not holds(self.env) or not self.iteration(body):
                    break

        return effect

    def left(self, _):
        kind = self.rng.choice(["break", "continue"])
        text, holds = self.condition()
        self.add(f"if {text} {{")
        self.add(f"    {kind}")
        self.add("}")

        def effect():
            if holds(self.env):
                raise Leave(kind)

        return effect
