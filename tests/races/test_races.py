"""Kernels with a known verdict about races: the compiler's must be the same, and `--check`, which watches a run, must agree with it.

`free`: no two threads meet in any launch. `racy`: they do, in some launch that the program makes. `unknown`: whether they do is up to data.
The second line of a file names what decides its pairs of accesses (src/lang/flow/race/race_test.cpp)."""
import pathlib
import re

import pytest

FOLDER = pathlib.Path(__file__).parent
# What the compiler cannot prove though it is so: subscripts that each thread carries from iteration to iteration.
UNDECIDED = {"offset_carried_by_the_block_width", "offset_carried_backwards"}


def programs(verdict):
    paths = sorted((FOLDER / verdict).glob("*.vx"))
    assert len(paths) >= 20
    return [pytest.param(path, id=path.stem) for path in paths]


def findings(done):
    """{id: [lines of the labels]} of what was reported."""
    found = {}
    for block in re.split(r"\n(?=error\[|warning\[)", done.stderr):
        if head := re.match(r"(?:error|warning)\[(\w+)\]", block):
            shown = [int(n) for n in re.findall(r"^ *(\d+) \|", block, re.MULTILINE)]
            found.setdefault(head[1], []).append(shown)
    return found


@pytest.mark.parametrize("path", programs("free"))
def test_what_is_free_is_proven_and_runs_without_a_race(vortex, path):
    done = vortex("check", path)
    found = findings(done)
    assert "E0630" not in found
    assert ("W0631" in found) == (path.stem in UNDECIDED), done.stderr
    vortex("run", "--check", "--allow", "races", path)
    vortex("run", "--check=fast", path)


@pytest.mark.parametrize("path", programs("racy"))
def test_what_is_racy_is_refused_with_a_launch_where_it_is(vortex, path):
    done = vortex("check", path, status=1)
    races = findings(done)["E0630"]
    assert re.search(r"(threads?|block) [\d(]", done.stderr)
    run = vortex("run", "--check", "--allow", "races", path, status=1)
    # The run stops at the first race, which is one of those that were told.
    [seen] = findings(run)["E0603"]
    assert any(set(race) & set(seen) for race in races), (races, seen)
    # What is racy was not proven to be free: neither is it left out.
    run = vortex("run", "--check=fast", path, status=1)
    assert findings(run)["E0603"] == [seen] and "the compiler has proven" not in run.stderr


@pytest.mark.parametrize("path", programs("unknown"))
def test_what_depends_on_data_is_a_warning(vortex, path):
    found = findings(vortex("check", path))
    assert "W0631" in found and "E0630" not in found
    assert "W0631" in findings(vortex("check", "--deny", "races", path, status=1))
    assert not findings(vortex("check", "--allow", "races", path))


def test_verdicts_stand_at_the_accesses_in_vx(vortex, tmp_path):
    path = tmp_path / "scatter.vx"
    path.write_text("""@launch(grid = [ceil_div(N, 64)], block = 64)
kernel scatter(x: &Tensor<i32, [N]>, index: &Tensor<u32, [N]>, out: &mut Tensor<i32, [N]>) {
    let t: Tensor<i32, [64]> @shared
    let o: Tensor<i32, [64]> @local = zeros()
    let g = thread.global_id
    t[thread.local_id] = x[g]
    o[3] = t[thread.local_id]
    out[index[g]] = o[3]
}
""")
    text = vortex("build", "--emit", "vx", path).stdout
    accesses = [(found[1], "race_free" in found[0]) for found in re.findall(r"(vx\.(?:load|store) .*?(\w+)>(?: -> \w+)?)\n", text)]
    # x, t, t, o, index: proven where others reach it; o, out: not.
    assert sorted(accesses) == sorted([("global", True), ("shared", True), ("shared", True), ("local", False), ("local", False), ("local", False),
                                       ("global", True), ("global", False)])


def test_unchecked_races_is_about_its_statement(vortex, tmp_path):
    path = tmp_path / "scatter.vx"
    text = """@launch(grid = [ceil_div(N, 64)], block = 64)
kernel scatter(x: &Tensor<i32, [N]>, index: &Tensor<u32, [N]>, out: &mut Tensor<i32, [N]>, twice: &mut Tensor<i32, [N]>) {
    let g = thread.global_id
    if g < N {
        FIRSTout[index[g]] = x[g]
        SECONDtwice[index[g]] = x[g]
    }
}
"""
    for first, second, warnings in (("", "", 2), ("@unchecked(races) ", "", 1), ("", "@unchecked(races) ", 1), ("@unchecked(races) ",) * 2 + (0,)):
        path.write_text(text.replace("FIRST", first).replace("SECOND", second))
        assert len(findings(vortex("check", path)).get("W0631", [])) == warnings
    path.write_text("@unchecked(races)\n" + text.replace("FIRST", "").replace("SECOND", ""))
    assert not findings(vortex("check", path))
