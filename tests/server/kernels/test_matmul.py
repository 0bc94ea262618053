"""Weights times rows: as exact as llama.cpp's own, and the same bits in any company."""

import numpy as np
import pytest

pytestmark = pytest.mark.engine

FORMATS = ("Q4_0", "Q4_1", "Q5_0", "Q8_0", "Q4_K", "Q6_K")


def columns_of(kind):
    """Some blocks of the format: of 256 columns or of 32."""
    return 768 if kind.endswith("_K") else 224


def case(ggml, kind, outputs, rows, seed=1):
    """A matrix in a format, its shape, and rows whose parts are of very different sizes."""
    random = np.random.default_rng(seed)
    shape = (outputs, columns_of(kind))
    matrix = ggml.quantized(kind, random.standard_normal(shape) * 0.1)
    x = random.standard_normal((rows, shape[1])) * np.exp(random.standard_normal((rows, 1)) * 2)
    x[:, 32:64] *= 30  # some features of real models are much larger than the rest
    return matrix, shape, x.astype(np.float32)


@pytest.mark.parametrize("kind", FORMATS)
def test_as_exact_as_llama_cpp(ggml, kind):
    matrix, shape, x = case(ggml, kind, 48, 9)
    true = x.astype(np.float64) @ ggml.floats(kind, matrix, shape).astype(np.float64).T

    def error(ours):
        found = ggml.product(kind, matrix, shape, x, ours=ours)
        return np.sqrt(((found - true) ** 2).mean()) / np.sqrt((true**2).mean())

    assert error(ours=True) < 0.01
    assert error(ours=True) < 1.02 * error(ours=False)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_row_is_the_same_bits_in_any_company(ggml, kind):
    matrix, shape, x = case(ggml, kind, 32, 30)
    alone = [ggml.product(kind, matrix, shape, row, ours=True, threads=1)[0] for row in x[:, None]]
    for count in (2, 3, 4, 5, 7, 8, 11, 12, 13, 24, 25, 30):
        for threads in (1, 2, 3):
            together = ggml.product(kind, matrix, shape, x[:count], ours=True, threads=threads)
            assert np.array_equal(together, alone[:count])
    assert np.array_equal(ggml.product(kind, matrix, shape, x[::-1], ours=True), alone[::-1])


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("outputs", [1, 7, 8, 9, 15, 16, 17, 40])
def test_matrices_that_do_not_fill_their_last_vector(ggml, kind, outputs):
    matrix, shape, x = case(ggml, kind, outputs, 5)
    most, _, _ = case(ggml, kind, 48, 5)
    whole = ggml.product(kind, most, (48, shape[1]), x, ours=True)
    found = ggml.product(kind, most[: len(matrix)], shape, x, ours=True)
    assert np.array_equal(found, whole[:, :outputs])


def test_every_weight_of_every_format_is_read(ggml):
    """Rows with a single 1 read the matrix out column by column: it has to be the file's."""
    for kind in FORMATS:
        matrix, shape, _ = case(ggml, kind, 24, 1)
        read = ggml.product(kind, matrix, shape, np.eye(shape[1], dtype=np.float32), ours=True).T
        assert np.allclose(read, ggml.floats(kind, matrix, shape), rtol=1e-5, atol=1e-6)


def test_rows_of_several_batches(ggml):
    matrix, shape, x = case(ggml, "Q5_0", 16, 12)
    found = ggml.product("Q5_0", matrix, shape, x.reshape(2, 2, 3, -1), ours=True)
    assert np.array_equal(found.reshape(12, 16), ggml.product("Q5_0", matrix, shape, x, ours=True))


@pytest.mark.parametrize("value", [0.0, 1e-38, 1e30])
def test_rows_of_extreme_size(ggml, value):
    for kind in FORMATS:
        matrix, shape, x = case(ggml, kind, 16, 3)
        x[1] = value
        found = ggml.product(kind, matrix, shape, x, ours=True)
        assert np.isfinite(found).all()
        assert np.array_equal(found[::2], ggml.product(kind, matrix, shape, x[::2], ours=True))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 15, 16, 31])
def test_what_is_not_a_number_shows_in_its_row_and_nowhere_else(ggml, value, place):
    for kind in FORMATS:
        matrix, shape, x = case(ggml, kind, 16, 3)
        clean = ggml.product(kind, matrix, shape, x, ours=True)
        x[1, 64 + place] = value
        found = ggml.product(kind, matrix, shape, x, ours=True)
        assert np.isnan(found[1]).all()
        assert np.array_equal(found[::2], clean[::2])
