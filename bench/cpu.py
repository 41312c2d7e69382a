#!/usr/bin/env python3
"""Measures Vortex on the CPU against its peers, all sides interleaved in one run, and prints medians and ratios.

  bench/cpu.py [filter] [--samples 15] [--save]      --save also writes bench/results/cpu-<machine>.json

Peers: OpenBLAS, NumPy, PoCL (apt packages of the line `bench:` in tools/dev/packages.txt) and a copy of our own. A ratio above 1 means that
Vortex is faster. A side that is not installed or not built is shown as –."""
import argparse
import datetime
import json
import os
import re
import subprocess
import sys

import compile_times
from sides import BIN, ROOT, Side, best_openblas_core, machine, measure, usable_cores

OURS = BIN / "ours"
MB = 64
ROWS, COLUMNS = 16384, 1024  # 64 MB of f32
PYTHON = ROOT / ".venv/bin/python"


def case(name, amount, unit, ours, peers, target, cores=None, copy=False):
    """amount: operations or bytes per sample, so that amount / nanoseconds is in G<unit>/s. target: the ratio we want."""
    return {"name": name, "amount": amount, "unit": unit, "ours": ours, "peers": peers, "target": target, "cores": cores, "copy": copy}


def matmul_cases(core):
    everything = usable_cores()
    for size in (1024, 2048):
        for cores in {1: everything[:1], len(everything): everything}.values():
            peer = ("OpenBLAS", [BIN / "openblas", size, len(cores)], {"OPENBLAS_CORETYPE": core or ""})
            yield case(f"matmul f32 {size}³, {len(cores)} thread{'s' * (len(cores) > 1)}", 2 * size**3, "FLOP", ["matmul", size], [peer], 0.85,
                       cores=cores)


def other_matmul_cases(core):
    """Shapes that are not large squares, on all cores: rows × columns × depth."""
    cores = usable_cores()
    for m, n, k in ((256, 256, 256), (512, 512, 512), (1000, 1003, 999), (64, 4096, 4096), (4096, 64, 4096), (4096, 4096, 64), (1, 4096, 4096),
                    (4096, 1, 4096)):
        peer = ("OpenBLAS", [BIN / "openblas", m, len(cores), n, k], {"OPENBLAS_CORETYPE": core or ""})
        yield case(f"matmul f32 {m}×{n}×{k}, {len(cores)} threads", 2 * m * n * k, "FLOP", ["matmul", m, n, k], [peer], 0.85, cores=cores)


def streaming_cases():
    for name, target in (("chain", 0.9), ("silu", 0.9), ("softmax", 0.9), ("rmsnorm", 0.9)):
        peer = ("NumPy", [PYTHON, ROOT / "bench/peers/numpy_peer.py", name, ROWS, COLUMNS], {})
        yield case(f"{name} {MB} MB", 2 * 4 * ROWS * COLUMNS, "B", [name, ROWS, COLUMNS], [peer], target, copy=True)


def opencl_cases():
    source = ROOT / "bench/peers/kernels.cl"
    for name, size, amount in (("reduce", 1 << 24, 4 << 24), ("transpose", 4096, 8 << 24)):
        peer = ("PoCL", [BIN / "opencl", source, name, size], {})
        label = "tree reduction" if name == "reduce" else "shared transpose"
        yield case(f"{label} {MB} MB", amount, "B", [name, size], [peer], 2.0)


def start_sides(entry):
    sides, missing = [], []
    wanted = [("Vortex", [OURS, *entry["ours"]], {}), *entry["peers"]]
    if entry["copy"]:
        wanted.append(("copy", [BIN / "copy", MB, "streaming"], {}))
    for name, argv, env in wanted:
        if not os.path.exists(argv[0]):
            missing.append(name)
            continue
        try:
            sides.append(Side(name, argv, env, entry["cores"]))
        except RuntimeError as problem:
            print(f"  {problem}", file=sys.stderr)
            missing.append(name)
    return sides, missing


def run_case(entry, samples):
    sides, missing = start_sides(entry)
    agree = measure(sides, samples)
    result = {"case": entry["name"], "unit": f"G{entry['unit']}/s", "target": entry["target"], "missing": missing, "agree": agree, "sides": {}}
    for side in sides:
        result["sides"][side.name] = {"median_ns": side.median, "spread": round(side.spread, 4), "rate": entry["amount"] / side.median,
                                      "samples_ns": side.times}
    ours = result["sides"].get("Vortex")
    for name, side in result["sides"].items():
        if ours and name != "Vortex":
            result.setdefault("ratios", {})[name] = side["median_ns"] / ours["median_ns"]
    return result


def goals(entry, result):
    """(peer, wanted ratio) pairs: against copy where the case has it, and then never slower than the peer."""
    if entry["copy"]:
        return [("copy", entry["target"])] + [(peer[0], 1.0) for peer in entry["peers"]]
    return [(peer[0], entry["target"]) for peer in entry["peers"]]


def print_row(entry, result):
    def cell(name):
        side = result["sides"].get(name)
        return f"{side['median_ns'] / 1e6:.2f} ms, {side['rate']:.1f} {result['unit']} ±{side['spread']:.0%}" if side else "–"

    peers = [peer[0] for peer in entry["peers"]] + (["copy"] if entry["copy"] else [])
    ratios = [f"{result.get('ratios', {}).get(name, 0):.2f} × {name} (want {wanted:g})" for name, wanted in goals(entry, result)
              if name in result.get("ratios", {})]
    verdict = "" if result["agree"] else " **outputs differ**"
    print(f"| {entry['name']} | {cell('Vortex')} | {'; '.join(f'{name} {cell(name)}' for name in peers)} | {', '.join(ratios) or '–'}{verdict} |",
          flush=True)


def build():
    subprocess.run([ROOT / "tools/dev/configure", "build"], stdout=subprocess.DEVNULL, check=True)  # finds newly installed peers
    subprocess.run(["ninja", "-C", ROOT / "build", "vortex_bench_peers"], stdout=subprocess.DEVNULL, check=True)
    targets = subprocess.run(["ninja", "-C", ROOT / "build", "-t", "targets", "all"], capture_output=True, text=True).stdout
    wanted = [name for name in ("vortex_bench_ours", "vortex") if re.search(rf"^{name}: ", targets, re.M)]
    if wanted:
        subprocess.run(["ninja", "-C", ROOT / "build", *wanted], stdout=subprocess.DEVNULL, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filter", nargs="?", default="")
    parser.add_argument("--samples", type=int, default=15)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    build()
    facts = machine()
    core, rates = best_openblas_core() if (BIN / "openblas").exists() and options.filter in "matmul f32" else (None, {})
    facts["openblas_core"] = core
    print(f"{facts['cpu']}, {facts['cores']} cores, {facts['vector']}; "
          + (f"OPENBLAS_CORETYPE={core}, the best of " + ", ".join(f"{name} {rate:.0f}" for name, rate in rates.items()) + " GFLOP/s" if core else ""))
    print("\n| work | Vortex | peers | ratio |\n|---|---|---|---|")
    results = []
    for entry in [*matmul_cases(core), *other_matmul_cases(core), *streaming_cases(), *opencl_cases()]:
        if options.filter in entry["name"]:
            result = run_case(entry, options.samples)
            results.append(result)
            print_row(entry, result)
    times = compile_times.run(options.samples, OURS) if options.filter in "compile" else []
    if options.save:
        folder = ROOT / "bench/results"
        folder.mkdir(exist_ok=True)
        name = re.sub(r"[^a-z0-9]+", "-", f"{facts['cpu']} {facts['cores']} cores".lower()).strip("-")
        document = {"machine": facts, "date": datetime.date.today().isoformat(), "results": results, "compile": times}
        (folder / f"cpu-{name}.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
