"""Sums of no elements are 0.0, those of negative zeros -0.0, on every device and along every axis."""
import pytest

PROGRAM = """
kernel rows(x: &Tensor<{kind}, [M, N]>) -> Tensor<{kind}, [M]> {{ return 1.0 / x.sum(dim = 1) }}
kernel columns(x: &Tensor<{kind}, [M, N]>) -> Tensor<{kind}, [N]> {{ return 1.0 / x.sum(dim = 0) }}
kernel negative_rows(x: &Tensor<{kind}, [M, N]>) -> Tensor<{kind}, [M]> {{ return 1.0 / (x * -1.0).sum(dim = 1) }}
kernel negative_columns(x: &Tensor<{kind}, [M, N]>) -> Tensor<{kind}, [N]> {{ return 1.0 / (x * -1.0).sum(dim = 0) }}
kernel channels(x: &Tensor<{kind}, [B, C, S]>) -> Tensor<{kind}, [C]> {{ return 1.0 / x.sum(dim = [0, 2]) }}
kernel negative_channels(x: &Tensor<{kind}, [B, C, S]>) -> Tensor<{kind}, [C]> {{ return 1.0 / (x * -1.0).sum(dim = [0, 2]) }}
kernel all(x: &Tensor<{kind}, [M, N]>) -> {kind} {{ return 1.0 / x.sum() }}
kernel negative_all(x: &Tensor<{kind}, [M, N]>) -> {kind} {{ return 1.0 / (x * -1.0).sum() }}
kernel exponentials(x: &Tensor<{kind}, [M, N]>) -> Tensor<{kind}, [M]> {{ return 1.0 / exp(x - x.max(dim = -1, keepdim = true)).sum(dim = -1) }}
fn main() {{
    print(rows(&zeros([2, 0])).to_host())
    print(columns(&zeros([0, 3])).to_host())
    print(negative_rows(&zeros([2, 3])).to_host())
    print(negative_rows(&zeros([1, 3001])).to_host())
    print(negative_columns(&zeros([3, 2])).to_host())
    print(channels(&zeros([2, 3, 0])).to_host())
    print(channels(&zeros([0, 1, 2])).to_host())
    print(negative_channels(&zeros([3, 2, 5])).to_host())
    print(all(&zeros([0, 4])))
    print(all(&zeros([4, 0])))
    print(negative_all(&zeros([7, 3001])))
    print(exponentials(&zeros([2, 0])).to_host())
}}
"""
EXPECTED = ["[inf, inf]", "[inf, inf, inf]", "[-inf, -inf]", "[-inf]", "[-inf, -inf]", "[inf, inf, inf]", "[inf]", "[-inf, -inf]", "inf", "inf", "-inf", "[inf, inf]"]


@pytest.mark.parametrize("where", ["interpreter", "device", "metal3.1"])
@pytest.mark.parametrize("kind", ["f32", "f16"])
def test_sums_of_nothing(vortex, device, tmp_path, kind, where):
    path = tmp_path / "sums.vx"
    path.write_text(PROGRAM.format(kind=kind))
    done = vortex("run", path, "--device", device if where == "device" else where)
    assert done.stdout.splitlines() == EXPECTED
