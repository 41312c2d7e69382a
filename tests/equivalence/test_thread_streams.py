"""Loops of threads over memory, which GPUs run several iterations at a time: with the conditions that hold in all of them known before the loop, and with
those that do not. Masks and views end anywhere, also before the loop begins; NumPy computes the same in f64."""
import numpy as np
import pytest

SOURCE = """
@launch(grid = [ROWS], block = THREADS)
kernel stream(x: &Tensor<f32, [N]>, y: &mut Tensor<f32, [L]>, sums: &mut Tensor<f32, [S]>, limit: i64, shift: i64, by: f32) {
    let t = thread.local_id
    let row = block.id * PITCH
    var total: f32 = 0.0
    for s in range(START, (N + EXTRA) as usize, STEP) {
        let i = s + t
        var value: f32 = 0.25
        if (i as i64) < limit {
            READ
        }
        total += value
        if (i as i64 + shift) < limit {
            put
        }
    }
    sums[block.id * THREADS + t] = total
}
"""


def expected(x, length, rows, threads, pitch, start, end, step, offset, limit, shift, by, outside):
    y, sums = np.full(length, 7.0), np.zeros((rows, threads))
    for row in range(rows):
        for s in range(start, end, step):
            for t in range(threads):
                i = s + t
                value = 0.25
                if i < limit:
                    place = row * pitch + i + offset
                    value = float(x[place]) if place < len(x) else outside
                sums[row, t] += value
                place = row * pitch + i
                if i + shift < limit and place < length:
                    y[place] = value / by
    return y, sums


@pytest.mark.parametrize("seed", range(40))
def test_conditions_hold_anywhere(vortex, device, tmp_path, seed):
    random = np.random.default_rng()
    threads, rows = int(random.choice([32, 64, 96])), int(random.integers(1, 4))
    step = int(random.choice([threads, threads, 7, 2 * threads]))
    n = int(random.integers(1, 900))
    pitch, start, extra = (int(random.choice(each)) for each in ([0, 1, 100, n], [0, 0, 5, n + 9], [0, 3, 40]))
    offset, limit, shift = int(random.choice([0, 0, 1, 30])), int(random.choice([n, n, n // 2, 0, -5, 2 * n])), int(random.choice([0, -3, 4]))
    by = float(random.choice([1, 3, 0.1, -2]))
    length = int(random.choice([3, n, rows * max(pitch, 1) + n + extra + 3 * threads]))
    disjoint = step >= threads and pitch == 0 and rows == 1  # else blocks would store into each other's places
    is_tested = bool(random.integers(2))  # else reads outside give 0, and stores there are dropped
    put = ("if row + i < L { y[row + i] = value / by }" if is_tested else "y[row + i] = value / by") if disjoint else "if value / by > 1.0e30 { total += 1.0 }"
    text = SOURCE
    for name, value in {"ROWS": rows, "THREADS": threads, "PITCH": pitch, "START": start, "EXTRA": extra, "STEP": step, "OFFSET": offset}.items():
        text = text.replace(name, str(value))
    place = f"row + i + {offset}"
    read = f"value = 0.5\n            if {place} < N {{ value = x[{place}] }}" if is_tested else f"value = x[{place}]"
    text = text.replace("            put\n", "            " + put + "\n").replace("READ", read)
    text += f"""
fn main() {{
    let all: Tensor<f32, [A]> = load_npy("{tmp_path}/x.npy")
    var y: Tensor<f32, [{length + 4096}]> = Tensor.full([{length + 4096}], 7.0)
    var sums: Tensor<f32, [{rows * threads}]> = zeros()
    stream(&all[0..{n}], &mut y[0..{length}], &mut sums, {limit}, {shift}, {by})
    save_npy("{tmp_path}/y.npy", y.to_host())
    save_npy("{tmp_path}/sums.npy", sums.to_host())
}}
"""
    x = random.integers(-50, 50, n).astype("f4")
    np.save(tmp_path / "x.npy", np.pad(x, (0, 4096), constant_values=99))  # what nobody may read
    path = tmp_path / "stream.vx"
    path.write_text(text)
    vortex("run", path, "--device", device, "--allow", "races")
    y, sums = expected(x, length, rows, threads, pitch, start, n + extra, step, offset, limit, shift, float(np.float32(by)), 0.5 if is_tested else 0)
    np.testing.assert_array_equal(np.load(tmp_path / "sums.npy").reshape(rows, threads), sums, err_msg=text)
    if disjoint:
        np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.pad(y.astype("f4"), (0, 4096), constant_values=7), err_msg=text)
