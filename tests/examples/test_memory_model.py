"""The memory model's matrix products against NumPy in float64, at ragged sizes."""
import numpy
import pytest

SIZES = [(1, 1, 1), (3, 200, 5), (128, 128, 64), (130, 65, 70), (257, 129, 95)]


@pytest.mark.parametrize("m,n,k", SIZES)
def test_the_staged_product_equals_numpys(example, small, rng, m, n, k):
    if small and m * n * k > 100_000:
        pytest.skip("too large for the interpreter")
    a, b = (rng.standard_normal(shape).astype(numpy.float32) for shape in [(m, k), (k, n)])
    (c,) = example("memory_model/matmul", a, b, outputs=1)
    exact = a.astype(float) @ b.astype(float)
    bound = 1e-6 * (abs(a.astype(float)) @ abs(b.astype(float))) + 1e-6
    assert (abs(c - exact) <= bound).all()


@pytest.mark.parametrize("m,n,k", SIZES)
def test_the_pipelined_product_equals_numpys(example, small, rng, m, n, k):
    if small and m * n * k > 100_000:
        pytest.skip("too large for the interpreter")
    a, b = (rng.standard_normal(shape).astype(numpy.float16) for shape in [(m, k), (k, n)])
    (c,) = example("memory_model/pipelined_matmul", a.astype(numpy.float32), b.astype(numpy.float32), outputs=1)
    exact = a.astype(float) @ b.astype(float)
    assert numpy.allclose(c, exact, rtol=6e-4, atol=1e-3)


SELF_VERIFYING = ["spaces", "transfer", "lifetimes", "bank_conflicts", "coalescing", "generic_reduce", "paged_cache", "particles", "layouts"]


@pytest.mark.parametrize("name", SELF_VERIFYING)
def test_compares_with_host_loops(vortex, device, name):
    done = vortex("run", f"examples/memory_model/{name}.vx", "--device", device)
    assert done.stdout.startswith(f"{name}: ")
    assert done.stderr == ""


@pytest.mark.parametrize("name", SELF_VERIFYING)
def test_passes_every_check_of_the_interpreter(vortex, name):
    if name in {"coalescing", "generic_reduce"}:
        pytest.skip("too many elements for the interpreter")
    vortex("run", f"examples/memory_model/{name}.vx", "--check")
