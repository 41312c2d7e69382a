"""Matrix products of ragged sizes, f32 and f16, with the epilogue that the call chooses."""
import numpy as np

import metile


@metile.kernel
def matmul(A, B, C, Residual, M, N, K, scale, EPILOGUE: metile.constexpr, BLOCK_M: metile.constexpr, BLOCK_N: metile.constexpr,
           BLOCK_K: metile.constexpr):
    pid_m, pid_n = metile.tile_swizzle(metile.program_id(0), metile.program_id(1))
    row, column = pid_m * BLOCK_M, pid_n * BLOCK_N
    acc = metile.zeros((BLOCK_M, BLOCK_N), dtype="f32")
    for k in metile.tile_range(0, K, BLOCK_K):
        a = metile.tile_load(A, row, k, K, (BLOCK_M, BLOCK_K))
        b = metile.tile_load(B, k, column, N, (BLOCK_K, BLOCK_N))
        acc = metile.dot(a, b, acc)
    if EPILOGUE == "gelu":
        acc = acc / (1.0 + metile.exp(-1.702 * acc))
    elif EPILOGUE == "silu":
        acc = acc / (1.0 + metile.exp(-acc))
    elif EPILOGUE == "leaky":
        acc = metile.where(acc > 0, acc, 0.1 * acc)
    elif EPILOGUE == "residual":
        acc = acc * scale + metile.tile_load(Residual, row, column, N, (BLOCK_M, BLOCK_N))
    metile.tile_store(C, row, column, N, acc, (BLOCK_M, BLOCK_N))


EPILOGUES = {"none": lambda c, r: c, "gelu": lambda c, r: c / (1 + np.exp(-1.702 * c)), "silu": lambda c, r: c / (1 + np.exp(-c)),
             "leaky": lambda c, r: np.where(c > 0, c, 0.1 * c), "residual": lambda c, r: 0.5 * c + r}


def main():
    random = np.random.default_rng()
    for dtype in (np.float32, np.float16):
        for name, epilogue in EPILOGUES.items():
            m, n, k = 100, 130, 70
            a, b = random.standard_normal((m, k)).astype(dtype), random.standard_normal((k, n)).astype(dtype)
            residual, c = random.standard_normal((m, n), dtype=np.float32), np.full((m, n), np.nan, np.float32)
            matmul[(metile.cdiv(m, 64), metile.cdiv(n, 64))](a, b, c, residual, m, n, k, 0.5, EPILOGUE=name, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
            np.testing.assert_allclose(c, epilogue(a.astype(np.float64) @ b.astype(np.float64), residual), rtol=1e-3, atol=1e-3)
    print(f"matmul: 100x130x70 in f32 and f16 with epilogues {', '.join(EPILOGUES)} correct")


if __name__ == "__main__":
    main()
