"""Rows of bench/gpu.py --shapes: column sums of tall, wide and unaligned matrices, permutations of whole inner rows."""
import torch

COLUMNS = [(8192, 8192), (65536, 1024), (4096, 16384), (1 << 20, 64), (512, 131072), (8191, 8193), (1000003, 67)]
HEADS = [(16, 2048, 16, 128), (16, 2048, 32, 64), (31, 1001, 17, 64), (8, 4096, 20, 100)]
EXCHANGES = [(256, 1024, 256), (1000, 513, 128), (999, 1024, 67)]


def rows(prepare, quick, compiled):
    """As gpu.py's: `prepare(kernel, tensor)` gives our side, `compiled(function, tensor)` a peer or None."""

    def row(kernel, shape, dtype, function, exact, tolerance, is_sum):
        x = torch.randn(shape[0] // (64 if quick else 1) or 1, *shape[1:], device="cuda").to(dtype)
        return x.nbytes * (1 if is_sum else 2), prepare(kernel, x), lambda: exact(x), tolerance, \
            {"torch": lambda: function(x), "torch.compile": compiled(function, x)}

    def sums(kernel, shape, dtype):
        return row(kernel, shape, dtype, lambda x: x.float().sum(0) if dtype != torch.float32 else x.sum(0), lambda x: x.double().sum(0), (1e-2, 1e-5), True)

    def moved(kernel, shape, dtype, first):
        return row(kernel, shape, dtype, lambda x: x.transpose(first, first + 1).contiguous(), lambda x: x.transpose(first, first + 1), (0, 0), False)

    table = {}
    for kind, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        for shape in COLUMNS:
            table[f"columns {kind} {'x'.join(map(str, shape))}"] = (lambda kind=kind, shape=shape, dtype=dtype: sums(f"columns_{kind}", shape, dtype), 0.95)
    for kernel, shapes, dtype, first in (("heads_bf16", HEADS, torch.bfloat16, 1), ("exchange_f32", EXCHANGES, torch.float32, 0)):
        for shape in shapes:
            table[f"{kernel} {'x'.join(map(str, shape))}"] = (lambda kernel=kernel, shape=shape, dtype=dtype, first=first: moved(kernel, shape, dtype, first), 0.95)
    return table
