"""Errors that Python itself raises in a kernel: they name file, line and column of the kernel's statement, as ours do."""
import importlib
import inspect
import re
import string
import subprocess
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
    ("metile.store(Out + i, metile.load(X + i, cache='.cg'))", TypeError, "unexpected keyword argument 'cache'", "metile.load(X + i, cache='.cg')"),
    ("metile.store(Out + i, metile.sum(x, axes=0))", TypeError, r"sum\(\) got an unexpected keyword argument 'axes'", "metile.sum(x, axes=0)"),
    ("metile.store(Out + i)", TypeError, "missing 1 required positional argument: 'value'", "metile.store(Out + i)"),
    ("metile.store(Out + i, np.exp(x))", TypeError, "functions of NumPy take no traced values", "np.exp(x)"),
    ("metile.store(Out + i, math.exp(x))", TypeError, "the functions of metile", "math.exp(x)"),
    ("metile.store(Out * 2 + i, x)", TypeError, "unsupported operand", "Out * 2"),
    ("metile.store(Out + i, y)", NameError, "name 'y' is not defined", "y"),
    ("metile.store(Out + i, metile.tanhh(x))", AttributeError, "no attribute 'tanhh': did you mean 'tanh'", "metile.tanhh"),
    ("metile.atomic_cas(Out + i, x)", AttributeError, "no attribute 'atomic_cas': there is atomic_add", "metile.atomic_cas"),
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


def refused(body, kind, text, *arrays, **constants):
    with pytest.raises(kind) as raised:
        metile.kernel(body)[(1,)](*arrays, **constants)
    assert text in str(raised.value), str(raised.value)
    return raised.value


PRINTS = {
    "fewer values": (lambda n: metile.print("{} {}", n), ValueError, "2 `{}`, but 1 value is given"),
    "more values": (lambda n: metile.print("{}", n, n), ValueError, "1 `{}`, but 2 values are given"),
    "no values": (lambda n: metile.print("n = {}"), ValueError, "1 `{}`, but 0 values are given"),
    "a form": (lambda n: metile.print("{:d}", n), ValueError, "without a name or a form"),
    "a name": (lambda n: metile.print("{n}", n), ValueError, "without a name or a form"),
    "a brace alone": (lambda n: metile.print("{", n), ValueError, "a brace is `{{`"),
    "no text": (lambda n: metile.print(n), TypeError, "the text of print is a str, not a traced value"),
    "a number for a text": (lambda n: metile.print(3, n), TypeError, "the text of print is a str, not a int"),
    "a 2-D tile": (lambda n: metile.print("{}", metile.zeros((2, 2))), metile.LoweringError, "print of a 2-D tile"),
    "an assertion of a 2-D tile": (lambda n: metile.device_assert(metile.zeros((2, 2)) > 1), metile.LoweringError, "device_assert of a 2-D tile"),
    "an assertion that says a number": (lambda n: metile.device_assert(n > 1, n), TypeError, "the text of device_assert is a str"),
    "a shuffle of a 2-D tile": (lambda n: metile.simd_shuffle_xor(metile.zeros((2, 2)), 1), metile.LoweringError, "simd_shuffle_xor of a 2-D tile"),
    "a 2-D tile of lanes": (lambda n: metile.simd_broadcast(n, metile.zeros((2, 2), "i32")), metile.LoweringError, "simd_broadcast of a 2-D tile"),
    "a 2-D tile as a bound": (lambda n: [i for i in metile.tile_range(0, metile.zeros((2, 2), "i32"))], TypeError, "the bounds of tile_range are numbers, not 2-D tiles"),
    "a function of NumPy": (lambda n: np.exp(n), TypeError, "functions of NumPy take no traced values"),
    "a choice of NumPy's": (lambda n: np.where(n > 1, n, 0), TypeError, "functions of NumPy take no traced values: metile.where does"),
    "a sum of NumPy's": (lambda n: np.sum(n), TypeError, "functions of NumPy take no traced values: metile.sum does"),
    "a stack of NumPy's": (lambda n: np.stack([n, n]), TypeError, "functions of NumPy take no traced values: use those of metile"),
    "an array of NumPy's": (lambda n: np.array([n, n]), TypeError, "a traced value is no element of an array"),
    "a copy of NumPy's": (lambda n, X: np.asarray(X), TypeError, "a traced value is no element of an array"),
    "a choice from a list": (lambda n: [1, 2, 3][n], TypeError, "what it chooses is metile.where, or metile.load from an array"),
    "tiles that do not meet": (lambda n: metile.zeros((2, 4)) + metile.zeros((2, 4)).T, ValueError, "`+` of 2-D tiles of shapes (2, 4) and (4, 2)"),
    "a lane beyond the last": (lambda n: metile.simd_broadcast(n, 32), ValueError, "simd_broadcast of lane 32: a simdgroup has the lanes 0 to 31"),
    "a lane before the first": (lambda n: metile.simd_broadcast(n, metile.constexpr(-1)), ValueError, "simd_broadcast of lane -1"),
    "a fraction as an integer": (lambda n: metile.scalar(1.5, "i32"), ValueError, "1.5 is no integer, as those of `i32` are"),
    "a fraction as a byte": (lambda n: metile.scalar(-0.5, "u8"), ValueError, "-0.5 is no integer"),
    "a pointer compared": (lambda n, X: n < X, TypeError, "`<` takes a value, not a pointer"),
}


@pytest.mark.parametrize("name", PRINTS)
def test_what_takes_numbers_of_lanes_says_so_at_its_line(name):
    statement, kind, text = PRINTS[name]

    def kernel(X, N):
        statement(N) if statement.__code__.co_argcount == 1 else statement(N, X)

    message = str(refused(kernel, kind, text, np.zeros(4, np.float32), 3))
    assert f"{__file__}:{statement.__code__.co_firstlineno}:" in message and "^" in message


@pytest.mark.parametrize("text, printed", [("{} of {}", "3 of 4"), ("n", "n 3 4"), ("", " 3 4"), ("{{{}}} {}", "{3} 4")])
def test_print_puts_values_where_the_text_says(text, printed):
    program = (f"import sys; sys.path[:0] = {sys.path!r}\nimport metile, numpy\n@metile.kernel\ndef kernel(X, N, M):\n    metile.print({text!r}, N, M)\n"
               "    metile.store(X + 0, 1.0)\nkernel[(1,)](numpy.zeros(4, numpy.float32), 3, 4)\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=3600)
    assert done.stdout.strip("\n") == printed, done.stderr


def diverges(X, N, BLOCK: metile.constexpr):
    for _ in metile.tile_range(0, metile.thread_id()):
        metile.barrier()
    metile.store(X + metile.thread_id(), 1.0)


def sums_of_some(X, N, BLOCK: metile.constexpr):
    lane = metile.thread_id()
    total = metile.load(X + lane)
    for _ in metile.tile_range(0, lane):
        total = total + metile.simd_sum(total)
    metile.store(X + lane, total)


def reads_before_writing(X, N, BLOCK: metile.constexpr):
    lane, memory = metile.arange(0, BLOCK), metile.shared(BLOCK)
    metile.store(X + lane, metile.load(memory + lane))


def races(X, N, BLOCK: metile.constexpr):
    lane = metile.arange(0, BLOCK)
    metile.store(X + 0, metile.load(X + lane))


def tile_of_lanes(X, N, BLOCK: metile.constexpr):
    metile.tile_store(X, 0, 0, 8, metile.zeros((2, 8)) + metile.thread_id(), (2, 8))


@pytest.mark.parametrize("body, id", [(diverges, "E0450"), (sums_of_some, "E0451"), (reads_before_writing, "E0525"), (races, "E0630"), (tile_of_lanes, "E0467")])
def test_what_the_compiler_finds_is_said_in_the_words_of_metile(body, id):
    error = refused(body, metile.LoweringError, id, np.zeros(64, np.float32), 3, BLOCK=64)
    said = [str(error), *(diagnostic.rendered for diagnostic in error.diagnostics), *(text for diagnostic in error.diagnostics for text in diagnostic.helps)]
    for words in ("sync_block", "@unchecked", "thread.local_id", "--check", "warp"):
        assert not any(words in text for text in said), said


def strided_race(O, N, BLOCK: metile.constexpr):
    lane = metile.arange(0, BLOCK)
    metile.store(O + lane // 2 * 48 + metile.program_id(0) * 4096, lane)


@pytest.mark.parametrize("asked", [False, True])
def test_an_error_comes_first_and_warnings_about_speed_only_where_asked_for(asked, monkeypatch):
    monkeypatch.setenv("METILE_WARNINGS", "1" if asked else "0")
    error = refused(strided_race, metile.LoweringError, "E0630", np.zeros(8192, np.int32), 3, BLOCK=64)
    assert str(error).startswith("error[E0630]") and error.diagnostics[0].id == "E0630"
    assert ("W0623" in str(error)) == asked == (len(error.diagnostics) > 1)
    assert "@unchecked" not in str(error) and "warp" not in str(error)


def test_warnings_are_said_in_the_words_of_metile():
    @metile.kernel
    def scatters(X, Where, BLOCK: metile.constexpr):
        lane = metile.arange(0, BLOCK)
        metile.store(X + metile.load(Where + lane), lane)

    with pytest.warns(UserWarning, match="W0631") as seen:
        scatters[(1,)](np.zeros(64, np.float32), np.arange(64, dtype=np.int32), BLOCK=64)
    assert "METILE_CHECK=1" in str(seen[0].message) and "@unchecked" not in str(seen[0].message) and "--check" not in str(seen[0].message)


def test_keys_of_autotune_are_parameters():
    with pytest.raises(ValueError, match="autotune of 'diverges': the kernel has no parameter 'M' to tune by"):
        metile.autotune([metile.Config(BLOCK=64)], key=["N", "M"])(metile.kernel(diverges))


def test_a_buffer_has_the_shape_of_its_data():
    data = np.zeros((3, 4), np.float32)
    assert metile.Buffer((3, 4), data=data).shape == (3, 4) and metile.Buffer(data=data).shape == (3, 4)
    for shape in (12, (4, 3), (3, 4, 1)):
        with pytest.raises(ValueError, match=r"the data has the shape \(3, 4\)"):
            metile.Buffer(shape, data=data)


def test_a_grid_may_be_a_list():
    @metile.kernel
    def ids(Out):
        metile.store(Out + metile.program_id(0) * 2 + metile.program_id(1), metile.program_id(0))

    out = np.full(6, -1, np.int32)
    for grid in ([3, 2], (3, 2)):
        ids[grid](out)
        assert out.tolist() == [0, 0, 1, 1, 2, 2]
    with pytest.raises(TypeError, match="made of integers"):
        ids[["3", 2]](out)


@pytest.mark.parametrize("first, then", [((1, 8), (4, 8)), ((4, 1), (4, 8)), ((4, 8), (8, 8)), ((1, 1), (4, 8))])
def test_a_tile_keeps_its_extents_in_a_loop(first, then):
    def kernel(X, N):
        tile = metile.zeros(first)
        for _ in metile.tile_range(0, N):
            tile = metile.zeros(then) + 1.0
        metile.tile_store(X, 0, 0, 8, tile, first)

    error = refused(kernel, metile.LoweringError, f"`tile` is a tile of {first} before the loop and of {then} after an iteration", np.zeros(64, np.float32), 3)
    assert f"{__file__}:{kernel.__code__.co_firstlineno + 2}:" in str(error) and "^" in str(error)


@pytest.mark.parametrize("first, then", [((4, 8), (1, 8)), ((4, 8), (4, 1)), (None, (4, 8)), ((4, 8), None)])
def test_what_is_repeated_along_a_tile_may_follow_it_in_a_loop(first, then):
    @metile.kernel
    def kernel(X, N):
        tile = metile.zeros(first) if first else 0.0
        for _ in metile.tile_range(0, N):
            tile = metile.zeros(then) + 2.0 if then else 2.0
        metile.tile_store(X, 0, 0, 8, tile, (4, 8))

    for n, expected in ((0, 0), (3, 2)):
        out = np.full(32, np.nan, np.float32)
        kernel[(1,)](out, n)
        np.testing.assert_array_equal(out, expected)


def test_doubled_braces_are_printed_as_one(capfd, where):
    texts = "set {{}} = {}", "{} in {{}}", "{{{}}}", "{{a}} {}", "}}{{ {}", "{{{{}}}} {}", "{{}}"

    @metile.kernel
    def printed(N):
        for text in texts:
            metile.print(text, *[N] * len(_fields(text)))

    printed[(1,)](7)
    metile.Device.get().sync()
    assert capfd.readouterr().out.split("\n")[:-1] == [text.format(7) for text in texts]


def _fields(text: str) -> list:
    return [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]


def float_offset(O, N, BLOCK: metile.constexpr):
    offs = metile.program_id(0) * BLOCK + metile.arange(0, 64)
    metile.store(O + offs, metile.load(O + offs) + 1.0)
    metile.store(O + offs, metile.load(O + offs + 1) + 1.0)


def test_a_float_among_offsets_is_one_error_which_shows_where_it_comes_from():
    error = refused(float_offset, metile.LoweringError, "E0303", np.zeros(128, np.float32), 3, BLOCK=64.0)
    [found] = error.diagnostics
    assert [label.message for label in found.labels if not label.is_primary] == ["a float from here on"]
    label = next(label for label in found.labels if not label.is_primary)
    line = inspect.getsourcelines(float_offset)[1] + 1
    assert (label.line, label.end_column - label.column) == (line, len("metile.program_id(0) * BLOCK"))


def test_configurations_in_the_form_of_triton_are_told_that_of_metile():
    with pytest.raises(TypeError, match=re.escape("metile.Config takes constexprs and hints by name: Config(BLOCK=32, GROUP=8)")):
        metile.Config({"BLOCK": 32, "GROUP": 8}, num_warps=4)
    with pytest.raises(TypeError, match=re.escape("Config(BLOCK=64)")):
        metile.Config(32)
    assert metile.Config(BLOCK=32, num_warps=4) == metile.Config(BLOCK=32, num_warps=4)


def test_prepared_launches_take_no_arguments():
    @metile.kernel
    def doubled(X, BLOCK: metile.constexpr):
        lane = metile.arange(0, BLOCK)
        metile.store(X + lane, metile.load(X + lane) * 2.0)

    x = np.ones(64, np.float32)
    prepared = doubled[1].prepare(x, BLOCK=64)
    with pytest.raises(TypeError, match="a prepared launch of kernel 'doubled' runs on the arguments that it was prepared with"):
        prepared(x)
    prepared()
    assert (x == 4).all()
