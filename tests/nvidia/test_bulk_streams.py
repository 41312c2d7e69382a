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
OTHERS = {
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
    return vortex("build", path, "--no-cache", *arguments, "-o", tmp_path).stdout


def streams(code):
    parts = re.split(r"\.visible \.entry (\w+)\(", code)
    return {name: text for name, text in zip(parts[1::2], parts[2::2]) if "_stream_" in name}


@pytest.mark.parametrize("case", PROGRAMS)
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_scores_stay_in_registers(vortex, tmp_path, kind, case):
    code = build(vortex, tmp_path, HEAD.format(kind) + PROGRAMS[case] + " }", "--target", "sm_90", "--emit", "asm")
    phases = streams(code)
    assert len(phases) == 3  # of operands up to 64, 128 and 256 wide
    for text in phases.values():
        # Both products run on warpgroup instructions, weights from registers; nothing is written but results, by the copy engine.
        assert re.search(r"wgmma\.mma_async[^;]*\}, %rd", text) and re.search(r"wgmma\.mma_async[^;]*\}, \{%r", text)
        assert ".global.shared::cta.bulk_group" in text and "st.global" not in text and "bar.arrive" in text
    if shutil.which("ptxas"):
        (tmp_path / "all.ptx").write_text(code)
        log = subprocess.run(["ptxas", "-arch=sm_90a", "-v", tmp_path / "all.ptx", "-o", tmp_path / "all.cubin"],
                             capture_output=True, text=True).stderr
        for part in re.split(r"Compiling entry function '", log)[1:]:
            if "_stream_" in part.split("'")[0]:
                assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in part, part
        assert not set(re.findall(r"C75\d\d", log)) - {"C7519"}, log


def test_masks_bound_the_loop(vortex, tmp_path):
    """Causal: it ends with the block's rows. Lengths: with the sequence's, which is loaded once, before the loop. Both: it begins at 0, and chunks that are left
    whole are apart."""
    lengths = """kernel attention(q: &Tensor<bf16, [B, H, S, D]>, k: &Tensor<bf16, [B, H, T, D]>, v: &Tensor<bf16, [B, H, T, D]>, count: &Tensor<i32, [B]>) -> Tensor<bf16, [B, H, S, D]> {
    return softmax(select(arange(T) < count.reshape([B, 1, 1, 1]), (q @ k.transpose()) as f32 * 0.125, -inf)) as bf16 @ v
}"""
    for program in (HEAD.format("bf16") + PROGRAMS["causal"] + " }", lengths):
        steps = build(vortex, tmp_path, program, "--target", "sm_90", "--emit", "ir")
        phases = re.findall(r"vx\.kernel @attention\.stream\.\d.*?vx\.return", steps, re.DOTALL)
        assert len(phases) == 3
        for phase in phases:
            begin, end = re.search(r"scf\.for %\w+ = (%\w+) to (%\w+) step", phase).groups()
            assert f"{begin} = arith.constant 0 " in phase and f"{end} = arith.minsi" in phase
            before, body = phase.split("scf.for", 1)
            assert ("vx.load" in before) == (program is lengths) and "vx.load " not in body
            assert re.search(r"arith\.select %\w+, %\w+, %\w+ : tensor<\?x\?x\?x\?xf32>", body)


def test_other_chips_and_other_launches_keep_their_phases(vortex, tmp_path):
    program = HEAD.format("bf16") + PROGRAMS["scaled"] + " }"
    assert "stream" not in build(vortex, tmp_path, program, "--target", "sm_80", "--emit", "ir")
    steps = build(vortex, tmp_path, program, "--target", "sm_90", "--emit", "ir")
    assert re.search(r'vx\.case "in phases" \{', steps) and "vx.phase @attention.tensors" in steps


@pytest.mark.parametrize("case", OTHERS)
def test_what_it_cannot_do_keeps_its_phases(vortex, tmp_path, case):
    assert "@attention.stream" not in build(vortex, tmp_path, OTHERS[case], "--target", "sm_90", "--emit", "ir")
