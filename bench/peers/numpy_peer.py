"""numpy_peer.py chain|silu|softmax|rmsnorm <rows> <columns>: the NumPy side, speaking the protocol of protocol.h."""
import sys
import time

import numpy as np


def fill(count, seed):
    mixed = (np.arange(count, dtype=np.uint32) + np.uint32(seed * 7919)) * np.uint32(2654435761)
    return (mixed >> 8 & 0xFFFF).astype(np.float32) / np.float32(65536) - np.float32(0.5)


def digest(values):
    flat = values.reshape(-1).astype(np.float64)
    terms = flat * (np.arange(flat.size) % 97 + 1)
    return f"{terms.sum():.17g} {np.abs(terms).sum():.17g}"


def chain(x, _):
    return np.maximum(x * np.float32(1.5) + np.float32(0.25), np.float32(0)) * x - np.float32(0.125)


def silu(x, _):
    return x / (np.float32(1) + np.exp(-x))


def softmax(x, _):
    shifted = np.exp(x - x.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def rmsnorm(x, weight):
    scale = np.float32(1) / np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(1e-5))
    return x * scale * weight


def main():
    work = {"chain": chain, "silu": silu, "softmax": softmax, "rmsnorm": rmsnorm}[sys.argv[1]]
    rows, columns = int(sys.argv[2]), int(sys.argv[3])
    x, weight = fill(rows * columns, 1).reshape(rows, columns), fill(columns, 2)
    for _ in range(2):
        result = work(x, weight)
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "digest":
            print(digest(result), flush=True)
            continue
        start = time.perf_counter_ns()
        result = work(x, weight)
        print(time.perf_counter_ns() - start, flush=True)


if __name__ == "__main__":
    main()
