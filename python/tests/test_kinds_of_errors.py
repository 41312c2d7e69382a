"""What an error becomes is told by its kind, not by the words of its message."""
import numpy as np
import pytest
import vortex

FAILS = """
kernel fails(x: &mut Tensor<i32, [N]>) {
    assert(x[thread.global_id] >= 0, "out of memory")
}
"""
OUTER = """
kernel outer(x: &Tensor<f32, [N]>) -> Tensor<f32, [N, N]> {
    return x.reshape([N, 1]) * x.reshape([1, N])
}
"""
WHERE = ["cpu", "interpreter"]


@pytest.mark.parametrize("where", WHERE)
def test_a_kernels_own_words_are_no_kind(where):
    program = vortex.compile(source=FAILS, name="check.vx", device=where)
    with pytest.raises(vortex.Error, match="out of memory") as raised:
        program.fails.launch(grid=1, block=4)(np.array([1, 2, -3, 4], np.int32))
    assert (raised.value.fault.id, raised.value.fault.line) == ("E0704", 3)


@pytest.mark.parametrize("where", WHERE)
def test_results_that_no_memory_holds_are_memory_errors(where):
    program = vortex.compile(source=OUTER, device=where)
    with pytest.raises(MemoryError, match=r"out of memory: 4398046511104 bytes requested, \d+ available"):
        program.outer(np.ones(1 << 20, np.float32))
    np.testing.assert_array_equal(program.outer(np.arange(3, dtype=np.float32)), np.outer(np.arange(3), np.arange(3)))


def test_arrays_that_no_memory_holds_are_memory_errors():
    with pytest.raises(MemoryError, match="out of memory"):
        vortex.empty((1 << 44,), "f32", "cpu")


@pytest.mark.parametrize("where", WHERE)
def test_refused_launches_are_neither(where):
    program = vortex.compile(source="kernel add(x: &Tensor<f32, [N]>, y: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x + y }", device=where)
    with pytest.raises(vortex.Error) as raised:
        program.add(np.ones(3, np.float32), np.ones(4, np.float32))
    assert not isinstance(raised.value, MemoryError) and (raised.value.fault is None or raised.value.fault.id == "E0712")
