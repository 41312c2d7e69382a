"""`--check` runs kernels as they are written: what folds away and what nothing uses is computed there too."""
import pytest

SOURCE = """@launch(grid = [1], block = 64)
kernel k(x: &mut Tensor<u32, [64]>, y: &Tensor<u32, [64]>, n: u32, back: usize) {
    let l = thread.local_id
    let v = y[l]
    BODY
    sync_block()
    x[l] += 1
}

fn main() {
    var x: Tensor<u32, [64]> = zeros()
    k(&mut x, &full(VALUE), N, BACK)
    print(x.to_host()[2])
}
"""
# Numbers with which nothing wraps; v, n and back with which something does.
HARMLESS, LARGE = ("9", "3", "1"), ("3000000000", "3000000001", "70")


def run(vortex, tmp_path, body, numbers, *flags, status=0):
    path = tmp_path / "program.vx"
    text = SOURCE.replace("BODY", body)
    for name, number in zip(("VALUE", "N", "BACK"), numbers):
        text = text.replace(name, number)
    path.write_text(text)
    return vortex("run", path, *flags, status=status)


@pytest.mark.parametrize("body", [
    "x[l] = (v - n) + n",
    "x[l] = n * v - n * v",
    "let from = l + 1 - back\n    x[(from + back - 1) % 64] = 1",
    "x[(l * (back * 4294967296 * 4294967296 / 70) + l) % 64] = 1",
    "x[l] = 0 * (v * n)",
    "let z = n * n\n    x[l] = 5",
    "let z = x[l] - n + 3\n    x[l] = 5",
    "let p = (v * 2, 1u32)\n    x[l] = p.1",
    "var a = 0u32\n    for i in 0..4 { a += v }\n    x[l] = 5",
    "if n > 5 { let z = v + v }\n    x[l] = 5",
    "let z = -(n as i32) - (v as i32)\n    x[l] = 5",
    "var i = n\n    while i > 3 && i < 3000000003 { i -= 1; i = i * 2 }\n    x[l] = 5",
])
def test_wrapping_is_told_though_nothing_uses_it(vortex, tmp_path, body):
    wraps_always = "x[l] - n + 3" in body or "4294967296 * 4294967296" in body
    if not wraps_always:
        expected = run(vortex, tmp_path, body, HARMLESS, "--device", "interpreter").stdout
        assert run(vortex, tmp_path, body, HARMLESS, "--check").stdout == expected
    done = run(vortex, tmp_path, body, LARGE, "--check", status=1)
    assert "error[E0605]" in done.stderr, done.stderr


@pytest.mark.parametrize("body", [
    "var i = n\n    while i != 1 { i = i ^ 4 }",
    "var i = l as u32\n    while i != 200 { i = (i + 2) % 64 }",
    "var i = 0u32\n    while i != n { i = (i + 2) & 255 }\n    sync_block()",
    "for j in 0..2 {\n        var i = n\n        while i > 2 { i = i % 9 + 3 }\n    }",
    "if v > 4 {\n        var i = n\n        loop {\n            if i == 4 { break }\n            i ^= 8\n        }\n    }",
])
def test_a_loop_without_end_is_told_though_nothing_uses_it(vortex, tmp_path, body):
    done = run(vortex, tmp_path, body, HARMLESS, "--check", "--max-steps", "20000", status=1)
    assert "error[E0606]" in done.stderr, done.stderr


# What surplus threads and operands behind `&&` would compute is not the program's.
@pytest.mark.parametrize("body", [
    "if v > 10 { let z = v * n * 1000000000 }\n    x[l] = 5",
    "if n > 3 && v * 1000000000 > 4 { x[l] = 5 }",
    "let z = if n > 5 { n - 10 } else { 10 - n }\n    x[l] = z",
    "@unchecked(overflow)\n    let z = (n - 100) * n\n    x[l] = 5",
])
def test_what_does_not_run_does_not_wrap(vortex, tmp_path, body):
    run(vortex, tmp_path, body, HARMLESS, "--check")
