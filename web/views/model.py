"""The model servers: what runs, how fast, how busy."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, render_template

from web.reply import render_page
from web.serverfacts import facts_of
from web.services import services

views = Blueprint("model", __name__)


@views.get("/model")
def show() -> Any:
    """The page."""
    return render_page("model.html", here="model", servers=_servers())


@views.get("/model/state")
def state() -> Any:
    """The part that is asked for again and again."""
    return render_template("model_state.html", servers=_servers())


def _servers() -> list[Any]:
    return [(state, facts_of(state)) for state in services().endpoints.states()]
