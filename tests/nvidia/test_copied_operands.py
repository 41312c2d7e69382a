"""Copies of operands that lie badly stand for parameters: they say of their elements what the parameters say."""
import re

import pytest


@pytest.mark.parametrize("element, result, target", [("u8", "u8", "sm_90"), ("i8", "i32", "sm_90"), ("f16", "f32", "sm_80"), ("f16", "f32", "sm_90"),
                                                     ("f8e4m3", "f32", "sm_90")])
def test_copies_have_the_spelled_type_of_what_they_stand_for(vortex, tmp_path, element, result, target):
    path = tmp_path / "product.vx"
    path.write_text(f"kernel product(a: &Tensor<{element}, [M, K]>, b: &Tensor<{element}, [K, N]>) -> Tensor<{result}, [M, N]> {{\n    return a @ b\n}}\nfn main() {{}}\n")
    done = vortex("build", path, "--target", target, "--dump-after=schedule", "-o", tmp_path / "out")
    entry = next(line for line in (done.stdout + done.stderr).splitlines() if line.lstrip().startswith("vx.entry @product"))
    arguments = re.findall(r"\{((?:[^{}]|\{[^{}]*\})*)\}", entry[entry.index("args ["):])
    copies = [argument for argument in arguments if "stands_for" in argument]
    assert copies, entry
    for copy in copies:
        assert f'type = "{element}"' in copy, copy
