"""Rows of bench/gpu.py --statements: kernels of bench/kernels/statements.vx. The bytes are those of reading and of writing each element once."""
import torch


def adam(g, m, v, p, rate):
    m, v = m * 0.9 + g * 0.1, v * 0.999 + g * g * 0.001
    return m, v, p - rate * m / (v.sqrt() + 1e-8)


def momentum(g, m, p, rate):
    m = m * 0.9 + g
    return m, p - rate * m


def normed(h, x, w):
    h = (h.float() + x.float()).to(h.dtype).double()
    return h, h * torch.rsqrt((h * h).mean(-1, keepdim=True) + 1e-5) * w.double()


def rows(prepare, quick, compiled):
    """As gpu.py's: `prepare(kernel, *tensors)` gives our side."""
    total = 1 << (26 if not quick else 20)
    f32, bf16 = torch.float32, torch.bfloat16

    def in_place(kernel, function, given, written, more=(), tolerance=(1e-6, 1e-5), read=None):
        """`given`: the arguments, of which those numbered `written` are updated."""
        before = [tensor.clone() for tensor in given]
        run = prepare(kernel, *given, *more)
        own = [given[number] for number in written] + list(run.results)

        def ours():
            run()
            return own

        def reset():
            for tensor, old in zip(given, before):
                tensor.copy_(old)

        ours.results, ours.reset = run.results, reset
        moved = sum(t.nbytes for t in given if t.dim() == given[0].dim()) + sum(t.nbytes for t in own)
        return moved, ours, lambda: function(*(t.double() for t in before), *more), tolerance, {}

    def step(kernel, function, kind, moments):
        flat = lambda dtype: torch.rand(total, device="cuda").add_(0.1).to(dtype)
        tensors = [flat(kind)] + [flat(f32) for _ in range(moments)] + [flat(kind)]
        return in_place(kernel, function, tensors, list(range(1, moments + 2)), (0.01,), (1e-6, 1e-5) if kind == f32 else (1e-6, 1e-2))

    def norm(kind, dtype, n):
        h, x = (torch.randn(total // n, n, device="cuda").to(dtype) for _ in range(2))
        w = torch.randn(n, device="cuda").to(dtype)
        moved, ours, _, tolerance, peers = in_place(f"add_norm_{kind}", normed, [h, x, w], [0], (), (1e-5, 1e-5) if dtype == f32 else (1e-2, 1e-2))
        old = h.clone()
        return moved, ours, lambda: normed(old, x, w), tolerance, peers

    def moments(kernel, shape, dims):
        x = torch.randn(*shape, device="cuda")
        run = prepare(kernel, x)
        ours = lambda: (run(), run.results)[1]
        ours.results = run.results
        return 2 * x.nbytes, ours, lambda: (x.double().mean(dims), x.double().var(dims, correction=0)), (1e-6, 1e-5), {"torch": lambda: torch.var_mean(x, dims, correction=0)}

    def middle(kind, dtype, shape):
        x = torch.randn(*shape, device="cuda").to(dtype)
        return x.nbytes, prepare(f"middle_{kind}", x), lambda: x.double().mean(1), (1e-5, 1e-5 if dtype == f32 else 1e-2), {"torch": lambda: x.mean(1)}

    table = {"adam f32": lambda: step("adam_f32", adam, f32, 2), "adam in steps f32": lambda: step("adam_steps_f32", adam, f32, 2),
             "adam bf16 weights": lambda: step("adam_bf16", adam, bf16, 2), "momentum f32": lambda: step("momentum_f32", momentum, f32, 1)}
    for kind, dtype in (("f32", f32), ("bf16", bf16)):
        for n in (256, 1000, 1001, 2048, 4096, 8192, 16384, 32768):
            table[f"add and norm {kind} {n}"] = lambda kind=kind, dtype=dtype, n=n: norm(kind, dtype, n)
        for shape in ((64, 1024, 1024), (16, 4096, 1024), (1024, 64, 1024), (8, 8191, 1001)):
            table[f"middle {kind} {'x'.join(map(str, shape))}"] = lambda kind=kind, dtype=dtype, shape=shape: middle(kind, dtype, shape)
    for shape in ((64, 256, 4096), (256, 64, 3136), (128, 512, 784), (512, 2048, 49), (4096, 4096, 4)):
        table[f"channels {'x'.join(map(str, shape))}"] = lambda shape=shape: moments("channels_f32", shape, (0, 2))
    for shape in ((65536, 1024), (8192, 8192), (1000003, 67)):
        table[f"columns {'x'.join(map(str, shape))}"] = lambda shape=shape: moments("columns_f32", shape, (0,))
    return {name: (make, 0.95) for name, make in table.items()}
