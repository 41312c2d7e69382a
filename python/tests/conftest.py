"""Tests of the packages vortex and metile on the device of VORTEX_TEST_DEVICE. The binding is that of VORTEX_BUILD."""
import os
import pathlib
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("VORTEX_BUILD", ROOT / "build"))
sys.path[:0] = [str(ROOT / "python"), str(BUILD / "python")]


@pytest.fixture(scope="session")
def device():
    return os.environ.get("VORTEX_TEST_DEVICE", "cpu")


@pytest.fixture(params=["device", "interpreter"])
def where(request, monkeypatch, device):
    """Runs a test of metile on the device and in the interpreter."""
    import metile

    if request.param == "interpreter":
        monkeypatch.setenv("METILE_INTERPRET", "1")
    metile.set_device("cpu" if device == "interpreter" else device)
    yield
    metile.set_device("cpu")


@pytest.fixture
def random():
    """A generator with a new seed, which a failure shows."""
    return np.random.default_rng()


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
