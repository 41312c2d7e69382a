"""Asynchronous copies in PTX are over before what they wrote is read, and start only after what they overwrite has been."""
import re

import pytest

from ptx_machine import Program

X, Y = 1 << 32, 2 << 32

RING = """
@launch(grid = [1], block = 64)
kernel k(x: &Tensor<f32, [N, 64]>, y: &mut Tensor<f32, [N, 64]>) {{
    var buf: [Tensor<f32, [64]> @shared; {buffers}]
    let t = thread.local_id
    for s in 0..{ahead} {{
        async_stage(&x[s, 0..64], &mut buf[s])
    }}
    for s in 0..12 {{
        sync_block()
        if s + {ahead} < 12 {{
            async_stage(&x[s + {ahead}, 0..64], &mut buf[(s + {ahead}) % {buffers}])
        }}
        y[s, t] = buf[s % {buffers}][63 - t]
    }}
}}
"""
SINGLE = """
@launch(grid = [1], block = 64)
kernel k(x: &Tensor<f32, [N, 64]>, y: &mut Tensor<f32, [N, 64]>) {
    var tile: Tensor<f32, [64]> @shared
    let t = thread.local_id
    for s in 0..12 {
        tile = stage(&x[s, 0..64])
        sync_block()
        y[s, t] = tile[63 - t]
    }
}
"""
SOURCE = """
@launch(grid = [1], block = 64)
kernel k(x: &mut Tensor<f32, [N, 64]>, y: &mut Tensor<f32, [N, 64]>) {
    var tile: Tensor<f32, [64]> @shared
    let t = thread.local_id
    async_stage(&x[0, 0..64], &mut tile)
    sync_block()
    x[0, t] = 5.0
    sync_block()
    y[0, t] = tile[63 - t]
}
"""


def program(vortex, tmp_path, source, target="sm_80"):
    path = tmp_path / "copies.vx"
    path.write_text(source)
    ptx = vortex("build", path, "--target", target, "--emit", "asm").stdout
    return ptx, Program(ptx, re.findall(r"\.entry\s+(\w+)", ptx)[0])


WORDS = [X, 12, 64, 64, 1, Y, 12, 64, 64, 1]


@pytest.mark.parametrize("source", [SINGLE, RING.format(buffers=2, ahead=1), RING.format(buffers=3, ahead=2), RING.format(buffers=4, ahead=3)],
                         ids=["stage", "two buffers", "three buffers", "four buffers"])
def test_no_copy_meets_a_read(vortex, tmp_path, source):
    ptx, code = program(vortex, tmp_path, source)
    early, copies = code.copies_read_too_early(WORDS, 64)
    assert copies == 12 * 64 and not early, early


def test_the_test_sees_waits_that_are_too_weak_and_missing_barriers(vortex, tmp_path):
    ptx, code = program(vortex, tmp_path, RING.format(buffers=3, ahead=2))
    entry = code.entry
    waits = set(re.findall(r"wait_group\s+(\d)", ptx))
    assert waits
    weaker = re.sub(r"(wait_group\s+)(\d)", lambda match: match.group(1) + str(int(match.group(2)) + 1), ptx)
    assert Program(weaker, entry).copies_read_too_early(WORDS, 64)[0]
    ptx, code = program(vortex, tmp_path, SINGLE)
    assert len(re.findall("bar.sync", ptx)) >= 2
    for number in range(len(re.findall("bar.sync", ptx))):
        parts = re.split("(bar.sync[^;]*;)", ptx)
        del parts[2 * number + 1]
        if Program("".join(parts), code.entry).copies_read_too_early(WORDS, 64)[0]:
            break
    else:
        pytest.fail("no barrier is needed")


def test_a_write_to_the_source_of_a_copy_waits_for_it(vortex, tmp_path):
    ptx, _ = program(vortex, tmp_path, SOURCE)
    before_store = ptx[: re.search(r"st\.global", ptx).start()]
    assert re.search(r"wait_group\s+0", before_store) or "wait_all" in before_store
