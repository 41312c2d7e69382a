"""Loops around tensors with trip counts that nobody wants: none, negative ones, more than numbers hold; refused or right, never skipped."""
import pytest

KERNELS = """kernel power(y: &mut Tensor<i32, [N, N]>, x: &Tensor<i32, [N, N]>, a: i64, b: i64) {
    for i in a..b { y = y @ x }
}
kernel rounds(x: &mut Tensor<i32, [N]>, a: i64, b: i64) {
    for s in range(a, b, STEP) {
        @parallel for i in 0..N { x[i] = x[i] + 1 }
    }
}
kernel one_grid(x: &mut Tensor<i32, [N]>, a: i64, b: i64) {
    @parallel for i in range(a, b, STEP) { if i >= 0 && i < N as i64 { x[i] = 7 } }
}
fn main() {
    %s
}
"""
LEAST, MOST = "-9223372036854775807 - 1", "9223372036854775807"
FAR = "9223372036854775810"  # 2^63 + 2
POWER = "var y = full::<i32>(1, [3, 3])\n    let x = full::<i32>(1, [3, 3])\n    power(&mut y, &x, %s, %s)\n    print(y.to_host()[4])"
VECTOR = "var x = zeros::<i32>([10])\n    %s(&mut x, %s, %s)\n    print(x.to_host()[9])  // %s"


@pytest.fixture(params=["cpu", "interpreter"])
def place(request):
    return request.param


def run(vortex, tmp_path, body, device, kind="i64", **options):
    program = tmp_path / "loops.vx"
    step = body.partition("// ")[2] or "1"  # known at compile time
    program.write_text((KERNELS.replace("i64", kind) % body).replace("STEP", step))
    return vortex("run", program, "--device", device, **options)


@pytest.mark.parametrize("body, result", [
    (POWER % (0, 0), "1"), (POWER % (0, 4), "81"), (POWER % (4, 0), "1"), (POWER % (MOST, LEAST), "1"),
    (POWER % ("9223372036854775804", MOST), "27"), (POWER % (LEAST, "-9223372036854775807"), "3"),
    (VECTOR % ("rounds", 0, 0, 1), "0"), (VECTOR % ("rounds", 3, -3, 1), "0"), (VECTOR % ("rounds", MOST, LEAST, 5), "0"),
    (VECTOR % ("rounds", 0, MOST, "4611686018427387904"), "2"), (VECTOR % ("rounds", LEAST, MOST, "9223372036854775807"), "3"),
    (VECTOR % ("rounds", "9223372036854775800", MOST, 3), "3"), (VECTOR % ("rounds", 0, 10, 4), "3"),
    (VECTOR % ("one_grid", -20, 20, 1), "7"), (VECTOR % ("one_grid", 20, -20, 1), "0"), (VECTOR % ("one_grid", MOST, LEAST, 1), "0"),
    (VECTOR % ("one_grid", 0, MOST, "4611686018427387904"), "0"), (VECTOR % ("one_grid", -1, 20, 5), "7"),
])
def test_rounds_are_those_that_there_are(vortex, tmp_path, place, body, result):
    assert run(vortex, tmp_path, body, place).stdout == result + "\n"


@pytest.mark.parametrize("body", [POWER % (LEAST, MOST), POWER % (0, MOST), POWER % (-1, "9223372036854775806"),
                                  VECTOR % ("rounds", LEAST, MOST, 1), VECTOR % ("rounds", LEAST, MOST, 1000)])
def test_more_rounds_than_a_launch_has_are_refused_by_name(vortex, tmp_path, body):
    done = run(vortex, tmp_path, body, "cpu", status=1)
    assert "comes to more than 1048576 grids in one launch" in done.stderr and "loops.vx:" in done.stderr


@pytest.mark.parametrize("begin, end, step", [(LEAST, MOST, 1), (LEAST, 10, 1), (-5, "9223372036854775803", 1), (LEAST, MOST, "4611686018427387904"),
                                              (0, MOST, 1), (0, "9223372036854775000", 3)])
def test_more_iterations_than_a_grid_has_are_refused(vortex, tmp_path, begin, end, step):
    done = run(vortex, tmp_path, VECTOR % ("one_grid", begin, end, step), "cpu", status=1)
    assert "error[E0712]" in done.stderr and "has an impossible grid of" in done.stderr, done.stderr


@pytest.mark.parametrize("body, result", [
    (POWER % (0, 0), "1"), (POWER % (0, 4), "81"), (POWER % (4, 0), "1"), (POWER % (FAR, 3), "1"),
    (POWER % ("9223372036854775804", MOST), "27"), (VECTOR % ("rounds", 0, 0, 1), "0"), (VECTOR % ("rounds", 3, 1, 1), "0"),
    (VECTOR % ("rounds", FAR, 7, 5), "0"), (VECTOR % ("rounds", 0, MOST, "4611686018427387904"), "2"), (VECTOR % ("rounds", 0, 10, 4), "3"),
    (VECTOR % ("one_grid", 0, 20, 1), "7"), (VECTOR % ("one_grid", 20, 3, 1), "0"), (VECTOR % ("one_grid", FAR, 3, 1), "0"),
    (VECTOR % ("one_grid", 4, 20, 5), "7"),
])
def test_rounds_of_unsigned_counters_are_those_that_there_are(vortex, tmp_path, place, body, result):
    assert run(vortex, tmp_path, body, place, "u64").stdout == result + "\n"


@pytest.mark.parametrize("body", [POWER % (0, FAR), POWER % (5, FAR), POWER % (FAR, "9223372036854775812"), VECTOR % ("rounds", 3, FAR, 1),
                                  VECTOR % ("rounds", 0, FAR, 1000)])
def test_rounds_up_to_a_far_end_are_refused_by_name(vortex, tmp_path, body):
    done = run(vortex, tmp_path, body, "cpu", "u64", status=1)
    assert "comes to more than 1048576 grids in one launch" in done.stderr and "loops.vx:" in done.stderr


@pytest.mark.parametrize("begin, end, step", [(0, FAR, 1), (7, FAR, 1), (FAR, "9223372036854775812", 1), (0, FAR, 3)])
def test_more_iterations_of_unsigned_counters_than_a_grid_has_are_refused(vortex, tmp_path, begin, end, step):
    done = run(vortex, tmp_path, VECTOR % ("one_grid", begin, end, step), "cpu", "u64", status=1)
    assert "error[E0712]" in done.stderr and "has an impossible grid of" in done.stderr, done.stderr


def test_rounds_over_nothing_end(vortex, tmp_path, place):
    body = ("var y = zeros::<i32>([0, 0])\n    let x = zeros::<i32>([0, 0])\n    power(&mut y, &x, 0, 5)\n    var v = zeros::<i32>([0])\n"
            "    rounds(&mut v, 0, 5)\n    one_grid(&mut v, 0, 5)\n    print(\"ended\")")
    assert run(vortex, tmp_path, body, place).stdout == "ended\n"
