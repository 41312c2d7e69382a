"""What is the same for all lanes, carried by a loop beside what is not."""
import numpy as np
import pytest

import metile

pytestmark = pytest.mark.usefixtures("where")
BODIES = {  # what the loop does to (lane, alike), for all lanes and for one row in float64
    "a load": (lambda lane, alike, v, w: (lane + v, alike + w), lambda s, a, x, w: (s + x.sum(), a + w)),
    "a count": (lambda lane, alike, v, w: (lane + v, alike + 1.0), lambda s, a, x, w: (s + x.sum(), a + 1)),
    "a factor": (lambda lane, alike, v, w: (lane + v * alike, alike * 0.5 + w), lambda s, a, x, w: (s + x.sum() * a, a * 0.5 + w)),
    "a choice": (lambda lane, alike, v, w: (lane + v * w, metile.where(alike > 1.0, alike - 1.0, alike + w)),
                 lambda s, a, x, w: (s + x.sum() * w, a - 1 if a > 1 else a + w)),
    "a sum of lanes": (lambda lane, alike, v, w: (lane + v, alike + metile.sum(v)), lambda s, a, x, w: (s + x.sum(), a + x.sum())),
}


@pytest.mark.parametrize("block", [1, 48, 64])
@pytest.mark.parametrize("name", BODIES)
def test_values_of_all_lanes_are_carried_beside_values_of_each(name, block, random):
    body, expected = BODIES[name]

    @metile.kernel
    def sums(X, W, Out, N, BLOCK: metile.constexpr):
        row, lanes = metile.program_id(0), metile.arange(0, BLOCK)
        lane, alike = 0.0, 0.0
        for k in metile.tile_range(0, N, BLOCK):
            lane, alike = body(lane, alike, metile.load(X + row * N + k + lanes, mask=k + lanes < N), metile.load(W + k))
        metile.store(Out + row * 2, metile.sum(lane))
        metile.store(Out + row * 2 + 1, alike)

    n = int(random.integers(65, 200))
    x, w, out = random.random((3, n), dtype=np.float32), random.random(n, dtype=np.float32), np.full((3, 2), np.nan, np.float32)
    sums[(3,)](x, w, out, n, BLOCK=block)
    for row in range(3):
        sum_of_lanes = alike = 0.0
        for k in range(0, n, block):
            sum_of_lanes, alike = expected(sum_of_lanes, alike, x[row, k:k + block].astype(np.float64), float(w[k]))
        np.testing.assert_allclose(out[row], [sum_of_lanes, alike], rtol=1e-4, atol=1e-5)
