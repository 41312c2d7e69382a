"""What a loop's body may change: the names of its frame, and what those hold.

Numbers and traced values are carried: in names, in elements of lists and tuples, in values of dicts and attributes of objects. Everything else
must be after an iteration what it was before."""
from __future__ import annotations

import copy
import ctypes
import sys
import types

import numpy as np

from ._outside import attributes_of, cell_value, frame_outside, held_state, is_user_object
from ._values import Pointer, Value, is_number


_DEPTH = 8  # of containers in containers


def write_locals(frame, names: dict) -> None:
    frame.f_locals.update(names)
    if sys.version_info < (3, 13):
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


def locals_of(frame) -> dict:
    return {name: value for name, value in frame.f_locals.items() if not name.startswith(".")}


def is_state(value) -> bool:
    return isinstance(value, Value) or is_number(value)


def parts_of(value):
    """(step, part) of a container whose parts may be carried; None: it is none."""
    if isinstance(value, (list, tuple)):
        return list(enumerate(value))
    if type(value) is dict:
        return [(("key", key), part) for key, part in value.items()]
    if is_user_object(value) and not isinstance(value, (Value, Pointer)):
        return [(("attribute", name), part) for name, part in attributes_of(value).items()]
    return None


def places_of(names: dict) -> dict:
    """Leaves by path: a name, then indices, keys and attributes."""
    out: dict = {}
    above: set = set()  # containers that hold the one that is looked at

    def walk(path, value):
        parts = parts_of(value) if len(path) < _DEPTH else None
        if parts is None:
            out[path] = value
        elif id(value) not in above:
            above.add(id(value))
            for step, part in parts:
                walk((*path, step), part)
            above.remove(id(value))

    for name, value in names.items():
        walk((name,), value)
    return out


def replaced(value, path: tuple, symbol):
    """The value with another part at the path: in place, tuples made anew."""
    if not path:
        return symbol
    step = path[0]
    if isinstance(value, tuple):
        part = replaced(value[step], path[1:], symbol)
        elements = (*value[:step], part, *value[step + 1 :])
        return type(value)(*elements) if hasattr(value, "_fields") else elements
    if isinstance(value, list):
        value[step] = replaced(value[step], path[1:], symbol)
    elif step[0] == "key":
        value[step[1]] = replaced(value[step[1]], path[1:], symbol)
    else:
        object.__setattr__(value, step[1], replaced(getattr(value, step[1]), path[1:], symbol))
    return value


def bind(names: dict, symbols: dict) -> None:
    for key, symbol in symbols.items():
        names[key[0]] = replaced(names[key[0]], key[1:], symbol)


def spelled(path: tuple) -> str:
    """`a.b["k"][0]` of a path."""
    return path[0] + "".join(f"[{step}]" if isinstance(step, int) else f"[{step[1]!r}]" if step[0] == "key" else f".{step[1]}" for step in path[1:])


class State:
    """A frame before a loop, with what its names hold: to be put back before each pass over the body, and compared with what a pass left."""

    def __init__(self, frame):
        self.names = locals_of(frame)
        self.places = places_of(self.names)
        self._containers: list = []  # (container, copy of its parts)
        self._others: list = []  # (path, object, fingerprint)
        seen: set = set()
        for name, value in self.names.items():
            self._remember((name,), value, seen)
        self._outside = frame_outside(frame)
        self._globals, self._known = frame.f_globals, frame.f_globals.keys() & frame.f_code.co_names
        self._code_names = frame.f_code.co_names

    def _remember(self, path: tuple, value, seen: set) -> None:
        if id(value) in seen:
            return
        parts = parts_of(value)
        if parts is not None:
            seen.add(id(value))
            if not isinstance(value, tuple):
                self._containers.append((value, list(value) if isinstance(value, list) else dict(value) if isinstance(value, dict) else attributes_of(value)))
            for step, part in parts:
                self._remember((*path, step), part, seen)
        elif isinstance(value, (set, np.ndarray)):
            seen.add(id(value))
            self._containers.append((value, copy.copy(value)))
            self._others.append((path, value, held_state(value)))
        elif isinstance(value, types.FunctionType):
            seen.add(id(value))
            self._others.append((path, value, held_state(value)))
            for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
                if name not in self.names:  # else it is a variable of the frame
                    self._remember((f"{name} of {value.__name__}()",), cell_value(cell), seen)
        elif not is_state(value) and not isinstance(value, Pointer):
            self._others.append((path, value, held_state(value)))

    def restore(self) -> None:
        for container, kept in self._containers:
            if isinstance(container, list):
                container[:] = kept
            elif isinstance(container, dict):
                container.clear()
                container.update(kept)
            elif isinstance(container, set):
                container.clear()
                container |= kept
            elif isinstance(container, np.ndarray):
                if container.flags.writeable:
                    container[...] = kept
            else:
                for name in attributes_of(container).keys() - kept.keys():
                    object.__delattr__(container, name)
                for name, part in kept.items():
                    object.__setattr__(container, name, part)

    def detach(self, rebound: set) -> dict:
        """The names, those in `rebound` holding copies: an iteration makes them anew, and what holds the old ones must not see it."""
        return {name: copy.deepcopy(value, {id(leaf): leaf for leaf in self.places.values()}) if name in rebound else value
                for name, value in self.names.items()}

    def rebound(self, frame) -> set:
        """Names that hold another container than before."""
        return {name for name, value in locals_of(frame).items()
                if name in self.names and value is not self.names[name] and not isinstance(value, tuple) and parts_of(value) is not None}

    def unlike(self, after: dict) -> str | None:
        """What the body changed that cannot be carried, in words."""
        for path, value, before in self._others:
            now = after.get(path, value)
            if now is not value and not is_state(now) and held_state(now) != before:
                return f"`{spelled(path)}` holds another {type(value).__name__}" if type(now) is type(value) else \
                    f"`{spelled(path)}` is {described(value)} before the loop and {described(now)} after an iteration"
            if held_state(value) != before:
                return f"`{spelled(path)}` ({described(value)}) is changed"
        for container, kept in self._containers:
            if isinstance(container, list) and len(container) != len(kept):
                return "a list changes its length"
            if isinstance(container, dict) and container.keys() != kept.keys():
                return f"a dict gains or loses keys: {', '.join(repr(key) for key in container.keys() ^ kept.keys())}"
            if not isinstance(container, (list, dict, set, np.ndarray)) and (names := attributes_of(container).keys() ^ kept.keys()):
                return f"an object of {type(container).__name__} gains or loses the attribute {', '.join(sorted(names))}"
        name = self._outside.changed() or next(iter((self._globals.keys() & self._code_names) - self._known), None)
        return f"`{name}`, which is no variable of the function, is changed" if name else None


def described(value) -> str:
    return "a traced value" if isinstance(value, Value) else f"a {type(value).__name__}"
