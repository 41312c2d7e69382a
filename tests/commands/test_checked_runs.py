"""What --check reports of copies in flight, loops said to be parallel, warps, tiles without a value and endless loops: neither less nor more."""
import pytest

COPIES = """
@launch(grid = 1, block = 64)
kernel k(x: &mut Tensor<f32, [128]>, out: &mut Tensor<f32, [64]>) {
    let t = thread.local_id
    var a: Tensor<f32, [64]> @shared
    async_stage(&x[0..64], &mut a)
    BODY
    out[t] = a[t]
}
fn main() {
    var x: Tensor<f32, [128]> = full(1.0)
    var out: Tensor<f32, [64]> = zeros()
    k(&mut x, &mut out)
    print(out.to_host()[5])
}
"""
LOOPS = """
kernel k(x: &Tensor<f32, [N]>, y: &mut Tensor<f32, [N]>, z: &mut Tensor<f32, [N]>) {
    @parallel for i in 0..N {
        BODY
    }
}
fn main() {
    var y: Tensor<f32, [100]> = zeros()
    var z: Tensor<f32, [100]> = zeros()
    k(&full(2.0, [100]), &mut y, &mut z)
    print(y.to_host()[3])
}
"""
WARPS = """
@launch(grid = [1], block = BLOCK)
kernel k(x: &Tensor<f32, [BLOCK]>) -> Tensor<f32, [BLOCK]> {
    let s: Tensor<f32, [BLOCK]> @shared
    var out: Tensor<f32, [BLOCK]>
    let t = thread.local_id
    s[t] = x[t]
    FIRST
    let first = s[0]
    SECOND
    s[t] = first + 1.0
    sync_block()
    out[t] = s[BLOCK - 1 - t]
    return out
}
fn main() {
    print(k(&full(1.0)).to_host()[3])
}
"""
TILES = """
@unchecked(init)
@tile(m = 64)
kernel k(y: &Tensor<f32, [N]>) -> Tensor<f32, [N]> {
    BODY
}
fn main() {
    print(k(&full(1.0, [64])).to_host()[0])
}
"""


def expect(vortex, tmp_path, source, found, *flags):
    path = tmp_path / "checked.vx"
    path.write_text(source)
    done = vortex("run", path, "--check", *flags, status=1 if found else 0)
    if found:
        assert f"error[{found}]" in done.stderr, done.stderr
    return done


@pytest.mark.parametrize("body, found", [
    ("x[t] = 5.0\n    sync_block()", "E0603"),
    ("x[63 - t] = 5.0\n    sync_block()", "E0603"),
    ("if t == 9 { atomic_add(&mut x[3], 1.0) }\n    sync_block()", "E0603"),
    ("x[t + 64] = x[t]\n    sync_block()", None),  # reads of the source, writes beside it
    ("sync_block()\n    x[t] = 5.0", None),
    ("sync_block()\n    if t == 9 { atomic_add(&mut x[3], 1.0) }", None),
])
def test_a_copy_in_flight_reads_its_source(vortex, tmp_path, body, found):
    done = expect(vortex, tmp_path, COPIES.replace("BODY", body), found)
    if found:
        assert "a copy in flight that reads it" in done.stderr


@pytest.mark.parametrize("body, found", [
    ("y[i % 7] = x[i]", "E0603"),
    ("if i > 0 { y[i] = x[i] + y[i - 1] }", "E0603"),
    ("z[N - 1 - i] = y[i]\n        y[i] = z[i]", "E0603"),
    ("if x[i] > 1.0 { y[0] = 1.0 }", "E0603"),
    ("y[i] = x[N - 1 - i]", None),
    ("y[N - 1 - i] = x[i] + y[N - 1 - i]", None),
    ("y[i] = x[i]\n        z[i] = y[i] + x[0]", None),
    ("for j in 0..3 { y[i] += x[j] }", None),
])
def test_iterations_of_a_parallel_loop_must_not_meet(vortex, tmp_path, body, found):
    expect(vortex, tmp_path, LOOPS.replace("BODY", body), found)
    expect(vortex, tmp_path, LOOPS.replace("BODY", body).replace("@parallel ", ""), None)


@pytest.mark.parametrize("block, first, second, found", [
    (32, "sync_warp()", "sync_warp()", None), (20, "sync_warp()", "sync_warp()", None), (64, "sync_block()", "sync_block()", None),
    (32, "", "sync_warp()", "E0603"), (32, "sync_warp()", "", "E0603"), (64, "sync_warp()", "sync_block()", "E0603"),
    (64, "sync_block()", "sync_warp()", "E0603"),
])
def test_sync_warp_orders_what_all_threads_of_one_warp_read(vortex, tmp_path, block, first, second, found):
    expect(vortex, tmp_path, WARPS.replace("BLOCK", str(block)).replace("FIRST", first).replace("SECOND", second), found)


@pytest.mark.parametrize("body, found", [
    ("let acc: Tensor<f32, [64]> @local\n    return acc", "E0602"),
    ("var acc: Tensor<f32, [64]> @local\n    for i in 0..2 { acc += y[block_m..+64] }\n    return acc", "E0602"),
    ("var acc: Tensor<f32, [64]> @local\n    acc = y[block_m..+64]\n    acc += acc\n    return acc", None),
    ("var acc: Tensor<f32, [64]> @local = zeros()\n    acc += y[block_m..+64]\n    return acc", None),
    ("var acc: Tensor<f32, [64]> @local\n    for i in 0..3 {\n        if i == 0 { acc = y[block_m..+64] } else { acc += acc }\n    }\n    return acc", None),
])
def test_a_local_tile_has_no_value_before_it_is_written(vortex, tmp_path, body, found):
    expect(vortex, tmp_path, TILES.replace("BODY", body), found)


def test_elements_of_a_threads_array_are_named_within_it(vortex, tmp_path):
    done = expect(vortex, tmp_path, """
@launch(grid = [2], block = 64)
kernel k(y: &mut Tensor<f32, [128]>) {
    let t: Tensor<f32, [4]> @local
    for i in 0..4 {
        if i < 3 || thread.global_id != 70 { t[i] = 1.0 }
    }
    sync_block()
    y[thread.global_id] = t[0] + t[3]
}
fn main() {
    var y: Tensor<f32, [128]> = zeros()
    k(&mut y)
}
""", "E0602")
    assert "element 3 of `t`" in done.stderr and "thread (6, 0, 0) of block (1, 0, 0)" in done.stderr, done.stderr


@pytest.mark.parametrize("loop, found", [
    ("while atomic_load(&mut x[0], .acquire) < 64 { x[1] = 1 }", "E0455"),
    ("var i: u32 = 0\n        while i != 7 {\n            i ^= 2\n            atomic_add(&mut x[1], 1)\n        }", "E0606"),
    ("var i: u32 = 1\n        loop {\n            if i == 0 { break }\n            i ^= 6\n            atomic_add(&mut x[1], 1)\n        }", "E0606"),
    ("for i in 0..1000 { atomic_add(&mut x[1], 1) }", None),
])
def test_a_loop_without_end_ends_with_an_error(vortex, tmp_path, loop, found):
    source = """
@launch(grid = [64], block = 128)
kernel k(x: &mut Tensor<u32, [4]>) {
    if thread.local_id == 0 {
        atomic_add(&mut x[0], 1, .acq_rel)
        LOOP
    }
    sync_block()
}
fn main() {
    var x: Tensor<u32, [4]> = zeros()
    k(&mut x)
}
""".replace("LOOP", loop)
    done = expect(vortex, tmp_path, source, found, "--max-steps", "200000")
    if found == "E0606":
        assert "executed 200000 operations" in done.stderr and ":" in done.stderr
    elif not found:
        expect(vortex, tmp_path, source, None, "--max-steps", "0")
        expect(vortex, tmp_path, source, "E0606", "--max-steps", "900")
