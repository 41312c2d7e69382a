"""Kernels: Python functions that are traced, compiled and launched."""
from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import os
import re
import threading
import types
from typing import NamedTuple

import numpy as np

import _vortex
import vortex
from vortex import _foreign, _overlap

from .. import _params
from .._arguments import BufferArgument, GpuArray, HostArray, host_array, refuse_overlap, share_memory
from .._direct import direct_key, direct_launch
from .._dispatch import Dispatcher, device_for, finish, in_stream, interprets
from .._outside import Outside
from .._specialised import Specialised, dump
from .._trace import LoweringError, OutOfResources, Trace, is_machinery, is_recording, recording, remember_source
from .._values import Traced, constexpr, is_number, unwrap
from .._words import did_you_mean
from ..runtime.buffer import Buffer
from ..runtime.device import Device
from ..runtime.environment import is_on

__all__ = ["Kernel", "LoweringError", "OutOfResources", "kernel"]

HINTS = {"WM", "WN", "NUM_SG", "COOPERATIVE", "SEPARATED", "RELAXED_PRECISION", "K_UNROLL", "SWIZZLE", "SWIZZLE_SMEM", "SCHEDULE_ENCODING",
         "num_stages", "num_simdgroups", "num_warps"}
_TILE_THREADS = 128
_RAISE = dis.opmap["RAISE_VARARGS"]
_BEYOND_F32 = float.fromhex("0x1.ffffffp127")  # and more is rounded to infinity
_MOST_LANES = (1 << 31) - 1  # more does not fit the numbers of lanes
_LONG_ROW = 32768  # elements: shorter rows stay in the second-level cache of CPUs, where another pass costs less than collecting sums
_MOST_DIRECT = 64  # of a kernel
_KEPT = 16  # traces per specialisation, for different values of what they read from outside


def _is_hint(name: str) -> bool:
    return name in HINTS or name.startswith("NAX_")


class _Traced(NamedTuple):
    """What one run of the function recorded, and the kernels made of it by axes of the grid."""

    trace: Trace
    threads: int
    outside: Outside
    specialised: dict
    decides: bool  # on CPUs the length of rows decides whether sums are collected with maxima


def _is_short(trace: Trace, numbers: dict, is_gpu: bool) -> bool:
    """Rows stay where another pass over them costs less than collecting sums: in a GPU's registers, or in the second-level cache of a CPU."""
    if not is_gpu:
        return trace.longest_loop(numbers) < _LONG_ROW
    iterations = trace.most_iterations(numbers)
    return iterations is not None and iterations <= _vortex.ROW_REGISTERS


class Kernel:
    """A kernel; `kernel[grid](arguments)` launches it."""

    def __init__(self, fn):
        if isinstance(fn, Kernel):
            fn = fn.fn
        if not isinstance(fn, types.FunctionType):
            raise TypeError(f"metile.kernel takes a function, not a {type(fn).__name__}: bind arguments in a function of your own, or pass them at launch")
        functools.update_wrapper(self, fn)
        self.fn, self.name = fn, fn.__name__ if fn.__name__.isidentifier() else "kernel"
        self.signature = inspect.signature(fn)
        for parameter in self.signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(f"kernel '{self.name}': parameters are named one by one, there is no {'*' if parameter.kind is parameter.VAR_POSITIONAL else '**'}{parameter.name}")
        self.constexprs = [name for name, parameter in self.signature.parameters.items() if self._is_constexpr(parameter.annotation)]
        self.runtime = [name for name in self.signature.parameters if name not in self.constexprs]
        self._by_position = [name for name, parameter in self.signature.parameters.items() if parameter.kind is parameter.POSITIONAL_ONLY]
        self._specialised: dict = {}
        self._compiling = threading.RLock()
        remember_source(fn.__code__.co_filename)
        self._direct_launches: dict = {}
        self._direct_tails: dict = {}  # the same, of launches with last rows that are not whole
        self._leads = list(self.signature.parameters)[: len(self.runtime)] == self.runtime  # runtime arguments stand before constexprs
        self._leading = len(self.runtime) if self._leads else -1
        self._defaults = {name: parameter.default for name, parameter in self.signature.parameters.items() if parameter.default is not parameter.empty}

    def __repr__(self):
        return f"<metile.Kernel {self.name}({', '.join(self.signature.parameters)})>"

    def __reduce__(self):
        return self.fn.__qualname__  # pickled by name, as functions are

    def _is_constexpr(self, annotation) -> bool:
        if isinstance(annotation, str):
            try:
                annotation = eval(annotation, self.fn.__globals__)  # noqa: S307 - the function's own annotation
            except Exception:
                return annotation.rpartition(".")[2] == "constexpr"
        return annotation is constexpr

    def __call__(self, /, *args, **kwargs):  # a parameter may have any name
        if is_recording():
            return self.fn(*args, **kwargs)  # a helper of the kernel that is traced
        raise TypeError(f"kernel '{self.name}' is launched on a grid: {self.name}[grid](…)")

    def __getitem__(self, grid) -> Launcher:
        return Launcher(self, grid)

    def get_compiled(self, /, *args, **kwargs) -> Specialised:
        """Launches once on a grid of one instance; the compiled kernel."""
        return self[(1,)]._run(args, kwargs, (1,))[0]

    def explain(self, /, *args, **kwargs) -> str:
        """What the compiler rewrote, what it did not, and why: for a launch with these arguments, which is not made; without arguments for each
        kind of launch so far."""
        if args or kwargs:
            return self._for(args, kwargs)[0].explain()
        made = [specialised for known in self._specialised.values() for traced in known for specialised in traced.specialised.values()]
        reports: dict = {}
        for specialised in made:
            with contextlib.suppress(LoweringError):  # a launch that was refused
                reports[specialised.explain()] = None
        return "".join(reports) or f"{self.name}: not launched yet\n"

    def facts(self, /, *args, **kwargs) -> dict[str, int]:
        """Resources that the compiler counted in the code for a launch with these arguments, which is not made: bytes of code, on GPUs registers and
        spilled bytes."""
        specialised, device = self._for(args, kwargs)
        return specialised.facts(device)

    def source(self, stage: str, /, *args, **kwargs) -> str:
        """Text after a stage of the compiler (irgen, schedule, llvm, assembly, …) for a launch with these arguments, which is not made."""
        if not isinstance(stage, str):
            raise TypeError(f"a stage of the compiler is a str, not a {type(stage).__name__}")
        specialised, device = self._for(args, kwargs)
        return specialised.native.text(specialised.name, stage, specialised.request(device.native.target))

    def _for(self, args: tuple, kwargs: dict) -> tuple[Specialised, Device]:
        """The kernel and the device of a launch."""
        runtime, constants = self.bind(args, kwargs)
        values, kinds, numbers = self.arguments(runtime)
        device = device_for(values)
        return self.specialise(kinds, constants, numbers=numbers, is_gpu=not device.is_cpu, values=values), device

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
                raise TypeError(f"kernel '{self.name}' has no parameter '{name}', and no compiler option has that name{did_you_mean(name, names)}")
        for name, parameter in self.signature.parameters.items():
            if name not in given and parameter.default is not parameter.empty:
                given[name] = parameter.default
        missing = [name for name in names if name not in given]
        if missing:
            method = "; kernels in classes are a @staticmethod without `self`" if names[0] == "self" else ""
            raise TypeError(f"kernel '{self.name}' misses {', '.join(repr(name) for name in missing)}{method}")
        constants = {name: _frozen(unwrap(given[name])) for name in self.constexprs}
        return {name: unwrap(given[name]) for name in self.runtime}, constants

    def arguments(self, runtime: dict) -> tuple[list, list, dict]:
        """(values, their kinds, ints by name). A kind says how the argument is traced; arrays over the same memory share one."""
        values, kinds, numbers, seen = [], [], {}, {}
        for index, (name, value) in enumerate(runtime.items()):
            if isinstance(value, Buffer):
                value = BufferArgument(value, name)
                array = value._buffer._flat
            elif isinstance(value, np.ndarray):
                _overlap.refuse_masked(value, f"'{name}' of kernel '{self.name}'")
                _params.dtype_of(value, name)
                value = HostArray(value, name)
                array = value._buffer._flat
            elif is_number(value):
                values.append(self._number(name, value))
                kinds.append("float" if isinstance(value, (float, np.floating)) else "int")
                if kinds[-1] == "int":
                    numbers[name] = values[-1]
                continue
            elif (gpu := _foreign.gpu_of(value)) is not None:
                value = array = GpuArray(value, gpu, name)
            else:
                array = host_array(value, name)
                if array is None:
                    instead = f"; in a kernel {self.name}(…) calls it as a helper" if isinstance(value, Traced) else ""
                    raise TypeError(f"'{name}' of kernel '{self.name}' is a {type(value).__name__}; arguments are buffers, arrays and numbers{instead}")
                _params.dtype_of(array, name)
                value = HostArray(array, name)
            if isinstance(array, GpuArray):
                dtype = _params.dtype_named(array.dtype, name)
            else:
                dtype = _params.dtype_of(array, name)
                if not _overlap.is_aligned(array):
                    raise ValueError(f"'{name}' is not aligned to its elements")
            same = (value.address, array.nbytes, dtype, value.layout)
            first = seen.setdefault(same, index) if array.nbytes else index
            values.append(value)
            kinds.append((dtype, first))
        return values, kinds, numbers

    def _number(self, name: str, value):
        if isinstance(value, (float, np.floating)):
            if np.isfinite(value) and abs(float(value)) >= _BEYOND_F32:
                raise OverflowError(f"'{name}' of kernel '{self.name}' is {float(value)}: floats are f32")
            return float(value)
        if not -(1 << 31) <= int(value) < 1 << 31:
            raise OverflowError(f"'{name}' of kernel '{self.name}' is {int(value)}: integers are i32")
        return int(value)

    def specialise(self, kinds: list, constants: dict, grid: tuple[int, int, int] = (1, 1, 1), numbers: dict | None = None, is_gpu: bool = False,
                   values: list | None = None) -> Specialised:
        """Axes that the kernel asks no position of are 1 unless `grid` has more, which is another kernel: its instances do the same work.
        `numbers` and `values`: the integers and all arguments of the launch, where they decide how it is done."""
        with self._compiling:
            made = self._specialise(kinds, constants, grid, numbers, is_gpu)
            tails = made.tails(values, numbers) if values is not None and 0 not in grid else ()
            return self._specialise(kinds, constants, grid, numbers, is_gpu, tails) if tails else made

    def _specialise(self, kinds: list, constants: dict, grid: tuple[int, int, int], numbers: dict | None, is_gpu: bool, tails: tuple = ()) -> Specialised:
        try:
            key = (tuple(kinds), os.environ.get("METILE_ONLINE_SOFTMAX"), tuple(map(_constant, constants.items())))
            known = self._specialised.setdefault(key, [])
        except TypeError:
            name, value = next((item for item in constants.items() if not _is_hashable(item[1])), ("", None))
            raise TypeError(f"kernel '{self.name}': constexprs are hashable values, '{name}' is a {type(value).__name__}") from None
        traced = next((made for made in known if made.outside.is_current()), None)
        if traced is None:
            trace, threads = self._trace(kinds, constants)
            decides = not os.environ.get("METILE_ONLINE_SOFTMAX") and trace.may_collect_sums()
            traced = _Traced(trace, threads, Outside(self.fn.__code__, self.fn.__globals__, self.fn.__closure__), {}, decides)
            known[:] = [traced, *known[: _KEPT - 1]]
        axes = tuple(axis for axis in range(3) if axis in traced.trace.axes or _has_several(grid, axis))
        collects = not traced.decides or numbers is None or not _is_short(traced.trace, numbers, is_gpu)
        made = traced.specialised.get((axes, collects, tails))
        if made is None:
            made = traced.specialised[axes, collects, tails] = Specialised(self, traced.trace, traced.threads, axes, collects, tails)
            made.depends_on_numbers = traced.decides
            made.kinds, made.constants, made.outside = kinds, constants, traced.outside
            dump(made)
        return made

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
            here = trace.sources.excerpt(trace.place)
            if self.fn.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
                raise LoweringError(f"kernel '{self.name}' has `yield` or `await`{here}")
            try:
                result = self.fn(*[given.pop(name) for name in self._by_position], **given)
            except RecursionError as error:
                raise LoweringError(f"kernel '{self.name}': helpers call each other without end{_last_place(trace, error)[0]}") from None
            except (TypeError, AttributeError, NameError, ValueError, LookupError, ArithmeticError) as error:
                _tell_place(trace, error)
                raise
            if trace.open_loops:
                raise LoweringError(f"kernel '{self.name}': a tile_range loop is left by `break`, `return` or an exception{_excerpt(trace)}")
            trace.check_matrices()
            if result is not None:
                raise LoweringError(f"kernel '{self.name}' returns a value: results are stored through pointers{here}")
        block = constants.get("BLOCK")
        threads = trace.lanes() or (int(block) if block is not None and is_number(block) else None)
        if threads is None:
            threads = _TILE_THREADS if trace.has_tiles and not trace.uses_threads else 1
        if not 0 < threads <= _MOST_LANES:
            raise ValueError(f"kernel '{self.name}': BLOCK is {threads}: a kernel has 1 to {_MOST_LANES} lanes{here}")
        return trace, threads


def _last_place(trace: Trace, error: BaseException) -> tuple[str, bool]:
    """The innermost statement of a kernel's own code that an error went through, and whether it is a `raise`."""
    place, is_raise, at = "", False, error.__traceback__
    while at is not None:
        code = at.tb_frame.f_code
        if not is_machinery(code):
            place, is_raise = trace.sources.excerpt(trace.sources.position(at.tb_frame)), code.co_code[at.tb_lasti] == _RAISE
        at = at.tb_next
    return place, is_raise


_FORMATTED = re.compile(r"%.*\bnot (Value|Pointer)$")


class _Plain(str):
    """A text that a KeyError shows as it is."""

    __repr__ = str.__str__


def _tell_place(trace: Trace, error: Exception) -> None:
    """Python's own errors name the statement as ours do; those that a kernel raises are its own."""
    place, is_raise = _last_place(trace, error)
    if error.args and isinstance(error.args[0], str) and "does not support ufuncs" in error.args[0]:
        error.args = ("functions of NumPy take no traced values: use those of metile",)
    if error.args and isinstance(error.args[0], str) and _FORMATTED.match(error.args[0]):  # Python puts this in place of what our __int__ says
        error.args = ('the text of a traced value is not known while the kernel is traced; use metile.print("{}", x)',)
    if isinstance(error, KeyError) and len(error.args) == 1 and not is_raise:
        error.args = (_Plain(f"{error.args[0]!r} is no key{place}"),)
    elif not is_raise and len(error.args) == 1 and isinstance(error.args[0], str) and "\n  --> " not in error.args[0]:
        error.args = (error.args[0] + place,)


def _excerpt(trace: Trace) -> str:
    return trace.sources.excerpt(trace.open_loops[-1])


def grid_of(grid, name: str) -> tuple[int, int, int]:
    values = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
    if not 1 <= len(values) <= 3:
        raise ValueError(f"kernel '{name}': a grid has one to three axes, not {len(values)}")
    if not all(is_number(value) and not isinstance(value, (float, np.floating)) for value in values):
        raise TypeError(f"kernel '{name}': a grid is made of integers, not {grid!r}")
    numbers = [int(unwrap(value)) for value in values]
    if any(not 0 <= number < 1 << 31 for number in numbers):
        raise ValueError(f"kernel '{name}': a grid has 0 to 2147483647 instances per axis, not {tuple(numbers)}")
    return (*numbers, *[1] * (3 - len(numbers)))


def _has_several(grid, axis: int) -> bool:
    """Instances along the axis; a grid of none has several of nothing."""
    return grid[axis] > 1 and 0 not in grid


class Launcher:
    """A kernel on a grid."""

    def __init__(self, kernel: Kernel, grid):
        self.kernel, self.grid = kernel, grid

    def __call__(self, /, *args, **kwargs) -> None:
        kernel, grid = self.kernel, self.grid
        if len(args) == kernel._leading and (type(grid) is tuple or type(grid) is int):
            given, constants = args, kwargs
        elif plain := self._plain(args, kwargs):
            given, constants, grid = plain
        else:
            self._run(args, kwargs, self._grid(kwargs))
            return
        try:
            key = direct_key(given, constants, grid)
            known = kernel._direct_launches.get(key)
        except TypeError:  # what is no constexpr, a grid that is none
            key = known = None
        if known is not None and known.is_current() and known.run(given, grid):
            return
        if kernel._direct_tails and key is not None:
            known = kernel._direct_tails.get(key)
            if known is not None and known.is_current() and known.run(given, grid):
                return
        specialised, values, numbers, _ = self._run(args, kwargs, grid)
        made = None if key is None else direct_launch(given, constants, grid, specialised, values, numbers)
        if made is not None:
            launches = kernel._direct_tails if specialised.has_tails else kernel._direct_launches
            if len(launches) >= _MOST_DIRECT:
                launches.clear()
            launches[key] = made

    def _plain(self, args: tuple, kwargs: dict) -> tuple | None:
        """(runtime arguments in order, the other keywords, the grid); None: the call must be bound by the signature."""
        kernel = self.kernel
        runtime = kernel.runtime
        if not kernel._leads:
            return None
        if len(args) < len(runtime):
            try:
                args = (*args, *[kwargs[name] for name in runtime[len(args):]])
            except KeyError:
                return None
            kwargs = {name: value for name, value in kwargs.items() if name not in runtime}
        elif len(args) > len(runtime):
            constants = dict(zip(kernel.constexprs, args[len(runtime):]))
            if len(args) > len(runtime) + len(constants) or not kwargs.keys().isdisjoint(constants):
                return None
            args, kwargs = args[: len(runtime)], {**constants, **kwargs}
        grid = self.grid
        return args, kwargs, self._grid(kwargs) if callable(grid) else tuple(grid) if type(grid) is list else grid

    def _grid(self, kwargs: dict):
        if not callable(self.grid):
            return self.grid
        kernel = self.kernel
        given = {**kernel._defaults, **kwargs}
        constants = {name: unwrap(given[name]) for name in kernel.constexprs if name in given}
        return self.grid(constants) if len(constants) == len(kernel.constexprs) else None

    def prepare(self, /, *args, **kwargs) -> Dispatcher:
        """Runs the kernel once; the object returned runs it again on the same arguments."""
        specialised, values, numbers, grid = self._run(args, kwargs, self._grid(kwargs))
        return Dispatcher(specialised, values, numbers, grid)

    def _run(self, args: tuple, kwargs: dict, grid) -> tuple:
        kernel = self.kernel
        runtime, constants = kernel.bind(args, kwargs)
        grid = grid_of(grid if grid is not None or not callable(self.grid) else self.grid(constants), kernel.name)
        values, kinds, numbers = kernel.arguments(runtime)
        specialised = kernel.specialise(kinds, constants, grid, numbers, not interprets() and not device_for(values).is_cpu, values)
        if 0 in grid:
            return specialised, values, numbers, grid
        refuse_overlap(specialised, values, everywhere=interprets() or not device_for(values).is_cpu)
        if interprets():
            specialised.native  # noqa: B018 - what it finds
            specialised.judge(numbers, grid)
            specialised.interpret(values, numbers, grid, is_on("METILE_CHECK"))
        else:
            device = device_for(values)
            specialised.refuse_layouts(values, numbers)
            code = specialised.loaded(device)
            specialised.judge(numbers, grid)
            try:
                arguments = specialised.arguments(device, values, numbers, grid)
                in_stream(device, values, lambda stream: code.launch(device.native, stream, arguments, [], vortex._launch.write_line))
            except vortex.Error as error:
                if error.fault is None and share_memory(specialised, values):
                    raise ValueError(str(error)) from None
                raise
        finish(values)
        return specialised, values, numbers, grid


def _frozen(value):
    """Lists as constexprs are the tuples that they are now."""
    return tuple(map(_frozen, value)) if type(value) in (list, tuple) else value


def _is_hashable(value) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _constant(item: tuple) -> tuple:
    """A constexpr as a key: 0.0 and -0.0 are two, NaN is one."""
    name, value = item
    return name, type(value), *((repr(value),) if isinstance(value, float) else (value, repr(value)) if isinstance(value, tuple) else (value,))


def kernel(fn) -> Kernel:
    """Makes a kernel of a Python function."""
    return Kernel(fn)
