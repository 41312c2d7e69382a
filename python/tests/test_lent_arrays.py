"""Arrays of other libraries in host memory: what may be written, what is refused, elements of bf16. By both packages."""
import numpy as np
import pytest

import metile
import vortex

SOURCE = """
kernel double(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x * 2.0 }
kernel increment(x: &mut Tensor<f32, [N]>) { x[thread.global_id] += 1.0 }
kernel narrow(x: &Tensor<f32, [N]>) -> Tensor<bf16, [N]> { return x as bf16 }
kernel wide(x: &Tensor<bf16, [N]>) -> Tensor<f32, [N]> { return x as f32 }
kernel ids(x: &Tensor<f32, [N]>) -> (Tensor<i64, [N]>, Tensor<u64, [N]>, i64) { return (x as i64, x as u64, x.sum() as i64) }
"""


class Lent:
    """Lends an array by DLPack, in the form that says who may write it."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return 1, 0


class Old(Lent):
    """In the form that cannot, as the immutable arrays of JAX do."""

    def __dlpack__(self, **_):
        return self.array.__dlpack__()


class Older(Lent):
    """From before there were versions."""

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


class Negated(Lent):
    """As `torch.conj(z).imag`: every element is to be read with the other sign, which DLPack does not tell."""

    def is_neg(self):
        return True


class Refusing(Lent):
    def __dlpack__(self, **_):
        raise BufferError("Can't export tensors of moonlight\nnor of dust")


@metile.kernel
def double(X, Out, N, BLOCK: metile.constexpr = 32):
    i = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    metile.store(Out + i, metile.load(X + i, mask=i < N) * 2, mask=i < N)


@pytest.fixture(scope="module")
def program():
    return vortex.compile(source=SOURCE, device="cpu")


@pytest.mark.parametrize("kind", [Lent, Old, Older])
def test_arrays_of_other_libraries_are_read(program, kind, random):
    x, out = random.standard_normal(50).astype(np.float32), np.full(50, np.nan, np.float32)
    np.testing.assert_array_equal(program.double(kind(x)), 2 * x)
    double[(2,)](kind(x), out, 50)
    np.testing.assert_array_equal(out, 2 * x)


def test_arrays_whose_library_says_so_are_written(program, random):
    x, out = random.standard_normal(50).astype(np.float32), np.full(50, np.nan, np.float32)
    before = x.copy()
    program.increment(Lent(x))
    np.testing.assert_array_equal(x, before + 1)
    double[(2,)](x, Lent(out), 50)
    np.testing.assert_array_equal(out, 2 * x)


@pytest.mark.parametrize("kind", [Old, Older])
def test_arrays_that_nobody_may_write_are_not_written(program, kind, random):
    x, kept = np.arange(50, dtype=np.float32), np.arange(50, dtype=np.float32)
    with pytest.raises(ValueError, match="'x'.* is written by the kernel, but the array is read-only"):
        program.increment(kind(x))
    with pytest.raises(ValueError, match="'Out' is written by the kernel, but the array is read-only"):
        double[(2,)](kept, kind(x), 50)
    np.testing.assert_array_equal(x, kept)


def test_what_other_libraries_do_not_lend_is_refused_with_their_reason(program):
    x, out = np.ones(50, np.float32), np.zeros(50, np.float32)
    for given, error, said in ((Negated(x), ValueError, r"a negated view of its memory; resolve_neg\(\) makes a tensor of it$"),
                               (Refusing(x), TypeError, "is a Refusing, not an array of a supported element type: Can't export tensors of moonlight$"),
                               (Lent(x.astype(np.complex64)), TypeError, "elements of a type that kernels do not take")):
        with pytest.raises(error, match="argument 1 \\('x'\\) of kernel 'double' .*" + said):
            program.double(given)
        with pytest.raises(error, match="'X' .*" + said):
            double[(2,)](given, out, 50)
    with pytest.raises(TypeError, match="'X' has elements of type f64; kernels take f32, f16, i32, u32, u8, bool, bf16"):
        double[(2,)](Lent(x.astype(np.float64)), out, 50)
    assert not out.any()


@pytest.mark.parametrize("mode", ["device", "METILE_INTERPRET", "METILE_CHECK"])
def test_elements_of_bf16_need_no_type_of_numpys(program, random, mode, monkeypatch):
    if mode != "device":
        monkeypatch.setenv(mode, "1")
    x = random.standard_normal(50).astype(np.float32)
    narrow, out = vortex.asarray(program.narrow(x)), vortex.empty((50,), "bf16")
    double[(2,)](narrow, out, 50)
    rounded = program.wide(narrow).numpy()
    np.testing.assert_array_equal(program.wide(out), 2 * rounded)
    prepared = double[(2,)].prepare(narrow, out, 50)
    prepared.repeat(2)
    double[(2,)](out, out, 50)
    np.testing.assert_array_equal(program.wide(out), 4 * rounded)


def test_integers_of_64_bits_are_of_numpys_usual_type(program):
    signed, unsigned, total = program.ids(np.arange(4, dtype=np.float32))
    assert signed.dtype.char == np.dtype(np.int64).char and unsigned.dtype.char == np.dtype(np.uint64).char
    assert type(total) is np.int64 and total == 6 and type(unsigned[3]) is np.uint64
    signed[0] = 7  # in the result's own memory
    assert signed.tolist() == [7, 1, 2, 3]


def test_numpy_arrays_of_ours_are_copies_only_where_they_may_be():
    array = vortex.asarray(np.arange(4, dtype=np.float32))
    assert np.shares_memory(np.asarray(array), array.numpy()) and np.shares_memory(np.array(array, copy=False), array.numpy())
    assert np.asarray(array, np.float64).dtype == np.float64 and not np.shares_memory(np.array(array), array.numpy())
    with pytest.raises(ValueError, match="as a NumPy array of float64 is a copy"):
        np.array(array, np.float64, copy=False)
