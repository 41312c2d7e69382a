"""What a `break` gives is the value of its loop, in threads and in code of the block."""
import numpy

PROGRAM = """
@launch(grid = [1], block = 64)
kernel threads(x: &Tensor<u32, [64]>, y: &mut Tensor<u32, [64]>) {
    let i = thread.local_id
    let first = loop {
        var k = i
        loop {
            if x[k % 64] % 7 == 0 { break }
            k += 1
        }
        break k
    }
    var v = 1u32
    let power = loop {
        v *= 2
        if v > x[i] { break v }
    }
    let pair = if i % 2 == 0 { loop { v += 1; if v % 5 == 0 { break v } } } else { 3u32 }
    y[i] = (first as u32 * 1000 + power) * 1000 + pair
}

kernel block(x: &Tensor<u32, [64]>) -> Tensor<u32, [2]> {
    var out: Tensor<u32, [2]>
    var k = 0usize
    let at = loop {
        k += 1
        if x[k] > 30 { break k }
    }
    out[0] = at as u32
    out[1] = 1 + loop { k += 1; if k % 10 == 0 { break k as u32 } }
    return out
}

fn main() {
    let dir = args()[0]
    let x: Tensor<u32, [64]> = load_npy(format("{}/x.npy", dir))
    var y = zeros::<u32>([64])
    threads(&x, &mut y)
    save_npy(format("{}/y.npy", dir), y)
    save_npy(format("{}/z.npy", dir), block(&x))
}
"""


def test_they_are(vortex, tmp_path, backend):
    x = numpy.random.default_rng(1).permutation(64).astype(numpy.uint32)
    numpy.save(tmp_path / "x.npy", x)
    (tmp_path / "p.vx").write_text(PROGRAM)
    vortex("run", tmp_path / "p.vx", *backend, "--", tmp_path)
    wanted = []
    for i in range(64):
        first = next(k for k in range(i, 200) if x[k % 64] % 7 == 0)
        power = 2
        while power <= x[i]:
            power *= 2
        pair = next(v for v in range(power + 1, power + 6) if v % 5 == 0) if i % 2 == 0 else 3
        wanted.append((first * 1000 + power) * 1000 + pair)
    assert numpy.load(tmp_path / "y.npy").tolist() == wanted
    at = next(k for k in range(1, 64) if x[k] > 30)
    assert numpy.load(tmp_path / "z.npy").tolist() == [at, 1 + (at // 10 + 1) * 10]
