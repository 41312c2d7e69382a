"""tools/dev/gpu_sanitize with stand-ins for the driver and for compute-sanitizer, which finds what a program's text says."""
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DRIVER = """#!/bin/bash
echo "$*" >> "$LOG"
grep -q BROKEN "$2" && exit 3
[[ $* = *--dump-after=assembly* ]] && grep -o "cp.async.bulk.*" "$2"
exit 0
"""
SANITIZER = """#!/bin/bash
# --tool TOOL … DRIVER run FILE …
tool=$2; for word in "$@"; do case $word in *.vx) file=$word;; esac; done
echo "========= COMPUTE-SANITIZER"
grep -q IDLE "$file" && { echo "========= Error: Target application terminated before first instrumented API call"; exit 1; }
grep -q "HANGS $tool" "$file" && sleep 1000
grep -q "SILENT $tool" "$file" && exit 0
found=$(grep -c "FINDS $tool" "$file")
host=$(grep -c "READS $tool" "$file"); found=$((found + host))
for ((i = 0; i < host; ++i)); do echo "========= Host API memory access error at host access"; done
[ "$found" = "$host" ] || echo "========= Invalid __global__ read of size 16 bytes"
if [ "$tool" = racecheck ]; then echo "========= RACECHECK SUMMARY: $found hazards displayed ($found errors, 0 warnings)"
else echo "========= ERROR SUMMARY: $found errors"; fi
[ "$found" = 0 ] || exit 99
"""
PLAIN = "fn main() {}\n"


@pytest.fixture
def sanitize(tmp_path):
    """sanitize({name: text}, …): (status, lines, the driver's calls)."""

    def run(programs, *arguments):
        for name, text in {"bin/vortex": DRIVER, "bin/compute-sanitizer": SANITIZER, **{f"programs/{name}": text for name, text in programs.items()}}.items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
        log = tmp_path / "log"
        log.write_text("")
        done = subprocess.run([sys.executable, ROOT / "tools/dev/gpu_sanitize", "--vortex", tmp_path / "bin/vortex", "--examples", "", *arguments, tmp_path / "programs"],
                              env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "LOG": str(log)}, capture_output=True, text=True)
        return done.returncode, done.stdout.splitlines(), log.read_text().splitlines()

    return run


def test_what_no_tool_finds_anything_in_is_clean(sanitize):
    status, lines, calls = sanitize({"a.vx": PLAIN, "b.vx": "@test\nfn t() {}\n"})
    assert status == 0
    assert [line.partition(".vx: ")[2] for line in lines[:2]] == ["alone ok, memcheck ok, racecheck ok, synccheck ok, initcheck ok"] * 2
    assert lines[2].startswith("2 programs in ") and lines[2].endswith("10 runs found nothing, 0 failed, 0 read by the host what bulk copies stored, 0 had no kernels, 0 too slow, 0 without time")
    assert [call.split()[0] for call in calls] == ["run", "test"]


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "synccheck", "initcheck"])
def test_a_finding_of_each_tool_is_told_with_its_first_line(sanitize, tool):
    status, lines, _ = sanitize({"a.vx": PLAIN + f"// FINDS {tool}\n", "b.vx": PLAIN})
    assert status == 1
    assert f"{tool} 1 found" in lines[0] and any("Invalid __global__ read" in line for line in lines)
    assert "9 runs found nothing, 1 failed" in lines[-1]


STORE = "// cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r1, %r2}], [%r3];\n"


@pytest.mark.parametrize("text, verdict, status", [
    (STORE + "// READS initcheck\n// READS initcheck\n", "initcheck unseen", 0),
    (STORE + "// READS initcheck\n// FINDS initcheck\n", "initcheck 2 found", 1),
    (STORE + "// FINDS initcheck\n", "initcheck 1 found", 1),
    (STORE + "// READS memcheck\n", "memcheck 1 found", 1),
    ("// READS initcheck\n", "initcheck 1 found", 1),
    ("// cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier\n// READS initcheck\n", "initcheck 1 found", 1),
])
def test_only_reads_by_the_host_of_what_bulk_copies_store_are_not_seen(sanitize, text, verdict, status):
    ended, lines, _ = sanitize({"a.vx": PLAIN + text})
    assert ended == status and verdict in lines[0], lines
    assert ("1 read by the host what bulk copies stored" in lines[-1]) == (status == 0)


def test_a_program_without_kernels_is_no_failure(sanitize):
    status, lines, _ = sanitize({"a.vx": PLAIN + "// IDLE\n"})
    assert status == 0 and "memcheck idle" in lines[0] and "4 had no kernels" in lines[-1]


def test_a_tool_that_reports_nothing_has_not_checked(sanitize):
    status, lines, _ = sanitize({"a.vx": PLAIN + "// SILENT synccheck\n"})
    assert status == 1 and "synccheck no report (status 0)" in lines[0]


def test_a_program_that_fails_by_itself_is_a_failure_and_meets_no_tool(sanitize):
    status, lines, _ = sanitize({"a.vx": PLAIN + "// BROKEN\n"})
    assert status == 1 and lines[0].endswith("a.vx: alone status 3")


def test_what_takes_too_long_is_stopped_and_no_finding(sanitize):
    status, lines, _ = sanitize({"a.vx": PLAIN + "// HANGS racecheck\n"}, "--timeout", "3", "--tools", "racecheck")
    assert status == 2 and lines[0].endswith(" slow")  # on a busy machine even before the tool
    status, lines, _ = sanitize({"a.vx": PLAIN}, "--budget", "0")
    assert status == 2 and "alone not run" in lines[0]


def test_words_at_the_head_are_given_and_what_is_meant_to_fail_is_left_out(sanitize):
    status, lines, calls = sanitize({"a.vx": "// args: 3 'x y'\n// flags: --check --seed 7\n" + PLAIN, "b.vx": "// expect-error E0308\n" + PLAIN, "c.vx": "fn other() {}\n"})
    assert status == 0 and lines[-1].startswith("1 programs")
    [call] = calls
    assert call.endswith("a.vx --device cuda:0 --seed 7 -- 3 x y")
