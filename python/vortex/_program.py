"""Programs and their kernels as callables."""
from __future__ import annotations

import ctypes
import copy
import functools
import os
import pathlib
import sys
from typing import Any

import numpy as np

import _vortex

from . import _devices, _errors, _foreign
from ._devices import Array, Device


def _compiler():
    """The extension that holds the compiler; LLVM is loaded with it."""
    import _vortex_compiler

    return _vortex_compiler


def _library_paths() -> list[str]:
    """Where `import std…` of programs looks: beside this package when installed, in the checkout otherwise."""
    here = pathlib.Path(__file__).resolve().parent
    return [str(path) for path in (here / "std", here.parents[1] / "std") if path.is_dir()]


def _three(sizes, what: str) -> list[int] | None:
    if sizes is None:
        return None
    values = [sizes] if isinstance(sizes, (int, np.integer)) else list(sizes)
    if not 1 <= len(values) <= 3 or not all(isinstance(value, (int, np.integer)) and value > 0 for value in values):
        raise ValueError(f"{what} is one to three positive integers, not {sizes!r}")
    return [int(value) for value in values] + [1] * (3 - len(values))


class Prepared:
    """A checked launch: calling it runs the kernel on the same arrays again and returns the same results."""

    def __init__(self, kernel: Kernel, launch, stream, results):
        self._launch, self._stream, self._kernel = launch, stream, kernel
        self.results = results

    def __call__(self):
        self._launch.submit(self._stream)
        return self.results

    def repeat(self, times: int) -> None:
        """Runs it `times` times in order."""
        self._launch.repeat(self._stream, times)


class Kernel:
    """A kernel of a program, called with its arguments. It is compiled for a device at the first call."""

    def __init__(self, program: Program, info: dict, grid=None, block=None, loaded: dict[tuple, Any] | None = None):
        self._program, self._info, self._grid, self._block = program, info, grid, block
        self.name: str = info["name"]
        self._loaded: dict[tuple, Any] = {} if loaded is None else loaded  # by what the code depends on: not by the grid

    def __repr__(self):
        params = ", ".join(f"{param['name']}: {param['type']}" for param in self._info["params"])
        return f"<vortex.Kernel {self.name}({params})>"

    def launch(self, *, grid=None, block=None) -> Kernel:
        """The same kernel with explicit numbers of blocks and threads per axis."""
        return Kernel(self._program, self._info, _three(grid, "grid"), _three(block, "block"), self._loaded)

    @property
    def _native(self):
        return self._program._native if self._grid is None else self._program._with_grid

    def __call__(self, *args, out=None):
        """Runs the kernel; results are of the kind of the first array argument, `out` (an array or a tuple of them) receives them instead."""
        if self._program.device == "interpreter":
            return self._interpret(args, out)
        device = _devices.device(self._program.device)
        given = self._bind(args)
        theirs = _foreign.stream_for(device, given)
        copied, args = self._upload(device, given)
        outputs = _wrapped(device, out)
        results = _in_stream(theirs, device, args, outputs, lambda stream: self._load(device, args).launch(device, stream, args, outputs, _print, self._grid))
        for host, array in copied:
            host[...] = array.numpy()
        return out if out is not None else _of_the_kind_of(given, results)

    def prepare(self, *args, out=None) -> Prepared:
        """Checks the launch once; the object returned repeats it without checks."""
        device = _devices.device(self._program.device)
        args = self._bind(args)
        stream = _foreign.stream_for(device, args) or _devices.default_stream(device.name)
        launch = self._load(device, args).prepare(device, stream, args, _wrapped(device, out), self._grid)
        results = launch.results()
        return Prepared(self, launch, stream, out if out is not None else _several(results))

    def source(self, stage: str = "schedule", *args) -> str:
        """Text after a stage of the compiler: irgen, schedule, vxt, llvm, optimized-llvm, assembly."""
        return self._native.text(self._info["unique_name"], stage, self._request(_target(self._program.device), self._bind(args) if args else ()))

    def facts(self, *args) -> dict[str, int]:
        """Resources of the code for these arguments: registers, spilled bytes, operations."""
        loaded = self._load(_devices.device(self._program.device), self._bind(args) if args else ())
        keys = ("registers", "spill_bytes", "shared_bytes", "flops", "bytes_read", "bytes_written")
        return {key: value for key in keys if (value := loaded.fact(key)) is not None}

    def _bind(self, args: tuple) -> tuple:
        params = self._info["params"]
        if len(args) != len(params):
            raise TypeError(f"kernel '{self.name}' takes {len(params)} arguments ({', '.join(param['name'] for param in params)}), {len(args)} given")
        return args

    def _upload(self, device: Device, args: tuple):
        """Host arrays for a GPU: copies, and those to copy back."""
        if device.name == "cpu":
            return [], args
        copied, out = [], []
        for param, value in zip(self._info["params"], args):
            if not hasattr(value, "__dlpack__") and _foreign.gpu_of(value):
                value = _foreign.wrap(device, value)
            elif isinstance(value, np.ndarray):
                array = _devices.asarray(value, device)
                if param["is_written"]:
                    if not value.flags.writeable:
                        raise ValueError(f"'{param['name']}' of kernel '{self.name}' is written by the kernel, but the array is read-only")
                    copied.append((value, array))
                value = array
            out.append(value)
        return copied, tuple(out)

    def _extents(self, args: tuple) -> list:
        extents: list = [None] * len(args)
        for argument, _ in self._info["fixed_extents"]:
            value = args[argument] if argument < len(args) else None
            if value is not None:
                extents[argument] = [int(value)] if np.isscalar(value) else [int(extent) for extent in value.shape]
        return extents

    def _request(self, target: str, args: tuple):
        use_cache = not os.environ.get("VORTEX_NO_CACHE")
        return _compiler().request(target, self._grid, self._block, self._extents(args), use_cache)

    def _load(self, device: Device, args: tuple):
        extents = tuple(tuple(extent) if extent else None for extent in self._extents(args)) if self._info["fixed_extents"] else ()
        key = (device.name, self._grid is not None, tuple(self._block or ()), extents)
        loaded = self._loaded.get(key)
        if loaded is None:
            artifact = self._native.build(self._info["unique_name"], self._request(device.target, args))
            loaded = self._loaded[key] = _vortex.load(device, artifact)
        return loaded

    def _interpret(self, args: tuple, out):
        """In the reference interpreter, on the arrays' own memory."""
        args = self._bind(args)
        arguments = []
        for param, value in zip(self._info["params"], args):
            if not param["is_tensor"]:
                arguments.append((0, [], [], _bits(param["dtype"], value)))
                continue
            array = np.asarray(value)
            if array.dtype != _devices.numpy_dtype(param["dtype"]):
                raise TypeError(f"'{param['name']}' of kernel '{self.name}' has elements of type {param['dtype']}; an array of {array.dtype} was given")
            arguments.append((array.ctypes.data, list(array.shape), [stride // array.itemsize for stride in array.strides], 0))
        made = self._native.interpret(self._info["unique_name"], arguments, self._request("cpu", args), self._program.check, 0, _write_line, self._grid)
        results = [np.frombuffer(bytearray(data), _devices.numpy_dtype(dtype)).reshape(extents) for dtype, extents, data in made]
        for target, result in zip(() if out is None else out if isinstance(out, tuple) else (out,), results):
            target[...] = result
        return out if out is not None else _several(results)


class Program:
    """A compiled program; its kernels are attributes."""

    def __init__(self, name: str, text: str, device: str, dims: dict[str, int], check: bool):
        self.device, self.check = device, check
        self._compile = lambda with_grid: _compiler().compile(name, text, list(dims.items()), _library_paths(), with_grid)
        self._native = self._compile(False)
        self.diagnostics = _errors.diagnostics(self._native.diagnostics())
        if not self._native.ok:
            raise _errors.CompileError(self._native.report, self.diagnostics)
        self.kernels: dict[str, Kernel] = {}
        for info in self._native.kernels():
            self.kernels.setdefault(info["name"], Kernel(self, info))

    @functools.cached_property
    def _with_grid(self):
        """The program for launches that give the numbers of blocks."""
        return self._compile(True)

    def __getattr__(self, name: str) -> Kernel:
        kernels = self.__dict__.get("kernels", {})
        if name not in kernels:
            raise AttributeError(f"the program has no kernel '{name}'; it has {', '.join(kernels) or 'none'}")
        return kernels[name]

    def __dir__(self):
        return [*super().__dir__(), *self.kernels]


class LoadedProgram:
    """A kernel artifact (.vxk), loaded without the compiler."""

    def __init__(self, path: str, device: str):
        self._device = _devices.device(device)
        self._kernel = _vortex.load_file(self._device, str(path))
        self.name: str = self._kernel.name
        self._grid = None

    def launch(self, *, grid) -> LoadedProgram:
        """The same kernel with these numbers of blocks, for kernels whose launches give them."""
        given = copy.copy(self)
        given._grid = _three(grid, "grid")
        return given

    def __call__(self, *args, out=None):
        outputs = _wrapped(self._device, out)
        results = _in_stream(_foreign.stream_for(self._device, args), self._device, args, outputs, lambda stream: self._kernel.launch(self._device, stream, args, outputs, _print, self._grid))
        return out if out is not None else _of_the_kind_of(args, results)


def compile(path=None, *, source: str | None = None, name: str = "<source>", device: str = "", dims: dict[str, int] | None = None,
            check: bool = False) -> Program:
    """Compiles a .vx file, or `source`. `device` is a name of devices(), or "interpreter"; `check` runs kernels in the interpreter and
    reports accesses out of bounds, races and uninitialised reads."""
    if (path is None) == (source is None):
        raise TypeError("compile() takes a path or source=, one of them")
    if source is None:
        source, name = pathlib.Path(path).read_text(encoding="utf-8"), str(path)
    return Program(name, source, "interpreter" if check else device, dims or {}, check)


def load(path, device: str = "") -> LoadedProgram:
    """A kernel that `vortex build` wrote, as a callable."""
    return LoadedProgram(path, device)


def _several(results: list):
    """None, the result, or a tuple of them."""
    return None if not results else results[0] if len(results) == 1 else tuple(results)


def _of_the_kind_of(args: tuple, results: list[Array]):
    """The results in the same memory as arrays of the library whose arrays are given; as our own where those are, as NumPy's otherwise."""
    made = _foreign.like(args, results)
    if made is None:
        first = next((value for value in args if not np.isscalar(value)), None)
        ours = isinstance(first, Array) or _foreign.gpu_of(first)
        made = results if ours else [result.numpy() for result in results]
    return _several(made)


def _wrapped(device: Device, out) -> list:
    if out is None:
        return []
    return [_devices.asarray(array, device) for array in (out if isinstance(out, tuple) else (out,))]


def _in_stream(stream, device: Device, args, outputs, launch) -> list:
    """Launches in the stream of another library, in order with our own arrays; without one in the device's default stream."""
    own = _devices.default_stream(device.name)
    if stream is None:
        return launch(own)
    if outputs or any(isinstance(value, Array) for value in args):
        _foreign.order(device, own, stream)
    results = launch(stream)
    _foreign.order(device, stream, own)
    return results


def _target(device: str) -> str:
    return "cpu" if device == "interpreter" else _devices.device(device).target


def _bits(dtype: str, value) -> int:
    kind = _devices.numpy_dtype(dtype)
    if kind.kind in "iu":
        return int(value) & (1 << 64) - 1
    return int.from_bytes(kind.type(value).tobytes(), "little")


def _write_line(text: str) -> None:
    sys.stdout.write(text + "\n")


def _print(text: str, values: list[int]) -> None:
    parts = text.split("{}")
    line = parts[0]
    for i, part in enumerate(parts[1:]):
        line += (str(ctypes.c_int64(values[i]).value) if i < len(values) else "{}") + part
    _write_line(line)
