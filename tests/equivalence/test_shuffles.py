"""Shuffles: a lane without a partner in the warp keeps its own value."""
import re

import numpy
import pytest

LANES = numpy.arange(32)
PARTNERS = {"xor": lambda d: LANES ^ d, "up": lambda d: numpy.where(LANES >= d, LANES - d, LANES), "down": lambda d: numpy.where(LANES + d < 32, LANES + d, LANES)}
DISTANCES = [0, 1, 2, 5, 16, 31]

KERNEL = """
@launch(grid = [1], block = 64)
kernel {name}_{distance}(x: &Tensor<f32, [64]>, y: &mut Tensor<f32, [64]>) {{
    y[thread.local_id] = warp.shuffle_{name}(x[thread.local_id], {distance})
}}
"""


def source():
    kernels = "".join(KERNEL.format(name=name, distance=distance) for name in PARTNERS for distance in DISTANCES)
    calls = "".join(f"""    {name}_{distance}(&x, &mut y)
    save_npy(format("{{}}/{name}_{distance}.npy", dir), y.copy())
""" for name in PARTNERS for distance in DISTANCES)
    return kernels + "fn main() {\n    let dir = args()[0]\n    let x: Tensor<f32, [64]> = load_npy(format(\"{}/x.npy\", dir))\n    var y: Tensor<f32, [64]> = zeros()\n" + calls + "}\n"


def test_shuffles_reach_the_lanes_that_are_there(vortex, tmp_path, backend):
    x = numpy.random.default_rng().standard_normal(64).astype(numpy.float32)
    numpy.save(tmp_path / "x.npy", x)
    path = tmp_path / "shuffles.vx"
    path.write_text(source())
    vortex("run", path, *backend, "--", tmp_path)
    for name, partner in PARTNERS.items():
        for distance in DISTANCES:
            expected = x.reshape(2, 32)[:, partner(distance)].ravel()
            assert (numpy.load(tmp_path / f"{name}_{distance}.npy") == expected).all(), (name, distance)


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_ptx_bounds_shuffles_by_the_first_or_last_lane(vortex, tmp_path, target):
    path = tmp_path / "shuffles.vx"
    path.write_text(source())
    ptx = vortex("build", path, "--target", target, "--emit", "asm").stdout
    found = {(kind, int(clamp)) for kind, clamp in re.findall(r"shfl\.sync\.(up|down|bfly|idx)\.b32\s+[^;]*?,\s*(\d+)\s*,\s*-1\s*;", ptx)}
    assert {("up", 0), ("down", 31), ("bfly", 31)} <= found <= {("up", 0), ("down", 31), ("bfly", 31), ("idx", 31)}, found
