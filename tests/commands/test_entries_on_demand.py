"""Entry points: made when launches need them, and files built for some launches only, over the stand-in for libcuda."""
import re

import pytest

PRODUCT = """kernel mm(a: &Tensor<f16, [M, K]>, b: &Tensor<f16, [K, N]>) -> Tensor<f16, [M, N]> {
    a @ b
}
"""
MAIN = """fn main() {
    let a = zeros::<f16>([%d, %d])
    let b = zeros::<f16>([%d, %d])
    let c = mm(&a, &b)
    print("done")
}
"""


@pytest.fixture
def stand_in(program, tmp_path):
    path = program.parents[1] / "lib/libvortex_fake_cuda.so"
    if not path.exists():
        pytest.skip("the stand-in is not built")
    return {"VORTEX_LIBCUDA": str(path), "VORTEX_CACHE_DIR": str(tmp_path / "cache")}


def run(vortex, tmp_path, environment, m, k, n, *options):
    program = tmp_path / "program.vx"
    program.write_text(PRODUCT + MAIN % (m, k, k, n))
    return vortex("run", program, "--device", "cuda:0", *options, env=environment)


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "lock")


def test_a_launch_makes_the_entry_points_that_it_runs_and_keeps_them(vortex, stand_in, tmp_path):
    run(vortex, tmp_path, stand_in, 256, 256, 256)
    kept = files(tmp_path / "cache")
    assert 2 <= len(kept) <= 7, kept  # the plan; text and, but for roles, machine code of one to three entry points
    assert run(vortex, tmp_path, stand_in, 256, 256, 256).stdout == "done\n"
    assert files(tmp_path / "cache") == kept
    stages = run(vortex, tmp_path, stand_in, 256, 256, 256, "--time").stderr
    assert re.search(r"mm +cache ", stages) and not re.search(r"mm +(vxt|irgen) ", stages), stages


def test_damaged_files_of_the_cache_are_made_again(vortex, stand_in, tmp_path):
    run(vortex, tmp_path, stand_in, 256, 256, 256)
    for path in files(tmp_path / "cache"):
        content = bytearray(path.read_bytes())
        content[len(content) // 3] ^= 1
        path.write_bytes(content[:-7] if len(content) % 2 else content)
    done = run(vortex, tmp_path, stand_in, 256, 256, 256)
    assert done.stdout == "done\n" and done.stderr == ""


def test_a_cache_that_cannot_be_written_is_one_warning(vortex, stand_in, tmp_path):
    (tmp_path / "cache").write_text("no folder")
    done = run(vortex, tmp_path, stand_in, 256, 256, 256)
    assert done.stdout == "done\n" and done.stderr.count("kernels are not cached: ") == 1


def build(vortex, tmp_path, versions, options=(), **settings):
    program = tmp_path / "mm.vx"
    program.write_text(PRODUCT)
    return vortex("build", program, "--target", "sm_80", "-o", tmp_path / "out", "--versions", versions, *options, **settings)


def entries(tmp_path):
    return set(re.findall(r"\.entry (\w+)", (tmp_path / "out/mm.mm.ptx").read_text()))


def test_files_are_built_for_some_launches(vortex, tmp_path):
    build(vortex, tmp_path, "complete")
    complete = entries(tmp_path)
    build(vortex, tmp_path, "all")
    assert entries(tmp_path) == complete and len(complete) <= 18
    assert (tmp_path / "out/mm.mm.ptx").stat().st_size < 750_000
    text = build(vortex, tmp_path, "usual").stdout
    usual = entries(tmp_path)
    assert usual < complete and len(usual) <= 6
    assert f"Left out:  {len(complete) - len(usual)} entry points: " in text
    printed = build(vortex, tmp_path, "usual", options=["--emit", "asm"]).stdout
    assert set(re.findall(r"\.entry (\w+)", printed)) == usual
    build(vortex, tmp_path, "usual,M=4096,K=4096")
    assert entries(tmp_path) < usual
    build(vortex, tmp_path, "M=4096,K=4096")
    some = entries(tmp_path)
    assert some < complete
    build(vortex, tmp_path, "M=4096,K=4096,M=4096")
    assert entries(tmp_path) == some


@pytest.mark.parametrize("versions, says", [
    ("usualy", "`usualy` is neither `usual` nor an extent"),
    ("complete,usual", "`complete` is neither `usual` nor an extent"),
    ("", "`` is neither"),
    ("M=", "`M=` is neither"),
    ("M=-4", "`M=-4` is neither"),
    ("M=9999999999999999999", "is neither"),
    ("M=4096,M=4097", "no launch has both `M=4096` and `M=4097`"),
    ("M=4,usual,K=8,M=5,K=9", "no launch has both `M=4` and `M=5`"),
    ("M=99999999999999", "no launch has these extents: `a` would take 199999999999998 bytes, a tensor has at most 140737488355328"),
    ("M=20000000,N=20000000", "the result would take 800000000000000 bytes"),
    ("K=0,N=999999999999999", "`b` would take 1999999999999998 bytes"),
    ("Q=4", "`mm` has no extent `Q` that is a parameter's own; there are M, K, N"),
])
def test_words_that_say_nothing_are_refused(vortex, tmp_path, versions, says):
    done = build(vortex, tmp_path, versions, status=1)
    assert "error[E0805]" in done.stderr and says in done.stderr, done.stderr
    assert not list((tmp_path / "out").glob("*.vxk"))


def test_what_ptxas_made_is_not_made_again(vortex, tmp_path):
    """A stand-in for ptxas counts its calls."""
    folder = tmp_path / "bin"
    folder.mkdir()
    assembler = folder / "ptxas"
    assembler.write_text(f"#!/bin/sh\necho call >> {tmp_path}/calls\nfor last; do :; done\necho code > $last\n"
                         "echo \"ptxas info : Compiling entry function 'vx_mm' for 'sm_80'\"\necho 'ptxas info : Used 24 registers, 16 bytes smem'\n")
    assembler.chmod(0o755)
    program = tmp_path / "mm.vx"
    program.write_text(PRODUCT)

    def built(*options):
        settings = {"PATH": f"{folder}:/usr/bin:/bin", "VORTEX_CACHE_DIR": str(tmp_path / "cache")}
        text = vortex("build", program, "--target", "sm_80", "--versions", "M=64,N=64,K=64", "-o", tmp_path / "out", *options, env=settings).stdout
        calls = tmp_path / "calls"
        return "registers.vx_mm: 24" in text, (tmp_path / "out/mm.mm.cubin").read_text(), len(calls.read_text().split())

    assert built() == (True, "code\n", 1)
    assert built() == (True, "code\n", 1)
    assert built("--no-cache") == (True, "code\n", 2)
    assembler.write_text(assembler.read_text() + "# another one\n")
    assert built() == (True, "code\n", 3)
    for path in files(tmp_path / "cache"):
        path.write_bytes(path.read_bytes()[:-1])
    assert built() == (True, "code\n", 4)


def test_entry_points_behind_others_for_the_same_launches_are_left_out(vortex, tmp_path):
    """Those of long rows that lie anyhow stand behind those of all long rows that lie well."""
    program = tmp_path / "soft.vx"
    program.write_text("kernel soft(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [M, N]> { softmax(x) }\n")
    code = vortex("build", program, "--target", "sm_90", "--versions", "usual", "--emit", "asm").stdout
    names = re.findall(r"\.entry (\w+)", code)
    assert 3 <= len(names) <= 10 and not [name for name in names if "_general_long" in name], names
