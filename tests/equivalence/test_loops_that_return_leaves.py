"""Loops of called functions that only `return` leaves end for surplus threads, whose elements are 0: the test stands around the call."""
import numpy
import pytest

PROGRAM = """
fn steps(n: u32) -> u32 {
    var at = n
    var count: u32 = 0
    loop {
        if at == 1 { return count }
        if at % 2 == 0 { at = at / 2 } else { at = 3 * at + 1 }
        count += 1
    }
}
fn pair(n: u32) -> (u32, f32) {
    var at = n
    loop {
        if at % 7 == 3 { return (at, 0.5) }
        loop {
            if at % 5 == 4 { return (at, 1.5) }
            at += n
            if at > 100000 { break }
        }
        if at > 100000 { return (at, 2.5) }
    }
}
fn twice(n: u32, most: u32) -> u32 { return steps(min(n, most)) + steps(n) }
kernel collatz(x: &Tensor<u32, [N]>, y: &mut Tensor<u32, [N]>) { y[thread.global_id] = steps(x[thread.global_id]) }
kernel pairs(x: &Tensor<u32, [H, W]>, y: &mut Tensor<f32, [H, W]>) {
    let (number, half) = pair(x[thread.global_id.y, thread.global_id.x])
    y[thread.global_id.y, thread.global_id.x] = number as f32 + half
}
// What a call is given is computed by all threads, and what follows runs for all.
kernel nested(x: &Tensor<u32, [N]>, y: &mut Tensor<u32, [N]>) {
    let i = thread.global_id
    let all = warp.sum(select(i < N, 1u32, 0u32))
    let taken = twice(x[i], 20) * 100
    y[i] = taken + all + warp.sum(select(i < N, 2u32, 0u32))
}
fn main() {
    let dir = args()[0]
    let x: Tensor<u32, [N]> = load_npy(format("{}/x.npy", dir))
    let z: Tensor<u32, [H, W]> = load_npy(format("{}/z.npy", dir))
    let a: Tensor<u32, [N]> = zeros()
    let b: Tensor<u32, [N]> = zeros()
    let c: Tensor<f32, [H, W]> = zeros()
    collatz(&x, &mut a)
    nested(&x, &mut b)
    save_npy(format("{}/b.npy", dir), b)
    pairs(&z, &mut c)
    save_npy(format("{}/a.npy", dir), a)
    save_npy(format("{}/c.npy", dir), c)
}
"""


def steps(n):
    count = 0
    while n != 1:
        n, count = n // 2 if n % 2 == 0 else 3 * n + 1, count + 1
    return count


def pair(n):
    at = n
    while True:
        if at % 7 == 3:
            return at + 0.5
        while True:
            if at % 5 == 4:
                return at + 1.5
            at += n
            if at > 100000:
                break
        if at > 100000:
            return at + 2.5


@pytest.mark.parametrize("size", [1, 33, 257])
def test_they_end(vortex, tmp_path, backend, size):
    rng = numpy.random.default_rng()
    x, z = rng.integers(1, 99, size).astype(numpy.uint32), rng.integers(1, 99, (3, size)).astype(numpy.uint32)
    numpy.save(tmp_path / "x.npy", x)
    numpy.save(tmp_path / "z.npy", z)
    (tmp_path / "p.vx").write_text(PROGRAM)
    vortex("run", tmp_path / "p.vx", *backend, "--", tmp_path)
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "a.npy"), [steps(int(n)) for n in x])
    beside = [min(32, size - i // 32 * 32) for i in range(size)]
    twice = [steps(min(int(n), 20)) + steps(int(n)) for n in x]
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "b.npy"), numpy.multiply(twice, 100) + numpy.multiply(beside, 3))
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "c.npy"), [[pair(int(n)) for n in row] for row in z])
