"""Launches that go straight to the runtime, in all the forms that a call may have, and what must not."""
import pathlib

import numpy as np
import pytest

import metile
import vortex
from metile.frontend.kernel import Launcher
from test_gpu_arrays import run


@metile.kernel
def combined(X, Y, Out, N, factor, BLOCK: metile.constexpr, SHIFT: metile.constexpr = 2):
    offs = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    mask = offs < N
    metile.store(Out + offs, metile.load(X + offs, mask=mask) * factor + metile.load(Y + offs, mask=mask) + SHIFT, mask=mask)


@metile.kernel
def moved(X, Out, N, BLOCK: metile.constexpr):
    offs = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    metile.store(Out + offs, metile.load(X + offs, mask=offs < N), mask=offs < N)


@pytest.fixture
def general(monkeypatch, device):
    """Calls that took the general way."""
    if device != "cpu":
        pytest.skip("of host arrays")
    monkeypatch.delenv("METILE_INTERPRET", raising=False)
    metile.set_device("cpu")
    counted, way = [], Launcher._run
    monkeypatch.setattr(Launcher, "_run", lambda self, args, kwargs, grid: (counted.append(args), way(self, args, kwargs, grid))[1])
    return counted


CALLS = {
    "in order": lambda x, y, out, n: combined[(metile.cdiv(n, 64),)](x, y, out, n, 2.0, BLOCK=64),
    "an integer as grid": lambda x, y, out, n: combined[metile.cdiv(n, 64)](x, y, out, n, 2.0, BLOCK=64),
    "a list as grid": lambda x, y, out, n: combined[[metile.cdiv(n, 64), 1]](x, y, out, n, 2.0, BLOCK=64),
    "a NumPy number as grid": lambda x, y, out, n: combined[(np.int64(metile.cdiv(n, 64)),)](x, y, out, n, 2.0, BLOCK=64),
    "by name": lambda x, y, out, n: combined[(metile.cdiv(n, 64),)](Y=y, X=x, factor=2.0, N=n, Out=out, BLOCK=64),
    "some by name": lambda x, y, out, n: combined[(metile.cdiv(n, 64),)](x, y, factor=2.0, N=n, Out=out, BLOCK=64),
    "constexprs in order": lambda x, y, out, n: combined[(metile.cdiv(n, 64),)](x, y, out, n, 2.0, 64, 2),
    "a constexpr in order": lambda x, y, out, n: combined[(metile.cdiv(n, 64),)](x, y, out, n, 2.0, 64, SHIFT=2),
    "a function as grid": lambda x, y, out, n: combined[lambda c: (metile.cdiv(n, c["BLOCK"] * c["SHIFT"] // 2),)](x, y, out, n, 2.0, BLOCK=64),
    "numbers of NumPy": lambda x, y, out, n: combined[(metile.cdiv(n, 64),)](x, y, out, np.int64(n), np.float32(2), BLOCK=64),
    "hints": lambda x, y, out, n: combined[(metile.cdiv(n, 64),)](x, y, out, n, 2.0, BLOCK=64, num_warps=4),
}
KINDS = {"NumPy": lambda values: values, "Buffer": lambda values: metile.Buffer(data=values), "Array": lambda values: vortex.asarray(values, "cpu")}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", CALLS)
def test_every_form_of_a_call_goes_straight_to_the_runtime(call, kind, general, random):
    for turn in range(5):
        n = int(random.integers(65, 400))
        x, y = random.standard_normal((2, n), dtype=np.float32)
        out = np.full(n + 3, np.nan, np.float32)
        CALLS[call](*(KINDS[kind](values) for values in (x, y, out)), n)
        np.testing.assert_allclose(out[:n], x.astype(np.float64) * 2 + y + 2, rtol=1e-5, atol=1e-5)
        assert np.isnan(out[n:]).all()
        if turn == 0:
            general.clear()
    assert not general


def test_kinds_of_arguments_do_not_drive_each_other_out(general, random):
    x, y = random.standard_normal((2, 100), dtype=np.float32)
    out = np.empty(100, np.float32)
    buffers, arrays = [[KINDS[kind](values) for values in (x, y, out)] for kind in ("Buffer", "Array")]
    for turn in range(4):
        for given in ((x, y, out), buffers, arrays, (buffers[0], y, arrays[2])):
            out[:] = np.nan
            combined[(2,)](*given, 100, 2.0, BLOCK=64)
            np.testing.assert_allclose(out, x.astype(np.float64) * 2 + y + 2, rtol=1e-5, atol=1e-5)
        if turn == 0:
            general.clear()
    assert not general


@pytest.mark.parametrize("kind", KINDS)
def test_one_array_for_two_parameters_after_two(kind, general, random):
    x, y = random.standard_normal((2, 100), dtype=np.float32)
    out = np.full(100, np.nan, np.float32)
    made = [KINDS[kind](values) for values in (x, y, out)]
    for _ in range(2):
        combined[(2,)](*made, 100, 2.0, BLOCK=64)
    expected = x.astype(np.float64) * 2 + y + 2
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)
    combined[(2,)](made[0], made[1], made[0], 100, 2.0, BLOCK=64)
    np.testing.assert_allclose(x, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_wrong_after_a_direct_launch_is_told(kind, general, random):
    x, y = random.standard_normal((2, 100), dtype=np.float32)
    room = np.zeros(200, np.float32)
    made = [KINDS[kind](values) for values in (x, y, room[:100])]
    for _ in range(2):
        combined[(2,)](*made, 100, 2.0, BLOCK=64)
    shared = [KINDS[kind](room[start:start + 100]) for start in (0, 40)]
    fixed = y.copy()
    fixed.flags.writeable = False
    for given, error, message in (
            ((shared[0], made[1], shared[1], 100, 2.0), ValueError, "share memory|have elements in common"),
            ((made[0], made[1], KINDS[kind](fixed), 100, 2.0), ValueError, "read-only"),
            ((*made, 1 << 31, 2.0), OverflowError, "integers are i32"), ((*made, "100", 2.0), TypeError, "'N'"),
            ((*made, 100), TypeError, "misses 'factor'"), ((*made, 100, 2.0, 64), TypeError, "two values for 'BLOCK'")):
        with pytest.raises(error, match=message):
            combined[(2,)](*given, BLOCK=64)
    for grid, error in (((2.5,), TypeError), ((-1,), ValueError), ((1, 1, 1, 1), ValueError), ("2", TypeError), (None, TypeError)):
        with pytest.raises(error, match="grid"):
            combined[grid](*made, 100, 2.0, BLOCK=64)
    with pytest.raises(TypeError, match="misses 'BLOCK'"):
        combined[lambda constants: (constants["BLOCK"],)](*made, 100, 2.0)
    with pytest.raises(TypeError, match="no parameter 'BLOK'"):
        combined[(2,)](*made, 100, 2.0, BLOCK=64, BLOK=3)


def test_a_grid_function_is_asked_once_per_launch(general):
    asked = []
    x, y, out = np.ones((3, 100), np.float32)
    for _ in range(3):
        combined[lambda constants: (asked.append(constants), (2,))[1]](x, y, out, 100, 2.0, BLOCK=64)
    assert asked == [{"BLOCK": 64, "SHIFT": 2}] * 3


def test_buffers_on_a_gpu():
    """The stand-in driver runs no kernels: what is asked is which memory a launch is given, and what it refuses."""
    run("""
        import metile
        from metile.frontend.kernel import Launcher
        metile.set_device("cuda:0")

        ways, way = [], Launcher._run
        Launcher._run = lambda self, args, kwargs, grid: (ways.append(args), way(self, args, kwargs, grid))[1]

        sys.path.insert(0, %r)
        from test_direct_calls import moved

        x, out = metile.Buffer(data=np.ones(100, np.float32)), metile.Buffer.zeros(100)
        copied = lambda buffer: buffer._mirrors["cuda:0"].copies
        moved[(2,)](x, out, 100, BLOCK=64)
        first = copied(x), copied(out)
        ways.clear()
        for _ in range(3):
            moved[(2,)](x, out, 100, BLOCK=64)
        assert not ways and (copied(x), copied(out)) == first  # nobody holds the arrays
        assert out._mirrors["cuda:0"].is_device_newer and not x._mirrors["cuda:0"].is_device_newer
        view = x.numpy()
        for count in range(1, 4):
            view[:] = count
            moved[(2,)](x, out, 100, BLOCK=64)
            assert copied(x)[0] == first[0][0] + count  # somebody does
        out.numpy()
        assert copied(out)[1] == 1 and not ways
        moved[(2,)](out, out, 100, BLOCK=64)
        for _ in range(2):
            moved[(2,)](out, out, 100, BLOCK=64)  # one buffer for two parameters
        room = np.zeros(150, np.float32)
        a, b = metile.Buffer(data=room[:100]), metile.Buffer(data=room[50:])
        moved[(2,)](a, out, 100, BLOCK=64)
        try:
            moved[(2,)](a, b, 100, BLOCK=64)
        except ValueError as error:
            assert "elements in common" in str(error) or "share memory" in str(error), error
        else:
            raise AssertionError("buffers that overlap on the host")
        fixed = np.zeros(100, np.float32)
        fixed.flags.writeable = False
        try:
            moved[(2,)](x, metile.Buffer(data=fixed), 100, BLOCK=64)
        except ValueError as error:
            assert "read-only" in str(error)
        else:
            raise AssertionError("a buffer that is read-only")
    """ % str(pathlib.Path(__file__).parent))
