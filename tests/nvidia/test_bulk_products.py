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
    "i32": "kernel mm(x: &Tensor<i32, [M, K]>, w: &Tensor<i32, [K, N]>) -> Tensor<i32, [M, N]> { return x @ w }",
    "i8 in i64": "kernel mm(x: &Tensor<i8, [M, K]>, w: &Tensor<i8, [K, N]>) -> Tensor<i64, [M, N]> { return x @ w }",
    "signed and unsigned": "kernel mm(x: &Tensor<i8, [M, K]>, w: &Tensor<u8, [K, N]>) -> Tensor<i32, [M, N]> { return (x as i32) @ (w as i32) }",
    "a sign that is cut": "kernel mm(x: &Tensor<i8, [M, K]>, w: &Tensor<i8, [N, K]>) -> Tensor<i32, [M, N]> { return (((x as i16) as u16) as i32) @ (((w as i16) as u16) as i32).transpose() }",
    # Pairs of columns are loaded at once: an odd first column would be misaligned, a slice with other bounds may need a check.
    "a slice beside it": "kernel mm(x: &Tensor<f16, [M, K]>, w: &Tensor<f16, [K, 256]>, y: &Tensor<f16, [M, 264]>) -> Tensor<f16, [M, 256]> { return x @ w + y[.., 1..257] }",
    "a slice of a computed tensor": "kernel mm(x: &Tensor<f16, [M, K]>, w: &Tensor<f16, [K, 256]>, y: &Tensor<f16, [M, 264]>) -> Tensor<f16, [M, 256]> { return x @ w + (y + 1.0)[.., 1..257] }",
    "rows of another tensor": "kernel mm(x: &Tensor<f16, [128, K]>, w: &Tensor<f16, [K, N]>, y: &Tensor<f16, [256, N]>) -> Tensor<f16, [128, N]> { return x @ w + y[64..192, ..] }",
    "a result of bytes": "kernel mm(x: &Tensor<f16, [M, K]>, w: &Tensor<f16, [K, N]>) -> Tensor<bool, [M, N]> { return x @ w > 0.0 }"}

# What is multiplied, and how many operands a phase of its own writes.
WRITTEN = {
    "rounded on the way": (".f32.bf16.bf16", 1, "kernel mm(x: &Tensor<bf16, [M, K]>, w: &Tensor<bf16, [N, K]>) -> Tensor<f32, [M, N]> { return ((x as f8e4m3) as bf16) @ w.transpose() }"),
    "f32 rounded on the way": (".f32.tf32.tf32", 1, "@precision(tf32)\nkernel mm(x: &Tensor<f32, [M, K]>, w: &Tensor<f32, [N, K]>) -> Tensor<f32, [M, N]> { return ((x as bf16) as f32) @ w.transpose() }"),
    "scaled": (".f32.f16.f16", 1, "kernel mm(x: &Tensor<f16, [M, K]>, w: &Tensor<f16, [K, N]>) -> Tensor<f16, [M, N]> { return (x * 2.0) @ w }"),
    "cast": (".f32.bf16.bf16", 1, "kernel mm(x: &Tensor<f32, [M, K]>, y: &Tensor<bf16, [K, N]>) -> Tensor<f32, [M, N]> { return ((x as bf16) @ y) as f32 }"),
    "both, turned": (".f32.f16.f16", 2, "kernel mm(x: &Tensor<f32, [K, M]>, y: &Tensor<f32, [N, K]>) -> Tensor<f16, [M, N]> { return (x as f16).transpose() @ (y.transpose() as f16) }"),
    "scales of columns": (".f32.bf16.bf16", 1, "kernel mm(x: &Tensor<bf16, [B, M, K]>, w: &Tensor<i8, [K, N]>, s: &Tensor<bf16, [N]>) -> Tensor<bf16, [B, M, N]> { return x @ (w as bf16 * s) }"),
    "activation": (".f32.bf16.bf16", 1, "kernel mm(x: &Tensor<bf16, [M, K]>, w: &Tensor<bf16, [K, N]>) -> Tensor<bf16, [M, N]> { return (x / (1.0 + exp(-x))) @ w }"),
    "norm": (".f32.bf16.bf16", 1, "kernel mm(x: &Tensor<bf16, [M, K]>, w: &Tensor<bf16, [K, N]>) -> Tensor<bf16, [M, N]> { return (x / sqrt((x * x).mean(dim = -1, keepdim = true) + 1e-5)) @ w }"),
    "f8, across": (".f32.e4m3.e4m3", 2, "kernel mm(x: &Tensor<f32, [M, K]>, w: &Tensor<f32, [K, N]>) -> Tensor<f32, [M, N]> { let c: Tensor<f32, [M, N]> = (x as f8e4m3) @ (w as f8e4m3); return c }"),
    "f8 in f32": (".f32.f16.f16", 2, "kernel mm(x: &Tensor<f8e5m2, [M, K]>, w: &Tensor<f8e5m2, [N, K]>) -> Tensor<f32, [M, N]> { return (x as f32) @ (w as f32).transpose() }"),
    "i8": (".s32.s8.s8", 1, "kernel mm(x: &Tensor<i8, [M, K]>, w: &Tensor<i8, [N, K]>) -> Tensor<i32, [M, N]> { return ((x + x) as i32) @ (w as i32).transpose() }")}
WIDENED = {
    "i8": (".s32.s8.s8", "kernel mm(x: &Tensor<i8, [M, K]>, w: &Tensor<i8, [N, K]>) -> Tensor<i32, [M, N]> { return (x as i32) @ (w as i32).transpose() }"),
    "u8": (".s32.u8.u8", "kernel mm(x: &Tensor<u8, [M, K]>, w: &Tensor<u8, [N, K]>) -> Tensor<i32, [M, N]> { return (x as i32) @ (w as i32).transpose() }"),
    "bf16": (".f32.bf16.bf16", "kernel mm(x: &Tensor<bf16, [M, K]>, w: &Tensor<bf16, [N, K]>) -> Tensor<f32, [M, N]> { return (x as f32) @ (w as f32).transpose() }"),
    "a batch of one matrix": (".f32.bf16.bf16", "kernel mm(x: &Tensor<bf16, [B, M, K]>, w: &Tensor<bf16, [K, N]>) -> Tensor<bf16, [B, M, N]> { return x @ w }")}


def build(vortex, tmp_path, program, *arguments):
    path = tmp_path / "mm.vx"
    path.write_text(program + "\n")
    return vortex("build", path, "--no-cache", "--versions", "usual", *arguments, "-o", tmp_path)


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
    for name, text in products.items():
        assert "cp.async.bulk.tensor" in text and "mbarrier.try_wait" in text and f".f32.{kind}.{kind}" in text
        # Results leave through the copy engine alone, or where they lie anyhow through the threads.
        assert (".global.shared::cta.bulk_group" in text) != name.endswith("_general")
        assert ("st.global" in text) == name.endswith("_general")


NARROW = {"i8": ("i8", "i32", ".s32.s8.s8"), "i8 in i8": ("i8", "i8", ".s32.s8.s8"), "u8": ("u8", "u32", ".s32.u8.u8"), "u8 in i32": ("u8", "i32", ".s32.u8.u8"),
          "f8e4m3": ("f8e4m3", "f32", ".f32.e4m3.e4m3"), "f8e5m2": ("f8e5m2", "bf16", ".f32.e5m2.e5m2"), "f8e4m3 in f8e4m3": ("f8e4m3", "f8e4m3", ".f32.e4m3.e4m3"),
          "tf32": ("f32", "f32", ".f32.tf32.tf32")}
SCALED = "kernel mm(x: &Tensor<{0}, [M, K]>, w: &Tensor<{0}, [N, K]>, a: &Tensor<f32, [M, 1]>, b: &Tensor<f32, [N]>) -> Tensor<bf16, [M, N]> {{ let c: Tensor<f32, [M, N]> = x @ w.transpose(); return (c * a * b) as bf16 }}"


def narrow(case, form):
    kind, result, _ = NARROW[case]
    product = {"x @ w": "x @ w", "x @ w.T": "x @ w.transpose()", "x.T @ w": "x.transpose() @ w"}[form]
    return ("@precision(tf32)\n" if case == "tf32" else "") + (
        f"kernel mm(x: &Tensor<{kind}, [{'K, M' if form == 'x.T @ w' else 'M, K'}]>, w: &Tensor<{kind}, [{'N, K' if form == 'x @ w.T' else 'K, N'}]>) -> Tensor<{result}, [M, N]> {{ return {product} }}")


@pytest.mark.parametrize("form", ["x @ w", "x @ w.T", "x.T @ w"])
@pytest.mark.parametrize("case", NARROW)
def test_narrow_types_have_instructions_of_their_own(vortex, tmp_path, case, form):
    code = build(vortex, tmp_path, narrow(case, form), "--target", "sm_90", "--emit", "asm").stdout
    products = bulk(code)
    assert products and all(NARROW[case][2] in text for text in products.values())
    # Operands across the depth are turned by a phase of their own, which the product's maps name.
    turns = [name for name in entries(code) if "_turn_" in name]
    assert len({re.search(r"_turn_\d+", name)[0] for name in turns}) == {"x @ w": 1, "x @ w.T": 0, "x.T @ w": 2}[form]


@pytest.mark.parametrize("case", [*NARROW, "scaled"])
def test_the_assembler_keeps_narrow_products_in_registers(vortex, tmp_path, case):
    if not shutil.which("ptxas"):
        pytest.skip("ptxas is not installed")
    program = SCALED.format("f8e4m3") if case == "scaled" else narrow(case, "x @ w.T")
    check_assembly(tmp_path, build(vortex, tmp_path, program, "--target", "sm_90", "--emit", "asm").stdout)


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
    check_assembly(tmp_path, build(vortex, tmp_path, PROGRAMS[case].format("bf16"), "--target", "sm_90", "--emit", "asm").stdout)


def check_assembly(tmp_path, code):
    products = bulk(code)
    header = code[:code.index(".address_size")] + ".address_size 64\n" + re.search(r"\.extern \.shared[^\n]*", code)[0] + "\n"
    path = tmp_path / "bulk.ptx"
    path.write_text(header + "".join(f".visible .entry {name}({text[:text.index(chr(10) + '}')]}\n}}\n" for name, text in products.items()))
    done = subprocess.run(["ptxas", "-arch=sm_90a", "-v", "-o", tmp_path / "bulk.cubin", path], capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") == len(products), done.stderr
    # C7519 is an arrive before the first product; the others say that products wait for each other or registers are not set aside.
    assert set(re.findall(r"C75\d\d", done.stderr)) <= {"C7519"}, done.stderr


@pytest.mark.parametrize("case", WRITTEN)
def test_computed_operands_are_written_before(vortex, tmp_path, case):
    instruction, count, program = WRITTEN[case]
    code = build(vortex, tmp_path, program, "--target", "sm_90", "--emit", "asm").stdout
    products = bulk(code)
    assert products and all(instruction in text for text in products.values())
    phases = {found[0] for name in entries(code) if (found := re.search(r"_(operand|turn)_\d+", name))}
    assert len(phases) == count
    if shutil.which("ptxas"):
        check_assembly(tmp_path, code)


@pytest.mark.parametrize("case", WIDENED)
def test_widened_operands_are_multiplied_as_they_lie(vortex, tmp_path, case):
    instruction, program = WIDENED[case]
    code = build(vortex, tmp_path, program, "--target", "sm_90", "--emit", "asm").stdout
    products = bulk(code)
    assert products and all(instruction in text for text in products.values())
    assert not any("_operand_" in name for name in entries(code))
    if "f32" in instruction and case != "a batch of one matrix":
        assert not bulk(build(vortex, tmp_path, "@strict\n" + program, "--target", "sm_90", "--emit", "asm").stdout)


def test_roles_and_rings_are_printed(vortex, tmp_path):
    done = build(vortex, tmp_path, PROGRAMS["x @ w"].format("f16"), "--target", "sm_90", "--dump-after", "vxnv")
    assert "vxnv.roles" in done.stderr and "vxnv.ring stages 4 bytes 49152" in done.stderr


def test_kernels_whose_parameter_leaves_no_room_for_maps_do_without(vortex, tmp_path):
    others = ", ".join(f"p{i}: &Tensor<f32, [A, B, C]>" for i in range(64))
    program = f"kernel mm(x: &Tensor<f16, [M, K]>, w: &Tensor<f16, [K, N]>, {others}) -> Tensor<f16, [M, N]> {{ return x @ w }}"
    code = build(vortex, tmp_path, program, "--target", "sm_90", "--emit", "asm").stdout
    assert entries(code) and not bulk(code)
