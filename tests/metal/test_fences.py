"""atomic_thread_fence: what it orders is seen by --check, executed on the device, and stands in the code for NVIDIA."""
import re
import shutil
import subprocess

import numpy as np
import pytest

RNG = np.random.default_rng()
GROUPS, WIDTH = 7, 64
LAST_GROUP = """#include <metal_stdlib>
using namespace metal;
// The threadgroup that finishes last adds what the others left in device memory.
kernel void total(device const int* in [[buffer(0)]], device int* parts [[buffer(1)]], device atomic_uint* done [[buffer(2)]], device int* out [[buffer(3)]],
                  uint i [[thread_position_in_grid]], uint local [[thread_index_in_threadgroup]], uint group [[threadgroup_position_in_grid]],
                  uint groups [[threadgroups_per_grid]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup int sums[2];
  const int sum = simd_sum(in[i]);
  if (lane == 0) sums[local / 32] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (local != 0) return;
  parts[group] = sums[0] + sums[1];
  %s
  if (atomic_fetch_add_explicit(done, 1, memory_order_relaxed) + 1 != groups) return;
  %s
  int all = 0;
  for (uint g = 0; g < groups; ++g) all += parts[g];
  out[0] = all;
}
"""
FENCE = "atomic_thread_fence(mem_flags::mem_device, %s, %s);"
ORDERS = [("memory_order_release", "memory_order_acquire", "fence.acq_rel.gpu;"), ("memory_order_acq_rel", "memory_order_acq_rel", "fence.acq_rel.gpu;"),
          ("memory_order_seq_cst", "memory_order_seq_cst", "fence.sc.gpu;")]


def launch(vortex, tmp_path, before, after, *options, status=0):
    (tmp_path / "k.metal").write_text(LAST_GROUP % (before, after))
    values = RNG.integers(-1000, 1000, GROUPS * WIDTH, dtype="i4")
    np.save(tmp_path / "in.npy", values)
    parts = ",".join(["-77"] * GROUPS)
    done = vortex("run", "k.metal", "--grid", GROUPS * WIDTH, "--block", WIDTH, "--buffer", "0=in.npy", "--buffer", f"1=i32:{parts}", "--buffer", "2=u32:0", "--buffer", "3=i32:-77",
                  "--print", 3, *options, cwd=tmp_path, status=status)
    assert status or int(done.stdout) == values.sum()
    return done


@pytest.mark.parametrize("before, after, _", ORDERS)
def test_fences_order_what_atomics_tell(vortex, device, tmp_path, before, after, _):
    words = [FENCE % (order, "thread_scope_device") for order in (before, after)]
    for where in (["--check"], ["--device", device]):
        launch(vortex, tmp_path, *words, *where)


@pytest.mark.parametrize("before, after", [("", FENCE % ("memory_order_acquire", "thread_scope_device")), (FENCE % ("memory_order_release", "thread_scope_device"), ""),
                                           (FENCE % ("memory_order_relaxed", "thread_scope_device"), FENCE % ("memory_order_acquire", "thread_scope_device")),
                                           (FENCE % ("memory_order_release", "thread_scope_threadgroup"), FENCE % ("memory_order_acquire", "thread_scope_device"))])
def test_a_fence_that_is_missing_or_too_weak_is_a_race(vortex, tmp_path, before, after):
    assert "race" in launch(vortex, tmp_path, before, after, "--check", status=1).stderr


@pytest.mark.parametrize("before, after, code", ORDERS)
@pytest.mark.parametrize("target, architecture", [("sm_80", "sm_80"), ("sm_90", "sm_90a")])
def test_code_for_nvidia_has_them(vortex, tmp_path, before, after, code, target, architecture):
    path = tmp_path / "k.metal"
    path.write_text(LAST_GROUP % tuple(FENCE % (order, "thread_scope_device") for order in (before, after)))
    vortex("build", path, "--target", target, "-o", tmp_path / "out")
    (made,) = (tmp_path / "out").glob("*.ptx")
    found = re.findall(r"fence\.\S+|atom\.relaxed", made.read_text())
    assert found and found == [code, "atom.relaxed", code] * (len(found) // 3), found
    if ptxas := shutil.which("ptxas"):
        done = subprocess.run([ptxas, "-arch", architecture, made, "-o", tmp_path / "k.cubin"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


WAITING = """#include <metal_stdlib>
using namespace metal;
kernel void wait(device volatile uint* flag [[buffer(0)]], device uint* out [[buffer(1)]], constant uint& least [[buffer(2)]]) {
  uint rounds = 1;
  while (flag[0] < least) ++rounds;
  out[0] = rounds;
}
"""


def test_volatile_words_are_read_in_every_round(vortex, tmp_path):
    path = tmp_path / "k.metal"
    path.write_text(WAITING)
    vortex("build", path, "--target", "sm_90", "-o", tmp_path / "out")
    (made,) = (tmp_path / "out").glob("*.ptx")
    text = made.read_text()
    load = text.index("ld.relaxed")
    assert "ld.relaxed" not in text[:text.index("$L__BB0_")] and text.index("$L__BB0_") < load, text
    assert vortex("run", path, "--grid", 1, "--buffer", "0=u32:5", "--buffer", "1=u32:0", "--buffer", "2=u32:5", "--print", 1).stdout == "1\n"
