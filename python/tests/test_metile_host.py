"""What programs use around kernels: compile-time numbers, layouts, schedules, graphs, address spaces, attention."""
import itertools

import numpy as np
import pytest

import metile
import vortex
from metile.compiler.graph_fusion import FusionTarget, ProducerConsumerRule, plan_graph_fusion
from metile.compiler.schedules import PATTERNS, resolve_schedule, schedule_coordinates, validate_schedule
from metile.ir.graph_ir import GraphBuilder, TensorSpec
from metile.ir.layout import Layout, Swizzle, bank_conflicts, col_major, make_swizzle, row_major
from metile.runtime.address_space import GlobalAddressSpace, KernelPipeline
from metile.runtime.attention import attention_decode


def test_wrapped_numbers_stay_wrapped_with_each_other():
    a, b = metile.constexpr(7), metile.constexpr(2)
    assert isinstance(a + b, metile.constexpr) and (a + b) == 9 and (a // b) == 3
    assert not isinstance(a + 1, metile.constexpr) and a + 1 == 8 and 10 - a == 3
    assert isinstance(a << 1, metile.constexpr) and (a << 1) == 14 and isinstance(1 | a, metile.constexpr)
    assert int(a) == 7 and float(a) == 7.0 and list(range(a)) == list(range(7)) and a > b and a != b and bool(a)


@pytest.mark.parametrize("n, power", [(-3, 1), (0, 1), (1, 1), (2, 2), (3, 4), (1000, 1024), (1024, 1024), ((1 << 52) + 1, 1 << 53)])
def test_next_power_of_two(n, power):
    assert metile.next_power_of_2(n) == power
    assert isinstance(metile.next_power_of_2(metile.constexpr(n)), metile.constexpr)


def test_cdiv_rounds_up():
    assert [metile.cdiv(n, 4) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert isinstance(metile.cdiv(metile.constexpr(9), metile.constexpr(4)), metile.constexpr)


def test_configurations_are_equal_by_their_values():
    assert metile.Config(BLOCK=64) == metile.Config(BLOCK=64) != metile.Config(BLOCK=32)
    assert metile.Config(num_stages=3, BLOCK=64).kwargs == {"BLOCK": 64, "num_stages": 3}
    assert repr(metile.Config(BLOCK=64, WM=2)) == "Config(BLOCK=64, WM=2)" and len({metile.Config(A=1), metile.Config(A=1)}) == 1


def random_layout(random, limit=4):
    shape = tuple(int(extent) for extent in random.integers(1, limit + 1, random.integers(1, 4)))
    order = random.permutation(len(shape))
    strides, next_stride = [0] * len(shape), 1
    for mode in order:
        strides[mode] = next_stride * int(random.integers(1, 3))
        next_stride = strides[mode] * shape[mode]
    return Layout(shape, tuple(strides))


def test_layouts_keep_their_laws(random):
    for _ in range(100):
        layout = random_layout(random)
        coalesced = layout.coalesce()
        assert coalesced.table() == layout.table()
        assert layout.is_injective() and layout.cobound == max(layout.table()) + 1
        coordinates = list(itertools.product(*(range(extent) for extent in reversed(layout.shape))))
        expected = [sum(part * stride for part, stride in zip(reversed(coordinate), layout.stride)) for coordinate in coordinates]
        assert layout.table() == expected
        identity = Layout(layout.size, 1)
        assert layout.compose(identity).table() == layout.table()


def test_complements_and_divisions_reach_every_offset_once():
    for shape, stride, bound in ((4, 1, 16), (4, 2, 16), ((2, 2), (1, 4), 16)):
        layout = Layout(shape, stride)
        both = sorted(a + b for a in layout.table() for b in layout.complement(bound).table())
        assert both == list(range(bound))
    assert sorted(col_major(8, 4).logical_divide(4).table()) == list(range(32))
    inverse = row_major(4, 8).right_inverse()
    assert [row_major(4, 8)(inverse(k)) for k in range(32)] == list(range(32))


def test_swizzles_are_their_own_inverse_and_spread_columns():
    for stride in (8, 16, 32):
        swizzle = make_swizzle(stride)
        assert sorted(swizzle(offset) for offset in range(1024)) == list(range(1024))
        column = Layout(stride, stride)
        assert bank_conflicts(column, group_size=stride, swizzle=swizzle)["max_way"] < max(2, bank_conflicts(column, group_size=stride)["max_way"])
    with pytest.raises(ValueError):
        Swizzle(0, 0, 1)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_schedule_is_a_permutation_of_every_grid(pattern):
    for rows, columns in itertools.product(range(1, 10), repeat=2):
        visited = list(schedule_coordinates(rows, columns, pattern))
        assert sorted(visited) == sorted(itertools.product(range(rows), range(columns)))
    assert resolve_schedule(pattern, 3, 5) not in ("morton", "hilbert", "auto")


def test_unknown_schedules_are_refused():
    with pytest.raises(ValueError, match="Unknown tile schedule"):
        validate_schedule("spiral")
    with pytest.raises(ValueError, match="block_size=2"):
        validate_schedule("morton", 4)


def chain(lengths):
    builder = GraphBuilder()
    value = builder.input("x", TensorSpec((64,), "f16"))
    for number, factor in enumerate(lengths):
        value = builder.scale(value, factor, name=f"s{number}")
    return builder.build(value)


@pytest.mark.parametrize("length", range(2, 9))
def test_overlapping_regions_are_chosen_for_the_largest_sum(length):
    plan = plan_graph_fusion(chain(range(length)), rules=(ProducerConsumerRule("pair", "scale", "scale", 0, 1),))
    assert len(plan.regions) == length // 2
    members = [id(node) for region in plan.regions for node in region.nodes]
    assert len(members) == len(set(members))


def test_rules_need_resources_and_gain():
    graph = chain(range(2))
    rule = ProducerConsumerRule("pair", "scale", "scale", 0, 100)
    assert plan_graph_fusion(graph, rules=(rule,)).regions == ()
    free = FusionTarget(launch_overhead_ns=0, memory_bandwidth_bytes_per_ns=float("inf"))
    assert plan_graph_fusion(graph, target=free, rules=(ProducerConsumerRule("pair", "scale", "scale"),)).regions == ()
    plan = plan_graph_fusion(graph, rules=(ProducerConsumerRule("pair", "scale", "scale"),))
    assert plan.region_for(graph.nodes[1]) is plan.regions[0]


@pytest.mark.parametrize("make", [
    lambda b, x: b.add(x, b.input("y", TensorSpec((3, 5), "f32"))), lambda b, x: b.matmul(x, b.input("y", TensorSpec((3, 4), "f32"))),
    lambda b, x: b.rms_norm(x, b.input("w", TensorSpec((3,), "f32")), 1e-5), lambda b, x: b.softmax(x, axis=5), lambda b, x: b.input("x", x.spec),
    lambda b, x: TensorSpec((0,), "f32"), lambda b, x: TensorSpec((1,), "f64"),
])
def test_graphs_refuse_what_does_not_fit(make):
    builder = GraphBuilder()
    with pytest.raises(ValueError):
        make(builder, builder.input("x", TensorSpec((3, 4), "f32")))


def test_kernels_run_in_an_address_space(random):
    @metile.kernel
    def double(X, Out, N, BLOCK: metile.constexpr):
        lanes = metile.arange(0, BLOCK)
        metile.store(Out + lanes, metile.load(X + lanes, mask=lanes < N) * 2, mask=lanes < N)

    space = GlobalAddressSpace(capacity=1 << 16)
    a, b, c = (space.tensor((40,), name=name) for name in "abc")
    a.numpy()[:] = random.standard_normal(40)
    pipeline = KernelPipeline(space)
    pipeline.add_stage("first", double, (1,), [a], [b], N=40, BLOCK=64).add_stage("second", double, (1,), [b], [c], N=40, BLOCK=64)
    pipeline.run()
    np.testing.assert_allclose(c.numpy(), a.numpy() * 4)
    assert repr(pipeline) == "KernelPipeline(first -> second)" and a.byte_offset % 256 == b.byte_offset % 256 == 0


@pytest.mark.parametrize("options, kind, message", [({"D": 33}, ValueError, "multiple of 32"), ({"D": 64, "KV_HEADS": 3}, ValueError, "divisor"),
                                                    ({"D": 128}, ValueError, "requires")])
def test_attention_checks_shapes(options, kind, message):
    arrays = [np.zeros(4 * 64, np.float32) for _ in range(4)]
    with pytest.raises(kind, match=message):
        attention_decode[(1, 4)].prepare(*arrays, 1, 0.1, **options)
    with pytest.raises(TypeError, match="float32"):
        attention_decode[(1, 4)].prepare(*(array.astype(np.float16) for array in arrays), 1, 0.1, D=64)


def _attended(q, k, v, scale):
    of = np.arange(q.shape[1]) // (q.shape[1] // k.shape[1])
    weights = np.exp(np.einsum("bhd,bhnd->bhn", q, k[:, of]).astype(np.float64) * scale)
    return np.einsum("bhn,bhnd->bhd", weights / weights.sum(-1, keepdims=True), v[:, of])


BATCH, HEADS, KV, TOKENS, DIM = 2, 4, 2, 5, 32
QUERIES, CACHE = (BATCH, HEADS, DIM), (BATCH, KV, TOKENS, DIM)
SHAPES = [(shape, cache, True) for shape in (QUERIES, (BATCH * HEADS, DIM), (1, *QUERIES), (BATCH * HEADS * DIM,))
          for cache in (CACHE, (BATCH * KV, TOKENS, DIM), (BATCH, KV, TOKENS * DIM), (BATCH * KV * TOKENS * DIM,))]
SHAPES += [(QUERIES, (BATCH, TOKENS, KV, DIM), False), (QUERIES, (BATCH, KV, 2 * TOKENS, DIM), False), ((3, HEADS, DIM), CACHE, False),
           ((HEADS, BATCH, DIM), CACHE, False), ((BATCH, HEADS, 2 * DIM), CACHE, False), (QUERIES, (BATCH, KV, DIM, TOKENS), False)]


@pytest.mark.parametrize("queries, cache, fits", SHAPES)
def test_attention_takes_arrays_of_its_shapes_alone(queries, cache, fits, random):
    q, out = random.standard_normal(queries, dtype=np.float32), np.zeros(queries, np.float32)
    k, v = (random.standard_normal(cache, dtype=np.float32) for _ in range(2))
    launch = lambda *arrays: attention_decode[(BATCH, HEADS)].prepare(*arrays, TOKENS, 0.25, D=DIM, KV_HEADS=KV)
    if fits:
        launch(q, k, v, out)
        np.testing.assert_allclose(out.reshape(QUERIES), _attended(q.reshape(QUERIES), k.reshape(CACHE), v.reshape(CACHE), 0.25), rtol=1e-4, atol=1e-5)
        return
    with pytest.raises(ValueError, match="has the shape"):
        launch(q, k, v, out)
    good = [np.zeros(shape, np.float32) for shape in (QUERIES, CACHE, CACHE, QUERIES)]
    for index, array in enumerate((q, k, v, out)):
        if array.shape not in (QUERIES, CACHE):
            with pytest.raises(ValueError, match=f"{('query', 'key', 'value', 'output')[index]} has the shape"):
                launch(*good[:index], array, *good[index + 1:])


def test_a_grid_may_depend_on_the_constants(random):
    @metile.kernel
    def fill(X, N, BLOCK: metile.constexpr):
        offs = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
        metile.store(X + offs, 1.0, mask=offs < N)

    x = np.zeros(100, np.float32)
    fill[lambda values: (metile.cdiv(100, values["BLOCK"]),)](x, 100, BLOCK=32, num_stages=2, WM=4)
    np.testing.assert_array_equal(x, 1)


def test_debug_output_shows_trace_and_code(monkeypatch, capfd):
    @metile.kernel
    def one(X, BLOCK: metile.constexpr):
        metile.store(X + metile.arange(0, BLOCK), 1.0)

    monkeypatch.setenv("METILE_DEBUG", "all")
    one[1](np.zeros(8, np.float32), BLOCK=8)
    text = capfd.readouterr().err
    assert "one: trace" in text and "vx.kernel" in text


@pytest.mark.parametrize("wanted", ["tile_ir", "metal_ir", "metal_ir_opt", "msl", "tile_ir,msl", "all"])
def test_debug_output_is_what_was_asked_for_on_stderr_and_in_files(monkeypatch, capfd, tmp_path, wanted):
    @metile.kernel
    def one(X, BLOCK: metile.constexpr):
        metile.store(X + metile.arange(0, BLOCK), 1.0)

    monkeypatch.setenv("METILE_DEBUG", wanted)
    monkeypatch.setenv("METILE_DEBUG_DIR", str(tmp_path / "dumps"))
    one[1](np.zeros(8, np.float32), BLOCK=8)
    text = capfd.readouterr().err
    names = {"tile_ir", "metal_ir", "metal_ir_opt", "msl"} if wanted == "all" else set(wanted.split(","))
    assert {path.name for path in (tmp_path / "dumps").iterdir()} == {f"one.{name}" for name in names}
    assert all(path.read_text() in text for path in (tmp_path / "dumps").iterdir())
    assert text.count("// ---- one: ") == len(names)


def test_facts_and_sources_are_those_of_a_launch_that_is_not_made():
    @metile.kernel
    def doubled(X, N, BLOCK: metile.constexpr):
        lane = metile.arange(0, BLOCK)
        metile.store(X + lane, metile.load(X + lane, mask=lane < N) * 2.0, mask=lane < N)

    x = np.ones(10, np.float32)
    facts = doubled.facts(x, 10, BLOCK=16)
    assert facts["object_bytes"] > 0 and all(isinstance(value, int) for value in facts.values())
    assert "vx." in doubled.source("irgen", x, N=10, BLOCK=16) and len(doubled.source("assembly", x, 10, BLOCK=16)) > 100
    assert (x == 1).all()
    with pytest.raises(vortex.Error, match="there is no stage 'nope'"):
        doubled.source("nope", x, 10, BLOCK=16)
    with pytest.raises(TypeError, match="misses 'N', 'BLOCK'"):
        doubled.facts(x)


@pytest.mark.parametrize("name, value, known", [("METILE_DEBUG", "tile_ir, copys", "tile_ir, metal_ir, metal_ir_opt, msl, copies, all, not copys"),
                                                ("METILE_CHECK", "true", "1 or 0, not 'true'"), ("METILE_INTERPRET", "yes", "1 or 0, not 'yes'"),
                                                ("METILE_ONLINE_SOFTMAX", "off", "1 or 0"), ("METILE_DISABLE_DISK_CACHE", "on", "1 or 0")])
def test_settings_that_mean_nothing_are_errors(monkeypatch, name, value, known):
    @metile.kernel
    def one(X, Out, N, BLOCK: metile.constexpr):
        largest = -1e30
        for i in metile.tile_range(0, N, BLOCK):
            largest = metile.maximum(largest, metile.load(X + i + metile.arange(0, BLOCK)))
        total = 0.0
        for i in metile.tile_range(0, N, BLOCK):
            total = total + metile.exp(metile.load(X + i + metile.arange(0, BLOCK)) - largest)
        metile.store(Out + metile.arange(0, BLOCK), total)

    x, out = np.ones(8, np.float32), np.zeros(8, np.float32)
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=f"the environment variable {name} is .*{known}"):
        one[1](x, out, 8, BLOCK=8)
    assert not out.any()
    for nothing in ("", "0") if name != "METILE_DEBUG" else ("", " , "):
        monkeypatch.setenv(name, nothing)
        one[1](x, out, 8, BLOCK=8)
    assert (out == 1).all()


def test_an_empty_device_name_is_none(monkeypatch):
    monkeypatch.setattr("metile.runtime.device._chosen", [None])
    monkeypatch.setenv("METILE_DEVICE", "")
    assert metile.Device.get().is_cpu


def test_kernels_show_their_parameters():
    @metile.kernel
    def one(X, N, BLOCK: metile.constexpr = 8):
        pass

    assert repr(one) == "<metile.Kernel one(X, N, BLOCK)>"


def test_shared_memory_of_a_loop_is_counted_once():
    @metile.kernel
    def looped(X, N, BLOCK: metile.constexpr):
        i, total = metile.arange(0, BLOCK), 0.0
        for _ in metile.tile_range(0, N):
            memory = metile.shared(BLOCK)
            metile.barrier()
            metile.store(memory + i, total + 1)
            metile.barrier()
            total = metile.load(memory + i)
        metile.store(X + i, total)

    x = np.zeros(8, np.float32)
    assert looped.get_compiled(x, 3, BLOCK=8).shared_bytes == 32
    np.testing.assert_array_equal(x, 3)
