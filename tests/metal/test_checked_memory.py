"""Messages of --check about memory of Metal source: names and elements are the source's, whatever the code that is run has made of them."""
import json

import pytest

HEAD = "#include <metal_stdlib>\nusing namespace metal;\nstruct P { float3 a; int n; };\nstruct Q { half2 h; uchar c[5]; };\n"
KERNEL = "kernel void k(device %s* o [[buffer(0)]], uint i [[thread_position_in_grid]]) {\n%s\n}\n"


@pytest.mark.parametrize("name, helper, kind, body, id, message", [
    ("structs_of_a_buffer", "", "P", "o[i + 1].n = i;", "E0601", "index 4 is outside dimension 0 of `o`, which has extent 4"),
    ("structs_of_threadgroup_memory", "", "P", "threadgroup P t[8]; t[i + 5].n = i; o[0].n = t[i].n;", "E0601", "index 8 is outside dimension 0 of `t`, which has extent 8"),
    ("structs_of_a_thread", "", "P", "Q t[3]; for (uint j = 0; j < 3; ++j) t[j].c[j] = i; o[0].n = t[i].c[1] + t[i + 1].c[2];", "E0602", "element 0 of `t`"),
    ("vectors", "", "float4", "o[i + 3] = float4(i);", "E0601", "index 8 is outside dimension 0 of `o`, which has extent 8"),
    ("elements_before_the_first", "", "float4", "device float4* p = o + i; p[-1 - int(i)].y = 1;", "E0601", "index -1 is outside dimension 0 of `o`, which has extent 8"),
    ("races_on_structs", "", "P", "o[i >> 2].n = i;", "E0603", "race on element 0 of `o`"),
    ("arrays_of_functions", "float f(uint i) { float v[3] = {1, 2, 3}; return v[i & 3]; }\nfloat g(uint i) { return f(i) + 1; }\n", "float", "o[i] = g(i);", "E0601",
     "index 3 is outside dimension 0 of `v`, which has extent 3"),
    ("arrays_of_lambdas", "", "float", "auto f = [&](uint j) { float w[3] = {1, 2, o[0]}; return w[j & 3]; };\no[i + 8] = f(i);", "E0601", "index 3 is outside dimension 0 of `w`"),
])
def test_messages_speak_of_what_the_source_has(vortex, tmp_path, name, helper, kind, body, id, message):
    path = tmp_path / "k.metal"
    path.write_text(HEAD + helper + KERNEL % (kind, body))
    done = vortex("--json", "run", path, "--check", "--grid", 8, "--block", 8, "--buffer", "0=i32[32]", status=1)
    found = json.loads(done.stderr)[0]
    assert found["id"] == id and message in found["message"], found


def test_what_a_copy_of_a_structure_reads_is_reported_at_the_copy(vortex, tmp_path):
    path = tmp_path / "k.metal"
    path.write_text(HEAD + "struct Ray { float3 at, to; };\n" + KERNEL % ("float", "  Ray r[2];\n  r[0].at = float3(i);\n  r[1] = r[0];\n  o[i] = r[i & 1].at.x + r[1].to.y;"))
    done = vortex("--json", "run", path, "--check", "--grid", 8, "--block", 8, "--buffer", "0=f32[8]", status=1)
    found = json.loads(done.stderr)[0]
    assert found["id"] == "E0602" and [label["line"] for label in found["labels"] if label["primary"]] == [9], found
