"""Without a GPU: how many entry points kernels have, and how much PTX."""
import pytest

HEAD = "kernel k({}) -> Tensor<{}, {}> {{\n    {}\n}}\n"
PRODUCT = "x: &Tensor<{0}, [M, K]>, w: &Tensor<{0}, [K, N]>"
ROWS = "x: &Tensor<{}, [M, N]>"
#  name: (parameters, element and shape of the result, body), entry points and kilobytes on sm_80, the same on sm_90
KERNELS = {
    "product of f16": ((PRODUCT.format("f16"), "f16", "[M, N]", "x @ w"), (18, 760), (24, 790)),
    "product of bf16": ((PRODUCT.format("bf16"), "bf16", "[M, N]", "x @ w"), (18, 760), (24, 790)),
    "product of f32": ((PRODUCT.format("f32"), "f32", "[M, N]", "x @ w"), (19, 690), (19, 690)),
    "product of f64": ((PRODUCT.format("f64"), "f64", "[M, N]", "x @ w"), (18, 450), (18, 460)),
    "product of i8": ((PRODUCT.format("i8"), "i8", "[M, N]", "x @ w"), (13, 740), (21, 950)),
    "sums of i8 in i32": ((PRODUCT.format("i8"), "i32", "[M, N]", "x @ w"), (13, 740), (21, 920)),
    "turned operand": (("x: &Tensor<bf16, [M, K]>, w: &Tensor<bf16, [N, K]>", "bf16", "[M, N]", "x @ w.transpose()"), (23, 850), (29, 880)),
    "batch of products": (("x: &Tensor<f16, [B, M, K]>, w: &Tensor<f16, [B, K, N]>", "f16", "[B, M, N]", "x @ w"), (18, 860), (24, 890)),
    "product and bias": ((PRODUCT.format("bf16") + ", b: &Tensor<bf16, [N]>", "bf16", "[M, N]", "max(x @ w + b, 0.0)"), (18, 770), (24, 910)),
    "computed operand": (("x: &Tensor<f32, [M, K]>, w: &Tensor<bf16, [K, N]>", "bf16", "[M, N]", "(x as bf16) @ w"), (19, 800), (28, 890)),
    "batch of one matrix": (("x: &Tensor<f16, [B, M, K]>, w: &Tensor<f16, [K, N]>", "f16", "[B, M, N]", "x @ w"), (18, 860), (24, 890)),
    "two products": (("x: &Tensor<f16, [M, K]>, v: &Tensor<f16, [K, L]>, w: &Tensor<f16, [L, N]>", "f16", "[M, N]", "x @ v @ w"), (27, 1400), (41, 1510)),
    "softmax of f32": ((ROWS.format("f32"), "f32", "[M, N]", "softmax(x)"), (13, 420), (13, 420)),
    "softmax of bf16": ((ROWS.format("bf16"), "bf16", "[M, N]", "softmax(x)"), (16, 420), (16, 420)),
    "layer norm": ((ROWS.format("f32"), "f32", "[M, N]", "let d = x - x.mean(dim = -1, keepdim = true)\n    d / sqrt((d * d).mean(dim = -1, keepdim = true) + 1e-5)"), (13, 360), (13, 360)),
    "root mean square": ((ROWS.format("f32"), "f32", "[M, N]", "x / sqrt((x * x).mean(dim = -1, keepdim = true) + 1e-5)"), (13, 290), (13, 290)),
    "row sums": ((ROWS.format("f32"), "f32", "[M]", "x.sum(dim = 1)"), (5, 65), (5, 65)),
    "column sums": ((ROWS.format("f32"), "f32", "[N]", "x.sum(dim = 0)"), (4, 65), (4, 65)),
    "scan": ((ROWS.format("f32"), "f32", "[M, N]", "cumsum(x, dim = 1)"), (3, 30), (3, 30)),
    "elementwise": ((ROWS.format("f32") + ", y: &Tensor<f32, [M, N]>", "f32", "[M, N]", "x * y + 1.0"), (2, 40), (2, 40)),
    "conversion": ((ROWS.format("bf16"), "f32", "[M, N]", "x as f32"), (2, 50), (2, 50)),
    "transpose": ((ROWS.format("f32"), "f32", "[N, M]", "x.transpose()"), (2, 65), (2, 65))}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_have_few_entry_points(vortex, tmp_path, name):
    parts, *bounds = KERNELS[name]
    path = tmp_path / "k.vx"
    *lines, last = parts[3].split("\n")
    path.write_text(HEAD.format(*parts[:3], "\n".join([*lines, "    return " + last.strip()]).strip()))
    for target, (entries, kilobytes) in zip(("sm_80", "sm_90"), bounds):
        code = vortex("build", path, "--target", target, "--no-cache", "--emit", "asm").stdout
        assert code.count(".visible .entry ") <= entries, target
        assert len(code) <= kilobytes * 1000, target
