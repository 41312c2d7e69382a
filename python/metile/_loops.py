"""Loops that stay loops. The body is traced, not unrolled: an iterator that watches the names of the frame it is used in.

The first pass runs the body on the values before the loop, only to see which names it rebinds. What it recorded is dropped, those names get
values that stand for "whatever the last iteration left", and the body is traced again; should that find more names, once more."""
from __future__ import annotations

import ctypes
import sys

from ._trace import LoweringError, current, user_frame
from ._values import Pointer, Value, is_number, operand, unwrap


def _write_locals(frame, names: dict) -> None:
    frame.f_locals.update(names)
    if sys.version_info < (3, 13):
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


def _is_state(value) -> bool:
    return isinstance(value, Value) or is_number(value)


class _State:
    """Places in a frame that hold values: names, and elements of the lists and tuples that names hold, by path."""

    def __init__(self, frame):
        self.names = {name: value for name, value in frame.f_locals.items() if not name.startswith(".")}
        self.lists = {id(value): (value, list(value)) for value in _containers(self.names.values()) if isinstance(value, list)}
        self.places = _places(self.names)

    def restore(self) -> None:
        for target, elements in self.lists.values():
            target[:] = elements


def _containers(values):
    for value in values:
        if isinstance(value, (list, tuple)):
            yield value
            yield from _containers(value)


def _places(names: dict) -> dict:
    out = {}

    def walk(path, value):
        if isinstance(value, (list, tuple)):
            for index, element in enumerate(value):
                walk((*path, index), element)
        else:
            out[path] = value

    for name, value in names.items():
        if not name.startswith("."):
            walk((name,), value)
    return out


def _replaced(value, path: tuple, symbol):
    """The value with another element at the path: lists change in place, tuples are made anew."""
    if not path:
        return symbol
    element = _replaced(value[path[0]], path[1:], symbol)
    if isinstance(value, list):
        value[path[0]] = element
        return value
    return (*value[: path[0]], element, *value[path[0] + 1 :])


def _bind(names: dict, symbols: dict) -> None:
    for key, symbol in symbols.items():
        names[key[0]] = _replaced(names[key[0]], key[1:], symbol)


def _differ(before, after) -> bool:
    if before is after:
        return False
    return not (is_number(before) and is_number(after) and type(before) is type(after) and before == after)


class tile_range:
    """for i in tile_range(start, end, step): range() whose bounds may be traced values; names that the body rebinds are carried."""

    def __init__(self, start, end=None, step=1, num_stages=1):
        trace = current("tile_range")
        if end is None:
            start, end = 0, start
        step = unwrap(step)
        if not is_number(step) or int(step) != step:
            trace.fail("the step of tile_range is a number known at compile time", TypeError)
        if step <= 0:
            trace.fail(f"the step of tile_range is {step}: it counts upwards", ValueError)
        self.trace, self.step = trace, int(step)
        self.bounds = [operand(trace, bound, "tile_range") for bound in (start, end)]
        self.frame = None

    def __iter__(self):
        trace = self.trace
        frame = user_frame()
        place = trace.sources.position(frame)
        before = _State(frame)
        mark = len(trace.lines)
        carried: dict = {}
        trace.open_loops.append(place)
        while True:
            del trace.lines[mark:]
            before.restore()
            symbols = {key: self._carry(before.places[key], shape, place) for key, shape in carried.items()}
            names = dict(before.names)
            _bind(names, symbols)
            _write_locals(frame, names)
            counter = Value(trace, trace.new_id())
            head = len(trace.lines)
            trace.lines.append(f"{self._head(counter)}{place}")
            yield counter
            after = _places(frame.f_locals)
            found = self._changed(before, after, symbols)
            if not found.keys() - carried.keys():
                break
            carried.update(found)
        trace.open_loops.pop()
        results = {key: (symbol, after[key]) for key, symbol in symbols.items()}
        results.update(self._escaping(before, after, counter, head, place))
        for symbol, value in results.values():
            symbol.tile_shape = symbol.tile_shape or getattr(value, "tile_shape", None)
            trace.lines.append(f"yield %{symbol.id} {operand(trace, value, 'a loop')}{place}")
        trace.lines.append(f"end{place}")
        self._leave(frame, before, {key: symbol for key, (symbol, _) in results.items()})

    def _head(self, counter: Value) -> str:
        return f"loop %{counter.id} {self.bounds[0]} {self.bounds[1]} i{self.step}"

    def _carry(self, initial, shape, place: str) -> Value:
        symbol = Value(self.trace, self.trace.new_id(), getattr(initial, "tile_shape", None) or shape)
        self.trace.lines.append(f"carry %{symbol.id} {operand(self.trace, initial, 'a loop')}{place}")
        return symbol

    def _changed(self, before: _State, after: dict, symbols: dict) -> dict:
        """Places that were there before the loop and hold something else after an iteration, with the shapes of tiles."""
        found = {}
        for key, previous in before.places.items():
            if key not in after:
                if isinstance(previous, (Value, Pointer)) or is_number(previous):
                    self.trace.fail(f"the list or tuple `{key[0]}` has another length after an iteration", LoweringError)
                continue
            value = after[key]
            if not _differ(symbols.get(key, previous), value):
                continue
            if _is_state(previous) and _is_state(value):
                found[key] = getattr(value, "tile_shape", None)
            elif isinstance(previous, Pointer) or isinstance(value, Pointer):
                self.trace.fail(f"the pointer `{key[0]}` is rebound in the loop: carry the offset instead", LoweringError)
            elif isinstance(previous, Value) or isinstance(value, Value):
                self.trace.fail(f"`{key[0]}` is {_described(previous)} before the loop and {_described(value)} after an iteration", LoweringError)
        for value, elements in before.lists.values():
            if len(value) != len(elements):
                self.trace.fail("a list changes its length in the loop", LoweringError)
        return found

    def _escaping(self, before: _State, after: dict, counter: Value, head: int, place: str) -> dict:
        """Names that the body introduced: after the loop they hold what the last iteration left, 0 where there was none."""
        out = {}
        for key, value in after.items():
            if key in before.places or not isinstance(value, Value) or value.id < counter.id:
                continue
            symbol = Value(self.trace, self.trace.new_id(), value.tile_shape)
            self.trace.lines.insert(head, f"carry %{symbol.id} -{place}")
            out[key] = symbol, value
        return out

    def _leave(self, frame, before: _State, results: dict) -> None:
        names = {name: value for name, value in frame.f_locals.items() if not name.startswith(".")}
        for name in {key[0] for key in results if key in before.places}:
            if isinstance(before.names[name], (list, tuple)):
                names[name] = before.names[name]
        _bind(names, results)
        _write_locals(frame, names)


class persistent_range(tile_range):
    """for i in persistent_range(counter, total): numbers below `total` that all program instances draw from one u32 counter, each once. The
    caller sets the counter to 0 before the launch."""

    def __init__(self, counter, total):
        trace = current("persistent_range")
        if not isinstance(counter, Pointer) or getattr(counter.base, "dtype", None) != "u32" or not hasattr(counter.base, "matrix"):
            trace.fail("persistent_range draws from a parameter that points to u32", TypeError)
        counter.check(trace)
        counter.base.mark_written(trace)
        self.trace = trace
        self.source = counter.base.word(trace), operand(trace, 0 if counter.offset is None else counter.offset, "the counter")
        self.total = operand(trace, total, "persistent_range")

    def _head(self, counter: Value) -> str:
        return f"draw %{counter.id} {self.source[0]} {self.source[1]} {self.total}"


def _described(value) -> str:
    return "a traced value" if isinstance(value, Value) else f"a {type(value).__name__}"
