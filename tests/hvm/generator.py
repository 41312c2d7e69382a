"""Random programs: affine by construction (each variable is taken out of scope by its use), small, mostly of sensible kinds so that much happens
before they are normal. Recursive functions count their calls down from a literal: one that waits for a variable would be printed without end.
Whether a program ends is found by running it with fuel."""
import random

LIBRARY = """@sum = λ{0:λl.0;λd.λ{[]:0;<>:λh.λt.h+@sum(d-1,t)}}
@map = λ{0:λf.λl.l;λd.λ&f.λ{[]:[];<>:λh.λt.f(h)<>@map(d-1,f,t)}}
@app = λ{0:λa.λb.b;λd.λ{[]:λb.b;<>:λh.λt.λb.h<>@app(d-1,t,b)}}
@rep = λ{0:λn.λx.[];λd.λ{0:λx.[];λn.λ&x.x<>@rep(d-1,(n&&3)-1,x)}}
@fib = λ{0:λn.n;λ&d.λ{0:0;1:1;λ&n.@fib(d-1,(n&&7)-1)+@fib(d-1,(n&&7)-2)}}
"""
OPERATORS = ["+", "-", "*", "/", "%", "&&", "||", "^", "<<", ">>", "<", "<=", ">", ">=", "==", "!=", "~"]
LABELS = ["A", "B", "c", "_d"[1:], "Z9"]
KINDS = ["num", "list", "fun", "any"]


def called_normal(made, term):
    return f"%{made.rng.choice(['nf', 'gnf'])}({term})" if made.normalizes and made.rng.random() < 0.12 else term


class Generator:
    """styles: in `collapse`, whose order decides what is stuck, `unscoped` pairs exclude what asks for that (equality, strict application), and
    connectives have no left side that may be a variable. `normalizes`: some terms are arguments of %nf or %gnf."""

    def __init__(self, seed, collapse=False, normalizes=False):
        self.rng, self.size, self.names = random.Random(seed), 0, 0
        self.scope, self.free, self.collapse, self.unscoped = [], 0, collapse, self.rng.random() < 0.25
        self.asks, self.normalizes = not (collapse and self.unscoped), normalizes

    def program(self):
        return LIBRARY + f"@main = {self.main()}\n"

    def main(self):
        """The longest of a few, since most random terms stop early."""
        return max((self.attempt() for _ in range(3)), key=len)

    def attempt(self):
        self.size = self.rng.randint(8, 60)
        return self.term(self.rng.choice(KINDS))

    def fresh(self):
        self.names += 1
        return f"v{self.names}"

    def number(self):
        return str(self.rng.choice([0, 1, 2, 3, self.rng.randrange(10), self.rng.randrange(2**32)]))

    def label(self):
        return self.rng.choice(LABELS)

    def within(self, names, kind):
        """A term that may use the given (name, kind) pairs, which are gone afterwards."""
        self.scope += names
        body = self.term(kind)
        self.scope = [entry for entry in self.scope if entry not in names]
        return body

    def term(self, kind):
        return called_normal(self, self.plain_term(kind))

    def plain_term(self, kind):
        self.size -= 1
        usable = [entry for entry in self.scope if entry[1] in (kind, "any") or kind == "any"]
        if usable and self.rng.random() < (0.35 if self.size > 0 else 0.8):
            entry = self.rng.choice(usable)
            self.scope.remove(entry)
            return entry[0]
        if self.size <= 0:
            return self.leaf(kind)
        general = [self.applied, self.duplicated, self.duplicated, self.superposed, self.matched, self.let, self.marked, self.switched]
        general += [self.pair] * self.unscoped + [self.strict] * self.asks
        special = {"num": [self.arithmetic, self.arithmetic, self.called, *([self.equality, self.connective] if self.asks else [])],
                   "list": [self.list], "fun": [self.function, self.function, self.cases], "any": [self.constructor, self.other_kind]}[kind]
        return self.rng.choice(general if self.rng.random() < 0.5 else special)(kind)

    def leaf(self, kind):
        if kind == "num" or kind == "any" and self.rng.random() < 0.5:
            return self.rng.choice([self.number()] * 20 + ["&{}"] + ["(λx.x)(3)"] * 3)
        if kind == "list":
            return self.rng.choice(["[]", f"[{self.number()}]", "[1,2,3]", '"ab"'])
        if kind == "fun":
            return self.rng.choice(["(λx.x)", "(λ&x.x*x)", "(λx.x+1)", "(λx.λ{3:7;λn.n}(x))", "λ{0:5;λn.n-1}"])
        return self.rng.choice(["#A{}", "#B{1}", "^nm", "*", "2n", "'c'", "λ{}"])

    # Any kind

    def other_kind(self, _):
        return self.term(self.rng.choice(KINDS[:3]))

    def applied(self, kind):
        name, argument = self.fresh(), self.rng.choice(KINDS)
        if self.rng.random() < 0.3 and kind == "num":
            return f"({self.term('fun')})({self.term('num')})"
        value = self.term(argument)
        mark = self.rng.random() < 0.2
        if mark:
            return f"(λ&{name}.{self.within([(name, argument), (name, argument)], kind)})({value})"
        return f"(λ{name}.{self.within([(name, argument)], kind)})({value})"

    def let(self, kind):
        name, argument = self.fresh(), self.rng.choice(KINDS)
        value = self.term(argument)
        return f"(!{name}=({value});{self.within([(name, argument)], kind)})"

    def strict(self, kind):
        name, argument = self.fresh(), self.rng.choice(KINDS)
        value = self.term(argument)
        return f"(!!{name}=({value});{self.within([(name, argument)], kind)})"

    def duplicated(self, kind):
        name, argument = self.fresh(), self.rng.choice(KINDS)
        label = self.rng.choice([self.label()] * 6 + ["", f"({self.rng.choice([self.number(), self.term('num')])})"])
        value = self.term(argument)
        return f"(!{name}&{label}=({value});{self.within([(name + '₀', argument), (name + '₁', argument)], kind)})"

    def superposed(self, kind):
        label = self.rng.choice([self.label()] * 8 + [f"({self.term('num')})"])
        return f"&{label}{{{self.term(kind)},{self.term(kind)}}}"

    def marked(self, kind):
        return f"↑({self.term(kind)})"

    def matched(self, kind):
        """One branch of the match uses what is in scope."""
        a, b = self.fresh(), self.fresh()
        value = self.term("list")
        body = f"λ{a}.λ{b}.{self.within([(a, 'num'), (b, 'list')], kind)}"
        return f"(λ{{[]:{self.leaf(kind)};<>:{body};λx.{self.leaf(kind)}}})({value})"

    def switched(self, kind):
        name, value = self.fresh(), self.term("num")
        return f"(λ{{{self.number()}:{self.leaf(kind)};λ{name}.{self.within([(name, 'num')], kind)}}})({value})"

    def pair(self, kind):
        call, variable = self.fresh(), self.fresh()
        self.free += 1
        first = self.term(kind)
        body = self.within([(variable, "any")], kind)
        self.free -= 1
        if self.normalizes and self.rng.random() < 0.5:  # a function that %nf gave back is applied, and binds what was free
            parts = self.rng.sample([body, f"g{call}({self.term('num')})"], 2)
            return f"(!{call}=λ{variable};!!g{call}=%nf({call}({first}));{'#P{' if kind == 'any' else '(λk.λl.k)('}{','.join(parts)}{'}' if kind == 'any' else ')'})"
        return f"(!{call}=λ{variable};(λk.λl.{self.leaf(kind)})({call}({first},{self.term('num')}),{body}))" if kind != "any" else (
            f"(!{call}=λ{variable};#P{{{call}({first},{self.term('num')}),{body}}})")

    # One kind

    def arithmetic(self, _):
        return f"(({self.term('num')}) {self.rng.choice(OPERATORS)} ({self.term('num')}))"

    def depth(self, most):
        """Calls of a recursive function; what waits for a variable is printed with all of them."""
        return 2 if self.free else most

    def called(self, _):
        return self.rng.choice([lambda: f"@sum({self.depth(6)},{self.term('list')})", lambda: f"@fib({self.depth(4)},{self.term('num')} && 7)"])()

    def equality(self, _):
        kind = self.rng.choice(KINDS)
        return f"(({self.term(kind)}) === ({self.term(kind)}))"

    def connective(self, _):
        if self.collapse and self.free:
            return self.number()
        return f"(({self.term('num')}) {self.rng.choice(['.&.', '.|.'])} ({self.term('num')}))"

    def list(self, _):
        return self.rng.choice([lambda: f"(({self.term('num')})<>({self.term('list')}))", lambda: f"[{self.term('num')},{self.term('num')}]",
                                lambda: f"@map({self.depth(5)},{self.term('fun')},{self.term('list')})", lambda: f"@app({self.depth(6)},{self.term('list')},{self.term('list')})",
                                lambda: f"@rep({self.depth(4)},{self.term('num')} && 3,{self.term('num')})"])()

    def function(self, _):
        name = self.fresh()
        self.free += 1
        made = self.rng.choice([lambda: f"(λ{name}.{self.within([(name, 'num')], 'num')})",
                                lambda: f"(λ{name}&{self.label()}.{self.within([(name + '₀', 'num'), (name + '₁', 'num')], 'num')})",
                                lambda: f"λ{{λ{name}.{self.within([(name, 'num')], 'num')}}}" if self.asks else "λ{}"])()
        self.free -= 1
        return made

    def cases(self, _):
        return f"λ{{{self.number()}:{self.term('num')};{self.term('fun')}}}"

    def constructor(self, _):
        fields = [self.term("any") for _ in range(self.rng.choice([0, 1, 2, 2, 3, 5]))]
        return self.rng.choice([lambda: f"#{self.rng.choice(['A', 'B', 'Pair'])}{{{','.join(fields)}}}", lambda: f"^st({','.join(fields)})"])()
