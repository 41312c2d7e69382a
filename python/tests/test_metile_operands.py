"""Every operation with every kind of operands: a random share of all pairs, which work alike on the device and in the interpreter, or are refused alike
at a line of the kernel. They run in a process of their own: none may end it."""
import json
import os
import random
import subprocess
import sys

import numpy as np

import metile

LANES, TILE = 32, (4, 4)


def _tile(X, dtype="f32", shape=TILE):
    tile = metile.tile_load(X, 0, 0, TILE[1], shape)
    return tile if dtype == "f32" else metile.cast(tile, dtype)


KINDS = {
    "f32": lambda X, lane: metile.load(X + lane), "mask": lambda X, lane: metile.load(X + lane) > 3, "id": lambda X, lane: lane,
    **{dtype: lambda X, lane, dtype=dtype: metile.cast(metile.load(X + lane), dtype) for dtype in ("f16", "bf16", "i32", "u32", "u8")},
    "uniform": lambda X, lane: metile.sum(metile.load(X + lane)), "integer": lambda X, lane: 2, "float": lambda X, lane: 1.5, "bool": lambda X, lane: True,
    "pointer": lambda X, lane: X, "tile": lambda X, lane: _tile(X), "tile of i32": lambda X, lane: _tile(X, "i32"), "tile of u8": lambda X, lane: _tile(X, "u8"),
    "tile of masks": lambda X, lane: _tile(X) > 2, "row": lambda X, lane: _tile(X, shape=(1, TILE[1])),
}


def _loop(start, end, first, step):
    total = first
    for _ in metile.tile_range(start, end):
        total = step(total)
    return total


def _through_shared(a, b):
    memory, lane = metile.shared(LANES), metile.thread_id()
    metile.store(memory + lane, a)
    metile.barrier()
    return metile.load(memory + (lane + b) % LANES)


OPERATIONS = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b, "%": lambda a, b: a % b, "**": lambda a, b: a**b,
    "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b, "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b, "<": lambda a, b: a < b,
    "==": lambda a, b: a == b, "-x": lambda a, b: -a + b, "~": lambda a, b: ~a & b, "maximum": lambda a, b: metile.maximum(a, b), "abs": lambda a, b: metile.abs(a) + b,
    "where": lambda a, b: metile.where(a, b, a), "where by it": lambda a, b: metile.where(b, a, 1), "exp": lambda a, b: metile.exp(a) * b,
    "reverse_bits": lambda a, b: metile.reverse_bits(a) ^ b, "sum": lambda a, b: metile.sum(a) + b, "max": lambda a, b: metile.max(a) + b,
    "min": lambda a, b: metile.min(a) + b, "simd_sum": lambda a, b: metile.simd_sum(a) + b, "simd_max": lambda a, b: metile.simd_max(a) + b,
    "simd_shuffle_xor": metile.simd_shuffle_xor, "simd_broadcast": metile.simd_broadcast, "dot": lambda a, b: metile.dot(a, b, metile.zeros(TILE)),
    "cast": lambda a, b: metile.cast(a, "i32") + metile.cast(b, "f16"), "shared": _through_shared, "carried": lambda a, b: _loop(0, 3, a, lambda t: t + b),
    "rebound": lambda a, b: _loop(0, 3, a, lambda t: b), "bounds": lambda a, b: _loop(a, b, 0.0, lambda t: t + 1.0),
    "assertion": lambda a, b: (metile.device_assert(a == a, "a"), a + b)[1], "masked": lambda a, b: metile.where(a > 2, metile.scalar(0.5), b),
}


def kernel_of(operation, left, right):
    @metile.kernel
    def kernel(X, Out):
        lane = metile.arange(0, LANES)
        result = OPERATIONS[operation](KINDS[left](X, lane), KINDS[right](X, lane))
        if shape := getattr(result, "tile_shape", None):
            metile.tile_store(Out, 0, 0, TILE[1], result, shape)
        else:
            metile.store(Out + lane, result)

    return kernel


def outcome(case):
    x, out = (np.arange(LANES) % 7 + 1).astype(np.float32), np.full(LANES, -77, np.float32)
    try:
        kernel_of(*case)[(1,)](x, out)
    except (metile.LoweringError, TypeError, ValueError, OverflowError) as error:
        text = str(error)
        return f"{type(error).__name__}: {text}"
    return [round(float(number), 2) for number in out]


def run_in_a_child(cases, **environment):
    code = (f"import sys; sys.path[:0] = {sys.path!r}\nimport json, warnings, metile; warnings.simplefilter('ignore')\nimport test_metile_operands as own\n"
            "for case in json.loads(sys.stdin.read()): print(json.dumps(case), flush=True); print(json.dumps(own.outcome(case)), flush=True)\n")
    done = subprocess.run([sys.executable, "-c", code], input=json.dumps(cases), capture_output=True, text=True, timeout=3600, cwd=os.path.dirname(__file__),
                          env={**os.environ, **environment})
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"{lines[-1:]} ended the process:\n{done.stderr}"
    return dict(zip(map(tuple, map(json.loads, lines[::2])), map(json.loads, lines[1::2])))


def test_no_pair_of_operands_ends_the_process_or_is_silently_something_else(device):
    pairs = [(operation, left, right) for operation in OPERATIONS for left in KINDS for right in KINDS]
    cases = random.sample(pairs, 120)
    where = {} if device == "interpreter" else {"METILE_DEVICE": device}
    got, reference = run_in_a_child(cases, **where), run_in_a_child(cases, METILE_INTERPRET="1")
    for case in cases:
        assert got[case] == reference[case] or np.allclose(got[case], reference[case], rtol=1e-2, equal_nan=True), (case, got[case], reference[case])
        if isinstance(got[case], str):
            assert "vx." not in got[case] and "internal" not in got[case], (case, got[case])
            assert "\n" in got[case] and os.path.basename(__file__) in got[case], (case, got[case])
