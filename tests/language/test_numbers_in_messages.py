"""Numbers without a sign are shown as they are in what a running program says."""
import pytest


@pytest.mark.parametrize("statement, shown", [
    ("print(u[a..a + 3].to_host())", "elements 18446744073709551615..2 are"),
    ("print(u[a..].to_host())", "elements 18446744073709551615..16 are"),
    ("print(v[a])", "index 18446744073709551615 is"),
    ("print(v[b])", "index -2 is"),
    ("print(v[b..3])", "elements -2..3 are"),
])
def test_subscripts_are_shown_as_numbers_of_their_types(vortex, tmp_path, statement, shown):
    path = tmp_path / "program.vx"
    path.write_text("""fn main() {
    let u: Tensor<f32, [16]> = full(1.0)
    let v = vec![1, 2, 3]
    let a = 18446744073709551614usize + args().len() as usize + 1
    var b = 0
    b -= 2
    STATEMENT
}
""".replace("STATEMENT", statement))
    done = vortex("run", path, status=1)
    assert "error[E0702]: " + shown in done.stderr, done.stderr


@pytest.mark.parametrize("flags", [[], ["--check"]])
def test_arguments_of_a_refused_launch_are_shown_without_a_sign(vortex, tmp_path, flags):
    path = tmp_path / "program.vx"
    path.write_text("""@launch(grid = [ceil_div(N, 512)], block = 256)
kernel apart(x: &Tensor<f32, [N]>, y: &mut Tensor<f32, [N]>, ns: usize) {
    let j = thread.global_id
    if j < N / 2 && ns > 0 {
        let d = (j / ns) * ns * 2 + j % ns
        y[d] = x[j] + x[j + N / 2]
        y[d + ns] = x[j] - x[j + N / 2]
    }
}

fn main() {
    let x = random.normal::<f32>([1000], seed = 1)
    var y: Tensor<f32, [1000]> = zeros()
    apart(&x, &mut y, usize.MAX)
}
""")
    done = vortex("run", path, *flags, status=1)
    assert "`ns` = 18446744073709551615 is more" in done.stderr, done.stderr
