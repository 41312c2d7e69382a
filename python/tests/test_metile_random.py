"""Random kernels of 32-bit integers (masks, choices, loops with carried state, per-lane bounds, reductions, roles, shared memory), compared with an
evaluator over NumPy arrays that shares no code with the compiler. Integers wrap alike everywhere, so results are equal to the last bit.

METILE_RANDOM_PROGRAMS sets how many programs run (20)."""
import os

import numpy as np
import pytest

import metile

PROGRAMS = int(os.environ.get("METILE_RANDOM_PROGRAMS", "20"))
BINARY = ["add", "sub", "mul", "and", "or", "xor", "max", "min"]


class Lanes:
    """What the evaluator computes with: a value and a flag per lane."""

    def __init__(self, value, valid):
        self.value, self.valid = np.asarray(value, np.int32), np.asarray(valid, bool)


class Reference:
    """The meaning of the language, lane by lane."""

    def __init__(self, lanes: int, data: np.ndarray):
        self.lanes, self.data, self.rows = lanes, data, []

    def number(self, value):
        return Lanes(np.full(self.lanes, value), np.ones(self.lanes))

    def lane(self):
        return Lanes(np.arange(self.lanes), np.ones(self.lanes))

    def binary(self, name, a, b):
        with np.errstate(over="ignore"):
            functions = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
                         "max": np.maximum, "min": np.minimum}
            return Lanes(functions[name](a.value, b.value), a.valid & b.valid)

    def where(self, a, b, x, y):
        chosen = a.value < b.value
        return Lanes(np.where(chosen, x.value, y.value), a.valid & b.valid & np.where(chosen, x.valid, y.valid))

    def load(self, offset, mask):
        at = offset.value & 63
        if mask is None:
            return Lanes(self.data[at], offset.valid)
        a, b = mask
        on = a.value < b.value
        return Lanes(np.where(on, self.data[at], 0), offset.valid & a.valid & b.valid & on)

    def total(self, name, x):
        if not x.valid.any():
            value = {"sum": 0, "max": np.iinfo(np.int32).min, "min": np.iinfo(np.int32).max}[name]
        else:
            chosen = x.value[x.valid].astype(np.int64)
            value = {"sum": chosen.sum(), "max": chosen.max(), "min": chosen.min()}[name]
        return self.number(np.int64(value).astype(np.int32))

    def exchange(self, x, distance):
        """Through shared memory: the value of the lane `distance` further, 0 for what is invalid."""
        return Lanes(np.roll(x.value, -distance), np.ones(self.lanes))

    def loop(self, count, per_lane, state, body):
        state = [Lanes(value.value.copy(), value.valid.copy()) for value in state]
        starts = np.arange(self.lanes) % 3 if per_lane else np.zeros(self.lanes, np.int64)
        for i in range(count):
            runs = starts <= i
            fresh = body(self.number(i), state)
            for k, value in enumerate(fresh):
                takes = runs & value.valid
                old = state[k]
                state[k] = Lanes(np.where(takes, value.value, old.value), np.where(runs, old.valid | value.valid, old.valid))
        return state

    def store(self, x):
        self.rows.append(x.value)

    def role(self):
        return _Nothing()


class _Nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


class Traced:
    """The same operations as kernel code."""

    def __init__(self, lanes: int, X, Out):
        self.lanes, self.X, self.Out, self.count = lanes, X, Out, 0

    def number(self, value):
        return metile.scalar(value)

    def lane(self):
        return metile.cast(metile.arange(0, self.lanes), "i32")

    def binary(self, name, a, b):
        return {"add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b, "and": lambda: a & b, "or": lambda: a | b, "xor": lambda: a ^ b,
                "max": lambda: metile.maximum(a, b), "min": lambda: metile.minimum(a, b)}[name]()

    def where(self, a, b, x, y):
        return metile.where(a < b, x, y)

    def load(self, offset, mask):
        return metile.load(self.X + (offset & 63), mask=None if mask is None else mask[0] < mask[1])

    def total(self, name, x):
        return getattr(metile, name)(x)

    def exchange(self, x, distance):
        memory, lane = metile.shared(self.lanes, "i32"), metile.thread_id()
        metile.barrier()
        metile.store(memory + lane, x)
        metile.barrier()
        return metile.load(memory + (lane + distance) % self.lanes)

    def loop(self, count, per_lane, state, body):
        state = list(state)
        start = metile.thread_id() % 3 if per_lane else 0
        for i in metile.tile_range(start, count):
            state[:] = body(metile.cast(i, "i32"), state)
        return state

    def store(self, x):
        metile.store(self.Out + self.count * self.lanes + metile.arange(0, self.lanes), x)
        self.count += 1

    def role(self):
        return metile.simdgroup_role(0, 2)


class Program:
    """A random program: run(machine) performs it on either machine, with the same choices every time."""

    def __init__(self, seed: int):
        self.seed = seed
        self.lanes = int(np.random.default_rng(seed).choice([1, 7, 32, 48, 64, 96]))

    def run(self, machine) -> None:
        self.random = np.random.default_rng([self.seed, 1])
        values = [machine.lane(), machine.number(int(self.random.integers(-9, 9)))]
        for _ in range(int(self.random.integers(4, 9))):
            with machine.role() if self.random.random() < 0.2 else _Nothing():
                values.append(self._statement(machine, values))
        for value in values:
            machine.store(value)

    def _pick(self, values):
        return values[int(self.random.integers(len(values)))]

    def _expression(self, machine, values):
        kind = self.random.random()
        if kind < 0.55:
            return machine.binary(BINARY[int(self.random.integers(len(BINARY)))], self._pick(values), self._pick(values))
        if kind < 0.75:
            return machine.where(*(self._pick(values) for _ in range(4)))
        if kind < 0.95:
            mask = self._mask(machine, values, self.lanes + 2) if self.random.random() < 0.7 else None
            return machine.load(self._pick(values), mask)
        return machine.number(int(self.random.integers(-99, 99)))

    def _mask(self, machine, values, end):
        """Two sides of `<`: the lane and a number, or any two values, which may be invalid."""
        if self.random.random() < 0.3:
            return self._pick(values), self._pick(values)
        return machine.lane(), machine.number(int(self.random.integers(0, end)))

    def _statement(self, machine, values):
        kind = self.random.random()
        if kind < 0.2:
            value = self._pick(values)
            if self.random.random() < 0.5:  # of what some lanes have not loaded
                loaded = machine.load(value, self._mask(machine, values, self.lanes + 1))
                value = machine.binary("add", loaded, self._pick(values))
            return machine.total(("sum", "max", "min")[int(self.random.integers(3))], value)
        if kind < 0.3:
            return machine.exchange(self._pick(values), int(self.random.integers(0, self.lanes)))
        if kind < 0.6:
            return self._loop(machine, values)
        return self._expression(machine, values)

    def _loop(self, machine, values):
        count, per_lane, seed = int(self.random.integers(0, 6)), self.random.random() < 0.4, int(self.random.integers(1 << 30))
        initial = [self._pick(values) for _ in range(int(self.random.integers(1, 4)))]

        def body(i, state):
            outer, self.random = self.random, np.random.default_rng(seed)  # every iteration is the same code
            known = [*values, i, *state]
            for _ in range(int(self.random.integers(1, 4))):
                known.append(self._expression(machine, known))
            if not per_lane and self.random.random() < 0.3:
                known.append(machine.total("sum", self._pick(known)))
            fresh = [known[-1 - k] if k < len(known) - len(values) else self._pick(known) for k in range(len(state))]
            self.random = outer
            return fresh

        return self._pick(machine.loop(count, per_lane, initial, body))


def check(seed: int) -> None:
    program = Program(seed)
    data = np.random.default_rng([seed, 2]).integers(-1000, 1000, 64).astype(np.int32)
    reference = Reference(program.lanes, data)
    program.run(reference)
    expected = np.array(reference.rows)
    out = np.full_like(expected, 77)

    @metile.kernel
    def kernel(X, Out, BLOCK: metile.constexpr):
        program.run(Traced(program.lanes, X, Out))

    kernel[1](data, out, BLOCK=program.lanes)
    np.testing.assert_array_equal(out, expected, err_msg=f"VORTEX_SEED={seed}")


@pytest.mark.parametrize("interpreted", [False, True], ids=["device", "interpreter"])
def test_random_programs_mean_what_python_means(interpreted, monkeypatch, fresh_seed):
    if interpreted:
        monkeypatch.setenv("METILE_INTERPRET", "1")
    for _ in range(PROGRAMS):
        check(fresh_seed())
