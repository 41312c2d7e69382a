"""Host arrays that no launch takes: such that share memory which is written, and such that are not aligned. On every device alike, though GPUs and
the interpreter work on copies, and by both packages."""
import numpy as np
import pytest

import metile
import vortex
from test_gpu_arrays import run

SOURCE = """
kernel copy(x: &Tensor<f32, [N]>, y: &mut Tensor<f32, [N]>) {
    y[thread.global_id] = x[thread.global_id]
}
kernel scale(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> {
    return x * 2.0
}
"""
ODD_STEPS = np.dtype({"names": ["b"], "formats": ["f4"], "offsets": [0], "itemsize": 6})  # the first element is aligned, the second is not
MEMORY = {
    "odd steps": (lambda m: (np.zeros(20, ODD_STEPS)["b"], m[:20]), "'x'.* is not aligned to its elements|'x' .*strides"),
    "odd steps that are written": (lambda m: (m[:20], np.zeros(20, ODD_STEPS)["b"]), "'y'.* is not aligned to its elements|'y' .*strides"),
    "whole arrays": (lambda m: (m[:20], m[10:30]), "argument 'x' and argument 'y' share memory, and the kernel writes argument 'y'"),
    "one array": (lambda m: (m[:20], m[:20]), "share memory, and the kernel writes argument 'y'"),
    "strides that meet": (lambda m: (m[0:40:2], m[0:60:3]), "share memory, and the kernel writes argument 'y'"),
    "backwards": (lambda m: (m[:20], m[19::-1]), "share memory, and the kernel writes argument 'y'"),
    "one element for all": (lambda m: (m[:20], np.lib.stride_tricks.as_strided(m[50:], (20,), (0,))), "'y' is written, .*share memory"),
    "a packed field": (lambda m: (m[:20], np.zeros(20, [("a", "u1"), ("b", "f4")])["b"]), "'y'.* is not aligned to its elements"),
    "an odd address": (lambda m: (np.zeros(81, np.uint8)[1:].view(np.float32), m[:20]), "'x'.* is not aligned to its elements"),
}
RESULTS = {
    "odd steps": (lambda m: (m[:20], np.zeros(20, ODD_STEPS)["b"]), "out= .*is not aligned to its elements"),
    "over its argument": (lambda m: (m[:20], m[:20]), "argument 'x' and result .* share memory, and the kernel writes result"),
    "beside it": (lambda m: (m[:20], m[19:39]), "argument 'x' and result .* share memory"),
    "one element for all": (lambda m: (m[:20], np.lib.stride_tricks.as_strided(m[50:], (20,), (0,))), "elements share memory|elements of the array share memory"),
    "an odd address": (lambda m: (m[:20], np.zeros(81, np.uint8)[1:].view(np.float32)), "out= .*is not aligned to its elements"),
    "a packed field": (lambda m: (m[:20], np.zeros(20, [("a", "u1"), ("b", "f4")])["b"]), "out= .*is not aligned to its elements"),
}


def refusals(device: str) -> None:
    program = vortex.compile(source=SOURCE, device=device)
    for table, launch in ((MEMORY, lambda x, y: program.copy(x, y)), (RESULTS, lambda x, y: program.scale(x, out=y))):
        for name, (made, message) in table.items():
            memory = np.arange(100, dtype=np.float32)
            with pytest.raises((vortex.Error, ValueError), match=message):
                launch(*made(memory))
                raise AssertionError(f"{name} ran on {device}")
            np.testing.assert_array_equal(memory, np.arange(100), name)


@pytest.mark.parametrize("on", ["device", "interpreter"])
def test_what_vortex_refuses(on, device):
    refusals(device if on == "device" else "interpreter")


def test_what_vortex_refuses_on_a_gpu():
    run("import pathlib; sys.path.insert(0, %r); from test_refused_arrays import refusals; refusals('cuda:0')" % str(__file__).rpartition("/")[0])


@pytest.mark.parametrize("views", [lambda m: (m[0:40:2], m[1:41:2]), lambda m: (m[:20], m[20:40]), lambda m: (m[39:19:-1], m[:20])])
def test_views_that_share_no_element_are_used(views, device, random):
    program = vortex.compile(source=SOURCE, device=device)
    x, y = views(random.standard_normal(40, dtype=np.float32))
    expected = x.copy()
    program.copy(x, y)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(x, expected)


@metile.kernel
def moved(X, Out, N, BLOCK: metile.constexpr):
    i = metile.arange(0, BLOCK)
    metile.store(Out + i, metile.load(X + i, mask=i < N), mask=i < N)


@pytest.mark.parametrize("which", [0, 1])
def test_what_metile_refuses_that_is_not_aligned(which, where):
    arrays = [np.zeros(10, np.float32), np.zeros(10, np.float32)]
    arrays[which] = np.zeros(41, np.uint8)[1:].view(np.float32)
    for given in (arrays, [metile.Buffer(data=array) for array in arrays]):
        with pytest.raises(ValueError, match=f"'{('X', 'Out')[which]}' is not aligned to its elements"):
            moved[1](*given, 10, BLOCK=32)


def test_strided_arrays_are_compacted_whatever_their_alignment(where):
    """metile copies strided arrays, and the copies are aligned."""
    packed = np.zeros(10, [("a", "u1"), ("b", "f4")])
    moved[1](np.arange(10, dtype=np.float32), packed["b"], 10, BLOCK=32)
    np.testing.assert_array_equal(packed["b"], np.arange(10))
    assert not packed["a"].any()
