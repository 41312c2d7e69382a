"""Kernels for one choice of constexprs and argument types: from a trace to loaded code."""
from __future__ import annotations

import functools
import os
import sys
import warnings

import numpy as np

import _vortex
import vortex
from vortex import _kept

from . import _params
from ._queues import numbers_as_instances
from ._tails import with_tails
from ._trace import LoweringError, OutOfResources, Trace
from ._words import in_python
from .runtime.device import Device
from .runtime.environment import debug_words, is_on

_ABOUT_RESULTS = {"W0525"}  # other warnings are about speed, or about races
_MANY = 1 << 62  # rows: as many as there are
_REFUSED = "E0630"  # what is kept of a launch that has races
_MOST_JUDGED = 16  # launches with other numbers: judging one takes some milliseconds
_MOST_REMEMBERED = 4096  # launches that were judged, where each one must be
_TAIL_FOLLOWS, _TAIL, _TAIL_ROWS = 1, 2, 3  # as src/python/direct_launch.cpp has them
_MOST_KEPT = 64  # judgements that a process puts on disk for a kernel


class Specialised:
    """A kernel for one choice of constexprs and argument types. The grid has instances along `axes`."""

    def __init__(self, kernel, trace: Trace, threads: int, axes: tuple[int, ...], collects: bool = True, tails: tuple[int, ...] = ()):
        lines, slots = with_tails(trace.lines, trace.params, tails, trace.count)
        self.kernel, self.slots, self.shared_bytes, self.has_tails = kernel, slots, trace.shared_bytes, bool(tails)
        self.name = trace.name
        self.text = trace.text([_params.header(slot) for slot in slots], threads, axes, lines)
        self._files = trace.sources.texts()
        self._head = trace.sources.excerpt(trace.place)
        self.outside = None  # of class Outside
        self.kinds: list = []
        self.constants: dict = {}
        self.prints = any(line.startswith("print ") for line in trace.lines)
        self._loaded: dict = {}
        self._has_warned = False
        self._races: str | None = None  # the warning, if they are not ruled out for every launch
        self._is_race = False  # there are some in every launch, or in every one of several instances
        self._judged: set = set()  # launches without races: numbers and grid
        self._launched: set = set()  # the same launches as they were written
        self._kept_judgements = 0
        self._online_softmax = collects and is_on("METILE_ONLINE_SOFTMAX", True)
        self._is_withheld = not collects
        self.depends_on_numbers = False

    @functools.cached_property
    def native(self):
        import _vortex_compiler

        program = _vortex_compiler.from_trace(*self._traced)
        found = vortex._errors.diagnostics(in_python(program.diagnostics()))
        if not program.ok:
            raise _refusal(program)
        self._findings = tuple((diagnostic.id, diagnostic.rendered) for diagnostic in found)
        self._warn(self._findings)
        return program

    @property
    def _traced(self) -> tuple:
        return self.text, self._files, self._online_softmax, True, False

    @functools.cached_property
    def _checked(self):
        """For METILE_CHECK: shared memory begins without values, and lanes that store one value are no race."""
        import _vortex_compiler

        return _vortex_compiler.from_trace(*self._traced[:4], True)

    def _warn(self, findings: tuple) -> None:
        """Once for each kernel."""
        if self._has_warned:
            return
        self._has_warned = True
        warns = is_on("METILE_WARNINGS")
        for name, rendered in findings:
            if name in ("E0630", "W0631"):
                self._is_race = self._is_race or name == "E0630"
                self._races = rendered
            elif name in _ABOUT_RESULTS or warns:
                warnings.warn(rendered, stacklevel=2 + _kept.depth_of_packages())

    def free_launches(self, judged: tuple) -> set | None:
        """Launches that were judged as they were written, this one among them; None: they need no judgement."""
        if self._races is None:
            return None
        _remember(self._launched, judged)
        return self._launched

    def judge(self, numbers: dict, grid: tuple) -> None:
        """Warns, once, if races are not ruled out for a launch with these integers on this grid. Often they depend on both: rows of `N` elements
        a stride apart meet where the stride is less than N. A launch that has the races of all others is refused."""
        launch = (*numbers.values(), grid)
        if self._races is None or launch in self._judged:
            return
        found = self._races_of(numbers, grid) if self._is_race or len(self._judged) < _MOST_JUDGED else self._races
        if found == _REFUSED:
            raise _refusal(self._program_of(numbers, grid))
        if found and is_on("METILE_CHECK"):  # this launch looks for them while it runs
            return
        if not found or self._is_race:
            _remember(self._judged, launch)
        if not found:
            return
        if not self._is_race:
            self._races = None
        warnings.warn(found, stacklevel=2 + _kept.depth_of_packages())

    def _races_of(self, numbers: dict, grid: tuple) -> str:
        """What is not ruled out for this launch, as a warning; nothing where all is."""
        key = ("races of a metile launch", self._text_of(numbers, grid), self._files)
        known = _kept.find(key, self._cache_folder) if self._is_kept else None
        if known is None:
            found = {diagnostic["id"]: diagnostic["rendered"] for diagnostic in self._program_of(numbers, grid).diagnostics()}
            is_race = "E0630" in found
            known = _REFUSED if is_race and self._is_race else in_python(found.get("W0631") or (is_race and self._races) or "")
            if self._is_kept and self._kept_judgements < _MOST_KEPT:
                self._kept_judgements += 1
                _kept.keep(key, known, self._cache_folder)
        return known

    def _text_of(self, numbers: dict, grid: tuple) -> str:
        """The trace for this launch alone."""
        return _with_numbers(*numbers_as_instances(self.text, grid), numbers)

    def _program_of(self, numbers: dict, grid: tuple):
        import _vortex_compiler

        return _vortex_compiler.from_trace(self._text_of(numbers, grid), self._files, False, False, False)

    @property
    def _cache_folder(self) -> str:
        return os.environ.get("METILE_CACHE_DIR", "")

    @property
    def _is_kept(self) -> bool:
        return not is_on("METILE_DISABLE_DISK_CACHE") and not os.environ.get("VORTEX_NO_CACHE")

    def explain(self) -> str:
        """What was rewritten and what was not, with the reasons."""
        types = [f"{name}: {kind if isinstance(kind, str) else kind[0]}" for name, kind in zip(self.kernel.runtime, self.kinds)]
        head = f"{self.name}({', '.join((*types, *(f'{name}={value!r}' for name, value in self.constants.items())))})"
        remarks = vortex._errors.diagnostics(self._with_sums_collected().remarks() if self._is_withheld else self.native.remarks())
        if not remarks:
            return f"{head}: runs as written\n"
        where = " runs as written, its rows are short; where a loop goes over 32768 elements or more (on a GPU, makes more than 16 iterations)" if self._is_withheld else ""
        return f"{head}:{where and where + ':'}\n" + "".join(remark.rendered for remark in remarks)

    def _with_sums_collected(self):
        import _vortex_compiler

        return _vortex_compiler.from_trace(self.text, self._files, True, True, False)

    def request(self, target: str):
        return _request(target)

    def loaded(self, device: Device):
        code = self._loaded.get(device.id)
        return code if code is not None else self._load_once(device)

    def _load_once(self, device: Device):
        with self.kernel._compiling:
            code = self._loaded.get(device.id)
            if code is not None:
                return code
            if not device.is_cpu and self.shared_bytes > device.max_threadgroup_memory:
                raise OutOfResources(f"kernel '{self.name}' needs {self.shared_bytes} bytes of threadgroup memory, the device has {device.max_threadgroup_memory}{self._head}")
            code = self._loaded[device.id] = self._load(device.native)
        return code

    def _load(self, device: _vortex.Device):
        """From disk, else compiled."""
        key = ("metile", self.text, self._files, self._online_softmax, device.target, device.model) if self._is_kept else None
        target, trace, name = device.target, self._traced, self.name

        def plan():
            try:
                return self.native.plan(name, self.request(target)), self._findings
            except vortex.CompileError as error:
                raise LoweringError(self._with_excerpt(str(error))) from None

        def again():
            import _vortex_compiler

            return _vortex_compiler.from_trace(*trace).plan(name, _request(target))

        loaded, findings = _kept.load(device, key, plan, again, self._cache_folder)
        self._warn(findings)
        return loaded

    def facts(self, device: Device) -> dict[str, int]:
        return _kept.facts(self.loaded(device), device.native, lambda: self.native.build(self.name, self.request(device.native.target)))

    def _with_excerpt(self, message: str, head: str = "") -> str:
        """The message behind `head`, "file:line:column: what", with the source line instead of the place."""
        for name, text in self._files:
            line, _, rest = message.removeprefix(name + ":").partition(":")
            column, _, what = rest.partition(":")
            lines = text.split("\n")
            if message.startswith(name + ":") and line.isdecimal() and column.isdecimal() and 0 < int(line) <= len(lines) and lines[int(line) - 1]:
                return f"{head}{what.lstrip()}\n  --> {name}:{line}:{column}\n   {lines[int(line) - 1]}\n   {' ' * (int(column) - 1)}^"
        return head + message + self._head

    def arguments(self, device: Device, values: list, numbers: dict, grid: tuple) -> tuple:
        out = []
        for slot in self.slots:
            value = values[slot.argument]
            if slot.rank == 0:
                out.append(value if slot.tail_of is None else self._rows(slot.tail_of, value.size, numbers))
            elif slot.rank == 1:
                out.append(value.on(device, slot.is_written))
            else:
                out.append(value.on(device, slot.is_written).matrix(*self._matrix(slot, value.size, numbers)))
        return (*out, *grid)

    def window(self, slot, numbers: dict) -> tuple[int, int, int]:
        """Where the rows of a matrix begin, how long they are, and how many there are at most."""
        stride, offset = (part(numbers) if callable(part) else part for part in (slot.stride, slot.offset))
        if stride <= 0 or offset < 0:
            raise ValueError(f"kernel '{self.name}': a tile has rows of {stride} elements from element {offset} on")
        for step in slot.steps:
            elements = step(numbers) if callable(step) else step
            if elements % stride:
                raise ValueError(f"kernel '{self.name}': the pointer of a tile moves in steps of {elements} elements, which are no whole rows of {stride}. "
                                 "What moves within a row is the column: tile_load(pointer, row, column, stride, shape)")
        for many in slot.many:
            row, *moves = (part(numbers) if callable(part) else part for part in many)
            moves = sorted({abs(rows) for rows in moves if rows})
            if moves and (row % moves[0] or any(rows % moves[0] for rows in moves)):
                raise ValueError(f"kernel '{self.name}': the pointer of a tile begins with row {row} and moves by {' and '.join(map(str, moves))} rows: which "
                                 "rows its matrix has is not known. Say how many, `rows=…`")
        return offset, stride, max(numbers[slot.limit], 0) if slot.limit else _MANY

    def windows(self, numbers: dict) -> list[tuple]:
        """What a direct launch makes of its arguments: for each parameter argument, whether it is written, window, and what it is of a last row."""
        followed = {slot.tail_of for slot in self.slots}
        out = []
        for index, slot in enumerate(self.slots):
            of = slot if slot.tail_of is None else self.slots[slot.tail_of]
            tail = _TAIL_FOLLOWS if index in followed else 0 if slot.tail_of is None else _TAIL if slot.rank else _TAIL_ROWS
            out.append((slot.argument, slot.is_written, self.window(of, numbers) if of.rank > 1 else None, tail))
        return out

    def _matrix(self, slot, size: int, numbers: dict) -> tuple[int, int, int]:
        """As window(), in memory of so many elements."""
        if slot.tail_of is None:
            return self.window(slot, numbers)
        offset, stride, _ = self.window(self.slots[slot.tail_of], numbers)
        begin = offset + self._rows(slot.tail_of, size, numbers) * stride
        return begin, max(size - begin, 1), 1

    def _rows(self, index: int, size: int, numbers: dict) -> int:
        """Whole rows of a matrix."""
        offset, stride, most = self.window(self.slots[index], numbers)
        return min(max(size - offset, 0) // stride, most)

    def tails(self, values: list, numbers: dict) -> tuple[int, ...]:
        """Parameters whose last row is not whole, and would count."""
        found = []
        for index, slot in enumerate(self.slots):
            if slot.rank == 2:
                (offset, stride, most), size = self.window(slot, numbers), values[slot.argument].size
                if size > offset and (size - offset) % stride and (size - offset) // stride < most:
                    found.append(index)
        return tuple(found)

    def refuse_layouts(self, values: list, numbers: dict) -> None:
        """An array that is written has one layout in a kernel: back ends take its parameters for memory of their own."""
        seen: list = []  # (slot, first element, end, what the kernel sees)
        for slot in self.slots:
            if not slot.rank:
                continue
            size = values[slot.argument].size
            begin, stride, most = self._matrix(slot, size, numbers) if slot.rank > 1 else (0, 1, _MANY)
            row = begin, begin + min(max(size - begin, 0) // stride, most) * stride, f"a matrix with rows of {stride} elements" if slot.rank > 1 else "single elements"
            for other, start, end, what in seen:
                if other.argument == slot.argument and (other.is_written or slot.is_written) and begin < end and start < row[1]:
                    name = self.kernel.runtime[slot.argument]
                    raise ValueError(f"kernel '{self.name}' writes '{name}' and uses it as {what} and as {row[2]}: an array that is written has one layout. "
                                     f"Reach '{name}' in one way alone, or pass another array")
            seen.append((slot, *row))

    def interpret(self, values: list, numbers: dict, grid: tuple, check: bool) -> None:
        arguments = []
        for slot in self.slots:
            value = values[slot.argument]
            if slot.rank == 0:
                value = value if slot.tail_of is None else self._rows(slot.tail_of, value.size, numbers)
                bits = np.float32(value).view(np.uint32) if slot.header.startswith("float") else value & (1 << 64) - 1
                arguments.append((0, [], [], int(bits)))
                continue
            array = value.host(slot.is_written)
            address, extents = array.ctypes.data, [array.size]
            if slot.rank == 2:
                offset, stride, most = self._matrix(slot, array.size, numbers)
                address, extents = address + offset * array.itemsize, [min(max(array.size - offset, 0) // stride, most), stride]
            arguments.append((address, extents, [], 0))
        arguments += [(0, [], [], extent) for extent in grid]
        try:
            (self._checked if check else self.native).interpret(self.name, arguments, self.request("cpu"), check, 0, print)
        except vortex.CompileError as error:
            raise LoweringError(self._with_excerpt(str(error))) from None
        except vortex.Error as error:
            name, colon, message = str(error).partition(": ")
            told = type(error)(self._with_excerpt(message, f"kernel '{self.name}': {name}{colon}"))
            told.fault = error.fault
            raise told from None


def _remember(launches: set, launch: tuple) -> None:
    """What is forgotten is judged anew."""
    if len(launches) >= _MOST_REMEMBERED:
        launches.clear()
    launches.add(launch)


def _refusal(program) -> LoweringError:
    """The errors, then what is known about results. Warnings about speed come where they are asked for."""
    found = vortex._errors.diagnostics(in_python(program.diagnostics()))
    told = [each for each in found if each.severity == "error" or each.id in _ABOUT_RESULTS or is_on("METILE_WARNINGS")]
    told.sort(key=lambda each: each.severity != "error")
    error = LoweringError("\n".join(each.rendered for each in told))
    error.diagnostics = tuple(told)
    return error


def _request(target: str):
    import _vortex_compiler

    return _vortex_compiler.request(target, None, None, [], False)  # what is made of a trace is kept here


def _with_numbers(text: str, grid: tuple, numbers: dict) -> str:
    """The trace of a kernel for these integers and this grid alone."""
    lines = []
    for line in text.split("\n"):
        head, _, name = line.partition(" ")
        lines.append(f"{line} {numbers[name]}" if head == "int" and name in numbers else line)
        if head == "axes":
            lines.append("grid " + " ".join(f"i{extent}" for extent in grid))
    return "\n".join(lines)


_STAGES = {"tile_ir": None, "metal_ir": "irgen", "metal_ir_opt": "schedule", "msl": "assembly"}


def dump(specialised: Specialised) -> None:
    """What METILE_DEBUG asks for: to stderr, and to files of METILE_DEBUG_DIR where that is set."""
    wanted = debug_words()
    folder = os.environ.get("METILE_DEBUG_DIR")
    for name, stage in _STAGES.items():
        if name not in wanted and "all" not in wanted:
            continue
        text = specialised.text if stage is None else specialised.native.text(specialised.name, stage, specialised.request("cpu"))
        sys.stderr.write(f"// ---- {specialised.name}: {'trace' if stage is None else name}\n{text}\n")
        if folder:
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, f"{specialised.name}.{name}"), "w", encoding="utf-8") as file:
                file.write(text)
