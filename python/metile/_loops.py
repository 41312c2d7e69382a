"""Loops that stay loops. The body is traced, not unrolled: an iterator that watches the names of the frame it is used in.

The first pass runs the body on the values before the loop, only to see which names it rebinds. What it recorded is dropped, those names get
values that stand for "whatever the last iteration left", and the body is traced again; should that find more names, once more."""
from __future__ import annotations

import dis
import functools
import re

import numpy as np

from ._state import State, bind, described, is_state, places_of, locals_of, spelled, write_locals
from ._trace import LoweringError, current, user_frame
from ._lanes import shift_of
from ._values import Pointer, Value, along, is_number, of_lanes, operand, unwrap

_COLLECTS = {"LIST_APPEND", "SET_ADD", "MAP_ADD", "YIELD_VALUE"}


@functools.lru_cache(maxsize=64)
def _instructions(code) -> dict:
    return {instruction.offset: instruction for instruction in dis.get_instructions(code)}


def _instruction(code, offset: int):
    """What runs at a frame's f_lasti: from Python 3.12 on it may point at the caches behind an instruction (FOR_ITER over a generator)."""
    known = _instructions(code)
    while offset >= 0 and offset not in known:
        offset -= 2
    return known.get(offset)


def _is_for(frame) -> bool:
    """The frame is at the head of a loop: no function like enumerate() asks for the iterator."""
    return getattr(_instruction(frame.f_code, frame.f_lasti), "opname", "") == "GET_ITER"


@functools.lru_cache(maxsize=1024)
def _collector(code, offset: int) -> str | None:
    """What gathers the values of the loop whose next element the instruction asks for; None: it is a for statement."""
    known = _instructions(code)
    head = _instruction(code, offset)
    if head is None or not head.opname.startswith("FOR_ITER"):
        return "a function"
    loops = [loop for loop in known.values() if loop.opname.startswith("FOR_ITER")]
    for at, instruction in known.items():
        if not head.offset <= at < head.argval or instruction.opname not in _COLLECTS:
            continue
        if instruction.opname == "YIELD_VALUE":
            return "a generator"
        # From Python 3.12 on comprehensions are part of the code around them. The list lies below the iterators of the comprehension's own loops.
        around = sorted((loop.offset for loop in loops if loop.offset <= at < loop.argval), reverse=True)
        if head.offset in around[: instruction.arg - 1]:
            return "a comprehension"
    return None


_NUMBER = re.compile(r"(?<!\S)([%tp])(\d+)")  # of a value, of a tile in shared memory, of a parameter


class _Numbers:
    """Values and parameters that the trace has made so far."""

    def __init__(self, trace):
        self.values, self.params = trace.count, len(trace.params)

    def relative(self, trace, mark: int, dropped: _Numbers) -> list:
        """The lines from `mark` on, and parameters, that a pass made which began here, with all numbers told from that begin. What was made since `dropped`
        is of an earlier pass, which a name that this pass has not reached still holds: it is all alike."""

        def told(found) -> str:
            number = int(found[2])
            first, old = (self.params, dropped.params) if found[1] == "p" else (self.values, dropped.values)
            return found[0] if number < old else f"{found[1]}+{number - first}" if number >= first else f"{found[1]}-"

        params = [f"{slot.argument} {slot.rank} {slot.columns} {slot.stride if isinstance(slot.stride, int) else ''} "
                  f"{slot.offset if isinstance(slot.offset, int) else ''}" for slot in trace.params[self.params :]]
        return [_NUMBER.sub(told, line) for line in (*trace.lines[mark:], *params)]


def _differ(before, after) -> bool:
    if before is after:
        return False
    return not (is_number(before) and is_number(after) and type(before) is type(after) and before == after)


class tile_range:
    """for i in tile_range(start, end, step): range() of which all three may be traced values; names that the body rebinds are carried."""

    def __init__(self, start, end=None, step=1, num_stages=1):
        trace = current("tile_range")
        if end is None:
            start, end = 0, start
        for bound in (start, end, step):
            what = "the step of tile_range is an integer" if bound is step else "the bounds of tile_range are integers"
            if isinstance(unwrap(bound), (float, np.floating)):
                trace.fail(f"{what}, not {unwrap(bound)!r}", TypeError)
            if getattr(bound, "tile_shape", None):
                trace.fail(f"{what}, not a 2-D tile", TypeError)
        if is_number(step) and unwrap(step) == 0:
            trace.fail("the step of tile_range is 0", ValueError)
        trace.use_lanes(start, end, step)
        self.limits = start, end, step
        self.trace = trace
        self.bounds = [operand(trace, bound, "tile_range") for bound in (start, end, step)]
        trace.ranges.append(tuple(bound.host if isinstance(bound, Value) else unwrap(bound) for bound in (start, end, step)))
        self.frame = None

    def __iter__(self):
        if not _is_for(user_frame()):
            self._refuse("a function")
        return self._passes()

    def _refuse(self, who: str):
        self.trace.fail(f"{who} takes the elements of tile_range, which has one body for all of them: write `for i in metile.tile_range(…):`")

    def _passes(self):
        trace = self.trace
        frame = user_frame()
        if (collector := _collector(frame.f_code, frame.f_lasti)) is not None:
            self._refuse(collector)
        place = trace.sources.position(frame)
        before = State(frame)
        mark, shared_bytes, terms = len(trace.lines), trace.shared_bytes, trace.terms
        carried: dict = {}
        shifted: set = set()  # of these what is added to them is carried
        rebound: set = set()
        is_outermost, traced, begin = not trace.open_loops, None, _Numbers(trace)
        trace.open_loops.append(place)
        while True:
            del trace.lines[mark:]
            trace.shared_bytes, trace.terms = shared_bytes, dict(terms)
            before.restore()
            names = before.detach(rebound)
            own, bound_before = _Numbers(trace), set(locals_of(frame))
            sums = {key: self._carry(0, 0, place) if key in shifted else self._carry(before.places[key], value, place) for key, value in carried.items()}
            for key in shifted & sums.keys():
                sums[key].is_index = isinstance(before.places[key], Value)  # a sum of indices, which starts from 0
            counter = of_lanes(Value(trace, trace.new_id()), *self.limits)
            counter.is_counter = counter.is_index = True
            head = len(trace.lines)
            trace.lines.append(f"{self._head(counter)}{place}")
            symbols = self._shifted(before, sums, shifted)
            bind(names, symbols)
            write_locals(frame, names)
            yield counter
            after = places_of(locals_of(frame))
            found = self._changed(before, after, symbols, place)
            again = before.rebound(frame) - rebound
            steps = {key: shift_of(symbols.get(key, before.places[key]), value) for key, value in found.items()}
            otherwise = {key for key in found if key in shifted and steps[key] is None}
            for key in otherwise:
                if isinstance(found[key], Pointer):
                    self._fail(f"the pointer `{spelled(key)}` is rebound in the loop, not moved by an integer that is the same for all lanes: carry the offset "
                               "instead", place)
            if not found.keys() - carried.keys() and not (again and found) and not otherwise:
                lines = own.relative(trace, mark, begin)
                if not is_outermost or traced is not None and traced[0] == lines:
                    break
                if traced is not None and traced[1] == bound_before:  # else the body's own names were not there before, which inner loops carry
                    self._depends_on_more(traced[0], lines, place)
                traced = lines, bound_before
                trace.is_repeated = True
                continue
            shifted |= {key for key in found.keys() - carried.keys() if steps[key] is not None or isinstance(found[key], Pointer)}
            shifted -= otherwise
            carried.update(found)
            rebound |= again
        trace.open_loops.pop()
        trace.is_repeated = trace.is_repeated and not is_outermost
        trace.terms = terms
        results = {key: (total, total + steps.get(key, 0) if key in shifted else after[key]) for key, total in sums.items()}
        trace.use_lanes(*(value for _, value in results.values()))
        results.update(self._escaping(before, after, counter, head, place))  # which have lanes where something uses them
        for key, (symbol, value) in results.items():
            shape = getattr(value, "tile_shape", None)
            if symbol.tile_shape and shape and any(extent not in (1, whole) for extent, whole in zip(shape, symbol.tile_shape)):
                self._fail(f"`{spelled(key)}` is a tile of {symbol.tile_shape} before the loop and of {shape} after an iteration", place)
            symbol.tile_shape = symbol.tile_shape or shape
            trace.lines.append(f"yield %{symbol.id} {operand(trace, value, 'a loop')}{place}")
        trace.lines.append(f"end{place}")
        left = {key: symbol for key, (symbol, _) in results.items()}
        self._leave(frame, names, before, left | self._shifted(before, {key: left[key] for key in sums}, shifted))

    def _head(self, counter: Value) -> str:
        return f"loop %{counter.id} {' '.join(self.bounds)}"

    @staticmethod
    def _shifted(before: State, sums: dict, shifted: set) -> dict:
        """What the names hold: for those that are shifted what they held before the loop, and the sum."""
        out = dict(sums)
        for key in shifted & sums.keys():
            initial = before.places[key]
            out[key] = initial + sums[key]
        return out

    def _carry(self, initial, after, place: str) -> Value:
        shape = getattr(initial, "tile_shape", None) or getattr(after, "tile_shape", None)
        if getattr(after, "is_vector", False) and getattr(initial, "extent", None) is not None and not initial.tile_shape:
            initial = along(initial, shape)
        symbol = of_lanes(Value(self.trace, self.trace.new_id(), shape), initial, after)
        self.trace.lines.append(f"carry %{symbol.id} {operand(self.trace, initial, 'a loop')}{place}")
        return symbol

    def _changed(self, before: State, after: dict, symbols: dict, place: str) -> dict:
        """Places that were there before the loop and hold something else after an iteration, with the shapes of tiles."""
        found = {}
        for key, previous in before.places.items():
            if key not in after:
                if isinstance(previous, Pointer) or is_state(previous):
                    self._fail(f"`{key[0]}` has other parts after an iteration than before the loop: `{spelled(key)}` is gone", place)
                continue
            value = after[key]
            if not _differ(symbols.get(key, previous), value):
                continue
            if is_state(previous) and is_state(value):
                found[key] = value
            elif isinstance(previous, Pointer) and isinstance(value, Pointer) and previous.base is value.base:
                found[key] = value
            elif isinstance(previous, Pointer) or isinstance(value, Pointer):
                self._fail(f"the pointer `{spelled(key)}` is rebound in the loop: carry the offset instead", place)
            elif is_state(previous) or is_state(value):
                self._fail(f"`{spelled(key)}` is {described(previous)} before the loop and {described(value)} after an iteration", place)
        roots = {key[0] for key in before.places}
        for key, value in after.items():
            if len(key) > 1 and key[0] in roots and key not in before.places and key[0] in before.names and is_state(value):
                self._fail(f"`{key[0]}` has other parts after an iteration than before the loop: `{spelled(key)}` is new", place)
        if (what := before.unlike(after)) is not None:
            self._fail(f"{what} in the loop. Numbers and traced values are carried from one iteration to the next, in names, lists, tuples, dicts and "
                       "attributes of objects; everything else must stay as it is", place)
        return found

    def _depends_on_more(self, first: list, second: list, place: str):
        """Of a body that was traced twice from the same state, with another outcome: what it reads changes while it is traced."""
        other = next((line for line, before in zip(second, first) if line != before), (second + first)[min(len(first), len(second))])
        at = " @" + other.rpartition(" @")[2] if " @" in other else place
        self._fail("the body of the loop computes something else each time it is traced: what it takes from an iterator, a file, random numbers, the time or "
                   "another object changes, and a loop has one body for all its iterations. Compute that before the loop, or unroll the loop with Python's range",
                   at)

    def _fail(self, message: str, place: str):
        raise LoweringError(message + self.trace.sources.excerpt(place))

    def _escaping(self, before: State, after: dict, counter: Value, head: int, place: str) -> dict:
        """Names that the body introduced: after the loop they hold what the last iteration left, 0 where there was none."""
        out = {}
        for key, value in after.items():
            if key in before.places or not isinstance(value, Value) or value.id < counter.id:
                continue
            symbol = of_lanes(Value(self.trace, self.trace.new_id(), value.tile_shape), value)
            self.trace.lines.insert(head, f"carry %{symbol.id} -{place}")
            out[key] = symbol, value
        return out

    def _leave(self, frame, bound: dict, before: State, results: dict) -> None:
        names = locals_of(frame)
        names.update({key[0]: bound[key[0]] for key in results if key in before.places})
        bind(names, results)
        write_locals(frame, names)


class persistent_range(tile_range):
    """for i in persistent_range(counter, total): numbers below `total` that all program instances draw from one u32 counter, each once. The
    caller sets the counter to 0 before the launch."""

    def __init__(self, counter, total):
        trace = current("persistent_range")
        if not isinstance(counter, Pointer) or getattr(counter.base, "dtype", None) != "u32" or not hasattr(counter.base, "matrix"):
            trace.fail("persistent_range draws from a parameter that points to u32", TypeError)
        counter.check(trace)
        counter.base.mark_written(trace)
        self.trace, self.limits = trace, ()
        self.source = counter.base.word(trace), operand(trace, 0 if counter.offset is None else counter.offset, "the counter")
        self.total = operand(trace, total, "persistent_range")

    def _head(self, counter: Value) -> str:
        return f"draw %{counter.id} {self.source[0]} {self.source[1]} {self.total}"

