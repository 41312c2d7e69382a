"""Values that one pass over a row computes and a later one needs again: kept where rows are short enough, and the same bits in any case."""
import numpy as np
import pytest

import metile

THREADS = 48
FITS = (64 << 10) // 4 // THREADS * THREADS  # elements of a row; a number that such a kernel has for nothing else


def passes(first, second, is_other_range=False):
    """A kernel of two passes over rows: the sum of first(x, y, a), then second(x, y, a) by that sum."""

    @metile.kernel
    def kernel(X, Y, Out, N, a, BLOCK: metile.constexpr):
        row, lanes = metile.program_id(0) * N, metile.arange(0, BLOCK)
        total = 0.0
        for start in metile.tile_range(0, N, BLOCK):
            mask = start + lanes < N
            at = row + start + lanes
            total = total + first(metile.load(X + at, mask=mask), metile.load(Y + at, mask=mask), a)
        total = metile.sum(total)
        for start in metile.tile_range(BLOCK - BLOCK if not is_other_range else BLOCK, N, BLOCK):
            mask = start + lanes < N
            at = row + start + lanes
            metile.store(Out + at, second(metile.load(X + at, mask=mask), metile.load(Y + at, mask=mask), a) / total, mask=mask)

    return kernel


def exponential(x, y, a):
    return metile.exp(x - a)


KEPT = {
    "the same": (exponential, exponential),
    "a part": (exponential, lambda x, y, a: metile.exp(x - a) * y),
    "of two arrays": (lambda x, y, a: metile.tanh(x * y), lambda x, y, a: 1.0 + metile.tanh(x * y)),
    "of what was exponentiated": (lambda x, y, a: metile.sqrt(metile.exp(x)), lambda x, y, a: metile.sqrt(metile.exp(x))),
}
NOT_KEPT = {
    "another array": (exponential, lambda x, y, a: metile.exp(y - a)),
    "another number": (exponential, lambda x, y, a: metile.exp(x - 2.0 * a)),
    "another function": (exponential, lambda x, y, a: metile.exp2(x - a)),
    "sides exchanged": (exponential, lambda x, y, a: metile.exp(a - x)),
    "nothing dear": (lambda x, y, a: metile.sqrt(abs(x)), lambda x, y, a: metile.sqrt(abs(x))),
}


def is_kept(kernel, x, y, out) -> bool:
    return str(FITS) in kernel.source("llvm", x, y, out, x.shape[1], 0.5, BLOCK=THREADS)


def data(random, rows, columns):
    return random.standard_normal((2, rows, columns), dtype=np.float32)


@pytest.fixture(autouse=True)
def on_a_cpu(device):
    if device != "cpu":
        pytest.skip("GPUs compute values again")


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept_is_what_would_be_computed_again(name, random):
    kernel = passes(*KEPT[name])
    for columns in (1, THREADS - 1, THREADS, 1003, FITS, FITS + 1, 20000):
        x, y = data(random, 3, columns)
        out, again = np.full_like(x, np.nan), x.copy()
        kernel[(3,)](x, y, out, columns, 0.5, BLOCK=THREADS)
        kernel[(3,)](again, y, again, columns, 0.5, BLOCK=THREADS)  # which is read and written: nothing is kept
        np.testing.assert_array_equal(out.view(np.uint32), again.view(np.uint32))
    assert is_kept(kernel, x, y, out)
    assert not is_kept(kernel, x, y, x)


@pytest.mark.parametrize("name", NOT_KEPT)
def test_what_differs_is_computed(name, random):
    first, second = NOT_KEPT[name]
    kernel = passes(first, second)
    x, y = data(random, 3, 1003)
    out = np.full_like(x, np.nan)
    kernel[(3,)](x, y, out, 1003, 0.5, BLOCK=THREADS)
    wide = {"another array": (x, y), "another number": (x, x), "another function": (x, x), "sides exchanged": (x, x), "nothing dear": (x, x)}[name]
    u, v = (part.astype(np.float64) for part in wide)
    exact = {"another array": (np.exp(u - 0.5), np.exp(v - 0.5)), "another number": (np.exp(u - 0.5), np.exp(v - 1)),
             "another function": (np.exp(u - 0.5), np.exp2(v - 0.5)), "sides exchanged": (np.exp(u - 0.5), np.exp(0.5 - v)),
             "nothing dear": (np.sqrt(abs(u)), np.sqrt(abs(v)))}[name]
    np.testing.assert_allclose(out, exact[1] / exact[0].sum(axis=1, keepdims=True), rtol=1e-5)
    assert not is_kept(kernel, x, y, out)


def test_loops_over_other_elements_keep_nothing(random):
    kernel = passes(exponential, exponential, is_other_range=True)
    x, y = data(random, 2, 100)
    out = np.full_like(x, np.nan)
    kernel[(2,)](x, y, out, 100, 0.5, BLOCK=THREADS)
    e = np.exp(x.astype(np.float64) - 0.5)
    np.testing.assert_allclose(out[:, THREADS:], (e / e.sum(axis=1, keepdims=True))[:, THREADS:], rtol=1e-5)
    assert np.isnan(out[:, :THREADS]).all()
    assert not is_kept(kernel, x, y, out)
