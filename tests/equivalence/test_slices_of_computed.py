"""What a slice of a computed tensor has outside of it is zero, whatever it is computed by, and nothing is read there."""
import random

import numpy
import pytest

FAR = 100_000_000_000
STARTS = [-FAR, -7, -3, -1, 0, 0, 1, 2, 3, 5, 8, 40, FAR]


def part(array, dims):
    """NumPy's answer. `dims`: (start, length), a number for an index, None for all."""
    spans = [(0, size) if dim is None else (dim, 1) if isinstance(dim, int) else dim for dim, size in zip(dims, array.shape)]
    out = numpy.zeros([length for _, length in spans], array.dtype)
    lows = [min(max(0, -start), length) for start, length in spans]
    highs = [max(low, min(length, size - start)) for low, (start, length), size in zip(lows, spans, array.shape)]
    out[tuple(slice(low, high) for low, high in zip(lows, highs))] = array[
        tuple(slice(start + low, start + high) if high > low else slice(0, 0) for (start, _), low, high in zip(spans, lows, highs))]
    return out.reshape([span[1] for span, dim in zip(spans, dims) if not isinstance(dim, int)])


class Program:
    """One kernel of small integers in f32: results are exact in every order of summation."""

    def __init__(self, rng, starts):
        self.rng, self.lines, self.values = rng, [], []
        self.starts = starts  # values of the arguments a, b, c
        self.has_names = 0

    def name(self):
        self.has_names += 1
        return f"v{self.has_names}"

    def add(self, text, array):
        array = numpy.clip(array, -9, 9)
        name = self.name()
        self.lines.append(f"let {name} = min(max({text}, -9.0), 9.0)")
        self.values.append((name, array))
        if self.rng.random() < 0.3:
            self.slice(name, array)

    def start(self, is_index):
        if not is_index and self.rng.random() < 0.3:
            number = abs(self.rng.choice(STARTS))
            return str(number), number
        name = self.rng.choice("abc")
        shift = self.rng.choice([0, 0, 0, 1, -2])
        return (name if shift == 0 else f"{name} + {shift}" if shift > 0 else f"{name} - {-shift}"), self.starts[name] + shift

    def slice(self, text, array, all_of=0.3):
        """`all_of`: how often all of a dimension is taken."""
        while True:
            dims, texts = [], []
            for _ in array.shape:
                kind = self.rng.random()
                is_index = all_of <= kind < 0.45 and array.ndim > 1
                begin, number = self.start(is_index)
                if kind < all_of:
                    dims.append(None)
                    texts.append(":")
                elif is_index:
                    dims.append(number)
                    texts.append(begin)
                else:
                    length = self.rng.choice([1, 2, 3, 4, 5, 8, 13, 20])
                    dims.append((number, length))
                    texts.append(f"{begin}..+{length}")
            if any(dim is None or isinstance(dim, tuple) for dim in dims):
                break
        name = self.name()
        self.lines.append(f"let {name} = {text}[{', '.join(texts)}]")
        self.values.append((name, part(array, dims)))

    def step(self):
        name, array = self.rng.choice(self.values)
        rank = array.ndim
        kind = self.rng.randrange(13)
        if kind <= 2:
            self.slice(name, array)
        elif kind == 3:
            self.slice(f"({name} + 5.0)", array + 5)
        elif kind == 4:
            self.add(f"{name} * 2.0 - 1.0", array * 2 - 1)
        elif kind == 5:
            dim = self.rng.randrange(rank)
            self.add(f"{name}.cumsum(dim = {dim})", array.cumsum(axis=dim))
        elif kind == 6 and rank > 1:
            dim = self.rng.randrange(rank)
            if self.rng.random() < 0.5:
                self.add(f"{name}.sum(dim = {dim})", array.sum(axis=dim))
            else:
                self.add(f"max({name}, dim = {dim})", array.max(axis=dim))
        elif kind == 7 and rank == 2:
            self.add(f"{name}.transpose()", array.T)
        elif kind == 8:
            alike = [other for other in self.values if other[1].shape == array.shape]
            other, second = self.rng.choice(alike)
            self.add(f"{name} - {other}", array - second)
        elif kind == 9 and rank == 2:
            fitting = [other for other in self.values if other[1].ndim == 2 and other[1].shape[0] == array.shape[1]]
            if fitting:
                other, second = self.rng.choice(fitting)
                self.add(f"{name} @ {other}", array @ second)
        elif kind == 10 and rank == 2:
            self.add(f"{name}.reshape([{array.size}])", array.reshape(-1))
        elif kind == 11:
            self.lines.append(f"var w{self.has_names} = {name} + 0.0")
            carried = f"w{self.has_names}"
            self.lines.append(f"for i in 0..3 {{ {carried} = min(max({carried} * 2.0 - {name}, -9.0), 9.0) }}")
            out = array
            for _ in range(3):
                out = numpy.clip(out * 2 - array, -9, 9)
            self.values.append((carried, out))
            self.has_names += 1
            self.slice(carried, out)
        elif kind == 12:
            self.slice(f"max({name}, 1.0)", numpy.maximum(array, 1))


def make(seed):
    rng = random.Random(seed)
    starts = {name: rng.choice(STARTS) for name in "abc"}
    program = Program(rng, starts)
    shapes = {"x": (rng.choice([1, 3, 8, 17, 33]),), "y": (rng.choice([1, 2, 5, 9]), rng.choice([1, 3, 8, 17])), "z": (4, 6)}
    dynamic = rng.random() < 0.5
    symbols = {"x": "[N]", "y": "[H, W]", "z": "[4, 6]"} if dynamic else {name: str(list(shape)) for name, shape in shapes.items()}
    numbers = numpy.random.default_rng(seed)
    arrays = {name: numbers.integers(-4, 5, shape).astype(numpy.float32) for name, shape in shapes.items()}
    program.values = list(arrays.items())
    if dynamic:  # shapes that only the launch knows cannot be asked for as numbers
        program.values = [("z", arrays["z"])]
        program.slice("x", arrays["x"], 0)
        program.slice("(x + 5.0)", arrays["x"] + 5, 0)
        while program.values[-1][1].ndim != 2:
            program.slice("y.cumsum(dim = 1)", arrays["y"].cumsum(axis=1), 0)
    for _ in range(rng.randrange(3, 9)):
        program.step()
    if dynamic:
        program.values = [value for value in program.values if value[0] != "z"]
    name, result = program.values[-1]
    parameters = ", ".join(f"{tensor}: &Tensor<f32, {shape}>" for tensor, shape in symbols.items())
    text = f"kernel k({parameters}, a: i64, b: i64, c: i64) -> Tensor<f32, {list(result.shape)}> {{\n"
    text += "".join(f"    {line}\n" for line in program.lines) + f"    return {name} + 0.0\n}}\n"
    text += "fn main() {\n    let dir = args()[0]\n"
    for tensor, shape in symbols.items():
        text += f"    let {tensor}: Tensor<f32, {shape}> = load_npy(format(\"{{}}/{tensor}.npy\", dir))\n"
    numbers = ", ".join(str(starts[key]) for key in "abc")
    text += f"    save_npy(format(\"{{}}/out.npy\", dir), k(&x, &y, &z, {numbers}))\n}}\n"
    return text, arrays, result


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(vortex, tmp_path, backend, seed):
    text, arrays, result = make(seed)
    for name, array in arrays.items():
        numpy.save(tmp_path / f"{name}.npy", array)
    (tmp_path / "p.vx").write_text(text)
    vortex("run", tmp_path / "p.vx", *backend, "--", tmp_path)
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "out.npy"), result, err_msg=text)


VIEWS = """
fn total(v: &Tensor<f32, [M]>) -> f32 { return v.sum() * 100.0 + v.mean() }
fn put(v: &mut Tensor<f32, [3]>) { v[0] = 5.0; v[1] = 6.0; v[2] = 7.0 }
kernel twice(x: &Tensor<f32, [N]>, a: i64, b: i64) -> Tensor<f32, [6]> {
    let v = x[a..+9]
    let w = v[b..+6]
    return w + 0.0
}
kernel rows(y: &Tensor<f32, [H, W]>, a: i64, b: i64) -> Tensor<f32, [3, 4]> {
    let v = y[a..+3, :]
    let w = v[:, b..+4]
    return w + 0.0
}
kernel row(y: &Tensor<f32, [H, W]>, a: i64, b: i64) -> Tensor<f32, [4]> {
    let v = y[a, b..+4]
    return v + 0.0
}
kernel product(y: &Tensor<f32, [H, W]>, a: i64, b: i64) -> Tensor<f32, [3, 3]> {
    let v = y[a..+3, b..+4]
    return v @ (y + 1.0)[b..+4, a..+3]
}
kernel passed(x: &Tensor<f32, [N]>, a: i64, b: i64) -> f32 { return total(&x[a..a + 6]) + b as f32 }
kernel updates(x: &mut Tensor<f32, [N]>, a: i64, b: i64) {
    let v = x[a..+3]
    v += 10.0
    put(&mut x[b..+3])
}
@launch(block = 32, grid = 1)
kernel counts(x: &mut Tensor<f32, [N]>, a: i64, b: i64) {
    let v = x[a..+3]
    if thread.id.x < 3 { atomic_add(&mut v[thread.id.x], b as f32) }
}
@launch(block = 32, grid = 1)
kernel staged(x: &Tensor<f32, [N]>, a: i64, b: i64) -> Tensor<f32, [8]> {
    var out: Tensor<f32, [8]>
    let v = x[a..+20]
    let t: Tensor<f32, [8]> @shared = stage(v[b..+8])
    sync_block()
    if thread.id.x < 8 { out[thread.id.x] = t[thread.id.x] }
    return out
}
fn main() {
    let dir = args()[0]
    let x: Tensor<f32, [N]> = load_npy(format("{}/x.npy", dir))
    let y: Tensor<f32, [H, W]> = load_npy(format("{}/y.npy", dir))
    for a in STARTS { for b in STARTS {
        let at = format("{}/{}_{}", dir, a, b)
        save_npy(format("{}_twice.npy", at), twice(&x, a, b))
        save_npy(format("{}_rows.npy", at), rows(&y, a, b))
        save_npy(format("{}_row.npy", at), row(&y, a, b))
        save_npy(format("{}_product.npy", at), product(&y, a, b))
        save_npy(format("{}_passed.npy", at), full(passed(&x, a, b % 8), [1]))
        save_npy(format("{}_staged.npy", at), staged(&x, a, b))
        var z = x.copy()
        updates(&mut z, a, b)
        save_npy(format("{}_updates.npy", at), z)
        var u = x.copy()
        counts(&mut u, a, b % 8)
        save_npy(format("{}_counts.npy", at), u)
    } }
}
"""


def stored(array, start, values):
    for i, value in enumerate(values):
        if 0 <= start + i < len(array):
            array[start + i] = value
    return array


def test_views_begin_before_their_tensor(vortex, tmp_path, backend):
    """Bound by `let`, lent to functions, cut again, staged, and written through."""
    if backend == ["--check"]:
        pytest.skip("it reports the elements outside")
    starts = [-FAR, -4, -1, 0, 2, 4, 9, FAR]
    x = numpy.arange(1, 6, dtype=numpy.float32)
    y = numpy.arange(1, 21, dtype=numpy.float32).reshape(4, 5)
    numpy.save(tmp_path / "x.npy", x)
    numpy.save(tmp_path / "y.npy", y)
    numbers = ", ".join(f"{start}i64" for start in starts)
    (tmp_path / "p.vx").write_text(VIEWS.replace("STARTS", f"[{numbers}]"))
    vortex("run", tmp_path / "p.vx", *backend, "--", tmp_path)
    for a in starts:
        for b in starts:
            few = int(numpy.fmod(b, 8))
            v = part(x, [(a, 6)])
            updated = stored(x.copy(), a, part(x, [(a, 3)]) + 10)
            expected = {
                "twice": part(part(x, [(a, 9)]), [(b, 6)]),
                "rows": part(y, [(a, 3), (b, 4)]),
                "row": part(y, [a, (b, 4)]),
                "product": part(y, [(a, 3), (b, 4)]) @ part(y + 1, [(b, 4), (a, 3)]),
                "passed": [v.sum() * 100 + v.sum() / numpy.float32(6) + few],
                "staged": part(part(x, [(a, 20)]), [(b, 8)]),
                "updates": stored(updated, b, [5, 6, 7]),
                "counts": stored(x.copy(), a, part(x, [(a, 3)]) + few),
            }
            for name, array in expected.items():
                numpy.testing.assert_allclose(numpy.load(tmp_path / f"{a}_{b}_{name}.npy"), array, rtol=1e-6, err_msg=f"{name} of {a}, {b}")


def test_a_start_that_the_launch_gives_as_a_usize_is_never_negative(vortex, tmp_path, device):
    path = tmp_path / "starts.vx"
    path.write_text("""@launch(grid = [1], block = 8)
kernel of_a_size(x: &Tensor<i32, [N]>, o: &mut Tensor<i32, [8]>, from: usize) {
    let v = x[from..+4]
    o[thread.local_id] = v[thread.local_id]
}

@launch(grid = [1], block = 8)
kernel of_a_number(x: &Tensor<i32, [N]>, o: &mut Tensor<i32, [8]>, from: i64) {
    let v = x[from..+4]
    o[thread.local_id] = v[thread.local_id]
}

fn main() {
    let x = Tensor.from_host(Vec.range(1, 11))
    var o: Tensor<i32, [8]> = full(-1)
    of_a_size(&x, &mut o, 8)
    assert_eq(o.to_host(), vec![9, 10, 0, 0, 0, 0, 0, 0])
    of_a_size(&x, &mut o, 18446744073709551614)
    assert_eq(o.to_host(), vec![0; 8])
    of_a_number(&x, &mut o, -2)
    assert_eq(o.to_host(), vec![0, 0, 1, 2, 0, 0, 0, 0])
}
""")
    for where in ("interpreter", device):
        vortex("run", "--device", where, path)
