"""Fixtures shared by every test_*.py. VORTEX_BUILD and VORTEX_TEST_DEVICE are set by ./test."""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
# What printed Metal is refused for, rightly: the only refusals that tests skip for, on such devices.
METAL_LACKS = re.compile(r"error\[E07(?:08|13)\]: (.*(?:Metal has no f64|takes more than 29 tensors|needs \d+ bytes of shared memory per block, \S+ has 32768|"
                         r"of this size .*blocks have 32768 bytes of shared memory|atomic operation on memory that is also accessed as smaller elements))")
HANGS_AFTER_S = 3600  # only what hangs is stopped: a busy machine may take many times what an idle one does


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def metal_lacks():
    return METAL_LACKS


@pytest.fixture(scope="session")
def device():
    """The --device of ./test: cpu unless given."""
    return os.environ.get("VORTEX_TEST_DEVICE", "cpu")


@pytest.fixture(scope="session")
def program():
    path = pathlib.Path(os.environ.get("VORTEX_BUILD", ROOT / "build")) / "bin/vortex"
    if not path.exists():
        pytest.skip("bin/vortex is not built")
    return path


@pytest.fixture
def vortex(program, device, tmp_path):
    """vortex("run", file, …, cwd=…, status=0): runs the driver and returns the CompletedProcess; fails on another exit status.
    Each test has a cache folder of its own. Where the device of ./test prints Metal, what Metal lacks skips the test."""

    def run(*arguments, cwd=ROOT, status=0, env=None, timeout=HANGS_AFTER_S):
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), **(env or {})}
        done = subprocess.run([str(program), *map(str, arguments)], cwd=cwd, env=environment, timeout=timeout, capture_output=True, text=True)
        if done.returncode == 1 and device.startswith("metal") and device in map(str, arguments):
            if lacks := METAL_LACKS.search(done.stderr):
                pytest.skip(lacks[1])
        assert status is None or done.returncode == status, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return run
