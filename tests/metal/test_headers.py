"""The C header of a Metal kernel: what it launches, and launches that it refuses as the other ways do."""
import shutil
import subprocess

import pytest

KERNEL = """#include <metal_stdlib>
using namespace metal;
kernel void k(device uint *o [[buffer(0)]], uint i [[thread_position_in_grid]], uint n [[threads_per_threadgroup]]) { o[i] = n; }
"""
SIZES = {  # grid, threadgroup
    "one": ((8, 1, 1), (4, 1, 1), 0), "an edge": ((7, 1, 1), (4, 1, 1), 0), "the most": ((8, 1, 1), (1024, 1, 1), 0), "no threads": ((0, 1, 1), (4, 1, 1), 0),
    "no group": ((8, 1, 1), (0, 1, 1), -1), "no group along z": ((8, 1, 1), (4, 1, 0), -1), "a large group": ((8, 1, 1), (1025, 1, 1), -1),
    "a large plane": ((8, 1, 1), (32, 33, 1), -1), "a group beyond numbers": ((8, 1, 1), (2**63, 1, 1), -1),
    "groups that wrap": ((8, 1, 1), (2**22, 2**21, 2**21), -1), "a grid beyond numbers": ((2**64 - 1, 1, 1), (4, 1, 1), -1),
    "a grid of 2**32": ((8, 2**32, 1), (4, 1, 1), -1)}


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_sizes_of_launches_are_judged(vortex, tmp_path):
    (tmp_path / "s.metal").write_text(KERNEL)
    vortex("build", tmp_path / "s.metal", "--no-cache", "-o", tmp_path)
    calls = "\n".join(f'  memset(o, 255, sizeof o); status = k((int32_t *)o, 8, {", ".join(f"UINT64_C({size})" for size in (*grid, *group))});\n'
                      f'  printf("%d", status); for (int i = 0; i < 8; ++i) printf(" %u", o[i]); puts("");' for grid, group, _ in SIZES.values())
    (tmp_path / "main.c").write_text(f'#include "s.k.h"\n#include <stdio.h>\nint main(void) {{\n  uint32_t o[8];\n  int32_t status;\n{calls}\n}}\n')
    subprocess.run(["cc", "-std=c11", "-o", tmp_path / "main", tmp_path / "main.c", tmp_path / "s.k.o", "-lm"], check=True)
    lines = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True).stdout.splitlines()
    for line, (name, (grid, group, status)) in zip(lines, SIZES.items(), strict=True):
        whole = group[0]
        stored = [min(whole, grid[0] - i // whole * whole) for i in range(grid[0])] if status == 0 else []  # the last one is cut
        assert line.split() == [str(each) for each in (status, *stored, *[2**32 - 1] * (8 - len(stored)))], name
