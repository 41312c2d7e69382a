"""The stubs say what is there: names, parameters, which of them have defaults."""
import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
import types

import pytest
from conftest import BUILD, ROOT

import metile
import vortex

PYTHON = ROOT / "python"
STUBS = {"_vortex": PYTHON / "_vortex.pyi", "_vortex_compiler": PYTHON / "_vortex_compiler.pyi", "metile._ops": PYTHON / "metile/_ops.pyi"}


def shape_of(arguments: ast.arguments) -> list:
    """(name, kind, has a default) per parameter; parameters by position alone have no names."""
    positional = [*arguments.posonlyargs, *arguments.args]
    without = len(positional) - len(arguments.defaults)
    out = [("self" if at == 0 and argument.arg == "self" else "" if argument in arguments.posonlyargs else argument.arg, "plain", at >= without)
           for at, argument in enumerate(positional)]
    if arguments.vararg:
        out.append((arguments.vararg.arg, "*", False))
    out += [(argument.arg, "keyword", default is not None) for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    return out + ([(arguments.kwarg.arg, "**", False)] if arguments.kwarg else [])


def actual(function) -> list:
    if hasattr(function, "__nb_signature__"):
        text = re.sub(r"\\\d+", "...", function.__nb_signature__[0][0].replace("def (", "def getter(")) + ": ..."  # \0, \1: defaults
        return shape_of(ast.parse(text).body[0].args)
    kinds = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**", inspect.Parameter.KEYWORD_ONLY: "keyword"}
    return [(name, kinds.get(parameter.kind, "plain"), parameter.default is not parameter.empty)
            for name, parameter in inspect.signature(function).parameters.items()]


def is_declared(name: str) -> bool:
    return not name.startswith("_") or name in ("__array__", "__dlpack__", "__dlpack_device__", "__cuda_array_interface__", "__call__")


def compare_class(stub: ast.ClassDef, kind: type) -> None:
    told = {node.name: node for node in stub.body if isinstance(node, ast.FunctionDef)}
    there = {name: member for name, member in vars(kind).items() if is_declared(name) and callable(member) or isinstance(member, property)}
    assert {name for name in told if is_declared(name)} == {name for name in there if is_declared(name)}, stub.name
    for name, node in told.items():
        member = inspect.getattr_static(kind, name)
        is_property = any(isinstance(decorator, ast.Name) and decorator.id == "property" for decorator in node.decorator_list)
        assert is_property == isinstance(member, property), f"{stub.name}.{name}"
        if not is_property and (isinstance(member, types.FunctionType) or hasattr(member, "__nb_signature__")):
            assert shape_of(node.args) == actual(member), f"{stub.name}.{name}"


@pytest.mark.parametrize("name", STUBS)
def test_a_stub_has_the_names_and_parameters_of_its_module(name):
    module = importlib.import_module(name)
    stub = ast.parse(STUBS[name].read_text())
    told = {node.name: node for node in stub.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    own = {key for key, member in vars(module).items()
           if not key.startswith("_") and callable(member) and getattr(member, "__module__", name) in (name, "nanobind")}
    assert set(told) == own
    for key, node in told.items():
        if isinstance(node, ast.ClassDef):
            compare_class(node, getattr(module, key))
        else:
            assert shape_of(node.args) == actual(getattr(module, key)), key


def test_what_the_stubs_import_exists():
    for path in STUBS.values():
        package = "metile" if path.parent.name == "metile" else None
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                source = importlib.import_module("." * node.level + (node.module or ""), package)
                assert all(hasattr(source, alias.name) for alias in node.names)


def test_functions_made_by_a_loop_are_imported_where_type_checkers_look():
    tree = ast.parse((PYTHON / "metile/__init__.py").read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    found = {alias.name for node in guarded.body if isinstance(node, ast.ImportFrom) and node.module == "_ops" for alias in node.names}
    assert found == set(metile._ops.FLOAT_FUNCTIONS)


@pytest.mark.parametrize("package", [metile, vortex], ids=["metile", "vortex"])
def test_packages_are_typed_and_all_their_names_exist(package):
    assert (PYTHON / package.__name__ / "py.typed").exists()
    assert [name for name in package.__all__ if not hasattr(package, name)] == []


def test_importing_loads_neither_compiler_nor_what_is_seldom_used():
    script = f"""
import sys
sys.path[:0] = {[str(PYTHON), str(BUILD / "python")]!r}
import numpy
before = set(sys.modules)
import metile
print(*sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"_vortex_compiler", "pathlib", "urllib", "json", "subprocess", "tempfile", "asyncio", "hashlib", "typing_extensions", "torch", "cupy"}, loaded
    late = {"metile.frontend.autotune", "metile.ir.layout", "metile.ir.graph_ir", "metile.compiler.graph_fusion"}
    assert not late & set(done.stdout.split())

