"""Launches of loaded kernels: arguments in, results out."""
from __future__ import annotations

import sys

import numpy as np

from _vortex import Array, Device

from . import _devices, _errors, _foreign, _overlap, _parts

_OWN = frozenset(np.dtype(code).num for code in np.typecodes["All"] if code != "V")  # NumPy's types of elements, without structs and those of ml_dtypes


class Loaded:
    """A kernel on a device, with the parts of its parameters and results."""

    def __init__(self, native):
        self.native, self.name = native, native.name
        self.params, results = native.params, native.results
        self.tree = _parts.tree([param["name"] for param in self.params])
        self.has_parts = any("." in param["name"] for param in self.params)
        self._results = _parts.tree([result["name"] for result in results])
        self.result_names = [result["name"] for result in results]
        self._has_fields = any(result.get("is_field") for result in results)  # whose memory they share: ours

    def leaves(self, args) -> list:
        """The arguments as the kernel takes them: numbers and tensors."""
        if len(args) != len(self.tree):
            raise TypeError(f"kernel '{self.name}' takes {len(self.tree)} arguments ({', '.join(self.tree)}), {len(args)} given")
        for name, value in zip(self.tree, args):
            _overlap.refuse_masked(value, f"'{name}' of kernel '{self.name}'")
        if not self.has_parts:
            return list(args)
        out: list = []
        for (name, node), value in zip(self.tree.items(), args):
            _parts.flatten(node, value, f"'{name}' of kernel '{self.name}'", out)
        return out

    def maker(self, value):
        """Of results of the kind of `value`, as the launch takes it; None: they are ours."""
        return _foreign.maker(value) if self.result_names and not self._has_fields else None

    def shaped(self, results: list) -> list:
        """Results as the kernel declares them: a dict for a struct, a tuple for a tuple or an array."""
        return [_parts.gather(node, results) for node in self._results.values()]


def _is_host(value) -> bool:
    """A number, an array of ours, or one of NumPy's own types: a launch on the CPU takes it as it is."""
    kind = type(value)
    return kind is np.ndarray and value.dtype.num in _OWN or kind is int or kind is float or kind is Array


def _holds_result(value) -> bool:
    """Memory that a launch on the CPU writes in place: ours, or an array of NumPy's that is aligned, in one piece and may be written."""
    kind = type(value)
    return kind is np.ndarray and value.flags.carray and value.dtype.num in _OWN or kind is Array


def call(device: Device, loaded: Loaded, args: tuple, out, grid=None):
    """One launch. `out`: None, an array or a tuple of them."""
    if device.name == "cpu" and not loaded.has_parts and len(args) == len(loaded.params) and all(map(_is_host, args)):
        if out is None:
            wanted = ()
        else:
            wanted = out if type(out) is tuple else (out,)
            if len(wanted) != len(loaded.result_names) or not all(map(_holds_result, wanted)):
                return _call_any(device, loaded, args, out, grid)
        made = loaded.native.launch(device, _devices.default_stream("cpu"), args, wanted, write_line, grid, None)
        if out is not None:
            return out
        if not made:
            return None
        first = next((value for value in args if type(value) in (np.ndarray, Array)), None)
        return several(loaded.shaped(made if type(first) is Array else [_host(result) for result in made]))
    if not loaded.has_parts and device.name != "cpu":
        made = loaded.native.launch_resident(device, _devices.default_stream(device.name), args, out, write_line, grid, loaded.maker)
        if made is not None:
            return out if out is not None else several(loaded.shaped(made))
    return _call_any(device, loaded, args, out, grid)


def _call_any(device: Device, loaded: Loaded, args: tuple, out, grid):
    """A launch with arguments and results of any library."""
    given = leaves = loaded.leaves(args)
    back: list = []
    _refuse_shared(device, loaded, given, out)
    if device.name == "cpu":
        leaves = [_foreign.wrap(device, value) if isinstance(value, np.ndarray) and value.dtype.num not in _OWN else value for value in given]
    else:
        leaves = [_uploaded(device, loaded, param, value, back) for param, value in zip(loaded.params, given)]
    outputs = outputs_of(device, loaded.name, loaded.result_names, out)
    back += [(array, host) for array, host in outputs if host is not None]
    storage = [array for array, _ in outputs]
    # The stream is that of the caller's objects: what is wrapped or uploaded here tells none.
    first, theirs = _foreign.leader(device, given)
    make = loaded.maker(first)
    wanted = out if isinstance(out, tuple) else (out,)
    has_ours = any(isinstance(value, Array) for value in leaves) or any(isinstance(value, (Array, np.ndarray)) for value in wanted)
    makes_ours = make is None and bool(loaded.result_names) and any(value is None for value in wanted)
    results = _foreign.in_stream(device, _devices.default_stream(device.name), theirs,
                                 lambda stream: loaded.native.launch(device, stream, tuple(leaves), storage, write_line, grid, make),
                                 takes_ours=has_ours, leaves_ours=has_ours or makes_ours)
    for array, host in back:
        host[...] = array.numpy()
    if out is not None and all(value is not None for value in wanted):
        return out
    if make is None:
        results = _like(device, given, results)
    if out is None:
        return several(loaded.shaped(results))
    return tuple(made if value is None else value for value, made in zip(out, results))


def _refuse_shared(device: Device, loaded: Loaded, leaves: list, out) -> None:
    """Host arrays that share memory, where the launch works on copies of them: on a GPU on those of all, on the CPU on those of strided results."""
    in_place = device.name == "cpu"
    if in_place and out is None:
        return
    named = [(f"argument '{param['name']}'", value, param["is_written"], not in_place)
             for param, value in zip(loaded.params, leaves) if param["is_tensor"] and isinstance(value, np.ndarray)]
    wanted = out if isinstance(out, tuple) else (out,)
    named += [(f"result '{name}'", value, True, not in_place or not value.flags.c_contiguous)
              for name, value in zip(loaded.result_names, wanted) if isinstance(value, np.ndarray)]
    if reason := _overlap.overlap_of([_overlap.HostArray(*row) for row in named]):
        raise _errors.RuntimeFailure(f"cannot launch kernel '{loaded.name}': {reason}")


def _uploaded(device: Device, loaded: Loaded, param: dict, value, back: list):
    """A host array as a copy on the GPU, to be copied back if the kernel writes it."""
    if not param["is_tensor"] or not isinstance(value, np.ndarray):
        return _foreign.adopted(device, value)
    what = f"'{param['name']}' of kernel '{loaded.name}'"
    if not _overlap.is_aligned(value):
        raise ValueError(f"{what} is not aligned to its elements")
    array = _devices.asarray(value, device)
    if param["is_written"]:
        if not value.flags.writeable:
            raise ValueError(f"{what} is written by the kernel, but the array is read-only")
        back.append((array, value))
    return array


def require_on_device(device: Device, loaded: Loaded, leaves: list, out) -> None:
    """A prepared launch on a GPU uses the same memory in every run: host arrays would have to be copied before and after each."""
    if device.name == "cpu":
        return
    named = [(param["name"], value) for param, value in zip(loaded.params, leaves) if param["is_tensor"]]
    named += zip(loaded.result_names, out if isinstance(out, tuple) else (out,))
    for name, value in named:
        if isinstance(value, np.ndarray):
            raise ValueError(f"'{name}' of kernel '{loaded.name}' is a NumPy array: a prepared launch on '{device.name}' takes arrays that are there; "
                             f"vortex.asarray(x, '{device.name}') makes one")


def outputs_of(device: Device, kernel: str, names: list, out, in_place: bool = False) -> list:
    """(storage, host array to copy back to) per result; nothing without `out`. `in_place`: nobody copies back."""
    if out is None:
        return []
    wanted = out if isinstance(out, tuple) else (out,)
    if len(wanted) != len(names):
        raise TypeError(f"kernel '{kernel}' has {len(names)} results, out= has {len(wanted)}")
    pairs = []
    for name, array in zip(names, wanted):
        _overlap.refuse_masked(array, f"out= for '{name}' of kernel '{kernel}'")
        is_host = isinstance(array, np.ndarray)
        if is_host and not array.flags.writeable:
            raise ValueError(f"out= for '{name}' of kernel '{kernel}' is read-only")
        if is_host and not _overlap.is_aligned(array):
            raise ValueError(f"out= for '{name}' of kernel '{kernel}' is not aligned to its elements")
        if array is not None and not hasattr(array, "shape"):
            raise TypeError(f"out= for '{name}' of kernel '{kernel}' is an array, not a {type(array).__name__}")
        is_copied = is_host and not in_place and (device.name != "cpu" or not array.flags.c_contiguous)
        storage = None if array is None else _devices.asarray(np.asarray(array, order="C") if is_copied else array, device)
        pairs.append((storage, array if is_copied else None))
    return pairs


def _like(device: Device, given: list, results: list[Array]) -> list:
    """The results as arrays of the kind of the first array argument."""
    made = _foreign.like(given, results)
    if made is not None:
        return made
    first = next((value for value in given if not np.isscalar(value)), None)
    if isinstance(first, Array) or _foreign.gpu_of(first):
        return results
    return [_host(result) for result in results]


def lasting(args, result: Array):
    """A result that later runs of a prepared launch write: in NumPy's form if the first array given is NumPy's."""
    first = next((value for value in args if not np.isscalar(value)), None)
    return result.numpy() if isinstance(first, np.ndarray) and _devices.has_numpy_dtype(result.dtype) else result


def _host(result: Array):
    """A NumPy array, of rank 0 a number; an Array stays one when NumPy has no type for its elements."""
    if not _devices.has_numpy_dtype(result.dtype):
        return result
    values = result.numpy()
    return values if values.ndim else values[()]


def several(results: list):
    """None, the result, or a tuple of them."""
    return None if not results else results[0] if len(results) == 1 else tuple(results)


def write_line(text: str, system=sys) -> None:
    """Where kernels print, also at the interpreter's end, when the names of this module are gone."""
    if system.stdout is not None:
        system.stdout.write(text + "\n")
