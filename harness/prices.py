"""What a model costs, in US dollars per million tokens.

A person says it, or the endpoint does in its list of models; nobody guesses.
There is no table of prices here: it would be wrong sooner or later, and a price
that is not known is unknown, which is not free.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from harness.errors import SettingsError
from harness.state import Prices

UNKNOWN = Prices()


def prices_said_by(model: Mapping[str, Any]) -> Prices:
    """The prices in an entry of `/v1/models`; unknown where it has none that make sense.

    Ours are at `uitweg.prices`: `{"input_per_million": 2, "output_per_million": 12}`.
    """
    ours = model.get("uitweg")
    prices = ours.get("prices") if isinstance(ours, Mapping) else None
    if not isinstance(prices, Mapping):
        return UNKNOWN
    return Prices(
        input_per_million=_amount(prices.get("input_per_million")),
        output_per_million=_amount(prices.get("output_per_million")),
    )


def read_price(text: str, name: str, unit: str = "dollars per million tokens") -> Decimal:
    """An amount of money as a person wrote it. Raises `SettingsError` that names it."""
    amount = _amount(text)
    if amount is None:
        raise SettingsError(f"{name} is {text!r}; it must be {unit}, 0 or more.")
    return amount


def _amount(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and amount >= 0 else None
