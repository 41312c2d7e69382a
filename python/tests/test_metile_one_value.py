"""Stores of one value by several lanes: no race, and the value is there."""
import warnings

import numpy as np
import pytest

import metile


@metile.kernel
def halves(Out, BLOCK: metile.constexpr):
    metile.store(Out + metile.thread_id() // 2, 3.5)


@metile.kernel
def shared_halves(Out, BLOCK: metile.constexpr):
    lane = metile.thread_id()
    cells = metile.shared(BLOCK)
    metile.store(cells + lane // 2, -2.0)
    metile.barrier()
    metile.store(Out + metile.program_id(0) * BLOCK + lane, metile.load(cells + lane // 4))


@metile.kernel
def argument(Out, value, BLOCK: metile.constexpr):
    metile.store(Out + metile.thread_id() % 8, value * 2)


@metile.kernel
def flag(X, Out, BLOCK: metile.constexpr):
    found = metile.load(X + metile.program_id(0) * BLOCK + metile.thread_id()) > 0.0
    metile.store(Out + 0, 1, mask=found)


@metile.kernel
def marks(Which, Out, BLOCK: metile.constexpr):
    metile.store(Out + metile.load(Which + metile.program_id(0) * BLOCK + metile.thread_id()), 1)


@metile.kernel
def instances(Out, BLOCK: metile.constexpr):
    metile.store(Out + metile.program_id(0) // 2, 7)


@metile.kernel
def sums(X, Out, BLOCK: metile.constexpr):
    lane, first = metile.arange(0, BLOCK), metile.program_id(0) * BLOCK
    metile.store(Out + first + lane // 4, metile.sum(metile.load(X + first + lane)))


@metile.kernel
def sums_of_all(X, Out, BLOCK: metile.constexpr):
    lane = metile.arange(0, BLOCK)
    metile.store(Out + lane // 4, metile.sum(metile.load(X + metile.program_id(0) * BLOCK + lane)))


@metile.kernel
def two_values(Out, BLOCK: metile.constexpr):
    metile.store(Out + metile.thread_id() // 2, 1.0)
    metile.store(Out + (metile.thread_id() + 1) // 2, 2.0)


@metile.kernel
def read_too(Out, BLOCK: metile.constexpr):
    lane = metile.thread_id()
    metile.store(Out + lane // 2, 1.0)
    metile.store(Out + BLOCK + lane, metile.load(Out + lane + 1))


@metile.kernel
def counters(Out, BLOCK: metile.constexpr):
    for i in metile.tile_range(0, 3):
        metile.store(Out + (metile.thread_id() + i) // 2, i)


@metile.kernel
def counted(Out, BLOCK: metile.constexpr):
    metile.store(Out + metile.thread_id() // 2, 1.0)
    metile.atomic_add(Out + metile.thread_id(), 1.0)


@pytest.fixture(params=["device", "interpreter", "checked"])
def silently(request, monkeypatch):
    """Launches make no warnings."""
    if request.param != "device":
        monkeypatch.setenv("METILE_INTERPRET" if request.param == "interpreter" else "METILE_CHECK", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_constants_and_arguments_are_stored_by_all_lanes_and_instances(silently, random):
    out = np.zeros(64, np.float32)
    halves[3](out, BLOCK=64)
    np.testing.assert_array_equal(out, np.where(np.arange(64) < 32, np.float32(3.5), 0))
    shared = np.zeros(64, np.float32)
    shared_halves[2](shared, BLOCK=32)
    np.testing.assert_array_equal(shared, -2)
    number = int(random.integers(-1000, 1000))
    whole = np.full(16, 5, np.int32)
    argument[4](whole, number, BLOCK=50)
    np.testing.assert_array_equal(whole, np.where(np.arange(16) < 8, 2 * number, 5))
    for dtype in (np.int32, np.uint8, np.float16):
        grid = np.zeros(8, dtype)
        instances[7](grid, BLOCK=32)
        np.testing.assert_array_equal(grid, [7, 7, 7, 7, 0, 0, 0, 0])


def test_flags_and_marks_follow_the_data(silently, random):
    x = np.where(random.random(256) < 0.02, 1, -1).astype(np.float32)
    for data in (x, -np.ones_like(x), np.ones_like(x)):
        out = np.zeros(1, np.int32)
        flag[4](data, out, BLOCK=64)
        assert out[0] == (data > 0).any()
    which, out = random.integers(0, 100, 256).astype(np.int32), np.zeros(100, np.uint32)
    marks[4](which, out, BLOCK=64)
    np.testing.assert_array_equal(out, np.isin(np.arange(100), which))


def test_what_an_instance_computed_is_stored_by_its_lanes(silently, random):
    x = random.integers(-50, 50, 256).astype(np.float32)
    out = np.zeros(256, np.float32)
    sums[4](x, out, BLOCK=64)
    expected = np.zeros((4, 64), np.float32)
    expected[:, :16] = x.reshape(4, 64).sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(out.reshape(4, 64), expected)
    out[:] = 0
    sums_of_all[1](x, out, BLOCK=256)
    np.testing.assert_array_equal(out, np.where(np.arange(256) < 64, x.sum(), 0))


@pytest.mark.parametrize("kernel, kinds, grid", [(sums_of_all, "xo", 2), (two_values, "o", 1), (read_too, "o", 1), (counters, "o", 1), (counted, "o", 1)],
                         ids=lambda value: getattr(value, "name", None))
def test_stores_that_leave_what_the_order_says_are_races(kernel, kinds, grid):
    with pytest.raises(metile.LoweringError, match="E0630"):
        metile.kernel(kernel.fn)[grid](*[np.zeros(256, np.float32) for _ in kinds], BLOCK=64)
