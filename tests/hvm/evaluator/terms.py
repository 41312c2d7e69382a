"""Terms, cells and names. A term is one node; its fields are terms. In definitions the `cell` of a variable is the binder that it names; while a
program runs it is the Cell that its lambda or duplication shares with it."""


class RuntimeFailure(Exception):
    """The program went wrong: a number or constructor applied, %log of something else than a string."""


class Cell:
    """Binder or duplication cell. `term` is the value of a duplication, or with `bound` what stands for the variable or the other side.
    `busy` while that value is being reduced: a projection that needs its own value waits forever, so it is stuck. `entered`: the lambda is part of
    the result (call 0), so that nobody applies it any more, or of the normal form of a call of %nf, so that nobody does before the call returns."""
    __slots__ = ("term", "bound", "busy", "entered")

    def __init__(self, term=None):
        self.term, self.bound, self.busy, self.entered = term, False, False, None


class Term:
    """tag, ext (label, number, name or operator), fields, cell. Tags:
    APP LAM VAR DP0 DP1 SUP DUP ALO REF NAM DRY ERA MAT SWI USE CTR NUM OP2 DSU DDU EQL AND OR UNS ANY INC BJV PRI."""
    __slots__ = ("tag", "ext", "fields", "cell")

    def __init__(self, tag, ext=None, fields=(), cell=None):
        self.tag, self.ext, self.fields, self.cell = tag, ext, list(fields), cell


ERASURE, ANY = Term("ERA"), Term("ANY")


def num(value):
    return Term("NUM", value & 0xFFFFFFFF)


def ctr(name, *fields):
    return Term("CTR", name, fields)


def app(function, *arguments):
    for argument in arguments:
        function = Term("APP", None, [function, argument])
    return function


def sup(label, left, right):
    return Term("SUP", label, [left, right])


def chain(items, tail):
    for item in reversed(items):
        tail = ctr("CON", item, tail)
    return tail


DIGITS = "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789$"


def encode(name):
    value = 0
    for character in name:
        value = value * 64 + DIGITS.index(character)
    return value


def decode(value):
    value &= 0xFFFF
    text = DIGITS[value % 64]
    while value >= 64:
        value //= 64
        text = DIGITS[value % 64] + text
    return text


def followed(term):
    while term.tag in ("VAR", "DP0", "DP1") and term.cell.bound:
        term = term.cell.term
    return term
