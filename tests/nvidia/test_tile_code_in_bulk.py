"""Without a GPU: which loops of tile code become products of bulk copies on sm_90, and which stay what they are."""
import re

import pytest

PRODUCT = """
@tile(m = 64, n = 128)
kernel product(a: &Tensor<f16, [M, K]>, b: &Tensor<f16, [K, N]>, c: &Tensor<f32, [M, N]>) -> Tensor<f32, [M, N]> {
    let sa: Tensor<f16, [64, 32]> @shared
    let sb: Tensor<f16, [32, 128]> @shared
    var acc: Tensor<f32, [64, 128]> @local = zeros()
    for k in range(0, K, 32) {
        sa = stage(a[block_m..+64, k..+32])
        sb = stage(b[k..+32, block_n..+128])
        sync_block()
        acc += sa @ sb
    }
    return acc
}
"""


def changed(*pairs):
    text = PRODUCT
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


BULK = {
    "plain": PRODUCT,
    "rounded and added to": changed(("return acc", "return max(acc * 2.0 + c[block_m..+64, block_n..+128], 0.0)")),
    "@pipeline": changed(("    for k", "    @pipeline(stages = 3)\n    for k")),
    "from the last block to the first": changed(("a[block_m..+64", "a[M / 64 * 64 - block_m..+64")),
    "bf16": changed(("f16", "bf16")),
}
BLOCKS = {  # merged, but not in bulk
    "of f32": changed(("f16", "f32")),
    "a tile that the unit has not": changed(("m = 64", "m = 48"), ("[64, ", "[48, "), ("+64", "+48")),
    "an operand that is computed": changed(("acc += sa", "acc += (sa * 2.0)")),
    "sums that begin somewhere": changed(("= zeros()\n    for", "= c[block_m..+64, block_n..+128].copy()\n    for")),
    "a depth that begins somewhere": changed(("range(0, K, 32)", "range(32, K, 32)")),
    "what blocks must do besides": changed(("return acc", "assert(M > 0)\n    return acc")),
}
LOOPS = {  # not even merged
    "sums that change otherwise": changed(("acc += sa @ sb", "acc = acc * 0.5 + sa @ sb")),
    "a step that is not the window's": changed(("range(0, K, 32)", "range(0, K, 16)")),
    "sums in f16": changed(("acc: Tensor<f32", "acc: Tensor<f16"), ("return acc", "return acc as f32")),
    "a stage that is read again": changed(("return acc", "return acc + (sa[0, 0] as f32)")),
}


def scheduled(vortex, tmp_path, text, target="sm_90"):
    path = tmp_path / "product.vx"
    path.write_text(text)
    return vortex("build", path, "--target", target, "--emit", "ir").stdout


@pytest.mark.parametrize("name", BULK)
def test_products_of_bulk_copies(vortex, tmp_path, name):
    text = scheduled(vortex, tmp_path, BULK[name])
    assert "wgmma 64x128" in text and "scf.for" not in text
    assert re.search(r'case "bulk" needs .*\n +vx.phase @product.bulk', text) and "vx.phase @product.main" in text
    # Copies reach all three tensors, or the launch takes the blocks.
    needs = re.search(r'case "bulk" needs (.*)', text)[1]
    assert all(f"mod(address({number}), 16) == 0" in needs for number in (0, 1, 3))
    for target in ("sm_80", "cpu"):
        assert "wgmma" not in scheduled(vortex, tmp_path, BULK[name], target)


@pytest.mark.parametrize("name", BLOCKS)
def test_products_of_the_programs_blocks_alone(vortex, tmp_path, name):
    text = scheduled(vortex, tmp_path, BLOCKS[name])
    assert "wgmma" not in text and "scf.for" not in text and text.count("vx.dot") == 1


@pytest.mark.parametrize("name", LOOPS)
def test_loops_that_stay_loops(vortex, tmp_path, name):
    text = scheduled(vortex, tmp_path, LOOPS[name])
    assert "scf.for" in text and "wgmma" not in text
