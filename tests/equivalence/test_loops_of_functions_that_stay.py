"""Random functions with loops, called with elements and constants: with `@noinline` they compute what they do without."""
import random

PROGRAM = """
@noinline
fn gcd(a: u64, b: u64) -> u64 {
    var x = a
    var y = b
    while y != 0 {
        let t = x % y
        x = y
        y = t
    }
    return x
}

// Endless for 0, with a tuple as its result.
@noinline
fn collatz(n: u64) -> (u32, bool) {
    var at = n
    var steps: u32 = 0
    loop {
        if at == 1 { return (steps, steps % 2 == 0) }
        at = if at % 2 == 0 { at / 2 } else { 3 * at + 1 }
        steps += 1
    }
}

@noinline
fn both(n: u64) -> u64 { return collatz(n).0 as u64 + gcd(n, 12) }

// What is borrowed stays as it is for a thread without an element.
@noinline
fn halve(v: &mut u64, list: &mut [u64; 2], unused: f32) {
    while *v > 3 { *v = *v / 2 }
    while list[0] != 1 { list[0] = if list[0] % 2 == 0 { list[0] / 2 } else { list[0] + 1 } }
}

kernel k(x: &Tensor<u64, [N]>, g: &mut Tensor<u64, [N]>, c: &mut Tensor<u64, [N]>, s: &mut Tensor<u32, [N]>) {
    let i = thread.global_id
    g[i] = gcd(x[i], 360) + gcd(12, x[i])
    c[i] = both(x[i])
    var v = x[i]
    var list = [x[i], 7]
    halve(&mut v, &mut list, 1.5)
    c[i] += 1000 * v + 100000 * list[0]
    // The threads of a warp compute its argument together.
    s[i] = collatz(warp.max(if i < N { x[i] as u32 } else { 0 }) as u64).0
}

// An argument that leaves the kernel.
kernel left(x: &Tensor<u64, [N]>, g: &mut Tensor<u64, [N]>) {
    let i = thread.global_id
    if i < N { g[i] = gcd(if x[i] % 3 == 0 { return } else { x[i] }, 18) }
}

fn euclid(a: u64, b: u64) -> u64 { if b == 0 { return a } return euclid(b, a % b) }

fn steps(n: u64) -> u32 {
    var (at, count) = (n, 0u32)
    while at != 1 {
        at = if at % 2 == 0 { at / 2 } else { 3 * at + 1 }
        count += 1
    }
    return count
}

fn main() {
    var h = vec![0u64; 70]
    for i in 0..70 { h[i] = i as u64 + 1 }
    let x = Tensor.from_host(h.copy())
    var g = zeros::<u64>([70])
    var c = zeros::<u64>([70])
    var s = zeros::<u32>([70])
    k(&x, &mut g, &mut c, &mut s)
    let (gs, cs, ss) = (g.to_host(), c.to_host(), s.to_host())
    left(&x, &mut g)
    let ls = g.to_host()
    for i in 0..70 {
        assert_eq(gs[i], euclid(h[i], 360) + euclid(12, h[i]))
        var v = h[i]
        while v > 3 { v = v / 2 }
        assert_eq(cs[i], steps(h[i]) as u64 + euclid(h[i], 12) + 1000 * v + 100000)
        assert_eq(ss[i], steps(min(i / 32 * 32 + 32, 70) as u64))
        assert_eq(ls[i], if h[i] % 3 == 0 { gs[i] } else { euclid(h[i], 18) })
    }
}
"""


def test_they_compute_what_the_host_does(vortex, tmp_path, backend):
    (tmp_path / "p.vx").write_text(PROGRAM)
    vortex("run", *backend, tmp_path / "p.vx")


class Functions:
    """Of two numbers of 32 bits that wrap: every loop ends, for most of them by what the argument is."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def expression(self, depth=2):
        pick = self.random
        if depth == 0 or pick.random() < 0.3:
            return pick.choice(["a", "b", "x", "y", "1", "3", "7", "0"])
        return f"({self.expression(depth - 1)} {pick.choice('+-*/%^&')} {self.expression(depth - 1)})"

    def body(self, depth, indent):
        pick, space = self.random, " " * indent
        lines = ""
        for _ in range(pick.randint(1, 3)):
            kind = pick.random() if depth else 0
            inner = self.body(depth - 1, indent + 1) if kind >= 0.4 else ""
            if kind < 0.4:
                lines += f"{space}{pick.choice('xy')} = {self.expression()}\n"
            elif kind < 0.55:
                lines += f"{space}if {self.expression(1)} {pick.choice(['<', '>', '==', '!='])} {self.expression(1)} {{\n{inner}{space}}}\n"
            elif kind < 0.7:
                leave = f"{space} if x > {self.expression(0)} {{ break }}\n" if pick.random() < 0.4 else ""
                lines += f"{space}for j in 0..{pick.choice(['b % 5', '3', 'x % 4'])} {{\n{inner}{leave}{space}}}\n"
            elif kind < 0.85:
                lines += f"{space}while {pick.choice('xy')} {pick.choice(['> b', '!= 0', '> 3'])} && n < 9 {{\n{inner}{space} n += 1\n{space}}}\n"
            elif kind < 0.95:
                lines += f"{space}while y != 0 {{\n{space} y = {pick.choice(['y / 2', 'y / 3', 'y & (y - 1)', 'a % y'])}\n{space}}}\n"
            else:
                lines += f"{space}if {self.expression(1)} == {self.expression(1)} {{ return {self.expression()} }}\n"
        return lines

    def program(self, count):
        text = main = ""
        for k in range(count):
            result = self.random.choice(["u32", "(u32, u32)", "[u32; 2]"])
            value = {"u32": "x + y * 5", "(u32, u32)": "(x, y)", "[u32; 2]": "[x, y]"}[result]
            use = {"u32": "{0}", "(u32, u32)": "({0}.0 ^ {0}.1 * 3)", "[u32; 2]": "({0}[0] ^ {0}[1] * 3)"}[result]
            body = self.body(2, 1)
            if result != "u32":
                body = "\n".join(line.split("return")[0] + f"return {value} }}" if "return" in line else line
                                 for line in body.splitlines()) + "\n"
            for mark, name in (("@noinline\n", f"f{k}"), ("", f"g{k}")):
                text += f"@unchecked(overflow)\n{mark}fn {name}(a: u32, b: u32) -> {result} {{\n var x = a\n var y = b\n var n = 0\n{body} return {value}\n}}\n"
            calls = [self.random.choice(["x[i], 3", "12, x[i]", "x[i], x[i]", "x[i], 0", "5, 6", "x[i], x[i] + 1"]) for _ in range(2)]
            for name in (f"f{k}", f"g{k}"):
                lets = "".join(f" let c{i} = {name}({call})\n" for i, call in enumerate(calls))
                text += ("@unchecked(overflow)\nkernel k" + name + "(x: &Tensor<u32, [N]>, o: &mut Tensor<u32, [N]>) {\n let i = thread.global_id\n"
                         f"{lets} o[i] = {use.format('c0')} + {use.format('c1')}\n}}\n")
            main += f" {{ var p = zeros::<u32>([6])\n var q = zeros::<u32>([6])\n kf{k}(&x, &mut p)\n kg{k}(&x, &mut q)\n assert_eq(p.to_host(), q.to_host()) }}\n"
        return f"{text}fn main() {{\n let x = Tensor.from_host(vec![0u32, 1, 2, 7, 360, 4294967295])\n{main}}}\n"


def test_random_ones_compute_what_they_do_without_the_attribute(vortex, tmp_path, device):
    seed = random.randrange(1 << 32)
    (tmp_path / f"{seed}.vx").write_text(Functions(seed).program(12))
    vortex("run", "--device", device, tmp_path / f"{seed}.vx")
