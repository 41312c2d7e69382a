"""The lecture's study: its lines of output, checked results, and its captures."""
import json
import os
import re
import subprocess

import pytest

NAMES = ["naive", "vec4", "mat4", "product.vx"]


@pytest.fixture
def study(program, tmp_path):
    path = program.parent / "gemm_study"
    if not path.exists():
        pytest.skip("gemm_study is not built")

    def run(*arguments, status=0, **environment):
        given = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), **environment}
        done = subprocess.run([path, *arguments], cwd=tmp_path, env=given, capture_output=True, text=True)
        assert done.returncode == status, done.stdout + done.stderr
        return done

    return run


def test_prints_the_lecture_s_lines_and_both_counts(study, device):
    lines = study(device, "--size", "5x36x24", "--dispatches", "2").stdout.splitlines()
    assert len(lines) == 2 * len(NAMES)
    for name, line, other in zip(NAMES, lines[::2], lines[1::2]):
        found = re.fullmatch(rf"Perf of {re.escape(name)} dim 5x36x24 is (\S+) GFLOPs", line)
        twice = re.fullmatch(r" +counted as 2\*M\*N\*K: (\S+) GFLOP/s", other)
        assert float(twice[1]) == pytest.approx(2 * float(found[1]), rel=1e-4)


def test_a_capture_is_a_chrome_trace_with_an_event_for_the_dispatch(study, device, tmp_path):
    study(device, "--size", "5x36x24", "--dispatches", "1", MTL_CAPTURE_ENABLED="1")
    for name, groups in (("naive", [8, 5, 1]), ("vec4", [8, 5, 1]), ("mat4", [2, 1, 1])):
        trace = json.loads((tmp_path / f"{name}.gputrace.json").read_text())
        (event,) = [each for each in trace["traceEvents"] if each["ph"] == "X"]
        assert event["name"] == "gemm" and event["dur"] >= 0 and event["ts"] >= 0
        assert event["args"]["threadgroups"] == groups and event["args"]["device"] == device


@pytest.mark.parametrize("arguments, message", [(["abacus"], "Metal is not supported on `abacus`"), (["cpu", "--size", "5x6x7"], "multiples of 4"),
                                                (["cpu", "--size", "x"], "usage:"), (["cpu", "--dispatches", "0"], "usage:")])
def test_bad_arguments_are_refused(study, arguments, message):
    assert message in study(*arguments, status=1).stderr
