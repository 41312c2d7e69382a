"""Lanes as rows and columns of tiles, and tiles of addresses.

`arange(0, N)[:, None]` is a tile of one column. A vector remembers how it was computed from its positions, and is computed once more for those of the
tile. A tile of addresses is computed element by element: the lanes of the block share its elements, and what they load goes through shared memory."""
from __future__ import annotations

import copy

import numpy as np

from ._trace import LANES, LoweringError, OutOfResources, word
from ._values import Pointer, Value, common_shape, make, of_lanes, operand, unwrap

_MOST_STAGED = 1 << 20  # bytes of one tile
_WHOLE = slice(None)
_MANY = 1024  # elements, of which each lane has one or more


def subscript(value: Value, index) -> Value | None:
    """value[:, None] and value[None, :]; None: another subscript."""
    if not isinstance(index, tuple) or len(index) != 2 or not any(part is None for part in index) or not any(isinstance(part, slice) and part == _WHOLE for part in index):
        return None
    axis = 0 if index[1] is None else 1
    if value.tile_shape is None:
        return spread(value, axis)
    if 1 not in value.tile_shape:
        value.trace.fail(f"a tile of {value.tile_shape} is no vector", TypeError)
    if value.tile_shape[1 - axis] != 1:
        return value.T
    value = copy.copy(value)
    value.is_vector = False
    return value


def spread(vector: Value, axis: int) -> Value:
    """The vector as a tile of one column (axis 0), or of one row."""
    trace, extent = vector.trace, vector.extent
    if extent is None or not _is_computed(vector, {}):
        trace.fail("rows and columns of tiles are made of arange, and of what is computed from it; not of numbers of lanes (thread_id), of atomics, of what "
                   "lanes exchange or of what a loop carries otherwise than by adding an integer", TypeError)
    trace.has_spread = True
    shape = (extent, 1) if axis == 0 else (1, extent)

    def positions() -> Value:
        return Value(trace, trace.add("positions", f"i{axis}", f"i{extent}"), shape)

    tile = _computed(trace, vector, positions, {}, axis)
    tile.recipe, tile.is_index = ("spread", vector, axis), vector.is_index
    return tile


def _parts(value: Value) -> list[Value]:
    return [part for part in map(unwrap, value.recipe[1:]) if isinstance(part, Value)]


def _is_computed(value, known: dict) -> bool:
    """Each element of the vector or the tile follows from its position."""
    if not isinstance(value, Value) or (value.tile_shape is None and value.extent is None and not value.varies):
        return True
    if id(value) not in known:
        known[id(value)] = value.recipe is not None and all(_is_computed(part, known) for part in _parts(value))
    return known[id(value)]


def zeros_of_lanes(trace, extent: int, dtype: str) -> Value:
    value = _zeros(trace, None, dtype)
    value.recipe, value.extent = ("zeros", dtype), extent
    return value


def _zeros(trace, shape: tuple | None, dtype: str) -> Value:
    words = ("scalar", "i0") if shape is None else ("zeros", *(f"i{extent}" for extent in shape))
    return Value(trace, trace.add(*words, word(dtype)), shape)


def _computed(trace, value, position, known: dict, axis: int | None = None, is_inside=None):
    """The vector anew: at one position, where that is inside, or as a tile along an axis."""
    value = unwrap(value)
    if not isinstance(value, Value) or value.extent is None:
        return value
    if id(value) not in known:
        operation, *operands = value.recipe
        if operation == "position":
            made = position()
        elif operation == "zeros":
            made = _zeros(trace, None if axis is None else (value.extent, 1) if axis == 0 else (1, value.extent), operands[0])
        elif operation == "load":
            base, offset, mask = operands
            base.is_read_again(trace)
            if axis is not None:
                columns = [spread(part, axis) if isinstance(part, Value) and part.extent is not None else part for part in (offset, mask)]
                made = gather(trace, base, *columns, None)
            else:
                offset, mask = (_computed(trace, part, position, known, None, is_inside) for part in (offset, mask))
                made = _loaded(trace, base, offset, _both(mask, is_inside))
        else:
            made = _again(trace, operation, [_computed(trace, part, position, known, axis, is_inside) for part in operands])
        known[id(value)] = made
    return known[id(value)]


def _again(trace, operation: str, operands: list) -> Value:
    if operation != "cast":
        return make(operation, *operands)
    return Value(trace, trace.add("cast", operand(trace, operands[0], "cast"), word(operands[1])), getattr(operands[0], "tile_shape", None))


def _both(mask, is_inside):
    return mask if is_inside is None else is_inside if mask is None else make("and", mask, is_inside)


def _loaded(trace, base, offset, mask) -> Value:
    return Value(trace, trace.add("load", base.word(trace), operand(trace, offset, "an offset"), _mask(trace, mask)))


def _mask(trace, mask) -> str:
    return "-" if mask is None else operand(trace, mask, "a mask")


class _Element:
    """One element of tiles, in a loop over all of them."""

    def __init__(self, trace, number: Value, shape: tuple):
        self.trace, self.number, self.shape, self.place = trace, number, shape, (number // shape[1], number % shape[1])
        count = shape[0] * shape[1]
        self.is_inside = number < count if count < _MANY else None
        self.known: dict = {}
        self.vectors: tuple = ({}, {}, {})  # along rows, along columns, at position 0

    def mask(self, mask):
        """Where the element is there, and the mask holds."""
        return _both(None if mask is None else self.of(mask), self.is_inside)

    def of(self, value, is_turned: bool = False):
        value = unwrap(value)
        if not isinstance(value, Value) or value.tile_shape is None:
            return value
        key = id(value), is_turned
        if key not in self.known:
            self.known[key] = self._made(value, is_turned)
        return self.known[key]

    def _made(self, value: Value, is_turned: bool):
        operation, *operands = value.recipe
        if operation == "spread":
            vector, axis = operands
            along = 2 if vector.extent == 1 else axis ^ is_turned
            return _computed(self.trace, vector, lambda: 0 if along == 2 else self.place[along], self.vectors[along], None, self.is_inside)
        if operation == "transpose":
            return self.of(operands[0], not is_turned)
        if operation == "staged":
            memory, (rows, columns) = operands
            row, column = self.place[::-1] if is_turned else self.place
            is_same = (rows, columns) == self.shape and not is_turned
            at = self.number if is_same else (row if rows > 1 else 0) * columns + (column if columns > 1 else 0)
            return Value(self.trace, self.trace.add("load", memory, operand(self.trace, at, "an offset"), _mask(self.trace, self.is_inside)))
        return _again(self.trace, operation, [self.of(part, is_turned) for part in operands])


def _shared_tile(trace, shape: tuple, dtype: str) -> str:
    nbytes = shape[0] * shape[1] * {"u8": 1, "bool": 1, "f16": 2, "bf16": 2}.get(dtype, 4)
    if nbytes > _MOST_STAGED:
        trace.fail(f"{nbytes} bytes of threadgroup memory for a tile of addresses of {shape}; one has at most {_MOST_STAGED}", OutOfResources)
    trace.shared_bytes += nbytes
    return f"t{trace.add('shared', f'i{shape[0] * shape[1]}', word(dtype), f'i{shape[1]}', word(''))}"


def _barrier(trace) -> None:
    trace.add("barrier", result=False)


def _staged(trace, value, shape: tuple, dtype: str):
    """The value, with elements that can be taken one by one."""
    value = unwrap(value)
    if isinstance(value, Value) and value.extent is not None:
        value = spread(value, 1)
    if not isinstance(value, Value) or value.tile_shape is None and not value.varies or value.tile_shape and _is_computed(value, {}):
        return value
    if value.tile_shape is None:
        trace.fail("a value of each lane beside a tile of addresses: make it a row or a column, `value[:, None]`", TypeError)
    memory = _shared_tile(trace, shape, dtype)
    _barrier(trace)
    trace.add("tile_store", memory, "i0", "i0", operand(trace, value, "store"), f"i{shape[0]}", f"i{shape[1]}", result=False)
    _barrier(trace)
    out = Value(trace, value.id, shape)
    out.recipe = ("staged", memory, shape)
    return out


def _elements(trace, shape: tuple, body) -> None:
    """Calls body with each element, which the lanes share."""
    trace.has_tiles = True
    lane, number, count = Value(trace, trace.add("tid")), Value(trace, trace.new_id()), shape[0] * shape[1]
    end = f"i{count}#" if count < _MANY else f"i{count}"  # one round for all lanes, which race proofs follow: few elements under a condition
    trace.lines.append(f"loop %{number.id} %{lane.id} {end} {LANES}{trace.here()}")
    body(_Element(trace, number, shape))
    trace.lines.append(f"end{trace.here()}")


def is_tile_of_addresses(pointer, value=None) -> bool:
    """A value that is a row or a column beside addresses of lanes makes these one, too."""
    if not isinstance(pointer, Pointer) or not isinstance(pointer.offset, Value):
        return False
    if pointer.offset.tile_shape is not None:
        return True
    shape = getattr(value, "tile_shape", None)
    return bool(shape) and pointer.offset.extent is not None and 1 in shape and max(shape) == pointer.offset.extent


def _along(value, like):
    """Addresses and masks of lanes beside a row or a column."""
    if isinstance(value, Value) and value.extent is not None:
        return spread(value, 0 if getattr(like, "tile_shape", None) and like.tile_shape[1] == 1 else 1)
    return value


def _check_addresses(trace, base, offset: Value, what: str) -> None:
    if not hasattr(base, "matrix"):
        trace.fail(f"{what} takes a pointer that is a parameter of the kernel with a 2-D tile of offsets", TypeError)
    if not _is_computed(offset, {}):
        trace.fail(f"{what} by a tile of addresses that is not computed from arange, arguments and what is loaded with such: no offset is a tile of "
                   "tile_load, a product, or what a loop carries otherwise than by adding an integer", LoweringError)


def _shape(trace, what: str, *parts) -> tuple:
    shapes = {part.tile_shape for part in parts if isinstance(part, Value) and part.tile_shape}
    return common_shape(trace, what, shapes) if len(shapes) > 1 else next(iter(shapes))


def gather(trace, base, offset: Value, mask, other) -> Value:
    """The elements at a tile of offsets, 0 or `other` where the mask is off."""
    _check_addresses(trace, base, offset, "load")
    shape = _shape(trace, "load", offset, mask, other)
    mask = None if mask is None else _staged(trace, mask, shape, "bool")
    other = 0 if other is None else _staged(trace, other, shape, base.dtype)
    memory = _shared_tile(trace, shape, base.dtype)

    def body(element: _Element) -> None:
        here = element.mask(mask)
        value = _loaded(trace, base, element.of(offset), here)
        if mask is not None:
            value = make("where", here, value, element.of(other))
        trace.add("store", memory, operand(trace, element.number, "store"), operand(trace, value, "store"), _mask(trace, element.is_inside), result=False)

    _barrier(trace)
    _elements(trace, shape, body)
    _barrier(trace)
    tile = Value(trace, trace.add("tile_load", memory, "i0", "i0", f"i{shape[0]}", f"i{shape[1]}"), shape)
    tile.recipe = ("staged", memory, shape)
    return of_lanes(tile)


def scatter(trace, operation: str, pointer: Pointer, value, mask) -> None:
    """Stores or adds at a tile of offsets."""
    base, offset = pointer.base, _along(pointer.offset, value)
    mask = _along(mask, value) if pointer.offset is not offset else mask
    _check_addresses(trace, base, offset, operation)
    base.mark_written(trace)
    shape = _shape(trace, operation, offset, mask, value)
    value = _staged(trace, value, shape, base.dtype)
    mask = None if mask is None else _staged(trace, mask, shape, "bool")

    def body(element: _Element) -> None:
        words = [operand(trace, element.of(part), operation) for part in (offset, value)]
        trace.add(operation, base.word(trace), *words, _mask(trace, element.mask(mask)), result=operation != "store")

    _barrier(trace)  # a later store or load of the same elements comes after, whichever lane does it
    _elements(trace, shape, body)
    _barrier(trace)


def shift_of(before, after):
    """The integer that was added to a pointer, a vector of indices or a tile of them; None: something else was done."""
    is_pointer = isinstance(before, Pointer)
    if is_pointer:
        if not isinstance(after, Pointer) or after.base is not before.base:
            return None
        before, after = before.offset, after.offset
        if before is None:
            return after if _is_alike(after) else None
    elif not isinstance(before, Value) or before.extent is None and before.tile_shape is None or not before.is_index or not _is_computed(before, {}):
        return None
    total = 0
    while after is not before:
        if not isinstance(after, Value) or after.recipe is None or after.recipe[0] not in ("add", "sub"):
            return None
        operation, left, right = after.recipe
        after, added = (right, left) if right is before and operation == "add" or _is_alike(left) and left is not before and operation == "add" else (left, right)
        if not _is_alike(added) or not _is_index(added) and not (is_pointer and isinstance(added, Value) and isinstance(before, Value)):
            return None
        total = total - added if operation == "sub" else total + added
    return total


def _is_index(value) -> bool:
    return value.is_index if isinstance(value, Value) else isinstance(unwrap(value), (int, np.integer))


def _is_alike(value) -> bool:
    """For all lanes."""
    return not isinstance(value, Value) or value.extent is None and value.tile_shape is None and not value.varies
