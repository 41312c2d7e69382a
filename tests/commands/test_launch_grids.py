"""Numbers of blocks given at the call: one compiled kernel serves all of them, in every way of calling it."""
import shutil
import subprocess

import pytest

PROGRAM = """
kernel add(x: &mut Tensor<u32, [N]>, count: usize) {
    let i = thread.global_id
    if i < count {
        x[i] = x[i] + 1
    }
}

kernel mark(x: &mut Tensor<u32, [N]>, width: usize) {
    let at = block.id.y * width + block.id.x
    if thread.local_id == 0 && at < N {
        x[at] = (grid.dim.x * 1000 + grid.dim.y) as u32
    }
}

fn main() {
    var x: Tensor<u32, [1024]> = zeros()
    for n in 1..9 {
        add.launch(grid = n, block = 64)(&mut x, n * 64)
    }
    print(x.to_host()[0], x.to_host()[64], x.to_host()[7 * 64], x.to_host()[8 * 64])
    for n in 1..5 {
        var y: Tensor<u32, [64]> = zeros()
        mark.launch(grid = [n, 3], block = 32)(&mut y, n)
        let host = y.to_host()
        print(host[0], host[3 * n - 1], host[3 * n])
    }
    add.launch(grid = 0, block = 64)(&mut x, 64)
    print(x.to_host()[0])
}
"""
PRINTED = "8 7 1 0\n1003 1003 0\n2003 2003 0\n3003 3003 0\n4003 4003 0\n8\n"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "grids.vx"
    path.write_text(PROGRAM)
    return path


def test_a_loop_over_grids_compiles_each_kernel_once(vortex, source, device, tmp_path):
    cache = tmp_path / "kernels"
    assert vortex("run", source, "--device", device, env={"VORTEX_CACHE_DIR": str(cache)}).stdout == PRINTED
    assert len([path for path in cache.rglob("*") if path.is_file() and path.stat().st_size > 1000]) == 2


@pytest.mark.parametrize("options", [("--device", "interpreter"), ("--check",)])
def test_the_interpreter_takes_the_same_grids(vortex, source, options):
    assert vortex("run", source, *options).stdout == PRINTED


@pytest.mark.parametrize("grid", ["0 - 1", "4294967296"])
def test_a_grid_that_no_device_has_is_an_error_of_the_launch(vortex, tmp_path, grid):
    path = tmp_path / "grids.vx"
    path.write_text(PROGRAM.replace("grid = 0", f"grid = {grid}"))
    done = vortex("run", path, status=1)
    assert "E0712" in done.stderr and "impossible grid" in done.stderr


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_the_c_header_takes_the_grid(vortex, source, tmp_path):
    vortex("build", source, "-o", tmp_path / "out")
    (tmp_path / "main.c").write_text("""
#include "out/grids.add.h"
#include "out/grids.mark.h"
static uint32_t x[1024], y[64];
int main(void) {
  for (int64_t n = 1; n < 9; ++n)
    if (add(x, 1024, (uint64_t)n * 64, n, 1, 1)) return 1;
  if (x[0] != 8 || x[64] != 7 || x[448] != 1 || x[512] != 0) return 2;
  if (mark(y, 64, 5, 5, 3, 1)) return 3;
  if (y[0] != 5003 || y[14] != 5003 || y[15] != 0) return 4;
  return 0;
}
""")
    objects = sorted((tmp_path / "out").glob("*.o"))
    subprocess.run(["cc", "-Wall", "-Werror", "-o", "main", "main.c", *objects, "-lm"], cwd=tmp_path, check=True)
    subprocess.run(["./main"], cwd=tmp_path, check=True)


NO_GRID = """
kernel pairs(a: &Tensor<u32, [N1]>, out: &mut Tensor<u32, [N1 - 1]>) {
    let i = thread.global_id
    if i + 1 < N1 {
        out[i] = a[i] + a[i + 1]
    }
}
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_a_kernel_that_the_program_never_launches_is_built(vortex, tmp_path):
    (tmp_path / "k.vx").write_text(NO_GRID)
    vortex("build", tmp_path / "k.vx", "-o", tmp_path / "out")
    vortex("build", tmp_path / "k.vx", "--header", "-o", tmp_path / "headers")
    (tmp_path / "main.c").write_text("""
#include "out/k.pairs.h"
static uint32_t a[100], out[99];
int main(void) {
  for (uint32_t i = 0; i < 100; ++i) a[i] = i;
  if (pairs(a, 100, out, 99, 1, 1, 1)) return 1;
  for (uint32_t i = 0; i < 99; ++i) if (out[i] != 2 * i + 1) return 2;
  return 0;
}
""")
    objects = sorted((tmp_path / "out").glob("*.o"))
    subprocess.run(["cc", "-Wall", "-Werror", "-o", "main", "main.c", *objects, "-lm"], cwd=tmp_path, check=True)
    subprocess.run(["./main"], cwd=tmp_path, check=True)


def test_the_cpp_header_takes_the_grid(vortex, source, tmp_path):
    vortex("build", source, "--header", "-o", tmp_path / "out")
    header = (tmp_path / "out/grids.add.h").read_text() if (tmp_path / "out/grids.add.h").exists() else next((tmp_path / "out").glob("*add*")).read_text()
    assert "const std::array<int64_t, 3>& grid, const vortex::LaunchOptions& options = {}" in header


OUTSIDE = """
kernel rows(x: &mut Tensor<u32, [N, 8]>) {{
    if thread.global_id.y < N {{
        for j in 0..8 {{
            x[thread.global_id.y, j] += 1
        }}
    }}
}}

fn main() {{
    var x: Tensor<u32, [100, 8]> = zeros()
    for threads in {threads} {{
        rows.launch(grid = [1, ceil_div(100usize, {size})], block = [1, {size}])(&mut x)
    }}
}}
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_the_c_function_refuses_blocks_that_the_program_never_launches(vortex, tmp_path):
    (tmp_path / "k.vx").write_text(OUTSIDE.format(threads="0..1", size="64"))
    vortex("build", tmp_path / "k.vx", "-o", tmp_path / "out")
    (tmp_path / "main.c").write_text("""
#include <stdio.h>
#include "out/k.rows.h"
static uint32_t x[100][8];
int main(void) {
  if (rows(&x[0][0], 100, 8, 1, 2, 1)) return 1;
  for (int i = 0; i < 800; ++i)
    if (x[i / 8][i % 8] != 1) return 2;
  if (!rows(&x[0][0], 100, 8, 2, 2, 1)) return 3;
  for (int i = 0; i < 800; ++i)
    if (x[i / 8][i % 8] != 1) return 4;
  return 0;
}
""")
    objects = sorted((tmp_path / "out").glob("*.o"))
    subprocess.run(["cc", "-Wall", "-Werror", "-o", "main", "main.c", *objects, "-lm"], cwd=tmp_path, check=True)
    subprocess.run(["./main"], cwd=tmp_path, check=True)


def test_a_file_is_for_one_block(vortex, tmp_path):
    text = OUTSIDE.format(threads="0..1", size="64").replace("    for threads", "    rows.launch(grid = [1, 4], block = [1, 32])(&mut x)\n    for threads")
    (tmp_path / "k.vx").write_text(text)
    done = vortex("build", tmp_path / "k.vx", "-o", tmp_path / "out", status=1)
    assert "error[E0805]: the launches of `rows` give more than one block" in done.stderr
    (tmp_path / "k.vx").write_text("@launch(block = [1, 32])\n" + text.lstrip())
    vortex("build", tmp_path / "k.vx", "-o", tmp_path / "out")
