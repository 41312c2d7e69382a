"""std/nn against f64, on fresh random data; the programs check themselves."""
import pathlib
import re

import pytest

HERE = pathlib.Path(__file__).parent


@pytest.mark.parametrize("source", sorted(HERE.glob("*.vx")), ids=lambda path: path.stem)
@pytest.mark.parametrize("how", [[], ["--check"], ["--device", "interpreter"]], ids=" ".join)
def test_the_program_finds_no_difference(vortex, device, source, how, fresh_seed):
    vortex("run", source, *(how if "--device" in how else ["--device", device, *how]), "--", fresh_seed())


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_decoding_compiles_for_gpus(vortex, tmp_path, target):
    code = vortex("build", HERE / "paged_attention.vx", "--no-cache", "--target", target, "--emit", "asm").stdout
    assert "combine_parts" in code
    [*entries] = [entry for entry in code.split(".visible .entry")[1:] if re.match(r"\s*\S*attend_parts\S*_wide", entry)]
    assert entries
    for entry in entries:  # keys and values in accesses of 16 bytes
        assert not re.search(r"ld\.global\S*16 ", entry) and len(re.findall(r"ld\.global\S*\.v[48]", entry)) >= 4


def test_heads_that_share_keys_are_multiplied_by_matrix_units(vortex):
    code = vortex("build", HERE / "paged_attention.vx", "--no-cache", "--target", "sm_90", "--emit", "asm").stdout
    [*entries] = [entry for entry in code.split(".visible .entry")[1:] if re.match(r"\s*\S*attend_groups\S*_4_64_main\b", entry)]
    assert len(entries) == 1
    assert "mma.sync" in entries[0] and "cp.async.cg" in entries[0] and ".minnctapersm 14" not in entries[0]
