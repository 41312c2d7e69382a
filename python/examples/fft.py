"""A Fourier transform of 32 points in each simdgroup: five steps of butterflies by shuffles, no shared memory."""
import numpy as np

import metile


@metile.kernel
def fft32(Re, Im, CosTable, SinTable, OutRe, OutIm, BLOCK: metile.constexpr):
    lane = metile.simd_lane_id()
    first = metile.program_id(0) * BLOCK + metile.thread_id() // 32 * 32
    source = metile.reverse_bits(lane) >> 27  # 5 bits in reverse order
    re, im = metile.load(Re + first + source), metile.load(Im + first + source)
    for stage in range(5):
        half = 1 << stage
        is_low = (lane & half) == 0
        other_re, other_im = metile.simd_shuffle_xor(re, half), metile.simd_shuffle_xor(im, half)
        low_re, low_im = metile.where(is_low, re, other_re), metile.where(is_low, im, other_im)
        high_re, high_im = metile.where(is_low, other_re, re), metile.where(is_low, other_im, im)
        angle = (lane & (half - 1)) * (16 // half)
        cos, sin = metile.load(CosTable + angle), metile.load(SinTable + angle)
        turned_re, turned_im = high_re * cos - high_im * sin, high_re * sin + high_im * cos
        re = metile.where(is_low, low_re + turned_re, low_re - turned_re)
        im = metile.where(is_low, low_im + turned_im, low_im - turned_im)
    metile.store(OutRe + first + lane, re)
    metile.store(OutIm + first + lane, im)


def main():
    random = np.random.default_rng()
    batch = 64
    re, im = random.standard_normal((2, batch, 32), dtype=np.float32)
    angles = -2 * np.pi * np.arange(16) / 32
    out_re, out_im = np.full_like(re, np.nan), np.full_like(im, np.nan)
    fft32[(batch // 4,)](re, im, np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32), out_re, out_im, BLOCK=128)
    np.testing.assert_allclose(out_re + 1j * out_im, np.fft.fft(re + 1j * im.astype(np.float64)), rtol=1e-4, atol=1e-4)
    print(f"fft: {batch} transforms of 32 points correct")


if __name__ == "__main__":
    main()
