"""Kernels that take structs: the host program checks every value."""
import pathlib

import pytest

FILE = pathlib.Path(__file__).parent / "struct_parameters.vx"


@pytest.mark.parametrize("backend", [("--device", "cpu"), ("--device", "interpreter"), ("--check",)], ids=lambda words: words[-1])
def test_fields_reach_the_kernel_in_order(backend, vortex):
    assert vortex("run", FILE, *backend).stdout == "struct parameters: correct\n"


@pytest.mark.parametrize("kernel", ["apply", "tiled"])
def test_kernels_of_structs_compile_for_gpus(kernel, vortex, tmp_path):
    done = vortex("build", FILE, "--target", "sm_90", "--kernel", kernel, "--dim", "W=5", "-o", tmp_path)
    assert "sm_90" in done.stdout
