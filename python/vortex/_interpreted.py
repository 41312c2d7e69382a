"""Kernels in the reference interpreter, on the arrays' own memory."""
from __future__ import annotations

import numpy as np

from _vortex import Array

from . import _devices, _errors, _foreign, _launch, _overlap


def run(kernel, args: tuple, out):
    """One launch. `kernel`: of class Kernel, of one instance."""
    info, params, leaves, loaded = kernel._info, kernel._info["params"], list(args), None
    cpu = _devices.device("cpu")
    if out is not None or not all(_devices.is_plain(param) for param in params):
        loaded = kernel._load(cpu, args)  # which knows the parts of structs
        params, leaves = loaded.params, loaded.leaves(args)
    arguments, kept = [], []
    for index, (param, value) in enumerate(zip(params, leaves)):
        if not param["is_tensor"]:
            arguments.append((0, [], [], _bits(kernel.name, param, value)))
            continue
        array = _array(kernel.name, index, param, value)
        kept.append((param, array))
        arguments.append((array.address, list(array.shape), list(array.strides), 0))
    names = loaded.result_names if loaded else []
    wanted = [storage if host is None else host for storage, host in _launch.outputs_of(cpu, kernel.name, names, out)]
    used = [_overlap.HostArray(f"argument '{param['name']}'", _bytes(array), param["is_written"]) for param, array in kept]
    used += [_overlap.HostArray(f"result '{name}'", _bytes(_storage(array)), True) for name, array in zip(names, wanted) if array is not None]
    if reason := _overlap.overlap_of(used):
        raise _errors.RuntimeFailure(f"cannot launch kernel '{kernel.name}': {reason}")
    made = kernel._native.interpret(info["unique_name"], arguments, kernel._request("cpu", args), kernel._program.check, 0, _launch.write_line,
                                    kernel._grid)
    if len(made) != info["results"] and loaded is None:
        loaded = kernel._load(cpu, args)
    results = [_result(cpu, *result) for result in made]
    for name, target, result in zip(names, wanted, results):
        if target is not None:
            _store(kernel.name, name, target, result)
    if out is not None and all(target is not None for target in wanted):
        return out
    results = _launch._like(cpu, leaves, results)
    if out is None:
        return _launch.several(loaded.shaped(results) if loaded else results)
    return tuple(result if given is None else given for given, result in zip(out, results))


class Launch:
    """A launch that can be repeated: the results lie in the same memory each time."""

    def __init__(self, kernel, args: tuple, results: list):
        self._kernel, self._args, self._results = kernel, args, results

    def submit(self, stream) -> None:
        run(self._kernel, self._args, tuple(self._results) or None)

    def repeat(self, stream, times: int) -> None:
        for _ in range(times):
            self.submit(stream)


def _array(kernel: str, index: int, param: dict, value) -> Array:
    """Refused as on a device."""
    what = f"argument {index + 1} ('{param['name']}') of kernel '{kernel}'"
    _overlap.refuse_masked(value, f"'{param['name']}' of kernel '{kernel}'")
    array = value if isinstance(value, Array) and value.device.name == "cpu" else _foreign.wrap(_devices.device("cpu"), value, what)
    if param["is_written"] and array.read_only:
        raise ValueError(f"{what} is written by the kernel, but the array is read-only")
    if array.dtype != param["dtype"]:
        raise TypeError(f"{what} has elements of type {param['dtype']}; an array of {array.dtype} was given")
    if len(array.shape) != param["rank"]:
        raise ValueError(f"{what} has {param['rank']} dimension{'s' if param['rank'] != 1 else ''}; an array of {len(array.shape)} was given")
    return array


def _result(cpu, dtype: str, extents: list, data: bytes) -> Array:
    memory = np.frombuffer(bytearray(data) or bytearray(8), np.uint8)
    return cpu.wrap_memory(memory.ctypes.data, dtype, extents, None, False, memory)


def _storage(target) -> Array:
    return target if isinstance(target, Array) else _foreign.wrap(_devices.device("cpu"), target)


def _store(kernel: str, name: str, target, result: Array) -> None:
    storage = _storage(target)
    if (storage.dtype, tuple(storage.shape)) != (result.dtype, tuple(result.shape)):
        given, needed = (f"a tensor {array.dtype}[{', '.join(map(str, array.shape))}]" for array in (storage, result))
        raise _errors.RuntimeFailure(f"kernel '{kernel}': the storage for result '{name}' is {given}, needed is {needed.removeprefix('a tensor ')}")
    _bytes(storage)[...] = _bytes(result)


def _bytes(array: Array) -> np.ndarray:
    """The elements as integers of their size: NumPy has no type for some."""
    size = array.nbytes // max(int(np.prod(array.shape)), 1) or 1
    return array.device.wrap_memory(array.address, f"u{8 * size}", list(array.shape), list(array.strides), array.read_only, array)._view()


def _bits(kernel: str, param: dict, value) -> int:
    kind = _devices.numpy_dtype(param["dtype"])
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]  # an element of an array that is given for a tuple
    if isinstance(value, (bool, np.bool_, int, float, np.integer, np.floating)):
        if kind.kind not in "iub":
            with np.errstate(over="ignore"):
                rounded = kind.type(value)
            if np.isfinite(float(rounded)) or not np.isfinite(float(value)):
                return int.from_bytes(rounded.tobytes(), "little")
            raise _errors.RuntimeFailure(f"cannot launch kernel '{kernel}': argument '{param['name']}' is a scalar {param['dtype']}, which cannot hold {value!r}")
        if int(value) == value and np.iinfo(kind).min <= int(value) <= np.iinfo(kind).max if kind.kind != "b" else value in (0, 1):
            return int(value) & (1 << 64) - 1
        raise _errors.RuntimeFailure(f"cannot launch kernel '{kernel}': argument '{param['name']}' is a scalar {param['dtype']}, which cannot hold {value!r}")
    raise TypeError(f"'{param['name']}' of kernel '{kernel}' is a {param['dtype']}, not {value!r}")
