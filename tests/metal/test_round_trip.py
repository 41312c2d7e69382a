"""A sample of tests/equivalence on `--device metal3.1`: what is printed for Metal is read back and computes what NumPy does. All of them run with
VORTEX_TEST_DEVICE=metal3.1; those that use f64 are refused."""
import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("name", ["test_control_around_tensors", "test_generics", "test_shared_scopes", "test_shuffles", "test_unrolled_loops"])
def test_programs_of_the_equivalence_tests(root, program, name):
    environment = {**os.environ, "VORTEX_BUILD": str(program.parents[1]), "VORTEX_TEST_DEVICE": "metal3.1"}
    words = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", "device", root / f"tests/equivalence/{name}.py"]
    done = subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout + done.stderr
