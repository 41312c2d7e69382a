"""A matrix of 4-bit numbers times a vector: one simdgroup per row, each lane goes through its share of the packed words."""
import numpy as np

import metile

GROUP = 32  # numbers that share a scale and an offset


@metile.kernel
def matvec(Packed, Scales, Offsets, X, Out, ROWS, K, BLOCK: metile.constexpr):
    lane = metile.simd_lane_id()
    row = metile.program_id(0) * (BLOCK // 32) + metile.thread_id() // 32
    total = 0.0
    for word in metile.tile_range(lane, K // 8, 32):
        bits = metile.load(Packed + row * (K // 8) + word)
        group = row * (K // GROUP) + word * 8 // GROUP
        scale, offset = metile.load(Scales + group), metile.load(Offsets + group)
        for i in range(8):
            digit = metile.cast((bits >> (4 * i)) & 15, "f32")
            total = total + (digit * scale + offset) * metile.load(X + word * 8 + i)
    total = metile.simd_sum(total)
    metile.store(Out + row, total, mask=(lane == 0) & (row < ROWS))


def main():
    random = np.random.default_rng()
    rows, k = 37, 512
    digits = random.integers(0, 16, (rows, k), dtype=np.uint32)
    packed = (digits.reshape(rows, k // 8, 8) << (4 * np.arange(8, dtype=np.uint32))).sum(axis=2).astype(np.uint32)
    scales, offsets = random.standard_normal((2, rows, k // GROUP), dtype=np.float32)
    x = random.standard_normal(k, dtype=np.float32)
    out = np.full(rows, np.nan, np.float32)
    matvec[(metile.cdiv(rows, 4),)](packed, scales, offsets, x, out, rows, k, BLOCK=128)
    weights = digits * np.repeat(scales, GROUP, axis=1).astype(np.float64) + np.repeat(offsets, GROUP, axis=1)
    np.testing.assert_allclose(out, weights @ x, rtol=1e-3, atol=1e-2)
    print(f"quantised: {rows}x{k} product correct")


if __name__ == "__main__":
    main()
