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


TYPES = {"i8": "i1", "u16": "u2", "f16": "f2", "i32": "i4", "u64": "u8", "i64": "i8"}
MOVES = """
@launch(grid = [1], block = 64)
kernel moves_{kind}(x: &Tensor<{kind}, [64]>, by: &Tensor<u32, [64]>, up: &mut Tensor<{kind}, [64]>, down: &mut Tensor<{kind}, [64]>, across: &mut Tensor<{kind}, [64]>, one: &mut Tensor<{kind}, [64]>) {{
    let l = thread.local_id
    let w = l / 32
    up[l] = warp.shuffle_up(x[l], by[w])
    down[l] = warp.shuffle_down(x[l], by[w])
    across[l] = warp.shuffle_xor(x[l], by[w])
    one[l] = warp.broadcast(x[l], by[w])
}}
"""


def test_elements_of_all_widths_move_by_distances_that_are_computed(vortex, tmp_path, backend):
    """Modulo 32."""
    rng = numpy.random.default_rng()
    by = numpy.array([rng.integers(1, 32), rng.choice([32, 33, 40, 95])], "u4")
    calls = ""
    for kind, code in TYPES.items():
        numpy.save(tmp_path / f"{kind}.npy", numpy.frombuffer(rng.integers(0, 123, 64 * numpy.dtype(code).itemsize, "u1").tobytes(), code))
        calls += f"""    let x_{kind}: Tensor<{kind}, [64]> = load_npy(format("{{}}/{kind}.npy", dir))
    var u_{kind}: Tensor<{kind}, [64]> = zeros()
    var d_{kind}: Tensor<{kind}, [64]> = zeros()
    var a_{kind}: Tensor<{kind}, [64]> = zeros()
    var o_{kind}: Tensor<{kind}, [64]> = zeros()
    moves_{kind}(&x_{kind}, &by, &mut u_{kind}, &mut d_{kind}, &mut a_{kind}, &mut o_{kind})
""" + "".join(f"""    save_npy(format("{{}}/{kind}_{name}.npy", dir), {name[0]}_{kind})\n""" for name in ("up", "down", "across", "one"))
    numpy.save(tmp_path / "by.npy", numpy.resize(by, 64))
    path = tmp_path / "moves.vx"
    path.write_text("".join(MOVES.format(kind=kind) for kind in TYPES) + "fn main() {\n    let dir = args()[0]\n"
                    "    let by: Tensor<u32, [64]> = load_npy(format(\"{}/by.npy\", dir))\n" + calls + "}\n")
    vortex("run", path, *backend, "--", tmp_path)
    for kind in TYPES:
        x = numpy.load(tmp_path / f"{kind}.npy").reshape(2, 32)
        for name, partner in (("up", PARTNERS["up"]), ("down", PARTNERS["down"]), ("across", PARTNERS["xor"]), ("one", lambda d: LANES * 0 + d)):
            wanted = numpy.concatenate([row[partner(int(d) % 32)] for row, d in zip(x, by)])
            assert numpy.load(tmp_path / f"{kind}_{name}.npy").tobytes() == wanted.tobytes(), (kind, name, by)


VOTES = """
@launch(grid = [1], block = 128)
kernel votes(x: &Tensor<u32, [128]>, any: &mut Tensor<u32, [128]>, all: &mut Tensor<u32, [128]>, bits: &mut Tensor<u32, [128]>) {
    let l = thread.local_id
    let c = x[l] != 0
    any[l] = warp.any(c) as u32
    all[l] = warp.all(c) as u32
    bits[l] = warp.ballot(c)
}
fn main() {
    let dir = args()[0]
    let x: Tensor<u32, [128]> = load_npy(format("{}/x.npy", dir))
    var any: Tensor<u32, [128]> = zeros()
    var all: Tensor<u32, [128]> = zeros()
    var bits: Tensor<u32, [128]> = zeros()
    votes(&x, &mut any, &mut all, &mut bits)
    save_npy(format("{}/any.npy", dir), any)
    save_npy(format("{}/all.npy", dir), all)
    save_npy(format("{}/bits.npy", dir), bits)
}
"""


def test_votes_count_the_lanes_of_their_warp(vortex, tmp_path, backend):
    """A warp where none says yes, one of all, and two of some."""
    some = numpy.random.default_rng().integers(0, 2, (2, 32), "u4")
    some[:, :2] = [0, 1]
    x = numpy.stack([numpy.zeros(32, "u4"), some[0], numpy.ones(32, "u4"), some[1]])
    numpy.save(tmp_path / "x.npy", x.ravel())
    path = tmp_path / "votes.vx"
    path.write_text(VOTES)
    vortex("run", path, *backend, "--", tmp_path)
    bits = (x.astype("u8") << numpy.arange(32, dtype="u8")).sum(1).astype("u4")
    for name, wanted in (("any", x.any(1)), ("all", x.all(1)), ("bits", bits)):
        assert (numpy.load(tmp_path / f"{name}.npy") == numpy.repeat(wanted, 32)).all(), name


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_ptx_bounds_shuffles_by_the_first_or_last_lane(vortex, tmp_path, target):
    path = tmp_path / "shuffles.vx"
    path.write_text(source())
    ptx = vortex("build", path, "--target", target, "--emit", "asm").stdout
    found = {(kind, int(clamp)) for kind, clamp in re.findall(r"shfl\.sync\.(up|down|bfly|idx)\.b32\s+[^;]*?,\s*(\d+)\s*,\s*-1\s*;", ptx)}
    assert {("up", 0), ("down", 31), ("bfly", 31)} <= found <= {("up", 0), ("down", 31), ("bfly", 31), ("idx", 31)}, found
