"""All checks on the terminal, each as soon as it is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import typer

from harness.provider import Endpoint
from harness.provider.endpoint import normal_base_url
from uitweg.config import Held, read_config
from uitweg.doctor.check import Check
from uitweg.doctor.endpoint import check_endpoint
from uitweg.doctor.machine import check_machine
from uitweg.hosting import health
from uitweg.text import count, safe

_MARKS = {"ok": "ok   ", "note": "note ", "wrong": "WRONG"}
_WIDTH = 16


def report(base_url: str | None, model: str | None) -> int:
    """Print every check. Gives 1 when something is wrong."""
    held = read_config()
    endpoint = _endpoint(held, base_url, model)
    typer.echo("This machine")
    wrong = _print(check_machine(held))
    typer.echo(f"\nThe model's endpoint, {endpoint.base_url}")
    if not endpoint.named and health(endpoint.base_url) is None:
        _print(iter([_BUNDLED]))
    else:
        wrong += _print(check_endpoint(endpoint))
    typer.echo(f"\n{count(wrong, 'thing')} wrong." if wrong else "\nNothing is wrong.")
    return 1 if wrong else 0


_BUNDLED = Check(
    "endpoint",
    "note",
    "the bundled server does not run just now",
    "It is started when it is needed. To try it: uitweg serve, then uitweg doctor.",
)


def _endpoint(held: Held, base_url: str | None, model: str | None) -> Endpoint:
    endpoint = held.endpoint
    if base_url is not None:
        address = normal_base_url(base_url)
        same = address == endpoint.base_url
        endpoint = Endpoint(
            address, endpoint.key_for(address), endpoint.model if same else None, named=True
        )
    return replace(endpoint, model=model or endpoint.model)


def _print(checks: Iterator[Check]) -> int:
    wrong = 0
    for check in checks:
        typer.echo(f"  {_MARKS[check.state]}  {check.name:<{_WIDTH}}  {safe(check.found)}")
        if check.advice:
            typer.echo(f"  {'':{_WIDTH + 7}}  → {safe(check.advice)}")
        wrong += check.state == "wrong"
    return wrong
