"""Sums that pick one element of each row or column by its number, alone and beside reductions of the row, against NumPy."""
import numpy
import pytest

IS = "arange(N).reshape([1, N]) == label.reshape([M, 1])"
KERNELS = {
    "losses": ("[M]", f"""let wide = x as f32
    let largest = wide.max(dim = -1, keepdim = true)
    let picked = select({IS}, wide, 0.0).sum(dim = -1, keepdim = true)
    return (largest + log(exp(wide - largest).sum(dim = -1, keepdim = true)) - picked).reshape([M])"""),
    "alone": ("[M]", f"return select({IS}, x as f32, 0.0).sum(dim = 1)"),
    "largest": ("[M]", f"return select({IS}, x as f32, -inf).max(dim = 1)"),
    "others": ("[M]", f"return select({IS}, 0.0, x as f32).sum(dim = 1)"),
    "unequal": ("[M]", f"return select({IS.replace('==', '!=')}, 0.0, x as f32 * 3.0).sum(dim = 1)"),
    "centred": ("[M, N]", f"""let wide = x as f32
    let from = wide - wide.sum(dim = -1, keepdim = true)
    return wide - select({IS}, from, 0.0).sum(dim = -1, keepdim = true)"""),
    "columns": ("[N]", "return select(arange(M).reshape([M, 1]) == row.reshape([1, N]), x as f32, 0.0).sum(dim = 0)"),
}


def picked(x, places, axis):
    """Zero where a place is none of the axis."""
    size = x.shape[axis]
    exists = (places >= 0) & (places < size)
    at = numpy.expand_dims(numpy.where(exists, places, 0), axis)
    return numpy.where(exists, numpy.take_along_axis(x, at, axis).squeeze(axis), 0.0), exists


def expected(x, label, row):
    element, exists = picked(x, label, 1)
    top, total = x.max(axis=1), x.sum(axis=1)
    return {
        "losses": top + numpy.log(numpy.exp(x - top[:, None]).sum(axis=1)) - element,
        "alone": element,
        "largest": numpy.where(exists, element, -numpy.inf),
        "others": total - element,
        "unequal": 3 * element,
        "centred": x - numpy.where(exists, element - total, 0.0)[:, None],
        "columns": picked(x, row, 0)[0],
    }


def run_and_compare(vortex, tmp_path, shape, kind, words):
    rng = numpy.random.default_rng()
    m, n = shape
    x = (rng.integers(-512, 512, shape) / 128).astype(numpy.float32)  # also in bf16 and f16, if not all of their bits
    x = (x.view(numpy.uint32) & numpy.uint32(0xFFFF0000)).view(numpy.float32)
    label, row = rng.integers(-2, n + 2, m).astype(numpy.int32), rng.integers(-2, m + 2, n).astype(numpy.int32)
    for name, array in {"x": x, "label": label, "row": row}.items():
        numpy.save(tmp_path / f"{name}.npy", array)
    kernels, calls = "", ""
    for name, (result, body) in KERNELS.items():
        kernels += f"""
kernel {name}(x: &Tensor<{kind}, [M, N]>, label: &Tensor<i32, [M]>, row: &Tensor<i32, [N]>) -> Tensor<f32, {result}> {{
    {body}
}}
"""
        calls += f'    save_npy(format("{{}}/{name}.npy", args()[0]), {name}(&x, &label, &row))\n'
    path = tmp_path / "picked.vx"
    path.write_text(f"""kernel narrow(x: &Tensor<f32, [M, N]>) -> Tensor<{kind}, [M, N]> {{ return x as {kind} }}
{kernels}
fn main() {{
    let wide: Tensor<f32, [M, N]> = load_npy(format("{{}}/x.npy", args()[0]))
    let label: Tensor<i32, [M]> = load_npy(format("{{}}/label.npy", args()[0]))
    let row: Tensor<i32, [N]> = load_npy(format("{{}}/row.npy", args()[0]))
    let x = narrow(&wide)
{calls}}}
""")
    vortex("run", path, *words, "--", tmp_path)
    for name, value in expected(x.astype(float), label, row).items():
        numpy.testing.assert_allclose(numpy.load(tmp_path / f"{name}.npy"), value, rtol=1e-4, atol=1e-3, err_msg=name)


@pytest.mark.parametrize("kind", ["f32", "bf16"])
@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (3, 301)], ids=str)
def test_picked_elements(vortex, tmp_path, backend, shape, kind):
    run_and_compare(vortex, tmp_path, shape, kind, backend)


@pytest.mark.parametrize("kind", ["f32", "bf16"])
@pytest.mark.parametrize("shape", [(5, 7), (9, 64), (2, 1001), (2, 4096)], ids=str)
def test_picked_elements_on_printed_metal(vortex, tmp_path, shape, kind):
    run_and_compare(vortex, tmp_path, shape, kind, ["--device", "metal3.1"])
