"""Buffers know the language's names of types, which NumPy reads otherwise."""
import numpy as np
import pytest

import metile


@pytest.mark.parametrize("name, kind", [("f32", np.float32), ("f16", np.float16), ("i32", np.int32), ("u32", np.uint32), ("u8", np.uint8), ("bool", np.bool_)])
def test_buffers_of_the_languages_types(name, kind):
    for made in (metile.Buffer((2, 3), name), metile.Buffer.zeros((2, 3), dtype=name), metile.Buffer.empty((2, 3), name), metile.Buffer((2, 3), kind)):
        assert made.dtype == kind and made.shape == (2, 3)


@pytest.mark.parametrize("name", ["f64", "i64", "f8e4m3", "float128", "nothing"])
def test_other_types_are_refused(name):
    with pytest.raises(TypeError):
        metile.Buffer(3, name)
