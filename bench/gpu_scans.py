"""Rows of bench/gpu.py --scans: cumulative sums of one vector, of rows and of columns (bench/kernels/scans.vx)."""
import torch

f32, f64, bf16 = torch.float32, torch.float64, torch.bfloat16
CASES = [("vector_f32", f32, [(1 << 24,), (1 << 26,), (1 << 28,), ((1 << 26) + 1,)], 0), ("vector_bf16", bf16, [(1 << 27,), (1 << 28,)], 0),
         ("vector_f64", f64, [(1 << 26,)], 0), ("rows_f32", f32, [(16384, 4096), (16381, 4097), (1 << 20, 64), (1 << 20, 61), (64, 1 << 20)], 1),
         ("rows_bf16", bf16, [(32768, 4096), (131072, 1024)], 1), ("columns_f32", f32, [(8192, 8192), (65536, 1024), (1024, 65536)], 0)]


def rows(prepare, quick, compiled):
    """As gpu.py's: `prepare(kernel, tensor)` gives our side, `compiled(function, tensor)` a peer or None."""

    def row(kernel, dtype, shape, dim):
        # Whole numbers whose sums f32 holds: the result is right to the last bit, rounded to its type.
        x = torch.randint(-2, 3, (shape[0] // (64 if quick else 1) or 1, *shape[1:]), device="cuda").to(dtype)
        wide = f64 if dtype == f64 else f32
        return 2 * x.nbytes, prepare(kernel, x), lambda: x.to(wide).cumsum(dim).to(dtype), (0, 0), {"torch": lambda: x.cumsum(dim)}

    return {f"{kernel} {'x'.join(map(str, shape))}": (lambda kernel=kernel, dtype=dtype, shape=shape, dim=dim: row(kernel, dtype, shape, dim), 0.95)
            for kernel, dtype, shapes, dim in CASES for shape in shapes}
