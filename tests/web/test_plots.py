from decimal import Decimal
from typing import Any
from xml.etree import ElementTree

import pytest

from harness.events import Turn
from web import plots


def turns(*costs: str | None, cached: int = 0) -> list[Turn]:
    made: list[Any] = []
    for number, cost in enumerate(costs, start=1):
        amount = None if cost is None else Decimal(cost)
        made.append(
            Turn(
                run_id="r", turn=number, prompt_tokens=100 * number, cached_tokens=cached,
                completion_tokens=1, total_tokens=1, cost_usd=amount, run_cost_usd=amount,
                finish_reason="stop", ms=1,
            )
        )  # fmt: skip
    return made


@pytest.mark.parametrize("count", [0, 1, 2, 200, 1000])
def test_every_plot_is_a_picture_with_words(count: int) -> None:
    made = turns(*["0.1"] * count, cached=50)
    picture = ElementTree.fromstring(plots.tokens_plot(made))
    assert picture.attrib["role"] == "img"
    assert "Prompt tokens per turn" in picture.attrib["aria-label"]
    bars = [e for e in picture if e.tag == "rect"]
    # Parts that are too small to be seen are left out.
    assert count - 1 <= len(bars) <= 2 * count
    for bar in bars:
        assert float(bar.attrib["x"]) >= 0
        assert float(bar.attrib["x"]) + float(bar.attrib["width"]) <= plots.WIDTH


def test_cost_and_its_limit() -> None:
    picture = plots.cost_plot(turns("0.001", "0.002"), Decimal("0.01"))
    assert picture is not None
    assert 'class="limit"' in picture
    assert "$0.002 of a limit of $0.01" in picture
    unlimited = plots.cost_plot(turns("0.001"), None)
    assert unlimited is not None
    assert 'class="limit"' not in unlimited


def test_an_unknown_cost_is_not_drawn_as_nothing() -> None:
    assert plots.cost_plot(turns("0.1", None), None) is None
    assert plots.cost_plot([], None) is None


def test_costs_that_are_all_nothing_are_drawn() -> None:
    assert plots.cost_plot(turns("0", "0"), None) is not None


def test_bars_of_a_table() -> None:
    assert 'width="50.0"' in plots.bar(1, 2)
    assert 'width="0.0"' in plots.bar(0, 0)
