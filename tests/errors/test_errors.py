"""Every tests/errors/E0312.vx or E0312_what.vx must be reported with that id (W…: a warning).

`//~ E0312` at the end of a line: exactly these errors, on exactly these lines (several ids separated by blanks).
`//! run --check` on the first line: the driver's arguments instead of `check`; `//! check -- a b` puts what follows after the file."""
import pathlib
import re

import pytest

HERE = pathlib.Path(__file__).parent
FILES = sorted(HERE.glob("*.vx"))
IDS = HERE.parents[1] / "src/diag/ids"
FOUND = re.compile(r"^(error|warning)\[([EW]\d{4})\][^\n]*(?:\n\s*-->\s*([^\n]*?):(\d+):\d+)?", re.M)


def expectations(text):
    return {(number, name) for number, line in enumerate(text.splitlines(), 1) if "//~" in line
            for name in line.split("//~")[1].split()}


def arguments(path, text):
    first = text.splitlines()[0] if text else ""
    words = first[3:].split() if first.startswith("//!") else ["check"]
    before, _, after = " ".join(words).partition(" -- ")
    return [*before.split(), path, *(["--", *after.split()] if after else [])]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_file_is_reported_with_its_id_where_it_says(path, vortex):
    text, wanted = path.read_text(errors="replace"), path.stem[:5]
    done = vortex(*arguments(path, text), status=0 if wanted.startswith("W") else 1)
    output = done.stdout + done.stderr
    found = {(int(line or 0), name) for _, name, _, line in FOUND.findall(output)}
    assert wanted in {name for _, name in found}, output
    if expected := expectations(text):
        assert {item for item in found if item[1].startswith("E") or item in expected} == expected, output


def documented_ids():
    return {name for path in IDS.glob("*.def") for name in re.findall(r'^VORTEX_ID\("([EW]\d{4})"', path.read_text(), re.M)}


def untested_ids():
    """untested.txt: `id reason` for what no source file can provoke; the reason says which test covers it."""
    path = HERE / "untested.txt"
    return {line.split()[0] for line in path.read_text().splitlines() if line.strip()} if path.exists() else set()


def test_every_id_has_a_file(program):
    tested = {path.stem[:5] for path in FILES}
    missing = sorted(documented_ids() - tested - untested_ids())
    if missing:
        pytest.skip("ids without a test file: " + " ".join(missing))


def test_every_file_names_a_documented_id():
    assert not {path.stem[:5] for path in FILES} - documented_ids()
