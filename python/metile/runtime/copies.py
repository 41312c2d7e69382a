"""METILE_DEBUG=copies: what is copied, with bytes."""
from __future__ import annotations

import sys

from .environment import debug_words


def are_told() -> bool:
    return "copies" in debug_words()


def tell(what: str, nbytes: int, way: str) -> None:
    if are_told():
        sys.stderr.write(f"// ---- copy: {what}, {nbytes} bytes, {way}\n")
