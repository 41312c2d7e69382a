"""The recorder: a kernel is run once by Python, and what it does is written down in the form of src/metile/trace.h."""
from __future__ import annotations

import contextlib
import linecache
import os
import re
import sys
import threading

from ._products import limit_matrices

_HERE = os.path.dirname(os.path.abspath(__file__))
_MACHINERY = {os.path.join(_HERE, name) for name in ("__init__.py", "_trace.py", "_values.py", "_ops.py", "_matrices.py", "_lanes.py", "_loops.py", "_state.py", "_outside.py", "_params.py", os.path.join("frontend", "kernel.py"))}
_MACHINERY.add(contextlib.__file__)


_MOST_OPERATIONS = 1 << 15  # which take half a minute to compile
LANES = "i0#"  # an operand that the number of lanes is, which is known when the trace is complete; "i64#": if it is more than 64


class LoweringError(Exception):
    """Kernel code that cannot be compiled; the message shows the place in the source."""


class OutOfResources(RuntimeError):
    """More shared memory than a block of the device has, or a tile that is too large."""


class _Active(threading.local):
    """Traces that are being made by a thread, innermost last."""

    def __init__(self):
        self.traces: list[Trace] = []


_active = _Active()


def current(what: str) -> Trace:
    if not _active.traces:
        raise RuntimeError(f"metile.{what} is used outside a kernel")
    return _active.traces[-1]


def is_recording() -> bool:
    return bool(_active.traces)


@contextlib.contextmanager
def recording(trace: Trace):
    _active.traces.append(trace)
    try:
        yield trace
    finally:
        _active.traces.pop()


_texts: dict[str, list[str]] = {}


def remember_source(filename: str) -> None:
    """Called when a kernel is defined: a file that is changed later still shows what runs."""
    linecache.checkcache(filename)
    _texts[filename] = linecache.getlines(filename)


def _lines_of(filename: str) -> list[str]:
    """Empty where there is no source, as of `exec`."""
    return _texts.get(filename) or linecache.getlines(filename)


def is_machinery(code) -> bool:
    """Code of this package that kernels run through."""
    return code.co_filename in _MACHINERY


def user_frame():
    """The innermost frame of kernel code."""
    frame = sys._getframe(1)
    while frame is not None and is_machinery(frame.f_code):
        frame = frame.f_back
    return frame


_NAMED = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(?:\w+\.)*shared\s*\(", re.ASCII)


class Sources:
    """Texts of the functions whose positions are used: lines outside them are empty, so that edits elsewhere change nothing."""

    def __init__(self):
        self._files: dict[str, int] = {}
        self._lines: list[dict[int, str]] = []
        self._known: set = set()
        self._positions: dict = {}
        self._spans: dict = {}  # by code, of its instructions

    def add(self, code) -> int:
        index = self._files.setdefault(code.co_filename, len(self._files))
        if index == len(self._lines):
            self._lines.append({})
        if code not in self._known:
            self._known.add(code)
            last = max((line for _, _, line in code.co_lines() if line), default=code.co_firstlineno)
            text = _lines_of(code.co_filename)
            for line in range(code.co_firstlineno, last + 1):
                self._lines[index][line] = text[line - 1].rstrip("\r\n") if line <= len(text) else ""
        return index

    def position(self, frame) -> str:
        """" @ file line column line column" of the instruction that the frame executes."""
        if frame is None:
            return ""
        key = frame.f_code, frame.f_lasti
        known = self._positions.get(key)
        if known is None:
            known = self._positions[key] = self._find(*key)
        return known

    def _find(self, code, instruction: int) -> str:
        file = self.add(code)
        if hasattr(code, "co_positions"):
            if code not in self._spans:
                self._spans[code] = list(code.co_positions())
            line, end, column, end_column = self._spans[code][instruction // 2]
        else:
            line = next((line for start, stop, line in code.co_lines() if start <= instruction < stop), None)
            end, column, end_column = line, None, None
        line = line or code.co_firstlineno
        if column is None or end_column is None:  # Python before 3.11, or without positions: all of the line
            text = self._lines[file].get(line, "")
            end, column, end_column = line, len(text) - len(text.lstrip()), len(text.encode(errors="surrogatepass"))
        return f" @ {file} {line} {column} {end or line} {end_column}"

    def name_of_shared(self, frame) -> str:
        where = self.position(frame).split()
        found = where and _NAMED.match(self._lines[int(where[1])].get(int(where[2]), ""))
        return found[1] if found else ""

    def texts(self) -> list[tuple[str, str]]:
        out = []
        for name, index in self._files.items():
            lines = self._lines[index]
            out.append((name, "\n".join(lines.get(line, "") for line in range(1, max(lines, default=0) + 1))))
        return out

    def excerpt(self, position: str) -> str:
        """"file:line:column" of a position with the source line and a caret."""
        where = position.split()
        if not where:
            return ""
        file, line, begin, last, end = map(int, where[1:])
        name = list(self._files)[file]
        text = self._lines[file].get(line, "")
        if not text:
            return f"\n  --> {name}:{line}"
        before, marked = (_decoded(text, begin), _decoded(text, end if last == line else None)[len(_decoded(text, begin)):])
        margin = "".join("\t" if letter == "\t" else " " for letter in before)  # under the expression, however wide a tabulator is
        return f"\n  --> {name}:{line}:{len(before) + 1}\n   {text}\n   {margin}{'^' * max(1, len(marked.rstrip()))}"


def _decoded(text: str, end: int | None) -> str:
    """The beginning of a line up to a byte, which is how Python counts columns."""
    return text.encode(errors="surrogatepass")[:end].decode(errors="replace")


class Trace:
    """One kernel while it is recorded."""

    def __init__(self, name: str, code):
        self.name = name
        self.sources = Sources()
        file = self.sources.add(code)
        text = _lines_of(code.co_filename)
        line = code.co_firstlineno
        while line < len(text) and "def " not in text[line - 1] and "lambda" not in text[line - 1]:
            line += 1
        self.sources._lines[file].setdefault(line, text[line - 1].rstrip("\r\n") if line <= len(text) else "")
        column = text[line - 1].find(f"{name}") if line <= len(text) else 0
        self.place = f" @ {file} {line} {max(column, 0)} {line} {max(column, 0) + len(name)}"
        self.lines: list[str] = []
        self.count = 0
        self.params: list = []  # of values.Param
        self.extent = None  # of the lanes, as far as something depends on it
        self.aranges: set[int] = set()  # extents
        self.has_spread = False  # lanes that are rows or columns
        self.uses_threads = False
        self.axes: set[int] = set()  # that program_id was asked for
        self.has_tiles = False
        self.shared_bytes = 0
        self.open_loops: list = []
        self.is_repeated = False  # the body of the outermost loop is traced once more, to be compared
        self.terms: dict = {}  # see _values.terms_of; a loop's own, which may be recorded in its body, are forgotten with it
        self.ranges: list = []  # (start, end, step) of loops: numbers, functions of the launch's numbers, None where only the kernel knows
        self.small_matrices: set[int] = set()  # numbers of rows that matrices have, less than tiles
        self.unclear: list = []  # (rows, error): tiles whose matrices have so many rows if others do

    def new_id(self) -> int:
        self.count += 1
        return self.count - 1

    def add(self, operation: str, *operands: str, result: bool = True) -> int:
        if len(self.lines) >= _MOST_OPERATIONS:
            if _is_deep(sys._getframe()):  # whatever limit the process has set: helpers that call each other without end
                raise RecursionError
            self.fail(f"kernel '{self.name}' has more than {_MOST_OPERATIONS} operations: Python runs a loop over `range` round by round, and each is compiled by itself. "
                      "`for i in metile.tile_range(…)` is compiled once")
        number = self.new_id() if result else -1
        head = f"%{number} {operation}" if result else operation
        self.lines.append(" ".join((head, *operands)) + self.sources.position(user_frame()))
        return number

    def text(self, params: list[str], threads: int, axes: tuple[int, ...], lines: list[str]) -> str:
        return "\n".join([f"kernel {self.name}{self.place}", f"threads {threads}", " ".join(["axes", *(f"i{axis}" for axis in axes)]), *params, *(_with_lanes(line, threads) for line in lines)]) + "\n"

    def name_of_shared(self) -> str:
        """That of `name = metile.shared(…)`, for messages; nothing where the memory is made in another way."""
        return self.sources.name_of_shared(user_frame())

    def here(self) -> str:
        return self.sources.position(user_frame())

    def same_lanes(self, *extents: int | None) -> int:
        known = {extent for extent in extents if extent is not None}
        if len(known) > 1:
            self.fail(f"one kernel has tiles of {' and of '.join(map(str, sorted(known)))} lanes: what is stored, reduced or computed together has one extent, "
                      "unless it is rows and columns of a tile, `lanes[:, None]`")
        return known.pop()

    def use_lanes(self, *values) -> None:
        """There is one lane for each of these."""
        for value in values:
            if (extent := getattr(value, "extent", None)) is not None:
                self.extent = self.same_lanes(self.extent, extent)

    def lanes(self) -> int | None:
        """Extents that nothing depends on count where nothing else tells."""
        return self.extent or (next(iter(self.aranges)) if len(self.aranges) == 1 and not self.has_spread else None)

    def longest_loop(self, numbers: dict) -> int:
        """Elements between the bounds of a loop, where the launch's numbers tell them."""
        ranges = (self._bounds(bounds, numbers) for bounds in self.ranges)
        return max((abs(end - start) for start, end, _ in ranges if None not in (start, end)), default=0)

    def most_iterations(self, numbers: dict) -> int | None:
        """Of one run of a loop; None: the launch's numbers do not tell."""
        ranges = [self._bounds(bounds, numbers) for bounds in self.ranges]
        if any(None in bounds or not bounds[2] for bounds in ranges):
            return None
        return max((-(-abs(end - start) // abs(step)) for start, end, step in ranges), default=0)

    @staticmethod
    def _bounds(bounds: tuple, numbers: dict) -> tuple:
        return tuple(bound(numbers) if callable(bound) else bound for bound in bounds)

    def may_collect_sums(self) -> bool:
        """There is something that the rewrite of online softmax may apply to."""
        operations = {line.partition(" ")[2].partition(" ")[0] for line in self.lines if line.startswith("%")}
        return len(self.ranges) > 1 and {"exp", "maximum"} <= operations

    def error(self, message: str, kind=LoweringError) -> Exception:
        """With the place of the statement that is being traced."""
        return kind(message + self.sources.excerpt(self.sources.position(user_frame())))

    def fail(self, message: str, kind=LoweringError):
        raise self.error(message, kind)

    def check_matrices(self) -> None:
        """When all tiles are known."""
        for rows, unclear in self.unclear:
            if rows not in self.small_matrices:
                raise unclear
        limit_matrices(self.lines, self.params)


def _is_deep(frame, most: int = 1000) -> bool:
    """More calls than Python allows unless it is told otherwise."""
    while frame and most:
        frame, most = frame.f_back, most - 1
    return bool(frame)


def _with_lanes(line: str, lanes: int) -> str:
    return re.sub(r"i(\d+)#", lambda least: f"i{max(int(least[1]), lanes)}", line) if "#" in line else line


_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789{}.,:;!?()[]<>=+-*/_'~")


def word(text: str) -> str:
    """A string as a word of the trace: other bytes than plain ones as %XX."""
    return "s" + "".join(letter if letter in _PLAIN else "".join(f"%{byte:02X}" for byte in letter.encode()) for letter in text)
