"""Every code block of the documentation does what its mark says: `vx` compiles, `vx error E0305` fails with that id and no other,
`vx fragment` at least parses inside a function. A block with a main is also run."""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BLOCK = re.compile(r"^```(vx|vortex)\b *([^\n]*)\n(.*?)^```$", re.M | re.S)


def blocks():
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = page.read_text()
        for match in BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield pytest.param(match[2].split(), match[3], id=f"{page.relative_to(ROOT)}:{line}")


@pytest.mark.parametrize("mark, text", list(blocks()))
def test_block_does_what_its_mark_says(vortex, device, tmp_path, mark, text):
    path = tmp_path / "block.vx"
    path.write_text(text if mark[:1] != ["fragment"] else "fn fragment() {\n" + text + "}\n")
    if mark[:1] == ["error"]:
        done = vortex("check", path, status=1)
        assert set(re.findall(r"^error\[(E\d{4})\]", done.stdout + done.stderr, re.M)) == {mark[1]}
    elif mark[:1] == ["fragment"]:
        done = vortex("check", path, status=None)
        assert not re.search(r"^error\[E01", done.stdout + done.stderr, re.M), done.stderr
    else:
        assert mark == [], f"unknown mark {mark}"
        vortex("check", path)
        if re.search(r"^fn main\(", text, re.M):
            vortex("run", path, "--device", device)


CONSOLE = re.findall(r"^\$ \./vortex (run [^\n]*)\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)


@pytest.mark.parametrize("command, output", CONSOLE, ids=[command for command, _ in CONSOLE])
def test_outputs_in_the_readme_are_real(vortex, command, output):
    assert vortex(*command.split()).stdout == output


def test_every_built_in_function_is_documented():
    table = (ROOT / "src/lang/sema/builtin/table.cpp").read_text()
    names = re.findall(r'^    \{"([\w.]+)", Builtin::', table, re.M)
    assert len(names) > 80
    library = (ROOT / "docs/library.md").read_text()
    unfinished = {"stage", "async_stage"}
    assert [name for name in names if name not in unfinished and not re.search(rf"`(?:\w+\.)?{re.escape(name)}(?=[(`])", library)] == []
