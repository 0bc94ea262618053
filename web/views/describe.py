"""What the page's addresses take and answer, for programs."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, jsonify

from web.openapi import DESCRIPTION

views = Blueprint("describe", __name__)


@views.get("/openapi.json")
def description() -> Any:
    """The description, see `web.openapi`."""
    return jsonify(DESCRIPTION)
