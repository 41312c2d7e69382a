#!/usr/bin/env python3
"""Measures bench/kernels/ordinary.vx on the CPU: kernels as users of NumPy and PyTorch write them, beside NumPy and a copy of the same bytes.

  ./vortex python bench/ordinary.py [filter] [--threads 1] [--samples 7] [--processor-time] [--json PATH]

Every result is compared with NumPy in float64. A sample of each side in turn; medians. "of copy": the time of a copy of as many bytes as the kernel reads
and writes once, divided by the kernel's; "of NumPy": NumPy's time divided by it. Rows are sorted by the former."""
import argparse
import json
import os
import pathlib
import statistics
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
F32, F64, U8, I32 = np.float32, np.float64, np.uint8, np.int32
RANDOM = np.random.default_rng()


def floats(*shape):
    return RANDOM.standard_normal(shape, dtype=F32)


def pixels(*shape):
    return RANDOM.integers(0, 256, shape, dtype=U8)


def layer_norm(x, w, b):
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(1, keepdims=True) + x.dtype.type(1e-5)) * w + b


def layer_norm_backward(x, w, g):
    centred = x - x.mean(1, keepdims=True)
    scale = 1 / np.sqrt((centred * centred).mean(1, keepdims=True) + x.dtype.type(1e-5))
    normal, scaled = centred * scale, g * w
    dx = (scaled - scaled.mean(1, keepdims=True) - normal * (scaled * normal).mean(1, keepdims=True)) * scale
    return dx, (g * normal).sum(0), g.sum(0)


def normalized(axes, weights=None):
    def run(x, *rest):
        centred = x - x.mean(axes, keepdims=True)
        y = centred / np.sqrt((centred * centred).mean(axes, keepdims=True) + x.dtype.type(1e-5))
        return y * rest[0].reshape(weights) + rest[1].reshape(weights) if rest else y
    return run


def softmax(axis):
    def run(x):
        e = np.exp(x - x.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)
    return run


def log_sum_exp(x):
    top = x.max(1)
    return np.log(np.exp(x - top[:, None]).sum(1)) + top


def rotary(x, c, s):
    d = x.shape[-1] // 2
    low, high, c, s = x[..., :d], x[..., d:], c[None, :, None], s[None, :, None]
    return np.concatenate([low * c - high * s, high * c + low * s], -1)


def interpolated(x):
    return np.stack([x[:, :-1], (x[:, :-1] + x[:, 1:]) * x.dtype.type(0.5)], -1)


def scattered(x, at, out):
    np.add.at(out, at, x)
    return out


def histogram(x, bins):
    bins += np.bincount(x, minlength=256).astype(bins.dtype)
    return bins


N = 1 << 22
# Name: arguments, the function in NumPy (which gets float64 for checks), relative error allowed.
WORKS = {
    "layer_norm": (lambda: [floats(4096, 1024), floats(1024), floats(1024)], layer_norm),
    "layer_norm_backward": (lambda: [floats(4096, 1024), floats(1024), floats(4096, 1024)], layer_norm_backward),
    "batch_norm": (lambda: [floats(16, 64, 3136), floats(64), floats(64)], normalized((0, 2), (1, -1, 1))),
    "group_norm": (lambda: [floats(16, 16, 8, 3136), floats(16, 8), floats(16, 8)], normalized((2, 3), (1, 16, 8, 1))),
    "group_norm_of_means": (lambda: [floats(16, 16, 8, 3136)], normalized((2, 3))),
    "instance_norm": (lambda: [floats(16, 64, 3136)], normalized(2)),
    "rms_norm": (lambda: [floats(4096, 1024), floats(1024)], lambda x, w: x / np.sqrt((x * x).mean(1, keepdims=True) + x.dtype.type(1e-5)) * w),
    "unit_columns": (lambda: [floats(4096, 1024)], lambda x: x / np.sqrt((x * x).sum(0, keepdims=True))),
    "standardize_columns": (lambda: [floats(4096, 1024)], lambda x: (x - x.mean(0)) / x.std(0)),
    "softmax": (lambda: [floats(4096, 1024)], softmax(1)),
    "softmax_columns": (lambda: [floats(4096, 1024)], softmax(0)),
    "softmax_middle": (lambda: [floats(16, 256, 1024)], softmax(1)),
    "log_softmax": (lambda: [floats(4096, 1024)], lambda x: x - log_sum_exp(x)[:, None]),
    "log_sum_exp": (lambda: [floats(4096, 1024)], log_sum_exp),
    "cross_entropy": (lambda: [floats(4096, 1024), RANDOM.integers(0, 1024, 4096).astype(I32)], lambda x, t: log_sum_exp(x) - x[np.arange(len(x)), t]),
    "copied": (lambda: [floats(N)], lambda x: x.copy()),
    "clipped": (lambda: [floats(N)], lambda x: np.clip(x, -1, 1)),
    "chosen": (lambda: [floats(N), floats(N)], lambda x, y: np.where(x > 0, x * 2, y)),
    "sine_cosine": (lambda: [floats(N)], lambda x: np.sin(x) * np.cos(x)),
    "power": (lambda: [floats(N)], lambda x: np.power(np.abs(x), x.dtype.type(1.7))),
    "silu_gate": (lambda: [floats(4096, 1024), floats(4096, 1024)], lambda x, y: x / (1 + np.exp(-x)) * y),
    "pixels": (lambda: [pixels(N)], lambda x: x.astype(F32) / F32(255)),
    "quantized": (lambda: [floats(N)], lambda x: np.clip(np.floor(x * F32(40) + F32(128.5)), 0, 255).astype(U8)),
    "widened": (lambda: [RANDOM.integers(-9999, 9999, N).astype(np.int16)], lambda x: x.astype(I32) * 3),
    "near": (lambda: [floats(N), floats(N)], lambda x, y: np.abs(x - y) < 0.5),
    "remainder": (lambda: [RANDOM.integers(0, 1 << 30, N).astype(I32)], lambda x: np.fmod(x, 7)),
    "bias_rows": (lambda: [floats(4096, 1024), floats(1024)], lambda x, b: np.maximum(x + b, 0)),
    "bias_channels": (lambda: [floats(16, 64, 56, 57), floats(64), floats(57)], lambda x, b, r: x + b[None, :, None, None] * r),
    "complex_product": (lambda: [floats(N, 2), floats(N, 2)], lambda x, y: np.stack([x[:, 0] * y[:, 0] - x[:, 1] * y[:, 1], x[:, 0] * y[:, 1] + x[:, 1] * y[:, 0]], 1)),
    "transposed": (lambda: [floats(2048, 2048)], lambda x: x.T.copy()),
    "permuted_210": (lambda: [floats(128, 160, 192)], lambda x: np.ascontiguousarray(x.transpose(2, 1, 0))),
    "permuted_3210": (lambda: [floats(32, 32, 64, 64)], lambda x: np.ascontiguousarray(x.transpose(3, 2, 1, 0))),
    "permuted_0213": (lambda: [floats(8, 256, 16, 128)], lambda x: np.ascontiguousarray(x.transpose(0, 2, 1, 3))),
    "planes_of_pixels": (lambda: [pixels(2048, 2048, 3)], lambda x: np.ascontiguousarray(x.transpose(2, 0, 1))),
    "pixels_of_planes": (lambda: [pixels(3, 2048, 2048)], lambda x: np.ascontiguousarray(x.transpose(1, 2, 0))),
    "image_to_planes": (lambda: [pixels(1024, 1024, 3), floats(3), np.abs(floats(3)) + F32(1)], lambda x, m, s: np.ascontiguousarray(((x.astype(F32) / F32(255) - m) / s).transpose(2, 0, 1))),
    "gray": (lambda: [pixels(2048, 2048, 3), np.abs(floats(3))], lambda x, w: (x.astype(F32) * w).sum(2)),
    "repeated": (lambda: [floats(16, 256, 256)], lambda x: x.repeat(2, 1).repeat(2, 2)),
    "repeated_rows": (lambda: [floats(1024, 1024)], lambda x: x.repeat(3, 0)),
    "tiled": (lambda: [floats(1024, 1024)], lambda x: np.tile(x, (1, 4))),
    "concatenated": (lambda: [floats(2048, 1024), floats(2048, 1024)], lambda x, y: np.concatenate([x, y], 1)),
    "padded": (lambda: [floats(64, 224, 224)], lambda x: np.pad(x, ((0, 0), (1, 1), (1, 1)))),
    "rolled": (lambda: [floats(2048, 2048)], lambda x: np.roll(x, -5, 1)),
    "rotary": (lambda: [floats(2, 512, 32, 128), floats(512, 64), floats(512, 64)], rotary),
    "differences": (lambda: [floats(2048, 2048)], lambda x: x[:, 1:] - x[:, :-1]),
    "shuffled_channels": (lambda: [floats(16, 8, 8, 3136)], lambda x: np.ascontiguousarray(x.transpose(0, 2, 1, 3))),
    "pixel_shuffle": (lambda: [floats(4, 16, 2, 2, 128, 128)], lambda x: x.transpose(0, 1, 4, 2, 5, 3).reshape(4, 16, 256, 256)),
    "patches": (lambda: [floats(8, 3, 14, 16, 14, 16)], lambda x: x.transpose(0, 2, 4, 1, 3, 5).reshape(8, 196, 768)),
    "one_hot": (lambda: [RANDOM.integers(0, 1024, 4096).astype(I32), floats(1024)], lambda t, x: np.eye(1024, dtype=F32)[t]),
    "outer_product": (lambda: [floats(2048), floats(2048)], lambda x, y: np.outer(x, y)),
    "distances": (lambda: [floats(512, 32), floats(512, 32)], lambda x, y: np.sqrt(((x[:, None] - y) ** 2).sum(2))),
    "causal": (lambda: [floats(4, 1024, 1024)], np.tril),
    "max_pool": (lambda: [floats(64, 112, 2, 112, 2)], lambda x: x.max((2, 4))),
    "mean_pool": (lambda: [floats(64, 56, 4, 56, 4)], lambda x: x.mean((2, 4))),
    "global_pool": (lambda: [floats(32, 512, 196)], lambda x: x.mean(2)),
    "interpolated": (lambda: [floats(1024, 2049)], interpolated),
    "sum_all": (lambda: [floats(4096, 1024)], lambda x: x.sum()),
    "sum_0": (lambda: [floats(128, 160, 192)], lambda x: x.sum(0)),
    "sum_1": (lambda: [floats(128, 160, 192)], lambda x: x.sum(1)),
    "sum_2": (lambda: [floats(128, 160, 192)], lambda x: x.sum(2)),
    "sum_01": (lambda: [floats(128, 160, 192)], lambda x: x.sum((0, 1))),
    "sum_02": (lambda: [floats(128, 160, 192)], lambda x: x.sum((0, 2))),
    "sum_12": (lambda: [floats(128, 160, 192)], lambda x: x.sum((1, 2))),
    "column_moments": (lambda: [floats(4096, 1024)], lambda x: (x.mean(0), x.var(0))),
    "channel_moments": (lambda: [floats(16, 64, 3136)], lambda x: (x.mean((0, 2)), x.var((0, 2)))),
    "bytes_of_columns": (lambda: [pixels(4096, 1024)], lambda x: x.sum(0, dtype=I32)),
    "last_of_three": (lambda: [floats(N // 3, 3)], lambda x: np.sqrt((x * x).sum(1))),
    "arg_max_rows": (lambda: [floats(4096, 1024)], lambda x: x.argmax(1).astype(I32)),
    "arg_max_columns": (lambda: [floats(4096, 1024)], lambda x: x.argmax(0).astype(I32)),
    "cosine": (lambda: [floats(4096, 1024), floats(4096, 1024)], lambda x, y: (x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(1))),
    "mean_squared_error": (lambda: [floats(N), floats(N)], lambda x, y: ((x - y) ** 2).mean()),
    "cumsum_vector": (lambda: [floats(N)], lambda x: x.cumsum()),
    "cumsum_rows": (lambda: [floats(4096, 1024)], lambda x: x.cumsum(1)),
    "cumsum_columns": (lambda: [floats(4096, 1024)], lambda x: x.cumsum(0)),
    "gathered": (lambda: [floats(1 << 16, 64), RANDOM.integers(0, 1 << 16, 1 << 16).astype(I32), np.empty((1 << 16, 64), F32)], lambda x, t, out: x[t]),
    "flipped": (lambda: [floats(2048, 2048), np.empty((2048, 2048), F32)], lambda x, out: x[:, ::-1].copy()),
    "scattered": (lambda: [floats(1 << 14, 64), RANDOM.integers(0, 1 << 12, 1 << 14).astype(I32), np.zeros((1 << 12, 64), F32)], scattered),
    "histogram": (lambda: [pixels(N), np.zeros(256, np.uint32)], histogram),
}
ADDED, WRITTEN = ("scattered", "histogram"), ("gathered", "flipped")  # to the last argument
CHECKED_IN_F32 = ("quantized", "near")  # a rounding decides


def check(name, results, arguments, reference):
    wide = arguments if name in CHECKED_IN_F32 else [a.astype(F64) if a.dtype == F32 else a for a in arguments]
    expected = reference(*[a.copy() for a in wide])
    expected = expected if isinstance(expected, tuple) else (expected,)
    for got, want in zip(results, expected, strict=True):
        got, want = np.asarray(got), np.asarray(want)
        assert got.shape == want.shape, (name, got.shape, want.shape)
        if name == "quantized":  # halves
            assert np.abs(got.astype(int) - want.astype(int)).max() <= 1 and (got != want).mean() < 1e-3, name
        elif got.dtype == F32:
            scale = np.abs(want).max()
            np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5 * scale, err_msg=name)
        else:
            np.testing.assert_array_equal(got, want, err_msg=name)


def timed(run, clock, least=0.004):
    """Seconds of one run, of as many as take a while."""
    begin = clock()
    run()
    count = max(1, int(least / max(clock() - begin, 1e-7)))
    begin = clock()
    for _ in range(count):
        run()
    return (clock() - begin) / count


def measure(name, program, copies, samples, clock):
    make, reference = WORKS[name]
    arguments = make()
    kernel = getattr(program, name)
    if name in ADDED + WRITTEN:
        own = [a.copy() for a in arguments]
        kernel(*own)
        check(name, (own[-1],), arguments, reference)
        moved = sum(a.nbytes for a in arguments) + (arguments[-1].nbytes if name in ADDED else 0)
        run = kernel.prepare(*own)
    else:
        results = kernel(*arguments)
        results = results if isinstance(results, tuple) else (results,)
        check(name, results, arguments, reference)
        moved = sum(np.asarray(a).nbytes for a in [*arguments, *results])
        run = kernel.prepare(*arguments)
    source, target = np.ones(moved // 8 + 1, F32), np.empty(moved // 8 + 1, F32)
    copy = copies.copied.prepare(source, out=target)
    sides = {"vortex": run, "numpy": lambda: reference(*arguments), "copy": copy}
    times = {side: [] for side in sides}
    for _ in range(samples):
        for side in RANDOM.permutation(list(sides)):
            times[side].append(timed(sides[side], clock))
    median = {side: statistics.median(each) for side, each in times.items()}
    return {"name": name, "us": median["vortex"] * 1e6, "bytes": moved, "of copy": median["copy"] / median["vortex"], "of NumPy": median["numpy"] / median["vortex"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filter", nargs="?", default="")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--samples", type=int, default=7)
    parser.add_argument("--processor-time", action="store_true", help="of all threads, where others want the cores")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if options.threads:  # before the runtime counts its cores
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    import vortex
    program = vortex.compile(ROOT / "bench/kernels/ordinary.vx")
    rows = []
    for name in WORKS:
        if options.filter in name:
            try:
                rows.append(measure(name, program, program, options.samples, time.process_time if options.processor_time else time.perf_counter))
                print(f"{name}: {rows[-1]['of copy']:.2f} of copy, {rows[-1]['of NumPy']:.2f} of NumPy", file=sys.stderr)
            except AssertionError as error:
                print(f"WRONG {name}: {error}", file=sys.stderr)
    rows.sort(key=lambda row: row["of copy"])
    print("| kernel | µs | of copy | of NumPy |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row['name']} | {row['us']:.0f} | {row['of copy']:.2f} | {row['of NumPy']:.2f} |")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
