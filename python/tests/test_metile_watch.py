"""What launches compare of the things that kernels read from outside: cheaply while the same objects are there, by value where they are not."""
import array
import collections
import functools
import gc
import types
import weakref

import numpy as np
import pytest

import metile
from metile._outside import Outside


class Slotted:
    __slots__ = ("a", "b", "__dict__")


class Named:
    count = 3

    def method(self, x=(1, [2])):
        return x

    @property
    def area(self):
        return 2

    @staticmethod
    def still(x=1):
        return x


class Other(Named):
    pass


def things() -> types.SimpleNamespace:
    """Names for code to read, each of another kind."""
    named, slotted = Other(), Slotted()
    named.held = [1, (2, [3, {"deep": [4.0]}])]
    slotted.a, slotted.b, slotted.more = 1, [2.5], "text"
    closed = [1, 2]

    def made(x=2.0):
        return closed, x

    def spare(x=2.0):
        return x, closed

    made.attribute = [7]
    return types.SimpleNamespace(named=named, slotted=slotted, made=made, spare=spare, closed=closed, bound=named.method, text="abc", number=2.5, dictionary={"a": 1, "b": [2]},
                                 pairs=[("a", [1]), ("b", [2])], partial=functools.partial(made, 3), queue=collections.deque([1, 2]), chosen={1, 2},
                                 small=np.arange(4.0), in_bytes=bytearray(b"abc"), numbers=array.array("i", [1, 2]), wrapped=metile.constexpr(3), count=iter([1, 2, 3]),
                                 view=types.MappingProxyType({"a": [1]}), nothing=None)


def outside(names: dict) -> Outside:
    body = "def read():\n    return (" + ", ".join(names) + ")\n"
    scope: dict = {}
    exec(body, names, scope)  # noqa: S102
    return Outside(scope["read"].__code__, names)


def _class_attribute(t):
    Named.count += 1


def _new_member(t):
    Named.fresh = getattr(Named, "fresh", 0) + 1


def _method_default(t):
    Named.method.__defaults__[0][1].append(3)


CHANGES = {
    "attribute": lambda t: setattr(t["named"], "extra", 1),
    "deep": lambda t: t["named"].held[1][1][1]["deep"].append(5),
    "deep value": lambda t: t["named"].held[1][1][1]["deep"].__setitem__(0, 4.5),
    "sign of zero": lambda t: t["named"].held[1][1][1]["deep"].__setitem__(0, -0.0),
    "dict of an object": lambda t: setattr(t["named"], "__dict__", {"held": 1}),
    "class of an object": lambda t: setattr(t["named"], "__class__", Named),
    "slot": lambda t: setattr(t["slotted"], "a", 2),
    "in a slot": lambda t: t["slotted"].b.append(1),
    "missing slot": lambda t: delattr(t["slotted"], "a"),
    "beside slots": lambda t: setattr(t["slotted"], "more", "other"),
    "closure": lambda t: t["closed"].append(3),
    "cell": lambda t: setattr(t["made"].__closure__[0], "cell_contents", [1]),
    "empty cell": lambda t: delattr(t["made"].__closure__[0], "cell_contents"),
    "default": lambda t: setattr(t["made"], "__defaults__", (3.0,)),
    "keyword default": lambda t: setattr(t["made"], "__kwdefaults__", {"q": 1}),
    "code": lambda t: setattr(t["made"], "__code__", t["spare"].__code__),
    "attribute of a function": lambda t: t["made"].attribute.append(8),
    "name": lambda t: t.__setitem__("text", "abd"),
    "number": lambda t: t.__setitem__("number", 2.25),
    "type of a number": lambda t: t.__setitem__("number", np.float64(2.5)),
    "gone": lambda t: t.pop("number"),
    "renamed key": lambda t: t.__setitem__("dictionary", {"a": 1, "c": t["dictionary"]["b"]}),
    "key in place": lambda t: t["dictionary"].__setitem__("c", t["dictionary"].pop("b")),
    "order of keys": lambda t: t["dictionary"].__setitem__("a", t["dictionary"].pop("a")),
    "in a dict": lambda t: t["dictionary"]["b"].append(1),
    "in a tuple": lambda t: t["pairs"][1][1].append(1),
    "shorter": lambda t: t["pairs"].pop(),
    "partial": lambda t: t["partial"].__setstate__((t["made"], (4,), {}, {})),
    "queue": lambda t: t["queue"].append(3),
    "set": lambda t: t["chosen"].add(3),
    "elements": lambda t: t["small"].__setitem__(2, 9),
    "bytes": lambda t: t["in_bytes"].append(1),
    "array": lambda t: t["numbers"].append(1),
    "constexpr": lambda t: setattr(t["wrapped"], "value", 4),
    "iterator": lambda t: next(t["count"]),
    "view": lambda t: t["view"]["a"].append(2),
    "class attribute": _class_attribute, "new member": _new_member, "default of a method": _method_default,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_is_seen(change):
    names = vars(things())
    made = outside(names)
    for _ in range(3):
        assert made.is_current()
    change(names)
    assert not made.is_current() and not made._compare()


EQUAL = {
    "text": lambda t: t.__setitem__("text", "".join(["a", "bc"])),
    "number": lambda t: t.__setitem__("number", float("2.5")),
    "dict": lambda t: t.__setitem__("dictionary", {"a": 1, "b": [2]}),
    "list": lambda t: t["named"].__dict__.__setitem__("held", [1, (2, [3, {"deep": [4.0]}])]),
    "attribute": lambda t: setattr(t["slotted"], "b", [float("2.5")]),
    "elements": lambda t: t.__setitem__("small", np.arange(4.0)),
}


@pytest.mark.parametrize("change", EQUAL.values(), ids=EQUAL)
def test_equal_objects_are_no_change_and_are_watched_from_then_on(change):
    names = vars(things())
    made = outside(names)
    change(names)
    assert made.is_current() and made._watched is not None and made._watched.holds()
    for _ in range(30):
        change(names)
        assert made.is_current()
    names["named"].held.append(5)
    assert not made.is_current()


def test_large_arrays_are_not_kept_alive():
    names = {"held": types.SimpleNamespace(table=[np.zeros(1 << 20)])}
    made = outside(names)
    assert made.is_current()
    alive = weakref.ref(names["held"].table[0])
    names["held"].table[0] = None
    gc.collect()
    assert alive() is None and not made.is_current()
