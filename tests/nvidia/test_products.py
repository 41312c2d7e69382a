"""Without a GPU: matrix products of every type assemble, and the large ones use what they are meant to use."""
import json
import shutil

import pytest

PRODUCT = "kernel mm(x: &Tensor<{0}, [M, K]>, w: &Tensor<{0}, [K, N]>) -> Tensor<{0}, [M, N]> {{\n    return x @ w\n}}\n"


def build(vortex, tmp_path, kind, target, *arguments):
    path = tmp_path / "mm.vx"
    path.write_text(PRODUCT.format(kind))
    return vortex("build", path, "--target", target, "--no-cache", *arguments, "-o", tmp_path)


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("kind", ["f8e4m3", "f8e5m2", "f16", "bf16", "f32", "f64", "i8", "i32", "i64"])
def test_products_of_every_type_assemble(vortex, tmp_path, kind, target):
    [report] = json.loads(build(vortex, tmp_path, kind, target, "--json").stdout)
    if shutil.which("ptxas"):
        assert any(file.endswith(".cubin") for file in report["files"])


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32"])
def test_aligned_products_keep_their_sums_in_registers(vortex, tmp_path, kind):
    if not shutil.which("ptxas"):
        pytest.skip("ptxas is not installed")
    [report] = json.loads(build(vortex, tmp_path, kind, "sm_90", "--json").stdout)
    spills = {fact["key"]: fact["value"] for fact in report["facts"] if fact["key"].startswith("spill_bytes.")}
    assert spills and all(value == 0 for key, value in spills.items() if not key.endswith("_general")), spills


def test_narrow_floats_use_the_matrix_unit_and_asynchronous_copies(vortex, tmp_path):
    path = tmp_path / "mm.vx"
    path.write_text(PRODUCT.format("bf16"))
    code = vortex("build", path, "--target", "sm_90", "--emit", "asm").stdout
    for instruction in ["mma.sync.aligned.m16n8k16", "ldmatrix.sync.aligned.m8n8.x4", "cp.async.cg.shared.global"]:
        assert instruction in code
