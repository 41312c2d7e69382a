"""Kernels of tensors of structs called from C through the headers of `vortex build`: the caller's structs are the elements."""
import shutil
import subprocess

import pytest

SOURCE = """
struct Vec2 { x: f32, y: f32 }
LAYOUT
struct Particle { kind: u8, at: Vec2, mass: f64, hits: [u32; 2] }

kernel step(p: &mut Tensor<Particle, [N]>, dt: f32) {
    let i = thread.global_id
    p[i].at.x += dt * p[i].at.y
    p[i].hits[1] += p[i].kind as u32
    p[i].mass *= 2.0
}

kernel reversed(p: &Tensor<Particle, [N]>) -> Tensor<Particle, [N]> {
    return p[N - 1 - thread.global_id]
}
"""

STRUCTS = """
#include "out/structs.step.h"
#include "out/structs.reversed.h"
typedef struct { uint8_t kind; float at[2]; double mass; uint32_t hits[2]; } particle;
enum { kCount = 77 };
static particle p[kCount], r[kCount];
int main(void) {
  for (int i = 0; i < kCount; ++i) {
    particle one = {(uint8_t)i, {(float)i, 2.0f}, 0.5 * i, {1u, 7u}};
    p[i] = one;
  }
  if (step(p, kCount, 0.5f)) return 1;
  if (reversed(p, kCount, r)) return 2;
  for (int i = 0; i < kCount; ++i) {
    const particle *q = &r[kCount - 1 - i];
    if (q->kind != i || q->at[0] != (float)i + 1.0f || q->at[1] != 2.0f || q->mass != i || q->hits[0] != 1 || q->hits[1] != 7u + (uint32_t)i) return 3;
  }
  return 0;
}
"""

PLANES = """
#include "out/structs.step.h"
#include "out/structs.reversed.h"
enum { kCount = 77 };
static uint8_t kind[kCount], rkind[kCount];
static float x[kCount], y[kCount], rx[kCount], ry[kCount];
static double mass[kCount], rmass[kCount];
static uint32_t h0[kCount], h1[kCount], rh0[kCount], rh1[kCount];
int main(void) {
  for (int i = 0; i < kCount; ++i) { kind[i] = (uint8_t)i; x[i] = (float)i; y[i] = 2.0f; mass[i] = 0.5 * i; h0[i] = 1; h1[i] = 7; }
  if (step(kind, kCount, x, kCount, y, kCount, mass, kCount, h0, kCount, h1, kCount, 0.5f)) return 1;
  if (step(kind, kCount, x, kCount - 1, y, kCount, mass, kCount, h0, kCount, h1, kCount, 0.5f) != -1) return 4;
  if (reversed(kind, kCount, x, kCount, y, kCount, mass, kCount, h0, kCount, h1, kCount, rkind, rx, ry, rmass, rh0, rh1)) return 2;
  for (int i = 0; i < kCount; ++i) {
    int j = kCount - 1 - i;
    if (rkind[j] != i || rx[j] != (float)i + 1.0f || ry[j] != 2.0f || rmass[j] != i || rh0[j] != 1 || rh1[j] != 7u + (uint32_t)i) return 3;
  }
  return 0;
}
"""


@pytest.mark.parametrize("layout,caller", [("aos", STRUCTS), ("soa", PLANES)])
def test_c_calls_a_kernel_of_structs(layout, caller, vortex, tmp_path):
    source = tmp_path / "structs.vx"
    source.write_text(SOURCE.replace("LAYOUT", f"@layout({layout})"))
    vortex("build", source, "-o", tmp_path / "out")
    header = (tmp_path / "out/structs.step.h").read_text()
    described = "`p` points to structs of 32 bytes: kind u8 at 0, at.x f32 at 4, at.y f32 at 8, mass f64 at 16, hits.0 u32 at 24, hits.1 u32 at 28"
    assert (described in header) == (layout == "aos")
    (tmp_path / "main.c").write_text(caller)
    compiler = shutil.which("clang-19") or shutil.which("cc")
    objects = [f"out/structs.{kernel}.o" for kernel in ("step", "reversed")]
    subprocess.run([compiler, "-O1", "-Wall", "-Werror", "main.c", *objects, "-lm", "-o", "main"], cwd=tmp_path, check=True)
    assert subprocess.run(["./main"], cwd=tmp_path).returncode == 0
