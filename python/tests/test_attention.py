"""Attention written as whole-tensor mathematics: against NumPy in f64, on fresh random data, into results full of NaN."""
import numpy as np
import pytest

import vortex

SOURCE = """
kernel narrow(x: &Tensor<f32, [B, H, S, D]>) -> Tensor<bf16, [B, H, S, D]> { return x as bf16 }
kernel wide(x: &Tensor<bf16, [B, H, S, D]>) -> Tensor<f32, [B, H, S, D]> { return x as f32 }
kernel full<T: Float>(q: &Tensor<T, [B, H, S, D]>, k: &Tensor<T, [B, H, N, D]>, v: &Tensor<T, [B, H, N, E]>) -> Tensor<T, [B, H, S, E]> {
    return softmax(q @ k.transpose() * 0.125) @ v
}
kernel causal<T: Float>(q: &Tensor<T, [B, H, S, D]>, k: &Tensor<T, [B, H, N, D]>, v: &Tensor<T, [B, H, N, E]>) -> Tensor<T, [B, H, S, E]> {
    let scores = q @ k.transpose() * 0.125
    return softmax(scores.mask_upper_triangle(-inf)) @ v
}
kernel window<T: Float>(q: &Tensor<T, [B, H, S, D]>, k: &Tensor<T, [B, H, N, D]>, v: &Tensor<T, [B, H, N, E]>) -> Tensor<T, [B, H, S, E]> {
    let (row, column) = (arange(S).reshape([1, 1, S, 1]), arange(N).reshape([1, 1, 1, N]))
    let seen = column <= row && row < column + 37
    return softmax(select(seen, (q @ k.transpose()) as f32 * 0.125, -inf)) as T @ v
}
kernel alibi<T: Float>(q: &Tensor<T, [B, H, S, D]>, k: &Tensor<T, [B, H, N, D]>, v: &Tensor<T, [B, H, N, E]>, slopes: &Tensor<f32, [H]>) -> Tensor<T, [B, H, S, E]> {
    let distance = (arange(S).reshape([1, 1, S, 1]) as f32 - arange(N).reshape([1, 1, 1, N]) as f32) * slopes.reshape([1, H, 1, 1])
    return softmax((q @ k.transpose()) as f32 * 0.125 - abs(distance)) as T @ v
}
kernel softcap<T: Float>(q: &Tensor<T, [B, H, S, D]>, k: &Tensor<T, [B, H, N, D]>, v: &Tensor<T, [B, H, N, E]>) -> Tensor<T, [B, H, S, E]> {
    return softmax(tanh((q @ k.transpose()) as f32 * 0.125 / 5.0) * 5.0) as T @ v
}
kernel lengths<T: Float>(q: &Tensor<T, [B, H, S, D]>, k: &Tensor<T, [B, H, N, D]>, v: &Tensor<T, [B, H, N, E]>, count: &Tensor<i32, [B]>) -> Tensor<T, [B, H, S, E]> {
    let seen = arange(N).reshape([1, 1, 1, N]) < count.reshape([B, 1, 1, 1])
    return softmax(select(seen, (q @ k.transpose()) as f32 * 0.125, -inf)) as T @ v
}
kernel biased<T: Float>(q: &Tensor<T, [B, H, S, D]>, k: &Tensor<T, [B, H, N, D]>, v: &Tensor<T, [B, H, N, E]>, bias: &Tensor<f32, [B, H, S, N]>) -> Tensor<T, [B, H, S, E]> {
    return softmax((q @ k.transpose()) as f32 * 0.125 + bias) as T @ v
}
kernel dropped<T: Float>(q: &Tensor<T, [B, H, S, D]>, k: &Tensor<T, [B, H, N, D]>, v: &Tensor<T, [B, H, N, E]>, kept: &Tensor<f32, [B, H, S, N]>) -> Tensor<T, [B, H, S, E]> {
    return (softmax((q @ k.transpose()) as f32 * 0.125) * kept * 1.25) as T @ v
}
kernel beside<T: Float>(q: &Tensor<T, [B, H, S, D]>, k: &Tensor<T, [B, H, N, D]>, v: &Tensor<T, [B, H, N, E]>, lse: &mut Tensor<f32, [B, H, S, 1]>) -> Tensor<T, [B, H, S, E]> {
    let scores = (q @ k.transpose()) as f32 * 0.125
    let largest = scores.max(dim = -1, keepdim = true)
    let weights = exp(scores - largest)
    let total = weights.sum(dim = -1, keepdim = true)
    lse = largest + log(total)
    return (weights / total) as T @ v
}
kernel grouped<T: Float>(q: &Tensor<T, [B, G, R, S, D]>, k: &Tensor<T, [B, G, N, D]>, v: &Tensor<T, [B, G, N, E]>) -> Tensor<T, [B, G, R, S, E]> {
    return softmax(q @ k.reshape([B, G, 1, N, D]).transpose() * 0.125) @ v.reshape([B, G, 1, N, E])
}
kernel by_position<T: Float>(q: &Tensor<T, [B, S, H, D]>, k: &Tensor<T, [B, N, H, D]>, v: &Tensor<T, [B, N, H, E]>) -> Tensor<T, [B, S, H, E]> {
    let scores = q.transpose([0, 2, 1, 3]) @ k.transpose([0, 2, 3, 1]) * 0.125
    return (softmax(scores.mask_upper_triangle(-inf)) @ v.transpose([0, 2, 1, 3])).transpose([0, 2, 1, 3])
}
kernel itself<T: Float>(x: &Tensor<T, [B, H, S, D]>) -> Tensor<T, [B, H, S, D]> {
    return softmax((x @ x.transpose() * 0.125).mask_upper_triangle(-inf)) @ x
}
kernel after<T: Float>(q: &Tensor<T, [B, H, S, D]>, k: &Tensor<T, [B, H, N, D]>, v: &Tensor<T, [B, H, N, E]>) -> Tensor<T, [B, H, S, E]> {
    return softmax((q @ k.transpose() * 0.125).mask_upper_triangle(-inf, offset = N as i64 - S as i64)) @ v
}
kernel choice<T: Float>(q: &Tensor<T, [B, H, S, D]>, k: &Tensor<T, [B, H, N, D]>, v: &Tensor<T, [B, H, N, E]>, causal: bool) -> Tensor<T, [B, H, S, E]> {
    let scores = q @ k.transpose() * 0.125
    if causal { scores = scores.mask_upper_triangle(-inf) }
    return softmax(scores) @ v
}
kernel merged<T: Float>(q: &Tensor<T, [B, G * R, S, D]>, k: &Tensor<T, [B, G, N, D]>, v: &Tensor<T, [B, G, N, E]>) -> Tensor<T, [B, G * R, S, E]> {
    let scores = q.reshape([B, G, R, S, D]) @ k.reshape([B, G, 1, N, D]).transpose() * 0.125
    return (softmax(scores.mask_upper_triangle(-inf, offset = N as i64 - S as i64)) @ v.reshape([B, G, 1, N, E])).reshape([B, G * R, S, E])
}
kernel query<T: Float>(q: &Tensor<T, [B, G, R, D]>, k: &Tensor<T, [B, N, G, D]>, v: &Tensor<T, [B, N, G, E]>) -> Tensor<T, [B, G, R, E]> {
    return softmax(q @ k.transpose([0, 2, 3, 1]) * 0.125) @ v.transpose([0, 2, 1, 3])
}
@strict
kernel strictly<T: Float>(q: &Tensor<T, [B, H, S, D]>, k: &Tensor<T, [B, H, N, D]>, v: &Tensor<T, [B, H, N, E]>) -> Tensor<T, [B, H, S, E]> {
    return softmax(q @ k.transpose() * 0.125) @ v
}
"""
TYPES = {"f32": np.float32, "f16": np.float16, "bf16": None, "f64": np.float64}
TOLERANCES = {"f64": 3e-5, "f32": 3e-5, "f16": 4e-3, "bf16": 3e-2}


@pytest.fixture(scope="module")
def program(device):
    return vortex.compile(source=SOURCE, device=device)


class Tensors:
    """Arrays of a type that NumPy may not have."""

    def __init__(self, program, kind, random):
        self.program, self.kind, self.random = program, kind, random

    def make(self, *shape):
        """What kernels get, and its values."""
        return self.convert(self.random.standard_normal(shape).astype(np.float32))

    def convert(self, x):
        if self.kind != "bf16":
            x = x.astype(TYPES[self.kind])
            return x, x.astype(np.float64)
        x = self.program.narrow(x)
        return x, self.values(x)

    def values(self, x):
        return np.asarray(self.program.wide(x) if self.kind == "bf16" else x).astype(np.float64)

    def result(self, kernel, shape, *arguments):
        out, _ = self.convert(np.full(shape, np.nan, np.float32)) if 0 not in shape else (None, None)
        made = getattr(self.program, kernel)[self.kind](*arguments, **({} if out is None else {"out": out}))
        return self.values(made if out is None else out)


def attention(q, k, v, change=lambda s: s, weigh=lambda w: w):
    scores = change(q @ k.swapaxes(-1, -2) * 0.125)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return weigh(weights / weights.sum(axis=-1, keepdims=True)) @ v


def masked(seen):
    return lambda scores: np.where(seen, scores, -np.inf)


def close(found, expected, kind):
    np.testing.assert_allclose(found, expected, rtol=TOLERANCES[kind], atol=TOLERANCES[kind])


SHAPES = [(2, 3, 33, 70, 16, 16), (1, 2, 65, 65, 64, 64), (1, 1, 7, 300, 80, 48), (1, 1, 130, 1, 32, 32), (1, 1, 1, 515, 128, 128), (1, 1, 40, 257, 256, 24)]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_attention_and_its_masks_agree_with_numpy(program, random, kind, shape):
    b, h, s, n, d, e = shape
    t = Tensors(program, kind, random)
    (q, wq), (k, wk), (v, wv) = t.make(b, h, s, d), t.make(b, h, n, d), t.make(b, h, n, e)
    row, column = np.arange(s)[:, None], np.arange(n)[None, :]
    out = (b, h, s, e)
    close(t.result("full", out, q, k, v), attention(wq, wk, wv), kind)
    if kind == "f64":
        np.testing.assert_allclose(t.result("causal", out, q, k, v), attention(wq, wk, wv, masked(column <= row)), rtol=1e-12, atol=1e-12)
    close(t.result("strictly", out, q, k, v), attention(wq, wk, wv), kind)
    close(t.result("causal", out, q, k, v), attention(wq, wk, wv, masked(column <= row)), kind)
    if kind in ("f16", "f64"):  # the other forms differ in what stands around the products only
        return
    close(t.result("window", out, q, k, v), attention(wq, wk, wv, masked((column <= row) & (row < column + 37))), kind)
    close(t.result("softcap", out, q, k, v), attention(wq, wk, wv, lambda x: np.tanh(x / 5) * 5), kind)
    slopes = np.abs(random.standard_normal(h)).astype(np.float32)
    close(t.result("alibi", out, q, k, v, slopes), attention(wq, wk, wv, lambda x: x - abs((row - column) * slopes[:, None, None].astype(np.float64))), kind)
    bias = random.standard_normal((b, h, s, n)).astype(np.float32)
    close(t.result("biased", out, q, k, v, bias), attention(wq, wk, wv, lambda x: x + bias), kind)
    kept = (random.random((b, h, s, n)) < 0.8).astype(np.float32)
    close(t.result("dropped", out, q, k, v, kept), attention(wq, wk, wv, weigh=lambda w: w * kept * 1.25), kind)
    lse = np.full((b, h, s, 1), np.nan, np.float32)
    close(t.result("beside", out, q, k, v, lse), attention(wq, wk, wv), kind)
    scores = wq @ wk.swapaxes(-1, -2) * 0.125
    largest = scores.max(axis=-1, keepdims=True)
    close(lse, largest + np.log(np.exp(scores - largest).sum(axis=-1, keepdims=True)), "f32" if kind == "f64" else kind)


@pytest.mark.parametrize("kind", TYPES)
def test_sequences_have_lengths_and_none_gives_nan(program, random, kind):
    b, h, s, n, d, e = 4, 2, 19, 150, 32, 40
    t = Tensors(program, kind, random)
    (q, wq), (k, wk), (v, wv) = t.make(b, h, s, d), t.make(b, h, n, d), t.make(b, h, n, e)
    count = np.array([150, 0, 64, int(random.integers(1, 400))], np.int32)
    found = t.result("lengths", (b, h, s, e), q, k, v, count)
    close(found, attention(wq, wk, wv, masked(np.arange(n) < count[:, None, None, None])), kind)
    assert np.isnan(found[1]).all() and not np.isnan(found[[0, 2, 3]]).any()


@pytest.mark.parametrize("kind", TYPES)
def test_heads_share_keys_and_tensors_are_ordered_by_position(program, random, kind):
    b, g, r, s, n, d, e = 2, 2, 3, 21, 77, 32, 48
    t = Tensors(program, kind, random)
    if kind != "bf16":  # the converting kernels have four dimensions
        (q, wq), (k, wk), (v, wv) = t.make(b, g, r, s, d), t.make(b, g, n, d), t.make(b, g, n, e)
        close(t.result("grouped", (b, g, r, s, e), q, k, v), attention(wq, wk[:, :, None], wv[:, :, None]), kind)
    (q, wq), (k, wk), (v, wv) = t.make(b, s, g, d), t.make(b, n, g, d), t.make(b, n, g, e)
    expected = attention(*(x.swapaxes(1, 2) for x in (wq, wk, wv)), masked(np.arange(n) <= np.arange(s)[:, None])).swapaxes(1, 2)
    close(t.result("by_position", (b, s, g, e), q, k, v), expected, kind)
    x, wx = t.make(b, g, s, d)
    close(t.result("itself", (b, g, s, d), x), attention(wx, wx, wx, masked(np.arange(s) <= np.arange(s)[:, None])), kind)


@pytest.mark.parametrize("kind", ["f32", "bf16"])
@pytest.mark.parametrize("s, n", [(1, 90), (33, 90), (90, 33), (600, 590), (40, 40)])
def test_the_last_query_sees_all_keys(program, random, kind, s, n):
    t = Tensors(program, kind, random)
    (q, wq), (k, wk), (v, wv) = t.make(2, 2, s, 32), t.make(2, 2, n, 32), t.make(2, 2, n, 24)
    row, column = np.arange(s)[:, None], np.arange(n)
    seen = column <= row + n - s
    close(t.result("after", (2, 2, s, 24), q, k, v), attention(wq, wk, wv, masked(seen)), kind)  # the first s - n see none: NaN
    for causal in (False, True):
        close(t.result("choice", (2, 2, s, 24), q, k, v, causal), attention(wq, wk, wv, masked((column <= row) | (not causal))), kind)


@pytest.mark.parametrize("kind", ["f32", "bf16"])
@pytest.mark.parametrize("s, n", [(1, 700), (37, 70)])
def test_groups_of_queries_share_keys(program, random, kind, s, n):
    b, g, r, d, e = 2, 2, 3, 32, 24
    t = Tensors(program, kind, random)
    (q, wq), (k, wk), (v, wv) = t.make(b, g * r, s, d), t.make(b, g, n, d), t.make(b, g, n, e)
    seen = np.arange(n) <= np.arange(s)[:, None] + n - s
    expected = attention(wq, wk.repeat(r, axis=1), wv.repeat(r, axis=1), masked(seen))
    close(t.result("merged", (b, g * r, s, e), q, k, v), expected, kind)
    (q, wq), (k, wk), (v, wv) = t.make(b, g, r, d), t.make(b, n, g, d), t.make(b, n, g, e)
    close(t.result("query", (b, g, r, e), q, k, v), attention(wq, wk.swapaxes(1, 2), wv.swapaxes(1, 2)), kind)


def test_heads_that_do_not_divide_are_refused_with_both_numbers(program, random):
    t = Tensors(program, "f32", random)
    (q, _), (k, _) = t.make(1, 7, 4, 8), t.make(1, 3, 4, 8)
    with pytest.raises(vortex.Error, match="`q` has extent 7 in dimension 1, which is no multiple of G = 3"):
        t.result("merged", (1, 7, 4, 8), q, k, k)


def test_nan_behind_a_causal_mask_stays_there_or_shows(program, random):
    t = Tensors(program, "f32", random)
    (q, wq), (k, wk), (v, wv) = t.make(1, 1, 300, 16), t.make(1, 1, 1200, 16), t.make(1, 1, 1200, 8)
    v[0, 0, 250] = np.nan
    expected = attention(wq, wk, wv, masked(np.arange(1200) <= np.arange(300)[:, None]))
    found = t.result("causal", (1, 1, 300, 8), q, k, v)
    assert np.isnan(found[0, 0, 250:]).all()
    before = found[0, 0, :250]
    assert (np.isnan(before) | np.isclose(before, expected[0, 0, :250], rtol=3e-5, atol=3e-5)).all()


@pytest.mark.parametrize("shape", [(1, 2, 0, 5, 8, 8), (1, 2, 5, 0, 8, 8), (1, 2, 5, 7, 0, 8), (1, 2, 5, 7, 8, 0), (0, 2, 5, 7, 8, 8)], ids=str)
def test_extents_of_zero_give_what_the_expression_gives(program, random, shape):
    b, h, s, n, d, e = shape
    t = Tensors(program, "f32", random)
    (q, wq), (k, wk), (v, wv) = t.make(b, h, s, d), t.make(b, h, n, d), t.make(b, h, n, e)
    found, lse = t.result("full", (b, h, s, e), q, k, v), np.full((b, h, s, 1), np.nan, np.float32)
    close(found, attention(wq, wk, wv) if n else np.zeros((b, h, s, e)), "f32")
    close(t.result("beside", (b, h, s, e), q, k, v, lse), found, "f32")
    if n == 0:
        assert (lse == -np.inf).all()


def test_infinities_and_nan_go_where_they_go_as_written(program, random):
    b, h, s, n, d, e = 1, 1, 6, 600, 16, 16
    t = Tensors(program, "f32", random)
    (q, wq), (k, wk), (v, wv) = t.make(b, h, s, d), t.make(b, h, n, d), t.make(b, h, n, e)
    bias = random.standard_normal((b, h, s, n)).astype(np.float32)
    bias[0, 0, 0, 300] = np.inf
    bias[0, 0, 1, 590] = np.nan
    bias[0, 0, 2] = -np.inf
    bias[0, 0, 3, :256] = -np.inf
    bias[0, 0, 4, 256:] = -np.inf
    found = t.result("biased", (b, h, s, e), q, k, v, bias)
    assert np.isnan(found[0, 0, :3]).all() and not np.isnan(found[0, 0, 3:]).any()
    close(found, attention(wq, wk, wv, lambda x: x + bias), "f32")


def test_large_scores_do_not_overflow(program, random):
    t = Tensors(program, "f32", random)
    (q, wq), (k, wk), (v, wv) = t.make(1, 1, 20, 64), t.make(1, 1, 700, 64), t.make(1, 1, 700, 8)
    found = t.result("full", (1, 1, 20, 8), q * 100, k * 3, v)
    np.testing.assert_allclose(found, attention(wq * 100, wk * 3, wv), rtol=2e-3, atol=2e-3)
