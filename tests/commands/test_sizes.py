"""Sizes that wrap or that no device has are refused with their numbers, wherever they come from; sizes just below the limits are not."""
import pytest

MOST = 2**47


def refused(vortex, tmp_path, source, device, *words, arguments=()):
    path = tmp_path / "size.vx"
    path.write_text(source)
    done = vortex("run", path, "--device", device, "--", *arguments, status=1)
    for word in words:
        assert word in done.stderr, done.stderr
    return done


DEVICES = pytest.mark.parametrize("device", ["cpu", "interpreter"])


@DEVICES
@pytest.mark.parametrize("extents, bytes", [
    ([MOST + 1], MOST + 1), ([2**32, 2**32], 2**64), ([2**62, 2**62], 2**124), ([0, MOST + 1], MOST + 1), ([2**33, 0, 2**33], 2**66),
])
def test_tensors_beyond_the_limit_are_refused(vortex, tmp_path, device, extents, bytes):
    sizes = ", ".join(f"parse_int(args()[{i}]) as usize" for i in range(len(extents)))
    source = f"fn main() {{\n    let t = zeros::<u8>([{sizes}])\n    print(t.shape[0])\n}}\n"
    refused(vortex, tmp_path, source, device, "E0703", f"{bytes} bytes", str(MOST), arguments=extents)


@DEVICES
def test_empty_tensors_at_the_limit_are_accepted(vortex, tmp_path, device):
    path = tmp_path / "size.vx"
    path.write_text(f"""
kernel rows(x: &Tensor<f32, [N, M]>) -> Tensor<f32, [N]> {{
    return x.sum(1)
}}
fn main() {{
    let most = parse_int(args()[0]) as usize
    let t = zeros::<f32>([0, most])
    print(t.shape[1], rows(&t).shape[0])
    let u: Tensor<u8, [{MOST}, 0]> = zeros()
    print(u.shape[0])
}}
""")
    assert vortex("run", path, "--device", device, "--", MOST // 4).stdout.split() == [str(MOST // 4), "0", str(MOST)]


@DEVICES
def test_results_whose_extents_wrap_are_refused_by_the_launch(vortex, tmp_path, device):
    refused(vortex, tmp_path, f"""
kernel outer(a: &Tensor<f32, [0, N]>, b: &Tensor<f32, [0, M]>) -> Tensor<f32, [N * M]> {{
    var out: Tensor<f32, [N * M]> = zeros()
    return out
}}
fn main() {{
    let n = parse_int(args()[0]) as usize
    let t = outer(&zeros([0, n]), &zeros([0, n]))
    print(t.shape[0])
}}
""", device, "E0712", "does not fit 63 bits", arguments=[2**40])
    refused(vortex, tmp_path, f"""
kernel outer(a: &Tensor<f32, [0, N]>, b: &Tensor<f32, [0, M]>) -> Tensor<f32, [N, M]> {{
    return zeros()
}}
fn main() {{
    let n = parse_int(args()[0]) as usize
    let t = outer(&zeros([0, n]), &zeros([0, n]))
    print(t.shape[0])
}}
""", device, str(2**82), str(MOST), arguments=[2**40])


@DEVICES
@pytest.mark.parametrize("space, most", [("@local", 2**20), ("@shared", 2**20)])
def test_memory_of_a_block_that_the_launch_makes_too_large_is_refused(vortex, tmp_path, device, space, most):
    source = """
@launch(grid = [1], block = 32)
kernel k(x: &Tensor<f32, [N]>, y: &mut Tensor<f32, [32]>) {
    let t: Tensor<f32, [N, N]> SPACE
    t[0, thread.local_id] = x[0]
    sync_block()
    y[thread.local_id] = t[0, thread.local_id]
}
fn main() {
    let n = parse_int(args()[0]) as usize
    var y = zeros::<f32>([32])
    k(&full(2.0, [n]), &mut y)
    print(y.to_host()[31])
}
""".replace("SPACE", space)
    path = tmp_path / "size.vx"
    path.write_text(source)
    assert vortex("run", path, "--device", device, "--", 512).stdout.split() == ["2.0"]
    refused(vortex, tmp_path, source, device, str(513 * 513 * 4), str(most), arguments=[513])


def test_the_last_constant_size_is_accepted_and_the_next_is_not(vortex, tmp_path):
    def check(source, status):
        path = tmp_path / "size.vx"
        path.write_text(source)
        done = vortex("check", path, status=status)
        assert ("E0553" in done.stderr) == bool(status), done.stderr

    local = "kernel k(y: &mut Tensor<u8, [N]>, i: usize) {{\n    let t: Tensor<u8, [{}, 1]> @local\n    t[i, 0] = 1\n    y[thread.global_id] = t[0, 0]\n}}\n"
    array = "kernel k(y: &mut Tensor<u8, [N]>, i: usize) {{\n    var t = [0u8; {}]\n    t[i] = 1\n    y[thread.global_id] = t[0]\n}}\n"
    shared = "@launch(grid = [1], block = 32)\nkernel k(y: &mut Tensor<u8, [N]>, i: usize) {{\n    let t: Tensor<u8, [{}]> @shared\n    t[thread.local_id] = 1\n    sync_block()\n    y[thread.global_id] = t[i % 32]\n}}\n"
    wide = "fn main() {{\n    let t: Tensor<u8, [{}, 0]> = zeros()\n}}\n"
    for source, most in [(local, 2**20), (array, 2**20), (shared, 2**20), (wide, MOST)]:
        check(source.format(most), 0)
        check(source.format(most + 1), 1)
