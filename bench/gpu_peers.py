"""Peers of bench/gpu.py: torch.compile and Triton kernels. A peer that cannot be built is None."""
import torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None


def compiled(function, *arguments):
    try:
        fast = torch.compile(function, dynamic=False)
        fast(*arguments)
        return lambda: fast(*arguments)
    except Exception:  # whatever it needs is missing here
        return None


if triton:

    @triton.jit
    def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)

    @triton.jit
    def sum_kernel(x, out, n, BLOCK: tl.constexpr, STEPS: tl.constexpr):
        total = tl.zeros([BLOCK], tl.float32)
        first = tl.program_id(0).to(tl.int64) * BLOCK * STEPS
        for step in range(STEPS):
            at = first + step * BLOCK + tl.arange(0, BLOCK)
            total += tl.load(x + at, mask=at < n, other=0.0)
        tl.store(out + tl.program_id(0), tl.sum(total, 0))

    @triton.jit
    def softmax_kernel(x, out, n, BLOCK: tl.constexpr):
        row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
        value = tl.load(x + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
        value = tl.exp(value - tl.max(value, 0))
        tl.store(out + row * n + at, value / tl.sum(value, 0), mask=at < n)


def triton_add(x, y):
    if not triton:
        return None
    out = torch.empty_like(x)
    return lambda: add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)


def triton_sum(x):
    if not triton:
        return None
    blocks = triton.cdiv(x.numel(), 4096 * 16)
    partial = torch.empty(blocks, device="cuda")

    def run():
        sum_kernel[(blocks,)](x, partial, x.numel(), BLOCK=4096, STEPS=16)
        return partial.sum()

    return run


def triton_softmax(x):
    if not triton:
        return None
    out, rows, n = torch.empty_like(x), x.shape[0], x.shape[1]
    return lambda: softmax_kernel[(rows,)](x, out, n, BLOCK=triton.next_power_of_2(n), num_warps=8 if n <= 8192 else 16)
