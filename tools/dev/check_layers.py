#!/usr/bin/env python3
"""Checks every #include against layers.txt, and that lang/flow names the operands of expressions. Prints `file:line: message` for each finding; status 1 if there is one."""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
POSITION = re.compile(r"(?<!node\.)\bargs\[\d")  # of an Expr; those of a Node are positions
SUFFIXES = {".h", ".cpp", ".inc", ".def"}


class Layers:
    def __init__(self, text):
        self.external, self.allowed, self.rank, self.problems = [], {}, {}, []
        self.headers = {}  # folder: its subfolders in the order in which their headers may include each other
        for number, line in enumerate(text.splitlines(), 1):
            line = line.split("#")[0].strip()
            if not line:
                continue
            name, _, rest = line.partition(":")
            names = rest.split()
            if name == "external":
                self.external = names
                continue
            if name.startswith("headers "):
                self.headers[name.split()[1]] = names
                continue
            for dep in names:
                if dep not in self.rank and dep not in self.external:
                    self.problems.append(f"tools/dev/layers.txt:{number}: {name} names {dep}, which does not stand above it")
                if dep.startswith("target/") and name.startswith("target/") and dep not in ("target/interface", "target/gpu"):
                    self.problems.append(f"tools/dev/layers.txt:{number}: siblings under target/ must not include each other")
            self.allowed[name] = set(names)
            self.rank[name] = len(self.rank)

    def folder_of_include(self, path):
        """The layer an include path belongs to, or None for the standard library and system headers."""
        parts = path.split("/")
        if parts[0] == "vortex":
            return "include/vortex"
        aliases = {"oneapi": "tbb", "mlir-c": "mlir", "llvm-c": "llvm", "clang-c": "clang"}
        if aliases.get(parts[0], parts[0]) in self.external:
            return aliases.get(parts[0], parts[0])
        return self.longest_prefix(parts[:-1])

    def folder_of_file(self, path):
        parts = list(path.parts[:-1])
        return self.longest_prefix(parts[1:] if parts and parts[0] == "src" else parts)

    def longest_prefix(self, parts):
        for count in range(len(parts), 0, -1):
            name = "/".join(parts[:count])
            if name in self.allowed:
                return name
        return None

    def may_include(self, folder, target, is_test):
        if folder == target or target in self.allowed[folder]:
            return True
        if not is_test or target not in self.rank:
            return is_test and target in self.external
        siblings = folder.startswith("target/") and target.startswith("target/") and target not in ("target/interface", "target/gpu")
        return self.rank[target] < self.rank[folder] and not siblings


    def header_may_include(self, path, include):
        """Headers of subfolders that are listed in an order include those of earlier ones; the `.cpp` files may call back."""
        for folder, order in self.headers.items():
            own, other = (p.removeprefix(folder + "/").split("/")[0] if p.startswith(folder + "/") else "" for p in (path, include))
            if own in order and other in order and order.index(other) > order.index(own):
                return False
        return True


def check_file(layers, root, path):
    folder = layers.folder_of_file(path)
    if folder is None:
        yield f"{path}:1: its folder is missing from tools/dev/layers.txt"
        return
    for number, line in enumerate((root / path).read_text(errors="replace").splitlines(), 1):
        if folder == "lang/flow" and POSITION.search(line):
            yield f"{path}:{number}: name the operand by lang/sema/expr_parts.h"
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, include = match.groups()
        target = layers.folder_of_include(include)
        if target is None:
            if quote == '"' and not include.startswith("gtest/"):
                yield f'{path}:{number}: "{include}" names no folder: write the path from src/ or include/'
        elif not layers.may_include(folder, target, path.stem.endswith("_test") or path.stem.startswith("test_") or path.parent.name == "testing"):
            yield f"{path}:{number}: {folder} must not include {target}"
        elif path.suffix == ".h" and not layers.header_may_include("/".join(path.parts[1:]), include):
            yield f"{path}:{number}: this header stands before those of {'/'.join(include.split('/')[:-1])}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    layers = Layers((root / "tools/dev/layers.txt").read_text())
    problems = list(layers.problems)
    for top in ("src", "include", "tools", "bench", "tests"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                problems += check_file(layers, root, path.relative_to(root))
    print("\n".join(problems) if problems else f"layers: {len(layers.allowed)} folders, no violation")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
