"""Last rows that their memory ends within, as of a matrix that begins at a column of a larger one: `flat[first:]` with rows of `stride` elements.

Such a row is a parameter of its own, a matrix of one shorter row behind the others. Kernels are made with it for launches that have one: a tile is then
loaded and stored in both, and an integer says how many rows the first has."""
from __future__ import annotations

import dataclasses


def with_tails(lines: list[str], slots: list, tails: tuple[int, ...], next_id: int) -> tuple[list[str], list]:
    """The lines of a trace and its parameters, with the last rows of these parameters."""
    slots, added, out = list(slots), {}, []
    for index in tails:
        slot = slots[index]
        number = len(slots)
        slots.append(dataclasses.replace(slot, header=_named(slot.header, number), tail_of=index))
        slots.append(dataclasses.replace(slot, header=f"int rows{number + 1}", rank=0, tail_of=index))
        added[f"p{index}"] = f"p{number}", f"p{number + 1}"
    ids = iter(range(next_id, 1 << 62))
    for line in lines:
        head, at, place = line.partition(" @ ")
        words = head.split()
        is_load = words[0].startswith("%") and words[1] == "tile_load"
        if (is_load or words[0] == "tile_store") and words[2 if is_load else 1] in added:
            out += [f"{text}{at}{place}" for text in _of_both(words, is_load, added, ids)]
        else:
            out.append(line)
    return out, slots


def _of_both(words: list[str], is_load: bool, added: dict, ids) -> list[str]:
    """Instead of one load or store of a tile."""
    out: list[str] = []

    def make(*operation: str) -> str:
        out.append(f"%{(number := next(ids))} {' '.join(operation)}")
        return f"%{number}"

    matrix, row, column, *rest = words[2:] if is_load else words[1:]
    value = [] if is_load else [rest.pop(0)]
    height, width, *part = rest
    tail, rows = added[matrix][0], make("param", added[matrix][1])
    there = []  # the last row as a part of its memory, which has it or has it not
    if part:
        first, count = part
        rows = make("sub", rows, first)
        least = make("minimum", make("sub", count, rows), make("add", rows, "i1"))
        there = ["i0", make("minimum", make("maximum", least, "i0"), "i1")]
    below = make("sub", row, rows)
    if not is_load:
        return [*out, " ".join(words), " ".join(("tile_store", tail, below, column, *value, height, width, *there))]
    last = make("tile_load", tail, below, column, height, width, *there)
    others = make("tile_load", matrix, row, column, height, width, *part)
    is_last = make("eq", make("add", make("positions", "i0", height), row), rows)
    return [*out, f"{words[0]} where {is_last} {last} {others}"]


def _named(header: str, number: int) -> str:
    kind, name, dtype = header.split()
    return f"{kind} {name}{number} {dtype}"
