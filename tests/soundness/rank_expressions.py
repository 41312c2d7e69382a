"""Random whole-tensor expressions of rank 0 to 4. `run` evaluates one by NumPy, for what the variables hold at that time."""
import numpy

from expressions import literal
from scalars import BINARY, COMPARE, FLOATS, INTEGERS, Float, choose

LIMIT = 4.0
SUMMED = ("i32", "i64", "u32", "u64")


class Expr:
    """`shape` are pairs (text, number); `run` takes the variables' values and gives an array or a Float."""

    def __init__(self, text, kind, shape, run):
        self.text, self.kind, self.shape, self.run = text, kind, tuple(shape), run

    @property
    def numbers(self):
        return tuple(number for _, number in self.shape)


def each(value, run):
    """`run` of the values and of their errors."""
    return Float(run(value.value), run(value.error), value.kind) if isinstance(value, Float) else run(value)


def extents(shape):
    return f"[{', '.join(text for text, _ in shape)}]"


def factor(text):
    return f"({text})" if " " in text else text


class RankExpressions:
    """`dims`: pairs of name and number; `values`: the tensors that expressions may read; `kinds`: element types, the first one a summed integer."""

    def __init__(self, rng):
        self.rng, self.dims, self.kinds, self.values = rng, [], [], []

    @staticmethod
    def product(a, b):
        return (f"{factor(a[0])} * {factor(b[0])}", a[1] * b[1])

    def low(self, kind):
        return literal(kind, -LIMIT)

    def high(self, kind):
        return literal(kind, LIMIT)

    def constant(self, value, kind, shape):
        array = numpy.full(tuple(number for _, number in shape), value)
        return Float.exact(array.astype(numpy.float64), kind) if kind in FLOATS else array.astype(INTEGERS[kind])

    def apply(self, op, a, b):
        if isinstance(a, Float):
            return {"+": Float.__add__, "-": Float.__sub__, "*": Float.__mul__}[op](a, b).clamp(-LIMIT, LIMIT)
        return BINARY[op](a, b)

    def binary_of(self, a, b):
        op = self.rng.choice("+-*") if a.kind in FLOATS else self.rng.choice(sorted(BINARY))
        text = f"({a.text} {op} {b.text})"
        if a.kind in FLOATS:
            text = f"clamp({a.text} {op} {b.text}, {self.low(a.kind)}, {self.high(a.kind)})"
        return Expr(text, a.kind, a.shape, lambda env: self.apply(op, a.run(env), b.run(env)))

    def leaf(self, kind, shape):
        same = [one for one in self.values if one.kind == kind]
        found = [one for one in same if one.shape == shape]
        if found and self.rng.random() < 0.9:
            return self.rng.choice(found)
        makers = [self.sliced, self.converted, self.spread, self.permuted_leaf]
        self.rng.shuffle(makers)
        for make in makers:
            made = make(kind, shape, same)
            if made:
                return made
        value = self.rng.choice([0.5, -1.5, 3.0]) if kind in FLOATS else self.rng.randint(0, 100)
        return Expr(f"full({literal(kind, value)}, {extents(shape)})" if shape else literal(kind, value), kind, shape,
                    lambda env: self.constant(value, kind, shape))

    def sliced(self, kind, shape, same):
        """A part of a larger tensor: its axes in any order, an index for each that is not wanted."""
        found = []
        for one in same:
            axes = self.matched(one, shape) if one.text.isidentifier() and shape else None
            if axes:
                found.append((one, axes))
        if not found:
            return None
        source, axes = self.rng.choice(found)
        parts, at = [], []
        for axis, (own, size) in enumerate(source.shape):
            if axis not in axes:
                begin = self.rng.randrange(size)
                parts.append(str(begin))
                at.append(begin)
                continue
            text, number = shape[axes.index(axis)]
            begin = self.rng.randint(0, size - number)
            if text == own:
                parts.append(":")
            elif begin == 0:
                parts.append(f"0..{text}")
            else:
                parts.append(f"{begin}..+{factor(text)}")
            at.append(slice(begin, begin + number))
        order = [sorted(axes).index(axis) for axis in axes]
        turned = "" if order == sorted(order) else f".transpose({order})"
        return Expr(f"{source.text}[{', '.join(parts)}]{turned}", kind, shape,
                    lambda env: each(source.run(env), lambda v: v[tuple(at)].transpose(order)))

    def matched(self, source, shape):
        """For each wanted extent an axis of the source that is as long, or None. An axis of the same name is taken whole."""
        free, axes = list(range(len(source.shape))), []
        for text, number in shape:
            fit = [axis for axis in free if source.shape[axis][1] >= number]
            fit = [axis for axis in fit if source.shape[axis][0] == text] or fit
            if not fit:
                return None
            axes.append(self.rng.choice(fit))
            free.remove(axes[-1])
        return axes

    def converted(self, kind, shape, _):
        found = [one for one in self.values if one.shape == shape and one.kind != kind and kind in INTEGERS and one.kind in INTEGERS]
        if not found:
            return None
        one = self.rng.choice(found)
        return Expr(f"({one.text} as {kind})", kind, shape, lambda env: one.run(env).astype(INTEGERS[kind]))

    def spread(self, kind, shape, same):
        found = [one for one in same if one.shape and len(one.shape) < len(shape) and one.shape == shape[len(shape) - len(one.shape):]]
        if not found:
            return None
        one, numbers = self.rng.choice(found), tuple(number for _, number in shape)
        return Expr(f"{one.text}.broadcast({extents(shape)})", kind, shape,
                    lambda env: each(one.run(env), lambda v: numpy.broadcast_to(v, numbers)))

    def permuted_leaf(self, kind, shape, same):
        found = [one for one in same if len(shape) > 1 and sorted(one.shape) == sorted(shape) and one.shape != shape]
        if not found:
            return None
        return self.permuted(self.rng.choice(found), shape)

    def permuted(self, source, shape):
        order, free = [], list(range(len(shape)))
        for one in shape:
            at = next(index for index in free if source.shape[index] == one)
            free.remove(at)
            order.append(at)
        return Expr(f"{source.text}.transpose({order})", source.kind, shape, lambda env: each(source.run(env), lambda v: v.transpose(order)))

    def expression(self, kind, shape, depth):
        if depth <= 0:
            return self.leaf(kind, shape)
        makers = [self.binary, self.binary, self.pick, self.reduced, self.reduced, self.transposed, self.reshaped, self.running, self.matrices,
                  self.function, self.lower]
        for _ in range(8):
            made = self.rng.choice(makers)(kind, shape, depth)
            if made:
                return made
        return self.leaf(kind, shape)

    def binary(self, kind, shape, depth):
        return self.binary_of(self.expression(kind, shape, depth - 1), self.expression(kind, shape, depth - 1))

    def pick(self, kind, shape, depth):
        op = self.rng.choice(sorted(COMPARE))
        p, q = self.expression(self.kinds[1], shape, depth - 1), self.leaf(self.kinds[1], shape)
        a, b = self.expression(kind, shape, depth - 1), self.leaf(kind, shape)
        return Expr(f"select({p.text} {op} {q.text}, {a.text}, {b.text})", kind, shape,
                    lambda env: choose(COMPARE[op](p.run(env), q.run(env)), a.run(env), b.run(env)))

    def function(self, kind, shape, depth):
        a, b = self.expression(kind, shape, depth - 1), self.leaf(kind, shape)
        name, run = self.rng.choice([("min", numpy.minimum), ("max", numpy.maximum)])
        if kind in INTEGERS:
            return Expr(f"{name}({a.text}, {b.text})", kind, shape, lambda env: run(a.run(env), b.run(env)))
        return Expr(f"tanh({a.text})", kind, shape, lambda env: self.tanh(a.run(env), kind))

    @staticmethod
    def tanh(x, kind):
        value = numpy.tanh(x.value)
        return Float(value, x.error + 16 * FLOATS[kind] * numpy.abs(value), kind).rounded()

    def reduced(self, kind, shape, depth):
        if not shape or len(shape) > 3 or (kind in INTEGERS and kind not in SUMMED):
            return None
        more = self.rng.choice([1, 1, 2]) if len(shape) < 3 else 1
        inner, axes = list(shape), []
        for _ in range(more):
            inner.insert(self.rng.randint(0, len(inner)), ("*", 0))
        for index, (text, _) in enumerate(inner):
            if text == "*":
                inner[index] = self.rng.choice(self.dims)
                axes.append(index)
        if numpy.prod([number for _, number in inner]) > 8000:
            return None
        a, along = self.expression(kind, tuple(inner), depth - 1), tuple(axes)
        name = self.rng.choice(["sum", "max", "min"])
        texts = [str(axis - len(inner) if self.rng.random() < 0.3 else axis) for axis in axes]
        text = f"{a.text}.{name}(dim = {texts[0] if len(texts) == 1 else '[' + ', '.join(texts) + ']'})"
        if kind in INTEGERS:
            run = {"sum": lambda v: v.sum(axis=along, dtype=v.dtype), "max": lambda v: v.max(axis=along), "min": lambda v: v.min(axis=along)}[name]
            return Expr(text, kind, shape, lambda env: run(a.run(env)))
        if name == "sum":
            return Expr(f"clamp({text}, {self.low(kind)}, {self.high(kind)})", kind, shape, lambda env: self.summed(a.run(env), along, kind))
        run = numpy.max if name == "max" else numpy.min
        return Expr(text, kind, shape, lambda env: self.extreme(a.run(env), along, run))

    @staticmethod
    def extreme(x, along, run):
        return Float(run(x.value, axis=along), numpy.max(numpy.broadcast_to(x.error, x.value.shape), axis=along), x.kind)

    @staticmethod
    def summed(x, along, kind):
        count = numpy.prod([x.value.shape[axis] for axis in along])
        error = numpy.broadcast_to(x.error, x.value.shape).sum(axis=along)
        size = numpy.abs(x.value).sum(axis=along) + error
        return Float(x.value.sum(axis=along), error + count * FLOATS[kind] * size, kind).rounded().clamp(-LIMIT, LIMIT)

    def transposed(self, kind, shape, depth):
        if len(shape) < 2:
            return None
        inner = list(shape)
        self.rng.shuffle(inner)
        return self.permuted(self.expression(kind, tuple(inner), depth - 1), shape)

    def reshaped(self, kind, shape, depth):
        """Two neighbours that were one dimension, or one that was two, or one of extent 1 more."""
        if not shape:
            return None
        numbers, pick = tuple(number for _, number in shape), self.rng.randrange(3)
        at = self.rng.randrange(len(shape))
        if pick == 0 and len(shape) > 1 and at + 1 < len(shape):
            inner = shape[:at] + (self.product(shape[at], shape[at + 1]),) + shape[at + 2:]
        elif pick == 1 and shape[at] == self.product(*self.dims[:2]) and len(shape) < 4:
            inner = shape[:at] + tuple(self.dims[:2]) + shape[at + 1:]
        elif len(shape) < 4:
            inner = shape[:at] + (("1", 1),) + shape[at:]
        else:
            return None
        a = self.expression(kind, inner, depth - 1)
        return Expr(f"{a.text}.reshape({extents(shape)})", kind, shape, lambda env: each(a.run(env), lambda v: numpy.reshape(v, numbers)))

    def running(self, kind, shape, depth):
        if kind not in SUMMED or not shape:
            return None
        a, axis = self.expression(kind, shape, depth - 1), self.rng.randrange(len(shape))
        return Expr(f"{a.text}.cumsum(dim = {axis})", kind, shape, lambda env: numpy.cumsum(a.run(env), axis=axis, dtype=INTEGERS[kind]))

    def lower(self, kind, shape, depth):
        if len(shape) < 2:
            return None
        a, offset, fill = self.expression(kind, shape, depth - 1), self.rng.randint(-2, 3), self.constant(1, kind, shape)
        mask = numpy.tri(shape[-2][1], shape[-1][1], offset, dtype=bool)
        return Expr(f"{a.text}.mask_upper_triangle({literal(kind, 1)}, offset = {offset})", kind, shape,
                    lambda env: choose(numpy.broadcast_to(mask, fill.value.shape if isinstance(fill, Float) else fill.shape), a.run(env), fill))

    def matrices(self, kind, shape, depth):
        if kind not in ("i32", "f32", "f64") or len(shape) < 2:
            return None
        middle = self.rng.choice(self.dims)
        a = self.expression(kind, shape[:-1] + (middle,), depth - 1)
        batched = self.rng.random() < 0.5
        b = self.expression(kind, (shape[:-2] if batched else ()) + (middle, shape[-1]), depth - 1)
        if kind == "i32":
            return Expr(f"({a.text} @ {b.text})", kind, shape, lambda env: a.run(env) @ b.run(env))
        return Expr(f"clamp({a.text} @ {b.text}, {self.low(kind)}, {self.high(kind)})", kind, shape, lambda env: self.dot(a.run(env), b.run(env), kind))

    @staticmethod
    def dot(a, b, kind):
        a, b = a.rounded(), b.rounded()
        size = (numpy.abs(a.value) + a.error) @ (numpy.abs(b.value) + b.error)
        error = a.error @ numpy.abs(b.value) + numpy.abs(a.value) @ b.error + a.error @ b.error
        return Float(a.value @ b.value, error + a.value.shape[-1] * FLOATS[kind] * 2 * size, kind).rounded(times=2).clamp(-LIMIT, LIMIT)
