#!/usr/bin/env python3
"""Kernels in Metal source on one core: the lecture's products, products of 512³ beside ours of the same size, a reduction beside ours of the same form,
and the reader, cold and from the cache. Medians of interleaved samples; `--processor-time` counts what
the processor worked, for machines that others use too. The load is printed with the figures.

    python3 bench/metal.py [--samples COUNT] [--processor-time]
"""
import argparse
import os
import subprocess

from sides import BIN, ROOT, Side, machine, measure, usable_cores

LECTURE, N, COUNT = (32, 4096, 4128), 512, 1 << 24
METAL = BIN / "metal"
GROUPS = [  # sides that compute the same, each with what it does in a run, and the unit
    ([("lecture naive", [METAL, "naive", *LECTURE]), ("lecture float4", [METAL, "vec4", *LECTURE]), ("lecture float4x4", [METAL, "mat4", *LECTURE])],
     2 * LECTURE[0] * LECTURE[1] * LECTURE[2], "GFLOP/s"),
    ([("tiled 512³", [METAL, "tiled", N]), ("simdgroup_matrix 512³", [METAL, "fragments", N]), ("ours 512³", [METAL, "own-product", N])], 2 * N**3, "GFLOP/s"),
    ([("reduction", [METAL, "reduce", COUNT]), ("ours reduction", [METAL, "own-reduce", COUNT])], 4 * COUNT, "GB/s"),
    ([("reader, cold", [METAL, "cold"]), ("reader, cached", [METAL, "cached"])], None, "ms"),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=15)
    parser.add_argument("--processor-time", action="store_true")
    options = parser.parse_args()
    env = {"VORTEX_BENCH_PROCESSOR_TIME": "1"} if options.processor_time else {}
    subprocess.run(["ninja", "-C", ROOT / "build", "vortex_bench_metal"], check=True, stdout=subprocess.DEVNULL)
    facts = machine()
    print(f"{facts['cpu']}, {facts['cores']} cores, one used, {facts['vector']}; {'processor time' if env else 'clock'}; load {os.getloadavg()[0]:.1f}\n\n| kernel | median | half the quartiles' distance |\n|---|---|---|")
    for group, work, unit in GROUPS:
        sides = [Side(name, argv, env, cores=usable_cores()[:1]) for name, argv in group]
        agree = measure(sides, options.samples)
        for side in sides:
            value = side.median / 1e6 if work is None else work / side.median
            print(f"| {side.name} | {value:.3g} {unit} | {side.spread:.0%} |", flush=True)
        if not agree:
            raise SystemExit("results differ")
    print(f"\nload at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
