"""Where the matrices of tiles end: with M, N and K in products, with the last element of their memory in others."""
import numpy as np
import pytest

import metile

pytestmark = pytest.mark.usefixtures("where")


def _page(A, B, C, M, N, K, BM: metile.constexpr, BN: metile.constexpr, BK: metile.constexpr):
    row, column = metile.program_id(0), metile.program_id(1)
    acc = metile.zeros((BM, BN), dtype="f32")
    for k in metile.tile_range(0, K, BK):
        a = metile.tile_load(A, row * BM, k, K, (BM, BK))
        b = metile.tile_load(B, k, column * BN, N, (BK, BN))
        acc = metile.dot(a, b, acc)
    metile.tile_store(C, row * BM, column * BN, N, acc, (BM, BN))


def _computed(A, B, C, M, N, K, BM: metile.constexpr, BN: metile.constexpr, BK: metile.constexpr):
    """The same with tiles that are changed before the product, and a C that is read."""
    row, column = metile.program_id(0) * BM, BN * metile.program_id(1)
    acc = metile.tile_load(C, row, column, N, (BM, BN)) * 0.0
    for k in metile.tile_range(0, K, BK):
        a = metile.cast(metile.tile_load(A, BM * metile.program_id(0), k, K, (BM, BK)) * 2.0, "f32")
        acc = metile.dot(a, 0.5 * metile.tile_load(B, k, column, N, (BK, BN)), acc)
    metile.tile_store(C, row, column, N, acc, (BM, BN))


def _at_once(A, B, C, M, N, K, BM: metile.constexpr, BN: metile.constexpr, BK: metile.constexpr):
    row, column = metile.program_id(0) * BM, metile.program_id(1) * BN
    a, b = metile.tile_load(A, row, 0, K, (BM, BK * 2)), metile.tile_load(B, 0, column, N, (BK * 2, BN))
    metile.tile_store(C, row, column, N, metile.dot(a, b), (BM, BN))


@pytest.mark.parametrize("body", [_page, _computed, _at_once], ids=lambda body: body.__name__)
@pytest.mark.parametrize("is_flat", [False, True])
@pytest.mark.parametrize("is_checked", [False, True])
def test_matrices_of_a_product_end_with_m_n_and_k(body, is_flat, is_checked, random, monkeypatch):
    if is_checked:
        monkeypatch.setenv("METILE_CHECK", "1")
    kernel = metile.kernel(body)
    for m, n, k, more in ((40, 24, 20, 0), (40, 24, 20, 24), (33, 7, 31, 40), (1, 1, 1, 3)):
        a, b = (random.standard_normal((rows + more, columns)).astype(np.float32) for rows, columns in ((m, k), (k, n)))
        b[k:] = np.nan
        c = np.full((m + more, n), 77, np.float32)
        given = [x.reshape(-1) if is_flat else x for x in (a, b, c)]
        for _ in range(2):
            kernel[(-(-(m + more) // 16), -(-n // 16))](*given, m, n, k, BM=16, BN=16, BK=16)
            np.testing.assert_allclose(c[:m], a[:m] @ b[:k], rtol=1e-4, atol=1e-4)
            assert (c[m:] == 77).all()
            c[:m] = 0


def test_other_numbers_of_rows_are_another_launch(random):
    kernel = metile.kernel(_page)
    a, b = random.standard_normal((64, 8)).astype(np.float32), random.standard_normal((8, 8)).astype(np.float32)
    for m in (64, 3, 17, 64, 0):
        c = np.full((64, 8), 77, np.float32)
        kernel[4, 1](a, b, c, m, 8, 8, BM=16, BN=16, BK=16)
        np.testing.assert_allclose(c[:m], a[:m] @ b, rtol=1e-4, atol=1e-4)
        assert (c[m:] == 77).all()


def test_prepared_products_end_with_their_numbers(random):
    a, b, c = random.standard_normal((64, 8)).astype(np.float32), np.eye(8, dtype=np.float32), np.full((64, 8), 77, np.float32)
    again = metile.kernel(_page)[4, 1].prepare(a, b, c, 5, 8, 8, BM=16, BN=16, BK=16)
    c[:] = 77
    again()
    np.testing.assert_allclose(c[:5], a[:5], rtol=1e-4)
    assert (c[5:] == 77).all()


@metile.kernel
def by_rows_of_both(A, B, C, M, N, K, BM: metile.constexpr, BN: metile.constexpr, BK: metile.constexpr):
    """B is N x K: no product of this form, though the numbers have these names."""
    row, column = metile.program_id(0) * BM, metile.program_id(1) * BN
    acc = metile.zeros((BM, BN))
    for k in metile.tile_range(0, K, BK):
        acc = metile.dot(metile.tile_load(A, row, k, K, (BM, BK)), metile.tile_load(B, column, k, K, (BN, BK)).T, acc)
    metile.tile_store(C, row, column, N, acc, (BM, BN))


@metile.kernel
def below_another(A, B, C, M, N, K, first, BM: metile.constexpr, BN: metile.constexpr, BK: metile.constexpr):
    """C begins with other rows than A."""
    row, column = metile.program_id(0) * BM, metile.program_id(1) * BN
    acc = metile.zeros((BM, BN))
    for k in metile.tile_range(0, K, BK):
        acc = metile.dot(metile.tile_load(A, row, k, K, (BM, BK)), metile.tile_load(B, k, column, N, (BK, BN)), acc)
    metile.tile_store(C, row + first, column, N, acc, (BM, BN))


@metile.kernel
def moved(A, B, C, M, N, K, first, BM: metile.constexpr, BN: metile.constexpr, BK: metile.constexpr):
    row, column = metile.program_id(0) * BM, metile.program_id(1) * BN
    acc = metile.zeros((BM, BN))
    for k in metile.tile_range(0, K, BK):
        acc = metile.dot(metile.tile_load(A + first * K, row, k, K, (BM, BK)), metile.tile_load(B, k, column, N, (BK, BN)), acc)
    metile.tile_store(C + first * N, row, column, N, acc, (BM, BN))


def test_other_forms_end_with_the_memory(random):
    m, n, k = 8, 40, 24
    a, b = random.standard_normal((m, k)).astype(np.float32), random.standard_normal((n, k)).astype(np.float32)
    c = np.zeros((m, n), np.float32)
    by_rows_of_both[1, 3](a, b, c, m, n, k, BM=16, BN=16, BK=16)
    np.testing.assert_allclose(c, a @ b.T, rtol=1e-4, atol=1e-4)
    b = np.ascontiguousarray(b.T)
    c = np.zeros((m + 16, n), np.float32)
    below_another[1, 3](a, b, c, m, n, k, 16, BM=16, BN=16, BK=16)
    np.testing.assert_allclose(c[16:], a @ b, rtol=1e-4, atol=1e-4)
    a = random.standard_normal((20, k)).astype(np.float32)
    c = np.zeros((20, n), np.float32)
    moved[1, 3](a, b, c, m, n, k, 12, BM=16, BN=16, BK=16)
    np.testing.assert_allclose(c[12:], a[12:] @ b, rtol=1e-4, atol=1e-4)
    assert not c[:12].any()


@metile.kernel
def with_a_matrix_below(A, B, C, M, N, K, way: metile.constexpr, BM: metile.constexpr, BN: metile.constexpr, BK: metile.constexpr):
    """What is added to the product lies below it, in C's own memory."""
    row, column = metile.program_id(0) * BM, metile.program_id(1) * BN
    acc = metile.zeros((BM, BN))
    for k in metile.tile_range(0, K, BK):
        acc = metile.dot(metile.tile_load(A, row, k, K, (BM, BK)), metile.tile_load(B, k, column, N, (BK, BN)), acc)
    more = metile.tile_load(C, row + M, column, N, (BM, BN)) if way == "row" else metile.tile_load(C, row + M, column, N, (BM, BN), rows=2 * M)
    metile.tile_store(C, row, column, N, acc + more, (BM, BN))


@pytest.mark.parametrize("way", ["row", "rows"])
def test_matrices_that_are_used_at_other_places_too_end_with_their_memory(way, random):
    m, n, k = 32, 8, 8
    a, b, c = (random.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n), (2 * m, n)))
    wanted = np.concatenate([a @ b + c[m:], c[m:]])
    with_a_matrix_below[2, 1](a, b, c, m, n, k, way=way, BM=16, BN=16, BK=16)
    np.testing.assert_allclose(c, wanted, rtol=1e-4, atol=1e-4)


def _zeros(X, N: metile.constexpr):
    metile.tile_store(X, 0, 0, 4, metile.zeros((N, N)), (N, N))


def _loaded(X, N: metile.constexpr):
    metile.tile_store(X, 0, 0, 4, metile.tile_load(X, 0, 0, 4, (N, N)), (N, N))


def _addresses(X, N: metile.constexpr):
    lanes = metile.arange(0, N)
    metile.store(X + lanes[:, None] * 4 + lanes[None, :], 1.0, mask=(lanes[:, None] < 4) & (lanes[None, :] < 4))


def _product(X, N: metile.constexpr):
    metile.tile_store(X, 0, 0, 4, metile.dot(metile.zeros((N, 8)), metile.zeros((8, N))), (N, N))


@pytest.mark.parametrize("body, line", [(_zeros, "metile.zeros((N, N))"), (_loaded, "metile.tile_load("), (_addresses, "lanes[:, None] * 4 + lanes[None, :]"),
                                        (_product, "metile.dot(")], ids=lambda value: getattr(value, "__name__", None))
@pytest.mark.parametrize("extent", [5000, 1 << 16, 1 << 20])
def test_a_tile_of_too_many_elements_is_refused_at_its_line(body, line, extent):
    with pytest.raises(metile.frontend.kernel.OutOfResources, match=f"{extent} × {extent} elements; one has at most 16777216") as raised:
        metile.kernel(body)[1](np.zeros(16, np.float32), N=extent)
    assert line in str(raised.value)


def test_a_tile_that_is_just_small_enough_is_stored(monkeypatch, random):
    monkeypatch.setattr(metile._values, "_MOST_ELEMENTS", 64 * 64)
    x = random.standard_normal(16).astype(np.float32)
    with pytest.raises(metile.frontend.kernel.OutOfResources):
        metile.kernel(_zeros)[1](x, N=65)
    metile.kernel(_zeros)[1](x, N=64)
    np.testing.assert_array_equal(x, 0)
