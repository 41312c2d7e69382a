"""Buffers: arrays that kernels and NumPy share."""
from __future__ import annotations

import math
import sys
import threading

import numpy as np

import _vortex
import vortex

from .._params import dtype_of, numpy_dtype
from .._values import unwrap
from . import copies
from .device import Device


def _extents(shape) -> tuple:
    extents = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if isinstance(shape, np.ndarray) and shape.ndim:
        raise TypeError("Buffer() takes a shape, not an array: Buffer(data=array), or Buffer.from_numpy(array)")
    for extent in extents:
        if not isinstance(unwrap(extent), (int, np.integer)):
            raise TypeError(f"a shape is made of integers, not of {type(unwrap(extent)).__name__}: {shape!r}")
        if unwrap(extent) < 0:
            raise ValueError(f"a shape is made of extents that are not negative: {shape!r}")
    return tuple(int(extent) for extent in extents)


class Buffer:
    """Memory of a shape and dtype. Made from a C-contiguous array it shares the array's memory. `numpy()` is always the same view. On a GPU it is a
    pair with a copy there, made equal at three points: a launch copies there what the host may have changed (since `numpy()`, or while
    someone holds the view or the array), `numpy()` copies back what launches wrote, and so does `Device.sync()` for views that someone holds."""

    def __init__(self, shape=None, dtype=None, data=None):
        if shape is not None:
            shape = _extents(shape)
        if data is not None:
            array = np.asarray(data)
            dtype_of(array, "data")
            if dtype is not None and numpy_dtype(dtype) != array.dtype:
                raise ValueError(f"Buffer(dtype={dtype!r}, data=…): the data has elements of type {array.dtype}")
            if shape is not None and array.shape != shape:
                raise ValueError(f"Buffer(shape={shape!r}, data=…): the data has the shape {array.shape}")
            self._array = array if array.flags.c_contiguous else np.ascontiguousarray(array)
        else:
            if shape is None:
                raise TypeError("Buffer() takes a shape or data=")
            dtype = np.float32 if dtype is None else dtype
            self._array = np.zeros(shape, numpy_dtype(dtype))
            try:
                dtype_of(self._array, "the buffer")
            except TypeError as error:
                raise TypeError(f"Buffer(dtype={dtype!r}): {str(error).replace(chr(39) + 'the buffer' + chr(39), 'it')}") from None
        self._flat = self._array.reshape(-1)
        self._flat.flags.writeable = self._array.flags.writeable
        self._mirrors: dict[str, _vortex.Mirror] = {}  # by device
        self._lock = threading.Lock()  # of mirrors that copy
        self._wrapped = None
        self.begin = self._flat.ctypes.data  # addresses in host memory
        self.end = self.begin + self._flat.nbytes
        self.is_read_only = not self._flat.flags.writeable
        self._name = "the buffer"  # for messages: the parameter that it was given for last

    @classmethod
    def zeros(cls, shape, dtype=np.float32) -> Buffer:
        return cls(shape, dtype)

    @classmethod
    def empty(cls, shape, dtype=np.float32) -> Buffer:
        """Uninitialised."""
        return cls(data=np.empty(_extents(shape), numpy_dtype(dtype)))

    @classmethod
    def from_numpy(cls, array) -> Buffer:
        return cls(data=array)

    @property
    def shape(self) -> tuple:
        return self._array.shape

    @property
    def dtype(self) -> np.dtype:
        return self._array.dtype

    @property
    def nbytes(self) -> int:
        return self._array.nbytes

    @property
    def size(self) -> int:
        return math.prod(self._array.shape)

    @property
    def metal_buffer(self):
        """The memory, as programs for Apple GPUs ask for it."""
        return self.numpy()

    def numpy(self) -> np.ndarray:
        """The elements; waits for the device."""
        if not self._bring():
            Device.get().stream.synchronize()
        self._lend()
        return self._array

    def __array__(self, dtype=None, copy=None):
        values = self.numpy()
        return values.astype(dtype) if dtype is not None else values

    def sync_to_source(self) -> None:
        """Nothing to do: the buffer is the array's memory."""

    def sync_from_source(self) -> None:
        """Nothing to do: the buffer is the array's memory."""

    def _bring(self, to: Device | None = None) -> bool:
        """The newest elements into the array, if a device other than `to` has them."""
        if to is not None and len(self._mirrors) == 1 and to.id in self._mirrors:
            return False
        with self._lock:
            for name, mirror in self._mirrors.items():
                if mirror.is_device_newer and (to is None or name != to.id):
                    device = Device.of(name)
                    self._told(mirror, name, lambda: mirror.for_host(device.stream))  # noqa: B023 - called at once
                    device.pending.discard(self)
                    self._lend()
                    return True
        return False

    def host(self) -> np.ndarray:
        """The elements in one dimension, for work on the host."""
        self._bring()
        self._lend()
        return self._flat

    def _lend(self) -> None:
        """From now on the array may change."""
        for mirror in tuple(self._mirrors.values()):
            mirror.host_changed()

    def settle(self, device: Device) -> None:
        """After a wait for the device: its elements into the array, if someone holds that."""
        with self._lock:
            mirror, held = self._mirrors[device.id], self._is_held()
            self._told(mirror, device.id, lambda: mirror.settle(device.stream, held))
            if not mirror.is_device_newer:
                device.pending.discard(self)

    def resident(self, device: Device, is_written: bool, tells: bool):
        """As on(), of a buffer that a launch has had there."""
        if len(self._mirrors) == 1:  # no other device has newer elements
            if self._wrapped is not None:
                return self._wrapped
            mirror = self._mirrors.get(device.id)
            if mirror is not None and not tells:
                return self._on(device, mirror, is_written)
        return self.on(device, is_written, self._name)

    def on(self, device: Device, is_written: bool, what: str = "the buffer"):
        """The memory for a launch there."""
        self._name = what
        self._bring(to=device)
        if device.is_cpu:
            if self._wrapped is None:
                self._wrapped = self._mirror(device).for_device(device.stream, False, False)
            return self._wrapped
        mirror = self._mirror(device)
        return self._told(mirror, device.id, lambda: self._on(device, mirror, is_written))

    def _on(self, device: Device, mirror: _vortex.Mirror, is_written: bool):
        with self._lock:
            is_new = is_written and not mirror.is_device_newer  # else it waits for the next sync() already
            array = mirror.for_device(device.stream, is_written, self._is_held())
            if is_new:
                device.pending.add(self)
        return array

    def _mirror(self, device: Device) -> _vortex.Mirror:
        mirror = self._mirrors.get(device.id)
        if mirror is None:
            flat = self._flat
            mirror = self._mirrors[device.id] = _vortex.Mirror(device.native, flat.ctypes.data, dtype_of(flat, self._name), flat.size,
                                                               not flat.flags.writeable, flat)
        return mirror

    def _is_held(self) -> bool:
        """Someone else may read and write the array: by a reference to it, or as the owner of the memory that it is a view of."""
        return self._array.base is not None or self._references() > _ALONE

    def _references(self) -> int:
        return sys.getrefcount(self._array)

    def _told(self, mirror: _vortex.Mirror, device: str, work):
        """Does the work, which may copy."""
        if not copies.are_told():
            return work()
        before = mirror.copies
        result = work()
        for made, had, way in zip(mirror.copies, before, (f"host to {device}", f"{device} to host")):
            if made > had:
                copies.tell(self._name, self.nbytes, way)
        return result

    def __reduce__(self):
        """Pickled and copied by its elements: the other buffer has memory of its own."""
        return Buffer.from_numpy, (self.numpy().copy(),)

    def __repr__(self):
        return f"Buffer(shape={self.shape}, dtype={self.dtype})"


MtileBuffer = Buffer
_ALONE = Buffer(1)._references()  # to an array that nobody else holds
