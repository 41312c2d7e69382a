"""The programs of the introduction: elementwise kernels, fused products, roles, buffers."""
import numpy as np
import pytest

import metile
from metile.runtime.metal_device import MetalDevice


@metile.kernel
def gelu(X, Out, N, BLOCK: metile.constexpr):
    pid = metile.program_id(0)
    offs = pid * BLOCK + metile.arange(0, BLOCK)
    mask = offs < N
    x = metile.load(X + offs, mask=mask)
    out = x / (1.0 + metile.exp(-1.702 * x))
    metile.store(Out + offs, out, mask=mask)


@metile.kernel
def silu(X, Out, N, BLOCK: metile.constexpr):
    pid = metile.program_id(0)
    offs = pid * BLOCK + metile.arange(0, BLOCK)
    mask = offs < N
    x = metile.load(X + offs, mask=mask)
    metile.store(Out + offs, x / (1.0 + metile.exp(-x)), mask=mask)


@metile.kernel
def exp_sqrt(X, out_exp, out_sqrt, N, BLOCK: metile.constexpr):
    pid = metile.program_id(0)
    offs = pid * BLOCK + metile.arange(0, BLOCK)
    mask = offs < N
    with metile.simdgroup_role(role=0, num_roles=2):
        x = metile.load(X + offs, mask=mask)
        metile.store(out_exp + offs, metile.exp(x), mask=mask)
    with metile.simdgroup_role(role=1, num_roles=2):
        x = metile.load(X + offs, mask=mask)
        metile.store(out_sqrt + offs, metile.sqrt(metile.abs(x)), mask=mask)


@metile.kernel
def geglu(X_gate, X_up, Out, N, BLOCK: metile.constexpr):
    pid = metile.program_id(0)
    offs = pid * BLOCK + metile.arange(0, BLOCK)
    mask = offs < N
    with metile.simdgroup_role(role=0, num_roles=2):
        gate = metile.load(X_gate + offs, mask=mask)
        gate = gate / (1.0 + metile.exp(-1.702 * gate))
        metile.store(Out + offs, gate, mask=mask)
    with metile.simdgroup_role(role=1, num_roles=2):
        up = metile.load(X_up + offs, mask=mask)
        gate = metile.load(Out + offs, mask=mask)
        metile.store(Out + offs, gate * up, mask=mask)


@metile.kernel
def matmul_gelu(A, B, C, M, N, K, BLOCK_M: metile.constexpr, BLOCK_N: metile.constexpr, BLOCK_K: metile.constexpr):
    pid_m = metile.program_id(0)
    pid_n = metile.program_id(1)
    acc = metile.zeros((BLOCK_M, BLOCK_N), dtype="f32")
    for k in metile.tile_range(0, K, BLOCK_K):
        a = metile.tile_load(A, pid_m * BLOCK_M, k, K, (BLOCK_M, BLOCK_K))
        b = metile.tile_load(B, k, pid_n * BLOCK_N, N, (BLOCK_K, BLOCK_N))
        acc = metile.dot(a, b, acc)
    acc = acc / (1.0 + metile.exp(-1.702 * acc))
    metile.tile_store(C, pid_m * BLOCK_M, pid_n * BLOCK_N, N, acc, (BLOCK_M, BLOCK_N))


def gelu_of(x):
    return x / (1.0 + np.exp(-1.702 * x))


SIZES = [1, 31, 256, 257, 1000]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kernel, oracle", [(gelu, gelu_of), (silu, lambda x: x / (1 + np.exp(-x)))])
def test_elementwise_kernels_write_exactly_what_the_mask_allows(kernel, oracle, n, random):
    x = random.standard_normal(n, dtype=np.float32)
    out = metile.Buffer(data=np.full(n + 300, np.nan, np.float32))
    kernel[(metile.cdiv(n, 256),)](metile.Buffer(data=x), out, n, BLOCK=256)
    MetalDevice.get().sync()
    np.testing.assert_allclose(out.numpy()[:n], oracle(x.astype(np.float64)), rtol=1e-5, atol=1e-6)
    assert np.isnan(out.numpy()[n:]).all()


@pytest.mark.parametrize("n", SIZES)
def test_roles_cover_the_whole_tile(n, random):
    x = random.standard_normal(n, dtype=np.float32)
    first, second = np.full(n, np.nan, np.float32), np.full(n, np.nan, np.float32)
    exp_sqrt[(metile.cdiv(n, 256),)](x, first, second, n, BLOCK=256)
    np.testing.assert_allclose(first, np.exp(x), rtol=1e-5)
    np.testing.assert_allclose(second, np.sqrt(np.abs(x)), rtol=1e-5)


@pytest.mark.parametrize("n", SIZES)
def test_later_roles_see_what_earlier_ones_stored(n, random):
    gate, up = random.standard_normal((2, n), dtype=np.float32)
    out = np.full(n, np.nan, np.float32)
    geglu[(metile.cdiv(n, 128),)](gate.copy(), up.copy(), out, n, BLOCK=128)
    np.testing.assert_allclose(out, gelu_of(gate.astype(np.float64)) * up, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("m, n, k", [(64, 64, 64), (1, 1, 1), (70, 33, 50), (129, 127, 65)])
@pytest.mark.parametrize("blocks", [(32, 32, 16), (64, 64, 32), (128, 128, 64)])
def test_a_product_with_an_epilogue_is_exact_at_its_edges(m, n, k, blocks, random):
    a, b = random.standard_normal((m, k), dtype=np.float32), random.standard_normal((k, n), dtype=np.float32)
    c = np.full((m, n), np.nan, np.float32)
    bm, bn, bk = blocks
    matmul_gelu[(metile.cdiv(m, bm), metile.cdiv(n, bn))](a, b, c, m, n, k, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk)
    np.testing.assert_allclose(c, gelu_of(a.astype(np.float64) @ b), rtol=1e-4, atol=1e-4)


def test_buffers_are_views_of_one_memory(random):
    data = random.standard_normal(1024).astype(np.float32)
    x = metile.Buffer(data=data)
    out = metile.Buffer.zeros((1024,))
    buf = metile.Buffer.from_numpy(np.zeros(1024, dtype=np.float32))
    view = out.numpy()
    assert view is out.numpy() and out.shape == (1024,) and out.dtype == np.float32 and out.nbytes == 4096
    gelu[(4,)](x, out, 1024, BLOCK=256)
    MetalDevice.get().sync()
    np.testing.assert_allclose(view, gelu_of(data.astype(np.float64)), rtol=1e-5, atol=1e-6)
    data[:] = 0
    np.testing.assert_array_equal(x.numpy(), 0)
    gelu[(4,)](x, buf, 1024, BLOCK=256)
    np.testing.assert_array_equal(buf.numpy(), 0)


def test_buffers_keep_shape_and_refuse_unknown_elements():
    assert metile.Buffer((3, 4)).numpy().shape == (3, 4)
    assert metile.Buffer.empty(7, np.float16).shape == (7,)
    with pytest.raises(TypeError, match="float64"):
        metile.Buffer(data=np.zeros(3))
    strided = np.arange(20, dtype=np.float32)[::2]
    np.testing.assert_array_equal(metile.Buffer(data=strided).numpy(), strided)
