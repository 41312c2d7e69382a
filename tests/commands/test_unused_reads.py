"""--check executes reads whose values nothing uses: what the compiler reports of a read, a run must show as well."""
import pytest

KERNEL = """\
@launch(grid = [1], block = 8)
kernel k(x: &Tensor<i32, [8]>, out: &mut Tensor<i32, [8]>) {
    let t: Tensor<i32, [8]> @shared
    let i = thread.local_id
    out[i] = 1
    BODY
}

fn main() {
    var out: Tensor<i32, [8]> = zeros()
    k(&full(2, [8]), &mut out)
}
"""


@pytest.mark.parametrize("body, found", [
    ("let z = x[i + 1]", "E0601"), ("var z = 0\n    if x[i + 3] > 2 { z = 1 } else { z = 2 }", "E0601"),
    ("let z = x[i + 3] * 0", "E0601"), ("let o: Tensor<i32, [4]> @local = zeros()\n    let z = o[i]", "E0601"),
    ("@unchecked(init) let z = t[i]", "E0602"), ("if i < 4 { t[i] = 1 }\n    sync_block()\n    var z = 0\n    z += t[i]", "E0602"),
    ("t[i] = 1\n    let z = t[7 - i]", "E0603"), ("t[i] = 1\n    sync_block()\n    let z = t[3]\n    t[i] = 2", "E0603"),
    ("let z = out[7 - i]", "E0603"), ("t[i] = 1\n    let z = warp.sum(t[7 - i])", "E0603"),
    ("let z = x[i]", None), ("t[i] = 1\n    sync_block()\n    let z = t[7 - i] * 0", None), ("let z = if i < 7 { x[i + 1] } else { 0 }", None),
    ("let z = i < 7 && x[i + 1] > 0", None)])
def test_a_read_counts_without_a_use(vortex, tmp_path, body, found):
    path = tmp_path / "unused.vx"
    path.write_text(KERNEL.replace("BODY", body))
    done = vortex("run", "--check", "--allow", "races", path, status=1 if found else 0)
    assert found is None or f"error[{found}]" in done.stderr, done.stderr
