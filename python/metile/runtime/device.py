"""The device that kernels run on: $METILE_DEVICE, set_device(), else the CPU."""
from __future__ import annotations

import os
import time
import weakref

import vortex

_chosen: list[str | None] = [None]
_devices: dict[str, Device] = {}


def set_device(name: str) -> None:
    """Later launches run there: "cpu", "cuda:0"."""
    vortex.device(name)
    _chosen[:] = [name]


def device_name() -> str:
    return _chosen[0] or os.environ.get("METILE_DEVICE") or "cpu"


_environment = getattr(os.environ, "_data", None)  # getenv through os.environ costs a microsecond per name


_SETTINGS = ("METILE_DEVICE", "METILE_INTERPRET", "METILE_CHECK", "METILE_ONLINE_SOFTMAX")
_DEVICE, _INTERPRET, _CHECK, _ONLINE_SOFTMAX = _SETTINGS if _environment is None else map(os.fsencode, _SETTINGS)
_setting = os.environ.get if _environment is None else _environment.get


def launch_mode() -> tuple:
    """What the settings say about where and how kernels run, to be compared."""
    return _setting(_DEVICE), _setting(_INTERPRET), _setting(_CHECK), _setting(_ONLINE_SOFTMAX), _chosen[0]


class Device:
    """A device; `get()` gives the one that launches use now."""

    supports_tensor_ops = False  # products are in true f32

    def __init__(self, name: str):
        self._native = vortex.device(name)
        self.name: str = self._native.product
        self.id = name
        self.index = int(name.partition(":")[2] or 0)
        self.stream = vortex._devices.default_stream(name)  # that of vortex: arrays of one are used by kernels of the other
        self.pending: weakref.WeakSet = weakref.WeakSet()  # buffers whose device copy is newer than the host's
        self._started = time.perf_counter()
        self._elapsed = 0.0

    @classmethod
    def get(cls) -> Device:
        return cls.of(device_name())

    @classmethod
    def of(cls, name: str) -> Device:
        return _devices.get(name) or _devices.setdefault(name, cls(name))

    @property
    def native(self):
        return self._native

    @property
    def is_cpu(self) -> bool:
        return self.id == "cpu"

    @property
    def max_threadgroup_memory(self) -> int:
        """Bytes of shared memory of a block; on the CPU only the memory limits it."""
        return self._native.memory_bytes if self.is_cpu else 232448

    @property
    def max_threads_per_threadgroup(self) -> int:
        return 1024

    def sync(self) -> None:
        """Waits for the launches; views that Buffer.numpy() gave hold the results then."""
        vortex.synchronize(self._native)
        for buffer in list(self.pending):
            buffer.settle(self)
        now = time.perf_counter()
        self._elapsed, self._started = now - self._started, now

    def flush(self) -> None:
        """Launches are handed over as they are made: nothing to do."""

    def gpu_elapsed(self) -> float:
        """Seconds between the last two sync()."""
        return self._elapsed
