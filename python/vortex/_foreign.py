"""Arrays of other libraries in GPU memory, and the streams those libraries work in. Libraries are recognised when present, never imported."""
from __future__ import annotations

import functools
import sys

import numpy as np

from _vortex import Array, torch_stream

_CUDA = 2  # DLPack's kDLCUDA
_kept: dict = {}  # CuPy's streams that work was launched in, by handle: CuPy destroys those that nobody holds
_PLAIN = (int, float, bool, np.ndarray, np.generic)


def _is_of(value, library: str, name: str) -> bool:
    module = sys.modules.get(library)
    return module is not None and isinstance(value, getattr(module, name, ()))


def is_torch(value) -> bool:
    return _is_of(value, "torch", "Tensor")


def torch_types() -> tuple:
    """Those whose objects are launched on directly."""
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    return () if tensor is None else (tensor,)


def is_cupy(value) -> bool:
    return _is_of(value, "cupy", "ndarray")


def gpu_of(value) -> str | None:
    """"cuda:1" for an array in that GPU's memory, of any library; None for everything else."""
    if isinstance(value, _PLAIN):
        return None
    if isinstance(value, Array):
        return value.device.name if value.device.name.startswith("cuda") else None
    if is_torch(value):
        return f"cuda:{value.get_device()}" if value.is_cuda else None
    if hasattr(value, "__dlpack_device__"):
        kind, index = value.__dlpack_device__()
        return f"cuda:{int(index)}" if int(kind) == _CUDA else None
    return "cuda:0" if hasattr(value, "__cuda_array_interface__") else None


def stream_handle(value) -> int | None:
    """The CUDA stream in which the array's library works now; None: the library has no such thing."""
    if isinstance(value, (*_PLAIN, Array)):
        return None
    if is_torch(value):
        if not value.is_cuda:
            return None
        handle = torch_stream(value.get_device())  # a tenth of the time of current_stream()
        return int(sys.modules["torch"].cuda.current_stream(value.device).cuda_stream) if handle is None else handle
    if is_cupy(value):
        stream = sys.modules["cupy"].cuda.get_current_stream()
        return int(_kept.setdefault(int(stream.ptr), stream).ptr)
    interface = getattr(value, "__cuda_array_interface__", None)
    stream = interface.get("stream") if interface else None
    return int(stream) if stream else None


@functools.lru_cache(maxsize=64)
def _wrapped(name: str, handle: int):  # by name: an Array makes a new object for its device whenever it is asked
    from ._devices import device

    return device(name).wrap_stream(handle)


def wrap_stream(device, handle: int):
    return _wrapped(device.name, handle)


def stream_for(device, values):
    """The stream that work on these values belongs to: that of the first library that has one; None: one of ours."""
    return leader(device, values)[1]


def leader(device, values):
    """The value whose library has the stream that work on these values belongs to, and the stream; on the CPU, which has none, the first of PyTorch
    or CuPy. (None, None): there is no such library."""
    for value in values:
        if isinstance(value, _PLAIN):
            continue
        is_theirs = is_torch(value) or is_cupy(value)
        if device.name == "cpu":
            if is_theirs:
                return value, None
        elif (handle := stream_handle(value)) is not None:  # PyTorch's streams stay, CuPy's are kept: vortex.synchronize waits for them
            return value, device.lent_stream(handle) if is_theirs else wrap_stream(device, handle)
    return None, None


@functools.lru_cache(maxsize=None)
def _torch_dtypes() -> dict:
    torch = sys.modules["torch"]
    names = {"bool": "bool", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f16": "float16", "bf16": "bfloat16", "f32": "float32",
             "f64": "float64", **{f"{sign}{bits}": f"{kind}{bits}" for sign, kind in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)}}
    return {name: getattr(torch, theirs) for name, theirs in names.items() if hasattr(torch, theirs)}


def maker(value):
    """A function of element type and shape that makes results as arrays of the value's library, in the order of its current stream and from the
    memory that it keeps at hand; None: the value's library makes none."""
    if is_torch(value):
        empty, where, dtypes = sys.modules["torch"].empty, value.device, _torch_dtypes()

        def make(dtype: str, shape: tuple):
            if dtype not in dtypes:
                raise TypeError(f"this PyTorch has no element type for {dtype}")
            return empty(shape, dtype=dtypes[dtype], device=where)

        return make
    if is_cupy(value):
        from ._devices import numpy_dtype

        return lambda dtype, shape: sys.modules["cupy"].empty(shape, numpy_dtype(dtype))
    return None


def order(device, first, then) -> None:
    """What is queued in `then` from now on waits for what is in `first`."""
    event = device.create_event()
    first.record(event)
    then.wait(event)


def in_stream(device, own, stream, launch, *, takes_ours: bool, leaves_ours: bool):
    """Launches in the `stream` of another library, which is ordered with `own` where the launch takes arrays of ours, and where it leaves some.
    None: in `own`."""
    if stream is None:
        return launch(own)
    if takes_ours:
        order(device, own, stream)
    result = launch(stream)
    if leaves_ours:
        order(device, stream, own)
    return result


def adopted(device, value):
    """The value as the runtime takes it: what shows nothing but the CUDA array interface as an Array."""
    return wrap(device, value) if not hasattr(value, "__dlpack__") and gpu_of(value) else value


def wrap(device, value, what: str = "the array"):
    """An Array over the value's memory: by DLPack or the buffer protocol, else by the CUDA array interface."""
    if isinstance(value, np.ndarray):
        return _wrap_numpy(device, value, what)
    if not hasattr(value, "__dlpack__") and hasattr(value, "__cuda_array_interface__"):
        interface = value.__cuda_array_interface__
        if interface.get("mask") is not None:
            raise TypeError("masked arrays are not supported")
        dtype = np.dtype(interface["typestr"])
        strides = interface.get("strides")
        if strides is not None and any(stride % dtype.itemsize for stride in strides):
            raise ValueError("the array's strides are no multiples of its elements")
        from ._devices import dtype_name

        address, is_read_only = interface["data"]
        return device.wrap_memory(address, dtype_name(dtype), list(interface["shape"]),
                                  None if strides is None else [stride // dtype.itemsize for stride in strides], is_read_only, value)
    return device.wrap(value, what)


def _wrap_numpy(device, array: np.ndarray, what: str):
    if not array.dtype.isnative:
        raise TypeError(f"{what} has elements in the other byte order: array.astype(array.dtype.newbyteorder('=')) has not")
    if array.dtype.isbuiltin != 2:
        return device.wrap(array, what)
    from ._devices import dtype_name  # a type of ml_dtypes, which knows no DLPack

    size = array.itemsize
    if device.name != "cpu" or any(stride % size for stride in array.strides):
        raise ValueError("an array of ml_dtypes is used in host memory, with strides that are multiples of its elements")
    return device.wrap_memory(array.ctypes.data, dtype_name(array.dtype), list(array.shape), [stride // size for stride in array.strides],
                              not array.flags.writeable, array)


def like(values, results: list) -> list | None:
    """The results as arrays of the first library among the values, in the same memory; None: there is no other library."""
    for value in values:
        library = "torch" if is_torch(value) else "cupy" if is_cupy(value) else None
        if library:
            return [sys.modules[library].from_dlpack(result) for result in results]
    return None
