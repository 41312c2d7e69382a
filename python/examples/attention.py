"""One query per head over a cache of keys and values, in one pass and in two, with fewer heads of keys than of queries."""
import numpy as np

import metile
from metile.runtime.attention import AttentionDecodeConfig, _prepare_two_pass, attention_decode


def reference(q, k, v, scale):
    scores = np.einsum("bhd,bhnd->bhn", q, k).astype(np.float64) * scale
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.einsum("bhn,bhnd->bhd", weights / weights.sum(axis=-1, keepdims=True), v)


def main():
    random = np.random.default_rng()
    batch, heads, kv_heads, dim = 2, 4, 2, 64
    for tokens in (1, 129, 513):
        q = random.standard_normal((batch, heads, dim), dtype=np.float32)
        k, v = random.standard_normal((2, batch, kv_heads, tokens, dim), dtype=np.float32)
        expected = reference(q, np.repeat(k, heads // kv_heads, axis=1), np.repeat(v, heads // kv_heads, axis=1), dim**-0.5)
        out = metile.Buffer(data=np.full((batch, heads, dim), np.nan, np.float32))
        attention_decode[(batch, heads)].prepare(q, k, v, out, tokens, dim**-0.5, D=dim, KV_HEADS=kv_heads)
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5)
        out.numpy()[:] = np.nan
        _prepare_two_pass(q, k, v, out, batch, heads, kv_heads, tokens, dim**-0.5, dim, AttentionDecodeConfig("two_pass", 128, 128, 64))
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5)
    print("attention: caches of 1, 129 and 513 tokens correct, in one pass and two")


if __name__ == "__main__":
    main()
