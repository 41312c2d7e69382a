"""Settings of the environment. What none of them means is an error at the next launch, not ignored."""
from __future__ import annotations

import os

_environment = getattr(os.environ, "_data", None)  # getenv through os.environ costs a microsecond
_DEBUG = os.fsencode("METILE_DEBUG")
_WORDS = ("tile_ir", "metal_ir", "metal_ir_opt", "msl", "copies", "all")


def is_on(name: str, default: bool = False) -> bool:
    value = os.environ.get(name) or str(int(default))
    if value not in ("0", "1"):
        raise ValueError(f"the environment variable {name} is 1 or 0, not {value!r}")
    return value == "1"


def debug_words() -> set[str]:
    """What METILE_DEBUG asks for."""
    if _environment is not None and _DEBUG not in _environment:
        return set()
    words = {word for part in os.environ.get("METILE_DEBUG", "").split(",") if (word := part.strip())}
    if unknown := words.difference(_WORDS):
        raise ValueError(f"the environment variable METILE_DEBUG is a list of {', '.join(_WORDS)}, not {', '.join(sorted(unknown))}")
    return words
