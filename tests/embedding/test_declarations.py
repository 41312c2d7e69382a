"""What the public headers declare is there: every function in a library, every template for every type; and the headers stand alone."""
import itertools
import json
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include"
HEADERS = sorted(path.relative_to(INCLUDE).as_posix() for path in INCLUDE.rglob("*.h"))
LIBRARIES = ("runtime", "compiler", "metal")
CLANG = ("clang++-19", "-std=c++20", "-I", str(INCLUDE))
# The function templates that every_type.cpp uses, and those of metal/, of which the tests of that library use each.
TEMPLATES = {"dtypeOf", "span", "read", "upload", "wrap", "Argument", "TransferPtr", "RetainPtr", "object"}
FUNCTIONS = {"FunctionDecl", "CXXMethodDecl", "CXXConstructorDecl", "CXXDestructorDecl", "CXXConversionDecl"}


def library_of(header):
    return "metal" if header.startswith("vortex/metal/") else "compiler" if header in ("vortex/compiler.h", "vortex/metal_program.h") else "runtime"


def call(*arguments, **options):
    done = subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def declarations(headers, tmp_path):
    """Mangled names of the functions that the headers declare and do not define, and names of their function templates."""
    source = tmp_path / "headers.cpp"
    source.write_text("".join(f"#include <{header}>\n" for header in headers))
    text = call(*CLANG, "-fsyntax-only", "-Xclang", "-ast-dump=json", "-Xclang", "-ast-dump-filter=vortex", source)
    declared, defined, templates = set(), set(), set()

    def visit(node):
        kind = node.get("kind", "")
        if kind == "FunctionTemplateDecl":
            templates.add(node["name"].split("<")[0])
        elif kind in FUNCTIONS:
            has_body = any(inner.get("kind") == "CompoundStmt" for inner in node.get("inner", ()))
            is_made = any(node.get(flag) for flag in ("isImplicit", "explicitlyDefaulted", "explicitlyDeleted", "pure"))
            if "mangledName" in node:
                (defined if has_body or is_made else declared).add(node["mangledName"])
        elif kind in ("NamespaceDecl", "CXXRecordDecl", "LinkageSpecDecl"):
            for inner in node.get("inner", ()):
                visit(inner)

    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        node, at = decoder.raw_decode(text, at)
        visit(node)
        at += len(text[at:]) - len(text[at:].lstrip())
    return declared - defined, templates


def libraries(program, until):
    """The libraries up to this one; each needs those before it."""
    paths = [program.parents[1] / f"lib/libvortex_{name}.so" for name in itertools.takewhile(lambda name: name != until, LIBRARIES)]
    paths.append(program.parents[1] / f"lib/libvortex_{until}.so")
    for path in paths:
        if not path.exists():
            pytest.skip(f"{path.name} is not built")
    return paths


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_declared_function_is_exported(program, library, tmp_path):
    declared, _ = declarations([header for header in HEADERS if library_of(header) == library], tmp_path)
    assert len(declared) > 10
    exported = set()
    for path in libraries(program, library):
        exported |= {line.split()[-1] for line in call("nm", "-D", "--defined-only", path).splitlines()}
    assert declared <= exported, sorted(call("c++filt", *sorted(declared - exported)).splitlines())


def test_the_program_uses_every_function_template(tmp_path):
    assert declarations(HEADERS, tmp_path)[1] == TEMPLATES
    text = (pathlib.Path(__file__).parent / "every_type.cpp").read_text()
    assert all(f"{name}<" in text or f"{name}(" in text for name in ("dtypeOf", "span", "read", "upload", "wrap"))


@pytest.mark.parametrize("header", HEADERS)
def test_each_header_compiles_alone(header, tmp_path):
    source = tmp_path / "user.cpp"
    source.write_text(f"#include <{header}>\nint main() {{}}\n")
    call(*CLANG, "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", source)


def test_every_template_works_with_every_element_type(program, vortex, tmp_path):
    (runtime,) = libraries(program, "runtime")
    source = tmp_path / "at_least.vx"
    source.write_text("kernel at_least(x: &Tensor<f32, [N]>, y: &mut Tensor<bool, [N]>, loud: bool) {\n    let i = thread.global_id\n    if i < N {\n"
                      "        if loud { print(\"x {} {}\", x[i], x[i] > 1.0) }\n        y[i] = x[i] > 1.0\n    }\n}\n")
    vortex("build", source, "-o", tmp_path)
    call(*CLANG, "-Wall", "-Wextra", "-Werror", pathlib.Path(__file__).parent / "every_type.cpp", "-L", runtime.parent, "-lvortex_runtime",
         f"-Wl,-rpath,{runtime.parent}", "-o", tmp_path / "every_type")
    lines = call(tmp_path / "every_type", tmp_path / "at_least.at_least.vxk").splitlines()
    assert sorted(lines[-2:]) == ["x 0.5 false", "x 3.0 true"]
    assert set(lines[:-2]) == {"bool", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "f64"}
