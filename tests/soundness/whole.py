"""Random kernels of whole-tensor code: elementwise chains, broadcasting, reductions, transposes, products, rounding by declared types,
sequential loops and branches, over integers of all widths and all floats. Sizes are known to the launch only; arguments may be strided
views."""
import numpy

from cases import Case
from expressions import literal
from scalars import BINARY, COMPARE, FLOAT8, FLOATS, INTEGERS, Float, choose, rounded, samples

LIMIT = 4.0


class Value:
    """An expression, its element type, its shape (names of dimensions, "1") and what it is: an array or a Float."""

    def __init__(self, text, kind, shape, value):
        self.text, self.kind, self.shape, self.value = text, kind, shape, value


class Whole:
    def __init__(self, rng, name, seed):
        self.rng, self.case = rng, Case(name, seed)
        self.size = {"M": rng.choice([1, 2, 7, 16, 33, rng.randint(1, 70)]), "N": rng.choice([1, 3, 8, 31, 64, rng.randint(1, 130)]), "1": 1}
        self.values, self.lines, self.parameters, self.arguments = [], [], [], []
        self.kinds = rng.sample(list(INTEGERS), 2) + rng.sample(list(FLOATS), 2)
        self.fresh = 0
        self.dead = False
        with numpy.errstate(all="ignore"):
            self.build()

    def shape(self):
        return self.rng.choice([("M", "N"), ("M", "N"), ("N",), ("M", "1"), ("N", "M"), ("M",)])

    def extents(self, shape):
        return tuple(self.size[name] for name in shape)

    def build(self):
        rng, case = self.rng, self.case
        for index, shape in enumerate([("M", "N"), ("M", "N"), ("N",), ("N", "M"), self.shape(), self.shape()]):
            self.give(f"x{index}", self.kinds[index % 4] if index < 5 else rng.choice(self.kinds), shape)
        self.eighth()
        for _ in range(rng.randint(2, 7)):
            self.statement()
        results = []
        for _ in range(rng.randint(1, 3)):
            shape = rng.choice([("M", "N"), ("N",), ("M",)])
            kind = rng.choice(self.kinds)
            results.append(self.expression(kind, shape, 2))
        types = [f"Tensor<{each.kind}, [{', '.join(each.shape)}]>" for each in results]
        texts = [each.text for each in results]
        end = f"return {texts[0]}" if len(results) == 1 else f"return ({', '.join(texts)})"
        type_ = types[0] if len(results) == 1 else f"({', '.join(types)})"
        body = "\n".join("    " + line for line in "\n".join(self.lines + [end]).split("\n"))
        signature = ",\n    ".join(self.parameters)
        case.items = f"@unchecked(overflow)\nkernel {case.name}_k(\n    {signature}\n) -> {type_} {{\n{body}\n}}\n"
        names = [f"r{index}" for index in range(len(results))]
        target = names[0] if len(results) == 1 else f"({', '.join(names)})"
        case.body += f"let {target} = {case.name}_k({', '.join(self.arguments)})\n"
        for name, each in zip(names, results):
            value = each.value.rounded(each.kind) if isinstance(each.value, Float) else each.value
            case.take(name, name, value, each.kind)

    def give(self, name, kind, shape):
        """A parameter: a tensor or a part of a larger one."""
        rng, extents = self.rng, self.extents(shape)
        values = samples(rng, kind, extents)
        if kind in FLOATS:
            values = rounded(numpy.clip(values, -LIMIT, LIMIT), kind)
        view, whole = name, values
        if rng.random() < 0.4:
            before = [rng.randint(0, 3) for _ in extents]
            whole = samples(rng, kind, tuple(b + extent + rng.randint(0, 2) for b, extent in zip(before, extents)))
            whole[tuple(slice(b, b + extent) for b, extent in zip(before, extents))] = values
            view = f"{name}[{', '.join(f'{b}..{b + extent}' for b, extent in zip(before, extents))}]"
        self.case.give(name, whole, kind, str(list(whole.shape)))
        self.parameters.append(f"{name}: &Tensor<{kind}, [{', '.join(shape)}]>")
        self.arguments.append(f"&{view}")
        self.values.append(Value(name, kind, shape, Float.exact(values, kind) if kind in FLOATS else values))

    def eighth(self):
        """A tensor that goes through an 8-bit float."""
        if self.rng.random() < 0.6:
            return
        kind = self.rng.choice(list(FLOAT8))
        found = [each for each in self.values if each.kind == "f32"]
        if not found:
            return
        source = self.rng.choice(found)
        self.lines.append(f"let small: Tensor<{kind}, [{', '.join(source.shape)}]> = {source.text}")
        self.values.append(Value("(small as f32)", "f32", source.shape, Float.exact(rounded(source.value.value, kind), "f32")))

    def statement(self):
        rng, kind, shape, pick = self.rng, self.rng.choice(self.kinds), self.shape(), self.rng.randrange(5)
        self.fresh += 1
        name = f"t{self.fresh}"
        made = self.expression(kind, shape, 2)
        value = made.value
        if pick <= 1:
            if pick == 1:
                self.lines.append(f"let {name}: Tensor<{kind}, [{', '.join(shape)}]> = {made.text}")
                value = value.rounded(kind) if isinstance(value, Float) else value
            else:
                self.lines.append(f"let {name} = {made.text}")
        else:
            declared = f"var {name}: Tensor<{kind}, [{', '.join(shape)}]> = {made.text}"
            if isinstance(value, Float):
                value = value.rounded(kind)
            here = Value(name, kind, shape, value)
            self.values.append(here)
            if pick == 2:
                test, truth = rng.choice([("M > N", self.size["M"] > self.size["N"]), ("N % 2 == 0", self.size["N"] % 2 == 0)])
                then, other = self.expression(kind, shape, 1), self.expression(kind, shape, 1)
                self.lines.append(f"{declared}\nif {test} {{\n    {name} = {then.text}\n}} else {{\n    {name} = {other.text}\n}}")
                value = (then if truth else other).value
            else:
                times = rng.randint(0, 3)
                self.values.pop()
                step = self.expression(kind, shape, 1)
                op = rng.choice(["+", "-", "*"] if kind in FLOATS else ["+", "-", "*", "^", "&", "|"])
                low, high = literal(kind, -LIMIT) if kind in FLOATS else "", literal(kind, LIMIT) if kind in FLOATS else ""
                text = f"clamp({name} {op} {step.text}, {low}, {high})" if kind in FLOATS else f"{name} {op} {step.text}"
                self.lines.append(f"{declared}\nfor k{self.fresh} in 0..{times} {{\n    {name} = {text}\n}}")
                for _ in range(times):
                    value = self.apply(op, value, step.value)
            if isinstance(value, Float):
                value = value.rounded(kind)
            if pick == 2:
                self.values.pop()
        self.values.append(Value(name, kind, shape, value))

    def apply(self, op, a, b):
        if isinstance(a, Float):
            return {"+": Float.__add__, "-": Float.__sub__, "*": Float.__mul__}[op](a, b).clamp(-LIMIT, LIMIT)
        return BINARY[op](a, b)

    # ---- expressions

    def leaf(self, kind, shape):
        found = [each for each in self.values if each.kind == kind and each.shape == shape]
        if found:
            each = self.rng.choice(found)
            return Value(each.text, kind, shape, each.value)
        return self.converted(kind, shape) or self.spread(kind, shape) or self.filled(kind, shape)

    def filled(self, kind, shape):
        value = self.rng.choice([0.5, -1.5, 3.0]) if kind in FLOATS else self.rng.randint(0, 100)
        array = numpy.full(self.extents(shape), value)
        return Value(f"full({literal(kind, value)}, [{', '.join(shape)}])", kind, shape,
                     Float.exact(array, kind) if kind in FLOATS else array.astype(INTEGERS[kind]))

    def converted(self, kind, shape):
        found = [each for each in self.values if each.shape == shape and each.kind != kind
                 and not (kind in INTEGERS and each.kind in FLOATS) and not (kind in FLOATS and each.kind in INTEGERS)]
        if not found:
            return None
        each = self.rng.choice(found)
        if kind in INTEGERS:
            return Value(f"({each.text} as {kind})", kind, shape, each.value.astype(INTEGERS[kind]))
        narrow = each.value.rounded(each.kind).rounded(kind)
        return Value(f"({each.text} as {kind})", kind, shape, Float(narrow.value, narrow.error, kind))

    def spread(self, kind, shape):
        """Of fewer dimensions or extents of 1, broadcast."""
        found = [each for each in self.values if each.kind == kind and len(each.shape) <= len(shape)
                 and all(a == b or a == "1" for a, b in zip(reversed(each.shape), reversed(shape)))]
        if not found:
            return None
        each = self.rng.choice(found)
        extents = self.extents(shape)
        value = each.value
        value = (Float(numpy.broadcast_to(value.value, extents), numpy.broadcast_to(value.error, extents), kind) if isinstance(value, Float)
                 else numpy.broadcast_to(value, extents))
        return Value(f"{each.text}.broadcast([{', '.join(shape)}])", kind, shape, value)

    def expression(self, kind, shape, depth):
        if depth <= 0:
            return self.leaf(kind, shape)
        rng = self.rng
        for _ in range(8):
            made = rng.choice([self.binary, self.binary, self.scalar, self.pick, self.reduced, self.transposed, self.function, self.running,
                               self.product])(kind, shape, depth)
            if made:
                return made
        return self.leaf(kind, shape)

    def binary(self, kind, shape, depth):
        a, b = self.expression(kind, shape, depth - 1), self.expression(kind, shape, depth - 1)
        if kind in FLOATS:
            op = self.rng.choice("+-*")
            return Value(f"clamp({a.text} {op} {b.text}, {literal(kind, -LIMIT)}, {literal(kind, LIMIT)})", kind, shape,
                         self.apply(op, a.value, b.value))
        op = self.rng.choice(sorted(BINARY))
        return Value(f"({a.text} {op} {b.text})", kind, shape, BINARY[op](a.value, b.value))

    def scalar(self, kind, shape, depth):
        a = self.expression(kind, shape, depth - 1)
        if kind in FLOATS:
            return Value(f"clamp({a.text} * {literal(kind, 0.5)} + {literal(kind, 1.0)}, {literal(kind, -LIMIT)}, {literal(kind, LIMIT)})", kind, shape,
                         (a.value * Float.exact(0.5, kind) + Float.exact(1.0, kind)).clamp(-LIMIT, LIMIT))
        op, value = self.rng.choice(sorted(BINARY)), self.rng.randint(0, 100)
        return Value(f"({a.text} {op} {literal(kind, value)})", kind, shape, BINARY[op](a.value, numpy.full_like(a.value, value)))

    def pick(self, kind, shape, depth):
        integers = [each for each in self.kinds if each in INTEGERS]
        other, op = self.rng.choice(integers), self.rng.choice(sorted(COMPARE))
        p, q = self.expression(other, shape, depth - 1), self.expression(other, shape, 0)
        a, b = self.expression(kind, shape, depth - 1), self.expression(kind, shape, 0)
        return Value(f"select({p.text} {op} {q.text}, {a.text}, {b.text})", kind, shape, choose(COMPARE[op](p.value, q.value), a.value, b.value))

    def function(self, kind, shape, depth):
        a = self.expression(kind, shape, depth - 1)
        if kind in INTEGERS:
            b = self.leaf(kind, shape)
            name, run = self.rng.choice([("min", numpy.minimum), ("max", numpy.maximum)])
            return Value(f"{name}({a.text}, {b.text})", kind, shape, run(a.value, b.value))
        name, run, slope, scale = self.rng.choice([("tanh", numpy.tanh, 1.0, 1.0), ("sigmoid", lambda x: 1 / (1 + numpy.exp(-x)), 0.25, 1.0),
                                                   ("abs", numpy.abs, 1.0, 0.0), ("sin", numpy.sin, 1.0, 1.0),
                                                   ("floor", None, 0, 0)])
        if run is None:
            return None
        value = Float(run(a.value.value), slope * a.value.error, kind)
        worst = max(FLOATS[kind], FLOATS["f32"] if kind in ("f16", "bf16") else 0)
        return Value(f"{name}({a.text})", kind, shape, Float(value.value, value.error + scale * 16 * worst, kind).rounded())

    def reduced(self, kind, shape, depth):
        """Over one dimension of a matrix."""
        if shape not in (("M",), ("M", "1"), ("N",)):
            return None
        along, keep = (0, False) if shape == ("N",) else (self.rng.choice([1, -1]), shape == ("M", "1"))
        a = self.expression(kind, ("M", "N"), depth - 1)
        axis = 0 if shape == ("N",) else 1
        options = ["sum", "max", "min"] if kind in ("i32", "i64", "u32", "u64") or kind in FLOATS else ["max", "min"]
        name = self.rng.choice(options)
        text = f"{a.text}.{name}(dim = {along}{', keepdim = true' if keep else ''})"
        if not isinstance(a.value, Float):
            run = {"sum": lambda v: v.sum(axis=axis, keepdims=keep, dtype=v.dtype), "max": lambda v: v.max(axis=axis, keepdims=keep),
                   "min": lambda v: v.min(axis=axis, keepdims=keep)}[name]
            return Value(text, kind, shape, run(a.value))
        if name == "sum":
            count = a.value.value.shape[axis]
            size = numpy.abs(a.value.value).sum(axis=axis, keepdims=keep) + a.value.error.sum(axis=axis, keepdims=keep)
            total = Float(a.value.value.sum(axis=axis, keepdims=keep), a.value.error.sum(axis=axis, keepdims=keep) + count * FLOATS[kind] * size, kind)
            return Value(f"clamp({text}, {literal(kind, -LIMIT)}, {literal(kind, LIMIT)})", kind, shape, total.rounded().clamp(-LIMIT, LIMIT))
        run = numpy.max if name == "max" else numpy.min
        return Value(text, kind, shape, Float(run(a.value.value, axis=axis, keepdims=keep), numpy.max(a.value.error, axis=axis, keepdims=keep), kind))

    def transposed(self, kind, shape, depth):
        if shape not in (("M", "N"), ("N", "M")):
            return None
        a = self.expression(kind, (shape[1], shape[0]), depth - 1)
        value = Float(a.value.value.T, a.value.error.T, kind) if isinstance(a.value, Float) else a.value.T
        return Value(f"({a.text}).transpose()", kind, shape, value)

    def running(self, kind, shape, depth):
        if kind not in ("i32", "i64", "u32", "u64"):
            return None
        a = self.expression(kind, shape, depth - 1)
        return Value(f"({a.text}).cumsum()", kind, shape, numpy.cumsum(a.value, axis=-1, dtype=a.value.dtype))

    def product(self, kind, shape, depth):
        """[M, N] @ [N, M] @ … back to [M, N]."""
        if shape != ("M", "N") or kind not in FLOATS:
            return None
        parts = [self.expression(kind, ("M", "N"), 0), self.leaf(kind, ("N", "M")), self.leaf(kind, ("M", "N"))]
        text = f"(({parts[0].text} @ {parts[1].text}) * {literal(kind, 0.0625)} @ {parts[2].text})"
        # Rounding points: operands and results of products.
        first = self.dot(parts[0].value.rounded(), parts[1].value.rounded(), kind)
        if self.overflows(first, kind):
            return None
        second = self.dot(Float(first.value * 0.0625, first.error * 0.0625, kind).rounded(), parts[2].value.rounded(), kind)
        if self.overflows(second, kind):
            return None
        return Value(f"clamp({text}, {literal(kind, -LIMIT)}, {literal(kind, LIMIT)})", kind, shape, second.clamp(-LIMIT, LIMIT))

    @staticmethod
    def overflows(value, kind):
        return kind == "f16" and numpy.abs(value.value).max() > 3e4

    @staticmethod
    def dot(a, b, kind):
        size = (numpy.abs(a.value) + a.error) @ (numpy.abs(b.value) + b.error)
        error = a.error @ numpy.abs(b.value) + numpy.abs(a.value) @ b.error + a.error @ b.error
        return Float(a.value @ b.value, error + a.value.shape[1] * FLOATS["f64" if kind == "f64" else "f32"] * 2 * size, kind).rounded(times=2)
