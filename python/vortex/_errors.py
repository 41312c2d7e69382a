"""Exceptions. What the compiler finds in a program is a CompileError; what a device or a launch refuses is an Error."""
from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Fault:
    """What a kernel reported while it ran: the id of the diagnostic and the place in the kernel's source (line 0: unknown)."""

    kernel: str
    id: str
    message: str
    file: str
    line: int
    column: int


class Error(RuntimeError):
    """A device, a launch or a file said no; the message carries the numbers that decided it."""

    fault: Fault | None = None


class RuntimeFailure(Error):
    """A launch: wrong arguments, violated constraints, a fault of a kernel, a finding of the interpreter."""


@dataclasses.dataclass(frozen=True)
class Label:
    """A piece of source with a message. Lines and columns count from 1; the end is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    is_primary: bool


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """An error, a warning or a note of the compiler. `rendered` is what the command line prints."""

    id: str
    severity: str
    message: str
    labels: tuple[Label, ...]
    notes: tuple[str, ...]
    helps: tuple[str, ...]
    rendered: str

    @property
    def position(self) -> tuple[str, int, int] | None:
        """(file, line, column) of the culprit."""
        for label in sorted(self.labels, key=lambda label: not label.is_primary):
            return label.file, label.line, label.column
        return None


class CompileError(Error):
    """A program that the compiler refuses. `diagnostics` holds the parts of the message."""

    def __init__(self, message: str, diagnostics: tuple[Diagnostic, ...] = ()):
        super().__init__(message)
        self.diagnostics = diagnostics


class BuildFailure(CompileError):
    """Raised behind the checks: what a stage of the compiler does not support."""


def diagnostics(entries: list[dict]) -> tuple[Diagnostic, ...]:
    return tuple(Diagnostic(entry["id"], entry["severity"], entry["message"], tuple(Label(**label) for label in entry["labels"]),
                            tuple(entry["notes"]), tuple(entry["helps"]), entry["rendered"]) for entry in entries)
