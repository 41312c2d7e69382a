"""Terms to text, for strong normal forms and for collapsed terms."""
import unicodedata

from .terms import decode

SYMBOLS = {"ADD": "+", "SUB": "-", "MUL": "*", "DIV": "/", "MOD": "%", "AND": "&&", "OR": "||", "XOR": "^", "LSH": "<<", "RSH": ">>", "NOT": "~", "EQ": "==",
           "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
WORDS = {"EQL": "===", "AND": ".&.", "OR": ".|."}
PATTERNS = {"ZER": "0n", "SUC": "1n+", "NIL": "[]", "CON": "<>"}
ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0", "\\": "\\\\"}


def letters(index, alphabet):
    """a, b, …, z, aa, ab, …"""
    text = ""
    index += 1
    while index:
        index, digit = divmod(index - 1, 26)
        text = alphabet[digit] + text
    return text


def is_ctr(term, name, arity):
    return term.tag == "CTR" and term.ext == name and len(term.fields) == arity


class Printer:
    def __init__(self, collapsed):
        self.collapsed, self.binders, self.dups, self.pending = collapsed, {}, {}, []

    def all(self, term):
        """The term; in strong normal form also the duplications that float beside it."""
        text = self.term(term, 0)
        if self.collapsed:
            return text
        if self.pending:
            text += ";"
        for cell, label in self.pending:  # grows meanwhile
            name = letters(self.dups[cell], "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
            text += f"!{name}&{decode(label)}={self.term(cell.term, 0)};"
        return text

    def binder(self, cell):
        return letters(self.binders.setdefault(cell, len(self.binders)), "abcdefghijklmnopqrstuvwxyz")

    def projection(self, term):
        if term.cell not in self.dups:
            self.dups[term.cell] = len(self.dups)
            self.pending.append((term.cell, term.ext))
        return letters(self.dups[term.cell], "ABCDEFGHIJKLMNOPQRSTUVWXYZ") + ("₀" if term.tag == "DP0" else "₁")

    def term(self, t, depth):
        show = lambda field: self.term(field, depth)  # noqa: E731
        tag = t.tag
        if tag in ("VAR", "DP0", "DP1"):
            if t.cell.bound:
                return show(t.cell.term)
            return self.binder(t.cell) if tag == "VAR" else self.projection(t)
        if tag in ("APP", "DRY"):
            return self.application(t, depth)
        if tag == "LAM":
            name = letters(depth, "abcdefghijklmnopqrstuvwxyz") if self.collapsed else self.binder(t.cell)
            return f"λ{name}.{self.term(t.fields[0], depth + 1)}"
        if tag == "BJV":
            return letters(t.ext - 1, "abcdefghijklmnopqrstuvwxyz")
        if tag == "CTR":
            return self.constructor(t, depth)
        if tag in ("MAT", "SWI"):
            return self.match(t, depth)
        if tag == "NAM":
            return decode(t.ext) if isinstance(t.ext, int) else "fresh"
        if tag in ("EQL", "AND", "OR"):
            return f"({show(t.fields[0])} {WORDS[tag]} {show(t.fields[1])})"
        if tag == "OP2":
            return f"({show(t.fields[0])} {SYMBOLS[t.ext]} {show(t.fields[1])})"
        parts = [show(field) for field in t.fields]
        return {"NUM": lambda: str(t.ext), "REF": lambda: "@" + t.ext, "ERA": lambda: "&{}", "ANY": lambda: "*", "INC": lambda: "↑" + parts[0],
                "SUP": lambda: f"&{decode(t.ext)}{{{parts[0]},{parts[1]}}}", "USE": lambda: f"λ{{{parts[0]}}}",
                "DSU": lambda: f"&({parts[0]}){{{parts[1]},{parts[2]}}}", "DDU": lambda: f"!({parts[0]})={parts[1]};{parts[2]}"}[tag]()

    def application(self, t, depth):
        arguments = []
        while t.tag in ("APP", "DRY"):
            arguments.append(t.fields[1])
            t = t.fields[0]
        head = self.term(t, depth)
        return (f"({head})" if t.tag == "LAM" else head) + "(" + ",".join(self.term(a, depth) for a in reversed(arguments)) + ")"

    def match(self, t, depth):
        cases = []
        while t.tag in ("MAT", "SWI"):
            pattern = str(t.ext) if t.tag == "SWI" else PATTERNS.get(t.ext, "#" + t.ext)
            cases.append(f"{pattern}:{self.term(t.fields[0], depth)}")
            t = t.fields[1]
        if t.tag == "USE":
            t = t.fields[0]
            cases.append(self.term(t, depth))
        elif t.tag != "NUM" or t.ext != 0:
            cases.append(self.term(t, depth))
        return "λ{" + ";".join(cases) + "}"

    def constructor(self, t, depth):
        if is_ctr(t, "ZER", 0) or is_ctr(t, "SUC", 1):
            count = 0
            while is_ctr(t, "SUC", 1):
                count, t = count + 1, t.fields[0]
            return f"{count}n" if is_ctr(t, "ZER", 0) else f"{count}n+{self.term(t, depth)}"
        if (code := character(t)) is not None:
            return "'" + escape(code, "'") + "'"
        if is_ctr(t, "NIL", 0) or is_ctr(t, "CON", 2):
            return self.list(t, depth)
        return "#" + t.ext + "{" + ",".join(self.term(field, depth) for field in t.fields) + "}"

    def list(self, t, depth):
        items = []
        while is_ctr(t, "CON", 2):
            items.append(t.fields[0])
            t = t.fields[1]
        if not is_ctr(t, "NIL", 0):
            return "<>".join(self.term(item, depth) for item in [*items, t])
        codes = [character(item) for item in items]
        if items and None not in codes:
            return '"' + "".join(escape(code, '"') for code in codes) + '"'
        return "[" + ",".join(self.term(item, depth) for item in items) + "]"


def character(t):
    """The code of a printable #CHR, else None."""
    if not is_ctr(t, "CHR", 1) or t.fields[0].tag != "NUM" or t.fields[0].ext > 0x10FFFF:
        return None
    text = chr(t.fields[0].ext)
    return t.fields[0].ext if unicodedata.category(text) not in ("Cc", "Cs") or text in "\n\t\r\0" else None


def escape(code, quote):
    text = chr(code)
    return "\\" + text if text == quote else ESCAPES.get(text, text)
