"""Reductions of dimensions on both sides of some that stay, and what is computed from their results, against NumPy: any order of kept and reduced
dimensions, extents of 0 and 1, element types, tensors of fixed sizes."""
import numpy
import pytest

NORMED = "(x - x.mean(dim = {dims}, keepdim = true)) * rsqrt(((x - x.mean(dim = {dims}, keepdim = true)) * (x - x.mean(dim = {dims}, keepdim = true))).mean(dim = {dims}, keepdim = true) + 0.5)"


def normed(x, dims):
    return (x - x.mean(dims, keepdims=True)) / numpy.sqrt(x.var(dims, keepdims=True) + 0.5)


KERNELS = {  # name: (dimensions of x, those of the result, expression, NumPy)
    "channels": ("B, C, S", "C", "x.mean(dim = [0, 2])", lambda x: x.mean((0, 2))),
    "variances": ("B, C, S", "C", "((x - x.mean(dim = [0, 2], keepdim = true)) * (x - x.mean(dim = [0, 2]).reshape([1, C, 1]))).mean(dim = [0, 2])", lambda x: x.var((0, 2))),
    "batch_norm": ("B, C, S", "B, C, S", NORMED.format(dims="[0, 2]"), lambda x: normed(x, (0, 2))),
    "images": ("B, C, H, W", "B, C, H, W", NORMED.format(dims="[0, 2, 3]"), lambda x: normed(x, (0, 2, 3))),
    "groups": ("B, C, H, W", "B, C, H, W", NORMED.format(dims="[2, 3]"), lambda x: normed(x, (2, 3))),
    "outer": ("B, C, H, W", "H, W", "x.max(dim = [0, 1])", lambda x: x.max((0, 1), initial=-numpy.inf)),
    "middle": ("B, C, S", "B, S", "x.mean(dim = 1)", lambda x: x.mean(1)),
    "between": ("B, C, H, W", "B, W", "x.sum(dim = [1, 2])", lambda x: x.sum((1, 2))),
    "apart": ("B, C, H, W", "B, H", "x.sum(dim = [1, 3])", lambda x: x.sum((1, 3))),
    "others": ("B, C, H, W", "C, W", "x.sum(dim = [0, 2])", lambda x: x.sum((0, 2))),
    "first": ("B, C", "C", "x.mean(dim = 0)", lambda x: x.mean(0)),
    "every": ("B, C, S", "B, C, S", "x - x.mean()", lambda x: x - x.mean()),
    "centred": ("B, C, S", "B, C, S", "x - x.mean(dim = [0, 1]).reshape([1, 1, S])", lambda x: x - x.mean((0, 1))),
    "turned": ("B, C, S", "C, 1", "x.sum(dim = [0, 2]).reshape([1, C]).reshape([C, 1]) * 0.5", lambda x: x.sum((0, 2))[:, None] * 0.5),
}
CASES = [("f32", False, (3, 5, 7, 9)), ("f64", True, (1, 4, 1, 6)), ("f16", False, (4, 1, 3, 1)), ("f32", True, (2, 3, 8, 64)), ("f32", False, (70, 2, 1, 3)), ("f16", False, (2, 67, 5, 129))]


def program(element, sizes, fixed):
    extents = dict(zip("BCHW", sizes), S=sizes[2] * sizes[3])
    numbers = lambda dims: ", ".join(str(extents.get(each, each)) for each in dims.split(", "))
    shape = numbers if fixed else lambda dims: dims
    kernels = "".join(f"kernel {name}(x: &Tensor<{element}, [{shape(dims)}]>) -> Tensor<{element}, [{shape(result)}]> {{\n    return {numbers(text) if fixed and 'reshape' not in text else text}\n}}\n"
                      for name, (dims, result, text, _) in KERNELS.items() if not (fixed and "reshape" in text))
    calls = "".join(f'    save_npy(format("{{}}/{name}.npy", dir), {name}(&{"x" + str(dims.count(","))}))\n'
                    for name, (dims, _, text, _) in KERNELS.items() if not (fixed and "reshape" in text))
    loads = "".join(f'    let x{dims.count(",")}: Tensor<{element}, [{numbers(dims)}]> = load_npy(format("{{}}/x{dims.count(",")}.npy", dir))\n' for dims in ("B, C", "B, C, S", "B, C, H, W"))
    return kernels + f"fn main() {{\n    let dir = args()[0]\n{loads}{calls}}}\n"


@pytest.mark.parametrize("element,fixed,sizes", CASES)
def test_dimensions_on_both_sides_are_reduced(vortex, tmp_path, backend, element, fixed, sizes):
    rng = numpy.random.default_rng()
    b, c, h, w = sizes
    kind = numpy.dtype("float" + element[1:])
    exact = {}
    for rank, shape in ((1, (b, c)), (2, (b, c, h * w)), (3, (b, c, h, w))):
        array = (rng.standard_normal(shape) + 1).astype(kind)
        numpy.save(tmp_path / f"x{rank}.npy", array)
        exact[rank] = array.astype(numpy.float64)
    path = tmp_path / "channels.vx"
    path.write_text(program(element, sizes, fixed))
    vortex("run", path, *backend, "--", tmp_path)
    for name, (dims, _, text, evaluate) in KERNELS.items():
        if fixed and "reshape" in text:
            continue
        result = numpy.load(tmp_path / f"{name}.npy").astype(float)
        tolerance = {"f16": 2e-2, "f32": 2e-5, "f64": 1e-12}[element]
        numpy.testing.assert_allclose(result, evaluate(exact[dims.count(",")]), rtol=tolerance, atol=tolerance, err_msg=name)
