"""Tile code that takes a product in steps of its depth: loops that the CPU runs as one product, and neighbours of theirs that stay loops."""
import re

import numpy
import pytest

# name: (statements before the loop, loop, what the block returns, NumPy's answer from a [m, k], b [k, n], s [m], steps of 8 or 16 → [m, n])
ZEROS = "var acc: Tensor<f32, [BM, BN]> @local = zeros()"
PLAIN = "acc += a[block_m..+BM, k..+8] @ b[k..+8, block_n..+BN]"


def windows(a, b, first, last, step, width=None, shift=0):
    """The sum over k of a[:, k+shift ..+width] @ b[k+shift ..+width, :], zeros outside."""
    width = width or step
    depth = max(last, 0) + shift + 2 * width
    wide, tall = numpy.zeros((a.shape[0], depth + a.shape[1])), numpy.zeros((depth + a.shape[1], b.shape[1]))
    wide[:, : a.shape[1]], tall[: b.shape[0]] = a, b
    return sum((wide[:, k + shift : k + shift + width] @ tall[k + shift : k + shift + width] for k in range(first, last, step)),
               numpy.zeros((a.shape[0], b.shape[1])))


MERGED = {
    "plain": (ZEROS, f"for k in range(0, K, 8) {{ {PLAIN} }}", "acc", lambda a, b, s: a @ b),
    "from_three": (ZEROS, f"for k in range(3, K, 8) {{ {PLAIN} }}", "acc", lambda a, b, s: windows(a, b, 3, a.shape[1], 8)),
    "ends_early": (ZEROS, f"for k in range(0, K / 2, 8) {{ {PLAIN} }}", "acc", lambda a, b, s: windows(a, b, 0, a.shape[1] // 2, 8)),
    "ends_before_it_starts": (ZEROS, f"for k in range(K + 5, K, 8) {{ {PLAIN} }}", "acc + 1.0", lambda a, b, s: 0 * (a @ b) + 1),
    "starts_from_sums": ("var acc: Tensor<f32, [BM, BN]> @local = c[block_m..+BM, block_n..+BN] * 2.0",
                         f"for k in range(0, K, 8) {{ {PLAIN} }}", "acc", lambda a, b, s: a @ b + 2 * (s[:, None] + 0 * (a @ b))),
    "shifted": (ZEROS, "for k in range(0, K, 8) { acc += a[block_m..+BM, k + 5..+8] @ b[5 + k..+8, block_n..+BN] }", "acc",
                lambda a, b, s: windows(a, b, 0, a.shape[1], 8, shift=5)),
    "two_sums": (f"{ZEROS}\n    var other: Tensor<f32, [BM, BN]> @local = zeros()",
                 f"for k in range(0, K, 8) {{ {PLAIN}\n other += (a[block_m..+BM, k..+8] * 2.0) @ b[k..+8, block_n..+BN] }}",
                 "acc - other", lambda a, b, s: -(a @ b)),
    "computed": (ZEROS, "for k in range(0, K, 8) { acc += max(a[block_m..+BM, k..+8] * 2.0 + 1.0, 0.0) @ (b[k..+8, block_n..+BN] - 3.0) }", "acc",
                 lambda a, b, s: windows(numpy.pad(numpy.maximum(a * 2 + 1, 0), ((0, 0), (0, -a.shape[1] % 8)), constant_values=1),
                                         numpy.pad(b - 3, ((0, -b.shape[0] % 8), (0, 0)), constant_values=-3), 0, a.shape[1], 8)),
    "turned": (ZEROS, "for k in range(0, K, 8) { acc += at[k..+8, block_m..+BM].transpose() @ bt[block_n..+BN, k..+8].transpose() }", "acc",
               lambda a, b, s: a @ b),
    "scaled_rows": ("let scale = s[block_m..+BM].reshape([BM, 1])\n    " + ZEROS,
                    "for k in range(0, K, 8) { acc += (a[block_m..+BM, k..+8] * scale) @ b[k..+8, block_n..+BN] }", "acc",
                    lambda a, b, s: (a * s[:, None]) @ b),
    "staged": (f"let ta: Tensor<f32, [BM, 8]> @shared\n    let tb: Tensor<f32, [8, BN]> @shared\n    {ZEROS}",
               "for k in range(0, K, 8) { ta = stage(a[block_m..+BM, k..+8])\n tb = stage(b[k..+8, block_n..+BN])\n sync_block()\n acc += ta @ tb }",
               "acc", lambda a, b, s: a @ b),
}
KEPT = {
    "changes_sign": (ZEROS, f"for k in range(0, K, 8) {{ {PLAIN}\n acc = 0.0 - acc }}", "acc",
               lambda a, b, s: sum((-1) ** ((a.shape[1] - k + 7) // 8) * windows(a, b, k, k + 8, 8) for k in range(0, a.shape[1], 8))),
    "overlaps": (ZEROS, "for k in range(0, K, 4) { acc += a[block_m..+BM, k..+8] @ b[k..+8, block_n..+BN] }", "acc",
                 lambda a, b, s: windows(a, b, 0, a.shape[1], 4, width=8)),
    "backwards": (ZEROS, "for k in range(0, K, 8) { acc += a[block_m..+BM, K - 8 - k..+8] @ b[K - 8 - k..+8, block_n..+BN] }", "acc", None),
    "twice_as_fast": (ZEROS, "for k in range(0, K, 8) { acc += a[block_m..+BM, 2 * k..+8] @ b[2 * k..+8, block_n..+BN] }", "acc", None),
    "scaled_by_step": (ZEROS, "for k in range(0, K, 8) { acc += (a[block_m..+BM, k..+8] * s[k / 8]) @ b[k..+8, block_n..+BN] }", "acc", None),
    "staged_and_read_again": (f"let ta: Tensor<f32, [BM, 8]> @shared\n    {ZEROS}",
                              "for k in range(0, K, 8) { ta = stage(a[block_m..+BM, k..+8])\n sync_block()\n acc += ta @ b[k..+8, block_n..+BN] }",
                              "acc + ta.sum(dim = 1, keepdim = true)", None),
}


def kernel(name, form, bm, bn):
    before, loop, result, _ = form
    text = f"""@tile(m = BM, n = BN)
kernel {name}(a: &Tensor<f32, [M, K]>, b: &Tensor<f32, [K, N]>, at: &Tensor<f32, [K, M]>, bt: &Tensor<f32, [N, K]>, c: &Tensor<f32, [M, N]>,
    s: &Tensor<f32, [M]>) -> Tensor<f32, [M, N]> {{
    {before}
    {loop}
    return {result}
}}
"""
    return re.sub(r"\bBM\b", str(bm), re.sub(r"\bBN\b", str(bn), text))


def program(forms, bm, bn):
    calls = "\n".join(f'    save_npy(format("{{}}/{name}.npy", dir), {name}(&a, &b, &at, &bt, &c, &s))' for name in forms)
    loads = "\n".join(f'    let {name}: Tensor<f32, [{shape}]> = load_npy(format("{{}}/in_{name}.npy", dir))'
                      for name, shape in {"a": "M, K", "b": "K, N", "at": "K, M", "bt": "N, K", "c": "M, N", "s": "M"}.items())
    return "".join(kernel(name, form, bm, bn) for name, form in forms.items()) + f"fn main() {{\n    let dir = args()[0]\n{loads}\n{calls}\n}}\n"


def run(vortex, tmp_path, forms, device, m, n, k, bm, bn):
    """Small integers: every order of additions gives the same sums."""
    rng = numpy.random.default_rng()
    a, b = rng.integers(-3, 4, (m, k)).astype(numpy.float32), rng.integers(-3, 4, (k, n)).astype(numpy.float32)
    s = rng.integers(-3, 4, m).astype(numpy.float32)
    for name, array in {"a": a, "b": b, "at": a.T, "bt": b.T, "c": s[:, None] + numpy.zeros((m, n), numpy.float32), "s": s}.items():
        numpy.save(tmp_path / f"in_{name}.npy", numpy.ascontiguousarray(array))
    path = tmp_path / "products.vx"
    path.write_text(program(forms, bm, bn))
    vortex("run", path, "--device", device, "--", tmp_path)
    return {name: numpy.load(tmp_path / f"{name}.npy") for name in forms}, (a.astype(float), b.astype(float), s.astype(float))


@pytest.mark.parametrize("m, n, k, bm, bn", [(19, 37, 21, 8, 16), (7, 5, 8, 16, 8), (1, 90, 100, 8, 32), (260, 330, 150, 24, 48), (500, 190, 170, 64, 64),
                                             (200, 400, 333, 16, 8)])
def test_products_in_steps_equal_numpy(vortex, tmp_path, m, n, k, bm, bn):
    forms = MERGED | KEPT
    results, inputs = run(vortex, tmp_path, forms, "cpu", m, n, k, bm, bn)
    for name, form in forms.items():
        if form[3]:
            numpy.testing.assert_array_equal(results[name], form[3](*inputs), err_msg=name)


def test_products_in_steps_equal_the_interpreter(vortex, tmp_path):
    m, n, k = 35, 41, 45
    forms = MERGED | KEPT
    path = tmp_path / "products.vx"
    path.write_text(program(forms, 16, 16))
    rng = numpy.random.default_rng()
    for name, shape in {"a": (m, k), "b": (k, n), "at": (k, m), "bt": (n, k), "c": (m, n), "s": (m,)}.items():
        numpy.save(tmp_path / f"in_{name}.npy", rng.integers(-3, 4, shape).astype(numpy.float32))
    results = {}
    for device in ("interpreter", "cpu"):
        vortex("run", path, "--device", device, "--", tmp_path)
        results[device] = {name: numpy.load(tmp_path / f"{name}.npy") for name in forms}
    for name in forms:
        numpy.testing.assert_array_equal(results["cpu"][name], results["interpreter"][name], err_msg=name)
