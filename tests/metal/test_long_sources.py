"""Expressions of many thousands of operators, and nests of brackets up to Clang's limit."""
import json

import numpy as np
import pytest

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
KERNEL = HEAD + "kernel void k(device const float* x [[buffer(0)]], device float* o [[buffer(1)]], uint i [[thread_position_in_grid]]) {\n%s}\n"


def test_an_expression_of_forty_thousand_operators_is_read(vortex, tmp_path):
    path = tmp_path / "k.metal"
    path.write_text(KERNEL % ("  o[i] = " + " + ".join(f"x[i + {k}]" for k in range(40_000)) + ";\n"))
    vortex("check", path)


@pytest.mark.parametrize("depth, status", [(250, 0), (100_000, 1)])
def test_nests_of_brackets_have_a_limit_that_is_told(vortex, tmp_path, depth, status):
    path = tmp_path / "k.metal"
    path.write_text(KERNEL % ("  o[i] = " + "(" * depth + "x[i]" + " + 1.0f)" * depth + ";\n"))
    done = vortex("--json", "run", path, "--grid", 2, "--buffer", "0=f32:1,2", "--buffer", "1=f32[2]", "--print", 1, status=status)
    if status == 0:
        assert done.stdout.split() == [str(1 + depth), str(2 + depth)]
    else:
        first = json.loads(done.stderr)[0]
        assert first["id"] == "E0901" and "bracket nesting level exceeded maximum of 256" in first["message"], first


def test_a_switch_of_a_hundred_and_fifty_cases(vortex, device, tmp_path):
    """Of code of so many branches the register allocator looks at parts only."""
    cases = [(k * 37 % 101 + 1, k * 53 % 64) for k in range(150)]
    text = "".join(f"      case {k}: a = a * {factor} + x[(h + {at}) & 63]; if (a > b) b += {k}; else x[64 + i] = a; break;\n" for k, (factor, at) in enumerate(cases))
    (tmp_path / "k.metal").write_text(HEAD + f"""kernel void k(device uint* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {{
  uint a = x[i], b = i * 1000003u, h = i;
  for (uint t = 0; t < 8; ++t) {{
    switch (h % 160) {{
{text}    }}
    h = h * 1664525u + 1013904223u;
  }}
  x[128 + i] = a ^ b;
}}
""")
    rng = np.random.default_rng()
    x = rng.integers(0, 2**32, 192, "u4")
    np.save(tmp_path / "x.npy", x)
    vortex("run", "k.metal", "--grid", 64, "--block", 32, "--buffer", "0=x.npy", "--save", "0=x.npy", "--device", device, cwd=tmp_path)
    values = [int(each) for each in x]
    for i in range(64):
        a, b, h = values[i], i * 1000003 % 2**32, i
        for _ in range(8):
            if (k := h % 160) < len(cases):
                a = (a * cases[k][0] + int(x[(h + cases[k][1]) & 63])) % 2**32
                if a > b:
                    b = (b + k) % 2**32
                else:
                    values[64 + i] = a
            h = (h * 1664525 + 1013904223) % 2**32
        values[128 + i] = a ^ b
    assert np.load(tmp_path / "x.npy").tolist() == values
