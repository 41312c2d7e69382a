"""What a program of several files depends on, so that it is found on disk without the compiler: the files that it imported, and the absence of those
that would be imported instead of them."""
from __future__ import annotations

import os

from . import _kept


class Imports:
    def __init__(self, program: tuple, paths: list[str]):
        self._program, self._paths = (*program, tuple(paths)), paths

    def key(self) -> tuple | None:
        """Of what was made of the program and the files that it imports, as they are now; None: what it imports is not known."""
        names = _kept.find(("imports", *self._program))
        state = None if names is None else self._state({name: _read(name) for name in names})
        return None if state is None else (*self._program, state)

    def found(self, files: list[tuple[str, bytes]]) -> tuple | None:
        """The same, of the files that the compiler read: the program and its imports."""
        imported = {name: text for name, text in files[1:] if os.path.isfile(name)}  # others are the compiler's own
        state = self._state(imported)
        if state is None:
            return None
        _kept.keep(("imports", *self._program), list(imported))
        return *self._program, state

    def _state(self, texts: dict[str, bytes | None]) -> str | None:
        """A hash of the texts and of which files are beside them; None: one cannot be read."""
        if None in texts.values():
            return None
        import hashlib  # loads OpenSSL: a seventh of what importing the package takes

        digest = hashlib.sha256(repr(list(texts.items())).encode())
        folders = sorted({os.path.dirname(name) for name in (self._program[1], *texts)} | set(self._paths))
        for relative in sorted({name for text in texts for name in _relatives(text, folders)}):
            for folder in folders:
                path = os.path.join(folder, relative)
                # `import a.f` is the item f of a.vx where there is no a/f.vx
                digest.update(repr((path, os.path.isfile(path), _listed(path.removesuffix(".vx")))).encode())
        return digest.hexdigest()


def _relatives(name: str, folders: list[str]) -> list[str]:
    """What the file may have been imported as."""
    return [os.path.relpath(name, folder or ".") for folder in folders if os.path.dirname(name).startswith(folder)]


def _read(name: str) -> bytes | None:
    try:
        with open(name, "rb") as file:
            return file.read()
    except OSError:
        return None


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
