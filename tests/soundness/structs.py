"""Random kernels over tensors of structs, stored field by field or (`@layout(aos)`) struct by struct: nested structs, arrays and tuples as
elements, in global, shared and local memory; every field of every struct is compared, also of those that were not lent."""
import numpy

import threads
from expressions import Source
from scalars import FLOATS, INTEGERS, Float, choose, samples
from threads import active, zeros
from tree import Node, block, braces

SCALARS = list(INTEGERS) + list(FLOATS) + ["bool"]


class Struct:
    """A random struct type: `fields` are (path, kind); `literal(values)` is the text of one."""

    def __init__(self, rng, name):
        self.name = name
        kinds = [rng.choice(SCALARS) for _ in range(rng.randint(1, 3))]
        self.inner = [rng.choice(SCALARS) for _ in range(rng.randint(0, 2))]
        self.array = (rng.choice(SCALARS), rng.randint(0, 3))
        self.pair = [rng.choice(SCALARS) for _ in range(2)] if rng.random() < 0.4 else []
        self.kinds = kinds
        self.fields = [(f".f{i}", kind) for i, kind in enumerate(kinds)] + [(f".inner.g{i}", kind) for i, kind in enumerate(self.inner)]
        self.fields += [(f".list[{i}]", self.array[0]) for i in range(self.array[1])] + [(f".pair.{i}", kind) for i, kind in enumerate(self.pair)]
        layout = rng.choice(["", "@layout(aos)\n"])
        lines = [f"f{i}: {kind}," for i, kind in enumerate(kinds)]
        parts = []
        if self.inner:
            lines.insert(rng.randint(0, len(lines)), f"inner: {name}In,")
            parts.append(f"struct {name}In {{\n" + "\n".join(f"    g{i}: {kind}," for i, kind in enumerate(self.inner)) + "\n}\n")
        if self.array[1]:
            lines.insert(rng.randint(0, len(lines)), f"list: [{self.array[0]}; {self.array[1]}],")
        if self.pair:
            lines.insert(rng.randint(0, len(lines)), f"pair: ({self.pair[0]}, {self.pair[1]}),")
        self.text = "".join(parts) + f"{layout}struct {name} {{\n" + "\n".join("    " + line for line in lines) + "\n}\n"

    def literal(self, values):
        values = dict(values)
        parts = [f"f{i}: {values[f'.f{i}']}" for i in range(len(self.kinds))]
        if self.inner:
            parts.append(f"inner: {self.name}In {{ " + ", ".join(f"g{i}: {values[f'.inner.g{i}']}" for i in range(len(self.inner))) + " }")
        if self.array[1]:
            parts.append("list: [" + ", ".join(values[f".list[{i}]"] for i in range(self.array[1])) + "]")
        if self.pair:
            parts.append(f"pair: ({values['.pair.0']}, {values['.pair.1']})")
        return f"{self.name} {{ {', '.join(parts)} }}"


def fieldName(path):
    return path.strip(".").replace(".", "_").replace("[", "_").replace("]", "")


class StructThreads(threads.Threads):
    def statement(self, depth, uniform):
        if uniform and self.rng.random() < 0.25:
            return self.structPhase(depth)
        return super().statement(depth, uniform)

    def structPhase(self, depth):
        """Each thread fills its struct of a shared tile, whole or field by field; all read fields of any."""
        struct, count, rng = self.struct, self.shape[1], self.rng
        tile = self.name("structs")
        values = [(path, kind, *self.of(kind, 1)) for path, kind in struct.fields]
        whole = struct.literal({path: text for path, _, text, _ in values})
        writes = f"{tile}[l] = {whole}" if rng.random() < 0.6 else "\n".join(f"{tile}[l]{path} = {text}" for path, _, text, _ in values)
        sources = [Source(tile, kind, count, lambda env, key=(tile, path): env[key], functions=False, field=path) for path, kind in struct.fields]
        self.sources += sources
        body = block(self.statement(max(depth - 1, 0), True) for _ in range(rng.randint(1, 2)))
        self.sources = [source for source in self.sources if source not in sources]

        def run(env):
            new = {path: value(env) for path, _, _, value in values}
            for path, kind, _, _ in values:
                start = env.get((tile, path), zeros(kind, self.shape))
                env[tile, path] = choose(active(env), new[path], start)
            body.run(env)

        lines = [f"let {tile}: Tensor<{struct.name}, [{count}]> @shared", writes, "sync_block()", body.text, "sync_block()"]
        return Node(braces("", "\n".join(lines)), run)


class Kernel(threads.Kernel):
    mayInfer = False

    def makeCode(self):
        return StructThreads(self.rng, self.functions, (self.blocks, self.threads))

    def inputs(self):
        super().inputs()
        rng = self.rng
        self.struct = self.code.struct = Struct(rng, f"{self.case.name}_S")
        self.functions.texts.insert(0, self.struct.text)
        self.lendStructs("s", rng.randint(1, 20))
        self.mutable = self.lendStructs("t", self.count, True)
        for index, (path, kind) in enumerate(self.struct.fields):
            name, zero = f"p{20 + index}", "false" if kind == "bool" else f"0 as {kind}"
            self.lines.append(f"var {name} = " + (f"if i < N {{ t[i]{path} }} else {{ {zero} }}" if self.ragged else f"t[i]{path}"))
            lanes = self.perThread(self.mutable[path][2], kind)
            self.prepare.append(lambda env, name=name, lanes=lanes: env.__setitem__(name, lanes))
            self.code.variables[name] = kind
        self.ownStructs()

    def lendStructs(self, name, count, mutable=False):
        """{path: (file, whole array, values, place)} of a tensor of `count` structs, or a part of one."""
        rng, case, struct, result = self.rng, self.case, self.struct, {}
        before, after = (rng.randint(0, 5), rng.randint(0, 5)) if rng.random() < 0.5 else (0, 0)
        total = before + count + after
        for path, kind in struct.fields:
            file = f"{name}_{fieldName(path)}"
            whole = samples(rng, kind, (total,))
            case.give(file, whole, kind, f"[{total}]")
            case.body += f"let {file}_list = {file}.to_host()\n"
            result[path] = (file, whole, whole[before:before + count], slice(before, before + count))
        each = struct.literal({path: f"{name}_{fieldName(path)}_list[k]" for path, _ in struct.fields})
        case.body += f"var {name}_all: Vec<{struct.name}> = vec![]\nfor k in 0..{total} {{\n    {name}_all.push({each})\n}}\nvar {name} = Tensor.from_host({name}_all)\n"
        view = name if total == count else f"{name}[{before}..{before + count}]"
        self.parameters.append(f"{name}: &{'mut ' if mutable else ''}Tensor<{struct.name}, [{'N' if mutable else 'Z'}]>")
        self.arguments.append(f"&mut {view}" if mutable else f"&{view}")
        if not mutable:
            for path, kind in struct.fields:
                rows = numpy.broadcast_to(result[path][2], (self.blocks, count))
                rows = Float.exact(rows, kind) if kind in FLOATS else rows
                self.code.sources.append(Source(name, kind, count, lambda env, rows=rows: rows, functions=False, field=path))
        return result

    def ownStructs(self):
        """An array of structs of each thread."""
        if self.rng.random() < 0.5:
            return
        size, struct = self.rng.randint(1, 3), self.struct
        self.lines.append(f"let mine: Tensor<{struct.name}, [{size}]> @local")
        zero = struct.literal({path: "false" if kind == "bool" else f"0 as {kind}" for path, kind in struct.fields})
        self.lines += [f"mine[{i}] = {zero}" for i in range(size)]
        for path, kind in struct.fields:
            key = ("mine", path)
            self.prepare.append(lambda env, key=key, kind=kind: env.__setitem__(key, zeros(kind, (self.blocks, self.threads, size))))
            self.code.sources.append(Source("mine", kind, size, lambda env, key=key: env[key], functions=False, own=True, field=path))

    def more(self):
        """Stores of whole structs, of fields, or by a function that is lent the element."""
        struct, rng = self.struct, self.rng
        names = {path: f"p{20 + index}" for index, (path, _) in enumerate(struct.fields)}
        form = rng.randrange(4)
        if form == 0:
            text = f"t[i] = {struct.literal(names)}"
        elif form == 1:
            text = "\n".join(f"t[i]{path} = {name}" for path, name in names.items())
        elif form == 2:
            text = "var whole = t[i]\n" + "\n".join(f"whole{path} = {name}" for path, name in names.items()) + "\nt[i] = whole"
        else:
            arguments = ", ".join(f"v{index}: {kind}" for index, (_, kind) in enumerate(struct.fields))
            lines = "\n".join(f"    q{path} = v{index}" for index, (path, _) in enumerate(struct.fields))
            self.functions.texts.append(f"fn {struct.name}_set(q: &mut {struct.name}, {arguments}) {{\n{lines}\n}}")
            text = f"{struct.name}_set(&mut t[i], {', '.join(names.values())})"
        return [braces("if i < N", text) if self.ragged else text]

    def also(self, env, gone):
        for index, (path, kind) in enumerate(self.struct.fields):
            file, whole, values, place = self.mutable[path]
            new = self.flat(choose(~gone, env[f"p{20 + index}"], self.perThread(values, kind)))
            expected = Float.exact(whole, kind) if kind in FLOATS else whole.copy()
            if kind in FLOATS:
                expected.value[place], expected.error[place] = new.value, new.error
            else:
                expected[place] = new
            if "[" in path or "pair" in path:  # no tensors of their own
                self.case.body += f"var {file}_back: Vec<{kind}> = vec![]\nfor each in t.to_host() {{\n    {file}_back.push(each{path})\n}}\n"
                self.case.take(f"{file}_out", f"{file}_back", expected, kind)
            else:
                self.case.take(f"{file}_out", f"t{path}", expected, kind)
