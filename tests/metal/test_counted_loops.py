"""Loops that count and indices of 32 bits, which may wrap between two threads or two rounds, against NumPy; with whole and with ragged threadgroups."""
import functools
import operator

import numpy as np
import pytest

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
ROWS = HEAD + """
struct Sizes { uint rows, count, pitch, start; };
kernel void rows(device const float* a [[buffer(0)]], constant float* b [[buffer(1)]], device float* out [[buffer(2)]], constant Sizes& s [[buffer(3)]],
                 uint i [[thread_position_in_grid]]) {
  float sum = 0;
  for (uint k = 0; k < s.count; ++k) sum += a[i * s.pitch + s.start + k] * b[k];
  out[i] = sum;
}
kernel void fours(device const float4* a [[buffer(0)]], constant float4* b [[buffer(1)]], device float* out [[buffer(2)]], constant Sizes& s [[buffer(3)]],
                  uint i [[thread_position_in_grid]]) {
  float sum = 0;
  for (uint k = 0; k < s.count / 4; ++k) sum += dot(a[k + (i * s.pitch + s.start) / 4], b[k]);
  out[i] = sum;
}
kernel void scattered(device const float* a [[buffer(0)]], constant float* b [[buffer(1)]], device float* out [[buffer(2)]], constant Sizes& s [[buffer(3)]],
                      uint i [[thread_position_in_grid]]) {
  out[i * s.pitch + s.start] = a[i * 3u + s.start] + b[0];
}
"""


def run(vortex, tmp_path, device, source, kernel, grid, block, buffers, saved):
    (tmp_path / "k.metal").write_text(source)
    options = []
    for index, value in enumerate(buffers):
        if not isinstance(value, str):
            np.save(tmp_path / f"b{index}.npy", value)
            value = f"b{index}.npy"
        options += ["--buffer", f"{index}={value}"]
    vortex("run", tmp_path / "k.metal", "--kernel", kernel, "--grid", grid, "--block", block, "--device", device, *options, "--save", f"{saved}=out.npy", cwd=tmp_path)
    return np.load(tmp_path / "out.npy")


def element(a, index):
    index = np.asarray(index, "u8") % 2**32
    return np.where(index < a.size, a[np.minimum(index, a.size - 1)], 0)


@pytest.mark.parametrize("kernel", ["rows", "fours"])
@pytest.mark.parametrize("grid, block", [("64", "32"), ("37", "16"), ("9", "8"), ("128", "128")])
@pytest.mark.parametrize("count, pitch, start, missing", [(64, 64, 0, 0), (132, 160, 4, 0), (8, 8, 0, 30), (0, 8, 0, 0), (20, 0, 8, 3), (24, 2**26, 0, 0),
                                                        (40, 64, 2**32 - 16, 0), (28, 2**32 - 32, 4096, 7),
                                                        # rows that share sets of the cache
                                                        (200, 128, 0, 0), (300, 256, 4, 40), (140, 2**32 - 128, 8000, 0), (520, 0, 8, 12), (200, 1024, 2**32 - 100, 0)])
def test_threads_with_a_row_each(vortex, device, tmp_path, kernel, grid, block, count, pitch, start, missing):
    rng = np.random.default_rng()
    n = int(grid)
    a = rng.standard_normal(max(8, min(n * pitch + start + count, 9000) - missing)).astype("f4")
    if kernel == "fours":
        a = a[: a.size // 4 * 4]
    b = rng.standard_normal(max(count, 4)).astype("f4")
    got = run(vortex, tmp_path, device, ROWS, kernel, grid, block, [a, b, np.full(n, np.nan, "f4"), f"u32:{n},{count},{pitch},{start}"], 2)
    first = (np.arange(n, dtype="u8") * pitch + start) % 2**32
    k = np.arange(count, dtype="u8")
    if kernel == "rows":
        index = first[:, None] + k
    else:
        index = (first[:, None] // 4 + k // 4) % 2**32 * 4 + k % 4
    wide = element(a.astype("f8"), index) if kernel == "rows" else np.where(index < a.size, a.astype("f8")[np.minimum(index, a.size - 1)], 0)
    np.testing.assert_allclose(got, (wide * b[:count]).sum(axis=1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("pitch, start", [(1, 0), (1, 2**32 - 20), (2, 2**32 - 30), (2**32 - 1, 40), (0x10001, 0)])
def test_indices_that_wrap_between_threads(vortex, device, tmp_path, pitch, start):
    rng = np.random.default_rng()
    n = 48
    a, out = rng.standard_normal(200).astype("f4"), np.full(150, 7, "f4")
    got = run(vortex, tmp_path, device, ROWS, "scattered", str(n), "16", [a, np.array([2, 0, 0, 0], "f4"), out, f"u32:{n},0,{pitch},{start}"], 2)
    i = np.arange(n, dtype="u8")
    to, values = (i * pitch + start) % 2**32, element(a, i * 3 + start) + np.float32(2)
    for at, value in zip(to, values):
        if at < out.size:
            out[int(at)] = value
    np.testing.assert_array_equal(got, out)


def broken_off(t, n):
    r = 0
    for k in range(3, n, 7):
        r += k * t
        if r > 4000:
            break
    return r


def downward(t, n):
    r = 0
    for k in range(n, t, -3):
        r = r * 3 + k
    return r


def at_least_once(t, n):
    r = 0
    for k in range(t, max(n, t + 1), 2):
        r = r * 5 + k
    return r


def returned_from(t, n):
    """What was stored before; a thread whose number is not met stores the sum."""
    return sum(range(max(t - 1, 0))) if t < n else sum(range(n))


def last_kept(t, n):
    return sum(2 * k + t for k in range(n)) ^ (2 * (n - 1) + t if n else 9)


# The loop, and what it does for a thread `t` of 40 with the number n; of all threads of a threadgroup where they have a barrier. The compiler's
# interpreter is no judge: it runs what the reader counted.
LOOPS = {
    "for (uint k = t; k < n; k += 40) r += k ^ 5;": lambda t, n: sum(k ^ 5 for k in range(t, n, 40)),
    "for (uint k = 3; k < n; k += 7) { r += k * t; if (r > 4000) break; }": broken_off,
    "for (int k = -int(t); k < int(n); ++k) r += uint(k * k);": lambda t, n: sum(k * k for k in range(-t, n)),
    "for (int k = int(n); k > int(t); k -= 3) r = r * 3 + uint(k);": downward,
    "uint k = t; do { r = r * 5 + k; k += 2; } while (k < n);": at_least_once,
    "for (uint k = 0; k <= n; ++k) { if ((k & t) == 1) continue; r += k; }": lambda t, n: sum(k for k in range(n + 1) if k & t != 1),
    "for (uint k = 0; k < t; ++k) for (uint j = k; j < n; j += 4) r += j - k;": lambda t, n: sum(j - k for k in range(t) for j in range(k, n, 4)),
    "for (uint k = 0; k < n; ++k) { uint old = r; r = old + k; if (k == t) return; out[i] = old; }": returned_from,
    "uint last = 9; for (uint k = 0; k < n; ++k) { last = k * 2 + t; r += last; } r ^= last;": last_kept,
    "for (uint k = 0; k < n; ++k) { s[t] = r + k; threadgroup_barrier(mem_flags::mem_threadgroup); r += s[t / 2]; threadgroup_barrier(mem_flags::mem_threadgroup); }": None,
    "for (uint k = 2147483640u + t % 16; k < 2147483640u + n; ++k) r += k;": lambda t, n: sum(range(2147483640 + t % 16, 2147483640 + n)),
    "uint k = 4294967200u + t; do { r += k & 255; ++k; } while (k < 4294967200u + n);": lambda t, n: sum(4294967200 + k & 255 for k in range(t, max(n, t + 1))),
    "for (int k = -2147483640 - int(t % 8); k < -2147483640 + int(n); k += 2) r ^= uint(k);": lambda t, n: functools.reduce(operator.xor, range(-2147483640 - t % 8, -2147483640 + n, 2), 0),
    "for (ushort k = 0; k < n; ++k) r += k * 3u;": lambda t, n: sum(3 * k for k in range(n)),
    "for (uint k = 4294967290u; k > 4294967200u + n; --k) r += k;": lambda t, n: sum(range(4294967200 + n + 1, 4294967291)),
}


def together(threads, n):
    """The loop with barriers, of a threadgroup."""
    r = np.zeros(threads, "u4")
    for k in range(n):
        r = r + (r + np.uint32(k))[np.arange(threads) // 2]
    return r


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("block, count", [(40, 120), (64, 100)])
def test_loops(vortex, device, tmp_path, loop, block, count):
    """Numbers of rounds that all threads share, and that they do not."""
    source = HEAD + f"""
kernel void loops(device uint* out [[buffer(0)]], device const uint* numbers [[buffer(1)]], constant uint& shift [[buffer(2)]],
                  uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]]) {{
  threadgroup uint s[64];
  s[t] = 0;
  uint n = numbers[i >> shift], r = 0;
  out[i] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  {loop}
  out[i] = r;
}}"""
    numbers = np.random.default_rng().integers(0, 70, count).astype("u4")
    for shift in (0, 31) if "barrier" not in loop else (31,):
        arguments = [np.zeros(count, "u4"), numbers, f"u32:{shift}"]
        got = run(vortex, tmp_path, device, source, "loops", str(count), str(block), arguments, 0)
        if formula := LOOPS[loop]:
            want = np.array([formula(i % block, int(numbers[i >> shift])) % 2**32 for i in range(count)], "u4")
        else:
            want = np.concatenate([together(min(block, count - first), int(numbers[0])) for first in range(0, count, block)])
        np.testing.assert_array_equal(got, want)
