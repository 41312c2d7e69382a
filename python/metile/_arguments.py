"""Arrays as arguments of launches: of NumPy, of other libraries, and buffers."""
from __future__ import annotations

import itertools

import numpy as np

import vortex
from vortex import _foreign, _overlap

from . import _params
from .runtime import copies
from .runtime.buffer import Buffer
from .runtime.device import Device


def _refuse_written(name: str, what: str, is_refused: bool) -> None:
    if is_refused:
        raise ValueError(f"'{name}' is written by the kernel, but the {what} is read-only")


class HostArray:
    """A NumPy array as an argument: the launch is synchronous, and what could not be used in place is copied back."""

    def __init__(self, array: np.ndarray, name: str):
        self._array, self._name = array, name
        self._buffer = Buffer(data=array)
        if not array.flags.c_contiguous:
            copies.tell(f"'{name}'", array.nbytes, "made contiguous")
        self.address = array.ctypes.data
        self.layout = None if array.flags.c_contiguous else (array.shape, array.strides)  # with the address: which elements, in which order
        self._is_written = False

    @property
    def size(self) -> int:
        return self._array.size

    @property
    def nbytes(self) -> int:
        return self._array.nbytes

    def on(self, device: Device, is_written: bool):
        self._note(is_written)
        return self._buffer.on(device, is_written, f"'{self._name}'")

    def host(self, is_written: bool) -> np.ndarray:
        self._note(is_written)
        return self._buffer._flat

    def _note(self, is_written: bool) -> None:
        self._is_written = self._is_written or is_written
        _refuse_written(self._name, "array", is_written and not self._array.flags.writeable)

    @property
    def is_in_place(self) -> bool:
        """On the CPU, kernels work in the array's own memory."""
        return self._buffer._array is self._array

    def refresh(self) -> None:
        """What has changed since a strided array was made contiguous, before the launch runs again."""
        if not self.is_in_place:
            self._buffer.numpy()[...] = self._array

    def finish(self) -> None:
        if not self._is_written:
            return
        result = self._buffer.numpy()
        if result is not self._array:
            copies.tell(f"'{self._name}'", self._array.nbytes, "back into its strides")
            self._array[...] = result


class BufferArgument:
    is_in_place = True
    layout = None

    def __init__(self, buffer: Buffer, name: str):
        self._buffer, self._name, self.size = buffer, name, buffer.size
        self.address, self.nbytes = buffer._flat.ctypes.data, buffer.nbytes

    def on(self, device: Device, is_written: bool):
        self._check(is_written)
        return self._buffer.on(device, is_written, f"'{self._name}'")

    def host(self, is_written: bool) -> np.ndarray:
        self._check(is_written)
        return self._buffer.host()

    def _check(self, is_written: bool) -> None:
        _refuse_written(self._name, "buffer", is_written and not self._buffer._flat.flags.writeable)


class GpuArray:
    """An array of another library in GPU memory (torch, CuPy, vortex): the kernel works in it, in that library's stream."""

    is_in_place = False  # on the CPU
    layout = None

    def __init__(self, value, gpu: str, name: str):
        self.value, self.gpu, self._name = value, gpu, name
        array = _foreign.wrap(vortex.device(gpu), value) if not isinstance(value, vortex.Array) else value
        if not array.contiguous:
            raise ValueError(f"'{name}' is not contiguous: kernels work in place in GPU memory")
        self._array = array.reshape([int(np.prod(array.shape))])
        self.dtype, self.address, self.nbytes, self.size = array.dtype, array.address, array.nbytes, self._array.shape[0]
        self.is_read_only = array.read_only
        self._host = None

    def on(self, device: Device, is_written: bool):
        if device.id != self.gpu:
            raise ValueError(f"'{self._name}' is in the memory of '{self.gpu}', the kernel runs on '{device.id}'")
        _refuse_written(self._name, "array", is_written and self.is_read_only)
        return self._array

    def host(self, is_written: bool = False) -> np.ndarray:
        """For the interpreter: a copy that finish() writes back."""
        _refuse_written(self._name, "array", is_written and self.is_read_only)
        if self._host is None:
            stream = Device.of(self.gpu).stream
            theirs = _foreign.stream_for(self._array.device, [self.value])
            if theirs is not None:
                _foreign.order(self._array.device, theirs, stream)
            copies.tell(f"'{self._name}'", self.nbytes, f"{self.gpu} to host")
            self._host = np.empty(self.size, vortex._devices.numpy_dtype(self.dtype))
            if self.size:
                self._array._read(stream, self._host)
        return self._host

    def finish(self) -> None:
        if self._host is not None and self.size and not self.is_read_only:
            stream = Device.of(self.gpu).stream
            copies.tell(f"'{self._name}'", self.nbytes, f"host to {self.gpu}")
            self._array._write(stream, self._host)
            stream.synchronize()
        self._host = None


def resident(args: tuple, buffers: tuple, device: Device) -> tuple | None:
    """The arguments with the memory of buffers on the device. `buffers`: (position, is it written) of each. None: the general
    way tells what is wrong with them."""
    is_cpu, tells = device.is_cpu, copies.are_told()
    out = list(args)
    for at, (index, is_written) in enumerate(buffers):
        buffer = args[index]
        if is_written and buffer.is_read_only:
            return None
        for other, _ in buffers[:at]:
            other = args[other]
            if not is_cpu and other is not buffer and other.begin < buffer.end and buffer.begin < other.end:
                return None  # copies on a GPU do not show it
        out[index] = buffer.resident(device, is_written, tells)
    return tuple(out)


def host_array(value, name: str) -> np.ndarray | None:
    """Arrays of other libraries in host memory, without a copy. None: it is none."""
    if not isinstance(value, vortex.Array):
        if not hasattr(value, "__dlpack__") or not hasattr(value, "__dlpack_device__"):
            return None
        try:
            where = value.__dlpack_device__()[0]
        except (ValueError, BufferError) as error:  # tensors without memory of PyTorch's
            raise ValueError(f"'{name}' is a {type(value).__name__} that kernels cannot reach: {error}") from None
        if where != 1:
            return None
        value = _foreign.wrap(vortex.device("cpu"), value, f"'{name}'")
    return _params.numpy_of(value, name)


def _memory(value):
    """The NumPy array that an argument is; None: it is none."""
    return value._array if isinstance(value, HostArray) else value._buffer._flat if isinstance(value, BufferArgument) else None


def share_memory(specialised, values: list) -> bool:
    """Two of a launch's arrays, all of them contiguous, have bytes in common, and the kernel writes one."""
    written = {slot.argument for slot in specialised.slots if slot.is_written}
    arrays = sorted({slot.argument for slot in specialised.slots if slot.rank})
    return any((first in written or second in written) and a.address < b.address + b.nbytes and b.address < a.address + a.nbytes
               for first, second in itertools.combinations(arrays, 2) for a, b in ((values[first], values[second]),))


def _named(specialised, index: int) -> str:
    """An argument, with those that are the same array."""
    name, *others = [name for name, kind in zip(specialised.kernel.runtime, specialised.kinds) if not isinstance(kind, str) and kind[1] == index]
    return f"argument '{name}'" + "".join(f" (and '{other}')" for other in others)


def refuse_overlap(specialised, values: list, everywhere: bool) -> None:
    """Of arrays that the runtime sees copies of: strided ones, and with `everywhere` all in host memory (a GPU has a copy of each, the interpreter sees
    no addresses)."""
    if not everywhere and all(getattr(value, "layout", None) is None for value in values):
        return
    written = {slot.argument for slot in specialised.slots if slot.is_written}
    arrays = [_overlap.HostArray(_named(specialised, index), array, index in written, everywhere or values[index].layout is not None)
              for index in sorted({slot.argument for slot in specialised.slots if slot.rank}) if (array := _memory(values[index])) is not None]
    if reason := _overlap.overlap_of(arrays):
        raise ValueError(f"cannot launch kernel '{specialised.name}': {reason}")
