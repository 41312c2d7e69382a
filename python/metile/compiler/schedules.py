"""Orders in which the tiles of a grid are visited. Every schedule is a permutation of the grid; patterns that do not suit a grid fall back."""
from __future__ import annotations

from collections.abc import Iterator

PATTERNS = ("auto", "linear", "diagonal", "morton", "hilbert", "grouped2", "grouped4", "grouped8")
_BLOCKS = {"morton": 2, "hilbert": 4}


def validate_schedule(pattern: str, block_size: int | None = None) -> str:
    """The pattern's name. ValueError: there is none, or it works on blocks of another size."""
    name = pattern or "linear"
    if name not in PATTERNS:
        raise ValueError(f"Unknown tile schedule {pattern!r}; there are {', '.join(PATTERNS)}")
    wanted = _BLOCKS.get(name)
    if wanted is not None and block_size is not None and block_size != wanted:
        raise ValueError(f"tile schedule {name!r} needs block_size={wanted}, not {block_size}")
    return name


def resolve_schedule(pattern: str, grid_m: int, grid_n: int) -> str:
    """What a pattern becomes on a grid: the panels of hilbert and morton must fill it."""
    name = validate_schedule(pattern)
    for candidate in ("hilbert", "morton"):
        if name in (candidate, "auto") and grid_m % _BLOCKS[candidate] == 0 and grid_n % _BLOCKS[candidate] == 0:
            return candidate
    return "diagonal" if name in ("auto", "hilbert", "morton") else name


def schedule_coordinates(grid_m: int, grid_n: int, pattern: str) -> Iterator[tuple[int, int]]:
    """(row, column) of the tiles in the order of the schedule."""
    name = resolve_schedule(pattern, grid_m, grid_n)
    if name.startswith("grouped"):
        yield from _grouped(grid_m, grid_n, int(name.removeprefix("grouped")))
    elif name == "diagonal":
        yield from ((m, (m + n) % grid_n) for n in range(grid_n) for m in range(grid_m))
    elif name in _BLOCKS:
        size = _BLOCKS[name]
        inner = [(0, 0), (0, 1), (1, 0), (1, 1)] if name == "morton" else [_hilbert(size, step) for step in range(size * size)]
        yield from ((m + i, n + j) for m in range(0, grid_m, size) for n in range(0, grid_n, size) for i, j in inner)
    else:
        yield from ((m, n) for m in range(grid_m) for n in range(grid_n))


def _grouped(grid_m: int, grid_n: int, height: int) -> Iterator[tuple[int, int]]:
    """Columns of `height` tiles, so that neighbours share columns of the right operand."""
    for first in range(0, grid_m, height):
        yield from ((m, n) for n in range(grid_n) for m in range(first, min(first + height, grid_m)))


def _hilbert(size: int, step: int) -> tuple[int, int]:
    """The cell that the Hilbert curve through a square of `size` (a power of two) reaches at a step."""
    x = y = 0
    scale = 1
    while scale < size:
        right = 1 & (step // 2)
        up = 1 & (step ^ right)
        if up == 0:
            if right:
                x, y = scale - 1 - x, scale - 1 - y
            x, y = y, x
        x, y = x + scale * right, y + scale * up
        step //= 4
        scale *= 2
    return x, y
