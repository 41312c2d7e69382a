"""Loops that end by what threads store or draw end for surplus threads too, whose stores are dropped and whose numbers are 0."""
import numpy
import pytest

PROGRAM = """
kernel tickets(x: &mut Tensor<u32, [N]>, y: &mut Tensor<u32, [M]>, next: &mut Tensor<u32, [1]>) {
    loop {
        let t = atomic_add(&mut next[0], 1)
        if t >= M as u32 { break }
        y[t] = t + 1
    }
    x[thread.global_id] = 1
}

kernel while_tickets(x: &mut Tensor<u32, [H, W]>, y: &mut Tensor<u32, [M]>, next: &mut Tensor<u32, [1]>) {
    var t = atomic_add(&mut next[0], 1)
    while t < M as u32 {
        y[t] = t + 1
        t = atomic_add(&mut next[0], 1)
    }
    x[thread.global_id.y, thread.global_id.x] = 1
}

kernel counts(x: &mut Tensor<u32, [N]>) {
    let i = thread.global_id
    while x[i] < 10 {
        x[i] += 1
    }
}

kernel retries(x: &mut Tensor<u32, [N]>, c: &mut Tensor<u32, [1]>) {
    loop {
        let old = atomic_load(&c[0])
        if atomic_compare_exchange(&mut c[0], old, old + 2) == old { break }
    }
    x[thread.global_id] = 1
}

// The number that ends it is the loop's value.
kernel numbers(x: &mut Tensor<u32, [N]>, next: &mut Tensor<u32, [1]>) {
    let t = loop {
        let t = atomic_add(&mut next[0], 1)
        if t % 2 == 1 { break t }
    }
    x[thread.global_id] = t
}

// Surplus threads fill shared memory with the others.
@launch(block = 64)
kernel filled(x: &Tensor<u32, [M]>, y: &mut Tensor<u32, [N]>) {
    let s: Tensor<u32, [256]> @shared
    var i = thread.local_id
    while i < 256 {
        s[i] = x[i]
        i += 64
    }
    sync_block()
    y[thread.global_id] = s[3 * thread.local_id]
}

fn main() {
    let dir = args()[0]
    var x = zeros::<u32>([100]); var y = zeros::<u32>([1000]); var next = zeros::<u32>([1])
    tickets(&mut x, &mut y, &mut next)
    assert_eq(x.to_host(), vec![1u32; 100])
    save_npy(format("{}/y.npy", dir), y)
    var image = zeros::<u32>([7, 33])
    y = zeros::<u32>([1000])
    next = zeros::<u32>([1])
    while_tickets(&mut image, &mut y, &mut next)
    save_npy(format("{}/z.npy", dir), y)
    x = zeros::<u32>([100])
    counts(&mut x)
    assert_eq(x.to_host(), vec![10u32; 100])
    var c = zeros::<u32>([1])
    retries(&mut x, &mut c)
    assert_eq(c.to_host(), vec![200u32])
    c = zeros::<u32>([1])
    numbers(&mut x, &mut c)
    save_npy(format("{}/numbers.npy", dir), x)
    var all = vec![0u32; 256]
    for i in 0..256 { all[i] = i as u32 }
    filled(&Tensor.from_host(all), &mut x)
    save_npy(format("{}/filled.npy", dir), x)
}
"""


def test_they_end(vortex, tmp_path, backend):
    (tmp_path / "p.vx").write_text(PROGRAM)
    vortex("run", tmp_path / "p.vx", *backend, "--", tmp_path)
    for name in "yz":
        assert numpy.load(tmp_path / f"{name}.npy").tolist() == list(range(1, 1001))
    numbers = numpy.load(tmp_path / "numbers.npy")
    assert len(set(numbers.tolist())) == 100 and (numbers % 2 == 1).all()
    assert numpy.load(tmp_path / "filled.npy").tolist() == [3 * (i % 64) for i in range(100)]


def test_lanes_that_wait_for_their_warp_are_refused(vortex, tmp_path):
    (tmp_path / "p.vx").write_text("""
kernel k(x: &mut Tensor<u32, [N]>) {
    let i = thread.global_id
    while warp.any(x[i] < 10) {
        x[i] += 1
    }
}
""")
    assert "surplus threads never leave this loop" in vortex("check", tmp_path / "p.vx", status=1).stderr
