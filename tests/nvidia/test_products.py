"""Without a GPU: matrix products of every type assemble, and the large ones use what they are meant to use."""
import json
import re
import shutil

import pytest

PRODUCT = "{1}kernel mm(x: &Tensor<{0}, [M, K]>, w: &Tensor<{0}, [K, N]>) -> Tensor<{0}, [M, N]> {{\n    return x @ w\n}}\n"


def build(vortex, tmp_path, kind, target, *arguments):
    path = tmp_path / "mm.vx"
    attribute, kind = ("@precision(tf32)\n", "f32") if kind == "tf32" else ("", kind)
    path.write_text(PRODUCT.format(kind, attribute))
    return vortex("build", path, "--target", target, "--no-cache", *arguments, "-o", tmp_path)


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("kind", ["f8e4m3", "f8e5m2", "f16", "bf16", "f32", "tf32", "f64", "i8", "i32", "i64"])
def test_products_of_every_type_assemble_and_aligned_ones_keep_their_sums_in_registers(vortex, tmp_path, kind, target):
    built = build(vortex, tmp_path, kind, target, "--json", "--dump-after", "plan")
    [report] = json.loads(built.stdout)
    if not shutil.which("ptxas"):
        return
    assert any(file.endswith(".cubin") for file in report["files"])
    if kind in ("f16", "bf16", "f32") and target == "sm_90":
        spills = {fact["key"]: fact["value"] for fact in report["facts"] if fact["key"].startswith("spill_bytes.")}
        work = re.findall(r"^ *phase \w+: ([^;]*)", built.stderr, re.M)  # in the order of the numbers in names of entry points
        numbers = {key: int(re.search(r"_(\d+)(_v\d+)?$", key)[1]) for key in spills if "_general" not in key and "_combine_" not in key}
        products = {key: spills[key] for key, number in numbers.items() if "dot" in work[number]}
        assert products and not any(products.values()), spills


@pytest.mark.parametrize("kind,target,instruction", [
    ("bf16", "sm_90", "m16n8k16.row.col.f32.bf16.bf16.f32"), ("f8e4m3", "sm_90", "m16n8k16.row.col.f32.f16.f16.f32"),
    ("f8e4m3", "sm_90", "cvt.rn.f16x2.e4m3x2"), ("i8", "sm_80", "m16n8k32.row.col.s32.s8.s8.s32"), ("tf32", "sm_80", "m16n8k8.row.col.f32.tf32.tf32.f32"),
    ("f64", "sm_90", "m16n8k8.row.col.f64.f64.f64.f64"), ("f64", "sm_80", "m8n8k4.row.col.f64.f64.f64.f64")])
def test_products_use_the_matrix_unit_and_asynchronous_copies(vortex, tmp_path, kind, target, instruction):
    code = build(vortex, tmp_path, kind, target, "--emit", "asm").stdout
    assert instruction in code and "cp.async.cg.shared.global" in code


def test_f32_products_are_exact_unless_the_program_permits_less(vortex, tmp_path):
    assert "mma.sync" not in build(vortex, tmp_path, "f32", "sm_90", "--emit", "asm").stdout


def test_sums_of_integers_in_a_wider_type_use_the_matrix_unit(vortex, tmp_path):
    path = tmp_path / "mm.vx"
    path.write_text("kernel mm(x: &Tensor<i8, [M, K]>, w: &Tensor<i8, [K, N]>) -> Tensor<i32, [M, N]> {\n    return x @ w\n}\n")
    code = vortex("build", path, "--target", "sm_90", "--no-cache", "--emit", "asm").stdout
    assert "m16n8k32.row.col.s32.s8.s8.s32" in code


def test_operands_that_lie_anyhow_are_copied_before_products(vortex, tmp_path):
    code = build(vortex, tmp_path, "bf16", "sm_90", "--emit", "asm").stdout
    assert code.count(".visible .entry vx_mm_align_") == 2  # one for each operand, whatever the launch
    # What multiplies behind the copies needs no other way to read its operands, even where the result is not aligned. Large ones run in bulk then too.
    behind = [text for text in code[code.rindex(".visible .entry vx_mm_align_"):].split(".visible .entry ") if "mma.sync" in text or "wgmma.mma_async" in text]
    general = [text for text in behind if re.match(r"\w+_general\(", text)]
    assert {"wgmma.mma_async" in text for text in general} == {False, True}
    for text in behind:
        assert ("cp.async.cg.shared.global" in text or "cp.async.bulk.tensor" in text) and "ld.global" not in text, text[:80]


def test_staged_operands_are_read_where_they_are(vortex):
    code = vortex("build", "examples/memory_model/pipelined_matmul.vx", "--kernel", "pipelined_matmul", "--target", "sm_90", "--emit", "asm").stdout
    fast = code[:code.index("_general(")]
    # A warp multiplies 64 × 64 by 32 steps: eight fragments for each half of them, and the sums leave the registers after the loop.
    assert fast.count("ldmatrix") == 16 and fast.count("mma.sync") == 64


@pytest.mark.parametrize("kind", ["f32", "f16", "i32"])
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_no_copy_is_under_way_when_the_stages_are_used_again(vortex, tmp_path, kind, target):
    """Copies past the end write zeros; the result may lie where they do."""
    build(vortex, tmp_path, kind, target)
    entries = next(tmp_path.glob("*.ptx")).read_text().split(".entry")[1:]
    copying = [re.findall(r"cp\.async\.\w+(?:_group)?(?: \d)?", entry) for entry in entries if "cp.async.commit_group" in entry]
    assert copying
    for found in copying:
        assert found[-1] == "cp.async.wait_group 0"


def test_what_a_product_reads_in_part_may_be_used_beside_it(vortex, tmp_path):
    """The columns of `t` are those of the result, and a part of them is the depth of the product."""
    path = tmp_path / "mm.vx"
    path.write_text("""
kernel mm(x: &Tensor<f32, [D, C, C]>, y: &Tensor<f32, [B, C]>) -> Tensor<f32, [C - 1, C]> {
    let t = x.min(dim = 0)
    return t[1..+(C - 1), :] * (t[1..+(C - 1), 0..B] @ y)
}""")
    assert vortex("build", path, "--target", "sm_90", "--no-cache", "-o", tmp_path).returncode == 0


def test_products_with_one_row_or_column_are_sums(vortex, tmp_path):
    path = tmp_path / "vectors.vx"
    path.write_text("kernel row(w: &Tensor<bf16, [K, N]>, v: &Tensor<bf16, [K]>) -> Tensor<bf16, [N]> {\n    return v @ w\n}\n"
                    "kernel turned(w: &Tensor<f32, [K, M]>, v: &Tensor<f32, [K]>) -> Tensor<f32, [M]> {\n    return w.transpose() @ v\n}\n")
    plans = vortex("build", path, "--target", "sm_90", "--no-cache", "--dump-after=plan", "-o", tmp_path).stderr
    for name in ("row", "turned"):
        plan = plans.split(f"// ---- {name} after plan")[-1].split("\n\n")[0]
        assert "partial reduction" in plan and "dot" not in plan


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("first,second", [("bf16", "f32"), ("f32", "f16"), ("f16", "i32"), ("i8", "f32"), ("bf16", "f64"), ("f16", "i64")])
def test_products_of_one_kernel_have_the_unit_of_their_own_elements(vortex, tmp_path, first, second, target):
    """f32 is never rounded to tf32 because another product of the kernel is on matrix units."""
    path = tmp_path / "two.vx"
    path.write_text("kernel two(" + ", ".join(f"{a}: &Tensor<{kind}, [M, K]>, {b}: &Tensor<{kind}, [K, N]>" for a, b, kind in [("a", "b", first), ("x", "y", second)])
                    + f") -> (Tensor<{first}, [M, N]>, Tensor<{second}, [M, N]>) {{\n    return (a @ b, x @ y)\n}}\n")
    vortex("build", path, "--target", target, "--no-cache", "-o", tmp_path)
    ptx = (tmp_path / "two.two.ptx").read_text()
    assert "tf32" not in ptx
    kinds = {"bf16": "bf16.bf16", "f16": "f16.f16", "i8": "s8.s8", "f64": "f64.f64"}
    for kind in {first, second} & set(kinds):
        assert kinds[kind] in ptx, kind


def test_products_of_one_kernel_have_tiles_of_their_own(vortex, tmp_path):
    """A block of the wide product would be four fifths empty in the narrow one, and one of 16-bit elements too large for 64-bit ones."""
    path = tmp_path / "two.vx"
    path.write_text("kernel narrow(x: &Tensor<f16, [M, K]>, w: &Tensor<f16, [K, 32]>, v: &Tensor<f16, [32, N]>) -> Tensor<f16, [M, N]> {\n    return max((x @ w) as f16, 0.0) @ v\n}\n"
                    "kernel wide(x: &Tensor<f16, [M, K]>, w: &Tensor<f16, [K, N]>, a: &Tensor<f64, [M, K]>, b: &Tensor<f64, [K, N]>) -> Tensor<f64, [M, N]> {\n    return (x @ w) as f64 + a @ b\n}\n")
    plans = vortex("build", path, "--target", "sm_80", "--no-cache", "--dump-after=plan", "-o", tmp_path).stderr
    narrow, wide = (plans.split(f"// ---- {name} after plan")[-1].split("\n\n")[0] for name in ("narrow", "wide"))
    usual = re.findall(r"phase tensors: compute dot[^\n]*unit \"mma (\d+)x(\d+)x", narrow)
    assert min(int(columns) for _, columns in usual) <= 64 and ("128", "256") in usual
    assert "dot" in wide
