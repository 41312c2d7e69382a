"""Kernels: Python functions that are traced, compiled and launched."""
from __future__ import annotations

import functools
import inspect
import os
import warnings

import numpy as np

import _vortex
import vortex
from vortex import _foreign

from .. import _params
from .._trace import LoweringError, OutOfResources, Trace, recording
from .._values import constexpr, is_number, unwrap
from ..runtime.buffer import Buffer
from ..runtime.device import Device

__all__ = ["Kernel", "LoweringError", "OutOfResources", "kernel"]

HINTS = {"WM", "WN", "NUM_SG", "COOPERATIVE", "SEPARATED", "RELAXED_PRECISION", "K_UNROLL", "SWIZZLE", "SWIZZLE_SMEM", "SCHEDULE_ENCODING",
         "num_stages", "num_simdgroups"}
_TILE_THREADS = 128
_ABOUT_RESULTS = {"W0525", "W0631"}  # other warnings are about speed


def _is_hint(name: str) -> bool:
    return name in HINTS or name.startswith("NAX_")


class Specialised:
    """A kernel for one choice of constexprs and argument types. The grid has instances along `axes`."""

    def __init__(self, kernel: Kernel, trace: Trace, threads: int, axes: tuple[int, ...]):
        self.kernel, self.slots, self.shared_bytes = kernel, trace.params, trace.shared_bytes
        self.name = trace.name
        self.text = trace.text([_params.header(slot) for slot in trace.params], threads, axes)
        self._files = trace.sources.texts()
        self._loaded: dict = {}

    @functools.cached_property
    def native(self):
        import _vortex_compiler

        program = _vortex_compiler.from_trace(self.text, self._files)
        found = vortex._errors.diagnostics(program.diagnostics())
        if not program.ok:
            error = LoweringError(program.report)
            error.diagnostics = found
            raise error
        for diagnostic in found:
            if diagnostic.id in _ABOUT_RESULTS or os.environ.get("METILE_WARNINGS") == "1":
                warnings.warn(diagnostic.rendered, stacklevel=5)
        return program

    def request(self, target: str):
        import _vortex_compiler

        return _vortex_compiler.request(target, None, None, [], os.environ.get("METILE_DISABLE_DISK_CACHE") != "1")

    def loaded(self, device: Device):
        code = self._loaded.get(device.id)
        if code is None:
            if not device.is_cpu and self.shared_bytes > device.max_threadgroup_memory:
                raise OutOfResources(f"kernel '{self.name}' needs {self.shared_bytes} bytes of threadgroup memory, the device has {device.max_threadgroup_memory}")
            artifact = self.native.build(self.name, self.request(device.native.target))
            code = self._loaded[device.id] = _vortex.load(device.native, artifact)
        return code

    def arguments(self, device: Device, values: list, numbers: dict, grid: tuple) -> tuple:
        out = []
        for slot in self.slots:
            value = values[slot.argument]
            if slot.rank == 0:
                out.append(value)
            elif slot.rank == 1:
                out.append(value.on(device, slot.is_written))
            else:
                out.append(value.on(device, slot.is_written).matrix(*self._window(slot, value, numbers)))
        return (*out, *grid)

    def _window(self, slot, value, numbers: dict) -> tuple[int, int]:
        stride, offset = (part(numbers) if callable(part) else part for part in (slot.stride, slot.offset))
        if stride <= 0 or offset < 0:
            raise ValueError(f"kernel '{self.name}': a tile has rows of {stride} elements from element {offset} on")
        return offset, stride

    def interpret(self, values: list, numbers: dict, grid: tuple, check: bool) -> None:
        arguments = []
        for slot in self.slots:
            value = values[slot.argument]
            if slot.rank == 0:
                bits = np.float32(value).view(np.uint32) if slot.header.startswith("float") else value & (1 << 64) - 1
                arguments.append((0, [], [], int(bits)))
                continue
            array = value.host()
            address, extents = array.ctypes.data, [array.size]
            if slot.rank == 2:
                offset, stride = self._window(slot, value, numbers)
                address, extents = address + offset * array.itemsize, [max(array.size - offset, 0) // stride, stride]
            arguments.append((address, extents, [], 0))
        arguments += [(0, [], [], extent) for extent in grid]
        try:
            self.native.interpret(self.name, arguments, self.request("cpu"), check, 0, print)
        except vortex.Error as error:
            raise RuntimeError(f"kernel '{self.name}': {error}") from None


class _Array:
    """A NumPy array as an argument: the launch is synchronous, and what could not be used in place is copied back."""

    def __init__(self, array: np.ndarray, name: str):
        self._array, self._name = array, name
        self._buffer = Buffer(data=array)
        self.address = array.ctypes.data
        self._is_written = False

    @property
    def size(self) -> int:
        return self._array.size

    def on(self, device: Device, is_written: bool):
        self._is_written = self._is_written or is_written
        if is_written and not self._array.flags.writeable:
            raise ValueError(f"'{self._name}' is written by the kernel, but the array is read-only")
        return self._buffer.on(device, is_written)

    def host(self) -> np.ndarray:
        self._is_written = self._array.flags.writeable
        return self._buffer._flat

    def finish(self) -> None:
        if not self._is_written:
            return
        result = self._buffer.numpy()
        if result is not self._array:
            self._array[...] = result


class _BufferArgument:
    def __init__(self, buffer: Buffer, name: str):
        self._buffer, self._name = buffer, name
        self.address = buffer._flat.ctypes.data

    def on(self, device: Device, is_written: bool):
        if is_written and not self._buffer._flat.flags.writeable:
            raise ValueError(f"'{self._name}' is written by the kernel, but the buffer is read-only")
        return self._buffer.on(device, is_written)

    def host(self) -> np.ndarray:
        self._buffer.download()
        return self._buffer._flat


class _GpuArray:
    """An array of another library in GPU memory (torch, CuPy, vortex): the kernel works in it, in that library's stream."""

    def __init__(self, value, gpu: str, name: str):
        self.value, self.gpu, self._name = value, gpu, name
        array = _foreign.wrap(vortex.device(gpu), value) if not isinstance(value, vortex.Array) else value
        if not array.contiguous:
            raise ValueError(f"'{name}' is not contiguous: kernels work in place in GPU memory")
        self._array = array.reshape([int(np.prod(array.shape))])
        self.dtype, self.address, self.nbytes, self.size = array.dtype, array.address, array.nbytes, self._array.shape[0]
        self._host = None

    def on(self, device: Device, is_written: bool):
        if device.id != self.gpu:
            raise ValueError(f"'{self._name}' is in the memory of '{self.gpu}', the kernel runs on '{device.id}'")
        if is_written and self._array.read_only:
            raise ValueError(f"'{self._name}' is written by the kernel, but the array is read-only")
        return self._array

    def host(self) -> np.ndarray:
        """For the interpreter: a copy that finish() writes back."""
        if self._host is None:
            stream = Device.of(self.gpu).stream
            theirs = _foreign.stream_for(self._array.device, [self.value])
            if theirs is not None:
                _foreign.order(self._array.device, theirs, stream)
            self._host = np.empty(self.size, vortex._devices.numpy_dtype(self.dtype))
            if self.size:
                self._array._read(stream, self._host)
        return self._host

    def finish(self) -> None:
        if self._host is not None and self.size and not self._array.read_only:
            stream = Device.of(self.gpu).stream
            self._array._write(stream, self._host)
            stream.synchronize()
        self._host = None


class Kernel:
    """A kernel; `kernel[grid](arguments)` launches it."""

    def __init__(self, fn):
        if isinstance(fn, Kernel):
            fn = fn.fn
        functools.update_wrapper(self, fn)
        self.fn, self.name = fn, fn.__name__ if fn.__name__.isidentifier() else "kernel"
        self.signature = inspect.signature(fn)
        for parameter in self.signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(f"kernel '{self.name}': parameters are named one by one, there is no *{parameter.name}")
        self.constexprs = [name for name, parameter in self.signature.parameters.items() if self._is_constexpr(parameter.annotation)]
        self.runtime = [name for name in self.signature.parameters if name not in self.constexprs]
        self._traced: dict = {}
        self._specialised: dict = {}

    def _is_constexpr(self, annotation) -> bool:
        if isinstance(annotation, str):
            try:
                annotation = eval(annotation, self.fn.__globals__)  # noqa: S307 - the function's own annotation
            except Exception:
                return annotation.rpartition(".")[2] == "constexpr"
        return annotation is constexpr

    def __call__(self, *args, **kwargs):
        raise TypeError(f"kernel '{self.name}' is launched on a grid: {self.name}[grid](…)")

    def __getitem__(self, grid) -> Launcher:
        return Launcher(self, grid)

    def get_compiled(self, *args, **kwargs) -> Specialised:
        """Launches once on a grid of one instance; the compiled kernel."""
        return self[(1,)]._run(args, kwargs)[0]

    def bind(self, args: tuple, kwargs: dict) -> tuple[dict, dict]:
        """(runtime arguments, constexprs) by name."""
        names = list(self.signature.parameters)
        if len(args) > len(names):
            raise TypeError(f"kernel '{self.name}' takes {len(self.runtime)} arguments ({', '.join(self.runtime)}), {len(args)} given")
        given = dict(zip(names, args))
        for name, value in kwargs.items():
            if name in given:
                raise TypeError(f"kernel '{self.name}' got two values for '{name}'")
            if name in self.signature.parameters:
                given[name] = value
            elif not _is_hint(name):
                raise TypeError(f"kernel '{self.name}' has no parameter '{name}', and no compiler option has that name")
        for name, parameter in self.signature.parameters.items():
            if name not in given and parameter.default is not parameter.empty:
                given[name] = parameter.default
        missing = [name for name in names if name not in given]
        if missing:
            raise TypeError(f"kernel '{self.name}' misses {', '.join(repr(name) for name in missing)}")
        constants = {name: unwrap(given[name]) for name in self.constexprs}
        return {name: unwrap(given[name]) for name in self.runtime}, constants

    def arguments(self, runtime: dict) -> tuple[list, list, dict]:
        """(values, their kinds, ints by name). A kind says how the argument is traced; arrays over the same memory share one."""
        values, kinds, numbers, seen = [], [], {}, {}
        for index, (name, value) in enumerate(runtime.items()):
            if isinstance(value, Buffer):
                value = _BufferArgument(value, name)
                array = value._buffer._flat
            elif isinstance(value, np.ndarray):
                _params.dtype_of(value, name)
                value = _Array(value, name)
                array = value._buffer._flat
            elif is_number(value):
                values.append(self._number(name, value))
                kinds.append("float" if isinstance(value, (float, np.floating)) else "int")
                if kinds[-1] == "int":
                    numbers[name] = values[-1]
                continue
            elif (gpu := _foreign.gpu_of(value)) is not None:
                value = array = _GpuArray(value, gpu, name)
            else:
                array = _host_array(value)
                if array is None:
                    raise TypeError(f"'{name}' of kernel '{self.name}' is a {type(value).__name__}; arguments are buffers, arrays and numbers")
                _params.dtype_of(array, name)
                value = _Array(array, name)
            dtype = _params.dtype_named(array.dtype, name) if isinstance(array, _GpuArray) else _params.dtype_of(array, name)
            same = (value.address, array.nbytes, dtype)
            first = seen.setdefault(same, index) if array.nbytes else index
            values.append(value)
            kinds.append((dtype, first))
        return values, kinds, numbers

    def _number(self, name: str, value):
        if isinstance(value, (float, np.floating)):
            return float(value)
        if not -(1 << 31) <= int(value) < 1 << 31:
            raise OverflowError(f"'{name}' of kernel '{self.name}' is {int(value)}: integers are i32")
        return int(value)

    def specialise(self, kinds: list, constants: dict, grid: tuple[int, int, int] = (1, 1, 1)) -> Specialised:
        """Axes that the kernel asks no position of are 1 unless `grid` has more, which is another kernel: its instances do the same work."""
        try:
            key = (tuple(kinds), tuple((name, type(value), repr(value) if isinstance(value, float) else value) for name, value in constants.items()),
                   self._outer())
            traced = self._traced.get(key)
        except TypeError:
            raise TypeError(f"kernel '{self.name}': constexprs are hashable values") from None
        if traced is None:
            traced = self._traced[key] = self._trace(kinds, constants)
        trace, threads = traced
        axes = tuple(axis for axis in range(3) if axis in trace.axes or grid[axis] > 1)
        known = self._specialised.get((key, axes))
        if known is None:
            known = self._specialised[key, axes] = Specialised(self, trace, threads, axes)
            _dump(known)
        return known

    def _outer(self) -> tuple:
        """Numbers outside the function that it uses: another value is another kernel."""
        names = self.fn.__globals__
        used = [names.get(name) for name in self.fn.__code__.co_names]
        used += [cell.cell_contents for cell in self.fn.__closure__ or () if _is_filled(cell)]
        return tuple(unwrap(value) for value in used if is_number(value))

    def _trace(self, kinds: list, constants: dict) -> tuple[Trace, int]:
        trace = Trace(self.name, self.fn.__code__)
        given = dict(constants)
        memories: dict = {}
        with recording(trace):
            for index, (name, kind) in enumerate(zip(self.runtime, kinds)):
                if isinstance(kind, str):
                    given[name] = _params.Number(index, name, kind).value(trace)
                else:
                    memory = memories.setdefault(kind[1], _params.Memory(index, name, kind[0]))
                    given[name] = _params.pointer(trace, memory)
            try:
                result = self.fn(**given)
            except RecursionError:
                raise LoweringError(f"kernel '{self.name}': helpers call each other without end") from None
            if inspect.isgenerator(result) or inspect.iscoroutine(result):
                raise LoweringError(f"kernel '{self.name}' has `yield` or `await`")
            if trace.open_loops:
                raise LoweringError(f"kernel '{self.name}': a tile_range loop is left by `break` or `return`{_excerpt(trace)}")
            if result is not None:
                raise LoweringError(f"kernel '{self.name}' returns a value: results are stored through pointers")
        block = constants.get("BLOCK")
        threads = trace.extent or (int(block) if block is not None and is_number(block) else None)
        if threads is None:
            threads = _TILE_THREADS if trace.has_tiles and not trace.uses_threads else 1
        if threads <= 0:
            raise ValueError(f"kernel '{self.name}': BLOCK is {threads}")
        return trace, threads


def _excerpt(trace: Trace) -> str:
    return trace.sources.excerpt(trace.open_loops[-1])


def _is_filled(cell) -> bool:
    try:
        cell.cell_contents
    except ValueError:
        return False
    return True


def _host_array(value):
    """Arrays of other libraries in host memory, without a copy."""
    if isinstance(value, vortex.Array):
        return value.numpy()
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] == 1:
        return value.numpy() if hasattr(value, "numpy") else np.from_dlpack(value)
    return None


def _dump(specialised: Specialised) -> None:
    wanted = os.environ.get("METILE_DEBUG", "").split(",")
    if "tile_ir" in wanted or "all" in wanted:
        import sys

        sys.stderr.write(f"// ---- {specialised.name}: trace\n{specialised.text}\n")
        stages = {"metal_ir": "irgen", "metal_ir_opt": "schedule", "msl": "assembly"}
        for name, stage in stages.items():
            if name in wanted or "all" in wanted:
                sys.stderr.write(f"// ---- {specialised.name}: {name}\n{specialised.native.text(specialised.name, stage, specialised.request('cpu'))}\n")


def grid_of(grid, name: str) -> tuple[int, int, int]:
    values = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
    if not 1 <= len(values) <= 3:
        raise ValueError(f"kernel '{name}': a grid has one to three axes, not {len(values)}")
    if not all(is_number(value) and not isinstance(value, (float, np.floating)) for value in values):
        raise TypeError(f"kernel '{name}': a grid is made of integers, not {grid!r}")
    numbers = [int(unwrap(value)) for value in values]
    if any(not 0 < number < 1 << 31 for number in numbers):
        raise ValueError(f"kernel '{name}': a grid has 1 to 2147483647 instances per axis, not {tuple(numbers)}")
    return (*numbers, *[1] * (3 - len(numbers)))


class Launcher:
    """A kernel on a grid."""

    def __init__(self, kernel: Kernel, grid):
        self.kernel, self.grid = kernel, grid

    def __call__(self, *args, **kwargs) -> None:
        self._run(args, kwargs)

    def prepare(self, *args, **kwargs) -> Dispatcher:
        """Runs the kernel once; the object returned runs it again on the same arguments."""
        specialised, values, numbers, grid = self._run(args, kwargs)
        return Dispatcher(specialised, values, numbers, grid)

    def _run(self, args: tuple, kwargs: dict) -> tuple:
        kernel = self.kernel
        runtime, constants = kernel.bind(args, kwargs)
        grid = grid_of(self.grid(constants) if callable(self.grid) else self.grid, kernel.name)
        values, kinds, numbers = kernel.arguments(runtime)
        specialised = kernel.specialise(kinds, constants, grid)
        if interprets():
            specialised.interpret(values, numbers, grid, os.environ.get("METILE_CHECK") == "1")
        else:
            device = _device_for(values)
            code = specialised.loaded(device)
            try:
                arguments = specialised.arguments(device, values, numbers, grid)
                _in_stream(device, values, lambda stream: code.launch(device.native, stream, arguments, [], _print))
            except vortex.Error as error:
                if "share memory" in str(error) or "overlap" in str(error):
                    raise ValueError(str(error)) from None
                raise
        _finish(values)
        return specialised, values, numbers, grid


def _device_for(values: list) -> Device:
    """The GPU that holds arguments, else the chosen device."""
    gpu = next((value.gpu for value in values if isinstance(value, _GpuArray)), None)
    return Device.of(gpu) if gpu else Device.get()


def _in_stream(device: Device, values: list, launch) -> None:
    """Launches in the stream of the library that owns arguments, in order with the device's own where both are used."""
    given = [value.value for value in values if isinstance(value, _GpuArray)]
    stream = _foreign.stream_for(device.native, given) if given else None
    if stream is None:
        launch(device.stream)
        return
    mixed = len(given) < len(values) or any(isinstance(value, vortex.Array) for value in given)
    if mixed:
        _foreign.order(device.native, device.stream, stream)
    launch(stream)
    if mixed:
        _foreign.order(device.native, stream, device.stream)


def _finish(values: list) -> None:
    for value in values:
        if isinstance(value, (_Array, _GpuArray)):
            value.finish()


def interprets() -> bool:
    return os.environ.get("METILE_INTERPRET") == "1" or os.environ.get("METILE_CHECK") == "1"


def _print(text: str, values: list) -> None:
    vortex._program._print(text, values)


class Dispatcher:
    """A launch that can be repeated without checks. What it uses stays alive with it."""

    def __init__(self, specialised: Specialised, values: list, numbers: dict, grid: tuple):
        self._specialised, self._values, self._numbers, self._grid = specialised, values, numbers, grid
        self._device = None if interprets() else _device_for(values)
        if self._device is not None:
            self._launch = specialised.loaded(self._device).prepare(self._device.native, self._device.stream,
                                                                    specialised.arguments(self._device, values, numbers, grid), [])

    def __call__(self) -> None:
        if self._device is None:
            self._specialised.interpret(self._values, self._numbers, self._grid, os.environ.get("METILE_CHECK") == "1")
        else:
            for slot in self._specialised.slots:
                if slot.rank and not self._device.is_cpu:
                    self._values[slot.argument].on(self._device, slot.is_written)
            _in_stream(self._device, self._values, self._launch.submit)
        _finish(self._values)

    def repeat(self, times: int) -> None:
        """Runs it `times` times in order."""
        if isinstance(times, bool) or not isinstance(times, int) or times < 0:
            raise ValueError(f"repeat takes a number of times, not {times!r}")
        for _ in range(times):
            self()


def kernel(fn) -> Kernel:
    """Makes a kernel of a Python function."""
    return Kernel(fn)
