"""`block.sum(v)` and its relatives: one value of all threads of a block of any shape, behind a barrier."""
import numpy
import pytest

BLOCKS = [[1], [33], [256], [1024], [3000], [7, 5], [32, 40], [5, 7, 3], [1, 1, 48], [3, 100, 5]]
TYPES = {"i8": numpy.int8, "u8": numpy.uint8, "i16": numpy.int16, "u32": numpy.uint32, "i32": numpy.int32, "i64": numpy.int64, "u64": numpy.uint64,
         "usize": numpy.uint64, "f16": numpy.float16, "f32": numpy.float32, "f64": numpy.float64}
GRID = 3

KERNEL = """
@unchecked(overflow) @launch(grid = [{grid}], block = {block})
kernel k_{name}(x: &Tensor<{type}, [N]>, y: &mut Tensor<{type}, [N]>, votes: &mut Tensor<u32, [M]>) {{
    let i = block.id.x * {threads} + thread.local_id
    let t: Tensor<{type}, [{threads}]> @shared
    t[thread.local_id] = x[i]
    let total = block.sum(x[i])
    let neighbour = t[{threads} - 1 - thread.local_id]                      // of another thread, behind the barrier
    let size = block.max(x[i]) - block.min(x[i])
    y[i] = total - size + neighbour
    let bound = x[block.id.x * {threads}]
    let any = block.any(x[i] > bound)
    let all = block.all(x[i] >= bound)
    if thread.local_id == 0 {{
        votes[block.id.x] = select(any, 1u32, 0) + select(all, 2u32, 0)
    }}
}}
"""
CASES = [(block, "f32") for block in BLOCKS] + [([33], name) for name in TYPES] + [([7, 40], name) for name in ("i32", "f16")]
CASES = list({f"{name}_{'x'.join(map(str, block))}": (block, name) for block, name in CASES}.items())


def source():
    text = ""
    calls = ""
    for name, (block, kind) in CASES:
        threads = int(numpy.prod(block))
        text += KERNEL.format(grid=GRID, block=block, name=name, type=kind, threads=threads)
        calls += f"""    {{
        let x: Tensor<{kind}, [{GRID * threads}]> = load_npy(format("{{}}/{name}.npy", dir))
        var y: Tensor<{kind}, [{GRID * threads}]> = zeros()
        var votes: Tensor<u32, [{GRID}]> = full(77)
        k_{name}(&x, &mut y, &mut votes)
        save_npy(format("{{}}/{name}_y.npy", dir), y)
        save_npy(format("{{}}/{name}_votes.npy", dir), votes)
    }}
"""
    return text + "fn main() {\n    let dir = args()[0]\n" + calls + "}\n"


def values(kind, size):
    random = numpy.random.default_rng()
    if numpy.issubdtype(kind, numpy.floating):
        return random.standard_normal(size).astype(kind)
    info = numpy.iinfo(kind)
    return random.integers(max(info.min, -(2**62)), min(info.max, 2**62), size, dtype=kind if kind != numpy.uint64 else numpy.uint64)


def test_blocks_of_any_shape_and_type_are_combined(vortex, tmp_path, backend):
    path = tmp_path / "reductions.vx"
    path.write_text(source())
    inputs = {name: values(TYPES[kind], GRID * int(numpy.prod(block))) for name, (block, kind) in CASES}
    for name, x in inputs.items():
        numpy.save(tmp_path / f"{name}.npy", x)
    vortex("run", path, "--deny", "races", *backend, "--", tmp_path)
    for name, (_, kind) in CASES:
        x = inputs[name].reshape(GRID, -1)
        isFloat = numpy.issubdtype(x.dtype, numpy.floating)
        with numpy.errstate(over="ignore"):
            wide = x.astype(numpy.float64) if isFloat else x
            total = wide.sum(axis=1, dtype=wide.dtype)[:, None].astype(x.dtype)
            size = x.max(axis=1)[:, None] - x.min(axis=1)[:, None]
            expected = total - size + x[:, ::-1]
        found = numpy.load(tmp_path / f"{name}_y.npy").reshape(GRID, -1)
        if isFloat:
            eps = numpy.finfo(x.dtype).eps
            bound = 8 * eps * (numpy.abs(wide).sum(axis=1)[:, None] + numpy.abs(size) + numpy.abs(x[:, ::-1]))
            assert (numpy.abs(found.astype(numpy.float64) - expected) <= bound).all(), name
        else:
            assert (found == expected).all(), name
        votes = (x > x[:, :1]).any(axis=1) * 1 + (x >= x[:, :1]).all(axis=1) * 2
        assert (numpy.load(tmp_path / f"{name}_votes.npy") == votes).all(), name


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "metal3.1"])
def test_gpus_get_code_for_them(vortex, tmp_path, target):
    path = tmp_path / "reductions.vx"
    path.write_text(source())
    for name in ("f32_33", "f32_3000", "i8_33"):
        vortex("build", path, "--target", target, "-o", tmp_path, "--kernel", f"k_{name}")
