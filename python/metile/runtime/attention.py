"""One-query attention over a cache of keys and values.

Queries and the output are [batch, heads, D], keys and values [batch, kv_heads, tokens, D]; neighbouring dimensions may be one. Each simdgroup goes
through every n-th token with a running maximum and sum; at the end the block puts its simdgroups together. Long caches are cut into parts that blocks of their own work on."""
from __future__ import annotations

import dataclasses
import math

import numpy as np

from .. import _ops as mt
from .._dispatch import Repeated
from .._loops import tile_range
from .._values import constexpr
from ..frontend.kernel import kernel
from .buffer import Buffer

_LOWEST = -1e30


@kernel
def decode_kernel(Q, K, V, Out, Largest, Total, N, scale, D: constexpr, HEADS: constexpr, KV_HEADS: constexpr, PARTS: constexpr, LENGTH: constexpr,
                  IS_WHOLE: constexpr, BLOCK: constexpr):
    work = mt.program_id(0)
    query, part = work // PARTS, work % PARTS
    cache = (query // HEADS * KV_HEADS + query % HEADS // (HEADS // KV_HEADS)) * N
    thread, lane = mt.thread_id(), mt.simd_lane_id()
    group, groups, width = thread // 32, BLOCK // 32, D // 32
    own = [lane + 32 * i for i in range(width)]
    q = [mt.cast(mt.load(Q + query * D + d), "f32") * scale for d in own]
    largest, total = mt.scalar(_LOWEST), mt.scalar(0.0)
    sums = [mt.scalar(0.0) for _ in own]
    end = mt.minimum(N, (part + 1) * LENGTH)
    for token in tile_range(part * LENGTH + group, end, groups):
        row = (cache + token) * D
        score = 0.0
        for i in range(width):
            score = score + q[i] * mt.cast(mt.load(K + row + own[i]), "f32")
        score = mt.simd_sum(score)
        higher = mt.maximum(largest, score)
        shrink, weight = mt.exp(largest - higher), mt.exp(score - higher)
        total = total * shrink + weight
        for i in range(width):
            sums[i] = sums[i] * shrink + weight * mt.cast(mt.load(V + row + own[i]), "f32")
        largest = higher
    maxima, totals, parts = mt.shared(groups), mt.shared(groups), mt.shared(groups * D)
    mt.store(maxima + group, largest, mask=lane == 0)
    mt.store(totals + group, total, mask=lane == 0)
    for i in range(width):
        mt.store(parts + group * D + own[i], sums[i])
    mt.barrier()
    block_largest, block_total = mt.load(maxima + 0), 0.0
    for g in range(1, groups):
        block_largest = mt.maximum(block_largest, mt.load(maxima + g))
    factors = [mt.exp(mt.load(maxima + g) - block_largest) for g in range(groups)]
    for g in range(groups):
        block_total = block_total + mt.load(totals + g) * factors[g]
    for first in range(0, D, BLOCK):
        d = first + thread
        value = 0.0
        for g in range(groups):
            value = value + mt.load(parts + g * D + d, mask=d < D) * factors[g]
        mt.store(Out + work * D + d, value / block_total if IS_WHOLE else value, mask=d < D)
    if not IS_WHOLE:
        mt.store(Largest + work, block_largest, mask=thread == 0)
        mt.store(Total + work, block_total, mask=thread == 0)


@kernel
def merge_kernel(Parts, Largest, Total, Out, D: constexpr, PARTS: constexpr, BLOCK: constexpr):
    query = mt.program_id(0)
    largest = mt.scalar(_LOWEST)
    for part in tile_range(0, PARTS):
        largest = mt.maximum(largest, mt.load(Largest + query * PARTS + part))
    for first in range(0, D, BLOCK):
        d = first + mt.thread_id()
        total, value = 0.0, 0.0
        for part in tile_range(0, PARTS):
            factor = mt.exp(mt.load(Largest + query * PARTS + part) - largest)
            total = total + mt.load(Total + query * PARTS + part) * factor
            value = value + mt.load(Parts + (query * PARTS + part) * D + d, mask=d < D) * factor
        mt.store(Out + query * D + d, value / total, mask=d < D)


@dataclasses.dataclass(frozen=True)
class AttentionDecodeConfig:
    """How a cache is gone through: "single_pass", or "two_pass" in parts of a number of tokens."""

    algorithm: str
    tokens_per_block: int = 0
    partial_block: int = 0
    merge_block: int = 0


def _two_pass_candidates(tokens: int) -> list[AttentionDecodeConfig]:
    """Ways to cut a cache into at most 32 parts, as many as one simdgroup merges."""
    longest = mt.cdiv(mt.cdiv(tokens, 32), 256) * 256
    choices = {(256, 256, 128), (512, 256, 128), (1024, 256, 128), (512, 512, 256), (longest, 512, 128)}
    return [AttentionDecodeConfig("two_pass", *choice) for choice in sorted(choices) if mt.cdiv(tokens, choice[0]) <= 32]


class Sequence(Repeated):
    """Dispatches in order."""

    def __init__(self, *dispatches):
        self._dispatches = dispatches

    def __call__(self) -> None:
        for dispatch in self._dispatches:
            dispatch()


def _prepare_two_pass(q, k, v, out, batch, heads, kv_heads, tokens, scale, dim, config, scratch=None) -> Sequence:
    rows, parts = batch * heads, mt.cdiv(tokens, config.tokens_per_block)
    partial, largest, total = scratch or (Buffer.empty((rows * parts * dim,)), Buffer.empty((rows * parts,)), Buffer.empty((rows * parts,)))
    first = decode_kernel[(rows * parts,)].prepare(q, k, v, partial, largest, total, tokens, scale, D=dim, HEADS=heads, KV_HEADS=kv_heads, PARTS=parts,
                                                   LENGTH=config.tokens_per_block, IS_WHOLE=False, BLOCK=config.partial_block)
    second = merge_kernel[(rows,)].prepare(partial, largest, total, out, D=dim, PARTS=parts, BLOCK=config.merge_block)
    return Sequence(first, second)


def _merges(given: tuple, shape: tuple) -> bool:
    """The extents given are those of the shape, of which neighbours may be one dimension."""
    rest = [extent for extent in shape if extent != 1]
    for extent in given:
        while extent != 1:
            if not rest or extent % rest[0]:
                return False
            extent //= rest.pop(0)
    return not rest


class _Launcher:
    def __init__(self, grid):
        self._grid = (1, grid) if isinstance(grid, int) else (1, *grid) if len(grid) == 1 else tuple(grid)

    def prepare(self, q, k, v, out, tokens, scale, *, D, KV_HEADS=None):
        """Checks shapes and types, runs once, returns a dispatcher."""
        batch, heads = self._grid
        if batch <= 0 or heads <= 0:
            raise ValueError("grid dimensions must be positive")
        if tokens <= 0:
            raise ValueError("tokens must be positive")
        if D <= 0 or D % 32:
            raise ValueError("D must be a positive multiple of 32")
        kv_heads = heads if KV_HEADS is None else KV_HEADS
        if kv_heads <= 0 or heads % kv_heads:
            raise ValueError("KV_HEADS must be a positive divisor of the query heads")
        queries, cache = (batch, heads, D), (batch, kv_heads, tokens, D)
        for name, array, shape in (("query", q, queries), ("key", k, cache), ("value", v, cache), ("output", out, queries)):
            if np.dtype(array.dtype) != np.float32:
                raise TypeError(f"{name} must be float32")
            given, size = tuple(array.shape), math.prod(shape)
            if math.prod(given) < size:
                raise ValueError(f"{name} requires {size} elements")
            if len(given) > 1 and not _merges(given, shape):
                raise ValueError(f"{name} has the shape {given}, not {shape}")
        unused = Buffer.empty((1,)), Buffer.empty((1,))
        return decode_kernel[(batch * heads,)].prepare(q, k, v, out, *unused, tokens, scale, D=D, HEADS=heads, KV_HEADS=kv_heads, PARTS=1, LENGTH=tokens,
                                                       IS_WHOLE=True, BLOCK=256)

    def __call__(self, *args, **options) -> None:
        self.prepare(*args, **options)


class _Decode:
    """attention_decode[(batch, heads)].prepare(q, k, v, out, tokens, scale, D=…, KV_HEADS=…)"""

    def __getitem__(self, grid) -> _Launcher:
        return _Launcher(grid)


attention_decode = _Decode()
