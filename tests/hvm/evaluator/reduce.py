"""Weak normal form: an explicit stack of nodes whose head is being reduced, and the interactions, each counted once."""
from .equality import and_, equal, or_
from .natives import native
from .terms import ERASURE, Cell, RuntimeFailure, Term, app, followed, num, sup

FIRST_FIELD = {"APP", "OP2", "EQL", "AND", "OR", "DSU", "DDU"}
QUOTED = {"NAM", "BJV"}
COPIED = {"CTR", "MAT", "SWI", "USE", "INC", "DRY", "OP2", "DSU", "DDU"}
LEAVES = {"NUM", "NAM", "REF", "ERA", "ANY", "BJV"}
M32 = 0xFFFFFFFF
OPERATORS = {"ADD": lambda a, b: a + b, "SUB": lambda a, b: a - b, "MUL": lambda a, b: a * b, "DIV": lambda a, b: a // b if b else 0,
             "MOD": lambda a, b: a % b if b else 0, "AND": lambda a, b: a & b, "OR": lambda a, b: a | b, "XOR": lambda a, b: a ^ b,
             "LSH": lambda a, b: a << (b % 32), "RSH": lambda a, b: a >> (b % 32), "NOT": lambda a, b: M32 - b, "EQ": lambda a, b: a == b,
             "NE": lambda a, b: a != b, "LT": lambda a, b: a < b, "LE": lambda a, b: a <= b, "GT": lambda a, b: a > b, "GE": lambda a, b: a >= b}


class OutOfFuel(Exception):
    """`counted`: there were more interactions. If not, the definitions that were unfolded or the calls that wait are very many."""

    def __init__(self, counted):
        super().__init__()
        self.counted = counted


class Machine:
    """`count` is the interactions so far, `steps` also the substitutions followed, `rows` how often each row of the table fired."""

    pick = staticmethod(lambda count: count - 1)  # which of so many positions is normalised next

    def __init__(self, book, fuel=None):
        self.book, self.fuel = book, fuel
        self.count = self.steps = self.unfoldings = self.names = 0
        self.open = False  # whether a variable was found free whose lambda is not part of the result: it may be bound later
        self.final = False  # whether stuck terms count as final even so
        self.ahead = False  # whether what waits for itself counts as open
        self.cut = False  # whether collapse dropped a term because a field was erased
        self.rows, self.log = {}, []
        self.begun, self.calls = 0, [0]  # calls of %nf, and those that have not returned; 0 is the whole program

    def fire(self, row):
        self.count += 1
        self.steps += 1
        self.rows[row] = self.rows.get(row, 0) + 1
        if self.fuel is not None and self.count > self.fuel:
            raise OutOfFuel(counted=True)

    def wnf(self, term):
        stack = []
        while True:
            term = self.descend(term, stack)
            while stack:
                node, handle = stack.pop()
                term = handle(self, node, term, stack)
                if term is not None:
                    break
                term = node  # stuck
            else:
                return term

    def descend(self, term, stack):
        """Follows the head position of `term` down to a weak normal form, remembering the nodes on the way."""
        while True:
            tag = term.tag
            if tag in FIRST_FIELD:
                stack.append((term, HANDLERS[tag]))
                term = term.fields[0]
            elif tag == "ALO":
                self.unfoldings += 1
                term = unfold(term.ext, term.fields[0])
            elif tag == "VAR" and term.cell.bound:
                self.steps += 1
                term = term.cell.term
            elif tag in ("DP0", "DP1"):
                cell = term.cell
                if cell.busy:
                    return term
                if cell.bound:
                    self.steps += 1
                else:
                    cell.busy = True
                    stack.append((term, duplicate))
                term = cell.term
            elif tag == "REF" and term.ext in self.book:
                term = unfold(None, self.book[term.ext])
                if term.tag == "REF" and self.stands_for_itself(term.ext):
                    raise RuntimeFailure(f"@{term.ext} stands for itself")
            elif tag == "UNS":
                term = self.unscoped(term)
            elif tag == "PRI":
                value = native(self, term)
                if value is None:
                    return term
                term = value
            else:
                self.open = self.open or tag == "VAR" and term.cell.entered not in self.calls
                return term
            if self.fuel is not None and max(self.unfoldings, len(stack)) > 10 * self.fuel:
                raise OutOfFuel(counted=False)

    def enter(self, cell):
        if cell.entered != 0:
            cell.entered = self.calls[-1]

    def is_open(self, term):
        """Does a weak normal form wait for a variable that may be bound later?"""
        if not self.open or self.final:
            return False
        seen = set()
        while True:
            tag = term.tag
            if tag in ("VAR", "DP0", "DP1") and term.cell.bound:
                term = term.cell.term
            elif tag == "PRI":
                return True
            elif tag == "VAR":
                return term.cell.entered not in self.calls
            elif tag in ("DP0", "DP1"):
                if term.cell.busy or term.cell in seen:
                    return self.ahead  # it waits for itself
                seen.add(term.cell)
                term = term.cell.term
            elif tag == "EQL" and not self.is_open(term.fields[0]) or tag == "OP2" and followed(term.fields[0]).tag == "NUM":
                term = term.fields[1]
            elif tag == "APP" and followed(term.fields[0]).tag in ("MAT", "SWI", "USE"):
                term = term.fields[1]
            elif tag in FIRST_FIELD:
                term = term.fields[0]
            else:
                return False

    def stands_for_itself(self, name):
        seen, at = set(), name
        while at in self.book and at not in seen and self.book[at].tag == "REF":
            seen.add(at)
            at = self.book[at].ext
        return at == name and name in seen

    def unscoped(self, term):
        self.fire("WNF-UNS")
        p, q = Cell(), Cell()
        function = Term("LAM", None, [Term("LAM", None, [Term("VAR", cell=q)], p)], q)
        return app(term.fields[0], function, Term("VAR", cell=p))


def unfold(env, term):
    """One constructor of a definition. `env` is (binder, cell, outer env) or None."""
    while term.tag == "DUP":
        cell = Cell(Term("ALO", env, [term.fields[0]]))
        env, term = (term.cell, cell, env), term.fields[1]
    if term.tag in LEAVES:
        return term
    if term.tag == "LAM":
        cell = Cell()
        return Term("LAM", None, [Term("ALO", (term.cell, cell, env), term.fields)], cell)
    cell = None
    if term.cell is not None:
        while env[0] is not term.cell:
            env = env[2]
        cell = env[1]
    return Term(term.tag, term.ext, [Term("ALO", env, [field]) for field in term.fields], cell)


def fork(label, value):
    """A fresh duplication: its two projections."""
    cell = Cell(value)
    return Term("DP0", label, cell=cell), Term("DP1", label, cell=cell)


def substitute(cell, term):
    assert not cell.bound
    cell.term, cell.bound = term, True


def stuck(node, field, value):
    node.fields[field] = value


# Handlers take the node, its reduced head and the stack. They return what to reduce next, or None if the node is stuck.


def apply(machine, node, head, stack):
    argument = node.fields[1]
    if head.tag == "ERA":
        machine.fire("APP-ERA")
        return ERASURE
    if head.tag == "LAM":
        machine.fire("APP-LAM")
        substitute(head.cell, argument)
        return head.fields[0]
    if head.tag == "SUP":
        machine.fire("APP-SUP")
        left, right = fork(head.ext, argument)
        return sup(head.ext, app(head.fields[0], left), app(head.fields[1], right))
    if head.tag == "INC":
        machine.fire("APP-INC")
        return Term("INC", None, [app(head.fields[0], argument)])
    if head.tag in QUOTED or head.tag == "DRY":
        return Term("DRY", None, [head, argument])
    if head.tag in ("NUM", "CTR"):
        raise RuntimeFailure("cannot apply a " + {"NUM": "number", "CTR": "constructor"}[head.tag])
    stuck(node, 0, head)
    if head.tag in ("MAT", "SWI", "USE"):
        stack.append((node, use if head.tag == "USE" else match))
        return argument
    return None


def match(machine, node, argument, _):
    matcher = node.fields[0]
    hit, miss = matcher.fields
    if argument.tag == "ERA":
        machine.fire("APP-ERA (match)")
        return ERASURE
    if argument.tag == "SUP":
        machine.fire("APP-MAT-SUP")
        left, right = fork(argument.ext, matcher)
        return sup(argument.ext, app(left, argument.fields[0]), app(right, argument.fields[1]))
    if argument.tag == "INC":
        machine.fire("MAT-INC")
        return Term("INC", None, [app(matcher, argument.fields[0])])
    if argument.tag in ("CTR", "NUM"):
        same = matcher.tag == {"CTR": "MAT", "NUM": "SWI"}[argument.tag] and matcher.ext == argument.ext
        machine.fire(f"APP-MAT-{argument.tag}-{'MAT' if same else 'MIS'}")
        return app(hit, *argument.fields) if same else app(miss, argument)
    if argument.tag in QUOTED or argument.tag == "DRY":
        return Term("DRY", None, [matcher, argument])
    stuck(node, 1, argument)
    return None


def use(machine, node, argument, _):
    user = node.fields[0]
    if argument.tag == "ERA":
        machine.fire("USE-ERA")
        return ERASURE
    if argument.tag == "SUP":
        machine.fire("USE-SUP")
        left, right = (Term("USE", None, [side]) for side in fork(argument.ext, user.fields[0]))
        return sup(argument.ext, app(left, argument.fields[0]), app(right, argument.fields[1]))
    if argument.tag == "INC":
        machine.fire("USE-INC")
        return Term("INC", None, [app(user, argument.fields[0])])
    if machine.is_open(argument):
        return stuck(node, 1, argument)
    machine.fire("USE-VAL")
    return app(user.fields[0], argument)


def duplicate(machine, node, value, _):
    cell, label, tag = node.cell, node.ext, value.tag
    cell.busy = False
    if tag in QUOTED:
        machine.fire("DUP-NAM")
        sides = value, value
    elif tag == "LAM":
        machine.fire("DUP-LAM")
        p, q = Cell(), Cell()
        left, right = fork(label, value.fields[0])
        substitute(value.cell, sup(label, Term("VAR", cell=p), Term("VAR", cell=q)))
        sides = Term("LAM", None, [left], p), Term("LAM", None, [right], q)
    elif tag == "SUP" and value.ext == label:
        machine.fire("DUP-SUP same")
        sides = value.fields
    elif (tag in COPIED or tag in ("SUP", "ERA", "ANY", "NUM")) and not machine.is_open(value):
        machine.fire("DUP-SUP other" if tag == "SUP" else f"DUP-NOD {tag}")
        sides = value, value
        if value.fields:
            pairs = [fork(label, field) for field in value.fields]
            sides = [Term(tag, value.ext, [pair[side] for pair in pairs]) for side in (0, 1)]
    else:
        cell.term = value
        return None
    mine = 0 if node.tag == "DP0" else 1
    substitute(cell, sides[1 - mine])
    return sides[mine]


def operate(machine, node, left, stack):
    if left.tag == "ERA":
        machine.fire("OP2-ERA")
        return ERASURE
    if left.tag == "SUP":
        machine.fire("OP2-SUP")
        pair = fork(left.ext, node.fields[1])
        return sup(left.ext, *(Term("OP2", node.ext, [left.fields[i], pair[i]]) for i in (0, 1)))
    if left.tag == "INC":
        machine.fire("OP2-INC-X")
        return Term("INC", None, [Term("OP2", node.ext, [left.fields[0], node.fields[1]])])
    stuck(node, 0, left)
    if left.tag != "NUM":
        return None
    stack.append((node, operate_right))
    return node.fields[1]


def operate_right(machine, node, right, _):
    left = node.fields[0]
    if right.tag == "NUM":
        machine.fire("OP2-NUM-NUM")
        return num(int(OPERATORS[node.ext](left.ext, right.ext)))
    if right.tag == "ERA":
        machine.fire("OP2-NUM-ERA")
        return ERASURE
    if right.tag == "SUP":
        machine.fire("OP2-NUM-SUP")
        return sup(right.ext, *(Term("OP2", node.ext, [left, side]) for side in right.fields))
    if right.tag == "INC":
        machine.fire("OP2-INC-Y")
        return Term("INC", None, [Term("OP2", node.ext, [left, right.fields[0]])])
    return stuck(node, 1, right)


def superpose(machine, node, label, _):
    """DSU: label, left, right."""
    _, left, right = node.fields
    if label.tag == "NUM":
        machine.fire("DSU-NUM")
        return sup(label.ext & 0xFFFF, left, right)
    if label.tag == "SUP":
        machine.fire("DSU-SUP")
        pairs = fork(label.ext, left), fork(label.ext, right)
        return sup(label.ext, *(Term("DSU", None, [label.fields[i], pairs[0][i], pairs[1][i]]) for i in (0, 1)))
    return dynamic(machine, node, label)


def duplicate_dynamic(machine, node, label, _):
    """DDU: label, value, function of both projections."""
    _, value, body = node.fields
    if label.tag == "NUM":
        machine.fire("DDU-NUM")
        return app(body, *fork(label.ext & 0xFFFF, value))
    if label.tag == "SUP":
        machine.fire("DDU-SUP")
        pairs = fork(label.ext, value), fork(label.ext, body)
        return sup(label.ext, *(Term("DDU", None, [label.fields[i], pairs[0][i], pairs[1][i]]) for i in (0, 1)))
    return dynamic(machine, node, label)


def dynamic(machine, node, label):
    if label.tag == "ERA":
        machine.fire(node.tag + "-ERA")
        return ERASURE
    if label.tag == "INC":
        machine.fire(node.tag + "-INC")
        return Term("INC", None, [Term(node.tag, None, [label.fields[0], *node.fields[1:]])])
    return stuck(node, 0, label)


HANDLERS = {"APP": apply, "OP2": operate, "EQL": equal, "AND": and_, "OR": or_, "DSU": superpose, "DDU": duplicate_dynamic}
