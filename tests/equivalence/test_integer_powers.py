"""Powers of whole integer tensors, and squares of squares: each value is computed once, on however many ways it is reached."""
import numpy as np
import pytest

PROGRAM = """
kernel powers(x: &Tensor<i32, [N]>, y: &Tensor<i32, [N]>) -> Tensor<i32, [N]> {{ return x ** y }}
kernel squares(x: &Tensor<i32, [N]>) -> Tensor<i32, [N]> {{
  let a0 = x + 1
{lines}
  return a40
}}
fn main() {{
  let x: Tensor<i32, [{n}]> = load_npy("x.npy")
  let y: Tensor<i32, [{n}]> = load_npy("y.npy")
  save_npy("p.npy", powers(&x, &y))
  save_npy("s.npy", squares(&x))
}}
"""


@pytest.mark.parametrize("where", ["interpreter", "device", "metal3.1"])
def test_powers_and_squares_of_squares(vortex, device, tmp_path, where):
    random = np.random.default_rng()
    n = int(random.integers(1, 300))
    x, y = random.integers(-9, 10, n, dtype=np.int32), random.integers(0, 40, n, dtype=np.int32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    path = tmp_path / "powers.vx"
    lines = "\n".join(f"  let a{i + 1} = a{i} * a{i} + a{i}" for i in range(40))
    path.write_text(PROGRAM.format(n=n, lines=lines))
    vortex("run", path, "--device", device if where == "device" else where, cwd=tmp_path)
    wrapped = [pow(int(a), int(b), 1 << 32) for a, b in zip(x, y)]
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), np.array(wrapped, np.uint32).view(np.int32))
    a = (x + 1).astype(np.uint32)
    for _ in range(40):
        a = a * a + a
    np.testing.assert_array_equal(np.load(tmp_path / "s.npy"), a.view(np.int32))
