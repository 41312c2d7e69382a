"""What ends a launch says why with the values of the thread that failed: asserts in code of threads, of the block, in loops and under conditions, and
ranges that do not move on."""
import random
import re

import pytest

KINDS = {  # type: (a value, what the message shows)
    "f32": lambda r: (r.randrange(-4000, 4000) / 8, lambda v: repr(float(v))),
    "f16": lambda r: (r.randrange(-400, 400) / 8, lambda v: repr(float(v))),
    "f64": lambda r: (r.randrange(-4000, 4000) / 8, lambda v: repr(float(v))),
    "i32": lambda r: (r.randrange(-2**31, 2**31), str),
    "u32": lambda r: (r.randrange(2**31, 2**32), str),
    "i8": lambda r: (r.randrange(-128, 128), str),
    "u64": lambda r: (r.randrange(2**63, 2**64), str),
}


def failure(vortex, tmp_path, backend, text):
    path = tmp_path / "faults.vx"
    path.write_text(text)
    return vortex("run", *backend, path, status=1).stderr


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["thread", "condition", "loop", "call"])
def test_an_assert_shows_the_values_of_the_thread_that_fails(vortex, tmp_path, backend, kind, where, fresh_seed):
    r = random.Random(fresh_seed())
    size, bad = r.randrange(30, 300), r.randrange(30)
    value, show = KINDS[kind](r)
    check = 'assert(x[g] != bad, "{} at {} is {}, of {} {}", g, "element", x[g], "all", g > 1000)'
    body = {"thread": check, "condition": f"if g % 2 == {bad % 2} {{ {check} }}", "loop": f"for k in 0..3 {{ if k == 1 {{ {check} }} }}",
            "call": "look(x, bad, g)"}[where]
    other = 1 if value != 1 else 2
    text = f"""fn look(x: &Tensor<{kind}, [N]>, bad: {kind}, g: usize) {{
    {check}
}}
kernel k(x: &Tensor<{kind}, [N]>, out: &mut Tensor<{kind}, [N]>, bad: {kind}) {{
    let g = thread.global_id
    {body}
    out[g] = x[g]
}}
fn main() {{
    var v = vec![{other} as {kind}; {size}]
    v[{bad}] = {value} as {kind}
    var out = zeros::<{kind}>([{size}])
    k(&Tensor.from_host(v), &mut out, {value} as {kind})
    print(out.to_host()[0])
}}
"""
    assert f"{bad} at element is {show(value)}, of all false" in failure(vortex, tmp_path, backend, text)


def test_an_assert_of_the_block_shows_scalars_and_braces(vortex, tmp_path, backend, fresh_seed):
    r = random.Random(fresh_seed())
    n, m = r.randrange(2, 10**9), r.randrange(-10**9, 0)
    text = f"""@launch(grid = [3], block = 32)
kernel k(x: &mut Tensor<f32, [96]>, n: u32, m: i64) {{
    assert(n == 1, "n is {{}} not {{}} {{{{m}}}} {{}}", n, 1, m)
    x[thread.global_id] = 1.0
}}
fn main() {{
    var x: Tensor<f32, [96]> = zeros()
    k(&mut x, {n}, {m})
    print(x.to_host()[0])
}}
"""
    assert f"n is {n} not 1 {{m}} {m}" in failure(vortex, tmp_path, backend, text)


def test_values_without_a_format_are_joined(vortex, tmp_path, backend):
    text = """@launch(grid = [1], block = 32)
kernel k(x: &mut Tensor<f32, [32]>, n: u32) {
    assert(n == 1, "too many:", n, true)
    x[thread.global_id] = 1.0
}
fn main() {
    var x: Tensor<f32, [32]> = zeros()
    k(&mut x, 7)
    print(x.to_host()[0])
}
"""
    assert "too many: 7 true" in failure(vortex, tmp_path, backend, text)


STEPS = {
    "block": "for i in range(0, 8, s) { x[0] += 1 }",
    "thread": "if thread.local_id == 5 { for i in range(0, 8, s) { x[5] += 1 } }",
    "own": "for i in range(0, 8, s + thread.local_id as i32) { x[thread.local_id] += 1 }",
    "kept": "let r = range(0, 8, s)\n    for i in r { x[thread.local_id] += 1 }",
    "unsigned": "for i in range(0 as u32, 8, s as u32) { x[thread.local_id] += 1 }",
    "call": "walk(x, s)",
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_of_zero_is_a_fault_and_others_are_not(vortex, tmp_path, backend, name):
    text = """fn walk(x: &mut Tensor<i32, [32]>, s: i32) {
    for i in range(0, 8, s) { x[thread.local_id] += 1 }
}
@launch(grid = [1], block = 32)
kernel k(x: &mut Tensor<i32, [32]>, s: i32) {
    BODY
}
fn main() {
    var x: Tensor<i32, [32]> = zeros()
    k(&mut x, STEP)
    print(x.to_host()[5])
}
""".replace("BODY", STEPS[name])
    stderr = failure(vortex, tmp_path, backend, text.replace("STEP", "0"))
    assert "E0707" in stderr and "the step of a range is 0" in stderr
    path = tmp_path / "moves.vx"
    path.write_text(text.replace("STEP", "3"))
    vortex("run", *backend, path)


def test_host_code_says_the_same_of_a_step_of_zero(vortex, tmp_path):
    text = 'fn main() {\n    let s = parse_int("0")\n    for i in range(0, 8, s) { print(i) }\n}\n'
    assert "the step of a range is 0" in failure(vortex, tmp_path, [], text)


@pytest.mark.parametrize("block", [32, 64, 96])
@pytest.mark.parametrize("result", ["f32", "f32 reduce(add)"])
def test_a_scalar_result_of_a_warp_operation_is_the_first_warps(vortex, tmp_path, backend, block, result, fresh_seed):
    r = random.Random(fresh_seed())
    blocks = 3 if "reduce" in result else 1
    values = [r.randrange(100) for _ in range(block * blocks)]
    path = tmp_path / "warps.vx"
    path.write_text(f"""@launch(grid = [{blocks}], block = {block})
kernel k(x: &Tensor<f32, [{block * blocks}]>) -> {result} {{
    return warp.sum(x[thread.global_id]) + 1.0
}}
fn main() {{
    print(k(&Tensor.from_host(vec![{", ".join(f"{v}.0" for v in values)}])))
}}
""")
    expected = sum(sum(values[b * block:b * block + 32]) + 1 for b in range(blocks))
    assert vortex("run", *backend, path).stdout.strip() == f"{expected}.0"


def test_a_gpu_thread_that_fails_stores_its_values(vortex, tmp_path):
    counts = []
    for values in ("", ", {}, {}, {}", ", {} {} {} {} {} {} {} {} {} {}"):
        path = tmp_path / "gpu.vx"
        shown = ", ".join(["n", "thread.global_id", "x[thread.global_id]"] * 4)
        given = ", " + ", ".join(shown.split(", ")[:values.count("{}")]) if values else ""
        path.write_text(f"""@launch(grid = [1], block = 32)
kernel k(x: &Tensor<f32, [32]>, n: u32) {{
    assert(n == 1, "n is{values}"{given})
    assert(x[thread.global_id] > 0.0, "x is{values}"{given})
}}
""")
        ptx = vortex("build", path, "--target", "sm_90", "--emit", "asm").stdout
        entry = ptx.split(".entry")[1].split("\n}")[0]
        counts.append(sum(int(width or 1) for width in re.findall(r"\bst\.(?:(?!v\d)\w+\.)*(?:v(\d)\.)?[ubf]64\b", entry)))
    assert counts == [0, 2 * 3, 2 * 8]  # a report holds eight
