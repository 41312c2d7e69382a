"""What was compiled, on disk, by all that it was made from. What is there needs no compiler, whose libraries take longer to load than most kernels
to compile: the key holds the id of the compiler's code, which its file tells without being loaded."""
from __future__ import annotations

import functools
import marshal
import os
import sys
import warnings
from collections.abc import Callable
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


def _may_keep() -> bool:
    """The compiler in this process is the one that keys name."""
    import _vortex_compiler

    return _vortex_compiler.library_id() == _compiler_id()


def keep(key: tuple, value: Any, folder: str = "") -> None:
    """Keeps a value of plain data that the compiler in this process made. A folder that cannot be written is a warning, once."""
    if not _may_keep():
        return
    try:
        _cache(folder).put(_bytes(key), marshal.dumps(value))
    except RuntimeError as error:
        _warn(str(error))


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=2 + depth_of_packages())


def facts(loaded: _vortex.LoadedKernel, device: _vortex.Device, build: Callable[[], bytes]) -> dict[str, int]:
    """Those of the whole code. `build` makes the artifact of all entry points, where the kernel that is loaded makes them one by one."""
    known = loaded.facts()
    return known if "object_bytes" in known or "ptx_bytes" in known else _vortex.load(device, build()).facts()


def _hash(content: bytes) -> bytes:
    import hashlib

    return hashlib.sha256(content).digest()


Plan = tuple[bytes, Any, bytes]  # artifact; what makes the entry points that it lacks, or None; the same as bytes


def load(device: _vortex.Device, key: tuple | None, plan: Callable[[], tuple[Plan, Any]], again: Callable[[], Plan], folder: str = ""):
    """A kernel on a device, and what `plan` told with it. Its plan is on disk or made now. Entry points are made when launches first need them and kept
    one by one. `again` makes the plan once more when only a part of it is on disk; it must hold nothing that holds the kernel, which holds it."""
    known = find(key, folder) if key else None
    entries = None
    if known is None:
        (artifact, entries, kept), told = plan()
        identity = _hash(kept)
        if key:
            keep(key, (told, artifact, identity), folder)
            if entries is not None:
                keep((*key, "plan"), kept, folder)
    else:
        told, artifact, identity = known

    def opened() -> tuple[Any, bool]:
        import _vortex_compiler

        if entries is not None:
            return entries, bool(key) and _may_keep()
        kept = find((*key, "plan"), folder) if key else None
        if kept is not None:
            return _vortex_compiler.entries_of(kept), _may_keep()
        _, later, kept = again()
        if _hash(kept) != identity:
            raise RuntimeError("the files of the program have changed since this kernel was loaded: compile the program again")
        if key:
            keep((*key, "plan"), kept, folder)
        return later, _may_keep()

    cache = _cache(folder) if key and _compiler_id() is not None else None
    return _vortex.load_plan(device, artifact, cache, _bytes((*key, "entry")) if cache else b"", opened, _warn), told


def depth_of_packages() -> int:
    """Frames of these packages between the caller and who called them: for warnings."""
    depth, frame = 0, sys._getframe(1)
    packages = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    inside = tuple(os.path.join(packages, name, "") for name in ("vortex", "metile"))
    while (frame := frame.f_back) is not None and (frame.f_code.co_filename.startswith(inside) or frame.f_code.co_filename == functools.__file__):
        depth += 1
    return depth
