"""Programs in the reference interpreter take and give what they do on a device."""
import os
import subprocess
import sys

import numpy as np
import pytest
import vortex

SOURCE = """
enum Mode { Add, Mul = 5, Neg }
struct Step { mode: Mode, by: f32 }
kernel negated(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [M, N]> { return -x }
kernel product(a: &Tensor<f32, [M, K]>, b: &Tensor<f32, [K, N]>) -> Tensor<f32, [M, N]> { return a @ b }
kernel total(x: &Tensor<f32, [N]>) -> f32 { return x.sum() }
kernel both(x: &Tensor<f32, [M, N]>) -> (Tensor<f32, [M]>, Tensor<f32, [M, N]>) { return (x.max(dim = 1), x * x) }
kernel increment(x: &mut Tensor<f32, [N]>) { x[thread.global_id] += 1.0 }
kernel copied(x: &Tensor<f32, [N]>, y: &mut Tensor<f32, [N]>) { y[thread.global_id] = x[thread.global_id] }
kernel checked(x: &Tensor<f32, [N]>, n: u8) -> Tensor<f32, [N]> {
    assert(n < 3, "too big")
    return x + (n as f32)
}
kernel moved(x: &Tensor<f32, [N]>, step: Step) -> Tensor<f32, [N]> {
    return match step.mode {
        Mode.Add => x + step.by
        Mode.Mul => x * step.by
        Mode.Neg => -x
    }
}
"""


@pytest.fixture(params=["device", "interpreter", "check"])
def program(request, device):
    if request.param != "device":
        return vortex.compile(source=SOURCE, device="interpreter", check=request.param == "check")
    return vortex.compile(source=SOURCE, device=device)


@pytest.mark.parametrize("view", [
    lambda x: x, lambda x: x.T, lambda x: x[::-1], lambda x: x[:, ::-1], lambda x: x[::-2, ::3], lambda x: x[2:3, ::-1], lambda x: x[:0],
    lambda x: np.broadcast_to(x[0], (4, x.shape[1]))], ids=["as it is", "transposed", "rows", "columns", "both", "one row", "none", "repeated"])
def test_views_with_any_strides(program, view, random):
    x = random.standard_normal((7, 10), dtype=np.float32)
    values = view(x)
    np.testing.assert_array_equal(program.negated(values), -values)
    other = view(random.standard_normal((7, 10), dtype=np.float32)).T
    expected = values.astype(np.float64) @ other.astype(np.float64)
    np.testing.assert_allclose(program.product(values, other), expected, rtol=1e-4, atol=1e-4)


def test_views_are_written_in_place(program, random):
    x = random.standard_normal(50, dtype=np.float32)
    expected = x.copy()
    expected[::-3] += 1
    program.increment(x[::-3])
    np.testing.assert_array_equal(x, expected)


def test_scalar_results_have_no_extents(program, random):
    x = random.standard_normal(1000, dtype=np.float32)
    total = program.total(x)
    assert np.shape(total) == () and isinstance(total, np.float32)
    np.testing.assert_allclose(total, x.astype(np.float64).sum(), rtol=1e-4, atol=1e-3)
    out = np.full((), np.nan, np.float32)
    assert program.total(x, out=out) is out and out == total


def test_results_go_where_they_are_wanted(program, random):
    x = random.standard_normal((6, 9), dtype=np.float32)
    first, second = np.full(6, np.nan, np.float32), np.full((6, 9), np.nan, np.float32)
    program.both(x, out=(first, second))
    np.testing.assert_array_equal(first, x.max(axis=1))
    np.testing.assert_array_equal(second, x * x)
    first[:] = np.nan
    given, made = program.both(x, out=(first, None))
    assert given is first
    np.testing.assert_array_equal(first, x.max(axis=1))
    np.testing.assert_array_equal(made, x * x)


def test_storage_may_have_strides(program, random):
    x = random.standard_normal((6, 9), dtype=np.float32)
    room = np.full((12, 18), np.nan, np.float32)
    for view in (room[::2, ::2], room[11:5:-1, 17:8:-1], room[:9, :6].T):
        room[...] = np.nan
        assert program.negated(x, out=view) is view
        np.testing.assert_array_equal(view, -x)
        assert np.isnan(room).sum() == room.size - x.size


@pytest.mark.parametrize("out", [np.empty((9, 6), np.float32), np.empty((6, 9), np.float64), np.empty(9, np.float32), np.empty((), np.float32)])
def test_storage_of_another_kind_is_refused(program, out):
    with pytest.raises(vortex.Error, match=r"the storage for result 'result' is a tensor f\d\d\[.*\], needed is f32\[6, 9\]"):
        program.negated(np.zeros((6, 9), np.float32), out=out)


def test_prepared_launches_of_strided_storage_are_refused(program):
    with pytest.raises((vortex.Error, ValueError), match="contiguous|NumPy array"):
        program.negated.prepare(np.zeros((2, 2), np.float32), out=np.zeros((4, 2), np.float32)[::2])


def test_arguments_that_share_elements_are_refused(program, random):
    x = random.standard_normal(100, dtype=np.float32)
    before = x.copy()
    for a, b in ((x[:60], x[40:]), (x, x), (x[::2], x[50:]), (x[:3], x[2:5])):
        with pytest.raises(vortex.Error, match="argument 'x' and argument 'y' share memory, and the kernel writes argument 'y'"):
            program.copied(a[: min(len(a), len(b))], b[: min(len(a), len(b))])
    np.testing.assert_array_equal(x, before)
    program.copied(x[::2], x[1::2])
    np.testing.assert_array_equal(x[1::2], before[::2])


def test_faults_have_a_place(program):
    with pytest.raises(vortex.Error) as raised:
        program.checked(np.zeros(3, np.float32), 5)
    fault = raised.value.fault
    line = 1 + SOURCE[: SOURCE.index("assert(n < 3")].count("\n")
    assert (fault.kernel.rpartition(".")[2], fault.id, fault.message, fault.line, fault.column) == ("checked", "E0704", "too big", line, 5)


def test_a_launch_that_is_refused_has_no_fault_of_a_kernel():
    program = vortex.compile(source=SOURCE, device="interpreter")
    with pytest.raises(vortex.Error, match="cannot hold 256"):
        program.checked(np.zeros(3, np.float32), 256)


@pytest.mark.parametrize("number", [-1, 1, 4, 7, 1 << 20])
def test_numbers_that_no_value_of_an_enum_has_are_refused(program, number):
    with pytest.raises(vortex.Error, match=rf"`step.mode` is {number}, which is no value of `Mode`"):
        program.moved(np.zeros(3, np.float32), (number, 1.0))


def test_values_of_enums(program, random):
    x = random.standard_normal(30, dtype=np.float32)
    for number, expected in ((0, x + np.float32(2.5)), (5, x * np.float32(2.5)), (6, -x)):
        np.testing.assert_array_equal(program.moved(x, {"mode": number, "by": 2.5}), expected)


def test_results_are_of_the_kind_of_the_arguments(random):
    program = vortex.compile(source=SOURCE, device="interpreter")
    x = random.standard_normal((3, 4), dtype=np.float32)
    made = program.negated(vortex.asarray(x, "cpu"))
    assert isinstance(made, vortex.Array)
    np.testing.assert_array_equal(made.numpy(), -x)


@pytest.mark.parametrize("check", [False, True])
def test_prepared_launches(check, random):
    program = vortex.compile(source=SOURCE, device="interpreter", check=check)
    x = random.standard_normal((3, 4), dtype=np.float32)
    out = np.full((3, 4), np.nan, np.float32)
    launch = program.negated.prepare(x, out=out)
    assert np.isnan(out).all()
    assert launch() is out
    np.testing.assert_array_equal(out, -x)
    x[...] = random.standard_normal((3, 4), dtype=np.float32)
    launch.repeat(2)
    np.testing.assert_array_equal(out, -x)
    numbers = np.zeros(5, np.float32)
    program.increment.prepare(numbers).repeat(7)
    np.testing.assert_array_equal(numbers, 7)


def test_what_is_no_array_is_told_as_on_a_device():
    program = vortex.compile(source=SOURCE, device="interpreter")
    for given, error, message in (([1.0], TypeError, "argument 1 .'x'. of kernel 'total' is a list"),
                                  (np.zeros(3), TypeError, "has elements of type f32; an array of f64"),
                                  (np.zeros((3, 3), np.float32), ValueError, "has 1 dimension; an array of 2"),
                                  (np.array([None]), TypeError, "has elements of type object, which kernels do not take")):
        with pytest.raises(error, match=message):
            program.total(given)


def test_the_code_of_a_program_in_the_interpreter_is_that_for_cpus():
    program = vortex.compile(source=SOURCE, device="interpreter")
    assert "negated" in program.negated.source("assembly")
    assert program.negated.facts(np.zeros((2, 3), np.float32))["object_bytes"] > 0


def test_the_environment_names_the_interpreter():
    text = """
import numpy as np, vortex
program = vortex.compile(source="kernel twice(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x * 2.0 }")
assert program.device == "interpreter" and np.array_equal(program.twice(np.ones(3, np.float32)), [2, 2, 2])
assert program.twice(vortex.asarray(np.ones(3, np.float32))).device.name == "cpu"
assert vortex.compile(source="kernel k(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x }", device="cpu").device == "cpu"
"""
    done = subprocess.run([sys.executable, "-c", text], env={**os.environ, "VORTEX_DEVICE": "interpreter", "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True,
                          text=True, timeout=3600)
    assert done.returncode == 0, done.stderr


def test_a_refused_launch_has_one_class_everywhere(program):
    x = np.ones(4, np.float32)
    for call in (lambda: program.checked(x, 7), lambda: program.checked(x, 300), lambda: program.product(np.ones((2, 3), np.float32), np.ones((4, 2), np.float32)),
                 lambda: program.negated(np.ones((2, 3), np.float32), out=np.empty((3, 2), np.float32))):
        with pytest.raises(vortex.Error) as raised:
            call()
        assert type(raised.value).__name__ == "RuntimeFailure", raised.value
