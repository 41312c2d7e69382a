#!/usr/bin/env python3
"""Measures matrix products of Vortex on a GPU beside torch (cuBLAS, no tf32), interleaved in one run, and prints medians and ratios.

  bench/gpu_matmul.py FOLDER [--samples 11] [--json PATH] [--quick]

FOLDER is made from bench/kernels/gpu_matmul.vx as bench/gpu.py says. Every product is checked against float64 on fresh random data."""
import argparse
import json
import os
import platform
import statistics
import sys
import time

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpu import DTYPES, Kernel, measure

SIZES = [(1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (1000, 1003, 999), (4099, 4097, 4101), (32, 4096, 4096)]
QUICK = [(128, 264, 72), (17, 33, 65)]
# Of the largest element: sums of K products rounded once to the type.
TOLERANCE = {"f32": 2e-5, "bf16": 8e-3, "f16": 1e-3}
TARGETS = {("f32", (4096, 4096, 4096)): 0.8, ("bf16", (4096, 4096, 4096)): 0.5}


def row(kernel, kind, size, samples):
    m, n, k = size
    x, w = (torch.rand(*shape, device="cuda").mul(2).sub(1).to(DTYPES[kind]) for shape in ((m, k), (k, n)))
    ours = kernel.prepare(x, w)
    expected = x.double() @ w.double()
    error = float((ours().double() - expected).abs().max() / expected.abs().max())
    del expected
    times = measure({"vortex": ours, "torch": lambda: x @ w}, samples)
    seconds = {name: statistics.median(each) for name, each in times.items()}
    rate = {name: 2 * m * n * k / each * 1e-12 for name, each in seconds.items()}
    return {"name": f"{kind} {m}x{n}x{k}", "tflops": rate["vortex"], "torch": rate["torch"], "ratio": seconds["torch"] / seconds["vortex"],
            "target": TARGETS.get((kind, size)), "error": error, "right": error <= TOLERANCE[kind]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--samples", type=int, default=11)
    parser.add_argument("--json")
    parser.add_argument("--quick", action="store_true", help="small sizes, for checking")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.zeros(1, device="cuda")  # makes the context
    record = {"machine": torch.cuda.get_device_name(), "host": platform.node(), "torch": torch.__version__, "date": time.strftime("%Y-%m-%d %H:%M"),
              "command": " ".join(sys.argv), "rows": []}
    print(f"{record['machine']}, torch {record['torch']}, TFLOP/s\n{'':22} {'vortex':>7} {'torch':>7} {'ratio':>6} {'target':>6}  error")
    for kind in TOLERANCE:
        kernel = Kernel(options.folder, "matmul_" + kind)
        for size in QUICK if options.quick else SIZES:
            result = row(kernel, kind, size, options.samples)
            record["rows"].append(result)
            mark = "" if result["right"] else "  WRONG"
            mark += "  below target" if result["target"] and result["ratio"] < result["target"] else ""
            print(f"{result['name']:22} {result['tflops']:7.1f} {result['torch']:7.1f} {result['ratio']:6.3f} {result['target'] or '':>6}  "
                  f"{result['error']:.1e}{mark}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(record, file, indent=1)
    return 0 if all(result["right"] for result in record["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main())
