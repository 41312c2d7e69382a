"""Products of tiles whose blocks come in any order and reach behind the ends of their operands, on sizes where operands are packed for all blocks."""
import numpy as np
import pytest

import metile


@metile.kernel
def grouped(A, B, C, M, N, K, GROUP: metile.constexpr, BLOCK_M: metile.constexpr, BLOCK_N: metile.constexpr, BLOCK_K: metile.constexpr):
    """Triton's order: GROUP tiles of rows go along all columns together."""
    block, columns, rows = metile.program_id(0), metile.cdiv(N, BLOCK_N), metile.cdiv(M, BLOCK_M)
    first = block // (GROUP * columns) * GROUP
    height = metile.minimum(rows - first, GROUP)
    inside = block % (GROUP * columns)
    row, column = (first + inside % height) * BLOCK_M, inside // height * BLOCK_N
    acc = metile.zeros((BLOCK_M, BLOCK_N), dtype="f32")
    for k in metile.tile_range(0, K, BLOCK_K):
        acc = metile.dot(metile.tile_load(A, row, k, K, (BLOCK_M, BLOCK_K)), metile.tile_load(B, k, column, N, (BLOCK_K, BLOCK_N)), acc)
    metile.tile_store(C, row, column, N, acc, (BLOCK_M, BLOCK_N))


@metile.kernel
def from_depth(A, B, C, N, K, first, BLOCK: metile.constexpr):
    """The part of the depth from `first` on, of twice the product."""
    row, column = metile.program_id(0) * BLOCK, metile.program_id(1) * BLOCK
    acc = metile.zeros((BLOCK, BLOCK), dtype="f32")
    for k in metile.tile_range(first, K, 16):
        a = metile.tile_load(A, row, k, K, (BLOCK, 16))
        acc = metile.dot(a + a, metile.tile_load(B, k, column, N, (16, BLOCK)), acc)
    metile.tile_store(C, row, column, N, acc, (BLOCK, BLOCK))


def operands(m, n, k):
    """Small integers: every order of additions gives the same sums."""
    random = np.random.default_rng()
    return random.integers(-3, 4, (m, k)).astype(np.float32), random.integers(-3, 4, (k, n)).astype(np.float32), np.full((m, n), np.nan, np.float32)


@pytest.mark.parametrize("m, n, k, block_m, block_n, block_k, group", [(300, 260, 130, 32, 64, 32, 4), (513, 200, 65, 64, 32, 16, 3), (128, 640, 200, 16, 128, 8, 8)])
def test_blocks_in_groups_of_rows(m, n, k, block_m, block_n, block_k, group):
    a, b, c = operands(m, n, k)
    blocks = metile.cdiv(m, block_m) * metile.cdiv(n, block_n)
    grouped[(blocks,)](a, b, c, m, n, k, GROUP=group, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b)


@pytest.mark.parametrize("m, n, k, first, block", [(250, 330, 140, 0, 32), (250, 330, 140, 48, 32), (90, 1000, 100, 96, 16), (300, 300, 64, 64, 64),
                                                   (300, 300, 64, 80, 64)])
@pytest.mark.parametrize("surplus", [0, 2])
def test_depth_from_an_argument_on_and_more_blocks_than_tiles(m, n, k, first, block, surplus):
    a, b, c = operands(m, n, k)
    from_depth[(metile.cdiv(m, block) + surplus, metile.cdiv(n, block) + surplus)](a, b, c, n, k, first, BLOCK=block)
    np.testing.assert_array_equal(c, 2 * a[:, first:].astype(np.float64) @ b[first:])
