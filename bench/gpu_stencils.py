"""Rows of bench/gpu.py --stencils: kernels of bench/kernels/stencils.vx. The bytes are those of reading and of writing each element once."""
import torch
from torch.nn.functional import pad

PLANES = [(16384, 16384), (8191, 16381), (1080, 1920)]
SPACES = [(512, 512, 1024), (255, 511, 1023)]


def around(x, reach):
    """x held at its edges, as f64."""
    x = x.double()
    while x.dim() < 4:
        x = x[None]
    return pad(x, [reach] * 4, mode="replicate")[0, 0]


def nine(x, reach=1, weights=None):
    wide, (h, w) = around(x, reach), x.shape
    side = 2 * reach + 1
    total = torch.zeros(h, w, dtype=torch.float64, device=x.device)
    for i in range(side):
        for j in range(side):
            total += wide[i:i + h, j:j + w] * (1 / 9 if weights is None else weights[i, j].double())
    return total


def seven(x):
    x = x.double()
    held = lambda axis: (torch.cat([x.narrow(axis, 0, 1), x.narrow(axis, 0, x.shape[axis] - 1)], axis) + torch.cat([x.narrow(axis, 1, x.shape[axis] - 1), x.narrow(axis, x.shape[axis] - 1, 1)], axis))
    total = -6 * x
    for axis in range(3):
        total += held(axis)
    return x + 0.1 * total


def rows(prepare, quick, compiled):
    """As gpu.py's: `prepare(kernel, *tensors)` gives our side."""

    def into(name, shape, dtype, tolerance, exact, *more):
        x = torch.randn(*shape, device="cuda").to(dtype)
        o = torch.full_like(x, float("nan"))
        run = prepare(name, x, *more, o)

        def ours():
            run()
            return o

        return 2 * x.nbytes, ours, lambda: exact(x), tolerance, {}

    def returned(name, shape, exact):
        x = torch.randn(*shape, device="cuda")
        return 2 * x.nbytes, prepare(name, x), lambda: exact(x), (1e-5, 1e-5), {}

    close = (1e-5, 1e-5)
    table = {}
    for shape in PLANES if not quick else PLANES[2:]:
        size = "x".join(map(str, shape))
        for name in ("nine_f32", "nine_tall_f32", "nine_square_f32"):
            table[f"{name} {size}"] = (lambda name=name, shape=shape: into(name, shape, torch.float32, close, nine), 0.8)
        table[f"nine_wide_bf16 {size}"] = (lambda shape=shape: into("nine_wide_bf16", shape, torch.bfloat16, (1e-2, 1e-2), nine), 0.8)
        table[f"placed_f32 {size}"] = (lambda shape=shape: returned("placed_f32", shape, nine), 0.8)
        weights = torch.randn(5, 5, device="cuda")
        table[f"filter_f32 {size}"] = (lambda shape=shape, weights=weights: into("filter_f32", shape, torch.float32, (1e-4, 1e-5), lambda x: nine(x, 2, weights), weights), None)
        table[f"shifted_f32 {size}"] = (lambda shape=shape: returned("shifted_f32", shape, lambda x: nine(x)[1:-1, 1:-1]), 0.8)
    for shape in SPACES if not quick else [(20, 64, 100)]:
        table[f"seven_f32 {'x'.join(map(str, shape))}"] = (lambda shape=shape: into("seven_f32", shape, torch.float32, close, seven), 0.8)
    return table
