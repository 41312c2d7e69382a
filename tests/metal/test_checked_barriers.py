"""What --check says of barriers in Metal source: a thread that comes to one after it missed another, and memory that the flags of a barrier leave out."""
import json

import pytest

HEAD = """#include <metal_stdlib>
using namespace metal;
#define SYNC threadgroup_barrier(mem_flags::mem_threadgroup)
kernel void k(device float* out [[buffer(0)]], device float* x [[buffer(1)]], uint i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]]) {
threadgroup float t[8];
t[l] = x[i];
"""
# the statements, one a line; the line with the barrier that is reached, and the one of the barrier that was missed: none
BARRIERS = {
    "one_branch": (["if (l < 4)", "  SYNC;", "t[l] = 2;", "SYNC;", "out[i] = t[l ^ 1];"], 4, 2),
    "both_branches": (["if (l < 4)", "  SYNC;", "else", "  SYNC;", "out[i] = t[l];"], 4, 2),
    "a_condition_on_data": (["if (x[i] > 3)", "  SYNC;", "SYNC;", "out[i] = t[l];"], 3, 2),
    "the_else_branch_of_an_inner_condition": (["if (x[0] > -1) {", "  if (l & 1) { t[l] = 1; } else", "    SYNC;", "}", "SYNC;", "out[i] = t[l];"], 5, 3),
    "continue": (["for (int r = 0; r < 2; ++r) {", "  if (l == 3 && r == 0) continue;", "  SYNC;", "}", "out[i] = t[l];"], 3, 3),
    "a_break_and_another_behind_the_loop": (["for (int r = 0; r < 3; ++r) {", "  if (r == int(l)) break;", "  SYNC;", "}", "SYNC;", "out[i] = t[l];"], 5, 3),
    "rounds_of_a_thread": (["for (uint r = 0; r < l; ++r)", "  SYNC;", "SYNC;", "out[i] = t[l];"], 3, 2),
    "rounds_of_a_thread_that_are_one_at_least": (["uint r = 0;", "do {", "  SYNC;", "} while (++r < l);", "SYNC;", "out[i] = t[l];"], 5, 3),
    "a_function": (["auto meet = [] { SYNC; };", "if (l == 2) meet();", "meet();", "out[i] = t[l];"], 1, 1),
    "an_early_exit": (["if (l > 5) return;", "SYNC;", "out[i] = t[l ^ 1];", "SYNC;"], None, None),
    "an_exit_in_a_loop": (["for (int r = 0; r < 4; ++r) {", "  if (r > int(l)) { out[i] = r; return; }", "  SYNC;", "}", "out[i] = 9;"], None, None),
    "a_break_and_none_behind": (["for (int r = 0; r < 3; ++r) {", "  if (r == int(l)) break;", "  SYNC;", "}", "out[i] = t[l];"], None, None),
    "a_condition_that_is_alike_in_fact": (["if (x[i] > -1)", "  SYNC;", "else", "  SYNC;", "SYNC;", "out[i] = t[l ^ 1];"], None, None),
    "a_condition_that_nobody_meets": (["if (x[i] > 99)", "  SYNC;", "SYNC;", "out[i] = t[l ^ 1];"], None, None),
    "rounds_that_are_alike": (["for (int r = 0; r < int(x[0]) + 2; ++r) {", "  SYNC;", "  SYNC;", "}", "out[i] = t[l ^ 1];"], None, None),
    "a_threadgroup_that_skips_all": (["if (i < 8)", "  SYNC;", "SYNC;", "out[i] = t[l ^ 1];"], None, None),
}


def launch(vortex, path, body, *options, status=0):
    path.write_text(HEAD + "\n".join(body) + "\n}\n")
    done = vortex("--json", "run", path, "--grid", 16, "--block", 8, "--buffer", "0=f32[16]", "--buffer", "1=f32:" + ",".join(map(str, range(16))), *options, status=status)
    return json.loads(done.stderr)[0] if status else None


@pytest.mark.parametrize("name", BARRIERS)
def test_a_thread_that_missed_a_barrier_comes_to_none(vortex, device, tmp_path, name):
    body, reached, missed = BARRIERS[name]
    launch(vortex, tmp_path / "k.metal", body, "--device", device)
    found = launch(vortex, tmp_path / "k.metal", body, "--check", status=int(reached is not None))
    if reached is None:
        return
    before = HEAD.count("\n")
    assert found["id"] == "E0604" and found["message"].endswith(f"that missed the one in line {before + missed}"), found
    assert [label["line"] for label in found["labels"] if label["primary"]] == [before + reached], found


@pytest.mark.parametrize("memory, flags, races", [
    ("t", "mem_device", True), ("t", "mem_none", True), ("t", "mem_threadgroup", False), ("t", "mem_device | mem_flags::mem_threadgroup", False), ("t", "mem_texture", True),
    ("out", "mem_threadgroup", True), ("out", "mem_none", True), ("out", "mem_device", False), ("out", "mem_device | mem_flags::mem_threadgroup", False)])
def test_barriers_order_the_memory_of_their_flags(vortex, device, tmp_path, memory, flags, races):
    place = "l" if memory == "t" else "i"
    body = [f"{memory}[{place}] = x[i] + 1;", f"threadgroup_barrier(mem_flags::{flags});", f"const float v = {memory}[{place} ^ 1];",
            "threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);", "out[i] = v;"]
    launch(vortex, tmp_path / "k.metal", body, "--device", device)
    found = launch(vortex, tmp_path / "k.metal", body, "--check", status=int(races))
    assert not races or (found["id"] == "E0603" and f"`{memory}`" in found["message"] and found["labels"][0]["line"] in (HEAD.count("\n") + 1, HEAD.count("\n") + 3)), found


def test_a_barrier_of_one_memory_does_not_hide_what_was_done_before_the_last_one(vortex, tmp_path):
    body = ["out[i] = 1;", "SYNC;", "SYNC;", "threadgroup_barrier(mem_flags::mem_device);", "const float v = out[i ^ 1];", "SYNC;", "SYNC;", "out[i] = v;"]
    found = launch(vortex, tmp_path / "k.metal", body, "--check", status=1)
    assert found["id"] == "E0603" and found["labels"][0]["line"] == HEAD.count("\n") + 8, found
