"""Sums over every choice of dimensions of what another choice was taken from, beside the tensor itself, against NumPy."""
import itertools

import numpy
import pytest

CHOICES = [list(dims) for count in (1, 2, 3) for dims in itertools.combinations(range(3), count)]


@pytest.mark.parametrize("taken", CHOICES, ids=str)
def test_centred_tensors_and_their_sums(vortex, tmp_path, backend, taken):
    rng = numpy.random.default_rng()
    x = rng.standard_normal(rng.integers(2, 40, 3)).astype(numpy.float32)
    numpy.save(tmp_path / "x.npy", x)
    kernels, calls = "", ""
    for number, summed in enumerate(CHOICES):
        kept = ", ".join(name for dim, name in enumerate("ABC") if dim not in summed)
        result = f"Tensor<f32, [{kept}]>" if kept else "f32"
        kernels += f"""
kernel centred{number}(x: &Tensor<f32, [A, B, C]>) -> (Tensor<f32, [A, B, C]>, {result}) {{
    let h = x - x.mean(dim = {taken}, keepdim = true)
    return (h * 2.0, (x * h).sum(dim = {summed}))
}}
"""
        calls += f"""    let (h{number}, s{number}) = centred{number}(&x)
    save_npy(format("{{}}/h{number}.npy", args()[0]), h{number})
    save_npy(format("{{}}/s{number}.npy", args()[0]), {f"s{number}" if kept else f"vec![s{number}]"})
"""
    path = tmp_path / "centred.vx"
    path.write_text(kernels + f"fn main() {{\n    let x: Tensor<f32, [A, B, C]> = load_npy(format(\"{{}}/x.npy\", args()[0]))\n{calls}}}\n")
    vortex("run", path, *backend, "--", tmp_path)
    h = x.astype(float) - x.mean(axis=tuple(taken), keepdims=True, dtype=float)
    for number, summed in enumerate(CHOICES):
        numpy.testing.assert_allclose(numpy.load(tmp_path / f"h{number}.npy"), 2 * h, atol=1e-5, err_msg=str(summed))
        expected = (x * h).sum(axis=tuple(summed))
        numpy.testing.assert_allclose(numpy.load(tmp_path / f"s{number}.npy").reshape(expected.shape), expected, rtol=1e-3, atol=1e-2, err_msg=str(summed))
