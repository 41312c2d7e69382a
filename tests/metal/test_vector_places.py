"""Vectors that are reached through pointers to memory of each address space: what is read and stored through `->` is what `(*p).` reads and stores."""
import numpy as np
import pytest
from programs import RNG, Programs, run_program

PROGRAMS = Programs()
V = RNG.integers(-1000, 1000, (16, 4), dtype="i4")
W = RNG.integers(-1000, 1000, (16, 4), dtype="i4")
P = RNG.integers(-1000, 1000, (16, 3), dtype="i4")

moved, packed, sums = V.copy(), P.copy(), np.empty(16, "i4")
moved[:, [0, 1]] = W[:, [3, 2]]
moved[:, [3, 2]] += moved[:, [0, 1]]
moved[:, [1, 2]] += 1
packed[:, 1] += 5
packed[:, [2, 0]] = W[:, [0, 1]]
sums = moved[:, 1] + 10 * W[:, 3] + 100 * packed[:, 2]
PROGRAMS.add("arrows", """
int secondOf(device const int4* v) { return v->yx.x; }
kernel void k(device int4* v [[buffer(0)]], constant int4* w [[buffer(1)]], device packed_int3* p [[buffer(2)]], device int* out [[buffer(3)]],
              uint i [[thread_position_in_grid]], uint local [[thread_position_in_threadgroup]]) {
  threadgroup int4 t[8];
  threadgroup int4* shared = t + local;
  shared->xyzw = w[i];
  device int4* mine = v + i;
  mine->xy = shared->wz;
  mine->wz += mine->xy;
  mine->gb++;
  device packed_int3* q = p + i;
  q->y += 5;
  q->zx = (w + i)->xy;
  out[i] = secondOf(mine) + 10 * (w + i)->zw.y + 100 * q->zy[0];
}
""", "16", "8", [V, W, P, "i32[16]"], {0: (moved, 0), 2: (packed, 0), 3: (sums, 0)})
PROGRAMS.add("methods", """
struct Pair { int2 v; int sum() const { return v.x + v.y; } void set(int2 w) { v.yx = w; } };
kernel void k(device Pair* v [[buffer(0)]], device int* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  device Pair* p = v + i;
  out[i] = p->sum();
  p->set(p->v + int2(1, 2));
}
""", "32", "8", [V.reshape(32, 2), "i32[32]"], {0: ((V.reshape(32, 2) + [1, 2])[:, ::-1].astype("i4"), 0), 1: (V.reshape(32, 2).sum(1, dtype="i4"), 0)})


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("where", ["check", "device"])
def test_vectors_behind_pointers(vortex, device, tmp_path, name, where):
    run_program(vortex, tmp_path, PROGRAMS[name], *(["--check"] if where == "check" else ["--device", device]))
