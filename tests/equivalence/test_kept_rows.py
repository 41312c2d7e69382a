"""Loops of threads over one row: short rows stay in a GPU's registers, long ones are loaded again, and neither shows in the results."""
import numpy as np
import pytest

BLOCK = 32  # 16 iterations of 4 bytes stay in registers: rows of up to 512 elements
LENGTHS = (1, 31, 32, 33, 127, 128, 129, 500, 511, 512, 513, 700)
TYPES = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "i32": np.int32}
# How an iteration names its element: the loop, the condition, the place.
LOOPS = {"thread": ("for i in range(t, N, 32) {{ {body} }}", "i"),
         "masked": ("for p in range(0, N, 32) {{ if p + t < N {{ {body} }} }}", "p + t"),
         "turned": ("for p in range(0, N, 32) {{ if N > t + p {{ {body} }} }}", "t + p"),
         "shifted": ("for p in range(3, N + 3, 32) {{ if p + t < N + 3 {{ {body} }} }}", "p + t - 3")}


def loop(name, body):
    text, place = LOOPS[name]
    return text.format(body=body.replace("@", place))


def softmax(loops, kind):
    x = "x[r, @]" if kind == "f32" else "(x[r, @] as f32)"
    return f"""
@launch(grid = [M], block = 32)
kernel rows(x: &Tensor<{kind}, [M, N]>, w: &Tensor<f32, [N]>, y: &mut Tensor<f32, [M, N]>) {{
  let (r, t) = (block.id, thread.local_id)
  var m = -1e30
  {loop(loops[0], f"m = max(m, {x})")}
  let largest = block.max(m)
  var s = 0.0
  {loop(loops[1], f"s += exp({x} - largest)")}
  let total = block.sum(s)
  {loop(loops[2], f"y[r, @] = exp({x} - largest) / total * w[@]")}
}}"""


def norm(loops, kind):
    x = "x[r, @]" if kind == "f32" else "(x[r, @] as f32)"
    return f"""
@launch(grid = [M], block = 32)
kernel rows(x: &Tensor<{kind}, [M, N]>, w: &Tensor<f32, [N]>, y: &mut Tensor<f32, [M, N]>) {{
  let (r, t) = (block.id, thread.local_id)
  var s = 0.0
  {loop(loops[0], f"s += {x}")}
  let mean = block.sum(s) / (N as f32)
  var q = 0.0
  {loop(loops[1], f"let c = {x} - mean; q += c * c")}
  let scale = 1.0 / sqrt(block.sum(q) / (N as f32) + 1e-5)
  {loop(loops[2], f"y[r, @] = ({x} - mean) * scale * w[@] + w[@]")}
}}"""


def expected_softmax(x, w):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True) * w


def expected_norm(x, w):
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * w + w


MAIN = """
  let x{n}: Tensor<{kind}, [3, {n}]> = load_npy("x{n}.npy")
  let w{n}: Tensor<f32, [{n}]> = load_npy("w{n}.npy")
  var y{n}: Tensor<f32, [3, {n}]> = full(7.0)
  rows(&x{n}, &w{n}, &mut y{n})
  save_npy("y{n}.npy", y{n})
"""


@pytest.mark.parametrize("where", ["device", "metal3.1"])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("make, oracle", [(softmax, expected_softmax), (norm, expected_norm)], ids=["softmax", "norm"])
def test_rows_in_registers_and_rows_beyond(vortex, device, tmp_path, make, oracle, kind, where):
    if kind == "f64" and (device if where == "device" else where).startswith("metal"):
        pytest.skip("Metal has no f64")
    random = np.random.default_rng()
    loops = random.choice(list(LOOPS), 3)
    text = make(loops, kind) + "\nfn main() {" + "".join(MAIN.format(n=n, kind=kind) for n in LENGTHS) + "}\n"
    data = {}
    for n in LENGTHS:
        x = (random.standard_normal((3, n)) * 4 + random.integers(-8, 8)).astype(TYPES[kind])
        data[n] = x, random.standard_normal(n).astype(np.float32)
        np.save(tmp_path / f"x{n}.npy", x)
        np.save(tmp_path / f"w{n}.npy", data[n][1])
    path = tmp_path / "rows.vx"
    path.write_text(text)
    vortex("run", path, "--device", device if where == "device" else where, cwd=tmp_path)
    for n, (x, w) in data.items():
        np.testing.assert_allclose(np.load(tmp_path / f"y{n}.npy"), oracle(x.astype(np.float64), w), rtol=2e-4, atol=2e-5, err_msg=f"{n} by {loops}")


LANES = """
@launch(block = {block})
kernel lanes(x: &Tensor<{kind}, [N]>, y: &Tensor<{kind}, [N]>, limit: usize, out: &mut Tensor<{kind}, [N]>, again: &mut Tensor<{kind}, [N]>) {{
  let i = thread.global_id
  if i < limit {{
    var v = x[i] * y[i] + x[0]
    {loop}
    out[i] = v
    if x[i] > y[i] {{ again[i] = x[i] }}
  }}
}}
fn main() {{ {runs} }}
"""
RUN = """
  let x{n}: Tensor<{kind}, [{n}]> = load_npy("x{n}.npy")
  let y{n}: Tensor<{kind}, [{n}]> = load_npy("y{n}.npy")
  var a{n}: Tensor<{kind}, [{n}]> = full(7)
  var b{n}: Tensor<{kind}, [{n}]> = full(7)
  lanes(&x{n}, &y{n}, {limit}, &mut a{n}, &mut b{n})
  save_npy("a{n}.npy", a{n})
  save_npy("b{n}.npy", b{n})
"""


@pytest.mark.parametrize("where", ["device", "metal3.1"])
@pytest.mark.parametrize("block", [64, 128, 256, 1024])
@pytest.mark.parametrize("kind", ["i32", "u8", "f16", "i64"])
@pytest.mark.parametrize("loop", ["", "for k in 0..limit % 5 { v += v }"], ids=["straight", "loop"])
def test_neighbouring_threads_write_what_each_would(vortex, device, tmp_path, kind, block, where, loop):
    """Lengths of whole and of ragged rows of 16 bytes; limits inside and outside; loops as long as the launch says."""
    random = np.random.default_rng()
    dtype = np.dtype({"i32": np.int32, "u8": np.uint8, "f16": np.float16, "i64": np.int64}[kind])
    runs, data = "", {}
    for n in (1, 16, 64, 100, 255, 1024, 1040, 4096 + 16):
        limit = int(random.choice([n, max(n - 3, 0), n // 2, n + 5])) if n > 1 else 1
        x, y = (random.integers(0, 11, n).astype(dtype) for _ in range(2))
        np.save(tmp_path / f"x{n}.npy", x)
        np.save(tmp_path / f"y{n}.npy", y)
        data[n] = x, y, limit
        runs += RUN.format(n=n, kind=kind, limit=limit)
    path = tmp_path / "lanes.vx"
    path.write_text(LANES.format(block=block, kind=kind, runs=runs, loop=loop))
    vortex("run", path, "--device", device if where == "device" else where, cwd=tmp_path)
    for n, (x, y, limit) in data.items():
        inside = np.arange(n) < limit
        value = (x * y + x[0]) * dtype.type(2 ** (limit % 5) if loop else 1)
        np.testing.assert_array_equal(np.load(tmp_path / f"a{n}.npy"), np.where(inside, value, 7).astype(dtype), err_msg=f"{n} {limit}")
        np.testing.assert_array_equal(np.load(tmp_path / f"b{n}.npy"), np.where(inside & (x > y), x, 7).astype(dtype), err_msg=f"{n} {limit}")


def test_short_rows_are_loaded_once_and_their_exponentials_computed_once(vortex, tmp_path):
    path = tmp_path / "rows.vx"
    path.write_text(softmax(["masked"] * 3, "f32"))
    text = vortex("build", path, "--target", "sm_90", "--emit", "vxt").stdout
    kernel = text[text.index("@vx_rows_main("):text.index("@vx_rows_main_general(")]
    in_loops = 3 * 5  # four at a time and one, three passes
    assert kernel.count("vxt.load") - kernel.count("<shared>") <= 2 * 16 + in_loops + 2 * 16 + 5  # the weights of the last pass are loaded where they are used
    assert 2 * 16 <= kernel.count("math.exp") <= 2 * 16 + 2 * 5


@pytest.mark.parametrize("kind, vector", [("i32", "vector<2xi32>"), ("u8", "vector<8xi8>"), ("f16", "vector<4xf16>")])
def test_neighbouring_threads_share_accesses(vortex, tmp_path, kind, vector):
    path = tmp_path / "lanes.vx"
    path.write_text(f"""kernel sum(x: &Tensor<{kind}, [N]>, y: &Tensor<{kind}, [N]>, limit: usize, out: &mut Tensor<{kind}, [N]>) {{
  if thread.global_id < limit {{ out[thread.global_id] = x[thread.global_id] + y[thread.global_id] }}
}}""")
    text = vortex("build", path, "--target", "sm_90", "--emit", "vxt").stdout
    wide = text[text.index("@vx_sum_main_wide("):text.index("@vx_sum_main_general(")]
    assert sum(vector in line and "vxt.load" in line for line in wide.splitlines()) == 2
    assert sum(vector in line and "vxt.store" in line for line in wide.splitlines()) == 1
