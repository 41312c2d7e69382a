"""Names in scope, how often each is used, and the duplications that a binder marked & receives."""
from .terms import Term

FIRST_AUTOMATIC, LAST_AUTOMATIC = 0x18000, 0x1FFFE  # beyond the 16 bits that programs write and compute; printed without the 17th bit


class Binder:
    """Kinds: lam; dup (static label); ddu, whose two sides are the binders `left` and `right` of two lambdas."""

    def __init__(self, kind, name=None, cloned=False, label=None, fork=False):
        self.kind, self.name, self.cloned, self.label, self.fork = kind, name, cloned, label, fork
        if kind == "ddu":
            self.left, self.right = Binder("lam"), Binder("lam")

    def variable(self, side=None):
        if self.kind == "lam":
            return Term("VAR", cell=self)
        if self.kind == "dup":
            return Term(("DP0", "DP1")[side], self.label, cell=self)
        return (self.left, self.right)[side].variable()


class Scopes:
    def __init__(self, parser):
        self.parser, self.open_, self.next, self.side = parser, [], FIRST_AUTOMATIC, 0

    def fresh(self, count=1):
        first, self.next = self.next, self.next + count
        if self.next > LAST_AUTOMATIC + 1:
            self.parser.fail("fewer automatic labels")
        return first

    def open(self, kind, name=None, cloned=False, label=None, fork=False):
        binder = Binder(kind, name, cloned, label, fork)
        self.open_.append(binder)
        return binder

    def use(self, name, side):
        """The variable that `name` with this subscript (or None) means here, None if there is none."""
        for binder in reversed(self.open_):
            dup = binder.kind != "lam"
            if binder.name != name or (side is not None) != dup and not (side is None and binder.fork):
                continue
            return binder.variable(self.side if dup and side is None else side)
        return None

    def close(self, binder, body, value=None):
        """The node of `binder` around `body`."""
        self.open_.remove(binder)
        if binder.kind == "lam":
            return Term("LAM", None, [self.limit(binder, body, uses(body, "VAR", binder))], binder)
        if binder.kind == "dup":
            body = self.limit(binder, body, uses(body, "DP1", binder), 1)
            return Term("DUP", binder.label, [value, self.limit(binder, body, uses(body, "DP0", binder), 0)], binder)
        for part, side in ((binder.left, 0), (binder.right, 1)):
            body = self.limit(binder, body, uses(body, "VAR", part), side)
        return Term("LAM", None, [Term("LAM", None, [body], binder.right)], binder.left)

    def limit(self, binder, body, found, side=None):
        """`body`, if the binder is cloned inside of the duplications that make each use the only one."""
        if len(found) < 2:
            return body
        if not binder.cloned:
            self.parser.fail(f"at most one use of {binder.name}")
        first, value, dups = self.fresh(len(found) - 1), binder.variable(side), []
        for i in range(len(found) - 1):
            dup = Binder("dup", label=first + i)
            found[i].tag, found[i].ext, found[i].cell = "DP0", dup.label, dup
            dups.append((dup, value))
            value = dup.variable(1)
        found[-1].tag, found[-1].ext, found[-1].cell = value.tag, value.ext, value.cell
        for dup, value in reversed(dups):
            body = Term("DUP", dup.label, [value, body], dup)
        return body

    def copy(self, term):
        """`term` once more; binders inside it are made anew."""
        fresh = {}

        def walk(t):
            if t.tag in ("LAM", "DUP"):
                fresh[t.cell] = Binder(t.cell.kind, None, False, t.cell.label)
            return Term(t.tag, t.ext, [walk(f) for f in t.fields], fresh.get(t.cell, t.cell))

        return walk(term)


def uses(body, tag, binder):
    """Uses of `binder` in left-to-right depth-first order."""
    found, stack = [], [body]
    while stack:
        term = stack.pop()
        if term.cell is binder and term.tag == tag:
            found.append(term)
        stack.extend(reversed(term.fields))
    return found
