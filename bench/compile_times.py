"""Times of the compiler itself: process start, checking, cold and cached runs; PoCL building two small kernels as a yardstick."""
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

from sides import BIN, ROOT, Side

DRIVER = ROOT / "build/bin/vortex"
GOALS_MS = {"process start": 50, "check of 1,000 lines": 100, "simple kernel, source to loaded code": 100, "cached kernel": 1}


def thousand_lines():
    """A module of 1,000 lines with 125 functions of ordinary content."""
    functions = []
    for i in range(125):
        functions.append(f"fn step_{i}(x: f32, n: i32) -> f32 {{\n    var total = x\n    for i in 0..n {{\n        total += x * {i}.5\n"
                         f"    }}\n    return total\n}}\n")
    return "\n".join(functions) + "\nfn main() { print(step_0(1.0, 2)) }\n"


def command_times(samples, *arguments, env=None, before=lambda: None):
    times = []
    for _ in range(samples):
        before()
        start = time.perf_counter_ns()
        done = subprocess.run([DRIVER, *arguments], env={**os.environ, **(env or {})}, capture_output=True)
        times.append(time.perf_counter_ns() - start)
        if done.returncode:
            raise RuntimeError(f"vortex {' '.join(map(str, arguments))} ended with status {done.returncode}\n{done.stderr.decode(errors='replace')}")
    return times


def side_times(name, argv, samples):
    side = Side(name, argv)
    for _ in range(samples):
        side.sample()
    side.close()
    return side.times


def measurements(samples, ours):
    """Yields (name, side, thunk that measures nanoseconds)."""
    with tempfile.TemporaryDirectory() as folder:
        module = pathlib.Path(folder) / "thousand.vx"
        module.write_text(thousand_lines())
        if DRIVER.exists():
            yield "process start", "Vortex", lambda: command_times(samples, "targets")
            yield "check of 1,000 lines", "Vortex", lambda: command_times(samples, "check", module)
        if ours.exists():
            yield "simple kernel, source to loaded code", "Vortex", lambda: side_times("Vortex", [ours, "compile"], samples)
            yield "cached kernel", "Vortex", lambda: side_times("Vortex", [ours, "cached"], samples)
        if (BIN / "opencl").exists():
            argv = [BIN / "opencl", ROOT / "bench/peers/kernels.cl", "compile"]
            yield "two simple kernels, source to first launch", "PoCL", lambda: side_times("PoCL", argv, min(samples, 5))


def run(samples, ours):
    print("\n| compile times | side | median | goal |\n|---|---|---|---|")
    results = []
    for name, side, thunk in measurements(samples, ours):
        try:
            median = statistics.median(thunk()) / 1e6
        except RuntimeError as problem:
            print(f"| {name} | {side} | failed: {problem} | |")
            continue
        goal = GOALS_MS.get(name)
        results.append({"name": name, "side": side, "median_ms": median, "goal_ms": goal})
        print(f"| {name} | {side} | {median:.2f} ms | {f'< {goal} ms' if goal else ''} |", flush=True)
    return results
