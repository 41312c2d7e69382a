"""Barriers of the grid in the code for NVIDIA GPUs: what waits for what. That blocks do meet is tested on devices, by tests/language."""
import json
import pathlib
import re

import pytest

KERNEL = """@launch(grid = 6, block = 64, cooperative)
kernel k(x: &mut Tensor<u32, [384]>) {
    sync_grid()
    BODY
    sync_grid()
    x[thread.global_id] += 1
}
"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("body, fails", [("", False), ('assert(x[thread.global_id] < 9, "too many")', True)])
def test_one_thread_of_a_block_arrives_and_waits(vortex, tmp_path, target, body, fails):
    path = tmp_path / "k.vx"
    path.write_text(KERNEL.replace("BODY", body))
    [report] = json.loads(vortex("build", path, "--target", target, "--no-cache", "--json", "-o", tmp_path).stdout)
    [code] = [file for file in report["files"] if file.endswith(".ptx")]
    text = pathlib.Path(code).read_text().split(".visible .entry")[1]
    assert len(re.findall(r"atom\.acq_rel\.gpu\.global\.add\.u32", text)) == 2
    assert len(re.findall(r"ld\.acquire\.gpu\.global\.b32", text)) == 2
    assert len(re.findall(r"bar\.sync", text)) == 4  # the block before its thread arrives, and behind it
    # Whoever waits looks at the launch's report, and so does the block behind the barrier; only where something may fail.
    assert len(re.findall(r"ld\.volatile\.global", text)) == (4 if fails else 0)
