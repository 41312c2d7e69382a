"""Tensors of PyTorch read by their own methods, and launches that go straight to the runtime. A stand-in for PyTorch needs no GPU; with one the real
library is used."""
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import metile
import vortex
from conftest import BUILD, ROOT
from test_gpu_arrays import cuda_torch  # noqa: F401

STAND_IN = """
import sys, types
sys.path[:0] = [%r, %r]
import numpy as np
torch = types.ModuleType("torch")
for name in ("float32", "float64", "float16", "int32", "uint8", "complex64", "strided", "sparse_coo"):
    setattr(torch, name, object())

class Tensor:
    '''A tensor over a NumPy array; DLPack would tell that it was used.'''
    asked = 0
    def __init__(self, array, **changes):
        self.array, self.dtype, self.layout, self.requires_grad = array, getattr(torch, array.dtype.name), torch.strided, True
        self.is_cuda, self.is_cpu, self.negated, self.shape = False, True, False, array.shape
        self.__dict__.update(changes)
    def data_ptr(self):
        return self.array.ctypes.data
    def stride(self):
        return tuple(stride // self.array.itemsize for stride in self.array.strides)
    def is_neg(self):
        return self.negated
    def __dlpack__(self, **options):
        Tensor.asked += 1
        raise BufferError("no DLPack for this one")
    def __dlpack_device__(self):
        return 1, 0
torch.Tensor = Tensor
sys.modules["torch"] = torch
import vortex
cpu = vortex.device("cpu")
values = np.random.default_rng().standard_normal((5, 7)).astype(np.float32)
"""


def run(program: str):
    done = subprocess.run([sys.executable, "-c", STAND_IN % (str(ROOT / "python"), str(BUILD / "python")) + textwrap.dedent(program)],
                          capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr


def test_tensors_are_read_without_dlpack():
    run("""
        for array, dtype in [(values, "f32"), (values.astype(np.float64).T, "f64"), (values[1::2, ::3].astype(np.int32), "i32"),
                             (values[:, 3], "f32"), (values[:0], "f32"), (np.array(3, np.float32), "f32"), (values[::-1, ::-2], "f32")]:
            wrapped = cpu.wrap(Tensor(array))
            assert wrapped.dtype == dtype and wrapped.shape == array.shape
            assert array.size == 0 or np.array_equal(wrapped.numpy(), array), (wrapped.numpy(), array)
        assert Tensor.asked == 0
    """)


@pytest.mark.parametrize("change", ["layout=torch.sparse_coo", "dtype=torch.complex64", "is_cpu=False", "shape=None",
                                    "shape=(5, 'x')", "shape=(35,)", "data_ptr=None", "stride=lambda: [7, 1]"])
def test_what_is_not_plain_is_left_to_dlpack(change):
    run(f"""
        try:
            cpu.wrap(Tensor(values, {change}))
        except TypeError as error:
            assert "a Tensor, not an array of a supported element type: no DLPack for this one" in str(error), error
        else:
            raise SystemExit("was taken")
        assert Tensor.asked > 0
    """)


def test_tensors_of_other_classes_are_left_to_dlpack():
    run("""
        class Other(torch.Tensor):
            asked = []
            def __dlpack__(self, **options):
                Other.asked.append(1)
                raise BufferError
        Other.__name__ = "Tensor"
        try:
            cpu.wrap(Other(values))
        except TypeError:
            assert Other.asked
        else:
            raise SystemExit("was taken")
    """)


EXCHANGE = """
import ctypes
class Header(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p)]
class Described(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32), ("rank", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]
Describe = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Described))
Current = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
class Table(ctypes.Structure):
    _fields_ = [("header", Header), ("others", ctypes.c_void_p * 3), ("describe", Describe), ("current", Current)]
CODES = {"f": 2, "i": 0, "u": 1, "V": 10}
asked, fails = [], []
def describe(tensor, out):
    asked.append(tensor)
    if fails:
        return -1
    array, into = tensor.array, out.contents
    tensor.kept = [(ctypes.c_int64 * array.ndim)(*array.shape), (ctypes.c_int64 * array.ndim)(*(s // array.itemsize for s in array.strides))]
    into.data, into.offset = array.ctypes.data - 24, 24
    into.device_type, into.device, into.rank, into.code, into.bits, into.lanes = 1, 0, array.ndim, CODES[array.dtype.kind], 8 * array.itemsize, 1
    into.shape, into.strides = tensor.kept[0], None if array.flags.c_contiguous and array.ndim == 2 else tensor.kept[1]
    return 0
def capsule(major, previous=None):
    table = Table(Header(major, 3, previous), (ctypes.c_void_p * 3)(), Describe(describe), Current(lambda kind, index, out: 0))
    tables.append(table)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(table), b"dlpack_exchange_api", None)
tables = []
"""


def test_tensors_are_read_by_functions_for_c():
    run(EXCHANGE + textwrap.dedent("""
        Tensor.__dlpack_c_exchange_api__ = capsule(1)
        Tensor.data_ptr = Tensor.stride = None
        for array, dtype in [(values, "f32"), (values.astype(np.float64).T, "f64"), (values[1::2, ::3].astype(np.int32), "i32"), (values[:, 3], "f32"),
                             (values[:0], "f32"), (np.array(3, np.float32), "f32"), (values[::-1, ::-2], "f32")]:
            wrapped = cpu.wrap(Tensor(array))
            assert wrapped.dtype == dtype and wrapped.shape == array.shape, (wrapped, array.shape)
            assert array.size == 0 or np.array_equal(wrapped.numpy(), array), (wrapped.numpy(), array)
        assert len(asked) == 7 and Tensor.asked == 0
        bytes_ = values.view("V1")  # of one byte: f8 for DLPack
        torch.void8 = None
        assert cpu.wrap(Tensor(bytes_)).dtype == "f8e4m3"
        try:
            cpu.wrap(Tensor(values, negated=True))
        except ValueError:
            assert len(asked) == 8 and Tensor.asked == 0
        else:
            raise SystemExit("a tensor negated lazily was taken")
    """))


@pytest.mark.parametrize("made", ["capsule(2)", "7", "None"])
def test_other_tables_are_not_used(made):
    run(EXCHANGE + textwrap.dedent(f"""
        Tensor.__dlpack_c_exchange_api__ = {made}
        assert np.array_equal(cpu.wrap(Tensor(values)).numpy(), values) and not asked
    """))


def test_an_older_table_and_what_it_cannot_describe():
    run(EXCHANGE + textwrap.dedent("""
        capsule(1)
        Tensor.__dlpack_c_exchange_api__ = capsule(2, ctypes.addressof(tables[0]))
        assert np.array_equal(cpu.wrap(Tensor(values)).numpy(), values) and len(asked) == 1
        fails.append(True)  # read by its own methods then
        assert np.array_equal(cpu.wrap(Tensor(values)).numpy(), values) and len(asked) == 2
    """))


@metile.kernel
def axpy(X, Out, scale, N, BLOCK: metile.constexpr):
    i = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    metile.store(Out + i, metile.load(X + i, mask=i < N) * scale, mask=i < N)


@metile.kernel
def product(A, B, C, M, N, K, BLOCK: metile.constexpr):
    m, n = metile.program_id(0) * BLOCK, metile.program_id(1) * BLOCK
    total = metile.zeros((BLOCK, BLOCK), dtype="f32")
    for k in metile.tile_range(0, K, BLOCK):
        a = metile.tile_load(A, m, k, K, (BLOCK, BLOCK))
        b = metile.tile_load(B, k, n, N, (BLOCK, BLOCK))
        total = metile.dot(a, b, total)
    metile.tile_store(C, m, n, N, total, (BLOCK, BLOCK))


def is_direct(kernel) -> bool:
    return bool(kernel._direct_launches)


def test_matrices_of_other_sizes_are_not_launched_with_known_rows(random):
    for m, n, k in [(32, 32, 32), (32, 32, 32), (64, 32, 96), (32, 64, 32), (64, 32, 96)]:
        a, b = random.standard_normal((m, k), dtype=np.float32), random.standard_normal((k, n), dtype=np.float32)
        c = np.full((m, n), np.nan, np.float32)
        product[(m // 32, n // 32)](a, b, c, m, n, k, BLOCK=32)
        np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)


def test_direct_launches_on_torch(cuda_torch, device, random):  # noqa: F811
    axpy._direct_launches.clear()
    torch, n = cuda_torch, 1000
    x, out = torch.randn(n, device=device), torch.full((n,), float("nan"), device=device)
    launch = axpy[(metile.cdiv(n, 256),)]
    for scale in (2.0, 3.0, -1.5):
        launch(x, out, scale, n, BLOCK=256)
        assert torch.equal(out, x * scale)
    assert is_direct(axpy)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):  # in order with PyTorch's work in its current stream
        big, result = torch.randn(1 << 24, device=device), torch.empty(1 << 24, device=device)
        many = axpy[((1 << 24) // 256,)]
        for _ in range(5):
            big.mul_(1.5)
            many(big, result, 2.0, 1 << 24, BLOCK=256)
            expected = big * 2.0
        assert torch.equal(result, expected)
    launch(x, x, 2.0, n, BLOCK=256)  # one array twice is another kernel
    with pytest.raises(ValueError, match="not contiguous"):
        launch(torch.randn(2 * n, device=device)[::2], out, 2.0, n, BLOCK=256)
    launch(x.clone().requires_grad_(), out, 2.0, n, BLOCK=256)
    assert torch.equal(out, x * 2)
    launch(x.half(), out.half(), 2.0, n, BLOCK=256)
    ours = vortex.asarray(random.standard_normal(n, dtype=np.float32), device)
    kept = vortex.asarray(np.full(n, np.nan, np.float32), device)
    for _ in range(3):
        launch(ours, kept, 2.0, n, BLOCK=256)
    np.testing.assert_array_equal(kept.numpy(), ours.numpy() * 2)
    launch(ours, out, 2.0, n, BLOCK=256)  # of two libraries
    np.testing.assert_array_equal(out.cpu().numpy(), ours.numpy() * 2)
    for m in (32, 64, 64):
        a, b, c = torch.randn(m, m, device=device), torch.randn(m, m, device=device), torch.full((m, m), float("nan"), device=device)
        product[(m // 32, m // 32)](a, b, c, m, m, m, BLOCK=32)
        assert torch.allclose(c.double(), a.double() @ b.double(), rtol=1e-4, atol=1e-4)
    assert is_direct(product)


def test_arrays_of_vortex_kernels_are_used_in_order(device, random):
    program = vortex.compile(source="kernel twice(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x * 2.0 }", device=device)
    metile.set_device(device)
    n = 1 << 22
    values = random.standard_normal(n, dtype=np.float32)
    x, out = vortex.asarray(values, device), vortex.asarray(np.full(n, np.nan, np.float32), device)
    for _ in range(5):
        made = program.twice(x)
        axpy[(n // 256,)](made, out, 3.0, n, BLOCK=256)
        np.testing.assert_array_equal(program.twice(out).numpy(), values * 12)


def test_faults_in_the_streams_of_torch_are_told(cuda_torch, device):  # noqa: F811
    torch = cuda_torch
    program = vortex.compile(source="""
        kernel checked(x: &Tensor<f32, [N]>, out: &mut Tensor<f32, [N]>) {
            let i = thread.global_id
            assert(x[i] < 5.0, "element {} is too large", i)
            out[i] = x[i]
        }
        """, device=device)

    @metile.kernel
    def asserts(X, N, BLOCK: metile.constexpr):
        i = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
        metile.device_assert(metile.load(X + i, mask=i < N) < 5.0, "too large")

    good, out = torch.zeros(64, device=device), torch.zeros(64, device=device)
    bad = torch.full((64,), 9.0, device=device)
    side = torch.cuda.Stream()
    metile.set_device(device)
    for stream in (torch.cuda.current_stream(), side):
        with torch.cuda.stream(stream):
            program.checked(bad, out)
            with pytest.raises(vortex.Error, match="too large"):
                vortex.synchronize(device)
            program.checked(good, out)
            vortex.synchronize(device)
            for _ in range(3):  # the last ones go straight to the runtime
                asserts[(1,)](good, 64, BLOCK=64)
            asserts[(1,)](bad, 64, BLOCK=64)
            with pytest.raises(vortex.Error, match="too large"):
                metile.Device.get().sync()
            metile.Device.get().sync()
