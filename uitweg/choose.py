"""From what a person gave on the command line to the settings of a run."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

from harness.demo import copy_demo
from harness.errors import SettingsError
from harness.prices import UNKNOWN, read_price
from harness.provider import Endpoint, OfferedModel
from harness.state import Limits, Prices, Settings
from harness.tools import DEFAULT_TOOLS
from local import folders


def limits_from(**given: Any) -> dict[str, Any]:
    """The limits that were given, as changes to `Limits`; those that were not are left out."""
    return {name: value for name, value in given.items() if value is not None}


def read_cost(text: str | None) -> Decimal | None:
    """A limit on money as it was written: dollars. Raises `SettingsError`."""
    return None if text is None else read_price(text, "--max-cost", "US dollars")


def read_prices(known: Prices, price_in: str | None, price_out: str | None) -> Prices:
    """`known`, with the prices that were written on the command line. Raises `SettingsError`."""
    changes = {
        "input_per_million": price_in and read_price(price_in, "--price-in"),
        "output_per_million": price_out and read_price(price_out, "--price-out"),
    }
    return known.model_copy(update={k: v for k, v in changes.items() if v is not None})


def new_settings(
    *,
    endpoint: Endpoint,
    model: OfferedModel,
    workspace: Path | None,
    limits: dict[str, Any],
    profile: str = "default",
    prices: Prices = UNKNOWN,
    own: Iterable[str] = (),
) -> Settings:
    """The settings of a new run. Raises `SettingsError`.

    Args:
        endpoint: Where its model is.
        model: What the endpoint says of it.
        workspace: The folder; the demo's where there is none.
        limits: Fields of `Limits`.
        profile: How the harness helps the model.
        prices: What holds instead of the endpoint's prices, as far as known.
        own: Tools that the model gets besides the usual ones.
    """
    # A demo's file that an earlier run deleted is put back.
    folder = workspace or copy_demo(folders.make(folders.data()) / "demo")
    try:
        return Settings(
            base_url=endpoint.base_url,
            model=model.name,
            workspace=str(folder.expanduser().resolve()),
            tools=(*(model.tools or DEFAULT_TOOLS), *own),
            limits=Limits(**limits),
            prices=model.prices.model_copy(update=prices.model_dump(exclude_none=True)),
            guidance=model.policies(profile),
        )
    except ValueError as error:
        raise SettingsError(f"These settings cannot be: {error}") from None
