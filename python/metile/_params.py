"""Arguments of a launch and the parameters that a trace makes of them."""
from __future__ import annotations

import dataclasses
from typing import Any, Callable

import numpy as np

import vortex

from ._values import Pointer, Value, unwrap

DTYPES = {np.dtype(np.float32): "f32", np.dtype(np.float16): "f16", np.dtype(np.int32): "i32", np.dtype(np.uint32): "u32",
          np.dtype(np.uint8): "u8", np.dtype(np.bool_): "bool"}
_WORDS = np.dtype([("bf16", np.uint16)], align=True)  # elements of bf16 where ml_dtypes, which has a type for them, is not imported


def numpy_of(array: vortex.Array, name: str) -> np.ndarray:
    """An array in host memory as NumPy sees it."""
    dtype_named(array.dtype, name)
    if vortex._devices.has_numpy_dtype(array.dtype):
        return array.numpy()
    words = array.device.wrap_memory(array.address, "u16", list(array.shape), list(array.strides), array.read_only, array)
    return words.numpy().view(_WORDS)


def numpy_dtype(dtype) -> np.dtype:
    """The type of elements for a NumPy type or one of the language's names, which mean their own: "u8" is no u64 here."""
    known = dtype if isinstance(dtype, str) and dtype in vortex._devices.DTYPES else None
    return vortex._devices.numpy_dtype(known) if known else np.dtype(dtype)


@dataclasses.dataclass
class Slot:
    """A parameter of the compiled kernel: an argument as it is, or a matrix over its memory."""

    argument: int
    header: str
    rank: int = 0
    stride: Callable | int = 0
    offset: Callable | int = 0
    is_written: bool = False
    columns: str | int = 0  # the stride as the trace names it
    is_moved: bool = False  # by a pointer with an offset
    limit: str = ""  # the argument that says how many rows the matrix has
    tail_of: int | None = None  # the last row of this parameter's memory; of rank 0 the number of rows before it
    steps: list = dataclasses.field(default_factory=list)  # by multiples of these the rows of tiles are moved: they are whole rows
    many: list = dataclasses.field(default_factory=list)  # (row, rows, …): where many matrices begin, and moves from one to another


class Memory:
    """What a pointer parameter points to while the kernel is traced."""

    def __init__(self, argument: int, name: str, dtype: str):
        self.argument, self.name, self.dtype = argument, name, dtype
        self._flat: int | None = None
        self._is_written_by_element = self._is_read_again = False
        self._views: dict = {}

    def word(self, trace) -> str:
        if self._flat is None:
            self._flat = self._add(trace, Slot(self.argument, f"ptr {self._unique(trace)} {self.dtype}", 1))
        return f"p{self._flat}"

    def mark_written(self, trace) -> None:
        self.word(trace)
        trace.params[self._flat].is_written = self._is_written_by_element = True
        self._check_order(trace)

    def is_read_again(self, trace) -> None:
        """For lanes that were loaded and become rows or columns."""
        self._is_read_again = True
        self._check_order(trace)

    def _check_order(self, trace) -> None:
        if self._is_read_again and self._is_written_by_element:
            trace.fail(f"lanes that are loaded from '{self.name}' become rows or columns of a tile, and the kernel writes '{self.name}': load them as a tile, "
                       "`load(pointer + lanes[:, None])`")

    def matrix(self, trace, offset, stride, is_written: bool, is_moved: bool, steps: list, many: tuple) -> str:
        """The memory as rows of `stride` elements from `offset` on; all numbers must follow from the launch's arguments."""
        key = tuple(f"%{value.id}" if isinstance(value, Value) else value for value in (offset, unwrap(stride)))
        if key not in self._views:
            parts = [self._known(trace, stride, "the stride"), 0 if offset is None else self._known(trace, offset, "the offset of the pointer")]
            self._views[key] = self._add(trace, Slot(self.argument, f"ptr {self._unique(trace)} {self.dtype}", 2, *parts, columns=key[1]))
        slot = trace.params[self._views[key]]
        slot.is_written = slot.is_written or is_written
        slot.is_moved = slot.is_moved or is_moved
        slot.steps += [self._known(trace, step, "the step of the pointer") for step in steps]
        if many:
            slot.many.append([self._known(trace, rows, "the offset of the pointer") for rows in many])
        return f"p{self._views[key]}"

    def _unique(self, trace) -> str:
        """The argument's own name for its first parameter, for messages."""
        return f"{self.name}{len(trace.params)}" if self._views or self._flat is not None else self.name

    def _known(self, trace, value, what: str):
        value = unwrap(value)
        if isinstance(value, (int, np.integer)):
            return int(value)
        if isinstance(value, Value) and value.host is not None:
            return value.host
        trace.fail(f"{what} of a tile is a number that follows from the arguments of the launch by + - * // %")

    def _add(self, trace, slot: Slot) -> int:
        trace.params.append(slot)
        return len(trace.params) - 1


class Number:
    """An int or float argument."""

    def __init__(self, argument: int, name: str, kind: str):
        self.argument, self.name, self.kind = argument, name, kind

    def value(self, trace) -> Value:
        trace.params.append(Slot(self.argument, f"{self.kind} {self.name}"))
        number = trace.new_id()
        trace.lines.append(f"%{number} param p{len(trace.params) - 1}{trace.place}")
        name = self.name
        value = Value(trace, number, host=(lambda numbers: numbers[name]) if self.kind == "int" else None)
        value.is_argument = value.is_index = self.kind == "int"
        return value


def header(slot: Slot) -> str:
    return f"{slot.header} {slot.rank} {'w' if slot.is_written else 'r'}" if slot.rank else slot.header


def pointer(trace, memory: Memory) -> Pointer:
    return Pointer(trace, memory)


def dtype_named(known: str, name: str) -> str:
    """The same name, if kernels take such elements."""
    if known not in {*DTYPES.values(), "bf16"}:
        raise TypeError(f"'{name}' has elements of type {known}; kernels take {', '.join(DTYPES.values())}, bf16")
    return known


def dtype_of(array: Any, name: str) -> str:
    """The language's name for the elements of an array."""
    known = DTYPES.get(array.dtype)
    if known is None and (array.dtype.name == "bfloat16" or array.dtype == _WORDS):
        known = "bf16"
    if not array.dtype.isnative:
        raise TypeError(f"'{name}' has elements in the other byte order: array.astype(array.dtype.newbyteorder('=')) has not")
    if known is None:
        raise TypeError(f"'{name}' has elements of type {array.dtype}; kernels take {', '.join(str(dtype) for dtype in DTYPES)}, bfloat16")
    return known
