#!/usr/bin/env python3
"""Measures attention written as whole-tensor mathematics beside PyTorch's (cuDNN where it takes the shape), interleaved in one run, on a GPU.

  ./vortex python bench/gpu_attention.py [--samples 7] [--form grouped]

Forms: plain; grouped: eight heads of queries share one of keys, in one dimension; position: [batches, positions, heads, width]; joined: results as
[batches, positions, heads · width]; sums: with the logarithm of each row's sum beside, which the peer does not give. Two heads of every case are
checked against float64, results are full of NaN before, and two launches must give the same bits. TFLOP/s count both products; of masked attention,
half of them."""
import argparse
import math
import random
import statistics

import torch
import torch.nn.functional as functional
from torch.nn.attention import SDPBackend, sdpa_kernel

import vortex

WIDTHS = (64, 128, 256)
GROUP = 8
SUMS = """    let m = max(scores, dim = -1)
    let x = exp(scores - m.reshape([B, H, S, 1]))
    let l = sum(x, dim = -1)
    return ((x / l.reshape([B, H, S, 1])) as bf16 @ v, m + log(l))"""
#: Parameters, result, scores without scale and mask, and the rest.
FORMS = {
    "plain": ("q: &Tensor<bf16, [B, H, S, D]>, k: &Tensor<bf16, [B, H, N, D]>, v: &Tensor<bf16, [B, H, N, D]>", "Tensor<bf16, [B, H, S, D]>",
              "q @ k.transpose()", "    return softmax(scores) as bf16 @ v"),
    "grouped": ("q: &Tensor<bf16, [B, G * R, S, D]>, k: &Tensor<bf16, [B, G, N, D]>, v: &Tensor<bf16, [B, G, N, D]>",
                "Tensor<bf16, [B, G * R, S, D]>", "q.reshape([B, G, R, S, D]) @ k.reshape([B, G, 1, N, D]).transpose()",
                "    return (softmax(scores) as bf16 @ v.reshape([B, G, 1, N, D])).reshape([B, G * R, S, D])"),
    "position": ("q: &Tensor<bf16, [B, S, H, D]>, k: &Tensor<bf16, [B, N, H, D]>, v: &Tensor<bf16, [B, N, H, D]>", "Tensor<bf16, [B, S, H, D]>",
                 "q.transpose([0, 2, 1, 3]) @ k.transpose([0, 2, 3, 1])",
                 "    return (softmax(scores) as bf16 @ v.transpose([0, 2, 1, 3])).transpose([0, 2, 1, 3])"),
    "joined": ("q: &Tensor<bf16, [B, H, S, D]>, k: &Tensor<bf16, [B, H, N, D]>, v: &Tensor<bf16, [B, H, N, D]>", "Tensor<bf16, [B, S, H * D]>",
               "q @ k.transpose()", "    return (softmax(scores) as bf16 @ v).transpose([0, 2, 1, 3]).reshape([B, S, H * D])"),
    "sums": ("q: &Tensor<bf16, [B, H, S, D]>, k: &Tensor<bf16, [B, H, N, D]>, v: &Tensor<bf16, [B, H, N, D]>",
             "(Tensor<bf16, [B, H, S, D]>, Tensor<f32, [B, H, S]>)", "q @ k.transpose()", SUMS)}


def kernel(form, width, masked):
    parameters, result, scores, rest = FORMS[form]
    mask = "    scores = scores.mask_upper_triangle(-inf)\n" if masked else ""
    return (f"kernel {form}{width}{'masked' if masked else ''}({parameters}) -> {result} {{\n"
            f"    let scores = ({scores}) as f32 * {width**-0.5}\n{mask}{rest}\n}}\n")


SOURCE = "\n".join(kernel(form, width, masked) for form in FORMS for width in WIDTHS for masked in (False, True))
CASES = [  # form, batches, heads, queries, keys, width, masked
    ("plain", 4, 32, 4096, 4096, 128, False), ("plain", 4, 32, 4096, 4096, 64, False), ("plain", 4, 16, 4096, 4096, 256, False),
    ("plain", 2, 16, 1000, 1000, 128, False), ("plain", 1, 32, 16384, 16384, 128, False), ("plain", 8, 32, 2048, 2048, 128, False),
    ("plain", 4, 32, 4096, 4096, 128, True), ("plain", 2, 8, 77, 513, 128, False), ("plain", 2, 8, 300, 40, 64, False),
    ("plain", 1, 8, 1, 4096, 128, False),
    *((form, 4, 32, 4096, 4096, 128, masked) for form in ("grouped", "position", "sums") for masked in (False, True)),
    ("joined", 4, 32, 4096, 4096, 128, False), ("joined", 4, 32, 4096, 4096, 64, True),
    # Few queries.
    ("plain", 16, 32, 1, 4096, 128, False), ("plain", 1, 32, 1, 16384, 128, False), ("plain", 1, 4, 512, 16384, 128, False),
    ("grouped", 64, 64, 1, 4096, 128, False), ("grouped", 1, 64, 1, 32768, 128, False), ("grouped", 8, 32, 4, 8192, 128, False),
    *((form, 4, 32, 4096, 4096, 64, True) for form in ("grouped", "position", "sums")), ("sums", 2, 16, 1001, 1001, 128, True)]


def seconds(launch, repeats):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(repeats):
        launch()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / repeats * 1e-3


def largest_error(out, sums, q, k, v, masked):
    """All as [batches, heads, positions, width]; `sums` may be None."""
    worst, share = 0.0, q.shape[1] // k.shape[1]
    for batch, head in ((0, 0), (q.shape[0] - 1, q.shape[1] - 1)):
        scores = q[batch, head].double() @ k[batch, head // share].double().T / math.sqrt(q.shape[-1])
        if masked:
            scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -math.inf)
        exact = torch.softmax(scores, -1) @ v[batch, head // share].double()
        worst = max(worst, (exact - out[batch, head].double()).abs().max().item())
        if sums is not None:
            worst = max(worst, (torch.logsumexp(scores, -1) - sums[batch, head].double()).abs().max().item())
    return worst


def peer(q, k, v, masked):
    """The launch, and which of PyTorch's implementations it is."""
    def launch():
        return functional.scaled_dot_product_attention(q, k, v, is_causal=masked, enable_gqa=q.shape[1] != k.shape[1])

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
    parser.add_argument("--form", choices=tuple(FORMS), help="only this one")
    options = parser.parse_args()
    program = vortex.compile(source=SOURCE, device="cuda:0")
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n")
    print("| form | batches × heads × queries × keys × width | masked | TFLOP/s | peer | ratio | largest error |\n|---|---|---|---|---|---|---|")
    for form, batches, heads, queries, keys, width, masked in CASES:
        if options.form not in (None, form):
            continue

        def tensor(rows, count):
            shape = (batches, rows, count, width) if form == "position" else (batches, count, rows, width)
            return torch.randn(shape, device="cuda", dtype=torch.bfloat16)

        shared = heads // GROUP if form == "grouped" else heads
        q, k, v = tensor(queries, heads), tensor(keys, shared), tensor(keys, shared)
        shape = (batches, queries, heads * width) if form == "joined" else q.shape
        out = torch.full(shape, math.nan, device="cuda", dtype=q.dtype)
        sums = torch.full((batches, heads, queries), math.nan, device="cuda") if form == "sums" else None
        ours = getattr(program, f"{form}{width}{'masked' if masked else ''}").prepare(q, k, v, out=out if sums is None else (out, sums))
        ours()
        torch.cuda.synchronize()
        views = [each.transpose(1, 2) if form == "position" else each for each in (out, q, k, v)]
        if form == "joined":
            views[0] = out.view(batches, queries, heads, width).transpose(1, 2)
        error, first = largest_error(views[0], sums, *views[1:], masked), (out.clone(), None if sums is None else sums.clone())
        ours()
        assert error < 0.02 and torch.equal(first[0], out) and (sums is None or torch.equal(first[1], sums)), (error, "two launches differ")
        other, backend = peer(*views[1:], masked)
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
        print(f"| {form} | {batches} × {heads} × {queries} × {keys} × {width} | {'yes' if masked else 'no'} | {rate[ours]:.0f} | "
              f"{backend.name.split('_')[0].lower()} {rate[other]:.0f} | {rate[ours] / rate[other]:.2f} | {error:.4f} |", flush=True)


if __name__ == "__main__":
    main()
