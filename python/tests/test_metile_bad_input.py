"""What is wrong is refused with the documented exception; kernel code with its place; nothing is written and the next launch works."""
import sys

import numpy as np
import pytest

import metile
import vortex


@metile.kernel
def copy(X, Out, N, BLOCK: metile.constexpr):
    offs = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    metile.store(Out + offs, metile.load(X + offs, mask=offs < N), mask=offs < N)


def arrays(n=10):
    return np.arange(n, dtype=np.float32), np.full(n, np.nan, np.float32)


def works():
    x, out = arrays()
    copy[1](x, out, 10, BLOCK=32)
    np.testing.assert_array_equal(out, x)


X, OUT = arrays()
LAUNCHES = {
    "too many arguments": (lambda: copy[1](X, OUT, 10, 32, 5), TypeError, "takes 3 arguments"),
    "missing argument": (lambda: copy[1](X, OUT, BLOCK=32), TypeError, "misses 'N'"),
    "missing constexpr": (lambda: copy[1](X, OUT, 10), TypeError, "misses 'BLOCK'"),
    "misspelt constexpr": (lambda: copy[1](X, OUT, 10, BLOKC=32), TypeError, "no parameter 'BLOKC'"),
    "given twice": (lambda: copy[1](X, OUT, 10, N=10, BLOCK=32), TypeError, "two values for 'N'"),
    "not an array": (lambda: copy[1]("x", OUT, 10, BLOCK=32), TypeError, "'X' of kernel 'copy' is a str"),
    "none": (lambda: copy[1](X, None, 10, BLOCK=32), TypeError, "'Out' of kernel 'copy' is a NoneType"),
    "f64": (lambda: copy[1](X.astype(np.float64), OUT, 10, BLOCK=32), TypeError, "'X' has elements of type float64"),
    "complex": (lambda: copy[1](X.astype(np.complex64), OUT, 10, BLOCK=32), TypeError, "complex64"),
    "i32 overflow": (lambda: copy[1](X, OUT, 1 << 31, BLOCK=32), OverflowError, "'N' of kernel 'copy' is 2147483648"),
    "unhashable constexpr": (lambda: copy[1](X, OUT, 10, BLOCK=[32]), TypeError, "constexprs are hashable"),
    "negative grid": (lambda: copy[(1, -2)](X, OUT, 10, BLOCK=32), ValueError, "0 to 2147483647"),
    "huge grid": (lambda: copy[1 << 32](X, OUT, 10, BLOCK=32), ValueError, "0 to 2147483647"),
    "four axes": (lambda: copy[(1, 1, 1, 1)](X, OUT, 10, BLOCK=32), ValueError, "one to three axes"),
    "float grid": (lambda: copy[1.5](X, OUT, 10, BLOCK=32), TypeError, "made of integers"),
    "no grid": (lambda: copy(X, OUT, 10, BLOCK=32), TypeError, "copy[grid]"),
    "block of zero": (lambda: copy[1](X, OUT, 10, BLOCK=0), ValueError, "empty"),
    "block of nan": (lambda: copy[1](X, OUT, 10, BLOCK=float("nan")), (TypeError, ValueError), "arange"),
    "negative block": (lambda: copy[1](X, OUT, 10, BLOCK=-4), ValueError, "empty"),
    "repeat": (lambda: copy[1].prepare(X, OUT, 10, BLOCK=32).repeat(-1), ValueError, "a number of times"),
    "repeat by bool": (lambda: copy[1].prepare(X, OUT, 10, BLOCK=32).repeat(True), ValueError, "a number of times"),
}


@pytest.mark.parametrize("name", LAUNCHES)
def test_launches_that_are_refused(name):
    launch, kind, message = LAUNCHES[name]
    OUT[:] = np.nan
    with pytest.raises(kind) as raised:
        launch()
    assert message in str(raised.value)
    assert "repeat" in name or np.isnan(OUT).all()
    works()


def test_read_only_arrays_are_read_but_not_written():
    x, out = arrays()
    x.flags.writeable = False
    copy[1](x, out, 10, BLOCK=32)
    np.testing.assert_array_equal(out, x)
    with pytest.raises(ValueError, match="'Out' is written by the kernel, but the array is read-only"):
        copy[1](out, x, 10, BLOCK=32)
    with pytest.raises(ValueError, match="read-only"):
        copy[1](out, metile.Buffer(data=x), 10, BLOCK=32)


def test_arrays_that_overlap_are_refused_before_anything_runs():
    memory = np.arange(20, dtype=np.float32)
    with pytest.raises(ValueError, match="X.*Out|Out.*X"):
        copy[1](memory[:10], memory[5:15], 10, BLOCK=32)
    np.testing.assert_array_equal(memory, np.arange(20))


def test_strided_arrays_are_copied_back():
    x, out = np.arange(20, dtype=np.float32)[::2], np.full((10, 2), np.nan, np.float32)
    copy[1](x, out[:, 1], 10, BLOCK=32)
    np.testing.assert_array_equal(out[:, 1], x)
    assert np.isnan(out[:, 0]).all()


def test_zero_sized_arrays_are_never_touched():
    copy[1](np.empty(0, np.float32), np.empty(0, np.float32), 0, BLOCK=32)
    works()


def body(statement):
    """A kernel with one statement on x, a loaded tile; the statement is in this file."""

    @metile.kernel
    def kernel(X, Out, N, BLOCK: metile.constexpr):
        lanes = metile.arange(0, BLOCK)
        x = metile.load(X + lanes, mask=lanes < N)
        result = statement(x, X, lanes, N)
        metile.store(Out + lanes, x if result is None else result)

    return kernel


def if_on_value(x, X, lanes, N):
    if x > 0:
        return x


def while_on_value(x, X, lanes, N):
    while x > 0:
        x = x - 1


def chained(x, X, lanes, N):
    return 0 < x < 1


def loops_to_a_traced_bound(x, X, lanes, N):
    for _ in range(N):
        x = x + 1


def breaks(x, X, lanes, N):
    for i in metile.tile_range(0, N):
        x = x + 1
        break
    return x


def returns(x, X, lanes, N):
    for i in metile.tile_range(0, N):
        return x


def grows(x, X, lanes, N):
    out = []
    for i in metile.tile_range(0, N):
        out.append(x)


def rebinds_pointer(x, X, lanes, N):
    p = X + 0
    for i in metile.tile_range(0, N):
        p = p + 1


kept = []


def escapes(x, X, lanes, N):
    class Holder:
        value = None

    for i in metile.tile_range(0, N):
        Holder.value = x + i
    return Holder.value


BODIES = {
    "if": (if_on_value, TypeError, "metile.where"), "while": (while_on_value, TypeError, "metile.where"),
    "and": (lambda x, X, lanes, N: (x > 0) and (x < 1), TypeError, "`&`"), "not": (lambda x, X, lanes, N: not x, TypeError, "`~`"),
    "chained comparison": (chained, TypeError, "metile.where"), "in": (lambda x, X, lanes, N: 1 in x, TypeError, "compare with =="),
    "int()": (lambda x, X, lanes, N: int(x), TypeError, "metile.cast"), "float()": (lambda x, X, lanes, N: float(x), TypeError, "metile.cast"),
    "index": (lambda x, X, lanes, N: x[0], TypeError, "metile.load"), "index by": (lambda x, X, lanes, N: [1, 2][x], TypeError, "tile_range"),
    "len": (lambda x, X, lanes, N: len(x), TypeError, "length"), "iteration": (lambda x, X, lanes, N: list(x), TypeError, "tile_range"),
    "range": (loops_to_a_traced_bound, TypeError, "tile_range"),
    "bare pointer": (lambda x, X, lanes, N: metile.load(X), TypeError, "pointer + offsets"),
    "load of a value": (lambda x, X, lanes, N: metile.load(x), TypeError, "takes a pointer"),
    "pointer in where": (lambda x, X, lanes, N: metile.where(x > 0, X, X), TypeError, "choose the offset"),
    "pointer as value": (lambda x, X, lanes, N: metile.exp(X), TypeError, "not a pointer"),
    "pointers added": (lambda x, X, lanes, N: X + X, TypeError, "two pointers"),
    "dtype": (lambda x, X, lanes, N: metile.cast(x, "f8"), ValueError, "'f8' is not one of"),
    "axis": (lambda x, X, lanes, N: metile.program_id(3), ValueError, "axes 0, 1 and 2"),
    "second extent": (lambda x, X, lanes, N: metile.arange(0, 7), metile.LoweringError, "tiles of 32 and of 7"),
    "traced extent": (lambda x, X, lanes, N: metile.arange(0, N), TypeError, "known at compile time"),
    "traced shared": (lambda x, X, lanes, N: metile.shared(N), TypeError, "known at compile time"),
    "step": (lambda x, X, lanes, N: list(metile.tile_range(0, N, N)), TypeError, "known at compile time"),
    "step of zero": (lambda x, X, lanes, N: list(metile.tile_range(0, N, 0)), ValueError, "counts upwards"),
    "break": (breaks, metile.LoweringError, "left by `break`, `return`"), "return": (returns, metile.LoweringError, "left by `break`, `return`"),
    "list grows": (grows, metile.LoweringError, "changes its length"), "pointer rebound": (rebinds_pointer, metile.LoweringError, "carry the offset"),
    "escape": (escapes, metile.LoweringError, "used outside of it"),
    "static assert": (lambda x, X, lanes, N: metile.static_assert(1 == 2, "one is not two"), metile.LoweringError, "one is not two"),
    "pattern": (lambda x, X, lanes, N: metile.tile_swizzle(x, x, "spiral"), ValueError, "spiral"),
    "hilbert": (lambda x, X, lanes, N: metile.tile_swizzle(x, x, "hilbert", 2), ValueError, "block_size=4"),
    "role": (lambda x, X, lanes, N: metile.simdgroup_role(2, 2).__enter__(), ValueError, "role 2 of 2"),
    "tile as lanes": (lambda x, X, lanes, N: metile.sum(metile.zeros((4, 4))), metile.LoweringError, "2-D tile"),
    "tile stored": (lambda x, X, lanes, N: metile.store(X + lanes, metile.zeros((4, 4))), TypeError, "tile_store"),
    "shapes": (lambda x, X, lanes, N: metile.zeros((4, 4)) + metile.zeros((4, 5)), ValueError, "(4, 4) and (4, 5)"),
    "dot": (lambda x, X, lanes, N: metile.dot(metile.zeros((4, 4)), metile.zeros((5, 4)), metile.zeros((4, 4))), ValueError, "dot of (4, 4) and (5, 4)"),
    "stride": (lambda x, X, lanes, N: metile.tile_load(X, 0, 0, metile.program_id(0), (4, 4)), metile.LoweringError, "stride"),
    "recursion": (lambda x, X, lanes, N: BODIES["recursion"][0](x, X, lanes, N), metile.LoweringError, "without end"),
    "object": (lambda x, X, lanes, N: metile.exp("x"), TypeError, "not a str"),
}


@pytest.mark.parametrize("name", BODIES)
def test_kernel_code_that_is_refused_names_its_line(name):
    statement, kind, message = BODIES[name]
    x, out = arrays(32)
    with pytest.raises(kind) as raised:
        body(statement)[1](x, out, 10, BLOCK=32)
    text = str(raised.value)
    assert message in text
    if name != "recursion":  # there is no one place
        assert __file__ in text and "^" in text
    assert np.isnan(out).all()
    works()


def test_the_place_is_line_and_column_of_the_expression():
    @metile.kernel
    def kernel(X, BLOCK: metile.constexpr):
        lanes = metile.arange(0, BLOCK)
        metile.store(X + lanes, 1.0 if lanes > 3 else 2.0)

    line = kernel.fn.__code__.co_firstlineno + 3
    with pytest.raises(TypeError) as raised:
        kernel[1](np.zeros(8, np.float32), BLOCK=8)
    assert f"{__file__}:{line}:{40 if sys.version_info >= (3, 11) else 1}" in str(raised.value)
    assert "1.0 if lanes > 3 else 2.0" in str(raised.value)


def test_static_mistakes_of_thread_code_keep_their_ids():
    @metile.kernel
    def kernel(X, N, BLOCK: metile.constexpr):
        lane = metile.thread_id()
        for _ in metile.tile_range(0, lane):
            metile.barrier()
        metile.store(X + lane, 1.0)

    with pytest.raises(metile.LoweringError) as raised:
        kernel[1](np.zeros(64, np.float32), 3, BLOCK=64)
    assert raised.value.diagnostics[0].id == "E0450"
    file, line, _ = raised.value.diagnostics[0].position
    assert file == __file__ and line == kernel.fn.__code__.co_firstlineno + 4
    assert "metile.barrier()" in str(raised.value)


def test_operations_outside_a_kernel_are_refused():
    for call in (lambda: metile.program_id(0), lambda: metile.exp(1.0), lambda: metile.zeros((4, 4)), metile.barrier, lambda: metile.tile_range(3)):
        with pytest.raises(RuntimeError, match="outside a kernel"):
            call()


def test_values_of_an_earlier_launch_are_refused():
    kernel = body(lambda x, X, lanes, N: (kept.append(x), kept[0] + x)[1])
    x, out = arrays(32)
    kernel[1](x, out, 10, BLOCK=32)
    with pytest.raises(metile.LoweringError, match="another kernel, or of an earlier launch"):
        kernel[1](x, out, 10, BLOCK=64)


def test_kernels_without_source_and_with_string_annotations_work():
    names = {"metile": metile}
    exec("from __future__ import annotations\n"
         "@metile.kernel\ndef copy(X, Out, N, BLOCK: metile.constexpr):\n"
         "    offs = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)\n"
         "    metile.store(Out + offs, metile.load(X + offs, mask=offs < N), mask=offs < N)\n", names)
    x, out = arrays(100)
    names["copy"][4](x, out, 100, BLOCK=32)
    np.testing.assert_array_equal(out, x)
    metile.kernel(copy)[4](x, out * 0, 100, BLOCK=32)


def test_numbers_around_the_function_are_part_of_the_kernel():
    scale = 2.0

    @metile.kernel
    def scaled(X, BLOCK: metile.constexpr):
        lanes = metile.arange(0, BLOCK)
        metile.store(X + lanes, metile.load(X + lanes) * scale)

    x = np.ones(8, np.float32)
    scaled[1](x, BLOCK=8)
    scale = 3.0
    scaled[1](x, BLOCK=8)
    np.testing.assert_array_equal(x, 6)


def test_checked_runs_find_what_leaves_a_buffer(monkeypatch):
    monkeypatch.setenv("METILE_CHECK", "1")

    @metile.kernel
    def past(X, BLOCK: metile.constexpr):
        lanes = metile.arange(0, BLOCK)
        metile.store(X + lanes, 1.0)

    with pytest.raises(RuntimeError, match=r"E0601.*\n?.*test_metile_bad_input\.py") as raised:
        past[1](np.zeros(10, np.float32), BLOCK=32)
    assert f":{past.fn.__code__.co_firstlineno + 3}:" in str(raised.value)


def test_all_configurations_failing_is_one_error():
    tuned = metile.autotune(configs=[metile.Config(BLOCK=0), metile.Config(BLOCK=-1)], key=["N"], verbose=False)(copy)
    x, out = arrays()
    with pytest.raises(RuntimeError, match="every configuration fails"):
        tuned[1](x, out, 10)


def test_exceptions_of_the_kernel_itself_pass_through():
    @metile.kernel
    def kernel(X, N, BLOCK: metile.constexpr):
        if BLOCK > 16:
            raise ValueError("BLOCK is at most 16")

    with pytest.raises(ValueError, match="at most 16"):
        kernel[1](np.zeros(3, np.float32), 3, BLOCK=32)
    assert issubclass(metile.OutOfResources, RuntimeError) and issubclass(vortex.CompileError, vortex.Error)
