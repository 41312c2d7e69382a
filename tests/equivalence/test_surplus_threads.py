"""Threads of the last block that have no element of their own load for their block as the others do, and store nothing."""
import numpy
import pytest

KERNELS = """
const TILE: usize = 64

// Each block passes all of x through shared memory; the grid is that of the result.
@launch(block = TILE)
kernel total_plus(x: &Tensor<i32, [N]>, y: &mut Tensor<i32, [M]>) {
    let tile: Tensor<i32, [TILE]> @shared
    var sum = y[thread.global_id]
    for first in range(0, N, TILE) {
        let j = first + thread.local_id
        tile[thread.local_id] = if j < N { x[j] } else { 0 }
        sync_block()
        for k in 0..TILE {
            sum += tile[k]
        }
        sync_block()
    }
    y[thread.global_id] = sum
}

// Rows past the last one load the weights of their columns.
@launch(block = [32, 4])
kernel weighted(x: &Tensor<i32, [H, W]>, weights: &Tensor<i32, [W]>, y: &mut Tensor<i32, [H, W]>) {
    let row: Tensor<i32, [32]> @shared
    let i = thread.global_id.x
    if thread.id.y == 3 {
        row[thread.id.x] = if i < W { weights[thread.global_id.x] } else { 0 }
    }
    sync_block()
    y[thread.global_id.y, thread.global_id.x] = x[thread.global_id.y, thread.global_id.x] * row[thread.id.x]
}

// Threads without an element of x see the counters, and add nothing.
kernel counted(x: &Tensor<i32, [N]>, counts: &mut Tensor<i32, [2]>) {
    let v = x[thread.global_id]
    if v == 0 {
        atomic_add(&mut counts[0], 1)
    } else {
        atomic_add(&mut counts[1], 1)
    }
}

// What surplus threads read is not a race.
kernel doubled(x: &mut Tensor<i32, [N]>) {
    let i = min(thread.global_id, N - 1)
    @unchecked(races)
    x[thread.global_id] = x[i] * 2
}

fn main() {
    let dir = args()[0]
    let x: Tensor<i32, [N]> = load_npy(format("{}/x.npy", dir))
    var y: Tensor<i32, [M]> = load_npy(format("{}/y.npy", dir))
    total_plus(&x, &mut y)
    save_npy(format("{}/total.npy", dir), y)
    let image: Tensor<i32, [H, W]> = load_npy(format("{}/image.npy", dir))
    let weights: Tensor<i32, [W]> = load_npy(format("{}/weights.npy", dir))
    var product: Tensor<i32, [H, W]> = zeros()
    weighted(&image, &weights, &mut product)
    save_npy(format("{}/product.npy", dir), product)
    var counts = zeros::<i32>([2])
    counted(&x, &mut counts)
    save_npy(format("{}/counts.npy", dir), counts)
    var twice = x.copy()
    doubled(&mut twice)
    save_npy(format("{}/twice.npy", dir), twice)
}
"""


@pytest.mark.parametrize("backend", [("--device", "cpu"), ("--device", "interpreter"), ("--check",)], ids=lambda words: words[-1])
@pytest.mark.parametrize("n, m, h, w", [(150, 70, 5, 40), (64, 64, 4, 32), (1, 1, 1, 1), (65, 130, 9, 33)])
def test_surplus_threads_load_and_do_not_store(vortex, tmp_path, backend, n, m, h, w):
    rng = numpy.random.default_rng()
    x, y = rng.integers(0, 3, n, dtype=numpy.int32), rng.integers(0, 9, m, dtype=numpy.int32)
    image, weights = rng.integers(0, 9, (h, w), dtype=numpy.int32), rng.integers(1, 9, w, dtype=numpy.int32)
    for name, array in {"x": x, "y": y, "image": image, "weights": weights}.items():
        numpy.save(tmp_path / f"{name}.npy", array)
    path = tmp_path / "surplus.vx"
    path.write_text(KERNELS)
    vortex("run", path, *backend, "--", tmp_path)
    results = {"total": y + x.sum(), "product": image * weights, "counts": [(x == 0).sum(), (x != 0).sum()], "twice": 2 * x}
    for name, expected in results.items():
        assert (numpy.load(tmp_path / f"{name}.npy") == expected).all(), name
