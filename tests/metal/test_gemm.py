"""The lecture's three matrix products and what larger kernels are made of, against NumPy."""
import numpy as np
import pytest

PROGRAMS = {
    "tiled": """#include <metal_stdlib>
using namespace metal;
kernel void tiled(device const float* A [[buffer(0)]], device const float* B [[buffer(1)]], device float* C [[buffer(2)]],
                  constant uint3& sizes [[buffer(3)]], threadgroup float* a [[threadgroup(0)]], threadgroup float* b [[threadgroup(1)]],
                  uint2 group [[threadgroup_position_in_grid]], uint2 t [[thread_position_in_threadgroup]]) {
  uint row = group.y * 8 + t.y, column = group.x * 8 + t.x;
  float sum = 0;
  for (uint k = 0; k < sizes.y; k += 8) {
    a[t.y * 8 + t.x] = row < sizes.x && k + t.x < sizes.y ? A[row * sizes.y + k + t.x] : 0.0f;
    b[t.y * 8 + t.x] = column < sizes.z && k + t.y < sizes.y ? B[column * sizes.y + k + t.y] : 0.0f;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint j = 0; j < 8; ++j)
      sum += a[t.y * 8 + j] * b[j * 8 + t.x];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (row < sizes.x && column < sizes.z)
    C[row * sizes.z + column] = sum;
}
""",
    "simdgroup": """#include <metal_stdlib>
using namespace metal;
kernel void simdgroup_product(device const float* A [[buffer(0)]], device const float* B [[buffer(1)]], device float* C [[buffer(2)]],
                              constant uint3& sizes [[buffer(3)]], uint2 group [[threadgroup_position_in_grid]]) {
  simdgroup_float8x8 a, b, c = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  for (uint k = 0; k < sizes.y; k += 8) {
    simdgroup_load(a, A + group.y * 8 * sizes.y + k, sizes.y);
    simdgroup_load(b, B + group.x * 8 * sizes.y + k, sizes.y, ulong2(0, 0), true);
    simdgroup_multiply_accumulate(c, a, b, c);
  }
  simdgroup_store(c, C + group.y * 8 * sizes.z + group.x * 8, sizes.z);
}
""",
}


def product(vortex, tmp_path, path, shape, grid, block, *options):
    m, k, n = shape
    rng = np.random.default_rng()
    a, b = rng.standard_normal((m, k)).astype("f4"), rng.standard_normal((n, k)).astype("f4")
    for name, value in (("a", a), ("b", b), ("c", np.full((m, n), np.nan, "f4"))):
        np.save(tmp_path / f"{name}.npy", value)
    vortex("run", path, "--grid", grid, "--block", block, "--buffer", "0=a.npy", "--buffer", "1=b.npy", "--buffer", "2=c.npy",
           "--buffer", f"3=u32:{m},{k},{n}", "--save", "2=c.npy", *options, cwd=tmp_path)
    np.testing.assert_allclose(np.load(tmp_path / "c.npy"), a.astype("f8") @ b.T.astype("f8"), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kernel, columns, block", [("naive", 1, "7,3"), ("vec4", 1, "16,2"), ("mat4", 4, "8,8")])
def test_the_lecture_s_kernel_is_the_product(vortex, device, root, tmp_path, kernel, columns, block):
    path = root / f"examples/metal/gemm_{kernel}.metal"
    for m, k, n in ((5, 24, 36), (3, 384, 36)):  # rows that are 1.5 KiB apart share sets of the first-level cache
        for where in (["--check"], ["--device", device]):
            product(vortex, tmp_path, path, (m, k, n), f"{n // columns},{m}", block, *where)


def test_threadgroup_memory_sized_at_dispatch(vortex, device, tmp_path):
    path = tmp_path / "tiled.metal"
    path.write_text(PROGRAMS["tiled"])
    for where in (["--check"], ["--device", device]):
        product(vortex, tmp_path, path, (13, 21, 10), "16,16", "8,8", "--threadgroup", "0=256", "--threadgroup", "1=256", *where)
    done = vortex("run", path, "--grid", "8,8", "--block", "8,8", *sum((["--buffer", f"{i}=f32[64]"] for i in range(4)), []), status=1)
    assert "error[E0904]" in done.stderr and "--threadgroup 0=BYTES" in done.stderr
    line = next(number for number, text in enumerate(PROGRAMS["tiled"].splitlines(), 1) if "threadgroup(0)" in text)
    assert f"tiled.metal:{line}:" in done.stderr, done.stderr


def test_simdgroup_matrices(vortex, device, tmp_path):
    path = tmp_path / "simdgroup.metal"
    path.write_text(PROGRAMS["simdgroup"])
    for where in (["--check"], ["--device", device]):
        product(vortex, tmp_path, path, (16, 24, 8), "32,2", "32,1", *where)


@pytest.mark.parametrize("kernel", ["naive", "vec4", "mat4"])
def test_the_lecture_s_kernel_is_assembled_for_nvidia(vortex, root, tmp_path, kernel):
    vortex("build", root / f"examples/metal/gemm_{kernel}.metal", "--target", "sm_90", "-o", tmp_path)
    assert list(tmp_path.glob("*.ptx"))
