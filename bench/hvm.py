#!/usr/bin/env python3
"""Measures `hvm` on the programs of bench/hvm: millions of interactions per second of user time on one thread, words of heap per interaction, and
the speed-up of wall time on more threads. Prints a table for docs/performance.md.

  bench/hvm.py [--binary build/bin/hvm] [--samples 5] [--threads 2,4]

The first line of a program names the goal: the rate and the words per interaction that HVM4's C runtime was measured at for that kind of program,
on one thread of a virtual machine (± 30 %, user time as well: the kernel's clearing of memory is not in it). Samples of all programs are interleaved; the least time counts, since others disturb upwards only."""
import argparse
import os
import pathlib
import re
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


def run(binary, path, threads):
    """(wall seconds, user seconds, interactions, words of heap)"""
    flags = ["-C"] if " collapse: " in path.read_text().splitlines()[0] else []
    before, begin = os.times(), time.perf_counter()
    out = subprocess.run([binary, path, "-S", "-s", "-T", str(threads), *flags], check=True, capture_output=True, text=True).stdout
    wall, after = time.perf_counter() - begin, os.times()
    return wall, after.children_user - before.children_user, int(re.search(r"Itrs: (\d+)", out)[1]), int(re.search(r"Heap: (\d+)", out)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=ROOT / "build/bin/hvm")
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--threads", default="2")
    options = parser.parse_args()
    counts = [1] + [int(count) for count in options.threads.split(",") if count]
    programs = sorted((ROOT / "bench/hvm").glob("*.hvm4"))
    samples = {(path, count): [] for path in programs for count in counts}
    for _ in range(options.samples):
        for key, found in samples.items():
            found.append(run(options.binary, *key))
    print("| program | kind | M interactions/s | goal | words/interaction | goal |" + "".join(f" {count} threads |" for count in counts[1:]))
    print("|---|---|---|---|---|---|" + "---|" * (len(counts) - 1))
    for path in programs:
        rate, words, kind = re.match(r"// goal (\S+) (\S+) (\w+):", path.read_text()).groups()
        one = samples[path, 1]
        interactions, heap = one[0][2], min(sample[3] for sample in one)
        found = interactions / min(sample[1] for sample in one) / 1e6
        wall = min(sample[0] for sample in one)
        speedups = "".join(f" {wall / min(sample[0] for sample in samples[path, count]):.2f} × |" for count in counts[1:])
        print(f"| {path.stem} | {kind} | {found:.0f} ({found / float(rate):.2f} ×) | {rate} | {heap / interactions:.2f} | ≤ {float(words) / 2:.2f} |{speedups}")


if __name__ == "__main__":
    main()
