#!/usr/bin/env python3
"""Measures a product in several builds beside torch (cuBLAS) on sizes drawn at random, interleaved, and prints the median and the worst.

  bench/gpu_sweep.py NAME=FOLDER... [--kernel matmul_bf16] [--count 200] [--seed 1] [--sizes MxNxK,...] [--json PATH]

FOLDERs hold artifacts of bench/kernels/gpu_matmul.vx, made as bench/gpu.py says; the first is the one that ratios are of. Rows, columns and depth are
1 to 16384, evenly by their logarithm, in every other size multiples of 8. Every result is compared with float64 over a poisoned tensor, two launches bit for bit."""
import argparse
import json
import os
import platform
import random
import statistics
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpu import Kernel, measure
from gpu_matmul import TOLERANCE, operands, peer


def draw(count, seed):
    numbers = random.Random(seed)
    sizes = [[int(2 ** numbers.uniform(0, 14)) for _ in range(3)] for _ in range(count)]
    return [[max(8, each // 8 * 8) for each in size] if index % 2 == 0 else size for index, size in enumerate(sizes)]


def row(kernels, kind, turned, size, samples):
    m, n, k = size
    x, given = operands(kind, ((m, k), (n, k) if turned else (k, n)))
    w = given.T if turned else given
    torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
    exact = x.double() @ w.double()
    sides, wrong = {}, []
    for name, kernel in kernels.items():
        sides[name] = ours = kernel.prepare(x, given)
        ours.results[0].fill_(77)
        first = ours().clone()
        ours.results[0].fill_(78)
        if not torch.equal(first, ours()) or not float((first.double() - exact).abs().max()) <= TOLERANCE[kind] * float(exact.abs().max()):
            wrong.append(name)
    try:
        theirs = peer(kind, x, w)
        if theirs:
            theirs()
            sides["torch"] = theirs
    except RuntimeError:
        pass  # sizes that it refuses
    del exact
    return {"size": size, "wrong": wrong, "us": {side: round(statistics.median(each) * 1e6, 2) for side, each in measure(sides, samples).items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--kernel", default="matmul_bf16")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--sizes", default="")
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.zeros(1, device="cuda")  # makes the context
    kernels = {name: Kernel(folder, options.kernel) for name, folder in (each.split("=", 1) for each in options.folders)}
    first = next(iter(kernels))
    parts = options.kernel.split("_")
    kind = {"f8": "f8e4m3"}.get(parts[1], parts[1])
    named = [[int(extent) for extent in each.split("x")] for each in options.sizes.split(",") if each]
    rows = []
    for size in named + draw(options.count, options.seed):
        rows.append(row(kernels, kind, parts[-1] == "turned", size, options.samples))
        if len(rows) <= len(named) or rows[-1]["wrong"]:
            print(options.kernel, "x".join(map(str, size)), rows[-1]["us"], *["WRONG:"] * bool(rows[-1]["wrong"]), *rows[-1]["wrong"], flush=True)
    for other in [*kernels, "torch"]:
        ratios = sorted((each["us"][other] / each["us"][first], each["size"]) for each in rows[len(named):] if other in each["us"])
        if other != first and ratios:
            print(f"{options.kernel}, {first} to {other}: median {statistics.median(ratio for ratio, _ in ratios):.2f} of {len(ratios)}, worst",
                  ", ".join(f"{ratio:.2f} at {'x'.join(map(str, size))}" for ratio, size in ratios[:8]), flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"machine": torch.cuda.get_device_name(), "host": platform.node(), "torch": torch.__version__, "command": " ".join(sys.argv), "rows": rows}, file)
    return 1 if any(each["wrong"] for each in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
