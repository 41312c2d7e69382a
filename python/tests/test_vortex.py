"""The package vortex: `.vx` kernels called from Python."""
import os
import subprocess
import sys

import numpy as np
import pytest

import vortex

SCALE = """
kernel scale(x: &Tensor<f32, [N]>, factor: f32) -> Tensor<f32, [N]> {
    return x * factor
}
kernel increment(x: &mut Tensor<f32, [N]>, by: i32) {
    x[thread.global_id] += by as f32
}
kernel both(x: &Tensor<f32, [M, N]>) -> (Tensor<f32, [M, N]>, Tensor<f32, [N]>) {
    return (x + 1.0, x.sum(dim = 0))
}
"""


@pytest.fixture(scope="module")
def program(device):
    return vortex.compile(source=SCALE, name="scale.vx", device=device)


def test_a_result_is_a_new_array_and_arguments_stay(program, random):
    x = random.standard_normal(1003, dtype=np.float32)
    before = x.copy()
    y = program.scale(x, 2.5)
    assert isinstance(y, np.ndarray) and y.dtype == np.float32
    np.testing.assert_array_equal(y, before * np.float32(2.5))
    np.testing.assert_array_equal(x, before)


def test_mutable_arguments_are_written_in_place(program, random):
    x = random.standard_normal(77, dtype=np.float32)
    expected = x + np.float32(3)
    assert program.increment(x, 3) is None
    np.testing.assert_array_equal(x, expected)


def test_strided_and_reversed_views_are_taken_as_they_are(program, random):
    x = random.standard_normal((40, 30), dtype=np.float32)
    a, b = program.both(x[::2, ::-1])
    np.testing.assert_array_equal(a, x[::2, ::-1] + 1)
    np.testing.assert_allclose(b, x[::2, ::-1].sum(axis=0), rtol=1e-5, atol=1e-5)
    a, _ = program.both(x.T)
    np.testing.assert_array_equal(a, x.T + 1)


def test_out_receives_the_results(program, random, device):
    x = random.standard_normal(50, dtype=np.float32)
    out = np.full(50, np.nan, np.float32)
    if device == "cpu":
        assert program.scale(x, 2, out=out) is out
        np.testing.assert_array_equal(out, x * 2)


def test_numbers_of_numpy_are_numbers(program, random):
    x = random.standard_normal(5, dtype=np.float32)
    np.testing.assert_array_equal(program.scale(x, np.float32(0.5)), x / 2)
    y = x.copy()
    program.increment(y, np.int16(-2))
    np.testing.assert_array_equal(y, x - 2)


def test_zero_sized_arrays_are_arrays(program):
    assert program.scale(np.empty(0, np.float32), 2).shape == (0,)


def test_a_prepared_launch_repeats(program, device):
    if device != "cpu":
        return
    x = np.zeros(33, np.float32)
    holders = sys.getrefcount(x)
    step = program.increment.prepare(x, 1)
    assert sys.getrefcount(x) > holders
    step()
    step.repeat(4)
    np.testing.assert_array_equal(x, np.full(33, 5, np.float32))
    with pytest.raises(OverflowError, match=r"less than 2\*\*64 times"):
        step.repeat(2**70)
    del step
    assert sys.getrefcount(x) == holders


@pytest.mark.parametrize("arguments, kind, message", [
    ((np.zeros(3, np.float32),), TypeError, "takes 2 arguments (x, factor), 1 given"),
    ((np.zeros(3, np.float64), 1), TypeError, "has elements of type f32; an array of f64 was given"),
    ((np.zeros((3, 3), np.float32), 1), ValueError, "has 1 dimension; an array of 2 was given"),
    ((np.zeros(3, np.complex64), 1), TypeError, "elements of a type that kernels do not take"),
    (("x", 1), TypeError, "is a str, not an array"),
    ((None, 1), TypeError, "is a NoneType, not an array"),
    ((np.zeros(3, np.float32), "1"), TypeError, "('factor') of kernel 'scale' is a number, a str was given"),
])
def test_wrong_arguments_are_named(program, device, arguments, kind, message):
    if device != "cpu":
        return
    with pytest.raises(kind) as raised:
        program.scale(*arguments)
    assert message in str(raised.value)


def test_read_only_arrays_are_not_written(program):
    x = np.zeros(3, np.float32)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="'x'.*written by the kernel, but the array is read-only"):
        program.increment(x, 1)
    np.testing.assert_array_equal(program.scale(x, 2), x)


def test_overlapping_arrays_are_refused_when_one_is_written(device):
    if device != "cpu":
        return
    program = vortex.compile(source="kernel copy(x: &Tensor<f32, [N]>, y: &mut Tensor<f32, [N]>) {\n    y[thread.global_id] = x[thread.global_id]\n}\n")
    memory = np.arange(10, dtype=np.float32)
    with pytest.raises(vortex.Error, match="share|overlap"):
        program.copy(memory[:9], memory[1:])
    np.testing.assert_array_equal(memory, np.arange(10))


def test_integers_that_do_not_fit_are_refused(program, device):
    if device != "cpu":
        return
    x = np.zeros(3, np.float32)
    for value in (1 << 40, -(1 << 31) - 1):
        with pytest.raises(vortex.Error, match=str(value)):
            program.increment(x, value)
    with pytest.raises(OverflowError, match="does not fit 64 bits"):
        program.increment(x, 1 << 80)
    np.testing.assert_array_equal(x, np.zeros(3))


def test_a_compile_error_has_rendering_and_parts():
    with pytest.raises(vortex.CompileError) as raised:
        vortex.compile(source="kernel k(x: &Tensor<f32, [N]>) {\n    x[thread.global_id] = 1.0\n}\n", name="bad.vx")
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.id == "E0317" and diagnostic.position == ("bad.vx", 2, 5)
    assert "--> bad.vx:2:5" in str(raised.value) and "^^^^" in diagnostic.rendered


def test_unknown_kernels_and_devices_are_named(program):
    with pytest.raises(AttributeError, match="no kernel 'scal'; it has .*scale"):
        program.scal
    with pytest.raises(vortex.Error, match="there is no device 'tpu'"):
        vortex.device("tpu")


def test_sources_of_every_stage(program, device):
    if device != "cpu":
        return
    assert "vx.kernel" in program.scale.source("irgen")
    assert "scale" in program.scale.source("assembly")
    with pytest.raises(vortex.CompileError, match="there is no stage 'x'"):
        program.scale.source("x")


@pytest.mark.parametrize("name", ["tpu", "cuda:99", "cpu:1"])
def test_compile_refuses_devices_that_are_not_there(name, monkeypatch):
    with pytest.raises(vortex.Error, match=f"there is no device '{name}'"):
        vortex.compile(source=SCALE, device=name)
    monkeypatch.setenv("VORTEX_DEVICE", name)
    with pytest.raises(vortex.Error, match=f"there is no device '{name}'"):
        vortex.compile(source=SCALE)
    assert vortex.compile(source=SCALE, device="interpreter").device == "interpreter"


def test_compile_refuses_what_is_no_name_of_a_device():
    with pytest.raises(TypeError, match="a device is named by a string, not a int"):
        vortex.compile(source=SCALE, device=1)


def test_one_kernel_is_launched_with_several_sizes_of_blocks(device):
    program = vortex.compile(source="kernel sizes(out: &mut Tensor<i32, [N]>) { out[thread.global_id] = block.dim.x as i32 }\n", device=device)
    for block in (32, 64, 7, 64, 32):
        out = np.zeros(128, np.int32)
        program.sizes.launch(grid=-(-128 // block), block=block)(out)
        np.testing.assert_array_equal(out, block)


def test_explicit_launch_sizes(device, random):
    program = vortex.compile(source="kernel ids(out: &mut Tensor<i32, [N]>) {\n    let i = block.id.x * block.dim.x + thread.local_id\n    out[i] = thread.local_id as i32\n}\n",
                             device=device)
    out = np.full(100, -1, np.int32)
    program.ids.launch(grid=4, block=32)(out)
    np.testing.assert_array_equal(out, np.arange(100) % 32)
    with pytest.raises(ValueError, match="grid is one to three positive integers"):
        program.ids.launch(grid=0, block=32)


def test_extents_that_shared_memory_needs_come_from_the_arguments(device, random):
    program = vortex.compile(source="""
kernel turn(x: &Tensor<f32, [M, N]>, y: &mut Tensor<f32, [M, N]>) {
    let row: Tensor<f32, [N]> @shared
    row[thread.local_id] = x[block.id.x, thread.local_id]
    sync_block()
    y[block.id.x, thread.local_id] = row[N - 1 - thread.local_id]
}
""", device=device)
    for columns in (32, 64):
        x = random.standard_normal((3, columns), dtype=np.float32)
        y = np.full_like(x, np.nan)
        program.turn.launch(grid=3, block=columns)(x, y)
        np.testing.assert_array_equal(y, x[:, ::-1])


def test_the_interpreter_agrees_and_finds_what_is_wrong(random):
    x = random.standard_normal(70, dtype=np.float32)
    program = vortex.compile(source=SCALE, device="interpreter")
    np.testing.assert_array_equal(program.scale(x, 1.5), x * np.float32(1.5))
    checked = vortex.compile(source="kernel k(x: &mut Tensor<f32, [N]>) {\n    x[thread.global_id + 1] = 0.0\n}\n", name="past.vx", check=True)
    with pytest.raises(vortex.Error, match=r"E0601.*past\.vx:2:") as raised:
        checked.k.launch(grid=1, block=70)(x)
    assert not isinstance(raised.value, vortex.CompileError) and (raised.value.fault.id, raised.value.fault.line) == ("E0601", 2)


@pytest.mark.parametrize("grid", ["@launch(grid = [1], block = 32)", ""])
def test_a_checked_run_decides_about_races(grid):
    source = grid + "\nkernel k(g: &mut Tensor<i32, [32]>) {\n    g[thread.local_id / 2] = thread.local_id as i32\n}\n"
    if grid:
        with pytest.raises(vortex.CompileError, match="E0630"):
            vortex.compile(source=source)
    checked = vortex.compile(source=source, check=True)
    assert {each.id for each in checked.diagnostics} == {"E0630"}
    with pytest.raises(vortex.Error, match="E0603") as raised:
        checked.k.launch(grid=1, block=32)(np.zeros(32, np.int32))
    assert not isinstance(raised.value, vortex.CompileError)


def test_an_artifact_runs_without_the_compiler(tmp_path, random):
    source = tmp_path / "scale.vx"
    source.write_text(SCALE)
    program = vortex.compile(source)
    artifact = program._native.build(program.scale._info["unique_name"], program.scale._request("cpu", ()))
    (tmp_path / "scale.vxk").write_bytes(artifact)
    np.save(tmp_path / "x.npy", random.standard_normal(9, dtype=np.float32))
    script = ("import sys, numpy as np, vortex\nx = np.load(sys.argv[2])\ny = vortex.load(sys.argv[1])(x, 3.0)\n"
              "assert (y == x * np.float32(3)).all()\n"
              "again = vortex.load(sys.argv[1]).prepare(x, 2.0)\nx += 1\nassert (again() == x * np.float32(2)).all()\n"
              "out = np.zeros_like(x)\nassert vortex.load(sys.argv[1]).prepare(x, 5.0, out=out)() is out and (out == x * np.float32(5)).all()\n"
              "assert 'libLLVM' not in open('/proc/self/maps').read()\n")
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "scale.vxk", tmp_path / "x.npy"], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": ":".join(sys.path)})
    assert done.returncode == 0, done.stderr


def test_arrays_cross_by_dlpack_without_copies(program):
    array = vortex.empty((4, 6), "f32", "cpu")
    view = np.from_dlpack(array)
    view[...] = 7
    np.testing.assert_array_equal(array.numpy(), np.full((4, 6), 7, np.float32))
    assert view.ctypes.data == array.address
    assert array.__dlpack_device__()[0] == 1
    assert not hasattr(array, "__cuda_array_interface__")
    del array
    np.testing.assert_array_equal(view, np.full((4, 6), 7, np.float32))


def test_arrays_describe_themselves():
    array = vortex.empty(5, np.int16, "cpu")
    assert (array.shape, array.dtype, array.nbytes, array.strides) == ((5,), "i16", 10, (1,))
    with pytest.raises(TypeError, match="no element type for complex64"):
        vortex.empty(3, np.complex64)
