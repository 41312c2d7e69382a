"""Seeds of random tests: `np.random.default_rng()` and `fresh_seed()` differ in every run, are printed by what fails, and are those of an
earlier run with its VORTEX_SEED, which ./test prints. A number there is the seed itself."""
import os
import secrets
import zlib

import numpy as np
import pytest

TEXT = os.environ.get("VORTEX_SEED", "")
made = np.random.default_rng
test, asked = "", 0


def next_seed() -> int:
    global asked
    asked += 1
    seed = int(TEXT) if TEXT.isdecimal() else zlib.crc32(f"{TEXT} {test} {asked}".encode()) if TEXT else secrets.randbits(32)
    print(f"VORTEX_SEED={seed}")
    return seed


np.random.default_rng = lambda seed=None: made(next_seed() if seed is None else seed)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    global test, asked
    test, asked = item.nodeid, 0


@pytest.fixture
def fresh_seed():
    """A function that gives another seed below 2^32 at every call."""
    return next_seed
