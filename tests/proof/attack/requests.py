"""Requests out of the descriptions of both servers, right and wrong, by schemathesis."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from hypothesis.reporting import with_reporter
from schemathesis import Case, GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

from attack.page import enter, page
from attack.provider import provider
from attack.served import faults_in
from attack.tally import Tally
from server import openapi as of_server
from web import openapi as of_page

TITLE = "Requests made from the servers' own descriptions"
REQUESTS = 5_000
"""In the long form. The other 15,000 come from `attack.sockets`, which makes them sooner."""
SMALL = 200
BATCH = 20
SECONDS = 120
"""After so long without an answer a request counts as hanging."""
ENDLESS = ("/live", "/runs/{run_id}/live")
"""Streams that only end with the page; `attack.sockets` is about those."""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)


class Target(NamedTuple):
    """One of the servers, and how a request is given what generation cannot guess."""

    name: str
    base_url: str
    description: dict[str, Any]
    session: requests.Session
    help: Callable[[Case[Any], int], None]


def attack(tally: Tally, folder: Path, long: bool) -> None:
    """Half of the requests to each; the statuses are counted."""
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    total = REQUESTS if long else SMALL
    logs = [folder / "server.log", folder / "page.log"]
    with provider(logs[0]) as url, page(folder / "runs.db", url, logs[1]) as page_url:
        for target in (_server(url), _page(page_url)):
            _all(tally, target, total // 2)
    for log in logs:
        tally.tried("what the servers say of faults of their own", faults_in(log))


def _server(url: str) -> Target:
    def help_(case: Case[Any], number: int) -> None:
        """Every other request asks for a model that there is."""
        if number % 2 and isinstance(case.body, dict):
            case.body["model"] = ("plan", "runaway", "scan")[number % 3]
        if number % 2 and "name" in (case.path_parameters or {}):
            case.path_parameters["name"] = "plan"

    base = url.removesuffix("/v1")
    return Target("the model server", base, of_server.DESCRIPTION, requests.Session(), help_)


def _page(url: str) -> Target:
    access = enter(url)
    session = requests.Session()
    session.headers.update({"Cookie": access.cookie, "X-CSRF-Token": access.csrf})
    runs: list[str] = []

    def help_(case: Case[Any], number: int) -> None:
        """Every other request is about a run that there is, or starts one."""
        if number % 2 and case.path == "/runs" and isinstance(case.body, dict):
            case.body |= {"model": "scripted|plan", "task": "Look.", "workspace": ""}
            case.body |= {"max_turns": "5", "max_cost_usd": ""}
        if (number % 4 == 1 and not runs) or number % 500 == 1:
            form = {"model": "scripted|destructive", "task": "Look.", "csrf": access.csrf}
            made = session.post(f"http://{access.host}/runs", form, allow_redirects=False)
            runs.append(made.headers.get("Location", "/runs/none").rpartition("/")[2])
        if number % 2 and "run_id" in (case.path_parameters or {}):
            case.path_parameters["run_id"] = runs[number % len(runs)] if runs else "none"

    return Target("the page", f"http://{access.host}", of_page.DESCRIPTION, session, help_)


def _all(tally: Tally, target: Target, count: int) -> None:
    """A batch for each operation and mode in turn; one that has no more to try drops out."""
    what = f"requests to {target.name}"
    schema = schemathesis.openapi.from_dict(target.description)
    # An invalid part of a description of ours ends this here.
    found = (result.ok() for result in schema.get_all_operations())  # type: ignore[union-attr]
    operations = [operation for operation in found if operation.path not in ENDLESS]
    left = list(itertools.product(operations, MODES))
    statuses: Counter[int] = Counter()
    while left and statuses.total() < count:
        batch = min(BATCH, max(3, (count - statuses.total()) // len(left)))
        left = [pair for pair in left if _some(tally, what, target, pair, batch, statuses) == batch]
    said = ", ".join(f"{status}: {number:,}" for status, number in sorted(statuses.items()))
    tally.note(what, f"by status: {said}")


def _some(
    tally: Tally,
    what: str,
    target: Target,
    pair: tuple[Any, GenerationMode],
    examples: int,
    statuses: Counter[int],
) -> int:
    """Try so many requests of one operation; how many there were."""
    numbers = itertools.count()
    operation, mode = pair

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Case[Any]) -> None:
        target.help(case, next(numbers))
        tally.tried(what, _ask(target, case, statuses))

    # Where nothing can be wrong, as with an address without parameters, nothing can be made.
    with with_reporter(lambda _: None), contextlib.suppress(Unsatisfiable):
        ask()
    return next(numbers)


def _ask(target: Target, case: Case[Any], statuses: Counter[int]) -> str | None:
    where = f"{case.method} {case.path}"
    try:
        answer = case.call(
            base_url=target.base_url,
            session=target.session,
            timeout=SECONDS,
            allow_redirects=False,
        )
    except requests.exceptions.InvalidHeader:
        return None  # it could not be sent
    except requests.exceptions.RequestException as error:
        return f"{where}: no answer ({type(error).__name__}: {error}) to {str(case.body)[:300]}"
    statuses[answer.status_code] += 1
    if answer.status_code >= 500:
        return f"{where}: {answer.status_code} for {case.query} {str(case.body)[:500]}"
    try:
        case.validate_response(answer, checks=CHECKS)
    except AssertionError as failure:
        return f"{where}: {' '.join(str(failure).split())[:600]}"
    except BaseExceptionGroup as failures:
        return f"{where}: {' '.join(str(failures.exceptions[0]).split())[:600]}"
    return None
