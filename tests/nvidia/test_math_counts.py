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
