"""Without a GPU: how many float instructions an element of the activations of bench/kernels/activations.vx takes, and that none of them branches."""
import collections
import pathlib
import re

import pytest

# Float instructions per element, conversions included; special functions per element. A core has 32 slots for an element of f16 read and written,
# 64 for one of f32, at the speed of memory.
LIMITS = {
    "exp": {"f32": (8, "ex2"), "f16": (4, "ex2"), "bf16": (4.5, "ex2")}, "sigmoid": {"f32": (15, "ex2 rcp"), "f16": (6, "ex2 rcp"), "bf16": (6.5, "ex2 rcp")},
    "tanh": {"f32": (20, "ex2 rcp"), "f16": (3, "tanh"), "bf16": (3, "tanh")}, "silu": {"f16": (8, "ex2 rcp"), "bf16": (7.5, "ex2 rcp")},
    "gelu": {"f32": (29, "ex2"), "f16": (24, "ex2 rcp"), "bf16": (24, "ex2 rcp")},
    "gelu_tanh": {"f32": (27, "ex2 rcp"), "f16": (12, "ex2 rcp"), "bf16": (12, "ex2 rcp")}, "log": {"f32": (24, ""), "f16": (7, "lg2"), "bf16": (7, "lg2")},
    "swiglu": {"f16": (10, "ex2 rcp"), "bf16": (9, "ex2 rcp")},
}


@pytest.fixture(scope="module")
def entries(program, tmp_path_factory):
    """{kernel: [code of each entry for tensors that lie well]}"""
    import subprocess

    folder = tmp_path_factory.mktemp("counts")
    source = pathlib.Path(__file__).resolve().parents[2] / "bench/kernels/activations.vx"
    subprocess.run([str(program), "build", str(source), "--target", "sm_90", "--no-cache", "-o", str(folder)], check=True, capture_output=True)
    found = {}
    for path in folder.glob("*.ptx"):
        bodies = re.findall(r"\.entry\s+(\w+)\s*\(.*?\).*?\n\{(.*?)\n\}", path.read_text(), re.S)
        found[path.name.split(".")[1]] = [body for name, body in bodies if "general" not in name]
    return found


@pytest.mark.parametrize("name,kind", [(name, kind) for name, kinds in LIMITS.items() for kind in kinds])
def test_activations_take_few_instructions(entries, name, kind):
    limit, units = LIMITS[name][kind]
    for body in entries[f"{name}_{kind}"]:
        stored = sum(int(width or 1) * int(bits) for width, bits in re.findall(r"st\.global[\w.:]*?(?:\.v(\d))?\.[bfu](\d+)", body))
        elements = stored // int(kind[-2:])
        counts = collections.Counter(re.findall(r"^\s+(?:@%?\S+ )?([a-z]\w+(?:\.\w+)*)", body, re.M))
        floats = sum(n for text, n in counts.items() if re.search(r"\.b?f(16|32)", text) and not text.startswith(("ld", "st", "mov")))
        special = sorted(text.split(".")[0] for text in counts if re.match(r"(ex2|rcp|lg2|tanh|sqrt|rsqrt)\.", text) for _ in range(counts[text] // elements))
        assert elements >= 4 and floats / elements <= limit, f"{floats / elements} per element"
        assert special == sorted(units.split())
        assert not any(text.startswith("div.") for text in counts)


LOG_OF_SUM = "pub kernel k(x: &Tensor<{kind}, [M, N]>) -> Tensor<f32, [M]> {{\n    let wide = x as f32\n    let largest = wide.max(dim = -1, keepdim = true)\n    return (largest + log(exp(wide - largest).sum(dim = -1, keepdim = true))).reshape([M])\n}}\n"


def reduced_exponentials(vortex, tmp_path, text):
    """The share of exponentials whose argument is reduced (fma.rm)."""
    path = tmp_path / "k.vx"
    path.write_text(text)
    code = vortex("build", path, "--target", "sm_90", "--no-cache", "--emit", "asm").stdout
    total = len(re.findall(r"\sex2\.approx", code))
    assert total >= 40
    return len(re.findall(r"\sfma\.rm\.", code)) / total


@pytest.mark.parametrize("kind", ["f32", "bf16"])
def test_exponentials_that_only_a_sum_has_take_two_instructions(vortex, tmp_path, kind):
    """All but those that rescale a thread's sum (math::Form::isSummed); not under @strict, and not weights that are stored as well."""
    text = LOG_OF_SUM.format(kind=kind)
    assert reduced_exponentials(vortex, tmp_path, text) <= 0.2
    assert reduced_exponentials(vortex, tmp_path, "@strict\n" + text) == 1
    sums = "(largest + log(exp(wide - largest).sum(dim = -1, keepdim = true))).reshape([M])"
    stored = text.replace("-> Tensor<f32, [M]>", "-> Tensor<f32, [M, N]>").replace(sums, "exp(wide - largest) / exp(wide - largest).sum(dim = -1, keepdim = true)")
    assert reduced_exponentials(vortex, tmp_path, stored) >= 0.6
