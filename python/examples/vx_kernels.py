"""Kernels of a .vx file called from Python: the whole-tensor softmax of examples/softmax.vx."""
import pathlib

import numpy as np

import vortex


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    program = vortex.compile(root / "examples" / "softmax.vx")
    x = np.random.default_rng().standard_normal((37, 1003), dtype=np.float32)
    y = program.softmax_by_hand(x)
    e = np.exp(x - x.max(axis=1, keepdims=True).astype(np.float64))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-7)
    print(f"vx_kernels: {program.softmax_by_hand} correct")


if __name__ == "__main__":
    main()
