#!/usr/bin/env python3
"""Measures matrix products of Vortex on a GPU beside torch (cuBLAS; tf32 beside tf32 only), interleaved in one run, and prints medians and ratios.

  bench/gpu_matmul.py FOLDER [filter] [--samples 11] [--json PATH] [--quick]

FOLDER holds the artifacts of bench/kernels/gpu_matmul.vx and examples/memory_model/{pipelined_matmul,matmul}.vx, made as bench/gpu.py says. Every product is checked against float64 on fresh random data."""
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

SIZES = [(1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (3072, 3072, 3072), (5120, 5120, 5120), (4096, 11008, 4096), (1000, 1003, 999), (4099, 4097, 4101), (32, 4096, 4096)]
LARGE = (4096, 4096, 4096)
# kernel, type, whether w is given transposed, sizes
PRODUCTS = [("matmul_f32", "f32", False, SIZES), ("matmul_bf16", "bf16", False, SIZES), ("matmul_f16", "f16", False, SIZES),
            ("matmul_f32", "f32", False, [(8, 4096, 4096), (512, 512, 512)]), ("matmul_bf16", "bf16", False, [(64, 4096, 4096), (128, 4096, 4096), (256, 8192, 2048), (8, 4096, 4096)]),
            ("matmul_f16", "f16", False, [(16, 8192, 8192)]), ("matmul_bf16_turned", "bf16", True, [(2048, 2048, 2048), LARGE, (8192, 8192, 8192), (4099, 4097, 4101)]),
            ("matmul_f16_turned", "f16", True, [(2048, 2048, 2048), LARGE, (8192, 8192, 8192)]),
            ("linear_gelu", "bf16", False, [(8192, 16384, 4096), LARGE]), ("matmul_f64", "f64", False, [(2048, 2048, 2048)]), ("matmul_tf32", "tf32", False, [LARGE, (4099, 4097, 4101)]),
            ("matmul_tf32_turned", "tf32", True, [LARGE]), ("matmul_i8", "i8", False, [LARGE, (4099, 4097, 4101)]),
            ("matmul_i8_turned", "i8", True, [LARGE, (8192, 8192, 8192)]), ("matmul_f8", "f8e4m3", False, [LARGE]),
            ("matmul_f8_turned", "f8e4m3", True, [(2048, 2048, 2048), LARGE, (8192, 8192, 8192)]), ("pipelined_matmul", "f16", False, [LARGE]), ("matmul", "f32", False, [LARGE])]
QUICK = [(128, 264, 72), (17, 33, 65), (130, 131, 133), (5, 140, 1100)]
# Of the largest element: sums of K products rounded once to the type; tf32 rounds the operands.
TOLERANCE = {"f32": 2e-5, "bf16": 8e-3, "f16": 1e-3, "f64": 1e-13, "tf32": 1e-3, "i8": 0, "f8e4m3": 8e-3}
TARGETS = {("f32", LARGE): 0.8, ("bf16", LARGE): 1.0, ("f16", LARGE): 1.0}
DTYPES = DTYPES | {"tf32": torch.float32}


def operands(kind, shapes):
    if kind == "i8":
        return [torch.randint(-128, 128, shape, device="cuda", dtype=torch.int8) for shape in shapes]
    return [torch.rand(*shape, device="cuda", dtype=torch.float64 if kind == "f64" else torch.float32).mul(2).sub(1).to(DTYPES[kind]) for shape in shapes]


def peer(kind, x, w):
    """What torch has for it; none for integers of sizes that its matrix unit does not take."""
    if kind == "f8e4m3":  # sums in f32, as ours; the second operand along the depth only
        one = torch.ones(1, device="cuda")
        return (lambda: torch._scaled_mm(x, w, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=False)) if w.stride(0) == 1 else None
    if kind != "i8":
        return lambda: x @ w
    return (lambda: torch._int_mm(x, w)) if all(size % 8 == 0 and size > 16 for size in (*x.shape, *w.shape)) else None


def row(kernel, name, kind, turned, size, samples):
    m, n, k = size
    x, given = operands(kind, ((m, k), (n, k) if turned else (k, n)))
    w = given.T if turned else given
    torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
    ours, theirs = kernel.prepare(x, given), peer(kind, x, w)
    ours.results[0].fill_(77)  # what is not written shows
    expected = x.double() @ w.double()
    first = ours().clone()
    error = float((first.double() - expected).abs().max() / expected.abs().max())
    right = error <= TOLERANCE[kind] and torch.equal(first, ours())
    relative = float((first.double() - expected).norm() / expected.norm())
    del expected, first
    times = measure({"vortex": ours} | ({"torch": theirs} if theirs else {}), samples)
    seconds = {side: statistics.median(each) for side, each in times.items()}
    rate = {side: 2 * m * n * k / each * 1e-12 for side, each in seconds.items()}
    return {"name": f"{name.removeprefix('matmul_') if name != 'matmul' else 'f32 tile code'} {m}x{n}x{k}", "tflops": rate["vortex"], "torch": rate.get("torch"),
            "ratio": seconds["torch"] / seconds["vortex"] if theirs else None, "target": TARGETS.get((kind, size)) if name == "matmul_" + kind else None,
            "error": error, "relative_error": relative, "right": right}


def linear_row(kernel, size, samples):
    """A layer with bias and GELU (tanh form), beside cuBLASLt's own epilogue."""
    m, n, k = size
    x, w, bias = operands("bf16", ((m, k), (k, n), (n,)))
    ours, theirs = kernel.prepare(x, w, bias), lambda: torch._addmm_activation(bias, x, w, use_gelu=True)
    ours.results[0].fill_(77)
    expected = torch.nn.functional.gelu(x[:256].double() @ w.double() + bias.double(), approximate="tanh")
    first = ours().clone()
    error = float((first[:256].double() - expected).abs().max() / expected.abs().max())
    right = error <= TOLERANCE["bf16"] and torch.equal(first, ours()) and bool((first != 77).any(-1).all())
    seconds = {side: statistics.median(each) for side, each in measure({"vortex": ours, "torch": theirs}, samples).items()}
    rate = {side: 2 * m * n * k / each * 1e-12 for side, each in seconds.items()}
    return {"name": f"bf16 linear + GELU {m}x{n}x{k}", "tflops": rate["vortex"], "torch": rate["torch"], "ratio": seconds["torch"] / seconds["vortex"], "target": 1.05,
            "error": error, "relative_error": error, "right": right}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("filter", nargs="?", default="")
    parser.add_argument("--samples", type=int, default=11)
    parser.add_argument("--json")
    parser.add_argument("--quick", action="store_true", help="small sizes, for checking")
    options = parser.parse_args()
    torch.zeros(1, device="cuda")  # makes the context
    record = {"machine": torch.cuda.get_device_name(), "host": platform.node(), "torch": torch.__version__, "date": time.strftime("%Y-%m-%d %H:%M"),
              "command": " ".join(sys.argv), "rows": []}
    print(f"{record['machine']}, torch {record['torch']}, TFLOP/s\n{'':32} {'vortex':>7} {'torch':>7} {'ratio':>6} {'target':>6}  error")
    kernels = {}
    for name, kind, turned, sizes in PRODUCTS:
        if options.filter not in name:
            continue
        kernel = kernels.setdefault(name, None) or Kernel(options.folder, name)
        kernels[name] = kernel
        for size in QUICK if options.quick else sizes:
            result = linear_row(kernel, size, options.samples) if name == "linear_gelu" else row(kernel, name, kind, turned, size, options.samples)
            record["rows"].append(result)
            mark = "" if result["right"] else "  WRONG"
            mark += "  below target" if result["target"] and result["ratio"] < result["target"] else ""
            peers = f"{result['torch']:7.1f} {result['ratio']:6.3f}" if result["torch"] else f"{'-':>7} {'-':>6}"
            print(f"{result['name']:32} {result['tflops']:7.1f} {peers} {result['target'] or '':>6}  {result['error']:.1e}{mark}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(record, file, indent=1)
    return 0 if all(result["right"] for result in record["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main())
