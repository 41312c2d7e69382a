"""PTX has none of the instructions that ptxas does not hold to their definition (src/target/nvidia/exact_integers.h), and ptxas takes what stands for them."""
import re
import subprocess

import pytest


@pytest.mark.parametrize("kind", ["i8", "u8", "i16", "u16", "i32", "i64"])
def test_instructions_are_exact_ones(program, tmp_path, kind):
    signed = ["abs(x)", "-x", "-x * 3", "max(x, -x)", "x * -64", "x % 13", "x / -4"] if kind[0] == "i" else ["select(x > y, x - y, x * 0)"]
    forms = ["min(x, y)", "max(x, 1)", "min(max(x, 3), 9)", "select(x < y, x, y)", "x % (y | 1)", "x / (y | 1)", *signed]
    T = f"Tensor<{kind}, [N]>"
    source = tmp_path / "narrow.vx"
    source.write_text("".join(
        f"@unchecked(overflow)\nkernel w{i}(x: &{T}, y: &{T}) -> {T} {{ return {form} }}\n"
        f"@launch(grid = [ceil_div(N, 64)], block = 64)\n@unchecked(overflow)\nkernel t{i}(a: &{T}, b: &{T}, out: &mut {T}) {{\n    let i = thread.global_id\n"
        f"    if i < N {{\n        let x = a[i]\n        let y = b[i]\n        out[i] = {form}\n    }}\n}}\n" for i, form in enumerate(forms)))
    subprocess.run([program, "build", source, "--target", "sm_90", "--no-cache", "-o", tmp_path], check=True, capture_output=True)
    texts = [path.read_text() for path in tmp_path.glob("*.ptx")]
    assert len(texts) == 2 * len(forms)
    for text in texts:
        assert not re.search(r"\b(neg|abs|min|max|div|rem)\.[su]16\b|\babs\.s|\.[su]16x2\b", text), text
