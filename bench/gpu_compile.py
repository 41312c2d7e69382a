#!/usr/bin/env python3
"""Times from source to loaded machine code on a GPU, with nothing cached, and those of a second process that finds everything in the cache.

  bench/gpu_compile.py [filter] [--vortex PATH] [--device cuda:0] [--samples 3] [--json PATH]

Every sample is a process of its own: `vortex run --time` on a program with one kernel, in an empty cache folder and with the driver's own cache
off. "compile" is the source's check and all stages to PTX, "load" the driver's assembler and the loading of what the launch needs. The
goal is 150 ms together for the simple kernels."""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
ROWS, COLUMNS = 512, 4096
GOAL_MS = 150
VECTOR, MATRIX, WEIGHT = f"random.normal::<{{0}}>([{ROWS * COLUMNS}], seed = 1)", f"random.normal::<{{0}}>([{ROWS}, {COLUMNS}], seed = 1)", \
    f"random.normal::<{{0}}>([{COLUMNS}], seed = 2)"
SQUARE = "random.normal::<{0}>([1024, 1024], seed = 3)"
# name: (kernel of bench/kernels/gpu.vx or source, arguments, whether the goal is for it)
PROGRAMS = {
    "vector add f32": ("add", [VECTOR.format("f32")] * 2, True),
    "five-op chain f32": ("chain", [VECTOR.format("f32")], True),
    "sum f32": ("total", [VECTOR.format("f32")], True),
    "softmax f32": ("softmax_f32", [MATRIX.format("f32")], True),
    "softmax bf16": ("softmax_bf16", [MATRIX.format("bf16")], True),
    "RMSNorm f32": ("rmsnorm_f32", [MATRIX.format("f32"), WEIGHT.format("f32")], True),
    "RMSNorm bf16": ("rmsnorm_bf16", [MATRIX.format("bf16"), WEIGHT.format("bf16")], True),
    "transpose f32": ("transpose_f32", [MATRIX.format("f32")], True),
    "transpose f32, shared memory": ("transpose_shared", [MATRIX.format("f32")], True),
    "column sums f32": ("column_sums", [MATRIX.format("f32")], True),
    "prefix sums f32": ("prefix_sums", [VECTOR.format("f32")], True),
    "matmul f32": ("pub kernel matmul_f32(x: &Tensor<f32, [M, K]>, y: &Tensor<f32, [K, N]>) -> Tensor<f32, [M, N]> {\n    return x @ y\n}\n",
                   [SQUARE.format("f32")] * 2, False),
    "matmul bf16": ("pub kernel matmul_bf16(x: &Tensor<bf16, [M, K]>, y: &Tensor<bf16, [K, N]>) -> Tensor<bf16, [M, N]> {\n    return x @ y\n}\n",
                    [SQUARE.format("bf16")] * 2, False),
}


def program_text(kernel, arguments):
    source = (ROOT / "bench/kernels/gpu.vx").read_text()
    if " " in kernel:
        source, kernel = kernel, re.search(r"kernel (\w+)", kernel)[1]
    lines = [f"    let a{i} = {argument}\n" for i, argument in enumerate(arguments)]
    call = ", ".join(f"&a{i}" for i in range(len(arguments)))
    return f"{source}\nfn main() {{\n{''.join(lines)}    let r = {kernel}({call})\n    print(\"ran\")\n}}\n", kernel


def sample(options, path, kernel, cache):
    environment = {**os.environ, "XDG_CACHE_HOME": cache, "CUDA_CACHE_DISABLE": "1"}
    done = subprocess.run([options.vortex, "run", path, "--device", options.device, "--time"], env=environment, capture_output=True, text=True)
    if done.returncode or "ran" not in done.stdout:
        sys.exit(f"{path.name} ended with status {done.returncode}\n{done.stdout}{done.stderr}")
    stages = {"check": 0.0}
    for name, value in re.findall(r"^(.+?)\s+([\d.e+-]+) ms$", done.stderr, re.M):
        words = name.split()
        if words[0] == kernel and len(words) > 1:
            stages[words[1]] = stages.get(words[1], 0) + float(value)
        elif name.startswith("parse"):
            stages["check"] = float(value)
    return stages


def summary(samples):
    load = statistics.median(s.get("load", 0) for s in samples)
    total = statistics.median(sum(s.values()) for s in samples)
    return total - load, load, total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filter", nargs="?", default="")
    parser.add_argument("--vortex", default=str(ROOT / "build/bin/vortex"))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = {}
    print(f"{'milliseconds':32} {'compile':>8} {'load':>8} {'total':>8}   {'again':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for name, (kernel, arguments, simple) in PROGRAMS.items():
            if options.filter not in name:
                continue
            text, entry = program_text(kernel, arguments)
            path = pathlib.Path(folder) / f"{entry}.vx"
            path.write_text(text)
            cold, warm = [], []
            for number in range(options.samples):
                cache = f"{folder}/{entry}.{number}"
                cold.append(sample(options, path, entry, cache))
                warm.append(sample(options, path, entry, cache))
            compile_ms, load_ms, total_ms = summary(cold)
            again_ms = summary(warm)[2]
            late = " over the goal" if simple and total_ms > GOAL_MS else ""
            print(f"{name:32} {compile_ms:8.1f} {load_ms:8.1f} {total_ms:8.1f}   {again_ms:8.2f}{late}", flush=True)
            rows[name] = {"compile_ms": compile_ms, "load_ms": load_ms, "total_ms": total_ms, "cached_ms": again_ms, "cold": cold, "warm": warm}
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
