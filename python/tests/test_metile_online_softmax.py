"""Sums of exponentials that are collected while the maximum is found: the same results as in passes of their own, and only where they are the same sum."""
import contextlib
import os

import numpy as np
import pytest
from conftest import ROOT  # noqa: F401 - puts the packages on the path

import metile

BLOCK = 64


@metile.kernel
def softmax(X, Out, N, START: metile.constexpr, BLOCK: metile.constexpr):
    row, lanes = metile.program_id(0) * N, metile.arange(0, BLOCK)
    m = START
    for i in metile.tile_range(0, N, BLOCK):
        m = metile.maximum(m, metile.load(X + row + i + lanes, mask=i + lanes < N))
    m = metile.max(m)
    s = 0.0
    for i in metile.tile_range(0, N, BLOCK):
        s = s + metile.exp(metile.load(X + row + i + lanes, mask=i + lanes < N) - m)
    s = metile.sum(s)
    for i in metile.tile_range(0, N, BLOCK):
        x = metile.load(X + row + i + lanes, mask=i + lanes < N)
        metile.store(Out + row + i + lanes, metile.exp(x - m) / s, mask=i + lanes < N)


@metile.kernel
def scaled_sum(X, Out, N, scale, START: metile.constexpr, BLOCK: metile.constexpr):
    """Per lane, factors in another order, from a sum that is not zero; two elements in each iteration."""
    lanes = metile.arange(0, BLOCK)
    m, s = START, 2.5
    for i in metile.tile_range(0, N, 2 * BLOCK):
        m = metile.maximum(metile.maximum(metile.load(X + i + lanes) * scale, m), scale * metile.load(X + (i + BLOCK + lanes)))
    for i in metile.tile_range(0, N, 2 * BLOCK):
        s = s + metile.exp(metile.load(X + i + lanes) * scale - m) + metile.exp(metile.load(X + (i + BLOCK + lanes)) * scale - m)
    metile.store(Out + lanes, s)


@contextlib.contextmanager
def online(setting):
    os.environ["METILE_ONLINE_SOFTMAX"] = setting
    try:
        yield
    finally:
        del os.environ["METILE_ONLINE_SOFTMAX"]


def both(kernel, grid, x, shape, *rest, **constants):
    """Results of the rewritten kernel and of the kernel as it is written, both over poisoned memory."""
    out = [np.full(shape, np.nan, np.float32) for _ in range(2)]
    for setting, into in zip("10", out):
        with online(setting):
            kernel[grid](x, into, *rest, **constants)
    return out


@pytest.mark.parametrize("start", [-1e38, -float("inf"), 0.0, 40.0])
@pytest.mark.parametrize("columns", [1, 63, 64, 1003])
def test_rows_equal_float64_and_the_kernel_as_written(random, start, columns):
    x = (random.standard_normal((5, columns)) * random.choice([0.1, 3, 60]) + random.choice([0, 20])).astype(np.float32)
    if columns > 100:
        x[0].sort()  # the maximum grows at every element
        x[1, :90] = -np.inf
    ours, written = both(softmax, (5,), x, x.shape, columns, START=start, BLOCK=BLOCK)
    e = np.exp(x.astype(np.float64) - np.maximum(x.max(axis=1, keepdims=True), np.float64(max(start, -1e38))))
    with np.errstate(invalid="ignore"):
        expected = e / e.sum(axis=1, keepdims=True)
    lanes = -(-columns // BLOCK)
    tolerance = 4 * (lanes + 8) * np.finfo(np.float32).eps
    np.testing.assert_allclose(ours, written, rtol=tolerance, atol=1e-37)
    usable = e.sum(axis=1) > 1e-30  # else two passes have lost it as well
    np.testing.assert_allclose(ours[usable], expected[usable], rtol=2e-4, atol=1e-37)
    assert "collected while the maximum is found" in softmax.explain()


@pytest.mark.parametrize("where", [0, 500, 1002])
@pytest.mark.parametrize("value", [np.nan, np.inf, "all -inf"])
def test_what_is_nan_as_written_is_nan(random, where, value):
    x = random.standard_normal((1, 1003)).astype(np.float32)
    if isinstance(value, str):
        x[:] = -np.inf
    else:
        x[0, where] = value
    ours, written = both(softmax, (1,), x, x.shape, 1003, START=-float("inf"), BLOCK=BLOCK)
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(written))


def test_two_elements_in_an_iteration_and_a_sum_that_is_not_zero_at_first(random):
    x = (20 * random.standard_normal(2 * BLOCK * 9)).astype(np.float32)
    ours, written = both(scaled_sum, (1,), x, BLOCK, x.size, 0.25, START=-1e38, BLOCK=BLOCK)
    values = x.reshape(-1, BLOCK).astype(np.float64) * 0.25
    np.testing.assert_allclose(ours, 2.5 + np.exp(values - values.max(axis=0)).sum(axis=0), rtol=1e-5)
    np.testing.assert_allclose(ours, written, rtol=1e-5)
    assert "collected while the maximum is found" in scaled_sum.explain()


def test_no_elements_are_no_sum(random):
    ours, written = both(scaled_sum, (1,), np.zeros(1, np.float32), BLOCK, 0, 1.0, START=-float("inf"), BLOCK=BLOCK)
    np.testing.assert_array_equal(ours, written)


def test_half_precision_data_is_summed_in_f32(random):
    x = (4 * random.standard_normal((3, 500))).astype(np.float16)
    ours, written = both(softmax, (3,), x, x.shape, 500, START=-1e38, BLOCK=BLOCK)
    np.testing.assert_allclose(ours, written, rtol=1e-5)
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(ours, e / e.sum(axis=1, keepdims=True), rtol=1e-4)


def near_miss(maximum=lambda x: x, summand=lambda x, m: metile.exp(x - m), other=False, step=1, bound=metile.max, between=None, start=-1e38, inside=None):
    """A kernel of two loops that differs in one place, and what it should give."""

    @metile.kernel
    def kernel(X, Y, Out, Scratch, N, BLOCK: metile.constexpr):
        lanes = metile.arange(0, BLOCK)
        m = start(X) if callable(start) else start
        for i in metile.tile_range(0, N, BLOCK):
            m = metile.maximum(m, maximum(metile.load(X + i + lanes, mask=i + lanes < N)))
        m = bound(m)
        if between is not None:
            between(X, Scratch, lanes)
        s = 0.0
        for i in metile.tile_range(0, N, BLOCK * step):
            x = metile.load((Y if other else X) + i + lanes, mask=i + lanes < N)
            if inside is not None:
                inside(Scratch, i + lanes, x, N)
            s = s + summand(x, m)
        metile.store(Out + lanes, s)

    return kernel


def _store_twice(scratch, at, x, n):
    metile.store(scratch + at, x, mask=at < n)


MISSES = {
    "scaled": (dict(summand=lambda x, m: metile.exp((x - m) * 0.5)), "something else than exp(x - maximum)"),
    "weighted": (dict(summand=lambda x, m: x * metile.exp(x - m)), "something else than exp(x - maximum)"),
    "absolute": (dict(maximum=lambda x: metile.abs(x)), "not those whose maximum is taken"),
    "reversed": (dict(maximum=lambda x: x - 1.0, summand=lambda x, m: metile.exp((1.0 - x) - m)), "not those whose maximum is taken"),
    "another array": (dict(other=True), "not those whose maximum is taken"),
    "another step": (dict(step=2), "it counts from, to or by other numbers"),
    "another bound": (dict(bound=lambda m: metile.min(m)), "not known to be at least"),
    "shifted bound": (dict(bound=lambda m: metile.max(m) - 1.0), "not known to be at least"),
    "two bounds": (dict(bound=lambda m: (metile.max(m), metile.maximum(metile.max(m), 9.0)),
                        summand=lambda x, m: metile.exp(x - m[0]) + metile.exp(x - m[1])), "subtract different values"),
    "stores": (dict(inside=_store_twice), "it stores"),
    "written between": (dict(between=lambda X, Scratch, lanes: metile.store(X + lanes, 0.5)), "written in between"),
    "masked start": (dict(start=lambda X: metile.load(X + metile.thread_id(), mask=metile.thread_id() < 3)), "starts from a masked load"),
    "exp2": (dict(summand=lambda x, m: metile.exp2(x - m)), "something else than exp(x - maximum)"),
    "product": (dict(summand=lambda x, m: metile.exp(x - m) * metile.exp(x - m)), "something else than exp(x - maximum)"),
}


@pytest.mark.parametrize("name", MISSES)
def test_near_misses_run_as_written(random, name):
    changes, reason = MISSES[name]
    kernel = near_miss(**changes)
    n = 200
    x, y = (2 * random.standard_normal((2, n))).astype(np.float32)
    results = []
    for _ in range(2):
        arrays = x.copy(), y.copy(), np.full(BLOCK, np.nan, np.float32), np.full(n, np.nan, np.float32)
        kernel[(1,)](*arrays, n, BLOCK=BLOCK)
        results.append(arrays[2])
        os.environ["METILE_ONLINE_SOFTMAX"] = "0"
    del os.environ["METILE_ONLINE_SOFTMAX"]
    np.testing.assert_array_equal(results[0], results[1])
    text = kernel.explain()
    assert "stays a pass of its own" in text and reason in text, text
    assert "collected" not in text


def test_a_sum_in_half_precision_stays_a_pass_of_its_own(random):
    @metile.kernel
    def kernel(X, Out, N, BLOCK: metile.constexpr):
        lanes = metile.arange(0, BLOCK)
        m = metile.load(X + lanes)
        for i in metile.tile_range(0, N, BLOCK):
            m = metile.maximum(m, metile.load(X + i + lanes))
        s = 0.0
        for i in metile.tile_range(0, N, BLOCK):
            s = s + metile.exp(metile.load(X + i + lanes) - m)
        metile.store(Out + lanes, s)

    kernel[(1,)](random.standard_normal(2 * BLOCK).astype(np.float16), np.empty(BLOCK, np.float32), 2 * BLOCK, BLOCK=BLOCK)
    assert "not both f32" in kernel.explain()


def test_explain_names_the_loops_and_takes_arguments_instead_of_a_launch():
    @metile.kernel
    def plain(X, N, BLOCK: metile.constexpr):
        metile.store(X + metile.arange(0, BLOCK), 1.0)

    assert plain.explain() == "plain: not launched yet\n"
    x = np.zeros(4, np.float32)
    assert plain.explain(x, 4, BLOCK=4) == "plain(X: f32, N: int, BLOCK=4): runs as written\n"
    assert x.tolist() == [0, 0, 0, 0]
    text = softmax.explain(np.zeros((1, 8), np.float32), np.zeros((1, 8), np.float32), 8, START=-1.0, BLOCK=32)
    lines = open(__file__, encoding="utf-8").read().splitlines()
    second = next(number for number, line in enumerate(lines, 1) if "s = s + metile.exp(metile.load(X + row" in line) - 1
    assert f"{os.path.basename(__file__)}:{second}:" in text and "note: the sum of this loop" in text and "the maximum is found here" in text, text


def test_the_variable_turns_the_rewrite_off():
    with online("0"):
        text = softmax.explain(np.zeros((1, 8), np.float32), np.zeros((1, 8), np.float32), 8, START=-2.0, BLOCK=32)
    assert text.endswith("runs as written\n")


@pytest.mark.parametrize("columns, is_long", [(100, False), (32767, False), (32768, True), (70000, True)])
def test_on_cpus_only_long_rows_are_rewritten(random, device, columns, is_long):
    if device != "cpu":
        pytest.skip("GPUs rewrite all")
    x = random.standard_normal((2, columns), dtype=np.float32)
    expected = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    for _ in range(3):  # the general way, then the direct one, with rows of other lengths in between
        for rows, n in ((x, columns), (x[:, :50].copy(), 50)):
            out = np.full_like(rows, np.nan)
            softmax[(2,)](rows, out, n, START=-1e38, BLOCK=BLOCK)
            if n == columns:
                np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-9)
            else:
                np.testing.assert_allclose(out.sum(axis=1), 1, rtol=1e-4)
    text = softmax.explain(x, x, columns, START=-1e38, BLOCK=BLOCK)
    assert "collected while the maximum is found" in text
    assert ("runs as written, its rows are short" not in text) == is_long
