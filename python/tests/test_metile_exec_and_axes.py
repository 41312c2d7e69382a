"""Classes that exec makes, large arrays that a loop changes, axes of reductions, and reports beside refused launches."""
import numpy as np
import pytest

import metile

ROUNDS = 4
FROM_EXEC = """
class Held:
    pass

def body(O, n):
    held = Held()
    held.v = 1
    for i in metile.tile_range(0, n):
        held.v = held.v * 2 + i
    metile.store(O + 0, held.v + outside.w)

outside = Held()
outside.w = 0.0
"""


def launched(body, rounds=ROUNDS):
    out = np.full(8, np.nan, np.float32)
    (body if isinstance(body, metile.Kernel) else metile.kernel(body))[(1,)](out, rounds)
    return out


@pytest.mark.parametrize("shape", [(20000,), (300, 300)])
def test_a_large_array_that_a_loop_changes_is_refused_as_a_small_one(shape):
    def body(O, n):
        table = np.zeros(shape)
        for i in metile.tile_range(0, n):
            table[-1] += 1
            metile.store(O + i, i)

    with pytest.raises(metile.LoweringError, match=r"`table` \(a ndarray\) is changed in the loop") as caught:
        launched(body)
    assert f"{__file__}:" in str(caught.value)


def test_a_large_array_that_a_loop_reads_is_python(where):
    def body(O, n):
        table = np.arange(20000.0)
        for i in metile.tile_range(0, n):
            metile.store(O + i, i + float(table[19999]))

    np.testing.assert_array_equal(launched(body)[:ROUNDS], np.arange(ROUNDS) + 19999)


@pytest.mark.parametrize("names", [{}, {"__name__": "made"}], ids=["without a name", "with a name"])
def test_classes_that_exec_makes_hold_state(names, where):
    names = {"metile": metile, **names}
    exec(FROM_EXEC, names)  # noqa: S102
    kernel = metile.kernel(names["body"])
    expected = 1
    for i in range(ROUNDS):
        expected = expected * 2 + i
    assert launched(kernel)[0] == expected
    names["outside"].w = 3.0
    assert launched(kernel)[0] == expected + 3


@pytest.mark.parametrize("name, instead", [("max", "metile.maximum(a, b)"), ("min", "metile.minimum(a, b)"), ("sum", None)])
@pytest.mark.parametrize("axis", [0.0, 1.0, True, False, np.float32(0)])
def test_an_axis_is_an_integer(name, instead, axis):
    def body(O, n):
        metile.store(O + metile.arange(0, 8), getattr(metile, name)(metile.load(O + metile.arange(0, 8)), axis))

    with pytest.raises(TypeError, match=f"the axis of {name} is an integer") as caught:
        launched(body)
    assert (instead or "an integer") in str(caught.value) and f"{__file__}:" in str(caught.value)
    assert instead or "imum" not in str(caught.value)


def test_explain_leaves_out_launches_that_were_refused():
    @metile.kernel
    def filled(O, n, BLOCK: metile.constexpr):
        metile.store(O + metile.program_id(0) * BLOCK + metile.arange(0, 8), 1.0)

    out = np.zeros(8, np.float32)
    filled[(1,)](out, 1, BLOCK=8)
    before = filled.explain()
    with pytest.raises(metile.LoweringError):
        filled[(1,)](out, 1, BLOCK=8.5)
    assert filled.explain() == before
