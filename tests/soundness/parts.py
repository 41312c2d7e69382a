"""Random host programs that read parts of values: fields, elements and slices of variables, references and, most of all, of values that no variable holds;
and that change parts of variables, move them away and fill them again. Python computes the same."""
import copy

PRELUDE = """struct Leaf {
    a: i32,
    list: Vec<i32>,
    pair: (i32, Vec<i32>),
    row: [i32; 2],
    tensor: Tensor<i32, [3]>,
}

struct Tree {
    leaf: Leaf,
    leaves: Vec<Leaf>,
    pair: (Leaf, i32),
}

kernel total_of(x: &Tensor<i32, [N]>) -> i32 {
    return sum(x)
}

impl Leaf {
    fn sum(&self) -> i32 {
        return self.a + total(&self.list)
    }
    fn tail(&self) -> &Vec<i32> {
        return &self.pair.1
    }
    fn with(self, a: i32) -> Leaf {
        return Leaf { a: a, list: self.list, pair: self.pair, row: self.row, tensor: self.tensor }
    }
}

fn leaf(n: i32) -> Leaf {
    return Leaf { a: n, list: vec![n, n + 1, n + 2], pair: (2 * n, vec![n, 5]), row: [n, 7], tensor: full(n) }
}

fn tree(n: i32) -> Tree {
    return Tree { leaf: leaf(n), leaves: vec![leaf(n + 1), leaf(n + 2)], pair: (leaf(n + 3), n) }
}

fn list(n: i32) -> Vec<i32> {
    return vec![n, 3, n]
}

fn leaves(n: i32) -> Vec<Leaf> {
    return vec![leaf(n), leaf(2 * n)]
}

fn both(n: i32) -> (Leaf, Vec<i32>) {
    return (leaf(n), list(n))
}

fn total(v: &Vec<i32>) -> i32 {
    return v.fold(0, |sum, x| sum + x)
}

fn last(t: &Tree) -> &Leaf {
    return &t.leaves[1]
}

fn list_of(l: &Leaf) -> &Vec<i32> {
    return &l.list
}

fn longer(a: &Vec<i32>, b: &Vec<i32>) -> &Vec<i32> {
    return if a.len() > b.len() { a } else { b }
}

fn next(n: &i32) -> i32 {
    return n + 1
}

fn append(v: &mut Vec<i32>, n: i32) {
    v.push(n)
}

fn grow(l: &mut Leaf, n: i32) -> i32 {
    l.a += n
    l.pair.1.push(n)
    l.row[1] = n
    let list = &mut l.list
    append(list, n)
    return l.a
}
"""


def leaf(n):
    return {"a": n, "list": [n, n + 1, n + 2], "pair": (2 * n, [n, 5]), "row": [n, 7], "tensor": [n, n, n]}


def tree(n):
    return {"leaf": leaf(n), "leaves": [leaf(n + 1), leaf(n + 2)], "pair": (leaf(n + 3), n)}


def a_list(n):
    return [n, 3, n]


class Parts:
    """`text` ends with status 0 if every part is what Python says."""

    CHECKED = True

    def __init__(self, rng):
        self.rng, self.leaves, self.trees, self.changing, lines = rng, [], [], [], []
        self.mayLend = True  # a reference to a variable would keep it from changing
        for number in range(16):
            lines.append(self.statement(f"x{number}"))
        self.text = PRELUDE + "\nfn main() {\n" + "".join(f"    {line}\n" for line in lines) + "}\n"

    def statement(self, name):
        kind = self.rng.randrange(10)
        if kind >= 6 and self.changing:
            return self.change(name)
        if kind >= 6:
            text, value = self.number(1)
            self.changing.append((name, tree(value)))
            return f"var {name} = tree({text})"
        if kind == 0:
            self.mayLend = False
            text, value = self.leaf(2)
            self.mayLend = True
            self.leaves.append((name, copy.deepcopy(value)))
            return f"let {name} = &{text}"
        if kind == 1:
            text, value = self.number(1)
            self.leaves.append((name, leaf(value)))
            return f"let {name} = leaf({text})"
        if kind == 2:
            text, value = self.number(1)
            self.trees.append((name, tree(value)))
            return f"let {name} = tree({text})"
        if kind == 3:
            text, value = self.list(3)
            return f"var {name} = 0\n    for each in {text} {{\n        {name} += each\n    }}\n    assert_eq({name}, {sum(value)})"
        text, value = self.number(4)
        return f"assert_eq({text}, {value})"

    def change(self, name):
        """Of a part of a variable. What it reads itself comes from others."""
        rng = self.rng
        here, value = rng.choice(self.changing)
        self.mayLend = False
        text, number = self.number(2)
        self.mayLend = True
        part, leaf_value = rng.choice([("leaf", value["leaf"]), ("pair.0", value["pair"][0])] + [(f"leaves[{i}]", each) for i, each in enumerate(value["leaves"])])
        kind = rng.randrange(8)
        if kind == 0:
            leaf_value["a"] += number
            return f"{here}.{part}.a += {text}"
        if kind == 1:
            at = rng.randrange(len(leaf_value["list"]))
            leaf_value["list"][at] = number
            return f"{here}.{part}.list[{at}] = {text}"
        if kind == 2:
            leaf_value["pair"][1].append(number)
            return f"append(&mut {here}.{part}.pair.1, {text})"
        if kind == 3:
            leaf_value["a"] += number
            for each in (leaf_value["pair"][1], leaf_value["list"]):
                each.append(number)
            leaf_value["row"][1] = number
            return f"assert_eq(grow(&mut {here}.{part}, {text}), {leaf_value['a']})"
        if kind == 4:  # moved away, and filled again
            self.leaves.append((name, copy.deepcopy(value["leaf"])))
            value["leaf"] = leaf(number)
            return f"let {name} = {here}.leaf\n    {here}.leaf = leaf({text})"
        if kind == 5:
            value["leaves"].append(leaf(number))
            return f"{here}.leaves.push(leaf({text}))"
        if kind == 6 and len(value["leaves"]) > 2:
            self.leaves.append((name, value["leaves"].pop()))
            return f"let {name} = {here}.leaves.pop()"
        value["pair"] = (leaf(number), number)
        return f"{here}.pair = (leaf({text}), {text})"

    def number(self, depth):
        rng = self.rng
        if depth == 0:
            value = rng.randrange(9)
            return str(value), value
        kind = rng.randrange(17)
        if kind < 4:
            left, a = self.number(depth - 1)
            right, b = self.number(depth - 1)
            choose = rng.random() < 0.5
            return [(f"({left} + {right})", a + b), (f"(if {str(choose).lower()} {{ {left} }} else {{ {right} }})", a if choose else b),
                    (f"next(&{left})", a + 1), (f"(match {left} {{ {a} => {right}, _ => -1 }})", b)][kind]
        if kind < 8:
            text, value = self.list(depth - 1)
            other, more = self.list(depth - 1)
            at = rng.randrange(len(value))
            return [(f"{text}[{at}]", value[at]), (f"total(&{text})", sum(value)), (f"({text}.len() as i32)", len(value)),
                    (f"longer(&{text}, &{other})[0]", (value if len(value) > len(more) else more)[0])][kind - 4]
        if kind < 15:
            text, value = self.leaf(depth - 1)
            at = rng.randrange(2)
            return [(f"{text}.a", value["a"]), (f"{text}.sum()", value["a"] + sum(value["list"])), (f"{text}.pair.0", value["pair"][0]),
                    (f"{text}.row[{at}]", value["row"][at]), (f"list_of(&{text})[1]", value["list"][1]), (f"{text}.tail()[0]", value["pair"][1][0]),
                    (f"total_of(&{text}.tensor[{at}..])", sum(value["tensor"][at:]))][kind - 8]
        text, value = self.tree(depth - 1)
        return [(f"last(&{text}).a", value["leaves"][1]["a"]), (f"{text}.pair.1", value["pair"][1])][kind - 15]

    def list(self, depth):
        rng = self.rng
        kind = rng.randrange(9) if depth else 0
        if kind < 4:
            text, value = self.number(max(depth - 1, 0))
            other, more = self.number(max(depth - 1, 0))
            return [(f"list({text})", a_list(value)), (f"both({text}).1", a_list(value)), (f"vec![{text}, {other}]", [value, more]),
                    (f"leaves({text})[1].list", leaf(2 * value)["list"])][kind]
        if kind < 6:
            text, value = self.leaf(depth - 1)
            return [(f"{text}.list", value["list"]), (f"{text}.pair.1", value["pair"][1])][kind - 4]
        text, value = self.list(depth - 1)
        at = rng.randrange(len(value))
        return [(f"{text}[{at}..]", value[at:]), (f"{text}.map(|x| x + 1)", [x + 1 for x in value]), (f"(&{text})", value)][kind - 6]

    def leaf(self, depth):
        rng = self.rng
        if self.leaves and rng.random() < 0.25:
            return rng.choice(self.leaves)
        if self.mayLend and self.changing and rng.random() < 0.25:
            here, value = rng.choice(self.changing)
            at = rng.randrange(len(value["leaves"]))
            return f"{here}.leaves[{at}]", value["leaves"][at]
        kind = rng.randrange(9) if depth else 0
        if kind < 4:
            text, value = self.number(max(depth - 1, 0))
            other, more = self.number(max(depth - 1, 0))
            at = rng.randrange(2)
            return [(f"leaf({text})", leaf(value)), (f"leaves({text})[{at}]", leaf((1 + at) * value)), (f"both({text}).0", leaf(value)),
                    (f"leaf({text}).with({other})", leaf(value) | {"a": more})][kind]
        if kind == 4:
            text, value = self.leaf(depth - 1)
            return f"(&{text})", value
        text, value = self.tree(depth - 1)
        at = rng.randrange(2)
        return [(f"{text}.leaf", value["leaf"]), (f"{text}.leaves[{at}]", value["leaves"][at]), (f"{text}.pair.0", value["pair"][0]),
                (f"last(&{text})", value["leaves"][1])][kind - 5]

    def tree(self, depth):
        if self.trees and self.rng.random() < 0.3:
            return self.rng.choice(self.trees)
        if self.mayLend and self.changing and self.rng.random() < 0.3:
            return self.rng.choice(self.changing)
        text, value = self.number(max(depth - 1, 0))
        return f"tree({text})", tree(value)
