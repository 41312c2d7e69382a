"""What Python tells of a kernel: its name, its parameters, and what it stands for."""
import inspect

import numpy as np
import pytest
import vortex

TEXT = """
kernel scale(x: &Tensor<f32, [N]>, factor: f32) -> Tensor<f32, [N]> { return x * factor }

kernel axpy<T: Numeric>(a: T, x: &Tensor<T, [N]>, y: &Tensor<T, [N]>) -> Tensor<T, [N]> { return a * x + y }

kernel two(lambda: &Tensor<f32, [N]>, out: &Tensor<f32, [N]>, last: f32) -> Tensor<f32, [N]> { return lambda + out * last }
"""


@pytest.fixture(scope="module")
def program():
    return vortex.compile(source=TEXT, name="help.vx")


def test_a_kernel_has_a_name_and_a_signature(program):
    assert program.scale.__name__ == "scale"
    assert str(inspect.signature(program.scale)) == "(x: '&Tensor<f32, [N]>', factor: 'f32', *, out=None)"
    assert "__signature__" not in vars(vortex.compile(source=TEXT, name="help.vx").scale)


def test_the_signature_takes_what_calls_take(program):
    x = np.arange(3, dtype=np.float32)
    for bound in (inspect.signature(program.scale).bind(x, 2.0), inspect.signature(program.scale).bind(factor=2.0, x=x),
                  inspect.signature(program.two).bind(x, x, last=1.0), inspect.signature(program.axpy).bind(2.0, x=x, y=-x)):
        kernel = {"factor": program.scale, "last": program.two, "a": program.axpy}[next(name for name in ("factor", "last", "a") if name in bound.arguments)]
        np.testing.assert_array_equal(kernel(*bound.args, **bound.kwargs), 2 * x if kernel is not program.axpy else x)
    with pytest.raises(TypeError):
        inspect.signature(program.scale).bind(x)


def test_words_that_no_keyword_can_be_go_by_position(program):
    assert str(inspect.signature(program.two)).replace("'", "") == "(lambda_: &Tensor<f32, [N]>, out_: &Tensor<f32, [N]>, /, last: f32, *, out=None)"


def test_a_generic_kernel_shows_no_type_of_an_instance(program):
    assert repr(program.scale) == "<vortex.Kernel scale(x: &Tensor<f32, [N]>, factor: f32)>"
    assert repr(program.axpy) == "<vortex.Kernel axpy[…](a, x, y)>"
    assert str(inspect.signature(program.axpy)) == "(a, x, y, *, out=None)"
    assert repr(program.axpy["f64"]) == "<vortex.Kernel axpy<f64>(a: f64, x: &Tensor<f64, [N]>, y: &Tensor<f64, [N]>)>"
    with pytest.raises(KeyError, match="is not generic"):
        program.scale["f32"]


def test_what_is_no_attribute_is_told_as_of_other_objects(program):
    with pytest.raises(AttributeError, match="'Kernel' object has no attribute 'nothing'"):
        program.scale.nothing
