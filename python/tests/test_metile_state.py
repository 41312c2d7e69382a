"""What loops carry, what they refuse, and what outside a kernel makes it another kernel."""
import argparse
import collections
import ctypes
import dataclasses
import io
import itertools
import queue
import random
import re
import time
import types

import numpy as np
import pytest

import metile

N = 5


class Acc:
    v = 0.0

    def add(self, value):
        self.v = self.v + value


@dataclasses.dataclass(frozen=True)
class Frozen:
    n: float
    tag: str = "x"


class Slots:
    __slots__ = ("n",)


Pair = collections.namedtuple("Pair", "a b")


def run(body, size=10):
    kernel = metile.kernel(body)
    out = np.full(size, np.nan, np.float32)
    kernel[(1,)](np.arange(1, size + 1, dtype=np.float32), out)
    return out


def _object(X, O):
    a = Acc()
    for i in metile.tile_range(0, N):
        a.add(metile.load(X + i))
    metile.store(O + 0, a.v)


def _dict(X, O):
    d = {"n": 0, "inner": {"v": [0.0]}}
    for i in metile.tile_range(0, N):
        d["n"] += 1
        d["inner"]["v"][0] += metile.load(X + i)
    metile.store(O + 0, d["inner"]["v"][0] + d["n"] - N)


def _rebound(X, O):
    first = a = Frozen(0.0)
    for i in metile.tile_range(0, N):
        a = Frozen(a.n + metile.load(X + i))
    metile.store(O + 0, a.n)
    metile.store(O + 1, first.n)


def _rebound_list(X, O):
    first = a = [0.0]
    for i in metile.tile_range(0, N):
        a = [a[0] + metile.load(X + i)]
    metile.store(O + 0, a[0])
    metile.store(O + 1, first[0])


def _named_tuple(X, O):
    p = Pair(0.0, 1.0)
    for i in metile.tile_range(0, N):
        p = Pair(p.a + metile.load(X + i), p.b)
    metile.store(O + 0, p.a * p.b)


def _slots(X, O):
    a = Slots()
    a.n = 0.0
    for i in metile.tile_range(0, N):
        a.n += metile.load(X + i)
    metile.store(O + 0, a.n)


def _namespace(X, O):
    a = types.SimpleNamespace(n=0.0)
    for i in metile.tile_range(0, N):
        a.n += metile.load(X + i)
    metile.store(O + 0, a.n)


def _nonlocal(X, O):
    n = 0.0

    def add(value):
        nonlocal n
        n = n + value

    for i in metile.tile_range(0, N):
        add(metile.load(X + i))
    metile.store(O + 0, n)


def _list_of_helper(X, O):
    a = [0.0]

    def add(i):
        a[0] = a[0] + metile.load(X + i)

    for i in metile.tile_range(0, N):
        add(i)
    metile.store(O + 0, a[0])


def _nested(X, O):
    a = Acc()
    for i in metile.tile_range(0, N):
        for j in metile.tile_range(0, 2):
            a.add(metile.load(X + i) * 0.5)
    metile.store(O + 0, a.v)


@pytest.mark.parametrize("body", [_object, _dict, _rebound, _rebound_list, _named_tuple, _slots, _namespace, _nonlocal, _list_of_helper, _nested],
                         ids=lambda body: body.__name__)
def test_a_loop_carries_numbers_wherever_they_are(body):
    out = run(body)
    assert out[0] == 15
    if body.__name__.startswith("_rebound"):
        assert out[1] == 0  # another name for the old object


TABLE = [0.0]
COUNT = 0


def _loop_of(statement):
    def body(X, O):
        state = {"c": itertools.count(), "s": set(), "l": [], "d": {}, "a": np.zeros(2), "t": "", "o": Frozen(1.0), "q": collections.deque(), "none": None,
                 "x": X, "full": {"a": 1.0, "b": 2.0}, "words": {"a": "x"}, "two": [1.0, 2.0]}
        for i in metile.tile_range(0, N):
            statement(state, i)
            metile.store(O + i, 1.0)

    return body


def _set_global(state, i):
    global COUNT
    COUNT += 1


def _set_tag(state, i):
    state["o"] = Frozen(1.0, state["o"].tag + "y")


@pytest.mark.parametrize("statement, text", [
    (lambda s, i: next(s["c"]), "count"),
    (lambda s, i: s["s"].add(len(s["s"])), "set"),
    (lambda s, i: s["l"].append(i), "length|parts"),
    (lambda s, i: s["d"].update({len(s["d"]): 1}), "keys|parts"),
    (lambda s, i: s["full"].pop("a", None), "is gone"),
    (lambda s, i: s["words"].pop("a", None), "keys: 'a'|is gone"),
    (lambda s, i: s.update(full={"b": 2.0}), "keys|parts|another"),
    (lambda s, i: s["full"].update(c=s["full"].pop("a", 0.0)), "keys|parts"),
    (lambda s, i: s["two"].pop(), "length|parts"),
    (lambda s, i: s["a"].__setitem__(0, s["a"][0] + 1), "ndarray"),
    (lambda s, i: s.update(t=s["t"] + "x"), "another str"),
    (lambda s, i: s.update(none=3), "NoneType before the loop and a int"),
    (lambda s, i: s.update(x=s["x"] + metile.thread_id()), "pointer"),
    (lambda s, i: s["q"].append(1), "deque"),
    (lambda s, i: TABLE.__setitem__(0, TABLE[0] + 1), "TABLE"),
    (_set_global, "COUNT"),
    (_set_tag, "another str"),
])
def test_a_loop_that_changes_anything_else_is_refused_at_its_line(statement, text):
    if statement is _set_global or "TABLE" in text:
        def body(X, O, statement=statement):
            for i in metile.tile_range(0, N):
                TABLE[0] += 1 if "TABLE" in text else 0
                if "COUNT" in text:
                    _set_global(None, i)
                metile.store(O + i, 1.0)

        def kernel(X, O):
            body(X, O)
    else:
        kernel = _loop_of(statement)
    with pytest.raises(metile.LoweringError, match=text) as caught:
        run(kernel)
    assert "for i in metile.tile_range(0, N):" in str(caught.value) and f"{__file__}:" in str(caught.value)


def _comprehension(X, O):
    metile.store(O + 0, sum([metile.load(X + i) for i in metile.tile_range(0, N)]))


def _outer_of_two(X, O):
    metile.store(O + 0, sum([metile.load(X + i) * j for i in metile.tile_range(0, N) for j in (1.0, 2.0)]))


def _set_inside_of_a_loop(X, O):
    for _ in range(2):
        metile.store(O + 0, float(len({1 for i in metile.tile_range(0, N)})))


def _dict_inside_of_a_loop(X, O):
    for j in metile.tile_range(0, N):
        metile.store(O + j, float(len({k: i for k, i in zip((1, 2), [i for i in metile.tile_range(0, N)])})))


def _generator(X, O):
    def numbers():
        for i in metile.tile_range(0, N):
            yield i

    for i in numbers():
        metile.store(O + i, 1.0)


def _enumerate(X, O):
    for n, i in enumerate(metile.tile_range(0, N)):
        metile.store(O + i, n * 1.0)


def _zip(X, O):
    for n, i in zip(range(3), metile.tile_range(0, N)):
        metile.store(O + i, n * 1.0)


def _islice(X, O):
    for i in itertools.islice(metile.tile_range(0, N), 2):
        metile.store(O + i, 1.0)


def _map(X, O):
    for i in map(lambda i: i + 1, metile.tile_range(0, N)):
        metile.store(O + i, 1.0)


def _unpacked(X, O):
    a, b = metile.tile_range(0, 2)
    metile.store(O + a, 1.0)


def _starred(X, O):
    metile.store(O + 0, max(*metile.tile_range(0, 2)))


def _contained(X, O):
    metile.store(O + 0, 1.0 if 3 in metile.tile_range(0, 2) else 2.0)


def _next(X, O):
    metile.store(O + next(iter(metile.tile_range(0, 2))), 1.0)


@pytest.mark.parametrize("body", [_comprehension, _outer_of_two, _set_inside_of_a_loop, _dict_inside_of_a_loop, _generator, _enumerate, _zip, _islice, _map, _unpacked, _starred, _contained, _next], ids=lambda body: body.__name__)
def test_only_a_for_statement_goes_over_tile_range(body):
    with pytest.raises(metile.LoweringError, match="takes the elements of tile_range") as caught:
        run(body)
    assert f"{__file__}:" in str(caught.value)


def _with_comprehensions(X, O):
    for i in metile.tile_range(0, N):
        parts = [metile.load(X + i) * factor for factor in (1.0, 2.0)]
        more = [*parts, sum(value for value in parts)]
        table = {n: value for n, value in enumerate(more)}
        kept = [value for row in [[table[n] for n in (0, 1)], [table[2]]] for value in row]
        metile.store(O + i, sum(kept) + len({1.0 for _ in more}))


def test_comprehensions_in_the_body_of_a_loop_are_the_bodys_own():
    np.testing.assert_allclose(run(_with_comprehensions)[:N], np.arange(1, N + 1) * 6 + 1, rtol=1e-6)


@pytest.mark.parametrize("bounds, step", [((0, 2.5), 1), ((0.0, 4), 1), ((0, np.float32(3)), 1), ((0, 4), 1.0), ((0, 4), 0.5)])
def test_bounds_and_steps_of_loops_are_integers(bounds, step):
    def body(X, O):
        for i in metile.tile_range(*bounds, step):
            metile.store(O + i, 1.0)

    with pytest.raises(TypeError, match="integer"):
        run(body)


def _scaled(value):
    return value * 2.0


FACTOR = 1.0
FACTORS = [1.0]
SETTINGS = {"factor": 1.0}


class Config:
    factor = 1.0


config = Config()
array = np.ones(1, np.float32)


def _times_global(value):
    return value * FACTOR


def _times_default(value, factor=1.0):
    return value * factor


def _times_keyword(value, *, factor=1.0):
    return value * factor


KERNELS = {
    "a helper": lambda X, O: metile.store(O + metile.arange(0, 8), _scaled(metile.load(X + metile.arange(0, 8)))),
    "a global": lambda X, O: metile.store(O + metile.arange(0, 8), metile.load(X + metile.arange(0, 8)) * FACTOR),
    "a global of a helper": lambda X, O: metile.store(O + metile.arange(0, 8), _times_global(metile.load(X + metile.arange(0, 8)))),
    "a default of a helper": lambda X, O: metile.store(O + metile.arange(0, 8), _times_default(metile.load(X + metile.arange(0, 8)))),
    "a default of a helper's keyword": lambda X, O: metile.store(O + metile.arange(0, 8), _times_keyword(metile.load(X + metile.arange(0, 8)))),
    "an element": lambda X, O: metile.store(O + metile.arange(0, 8), metile.load(X + metile.arange(0, 8)) * FACTORS[0]),
    "a value of a dict": lambda X, O: metile.store(O + metile.arange(0, 8), metile.load(X + metile.arange(0, 8)) * SETTINGS["factor"]),
    "an attribute": lambda X, O: metile.store(O + metile.arange(0, 8), metile.load(X + metile.arange(0, 8)) * config.factor),
    "an attribute of a class": lambda X, O: metile.store(O + metile.arange(0, 8), metile.load(X + metile.arange(0, 8)) * Config.factor),
    "an element of an array": lambda X, O: metile.store(O + metile.arange(0, 8), metile.load(X + metile.arange(0, 8)) * float(array[0])),
}


@pytest.mark.parametrize("what", KERNELS)
def test_a_kernel_follows_what_it_reads_from_outside(what, monkeypatch):
    here = globals()
    kernel = metile.kernel(KERNELS[what])

    def value():
        out = np.zeros(8, np.float32)
        kernel[(1,)](np.ones(8, np.float32), out)
        return out[0]

    before = value()
    traces = len(next(iter(kernel._specialised.values())))
    assert value() == before and len(next(iter(kernel._specialised.values()))) == traces  # nothing changed: the same trace
    changes = {"a helper": lambda: monkeypatch.setitem(here, "_scaled", lambda value: value * 7.0),
               "a global": lambda: monkeypatch.setitem(here, "FACTOR", 7.0), "a global of a helper": lambda: monkeypatch.setitem(here, "FACTOR", 7.0),
               "a default of a helper": lambda: monkeypatch.setattr(_times_default, "__defaults__", (7.0,)),
               "a default of a helper's keyword": lambda: monkeypatch.setattr(_times_keyword, "__kwdefaults__", {"factor": 7.0}),
               "an element": lambda: FACTORS.__setitem__(0, 7.0), "a value of a dict": lambda: monkeypatch.setitem(SETTINGS, "factor", 7.0),
               "an attribute": lambda: monkeypatch.setattr(config, "factor", 7.0), "an attribute of a class": lambda: monkeypatch.setattr(Config, "factor", 7.0),
               "an element of an array": lambda: array.__setitem__(0, 7.0)}
    changes[what]()
    assert value() == 7
    FACTORS[0] = array[0] = 1
    monkeypatch.undo()
    assert value() == before


def test_variables_of_closures_are_followed():
    factor, table = 1.0, [1.0]

    @metile.kernel
    def kernel(X, O):
        metile.store(O + metile.arange(0, 8), metile.load(X + metile.arange(0, 8)) * factor * table[0])

    def value():
        out = np.zeros(8, np.float32)
        kernel[(1,)](np.ones(8, np.float32), out)
        return out[0]

    assert value() == 1
    factor = 3.0
    assert value() == 3
    table[0] = 2.0
    assert value() == 6


@metile.kernel
def weighted(X, Y, Out, N, WEIGHTS: metile.constexpr, PAIRS: metile.constexpr, BLOCK: metile.constexpr):
    lane = metile.arange(0, BLOCK)
    totals = [0.0 for _ in WEIGHTS]
    for step in metile.tile_range(0, N):
        for place, (weight, pointer) in enumerate(zip(WEIGHTS, (X, Y))):
            totals[place] = totals[place] + weight * metile.load(pointer + step * BLOCK + lane)
    table = {name: factor for name, factor in PAIRS}
    totals = [total * table[name] for total, (name, _) in zip(totals, reversed(PAIRS))]
    for place, total in enumerate(totals):
        metile.store(Out + place * BLOCK + lane, total + sum(WEIGHTS) + len(PAIRS))


def test_lists_and_tuples_of_constants_are_iterated_as_in_python(random):
    x, y = random.integers(-9, 9, (2, 3, 8)).astype(np.float32)
    for weights, pairs in (([1.0, 2.0], [("a", 3), ["b", 4]]), ((1.0, 2.0), (("a", 3), ("b", 4))), ([2, 5], [("a", 1), ("b", 2)])):
        out = np.full((2, 8), np.nan, np.float32)
        for _ in range(2):
            weighted[(1,)](x, y, out, 3, WEIGHTS=weights, PAIRS=pairs, BLOCK=8)
        factors = [pairs[1][1], pairs[0][1]]
        np.testing.assert_array_equal(out, np.stack([w * v.sum(0) * f for w, v, f in zip(weights, (x, y), factors)]) + sum(weights) + 2)
    weights[0] = 7  # a list is what it is at the launch
    weighted[(1,)](x, y, out, 3, WEIGHTS=weights, PAIRS=pairs, BLOCK=8)
    np.testing.assert_array_equal(out[0], 7 * x.sum(0) * 2 + 12 + 2)


def _zip(O, n):
    z, s = zip([1, 2, 3, 4], [10, 20, 30, 40]), 0
    for i in metile.tile_range(0, n):
        s = s + next(z)[0]
    metile.store(O + 0, s)


def _map(O, n):
    z, s = map(int, "1234"), 0
    for i in metile.tile_range(0, n):
        s = s + next(z)
    metile.store(O + 0, s)


def _flat(O, n):
    z, s = np.arange(1, 9).flat, 0
    for i in metile.tile_range(0, n):
        s = s + int(next(z))
    metile.store(O + 0, s)


def _found(O, n):
    z, s = re.finditer("[0-9]", "1234"), 0
    for i in metile.tile_range(0, n):
        s = s + int(next(z)[0])
    metile.store(O + 0, s)


def _large_array(O, n):
    z = np.zeros(20000)
    for i in metile.tile_range(0, n):
        z[0] += 1
    metile.store(O + 0, float(z[0]))


def _large_bytes(O, n):
    z = bytearray(100000)
    for i in metile.tile_range(0, n):
        z[0] += 1
    metile.store(O + 0, z[0])


def _library_object(O, n):
    z = argparse.Namespace(v=1)
    for i in metile.tile_range(0, n):
        z.v = z.v + 1
    metile.store(O + 0, z.v)


def _c_number(O, n):
    z = ctypes.c_int(1)
    for i in metile.tile_range(0, n):
        z.value += 1
    metile.store(O + 0, z.value)


def _stream(O, n):
    z = io.BytesIO(b"abcd")
    for i in metile.tile_range(0, n):
        metile.store(O + i, z.read(1)[0])


def _queue(O, n):
    z = queue.Queue()
    for i in metile.tile_range(0, n):
        z.put(1)
    metile.store(O + 0, z.qsize())


def _random(O, n):
    for i in metile.tile_range(0, n):
        metile.store(O + i, random.random())


def _random_inside(O, n):
    for i in metile.tile_range(0, n):
        for j in metile.tile_range(0, 2):
            metile.store(O + i, random.random())


@pytest.mark.parametrize("body, message", [
    (_zip, "`z` (a zip) is changed"), (_map, "`z` (a map) is changed"), (_flat, "`z` (a flatiter) is changed"), (_found, "something else each time it is traced"),
    (_large_array, "`z` (a ndarray) is changed"), (_large_bytes, "`z` (a bytearray) is changed"), (_library_object, "`z` (a Namespace) is changed"),
    (_c_number, "`z` (a c_int) is changed"), (_stream, "`z` (a BytesIO) is changed"), (_queue, "`z` (a Queue) is changed"),
    (_random, "something else each time it is traced"), (_random_inside, "something else each time it is traced")], ids=lambda value: getattr(value, "__name__", ""))
def test_what_changes_while_a_loop_is_traced_is_refused(body, message):
    out = np.full(8, -1, np.float32)
    with pytest.raises(metile.LoweringError) as refused:
        metile.kernel(body)[(1,)](out, 4)
    assert message in str(refused.value)
    assert (out == -1).all()


def test_what_a_loop_reads_without_consequences_may_change():
    @metile.kernel
    def timed(O, n):
        total = 0.0
        for i in metile.tile_range(0, n):
            time.time()
            memory = metile.shared(32)
            metile.store(memory + metile.arange(0, 32), i)
            metile.barrier()
            for j in metile.tile_range(0, i):
                total = total + metile.load(memory + j)
            metile.barrier()
        metile.store(O + 0, total)

    out = np.zeros(1, np.float32)
    timed[(1,)](out, 5)
    assert out[0] == sum(i * i for i in range(5))


def test_classes_of_exec_without_a_name_have_state():
    names = {"metile": metile}
    exec("class Z: pass\nz = Z()\nz.w = 1.0\n@metile.kernel\ndef f(O, n):\n    y = Z()\n    y.v = 1\n    for i in metile.tile_range(0, n):\n"
         "        y.v = y.v * 2 + i\n    metile.store(O + 0, y.v)\n    metile.store(O + 1, z.w)\n", names)
    out = np.zeros(2, np.float32)
    names["f"][(1,)](out, 4)
    assert out.tolist() == [27, 1]
    names["z"].w = 3.0
    names["f"][(1,)](out, 4)
    assert out.tolist() == [27, 3]


def test_a_loop_takes_no_turns_with_matrices():
    @metile.kernel
    def turns(A, B, O, N, K):
        which = iter([A, B] * 8)
        acc = metile.zeros((16, 16), "f32")
        for k in metile.tile_range(0, K, 16):
            acc = acc + metile.tile_load(next(which), 0, k, K, (16, 16))
        metile.tile_store(O, 0, 0, N, acc, (16, 16))

    a, b, out = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32), np.full((16, 16), -1, np.float32)
    with pytest.raises(metile.LoweringError, match="`which` .* is changed in the loop"):
        turns[(1,)](a, b, out, 16, 64)
    found = re.finditer("[ab]", "abababab")

    @metile.kernel
    def drawn(A, B, O, N, K):
        acc = metile.zeros((16, 16), "f32")
        for k in metile.tile_range(0, K, 16):
            acc = acc + metile.tile_load(A if next(found)[0] == "a" else B, 0, k, K, (16, 16))
        metile.tile_store(O, 0, 0, N, acc, (16, 16))

    with pytest.raises(metile.LoweringError, match="something else each time it is traced"):
        drawn[(1,)](a, b, out, 16, 64)
    assert (out == -1).all()
