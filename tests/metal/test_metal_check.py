"""tools/dev/metal_check, with a compiler that stands in for Apple's."""
import os
import subprocess

import pytest

COMPILER = """#!/bin/sh
case "$*" in *" -f metal") exit 0;; esac
for word in "$@"; do case "$word" in *.metal) echo "$*" >> "$CALLS"; grep -q REFUSE "$word" && { echo "error: refused" >&2; exit 1; }; esac; done
exit 0
"""


@pytest.fixture
def check(root, program, tmp_path):
    def run(*arguments, compiler=True):
        tools = tmp_path / "tools"
        tools.mkdir(exist_ok=True)
        (tools / "xcrun").write_text(COMPILER)
        (tools / "xcrun").chmod(0o755 if compiler else 0o644)
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "CALLS": str(tmp_path / "calls"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
        done = subprocess.run([root / "tools/dev/metal_check", "--vortex", program, *arguments], env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout
    return run


def test_kernels_of_programs_are_compiled(check, root, tmp_path):
    status, text = check(root / "examples/saxpy.vx", root / "examples/warp.vx")
    calls = (tmp_path / "calls").read_text().splitlines()
    assert status == 0 and f"{len(calls)} kernels compiled by Apple's metal, 0 not" in text, text
    assert len(calls) >= 2 and all("-std=metal3.1 -fno-fast-math" in call for call in calls)


def test_a_refused_kernel_is_a_failure_that_is_named(check, tmp_path):
    (tmp_path / "good.metal").write_text("kernel void a() {}")
    (tmp_path / "bad.metal").write_text("REFUSE")
    status, text = check(tmp_path)
    assert status == 1 and "bad.metal: error: refused" in text and "1 kernels compiled by Apple's metal, 1 not" in text, text


def test_without_the_compiler_it_says_that_it_did_not_run(check, root, tmp_path):
    status, text = check(root / "examples/saxpy.vx", compiler=False)
    assert status == 2 and "did NOT run" in text, text
    status, text = check("--save", tmp_path / "kernels", root / "examples/saxpy.vx", compiler=False)
    assert status == 0 and [each.name for each in (tmp_path / "kernels").rglob("*.metal")] == ["saxpy.saxpy.metal"], text


def test_what_metal_has_not_is_named_and_no_failure(check, root, tmp_path):
    (tmp_path / "wide.vx").write_text("kernel k(x: &Tensor<f64, [N]>) -> Tensor<f64, [N]> { return x * 2.0 }\n")
    status, text = check(tmp_path / "wide.vx", root / "examples/saxpy.vx")
    assert status == 0 and "not printed" in text and "Metal has no f64" in text and "1 kernels compiled" in text, text
