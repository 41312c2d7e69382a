"""Arrays of ml_dtypes, and tensors of PyTorch in host memory, where these are installed."""
import numpy as np
import pytest

import metile
import vortex


@pytest.fixture
def ml_dtypes():
    return pytest.importorskip("ml_dtypes")


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@metile.kernel
def doubled(X, Out, N, BLOCK: metile.constexpr = 64):
    lanes = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    metile.store(Out + lanes, metile.load(X + lanes, mask=lanes < N) * 2, mask=lanes < N)


@metile.kernel
def row_sums(X, Out, N, BLOCK: metile.constexpr = 64):
    row, total = metile.program_id(0), 0.0
    for first in metile.tile_range(0, N, BLOCK):
        lanes = first + metile.arange(0, BLOCK)
        total = total + metile.load(X + row * N + lanes, mask=lanes < N)
    metile.store(Out + row, metile.sum(total))


def test_arrays_of_bf16_are_loaded_stored_and_summed(ml_dtypes, where, random):
    x = random.standard_normal((5, 100)).astype(ml_dtypes.bfloat16)
    out = np.full((5, 100), np.nan, ml_dtypes.bfloat16)
    doubled[8](x, out, 500)
    np.testing.assert_array_equal(out.astype(np.float32), 2 * x.astype(np.float32))
    sums = np.full(5, np.nan, ml_dtypes.bfloat16)
    row_sums[5](x, sums, 100)
    exact = x.astype(np.float64).sum(axis=1)
    assert (np.abs(sums.astype(np.float64) - exact) <= np.abs(exact) * 2.0**-8 + 1e-4).all()  # rounded once
    buffer = metile.Buffer(data=x)
    assert buffer.dtype == x.dtype
    doubled[8](buffer, out, 500)
    np.testing.assert_array_equal(out.astype(np.float32), 2 * x.astype(np.float32))
    doubled[4](x[:, ::2], out[:, ::2], 250)
    np.testing.assert_array_equal(out[:, ::2].astype(np.float32), 2 * x[:, ::2].astype(np.float32))
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        doubled[1](out, x, 10)


def test_arrays_of_f8_are_told_by_name(ml_dtypes):
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "int4"):
        x = np.zeros(8, getattr(ml_dtypes, name))
        with pytest.raises(TypeError, match="'X' has elements of type .*; kernels take|'X' has elements of type " + name):
            doubled[1](x, np.zeros(8, np.float32), 8)


def test_programs_take_and_give_arrays_of_ml_dtypes(ml_dtypes, random):
    program = vortex.compile(source="""
        kernel wide<T: Float>(x: &Tensor<T, [N]>) -> Tensor<f32, [N]> { return x as f32 }
        kernel narrow(x: &Tensor<f32, [N]>) -> (Tensor<f8e4m3, [N]>, Tensor<f8e5m2, [N]>, Tensor<bf16, [N]>) { return (x as f8e4m3, x as f8e5m2, x as bf16) }
    """)
    x = random.standard_normal(40).astype(np.float32)
    for name, result in zip(("float8_e4m3fn", "float8_e5m2", "bfloat16"), program.narrow(x)):
        kind = np.dtype(getattr(ml_dtypes, name))
        assert result.dtype == kind
        np.testing.assert_array_equal(result.astype(np.float32), x.astype(kind).astype(np.float32))
        np.testing.assert_array_equal(program.wide(result), result.astype(np.float32))
        np.testing.assert_array_equal(program.wide(result[::-2]), result[::-2].astype(np.float32))


@metile.kernel
def silu_forward(X, Scale, Out, N, BLOCK: metile.constexpr = 64):
    lanes = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    x, scale = metile.load(X + lanes, mask=lanes < N), metile.load(Scale + lanes, mask=lanes < N)
    metile.store(Out + lanes, scale * x * metile.sigmoid(x), mask=lanes < N)


@metile.kernel
def silu_backward(X, Scale, Slope, OfX, OfScale, N, BLOCK: metile.constexpr = 64):
    lanes = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    mask = lanes < N
    x, slope = metile.load(X + lanes, mask=mask), metile.load(Slope + lanes, mask=mask)
    half = metile.sigmoid(x)
    metile.store(OfX + lanes, slope * metile.load(Scale + lanes, mask=mask) * half * (1.0 + x * (1.0 - half)), mask=mask)
    metile.store(OfScale + lanes, slope * x * half, mask=mask)


def test_torch_autograd_calls_kernels(torch, random):
    class Silu(torch.autograd.Function):
        @staticmethod
        def forward(context, x, scale):
            context.save_for_backward(x, scale)
            out = torch.empty_like(x)
            silu_forward[metile.cdiv(x.numel(), 64)](x, scale, out, x.numel())
            return out

        @staticmethod
        def backward(context, slope):
            x, scale = context.saved_tensors
            of_x, of_scale = torch.empty_like(x), torch.empty_like(x)
            silu_backward[metile.cdiv(x.numel(), 64)](x, scale, slope.contiguous(), of_x, of_scale, x.numel())
            return of_x, of_scale

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.from_numpy(random.standard_normal((7, 30)).astype(np.float32)))

        def forward(self, x):
            return Silu.apply(x, self.scale)

    layer, x = Layer(), torch.from_numpy(random.standard_normal((7, 30)).astype(np.float32)).requires_grad_()

    def results(made):
        x.grad = layer.scale.grad = None
        (made**2).sum().backward()
        return made.detach().numpy(), x.grad.numpy(), layer.scale.grad.numpy()

    for given, wanted in zip(results(layer(x)), results(layer.scale * torch.nn.functional.silu(x))):
        np.testing.assert_allclose(given, wanted, rtol=1e-5, atol=1e-6)


def test_tensors_that_need_a_gradient_are_taken_as_they_are(torch, where, random):
    data = torch.from_numpy(random.standard_normal(100).astype(np.float32))
    program = vortex.compile(source="kernel twice(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x * 2.0 }")
    for x in (data.clone().requires_grad_(), torch.nn.Parameter(data.clone()), data.clone()):
        for _ in range(2):
            out = torch.full((100,), float("nan"))
            doubled[2](x, out, 100)
            assert torch.equal(out, 2 * data) and not out.requires_grad
            result = program.twice(x)
            assert isinstance(result, torch.Tensor) and torch.equal(result, 2 * data) and not result.requires_grad
        doubled[2](x, x, 100)
        assert torch.equal(x, 2 * data)


def test_tensors_of_torch_with_any_type_and_strides(torch, where, random):
    for name in ("float32", "float16", "bfloat16", "int32", "uint8"):
        x = torch.from_numpy(random.integers(0, 100, (6, 20))).to(getattr(torch, name))
        out = torch.zeros_like(x)
        doubled[2](x, out, 120)
        assert torch.equal(out, 2 * x)
        doubled[2](x.T, out.T, 120)
        assert torch.equal(out, 2 * x)
        doubled[1](x[:, 3], out[:, 4], 6)
        assert torch.equal(out[:, 4], 2 * x[:, 3])
    for wrong, text in [(torch.zeros(4, dtype=torch.float64), "f64"), (torch.zeros(4, dtype=torch.complex64), "'X'"), (torch.zeros(4, device="meta"), "'X'"),
                        (torch.zeros(4).to_sparse(), "'X'")]:
        with pytest.raises((TypeError, ValueError), match=text):
            doubled[1](wrong, torch.zeros(4), 4)
