"""Native functions: %log writes a string, %nf and %gnf are the strong normal form of their argument."""
from .normal import strong
from .terms import ERASURE, Cell, RuntimeFailure, Term, chain, ctr, num, sup


def native(machine, node):
    """What the call is reduced to; None if it has to wait: its normal form depends on a variable that may be bound later."""
    if node.ext == "log":
        return log(machine, node.fields[0])
    machine.begun += 1
    machine.calls.append(machine.begun)
    done = strong(machine, node.fields, whole=False)
    machine.calls.pop()
    return node.fields[0] if done else None


def log(machine, rest):
    said = []

    def again(term):
        return Term("PRI", "log", [chain([ctr("CHR", num(code)) for code in said], term)])

    def each(term, rebuild, tail):
        """What `term` makes of the whole call if it is not a value, else None. `rebuild` puts a part of it and `tail` back together."""
        if term.tag == "ERA":
            return ERASURE
        if term.tag == "INC":
            return Term("INC", None, [again(rebuild(term.fields[0], tail))])
        if term.tag == "SUP":
            cell = Cell(tail)
            tails = Term("DP0", term.ext, cell=cell), Term("DP1", term.ext, cell=cell)
            return sup(term.ext, *(again(rebuild(*part)) for part in zip(term.fields, tails)))
        return None

    while True:
        rest = machine.wnf(rest)
        if found := each(rest, lambda part, _: part, None):
            return found
        if is_ctr(rest, "NIL", 0):
            machine.log.append("".join(map(chr, said)))
            return ctr("NIL")
        if not is_ctr(rest, "CON", 2):
            raise RuntimeFailure("%log expects a string")
        head, tail = machine.wnf(rest.fields[0]), rest.fields[1]
        if found := each(head, lambda part, after: ctr("CON", part, after), tail):
            return found
        if not is_ctr(head, "CHR", 1):
            raise RuntimeFailure("%log expects a string")
        code = machine.wnf(head.fields[0])
        if found := each(code, lambda part, after: ctr("CON", ctr("CHR", part), after), tail):
            return found
        if code.tag != "NUM":
            raise RuntimeFailure("%log expects a string")
        if code.ext > 0x10ffff or 0xd800 <= code.ext < 0xe000:
            raise RuntimeFailure(f"%log expects characters, and #CHR{{{code.ext}}} is none")
        said.append(code.ext)
        rest = tail


def is_ctr(term, name, arity):
    return term.tag == "CTR" and term.ext == name and len(term.fields) == arity
