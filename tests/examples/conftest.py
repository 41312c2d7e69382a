"""Runs examples with arrays as files."""
import numpy
import pytest


@pytest.fixture(params=["device", "interpreter"])
def backend(request, device):
    """The device of ./test, and the interpreter with smaller sizes."""
    if request.param == "interpreter" and device == "interpreter":
        pytest.skip("the same device")
    return device if request.param == "device" else "interpreter"


@pytest.fixture
def small(backend):
    """Whether sizes must stay small."""
    return backend == "interpreter"


@pytest.fixture
def rng(request):
    """Fresh numbers in every run; the seed is printed when a test fails."""
    seed = numpy.random.SeedSequence().entropy % 2**32
    print(f"numpy.random.default_rng({seed})")
    return numpy.random.default_rng(seed)


@pytest.fixture
def example(vortex, backend, tmp_path):
    """example("saxpy", 2.5, x, y, outputs=1): arrays become .npy files; returns the arrays the example wrote, in order."""

    def run(name, *arguments, outputs=0):
        words = []
        for i, argument in enumerate(arguments):
            if isinstance(argument, numpy.ndarray):
                path = tmp_path / f"in{i}.npy"
                numpy.save(path, argument)
                words.append(path)
            else:
                words.append(argument)
        written = [tmp_path / f"out{i}.npy" for i in range(outputs)]
        done = vortex("run", f"examples/{name}.vx", "--device", backend, "--", *words, *written)
        assert done.stdout.startswith(f"{name.rpartition('/')[2]}: "), done.stdout
        return [numpy.load(path) for path in written]

    return run
