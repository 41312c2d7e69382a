"""Layouts: functions from coordinates to offsets, given by nested shapes and strides. The first mode runs fastest.

A shape is an int or a tuple of shapes; strides have the same form. An integer index counts coordinates with the first mode fastest."""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator


def _flatten(value) -> tuple:
    if isinstance(value, int):
        return (value,)
    return tuple(part for element in value for part in _flatten(element))


def _size(shape) -> int:
    return math.prod(_flatten(shape))


def _congruent(a, b) -> bool:
    """Do both have one form?"""
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int)
    return len(a) == len(b) and all(_congruent(x, y) for x, y in zip(a, b))


def _compatible(a, b) -> bool:
    """Is every coordinate of `a` one of `b`, whose modes may be split further?"""
    if isinstance(a, int):
        return a == _size(b)
    return not isinstance(b, int) and len(a) == len(b) and all(_compatible(x, y) for x, y in zip(a, b))


def _column_major(shape, first: int = 1):
    """(strides of the shape from `first` on, what follows)."""
    if isinstance(shape, int):
        return first, first * shape
    strides = []
    for extent in shape:
        stride, first = _column_major(extent, first)
        strides.append(stride)
    return tuple(strides), first


def idx2crd(index: int, shape):
    """The coordinate that an index counts."""
    if isinstance(shape, int):
        return index % shape if shape else 0
    out = []
    for extent in shape:
        out.append(idx2crd(index % _size(extent), extent))
        index //= _size(extent)
    return tuple(out)


def crd2idx(coordinate, shape, stride=None) -> int:
    """The offset of a coordinate; column-major without strides."""
    stride = _column_major(shape)[0] if stride is None else stride
    if isinstance(coordinate, int):
        if isinstance(shape, int):
            return coordinate * stride
        coordinate = idx2crd(coordinate, shape)
    if isinstance(shape, int) or len(coordinate) != len(shape):
        raise ValueError(f"coordinate {coordinate} in a layout of shape {shape}")
    return sum(crd2idx(part, extent, step) for part, extent, step in zip(coordinate, shape, stride))


def _check_integers(value, what: str, least: int | None) -> None:
    """A shape or a stride, nested or not."""
    if isinstance(value, (tuple, list)):
        for part in value:
            _check_integers(part, what, least)
    elif not isinstance(value, int):
        raise TypeError(f"a {what} of a layout is made of integers, not of {value!r}")
    elif least is not None and value < least:
        raise ValueError(f"a {what} of a layout is made of extents that are not negative, not of {value}")


class Layout:
    """A shape with strides; column-major unless strides are given."""

    def __init__(self, shape, stride=None):
        _check_integers(shape, "shape", 0)
        if stride is not None:
            _check_integers(stride, "stride", None)
        self.shape = shape if isinstance(shape, int) else tuple(shape)
        self.stride = _column_major(self.shape)[0] if stride is None else stride
        if not _congruent(self.shape, self.stride):
            raise ValueError(f"shape {self.shape} and stride {self.stride} have different forms")

    @property
    def size(self) -> int:
        return _size(self.shape)

    @property
    def rank(self) -> int:
        """Modes at the top; 0 for a plain extent."""
        return 0 if isinstance(self.shape, int) else len(self.shape)

    @property
    def depth(self) -> int:
        def of(shape) -> int:
            return 0 if isinstance(shape, int) else 1 + max((of(extent) for extent in shape), default=0)

        return of(self.shape)

    @property
    def cobound(self) -> int:
        """One more than the largest offset."""
        return self(self.size - 1) + 1 if self.size else 0

    def __call__(self, *coordinate) -> int:
        return crd2idx(coordinate[0] if len(coordinate) == 1 else coordinate, self.shape, self.stride)

    def __getitem__(self, mode: int) -> Layout:
        if isinstance(self.shape, int):
            if mode != 0:
                raise IndexError(mode)
            return self
        return Layout(self.shape[mode], self.stride[mode])

    def __eq__(self, other):
        return isinstance(other, Layout) and (self.shape, self.stride) == (other.shape, other.stride)

    def __hash__(self):
        return hash((self.shape, self.stride))

    def __repr__(self):
        return f"{self.shape}:{self.stride}"

    def table(self) -> list[int]:
        """The offsets of all indices."""
        return [self(index) for index in range(self.size)]

    def is_injective(self) -> bool:
        return len(set(self.table())) == self.size

    def is_compact(self) -> bool:
        """Are the offsets 0 to size - 1, each once?"""
        return self.is_injective() and self.cobound == self.size

    def _modes(self) -> Iterator[tuple[int, int]]:
        return zip(_flatten(self.shape), _flatten(self.stride))

    def coalesce(self) -> Layout:
        """The same function with as few modes as possible."""
        modes: list[tuple[int, int]] = []
        for extent, stride in self._modes():
            if extent == 1:
                continue
            if modes and modes[-1][0] * modes[-1][1] == stride:
                modes[-1] = (modes[-1][0] * extent, modes[-1][1])
            else:
                modes.append((extent, stride))
        return _of_modes(modes)

    def compose(self, other: Layout) -> Layout:
        """index -> self(other(index))."""
        if isinstance(other.shape, tuple):
            parts = [self.compose(other[mode]) for mode in range(other.rank)]
            return Layout(tuple(part.shape for part in parts), tuple(part.stride for part in parts))
        modes, wanted, step = [], other.shape, other.stride
        flat = list(self.coalesce()._modes()) or [(1, 0)]
        for position, (extent, stride) in enumerate(flat):
            is_last = position + 1 == len(flat)
            if step and step % extent == 0 and not is_last:
                step //= extent
                continue
            if step and not is_last and extent % step != 0:
                raise ValueError(f"{other} does not divide {self}")
            available = wanted if is_last or not step else min(wanted, extent // step)
            if wanted % available:
                raise ValueError(f"{other} does not divide {self}")
            modes.append((available, stride * step))
            wanted //= available
            step = 1 if step else 0
            if wanted == 1:
                break
        return _of_modes([mode for mode in modes if mode[0] != 1])

    def complement(self, bound: int) -> Layout:
        """A layout of the offsets below `bound` that this one leaves out: together they reach each once."""
        modes, reached = [], 1
        for stride, extent in sorted((stride, extent) for extent, stride in self._modes() if extent > 1 and stride > 0):
            if stride % reached:
                raise ValueError(f"{self} has no complement")
            modes.append((stride // reached, reached))
            reached = stride * extent
        modes.append((-(-bound // reached), reached))
        return _of_modes([mode for mode in modes if mode[0] != 1]).coalesce()

    def logical_divide(self, tiler) -> Layout:
        """(within a tile, which tile)."""
        tile = Layout(tiler, 1) if isinstance(tiler, int) else tiler
        rest = tile.complement(self.size)
        return self.compose(Layout((tile.shape, rest.shape), (tile.stride, rest.stride)))

    def logical_product(self, other: Layout) -> Layout:
        """(this layout, its repetitions as `other` orders them)."""
        rest = self.complement(self.size * other.cobound).compose(other)
        return Layout((self.shape, rest.shape), (self.stride, rest.stride))

    def right_inverse(self) -> Layout:
        """index of the offsets 0, 1, …: self(result(k)) == k."""
        strides = dict(zip(_flatten(self.stride), zip(_flatten(self.shape), _flatten(_column_major(self.shape)[0]))))
        modes, reached = [], 1
        while reached in strides:
            extent, position = strides.pop(reached)
            modes.append((extent, position))
            reached *= extent
            if extent == 1:
                break
        return _of_modes(modes).coalesce()


def _of_modes(modes: list[tuple[int, int]]) -> Layout:
    if not modes:
        return Layout(1, 0)
    if len(modes) == 1:
        return Layout(*modes[0])
    return Layout(tuple(extent for extent, _ in modes), tuple(stride for _, stride in modes))


def make_layout(shape, stride=None) -> Layout:
    return Layout(shape, stride)


def col_major(*shape: int) -> Layout:
    return Layout(shape)


def row_major(*shape: int) -> Layout:
    return Layout(shape, tuple(math.prod(shape[mode + 1 :]) for mode in range(len(shape))))


def make_identity(shape) -> Layout:
    """Offsets are indices."""
    return Layout(shape)


def simdgroup_layout_8x8() -> Layout:
    """(lane, value) to the offset in a column-major 8 x 8 tile that 32 lanes hold, two values in a row each."""
    return Layout(((4, 8), 2), ((16, 1), 8))


def threadgroup_tile(rows: int, columns: int, threads: int) -> Layout:
    """(thread, value) to the offset in a row-major tile that the threads share out in runs."""
    if rows * columns % threads:
        raise ValueError(f"a tile of {rows} x {columns} elements is not shared out evenly among {threads} threads")
    values = rows * columns // threads
    return Layout((threads, values), (values, 1))


def print_layout(layout: Layout) -> str:
    """The offsets as a table; it is printed and returned."""
    rows, columns = (layout.size, 1) if layout.rank < 2 else (layout[0].size, layout[1].size)
    width = len(str(max(layout.table(), default=0)))
    text = "\n".join(" ".join(f"{layout(row + column * rows):{width}}" for column in range(columns)) for row in range(rows))
    print(text)
    return text


class Swizzle:
    """offset ^ (`bits` of it from base + shift on, moved to base)."""

    def __init__(self, bits: int, base: int, shift: int):
        if bits <= 0 or base < 0 or shift <= 0:
            raise ValueError(f"Swizzle<{bits},{base},{shift}>: bits and shift are positive, base is not negative")
        self.bits, self.base, self.shift = bits, base, shift

    @property
    def mask(self) -> int:
        """The bits that change."""
        return ((1 << self.bits) - 1) << self.base

    def __call__(self, offset: int) -> int:
        return offset ^ (offset >> self.shift) & self.mask

    def __eq__(self, other):
        return isinstance(other, Swizzle) and (self.bits, self.base, self.shift) == (other.bits, other.base, other.shift)

    def __hash__(self):
        return hash((self.bits, self.base, self.shift))

    def __repr__(self):
        return f"Swizzle<{self.bits},{self.base},{self.shift}>"


def make_swizzle(stride: int, num_banks: int = 32) -> Swizzle | None:
    """One that spreads a column of rows of `stride` elements over the banks; None where a shift by bits cannot."""
    if stride < 2 or stride & (stride - 1):
        return None
    shift = stride.bit_length() - 1
    return Swizzle(min(shift, num_banks.bit_length() - 1), 0, shift)


def bank_conflicts(layout: Layout, num_banks: int = 32, group_size: int = 32, swizzle: Swizzle | None = None) -> dict:
    """How many lanes of a group wait for the same bank: {"max_way", "total_conflicts", "conflict_free"}."""
    table = [swizzle(offset) if swizzle else offset for offset in layout.table()]
    worst, total = 1, 0
    for first in range(0, len(table), group_size):
        banks = Counter(offset % num_banks for offset in set(table[first : first + group_size]))
        worst = max(worst, *banks.values())
        total += sum(count - 1 for count in banks.values())
    return {"max_way": worst, "total_conflicts": total, "conflict_free": worst == 1}
