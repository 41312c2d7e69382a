"""What runs on the CPU also compiles for NVIDIA GPUs and runs in the reference interpreter."""
import numpy as np
import pytest
import test_metile_from_triton as ports
import test_metile_language as language
import test_metile_pages as pages
import test_metile_vectors as vectors

import metile
import vortex

F = ("f32", 0), ("f32", 1), ("f32", 2)
KERNELS = {
    "gelu": (pages.gelu, [F[0], F[1], "int"], {"BLOCK": 256}), "roles": (pages.geglu, [*F, "int"], {"BLOCK": 256}),
    "product": (pages.matmul_gelu, [*F, "int", "int", "int"], {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}),
    "half product": (pages.matmul_gelu, [("f16", 0), ("f16", 1), F[2], "int", "int", "int"], {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32}),
    "softmax": (language.softmax, [F[0], F[1], "int"], {"BLOCK": 256}), "ragged block": (language.softmax, [F[0], F[1], "int"], {"BLOCK": 48}),
    "simdgroups": (language.simdgroups, [F[0], F[1], "int"], {"BLOCK": 128}), "per lane": (language.per_lane, [F[0], F[1], "int"], {"BLOCK": 64}),
    "shared": (language.reverse, [F[0], F[1]], {"BLOCK": 256}),
    "atomics": (ports.histogram_in_shared, [("i32", 0), ("i32", 1), "int"], {"BINS": 20, "BLOCK": 64}),
    "one atomic": (ports.tickets, [("u32", 0), ("i32", 1)], {"BLOCK": 48}), "extremes": (ports.extremes, [F[0], F[1], "int"], {"BLOCK": 64}),
    "reductions of tiles": (ports.reductions, [("f16", 0), ("f16", 1), ("f16", 2), "int", "int"], {"R": 16, "C": 32}),
    "attention": (ports.attention_of_tiles, [*F, ("f32", 3), "int", "float"], {"BLOCK_M": 32, "BLOCK_N": 64, "D": 32}),
    "numbers": (vectors.numbers, [F[0], F[1], "int", "int"], {"BM": 16, "BN": 8}),
    "steps": (ports.visits, [("i32", 0), "int", "int", "int"], {"BY_ARGUMENT": True, "STEP": 1}),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_compile_for_sm_90(name):
    kernel, kinds, constants = KERNELS[name]
    specialised = kernel.specialise(kinds, constants)
    assert len(specialised.native.build(specialised.name, specialised.request("sm_90"))) > 0


def test_what_a_gpu_has_too_few_threads_for_is_told_with_both_numbers():
    specialised = pages.gelu.specialise([F[0], F[1], "int"], {"BLOCK": 10**6})
    with pytest.raises(vortex.CompileError, match=r"blocks of 1000000 threads \(at most 65536 on"):
        specialised.native.build(specialised.name, specialised.request("sm_90"))


@pytest.mark.parametrize("test", [lambda random: pages.test_elementwise_kernels_write_exactly_what_the_mask_allows(pages.gelu, pages.gelu_of, 257, random),
                                  lambda random: pages.test_later_roles_see_what_earlier_ones_stored(300, random),
                                  lambda random: pages.test_a_product_with_an_epilogue_is_exact_at_its_edges(33, 20, 17, (32, 32, 16), random),
                                  lambda random: language.test_ragged_rows_do_not_count_masked_lanes(65, -500, random),
                                  lambda random: language.test_operations_of_simdgroups(random), lambda random: language.test_list_elements_are_carried(random)],
                         ids=["elementwise", "roles", "product", "softmax", "simdgroups", "lists"])
@pytest.mark.parametrize("check", ["METILE_INTERPRET", "METILE_CHECK"])
def test_the_interpreter_agrees(test, check, random, monkeypatch):
    monkeypatch.setenv(check, "1")
    test(random)


def test_a_kernel_is_compiled_once_for_its_types_and_constants(random):
    @metile.kernel
    def twice(X, N, BLOCK: metile.constexpr):
        offs = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
        metile.store(X + offs, metile.load(X + offs, mask=offs < N) * 2, mask=offs < N)

    for n in (5, 6, 700):
        x = random.standard_normal(n, dtype=np.float32)
        expected = x * 2
        twice[(metile.cdiv(n, 64),)](x, n, BLOCK=64)
        np.testing.assert_array_equal(x, expected)
    assert len(twice._specialised) == 1
    twice[(9,)](np.zeros(5, np.float16), 5, BLOCK=64)
    twice[(9,)](np.zeros(5, np.float16), 5, BLOCK=32)
    assert len(twice._specialised) == 3


def test_prepared_launches_repeat_and_keep_their_arrays(random):
    @metile.kernel
    def increment(X, N, BLOCK: metile.constexpr):
        offs = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
        metile.store(X + offs, metile.load(X + offs, mask=offs < N) + 1, mask=offs < N)

    buffer = metile.Buffer.zeros((100,))
    dispatch = increment[(2,)].prepare(buffer, 100, BLOCK=64)
    dispatch()
    dispatch.repeat(3)
    np.testing.assert_array_equal(buffer.numpy(), 5)
    dispatch.repeat(0)
    del buffer
    dispatch()


def test_autotuning_restores_arrays_and_remembers(tmp_path, monkeypatch, capsys, random):
    monkeypatch.setenv("METILE_CACHE_DIR", str(tmp_path))

    @metile.autotune(configs=[metile.Config(BLOCK=64), metile.Config(BLOCK=0), metile.Config(BLOCK=128)], key=["N"], warmup=1, rep=3)
    @metile.kernel
    def increment(X, N, BLOCK: metile.constexpr):
        offs = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
        metile.store(X + offs, metile.load(X + offs, mask=offs < N) + 1, mask=offs < N)

    def grid(values):
        return (metile.cdiv(100, values["BLOCK"]),)

    x = np.zeros(100, np.float32)
    chosen = increment[grid](x, 100)
    np.testing.assert_array_equal(x, 1)
    assert chosen in (metile.Config(BLOCK=64), metile.Config(BLOCK=128))
    text = capsys.readouterr().out
    assert "autotune increment [N=100]: Config(BLOCK=" in text and "FAILED (" in text and text.count("<--") == 1
    assert increment[grid](x, 100) == chosen and capsys.readouterr().out == ""
    np.testing.assert_array_equal(x, 2)
    assert len(list((tmp_path / "autotune").iterdir())) == 1
    assert increment[(2,)](x, 100, BLOCK=64) is None
