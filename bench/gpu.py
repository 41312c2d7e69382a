#!/usr/bin/env python3
"""Measures Vortex on a GPU against PyTorch, torch.compile and Triton, all sides interleaved in one run, and prints medians and ratios.

  bench/gpu.py FOLDER [filter] [--samples 15] [--json PATH] [--quick] [--rows]

FOLDER holds the artifacts of bench/kernels/gpu.vx, made where the compiler is, so that the GPU machine needs none, only the packages of python/ and
the module _vortex for its Python:

  ./vortex build bench/kernels/gpu.vx --target sm_90 -o FOLDER

Every row is checked on fresh random data in the same run. `--rows` measures softmax and RMSNorm on rows of many lengths instead, `--activations`
the kernels of bench/kernels/activations.vx, `--shapes` those of shapes.vx, `--scans`
those of scans.vx, `--stencils` those of stencils.vx, `--norms` those of rows.vx, `--statements` those of statements.vx. `--before FOLDER`
measures other artifacts of the same kernels beside them. Results are poisoned, and two launches must give the same bits. `copy` is the bandwidth of a device-to-device copy of the same size; "of copy" is ours relative to it."""
import argparse
import glob
import json
import os
import platform
import random
import statistics
import sys
import time

import torch

import vortex

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "f64": torch.float64, "i8": torch.int8, "f8e4m3": torch.float8_e4m3fn}


class Kernel:
    """An artifact, loaded by the runtime that users have."""

    def __init__(self, folder, name):
        [path] = glob.glob(os.path.join(glob.escape(folder), f"*.{name}.vxk"))
        self.program = vortex.load(path, "cuda:0")

    def prepare(self, *arguments):
        """A callable that launches the kernel on these tensors and numbers and returns its first result; its attribute `results` holds all of them."""
        prepared = self.program.prepare(*arguments)
        made = prepared.results if isinstance(prepared.results, tuple) else () if prepared.results is None else (prepared.results,)
        results = [torch.from_dlpack(result) for result in made]

        def run():
            prepared()
            return results[0] if results else None

        run.results = results
        return run


def checked(ours):
    """What a launch over poisoned results leaves, and whether a second one leaves the same."""

    def once():
        getattr(ours, "reset", lambda: None)()
        for result in getattr(ours, "results", ()):
            result.view(torch.uint8).fill_(0xCB)
        result = ours()
        torch.cuda.synchronize()
        return [tensor.clone() for tensor in (result if isinstance(result, (list, tuple)) else [result])]

    first, second = once(), once()
    return first, all(torch.equal(a.view(torch.uint8), b.view(torch.uint8)) for a, b in zip(first, second))


def time_once(work, repeats):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(repeats):
        work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e-3 / repeats


def measure(sides, samples):
    """Seconds per call of every side, medians of interleaved samples of about 4 ms each."""
    repeats = {}
    for name, work in sides.items():
        work()
        torch.cuda.synchronize()
        repeats[name] = max(1, min(200, int(4e-3 / max(time_once(work, 2), 1e-6))))
    times = {name: [] for name in sides}
    for _ in range(samples):
        for name in random.sample(list(sides), len(sides)):
            times[name].append(time_once(sides[name], repeats[name]))
    return times


def agree(ours, expected, tolerance):
    """Largest error relative to tolerance; at most 1 is right."""
    ours, expected = ours.double(), expected.double()
    difference = torch.where(ours == expected, 0.0, (ours - expected).abs())  # infinities too
    return float((difference / (tolerance[0] + tolerance[1] * expected.abs())).max())


def rows(folder, quick, peers=True):
    """name, bytes moved, ours, reference in f64-ish, tolerance, peers, target"""
    from gpu_peers import compiled, triton_add, triton_softmax, triton_sum
    n, m = (1 << 28, 8192) if not quick else (1 << 24, 2048)
    if not peers:
        compiled = triton_add = triton_softmax = triton_sum = lambda *_: None
    random_like = lambda *shape, dtype=torch.float32: torch.randn(*shape, device="cuda").to(dtype)

    def add():
        x, y = random_like(n), random_like(n)
        return 12 * n, Kernel(folder, "add").prepare(x, y), lambda: x + y, (0, 0), {"torch": lambda: x + y, "Triton": triton_add(x, y)}

    def chain():
        x = random_like(n)
        work = lambda: torch.clamp_min(x * 1.5 + 0.25, 0.0) * x - 0.125
        return 8 * n, Kernel(folder, "chain").prepare(x), work, (1e-5, 1e-5), {"torch.compile": compiled(lambda x: torch.clamp_min(x * 1.5 + 0.25, 0.0) * x - 0.125, x)}

    def total():
        x = random_like(n)
        return 4 * n, Kernel(folder, "total").prepare(x), lambda: x.double().sum().reshape(1), (1e-6 * float(x.abs().double().sum()) ** 0.75, 1e-5), \
            {"torch": lambda: x.sum(), "Triton": triton_sum(x)}

    def softmax(kind, dtype, tolerance):
        x = random_like(m, m, dtype=dtype)
        return 2 * x.nbytes, Kernel(folder, "softmax_" + kind).prepare(x), lambda: torch.softmax(x.float(), -1), tolerance, \
            {"torch": lambda: torch.softmax(x, -1), "torch.compile": compiled(lambda x: torch.softmax(x, -1), x), "Triton": triton_softmax(x)}

    def rmsnorm(kind, dtype, tolerance):
        x, w = random_like(m, m, dtype=dtype), random_like(m, dtype=dtype)
        work = lambda x, w: ((x.float() * torch.rsqrt((x.float() * x.float()).mean(-1, keepdim=True) + 1e-5)) * w.float()).to(x.dtype)
        return 2 * x.nbytes, Kernel(folder, "rmsnorm_" + kind).prepare(x, w), lambda: work(x.float(), w.float()), tolerance, \
            {"torch": lambda: torch.nn.functional.rms_norm(x, (m,), w, 1e-5), "torch.compile": compiled(work, x, w)}

    def transpose(kernel, dtype):
        x = random_like(m, m, dtype=dtype)
        return 2 * x.nbytes, Kernel(folder, kernel).prepare(x), lambda: x.T, (0, 0), {"torch": lambda: x.T.contiguous()}

    def sums(kernel, dim):
        x = random_like(m, m)
        return x.nbytes, Kernel(folder, kernel).prepare(x), lambda: x.double().sum(dim), (1e-3, 1e-5), {"torch": lambda: x.sum(dim)}

    def scan():
        x = torch.randint(-8, 8, (n // 4,), device="cuda").float()
        return 8 * (n // 4), Kernel(folder, "prefix_sums").prepare(x), lambda: x.double().cumsum(0), (1e-3, 1e-5), {"torch": lambda: x.cumsum(0)}

    bf16 = torch.bfloat16
    return {
        "vector add f32": (add, 0.97), "five-op chain f32": (chain, 0.97), "sum f32": (total, 0.95),
        "softmax f32": (lambda: softmax("f32", torch.float32, (1e-8, 1e-5)), 0.93), "softmax bf16": (lambda: softmax("bf16", bf16, (1e-6, 1e-2)), 0.93),
        "rmsnorm f32": (lambda: rmsnorm("f32", torch.float32, (1e-5, 1e-5)), 0.93), "rmsnorm bf16": (lambda: rmsnorm("bf16", bf16, (1e-2, 1e-2)), 0.93),
        "transpose f32": (lambda: transpose("transpose_f32", torch.float32), 0.9), "transpose bf16": (lambda: transpose("transpose_bf16", bf16), 0.9),
        "transpose by hand f32": (lambda: transpose("transpose_shared", torch.float32), 0.9),
        "column sums f32": (lambda: sums("column_sums", 0), None), "row sums f32": (lambda: sums("row_sums", 1), None),
        "prefix sums f32": (scan, None),
    }


ROW_LENGTHS = [8, 64, 256, 1000, 1001, 2056, 3000, 4096, 5000, 7000, 8184, 8192, 8200, 12288, 16384, 16385, 32768]


def rows_of_lengths(folder, quick, peers=True):
    """As `rows`: 2^26 elements each, in rows of other lengths."""
    from gpu_peers import compiled
    if not peers:
        compiled = lambda *_: None
    total = 1 << (26 if not quick else 22)

    def softmax(kind, dtype, tolerance, n):
        x = torch.randn(total // n, n, device="cuda").to(dtype)
        return 2 * x.nbytes, Kernel(folder, "softmax_" + kind).prepare(x), lambda: torch.softmax(x.float(), -1), tolerance, \
            {"torch": (lambda: torch.softmax(x, -1)) if peers else None}

    def rmsnorm(kind, dtype, tolerance, n):
        x, w = torch.randn(total // n, n, device="cuda").to(dtype), torch.randn(n, device="cuda").to(dtype)
        work = lambda x, w: ((x.float() * torch.rsqrt((x.float() * x.float()).mean(-1, keepdim=True) + 1e-5)) * w.float()).to(x.dtype)
        return 2 * x.nbytes, Kernel(folder, "rmsnorm_" + kind).prepare(x, w), lambda: work(x.float(), w.float()), tolerance, \
            {"torch": (lambda: torch.nn.functional.rms_norm(x, (n,), w, 1e-5)) if peers else None}

    table = {}
    for name, make, kind, dtype, tolerance in [
            ("softmax", softmax, "f32", torch.float32, (1e-7, 1e-5)), ("softmax", softmax, "bf16", torch.bfloat16, (1e-6, 1e-2)),
            ("rmsnorm", rmsnorm, "f32", torch.float32, (1e-5, 1e-5)), ("rmsnorm", rmsnorm, "bf16", torch.bfloat16, (1e-2, 1e-2))]:
        for n in ROW_LENGTHS:
            table[f"{name} {kind} {n}"] = (lambda make=make, kind=kind, dtype=dtype, tolerance=tolerance, n=n: make(kind, dtype, tolerance, n), None)
    return table


def rows_of_activations(folder, quick, peers=True):
    """As `rows`: 2^28 bytes per tensor."""
    import gpu_activations
    from gpu_peers import compiled
    return gpu_activations.rows(lambda name, *tensors: Kernel(folder, name).prepare(*tensors), quick, compiled if peers else lambda *_: None)


def rows_of_shapes(folder, quick, peers=True):
    """As `rows`: columns and permutations."""
    import gpu_shapes
    from gpu_peers import compiled
    return gpu_shapes.rows(lambda name, *tensors: Kernel(folder, name).prepare(*tensors), quick, compiled if peers else lambda *_: None)


def rows_of_scans(folder, quick, peers=True):
    """As `rows`: cumulative sums."""
    import gpu_scans
    return gpu_scans.rows(lambda name, *tensors: Kernel(folder, name).prepare(*tensors), quick, lambda *_: None)


def rows_of_stencils(folder, quick, peers=True):
    """As `rows`: filters of threads."""
    import gpu_stencils
    return gpu_stencils.rows(lambda name, *tensors: Kernel(folder, name).prepare(*tensors), quick, lambda *_: None)


def rows_of_norms(folder, quick, peers=True):
    """As `rows`: rows of many lengths."""
    import gpu_norms
    return gpu_norms.rows(lambda name, *tensors: Kernel(folder, name).prepare(*tensors), quick, lambda *_: None)


def rows_of_statements(folder, quick, peers=True):
    """As `rows`: statements over the same elements, and sums of other dimensions than the last."""
    import gpu_statements
    return gpu_statements.rows(lambda name, *tensors: Kernel(folder, name).prepare(*tensors), quick, lambda *_: None)


TABLES = {"rows": rows_of_lengths, "activations": rows_of_activations, "shapes": rows_of_shapes, "scans": rows_of_scans, "stencils": rows_of_stencils,
          "norms": rows_of_norms, "statements": rows_of_statements}


def copy_side(moved):
    source = torch.empty(moved // 2, dtype=torch.uint8, device="cuda").random_()
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("filter", nargs="?", default="")
    parser.add_argument("--samples", type=int, default=9)
    parser.add_argument("--json")
    parser.add_argument("--quick", action="store_true", help="small tensors, for checking")
    parser.add_argument("--no-peers", action="store_true", help="only ours and the copy")
    parser.add_argument("--rows", action="store_true", help="softmax and RMSNorm on rows of many lengths")
    parser.add_argument("--activations", action="store_true", help="functions and SwiGLU in f32, f16 and bf16")
    parser.add_argument("--shapes", action="store_true", help="column sums and permutations")
    parser.add_argument("--scans", action="store_true", help="cumulative sums")
    parser.add_argument("--stencils", action="store_true", help="filters of threads and of shifted slices")
    parser.add_argument("--norms", action="store_true", help="norms, losses and quantisation of rows")
    parser.add_argument("--statements", action="store_true", help="statements over the same elements, means of other dimensions than the last")
    parser.add_argument("--before", help="folder of other artifacts of the same kernels")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no row after so many seconds")
    options = parser.parse_args()
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    record = {"machine": torch.cuda.get_device_name(), "host": platform.node(), "torch": torch.__version__, "date": time.strftime("%Y-%m-%d %H:%M"),
              "command": " ".join(sys.argv), "rows": []}
    print(f"{record['machine']}, torch {record['torch']}")
    print(f"{'':24} {'GB/s':>6} {'copy':>6} {'of copy':>8}  {'target':>6}  right  peers (GB/s)")
    start = time.perf_counter()
    wrong = 0
    [table] = [table for name, table in TABLES.items() if getattr(options, name)] or [rows]
    older = table(options.before, options.quick, False) if options.before else {}
    for name, (make, target) in table(options.folder, options.quick, not options.no_peers).items():
        if options.filter not in name or time.perf_counter() - start > options.seconds:
            continue
        try:
            moved, ours, reference, tolerance, peers = make()
            result, is_same = checked(ours)
            exact = reference()
            exact = exact if isinstance(exact, (list, tuple)) else [exact]
            error = max(agree(a, b, tolerance if tolerance != (0, 0) else (1e-30, 0)) for a, b in zip(result, exact, strict=True))
            error = error if is_same else float("inf")
            before = {"before": older[name][0]()[1]} if older else {}
            times = measure({"ours": ours, "copy": copy_side(moved), **before, **{k: v for k, v in peers.items() if v}}, options.samples)
            del result, exact, before
        except Exception as problem:  # one broken row must not hide the others
            print(f"{name:24} failed: {type(problem).__name__}: {str(problem)[:300]}", flush=True)
            wrong += 1
            record["rows"].append({"row": name, "failed": str(problem)[:2000]})
            continue
        rate = {side: moved / statistics.median(values) / 1e9 for side, values in times.items()}
        of_copy = rate["ours"] / rate["copy"]
        wrong += error > 1
        text = "  ".join(f"{side} {rate[side]:.0f}" for side in rate if side not in ("ours", "copy"))
        if "before" in rate:
            text = f"before {rate['before'] / rate['copy']:.3f} of copy  {text}"
        print(f"{name:24} {rate['ours']:6.0f} {rate['copy']:6.0f} {of_copy:8.3f}  {target if target else '–':>6}  {'yes' if error <= 1 else f'NO {error:.3g}'}    {text}", flush=True)
        record["rows"].append({"row": name, "bytes": moved, "rates": rate, "of_copy": of_copy, "target": target, "error": error, "seconds": times})
        del ours, reference, peers
        torch.cuda.empty_cache()
    if options.json:
        with open(options.json, "w") as out:
            json.dump(record, out, indent=1)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
