"""Which matrix of its memory a tile lies in: what the pointer of tile_load and tile_store says about that.

A pointer that a program instance moves by R rows points to one of many matrices of R rows, which lie one behind another. Rows before and behind it
are those of its neighbours: they are outside, as rows beyond the buffer are. Moves by one row, and by as many as the tile has, walk within a matrix.
The smallest of several moves tells R; where it does not divide the others, which of them ends the matrix is not known."""
from __future__ import annotations

import dataclasses
import functools

import numpy as np

from ._values import Pointer, Value, is_number, make, operand, quotient, terms_of, unwrap

_MANY = 1 << 40  # rows: as many as the buffer has


@dataclasses.dataclass
class Move:
    """The pointer moves by `rows` whole rows, `elements` elements, `times` times."""

    elements: Value | int
    times: Value
    rows: Value | int

    @property
    def distance(self):
        return self.rows * self.times


def place_of(trace, pointer, row, stride, height: int, rows, what: str, is_written: bool) -> tuple:
    """For a tile of `height` rows: the parameter, the row in the matrix, and the words that say which rows of the parameter the matrix has."""
    if not isinstance(pointer, Pointer) or not hasattr(pointer.base, "matrix"):
        trace.fail(f"{what} takes a pointer that is a parameter of the kernel", TypeError)
    pointer.check(trace)
    stride = unwrap(stride)
    if is_number(stride) and stride <= 0:
        trace.fail(f"{what} of a matrix with rows of {stride} elements: the stride is a positive number", ValueError)
    start, terms = terms_of(0 if pointer.offset is None else unwrap(pointer.offset))
    moves = _moves(trace, terms, stride)
    if rows is not None:
        matrices, walks, count = moves, [], _count(trace, rows, what)
    else:
        matrices, walks = _told_apart(trace, moves, unwrap(row), height, what, is_written)
        count = _rows_of(matrices) if matrices else None
    row, first = sum((move.distance for move in walks), start=row), sum((move.distance for move in matrices), start=0)
    whole_rows = 0
    if moves:
        exact = quotient(start, stride)
        start, whole_rows = (0, exact) if exact is not None else (start % stride, start // stride)
    if count is None:
        row = row + whole_rows
    else:
        first = first + whole_rows
    steps = [move.elements for move in moves if quotient(move.elements, stride) is None]
    many = (whole_rows, *(move.rows for move in _smallest(matrices))) if rows is None and matrices else ()
    base = pointer.base.matrix(trace, start, stride, is_written, pointer.offset is not None, steps, many)
    return base, row, () if count is None else (operand(trace, first, what), operand(trace, count, what))


def _moves(trace, terms: tuple, stride) -> list[Move]:
    together: dict = {}  # of what moves alike
    for factor, times in terms:
        known = together.get(id(times))
        together[id(times)] = (factor if known is None else known[0] + factor, times)
    moves = []
    for factor, times in together.values():
        rows = quotient(factor, stride)
        if rows is None and not isinstance(factor, Value) and not isinstance(stride, Value):
            trace.fail(f"the offset of the pointer of a tile follows from the arguments of the launch by + - * // %, or consists of whole rows: "
                       f"here it moves in steps of {factor} elements, and rows have {stride}")
        rows = factor // stride if rows is None else rows
        if isinstance(rows, Value) or rows != 0:
            moves.append(Move(factor, times, rows))
    return moves


def _told_apart(trace, moves: list[Move], row, height: int, what: str, is_written: bool) -> tuple[list[Move], list[Move]]:
    """Those from one matrix to another, and those within a matrix."""
    matrices, walks = [], []
    for move in moves:
        rows = None if isinstance(move.rows, Value) else abs(move.rows)
        is_aligned = rows == height and not isinstance(row, Value)
        is_small = rows is not None and 1 < rows < height  # or a window that overlaps the next
        if is_small and (is_written or isinstance(row, Value)):
            trace.small_matrices.add(rows)
        elif is_small or is_aligned and row != 0 or rows == 1 < height and is_written and not move.times.is_counter:
            unclear = trace.error(f"{what} of {height} rows{'' if isinstance(row, Value) or row == 0 else f', from {row} on,'} by a pointer that moves by {rows}: how "
                                  f"many rows its matrix has is not known. Say it, `rows=…`, or add the move to `row` instead of the pointer")
            if not is_small:
                raise unclear
            trace.unclear.append((rows, unclear))
        (walks if rows == 1 or is_aligned else matrices).append(move)
    return matrices, walks


def _smallest(moves: list[Move]) -> list[Move]:
    """Without those that are multiples of another: its matrices end theirs."""
    out: list[Move] = []
    for move in moves:
        if any(quotient(move.rows, other.rows) is not None for other in out):
            continue
        out = [other for other in out if quotient(other.rows, move.rows) is None] + [move]
    return out


def _rows_of(moves: list[Move]):
    extents = [_extent(move.rows) for move in _smallest(moves)]
    return functools.reduce(lambda least, extent: make("minimum", least, extent), extents)


def _extent(rows):
    """Pointers that do not move, as along a dimension of stride 0, share one matrix."""
    if not isinstance(rows, Value):
        return abs(rows)
    return rows if rows.is_argument else make("where", make("eq", rows, 0), _MANY, make("abs", rows))


def _count(trace, rows, what: str):
    rows = unwrap(rows)
    if isinstance(rows, Value) and not rows.tile_shape:
        return make("maximum", rows, 0)
    if not is_number(rows) or isinstance(rows, (float, np.floating)) or rows < 0:
        trace.fail(f"the rows of {what} are an integer that is not negative, not {rows!r}", TypeError)
    return int(rows)


def axis_of(trace, name: str, axis) -> int:
    """Of a reduction. A float or a bool is taken for the other one of two values, which Python's `max(a, b)` would compare."""
    axis = unwrap(axis)
    if not isinstance(axis, (int, np.integer)) or isinstance(axis, bool):
        instead = "" if name == "sum" else f": the {'larger' if name == 'max' else 'smaller'} of two values is `metile.{name}imum(a, b)`"
        trace.fail(f"the axis of {name} is an integer, not {'a traced value' if isinstance(axis, Value) else repr(axis)}{instead}", TypeError)
    return int(axis)
