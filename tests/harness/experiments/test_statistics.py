"""Intervals and tests against values from elsewhere."""

import pytest

from harness.experiments.statistics import median, percentile, sign_test, wilson


@pytest.mark.parametrize(
    ("right", "n", "low", "high"),
    [  # scipy.stats.binomtest(right, n).proportion_ci(method="wilson")
        (0, 10, 0.0, 0.2775328),
        (5, 10, 0.2365931, 0.7634069),
        (10, 10, 0.7224672, 1.0),
        (3, 6, 0.1876162, 0.8123838),
    ],
)
def test_wilson(right: int, n: int, low: float, high: float):
    share = wilson(right, n)
    assert (share.low, share.high) == (pytest.approx(low, abs=1e-6), pytest.approx(high, abs=1e-6))


def test_nothing_is_known_of_nothing():
    assert (wilson(0, 0).low, wilson(0, 0).high) == (0.0, 1.0)
    assert median([]) is None


@pytest.mark.parametrize(
    ("better", "worse", "p"), [(0, 0, 1.0), (5, 0, 0.0625), (6, 1, 0.125), (3, 3, 1.0)]
)
def test_sign_test(better: int, worse: int, p: float):
    assert sign_test(better, worse) == pytest.approx(p)


def test_percentiles_lie_between_the_closest_ranks():
    assert percentile([1, 2, 3, 4], 50) == 2.5
    assert percentile([10], 95) == 10
    assert percentile([0, 10], 95) == 9.5
