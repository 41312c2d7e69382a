"""Launches that go straight to the runtime: the second of a kind, and those after it. Whatever is not as it was before takes the general way."""
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import _vortex
import vortex
from vortex import _foreign

from ._arguments import resident
from ._dispatch import device_for, interprets
from ._outside import Outside
from ._specialised import Specialised
from .runtime.buffer import Buffer
from .runtime.device import Device, launch_mode


class DirectLaunch(NamedTuple):
    launch: Callable[[_vortex.Stream, tuple, object], bool]
    device: Device
    outside: Outside
    mode: tuple
    buffers: tuple  # (argument, is it written)
    free: set | None  # launches without races; None: all are

    def is_current(self) -> bool:
        return self.mode == launch_mode() and self.outside.is_current()

    def run(self, args: tuple, grid) -> bool:
        """False: nothing has run."""
        if self.free is not None and _numbers_and_grid(args, grid) not in self.free:
            return False
        if self.buffers:
            args = resident(args, self.buffers, self.device)
        return args is not None and self.launch(self.device.stream, args, grid)


def direct_launch(args: tuple, kwargs: dict, grid, specialised: Specialised, values: list, numbers: dict) -> DirectLaunch | None:
    """For launches like this one; None: it is of a kind that there are none of."""
    if specialised.prints or interprets():
        return None
    device = device_for(values)
    arrays = (vortex.Array, Buffer, *((np.ndarray,) if device.is_cpu else _foreign.torch_types()))
    if not all(type(value) in arrays or isinstance(value, (int, float, np.integer, np.floating)) for value in args) or not all(map(_is_equal_to_itself_alone, kwargs.values())):
        return None
    slots = specialised.windows(numbers)
    is_fixed = specialised.depends_on_numbers or any(window for _, _, window, _ in slots)
    fixed = [(index, values[index]) for index, kind in enumerate(specialised.kinds) if kind == "int"] if is_fixed else []
    direct = _vortex.DirectLaunch(specialised.loaded(device), device.native, [(kind, 0) if isinstance(kind, str) else kind for kind in specialised.kinds],
                                  slots, fixed)
    written = {slot.argument for slot in specialised.slots if slot.is_written}
    buffers = tuple((index, index in written) for index, value in enumerate(args) if type(value) is Buffer)
    return DirectLaunch(direct.run, device, specialised.outside, launch_mode(), buffers, specialised.free_launches(_numbers_and_grid(args, grid)))


def _numbers_and_grid(args: tuple, grid) -> tuple:
    """What decides whether a launch has races."""
    return *[value for value in args if isinstance(value, (int, np.integer))], grid


def direct_key(args: tuple, kwargs: dict, grid) -> tuple:
    """Of direct launches: the axes on which there are several instances, the kinds of the arguments, constexprs."""
    if type(grid) is not tuple:
        axes = grid > 1
    elif len(grid) == 1:
        axes = grid[0] > 1
    else:
        axes = 0 not in grid and tuple([extent > 1 for extent in grid])
    if len(kwargs) == 1:
        ((name, value),) = kwargs.items()
        return axes, *map(type, args), (name, value), type(value)
    return axes, *map(type, args), *kwargs.items(), *map(type, kwargs.values())


def _is_equal_to_itself_alone(value) -> bool:
    """Among values of its type: 0.0 equals -0.0, and tuples may hold such."""
    return type(value) in (int, bool, str) or type(value) is float and value != 0
