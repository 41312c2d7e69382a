"""The language of `vortex hvm` once more, small and slow: a definition of what the engines must print and count. Shares nothing with src/hvm."""
import dataclasses
import functools
import pathlib
import sys

from .normal import collapse, strong
from .parse import ParseError, Parser
from .reduce import Machine, OutOfFuel
from .show import Printer
from .terms import RuntimeFailure, Term

__all__ = ["OutOfFuel", "ParseError", "Result", "RuntimeFailure", "run"]
sys.setrecursionlimit(1_000_000)


@dataclasses.dataclass
class Result:
    lines: list  # what is printed on standard output
    interactions: int
    exact: bool  # whether the interactions are defined: not after a limit or an erased field in collapse
    error: str | None  # what is printed on standard error
    rows: dict  # how often each interaction fired
    defined: bool = True  # False if a collapsed term holds a stuck projection, whose printed form is left open


@functools.lru_cache(maxsize=4)
def library(text):
    """The definitions, and the first automatic label after them."""
    parser = Parser(text, "library")
    return parser.definitions(), parser.scopes.next


def parsed(path):
    """The definitions of the file. Random programs differ in @main only: what stands before it is parsed once."""
    parser = Parser(pathlib.Path(path).read_text(encoding="utf-8"), str(path))
    before, found, _ = parser.text.rpartition("\n@main ")
    if found and "#include" not in before:
        try:
            book, parser.scopes.next = library(before)
            parser.book.update(book)
            parser.defined = set(book)
            parser.at = len(before)
        except ParseError:
            pass  # its place is that in the whole text
    return parser.definitions()


def run(path, collapsed=False, limit=None, fuel=None):
    """Runs the file. More than `fuel` interactions raise OutOfFuel; parse errors and runtime errors are in the result."""
    try:
        book = parsed(path)
    except (ParseError, UnicodeDecodeError) as error:
        return Result([], 0, False, str(error) if isinstance(error, ParseError) else "PARSE_ERROR", {})
    if "main" not in book:
        return Result([], 0, False, "Error: @main not defined", {})
    machine, lines, error, defined = Machine(book, fuel), [], None, True
    machine.log = lines
    root = [Term("REF", "main")]
    try:
        if collapsed:
            for term in collapse(machine, root[0], limit):
                printer = Printer(True)
                lines.append(printer.all(term))
                defined = defined and not printer.pending
        else:
            strong(machine, root)
            lines.append(Printer(False).all(root[0]))
    except RuntimeFailure as failure:
        error = f"RUNTIME_ERROR: {failure}"
    exact = error is None and not machine.cut and (not collapsed or limit is None)
    return Result(lines, machine.count, exact, error, machine.rows, defined)
