"""Generated programs compile for NVIDIA GPUs, and what comes out assembles where ptxas is installed. VORTEX_SOUNDNESS_SECONDS=600 runs each
kind that long, VORTEX_SOUNDNESS_SEED=7 one seed."""
import random
import shutil

import pytest

import cases
import grids
import jumps
import products
import ranks
import structs
import threads
import tiles
import whole
from test_sound_programs import seeds

KINDS = {"threads": (threads.Kernel, 6), "structs": (structs.Kernel, 4), "whole tensors": (whole.Whole, 4), "columns": (tiles.Columns, 4),
         "grids": (grids.Kernel, 6), "ranks": (ranks.Ranks, 3), "products": (products.Products, 2)}


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_compile_for_gpus(kind, vortex, tmp_path):
    make, count = KINDS[kind]
    wrong = []
    for seed in seeds(count):
        case = make(random.Random(seed), f"c{seed}", seed).case
        path, out = tmp_path / f"{case.name}.vx", tmp_path / "out"
        path.write_text(cases.program([case]))
        done = vortex("build", path, "--target", "sm_90", "--output", out, status=None)
        if done.returncode and not cases.REFUSAL.search(done.stderr):
            wrong.append(f"seed {seed}: status {done.returncode}, see {path}\n{done.stderr[:2000]}")
        shutil.rmtree(out, ignore_errors=True)
    assert not wrong, f"{len(wrong)} wrong\n" + "\n\n".join(wrong[:10])


def test_kernels_of_many_exits_compile_for_gpus(vortex, tmp_path):
    for seed in seeds(2):
        path = tmp_path / f"jumps{seed}.vx"
        path.write_text(jumps.Jumps(random.Random(seed)).text)
        vortex("build", path, "--target", "sm_90", "--output", tmp_path / "out")
