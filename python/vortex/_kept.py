"""What was compiled, on disk, by all that it was made from. What is there needs no compiler, whose libraries take longer to load than most kernels
to compile: the key holds the id of the compiler's code, which its file tells without being loaded."""
from __future__ import annotations

import functools
import marshal
import os
import sys
import warnings
from typing import Any

import _vortex

_PLACES = ("vortex/lib", "../lib")  # beside the extensions: installed, and in a build folder


@functools.lru_cache(maxsize=None)
def _compiler_id() -> str | None:
    """None: the compiler is somewhere else, and nothing is kept."""
    for place in _PLACES:
        path = os.path.join(os.path.dirname(_vortex.__file__), place, "libvortex_compiler.so.0")
        if os.path.exists(path):
            return _vortex.library_id(path)
    return None


@functools.lru_cache(maxsize=None)
def _cache(folder: str) -> _vortex.KernelCache:
    return _vortex.KernelCache(folder)


def _bytes(key: tuple) -> bytes:
    return repr((_compiler_id(), sys.implementation.cache_tag, key)).encode()


def find(key: tuple, folder: str = "") -> Any:
    """What was kept for the key, or None."""
    if _compiler_id() is None:
        return None
    found = _cache(folder).get(_bytes(key))
    return None if found is None else marshal.loads(found)


def keep(key: tuple, value: Any, folder: str = "") -> None:
    """Keeps a value of plain data that the compiler in this process made. A folder that cannot be written is a warning, once."""
    import _vortex_compiler

    if _vortex_compiler.library_id() != _compiler_id():
        return
    try:
        _cache(folder).put(_bytes(key), marshal.dumps(value))
    except RuntimeError as error:
        warnings.warn(str(error), RuntimeWarning, stacklevel=2 + depth_of_packages())


def depth_of_packages() -> int:
    """Frames of these packages between the caller and who called them: for warnings."""
    depth, frame = 0, sys._getframe(1)
    packages = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    inside = tuple(os.path.join(packages, name, "") for name in ("vortex", "metile"))
    while (frame := frame.f_back) is not None and (frame.f_code.co_filename.startswith(inside) or frame.f_code.co_filename == functools.__file__):
        depth += 1
    return depth
