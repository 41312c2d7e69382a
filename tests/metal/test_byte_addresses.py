"""Kernels that reckon addresses in bytes, in memory of atomics: how many bytes a step is a multiple of is seen through choices, merged values and loops, by
whatever arithmetic it comes about. Wanted: what the same steps give in Python."""
import numpy as np
import pytest
from programs import HEAD, RNG, Programs, run_program

PROGRAMS = Programs()
VALUES = RNG.integers(0, 2**31, 64, dtype="u4")
# What is added to the address, in bytes, as Metal and as Python have it; v is the value, i the thread.
STEPS = {
    "product": ("ulong(v & 15u) * 4", lambda v, i: v % 16 * 4),
    "shift": ("ulong(v << 2) & 60", lambda v, i: v % 16 * 4),
    "mask": ("ulong(v & 0x3cu)", lambda v, i: v & 0x3C),
    "shift_back": ("ulong(((v & 15u) * 32) >> 3)", lambda v, i: v % 16 * 4),
    "sum": ("ulong((v & 7u) * 8 + (i & 1u) * 4)", lambda v, i: v % 8 * 8 + i % 2 * 4),
    "difference": ("60 - ulong(v & 15u) * 4", lambda v, i: 60 - v % 16 * 4),
    "remainder": ("ulong((v & 0xffffu) * 12 % 64u)", lambda v, i: (v & 0xFFFF) * 12 % 64),
    "least": ("ulong(min((v & 255u) * 4, 60u))", lambda v, i: min(v % 256 * 4, 60)),
    "choice": ("ulong(i % 3 == 0 ? (v & 15u) * 4 : v % 5 == 0 ? 8 : (v & 1u) << 5)", lambda v, i: v % 16 * 4 if i % 3 == 0 else 8 if v % 5 == 0 else v % 2 * 32),
    "vector": ("ulong(((uint2(v, i) & uint2(7)) * uint2(8, 4)).x)", lambda v, i: v % 8 * 8),
    "loop": ("walk(v, i)", lambda v, i: (v % 16 + sum(k + 1 for k in range(i % 5) if v >> k & 1)) * 4 % 64),
    "branch": ("turn(v, i)", lambda v, i: v % 4 * 16 if v & 64 else (v % 8 * 8 if v & 128 else i % 16 * 4)),
}
SOURCE = """
ulong walk(uint v, uint i) {
  ulong at = ulong(v & 15u) * 4;
  for (uint k = 0; k < i % 5; ++k) if (v >> k & 1) at += ulong(k + 1) << 2;
  return at % 64;
}
ulong turn(uint v, uint i) {
  uint at = 0;
  if (v & 64) at = (v & 3u) * 16;
  else if (v & 128) at = (v & 7u) * 8;
  else at = (i & 15u) * 4;
  return at;
}
kernel void k(const device uchar* x [[buffer(0)]], device uchar* h [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  uint v = 0u;
  if (i < 60) v = *reinterpret_cast<const device uint*>(x + ulong(i) * 4);
  device atomic_uint* a = (device atomic_uint*)(h + (%s));
  atomic_fetch_add_explicit(a, i + 1, memory_order_relaxed);
}
"""
for name, (step, python) in STEPS.items():
    counts = np.zeros(16, "u4")
    for thread in range(64):
        at = python(int(VALUES[thread]) if thread < 60 else 0, thread)
        assert at % 4 == 0
        counts[at // 4] += thread + 1
    PROGRAMS.add(name, SOURCE.replace("%s", step), "64", "32", [VALUES, "u32[16]"], {1: (counts, 0)})


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("where", ["check", "device"])
def test_steps_of_bytes_reach_the_elements_of_atomics(vortex, device, tmp_path, name, where):
    run_program(vortex, tmp_path, PROGRAMS[name], *(["--check"] if where == "check" else ["--device", device]))


@pytest.mark.parametrize("step", ["ulong(v & 15u) * 2", "ulong(i % 3 == 0 ? (v & 15u) * 4 : 2)", "ulong((v & 15u) * 4 >> 1)", "ulong(v)"])
def test_steps_between_elements_are_refused(vortex, tmp_path, step):
    (tmp_path / "k.metal").write_text(HEAD + SOURCE.replace("%s", step))
    done = vortex("check", "k.metal", cwd=tmp_path, status=1)
    assert "error[E0902]: an atomic operation on memory that is also accessed as smaller elements" in done.stderr


def test_a_histogram_is_printed_for_metal_and_read_back(vortex, tmp_path):
    (tmp_path / "h.vx").write_text("""
kernel count(x: &Tensor<u32, [N]>, h: &mut Tensor<u32, [16]>) {
    atomic_add(&mut h[(x[thread.global_id] & 15) as usize], 1)
}
fn main() {
    var h: Tensor<u32, [16]> = zeros([16])
    let x: Tensor<u32, [64]> = zeros([64])
    count(&x, &mut h)
    for i in 0..16 { print(h.to_host()[i]) }
}
""")
    assert vortex("run", "h.vx", "--device", "metal3.1", cwd=tmp_path).stdout == vortex("run", "h.vx", "--device", "cpu", cwd=tmp_path).stdout
