"""What a kernel reads from outside, wherever it is held: another value is another trace, and what is as before is not traced again."""
import abc
import array
import collections
import functools
import types

import numpy as np
import pytest

import metile

VALUE = {"is": 1.0}


class Base:
    factor = 1.0

    def method(self):
        return 1.0

    @property
    def computed(self):
        return VALUE["is"]

    @functools.cached_property
    def other(self):
        return 1.0


class Sub(Base):
    pass


class Named(type):
    @property
    def factor(cls):
        return cls.kept * VALUE["is"]


class Made(metaclass=Named):
    kept = 1.0


class Layer:
    def __init__(self, factor=1.0):
        self.factor = factor

    def __call__(self, x=1.0):
        return x * self.factor

    def forward(self):
        return self.factor


class Many:
    def __init__(self, *layers):
        self.layers = layers

    def __call__(self, x=1.0):
        for layer in self.layers:
            x = layer(x)
        return x


class Inner:
    def __call__(self, x):
        return x * VALUE["is"]


class Numbers(list):
    factor = 1.0


class Callable(dict):
    def __call__(self):
        return self["a"]


def scale(x=1.0):
    return x * scale.factor


scale.factor = 1.0


def wrap(function):
    @functools.wraps(function)
    def wrapped(*args):
        return function(*args) * wrapped.again

    wrapped.again = 1.0
    return wrapped


wrapped = wrap(scale)
layer, sub = Layer(), Sub()
many = Many(Layer(), Layer())
of_others = Many(Inner())
numbers, table = Numbers([1.0]), Callable(a=1.0)
bound, partial = layer.forward, functools.partial(Layer.__call__, layer)
listed = [[{"layer": [Layer()]}]]
in_bytes, in_array = bytearray([1]), array.array("f", [1.0])
view, chain = memoryview(in_bytes), types.MappingProxyType(VALUE)
queue = collections.deque([Layer()])
cyclic = types.SimpleNamespace(factor=1.0)
cyclic.children = [types.SimpleNamespace(parent=cyclic, factor=1.0) for _ in range(20)]
cyclic.children[-1].table = [cyclic.children, cyclic]


def _set(thing, name):
    return lambda value: setattr(thing, name, value)


def _set_item(thing, key, of=float):
    return lambda value: thing.__setitem__(key, of(value))


SOURCES = {
    "a callable object": (lambda: layer(), _set(layer, "factor")),
    "an attribute of a callable object": (lambda: layer.factor, _set(layer, "factor")),
    "an object in another": (lambda: many(), _set(many.layers[1], "factor")),
    "what a method of an object in another reads": (lambda: of_others(), _set_item(VALUE, "is")),
    "an object in containers": (lambda: listed[0][0]["layer"][0](), _set(listed[0][0]["layer"][0], "factor")),
    "an object in a queue": (lambda: queue[0](), _set(queue[0], "factor")),
    "an object in a cycle": (lambda: cyclic.children[3].parent.children[19].factor, _set(cyclic.children[19], "factor")),
    "an attribute of a function": (lambda: scale(), _set(scale, "factor")),
    "an attribute of a wrapper": (lambda: wrapped(), _set(wrapped, "again")),
    "an attribute of what is wrapped": (lambda: wrapped(), _set(scale, "factor")),
    "an attribute of a base class": (lambda: Sub.factor, _set(Base, "factor")),
    "an attribute of a base class, of an instance": (lambda: sub.factor, _set(Base, "factor")),
    "a method of a base class": (lambda: sub.method(), lambda value: setattr(Base, "method", lambda self: value)),
    "a method of a class": (lambda: layer(), lambda value: setattr(Layer, "__call__", lambda self, x=1.0: x * value)),
    "a property": (lambda: sub.computed, lambda value: setattr(Base, "computed", property(lambda self: value))),
    "what a property reads": (lambda: sub.computed, _set_item(VALUE, "is")),
    "what a property of a metaclass reads": (lambda: Made.factor, _set_item(VALUE, "is")),
    "an attribute that a property of a metaclass reads": (lambda: Made.factor, _set(Made, "kept")),
    "a bound method": (lambda: bound(), _set(layer, "factor")),
    "a function with bound arguments": (lambda: partial(), _set(layer, "factor")),
    "an attribute of a list": (lambda: numbers.factor, _set(numbers, "factor")),
    "a callable dict": (lambda: table(), _set_item(table, "a")),
    "bytes": (lambda: float(in_bytes[0]), _set_item(in_bytes, 0, int)),
    "a view of bytes": (lambda: float(view[0]), _set_item(in_bytes, 0, int)),
    "an array of Python's": (lambda: in_array[0], _set_item(in_array, 0)),
    "a proxy": (lambda: chain["is"], _set_item(VALUE, "is")),
}


@pytest.mark.parametrize("what", SOURCES)
def test_a_change_is_seen_by_the_next_launch(what):
    read, change = SOURCES[what]

    @metile.kernel
    def kernel(Out, BLOCK: metile.constexpr):
        metile.store(Out + metile.arange(0, BLOCK), read() * 1.0)

    kept = Base.method, Base.computed, Layer.__call__
    try:
        for value in (1.0, 2.0, 3.0, 1.0):
            change(value)
            for _ in range(2):
                out = np.zeros(4, np.float32)
                kernel[1](out, BLOCK=4)
                assert out.tolist() == [value] * 4
        traces = len(next(iter(kernel._specialised.values())))
        kernel[1](out, BLOCK=4)
        assert len(next(iter(kernel._specialised.values()))) == traces
    finally:
        change(1.0)
        Base.method, Base.computed, Layer.__call__ = kept


def test_a_loop_carries_attributes_of_callable_objects():
    class Total:
        value = 0.0

        def __call__(self, x):
            self.value = self.value + x

    @metile.kernel
    def kernel(X, Out):
        total = Total()
        for i in metile.tile_range(0, 5):
            total(metile.load(X + i))
        metile.store(Out + 0, total.value)

    out = np.zeros(1, np.float32)
    kernel[1](np.arange(5, dtype=np.float32), out)
    assert out[0] == 10


def test_a_loop_that_changes_an_attribute_of_a_function_is_refused():
    def count():
        count.calls = getattr(count, "calls", 0) + 1
        return 1.0

    @metile.kernel
    def kernel(Out):
        for i in metile.tile_range(0, 5):
            metile.store(Out + i, count())

    with pytest.raises(metile.LoweringError, match="count"):
        kernel[1](np.zeros(5, np.float32))


def test_abstract_classes_are_no_change(recwarn):
    class Shape(abc.ABC):
        side = 2.0

        @abc.abstractmethod
        def area(self):
            ...

    class Square(Shape):
        def area(self):
            return self.side * self.side

    square = Square()

    @metile.kernel
    def kernel(Out, BLOCK: metile.constexpr):
        metile.store(Out + metile.arange(0, BLOCK), square.area() if isinstance(square, Shape) else 0.0)

    out = np.zeros(4, np.float32)
    for _ in range(3):
        kernel[1](out, BLOCK=4)
        isinstance(3, Shape)
    assert out[0] == 4 and len(next(iter(kernel._specialised.values()))) == 1


def _of_closure(module):
    return lambda x: x + module.constant


def _of_attribute(module):
    holder = types.SimpleNamespace(held=module)
    return lambda x: x + holder.held.constant


def _of_default(module):
    def helper(x, held=module):
        return x + held.constant

    return helper


def _of_keyword(module):
    def helper(x, *, held=module):
        return x + held.constant

    return helper


def _of_list(module):
    held = [module]
    return lambda x: x + held[0].constant


def _of_another(module):
    outer = types.ModuleType("outer_module")
    outer.inner = module
    return lambda x: x + outer.inner.constant


def _of_function(module):
    """The module is handed to a function that names the constant."""
    def read(held):
        return held.constant

    held = {"module": module}
    return lambda x: x + read(held["module"])


@pytest.mark.parametrize("helper_of", [_of_closure, _of_attribute, _of_default, _of_keyword, _of_list, _of_another, _of_function])
def test_modules_that_are_values_are_compared(helper_of):
    module = types.ModuleType("some_module")
    module.constant = 1.0
    helper = helper_of(module)

    @metile.kernel
    def kernel(X, Out):
        lanes = metile.arange(0, 8)
        metile.store(Out + lanes, helper(metile.load(X + lanes)))

    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    for constant in (1.0, 2.0, 2.0, 5.0):
        module.constant = constant
        kernel[1](x, out)
        np.testing.assert_array_equal(out, x + np.float32(constant))
    assert len(next(iter(kernel._specialised.values()))) == 3


class Unnamed(type):
    """Its classes say something else than a text as `__module__`, as some written in C do."""
    __module__ = property(lambda cls: types.MemberDescriptorType)


def test_classes_without_a_module_are_followed(where):
    held = Unnamed("held", (), {"factor": 1.0})

    @metile.kernel
    def k(Out):
        metile.store(Out + 0, held.factor)

    out = np.zeros(1, np.float32)
    k[1](out)
    assert out[0] == 1.0
    held.factor = 2.0
    k[1](out)
    assert out[0] == 2.0
