"""Races of kernels whose instances draw numbers from a queue (persistent_range).

The core sees numbers that come out of memory, about which nothing is known. Here is known that each is drawn once. So the kernel is judged with an
instance for each number: the loop runs once, for the number of its instance. Two iterations that run at once are two such instances, and what stands
before and behind the loop runs in all of them. Such an instance knows nothing of earlier iterations: what the loop carries must reach no offset, mask
or bound."""
from __future__ import annotations

import re

_MOST = (1 << 31) - 1  # numbers
_PLAIN = {"store": (2,), "tile_store": (3,), "yield": (1,), "carry": (1,), "print": range(1, 1000)}  # operands that decide nothing else
_MEMORY = ("load", "tile_load", "shared", "simd_shuffle_xor", "simd_broadcast")


def numbers_as_instances(text: str, grid: tuple) -> tuple[str, tuple]:
    """The trace and the grid to judge instead of these."""
    lines = text.split("\n")
    ops = [line.partition(" @ ")[0].split() or [""] for line in lines]
    heads = [op[0] for op in ops]
    asked = {op[2] for op in ops if op[1:2] in (["pid"], ["programs"])}
    free = next((axis for axis in range(3) if f"i{axis}" not in asked), None)
    if heads.count("draw") != 1 or free is None:
        return text, grid
    draw = heads.index("draw")
    first = draw
    while heads[first - 1] == "carry":
        first -= 1
    is_inner = heads[:draw].count("loop") != heads[:draw].count("end")
    is_read = any(ops[draw][2] in op for number, op in enumerate(ops) if number != draw)  # the counter
    if is_inner or is_read or not _is_data({op[1] for op in ops[first:draw]}, ops):
        return text, grid
    last = max(int(number) for number in re.findall(r"%(\d+)", text))
    own, after, place = f"%{last + 1}", f"%{last + 2}", lines[draw].partition(" @ ")[2]
    lines[draw] = f"loop {ops[draw][1]} {own} {after} i1 @ {place}"
    lines[heads.index("axes")] = " ".join(["axes", *(f"i{axis}" for axis in range(3) if f"i{axis}" in asked or axis == free)])
    made = [f"{own} pid i{free} @ {place}", f"{after} add {own} i1 @ {place}"]
    return "\n".join([*lines[:first], *made, *lines[first:]]), tuple(_MOST if axis == free else extent for axis, extent in enumerate(grid))


def _is_data(values: set[str], ops: list[list[str]]) -> bool:
    """Neither these values nor what is computed from them decides where memory is reached, or whether."""
    reached: set[str] = set()
    while len(reached) < len(values):
        reached = set(values)
        for op in ops:
            if op[0].startswith("%") and not values.isdisjoint(op[2:]):
                if op[1] in _MEMORY or op[1].startswith("atomic"):
                    return False
                values.add(op[0])
            elif op[0] in ("yield", "carry") and op[2] in values:
                values.add(op[1])
            elif not op[0].startswith("%"):
                places = _PLAIN.get(op[0], ())
                if any(value in values and place not in places for place, value in enumerate(op[1:]) if not (place == 0 and op[0] in ("yield", "carry"))):
                    return False
                if op[0] == "store" and op[1].startswith("t") and op[3] in values:
                    return False
    return True
