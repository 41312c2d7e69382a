"""Functions that stay functions in the generated PTX: one for an entry point, a call in each place, and text that ptxas takes."""
import re
import shutil
import subprocess

import pytest

CALLS = 20
KERNEL = """{attribute}
fn mix(x: f32, y: f32, n: u32) -> (f32, u32) {{
    var a = x
    var seed = n
    for i in 0..40 as u32 {{
        seed = @(seed)
        if seed % 97 == 0 {{ return (a, seed) }}
        a = sin(a) * y + exp(-a * a) + tanh(y * a)
    }}
    return (a, seed)
}}

kernel run(x: &mut Tensor<f32, [N]>, seeds: &mut Tensor<u32, [N]>) {{
    let i = thread.global_id
    if i < N {{
        var a = x[i]
        var s = seeds[i]
{calls}
        x[i] = a
        seeds[i] = s
    }}
}}
"""


def ptx_of(vortex, path, attribute, target):
    calls = "".join(f"        if s % {k + 2} != 1 {{ let (b, t) = mix(a, {k}.5, s); a = b; s = t }}\n" for k in range(CALLS))
    text = KERNEL.format(attribute=attribute, calls=calls).replace("@(seed)", "(seed ^ (seed << 3)) & 0xffffff")
    path.write_text(text)
    return vortex("build", path, "--target", target, "--emit", "asm").stdout


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_a_function_is_in_the_text_once_for_an_entry_point(vortex, tmp_path, target):
    ptx = ptx_of(vortex, tmp_path / "kept.vx", "@noinline", target)
    entries = len(re.findall(r"\.visible \.entry", ptx))
    bodies = re.findall(r"^\.func[^;{]*vx_function_mix[^;{]*\{", ptx, re.M)
    assert entries >= 1 and len(bodies) == entries
    assert len(re.findall(r"call\.uni[^;]*vx_function_mix", ptx)) == CALLS * entries
    inlined = ptx_of(vortex, tmp_path / "inlined.vx", "", target)
    assert "vx_function" not in inlined and len(ptx) < len(inlined) / 3, (len(ptx), len(inlined))
    if assembler := shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas"):
        (tmp_path / "kept.ptx").write_text(ptx)
        subprocess.run([assembler, f"-arch={target}{'a' if target == 'sm_90' else ''}", tmp_path / "kept.ptx", "-o", tmp_path / "kept.cubin"], check=True)
