"""Source text to definitions: lexical rules, grammar, precedence, scopes, affinity and desugaring."""
import pathlib

from .scopes import Scopes
from .terms import ANY, ERASURE, Term, app, chain, ctr, encode, num, sup

FIRST = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
REST = FIRST + "0123456789_$"
DECIMAL = "0123456789"
# Longer spellings first. `level` is what a suffix needs; None binds at any level.
SUFFIXES = [("<>", "CON", None), ("===", "EQL", None), (".&.", "AND", None), (".|.", "OR", None), ("<<", "LSH", 5), (">>", "RSH", 5), ("<=", "LE", 4),
            (">=", "GE", 4), ("==", "EQ", 3), ("!=", "NE", 3), ("&&", "AND", 2), ("||", "OR", 1), ("^", "XOR", 8), ("*", "MUL", 7), ("/", "DIV", 7),
            ("%", "MOD", 7), ("+", "ADD", 6), ("-", "SUB", 6), ("<", "LT", 4), (">", "GT", 4), ("~", "NOT", 0)]
RIGHT_OF = {"CON": 0, "EQL": 4, "AND": 2, "OR": 1}
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", "'": "'", '"': '"', "`": "`"}
NATIVES = {"log": 1, "gnf": 1, "nf": 1}


class ParseError(Exception):
    def __init__(self, file, line, column, expected):
        super().__init__(f"PARSE_ERROR ({file}:{line}:{column})\n- expected: {expected}")
        self.line, self.column = line, column


class Parser:
    def __init__(self, text, file, shared=None):
        self.text, self.at, self.file = text, 0, file
        self.shared = shared or {"book": {}, "scopes": Scopes(self), "read": {pathlib.Path(file).resolve()}}
        self.book, self.scopes = self.shared["book"], self.shared["scopes"]
        self.scopes.parser, self.in_fork, self.defined = self, False, set()

    def fail(self, expected, at=None):
        before = self.text[: self.at if at is None else at]
        raise ParseError(self.file, before.count("\n") + 1, len(before) - before.rfind("\n"), expected)

    # Lexical rules

    def skip(self):
        while self.at < len(self.text):
            if self.text[self.at] in " \t\n\r":
                self.at += 1
            elif self.text.startswith("//", self.at):
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return

    def sees(self, token):
        self.skip()
        return self.text.startswith(token, self.at)

    def eat(self, token):
        if self.sees(token):
            self.at += len(token)
            return True
        return False

    def need(self, token):
        if not self.eat(token):
            self.fail(f"'{token}'")

    def peek(self):
        return self.text[self.at : self.at + 1]

    def name(self):
        self.skip()
        start = self.at
        if not self.peek() or self.peek() not in FIRST:
            self.fail("name")
        while self.peek() and self.peek() in REST:
            self.at += 1
        return self.text[start : self.at]

    def label(self):
        self.skip()
        start = self.at
        value = encode(self.name())
        if value > 0xFFFF:
            self.fail("label of 16 bits", start)
        return value

    def digits(self):
        start = self.at
        while self.peek() and self.peek() in DECIMAL:
            self.at += 1
        return int(self.text[start : self.at])

    def character(self):
        if not self.peek():
            self.fail("character")
        self.at += 1
        found = self.text[self.at - 1]
        if found != "\\":
            return ord(found)
        if not self.peek():
            self.fail("character")
        if self.peek() not in ESCAPES:
            self.fail("an escape")
        self.at += 1
        return ord(ESCAPES[self.text[self.at - 1]])

    def quoted(self, quote):
        codes = []
        while self.peek() != quote:
            codes.append(self.character())
        self.at += 1
        return codes

    # Files

    def definitions(self):
        while self.skip() or self.at < len(self.text):
            if self.eat("#include"):
                self.need('"')
                self.include("".join(map(chr, self.quoted('"'))))
                continue
            self.need("@")
            self.skip()
            start, name = self.at, self.name()
            self.need("=")
            if name in self.defined:
                self.fail("a name that this file defines once", start)
            self.defined.add(name)
            self.book[name] = self.term()
        return self.book

    def include(self, name):
        path = pathlib.Path(self.file).parent / name
        if path.resolve() in self.shared["read"]:
            return
        self.shared["read"].add(path.resolve())
        if not path.is_file():
            self.fail("readable file")
        Parser(path.read_text(encoding="utf-8"), str(path), self.shared).definitions()
        self.scopes.parser = self

    # Terms

    def term(self, level=0):
        left = self.atom()
        while True:
            self.skip()
            found = next(((token, op, at) for token, op, at in SUFFIXES if self.text.startswith(token, self.at)), None)
            if found and (found[2] is None or found[2] >= level):
                token, op, at = found
                self.at += len(token)
                right = self.term(RIGHT_OF[op] if at is None else at + 1)
                if at is not None:
                    left = Term("OP2", op, [left, right])
                else:
                    left = Term("CTR", op, [left, right]) if op == "CON" else Term(op, None, [left, right])
            elif not found and self.eat("("):
                left = app(left, *self.arguments(")"))
            else:
                return left

    def arguments(self, close):
        found = []
        while not self.eat(close):
            found.append(self.term())
            self.eat(",")
        return found

    def atom(self):
        self.skip()
        start, first = self.at, self.peek()
        if first and first in FIRST:
            return self.variable()
        if first and first in DECIMAL:
            return self.number()
        self.at += 1
        if first == "λ":
            return self.lambda_()
        if first == "!":
            return self.binding()
        if first == "&":
            return self.superposition()
        if first == "#":
            name = self.name()
            fields = self.arguments("}") if self.peek() == "{" and self.eat("{") else []
            return ctr(name, *fields) if len(fields) <= 16 else self.fail("at most 16 fields", start)
        if first == "@":
            return Term("REF", self.name())
        if first == "%":
            name = self.name()
            if name not in NATIVES:
                self.fail("native function", start)
            self.need("(")
            arguments = self.arguments(")")
            return Term("PRI", name, arguments) if len(arguments) == NATIVES[name] else self.fail(f"{NATIVES[name]} arguments")
        if first == "^":
            if not self.eat("("):
                return Term("NAM", self.label())
            parts = [self.term(), self.term()]
            self.need(")")
            return Term("DRY", None, parts)
        if first == "↑":
            return Term("INC", None, [self.atom()])
        if first == "*":
            return ANY
        if first == "(":
            inner = self.term()
            self.need(")")
            return inner
        if first == "[":
            return chain(self.arguments("]"), ctr("NIL"))
        if first == "'":
            code = self.character()
            return ctr("CHR", num(code)) if self.text.startswith("'", self.at) and self.eat("'") else self.fail("'")
        if first in ('"', "`") and first:
            return chain([ctr("CHR", num(code)) for code in self.quoted(first)], ctr("NIL"))
        self.fail("term", start)

    def number(self):
        start, value = self.at, self.digits()
        if self.peek() != "n":
            return num(value) if value < 1 << 32 else self.fail("a number of at most 4294967295", start)
        if value > 1 << 20:
            self.fail("a natural of at most 1048576", start)
        self.at += 1
        tail = ctr("ZER")
        if self.peek() == "+":
            self.at += 1
            tail = self.term()
        for _ in range(value):
            tail = ctr("SUC", tail)
        return tail

    def variable(self):
        start, name = self.at, self.name()
        side = {"₀": 0, "₁": 1}.get(self.peek())
        self.at += side is not None
        return self.scopes.use(name, side) or self.fail(f"bound variable: undefined variable {name}", start)

    # Forms that start with λ

    def lambda_(self):
        if self.eat("{"):
            return self.braces()
        if self.eat("$"):
            name = self.name()
            function, variable = self.scopes.open("lam"), self.scopes.open("lam", name)
            body = app(function.variable(), self.lambda_body())
            return Term("UNS", None, [self.scopes.close(function, self.scopes.close(variable, body))])
        cloned = self.eat("&")
        name = self.name()
        if not self.eat("&"):
            binder = self.scopes.open("lam", name, cloned)
            return self.scopes.close(binder, self.lambda_body())
        outer = self.scopes.open("lam")
        if self.eat("("):
            label = self.term()
            self.need(")")
            return self.scopes.close(outer, self.dynamic(name, cloned, label, outer.variable(), self.lambda_body))
        label = self.scopes.fresh() if self.sees(".") or self.sees(",") else self.label()
        inner = self.scopes.open("dup", name, cloned, label)
        return self.scopes.close(outer, self.scopes.close(inner, self.lambda_body(), outer.variable()))

    def lambda_body(self):
        if self.eat(","):
            return self.lambda_()
        self.need(".")
        return self.term()

    def braces(self):
        if self.eat("}"):
            return ERASURE
        cases, seen = [], set()
        while case := (self.skip(), start := self.at, self.pattern())[2]:
            if case in seen:
                self.fail("a pattern that no case before has", start)
            seen.add(case)
            cases.append((*case, self.term()))
            self.eat(";")
        if not cases:
            body = Term("USE", None, [self.term()])
            self.need("}")
            return body
        if self.eat("}"):
            rest = num(0)
        else:
            if self.eat("_"):
                self.need(":")
            rest = self.term()
            self.need("}")
        for tag, ext, body in reversed(cases):
            rest = Term(tag, ext, [body, rest])
        return rest

    def pattern(self):
        """(tag, name or number) when a pattern and its ':' stand here, else None and nothing is read."""
        self.skip()
        start = self.at
        found = None
        for token, name in (("[]", "NIL"), ("<>", "CON"), ("0n", "ZER"), ("1n+", "SUC")):
            if self.eat(token):
                found = "MAT", name
                break
        else:
            if self.peek() == "#":
                self.at += 1
                found = "MAT", self.name()
            elif self.peek() and self.peek() in DECIMAL:
                found = "SWI", self.digits()
            elif self.eat("'"):
                code = self.character()
                found = ("SWI", code) if self.text.startswith("'", self.at) and self.eat("'") else None
        if found and self.eat(":"):
            return found if found[0] == "MAT" or found[1] < 1 << 32 else self.fail("a number of at most 4294967295", start)
        self.at = start
        return None

    # Forms that start with !

    def binding(self):
        strict, cloned = self.eat("!"), self.eat("&")
        name = self.name()
        if self.eat("&"):
            if strict:
                self.fail("let")
            return self.duplication(name, cloned)
        self.need("=")
        if not strict and not cloned and (pair := self.unscoped(name)):
            return pair
        value = self.term()
        self.eat(";")
        binder = self.scopes.open("lam", name, cloned)
        function = self.scopes.close(binder, self.term())
        return app(Term("USE", None, [function]) if strict else function, value)

    def unscoped(self, name):
        start = self.at
        if self.eat("λ") and (self.skip() or self.peek() in FIRST):
            variable = self.name()
            if self.eat(";"):
                outer, inner = self.scopes.open("lam", name), self.scopes.open("lam", variable)
                body = self.scopes.close(inner, self.term())
                return Term("UNS", None, [self.scopes.close(outer, body)])
        self.at = start
        return None

    def duplication(self, name, cloned):
        if self.eat("("):
            label = self.term()
            self.need(")")
            self.need("=")
            value = self.term()
            self.eat(";")
            return self.dynamic(name, cloned, label, value, self.term)
        label = self.scopes.fresh() if self.sees("=") else self.label()
        self.need("=")
        value = self.term()
        self.eat(";")
        binder = self.scopes.open("dup", name, cloned, label)
        return self.scopes.close(binder, self.term(), value)

    def dynamic(self, name, cloned, label, value, body, fork=False):
        binder = self.scopes.open("ddu", name, cloned, fork=fork)
        return Term("DDU", None, [label, value, self.scopes.close(binder, body())])

    # Forms that start with &

    def superposition(self):
        if self.eat("{"):
            self.need("}")
            return ERASURE
        if dynamic := self.eat("("):
            label = self.term()
            self.need(")")
        else:
            label = self.label()
        if self.eat("λ"):
            return self.fork(dynamic, label)
        self.need("{")
        left = self.term()
        self.eat(",")
        right = self.term()
        self.eat(",")
        self.need("}")
        return Term("DSU", None, [label, left, right]) if dynamic else sup(label, left, right)

    def fork(self, dynamic, label):
        if self.in_fork:
            self.fail("fork outside of forks")
        names = []
        while not self.eat("{"):
            names.append(self.name())
            self.eat(",")
        if not names:
            self.fail("name")
        self.in_fork = True

        def body(rest):
            if not rest:
                return self.branches(dynamic, label)
            outer = self.scopes.open("lam")
            if dynamic:
                copy = self.scopes.copy(label)
                return self.scopes.close(outer, self.dynamic(rest[0], False, copy, outer.variable(), lambda: body(rest[1:]), fork=True))
            inner = self.scopes.open("dup", rest[0], False, label, fork=True)
            return self.scopes.close(outer, self.scopes.close(inner, body(rest[1:]), outer.variable()))

        made = body(names)
        self.in_fork = False
        return made

    def branches(self, dynamic, label):
        sides = []
        for side, mark in enumerate("₀₁"):
            self.scopes.side = side
            if self.sees("&" + mark):
                self.at += 2
                self.need(":")
            sides.append(self.term())
            self.eat(";")
        self.need("}")
        return Term("DSU", None, [label, *sides]) if dynamic else sup(label, *sides)
