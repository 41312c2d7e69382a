"""Programs in Metal source with data, launches and results: what test_programs.py and its neighbours are made of."""
import numpy as np

RNG = np.random.default_rng()
HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"


class Programs(dict):
    """Name -> source, grid, block, buffers, results, options."""

    def add(self, name, source, grid, block, buffers, results, *options):
        """`results`: number of a buffer -> what is in it after the launch, with the tolerance where it is no integer; before them, a function that
        takes what is compared from the buffer."""
        assert name not in self
        self[name] = (HEAD + source, grid, block, buffers, results, options)


def f4(*shape):
    return RNG.standard_normal(shape).astype("f4")


def poison(count, kind):
    """What no program writes, so that what is not written is seen."""
    return np.full(count * np.dtype(kind).itemsize, 0xA5, "u1").view(kind)


def run_program(vortex, folder, program, *where):
    source, grid, block, buffers, results, options = program
    (folder / "k.metal").write_text(source)
    words = []
    for number, value in enumerate(buffers):
        if value is None:  # the kernel has no such buffer
            continue
        if isinstance(value, np.ndarray):
            np.save(folder / f"{number}.npy", value)
            value = f"{number}.npy"
        words += ["--buffer", f"{number}={value}"]
    for number in results:
        words += ["--save", f"{number}=out{number}.npy"]
    vortex("run", "k.metal", "--grid", grid, "--block", block, *words, *options, *where, cwd=folder)
    for number, (*view, expected, tolerance) in results.items():
        got = np.load(folder / f"out{number}.npy").ravel()
        got = np.asarray(view[0](got) if view else got, None if tolerance == 0 else "f8")
        np.testing.assert_allclose(got.ravel(), np.asarray(expected).ravel(), rtol=tolerance, atol=tolerance)
