"""The driver on every file of tests/errors: the same ids on the same lines as the `//~` comments say, see README.md.

errors_test.cpp compares columns and labels in process; here the driver's options (`//! run --check` on the first line instead of
`check`; `//! check -- a b` puts what follows after the file), its exit status and its output are what counts."""
import pathlib
import re

import pytest

HERE = pathlib.Path(__file__).parent
FILES = sorted(HERE.glob("*.vx"))
IDS = HERE.parents[1] / "src/diag/ids"
FOUND = re.compile(r"^(error|warning)\[([EW]\d{4})\][^\n]*(?:\n\s*-->\s*([^\n]*?):(\d+):\d+)?", re.M)


def expectations(text):
    found = set()
    for number, line in enumerate(text.splitlines(), 1):
        _, mark, rest = line.partition("//~")
        above = len(rest) - len(rest.lstrip("^v"))
        number += above if rest.startswith("v") else -above
        ids = re.findall(r"\b([EW]\d{4})\b", re.sub(r'"[^"]*"', "", rest))
        found |= {(number, name) for name in ids} if mark else set()
    return found


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


def test_every_file_names_a_documented_id():
    assert not {path.stem[:5] for path in FILES} - documented_ids()
