"""Where the matrices of a product end: A is M x K, B is K x N and C is M x N in a kernel that has integer arguments of these names and the form

    a, b = tile_load(A, row, k, K, …), tile_load(B, k, column, N, …); acc = dot(a, b, acc); tile_store(C, row, column, N, …)

where row, k and column are the same numbers in all of these, however they are spelled, and a and b may be computed from what is loaded. A matrix that
the kernel also reaches at other places, or with `rows=`, ends with its memory as others do."""
from __future__ import annotations

_COMMUTE = {"add", "mul"}
_NUMBERS = _COMMUTE | {"pid", "programs", "param", "sub", "div", "rem", "neg", "minimum", "maximum"}
_NO_ELEMENTS = {"dot", "transpose", "tile_sum", "tile_max", "tile_min"}  # their elements are no longer those at the same place


class _Lines:
    """The lines of a trace by the values that they define; equal numbers of a program instance have one name."""

    def __init__(self, lines: list[str]):
        self.made: dict[str, tuple] = {}
        self.stores: list[list[str]] = []
        self.uses: list[list[str]] = []  # of matrices
        self._names: dict = {}
        self._known: dict[str, str] = {}
        for line in lines:
            words = line.partition(" @ ")[0].split()
            if words[0].startswith("%"):
                self.made[words[0]] = words[1], words[2:]
                self._known[words[0]] = self._name(*words)
                if words[1] == "tile_load":
                    self.uses.append(words[2:])
            elif words[0] == "tile_store":
                self.stores.append(words[1:])
                self.uses.append(words[1:4] + words[5:])

    def _name(self, result: str, operation: str, *operands: str) -> str:
        if operation not in _NUMBERS:
            return result
        of = [self.name(operand) for operand in operands]
        if operation == "add" and "i0" in of:
            return of[1 - of.index("i0")]
        return self._names.setdefault((operation, *(sorted(of) if operation in _COMMUTE else of)), result)

    def name(self, word: str) -> str:
        return self._known.get(word, word)

    def loads(self, word: str, seen: set):
        """The tiles that an operand of a product is computed from."""
        operation, operands = self.made.get(word, ("", []))
        if word in seen or operation in _NO_ELEMENTS:
            return
        seen.add(word)
        if operation == "tile_load":
            yield operands
        else:
            for operand in operands:
                yield from self.loads(operand, seen)


def limit_matrices(lines: list[str], slots: list) -> None:
    """Tells the matrices of products of this form where their rows end."""
    if not {"int M", "int N", "int K"} <= {slot.header for slot in slots} or not any(line.partition(" ")[2].startswith("dot ") for line in lines):
        return
    of = _Lines(lines)
    sizes = {slots[int(operands[0][1:])].header[4:]: word for word, (operation, operands) in of.made.items() if operation == "param"}

    def is_matrix(operands: list, columns: str, number: int) -> bool:
        """The operands are a matrix that begins with its memory, row, column and as many others as `number` says."""
        slot = slots[int(operands[0][1:])] if operands[0].startswith("p") else None  # or shared memory
        return slot is not None and len(operands) == number and slot.rank == 2 and not slot.is_moved and of.name(str(slot.columns)) == of.name(sizes[columns])

    found: dict[str, set] = {}  # matrix -> (rows, row and column of a tile)
    for _, (operation, operands) in list(of.made.items()):
        if operation != "dot":
            continue
        lefts = [load for load in of.loads(operands[0], set()) if is_matrix(load, "K", 5)]
        rights = [load for load in of.loads(operands[1], set()) if is_matrix(load, "N", 5)]
        stores = [store for store in of.stores if is_matrix(store, "N", 6)]
        for a, row, k, *_ in lefts:
            for b, b_row, column, *_ in rights:
                for c, c_row, c_column, *_ in stores:
                    if (of.name(k), of.name(row), of.name(column)) == (of.name(b_row), of.name(c_row), of.name(c_column)):
                        for matrix, rows, *place in ((a, "M", row, k), (b, "K", k, column), (c, "M", row, column)):
                            found.setdefault(matrix, set()).add((rows, *map(of.name, place)))
    for matrix, places in found.items():
        rows, *others = {rows for rows, *_ in places}
        if not others and all(len(use) == 5 and (rows, *map(of.name, use[1:3])) in places for use in of.uses if use[0] == matrix):
            slots[int(matrix[1:])].limit = rows
