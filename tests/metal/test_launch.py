"""Launches of Metal kernels from the command line and from JSON, and what is wrong with them."""
import json
import shutil

import numpy as np
import pytest

SAXPY = """#include <metal_stdlib>
using namespace metal;
kernel void saxpy(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant float& a [[buffer(2)]],
                  uint i [[thread_position_in_grid]]) {
  y[i] = a * x[i] + y[i];
}
"""


@pytest.fixture
def saxpy(tmp_path):
    path = tmp_path / "saxpy.metal"
    path.write_text(SAXPY)
    return path


def test_npy_files_go_in_and_out(vortex, device, saxpy, tmp_path):
    n = 1003
    rng = np.random.default_rng()
    x, y = rng.standard_normal((2, n)).astype("f4")
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    vortex("run", saxpy, "--grid", n, "--block", 64, "--buffer", "0=x.npy", "--buffer", "1=y.npy", "--buffer", "2=f32:3",
           "--save", "1=out.npy", "--device", device, cwd=tmp_path)
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), 3 * x + y, rtol=1e-5, atol=1e-6)


def test_macros_may_have_any_name(vortex, device, tmp_path):
    path = tmp_path / "k.metal"
    path.write_text("#include <metal_stdlib>\nkernel void k(device T* y [[buffer(0)]], uint i [[thread_position_in_grid]]) { y[i] = metal::vec<T, 2>(N, HALF).y + x(i); }\n")
    macros = [word for each in ("T=float", "N=3", "HALF=0.5h", "x(v)=(v*v)", "V", "S=2", "A=1") for word in ("-D", each)]
    assert vortex("run", path, *macros, "--grid", 3, "--buffer", "0=f32[3]", "--print", 0, "--device", device).stdout == "0.5 1.5 4.5\n"


def test_a_launch_can_be_a_json_file(vortex, device, saxpy, tmp_path):
    (tmp_path / "launch.json").write_text(json.dumps({
        "kernel": "saxpy", "groups": [2, 1, 1], "block": [2], "buffers": {"0": "f32:1,2,3,4", "1": "f32[4]", "2": "f32:2"}, "print": [1]}))
    done = vortex("run", saxpy, "--launch", tmp_path / "launch.json", "--device", device)
    assert done.stdout == "2 4 6 8\n"


def test_the_command_line_wins_over_the_file(vortex, saxpy, tmp_path):
    (tmp_path / "launch.json").write_text(json.dumps({"grid": 4, "block": 2, "buffers": {"0": "f32:1,2,3,4", "1": "f32[4]", "2": "f32:2"}}))
    done = vortex("run", saxpy, "--launch", tmp_path / "launch.json", "--grid", 2, "--print", 1)
    assert done.stdout == "2 4 0 0\n"
    done = vortex("run", saxpy, "--launch", tmp_path / "launch.json", "--buffer", "2=f32:3", "--print", 1)
    assert done.stdout == "3 6 9 12\n"


def test_without_sizes_one_thread_runs(vortex, device, saxpy):
    buffers = ["--buffer", "0=f32:1,2,3", "--buffer", "1=f32[3]", "--buffer", "2=f32:2", "--print", 1, "--device", device]
    assert vortex("run", saxpy, *buffers).stdout == "2 0 0\n"
    assert vortex("run", saxpy, "--grid", 2, *buffers).stdout == vortex("run", saxpy, "--groups", 2, *buffers).stdout == "2 4 0\n"
    assert vortex("run", saxpy, "--block", 2, *buffers).stdout == "2 0 0\n"


GOOD = ["--grid", "4", "--block", "2", "--buffer", "0=f32:1,2,3,4", "--buffer", "1=f32[4]", "--buffer", "2=f32:2"]
WRONG = [
    ("no_buffer", ["--grid", "4", "--buffer", "0=f32[4]"], "[[buffer(1)]] is not given"),
    ("bad_number", [*GOOD, "--buffer", "2=f32:x"], "`x` is no f32"),
    ("number_of_a_byte", [*GOOD, "--buffer", "2=u8:300"], "`300` does not fit u8"),
    ("negative_byte", [*GOOD, "--buffer", "2=u8:-1"], "`-1` does not fit u8"),
    ("number_of_an_i8", [*GOOD, "--buffer", "2=i8:-128,127,128"], "`128` does not fit i8"),
    ("number_of_an_i32", [*GOOD, "--buffer", "2=i32:3000000000"], "`3000000000` does not fit i32"),
    ("negative_i32", [*GOOD, "--buffer", "2=i32:-2147483649"], "`-2147483649` does not fit i32"),
    ("number_of_a_u32", [*GOOD, "--buffer", "2=u32:4294967296"], "`4294967296` does not fit u32"),
    ("number_of_an_i64", [*GOOD, "--buffer", "2=i64:9223372036854775808"], "`9223372036854775808` does not fit i64"),
    ("number_of_a_u64", [*GOOD, "--buffer", "2=u64:18446744073709551616"], "`18446744073709551616` does not fit u64"),
    ("negative_u64", [*GOOD, "--buffer", "2=u64: -1"], "` -1` is no u64"),
    ("number_of_a_bool", [*GOOD, "--buffer", "2=bool:2"], "`2` does not fit bool"),
    ("number_of_an_f32", [*GOOD, "--buffer", "2=f32:1e50"], "`1e50` does not fit f32"),
    ("number_of_an_f16", [*GOOD, "--buffer", "2=f16:-70000"], "`-70000` does not fit f16"),
    ("number_of_an_f64", [*GOOD, "--buffer", "2=f64:1e400"], "`1e400` does not fit f64"),
    ("number_of_an_f8", [*GOOD, "--buffer", "2=f8e4m3:1000"], "`1000` does not fit f8e4m3"),
    ("large_buffer", [*GOOD, "--buffer", "2=f32[100000000000]"], "`f32[100000000000]` is too large: a buffer has at most 4294967296 elements"),
    ("larger_buffer", [*GOOD, "--buffer", "2=f32[99999999999999999999]"], "`f32[99999999999999999999]` is too large"),
    ("large_grid", [*GOOD, "--grid", "5000000000"], "--grid `5000000000` is too large: an extent is at most 2147483647"),
    ("larger_grid", [*GOOD, "--grid", "99999999999999999999"], "--grid `99999999999999999999` is too large"),
    ("negative_grid", [*GOOD, "--grid", "-1"], "--grid `-1` is not X,Y,Z"),
    ("bad_type", [*GOOD, "--buffer", "2=float:1"], "neither TYPE:VALUES"),
    ("bad_index", [*GOOD, "--buffer", "two=f32:1"], "is not INDEX=VALUE"),
    ("grid_and_groups", [*GOOD, "--groups", "2"], "give one of them"),
    ("empty_grid", [*GOOD, "--grid", "0"], "the grid is empty"),
    ("empty_grid_without_a_block", [*GOOD[4:], "--grid", "0"], "the grid is empty"),
    ("four_extents", [*GOOD, "--grid", "1,1,1,1"], "at most three"),
    ("large_group", [*GOOD, "--block", "32,33"], "does not fit"),
    ("odd_threadgroup_memory", [*GOOD, "--threadgroup", "0=20"], "multiple of 16"),
    ("bad_constant", [*GOOD, "--constant", "0=yes"], "is a number, true or false"),
    ("buffer_without_a_parameter", [*GOOD, "--buffer", "7=f32:1"], "the kernel `saxpy` has no [[buffer(7)]]"),
    ("buffer_that_metal_has_not", [*GOOD, "--buffer", "31=f32:1"], "has no [[buffer(31)]]"),
    ("threadgroup_memory_without_a_parameter", [*GOOD, "--threadgroup", "5=16"], "has no [[threadgroup(5)]]"),
    ("constant_that_is_none", [*GOOD, "--constant", "9=1"], "the program has no [[function_constant(9)]]"),
    ("buffer_twice", [*GOOD, "--buffer", "2=f32:3"], "--buffer 2 is given twice"),
    ("threadgroup_memory_twice", [*GOOD, "--threadgroup", "0=16", "--threadgroup", "0=16"], "--threadgroup 0 is given twice"),
    ("constant_twice", [*GOOD, "--constant", "0=1", "--constant", "0=2"], "--constant 0 is given twice"),
    ("save_twice", [*GOOD, "--save", "1=a.npy", "--save", "1=b.npy"], "--save 1 is given twice"),
    ("print_of_nothing", [*GOOD, "--print", "7"], "no such buffer"),
]


@pytest.mark.parametrize("name, options, message", WRONG, ids=[each[0] for each in WRONG])
def test_wrong_launch_is_refused(vortex, saxpy, name, options, message):
    done = vortex("run", saxpy, *options, status=1)
    assert "error[E0904]" in done.stderr and message in done.stderr


BIASED = """#include <metal_stdlib>
using namespace metal;
constant bool has_bias [[function_constant(0)]];
kernel void biased(device const float* x [[buffer(0)]], device const float* bias [[buffer(1), function_constant(has_bias)]],
                   device float* y [[buffer(2)]], device const int* unused [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  float v = 2 * x[i];
  if (has_bias) v += bias[i];
  y[i] = v;
}
"""


@pytest.mark.parametrize("checked", [[], ["--check"]], ids=["device", "check"])
def test_buffers_that_are_not_accessed_need_not_be_given(vortex, device, tmp_path, checked):
    path = tmp_path / "biased.metal"
    path.write_text(BIASED)
    launch = ["--grid", 3, "--buffer", "0=f32:1,2,3", "--buffer", "2=f32:9,9,9", "--print", 2, "--device", device, *checked]
    assert vortex("run", path, *launch, "--constant", "0=false").stdout == "2 4 6\n"
    assert vortex("run", path, *launch, "--constant", "0=true", "--buffer", "1=f32:5,6,7").stdout == "7 10 13\n"
    # A buffer that is given and not accessed stays as it is.
    assert vortex("run", path, *launch, "--constant", "0=false", "--buffer", "3=i32:4,5", "--print", 3).stdout == "2 4 6\n4 5\n"
    done = vortex("run", path, *launch, "--constant", "0=true", status=1)
    assert "error[E0904]" in done.stderr and "[[buffer(1)]] is not given" in done.stderr


def test_the_interpreter_is_among_the_devices_that_are_named(vortex, saxpy):
    done = vortex("run", saxpy, *GOOD, "--device", "nothing", status=1)
    assert "error[E0802]" in done.stderr and "`interpreter`" in done.stderr


def test_an_unknown_kernel_is_named_with_those_there_are(vortex, saxpy):
    done = vortex("run", saxpy, *GOOD, "--kernel", "daxpy", status=1)
    assert "error[E0807]" in done.stderr and "`saxpy`" in done.stderr


def test_access_past_the_end_of_a_buffer_is_found(vortex, saxpy):
    done = vortex("run", saxpy, *GOOD, "--grid", "5", "--check", status=1)
    assert "error[E0601]" in done.stderr and "saxpy.metal:5" in done.stderr


def test_races_of_threadgroup_memory_are_found(vortex, tmp_path):
    path = tmp_path / "race.metal"
    path.write_text("kernel void k(device int* out [[buffer(0)]], uint i [[thread_position_in_grid]]) {\n"
                    "  threadgroup int t[4];\n  t[i] = i;\n  out[i] = t[3 - i];\n}\n")
    done = vortex("run", path, "--grid", 4, "--block", 4, "--buffer", "0=i32[4]", "--check", status=1)
    assert "error[E06" in done.stderr and "of `t`" in done.stderr and "race.metal" in done.stderr


def test_a_program_without_its_reader_says_so(program, tmp_path, saxpy):
    import subprocess
    (tmp_path / "bin").mkdir()
    shutil.copy(program, tmp_path / "bin/vortex")
    done = subprocess.run([tmp_path / "bin/vortex", "check", saxpy], capture_output=True, text=True)
    assert done.returncode == 1 and "error[E0903]" in done.stderr and "libvortex_msl.so" in done.stderr


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_build_writes_code_and_artifact(vortex, saxpy, tmp_path, target):
    vortex("build", saxpy, "--target", target, "-o", tmp_path / "out")
    files = {path.suffix for path in (tmp_path / "out").iterdir()}
    assert {".vxk", ".o" if target == "cpu" else ".ptx"} <= files


@pytest.mark.parametrize("where", [[], ["--check"]], ids=["device", "check"])
def test_threadgroups_at_the_edges_are_as_large_as_what_is_left(vortex, device, tmp_path, where):
    path = tmp_path / "k.metal"
    path.write_text("kernel void k(device uint* out [[buffer(0)]], uint2 at [[thread_position_in_grid]], uint2 size [[threads_per_threadgroup]],\n"
                    "              uint2 whole [[dispatch_threads_per_threadgroup]], uint2 grid [[threads_per_grid]]) {\n"
                    "  out[at.y * grid.x + at.x] = size.x + 10 * size.y + 100 * whole.x + 1000 * whole.y;\n}\n")
    vortex("run", path, "--grid", "10,5", "--block", "4,3", "--buffer", "0=u32[50]", "--save", "0=out.npy", "--device", device, *where, cwd=tmp_path)
    width, height = np.array([4] * 8 + [2] * 2), np.array([3] * 3 + [2] * 2)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy").reshape(5, 10), width + 10 * height[:, None] + 3400)


def test_buffers_of_eight_bit_floats_are_written_and_printed_as_numbers(vortex, device, tmp_path):
    path = tmp_path / "copy.metal"
    path.write_text("#include <metal_stdlib>\nusing namespace metal;\n"
                    "kernel void copy(device const uchar* x [[buffer(0)]], device uchar* y [[buffer(1)]],"
                    " uint i [[thread_position_in_grid]]) { y[i] = x[i]; }\n")
    for kind in ("f8e4m3", "f8e5m2"):
        done = vortex("run", path, "--grid", 4, "--buffer", f"0={kind}:1,-2.5,0.25,96", "--buffer", f"1={kind}[4]", "--print", 1,
                      "--device", device)
        assert done.stdout == "1 -2.5 0.25 96\n"


def test_texts_and_times_of_the_compiler_are_printed(vortex, saxpy, tmp_path):
    launch = [saxpy, "--grid", 2, "--buffer", "0=f32:1,2", "--buffer", "1=f32:1,1", "--buffer", "2=f32:3", "--print", 1]
    plain = vortex("run", *launch)
    done = vortex("run", *launch, "--dump-after", "irgen,assembly", "--time", "--repro", tmp_path / "saxpy.mlir")
    assert done.stdout == plain.stdout
    assert "// ---- saxpy after irgen\n" in done.stderr and "// ---- saxpy after assembly\n" in done.stderr
    assert "after schedule" not in done.stderr and " ms\n" in done.stderr
    assert "vx.kernel" in (tmp_path / "saxpy.mlir").read_text()
    assert "// ---- saxpy after irgen\n" in vortex("run", *launch, "--check", "--dump-after", "all").stderr
    built = vortex("build", saxpy, "--dump-after", "schedule", "-o", tmp_path / "out")
    assert built.stderr.startswith("// ---- saxpy after schedule\n")


EXTREMES = {"u8": (0, 255), "i8": (-128, 127), "i16": (-32768, 32767), "i32": (-(1 << 31), (1 << 31) - 1), "u32": (0, (1 << 32) - 1),
            "i64": (-(1 << 63), (1 << 63) - 1), "u64": (0, (1 << 64) - 1), "bool": (0, 1)}


@pytest.mark.parametrize("kind", EXTREMES)
def test_the_least_and_the_largest_number_of_a_type_fit(vortex, tmp_path, kind):
    path = tmp_path / "k.metal"
    path.write_text("kernel void k(device uchar* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[0] = x[0]; }\n")
    least, most = EXTREMES[kind]
    done = vortex("run", path, "--grid", 1, "--buffer", f"0={kind}:{least},{most}", "--save", "0=x.npy", cwd=tmp_path)
    assert done.stderr == "" and np.load(tmp_path / "x.npy").tolist() == [least, most]


def test_the_largest_and_infinite_floats_fit(vortex, tmp_path):
    path = tmp_path / "k.metal"
    path.write_text("kernel void k(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[0] = x[0]; }\n")
    vortex("run", path, "--grid", 1, "--buffer", "0=f32:3.4028235e38,-inf,nan,1e-60", "--save", "0=x.npy", cwd=tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), np.array([3.4028235e38, -np.inf, np.nan, 0], np.float32))
