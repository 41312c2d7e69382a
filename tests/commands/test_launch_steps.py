"""What a launch does depends on its arguments: the C header of a kernel takes the steps that its launches take."""
import re
import shutil
import subprocess

import pytest

PROGRAM = """
kernel mm(x: &Tensor<f32, [M, K]>, w: &Tensor<f32, [K, N]>) -> Tensor<f32, [M, N]> {
    return x @ w
}

kernel gated(x: &Tensor<f32, [M, K]>, w: &Tensor<f32, [K, N]>, u: &Tensor<f32, [K, N]>) -> Tensor<f32, [M, N]> {
    return (x @ w) * (x @ u)
}
"""

MAIN = """
#include "out/steps.mm.h"
#include "out/steps.gated.h"
#include <stdio.h>
static uint32_t seed = 7;
static float next(void) { seed = seed * 1664525u + 1013904223u; return (float)(int)(seed >> 28) - 8.0f; }
static int differs(const float *got, const float *x, const float *w, const float *u, int m, int k, int n) {
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double a = 0, b = 0;
      for (int t = 0; t < k; ++t) { a += (double)x[i * k + t] * w[t * n + j]; if (u) b += (double)x[i * k + t] * u[t * n + j]; }
      if (got[i * n + j] != (float)(u ? a * b : a)) return 1;
    }
  return 0;
}
int main(void) {
  const int sizes[][3] = {{1, 1, 1}, {3, 5, 7}, {1, 300, 40}, {40, 300, 1}, {64, 64, 64}, {130, 70, 200}, {257, 129, 300}, {0, 4, 4}, {4, 0, 4}};
  for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
    int m = sizes[s][0], k = sizes[s][1], n = sizes[s][2];
    float *x = (float *)malloc((size_t)m * k * 4 + 4), *w = (float *)malloc((size_t)k * n * 4 + 4), *u = (float *)malloc((size_t)k * n * 4 + 4);
    float *r = (float *)malloc((size_t)m * n * 4 + 4);
    for (int i = 0; i < m * k; ++i) x[i] = next();
    for (int i = 0; i < k * n; ++i) { w[i] = next(); u[i] = next() > 0 ? 1.0f : -1.0f; }
    memset(r, 0xff, (size_t)m * n * 4);
    if (mm(x, m, k, w, k, n, r) || differs(r, x, w, 0, m, k, n)) { printf("mm %d %d %d\\n", m, k, n); return 1; }
    memset(r, 0xff, (size_t)m * n * 4);
    if (gated(x, m, k, w, k, n, u, k, n, r) || differs(r, x, w, u, m, k, n)) { printf("gated %d %d %d\\n", m, k, n); return 2; }
    free(x); free(w); free(u); free(r);
  }
  return 0;
}
"""


@pytest.fixture
def built(vortex, tmp_path):
    (tmp_path / "steps.vx").write_text(PROGRAM)
    vortex("build", tmp_path / "steps.vx", "-o", tmp_path / "out")
    return tmp_path


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
@pytest.mark.parametrize("compiler, name, options", [("cc", "main.c", ["-std=c11"]), ("cc", "main.c", ["-std=c11", "-fopenmp"]),
                                                     ("c++", "main.cpp", ["-std=c++17"])])
def test_c_programs_take_every_way(built, compiler, name, options):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    (built / name).write_text(MAIN)
    objects = sorted((built / "out").glob("*.o"))
    done = subprocess.run([compiler, "-O1", "-Wall", "-Werror", "-Wno-unknown-pragmas", *options, "-o", built / "main", built / name, *objects, "-lm"],
                          capture_output=True, text=True)
    if "-fopenmp" in options and "omp" in done.stderr:
        pytest.skip("no OpenMP")
    assert done.returncode == 0, done.stderr
    assert subprocess.run([built / "main"], capture_output=True, text=True, timeout=3600).returncode == 0


def test_the_header_allocates_packed_operands_only_where_they_are_packed(built):
    text = (built / "out" / "steps.mm.h").read_text()
    direct, packed = re.search(r"if \(.*\) \{ /\* direct \*/\n(.*?)\} else \{ /\* packed \*/\n(.*?)\n  \}\n", text, re.S).groups()
    assert direct.strip() == "" and "aligned_alloc" in packed and "vx_workers" in packed
    assert "vx_temporaries[0] = aligned_alloc" in packed and text.count("vx_temporaries[0] = aligned_alloc") == 1


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_a_header_needs_the_c_that_has_its_functions(built):
    (built / "main.c").write_text(MAIN)
    done = subprocess.run(["cc", "-std=c99", "-fsyntax-only", built / "main.c"], capture_output=True, text=True)
    assert done.returncode != 0 and "need C11 or later" in done.stderr


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_kernels_of_one_name_from_two_files_are_told_of(built, vortex):
    """Not left out by the guard of the other's header; the same header twice is none too many."""
    (built / "other.vx").write_text("kernel mm(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x * 2.0 }\n")
    vortex("build", built / "other.vx", "-o", built / "out")
    (built / "main.c").write_text('#include "out/steps.mm.h"\n#include "out/steps.mm.h"\nint main(void) { return 0; }\n')
    subprocess.run(["cc", "-std=c11", "-Wall", "-fsyntax-only", built / "main.c"], check=True)
    (built / "main.c").write_text('#include "out/steps.mm.h"\n#include "out/other.mm.h"\nint main(void) { return 0; }\n')
    done = subprocess.run(["cc", "-std=c11", "-fsyntax-only", built / "main.c"], capture_output=True, text=True)
    assert done.returncode != 0 and "mm" in done.stderr
