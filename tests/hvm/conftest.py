"""hvm(file, *flags): `vortex hvm`, skipped while the driver has no such command."""
import re
import subprocess

import pytest

ANSI = re.compile(r"\x1b\[[0-9;]*m")
HANGS_AFTER_S = 3600


@pytest.fixture(scope="session")
def hvm(program):
    if subprocess.run([program, "hvm", "--version"], capture_output=True).returncode:
        pytest.skip("bin/vortex has no command `hvm`")

    def run(path, *flags):
        """(exit status, standard output, standard error), without ANSI codes."""
        done = subprocess.run([program, "hvm", path, *map(str, flags)], capture_output=True, timeout=HANGS_AFTER_S)
        return done.returncode, *(ANSI.sub("", text.decode(errors="replace")) for text in (done.stdout, done.stderr))

    return run


@pytest.fixture
def write(tmp_path):
    """write(text): the path of a program with that text."""

    def write(text):
        path = tmp_path / "program.hvm4"
        path.write_text(text, encoding="utf-8")
        return path

    return write
