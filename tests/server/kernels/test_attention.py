"""Attention: right, and the same bits whoever else is in the step or in the cache."""

import numpy as np
import pytest

pytestmark = pytest.mark.engine


def upper_halves(x):
    """Floats as BF16, cut off."""
    return (np.ascontiguousarray(x, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def as_floats(halves):
    return (halves.astype(np.uint32) << 16).view(np.float32)


def inputs(rows, cells, heads=14, key_heads=2, size=64, seed=1):
    random = np.random.default_rng(seed)
    q = random.standard_normal((rows, heads, size)).astype(np.float32) * 3
    k = random.standard_normal((cells, key_heads, size)).astype(np.float16)
    v = upper_halves(random.standard_normal((cells, key_heads, size)))
    return q, k, v


def expected(q, k, v, visible, scale):
    """Attention by its definition, in double precision."""
    share = q.shape[1] // k.shape[1]
    out = np.zeros(q.shape)
    values = as_floats(v).astype(np.float64)
    for row in range(q.shape[0]):
        for head in range(q.shape[1]):
            seen = visible[row]
            if seen.any():
                scores = k[seen, head // share].astype(np.float64) @ q[row, head] * scale
                weights = np.exp(scores - scores.max())
                out[row, head] = weights @ values[seen, head // share] / weights.sum()
    return out


@pytest.mark.parametrize(("heads", "key_heads"), [(14, 2), (9, 3), (4, 4), (32, 1), (5, 1)])
@pytest.mark.parametrize("rows", [1, 2, 5, 19])
def test_it_is_attention(ggml, heads, key_heads, rows):
    q, k, v = inputs(rows, 96, heads, key_heads)
    visible = np.tril(np.ones((rows, 96), bool), 96 - rows)
    found = ggml.attention(q, k, v, visible, scale=0.125)
    assert np.abs(found - expected(q, k, v, visible, 0.125)).max() < 2e-5


def test_a_size_of_heads_that_is_not_64(ggml):
    for size in (16, 32, 80, 128, 256):
        q, k, v = inputs(3, 40, size=size)
        visible = np.ones((3, 40), bool)
        found = ggml.attention(q, k, v, visible, scale=size**-0.5)
        assert np.abs(found - expected(q, k, v, visible, size**-0.5)).max() < 2e-5


def test_rows_alone_and_together_are_the_same_bits(ggml):
    q, k, v = inputs(21, 128)
    visible = np.tril(np.ones((21, 128), bool), 100)
    together = ggml.attention(q, k, v, visible, scale=0.125, threads=3)
    for row in range(21):
        alone = ggml.attention(q[[row]], k, v, visible[[row]], scale=0.125, threads=1)
        assert np.array_equal(alone[0], together[row])


def test_cells_of_others_between_ones_own_change_nothing(ggml):
    q, k, v = inputs(4, 64)
    visible = np.tril(np.ones((4, 64), bool), 60)
    alone = ggml.attention(q, k, v, visible, scale=0.125)
    random = np.random.default_rng(2)
    places = np.sort(random.choice(192, 64, replace=False))
    others_q, others_k, others_v = inputs(6, 192, seed=3)
    others_k[places], others_v[places] = k, v
    seen = np.zeros((10, 192), bool)
    seen[np.ix_([1, 2, 5, 8], places)] = visible
    theirs = np.setdiff1d(np.arange(192), places)
    seen[np.ix_([0, 3, 4, 6, 7, 9], theirs)] = random.random((6, len(theirs))) < 0.7
    mixed = np.empty((10, 14, 64), np.float32)
    mixed[[1, 2, 5, 8]] = q
    mixed[[0, 3, 4, 6, 7, 9]] = others_q
    together = ggml.attention(mixed, others_k, others_v, seen, scale=0.125)
    assert np.array_equal(together[[1, 2, 5, 8]], alone)


def test_what_nobody_sees_is_not_looked_at(ggml):
    q, k, v = inputs(2, 40)
    visible = np.ones((2, 40), bool)
    visible[:, 10:20] = False
    clean = ggml.attention(q, k, v, visible, scale=0.125)
    k[10:20], v[10:20] = np.nan, 0x7FC0
    assert np.array_equal(ggml.attention(q, k, v, visible, scale=0.125), clean)


@pytest.mark.parametrize("value", [0x7F80, 0x7FC0])
def test_a_value_that_is_no_number_spoils_only_those_who_see_it(ggml, value):
    q, k, v = inputs(4, 40)
    visible = np.ones((4, 40), bool)
    visible[[0, 2], 7] = False
    clean = ggml.attention(q, k, v, visible, scale=0.125)
    v[7] = value
    found = ggml.attention(q, k, v, visible, scale=0.125)
    assert np.array_equal(found[[0, 2]], clean[[0, 2]])
    assert not np.isfinite(found[[1, 3]]).any()


def test_a_row_that_sees_nothing_is_zero(ggml):
    q, k, v = inputs(3, 32)
    visible = np.ones((3, 32), bool)
    visible[1] = False
    found = ggml.attention(q, k, v, visible, scale=0.125)
    assert not found[1].any()
    assert np.abs(found - expected(q, k, v, visible, 0.125)).max() < 2e-5


def test_scores_of_any_size(ggml):
    q, k, v = inputs(3, 50)
    visible = np.ones((3, 50), bool)
    for factor in (0, 1e-3, 100, 1e4):
        found = ggml.attention(q * np.float32(factor), k, v, visible, scale=0.125)
        assert np.abs(found - expected(q * factor, k, v, visible, 0.125)).max() < 1e-3
