"""Rows of bench/gpu.py --norms: kernels of bench/kernels/rows.vx on 2^26 elements, in rows of many lengths. The bytes are those of reading and writing each
element once; where only row scalars leave, a copy moves as many bytes as are read."""
import torch

LENGTHS = [61, 64, 100, 256, 1000, 1001, 4096, 8192, 16384, 32768]
KINDS = {"f32": (torch.float32, (2e-6, 2e-5)), "bf16": (torch.bfloat16, (1e-5, 1e-2))}


def quantised(x):
    scale = (x.float().abs().amax(-1, keepdim=True) * (1.0 / 127.0))
    quotients = x.float() / scale.clamp_min(1e-12)
    return (quotients.double().abs() + 0.5).floor().copysign(quotients).to(torch.int8), scale.reshape(-1)  # halves away from zero


def rows(prepare, quick, compiled):
    """As gpu.py's: `prepare(kernel, *tensors)` gives our side."""
    total = 1 << (26 if not quick else 20)

    def row(name, kind, n):
        dtype, tolerance = KINDS[kind]
        x = torch.randn(total // n, n, device="cuda").to(dtype)
        w, b = torch.randn(n, device="cuda").to(dtype), torch.randn(n, device="cuda").to(dtype)
        kernel, wide, scalars = f"{name}_{kind}", x.double, (1e-5, 1e-5)
        labels = torch.randint(0, n, (len(x),), device="cuda", dtype=torch.int32)
        classes = labels.long()
        picked = lambda: torch.nn.functional.one_hot(labels.long(), n).double()
        if name == "logsumexp":
            return x.nbytes, prepare(kernel, x), lambda: torch.logsumexp(wide(), -1), scalars, {"torch": lambda: torch.logsumexp(x, -1)}
        if name == "row_sums":
            return x.nbytes, prepare(kernel, x), lambda: wide().sum(-1), (1e-3, 1e-5), {"torch": lambda: x.sum(-1, dtype=torch.float32)}
        if name == "masked_softmax":
            mask = torch.rand(x.shape, device="cuda") < 0.7
            mask[:, 0] = True
            return 2 * x.nbytes + mask.nbytes, prepare(kernel, x, mask), lambda: torch.softmax(torch.where(mask, wide() * 0.125, -torch.inf), -1), tolerance, \
                {"torch": lambda: torch.softmax(torch.where(mask, x * 0.125, -torch.inf), -1)}
        if name == "cross_entropy":
            return x.nbytes, prepare(kernel, x, labels), lambda: torch.nn.functional.cross_entropy(wide(), labels.long(), reduction="none"), scalars, \
                {"torch": lambda: torch.nn.functional.cross_entropy(x, classes, reduction="none")}
        if name == "cross_entropy_backward":
            grad = torch.randn(len(x), device="cuda")
            return 2 * x.nbytes, prepare(kernel, x, labels, grad), lambda: (torch.softmax(wide(), -1) - picked()) * grad.double()[:, None], tolerance, {}
        if name == "layernorm":
            exact = lambda: torch.nn.functional.layer_norm(wide(), (n,), w.double(), b.double(), 1e-5)
            return 2 * x.nbytes, prepare(kernel, x, w, b), exact, (1e-4 if kind == "f32" else 2e-2, tolerance[1]), {}
        if name == "log_softmax":
            return 2 * x.nbytes, prepare(kernel, x), lambda: torch.log_softmax(wide(), -1), (1e-5, tolerance[1]), {}
        run = prepare(kernel, x)
        both = lambda: (run(), run.results)[1]
        both.results = run.results
        return x.nbytes + x.numel(), both, lambda: quantised(x), (0, 0), {}

    table = {}
    for name in ("quantise", "logsumexp", "row_sums", "masked_softmax", "cross_entropy", "cross_entropy_backward", "layernorm", "log_softmax"):
        for kind in KINDS:
            for n in LENGTHS:
                table[f"{name} {kind} {n}"] = (lambda name=name, kind=kind, n=n: row(name, kind, n), 0.95)
    return table
