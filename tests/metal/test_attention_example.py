"""`examples/attention.vx` printed for Metal: its tiles fit 32 KiB, and the printed kernel, read back, computes NumPy's attention."""
import json

import numpy
import pytest

LIMIT = 32768


def attention(q, k, v):
    scores = numpy.einsum("hqd,hkd->hqk", q, k) * 0.125
    scores[:, numpy.triu(numpy.ones(scores.shape[1:], bool), 1)] = -numpy.inf
    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights @ v / weights.sum(axis=-1, keepdims=True)


def test_its_tiles_fit_a_threadgroup(vortex, root, tmp_path):
    [report] = json.loads(vortex("build", root / "examples/attention.vx", "--target", "metal3.1", "--memory", "--json", "-o", tmp_path).stdout)
    assert [phase["sharedLimit"] for phase in report["phases"]] == [LIMIT]
    assert 0 < report["phases"][0]["sharedBytes"] <= LIMIT
    assert all(piece["offset"] + piece["bytes"] <= report["phases"][0]["sharedBytes"] for piece in report["pieces"])


def test_a_launch_chooses_between_entries_that_differ(vortex, root):
    """One for tensors with aligned rows, one for all others: what the tiles' extents decide is decided."""
    text = vortex("build", root / "examples/attention.vx", "--target", "metal3.1", "--emit", "asm").stdout
    assert text.count("kernel void") == 2
    assert "if (true)" not in text and "if (false)" not in text
    assert len(text) < 300_000


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return str(tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize("heads, length", [(1, 1), (2, 33), (3, 97), (1, 160)])
def test_it_computes_what_numpy_does(vortex, root, tmp_path, cache, heads, length):
    random = numpy.random.default_rng()
    inputs = [random.standard_normal((heads, length, 64), dtype=numpy.float32) for _ in range(3)]
    paths = [tmp_path / f"{name}.npy" for name in ("q", "k", "v", "out")]
    for path, values in zip(paths, inputs):
        numpy.save(path, values)
    vortex("run", "--device", "metal3.1", root / "examples/attention.vx", "--", *paths, env={"XDG_CACHE_HOME": cache})
    expected = attention(*(values.astype(numpy.float64) for values in inputs))
    numpy.testing.assert_allclose(numpy.load(paths[3]), expected, rtol=2e-4, atol=2e-5)
