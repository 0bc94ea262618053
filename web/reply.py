"""Answers to forms: JSON where a script sent them, a redirect or a page where not."""

from __future__ import annotations

from typing import Any

from flask import Response, jsonify, redirect, render_template, request

from web.services import services


def count_in(text: str) -> int | None:
    """A count as it stands in an address; `None` for what is none, or none that can be."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def render_page(template: str, **values: Any) -> str:
    """A whole page: its template with these values, and how many runs wait for a person."""
    return render_template(template, waiting_count=len(services().reader.waiting()), **values)


def wants_json() -> bool:
    """Whether the sender asked for JSON."""
    return request.accept_mimetypes.best_match(["text/html", "application/json"]) == (
        "application/json"
    )


def said(text: str, code: int) -> tuple[Response, int]:
    """What went wrong and what to do next, for a script."""
    return jsonify(error=text), code


def done(to: str) -> Any:
    """A change was made; a script stays where it is, a browser goes to `to`."""
    if wants_json():
        return jsonify(ok=True)
    return redirect(to, code=303)
