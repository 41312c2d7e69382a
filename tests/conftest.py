"""Fixtures shared by every test_*.py. VORTEX_BUILD and VORTEX_TEST_DEVICE are set by ./test."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
HANGS_AFTER_S = 3600  # only what hangs is stopped: a busy machine may take many times what an idle one does


@pytest.fixture(scope="session")
def root():
    return ROOT


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
def vortex(program, tmp_path):
    """vortex("run", file, …, cwd=…, status=0): runs the driver and returns the CompletedProcess; fails on another exit status.
    Each test has a cache folder of its own."""

    def run(*arguments, cwd=ROOT, status=0, env=None, timeout=HANGS_AFTER_S):
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), **(env or {})}
        done = subprocess.run([str(program), *map(str, arguments)], cwd=cwd, env=environment, timeout=timeout, capture_output=True, text=True)
        assert status is None or done.returncode == status, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return run
