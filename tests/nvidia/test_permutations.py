"""Without a GPU: permutations of whole inner rows load several pieces before they store the first, and divide only once per thread and dimension."""
import pathlib
import re
import subprocess

import pytest


def aligned_entry(program, tmp_path, text):
    source = tmp_path / "k.vx"
    source.write_text(text)
    done = subprocess.run([str(program), "build", str(source), "--target", "sm_90", "--no-cache", "-o", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    [path] = tmp_path.glob("*.ptx")
    bodies = dict(re.findall(r"\.entry\s+(\w+)\s*\(.*?\n\{(.*?)\n\}", pathlib.Path(path).read_text(), re.S))
    return bodies["vx_k_tensors_0"]


@pytest.mark.parametrize("kind", ["bf16", "f32", "u8"])
@pytest.mark.parametrize("dims,result,order", [("A, B, C, D", "A, C, B, D", "[0, 2, 1, 3]"), ("A, B, C", "B, A, C", "[1, 0, 2]")])
def test_pieces_are_loaded_together_and_divided_by_multiplying(program, tmp_path, kind, dims, result, order):
    code = aligned_entry(program, tmp_path, f"kernel k(x: &Tensor<{kind}, [{dims}]>) -> Tensor<{kind}, [{result}]> {{ return x.transpose({order}) }}\n")
    accesses = re.findall(r"(ld|st)\.global[.\w]*v4", code)
    assert re.match(r"(ld){2,}(st){2,}", "".join(accesses)), accesses
    assert not re.search(r"\bdiv\.", code[re.search(r"ld\.global[.\w]*v4", code).start() : re.search(r"st\.global[.\w]*v4", code).start()])
