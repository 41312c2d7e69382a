"""Which lanes count after a masked load."""
import numpy as np
import pytest

import metile


@metile.kernel
def from_invalid(X, Index, Out, T: metile.constexpr):
    lanes = metile.arange(0, T)
    known = metile.load(Index + lanes, mask=lanes < 10)
    counter = metile.shared(T, "i32")
    metile.store(counter + lanes, 0)
    by_offset = metile.load(X + known)
    by_mask = metile.load(X + lanes, mask=known == 0)
    with_other = metile.load(X + lanes, mask=known == 0, other=5)
    chosen = metile.where(known == 0, 1, 2)
    before = metile.atomic_add(counter + lanes, 1, mask=known == 0)
    last = 1 - metile.load(X + lanes, mask=lanes < 0)
    for i in metile.tile_range(known, 3):
        last = i
    ones = [metile.cast(value, "i32") * 0 + 1 for value in (by_offset, by_mask, with_other, chosen, before, last)]
    for at, value in enumerate(ones):
        metile.store(Out + at, metile.sum(value))


@pytest.mark.parametrize("interpreted", [False, True], ids=["device", "interpreter"])
def test_what_is_computed_from_an_invalid_lane_is_invalid_whatever_it_is_there(interpreted, monkeypatch):
    if interpreted:
        monkeypatch.setenv("METILE_INTERPRET", "1")
    out = np.zeros(6, np.int32)
    from_invalid[1](np.ones(32, np.float32), np.zeros(32, np.int32), out, T=32)
    assert out.tolist() == [10] * 6
