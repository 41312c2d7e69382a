"""An index that is cast to a narrower type and back has lost its high bits, in kernels as on the host."""
import numpy
import pytest

NARROW = {"u8": numpy.uint8, "i8": numpy.int8, "u16": numpy.uint16, "i16": numpy.int16, "u32": numpy.uint32, "i32": numpy.int32}
WIDE = {**NARROW, "u64": numpy.uint64, "i64": numpy.int64}

KERNELS = "".join(f"""
kernel through_{name}(out: &mut Tensor<i64, [N]>, n: usize) {{
    let i = thread.global_id
    out[i] = (((i * 37 + n) as {name}) as usize) as i64
}}
fn host_{name}(i: usize, n: usize) -> i64 {{
    return (((i * 37 + n) as {name}) as usize) as i64
}}
fn save_{name}(dir: &String, size: usize, n: usize) {{
    var out: Tensor<i64, [S]> = zeros([size])
    through_{name}(&mut out, n)
    save_npy(format("{{}}/{name}.npy", dir), out)
    let values = out.to_host()
    for i in 0..size {{
        assert_eq(values[i], host_{name}(i, n))
    }}
}}
""" for name in WIDE)
MAIN = """
fn main() {
    let dir = args()[0]
    let size = parse_int(args()[1]) as usize
    let n = parse_int(args()[2]) as usize
""" + "".join(f"    save_{name}(&dir, size, n)\n" for name in WIDE) + "}\n"

STORES = """
kernel scatter(x: &Tensor<f32, [N]>, bins: &mut Tensor<f32, [256]>) {
    let i = thread.global_id
    if i < N {
        atomic_add(&mut bins[(i as u8) as usize], x[i])
    }
}
kernel scatter_by_number(x: &Tensor<f32, [N]>, bins: &mut Tensor<f32, [65536]>) {
    let i = thread.global_id
    if i < N {
        atomic_add(&mut bins[((i * 4097) as u16) as usize], x[i])
    }
}
fn main() {
    let x: Tensor<f32, [4096]> = full(1.0)
    var bins: Tensor<f32, [256]> = zeros()
    scatter(&x, &mut bins)
    for each in bins.to_host() {
        assert_eq(each, 16.0)
    }
    var many: Tensor<f32, [65536]> = zeros()
    scatter_by_number(&x, &mut many)
    let values = many.to_host()
    var sum: f32 = 0.0
    for each in values {
        sum += each
    }
    assert_eq(sum, 4096.0)
    assert_eq(values[4097 * 17 % 65536], 1.0)
}
"""

EXTENTS = """
kernel tail(x: &Tensor<f32, [N]>, n: usize) -> Tensor<f32, [N]> {
    let part = x[(n as u8) as usize..N]
    return x * part.sum()
}
fn main() {
    let x: Tensor<f32, [64]> = full(1.0)
    assert_eq(tail(&x, 256 + 60).to_host()[0], 4.0)
    assert_eq(tail(&x, 4294967296 + 63).to_host()[0], 1.0)
}
"""


@pytest.mark.parametrize("n", [0, 300, 2**16 - 7, 2**31 - 100, 2**32, 2**63 - 5])
def test_kernels_and_host_agree_with_numpy(vortex, tmp_path, backend, n):
    path = tmp_path / "narrowed.vx"
    path.write_text(KERNELS + MAIN)
    size = int(numpy.random.default_rng().integers(300, 700))
    vortex("run", path, *backend, "--", tmp_path, size, n)
    index = numpy.arange(size, dtype=numpy.uint64) * numpy.uint64(37) + numpy.uint64(n)
    for name, kind in WIDE.items():
        expected = index.astype(kind).astype(numpy.int64)
        assert (numpy.load(tmp_path / f"{name}.npy") == expected).all(), name


@pytest.mark.parametrize("source", [STORES, EXTENTS], ids=["stores", "extents"])
def test_accesses_use_the_narrowed_index(vortex, tmp_path, backend, source):
    path = tmp_path / "accesses.vx"
    path.write_text(source)
    vortex("run", path, *backend)


COUNTERS = """
kernel constant(t: &Tensor<i32, [N]>) -> Tensor<i32, [N]> {
    var out = t * 0
    for i in 0..300 {
        let k = (i as u8) as usize
        out[k..N] += t[k..N]
    }
    return out
}
kernel given(t: &Tensor<i32, [N]>, n: i32) -> Tensor<i32, [N]> {
    var out = t * 0
    for i in 0..n { out[i..N] += t[i..N] }
    return out
}
kernel narrow(t: &Tensor<i32, [N]>, n: i32) -> Tensor<i32, [N]> {
    var out = t * 0
    for i in 0..n {
        let k = (i as u8) as usize
        out[k..N] += t[k..N]
    }
    return out
}
fn main() {
    let dir = args()[0]
    let t: Tensor<i32, [N]> = load_npy(format("{}/t.npy", dir))
    save_npy(format("{}/constant.npy", dir), constant(&t))
    save_npy(format("{}/given.npy", dir), given(&t, 270))
    save_npy(format("{}/narrow.npy", dir), narrow(&t, 270))
}
"""


def test_counters_lose_their_high_bits_where_bounds_say_nothing(vortex, tmp_path, backend):
    t = numpy.random.default_rng().integers(0, 1000, 400).astype(numpy.int32)
    numpy.save(tmp_path / "t.npy", t)
    (tmp_path / "p.vx").write_text(COUNTERS)
    vortex("run", tmp_path / "p.vx", *backend, "--", tmp_path)
    for name, begins in [("constant", [i % 256 for i in range(300)]), ("given", range(270)), ("narrow", [i % 256 for i in range(270)])]:
        out = t * 0
        for begin in begins:
            out[begin:] += t[begin:]
        numpy.testing.assert_array_equal(numpy.load(tmp_path / f"{name}.npy"), out, err_msg=name)


def test_gpus_cut_slices_by_counters_of_32_bits(vortex, tmp_path):
    (tmp_path / "p.vx").write_text("kernel given" + COUNTERS.split("kernel given")[1].split("kernel narrow")[0])
    vortex("build", tmp_path / "p.vx", "--target", "sm_90", "-o", tmp_path)
