"""Buffers: arrays that kernels and NumPy share."""
from __future__ import annotations

import math

import numpy as np

import vortex
from vortex import _foreign

from .._params import dtype_of
from . import copies
from .device import Device


class Buffer:
    """Memory of a shape and dtype. Made from a C-contiguous array it shares the array's memory. `numpy()` is always the same view; on a GPU a
    copy there is updated at launches that use the buffer, and the view by `numpy()` and `Device.sync()`."""

    def __init__(self, shape=None, dtype=np.float32, data=None):
        if data is not None:
            array = np.asarray(data)
            dtype_of(array, "data")
            self._array = array if array.flags.c_contiguous else np.ascontiguousarray(array)
        else:
            if shape is None:
                raise TypeError("Buffer() takes a shape or data=")
            extents = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
            self._array = np.zeros(extents, dtype)
            dtype_of(self._array, "dtype")
        self._flat = self._array.reshape(-1)
        self._flat.flags.writeable = self._array.flags.writeable
        self._mirrors: dict = {}
        self._newer: Device | None = None
        self._wrapped = None
        self._name = "the buffer"  # for messages: the parameter that it was given for last

    @classmethod
    def zeros(cls, shape, dtype=np.float32) -> Buffer:
        return cls(shape, dtype)

    @classmethod
    def empty(cls, shape, dtype=np.float32) -> Buffer:
        """Uninitialised."""
        extents = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        return cls(data=np.empty(extents, dtype))

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
        return self._array

    def numpy(self) -> np.ndarray:
        """The elements; waits for the device."""
        device = self._newer or Device.get()
        device.stream.synchronize()
        self.download()
        return self._array

    def __array__(self, dtype=None, copy=None):
        values = self.numpy()
        return values.astype(dtype) if dtype is not None else values

    def sync_to_source(self) -> None:
        """Nothing to do: the buffer is the array's memory."""

    def sync_from_source(self) -> None:
        """Nothing to do: the buffer is the array's memory."""

    def download(self) -> None:
        device, self._newer = self._newer, None
        if device is not None and self.size:
            copies.tell(self._name, self.nbytes, f"{device.id} to host")
            self._mirrors[device.id]._read(device.stream, self._flat)
            device.pending.discard(self)

    def on(self, device: Device, is_written: bool, what: str = "the buffer"):
        """The memory for a launch there."""
        if device.is_cpu:
            self.download()
            if self._wrapped is None:
                self._wrapped = _foreign.wrap(device.native, self._flat, what)
            return self._wrapped
        self._name = what
        if device.id not in self._mirrors:
            self._mirrors[device.id] = device.native.empty(vortex._devices.dtype_name(self._flat.dtype), [self.size])
        if self._newer is not device:
            self.download()
            copies.tell(what, self.nbytes, f"host to {device.id}")
            self._mirrors[device.id]._write(device.stream, self._flat)
        if is_written:
            self._newer = device
            device.pending.add(self)
        return self._mirrors[device.id]

    def __repr__(self):
        return f"Buffer(shape={self.shape}, dtype={self.dtype})"


MtileBuffer = Buffer
