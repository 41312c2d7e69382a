"""Generated programs with known results. Several run in one process of the driver; where that fails, each runs alone."""
import re
import shutil

import numpy

from scalars import Float
from tree import indent

STORED = {"bool": numpy.bool_, "i8": numpy.int8, "i16": numpy.int16, "i32": numpy.int32, "i64": numpy.int64, "u8": numpy.uint8,
          "u16": numpy.uint16, "u32": numpy.uint32, "u64": numpy.uint64, "usize": numpy.uint64, "f16": numpy.float16,
          "bf16": numpy.uint16, "f32": numpy.float32, "f64": numpy.float64}


# What docs/limits.md says of tiles of unbounded size on GPUs; the CPU compiles everything.
REFUSAL = re.compile("the GPU back end does not support a (tile of this size|matrix product whose extents have no bound)")


def stored(values, kind):
    """The array that `load_npy` reads as a tensor of the kind."""
    if kind == "bf16":
        return (numpy.asarray(values, numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16)
    return numpy.asarray(values).astype(STORED[kind])


def loaded(array, kind):
    return (array.astype(numpy.uint32) << 16).view(numpy.float32).astype(numpy.float64) if kind == "bf16" else array


class Case:
    """Names of items begin with `name`; `body` is of a function with a parameter `dir`, the folder of inputs and outputs."""

    def __init__(self, name, seed):
        self.name, self.seed = name, seed
        self.items, self.body, self.inputs, self.outputs = "", "", {}, {}

    def path(self, name):
        return f'format("{{}}/{self.name}_{name}.npy", dir)'

    def give(self, name, values, kind, shape):
        """A tensor variable with these values."""
        self.inputs[name] = stored(values, kind)
        self.body += f"var {name}: Tensor<{kind}, {shape}> = load_npy({self.path(name)})\n"

    def take(self, name, tensor, values, kind):
        """Saves the tensor; `values` are an array that must be met exactly, or a Float."""
        self.outputs[name] = (values, kind)
        self.body += f"save_npy({self.path(name)}, {tensor})\n"

    def text(self):
        return f"{self.items}\nfn {self.name}(dir: String) {{\n{indent(self.body.rstrip())}\n}}\n"

    def check(self, folder):
        for name, (values, kind) in self.outputs.items():
            got = loaded(numpy.load(folder / f"{self.name}_{name}.npy"), kind)
            if isinstance(values, Float):
                got = got.astype(numpy.float64)
                wanted = values.value
                with numpy.errstate(invalid="ignore"):
                    bad = ~((numpy.abs(got - wanted) <= values.error + values.rounded().error) | (got == wanted) | (numpy.isnan(got) & numpy.isnan(wanted)))
            else:
                wanted = numpy.asarray(values).astype(STORED[kind]) if kind != "bf16" else values
                bad = got != wanted
            if got.shape != wanted.shape:
                return f"{name} has shape {got.shape}, not {wanted.shape}"
            if bad.any():
                at = tuple(int(i) for i in numpy.argwhere(bad)[0])
                allowed = f" ± {values.error[at]:.3g}" if isinstance(values, Float) else ""
                return f"{name}{list(at)} is {got[at]}, not {wanted[at]}{allowed} ({int(bad.sum())} of {bad.size} differ)"
        return None


def program(cases):
    calls = "\n".join(f"    {case.name}(args()[0])" for case in cases)
    return "\n".join(case.text() for case in cases) + f"\nfn main() {{\n{calls}\n}}\n"


def run(vortex, cases, folder, arguments):
    """What is wrong, a text for each case that fails."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for case in cases:
        for name, array in case.inputs.items():
            numpy.save(folder / f"{case.name}_{name}.npy", array)
    path = folder.parent / f"{cases[0].name}_{len(cases)}.vx"
    path.write_text(program(cases))
    done = vortex("run", path, *arguments, "--", folder, status=None)
    if len(cases) == 1 and REFUSAL.search(done.stderr):
        return []
    if done.returncode and len(cases) > 1:
        return [text for case in cases for text in run(vortex, [case], folder.parent / case.name, arguments)]
    if done.returncode:
        return [f"seed {cases[0].seed}: {' '.join(arguments)}: status {done.returncode}, see {path}\n{done.stdout[-500:]}\n{done.stderr[-3000:]}"]
    found = [(case, case.check(folder)) for case in cases]
    return [f"seed {case.seed}: {' '.join(arguments)}: {text}, see {path}" for case, text in found if text]
