"""Launches that are repeated, and where launches run."""
from __future__ import annotations

import vortex
from vortex import _foreign

from ._arguments import GpuArray, HostArray
from ._specialised import Specialised
from ._values import is_number
from .runtime.device import Device
from .runtime.environment import is_on


def device_for(values: list) -> Device:
    """The GPU that holds arguments, else the chosen device."""
    gpu = next((value.gpu for value in values if isinstance(value, GpuArray)), None)
    return Device.of(gpu) if gpu else Device.get()


def in_stream(device: Device, values: list, launch) -> None:
    """In order with the device's own stream where arrays of both are used."""
    given = [value.value for value in values if isinstance(value, GpuArray)]
    is_mixed = len(given) < len(values) or any(isinstance(value, vortex.Array) for value in given)
    _foreign.in_stream(device.native, device.stream, _foreign.stream_for(device.native, given), launch, takes_ours=is_mixed, leaves_ours=is_mixed)


def finish(values: list) -> None:
    for value in values:
        if isinstance(value, (HostArray, GpuArray)):
            value.finish()


def interprets() -> bool:
    return is_on("METILE_INTERPRET") or is_on("METILE_CHECK")


class Repeated:
    """What is run by a call without arguments."""

    def repeat(self, n: int) -> None:
        """Runs it `n` times in order."""
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise ValueError(f"repeat takes a number of times, not {n!r}")
        for _ in range(n):
            self()


class Dispatcher(Repeated):
    """A launch that can be repeated without checks. What it uses stays alive with it."""

    def __init__(self, specialised: Specialised, values: list, numbers: dict, grid: tuple):
        self._specialised, self._values, self._numbers, self._grid = specialised, values, numbers, grid
        self._device = None if interprets() or 0 in grid else device_for(values)
        if self._device is not None:
            self._launch = specialised.loaded(self._device).prepare(self._device.native, self._device.stream,
                                                                    specialised.arguments(self._device, values, numbers, grid), [])
        arrays = [value for value in values if not is_number(value)]
        is_in_place = self._device is not None and bool(arrays) and all(isinstance(value, GpuArray) for value in arrays)
        libraries = {type(value.value) for value in arrays} if is_in_place else set()  # of one library: its work is in order in its stream
        self._is_on_host = self._device is not None and self._device.is_cpu and all(value.is_in_place for value in arrays)
        self._is_ours, self._is_torch = libraries == {vortex.Array}, bool(libraries) and libraries <= set(_foreign.torch_types())

    def __reduce__(self):
        raise TypeError(f"a prepared launch of kernel '{self._specialised.name}' cannot be pickled: prepare it where it runs")

    @property
    def code_bytes(self) -> int:
        """0 in the interpreter."""
        facts = {} if self._device is None else self._specialised.facts(self._device)
        return facts.get("object_bytes", facts.get("ptx_bytes", 0))

    def __call__(self, *given) -> None:
        if given:
            raise TypeError(f"a prepared launch of kernel '{self._specialised.name}' runs on the arguments that it was prepared with and takes no others")
        if self._is_on_host:
            self._launch.submit(self._device.stream)
            return
        if self._is_ours:
            self._launch.submit(self._device.stream)
            return
        if self._is_torch and self._launch.submit_to_torch(self._device.index):
            return
        if 0 in self._grid:
            return
        for value in self._values:
            if isinstance(value, HostArray):
                value.refresh()
        if self._device is None:
            self._specialised.interpret(self._values, self._numbers, self._grid, is_on("METILE_CHECK"))
        else:
            for slot in self._specialised.slots:
                if slot.rank and not self._device.is_cpu:
                    self._values[slot.argument].on(self._device, slot.is_written)
            in_stream(self._device, self._values, self._launch.submit)
        finish(self._values)
