"""Names that programs use around kernels and that need no kernel of their own: hints, buffers, devices, tuned kernels, reports, layouts, views."""
import math
import pickle

import numpy as np
import pytest

import metile
from metile.ir.layout import Layout, threadgroup_tile
from metile.runtime.metal_device import MetalDevice

HINTS = ["WM", "WN", "NUM_SG", "COOPERATIVE", "SEPARATED", "RELAXED_PRECISION", "K_UNROLL", "SWIZZLE", "SWIZZLE_SMEM", "SCHEDULE_ENCODING", "num_stages",
         "num_simdgroups", "NAX_WM", "NAX_ANYTHING"]


@metile.kernel
def shifted(X, Out, N: int, by: float, UP: metile.constexpr = 1, BLOCK: metile.constexpr = 64):
    lanes = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    metile.store(Out + lanes, metile.load(X + lanes, mask=lanes < N) + UP * by, mask=lanes < N)


def test_arguments_come_by_position_by_name_and_by_default(random):
    x = random.standard_normal(100, dtype=np.float32)
    by = float(np.float32(random.standard_normal()))
    for args, named in [((x,), {"N": 100, "by": by, "BLOCK": 64}), ((x,), {"by": np.float32(by), "N": np.int64(100)}), ((x,), {"N": np.uint8(100), "by": by, "UP": 1}),
                        ((x,), {"N": metile.constexpr(100), "by": by, "UP": metile.constexpr(1)}), ((x,), {"N": 100, "by": by, **{name: 2 for name in HINTS}})]:
        out = np.full(100, np.nan, np.float32)
        assert shifted[2](*args, Out=out, **named) is None
        np.testing.assert_array_equal(out, x + np.float32(by))
    assert len(shifted._specialised) == 1  # hints and wrapped numbers make no other kernel
    out = np.full(100, np.nan, np.float32)
    shifted[2](x, out, True, by)
    assert out[0] == x[0] + np.float32(by) and np.isnan(out[1:]).all()


@pytest.mark.parametrize("name", ["NUM_STAGES", "nax_wm", "WMM", "block"])
def test_other_names_are_no_hints(name):
    with pytest.raises(TypeError, match=f"no parameter '{name}', and no compiler option"):
        shifted[1](np.zeros(4, np.float32), np.zeros(4, np.float32), 4, 1.0, **{name: 2})


def test_a_slip_in_a_name_tells_the_name():
    with pytest.raises(TypeError, match="no parameter 'BLOKC'.* did you mean 'BLOCK'"):
        shifted[1](np.zeros(4, np.float32), np.zeros(4, np.float32), 4, 1.0, BLOKC=64)


def test_buffers_have_the_names_of_buffers_for_apple_gpus(random):
    data = random.standard_normal((3, 5), dtype=np.float32)
    buffer = metile.Buffer(data=data)
    assert buffer.metal_buffer is buffer.numpy() and buffer.size == 15 and buffer.nbytes == 60 and repr(buffer) == "Buffer(shape=(3, 5), dtype=float32)"
    buffer.sync_from_source()
    data[1] = 7
    buffer.sync_to_source()
    np.testing.assert_array_equal(buffer.numpy(), data)
    np.testing.assert_array_equal(np.asarray(buffer), data)
    assert metile.Buffer(4).shape == (4,) and not metile.Buffer.zeros(4, np.uint8).numpy().any() and metile.Buffer.empty((2, 3), np.int32).dtype == np.int32
    data.flags.writeable = False
    assert not metile.Buffer(data=data).numpy().flags.writeable
    for wrong, kind in [({}, TypeError), ({"data": data, "shape": (5, 3)}, ValueError), ({"data": data.astype(np.float64)}, TypeError)]:
        with pytest.raises(kind):
            metile.Buffer(**wrong)


def test_the_device_is_one_object_and_tells_its_limits():
    device = MetalDevice.get()
    assert device is metile.Device.get() and MetalDevice is metile.Device
    assert isinstance(device.name, str) and device.name and device.supports_tensor_ops is False
    assert device.max_threadgroup_memory >= 1 << 15 and device.max_threads_per_threadgroup == 1024
    assert device.flush() is None and device.sync() is None
    x = np.zeros(4, np.float32)
    shifted[1](x, x, 4, 1.0, BLOCK=32)
    device.sync()
    assert math.isfinite(device.gpu_elapsed()) and device.gpu_elapsed() >= 0


def test_tuned_kernels_are_wrapped_prepared_and_asked(monkeypatch, capsys):
    monkeypatch.setenv("METILE_DISABLE_DISK_CACHE", "1")

    @metile.kernel
    def increment(X, N, BLOCK: metile.constexpr):
        lanes = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
        metile.store(X + lanes, metile.load(X + lanes, mask=lanes < N) + 1, mask=lanes < N)

    first = metile.autotune(configs=[metile.Config(BLOCK=0)], key=["N"])(increment)
    tuned = metile.autotune(configs=[metile.Config(BLOCK=32), metile.Config(BLOCK=64)], key=["N"], warmup=1, rep=1, verbose=False)(first)
    assert tuned.kernel_fn is increment and first.kernel_fn is increment and tuned.fn is increment.fn and tuned.name == "increment"
    x = np.zeros(40, np.float32)
    assert first[2](x, 40, BLOCK=64) is None  # all constants are named: nothing is tuned
    prepared = tuned[lambda values: (metile.cdiv(40, values["BLOCK"]),)].prepare(x, 40)
    np.testing.assert_array_equal(x, 2)
    prepared.repeat(2)
    prepared()
    np.testing.assert_array_equal(x, 5)
    assert capsys.readouterr().out == ""
    for configs, key, text in [([], ["N"], "no configurations"), ([metile.Config(BLOCK=32)], ["M"], "no parameter 'M'")]:
        with pytest.raises(ValueError, match=text):
            metile.autotune(configs=configs, key=key)(increment)


def test_of_configurations_that_are_as_fast_the_one_with_less_code_wins(monkeypatch):
    monkeypatch.setenv("METILE_DISABLE_DISK_CACHE", "1")

    @metile.autotune(configs=[metile.Config(TIMES=60), metile.Config(TIMES=1), metile.Config(TIMES=30)], key=["N"], warmup=1, rep=1, verbose=False)
    @metile.kernel
    def unrolled(X, N, TIMES: metile.constexpr, BLOCK: metile.constexpr = 32):
        x = metile.load(X + metile.arange(0, BLOCK))
        for _ in range(TIMES):
            x = metile.sqrt(x + 1.0)
        metile.store(X + metile.arange(0, BLOCK), x)

    monkeypatch.setattr(type(unrolled), "_times", lambda tuned, ready, *rest: {config: 1.0 for config in ready})
    assert unrolled[1](np.zeros(32, np.float32), 3) == metile.Config(TIMES=1)


def test_reports_on_models_say_what_was_kept():
    for wrong in (None, 3, "model", {}):
        with pytest.raises(TypeError, match="MLX-LM model"):
            metile.compile(wrong)
    report = metile.compile(len, verify=False, features=("attention",), tolerance=0.1)
    assert not report and "declined model" in str(report)
    done = []
    kept = metile.compile.CompileReport(model=len, replaced={"norm": lambda: done.append("norm")})
    assert kept and str(kept) == "kept norm"
    kept.restore()
    assert done == ["norm"] and not kept and str(kept) == "nothing was replaced"


def test_layouts_of_tiles(capsys):
    assert metile.make_layout((4, 8)) == metile.col_major(4, 8) == Layout((4, 8), (1, 4)) and metile.make_layout((4, 8), (8, 1)) == metile.row_major(4, 8)
    nested = Layout(((2, 3), 4))
    assert (nested.rank, nested.depth, nested.size, nested.cobound) == (2, 2, 24, 24) and nested.is_compact() and not Layout(4, 2).is_compact()
    assert metile.make_identity((3, 5)).table() == list(range(15))
    assert (Layout(7).rank, Layout(7).depth, Layout(7)(5)) == (0, 0, 5) and nested((1, 2), 3) == nested(((1, 2), 3)) == 1 + 2 * 2 + 3 * 6
    tile = metile.simdgroup_layout_8x8()
    assert sorted(tile.table()) == list(range(64))
    assert all(tile(lane, 0) // 8 + 1 == tile(lane, 1) // 8 and tile(lane, 0) % 8 == tile(lane, 1) % 8 for lane in range(32))
    runs = threadgroup_tile(6, 8, 12)
    assert [runs(3, value) for value in range(4)] == [12, 13, 14, 15] and sorted(runs.table()) == list(range(48))
    with pytest.raises(ValueError, match="shared out evenly"):
        threadgroup_tile(5, 5, 4)
    repeated = metile.col_major(2, 2).logical_product(Layout(3))
    assert [[repeated(inner, outer) for inner in range(4)] for outer in range(3)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert metile.print_layout(metile.row_major(2, 3)) == "0 1 2\n3 4 5" and capsys.readouterr().out == "0 1 2\n3 4 5\n"
    with pytest.raises(ValueError, match="different forms"):
        Layout((2, 3), 1)


def test_address_spaces_are_full_at_their_capacity():
    space = metile.GlobalAddressSpace(capacity=1024)
    first = space.tensor((10, 20), np.float16, name="first")
    assert isinstance(first, metile.TensorView) and (first.numel, first.nbytes, first.byte_offset) == (200, 400, 0)
    tiles = first.subdivide((4, 8))
    assert isinstance(tiles, metile.TiledView) and tiles.grid == (3, 3) and tiles.tile_byte_offset(1, 2) == (4 * 20 + 16) * 2
    second = space.tensor(128)
    assert second.byte_offset == 512 and space.used == 1024
    second.numpy()[:] = 3
    assert not first.numpy().any() and space.metal_buffer.numpy()[512:].any()
    with pytest.raises(MemoryError, match="0 of 1024 bytes are free"):
        space.tensor(1, np.uint8)
    space.reset()
    assert space.tensor(256).byte_offset == 0


@metile.kernel
def everywhere(Out, COLUMNS: metile.constexpr):
    row, column = metile.program_id(0), metile.program_id(1)
    for pattern in ("auto", "linear", "", "diagonal", "grouped2", "grouped4", "grouped8", "morton"):
        row, column = metile.tile_swizzle(row, column, pattern)
    row, column = metile.tile_swizzle(row, column, "hilbert", 4)
    row, column = metile.tile_swizzle(row, column, pattern="morton", block_size=2)
    metile.store(Out + row * COLUMNS + column, 1.0)


@pytest.mark.parametrize("grid", [(4, 4), (3, 5), (1, 7)])
def test_every_schedule_reaches_every_tile(grid):
    out = np.zeros(grid, np.float32)
    everywhere[grid](out, COLUMNS=grid[1])
    assert out.all()


def test_static_prints_of_a_loop_appear_once(capsys):
    @metile.kernel
    def told(X, N):
        for i in metile.tile_range(0, N):
            metile.static_print("in a loop")
            for j in metile.tile_range(0, 2):
                metile.store(X + i, i * 2 + j)
        metile.static_print("behind it")

    x = np.zeros(4, np.float32)
    told[1](x, 4)
    assert capsys.readouterr().out == "in a loop\nbehind it\n" and x.tolist() == [1, 3, 5, 7]


def test_static_prints_appear_once_while_the_kernel_is_traced(capsys):
    @metile.kernel
    def told(X, N, BLOCK: metile.constexpr):
        metile.static_print("lanes", BLOCK, metile.cdiv(BLOCK, 32))
        metile.static_assert(BLOCK % 32 == 0, "whole simdgroups")
        with metile.simdgroup_role(role=0, num_roles=2, num_sgs=1):
            metile.store(X + metile.arange(0, BLOCK), 1.0)
        with metile.simdgroup_role(1, 2, 1):
            metile.store(X + metile.arange(0, BLOCK), metile.load(X + metile.arange(0, BLOCK)) + 1.0)

    x = np.zeros(64, np.float32)
    for _ in range(2):
        told[1](x, 3, BLOCK=64)
    assert capsys.readouterr().out == "lanes 64 2\n" and (x == 2).all()


@metile.kernel
def product(A, B, C, N, K, BLOCK: metile.constexpr):
    acc = metile.zeros((BLOCK, BLOCK))
    for k in metile.tile_range(0, K, 32):
        acc = metile.dot(metile.tile_load(A, 0, k, K, (BLOCK, 32)), metile.tile_load(B, k, 0, N, (32, BLOCK)), acc)
    metile.tile_store(C, 0, 0, N, acc, (BLOCK, BLOCK))


def test_products_of_f32_are_rounded_as_f32(random):
    a, b = random.standard_normal((16, 512), dtype=np.float32), random.standard_normal((512, 16), dtype=np.float32)
    c = np.full((16, 16), np.nan, np.float32)
    product[1](a, b, c, 16, 512, BLOCK=16)
    size = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    assert (np.abs(c - a.astype(np.float64) @ b) <= 32 * np.finfo(np.float32).eps * size).all()


def _twice(kernel):
    return metile.autotune(configs=[metile.Config(BLOCK=32)], key=["N"])(kernel)


MISTAKES = {
    "an array as a shape": (lambda: metile.Buffer(np.zeros(3, np.float32)), TypeError, r"Buffer\(data=array\)"),
    "a float as a shape": (lambda: metile.Buffer(1.5), TypeError, "made of integers, not of float: 1.5"),
    "a float in a shape": (lambda: metile.Buffer.empty((2, 1.5)), TypeError, "made of integers, not of float"),
    "a negative extent": (lambda: metile.Buffer.zeros((2, -1)), ValueError, "not negative"),
    "data of another type": (lambda: metile.Buffer(dtype=np.float16, data=np.zeros(3, np.float32)), ValueError, "the data has elements of type float32"),
    "a layout of text": (lambda: Layout("x"), TypeError, "made of integers, not of 'x'"),
    "a layout of floats": (lambda: Layout((2.5,)), TypeError, "made of integers, not of 2.5"),
    "a layout of none": (lambda: Layout((4, (2, -2))), ValueError, "not negative, not of -2"),
    "strides of floats": (lambda: Layout((4, 2), (1, 0.5)), TypeError, "a stride of a layout is made of integers"),
    "a truth as an extent": (lambda: metile.TensorSpec((True,), "f32"), ValueError, "positive integers"),
    "a stage by number": (lambda: shifted.source(3, np.zeros(4, np.float32), np.zeros(4, np.float32), 4, 1.0), TypeError, "a stage of the compiler is a str"),
    "a prepared launch pickled": (lambda: pickle.dumps(shifted[1].prepare(np.zeros(4, np.float32), np.zeros(4, np.float32), 4, 1.0)), TypeError,
                                  "a prepared launch of kernel 'shifted' cannot be pickled"),
    "tuned below kernel": (lambda: _twice(lambda X, BLOCK: None), TypeError, "stands above @metile.kernel"),
    "warmup of text": (lambda: metile.autotune([metile.Config(BLOCK=8)], ["N"], warmup="a")(shifted), TypeError, "warmup is a number of launches, not a str"),
    "half a repetition": (lambda: metile.autotune([metile.Config(BLOCK=8)], ["N"], rep=1.5)(shifted), TypeError, "rep is a number of launches, not a float"),
    "negative repetitions": (lambda: metile.autotune([metile.Config(BLOCK=8)], ["N"], rep=-1)(shifted), ValueError, "rep is a number of launches, not -1"),
    "one configuration": (lambda: metile.autotune(metile.Config(BLOCK=8), ["N"])(shifted), TypeError, "configs is a list, not a Config"),
    "one key": (lambda: metile.autotune([metile.Config(BLOCK=8)], "N")(shifted), TypeError, "key is a list, not a str"),
    "a constexpr that changes": (lambda: shifted[1](np.zeros(4, np.float32), np.zeros(4, np.float32), 4, 1.0, BLOCK=np.arange(3)), TypeError,
                                 "constexprs are hashable values, 'BLOCK' is a ndarray"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_around_kernels_are_named(name):
    call, kind, text = MISTAKES[name]
    with pytest.raises(kind, match=text):
        call()


@metile.kernel
def by_position(X, /, self, kernel, *, BLOCK: metile.constexpr):
    lanes = metile.arange(0, BLOCK)
    metile.store(X + lanes, metile.load(self + lanes) + kernel)


def test_parameters_have_any_name_and_may_be_positional(random, where):
    x = random.standard_normal(8, dtype=np.float32)
    for launch in (lambda out: by_position[1](out, x, 2.0, BLOCK=8), lambda out: by_position[1](out, self=x, kernel=2.0, BLOCK=8),
                   lambda out: by_position[1].prepare(out, kernel=2.0, self=x, BLOCK=8), lambda out: by_position.get_compiled(out, x, kernel=2.0, BLOCK=8)):
        for _ in range(2):
            out = np.full(8, np.nan, np.float32)
            launch(out)
            np.testing.assert_array_equal(out, x + np.float32(2))
    assert "by_position" in by_position.explain(out, self=x, kernel=2.0, BLOCK=8)


def test_traced_values_are_of_no_use_after_the_trace():
    kept = []

    @metile.kernel
    def leaks(X, BLOCK: metile.constexpr):
        kept.append(metile.load(X + metile.arange(0, BLOCK)))
        metile.store(X + metile.arange(0, BLOCK), kept[-1])

    leaks[1](np.zeros(8, np.float32), BLOCK=8)
    for use in (lambda x: x + 1, lambda x: -x, metile.exp, lambda x: metile.where(x > 1, x, 0)):
        with pytest.raises(RuntimeError, match="a traced value is used after its kernel has been traced"):
            use(kept[0])
