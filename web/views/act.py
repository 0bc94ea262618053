"""Changes to a run: stop, resume, decide. By POST only."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any, cast, get_args

from flask import Blueprint, request

from harness.errors import SettingsError
from harness.state import DecisionAction, Limits
from web.reply import done
from web.services import services
from web.text import whole as sendable

views = Blueprint("act", __name__)

MOST_TURNS = 100_000


@views.post("/runs/<run_id>/stop")
def stop(run_id: str) -> Any:
    """Stop the run, in whatever process it is carried."""
    services().carrier.stop(run_id, "a person pressed Stop")
    return done(f"/runs/{run_id}")


@views.post("/runs/<run_id>/resume")
def resume(run_id: str) -> Any:
    """Carry the run on, with the limits of the form where it has any."""
    made = services()
    fixed = made.store.load(run_id).settings.limits
    made.carrier.resume(run_id, changed_limits(fixed))
    return done(f"/runs/{run_id}")


def changed_limits(now: Limits) -> dict[str, Any]:
    """The limits of the form that differ from those of the run. Raises `SettingsError`."""
    wanted: dict[str, Any] = {}
    if "max_turns" in request.form:
        wanted["max_turns"] = whole(request.form["max_turns"], "The limit of turns")
    if "max_cost_usd" in request.form:
        wanted["max_cost_usd"] = amount(request.form["max_cost_usd"], "The limit of cost")
    return {name: value for name, value in wanted.items() if value != getattr(now, name)}


def whole(text: str, what: str) -> int | None:
    """A whole number of at least 1, or `None` for an empty field."""
    text = text.strip()
    if not text:
        return None
    value = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
    if not 1 <= value <= MOST_TURNS:
        raise SettingsError(
            f"{what} must be a whole number from 1 to {MOST_TURNS:,}, or empty for none."
        )
    return value


def amount(text: str, what: str) -> Decimal | None:
    """Dollars above 0, or `None` for an empty field."""
    text = text.strip().removeprefix("$")
    if not text:
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal(0)
    if not value.is_finite() or not 0 < value < 1_000_000:
        raise SettingsError(f"{what} must be dollars above 0, such as 0.05, or empty for none.")
    return value


@views.post("/runs/<run_id>/decide")
def decide(run_id: str) -> Any:
    """Record a decision about the call that was shown, then carry the run on."""
    action = action_of(request.form.get("action", ""))
    reason = request.form.get("reason", "").strip()
    if action == "reject" and not reason:
        raise SettingsError("Say why: the model reads it. Nothing was decided.")
    services().carrier.decide(
        run_id,
        action=action,
        call_id=request.form.get("call_id", ""),
        digest=request.form.get("digest", ""),
        args=_edited() if action == "edit" else None,
        reason=reason or None,
    )
    return done(f"/runs/{run_id}")


def action_of(name: str) -> DecisionAction:
    """The button that was pressed. Raises `SettingsError` for none of the card's."""
    for action in get_args(DecisionAction):
        if action == name:
            return cast("DecisionAction", action)
    raise SettingsError("Choose one of the buttons of the card. Nothing was decided.")


def _edited() -> dict[str, Any]:
    try:
        value = json.loads(request.form.get("args", ""), parse_constant=_no_number)
    except ValueError as error:
        raise SettingsError(f"This is not JSON: {error}. Nothing was decided.") from None
    except RecursionError:
        raise SettingsError("These arguments are nested too deep. Nothing was decided.") from None
    if not isinstance(value, dict):
        raise SettingsError("The arguments must be a JSON object. Nothing was decided.")
    text = json.dumps(value, ensure_ascii=False)
    if sendable(text) != text:
        raise SettingsError(
            "The arguments hold half a character (a lone surrogate). Nothing was decided."
        )
    return value


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number in JSON")
