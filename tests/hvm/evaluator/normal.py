"""Strong normal form, and the collapse of superpositions to an ordered list of ordinary terms."""
from collections import deque

from .terms import ERASURE, Cell, Term, followed, sup

MAX_KEY = 63
VALUES = {"LAM", "SUP", "ERA", "NUM", "CTR", "MAT", "SWI", "USE", "ANY", "INC"}
ATOMS = {"ERA", "SUP", "INC", "NUM", "NAM", "BJV", "REF", "ANY", "VAR", "DP0", "DP1"}


def strong(machine, root, whole=True):
    """Normalises root[0]. What waits for an open variable waits until everything else is normal; if it waits then, it is final, but for
    what is not the whole: then this returns False."""
    final = machine.final
    waiting, seen, steps = [(root, 0)], set(), -1
    while waiting and steps != machine.count:
        steps, waiting = machine.count, visit(machine, waiting, seen)
        if steps == machine.count:
            for fields, i in waiting:
                reduce_operands(machine, fields[i])
    if waiting and not whole:
        return False
    while waiting and steps != machine.steps:
        machine.final, steps = True, machine.steps
        visit(machine, [(root, 0)], set())
    machine.final = final
    return True


def reduce_operands(machine, waiting):
    """Operators and comparisons may wait for a variable that their other operand binds. Whether that one comes first is a matter of order, so it is
    reduced before anything that waits is taken for final."""
    skipped = 0
    while (found := operator(waiting, skipped)) is not None:
        node, cells = found
        for cell in cells:  # the operand may refer to them, and then waits
            cell.busy = True
        before, machine.ahead = machine.ahead, True
        node.fields[1] = machine.wnf(node.fields[1])
        machine.ahead = before
        for cell in cells:
            cell.busy = False
        skipped += not is_reduced(node.fields[1])


def is_reduced(term):
    return term.tag in VALUES


def operator(term, skipped):
    """The operator or comparison, after `skipped` others, whose first operand `term` waits for and whose second is no value; the cells it lies in."""
    pending, seen = [(term, [])], set()
    while pending:
        term, cells = pending.pop()
        term, cells = followed(term), cells[:]
        while term is not None:
            tag, after = term.tag, None
            if tag in ("DP0", "DP1"):
                if not term.cell.busy and term.cell not in seen:
                    seen.add(term.cell)
                    cells.append(term.cell)
                    after = term.cell.term
            elif tag == "APP":
                after = term.fields[followed(term.fields[0]).tag in ("MAT", "SWI", "USE")]
            elif tag == "OP2" and followed(term.fields[0]).tag == "NUM":
                after = term.fields[1]
            elif tag in ("OP2", "EQL"):
                if not is_reduced(term.fields[1]):
                    if skipped == 0:
                        return term, cells
                    skipped -= 1
                pending.append((term.fields[1], cells[:]))
                after = term.fields[0]
            elif tag in ("AND", "OR", "DSU", "DDU"):
                after = term.fields[0]
            term = followed(after) if after is not None else None
    return None


def visit(machine, positions, seen):
    """Normalises positions, each a list of fields and an index. Returns those that wait for an open variable."""
    stack, waiting = positions[::-1], []
    while stack:
        fields, i = stack.pop(machine.pick(len(stack)))
        term = fields[i] = machine.wnf(fields[i])
        if machine.is_open(term):
            waiting.append((fields, i))
            continue
        if term.tag == "LAM":
            machine.enter(term.cell)
        if term.tag not in ("DP0", "DP1"):
            stack.extend((term.fields, k) for k in reversed(range(len(term.fields))))
        elif term.cell not in seen:
            seen.add(term.cell)
            stack.append((CellField(term.cell), 0))
    return waiting


class CellField:
    """The value of an unresolved duplication as a list of one field. Once the cell is bound, the value is the other side's."""

    def __init__(self, cell):
        self.cell = cell

    def __getitem__(self, _):
        return self.cell.term

    def __setitem__(self, _, term):
        self.cell.term = term


def collapse(machine, root, limit=None):
    """The terms of `root` in order, as a generator."""
    machine.final = True
    queues = [deque() for _ in range(MAX_KEY + 1)]
    queues[0].append(root)
    printed = 0
    while printed != limit and (key := next((k for k, queue in enumerate(queues) if queue), None)) is not None:
        term = settled(machine, queues[key].popleft())
        while term.tag == "INC":
            key = max(key - 1, 0)
            term = settled(machine, term.fields[0])
        if term.tag == "SUP":
            queues[min(key + 1, MAX_KEY)].extend(term.fields)
        elif term.tag != "ERA":
            printed += 1
            yield term


def settled(machine, term):
    """`term` collapsed until nothing changes: a variable that was free may have been bound by what came after it."""
    before = None
    while before is None or machine.open and before != machine.count:
        before = machine.count
        term = collapsed(machine, term, 0)
    return term


def collapsed(machine, term, depth):
    """`term` with its first superposition, if any, at the top."""
    term = machine.wnf(term)
    if term.tag in ATOMS:
        return term
    if term.tag == "LAM":
        term.cell.term, term.cell.bound = Term("BJV", depth + 1), True
        body = collapsed(machine, term.fields[0], depth + 1)
        if body.tag == "ERA":
            return ERASURE
        parts = [Term("LAM", None, [part], Cell()) for part in (body.fields if body.tag in ("INC", "SUP") else [body])]
        return Term(body.tag, body.ext, parts) if body.tag in ("INC", "SUP") else parts[0]
    for i, field in enumerate(term.fields):
        field = collapsed(machine, field, depth)
        while field.tag == "INC":
            field = collapsed(machine, field.fields[0], depth)
        term.fields[i] = field
        if field.tag == "ERA":
            machine.cut = True
            return ERASURE
    first = next((i for i, field in enumerate(term.fields) if field.tag == "SUP"), None)
    return term if first is None else lift(term, first)


def lift(term, first):
    """The superposition of `term` with each side of its field `first`; the other fields are duplicated."""
    label, sides = term.fields[first].ext, ([], [])
    for i, field in enumerate(term.fields):
        cell = Cell(field)
        parts = term.fields[first].fields if i == first else [Term("DP0", label, cell=cell), Term("DP1", label, cell=cell)]
        for side, part in zip(sides, parts):
            side.append(part)
    return sup(label, *(Term(term.tag, term.ext, side) for side in sides))
