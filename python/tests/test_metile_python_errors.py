"""Errors that Python itself raises in a kernel: they name file, line and column of the kernel's statement, as ours do."""
import importlib
import sys

import numpy as np
import pytest

import metile

HEAD = """import math
import metile
import numpy as np

def helper(x):
    return x + missing

@metile.kernel
def k(X, Out, N, BLOCK: metile.constexpr):
    i = metile.arange(0, BLOCK)
    x = metile.load(X + i, mask=i < N)
"""
FIRST = HEAD.count("\n") + 1


@pytest.fixture
def launch(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    count = 0

    def run(body: str):
        nonlocal count
        count += 1
        name = f"kernel_with_an_error_{count}"
        (tmp_path / f"{name}.py").write_text(HEAD + "".join(f"    {line}\n" for line in body.split("\n")))
        importlib.invalidate_caches()
        try:
            importlib.import_module(name).k[(1,)](np.ones(8, np.float32), np.zeros(8, np.float32), 8, BLOCK=8)
        finally:
            sys.modules.pop(name, None)
        return name

    return run


@pytest.mark.parametrize("body, error, text, marked", [
    ("metile.store(Out + i, metile.load(X + i, other=0.0))", TypeError, "unexpected keyword argument 'other'", "metile.load(X + i, other=0.0)"),
    ("metile.store(Out + i, metile.sum(x, axis=0))", TypeError, r"sum\(\) got an unexpected keyword argument 'axis'", "metile.sum(x, axis=0)"),
    ("metile.store(Out + i)", TypeError, "missing 1 required positional argument: 'value'", "metile.store(Out + i)"),
    ("metile.store(Out + i, np.exp(x))", TypeError, "does not support ufuncs", "np.exp(x)"),
    ("metile.store(Out + i, math.exp(x))", TypeError, "the functions of metile", "math.exp(x)"),
    ("metile.store(Out * 2 + i, x)", TypeError, "unsupported operand", "Out * 2"),
    ("metile.store(Out + i, y)", NameError, "name 'y' is not defined", "y"),
    ("metile.store(Out + i, metile.tanhh(x))", AttributeError, "no attribute 'tanhh'", "metile.tanhh"),
    ("metile.atomic_add(Out + i, x)", AttributeError, "no attribute 'atomic_add'", "metile.atomic_add"),
    ("metile.store(Out + i, [x][1])", IndexError, "list index out of range", "[x][1]"),
    ("metile.store(Out + i, x * (1 // (BLOCK - 8)))", ZeroDivisionError, "by zero", "1 // (BLOCK - 8)"),
    ("metile.store(Out + i, x * int('a'))", ValueError, "invalid literal", "int('a')"),
    ("metile.store(Out + i, metile.arange(0, N))", TypeError, "not <traced value>", "metile.arange(0, N)"),
    ("a, b = (x,)", ValueError, "not enough values to unpack", "a, b"),
    ("for j in metile.tile_range(0, N, 4):\n    metile.store(Out + j, y)", NameError, "name 'y'", "y"),
    ("with metile.simdgroup_role(0):\n    metile.store(Out + i, len(5))", TypeError, r"no len\(\)", "len(5)"),
])
def test_an_error_of_pythons_own_names_the_statement(launch, body, error, text, marked):
    with pytest.raises(error, match=text) as caught:
        launch(body)
    lines = str(caught.value).split("\n")
    at = next(number for number, line in enumerate(body.split("\n")) if marked in line)
    assert f"kernel_with_an_error_1.py:{FIRST + at}" in lines[1], lines
    if sys.version_info >= (3, 11):
        column = lines[3].index("^")
        assert lines[2][column:].startswith(marked) and lines[3].count("^") == len(marked), "\n".join(lines)


def test_the_statement_is_that_of_a_helper(launch):
    with pytest.raises(NameError, match=r"name 'missing' is not defined\n  --> .*kernel_with_an_error_1.py:6"):
        launch("metile.store(Out + i, helper(x))")


@pytest.mark.parametrize("own", ["TypeError('BLOCK is 8')", "ValueError('BLOCK', 8)", "KeyError('BLOCK')", "RuntimeError('BLOCK is 8')"])
def test_what_a_kernel_raises_is_left_as_it_is(launch, own):
    wanted = eval(own)
    with pytest.raises(type(wanted)) as caught:
        launch(f"if BLOCK == 8:\n    raise {own}")
    assert caught.value.args == wanted.args


def test_kernels_without_a_source_name_file_and_line():
    scope = {"metile": metile}
    exec(compile("@metile.kernel\ndef k(X, N, BLOCK: metile.constexpr):\n    metile.store(X + y, 1.0)\n", "<made>", "exec"), scope)
    with pytest.raises(NameError, match=r"name 'y' is not defined\n  --> <made>:3"):
        scope["k"][(1,)](np.ones(8, np.float32), 8, BLOCK=8)
