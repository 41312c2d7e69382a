"""Helps that show code compile when they replace what they are about; names in messages have a length that can be read; every end of line
is one."""
import re

import pytest

PROGRAM = """kernel tile(n: &Tensor<i32, [4, 4]>, m: &Tensor<f32, [4, 4]>) -> Tensor<f32, [4, 4]> {{
    return {tile}
}}

fn main() {{
    let b: f64 = 0.5
    let t = args().len() as i32
    let c = 3u8
    let wide: i64 = 7
    let x = {host}
    print(x)
}}
"""
# The operand in braces is what the help is about.
HOST = ["2.0 * b ** {t}", "{t} * b", "b + {t - 1}", "{c as i32} + wide", "{t} + wide", "{c * 2} as u8 + wide", "b < {t + 1}", "max(b, {t})"]


def helps(done):
    return re.findall(r"= help: convert (?:one|it): `([^`]*)`", done.stdout + done.stderr)


@pytest.mark.parametrize("expression", HOST)
def test_the_conversion_that_help_shows_compiles(expression, vortex, tmp_path):
    path = tmp_path / "program.vx"
    path.write_text(PROGRAM.format(tile="m", host=re.sub(r"[{}]", "", expression)))
    found = helps(vortex("check", path, status=None))
    if not found:
        vortex("check", path)
        return
    assert len(found) == 1
    fixed = [re.sub(r"\{[^}]*\}", lambda _: found[0], expression)]
    for operand in re.findall(r"[\w.]+(?: as \w+)?", re.sub(r"[{}]", "", expression)):
        fixed.append(re.sub(r"[{}]", "", expression).replace(operand, found[0], 1))
    statuses = []
    for text in fixed:
        path.write_text(PROGRAM.format(tile="m", host=text))
        statuses.append(vortex("check", path, status=None).returncode)
    assert 0 in statuses, (found, fixed)


def test_the_conversion_of_a_product_is_in_parentheses(vortex, tmp_path):
    path = tmp_path / "program.vx"
    path.write_text(PROGRAM.format(tile="n @ n.transpose() * 2 + m", host="1"))
    shown = helps(vortex("check", path, status=1))
    assert shown == ["(n @ n.transpose() * 2) as f32"]
    path.write_text(PROGRAM.format(tile=shown[0] + " + m", host="1"))
    vortex("check", path)


VARIANTS = "enum E { " + ", ".join(f"V{i}" for i in range(100_000)) + " }"
FIELDS = "struct S { " + ", ".join(f"f{i}: i32" for i in range(50_000)) + " }"


@pytest.mark.parametrize("text", [VARIANTS, FIELDS], ids=["variants", "fields"])
def test_long_definitions_are_checked_in_no_more_than_seconds(text, vortex, tmp_path):
    path = tmp_path / "program.vx"
    path.write_text(text + "\nfn main() {}\n")
    done = vortex("check", path, status=None, timeout=3600)
    assert done.returncode == (0 if text is VARIANTS else 1)
    assert text is VARIANTS or "E0335" in done.stderr


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_a_comment_ends_with_its_line(end, vortex, tmp_path):
    path = tmp_path / "program.vx"
    path.write_bytes(end.join(["// first", "fn main() {", "    /// what", "    let x = 1 // one", "    print(x)", "    missing()", "}"]).encode())
    done = vortex("check", path, status=1)
    assert "program.vx:6:5" in done.stdout + done.stderr
    path.write_bytes(end.join(["// first", "fn main() {", "    let x = 1 // one", "    assert_eq(x, 1)", "}"]).encode())
    vortex("run", path)


@pytest.mark.parametrize("written", ["fn main() {{ print({}) }}", "fn {0}() {{}}\nfn {0}() {{}}\nfn main() {{}}", "fn main() {{ let x: {} = 1 }}", "import {}\nfn main() {{}}"])
def test_a_long_name_is_cut_in_messages(written, vortex, tmp_path):
    path = tmp_path / "program.vx"
    path.write_text(written.format("n" * 1_000_000))
    done = vortex("check", path, status=1)
    assert re.search(r"error\[E\d{4}\]", done.stderr)
    assert len(done.stdout + done.stderr) < 5000


@pytest.mark.parametrize("block, grid", [("", "ceil_div(N, 256)], block = 256"), ("@launch(block = 64) ", "ceil_div(N, 64)], block = 64"),
                                         ("@launch(block = [32, 8]) ", "…], block = [32, 8]")])
def test_the_grid_that_help_shows_is_for_the_block_of_the_kernel(block, grid, vortex, tmp_path):
    path = tmp_path / "program.vx"
    path.write_text(block + "kernel k(x: &mut Tensor<f32, [N]>) {\n    x[block.id.x * 64 + thread.local_id] = 1.0\n}\n")
    assert f"`@launch(grid = [{grid})`" in vortex("check", path, status=1).stderr


@pytest.mark.parametrize("parameter, bound, type", [("&Tensor<f32, [N]>", "start", ""), ("&Tensor<f32, [M, N]>", "start[0]", ""), ("&Tensor<f32, [M, N]>", "start[0]", ": Tensor<f32, [N]>")])
@pytest.mark.parametrize("value", ["y", "now * 2.0"])
def test_the_copy_that_help_names_may_be_assigned(parameter, bound, type, value, vortex, tmp_path):
    text = f"kernel k(start: {parameter}) -> Tensor<f32, [N]> {{\n    var now{type} = BOUND\n    let y = now + 1.0\n    now = {value}\n    return now\n}}\n"
    path = tmp_path / "program.vx"
    path.write_text(text.replace("BOUND", bound))
    assert "a tensor of its own is a copy: `.copy()` where" in vortex("check", path, status=1).stderr
    path.write_text(text.replace("BOUND", bound + ".copy()"))
    vortex("check", path)


def test_the_copy_into_shared_memory_that_help_names_compiles(vortex, tmp_path):
    path = tmp_path / "program.vx"
    text = "@tile(m = 16)\nkernel k(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> {\n    let t: Tensor<f32, [16]> @shared = x[block_m..+16]ITS\n    return t - t.mean()\n}\n"
    path.write_text(text.replace("ITS", ""))
    assert "= help: copy it: `.copy()` behind it" in vortex("check", path, status=1).stderr
    path.write_text(text.replace("ITS", ".copy()"))
    vortex("check", path)


def test_lists_are_compared_as_help_says(vortex, tmp_path):
    path = tmp_path / "program.vx"
    text = "fn main() {{\n    let a = vec![1, 2]\n    let b = vec![1, 2]\n    {}\n}}\n"
    path.write_text(text.format("assert(a == b)"))
    assert "`assert_eq(a, b)` compares lists" in vortex("check", path, status=1).stderr
    path.write_text(text.format("assert_eq(a, b)"))
    vortex("run", path)


KERNEL = "kernel f(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [M, N]> {{ return {} }}\n"
# A program, what its help must show, and the program after it.
SHOWN = [
    (KERNEL.format("x / sum(exp(x), dim = 1)"), "keepdim = true", KERNEL.format("x / sum(exp(x), dim = 1, keepdim = true)")),
    ("kernel f(x: &Tensor<f32, [M, N]>, y: &Tensor<f32, [M]>) -> Tensor<f32, [M, N]> { return x * y }", "`.reshape([M, 1])`",
     "kernel f(x: &Tensor<f32, [M, N]>, y: &Tensor<f32, [M]>) -> Tensor<f32, [M, N]> { return x * y.reshape([M, 1]) }"),
    ("fn main() { let x: Tensor<f32, [3]> = [1.0, 2.0, 3.0] }", "`Tensor.from_host(vec![1.0, 2.0, 3.0])`",
     "fn main() { let x: Tensor<f32, [3]> = Tensor.from_host(vec![1.0, 2.0, 3.0]) }"),
    ("kernel f<B: usize>(x: &mut Tensor<f32, [N]>) { x[thread.global_id] = B as f32 }", "`const B`",
     "kernel f<const B: usize>(x: &mut Tensor<f32, [N]>) { x[thread.global_id] = B as f32 }"),
    ("fn f(): i32 { return 1 }", "`->`", "fn f()-> i32 { return 1 }"),
    ("kernel f(x: &[M, N] f32) { }", "`Tensor<f32, [M, N]>`", "kernel f(x: &Tensor<f32, [M, N]>) { }"),
    ("fn f(x: float32) { }", "`f32`", "fn f(x: f32) { }"),
]


@pytest.mark.parametrize("wrong, shown, right", SHOWN)
def test_what_help_shows_compiles(wrong, shown, right, vortex, tmp_path):
    path = tmp_path / "program.vx"
    path.write_text(wrong + "\n")
    done = vortex("check", path, status=1)
    found = re.findall(r"= help: ([^\n]*)", done.stdout + done.stderr)
    assert len(found) == 1 and shown in found[0]
    path.write_text(right + "\n")
    vortex("check", path)


POSITIONS = {"gl_GlobalInvocationID.x": "thread.global_id.x", "get_local_id(0)": "thread.id.x", "SV_GroupIndex": "thread.local_id", "program_id(0)": "block.id.x",
             "gl_SubgroupInvocationID": "warp.lane_id", "threads_per_threadgroup.x": "block.dim.x"}


def check_both(vortex, path, text, theirs, shown, ours):
    """`text` with another language's words for THEIRS is refused and help shows what is written here, and with ours it is right."""
    path.write_text(text.replace("THEIRS", theirs))
    assert shown in vortex("check", path, status=1).stderr
    path.write_text(text.replace("THEIRS", ours))
    vortex("check", path)


@pytest.mark.parametrize("theirs, ours", POSITIONS.items())
def test_positions_of_other_languages_have_a_counterpart(theirs, ours, vortex, tmp_path):
    text = "@launch(grid = [1], block = 64)\nkernel f(x: &mut Tensor<u32, [64]>) { @unchecked(races) x[0] = THEIRS as u32 }\n"
    check_both(vortex, tmp_path / "program.vx", text, theirs, f"= help: here this is `{ours.removesuffix('.x')}", ours)


# A line of a kernel as another language has it, what help shows, and the line after it.
LINES = [("barrier()", "sync_block()", "sync_block()"), ("GroupMemoryBarrierWithGroupSync()", "sync_block()", "sync_block()"),
         ("let v = simd_sum(x[i])", "warp.sum(value)", "let v = warp.sum(x[i])"), ("atomicOr(&x[i], 1)", "atomic_or(&mut t[i], value)", "atomic_or(&mut x[i], 1)"),
         ("let v = __ffs(x[i])", "ctz(n) + 1", "let v = ctz(x[i]) + 1"), ("static_assert(N > 0)", "assert(condition)", "assert(N > 0)"),
         ("let v = 1 if i > 3 else 2", "if c { a } else { b }", "let v = if i > 3 { 1 } else { 2 }"), ("let v = cdiv(i, 4)", "ceil_div(a, b)", "let v = ceil_div(i, 4)")]


@pytest.mark.parametrize("theirs, shown, ours", LINES)
def test_lines_of_other_languages_have_a_counterpart(theirs, shown, ours, vortex, tmp_path):
    text = "@launch(grid = [1], block = 64)\nkernel f(x: &mut Tensor<u32, [N]>) {\n    let i = thread.local_id\n    THEIRS\n}\n"
    check_both(vortex, tmp_path / "program.vx", text, theirs, f"`{shown}`", ours)


def test_attributes_and_launches_of_other_languages_have_a_counterpart(vortex, tmp_path):
    path = tmp_path / "program.vx"
    text = "HEAD f(x: &mut Tensor<f32, [N]>) { x[thread.global_id] = 1.0 }\nfn main() { var x: Tensor<f32, [64]> = zeros(); CALL }\n"
    for head, call, shown in [("@workgroup_size(64)\nkernel", "f(&mut x)", "here this is `@launch(block = 64)`"), ("@compute\nkernel", "f(&mut x)", "here this is `kernel` instead of `fn`"),
                              ("kernel", "f[2, 32](&mut x)", "`f.launch(grid = [blocks], block = threads)(…)`")]:
        path.write_text(text.replace("HEAD", head).replace("CALL", call))
        assert shown in vortex("check", path, status=1).stderr
    path.write_text(text.replace("HEAD", "@launch(block = 64)\nkernel").replace("CALL", "f.launch(grid = [2], block = 32)(&mut x)"))
    vortex("run", path)


@pytest.mark.parametrize("name", ["Option<i32>", "Matrix", "float4"])
def test_types_of_other_languages_have_a_counterpart(name, vortex, tmp_path):
    path = tmp_path / "program.vx"
    path.write_text(f"fn f(x: {name}) {{ }}\n")
    done = vortex("check", path, status=1)
    assert "here this is `" in done.stdout + done.stderr
