"""Random functions with `return`, `break` and `continue` inside of expressions, where operands, subscripts, arguments and conditions stand, and with side
effects that tell the order of evaluation. Host code, which walks expressions one by one, is the judge of kernels."""

FUNCTIONS = 4
HEAD = """fn mixed(a: u32, b: u32) -> u32 {
    return if a % 3 == 1 { a * 5 + b } else { a + b * 7 }
}

fn first(a: u32, b: u32, c: u32) -> u32 {
    if a > b { return c }
    return a
}

"""


class Function:
    def __init__(self, rng, name):
        self.rng, self.fresh, self.loops, self.lines = rng, 0, 0, []
        self.names = ["x"]
        body = self.block(3, 4)
        body = f"    var t: u32 = 1\n    var a = [x, 2u32, 3, 4]\n{body}    return t + a[0] * 3 + a[1] * 5 + a[2] * 7 + a[3] * 11\n}}\n\n"
        self.text = f"fn {name}(x: u32) -> u32 {{\n{body}"
        self.kernels = f"""kernel called_{name}(x: &Tensor<u32, [N]>) -> Tensor<u32, [N]> {{
    return {name}(x[thread.global_id])
}}

kernel alone_{name}(x: u32, out: &mut Tensor<u32, [1]>) {{
    out[0] = {name}(x)
}}

kernel own_{name}(all: &Tensor<u32, [N]>) -> Tensor<u32, [N]> {{
    let x = all[thread.global_id]
{body}"""
        self.checks = f"""    let want_{name} = host.map(|v| {name}(v))
    assert_eq(called_{name}(&x).to_host(), want_{name})
    assert_eq(own_{name}(&x).to_host(), want_{name})
    for k in [1, 4, 9] {{
        alone_{name}(host[k], &mut one)
        assert_eq(one.to_host()[0], want_{name}[k])
    }}
"""

    def block(self, depth, count, indent="    "):
        names = list(self.names)
        text = "".join(indent + self.statement(depth, indent) + "\n" for _ in range(count))
        self.names = names
        return text

    def statement(self, depth, indent):
        rng = self.rng
        kind = rng.randrange(9 if depth else 5)
        if kind == 0:
            value = self.value(depth)
            self.fresh += 1
            self.names.append(f"v{self.fresh}")
            return f"let v{self.fresh} = {value}"
        if kind == 1:
            return f"t = t * 3 + {self.value(depth)}"
        if kind == 2:
            return f"a[{self.value(depth)} % 4] = {self.value(depth)}"
        if kind == 3:
            return f"a[{self.value(max(depth - 1, 0))} % 4] {rng.choice('+*')}= {self.value(depth)}"
        if kind == 4:
            return f"t {rng.choice('+*')}= {self.value(depth)}"
        if kind == 5:
            return f"if {self.condition(depth)} {{\n{self.block(depth - 1, 2, indent + '    ')}{indent}}}"
        self.fresh += 1
        inside = self.loops
        if kind == 6:
            self.loops = 0  # the condition of a `while` belongs to no loop
        counter, more = f"i{self.fresh}", self.value(1)
        self.loops = inside + 1
        if kind == 6:
            text = f"while t % 64 > {more} % 64 {{\n{indent}    t = t / 2\n{self.block(depth - 1, 2, indent + '    ')}{indent}    t = t % 4096 / 2\n{indent}}}"
            self.loops -= 1
            return self.bounded(text, counter, indent)
        names = list(self.names)
        self.names.append(counter)
        text = f"for {counter} in 0..{more} % 5 {{\n{self.block(depth - 1, 2, indent + '    ')}{indent}}}"
        self.names = names
        self.loops -= 1
        return text

    def bounded(self, loop, counter, indent):
        """`continue` skips the end of the body, so rounds are counted in its condition."""
        return f"var {counter} = 0u32\n{indent}" + loop.replace("while ", f"while ({{ {counter} += 1\n{indent}    {counter} < 9 }}) && ", 1)

    def condition(self, depth):
        rng = self.rng
        if depth == 0:
            return f"{rng.choice(self.names)} % {rng.randrange(2, 4)} == {rng.randrange(2)}"
        kind = rng.randrange(4)
        if kind == 0:
            return f"({self.condition(depth - 1)} {rng.choice(['&&', '||'])} {self.condition(depth - 1)})"
        if kind == 1:
            return f"(if {self.condition(depth - 1)} {{ {self.leaving(depth - 1, 'true')} }} else {{ {self.condition(depth - 1)} }})"
        return f"{self.value(depth - 1)} % 3 {rng.choice(['<', '==', '>'])} {self.value(depth - 1)} % 3"

    def leaving(self, depth, otherwise):
        kinds = [f"return {self.value(depth)}"] * 2 + [otherwise] + (["break", "continue"] * 2 if self.loops else [])
        return self.rng.choice(kinds)

    def value(self, depth):
        rng = self.rng
        if depth <= 0:
            return rng.choice([str(rng.randrange(9)) + "u32", "t", rng.choice(self.names), f"a[{rng.randrange(4)}]"])
        less = depth - 1
        kind = rng.randrange(10)
        if kind < 2:
            return f"({self.value(less)} {rng.choice('+*-^')} {self.value(less)})"
        if kind < 5:
            return f"(if {self.condition(less)} {{ {self.leaving(less, '3u32')} }} else {{ {self.value(less)} }})"
        if kind == 5:
            return f"mixed({self.value(less)}, {self.value(less)})"
        if kind == 6:
            return f"first({self.value(less)}, {self.value(less)}, {self.value(less)})"
        if kind == 7:
            return f"a[{self.value(less)} % 4]"
        if kind == 8:
            return f"(match {self.value(less)} % 4 {{ 0 => {self.leaving(less, '5u32')}, 1 | 2 => {self.value(less)}, _ => {self.value(less)} }})"
        self.fresh += 1
        return f"({{ t = t * 3 + {self.value(less)}\n        t ^ {rng.randrange(9)} }})"


class Jumps:
    """`text` ends with status 0 if kernels compute what host code does."""

    CHECKED = False  # sums wrap

    def __init__(self, rng):
        made = [Function(rng, f"f{i}") for i in range(FUNCTIONS)]
        kernels = "".join(each.text + each.kernels for each in made)
        start = "    let host = Vec.range(0, 40).map(|i| (i * i + i / 3) as u32)\n    let x = Tensor.from_host(&host)\n    var one: Tensor<u32, [1]> = zeros()\n"
        self.text = f"{HEAD}{kernels}fn main() {{\n{start}{''.join(each.checks for each in made)}}}\n"
