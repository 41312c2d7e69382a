"""hvm(file, *flags): the evaluator's own program, which starts in a seventh of the time of `vortex hvm`; that both do the same is tested once. Skipped
while neither exists."""
import os
import pathlib
import re
import subprocess

import pytest

ANSI = re.compile(r"\x1b\[[0-9;]*m")
HANGS_AFTER_S = 3600


@pytest.fixture(scope="session")
def hvm(root):
    folder = pathlib.Path(os.environ.get("VORTEX_BUILD", root / "build")) / "bin"
    command = [folder / "hvm"] if (folder / "hvm").exists() else [folder / "vortex", "hvm"]
    if not command[0].exists() or subprocess.run([*command, "--version"], capture_output=True).returncode:
        pytest.skip("neither bin/hvm nor bin/vortex with a command `hvm` is built")

    def run(path, *flags):
        """(exit status, standard output, standard error), without ANSI codes."""
        done = subprocess.run([*command, path, *map(str, flags)], capture_output=True, timeout=HANGS_AFTER_S)
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
