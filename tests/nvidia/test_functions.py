"""Every function of src/base/float_functions.h, and those of two arguments, builds for a GPU in every float type, per thread and as tensors."""
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ONE = re.findall(r'X\(\w+, "(\w+)"', (ROOT / "src/base/float_functions.h").read_text())
TWO = ["pow", "atan2", "min", "max"]


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
def test_every_function_builds_in_every_type(program, tmp_path, kind):
    assert len(ONE) > 20
    calls = [(name, f"{name}(x)", f"{name}(x[i])") for name in ONE] + [(name, f"{name}(x, y)", f"{name}(x[i], y[i])") for name in TWO]
    calls.append(("remainder", "x % y", "x[i] % y[i]"))
    T = f"Tensor<{kind}, [N]>"
    source = tmp_path / "functions.vx"
    source.write_text("".join(f"kernel w_{name}(x: &{T}, y: &{T}) -> {T} {{ return {whole} + y }}\n"
                              f"kernel t_{name}(x: &{T}, y: &{T}, out: &mut {T}) {{\n    let i = thread.global_id\n    out[i] = {element} + y[i]\n}}\n"
                              for name, whole, element in calls))
    done = subprocess.run([str(program), "build", str(source), "--target", "sm_90", "--no-cache", "-o", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("*.vxk"))) == 2 * len(calls)
