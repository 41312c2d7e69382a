"""The commands of the driver other than `run` on good programs: files they write, reports, exit statuses, bad command lines."""
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

KERNELS = """
kernel scale(data: &Tensor<f32, [N]>, factor: f32) -> Tensor<f32, [N]> {
    return data * factor
}

@launch(block = 64)
kernel shift(data: &mut Tensor<i32, [N]>, by: i32) {
    data[thread.global_id] += by
}

kernel row_sums(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [M]> {
    return sum(x, dim = 1)
}

@test
fn three_is_odd() {
    assert(3 % 2 == 1)
}

@test
fn two_is_odd() {
    assert(2 % 2 == 1, "two is even")
}

@bench
fn host_work() {
    var total = 0
    for i in 0..1000 { total += i }
}
"""


@pytest.fixture
def kernels(tmp_path):
    path = tmp_path / "kernels.vx"
    path.write_text(KERNELS)
    return path


def failure(done, name):
    assert f"error[{name}]" in done.stderr, done.stdout + done.stderr


def test_build_writes_an_object_a_header_and_an_artifact_that_c_can_call(vortex, kernels, tmp_path):
    done = vortex("build", kernels, "-o", tmp_path / "out")
    assert "scale:" in done.stdout and "Target:" in done.stdout
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == sorted(f"kernels.{kernel}.{end}" for kernel in ("scale", "shift", "row_sums") for end in ("o", "h", "vxk"))
    n, rows = 1003, 17
    x = np.random.default_rng().standard_normal(n * rows).astype(np.float32)
    x.tofile(tmp_path / "x.bin")
    (tmp_path / "main.c").write_text(f"""
#include "out/kernels.scale.h"
#include "out/kernels.shift.h"
#include "out/kernels.row_sums.h"
#include <stdio.h>
static float x[{n * rows}], y[{n * rows}], sums[{rows}];
static int32_t k[100];
int main(void) {{
  FILE *f = fopen("x.bin", "rb");
  if (fread(x, 4, {n * rows}, f) != {n * rows}) return 9;
  if (scale_result0_extent0(x, {n * rows}, 3.0f) != {n * rows}) return 8;
  if (scale(x, {n * rows}, 3.0f, y)) return 7;
  if (shift(k, 100, 5)) return 6;
  for (int i = 0; i < 100; ++i) if (k[i] != 5) return 5;
  if (row_sums(x, {rows}, {n}, sums)) return 4;
  f = fopen("y.bin", "wb"); fwrite(y, 4, {n * rows}, f); fclose(f);
  f = fopen("s.bin", "wb"); fwrite(sums, 4, {rows}, f); fclose(f);
  return 0;
}}
""")
    compiler = shutil.which("clang-19") or shutil.which("cc")
    objects = [f"out/kernels.{kernel}.o" for kernel in ("scale", "shift", "row_sums")]
    subprocess.run([compiler, "-O1", "-Wall", "-Werror", "main.c", *objects, "-lm", "-o", "main"], cwd=tmp_path, check=True)
    subprocess.run(["./main"], cwd=tmp_path, check=True)
    assert np.array_equal(np.fromfile(tmp_path / "y.bin", np.float32), x * np.float32(3))
    exact = x.astype(np.float64).reshape(rows, n).sum(1)
    assert np.allclose(np.fromfile(tmp_path / "s.bin", np.float32), exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("emit, expected", [("vx", "whole_tensor"), ("ir", "vx.block_id"), ("llvm", "define"), ("asm", ".text")])
def test_build_prints_each_level(vortex, kernels, tmp_path, emit, expected):
    done = vortex("build", kernels, "--kernel", "scale", f"--emit={emit}", "-o", tmp_path / "unused")
    assert expected in done.stdout
    assert not list(tmp_path.glob("unused/*"))


def test_build_reports_json(vortex, kernels, tmp_path):
    report = json.loads(vortex("build", kernels, "--json", "-o", tmp_path / "out").stdout)
    assert [entry["kernel"] for entry in report] == ["scale", "shift", "row_sums"]


def test_build_into_a_folder_that_cannot_be_written_leaves_nothing(vortex, kernels, tmp_path):
    (tmp_path / "file").write_text("")
    failure(vortex("build", kernels, "-o", tmp_path / "file" / "out", status=1), "E0801")


def test_build_writes_no_kernel_where_one_fails(vortex, kernels, tmp_path):
    out = tmp_path / "out"
    kernels.write_text(KERNELS + "@launch(grid = [1], block = 32)\nkernel no(d: &mut Tensor<f32, [Q]>) {\n    let t: Tensor<f32, [Q]> @shared\n"
                       "    t[thread.local_id] = 1.0\n    sync_block()\n    d[thread.local_id] = t[thread.local_id]\n}\n")
    done = vortex("build", kernels, "--json", "-o", out, status=1)
    assert "E0805" in done.stderr
    assert json.loads(done.stdout) == [] and not out.exists()


def test_build_takes_back_what_it_wrote_when_a_file_cannot_be_written(vortex, kernels, tmp_path):
    out = tmp_path / "out"
    (out / "kernels.row_sums.vxk").mkdir(parents=True)  # the last file
    (out / "kernels.scale.o").write_text("older")
    failure(vortex("build", kernels, "-o", out, status=1), "E0801")
    assert sorted(path.name for path in out.iterdir()) == ["kernels.row_sums.vxk", "kernels.scale.o"]
    assert (out / "kernels.scale.o").read_text() == "older"


def test_build_wants_a_value_for_a_shared_tensors_dimension(vortex, tmp_path):
    path = tmp_path / "k.vx"
    path.write_text("@launch(grid = [1], block = 32)\nkernel k(d: &mut Tensor<f32, [N]>) {\n    let t: Tensor<f32, [N]> @shared\n"
                    "    t[thread.local_id] = 1.0\n    sync_block()\n    d[thread.local_id] = t[thread.local_id]\n}\n")
    failure(vortex("build", path, "-o", tmp_path / "out", status=1), "E0805")
    vortex("build", path, "--dim", "N=32", "-o", tmp_path / "out")


def test_wrong_names_are_refused(vortex, kernels, tmp_path):
    failure(vortex("build", kernels, "--target", "sm_1", status=1), "E0806")
    assert "did you mean `sm_90`?" in vortex("check", kernels, "--target", "sm90", status=1).stderr
    for unknown in ("sm_1", "sm_99", "cpu,sm_90", ""):
        failure(vortex("check", kernels, "--target", unknown, status=1), "E0806")
    failure(vortex("build", kernels, "--kernel", "nothing", status=1), "E0807")
    failure(vortex("run", tmp_path / "missing.vx", status=1), "E0801")
    failure(vortex("run", kernels, status=1), "E0803")
    failure(vortex("explain", "E9999", status=1), "E0804")
    empty = tmp_path / "empty.vx"
    empty.write_text("fn main() {}\n")
    failure(vortex("run", empty, "--device", "warp9", status=1), "E0802")
    failure(vortex("bench", empty, status=1), "E0808")
    failure(vortex("test", empty, status=1), "E0808")
    failure(vortex("test", kernels, "--filter", "nothing", status=1), "E0808")
    assert vortex("run", status=2).stderr
    assert vortex("frobnicate", status=2).stderr


def test_test_counts_and_shows_failures(vortex, kernels):
    done = vortex("test", kernels, status=1)
    assert done.stdout.splitlines()[-1] == "1 passed, 1 failed"
    assert "test three_is_odd ... ok" in done.stdout and "two is even" in done.stderr
    assert vortex("test", kernels, "--filter", "three").stdout.splitlines()[-1] == "1 passed, 0 failed"


def test_bench_prints_a_median(vortex, kernels):
    assert "host_work: median" in vortex("bench", kernels, "--samples", "3").stdout


def test_check_as_json_has_positions(vortex, tmp_path):
    path = tmp_path / "wrong.vx"
    path.write_text("fn main() {\n    print(unknown)\n}\n")
    done = vortex("check", path, "--json", status=1)
    label = json.loads(done.stderr)[0]["labels"][0]
    assert (label["line"], label["column"]) == (2, 11)


def test_fmt_is_idempotent_and_check_lists_files(vortex, tmp_path):
    path = tmp_path / "ugly.vx"
    path.write_text("fn main(){\nlet x=1+2\n      print( x )\n}\n")
    assert str(path) in vortex("fmt", "--check", path, status=1).stdout
    vortex("fmt", path)
    once = path.read_text()
    vortex("fmt", path)
    assert path.read_text() == once
    vortex("fmt", "--check", path)


def test_dumps_times_and_reproducers(vortex, program, tmp_path, root):
    done = vortex("run", root / "examples/saxpy.vx", "--dump-after=irgen,assembly", "--time", f"--repro={tmp_path / 'k.mlir'}")
    assert "after irgen" in done.stderr and "vx.kernel" in done.stderr and "after assembly" in done.stderr and "total" in done.stderr
    text = (tmp_path / "k.mlir").read_text()
    assert "vx.entry" in text
    passes = re.match(r"// vx-opt FILE (.*); vortex \w+, [\w-]+\n", text)[1].split()
    assert {"-vx-unroll-loops", "-vx-pipeline-loops", "-vx-phases", "-cse"} <= set(passes)
    if (program.parent / "vx-opt").exists():
        subprocess.run([program.parent / "vx-opt", tmp_path / "k.mlir", *passes], check=True, capture_output=True)


def test_targets_info_and_explain_print(vortex):
    assert "cpu" in vortex("targets").stdout
    assert json.loads(vortex("targets", "--json").stdout)
    assert "irgen" in vortex("info").stdout
    assert "E0450" in vortex("explain", "E0450").stdout


def test_a_full_disk_for_the_cache_is_a_warning(vortex, root, tmp_path):
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where the cache folder should be")
    done = vortex("run", root / "examples/saxpy.vx", env={"VORTEX_CACHE_DIR": str(blocked / "cache")})
    assert "correct" in done.stdout and "warning" in done.stderr


def test_the_cache_is_keyed_by_everything_that_makes_a_kernel(vortex, tmp_path):
    """irgen runs on a miss only: a change in an imported file, another size or another instance is one, a second run is not."""
    (tmp_path / "parts.vx").write_text("pub fn shifted(x: f32) -> f32 { return x + 1.0 }\n")
    program = """import parts.shifted
kernel shift(x: &Tensor<f32, [N]>, out: &mut Tensor<f32, [N]>) {
    out[thread.global_id] = shifted(x[thread.global_id])
}
fn main() {
    var out = zeros::<f32>([8])
    let x = zeros::<f32>([8])
    shift(&x, &mut out)
    print("{}", out.to_host()[3])
}
"""
    path = tmp_path / "main.vx"
    path.write_text(program)

    def run():
        done = vortex("run", "--time", path, env={"VORTEX_CACHE_DIR": str(tmp_path / "cache")})
        return done.stdout.strip(), "irgen" in done.stderr

    assert run() == ("1.0", True)
    assert run() == ("1.0", False)
    (tmp_path / "parts.vx").write_text("pub fn shifted(x: f32) -> f32 { return x + 4.0 }\n")
    assert run() == ("4.0", True)
    path.write_text(program.replace("shift(&x, &mut out)", "shift.launch(grid = 2, block = 4)(&x, &mut out)"))
    assert run() == ("4.0", True)
    assert run() == ("4.0", False)


def test_a_dimension_that_no_kernel_has_is_refused(vortex, tmp_path):
    path = tmp_path / "kernels.vx"
    path.write_text(KERNELS)
    done = vortex("build", path, "--dim", "Q=3", "-o", tmp_path, status=1)
    assert "E0805" in done.stderr and "`Q`" in done.stderr


def test_a_constant_parameter_is_given_like_a_dimension(vortex, tmp_path):
    path = tmp_path / "generic.vx"
    path.write_text("@launch(block = B)\nkernel k<const B: usize>(x: &mut Tensor<f32, [N]>) {\n"
                    "    let own: Tensor<f32, [B]> @shared\n    own[thread.local_id] = x[thread.global_id]\n"
                    "    sync_block()\n    x[thread.global_id] = own[B - 1 - thread.local_id]\n}\n")
    assert "k-64" in vortex("build", path, "--dim", "B=64", "-o", tmp_path).stdout
    # What is warned of is so for the number that the check has chosen.
    assert "checked with B = 256" in vortex("check", path).stderr


@pytest.mark.parametrize("chosen", ["if flag > 0 { a } else { b }", "if flag > 0 { &a[0..N] } else { &b[0..N] }",
                                    "first(a, b, flag)", "loop { if flag > 0 { break a }\nbreak b }",
                                    "if flag > 0 { (a, 1) } else { (b, 2) }.0"])
def test_a_reference_chosen_while_a_kernel_runs_is_refused(vortex, tmp_path, chosen):
    path = tmp_path / "chosen.vx"
    path.write_text("fn first(a: &Tensor<f32, [N]>, b: &Tensor<f32, [N]>, flag: i32) -> &Tensor<f32, [N]> {\n"
                    "    if flag > 0 { return a }\n    return b\n}\n"
                    "kernel k(a: &Tensor<f32, [N]>, b: &Tensor<f32, [N]>, flag: i32, y: &mut Tensor<f32, [N]>) {\n"
                    f"    let c = {chosen}\n    y[thread.global_id] = c[thread.global_id]\n}}\n")
    done = vortex("build", path, "--emit", "vx", status=1)
    assert "a reference to one of several" in done.stderr and "internal" not in done.stderr


def test_an_unknown_command_is_named(vortex):
    done = vortex("foo", status=2)
    assert "`foo`" in done.stderr and "build" in done.stderr
