"""Random programs as searches are written: superpositions of several labels inside what is matched, sorted and summed; copies with the labels of
superpositions, copies of copies, and functions that lose their variables to a copy (`loops`). None uses a construct that the frontier engine lacks."""
import random
import re

from generator import Generator, called_normal

LIBRARY = """@and = λ{0: λb. 0; λn. λb. b}
@or = λ{0: λb. b; λn. λb. 1}
@not = λ{0: 1; λn. 0}
@sum = λ{[]: 0; <>: λh.λt. h + @sum(t)}
@map = λ{[]: λf. []; <>: λh.λt.λ&f. f(h) <> @map(t, f)}
@pick = λ{0: λx.λr. r; λn.λx.λr. x <> r}
@filter = λ{[]: λf. []; <>: λ&h.λt.λ&f. @pick(f(h), h, @filter(t, f))}
@insert = λ{[]: λx. [x]; <>: λ&h.λt.λ&x. @place(h < x, h, t, x)}
@place = λ{0: λh.λt.λx. x <> h <> t; λn.λh.λt.λx. h <> @insert(t, x)}
@sort = λ{[]: []; <>: λh.λt. @insert(@sort(t), h)}
@total = λ{#L: λx. x; #N: λa.λb. @total(a) + @total(b)}
@flip = λ{#L: λx. #L{x}; #N: λa.λb. #N{@flip(b), @flip(a)}}
@fib = λ{0: 0; 1: 1; λ&n. @fib(n - 1) + @fib(n - 2)}
@count = λ{#Z: 0; #S: λn. 1 + @count(n)}
@nat = λ{0: #Z{}; λn. #S{@nat(n - 1)}}
"""
OPERATORS = ["+", "-", "*", "&&", "||", "^", "<", "==", "!=", ">"]
KINDS = ["num", "num", "list", "tree", "fun", "fun", "nat"]


class Search:
    def __init__(self, seed, erases=None, normalizes=False):
        self.rng, self.names, self.size, self.scope = random.Random(seed), 0, 0, []
        self.labels = self.rng.sample(["A", "B", "C", "D", "E", "F", "K", "zz"], self.rng.randint(1, 6))
        self.erases = self.rng.random() < 0.4 if erases is None else erases
        self.loops, self.strict, self.normalizes = self.rng.random() < 0.3, self.rng.random() < 0.3, normalizes

    def program(self):
        return LIBRARY + f"@keep = λ{{0: λx. {'&{}' if self.erases else '0'}; λn.λx. x}}\n@main = {self.main()}\n"

    def main(self):
        """A few copies of values, then fields that use them."""
        text = ""
        for _ in range(self.rng.randint(2, 5)):
            kind, self.names, self.size = self.rng.choice(KINDS), self.names + 1, self.rng.randint(3, 25)
            name, value, label = f"v{self.names}", self.term(kind), self.label()
            binder, uses = self.rng.choice([(f"{name}&{label}", "₀₁")] * 2 + [(f"&{name}", ["", "", ""])])
            text += f"!{binder}=({value});"
            self.scope += [(name + use, kind) for use in uses]
        fields = []
        for _ in range(self.rng.randint(3, 6)):
            self.size = self.rng.randint(5, 40)
            fields.append(self.term(self.rng.choice(KINDS)))
        return text + f"#R{{{','.join(fields)}}}"

    def label(self):
        return self.rng.choice(self.labels)

    within = Generator.within

    def term(self, kind):
        return called_normal(self, self.plain_term(kind))

    def plain_term(self, kind):
        self.size -= 1
        usable = [entry for entry in self.scope if entry[1] == kind]
        if usable and self.rng.random() < (0.6 if self.size > 0 else 0.9):
            entry = self.rng.choice(usable)
            self.scope.remove(entry)
            return entry[0]
        if self.size <= 0:
            return self.leaf(kind)
        general = [self.superposed] * 3 + [self.copied] * 3 + [self.bound] * 3 + [self.switched]
        general += [self.kept] * self.erases + [self.looped] * self.loops
        special = {"num": self.number, "list": self.list, "tree": self.tree, "fun": self.function, "result": self.result, "nat": self.nat}[kind]
        return self.rng.choice(general if self.rng.random() < 0.5 else [special])(kind)

    def leaf(self, kind):
        label = self.label()
        return self.rng.choice({
            "num": ["0", "1", "2", "7", f"&{label}{{0,1}}", f"&{label}{{{self.rng.randrange(5)},3}}", *["&{}"] * self.erases],
            "list": ["[]", "[1,2]", f"[&{label}{{0,1}},3]", f"&{label}{{[],[4]}}"],
            "tree": ["#L{1}", f"#N{{#L{{&{label}{{1,2}}}},#L{{3}}}}", f"&{label}{{#L{{5}},#N{{#L{{1}},#L{{2}}}}}}"],
            "fun": ["(λx.x)", "(λx.x+1)", "λ{0:1;λn.n-1}", "@not", f"(λx&{label}.x₀*x₁)", f"(λx.&{label}{{x,2}})"],
            "nat": ["@nat(2)", f"@nat(&{label}{{0,3}})", "#Z{}"],
            "result": ["#R{}", f"&{label}{{#R{{}},#Q{{1}}}}"]}[kind])

    def named(self, form, uses, kind):
        """`form` with a name, a value of some kind and a body that uses the name."""
        self.names += 1
        name, argument = f"v{self.names}", self.rng.choice(KINDS)
        value = self.term(argument)
        return form.format(name, value, self.within([(name + side, argument) for side in uses], kind))

    def superposed(self, kind):
        return f"&{self.label()}{{{self.term(kind)},{self.term(kind)}}}"

    def copied(self, kind):
        return self.named(f"(!{{}}&{self.label()}=({{}});{{}})", "₀₁", kind)

    def bound(self, kind):
        forms = [("(!{}=({});{})", 1), ("(!&{}=({});{})", self.rng.randint(2, 4)), *[("(!!{}=({});{})", 1)] * self.strict]
        form, uses = self.rng.choice(forms)
        return self.named(form, [""] * uses, kind)

    def looped(self, kind):
        self.names += 1
        name, label = f"v{self.names}", self.label()
        return f"(!{name}&{label}=(λx.&{label}{{{self.term(kind)},x}});{name}₀({name}₁({self.term(kind)})))"

    def switched(self, kind):
        self.names += 1
        name, value = f"v{self.names}", self.term("num")
        return f"(λ{{{self.rng.randrange(3)}:{self.leaf(kind)};λ{name}.{self.within([(name, 'num')], kind)}}})({value})"

    def kept(self, kind):
        return f"@keep({self.term('num')},{self.term(kind)})"

    def number(self, _):
        return self.filled(["(($num) $op ($num))"] * 4 + ["@not($num)", "@and($num,$num)", "@or($num,$num)", "@sum($list)", "@total($tree)", "($fun)($num)",
                                                        "@count($nat)", "@fib(($num) && 3)"])

    def list(self, _):
        return self.filled(["[$num,$num]", "(($num)<>($list))", "@map($list,$fun)", "@filter($list,$fun)", "@sort($list)"])

    def tree(self, _):
        return self.filled(["#L{$num}", "#N{$tree,$tree}", "@flip($tree)"])

    def nat(self, _):
        return self.filled(["#S{$nat}"])

    def result(self, _):
        fields = self.rng.choices(["$num", "$list", "$tree", "$fun", "$nat", "$result"], k=self.rng.randint(2, 5))
        return self.filled(["#R{" + ",".join(fields) + "}"])

    def filled(self, forms):
        return re.sub(r"\$(\w+)", lambda part: self.rng.choice(OPERATORS) if part[1] == "op" else self.term(part[1]), self.rng.choice(forms))

    def function(self, _):
        self.names += 1
        name, label = f"v{self.names}", self.label()
        kind = self.rng.randrange(4)
        if kind == 0:
            return f"(λ{name}.{self.within([(name, 'num')], 'num')})"
        if kind == 1:
            return f"(λ{name}&{label}.{self.within([(name + '₀', 'num'), (name + '₁', 'num')], 'num')})"
        if kind == 2:
            return f"(λ&{name}.{self.within([(name, 'num')] * 3, 'num')})"
        return f"λ{{{self.rng.randrange(3)}:{self.term('num')};{self.leaf('fun')}}}"
