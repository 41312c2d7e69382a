"""Kernels that draw their work from a queue: races are ruled out where each number has its own elements, and found where it has not."""
import warnings

import numpy as np
import pytest

import metile

BLOCK = 32


def work(body, carried=lambda state, x: state):
    """A kernel that draws numbers and calls `body(out, number, lanes, state, total)` for each."""
    @metile.kernel
    def drawn(Counter, Out, TOTAL, N, WIDE: metile.constexpr):
        lanes = metile.arange(0, WIDE)
        state = 0
        for number in metile.persistent_range(Counter, TOTAL):
            body(Out, number, lanes, state, N)
            state = carried(state, number)

    return drawn


def own_rows(out, number, lanes, state, n):
    metile.store(out + number * n + lanes, 1.0 * number, mask=lanes < n)


def grouped(out, number, lanes, state, n):
    metile.store(out + (number // 4 * 4 + number % 4) * n + lanes, 1.0, mask=lanes < n)


def warned(kernel, n=BLOCK, total=7):
    """Warnings of a launch, and what it stored."""
    counter, out = np.zeros(1, np.uint32), np.full(64 * BLOCK, np.nan, np.float32)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        kernel[(5,)](counter, out, total, n, WIDE=BLOCK)
    assert counter[0] == total + 5
    return [str(warning.message) for warning in found], out


@pytest.mark.parametrize("n", [BLOCK, 17])
def test_a_row_for_each_number_is_free(n):
    texts, out = warned(work(own_rows), n)
    assert texts == []
    np.testing.assert_array_equal(out[: 7 * n].reshape(7, n), np.repeat(np.arange(7.0), n).reshape(7, n))
    assert np.isnan(out[7 * n :]).all()


def test_all_lanes_read_a_number_before_the_next_is_drawn(monkeypatch):
    monkeypatch.setenv("METILE_CHECK", "1")
    texts, out = warned(work(own_rows))
    assert texts == [] and not np.isnan(out[: 7 * BLOCK]).any()


def test_what_the_loop_carries_may_be_stored():
    body = lambda out, number, lanes, state, n: metile.store(out + number * n + lanes, 1.0 * state)  # noqa: E731
    texts, out = warned(work(body, lambda state, number: state + 1))
    assert texts == [] and sorted(out[: 7 * BLOCK : BLOCK])[0] == 0


def test_orders_of_numbers_are_free():
    assert warned(work(grouped))[0] == []


@pytest.mark.parametrize("body", [
    lambda out, number, lanes, state, n: metile.store(out + number // 2 * n + lanes, 1.0 * number),
    lambda out, number, lanes, state, n: metile.store(out + number + lanes, 1.0 * number),
    lambda out, number, lanes, state, n: metile.store(out + lanes, 1.0 * number),
    lambda out, number, lanes, state, n: metile.store(out + metile.program_id(0) * n + number % 3 + lanes, 1.0 * number),
], ids=["pairs", "windows", "same", "programs"])
def test_numbers_that_meet_are_a_warning(body):
    assert any("W0631" in text for text in warned(work(body))[0])


@pytest.mark.parametrize("body", [
    lambda out, number, lanes, state, n: metile.store(out + metile.where(state == 0, number, 3) * n + lanes, 1.0 * number),
    lambda out, number, lanes, state, n: metile.store(out + number * n + lanes, 1.0 * number, mask=lanes < state),
], ids=["offset", "mask"])
def test_what_the_loop_carries_may_not_tell_where(body):
    """The first iteration alone would be free."""
    assert any("W0631" in text for text in warned(work(body, lambda state, number: state + 1))[0])


def test_a_counter_that_is_read_otherwise_is_a_warning():
    @metile.kernel
    def reads(Counter, Out, TOTAL, N, WIDE: metile.constexpr):
        for number in metile.persistent_range(Counter, TOTAL):
            metile.store(Out + number * N + metile.arange(0, WIDE), 1.0)
            metile.store(Counter + 0, 0)

    specialised = reads.specialise([("u32", 0), ("f32", 1), "int", "int"], {"WIDE": BLOCK})
    assert specialised.native.ok
    with pytest.warns(UserWarning, match="W0631"):
        specialised.judge({"TOTAL": 7, "N": BLOCK}, (5, 1, 1))
