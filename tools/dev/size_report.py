#!/usr/bin/env python3
"""Lines of code by folder and the long files. Status 1 if a file has over 1000 lines, over 10 % of the code is in files over 500, or a layer with a
limit of its own (docs/decisions/0027, 0035, 0052, 0060, 0082, 0098, 0101, 0102, 0112, 0113, 0115, 0157, 0158, 0161, 0165, 0171, 0172, 0173, 0174, 0181, 0182, 0184, 0185, 0209, 0210, 0237, 0245, 0246, 0260, 0272, 0275) is beyond it."""
import collections
import pathlib
import sys

LONG, TOO_LONG, MAX_SHARE = 500, 1000, 0.10
LIMITS = {"src/lang/sema": 18_590, "src/lang/flow": 25_630}  # lines without tests; no file of them is long
SUFFIXES = {".h", ".cpp", ".td", ".py", ".cmake", ".sh", ".vx"}
FOLDERS = ("src", "include", "tools", "std", "python", "bench", "tests", "examples", "cmake")


def code_files(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file() and "errors" not in path.parts:
                yield path.relative_to(root), path.read_text(errors="replace").count("\n")


def layer(path):
    parts = path.parts
    depth = 3 if parts[0] == "src" and parts[1] in ("lang", "target", "runtime") else 2
    return "/".join(parts[: min(depth, len(parts) - 1)])


def is_test(path):
    return path.stem.endswith("_test") or "testing" in path.parts


def over_limits(files):
    """A line for each layer that is larger than its limit and each of its files that is long."""
    for folder, limit in LIMITS.items():
        own = [(path, lines) for path, lines in files if path.is_relative_to(folder) and not is_test(path)]
        if (total := sum(lines for _, lines in own)) > limit:
            yield f"{folder}: error: {total} lines without tests, {limit} at most: docs/decisions/0027, 0035, 0052, 0060, 0082, 0098, 0101, 0102, 0112, 0113, 0115, 0157, 0158, 0161, 0165, 0171, 0172, 0173, 0174, 0181, 0182, 0184, 0185, 0209, 0210, 0237, 0245, 0246, 0260, 0272, 0275"
        yield from (f"{path}:1: error: {lines} lines" for path, lines in own if lines > LONG)


def main():
    root = pathlib.Path(__file__).parents[2]
    files = list(code_files(root))
    total = sum(lines for _, lines in files) or 1
    by_folder = collections.Counter()
    for path, lines in files:
        by_folder[layer(path)] += lines
    if "--verbose" in sys.argv:
        for folder, lines in by_folder.most_common():
            print(f"{lines:7} {folder}")
    long_files = sorted(((lines, path) for path, lines in files if lines > LONG), reverse=True)
    for lines, path in long_files:
        print(f"{path}:1: {'error' if lines > TOO_LONG else 'warning'}: {lines} lines")
    share = sum(lines for lines, _ in long_files) / total
    print(f"size: {len(files)} files, {total} lines, {share:.1%} of them in files over {LONG}")
    beyond = list(over_limits(files))
    print("\n".join(beyond), end="\n" if beyond else "")
    return any(lines > TOO_LONG for lines, _ in long_files) or share > MAX_SHARE or bool(beyond)


if __name__ == "__main__":
    sys.exit(main())
