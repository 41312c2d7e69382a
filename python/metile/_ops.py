"""The functions that kernels call."""
from __future__ import annotations

import contextlib
import math

from ._trace import LoweringError, OutOfResources, current, is_recording, word
from .compiler.schedules import validate_schedule
from ._lanes import gather, is_tile_of_addresses, scatter, zeros_of_lanes
from ._matrices import axis_of, place_of
from ._values import Pointer, Value, constexpr, is_number, make, of_lanes, operand, unwrap

_MOST_SHARED = 1 << 20  # of one array, on any device
_STORED = ("f32", "f16", "bf16", "i32", "u32", "u8")


def _int(trace, value, what: str, kind=TypeError) -> int:
    value = unwrap(value)
    if not is_number(value) or not math.isfinite(value) or int(value) != value:
        trace.fail(f"{what} is a number known at compile time, not {value!r}", kind)
    return int(value)


def _grid_axis(name: str, operation: str, axis) -> Value:
    trace = current(name)
    number = _int(trace, axis, f"the axis of {name}")
    if number not in (0, 1, 2):
        trace.fail(f"a grid has the axes 0, 1 and 2, not {number}", ValueError)
    trace.axes.add(number)
    value = Value(trace, trace.add(operation, f"i{number}"))
    value.is_index = True
    return value


def program_id(axis: int = 0) -> Value:
    """The number of this program instance along an axis of the grid, 0 to 2."""
    return _grid_axis("program_id", "pid", axis)


def num_programs(axis: int = 0) -> Value:
    """The number of program instances along an axis of the grid."""
    return _grid_axis("num_programs", "programs", axis)


def thread_id() -> Value:
    """The number of this lane in the block: 0 to BLOCK - 1."""
    trace = current("thread_id")
    trace.uses_threads = True
    return _of_each_lane(trace, "tid")


def simd_lane_id() -> Value:
    """The number of this lane in its simdgroup: 0 to 31."""
    trace = current("simd_lane_id")
    trace.uses_threads = True
    return _of_each_lane(trace, "lane")


def _of_each_lane(trace, name: str, *words: str) -> Value:
    value = Value(trace, trace.add(name, *words))
    value.varies = True
    return value


def arange(start, end) -> Value:
    """start, start + 1, … end - 1: one number per lane. The extent is the number of lanes of the kernel, but for lanes that become rows or columns of
    a tile, `arange(0, N)[:, None]`."""
    trace = current("arange")
    first, last = _int(trace, start, "arange's start"), _int(trace, end, "arange's end")
    extent = last - first
    if extent <= 0:
        trace.fail(f"arange({first}, {last}) is empty", ValueError)
    trace.aranges.add(extent)
    lanes = Value(trace, trace.add("tid"))
    lanes.recipe, lanes.extent, lanes.is_index = ("position",), extent, True
    return lanes + first if first else lanes


def _dtype(trace, dtype, known=_STORED) -> str:
    if dtype not in known:
        trace.fail(f"dtype {dtype!r} is not one of {', '.join(known)}", ValueError)
    return dtype


def cast(value, dtype: str) -> Value:
    """The value converted: "f16", "bf16", "f32", "i32", "u32" or "u8"."""
    trace = current("cast")
    _dtype(trace, dtype)
    made = Value(trace, trace.add("cast", operand(trace, value, "cast"), word(dtype)), getattr(value, "tile_shape", None))
    made.recipe = ("cast", value, dtype)
    return of_lanes(made, value)


_INTEGERS = {"u8": (0, 255), "i32": (-(1 << 31), (1 << 31) - 1), "u32": (0, (1 << 32) - 1)}


def scalar(value, dtype: str | None = None) -> Value:
    """A number with a type of its own: f32 for floats and i32 for integers unless given. An OverflowError where the type has no such integer, a ValueError
    for a fraction as an integer."""
    trace = current("scalar")
    number = unwrap(value)
    dtype = dtype or ("f32" if isinstance(number, float) else "i32")
    least, most = _INTEGERS.get(dtype, (None, None))
    if most is not None and is_number(number) and math.isfinite(number) and int(number) != number:
        trace.fail(f"{number} is no integer, as those of `{dtype}` are", ValueError)
    if most is not None and is_number(number) and not least <= number <= most:
        trace.fail(f"{number} does not fit `{dtype}`, whose numbers are {least} to {most}", OverflowError)
    return Value(trace, trace.add("scalar", operand(trace, number, "scalar"), word(_dtype(trace, dtype))))


def _elementwise(name: str, doc: str):
    def function(x):
        return make(name, x)

    function.__name__, function.__doc__ = name, doc
    return function


FLOAT_FUNCTIONS = {
    "exp": "e to the power of each element.", "exp2": "2 to the power of each element.", "expm1": "exp(x) - 1, exact near 0.",
    "log": "The natural logarithm of each element.", "log2": "The logarithm to the base 2.", "log10": "The logarithm to the base 10.",
    "log1p": "log(1 + x), exact near 0.", "sin": "The sine of each element.", "cos": "The cosine of each element.", "tan": "The tangent of each element.",
    "asin": "The inverse sine.", "acos": "The inverse cosine.", "atan": "The inverse tangent.", "sinh": "The hyperbolic sine.",
    "cosh": "The hyperbolic cosine.", "tanh": "The hyperbolic tangent of each element.", "sigmoid": "1 / (1 + exp(-x)).",
    "erf": "The error function.", "erfc": "1 - erf(x), accurate where that is small.", "sqrt": "The square root of each element.",
    "rsqrt": "1 / sqrt(x).", "cbrt": "The cube root.", "floor": "Each element rounded down.", "ceil": "Each element rounded up.",
    "round": "The nearest whole number, halves away from zero.", "trunc": "Each element rounded toward zero.",
}
globals().update({name: _elementwise(name, doc) for name, doc in FLOAT_FUNCTIONS.items()})
abs = _elementwise("abs", "The absolute value of each element.")  # noqa: A001 - the language's name
reverse_bits = _elementwise("reverse_bits", "The 32 bits of each element in reverse order.")


def fast_exp(x):
    """exp; the name lets a target choose a faster one."""
    return make("exp", x)


def maximum(a, b):
    """The larger of two elements."""
    return make("maximum", a, b)


def minimum(a, b):
    """The smaller of two elements."""
    return make("minimum", a, b)


def where(condition, x, y):
    """x where the condition holds, y elsewhere."""
    trace = current("where")
    if isinstance(x, Pointer) or isinstance(y, Pointer):
        trace.fail("a pointer cannot be chosen by where(): choose the offset", TypeError)
    return make("where", condition, x, y)


def _address(trace, pointer, what: str) -> tuple[str, str]:
    if not isinstance(pointer, Pointer):
        trace.fail(f"{what} takes a pointer with an offset (X + offsets), not {_kind(pointer)}", TypeError)
    pointer.check(trace)
    if pointer.offset is None:
        trace.fail(f"{what} takes a pointer with an offset: write `pointer + offsets`, `pointer + 0` for the first element", TypeError)
    return pointer.base.word(trace), operand(trace, pointer.offset, "an offset")


def _per_lane(trace, value, what: str) -> str:
    """An operand that each lane has one of."""
    if getattr(value, "tile_shape", None):
        trace.fail(f"{what} of a 2-D tile: it takes one number of each lane", LoweringError)
    return operand(trace, value, what)


def _kind(value) -> str:
    return "a value" if isinstance(value, Value) else f"a {type(value).__name__}"


def _mask(trace, mask) -> str:
    if mask is None:
        return "-"
    if getattr(mask, "tile_shape", None):
        trace.fail("the mask is a 2-D tile, the access has one element per lane", TypeError)
    return operand(trace, mask, "a mask")


def load(pointer, mask=None, other=None) -> Value:
    """The element at pointer + offsets of each lane. Lanes that the mask leaves out touch no memory. Without `other` they hold 0 and do not take
    part in accumulation and reductions; with it they hold that and do."""
    trace = current("load")
    if is_tile_of_addresses(pointer):
        pointer.check(trace)
        return gather(trace, pointer.base, pointer.offset, mask, other)
    base, offset = _address(trace, pointer, "load")
    value = Value(trace, trace.add("load", base, offset, _mask(trace, mask)))
    value.recipe = ("load", pointer.base, pointer.offset, mask)
    of_lanes(value, pointer.offset, mask)
    if other is not None:
        operand(trace, other, "`other` of load")
    return value if other is None or mask is None else make("where", mask, value, other)


def store(pointer, value, mask=None) -> None:
    """Writes the value, converted to the pointer's type. Lanes that the mask leaves out write nothing."""
    trace = current("store")
    if is_tile_of_addresses(pointer, value):
        pointer.check(trace)
        return scatter(trace, "store", pointer, value, mask)
    base, offset = _address(trace, pointer, "store")
    if getattr(value, "tile_shape", None):
        trace.fail("store of a 2-D tile: use tile_store, or a tile of addresses", TypeError)
    trace.use_lanes(pointer.offset, value, mask)
    pointer.base.mark_written(trace)
    trace.add("store", base, offset, operand(trace, value, "store"), _mask(trace, mask), result=False)


def _atomic(name: str, doc: str):
    def function(pointer, value, mask=None) -> Value | None:
        trace = current(name)
        if is_tile_of_addresses(pointer, value):
            pointer.check(trace)
            return scatter(trace, name, pointer, value, mask)
        base, offset = _address(trace, pointer, name)
        if pointer.base.dtype not in ("f32", "i32", "u32"):
            trace.fail(f"{name} works on elements of f32, i32 and u32, not of {pointer.base.dtype}", TypeError)
        pointer.base.mark_written(trace)
        trace.use_lanes(pointer.offset, value, mask)
        return _of_each_lane(trace, name, base, offset, _per_lane(trace, value, name), _mask(trace, mask))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc} the element at pointer + offsets of each lane in one step, and gives what it was before. Where offset, value and " \
                       "mask are the same for all lanes it is done once by the program instance."
    return function


atomic_add = _atomic("atomic_add", "Adds the value to")
atomic_max = _atomic("atomic_max", "Leaves the larger of the value and")
atomic_min = _atomic("atomic_min", "Leaves the smaller of the value and")


class Shared:
    """Memory of the program instance."""

    def __init__(self, number: int, dtype: str):
        self.number, self.dtype = number, dtype

    def word(self, trace) -> str:
        return f"t{self.number}"

    def mark_written(self, trace) -> None:
        pass


def shared(size, dtype: str = "f32") -> Pointer:
    """A pointer to `size` elements that the lanes of a program instance share."""
    trace = current("shared")
    count = _int(trace, size, "the size of shared memory")
    if count <= 0:
        trace.fail(f"shared memory of {count} elements", ValueError)
    nbytes = count * {"u8": 1, "f16": 2, "bf16": 2}.get(_dtype(trace, dtype), 4)
    if nbytes > _MOST_SHARED:
        trace.fail(f"{nbytes} bytes of threadgroup memory; an array of it has at most {_MOST_SHARED}", OutOfResources)
    trace.shared_bytes += nbytes
    return Pointer(trace, Shared(trace.add("shared", f"i{count}", word(dtype), "i0", word(trace.name_of_shared())), dtype))


def barrier() -> None:
    """Waits for all lanes; what they stored in shared memory before is visible after."""
    trace = current("barrier")
    trace.add("barrier", result=False)


def _over_lanes(trace, name: str, x, instead: str = "") -> Value:
    if getattr(x, "is_vector", False) and name in ("sum", "max", "min"):
        return _of_vector(trace, name, x)
    if getattr(x, "tile_shape", None):
        trace.fail(f"{name} of a 2-D tile: reductions are over the lanes of 1-D tiles{instead}", LoweringError)
    trace.uses_threads = True
    trace.use_lanes(x)
    return Value(trace, trace.add(name, operand(trace, x, name)))


def _reduction(name: str, doc: str):
    def function(x, axis=None, keep_dims=False):
        trace = current(name)
        if axis is None:
            return _over_lanes(trace, name, x, f", {name}(tile, axis=1) is over the columns of a tile")
        number = axis_of(trace, name, axis)
        shape = getattr(x, "tile_shape", None)
        if shape and not x.is_vector:
            made = _of_tile(trace, name, x, shape, number)
            made.is_vector = not unwrap(keep_dims)
            return made
        if number not in (0, -1):
            trace.fail(f"{name} over axis {number}: lanes have the axis 0 alone", ValueError)
        return _over_lanes(trace, name, x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc + " Of a 2-D tile with an axis: along that, which stays with extent 1. Without `keep_dims` such a row or column stands for one " \
                             "dimension: it may be beside lanes of the same extent, and be reduced to a number."
    return function


def _simd_reduction(name: str, doc: str):
    def function(x):
        value = _over_lanes(current(name), name, x)
        value.varies = True
        return value

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _of_tile(trace, name: str, tile: Value, shape: tuple, axis: int) -> Value:
    """Along one dimension, which stays with extent 1."""
    if axis not in (0, 1, -1, -2):
        trace.fail(f"{name} over axis {axis}: a tile has the axes 0 and 1", ValueError)
    word_of = operand(trace, tile, name)
    return Value(trace, trace.add(f"tile_{name}", word_of, f"i{axis % 2}"), (1, shape[1]) if axis % 2 == 0 else (shape[0], 1))


def _of_vector(trace, name: str, vector: Value) -> Value:
    """Of a row or a column that stands for one dimension: one number for all lanes."""
    shape = vector.tile_shape
    for axis in (0, 1):
        if shape[axis] > 1:
            vector = _of_tile(trace, name, vector, shape, axis)
    trace.shared_bytes += 4
    return Value(trace, trace.add("only", operand(trace, vector, name)))


sum = _reduction("sum", "The sum over all lanes that are valid.")  # noqa: A001
max = _reduction("max", "The largest value over all lanes that are valid.")  # noqa: A001
min = _reduction("min", "The smallest value over all lanes that are valid.")  # noqa: A001
simd_sum = _simd_reduction("simd_sum", "The sum over the 32 lanes of the simdgroup.")
simd_max = _simd_reduction("simd_max", "The largest value over the 32 lanes of the simdgroup.")


def simd_shuffle_xor(value, mask) -> Value:
    """The value of the lane whose number differs in the bits of `mask`."""
    trace = current("simd_shuffle_xor")
    trace.uses_threads = True
    trace.use_lanes(value, mask)
    return _of_each_lane(trace, "simd_shuffle_xor", *(_per_lane(trace, part, "simd_shuffle_xor") for part in (value, mask)))


def simd_broadcast(value, lane) -> Value:
    """The value of one lane of the simdgroup."""
    trace = current("simd_broadcast")
    if is_number(lane) and _int(trace, lane, "the lane of simd_broadcast") not in range(32):
        trace.fail(f"simd_broadcast of lane {unwrap(lane)}: a simdgroup has the lanes 0 to 31", ValueError)
    trace.uses_threads = True
    trace.use_lanes(value, lane)
    return _of_each_lane(trace, "simd_broadcast", *(_per_lane(trace, part, "simd_broadcast") for part in (value, lane)))


@contextlib.contextmanager
def simdgroup_role(role, num_roles: int = 2, num_sgs: int = 0):
    """A part of the kernel that a share of the simdgroups may do. What it computes is computed for the whole tile, and later roles see its
    stores."""
    trace = current("simdgroup_role")
    index, count = _int(trace, role, "the role"), _int(trace, num_roles, "the number of roles")
    if not 0 <= index < count:
        trace.fail(f"role {index} of {count}", ValueError)
    yield
    trace.add("barrier", result=False)


def _extents(trace, shape) -> tuple[int, int]:
    if not isinstance(shape, (tuple, list)) or len(shape) != 2:
        trace.fail(f"a tile has two extents, not {shape!r}", TypeError)
    rows, columns = (_int(trace, extent, "an extent of a tile") for extent in shape)
    if rows <= 0 or columns <= 0:
        trace.fail(f"a tile of {rows} x {columns} elements", ValueError)
    trace.has_tiles = True
    return rows, columns


def zeros(shape, dtype: str = "f32") -> Value:
    """A 2-D tile of zeros; of one extent, as an integer or in a tuple: one zero for each lane."""
    trace = current("zeros")
    extents = shape if isinstance(shape, (tuple, list)) else (shape,)
    if len(extents) == 1 and not isinstance(extents[0], (tuple, list)):
        count = _int(trace, extents[0], "an extent of a tile")
        if count <= 0:
            trace.fail(f"a tile of {count} elements", ValueError)
        return zeros_of_lanes(trace, count, _dtype(trace, dtype))
    rows, columns = _extents(trace, shape)
    return Value(trace, trace.add("zeros", f"i{rows}", f"i{columns}", word(_dtype(trace, dtype))), (rows, columns))


def tile_load(pointer, row, col, stride, shape, rows=None) -> Value:
    """The tile whose element (i, j) is pointer[(row + i) * stride + col + j]; 0 outside the matrix, which has `rows` rows from the pointer on."""
    trace = current("tile_load")
    height, width = _extents(trace, shape)
    base, row, part = place_of(trace, pointer, row, stride, height, rows, "tile_load", False)
    return Value(trace, trace.add("tile_load", base, operand(trace, row, "tile_load"), operand(trace, col, "tile_load"), f"i{height}", f"i{width}", *part),
                 (height, width))


def tile_store(pointer, row, col, stride, value, shape, rows=None) -> None:
    """Stores a tile as tile_load reads it; elements outside the matrix are skipped."""
    trace = current("tile_store")
    height, width = _extents(trace, shape)
    if isinstance(value, Value) and value.tile_shape not in (None, (height, width)):
        trace.fail(f"a tile of {value.tile_shape} is stored as {(height, width)}", ValueError)
    base, row, part = place_of(trace, pointer, row, stride, height, rows, "tile_store", True)
    trace.add("tile_store", base, operand(trace, row, "tile_store"), operand(trace, col, "tile_store"), operand(trace, value, "tile_store"),
              f"i{height}", f"i{width}", *part, result=False)


def transpose(tile) -> Value:
    """The tile with rows and columns exchanged; `tile.T` is the same."""
    trace = current("transpose")
    if not getattr(tile, "tile_shape", None):
        trace.fail(f"transpose takes a 2-D tile, not {_kind(tile)}", TypeError)
    return tile.T


def dot(a, b, acc=None) -> Value:
    """acc + a @ b, with products and sums in f32; a @ b without acc."""
    trace = current("dot")
    for name, tile in (("a", a), ("b", b), *([("acc", acc)] if acc is not None else [])):
        if not isinstance(tile, Value) or tile.tile_shape is None:
            trace.fail(f"dot's {name} is a 2-D tile, not {_kind(tile)}", TypeError)
    acc = zeros((a.tile_shape[0], b.tile_shape[1])) if acc is None else acc
    if a.tile_shape[1] != b.tile_shape[0] or (a.tile_shape[0], b.tile_shape[1]) != acc.tile_shape:
        trace.fail(f"dot of {a.tile_shape} and {b.tile_shape} into {acc.tile_shape}", ValueError)
    return Value(trace, trace.add("dot", *(operand(trace, tile, "dot") for tile in (a, b, acc))), acc.tile_shape)


def tile_swizzle(pid_m, pid_n, pattern: str = "morton", block_size: int = 2):
    """Coordinates of the tile that this program instance computes: a permutation of the grid."""
    trace = current("tile_swizzle")
    try:
        validate_schedule(pattern, unwrap(block_size))
    except ValueError as error:
        trace.fail(str(error), ValueError)
    return pid_m, pid_n


def print(text: str, *values) -> None:  # noqa: A001
    """Prints once per lane: each {} of the text takes the next value; values of a text without any are put behind it."""
    trace = current("print")
    text = _text(trace, text, "print")
    rest = text.replace("{{", "").replace("}}", "")
    holes = rest.count("{}")
    if holes != rest.count("{") or holes != rest.count("}"):
        trace.fail("a place for a value in the text of print is `{}`, without a name or a form; a brace is `{{` or `}}`", ValueError)
    if not holes:
        text += " {}" * len(values)
    elif holes != len(values):
        trace.fail(f"the text of print has {holes} `{{}}`, but {len(values)} {'value is' if len(values) == 1 else 'values are'} given", ValueError)
    trace.use_lanes(*values)
    trace.add("print", word(text), *(_per_lane(trace, value, "print") for value in values), result=False)


def device_assert(condition, message: str = "assertion failed") -> None:
    """Ends the launch with the message where the condition is false."""
    trace = current("device_assert")
    trace.use_lanes(condition)
    trace.add("assert", word(_text(trace, message, "device_assert")), _per_lane(trace, condition, "device_assert"), result=False)


def _text(trace, text, what: str) -> str:
    if not isinstance(text, str):
        trace.fail(f"the text of {what} is a str, not {'a traced value' if isinstance(text, Value) else _kind(text)}", TypeError)
    return text


def static_assert(condition, message: str = "static assertion failed") -> None:
    """Checks what is known at compile time."""
    trace = current("static_assert")
    if not unwrap(condition):
        trace.fail(message, LoweringError)


def static_print(*values) -> None:
    """Prints while the kernel is compiled."""
    import builtins

    if not (is_recording() and current("static_print").is_repeated):
        builtins.print(*(unwrap(value) for value in values))


def cdiv(a, b):
    """a / b, rounded up."""
    if isinstance(a, constexpr) and isinstance(b, constexpr):
        return constexpr(cdiv(a.value, b.value))
    return (a + b - 1) // b


def next_power_of_2(n):
    """The smallest power of two that is not below n; 1 for n <= 0."""
    value = unwrap(n)
    if not is_number(value):
        message = f"next_power_of_2 takes a number that is known while the kernel is traced, not {'a traced value' if isinstance(value, Value) else _kind(value)}"
        if isinstance(value, Value):
            value.trace.fail(f"{message}: compute it at the launch and pass it as a constexpr", TypeError)
        raise TypeError(message)
    power = 1 if value <= 1 else 1 << math.ceil(math.log2(value)) if value < 1 << 48 else 1 << (int(value) - 1).bit_length()
    return constexpr(power) if isinstance(n, constexpr) else power

