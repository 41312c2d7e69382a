"""METILE_DEBUG=copies: what is copied, with bytes."""
from __future__ import annotations

import os
import sys


def are_told() -> bool:
    return "METILE_DEBUG" in os.environ and "copies" in os.environ["METILE_DEBUG"].split(",")


def tell(what: str, nbytes: int, way: str) -> None:
    if are_told():
        sys.stderr.write(f"// ---- copy: {what}, {nbytes} bytes, {way}\n")
