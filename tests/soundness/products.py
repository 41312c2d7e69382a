"""Random kernels of matrix products and attention: every element type of the matrix units, operands that lie anyhow, in batches, turned, computed or
products themselves, vectors, several products in one statement, what follows them element by element or along rows, and softmax between two products."""
import numpy

from cases import Case
from expressions import literal
from scalars import FLOAT8, FLOATS, INTEGERS, Float, rounded

SIZES = [1, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 40, 48, 63, 64, 65, 72, 96, 100, 128, 129, 130, 160, 192]
LARGE = [1, 2, 8, 13, 16, 31, 32, 33, 64, 65, 96, 127, 128, 130, 136, 192, 200, 256, 257, 264, 320, 384, 511, 512, 520, 640, 777, 1024, 1032]
WIDTHS = [1, 3, 8, 16, 20, 24, 32, 40, 64, 64, 72, 80, 96, 128, 128, 136, 160, 256]
MOST = {False: 4e5, True: 2e8}  # multiplications of a product
FLOAT_KINDS = ["f32", "f32", "tf32", "bf16", "bf16", "f16", "f16", "f64", "f8e4m3", "f8e5m2"]
INTEGER_KINDS = ["i8", "u8", "i32"]


class Value:
    """An expression, the names of its extents, its element type, and what it is: an array of integers or a Float."""

    def __init__(self, text, shape, kind, value):
        self.text, self.shape, self.kind, self.value = text, tuple(shape), kind, value


def dot(a, b, relative):
    """Sums in f32 or f64; `relative`: the error of a product by its operands' rounding."""
    size = (numpy.abs(a.value) + a.error) @ (numpy.abs(b.value) + b.error)
    error = a.error @ numpy.abs(b.value) + numpy.abs(a.value) @ b.error + a.error @ b.error
    unit = FLOATS["f64" if a.kind == "f64" else "f32"]
    return Float(a.value @ b.value, error + ((a.value.shape[-1] + 4) * unit + relative) * size, a.kind)


class Products:
    def __init__(self, rng, name, seed, large=False):
        self.rng, self.numbers, self.case, self.large = rng, numpy.random.default_rng(seed), Case(name, seed), large
        self.values, self.lines, self.parameters, self.arguments, self.results, self.size = [], [], [], [], [], {"1": 1}
        self.fresh, self.kind = 0, rng.choice(FLOAT_KINDS + INTEGER_KINDS)
        self.tf32 = self.kind == "tf32"
        self.kind = "f32" if self.tf32 else self.kind
        # What products leave where the operands' type is too narrow for anything else.
        self.sums = {"i8": "i32", "u8": rng.choice(["u32", "i32"]), "f8e4m3": "f32", "f8e5m2": "f32"}.get(self.kind, self.kind)
        with numpy.errstate(all="ignore"):
            if self.kind in FLOATS and not self.tf32 and rng.random() < 0.35:
                self.attention()
            else:
                self.products()
            self.finish()

    # ---- the program

    def dim(self, sizes=None):
        self.fresh += 1
        name = f"D{self.fresh}"
        self.size[name] = 1 if self.rng.random() < 0.05 else self.rng.choice(sizes or (LARGE if self.large else SIZES))
        return name

    def extents(self, shape):
        return tuple(self.size[name] for name in shape)

    def finish(self):
        several = len(self.results) > 1
        types = [f"Tensor<{one.kind}, [{', '.join(one.shape)}]>" for one in self.results]
        texts = ", ".join(one.text for one in self.results)
        body = "\n".join("    " + line for line in self.lines + [f"return ({texts})" if several else f"return {texts}"])
        signature, name = ",\n    ".join(self.parameters), f"{self.case.name}_k"
        self.case.items += (f"@unchecked(overflow)\n{'@precision(tf32)' if self.tf32 else ''}\nkernel {name}(\n    {signature}\n) -> "
                            f"{'(' + ', '.join(types) + ')' if several else types[0]} {{\n{body}\n}}\n")
        names = [f"r{index}" for index in range(len(self.results))]
        self.case.body += f"let {'(' + ', '.join(names) + ')' if several else names[0]} = {name}({', '.join(self.arguments)})\n"
        for result, one in zip(names, self.results):
            self.case.take(result, result, one.value.rounded() if isinstance(one.value, Float) else one.value, one.kind)

    def fill(self, kind, extents):
        if kind in INTEGERS:
            limits = numpy.iinfo(INTEGERS[kind])
            values = self.numbers.integers(limits.min, limits.max, extents, INTEGERS[kind], endpoint=True)
            return numpy.where(self.numbers.random(extents) < 0.1, limits.min, values).astype(INTEGERS[kind])
        return rounded(self.numbers.uniform(-1, 1, extents), kind)

    def give(self, kind, shape):
        """A parameter: a tensor, or a part of a larger one; its dimensions in any order."""
        rng, extents, name = self.rng, self.extents(shape), f"x{len(self.parameters)}"
        values = whole = self.fill(kind, extents)
        view = name
        if rng.random() < 0.3:
            before = [rng.choice([0, 0, 1, 3, 8]) for _ in extents]
            whole = self.fill(kind, tuple(b + n + rng.choice([0, 0, 1, 8]) for b, n in zip(before, extents)))
            whole[tuple(slice(b, b + n) for b, n in zip(before, extents))] = values
            view = f"{name}[{', '.join(f'{b}..{b + n}' for b, n in zip(before, extents))}]"
        if kind in FLOAT8:  # no file holds these
            helper = f"{self.case.name}_narrow{len(self.parameters)}"
            dims = [f"E{index}" for index in range(len(shape))]
            self.case.items += (f"kernel {helper}(x: &Tensor<f32, [{', '.join(dims)}]>) -> Tensor<{kind}, [{', '.join(dims)}]> {{\n"
                                "    return x\n}\n")
            self.case.give(f"{name}w", whole, "f32", str(list(whole.shape)))
            self.case.body += f"let {name} = {helper}(&{name}w)\n"
        else:
            self.case.give(name, whole, kind, str(list(whole.shape)))
        self.parameters.append(f"{name}: &Tensor<{kind}, [{', '.join(shape)}]>")
        self.arguments.append(f"&{view}")
        made = Value(name, shape, kind, values if kind in INTEGERS else Float.exact(values, kind))
        self.values.append(made)
        return made

    def turned(self, one, order):
        last = list(range(len(order) - 2)) + [len(order) - 1, len(order) - 2]
        text = f"{one.text}.transpose({'' if list(order) == last else list(order)})"
        value = one.value
        value = Float(value.value.transpose(order), value.error.transpose(order), value.kind) if isinstance(value, Float) else value.transpose(order)
        return Value(text, [one.shape[axis] for axis in order], one.kind, value)

    def operand(self, shape):
        """Of the kernel's type: what is there already, or a parameter, as it is or turned."""
        rng = self.rng
        found = [one for one in self.values if one.kind == self.kind and sorted(one.shape) == sorted(shape) and len(set(shape)) == len(shape)]
        if found and rng.random() < 0.6:
            one = rng.choice(found)
        else:
            order = list(range(len(shape)))
            if rng.random() < 0.4:
                rng.shuffle(order) if rng.random() < 0.5 else order.append(order.pop(-2) if len(order) > 1 else order.pop())
            one = self.give(self.kind, [shape[axis] for axis in order])
        if one.shape != tuple(shape):
            one = self.turned(one, [one.shape.index(name) for name in shape])
        if self.kind in FLOATS and rng.random() < 0.2:
            one = self.elementwise(one, rng.choice(["scale", "positive", "negative"]))
        return one

    # ---- products

    def product(self, a, b, kind):
        """`a @ b` with sums in the kind."""
        shape = [*(a.shape[:-2] if len(a.shape) >= len(b.shape) else b.shape[:-2]), *a.shape[-2:-1], *(b.shape[-1:] if len(b.shape) > 1 else [])]
        if kind in INTEGERS:
            value = (a.value.astype(numpy.int64) @ b.value.astype(numpy.int64)).astype(INTEGERS[kind])
        else:
            exact = [one.value if not one.value.error.any() or self.kind in FLOAT8 else one.value.rounded(self.kind) for one in (a, b)]
            # Matrix units keep 14 bits or so of sums of 8-bit floats (decision 0066).
            value = dot(*exact, 2.0**-10 if self.tf32 else 2.0**-12 if self.kind in FLOAT8 else 0.0)
            value = Float(value.value, value.error, kind)
            value = value if self.kind in FLOAT8 else value.rounded(self.kind) if kind != self.kind else value.rounded()
        return Value(f"({a.text} @ {b.text})", shape, kind, value)

    def matrices(self, rows, columns):
        """Operands of a product of these rows and columns, in batches or not; vectors have none."""
        rng, depth = self.rng, self.dim()
        batch = [self.dim([1, 2, 3, 5])] if rng.random() < 0.25 else []
        work = numpy.prod(self.extents(rows + [depth] + columns + batch), dtype=float)
        if work > MOST[self.large]:
            self.size[depth] = max(1, int(self.size[depth] * MOST[self.large] / work))
        form = rng.randrange(3) if batch else 0
        a = self.operand((batch if form != 1 and rows else []) + rows + [depth])
        b = self.operand((batch if form != 2 and columns else []) + [depth] + columns)
        return a, b

    def products(self):
        rng = self.rng
        for _ in range(rng.randint(1, 3)):
            pick = rng.random()
            # Of matrices, some have one row or column that only the launch knows of.
            rows, columns = ([self.dim([1] if rng.random() < 0.15 else None)] if has else [] for has in (pick > 0.08, pick < 0.92))
            made = self.product(*self.matrices(rows, columns), self.sums)
            declared = self.sums != self.kind
            if not declared and self.kind in FLOATS and rng.random() < 0.25 and len(made.shape) == 2:  # two products of one statement
                depth = self.dim()
                self.size[depth] = min(self.size[depth], 40)
                made = self.sum_of(made, self.product(self.operand([made.shape[0], depth]), self.operand([depth, made.shape[1]]), self.sums))
            elif not declared and self.kind != "i32" and rng.random() < 0.2 and len(made.shape) == 2:  # a chain
                other = self.dim([1, 4, 16, 33])
                made = self.product(self.elementwise(made, "shrink"), self.operand([made.shape[1], other]), self.sums)
            made = self.bind(made, declared)
            for _ in range(rng.randint(0, 3)):
                made = self.after(made)
            if rng.random() < 0.5:
                made = self.bind(made, rng.random() < 0.5)
            self.results.append(made)
        if rng.random() < 0.3 and len(self.results[-1].shape) > 1:
            self.results.append(self.row_sums(self.results[-1]))

    def bind(self, one, declared):
        self.fresh += 1
        name = f"t{self.fresh}"
        self.lines.append(f"let {name}{f': Tensor<{one.kind}, [{chr(44).join(one.shape)}]>' if declared else ''} = {one.text}")
        value = one.value.rounded() if declared and isinstance(one.value, Float) else one.value
        made = Value(name, one.shape, one.kind, value)
        self.values.append(made)
        return made

    # ---- what follows

    def sum_of(self, a, b):
        value = a.value + b.value if isinstance(a.value, Float) else (a.value + b.value).astype(INTEGERS[a.kind])
        return Value(f"({a.text} + {b.text})", a.shape, a.kind, value)

    def elementwise(self, one, pick):
        value, kind = one.value, one.kind
        if pick == "positive":
            return Value(f"max({one.text}, {literal(kind, 0.0)})", one.shape, kind, Float(numpy.maximum(value.value, 0), value.error, kind))
        if pick == "negative":
            return Value(f"(-{one.text})", one.shape, kind, Float(-value.value, value.error, kind))
        if pick == "tanh":
            of = numpy.tanh(value.value)
            return Value(f"tanh({one.text})", one.shape, kind, Float(of, value.error + 16 * FLOATS[kind] * numpy.abs(of), kind).rounded())
        factor = {"scale": 0.5, "shrink": 0.03125}[pick]
        return Value(f"({one.text} * {literal(kind, factor)})", one.shape, kind, Float(value.value * factor, value.error * factor, kind).rounded())

    def after(self, one):
        """Something of every element, its row or its column."""
        rng, kind = self.rng, one.kind
        pick = rng.choice(["bias", "rows", "residual", "chosen"] + ["positive", "scale", "tanh"] * (kind in FLOATS))
        if pick in ("positive", "scale", "tanh") or not one.shape:
            return self.elementwise(one, pick) if kind in FLOATS and pick in ("positive", "scale", "tanh") else one
        if pick == "chosen":
            limit = literal(kind, 0.0 if kind in FLOATS else 3)
            other = self.give(kind, one.shape[-1:])
            if kind in FLOATS:  # near the limit either way is right
                near = numpy.abs(one.value.value) <= one.value.error
                low = numpy.broadcast_to(other.value.value, one.value.value.shape)
                value = Float(numpy.where(one.value.value < 0, low, one.value.value),
                              one.value.error + numpy.where(near, numpy.abs(low) + numpy.abs(one.value.value), 0), kind)
            else:
                value = numpy.where(one.value < 3, other.value, one.value)
            return Value(f"select({one.text} < {limit}, {other.text}, {one.text})", one.shape, kind, value)
        shape = {"bias": one.shape[-1:], "residual": one.shape, "rows": one.shape[-2:-1] + ("1",) if len(one.shape) > 1 else one.shape}[pick]
        other = self.give(kind, shape)
        if pick == "rows":
            value = one.value * other.value if isinstance(one.value, Float) else (one.value * other.value).astype(INTEGERS[kind])
            return Value(f"({one.text} * {other.text})", one.shape, kind, value)
        value = one.value + other.value if isinstance(one.value, Float) else (one.value + other.value).astype(INTEGERS[kind])
        return Value(f"({one.text} + {other.text})", one.shape, kind, value)

    def row_sums(self, one):
        text, value = f"{one.text}.sum(dim = -1)", one.value
        if isinstance(value, Float):
            size = numpy.abs(value.value).sum(-1) + value.error.sum(-1)
            value = Float(value.value.sum(-1), value.error.sum(-1) + value.value.shape[-1] * FLOATS[one.kind] * size, one.kind).rounded()
        else:
            value = value.sum(-1, dtype=value.dtype)
        return Value(text, one.shape[:-1], one.kind, value)

    # ---- softmax between two products

    def attention(self):
        rng, kind = self.rng, self.kind
        queries, keys = self.dim(), self.dim()
        width = self.dim(WIDTHS)
        other = width if rng.random() < 0.7 else self.dim(WIDTHS)
        heads, share = self.dim([1, 2, 3]), self.dim([1, 2, 4])
        form = rng.choice(["flat", "heads", "behind", "grouped", "grouped"])
        while numpy.prod(self.extents([heads, share, queries, keys, width]), dtype=float) > MOST[self.large]:
            larger = max(queries, keys, heads, share, key=self.size.get)
            self.size[larger] = max(1, self.size[larger] // 2)
        before = {"flat": [], "heads": [heads], "behind": [heads], "grouped": [heads, share]}[form]
        if form == "behind":
            q, k, v = (self.turned(self.give(kind, [count, heads, each]), [1, 0, 2])
                       for count, each in ((queries, width), (keys, width), (keys, other)))
        else:
            alike = [heads] if form == "grouped" else before
            q, k, v = self.give(kind, before + [queries, width]), self.give(kind, alike + [keys, width]), self.give(kind, alike + [keys, other])
        if form == "grouped":
            k, v = (Value(f"{one.text}.reshape([{heads}, 1, {', '.join(one.shape[1:])}])", [heads, "1", *one.shape[1:]], kind,
                          Float.exact(one.value.value[:, None], kind)) for one in (k, v))
        k = self.turned(k, [*range(len(k.shape) - 2), len(k.shape) - 1, len(k.shape) - 2])
        scores = dot(q.value, k.value, 0.0)
        shape = before + [queries, keys]
        wide = kind if kind in ("f32", "f64") else "f32"
        scores = Float(scores.value, scores.error, wide)
        scale = rng.choice([0.25, 0.5, 1.0])
        text = f"({q.text} @ {k.text}) as {wide} * {literal(wide, scale)}" if kind != wide else f"{q.text} @ {k.text} * {literal(wide, scale)}"
        scores = Float(scores.value * scale, scores.error * scale, wide).rounded()
        self.lines.append(f"let s0 = {text}")
        s = Value("s0", shape, wide, scores)
        for _ in range(rng.randint(0, 2)):
            s = self.masked(s, queries, keys)
        shifted = numpy.exp(s.value.value - numpy.max(s.value.value, -1, keepdims=True))
        weights = shifted / shifted.sum(-1, keepdims=True)
        finite = numpy.where(numpy.isfinite(s.value.value), s.value.error, 0)
        relative = 2.2 * finite.max(-1, keepdims=True) + (self.size[keys] + 24) * FLOATS[wide] + (2.5 * FLOATS[kind] if kind != wide else 0)
        with numpy.errstate(all="ignore"):
            value = Float(weights, weights * relative + (2.0**-24 if kind == "f16" else 0), kind)
        cast = f"softmax({s.text})" if kind == wide else f"softmax({s.text}) as {kind}"
        result = dot(value, v.value, 0.0)
        result = Float(result.value, result.error, kind).rounded()
        out = Value(f"({cast} @ {v.text})", before + [queries, other], kind, result)
        out = self.bind(out, rng.random() < 0.3)
        if form == "behind" and rng.random() < 0.5:
            out = self.turned(out, [1, 0, 2])
        self.results.append(out)
        if rng.random() < 0.2:
            self.results.append(self.after(out))
        if rng.random() < 0.2:
            top = numpy.max(s.value.value, -1)
            error = numpy.where(numpy.isfinite(s.value.value), s.value.error, 0).max(-1)
            self.results.append(Value(f"{s.text}.max(dim = -1)", shape[:-1], wide, Float(top, error, wide).rounded()))

    def masked(self, s, queries, keys):
        rng, kind = self.rng, s.kind
        rows, columns = numpy.arange(self.size[queries])[:, None], numpy.arange(self.size[keys])[None]
        minus = Float(numpy.full((), -numpy.inf), numpy.zeros(()), kind)
        pick = rng.choice(["causal", "offset", "window", "bias", "length", "slope", "cap"])
        if pick in ("causal", "offset"):
            offset = 0 if pick == "causal" else rng.choice([-1, 1, 5, self.size[keys] - self.size[queries]])
            if pick == "offset" and rng.random() < 0.5:
                offset, text = self.size[keys] - self.size[queries], f", offset = {keys} as i64 - {queries} as i64"
            else:
                text = f", offset = {offset}" if pick == "offset" else ""
            return self.next(f"{s.text}.mask_upper_triangle(-inf{text})", s, minus.where(numpy.broadcast_to(columns > rows + offset, s.value.value.shape), s.value))
        if pick == "window":
            size = rng.choice([1, 4, 40])
            text = (f"select(arange({queries}).reshape([{queries}, 1]) < arange({keys}).reshape([1, {keys}]) + {size}, {s.text}, -inf)")
            return self.next(text, s, s.value.where(numpy.broadcast_to(rows < columns + size, s.value.value.shape), minus))
        if pick == "length":
            length = rng.randint(1, self.size[keys])
            return self.next(f"select(arange({keys}) < {length}, {s.text}, -inf)", s, s.value.where(numpy.broadcast_to(columns < length, s.value.value.shape), minus))
        if pick == "bias":
            other = self.give(kind, rng.choice([(queries, keys), (keys,), s.shape]))
            return self.next(f"{s.text} + {other.text}", s, s.value + other.value)
        if pick == "slope":
            text = f"{s.text} + (arange({keys}) as {kind}) * {literal(kind, 0.0625)}"
            return self.next(text, s, s.value + Float.exact(columns * 0.0625, kind))
        of = numpy.tanh(s.value.value)
        return self.next(f"tanh({s.text})", s, Float(of, s.value.error + 16 * FLOATS[kind], kind).rounded())

    def next(self, text, s, value):
        self.fresh += 1
        self.lines.append(f"let s{self.fresh} = {text}")
        finite = numpy.isfinite(value.value)
        return Value(f"s{self.fresh}", s.shape, s.kind, Float(value.value, numpy.where(finite, value.error, 0), s.kind))


class Large(Products):
    """Of the sizes that matrix units, bulk copies and pieces of the depth are for."""

    def __init__(self, rng, name, seed):
        super().__init__(rng, name, seed, large=True)
