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


def misaligned():
    return np.frombuffer(bytearray(45), np.uint8)[1:41].view(np.float32)


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
    "i64": (lambda: copy[1](X, np.zeros(10, np.int64), 10, BLOCK=32), TypeError, "'Out' has elements of type int64"),
    "objects": (lambda: copy[1](X.astype(object), OUT, 10, BLOCK=32), TypeError, "'X' has elements of type object"),
    "text": (lambda: copy[1](np.array(["a"]), OUT, 10, BLOCK=32), TypeError, "'X' has elements of type <U1"),
    "structs": (lambda: copy[1](np.zeros(3, "f4,f4"), OUT, 10, BLOCK=32), TypeError, "'X' has elements of type"),
    "byte order": (lambda: copy[1](X.astype(">f4"), OUT, 10, BLOCK=32), TypeError, "'X' has elements in the other byte order"),
    "misaligned": (lambda: copy[1](misaligned(), OUT, 10, BLOCK=32), ValueError, "'X' is not aligned to its elements"),
    "misaligned result": (lambda: copy[1](X, misaligned(), 10, BLOCK=32), ValueError, "'Out' is not aligned to its elements"),
    "list": (lambda: copy[1]([1.0], OUT, 10, BLOCK=32), TypeError, "'X' of kernel 'copy' is a list"),
    "complex number": (lambda: copy[1](X, OUT, 1j, BLOCK=32), TypeError, "'N' of kernel 'copy' is a complex"),
    "i32 underflow": (lambda: copy[1](X, OUT, -(1 << 31) - 1, BLOCK=32), OverflowError, "'N' of kernel 'copy' is -2147483649"),
    "i32 overflow by NumPy": (lambda: copy[1](X, OUT, np.int64(1 << 40), BLOCK=32), OverflowError, "'N' of kernel 'copy' is 1099511627776"),
    "i32 overflow": (lambda: copy[1](X, OUT, 1 << 31, BLOCK=32), OverflowError, "'N' of kernel 'copy' is 2147483648"),
    "unhashable constexpr": (lambda: copy[1](X, OUT, 10, BLOCK={32}), TypeError, "constexprs are hashable"),
    "negative grid": (lambda: copy[(1, -2)](X, OUT, 10, BLOCK=32), ValueError, "0 to 2147483647"),
    "empty grid": (lambda: copy[()](X, OUT, 10, BLOCK=32), ValueError, "one to three axes, not 0"),
    "grid of none": (lambda: copy[None](X, OUT, 10, BLOCK=32), TypeError, "made of integers, not None"),
    "grid by a function": (lambda: copy[lambda constants: "1"](X, OUT, 10, BLOCK=32), TypeError, "made of integers, not '1'"),
    "grid of 2**31": (lambda: copy[(1, 1, 1 << 31)](X, OUT, 10, BLOCK=32), ValueError, "0 to 2147483647"),
    "array as constexpr": (lambda: copy[1](X, OUT, 10, BLOCK=X), TypeError, "constexprs are hashable"),
    "text as block": (lambda: copy[1](X, OUT, 10, BLOCK="a"), TypeError, "`*` of a traced value and a str"),
    "block of 2**40": (lambda: copy[1](X, OUT, 10, BLOCK=1 << 40), ValueError, "BLOCK is 1099511627776"),
    "half a lane": (lambda: copy[1](X, OUT, 10, BLOCK=32.5), TypeError, "arange's end is a number known at compile time, not 32.5"),
    "block as a float": (lambda: copy[1](X, OUT, 10, BLOCK=32.0), metile.LoweringError, "an offset is an integer"),
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


@pytest.mark.parametrize("block", [48, 1, 31, 1 << 16, 10**6])
def test_blocks_of_any_size_work(random, block):
    x, out = random.random(1000, dtype=np.float32), np.full(1000, np.nan, np.float32)
    if block > 1 << 16 and not metile.Device.get().is_cpu:
        with pytest.raises(metile.LoweringError, match=rf"blocks of {block} threads \(at most 65536 on"):
            copy[1](x, out, 1000, BLOCK=block)
        return
    copy[metile.cdiv(1000, block)](x, out, 1000, BLOCK=block)
    np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize("block", [2048, 8192])
def test_rows_in_blocks_beyond_the_hardware_s(random, block):
    @metile.kernel
    def softmax(X, Out, n, BLOCK: metile.constexpr):
        row = metile.program_id(0)
        columns = metile.arange(0, BLOCK)
        x = metile.load(X + row * n + columns, mask=columns < n, other=-float("inf"))
        e = metile.exp(x - metile.max(x))
        metile.store(Out + row * n + columns, e / metile.sum(e), mask=columns < n)

    rows, n = 3, block - 5
    x, out = random.random((rows, n), dtype=np.float32), np.full((rows, n), np.nan, np.float32)
    softmax[rows](x, out, n, BLOCK=block)
    e = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5)


def test_a_constexpr_that_is_not_a_number_is_one_kernel():
    @metile.kernel
    def fill(Out, VALUE: metile.constexpr, BLOCK: metile.constexpr):
        metile.store(Out + metile.arange(0, BLOCK), VALUE)

    for value in (float("nan"), float("nan"), -0.0, 0.0):
        out = np.ones(8, np.float32)
        fill[1](out, VALUE=value, BLOCK=8)
        np.testing.assert_array_equal(out.view(np.uint32) & 0xffc00000, np.full(8, value, np.float32).view(np.uint32) & 0xffc00000)
    assert len(fill._specialised) == 3
    for value, kind in (("x", TypeError), (None, TypeError), (1j, TypeError), (1 << 70, OverflowError)):
        with pytest.raises(kind, match=f"--> {__file__}:"):
            fill[1](out, VALUE=value, BLOCK=8)


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


def continues(x, X, lanes, N):
    for i in metile.tile_range(0, N):
        if i > 2:
            continue
        x = x + 1


def breaks_inside(x, X, lanes, N):
    for i in metile.tile_range(0, N):
        for j in metile.tile_range(0, i):
            break


def caught_outside(x, X, lanes, N):
    try:
        for i in metile.tile_range(0, N):
            raise KeyError(3)
    except KeyError:
        return x


def yields(x, X, lanes, N):
    def numbers():
        for i in metile.tile_range(0, N):
            yield i

    for i in numbers():
        x = x + i


def asserts(x, X, lanes, N):
    assert x > 0


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
        p = p + lanes


kept = []


def escapes(x, X, lanes, N):
    class Holder:
        value = None

    for i in metile.tile_range(0, N):
        Holder.value = x + i
    return Holder.value


def makes_a_global(x, X, lanes, N):
    global made_in_a_loop
    for i in metile.tile_range(0, N):
        made_in_a_loop = x + i
    return x


def float_bound(x):
    for i in metile.tile_range(0, x):
        x = x + 1
    return x


BODIES = {
    "if": (if_on_value, TypeError, "metile.where"), "while": (while_on_value, TypeError, "metile.where"),
    "and": (lambda x, X, lanes, N: (x > 0) and (x < 1), TypeError, "`&`"), "not": (lambda x, X, lanes, N: not x, TypeError, "`~`"),
    "chained comparison": (chained, TypeError, "metile.where"), "in": (lambda x, X, lanes, N: 1 in x, TypeError, "compare with =="),
    "int()": (lambda x, X, lanes, N: int(x), TypeError, "metile.cast"), "float()": (lambda x, X, lanes, N: float(x), TypeError, "metile.cast"),
    "index": (lambda x, X, lanes, N: x[0], TypeError, "metile.load"), "index by": (lambda x, X, lanes, N: [1, 2][x], TypeError, "tile_range"),
    "len": (lambda x, X, lanes, N: len(x), TypeError, "length"), "iteration": (lambda x, X, lanes, N: list(x), TypeError, "tile_range"),
    "mask of a tile": (lambda x, X, lanes, N: metile.load(X + lanes, mask=metile.zeros((4, 4)) > 0), TypeError, "the mask is a 2-D tile"),
    "mask of text": (lambda x, X, lanes, N: metile.load(X + lanes, mask="a"), TypeError, "not a str"),
    "mask of a pointer": (lambda x, X, lanes, N: metile.load(X + lanes, mask=X), TypeError, "not a pointer"),
    "mask of another extent": (lambda x, X, lanes, N: metile.load(X + lanes, mask=metile.arange(0, 7) < 5), metile.LoweringError, "tiles of 7 and of 32"),
    "float offset": (lambda x, X, lanes, N: metile.load(X + 1.5), TypeError, "an offset is an integer or a traced value, not a float"),
    "offset by text": (lambda x, X, lanes, N: metile.load(X + "a"), TypeError, "not a str"),
    "offset by floats": (lambda x, X, lanes, N: metile.load(X + x), metile.LoweringError, "an offset is an integer, not `f32`"),
    "bounds of floats": (lambda x, X, lanes, N: float_bound(x), metile.LoweringError, "bounds and step of tile_range are integers, not `f32`"),
    "& of floats": (lambda x, X, lanes, N: x & 1, metile.LoweringError, "`&` takes integers and masks, not `f32`"),
    "~ of floats": (lambda x, X, lanes, N: ~x, metile.LoweringError, "`~` takes integers and masks, not `f32`"),
    "<< of floats": (lambda x, X, lanes, N: lanes << x, metile.LoweringError, "`<<` takes integers, not `f32`"),
    "bits of floats": (lambda x, X, lanes, N: metile.reverse_bits(x), metile.LoweringError, "`reverse_bits` takes integers"),
    "text added": (lambda x, X, lanes, N: x + "a", TypeError, "`+` of a traced value and a str"),
    "added to an array": (lambda x, X, lanes, N: np.ones(32, np.float32) + x, TypeError, "`+` of a traced value and a ndarray"),
    "key": (lambda x, X, lanes, N: {1: 2.0}[x], KeyError, "is no key\n  --> "),
    "a number too large for its type": (lambda x, X, lanes, N: x + metile.scalar(300, "u8"), OverflowError, "300 does not fit `u8`"),
    "a negative number of a type without sign": (lambda x, X, lanes, N: x + metile.scalar(-1, "u32"), OverflowError, "-1 does not fit `u32`"),
    "matrix product": (lambda x, X, lanes, N: x @ x, TypeError, "metile.dot"), "round": (lambda x, X, lanes, N: round(x), TypeError, "metile.round"),
    "divmod": (lambda x, X, lanes, N: divmod(lanes, 3), TypeError, "use // and %"), "format": (lambda x, X, lanes, N: f"{x:.2f}", TypeError, "metile.print"), "percent": (lambda x, X, lanes, N: "%d" % lanes, TypeError, "metile.print"),
    "shape": (lambda x, X, lanes, N: x.shape, AttributeError, "no `shape`"), "to": (lambda x, X, lanes, N: x.to("f16"), AttributeError, "no `to`: metile.cast"),
    "rows of lanes": (lambda x, X, lanes, N: x[:, None, None], TypeError, "made of offsets"),
    "transpose of lanes": (lambda x, X, lanes, N: x.T, AttributeError, "it is no 2-D tile"), "name of Triton": (lambda x, X, lanes, N: metile.device_print("x"), AttributeError, "there is metile.print"),
    "transpose": (lambda x, X, lanes, N: metile.transpose(x), TypeError, "transpose takes a 2-D tile"),
    "axis of lanes": (lambda x, X, lanes, N: metile.sum(x, axis=1), ValueError, "lanes have the axis 0 alone"),
    "axis of a tile": (lambda x, X, lanes, N: metile.max(metile.zeros((4, 4)), axis=2), ValueError, "a tile has the axes 0 and 1"),
    "atomic of bytes": (lambda x, X, lanes, N: metile.atomic_add(metile.shared(4, "u8") + 0, 1), TypeError, "f32, i32 and u32, not of u8"),
    "atomic without offset": (lambda x, X, lanes, N: metile.atomic_max(X, 1.0), TypeError, "pointer + offsets"),
    "axis of programs": (lambda x, X, lanes, N: metile.num_programs(3), ValueError, "axes 0, 1 and 2"),
    "element of a pointer": (lambda x, X, lanes, N: X[0], TypeError, "metile.load"), "pointers compared": (lambda x, X, lanes, N: X == X, TypeError, "cannot be compared"),
    "element assigned": (lambda x, X, lanes, N: X.__setitem__(0, x), TypeError, "metile.store"), "assert": (asserts, TypeError, "metile.where"),
    "conditional expression": (lambda x, X, lanes, N: x if N > 3 else 1.0, TypeError, "metile.where"), "max()": (lambda x, X, lanes, N: max(x, 1.0), TypeError, "metile.where"),
    "elif": (lambda x, X, lanes, N: 1.0 if False else 2.0 if x > 0 else 3.0, TypeError, "metile.where"),
    "continue": (continues, TypeError, "metile.where"), "break of an inner loop": (breaks_inside, metile.LoweringError, "left by `break`, `return`"),
    "exception caught outside": (caught_outside, metile.LoweringError, "or an exception"), "yield": (yields, metile.LoweringError, "a generator takes the elements"),
    "shared memory of nothing": (lambda x, X, lanes, N: metile.shared(0), ValueError, "0 elements"),
    "too much shared memory": (lambda x, X, lanes, N: metile.shared(10**12), metile.OutOfResources, "threadgroup memory"),
    "shared f64": (lambda x, X, lanes, N: metile.shared(4, "f64"), ValueError, "'f64' is not one of"),
    "range": (loops_to_a_traced_bound, TypeError, "tile_range"),
    "bare pointer": (lambda x, X, lanes, N: metile.load(X), TypeError, "pointer + offsets"),
    "load of a value": (lambda x, X, lanes, N: metile.load(x), TypeError, "takes a pointer"),
    "pointer in where": (lambda x, X, lanes, N: metile.where(x > 0, X, X), TypeError, "choose the offset"),
    "pointer as value": (lambda x, X, lanes, N: metile.exp(X), TypeError, "not a pointer"),
    "pointers added": (lambda x, X, lanes, N: X + X, TypeError, "two pointers"),
    "dtype": (lambda x, X, lanes, N: metile.cast(x, "f8"), ValueError, "'f8' is not one of"),
    "axis": (lambda x, X, lanes, N: metile.program_id(3), ValueError, "axes 0, 1 and 2"),
    "second extent": (lambda x, X, lanes, N: lanes + metile.arange(0, 7), metile.LoweringError, "tiles of 32 and of 7"),
    "traced extent": (lambda x, X, lanes, N: metile.arange(0, N), TypeError, "known at compile time"),
    "traced shared": (lambda x, X, lanes, N: metile.shared(N), TypeError, "known at compile time"),
    "step": (lambda x, X, lanes, N: metile.tile_range(0, N, 0.5), TypeError, "the step of tile_range is an integer, not 0.5"),
    "a wrapped step of zero": (lambda x, X, lanes, N: list(metile.tile_range(0, N, metile.constexpr(0))), ValueError, "the step of tile_range is 0"),
    "a step of zero of NumPy's": (lambda x, X, lanes, N: list(metile.tile_range(0, N, np.int64(0))), ValueError, "the step of tile_range is 0"),
    "step of zero": (lambda x, X, lanes, N: list(metile.tile_range(0, N, 0)), ValueError, "the step of tile_range is 0"),
    "break": (breaks, metile.LoweringError, "left by `break`, `return`"), "return": (returns, metile.LoweringError, "left by `break`, `return`"),
    "list grows": (grows, metile.LoweringError, "changes its length"), "pointer rebound": (rebinds_pointer, metile.LoweringError, "carry the offset"),
    "a new global": (makes_a_global, metile.LoweringError, "`made_in_a_loop`, which is no variable of the function, is changed in the loop"),
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
    assert f"{__file__}:{line}:{40 if sys.version_info >= (3, 11) else 9}" in str(raised.value)
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


def carries_two_dtypes(first, second):
    def statement(x, X, lanes, N):
        value = first(x, lanes)
        for _ in metile.tile_range(0, 3):
            value = second(x, lanes) + value
        return value

    return statement




FIRST_AND_SECOND = {"a literal": (lambda x, lanes: 0, lambda x, lanes: x, 0), "f16 and f32": (lambda x, lanes: metile.cast(x, "f16"), lambda x, lanes: x, 1),
                    "numbers of lanes and f32": (lambda x, lanes: lanes, lambda x, lanes: x, 1), "f32 and numbers of lanes": (lambda x, lanes: x, lambda x, lanes: lanes, 1),
                    "i32 and f16": (lambda x, lanes: metile.cast(x, "i32"), lambda x, lanes: metile.cast(x, "f16"), 1)}


@pytest.mark.parametrize("name", FIRST_AND_SECOND)
def test_a_carried_name_has_the_later_of_its_dtypes(name):
    first, second, start = FIRST_AND_SECOND[name]
    x, out = arrays(32)
    body(carries_two_dtypes(first, second))[1](x, out, 32, BLOCK=32)
    np.testing.assert_array_equal(out, (start + 3) * np.arange(32, dtype=np.float32))


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

    with pytest.raises(RuntimeError, match=r"(?s)E0601.*test_metile_bad_input\.py") as raised:
        past[1](np.zeros(10, np.float32), BLOCK=32)
    assert f":{past.fn.__code__.co_firstlineno + 3}:" in str(raised.value)
    assert str(raised.value).count("test_metile_bad_input.py") == 1, "the place is told once"
    *_, line, caret = str(raised.value).split("\n")
    assert line.strip() == "metile.store(X + lanes, 1.0)" and caret.index("^") == line.index("metile")


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
