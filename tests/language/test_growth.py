"""What a check costs grows with the program as n log n at most: of generated programs, in processor time, which a busy machine changes little."""
import os
import subprocess

import pytest

HEAD = "kernel k(x: &Tensor<f32, [N]>, y: &mut Tensor<f32, [N]>) {\n"
BLOCKS = "@launch(grid = [ceil_div(N, 256)], block = 256)\n" + HEAD
END = "    y[thread.global_id] = a\n}\n"
GUARDED_END = "    if thread.global_id < N { y[thread.global_id] = a }\n}\n"
SHARED = "    let t: Tensor<f32, [256]> @shared\n    let i = thread.local_id\n    t[i] = 0.0\n    sync_block()\n    var a: f32 = 0.0\n"
TIMES = 8
MINUTE = 60  # of processor time: what grows beyond all bounds takes more on any machine


def lines(count, line):
    return "".join(line.replace("#", str(i)) for i in range(count))


def statements(n):
    return HEAD + "    var a: f32 = x[thread.global_id]\n" + lines(n, "    a = a * 1.5 + #.0\n") + END


def updates(n):
    return HEAD + lines(n, "    y[thread.global_id] += #.0\n") + "}\n"


def lets(n):
    names = "".join(f"    let v{i + 1} = v{i} * 1.5 + v{i // 2}\n" for i in range(n))
    return HEAD + "    let v0 = x[thread.global_id]\n" + names + END.replace("= a", f"= v{n}")


def integers(n):
    return HEAD + "    var u: u32 = 1\n    var a: f32 = 0.0\n" + lines(n, "    u = (u * 3 + #) % 1000\n") + "    a = u as f32\n" + END


def branches(n):
    return HEAD + "    var a: f32 = x[thread.global_id]\n" + lines(n, "    if a > #.0 { a *= 2.0 } else { a += 1.0 }\n") + END


def jumps(n):
    body = lines(n, "        if a > #.5 { continue }\n        if a < -#.5 { break }\n        a += x[thread.global_id]\n")
    return HEAD + "    var a: f32 = 0.0\n    for i in 0..100 {\n" + body + "    }\n" + END


def reads(n):
    return HEAD + "    var a: f32 = 0.0\n" + lines(n, "    a += x[thread.global_id + #]\n") + END


def shared_reads(n):
    return BLOCKS + SHARED + lines(n, "    a += t[(i + #) % 256]\n") + GUARDED_END


def barriers(n):
    return BLOCKS + SHARED + lines(n, "    a += t[255 - i]\n    sync_block()\n    t[i] = a\n    sync_block()\n") + GUARDED_END


def writes(n):
    guarded = lines(n, f"    if thread.global_id * {n} + # < N {{ y[thread.global_id * {n} + #] = #.0 }}\n")
    return BLOCKS + guarded + "}\n"


def calls(n):
    callee = "fn f(a: f32, b: f32) -> f32 {\n    if a > b { return a * 2.0 }\n    return a + b\n}\n"
    return callee + HEAD + "    var a: f32 = x[thread.global_id]\n" + lines(n, "    a = f(a, #.0)\n") + END


def functions(n):
    return lines(n, "fn f#(a: i32) -> i32 {\n    return a + #\n}\n") + "fn main() {\n    var a = 1\n" + lines(n, "    a = f#(a)\n") + "}\n"


def whole_tensors(n):
    body = "".join(f"    let v{i + 1} = v{i} * 1.5 + v{i // 2}\n" for i in range(n))
    return "kernel k(x: &Tensor<f32, [M, N]>) -> Tensor<f32, [M, N]> {\n    let v0 = x * 2.0\n" + body + f"    return v{n}\n}}\n"


def chains(n):
    return "kernel k(x: &Tensor<f32, [N]>) -> Tensor<f32, [N]> {\n    var a = x * 1.5\n" + lines(n, "    a = a * x + #.0\n") + "    return a\n}\n"


def stored(n):
    return "kernel k(x: &Tensor<f32, [N]>, y: &mut Tensor<f32, [N]>) {\n" + lines(n, "    y = y * x + #.0\n") + "}\n"


def nested(depth, inside="", start=HEAD + "    var a: f32 = 0.0\n", end=END):
    loops = "".join(f"for i{i} in 0..4 {{\n" for i in range(depth))
    return start + loops + "a += x[thread.global_id]\n" + inside + "}\n" * depth + end


def nested_barriers(depth):
    return nested(depth, "t[i] = a\nsync_block()\na += t[255 - i]\nsync_block()\n", BLOCKS + SHARED, GUARDED_END)


def unknown_names(n):
    return lines(n, "fn f#() -> i32 {\n    return y#\n}\n")


def unknown_names_of_generics(n):
    return lines(n, "fn f#<T>(x: T) -> T {\n    return y#\n}\n")


def unknown_fields(n):
    return "struct S {\n" + lines(400, "    a#: i32,\n") + "}\n" + lines(n, "fn f#(s: &S) -> i32 {\n    return s.b#\n}\n")


def processor_seconds(program, path, text, status=0, command=("check",)):
    path.write_text(text)
    best = float("inf")
    for _ in range(3):
        with open(os.devnull, "wb") as nowhere:
            process = subprocess.Popen([program, *command, path], stdout=nowhere, stderr=nowhere)
            _, ended, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(ended)
        assert process.returncode == status
        best = min(best, used.ru_utime)
    return best


@pytest.mark.parametrize("make, small", [
    (statements, 625), (lets, 625), (updates, 250), (integers, 250), (branches, 250), (reads, 125), (shared_reads, 125), (barriers, 250), (writes, 125),
    (calls, 25), (functions, 250), (whole_tensors, 250)], ids=lambda value: getattr(value, "__name__", value))
def test_the_time_of_a_check_does_not_grow_with_the_square(program, tmp_path, make, small):
    path = tmp_path / "program.vx"
    nothing = processor_seconds(program, path, "fn main() {}\n")
    first, last = (processor_seconds(program, path, make(n)) - nothing for n in (small, small * TIMES))
    # n log n is 12 times as much; the square, 64 times. What takes less than can be measured is allowed.
    assert last < TIMES * 3 * max(first, 0.02), (first, last)


@pytest.mark.parametrize("make", [whole_tensors, chains, stored], ids=lambda make: make.__name__)
@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_the_time_of_a_plan_does_not_grow_with_the_square(program, tmp_path, make, target):
    path, command = tmp_path / "program.vx", ("build", "--no-cache", "--target", target, "--emit", "ir")
    first, last = (processor_seconds(program, path, make(n), command=command) for n in (100, 100 * TIMES))
    assert last < TIMES * 3 * max(first, 0.02), (first, last)


@pytest.mark.parametrize("make", [unknown_names, unknown_names_of_generics, unknown_fields], ids=lambda make: make.__name__)
def test_thousands_of_errors_end(program, tmp_path, make):
    assert processor_seconds(program, tmp_path / "program.vx", make(5000), 1) < MINUTE


@pytest.mark.parametrize("make, size", [(nested, 6), (nested, 64), (nested_barriers, 6), (nested_barriers, 12), (jumps, 240)],
                         ids=lambda value: getattr(value, "__name__", value))
def test_deep_nests_and_many_jumps_are_checked(program, tmp_path, make, size):
    assert processor_seconds(program, tmp_path / "program.vx", make(size)) < MINUTE
