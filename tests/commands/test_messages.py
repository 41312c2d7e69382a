"""Helps that name what to write instead."""
import json
import subprocess

import pytest

CASES = {
    "println": ('fn main() { println!("x") }', "call the function: `print(…)`"),
    "cuda position": ("kernel k(x: &mut Tensor<f32, [N]>) { x[threadIdx.x] = 1.0 }\nfn main() {}", "here this is `thread.id`"),
    "cuda barrier": ("kernel k(x: &mut Tensor<f32, [N]>) { __syncthreads() }\nfn main() {}", "here this is `sync_block()`"),
    "module": ("kernel k(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return np.exp(x) }", "functions belong to no module"),
    "two dimensions": ("kernel k(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [N, M]> { return x.transpose(-1, -2) }",
                       "`x.transpose()` exchanges the last two dimensions"),
    "shape in parts": ("kernel k(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [N, M]> { return x.reshape(N, M) }", "one list: `x.reshape([M, N])`"),
    "c type": ("fn f(x: float) -> f32 { return 1.0 }\nfn main() {}", "here this is `f32`"),
    "exchange": ("fn main() {\n    var a = 1\n    var b = 2\n    (a, b) = (b, a)\n}", "assign one by one"),
    "format": ('fn main() { print("{:.2}", 1.5) }', "a place for a value is `{}`"),
    "texts": ('fn main() { print("a" + "b") }', "`format("),
    "buffer of a copy": ("@launch(grid = [1], block = 64)\nkernel k(x: &Tensor<f32, [64]>) {\n    let t: Tensor<f32, [64]> @shared\n"
                         "    async_stage(&x[0..64], &t)\n}", "lend it: `&mut t`"),
    "negative": ("fn f(a: u32) -> i64 { return -(a + 1) }", "`-((a + 1) as i64)`"),
    "negative name": ("fn f(a: u32) -> i64 { return -a }", "`-(a as i64)`"),
    "long condition": ("fn f(number_of_rows: u32, number_of_columns: u32) {\n    if number_of_rows * number_of_columns + 1 {}\n}",
                       "`(number_of_rows * number_of_columns + 1) != 0`"),
    "long list": ("fn g(t: &Tensor<f32, [N]>) {}\nfn main() { g(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]) }",
                  "`Tensor.from_host(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])`"),
    "extent of an argument": ("kernel k(x: &mut Tensor<f32, [N]>, y: &Tensor<f32, [N]>) { x[thread.global_id] = y[0] }\n"
                              "fn main() {\n    var x: Tensor<f32, [7]> = zeros()\n    k(&mut x, &full(1.0))\n}", "error[E0327]: an extent of `full` is"),
    "forgotten let": ("fn main() {\n    paths = args()\n    print(paths.len())\n}", "declare it: `let paths = args()`"),
    "progression": ("fn main() {\n    let n = args().len()\n    for s in [n / 2, n / 4, ..., 1] {}\n}", "while s > 0"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_help_names_what_to_write(vortex, tmp_path, name):
    text, help = CASES[name]
    path = tmp_path / "wrong.vx"
    path.write_text(text)
    assert help in vortex("check", path, status=1).stderr


CHECKED = """\
kernel hash(x: &mut Tensor<u32, [N]>) {
    x[thread.global_id] *= 16777619
}

fn main() {
    var x: Tensor<u32, [4]> = full(4000000000)
    hash(&mut x)
}
"""


def test_a_failed_launch_shows_the_place_in_the_kernel(vortex, tmp_path):
    path = tmp_path / "hash.vx"
    path.write_text(CHECKED)
    errors = vortex("run", path, "--check", status=1).stderr
    assert "hash.vx:7:5" in errors and "raised here" in errors and "2 |     x[thread.global_id] *= 16777619" in errors
    assert "@unchecked(overflow)" in errors


def test_a_kernel_that_cannot_be_built_names_the_place(vortex, tmp_path):
    path = tmp_path / "total.vx"
    path.write_text("kernel total(x: &Tensor<f64, [N]>) -> f64 reduce(add) {\n    return x[thread.global_id]\n}\n")
    assert "total.vx:2:12" in vortex("build", path, "-o", tmp_path, status=1).stderr


def test_a_full_disk_behind_the_output_is_named(program, tmp_path):
    with open("/dev/full", "w") as full:
        done = subprocess.run([program, "explain", "E0304"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "No space left" in done.stderr


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["run", "--help"], ["hvm", "--help"], ["hvm", "--version"]])
def test_a_full_disk_behind_the_help_is_an_error(program, words):
    with open("/dev/full", "w") as full:
        done = subprocess.run([program, *words], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "cannot write" in done.stderr


def test_a_folder_that_cannot_be_made_is_named_with_the_cause(vortex, tmp_path):
    path = tmp_path / "k.vx"
    path.write_text("kernel k(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x * 2.0 }\n")
    assert f"cannot create {path}/out: Not a directory" in vortex("build", path, "-o", path / "out", status=1).stderr


def test_a_dimension_has_one_value(vortex, tmp_path):
    path = tmp_path / "k.vx"
    path.write_text("kernel k(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x * 2.0 }\n")
    done = vortex("build", path, "--dim", "N=5", "--dim", "N=6", "-o", tmp_path, status=1)
    assert done.stderr.startswith("error[E0805]: --dim N=5 and --dim N=6")
    vortex("build", path, "--dim", "N=5", "--dim", "N=5", "-o", tmp_path)


def test_what_is_built_is_told_as_json(vortex, tmp_path):
    (tmp_path / "k.vx").write_text("kernel k(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> { return x * 2.0 }\n")
    [plain] = json.loads(vortex("build", tmp_path / "k.vx", "-o", tmp_path, "--json").stdout)
    [header] = json.loads(vortex("build", tmp_path / "k.vx", "-o", tmp_path, "--json", "--header").stdout)
    assert plain["kernel"] == header["kernel"] == "k" and header["files"] == [str(tmp_path / "k.k.hpp")]


@pytest.mark.parametrize("id", ["E0450", "e0450"])
def test_explains_ids_in_either_case(vortex, id):
    assert vortex("explain", id).stdout.startswith("E0450: ")


def test_prints_its_version(vortex):
    assert vortex("--version").stdout.startswith("vortex 0.")


@pytest.mark.parametrize("words, message", [
    (["frobnicate"], "no command `frobnicate`; there are run, build"),
    (["biuld", "x.vx"], "no command `biuld`; did you mean `build`?"),
    (["check", "--frobnicate", "x.vx"], "`vortex check` has no option --frobnicate; --help"),
    (["run", "--devcie", "cpu", "x.vx"], "`vortex run` has no option --devcie; did you mean `--device`?"),
    (["check", "x.vx", "--trget=sm_90"], "no option --trget; did you mean `--target`?"),
    (["run"], "file is required"),
    ([], "subcommand is required"),
    (["run", "x.vx", "--seed", "-1"], "--seed: `-1` is not a number from 0"),
    (["run", "x.vx", "--seed", "1e3"], "--seed: `1e3` is not a number from 0"),
    (["run", "x.vx", "--max-steps", "99999999999999999999"], "--max-steps: `99999999999999999999` is not a number from 0"),
    (["run", "x.vx", "--max-steps", "-1"], "--max-steps"),
    (["run", "x.vx", "--max-steps", "5"], "--max-steps requires --check"),
    (["bench", "x.vx", "--samples", "0"], "--samples"),
    (["bench", "x.vx", "--dim", "N"], "--dim"),
    (["run", "x.vx", "--kernel", "k"], "--kernel is an option of Metal source, which `x.vx` is not"),
    (["run", "x.vx", "--grid", "3"], "--grid is an option of Metal source"),
    (["build", "x.vx", "-I", "."], "-I is an option of Metal source"),
    (["check", "x.vx", "y.vx", "--buffer", "0=f32[1]"], "--buffer is an option of Metal source"),
    (["run", "x.metal", "--deny", "races"], "--deny is an option of Vortex programs, which `x.metal` is not"),
    (["build", "x.metal", "--dim", "N=3"], "--dim is an option of Vortex programs"),
    (["build", "x.metal", "--header"], "--header is an option of Vortex programs"),
    (["check", "x.metal", "--emit", "flow"], "--emit is an option of Vortex programs"),
    (["run", "x.metal", "--", "3"], "arguments behind `--`"),
    (["run", "x.vx", "--deny", "races", "--allow", "races"], "--allow"),
    (["build", "x.vx", "--kernel", ""], "--kernel: a name is missing"),
    (["build", "x.vx", "--emit", "vx", "--header"], "excludes"),
    (["build", "x.vx", "--header", "--memory"], "excludes"),
    (["fmt", "x.vx", "--deny", "races"], "--deny"),
    (["build", "x.vx", "--target", "sm_90", "--cpu", "znver3"], "--target sm_90 makes none"),
])
def test_wrong_command_lines_are_errors_also_as_json(vortex, words, message):
    told = vortex(*words, status=2)
    assert told.stdout == "" and told.stderr.startswith("error[E0810]: ") and message in told.stderr, told.stderr
    [error] = json.loads(vortex("--json", *words, status=2).stderr)
    assert error["id"] == "E0810" and message in error["message"]


COUNTS = """
fn main() {
    let v = vec![0u8; 1 << 33 >> 13]
    assert_eq(v.len(), 1048576)
    let n: usize = 3
    print(n + (1 << 4), n & (8 | 2), (1 << 3) as f32, (1 + (1 << 3)) as f32)
}
"""


def test_shifts_of_plain_numbers_take_the_type_that_is_needed(vortex, tmp_path):
    path = tmp_path / "shifts.vx"
    path.write_text(COUNTS)
    assert vortex("run", path).stdout == "19 2 8.0 9.0\n"


def test_every_error_is_json_on_the_standard_error(vortex, tmp_path):
    done = vortex("check", tmp_path / "none.vx", "--json", status=1)
    assert json.loads(done.stderr)[0]["id"] == "E0801" and done.stdout == ""


def test_tests_are_reported_as_json(vortex, tmp_path):
    path = tmp_path / "tests.vx"
    path.write_text("@test\nfn good() {\n    assert(true)\n}\n\n@test\nfn bad() {\n    assert(false)\n}\n")
    done = vortex("test", path, "--json", status=1)
    assert json.loads(done.stdout) == [{"test": "good", "passed": True}, {"test": "bad", "passed": False}]
    assert json.loads(done.stderr)[0]["id"] == "E0704"
