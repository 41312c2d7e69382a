"""Without a GPU: products of 16-bit floats on chips with bulk copies and warpgroup instructions."""
import re
import shutil
import subprocess

import pytest

PROGRAMS = {
    "x @ w": "kernel mm(x: &Tensor<{0}, [M, K]>, w: &Tensor<{0}, [K, N]>) -> Tensor<{0}, [M, N]> {{ return x @ w }}",
    "x @ w.T": "kernel mm(x: &Tensor<{0}, [M, K]>, w: &Tensor<{0}, [N, K]>) -> Tensor<{0}, [M, N]> {{ return x @ w.transpose() }}",
    "x.T @ w": "kernel mm(x: &Tensor<{0}, [K, M]>, w: &Tensor<{0}, [K, N]>) -> Tensor<{0}, [M, N]> {{ return x.transpose() @ w }}",
    "batched": "kernel mm(x: &Tensor<{0}, [B, M, K]>, w: &Tensor<{0}, [B, K, N]>) -> Tensor<{0}, [B, M, N]> {{ return x @ w }}",
    "f32 result": "kernel mm(x: &Tensor<{0}, [M, K]>, w: &Tensor<{0}, [K, N]>, s: f32) -> Tensor<f32, [M, N]> {{ return ((x @ w) as f32) * s }}",
    "epilogue": """kernel mm(x: &Tensor<{0}, [M, K]>, w: &Tensor<{0}, [K, N]>, bias: &Tensor<{0}, [N]>, y: &Tensor<{0}, [M, N]>) -> Tensor<{0}, [M, N]> {{
    let h = x @ w + bias
    return 0.5 * h * (1.0 + erf(h * 0.7071)) + y
}}""",
    "two products": """kernel mm(x: &Tensor<{0}, [M, K]>, w: &Tensor<{0}, [K, K]>) -> Tensor<{0}, [M, K]> {{
    let h = x @ w
    return h @ w
}}"""}
OTHERS = {
    "f32": "kernel mm(x: &Tensor<f32, [M, K]>, w: &Tensor<f32, [K, N]>) -> Tensor<f32, [M, N]> { return x @ w }",
    "i8": "kernel mm(x: &Tensor<i8, [M, K]>, w: &Tensor<i8, [K, N]>) -> Tensor<i8, [M, N]> { return x @ w }",
    "a computed operand": "kernel mm(x: &Tensor<f16, [M, K]>, w: &Tensor<f16, [K, N]>) -> Tensor<f16, [M, N]> { return (x * 2.0) @ w }",
    # Pairs of columns are loaded at once: an odd first column would be misaligned, a slice with other bounds may need a check.
    "a slice beside it": "kernel mm(x: &Tensor<f16, [M, K]>, w: &Tensor<f16, [K, 256]>, y: &Tensor<f16, [M, 264]>) -> Tensor<f16, [M, 256]> { return x @ w + y[.., 1..257] }",
    "a slice of a computed tensor": "kernel mm(x: &Tensor<f16, [M, K]>, w: &Tensor<f16, [K, 256]>, y: &Tensor<f16, [M, 264]>) -> Tensor<f16, [M, 256]> { return x @ w + (y + 1.0)[.., 1..257] }",
    "rows of another tensor": "kernel mm(x: &Tensor<f16, [128, K]>, w: &Tensor<f16, [K, N]>, y: &Tensor<f16, [256, N]>) -> Tensor<f16, [128, N]> { return x @ w + y[64..192, ..] }",
    "a result of bytes": "kernel mm(x: &Tensor<f16, [M, K]>, w: &Tensor<f16, [K, N]>) -> Tensor<bool, [M, N]> { return x @ w > 0.0 }"}


def build(vortex, tmp_path, program, *arguments):
    path = tmp_path / "mm.vx"
    path.write_text(program + "\n")
    return vortex("build", path, "--no-cache", *arguments, "-o", tmp_path)


def entries(code):
    """Name and text of each entry point."""
    parts = re.split(r"\.visible \.entry (\w+)\(", code)
    return dict(zip(parts[1::2], parts[2::2]))


def bulk(code):
    return {name: text for name, text in entries(code).items() if "wgmma.mma_async" in text}


@pytest.mark.parametrize("case", PROGRAMS)
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_bulk_copies_feed_warpgroup_instructions(vortex, tmp_path, kind, case):
    code = build(vortex, tmp_path, PROGRAMS[case].format(kind), "--target", "sm_90", "--emit", "asm").stdout
    products = bulk(code)
    assert products
    for text in products.values():
        assert "cp.async.bulk.tensor" in text and "mbarrier.try_wait" in text and f".f32.{kind}.{kind}" in text
        # Results leave through the copy engine alone.
        assert ".global.shared::cta.bulk_group" in text and "st.global" not in text


@pytest.mark.parametrize("case", OTHERS)
def test_other_products_do_without(vortex, tmp_path, case):
    assert not bulk(build(vortex, tmp_path, OTHERS[case], "--target", "sm_90", "--emit", "asm").stdout)


def test_older_chips_know_nothing_of_it(vortex, tmp_path):
    code = build(vortex, tmp_path, PROGRAMS["x @ w"].format("f16"), "--target", "sm_80", "--emit", "asm").stdout
    assert not bulk(code) and ".align 64 .b8" not in code


@pytest.mark.parametrize("case", ["x @ w", "x @ w.T", "epilogue"])
def test_the_assembler_keeps_sums_in_registers_and_products_in_flight(vortex, tmp_path, case):
    if not shutil.which("ptxas"):
        pytest.skip("ptxas is not installed")
    code = build(vortex, tmp_path, PROGRAMS[case].format("bf16"), "--target", "sm_90", "--emit", "asm").stdout
    products = bulk(code)
    header = code[:code.index(".address_size")] + ".address_size 64\n" + re.search(r"\.extern \.shared[^\n]*", code)[0] + "\n"
    path = tmp_path / "bulk.ptx"
    path.write_text(header + "".join(f".visible .entry {name}({text[:text.index(chr(10) + '}')]}\n}}\n" for name, text in products.items()))
    done = subprocess.run(["ptxas", "-arch=sm_90a", "-v", "-o", tmp_path / "bulk.cubin", path], capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") == len(products), done.stderr
    # C7519 is an arrive before the first product; the others say that products wait for each other or registers are not set aside.
    assert set(re.findall(r"C75\d\d", done.stderr)) <= {"C7519"}, done.stderr


def test_roles_and_rings_are_printed(vortex, tmp_path):
    done = build(vortex, tmp_path, PROGRAMS["x @ w"].format("f16"), "--target", "sm_90", "--dump-after", "vxnv")
    assert "vxnv.roles" in done.stderr and "vxnv.ring stages 4 bytes 49152" in done.stderr


def test_kernels_whose_parameter_leaves_no_room_for_maps_do_without(vortex, tmp_path):
    others = ", ".join(f"p{i}: &Tensor<f32, [A, B, C]>" for i in range(64))
    program = f"kernel mm(x: &Tensor<f16, [M, K]>, w: &Tensor<f16, [K, N]>, {others}) -> Tensor<f16, [M, N]> {{ return x @ w }}"
    code = build(vortex, tmp_path, program, "--target", "sm_90", "--emit", "asm").stdout
    assert entries(code) and not bulk(code)
