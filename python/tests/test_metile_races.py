"""Races, waiting and memory that is read before it is written, in traced kernels: found while compiling, at lines of the Python source."""
import inspect
import re
import warnings

import numpy as np
import pytest

import metile


def line_of(kernel, text: str) -> int:
    lines, first = inspect.getsourcelines(kernel.fn)
    return first + next(i for i, line in enumerate(lines) if text in line)


def compiled(kernel, kinds, grid=(2, 1, 1), numbers=None, **constants):
    """Warnings of the checks about a launch, as text."""
    specialised = kernel.specialise(kinds, constants, grid)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert specialised.native.ok
        specialised.judge({"N": 100} if numbers is None else numbers, grid)
    return [str(warning.message) for warning in found]


@metile.kernel
def add(X, Out, N, BLOCK: metile.constexpr):
    offs = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    metile.store(Out + offs, metile.load(X + offs, mask=offs < N) + 1.0, mask=offs < N)


@metile.kernel
def rows(X, Out, N, BLOCK: metile.constexpr):
    row = metile.program_id(0)
    for start in metile.tile_range(0, N, BLOCK):
        cols = start + metile.arange(0, BLOCK)
        metile.store(Out + row * N + cols, metile.load(X + row * N + cols, mask=cols < N), mask=cols < N)


@metile.kernel
def plane(Out, N, BLOCK: metile.constexpr):
    row, cols = metile.program_id(1), metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    metile.store(Out + row * N + cols, 1.0, mask=cols < N)


@metile.kernel
def one_instance(Out, BLOCK: metile.constexpr):
    metile.store(Out + metile.arange(0, BLOCK), metile.arange(0, BLOCK))


@metile.kernel
def reverse(X, Out, BLOCK: metile.constexpr):
    lane = metile.arange(0, BLOCK)
    cells = metile.shared(BLOCK)
    metile.store(cells + lane, metile.load(X + lane))
    metile.barrier()
    metile.store(Out + metile.program_id(0) * BLOCK + lane, metile.load(cells + (BLOCK - 1 - lane)))


@metile.kernel
def reverse_without_barrier(X, Out, BLOCK: metile.constexpr):
    lane = metile.arange(0, BLOCK)
    cells = metile.shared(BLOCK)
    metile.store(cells + lane, metile.load(X + lane))
    metile.store(Out + metile.program_id(0) * BLOCK + lane, metile.load(cells + (BLOCK - 1 - lane)))


@metile.kernel
def one_element(X, Out, BLOCK: metile.constexpr):
    lane = metile.arange(0, BLOCK)
    metile.store(Out + lane // 2, metile.load(X + lane))


@metile.kernel
def instance_forgotten(X, Out, BLOCK: metile.constexpr):
    lane = metile.arange(0, BLOCK)
    metile.store(Out + lane, metile.load(X + metile.program_id(0) * BLOCK + lane))


@metile.kernel
def scatter(X, Place, Out, BLOCK: metile.constexpr):
    offs = metile.program_id(0) * BLOCK + metile.arange(0, BLOCK)
    metile.store(Out + metile.load(Place + offs), metile.load(X + offs))


F, G, I = ("f32", 0), ("f32", 1), ("i32", 2)


@pytest.mark.parametrize("kernel, kinds, grid", [(add, [F, G, "int"], (2, 1, 1)), (rows, [F, G, "int"], (2, 1, 1)), (plane, [G, "int"], (2, 2, 1)),
                                                 (reverse, [F, G], (2, 1, 1)), (one_instance, [G], (1, 1, 1))],
                         ids=lambda value: getattr(value, "name", None))
def test_kernels_without_races_compile_silently(kernel, kinds, grid):
    assert compiled(kernel, kinds, grid, BLOCK=64) == []


@pytest.mark.parametrize("kernel, place", [(reverse_without_barrier, "store(cells"), (one_element, "store(Out"), (instance_forgotten, "store(Out")],
                         ids=lambda value: getattr(value, "name", None))
def test_a_race_is_an_error_at_its_line(kernel, place):
    with pytest.raises(metile.LoweringError, match="E0630") as raised:
        compiled(kernel, [F, G], BLOCK=64)
    [found] = [each for each in raised.value.diagnostics if each.id == "E0630"]
    primary = next(label for label in found.labels if label.is_primary)
    assert primary.file == __file__ and primary.line == line_of(kernel, place)


@metile.kernel
def flag(X, Out, BLOCK: metile.constexpr):
    metile.store(X + metile.program_id(0) * BLOCK + metile.arange(0, BLOCK), 2.0)
    metile.store(Out + 0, metile.program_id(0) + 1)


@metile.kernel
def picks(X, Out, BLOCK: metile.constexpr):
    lane = metile.arange(0, BLOCK)
    metile.store(Out + lane, metile.load(X + lane + metile.program_id(0) * BLOCK) + metile.program_id(1))


@metile.kernel
def columns_alone(X, Out, BLOCK: metile.constexpr):
    x, y = metile.program_id(0), metile.program_id(1)
    metile.store(Out + x * BLOCK + metile.arange(0, BLOCK), metile.load(X + (y * metile.num_programs(0) + x) * BLOCK + metile.arange(0, BLOCK)))


@metile.kernel
def strided_programs(X, Out, BLOCK: metile.constexpr):
    lane = metile.arange(0, BLOCK)
    for i in metile.tile_range(metile.program_id(0), 4, metile.num_programs(0)):
        metile.store(Out + lane, metile.load(X + lane) + i)


@pytest.mark.parametrize("kernel, good, bad", [(flag, [(1,), (1, 1)], [(2,), (1, 2)]), (picks, [(1,), (1, 1)], [(2,), (1, 2)]), (strided_programs, [(1,)], [(2,)]),
                                               (columns_alone, [(2, 1), (1, 1), (4,)], [(2, 2), (1, 2)])], ids=lambda value: getattr(value, "name", None))
def test_races_between_instances_need_several(kernel, good, bad, where):
    kernel = metile.kernel(kernel.fn)
    x = np.arange(64, dtype=np.float32)
    for grid in good + good:
        out, given = np.zeros(64, np.float32), x.copy()
        assert warned(lambda: kernel[grid](given, out, BLOCK=16)) == []  # noqa: B023 - called at once
        assert out.any()
    for grid in bad + bad:
        out = np.full(64, np.nan, np.float32)
        with pytest.raises(metile.LoweringError, match="E0630") as raised:
            kernel[grid](x.copy(), out, BLOCK=16)
        assert any(each.id == "E0630" for each in raised.value.diagnostics) and np.isnan(out).all()


@metile.kernel
def rows_of_simdgroups(X, Out, N, D, BLOCK: metile.constexpr):
    thread, lane = metile.thread_id(), metile.simd_lane_id()
    for row in metile.tile_range(thread // 32, N, BLOCK // 32):
        total = 0.0
        for i in metile.tile_range(lane, D, 32):
            total = total + metile.load(X + row * D + i)
        metile.store(Out + row, metile.simd_sum(total))


@metile.kernel
def row_of_simdgroup(X, Out, N, D, BLOCK: metile.constexpr):
    row = metile.program_id(0)
    largest = metile.load(X + row * D + metile.simd_lane_id(), mask=metile.simd_lane_id() < D)
    metile.store(Out + row, metile.simd_broadcast(metile.simd_max(largest), 5), mask=row < N)


@pytest.mark.parametrize("block", [32, 64, 128])
def test_what_is_alike_in_a_simdgroup_is_stored_once(block, random, where):
    x, out = random.integers(-9, 9, (7, 20)).astype(np.float32), np.full(7, np.nan, np.float32)
    assert warned(lambda: metile.kernel(rows_of_simdgroups.fn)[1](x, out, 7, 20, BLOCK=block)) == []
    np.testing.assert_array_equal(out, x.sum(axis=1))
    if block == 32:
        assert warned(lambda: metile.kernel(row_of_simdgroup.fn)[7](x, out, 7, 20, BLOCK=block)) == []
        np.testing.assert_array_equal(out, x.max(axis=1))


def test_what_is_not_known_is_one_warning_for_each_kernel():
    [text] = compiled(scatter, [F, I, G], BLOCK=64)
    assert "W0631" in text and f"{__file__}:{line_of(scatter, 'store(Out')}" in text
    assert compiled(scatter, [F, I, G], BLOCK=64) == []


def test_a_launch_that_is_checked_while_it_runs_warns_of_no_races(monkeypatch):
    x, place, out = np.ones(64, np.float32), np.arange(64, dtype=np.int32), np.zeros(64, np.float32)
    kernel = metile.kernel(scatter.fn)
    with monkeypatch.context() as patch, warnings.catch_warnings():
        patch.setenv("METILE_CHECK", "1")
        warnings.simplefilter("error")
        kernel[1](x, place, out, BLOCK=64)
    np.testing.assert_array_equal(out, x)
    with pytest.warns(UserWarning, match="W0631"):
        kernel[1](x, place, out, BLOCK=64)


def test_a_grid_of_more_axes_than_the_kernel_tells_apart_is_not_proven():
    assert any("W0631" in text for text in compiled(add, [F, G, "int"], (2, 2, 1), BLOCK=64))
    assert any("W0631" in text for text in compiled(one_instance, [G], (2, 1, 1), BLOCK=64))


def test_free_kernels_run_and_agree(random):
    x = random.standard_normal(300, dtype=np.float32)
    out = np.zeros_like(x)
    add[(5,)](x, out, 300, BLOCK=64)
    np.testing.assert_array_equal(out, x + 1)
    add[(5, 1)](out, x, 300, BLOCK=64)
    np.testing.assert_array_equal(x, out + 1)


@metile.kernel
def rows_apart(X, Out, stride, N, BLOCK: metile.constexpr):
    row, cols = metile.program_id(0), metile.arange(0, BLOCK)
    metile.store(Out + row * stride + cols, metile.load(X + row * stride + cols, mask=cols < N) + 1.0, mask=cols < N)


def warned(launch) -> list:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        launch()
    return [str(warning.message) for warning in found]


def test_a_launch_is_judged_by_its_numbers_and_its_grid():
    kernel = metile.kernel(rows_apart.fn)
    x, out = np.ones(400, np.float32), np.zeros(400, np.float32)
    assert warned(lambda: kernel[(4,)](x, out, 64, 60, BLOCK=64)) == []
    assert warned(lambda: kernel[(4,)](x, out, 64, 60, BLOCK=64)) == [], "known, and launched at once"
    assert warned(lambda: kernel[(1,)](x, out, 32, 60, BLOCK=64)) == [], "one row meets none"
    [text] = warned(lambda: kernel[(4,)](x, out, 32, 60, BLOCK=64))
    assert "W0631" in text and f"{__file__}:{line_of(rows_apart, 'store(Out')}" in text
    assert warned(lambda: kernel[(4,)](x, out, 16, 60, BLOCK=64)) == [], "once for each kernel"


@metile.kernel
def picked(X, Which, stride, N, BLOCK: metile.constexpr):
    row, lanes = metile.program_id(0) * stride, metile.arange(0, BLOCK)
    total = 0.0
    for start in metile.tile_range(0, N, BLOCK):
        total = total + metile.sum(metile.load(X + row + start + lanes, mask=start + lanes < N))
    total = total + metile.load(X + row + metile.load(Which + metile.program_id(0)))
    for start in metile.tile_range(0, N, BLOCK):
        metile.store(X + row + start + lanes, total, mask=start + lanes < N)


def test_a_warning_about_a_launch_names_what_is_left_in_it():
    """Without numbers every access to X may meet; in this launch rows are apart, and only what data chooses may be in another row."""
    kernel = metile.kernel(picked.fn)
    x, which = np.ones((4, 300), np.float32), np.zeros(4, np.int32)
    [text] = warned(lambda: kernel[(4,)](x, which, 300, 300, BLOCK=64))
    assert "W0631" in text and f"{line_of(kernel, 'metile.load(Which')} |" in text and f"{line_of(kernel, 'store(X')} |" in text
    assert f"{line_of(kernel, 'metile.sum')} |" not in text


@pytest.mark.parametrize("kernel, names", [(reverse_without_barrier, ["`cells`", "cells[", "Out.size = "]), (one_element, ["`Out`", "Out[", "X.size = "])],
                         ids=lambda value: getattr(value, "name", None))
def test_messages_name_memory_as_the_kernel_does(kernel, names):
    with pytest.raises(metile.LoweringError) as raised:
        compiled(kernel, [F, G], BLOCK=64)
    [found] = [each for each in raised.value.diagnostics if each.id == "E0630"]
    assert all(name in found.message for name in names), found.message
    assert not re.search(r"[a-zA-Z]\w*_?[0-9]", found.message), found.message
    assert not found.helps[0].startswith("or ")


def test_memory_without_a_name_has_one_in_messages():
    @metile.kernel
    def kernel(Out, BLOCK: metile.constexpr):
        lane = metile.arange(0, BLOCK)
        a, b = metile.shared(BLOCK), metile.shared(BLOCK)
        metile.store(a + lane // 2, lane)
        metile.store(b + lane, 2.0)
        metile.barrier()
        metile.store(Out + lane, metile.load(a + lane) + metile.load(b + lane))

    with pytest.raises(metile.LoweringError, match=r"race on `shared`: .* touch `shared\[0\]`"):
        compiled(kernel, [F], BLOCK=64)


def test_launches_are_judged_as_often_as_their_numbers_change():
    kernel = metile.kernel(rows_apart.fn)
    x, out = np.ones(4000, np.float32), np.zeros(4000, np.float32)
    texts = [text for stride in range(64, 90) for text in warned(lambda: kernel[(4,)](x, out, stride, 60, BLOCK=64))]  # noqa: B023 - called at once
    assert len(texts) == 1 and "W0631" in texts[0], "after sixteen launches it is left at what is known of all"
    for stride in range(64, 90):
        assert warned(lambda: kernel[(4,)](x, out, stride, 60, BLOCK=64)) == []  # noqa: B023


@pytest.mark.filterwarnings("ignore:warning.W0631")
def test_what_is_remembered_of_launches_has_an_end(monkeypatch):
    """Of a kernel that is refused on several instances every launch is judged."""
    monkeypatch.setattr(metile._specialised, "_MOST_REMEMBERED", 5)
    monkeypatch.setattr(metile._specialised, "_MOST_KEPT", 3)
    kept = []
    keep = metile._specialised._kept.keep
    monkeypatch.setattr(metile._specialised._kept, "keep", lambda key, *rest: (kept.append(key[0]), keep(key, *rest)))

    @metile.kernel
    def kernel(Out, N, BLOCK: metile.constexpr):
        metile.store(Out + metile.arange(0, BLOCK), metile.arange(0, BLOCK) + N + metile.program_id(0))

    out = np.zeros(64, np.int32)
    for n in range(20):
        kernel[1](out, n, BLOCK=64)
        np.testing.assert_array_equal(out, np.arange(64) + n)
        if n % 7 == 0:
            with pytest.raises(metile.LoweringError, match="E0630"):
                kernel[2](out, n, BLOCK=64)
    made = [each for traced in next(iter(kernel._specialised.values())) for each in traced.specialised.values()]
    assert made and all(len(each._judged) <= 5 and len(each._launched) <= 5 for each in made)
    assert kept.count("races of a metile launch") <= 3 * len(made)
