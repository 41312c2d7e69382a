"""METILE_DEBUG=copies: what is copied, with bytes."""
from __future__ import annotations

import os
import sys


def tell(what: str, nbytes: int, way: str) -> None:
    if "copies" in os.environ.get("METILE_DEBUG", "").split(","):
        sys.stderr.write(f"// ---- copy: {what}, {nbytes} bytes, {way}\n")
