"""tests/equivalence and the examples on `--device metal3.1`: what is printed for Metal is read back and computes what NumPy does. ./test takes a sample,
VORTEX_METAL_SWEEP=1 all of them, which is more than an hour of one core. Programs that use what Metal lacks are refused with its name and skipped."""
import os
import pathlib
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
SAMPLE = [TESTS / f"equivalence/test_{name}.py" for name in ("control_around_tensors", "generics", "shared_scopes", "shuffles", "unrolled_loops")]
ALL = [*sorted(TESTS.glob("equivalence/test_*.py")), *sorted(TESTS.glob("examples/test_*.py"))]


@pytest.mark.parametrize("path", ALL if os.environ.get("VORTEX_METAL_SWEEP") else SAMPLE, ids=lambda path: path.stem)
def test_printed_kernels_compute_what_numpy_does(root, program, path):
    environment = {**os.environ, "VORTEX_BUILD": str(program.parents[1]), "VORTEX_TEST_DEVICE": "metal3.1"}
    words = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", "device or verifies", path]
    done = subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True)
    is_empty = done.returncode == 5 and " deselected" in done.stdout  # a file whose tests are for other devices
    assert is_empty or (done.returncode == 0 and " passed" in done.stdout), done.stdout + done.stderr
