"""What `--dump-after plan` says of whole-tensor kernels: the launches that are built are the planned ones."""
import re

import pytest

MATRICES = "x: &Tensor<{0}, [M, K]>, w: &Tensor<{0}, [K, N]>"
PROGRAMS = {
    "elements": "kernel k(x: &Tensor<f32, [M, N]>, y: &Tensor<f32, [M, N]>) -> Tensor<f32, [M, N]> { return x * y + 1.0 }",
    "transpose": "kernel k(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [N, M]> { return x.transpose() }",
    "softmax": "kernel k(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [M, N]> { return x.softmax(dim = -1) }",
    "column sums": "kernel k(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [N]> { return x.sum(dim = 0) }",
    "column means subtracted": "kernel k(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [M, N]> { return x - x.mean(dim = 0, keepdim = true) }",
    "sum": "kernel k(x: &Tensor<f32, [M, N]>) -> f32 { return x.sum() }",
    "scan": "kernel k(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x.cumsum(dim = 0) }",
    "scan of columns": "kernel k(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [M, N]> { return x.cumsum(dim = 0) }",
    "product": f"kernel k({MATRICES.format('f16')}) -> Tensor<f16, [M, N]> {{ return x @ w }}",
    "product of f32 with bias": f"kernel k({MATRICES.format('f32')}, b: &Tensor<f32, [N]>) -> Tensor<f32, [M, N]> {{ return max(x @ w + b, 0.0) }}",
    "two products": """kernel k(x: &Tensor<f16, [M, K]>, w: &Tensor<f16, [K, L]>, v: &Tensor<f16, [L, N]>) -> Tensor<f16, [M, N]> {
    let h = x @ w
    return (h * sigmoid(h)) @ v
}""",
    "attention": """kernel k(q: &Tensor<bf16, [B, S, D]>, k: &Tensor<bf16, [B, T, D]>, v: &Tensor<bf16, [B, T, D]>) -> Tensor<bf16, [B, S, D]> {
    return (q @ k.transpose()).softmax(dim = -1) @ v
}""",
    "powers": """kernel k(x: &Tensor<f32, [N, N]>, n: usize) -> Tensor<f32, [N, N]> {
    var y = x * 1.0
    for i in 0..n { y = y @ x }
    return y
}"""}
# What launches of a target may consist of, by kinds of phases and their work, in the order of the plan.
WORK = {
    ("elements", "cpu"): ["tensors: compute"],
    ("softmax", "cpu"): ["tensors: compute"],
    ("sum", "sm_90"): ["partial: partial reduction", "serial: compute"],
    ("column sums", "sm_90"): ["partial: partial reduction", "tensors: compute"],
    ("column means subtracted", "cpu"): ["partial: partial reduction", "combine: combine", "tensors: compute"],
    ("scan", "sm_90"): ["clear: clear", "tensors: scan with look-back"],
    ("scan", "sm_80"): ["clear: clear", "tensors: scan with look-back"],
    ("product of f32 with bias", "cpu"): ["tensors: compute"]}


def parts(vortex, tmp_path, program, target):
    path = tmp_path / "program.vx"
    path.write_text(program)
    dumped = vortex("build", path, "--target", target, "--dump-after", "plan,schedule", "--no-cache", "--emit", "ir").stderr
    sections = dict(re.findall(r"// ---- k after (\w+)\n(.*?)(?=// ---- |\Z)", dumped, re.S))
    return sections["plan"], sections["schedule"]


@pytest.mark.parametrize("target", ["cpu", "sm_80", "sm_90", "metal3.1"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_planned_phases_are_built_in_their_order(vortex, tmp_path, name, target):
    plan, schedule = parts(vortex, tmp_path, PROGRAMS[name], target)
    planned = re.findall(r"^ *phase (\w+): .*; blocks ([^;\n]*)", plan, re.M)
    built = re.findall(r"vx\.kernel @k\.(\w+)\.\d+.*? grid \[#vx\.size<\"(.*?)\">", schedule)
    assert planned and [(kind, blocks.strip()) for kind, blocks in planned] == built
    # Every case of the plan is one of the launch, or was the only one left.
    cases = set(re.findall(r"vx\.case \"([^\"]*)\"", schedule))
    assert cases <= set(re.findall(r"case \"([^\"]*)\"", plan))


@pytest.mark.parametrize("name, target", WORK)
def test_work_of_phases(vortex, tmp_path, name, target):
    plan, _ = parts(vortex, tmp_path, PROGRAMS[name], target)
    phases = re.findall(r"^ *phase (\w+: (?:scan with look-back|partial reduction|[a-z]+))", plan, re.M)
    assert phases == WORK[name, target]


def test_stages_are_listed_once(vortex):
    assert vortex("run", "examples/scale.vx", "--dump-after", "nothing", status=2).stderr.count("plan,") == 1
