"""`@pipeline(stages = n)` runs the copies of a loop n - 1 iterations ahead: no copy is read too early, no slot is filled too soon, and the results are those without it."""
import re

import numpy
import pytest

from ptx_machine import Program

X, Y = 1 << 32, 2 << 32
ROWS = 12
WORDS = [X, ROWS, 64, 64, 1, Y, ROWS, 64, 64, 1]
LOOP = """
@launch(grid = [1], block = 64)
kernel k(x: &Tensor<f32, [N, 64]>, y: &mut Tensor<f32, [N, 64]>) {{
    var tile: Tensor<f32, [64]> @shared
    let t = thread.local_id
    {attribute}
    for s in {range} {{
        tile = stage(&x[s, 0..64])
        sync_block()
        y[s, t] = tile[63 - t]
    }}
}}
"""
# A loop that only adds products up is one product, whose copies are not the program's.
PRODUCT = """
@tile(m = 64, n = 64)
kernel product(a: &Tensor<f16, [M, K]>, b: &Tensor<f16, [K, N]>) -> Tensor<f32, [M, N]> {{
    var sa: Tensor<f16, [64, 32]> @shared
    var sb: Tensor<f16, [32, 64]> @shared
    var acc: Tensor<f32, [64, 64]> @local = zeros()
    {attribute}
    for k in range(0, K, 32) {{
        sa = stage(a[block_m..+64, k..+32])
        sb = stage(b[k..+32, block_n..+64])
        sync_block()
        acc = acc * 0.5 + sa @ sb
    }}
    return acc
}}
"""


def write(tmp_path, source):
    path = tmp_path / "loops.vx"
    path.write_text(source)
    return path


def assembly(vortex, tmp_path, source, target="sm_80"):
    return vortex("build", write(tmp_path, source), "--target", target, "--emit", "asm").stdout


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("loop", ["0..12", "range(0, 12, 3)", "2..3", "range(1, 12, 4)"])
@pytest.mark.parametrize("stages", [1, 2, 3, 4, 7])
def test_no_copy_meets_a_read(vortex, tmp_path, target, loop, stages):
    ptx = assembly(vortex, tmp_path, LOOP.format(attribute=f"@pipeline(stages = {stages})", range=loop), target)
    code = Program(ptx, re.findall(r"\.entry\s+(\w+)", ptx)[0])
    early, copies = code.copies_read_too_early(WORDS, 64)
    count = {"0..12": 12, "range(0, 12, 3)": 4, "2..3": 1, "range(1, 12, 4)": 3}[loop]
    assert copies == count * 64 and not early, early


def test_the_test_sees_waits_that_are_too_weak(vortex, tmp_path):
    ptx = assembly(vortex, tmp_path, LOOP.format(attribute="@pipeline(stages = 3)", range="0..12"))
    entry = re.findall(r"\.entry\s+(\w+)", ptx)[0]
    weaker = re.sub(r"(wait_group\s+)1", r"\g<1>2", ptx)
    assert weaker != ptx and Program(weaker, entry).copies_read_too_early(WORDS, 64)[0]


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_copies_run_ahead(vortex, tmp_path, target):
    plain, three = (assembly(vortex, tmp_path, PRODUCT.format(attribute=each), target) for each in ("", "@pipeline(stages = 3)"))
    assert not re.search(r"wait_group\s+1", plain) and re.search(r"wait_group\s+1", three)


def test_slots_are_accounted_for(vortex, tmp_path):
    def line(attribute):
        text = vortex("build", write(tmp_path, PRODUCT.format(attribute=attribute)), "--target", "sm_80", "--memory", "-o", tmp_path, "--no-cache").stdout
        return [int(size) for size in re.findall(r"^ +\d+ +(\d+) .*`s[ab]`", text, re.M)]

    assert line("") == [4096, 4096] and line("@pipeline(stages = 3)") == [12288, 12288]
    source = write(tmp_path, PRODUCT.format(attribute="@pipeline(stages = 16)").replace("[64, 32]", "[64, 256]").replace("[32, 64]", "[256, 64]").replace("..+32", "..+256").replace("K, 32", "K, 256"))
    for command in (["check"], ["build", "-o", tmp_path]):
        error = vortex(command[0], source, "--target", "sm_90", *command[1:], status=1).stderr
        assert "E0552" in error and "1048576" in error.replace(",", "") and "16 times" in error, error


REFUSED = {
    "is used outside of the loop": LOOP.format(attribute="@pipeline(stages = 2)", range="0..N").replace("    }}\n}}", "").rstrip().removesuffix("}").rstrip() + "\n    sync_block()\n    y[0, t] = tile[t]\n}\n",
    "the loop stages nothing": LOOP.format(attribute="@pipeline(stages = 2)", range="0..N").replace("tile = stage(&x[s, 0..64])\n        sync_block()\n", "").replace("tile[63 - t]", "x[s, t]"),
    "is declared in the loop": LOOP.format(attribute="@pipeline(stages = 2)", range="0..N").replace("tile = stage", "var tile: Tensor<f32, [64]> @shared\n        tile = stage").replace("    var tile: Tensor<f32, [64]> @shared\n    let t", "    let t"),
    "under a condition": LOOP.format(attribute="@pipeline(stages = 2)", range="0..N").replace("tile = stage(&x[s, 0..64])", "if s % 2 == 0 { tile = stage(&x[s, 0..64]) }"),
    "does other work before its copies": LOOP.format(attribute="@pipeline(stages = 2)", range="0..N").replace("tile = stage", "y[s, t] = 0.0\n        tile = stage"),
    "the loop writes what it copies": LOOP.format(attribute="@pipeline(stages = 2)", range="0..N").replace("&Tensor<f32, [N, 64]>, y: ", "&mut Tensor<f32, [N, 64]>, y: ")
    .replace("y[s, t] = tile[63 - t]", "y[s, t] = tile[63 - t]\n        x[s, t] = 1.0"),
    "depends on what iterations carry": LOOP.format(attribute="var place = 0\n    @pipeline(stages = 2)", range="0..N").replace("x[s, 0..64]", "x[place % 12, 0..64]").replace("sync_block()", "place = place + 5\n        sync_block()"),
    "left before its last iteration": LOOP.format(attribute="@pipeline(stages = 2)", range="0..N").replace("tile = stage", "if s == 7 { break }\n        tile = stage"),
    "its slots are those that the code has": LOOP.format(attribute="@pipeline(stages = 2)", range="0..N").replace("var tile: Tensor<f32, [64]> @shared", "var tile: [Tensor<f32, [64]> @shared; 2]").replace("tile = stage(&x[s, 0..64])", "async_stage(&x[s, 0..64], &mut tile[s % 2])").replace("tile[63 - t]", "tile[s % 2][63 - t]"),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_cannot_run_ahead_is_refused_by_name(vortex, tmp_path, reason):
    error = vortex("build", write(tmp_path, REFUSED[reason]), "--target", "sm_80", "-o", tmp_path, status=1).stderr
    assert "`@pipeline`" in error and reason in error, error


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
def test_results_do_not_change(vortex, tmp_path, stages):
    """Programs of the processor take the same loops. Rows and columns end inside tiles, the depth is shorter than the pipeline or longer."""
    for depth in (7, 32, 96, 200):
        random = numpy.random.default_rng()
        a, b = (random.integers(-4, 5, shape).astype("f2") for shape in ((70, depth), (depth, 65)))
        for name, array in (("a", a), ("b", b)):
            numpy.save(tmp_path / f"{name}.npy", array)
        main = f"""
fn main() {{
    let a: Tensor<f16, [M, K]> = load_npy("{tmp_path}/a.npy")
    let b: Tensor<f16, [K, N]> = load_npy("{tmp_path}/b.npy")
    let y = product(&a, &b)
    save_npy("{tmp_path}/y.npy", y.to_host())
}}
"""
        vortex("run", write(tmp_path, PRODUCT.format(attribute=f"@pipeline(stages = {stages})") + main))
        expected = 0
        for k in range(0, depth, 32):
            expected = expected * 0.5 + a[:, k:k + 32].astype("f8") @ b[k:k + 32].astype("f8")
        assert numpy.array_equal(numpy.load(tmp_path / "y.npy").reshape(70, 65), expected)
