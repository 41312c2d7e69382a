#!/usr/bin/env python3
"""Measures products of a matrix with one vector or a few on a GPU beside torch (cuBLAS), interleaved in one run.

  bench/gpu_vectors.py NAME=FOLDER... [--samples 7] [--filter TEXT] [--few]

FOLDERs hold artifacts of bench/kernels/vectors.vx, made as bench/gpu.py says; the first is the one that ratios are of. `column`: [M, K] @ [K], `row`: [K] @ [K, N]; turned:
the matrix is given transposed; `--few`: the kernels whose extents only the launch knows, of 1 to 16 vectors. "of copy": bytes of the matrix per second beside those that a copy of
as many bytes reads and writes. Several matrices take turns, so that none is in the cache. Every result is compared with float64 over a poisoned tensor, two launches
bit for bit."""
import argparse
import os
import statistics
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpu import DTYPES, Kernel, measure

SIZES = [(4096, 4096), (32000, 4096), (4096, 32000), (16384, 16384), (4302, 6905), (128, 1048576), (1048576, 64), (5003, 8192)]
BEYOND_CACHE = 400e6  # bytes


def turns(calls):
    """One of the calls after the other."""
    state = [0]

    def run():
        state[0] = (state[0] + 1) % len(calls)
        return calls[state[0]]()

    return run


def row(sides, name, kind, kept, depth, vectors, samples):
    few, turned = name.startswith(("columns", "rows")), name.endswith("turned")
    across = name == "row" or name == "rows" or name == "column_turned"  # the depth comes first
    count = max(1, min(8, int(BEYOND_CACHE / (kept * depth * DTYPES[kind].itemsize))))
    shape = (depth, kept) if across else (kept, depth)
    matrices = [torch.rand(shape, device="cuda").mul(2).sub(1).to(DTYPES[kind]) for _ in range(count)]
    given = (depth,) if not few else (depth, vectors) if name == "columns" else (vectors, depth)
    v = torch.rand(given, device="cuda").mul(2).sub(1).to(DTYPES[kind])

    def peer(w, v):
        m = w.T if across else w  # [kept, depth]
        return lambda: m @ v if not few or name == "columns" else v @ m.T

    expected = peer(matrices[0].double(), v.double())()
    works, wrong = {}, []
    for side, folder in sides.items():
        kernel = Kernel(folder, f"{name}_{kind}")
        calls = [kernel.prepare(w, v) for w in matrices]
        calls[0].results[0].fill_(77)
        first = calls[0]().clone()
        calls[0].results[0].fill_(78)
        limit = (1e-5 if kind == "f32" else 8e-3) * float(expected.abs().max())
        if not torch.equal(first, calls[0]()) or not float((first.double() - expected).abs().max()) <= limit:
            wrong.append(side)
        works[side] = turns(calls)
    works["torch"] = turns([peer(w, v) for w in matrices])
    half = [(w.view(-1)[:w.numel() // 2], torch.empty_like(w.view(-1)[:w.numel() // 2])) for w in matrices]
    works["copy"] = turns([lambda a=a, b=b: b.copy_(a) for a, b in half])
    us = {side: statistics.median(each) * 1e6 for side, each in measure(works, samples).items()}
    first = next(iter(sides))
    print(f"| {name} {kind} | {kept} × {depth}{f', {vectors}' if few else ''} | " + " | ".join(f"{us[side]:.1f}" for side in works) +
          f" | {us['copy'] / us[first]:.2f} | {us['torch'] / us[first]:.2f} |" + (f" WRONG: {wrong}" if wrong else ""), flush=True)
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--samples", type=int, default=7)
    parser.add_argument("--filter", default="")
    parser.add_argument("--few", action="store_true")
    options = parser.parse_args()
    torch.zeros(1, device="cuda")  # makes the context
    sides = dict(each.split("=", 1) for each in options.folders)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, µs\n| kernel | kept × depth | {' | '.join(sides)} | torch | copy | of copy | of torch |")
    right = True
    for kind in ("f32", "bf16"):
        for name in ("columns", "rows", "rows_turned") if options.few else ("column", "column_turned", "row", "row_turned"):
            for kept, depth in SIZES[:5] if options.few else SIZES:
                for vectors in (1, 4, 16) if options.few else (1,):
                    if options.filter in f"{name}_{kind}":
                        right &= row(sides, name, kind, kept, depth, vectors, options.samples)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
