#!/usr/bin/env python3
"""Measures attention written as whole-tensor mathematics beside PyTorch's (cuDNN where it takes the shape), interleaved in one run, on a GPU.

  ./vortex python bench/gpu_attention.py [--samples 7]

Two heads of every case are checked against float64, results are full of NaN before, and two launches must give the same bits. TFLOP/s count both
products; of masked attention, half of them."""
import argparse
import math
import random
import statistics

import torch
import torch.nn.functional as functional
from torch.nn.attention import SDPBackend, sdpa_kernel

import vortex

WIDTHS = (64, 128, 256)
SIGNATURE = ("(q: &Tensor<bf16, [B, H, S, D]>, k: &Tensor<bf16, [B, H, N, D]>, v: &Tensor<bf16, [B, H, N, D]>) "
             "-> Tensor<bf16, [B, H, S, D]>")
SOURCE = "\n".join(
    f"kernel full{width}{SIGNATURE} {{ return softmax((q @ k.transpose()) as f32 * {width**-0.5}) as bf16 @ v }}\n"
    f"kernel masked{width}{SIGNATURE} {{ return softmax(((q @ k.transpose()) as f32 * {width**-0.5}).mask_upper_triangle(-inf)) as bf16 @ v }}"
    for width in WIDTHS)
CASES = [  # batches, heads, queries, keys, width, masked
    (4, 32, 4096, 4096, 128, False), (4, 32, 4096, 4096, 64, False), (4, 16, 4096, 4096, 256, False), (2, 16, 1000, 1000, 128, False),
    (1, 32, 16384, 16384, 128, False), (8, 32, 2048, 2048, 128, False), (4, 32, 4096, 4096, 128, True), (2, 8, 77, 513, 128, False),
    (2, 8, 300, 40, 64, False), (1, 8, 1, 4096, 128, False)]


def seconds(launch, repeats):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(repeats):
        launch()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / repeats * 1e-3


def largest_error(out, q, k, v, masked):
    worst = 0.0
    for batch, head in ((0, 0), (q.shape[0] - 1, q.shape[1] - 1)):
        scores = q[batch, head].double() @ k[batch, head].double().T / math.sqrt(q.shape[-1])
        if masked:
            scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -math.inf)
        exact = torch.softmax(scores, -1) @ v[batch, head].double()
        worst = max(worst, (exact - out[batch, head].double()).abs().max().item())
    return worst


def peer(q, k, v, masked):
    """The launch, and which of PyTorch's implementations it is."""
    def launch():
        return functional.scaled_dot_product_attention(q, k, v, is_causal=masked)

    for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.MATH):
        try:
            with sdpa_kernel([backend]):
                launch()
            return launch, backend
        except RuntimeError:
            continue
    raise RuntimeError("PyTorch has no attention for this shape")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=7)
    options = parser.parse_args()
    program = vortex.compile(source=SOURCE, device="cuda:0")
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n")
    print("| batches × heads × queries × keys × width | masked | TFLOP/s | peer | ratio | largest error |\n|---|---|---|---|---|---|")
    for batches, heads, queries, keys, width, masked in CASES:
        q = torch.randn(batches, heads, queries, width, device="cuda", dtype=torch.bfloat16)
        k, v = (torch.randn(batches, heads, keys, width, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        out = torch.full_like(q, math.nan)
        ours = getattr(program, f"{'masked' if masked else 'full'}{width}").prepare(q, k, v, out=out)
        ours()
        torch.cuda.synchronize()
        error, first = largest_error(out, q, k, v, masked), out.clone()
        ours()
        assert error < 0.02 and torch.equal(first, out), (error, "two launches differ")
        other, backend = peer(q, k, v, masked)
        operations = 4 * batches * heads * queries * keys * width / (2 if masked else 1)
        repeats = max(2, int(2e-3 / (operations / 4e14)))
        samples = {ours: [], other: []}
        with sdpa_kernel([backend]):
            for launch in samples:
                seconds(launch, 2)
            for _ in range(options.samples):
                for launch in random.sample(list(samples), 2):
                    samples[launch].append(seconds(launch, repeats))
        rate = {launch: operations / statistics.median(times) / 1e12 for launch, times in samples.items()}
        print(f"| {batches} × {heads} × {queries} × {keys} × {width} | {'yes' if masked else 'no'} | {rate[ours]:.0f} | "
              f"{backend.name.split('_')[0].lower()} {rate[other]:.0f} | {rate[ours] / rate[other]:.2f} | {error:.4f} |", flush=True)


if __name__ == "__main__":
    main()
