"""METILE_DEBUG=copies: what is copied, with bytes."""
from __future__ import annotations

import os
import sys


_environment = getattr(os.environ, "_data", None)  # getenv through os.environ costs a microsecond
_ENCODED = os.fsencode("METILE_DEBUG")


def are_told() -> bool:
    if _environment is not None and _ENCODED not in _environment:
        return False
    return "copies" in os.environ.get("METILE_DEBUG", "").split(",")


def tell(what: str, nbytes: int, way: str) -> None:
    if are_told():
        sys.stderr.write(f"// ---- copy: {what}, {nbytes} bytes, {way}\n")
