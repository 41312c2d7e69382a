"""Tile code on every backend, and what the generated vx and the report say about it."""
import pathlib
import re

import pytest

HERE = pathlib.Path(__file__).parent
FILE = HERE / "tile_code.vx"


@pytest.mark.parametrize("backend", [("--device", "cpu"), ("--device", "interpreter"), ("--check",)], ids=lambda words: words[-1])
def test_forms_of_tile_code_compute_what_they_say(backend, vortex):
    assert vortex("run", FILE, *backend).stdout == "tile code: correct\n"


def waits(vortex, path, kernel):
    text = vortex("build", path, "--emit=vx", "--kernel", kernel).stdout
    return [int(number) for number in re.findall(r"vx\.stage_wait (\d+)", text)]


def test_a_double_buffer_leaves_the_next_copies_in_flight(vortex, root):
    assert waits(vortex, root / "examples/memory_model/pipelined_matmul.vx", "pipelined_matmul") == [1]


def test_a_single_buffer_waits_for_everything(vortex, root):
    assert waits(vortex, root / "examples/memory_model/matmul.vx", "matmul") == [0]


def test_a_prologue_of_one_group_limits_a_deeper_ring(vortex):
    assert waits(vortex, FILE, "ring") == [1]


GUARDS = """\
kernel k(x: &Tensor<f32, [N]>, i: &Tensor<u32, [M]>, y: &mut Tensor<f32, [M]>) {
    let at = i[thread.global_id]
    y[thread.global_id] = x[at]
}

kernel unchecked(x: &Tensor<f32, [N]>, i: &Tensor<u32, [M]>, y: &mut Tensor<f32, [M]>) {
    let at = i[thread.global_id]
    @unchecked(bounds)
    y[thread.global_id] = x[at]
}

@tile(m = 32)
kernel edge(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> {
    return x[block_m..+32] * 2.0
}

@tile(m = 32)
kernel whole(x: &Tensor<f32, [64]>) -> Tensor<f32, [64]> {
    return x[block_m..+32] * 2.0
}
"""


def test_the_report_lists_guards_and_what_is_unchecked(vortex, tmp_path):
    path = tmp_path / "guards.vx"
    path.write_text(GUARDS)
    report = vortex("build", path, "--output", tmp_path / "out").stdout
    notes = dict(re.findall(r"^(\w+):\n((?:  .*\n)*)", report, re.M))
    assert f"guard {path}:3:27: load of `x`" in notes["k"]
    assert f"unchecked {path}:9:27: load of `x`" in notes["unchecked"] and "  - guard" not in notes["unchecked"]
    assert f"guard {path}:14:12: slice of `x`" in notes["edge"]
    assert "- guard" not in notes["whole"]
