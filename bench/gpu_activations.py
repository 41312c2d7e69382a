"""Rows of bench/gpu.py --activations: functions of one tensor, and SwiGLU of two, in f32, f16 and bf16."""
import math

import torch
from torch.nn import functional

ONE = {
    "exp": torch.exp, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "silu": functional.silu, "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"), "log": lambda x: torch.log(x.abs() + 1.5),
}
KINDS = {"f32": (torch.float32, 2e-6), "f16": (torch.float16, 6e-4), "bf16": (torch.bfloat16, 5e-3)}


def rows(prepare, quick, compiled):
    """As gpu.py's: `prepare(kernel, tensors…)` gives our side, `compiled(function, tensors…)` a peer or None. 2^28 bytes per tensor."""
    total = 1 << (28 if not quick else 22)

    def row(name, function, kind, inputs):
        dtype, tolerance = KINDS[kind]
        tensors = [torch.randn(total // dtype.itemsize, device="cuda").mul_(2).to(dtype) for _ in range(inputs)]
        exact = lambda: function(*[tensor.double() for tensor in tensors]).to(dtype)  # what overflows the type is an infinity
        floor = 1e-6 if name.startswith("gelu") and kind == "f32" else tolerance * math.exp(-8)  # 1 + erf is rounded, as the kernel is written
        return total * (inputs + 1), prepare(f"{name}_{kind}", *tensors), exact, (floor, tolerance), \
            {"torch": lambda: function(*tensors), "torch.compile": compiled(function, *tensors)}

    table = {}
    for kind in KINDS:
        for name, function in ONE.items():
            table[f"{name} {kind}"] = (lambda name=name, function=function, kind=kind: row(name, function, kind, 1), 0.95)
        table[f"swiglu {kind}"] = (lambda kind=kind: row("swiglu", lambda x, y: functional.silu(x) * y, kind, 2), 0.95)
    return table
