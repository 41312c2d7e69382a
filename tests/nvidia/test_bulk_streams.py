"""Without a GPU: softmax between two products on chips with bulk copies and warpgroup instructions."""
import re
import shutil
import subprocess

import pytest

HEAD = ("kernel attention(q: &Tensor<{0}, [B, H, S, D]>, k: &Tensor<{0}, [B, H, T, D]>, v: &Tensor<{0}, [B, H, T, E]>, bias: &Tensor<{0}, [B, H, S, T]>) "
        "-> Tensor<{0}, [B, H, S, E]> {{ return ")
PROGRAMS = {
    "plain": "softmax(q @ k.transpose()) @ v",
    "scaled": "softmax((q @ k.transpose()) * 0.125) @ v",
    "softcap": "softmax(30.0 * tanh((q @ k.transpose()) * 0.01)) @ v",
    "bias": "softmax((q @ k.transpose()) * 0.125 + bias) @ v",
    "causal": "softmax(((q @ k.transpose()) * 0.125).mask_upper_triangle(-inf)) @ v",
    "window": "softmax(select(arange(T) <= arange(S).reshape([S, 1]) && arange(T) + 300 > arange(S).reshape([S, 1]), q @ k.transpose() * 0.125, -inf)) @ v"}
GROUPED = ("kernel attention(q: &Tensor<bf16, [B, G * R, S, D]>, k: &Tensor<bf16, [B, G, T, D]>, v: &Tensor<bf16, [B, G, T, E]>) -> {0} {{\n"
           "    let scores = (q.reshape([B, G, R, S, D]) @ k.reshape([B, G, 1, T, D]).transpose()) as f32 * 0.125\n    {1}\n}}")
HEADS = "softmax(scores) as bf16 @ v.reshape([B, G, 1, T, E])"
SUMS = """    let m = max(scores, dim = -1)
    let x = exp(scores - m.reshape([B, H, S, 1]))
    let l = sum(x, dim = -1)
    let o = (x / l.reshape([B, H, S, 1])) as bf16 @ v"""
BY_POSITION = """kernel attention(q: &Tensor<bf16, [B, S, H, D]>, k: &Tensor<bf16, [B, T, H, D]>, v: &Tensor<bf16, [B, T, H, E]>) -> {0} {{
    let scores = (q.transpose([0, 2, 1, 3]) @ k.transpose([0, 2, 3, 1])) as f32 * 0.125
    let heads = softmax(scores) as bf16 @ v.transpose([0, 2, 1, 3])
    return {1}
}}"""
SUMMED = """kernel attention(q: &Tensor<bf16, [B, H, S, D]>, k: &Tensor<bf16, [B, H, T, D]>, v: &Tensor<bf16, [B, H, T, E]>) -> (Tensor<bf16, [B, H, S, E]>, {0}) {{
    let scores = (q @ k.transpose()) as f32 * 0.125
""" + SUMS + """
    return (o, {1})
}}"""
#: Orders and groups of dimensions, values of rows beside: the program, and how many plain stores the threads of a phase have.
FORMS = {
    "groups of heads": (GROUPED.format("Tensor<bf16, [B, G * R, S, E]>", f"return ({HEADS}).reshape([B, G * R, S, E])"), 0),
    "groups of heads in the result": (GROUPED.format("Tensor<bf16, [B, G, R, S, E]>", f"return {HEADS}"), 0),
    "groups of heads, by position": (GROUPED.format("Tensor<bf16, [B, S, G * R, E]>", f"return ({HEADS}).reshape([B, G * R, S, E]).transpose([0, 2, 1, 3])"), 0),
    "groups of heads, turned before they are regrouped": (
        GROUPED.format("Tensor<bf16, [B, S, G * R, E]>", f"return ({HEADS}).transpose([0, 3, 1, 2, 4]).reshape([B, S, G * R, E])"), 0),
    "by position": (BY_POSITION.format("Tensor<bf16, [B, S, H, E]>", "heads.transpose([0, 2, 1, 3])"), 0),
    "heads and columns in one dimension": (BY_POSITION.format("Tensor<bf16, [B, S, H * E]>", "heads.transpose([0, 2, 1, 3]).reshape([B, S, H * E])"), 0),
    "a sum per row": (SUMMED.format("Tensor<f32, [B, H, S]>", "m + log(l)"), 2),
    "a sum per row, by position, narrow": (SUMMED.format("Tensor<f16, [B, S, H]>", "(m + log(l)).transpose([0, 2, 1]) as f16"), 2),
    "a sum per row and dimension of one": (SUMMED.format("Tensor<f32, [B, H, S, 1]>", "(m + log(l)).reshape([B, H, S, 1])"), 2)}
OTHERS = {
    "rows and heads in one dimension": BY_POSITION.format("Tensor<bf16, [B, S * H, E]>", "heads.transpose([0, 2, 1, 3]).reshape([B, S * H, E])"),
    "columns turned": BY_POSITION.format("Tensor<bf16, [B, H, E, S]>", "heads.transpose([0, 1, 3, 2])"),
    "a sum over rows": SUMMED.format("Tensor<f32, [B, H]>", "sum(m + log(l), dim = -1)"),
    "sums in another order": SUMMED.format("Tensor<f32, [B, H * S]>", "(m + log(l)).reshape([B, H * S])"),
    "heads of the queries in other groups": """kernel attention(q: &Tensor<bf16, [B, S, H, D]>, k: &Tensor<bf16, [B, H, T, D]>, v: &Tensor<bf16, [B, H, T, D]>) -> Tensor<bf16, [B, H, S, D]> {
    return softmax((q.reshape([B, H, S, D]) @ k.transpose()) as f32) as bf16 @ v
}""",
    "f32": HEAD.format("f32") + PROGRAMS["plain"] + " }",
    "weights are stored": """kernel attention(q: &Tensor<bf16, [S, D]>, k: &Tensor<bf16, [T, D]>, v: &Tensor<bf16, [T, D]>) -> (Tensor<bf16, [S, D]>, Tensor<f32, [S, T]>) {
    let p = softmax((q @ k.transpose()) as f32)
    return (p as bf16 @ v, p)
}""",
    "another phase follows": """kernel attention(q: &Tensor<bf16, [S, D]>, k: &Tensor<bf16, [T, D]>, v: &Tensor<bf16, [T, D]>, w: &Tensor<bf16, [D, D]>) -> Tensor<bf16, [S, D]> {
    return (softmax(q @ k.transpose()) @ v) @ w
}""",
    "keys lie across": """kernel attention(q: &Tensor<bf16, [S, D]>, k: &Tensor<bf16, [D, T]>, v: &Tensor<bf16, [T, D]>) -> Tensor<bf16, [S, D]> {
    return softmax(q @ k) @ v
}"""}


def build(vortex, tmp_path, program, *arguments):
    path = tmp_path / "attention.vx"
    path.write_text(program + "\n")
    return vortex("build", path, "--no-cache", "--versions", "usual", *arguments, "-o", tmp_path).stdout


def streams(code):
    parts = re.split(r"\.visible \.entry (\w+)\(", code)
    return {name: text for name, text in zip(parts[1::2], parts[2::2]) if "_stream_" in name}


WIDTHS = 3  # operands up to 64, 128 and 256 wide
WHOLE = WIDTHS + 1  # before them, of the narrowest ones in blocks of three consumers


def with_all_keys(phases):
    """Those whose blocks have all keys. Before them stand the blocks that have pieces: of rows of queries, and of heads where these share keys."""
    phases = list(phases)
    assert len(phases) in (WIDTHS + WHOLE, 2 * WIDTHS + WHOLE)
    return phases[-WHOLE:]


def check_assembly(folder, code):
    """Of the streams only: the assembler takes them without spills and without putting matrix instructions one after another. Blocks with pieces may spill
    some registers of the widest operands, those of three consumers a few of their 160."""
    if not shutil.which("ptxas"):
        return
    parts = re.split(r"(?=^(?:\t*//[^\n]*\n)?\.visible \.entry )", code, flags=re.MULTILINE)
    (folder / "streams.ptx").write_text(parts[0] + "".join(part for part in parts[1:] if "_stream_" in part.split("(")[0]))
    done = subprocess.run(["ptxas", "-arch=sm_90a", "-v", folder / "streams.ptx", "-o", folder / "streams.cubin"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    entries = re.split(r"Compiling entry function '", done.stderr)[1:]
    kept = {name for name in with_all_keys(streams(code))[-WIDTHS:]}
    assert len(entries) == len(streams(code))
    for part in entries:
        stores, loads = map(int, re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", part).groups())
        assert max(stores, loads) <= (0 if part.partition("'")[0] in kept else 192), part
    assert not set(re.findall(r"C75\d\d", done.stderr)) - {"C7519"}, done.stderr


@pytest.mark.parametrize("case", PROGRAMS)
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_scores_stay_in_registers(vortex, tmp_path, kind, case):
    code = build(vortex, tmp_path, HEAD.format(kind) + PROGRAMS[case] + " }", "--target", "sm_90", "--emit", "asm")
    for text in streams(code).values():
        assert re.search(r"wgmma\.mma_async[^;]*\}, %rd", text) and re.search(r"wgmma\.mma_async[^;]*\}, \{%r", text)
    for text in with_all_keys(streams(code).values()):
        # Both products run on warpgroup instructions, weights from registers; nothing is written but results, by the copy engine.
        assert re.search(r"wgmma\.mma_async[^;]*\}, %rd", text) and re.search(r"wgmma\.mma_async[^;]*\}, \{%r", text)
        assert ".global.shared::cta.bulk_group" in text and "st.global" not in text and "bar.arrive" in text
    check_assembly(tmp_path, code)


@pytest.mark.parametrize("case", FORMS)
def test_forms_keep_scores_in_registers(vortex, tmp_path, case):
    program, stores = FORMS[case]
    code = build(vortex, tmp_path, program, "--target", "sm_90", "--emit", "asm")
    for text in with_all_keys(streams(code).values()):
        assert len(re.findall(r"wgmma\.mma_async", text)) > 2 and ".global.shared::cta.bulk_group" in text
        assert len(re.findall(r"st\.global\.", text)) == stores
    check_assembly(tmp_path, code)


def test_masks_bound_the_loop(vortex, tmp_path):
    """Causal: it ends with the block's rows. Lengths: with the sequence's, which is loaded once, before the loop. Both: it begins at 0, and chunks that are left
    whole are apart."""
    lengths = """kernel attention(q: &Tensor<bf16, [B, H, S, D]>, k: &Tensor<bf16, [B, H, T, D]>, v: &Tensor<bf16, [B, H, T, D]>, count: &Tensor<i32, [B]>) -> Tensor<bf16, [B, H, S, D]> {
    return softmax(select(arange(T) < count.reshape([B, 1, 1, 1]), (q @ k.transpose()) as f32 * 0.125, -inf)) as bf16 @ v
}"""
    for program in (HEAD.format("bf16") + PROGRAMS["causal"] + " }", lengths):
        steps = build(vortex, tmp_path, program, "--target", "sm_90", "--emit", "ir")
        for phase in with_all_keys(re.findall(r"vx\.kernel @attention\.stream\.\d.*?vx\.return", steps, re.DOTALL)):
            begin, end = re.search(r"scf\.for %\w+ = (%\w+) to (%\w+) step", phase).groups()
            assert f"{begin} = arith.constant 0 " in phase and f"{end} = arith.minsi" in phase
            before, body = phase.split("scf.for", 1)
            assert ("vx.load" in before) == (program is lengths) and "vx.load " not in body
            assert re.search(r"arith\.select %\w+, %\w+, %\w+ : tensor<\?x\?x\?x\?xf32>", body)


def test_offsets_windows_and_lengths_bound_one_loop(vortex, tmp_path):
    """From both sides, chunk by chunk; chunks that all of them leave whole are apart, by a scalar that both sides decide."""
    program = """kernel attention(q: &Tensor<bf16, [B, H, S, D]>, k: &Tensor<bf16, [B, H, T, D]>, v: &Tensor<bf16, [B, H, T, D]>, count: &Tensor<i32, [B]>, offset: i64) -> Tensor<bf16, [B, H, S, D]> {
    let scores = (q @ k.transpose()) as f32 * 0.125
    let row = arange(S).reshape([S, 1])
    let kept = arange(T) + 300 > row && arange(T) < count.reshape([B, 1, 1, 1])
    return softmax(select(kept, scores.mask_upper_triangle(-inf, offset = offset), -inf)) as bf16 @ v
}"""
    steps = build(vortex, tmp_path, program, "--target", "sm_90", "--emit", "ir")
    for phase in with_all_keys(re.findall(r"vx\.kernel @attention\.stream\.\d.*?vx\.return", steps, re.DOTALL)):
        begin, end = re.search(r"scf\.for %\w+ = (%\w+) to (%\w+) step", phase).groups()
        before, body = phase.split("scf.for", 1)
        assert re.search(rf"{begin} = arith\.subi", before) and re.search(rf"{end} = arith\.minsi", before) and "vx.load" in before
        whole = re.search(r"(%\w+) = arith\.andi %\w+, %\w+ : i1", body)[1]
        assert re.search(rf"arith\.select {whole}, %\w+, %\w+ : tensor<\?x\?x\?x\?xf32>", body)


def test_the_library_is_one_phase(vortex, tmp_path):
    """Scales and the flag of a mask are arguments."""
    program = """import nn.attention { attention, grouped_attention, attention_by_position }

fn main() {
    let q: Tensor<bf16, [2, 2, 9, 16]> = zeros()
    let grouped: Tensor<bf16, [2, 2, 3, 9, 16]> = zeros()
    attention(&q, &q, &q, 0.25, true)
    attention_by_position(&q, &q, &q, 0.25, true)
    grouped_attention(&grouped, &q, &q, 0.25, true)
}"""
    steps = build(vortex, tmp_path, program, "--target", "sm_90", "--emit", "ir")
    for kernel in ("attention", "grouped_attention", "attention_by_position"):
        with_all_keys(re.findall(rf'vx\.kernel @"{kernel}-bf16\.stream', steps))


def test_other_chips_and_other_launches_keep_their_phases(vortex, tmp_path):
    program = HEAD.format("bf16") + PROGRAMS["scaled"] + " }"
    assert "stream" not in build(vortex, tmp_path, program, "--target", "sm_80", "--emit", "ir")
    steps = build(vortex, tmp_path, program, "--target", "sm_90", "--emit", "ir")
    assert re.search(r'vx\.case "in phases" \{', steps) and "vx.phase @attention.tensors" in steps


@pytest.mark.parametrize("case", OTHERS)
def test_what_it_cannot_do_keeps_its_phases(vortex, tmp_path, case):
    assert "@attention.stream" not in build(vortex, tmp_path, OTHERS[case], "--target", "sm_90", "--emit", "ir")
