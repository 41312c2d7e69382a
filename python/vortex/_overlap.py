"""What launches refuse of host arrays. The runtime finds it by their addresses; where it is given copies instead (on GPUs, of strided arrays, in
the interpreter) these functions do. Both packages ask here."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np


class HostArray(NamedTuple):
    what: str  # "argument 'x'"
    array: np.ndarray
    is_written: bool
    is_copied: bool = True  # the runtime does not see its address


def overlap_of(arrays: list[HostArray]) -> str | None:
    """Why these cannot be arrays of one launch: memory that is written belongs to one of them alone. None: they can."""
    for index, (what, array, is_written, is_copied) in enumerate(arrays):
        if is_written and is_copied and _has_elements_in_common(array):
            return f"{what} is written, and elements of the array share memory"
        for other in arrays[:index]:
            if (is_written or other.is_written) and (is_copied or other.is_copied) and _is_shared(array, other.array):
                return f"{other.what} and {what} share memory, and the kernel writes {what if is_written else other.what}"
    return None


def refuse_masked(value, what: str) -> None:
    if isinstance(value, np.ndarray) and hasattr(value, "mask"):
        raise TypeError(f"{what} is a masked array, and kernels see no masks: pass array.filled(…) or array.data")


def is_aligned(array: np.ndarray) -> bool:
    """To its elements, with all strides multiples of them: kernels work on no others, on any device."""
    if not array.size:
        return True
    steps = [stride for stride, extent in zip(array.strides, array.shape) if extent > 1]
    return not any(number % array.itemsize for number in (array.ctypes.data, *steps))


def _is_shared(a: np.ndarray, b: np.ndarray) -> bool:
    try:
        return np.shares_memory(a, b, max_work=100_000)
    except getattr(np, "exceptions", np).TooHardError:
        return True


def _has_elements_in_common(array: np.ndarray) -> bool:
    """Windows and repeated elements. Every axis steps over all that the axes of smaller steps reach."""
    if not array.size:
        return False
    reach = 0
    for step, extent in sorted((abs(step), extent) for step, extent in zip(array.strides, array.shape) if extent > 1):
        if step <= reach:
            return True
        reach += step * (extent - 1)
    return False
