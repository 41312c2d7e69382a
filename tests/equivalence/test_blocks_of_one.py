"""Blocks of one thread compute what blocks of more do, whatever their control flow depends on."""
import numpy
import pytest

KERNELS = """
@launch(grid = [N], block = 1)
kernel loop_to_data(x: &Tensor<u32, [N]>, y: &mut Tensor<u32, [N]>) {
    let i = thread.global_id
    var sum: u32 = 0
    for j in 0..x[i] as usize {
        sum += j as u32 + x[j % N]
    }
    y[i] = sum
}
@launch(grid = [N], block = [1, 1, 1])
kernel while_data(x: &Tensor<u32, [N]>, y: &mut Tensor<u32, [N]>) {
    let i = block.id.x
    var j: u32 = 0
    var sum: u32 = thread.id.y as u32
    while j < x[i] && sum < 90 {
        j += 1
        if x[(i + j as usize) % N] % 3 == 0 {
            continue
        }
        sum += j
    }
    y[i] = sum
}
@launch(grid = [1], block = 1)
kernel carried(x: &Tensor<u32, [N]>, y: &mut Tensor<u32, [N]>) {
    var last = x[thread.global_id]
    for i in 0..N {
        last = if last % 2 == 0 { last / 2 + x[i] } else { last * 3 + 1 }
        y[i] = last
    }
}
@launch(grid = [N], block = 1)
kernel of_a_warp(x: &Tensor<u32, [N]>, y: &mut Tensor<u32, [N]>) {
    let i = thread.global_id
    var own = warp.sum(x[i])
    while own > 7 {
        own = warp.sum(own) - 7
    }
    y[i] = own + thread.local_id as u32
}
@launch(grid = [N], block = 1)
kernel through_shared(x: &Tensor<u32, [N]>, y: &mut Tensor<u32, [N]>) {
    let tile: Tensor<u32, [4]> @shared
    let t = thread.local_id
    tile[t] = x[block.id.x]
    sync_block()
    for k in 1..4 {
        tile[k] = tile[k - 1] + x[(block.id.x + k) % N]
    }
    sync_block()
    y[thread.global_id] = tile[3] % (tile[0] + 1)
}
fn main() {
    let dir = args()[0]
    let x: Tensor<u32, [N]> = load_npy(format("{}/x.npy", dir))
    var y: Tensor<u32, [N]> = zeros()
"""
NAMES = ["loop_to_data", "while_data", "carried", "of_a_warp", "through_shared"]
SAVES = "".join(f'    {name}(&x, &mut y)\n    save_npy(format("{{}}/{name}.npy", dir), y.copy())\n' for name in NAMES) + "}\n"


def expected(x):
    """By the same steps in Python."""
    n, y = len(x), {name: [0] * len(x) for name in NAMES}
    last = x[0]
    for i in range(n):
        y["loop_to_data"][i] = sum(j + x[j % n] for j in range(x[i]))
        j = total = 0
        while j < x[i] and total < 90:
            j += 1
            total += 0 if x[(i + j) % n] % 3 == 0 else j
        y["while_data"][i] = total
        last = (last // 2 + x[i] if last % 2 == 0 else last * 3 + 1) % 2**32
        y["carried"][i] = last
        y["of_a_warp"][i] = x[i] if x[i] <= 7 else (x[i] - 1) % 7 + 1
        y["through_shared"][i] = sum(x[(i + k) % n] for k in range(4)) % (x[i] + 1)
    return y


@pytest.mark.parametrize("n", [4, 33, 100])
def test_control_flow_on_data_in_blocks_of_one(vortex, tmp_path, backend, n):
    x = numpy.random.default_rng().integers(0, 60, n, dtype=numpy.uint32)
    numpy.save(tmp_path / "x.npy", x)
    path = tmp_path / "one.vx"
    path.write_text(KERNELS + SAVES)
    vortex("run", path, *backend, "--", tmp_path)
    for name, values in expected([int(each) for each in x]).items():
        assert numpy.load(tmp_path / f"{name}.npy").tolist() == values, name
