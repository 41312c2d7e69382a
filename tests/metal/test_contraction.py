"""Products and sums are rounded each where a pragma says so: of vectors too, whose operators are the library's."""
import numpy as np
import pytest

KERNEL = """kernel void k(device const float* x [[buffer(0)]], device float* o [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  %s
  float product = x[i] * x[i];
  o[i] = product + x[4];
  float4 four = float4(x[i]) * x[i];
  four += x[4];
  o[4 + i] = four.z - 0.0f;
}
"""
OFF = "#pragma METAL fp contract(off)\n"
PLACES = {
    "in_the_kernel": ("", OFF),
    "in_the_file": (OFF, ""),
    "in_a_header": ('#include "strict.h"\n', ""),
    "as_an_operator": ("", '_Pragma("METAL fp contract(off)")'),
    "as_clang_s": ("", "#pragma clang fp contract(off)\n"),
    "as_c_s": ("#pragma STDC FP_CONTRACT OFF\n", ""),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_product_and_a_sum_are_rounded_each(vortex, device, tmp_path, place):
    outside, inside = PLACES[place]
    (tmp_path / "strict.h").write_text(OFF)
    (tmp_path / "k.metal").write_text("#include <metal_stdlib>\nusing namespace metal;\n" + outside + KERNEL % inside)
    x = np.array([1 + 2.0**-12, 1 + 3 * 2.0**-12, 1 - 2.0**-13, 3, -1 - 2.0**-11], "f4")
    wanted = x[:4] * x[:4] + x[4]
    for where in (["--check"], ["--device", device]):
        vortex("run", "k.metal", "--grid", 4, "--buffer", "0=f32:" + ",".join(map(repr, x.tolist())), "--buffer", "1=f32[8]", "--save", "1=o.npy", *where, cwd=tmp_path)
        np.testing.assert_array_equal(np.load(tmp_path / "o.npy"), [*wanted, *wanted])


def test_strict_kernels_that_are_printed_for_metal_stay_so(vortex, tmp_path):
    (tmp_path / "k.vx").write_text("""@strict
kernel two(a: &Tensor<f32, [N]>, b: &Tensor<f32, [N]>, c: &Tensor<f32, [N]>) -> Tensor<f32, [N]> {
    let i = thread.global_id
    return a[i] * b[i] + c[i]
}
fn main() {
    let e: f32 = 1.0 / 4096.0
    let a: Tensor<f32, [4]> = full(1.0 + e)
    let c: Tensor<f32, [4]> = full(-1.0 - 2.0 * e)
    print(two(&a, &a, &c).to_host())
}
""")
    assert vortex("run", "k.vx", "--device", "metal3.1", cwd=tmp_path).stdout == vortex("run", "k.vx", "--device", "cpu", cwd=tmp_path).stdout == "[0.0, 0.0, 0.0, 0.0]\n"
