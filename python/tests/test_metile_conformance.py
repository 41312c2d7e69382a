"""docs/metile/conformance.md names tests that exist, and no name of metile is left out of the documentation."""
import ast
import functools
import pathlib
import re

import pytest
from conftest import ROOT

import metile

TESTS = ROOT / "python" / "tests"
ROWS = re.findall(r"^\| (?!promise|---)(.+?) \| ([^|]+) \|$", (ROOT / "docs" / "metile" / "conformance.md").read_text(), re.MULTILINE)


@functools.cache
def known_tests(name: str) -> set[str]:
    path = next(path for path in (TESTS / f"test_metile_{name}.py", TESTS / f"test_{name}.py") if path.exists())
    return {node.name.removeprefix("test_") for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_every_promise_has_a_row():
    lines = (ROOT / "docs" / "metile" / "conformance.md").read_text().splitlines()
    assert len(ROWS) == sum(line.startswith("| ") for line in lines) - sum(line.startswith("| promise") for line in lines)


@pytest.mark.parametrize("promise, tests", ROWS, ids=[promise[:40] for promise, _ in ROWS])
def test_the_tests_of_a_promise_exist(promise, tests):
    for group in tests.split(";"):
        file, names = group.strip().split(":")
        known = known_tests(file)
        assert known and set(filter(None, re.split(r"[,\s]+", names))) <= known


def test_every_name_is_in_the_reference():
    text = pathlib.Path(ROOT / "docs" / "metile" / "reference.md").read_text() + (ROOT / "docs" / "library.md").read_text()
    words = set(re.findall(r"\w+", text))
    assert not [name for name in metile.__all__ if name not in words]
