"""Interactions of structural equality and of the short-circuit operators, as handlers of reduce.Machine."""
from .terms import ERASURE, Cell, Term, num, sup


def binary(tag, left, right):
    return Term(tag, None, [left, right])


def split(tag, label, sides, other, flipped=False):
    """`tag` of each of two superposed sides and of a copy of the other operand."""
    cell = Cell(other)
    copies = Term("DP0", label, cell=cell), Term("DP1", label, cell=cell)
    return sup(label, *(binary(tag, *((copy, side) if flipped else (side, copy))) for side, copy in zip(sides, copies)))


def equal(machine, node, left, stack):
    right = node.fields[1]
    if left.tag == "ERA":
        machine.fire("EQL-ERA-L")
        return ERASURE
    if left.tag == "ANY":
        machine.fire("EQL-ANY-L")
        return num(1)
    if left.tag == "SUP":
        machine.fire("EQL-SUP-L")
        return split("EQL", left.ext, left.fields, right)
    if left.tag == "INC":
        machine.fire("EQL-INC-L")
        return Term("INC", None, [binary("EQL", left.fields[0], right)])
    node.fields[0] = left
    if machine.is_open(left):
        return None
    stack.append((node, equal_right))
    return right


def equal_right(machine, node, right, _):
    left = node.fields[0]
    if right.tag == "ERA":
        machine.fire("EQL-ERA-R")
        return ERASURE
    if right.tag == "ANY":
        machine.fire("EQL-ANY-R")
        return num(1)
    if right.tag == "SUP":
        machine.fire("EQL-SUP-R")
        return split("EQL", right.ext, right.fields, left, flipped=True)
    if right.tag == "INC":
        machine.fire("EQL-INC-R")
        return Term("INC", None, [binary("EQL", left, right.fields[0])])
    if machine.is_open(right):
        node.fields[1] = right
        return None
    return equal_values(machine, left, right)


def equal_values(machine, left, right):
    tag = left.tag if left.tag == right.tag else None
    pairs = [binary("EQL", a, b) for a, b in zip(left.fields, right.fields)]
    if tag == "NUM":
        machine.fire("EQL-NUM")
        return num(left.ext == right.ext)
    if tag == "LAM":
        machine.fire("EQL-LAM")
        machine.names += 1
        for side in (left, right):
            side.cell.term, side.cell.bound = Term("NAM", ("fresh", machine.names)), True
        return pairs[0]
    if tag == "CTR":
        machine.fire("EQL-CTR")
        return equal_constructors(left, right, pairs)
    if left.tag in ("MAT", "SWI") and right.tag in ("MAT", "SWI"):
        machine.fire("EQL-MAT")
        return binary("AND", *pairs) if (left.tag, left.ext) == (right.tag, right.ext) else num(0)
    if tag == "USE":
        machine.fire("EQL-USE")
        return pairs[0]
    if {left.tag, right.tag} <= {"NAM", "BJV"}:
        machine.fire("EQL-NAM")
        return num((left.tag, left.ext) == (right.tag, right.ext))
    if tag == "DRY":
        machine.fire("EQL-DRY")
        return binary("AND", *pairs)
    machine.fire("EQL-NOT")
    return num(0)


def equal_constructors(left, right, pairs):
    if left.ext != right.ext or len(left.fields) != len(right.fields):
        return num(0)
    if not pairs:
        return num(1)
    if left.ext == "SUC" and len(pairs) == 1:
        return Term("INC", None, pairs)
    if left.ext == "CON" and len(pairs) == 2:
        return Term("INC", None, [binary("AND", pairs[0], Term("INC", None, pairs[1:]))])
    result = pairs[0]
    for pair in pairs[1:]:
        result = binary("AND", result, pair)
    return result


def short_circuit(tag, machine, node, left):
    right = node.fields[1]
    if left.tag == "ERA":
        machine.fire(tag + "-ERA")
        return ERASURE
    if left.tag == "SUP":
        machine.fire(tag + "-SUP")
        return split(tag, left.ext, left.fields, right)
    if left.tag == "INC":
        machine.fire(tag + "-INC")
        return Term("INC", None, [binary(tag, left.fields[0], right)])
    if left.tag != "NUM":
        node.fields[0] = left
        return None
    machine.fire(f"{tag}-{'ZER' if left.ext == 0 else 'ONE'}")
    if (left.ext == 0) == (tag == "AND"):
        return num(tag == "OR")
    return right


def and_(machine, node, left, _):
    return short_circuit("AND", machine, node, left)


def or_(machine, node, left, _):
    return short_circuit("OR", machine, node, left)
