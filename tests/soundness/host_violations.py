"""Single violations of ownership, in random host programs and in the kernels of these."""
import random

from ownership import Program
from tree import indent

# What a violation needs (kinds of whole variables, named a, b …), the statements, the id.
USES = ["print({a}.len())", "print(digest(&{a}))", "{a}.push(1)", "let z2 = passed({a})", "print({a}[0])", "{a}[0] = 1", "for z2 in {a} {{ print(z2) }}",
        "let z2 = Pair {{ first: {a}, second: vec![1] }}", "let z2 = |i: usize| {a}[i]", "if {a}.len() > 3 {{ print(1) }}", "let z2 = &mut {a}",
        "let z2 = (1, {a})", "let z2 = vec![{a}]", "let z2 = {a}.copy()", "let z2 = {a}[0..1]", "let z2 = {a}.map(|x| x + 1)",
        "let z2 = Tensor.from_host({a})", "let z2 = longer(&{a}, &{a})", "while {a}.len() > 9 {{ break }}", "{a}.sort()", "let z2 = {a}"]
MOVES = ["let z1 = {a}", "let z1 = passed({a})", "let z1 = Tensor.from_host({a})", "let z1 = (2, {a})", "let z1 = vec![{a}]",
         "var z1 = vec![vec![1]]\nz1.push({a})", "if args().len() > 0 {{\n    let z1 = {a}\n}}", "let z1 = if args().len() > 0 {{ {a} }} else {{ vec![1] }}",
         "let z1 = match args().len() {{\n    0 => {a},\n    _ => vec![1],\n}}", "let z1 = Pair {{ first: vec![1], second: {a} }}",
         "loop {{\n    let z1 = {a}\n    break\n}}", "{{\n    let z1 = {a}\n}}"]
VIOLATIONS = {
    "move in a loop": ("E0512", ["list"], ["for z0 in 0..2 {{\n    let z1 = {a}\n}}", "while args().len() < 1 {{\n    let z1 = passed({a})\n}}",
                                           "var z0 = 0\nloop {{\n    let z1 = Tensor.from_host({a})\n    z0 += 1\n    if z0 > 2 {{ break }}\n}}"]),
    "part after the whole": ("E0512", ["pair"], ["let z1 = {a}\nprint({a}.second)", "let z1 = {a}.swap()\n{a}.first = vec![1]", "let z1 = {a}\n{a}.first.push(1)"]),
    "whole after a part": ("E0512", ["pair"], ["let z1 = {a}.first\nprint({a}.size())", "let z1 = {a}.second\nlet z2 = {a}", "let z1 = {a}.first\n{a}.grow(1)"]),
    "tensor after a launch took it": ("E0512", ["tensor"], ["let z1 = whole0({a})\nprint({a}.to_host())", "let z1 = whole1({a})\nlet z2 = whole0(&{a})",
                                                            "let z1 = whole0({a})\nlet z2 = whole0({a})"]),
    "move out of a borrow": ("E0514", ["list", "pair"], ["let z1 = vec![{a}.copy()]\nlet z2 = z1[0]", "let z1 = &{b}\nlet z2 = z1.first", "let z1 = passed({a}[0..1])",
                                                         "for z1 in vec![{a}.copy()].copy() {{ print(z1) }}\nlet z2 = |x: i32| passed({a})",
                                                         "let z0 = vec![vec![1]]\nfor z1 in z0 {{\n    let z2 = z1\n}}"]),
    "moved while borrowed": ("E0515", ["list", "pair"], ["let z1 = &{a}\nlet z2 = {a}\nprint(z1)", "let z1 = {a}[0..1]\nlet z2 = passed({a})\nprint(z1)",
                                                         "let z1 = &{b}.first\nlet z2 = {b}\nprint(z1)", "let z1 = |i: usize| {a}[i]\nlet z2 = {a}\nprint(z1(0))",
                                                         "let z2 = joined({a}, &{a})|E0512", "let z1 = longer(&{a}, &{b}.second)\nlet z2 = {a}\nprint(z1)"]),
    "borrowed twice": ("E0516", ["list", "pair"], ["let z1 = &mut {a}\nlet z2 = &{a}\nz1.push(1)\nprint(z2)", "let z1 = &{a}\nlet z2 = &mut {a}\nz2.push(1)\nprint(z1)",
                                                   "mix(&mut {a}, &{a})", "mix(&mut {b}.first, &{b}.first)", "let z1 = {b}.front()\nprint({b}.size())\nz1.push(1)",
                                                   "let z1 = &mut {b}\nlet z2 = &mut {b}.second\nz1.grow(1)\nz2.push(1)", "let z1 = &mut {a}[0..1]\nraise(z1, {a}[0])|E0518"]),
    "changed while borrowed": ("E0517", ["list", "pair"], ["let z1 = &{a}\n{a}.push(1)\nprint(z1)", "let z1 = &{a}[0]\n{a} = vec![1]\nprint(z1)", "for z1 in {a} {{\n    {a}.push(z1)\n}}",
                                                           "let z1 = {a}[0..1]\n{a}[0] = 4\nprint(z1)", "let z1 = &{b}\n{b}.first = vec![2]\nprint(z1.first)",
                                                           "let z1 = |x: i32| print(x + {a}[0])\n{a}[0] = 1\nz1(1)", "let z1 = longer(&{a}, &{b}.first)\n{b}.first.push(1)\nprint(z1)"]),
    "used while mutably borrowed": ("E0518", ["list"], ["let z1 = &mut {a}\nprint({a}.len())\nz1.push(1)", "let z1 = |x: i32| {{ {a}.push(x) }}\nprint({a}[0])\nz1(1)"]),
    "outlives its owner": ("E0519", ["list"], ["let z1 = {{\n    let z2 = {a}.copy()\n    &z2\n}}\nprint(z1)", "var z1 = vec![&{a}]\n{{\n    let z2 = vec![1]\n    z1.push(&z2)\n}}\nprint(z1.len())",
                                               "let z1 = {{\n    let z2 = vec![1]\n    longer(&{a}, &z2)\n}}\nprint(z1)", "let z1 = {{\n    let z2 = 3\n    |x: i32| x + z2\n}}\nprint(z1(1))"]),
    "launch arguments overlap": ("E0522", ["tensor", "fields"], ["changing0(&mut {a}, &{a})", "changing1(&mut {b}.u, &{b}.u)", "threads0(&{a}, &mut {a})",
                                                                 "changing0(&mut {a}[0..64], &{a}[32..96])", "let z0 = args().len()\nchanging0(&mut {a}[0..+4], &{a}[z0..+4])"]),
    "write through a shared reference": ("E0317", ["list"], ["let z1 = &{a}\nz1.push(1)", "let z1 = &{a}\nz1[0] = 1"]),
    "device memory read on the host": ("E0404", ["tensor"], ["print({a}[3])", "let z1 = {a}[0] + 1"]),
    "write to something fixed": ("E0315", ["list"], ["let z1 = {a}.copy()\nz1.push(1)", "let z1 = 3\nz1 = 4"]),
}
# In kernels: inserted before the last statement of a per-thread kernel.
KERNEL_VIOLATIONS = [
    ("E0317", "x[t] = 1"), ("E0450", "if t < 5 {\n    sync_block()\n}"), ("E0450", "if p > 3 {\n    sync_block()\n}"), ("E0452", "if p > 3 {\n    let z: Tensor<i32, [64]> @shared\n    z[t] = p\n}"),
    ("E0525", "let z: Tensor<i32, [64]> @shared\np += z[t]"), ("E0525", "let z: Tensor<i32, [4]> @local\nz[1] += p"), ("E0521", "let z = x[0..8]\nz[t % 8] = 3"),
    ("E0451", "if p > 3 {\n    q = warp.sum(p)\n}"), ("E0516", "let z1 = y[0..40]\nlet z2 = y[32..64]\nz1[t % 32] = 1\nz2[t % 32] = 2"),
    ("E0519", "let z1 = {\n    let z: Tensor<i32, [64]> @shared\n    z[t] = p\n    &z\n}\np += z1[0]"), ("E0517", "let z1 = tile[0..32]\ntile[t] = p\nsync_block()\np += z1[t % 32]"),
    ("E0407", "print(args())"), ("E0408", "whole0(x)"), ("E0338", "put(y, t, p)"), ("E0518", "tile[t] = q\nsync_block()\nlet z1 = &mut tile\nput(z1, t, tile[t])"),
    ("E0517", "let z = &tile\ntile[t] = p\nsync_block()\np += z[t]"), ("E0516", "let z1 = &mut tile\nput(&mut tile, t, p)\nput(z1, t, q)"),
    ("E0317", "let z = &tile\nz[t] = 1"),
]


def hostViolation(rng, program):
    """(rule, text of the statements, hole, id)."""
    while True:
        rule = rng.choice(["use after move"] * 8 + sorted(VIOLATIONS))
        id_, kinds, texts = ("E0512", ["list"], None) if rule == "use after move" else VIOLATIONS[rule]
        hole = rng.randrange(len(program.holes))
        names = {}
        for key, kind in zip("ab", kinds):
            found = [name for name, each in program.holes[hole].items() if each == kind]
            names[key] = rng.choice(found) if found else None
        if None in names.values():
            continue
        text = rng.choice(texts) if texts else rng.choice(MOVES) + "\n" + rng.choice(USES)
        text, _, other = text.partition("|E0")
        if other and not text.endswith("|"):
            id_ = "E0" + other
        return rule, text.format(**names), hole, id_


def broken(seed):
    """A program with one violation: (description, text, id)."""
    rng = random.Random(seed)
    program = Program(seed, size=rng.randint(3, 8))
    if rng.random() < 0.8:
        rule, text, hole, id_ = hostViolation(rng, program)
        return f"{rule}: {text!r}", program.text(hole, text), id_
    id_, text = rng.choice(KERNEL_VIOLATIONS)
    name = rng.choice(["threads0", "threads1"])
    whole = program.text()
    at = whole.index("    y[thread.global_id] = ", whole.index(f"kernel {name}("))
    return f"in {name}: {text!r}", whole[:at] + indent(text) + "\n" + whole[at:], id_
