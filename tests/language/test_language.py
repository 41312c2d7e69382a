"""Every program here checks itself and gives the same on each device and under --check. A first line `// error E0705` names what stops it
instead, on each of them; `// error E0605 --check` only where that option is given."""
import pathlib
import re

import pytest

PROGRAMS = sorted(pathlib.Path(__file__).parent.glob("*.vx"))
WAYS = {"device": None, "interpreter": ["--device", "interpreter"], "check": ["--check"]}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_program_holds(path, way, vortex, device):
    options = WAYS[way] or ["--device", device]
    wanted = re.match(r"// error (E\d{4})(?: (--check))?\n", path.read_text())
    stops = wanted and (not wanted[2] or way == "check")
    done = vortex("run", path, *options, status=1 if stops else 0)
    if stops:
        assert f"error[{wanted[1]}]" in done.stderr, done.stderr


def test_threads_beyond_the_sixteenth_bit_are_no_proof(vortex, tmp_path):
    path = tmp_path / "large.vx"
    path.write_text("""@launch(grid = [1], block = 70000)
kernel large(x: &mut Tensor<i32, [65536]>) {
    x[thread.local_id] = 7
}
""")
    assert "guarded" in vortex("build", "--emit", "vx", path).stdout
