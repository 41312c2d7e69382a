"""Random kernels whose grid follows from their tensors, of one to three dimensions, empty ones too: elements and neighbours in, results
returned by each thread, in tuples, written to named results and `&mut` tensors, or combined from blocks."""
import numpy

from cases import Case
from expressions import Expressions
from functions import Functions
from scalars import FLOATS, INTEGERS, Float, samples
from threads import COUNTED
from tree import braces

AXES = "xyz"
REDUCE = {"add": (numpy.add, 0), "max": (numpy.maximum, "min"), "min": (numpy.minimum, "max"), "and": (numpy.bitwise_and, "all"),
          "or": (numpy.bitwise_or, 0)}


class Kernel:
    def __init__(self, rng, name, seed):
        self.rng, self.case = rng, Case(name, seed)
        if rng.random() < 0.25:
            self.combined()
        else:
            self.elements()

    def elements(self):
        rng, case = self.rng, self.case
        rank = rng.randint(1, 3)
        extents = [rng.choice([0, 1, 2, 5, 31, 32, 33, 65, 100, rng.randint(1, [2000, 70, 20][rank - 1])]) for _ in range(rank)]
        if rank == 3:
            extents = [min(extent, 20) for extent in extents]
        total = int(numpy.prod(extents))
        functions = Functions(rng, case.name)
        code = Expressions(rng, functions, (1, total))
        names = ["N", "M", "L"][:rank][::-1]
        axes = [f"thread.global_id.{AXES[rank - 1 - dim]}" for dim in range(rank)]
        place = "thread.global_id" if rank == 1 else ", ".join(axes)
        env, lines, parameters, arguments = {}, [], [], []
        grids = numpy.meshgrid(*[numpy.arange(extent, dtype=numpy.uint64) for extent in extents], indexing="ij")
        for dim in range(rank):
            position = f"g{AXES[rank - 1 - dim]}"
            lines.append(f"let {position} = {axes[dim] if rank > 1 else place}")
            env[position] = grids[dim].reshape(1, total)
            code.variables[position] = "usize"
        shape = f"[{', '.join(names)}]"
        for index in range(rng.randint(2, 4)):
            kind = rng.choice(list(INTEGERS) + list(FLOATS)) if index else rng.choice(list(INTEGERS))
            values = samples(rng, kind, tuple(extents))
            case.give(f"x{index}", values, kind, str(extents))
            parameters.append(f"x{index}: &Tensor<{kind}, {shape}>")
            arguments.append(f"&x{index}")
            lines.append(f"let e{index} = x{index}[{place}]")
            env[f"e{index}"] = self.lanes(values, kind)
            code.variables[f"e{index}"] = kind
            if kind in FLOATS:
                code.exact[f"e{index}"] = kind
            if rng.random() < 0.6:
                self.neighbour(code, env, lines, index, kind, values, rank)
        results = [(rng.choice(list(INTEGERS) + list(FLOATS) + ["bool"])) for _ in range(rng.randint(1, 3))]
        made = [code.of(kind) for kind in results]
        with numpy.errstate(all="ignore"):
            values = [value(env) for _, value in made]
        self.results(rng.randrange(3), results, made, values, shape, place, extents, functions, parameters, arguments, lines)

    @staticmethod
    def lanes(values, kind):
        flat = values.reshape(1, -1)
        return Float.exact(flat, kind) if kind in FLOATS else flat

    def neighbour(self, code, env, lines, index, kind, values, rank):
        """One element before or after along one dimension, where there is one."""
        rng = self.rng
        dim, after = rng.randrange(rank), rng.random() < 0.5
        name, positions = f"n{index}", [f"g{AXES[rank - 1 - each]}" for each in range(rank)]
        moved = ", ".join(f"{each} {'+' if after else '-'} 1" if each == positions[dim] else each for each in positions)
        test = f"{positions[dim]} + 1 < x{index}.shape[{dim}]" if after else f"{positions[dim]} > 0"
        lines.append(f"let {name} = if {test} {{ x{index}[{moved}] }} else {{ e{index} }}")
        other = numpy.roll(values, -1 if after else 1, axis=dim)
        edge = numpy.zeros(values.shape, bool)
        if values.size:
            edge[tuple(slice(None) if each != dim else (-1 if after else 0) for each in range(rank))] = True
        env[name] = self.lanes(numpy.where(edge, values, other), kind)
        code.variables[name] = kind
        if kind in FLOATS:
            code.exact[name] = kind

    def results(self, form, kinds, made, values, shape, place, extents, functions, parameters, arguments, lines):
        case, texts = self.case, [text for text, _ in made]
        types = [f"Tensor<{kind}, {shape}>" for kind in kinds]
        names = [f"r{index}" for index in range(len(kinds))]
        if form == 0:
            lines.append(f"return {texts[0]}" if len(kinds) == 1 else f"return ({', '.join(texts)})")
        else:
            for name, type_, text in zip(names, types, texts):
                if form == 1:
                    lines.append(f"var {name}: {type_}")
                lines.append(f"{name}[{place}] = {text}")
            if form == 1:
                lines.append(f"return {names[0]}" if len(kinds) == 1 else f"return ({', '.join(names)})")
        result = "" if form == 2 else f" -> {types[0]}" if len(kinds) == 1 else f" -> ({', '.join(types)})"
        if form == 2:
            for name, type_ in zip(names, types):
                parameters.append(f"{name}: &mut {type_}")
                arguments.append(f"&mut {name}")
            for name, kind in zip(names, kinds):
                case.body += f"var {name}: Tensor<{kind}, {extents}> = {'full(false)' if kind == 'bool' else 'zeros()'}\n"
        head = f"@unchecked(overflow)\nkernel {case.name}_k(\n    " + ",\n    ".join(parameters) + "\n)" + result
        case.items = "\n".join(functions.texts) + "\n" + braces(head, "\n".join(lines)) + "\n"
        call = f"{case.name}_k({', '.join(arguments)})\n"
        case.body += call if form == 2 else f"let {names[0] if len(kinds) == 1 else '(' + ', '.join(names) + ')'} = {call}"
        for name, kind, value in zip(names, kinds, values):
            if isinstance(value, Float):
                case.take(name, name, Float(value.value.reshape(extents), value.error.reshape(extents), kind), kind)
            else:
                case.take(name, name, value.reshape(extents), kind)

    def combined(self):
        """`reduce(op)`: a tree in each block, then the blocks."""
        rng, case = self.rng, self.case
        kind, threads = rng.choice(COUNTED), rng.choice([32, 64, 128])
        op, (run, neutral) = rng.choice(sorted(REDUCE.items()))
        values = samples(rng, kind, (rng.choice([1, 7, threads, rng.randint(1, 3000)]),))
        limits = numpy.iinfo(INTEGERS[kind])
        start = {"min": limits.min, "max": limits.max, "all": limits.max if kind.startswith("u") else -1}.get(neutral, 0)
        text = f"(-{-start - 1}{kind} - 1{kind})" if start < -1 else f"(-1{kind})" if start == -1 else f"{start}{kind}"
        apply = {"add": "{0} + {1}", "max": "max({0}, {1})", "min": "min({0}, {1})", "and": "{0} & {1}", "or": "{0} | {1}"}[op]
        step = apply.format("tile[l]", "tile[l + s]")
        case.give("x", values, kind, f"[{len(values)}]")
        case.items = f"""@unchecked(overflow)
@launch(block = {threads})
kernel {case.name}_k(x: &Tensor<{kind}, [N]>) -> {kind} reduce({op}) {{
    let l = thread.local_id
    let tile: Tensor<{kind}, [{threads}]> @shared
    tile[l] = if thread.global_id < N {{ x[thread.global_id] }} else {{ {text} }}
    sync_block()
    for s in [{threads // 2}, {threads // 4}, ..., 1] {{
        if l < s {{
            tile[l] = {step}
        }}
        sync_block()
    }}
    return tile[0]
}}
"""
        case.body += f"let r = vec![{case.name}_k(&x)]\n"
        with numpy.errstate(all="ignore"):
            case.take("r", "r", run.reduce(values, dtype=INTEGERS[kind]).reshape(1), kind)
