#!/usr/bin/env python3
"""Measures metile and vortex from Python: kernels beside their peers, interleaved in one run; launches, imports and first calls by themselves.

  ./vortex python bench/python.py [filter] [--device cpu|cuda:0] [--samples 9] [--processor-time] [--json PATH] [--quick]

Peers: a copy of the same bytes, NumPy on the CPU (its product is OpenBLAS), PyTorch where it is installed, Triton's tutorial softmax on a GPU, and
the same function as a whole-tensor `.vx` kernel. Results are checked against float64 on fresh random data in the same run. `x of` columns are time
of the peer divided by ours: above 1 we are faster."""
import argparse
import functools
import importlib.util
import json
import math
import os
import pathlib
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "python/examples"))

import matmul as matmul_example  # noqa: E402
import metile  # noqa: E402
import normalisation  # noqa: E402
import softmax as softmax_example  # noqa: E402

import vortex  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

VX = """
kernel gelu(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return 0.5 * x * (1.0 + erf(x * 0.7071067811865476)) }
kernel softmax(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [M, N]> {
  let e = exp(x - max(x, dim = 1, keepdim = true))
  return e / sum(e, dim = 1, keepdim = true)
}
kernel layer_norm(x: &Tensor<f32, [M, N]>, w: &Tensor<f32, [N]>, b: &Tensor<f32, [N]>) -> Tensor<f32, [M, N]> {
  let centred = x - mean(x, dim = 1, keepdim = true)
  return centred * rsqrt(mean(centred * centred, dim = 1, keepdim = true) + 0.00001) * w + b
}
kernel rms_norm(x: &Tensor<f32, [M, N]>, w: &Tensor<f32, [N]>) -> Tensor<f32, [M, N]> {
  return x * rsqrt(mean(x * x, dim = 1, keepdim = true) + 0.00001) * w
}
kernel matmul(a: &Tensor<f32, [M, K]>, b: &Tensor<f32, [K, N]>) -> Tensor<f32, [M, N]> { return a @ b }
"""
# The product of one block as tile code: what metile's kernel of the same blocks says.
VX_TILES = """
@tile(m = BLOCK, n = BLOCK, k = 32)
kernel tiles(a: &Tensor<f16, [M, K]>, b: &Tensor<f16, [K, N]>) -> Tensor<f32, [M, N]> {
  let x: Tensor<f16, [BLOCK, 32]> @shared
  let y: Tensor<f16, [32, BLOCK]> @shared
  var acc: Tensor<f32, [BLOCK, BLOCK]> @local = Tensor.zeros()
  for k in range(0, K, 32) {
    x = stage(a[block_m..+BLOCK, k..+32])
    y = stage(b[k..+32, block_n..+BLOCK])
    sync_block()
    acc += x @ y
  }
  return acc
}
"""


@metile.kernel
def gelu(X, Out, N, BLOCK: metile.constexpr):
    i = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    x = metile.load(X + i, mask=i < N)
    metile.store(Out + i, 0.5 * x * (1.0 + metile.erf(x * 0.7071067811865476)), mask=i < N)


@metile.kernel
def rms_norm(X, Weight, Out, N, epsilon, BLOCK: metile.constexpr):
    row = metile.program_id(0) * N
    lanes = metile.arange(0, BLOCK)
    squares = 0.0
    for start in metile.tile_range(0, N, BLOCK):
        x = metile.load(X + row + start + lanes, mask=start + lanes < N)
        squares = squares + x * x
    scale = 1.0 / metile.sqrt(metile.sum(squares) / N + epsilon)
    for start in metile.tile_range(0, N, BLOCK):
        cols = start + lanes
        mask = cols < N
        metile.store(Out + row + cols, metile.load(X + row + cols, mask=mask) * scale * metile.load(Weight + cols, mask=mask), mask=mask)


@metile.kernel
def small(X, Y, Out, N, BLOCK: metile.constexpr):
    i = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    metile.store(Out + i, metile.load(X + i, mask=i < N) + metile.load(Y + i, mask=i < N), mask=i < N)


class Machine:
    """Arrays and clocks of the device under test."""

    def __init__(self, device, clock=time.perf_counter_ns):
        self.device, self.gpu, self.clock = device, device.startswith("cuda"), clock
        if self.gpu and torch is None:
            sys.exit("bench/python.py: GPU rows need PyTorch for arrays and clocks")
        metile.set_device(device)

    def array(self, values):
        return torch.from_numpy(values).to(self.device) if self.gpu else values

    def empty(self, *shape, dtype=np.float32):
        values = np.full(shape, np.nan, dtype)
        return self.array(values)

    def host(self, array):
        return array.cpu().numpy() if self.gpu else np.asarray(array)

    def nanoseconds(self, run, repeats):
        if not self.gpu:
            start = self.clock()
            for _ in range(repeats):
                run()
            return (self.clock() - start) / repeats
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        for _ in range(repeats):
            run()
        last.record()
        torch.cuda.synchronize()
        return first.elapsed_time(last) * 1e6 / repeats


def interleaved(machine, sides, samples, repeats):
    """Median nanoseconds of each side; every round runs all in a new order."""
    times = {name: [] for name in sides}
    for run in sides.values():
        run()
    for _ in range(samples):
        for name in random.sample(list(sides), len(sides)):
            times[name].append(machine.nanoseconds(sides[name], repeats))
    return {name: statistics.median(values) for name, values in times.items()}


def close(ours, expected, tolerance):
    np.testing.assert_allclose(ours, expected, rtol=tolerance, atol=tolerance)


def copy_of(machine, x, out):
    return (lambda: out.copy_(x)) if machine.gpu else (lambda: np.copyto(out, x))


def row_gelu(machine, program, scale):
    n = (64 << 20) // 4 // scale
    values = np.random.default_rng().standard_normal(n, dtype=np.float32)
    x, out, kept = machine.array(values), machine.empty(n), machine.empty(n)
    launch = gelu[(metile.cdiv(n, 1024),)]
    sides = {"ours": lambda: launch(x, out, n, BLOCK=1024), "copy": copy_of(machine, x, kept), "vx": lambda: program.gelu(x)}
    if not machine.gpu:
        sides["numpy (tanh form)"] = lambda: 0.5 * values * (1 + np.tanh(0.7978845608 * (values + 0.044715 * values**3)))
    if torch is not None:
        tensor = torch.as_tensor(x)
        sides["torch"] = lambda: torch.nn.functional.gelu(tensor)
    sides["ours"]()
    sample = np.random.default_rng().integers(0, n, 2000)
    close(machine.host(out)[sample], [0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in values[sample].astype(np.float64)], 2e-6)
    return f"gelu {n * 4 >> 20} MB", sides


TRITON_PEER = '''
import triton
import triton.language as tl


@triton.jit
def kernel(out, x, x_stride, out_stride, columns, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK_SIZE)
    values = tl.load(x + row * x_stride + lanes, mask=lanes < columns, other=-float("inf"))
    e = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * out_stride + lanes, e / tl.sum(e, axis=0), mask=lanes < columns)
'''


def triton_softmax(x):
    """The tutorial's kernel: one row per program, kept in registers. Triton reads the source of its kernels from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "triton_softmax_peer.py")
        path.write_text(TRITON_PEER)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        peer = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(peer)
        out = torch.empty_like(x)
        rows, columns = x.shape
        block = metile.next_power_of_2(columns)
        run = lambda: peer.kernel[(rows,)](out, x, x.stride(0), out.stride(0), columns, BLOCK_SIZE=block, num_warps=8 if block <= 4096 else 16)  # noqa: E731
        run()  # compiled while the file is there
    return run


def row_softmax(machine, program, scale):
    rows, columns = 8192 // scale, 4096
    values = np.random.default_rng().standard_normal((rows, columns), dtype=np.float32) * 5
    x, out, kept = machine.array(values), machine.empty(rows, columns), machine.empty(rows, columns)
    launch = softmax_example.softmax[(rows,)]
    sides = {"ours": lambda: launch(x, out, columns, BLOCK=256), "copy": copy_of(machine, x, kept), "vx": lambda: program.softmax(x)}
    if torch is not None:
        tensor = torch.as_tensor(x)
        sides["torch"] = lambda: torch.softmax(tensor, 1)
    if machine.gpu:
        sides["triton"] = triton_softmax(x)
    sides["ours"]()
    e = np.exp(values[:64].astype(np.float64) - values[:64].max(axis=1, keepdims=True))
    close(machine.host(out)[:64], e / e.sum(axis=1, keepdims=True), 2e-5)
    return f"softmax {rows}x{columns}, three passes", sides


def row_layer_norm(machine, program, scale):
    rows, columns = 8192 // scale, 4096
    generator = np.random.default_rng()
    values = generator.standard_normal((rows, columns), dtype=np.float32)
    weight, bias = generator.standard_normal((2, columns), dtype=np.float32)
    x, w, b, out, kept = *map(machine.array, (values, weight, bias)), machine.empty(rows, columns), machine.empty(rows, columns)
    launch = normalisation.layer_norm[(rows,)]
    sides = {"ours": lambda: launch(x, w, b, out, columns, 1e-5, BLOCK=256), "copy": copy_of(machine, x, kept), "vx": lambda: program.layer_norm(x, w, b)}
    if torch is not None:
        tensors = [torch.as_tensor(part) for part in (x, w, b)]
        sides["torch"] = lambda: torch.nn.functional.layer_norm(tensors[0], (columns,), tensors[1], tensors[2], 1e-5)
    sides["ours"]()
    wide = values[:64].astype(np.float64)
    close(machine.host(out)[:64], (wide - wide.mean(axis=1, keepdims=True)) / np.sqrt(wide.var(axis=1, keepdims=True) + 1e-5) * weight + bias, 1e-4)
    return f"layer_norm {rows}x{columns}, three passes", sides


def row_rms_norm(machine, program, scale):
    rows, columns = 8192 // scale, 4096
    generator = np.random.default_rng()
    values, weight = generator.standard_normal((rows, columns), dtype=np.float32), generator.standard_normal(columns, dtype=np.float32)
    x, w, out, kept = *map(machine.array, (values, weight)), machine.empty(rows, columns), machine.empty(rows, columns)
    launch = rms_norm[(rows,)]
    sides = {"ours": lambda: launch(x, w, out, columns, 1e-5, BLOCK=256), "copy": copy_of(machine, x, kept), "vx": lambda: program.rms_norm(x, w)}
    sides["ours"]()
    wide = values[:64].astype(np.float64)
    close(machine.host(out)[:64], wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-5) * weight, 1e-4)
    return f"rms_norm {rows}x{columns}, two passes", sides


def row_matmul(size, block, machine, program, scale):
    n = size // scale
    dtype = np.float16 if machine.gpu else np.float32
    a, b = np.random.default_rng().standard_normal((2, n, n)).astype(dtype)
    x, y, out, none = machine.array(a), machine.array(b), machine.empty(n, n), machine.empty(1)
    launch = matmul_example.matmul[(metile.cdiv(n, block), metile.cdiv(n, block))]
    sides = {"ours": lambda: launch(x, y, out, none, n, n, n, 1.0, EPILOGUE="none", BLOCK_M=block, BLOCK_N=block, BLOCK_K=32)}
    if machine.gpu:
        sides["torch"] = lambda: x @ y
        tiles = vortex.compile(source=VX_TILES.replace("BLOCK", str(block)), device=machine.device).tiles
        sides["vx tiles"] = lambda: tiles(x, y)
    else:
        sides["vx"] = lambda: program.matmul(x, y)
        sides["numpy"] = lambda: a @ b
    sides["ours"]()
    expected = a.astype(np.float64)[:64] @ b.astype(np.float64)
    close(machine.host(out)[:64], expected, 1e-2 if machine.gpu else 1e-3)
    return f"matmul {'f16' if machine.gpu else 'f32'} {n}, blocks of {block}", sides


def launches(machine):
    """Host microseconds per launch of a kernel of four arguments on 64 elements."""
    x, y, out = (machine.array(np.ones(64, np.float32)) for _ in range(3))
    run = small[(1,)]
    prepared = run.prepare(x, y, out, 64, BLOCK=64)
    program = vortex.compile(source="kernel add(x: &Tensor<f32, [N]>, y: &Tensor<f32, [N]>, out: &mut Tensor<f32, [N]>) { out = x + y }\n"
                             "kernel sum(x: &Tensor<f32, [N]>, y: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x + y }", device=machine.device)
    vx = program.add.prepare(x, y, out)
    sides = {"metile launch": lambda: run(x, y, out, 64, BLOCK=64), "metile prepared": prepared, "vortex launch": lambda: program.add(x, y, out),
             "vortex prepared": vx, "vortex launch, new result": lambda: program.sum(x, y),
             "numpy / torch add": (lambda: torch.add(x, y, out=out)) if machine.gpu else (lambda: np.add(x, y, out=out)),
             "numpy / torch add, new result": lambda: x + y}
    found = {}
    for name, side in sides.items():
        side()
        samples = []
        for _ in range(9):
            start = machine.clock()
            for _ in range(500):
                side()
            samples.append((machine.clock() - start) / 500e3)
            if machine.gpu:
                torch.cuda.synchronize()
        found[name] = statistics.median(samples)
    return found


def processes(machine, samples):
    """Milliseconds in new processes: the import beside NumPy's, with bytecode as any second run has it; the first call with nothing cached and with
    a warm cache."""
    script = f"""
import sys, time
sys.path[:0] = {[str(ROOT / "python/examples"), *sys.path[1:]]!r}
import numpy as np
start = time.perf_counter()
import metile
imported = time.perf_counter()
import softmax
metile.set_device({machine.device!r})
x = np.zeros((4, 100), np.float32); out = np.empty_like(x)
begin = time.perf_counter()
softmax.softmax[(4,)](x, out, 100, BLOCK=128)
print((imported - start) * 1e3, (time.perf_counter() - begin) * 1e3)
"""
    imports, cold, warm = [], [], []

    def measure(times, env):
        done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
        first, second = map(float, done.stdout.split())
        imports.append(first)
        times.append(second)

    with tempfile.TemporaryDirectory() as bytecode:
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPYCACHEPREFIX": bytecode}
        measure([], inherited)
        imports.clear()
        for _ in range(samples):
            with tempfile.TemporaryDirectory() as cache:
                for times in (cold, warm):
                    measure(times, {**inherited, "XDG_CACHE_HOME": cache, "METILE_CACHE_DIR": cache})
    return {"import metile": statistics.median(imports), "first call, nothing cached": statistics.median(cold),
            "first call, cached": statistics.median(warm)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filter", nargs="?", default="", help="part of: gelu, softmax, layer_norm, rms_norm, matmul 1024 blocks of 64, …, launch, process")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--samples", type=int, default=9)
    parser.add_argument("--processor-time", action="store_true", help="of all threads, for machines that others use too")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    options = parser.parse_args()
    machine = Machine(options.device, time.process_time_ns if options.processor_time else time.perf_counter_ns)
    program = vortex.compile(source=VX, device=options.device)
    scale = 8 if options.quick else 1
    rows = {"gelu": row_gelu, "softmax": row_softmax, "layer_norm": row_layer_norm, "rms_norm": row_rms_norm,
            **{f"matmul {size} blocks of {block}": functools.partial(row_matmul, size, block) for size in (1024, 2048) for block in (64, 128)}}
    report = {"device": options.device, "machine": platform.processor() or platform.machine(), "kernels": {}}
    for name, row in rows.items():
        if options.filter not in name:
            continue
        title, sides = row(machine, program, scale)
        times = interleaved(machine, sides, options.samples, 20 if machine.gpu else 1)
        report["kernels"][title] = times
        print(f"{title}: {times['ours'] / 1e3:.1f} us; " + ", ".join(f"{value / times['ours']:.2f} of {peer}" for peer, value in times.items() if peer != "ours"), flush=True)
    if options.filter in "launch":
        report["launch_us"] = launches(machine)
        print("; ".join(f"{name} {value:.2f} us" for name, value in report["launch_us"].items()), flush=True)
    if options.filter in "process":
        report["process_ms"] = processes(machine, 3 if options.quick else 5)
        print("; ".join(f"{name} {value:.0f} ms" for name, value in report["process_ms"].items()), flush=True)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
