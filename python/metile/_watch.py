"""Whether values still hold what they held, told by which objects they hold: several times cheaper than comparing what these are.

Yes is certain. No may be a new object that is equal to the old one: then the values are compared."""
from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable

import numpy as np

_is = operator.is_
_OF_FUNCTION = operator.attrgetter("__code__", "__defaults__", "__kwdefaults__", "__closure__", "__dict__")
_WRAPPERS = {types.MethodType: ("__func__", "__self__"), staticmethod: ("__func__",), classmethod: ("__func__",), property: ("fget", "fset")}
_CONTAINERS = (list, tuple, dict, set, frozenset, str, bytes, bytearray, int, float, complex, np.ndarray, np.generic)


class Unwatched(Exception):
    """It may change without another object being held."""


def _contents(cell: types.CellType) -> tuple:
    return (cell.cell_contents,)


@functools.lru_cache(maxsize=1024)
def _attributes(names: tuple[str, ...]) -> Callable:
    return operator.attrgetter("__class__", *names)  # of two names or more: a tuple


class Watch:
    """`is_leaf` tells what counts as itself, whatever it holds, `bases_of` the classes whose attributes an object of a class has and `slots_of` the
    names of those that it has beside its dict; None: it is no object with a state."""

    def __init__(self, is_leaf: Callable, slots_of: Callable, bases_of: Callable):
        self._is_leaf, self._slots_of, self._bases_of = is_leaf, slots_of, bases_of
        self._parts: list = []  # (function of the object, the object, what it gave)
        self._mappings: list = []
        self._lists: list = []
        self._seen: dict = {}

    def holds(self) -> bool:
        """All is as it was when it was added."""
        try:
            for parts_of, value, parts in self._parts:
                if not all(map(_is, parts_of(value), parts)):
                    return False
        except (AttributeError, KeyError, ValueError):  # there is none any more
            return False
        for mapping, keys, values in self._mappings:
            if len(mapping) != len(keys) or not all(map(_is, mapping.values(), values)) or not all(map(_is, mapping, keys)):
                return False
        for elements, values in self._lists:
            if len(elements) != len(values) or not all(map(_is, elements, values)):
                return False
        return True

    def add_names(self, namespace: dict, names: list[str]) -> None:
        """Of globals. What they are is for the caller to add."""
        self._part(operator.itemgetter(*names, names[0]), namespace)

    def add_cell(self, cell: types.CellType) -> None:
        self._part(_contents, cell)

    def adds(self, value, is_class: bool) -> bool:
        """False: not all of it can be watched, and nothing of it is. `is_class`: what the class holds, not which one it is."""
        before, lengths = dict(self._seen), [len(kept) for kept in (self._parts, self._mappings, self._lists)]
        try:
            if is_class:
                self._add_class(value)
            else:
                self._add(value)
        except Unwatched:
            self._seen = before
            for kept, length in zip((self._parts, self._mappings, self._lists), lengths):
                del kept[length:]  # which would keep alive what is in there
            return False
        return True

    def _add(self, value) -> None:
        kind = type(value)
        if id(value) in self._seen or self._is_leaf(value):
            return
        self._seen[id(value)] = value
        if kind is list:
            self._lists.append((value, tuple(value)))
            self._add_all(value)
        elif kind is tuple:
            self._add_all(value)
        elif kind is dict:
            self._mapping(value)
        elif kind is types.FunctionType:
            _, defaults, keywords, cells, attributes = self._part(_OF_FUNCTION, value)
            self._add_all((defaults, keywords, attributes))
            for cell in cells or ():
                try:
                    self._add_all(self._part(_contents, cell))
                except ValueError:
                    raise Unwatched from None
        elif kind in _WRAPPERS:
            self._add_all(getattr(value, name) for name in _WRAPPERS[kind])
        elif (slots := self._slots_of(value)) is not None and not isinstance(value, _CONTAINERS):
            names = (*slots, "__dict__") if hasattr(value, "__dict__") else (*slots, "__class__")
            self._add_all(self._part(_attributes(names), value)[1:])
            for base in self._bases_of(kind):
                if (base,) not in self._seen:
                    self._seen[base,] = base
                    self._names_of(base.__dict__)
        else:
            raise Unwatched

    def _add_class(self, value: type) -> None:
        self._seen[id(value)] = value
        self._mapping(value.__dict__)

    def _part(self, parts_of: Callable, value) -> tuple:
        parts = parts_of(value)
        self._parts.append((parts_of, value, parts))
        return parts

    def _names_of(self, mapping) -> None:
        self._mappings.append((mapping, tuple(mapping), tuple(mapping.values())))

    def _mapping(self, mapping) -> None:
        self._names_of(mapping)
        self._add_all((*mapping, *mapping.values()))

    def _add_all(self, values) -> None:
        for value in values:
            self._add(value)
