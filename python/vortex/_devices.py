"""Devices, streams and arrays."""
from __future__ import annotations

import functools
import os
import sys

import numpy as np

import _vortex
from _vortex import Array, Device

from . import _foreign

_NUMPY = {"bool": np.bool_, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "i8": np.int8, "i16": np.int16,
          "i32": np.int32, "i64": np.int64, "f16": np.float16, "f32": np.float32, "f64": np.float64}
_NAMES = {np.dtype(kind): name for name, kind in _NUMPY.items()}
_ML = {"bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}  # types of the package ml_dtypes, when it is imported
DTYPES = (*_NUMPY, *_ML)
_SCALARS = {*DTYPES, "usize"}


def device(name: str = "") -> Device:
    """The device of that name ("cpu", "cuda:0"); without one $VORTEX_DEVICE, else the CPU, where the interpreter's arrays are, too. An Error lists the
    names there are."""
    if not isinstance(name, str):
        raise TypeError(f"a device is named by a string, not a {type(name).__name__}")
    return _opened(name or os.environ.get("VORTEX_DEVICE", "cpu").replace("interpreter", "cpu"))


@functools.lru_cache(maxsize=None)
def _opened(name: str) -> Device:
    return _vortex.open_device(name)


def devices() -> list[str]:
    """Names of the devices of this machine."""
    return _vortex.device_names()


@functools.lru_cache(maxsize=None)
def default_stream(name: str):
    return device(name).create_stream()


def synchronize(on: str | Device = "") -> None:
    """Waits for the work that kernels were launched for on the device, in its default stream and in those of other libraries; raises what a
    kernel reported."""
    name = name_of(on)
    for stream in (default_stream(name), *device(name).lent_streams()):
        stream.synchronize()


def name_of(on: str | Device) -> str:
    return on.name if isinstance(on, Device) else device(on).name


def dtype_name(dtype) -> str:
    """The language's name of a NumPy type ("f32") or of such a name."""
    if isinstance(dtype, str) and dtype in DTYPES:
        return dtype
    if dtype is None:  # f64 for NumPy
        raise TypeError("None is no type of elements")
    kind = np.dtype(dtype)
    found = _NAMES.get(kind) or next((name for name, theirs in _ML.items() if kind.name == theirs), None)
    if found is None:
        raise TypeError(f"kernels have no element type for {kind}")
    return found


def is_plain(param: dict) -> bool:
    """The parameter is one number or one tensor of numbers: it has no parts."""
    spelled = param["type"].removeprefix("&").removeprefix("mut ")
    return spelled in _SCALARS or param["is_tensor"] and spelled.removeprefix("Tensor<").split(",")[0] in _SCALARS


def is_dtype(dtype, name: str) -> bool:
    """The type of elements of an array of any library is the language's type of that name."""
    try:
        return dtype_name(dtype) == name
    except TypeError:  # torch.float32
        return str(dtype).rpartition(".")[2] in (_ML.get(name), np.dtype(_NUMPY[name]).name if name in _NUMPY else None)


def has_numpy_dtype(name: str) -> bool:
    return name in _NUMPY or "ml_dtypes" in sys.modules


def numpy_dtype(name: str) -> np.dtype:
    kind = _NUMPY.get(name)
    if kind is None:
        if "ml_dtypes" not in sys.modules:
            raise TypeError(f"NumPy has no element type for {name}; the package ml_dtypes has one, import it first")
        kind = getattr(sys.modules["ml_dtypes"], _ML[name])
    return np.dtype(kind)


def empty(shape, dtype="f32", device: str | Device = "") -> Array:  # noqa: A002 - named as everywhere
    """An uninitialised row-major array on a device."""
    extents = [shape] if isinstance(shape, (int, np.integer)) else list(shape)
    if not all(isinstance(extent, (int, np.integer)) and extent >= 0 for extent in extents):
        raise ValueError(f"a shape is made of integers that are not negative, not {shape!r}")
    extents = [int(extent) for extent in extents]
    return globals()["device"](name_of(device)).empty(dtype_name(dtype), extents)


def asarray(source, device: str | Device = "") -> Array:  # noqa: A002
    """An array on the device: the same memory where the device can use it (on a GPU that of arrays of other libraries there), else a copy."""
    target = globals()["device"](name_of(device))
    if isinstance(source, Array) and source.device.name == target.name:
        return source
    if target.name == "cpu" or not isinstance(source, np.ndarray):
        return _foreign.wrap(target, source)
    values = np.asarray(source, order="C")
    copy = target.empty(dtype_name(values.dtype), list(values.shape))
    copy._write(default_stream(target.name), _words(values))
    return copy


def _words(values: np.ndarray) -> np.ndarray:
    """The same memory as integers: the binding takes no element types of ml_dtypes."""
    return values if values.dtype in _NAMES else values.view(f"u{values.itemsize}")


def _numpy(self: Array) -> np.ndarray:
    """The elements: a view of the same memory on the CPU, a copy from a GPU. Waits for the default stream."""
    stream = default_stream(self.device.name)
    stream.synchronize()
    if self.device.name == "cpu":
        if self.dtype in _ML:
            kind = numpy_dtype(self.dtype)
            words = f"u{8 * kind.itemsize}"
            return self.device.wrap_memory(self.address, words, list(self.shape), list(self.strides), self.read_only, self)._view().view(kind)
        view = self._view()
        return view.view(_NUMPY[self.dtype]) if self.dtype in ("i64", "u64") else view  # DLPack's are NumPy's longlong, another type of that size
    values = np.empty(self.shape, numpy_dtype(self.dtype))
    if values.size and self.contiguous:
        self._read(stream, _words(values))
    elif values.size:
        values[...] = _strided(self, stream, values.itemsize)
    return values


def _strided(array: Array, stream, size: int) -> np.ndarray:
    """The elements of an array on a GPU whose strides leave gaps: all of the memory that they reach, copied as it lies, seen with its strides."""
    reach = [stride * (extent - 1) for stride, extent in zip(array.strides, array.shape)]
    lowest, highest = sum(step for step in reach if step < 0), sum(step for step in reach if step > 0)
    whole = array.device.wrap_memory(array.address + lowest * size, array.dtype, [highest - lowest + 1], None, True, array)
    memory = np.empty(whole.shape, numpy_dtype(array.dtype))
    whole._read(stream, _words(memory))
    return np.lib.stride_tricks.as_strided(memory[-lowest:], array.shape, [stride * size for stride in array.strides])


def _dlpack(self: Array, stream=None, **options):
    """A consumer on a GPU names its stream, which then waits for our work; -1: it needs no waiting."""
    if self.read_only and (options.get("max_version") or (0,))[0] < 1:
        raise BufferError("the array is read-only, and the consumer asks for a form of DLPack that cannot say so: pass a copy")
    if self.device.name == "cpu":
        synchronize(self.device)
    elif stream != -1:
        legacy_default = 1
        _foreign.order(self.device, default_stream(self.device.name), _foreign.wrap_stream(self.device, stream or legacy_default))
    return self._export().__dlpack__(**options)


def _cuda_array_interface(self: Array) -> dict:
    if not self.device.name.startswith("cuda"):
        raise AttributeError("__cuda_array_interface__: the array is not on a GPU")
    kind = numpy_dtype(self.dtype)
    return {"shape": self.shape, "typestr": kind.str, "data": (self.address, self.read_only), "version": 3,
            "strides": tuple(stride * kind.itemsize for stride in self.strides), "stream": None}


def _array(self: Array, dtype=None, copy=None) -> np.ndarray:
    values = self.numpy()
    if dtype is not None and np.dtype(dtype) != values.dtype or copy is False and self.device.name != "cpu":
        if copy is False:
            raise ValueError(f"{self!r} as a NumPy array of {np.dtype(dtype or values.dtype)} is a copy")
        return values.astype(dtype)
    return values.copy() if copy else values


def _repr(self: Array) -> str:
    return f"<vortex.Array {self.dtype}{list(self.shape)} on '{self.device.name}'>"


def _reduce(self: Array) -> tuple:
    """Pickled and copied by its elements, for the device of that name."""
    return asarray, (self.numpy().copy(), self.device.name)


Array.numpy = _numpy
Array.__reduce__ = _reduce
Array.__array__ = _array
Array.__dlpack__ = _dlpack
Array.__dlpack_device__ = lambda self: self._export().__dlpack_device__()
Array.__cuda_array_interface__ = property(_cuda_array_interface)
Array.__repr__ = _repr
