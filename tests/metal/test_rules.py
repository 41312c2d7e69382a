"""Every rule of the tables in the interpreter with --check and on the device, and as code that ptxas takes.

Rules of one thread are functions, of which a kernel calls sixteen; those that need threadgroup memory and those of thread_rules.py are kernels."""
import math
import shutil
import subprocess

import edge_rules  # noqa: F401: adds its rules
import language_rules  # noqa: F401
import library_rules  # noqa: F401
import program_rules  # noqa: F401
import pytest
import thread_rules
from rules import N, RULES, X
from thread_rules import THREAD_RULES

TYPES = {"int": "i32", "uint": "u32", "float": "f32"}
HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
INPUTS = "device const float* x [[buffer(3)]], device const int* n [[buffer(4)]], uint i [[thread_position_in_grid]], uint local [[thread_position_in_threadgroup]],\n" \
         "  uint group [[threadgroup_position_in_grid]], uint groups [[threadgroups_per_grid]], uint width [[threads_per_threadgroup]], uint total [[threads_per_grid]]"
TOGETHER = ("threadgroup", "simd_", "quad_")
ALONE = [rule for rule in RULES if not any(word in rule[3] for word in TOGETHER)]
BATCHES = [ALONE[k:k + 16] for k in range(0, len(ALONE), 16)] + [[rule] for rule in RULES if any(word in rule[3] for word in TOGETHER)]


def batch_source(batch):
    """Each rule writes its own eight elements of the result of its type."""
    text, calls = HEAD, ""
    for number, (name, kind, declarations, body, _) in enumerate(batch):
        if len(batch) == 1:
            text += declarations + "\n"
            calls = f"  device {kind}* out = all_{kind};\n  {body}\n"
            break
        text += f"""{declarations}
void rule_{name}(device {kind}* out, device const float* x, device const int* n, uint i, uint local, uint group, uint groups, uint width, uint total) {{
  {body}
}}
"""
        calls += f"  rule_{name}(all_{kind} + {8 * number}, x, n, i, local, group, groups, width, total);\n"
    return text + f"kernel void rules(device int* all_int [[buffer(0)]], device uint* all_uint [[buffer(1)]], device float* all_float [[buffer(2)]],\n  {INPUTS}) {{\n{calls}}}\n"


def thread_source(rule):
    name, kind, declarations, parameters, body, *_ = rule
    return HEAD + f"""{declarations}
kernel void {name}(device {kind}* out [[buffer(0)]], device const int* n [[buffer(1)]]{", " * bool(parameters)}{parameters},
    uint3 position_ [[thread_position_in_grid]], uint3 grid_ [[threads_per_grid]]) {{
  uint at = position_.x + grid_.x * (position_.y + grid_.y * position_.z);
  {body}
}}
"""


def joined(values):
    return ",".join(map(str, values))


def agree(kind, got, expected):
    return len(got) == len(expected) and all(a == b if kind != "float" else math.isclose(a, b, rel_tol=3e-6, abs_tol=1e-6) for a, b in zip(got, expected))


def assemble(vortex, path, number, *options):
    """For sm_80 or sm_90a in turn."""
    target, architecture = (("sm_80", "sm_80"), ("sm_90", "sm_90a"))[number % 2]
    ptxas = shutil.which("ptxas")
    if not ptxas:
        return
    vortex("build", path, "--target", target, "-o", path.parent / "out", *options)
    made = sorted((path.parent / "out").glob("*.ptx"))
    assert made
    for file in made:
        done = subprocess.run([ptxas, "-arch", architecture, file, "-o", path.parent / "k.cubin"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("number", range(len(BATCHES)), ids=[batch[0][0] for batch in BATCHES])
def test_rules(vortex, device, tmp_path, number):
    batch, path = BATCHES[number], tmp_path / "rules.metal"
    path.write_text(batch_source(batch))
    results = [word for k, kind in enumerate(TYPES.values()) for word in ("--buffer", f"{k}={kind}[{8 * len(batch)}]", "--print", k)]
    for where in (["--check"], ["--device", device]):
        done = vortex("run", path, "--grid", 8, "--block", 4, *results, "--buffer", "3=f32:" + joined(X), "--buffer", "4=i32:" + joined(N), *where)
        lines = dict(zip(TYPES, ([float(word) for word in line.split()] for line in done.stdout.splitlines())))
        wrong = [(name, lines[kind][8 * k:8 * k + 8], expected) for k, (name, kind, _, _, expected) in enumerate(batch) if not agree(kind, lines[kind][8 * k:8 * k + 8], expected)]
        assert not wrong, (where, wrong)
    assemble(vortex, path, number)


@pytest.mark.parametrize("number", range(len(THREAD_RULES)), ids=[rule[0] for rule in THREAD_RULES])
def test_rule_of_threads(vortex, device, tmp_path, number):
    name, kind, _, _, _, grid, block, options, expected = THREAD_RULES[number]
    path = tmp_path / "rule.metal"
    path.write_text(thread_source(THREAD_RULES[number]))
    for where in (["--check"], ["--device", device]):
        done = vortex("run", path, "--kernel", name, "--grid", joined(grid), "--block", joined(block), "--buffer", f"0={TYPES[kind]}[{len(expected)}]",
                      "--buffer", "1=i32:" + joined(thread_rules.N), "--print", 0, *options, *where)
        got = [float(word) for word in done.stdout.split()]
        assert agree(kind, got, expected), (where, got, expected)
    assemble(vortex, path, number, *options)


def test_a_template_instance_runs_under_its_host_name(vortex, device, tmp_path):
    path = tmp_path / "instance.metal"
    path.write_text(HEAD + "template <typename T, int K> [[kernel]] void filled(device T* out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = T(K); }\n"
                    'template [[host_name("filled_int_3")]] [[kernel]] void filled<int, 3>(device int*, uint);\n'
                    'template [[host_name("filled_float_4")]] [[kernel]] void filled<float, 4>(device float*, uint);\n')
    for name, kind, text in (("filled_int_3", "i32", "3 3 3\n"), ("filled_float_4", "f32", "4 4 4\n")):
        assert vortex("run", path, "--kernel", name, "--grid", 3, "--buffer", f"0={kind}[3]", "--print", 0, "--device", device).stdout == text


def test_there_are_a_hundred_rules_with_names_of_their_own():
    names = [rule[0] for rule in RULES + THREAD_RULES]
    assert len(set(names)) == len(names) >= 100


def test_casts_between_half_and_bfloat_in_headers_that_use_no_namespace(vortex, device, tmp_path):
    (tmp_path / "converted.h").write_text("#define TO_HALF(x) half(x)\nstruct Brain { bfloat b; };\n"
                                          "template <class T, class U> struct Converted {\n  static T call(U u) { return T(u); }\n  static T cast(thread const U& u) { return (T)u; }\n};\n")
    path = tmp_path / "k.metal"
    path.write_text("""#include <metal_stdlib>
#include "converted.h"
constant bfloat kBrain = (bfloat)half(1.5h);
kernel void k(device half* h [[buffer(0)]], device bfloat* b [[buffer(1)]], device float* out [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  Brain m = {bfloat(h[1])};
  auto f = [&](bfloat z) { return (half)z; };
  out[0] = float(Converted<half, bfloat>::call(b[0])) + float(Converted<bfloat, half>::cast(h[0]));
  out[1] = float(TO_HALF(m.b)) + float((half)m.b) + float((half)(i < 3 ? b[1] : b[2])) + float(kBrain);
  out[2] = float((bfloat)(half)(bfloat)h[2]) + f(b[2]) + (half)b[0] * (half)b[1] + (half)-b[1] + half(b[1]) / half(b[0]);
}
""")
    done = vortex("run", path, "--grid", 1, "--buffer", "0=f16:1,2,3", "--buffer", "1=bf16:1.5,3,3.5", "--buffer", "2=f32[3]", "--print", 2, "--device", device)
    assert done.stdout == "2.5 8.5 10\n"
