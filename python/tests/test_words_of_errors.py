"""Messages name what the caller wrote, and say what to do."""
import copy

import numpy as np
import pytest

import metile
import vortex

AXPY = "kernel axpy(a: f32, x: &Tensor<f32, [N]>, y: &mut Tensor<f32, [N]>) { y[thread.global_id] += a * x[thread.global_id] }\n" \
       "kernel total(x: &Tensor<f32, [N]>) -> f32 { return x.sum() }\n"


@pytest.mark.parametrize("where", ["device", "interpreter"])
@pytest.mark.parametrize("scalar", [np.ones(3, np.float32), np.ones((2, 2), np.float32), [1.0], "1"], ids=["three", "matrix", "list", "text"])
def test_what_is_no_number_is_told_with_the_name_of_the_argument(device, where, scalar):
    program = vortex.compile(source=AXPY, device=device if where == "device" else where)
    x, y = np.ones(3, np.float32), np.zeros(3, np.float32)
    with pytest.raises(TypeError, match="'a'.* of kernel 'axpy' is a"):
        program.axpy(scalar, x, y)
    assert (y == 0).all()


@pytest.mark.parametrize("where", ["device", "interpreter"])
def test_one_dimension_is_one(device, where):
    program = vortex.compile(source=AXPY, device=device if where == "device" else where)
    with pytest.raises(ValueError, match=r"'x'\) of kernel 'axpy' has 1 dimension; an array of 2 was given"):
        program.axpy(1.0, np.ones((3, 1), np.float32), np.zeros(3, np.float32))


@pytest.mark.parametrize("shape", [(1,), (1, 1), (2,)])
def test_storage_of_a_number_has_no_extents(device, shape):
    program, x, out = vortex.compile(source=AXPY, device=device), np.ones(3, np.float32), np.zeros((), np.float32)
    with pytest.raises(vortex.Error, match=rf"storage for result '.*' is a tensor f32\[{', '.join(map(str, shape))}\], needed is f32\[\]"):
        program.total(x, out=np.zeros(shape, np.float32))
    program.total(x, out=out)
    assert out == 3


@pytest.mark.parametrize("given", [3, 3.5, [1], object()])
def test_what_is_no_path_is_refused(given):
    with pytest.raises(TypeError, match=f"compile\\(\\) takes the path of a program, not a {type(given).__name__}"):
        vortex.compile(given)


@pytest.mark.parametrize("text", ["// \udc80", "kernel k() {} \ud800"])
def test_text_with_halves_of_characters_is_refused(text):
    with pytest.raises(vortex.CompileError, match="source= is no text: character [0-9]+ is"):
        vortex.compile(source=text)


def traced(function):
    @metile.kernel
    def kernel(X, Out, N):
        metile.store(Out + 0, function(X, metile.load(X + 0), N))

    return kernel


IN_KERNELS = {
    "other of text": (lambda X, x, N: metile.load(X + 0, mask=x > 0, other="a"), TypeError, "`other` of load takes numbers and traced values, not a str"),
    "other of text without a mask": (lambda X, x, N: metile.load(X + 0, other="a"), TypeError, "`other` of load takes numbers"),
    "a power of two above an argument": (lambda X, x, N: metile.next_power_of_2(N), TypeError, "next_power_of_2 takes a number that is known while the kernel is traced, not a traced value"),
    "rows of no elements": (lambda X, x, N: metile.sum(metile.tile_load(X, 0, 0, 0, (4, 4)), axis=1), ValueError, "rows of 0 elements: the stride is a positive number"),
    "rows of -4 elements": (lambda X, x, N: metile.sum(metile.tile_load(X, 0, 0, -4, (4, 4)), axis=1), ValueError, "rows of -4 elements"),
}


@pytest.mark.parametrize("name", IN_KERNELS)
def test_messages_of_kernels_show_the_line(name):
    function, kind, message = IN_KERNELS[name]
    with pytest.raises(kind, match=message) as raised:
        traced(function)[(1,)](np.ones(16, np.float32), np.zeros(1, np.float32), 4)
    assert "test_words_of_errors.py:" in str(raised.value) and "^" in str(raised.value)


def test_strides_that_an_argument_makes_negative_follow_from_it():
    @metile.kernel
    def kernel(X, Out, N):
        metile.tile_store(Out, 0, 0, 4, metile.tile_load(X, 0, 0, -N, (4, 4)), (4, 4))

    x, out = np.arange(16, dtype=np.float32).reshape(4, 4), np.full((4, 4), np.nan, np.float32)
    kernel[(1,)](x, out, -4)
    np.testing.assert_array_equal(out, x)
    with pytest.raises(ValueError, match="rows of -4 elements"):
        kernel[(1,)](x, out, 4)


def test_copies_of_traced_values_are_the_values():
    kernel = traced(lambda X, x, N: copy.deepcopy({"x": [x, X]})["x"][0] + copy.copy(x))
    out = np.zeros(1, np.float32)
    kernel[(1,)](np.full(1, 2.5, np.float32), out, 1)
    assert out[0] == 5


def test_configurations_are_made_by_name():
    with pytest.raises(TypeError, match="Config takes constexprs and hints by name"):
        metile.Config(3)
    for wrong in (3, {"BLOCK": 4}, "BLOCK"):
        with pytest.raises(TypeError, match=f"autotune of 'kernel': configs are metile.Config, not a {type(wrong).__name__}"):
            metile.autotune(configs=[wrong], key=[])(traced(lambda X, x, N: x))
    assert metile.Config(num_simdgroups=8, BLOCK=3).kwargs == {"BLOCK": 3}


@pytest.mark.parametrize("dtype", ["f64", "i64", np.complex64])
def test_buffers_of_other_types_are_refused(dtype):
    with pytest.raises(TypeError, match=r"Buffer\(dtype=.*\): it has elements of type"):
        metile.Buffer((3,), dtype)


def test_settings_that_mean_nothing_are_errors(monkeypatch):
    monkeypatch.setenv("METILE_WARNINGS", "2")
    with pytest.raises(ValueError, match="METILE_WARNINGS is 1 or 0, not '2'"):
        traced(lambda X, x, N: x * 3.25)[(1,)](np.ones(1, np.float32), np.zeros(1, np.float32), 4)
