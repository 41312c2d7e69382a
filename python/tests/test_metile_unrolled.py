"""Long loops over `range`, which are unrolled."""
import pathlib
import re

import numpy as np
import pytest

import metile


@metile.kernel
def summed(X, Out, COUNT: metile.constexpr):
    lane = metile.arange(0, 64)
    total = metile.load(X + lane)
    for i in range(COUNT):
        total = total + metile.load(X + lane + i)
        metile.store(Out + i * 64 + lane, total)


def test_many_accesses_in_a_row_are_guarded_each(random, where):
    x = random.integers(-9, 9, 300).astype(np.float32)
    out = np.full(64 * 140 + 40, 77, np.float32)
    summed[1](x, out[:-80], COUNT=141)
    padded, lane = np.concatenate([x, np.zeros(64, np.float32)]), np.arange(64)
    totals = padded[lane] + np.cumsum([padded[lane + i] for i in range(141)], 0)
    np.testing.assert_array_equal(out[:-80], totals.ravel()[: out.size - 80])
    assert (out[-80:] == 77).all()


CPUINFO = pathlib.Path("/proc/cpuinfo")  # other CPUs have no masks that are cheaper than branches


@pytest.mark.skipif(not CPUINFO.exists() or "avx512f" not in CPUINFO.read_text(), reason="needs AVX-512")
def test_code_of_many_accesses_does_not_branch_for_each():
    x = np.zeros(64, np.float32)
    counts = {count: len(re.findall(r"^ *br i1 ", summed.source("llvm", x, x.copy(), COUNT=count), re.M)) for count in (150, 300)}
    assert 0 < counts[300] < 1.5 * counts[150]


def test_a_loop_of_too_many_rounds_says_what_to_write():
    @metile.kernel
    def kernel(X, COUNT: metile.constexpr):
        x = metile.load(X + metile.arange(0, 64))
        for i in range(COUNT):
            x = x * 2.0 + i  # here
        metile.store(X + metile.arange(0, 64), x)

    with pytest.raises(metile.LoweringError, match=r"more than 32768 operations: .*range.*`for i in metile.tile_range\(…\)`") as raised:
        kernel[1](np.zeros(64, np.float32), COUNT=20000)
    assert "x = x * 2.0 + i  # here" in str(raised.value)
