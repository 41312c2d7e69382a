"""Expressions of many thousands of operators, and nests of brackets up to Clang's limit."""
import json

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
