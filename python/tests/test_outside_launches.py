"""Launches that the program itself does not make: what its checks have proven holds for them, or they are refused."""
import numpy as np
import pytest

import vortex

ROWS = """
kernel rows(x: &Tensor<i32, [N, M]>, y: &mut Tensor<i32, [N, M]>) {
    if thread.global_id.y < N {
        for j in 0..M {
            y[thread.global_id.y, j] += x[thread.global_id.y, j]
        }
    }
}
"""
LAUNCHED = ROWS + """
fn main() {
    let x = full(1i32, [256, 8])
    var y = full(0i32, [256, 8])
    rows.launch(grid = [1, 4], block = [1, 64])(&x, &mut y)
}
"""


@pytest.fixture
def arrays(random):
    return random.integers(-1000, 1000, (256, 8), dtype=np.int32), random.integers(-1000, 1000, (256, 8), dtype=np.int32)


@pytest.mark.parametrize("source", [ROWS, LAUNCHED])
@pytest.mark.parametrize("where", ["device", "interpreter"])
def test_more_blocks_along_an_axis_that_the_kernel_does_not_ask_for_are_refused(device, source, where, arrays):
    x, y = arrays
    rows = vortex.compile(source=source, device=device if where == "device" else where).rows
    for grid in [(1, 4), (1, 9)]:
        out = y.copy()
        rows.launch(grid=grid, block=(1, 64))(x, out)
        np.testing.assert_array_equal(out, y + x)
    for grid, axis in [((4, 4), "x"), ((1, 4, 3), "z")]:
        out = y.copy()
        with pytest.raises(vortex.Error, match=rf"`rows` is proven free of races for 1 block along {axis}, and the launch has {max(grid[0], 3)}: "):
            rows.launch(grid=grid, block=(1, 64))(x, out)
        np.testing.assert_array_equal(out, y)


def test_threads_that_the_kernel_does_not_tell_apart_are_refused(device, arrays):
    x, y = arrays
    rows = vortex.compile(source=LAUNCHED, name="rows.vx", device=device).rows
    with pytest.raises(vortex.Error, match=r"E0630(.|\n)*rows\.vx:5") as raised:
        rows.launch(grid=(1, 8), block=(8, 32))(x, y)
    assert "threads" in str(raised.value)
    for block in [(1, 32), (1, 1024), (1, 1)]:  # those that it does
        out = y.copy()
        rows.launch(grid=(1, -(-256 // block[1])), block=block)(x, out)
        np.testing.assert_array_equal(out, y + x)


def test_what_is_free_for_every_grid_takes_every_grid(device, random):
    program = vortex.compile(source="""
@launch(grid = [4], block = 64)
kernel own(x: &mut Tensor<i32, [N]>) {
    if thread.global_id < N { x[thread.global_id] += 1 }
}
@launch(grid = [4], block = 64)
kernel counted(x: &mut Tensor<u32, [1]>) {
    if thread.local_id == 0 { atomic_add(&mut x[0], 64) }
}
""", device=device)
    x = random.integers(-1000, 1000, 1000, dtype=np.int32)
    for blocks in (1, 4, 16):
        out = x.copy()
        program.own.launch(grid=blocks)(out)
        np.testing.assert_array_equal(out, x + (np.arange(1000) < 64 * blocks))
    out = np.zeros(1, np.uint32)
    program.counted.launch(grid=(2, 3, 5))(out)
    assert out[0] == 30 * 64


@pytest.mark.parametrize("own", [True, False])
def test_what_is_free_for_some_blocks_only_is_refused_for_more(device, own):
    head = "@launch(grid = [3, 2], block = 4)\n" if own else ""
    tail = "" if own else "fn main() {\n    var x = full(0u32, [4096])\n    k.launch(grid = [3, 2], block = 4)(&mut x)\n}\n"
    program = vortex.compile(source=head + """kernel k(x: &mut Tensor<u32, [N]>) {
    let at = (block.id.y * 3 + block.id.x) * 4 + thread.local_id
    if at < N { x[at] += 1 }
}
""" + tail, device=device)
    for grid in [(3, 2), (3, 40), (2, 7)]:
        out = np.zeros(4096, np.uint32)
        program.k.launch(grid=grid, block=4)(out)
        assert out.max() == 1 and out.sum() == 4 * grid[0] * grid[1]
    with pytest.raises(vortex.Error, match="`k` is proven free of races for at most 3 blocks along x, and the launch has 4"):
        program.k.launch(grid=(4, 2), block=4)(np.zeros(4096, np.uint32))


def test_fewer_blocks_than_a_proof_counts_on_are_refused_where_the_kernel_asks_for_their_number(device):
    program = vortex.compile(source="""
@launch(grid = [4], block = 4)
kernel k(x: &mut Tensor<u32, [N]>) {
    let at = (block.id.x + 12 / grid.dim.x) % 4 * 4 + thread.local_id
    if at < N { x[at] += 1 }
}
""", device=device)
    out = np.zeros(16, np.uint32)
    program.k.launch(grid=4)(out)
    assert (out == 1).all()
    for grid in (3, 5):
        with pytest.raises(vortex.Error, match=f"`k` is proven free of races for 4 blocks along x, and the launch has {grid}"):
            program.k.launch(grid=grid)(out)


def test_a_kernel_may_say_that_its_threads_never_meet(device, arrays):
    x, y = arrays
    rows = vortex.compile(source=ROWS.replace("kernel rows", "@unchecked(races)\nkernel rows"), device=device).rows
    rows.launch(grid=(4, 4), block=(1, 64))(x, y)


def test_warps_are_judged_by_the_block_of_the_launch(device, random):
    program = vortex.compile(source="""
@launch(grid = [1], block = [32, 4])
kernel sums(x: &Tensor<i32, [N]>, out: &mut Tensor<i32, [R]>) {
    if thread.id.y < 3 {
        let total = warp.sum(x[thread.id.y * 32 + thread.id.x])
        if thread.id.x == 0 { out[thread.id.y] = total }
    }
}
""", name="sums.vx", device=device)
    x = random.integers(-1000, 1000, 128, dtype=np.int32)
    out = np.zeros(4, np.int32)
    for block in [None, (32, 8)]:
        program.sums.launch(grid=1, block=block)(x, out)
        np.testing.assert_array_equal(out[:3], x.reshape(4, 32).sum(axis=1)[:3])
    with pytest.raises(vortex.Error, match=r"E0451(.|\n)*sums\.vx:5"):
        program.sums.launch(grid=1, block=(16, 8))(x, out)


def test_a_block_that_nobody_gives_is_judged_too(device):
    program = vortex.compile(source="""
kernel k(x: &mut Tensor<i32, [N]>) {
    let t: Tensor<i32, [64]> @shared
    t[thread.local_id % 64] = thread.local_id as i32
    sync_block()
    if thread.global_id < N { x[thread.global_id] = t[thread.local_id % 64] }
}
fn main() {
    var x = full(0i32, [256])
    k.launch(grid = [4], block = 64)(&mut x)
}
""", device=device)
    out = np.zeros(256, np.int32)
    program.k.launch(grid=4, block=64)(out)
    np.testing.assert_array_equal(out, np.arange(256) % 64)
    with pytest.raises(vortex.Error, match="E0630"):  # 256 threads
        program.k.launch(grid=1)(out)


def test_a_file_refuses_what_the_program_never_launches(tmp_path, arrays):
    x, y = arrays
    program = vortex.compile(source=LAUNCHED)
    given = program.rows.launch(block=(1, 64))
    (tmp_path / "rows.vxk").write_bytes(program._native.build(given._info["unique_name"], given._request("cpu", ())))
    rows = vortex.load(tmp_path / "rows.vxk")
    out = y.copy()
    rows.launch(grid=(1, 4))(x, out)
    np.testing.assert_array_equal(out, y + x)
    for refused in (rows.launch(grid=(4, 4)), lambda x, out: rows.launch(grid=(4, 4)).prepare(x, out)):
        with pytest.raises(vortex.Error, match="`rows` is proven free of races for 1 block along x, and the launch has 4"):
            refused(x, out)


NO_GRIDS = """
kernel two_extents(a: &Tensor<u32, [N1]>, out: &mut Tensor<u32, [N1 - 1]>) {
    let i = thread.global_id
    if i + 1 < N1 {
        out[i] = a[i] + a[i + 1]
    }
}

kernel an_axis_without_extent(a: &Tensor<u32, [N1]>, out: &mut Tensor<u32, [M]>) {
    let i = thread.global_id
    if thread.global_id.z == 0 && i < M && i + 1 < N1 {
        out[i] = a[i] + a[i + 1]
    }
}

kernel no_element(a: &Tensor<u32, [N1]>, out: &mut Tensor<u32, [M]>) {
    let i = thread.global_id + 1
    if i <= M && i < N1 {
        out[i - 1] = a[i - 1] + a[i]
    }
}
"""


@pytest.mark.parametrize("kernel", ["two_extents", "an_axis_without_extent", "no_element"])
@pytest.mark.parametrize("where", ["device", "interpreter"])
def test_kernels_whose_grid_comes_with_the_launch_only(device, kernel, where, random):
    a = random.integers(0, 2**31, 100, dtype=np.uint32)
    out = np.zeros(99, np.uint32)
    kernel = getattr(vortex.compile(source=NO_GRIDS, device=device if where == "device" else where), kernel)
    kernel.launch(grid=4, block=32)(a, out)
    np.testing.assert_array_equal(out, a[:-1] + a[1:])
    with pytest.raises(vortex.Error, match="grid"):
        kernel(a, out)
    with pytest.raises(vortex.Error, match="grid"):
        kernel.launch(block=32)(a, out)
