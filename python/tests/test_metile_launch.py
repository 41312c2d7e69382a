"""Launches of metile kernels: the direct way for repeated ones, empty grids, what arguments are named in messages, Ctrl-C."""
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import numpy as np
import pytest

import metile
import vortex

SCALE = 3.0


@metile.kernel
def scaled(X, Out, N, factor, BLOCK: metile.constexpr = 64):
    offs = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    mask = offs < N
    metile.store(Out + offs, metile.load(X + offs, mask=mask) * factor * SCALE, mask=mask)


@pytest.fixture
def on_cpu(device):
    if device != "cpu" or os.environ.get("METILE_INTERPRET") or os.environ.get("METILE_CHECK"):
        pytest.skip("the direct way is for host memory")


def test_repeated_launches_take_the_direct_way_and_give_the_same(on_cpu, random, monkeypatch):
    count = 0
    general = type(scaled[(1,)])._run

    def counted(self, *arguments):
        nonlocal count
        count += 1
        return general(self, *arguments)

    monkeypatch.setattr(type(scaled[(1,)]), "_run", counted)
    for turn in range(5):
        n = int(random.integers(1, 200))
        x, out = random.standard_normal(n, dtype=np.float32), np.full(n, np.nan, np.float32)
        scaled[(metile.cdiv(n, 64),)](x, out, n, 2.0 + turn)
        np.testing.assert_allclose(out, x * np.float32(2 + turn) * 3, rtol=1e-6)
    assert count <= 2  # a grid of several instances is another kernel


def _other_types():
    x = np.arange(8, dtype=np.float16)
    out = np.zeros(8, np.float16)
    scaled[(1,)](x, out, 8, 2.0)
    np.testing.assert_array_equal(out, x * 6)


def _int_for_float():
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    scaled[(1,)](x, out, 8, 2)
    np.testing.assert_array_equal(out, x * 6)


def _in_place():
    x = np.arange(8, dtype=np.float32)
    scaled[(1,)](x, x, 8, 2.0)
    np.testing.assert_array_equal(x, np.arange(8) * 6)


def _strided():
    x, out = np.arange(16, dtype=np.float32)[::2], np.zeros(16, np.float32)[::-2]
    scaled[(1,)](x, out, 8, 2.0)
    np.testing.assert_array_equal(out, x * 6)


def _two_dimensions():
    x, out = np.arange(8, dtype=np.float32).reshape(2, 4), np.zeros((2, 4), np.float32)
    scaled[(1,)](x, out, 8, 2.0)
    np.testing.assert_array_equal(out, x * 6)


def _read_only():
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="'Out' is written by the kernel, but the array is read-only"):
        scaled[(1,)](x, out, 8, 2.0)


def _overlapping():
    x = np.arange(16, dtype=np.float32)
    with pytest.raises(ValueError, match="share memory|overlap"):
        scaled[(1,)](x[:8], x[4:12], 8, 2.0)


def _empty():
    scaled[(1,)](np.zeros(0, np.float32), np.zeros(0, np.float32), 0, 2.0)


def _large_number():
    with pytest.raises(OverflowError, match="'N'"):
        scaled[(1,)](np.zeros(4, np.float32), np.zeros(4, np.float32), 1 << 31, 2.0)


def _wrong_type():
    with pytest.raises(TypeError, match="'N'"):
        scaled[(1,)](np.zeros(4, np.float32), np.zeros(4, np.float32), "4", 2.0)


def _other_order():
    with pytest.raises(TypeError, match="'Out'.*byte order"):
        scaled[(1,)](np.zeros(4, np.float32), np.zeros(4, ">f4"), 4, 2.0)


def _objects():
    with pytest.raises(TypeError, match="'X'"):
        scaled[(1,)](np.array([None] * 4), np.zeros(4, np.float32), 4, 2.0)


def _by_name():
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    scaled[(1,)](N=8, X=x, factor=2.0, Out=out)
    np.testing.assert_array_equal(out, x * 6)


def _misaligned():
    raw = np.zeros(33, np.uint8)
    with pytest.raises(ValueError, match="'X'.* not aligned"):
        scaled[(1,)](raw[1:].view(np.float32), np.zeros(8, np.float32), 8, 2.0)


def _outside_changed():
    x, out = np.ones(8, np.float32), np.zeros(8, np.float32)
    globals()["SCALE"] = 5.0
    try:
        scaled[(1,)](x, out, 8, 2.0)
    finally:
        globals()["SCALE"] = 3.0
    assert out[0] == 10


@pytest.mark.parametrize("case", [_other_types, _int_for_float, _in_place, _strided, _two_dimensions, _read_only, _overlapping, _empty, _large_number, _wrong_type,
                                  _other_order, _objects, _by_name, _misaligned, _outside_changed], ids=lambda case: case.__name__)
def test_other_arguments_after_a_direct_launch_go_the_general_way(on_cpu, case):
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    for _ in range(2):
        scaled[(1,)](x, out, 8, 2.0)
    case()
    scaled[(1,)](x, out, 8, 2.0)
    np.testing.assert_array_equal(out, x * 6)


def test_two_matrices_of_one_argument_are_launched_directly(on_cpu, random):
    @metile.kernel
    def added(X, Out, N, COLUMNS: metile.constexpr):
        tile = metile.tile_load(X, 0, 0, COLUMNS, (2, COLUMNS)) + metile.tile_load(X + 2 * COLUMNS, 0, 0, COLUMNS, (2, COLUMNS))
        metile.tile_store(Out, 0, 0, COLUMNS, tile, (2, COLUMNS))

    for _ in range(3):
        x, out = random.integers(-9, 9, (4, 8)).astype(np.float32), np.full((2, 8), np.nan, np.float32)
        added[1](x, out, 3, COLUMNS=8)
        np.testing.assert_array_equal(out, x[:2] + x[2:])


def test_the_interpreter_is_obeyed_after_a_direct_launch(on_cpu, monkeypatch):
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    scaled[(1,)](x, out, 8, 2.0)
    monkeypatch.setenv("METILE_CHECK", "1")

    @metile.kernel
    def outside(X, Out):
        metile.store(Out + metile.arange(0, 16), metile.load(X + metile.arange(0, 16)))

    with pytest.raises(RuntimeError):
        outside[(1,)](x, out)


@metile.kernel
def asserts(X, Out):
    offs = metile.arange(0, 32)
    metile.device_assert(metile.load(X + offs) < 10, "too big")
    metile.store(Out + offs, 1.0)


def test_an_assertion_is_raised_by_the_launch_whose_kernel_stops(device):
    if device != "cpu":
        pytest.skip("GPUs tell at the next wait")
    good, bad, out = np.zeros(32, np.float32), np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    for arrays, fails in ((good, False), (bad, True), (good, False), (good, False), (bad, True)):
        if not fails:
            asserts[(1,)](arrays, out)
            continue
        with pytest.raises(RuntimeError, match=r"kernel 'asserts' stopped: E0704: too big \(.*test_metile_launch.py:\d+:(5|1)\)") as caught:
            asserts[(1,)](arrays, out)
        assert caught.value.fault.file == __file__


@pytest.mark.parametrize("mode", ["METILE_INTERPRET", "METILE_CHECK"])
def test_what_stops_a_kernel_in_the_interpreter_is_raised_as_on_the_device(monkeypatch, mode):
    monkeypatch.setenv(mode, "1")
    with pytest.raises(vortex.Error, match=r"kernel 'asserts': .*too big") as caught:
        asserts[(1,)](np.arange(32, dtype=np.float32), np.zeros(32, np.float32))
    assert type(caught.value).__name__ == "RuntimeFailure" and (caught.value.fault.id, caught.value.fault.file) == ("E0704", __file__)


@pytest.mark.parametrize("grid", [0, (0,), (3, 0), (0, 2, 5)])
def test_a_grid_without_instances_does_nothing(grid):
    x, out = np.ones(8, np.float32), np.full(8, 7, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # instances that are not there do not race
        for _ in range(3):
            scaled[grid](x, out, 8, 2.0)
        scaled[grid].prepare(x, out, 8, 2.0).repeat(2)
    np.testing.assert_array_equal(out, 7)
    scaled[(1,)](x, out, 8, 2.0)
    np.testing.assert_array_equal(out, 2 * SCALE)


def test_kernels_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(scaled)) is scaled


@pytest.mark.parametrize("shape", [(1, 32), (16, 1), (1, 1)])
def test_tiles_of_extent_1_are_repeated(random, shape):
    @metile.kernel
    def kernel(A, B, Out, M, N, K, BM: metile.constexpr, BN: metile.constexpr, RM: metile.constexpr, RN: metile.constexpr):
        a = metile.tile_load(A, 0, 0, N, (BM, BN))
        b = metile.tile_load(B, 0, 0, K, (RM, RN))
        metile.tile_store(Out, 0, 0, N, metile.maximum(a * b, b) + b, (BM, BN))

    a = random.standard_normal((16, 32), dtype=np.float32)
    b = random.standard_normal(shape, dtype=np.float32)
    out = np.full_like(a, np.nan)
    kernel[(1,)](a, b, out, 16, 32, shape[1], BM=16, BN=32, RM=shape[0], RN=shape[1])
    np.testing.assert_allclose(out, np.maximum(a * b, b) + b, rtol=1e-6)


def test_cast_to_u8_is_a_cast(random):
    @metile.kernel
    def kernel(X, Out):
        offs = metile.arange(0, 32)
        metile.store(Out + offs, metile.cast(metile.cast(metile.load(X + offs), "u8"), "f32"))

    x = random.integers(0, 256, 32).astype(np.float32)
    out = np.zeros(32, np.float32)
    kernel[(1,)](x, out)
    np.testing.assert_array_equal(out, x)


def _returns(X):
    metile.store(X + metile.arange(0, 4), 1.0)
    return 5


def _yields(X):
    yield metile.load(X + 0)


async def _awaits(X):
    metile.store(X + 0, 1.0)


def _endless(value):
    return _endless(value + 1.0)


def _recurses(X):
    metile.store(X + 0, _endless(metile.load(X + 0)))


@pytest.mark.parametrize("body, text, line", [(_returns, "returns a value", "def _returns"), (_yields, "`yield` or `await`", "def _yields"),
                                              (_awaits, "`yield` or `await`", "def _awaits"), (_recurses, "without end", "return _endless")],
                         ids=["return", "yield", "await", "recursion"])
def test_messages_about_whole_kernels_show_a_line(body, text, line):
    with pytest.raises(metile.LoweringError, match=text) as caught:
        metile.kernel(body)[(1,)](np.zeros(4, np.float32))
    assert line in str(caught.value) and f"{__file__}:" in str(caught.value)


def test_recursion_is_named_where_the_process_allows_much_of_it():
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)
    try:
        test_messages_about_whole_kernels_show_a_line(_recurses, "without end", "return _endless")
    finally:
        sys.setrecursionlimit(before)


def test_only_functions_are_kernels():
    import functools

    for wrong in (functools.partial(print), 5, type):
        with pytest.raises(TypeError, match="takes a function"):
            metile.kernel(wrong)


def _interrupted(work, seconds=0.3):
    """How long after Ctrl-C the work ended."""
    sent = []

    def fire():
        time.sleep(seconds)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=fire)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background starts with it ignored
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
        return time.perf_counter() - sent[0]
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)


def test_repeat_obeys_ctrl_c(device):
    if device != "cpu":
        pytest.skip("the host queues launches faster than a GPU runs them")
    import vortex

    program = vortex.compile(source="kernel up(x: &mut Tensor<f32, [N]>) { x[thread.global_id] += 1.0 }", device="cpu")
    x = np.zeros(64, np.float32)
    assert _interrupted(lambda: program.up.prepare(x).repeat(1 << 40)) < 60
    program.up(x)


def test_a_compilation_is_left_by_ctrl_c_and_python_ends():
    """In a process of its own: the thread that compiles is still at work when Python ends."""
    import _vortex
    import vortex

    text = """
        import sys; sys.path[:0] = %r
        import os, signal, threading, time
        import vortex
        lines = "".join(f"let a{i} = a{i - 1} * {i}.5 + exp(a{i - 1})\\n" for i in range(1, 3000))
        source = "kernel k(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> {\\nlet a0 = x[thread.global_id]\\n" + lines + "return a2999\\n}"
        signal.signal(signal.SIGINT, signal.default_int_handler)
        vortex.compile(source="fn main() {}")
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        start = time.perf_counter()
        try:
            vortex.compile(source=source).k.source("assembly")
            print("compiled")
        except KeyboardInterrupt:
            print("left")
        """ % ([str(pathlib.Path(module.__file__).parents[level]) for module, level in ((vortex, 1), (_vortex, 0))],)
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=3600)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout in ("left\n", "compiled\n")
