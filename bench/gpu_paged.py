#!/usr/bin/env python3
"""Measures the kernels of std/nn/paged_attention.vx on a GPU beside a copy of the bytes of keys and values, interleaved in one run.

  bench/gpu_paged.py FOLDER [--samples 7]

FOLDER holds the artifacts of bench/kernels/paged.vx, made as bench/gpu.py says. bf16, heads of 128 elements, pages of 16 tokens in random order; both launches are timed. Three heads of every case are
compared with float64 over poisoned results, two launches bit for bit. "parts" is per-thread code, "groups" matrix units; `paged_attention` takes the latter from three heads that share keys on."""
import argparse
import math
import os
import statistics
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpu import Kernel, measure

PAGE, WIDTH = 16, 128
CASES = [  # sequences, heads of keys, tokens, query heads that share one of keys, splits
    (64, 32, 4096, 1, 1), (1, 32, 16384, 1, 32), (8, 8, 8192, 1, 8), (64, 8, 4096, 2, 1), (8, 8, 8192, 2, 8), (64, 8, 4096, 3, 1), (8, 8, 8192, 3, 8),
    (64, 8, 4096, 8, 1), (8, 8, 8192, 8, 8), (1, 8, 32768, 8, 32), (16, 8, 4100, 8, 4)]


def case(folder, kernel, sequences, heads, tokens, shared, splits):
    """The two launches, and whether what they leave is right."""
    device, blocks = "cuda", math.ceil(tokens / PAGE)
    pages = sequences * blocks
    keys, values = (torch.randn(pages, PAGE, heads, WIDTH, device=device).bfloat16() for _ in range(2))
    table = torch.randperm(pages, device=device).reshape(sequences, blocks)
    q = torch.randn(sequences, heads, shared, WIDTH, device=device).bfloat16()
    lengths = torch.full((sequences,), tokens, device=device)
    sums = torch.full((sequences, heads, splits, shared, WIDTH), math.nan, device=device)
    maxima, totals = (torch.full((sequences, heads, splits, shared), math.nan, device=device) for _ in range(2))
    out = torch.full_like(q, math.nan)
    cache = (keys, values, table.to(torch.uint32), lengths.to(torch.uint32))
    scale = WIDTH**-0.5
    launches = [Kernel(folder, f"{kernel}-bf16-{shared}-{WIDTH}").prepare(q, cache, scale, sums, maxima, totals),
                Kernel(folder, f"combine_parts-bf16-{shared}-{WIDTH}").prepare(sums, maxima, totals, out)]

    def run():
        for launch in launches:
            launch()

    run()
    first = out.clone()
    out.fill_(math.nan)
    run()
    right = torch.equal(first, out)
    for sequence, head in ((0, 0), (sequences - 1, heads - 1), (sequences // 2, heads // 2)):
        k, v = (each[table[sequence]].reshape(-1, heads, WIDTH)[:tokens, head].double() for each in (keys, values))
        exact = torch.softmax(q[sequence, head].double() @ k.T * scale, -1) @ v
        right &= bool(((out[sequence, head].double() - exact).abs() <= 1e-3 + 2**-7 * exact.abs()).all())  # bf16 has half of 2^-8
    half = keys.view(-1), torch.empty_like(values).view(-1)
    return run, lambda: half[1].copy_(half[0]), right, 2 * sequences * tokens * heads * WIDTH * 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--samples", type=int, default=7)
    options = parser.parse_args()
    torch.zeros(1, device="cuda")  # makes the context
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n| sequences × heads of keys × tokens, query heads per head of keys, splits | kernel | µs | GB/s | of copy |")
    fine = True
    for sequences, heads, tokens, shared, splits in CASES:
        for kernel in ("attend_parts", "attend_groups") if shared > 1 else ("attend_parts",):
            run, copy, right, size = case(options.folder, kernel, sequences, heads, tokens, shared, splits)
            seconds = {side: statistics.median(each) for side, each in measure({"vortex": run, "copy": copy}, options.samples).items()}
            fine &= right
            print(f"| {sequences} × {heads} × {tokens}, {shared}, {splits} | {kernel} | {seconds['vortex'] * 1e6:.1f} | {size / seconds['vortex'] * 1e-9:.0f} | "
                  f"{seconds['copy'] / seconds['vortex']:.2f} |{'' if right else ' WRONG'}", flush=True)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
