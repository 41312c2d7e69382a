"""One program for each interaction, over random operands: (row, text, strong normal form). The expected text comes from Python's arithmetic."""
import itertools
import random

from evaluator.terms import DIGITS

M = 1 << 32
OPERATORS = {"+": lambda a, b: (a + b) % M, "-": lambda a, b: (a - b) % M, "*": lambda a, b: a * b % M, "/": lambda a, b: a // b if b else 0,
             "%": lambda a, b: a % b if b else 0, "&&": lambda a, b: a & b, "||": lambda a, b: a | b, "^": lambda a, b: a ^ b,
             "<<": lambda a, b: (a << b % 32) % M, ">>": lambda a, b: a >> b % 32, "~": lambda a, b: b ^ (M - 1), "==": lambda a, b: int(a == b),
             "!=": lambda a, b: int(a != b), "<": lambda a, b: int(a < b), "<=": lambda a, b: int(a <= b), ">": lambda a, b: int(a > b),
             ">=": lambda a, b: int(a >= b)}


def number(rng):
    return rng.choice([0, 1, 2, 31, 32, 65535, 65536, 70000, M - 1, rng.randrange(100), rng.randrange(M)])


def label(rng, taken=()):
    """Two characters, the first not the digit 0, which printing drops."""
    while (text := rng.choice(DIGITS[1:53]) + rng.choice(["", rng.choice(DIGITS)])) in taken:
        pass
    return text


def constructor(rng, taken=()):
    while (text := "K" + "".join(rng.choice("abcXYZ_019$") for _ in range(rng.randint(1, 6)))) in taken:
        pass
    return text


def programs(seed):
    rng = random.Random(seed)
    a, b, c, d = (number(rng) for _ in range(4))
    L = label(rng)
    R = label(rng, (L,))
    C = constructor(rng)
    D = constructor(rng, (C,))
    return list(itertools.chain(application(a, b, c, L, C, D), matches(a, b, c, L, C, D), duplication(a, b, c, L, R, C),
                                arithmetic(rng, a, b, c, L), labels(a, b, c, rng.randrange(1, 65535), L), equality(a, b, c, L, C, D),
                                connectives(a, b, c, d, L), marks(a, b, L)))


def application(a, b, c, L, C, D):
    yield "APP-ERA", f"&{{}}({a})", "&{}"
    yield "APP-LAM", f"(λx.#{C}{{x,{a}}})({b})", f"#{C}{{{b},{a}}}"
    yield "APP-LAM", f"(λx.{a})({b})", f"{a}"
    yield "APP-SUP", f"(&{L}{{λx.#{C}{{x}},λx.#{D}{{x}}}})({a})", f"&{L}{{#{C}{{{a}}},#{D}{{{a}}}}}"
    yield "APP-SUP", f"(&{L}{{λx.[x],λx.#{C}{{x}}}})(&{L}{{{a},{b}}})", f"&{L}{{[{a}],#{C}{{{b}}}}}"
    yield "APP-INC", f"(↑λx.#{C}{{x}})({a})", f"↑#{C}{{{a}}}"
    yield None, f"^q({a},{b})", f"q({a},{b})"
    yield None, f"λf.f({a})({b})", f"λa.a({a},{b})"


def matches(a, b, c, L, C, D):
    other = (a + 1) % M
    yield "APP-ERA (match)", f"(λ{{#{C}:{a};{b}}})(&{{}})", "&{}"
    yield "APP-MAT-SUP", f"(λ{{#{C}:{a};λx.{b}}})(&{L}{{#{C}{{}},#{D}{{}}}})", f"&{L}{{{a},{b}}}"
    yield "APP-MAT-SUP", f"(λ{{#{C}:&{L}{{{a},{b}}};&{L}{{λx.{b},λx.{c}}}}})(&{L}{{#{C}{{}},#{D}{{}}}})", f"&{L}{{{a},{c}}}"
    yield "MAT-INC", f"(λ{{{a}:{b};λx.x}})(↑{a})", f"↑{b}"
    yield "APP-MAT-CTR-MAT", f"(λ{{#{D}:0;#{C}:λx.λy.[y,x]}})(#{C}{{{a},{b}}})", f"[{b},{a}]"
    yield "APP-MAT-CTR-MIS", f"(λ{{#{C}:0;λx.[x]}})(#{D}{{{a}}})", f"[#{D}{{{a}}}]"
    yield "APP-MAT-CTR-MIS", f"(λ{{{a}:0;λx.[x]}})(#{C}{{}})", f"[#{C}{{}}]"
    yield "APP-MAT-NUM-MAT", f"(λ{{{other}:0;{a}:{b};λx.0}})({a})", f"{b}"
    yield "APP-MAT-NUM-MIS", f"(λ{{{a}:{b};λx.[x]}})({other})", f"[{other}]"
    yield "APP-MAT-NUM-MIS", f"(λ{{#{C}:{b};λx.[x]}})({a})", f"[{a}]"
    yield "APP-MAT-NUM-MIS", f"(λ{{{a}:{b};λx.[x]}})({(a + 65536) % M})", f"[{(a + 65536) % M}]"
    yield None, f"(λ{{#{C}:{a};{b}}})(^q)", f"λ{{#{C}:{a}{f';{b}' if b else ''}}}(q)"
    yield None, f"λx.λ{{{a}:{c}}}(x)", f"λa.λ{{{a}:{c}}}(a)"
    yield "USE-ERA", f"(λ{{λx.{a}}})(&{{}})", "&{}"
    yield "USE-SUP", f"(λ{{&{L}{{λx.[x],λx.#{C}{{x}}}}}})(&{L}{{{a},{b}}})", f"&{L}{{[{a}],#{C}{{{b}}}}}"
    yield "USE-SUP", f"(λ{{λx.[x,{c}]}})(&{L}{{{a},{b}}})", f"&{L}{{[{a},{c}],[{b},{c}]}}"
    yield "USE-INC", f"(λ{{λx.[x]}})(↑{a})", f"↑[{a}]"
    yield "USE-VAL", f"!!x={a}+{b};[x]", f"[{(a + b) % M}]"
    yield "USE-VAL", f"λy.!!x=y({a});[x]", f"λa.[a({a})]"


def duplication(a, b, c, L, R, C):
    pair = f"#{C}{{x₀,x₁}}"
    yield "DUP-NAM", f"!x&{L}=^nm;[x₁,x₀]", "[nm,nm]"
    yield "DUP-LAM", f"!x&{L}=λy.[y,{a}];#{C}{{x₀({b}),x₁({c})}}", f"#{C}{{[{b},{a}],[{c},{a}]}}"
    yield "DUP-LAM", f"!x&{L}=λy.[y,{a}];{pair}", f"#{C}{{λa.[a,{a}],λb.[b,{a}]}}"
    yield "DUP-LAM", f"!x&{L}=λy.{a};{pair}", f"#{C}{{λa.{a},λb.{a}}}"
    yield "DUP-SUP same", f"!x&{L}=&{L}{{{a},{b}}};{pair}", f"#{C}{{{a},{b}}}"
    yield "DUP-SUP same", f"!x&{L}=&{L}{{{a},{b}}};#{C}{{x₁,x₀}}", f"#{C}{{{b},{a}}}"
    yield "DUP-SUP other", f"!x&{L}=&{R}{{{a},{b}}};{pair}", f"#{C}{{&{R}{{{a},{b}}},&{R}{{{a},{b}}}}}"
    yield "DUP-NOD ERA", f"!x&{L}=&{{}};{pair}", f"#{C}{{&{{}},&{{}}}}"
    yield "DUP-NOD ANY", f"!x&{L}=*;{pair}", f"#{C}{{*,*}}"
    yield "DUP-NOD NUM", f"!x&{L}={a};{pair}", f"#{C}{{{a},{a}}}"
    yield "DUP-NOD CTR", f"!x&{L}=#{C}{{}};{pair}", f"#{C}{{#{C}{{}},#{C}{{}}}}"
    yield "DUP-NOD CTR", f"!x&{L}=#{C}{{{a},[{b}],{c}}};{pair}", f"#{C}{{#{C}{{{a},[{b}],{c}}},#{C}{{{a},[{b}],{c}}}}}"
    yield "DUP-NOD MAT", f"!x&{L}=λ{{#{C}:{a};λy.{b}}};#{C}{{x₀(#{C}{{}}),x₁({c})}}", f"#{C}{{{a},{b}}}"
    yield "DUP-NOD SWI", f"!x&{L}=λ{{{a}:{b};λy.{c}}};#{C}{{x₀({a}),x₁({(a + 1) % M})}}", f"#{C}{{{b},{c}}}"
    yield "DUP-NOD SWI", f"!x&{L}=λ{{{a}:{b};λy.{c}}};#{C}{{x₀({(a + 65536) % M}),x₁({a})}}", f"#{C}{{{c},{b}}}"
    yield "DUP-NOD USE", f"!x&{L}=λ{{λy.[y]}};#{C}{{x₀({a}),x₁({b})}}", f"#{C}{{[{a}],[{b}]}}"
    yield "DUP-NOD INC", f"!x&{L}=↑{a};{pair}", f"#{C}{{↑{a},↑{a}}}"
    yield "DUP-NOD DRY", f"!x&{L}=^q({a});{pair}", f"#{C}{{q({a}),q({a})}}"
    yield "DUP-NOD OP2", f"λy.!x&{L}=y+{a};{pair}", f"λa.#{C}{{(A₀ + {a}),(A₁ + {a})}};!A&{L}=a;"
    yield "DUP-NOD DSU", f"λy.!x&{L}=&(y){{{a},{b}}};{pair}", f"λa.#{C}{{&(A₀){{{a},{b}}},&(A₁){{{a},{b}}}}};!A&{L}=a;"
    yield "DUP-NOD DDU", f"λy.!x&{L}=(!z&(y)={a};[z₀,z₁]);{pair}", (
        f"λa.#{C}{{!(A₀)={a};λb.λc.[b,c],!(A₁)={a};λd.λe.[d,e]}};!A&{L}=a;")
    for value, shown in (("y", "a"), (f"y({a})", f"a({a})"), ("@none", "@none"), (f"y .&. {a}", f"(a .&. {a})"), (f"y .|. {a}", f"(a .|. {a})")):
        yield None, f"λy.!x&{L}={value};{pair}", f"λa.#{C}{{A₀,A₁}};!A&{L}={shown};"


def arithmetic(rng, a, b, c, L):
    op = rng.choice(list(OPERATORS))
    f = OPERATORS[op]
    yield "OP2-ERA", f"&{{}} {op} {a}", "&{}"
    yield "OP2-SUP", f"&{L}{{{a},{b}}} {op} &{L}{{{c},{a}}}", f"&{L}{{{f(a, c)},{f(b, a)}}}"
    yield "OP2-SUP", f"&{L}{{{a},{b}}} {op} {c}", f"&{L}{{{f(a, c)},{f(b, c)}}}"
    yield "OP2-INC-X", f"(↑{a}) {op} {b}", f"↑{f(a, b)}"
    yield "OP2-NUM-ERA", f"{a} {op} &{{}}", "&{}"
    yield "OP2-NUM-SUP", f"{a} {op} &{L}{{{b},{c}}}", f"&{L}{{{f(a, b)},{f(a, c)}}}"
    yield "OP2-INC-Y", f"{a} {op} ↑{b}", f"↑{f(a, b)}"
    for op, f in OPERATORS.items():
        yield "OP2-NUM-NUM", f"({a}) {op} ({b})", f"{f(a, b)}"
    yield None, f"λx.λy.#P{{x + 1, {a} {op} y}}", f"λa.λb.#P{{(a + 1),({a} {op} b)}}"


def labels(a, b, c, n, L):
    text = DIGITS[n % 64]
    for rest in (n // 64, n // 4096):
        text = DIGITS[rest % 64] + text if rest else text
    yield "DSU-ERA", f"&(&{{}}){{{a},{b}}}", "&{}"
    yield "DSU-NUM", f"&({n}){{{a},{b}}}", f"&{text}{{{a},{b}}}"
    yield "DSU-NUM", f"&({n + 65536 * (a % 65536)}){{{a},{b}}}", f"&{text}{{{a},{b}}}"
    yield "DSU-SUP", f"&(&{L}{{{n},{n}}}){{&{L}{{{a},{b}}},&{L}{{{b},{c}}}}}", f"&{L}{{&{text}{{{a},{b}}},&{text}{{{b},{c}}}}}"
    yield "DDU-SUP", f"!x&(&{L}{{{n},{n}}})=&{L}{{{a},{b}}};[x₀,x₁,&{L}{{{b},{c}}}]", f"&{L}{{[{a},{a},{b}],[{b},{b},{c}]}}"
    yield "DSU-SUP", f"&(&{L}{{{n},{n}}}){{{a},{b}}}", f"&{L}{{&{text}{{{a},{b}}},&{text}{{{a},{b}}}}}"
    yield "DSU-INC", f"&(↑{n}){{{a},{b}}}", f"↑&{text}{{{a},{b}}}"
    yield "DDU-ERA", f"!x&(&{{}})={a};[x₀,x₁]", "&{}"
    yield "DDU-NUM", f"!x&({n})=&({n}){{{a},{b}}};[x₁,x₀]", f"[{b},{a}]"
    yield "DDU-SUP", f"!x&(&{L}{{{n},{n - 1}}})=&({n}){{{a},{b}}};[x₀]", f"&{L}{{[{a}],[&{text}{{{a},{b}}}]}}"
    yield "DDU-INC", f"!x&(↑{n})={a};[x₀,x₁]", f"↑[{a},{a}]"
    yield None, f"λx.&(x){{{a},{b}}}", f"λa.&(a){{{a},{b}}}"


def equality(a, b, c, L, C, D):
    same = int(a == b)
    yield "EQL-ERA-L", f"&{{}} === {a}", "&{}"
    yield "EQL-ERA-R", f"{a} === &{{}}", "&{}"
    yield "EQL-ANY-L", f"* === (λx.x)({a})", "1"
    yield "EQL-ANY-R", f"{a} === *", "1"
    yield "EQL-SUP-L", f"&{L}{{{a},{b}}} === {b}", f"&{L}{{{same},1}}"
    yield "EQL-SUP-L", f"&{L}{{{a},{b}}} === &{L}{{{b},{b}}}", f"&{L}{{{same},1}}"
    yield "EQL-SUP-R", f"#{C}{{&{L}{{{a},{b}}}}} === &{L}{{#{C}{{{a}}},#{C}{{{b}}}}}", f"&{L}{{1,1}}"
    yield "EQL-SUP-R", f"{b} === &{L}{{{a},{b}}}", f"&{L}{{{same},1}}"
    yield "EQL-INC-L", f"(↑{a}) === {b}", f"↑{same}"
    yield "EQL-INC-R", f"{a} === ↑{b}", f"↑{same}"
    yield "EQL-NUM", f"{a} === {b}", f"{same}"
    yield "EQL-LAM", f"(λx.λy.#{C}{{x,{a}}}) === (λx.λy.#{C}{{x,{a}}})", "1"
    yield "EQL-CTR", f"[{b},{a}] === [{b},{a}]", "↑↑↑↑1"
    yield "EQL-LAM", "(λx.λy.x) === (λx.λy.y)", "0"
    yield "EQL-CTR", f"#{C}{{{a},{b},{c}}} === #{C}{{{a},{b},{c}}}", "1"
    yield "EQL-CTR", f"#{C}{{{a},{b},{c}}} === #{C}{{{a},{(b + 1) % M},{c}}}", "0"
    yield "EQL-CTR", f"#{C}{{{a}}} === #{D}{{{a}}}", "0"
    yield "EQL-CTR", f"#{C}{{{a}}} === #{C}{{}}", "0"
    yield "EQL-CTR", "2n === 2n", "↑↑1"
    yield "EQL-MAT", f"λ{{#{C}:{a};{c}}} === λ{{#{C}:{b};{c}}}", f"{same}"
    yield "EQL-MAT", f"λ{{{a}:{c};{c}}} === λ{{{b}:{c};{c}}}", f"{same}"
    yield "EQL-MAT", f"λ{{#{C}:{c}}} === λ{{{a}:{c}}}", "0"
    yield "EQL-USE", f"λ{{λx.#{C}{{x,{a}}}}} === λ{{λx.#{C}{{x,{a}}}}}", "1"
    yield "EQL-NAM", "^ab === ^ab", "1"
    yield "EQL-NAM", "^ab === ^ac", "0"
    yield "EQL-DRY", f"^q({a}) === ^q({b})", f"{same}"
    yield "EQL-NOT", f"{a} === #{C}{{}}", "0"
    yield "EQL-NOT", f"(λx.x) === {a}", "0"


def connectives(a, b, c, d, L):
    for name, op in (("AND", ".&."), ("OR", ".|.")):
        def value(n, rest, name=name):
            return (rest if n else 0) if name == "AND" else (1 if n else rest)

        yield f"{name}-ERA", f"&{{}} {op} {a}", "&{}"
        yield f"{name}-SUP", f"&{L}{{0,{b}}} {op} {c}", f"&{L}{{{value(0, c)},{value(b, c)}}}"
        yield f"{name}-INC", f"(↑{a}) {op} {b}", f"↑{value(a, b)}"
        yield f"{name}-ZER", f"0 {op} {c}", f"{value(0, c)}"
        yield f"{name}-ONE", f"{d or 1} {op} {c}", f"{value(1, c)}"
        yield None, f"λx.x {op} ({a} + {b})", f"λa.(a {op} {(a + b) % M})"


def marks(a, b, L):
    yield "WNF-UNS", f"! f = λ v; #P{{f({a},{b}),v}}", f"#P{{{a},{b}}}"
    yield "WNF-UNS", f"! f = λ v; #P{{v,f({a},{b})}}", f"#P{{{b},{a}}}"
