"""Broadcasts along every choice of dimensions, against NumPy."""
import itertools

import numpy
import pytest


@pytest.mark.parametrize("shape", [(5, 7), (33, 4), (3, 4, 5), (2, 17, 3)])
def test_ones_are_stretched_in_every_combination(vortex, tmp_path, backend, shape):
    rng, rank = numpy.random.default_rng(), len(shape)
    names = "ABC"[:rank]
    choices = list(itertools.product([False, True], repeat=rank))
    kernels, main, expected = "", "", []
    whole = rng.integers(-50, 50, shape).astype(numpy.int32)
    numpy.save(tmp_path / "whole.npy", whole)
    for number, kept in enumerate(choices):
        part = rng.integers(-50, 50, [extent if keep else 1 for extent, keep in zip(shape, kept)]).astype(numpy.int32)
        numpy.save(tmp_path / f"part{number}.npy", part)
        dims = [name if keep else "1" for name, keep in zip(names, kept)]
        kernels += f"""
kernel add{number}(x: &Tensor<i32, [{", ".join(names)}]>, p: &Tensor<i32, [{", ".join(dims)}]>) -> Tensor<i32, [{", ".join(names)}]> {{
    return x * 3 + (p - x.max()) * p
}}
"""
        main += f"""    let p{number}: Tensor<i32, [{", ".join(f"{name}{number}" if dim != "1" else "1" for name, dim in zip(names, dims))}]> = load_npy(format("{{}}/part{number}.npy", dir))
    save_npy(format("{{}}/out{number}.npy", dir), add{number}(&x, &p{number}))
"""
        expected.append(whole * 3 + (part - whole.max()) * part)
    path = tmp_path / "broadcasts.vx"
    path.write_text(kernels + f"fn main() {{\n    let dir = args()[0]\n    let x: Tensor<i32, [{', '.join(names)}]> = load_npy(format(\"{{}}/whole.npy\", dir))\n" + main + "}\n")
    vortex("run", path, *backend, "--", tmp_path)
    for number, values in enumerate(expected):
        assert (numpy.load(tmp_path / f"out{number}.npy") == values).all(), choices[number]
