"""What a kernel reads from outside: globals, closures, attributes of objects, and the functions it calls.

A trace holds what those were when it was made. Each launch compares them, and another value is another kernel. The names are those in the code
of the function and of the functions, classes and modules that it names, as far as these are not of libraries."""
from __future__ import annotations

import array
import builtins
import collections
import functools
import itertools
import sys
import types
import warnings
import weakref

import numpy as np

from ._values import Traced, constexpr
from ._watch import Unwatched, Watch

_LIBRARIES = {"metile", "vortex", "numpy", "torch", "cupy", "ml_dtypes", *sys.stdlib_module_names} - {"__main__"}
_OF_PYTHON = {"builtins", *sys.stdlib_module_names} - {"__main__"}
_NO_STATE = {*_LIBRARIES, "builtins", "_vortex", "_vortex_compiler"}
_DEPTH = 8
_ARRAY_BYTES = 1 << 16  # a larger array is compared by identity
_ATOMS = (int, str, bytes, complex, bool, type(None), type(Ellipsis))
_ATOM_KINDS = frozenset(_ATOMS)
_MOST_WATCHES = 16  # of one trace, whose names keep getting new objects that are equal
_MISSING = object()
_IS_MADE_BY_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE


class _Itself:
    """A thing of which only is compared which one it is. It is not kept alive, if Python allows that: another may have its `id` later."""

    __slots__ = ("_hash", "_ref")

    def __init__(self, value):
        self._hash = id(value)
        try:
            self._ref = weakref.ref(value)
        except TypeError:
            self._ref = lambda: value

    def __eq__(self, other):
        return isinstance(other, _Itself) and (value := self._ref()) is not None and value is other._ref()

    def __hash__(self):
        return self._hash


def fingerprint(value, depth: int = _DEPTH, closures: bool = True):
    """Something that is equal as long as the value and what it holds are."""
    return _fingerprint(value, depth, closures, {})


def _fingerprint(value, depth: int, closures: bool, seen: dict):
    """`seen`: containers and objects by id, with their number and the depth at which they were looked at."""
    if type(value) in _ATOM_KINDS:
        return type(value), value
    if type(value) is float:
        return float, repr(value)
    if isinstance(value, constexpr):
        value = value.value
    if isinstance(value, (*_ATOMS, float, np.generic)):
        own = repr(value) if isinstance(value, (float, np.generic)) else value
        return (type(value), own, tuple((name, repr(part)) for name, part in attributes_of(value).items())) if is_user_object(value) else (type(value), own)
    if depth == 0 or isinstance(value, (Traced, type, types.ModuleType)):
        return _Itself(value)
    if isinstance(value, np.ndarray):
        return (value.shape, value.dtype.str, value.tobytes()) if value.nbytes <= _ARRAY_BYTES else _Itself(value)
    if isinstance(value, (bytearray, memoryview, array.array)):
        return (type(value), bytes(value)) if memoryview(value).nbytes <= _ARRAY_BYTES else _Itself(value)
    known = seen.get(id(value))
    if known is not None and known[1] >= depth:
        return "again", known[0]
    seen[id(value)] = (known or (len(seen),))[0], depth

    def of(part, most=_DEPTH):
        kind = type(part)
        if kind in _ATOM_KINDS:  # as the first lines do, without a call
            return kind, part
        return _fingerprint(part, min(most, depth - 1), True, seen)

    if isinstance(value, types.GeneratorType):
        return _Itself(value), value.gi_frame.f_lasti if value.gi_frame else -1
    if isinstance(value, np.flatiter):
        return _Itself(value), value.index
    if _is_iterator(value):
        return _Itself(value), of(_reduced(value))
    if not closures and isinstance(value, types.FunctionType):
        return value.__code__, of(value.__dict__)
    parts = [_elements_of(value, of)]
    attributes = value.__dict__ if isinstance(value, types.FunctionType) else attributes_of(value) if is_user_object(value) else ()
    if attributes:
        parts.append(tuple([(name, of(part)) for name, part in attributes.items()]))
    return (type(value), *parts) if parts != [None] or is_user_object(value) else _Itself(value)


def _elements_of(value, of):
    """What a value of Python's own types holds."""
    if isinstance(value, (list, tuple, collections.deque)):
        return tuple(map(of, value))
    if isinstance(value, (dict, types.MappingProxyType)):
        return tuple((of(key), of(element)) for key, element in value.items())
    if isinstance(value, (set, frozenset)):
        return frozenset(map(of, value))
    if isinstance(value, types.FunctionType):
        cells = tuple(of(cell_value(cell), 2) for cell in value.__closure__ or ())
        return value.__code__, of(value.__defaults__), of(value.__kwdefaults__), cells
    held = _held_by(value)
    return held and tuple(map(of, held))


def _held_by(value) -> tuple | None:
    """What Python's own callables and descriptors are made of."""
    if isinstance(value, types.MethodType):
        return value.__func__, value.__self__
    if isinstance(value, (functools.partial, functools.partialmethod)):
        return value.func, value.args, value.keywords
    if isinstance(value, property):
        return value.fget, value.fset
    if isinstance(value, (staticmethod, classmethod)):
        return (value.__func__,)
    return (value.func,) if isinstance(value, functools.cached_property) else None


def _is_iterator(value) -> bool:
    if type(value).__module__ not in ("builtins", "itertools") or not hasattr(value, "__next__"):
        return False
    try:
        _reduced(value)
    except TypeError:
        return False
    return True


def _reduced(value):
    """What `copy` and `pickle` make an equal one of. TypeError: they cannot."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of itertools, since 3.12
        return value.__reduce_ex__(4)


def held_state(value):
    """As `fingerprint` of all that a loop's body could change in the value: arrays of any size, and objects of Python's own library."""
    if isinstance(value, np.ndarray):
        return value.shape, value.strides, value.dtype.str, value.flags.writeable, value.tobytes()
    if isinstance(value, (bytearray, memoryview, array.array)):
        return type(value), bytes(value)
    known = fingerprint(value, closures=False)  # of functions the code alone: their variables are looked at one by one
    if isinstance(known, _Itself) and not isinstance(value, (Traced, type, types.ModuleType)) and type(value).__module__.partition(".")[0] in _OF_PYTHON:
        try:
            return known, fingerprint(_reduced(value))
        except Exception:  # whatever a class of the library says of being copied
            return known, fingerprint(getattr(value, "__dict__", None))
    return known


def is_user_object(value) -> bool:
    """An instance of a class that is not of a library: its attributes may be state."""
    return _may_have_state(type(value)) and not isinstance(value, type)


@functools.lru_cache(maxsize=1024)
def _may_have_state(kind: type) -> bool:
    return kind.__module__.partition(".")[0] not in _NO_STATE or _is_of_exec(kind) or issubclass(kind, types.SimpleNamespace)


def _is_of_exec(kind: type) -> bool:
    """Classes that are made where there is no `__name__`, as by `exec`, say that they are Python's own."""
    return kind.__module__ == "builtins" and bool(kind.__flags__ & _IS_MADE_BY_PYTHON) and getattr(builtins, kind.__name__, None) is not kind


@functools.lru_cache(maxsize=1024)
def _bases_by(kind: type, order: tuple) -> tuple:
    return tuple(base for base in order if base.__flags__ & _IS_MADE_BY_PYTHON)


def _changeable_bases(kind: type) -> tuple:
    """Classes that an object's attributes come from, without those that nobody can change, as `object`."""
    return _bases_by(kind, kind.__mro__)


def attributes_of(value) -> dict:
    """Attributes of an object, those in slots included."""
    out = dict(getattr(value, "__dict__", {}))
    for base in _changeable_bases(type(value)):
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                out[name] = getattr(value, name)
        for name, member in base.__dict__.items():  # what instances begin with
            if isinstance(member, (int, float, np.number)) and not name.startswith("__"):
                out.setdefault(name, member)
    return out


def _is_leaf(value) -> bool:
    """Its fingerprint is the value, or which one it is, and it is no array, which would be kept alive."""
    if type(value) in _ATOM_KINDS or isinstance(value, (float, type, types.ModuleType, Traced)):
        return not is_user_object(value)
    if isinstance(value, (*_ATOMS, np.generic)):
        return not is_user_object(value)
    if isinstance(value, (constexpr, np.ndarray, bytearray, memoryview, array.array, types.GeneratorType)) or _is_iterator(value) or is_user_object(value):
        return False
    return _elements_of(value, lambda *_: None) is None


def _slots_of(value) -> tuple | None:
    """Names of attributes that are not in its dict. Unwatched: one has no value."""
    if isinstance(value, constexpr):
        return ()
    if not is_user_object(value):
        return None
    names = []
    for base in _changeable_bases(type(value)):
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__"):
                if not hasattr(value, name):
                    raise Unwatched
                names.append(name)
    return tuple(names)


def cell_value(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


_NONE = type(None), None


def _has_state(function: types.FunctionType, state) -> bool:
    """As `_state(function) == state`, which is slower; most have nothing but their code."""
    if function.__defaults__ is None and function.__kwdefaults__ is None and function.__closure__ is None and not function.__dict__:
        return state == (types.FunctionType, (function.__code__, _NONE, _NONE, ()))
    return _state(function) == state


class Outside:
    """What some code reads from outside, as it was when this was made."""

    def __init__(self, code: types.CodeType, names: dict, cells=()):
        self._names: dict = {}  # (id of the namespace, name): (namespace, name, value)
        self._cells: list = []
        self._seen: set = set()
        self._codes: list = []  # the same, of code alone
        self._classes: dict = {}
        self._followed: dict = {}  # by id
        self._modules: list = []  # that were reached through values
        self._code(code, names)
        self._closure(cells)
        self._read_modules()
        self._plain = list(self._names.values())
        self._followed.clear()
        self._codes.clear()
        held = {id(value): value for _, _, value in self._plain} | {id(value): value for _, value in self._cells} | self._classes
        self._held = [(value, _state(value)) for value in held.values() if not isinstance(value, (*_ATOMS, float, types.ModuleType))]
        self._watches_left = _MOST_WATCHES
        self._watch()

    def is_current(self) -> bool:
        """Everything still is what it was."""
        if self._watched is not None and self._watched.holds():
            for value, state in self._unwatched:
                if _state(value) != state:
                    return False
            return True
        if not self._compare():
            return False
        self._watch()
        return True

    def _watch(self) -> None:
        """What is held now, which is equal to what the trace holds."""
        self._watched, self._unwatched = None, []
        if self._watches_left == 0:
            return
        self._watches_left -= 1
        watched, names_of = Watch(_is_leaf, _slots_of, lambda kind: () if kind is constexpr else _changeable_bases(kind)), {}
        for names, name, _ in self._plain:
            names_of.setdefault(id(names), (names, []))[1].append(name)
        try:
            for names, mine in names_of.values():
                watched.add_names(names, mine)
            for cell, _ in self._cells:
                watched.add_cell(cell)
        except (KeyError, ValueError):
            return
        now = {id(value): value for value in (*(names[name] for names, name, _ in self._plain), *(cell.cell_contents for cell, _ in self._cells))}
        states = {id(value): state for value, state in self._held}
        for value in {**now, **{id(value): value for value, _ in self._held}}.values():
            if not watched.adds(value, isinstance(value, type) and id(value) in states):
                self._unwatched.append((value, states[id(value)] if id(value) in states else _state(value)))
        self._watched = watched

    def _compare(self) -> bool:
        for names, name, value in self._plain:
            now = names.get(name, _MISSING)
            if now is not value and (type(now) is not type(value) or isinstance(now, types.FunctionType) or _state(now) != _state(value)):
                return False
        for cell, value in self._cells:
            if (now := cell_value(cell)) is not value and _state(now) != _state(value):
                return False
        for value, state in self._held:
            if not (_has_state(value, state) if type(value) is types.FunctionType else _state(value) == state):
                return False
        return True

    def changed(self) -> str | None:
        """A name whose value is not what it was."""
        for names, name, value in self._plain:
            if names.get(name, _MISSING) is not value:
                return name
        states = {id(value): state for value, state in self._held}
        named = [(name, value) for _, name, value in self._plain] + [(value.__qualname__, value) for value in self._classes.values()]
        return next((name for name, value in named if id(value) in states and _state(value) != states[id(value)]), None)

    def _code(self, code, names: dict) -> None:
        if code in self._seen:
            return
        self._seen.add(code)
        self._codes.append(code)
        inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
        for name in code.co_names:
            if name in names:
                self._add(names, name, code)
        for nested in inner:
            self._code(nested, names)

    def _read_modules(self) -> None:
        """Nobody tells which code reads a module that is a value: the names of all code are looked up there."""
        looked_at = None
        while (found := (len(self._modules), len(self._codes))) != looked_at:
            looked_at = found
            for module in tuple(self._modules):
                for code in tuple(self._codes):
                    self._module(module, code)

    def _closure(self, cells) -> None:
        for cell in cells or ():
            value = cell_value(cell)
            if value is not _MISSING:
                self._cells.append((cell, value))
                self._follow(value)

    def _add(self, names: dict, name: str, code) -> None:
        value = names[name]
        self._names[id(names), name] = names, name, value
        if isinstance(value, types.ModuleType):
            self._module(value, code)
        else:
            self._follow(value)

    def _module(self, module: types.ModuleType, code) -> None:
        if not _is_of_library(module.__name__) and (code, module) not in self._seen:
            self._seen.add((code, module))
            for attribute in code.co_names:
                if attribute in module.__dict__:
                    self._add(module.__dict__, attribute, code)

    def _follow(self, value, depth: int = _DEPTH) -> None:
        """Into functions, what wraps them, as kernels do, classes with what they inherit, and what objects and containers hold."""
        if depth == 0 or isinstance(value, (*_ATOMS, float, np.generic, np.ndarray, Traced)) or id(value) in self._followed:
            return
        self._followed[id(value)] = value
        if isinstance(value, types.ModuleType):
            self._modules.append(value)
            return
        if not isinstance(value, type):
            attributes = attributes_of(value) if is_user_object(value) else getattr(value, "__dict__", {})
            wrapped = attributes.get("__wrapped__")
            parts = attributes.values() if is_user_object(value) or isinstance(value, types.FunctionType) else (wrapped,)
            for part in (*parts, *_defaults(value), *(_held_by(value) or ()), *_elements(value)):
                self._follow(part, depth - 1)
        if isinstance(value, types.FunctionType):
            if not _is_of_library(value.__module__) and value.__code__ not in self._seen:
                self._code(value.__code__, value.__globals__)
                self._closure(value.__closure__)
        elif isinstance(value, type):
            self._class(value)
        elif is_user_object(value):
            self._class(type(value))

    def _class(self, value: type) -> None:
        for part in (*value.__mro__, *type(value).__mro__):
            if part not in self._seen and not _is_of_library(part.__module__) and (part.__module__ != "builtins" or _is_of_exec(part)):
                self._seen.add(part)
                self._classes[id(part)] = part
                for member in list(part.__dict__.values()):
                    if not isinstance(member, type):
                        self._follow(member)


def _defaults(value) -> tuple:
    return (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()) if isinstance(value, types.FunctionType) else ()


def _elements(value) -> tuple:
    if isinstance(value, (list, tuple, collections.deque, set, frozenset)):
        return tuple(value)
    return (*value.keys(), *value.values()) if isinstance(value, (dict, types.MappingProxyType)) else ()


def _state(value):
    """Of a class its own attributes, of which Python changes some with two underscores itself, of everything else its fingerprint."""
    if isinstance(value, type):
        return tuple((name, fingerprint(member)) for name, member in value.__dict__.items()
                     if not name.startswith("__") or isinstance(member, (types.FunctionType, staticmethod, classmethod, property)))
    return fingerprint(value)


def _is_of_library(module) -> bool:
    """`module`: what something says as `__module__`, which classes written in C may make of anything."""
    return isinstance(module, str) and module.partition(".")[0] in _LIBRARIES


def frame_outside(frame) -> Outside:
    """For the code of a frame: globals and what it reaches through them."""
    return Outside(frame.f_code, frame.f_globals)


