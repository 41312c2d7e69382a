"""What a kernel reads from outside: globals, closures, attributes of objects, and the functions it calls.

A trace holds what those were when it was made. Each launch compares them, and another value is another kernel. The names are those in the code
of the function and of the functions, classes and modules that it names, as far as these are not of libraries."""
from __future__ import annotations

import collections
import itertools
import sys
import types
import warnings

import numpy as np

from ._values import Traced, constexpr

_LIBRARIES = {"metile", "vortex", "numpy", "torch", "cupy", "ml_dtypes", *sys.stdlib_module_names} - {"__main__"}
_DEPTH = 8
_ARRAY_BYTES = 1 << 16  # a larger array is compared by identity
_ATOMS = (int, str, bytes, complex, bool, type(None), type(Ellipsis))
_MISSING = object()


def fingerprint(value, depth: int = _DEPTH, closures: bool = True):
    """Something that is equal as long as the value and what it holds are."""
    if isinstance(value, constexpr):
        value = value.value
    if isinstance(value, _ATOMS):
        return type(value), value
    if isinstance(value, (float, np.generic)):
        return type(value), repr(value)
    if depth == 0 or isinstance(value, (Traced, type, types.ModuleType)):
        return id(value)
    if isinstance(value, (list, tuple, collections.deque)):
        return type(value), tuple(fingerprint(element, depth - 1) for element in value)
    if isinstance(value, dict):
        return type(value), tuple((fingerprint(key, depth - 1), fingerprint(element, depth - 1)) for key, element in value.items())
    if isinstance(value, (set, frozenset)):
        return type(value), frozenset(fingerprint(element, depth - 1) for element in value)
    if isinstance(value, np.ndarray):
        return (value.shape, value.dtype.str, value.tobytes()) if value.nbytes <= _ARRAY_BYTES else id(value)
    if isinstance(value, types.FunctionType):
        if not closures:
            return value.__code__
        defaults = fingerprint(value.__defaults__, depth - 1), fingerprint(value.__kwdefaults__, depth - 1)
        return value.__code__, *defaults, tuple(fingerprint(cell_value(cell), 2) for cell in value.__closure__ or ())
    if isinstance(value, types.GeneratorType):
        return id(value), value.gi_frame.f_lasti if value.gi_frame else -1
    if _is_iterator(value):
        return id(value), _state_of(value)
    if is_user_object(value):
        return type(value), fingerprint(attributes_of(value), depth - 1)
    return id(value)


def _is_iterator(value) -> bool:
    if type(value).__module__ not in ("builtins", "itertools") or not hasattr(value, "__next__"):
        return False
    try:
        _state_of(value)
    except TypeError:
        return False
    return True


def _state_of(iterator) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of itertools, since 3.12
        return repr(iterator.__reduce__())


def is_user_object(value) -> bool:
    """An instance of a class that is not of a library: its attributes may be state."""
    return type(value).__module__.partition(".")[0] not in _LIBRARIES | {"builtins", "_vortex"} and not callable(value) or \
        isinstance(value, types.SimpleNamespace)


def attributes_of(value) -> dict:
    """Attributes of an object, those in slots included."""
    out = dict(getattr(value, "__dict__", {}))
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                out[name] = getattr(value, name)
        for name, member in base.__dict__.items():  # what instances begin with
            if isinstance(member, (int, float, np.number)) and not name.startswith("__"):
                out.setdefault(name, member)
    return out


def cell_value(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


class Outside:
    """What some code reads from outside, as it was when this was made."""

    def __init__(self, code: types.CodeType, names: dict, cells=()):
        self._names: dict = {}  # (id of the namespace, name): (namespace, name, value)
        self._cells: list = []
        self._seen: set = set()
        self._classes: dict = {}
        self._code(code, names)
        self._closure(cells)
        self._plain = list(self._names.values())
        held = {id(value): value for _, _, value in self._plain} | {id(value): value for _, value in self._cells} | self._classes
        self._held = [(value, _state(value)) for value in held.values() if not isinstance(value, (*_ATOMS, float, types.ModuleType))]

    def is_current(self) -> bool:
        """Everything still is what it was."""
        for names, name, value in self._plain:
            now = names.get(name, _MISSING)
            if now is not value and (type(now) is not type(value) or isinstance(now, types.FunctionType) or _state(now) != _state(value)):
                return False
        for cell, value in self._cells:
            if (now := cell_value(cell)) is not value and _state(now) != _state(value):
                return False
        for value, state in self._held:
            if _state(value) != state:
                return False
        return True

    def changed(self) -> str | None:
        """A name whose value is not what it was."""
        for names, name, value in self._plain:
            if names.get(name, _MISSING) is not value:
                return name
        states = {id(value): state for value, state in self._held}
        return next((name for _, name, value in self._plain if id(value) in states and _state(value) != states[id(value)]), None)

    def _code(self, code, names: dict) -> None:
        if code in self._seen:
            return
        self._seen.add(code)
        inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
        for name in code.co_names:
            if name in names:
                self._add(names, name, code)
        for nested in inner:
            self._code(nested, names)

    def _closure(self, cells) -> None:
        for cell in cells or ():
            value = cell_value(cell)
            if value is not _MISSING:
                self._cells.append((cell, value))
                self._follow(value)

    def _add(self, names: dict, name: str, code) -> None:
        value = names[name]
        self._names[id(names), name] = names, name, value
        if isinstance(value, types.ModuleType) and not _is_of_library(value.__name__) and (code, value) not in self._seen:
            self._seen.add((code, value))
            for attribute in code.co_names:
                if attribute in value.__dict__:
                    self._add(value.__dict__, attribute, code)
        else:
            self._follow(value)

    def _follow(self, value) -> None:
        """Into functions, what wraps them, as kernels do, and the methods of classes."""
        if not isinstance(value, types.FunctionType) and isinstance(getattr(value, "__dict__", {}).get("__wrapped__"), types.FunctionType):
            value = value.__wrapped__
        if isinstance(value, types.MethodType):
            value = value.__func__
        if isinstance(value, types.FunctionType):
            if not _is_of_library(value.__module__) and value.__code__ not in self._seen:
                self._code(value.__code__, value.__globals__)
                self._closure(value.__closure__)
        elif isinstance(value, type):
            if not _is_of_library(value.__module__) and value not in self._seen:
                self._seen.add(value)
                self._classes[id(value)] = value
                for member in list(value.__dict__.values()):
                    self._follow(getattr(member, "__func__", member) if not isinstance(member, type) else None)
        elif is_user_object(value):
            self._follow(type(value))


def _state(value):
    """Of a class its own attributes that are no functions, of everything else its fingerprint."""
    if isinstance(value, type):
        return tuple((name, fingerprint(member)) for name, member in value.__dict__.items() if not name.startswith("__"))
    return fingerprint(value)


def _is_of_library(module: str | None) -> bool:
    return (module or "").partition(".")[0] in _LIBRARIES


def frame_outside(frame) -> Outside:
    """For the code of a frame: globals and what it reaches through them."""
    return Outside(frame.f_code, frame.f_globals)


