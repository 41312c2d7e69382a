"""Literals are converted as the same value is at run time, and those that lose their value are errors; masks and integers are no floats."""
import math

import numpy as np
import pytest

import metile

pytestmark = pytest.mark.usefixtures("where")

INTEGERS = {"u8": np.uint8, "i32": np.int32, "u32": np.uint32}
FLOATS = [1e10, -1e10, 300.7, -300.7, -5.0, -0.5, 255.5, 1e30, -1e30, 2147483647.0, 2147483648.0, 4294967295.0, 4294967296.0, math.inf, -math.inf, math.nan]


def saturated(value: float, dtype) -> int:
    info = np.iinfo(dtype)
    return 0 if math.isnan(value) else info.min if value <= info.min else info.max if value >= info.max else int(value)


@pytest.mark.parametrize("name", INTEGERS)
def test_float_literals_saturate_as_floats_do(name, random):
    dtype = INTEGERS[name]
    for value in [*FLOATS, *(random.standard_normal(4) * 10.0 ** random.integers(0, 20, 4)).tolist()]:

        @metile.kernel
        def kernel(X, Out):
            metile.store(Out + 0, metile.cast(value, name))
            metile.store(Out + 1, value)
            metile.store(Out + 2, metile.cast(metile.load(X + 0), name))
            metile.store(Out + 3, metile.load(X + 0))

        out = np.full(4, 77, dtype)
        single = np.float32(value)
        kernel[(1,)](np.array([single]), out)
        assert out[:2].tolist() == [saturated(value, dtype)] * 2, value
        assert out[2:].tolist() == [saturated(float(single), dtype)] * 2, value


def test_literals_stored_as_bools_are_what_is_not_zero():
    @metile.kernel
    def kernel(Out):
        for index, value in enumerate((0, 2, 256, 0.0, 0.5, math.nan)):
            metile.store(Out + index, value)

    out = np.ones(6, np.bool_)
    kernel[(1,)](out)
    assert out.tolist() == [False, True, True, False, True, True]


TOO_LARGE = {
    "f16 * 100000.0": (np.float16, lambda x, P: x * 100000.0, "100000.0 does not fit `f16`"),
    "f16 * 70000": (np.float16, lambda x, P: x * 70000, "70000.0 does not fit `f16`"),
    "f16 + -65520.0": (np.float16, lambda x, P: x + -65520.0, "-65520.0 does not fit `f16`"),
    "f16 < 1e6": (np.float16, lambda x, P: x < 1e6, "1000000.0 does not fit `f16`"),
    "maximum of f16": (np.float16, lambda x, P: metile.maximum(x, -1e6), "-1000000.0 does not fit `f16`"),
    "other of f16": (np.float16, lambda x, P: metile.load(P + 0, mask=x > 0, other=1e6), "1000000.0 does not fit `f16`"),
    "where of f16": (np.float16, lambda x, P: metile.where(x > 0, x, 1e6), "1000000.0 does not fit `f16`"),
    "f16 ** 1e6": (np.float16, lambda x, P: x ** 1e6, "1000000.0 does not fit `f16`"),
    "f32 * 1e300": (np.float32, lambda x, P: x * 1e300, r"1e\+300 does not fit `f32`"),
    "i32 * 1e300": (np.int32, lambda x, P: x * 1e300, r"1e\+300 does not fit `f32`"),
    "cast of 1e39": (np.float32, lambda x, P: x + metile.cast(1e39, "f16"), r"1e\+39 does not fit `f32`"),
    "carried i32 from 2**40": (np.int32, lambda x, P: carried(1 << 40, x), "1099511627776 does not fit `i32`, the type that the loop carries"),
    "carried u32 from -2**33": (np.uint32, lambda x, P: carried(-(1 << 33), x), "-8589934592 does not fit `u32`, the type that the loop carries"),
    "set to 2**40 in a loop of i32": (np.int32, lambda x, P: replaced(x, (1 << 40) + 7), "1099511627783 does not fit `i32`, the type that the loop carries"),
    "set to -1 in a loop of u32": (np.uint32, lambda x, P: replaced(x, -1), "-1 does not fit `u32`, the type that the loop carries"),
    "set to 100001 in a loop of f16": (np.float16, lambda x, P: replaced(x, 100001), "100001.0 does not fit `f16`, the type that the loop carries"),
    "carried f32 from 1e300": (np.float32, lambda x, P: carried(1e300, x), r"1e\+300 does not fit `f32`"),
}


def carried(start, x):
    total = start
    for _ in metile.tile_range(0, 3):
        total = total + x
    return total


def replaced(start, value):
    total = start
    for _ in metile.tile_range(0, 3):
        total = value
    return total


@pytest.mark.parametrize("name", TOO_LARGE)
def test_literals_that_do_not_fit_are_errors(name):
    dtype, function, message = TOO_LARGE[name]

    @metile.kernel
    def kernel(X, Out):
        metile.store(Out + 0, function(metile.load(X + 0), X))

    with pytest.raises(metile.LoweringError, match=message) as raised:
        kernel[(1,)](np.zeros(1, dtype), np.zeros(1, np.float32))
    assert raised.value.diagnostics[0].id == "E0302"


def test_the_largest_and_infinite_literals_fit():
    @metile.kernel
    def kernel(X, Out):
        x = metile.load(X + 0)
        for index, value in enumerate((65504.0, -65519.0, math.inf, -math.inf)):
            metile.store(Out + index, x + value)
        metile.store(Out + 4, metile.cast(x, "f32") + 3.4028235e38)

    out = np.zeros(5, np.float32)
    kernel[(1,)](np.zeros(1, np.float16), out)
    assert out.tolist() == [65504.0, -65504.0, math.inf, -math.inf, float(np.finfo(np.float32).max)]


ATOMICS = {
    "max of u32 and -1": (np.uint32, lambda P: metile.atomic_max(P + 0, -1), "E0302", "-1 does not fit `u32`, the type of the elements"),
    "min of u32 and 2**32": (np.uint32, lambda P: metile.atomic_min(P + 0, 1 << 32), "E0302", "4294967296 does not fit `u32`"),
    "max of i32 and 2**31": (np.int32, lambda P: metile.atomic_max(P + 0, 1 << 31), "E0302", "2147483648 does not fit `i32`"),
    "i32 + 2**33": (np.int32, lambda P: metile.atomic_add(P + 0, 1 << 33), "E0302", "8589934592 does not fit `i32`"),
    "u32 + 2**33": (np.uint32, lambda P: metile.atomic_add(P + 0, 1 << 33), "E0302", "8589934592 does not fit `u32`"),
    "i32 + 300.5": (np.int32, lambda P: metile.atomic_add(P + 0, 300.5), "E0303", "`atomic_add` on elements of `i32` takes integers, not `f32`"),
    "a tile of i32 + 300.5": (np.int32, lambda P: metile.atomic_add(P + metile.arange(0, 4)[:, None], 300.5), "E0303", "takes integers, not `f32`"),
    "u32 and a float of memory": (np.uint32, lambda P: metile.atomic_max(P + 0, metile.cast(metile.load(P + 0), "f32")), "E0303", "takes integers, not `f32`"),
    "f32 + 1e300": (np.float32, lambda P: metile.atomic_add(P + 0, 1e300), "E0302", r"1e\+300 does not fit `f32`"),
}


@pytest.mark.parametrize("name", ATOMICS)
def test_atomics_refuse_literals_that_do_not_fit(name):
    dtype, function, identifier, message = ATOMICS[name]

    @metile.kernel
    def kernel(Out):
        function(Out)

    with pytest.raises(metile.LoweringError, match=message) as raised:
        kernel[(1,)](np.zeros(4, dtype))
    assert raised.value.diagnostics[0].id == identifier


def test_atomics_take_what_fits():
    @metile.kernel
    def kernel(U, I, F):
        metile.atomic_add(U + 0, -1)
        metile.atomic_max(U + 1, 4294967295)
        metile.atomic_min(I + 0, -(1 << 31))
        metile.atomic_add(F + 0, 3)

    u, i, f = np.array([5, 5], np.uint32), np.array([5], np.int32), np.array([0.5], np.float32)
    kernel[(1,)](u, i, f)
    assert (u.tolist(), i.tolist(), f.tolist()) == ([4, 4294967295], [-(1 << 31)], [3.5])


MASKS = {
    "load of 1.5": lambda x, P: metile.load(P + 0, mask=1.5),
    "load of f32": lambda x, P: metile.load(P + 0, mask=x),
    "a tile of addresses": lambda x, P: metile.sum(metile.load(P + metile.arange(0, 4)[:, None], mask=metile.load(P + metile.arange(0, 4))[:, None]), axis=1),
    "store of f32": lambda x, P: metile.store(P + 0, 1.0, mask=x),
    "store of 0.5": lambda x, P: metile.store(P + 0, 1.0, mask=0.5),
    "atomic of f32": lambda x, P: metile.atomic_add(P + 0, 1.0, mask=x),
    "where of f32": lambda x, P: metile.where(x, 1, 2),
    "where of a 2-D tile": lambda x, P: metile.where(metile.tile_load(P, 0, 0, 2, (2, 2)), 1.0, 2.0),
    "assert of f32": lambda x, P: metile.device_assert(x),
}


@pytest.mark.parametrize("name", MASKS)
def test_floats_are_no_masks(name):
    function = MASKS[name]

    @metile.kernel
    def kernel(X, Out):
        made = function(metile.load(X + 0), X)
        metile.store(Out + 0, 1.0 if made is None or made.tile_shape else made)

    with pytest.raises(metile.LoweringError, match="mask.*not `f32`") as raised:
        kernel[(1,)](np.zeros(4, np.float32), np.zeros(4, np.float32))
    assert raised.value.diagnostics[0].id == "E0303"


UNUSED = {
    "a tile at a row of f32": lambda x, P: metile.tile_load(P, metile.load(P + 0), 0, 2, (2, 2)),
    "bits of f32": lambda x, P: x & 1,
    "a load at f32": lambda x, P: metile.load(P + x),
    "a mask of f32": lambda x, P: metile.load(P + 0, mask=x),
}


@pytest.mark.parametrize("name", UNUSED)
def test_what_nothing_needs_is_checked(name):
    function = UNUSED[name]

    @metile.kernel
    def kernel(X, Out):
        function(metile.load(X + 0), X)
        metile.store(Out + 0, 1.0)

    with pytest.raises(metile.LoweringError, match="not `f32`"):
        kernel[(1,)](np.zeros(4, np.float32), np.zeros(1, np.float32))


def test_integers_are_masks(random):
    @metile.kernel
    def kernel(X, Out, BLOCK: metile.constexpr):
        lane = metile.arange(0, BLOCK)
        x = metile.load(X + lane)
        metile.store(Out + lane, metile.where(x, 1, 2), mask=x & 1)

    x, out = random.integers(-3, 4, 64).astype(np.int32), np.full(64, 9, np.int32)
    kernel[(1,)](x, out, BLOCK=64)
    np.testing.assert_array_equal(out, np.where(x & 1, 1, 9))


@pytest.mark.parametrize("value", [1e300, -3.5e38, np.float64(1e39)])
def test_float_arguments_beyond_f32_are_refused(value):
    @metile.kernel
    def kernel(Out, scale):
        metile.store(Out + 0, scale)

    out = np.zeros(1, np.float32)
    kernel[(1,)](out, 1.5)
    for _ in range(3):  # the launch that is made again and again, too
        with pytest.raises(OverflowError, match="'scale' of kernel 'kernel' is .*: floats are f32"):
            kernel[(1,)](out, value)
        assert out[0] == 1.5
        kernel[(1,)](out, 1.5)
    for fits in (3.4028235e38, math.inf, -math.inf, 1e-300):
        kernel[(1,)](out, fits)
        assert out[0] == np.float32(fits)
