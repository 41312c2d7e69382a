"""What crosses between Python and kernels: structs, tuples, scalars, prints, faults, read-only memory."""
import dataclasses
import io
import os
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import vortex

PARTS = """
struct P { x: Tensor<f32, [N]>, s: f32 }
struct V { a: f32, b: f32 }
struct Body { at: V, hits: [i32; 2] }
kernel scaled(p: &P) -> Tensor<f32, [N]> { return p.x * p.s }
kernel grow(p: &mut P) { p.x[thread.global_id] += p.s }
kernel blend(parts: &[Tensor<f32, [N]>; 2], w: [f32; 2]) -> Tensor<f32, [N]> { return parts[0] * w[0] + parts[1] * w[1] }
kernel pair(t: (f32, i32), x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> {
    let (a, b) = t
    return x * a + b as f32
}
kernel sums(x: &Tensor<V, [N]>) -> Tensor<f32, [N]> { return x.a + x.b }
kernel same(x: &Tensor<Body, [N]>) -> Tensor<Body, [N]> { return x }
kernel total(x: &Tensor<f32, [N]>) -> f32 { return x.sum() }
kernel both(x: &Tensor<f32, [N]>) -> (f32, Tensor<f32, [N]>) { return (x.sum(), x * 2.0) }
kernel halved(x: &Tensor<f32, [N]>) -> Tensor<bf16, [N]> { return x as bf16 }
kernel scale<T: Float>(x: &Tensor<T, [N]>, s: T) -> Tensor<T, [N]> { return x * s }
"""


@dataclasses.dataclass
class Scaled:
    x: np.ndarray
    s: float


class Loose:
    def __init__(self, x, s):
        self.x, self.s = x, s


@pytest.fixture(scope="module")
def program(device):
    return vortex.compile(source=PARTS, device=device)


@pytest.mark.parametrize("wrong", [lambda x: {"x": x, "s": 2.0, "t": 1.0}, lambda x: {"x": x}, lambda x: {"x": x, "t": 1.0}, lambda x: (x, 2.0, 1.0), lambda x: (x,)])
def test_a_struct_has_its_fields_and_no_others(program, wrong):
    with pytest.raises(TypeError, match="'p' of kernel 'scaled' has the parts x, s: "):
        program.scaled(wrong(np.ones(4, np.float32)))


@pytest.mark.parametrize("kind", [[("a", "f4"), ("b", "f4"), ("c", "f4")], [("a", "f4")]])
def test_a_tuple_from_a_structured_array_has_as_many_fields(program, kind):
    weights = np.ones(1, kind)[0]
    with pytest.raises(TypeError, match="'w' of kernel 'blend' has the parts 0, 1: "):
        program.blend((np.ones(4, np.float32), np.ones(4, np.float32)), weights)
    pair = np.array([(2.0, 0.5)], [("first", "f4"), ("second", "f4")])[0]
    np.testing.assert_array_equal(program.blend((np.full(4, 3, np.float32), np.full(4, 4, np.float32)), pair), np.full(4, 8, np.float32))


@pytest.mark.parametrize("make", [lambda x, s: {"s": s, "x": x}, lambda x, s: (x, s), lambda x, s: [x, s], Scaled, Loose])
def test_a_struct_is_a_dict_a_tuple_or_an_object_with_its_fields(program, random, make, device):
    x = random.standard_normal(33, dtype=np.float32)
    np.testing.assert_array_equal(program.scaled(make(x, 2.5)), x * np.float32(2.5))
    y = x.copy()
    program.grow(make(y, 1.5))
    np.testing.assert_array_equal(y, x + np.float32(1.5))
    there = vortex.asarray(x, device)
    np.testing.assert_array_equal(np.asarray(program.scaled.prepare(make(there, 2.5))()), x * np.float32(2.5))
    np.testing.assert_array_equal(program.scaled(p=make(x, 2.5)), x * np.float32(2.5))


def test_prepared_launches_on_a_gpu_take_no_host_arrays(program, device):
    if device == "cpu":
        pytest.skip("the CPU works in host memory")
    x = np.ones(5, np.float32)
    with pytest.raises(ValueError, match=r"'p.x' of kernel 'scaled' is a NumPy array.*vortex.asarray"):
        program.scaled.prepare((x, 2.5))
    with pytest.raises(ValueError, match="is a NumPy array"):
        program.scaled.prepare((vortex.asarray(x, device), 2.5), out=x)


def test_arrays_of_tensors_and_tuples_are_sequences(program, random):
    a, b = random.standard_normal((2, 17), dtype=np.float32)
    np.testing.assert_allclose(program.blend([a, b], (0.5, 2.0)), a * 0.5 + b * 2, rtol=1e-6)
    np.testing.assert_allclose(program.blend((a, b), np.array([0.5, 2.0])), a * 0.5 + b * 2, rtol=1e-6)
    np.testing.assert_allclose(program.pair((1.5, 3), a), a * np.float32(1.5) + 3, rtol=1e-6, atol=1e-6)


def test_tensors_of_structs_are_structured_arrays_and_dicts(program, random):
    x = np.zeros(9, [("a", "f4"), ("b", "f4")])
    x["a"], x["b"] = random.standard_normal((2, 9))
    np.testing.assert_array_equal(program.sums(x), x["a"] + x["b"])
    np.testing.assert_array_equal(program.sums({"a": x["a"].copy(), "b": x["b"].copy()}), x["a"] + x["b"])
    body = np.zeros(5, [("at", [("a", "f4"), ("b", "f4")]), ("hits", "i4", 2)])
    body["at"]["a"], body["hits"] = random.standard_normal(5), random.integers(-9, 9, (5, 2))
    made = program.same(body)
    np.testing.assert_array_equal(made["at"]["a"], body["at"]["a"])
    np.testing.assert_array_equal(made["hits"][1], body["hits"][:, 1])


@pytest.mark.parametrize("wrong", [(np.ones(3, np.float32),), {"x": 1}, 5, np.ones(3, np.float32)])
def test_other_parts_are_a_type_error_with_the_names(program, wrong):
    with pytest.raises(TypeError, match=r"'p' of kernel 'scaled' has the parts x, s"):
        program.scaled(wrong)


def test_parameters_have_names(program, random):
    x = random.standard_normal(5, dtype=np.float32)
    np.testing.assert_array_equal(program.scale(x, s=2), x * 2)
    for arguments, named, text in (((x,), {"q": 1}, "no parameter 'q'"), ((x, 2), {"s": 2}, "two values for 's'"), ((), {"s": 2}, "misses 'x'")):
        with pytest.raises(TypeError, match=text):
            program.scale(*arguments, **named)


def test_results_of_rank_0_are_numbers(program, random, device):
    x = random.integers(-9, 9, 50).astype(np.float32)
    assert isinstance(program.total(x), np.float32) and program.total(x) == x.sum()
    total, doubled = program.both(x)
    assert isinstance(total, np.float32) and total == x.sum() and doubled.shape == (50,)
    out = np.full((), np.nan, np.float32)
    assert program.total(x, out=out) is out and out == x.sum()
    out, rest = np.full((), np.nan, np.float32), np.empty(50, np.float32)
    given = out, rest
    assert program.both(x, out=given) is given and out == x.sum()
    assert program.both(x, out=(None, rest))[0] == x.sum()
    np.testing.assert_array_equal(rest, 2 * x)


def test_out_is_as_many_writable_arrays_as_results(program):
    x, fixed = np.ones(3, np.float32), np.ones(3, np.float32)
    fixed.flags.writeable = False
    for out, error, text in ((np.ones(3, np.float32), TypeError, "2 results, out= has 1"), ((np.empty((), np.float32), fixed), ValueError, "read-only"),
                             ((1.0, fixed), TypeError, "not a float")):
        with pytest.raises(error, match=text):
            program.both(x, out=out)
    np.testing.assert_array_equal(fixed, 1)


def test_bf16_results_are_arrays_of_a_type_that_exists(program, random):
    x = random.standard_normal(7, dtype=np.float32)
    made = program.halved(x)
    if "ml_dtypes" in sys.modules:
        assert made.dtype.name == "bfloat16"
    else:
        assert isinstance(made, vortex.Array) and made.dtype == "bf16" and made.shape == (7,)
        with pytest.raises(TypeError, match="ml_dtypes"):
            np.asarray(made)
        assert vortex.asarray(made, made.device) is made


def test_generic_kernels_say_which_instances_there_are(program):
    np.testing.assert_array_equal(program.scale["f32"](np.ones(3, np.float32), 2), [2, 2, 2])
    np.testing.assert_array_equal(program.scale[np.float32](np.ones(3, np.float32), 2), [2, 2, 2])
    with pytest.raises(vortex.CompileError, match="Float"):
        program.scale[np.int32]
    with pytest.raises(KeyError, match="'total' is not generic"):
        program.total["f32"]


def test_instances_that_the_program_does_not_use_are_made(random, device):
    source = PARTS + """
kernel fill<T: Numeric, const K: i32>(x: &mut Tensor<T, [N]>) { x[thread.global_id] = K as T }
kernel half<T: Float>(x: &mut Tensor<T, [N]>, s: f32) { x[thread.global_id] = x[thread.global_id] * 0.5 }
"""
    for where in (device, "interpreter"):
        program = vortex.compile(source=source, device=where)
        for kind in (np.float64, np.float16, np.float32):
            x = random.standard_normal(50).astype(kind)
            for scaled in (program.scale(x, 2.0), program.scale[kind](x, 2.0)):  # inferred and named
                assert scaled.dtype == kind
                np.testing.assert_array_equal(scaled, x * kind(2))
            expected = x * kind(0.5)
            program.half(x, 1.0)
            np.testing.assert_array_equal(x, expected)
        counts = np.zeros(7, np.int64)
        program.fill["i64", 42](counts)
        np.testing.assert_array_equal(counts, [42] * 7)
        assert program.fill["i64", 42] is program.fill["i64", 42]


def test_constants_of_generic_kernels_are_told_by_extents_or_named(device):
    source = """
type Rows<T, const S: usize> = Tensor<T, [N, S]>
kernel last<T: Numeric, const S: usize>(x: &Rows<T, S>, out: &mut Tensor<T, [N]>, scale: f32) {
    var row: [T; S] = [0 as T; S]
    for i in 0..S { row[i] = x[thread.global_id, i] }
    out[thread.global_id] = row[S - 1] + S as T
}
kernel plus<const C: usize>(x: &mut Tensor<f32, [N]>) { x[thread.global_id] += C as f32 }
kernel plus_one_of_two<const C: usize>(x: &mut Tensor<f32, [N]>) { x[thread.global_id] += C as f32 }
fn main() {
    var x: Tensor<f32, [2]> = zeros()
    plus_one_of_two::<3>(&mut x)
    plus_one_of_two::<5>(&mut x)
}
"""
    for where in (device, "interpreter"):
        program = vortex.compile(source=source, device=where)
        for kind, width in ((np.float32, 3), (np.int64, 3), (np.int64, 5)):
            x, out = np.arange(4 * width).astype(kind).reshape(4, width), np.zeros(4, kind)
            program.last(x, out, 1.0)
            np.testing.assert_array_equal(out, x[:, -1] + width)
        x = np.zeros(2, np.float32)
        with pytest.raises(TypeError, match=r"name one, plus\[…\]; the program makes none"):  # not some C of the compiler's choice
            program.plus(x)
        with pytest.raises(TypeError, match="name one.*<3>.*<5>"):
            program.plus_one_of_two(x)
        np.testing.assert_array_equal(x, [0, 0])
        program.plus[7](x)
        program.plus_one_of_two[5](x)
        np.testing.assert_array_equal(x, [12, 12])
        with pytest.raises(vortex.Error, match="3 columns, but 4 are required|extent 3 instead of 4"):  # a named instance is that one
            program.last["f32", 4](np.zeros((2, 3), np.float32), np.zeros(2, np.float32), 1.0)


def test_constants_that_name_instances_are_what_their_parameters_hold(device):
    source = """
kernel plus<const C: usize>(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x + C as f32 }
kernel small<const C: i8>(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x + C as f32 }
kernel twice<const B: bool>(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { if B { return x * 2.0 } else { return x } }
"""
    program, x = vortex.compile(source=source, device=device), np.ones(2, np.float32)
    for kernel, constant, expected in ((program.plus, np.int64(5), 6), (program.plus, np.uint8(3), 4), (program.small, -128, -127), (program.small, np.int8(-1), 0),
                                       (program.twice, True, 2), (program.twice, np.bool_(True), 2), (program.twice, False, 1)):
        np.testing.assert_array_equal(kernel[constant](x), [expected] * 2)
    for kernel, constant in ((program.plus, -1), (program.small, 128), (program.small, -129), (program.twice, 2), (program.plus, "f32"), (program.plus, np.float32)):
        with pytest.raises(vortex.CompileError, match=f"is no argument for `{'B' if kernel is program.twice else 'C'}`"):
            kernel[constant]
    with pytest.raises(TypeError, match="None is no type"):  # f64 for NumPy
        program.plus[None]


@pytest.mark.parametrize("where", ["device", "interpreter"])
def test_masked_arrays_are_refused(device, where):
    program = vortex.compile(source="kernel twice(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x * 2.0 }", device=device if where == "device" else where)
    x = np.ones(3, np.float32)
    masked = np.ma.array(np.ones(3, np.float32), mask=[True, False, False])  # memory of its own
    for call in (lambda: program.twice(masked), lambda: program.twice.prepare(masked), lambda: program.twice(x, out=masked)):
        with pytest.raises(TypeError, match="is a masked array"):
            call()
    np.testing.assert_array_equal(x, [1, 1, 1])


def test_arrays_of_numbers_are_numpy_arrays_too(device):
    source = "kernel k(key: [u32; 2], x: &mut Tensor<u32, [N]>) { x[thread.global_id] += key[0] * key[1] }"
    for where in (device, "interpreter"):
        x = np.ones(3, np.uint32)
        vortex.compile(source=source, device=where).k(np.array([4, 5], np.uint32), x)
        np.testing.assert_array_equal(x, [21, 21, 21])


@pytest.mark.parametrize("types, text", [((), "expected 1 generic argument, found 0"), (("f32", "f32"), "expected 1 generic argument, found 2"),
                                         (("f31",), "`f31` is no argument for `T`"), (("i32",), "Float")])
def test_instances_that_cannot_be_made_are_errors_at_the_kernel(program, types, text):
    with pytest.raises(vortex.CompileError, match=text) as raised:
        program.scale[types]
    line = next(number for number, line in enumerate(PARTS.splitlines(), 1) if line.startswith("kernel scale<"))
    assert raised.value.diagnostics[0].position[1] == line


def test_arguments_that_no_instance_takes_are_a_type_error(program):
    for x in (np.zeros(3, np.int32), [1.0, 2.0]):
        with pytest.raises((TypeError, vortex.CompileError)):
            program.scale(x, 2.0)


def test_prints_show_values_of_their_types(device, capsys):
    source = """kernel show(x: &Tensor<T, [N]>) { print("{} {}", x[thread.global_id], x[thread.global_id] > (1 as T)) }"""
    for name, kind, value, text in (("f32", np.float32, 0.1, "0.1"), ("f64", np.float64, 0.1, "0.1"), ("f16", np.float16, 1.5, "1.5"), ("i8", np.int8, -3, "-3"),
                                    ("u64", np.uint64, 2**64 - 1, str(2**64 - 1)), ("f32", np.float32, 3, "3.0"), ("f64", np.float64, np.inf, "inf")):
        for where in (device, "interpreter"):
            program = vortex.compile(source=source.replace("T>", name + ">").replace("<T", "<" + name).replace("as T", "as " + name), device=where)
            program.show(np.array([value], kind))
            if where == device:
                vortex.synchronize(where)
            assert capsys.readouterr().out == f"{text} {'true' if value > 1 else 'false'}\n"


class _Broken(io.StringIO):
    def write(self, text):
        raise BrokenPipeError("nobody reads")


@pytest.mark.parametrize("where", ["cpu", "interpreter"])
def test_a_print_that_raises_ends_the_call(monkeypatch, where):
    program = vortex.compile(source="kernel show(x: &Tensor<f32, [N]>) { print(x[thread.global_id]) }", device=where)
    monkeypatch.setattr(sys, "stdout", _Broken())
    with pytest.raises(BrokenPipeError, match="nobody reads"):
        program.show(np.ones(100, np.float32))


ASSERTS = """kernel k(x: &Tensor<f32, [N]>, o: &mut Tensor<f32, [N]>) {
    assert(x[thread.global_id] < 10.0, "too big")
    o[thread.global_id] = 1.0
}
kernel r(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> {
    assert(x[thread.global_id] < 10.0, "too big")
    return x[thread.global_id]
}"""


@pytest.mark.parametrize("how", ["call", "result", "prepared", "repeated", "arrays"])
def test_the_call_whose_kernel_stops_raises_with_id_and_place(how):
    program = vortex.compile(source=ASSERTS, name="asserts.vx", device="cpu")
    x, o = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    small = np.ones(64, np.float32)
    prepared = program.r.prepare(x)
    calls = {"call": lambda: program.k(x, o), "result": lambda: program.r(x), "prepared": prepared, "repeated": lambda: prepared.repeat(3),
             "arrays": lambda: program.k(vortex.asarray(x), vortex.empty(64))}
    with pytest.raises(vortex.Error, match=r"too big \(asserts.vx:\d:5\)") as caught:
        calls[how]()
    fault = caught.value.fault
    assert (fault.id, fault.message, fault.file, fault.column) == ("E0704", "too big", "asserts.vx", 5)
    assert fault.line == (2 if how in ("call", "arrays") else 6)
    np.testing.assert_array_equal(program.r(small), small)  # later calls are none the worse
    vortex.synchronize("cpu")


def test_views_of_read_only_memory_are_read_only(tmp_path):
    fixed = np.ones(4, np.float32)
    fixed.flags.writeable = False
    (tmp_path / "data").write_bytes(bytes(4096))
    for source in (fixed, np.memmap(tmp_path / "data", np.float32, "r"), np.frombuffer(bytes(16), np.float32), np.broadcast_to(np.float32(1), (4,))):
        array = vortex.asarray(source, "cpu")
        assert array.read_only and array.matrix(0, 2, 2).read_only if array.contiguous else array.read_only
        assert not np.asarray(array).flags.writeable and not array.numpy().flags.writeable
        assert not np.from_dlpack(array).flags.writeable
        with pytest.raises(BufferError):
            array.__dlpack__()  # a consumer that knows no read-only memory
    assert np.from_dlpack(vortex.asarray(np.ones(4, np.float32), "cpu")).flags.writeable


def _run(text: str) -> subprocess.CompletedProcess:
    import _vortex

    path = [str(pathlib.Path(vortex.__file__).parents[1]), str(pathlib.Path(_vortex.__file__).parent)]
    return subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=3600, env={**os.environ, "PYTHONPATH": ":".join(path), "PATH": ""})


def test_python_ends_while_a_daemon_thread_runs_kernels():
    done = _run("""
        import numpy as np, vortex, threading, time
        p = vortex.compile(source="kernel s(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return exp(x) * 2.0 }")
        p.s(np.ones(5, np.float32))
        for _ in range(3):
            threading.Thread(target=lambda: [p.s(np.ones(100000, np.float32)) for _ in range(10**6)], daemon=True).start()
        time.sleep(0.2)
        """)
    assert (done.returncode, done.stderr) == (0, "")


STRUCTS = """
struct V { a: f32, b: i64 }
@layout(aos)
struct W { flag: u8, at: V, hits: [i32; 2] }
kernel turned(x: &Tensor<V, [M, N]>) -> Tensor<V, [N, M]> { return x.transpose() }
kernel kept(x: &Tensor<W, [N]>) -> Tensor<W, [N]> { return x }
kernel made(n: &Tensor<f32, [N]>) -> Tensor<V, [N]> {
    let i = thread.global_id
    return V { a: n[i], b: i as i64 }
}
kernel two(x: &Tensor<V, [N]>, f: f32) -> (f32, Tensor<V, [N]>, Tensor<f32, [N]>) { return (f * 2.0, x, x.a * f) }
"""


_V = np.dtype([("a", np.float32), ("b", np.int64)], align=True)
_W = np.dtype([("flag", np.uint8), ("at", _V), ("hits", np.int32, 2)], align=True)


def _rows(random, *shape):
    rows = np.zeros(shape, _V)
    rows["a"], rows["b"] = random.standard_normal(shape), random.integers(-1 << 40, 1 << 40, shape)
    return rows


@pytest.mark.parametrize("check", [False, True])
def test_results_of_structs_come_from_the_interpreter_as_from_the_device(random, check, device):
    programs = [vortex.compile(source=STRUCTS, device=device), vortex.compile(source=STRUCTS, device="interpreter", check=check)]
    rows, flat = _rows(random, 5, 3), _rows(random, 7)
    packed = np.zeros(6, _W)
    packed["flag"], packed["at"], packed["hits"] = random.integers(0, 255, 6), _rows(random, 6), random.integers(-9, 9, (6, 2))
    for program in programs:
        turned = program.turned(rows)
        assert sorted(turned) == ["a", "b"]
        np.testing.assert_array_equal(turned["a"], rows["a"].T)
        np.testing.assert_array_equal(turned["b"], rows["b"].T)
        kept = program.kept(packed)
        np.testing.assert_array_equal(kept["flag"], packed["flag"])
        np.testing.assert_array_equal(kept["at"]["b"], packed["at"]["b"])
        for part in range(2):
            np.testing.assert_array_equal(kept["hits"][part], packed["hits"][:, part])
        number, same, scaled = program.two(flat, 1.5)
        assert number == 3
        np.testing.assert_array_equal(same["b"], flat["b"])
        np.testing.assert_array_equal(scaled, flat["a"] * np.float32(1.5))
        made = program.made(flat["a"].copy())
        np.testing.assert_array_equal(made["a"], flat["a"])
        np.testing.assert_array_equal(made["b"], np.arange(7))


def test_prepared_launches_of_numpy_arrays_give_numpy_arrays(random):
    program = vortex.compile(source="""kernel sums(x: &Tensor<f32, [N]>) -> (Tensor<f32, [N]>, f32) { return (x * 2.0, x.sum()) }""", device="cpu")
    x = random.integers(-9, 9, 50).astype(np.float32)
    run = program.sums.prepare(x)
    twice, total = run()
    assert type(twice) is np.ndarray and type(total) is np.ndarray and total.shape == ()
    x += 1
    assert run()[0] is twice, "the same results in every run"
    np.testing.assert_array_equal(twice, 2 * x)
    assert total == x.sum()
    assert all(isinstance(result, vortex.Array) for result in program.sums.prepare(vortex.asarray(x))())


@pytest.mark.parametrize("grid", [1.5, "a", object(), (1, 2.0)])
def test_numbers_of_blocks_are_integers(grid):
    program = vortex.compile(source="kernel k(x: &mut Tensor<f32, [N]>) { x[thread.global_id] = 1.0 }", device="cpu")
    with pytest.raises(ValueError, match="grid is one to three positive integers"):
        program.k.launch(grid=grid)


def test_a_text_is_no_path_and_a_program_tells_its_kernels():
    with pytest.raises(ValueError, match="given as source="):
        vortex.compile("kernel k(x: &mut Tensor<f32, [N]>) {\n    x[thread.global_id] = 1.0\n}\n")
    assert repr(vortex.compile(source="kernel k(x: &mut Tensor<f32, [N]>) { x[thread.global_id] = 1.0 }", device="cpu")) == "<vortex.Program of k on 'cpu'>"


def test_dims_are_sizes_of_dimensions_of_the_program(device):
    source = "kernel sums(x: &Tensor<f32, [N, D]>) -> Tensor<f32, [N]> { return sum(x, dim = 1) }"
    x = np.ones((3, 8), np.float32)
    np.testing.assert_array_equal(vortex.compile(source=source, device=device, dims={"D": np.int64(8)}).sums(x), [8] * 3)
    with pytest.raises(vortex.Error, match="8 columns, but 4 are required|extent 8 instead of 4"):
        vortex.compile(source=source, device=device, dims={"D": 4}).sums(x)
    text = "no dimension source; it has D, N"
    with pytest.raises(ValueError, match=text):  # not where the word stands, but which dimensions there are
        vortex.compile(source=f"// import: a source of\n{source}", dims={"D": 8, "source": 4})
    for dims, text in (({"K": 4}, "the program has no dimension K"), ({"D": -1}, "D is a size"), ({"D": True}, "D is a size")):
        with pytest.raises(ValueError, match=text):
            vortex.compile(source=source, dims=dims)


TOO_LARGE = [("f32", 1e300), ("f32", -1e39), ("f32", 10**39), ("f32", np.float64(1e300)), ("f16", 70000.0), ("f16", 10**6), ("f16", -65520), ("f16", np.int64(65520))]


@pytest.mark.parametrize("where", ["device", "interpreter"])
@pytest.mark.parametrize("kind, value", TOO_LARGE)
def test_numbers_that_would_become_infinite_are_refused(device, where, kind, value):
    source = f"kernel add(a: {kind}, x: &mut Tensor<{kind}, [N]>) {{ x[thread.global_id] += a }}"
    program = vortex.compile(source=source, device=device if where == "device" else where)
    x = np.zeros(3, {"f32": np.float32, "f16": np.float16}[kind])
    for _ in range(2):
        with pytest.raises((vortex.Error, OverflowError), match="argument .*'a'.*(cannot hold|does not fit)"):
            program.add(value, x)
    assert (x == 0).all()


@pytest.mark.parametrize("where", ["device", "interpreter"])
def test_numbers_of_a_float_parameter_are_rounded_to_the_nearest(device, where):
    source = "kernel add(a: f16, x: &mut Tensor<f16, [N]>) { x[thread.global_id] += a }"
    program = vortex.compile(source=source, device=device if where == "device" else where)
    for value in (2049, 2051, 65519, -65519.0, 0.1, np.float32(1 / 3), float("inf"), -np.inf, 1e-300):
        x = np.zeros(3, np.float16)
        program.add(value, x)
        np.testing.assert_array_equal(x, np.float16(value))
