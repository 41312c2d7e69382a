"""Without a GPU: kernels that stream through memory run several logical threads per hardware thread, so that 16 bytes per thread are in flight, and
without branches between the loads; all others run one."""
import pathlib
import re
import subprocess

import pytest

HEAD = "kernel k(x: &Tensor<{kind}, [N]>, y: &Tensor<{kind}, [N]>, out: &mut Tensor<{kind}, [N]>, n: i32) {{\n    let i = thread.global_id\n"


def entries(program, tmp_path, body, kind="f32", block=256, head=HEAD):
    """[(hardware threads, code)] of the kernel's entries, but for those of whole rows, whose neighbouring threads are one (tests/equivalence/test_kept_rows.py)."""
    source = tmp_path / "k.vx"
    source.write_text(f"@launch(block = {block})\n" + head.format(kind=kind) + body + "\n}\n")
    done = subprocess.run([str(program), "build", str(source), "--target", "sm_90", "--no-cache", "-o", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    [path] = tmp_path.glob("*.ptx")
    found = re.findall(r"\.visible \.entry (\w+)\(.*?\.reqntid (\d+), 1, 1.*?\n\{(.*?)\n\}", pathlib.Path(path).read_text(), re.S)
    return [(int(threads), code) for name, threads, code in found if not name.endswith("_wide")]


@pytest.mark.parametrize("body,kind,block,threads", [
    ("out[i] = x[i] * 2.0", "f32", 256, 64),
    ("out[i] = x[i] * 2.0", "f16", 256, 32),
    ("out[i] = x[i] * 2.0", "f64", 256, 128),
    ("out[i] = x[i] + y[i]", "f32", 256, 128),
    ("out[i] = x[i] * 2.0", "f32", 64, 32),
    ("out[i] = x[i] * 2.0", "f32", 96, 96),
    ("if (i as i32) < n { out[i] = 0.5 * x[i] * (1.0 + erf(x[i])) }", "f32", 1024, 256),
    ("if (i as i32) < n { if x[i] > 0.0 { out[i] = 1.0 } else { out[i] = -1.0 } }", "f32", 256, 64),
    ("if n > 0 { out[i] = x[i / (n as usize)] }", "f32", 256, 64),  # divisions are total
    ("let v = if (i as i32) < n { x[i] } else { 1.0 }\n    out[i] = v", "f32", 256, 64),
])
def test_threads_that_stream_share_hardware_threads(program, tmp_path, body, kind, block, threads):
    for hardware, code in entries(program, tmp_path, body, kind, block):
        assert hardware == threads
        assert "/" in body or not re.search(r"\bbra\b", code), code  # divisions of 64 bits branch
        slots = block // hardware
        assert len(re.findall(r"ld\.global", code)) % slots == 0


@pytest.mark.parametrize("body", [
    "out[i] = out[i] * 2.0",  # no load of a later thread may pass the store of an earlier one
    "for k in 0..4 { out[i] = x[i] + k as f32 }",
    "out[i] = x[i]\n    assert(x[i] > 0.0)",
    "out[i] = warp.sum(x[i])",
    "atomic_add(&mut out[i % 7], x[i])",
    "let t: Tensor<f32, [256]> @shared\n    t[thread.local_id] = x[i]\n    sync_block()\n    out[i] = t[255 - thread.local_id]",
    "out[i] = 1.0",
])
def test_other_threads_have_one_each(program, tmp_path, body):
    try:
        found = entries(program, tmp_path, body)
    except AssertionError as error:
        pytest.fail(str(error))
    assert {hardware for hardware, _ in found} == {256}
