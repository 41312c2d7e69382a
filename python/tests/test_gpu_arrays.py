"""Arrays of other libraries in GPU memory. The stand-in driver has no kernels of compiled programs: these tests move data; with a GPU the last
ones launch kernels."""
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

from conftest import BUILD, ROOT

FAKE = BUILD / "lib/libvortex_fake_cuda.so"

PRELUDE = """
import sys
sys.path[:0] = [%r, %r]
import numpy as np
import pytest
import vortex
from vortex import _foreign

class Interface:
    '''What Numba and others show: nothing but the CUDA array interface.'''
    def __init__(self, array, read_only=False, **more):
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **more}
        if read_only:
            self.__cuda_array_interface__["data"] = (array.address, True)

def on_gpu(values):
    return vortex.asarray(values, "cuda:0")

values = np.random.default_rng().standard_normal((5, 7)).astype(np.float32)
"""


def run(program: str, **env):
    if not FAKE.exists():
        pytest.skip("the stand-in driver is not built")
    text = PRELUDE % (str(ROOT / "python"), str(BUILD / "python")) + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", text], env={**os.environ, "VORTEX_LIBCUDA": str(FAKE), "FAKE_CUDA_devices": "2", **env},
                          capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr


def test_arrays_by_dlpack_and_by_the_array_interface_share_memory():
    run("""
        ours = on_gpu(values)
        again = vortex.device("cuda:0").wrap(ours._export())
        assert again.address == ours.address and again.shape == (5, 7) and again.dtype == "f32"
        seen = vortex.asarray(Interface(ours), "cuda:0")
        assert seen.address == ours.address and seen.strides == (7, 1)
        other = on_gpu(np.zeros((5, 7), np.float32))
        seen._write(vortex._devices.default_stream("cuda:0"), other.numpy())
        assert np.array_equal(again.numpy(), np.zeros((5, 7)))
    """)


def test_elements_of_ml_dtypes_are_copied_there_and_back():
    pytest.importorskip("ml_dtypes")
    run("""
        import ml_dtypes
        for name, spelled in [("bfloat16", "bf16"), ("float8_e4m3fn", "f8e4m3"), ("float8_e5m2", "f8e5m2")]:
            kind = getattr(ml_dtypes, name)
            for there in (values.astype(kind), values[::2, 1:].astype(kind), np.full((), 1.5, kind), np.zeros((0, 3), kind)):
                ours = on_gpu(there)
                back = ours.numpy()
                assert ours.dtype == spelled and back.dtype == kind and back.shape == there.shape
                assert back.tobytes() == np.ascontiguousarray(there).tobytes()
    """)


def test_strided_views_and_read_only_memory():
    run("""
        ours = on_gpu(values)
        column = vortex.asarray(Interface(ours, shape=(5,), strides=(28,)), "cuda:0")
        assert column.shape == (5,) and column.strides == (7,) and not column.contiguous
        backwards = vortex.asarray(Interface(ours, shape=(35,), strides=(-4,), data=(ours.address + 34 * 4, False)), "cuda:0")
        assert backwards.address == ours.address + 34 * 4
        assert vortex.asarray(Interface(ours, read_only=True), "cuda:0").read_only
        empty = vortex.asarray(Interface(ours, shape=(0, 7), strides=None), "cuda:0")
        assert empty.shape == (0, 7)
    """)


def test_strided_arrays_are_copied_to_the_host():
    run("""
        ours = on_gpu(values)
        def seen(shape, strides, first=0):
            return vortex.asarray(Interface(ours, shape=shape, strides=strides, data=(ours.address + 4 * first, False)), "cuda:0").numpy()
        assert np.array_equal(seen((5,), (28,), 3), values[:, 3])
        assert np.array_equal(seen((7, 5), (4, 28)), values.T)
        assert np.array_equal(seen((35,), (-4,), 34), values.ravel()[::-1])
        assert np.array_equal(seen((3, 4), (-56, 8), 28), values[::-2, ::2])
        assert np.array_equal(seen((4, 7), (0, 4), 7), np.broadcast_to(values[1], (4, 7)))
        assert seen((0, 7), (28, 4)).shape == (0, 7)
    """)


def test_memory_that_is_not_of_the_device_is_refused():
    run("""
        ours = on_gpu(values)
        for bad, error, text in [
            (Interface(ours, shape=(5, 8)), vortex.Error, "not memory of 'cuda:0'"),
            (Interface(ours, data=(values.ctypes.data, False)), vortex.Error, "not memory of 'cuda:0'"),
            (Interface(ours, typestr="<c8", strides=None), TypeError, "complex64"),
            (Interface(ours, mask=ours), TypeError, "masked"),
            (Interface(ours, strides=(28, 3)), ValueError, "strides"),
        ]:
            with pytest.raises(error, match=text):
                vortex.asarray(bad, "cuda:0")
        with pytest.raises(vortex.Error, match="memory of 'cuda:0', not of 'cuda:1'"):
            vortex.asarray(Interface(ours), "cuda:1")
        with pytest.raises(ValueError, match="host memory"):
            vortex.device("cuda:0").wrap(values)
        with pytest.raises(ValueError, match="memory of a GPU"):
            vortex.device("cpu").wrap(ours._export())
        with pytest.raises(vortex.Error, match="no streams of other libraries"):
            vortex.device("cpu").wrap_stream(0)
    """)


def test_the_owner_lives_as_long_as_the_array():
    run("""
        import gc, weakref
        ours = on_gpu(values)
        lent = Interface(ours)
        gone = weakref.ref(lent)
        array = vortex.asarray(lent, "cuda:0")
        del lent
        gc.collect()
        assert gone() is not None
        assert np.array_equal(array.numpy(), values)
        del array
        gc.collect()
        assert gone() is None
    """)


def test_consumers_wait_by_event(monkeypatch):
    run("""
        ours = on_gpu(values)
        orders = []
        real = _foreign.order
        _foreign.order = lambda device, first, then: orders.append((first, then))
        _foreign._wrapped = lambda name, handle: handle
        ours.__dlpack__(stream=77)
        ours.__dlpack__(stream=None)
        ours.__dlpack__(stream=-1)
        own = vortex._devices.default_stream("cuda:0")
        assert orders == [(own, 77), (own, 1)], orders
    """)


CALL = """
from vortex import _launch
orders, launched = [], []
_foreign.order = lambda device, first, then: orders.append((first, then))
_foreign._wrapped = lambda name, handle: handle
device = vortex.device("cuda:0")
own = vortex._devices.default_stream("cuda:0")

class Native:
    '''A kernel of two parameters that notes its launches.'''
    name, results = "k", []
    params = [{"name": "x", "is_written": False, "is_tensor": True}, {"name": "y", "is_written": True, "is_tensor": True}]
    def launch_resident(self, *given):
        return None  # the general way
    def launch(self, device, stream, leaves, storage, print, grid, make):
        launched.append((stream, [type(leaf).__name__ for leaf in leaves]))
        return []

kernel = _launch.Loaded(Native())
ours = on_gpu(values)
"""


def test_a_launch_goes_into_the_stream_that_the_array_interface_tells():
    run(CALL + textwrap.dedent("""
        _launch.call(device, kernel, (Interface(ours, stream=77), 2.0), None)
        assert launched == [(77, ["Array", "float"])], launched
        assert orders == [(own, 77), (77, own)], orders
    """))


@pytest.mark.parametrize("given, stream", [
    ("(Interface(ours, stream=77), Interface(ours, stream=88))", "77"), ("(ours, Interface(ours, stream=88))", "88"),
    ("(values, Interface(ours, stream=99))", "99"), ("(Interface(ours, stream=1), ours)", "1"), ("(Interface(ours), ours)", "own"),
    ("(ours, ours)", "own"), ("(values, 1.0)", "own")])
def test_the_first_argument_with_a_stream_decides(given, stream):
    run(CALL + textwrap.dedent(f"""
        _launch.call(device, kernel, {given}, None)
        assert launched[0][0] == {stream}, launched
        assert bool(orders) == ({stream} is not own), orders
    """))


def test_metile_launches_in_the_stream_that_the_array_interface_tells():
    run(CALL + textwrap.dedent("""
        import metile
        from metile._arguments import BufferArgument, GpuArray
        from metile._dispatch import in_stream
        from metile.runtime.device import Device
        gpu = Device.of("cuda:0")
        lent = GpuArray(Interface(ours, stream=77), "cuda:0", "x")
        in_stream(gpu, [lent], launched.append)
        assert launched == [77] and not orders, (launched, orders)
        in_stream(gpu, [lent, BufferArgument(metile.Buffer(4), "y")], launched.append)
        assert launched == [77, 77] and orders == [(gpu.stream, 77), (77, gpu.stream)], orders
    """))


def test_copies_are_told_with_their_bytes():
    run("""
        import contextlib, io
        import metile
        from metile.runtime.device import Device
        gpu = Device.of("cuda:0")
        buffer = metile.Buffer(data=values)
        text = io.StringIO()
        with contextlib.redirect_stderr(text):
            buffer.on(gpu, True, "'x'")
            buffer.on(gpu, True, "'x'")
            buffer.numpy()
        assert text.getvalue().splitlines() == ["// ---- copy: 'x', 140 bytes, host to cuda:0", "// ---- copy: 'x', 140 bytes, cuda:0 to host"], text.getvalue()
    """, METILE_DEBUG="copies")


def test_copies_of_strided_arrays_are_told(capsys, monkeypatch):
    import numpy as np

    import metile

    @metile.kernel
    def double(X, N, BLOCK: metile.constexpr):
        i = metile.arange(0, BLOCK)
        metile.store(X + i, metile.load(X + i, mask=i < N) * 2.0, mask=i < N)

    metile.set_device("cpu")
    x = np.ones((8, 2), np.float32)
    for value, lines in (("", 0), ("copies", 2), ("copies, ", 2)):
        monkeypatch.setenv("METILE_DEBUG", value)
        double[(1,)](x[:, 0], 8, BLOCK=8)
        double[(1,)](x[0], 2, BLOCK=8)  # in place
        told = [line for line in capsys.readouterr().err.splitlines() if "copy" in line]
        assert told == ["// ---- copy: 'X', 32 bytes, made contiguous", "// ---- copy: 'X', 32 bytes, back into its strides"][:lines], told
    np.testing.assert_array_equal(x[:, 0], [64] + [8] * 7)


@pytest.fixture
def cuda_torch(device):
    if not device.startswith("cuda"):
        pytest.skip("needs a GPU")
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")
    return module


def test_kernels_work_in_tensors_of_torch_in_its_stream(cuda_torch, device):
    import vortex

    program = vortex.compile(source="""
        kernel scale(x: &Tensor<f32, [M, N]>, factor: f32) -> Tensor<f32, [M, N]> { return x * factor }
        kernel add(x: &mut Tensor<f32, [N]>, step: f32) { x += step }
        """, device=device)
    stream = cuda_torch.cuda.Stream()
    with cuda_torch.cuda.stream(stream):
        x = cuda_torch.randn(1000, 777, device=device)
        y = program.scale(x, 3.0)
        assert isinstance(y, cuda_torch.Tensor) and y.device == x.device
        flat = x.flatten().clone()
        before = flat.clone()
        for _ in range(20):
            flat.mul_(1.0)
            program.add(flat, 0.5)
    stream.synchronize()
    assert cuda_torch.equal(y, x * 3)
    assert cuda_torch.allclose(flat, before + 10, atol=1e-4)
    turned = program.scale(x.t(), 2.0)
    assert cuda_torch.equal(turned, x.t() * 2)


def test_metile_kernels_work_in_tensors_of_torch(cuda_torch, device):
    import metile

    @metile.kernel
    def shifted(x, out, n, BLOCK: metile.constexpr):
        i = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
        metile.store(out + i, metile.load(x + i, mask=i < n) + 1.0, mask=i < n)

    x = cuda_torch.randn(100_003, device=device)
    out = cuda_torch.full_like(x, float("nan"))
    for _ in range(3):
        shifted[(-(-x.numel() // 256),)](x, out, x.numel(), BLOCK=256)
        x = out * 1
    cuda_torch.cuda.synchronize()
    assert cuda_torch.isfinite(out).all()
    again = out.clone()
    shifted[(-(-x.numel() // 256),)](out, out, x.numel(), BLOCK=256)
    assert cuda_torch.equal(out, again + 1)
    with pytest.raises(ValueError, match="not contiguous"):
        shifted[(1,)](x[::2], out, 10, BLOCK=256)


def test_a_forked_process_is_told_that_it_has_no_gpu():
    run("""
        import os, signal
        ours = on_gpu(values)
        def uses():
            yield lambda: on_gpu(values)
            yield lambda: ours.numpy()
            yield lambda: vortex.empty(5, "f32", "cuda:0")
            yield lambda: vortex.synchronize("cuda:0")
            yield lambda: vortex.device("cuda:1").create_stream().synchronize()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            for use in uses():
                with pytest.raises(vortex.Error, match="this process was forked from one that had opened a GPU.*spawn"):
                    use()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert np.array_equal(ours.numpy(), values)
    """)
