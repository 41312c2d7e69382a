"""A kernel that is compiled for the sizes of its shared tensors is compiled again for others, in one program and across programs that share a
cache."""
import pytest

SOURCE = """
@launch(grid = [1], block = 32)
kernel reversed(x: &Tensor<i32, [N]>, y: &mut Tensor<i32, [N]>) {
    let tile: Tensor<i32, [N]> @shared
    for i in range(thread.local_id, N, 32) {
        tile[i] = x[i]
    }
    sync_block()
    for i in range(thread.local_id, N, 32) {
        y[i] = tile[N - 1 - i]
    }
}
fn once(n: usize) {
    var values: Vec<i32> = vec![]
    for i in 0..n { values.push(i as i32) }
    let x: Tensor<i32, [S]> = Tensor.from_host(values)
    var y = zeros::<i32>([n])
    reversed(&x, &mut y)
    let got = y.to_host()
    for i in 0..n { assert_eq(got[i], (n - 1 - i) as i32) }
    print(got.len())
}
fn main() {
    for text in args() {
        once(parse_int(text) as usize)
    }
}
"""


@pytest.mark.parametrize("calls", [[[40, 50, 40]], [[40], [50], [40]], [[100], [7, 100, 99]]])
def test_every_size_gets_its_own_code(vortex, tmp_path, backend, calls):
    path = tmp_path / "fixed.vx"
    path.write_text(SOURCE)
    for sizes in calls:
        assert vortex("run", path, *backend, "--", *sizes).stdout.split() == [str(size) for size in sizes]
