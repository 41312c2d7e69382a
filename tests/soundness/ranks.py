"""Random kernels of whole tensors of rank 0 to 4: slices as operands and as targets, reshapes, permutations, reductions over several
dimensions, products in batches, variables that loops write by slice and by element, conditions that the device decides, functions.
Expressions are evaluated by NumPy while the program is walked, so that loops mean what they do."""
import numpy

from cases import Case
from expressions import literal
from rank_expressions import LIMIT, SUMMED, Expr, RankExpressions, each, extents, factor
from scalars import FLOATS, INTEGERS, Float, rounded, samples

SIZES = [1, 2, 3, 4, 5, 7, 8, 16, 33]


class Ranks(RankExpressions):
    def __init__(self, rng, name, seed):
        super().__init__(rng)
        self.case = Case(name, seed)
        self.dims = [(each, rng.choice(SIZES)) for each in "ABC"] + [("D", rng.choice([1, 2, 4]))]
        self.kinds = rng.sample(list(SUMMED), 1) + rng.sample(list(INTEGERS), 1) + [rng.choice(["f32", "f64"])]
        self.values, self.lines, self.parameters, self.arguments, self.env = [], [], [], [], {}
        self.fresh, self.depth, self.functions = 0, 1, ""
        with numpy.errstate(all="ignore"):
            self.build()

    # ---- the program

    def build(self):
        rng, case = self.rng, self.case
        shapes = [tuple(self.dims[:3]), tuple(self.dims), tuple(self.dims[2:]), tuple(self.dims[:1]), (self.product(*self.dims[:2]),),
                  tuple(self.rng.sample(self.dims, 4)), tuple(self.rng.sample(self.dims[:3] * 2, 3)), self.shape(), self.shape(), self.shape(3)]
        for index, shape in enumerate(shapes):
            self.give(f"x{index}", self.kinds[index % 3], shape)
        for _ in range(rng.randint(2, 6)):
            self.statement()
        results = [self.expression(rng.choice(self.kinds), self.shape(), 2) for _ in range(rng.randint(1, 3))]
        kinds = [f"Tensor<{one.kind}, {extents(one.shape)}>" for one in results]
        several = len(results) > 1
        self.add(f"return ({', '.join(one.text for one in results)})" if several else f"return {results[0].text}")
        body, signature = "\n".join(self.lines), ",\n    ".join(self.parameters)
        type_ = f"({', '.join(kinds)})" if several else kinds[0]
        case.items = f"{self.functions}@unchecked(overflow)\nkernel {case.name}_k(\n    {signature}\n) -> {type_} {{\n{body}\n}}\n"
        names = [f"r{index}" for index in range(len(results))]
        case.body += f"let {f'({chr(44).join(names)})' if several else names[0]} = {case.name}_k({', '.join(self.arguments)})\n"
        for name, one in zip(names, results):
            value = one.run(self.env)
            case.take(name, name, value.rounded(one.kind) if isinstance(value, Float) else value, one.kind)

    def add(self, line):
        self.lines.append("    " * self.depth + line)

    def give(self, name, kind, shape):
        """A parameter: a tensor, or a part of a larger one."""
        numbers = tuple(number for _, number in shape)
        values = samples(self.rng, kind, numbers)
        if kind in FLOATS:
            values = rounded(numpy.clip(values, -LIMIT, LIMIT), kind)
        view, whole = name, values
        if self.rng.random() < 0.3:
            before = [self.rng.randint(0, 2) for _ in numbers]
            whole = samples(self.rng, kind, tuple(b + n + self.rng.randint(0, 2) for b, n in zip(before, numbers)))
            whole[tuple(slice(b, b + n) for b, n in zip(before, numbers))] = values
            view = f"{name}[{', '.join(f'{b}..{b + n}' for b, n in zip(before, numbers))}]"
        self.case.give(name, whole, kind, str(list(whole.shape)))
        self.parameters.append(f"{name}: &Tensor<{kind}, {extents(shape)}>")
        self.arguments.append(f"&{view}")
        self.declare(name, kind, shape, Float.exact(values, kind) if kind in FLOATS else values)

    def declare(self, name, kind, shape, value):
        self.env[name] = value
        self.values.append(Expr(name, kind, shape, lambda env: env[name]))

    def name(self):
        self.fresh += 1
        return f"t{self.fresh}"

    def shape(self, rank=None):
        rank = rank or self.rng.choice([1, 2, 2, 3, 3, 4])
        shape = [self.rng.choice(self.dims) for _ in range(rank)]
        if numpy.prod([number for _, number in shape]) > 4000:
            return self.shape(rank - 1)
        if rank < 3 and self.rng.random() < 0.2:
            shape[0] = self.product(*self.dims[:2])
        elif self.rng.random() < 0.2 and shape[0][1] > 2:
            shape[0] = (f"{shape[0][0]} - 1", shape[0][1] - 1)
        return tuple(shape)

    # ---- statements: text and effect on the variables

    def statement(self):
        self.rng.choice([self.bound, self.bound, self.chosen, self.joined, self.swept, self.by_element, self.until, self.called])()

    def store(self, value, kind):
        return value.rounded(kind) if isinstance(value, Float) else numpy.array(value)

    def variable(self, made, text=None):
        name = self.name()
        self.add(f"var {name}: Tensor<{made.kind}, {extents(made.shape)}> = {text or made.text}")
        self.env[name] = self.store(made.run(self.env), made.kind)
        return name

    def bound(self):
        kind, shape = self.rng.choice(self.kinds), self.shape()
        made, name = self.expression(kind, shape, 2), self.name()
        self.add(f"let {name} = {made.text}")
        self.declare(name, kind, shape, made.run(self.env))

    def chosen(self):
        """Two ways, by what a launch or only the device knows."""
        kind, shape = self.rng.choice(self.kinds), self.shape()
        name = self.variable(self.expression(kind, shape, 1))
        here = Expr(name, kind, shape, lambda env: env[name])
        ways = [self.binary_of(here, self.expression(kind, shape, 1)), self.expression(kind, shape, 1)]
        if self.rng.random() < 0.5:
            (a, m), (b, n) = self.rng.sample(self.dims, 2)
            test, truth = f"{a} > {b}", m > n
        else:
            whole = self.leaf(self.kinds[0], self.shape())
            test, truth = f"sum({whole.text}) % 3 != 0", self.total(whole.run(self.env)) % 3 != 0
        self.add(f"if {test} {{")
        self.add(f"    {name} = {ways[0].text}")
        self.add("} else {")
        self.add(f"    {name} = {ways[1].text}")
        self.add("}")
        self.env[name] = self.store(ways[0 if truth else 1].run(self.env), kind)
        self.values.append(here)

    @staticmethod
    def total(value):
        total = value.sum(dtype=value.dtype)
        # The language's remainder has the sign of the dividend.
        return int(numpy.fmod(total, 3)) if value.dtype.kind == "i" else int(total % numpy.array(3, value.dtype))

    def joined(self):
        """Parts along an axis."""
        kind, shape = self.rng.choice(self.kinds), self.shape()
        axis = self.rng.randrange(len(shape))
        text, number = shape[axis]
        if number < 2:
            return
        cut = self.rng.randint(1, number - 1)
        name = self.variable(Expr("zeros()", kind, shape, lambda env: self.constant(0, kind, shape)))
        for begin, end, part in [("0", str(cut), (str(cut), cut)), (str(cut), text, (f"{factor(text)} - {cut}", number - cut))]:
            if self.rng.random() < 0.15:
                continue
            inner = shape[:axis] + (part,) + shape[axis + 1:]
            made = self.expression(kind, inner, 2)
            index = ", ".join([":"] * axis + [f"{begin}..{end}"] + ([":"] * (len(shape) - axis - 1) if self.rng.random() < 0.5 else []))
            op = self.rng.choice(["", "", "+"])
            value = made.run(self.env)
            at = (slice(None),) * axis + (slice(0, cut) if begin == "0" else slice(cut, number),)
            self.add(f"{name}[{index}] {op}= {made.text}" if kind in INTEGERS or not op else
                     f"{name}[{index}] = clamp({name}[{index}] + {made.text}, {self.low(kind)}, {self.high(kind)})")
            old = each(self.env[name], lambda v: v[at])
            self.write(name, at, self.apply("+", old, value) if op else value, kind)
        self.values.append(Expr(name, kind, shape, lambda env: env[name]))

    def write(self, name, at, value, kind):
        value, whole = self.store(value, kind), self.env[name]
        if isinstance(whole, Float):
            whole.value, whole.error = whole.value.copy(), numpy.array(numpy.broadcast_to(whole.error, whole.value.shape))
            whole.value[at], whole.error[at] = value.value, value.error
        else:
            self.env[name] = whole.copy()
            self.env[name][at] = value

    def swept(self):
        """A loop that writes slice after slice, each from those before."""
        kind, shape = self.rng.choice(self.kinds), self.shape()
        if len(shape) < 2:
            return
        axis = self.rng.randrange(len(shape))
        text, number = shape[axis]
        rest = shape[:axis] + shape[axis + 1:]
        name = self.variable(self.expression(kind, shape, 1))
        counter, back = f"i{self.fresh}", self.rng.random() < 0.3
        index = f"{text} - 1 - {counter}" if back else counter
        before = f"{text} - {counter}" if back else f"{counter} - 1"
        whole, colons = self.values, ", ".join([":"] * axis)

        def part(source, at, along):
            here = ", ".join(([":"] * along) + [at])
            move = (lambda env: number - 1 - env[counter]) if back else (lambda env: env[counter])
            shift = (1 if back else -1) if at == before else 0
            return Expr(f"{source.text}[{here}]", source.kind, source.shape[:along] + source.shape[along + 1:],
                        lambda env: each(source.run(env), lambda v: numpy.take(v, move(env) + shift, axis=along)))

        own = Expr(name, kind, shape, lambda env: env[name])
        parts = [part(own, before, axis)]
        for source in whole:
            for along, one in enumerate(source.shape):
                if one == (text, number) and source.text.isidentifier():
                    parts.append(part(source, index, along))
        self.values = [one for one in self.values if self.rng.random() < 0.7] + parts
        made = self.binary_of(parts[0], self.expression(kind, rest, 1))
        self.values = whole
        self.add(f"for {counter} in 1..{text} {{")
        self.add(f"    {name}[{colons + ', ' if axis else ''}{index}] = {made.text}")
        self.add("}")
        for step in range(1, number):
            self.env[counter] = step
            at = (slice(None),) * axis + (number - 1 - step if back else step,)
            self.write(name, at, made.run(self.env), kind)
        self.values.append(own)

    def by_element(self):
        kind, shape = self.rng.choice(self.kinds), self.shape(self.rng.choice([1, 2]))
        if numpy.prod([number for _, number in shape]) > 300:
            return
        name = self.variable(self.expression(kind, shape, 1))
        counters = [f"i{self.fresh}{letter}" for letter in "xy"[:len(shape)]]
        place = {one: counter for one, counter in zip(shape, counters)}

        def element(source):
            indices = [place[one] for one in source.shape]
            return Expr(f"{source.text}[{', '.join(indices)}]", source.kind, (),
                        lambda env: each(source.run(env), lambda v: v[tuple(env[one] for one in indices)]))

        own = Expr(f"{name}[{', '.join(counters)}]", kind, (), lambda env: each(env[name], lambda v: v[tuple(env[one] for one in counters)]))
        last = counters[-1]
        before = Expr(f"(if {last} > 0 {{ {name}[{', '.join(counters[:-1] + [f'{last} - 1'])}] }} else {{ {literal(kind, 1)} }})", kind, (),
                      lambda env: each(env[name], lambda v: v[tuple(env[one] for one in counters[:-1]) + (env[last] - 1,)])
                      if env[last] else self.constant(1, kind, ()))
        found = [one for one in self.values if one.text.isidentifier() and one.shape and all(extent in place for extent in one.shape)]
        whole, self.values = self.values, [own, before] + [element(one) for one in found]
        made = self.binary_of(before, self.expression(kind, (), 2))
        self.values = whole
        depth = self.depth
        for (text, _), counter in zip(shape, counters):
            self.add(f"for {counter} in 0..{text} {{")
            self.depth += 1
        self.add(f"{own.text} = {made.text}")
        while self.depth > depth:
            self.depth -= 1
            self.add("}")
        for at in numpy.ndindex(*[number for _, number in shape]):
            self.env.update(zip(counters, at))
            self.write(name, at, made.run(self.env), kind)
        self.values.append(Expr(name, kind, shape, lambda env: env[name]))

    def until(self):
        """A loop that the device ends, after four iterations at most."""
        kind, shape = self.kinds[0], self.shape()
        name = self.variable(self.expression(kind, shape, 1))
        here = Expr(name, kind, shape, lambda env: env[name])
        step = self.binary_of(here, self.expression(kind, shape, 1))
        self.add(f"var n{name}: u32 = 0")
        self.add(f"while sum({name}) % 3 != 0 && n{name} < 4 {{")
        self.add(f"    {name} = {step.text}")
        self.add(f"    n{name} += 1")
        self.add("}")
        for _ in range(4):
            if self.total(self.env[name]) == 0:
                break
            self.env[name] = self.store(step.run(self.env), kind)
        self.values.append(here)

    def called(self):
        """A function with parameters of its own names."""
        kind = self.rng.choice(self.kinds)
        shape = self.shape(2)
        if shape[0] == shape[1] or not all(text.isidentifier() for text, _ in shape):
            return
        arguments = [self.expression(kind, shape, 1), self.expression(kind, shape[1:], 1)]
        outer, env = self.values, self.env
        values = [one.run(env) for one in arguments]
        inside = [("P", shape[0][1]), ("Q", shape[1][1])]
        dims, self.dims = self.dims, inside
        self.values = [Expr("x", kind, inside, lambda env: env["x"]), Expr("y", kind, inside[1:], lambda env: env["y"])]
        made = self.expression(kind, tuple(inside), 2)
        self.dims, self.values = dims, outer
        function, name = f"{self.case.name}_f{self.fresh}", self.name()
        self.functions += (f"fn {function}(x: &Tensor<{kind}, [P, Q]>, y: &Tensor<{kind}, [Q]>) -> Tensor<{kind}, [P, Q]> {{\n"
                           f"    return {made.text}\n}}\n\n")
        let = [f"{name}a", f"{name}b"]
        for one, argument in zip(let, arguments):
            self.add(f"let {one}: Tensor<{kind}, {extents(argument.shape)}> = {argument.text}")
        self.add(f"let {name} = {function}(&{let[0]}, &{let[1]})")
        result = made.run({"x": self.store(values[0], kind), "y": self.store(values[1], kind)})
        self.declare(name, kind, shape, self.store(result, kind))
