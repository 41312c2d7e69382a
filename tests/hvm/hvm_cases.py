"""Test programs with their flags and expected output, and what `vortex hvm` prints after its result."""
import dataclasses
import os
import pathlib
import re

TERMS = int(os.environ.get("VORTEX_HVM_TERMS", "240"))
SEED = int(os.environ.get("VORTEX_HVM_SEED", "1"))
FOLDER = pathlib.Path(__file__).parent / "programs"


@dataclasses.dataclass
class Case:
    """`limit` is the number of lines asked from collapse, None for all. `expected` may start with EXPECT_PREFIX: or EXPECT_CONTAINS:."""
    path: pathlib.Path
    flags: list
    collapsed: bool
    limit: int | None
    expected: str

    @property
    def mode(self):
        return [] if not self.collapsed else ["-C" if self.limit is None else f"-C{self.limit}"]

    @property
    def fails(self):
        return any(word in self.expected for word in ("PARSE_ERROR", "RUNTIME_ERROR", "Error: "))

    def accepts(self, output):
        output = output.rstrip("\n")
        if self.expected == "PARSE_ERROR":
            return output.startswith("PARSE_ERROR")
        if self.expected.startswith("EXPECT_CONTAINS:"):
            return self.expected.removeprefix("EXPECT_CONTAINS:") in output
        if self.expected.startswith("EXPECT_PREFIX:"):
            return output.startswith(self.expected.removeprefix("EXPECT_PREFIX:"))
        return output == self.expected


def load(path):
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    flags = []
    for line in lines:
        if line.startswith("//!"):
            flags += line[3:].split()
        elif line.strip():
            break
    tail = len(lines)
    while tail and lines[tail - 1].startswith("//"):
        tail -= 1
    assert tail < len(lines), f"{path} has no expected output"
    collapsed = not any(line.startswith("//!") for line in lines[tail:])
    expected = [line.removeprefix("//!" if line.startswith("//!") else "//") for line in lines[tail:]]
    limit = len(expected) if path.name.startswith(("collapse_", "enum_")) else None
    for flag in [flag for flag in flags if re.fullmatch(r"-C\d*", flag)]:
        limit = int(flag[2:])
        flags.remove(flag)
    return Case(path, flags, collapsed, limit, "\n".join(expected))


def load_all():
    return [load(path) for path in sorted(FOLDER.glob("*.hvm4")) if not path.name.startswith("_")]


def interactions(output):
    """(output without the statistics, number of interactions). In collapse each line of a run with -s ends with its running total."""
    found = re.search(r"^- Itrs: (\d+) interactions$", output, re.MULTILINE)
    lines = re.sub(r" #\d+$", "", output[: found.start() if found else None], flags=re.MULTILINE)
    return lines, int(found[1]) if found else None
