"""What a kernel computes with while it is traced: values and pointers."""
from __future__ import annotations

import numpy as np

from ._trace import OutOfResources, Trace, current, is_recording

FLOATS = {"f16", "bf16", "f32"}
_MOST_ELEMENTS = 1 << 24  # of a 2-D tile


class constexpr:
    """Marks a compile-time parameter (`BLOCK: metile.constexpr`); also a wrapped number."""

    def __init__(self, value):
        self.value = value.value if isinstance(value, constexpr) else value

    def __repr__(self):
        return f"constexpr({self.value!r})"

    def __hash__(self):
        return hash(self.value)

    def __bool__(self):
        return bool(self.value)

    def __int__(self):
        return int(self.value)

    def __float__(self):
        return float(self.value)

    def __index__(self):
        return int(self.value)

    def __neg__(self):
        return constexpr(-self.value)

    def __pos__(self):
        return constexpr(+self.value)

    def __abs__(self):
        return constexpr(abs(self.value))

    def __invert__(self):
        return constexpr(~self.value)


def _wrap_operators():
    import operator

    always = {"and": operator.and_, "or": operator.or_, "xor": operator.xor, "lshift": operator.lshift, "rshift": operator.rshift}
    plain = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv, "floordiv": operator.floordiv,
             "mod": operator.mod, "pow": operator.pow}

    def arithmetic(function, stays, reflected):
        def method(self, other):
            is_wrapped = isinstance(other, constexpr)
            if not is_wrapped and not isinstance(other, (int, float, np.number)):
                return NotImplemented
            right = unwrap(other)
            result = function(right, self.value) if reflected else function(self.value, right)
            return constexpr(result) if stays or is_wrapped else result

        return method

    def comparison(function):
        return lambda self, other: function(self.value, unwrap(other))

    for name, function in {**always, **plain}.items():
        setattr(constexpr, f"__{name}__", arithmetic(function, name in always, False))
        setattr(constexpr, f"__r{name}__", arithmetic(function, name in always, True))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(constexpr, f"__{name}__", comparison(getattr(operator, name)))


def _is_bfloat16(value) -> bool:
    """A scalar of ml_dtypes, which is no floating of NumPy's."""
    return isinstance(value, np.generic) and value.dtype.name == "bfloat16"


def unwrap(value):
    value = value.value if isinstance(value, constexpr) else value
    return float(value) if _is_bfloat16(value) else value


_wrap_operators()


def is_number(value) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating, np.bool_, constexpr)) or _is_bfloat16(value)


def operand(trace: Trace, value, what: str) -> str:
    """The value as an operand of the trace."""
    what = f"`{_SYMBOLS[what]}`" if what in _SYMBOLS else what
    if isinstance(value, Value):
        value.check(trace)
        return f"%{value.id}"
    value = unwrap(value)
    if isinstance(value, (bool, np.bool_)):
        return f"i{int(value)}"
    if isinstance(value, (int, np.integer)):
        if not -(1 << 63) <= value < 1 << 63:
            trace.fail(f"{value} does not fit 64 bits", OverflowError)
        return f"i{int(value)}"
    if isinstance(value, (float, np.floating)):
        return f"f{float(value)!r}"
    if isinstance(value, Pointer):
        trace.fail(f"{what} takes a value, not a pointer: load it first", TypeError)
    trace.fail(f"{what} takes numbers and traced values, not a {type(value).__name__}", TypeError)


_INSTEAD = {"to": ': metile.cast(x, "f32") converts', "astype": ': metile.cast(x, "f32") converts', "cast": ': metile.cast(x, "f32") converts',
            "T": ", it is no 2-D tile", "trans": ": metile.transpose(tile)", "sum": ": metile.sum(x)", "max": ": metile.max(x)", "min": ": metile.min(x)",
            "shape": ": the extents of tiles are those that it was made with", "dtype": ": metile.cast gives the type that is wanted"}


_LIKE_NUMPYS = {"where", "sum", "max", "min", "zeros", "arange", "transpose", "dot", "round"}


class Traced:
    """What values and pointers have in common: Python may not look at them."""

    def __init__(self, trace: Trace):
        self.trace = trace

    def check(self, trace: Trace) -> None:
        if self.trace is not trace:
            trace.fail("a value of another kernel, or of an earlier launch, is used here")

    def _refuse(self, what: str, instead: str):
        self.trace.fail(f"{what} is not known while the kernel is traced; {instead}", TypeError)

    def __bool__(self):
        self._refuse("the truth of a traced value", "use metile.where(condition, a, b), or a mask, and metile.minimum and metile.maximum for min and max; `and`, `or`, `not` and chained comparisons are `&`, `|`, `~`")

    def __int__(self):
        self._refuse("the number in a traced value", 'use metile.cast(x, "i32")')

    def __float__(self):
        self._refuse("the number in a traced value", 'use metile.cast(x, "f32"), and the functions of metile instead of those of math')

    def __index__(self):
        self._refuse("the number in a traced value", "loops over traced bounds are metile.tile_range, and what it chooses is metile.where, or metile.load from an array")

    def __getitem__(self, index):
        if isinstance(index, tuple) and any(part is None for part in index):
            self.trace.fail("rows and columns of tiles are made of offsets, `lanes[:, None]` and `lanes[None, :]`, and added to the pointer", TypeError)
        self._refuse("an element of a traced value", "use metile.load(pointer + index)")

    def __setitem__(self, index, value):
        self._refuse("an element of a traced value", "use metile.store(pointer + index, value)")

    def __len__(self):
        self._refuse("the length of a traced value", "pass it as an argument")

    def __iter__(self):
        self._refuse("the number of elements of a traced value", "use metile.tile_range")

    def __contains__(self, item):
        self._refuse("what a traced value contains", "compare with ==")

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        self.trace.fail(f"a traced value has no `{name}`{_INSTEAD.get(name, '')}", AttributeError)

    def __format__(self, spec):
        if spec:
            self._refuse("the text of a traced value", 'use metile.print("{}", x)')
        return repr(self)

    def __repr__(self):
        return "<pointer>" if isinstance(self, Pointer) else "<traced value>"

    def __round__(self, digits=None):
        self._refuse("the number in a traced value", "use metile.round(x)")

    def __floor__(self):
        self._refuse("the number in a traced value", "use metile.floor(x)")

    def __ceil__(self):
        self._refuse("the number in a traced value", "use metile.ceil(x)")

    def __trunc__(self):
        self._refuse("the number in a traced value", "use metile.trunc(x)")

    def __divmod__(self, other):
        self.trace.fail("divmod of traced values: use // and %", TypeError)

    __rdivmod__ = __divmod__

    def __matmul__(self, other):
        self.trace.fail("a product of tiles is metile.dot(a, b, acc)", TypeError)

    __rmatmul__ = __matmul__
    __array_ufunc__ = None  # NumPy leaves `array + x` to us, which refuses it at its line

    def __array_function__(self, function, types, args, kwargs):
        name = function.__name__
        self.trace.fail(f"functions of NumPy take no traced values: {f'metile.{name} does' if name in _LIKE_NUMPYS else 'use those of metile'}", TypeError)

    def __array__(self, dtype=None, copy=None):
        self.trace.fail("a traced value is no element of an array of NumPy's: arrays are arguments of the kernel", TypeError)

    __hash__ = object.__hash__


class Value(Traced):
    """A number per program instance or per lane, or a 2-D tile. `host` computes it from the launch's arguments where that is possible; `parts` are
    the operation and the operands of a sum or product, which offsets of tiles are taken apart by."""

    def __init__(self, trace: Trace, number: int, shape: tuple | None = None, host=None):
        super().__init__(trace)
        if shape and shape[0] * shape[1] > _MOST_ELEMENTS:
            trace.fail(f"a 2-D tile of {shape[0]} × {shape[1]} elements; one has at most {_MOST_ELEMENTS}: divide it among program instances, or go over its parts in a loop",
                       OutOfResources)
        self.id, self.tile_shape, self.host = number, shape, host
        self.parts: tuple | None = None
        self.recipe: tuple | None = None  # operation and operands of what _lanes may compute once more
        self.extent: int | None = None  # of lanes: that of the arange which they are made of
        self.is_vector = False  # a tile of one row or column that stands for one dimension: what a reduction of a tile gives
        self.varies = False  # between lanes, other than by such an arange
        self.is_index = False  # an integer of 64 bits
        self.is_argument = self.is_counter = False  # an integer of the launch; of a loop

    def __neg__(self):
        made, known = make("neg", self), self.host
        if known is not None:
            made.host = lambda numbers: -known(numbers)
        return made

    def __pos__(self):
        return self

    def __deepcopy__(self, memo):
        return self  # it is recorded once

    def __invert__(self):
        return make("not", self)

    def __abs__(self):
        return make("abs", self)

    def __getitem__(self, index):
        from ._lanes import subscript

        made = subscript(self, index)
        return super().__getitem__(index) if made is None else made

    def __getattr__(self, name):
        if name == "T" and self.tile_shape:
            turned = Value(self.trace, self.trace.add("transpose", operand(self.trace, self, ".T")), self.tile_shape[::-1])
            turned.recipe, turned.is_index = ("transpose", self), self.is_index
            return turned
        return super().__getattr__(name)


class Pointer(Traced):
    """An address of elements: a parameter or shared memory, and an offset counted in elements (None: none yet)."""

    tile_shape = None

    def __init__(self, trace: Trace, base, offset=None):
        super().__init__(trace)
        self.base, self.offset = base, offset

    def __deepcopy__(self, memo):
        return self

    def __add__(self, other):
        if isinstance(other, Pointer):
            self.trace.fail("two pointers cannot be added", TypeError)
        if not isinstance(other, Value) and not (is_number(other) and not isinstance(unwrap(other), (float, np.floating))):
            self.trace.fail(f"an offset is an integer or a traced value, not a {type(unwrap(other)).__name__}", TypeError)
        other = _index(other)
        return Pointer(self.trace, self.base, other if self.offset is None else self.offset + other)

    __radd__ = __add__

    def __sub__(self, other):
        if isinstance(other, Pointer):
            self.trace.fail("two pointers cannot be subtracted", TypeError)
        return self + (0 - _index(other) if isinstance(other, Value) or is_number(other) else other)


def _index(offset):
    """Offsets add up in 64 bits, whatever they are."""
    if not isinstance(offset, Value) or offset.is_index:
        return offset
    made = make("index", offset)
    made.host, made.parts, made.is_index = offset.host, offset.parts, True
    return made


_OF_INDICES = {"add", "sub", "mul", "div", "rem", "neg", "maximum", "minimum"}


def make(operation: str, *operands) -> Value:
    """Records an elementwise operation."""
    if not is_recording() and any(isinstance(value, Traced) for value in operands):
        raise RuntimeError("a traced value is used after its kernel has been traced: what kernels compute is stored in arrays")
    trace = current(operation)
    operands = _beside_vectors(trace, operands)
    words = [operand(trace, value, operation) for value in operands]
    traced = [value for value in operands if isinstance(value, Value)]
    shapes = {value.tile_shape for value in traced if value.tile_shape}
    made = Value(trace, trace.add(operation, *words), common_shape(trace, operation, shapes) if len(shapes) > 1 else next(iter(shapes), None))
    made.recipe = (operation, *operands)
    made.is_index = operation == "index" or operation in _OF_INDICES and all(isinstance(unwrap(value), int) or isinstance(value, Value) and value.is_index for value in operands)
    return of_lanes(made, *traced)


def _beside_vectors(trace: Trace, operands: tuple) -> tuple:
    """Vectors of lanes beside rows or columns that reductions of tiles gave are such, too."""
    tiles = [value for value in operands if isinstance(value, Value) and value.tile_shape]
    if not tiles or all(getattr(value, "extent", None) is None for value in operands):
        return operands
    if not all(tile.is_vector for tile in tiles):
        trace.fail("a value of each lane beside a 2-D tile: make it a row or a column, `value[:, None]`", TypeError)
    return tuple(along(value, tiles[0].tile_shape) if isinstance(value, Value) and value.extent is not None else value for value in operands)


def along(lanes: Value, shape: tuple) -> Value:
    """A vector of lanes as a tile of this shape, which has one row or one column."""
    from ._lanes import spread

    if lanes.extent != max(shape) or min(shape) != 1:
        lanes.trace.fail(f"{lanes.extent} lanes beside a tile of {shape}", ValueError)
    made = spread(lanes, 0 if shape[1] == 1 else 1)
    made.is_vector = True
    return made


def of_lanes(made: Value, *parts) -> Value:
    """Notes which lanes it is computed from, and which vectors."""
    tiles = [part for part in parts if isinstance(part, Value) and part.tile_shape]
    made.is_vector = bool(tiles) and bool(made.tile_shape) and 1 in made.tile_shape and all(tile.is_vector for tile in tiles)
    for part in parts:
        if isinstance(part, Value) and part.extent is not None and not made.tile_shape:
            made.extent = made.trace.same_lanes(made.extent, part.extent)
        made.varies = made.varies or isinstance(part, Value) and part.varies
    return made


def common_shape(trace: Trace, operation: str, shapes: set) -> tuple:
    """Where tiles meet, one of extent 1 is repeated."""
    extents = tuple(max(shape[dim] for shape in shapes) for dim in (0, 1))
    if any(shape[dim] not in (1, extents[dim]) for shape in shapes for dim in (0, 1)):
        trace.fail(f"`{_SYMBOLS.get(operation, operation)}` of 2-D tiles of shapes {' and '.join(str(shape) for shape in sorted(shapes))}", ValueError)
    return extents


def _divided(a: int, b: int) -> int:
    """Toward zero; 0 by 0."""
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_HOST = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: _divided(a, b),
         "rem": lambda a, b: a - b * _divided(a, b) if b else 0}


def _host_of(operation: str, left, right):
    """The same operation on the launch's numbers, when both sides are known there."""
    function = _HOST.get(operation)
    sides = [side.host if isinstance(side, Value) else unwrap(side) for side in (left, right)]
    if function is None or any(side is None or isinstance(side, float) for side in sides):
        return None
    first, second = (side if callable(side) else (lambda numbers, value=side: value) for side in sides)
    return lambda numbers: function(first(numbers), second(numbers))


def is_known(value) -> bool:
    """The value follows from the launch's arguments."""
    return not isinstance(value, Value) or value.host is not None


def terms_of(value) -> tuple:
    """(start, terms) of a number or value, which is start plus the sum of factor * rest for each (factor, rest) of the terms: start and factors
    follow from the launch's arguments, the rests do not."""
    if is_known(value):
        return value, ()
    known = value.trace.terms
    if id(value) not in known:
        known[id(value)] = value, _terms(value)  # with the value, whose id stays its own
    return known[id(value)][1]


def _terms(value: Value) -> tuple:
    if value.parts is None:
        return 0, ((1, value),)
    operation, (left, right) = value.parts[0], map(unwrap, value.parts[1:])
    if operation == "mul":
        factor, rest = (left, right) if is_known(left) else (right, left)
        if not is_known(factor) or isinstance(factor, (float, np.floating)):
            return 0, ((1, value),)
        start, terms = terms_of(rest)
        return times(start, factor), tuple((times(known, factor), other) for known, other in terms)
    (start, terms), (other_start, others) = terms_of(left), terms_of(right)
    if operation == "sub":
        other_start, others = times(other_start, -1), tuple((times(factor, -1), rest) for factor, rest in others)
    return (other_start if _is_zero(start) else start if _is_zero(other_start) else start + other_start), (*terms, *others)


def _is_zero(value) -> bool:
    return not isinstance(value, Value) and value == 0


def times(left, right):
    if _is_zero(left) or _is_zero(right):
        return 0
    for one, other in ((left, right), (right, left)):
        if not isinstance(one, Value) and one == 1:
            return other
    return left * right


def quotient(value, by):
    """value // by without a division where `by` is a factor of the value; None: that cannot be seen."""
    if value is by:
        return 1
    if _is_zero(value):
        return 0
    if not isinstance(value, Value):
        return value // by if not isinstance(by, Value) and by != 0 and value % by == 0 else None
    if value.parts is None:
        return None
    left, right = map(unwrap, value.parts[1:])
    if value.parts[0] != "mul":
        parts = quotient(left, by), quotient(right, by)
        return None if any(part is None for part in parts) else parts[0] + parts[1] if value.parts[0] == "add" else parts[0] - parts[1]
    for one, other in ((left, right), (right, left)):
        if (part := quotient(one, by)) is not None:
            return times(part, other)
    return None


_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%", "pow": "**", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>",
            "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _binary(operation: str, reflected: bool):
    def method(self, other):
        if isinstance(other, Pointer):
            return NotImplemented if operation == "add" else make(operation, self, other)
        if not isinstance(other, Value) and not is_number(other):
            self.trace.fail(f"`{_SYMBOLS[operation]}` of a traced value and a {type(other).__name__}", TypeError)
        left, right = (other, self) if reflected else (self, other)
        value = make(operation, left, right)
        value.host = _host_of(operation, left, right)
        value.parts = (operation, left, right) if operation in ("add", "sub", "mul") else None
        return value

    return method


for _name, _operation in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "div", "mod": "rem", "pow": "pow",
                          "and": "and", "or": "or", "xor": "xor", "lshift": "shl", "rshift": "shr"}.items():
    setattr(Value, f"__{_name}__", _binary(_operation, False))
    setattr(Value, f"__r{_name}__", _binary(_operation, True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Value, f"__{_name}__", _binary(_name, False))


def comparison_of_pointers(self, other):
    self.trace.fail("pointers cannot be compared", TypeError)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Pointer, f"__{_name}__", comparison_of_pointers)
Value.__hash__ = Pointer.__hash__ = object.__hash__
