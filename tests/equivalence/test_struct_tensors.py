"""Tensors of structs, stored field by field and struct by struct, against NumPy in float64 on random data."""
import pathlib

import numpy as np
import pytest

FILE = pathlib.Path(__file__).parent / "struct_tensors.vx"
ARRAYS = pathlib.Path(__file__).parent / "array_parameters.vx"


class State:
    """The particles as NumPy arrays; floats in float64, rounded to float32 after every store."""

    def __init__(self, random, count):
        floats = random.standard_normal((count, 7)).astype(np.float32)
        self.floats = floats
        self.at = [floats[:, i].astype(np.float64) for i in range(3)]
        self.velocity = [floats[:, 3 + i].astype(np.float64) for i in range(3)]
        self.charge = floats[:, 6].astype(np.float16).astype(np.float64)
        self.mass = random.standard_normal(count)
        self.id = random.integers(0, 250, count).astype(np.uint8)
        self.alive = self.id % 2 == 0
        self.kind = self.id.astype(int) % 3
        self.hits = np.stack([np.arange(count), np.full(count, 10), np.full(count, 100)], axis=1)

    def step(self, dt, part=slice(None)):
        moves = self.kind[part] != 1
        for i in range(3):
            self.at[i][part] = np.where(moves, self.at[i][part] + dt * self.velocity[i][part], self.at[i][part])
        self.velocity[0][part] *= 0.5
        hits = self.hits[part]
        hits[np.arange(len(hits)), np.arange(len(hits)) % 3] += 2
        hits[:, 0] += 1
        self.alive[part] = ~self.alive[part]


def check(folder, name, state, order=slice(None), swapped=False, ids=0):
    at, velocity = (state.velocity, state.at) if swapped else (state.at, state.velocity)
    for field, expected in zip(["x", "y", "z", "vx", "vy", "vz"], [*at, *velocity]):
        np.testing.assert_allclose(np.load(folder / f"{name}_{field}.npy"), expected[order], rtol=1e-5, atol=1e-5, err_msg=field)
    np.testing.assert_array_equal(np.load(folder / f"{name}_mass.npy"), state.mass[order])
    np.testing.assert_array_equal(np.load(folder / f"{name}_id.npy"), state.id[order] + np.uint8(ids))
    np.testing.assert_array_equal(np.load(folder / f"{name}_alive.npy"), state.alive[order])
    np.testing.assert_array_equal(np.load(folder / f"{name}_hits.npy").reshape(-1, 3), state.hits[order])


def check3(folder, name, expected):
    for field, values in zip("xyz", expected):
        np.testing.assert_allclose(np.load(folder / f"{name}_{field}.npy"), values, rtol=1e-5, atol=1e-5, err_msg=name + field)


@pytest.mark.parametrize("layout", ["soa", "aos"])
@pytest.mark.parametrize("count", [9, 101])
def test_tensors_of_structs_compute_what_numpy_does(layout, count, backend, vortex, tmp_path):
    file = tmp_path / "structs.vx"
    file.write_text(FILE.read_text().replace("/*layout*/", f"@layout({layout})"))
    state = State(np.random.default_rng(), count)
    np.save(tmp_path / "floats.npy", state.floats.reshape(-1))
    np.save(tmp_path / "mass.npy", state.mass)
    np.save(tmp_path / "id.npy", state.id)
    vortex("run", file, *backend, "--", tmp_path)

    state.step(0.25)
    check(tmp_path, "step", state)
    energy = 0.5 * state.mass * sum(v * v for v in state.velocity) + state.charge + state.hits[:, 2]
    np.testing.assert_allclose(np.load(tmp_path / "energy.npy"), energy, rtol=1e-5, atol=1e-5)
    check(tmp_path, "reversed", state, slice(None, None, -1), swapped=True, ids=1)
    even = np.arange(count) % 2 == 0
    check3(tmp_path, "halves", [np.where(even, v, 0) for v in state.at])
    np.testing.assert_array_equal(np.load(tmp_path / "half_ids.npy"), np.where(even, state.id, 0))
    np.testing.assert_allclose(np.load(tmp_path / "sums.npy"), 2 * state.at[0] + state.velocity[1], rtol=1e-5, atol=1e-5)
    check(tmp_path, "copy", state)

    thread = np.arange(count)
    state.velocity[2] = (state.velocity[2] - state.at[2]) * 0.5
    state.id[thread % 2 == 1] = 7
    state.hits[thread % 2 == 1, 1] += 3
    check(tmp_path, "lent", state)
    lane, mirror = thread % 32, thread // 32 * 32 + 31 - thread % 32
    mirror = np.where(mirror < count, mirror, 0)
    k = lane % 4
    check3(tmp_path, "turned", [state.at[0][mirror] + k, state.velocity[1][mirror], state.hits[thread, k % 3]])

    bins = np.zeros((3, 3), int)
    np.add.at(bins[:, 1], state.kind, 1)
    np.maximum.at(bins[0], thread % 3, state.id.astype(int))
    got = np.load(tmp_path / "bins_hits.npy").reshape(3, 3)
    np.testing.assert_array_equal(got[1:], bins[1:])
    np.testing.assert_array_equal(got[0][[0, 2]], bins[0][[0, 2]])

    middle = slice(3, 3 + count // 2)
    state.step(1.0, middle)
    check(tmp_path, "middle", state)
    check(tmp_path, "part", state, middle)

    y, x = np.mgrid[0:5, 0:7].astype(float)
    grid = [np.full((5, 7), 4.0), y.copy(), 3 + x]
    inner = (slice(1, 3), slice(2, 6))
    grid[0][inner] = 8
    grid[1][inner] = np.arange(2)[:, None]
    grid[2][inner] += np.arange(4)
    check3(tmp_path, "grid", grid)
    check3(tmp_path, "column", [values[:, 2] for values in grid])


def test_arrays_of_tensors_and_numbers_reach_the_kernel(backend, vortex, tmp_path):
    random = np.random.default_rng()
    count = 77
    parts = random.standard_normal((3, count)).astype(np.float32)
    picks = random.integers(0, 3, count).astype(np.uint32)
    np.save(tmp_path / "parts.npy", parts)
    np.save(tmp_path / "picks.npy", picks)
    vortex("run", ARRAYS, *backend, "--", tmp_path)

    weights = np.array([0.5, -2.0, 4.0])
    exact = parts.astype(np.float64)
    np.testing.assert_allclose(np.load(tmp_path / "weighted.npy"), weights @ exact, rtol=1e-5, atol=1e-5)
    chosen = exact[picks, np.arange(count)]
    np.testing.assert_allclose(np.load(tmp_path / "picked.npy"), chosen * weights[picks], rtol=1e-5, atol=1e-5)
    written = exact.copy()
    written[picks, np.arange(count)] = -1
    written[0] += 10
    for part in range(3):
        np.testing.assert_allclose(np.load(tmp_path / f"written{part}.npy"), written[part], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(np.load(tmp_path / "tiles.npy"), exact[1:] @ exact[1:].T * [[3.0], [2.0]], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("layout", ["soa", "aos"])
def test_kernels_of_struct_tensors_compile_for_gpus(layout, vortex, tmp_path):
    file = tmp_path / "structs.vx"
    file.write_text(FILE.read_text().replace("/*layout*/", f"@layout({layout})"))
    done = vortex("build", file, "--target", "sm_90", "-o", tmp_path)
    assert "sm_90" in done.stdout
