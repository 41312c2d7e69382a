"""Generated programs, race-free by construction: the interpreter with every check on, the interpreter and the device compute what NumPy does.
VORTEX_SOUNDNESS_SECONDS=600 runs each test that long, with new seeds (printed by what fails); VORTEX_SOUNDNESS_SEED runs one seed."""
import os
import random
import subprocess
import time

import pytest

import cases
import grids
import jumps
import nests
import parts
import products
import ranks
import structs
import threads
import tiles
import whole
from ownership import Program

SECONDS = float(os.environ.get("VORTEX_SOUNDNESS_SECONDS", "0"))
ONE = os.environ.get("VORTEX_SOUNDNESS_SEED")
TOGETHER = 8  # programs in one run of the driver
KINDS = {"threads": (threads.Kernel, 24), "structs": (structs.Kernel, 16), "whole tensors": (whole.Whole, 16), "ranks": (ranks.Ranks, 16), "nests": (nests.Nests, 16), "tiles": (tiles.Kernel, 24),
         "columns": (tiles.Columns, 16), "grids": (grids.Kernel, 24), "products": (products.Products, 24)}


def seeds(fixed):
    """The fixed ones, then as many more as the time allows."""
    if ONE:
        yield int(ONE)
        return
    start = time.monotonic()
    yield from range(1, fixed + 1)
    rng = random.SystemRandom()
    while time.monotonic() - start < SECONDS:
        yield rng.randrange(2**31)


def groups(seeds, size):
    group = []
    for seed in seeds:
        group.append(seed)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def runs(device):
    """Words for the driver. Long runs also use other orders of blocks and, without its vectors, this processor."""
    more = [["--device", "interpreter", "--seed", "7"]] + [["--device", "cpu", "--cpu", "x86-64-v2"]] * (device == "cpu")
    return [["--device", device], ["--check"]] + more * (SECONDS > 0)


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_compute_what_numpy_does(kind, vortex, tmp_path, device):
    make, count = KINDS[kind]
    wrong, total = [], 0
    for group in groups(seeds(count), TOGETHER):
        made = [make(random.Random(seed), f"c{seed}", seed).case for seed in group]
        for arguments in runs(device):
            wrong += cases.run(vortex, made, tmp_path / f"{made[0].name}_{''.join(filter(str.isalnum, ''.join(arguments)))}", arguments)
        total += len(group)
    assert not wrong, f"{len(wrong)} wrong of {total} programs\n" + "\n\n".join(wrong[:10])


class WithoutWhatMetalLacks(random.Random):
    """No f64, no atomics of 64 bits or with an order."""

    def choice(self, options):
        if options is threads.COUNTED:
            options = ["i32", "u32"]
        return super().choice([each for each in options if each not in ("f64", ", .acq_rel")])


@pytest.mark.parametrize("kind, count", [("threads", 16), ("structs", 8), ("grids", 8), ("tiles", 8), ("columns", 8), ("ranks", 8), ("whole tensors", 8)])
def test_printed_metal_computes_what_numpy_does(kind, count, program, metal_lacks, tmp_path):
    """Metal is printed from the code that GPUs run: a judge of their tiles, memory and barriers where there is no GPU."""

    def vortex(*arguments, status):
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        return subprocess.run([str(program), *map(str, arguments)], env=environment, capture_output=True, text=True)

    make, found, right = KINDS[kind][0], [], 0
    for seed in seeds(count):
        wrong = cases.run(vortex, [make(WithoutWhatMetalLacks(seed), f"c{seed}", seed).case], tmp_path / f"m{seed}", ["--device", "metal3.1"])
        right += not wrong
        found += [text for text in wrong if not metal_lacks.search(text)]
    assert right and not found, f"{len(found)} wrong, {right} right\n" + "\n\n".join(found[:10])


def test_host_programs_print_what_python_computes(vortex, tmp_path, device):
    for seed in seeds(8):
        print("seed", seed)
        program = Program(seed)
        path = tmp_path / f"sound{seed}.vx"
        path.write_text(program.text())
        expected = [str(line) for line in program.expected()]
        for arguments in runs(device):
            printed = vortex("run", path, *arguments).stdout.split()
            assert printed == expected, f"seed {seed}: {' '.join(arguments)} differs, see {path}"


@pytest.mark.parametrize("make", [parts.Parts, jumps.Jumps])
def test_programs_agree_with_what_they_state(make, vortex, tmp_path, device):
    for seed in seeds(12):
        path = tmp_path / f"{make.__name__}{seed}.vx"
        path.write_text(make(random.Random(seed)).text)
        for arguments in runs(device) if make.CHECKED else [["--device", device], ["--device", "interpreter"]]:
            done = vortex("run", path, *arguments)
            assert done.returncode == 0, f"seed {seed}: {' '.join(arguments)}, see {path}: {done.stderr}"
