"""Results that a call makes: by the library of its arguments, from the memory that this library keeps at hand. A stand-in for PyTorch, on the CPU and
on the stand-in driver, needs no GPU."""
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import vortex

from conftest import BUILD, ROOT
from test_direct_launches import run
from test_gpu_arrays import FAKE

MADE = """
made = []
def empty(shape, dtype, device):
    names = {getattr(torch, name): name for name in ("float32", "float64", "float16", "int32", "uint8")}
    made.append(Tensor(np.full(shape, 77, names[dtype]), device=device))
    return made[-1]
torch.empty = empty
Tensor.device = "cpu"
program = vortex.compile(source='''
kernel scale(x: &Tensor<f32, [M, N]>, factor: f32) -> Tensor<f32, [M, N]> { return x * factor }
kernel both(x: &Tensor<f32, [M, N]>) -> (Tensor<f32, [M, N]>, Tensor<f32, [M]>) { return (x + 1.0, sum(x, dim = 1)) }
kernel total(x: &Tensor<f32, [M, N]>) -> f32 { return sum(x) }
kernel wide(x: &Tensor<f32, [M, N]>) -> Tensor<u16, [M, N]> { return x as u16 }
''')
x = Tensor(values)
"""


def test_results_are_made_by_the_library_of_the_arguments():
    run(MADE + textwrap.dedent("""
        y = program.scale(x, 2.0)
        assert y is made[0] and y.shape == (5, 7) and np.array_equal(y.array, values * 2), y
        more, sums = program.both(x)
        assert [more, sums] == made[1:] and sums.shape == (5,)
        assert np.array_equal(more.array, values + 1) and np.allclose(sums.array, values.sum(1), rtol=1e-4, atol=1e-4)
        total = program.total(x)
        assert total is made[3] and total.shape == () and np.allclose(total.array, values.sum(), rtol=1e-4, atol=1e-4)
        assert Tensor.asked == 0  # nothing went through DLPack
    """))


def test_results_that_are_given_are_not_made():
    run(MADE + textwrap.dedent("""
        out, more = Tensor(np.zeros((5, 7), np.float32)), Tensor(np.zeros((5, 7), np.float32))
        assert program.scale(x, 3.0, out=out) is out and np.array_equal(out.array, values * 3) and not made
        first, second = program.both(x, out=(more, None))
        assert first is more and [second] == made and second.shape == (5,)
        assert np.array_equal(more.array, values + 1) and np.allclose(second.array, values.sum(1), rtol=1e-4, atol=1e-4)
    """))


def test_numpy_arguments_make_numpy_results_beside_an_imported_library():
    run(MADE + textwrap.dedent("""
        y = program.scale(values, 2.0)
        assert type(y) is np.ndarray and np.array_equal(y, values * 2) and not made
        assert isinstance(program.scale(vortex.asarray(values, "cpu"), 2.0), vortex.Array) and not made
    """))


@pytest.mark.parametrize("empty, error, text", [
    ("lambda shape, dtype, device: 1 / 0", "ZeroDivisionError", "division"),
    ("lambda shape, dtype, device: (_ for _ in ()).throw(MemoryError('full'))", "MemoryError", "full"),
    ("lambda shape, dtype, device: Tensor(np.zeros((5, 8), np.float32))", "vortex.Error", "needed is f32.5, 7."),
    ("lambda shape, dtype, device: Tensor(np.zeros((5, 7), np.float64))", "vortex.Error", "f64"),
    ("lambda shape, dtype, device: Tensor(np.zeros((7, 5), np.float32).T)", "vortex.Error", "strides"),
    ("lambda shape, dtype, device: None", "vortex.Error", "NoneType"),
])
def test_what_the_library_cannot_make_is_the_launchs_error(empty, error, text):
    run(MADE + textwrap.dedent(f"""
        import pytest
        torch.empty = {empty}
        with pytest.raises({error}, match="{text}"):
            program.scale(x, 2.0)
        assert np.array_equal(program.scale(values, 2.0), values * 2)
    """))


def test_an_element_type_that_the_library_lacks_is_named():
    run(MADE + textwrap.dedent("""
        import pytest
        with pytest.raises(TypeError, match="no element type for u16"):
            program.wide(x)
    """))


GPU = """
import ctypes, sys, types
sys.path[:0] = [%r, %r]
import numpy as np
torch = types.ModuleType("torch")
torch.float32, torch.strided = object(), object()
class Tensor:
    layout, dtype, is_cuda, is_cpu, device = torch.strided, torch.float32, True, False, "cuda:0"
    def __init__(self, array):
        self.array, self.shape = array, array.shape
    def data_ptr(self):
        return self.array.address
    def stride(self):
        return self.array.strides
    def is_neg(self):
        return False
    def get_device(self):
        return 0
    def __dlpack_device__(self):
        return 2, 0
    def __dlpack__(self, **options):
        raise AssertionError("read by its own methods")
torch.Tensor = Tensor
sys.modules["torch"] = torch
import vortex
from vortex import _foreign
device = vortex.device("cuda:0")
driver = ctypes.CDLL(%r)
driver.fakeCudaCount.restype = ctypes.c_int64
context, stream = ctypes.c_void_p(), ctypes.c_void_p()
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == driver.cuCtxPushCurrent_v2(context) == 0
assert driver.cuStreamCreate(ctypes.byref(stream), 0) == 0
torch._C = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda gpu: stream.value)
def calls(*symbols):
    return sum(driver.fakeCudaCount(symbol.encode()) for symbol in symbols)
program = vortex.compile(source="kernel scale(x: &Tensor<f32, [N]>, factor: f32) -> Tensor<f32, [N]> { return x * factor }", device="cuda:0")
x = Tensor(vortex.asarray(np.ones(64, np.float32), "cuda:0"))
ready = [Tensor(vortex.empty(64, "f32", "cuda:0")) for _ in range(2)]  # the memory that the library keeps
torch.empty = lambda shape, dtype, device: ready[1] if shape == (64,) and dtype is torch.float32 and device == "cuda:0" else None
WORK = ("cuLaunchKernel", "cuLaunchKernelEx")
OTHER = ("cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuStreamSynchronize", "cuEventCreate", "cuStreamWaitEvent", "cuStreamCreate", "cuMemHostRegister_v2")
"""


PROGRAM = """program = vortex.compile(source='kernel scale(x: &Tensor<f32, [N]>, factor: f32) -> Tensor<f32, [N]> { return x * factor }\\n'
                                         'kernel add(x: &Tensor<f32, [N]>, y: &Tensor<f32, [N]>, z: &mut Tensor<f32, [N]>) { z = x + y }', device='cuda:0')
        ours, free, mine = (vortex.asarray(np.ones(64, np.float32), 'cuda:0') for _ in range(3))"""


def on_stand_in(program: str):
    if not FAKE.exists():
        pytest.skip("the stand-in driver is not built")
    text = GPU % (str(ROOT / "python"), str(BUILD / "python"), str(FAKE)) + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", text], env={**os.environ, "VORTEX_LIBCUDA": str(FAKE), "FAKE_CUDA_devices": "1"},
                          capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("call", ["program.scale(x, 2.0)", "program.scale(x, 2.0, out=ready[0])", "program.scale(factor=2.0, x=x)"])
def test_a_call_on_tensors_asks_the_driver_for_a_launch_and_nothing_else(call):
    on_stand_in(f"""
        {call}
        launches, before = calls(*WORK), calls(*OTHER)
        for _ in range(20):
            y = {call}
        assert isinstance(y, Tensor)
        assert calls(*WORK) - launches == 20
        assert calls(*OTHER) == before, {{symbol: calls(symbol) for symbol in OTHER}}
    """)


@pytest.mark.parametrize("call", ["scale(x, 2.0)", "scale(x, 2.0, out=ready[0])", "scale(ours, 2.0)", "scale(ours, 2.0, out=free)", "add(ours, free, mine)",
                                  "add(x, ready[0], ready[1])"])
def test_launches_on_arrays_of_one_library_go_straight_to_the_runtime(call):
    on_stand_in(f"""
        {PROGRAM}
        general = []
        before = vortex._launch._call_any
        vortex._launch._call_any = lambda *given: general.append(given) or before(*given)
        for _ in range(3):
            program.{call}
        assert not general
    """)


@pytest.mark.parametrize("call, kind, message", [
    ("scale(x, ours)", TypeError, "'factor'"),
    ("scale(vortex.empty([8, 8], 'f32', 'cuda:0'), 2.0)", ValueError, "has 1 dimension;"),
    ("scale(vortex.empty(64, 'f16', 'cuda:0'), 2.0)", TypeError, "elements of type f32"),
    ("scale(ours, 2.0, out=())", TypeError, "out= has 0"),
    ("scale(ours, 2.0, out=(free, mine))", TypeError, "out= has 2"),
    ("add(ours, free)", TypeError, "takes 3 arguments"),
])
def test_launches_that_do_not_fit_are_told_by_the_general_way(call, kind, message):
    on_stand_in(f"""
        {PROGRAM}
        for _ in range(2):
            try:
                program.{call}
            except {kind.__name__} as error:
                assert {message!r} in str(error), error
            else:
                raise SystemExit("was taken")
    """)


def test_a_call_on_our_arrays_takes_its_result_from_the_streams_memory():
    on_stand_in("""
        ours = x.array
        program.scale(ours, 2.0)
        waits = calls("cuStreamSynchronize", "cuEventCreate", "cuStreamWaitEvent", "cuMemHostRegister_v2")
        for _ in range(20):
            assert isinstance(program.scale(ours, 2.0), vortex.Array)
        assert calls("cuStreamSynchronize", "cuEventCreate", "cuStreamWaitEvent", "cuMemHostRegister_v2") == waits
    """)


def test_a_stream_of_another_library_is_wrapped_once():
    on_stand_in("""
        ours = x.array
        assert ours.device is not ours.device  # a new object each time
        assert _foreign.wrap_stream(ours.device, stream.value) is _foreign.wrap_stream(ours.device, stream.value)
        other = ctypes.c_void_p()
        assert driver.cuStreamCreate(ctypes.byref(other), 0) == 0
        assert _foreign.wrap_stream(device, other.value) is not _foreign.wrap_stream(device, stream.value)
        made = calls("cuMemHostRegister_v2")
        for _ in range(20):
            _foreign.order(device, vortex._devices.default_stream("cuda:0"), _foreign.wrap_stream(ours.device, stream.value))
        assert calls("cuMemHostRegister_v2") == made
    """)


def test_results_on_the_cpu_are_of_the_kind_of_the_first_array(random):
    program = vortex.compile(source="kernel add(a: f32, x: &Tensor<f32, [N]>, y: &Tensor<f32, [N]>) -> (Tensor<f32, [N]>, f32) {\n"
                                    "    return (a * x + y, x.sum())\n}\n")
    x, y = random.standard_normal((2, 30), dtype=np.float32)
    for turn in range(3):
        for given, kinds in (((x, y), (np.ndarray, np.float32)), ((vortex.asarray(x), y), (vortex.Array, vortex.Array)),
                             ((x, vortex.asarray(y)), (np.ndarray, np.float32))):
            made, total = program.add(2.0, *given)
            assert (type(made), type(total)) == kinds
            np.testing.assert_allclose(np.asarray(made), 2 * x.astype(np.float64) + y, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(np.asarray(total), x.astype(np.float64).sum(), rtol=1e-4, atol=1e-4)
