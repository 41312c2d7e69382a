"""The processes that bench/cpu.py measures. Each speaks the protocol of bench/peers/protocol.h."""
import os
import pathlib
import platform
import random
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BIN = ROOT / "build/bin/bench"
# Between two samples: OpenBLAS and TBB threads spin for a while after their work.
PAUSE_SECONDS = 0.06


class Side:
    """One running side. `times` collects nanoseconds."""

    def __init__(self, name, argv, env=None, cores=None):
        pin = ["taskset", "-c", ",".join(map(str, cores))] if cores else []
        self.name, self.times = name, []
        self.process = subprocess.Popen([*pin, *map(str, argv)], env={**os.environ, **(env or {})}, cwd=ROOT, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.process.stdout.readline().strip() != "ready":
            raise RuntimeError(f"{name} did not start: {' '.join(map(str, argv))}")

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.name} ended with status {self.process.wait()}")
        return answer

    def sample(self):
        time.sleep(PAUSE_SECONDS)
        self.times.append(int(self.ask("go")))

    def digest(self):
        return tuple(map(float, self.ask("digest").split()))

    def close(self):
        self.process.stdin.close()
        self.process.wait()

    @property
    def median(self):
        return statistics.median(self.times)

    @property
    def spread(self):
        """Half the distance between the quartiles, as a share of the median."""
        low, _, high = statistics.quantiles(self.times, n=4)
        return (high - low) / 2 / self.median


def measure(sides, samples, seed=1):
    """Takes `samples` samples of every side, each round in a new order; returns whether the outputs agree."""
    order = random.Random(seed)
    for _ in range(samples):
        for side in order.sample(sides, len(sides)):
            side.sample()
    digests = [side.digest() for side in sides if side.name != "copy"]
    agree = all(abs(value - digests[0][0]) <= 1e-4 * max(absolute, 1e-30) for value, absolute in digests)
    for side in sides:
        side.close()
    return agree


def cpu_flags():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    return set(next((line for line in text.splitlines() if line.startswith("flags")), "").split())


def usable_cores():
    return sorted(os.sched_getaffinity(0))


def best_openblas_core(size=1024):
    """The OPENBLAS_CORETYPE whose kernels are fastest here, of those the CPU can run: (name, GFLOP/s per candidate)."""
    flags, candidates = cpu_flags(), ["HASWELL", "ZEN"]
    if "avx512f" in flags:
        candidates += ["SKYLAKEX"]
    if "avx512_bf16" in flags:
        candidates += ["COOPERLAKE", "SAPPHIRERAPIDS"]
    if "avx2" not in flags:
        return None, {}
    rates = {}
    for core in candidates:
        side = Side(core, [BIN / "openblas", size, 1], {"OPENBLAS_CORETYPE": core}, usable_cores()[:1])
        for _ in range(7):
            side.sample()
        rates[core] = 2 * size**3 / side.median
        side.close()
    return max(rates, key=rates.get), rates


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    model = next((line.split(":")[1].strip() for line in text.splitlines() if line.startswith("model name")), platform.machine())
    vector = next((name for name in ("avx512f", "avx2", "sse2") if name in cpu_flags()), "")
    return {"cpu": model, "cores": len(usable_cores()), "vector": vector, "system": platform.platform(), "python": sys.version.split()[0]}
