"""Memory of a program instance that is read where nothing wrote it: 0, and a fault of checked runs."""
import numpy as np
import pytest

import metile
import vortex


@metile.kernel
def even_lanes(X, Out, BLOCK: metile.constexpr):
    lane = metile.thread_id()
    cells = metile.shared(BLOCK)
    metile.store(cells + lane, metile.load(X + metile.program_id(0) * BLOCK + lane), mask=lane % 2 == 0)
    metile.barrier()
    metile.store(Out + metile.program_id(0) * BLOCK + lane, metile.load(cells + (BLOCK - 1 - lane)))


@metile.kernel
def first_lanes(X, Out, N, BLOCK: metile.constexpr):
    lane = metile.thread_id()
    cells = metile.shared(2 * BLOCK)
    metile.store(cells + lane, metile.load(X + metile.program_id(0) * BLOCK + lane), mask=lane < N)
    metile.barrier()
    metile.store(Out + metile.program_id(0) * BLOCK + lane, metile.load(cells + lane + BLOCK // 2))


@metile.kernel
def rounds(X, Out, N, BLOCK: metile.constexpr):
    lane = metile.thread_id()
    cells = metile.shared(BLOCK, "i32")
    for i in metile.tile_range(0, N):
        metile.store(cells + lane, metile.load(X + metile.program_id(0) * BLOCK + lane) + i)
    metile.barrier()
    metile.store(Out + metile.program_id(0) * BLOCK + lane, metile.load(cells + lane))


@metile.kernel
def whole(X, Out, BLOCK: metile.constexpr):
    lane = metile.thread_id()
    cells = metile.shared(BLOCK)
    metile.store(cells + lane, metile.load(X + metile.program_id(0) * BLOCK + lane))
    metile.barrier()
    metile.store(Out + metile.program_id(0) * BLOCK + lane, metile.load(cells + (BLOCK - 1 - lane)))


def run(kernel, x, *numbers, block):
    out = np.full_like(x, 77)
    for _ in range(3):  # stacks and pages differ from the first run
        kernel[len(x) // block](x, out, *numbers, BLOCK=block)
    return out.reshape(-1, block)


def test_elements_that_some_lanes_left_out_are_zero(where, random):
    for block in (32, 50, 256):
        x = random.standard_normal(5 * block).astype(np.float32)
        expected = np.where(np.arange(block) % 2 == 0, x.reshape(-1, block), 0)[:, ::-1]
        np.testing.assert_array_equal(run(even_lanes, x, block=block), expected)


def test_elements_beyond_what_a_launch_writes_are_zero(where, random):
    block = 64
    x = random.standard_normal(3 * block).astype(np.float32)
    for n in (0, 1, 45, 64, 100):
        cells = np.zeros((3, 2 * block), np.float32)
        cells[:, : min(n, block)] = x.reshape(-1, block)[:, :n]
        np.testing.assert_array_equal(run(first_lanes, x, n, block=block), cells[:, block // 2 : block // 2 + block])


@pytest.mark.filterwarnings("ignore:warning.W0525")
def test_what_a_loop_without_rounds_would_have_written_is_zero(where, random):
    x = random.integers(-1000, 1000, 128).astype(np.int32)
    np.testing.assert_array_equal(run(rounds, x, 3, block=64), x.reshape(-1, 64) + 2)
    np.testing.assert_array_equal(run(rounds, x, 0, block=64), 0)


def test_a_checked_run_tells_of_such_a_read(monkeypatch, random):
    monkeypatch.setenv("METILE_CHECK", "1")
    x = random.standard_normal(64).astype(np.float32)
    with pytest.raises(vortex.Error, match="E0602: element 63 of `cells` is read before") as raised:
        even_lanes[1](x, np.zeros_like(x), BLOCK=64)
    assert "metile.load(cells" in str(raised.value) and raised.value.fault is not None
    np.testing.assert_array_equal(run(whole, x, block=64)[0], x[::-1])


def test_memory_that_is_written_first_is_not_cleared():
    """A kernel has the zeros only where it needs them."""
    arrays = np.zeros(128, np.float32), np.zeros(128, np.float32)
    barriers = [kernel.source("irgen", *arrays, BLOCK=64).count("vx.barrier") for kernel in (whole, even_lanes)]
    assert barriers == [1, 2]
