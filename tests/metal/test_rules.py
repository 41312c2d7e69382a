"""Every rule of rules.py, all in one source, in the interpreter with --check and on the device."""
import math

import pytest
from rules import N, RULES, X

TYPES = {"int": "i32", "uint": "u32", "float": "f32"}


def source():
    text = "#include <metal_stdlib>\nusing namespace metal;\n"
    for name, kind, declarations, body, _ in RULES:
        text += f"""{declarations}
kernel void rule_{name}(device {kind}* out [[buffer(0)]], device const float* x [[buffer(1)]], device const int* n [[buffer(2)]],
                   uint i [[thread_position_in_grid]], uint local [[thread_position_in_threadgroup]],
                   uint group [[threadgroup_position_in_grid]], uint groups [[threadgroups_per_grid]],
                   uint width [[threads_per_threadgroup]], uint total [[threads_per_grid]]) {{
  {body}
}}
"""
    return text


@pytest.fixture(scope="session")
def rules_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("metal") / "rules.metal"
    path.write_text(source())
    return path


def launch(vortex, rules_file, name, kind, *options):
    done = vortex("run", rules_file, "--kernel", "rule_" + name, "--grid", 8, "--block", 4, "--buffer", f"0={TYPES[kind]}[8]",
                  "--buffer", "1=f32:" + ",".join(map(str, X)), "--buffer", "2=i32:" + ",".join(map(str, N)), "--print", 0, *options)
    return [float(word) for word in done.stdout.split()]


@pytest.mark.parametrize("name, kind, declarations, body, expected", RULES, ids=[rule[0] for rule in RULES])
def test_rule(vortex, device, rules_file, name, kind, declarations, body, expected):
    for where in (["--check"], ["--device", device]):
        got = launch(vortex, rules_file, name, kind, *where)
        assert len(got) == 8
        for value, wanted in zip(got, expected):
            assert value == wanted if kind != "float" else math.isclose(value, wanted, rel_tol=3e-6, abs_tol=1e-6), (where, got, expected)


def test_there_are_a_hundred_rules_with_names_of_their_own():
    assert len({rule[0] for rule in RULES}) == len(RULES) >= 100
